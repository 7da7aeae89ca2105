"""Numbers as people read them."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Three digits; what is but rounding is 0.

    Example:
        >>> number(0.12345), number(9.8), number(12345.6), number(1e-15), number(float("nan"))
        ('0.123', '9.80', '12,346', '0', 'none')
    """
    if math.isnan(value):
        return "none"
    if abs(value) < 1e-9:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def percent(share: float) -> str:
    """A share in per cent; 100 and 0 only where it is all and nothing.

    Example:
        >>> percent(1.0), percent(0.99996), percent(0.5), percent(0.0)
        ('100', '99.99', '50.0', '0')
    """
    if math.isnan(share):
        return "none"
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}"
    text = f"{100 * share:.1f}"
    return f"{math.floor(1e4 * share) / 100:.2f}" if text == "100.0" else text
