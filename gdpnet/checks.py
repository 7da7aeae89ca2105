"""Checks of keywords that several functions share."""

from __future__ import annotations

import math
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gdpnet.errors import InputError

if TYPE_CHECKING:
    from gdpnet.ir.rules import Rules

# Beyond this ratio the lighter output vanishes in the rounding errors of the heavier one.
_WIDEST = 1e9


@cache
def _ones(d: int) -> np.ndarray:
    return np.ones(d)


def weights_of(weights: Any, rules: Rules) -> tuple[np.ndarray, float]:
    """Weights of the outputs, `d`, 1 where not given; and the largest of them."""
    d = rules.data.outputs
    if weights is None:
        return _ones(d), 1.0
    if isinstance(weights, torch.Tensor):
        weights = weights.detach().cpu().numpy()
    try:
        array = np.array(weights, dtype=float)  # a copy: the caller may write into it
    except (TypeError, ValueError):
        array = np.asarray(weights, dtype=object)
    if array.dtype == object or array.shape != (d,) or not (np.isfinite(array) & (array > 0)).all():
        raise InputError(
            f"weights: expected {d} positive numbers, one for each output "
            f"({', '.join(rules.output_names[:8])}), got {array!r}."
        )
    if array.max() > _WIDEST * array.min():
        raise InputError(
            f"weights: they differ by a factor of {array.max() / array.min():.0e}; more than "
            f"{_WIDEST:.0e} cannot be told apart in double precision."
        )
    return array, float(array.max())


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Raise where a keyword is none of the known ones."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}.")


def check_seconds(name: str, value: Any) -> None:
    """Raise where a keyword is neither None nor a positive number."""
    good = isinstance(value, Real) and not isinstance(value, bool) and float(value) > 0
    if value is not None and not good:
        raise InputError(f"{name}: expected a positive number of seconds or None, got {value!r}.")


def check_count(name: str, value: Any, none: bool = False) -> None:
    """Raise where a keyword is no whole number from 1 to 2**62 (or None, where that is allowed)."""
    if (none and value is None) or (type(value) is int and 0 < value < 2**62):
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= int(value) <= 2**62:
        allowed = " or None" if none else ""
        raise InputError(f"{name}: expected a whole number >= 1{allowed}, got {value!r}.")


def check_tolerance(value: Any) -> None:
    """Raise where a tolerance is no finite number >= 0."""
    good = isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value)
    if not good or not math.isfinite(value):
        raise InputError(f"tol: expected a finite number >= 0, got {value!r}.")
