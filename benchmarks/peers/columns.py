"""Rules between the columns of four tables, on which the disjunctive refinement layer was tried.

What the rules of Stoian et al. (2025) say of phishing addresses, cervical cancer, home loans and
houses in King County, restated with Pyomo. Their rules have strict sides and ask for whole numbers
by them ("if it is at least 1 and not above 1"): here every strict side is closed with `STRICT`
between, for all peers alike. Rules without conditions on inputs, outputs without bounds.

The tables themselves are not needed: predictions are uniform over plausible ranges, whole numbers
where a column has such, so that most of them break some rule. A distance counts every column in
parts of its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunction

import gdpnet

from .problem import Array

STRICT = 0.05  # more than the 0.01 to which the layer of these rules checks itself
Range = tuple[float, float]
Expression = Any


@dataclass(frozen=True)
class Columns:
    """A table's rules.

    Attributes:
        ranges: of each column.
        whole: columns of whole numbers.
        hold: from the columns, what always holds.
        one_of: from the columns, relations of which one holds, for each rule.
        order: in which columns are outputs, and in which whoever walks through them does.
    """

    ranges: tuple[Range, ...]
    whole: tuple[int, ...]
    hold: Callable[[Any], list[Expression]]
    one_of: Callable[[Any], list[list[Expression]]]
    order: tuple[int, ...]

    def rules(self) -> gdpnet.RuleModel:
        """The rules, outputs in the order of processing."""
        m = pyo.ConcreteModel()
        m.y = pyo.Var(range(len(self.ranges)))
        m.hold = pyo.ConstraintList()
        for relation in self.hold(m.y):
            m.hold.add(relation)
        choices = self.one_of(m.y)
        m.one_of = Disjunction(
            range(len(choices)), rule=lambda _, r: [[relation] for relation in choices[r]]
        )
        return gdpnet.RuleModel(m, outputs=[m.y[j] for j in self.order])

    def scale(self) -> Array:
        """Widths of the ranges, in the order of the outputs."""
        return np.array([self.ranges[j][1] - self.ranges[j][0] for j in self.order])

    def predictions(self, count: int, rng: np.random.Generator) -> Array:
        """Uniform over the ranges, (count, columns)."""
        low, high = np.array(self.ranges).T
        y = rng.uniform(low, high, (count, len(low)))
        whole = list(self.whole)
        y[:, whole] = np.round(y[:, whole])
        return np.ascontiguousarray(y[:, list(self.order)])


def _above(a: Expression, c: float) -> Expression:
    return a >= c + STRICT


def _below(a: Expression, c: float) -> Expression:
    return a <= c - STRICT


def _is_not(a: Expression, c: float) -> list[Expression]:
    return [_below(a, c), _above(a, c)]


def _total(y: Any, columns: Iterable[int]) -> Expression:
    return sum(y[j] for j in columns)


# ---- phishing addresses -------------------------------------------------------------------------


def _addresses_hold(y: Any) -> list[Expression]:
    """The address is at least as long as its host and as all that was counted in it."""
    return [
        y[0] >= y[1],
        y[0] >= 3 * y[19] + y[3] + _total(y, range(4, 18)),
        y[0] >= 3 * y[20] + 4 * y[21] + 4 * y[22] + 2 * y[23],
        y[37] >= y[38],
        *(y[0] - times * y[j] >= 1 for j, times in ((20, 3), (21, 4), (22, 4), (23, 2))),
    ]


def _addresses_one_of(y: Any) -> list[list[Expression]]:
    return [
        [_below(y[21], 1), y[3] >= 1],
        [_below(y[23], 1), y[13] >= 2],
        [_below(y[19], 1), _above(y[25], 0.01)],
        [y[2] <= 0.5, _above(y[25], 0.095)],
        [y[28] <= 0.5, _above(y[25], 0)],
        [y[31] <= 0.5, _above(y[26], 0)],
        [_below(y[1], 30), y[32] >= 2],
        [_below(y[1], 55), y[32] >= 3],
        [_below(y[34], 0.5), _above(y[0], 18)],
        [_below(y[29], 0.5), _above(y[0], 31)],
    ]


_COUNTS: tuple[Range, ...] = ((0, 4),) * 14
_ADDRESSES = Columns(
    ranges=(
        (5, 80), (4, 70), (0, 1), (0, 6), *_COUNTS, (0, 1), (0, 2), (0, 2), (0, 2), (0, 2), (0, 2),
        (0, 1), (-0.1, 0.5), (-0.1, 0.5), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1), (1, 6), (0, 10),
        (0, 1), (0, 1), (0, 1), (0, 20), (0, 20),
    ),
    whole=(0, 1, 2, 3, *range(4, 18), 19, 20, 21, 22, 23, 28, 29, 31, 32, 34),
    hold=_addresses_hold,
    one_of=_addresses_one_of,
    order=(
        18, 22, 24, 27, 29, 30, 32, 33, 34, 35, 36, 38, 37, 21, 3, 31, 26, 28, 2, 19, 25, 23, 13,
        20, 1, *range(4, 13), *range(14, 18), 0,
    ),
)  # fmt: skip


# ---- cervical cancer ----------------------------------------------------------------------------


def _cancer_hold(y: Any) -> list[Expression]:
    return [y[0] >= y[2], y[26] >= y[27]]


def _cancer_one_of(y: Any) -> list[list[Expression]]:
    """What was answered with yes has a number of years, of packs, of diseases."""
    return [
        [y[3] <= 0, y[0] >= y[2]],
        [_below(y[5], 1), y[4] >= 1],
        [_below(y[5], 1), y[4] <= 1],
        [_below(y[5], 1), _above(y[6], 0)],
        [*_is_not(y[7], 1), _above(y[8], 0)],
        [*_is_not(y[9], 1), _above(y[10], 0)],
        [*_is_not(y[11], 1), y[12] >= 1],
        [_below(y[12], 0), _total(y, range(13, 28)) >= y[12]],
        [*_is_not(y[28], 1), y[31] >= 1],
        [*_is_not(y[28], 1), y[31] <= 1],
    ]


_YES: Range = (-1, 2)  # missing answers are -1
_CANCER = Columns(
    ranges=(
        (13, 60), (1, 15), (10, 32), (-1, 8), _YES, (-1, 20), (-1, 20), _YES, (-1, 15), _YES,
        (-1, 15), _YES, (-1, 4), *((-1.0, 1.0),) * 15, _YES, _YES, _YES, _YES, *((0.0, 1.0),) * 4,
    ),
    whole=(0, 1, 2, 3, 4, 7, 9, 11, 12, *range(13, 36)),
    hold=_cancer_hold,
    one_of=_cancer_one_of,
    order=tuple(range(36)),
)  # fmt: skip


# ---- home loans ---------------------------------------------------------------------------------


def _loans_hold(y: Any) -> list[Expression]:
    return [y[1] >= y[2], y[5] >= y[6], *(y[11] >= y[j] for j in (4, 12, 19, 20, 21))]


def _loans_one_of(y: Any) -> list[list[Expression]]:
    return [
        [y[4] <= 0, _above(y[7], 0)],
        [y[8] <= 0, _above(y[10], 0)],
        [y[16] <= 0, _above(y[15], 0)],
        [y[3] <= 1, y[5] >= 0],
        [y[11] <= 3, _above(y[7], 70), _above(y[10], 2)],
    ]


_LOANS = Columns(
    ranges=(
        (33, 95), (0, 600), (0, 400), (0, 200), (-1, 60), (-1, 15), (-1, 15), (-1, 100), (-1, 80),
        (0, 10), (-1, 9), (-1, 80), (-1, 20), (0, 100), (0, 25), (-1, 60), (-1, 60), (0, 230),
        (0, 470), (-1, 30), (-1, 20), (-1, 20), (0, 100),
    ),
    whole=tuple(range(23)),
    hold=_loans_hold,
    one_of=_loans_one_of,
    order=tuple(range(23)),
)  # fmt: skip


# ---- houses -------------------------------------------------------------------------------------


def _houses_hold(y: Any) -> list[Expression]:
    """Living area is that above ground and the basement's."""
    return [y[3] == y[10] + y[11], y[13] >= 0]


