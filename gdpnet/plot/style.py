"""Colours, hatches and axes that all pictures share.

The colours are told apart also without colour vision (Okabe and Ito); hatches, dashes, markers and
labels say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gdpnet.extras import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, PAPER, QUIET = "#1b1b1b", "#ffffff", "#9a9a9a"
BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILION, PURPLE, YELLOW = "#E69F00", "#D55E00", "#CC79A7", "#F0E442"

SMALL = 8.5  # points, of legends and notes


class Series(NamedTuple):
    """How one of several things of a kind is told from the others."""

    colour: str
    hatch: str
    dash: Any
    marker: str


_SERIES = (
    Series(BLUE, "///", "-", "o"),
    Series(VERMILION, "\\\\\\", (0, (6, 2.5)), "s"),
    Series(PURPLE, "...", (0, (1.5, 1.5)), "^"),
    Series(ORANGE, "xxx", (0, (7, 2, 1.5, 2)), "D"),
    Series(SKY, "ooo", (0, (3, 1.5, 1, 1.5, 1, 1.5)), "v"),
    Series(INK, "+++", (0, (9, 4)), "P"),
)


def series(k: int) -> Series:
    """The style of the k-th of several things."""
    return _SERIES[k % len(_SERIES)]


def axes_of(ax: Axes | None, figsize: tuple[float, float]) -> Axes:
    """The axes to draw on: a new figure where none are given."""
    pyplot = need("matplotlib.pyplot", "plot", "Pictures need")
    if ax is None:
        _, ax = pyplot.subplots(figsize=figsize, layout="constrained")
    return ax


def counted(count: int, noun: str) -> str:
    """A number and its noun."""
    return f"{count} {noun}" + ("" if count == 1 else "s")
