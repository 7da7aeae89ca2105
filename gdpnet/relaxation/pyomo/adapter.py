"""From the chain's Pyomo program to parametric sparse matrices that know where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.common.collections import ComponentMap
from pyomo.core.base.var import VarData
from pyomo.gdp import Disjunct, Disjunction
from scipy.sparse import csr_array

from gdpnet.errors import RuleError
from gdpnet.ir.data import Row, Shape
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.relaxation.cones import perspective
from gdpnet.relaxation.parametric import AtomTable, ConicRows, ParametricProgram
from gdpnet.relaxation.program import Variable
from gdpnet.relaxation.pyomo import walk
from gdpnet.relaxation.pyomo.curves import CurvedReader, plain_head
from gdpnet.relaxation.pyomo.provenance import get_src_disjuncts, of
from gdpnet.relaxation.pyomo.symbolic import SymbolicReader
from gdpnet.rules.components import is_passive, not_understood
from gdpnet.rules.convexity import RowDraft
from gdpnet.rules.expressions import Nonlinear

_READ = (pyo.Block, pyo.Constraint, pyo.Objective)


@dataclass(frozen=True)
class Matrices(ParametricProgram):
    """A parametric program, and the Params that its atoms name.

    Attributes:
        params: Params that the atoms name, such as the inputs of the rules and `gdpnet_yhat`; and
            Vars that are fixed.
        lp: the model that the Params belong to.
        columns: Var of each column, of those that are one.
        sense: 1 where the Objective is minimised, -1 where it is maximised.
        constant: what is minimised besides, whatever the columns are.
    """

    params: tuple[Any, ...]
    lp: Any
    columns: tuple[Any, ...]
    sense: int
    constant: AtomTable

    @property
    def cost(self) -> np.ndarray:
        """Of each column, where it does not depend on Params, `n`."""
        return np.array([cost.number for cost in self.costs])

    @property
    def program(self) -> ParametricProgram:
        """The same without Pyomo."""
        return ParametricProgram(
            **{each.name: getattr(self, each.name) for each in fields(ParametricProgram)}
        )

    def numbers(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Entries and right sides of all rows of `structure`, for values of the Params.

        Args:
            values: in the order of `params`.
        """
        given = torch.as_tensor(values, dtype=torch.float64).reshape(1, -1)
        entries, bound, _ = self.evaluate(given)
        return entries[0].numpy(), bound[0].numpy()

    def cost_at(self, values: np.ndarray) -> np.ndarray:
        """Cost of each column for values of the Params, `n`; prices may depend on them."""
        given = torch.as_tensor(values, dtype=torch.float64).reshape(1, -1)
        found: np.ndarray = self.evaluate(given).cost[0].numpy()
        return found

    def values(self) -> np.ndarray:
        """Values that the Params have now, in the order of `params`."""
        return np.array([float(pyo.value(param)) for param in self.params])

    def given(self) -> torch.Tensor:
        """The same as a batch of one."""
        return torch.from_numpy(self.values()).reshape(1, -1)

    def at(self, values: np.ndarray) -> tuple[csr_array, np.ndarray]:
        """A and b for values of the Params, without members of cones.

        Args:
            values: in the order of `params`.
        """
        entries, bound = self.numbers(values)
        rows, structure = len(self.rows), self.structure
        start = structure.start[: rows + 1]
        shape = (rows, len(self.variables))
        matrix = csr_array(
            (entries[: start[-1]], structure.column[: start[-1]], start), shape=shape
        )
        return matrix, bound[:rows]


def read_matrices(lp: Any) -> Matrices:
    """The matrices of a program that `gdpnet.convexify` made.

    Args:
        lp: the Pyomo model. Vars that stand for arguments of convex functions are no columns: the
            members of a cone are linear in the others.

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> from gdpnet.relaxation.pyomo.adapter import read_matrices
        >>> m = pyo.ConcreteModel()
        >>> m.top = pyo.Param(mutable=True, initialize=7.0)
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= m.top))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.top])
        >>> matrices = read_matrices(gdpnet.convexify(rules, x=[7.0], yhat=[4.5]))
        >>> [param.name for param in matrices.params]
        ['gdpnet_yhat[0]', 'top']
        >>> matrix, bound = matrices.at([5.0, 8.0])
        >>> matrix.shape
        (13, 8)
    """
    if getattr(lp, "component", lambda _: None)("gdpnet_distance") is None:
        raise RuleError("lp: expected a model that gdpnet.convexify made.")
    return _Reading(lp).matrices()


