"""Checks of keywords that several functions share."""

from __future__ import annotations

from typing import Any

import numpy as np

from gdpnet.errors import InputError
from gdpnet.rules.model import RuleModel


def weights_of(weights: Any, rules: RuleModel) -> np.ndarray:
    """Weights of the outputs, `d`; 1 where not given."""
    d = len(rules.output_names)
    if weights is None:
        return np.ones(d)
    try:
        array = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        array = np.asarray(weights, dtype=object)
    if array.dtype == object or array.shape != (d,) or not (np.isfinite(array) & (array > 0)).all():
        raise InputError(
            f"weights: expected {d} positive numbers, one an output "
            f"({', '.join(rules.output_names[:8])}), got {array!r}."
        )
    return array


def check_choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Raise where a keyword is none of the known ones."""
    if value not in known:
        raise InputError(f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}.")


def check_positive(name: str, value: Any) -> None:
    """Raise where a keyword is neither None nor a positive number."""
    if value is not None and not (isinstance(value, int | float) and value > 0):
        raise InputError(f"{name}: expected a positive number or None, got {value!r}.")
