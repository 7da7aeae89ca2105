"""Rules with a price in the plane of two outputs: where they hold, where they are bought off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gdpnet.ir.atoms import format_number
from gdpnet.plot._sets import RulesAt
from gdpnet.plot.style import ORANGE, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 161  # predictions along an axis
_SHADE = 0.55


def draw_priced(
    ax: Axes, here: RulesAt, pair: tuple[int, int], values: Mapping[int, float], norm: str
) -> None:
    """Draw where each active rule with a price holds, and which predictions are left alone.

    Args:
        ax: where.
        here: the rules at the input.
        pair: the two outputs of the picture.
        values: of the other outputs.
        norm: of the distance.
    """
    priced = here.priced()
    for k, (rule, price) in enumerate(priced.items()):
        _draw_rule(ax, here, rule, price, pair, values, k)
    if priced:
        _draw_left_alone(ax, here, pair, values, norm)


def _draw_rule(
    ax: Axes,
    here: RulesAt,
    rule: str,
    price: float,
    pair: tuple[int, int],
    values: Mapping[int, float],
    k: int,
) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    polygons = [c for c in here.holding(rule).union(pair, values) if len(c) > 2]
    style = series(2 + k)  # behind those of CNF and DNF
    label = f"{rule} holds, too (breaking it costs {format_number(price)})"
    if polygons:
        rings = (Path(np.vstack([c, c[:1]]), closed=True) for c in polygons)
        path = Path.make_compound_path(*rings)
    else:
        path = Path(np.zeros((0, 2)))
        label = f"{rule} holds nowhere here (breaking it costs {format_number(price)})"
    ax.add_patch(
        PathPatch(
            path,
            facecolor="none",
            edgecolor=(style.colour, 0.45),
            hatch=style.hatch,
            linewidth=0,
            zorder=1.5,
            gid=f"where {rule} holds",
            label=label,
        )
    )


def _draw_left_alone(
    ax: Axes, here: RulesAt, pair: tuple[int, int], values: Mapping[int, float], norm: str
) -> None:
    """Predictions that stay although a rule is broken: holding it would cost more."""
    from matplotlib.patches import Rectangle

    from gdpnet.projection import project

    ends = [np.linspace(here.lower[j], here.upper[j], _GRID) for j in pair]
    across, up = np.meshgrid(*ends)
    yhat = np.zeros((across.size, here.rules.data.outputs))
    yhat[:, pair[0]], yhat[:, pair[1]] = across.ravel(), up.ravel()
    for j, value in values.items():
        yhat[:, j] = value
    p = project(here.rules, yhat, here.x if here.rules.input_names else None, norm=norm)
    stays = (p.broken.any(-1) & (p.distance == 0.0)).numpy().reshape(across.shape)
    if not stays.any():
        return
    found = ax.contourf(
        *(across, up, stays.astype(float)), levels=[0.5, 1.5], colors=[ORANGE], alpha=_SHADE
    )
    found.set(gid="left alone", zorder=1.8)
    ax.contour(across, up, stays.astype(float), levels=[0.5], colors=[ORANGE], linewidths=1.2)
    label = "predictions left alone: a rule is bought off"
    corner = (here.lower[pair[0]], here.lower[pair[1]])
    # Contours have no entry of their own in a legend.
    ax.add_patch(Rectangle(corner, 0, 0, facecolor=(ORANGE, _SHADE), linewidth=0, label=label))
