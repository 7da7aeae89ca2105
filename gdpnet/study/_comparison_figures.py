"""Pictures of a comparison: sizes, times, tightness, satisfaction of each rule, the rule graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.errors import GdpnetError
from gdpnet.extras import need
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.plan.graph import interaction_graph
from gdpnet.plot import plot_rule_graph
from gdpnet.plot.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION
from gdpnet.study._measured import Measured, Spread
from gdpnet.study._numbers import number, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gdpnet.study.comparison import Comparison

_QUIET = "#767676"
_COLOURS = (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY, INK)  # lines differ in style too
_STYLES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1)),
    (0, (5, 1, 1, 1)),
    (0, (3, 1, 1, 1, 1, 1)),
)

_WIDTH = 9.6  # inches, of every figure
_WIDE_RANGE = 20.0  # beyond this ratio numbers stand on a logarithmic axis
GRAPH_SAMPLES = 1000  # that are measured, at most


def sizes(comparison: Comparison) -> Figure:
    """Variables, rows and disjuncts: a dot for the mean, a stroke for the largest sample."""
    names = ("variables", "rows", "disjuncts")
    known = _known(comparison, lambda one: not np.isnan(one.variables.mean))
    figure, axes = _panels(known, len(names))
    for ax, name in zip(axes, names, strict=True):
        spreads: list[Spread] = [getattr(one, name) for one in known]
        _scale(ax, [s.mean for s in spreads] + [s.most for s in spreads])
        for k, (one, spread) in enumerate(zip(known, spreads, strict=True)):
            ax.plot([spread.mean, spread.most], [k, k], color=_QUIET, linewidth=1, zorder=1)
            ax.plot(spread.most, k, marker="|", color=INK, markersize=11, markeredgewidth=2)
            ax.plot(spread.mean, k, **_dot(one))
            ax.annotate(number(spread.mean), (spread.mean, k), **_above())
        ax.set_xlabel(f"{name} of a sample's LP")
    return figure


def times(comparison: Comparison) -> Figure:
    """Compile time and time a sample, on logarithmic axes."""
    known = _known(comparison, lambda one: not one.note)
    figure, axes = _panels(known, 2)
    for ax, unit, label, get in (
        (axes[0], 1e3, "compile, milliseconds", lambda one: one.compile_seconds),
        (axes[1], 1e6, "a sample, microseconds", lambda one: one.seconds_per_sample),
    ):
        ax.set_xscale("log")
        for k, one in enumerate(known):
            value = unit * get(one)
            if value > 0:
                ax.plot(value, k, **_dot(one))
                ax.annotate(number(value), (value, k), **_above())
        ax.margins(x=0.15)
        ax.set_xlabel(label)
    return figure


def tightness(comparison: Comparison) -> Figure:
    """Mean value and distance beside the exact distance; how many samples have how large a gap."""
    known = _known(comparison, lambda one: not np.isnan(one.value))
    figure, axes = _panels(known, 2, labels=1)
    samples = comparison.samples
    exact = samples.optimum[samples.proved]
    ax, right = axes
    weighted = ", weighted" if samples.weights is not None else ""
    squared = samples.norm == "l2"
    what = "squared distance" if squared else "distance"
    if len(exact):
        ax.axvline(exact.mean(), color=INK, linewidth=1.2, label=f"exact mean {what}")
    places = range(len(known))
    ax.plot([one.value for one in known], places, "o", color=BLUE, markersize=7,
            label="mean value of the relaxation")  # fmt: skip
    if not squared:  # a mean distance is not of the same kind as a mean of squares
        ax.plot([one.distance for one in known], places, "D", color=VERMILION,
                markerfacecolor="none", markersize=11, markeredgewidth=1.6,
                label="mean distance of its point")  # fmt: skip
    ax.locator_params(axis="x", nbins=5)
    units = "squared l2 distance" if squared else "l1 distance, in units of the outputs"
    ax.set_xlabel(units + weighted)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=9)
    _gap_curves(right, known)
    right.set_xlabel(f"gap: exact {what} less value")
    return figure


def _gap_curves(ax: Axes, known: list[Measured]) -> None:
    """Share of samples whose gap exceeds what stands on the axis below."""
    from matplotlib.lines import Line2D

    for k, one in enumerate(known):
        gaps = np.sort(one.gaps[one.gaps > TOLERANCES.equal])
        if not len(gaps):
            continue
        share = np.arange(len(gaps), 0, -1) / len(one.gaps)
        style = {"color": _COLOURS[k % len(_COLOURS)], "linestyle": _STYLES[k % len(_STYLES)]}
        # The share stays until the next gap.
        ax.step([0.0, *gaps], [share[0], *share], where="pre", linewidth=2.0,
                label=one.relaxation.label, **style)  # fmt: skip
    ax.set_ylabel("share of samples with a larger gap")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    without = [one.relaxation.label for one in known if not (one.gaps > TOLERANCES.equal).any()]
    handles, labels = ax.get_legend_handles_labels()
    if without:
        handles.append(Line2D([], [], linestyle=""))
        labels.append(f"no gap: {', '.join(without)}")
    ax.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False,
              fontsize=9)  # fmt: skip


def satisfaction(comparison: Comparison) -> Figure:
    """How often each rule holds where it is active: a table with shades."""
    shares = comparison.shares()
    rows = [
        f"{name} (active {100 * active:.0f} %)" if k < len(comparison.samples.rules.names) else name
        for k, (name, active) in enumerate(comparison.activity())
    ]
    cells = np.array(list(shares.values())).T
    figure = _figure(0.8 + 0.36 * len(rows))
    ax = figure.subplots()
    # White where all is well, dark where rules are broken.
    broken = np.ma.masked_invalid(1.0 - cells)
    image = ax.imshow(broken, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (k, j), share in np.ndenumerate(cells):
        text = "–" if np.isnan(share) else percent(share)  # noqa: RUF001
        colour = _QUIET if np.isnan(share) else "white" if share < 0.45 else INK
        ax.text(j, k, text, ha="center", va="center", fontsize=9, color=colour)
    ax.set_xticks(np.arange(1, len(shares)) - 0.5, minor=True)
    ax.set_yticks(np.arange(1, len(rows)) - 0.5, minor=True)
    ax.grid(which="minor", color="#e4e4e4", linewidth=0.8)
    ax.set_xticks(range(len(shares)), list(shares))
    ax.set_yticks(range(len(rows)), rows)
    ax.xaxis.tick_top()
    ax.tick_params(which="both", length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    bar = figure.colorbar(image, ax=ax, fraction=0.03, pad=0.02)
    bar.set_label("satisfied, % of samples")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{100 * (1 - value):.0f}")
    bar.ax.invert_yaxis()
    return figure


def rule_graph(comparison: Comparison) -> Figure | None:
    """The rule graph at the samples, with the plan that was compared; None without a graph."""
    samples = comparison.samples
    if not samples.rules.names:
        return None
    some = np.linspace(0, len(samples) - 1, min(len(samples), GRAPH_SAMPLES)).astype(int)
    try:
        graph = interaction_graph(samples.rules, samples.yhat[some], samples.x[some])
    except GdpnetError:  # such as whole numbers, which have no hull to measure
        return None
    figure = _figure(5.6)
    shown = drawn_plan(comparison)
    plot_rule_graph(graph, figure.subplots(), plan=shown.plan if shown else None)
    return figure


def drawn_plan(comparison: Comparison) -> Measured | None:
    """The relaxation whose plan the graph shows: a planned one before a lexicographic one."""
    plans = [one for one in comparison.measured if one.plan is not None and one.plan.clusters]
    planned = [one for one in plans if one.relaxation.kind == "plan"]
    chosen = planned or plans
    return chosen[0] if chosen else None


# ---- frames -----------------------------------------------------------------------------------


def _known(comparison: Comparison, keep: Callable[[Measured], bool]) -> list[Measured]:
    return [one for one in comparison.measured if keep(one)]


def _figure(height: float) -> Figure:
    need("matplotlib", "plot")
    from matplotlib.figure import Figure

    return Figure(figsize=(_WIDTH, height), layout="constrained")


def _panels(known: list[Measured], count: int, labels: int | None = None) -> tuple[Figure, Any]:
    """Panels side by side with the relaxations from top to bottom.

    Args:
        known: the relaxations.
        count: number of panels.
        labels: how many of them, from the left, list the relaxations; all where not given.
    """
    listing = count if labels is None else labels
    figure = _figure(1.0 + 0.42 * max(3, len(known)) + (0.9 if listing < count else 0.0))
    axes = figure.subplots(1, count, squeeze=False)[0]
    for k, ax in enumerate(axes):
        ax.grid(axis="x", color="#e4e4e4", linewidth=0.8)
        ax.set_axisbelow(True)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        if k < listing:
            ax.set_yticks(range(len(known)), [o.relaxation.label if k == 0 else "" for o in known])
            ax.tick_params(axis="y", length=0)
            ax.set_ylim(len(known) - 0.4, -0.7)
    return figure, axes


def _scale(ax: Axes, values: Iterable[float]) -> None:
    some = [value for value in values if value > 0]
    if some and max(some) > _WIDE_RANGE * min(some):
        ax.set_xscale("log")
        ax.margins(x=0.12)
    else:
        ax.set_xlim(0, 1.08 * max(some, default=1.0))


def _dot(one: Measured) -> dict[str, Any]:
    """Filled where the program is written down, hollow where not."""
    face = BLUE if one.relaxation.written_out else "white"
    return {
        "marker": "o",
        "markersize": 8,
        "markerfacecolor": face,
        "markeredgecolor": BLUE,
        "markeredgewidth": 1.6,
        "zorder": 3,
    }


def _above() -> dict[str, Any]:
    place: dict[str, Any] = {"textcoords": "offset points", "xytext": (0, 7)}
    return place | {"ha": "center", "fontsize": 8.5, "color": INK}
