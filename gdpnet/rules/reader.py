"""Reads a Pyomo.GDP model into `RuleData`. The model is never changed."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.block import BlockData
from pyomo.core.base.boolean_var import BooleanVarData
from pyomo.core.base.param import Param, ParamData
from pyomo.core.base.set import RangeSet, Set
from pyomo.core.base.var import VarData
from pyomo.gdp import Disjunct, Disjunction
from pyomo.gdp.disjunct import DisjunctData, DisjunctionData
from pyomo.network import Port

from gdpnet.errors import RuleError
from gdpnet.ir.data import (
    Boolean,
    Clause,
    Column,
    Condition,
    Curve,
    Kind,
    Role,
    Row,
    Rule,
    RuleData,
)
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.ir.logic import ClauseWriter
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.rules.associations import binary_of, identity, known_value, representative
from gdpnet.rules.convexity import ConvexReader, CurveDraft, RowDraft
from gdpnet.rules.expressions import ExpressionReader, Nonlinear
from gdpnet.rules.numbers import Entries, importance_of, price_of

logger = logging.getLogger("gdpnet")

SUFFIX = "active_when"
PRICES, IMPORTANCES = "rule_price", "rule_importance"

CONTINUOUS = "continuous"
"""As `outputs`: all continuous Vars that stand in rules or constraints."""

_TRANSFORMED = re.compile(r"_pyomo_gdp_(\w+?)_reformulation(?:_\d+)?")

# What to do with components of Pyomo's packages beside the core.
_FIRST = {
    "Arc": "Expand it first: pyo.TransformationFactory('network.expand_arcs').apply_to(model).",
    **dict.fromkeys(
        ("ContinuousSet", "DerivativeVar", "Integral"),
        "Discretise it first: pyo.TransformationFactory('dae.finite_difference') or "
        "pyo.TransformationFactory('dae.collocation'), .apply_to(model).",
    ),
}

# What else a block may hold without changing the meaning of the rules.
_PASSIVE = {
    *(pyo.Var, pyo.Param, Set, RangeSet, pyo.Expression, pyo.BooleanVar, pyo.Suffix),
    *(pyo.BuildAction, pyo.BuildCheck, pyo.ExternalFunction, Port, Disjunct),
}


def read(
    model: Any,
    outputs: Sequence[Any] | str,
    inputs: Sequence[Any] = (),
    input_bounds: Mapping[Any, Any] | Sequence[Any] | None = None,
    *,
    prices: Mapping[Any, Any] | None = None,
    importances: Mapping[Any, Any] | None = None,
) -> RuleData:
    """Read a model; arguments as in `RuleModel`."""
    reader = survey(model, outputs, inputs, input_bounds, prices=prices, importances=importances)
    if not reader.obstacles:
        return reader.data()
    (_, first), *others = reader.obstacles
    if not others:
        raise first
    count = len(others)
    more = "1 more obstacle" if count == 1 else f"{count} more obstacles"
    places = list(dict.fromkeys(component for component, _ in others))
    listed = ", ".join(places[:3]) + (", ..." if len(places) > 3 else "")
    raise RuleError(f"{first} {more} ({listed}): gdpnet.check(model) lists all.") from first


def survey(
    model: Any,
    outputs: Sequence[Any] | str,
    inputs: Sequence[Any] = (),
    input_bounds: Mapping[Any, Any] | Sequence[Any] | None = None,
    **given: Any,
) -> Reader:
    """A reader that went through the whole model; arguments as in `RuleModel`.

    Raises:
        RuleError: `model` is no model, or nested too deep. All else is among `obstacles`.
    """
    try:
        return _survey(model, outputs, inputs, input_bounds, given)
    except RecursionError:
        raise RuleError(
            f"model '{model.name}': its Blocks, Disjunctions or formulas are nested too deep for "
            "Python's stack. Write them flatter."
        ) from None


def _survey(
    model: Any, outputs: Any, inputs: Sequence[Any], input_bounds: Any, given: dict[str, Any]
) -> Reader:
    if not isinstance(model, BlockData):
        raise RuleError(
            f"model: expected a Pyomo ConcreteModel or Block, got {type(model).__name__}."
        )
    if not model.is_constructed():
        raise RuleError(
            f"model '{model.name}' is not constructed. Use a ConcreteModel, or "
            "create_instance() of the AbstractModel."
        )
    if isinstance(outputs, str) and outputs == CONTINUOUS:
        met = Reader(model, (), inputs, input_bounds, **given)
        met.read()
        outputs = met.continuous()
    reader = Reader(model, outputs, inputs, input_bounds, **given)
    reader.require_outputs()
    reader.read()
    return reader


class Reader:
    """Reads a model once; what cannot be read is kept among `obstacles`, and reading goes on.

    Args:
        model: a model or Block that is constructed.
        outputs: as in `RuleModel`.
        inputs: as in `RuleModel`.
        input_bounds: as in `RuleModel`.
        prices: as in `RuleModel`.
        importances: as in `RuleModel`.

    Attributes:
        ignored: names of the active Objectives.
    """

    def __init__(
        self,
        model: Any,
        outputs: Sequence[Any],
        inputs: Sequence[Any],
        input_bounds: Any,
        *,
        prices: Any = None,
        importances: Any = None,
    ) -> None:
        self.model = model
        self.ignored: list[str] = []
        self._obstacles: dict[str, tuple[str, RuleError]] = {}  # by message: each is told once
        self._incomplete = False
        self.expressions = ExpressionReader(
            self._column, self._input_column, self._boolean_of, self._fix_boolean
        )
        self.convexity = ConvexReader(
            self.expressions, lambda: self.input_bounds, self._column_range
        )
        self.rows: list[Row] = []
        self.global_rows: list[int] = []
        self.conditions: list[Condition] = []
        self.columns: list[Column] = []
        self._column_of: dict[int, int] = {}
        self._variables: list[VarData] = []  # kept alive: `_column_of` is keyed by id

        self.input_params = self._expand(inputs, "inputs", _as_params)
        for param in self.input_params:
            with self._obstacle(param):
                if param.model() is not model.model():
                    raise RuleError(
                        f"inputs: Param '{param.name}' does not belong to the model "
                        f"'{model.name}'. Use Params of the model that holds the rules."
                    )
        self._input_of = {id(param): j for j, param in enumerate(self.input_params)}
        self.input_bounds: tuple[tuple[float, float], ...] = ()
        with self._obstacle("input_bounds"):
            self.input_bounds = self._read_input_bounds(input_bounds)

        self.booleans: list[_BooleanDraft] = []
        self._boolean_index: dict[int, int] = {}  # by the id of `identity`
        # BooleanVars that fix their binary, their value, and the source of the clauses that say so
        self._fixed: dict[int, tuple[BooleanVarData, bool, int]] = {}
        self._twins: dict[int, int] = {}
        self.clauses: list[Clause] = []
        self.rules: list[Rule] = []
        self._logic: list[tuple[Any, int, tuple[int, ...]]] = []
        self._disjuncts: dict[int, DisjunctionData] = {}

        variables = self._expand(outputs, "outputs", _as_variables)
        for variable in variables:
            with self._obstacle(variable):
                self._new_column(variable, "outputs")
        self.outputs = len(variables)

        self._when: dict[int, tuple[Any, Any]] = {}
        self._used_conditions: set[int] = set()
        price = "a price", (Disjunction, Disjunct, pyo.Constraint)
        self._prices = Entries(model, PRICES, prices, *price)
        importance = "an importance", (Disjunction, pyo.Constraint)
        self._importances = Entries(model, IMPORTANCES, importances, *importance)

    @property
    def obstacles(self) -> list[tuple[str, RuleError]]:
        """Component and error of what cannot be read, in the order in which they were met."""
        return list(self._obstacles.values())

    @contextmanager
    def _obstacle(self, component: Any, structural: bool = False) -> Iterator[None]:
        """What cannot be read inside becomes an obstacle, and reading goes on behind it.

        Args:
            component: where it stands, or its name. Names are slow: this one is asked for when
                it is needed.
            structural: Disjuncts are not known behind it, so what names them is not judged.
        """
        try:
            yield
        except RuleError as error:
            name = getattr(component, "name", component)
            self._obstacles.setdefault(str(error), (str(name), error))
            self._incomplete |= structural

    def require_outputs(self) -> None:
        """Make it an obstacle where there is no output."""
        with self._obstacle("outputs"):
            if not (self.outputs or self._obstacles):
                raise RuleError("outputs: expected at least one Var, got none.")

    def continuous(self) -> list[VarData]:
        """The continuous Vars that were met in rules and constraints, in declaration order."""
        met = {id(v) for v in self._variables if v.is_continuous()}
        found: dict[int, VarData] = {}
        everywhere: Any = {"descend_into": (pyo.Block, Disjunct)}
        for variable in self.model.model().component_data_objects(pyo.Var, **everywhere):
            if id(variable) in met:
                found[id(variable)] = variable
        return list(found.values())

    def read(self) -> None:
        """Go through the model."""
        self._read_suffixes()
        for entries in (self._prices, self._importances):
            with self._obstacle(entries.keyword):
                entries.read()
        with self._obstacle(self.model):
            self._refuse_transformed()
        self._region(self.model, -1, ())
        if self._incomplete:
            return
        self._check_suffixes_used()
        for entries in (self._prices, self._importances):
            for component, error in entries.unused():
                with self._obstacle(component):
                    raise error
        self._check_orphans()
        self._write_logic()
        self._link_binaries()
        self._tie()

    def data(self) -> RuleData:
        """What was read, where nothing stood in the way."""
        return RuleData(
            inputs=tuple(param.name for param in self.input_params),
            input_bounds=self.input_bounds,
            outputs=self.outputs,
            columns=tuple(self.columns),
            rows=tuple(self.rows),
            global_rows=tuple(self.global_rows),
            booleans=tuple(draft.finished() for draft in self.booleans),
            clauses=tuple(self.clauses),
            rules=tuple(self.rules),
            conditions=tuple(self.conditions),
        )

    # ---- variables and inputs ------------------------------------------------------------

    def _expand(
        self, given: Any, what: str, expand: Callable[[Any], list[Any] | None]
    ) -> list[Any]:
        """Components and whole indexed components as one list of data, in the given order."""
        found: list[Any] = []
        seen: set[int] = set()
        kind = {"outputs": "a Var", "inputs": "a mutable Param"}[what]
        for item in self._listed(given, what):
            with self._obstacle(item if hasattr(item, "name") else what):
                data = expand(item)
                if data is None:
                    raise RuleError(
                        f"{what}: expected {kind}, got {_called(item)}.{_hint(item, what)}"
                    )
                for one in data:
                    if id(one) in seen:
                        raise RuleError(f"{what}: '{one.name}' is listed twice. List each once.")
                    seen.add(id(one))
                    found.append(one)
        return found

    def _listed(self, given: Any, what: str) -> list[Any]:
        if hasattr(given, "ctype"):  # a single component instead of a list
            return [given]
        with self._obstacle(what):
            if isinstance(given, str) and what == "outputs":
                raise RuleError(
                    f"outputs: expected a list of Vars, or {CONTINUOUS!r} for all continuous Vars "
                    f"that stand in rules or constraints, got {given!r}."
                )
            if not isinstance(given, Iterable) or isinstance(given, str):
                raise RuleError(f"{what}: expected a list of components, got {given!r}.")
            return list(given)
        return []

    def _column(self, variable: VarData, owner: str) -> int:
        column = self._column_of.get(id(variable))
        return self._new_column(variable, owner) if column is None else column

    def _new_column(self, variable: VarData, owner: str) -> int:
        if variable.model() is not self.model.model():
            raise RuleError(
                f"{owner}: Var '{variable.name}' does not belong to the model "
                f"'{self.model.name}'. Use Vars of the model that holds the rules."
            )
        index = len(self.columns)
        self._column_of[id(variable)] = index
        self._variables.append(variable)
        self.columns.append(Column(variable.name, -math.inf, math.inf))
        with self._obstacle(variable):
            self.columns[index] = self._column_with_bounds(variable)
        return index

    def _column_with_bounds(self, variable: VarData) -> Column:
        name = f"Var '{variable.name}'"
        if not (variable.is_continuous() or variable.is_integer() or variable.is_binary()):
            raise RuleError(
                f"{name}: the domain {variable.domain} is not understood. Use Reals, Integers, "
                "Binary or an interval of them; other sets are Disjunctions of equalities."
            )
        integer = not variable.is_continuous()
        if variable.fixed:  # only an output comes here fixed
            lower = upper = self.expressions.linear(variable, name).constant.number
        else:
            lower = self._bound(variable, variable.lower, -1.0, name)
            upper = self._bound(variable, variable.upper, 1.0, name)
        if lower > upper:
            raise RuleError(f"{name}: its lower bound {lower:g} is above its upper {upper:g}.")
        if integer:
            if not (math.isfinite(lower) and math.isfinite(upper)):
                raise RuleError(
                    f"{name} is integer without finite bounds. Give it bounds: they make the "
                    "search for its value finite."
                )
            off = TOLERANCES.integer
            lower, upper = math.ceil(lower - off), math.floor(upper + off)
            if lower > upper:
                raise RuleError(f"{name}: no whole number lies within its bounds.")
        return Column(variable.name, float(lower), float(upper), integer)

    def _bound(self, variable: VarData, bound: Any, side: float, name: str) -> float:
        """A bound as a number; one that depends on the inputs becomes a global row instead."""
        unbounded = side * math.inf
        if bound is None:
            return unbounded
        form = self.expressions.linear(bound, name)
        if not form.is_constant:
            raise RuleError(f"{name}: its bound depends on another variable.")
        if form.constant.is_number:
            return form.constant.number
        role = Role.UPPER if side > 0 else Role.LOWER
        variable_form = self.expressions.linear(variable, name)
        row = variable_form - form if side > 0 else form - variable_form
        name = f"{role} bound of {variable.name}"
        self.global_rows += self._add_rows([(row, False)], name, role)
        return unbounded

    def _column_range(self, column: int) -> tuple[float, float]:
        return self.columns[column].lower, self.columns[column].upper

    def _input_column(self, param: ParamData) -> int | None:
        return self._input_of.get(id(param))

    def _read_input_bounds(self, given: Any) -> tuple[tuple[float, float], ...]:
        bounds = [(-math.inf, math.inf)] * len(self.input_params)
        if given is None:
            return tuple(bounds)
        if isinstance(given, Mapping) or hasattr(given, "items"):
            known = [param.name for param in self.input_params]
            names = {name: j for j, name in enumerate(known)}
            for key, pair in given.items():
                keys = [key] if isinstance(key, str) else [p.name for p in _as_params(key) or ()]
                for name in keys or [str(key)]:
                    if name not in names:
                        raise RuleError(
                            f"input_bounds: '{name}' is not among the inputs "
                            f"({', '.join(names) or 'there are none'})."
                        )
                    bounds[names[name]] = _interval(pair, name)
        else:
            pairs = list(given)
            if len(pairs) != len(bounds):
                listed = ", ".join(param.name for param in self.input_params) or "there are none"
                raise RuleError(
                    f"input_bounds: expected {len(bounds)} pairs (low, high), one for each input "
                    f"({listed}), got {len(pairs)} entries."
                )
            bounds = [
                _interval(pair, param.name)
                for pair, param in zip(pairs, self.input_params, strict=True)
            ]
        return tuple(bounds)

    # ---- conditions ----------------------------------------------------------------------

    def _read_suffixes(self) -> None:
        """Component and condition of every entry of an `active_when` Suffix."""
        regions = self.model.block_data_objects(active=True, descend_into=(pyo.Block, Disjunct))
        for block in regions:
            suffix = block.component(SUFFIX)
            if suffix is None:
                continue
            with self._obstacle(suffix):
                if suffix.ctype is not pyo.Suffix:
                    raise RuleError(
                        f"'{suffix.name}' is a {suffix.ctype.__name__}; the name '{SUFFIX}' is "
                        "reserved for the Suffix that says when rules apply. Rename it."
                    )
                for component, condition in suffix.items():
                    with self._obstacle(component):
                        self._add_entry(component, condition)

    def _add_entry(self, component: Any, condition: Any) -> None:
        kind = getattr(component, "ctype", None)
        if kind not in (Disjunction, pyo.Constraint, pyo.Block, pyo.LogicalConstraint):
            raise RuleError(
                f"{SUFFIX}: '{component}' is not a Disjunction, Constraint, "
                "LogicalConstraint or Block, so no condition can be put on it."
            )
        if id(component) in self._when:
            raise RuleError(
                f"{SUFFIX}: '{component.name}' has two conditions. Join them with "
                "pyo.land or pyo.lor."
            )
        self._when[id(component)] = (component, condition)

    def _conditions_of(self, data: Any) -> tuple[int, ...]:
        """Conditions put on a component: on the data itself and on its container."""
        found = []
        container = data.parent_component()
        for component in [data] if container is data else [container, data]:
            entry = self._when.get(id(component))
            if entry is None:
                continue
            self._used_conditions.add(id(component))
            with self._obstacle(component):
                found.append(self._add_condition(component.name, entry[1]))
        return tuple(found)

    def _add_condition(self, owner: str, given: Any) -> int:
        if callable(given) and not hasattr(given, "is_expression_type"):
            condition = Condition(owner, function=given)
        else:
            tree = self.expressions.condition(given, f"{SUFFIX} of '{owner}'")
            condition = Condition(owner, tree=tree)
        if condition not in self.conditions:
            self.conditions.append(condition)
        return self.conditions.index(condition)

    def _check_suffixes_used(self) -> None:
        for key, (component, _) in self._when.items():
            active = getattr(component, "active", True)
            if key in self._used_conditions or not active or _is_empty(component):
                continue
            with self._obstacle(component):
                raise RuleError(
                    f"{SUFFIX}: '{component.name}' is no active part of the model "
                    f"'{self.model.name}', so its condition would have no effect."
                )

    # ---- rows ----------------------------------------------------------------------------

    def _add_rows(
        self,
        forms: Sequence[tuple[LinearForm, bool] | RowDraft],
        name: str,
        role: Role = Role.CONSTRAINT,
    ) -> list[int]:
        source, added = len(self.rows), []
        for form, equality, *curved in forms:
            bound = form.constant.scaled(-1.0)
            if bound.is_number and not math.isfinite(bound.number):
                if bound.number == math.inf and not equality:
                    continue  # <= inf says nothing
                raise RuleError(f"Constraint '{name}' can never hold: its bound is not finite.")
            if not all(a.is_finite for a in (bound, *form.columns.values())):
                raise RuleError(f"Constraint '{name}' has a coefficient that is not finite.")
            added.append(len(self.rows))
            row = Row(name, tuple(sorted(form)), bound, equality, role, source)
            self.rows.append(row)
            if curved and curved[0]:
                curves = tuple(self._add_curve(draft, row) for draft in curved[0])
                self.rows[added[-1]] = replace(row, curves=curves)
        return added

    def _add_curve(self, draft: CurveDraft, row: Row) -> Curve:
        """A curve of a row: its arguments become rows."""
        first = len(self.rows)
        for form in draft.arguments:
            if not all(a.is_finite for a in (form.constant, *form.columns.values())):
                raise RuleError(f"Constraint '{row.name}' has a coefficient that is not finite.")
            bound = form.constant.scaled(-1.0)
            terms = tuple(sorted(form))
            self.rows.append(Row(row.name, terms, bound, role=Role.ARGUMENT, source=row.source))
        rows = tuple(range(first, len(self.rows)))
        return Curve(draft.shape, draft.weight, rows, draft.exponent)

    def _read_rows(self, relation: Any, owner: str) -> Sequence[tuple[LinearForm, bool] | RowDraft]:
        try:
            return self.expressions.rows(relation, owner)
        except Nonlinear:
            return self.convexity.rows(relation, owner)

    # ---- blocks --------------------------------------------------------------------------

    def _region(self, block: Any, guard: int, conditions: tuple[int, ...]) -> None:
        """Reads a block: the model, a sub-block, or a disjunct (then `guard` is its boolean)."""
        for component in block.component_objects(descend_into=False):
            if component.is_reference():
                continue  # what it refers to is read where it stands
            kind = component.ctype
            if kind is pyo.Objective:
                if component.active:
                    logger.info("Objective '%s' is ignored: the distance to the prediction is "
                                "what gdpnet minimises.", component.name)  # fmt: skip
                    self.ignored.append(component.name)
                continue
            if kind in _PASSIVE or (hasattr(component, "active") and not component.active):
                continue
            if kind.__name__ == "ContinuousSet" and component.get_discretization_info():
                continue  # a Set of the points that it was given
            read = {
                pyo.Constraint: self._constraint,
                Disjunction: self._disjunction,
                pyo.LogicalConstraint: self._logical_constraint,
                pyo.Block: self._block,
            }.get(kind)
            if read is None:
                with self._obstacle(component):
                    raise _not_understood(component)
                continue
            for data in component.values():
                if data.active:
                    with self._obstacle(data, structural=kind is not pyo.Constraint):
                        read(data, guard, conditions)

    def _block(self, block: Any, guard: int, conditions: tuple[int, ...]) -> None:
        self._region(block, guard, conditions + self._conditions_of(block))

    def _constraint(self, data: Any, guard: int, conditions: tuple[int, ...]) -> None:
        name = data.name
        conditions = conditions + self._conditions_of(data)
        rows = self._add_rows(self._read_rows(data.expr, f"Constraint '{name}'"), name)
        if not conditions:
            self._refuse_numbers(data)
            (self.global_rows if guard < 0 else self.booleans[guard].true_rows).extend(rows)
            return
        # A constraint with a condition is a rule with one disjunct.
        boolean = self._new_boolean(name)
        self.booleans[boolean].true_rows += rows
        clause = Clause(name, (boolean + 1,), guard, conditions, Kind.CONDITIONAL)
        self._add_rule(data, clause, (0,))

    def _refuse_numbers(self, data: Any) -> None:
        """Raise where a Constraint that is no rule has a price or an importance."""
        for entries in (self._prices, self._importances):
            if entries.of(data) is not None:
                raise RuleError(
                    f"{entries.suffix}: Constraint '{data.name}' holds always, or with the "
                    f"Disjunct it stands in: it is no rule, so {entries.what} means nothing. Give "
                    f"it a condition ({SUFFIX}), or write it as a Disjunction with one disjunct."
                )

    def _refuse_transformed(self) -> None:
        """What Pyomo's transformations left has no rules: its disjuncts are rows with big-M."""
        everywhere: Any = {"active": True, "descend_into": (pyo.Block, Disjunct)}
        if next(self.model.component_data_objects(Disjunction, **everywhere), None) is not None:
            return
        for block in self.model.component_objects(pyo.Block, **everywhere):
            found = _TRANSFORMED.fullmatch(block.local_name)
            if found:
                raise RuleError(
                    f"model '{self.model.name}' was transformed by gdp.{found[1]} (it holds the "
                    f"Block '{block.name}') and has no Disjunction left: what were rules are rows "
                    "now. Hand over the model as it was before the transformation."
                )

    def _logical_constraint(self, data: Any, guard: int, conditions: tuple[int, ...]) -> None:
        # Read last: it may name indicators of disjuncts that come later.
        self._logic.append((data, guard, conditions + self._conditions_of(data)))

    # ---- disjunctions --------------------------------------------------------------------

    def _disjunction(self, data: DisjunctionData, guard: int, conditions: tuple[int, ...]) -> None:
        name = data.name
        conditions = conditions + self._conditions_of(data)
        literals, positions, forced, members = [], [], [], []
        for position, disjunct in enumerate(data.disjuncts):
            other = self._disjuncts.get(id(disjunct))
            if other is not None:
                both = f"'{other.name}' and '{name}'"
                where = both if other is not data else f"'{name}' twice"
                raise RuleError(
                    f"Disjunct '{disjunct.name}' stands in {where}. A Disjunct belongs to one "
                    "Disjunction; write a second Disjunct with the same constraints."
                )
            self._disjuncts[id(disjunct)] = data
            indicator = disjunct.indicator_var
            value = known_value(indicator)
            price = self._price(disjunct)
            if not disjunct.active or value is False:
                continue
            boolean = self._new_boolean(disjunct.name)
            if price is not None:
                self.booleans[boolean].price = price
            self._boolean_index[id(identity(indicator))] = boolean
            self.booleans[boolean].source = indicator
            literals.append(boolean + 1)
            positions.append(position)
            members.append(disjunct)
            if value:
                forced.append(boolean + 1)
        if not literals:
            raise RuleError(
                f"Disjunction '{name}' has no active disjunct, so it can never hold. Activate "
                "one, or deactivate the Disjunction."
            )
        clause = self._add_rule(
            data, Clause(name, tuple(literals), guard, conditions, xor=bool(data.xor)), positions
        )
        for literal in forced:
            self._add_about(clause, Kind.FIXED, (literal,), conditions)
            self.booleans[literal - 1].tied = True
        for disjunct, literal in zip(members, literals, strict=True):
            self._region(disjunct, literal - 1, ())

    def _add_rule(self, data: Any, clause: Clause, positions: Sequence[int]) -> int:
        index = len(self.clauses)
        price = self._price(data)
        if price is not None:
            breaking = self._new_boolean(f"{clause.name} is broken")
            self.booleans[breaking].price = price
            literals = (*clause.literals, breaking + 1)
            clause = replace(clause, literals=literals, breaking=breaking)
            positions = (*positions, -1)
        self.clauses.append(replace(clause, source=index))
        for literal in clause.literals:
            self.booleans[literal - 1].clause = index
        with self._obstacle(data):
            importance = importance_of(self._importances.of(data), data, clause.guard >= 0)
            if clause.guard < 0:
                self.rules.append(Rule(clause.name, index, tuple(positions), importance))
        return index

    def _price(self, data: Any) -> Coefficient | None:
        """The price put on a rule or a disjunct; None where it has none."""
        given = self._prices.of(data)
        if given is None:
            return None
        with self._obstacle(data):
            return price_of(self.expressions, given, data, self.input_bounds)
        return None

    def _check_orphans(self) -> None:
        every = self.model.component_data_objects(
            Disjunct, active=True, descend_into=(pyo.Block, Disjunct)
        )
        for disjunct in every:
            if id(disjunct) in self._disjuncts or _below_inactive(disjunct, self.model):
                continue
            with self._obstacle(disjunct):
                raise RuleError(
                    f"Disjunct '{disjunct.name}' is active but stands in no active Disjunction. "
                    "Deactivate it too, or add it to one."
                )

    # ---- logic ---------------------------------------------------------------------------

    def _new_boolean(self, name: str) -> int:
        self.booleans.append(_BooleanDraft(name))
        return len(self.booleans) - 1

    def _boolean_of(self, variable: BooleanVarData, owner: str) -> int:
        """Boolean of an indicator or BooleanVar that stands in a proposition."""
        one = identity(variable)
        index = self._boolean_index.get(id(one))
        if index is None:
            named = representative(variable)
            disjunct = named.parent_block()
            if isinstance(disjunct, DisjunctData) and disjunct.indicator_var is named:
                raise RuleError(
                    f"{owner}: it names the indicator of Disjunct '{disjunct.name}', which "
                    "stands in no active Disjunction. Fix the indicator, or activate the "
                    "Disjunction."
                )
            for component, kind in ((variable, "BooleanVar"), (one, "the binary")):
                if component.model() is not self.model.model():
                    raise RuleError(
                        f"{owner}: {kind} '{component.name}' does not belong to the model "
                        f"'{self.model.name}'."
                    )
            index = self._new_boolean(variable.name)
            self._boolean_index[id(one)] = index
            self.booleans[index].source = variable
        index = self._truth(index)
        self.booleans[index].tied = True
        return index

    def _fix_boolean(self, variable: BooleanVarData, value: bool) -> None:
        """A fixed BooleanVar fixes its binary, and so the BooleanVars that share it."""
        binary = binary_of(variable)
        if binary is None or binary.fixed:
            return  # nothing shares it, or it is a constant everywhere
        first, other, source = self._fixed.setdefault(
            id(binary), (variable, value, len(self.clauses))
        )
        if other != value:
            raise RuleError(
                f"BooleanVar '{first.name}' is fixed to {other} and '{variable.name}' to {value}, "
                f"but both are the binary '{binary.name}' (associate_binary_var)."
            )
        if first is variable:
            index = self._boolean_of(variable, f"BooleanVar '{variable.name}'")
            literal = index + 1 if value else -index - 1
            conditions = tuple(dict.fromkeys(self._rule_conditions(index)))
            self._add_proposition(source, variable.name, [(literal,)], -1, conditions)

    def _truth(self, index: int) -> int:
        """The boolean that stands for an indicator in logic.

        That of the disjunct itself, except where it is nested: as in Pyomo, the indicator of a
        disjunct whose parent is not chosen is free and enforces nothing. A twin stands for it, of
        the same value where the parent is chosen.
        """
        clause = self.booleans[index].clause
        if clause < 0 or self.clauses[clause].guard < 0:
            return index
        if index not in self._twins:
            twin = self._new_boolean(self.booleans[index].name)
            self._twins[index] = twin
            self.booleans[twin].clause = clause
            self.booleans[twin].tied = self.booleans[index].tied = True
            conditions = tuple(dict.fromkeys(self._rule_conditions(index)))
            for literals in ((-twin - 1, index + 1), (twin + 1, -index - 1)):
                self._add_about(clause, Kind.TWIN, literals, conditions)
        return self._twins[index]

    def _write_logic(self) -> None:
        writer = ClauseWriter(self._new_helper)
        for data, guard, conditions in self._logic:
            with self._obstacle(data):
                self._write_proposition(writer, data, guard, conditions)

    def _write_proposition(
        self, writer: ClauseWriter, data: Any, guard: int, conditions: tuple[int, ...]
    ) -> None:
        proposition = self.expressions.proposition(data.expr, f"LogicalConstraint '{data.name}'")
        # A proposition that names an indicator of an inactive rule is dropped.
        for literal in _literals(proposition):
            conditions += self._rule_conditions(abs(literal) - 1)
        if guard >= 0:
            self.booleans[guard].tied = True
        said = list(writer.clauses(proposition, data.name))
        conditions = tuple(dict.fromkeys(conditions))
        self._add_proposition(len(self.clauses), data.name, said, guard, conditions)

    def _add_proposition(
        self,
        source: int,
        name: str,
        said: Sequence[tuple[int, ...]],
        guard: int,
        conditions: tuple[int, ...],
    ) -> None:
        for literals in said:
            clause = Clause(name, literals, guard, conditions, Kind.PROPOSITION, source=source)
            self.clauses.append(clause)

    def _add_about(
        self, rule: int, kind: Kind, literals: tuple[int, ...], conditions: tuple[int, ...]
    ) -> None:
        """A clause about the indicators of one Disjunction."""
        about = self.clauses[rule]
        self.clauses.append(
            replace(about, literals=literals, conditions=conditions, kind=kind, xor=False)
        )

    def _new_helper(self, name: str) -> int:
        index = self._new_boolean(name)
        helper = self.booleans[index]
        helper.tied = helper.helper = True
        return index

    def _rule_conditions(self, boolean: int) -> tuple[int, ...]:
        """Conditions of the rule an indicator belongs to, its parents' included."""
        clause = self.booleans[boolean].clause
        if clause < 0:
            return ()
        found = self.clauses[clause].conditions
        guard = self.clauses[clause].guard
        return found if guard < 0 else found + self._rule_conditions(guard)

    def _link_binaries(self) -> None:
        """Ties an indicator to its binary Var where that Var stands in a constraint."""
        for index, draft in enumerate(list(self.booleans)):
            binary = None
            if draft.source is not None:
                with self._obstacle(draft.source):
                    binary = binary_of(draft.source)
            column = None if binary is None else self._column_of.get(id(binary))
            if column is None:
                continue
            boolean = self.booleans[self._truth(index)]
            form = LinearForm(columns=self.expressions.linear(binary, boolean.name).columns)
            one = self.expressions.linear(1.0, boolean.name)
            boolean.true_rows += self._add_rows([(form - one, True)], boolean.name, Role.LINK)
            boolean.false_rows += self._add_rows([(form, True)], boolean.name, Role.LINK)
            boolean.tied = True

    def _tie(self) -> None:
        """Spreads `tied`, and writes XOR out where truth values matter."""
        exclusive = [index for index, clause in enumerate(self.clauses) if clause.xor]
        changed = True
        while changed:
            changed = False
            for clause in self.clauses:
                if self._any_tied(clause.literals):
                    changed |= clause.xor and self._mark(clause.literals)
                    changed |= clause.guard >= 0 and self._mark((clause.guard + 1,))
        for index in exclusive:
            clause = self.clauses[index]
            if not self._any_tied(clause.literals):
                continue
            conditions = tuple(dict.fromkeys(self._rule_conditions(clause.literals[0] - 1)))
            for one, other in combinations(clause.literals, 2):
                # As in Pyomo, XOR binds the children of a chosen parent only.
                self._add_about(index, Kind.XOR, (-one, -other), conditions)

    def _any_tied(self, literals: Sequence[int]) -> bool:
        return any(self.booleans[abs(literal) - 1].tied for literal in literals)

    def _mark(self, literals: Sequence[int]) -> bool:
        untied = [k for k in literals if not self.booleans[abs(k) - 1].tied]
        for literal in untied:
            self.booleans[abs(literal) - 1].tied = True
        return bool(untied)


