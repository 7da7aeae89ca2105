"""Reads a Pyomo.GDP model into `RuleData`. The model is never changed.

A `Reader` walks through blocks, constraints and disjunctions; what it meets becomes columns
(`columns.py`), rows (`rows.py`), conditions (`conditions.py`), booleans and clauses
(`booleans.py`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.block import BlockData
from pyomo.gdp import Disjunct, Disjunction
from pyomo.gdp.disjunct import DisjunctionData

from gdpnet.errors import RuleError
from gdpnet.ir.data import Clause, Kind, Rule, RuleData
from gdpnet.ir.linear import Coefficient
from gdpnet.rules.arguments import CONTINUOUS, read_input_bounds, read_inputs, read_outputs
from gdpnet.rules.associations import known_value
from gdpnet.rules.booleans import ReadLogic
from gdpnet.rules.columns import ReadColumns
from gdpnet.rules.components import is_passive, not_understood
from gdpnet.rules.conditions import ACTIVE_WHEN, ReadConditions
from gdpnet.rules.convexity import ConvexReader
from gdpnet.rules.expressions import ExpressionReader
from gdpnet.rules.numbers import IMPORTANCES, PRICES, Entries, importance_of, price_of
from gdpnet.rules.obstacles import Obstacles
from gdpnet.rules.rows import ReadRows

logger = logging.getLogger("gdpnet")

_TRANSFORMED = re.compile(r"_pyomo_gdp_(\w+?)_reformulation(?:_\d+)?")


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
    (_, first), *others = reader.obstacles.listed()
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
        outputs = met.columns.continuous()
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
        outputs: how many of the columns, the first ones.
        rules: what has a name of its own.
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
        self.obstacles = Obstacles()
        self.ignored: list[str] = []
        self.rules: list[Rule] = []
        self._disjuncts: dict[int, DisjunctionData] = {}

        self.input_params = read_inputs(inputs, model, self.obstacles)
        input_of = {id(param): j for j, param in enumerate(self.input_params)}
        self.input_bounds: tuple[tuple[float, float], ...] = ()
        with self.obstacles.at("input_bounds"):
            self.input_bounds = read_input_bounds(input_bounds, self.input_params)

        # An expression makes columns and booleans of what it names.
        self._expressions = ExpressionReader(
            lambda variable, owner: self.columns.of(variable, owner),
            lambda param: input_of.get(id(param)),
            lambda variable, owner: self.logic.of(variable, owner),
            lambda variable, value: self.logic.fix(variable, value),
        )
        convexity = ConvexReader(
            self._expressions, lambda: self.input_bounds, lambda column: self.columns.range(column)
        )
        self.rows = ReadRows(self._expressions, convexity)
        self.columns = ReadColumns(model, self._expressions, self.rows, self.obstacles)
        self.logic = ReadLogic(model, self._expressions, self.obstacles)
        self._conditions = ReadConditions(model, self._expressions, self.obstacles)

        variables = read_outputs(outputs, self.obstacles)
        for variable in variables:
            with self.obstacles.at(variable):
                self.columns.add(variable, "outputs")
        self.outputs = len(variables)

        price = "a price", (Disjunction, Disjunct, pyo.Constraint)
        self._prices = Entries(model, PRICES, prices, *price)
        importance = "an importance", (Disjunction, pyo.Constraint)
        self._importances = Entries(model, IMPORTANCES, importances, *importance)

    def require_outputs(self) -> None:
        """Make it an obstacle where there is no output."""
        with self.obstacles.at("outputs"):
            if not (self.outputs or self.obstacles):
                raise RuleError("outputs: expected at least one Var, got none.")

    def read(self) -> None:
        """Go through the model."""
        self._conditions.read()
        for entries in (self._prices, self._importances):
            with self.obstacles.at(entries.keyword):
                entries.read()
        with self.obstacles.at(self.model):
            self._refuse_transformed()
        self._region(self.model, -1, ())
        if self.obstacles.structural:
            return
        self._conditions.refuse_unused()
        for entries in (self._prices, self._importances):
            for component, error in entries.unused():
                with self.obstacles.at(component):
                    raise error
        self._check_orphans()
        self.logic.write()
        self.logic.link_binaries(self.columns, self.rows)
        self.logic.tie()

    def data(self) -> RuleData:
        """What was read, where nothing stood in the way."""
        return RuleData(
            inputs=tuple(param.name for param in self.input_params),
            input_bounds=self.input_bounds,
            outputs=self.outputs,
            columns=tuple(self.columns.all),
            rows=tuple(self.rows.all),
            global_rows=tuple(self.rows.everywhere),
            booleans=tuple(draft.finished() for draft in self.logic.booleans),
            clauses=tuple(self.logic.clauses),
            rules=tuple(self.rules),
            conditions=tuple(self._conditions.all),
        )

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
            if is_passive(component):
                continue
            read = {
                pyo.Constraint: self._constraint,
                Disjunction: self._disjunction,
                pyo.LogicalConstraint: self._logical_constraint,
                pyo.Block: self._block,
            }.get(kind)
            if read is None:
                with self.obstacles.at(component):
                    raise not_understood(component)
                continue
            for data in component.values():
                if data.active:
                    with self.obstacles.at(data, structural=kind is not pyo.Constraint):
                        read(data, guard, conditions)

    def _block(self, block: Any, guard: int, conditions: tuple[int, ...]) -> None:
        self._region(block, guard, conditions + self._conditions.of(block))

    def _constraint(self, data: Any, guard: int, conditions: tuple[int, ...]) -> None:
        name = data.name
        conditions = conditions + self._conditions.of(data)
        rows = self.rows.add(self.rows.read(data.expr, f"Constraint '{name}'"), name)
        if not conditions:
            self._refuse_numbers(data)
            held = self.rows.everywhere if guard < 0 else self.logic.booleans[guard].true_rows
            held += rows
            return
        # A constraint with a condition is a rule with one disjunct.
        boolean = self.logic.add(name)
        self.logic.booleans[boolean].true_rows += rows
        clause = Clause(name, (boolean + 1,), guard, conditions, Kind.CONDITIONAL)
        self._add_rule(data, clause, (0,))

    def _refuse_numbers(self, data: Any) -> None:
        """Raise where a Constraint that is no rule has a price or an importance."""
        for entries in (self._prices, self._importances):
            if entries.of(data) is not None:
                raise RuleError(
                    f"{entries.suffix}: Constraint '{data.name}' holds always, or with the "
                    f"Disjunct it stands in: it is no rule, so {entries.what} means nothing. Give "
                    f"it a condition ({ACTIVE_WHEN}), or write it as a Disjunction with one "
                    "disjunct."
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
        self.logic.keep(data, guard, conditions + self._conditions.of(data))

    # ---- disjunctions --------------------------------------------------------------------

    def _disjunction(self, data: DisjunctionData, guard: int, conditions: tuple[int, ...]) -> None:
        name = data.name
        conditions = conditions + self._conditions.of(data)
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
            value = known_value(disjunct.indicator_var)
            price = self._price(disjunct)
            if not disjunct.active or value is False:
                continue
            boolean = self.logic.add_indicator(disjunct)
            if price is not None:
                self.logic.booleans[boolean].price = price
            literals.append(boolean + 1)
            positions.append(position)
            members.append(disjunct)
            if value:
                forced.append(boolean + 1)
        if not literals:
            raise RuleError(
                f"Disjunction '{name}' has no active disjunct whose indicator may be True, so it "
                "can never hold. Activate one or unfix its indicator_var, or deactivate the "
                "Disjunction."
            )
        clause = self._add_rule(
            data, Clause(name, tuple(literals), guard, conditions, xor=bool(data.xor)), positions
        )
        for literal in forced:
            self.logic.force(clause, literal)
        for disjunct, literal in zip(members, literals, strict=True):
            self._region(disjunct, literal - 1, ())

    def _add_rule(self, data: Any, clause: Clause, positions: Sequence[int]) -> int:
        price = self._price(data)
        if price is not None:
            breaking = self.logic.add(f"{clause.name} is broken")
            self.logic.booleans[breaking].price = price
            literals = (*clause.literals, breaking + 1)
            clause = replace(clause, literals=literals, breaking=breaking)
            positions = (*positions, -1)
        index = self.logic.add_rule(clause)
        with self.obstacles.at(data):
            importance = importance_of(self._importances.of(data), data, clause.guard >= 0)
            if clause.guard < 0:
                self.rules.append(Rule(clause.name, index, tuple(positions), importance))
        return index

    def _price(self, data: Any) -> Coefficient | None:
        """The price put on a rule or a disjunct; None where it has none."""
        given = self._prices.of(data)
        if given is None:
            return None
        with self.obstacles.at(data):
            return price_of(self._expressions, given, data, self.input_bounds)
        return None

    def _check_orphans(self) -> None:
        every = self.model.component_data_objects(
            Disjunct, active=True, descend_into=(pyo.Block, Disjunct)
        )
        for disjunct in every:
            if id(disjunct) in self._disjuncts or _below_inactive(disjunct, self.model):
                continue
            with self.obstacles.at(disjunct):
                raise RuleError(
                    f"Disjunct '{disjunct.name}' is active but stands in no active Disjunction. "
                    "Deactivate it too, or add it to one."
                )


def _below_inactive(disjunct: Any, model: Any) -> bool:
    """Whether a Disjunct lies in a part of the model that is switched off."""
    block = disjunct.parent_block()
    while block is not None and block is not model:
        if not block.active:
            return True
        block = block.parent_block()
    return False
