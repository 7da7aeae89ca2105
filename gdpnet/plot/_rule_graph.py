"""The rule-interaction graph as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import networkx as nx

from gdpnet.errors import InputError, RuleError
from gdpnet.plot.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    PURPLE,
    QUIET,
    SKY,
    VERMILION,
    YELLOW,
    axes_of,
    counted,
)
from gdpnet.relaxation.plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RING, _EDGE, _EMPTY = BLUE, "#33566b", VERMILION
_CLUSTERS = (ORANGE, SKY, GREEN, PURPLE, YELLOW, BLUE)
_HATCHES = ("///", "...", "\\\\\\", "xxx", "ooo", "+++")

_RADIUS = 0.085  # of a node, where the circle of rules has radius 1
_MARGIN = 2.0 * _RADIUS  # of a cluster around its rules
_THINNEST, _THICKEST = 1.0, 8.0  # lines, in points

_FEW = 8  # rules that have room for level labels; more of them are labelled along the radius
_MARKED = 28  # lines that have room for their share of empty pairs, heaviest first


def plot_rule_graph(graph: nx.Graph[str], ax: Axes | None = None, plan: Plan | None = None) -> Axes:
    """Draw a rule-interaction graph.

    Rules stand on a circle, those that gain most from being merged next to each other. The ring
    around a rule shows how often it is active, the number inside how many disjuncts it has. A line
    shows that two rules interact: the wider, the more a basic step on the two brings (`weight`,
    gain times co-activation). Dashed: nothing was gained on the samples; dotted: the two are never
    active together. The small disc on a line is filled by the share of their pairs of disjuncts
    that are empty; where there are many lines, the heaviest ones have it.

    Args:
        graph: from `interaction_graph`.
        ax: where to draw; a new figure where not given.
        plan: its clusters are drawn behind the rules, each with a colour and a hatching.

    Returns:
        The axes.

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2], bounds=(0, 10))
        >>> m.a = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7))
        >>> m.b = gdpnet.rule(gdpnet.any_of(m.y[1] + m.y[2] <= 4, m.y[1] + m.y[2] >= 9))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> graph = gdpnet.plan.interaction_graph(rules)
        >>> ax = gdpnet.plot.plot_rule_graph(graph, plan=gdpnet.plan.choose(rules, budget=4))
        >>> ax.get_title(loc="left")
        '2 rules, 1 interaction'
    """
    if not isinstance(graph, nx.Graph):
        raise InputError(
            f"graph: expected a graph from interaction_graph, got {type(graph).__name__}."
        )
    clusters = _clusters_of(graph, plan)
    ax = axes_of(ax, (9.2, 5.6))
    place = _places(graph, clusters)
    _draw_clusters(ax, clusters, place)
    _draw_edges(ax, graph, place)
    _draw_nodes(ax, graph, place)
    _explain(ax, graph, clusters)
    ax.set_axis_off()
    _label(ax, graph, place)
    lines = graph.number_of_edges()
    ax.set_title(
        f"{counted(len(graph), 'rule')}, {counted(lines, 'interaction')}", fontsize=11, loc="left"
    )
    return ax


def _clusters_of(graph: nx.Graph[str], plan: Plan | None) -> list[tuple[str, ...]]:
    if plan is None:
        return []
    for cluster in plan.clusters:
        for name in cluster:
            if name not in graph:
                raise RuleError(f"plan: '{name}' is no rule of this graph ({', '.join(graph)}).")
    return [cluster for cluster in plan.clusters if len(cluster) > 1]


# ---- layout -----------------------------------------------------------------------------------


def _places(
    graph: nx.Graph[str], clusters: list[tuple[str, ...]]
) -> dict[str, tuple[float, float]]:
    """Rules on a circle, in an order that keeps together what belongs together."""
    order = _order(graph, clusters)
    if len(order) == 1:
        return {order[0]: (0.0, 0.0)}
    place = {}
    for k, name in enumerate(order):
        # Starting at the left keeps labels of two rules apart, and none stands at the very top.
        angle = math.pi - 2 * math.pi * (k + 0.5 * (len(order) > 2)) / len(order)
        place[name] = (math.cos(angle), math.sin(angle))
    return place


def _order(graph: nx.Graph[str], clusters: list[tuple[str, ...]]) -> list[str]:
    """Clusters first and together; then always the rule that gains most with the last ones."""
    taken = {name for cluster in clusters for name in cluster}
    groups = [list(cluster) for cluster in clusters] + [[n] for n in graph if n not in taken]
    order: list[str] = []
    while groups:
        recent = order[-3:]

        def pull(group: list[str], recent: list[str] = recent) -> float:
            return sum(
                graph.edges[a, b]["weight"] for a in group for b in recent if graph.has_edge(a, b)
            )

        chosen = max(groups, key=lambda g: (len(g) > 1, pull(g)))
        groups.remove(chosen)
        order += chosen
    return order


# ---- marks ------------------------------------------------------------------------------------


def _draw_clusters(
    ax: Axes, clusters: list[tuple[str, ...]], place: dict[str, tuple[float, float]]
) -> None:
    from matplotlib.patches import Polygon

    for k, cluster in enumerate(clusters):
        outline = _outline([place[name] for name in cluster], _MARGIN)
        colour = _CLUSTERS[k % len(_CLUSTERS)]
        ax.add_patch(Polygon(outline, facecolor=colour, alpha=0.22, linewidth=0, zorder=0))
        ax.add_patch(
            Polygon(
                outline,
                fill=False,
                edgecolor=colour,
                hatch=_HATCHES[k % len(_HATCHES)],
                alpha=0.55,
                linewidth=1.5,
                zorder=0,
            )
        )


def _outline(points: list[tuple[float, float]], margin: float) -> list[tuple[float, float]]:
    """The hull of circles around points."""
    from scipy.spatial import ConvexHull

    around = [
        (x + margin * math.cos(t * math.pi / 24), y + margin * math.sin(t * math.pi / 24))
        for x, y in points
        for t in range(48)
    ]
    return [around[i] for i in ConvexHull(around).vertices]


def _draw_edges(ax: Axes, graph: nx.Graph[str], place: dict[str, tuple[float, float]]) -> None:
    largest = _largest_weight(graph)
    edges = sorted(graph.edges(data=True), key=lambda e: e[2]["weight"])
    for k, (a, b, edge) in enumerate(edges):
        start, end = place[a], place[b]
        style, width, colour = _line(edge, largest, _thickest(graph))
        ax.plot(
            *zip(start, end, strict=True),
            linestyle=style,
            linewidth=width,
            color=colour,
            solid_capstyle="round",
            zorder=1 + k / len(edges),
        )
        if k >= len(edges) - _MARKED and edge["empty"] > 0 and edge["together"] > 0:
            third = tuple(u + 0.34 * (v - u) for u, v in zip(start, end, strict=True))
            _pie(ax, (third[0], third[1]), 0.034, edge["empty"], zorder=3)


def _largest_weight(graph: nx.Graph[str]) -> float:
    return max((weight for _, _, weight in graph.edges(data="weight")), default=0.0)


def _thickest(graph: nx.Graph[str]) -> float:
    return _THICKEST * min(1.0, _FEW / max(1, len(graph)))


def _line(edge: dict[str, Any], largest: float, thickest: float) -> tuple[Any, float, Any]:
    """Style, width and colour of an edge; light lines are pale, so that heavy ones stand out."""
    if not edge["together"]:
        return (0, (1, 3)), 0.9, QUIET
    if not edge["weight"]:
        return (0, (5, 3)), 0.8, QUIET
    share = edge["weight"] / largest
    return "-", max(_THINNEST * thickest / _THICKEST, thickest * share), (_EDGE, 0.4 + 0.6 * share)


def _pie(ax: Axes, centre: tuple[float, float], radius: float, share: float, zorder: int) -> None:
    """A disc filled by a share."""
    from matplotlib.patches import Circle, Wedge

    ax.add_patch(
        Circle(centre, radius, facecolor=PAPER, edgecolor=INK, linewidth=0.7, zorder=zorder)
    )
    ax.add_patch(
        Wedge(centre, radius, 90 - 360 * share, 90, facecolor=_EMPTY, linewidth=0, zorder=zorder)
    )


def _draw_nodes(ax: Axes, graph: nx.Graph[str], place: dict[str, tuple[float, float]]) -> None:
    from matplotlib.patches import Circle, Wedge

    for name, node in graph.nodes(data=True):
        ring = {"facecolor": _RING, "linewidth": 0, "zorder": 5}
        disc = {"facecolor": PAPER, "edgecolor": QUIET, "linewidth": 0.8, "zorder": 4}
        ax.add_patch(Circle(place[name], _RADIUS, **disc))
        start = 90 - 360 * node["active"]
        ax.add_patch(Wedge(place[name], _RADIUS, start, 90, width=0.33 * _RADIUS, **ring))
        inside: dict[str, Any] = {"ha": "center", "va": "center_baseline", "zorder": 6}
        ax.text(*place[name], str(node["disjuncts"]), color=INK, fontsize=9, **inside)


def _label(ax: Axes, graph: nx.Graph[str], place: dict[str, tuple[float, float]]) -> None:
    """Names outside of the circle, level for a few rules and along the radius for more."""
    ax.set_xlim(-1.3, 1.3)
    ax.set_ylim(-1.3, 1.3)
    texts = []
    for name, node in graph.nodes(data=True):
        x, y = place[name]
        style: dict[str, Any] = {"fontsize": 9.5, "color": INK, "zorder": 6}
        share = f"{100 * node['active']:.0f} %"
        if len(graph) == 1:
            x, y, text = 0.0, -1.5 * _RADIUS, f"{name}\nactive {share}"
            style |= {"ha": "center", "va": "top"}
        elif len(graph) <= _FEW:
            x, y, text = (
                x * (1 + _MARGIN + 0.03),
                y * (1 + _MARGIN + 0.03),
                f"{name}\nactive {share}",
            )
            style |= {"ha": "left" if x > 0 else "right", "linespacing": 1.15}
            style["va"] = "bottom" if y > 0.8 else "top" if y < -0.8 else "center"
        else:
            angle = math.degrees(math.atan2(y, x))
            x, y, text = x * (1 + _MARGIN + 0.03), y * (1 + _MARGIN + 0.03), f"{name} {share}"
            style |= {"ha": "left" if x > 0 else "right", "va": "center", "rotation_mode": "anchor"}
            style |= {"rotation": angle if x > 0 else angle + 180, "fontsize": 8.5}
        texts.append(ax.text(x, y, text, **style))
    _make_room(ax, texts)


def _make_room(ax: Axes, texts: list[Any]) -> None:
    """Widen the limits until all labels are inside; text does not do so by itself."""
    ax.set_aspect("equal")
    for _ in range(3):  # the scale changes with the limits, and the text does not
        ax.figure.canvas.figure.draw_without_rendering()
        inverse = ax.transData.inverted()
        boxes = [inverse.transform_bbox(text.get_window_extent()) for text in texts]
        for low, high, set_limits in (("x0", "x1", ax.set_xlim), ("y0", "y1", ax.set_ylim)):
            least = min([-1.25, *(getattr(box, low) - 0.05 for box in boxes)])
            most = max([1.25, *(getattr(box, high) + 0.05 for box in boxes)])
            set_limits(least, most)


def _explain(ax: Axes, graph: nx.Graph[str], clusters: list[tuple[str, ...]]) -> None:
    """The legend: what is in this picture, and no more."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if not len(graph):
        ax.text(0, 0, "no rules", ha="center", va="center", fontsize=12, color=INK)
        return
    handles: list[Any] = [
        Line2D([], [], marker="$2$", markersize=7, color=INK, linestyle=""),
        Line2D([], [], marker="o", markersize=10, markerfacecolor=PAPER, markeredgecolor=_RING,
               markeredgewidth=3, linestyle=""),
    ]  # fmt: skip
    labels = ["number of disjuncts", "ring: share of samples\nin which the rule is active"]
    edges = [edge for _, _, edge in graph.edges(data=True)]
    largest = _largest_weight(graph)
    if largest:
        for share, text in (
            (1.0, "merging gains {:.2g}\n(mean over all samples)"),
            (0.25, "... {:.2g}"),
        ):
            edge = {"together": 1.0, "weight": share * largest}
            _, width, colour = _line(edge, largest, _thickest(graph))
            handles.append(Line2D([], [], color=colour, linewidth=width))
            labels.append(text.format(share * largest))
    if any(edge["together"] and not edge["weight"] for edge in edges):
        handles.append(Line2D([], [], color=QUIET, linestyle=(0, (5, 3))))
        labels.append("active together, nothing gained")
    if any(not edge["together"] for edge in edges):
        handles.append(Line2D([], [], color=QUIET, linestyle=(0, (1, 3))))
        labels.append("never active together")
    if any(edge["empty"] > 0 and edge["together"] > 0 for edge in edges):
        handles.append(Line2D([], [], marker="o", markersize=7, markerfacecolor=_EMPTY,
                              markeredgecolor=INK, fillstyle="right", linestyle="",
                              markerfacecoloralt=PAPER))  # fmt: skip
        labels.append("share of pairs of disjuncts\nthat are empty")
    for k in range(len(clusters)):
        colour = _CLUSTERS[k % len(_CLUSTERS)]
        handles.append(
            Patch(facecolor=colour, edgecolor=colour, hatch=_HATCHES[k % len(_HATCHES)], alpha=0.5)
        )
        labels.append(f"merged: {len(clusters[k])} rules")
    ax.legend(
        handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8.5, frameon=False,
        labelspacing=0.9,
    )  # fmt: skip