class _BooleanDraft:
    """A boolean while the model is being read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.true_rows: list[int] = []
        self.false_rows: list[int] = []
        self.tied = self.helper = False
        self.price = Coefficient()
        self.clause = -1  # the Disjunction it is an indicator of
        self.source: Any = None  # the Pyomo BooleanVar, where it has one

    def finished(self) -> Boolean:
        rows = tuple(self.true_rows), tuple(self.false_rows)
        return Boolean(self.name, *rows, self.tied, self.helper, self.price)


def _not_understood(component: Any) -> RuleError:
    kind = component.ctype.__name__
    article = "an" if kind[0] in "AEIO" else "a"
    instead = _FIRST.get(kind, "Write it with Constraints and Disjunctions, or deactivate it.")
    return RuleError(
        f"'{component.name}' is {article} {kind}, which gdpnet does not understand. {instead}"
    )


def _literals(proposition: tuple[Any, ...]) -> Iterator[int]:
    if proposition[0] == "literal":
        yield proposition[1]
        return
    for part in proposition[1:]:
        if isinstance(part, tuple):
            yield from _literals(part)


def _as_variables(item: Any) -> list[Any] | None:
    if isinstance(item, VarData):
        return [item]
    if getattr(item, "ctype", None) is pyo.Var:
        return list(item.values())
    return None


def _as_params(item: Any) -> list[Any] | None:
    if isinstance(item, ParamData):
        container = item.parent_component()
        return [item] if container.mutable else None
    if getattr(item, "ctype", None) is Param and item.mutable:
        return [item[index] for index in item.index_set()]
    return None


def _called(item: Any) -> str:
    name = getattr(item, "name", None)
    kind = getattr(getattr(item, "ctype", None), "__name__", type(item).__name__)
    return f"{item!r} ({kind})" if name is None else f"'{name}' ({kind})"


def _hint(item: Any, what: str) -> str:
    kind = getattr(item, "ctype", None)
    if what == "inputs" and (kind is Param or isinstance(item, int | float)):
        return " Declare the Param with mutable=True: an immutable one is a number to Pyomo."
    if what == "inputs" and kind is pyo.Var:
        return " An input is data, not a decision: declare it as Param(mutable=True)."
    if isinstance(item, str):
        return f" Pass the component itself, such as m.{item}, not its name."
    return ""


def _interval(pair: Any, name: str) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise RuleError(
            f"input_bounds: expected a pair (low, high) for '{name}', got {pair!r}."
        ) from None
    if not low <= high:
        raise RuleError(f"input_bounds: the range of '{name}' is empty: {low:g} to {high:g}.")
    return low, high


def _is_empty(component: Any) -> bool:
    return hasattr(component, "is_indexed") and component.is_indexed() and len(component) == 0


def _below_inactive(disjunct: Any, model: Any) -> bool:
    """Whether a Disjunct lies in a part of the model that is switched off."""
    block = disjunct.parent_block()
    while block is not None and block is not model:
        if not block.active:
            return True
        block = block.parent_block()
    return False
