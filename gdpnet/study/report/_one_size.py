"""A picture of all methods at one training size: error and satisfaction, a line for each method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gdpnet.plot.style import BLUE, GREEN, ORANGE, PURPLE
from gdpnet.study.report._figures import new_figure
from gdpnet.study.report._results import Results, main_share
from gdpnet.study.report.tables import SATISFACTION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (PURPLE, "D"))


def one_size_figure(results: Results, protocol: str, size: int) -> Figure:
    """The task's first metric and CSAT of every method at one size, a mark for each test split.

    Args:
        results: of a study.
        protocol: name of the protocol.
        size: training samples.

    Returns:
        A matplotlib figure.
    """
    methods = [m for m in results.methods if size in results.sizes_of(m, protocol)]
    figure: Figure = new_figure(9.6, 1.3 + 0.3 * len(methods))
    panels = figure.subplots(1, 2, sharey=True)
    places = range(len(methods))
    for panel, metric in zip(panels, (results.metrics[0], main_share(results)), strict=True):
        share = metric.startswith("csat")
        unit = 100.0 if share else 1.0
        for k, split in enumerate(results.splits):
            colour, marker = _LOOKS[k % len(_LOOKS)]
            where: dict[str, Any] = {"protocol": protocol, "size": size, "split": split}
            found = [results.at(metric, method=method, **where) for method in methods]
            panel.errorbar(
                [unit * one.mean for one in found],
                [place + 0.16 * (k - (len(results.splits) - 1) / 2) for place in places],
                xerr=[
                    [unit * (one.mean - one.low) for one in found],
                    [unit * (one.high - one.mean) for one in found],
                ],
                color=colour,
                marker=marker,
                linestyle="",
                markersize=6,
                elinewidth=1.0,
                label=split.upper(),
            )
        name = SATISFACTION.get(metric, metric.upper())
        panel.set_xlabel(f"{name}, %" if share else name)
        values = [results.at(metric, method=m, protocol=protocol, size=size).low for m in methods]
        if not share and min(values) > 0:
            panel.set_xscale("log")
        panel.grid(True, axis="x", color="#e4e4e4", linewidth=0.6)
        panel.grid(True, axis="y", color="#f2f2f2", linewidth=0.6)
        panel.set_axisbelow(True)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    panels[0].set_yticks(list(places), methods)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4, fontsize=9, frameon=False)
    figure.suptitle(f"n = {size}, protocol {protocol}", fontsize=13, x=0.01, ha="left")
    return figure