def read_program(model: Any, outputs: Sequence[VarData] = ()) -> Matrices:
    """A convex program of Pyomo as matrices that know where they came from.

    What is minimised, or maximised, and the constraints may be linear or convex; Vars are
    continuous. Of a program that gdpnet's transformations wrote, columns know what they copy.

    Args:
        model: a ConcreteModel with one active Objective.
        outputs: Vars that get a column in any case.

    Example:
        >>> import pyomo.environ as pyo
        >>> from gdpnet.relaxation.pyomo.adapter import read_program
        >>> m = pyo.ConcreteModel()
        >>> m.a = pyo.Param(mutable=True, initialize=2.0)
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.least = pyo.Constraint(expr=m.a * m.y >= 1)
        >>> m.cost = pyo.Objective(expr=(m.y - 3 * m.a) ** 2)
        >>> matrices = read_program(m)
        >>> matrices.square.tolist(), matrices.evaluate(matrices.given()).cost.tolist()
        ([2.0], [[-12.0]])
    """
    _refuse_others(model)
    reading = _Reading(model)
    for variable in outputs:
        reading.reader.column(variable)
    matrices = reading.matrices()
    whole = [v.name for v in reading.reader.variables if not v.is_continuous()]
    if whole:
        raise RuleError(
            f"program: the Var '{whole[0]}' is not continuous"
            f"{f', and {len(whole) - 1} more' if len(whole) > 1 else ''}; a convex program has no "
            "whole numbers. Relax them first: "
            "pyo.TransformationFactory('core.relax_integer_vars').apply_to(model)."
        )
    return matrices


def _refuse_others(model: Any) -> None:
    """Raise where a model says more than Constraints do: nothing of it is left out unsaid."""
    for block in model.block_data_objects(active=True, descend_into=pyo.Block):
        for component in block.component_objects(descend_into=False):
            if component.is_reference() or is_passive(component) or component.ctype in _READ:
                continue
            if component.ctype in (Disjunction, pyo.LogicalConstraint):
                raise RuleError(
                    f"program: '{component.name}' is a {component.ctype.__name__}; a convex "
                    "program has none. Make the model convex first: gdpnet.convexify(rules, "
                    "...), or pyo.TransformationFactory('gdp.hull').apply_to(model) and "
                    "pyo.TransformationFactory('core.relax_integer_vars').apply_to(model)."
                )
            raise not_understood(component)


