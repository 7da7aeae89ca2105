"""Convex programs whose numbers are expressions of parameters.

    minimise    sum_j (q_j v_j + p_j v_j^2 / 2)
    subject to  A v <= b  or  A v == b,  lower <= v <= upper,  A v - b in cones

Entries of A, b and q are `number + sum(multiplier * atom)`, an atom being an expression of the
parameters; p is numbers, since a square of anything else is that of a column of its own, with a row
that says what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from gdpnet.ir.atoms import Evaluator, Tree
from gdpnet.ir.data import Row
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.lp.conic import Cone, ConeKind, ConicStructure
from gdpnet.relaxation.program import Variable


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


class Numbers(NamedTuple):
    """A program for a batch of parameters.

    Attributes:
        entries: of A, `batch x entries`, as `ParametricProgram.structure` orders them.
        bound: b, `batch x rows`.
        cost: q, `batch x n`.
    """

    entries: torch.Tensor
    bound: torch.Tensor
    cost: torch.Tensor


@dataclass(frozen=True)
class ParametricProgram:
    """A convex program, its numbers parametric.

    Attributes:
        variables: what each column is.
        lower, upper: bounds that are numbers, `n`; others are rows.
        rows: with names of the constraints (or variables) they came from.
        costs: of each column.
        square: p, `n`.
        curved: columns that what is minimised is curved in, bool `n`.
        cones: rows that are in cones; none where the program is linear or quadratic.
    """

    variables: tuple[Variable, ...]
    lower: np.ndarray
    upper: np.ndarray
    rows: tuple[Row, ...]
    costs: tuple[Coefficient, ...]
    square: np.ndarray
    curved: np.ndarray
    cones: tuple[ConicRows, ...]

    @property
    def is_linear(self) -> bool:
        """Whether it is a linear program."""
        return not self.cones and not self.square.any()

    @cached_property
    def every(self) -> tuple[Row, ...]:
        """The rows, and behind them the members of cones."""
        return (*self.rows, *(row for cone in self.cones for row in cone.members))

    @cached_property
    def structure(self) -> ConicStructure:
        """The program without its numbers, as solvers of cones take it."""
        first, cones = len(self.rows), []
        for cone in self.cones:
            cones.append(Cone(cone.kind, first, len(cone.members), cone.exponent))
            first += len(cone.members)
        return ConicStructure(
            *(self.lower, self.upper),
            start=np.cumsum([0, *(len(row.terms) for row in self.every)]),
            column=np.array([j for row in self.every for j, _ in row.terms], dtype=np.int64),
            equality=np.array([row.equality for row in self.every], dtype=bool),
            cones=tuple(cones),
        )

    @cached_property
    def _table(self) -> AtomTable:
        entries = [a for row in self.every for _, a in row.terms]
        bounds = [row.bound for row in self.every]
        return AtomTable([*entries, *bounds, *self.costs])

    def evaluate(self, parameters: torch.Tensor) -> Numbers:
        """Its numbers for a batch, differentiable.

        Args:
            parameters: `batch x parameters`, float64, as the atoms number them.
        """
        return self._split(self._table.evaluate(parameters))

    def constants(self) -> Numbers:
        """Its numbers without what depends on parameters, a batch of one."""
        return self._split(self._table.constant[None])

    def _split(self, values: torch.Tensor) -> Numbers:
        entries, rows = int(self.structure.start[-1]), len(self.every)
        return Numbers(
            values[:, :entries], values[:, entries : entries + rows], values[:, entries + rows :]
        )

    @cached_property
    def weight_of(self) -> np.ndarray:
        """Column of the weight of the product that each column is a copy for, `n`; -1 for none."""
        weights = {(v.rules, v.term): j for j, v in enumerate(self.variables) if v.kind == "weight"}
        found = [weights.get((v.rules, v.term), -1) if v.term else -1 for v in self.variables]
        return np.array(found, dtype=np.int64)

    def with_squares(
        self, terms: Sequence[tuple[float, LinearForm]], bends: bool = True
    ) -> ParametricProgram:
        """The same with `weight / 2 * form^2` added to what is minimised, for each term.

        Args:
            terms: weights, and forms in the columns.
            bends: whether their columns count as curved.
        """
        variables, rows, costs = list(self.variables), list(self.rows), list(self.costs)
        square, lower, upper = list(self.square), list(self.lower), list(self.upper)
        curved = list(self.curved)
        for weight, form in terms:
            for column in form.columns if bends else ():
                curved[column] = True
            if len(form.columns) == 1:
                ((column, a),) = form
                if a.is_number:
                    square[column] += weight * a.number**2
                    costs[column] = costs[column] + form.constant.scaled(weight * a.number)
                    continue
            column = len(variables)
            name = f"square {column}"
            variables.append(Variable("curve", name))
            square.append(weight)
            curved.append(True)
            lower.append(-np.inf)
            upper.append(np.inf)
            costs.append(Coefficient())
            minus = form.times(Coefficient(-1.0))
            one = (column, Coefficient(1.0))
            rows.append(Row(name, (*minus, one), form.constant, True))
        return replace(
            self,
            variables=tuple(variables),
            rows=tuple(rows),
            costs=tuple(costs),
            square=np.array(square, dtype=float),
            lower=np.array(lower, dtype=float),
            upper=np.array(upper, dtype=float),
            curved=np.array(curved, dtype=bool),
        )


class AtomTable:
    """`constant + M psi(x)` for a list of coefficients.

    Args:
        coefficients: the list.
    """

    def __init__(self, coefficients: Sequence[Coefficient]) -> None:
        known: dict[Tree, int] = {}
        triples = [
            (place, known.setdefault(atom, len(known)), multiplier)
            for place, coefficient in enumerate(coefficients)
            for atom, multiplier in coefficient.atoms.items()
        ]
        self.atoms = list(known)
        self.constant = torch.tensor([c.number for c in coefficients], dtype=torch.float64)
        self.to = torch.tensor([t for t, _, _ in triples], dtype=torch.int64)
        self.atom = torch.tensor([a for _, a, _ in triples], dtype=torch.int64)
        self.by = torch.tensor([m for *_, m in triples], dtype=torch.float64)

    def evaluate(self, parameters: torch.Tensor) -> torch.Tensor:
        """Values of the coefficients, `batch x coefficients`."""
        values = self.constant.expand(len(parameters), -1)
        if not self.atoms:
            return values
        evaluate = Evaluator(parameters)
        psi = torch.stack([evaluate(atom) for atom in self.atoms], 1)
        return values.index_add(1, self.to, psi[:, self.atom] * self.by)
