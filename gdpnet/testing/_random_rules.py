"""Random rule models with what makes solvers stumble."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

import gdpnet


def random_rules(rng: np.random.Generator) -> gdpnet.RuleModel:
    """Rules with what makes solvers stumble, for one to five outputs.

    Integer data (ties, degenerate vertices), duplicates, equalities, bad scales, empty and
    contradictory disjuncts, unbounded and integer outputs, auxiliaries, nesting, logic.

    Example:
        >>> import numpy as np
        >>> from gdpnet.testing import random_predictions, random_rules
        >>> rng = np.random.default_rng(0)
        >>> rules = random_rules(rng)
        >>> random_predictions(rng, len(rules.output_names)).shape[0]
        4
    """
    return _Draft(rng).rules()


def random_predictions(rng: np.random.Generator, d: int) -> np.ndarray:
    """Four predictions: two anywhere, two on whole and half numbers, where boundaries are."""
    return np.vstack([rng.uniform(-1, 5, (2, d)), rng.integers(-2, 11, (2, d)) / 2.0])


class _Draft:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.d = int(rng.integers(1, 6))
        m = self.m = pyo.ConcreteModel()
        m.y = pyo.Var(range(self.d), bounds=(0, 4) if rng.random() < 0.8 else (None, None))
        if rng.random() < 0.2:
            whole = m.y[int(rng.integers(self.d))]
            whole.domain = pyo.Integers
            whole.setlb(0)
            whole.setub(4)
        m.a = pyo.Var(range(2), bounds=(0, 3) if rng.random() < 0.5 else (None, None))
        self.auxiliaries = rng.random() < 0.25
        self.relations: list[Any] = []

    def rules(self) -> gdpnet.RuleModel:
        m, rng = self.m, self.rng
        m.g = pyo.ConstraintList()
        for _ in range(rng.integers(0, 3)):
            m.g.add(self.relation())
        plain = rng.random() < 0.6
        disjunctions = []
        for r in range(rng.integers(1, 6)):
            if plain:
                m.add_component(f"rule{r}", Disjunction(expr=self.terms()))
            else:
                disjunctions.append(self.built(f"rule{r}"))
        if disjunctions and rng.random() < 0.7:
            indicators = [d.indicator_var for disjunction in disjunctions for d in disjunction]
            m.logic = pyo.LogicalConstraintList()
            for _ in range(rng.integers(1, 4)):
                m.logic.add(self.proposition(indicators))
        return gdpnet.RuleModel(m, outputs=[m.y])

    def relation(self) -> Any:
        rng, m = self.rng, self.m
        if self.relations and rng.random() < 0.1:
            return self.relations[int(rng.integers(len(self.relations)))]  # a duplicate
        a = rng.integers(-2, 3, self.d).astype(float) * (rng.random(self.d) < 0.7)
        scale = 10.0 ** rng.integers(-5, 6) if rng.random() < 0.2 else 1.0
        left: Any = sum(scale * c * m.y[j] for j, c in enumerate(a) if c)
        if self.auxiliaries and rng.random() < 0.5:
            left = left + scale * float(rng.choice([-1, 1])) * m.a[int(rng.integers(2))]
        if isinstance(left, int):
            left = scale * m.y[0]
        right = scale * float(rng.integers(-3, 7))
        kind = rng.random()
        found = left == right if kind < 0.12 else (left <= right if kind < 0.55 else left >= right)
        self.relations.append(found)
        return found

    def terms(self) -> list[list[Any]]:
        rng = self.rng
        terms = [
            [self.relation() for _ in range(rng.integers(1, 4))] for _ in range(rng.integers(1, 5))
        ]
        if rng.random() < 0.2:
            terms.append(list(terms[0]))  # the same disjunct twice
        return terms

    def built(self, name: str) -> list[Any]:
        """A Disjunction of Disjuncts that logic can name, one of them perhaps with a nested one."""
        m, rng = self.m, self.rng
        terms = self.terms()
        disjuncts = Disjunct(range(len(terms)))
        m.add_component(f"{name}_parts", disjuncts)
        for k, rows in enumerate(terms):
            disjuncts[k].rows = pyo.ConstraintList()
            for row in rows:
                disjuncts[k].rows.add(row)
        if rng.random() < 0.4:
            disjuncts[0].inner = Disjunction(expr=self.terms())
        parts = [disjuncts[k] for k in range(len(terms))]
        m.add_component(name, Disjunction(expr=parts, xor=bool(rng.random() < 0.5)))
        return parts

    def proposition(self, indicators: list[Any]) -> Any:
        rng = self.rng
        picked = [indicators[int(k)] for k in rng.choice(len(indicators), size=3)]
        one, two, three = (pyo.lnot(v) if rng.random() < 0.3 else v for v in picked)
        return [
            lambda: pyo.implies(one, pyo.lor(two, three)),
            lambda: pyo.lor(one, two),
            lambda: pyo.equivalent(one, two),
            lambda: pyo.xor(one, pyo.land(two, three)),
            lambda: pyo.atmost(1, one, two, three),
            lambda: pyo.atleast(2, one, two, three),
        ][int(rng.integers(6))]()
