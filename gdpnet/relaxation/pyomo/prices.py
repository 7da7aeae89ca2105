"""Prices of rules and disjuncts, from the Suffix `rule_price`.

A rule with a price has one more Disjunct, without constraints, that costs it. From there on every
price is that of a Disjunct: a product costs the sum of its sources, and the objective has price
times binary of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pyomo.environ as pyo
from pyomo.common.modeling import unique_component_name
from pyomo.gdp import Disjunct, Disjunction
from pyomo.gdp.disjunct import DisjunctionData

from gdpnet.errors import RuleError
from gdpnet.relaxation.pyomo import walk
from gdpnet.relaxation.pyomo.provenance import of
from gdpnet.rules.numbers import PRICES, Entries

_KINDS = (Disjunction, Disjunct, pyo.Constraint)


def entries(model: Any) -> Entries:
    """What the Suffixes of a model say."""
    found = Entries(model, PRICES, None, "a price", _KINDS)
    found.read()
    return found


def note(model: Any, disjunctions: Iterable[DisjunctionData]) -> None:
    """Note the price of every disjunct, and let rules with a price be bought off; once.

    Args:
        model: has the Suffixes.
        disjunctions: rules; what is nested in them comes along.
    """
    given = entries(model)
    for rule in list(walk.tree(disjunctions)):
        for disjunct in rule.disjuncts:
            if of(disjunct).price is None:
                price = given.of(disjunct)
                of(disjunct).price = 0.0 if price is None else _checked(price, disjunct)
        price = given.of(rule)
        if price is not None and not any(of(disjunct).breaks for disjunct in rule.disjuncts):
            buy_off(rule, price, rule)


def buy_off(rule: DisjunctionData, price: Any, source: Any) -> None:
    """Give a rule one more disjunct, empty, at a price; none where that is infinite.

    Args:
        rule: the Disjunction.
        price: a number or an expression of Params.
        source: whose price it is.
    """
    price = _checked(price, source)
    if isinstance(price, float) and price == math.inf:
        return
    block = rule.parent_block()
    broken = Disjunct()
    block.add_component(unique_component_name(block, "_gdpnet_broken"), broken)
    rule.disjuncts.append(broken)
    of(broken).price, of(broken).breaks = price, True


def total(disjuncts: Iterable[Any]) -> Any:
    """What disjuncts cost together."""
    prices = [p for p in (of(d).price for d in disjuncts) if not (isinstance(p, float) and p == 0)]
    return pyo.quicksum(prices) if prices else 0.0


def paid(disjunctions: Iterable[DisjunctionData]) -> Iterator[Any]:
    """Price times binary of each disjunct that costs something."""
    for rule in walk.tree(disjunctions):
        for disjunct in walk.possible(rule):
            price = of(disjunct).price
            if not isinstance(price, float) or price != 0.0:
                yield price * disjunct.binary_indicator_var


def _checked(price: Any, source: Any) -> Any:
    """A price as it is given: numbers as numbers, what Params may change as an expression."""
    try:
        value = float(pyo.value(price))
    except (TypeError, ValueError):
        raise RuleError(
            f"{PRICES} of '{source.name}': expected a number or an expression of Params, got "
            f"{price!r}."
        ) from None
    if not value >= 0.0:
        raise RuleError(f"{PRICES} of '{source.name}': expected a number from 0 on, got {value:g}.")
    symbolic = hasattr(price, "is_constant") and not price.is_constant()
    return price if symbolic else value
