"""Rules in the plane of two outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.checks import check_choice
from gdpnet.errors import InputError
from gdpnet.ir.atoms import format_number
from gdpnet.ir.batch import as_batch
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.model import RuleModel
from gdpnet.plot._polygons import outline
from gdpnet.plot._priced import draw_priced
from gdpnet.plot._sets import Relaxation, RulesAt, name_of
from gdpnet.plot.style import (
    GREEN,
    INK,
    PAPER,
    SMALL,
    VERMILION,
    Series,
    axes_of,
    counted,
    series,
)
from gdpnet.relaxation.plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOTE = (
    "An outline is the shadow of a lifted set on these outputs.\n"
    "The layer minimises the distance over the lifted set, not over the outline."
)
_LISTED = 4  # active rules named in the title


def plot_region(
    rules: RuleModel,
    yhat: Any = None,
    x: Any = None,
    outputs: Sequence[int | str] | None = None,
    relaxation: Relaxation | Sequence[Relaxation] | None = "dnf",
    at: Mapping[int | str, float] | None = None,
    ax: Axes | None = None,
    *,
    norm: str = "l1",
) -> Axes:
    """Draw where rules hold in the plane of two outputs, what relaxations make of it, projections.

    The hatched region is exact: the union of the products of the active rules, with global
    constraints and bounds. An outline is the shadow of a relaxation's lifted set on the two
    outputs: for the DNF the hull of the region, for the CNF the intersection of the hulls of the
    single rules, each with the global constraints inside. It is not what the layer minimises over:
    that set has the distance as a further dimension, so its nearest point can break no rule (DNF)
    although the outline contains points that do.

    Rules with a price may be broken: the region is that of the others. Where a priced rule holds,
    too, is hatched, and its price is in the legend; shaded are the predictions that stay where they
    are because a rule is bought off there (on a grid, for the given norm). Disjuncts' prices show
    in where predictions go only.

    A model with more than two outputs is shown in the plane where the others have the values `at`.

    Args:
        rules: the rules.
        yhat: a prediction, `d`, or several, `batch x d`. An arrow leads to each projection; a cross
            marks one that breaks a rule.
        x: inputs of one sample, `p`; None where there are none.
        outputs: the two outputs, by name or index; the first two where not given.
        relaxation: `"cnf"`, `"dnf"`, a `Plan`, several of them, or None for the region alone.
        at: values of the other outputs, by name or index; where not given, those of the projection
            of `yhat` (of the first relaxation).
        ax: where to draw; a new figure where not given.
        norm: of the distance that projections minimise, as in `gdpnet.project`. Region and
            outlines are the same for all norms.

    Returns:
        The axes. Patches carry a gid: "region", "outline of " with the relaxation's name, "where "
        with a priced rule's name and " holds", and "left alone".

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2], bounds=(0, 10))
        >>> m.a = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7))
        >>> m.b = gdpnet.rule(gdpnet.any_of(m.y[1] + m.y[2] <= 4, m.y[1] + m.y[2] >= 9))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> ax = gdpnet.plot.plot_region(rules, [4.5, 2.0], relaxation=["cnf", "dnf"])
        >>> ax.get_xlabel(), ax.get_title(loc="left")
        ('y[1]', '2 rules active: a, b')
    """
    check_choice("norm", norm, ("l1", "l2"))
    here = RulesAt(rules, x)
    pair = pair_of(rules, outputs)
    here.refuse_unbounded(pair)
    names = _relaxations(relaxation, rules)
    arrows = _project(here, yhat, names, norm)
    values = _others(rules, pair, at, arrows)
    ax = axes_of(ax, (6.6, 6.4))

    region = here.union(pair, values)
    _draw_region(ax, region, here.size(pair), "hard" if here.priced() else "active")
    draw_priced(ax, here, pair, values, norm)
    styles = _styles(names)
    for name, chosen in names.items():
        _draw_outline(ax, here.relaxed(chosen, pair, values), name, styles[name])
    _draw_arrows(ax, pair, arrows, styles, norm)
    _frame(ax, here, pair, region, values, outlines=bool(names))
    return ax


# ---- arguments --------------------------------------------------------------------------------


def _output(rules: RuleModel, which: Any, what: str) -> int:
    names = rules.output_names
    if isinstance(which, str) and which in names:
        return names.index(which)
    if isinstance(which, Integral) and not isinstance(which, bool) and 0 <= int(which) < len(names):
        return int(which)
    raise InputError(
        f"{what}: {which!r} is no output of this model ({', '.join(names[:8])}); give a name or an "
        f"index from 0 to {len(names) - 1}."
    )


def pair_of(rules: RuleModel, outputs: Any) -> tuple[int, int]:
    """The two outputs of a picture, given by names or indices, or the first two."""
    if outputs is None:
        if rules.data.outputs < 2:
            raise InputError(
                f"outputs: a region needs two outputs, and this model has {rules.output_names[0]} "
                "alone. Draw it with plot_lifted."
            )
        return 0, 1
    if isinstance(outputs, str) or not isinstance(outputs, Sequence) or len(outputs) != 2:
        raise InputError(f"outputs: expected two names or indices, got {outputs!r}.")
    one, other = (_output(rules, which, "outputs") for which in outputs)
    if one == other:
        raise InputError(f"outputs: expected two different ones, got {outputs!r}.")
    return one, other


def _relaxations(relaxation: Any, rules: RuleModel) -> dict[str, Relaxation]:
    if relaxation is None:
        return {}
    several = [relaxation] if isinstance(relaxation, (str, Plan)) else relaxation
    if not isinstance(several, Sequence):
        name_of(relaxation, rules)  # raises
    return {name_of(one, rules): one for one in several}


@dataclass(frozen=True)
class _Arrows:
    """Predictions and their projections by one relaxation, each `batch x d`."""

    name: str
    yhat: np.ndarray
    y: np.ndarray
    broken: list[str]  # what each projection breaks, empty where nothing
    bought: list[str]  # what it breaks at its price
    conflict: np.ndarray


def _project(here: RulesAt, yhat: Any, names: Mapping[str, Relaxation], norm: str) -> list[_Arrows]:
    if yhat is None:
        return []
    from gdpnet.projection import Status, project

    rules = here.rules
    given = as_batch(here.x, yhat, rules.input_names, rules.output_names, y_name="yhat")
    predictions = given.y.detach().cpu()
    found = []
    for name, relaxation in (names or {"projection": "dnf"}).items():
        projection = project(rules, predictions, given.x, relaxation=relaxation, norm=norm)
        violation = rules.violation(projection.y, given.x) > TOLERANCES.satisfied
        relaxed = (projection.status == Status.RELAXED).tolist()
        broken = [
            _breaks(rules, row) if bad else ""
            for row, bad in zip(violation.tolist(), relaxed, strict=True)
        ]
        bought = [_breaks(rules, row) if any(row) else "" for row in projection.broken.tolist()]
        conflict = (projection.status == Status.CONFLICT).numpy()
        found.append(
            _Arrows(name, predictions.numpy(), projection.y.numpy(), broken, bought, conflict)
        )
    return found


def _breaks(rules: RuleModel, broken: list[bool]) -> str:
    names = [name for name, bad in zip(rules.names, broken, strict=True) if bad]
    if not names:
        return "what ties the rules together"
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _others(
    rules: RuleModel, pair: tuple[int, int], at: Any, arrows: list[_Arrows]
) -> dict[int, float]:
    others = [j for j in range(rules.data.outputs) if j not in pair]
    names = ", ".join(rules.output_names[j] for j in others)
    if at is None:
        if not others:
            return {}
        if not arrows or len(arrows[0].y) != 1:
            raise InputError(
                f"at: a picture of two outputs needs values of the others ({names}). Give them as "
                "at={name: value}, or one prediction yhat, whose projection has them."
            )
        return {j: float(arrows[0].y[0, j]) for j in others}
    if not isinstance(at, Mapping):
        raise InputError(f"at: expected values of {names or 'no output'} by name, got {at!r}.")
    values = {_output(rules, which, "at"): value for which, value in at.items()}
    for j, value in values.items():
        if not isinstance(value, Real) or not np.isfinite(float(value)):
            raise InputError(
                f"at: expected a finite number for {rules.output_names[j]}, got {value!r}."
            )
    if set(values) != set(others):
        given = ", ".join(rules.output_names[j] for j in values)
        raise InputError(
            f"at: expected values of {names or 'no output'}, the outputs that are no axis; got "
            f"{given or 'none'}."
        )
    return {j: float(values[j]) for j in others}


# ---- marks ------------------------------------------------------------------------------------


def _draw_region(ax: Axes, polygons: list[np.ndarray], size: np.ndarray, which: str) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not polygons:
        return
    # One path, so that overlaps are not darker; all turn the same way, so that none is a hole.
    path = Path.make_compound_path(
        *(Path(np.vstack([c, c[:1]]), closed=True) for c in polygons if len(c))
    )
    ax.add_patch(
        PathPatch(
            path,
            facecolor=(GREEN, 0.28),
            edgecolor=(GREEN, 0.9),
            hatch="////",
            linewidth=0,
            zorder=1,
            gid="region",
            label=f"all {which} rules hold",
        )
    )
    ax.add_collection(
        LineCollection(outline(polygons, size), colors=GREEN, linewidths=1.4, zorder=2)
    )
    # A side of a relaxation's outline may lie on a segment, and both are to be seen.
    segments = [c for c in polygons if len(c) == 2]
    ax.add_collection(LineCollection(segments, colors=GREEN, linewidths=5.0, zorder=2))
    points = [c[0] for c in polygons if len(c) == 1]
    if points:
        ax.plot(*np.array(points).T, "o", color=GREEN, markersize=5, zorder=2)


def _styles(names: Iterable[str]) -> dict[str, Series]:
    """CNF and DNF look the same in all pictures; plans have the styles behind theirs."""
    found = {"DNF": series(0), "CNF": series(1)}
    plans = [name for name in names if name not in found]
    return found | {name: series(2 + k) for k, name in enumerate(plans)}


def _draw_outline(ax: Axes, corners: np.ndarray, name: str, style: Series) -> None:
    from matplotlib.patches import Polygon

    if not len(corners):
        return
    ax.add_patch(
        Polygon(
            corners,
            fill=False,
            edgecolor=style.colour,
            linestyle=style.dash,
            linewidth=2.0,
            joinstyle="round",
            zorder=3,
            gid=f"outline of {name}",
            label=f"{name}: shadow of its lifted set",
        )
    )


def _draw_arrows(
    ax: Axes,
    pair: tuple[int, int],
    arrows: list[_Arrows],
    styles: Mapping[str, Series],
    norm: str,
) -> None:
    if not arrows:
        return
    columns = list(pair)
    told: dict[tuple[float, ...], list[str]] = {}
    way: dict[tuple[float, ...], np.ndarray] = {}
    for each in arrows:
        colour = styles[each.name].colour if each.name in styles else INK
        for before, after, broken, bought, conflict in zip(
            each.yhat, each.y, each.broken, each.bought, each.conflict, strict=True
        ):
            if conflict:  # the prediction stays, and the picture says why
                continue
            start, end = before[columns], after[columns]
            arrow = {"arrowstyle": "-|>", "lw": 1.6, "color": colour, "shrinkA": 4, "shrinkB": 3}
            ax.annotate("", end, start, arrowprops=arrow, zorder=5)
            mark = "X" if broken else "o"
            ax.plot(*end, mark, color=VERMILION if mark == "X" else INK, markersize=7, zorder=6,
                    markeredgecolor=PAPER, markeredgewidth=0.8)  # fmt: skip
            place = tuple(np.round(end, 9).tolist())
            way[place] = end - start
            words = f"{each.name} breaks {broken}" if broken else each.name
            words += f", {bought} bought off" if bought and not broken else ""
            told.setdefault(place, []).append(words)
    for before in arrows[0].yhat:
        ax.plot(*before[columns], "o", color=PAPER, markeredgecolor=INK, markersize=7, zorder=6)
    if len(arrows[0].yhat) == 1:  # with several predictions the legend has to do
        _say(ax, arrows[0].yhat[0][columns], "prediction", -sum(way.values(), np.zeros(2)))
        highest = max(told, key=lambda place: place[1], default=None)
        for place, names in told.items():
            # Labels of points close to each other go apart.
            above = way[place][1] >= 0 if len(told) == 1 else place == highest
            side = np.array([way[place][0], 1.0 if above else -1.0])
            _say(ax, np.array(place), ", ".join(names), side)
    ax.plot([], [], "o", color=PAPER, markeredgecolor=INK, label="prediction")
    if told:
        nearest = "projection" if norm == "l1" else f"projection, nearest in {norm}"
        ax.plot([], [], "o", color=INK, label=nearest)
    if any(broken for each in arrows for broken in each.broken):
        ax.plot([], [], "X", color=VERMILION, label="projection that breaks a rule")


def _say(ax: Axes, place: np.ndarray, text: str, way: np.ndarray) -> None:
    """A label beside a point, on the side that an arrow leaves free."""
    right, above = way[0] >= 0, way[1] >= 0
    ax.annotate(
        text,
        (place[0], place[1]),
        xytext=(8 if right else -8, 8 if above else -8),
        textcoords="offset points",
        ha="left" if right else "right",
        va="bottom" if above else "top",
        fontsize=SMALL,
        color=INK,
        zorder=7,
        bbox={"facecolor": PAPER, "alpha": 0.85, "linewidth": 0, "pad": 1.2},
    )


def _frame(
    ax: Axes,
    here: RulesAt,
    pair: tuple[int, int],
    region: list[np.ndarray],
    values: Mapping[int, float],
    outlines: bool,
) -> None:
    names, size = here.rules.output_names, here.size(pair)
    middle = (here.lower[list(pair)] + here.upper[list(pair)]) / 2
    (left, right), (bottom, top) = np.stack([middle - 0.54 * size, middle + 0.54 * size], axis=1)
    for line in ax.lines:  # predictions may lie outside of the bounds
        for u, v in np.asarray(line.get_xydata()).tolist():
            left, right = min(left, u - 0.06 * size[0]), max(right, u + 0.06 * size[0])
            bottom, top = min(bottom, v - 0.06 * size[1]), max(top, v + 0.06 * size[1])
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    ax.set_xlabel(names[pair[0]])
    ax.set_ylabel(names[pair[1]])
    if 0.5 <= size[0] / size[1] <= 2.0:
        ax.set_aspect("equal")
    listed = ", ".join(here.active[:_LISTED]) + (", ..." if len(here.active) > _LISTED else "")
    title = f"{counted(len(here.active), 'rule')} active" + (f": {listed}" if listed else "")
    if values:
        title += "\nin the plane " + ", ".join(
            f"{names[j]} = {format_number(value)}" for j, value in values.items()
        )
    ax.set_title(title, fontsize=11, loc="left")
    if not region:
        where = " in this plane" if values else ""
        text = f"no point{where}\nsatisfies the active rules"
        above: dict[str, Any] = {"ha": "center", "va": "top", "zorder": 7}
        ax.text(0.5, 0.97, text, color=INK, fontsize=11, transform=ax.transAxes, **above)
    if ax.get_legend_handles_labels()[0]:
        legend = ax.legend(
            *(ax.get_legend_handles_labels()),
            loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False, fontsize=SMALL,
            title=_NOTE if outlines else None, title_fontsize=SMALL, alignment="left",
        )  # fmt: skip
        legend.get_title().set_color(INK)
