"""Rules that are coupled over time or by sums, in any size: models and predictions from a seed.

A `Case` has a model, its outputs and inputs, and samples. Everything is written here; only the
thermal units of unit commitment are read, from the data set `unit_commitment` (GDPNET_DATA).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo
from _coupled_case import Array, Case
from _coupled_library import epidemic, network, packing, purchasing
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.study import find_data


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


def large_cases() -> Iterator[Case]:
    """Problems that gdpnet alone is asked about."""
    yield groups(5000, 2000, True)


def small_cases() -> Iterator[Case]:
    """The same in sizes that a test has time for."""
    yield groups(20, 16, True)
    yield pumped_storage(4)
    yield network(2, nodes=6, chords=1)
    yield purchasing(1, 3)
    yield epidemic(4, 3)
    yield packing(4)
