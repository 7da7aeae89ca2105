"""The whole chain: basic steps, lift, hull, and the program that is left."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.componentuid import ComponentUID
from pyomo.core.base.param import ParamData
from pyomo.gdp import Disjunct
from pyomo.gdp.disjunct import DisjunctionData

from gdpnet.checks import check_choice
from gdpnet.errors import ConflictError, InputError, RuleError
from gdpnet.ir.rules import Rules
from gdpnet.relaxation.plan import Plan
from gdpnet.relaxation.pyomo import components, walk
from gdpnet.relaxation.pyomo.activation import (
    as_rules,
    conditional_constraints,
    switch_off_inactive,
)
from gdpnet.relaxation.pyomo.lift import NORMS
from gdpnet.relaxation.pyomo.propositions import Propositions
from gdpnet.relaxation.pyomo.rebuild import pyomo_model
from gdpnet.relaxation.pyomo.symbolic import SymbolicReader, linear_expression
from gdpnet.rules.expressions import Nonlinear

logger = logging.getLogger("gdpnet")


def convexify(
    model: Any,
    outputs: Sequence[Any],
    *,
    inputs: Sequence[Any] = (),
    clusters: str | Plan | Sequence[Sequence[Any]] = "cnf",
    x: Sequence[float] | None = None,
    yhat: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
    prune: bool = True,
    input_bounds: Any = None,
    logic: str = "rows",
    norm: str = "l1",
) -> Any:
    """The convex program of a convexified projection, as a Pyomo model.

    Works on a clone: what does not apply at x is switched off, the clusters are merged by
    `gdpnet.basic_steps`, the distance is lifted by `gdpnet.lift_projection`, every Disjunction
    becomes its `gdpnet.hull`, and whole numbers are relaxed. With linear rows and `norm="l1"` that
    is a linear program, and any solver that returns a vertex solves it; otherwise a conic one, in
    which `gdpnet_distance` is the squared distance if `norm="l2"`. `gdpnet_yhat` and the Params of the model may be set anew and the LP solved again,
    with one limit: which rules apply, and which products were empty and left out, was decided at
    the x given here (with `prune=False` only the former; with `input_bounds` for all x in them).

    Args:
        model: a ConcreteModel with Disjunctions; not changed.
        outputs: Vars, or IndexedVars, in order.
        inputs: mutable Params, in the order of x.
        clusters: `"cnf"`, every rule by itself; `"dnf"`, all rules that hang together merged, one
            Disjunction for each part that shares no variable with the rest; a `Plan`; or lists of
            Disjunctions or names to merge, every other rule by itself. Rules that do not apply at x
            are left out of their cluster.
        x: values of the inputs; default: those the Params have.
        yhat: first value of the prediction; default: 0.
        weights: positive weight of each output; default: 1.
        prune: whether products that are empty at x are left out.
        input_bounds: ranges of inputs, by Param or name: then only products that are empty for
            every value within them are left out, and the LP serves for all of these.
        logic: `"rows"` or `"drop"`, what becomes of logic that ties several clusters.
        norm: of the distance, `"l1"` or `"l2"`.

    Returns:
        The program, with `gdpnet_yhat` (the prediction), `gdpnet_y` (the outputs), `gdpnet_distance`
        (the objective), and the Params of the model under their own names.

    Example:
        >>> import pyomo.environ as pyo
        >>> from pyomo.gdp import Disjunction
        >>> from gdpnet.relaxation.pyomo.chain import convexify
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.first = Disjunction(expr=[[m.y <= 3], [m.y >= 6]])
        >>> m.second = Disjunction(expr=[[m.y <= 4], [m.y >= 7]])
        >>> lp = convexify(m, [m.y], clusters="dnf", yhat=[4.5])
        >>> highs = pyo.SolverFactory("appsi_highs")
        >>> _ = highs.solve(lp)
        >>> round(lp.gdpnet_y[0].value, 6), round(pyo.value(lp.gdpnet_distance), 6)
        (3.0, 1.5)
        >>> lp.gdpnet_yhat[0] = 6.0
        >>> _ = highs.solve(lp)
        >>> round(lp.gdpnet_y[0].value, 6)
        7.0
    """
    if model.model() is not model:
        raise RuleError(
            f"model: '{model.name}' is a Block of '{model.model().name}'. Pass the model itself, "
            "with what is not meant deactivated."
        )
    check_choice("norm", norm, NORMS)
    clone = model.clone()
    params = _set_inputs(_expand(inputs, clone, "inputs"), x)
    variables = _expand(outputs, clone, "outputs")
    for variable in variables:
        if variable.ctype is pyo.Var and variable.fixed:
            variable.unfix()
            variable.setlb(variable.value)
            variable.setub(variable.value)
    known = {rule.name: rule for rule in walk.top_level(clone)}
    known |= dict.fromkeys(conditional_constraints(clone))
    off = {id(rule) for rule in switch_off_inactive(clone, params)}
    known |= as_rules(clone)
    active = [r for r in known.values() if r is not None and r.active and id(r) not in off]
    merged = _choose(clusters, clone, known, active)
    ranges = None
    if input_bounds is not None:
        ranges = {k if isinstance(k, str) else k.name: v for k, v in input_bounds.items()}
    if merged:
        pyo.TransformationFactory("gdpnet.basic_steps").apply_to(
            clone, clusters=merged, prune=prune, input_bounds=ranges, logic=logic, links=False
        )
    _drop_free_logic(clone)
    pyo.TransformationFactory("gdpnet.lift_projection").apply_to(
        clone, outputs=variables, weights=weights, yhat=yhat, norm=norm
    )
    _rewrite(clone)
    pyo.TransformationFactory("gdpnet.hull").apply_to(clone, input_bounds=ranges)
    _relax(clone)
    return clone


def convexify_rules(
    rules: Rules,
    *,
    relaxation: str | Plan | Sequence[Sequence[str]] = "cnf",
    x: Sequence[float] | None = None,
    yhat: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
    prune: bool = True,
    logic: str = "rows",
    norm: str = "l1",
) -> Any:
    """The Pyomo program of a convexified projection, from rules instead of a Pyomo model.

    Rules that were loaded from a file serve as well: the model is built anew from what was read.

    Args:
        rules: the rules.
        relaxation: `"cnf"`, `"dnf"`, `"pdnf:K"`, `"plan:BUDGET"`, a `Plan`, or lists of names of
            rules to merge.
        x: values of the inputs, `p`.
        yhat: first value of the prediction; default: 0.
        weights: positive weight of each output; default: 1.
        prune: whether products that are empty at x are left out.
        logic: `"rows"` or `"drop"`, what becomes of logic that ties several clusters.
        norm: of the distance, `"l1"` or `"l2"`.

    Returns:
        The program; see `convexify`.

    Example:
        >>> import pyomo.environ as pyo
        >>> import gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> lp = gdpnet.convexify(gdpnet.RuleModel(m, outputs=[m.y]), yhat=[4.5])
        >>> _ = pyo.SolverFactory("appsi_highs").solve(lp)
        >>> round(lp.y.value, 6)
        3.0
    """
    if rules.input_names and x is None:
        raise InputError(
            f"x: expected {len(rules.input_names)} numbers, one for each input, got none."
        )
    if isinstance(relaxation, str | Plan):
        relaxation = Plan.of(relaxation, rules) or "dnf"
    model = pyomo_model(rules)
    return convexify(
        model,
        [model.find_component(name) for name in rules.output_names],
        inputs=[model.find_component(name) for name in rules.input_names],
        clusters=relaxation,
        x=x,
        yhat=yhat,
        weights=weights,
        prune=prune,
        logic=logic,
        norm=norm,
    )


def _expand(given: Any, clone: Any, what: str) -> list[Any]:
    """The clone's data of components of the original, in order."""
    listed = [given] if hasattr(given, "ctype") else list(given)
    kind = pyo.Var if what == "outputs" else pyo.Param
    found = []
    for item in listed:
        if getattr(item, "ctype", None) is not kind:
            raise RuleError(f"{what}: expected a {kind.__name__}, got {item!r}.")
        for data in item.values() if item.is_indexed() else [item]:
            twin = ComponentUID(data).find_component_on(clone)
            if twin is None:
                raise RuleError(f"{what}: '{data.name}' does not belong to '{clone.name}'.")
            found.append(twin)
    return found


