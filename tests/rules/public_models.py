"""Models that the literature of GDP is tested on, restated as rules, with numbers of our own.

Each function builds one; what was an objective there is a row with a limit here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction


def circles() -> Any:
    """A point in one of several balls, each with a price."""
    m = pyo.ConcreteModel()
    centres = {1: (0, 0, 1), 2: (3, 1, 2), 3: (1, 5, 4)}
    m.point = pyo.Var(range(3), bounds=(-2, 8))
    m.price = pyo.Var(bounds=(0, 5))
    m.ball = Disjunct(centres)
    for k, centre in centres.items():
        away = sum((m.point[j] - c) ** 2 for j, c in enumerate(centre))
        m.ball[k].inside = pyo.Constraint(expr=away <= 1 + 0.5 * k)
        m.ball[k].price = pyo.Constraint(expr=m.price == k)
    m.balls = Disjunction(expr=[m.ball[k] for k in centres])
    m.cost = pyo.Constraint(expr=sum((m.point[j] - 2) ** 2 for j in range(3)) + m.price <= 30)
    return m


def three_discs() -> Any:
    """Example 1 of Lee and Grossmann: three discs in the plane."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var([1, 2], domain=pyo.NonNegativeReals, bounds=(0, 8))
    m.c = pyo.Var(bounds=(1, 3))
    m.disc = Disjunct([1, 2, 3])
    m.disc[1].row = pyo.Constraint(expr=m.x[1] ** 2 + m.x[2] ** 2 - 1 <= 0)
    m.disc[2].row = pyo.Constraint(expr=(m.x[1] - 4) ** 2 + (m.x[2] - 1) ** 2 - 1 <= 0)
    m.disc[3].row = pyo.Constraint(expr=(m.x[1] - 2) ** 2 + (m.x[2] - 4) ** 2 - 1 <= 0)
    for k, price in ((1, 2), (2, 1), (3, 3)):
        m.disc[k].price = pyo.Constraint(expr=m.c == price)
    m.discs = Disjunction(expr=[m.disc[k] for k in (1, 2, 3)])
    return m


def ellipses() -> Any:
    """Three pairs of ellipses, as papers on basic steps have them."""
    m = pyo.ConcreteModel()
    m.u, m.v = pyo.Var(bounds=(-1, 6)), pyo.Var(bounds=(0, 7))
    heights = {1: (5, 2), 2: (2, 5), 3: (3.5, 3.5)}
    m.part = Disjunct(heights, [1, 2])
    for k, (left, right) in heights.items():
        m.part[k, 1].row = pyo.Constraint(expr=m.u**2 + (1 / 4) * (m.v - left) ** 2 <= 1)
        m.part[k, 2].row = pyo.Constraint(expr=(m.u - 5) ** 2 + (1 / 4) * (m.v - right) ** 2 <= 1)
    m.pair = Disjunction(heights, rule=lambda m, k: [m.part[k, 1], m.part[k, 2]])
    return m


def layout(metric: str) -> Any:
    """Rectangles that do not overlap, each within a circle; short ways between them."""
    m = pyo.ConcreteModel()
    size = {1: (5, 6), 2: (7, 5), 3: (3, 3)}
    circle = {1: (15, 10, 7), 2: (45, 60, 6)}
    pairs = [(1, 2), (1, 3), (2, 3)]
    m.x, m.y = pyo.Var(size, bounds=(5, 60)), pyo.Var(size, bounds=(5, 80))
    m.dx, m.dy = pyo.Var(pairs, bounds=(0, 60)), pyo.Var(pairs, bounds=(0, 80))
    m.far = pyo.ConstraintList()
    for a, b in pairs:
        for gap, place in ((m.dx[a, b], m.x), (m.dy[a, b], m.y)):
            m.far.add(gap >= place[a] - place[b])
            m.far.add(gap >= place[b] - place[a])
    if metric == "l1":
        way = sum(k * (m.dx[p] + m.dy[p]) for k, p in enumerate(pairs, 1))
    else:
        way = sum(k * (m.dx[p] ** 2 + m.dy[p] ** 2) ** 0.5 for k, p in enumerate(pairs, 1))
    m.ways = pyo.Constraint(expr=way <= 200)
    m.apart = Disjunction(
        pairs,
        rule=lambda m, a, b: [
            m.x[a] + size[a][0] / 2 <= m.x[b] - size[b][0] / 2,
            m.x[b] + size[b][0] / 2 <= m.x[a] - size[a][0] / 2,
            m.y[a] + size[a][1] / 2 <= m.y[b] - size[b][1] / 2,
            m.y[b] + size[b][1] / 2 <= m.y[a] - size[a][1] / 2,
        ],
    )
    m.within = Disjunction(
        size,
        rule=lambda m, a: [
            [
                (m.x[a] + i * size[a][0] / 2 - u) ** 2 + (m.y[a] + j * size[a][1] / 2 - v) ** 2
                <= r**2
                for i in (-1, 1)
                for j in (-1, 1)
            ]
            for u, v, r in circle.values()
        ],
    )
    return m


