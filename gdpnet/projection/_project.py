"""gdpnet.project: the nearest outputs that satisfy the rules."""

from __future__ import annotations

from operator import is_
from typing import Any

from gdpnet.ir.rules import Rules
from gdpnet.projection.projection import Projection
from gdpnet.projection.projector import Projector
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.base import Backend


def project(
    rules: Rules,
    yhat: Any,
    x: Any = None,
    *,
    norm: str = "l1",
    weights: Any = None,
    relaxation: str | Plan = "dnf",
    solver: str | Backend = "auto",
    gradient: Any = None,
    forward: str = "exact",
    strict: bool = False,
    time_limit: float | None = None,
    threads: int | None = None,
    on_conflict: str = "pass",
    on_invalid: str = "raise",
) -> Projection:
    """The nearest outputs, in weighted l1 distance, that satisfy the rules.

    Args:
        rules: the rules.
        yhat: predictions, `... x d`. One that satisfies everything within the rounding of its type
            (1e-9 in float64, 1e-6 in float32, 2e-3 in float16, 2e-2 in bfloat16, relative to
            max(|b|, max|a|) of a row) passes unchanged. y is rounded to the type of yhat and holds
            within the same tolerance then, relative to max(1, |b|, max|a|); where no number of
            that type does, the status is ERROR and `info.rounding` tells by how much.
        x: inputs, `... x p`; a single one of shape `p` is used for all samples.
        norm: `"l1"`.
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        relaxation: `"dnf"`: exact; `"cnf"`: every rule convexified by itself; a `Plan`, `"pdnf:K"`
            or `"plan:BUDGET"` (see `Plan.parse`): a partial DNF, the rules of a cluster merged by
            basic steps. For these `value` is a lower bound on the exact distance, and y may break
            rules: status RELAXED, and `disjunct` is -1 for the rules that are broken.
            `"adaptive"`: CNF first, then basic steps on broken rules, round by round, until all
            rules hold: the exact answer, or RELAXED where too many products would have to be
            written down (`info.rounds` counts).
        solver: a backend of `gdpnet.solve`, which has options of its own, or its name: `"exact"`,
            `"milp"` and `"milp:gurobi"` for the DNF; `"extended"`, `"highs"` and `"gurobi"` for
            relaxations and the DNF, written out as linear programs. `"auto"`: `Exact()` for the
            DNF (`MILP()` without numba), `Extended()` for the others (HiGHS without numba).
        gradient: how gradients pass to yhat, and through the rules' coefficients to x: `"qp"`,
            `"vertex"`, `"straight_through"`, `"auto"`, or an object of `gdpnet.derivative`. None:
            y carries no gradient. Which rules apply is a step in x and contributes nothing.
        forward: `"exact"`: y is the nearest point. `"qp"`: y is the point of the regularised
            program whose gradient `gradient=QP(eps)` is; it may break rules (RELAXED). For study.
        strict: inequalities of the chosen disjuncts, global ones and bounds hold with tolerance 0
            on the y returned, after its rounding to the caller's type, and equalities within a few
            units in the last place. Rows that rounding breaks are tightened by what they were
            broken and half a unit in the last place, so the distance grows by rounding errors
            only, unless the nearest set is so thin that no number of that type lies in it and
            another set is taken. `info.strict` tells for which samples it could be had. Exact
            engine only.
        time_limit: seconds for each sample, all solvers together (half of it for the engine's
            search before MILP takes over); then the best found is returned with status LIMIT, or
            the prediction with UNSOLVED where nothing was found.
        threads: samples solved at a time; where not given chosen by the size of the batch, within
            the affinity mask of the process and `torch.get_num_threads()`. The answers do not
            depend on it.
        on_conflict: for samples whose rules contradict each other: `"pass"` returns the prediction
            unchanged, `"raise"` raises, `"nearest"` keeps bounds and global constraints and breaks
            the rules as little as possible (least sum of scaled violations, then least distance).
            Where bounds, globals and logic contradict each other by themselves, no rule is to
            blame: the prediction passes, `info.unmendable` tells where, a `ConflictWarning` why.
        on_invalid: for samples with NaN or infinity: `"raise"`, or `"mark"` (status ERROR, y is
            NaN, the others are untouched).

    Example:
        >>> import pyomo.environ as pyo, gdpnet, torch
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> p = gdpnet.project(rules, torch.tensor([[4.5], [8.0]]))
        >>> p.y.tolist(), p.distance.tolist()
        ([[3.0], [8.0]], [1.5, 0.0])
        >>> [gdpnet.Status(s).name for s in p.status.tolist()]
        ['PROJECTED', 'SATISFIED']
    """
    keywords = {
        "norm": norm,
        "weights": weights,
        "relaxation": relaxation,
        "solver": solver,
        "gradient": gradient,
        "forward": forward,
        "strict": strict,
        "time_limit": time_limit,
        "threads": threads,
        "on_conflict": on_conflict,
        "on_invalid": on_invalid,
    }
    if isinstance(rules, Rules) and all(map(is_, keywords.values(), _USUAL)):
        # Checking keywords would cost more than projecting.
        return rules.cached(Projector)(yhat, x)
    return Projector(rules, **keywords)(yhat, x)


_USUAL = tuple((project.__kwdefaults__ or {}).values())
