"""How often predictions satisfy the rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from gdpnet.checks import check_tolerance
from gdpnet.errors import InputError
from gdpnet.ir.batch import as_batch
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.model import RuleModel
from gdpnet.plot.style import INK, QUIET, SMALL, axes_of, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_satisfaction(
    rules: RuleModel,
    predictions: Mapping[str, Any],
    x: Any = None,
    tol: float = TOLERANCES.satisfied,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of samples that satisfy all rules, each rule and the global constraints.

    A rule's share is of the samples in which it is active. The first bar of a group is the topmost.

    Args:
        rules: the rules.
        predictions: outputs to compare, `batch x d`, by a name: of networks, of projections by
            several relaxations, of targets.
        x: inputs, `batch x p`; None where there are none.
        tol: as in `rules.satisfied`.
        ax: where to draw; a new figure where not given.

    Returns:
        The axes, with one container of bars for each name.

    Example:
        >>> import gdpnet, torch, pyomo.environ as pyo
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> yhat = torch.tensor([[1.0], [4.0], [5.0], [8.0]])
        >>> projected = gdpnet.project(rules, yhat).y
        >>> ax = gdpnet.plot.plot_satisfaction(rules, {"network": yhat, "layer": projected})
        >>> [float(bars[0].get_width()) for bars in ax.containers]  # all together
        [50.0, 100.0]
    """
    if not isinstance(rules, RuleModel):
        raise InputError(f"rules: expected a RuleModel, got {type(rules).__name__}.")
    if not isinstance(predictions, Mapping) or not predictions:
        raise InputError(
            f"predictions: expected outputs by a name, such as {{'network': y}}, got "
            f"{type(predictions).__name__}."
        )
    check_tolerance(tol)
    shares: dict[str, list[float]] = {}
    counts: list[int] = []
    for name, y in predictions.items():
        batch = as_batch(x, y, rules.input_names, rules.output_names, f"predictions[{name!r}]")
        if not len(batch.y):
            raise InputError(f"predictions[{name!r}]: there are no samples.")
        active = _active(rules, batch.x, len(batch.y))
        own = [len(batch.y), *active.sum(0).tolist()]
        if counts and counts != own:
            raise InputError(
                f"predictions[{name!r}]: {len(batch.y)} samples, the others have {counts[0]}; "
                "compare predictions for the same inputs."
            )
        counts = own
        shares[name] = _shares(rules, batch.x, batch.y, active, tol)
    labels = ["all together", *rules.names, "global constraints"]
    ax = axes_of(ax, (6.8, 0.9 + 0.26 * len(labels) * (len(shares) + 0.9)))
    _draw(ax, shares, labels, [*counts, counts[0]])
    return ax


def _active(rules: RuleModel, x: torch.Tensor, samples: int) -> torch.Tensor:
    if not rules.names:
        return torch.ones(samples, 0, dtype=torch.bool)
    return rules.active(x if rules.input_names else torch.zeros(samples, 0))


def _shares(
    rules: RuleModel, x: torch.Tensor, y: torch.Tensor, active: torch.Tensor, tol: float
) -> list[float]:
    """In per cent: all together, each rule where it is active (NaN where never), globals.

    A rule that may be broken at a price does not count in the first.
    """
    violation, globally = (measured <= tol for measured in rules.measure(y, x))
    together = violation[:, rules.satisfaction.hard].all(1) & globally
    each = (violation & active).sum(0).double() / active.sum(0)
    shares = (together.double().mean(), *each, globally.double().mean())
    return [100.0 * float(v) for v in shares]


def _draw(
    ax: Axes, shares: Mapping[str, list[float]], labels: list[str], counts: list[int]
) -> None:
    thick = 0.8 / len(shares)
    for k, (name, values) in enumerate(shares.items()):
        style = series(k)
        places = [row + (k - (len(shares) - 1) / 2) * thick for row in range(len(labels))]
        ax.barh(
            places,
            [v if math.isfinite(v) else 0.0 for v in values],
            height=0.9 * thick,
            label=name,
            facecolor=(style.colour, 0.55),
            edgecolor=style.colour,
            hatch=style.hatch,
        )
        for row, (place, value) in enumerate(zip(places, values, strict=True)):
            if math.isfinite(value):
                _say(ax, value, place, f"{_percent(value)} %")
            elif k == 0:
                _say(ax, 0.0, row, "never active")
    ticks = [f"{label}\n{count:,} samples" for label, count in zip(labels, counts, strict=True)]
    ax.set_yticks(range(len(labels)), ticks, fontsize=SMALL)
    ax.set_ylim(len(labels) - 0.45, -0.55)
    ax.axhline(0.5, color=QUIET, linewidth=0.8)
    ax.set_xlim(0, 113)
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel("samples that satisfy it, %")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(4, len(shares)),
              frameon=False, fontsize=SMALL)  # fmt: skip


def _say(ax: Axes, value: float, place: float, text: str) -> None:
    ax.annotate(text, (value, place), xytext=(4, 0), textcoords="offset points",
                va="center_baseline", fontsize=SMALL - 0.5, color=INK)  # fmt: skip


def _percent(value: float) -> str:
    """Never 100 where a sample fails, never 0 where one does not."""
    if 0.0 < value < 0.1:
        return "<0.1"
    if 99.9 < value < 100.0:
        return ">99.9"
    return f"{value:.1f}".removesuffix(".0")
