"""Rules that are coupled over time or by sums, in any size: models and predictions from a seed.

A `Case` has a model, its outputs and inputs, and samples. Everything is written here; only the
thermal units of unit commitment are read, from the data set `unit_commitment` (GDPNET_DATA).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.study import find_data

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """A problem of some size.

    Attributes:
        name: of the problem, with its size.
        build: makes the model, its outputs and its inputs.
        sample: so many inputs and predictions, `count x p` and `count x d`.
    """

    name: str
    build: Callable[[], tuple[pyo.ConcreteModel, list[Any], list[Any]]]
    sample: Callable[[int], tuple[Array, Array]]

    def rules(self) -> gdpnet.RuleModel:
        """The rules."""
        model, outputs, inputs = self.build()
        return gdpnet.RuleModel(model, outputs=outputs, inputs=inputs)


def groups(d: int, rules: int, with_sum: bool, seed: int = 0) -> Case:
    """Caps of sums, implications, gaps, alternatives; with or without one sum over all outputs."""

    def build() -> tuple[pyo.ConcreteModel, list[Any], list[Any]]:
        # This order of draws is that of the problems whose results are known.
        draw = random.Random(seed)
        m = pyo.ConcreteModel()
        m.D = pyo.Param(mutable=True, initialize=0.4 * d)
        m.y = pyo.Var(range(d), bounds=(0, 1))
        if with_sum:
            m.total = pyo.Constraint(expr=sum(m.y.values()) == m.D)
        for i in range(rules):
            if i % 4 == 0:
                some = draw.sample(range(d), min(8, d))
                part = pyo.Constraint(expr=sum(m.y[j] for j in some) <= 0.55 * len(some))
            elif i % 4 == 1:
                a, b = draw.sample(range(d), 2)
                part = gdpnet.rule(gdpnet.implies(m.y[a] >= 0.6, m.y[b] <= 0.3))
            elif i % 4 == 2:
                j, low = draw.randrange(d), draw.uniform(0.2, 0.5)
                part = Disjunction(expr=[[m.y[j] <= low], [m.y[j] >= low + 0.25]])
            else:
                a, b, c = draw.sample(range(d), 3)
                either = [m.y[a] + m.y[b] >= 0.9], [m.y[c] <= 0.2], [m.y[a] <= 0.1, m.y[b] <= 0.1]
                part = Disjunction(expr=list(either))
            m.add_component(f"rule{i}", part)
        return m, [m.y], [m.D]

    def sample(count: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed)
        yhat = 0.4 + 0.3 * rng.normal(size=(count, d))
        return 0.4 * d + 0.02 * d * rng.normal(size=(count, 1)), yhat

    told = ", with their sum" if with_sum else ""
    return Case(f"groups: {d} outputs, {rules} rules{told}", build, sample)


# ---- unit commitment ----------------------------------------------------------------------------

SMALL = [
    "107_CC_1",
    "218_CC_1",
    "115_STEAM_3",
    "116_STEAM_1",
    "101_STEAM_3",
    "102_STEAM_3",
    "113_CT_1",
    "113_CT_2",
    "113_CT_3",
    "101_CT_1",
]
DAYS = ("2020-01-27", "2020-02-09", "2020-03-05", "2020-04-03")


def _day(day: str) -> dict[str, Any]:
    path = find_data("unit_commitment", f"{day}.json")
    if path is None:
        raise FileNotFoundError("unit_commitment: set GDPNET_DATA to the folder of the data sets.")
    return json.loads(path.read_text())


def unit_commitment(units: int | None, hours: int, slack: float = 0.1, seed: int = 0) -> Case:
    """Units that are off or between two powers, ramps, least times on and off; demand couples.

    Args:
        units: the first of the small set, or None for all.
        hours: periods.
        slack: supply is within this share of the demand.
        seed: of the predictions.
    """
    thermal = _day(DAYS[0])["thermal_generators"]
    names = sorted(thermal) if units is None else SMALL[:units]
    chosen = [thermal[name] for name in names]
    low = np.array([unit["power_output_minimum"] for unit in chosen])
    high = np.array([unit["power_output_maximum"] for unit in chosen])
    ramp = np.array([max(unit["ramp_up_limit"], unit["power_output_minimum"]) for unit in chosen])
    count, horizon = len(chosen), range(hours)

    def build() -> tuple[pyo.ConcreteModel, list[Any], list[Any]]:
        m = pyo.ConcreteModel()
        every = range(count)
        m.demand = pyo.Param(horizon, mutable=True, initialize=float(high.sum() / 2))
        m.p = pyo.Var(every, horizon, bounds=lambda m, g, t: (0.0, float(high[g])))

        def on(block: Any, g: int, t: int) -> None:
            block.band = pyo.Constraint(expr=m.p[g, t] >= float(low[g]))

        def off(block: Any, g: int, t: int) -> None:
            block.none = pyo.Constraint(expr=m.p[g, t] <= 0.0)

        m.on = Disjunct(every, horizon, rule=on)
        m.off = Disjunct(every, horizon, rule=off)
        m.state = Disjunction(every, horizon, rule=lambda m, g, t: [m.on[g, t], m.off[g, t]])

        def follows(m: Any, g: int, t: int) -> Any:
            change = m.p[g, t] - m.p[g, t - 1]
            return pyo.inequality(-float(ramp[g]), change, float(ramp[g]))

        m.ramp = pyo.Constraint(every, range(1, hours), rule=follows)
        m.stay = pyo.LogicalConstraintList()
        for g, unit in enumerate(chosen):
            is_on = [m.on[g, t].indicator_var for t in horizon]
            for t in range(1, hours):
                for later in range(t + 1, min(hours, t + unit["time_up_minimum"])):
                    m.stay.add(pyo.lor(pyo.lnot(is_on[t]), is_on[t - 1], is_on[later]))
                for later in range(t + 1, min(hours, t + unit["time_down_minimum"])):
                    m.stay.add(pyo.lor(is_on[t], pyo.lnot(is_on[t - 1]), pyo.lnot(is_on[later])))
        supply = [sum(m.p[g, t] for g in every) for t in horizon]
        m.least = pyo.Constraint(
            horizon, rule=lambda m, t: supply[t] >= (1.0 - slack) * m.demand[t]
        )
        m.most = pyo.Constraint(horizon, rule=lambda m, t: supply[t] <= (1.0 + slack) * m.demand[t])
        return m, [m.p], [m.demand]

    def sample(many: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed)
        days = [np.array(_day(day)["demand"][:hours]) for day in DAYS]
        share = np.stack([day / 8076.0 for day in days])
        x, yhat = np.zeros((many, hours)), np.zeros((many, count, hours))
        for s in range(many):
            mixed = rng.dirichlet(np.ones(len(DAYS))) @ share
            x[s] = np.clip(mixed * high.sum() * rng.uniform(0.8, 1.3), 0.2 * high.sum(), None)
            runs = rng.permutation(count)
            kept = np.cumsum(high[runs]) <= 1.2 * x[s].max() + high.max()
            on = np.zeros(count, dtype=bool)
            on[runs[kept]] = True
            part = x[s] / max(high[on].sum(), 1.0)
            noise = 0.15 * rng.normal(size=(count, hours))
            yhat[s] = np.clip(on[:, None] * part + noise, 0.0, 1.0) * high[:, None]
        return x, yhat.reshape(many, -1)

    return Case(f"unit commitment: {count} units, {hours} h", build, sample)


def pumped_storage(hours: int, seed: int = 0) -> Case:
    """A plant that pumps, rests or turbines, in bands that move with the head of its reservoir."""
    whole, first = 588.0, 310.5  # thousand cubic metres
    top, fall = 98.0, 47.0 / 588.0  # head = top - fall * volume

    def build() -> tuple[pyo.ConcreteModel, list[Any], list[Any]]:
        m = pyo.ConcreteModel()
        horizon = range(hours)
        m.p = pyo.Var(horizon, bounds=(-10.0, 10.0))
        m.q = pyo.Var(horizon, bounds=(-14.0, 14.0))
        m.v = pyo.Var(range(hours + 1), bounds=(0.0, whole))
        m.first = pyo.Constraint(expr=m.v[0] == first)
        m.last = pyo.Constraint(expr=m.v[hours] <= first)
        m.flow = pyo.Constraint(horizon, rule=lambda m, t: m.v[t + 1] == m.v[t] + 3.6 * m.q[t])

        def mode(m: Any, t: int) -> list[list[Any]]:
            p, q, h = m.p[t], m.q[t], top - fall * m.v[t]
            pump = [p >= 3.1017 - 0.1291 * h, p <= 2.3377 - 0.09766 * h]
            pump.append(q == 1.337 * p + 0.11925 * h - 10.005)
            turbine = [p >= 0.05694 * h - 1.3616, p <= 0.12138 * h - 2.9155]
            turbine.append(q == 1.6275 * p - 0.09546 * h + 7.0805)
            return [pump, [p == 0.0, q == 0.0], turbine]

        m.mode = Disjunction(horizon, rule=mode)
        return m, [m.p], []

    def sample(count: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(seed)
        hour = np.arange(hours) * 2.0 * np.pi / 24.0
        often, shift = rng.integers(1, 4, (count, 1)), rng.uniform(0, 6, (count, 1))
        wave = 6.0 * np.sin(hour * often + shift)
        return np.zeros((count, 0)), wave + 2.0 * rng.normal(size=wave.shape)

    return Case(f"pumped storage: {hours} h", build, sample)


# ---- the kinds of models that libraries of disjunctive programs have ----------------------------


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


# ---- which are measured ------------------------------------------------------------------------


def cases() -> Iterator[Case]:
    """The problems of the table."""
    yield groups(200, 100, True)
    yield groups(500, 300, True)
    yield groups(500, 300, False)
    yield unit_commitment(10, 24)
    yield unit_commitment(None, 24)
    yield pumped_storage(24)
    yield network(20)
    yield purchasing(6, 6)
    yield epidemic(26, 15)
    yield packing(12)


def small_cases() -> Iterator[Case]:
    """The same in sizes that a test has time for."""
    yield groups(20, 16, True)
    yield pumped_storage(4)
    yield network(2, nodes=6, chords=1)
    yield purchasing(1, 3)
    yield epidemic(4, 3)
    yield packing(4)
