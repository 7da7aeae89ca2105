"""Values of curves for a batch, differentiable.

Outside its domain a curve goes on as a straight line, or stays as it is at the domain's end: values
and slopes are numbers everywhere. The reader adds the domain as a row of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from gdpnet.ir.data import Row, Shape

# Where a curve that falls from infinity becomes a line: nearer to 0 than any argument is.
_INNER = 1e-100
_LARGEST = 1e100  # what such a curve has there at most
_LARGEST_EXPONENT = 300.0  # of e; beyond, a line

_Value = Callable[[torch.Tensor], torch.Tensor]


class Curves:
    """The curves of a model's rows.

    Args:
        rows: rows of the model.
        inner: where curves that fall from infinity become lines.
    """

    def __init__(self, rows: Sequence[Row], inner: float = _INNER) -> None:
        groups: dict[tuple[Shape, float, int], list[tuple[tuple[int, ...], int, float]]] = {}
        for i, row in enumerate(rows):
            for curve in row.curves:
                exponent = curve.exponent if curve.shape is Shape.POWER else 0.0
                key = curve.shape, exponent, len(curve.arguments)
                groups.setdefault(key, []).append((curve.arguments, i, curve.weight))
        self._groups = [
            (
                _function(shape, exponent, inner),
                torch.tensor([arguments for arguments, _, _ in members]),
                torch.tensor([i for _, i, _ in members]),
                torch.tensor([weight for _, _, weight in members], dtype=torch.float64),
            )
            for (shape, exponent, _), members in groups.items()
        ]

    def added(self, arguments: torch.Tensor) -> torch.Tensor:
        """What curves add to the left side of each row, `batch x rows`.

        Args:
            arguments: `a z - b` of each row, of which those of arguments are looked at,
                `batch x rows`.
        """
        total = torch.zeros_like(arguments)
        for function, where, rows, weight in self._groups:
            device = arguments.device
            value = function(arguments[:, where.to(device)]) * weight.to(device)
            total = total.index_add(1, rows.to(device), value)
        return total

    def with_size(self, arguments: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What curves add to each row, and how much numbers of some size can move that.

        Args:
            arguments: `a z - b` of each row, (B, m).
            size: of what was added up in each row, (B, m).

        Returns:
            Values, and of what size the numbers were that they are made of, (B, m) both.
        """
        values, sizes = (torch.zeros(arguments.shape, dtype=torch.float64) for _ in range(2))
        for function, where, rows, weight in self._groups:
            t = torch.from_numpy(arguments[:, where.numpy()]).requires_grad_()
            value = function(t)
            (slope,) = torch.autograd.grad(value.sum(), t)
            reach = (slope.abs() * torch.from_numpy(size[:, where.numpy()])).sum(2)
            found = value.detach() * weight
            values.index_add_(1, rows, found)
            sizes.index_add_(1, rows, found.abs() + reach * weight)
        return values.numpy(), sizes.numpy()


def _function(shape: Shape, exponent: float, inner: float) -> _Value:
    """Values `batch x curves` from arguments `batch x curves x arguments`."""
    if shape is Shape.SQUARES:
        return lambda t: t.square().sum(2)
    if shape is Shape.NORM:
        return lambda t: torch.linalg.vector_norm(t, dim=2)  # its slope at 0 is 0, not NaN
    if shape is Shape.EXP:
        return _exp
    if shape is Shape.LOG:
        return lambda t: _falling(t[:, :, 0], inner, lambda s: -s.log(), -1.0 / inner)
    if exponent < 0.0:
        start = max(inner, _LARGEST ** (1.0 / exponent))
        slope = exponent * start ** (exponent - 1.0)
        return lambda t: _falling(t[:, :, 0], start, lambda s: s**exponent, slope)
    if exponent % 2.0 == 0.0:
        return lambda t: t[:, :, 0] ** exponent
    if exponent < 1.0:
        # Its slope at 0 is infinite; the smallest number has none to speak of.
        return lambda t: -(t[:, :, 0].clamp(min=1e-300) ** exponent)
    return lambda t: t[:, :, 0].clamp(min=0.0) ** exponent


def _exp(t: torch.Tensor) -> torch.Tensor:
    inside = t[:, :, 0].clamp(max=_LARGEST_EXPONENT)
    beyond = (t[:, :, 0] - _LARGEST_EXPONENT).clamp(min=0.0)
    return inside.exp() + math.exp(_LARGEST_EXPONENT) * beyond


def _falling(t: torch.Tensor, start: float, value: _Value, slope: float) -> torch.Tensor:
    """A curve that is infinite at 0: from `start` on as it is, below as a line."""
    return value(t.clamp(min=start)) + slope * (t - start).clamp(max=0.0)
