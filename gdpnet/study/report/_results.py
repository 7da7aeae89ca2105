"""Results: the rows of a study, asked for means and standard deviations over its seeds."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gdpnet.errors import InputError
from gdpnet.study.training._folder import KEYS, Row
from gdpnet.study.training._methods import METHODS

_COUNTED = re.compile(r"(pdnf|steps):(\d+)|(cnf|dnf)-mixed:([\d.]+)")


@dataclass(frozen=True)
class Statistic:
    """A number over seeds.

    Attributes:
        mean: NaN where there is none.
        deviation: standard deviation of the sample; 0 for a single seed.
        low: least.
        high: most.
        count: how many seeds.

    Example:
        >>> Statistic.of([1.0, 3.0]).mean
        2.0
    """

    mean: float
    deviation: float
    low: float
    high: float
    count: int

    @property
    def error(self) -> float:
        """Standard error of the mean; 0 for a single seed."""
        return self.deviation / math.sqrt(max(1, self.count))

    @classmethod
    def of(cls, values: Iterable[float]) -> Statistic:
        """Of the values that are numbers."""
        found = [value for value in values if not math.isnan(value)]
        if not found:
            return cls(math.nan, 0.0, math.nan, math.nan, 0)
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        return cls(statistics.fmean(found), spread, min(found), max(found), len(found))


class Results:
    """Rows of a table of results.

    Args:
        rows: from `StudyFolder.results`.

    Attributes:
        metrics: the task's own, in their order.
        protocols: names, as are `methods` and `splits`; `sizes` are numbers.

    Example:
        >>> row = {"protocol": "paper", "method": "dnf", "size": 5, "seed": 0, "split": "iid"}
        >>> Results([{**row, "mse": 0.5, "csat": 1.0}]).metrics
        ('mse',)
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        if not rows:
            raise InputError("The study has no results yet: train something first.")
        self.rows = list(rows)
        columns = [key for key in rows[0] if key not in KEYS]
        first = columns.index("csat") if "csat" in columns else len(columns)
        self.metrics = tuple(columns[:first])
        self.rules = tuple(key[5:] for key in columns if key.startswith("csat/"))
        self.protocols: tuple[str, ...] = self._values("protocol")
        self.splits: tuple[str, ...] = self._values("split")
        self.sizes: tuple[int, ...] = tuple(sorted(self._values("size")))
        self.seeds: tuple[int, ...] = tuple(sorted(self._values("seed")))
        usual = {name: k for k, name in enumerate(METHODS)}
        found = sorted(self._values("method"), key=lambda name: usual.get(name, len(usual)))
        self.methods = tuple(name for name in found if not _COUNTED.fullmatch(name))

    def _values(self, key: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(row[key] for row in self.rows))

    def at(self, metric: str, **where: Any) -> Statistic:
        """A metric over the seeds.

        Args:
            metric: a column.
            **where: values of other columns, such as `method="dnf"`.
        """
        chosen = [r for r in self.rows if all(r[key] == value for key, value in where.items())]
        return Statistic.of(row.get(metric, math.nan) for row in chosen)

    def merged(self, kind: str) -> dict[int, str]:
        """Methods `pdnf:k` or `steps:s` by the rules they merge; 0 and 1 are the CNF."""
        names = self._values("method")
        matches = [match for match in map(_COUNTED.fullmatch, names) if match and match[1] == kind]
        # s basic steps merge s + 1 rules, or as many as that in several clusters.
        found = {int(match[2]) + (kind == "steps"): match[0] for match in matches}
        if found and "cnf" in names:
            found = {0: "cnf", 1: "cnf", **found}
        return dict(sorted(found.items()))

    def mixed(self, kind: str) -> dict[float, str]:
        """Methods by the share of the KKT gradient, for `"cnf"` or `"dnf"`."""
        known = {0.25: f"{kind}-mixed", 1.0: kind}
        if kind == "dnf":
            known[0.0] = "straight-through"
        names = self._values("method")
        found = {alpha: name for alpha, name in known.items() if name in names}
        for match in filter(None, map(_COUNTED.fullmatch, names)):
            if match[3] == kind:
                found.setdefault(float(match[4]), match[0])
        return dict(sorted(found.items()))

    def sizes_of(self, method: str, protocol: str) -> list[int]:
        """Training sizes at which a method was trained."""
        rows = self.rows
        return sorted(
            {r["size"] for r in rows if r["method"] == method and r["protocol"] == protocol}
        )


def main_share(results: Results) -> str:
    """Satisfaction as the paper counts it, the active rules alone, where the study has it."""
    return "csat_rules" if "csat_rules" in results.rows[0] else "csat"