def _set_inputs(params: list[Any], x: Any) -> list[Any]:
    for param in params:
        if not (isinstance(param, ParamData) and param.parent_component().mutable):
            raise RuleError(f"inputs: '{param}' is no mutable Param.")
    if x is None:
        return params
    values = [float(value) for value in x]
    if len(values) != len(params) or not all(map(math.isfinite, values)):
        raise InputError(f"x: expected {len(params)} finite numbers, one an input, got {x!r}.")
    for param, value in zip(params, values, strict=True):
        param.set_value(value)
    return params


def _choose(
    given: Any, clone: Any, known: dict[str, Any], active: list[Any]
) -> list[list[DisjunctionData]]:
    """Clusters of active rules; every active rule is in one of them."""
    if given == "cnf":
        return [[rule] for rule in active]
    if given == "dnf":
        groups = components.joined(active, walk.constraints(clone))
        for tied in Propositions(clone).ties(active):
            groups.join([id(rule) for rule in tied])
        parts: dict[Any, list[DisjunctionData]] = {}
        for rule in active:
            parts.setdefault(groups.find(id(rule)), []).append(rule)
        return list(parts.values())
    if isinstance(given, str):
        raise RuleError(f"clusters: expected 'cnf', 'dnf', a Plan or lists, got {given!r}.")
    listed = given.clusters if isinstance(given, Plan) else given
    applies = {id(rule) for rule in active}
    clusters: list[list[DisjunctionData]] = []
    taken: set[int] = set()
    for items in listed:
        items = list(items)
        if not items:
            raise RuleError("clusters: a cluster is empty. Leave it out.")
        found = [rule for item in items for rule in _rules_of(item, known, clone)]
        cluster = [rule for rule in found if rule is not None]
        for rule in cluster:
            if id(rule) in taken:
                raise RuleError(
                    f"clusters: Disjunction '{rule.name}' stands in two clusters, or twice in one."
                )
            taken.add(id(rule))
        clusters.append([rule for rule in cluster if id(rule) in applies])
    alone = [[rule] for rule in active if id(rule) not in taken]
    return [cluster for cluster in clusters if cluster] + alone


