"""Projection by the exact engine; what it cannot finish goes to MILP."""

from __future__ import annotations

import importlib.util
import logging
import time
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from gdpnet.convexify.plan import Plan
from gdpnet.errors import SolverError
from gdpnet.ir.instance import Instance
from gdpnet.rules.model import RuleModel
from gdpnet.solve import _margin, _milp
from gdpnet.solve._milp import Incumbent, literals_of
from gdpnet.solve._results import SOLVER_NAMES, Array, Options, Results
from gdpnet.solve.status import Status

if TYPE_CHECKING:
    from gdpnet.solve.exact import ExactEngine, Solved

logger = logging.getLogger("gdpnet")

ENGINE_SHARE = 0.5
"""Of a sample's time limit; the rest is for the MILP that takes over."""

_LARGE = 1e5  # predictions beside which rounding may keep rows from holding
LOST = 1e-15
"""What adding up a row loses of its terms, relative."""

_EXACT = SOLVER_NAMES.index("exact")
_PROJECTED = int(Status.PROJECTED)

# Status for each outcome of the engine: solved, no solution, node limit, numerical, accepted.
_STATUS = np.array(
    [Status.PROJECTED, Status.CONFLICT, Status.UNSOLVED, Status.UNSOLVED, Status.SATISFIED],
    dtype=np.int8,
)


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # blocked by a None in sys.modules
        return False


AVAILABLE = _importable("numba")


def engine_of(rules: RuleModel) -> ExactEngine:
    """The engine of a rule model, made when first needed."""
    engine: ExactEngine = rules.kept("exact engine", _new_engine)
    return engine


def _new_engine(rules: RuleModel) -> ExactEngine:
    if not AVAILABLE:
        raise SolverError(
            "solver='exact' needs numba, which is not installed. Install it, or use solver='milp'."
        )
    _announce()
    from gdpnet.solve.exact import ExactEngine

    return ExactEngine(rules)


@cache
def _announce() -> None:
    logger.info("Loading the exact engine; the first time on a machine it is compiled.")


def warmup(relaxations: bool = False) -> None:
    """Compile the exact engine now, so that the first request of a server does not wait for it.

    The compiled kernels are cached on disk: later processes load them in a fraction of a second.

    Args:
        relaxations: also compile the kernel of CNF and partial DNF.

    Example:
        >>> import gdpnet
        >>> gdpnet.warmup()
    """
    from gdpnet.ir.data import Boolean, Clause, Column, Row, Rule, RuleData
    from gdpnet.ir.linear import Coefficient

    if not AVAILABLE:
        raise SolverError("The exact engine needs numba, which is not installed.")
    logger.info("Compiling the exact engine; the first time on a machine takes about a minute.")
    terms = ((0, Coefficient(1.0)),)
    rows = (Row("low", terms, Coefficient(3.0)), Row("high", terms, Coefficient(-7.0)))
    data = RuleData(
        inputs=(),
        input_bounds=(),
        outputs=1,
        columns=(Column("y", 0.0, 10.0),),
        rows=rows,
        global_rows=(),
        booleans=(Boolean("low", (0,)), Boolean("high", (1,))),
        clauses=(Clause("rule", (1, 2)),),
        rules=(Rule("rule", 0, (0, 1)),),
        conditions=(),
    )
    invalid = np.zeros(1, dtype=bool)
    options = Options(weights=np.ones(1))
    rules, x, yhat = RuleModel.from_data(data), np.zeros((1, 0)), np.full((1, 1), 4.5)
    solve(rules, x, yhat, invalid, options, True)
    if relaxations:
        from gdpnet.solve import _relaxed

        _relaxed.solve(rules, x, yhat, invalid, options, True, Plan.cnf(), "extended")


def instantiate(rules: RuleModel, x: Array, invalid: Array, mark: bool) -> Instance:
    """The rules of a batch; arguments as in `solve`.

    Coefficients of unusable samples become 0, so that solvers meet numbers only.
    """
    instance = engine_of(rules).instantiate(x) if AVAILABLE else Instance.of(rules, x)
    if not instance.finite:
        _clear_unusable(rules, x, instance, invalid, mark)
    return instance


