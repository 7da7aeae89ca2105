"""Expressions that are not linear in the variables, while they are being read.

    linear + sum(weight * left * right) + sum(weight * shape(arguments)) + sum(weight * max(...))

Weights may depend on the inputs and have any sign: whether the sum is convex is decided when all of
it is known (`convexity.py`), since terms that are not convex may make a sum that is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from gdpnet.errors import RuleError
from gdpnet.ir.data import Shape
from gdpnet.ir.linear import Coefficient, LinearForm

ONE = Coefficient(1.0)
MINUS = Coefficient(-1.0)


class Quadratic(NamedTuple):
    """`weight * left * right`; of a square both are the same object.

    Attributes:
        weight: its factor.
        left: first factor.
        right: second factor.
        shown: what the modeller wrote, for messages.
    """

    weight: Coefficient
    left: LinearForm
    right: LinearForm
    shown: Any

    @property
    def is_square(self) -> bool:
        """Whether both factors are the same."""
        return self.left is self.right


class Bend(NamedTuple):
    """`weight * shape(arguments)`: a curve, or where the weight is negative minus a curve.

    Attributes:
        weight: its factor.
        shape: a convex function.
        arguments: its arguments.
        exponent: of `Shape.POWER`.
        shown: what the modeller wrote, for messages.
    """

    weight: Coefficient
    shape: Shape
    arguments: tuple[LinearForm, ...]
    exponent: float
    shown: Any


class Peak(NamedTuple):
    """`weight * max(forms)`.

    Attributes:
        weight: its factor.
        forms: what the largest is taken of.
        shown: what the modeller wrote, for messages.
    """

    weight: Coefficient
    forms: tuple[Curved, ...]
    shown: Any


@dataclass(frozen=True)
class Curved:
    """A sum of terms.

    Attributes:
        linear: constant and linear terms.
        products: quadratic terms.
        bends: curves.
        peaks: maxima.
    """

    linear: LinearForm = field(default_factory=LinearForm)
    products: tuple[Quadratic, ...] = ()
    bends: tuple[Bend, ...] = ()
    peaks: tuple[Peak, ...] = ()

    @property
    def is_linear(self) -> bool:
        """Whether nothing in it is curved."""
        return not (self.products or self.bends or self.peaks)

    @property
    def is_constant(self) -> bool:
        """Whether no variable stands in it."""
        return self.is_linear and self.linear.is_constant

    @property
    def is_quadratic(self) -> bool:
        """Whether it has no terms beyond products."""
        return not (self.bends or self.peaks)

    @property
    def shown(self) -> Any:
        """The first term that is not linear, as the modeller wrote it."""
        return next((term.shown for term in self._terms), None)

    @property
    def _terms(self) -> list[Quadratic | Bend | Peak]:
        return [*self.products, *self.bends, *self.peaks]

    def only(self) -> Quadratic | Bend | Peak | None:
        """Its one term, where it has no other and no linear part."""
        terms = self._terms
        bare = self.linear.is_constant and self.linear.constant.is_zero
        return terms[0] if bare and len(terms) == 1 else None

    def times(self, factor: Coefficient) -> Curved:
        """`factor` times this sum."""
        if factor.is_zero:
            return Curved()

        def scaled(terms: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(term._replace(weight=term.weight * factor) for term in terms)

        return Curved(
            self.linear.times(factor), *map(scaled, (self.products, self.bends, self.peaks))
        )

    def __sub__(self, other: Curved) -> Curved:
        other = other.times(MINUS)
        return Curved(
            self.linear + other.linear,
            self.products + other.products,
            self.bends + other.bends,
            self.peaks + other.peaks,
        )

    def plus(self, linear: LinearForm) -> Curved:
        """This sum and a linear form."""
        return replace(self, linear=self.linear + linear)


def added(linear: LinearForm, forms: list[Curved]) -> Curved:
    """The curved terms of several sums, and the linear part that they make together."""
    return Curved(
        linear,
        tuple(term for form in forms for term in form.products),
        tuple(term for form in forms for term in form.bends),
        tuple(term for form in forms for term in form.peaks),
    )


def square(form: LinearForm, shown: Any) -> Curved:
    """`form ** 2`."""
    return Curved(products=(Quadratic(ONE, form, form, shown),))


def bend(shape: Shape, form: LinearForm, shown: Any, exponent: float = 2.0) -> Curved:
    """A curve of one argument."""
    return Curved(bends=(Bend(ONE, shape, (form,), exponent, shown),))


class Refusal(RuleError):  # noqa: N818
    """What cannot be proved convex, and why.

    Args:
        term: what the modeller wrote.
        reason: why it is refused, a sentence about the term.
        advice: further sentences.
    """

    def __init__(self, term: Any, reason: str, advice: str = "") -> None:
        super().__init__(f"{term} {reason}")
        self.term = term
        self.reason = reason
        self.advice = advice