def _rules_of(item: Any, known: dict[str, Any], clone: Any) -> list[Any]:
    """Rules that an item stands for; None for a conditional constraint that does not apply."""
    name = item if isinstance(item, str) else getattr(item, "name", repr(item))
    if name in known:
        return [known[name]]
    component = clone.find_component(name) if isinstance(name, str) else None
    members = [r for r in known.values() if r is not None and r.parent_component() is component]
    if not members:
        what = "is no active Disjunction" if component is not None else "does not exist"
        raise RuleError(f"clusters: '{name}' {what}. Rules: {', '.join(known) or 'none'}.")
    return members


def _drop_free_logic(clone: Any) -> None:
    """Logic that speaks about no rule any more only has to be possible."""
    logic = Propositions(clone)
    if not logic.consistent({}):
        raise ConflictError("The LogicalConstraints of the model contradict each other.")
    for constraint in logic.free():
        constraint.deactivate()
    # Pyomo's hull writes the inactive members of an indexed LogicalConstraint as rows too.
    for constraint in clone.component_objects(
        pyo.LogicalConstraint, descend_into=(pyo.Block, Disjunct)
    ):
        for index in [i for i, member in constraint.items() if not member.active]:
            del constraint[index]


def _rewrite(clone: Any) -> None:
    """Write the rows outside of disjuncts as plain sums, as the hull does with those inside.

    Solver interfaces refuse an Expr_if of Params that is written as part of a sum.
    """
    reader = SymbolicReader()
    for constraint in walk.constraints(clone):
        try:
            lower, body, upper = reader.sides(constraint)
        except Nonlinear:
            continue
        terms = [(reader.written(a), reader.variables[column]) for column, a in body]
        if not terms:
            continue
        total = linear_expression(terms)
        sides = [
            None if side is None else reader.written((side - body).constant)
            for side in (lower, upper)
        ]
        if constraint.equality:
            constraint.set_value(total == sides[0])
        else:
            constraint.set_value((sides[0], total, sides[1]))


def _relax(clone: Any) -> None:
    whole = []
    for variable in clone.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
        if variable.is_continuous():
            continue
        block = variable.parent_block()
        if not isinstance(block, Disjunct._ComponentDataClass) and not block.local_name.startswith(
            "_gdpnet"
        ):
            whole.append(variable.name)
        lower, upper = variable.lb, variable.ub
        variable.domain = pyo.Reals
        variable.setlb(lower)
        variable.setub(upper)
    if whole:
        logger.warning(
            "Whole numbers are relaxed, so the LP does not enforce them: %s.", ", ".join(whole)
        )
