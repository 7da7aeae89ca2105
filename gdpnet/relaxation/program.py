"""The linear program of a layout, entry by entry as the Pyomo chain writes it.

In a part with rules every block c has a weight for each of its products k, a copy of every
variable that stands in the product, and a copy of the distance in every output:

    minimise    sum_j w_j eta_j
    subject to  a_i y_ck <= b_i weight_ck                     rows of the product, globals
                y_ckj - yhat_j weight_ck <= eta_ckj           and the same with the other sign
                l weight_ck <= y_ck <= h weight_ck,  eta_ck <= (h - l) weight_ck
                sum_k y_ck = y,  sum_k eta_ck = eta,  sum_k weight_ck = 1

With the Euclidean norm the objective is `sum_j w_j^2 eta_j`, and the distance in an output, squared
now, stands in a cone, the hull of the squares in the products:

                (y_ckj - yhat_j weight_ck)^2 <= eta_ckj weight_ck

without an upper bound on eta, since nothing but the objective holds it down in any product. A part
of the squared distance for each output makes several blocks tighter than one for all of them would.

Rows with curves become rows and cones (`cones`).

A variable that stands in some products of a block only has one more copy there, free in the
products without it. Parts without rules, and outputs in no part, are written without copies. Only
entries with the prediction and with coefficients that depend on x differ between samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gdpnet.ir.data import Kind, Role, RuleData
from gdpnet.lp.conic import ConeKind
from gdpnet.relaxation.blocks import ALWAYS, Layout, Part
from gdpnet.relaxation.cones import perspective
from gdpnet.relaxation.products import Product
from gdpnet.relaxation.rows import ONE, RowBuilder, Value
from gdpnet.relaxation.sparse import Array, SparseProgram

_Member = tuple[list[tuple[int, Value]], Value | None]


@dataclass(frozen=True)
class Sizes:
    """How large a relaxation is, in the form that the Pyomo chain gives it.

    Attributes:
        clusters: disjunctions after the basic steps.
        disjuncts: their terms in all.
        variables: columns of the program.
        rows: rows of the program, each side of a range by itself.
        bounds: finite bounds of its columns, which are not counted as rows.
        nonzeros: entries of its matrix.
        cones: those it has; their members are not counted as rows.
    """

    clusters: int
    disjuncts: int
    variables: int
    rows: int
    bounds: int
    nonzeros: int
    cones: int = 0


@dataclass(frozen=True)
class Variable:
    """A column, and where it came from.

    Attributes:
        kind: "value", "distance", "weight", or "curve": what the value of a convex function is at
            most, whose name is that of the row it stands in.
        name: of the variable; empty for a weight.
        rules: names of the rules of its block; empty for what is no copy.
        term: names of the disjuncts of its product; empty for what is no copy, and for the copy
            that is shared by the products in which the variable does not stand.
    """

    kind: str
    name: str
    rules: tuple[str, ...] = ()
    term: frozenset[str] = frozenset()


class RelaxationProgram(SparseProgram):
    """The program of a layout, for all samples that have it.

    Args:
        data: the rules, as `relaxable` gives them.
        layout: parts to write.
        norm: of the distance, "l1" or "l2".

    Attributes:
        variables: what each column is.
        copies: of each product, in the layout's order, the columns that are copies of outputs, by
            output; empty where there is no choice.
        weight_of: column of the weight of the product that each column belongs to; -1 for none.
    """

    def __init__(self, data: RuleData, layout: Layout, norm: str = "l1") -> None:
        super().__init__(data)
        self.layout, self.norm = layout, norm
        self.variables: list[Variable] = []
        self.copies: list[dict[int, int]] = []
        self._weight_of: list[int] = []
        self._within = -1  # weight of the product that is being written
        self._summed: list[int] = []  # columns that are sums of copies
        self._coned: set[int] = set()  # weights that a cone keeps from being negative
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._rows = RowBuilder()
        # A conditional constraint inside a disjunct is a row of that, and nobody's choice.
        self._choosable = {
            n
            for c in data.clauses
            if not c.logic and not (c.guard >= 0 and c.kind is Kind.CONDITIONAL and c.breaking < 0)
            for n in c.literals
            if n > 0
        }
        self._sides = {j: self._bounds(j) for part in layout for j in part.columns}
        for part in layout:
            self._write(part)
        self._compress(self._rows, self._lower, self._upper)
        self.weight_of = np.array(self._weight_of, dtype=np.int64)
        del self._rows, self._lower, self._upper

    def sizes(self) -> Sizes:
        """How large it is."""
        blocks = [b for part in self.layout for b in part.blocks if b.rules]
        return Sizes(
            clusters=len(blocks),
            disjuncts=sum(len(block.products) for block in blocks),
            variables=len(self.variables),
            rows=len(self.bound) - sum(cone.size for cone in self.cones),
            bounds=int(np.isfinite(self.lower).sum() + np.isfinite(self.upper).sum()),
            nonzeros=len(self.column),
            cones=len(self.cones),
        )

    def needed_bounds(self) -> tuple[Array, Array]:
        """Bounds of the columns without those that rows and cones say again, `n` each.

        A solver of cones is slower for every one of them, and where such a bound is tight beside a
        cone the multipliers, and with them derivatives, are not those of the cone.
        """
        lower, upper = self.lower.copy(), self.upper.copy()
        for j, variable in enumerate(self.variables):
            if (variable.kind == "distance" and self.norm == "l2") or variable.kind == "curve":
                lower[j] = -np.inf
            elif variable.kind == "weight":
                upper[j] = np.inf
                if j in self._coned:
                    lower[j] = -np.inf
            elif self.weight_of[j] >= 0:  # its rows leave out bounds that are 0
                lower[j] = -np.inf if lower[j] < 0.0 else lower[j]
                upper[j] = np.inf if upper[j] > 0.0 else upper[j]
        lower[self._summed], upper[self._summed] = -np.inf, np.inf
        return lower, upper

    # ---- parameters ----------------------------------------------------------------------

    def parameters(self, bound: Array, varying: Array, start: Array) -> Array:
        """What samples differ in, `batch x parameters`; see `SparseProgram`."""
        return np.concatenate([bound, varying.reshape(len(bound), -1), start], 1)

    def outputs_at(self, points: Array, parameters: Array) -> Array:
        """The outputs `which` at points of the program, `batch x len(which)`."""
        return points[:, self.outputs]

    def pull_back(
        self, to_moving: Array, to_y: Array, parameters: Array
    ) -> tuple[Array, Array, Array]:
        """Gradients with respect to right sides, coefficients and start; see `SparseProgram`."""
        bound, varying, start = self._split(to_moving)
        outside = np.setdiff1d(np.arange(self.data.outputs), self.which)
        start[:, outside] = to_y[:, outside]  # in no part: they follow their predictions
        return bound, varying, start

    def _bound(self, i: int) -> Value:
        b = self.data.rows[i].bound
        return Value(b.number) if b.is_number else Value(moving=((i, 1.0),))

    def _prediction(self, j: int) -> Value:
        return Value(moving=((self._first_start + j, 1.0),))

    def _bounds(self, j: int) -> tuple[Value | None, Value | None]:
        """Bounds of a variable, from a global row where they depend on the inputs."""
        column = self.data.columns[j]
        sides: list[Value | None] = [
            Value(end) if np.isfinite(end) else None for end in (column.lower, column.upper)
        ]
        for i in self.data.global_rows:
            row = self.data.rows[i]
            if row.is_bound and row.terms[0][0] == j:
                upper = row.role is Role.UPPER
                sides[int(upper)] = self._bound(i) if upper else -self._bound(i)
        return sides[0], sides[1]

    # ---- columns -------------------------------------------------------------------------

    def _column(
        self, variable: Variable, lower: Value | None, upper: Value | None, copy: bool = False
    ) -> int:
        """A column with those bounds that are numbers; a copy may be 0 as well."""
        column = len(self.variables)
        self.variables.append(variable)
        self._weight_of.append(column if variable.kind == "weight" else self._within)
        ends = [None if side is None or side.moving else side.number for side in (lower, upper)]
        if copy and variable.kind == "distance" and self.norm == "l2":
            ends = [0.0, None]
        elif copy:
            numbers = None not in ends
            ends = [min(0.0, ends[0] or 0.0), max(0.0, ends[1] or 0.0)] if numbers else [None, None]
        self._lower.append(-np.inf if ends[0] is None else ends[0])
        self._upper.append(np.inf if ends[1] is None else ends[1])
        for side, sign in ((lower, -1.0), (upper, 1.0)):
            if not copy and side is not None and side.moving:
                bound = side if sign > 0 else -side
                self._rows.add(f"bound of {variable.name}", [(column, Value(sign))], bound)
        return column

    def _reach(self, j: int) -> tuple[Value, Value | None]:
        """Bounds of the distance in an output."""
        lower, upper = self._sides[j]
        if self.norm == "l2":
            return Value(), None
        return Value(), None if lower is None or upper is None else upper - lower

    def _write(self, part: Part) -> None:
        d = self.data.outputs
        for j in part.columns:
            name = self.data.columns[j].name
            self._value_of[j] = self._column(Variable("value", name), *self._sides[j])
            if j < d:
                distance = Variable("distance", name)
                self._distance_of[j] = self._column(distance, *self._reach(j))
        rows = [i for i in part.rows if not self.data.rows[i].is_bound]
        # A row without variables holds or does not, whatever is chosen.
        outside = [i for i in rows if part.convex or not self.data.columns_in(i)]
        for i in outside:
            self._row(i, self._value_of, None)
        if part.convex:
            self.weights += [-1 for block in part.blocks for _ in block.products]
            self.copies += [{} for block in part.blocks for _ in block.products]
            for j in part.columns:
                if j < d:
                    self._epigraph(j, self._value_of[j], self._distance_of[j], None)
            return
        self._summed += [self._value_of[j] for j in part.columns]
        always = [i for i in rows if i not in outside]
        for block in part.blocks:
            self._block(part, always, block.rules, block.products)

    def _block(
        self, part: Part, always: list[int], rules: tuple[int, ...], terms: tuple[Product, ...]
    ) -> None:
        names = tuple(self.data.rules[r].name for r in rules)
        stands = [self._stands(part, always, product) for product in terms]
        weights = []
        copies: dict[tuple[str, int], list[int]] = {}
        for product, present in zip(terms, stands, strict=True):
            term = self.disjuncts(product)
            weight = self._column(Variable("weight", "", names, term), Value(), ONE)
            weights.append(weight)
            self._within = weight
            own: dict[tuple[str, int], int] = {}
            for kind, j in present:
                sides = self._sides[j] if kind == "value" else self._reach(j)
                variable = Variable(kind, self.data.columns[j].name, names, term)
                own[kind, j] = self._column(variable, *sides, copy=True)
                copies.setdefault((kind, j), []).append(own[kind, j])
                self._copy_bounds(own[kind, j], sides, [(weight, ONE)], Value(), variable.name)
            values = {j: column for (kind, j), column in own.items() if kind == "value"}
            self.copies.append({j: c for j, c in values.items() if j < self.data.outputs})
            for i in dict.fromkeys((*product.rows, *always)):
                self._row(i, values, weight, names, term)
            for kind, j in present:
                if kind == "distance":
                    self._epigraph(j, values[j], own[kind, j], weight)
        self._within = -1
        self.weights += weights
        self._rows.add(
            f"choice of {' + '.join(names)}", [(w, ONE) for w in weights], ONE, equality=True
        )
        for (kind, j), columns in copies.items():
            name = self.data.columns[j].name
            if len(columns) < len(terms):
                sides = self._sides[j]
                rest = self._column(Variable(kind, name, names), *sides, copy=True)
                inside = [w for w, s in zip(weights, stands, strict=True) if (kind, j) in s]
                free = [(w, Value(-1.0)) for w in inside]
                self._copy_bounds(rest, sides, free, ONE, name)
                columns = [*columns, rest]
            whole = self._value_of[j] if kind == "value" else self._distance_of[j]
            terms_of_sum = [(whole, ONE), *((c, Value(-1.0)) for c in columns)]
            self._rows.add(f"sum of {name}", terms_of_sum, equality=True)

    def _stands(self, part: Part, always: list[int], product: Product) -> list[tuple[str, int]]:
        """Variables of a product, and distances of its outputs."""
        d = self.data.outputs
        found = {("value", j): None for j in part.columns if j < d}
        for i in (*product.rows, *always):
            found |= {("value", j): None for j in self.data.columns_in(i)}
        for j in part.columns:  # bounds that depend on inputs are rows of every product
            if any(side is not None and side.moving for side in self._sides[j]):
                found["value", j] = None
        return [*found, *(("distance", j) for j in part.columns if j < d)]

    def disjuncts(self, product: Product) -> frozenset[str]:
        """Names of the disjuncts that a product chooses."""
        return frozenset(
            self.data.booleans[n - 1].name for n in product.literals if n in self._choosable
        )

    # ---- rows ----------------------------------------------------------------------------

    def _row(
        self,
        i: int,
        columns: dict[int, int],
        weight: int | None,
        names: tuple[str, ...] = (),
        term: frozenset[str] = frozenset(),
    ) -> None:
        row = self.data.rows[i]
        terms = [(columns[j], self._coefficient(i, j, a)) for j, a in row.terms]
        bound = self._bound(i)
        curves = []
        for curve in row.curves:
            shape = perspective(curve.shape, curve.exponent)
            head = Variable("curve", row.name, names, term)
            s = self._column(head, None if shape.signed else Value(), None)
            terms.append((s, Value(curve.weight)))
            curves.append((shape, s, curve))
        if weight is None:
            self._rows.add(row.name, terms, bound, row.equality)
        else:
            self._rows.add(row.name, [*terms, (weight, -bound)], equality=row.equality)
        one: _Member = ([], Value(-1.0)) if weight is None else ([(weight, ONE)], None)
        for shape, s, curve in curves:
            arguments = [self._argument(k, columns, weight) for k in curve.arguments]
            members = shape.members(([(s, ONE)], None), one, arguments, _minus)
            self._rows.add_cone(row.name, shape.kind, members, shape.exponent)

    def _argument(self, i: int, columns: dict[int, int], weight: int | None) -> _Member:
        """The argument of a curve as a member of a cone."""
        row = self.data.rows[i]
        terms = [(columns[j], self._coefficient(i, j, a)) for j, a in row.terms]
        if weight is None:
            return terms, self._bound(i)
        return [*terms, (weight, -self._bound(i))], None

    def _epigraph(self, j: int, value: int, distance: int, weight: int | None) -> None:
        name, yhat = self.data.columns[j].name, self._prediction(j)
        if self.norm == "l2":
            away: _Member = ([(value, ONE)], yhat)
            one: _Member = ([], Value(-1.0))
            if weight is not None:
                away, one = ([(value, ONE), (weight, -yhat)], None), ([(weight, ONE)], None)
                self._coned.add(weight)
            members = (([(distance, ONE)], None), one, away)
            self._rows.add_cone(f"distance of {name}", ConeKind.ROTATED, members)
            return
        for sign in (1.0, -1.0):
            terms = [(value, Value(sign)), (distance, Value(-1.0))]
            bound = yhat if sign > 0 else -yhat
            if weight is None:
                self._rows.add(f"distance of {name}", terms, bound)
            else:
                self._rows.add(f"distance of {name}", [*terms, (weight, -bound)])

    def _copy_bounds(
        self,
        copy: int,
        sides: tuple[Value | None, Value | None],
        weight: list[tuple[int, Value]],
        constant: Value,
        name: str,
    ) -> None:
        """`side * (constant + weight)` bounds a copy; `weight` lists columns with factor +-1."""
        symbolic = any(side is not None and side.moving for side in sides)
        for side, sign in zip(sides, (-1.0, 1.0), strict=True):
            if side is None or (side.is_zero and not symbolic):
                continue
            moved = side if sign < 0 else -side
            terms = [(w, moved if a.number > 0 else -moved) for w, a in weight]
            bound = Value() if constant.is_zero else -moved
            self._rows.add(f"bound of {name}", [(copy, Value(sign)), *terms], bound)


def _minus(member: _Member) -> _Member:
    terms, bound = member
    return [(column, -value) for column, value in terms], None if bound is None else -bound


def complete(data: RuleData, layout: Layout) -> Layout:
    """A layout together with the outputs that stand in no part."""
    known = {j for part in layout for j in part.columns}
    return (*layout, *(Part((j,), (), (ALWAYS,)) for j in range(data.outputs) if j not in known))
