"""Rules: what a rule model says, ready for batches of inputs, without Pyomo and without solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from gdpnet.errors import InputError, RuleError
from gdpnet.ir.atoms import Evaluator
from gdpnet.ir.batch import name_rows
from gdpnet.ir.data import RuleData
from gdpnet.ir.prices import PriceTable, usable
from gdpnet.ir.satisfaction import Satisfaction
from gdpnet.ir.table import RowTable, RowValues

Made = TypeVar("Made")


@dataclass(frozen=True)
class Evaluated:
    """The rules for a batch of inputs.

    Attributes:
        rows: coefficients and right sides.
        clauses: which clauses apply, bool `batch x clauses`.
        rules: which rules are active, bool `batch x rules`.
        prices: of booleans, `batch x priced`; 0 where their rule does not apply.
    """

    rows: RowValues
    clauses: torch.Tensor
    rules: torch.Tensor
    prices: torch.Tensor

    def unusable(self) -> torch.Tensor:
        """Samples with a coefficient or a price that cannot be used, bool `batch`."""
        return self.rows.unusable() | ~usable(self.prices).all(1)


class Cache(dict[Any, Any]):
    """What is made from rules once and lives as long as they do, such as an engine.

    `rules.cache[make]` is `make(rules)`, for a class or function of the rules; it is made when it
    is first asked for.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self._rules = rules

    if TYPE_CHECKING:

        def __getitem__(self, make: Callable[[Any], Made]) -> Made: ...

    def __missing__(self, make: Callable[[Any], Made]) -> Made:
        return self.setdefault(make, make(self._rules))