class _Reading:
    def __init__(self, lp: Any) -> None:
        self.lp = lp
        self.reader = SymbolicReader()
        self.curved = CurvedReader(self.reader)
        self.heads: list[Variable] = []
        self.hull = pyo.TransformationFactory("gdpnet.hull")
        self.known = ComponentMap()
        lifted = lp.component("gdpnet_distance") is not None
        for j, output in lp.gdpnet_y.items() if lifted else ():
            self.known[output] = Variable("value", output.name)
            self.known[lp.gdpnet_eta[j]] = Variable("distance", output.name)
        for number, blocks in enumerate(_blocks(lp, "_gdpnet_logic")):
            for index, binary in blocks.truth.items():
                self.known[binary] = Variable("value", f"truth {number}.{index}")
        for block in lp.component_data_objects(pyo.Block, descend_into=(pyo.Block, Disjunct)):
            for head, source in of(block).heads.items():
                self.known[head] = Variable("curve", self._source(source))
        self.rules = self._rules()
        sources = self._sources()
        for block in _blocks(lp, "_gdpnet_basic_steps"):
            self._block(block, sources)

    def matrices(self) -> Matrices:
        rows: list[Row] = []
        cones: list[ConicRows] = []
        waiting = []
        for constraint in self.lp.component_data_objects(pyo.Constraint, active=True):
            if constraint.parent_component().local_name == "gdpnet_links":
                continue
            name = self._name(constraint)
            note = of(constraint.parent_block()).cones.get(constraint)
            if note is not None:
                kind, members, exponent = note
                forms = [self.reader.linear(member, name) for member in members]
                cones.append(ConicRows(name, kind, tuple(_row(name, f) for f in forms), exponent))
                continue
            curved = self.curved.rows(constraint)
            if curved is not None:
                waiting.append((name, curved))
                continue
            lower, body, upper = self.reader.sides(constraint)
            if constraint.equality:
                rows.append(_row(name, body - (upper or LinearForm()), True))
                continue
            if lower is not None:
                rows.append(_row(name, lower - body))
            if upper is not None:
                rows.append(_row(name, body - upper))
        cost, squares, drafts = self._objective()
        waiting += drafts
        own = len(self.reader.variables)
        bounds = [self._bounds(j, rows) for j in range(own)]
        for name, drafted in waiting:
            for draft in drafted:
                self._outside(name, draft, rows, cones, bounds)
        ends = np.array(bounds).reshape(-1, 2)
        columns = range(len(bounds))
        made = Matrices(
            variables=(*(self._variable(v) for v in self.reader.variables), *self.heads),
            lower=ends[:, 0],
            upper=ends[:, 1],
            rows=tuple(rows),
            costs=tuple(cost.columns.get(j, Coefficient()) for j in columns),
            square=np.zeros(len(bounds)),
            curved=np.zeros(len(bounds), dtype=bool),
            params=tuple(self.reader.constants),
            lp=self.lp,
            columns=tuple(self.reader.variables),
            sense=self.sense,
            constant=AtomTable([_constant(cost, squares)]),
            cones=tuple(cones),
        )
        return made.with_squares(squares) if squares else made  # type: ignore[return-value]

    def _objective(
        self,
    ) -> tuple[LinearForm, list[tuple[float, LinearForm]], list[tuple[str, list[RowDraft]]]]:
        """Costs, squares of forms, and rows that what is minimised needs besides."""
        found = list(self.lp.component_data_objects(pyo.Objective, active=True))
        if len(found) != 1:
            raise RuleError(f"program: expected one active Objective, got {len(found)}.")
        (objective,) = found
        self.sense = int(objective.sense)  # minimize is 1, maximize -1
        sign = Coefficient(float(self.sense))
        owner = f"Objective '{objective.name}'"
        try:
            return self.reader.linear(objective.expr, owner).times(sign), [], []
        except Nonlinear:
            pass
        first, *domains = self.curved.minimised(objective, sign, owner)
        form, _, curves = first
        squares = [
            (2.0 * curve.weight, argument)
            for curve in curves
            if curve.shape is Shape.SQUARES
            for argument in curve.arguments
        ]
        others = tuple(curve for curve in curves if curve.shape is not Shape.SQUARES)
        drafts = list(domains)
        if others:  # below a Var that is minimised
            top = self.reader.column(self.curved.top())
            form = form + LinearForm(columns={top: Coefficient(1.0)})
            drafts.append((LinearForm(columns={top: Coefficient(-1.0)}), False, others))
        return form, squares, [(objective.name, drafts)] if drafts else []

    def _outside(
        self,
        name: str,
        draft: RowDraft,
        rows: list[Row],
        cones: list[ConicRows],
        bounds: list[tuple[float, float]],
    ) -> None:
        """A convex row that stands in no disjunct: its weight is 1."""
        form, equality, curves = draft
        one, plain = LinearForm(Coefficient(1.0)), plain_head(draft)
        for curve in curves:
            shape = perspective(curve.shape, curve.exponent)
            column = len(bounds) if plain is None else plain
            head = LinearForm(columns={column: Coefficient(1.0)})
            if plain is None:
                form = form + head.times(Coefficient(curve.weight))
                self.heads.append(Variable("curve", name))
                bounds.append((-np.inf if shape.signed else 0.0, np.inf))
            members = shape.members(head, one, list(curve.arguments), _minus)
            found = tuple(_row(name, member) for member in members)
            cones.append(ConicRows(name, shape.kind, found, shape.exponent))
        if plain is None:
            rows.append(_row(name, form, equality))

    def _bounds(self, column: int, rows: list[Row]) -> tuple[float, float]:
        variable = self.reader.variables[column]
        ends = []
        for bound, sign in ((variable.lower, -1.0), (variable.upper, 1.0)):
            ends.append(sign * np.inf)
            if bound is None:
                continue
            value = self.reader.linear(bound, variable.name).constant
            if value.is_number:
                ends[-1] = value.number
            else:
                name = f"bound of {self._variable(variable).name}"
                rows.append(Row(name, ((column, Coefficient(sign)),), value.scaled(sign)))
        return ends[0], ends[1]

    # ---- where columns came from -----------------------------------------------------------

    def _variable(self, variable: VarData) -> Variable:
        known = self.known.get(variable)
        return Variable("value", variable.name) if known is None else known

    def _rules(self) -> dict[int, tuple[str, bool]]:
        """The Disjunction of each disjunct, by id, and whether it is nested."""
        found = {}
        for rule in self.lp.component_data_objects(
            Disjunction, active=None, descend_into=(pyo.Block, Disjunct)
        ):
            conditional = rule.parent_component().local_name == "_gdpnet_conditional"
            name = rule.index() if conditional else rule.name
            for disjunct in rule.disjuncts:
                found[id(disjunct)] = (name, walk.enclosing_disjunct(rule) is not None)
        return found

    def _sources(self) -> list[VarData]:
        """Vars that may have copies."""
        every = self.lp.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct))
        return [v for v in every if "_pyomo_gdp" not in v.name]

    def _block(self, block: Any, sources: list[VarData]) -> None:
        products = list(block.merged.disjuncts)
        first = get_src_disjuncts(products[0])
        rules = tuple(self.rules[id(d)][0] for d in first if not self.rules[id(d)][1])
        rules = tuple(dict.fromkeys(rules))
        for product in products:
            term = frozenset(self._disjunct(d) for d in get_src_disjuncts(product))
            weight = product.binary_indicator_var
            self.known[weight] = Variable("weight", "", rules, term)
            for head in of(product.transformation_block).heads:
                self.known[head] = Variable("curve", self.known[head].name, rules, term)
            for source in sources:
                copy = self.hull.get_disaggregated_var(source, product, raise_exception=False)
                if copy is None:
                    continue
                whole = self._variable(source)
                own = copy.parent_block().parent_block() is product.transformation_block
                shown = term if own else frozenset()
                self.known[copy] = Variable(whole.kind, whole.name, rules, shown)

    def _disjunct(self, disjunct: Any) -> str:
        name, _ = self.rules[id(disjunct)]
        if of(disjunct).breaks:
            return f"{name} is broken"
        conditional = disjunct.parent_component().local_name.startswith("_gdpnet_conditional")
        return name if conditional else str(disjunct.name)

    # ---- where rows came from --------------------------------------------------------------

    def _name(self, row: Any) -> str:
        """The constraint that a row came from; the row itself where there is none."""
        if row in of(row.parent_block()).rows:
            return self._source(row)
        try:
            row = self.hull.get_src_constraint(row)
        except Exception:  # Pyomo raises a plain GDP_Error, or a KeyError, for its own rows
            return str(row.name)
        return self._source(row)

    @staticmethod
    def _source(row: Any) -> str:
        """The modeller's constraint that a copy of one came from."""
        while (source := of(row.parent_block()).rows.get(row)) is not None:
            row = source
        return str(row.name)


def _blocks(lp: Any, name: str) -> list[Any]:
    found = lp.component(name)
    return [] if found is None else list(found.values())


def _minus(form: LinearForm) -> LinearForm:
    return form.times(Coefficient(-1.0))


def _constant(cost: LinearForm, squares: list[tuple[float, LinearForm]]) -> Coefficient:
    """What is left of costs, and of squares of one column, where that is 0."""
    total = cost.constant
    for weight, form in squares:
        ((_, a), *more) = form
        if not more and a.is_number:  # see `ParametricProgram.with_squares`
            total = total + (form.constant * form.constant).scaled(0.5 * weight)
    return total


def _row(name: str, form: LinearForm, equality: bool = False) -> Row:
    """`form <= 0`, with the constant on the right."""
    return Row(name, tuple(form), form.constant.scaled(-1.0), equality)