def farm() -> Any:
    """Plots of given areas side by side: a length times a width is a hyperbola."""
    m = pyo.ConcreteModel()
    area = {1: 40, 2: 50, 3: 60}
    m.Length, m.Width = (pyo.Var(domain=pyo.NonNegativeReals, bounds=(0, 30)) for _ in range(2))
    m.x, m.y = pyo.Var(area, bounds=(0, 30)), pyo.Var(area, bounds=(0, 30))
    m.length, m.width = pyo.Var(area, bounds=(0, 30)), pyo.Var(area, bounds=(0, 30))
    m.long = pyo.Constraint(area, rule=lambda m, p: m.Length >= m.x[p] + m.length[p])
    m.wide = pyo.Constraint(area, rule=lambda m, p: m.Width >= m.y[p] + m.width[p])
    m.area = pyo.Constraint(area, rule=lambda m, p: area[p] / m.width[p] - m.length[p] <= 0)
    m.limits = pyo.Constraint(area, rule=lambda m, p: (1, m.length[p], area[p]))
    m.apart = Disjunction(
        [(1, 2), (1, 3), (2, 3)],
        rule=lambda m, a, b: [
            m.x[a] + m.length[a] <= m.x[b],
            m.y[a] + m.width[a] <= m.y[b],
            m.x[b] + m.length[b] <= m.x[a],
            m.y[b] + m.width[b] <= m.y[a],
        ],
    )
    return m


def positioning() -> Any:
    """A product that some customers buy: those whose ideal is near, each in an own metric."""
    m = pyo.ConcreteModel()
    ideal = {1: (2.3, 5.1, 4.0), 2: (5.5, 9.0, 3.8), 3: (4.1, 1.8, 0.7), 4: (6.3, 0.1, 4.1)}
    weight = {1: (9.6, 2.7, 9.6), 2: (8.3, 3.0, 8.9), 3: (3.1, 9.3, 1.2), 4: (6.9, 2.4, 5.5)}
    m.place = pyo.Var([0, 1, 2], bounds=lambda _, j: ((2, 4.5), (0, 8.0), (3, 9.0))[j])
    m.bought = Disjunct(ideal)
    m.left = Disjunct(ideal)
    for k in ideal:
        away = sum(weight[k][j] * (m.place[j] - ideal[k][j]) ** 2 for j in range(3))
        m.bought[k].near = pyo.Constraint(expr=away <= 60 + 20 * k)
    m.choice = Disjunction(ideal, rule=lambda m, k: [m.bought[k], m.left[k]])
    m.enough = pyo.LogicalConstraint(
        expr=pyo.atleast(2, *(m.bought[k].indicator_var for k in ideal))
    )
    m.cost = pyo.Constraint(
        expr=0.6 * m.place[0] ** 2 - 0.9 * m.place[1] + 0.1 * m.place[2] ** 2 <= 12
    )
    return m


