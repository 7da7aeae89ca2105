"""Figures: how methods compare as data grow, and as rules are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gdpnet.errors import InputError
from gdpnet.plot.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from gdpnet.study.report._results import Results, Statistic, main_share
from gdpnet.study.report.tables import ORDERS, SATISFACTION

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class _Look:
    colour: str
    marker: str
    line: str = "-"


_BLACK, _GREY = "#000000", "#777777"  # markers and dashes tell apart what colours do not

_LOOKS = {
    "base": _Look(_BLACK, "o"),
    "finetuned-base": _Look(_BLACK, "o", "--"),
    "penalty": _Look(ORANGE, "s"),
    "finetuned-penalty": _Look(VERMILION, "D"),
    "inference": _Look(SKY, "^"),
    "finetuned-inference": _Look(SKY, "^", "--"),
    "cnf": _Look(GREEN, "v"),
    "pdnf": _Look(PURPLE, "P"),
    "dnf": _Look(BLUE, "*"),
    "cnf-relaxed": _Look(GREEN, "v", "--"),
    "dnf-relaxed": _Look(BLUE, "*", "--"),
    "dnf-auto": _Look(VERMILION, "p", ":"),
    "straight-through": _Look(_GREY, "X", ":"),
    "cnf-mixed": _Look(GREEN, "v", "-."),
    "dnf-mixed": _Look(PURPLE, "*", "-."),
}

# What is drawn together; one panel for all methods would show none.
_GROUPS = {
    "rules in training, at inference, or not at all": (
        "base",
        "penalty",
        "finetuned-penalty",
        "finetuned-inference",
        "cnf-mixed",
        "dnf-mixed",
    ),
    "gradients": ("finetuned-inference", "dnf", "dnf-mixed", "dnf-auto", "straight-through"),
    "relaxations": ("cnf", "pdnf", "dnf", "cnf-relaxed", "dnf-relaxed"),
}
_TOGETHER = 7
_AGAIN = ("finetuned-base", "inference")  # as others, or between them

_OTHERS = [_Look(c, "h", "-.") for c in (VERMILION, SKY, ORANGE, PURPLE, GREEN, _BLACK)]


def size_groups(results: Results) -> dict[str, tuple[str, ...]]:
    """Methods that are drawn together, by what their comparison is about; few are all together."""
    if len(results.methods) <= _TOGETHER:
        return {"": results.methods}
    usual = {name for names in _GROUPS.values() for name in names}
    others = tuple(name for name in results.methods if name not in usual)
    groups = {
        title: tuple(name for name in results.methods if name in names)
        for title, names in _GROUPS.items()
    }
    groups["others"] = tuple(name for name in others if name not in _AGAIN)
    return {title: names for title, names in groups.items() if names}


def size_figure(
    results: Results, protocol: str, methods: Sequence[str] | None = None, title: str = ""
) -> Figure:
    """The task's first metric and CSAT against the training size, one column a test split.

    Args:
        results: of a study.
        protocol: name of the protocol.
        methods: which are drawn; all if None.
        title: what they are compared for.

    Returns:
        A matplotlib figure.
    """
    looks = _looks(results.methods)
    methods = results.methods if methods is None else methods
    figure, panels = _panels(results, _metrics(results, protocol, methods))
    for metric, split, panel in panels:
        for place, method in enumerate(methods):
            sizes = results.sizes_of(method, protocol)
            where = {"method": method, "split": split, "protocol": protocol}
            found = [results.at(metric, size=size, **where) for size in sizes]
            # A little apart, or bars of equal values would hide each other.
            apart = 1.0 + 0.012 * (place - len(methods) / 2)
            _draw(panel, [apart * size for size in sizes], found, metric, method, looks[method])
        panel.set_xscale("log")
        panel.set_xticks(results.sizes, [str(size) for size in results.sizes])
        panel.minorticks_off()
        panel.set_xlabel("training samples")
    told = f"Data-set size, protocol {protocol}"
    return _finished(figure, panels, f"{told}: {title}" if title else told)


def convexification_figure(results: Results, protocol: str) -> Figure:
    """The task's first metric and CSAT against the number of merged rules.

    Args:
        results: of a study with methods `pdnf:k` and `steps:s`.
        protocol: name of the protocol.

    Returns:
        A matplotlib figure.
    """
    figure, panels = _panels(results, (results.metrics[0], main_share(results)))
    colours = {"pdnf": VERMILION, "steps": BLUE}
    for metric, split, panel in panels:
        for kind, order in ORDERS.items():
            for size, (marker, line) in zip(
                _merged_sizes(results, protocol),
                (("o", "-"), ("s", "--"), ("^", ":")),
                strict=False,
            ):
                where = {"size": size, "split": split, "protocol": protocol}
                steps = results.merged(kind)
                found = [results.at(metric, method=method, **where) for method in steps.values()]
                look = _Look(colours[kind], marker, line)
                _draw(panel, list(steps), found, metric, f"{order} order, n = {size}", look)
        panel.set_xlabel("k: first k rules merged, or k - 1 basic steps (0, 1: CNF)")
        panel.xaxis.get_major_locator().set_params(integer=True)
    return _finished(figure, panels, f"Sequential convexification, protocol {protocol}", log=False)


def new_figure(width: float, height: float) -> Any:
    """An empty figure of so many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(
            "Figures need matplotlib: pip install 'gdpnet[plot]'. The tables need nothing."
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def _merged_sizes(results: Results, protocol: str) -> list[int]:
    found = {
        size
        for kind in ORDERS
        for k, method in results.merged(kind).items()
        if k > 1
        for size in results.sizes_of(method, protocol)
    }
    return sorted(found)


def _looks(methods: tuple[str, ...]) -> dict[str, _Look]:
    others = [name for name in methods if name not in _LOOKS]
    more = {name: _OTHERS[k % len(_OTHERS)] for k, name in enumerate(others)}
    return {**_LOOKS, **more}


def _metrics(results: Results, protocol: str, methods: Sequence[str]) -> tuple[str, ...]:
    """What is drawn: satisfaction only where some of the methods miss a sample."""
    share = main_share(results)
    least = [results.at(share, method=method, protocol=protocol).low for method in methods]
    missed = any(value < 1.0 for value in least)
    return (results.metrics[0], share) if missed else (results.metrics[0],)


def _panels(
    results: Results, metrics: tuple[str, ...]
) -> tuple[Figure, list[tuple[str, str, Any]]]:
    figure: Figure = new_figure(5.2 * len(results.splits), 0.8 + 3.4 * len(metrics))
    grid = figure.subplots(len(metrics), len(results.splits), sharex=True, squeeze=False)
    return figure, [
        (metric, split, grid[row][column])
        for row, metric in enumerate(metrics)
        for column, split in enumerate(results.splits)
    ]


def _draw(
    panel: Any, at: list[Any], found: list[Statistic], metric: str, label: str, look: _Look
) -> None:
    unit = 100.0 if metric.startswith("csat") else 1.0
    drawn = panel.errorbar(
        at,
        [unit * one.mean for one in found],
        yerr=[
            [unit * (one.mean - one.low) for one in found],
            [unit * (one.high - one.mean) for one in found],
        ],
        color=look.colour,
        marker=look.marker,
        linestyle=look.line,
        markersize=6,
        linewidth=1.3,
        elinewidth=0.8,
        label=label,
    )
    for bar in drawn[2]:
        bar.set_alpha(0.45)


def _finished(
    figure: Figure, panels: list[tuple[str, str, Any]], title: str, log: bool = True
) -> Figure:
    for metric, split, panel in panels:
        share = metric.startswith("csat")
        name = SATISFACTION.get(metric, metric.upper())
        panel.set_title(f"{name}, {split.upper()}", fontsize=11)
        panel.set_ylabel(f"{name}, %" if share else name)
        if log and not share:
            panel.set_yscale("log")
        panel.grid(True, which="major", color="#e4e4e4", linewidth=0.6)
        panel.set_axisbelow(True)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    handles, labels = panels[0][2].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9, frameon=False)
    figure.suptitle(title, fontsize=13)
    return figure
