"""compare: relaxations of the same rules side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gdpnet.errors import InputError
from gdpnet.extras import need
from gdpnet.ir.batch import as_batch
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.model import RuleModel
from gdpnet.projection.projector import Projector
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.status import Status
from gdpnet.study._measured import Measured, Samples, Spread, measure, projected
from gdpnet.study._numbers import number, percent
from gdpnet.study._relaxations import parse_all, usual_relaxations

if TYPE_CHECKING:
    from pandas import DataFrame

_SIZES = ("variables", "rows", "disjuncts")

PREDICTION = "prediction"
"""What tables call the outputs before any projection."""

_REFERENCE = "exact"


def compare(
    rules: RuleModel,
    yhat: Any,
    x: Any = None,
    relaxations: str | Sequence[str | Plan] | None = None,
    *,
    norm: str = "l1",
    weights: Any = None,
    tolerance: float = TOLERANCES.satisfied,
    threads: int | None = 1,
    progress: Callable[[str, float], None] | None = None,
) -> Comparison:
    """Project the same predictions in several relaxations, and measure what each costs and brings.

    A relaxation is named as on the command line: `"cnf"` (every rule by itself), `"pdnf:K"` (the
    first K rules merged), `"plan:BUDGET"` (merged by `gdpnet.plan.choose`), `"adaptive"`, `"dnf"`,
    each with a solver where wanted: `"dnf:highs"` is the DNF written out and solved by HiGHS,
    `"dnf"` the same by the exact engine. A `Plan` may stand in the list too. What cannot be had,
    such as a DNF with too many products to be written down, has a line with a note that says why.

    Args:
        rules: the rules.
        yhat: predictions, `batch x d`.
        x: inputs, `batch x p`; None where the rules have none.
        relaxations: names and plans, or names with commas; a sensible few where not given.
        norm: of the distance, `"l1"` or `"l2"`; relaxations that do not know it have a line with a
            note.
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        tolerance: a rule counts as satisfied within it.
        threads: of the solvers; one, so that times compare, where not given.
        progress: called with what is worked on, "exact" (answers that all are compared with) or
            the name of a relaxation, and the share of all work that is done.

    Returns:
        The comparison: `table`, `per_rule`, `to_html`.

    Example:
        >>> import gdpnet.study, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.a = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 6))
        >>> m.b = gdpnet.rule(gdpnet.any_of(m.y <= 4, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> found = gdpnet.study.compare(rules, [[5.0], [8.0]], relaxations="cnf,dnf")
        >>> found.table[["relaxation", "variables_max", "gap_max", "csat"]].round(3)
          relaxation  variables_max  gap_max  csat
        0        cnf           14.0    0.667   0.5
        1        dnf            8.0    0.000   1.0
    """
    if not isinstance(rules, RuleModel):
        raise InputError(f"rules: expected a gdpnet.RuleModel, got {type(rules).__name__}.")
    batch = as_batch(x, yhat, rules.input_names, rules.output_names, y_name="yhat")
    inputs, predictions = batch.x.detach().cpu(), batch.y.detach().cpu()
    if not len(predictions):
        raise InputError("yhat: expected at least one sample, got none.")
    asked = usual_relaxations(rules) if relaxations is None else parse_all(relaxations, rules)
    labels = [_REFERENCE, *(relaxation.label for relaxation in asked)]

    def tick(stage: int, done: float) -> None:
        if progress is not None:
            progress(labels[stage], (stage + done) / len(labels))

    projector = Projector(rules, norm=norm, weights=weights)
    exact = projected(projector, predictions, inputs, partial(tick, 0))
    samples = Samples(rules, inputs, predictions, weights, tolerance, exact, norm)
    measured = [
        measure(samples, relaxation, threads, partial(tick, stage))
        for stage, relaxation in enumerate(asked, 1)
    ]
    if all(one.note for one in measured):
        raise InputError(f"None of the relaxations can be had. {measured[0].note}")
    return Comparison(samples, tuple(measured), threads)


class Line(NamedTuple):
    """A line of the table for people: a name and a cell for each relaxation; a title has none."""

    name: str
    cells: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Comparison:
    """Relaxations side by side; made by `compare`.

    Attributes:
        samples: what they were measured on.
        measured: one for each relaxation.
        threads: of the solvers; None where they chose.
    """

    samples: Samples
    measured: tuple[Measured, ...]
    threads: int | None

    @cached_property
    def table(self) -> DataFrame:
        """One row a relaxation.

        Columns:

        - `relaxation` as it was asked for, `norm`, `solver` that finished;
        - `variables`, `rows`, `disjuncts`, `nonzeros`, each with `_mean` and `_max` over the
          samples: the linear program of a sample's active rules, as `gdpnet.convexify` writes it
          (for `adaptive` of the last round); `written_out`: whether it was really written down;
        - `compile_seconds`: time to get ready for all patterns of active rules met (with planning);
        - `seconds_per_sample`: time once that is done;
        - `value_mean`: mean optimal value, a lower bound on the distance; `distance_mean`: mean
          distance of the point to the prediction; `gap_mean`, `gap_max`: the exact distance less
          the value (all over samples without conflict). With norm="l2" values and gaps are those
          of squared distances, `squared_value_mean`, `squared_gap_mean`, `squared_gap_max`, and
          the distance is `l2_distance_mean`: tables of different norms share no such column;
        - `csat`: share of samples that satisfy all rules, global constraints and bounds;
          `csat_conflict_free`: the same where that is possible at all. Rules that may be broken at
          a price do not count here;
        - where there are prices, `priced_held`: share of the rules with a price that hold where
          they apply; `price_mean`: what is paid, over samples that are answered. Values and gaps
          have prices in them;
        - `satisfied`, `projected`, ...: number of samples of each `Status`;
        - `note`: why there are no numbers, where there are none.
        """
        rows = []
        squared, own = ("", "") if self.samples.norm == "l1" else ("squared_", "l2_")
        for one in self.measured:
            row: dict[str, Any] = {"relaxation": one.relaxation.label, "norm": self.samples.norm}
            row["solver"] = one.solver
            row["written_out"] = one.relaxation.written_out
            for name in ("variables", "rows", "disjuncts", "nonzeros"):
                row |= _spread(name, getattr(one, name))
            row |= {name: getattr(one, name) for name in ("compile_seconds", "seconds_per_sample")}
            row |= {f"{squared}value_mean": one.value, f"{own}distance_mean": one.distance}
            row |= _spread(f"{squared}gap", one.gap)
            row |= {"csat": one.csat, "csat_conflict_free": one.csat_conflict_free}
            if self.priced:
                row |= {"priced_held": one.priced_held, "price_mean": one.price}
            row |= {status.name.lower(): one.statuses.get(status, 0) for status in Status}
            rows.append(row | {"note": one.note})
        return need("pandas", "study").DataFrame(rows)

    @cached_property
    def per_rule(self) -> DataFrame:
        """How often each rule is active and, where it is, satisfied: one row a rule and relaxation.

        Columns `rule` (after the rules `global constraints` and `all together`), `relaxation`
        (first `prediction`, the outputs before any projection), `active`, `satisfied`. Samples in
        conflict are left out.
        """
        rows = [
            {"rule": rule, "relaxation": label, "active": active, "satisfied": share}
            for label, shares in self.shares().items()
            for (rule, active), share in zip(self.activity(), shares, strict=True)
        ]
        return need("pandas", "study").DataFrame(rows)

    def activity(self) -> list[tuple[str, float]]:
        """Rules, global constraints and all together, and how often each applies."""
        active = self._active().mean(0) if len(self._active()) else np.zeros(len(self._names))
        return list(zip(self._names, active.tolist(), strict=True))

    def shares(self) -> dict[str, list[float]]:
        """How often what `activity` lists holds, by relaxation; NaN where it never applies."""
        held = {PREDICTION: self.samples.held(self.samples.yhat)}
        held |= {one.relaxation.label: one.held for one in self.measured if one.held is not None}
        active, free = self._active(), self.samples.conflict_free
        return {
            label: [
                float(column[on].mean()) if on.any() else float("nan")
                for column, on in zip(mask[free].T, active.T, strict=True)
            ]
            for label, mask in held.items()
        }

    @property
    def _names(self) -> list[str]:
        return [*self.samples.rules.names, "global constraints", "all together"]

    def _active(self) -> np.ndarray:
        active = self.samples.rules.active(self.samples.x).numpy()[self.samples.conflict_free]
        return np.column_stack([active, np.ones((len(active), 2), dtype=bool)])

    # ---- for people ------------------------------------------------------------------------

    @property
    def priced(self) -> bool:
        """Whether a rule or a disjunct has a price."""
        data = self.samples.rules.data
        return bool(data.priced) or not all(data.hard)

    @property
    def headers(self) -> list[str]:
        """Names of the relaxations."""
        return [one.relaxation.label for one in self.measured]

    def lines(self) -> list[Line]:
        """The table for people: relaxations are columns, and units stand in the names."""

        def line(name: str, cell: Callable[[Measured], str]) -> Line:
            return Line(name, tuple("" if one.note else cell(one) for one in self.measured))

        def size(name: str) -> Line:
            return line(f"{name}, mean / most", lambda one: _size(one, getattr(one, name)))

        met = [s for s in Status if any(one.statuses.get(s) for one in self.measured)]
        return [
            line("solver", lambda one: one.solver),
            *(
                []
                if self.samples.norm == "l2"
                else [Line("Linear program of a sample"), *map(size, _SIZES)]
            ),
            Line("Time"),
            line("compile, ms", lambda one: number(1e3 * one.compile_seconds)),
            line("a sample, µs", lambda one: number(1e6 * one.seconds_per_sample)),
            Line("Tightness, samples without conflict"),
            line(f"mean value{self.squared}", lambda one: number(one.value)),
            line(f"mean distance{self.own}", lambda one: number(one.distance)),
            line(f"mean gap to exact{self.squared}", lambda one: number(one.gap.mean)),
            line(f"largest gap{self.squared}", lambda one: number(one.gap.most)),
            Line("Samples that satisfy all rules" + (" that have to hold" if self.priced else "")),
            line("of all, %", lambda one: percent(one.csat)),
            line("of those without conflict, %", lambda one: percent(one.csat_conflict_free)),
            *(
                [
                    Line("Rules with a price"),
                    line("that hold, % of those that apply", lambda one: percent(one.priced_held)),
                    line("mean price paid", lambda one: number(one.price)),
                ]
                if self.priced
                else []
            ),
            Line("Samples by status"),
            *(line(s.name, lambda one, s=s: str(one.statuses[s])) for s in met),  # type: ignore[misc]
        ]

    @property
    def squared(self) -> str:
        """What stands behind the name of a value or a gap, where it is of squared distances."""
        return "" if self.samples.norm == "l1" else ", squared distance"

    @property
    def own(self) -> str:
        """What stands behind the name of a distance that is not l1."""
        return "" if self.samples.norm == "l1" else ", l2"

    def notes(self) -> list[str]:
        """What has to be said about single relaxations."""
        told = [f"{one.relaxation.label}: {one.note}" for one in self.measured if one.note]
        bracketed = any(not one.relaxation.written_out and not one.note for one in self.measured)
        if bracketed and self.samples.norm == "l1":
            told.append("Sizes in brackets: the program was not written down.")
        return told

    def summary(self) -> str:
        """What the relaxations were measured on, in sentences."""
        samples = self.samples
        as_predicted = int(samples.held(samples.yhat)[:, -1].sum())
        conflicts = int((samples.exact.status == Status.CONFLICT).sum())
        exact = samples.exact.distance[samples.proved]
        text = (
            f"{len(samples)} samples; {as_predicted} predictions satisfy all rules as they are, "
            f"{conflicts or 'none'} {'has' if conflicts == 1 else 'have'} rules in conflict."
        )
        if len(exact):
            which = "" if self.samples.norm == "l1" else "l2 "
            text += f" Exact {which}distance {number(exact.mean())} on average."
        threads = {None: "Threads as solvers choose", 1: "One thread"}
        return f"{text} {threads.get(self.threads, f'{self.threads} threads')}."

    def __repr__(self) -> str:
        rows = [["", *self.headers]] + [[name, *cells] for name, cells in self.lines()]
        widths = [max(len(row[k]) for row in rows if k < len(row)) for k in range(len(rows[0]))]
        text = [
            "  ".join(
                cell.ljust(width) if k == 0 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=False))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*text, self.summary(), *self.notes()])

    def _repr_html_(self) -> str:
        from gdpnet.study.page import table_markup

        rows = [[name, *cells] for name, cells in self.lines()]
        return table_markup(["", *self.headers], rows, caption=self.summary(), numbers=True)

    def to_html(self, path: str | os.PathLike[str], title: str = "Rules", origin: str = "") -> Path:
        """Write a page with the table, pictures and the rules; it needs no other file.

        Args:
            path: the file.
            title: name of the model, for the heading.
            origin: where inputs and predictions came from, in a sentence.

        Returns:
            The path.
        """
        from gdpnet.study._comparison_page import page_of

        file = Path(path)
        page_of(self, title, origin).write(file)
        return file


def _spread(name: str, spread: Spread) -> dict[str, float]:
    numbers = asdict(spread)
    return {f"{name}_mean": numbers["mean"], f"{name}_max": numbers["most"]}


def _size(one: Measured, spread: Spread) -> str:
    if np.isnan(spread.mean):
        return "none"
    text = f"{spread.mean:.1f} / {spread.most:.0f}"
    return text if one.relaxation.written_out else f"({text})"
