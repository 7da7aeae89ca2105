"""gdpnet.project: the nearest outputs that satisfy the rules."""

from __future__ import annotations

from operator import is_
from typing import Any

from gdpnet.convexify.plan import Plan
from gdpnet.rules.model import RuleModel
from gdpnet.solve._projector import Projector
from gdpnet.solve._results import NODE_LIMIT
from gdpnet.solve.projection import Projection


def project(
    rules: RuleModel,
    yhat: Any,
    x: Any = None,
    *,
    relaxation: str | Plan = "dnf",
    solver: str = "auto",
    gradient: Any = None,
    forward: str = "exact",
    weights: Any = None,
    tie: str = "first",
    strict: bool = False,
    node_limit: int = NODE_LIMIT,
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
        relaxation: `"dnf"`: exact; `"cnf"`: every rule convexified by itself; a `Plan`: a partial
            DNF, the rules of a cluster merged by basic steps. For the last two `value` is a
            lower bound on the exact distance, and y may break rules: status RELAXED, and
            `disjunct` is -1 for the rules that are broken. `"adaptive"`: CNF first, then basic
            steps on broken rules, round by round, until all rules hold: the exact answer, or
            RELAXED where too many products would have to be written down (`info.rounds` counts).
        solver: `"exact"`: the exact engine; `"milp"`: a mixed-integer program by HiGHS for each
            sample, slow and certain; `"milp:gurobi"`: by Gurobi. For relaxations written out as a
            linear program: `"extended"`: the engine's own simplex, or where the program is large
            HiGHS on a compact form of it; `"highs"`: HiGHS on the program that the Pyomo chain
            writes, kept, with coefficients changed in place, `"gurobi"` likewise. Those two start
            from the last basis, so where several points are equally near, which one they give may
            depend on the samples before. `"auto"`: the exact engine for the DNF (MILP without
            numba), `"extended"` for the others (HiGHS without numba).
        gradient: how gradients pass to yhat, and through the rules' coefficients to x: `"qp"`,
            `"vertex"`, `"straight_through"`, `"auto"`, or an object of `gdpnet.sensitivity`. None:
            y carries no gradient. Which rules apply is a step in x and contributes nothing.
        forward: `"exact"`: y is the nearest point. `"qp"`: y is the point of the regularised
            program whose gradient `gradient=QP(eps)` is; it may break rules (RELAXED). For study.
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        tie: which point where several are equally near in l1. `"first"`: a vertex of the nearest
            set, always the same one, chosen by the order of outputs and rules. `"least_norm"`: of
            all nearest points of all combinations of disjuncts the one with the least
            `sum (w (y - yhat))^2`, whatever the order of rules. On a probability simplex nearly
            every nearest point is one of many, and the vertex takes from few coordinates what the
            least norm takes evenly from all. Exact engine only; `info.least_norm` tells where it is
            proved.
        strict: inequalities of the chosen disjuncts, global ones and bounds hold with tolerance 0
            on the y returned, after its rounding to the caller's type, and equalities within a few
            units in the last place. Rows that rounding breaks are tightened by what they were
            broken and half a unit in the last place, so the distance grows by rounding errors
            only, unless the nearest set is so thin that no number of that type lies in it and
            another set is taken. `info.strict` tells for which samples it could be had. Exact
            engine only.
        node_limit: nodes of the exact engine's search for a sample; what is not finished by then
            goes to MILP (`info.solver` tells).
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
        "relaxation": relaxation,
        "solver": solver,
        "gradient": gradient,
        "forward": forward,
        "weights": weights,
        "tie": tie,
        "strict": strict,
        "node_limit": node_limit,
        "time_limit": time_limit,
        "threads": threads,
        "on_conflict": on_conflict,
        "on_invalid": on_invalid,
    }
    if isinstance(rules, RuleModel) and all(map(is_, keywords.values(), _USUAL)):
        # Checking keywords would cost more than projecting.
        projection: Projection = rules.kept("usual projector", Projector)(yhat, x)
        return projection
    return Projector(rules, **keywords)(yhat, x)


_USUAL = tuple((project.__kwdefaults__ or {}).values())
