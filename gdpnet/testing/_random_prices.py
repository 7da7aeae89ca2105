"""Rules that get prices they did not have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gdpnet.ir.data import Boolean, Kind, RuleData
from gdpnet.ir.linear import Coefficient
from gdpnet.model import RuleModel

# Many are the same, and the same as distances are: ties.
_PRICES = (0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 5.0)


def with_random_prices(rules: RuleModel, rng: np.random.Generator) -> RuleModel:
    """The same rules, of which some may be broken at a price and some disjuncts cost something.

    Nested ones as well; a price may depend on the inputs.

    Args:
        rules: rules without prices.
        rng: what is drawn from.

    Example:
        >>> import numpy as np
        >>> from gdpnet.testing import random_rules, with_random_prices
        >>> rng = np.random.default_rng(0)
        >>> priced = with_random_prices(random_rules(rng), rng)
        >>> len(priced.data.priced) > 0
        True
    """
    data = rules.data
    booleans, clauses = list(data.booleans), list(data.clauses)
    breaking = {}
    for k, clause in enumerate(data.clauses):
        if clause.logic:
            continue
        for literal in clause.literals:
            if rng.random() < 0.25 and clause.kind is Kind.DISJUNCTION:
                booleans[literal - 1] = replace(booleans[literal - 1], price=_price(data, rng))
        if rng.random() < 0.6:
            booleans.append(Boolean(f"{clause.name} is broken", price=_price(data, rng)))
            breaking[k] = len(booleans)
            literals = (*clause.literals, len(booleans))
            clauses[k] = replace(clause, literals=literals, breaking=len(booleans) - 1)
    given = tuple(
        replace(rule, positions=(*rule.positions, -1)) if rule.clause in breaking else rule
        for rule in data.rules
    )
    made = replace(data, booleans=tuple(booleans), clauses=tuple(clauses), rules=given)
    return RuleModel.from_data(made)


def _price(data: RuleData, rng: np.random.Generator) -> Coefficient:
    number = float(rng.choice(_PRICES)) if rng.random() < 0.7 else float(rng.uniform(0.0, 3.0))
    if data.inputs and rng.random() < 0.3:
        k = int(rng.integers(len(data.inputs)))
        return Coefficient(number, {("abs", ("input", k)): float(rng.choice([0.125, 0.5]))})
    return Coefficient(number)