class Rules:
    """Rules as data, with what is made from them once and used for every batch.

    `gdpnet.RuleModel` is one that was read from Pyomo or from a file. It never changes.

    Args:
        data: the rules.
    """

    def __init__(self, data: RuleData) -> None:
        self.data = data
        self.cache = Cache(self)
        self.table = RowTable(data.rows, len(data.columns))
        self.prices = PriceTable(data)
        self.satisfaction = Satisfaction(data)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_data, (self.data,)

    def __deepcopy__(self, memo: Any) -> Rules:
        return self  # nothing in it ever changes

    @classmethod
    def from_data(cls, data: RuleData) -> Any:
        """Rules of data that was read or loaded before."""
        rules = cls.__new__(cls)
        Rules.__init__(rules, data)
        return rules

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the rules: columns of `active`, `violation` and `Projection.disjunct`."""
        return tuple(rule.name for rule in self.data.rules)

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return tuple(column.name for column in self.data.columns[: self.data.outputs])

    @cached_property
    def auxiliary_names(self) -> tuple[str, ...]:
        """Names of the Vars that are no outputs."""
        return tuple(column.name for column in self.data.columns[self.data.outputs :])

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        """Names of the columns of x."""
        return self.data.inputs

    @property
    def lower(self) -> torch.Tensor:
        """Lower bounds of the outputs, `d`, float64; -inf where there is none."""
        return self.satisfaction.lower.clone()

    @property
    def upper(self) -> torch.Tensor:
        """Upper bounds of the outputs, `d`, float64; inf where there is none."""
        return self.satisfaction.upper.clone()

    @cached_property
    def is_plain(self) -> bool:
        """Whether rows alone decide: no auxiliaries, and no logic over indicators."""
        tied = any(b.tied for b in self.data.booleans)
        return not (self.auxiliary_names or tied or any(c.logic for c in self.data.clauses))

    def conditions_hold(self, x: torch.Tensor) -> torch.Tensor:
        """Which conditions hold.

        Args:
            x: inputs, `batch x p`, float64.

        Returns:
            bool `batch x conditions`.
        """
        evaluate = Evaluator(x.detach())
        hold = torch.ones(len(x), len(self.data.conditions), dtype=torch.bool, device=x.device)
        for k, condition in enumerate(self.data.conditions):
            if condition.tree is not None:
                hold[:, k] = evaluate(condition.tree)
            elif condition.function is not None:
                hold[:, k] = called_condition(condition.owner, condition.function, x.detach())
        return hold

    def evaluate(self, x: torch.Tensor) -> Evaluated:
        """Rows and activation for a batch; rows are differentiable in x.

        Args:
            x: inputs, `batch x p`, float64.
        """
        hold = self.conditions_hold(x)
        clauses = torch.ones(len(x), len(self.data.clauses), dtype=torch.bool, device=x.device)
        for index, clause in enumerate(self.data.clauses):
            for condition in clause.conditions:
                clauses[:, index] &= hold[:, condition]
        rules = clauses[:, [rule.clause for rule in self.data.rules]]
        return Evaluated(self.table.evaluate(x), clauses, rules, self.prices.evaluate(x, clauses))

    def refuse_unusable(self, evaluated: Evaluated) -> None:
        """Raise where a coefficient or a price cannot be used, naming constraint and samples."""
        values = evaluated.rows
        bad = values.unusable()
        if not bool(bad.any()):
            self._refuse_prices(evaluated.prices.detach())
            return
        rows = (~values.bound.isfinite()).any(0)
        if len(values.varying):
            rows[values.varying] |= (~values.coefficients.isfinite()).any(2).any(0)
        names = dict.fromkeys(self.data.rows[i].name for i in rows.nonzero().flatten().tolist())
        raise InputError(
            f"x: the coefficients of {', '.join(names)} are not finite for {name_rows(bad)}. "
            "Check the expression for a division by zero or a logarithm at such inputs."
        )

    def _refuse_prices(self, prices: torch.Tensor) -> None:
        wrong = ~usable(prices)
        if bool(wrong.any()):
            columns = wrong.any(0).nonzero().flatten().tolist()
            told = [self.data.price_of(self.data.priced[column]) for column in columns]
            raise InputError(
                f"x: {', '.join(told)} is negative or no number for {name_rows(wrong.any(1))}. A "
                "price is a number from 0 on; write the expression so that it cannot be less, "
                "such as gdpnet.maximum(0, ...)."
            )


def refuse_curved(rules: Rules, what: str, why: str = "") -> None:
    """Raise where a row is not linear, naming the first.

    Args:
        rules: the rules.
        what: who knows linear rows only, as the beginning of a sentence.
        why: a sentence that says why, and what to do instead.
    """
    curved = rules.data.curved
    if curved:
        more = f" (and {len(curved) - 1} more)" if len(curved) > 1 else ""
        hint = _instead(what) + "write linear rows that bound it."
        raise RuleError(
            f"{what} knows linear rows only; Constraint '{rules.data.rows[curved[0]].name}'{more} "
            f"is convex and not linear. {why or hint[0].upper() + hint[1:]}"
        )


def refuse_priced(data: RuleData, what: str) -> None:
    """Raise where a rule or a disjunct has a price, naming the first.

    Args:
        data: the rules.
        what: who knows no prices, as the beginning of a sentence.
    """
    priced = sorted({*data.priced, *(c.breaking for c in data.clauses if c.breaking >= 0)})
    if priced:
        more = f" (and {len(priced) - 1} more)" if len(priced) > 1 else ""
        hint = (_instead(what) + "leave the prices out.").capitalize()
        raise RuleError(f"{what} knows no prices, such as {data.price_of(priced[0])}{more}. {hint}")


def _instead(what: str) -> str:
    """What else could be asked for, by the keyword that a refusal begins with."""
    other = {"solver": "use solver='exact', or ", "gradient": "use gradient='vertex', or "}
    return other.get(what.partition(":")[0], "")


def called_condition(owner: str, function: Any, x: torch.Tensor) -> torch.Tensor:
    """What a condition that is a function says of inputs, `batch x p`; bool `batch`."""
    value = function(x)
    if not isinstance(value, torch.Tensor):
        try:
            value = torch.as_tensor(value, device=x.device)
        except (TypeError, ValueError, RuntimeError):
            raise RuleError(
                f"active_when of '{owner}': the function must return a bool tensor of shape "
                f"({len(x)},), got {type(value).__name__}."
            ) from None
    if value.dtype != torch.bool or value.shape != (len(x),):
        raise RuleError(
            f"active_when of '{owner}': the function must return a bool tensor of shape "
            f"({len(x)},), got {value.dtype} of shape {tuple(value.shape)}."
        )
    return value
