"""Independent answers: Pyomo's transformations and plain linear programs, no solver of gdpnet."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction
from pyomo.opt import TerminationCondition
from pyomo.repn import generate_standard_repn
from scipy.optimize import linprog

from gdpnet.testing._problem import Problem, Sample

INF = float("inf")

# The smallest values that HiGHS accepts.
TIGHT = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "mip_feasibility_tolerance": 1e-10,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.0,
    "threads": 1,
}

# ---- Pyomo ----------------------------------------------------------------------------------


def outputs_of(model: Any, names: Sequence[str]) -> list[Any]:
    """Vars of a model by name, indexed ones written out."""
    found: list[Any] = []
    for name in names:
        component = model.find_component(name)
        found += list(component.values()) if component.is_indexed() else [component]
    return found


def prepared(model: Any, params: dict[str, float], inactive: Iterable[str], reach: float) -> Any:
    """A clone with Params set, rules switched off, and every Var bounded, ready for big-M."""
    clone = model.clone()
    for name, value in params.items():
        clone.find_component(name).set_value(value)
    for name in inactive:
        switch_off(clone.find_component(name))
    for suffix in list(clone.component_data_objects(pyo.Suffix)):
        suffix.deactivate()
    if params:
        for row in clone.component_data_objects(
            pyo.Constraint, active=True, descend_into=(pyo.Block, Disjunct)
        ):
            write_numbers(row)
    for objective in clone.component_data_objects(pyo.Objective, active=True):
        objective.deactivate()
    for var in clone.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
        if var.lb is None:
            var.setlb(-reach)
        if var.ub is None:
            var.setub(reach)
    return clone


def write_numbers(constraint: Any) -> None:
    """Put numbers for Params: Pyomo's big-M cannot bound an `Expr_if`."""
    form = generate_standard_repn(constraint.body, compute_values=True)
    if form.linear_vars:
        terms = zip(form.linear_coefs, form.linear_vars, strict=True)
        body = sum(float(a) * v for a, v in terms) + form.constant
        constraint.set_value((constraint.lb, body, constraint.ub))


def switch_off(component: Any) -> None:
    """Deactivate a rule, with its disjuncts."""
    if component.ctype is Disjunction:
        for data in component.values() if component.is_indexed() else [component]:
            for disjunct in data.disjuncts:
                disjunct.deactivate()
    component.deactivate()


def distance(problem: Problem, sample: Sample, model: Any = None, **options: Any) -> float:
    """`pyomo_distance` of a sample of the bank.

    Args:
        problem: the problem.
        sample: one of its samples.
        model: what `problem.build` made; built anew if None.
        options: of `pyomo_distance`; `yhat` in place of the sample's.
    """
    params = problem.params(sample)
    return pyomo_distance(
        problem.build() if model is None else model,
        problem.outputs,
        options.pop("yhat", sample.yhat),
        params=params,
        inactive=problem.off(params),
        reach=problem.reach,
        **options,
    )


def pyomo_distance(
    model: Any,
    outputs: Sequence[str],
    yhat: Sequence[float],
    *,
    params: dict[str, float] | None = None,
    inactive: Iterable[str] = (),
    weights: Sequence[float] | None = None,
    chosen: Iterable[str] = (),
    reach: float = 1000.0,
) -> float:
    """Least weighted l1 distance by Pyomo's gdp.bigm and HiGHS; inf where nothing is feasible.

    Args:
        model: the rules; not changed.
        outputs: names of the outputs.
        yhat: prediction.
        params: value of each input, by name.
        inactive: names of what does not apply.
        weights: of the outputs.
        chosen: names of Disjuncts that must hold.
        reach: bound put on Vars that have none; the answer must lie well inside.

    Not for rows nested two deep that hold anyway: Pyomo 6.10.1 gives them an M of the wrong sign,
    counts it once a level, and can so cut off points that logic over the indicators allows.
    """
    clone = prepared(model, params or {}, inactive, reach)
    for name in chosen:
        clone.find_component(name).indicator_var.fix(True)
    variables = outputs_of(clone, outputs)
    weight = [1.0] * len(variables) if weights is None else list(weights)
    block = clone.distance_oracle = pyo.Block()
    block.eta = pyo.Var(range(len(variables)), bounds=(0, 4 * reach))
    block.rows = pyo.ConstraintList()
    for k, (var, value) in enumerate(zip(variables, yhat, strict=True)):
        block.rows.add(block.eta[k] >= var - value)
        block.rows.add(block.eta[k] >= value - var)
    block.objective = pyo.Objective(expr=sum(w * block.eta[k] for k, w in enumerate(weight)))
    pyo.TransformationFactory("gdp.bigm").apply_to(clone)
    if not solved(clone):
        return INF
    # Again with the whole numbers fixed: no big-M times integrality tolerance is left.
    for var in clone.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
        if not var.is_continuous() and not var.fixed and var.value is not None:
            var.fix(round(var.value))
    assert solved(clone)
    return float(pyo.value(block.objective))


