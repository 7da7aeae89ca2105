"""How much of the KKT gradient to take: figure and table against its share alpha."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gdpnet.plot.style import BLUE, GREEN, ORANGE, PURPLE, VERMILION
from gdpnet.study.report._figures import new_figure
from gdpnet.study.report._results import Results
from gdpnet.study.report.tables import Table, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS = {"cnf": "CNF", "dnf": "DNF"}
_LOOKS = (
    (VERMILION, "o", "-"),
    (BLUE, "s", "--"),
    (GREEN, "^", "-."),
    (PURPLE, "D", ":"),
    (ORANGE, "v", "-"),
)


def mixed_sizes(results: Results, protocol: str) -> list[int]:
    """Training sizes at which at least three shares were tried."""
    tried: dict[int, int] = {}
    for name in results.mixed("dnf").values():
        for size in results.sizes_of(name, protocol):
            tried[size] = tried.get(size, 0) + 1
    return sorted(size for size, count in tried.items() if count > 3)


def mixture_figure(results: Results, protocol: str) -> Figure:
    """The task's first metric against alpha, CNF and DNF above each other.

    Args:
        results: of a study with methods such as `dnf-mixed:0.5`.
        protocol: name of the protocol.

    Returns:
        A matplotlib figure.
    """
    metric, splits = results.metrics[0], results.splits
    figure: Figure = new_figure(4.6 * len(splits), 6.0)
    panels: Any = figure.subplots(2, len(splits), sharex=True, sharey="col", squeeze=False)
    for row, (form, told) in enumerate(FORMS.items()):
        shares = results.mixed(form)
        for panel, split in zip(panels[row], splits, strict=True):
            sizes = mixed_sizes(results, protocol)
            for size, (colour, marker, line) in zip(sizes, _LOOKS, strict=False):
                where = {"protocol": protocol, "size": size, "split": split}
                found = {a: results.at(metric, method=m, **where) for a, m in shares.items()}
                known = {alpha: one for alpha, one in found.items() if one.count}
                panel.errorbar(
                    list(known),
                    [one.mean for one in known.values()],
                    yerr=[one.error for one in known.values()],
                    color=colour,
                    marker=marker,
                    linestyle=line,
                    markersize=6,
                    linewidth=1.4,
                    capsize=2,
                    label=f"n = {size}",
                )
            panel.set_yscale("log")
            panel.set_title(f"{told}, {split.upper()}", fontsize=11)
            panel.grid(True, which="major", color="#e4e4e4", linewidth=0.6)
            for side in ("top", "right"):
                panel.spines[side].set_visible(False)
        panels[row][0].set_ylabel(metric.upper())
    for panel in panels[1]:
        panel.set_xlabel("alpha: share of the KKT gradient")
        panel.set_xticks([0, 0.25, 0.5, 0.75, 1])
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9, frameon=False)
    figure.suptitle(f"Mixtures of gradients, protocol {protocol}", fontsize=13)
    return figure


def mixtures(results: Results, protocol: str, metric: str) -> Table | None:
    """A metric against alpha, for both forms, all sizes and splits; None where not trained."""
    alphas = sorted({alpha for form in FORMS for alpha in results.mixed(form)})
    rows = []
    for form, told in FORMS.items():
        for size in mixed_sizes(results, protocol):
            for split in results.splits:
                where = {"protocol": protocol, "size": size, "split": split}
                shares = results.mixed(form)
                cells = [
                    number(metric, results.at(metric, method=shares[alpha], **where))
                    if alpha in shares
                    else ""
                    for alpha in alphas
                ]
                rows.append((f"{told}, n = {size}, {split.upper()}", *cells))
    if not rows:
        return None
    return Table(
        f"{protocol}: {metric} against the share of the KKT gradient",
        ("alpha", *(f"{alpha:g}" for alpha in alphas)),
        tuple(rows),
    )
