"""From the chain's Pyomo program to parametric sparse matrices that know where they came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.common.collections import ComponentMap
from pyomo.core.base.var import VarData
from pyomo.gdp import Disjunct, Disjunction
from scipy.sparse import csr_array

from gdpnet.errors import RuleError
from gdpnet.ir.atoms import Evaluator
from gdpnet.ir.data import Row
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.lp.conic import Cone, ConeKind, ConicStructure
from gdpnet.relaxation.cones import perspective
from gdpnet.relaxation.program import Variable
from gdpnet.relaxation.pyomo import walk
from gdpnet.relaxation.pyomo.curves import CurvedReader, plain_head
from gdpnet.relaxation.pyomo.provenance import get_src_disjuncts, of
from gdpnet.relaxation.pyomo.symbolic import SymbolicReader
from gdpnet.rules.convexity import RowDraft


@dataclass(frozen=True)
class ConicRows:
    """Rows of which `a v - b` together are in a cone.

    Attributes:
        name: constraint that they came from.
        kind: of the cone.
        members: one row each.
        exponent: of a power cone.
    """

    name: str
    kind: ConeKind
    members: tuple[Row, ...]
    exponent: float


@dataclass(frozen=True)
class Matrices:
    """A program `A v <= b` (or `==`), `lower <= v <= upper`, and cones, parametric in Params.

    Every entry of A and b is `number + sum(multiplier * atom)`, an atom being an expression of the
    Params; those are the inputs of the rules, and `gdpnet_yhat`.

    Attributes:
        variables: what each column is.
        lower, upper: bounds that are numbers, `n`; others are rows.
        rows: with names of the constraints (or variables) they came from.
        cost: of each column.
        params: Params that the atoms name.
        lp: the model that the Params belong to.
        cones: rows that are in cones; none where the program is linear.
    """

    variables: tuple[Variable, ...]
    lower: np.ndarray
    upper: np.ndarray
    rows: tuple[Row, ...]
    cost: tuple[Coefficient, ...]
    params: tuple[Any, ...]
    lp: Any
    cones: tuple[ConicRows, ...] = ()

    @cached_property
    def _every(self) -> tuple[Row, ...]:
        """The rows, and behind them the members of cones."""
        return (*self.rows, *(row for cone in self.cones for row in cone.members))

    @cached_property
    def _entries(self) -> list[tuple[int, int, Coefficient]]:
        return [(i, j, a) for i, row in enumerate(self._every) for j, a in row.terms]

    @cached_property
    def structure(self) -> ConicStructure:
        """The program without its numbers, as solvers of cones take it."""
        first, cones = len(self.rows), []
        for cone in self.cones:
            cones.append(Cone(cone.kind, first, len(cone.members), cone.exponent))
            first += len(cone.members)
        return ConicStructure(
            *(self.lower, self.upper),
            start=np.cumsum([0, *(len(row.terms) for row in self._every)]),
            column=np.array([j for _, j, _ in self._entries], dtype=np.int64),
            equality=np.array([row.equality for row in self._every], dtype=bool),
            cones=tuple(cones),
        )

    def numbers(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Entries and right sides of all rows of `structure`, for values of the Params.

        Args:
            values: in the order of `params`.
        """
        number = _evaluator(values)
        entries = np.array([number(a) for *_, a in self._entries])
        return entries, np.array([number(row.bound) for row in self._every])

    def costs(self, values: np.ndarray) -> np.ndarray:
        """Cost of each column for values of the Params, `n`; prices may depend on them."""
        return np.array([_evaluator(values)(cost) for cost in self.cost])

    def values(self) -> np.ndarray:
        """Values that the Params have now, in the order of `params`."""
        return np.array([float(pyo.value(param)) for param in self.params])

    def at(self, values: np.ndarray) -> tuple[csr_array, np.ndarray]:
        """A and b for values of the Params, without members of cones.

        Args:
            values: in the order of `params`.
        """
        entries, bound = self.numbers(values)
        count = sum(len(row.terms) for row in self.rows)
        at = tuple(np.array([e[k] for e in self._entries[:count]], dtype=int) for k in (0, 1))
        shape = (len(self.rows), len(self.variables))
        return csr_array((entries[:count], at), shape=shape), bound[: len(self.rows)]


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


class _Reading:
    def __init__(self, lp: Any) -> None:
        self.lp = lp
        self.reader = SymbolicReader()
        self.curved = CurvedReader(self.reader)
        self.heads: list[Variable] = []
        self.hull = pyo.TransformationFactory("gdpnet.hull")
        self.known = ComponentMap()
        for j, output in lp.gdpnet_y.items():
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
        own = len(self.reader.variables)
        bounds = [self._bounds(j, rows) for j in range(own)]
        for name, drafts in waiting:
            for draft in drafts:
                self._outside(name, draft, rows, cones, bounds)
        cost = self.reader.linear(self.lp.gdpnet_distance.expr, "gdpnet_distance")
        ends = np.array(bounds).reshape(-1, 2)
        columns = range(len(bounds))
        return Matrices(
            variables=(*(self._variable(v) for v in self.reader.variables), *self.heads),
            lower=ends[:, 0],
            upper=ends[:, 1],
            rows=tuple(rows),
            cost=tuple(cost.columns.get(j, Coefficient()) for j in columns),
            params=tuple(self.reader.constants),
            lp=self.lp,
            cones=tuple(cones),
        )

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


def _evaluator(values: np.ndarray) -> Callable[[Coefficient], float]:
    """What gives the number of a coefficient, for values of the Params."""
    evaluate = Evaluator(torch.as_tensor(values, dtype=torch.float64).reshape(1, -1))

    def number(coefficient: Coefficient) -> float:
        atoms = coefficient.atoms.items()
        return coefficient.number + sum(m * float(evaluate(atom)[0]) for atom, m in atoms)

    return number


def _row(name: str, form: LinearForm, equality: bool = False) -> Row:
    """`form <= 0`, with the constant on the right."""
    return Row(name, tuple(form), form.constant.scaled(-1.0), equality)
