"""Kinds of rules and predictions on which solvers stumble, one generator each."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.testing import random_predictions, random_rules

Rng = np.random.Generator
Relation = tuple[Sequence[float], str, float]
"""Coefficients of the columns, sense, right side."""
Terms = list[list[Relation]]
"""Disjuncts of a rule."""


@dataclass(frozen=True)
class Case:
    """Rules and predictions to project.

    Attributes:
        rules: the rules.
        yhat: predictions, `batch x d`, of the type they are to be projected in.
        x: inputs, `batch x p`, or None.
        weights: of the outputs, or None for equal ones.
    """

    rules: gdpnet.RuleModel
    yhat: torch.Tensor
    x: torch.Tensor | None = None
    weights: list[float] | None = None


def case_of(name: str, seed: int) -> Case:
    """The case of a class and a seed, always the same one."""
    return CLASSES[name](np.random.default_rng([seed, zlib.crc32(name.encode())]))


# ---- writing models ---------------------------------------------------------------------------


def _model(
    d: int, bounds: Sequence[tuple[float | None, float | None]], auxiliaries: int = 0
) -> Any:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d))
    for j, (low, high) in enumerate(bounds):
        m.y[j].setlb(low)
        m.y[j].setub(high)
    m.a = pyo.Var(range(auxiliaries))
    m.always = pyo.ConstraintList()
    return m


def _expression(m: Any, relation: Relation) -> Any:
    coefficients, sense, right = relation
    columns = [*m.y.values(), *m.a.values()]
    left = sum(float(c) * v for c, v in zip(coefficients, columns, strict=False) if c)
    return {"<=": left <= right, ">=": left >= right, "==": left == right}[sense]


def _add_rules(m: Any, rules: Sequence[Terms], always: Sequence[Relation] = ()) -> None:
    for relation in always:
        m.always.add(_expression(m, relation))
    for k, terms in enumerate(rules):
        written = [[_expression(m, relation) for relation in rows] for rows in terms]
        m.add_component(f"rule{k}", Disjunction(expr=written))


def _read(m: Any) -> gdpnet.RuleModel:
    return gdpnet.RuleModel(m, outputs=[m.y])


def _weights(rng: Rng, d: int) -> list[float] | None:
    return (10.0 ** rng.uniform(-1, 1, d)).tolist() if rng.random() < 0.3 else None


def _predictions(rng: Rng, d: int, reach: float = 12.0, count: int = 4) -> torch.Tensor:
    """Half of them anywhere, half on halves, where boundaries and ties are."""
    anywhere = rng.uniform(-reach, reach, (count // 2, d))
    halves = np.rint(2 * rng.uniform(-reach, reach, (count - count // 2, d))) / 2
    return torch.from_numpy(np.vstack([anywhere, halves]))


def _normal(rng: Rng, d: int, most: int = 3) -> np.ndarray:
    """A few small whole coefficients, never all 0."""
    a = rng.integers(-3, 4, d).astype(float)
    a[rng.permutation(d)[most:]] = 0.0
    if not a.any():
        a[rng.integers(d)] = 1.0
    return a


def _relation(rng: Rng, d: int, equalities: float = 0.1) -> Relation:
    sense = "==" if rng.random() < equalities else str(rng.choice(["<=", ">="]))
    return _normal(rng, d).tolist(), sense, float(rng.integers(-8, 9))


def _terms(rng: Rng, draw: Callable[[], Relation], rows: int = 3, disjuncts: int = 3) -> Terms:
    return [
        [draw() for _ in range(rng.integers(1, rows + 1))]
        for _ in range(rng.integers(1, disjuncts + 1))
    ]


def _some_rules(rng: Rng, draw: Callable[[], Relation], most: int = 3) -> list[Terms]:
    return [_terms(rng, draw) for _ in range(rng.integers(1, most + 1))]


def _box(d: int, reach: float = 10.0) -> list[tuple[float | None, float | None]]:
    return [(-reach, reach)] * d


def _scaled(relation: Relation, by: float) -> Relation:
    a, sense, right = relation
    return [c * by for c in a], sense, right * by


# ---- the classes --------------------------------------------------------------------------------


def _rows_scaled(rng: Rng) -> Case:
    """Every row times 1e-4 .. 1e9."""
    d = int(rng.integers(2, 5))
    m = _model(d, _box(d))

    def draw() -> Relation:
        return _scaled(_relation(rng, d), 10.0 ** rng.uniform(-4, 9))

    _add_rules(m, _some_rules(rng, draw), [draw()] if rng.random() < 0.3 else [])
    return Case(_read(m), _predictions(rng, d), weights=_weights(rng, d))


def _columns_scaled(rng: Rng) -> Case:
    """Outputs in units of 1e-4 .. 1e4 within a row."""
    d = int(rng.integers(2, 5))
    unit = 10.0 ** rng.uniform(-4, 4, d)
    m = _model(d, [(-10 * u, 10 * u) for u in unit])

    def draw() -> Relation:
        a, sense, right = _relation(rng, d)
        return (np.array(a) / unit).tolist(), sense, right

    _add_rules(m, _some_rules(rng, draw))
    return Case(_read(m), _predictions(rng, d) * torch.from_numpy(unit), weights=_weights(rng, d))


def _large_bounds(rng: Rng) -> Case:
    """Bounds of 1e12 on some sides, none on others."""
    d = int(rng.integers(2, 5))
    sides = [[-1e12, -10.0, None], [1e12, 10.0, None]]
    m = _model(d, [tuple(side[rng.integers(3)] for side in sides) for _ in range(d)])
    _add_rules(m, _some_rules(rng, lambda: _relation(rng, d)))
    return Case(_read(m), _predictions(rng, d), weights=_weights(rng, d))


def _parallel(rng: Rng) -> Case:
    """Rows whose coefficients and right sides differ by 1e-3 .. 1e-10."""
    d = int(rng.integers(2, 4))
    m = _model(d, _box(d))
    base, right = _normal(rng, d), float(rng.integers(-4, 5))

    def draw() -> Relation:
        apart = 10.0 ** -int(rng.integers(3, 11))
        a = base + apart * rng.integers(-2, 3, d) * (base != 0.0)
        sense = "==" if rng.random() < 0.05 else str(rng.choice(["<=", ">="]))
        return a.tolist(), sense, right + apart * float(rng.integers(-2, 3))

    _add_rules(m, _some_rules(rng, draw))
    return Case(_read(m), _predictions(rng, d))


def _points(rng: Rng) -> Case:
    """Disjuncts that are points, given by as many equalities as outputs and more."""
    d = int(rng.integers(2, 5))
    m = _model(d, _box(d))
    common = rng.integers(-8, 9, d) / 2.0

    def point() -> list[Relation]:
        where = common if rng.random() < 0.5 else rng.integers(-8, 9, d) / 2.0
        normals = [_normal(rng, d, most=d) for _ in range(d + int(rng.integers(0, 3)))]
        rows: list[Relation] = [(a.tolist(), "==", float(a @ where)) for a in normals]
        if rng.random() < 0.2:  # over-determined by a hair, or plainly
            a, _, right = rows[0]
            rows.append((a, "==", right + float(rng.choice([1e-3, 0.5, 1.0]))))
        return rows

    rules = [[point() for _ in range(rng.integers(1, 4))] for _ in range(rng.integers(1, 3))]
    rules[0].append([_relation(rng, d)])
    _add_rules(m, rules)
    return Case(_read(m), _predictions(rng, d), weights=_weights(rng, d))


def _slivers(rng: Rng) -> Case:
    """Disjuncts 1e-4 .. 1e-8 wide in one or two directions."""
    d = int(rng.integers(2, 5))
    m = _model(d, _box(d))

    def sliver() -> list[Relation]:
        rows: list[Relation] = []
        for _ in range(rng.integers(1, 3)):
            a, low = _normal(rng, d).tolist(), float(rng.integers(-8, 9)) / 2
            width = 10.0 ** rng.uniform(-8, -4)
            rows += [(a, ">=", low), (a, "<=", low + width)]
        return rows

    rules = [[sliver() for _ in range(rng.integers(1, 4))] for _ in range(rng.integers(1, 4))]
    _add_rules(m, rules)
    return Case(_read(m), _predictions(rng, d), weights=_weights(rng, d))


def _nested(rng: Rng) -> Case:
    """Disjunctions in disjuncts up to 3 deep, and propositions across the levels."""
    m, d = _nested_model(rng)
    return Case(_read(m), _predictions(rng, d), weights=_weights(rng, d))


def _priced(rng: Rng) -> Case:
    """Such rules, of which some may be broken at a price, and some disjuncts cost something."""
    m, d = _nested_model(rng)
    m.rule_price = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    everywhere: Any = {"active": True, "descend_into": (pyo.Block, Disjunct)}
    for rule in m.component_data_objects(Disjunction, **everywhere):
        if rng.random() < 0.5:
            m.rule_price[rule] = float(rng.integers(0, 13)) / 2
        for disjunct in rule.disjuncts:
            if rng.random() < 0.3:
                m.rule_price[disjunct] = float(rng.integers(0, 9)) / 2
    return Case(_read(m), _predictions(rng, d), weights=_weights(rng, d))


def _nested_model(rng: Rng) -> tuple[Any, int]:
    d = int(rng.integers(2, 4))
    m = _model(d, _box(d))
    indicators: list[Any] = []

    def fill(block: Any, depth: int) -> None:
        parts = Disjunct(range(int(rng.integers(2, 4 if depth == 1 else 3))))
        block.add_component(f"parts{depth}", parts)
        for part in parts.values():
            part.rows = pyo.ConstraintList()
            for _ in range(rng.integers(1, 3)):
                part.rows.add(_expression(m, _relation(rng, d)))
            indicators.append(part.indicator_var)
        if depth < 3 and rng.random() < 0.7:
            fill(parts[0], depth + 1)
        xor = bool(rng.random() < 0.4)
        either = Disjunction(expr=list(parts.values()), xor=xor)
        block.add_component(f"either{depth}", either)

    for k in range(rng.integers(1, 3)):
        block = pyo.Block()
        m.add_component(f"group{k}", block)
        fill(block, 1)
    m.logic = pyo.LogicalConstraintList()
    for _ in range(rng.integers(1, 4)):
        m.logic.add(_proposition(rng, indicators))
    return m, d


def _proposition(rng: Rng, indicators: list[Any]) -> Any:
    picked = [indicators[k] for k in rng.choice(len(indicators), 3, replace=len(indicators) < 3)]
    one, two, three = (pyo.lnot(v) if rng.random() < 0.25 else v for v in picked)
    count = int(rng.integers(1, 3))
    return [
        lambda: pyo.atmost(count, one, two, three),
        lambda: pyo.atleast(count, one, two, three),
        lambda: pyo.exactly(count, one, two, three),
        lambda: pyo.xor(one, two),
        lambda: pyo.implies(one, pyo.land(two, three)),
        lambda: pyo.implies(pyo.land(one, two), three),
        lambda: pyo.equivalent(one, pyo.lor(two, three)),
    ][int(rng.integers(7))]()


def _auxiliaries(rng: Rng) -> Case:
    """Unbounded auxiliaries that equalities tie to the outputs."""
    d, extra = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    m = _model(d, _box(d), extra)

    def draw() -> Relation:
        a, sense, right = _relation(rng, d, equalities=0.35)
        tail = rng.integers(-2, 3, extra) * (rng.random(extra) < 0.6)
        return [*a, *tail.astype(float).tolist()], sense, right

    definitions: list[Relation] = []
    for k in range(extra):
        if rng.random() < 0.6:
            tail = [0.0] * extra
            tail[k] = -1.0
            definitions.append(([*_normal(rng, d).tolist(), *tail], "==", 0.0))
    _add_rules(m, _some_rules(rng, draw), definitions)
    return Case(_read(m), _predictions(rng, d), weights=_weights(rng, d))


def _integers(rng: Rng, reach: float) -> Case:
    d = int(rng.integers(1, 4))
    m = _model(d, [(-reach, reach)] * d)
    whole = rng.random(d) < 0.6
    whole[rng.integers(d)] = True
    for j in np.flatnonzero(whole).tolist():
        m.y[j].domain = pyo.Integers

    def draw() -> Relation:
        a = _normal(rng, d, most=2)
        middle = np.rint(rng.uniform(-reach, reach) * rng.choice([1.0, 1e-3])) / 2
        return a.tolist(), str(rng.choice(["<=", ">="])), float(middle)

    _add_rules(m, _some_rules(rng, draw, most=2))
    yhat = rng.uniform(-reach, reach, (4, d)) * rng.choice([1.0, 1e-3], (4, 1))
    yhat[2:] = np.rint(yhat[2:]) + rng.choice([0.0, 0.25, 0.5, 1e-10], (2, d))
    return Case(_read(m), torch.from_numpy(yhat))


def _integers_1e6(rng: Rng) -> Case:
    """Whole outputs within 1e6."""
    return _integers(rng, 1e6)


def _integers_1e12(rng: Rng) -> Case:
    """Whole outputs within 1e9 .. 1e12."""
    return _integers(rng, float(np.rint(10.0 ** rng.uniform(9, 12))))


def _equalities(rng: Rng) -> Case:
    """Mostly equalities, many of them twice, some of them multiples of others."""
    d = int(rng.integers(3, 6))
    m = _model(d, _box(d))
    drawn: list[Relation] = []

    def draw() -> Relation:
        if drawn and rng.random() < 0.4:
            again = drawn[int(rng.integers(len(drawn)))]
            return _scaled(again, float(rng.choice([1.0, 2.0, 0.5, 3.0])))
        drawn.append(_relation(rng, d, equalities=0.7))
        return drawn[-1]

    _add_rules(m, _some_rules(rng, draw), [draw()] if rng.random() < 0.5 else [])
    return Case(_read(m), _predictions(rng, d), weights=_weights(rng, d))


def _wide(rng: Rng) -> Case:
    """20 to 60 outputs, rows of a few of them and one sum of all."""
    d = int(rng.integers(20, 61))
    m = _model(d, _box(d))

    def draw() -> Relation:
        a = np.zeros(d)
        for j in rng.choice(d, int(rng.integers(2, 9)), replace=False).tolist():
            a[j] = float(rng.choice([-2, -1, 1, 2, 3]))
        return a.tolist(), str(rng.choice(["<=", ">="])), float(rng.integers(-8, 9))

    always: list[Relation] = []
    if rng.random() < 0.5:
        always.append(([1.0] * d, "==" if rng.random() < 0.5 else "<=", 1.0))
    _add_rules(m, [_terms(rng, draw, rows=3, disjuncts=3) for _ in range(3)], always)
    return Case(_read(m), _predictions(rng, d, count=2), weights=_weights(rng, d))


def _large_predictions(rng: Rng) -> Case:
    """Predictions of 1 .. 1e19 of outputs without bounds."""
    d = int(rng.integers(2, 4))
    m = _model(d, [(None, None)] * d)
    _add_rules(m, _some_rules(rng, lambda: _relation(rng, d, equalities=0.2), most=2))
    size = 10.0 ** rng.uniform(0, 19, (4, 1))
    mixed = np.where(rng.random((4, d)) < 0.7, size, 1.0)
    return Case(_read(m), torch.from_numpy(rng.uniform(-2, 2, (4, d)) * mixed))


def _float32(rng: Rng) -> Case:
    """Pressures of 1e3 .. 7e5 that differ by tenths, predicted in float32."""
    d = int(rng.integers(2, 4))
    m = _model(d, [(0.0, 1e6)] * d)

    def draw() -> Relation:
        if rng.random() < 0.3:
            a = np.zeros(d)
            a[rng.integers(d)] = 1.0
            return a.tolist(), str(rng.choice(["<=", ">="])), float(rng.integers(1, 700)) * 1e3
        a = np.zeros(d)
        one, two = rng.choice(d, 2, replace=False).tolist()
        a[one], a[two] = 1.0, -float(rng.choice([1.0, 1.0, 0.5, 1.1]))
        return a.tolist(), str(rng.choice(["<=", ">="])), float(rng.integers(-9, 10)) / 10

    _add_rules(m, _some_rules(rng, draw, most=2))
    size = float(rng.choice([1e3, 2e5, 7e5]))
    return Case(_read(m), torch.from_numpy(rng.uniform(0.5, 1.0, (4, d)) * size).float())


def _float16(rng: Rng) -> Case:
    """Outputs up to 100, predicted in float16."""
    d = int(rng.integers(2, 4))
    m = _model(d, [(-100.0, 100.0)] * d)

    def draw() -> Relation:
        a, sense, right = _relation(rng, d, equalities=0.0)
        return a, sense, right * float(rng.choice([1.0, 0.1]))

    _add_rules(m, _some_rules(rng, draw, most=2))
    return Case(_read(m), _predictions(rng, d, float(rng.choice([2.0, 10.0, 80.0]))).half())


def _tiny_rows(rng: Rng) -> Case:
    """Rows of coefficients of 1e-5 .. 1e-9."""
    d = int(rng.integers(1, 4))
    m = _model(d, _box(d))

    def draw() -> Relation:
        return _scaled(_relation(rng, d), 10.0 ** -float(rng.integers(5, 10)))

    _add_rules(m, _some_rules(rng, draw))
    return Case(_read(m), _predictions(rng, d))


def _inputs(rng: Rng) -> Case:
    """Coefficients, right sides and activation that depend on x."""
    d, p = int(rng.integers(2, 4)), 2
    m = _model(d, _box(d))
    m.x = pyo.Param(range(p), mutable=True, initialize=0.0)
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)

    def moving() -> Any:
        x = m.x[int(rng.integers(p))]
        c = float(rng.integers(-2, 3))
        return [c * x, c * x * x, c * pyo.exp(x / 4), c + x, c / (3 + x)][int(rng.integers(5))]

    def draw() -> Any:
        a, sense, right = _relation(rng, d)
        left = sum(c * v for c, v in zip(a, m.y.values(), strict=True) if c)
        if rng.random() < 0.5:
            left = left + moving() * m.y[int(rng.integers(d))]
        if rng.random() < 0.6:
            right = right + moving()
        return {"<=": left <= right, ">=": left >= right, "==": left == right}[sense]

    for k in range(rng.integers(1, 4)):
        terms = [
            [draw() for _ in range(rng.integers(1, 3))] for _ in range(int(rng.integers(1, 4)))
        ]
        rule = Disjunction(expr=terms)
        m.add_component(f"rule{k}", rule)
        if rng.random() < 0.5:
            m.active_when[rule] = m.x[int(rng.integers(p))] >= float(rng.integers(-1, 2))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])
    x = torch.from_numpy(rng.uniform(-2, 2, (4, p)))
    return Case(rules, _predictions(rng, d), x, _weights(rng, d))


def _random(rng: Rng) -> Case:
    """A bit of everything: `gdpnet.testing.random_rules`."""
    rules = random_rules(rng)
    return Case(rules, torch.from_numpy(random_predictions(rng, len(rules.output_names))))


CLASSES: dict[str, Callable[[Rng], Case]] = {
    "rows_scaled": _rows_scaled,
    "columns_scaled": _columns_scaled,
    "large_bounds": _large_bounds,
    "parallel": _parallel,
    "points": _points,
    "slivers": _slivers,
    "nested": _nested,
    "priced": _priced,
    "auxiliaries": _auxiliaries,
    "integers_1e6": _integers_1e6,
    "integers_1e12": _integers_1e12,
    "equalities": _equalities,
    "wide": _wide,
    "large_predictions": _large_predictions,
    "float32": _float32,
    "float16": _float16,
    "tiny_rows": _tiny_rows,
    "inputs": _inputs,
    "random": _random,
}
