"""Disjunctive programs of single samples: projection, least violation, feasibility."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gdpnet.ir.compressed import Compressed
from gdpnet.ir.data import Clause
from gdpnet.ir.rules import Evaluated, Rules, refuse_curved
from gdpnet.ir.steps import off_step, power_of_two, round_to_steps, steps
from gdpnet.solve.milp.disjunctive import DisjunctiveProgram
from gdpnet.solve.milp.frame import Frames
from gdpnet.solve.milp.squares import Squares


def _steps(rules: Rules) -> list[tuple[int, float]]:
    return steps(rules.data)


class _Columns:
    """Bounds of all columns, and which are whole numbers, as arrays."""

    def __init__(self, rules: Rules) -> None:
        columns = rules.data.columns
        self.lower = np.array([column.lower for column in columns])
        self.upper = np.array([column.upper for column in columns])
        self.integer = np.array([column.integer for column in columns], dtype=bool)


@dataclass(frozen=True)
class RulesAtSample:
    """The rules for one sample, as numpy arrays.

    Attributes:
        rules: the rule model.
        rows: by their nonzeros, `rows x n`.
        bound: `rows`.
        equality: bool `rows`.
        clauses: the ones that apply.
        prices: of booleans, where they have one.
        least: what the size of a row counts at least, as in `RowValues`.
    """

    rules: Rules
    rows: Compressed
    bound: np.ndarray
    equality: np.ndarray
    clauses: tuple[Clause, ...]
    prices: Mapping[int, float] = field(default_factory=dict)
    least: float = 1.0

    @staticmethod
    def of(rules: Rules, evaluated: Evaluated, index: int) -> RulesAtSample:
        """RulesAtSample `index` of a batch."""
        values, rows = evaluated.rows, rules.table.entries
        if len(values.varying):
            given = values.coefficients[index].detach().cpu().numpy()
            rows = rows.filled(values.varying.cpu().numpy(), given)
        active = evaluated.clauses[index].tolist()
        return RulesAtSample(
            rules=rules,
            rows=rows.without_zeros(),
            bound=values.bound[index].detach().cpu().numpy(),
            equality=values.equality.cpu().numpy(),
            clauses=tuple(c for c, on in zip(rules.data.clauses, active, strict=True) if on),
            prices=dict(zip(rules.data.priced, evaluated.prices[index].tolist(), strict=True)),
            least=values.least,
        )

    @cached_property
    def matrix(self) -> np.ndarray:
        """The rows as a dense matrix, `rows x n`."""
        return self.rows.dense()

    @cached_property
    def scale(self) -> np.ndarray:
        """`max(least, |b|, max|a|)` of each row."""
        return np.maximum(self.least, self.size)

    @cached_property
    def unit(self) -> np.ndarray:
        """What brings each row to a largest coefficient of about 1.

        Solvers' tolerances are absolute: rows in small units would count for nothing.
        """
        return power_of_two(self.rows.largest)

    @cached_property
    def size(self) -> np.ndarray:
        """`max(|b|, max|a|)` of each row; 1 for a row of zeros."""
        size = np.maximum(np.abs(self.bound), self.rows.largest)
        return np.where(size > 0.0, size, 1.0)

    @property
    def lower(self) -> np.ndarray:
        """Lower bounds of all columns."""
        return self.rules.cache[_Columns].lower

    @property
    def upper(self) -> np.ndarray:
        """Upper bounds of all columns."""
        return self.rules.cache[_Columns].upper

    @property
    def integer(self) -> np.ndarray:
        """Which columns are whole numbers."""
        return self.rules.cache[_Columns].integer

    def _scaled(self, integer: np.ndarray) -> tuple[Compressed, np.ndarray]:
        """Rows in their units; those over integers alone say what whole numbers can.

        Args:
            integer: columns that are whole, bool `n`.
        """
        rows, bound = self.rows.by(self.unit), self.bound.copy()
        ends, column = rows.start.tolist(), rows.column
        stepping = [
            (i, step)
            for i, step in self.rules.cache[_steps]
            if integer[column[ends[i] : ends[i + 1]]].all()
        ]
        round_to_steps([(i, step) for i, step in stepping if not self.equality[i]], bound)
        bound *= self.unit
        never = [i for i, step in stepping if self.equality[i] and off_step(self.bound[i], step)]
        if never:
            kept = np.ones(len(bound))
            kept[never] = 0.0
            rows, bound[never] = rows.by(kept).without_zeros(), 1.0
        return rows, bound

    def largest(self, yhat: np.ndarray, ranges: bool) -> float:
        """The largest number that a solver has to do with.

        Args:
            yhat: prediction, `d`.
            ranges: count the bounds of integers as well.
        """
        ends = np.concatenate([self.lower[self.integer], self.upper[self.integer]])
        ends = ends[np.isfinite(ends)] if ranges else ends[:0]
        return float(np.abs(np.concatenate([yhat, self.bound * self.unit, ends])).max(initial=0.0))

    def near(self, yhat: np.ndarray) -> np.ndarray:
        """The prediction, no farther out of the outputs' bounds than these are apart."""
        lower, upper = self.lower[: len(yhat)], self.upper[: len(yhat)]
        return np.clip(yhat, lower - (upper - lower), upper + (upper - lower))

    def paid(self, literals: Iterable[int]) -> float:
        """What literals that are true cost."""
        return sum(self.prices.get(k - 1, 0.0) for k in literals if k > 0)

    def clip(self, yhat: np.ndarray) -> np.ndarray:
        """The prediction within the outputs' bounds: it changes the distance by a constant."""
        d = len(yhat)
        return np.clip(yhat, self.lower[:d], self.upper[:d])

    def projection(
        self,
        start: np.ndarray,
        weights: np.ndarray,
        *,
        price_unit: float = 1.0,
        as_written: bool = False,
    ) -> DisjunctiveProgram:
        """Least `sum w |y - start|` and prices over everything that holds; columns (z, eta).

        Args:
            start: prediction within the bounds, `d`.
            weights: `d`.
            price_unit: prices are divided by this.
            as_written: rows over integers are left as they are, to be broken by an amount.
        """
        refuse_curved(self.rules, "solver: MILP()")
        d, n = len(start), len(self.lower)
        number = len(self.bound)
        scaled, bound = self._scaled(self.integer & (not as_written))
        # y - eta <= start and -y - eta <= -start, where that is not said by `moves`
        apart = np.flatnonzero(self.integer[:d] | as_written)
        k = len(apart)
        rows = scaled.widened(n + d)
        for sign in (1.0, -1.0) if k else ():
            pairs = np.stack([apart, n + apart], 1).ravel()
            rows = rows.above(
                Compressed(np.arange(0, 2 * k + 1, 2), pairs, np.tile([sign, -1.0], k), n + d)
            )
        moving = np.setdiff1d(np.arange(d), apart).tolist()
        return DisjunctiveProgram(
            cost=np.concatenate([np.zeros(n), weights]),
            rows=rows,
            bound=np.concatenate([bound, start[apart], -start[apart]]),
            equality=np.concatenate([self.equality, np.zeros(2 * k, dtype=bool)]),
            lower=np.concatenate([self.lower, np.zeros(d)]),
            upper=np.concatenate([self.upper, np.full(d, np.inf)]),
            integer=np.concatenate([self.integer, np.zeros(d, dtype=bool)]),
            global_rows=(*self.rules.data.global_rows, *range(number, number + 2 * k)),
            booleans=self.rules.data.booleans,
            clauses=self.clauses,
            prices={k: price / price_unit for k, price in self.prices.items()},
            moves={j: (n + j, float(start[j])) for j in moving},
            frames=self.rules.cache[Frames],
        )

    def squared(
        self, yhat: np.ndarray, weights: np.ndarray, *, unit: float, price_unit: float = 1.0
    ) -> DisjunctiveProgram:
        """Least `sum (w (y - yhat) / unit)^2` and prices over everything that holds, by tangents.

        Columns (z, t), t being the squares of what outputs move by from `c = near(yhat)`. What c
        itself costs is left out, else little would be left of the digits of large predictions:
        `(y - yhat)^2 - (c - yhat)^2 = (y - c)^2 + 2 (c - yhat) (y - c)`, in which no term is
        negative. There is no tangent yet but at c.

        Args:
            yhat: prediction, `d`.
            weights: `d`.
            unit: distances are divided by this, prices by its square.
            price_unit: prices are divided by this.
        """
        refuse_curved(self.rules, "solver: MILP()")
        d, n = len(yhat), len(self.lower)
        rows, bound = self._scaled(self.integer)
        away, centre, slope = np.arange(n, n + d), self.near(yhat), weights / unit
        cost = np.concatenate([2.0 * slope**2 * (centre - yhat), np.zeros(n - d), np.ones(d)])
        return DisjunctiveProgram(
            cost=cost,
            rows=rows.widened(n + d),
            bound=bound,
            equality=self.equality,
            lower=np.concatenate([self.lower, np.zeros(d)]),
            upper=np.concatenate([self.upper, np.full(d, np.inf)]),
            integer=np.concatenate([self.integer, np.zeros(d, dtype=bool)]),
            global_rows=self.rules.data.global_rows,
            booleans=self.rules.data.booleans,
            clauses=self.clauses,
            prices={k: price / (price_unit * unit**2) for k, price in self.prices.items()},
            squares=Squares.at_centre(*(np.arange(d), away, slope, centre, self.integer[:d])),
            frames=self.rules.cache[Frames],
        )

    def as_written(self) -> DisjunctiveProgram:
        """Everything that must hold, without a cost; rows over integers are left as they are."""
        every = np.ones(len(self.lower), dtype=bool)
        program = self.feasibility(self.rules.data.global_rows, self.clauses, every, ~every)
        return replace(program, integer=self.integer, prices=self.prices)

    def feasibility(
        self,
        global_rows: Sequence[int],
        clauses: Sequence[Clause],
        bounded: np.ndarray,
        integer: np.ndarray,
    ) -> DisjunctiveProgram:
        """Any point that satisfies some of the constraints.

        Args:
            global_rows: rows that must hold.
            clauses: clauses that must hold.
            bounded: columns whose bounds count, bool `n`.
            integer: columns that must be whole, bool `n`.
        """
        rows, bound = self._scaled(integer)
        return DisjunctiveProgram(
            cost=np.zeros(len(self.lower)),
            rows=rows,
            bound=bound,
            equality=self.equality,
            lower=np.where(bounded, self.lower, -np.inf),
            upper=np.where(bounded, self.upper, np.inf),
            integer=integer,
            global_rows=global_rows,
            booleans=self.rules.data.booleans,
            clauses=clauses,
            curved={i: (i, float(self.unit[i])) for i in self.rules.data.curved},
        )

    def least_violation(
        self,
        y: np.ndarray,
        clauses: Sequence[Clause],
        soft: Collection[int],
        hard: Collection[int],
        level: float,
    ) -> DisjunctiveProgram:
        """Least t such that the clauses hold within t (scaled), for some auxiliaries.

        Columns are (z, t) with the outputs fixed at y.

        Args:
            y: outputs, `d`.
            clauses: clauses that must hold.
            soft: global rows that hold within t as well.
            hard: global rows that hold within `level`.
            level: see `hard`.
        """
        d, n = len(y), len(self.lower)
        # Judged by their own size they are written at it: tolerances of solvers are absolute.
        unit = np.ones(len(self.bound)) if self.least > 0.0 else 1.0 / self.size
        lines, right, scale = self.rows.by(unit), self.bound * unit, self.scale * unit
        # Every row twice: `a z - s t <= b`, and for equalities also `-a z - s t <= -b`; then
        # once more without t for the hard ones.
        written = lines.with_column(-scale).above(
            lines.by(-np.ones(len(scale))).with_column(-scale)
        )
        written = written.above(lines.widened(n + 1))
        bound = np.concatenate([right, -right, right + level * scale])
        rows = len(right)

        def softened(indices: Collection[int]) -> tuple[int, ...]:
            return tuple(indices) + tuple(rows + i for i in indices if self.equality[i])

        hard_rows = [2 * rows + i for i in hard]
        back = [i for i in hard if self.equality[i]]
        if back:  # a hard equality is two inequalities
            opposite = lines.take(back)
            written = written.above(opposite.by(-np.ones(len(back))).widened(n + 1))
            bound = np.concatenate([bound, -right[back] + level * scale[back]])
            hard_rows += range(3 * rows, 3 * rows + len(back))
        fixed = (
            np.concatenate([y, self.lower[d:], [0.0]]),
            np.concatenate([y, self.upper[d:], [np.inf]]),
        )
        booleans = tuple(
            replace(b, true_rows=softened(b.true_rows), false_rows=softened(b.false_rows))
            for b in self.rules.data.booleans
        )
        whole = np.concatenate([np.zeros(d, dtype=bool), self.integer[d:], [False]])
        return DisjunctiveProgram(
            cost=np.concatenate([np.zeros(n), [1.0]]),
            rows=written,
            bound=bound,
            equality=np.zeros(len(bound), dtype=bool),
            lower=fixed[0],
            upper=fixed[1],
            integer=whole,
            global_rows=(*softened(soft), *hard_rows),
            booleans=booleans,
            clauses=clauses,
            curved={at + i: (i, unit[i]) for at in (0, 2 * rows) for i in self.rules.data.curved},
        )