def solved(model: Any) -> bool:
    """Solve with HiGHS; whether it is feasible."""
    solver = pyo.SolverFactory("appsi_highs")
    solver.config.load_solution = False
    solver.config.stream_solver = False
    solver.highs_options = dict(TIGHT)
    result = solver.solve(model, load_solutions=False)
    condition = result.solver.termination_condition
    if condition == TerminationCondition.optimal:
        solver.load_vars()
        return True
    assert condition in (
        TerminationCondition.infeasible,
        TerminationCondition.infeasibleOrUnbounded,
    ), condition
    return False


# ---- Pyomo, evaluated at a point ------------------------------------------------------------


def residual(constraint: Any) -> float:
    """Scaled violation of a ConstraintData at the values its Vars have."""
    form = generate_standard_repn(constraint.body, compute_values=True)
    assert form.is_linear()
    largest = max((abs(c) for c in form.linear_coefs), default=0.0)
    body = pyo.value(constraint.body)
    worst = 0.0
    for bound, sign in ((constraint.ub, 1.0), (constraint.lb, -1.0)):
        if bound is not None:
            scale = max(1.0, largest, abs(bound - form.constant))
            worst = max(worst, sign * (body - bound) / scale)
    return worst


def residual_of_block(block: Any) -> float:
    """Worst residual of a Disjunct or Block, nested Disjunctions included."""
    rows = [
        residual(c)
        for c in block.component_data_objects(pyo.Constraint, active=True, descend_into=pyo.Block)
    ]
    rules = [
        residual_of_rule(d)
        for d in block.component_data_objects(Disjunction, active=True, descend_into=pyo.Block)
    ]
    return max([0.0, *rows, *rules])


def residual_of_rule(disjunction: Any) -> float:
    """Residual of the nearest disjunct."""
    possible = [
        d
        for d in disjunction.disjuncts
        if d.active and not (d.indicator_var.fixed and not d.indicator_var.value)
    ]
    return min(map(residual_of_block, possible))


def is_off(component: Any, off: list[str]) -> bool:
    """Whether a component, its container or a block around it is switched off."""
    block = component
    while block is not None:
        if block.name in off or block.parent_component().name in off:
            return True
        block = block.parent_block()
    return False


# ---- brute force ----------------------------------------------------------------------------

Row = dict[str, Any]


def enumerate_distance(case: dict[str, Any], yhat: Sequence[float]) -> float:
    """Least l1 distance of a reference case: a linear program for every choice of disjuncts."""
    best = INF
    for choice in itertools.product(*case["rules"]):
        rows = [*case["globals"], *(row for disjunct in choice for row in disjunct)]
        best = min(best, polyhedron_distance(rows, case["lb"], case["ub"], yhat))
    return best


def polyhedron_distance(
    rows: Sequence[Row],
    lower: Sequence[float | None],
    upper: Sequence[float | None],
    yhat: Sequence[float],
) -> float:
    """l1 distance to `rows` within bounds, in variables (y, above, below)."""
    d = len(yhat)
    one, zero = np.eye(d), np.zeros(d)
    sides: dict[str, list[tuple[np.ndarray, float]]] = {"<=": [], "==": []}
    for row in rows:
        a, b = np.asarray(row["a"], dtype=float), float(row["b"])
        kind, sign = ("==", 1.0) if row["s"] == "==" else ("<=", -1.0 if row["s"] == ">=" else 1.0)
        sides[kind].append((np.concatenate([sign * a, zero, zero]), sign * b))
    # y - above + below == yhat
    equal = [np.concatenate([one[j], -one[j], one[j]]) for j in range(d)]
    equal_to = [float(value) for value in yhat]
    found = linprog(
        np.concatenate([zero, np.ones(2 * d)]),
        A_ub=np.array([a for a, _ in sides["<="]]) if sides["<="] else None,
        b_ub=np.array([b for _, b in sides["<="]]) if sides["<="] else None,
        A_eq=np.array([*equal, *(a for a, _ in sides["=="])]),
        b_eq=np.array([*equal_to, *(b for _, b in sides["=="])]),
        bounds=[*zip(lower, upper, strict=True), *[(0, None)] * (2 * d)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status in (0, 2), found.message
    return float(found.fun) if found.status == 0 else INF


def set_values(variables: Sequence[Any], values: Sequence[float]) -> None:
    """Give Vars values that may break their bounds or domain."""
    for var, value in zip(variables, values, strict=True):
        var.set_value(float(value), skip_validation=True)
