"""One output with its distance: the lifted set that the layer minimises over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gdpnet.errors import InputError
from gdpnet.ir.atoms import format_number
from gdpnet.ir.batch import as_batch
from gdpnet.model import RuleModel
from gdpnet.plot._sets import Relaxation, RulesAt, name_of
from gdpnet.plot.style import BLUE, GREEN, INK, PAPER, SMALL, VERMILION, axes_of, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_lifted(
    rules: RuleModel,
    yhat: Any = None,
    x: Any = None,
    relaxation: Relaxation = "dnf",
    ax: Axes | None = None,
) -> Axes:
    """Draw the lifted set of rules about one output: the output y and its distance eta.

    Each product of the active rules is lifted to the points with eta at least |y - yhat|. The hull
    of these sets, taken from the linear program that the layer solves, is what eta is minimised
    over: its lowest point is a corner of one of them. A hull taken in y alone, the dashed bar below
    the axis, has lost the distance and lets a prediction in the gap pass.

    Args:
        rules: rules about one output.
        yhat: the prediction, a number or `1`.
        x: inputs of one sample, `p`; None where there are none.
        relaxation: `"dnf"`, `"cnf"` or a `Plan`.
        ax: where to draw; a new figure where not given.

    Returns:
        The axes. Patches carry a gid: "lifted disjunct" and "lifted hull".

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> ax = gdpnet.plot.plot_lifted(gdpnet.RuleModel(m, outputs=[m.y]), yhat=4.5)
        >>> ax.get_title(loc="left")
        'y = 4.5 moves to 3, distance 1.5'
    """
    from gdpnet.projection import Status, project

    here = RulesAt(rules, x)
    if rules.data.outputs != 1:
        raise InputError(
            f"rules: the lifted picture has one output, and this model has {rules.data.outputs} "
            f"({', '.join(rules.output_names[:8])}). Draw two of them with plot_region."
        )
    here.refuse_unbounded((0,))
    if yhat is None:
        raise InputError("yhat: the lifted set depends on the prediction; give a number.")
    given = yhat.detach() if isinstance(yhat, torch.Tensor) else np.asarray(yhat)
    given = given.reshape(1) if given.ndim == 0 else given
    batch = as_batch(here.x, given, rules.input_names, rules.output_names, y_name="yhat")
    if len(batch.y) != 1:
        raise InputError(f"yhat: expected one prediction, got {len(batch.y)}.")
    prediction = float(batch.y)
    start = float(np.clip(prediction, here.lower[0], here.upper[0]))
    projection = project(rules, batch.y, batch.x, relaxation=relaxation)
    ax = axes_of(ax, (7.0, 4.8))

    terms = here.lifted_terms(start)
    hull = here.lifted(relaxation, start)
    _draw_sets(ax, terms, hull, name_of(relaxation, rules))
    holds = bool(rules.satisfied(batch.y, batch.x))
    _draw_line(ax, here, terms, hull, _alone(start, hull, holds))
    name = rules.output_names[0]
    height = float(here.size((0, 0))[0])
    if int(projection.status) == Status.CONFLICT:
        title = "no point satisfies the active rules"
        ax.plot(start, 0.0, "o", color=PAPER, markeredgecolor=INK, markersize=7, zorder=6)
    else:
        end = float(projection.y)
        title = f"{name} = {format_number(prediction)} " + (
            f"moves to {format_number(end)}, distance {format_number(float(projection.distance))}"
            if end != prediction
            else "satisfies the rules and stays"
        )
        _draw_points(ax, start, end, hull, bool(rules.satisfied(projection.y, batch.x)))
    if start != prediction:
        title += f" (drawn from {format_number(start)}, its nearest bound)"
    ax.set_title(title, fontsize=11, loc="left")
    ax.set_xlabel(f"{name}, with {counted(len(here.active), 'active rule')}")
    ax.set_ylabel(f"eta, at least |{name} - prediction|")
    ax.set_xlim(here.lower[0] - 0.04 * height, here.upper[0] + 0.04 * height)
    ax.set_ylim(-0.16 * height, 1.03 * height)
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= height])
    if terms or len(hull):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False,
                  fontsize=SMALL)  # fmt: skip
    return ax


def _draw_sets(ax: Axes, terms: list[np.ndarray], hull: np.ndarray, name: str) -> None:
    from matplotlib.patches import Polygon

    if len(hull):
        ax.add_patch(
            Polygon(hull, facecolor=(BLUE, 0.12), edgecolor=BLUE, linewidth=1.8, zorder=1,
                    gid="lifted hull", label=f"lifted hull ({name}), from the linear program")
        )  # fmt: skip
    for k, corners in enumerate(terms):
        ax.add_patch(
            Polygon(corners, facecolor=(GREEN, 0.3), edgecolor=GREEN, hatch="////", linewidth=1.2,
                    zorder=2, gid="lifted disjunct",
                    label="" if k else "lifted product of the active rules")
        )  # fmt: skip


def _draw_line(
    ax: Axes, here: RulesAt, terms: list[np.ndarray], hull: np.ndarray, label: str
) -> None:
    """Below the axis: where the rules hold, and the hull in y alone."""
    height = float(here.size((0, 0))[0])
    ax.axhline(0.0, color=INK, linewidth=0.8, zorder=0)
    for k, corners in enumerate(terms):
        ends = corners[:, 0].min(), corners[:, 0].max()
        ax.plot(ends, [-0.05 * height] * 2, color=GREEN, linewidth=6, solid_capstyle="butt",
                label="" if k else "where the rules hold")  # fmt: skip
    if len(hull):
        ends = hull[:, 0].min(), hull[:, 0].max()
        ax.plot(ends, [-0.11 * height] * 2, color=VERMILION, linewidth=2.5, linestyle=(0, (4, 1.5)),
                label=label)  # fmt: skip


def _draw_points(ax: Axes, start: float, end: float, hull: np.ndarray, holds: bool) -> None:
    above, height = lowest(hull, start), lowest(hull, end)
    label: dict[str, Any] = {"textcoords": "offset points", "fontsize": SMALL, "zorder": 7}
    arrow = {"arrowstyle": "-|>", "lw": 1.4, "color": INK, "shrinkA": 4, "shrinkB": 4}
    if start != end:
        ax.annotate("", (start, above), (start, 0.0), arrowprops=arrow | {"linestyle": ":"})
        ax.annotate("", (end, height), (start, above), arrowprops=arrow, zorder=5)
        ax.plot([end, end], [0.0, height], ":", color=INK, linewidth=1.0, zorder=4)
    ax.plot(start, 0.0, "o", color=PAPER, markeredgecolor=INK, markersize=7, zorder=6)
    ax.annotate("prediction", (start, 0.0), xytext=(8, 5), **label)
    mark, colour = ("o", INK) if holds else ("X", VERMILION)
    ax.plot(end, height, mark, color=colour, markersize=7, zorder=6)
    side = -1 if end < start else 1
    text = "lowest point" if holds else "lowest point, breaks a rule"
    ax.annotate(text, (end, height), xytext=(8 * side, -4), va="top",
                ha="left" if side > 0 else "right", **label)  # fmt: skip


def _alone(start: float, hull: np.ndarray, holds: bool) -> str:
    """What the hull in y alone would do with the prediction."""
    passes = len(hull) and hull[:, 0].min() <= start <= hull[:, 0].max()
    accepts = f": accepts {format_number(start)}" if passes and not holds else ""
    return f"hull in y alone{accepts}"


def lowest(hull: np.ndarray, y: float) -> float:
    """The least eta of a convex polygon at y."""
    heights = []
    for (u, v), (s, t) in zip(hull, np.roll(hull, -1, axis=0), strict=True):
        if min(u, s) - 1e-9 <= y <= max(u, s) + 1e-9:
            share = 0.0 if u == s else (y - u) / (s - u)
            heights.append(v + share * (t - v) if u != s else min(v, t))
    return min(heights, default=0.0)