def _clear_unusable(
    rules: RuleModel, x: Array, instance: Instance, invalid: Array, mark: bool
) -> None:
    unusable = instance.unusable()
    if unusable.any():
        if not mark:
            rules.refuse_unusable(rules.evaluate(torch.from_numpy(x)).rows)
        invalid |= unusable
        instance.bound[unusable] = 0.0
        instance.varying[unusable] = 0.0


def solve(
    rules: RuleModel, x: Array, yhat: Array, invalid: Array, options: Options, mark: bool
) -> Results:
    """Project a flat batch.

    Args:
        rules: the rules.
        x: inputs, (B, p).
        yhat: predictions, (B, d).
        invalid: samples that cannot be used, (B,) bool; updated.
        options: how to solve.
        mark: mark samples with unusable coefficients instead of raising.
    """
    engine = engine_of(rules)
    instance = engine.instantiate(x)
    if not instance.finite:
        _clear_unusable(rules, x, instance, invalid, mark)
    limit = None if options.time_limit is None else options.time_limit * ENGINE_SHARE
    searched = options._replace(time_limit=limit)
    started = time.monotonic()
    solved = engine.project(instance, yhat, searched, options.detailed)
    solver = np.empty(len(yhat), dtype=np.int8)
    solver.fill(_EXACT)
    results = Results(
        y=solved.z[:, : rules.data.outputs],
        status=_STATUS.take(solved.status),
        value=solved.distance,
        nodes=solved.nodes,
        assignment=solved.assignment,
        active=instance.active if engine.all_rules else instance.active[:, engine.rule_clauses],
        solver=solver,
        missing=np.zeros(len(yhat), dtype=bool),
        instance=instance,
        solved=solved,
        replay=lambda: engine.project(instance, yhat, searched, detailed=True),
    )
    rest = results.status > _PROJECTED
    if np.count_nonzero(rest):
        _forgive_rounding(engine, results, solved, yhat, searched)
        rest = results.status > _PROJECTED
    if solved.unproved is not None:
        results.least_norm = ~solved.unproved & ~rest
    if not np.count_nonzero(rest):
        results.plain = engine.plain and results.unfinished is False
        return results
    results.y = np.where(rest[:, None], yhat, results.y)
    conflict = (results.status == Status.CONFLICT) & ~invalid
    rest &= ~(conflict | invalid)
    close = _margin.doubtful(rules, x, yhat, np.flatnonzero(conflict), searched)
    conflict[close] = False
    rest[close] = True
    results.unfinished = results.unfinished | rest
    again = np.flatnonzero(rest | (conflict if options.nearest else False))
    if len(again):
        from gdpnet.solve.exact import NODE_LIMIT

        incumbents = {
            int(i): Incumbent(
                solved.z[i, : rules.data.outputs],
                float(solved.distance[i]),
                literals_of(solved.assignment[i]),
            )
            for i in np.flatnonzero(rest & np.isfinite(solved.distance))
        }
        left = None
        if options.time_limit is not None and limit is not None:
            left = options.time_limit - min(limit, time.monotonic() - started)
        _milp.finish(
            *(rules, x, yhat, again, results, options), incumbents=incumbents, seconds=left
        )
        # What the search had proved by then holds whatever came after it.
        proved = (solved.status == NODE_LIMIT) & (results.status == Status.LIMIT)
        results.value[proved] = np.maximum(results.value, solved.bound)[proved]
    return results


def _forgive_rounding(
    engine: ExactEngine, results: Results, solved: Solved, yhat: Array, options: Options
) -> None:
    """Search again where arithmetic failed beside large numbers, rounding forgiven.

    What comes out is judged on the numbers that are returned, as all of them are.
    """
    from gdpnet.solve.exact import NUMERICAL, SOLVED

    failed = np.flatnonzero((solved.status == NUMERICAL) & (np.abs(yhat).max(1) > _LARGE))
    if not len(failed):
        return
    assert results.instance is not None
    again = engine.project(
        results.instance.take(failed), yhat[failed], options._replace(lost=LOST, tie="first")
    )
    found = again.status == SOLVED
    own = failed[found]
    solved.z[own], results.value[own] = again.z[found], again.distance[found]
    results.y[own] = again.z[found, : yhat.shape[1]]
    results.assignment[own] = again.assignment[found]
    results.status[own] = Status.PROJECTED
    unfinished = np.zeros(len(yhat), dtype=bool)
    unfinished[own] = True
    results.unfinished = unfinished
