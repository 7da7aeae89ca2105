"""From the Pyomo LP of the chain to parametric sparse matrices that know where they came from."""

from __future__ import annotations

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
from gdpnet.relaxation.program import Variable
from gdpnet.relaxation.pyomo import walk
from gdpnet.relaxation.pyomo.provenance import get_src_disjuncts, of
from gdpnet.relaxation.pyomo.symbolic import SymbolicReader


@dataclass(frozen=True)
class Matrices:
    """A linear program `A v <= b` (or `==`), `lower <= v <= upper`, parametric in Params.

    Every entry of A and b is `number + sum(multiplier * atom)`, an atom being an expression of the
    Params; those are the inputs of the rules, and `gdpnet_yhat`.

    Attributes:
        variables: what each column is.
        lower, upper: bounds that are numbers, `n`; others are rows.
        rows: with names of the constraints (or variables) they came from.
        cost: of each column, `n`.
        params: Params that the atoms name.
        lp: the model that the Params belong to.
    """

    variables: tuple[Variable, ...]
    lower: np.ndarray
    upper: np.ndarray
    rows: tuple[Row, ...]
    cost: np.ndarray
    params: tuple[Any, ...]
    lp: Any

    @cached_property
    def _entries(self) -> list[tuple[int, int, Coefficient]]:
        return [(i, j, a) for i, row in enumerate(self.rows) for j, a in row.terms]

    def values(self) -> np.ndarray:
        """Values that the Params have now, in the order of `params`."""
        return np.array([float(pyo.value(param)) for param in self.params])

    def at(self, values: np.ndarray) -> tuple[csr_array, np.ndarray]:
        """A and b for values of the Params.

        Args:
            values: in the order of `params`.
        """
        evaluate = Evaluator(torch.as_tensor(values, dtype=torch.float64).reshape(1, -1))

        def number(coefficient: Coefficient) -> float:
            atoms = coefficient.atoms.items()
            return coefficient.number + sum(m * float(evaluate(atom)[0]) for atom, m in atoms)

        data = [number(a) for *_, a in self._entries]
        at = [i for i, *_ in self._entries], [j for _, j, _ in self._entries]
        shape = (len(self.rows), len(self.variables))
        return csr_array((data, at), shape=shape), np.array([number(r.bound) for r in self.rows])


def read_matrices(lp: Any) -> Matrices:
    """The matrices of a linear program that `gdpnet.convexify` made.

    Args:
        lp: the Pyomo model.

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
        self.hull = pyo.TransformationFactory("gdpnet.hull")
        self.known = ComponentMap()
        for j, output in lp.gdpnet_y.items():
            self.known[output] = Variable("value", output.name)
            self.known[lp.gdpnet_eta[j]] = Variable("distance", output.name)
        for number, blocks in enumerate(_blocks(lp, "_gdpnet_logic")):
            for index, binary in blocks.truth.items():
                self.known[binary] = Variable("value", f"truth {number}.{index}")
        self.rules = self._rules()
        sources = self._sources()
        for block in _blocks(lp, "_gdpnet_basic_steps"):
            self._block(block, sources)

    def matrices(self) -> Matrices:
        rows: list[Row] = []
        for constraint in self.lp.component_data_objects(pyo.Constraint, active=True):
            lower, body, upper = self.reader.sides(constraint)
            name = self._name(constraint)
            if constraint.equality:
                rows.append(_row(name, body - (upper or LinearForm()), True))
                continue
            if lower is not None:
                rows.append(_row(name, lower - body))
            if upper is not None:
                rows.append(_row(name, body - upper))
        columns = range(len(self.reader.variables))
        bounds = np.array([self._bounds(j, rows) for j in columns]).reshape(-1, 2)
        cost = self.reader.linear(self.lp.gdpnet_distance.expr, "gdpnet_distance")
        return Matrices(
            variables=tuple(self._variable(v) for v in self.reader.variables),
            lower=bounds[:, 0],
            upper=bounds[:, 1],
            rows=tuple(rows),
            cost=np.array([cost.columns.get(j, Coefficient()).number for j in columns]),
            params=tuple(self.reader.constants),
            lp=self.lp,
        )

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
        conditional = disjunct.parent_component().local_name.startswith("_gdpnet_conditional")
        return name if conditional else str(disjunct.name)

    # ---- where rows came from --------------------------------------------------------------

    def _name(self, row: Any) -> str:
        """The constraint that a row came from; the row itself where there is none."""
        try:
            row = self.hull.get_src_constraint(row)
        except Exception:  # Pyomo raises a plain GDP_Error, or a KeyError, for its own rows
            return str(row.name)
        while (source := of(row.parent_block()).rows.get(row)) is not None:
            row = source
        return str(row.name)


def _blocks(lp: Any, name: str) -> list[Any]:
    found = lp.component(name)
    return [] if found is None else list(found.values())


def _row(name: str, form: LinearForm, equality: bool = False) -> Row:
    """`form <= 0`, with the constant on the right."""
    return Row(name, tuple(form), form.constant.scaled(-1.0), equality)
