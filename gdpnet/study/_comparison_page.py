"""The page of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gdpnet.solve.status import Status
from gdpnet.study import _comparison_figures as figures
from gdpnet.study.page import Page

if TYPE_CHECKING:
    from gdpnet.study.comparison import Comparison

_READING = [
    ("variables, rows, disjuncts", "the linear program of a sample, with the rules that apply to "
     "it, as gdpnet.convexify writes it; bounds are not counted as rows. A disjunct is a term of a "
     "disjunction after the basic steps (a product of disjuncts of merged rules); those that are "
     "empty for all inputs within input_bounds are left out"),
    ("compile", "time to get ready for every pattern of active rules that the samples show: once "
     "for a model, with the planning where there is a plan"),
    ("a sample", "time of a prediction in a large batch, once that is done; predictions that "
     "satisfy everything cost next to nothing and count too"),
    ("value", "the relaxation's optimal value: a lower bound on the distance to the nearest output "
     "that satisfies all rules"),
    ("distance", "how far the relaxation's point is from the prediction; less than the exact "
     "distance only where the point breaks a rule"),
    ("gap", "the exact distance less the value; 0 where the relaxation is tight"),
    ("satisfied", "all active rules, global constraints and bounds hold on the output that is "
     "returned, within the tolerance"),
]  # fmt: skip


_SQUARED = {
    "value": "the relaxation's optimal value: a lower bound on the squared distance to the nearest "
    "output that satisfies all rules",
    "distance": "how far the relaxation's point is from the prediction, in the Euclidean norm, not "
    "squared",
    "gap": "the exact squared distance less the value; 0 where the relaxation is tight",
}


def page_of(comparison: Comparison, title: str, origin: str) -> Page:
    """The page.

    Args:
        comparison: what it shows.
        title: its heading.
        origin: where inputs and predictions came from.
    """
    samples = comparison.samples
    page = Page(f"{title}: relaxations compared")
    page.paragraph(f"{origin} {comparison.summary()}".strip())
    _table(page, comparison)
    _relaxations(page, comparison)
    if samples.norm == "l1":
        page.section("Sizes")
        page.figure(
            figures.sizes(comparison),
            alt=_told(comparison, "variables, mean / most", "Variables of the LP, mean and most: "),
            caption="Dot: mean over the samples. Stroke: the largest. Hollow: the program that the "
            "DNF would have; the exact engine does not write it down.",
        )
    page.section("Times")
    page.figure(
        figures.times(comparison),
        alt=_told(comparison, "a sample, µs", "Microseconds a sample: "),
        caption="Logarithmic axes. Times of the machine on which this page was made.",
    )
    page.section("Tightness")
    page.figure(
        figures.tightness(comparison),
        alt=_told(
            comparison, f"mean gap to exact{comparison.squared}", "Mean gap to the exact distance: "
        ),
        caption="Left: on the line the relaxation is exact on average. Right: how many samples "
        "have a gap larger than what stands below; the lower the curve, the tighter.",
    )
    page.section("Satisfaction of each rule")
    page.figure(
        figures.satisfaction(comparison),
        alt=_told(comparison, "of those without conflict, %", "All rules satisfied, per cent: "),
        caption=f"Per cent of the samples without conflict in which the rule is active, at a "
        f"tolerance of {samples.tolerance:g}. First column: the predictions before any projection.",
    )
    _graph(page, comparison)
    page.section("Rules")
    page.markup(samples.rules._repr_html_())
    _words(page, comparison)
    return page


def _table(page: Page, comparison: Comparison) -> None:
    page.section("Side by side")
    lines = [[line.name, *line.cells] for line in comparison.lines()]
    page.table(["", *comparison.headers], lines, numbers=True)
    for note in comparison.notes():
        page.paragraph(note)


def _words(page: Page, comparison: Comparison) -> None:
    page.section("Words")
    met = {s for one in comparison.measured for s, count in one.statuses.items() if count}
    reading = dict(_READING)
    if comparison.samples.norm == "l2":
        del reading["variables, rows, disjuncts"]
        reading |= _SQUARED
    rows = [*reading.items(), *((s.name, s.message) for s in Status if s in met)]
    page.table(["word", "meaning"], rows)


def _relaxations(page: Page, comparison: Comparison) -> None:
    page.section("What was compared")
    rows = [
        (one.relaxation.label, one.relaxation.describe(one.plan)) for one in comparison.measured
    ]
    page.table(["relaxation", "what it is"], rows)


def _graph(page: Page, comparison: Comparison) -> None:
    figure = figures.rule_graph(comparison)
    if figure is None:
        return
    page.section("Rule graph")
    names = comparison.samples.rules.names
    measured = min(len(comparison.samples), figures.GRAPH_SAMPLES)
    shown = figures.drawn_plan(comparison)
    shaded = ""
    in_l1 = "" if comparison.samples.norm == "l1" else " (that of l1, by which plans are made)"
    if shown is not None and shown.plan is not None:
        merged = [" + ".join(cluster) for cluster in shown.plan.clusters if len(cluster) > 1]
        shaded = f" Shaded: {'; '.join(merged)}, merged by {shown.relaxation.label}."
    page.figure(
        figure,
        alt=f"Graph of the {len(names)} rules {', '.join(names)}.{shaded}",
        caption="Rules that interact, and by how much a basic step on two of them raises the value "
        f"of the relaxation{in_l1}, on {measured} samples.{shaded}",
    )


def _told(comparison: Comparison, name: str, start: str) -> str:
    """A line of the table as a sentence, for those who do not see the picture."""
    (line,) = [line for line in comparison.lines() if line.name == name]
    cells = zip(comparison.headers, line.cells, strict=True)
    return start + ", ".join(f"{label} {cell}" for label, cell in cells if cell) + "."
