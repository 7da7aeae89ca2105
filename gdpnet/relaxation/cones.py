"""Curves as cones: what the perspective of a convex function is made of.

In a product with weight lambda a row `a z + sum_k c_k f_k(t_k) <= b` of convex functions f_k with
affine arguments t_k becomes

    a z + sum_k c_k s_k <= b lambda,    s_k >= lambda f_k(t_k / lambda),    t_k = a_k z - b_k lambda

and each perspective, with its limit at lambda = 0, is a cone in (s_k, t_k, lambda). Without a
choice lambda is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from gdpnet.ir.data import Shape
from gdpnet.lp.conic import ConeKind

Member = TypeVar("Member")


@dataclass(frozen=True)
class Perspective:
    """The cone of a curve.

    Attributes:
        kind: which cone.
        order: its members: `s`, `t` (all arguments of the curve) and `w`, the weight; `-s` for
            minus s.
        exponent: of a power cone.
        signed: whether s may be negative.
    """

    kind: ConeKind
    order: tuple[str, ...]
    exponent: float = 0.5
    signed: bool = False

    def members(
        self, head: Member, weight: Member, arguments: list[Member], minus: Callable[..., Member]
    ) -> list[Member]:
        """The members in order, from what stands for s, the weight and the arguments.

        Args:
            head: stands for s.
            weight: stands for lambda.
            arguments: stand for t.
            minus: makes of a member its negative.
        """
        found: list[Member] = []
        for what in self.order:
            if what == "t":
                found += arguments
            else:
                found.append({"s": head, "w": weight}[what] if what != "-s" else minus(head))
        return found


def perspective(shape: Shape, exponent: float = 2.0) -> Perspective:
    """The cone of a curve's perspective.

    Args:
        shape: the function.
        exponent: of `Shape.POWER`. Where its domain is half of the line, that is a row of its own.
    """
    if shape is Shape.SQUARES:
        return Perspective(ConeKind.ROTATED, ("s", "w", "t"))
    if shape is Shape.NORM:
        return Perspective(ConeKind.SECOND_ORDER, ("s", "t"))
    if shape is Shape.EXP:
        return Perspective(ConeKind.EXPONENTIAL, ("s", "w", "t"))
    if shape is Shape.LOG:  # t >= lambda exp(-s / lambda)
        return Perspective(ConeKind.EXPONENTIAL, ("t", "w", "-s"), signed=True)
    if exponent > 1.0:  # |t| <= s^(1/p) lambda^(1 - 1/p)
        return Perspective(ConeKind.POWER, ("s", "w", "t"), 1.0 / exponent)
    if exponent < 0.0:  # s^a t^(1 - a) >= lambda
        return Perspective(ConeKind.POWER, ("s", "t", "w"), 1.0 / (1.0 - exponent))
    if exponent == 1.0 or not math.isfinite(exponent):
        raise ValueError(f"exponent: expected one that is not 1, got {exponent!r}.")
    # -t^p <= s: t^p lambda^(1 - p) >= -s. The cone says |s|, and nothing asks s to be large.
    return Perspective(ConeKind.POWER, ("t", "w", "-s"), exponent, signed=True)
