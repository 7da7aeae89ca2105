"""Explanation: what moved one prediction, in names and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

_DUST = 1e-12  # what rounding leaves of a 0


def _text(value: float, sign: str = "") -> str:
    return format(0.0 if abs(value) < _DUST else value, f"{sign}.4g")


@dataclass(frozen=True)
class Move:
    """An output that was moved.

    Attributes:
        output: its name.
        before: predicted.
        after: at the result.
    """

    output: str
    before: float
    after: float

    def __str__(self) -> str:
        change = _text(self.after - self.before, "+")
        return f"{self.output}: {_text(self.before)} -> {_text(self.after)} ({change})"


@dataclass(frozen=True)
class TightRow:
    """A constraint that the result just meets, and that keeps it from coming nearer.

    Attributes:
        name: the Pyomo Constraint, or "bounds of NAME", or "NAME is whole".
        text: what it says.
        rate: distance saved for each unit by which its right side is relaxed, as long as the same
            constraints stay tight; 0 where another tight one already says as much. Negative for an
            equality whose right side would have to fall.
        excess: left minus right side at the prediction, in the constraint's own unit, of a convex
            row that of its tangent at the output; NaN where auxiliaries stand in it.
    """

    name: str
    text: str
    rate: float
    excess: float

    @property
    def share(self) -> float:
        """Its part of the distance, `rate * excess`; without auxiliaries the parts sum to it."""
        return self.rate * self.excess

    def __str__(self) -> str:
        if abs(self.rate) < _DUST:
            return f"{self.text} is just met, at no cost"
        costs = f"{self.text} is just met; each unit of it costs {_text(abs(self.rate))}"
        if self.excess != self.excess:
            return costs
        return f"{costs}, {_text(self.share)} of the distance"


@dataclass(frozen=True)
class ActiveRule:
    """A rule that applies to the sample.

    Attributes:
        name: its name.
        violation: at the prediction, as in `RuleModel.violation`.
        broken: whether that is more than the rounding of the prediction's type.
        disjunct: name of the disjunct that holds at the result, None where none is known.
        tight: rows of that disjunct that are just met.
        price: what was paid for breaking it; None where it was not bought off.
        holding: what holding it would have cost instead, inf where it cannot be held; None where it
            was not bought off.
    """

    name: str
    violation: float
    broken: bool
    disjunct: str | None
    tight: tuple[TightRow, ...]
    price: float | None = None
    holding: float | None = None

    def __str__(self) -> str:
        told = f"broken by {self.violation:.4g}" if self.broken else "holds"
        parts = [f"{self.name}: {told} at the prediction"]
        if self.price is not None and self.holding is not None:
            cost = f"would have cost {_text(self.holding)}"
            cost = "is not possible" if self.holding == float("inf") else cost
            parts.append(
                f"{self.name} was broken: holding it {cost}, its price is {_text(self.price)}"
            )
        if self.disjunct is not None and (self.broken or self.tight):
            parts.append(f"the result takes {self.disjunct}")
        return "; ".join([*parts, *map(str, self.tight)])


@dataclass(frozen=True)
class Explanation:
    """Which rules and constraints moved a prediction.

    Attributes:
        status: name of the `gdpnet.Status`.
        message: what that means.
        distance: weighted distance from prediction to result, in the norm asked for; inf on
            CONFLICT.
        y: the result, in the order of the outputs.
        moved: outputs that changed, the farthest first.
        rules: rules that apply to the sample, in declaration order.
        always: global constraints, bounds and whole numbers that are just met and cost something.
        conflict: where the rules contradict: names as `RuleModel.explain_conflict` gives them.
        price: what was paid beside the distance, for chosen disjuncts and broken rules.
    """

    status: str
    message: str
    distance: float
    y: tuple[float, ...]
    moved: tuple[Move, ...]
    rules: tuple[ActiveRule, ...]
    always: tuple[TightRow, ...]
    conflict: tuple[str, ...] = ()
    price: float = 0.0

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the rules that the prediction breaks."""
        return tuple(rule.name for rule in self.rules if rule.broken)

    def __repr__(self) -> str:
        lines = [f"{self.status}: {self._headline()}"]
        for title, entries in self._sections():
            lines += [f"  {title}", *(f"    {entry}" for entry in entries)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = f"<p><b>{escape(self.status)}</b>: {escape(self._headline())}</p>"
        style = "text-align:left;padding-top:.6em"
        parts = ["<table style='border-collapse:collapse'>"]
        for title, entries in self._sections():
            parts.append(f"<tr><th style='{style}'>{escape(title)}</th></tr>")
            parts += [f"<tr><td style='text-align:left'>{escape(e)}</td></tr>" for e in entries]
        return f"<div class='gdpnet-explanation'>{head}{''.join(parts)}</table></div>"

    def _headline(self) -> str:
        if self.conflict:
            return f"{', '.join(self.conflict)} contradict each other; the prediction is unchanged"
        paid = f"; {_text(self.price)} paid" if self.price > 0.0 else ""
        if self.moved:
            return f"{self.message}, by {self.distance:.4g}{paid}"
        return f"nothing moved{paid}" if paid else self.message

    def _sections(self) -> Iterator[tuple[str, list[str]]]:
        if self.moved:
            yield "outputs moved", [str(move) for move in self.moved]
        if self.rules:
            yield "rules that apply", [str(rule) for rule in self.rules]
        if self.always:
            yield "always", [f"{row.name}: {row}" for row in self.always]
