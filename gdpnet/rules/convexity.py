"""Rows that are not linear: read, and proved convex, or refused by name.

The proof is that of disciplined convex programming: sums with nonnegative weights, maxima, curves
of affine arguments; quadratic terms are taken together and written as a sum of squares. Signs of
what depends on inputs or variables are proved by interval arithmetic over their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, NamedTuple

from pyomo.core.expr import numeric_expr, relational_expr

from gdpnet.errors import RuleError
from gdpnet.ir import atoms
from gdpnet.ir.data import Shape
from gdpnet.ir.intervals import EVERYTHING, Interval, interval, times
from gdpnet.ir.linear import Coefficient, LinearForm
from gdpnet.rules import quadratics
from gdpnet.rules.curved import (
    MINUS,
    ONE,
    Bend,
    Curved,
    Peak,
    Quadratic,
    Refusal,
    added,
    bend,
    square,
)
from gdpnet.rules.expressions import ExpressionReader, Nonlinear, checked, shown
from gdpnet.rules.quadratics import Indefinite, Square

# A maximum is several rows; so many are written before it is refused.
_MOST_PIECES = 64
# |t| is two linear rows where that makes few rows, else a norm.
_FEW_PIECES = 16

_SPLIT = (
    "Rows must be convex: split the region into convex disjuncts, or bound it by convex rows. "
    "If a Var in it is meant as an input, declare it as a mutable Param."
)


class CurveDraft(NamedTuple):
    """A curve whose arguments are not rows yet; see `gdpnet.ir.data.Curve`."""

    shape: Shape
    weight: float
    arguments: tuple[LinearForm, ...]
    exponent: float = 2.0


RowDraft = tuple[LinearForm, bool, tuple[CurveDraft, ...]]


class ConvexReader:
    """Reads relations that are not linear.

    Args:
        expressions: reads what is linear.
        inputs: range of each input.
        column: range of a column.
    """

    def __init__(
        self,
        expressions: ExpressionReader,
        inputs: Callable[[], Sequence[Interval]],
        column: Callable[[int], Interval],
    ) -> None:
        self._expressions = expressions
        self._inputs = inputs
        self._column = column

    # ---- relations -----------------------------------------------------------------------

    def rows(self, relation: Any, owner: str) -> list[RowDraft]:
        """A relation as rows: the form that is `<= 0` (or `== 0`), and the curves added to it."""
        sides = [self._read(argument, owner) for argument in relation.args]
        if isinstance(relation, relational_expr.EqualityExpression):
            left, right = sides
            difference = left - right
            if difference.is_quadratic and not (rest := quadratics.expanded(difference))[0]:
                return [(rest[1], True, ())]
            raise self._refused(left, right, "==", owner)
        found = []
        for left, right in pairwise(sides):
            if _says_nothing(left, right) or self._always(left - right):
                continue
            try:
                found += self._convex_rows(left - right)
            except Refusal as refusal:
                raise self._refused(left, right, "<=", owner, refusal) from None
        for form, _, curves in found:
            for one in (form, *(t for curve in curves for t in curve.arguments)):
                checked(one, owner)
        return found

    def minimised(
        self, expression: Any, sign: Coefficient, owner: str, top: Callable[[], int]
    ) -> list[RowDraft]:
        """What is minimised: a sum of linear and convex terms, and rows that it needs.

        Args:
            expression: what is minimised, or maximised.
            sign: -1 for the latter.
            owner: what to call it.
            top: makes a column, which is minimised instead where there are maxima.
        """
        form = self._read(expression, owner).times(sign)
        try:
            pieces = self._pieces(form)
            if len(pieces) == 1:
                return self._piece(pieces[0])
            column = LinearForm(columns={top(): ONE})
            rows = [row for piece in pieces for row in self._piece(piece - Curved(column))]
        except Refusal as why:
            raise RuleError(
                f"{owner}: {shown(why.term)} {why.reason}. What is minimised must be convex."
            ) from None
        return [(column, False, ()), *rows]

    def _refused(
        self, left: Curved, right: Curved, sense: str, owner: str, why: Refusal | None = None
    ) -> RuleError:
        """Why a row is refused; where it would be convex with another sense, that."""
        turned = left.is_linear
        body = right - left if turned else left - right
        given = {"<=": ">=", "==": "=="}[sense] if turned else sense
        term = shown(body.shown)
        for factor, convex in ((ONE, "<="), (MINUS, ">=")):
            if convex == given:
                continue
            try:
                self._convex_rows(body.times(factor))
            except Refusal as refusal:
                why = why or refusal
            else:
                return RuleError(
                    f"{owner}: with {term} it is convex as {convex}, not as {given}. {_SPLIT}"
                )
        assert why is not None
        return RuleError(f"{owner}: {shown(why.term)} {why.reason}. {why.advice or _SPLIT}")

    def _always(self, form: Curved) -> bool:
        """Whether `form <= 0` holds for all inputs and all values of the variables."""
        return not form.is_linear and self._range(form)[1] <= 0.0

    # ---- expressions ---------------------------------------------------------------------

    def _read(self, expression: Any, owner: str) -> Curved:
        """An expression as a sum of terms."""
        reader = self._expressions
        waiting: list[tuple[Any, int]] = [(expression, -1)]
        done: list[Curved] = []
        while waiting:
            node, parts = waiting.pop()
            if parts < 0:
                leaf = reader.leaf(node, owner)
                if leaf is not None:
                    done.append(Curved(leaf))
                    continue
                arguments = reader.arguments(node, owner)
                waiting.append((node, len(arguments)))
                waiting.extend((argument, -1) for argument in reversed(arguments))
            else:
                forms = done[len(done) - parts :]
                del done[len(done) - parts :]
                try:
                    done.append(self._node(node, forms, owner))
                except Refusal as why:
                    raise RuleError(
                        f"{owner}: {shown(why.term)} {why.reason}. {why.advice or _SPLIT}"
                    ) from None
        return done[0]

    def _node(self, node: Any, forms: list[Curved], owner: str) -> Curved:
        form = self._combined(node, forms, owner)
        for term in form.bends:
            if term.shown is node:
                self._refuse_nowhere(term)
        return form

    def _combined(self, node: Any, forms: list[Curved], owner: str) -> Curved:
        if all(form.is_linear for form in forms):
            try:
                return Curved(self._expressions.node(node, [f.linear for f in forms], owner))
            except Nonlinear:
                pass
        kind = self._expressions.kind(node)
        if kind == "named":
            return forms[0]
        if kind == "sum":
            linear = self._expressions.node(node, [form.linear for form in forms], owner)
            return added(linear, forms)
        if kind == "negation":
            return forms[0].times(MINUS)
        if kind == "product":
            return self._product(node, *forms)
        if kind == "division":
            return self._division(node, *forms)
        if kind == "power":
            return self._power(node, *forms)
        if kind == "extreme":
            sign = ONE if isinstance(node, numeric_expr.MaxExpression) else MINUS
            return Curved(peaks=(Peak(sign, tuple(f.times(sign) for f in forms), node),))
        if kind == "if":
            return self._if(node, forms, owner)
        return self._function(node, forms[0])

    def _product(self, node: Any, left: Curved, right: Curved) -> Curved:
        for one, other in ((left, right), (right, left)):
            if one.is_constant:
                return other.times(one.linear.constant)
        if left.is_linear and right.is_linear:
            same = left.linear.columns == right.linear.columns and (
                left.linear.constant == right.linear.constant
            )
            second = left.linear if same else right.linear
            return Curved(products=(Quadratic(ONE, left.linear, second, node),))
        raise Refusal(node, "is a product of terms that depend on variables")

    def _division(self, node: Any, above: Curved, below: Curved) -> Curved:
        if below.is_constant:
            return above.times(quadratics.inverse(below.linear.constant))
        if above.is_constant and below.is_linear:
            return self._power_of(node, below.linear, -1.0).times(above.linear.constant)
        raise Refusal(node, "divides by a term that depends on variables")

    def _power(self, node: Any, base: Curved, exponent: Curved) -> Curved:
        if base.is_constant and exponent.is_linear and base.linear.constant.is_number:
            number = base.linear.constant.number
            if number <= 0.0:
                raise Refusal(node, "raises a number that is not positive to a variable power")
            return bend(Shape.EXP, exponent.linear.times(Coefficient(math.log(number))), node)
        if not (exponent.is_constant and exponent.linear.constant.is_number):
            raise Refusal(node, "has an exponent that is no number")
        power = exponent.linear.constant.number
        if power == 0.5:
            return self._root(node, base)
        if base.is_linear:
            return self._power_of(node, base.linear, power)
        term = base.only()
        if isinstance(term, Bend) and term.shape is Shape.NORM and power == 2.0:
            weight = term.weight * term.weight
            return Curved(products=tuple(Quadratic(weight, t, t, node) for t in term.arguments))
        whole = power % 1.0 == 0.0 and power > 0.0
        if whole and isinstance(term, Quadratic) and term.is_square and term.weight.is_number:
            weight = Coefficient(term.weight.number**power)
            return self._power_of(node, term.left, 2.0 * power).times(weight)
        raise _composed(node)

    def _power_of(self, node: Any, form: LinearForm, power: float) -> Curved:
        """`form ** power`."""
        if power == 2.0:
            return square(form, node)
        whole, even = power % 1.0 == 0.0, power % 2.0 == 0.0
        if not whole:  # only where the base is positive is it a number
            sign = MINUS if 0.0 < power < 1.0 else ONE
            return bend(Shape.POWER, form, node, power).times(sign)
        if even and power > 0.0:
            return bend(Shape.POWER, form, node, power)
        low, high = self._linear_range(form)
        if low >= 0.0:
            return bend(Shape.POWER, form, node, power)
        if high <= 0.0:
            turned = bend(Shape.POWER, form.times(MINUS), node, power)
            return turned if even else turned.times(MINUS)
        raise Refusal(
            node,
            f"is convex or concave only on one side of 0, and its base may lie in "
            f"[{low:g}, {high:g}]",
            "Give its Vars bounds that keep the base on one side.",
        )

    def _root(self, node: Any, form: Curved) -> Curved:
        if form.is_linear:
            return bend(Shape.POWER, form.linear, node, 0.5).times(MINUS)
        if not form.is_quadratic:
            raise _composed(node)
        try:
            squares = self._squares(form, with_constant=True)[0]
        except Refusal:
            raise Refusal(node, "is the root of what is no sum of squares") from None
        arguments = tuple(s.form.times(Coefficient(math.sqrt(s.weight))) for s in squares)
        return Curved(bends=(Bend(ONE, Shape.NORM, arguments, 2.0, node),))

    def _function(self, node: Any, form: Curved) -> Curved:
        name = node.getname()
        if name == "sqrt":
            return self._root(node, form)
        if name not in ("exp", "log", "log10", "abs"):
            raise Refusal(node, f"is a function ({name}) of variables that rules do not know")
        if not form.is_linear:
            raise _composed(node)
        if name == "abs":
            return Curved(bends=(Bend(ONE, Shape.NORM, (form.linear,), 2.0, node),))
        if name == "exp":
            return bend(Shape.EXP, form.linear, node)
        factor = -1.0 if name == "log" else -1.0 / math.log(10.0)
        return bend(Shape.LOG, form.linear, node).times(Coefficient(factor))

    def _if(self, node: Any, forms: list[Curved], owner: str) -> Curved:
        chosen, other = forms
        condition = self._expressions.condition(node.args[0], owner)
        if condition in (atoms.TRUE, atoms.FALSE):
            return chosen if condition == atoms.TRUE else other
        zero, one = atoms.number(0.0), atoms.number(1.0)
        then = chosen.times(Coefficient.of(("if", condition, one, zero)))
        return then - other.times(Coefficient.of(("if", condition, zero, one))).times(MINUS)

    # ---- proofs --------------------------------------------------------------------------

    def _convex_rows(self, form: Curved) -> list[RowDraft]:
        """`form <= 0` as rows.

        Raises:
            Refusal: it is not known to be convex.
        """
        return [row for piece in self._pieces(form) for row in self._piece(piece)]

    def _pieces(self, form: Curved) -> list[Curved]:
        """Sums without maxima, all of which are `<= 0` where this one is."""
        absolute = [b for b in form.bends if b.shape is Shape.NORM and len(b.arguments) == 1]
        if absolute and 2 ** len(absolute) <= _FEW_PIECES:
            both = tuple(
                Peak(b.weight, (Curved(t), Curved(t.times(MINUS))), b.shown)
                for b in absolute
                for t in b.arguments
            )
            others = tuple(b for b in form.bends if b not in absolute)
            form = Curved(form.linear, form.products, others, form.peaks + both)
        if not form.peaks:
            return [form]
        for peak in form.peaks:
            self._refuse_negative(peak.weight, peak.shown)
        count = math.prod(len(peak.forms) for peak in form.peaks)
        if count > _MOST_PIECES:
            raise Refusal(
                form.peaks[0].shown,
                f"and other maxima make {count} rows",
                "Write each maximum as a Var of its own, with one row for each of its terms.",
            )
        base = Curved(form.linear, form.products, form.bends)
        pieces = []
        for chosen in product(*(peak.forms for peak in form.peaks)):
            total = base
            for peak, one in zip(form.peaks, chosen, strict=True):
                total = total - one.times(peak.weight).times(MINUS)
            pieces += self._pieces(total)
        return pieces

    def _piece(self, form: Curved) -> list[RowDraft]:
        squares, linear = self._squares(form)
        by_weight: dict[float, list[LinearForm]] = {}
        for one in squares:
            by_weight.setdefault(one.weight, []).append(one.form)
        curves = [
            CurveDraft(Shape.SQUARES, weight, tuple(forms)) for weight, forms in by_weight.items()
        ]
        rows: list[RowDraft] = []
        for term in form.bends:
            self._refuse_negative(term.weight, term.shown)
            curves.append(self._weighted(term))
            domain = self._domain(term)
            if domain is not None:
                rows.append((domain, False, ()))
        return [(linear, False, tuple(curves)), *rows]

    def _squares(
        self, form: Curved, with_constant: bool = False
    ) -> tuple[list[Square], LinearForm]:
        """The products as a sum of squares, and the linear terms beside it."""
        ranges = self._inputs()
        if all(p.is_square and self._sign(p.weight)[0] >= 0.0 for p in form.products):
            if not with_constant:
                return [_weighted_square(p, ranges) for p in form.products], form.linear
            if form.linear.is_constant and self._sign(form.linear.constant)[0] >= 0.0:
                squares = [_weighted_square(p, ranges) for p in form.products]
                if not form.linear.constant.is_zero:
                    root = quadratics.root_of(form.linear.constant, ranges)
                    squares.append(Square(1.0, LinearForm(root)))
                return squares, LinearForm()
        entries, linear = quadratics.expanded(form, with_constant)
        try:
            return quadratics.squares(entries, ranges), linear
        except Indefinite as found:
            kept = [p for p in form.products if p.is_square and self._sign(p.weight)[0] >= 0.0]
            kept = [p for p in kept if not _is_number(p)]
            if found.least is not None or not kept:
                raise self._not_squares(form, found.least) from None
        # Squares that depend on inputs stay as they were written.
        others = replace(form, products=tuple(p for p in form.products if p not in kept))
        squares, linear = self._squares(others, with_constant)
        return [*(_weighted_square(p, ranges) for p in kept), *squares], linear

    def _not_squares(self, form: Curved, least: float | None) -> Refusal:
        if least is None:
            return Refusal(
                form.products[0].shown,
                "has coefficients that depend on inputs, and no sum of squares was found that the "
                "quadratic terms are for all inputs within input_bounds",
                "Write them as squares times coefficients that are never negative, and give the "
                "inputs input_bounds, as narrow as they are.",
            )
        # Of several terms name one that is to blame.
        blamed = next((p for p in form.products if not p.is_square), form.products[0])
        for p in form.products:
            if p.is_square and p.weight.is_number and p.weight.number < 0.0:
                blamed = p
                break
        return Refusal(
            blamed.shown,
            f"makes it neither convex nor concave: the matrix of its quadratic terms has the "
            f"eigenvalue {least:g}",
        )

    def _weighted(self, term: Bend) -> CurveDraft:
        """A curve whose weight is a number: what depends on inputs goes into its arguments."""
        weight, arguments = term.weight, term.arguments
        if weight.is_number:
            return CurveDraft(term.shape, weight.number, arguments, term.exponent)
        if term.shape is Shape.NORM:
            arguments = tuple(t.times(weight) for t in arguments)
        elif self._sign(weight)[0] <= 0.0:
            raise Refusal(term.shown, "has a coefficient that may be 0 for some inputs")
        elif term.shape is Shape.EXP:
            arguments = (arguments[0] + LinearForm(Coefficient.of(("log", weight.tree()))),)
        elif term.shape is Shape.POWER:
            root = ("power", weight.tree(), atoms.number(1.0 / term.exponent))
            arguments = (arguments[0].times(Coefficient.of(root)),)
        else:
            raise Refusal(
                term.shown,
                "is a logarithm with a coefficient that depends on inputs",
                "Divide the Constraint by the coefficient.",
            )
        return CurveDraft(term.shape, 1.0, arguments, term.exponent)

    def _domain(self, term: Bend) -> LinearForm | None:
        """`-t`, which is at most 0 where the curve is defined; None where it always is."""
        if not _has_domain(term):
            return None
        (form,) = term.arguments
        return None if self._linear_range(form)[0] >= 0.0 else form.times(MINUS)

    def _refuse_nowhere(self, term: Bend) -> None:
        """Raise where bounds leave no point at which a curve is defined."""
        if not _has_domain(term):
            return
        low, high = self._linear_range(term.arguments[0])
        positive = term.shape is Shape.LOG or term.exponent < 0.0
        if high < 0.0 or (positive and high <= 0.0):
            raise Refusal(
                term.shown,
                f"is defined where its argument is {'positive' if positive else 'not negative'}, "
                f"but bounds keep it in [{low:g}, {high:g}]",
                "Mend the bounds of its Vars.",
            )

    def _refuse_negative(self, weight: Coefficient, term: Any) -> None:
        low, high = self._sign(weight)
        if low >= 0.0:
            return
        if weight.is_number:
            raise Refusal(term, "is concave on the side of <=")
        raise Refusal(
            term,
            f"has a coefficient that is not proved nonnegative: over input_bounds it may lie in "
            f"[{low:g}, {high:g}]",
            "Give the inputs input_bounds for which it is, or write it so that it cannot be "
            "negative, for example as a square or with gdpnet.relu.",
        )

    # ---- ranges --------------------------------------------------------------------------

    def _sign(self, weight: Coefficient) -> Interval:
        if weight.is_number:
            return weight.number, weight.number
        return interval(weight.tree(), self._inputs())

    def _linear_range(self, form: LinearForm) -> Interval:
        parts = [self._sign(form.constant)]
        parts += [times(self._sign(a), self._column(j)) for j, a in form]
        low, high = math.fsum(p[0] for p in parts), math.fsum(p[1] for p in parts)
        return (low, high) if low <= high else EVERYTHING

    def _range(self, form: Curved) -> Interval:
        """A range of a sum, as far as its squares and norms tell; wide for other terms."""
        low, high = self._linear_range(form.linear)
        terms = [(p.weight, p.is_square) for p in form.products]
        terms += [(b.weight, b.shape in (Shape.NORM, Shape.EXP)) for b in form.bends]
        for weight, positive in [*terms, *((peak.weight, False) for peak in form.peaks)]:
            of_term = times(self._sign(weight), (0.0, math.inf)) if positive else EVERYTHING
            low, high = low + of_term[0], high + of_term[1]
        return low, high


def _has_domain(term: Bend) -> bool:
    """Whether a curve is defined for some arguments only."""
    even = term.exponent % 2.0 == 0.0 and term.exponent > 0.0
    return term.shape is Shape.LOG or (term.shape is Shape.POWER and not even)


def _weighted_square(term: Quadratic, ranges: Sequence[Interval]) -> Square:
    if term.weight.is_number:
        return Square(term.weight.number, term.left)
    return Square(1.0, term.left.times(quadratics.root_of(term.weight, ranges)))


def _is_number(term: Quadratic) -> bool:
    """Whether a product does not depend on inputs."""
    forms = (term.left, term.right)
    every = [term.weight, *(f.constant for f in forms), *(a for f in forms for _, a in f)]
    return all(coefficient.is_number for coefficient in every)


def _says_nothing(left: Curved, right: Curved) -> bool:
    """Whether a side is an infinite bound."""
    return (left.is_constant and left.linear.constant.number == -math.inf) or (
        right.is_constant and right.linear.constant.number == math.inf
    )


def _composed(node: Any) -> Refusal:
    return Refusal(
        node,
        "is a function of what is not linear, which rules do not know",
        "Write the inner part as a Var of its own, with a row that bounds it.",
    )
