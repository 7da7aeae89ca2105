"""`gdpnet.hull`: Pyomo's hull reformulation of convex disjuncts, with Params kept symbolic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pyomo.environ as pyo
from pyomo.common.collections import ComponentMap, ComponentSet
from pyomo.common.config import ConfigValue
from pyomo.core.expr import inequality
from pyomo.gdp import Disjunction
from pyomo.gdp.disjunct import DisjunctData
from pyomo.gdp.plugins.hull import Hull_Reformulation

from gdpnet.errors import RuleError
from gdpnet.ir.linear import LinearForm
from gdpnet.relaxation.pyomo import walk
from gdpnet.relaxation.pyomo.curves import CurvedReader, Place, columns_of
from gdpnet.relaxation.pyomo.ranges import param_ranges
from gdpnet.relaxation.pyomo.symbolic import SymbolicReader, linear_expression
from gdpnet.rules.convexity import RowDraft

_Sides = tuple[LinearForm | None, LinearForm, LinearForm | None]


class Hull(Hull_Reformulation):
    """Hull reformulation of convex disjuncts that keeps mutable Params symbolic.

    Pyomo's own `gdp.hull` evaluates a Param in a constraint's body when it transforms. Here the
    Params stay, in coefficients, bodies, right sides and bounds of Vars, so that the same
    transformed model serves for any value they are set to. Fixed Vars stay symbolic too, and are
    not disaggregated unless `assume_fixed_vars_permanent` is set to False.

    Otherwise it is `gdp.hull`: `get_disaggregated_var`, `get_transformed_constraints` and the like
    are inherited. Vars without bounds are refused, but for the `gdpnet_eta` of a lift.

    Rows that are convex and not linear become cones, exactly: of `sum(t**2) <= s` in a disjunct
    with weight w the rows `sum(t**2) <= s * w` and `t = ...`, linear in the copies and w. Those
    that are not proved convex are refused by name.

    Options:
        targets: a Disjunction, a Block, or a list of them; default: the whole model.
        assume_fixed_vars_permanent: whether fixed Vars stay fixed (default True); False
            disaggregates them, so that they may be unfixed later.
        input_bounds: ranges of Params, by name, for which rows have to be convex; default: any
            value.

    The other options of `gdp.hull` speak of other ways to write nonlinear rows, and change nothing.

    Example:
        >>> import pyomo.environ as pyo
        >>> from pyomo.gdp import Disjunction
        >>> import gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.p = pyo.Param(mutable=True, initialize=3.0)
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = Disjunction(expr=[[m.y - m.p <= 0], [m.y == 2 * m.p + 1]])
        >>> hull = pyo.TransformationFactory("gdpnet.hull")
        >>> hull.apply_to(m)
        >>> row = hull.get_transformed_constraints(m.gap.disjuncts[0].constraint[1])[0]
        >>> print("Row:", row.expr)  # doctest: +ELLIPSIS
        Row: ...disaggregatedVars.y - p*gap_disjuncts[0].binary_indicator_var  <=  0
    """

    CONFIG = Hull_Reformulation.CONFIG()
    CONFIG.get("assume_fixed_vars_permanent").set_default_value(True)
    CONFIG.get("assume_fixed_vars_permanent").reset()
    CONFIG.declare(
        "input_bounds",
        ConfigValue(default=None, description="ranges of Params for which rows are convex"),
    )

    def _apply_to(self, instance: Any, **kwds: Any) -> None:
        config = self.CONFIG(kwds.get("options", {}))
        config.set_value({k: v for k, v in kwds.items() if k != "options"})
        self._reader = SymbolicReader(config.assume_fixed_vars_permanent)
        self._curved = CurvedReader(self._reader, param_ranges(config.input_bounds, instance))
        self._forms: dict[int, tuple[Any, _Sides | list[RowDraft]]] = {}
        # All that is refused is refused before anything is changed.
        disjunctions = list(walk.tree(_active_targets(config.targets, instance)))
        used = self._read(disjunctions)
        open_ended = [v for v in used if _is_distance(v) and v.upper is None]
        _refuse_unbounded(v for v in used if v not in ComponentSet(open_ended))
        moved = self._move_bounds(disjunctions, used)
        for variable in open_ended:
            variable.setub(1.0)  # any number: Pyomo wants one, and its rows are taken away again
        try:
            super()._apply_to(instance, **kwds)
            self._free_copies(disjunctions, moved)
            self._free_copies(disjunctions, open_ended, lower=0.0)
        finally:
            for variable, (lower, upper) in moved.items():
                variable.setlb(lower)
                variable.setub(upper)
            for variable in open_ended:
                variable.setub(None)
            del self._reader, self._curved, self._forms

    # ---- before --------------------------------------------------------------------------

    def _read(self, disjunctions: list[Any]) -> ComponentMap:
        """Read all rows; the disjunctions that each Var stands in."""
        used = ComponentMap()
        for disjunction in disjunctions:
            for disjunct in disjunction.disjuncts:
                for constraint in walk.constraints(disjunct) if disjunct.active else ():
                    found = self._sides(constraint)
                    columns = columns_of(found) if isinstance(found, list) else found[1].columns
                    for column in columns:
                        variable = self._reader.variables[column]
                        used.setdefault(variable, ComponentSet()).add(disjunction)
        return used

    def _sides(self, constraint: Any) -> _Sides | list[RowDraft]:
        """Both sides and the body of a linear constraint, or the rows of a convex one."""
        known = self._forms.get(id(constraint))
        if known is None:
            curved = self._curved.rows(constraint)
            sides = self._reader.sides(constraint) if curved is None else curved
            known = self._forms[id(constraint)] = (constraint, sides)
        return known[1]

    def _move_bounds(self, disjunctions: list[Any], used: ComponentMap) -> ComponentMap:
        """Turn bounds that depend on Params into rows of the disjuncts.

        The hull writes bounds as numbers. As rows they stay symbolic; the numbers it needs
        meanwhile are taken away again when it is done.

        Returns:
            Vars that were changed, with the bounds they had.
        """
        moved = ComponentMap()
        for variable, where in used.items():
            lower, upper = variable.lower, variable.upper
            symbolic = [side for side in (lower, upper) if not _is_number(side)]
            if not symbolic:
                continue
            for disjunction in where:
                parent = walk.enclosing_disjunct(disjunction)
                below = [d for t in disjunction.disjuncts if t.active for d in walk.nested(t)]
                if parent is not None or below:
                    raise RuleError(
                        f"Var '{variable.name}': its bounds depend on Params and it stands in "
                        f"the nested Disjunction '{disjunction.name}'. Write the bounds as "
                        "Constraints, or flatten the nesting with gdpnet.basic_steps first."
                    )
            moved[variable] = (lower, upper)
            for disjunction in where:
                for disjunct in disjunction.disjuncts:
                    if disjunct.active:
                        self._add_bounds(disjunct, variable, lower, upper)
        for variable, (lower, upper) in moved.items():
            variable.setlb(pyo.value(lower))
            variable.setub(pyo.value(upper))
        return moved

    def _add_bounds(self, disjunct: DisjunctData, variable: Any, lower: Any, upper: Any) -> None:
        rows = disjunct.component("_gdpnet_bounds")
        if rows is None:
            rows = disjunct._gdpnet_bounds = pyo.Constraint(pyo.Any)
        rows[f"{variable.name} lower"] = variable - lower >= 0
        rows[f"{variable.name} upper"] = variable - upper <= 0

    # ---- rows ----------------------------------------------------------------------------

    def _get_well_defined_point(
        self, test_expr: Any, regular_vars: Any, fallback_vars: Any, disj_name: str
    ) -> tuple[ComponentMap, ComponentSet]:
        # Linear rows are defined everywhere. Pyomo's search for a point would evaluate all of
        # them at once, and put numbers in the place of symbolic bounds.
        origin = ComponentMap((variable, 0) for group in (regular_vars, fallback_vars)
                              for variable in group)  # fmt: skip
        return origin, ComponentSet()

    def _transform_constraint(
        self, obj: Any, disjunct: DisjunctData, var_substitute_map: Any, *offsets: Any
    ) -> None:
        # Pyomo writes its rows, with their names and maps, for stand-ins of the same shape;
        # then each row gets the expression it should have.
        weight = disjunct.binary_indicator_var
        pending = []
        for constraint in [obj[index] for index in sorted(obj.keys())]:
            if constraint.active:
                sides = self._sides(constraint)
                pending.append((constraint, constraint.expr, sides))
                curved = isinstance(sides, list)
                constraint.set_value(weight <= 1 if curved else _stand_in(constraint, weight))
        try:
            super()._transform_constraint(obj, disjunct, {id(weight): weight}, {id(weight): 0})
        finally:
            for constraint, expression, _ in pending:
                constraint.set_value(expression)
        for constraint, _, sides in pending:
            rows = super(Hull_Reformulation, self).get_transformed_constraints(constraint)
            if isinstance(sides, list):
                place = Place(
                    *(self._reader, disjunct.transformation_block, weight),
                    *(var_substitute_map, constraint),
                )
                if not sides:  # it holds for all values of the Vars
                    rows[0].deactivate()
                for k, row in enumerate(sides):
                    place.write(row, None if k else rows[0])
            else:
                self._write(rows, sides, weight, var_substitute_map)

    def _write(self, rows: Any, sides: _Sides, weight: Any, copies: dict[int, Any]) -> None:
        lower, body, upper = sides
        reader = self._reader
        terms = [(reader.written(a), copies[id(reader.variables[column])]) for column, a in body]

        def total(side: LinearForm) -> Any:
            bound = body.constant + side.constant.scaled(-1.0)
            return linear_expression(
                terms if bound.is_zero and terms else [*terms, (reader.written(bound), weight)]
            )

        if len(rows) == 1 and lower is not None and upper is not None:  # an equality
            rows[0].set_value(total(lower) == 0)
            return
        waiting = list(rows)
        if lower is not None:
            waiting.pop(0).set_value(total(lower) >= 0)
        if upper is not None:
            waiting.pop(0).set_value(total(upper) <= 0)

    # ---- after ---------------------------------------------------------------------------

    def _free_copies(
        self, disjunctions: list[Any], variables: Iterable[Any], lower: float | None = None
    ) -> None:
        """Take away the numbers that stood in for bounds that are symbolic, or are none."""
        for variable in variables:
            for disjunction in disjunctions:
                for disjunct in disjunction.disjuncts:
                    if disjunct.transformation_block is None:
                        continue
                    copy = self.get_disaggregated_var(variable, disjunct, raise_exception=False)
                    if copy is None:
                        continue
                    for row in self.get_var_bounds_constraint(copy, disjunct).values():
                        row.deactivate()
                    copy.setlb(lower)
                    copy.setub(None)


def _active_targets(targets: Any, instance: Any) -> list[Any]:
    if targets is None:
        return walk.top_level(instance)
    found = []
    for target in targets:
        members = target.values() if target.is_indexed() else [target]
        for member in members:
            if not member.active:
                continue
            if target.ctype is Disjunction:
                found.append(member)
            else:
                found += walk.top_level(member)
    return found


def _is_distance(variable: Any) -> bool:
    """Whether a Var is a distance of `gdpnet.lift_projection`: nothing holds it down in any row."""
    return variable.parent_component() is variable.model().component("gdpnet_eta")


def _refuse_unbounded(variables: Iterable[Any]) -> None:
    missing = []
    for variable in variables:
        lower, upper = variable.lb, variable.ub
        sides = [
            side
            for side, bound in (("lower", lower), ("upper", upper))
            if bound is None or not math.isfinite(bound)
        ]
        if sides:
            missing.append(f"'{variable.name}' ({' and '.join(sides)})")
    # The distance in an output is bounded once the output is.
    missing = [name for name in missing if not name.startswith("'gdpnet_eta")] or missing
    if missing:
        raise RuleError(
            f"The hull needs finite bounds on every Var in a disjunct; missing: "
            f"{', '.join(missing)}. Set them with setlb and setub, or let "
            "TransformationFactory('contrib.fbbt') derive them from the constraints."
        )


def _is_number(bound: Any) -> bool:
    return bound is None or bound.__class__ in (int, float) or bound.is_constant()


def _stand_in(constraint: Any, weight: Any) -> Any:
    """A row in the disjunct's own weight, with the sides that the constraint has."""
    if constraint.equality:
        return weight == 1
    if constraint.upper is None:
        return weight >= 1
    if constraint.lower is None:
        return weight <= 1
    return inequality(1, weight, 2)
