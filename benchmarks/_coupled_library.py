"""Models of the kinds that libraries of disjunctive programs have, with numbers of our own."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyomo.environ as pyo
from _coupled_case import Array, Case
from pyomo.gdp import Disjunct, Disjunction


def network(scenarios: int, nodes: int = 14, chords: int = 6, seed: int = 0) -> Case:
    """Flows in a network, scenario by scenario; enough limits hold in nine of ten scenarios."""
    rng = np.random.default_rng(seed)
    edges = [(k, (k + 1) % nodes) for k in range(nodes)]
    pairs = [pair for pair in combinations(range(nodes), 2) if (pair[1] - pair[0]) % nodes > 1]
    edges += [pairs[k] for k in rng.choice(len(pairs), chords, replace=False)]
    sources = sorted(rng.choice(nodes, 5, replace=False).tolist())
    need = np.clip(rng.normal(30.0, 25.0, (scenarios, nodes)), 0.0, None)
    need[:, sources] = 0.0
    made = np.array([300.0, 150.0, 100.0, 100.0, 100.0])
    least_sources, least_lines = 4, len(edges) - 1

    def build() -> tuple[pyo.ConcreteModel, list[Any], list[Any]]:
        m = pyo.ConcreteModel()
        every, lines, runs = range(len(sources)), range(len(edges)), range(scenarios)
        m.flow = pyo.Var(lines, runs, bounds=(-150.0, 150.0))
        m.supply = pyo.Var(every, runs, bounds=(0.0, 600.0))
        m.more_line = pyo.Var(lines, bounds=(0.0, 100.0))
        m.more_supply = pyo.Var(every, bounds=(0.0, 300.0))

        def balance(m: Any, node: int, k: int) -> Any:
            come = sum(m.flow[e, k] for e in lines if edges[e][1] == node)
            gone = sum(m.flow[e, k] for e in lines if edges[e][0] == node)
            own = sum(m.supply[g, k] for g in every if sources[g] == node)
            return own + come - gone == float(need[k, node])

        m.balance = pyo.Constraint(range(nodes), runs, rule=balance)
        m.w = pyo.BooleanVar(runs)

        def held(block: Any, g: int, k: int) -> None:
            block.row = pyo.Constraint(expr=m.supply[g, k] <= float(made[g]) + m.more_supply[g])

        def broken(block: Any, g: int, k: int) -> None:
            block.row = pyo.Constraint(expr=m.supply[g, k] >= float(made[g]) + m.more_supply[g])

        def within(block: Any, e: int, k: int) -> None:
            block.up = pyo.Constraint(expr=m.flow[e, k] <= 50.0 + m.more_line[e])
            block.down = pyo.Constraint(expr=-m.flow[e, k] <= 50.0 + m.more_line[e])

        def above(block: Any, e: int, k: int) -> None:
            block.up = pyo.Constraint(expr=m.flow[e, k] >= 50.0 + m.more_line[e])

        def below(block: Any, e: int, k: int) -> None:
            block.down = pyo.Constraint(expr=-m.flow[e, k] >= 50.0 + m.more_line[e])

        m.held, m.broken = Disjunct(every, runs, rule=held), Disjunct(every, runs, rule=broken)
        m.within = Disjunct(lines, runs, rule=within)
        m.above, m.below = Disjunct(lines, runs, rule=above), Disjunct(lines, runs, rule=below)
        m.of_supply = Disjunction(every, runs, rule=lambda m, g, k: [m.held[g, k], m.broken[g, k]])
        m.of_line = Disjunction(
            lines, runs, rule=lambda m, e, k: [m.within[e, k], m.above[e, k], m.below[e, k]]
        )

        def event(m: Any, k: int) -> Any:
            enough = pyo.atleast(least_sources, *(m.held[g, k].indicator_var for g in every))
            good = pyo.atleast(least_lines, *(m.within[e, k].indicator_var for e in lines))
            return pyo.equivalent(pyo.land(enough, good), m.w[k])

        m.event = pyo.LogicalConstraint(runs, rule=event)
        m.often = pyo.LogicalConstraint(expr=pyo.atleast(int(np.ceil(0.9 * scenarios)), m.w))
        return m, [m.flow, m.supply, m.more_line, m.more_supply], []

    def sample(count: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed + 1)
        flow = rng.normal(0.0, 40.0, (count, len(edges), scenarios))
        mean = need.sum(1) / len(sources)
        supply = mean * rng.uniform(0.2, 1.8, (count, len(sources), scenarios))
        more = np.abs(rng.normal(0.0, 5.0, (count, len(edges) + len(sources))))
        parts = flow.reshape(count, -1), supply.reshape(count, -1), more
        return np.zeros((count, 0)), np.concatenate(parts, 1)

    return Case(f"network: {scenarios} scenarios", build, sample)


def purchasing(materials: int, months: int, seed: int = 0) -> Case:
    """Contracts with discounts, bulk prices and least amounts over months; stocks couple months."""
    rng = np.random.default_rng(seed)
    price = rng.uniform(1.0, 3.0, (materials, months))
    least = rng.uniform(20.0, 60.0, (materials, months))
    use = rng.uniform(30.0, 90.0, (materials, months))

    def build() -> tuple[pyo.ConcreteModel, list[Any], list[Any]]:
        m = pyo.ConcreteModel()
        at = [(j, t) for j in range(materials) for t in range(months)]
        for name, most in (("plain", 100.0), ("discount", 100.0), ("bulk", 100.0), ("long", 100.0),
                           ("stock", 150.0)):  # fmt: skip
            m.add_component(name, pyo.Var(at, bounds=(0.0, most)))
        for name in ("cost_discount", "cost_bulk", "cost_long"):
            m.add_component(name, pyo.Var(at, bounds=(0.0, 400.0)))

        def balance(m: Any, j: int, t: int) -> Any:
            bought = m.plain[j, t] + m.discount[j, t] + m.bulk[j, t] + m.long[j, t]
            before = m.stock[j, t - 1] if t else 20.0
            return m.stock[j, t] == before + bought - float(use[j, t])

        m.balance = pyo.Constraint(at, rule=balance)
        m.room = pyo.Constraint(
            range(months),
            rule=lambda m, t: sum(m.stock[j, t] for j in range(materials)) <= 60.0 * materials,
        )
        m.money = pyo.Constraint(
            range(months),
            rule=lambda m, t: sum(
                m.cost_discount[j, t] + m.cost_bulk[j, t] + m.cost_long[j, t]
                + float(price[j, t]) * m.plain[j, t]
                for j in range(materials)
            ) <= 150.0 * materials,
        )  # fmt: skip

        def discount(m: Any, j: int, t: int) -> list[list[Any]]:
            x, cost, c, low = (
                m.discount[j, t],
                m.cost_discount[j, t],
                float(price[j, t]),
                float(least[j, t]),
            )
            above = [x >= low, cost == 1.1 * c * low + 0.8 * c * (x - low)]
            return [[x <= low, cost == 1.1 * c * x], above, [x == 0.0, cost == 0.0]]

        def bulk(m: Any, j: int, t: int) -> list[list[Any]]:
            x, cost, c, low = (
                m.bulk[j, t],
                m.cost_bulk[j, t],
                float(price[j, t]),
                float(least[j, t]),
            )
            return [
                [x <= low, cost == 1.05 * c * x],
                [x >= low, cost == 0.9 * c * x],
                [x == 0.0, cost == 0.0],
            ]

        def long(m: Any, j: int, t: int) -> list[list[Any]]:
            c, low = float(price[j, t]), float(least[j, t])
            for_one = [m.long[j, t] >= 0.3 * low, m.cost_long[j, t] == c * m.long[j, t]]
            if t + 1 == months:
                return [for_one, [m.long[j, t] == 0.0, m.cost_long[j, t] == 0.0]]
            two = [m.long[j, t + k] >= 0.5 * low for k in (0, 1)]
            two += [m.cost_long[j, t] == 0.85 * c * m.long[j, t]]
            return [for_one, two, [m.long[j, t] == 0.0, m.cost_long[j, t] == 0.0]]

        m.discounts = Disjunction(at, rule=discount)
        m.bulks = Disjunction(at, rule=bulk)
        m.longs = Disjunction(at, rule=long)
        named = (m.plain, m.discount, m.bulk, m.long, m.stock)
        return m, [*named, m.cost_discount, m.cost_bulk, m.cost_long], []

    def sample(count: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed + 1)
        amounts = rng.uniform(0.0, 50.0, (count, 4 * materials * months))
        stocks = rng.uniform(0.0, 80.0, (count, materials * months))
        costs = rng.uniform(0.0, 120.0, (count, 3 * materials * months))
        return np.zeros((count, 0)), np.concatenate([amounts, stocks, costs], 1)

    return Case(f"purchasing: {materials} materials, {months} months", build, sample)


def epidemic(periods: int, years: int, seed: int = 0) -> Case:
    """Rates of infection, high or low in each of the periods of a year, through years of counts."""
    rng = np.random.default_rng(seed)
    length = periods * years
    drift = 0.05 * rng.normal(size=length - 1)
    season = np.where(np.arange(periods) % 13 < 6, 0.35, -0.35)

    def build() -> tuple[pyo.ConcreteModel, list[Any], list[Any]]:
        m = pyo.ConcreteModel()
        m.count = pyo.Var(range(length), bounds=(0.0, 30.0))
        m.rate = pyo.Var(range(periods), bounds=(-2.0, 2.0))
        m.low, m.high = pyo.Var(bounds=(-2.0, 2.0)), pyo.Var(bounds=(-2.0, 2.0))
        m.step = pyo.Constraint(
            range(length - 1),
            rule=lambda m, i: m.count[i + 1] == m.count[i] + m.rate[i % periods] + float(drift[i]),
        )
        m.which = Disjunction(
            range(periods), rule=lambda m, i: [[m.rate[i] == m.low], [m.rate[i] == m.high]]
        )
        return m, [m.count, m.rate, m.low, m.high], []

    def sample(count: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed + 1)
        steps = np.concatenate([[0.0], np.cumsum(np.resize(season, length - 1) + drift)])
        counts = 12.0 + steps + rng.normal(0.0, 0.6, (count, length))
        rates = season + rng.normal(0.0, 0.2, (count, periods))
        ends = np.array([-0.3, 0.3]) + rng.normal(0.0, 0.1, (count, 2))
        return np.zeros((count, 0)), np.concatenate([counts, rates, ends], 1)

    return Case(f"epidemic: {periods} periods, {years} years", build, sample)


def packing(rectangles: int, seed: int = 0) -> Case:
    """Rectangles beside or above each other in a strip; wished places, and a wished length."""
    rng = np.random.default_rng(seed)
    long, tall = rng.integers(1, 7, rectangles), rng.integers(1, 7, rectangles)
    height, most = 10.0, float(long.sum())

    def build() -> tuple[pyo.ConcreteModel, list[Any], list[Any]]:
        m = pyo.ConcreteModel()
        every = range(rectangles)
        m.x = pyo.Var(every, bounds=lambda m, i: (0.0, most - float(long[i])))
        m.y = pyo.Var(every, bounds=lambda m, i: (0.0, height - float(tall[i])))
        m.end = pyo.Var(bounds=(0.0, most))
        m.inside = pyo.Constraint(every, rule=lambda m, i: m.x[i] + float(long[i]) <= m.end)
        pairs = list(combinations(every, 2))

        def apart(m: Any, i: int, j: int) -> list[list[Any]]:
            beside = [[m.x[a] + float(long[a]) <= m.x[b]] for a, b in ((i, j), (j, i))]
            return beside + [[m.y[a] + float(tall[a]) <= m.y[b]] for a, b in ((i, j), (j, i))]

        m.apart = Disjunction(pairs, rule=apart)
        return m, [m.x, m.y, m.end], []

    def sample(count: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed + 1)
        area = float((long * tall).sum()) / height
        x = rng.uniform(0.0, 1.3 * area, (count, rectangles))
        y = rng.uniform(0.0, height - tall, (count, rectangles))
        return np.zeros((count, 0)), np.concatenate([x, y, np.full((count, 1), 1.2 * area)], 1)

    return Case(f"packing: {rectangles} rectangles", build, sample)