def batch_processing() -> Any:
    """A plant in logarithms, in which costs and times are exponentials."""
    m = pyo.ConcreteModel()
    products, stages = (1, 2), (1, 2, 3)
    m.volume = pyo.Var(stages, bounds=(math.log(300), math.log(3500)))
    m.batch = pyo.Var(products, stages, bounds=(0, 10))
    m.cycle = pyo.Var(products, bounds=(-5, 5))
    m.units = pyo.Var(stages, bounds=(0, math.log(6)))
    m.tank = pyo.Var((1, 2), bounds=(math.log(100), math.log(15000)))
    m.capacity = pyo.Constraint(
        stages,
        products,
        rule=lambda m, j, i: m.volume[j] >= math.log(1 + i + j) + m.batch[i, j] - m.units[j],
    )
    m.time = pyo.Constraint(
        stages,
        products,
        rule=lambda m, j, i: m.cycle[i] >= math.log(2 * i + j) - m.batch[i, j] - m.units[j],
    )
    amount = {1: 2500, 2: 1800}
    m.horizon = pyo.Constraint(expr=6000 >= sum(amount[i] * pyo.exp(m.cycle[i]) for i in products))
    m.cost = pyo.Constraint(
        expr=250 * sum(pyo.exp(m.units[j] + 0.6 * m.volume[j]) for j in stages)
        + 278 * sum(pyo.exp(0.49 * m.tank[j]) for j in (1, 2))
        <= 3e5
    )
    m.with_tank, m.without = Disjunct((1, 2)), Disjunct((1, 2))
    for j in (1, 2):
        m.with_tank[j].rows = pyo.ConstraintList()
        m.without[j].rows = pyo.ConstraintList()
        for i in products:
            m.with_tank[j].rows.add(m.tank[j] >= math.log(10) + m.batch[i, j])
            m.with_tank[j].rows.add(m.tank[j] >= math.log(10) + m.batch[i, j + 1])
            m.with_tank[j].rows.add((-math.log(3), m.batch[i, j] - m.batch[i, j + 1], math.log(3)))
            m.without[j].rows.add(m.batch[i, j] - m.batch[i, j + 1] == 0)
    m.tanks = Disjunction((1, 2), rule=lambda m, j: [m.with_tank[j], m.without[j]])
    return m


def small_batch() -> Any:
    """One to three units a stage, sizes in logarithms."""
    m = pyo.ConcreteModel()
    products, stages, counts = ("a", "b"), ("mix", "react", "spin"), (1, 2, 3)
    factor = {"a": (2, 3, 4), "b": (4, 6, 3)}
    hours = {"a": (8, 20, 4), "b": (10, 12, 3)}
    m.v = pyo.Var(stages, bounds=(math.log(250), math.log(2500)))
    m.b = pyo.Var(products, bounds=(0, math.log(1000)))
    m.t = pyo.Var(products, bounds=(-5, 4))
    m.n = pyo.Var(stages, bounds=(0, math.log(3)))
    m.size = pyo.Constraint(
        products, stages, rule=lambda m, i, j: m.v[j] >= math.log(at(factor, i, j)) + m.b[i]
    )
    m.cycle = pyo.Constraint(
        products,
        stages,
        rule=lambda m, i, j: m.n[j] + m.t[i] >= math.log(at(hours, i, j)) - m.b[i],
    )
    m.horizon = pyo.Constraint(expr=2e5 * pyo.exp(m.t["a"]) + 1.5e5 * pyo.exp(m.t["b"]) <= 6e5)
    price = dict(zip(stages, (250, 500, 340), strict=True))
    m.cost = pyo.Constraint(
        expr=sum(price[j] * pyo.exp(m.n[j] + 0.6 * m.v[j]) for j in stages) <= 3e5
    )
    m.choice = Disjunction(stages, rule=lambda m, j: [[m.n[j] == math.log(k)] for k in counts])
    return m


def at(table: dict[str, tuple[int, ...]], product: str, stage: str) -> int:
    return table[product][("mix", "react", "spin").index(stage)]


MODELS: dict[str, Callable[[], Any]] = {
    "circles": circles,
    "three_discs": three_discs,
    "ellipses": ellipses,
    "layout_l1": lambda: layout("l1"),
    "layout_l2": lambda: layout("l2"),
    "farm": farm,
    "positioning": positioning,
    "batch_processing": batch_processing,
    "small_batch": small_batch,
}
