"""How large the linear program becomes with basic steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.errors import InputError
from gdpnet.model import RuleModel
from gdpnet.plot._sets import RulesAt
from gdpnet.plot.style import INK, QUIET, SMALL, axes_of, counted, series
from gdpnet.relaxation.plan import Plan
from gdpnet.relaxation.products import count_products
from gdpnet.relaxation.program import Sizes
from gdpnet.relaxation.sizes import sizes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Programs with more products than this are not written down for a picture.
_MOST = 5_000


def plot_sizes(
    rules: RuleModel,
    x: Any = None,
    merged: Iterable[int] | None = None,
    prune: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the linear program grows from the CNF to the DNF.

    The first k active rules, in the order of the model, are merged by basic steps, the others
    convexified one by one. Sizes are those of the program that `gdpnet.convexify` writes. What
    `relaxation="dnf"` writes is marked by itself where it is smaller: only rules that hang together
    are merged there.

    Args:
        rules: the rules.
        x: inputs of one sample, `p`, which decide which rules apply.
        merged: numbers k to draw; from 1, the CNF, to all active rules where not given, as far as
            there are no more than 5,000 products.
        prune: leave products out that are empty for all inputs within `input_bounds`.
        ax: where to draw; a new figure where not given.

    Returns:
        The axes.

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(range(4), bounds=(0, 10))
        >>> for k in range(3):
        ...     gap = gdpnet.any_of(m.y[k] + m.y[k + 1] <= 3, m.y[k] + m.y[k + 1] >= 7)
        ...     m.add_component(f"gap{k}", gdpnet.rule(gap))
        >>> ax = gdpnet.plot.plot_sizes(gdpnet.RuleModel(m, outputs=[m.y]))
        >>> ax.lines[0].get_ydata().tolist()  # products of k = 1, 2 and 3 merged rules
        [6, 6, 8]
    """
    here = RulesAt(rules, x)
    active = here.active
    if not active:
        raise InputError("x: no rule applies there, so there is nothing to merge.")
    steps, left_out = _steps(rules, active, merged)
    ax = axes_of(ax, (6.6, 4.4))
    sizes = [sizes_of(rules, Plan((active[:k],)), x, prune) for k in steps]
    for k, (kind, what) in enumerate(
        (("disjuncts", "products"), ("variables", "variables"), ("rows", "rows"))
    ):
        style = series(k)
        values = [getattr(size, kind) for size in sizes]
        ax.plot(steps, values, color=style.colour, linestyle=style.dash, marker=style.marker,
                markersize=5)  # fmt: skip
        ax.annotate(f"{what} {values[-1]:,}", (steps[-1], values[-1]), xytext=(7, 0),
                    textcoords="offset points", va="center", fontsize=SMALL, color=INK)  # fmt: skip
    if steps[-1] == len(active):
        _mark_dnf(ax, sizes[-1], sizes_of(rules, "dnf", x, prune), len(active))
    _frame(ax, steps, active, left_out)
    return ax


def _steps(
    rules: RuleModel, active: tuple[str, ...], merged: Iterable[int] | None
) -> tuple[list[int], bool]:
    """Numbers of rules to merge, and whether some were left out."""
    if merged is not None:
        steps = sorted(set(merged))
        if not steps or not all(isinstance(k, int) and 1 <= k <= len(active) for k in steps):
            raise InputError(
                f"merged: expected whole numbers from 1 to {len(active)}, the number of active "
                f"rules, got {steps!r}."
            )
        return steps, False
    places = [rules.names.index(name) for name in active]
    every = range(1, len(active) + 1)
    steps = [k for k in every if k == 1 or count_products(rules.data, places[:k]) <= _MOST]
    return steps, len(steps) < len(active)


def _mark_dnf(ax: Axes, merged: Sizes, dnf: Sizes, rules: int) -> None:
    """What the DNF is, where parts that do not hang together are kept apart."""
    if dnf == merged:
        return
    values = (dnf.disjuncts, dnf.variables, dnf.rows)
    for k, value in enumerate(values):
        ax.plot(rules, value, "*", color=series(k).colour, markersize=11, markeredgecolor=INK,
                markeredgewidth=0.5)  # fmt: skip
    ax.plot([], [], "*", color=QUIET, markersize=11, markeredgecolor=INK, markeredgewidth=0.5,
            label="relaxation='dnf': merges\nwhat hangs together")  # fmt: skip


def _frame(ax: Axes, steps: list[int], active: tuple[str, ...], left_out: bool) -> None:
    ax.set_yscale("log")
    ends = {1: "CNF", len(active): "DNF"} if len(active) > 1 else {1: "CNF = DNF"}
    shown = steps if len(steps) <= 12 else [int(k) for k in np.linspace(1, steps[-1], 8)]
    ax.set_xticks(shown, [f"{k}\n{ends[k]}" if k in ends else str(k) for k in shown])
    ax.set_xlim(steps[0] - 0.3, steps[-1] + max(0.9, 0.28 * (steps[-1] - steps[0])))
    ax.set_xlabel("active rules merged by basic steps")
    ax.set_ylabel("size of the linear program")
    ax.grid(axis="y", color=QUIET, alpha=0.35, linewidth=0.6)
    ax.set_axisbelow(True)
    title = counted(len(active), "active rule")
    if left_out:
        title += f"; beyond {steps[-1]} merged there are more than {_MOST:,} products"
    ax.set_title(title, fontsize=11, loc="left")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper left", frameon=False, fontsize=SMALL)