def _houses_one_of(y: Any) -> list[list[Expression]]:
    """Years, and what an area, a view or a place costs at least."""
    return [
        [*_is_not(y[13], 0), y[13] - y[12] >= STRICT],
        [y[13] >= 1930, y[13] <= 0],
        [*_is_not(y[6], 1), y[7] >= 1],
        [_below(y[19], 5e6), y[3] >= 2000],
        [*_is_not(y[1], 1), _below(y[3], 800), y[19] >= 1e5],
        [_below(y[14], 98004), _above(y[14], 98005), y[19] >= 4e5],
        [_below(y[14], 98006), _above(y[14], 98008), y[19] >= 225e3],
        [*_is_not(y[14], 98040), y[19] >= 5e5],
        [_below(y[3], 4000), _below(y[2], 2), y[1] >= 3],
    ]


_HOUSES = Columns(
    ranges=(
        (2014, 2015), (0, 6), (0, 5), (400, 6000), (500, 20_000), (1, 3), (0, 1), (0, 4), (1, 5),
        (1, 13), (300, 5000), (0, 2000), (1900, 2015), (0, 2015), (98_001, 98_045), (47.1, 47.8),
        (-122.5, -121.3), (400, 6000), (600, 20_000), (5e4, 6e6),
    ),
    whole=(0, 1, 6, 7, 8, 9, 12, 13, 14),
    hold=_houses_hold,
    one_of=_houses_one_of,
    order=tuple(range(20)),
)  # fmt: skip

TABLES = {
    "phishing": _ADDRESSES,
    "cervical cancer": _CANCER,
    "home loans": _LOANS,
    "houses": _HOUSES,
}
