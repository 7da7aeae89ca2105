"""Rows that are convex and not linear: read as Pyomo means them, or refused by name."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.errors import RuleError
from gdpnet.ir.data import Role, Shape
from gdpnet.testing import CONVEX, PROBLEMS, Problem, random_convex_model
from tests.rules import test_pyomo_models as pyomo_models
from tests.rules.public_models import MODELS
from tests.rules.pyomo_values import assert_as_pyomo, is_domain

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pyomo.*")


def base() -> Any:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(-5, 5))
    m.w = pyo.Var(bounds=(1, 4))
    m.n = pyo.Var(bounds=(-4, -1))
    m.p = pyo.Param(initialize=1.0, mutable=True)
    m.q = pyo.Param(initialize=0.0, mutable=True)
    return m


def read(m: Any, **bounds: Any) -> gdpnet.RuleModel:
    ranges = {"p": (1.0, 4.0), "q": (-1.0, 2.0), **bounds}
    return gdpnet.RuleModel(m, outputs=[m.y, m.w, m.n], inputs=[m.p, m.q], input_bounds=ranges)


def of(relation: Callable[[Any], Any]) -> Any:
    m = base()
    m.row = pyo.Constraint(expr=relation(m))
    return m


def squares(m: Any) -> Any:
    return m.y[0] ** 2 + m.y[1] ** 2


# ---- what is read -------------------------------------------------------------------------

READ: dict[str, tuple[Callable[[Any], Any], list[Shape]]] = {
    "disc": (lambda m: squares(m) <= 4, [Shape.SQUARES]),
    "disc turned round": (lambda m: 4 >= squares(m), [Shape.SQUARES]),
    "minus a disc": (lambda m: -squares(m) >= -4, [Shape.SQUARES]),
    "affine squares": (lambda m: (m.y[0] - 2 * m.y[1] + 1) ** 2 <= m.y[2], [Shape.SQUARES]),
    "product of equals": (lambda m: (m.y[0] + 1) * (m.y[0] + 1) <= 3, [Shape.SQUARES]),
    "weights": (lambda m: 2 * m.y[0] ** 2 + 3 * m.y[1] ** 2 / 4 <= 3, [Shape.SQUARES] * 2),
    "written out": (
        lambda m: m.y[0] ** 2 + m.y[0] * m.y[1] + m.y[1] ** 2 - m.y[0] <= 3,
        [Shape.SQUARES] * 2,
    ),
    "of rank one": (
        lambda m: m.y[0] ** 2 + 2 * m.y[0] * m.y[1] + m.y[1] ** 2 <= 3,
        [Shape.SQUARES],
    ),
    "rounded rank one": (
        lambda m: 0.01 * m.y[0] ** 2 + 0.06 * m.y[0] * m.y[1] + 0.09 * m.y[1] ** 2 <= 3,
        [Shape.SQUARES],
    ),
    "a negative square beside more": (
        lambda m: 3 * m.y[0] ** 2 - m.y[0] ** 2 + m.y[1] ** 2 <= 3,
        [Shape.SQUARES] * 2,
    ),
    "what cancels": (lambda m: m.y[0] * m.y[1] + m.w - m.y[0] * m.y[1] == 3, []),
    "norm": (lambda m: pyo.sqrt(squares(m)) <= m.y[2], [Shape.NORM]),
    "norm as a power": (lambda m: squares(m) ** 0.5 <= m.y[2] + 1, [Shape.NORM]),
    "norm with a constant": (lambda m: pyo.sqrt(squares(m) + 2) <= 4, [Shape.NORM]),
    "norm written out": (
        lambda m: pyo.sqrt(m.y[0] ** 2 + m.y[0] * m.y[1] + m.y[1] ** 2 + m.y[0] + 1) <= 4,
        [Shape.NORM],
    ),
    "square of a norm": (lambda m: pyo.sqrt(squares(m)) ** 2 <= 4, [Shape.SQUARES]),
    "two norms": (
        lambda m: 2 * pyo.sqrt(squares(m)) + pyo.sqrt(m.y[1] ** 2 + m.w**2) <= 4,
        [Shape.NORM] * 2,
    ),
    "absolute value": (lambda m: abs(m.y[0] - 1) + m.y[1] <= 4, []),
    "absolute value of an input": (lambda m: m.q**2 * abs(m.y[0]) <= 4, []),
    "root of a square": (lambda m: pyo.sqrt((m.y[0] - 1) ** 2) <= 4, []),
    "maximum": (lambda m: gdpnet.maximum(m.y[0], m.y[1] ** 2) <= 4, [Shape.SQUARES]),
    "minimum": (lambda m: gdpnet.minimum(m.y[0], 3 - m.y[1] ** 2) >= 1, [Shape.SQUARES]),
    "many absolute values": (
        lambda m: sum(abs(m.y[j] + k) for j in range(3) for k in (0, 1)) <= 9,
        [Shape.NORM] * 6,
    ),
    "exponential": (lambda m: pyo.exp(m.y[0] - 1) + m.y[1] <= 4, [Shape.EXP]),
    "power of a number": (lambda m: 2 ** m.y[0] <= 4, [Shape.EXP]),
    "logarithm": (lambda m: pyo.log(m.w) >= m.y[1], [Shape.LOG]),
    "decadic logarithm": (lambda m: 3 * pyo.log10(m.w) >= m.y[1], [Shape.LOG]),
    "root": (lambda m: pyo.sqrt(m.y[0] + 1) >= m.y[1], [Shape.POWER]),
    "cube": (lambda m: m.w**3 <= 9, [Shape.POWER]),
    "cube of what is negative": (lambda m: m.n**3 >= -9, [Shape.POWER]),
    "fourth power": (lambda m: m.y[0] ** 4 <= 9, [Shape.POWER]),
    "square of a square": (lambda m: (3 * m.y[0] ** 2) ** 2 <= 9, [Shape.POWER]),
    "reciprocal": (lambda m: 3 / m.w <= m.y[0], [Shape.POWER]),
    "reciprocal of what is negative": (lambda m: 3 / m.n >= m.y[0], [Shape.POWER]),
    "inverse square": (lambda m: m.n ** (-2) <= m.y[0], [Shape.POWER]),
    "uneven power": (lambda m: (m.y[0] + 1) ** 1.5 <= m.y[1], [Shape.POWER]),
    "weight of an input": (lambda m: m.p * m.y[0] ** 2 <= 3, [Shape.SQUARES]),
    "weight that may be zero": (lambda m: gdpnet.relu(m.q) * m.y[0] ** 2 <= 3, [Shape.SQUARES]),
    "norm of an input": (lambda m: m.p * pyo.sqrt(squares(m)) <= 3, [Shape.NORM]),
    "exponential of an input": (lambda m: m.p * pyo.exp(m.y[0]) <= 3, [Shape.EXP]),
    "power of an input": (lambda m: m.p * m.w**3 <= 3, [Shape.POWER]),
    "matrix of inputs": (
        lambda m: m.p * m.y[0] ** 2 + m.y[0] * m.y[1] + m.y[1] ** 2 <= 3,
        [Shape.SQUARES],
    ),
    "matrix of rank one": (
        lambda m: m.p * (m.y[0] ** 2 + 2 * m.y[0] * m.y[1] + m.y[1] ** 2) <= 3,
        [Shape.SQUARES],
    ),
    "matrix with an input beside the diagonal": (
        lambda m: 2 * m.y[0] ** 2 + m.q * m.y[0] * m.y[1] + 2 * m.y[1] ** 2 <= 3,
        [Shape.SQUARES] * 2,
    ),
    "switched": (
        lambda m: pyo.Expr_if(IF=m.q >= 0, THEN=m.y[0] ** 2, ELSE=m.y[1] ** 2) <= 3,
        [Shape.SQUARES],
    ),
    "a range that says nothing below": (
        lambda m: pyo.inequality(0, squares(m), 4),
        [Shape.SQUARES],
    ),
}


@pytest.mark.parametrize("name", READ)
def test_read(name: str) -> None:
    relation, shapes = READ[name]
    m = of(relation)
    rules = read(m)
    data = rules.data
    found = [curve.shape for i in data.curved for curve in data.rows[i].curves]
    assert found == shapes
    for i in data.curved:
        row = data.rows[i]
        assert not row.equality
        assert row.role is Role.CONSTRAINT
        assert all(curve.weight > 0 for curve in row.curves)
        arguments = [k for curve in row.curves for k in curve.arguments]
        assert all(data.rows[k].role is Role.ARGUMENT for k in arguments)
        assert all(data.rows[k].source == row.source for k in arguments)
        assert not set(arguments) & set(data.global_rows)
    assert assert_as_pyomo(m, rules, [m.p, m.q], np.random.default_rng(0)) >= 5


@pytest.mark.parametrize("name", READ)
def test_convex_along_lines(name: str) -> None:
    """The middle of two points is never worse than both: for all x within their bounds."""
    rules = read(of(READ[name][0]))
    generator = torch.Generator().manual_seed(1)

    def points(low: Any, high: Any) -> torch.Tensor:
        low, high = torch.as_tensor(low), torch.as_tensor(high)
        return low + (high - low) * torch.rand(500, len(low), generator=generator).double()

    bounds = list(zip(*rules.data.input_bounds, strict=True))
    rows = rules.evaluate(points(*bounds)).rows
    one, other = (points(rules.lower, rules.upper) for _ in range(2))
    data = rules.data
    inner = torch.tensor(sorted(set(range(len(data.rows))) - data.arguments))
    ends = torch.stack([rows.excess(one), rows.excess(other)])
    middle = rows.excess((one + other) / 2)[:, inner]
    size = ends[..., inner].abs().amax(0).clamp(min=1.0)
    domain = [i for i, row in enumerate(data.rows) if is_domain(rules, row)]
    defined = (ends[..., domain] <= 0.0).all(0).all(1)
    assert int(defined.sum()) > 50
    assert bool((middle <= ends[..., inner].mean(0) + 1e-12 * size)[defined].all())


@pytest.mark.parametrize("problem", CONVEX, ids=lambda p: p.name)
def test_bank(problem: Problem) -> None:
    m = problem.build()
    rules = problem.rules(m)
    inputs = [m.find_component(name) for name in problem.inputs]
    assert assert_as_pyomo(m, rules, inputs, np.random.default_rng(2)) >= 5
    holds = rules.satisfied(problem.yhat, problem.x)
    for sample, found in zip(problem.samples, holds.tolist(), strict=True):
        if sample.distance is not None:
            assert found == (sample.distance == 0.0)


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_literature(name: str) -> None:
    m = MODELS[name]()
    rules = gdpnet.RuleModel(m, outputs="continuous")
    assert rules.data.curved
    assert gdpnet.check(m).ok
    assert assert_as_pyomo(m, rules, [], np.random.default_rng(3)) >= 20


@pytest.mark.parametrize(
    "name", [n for n, verdict in pyomo_models.TABLE.items() if verdict == pyomo_models.CONVEX]
)
def test_models_of_pyomo(name: str) -> None:
    build = pyomo_models.functions().get(name)
    if build is None:
        pytest.skip("this Pyomo does not have it")
    model, outputs = pyomo_models.built(build)
    rules = gdpnet.RuleModel(model, outputs=outputs)
    assert rules.data.curved
    assert assert_as_pyomo(model, rules, [], np.random.default_rng(4)) >= 20


@pytest.mark.parametrize("kind", ["ellipsoids", "cones", "mixed"])
@pytest.mark.parametrize("d", [2, 3, 8, 20])
def test_random_models(kind: str, d: int) -> None:
    rng = np.random.default_rng([d, len(kind)])
    compared = 0
    for _ in range(6):
        m = random_convex_model(rng, d, kind, thin=0.2)
        compared += assert_as_pyomo(m, gdpnet.RuleModel(m, outputs=[m.y]), [], rng)
    assert compared > 100


@pytest.mark.parametrize("d", [1, 2, 4, 7])
def test_quadratics_are_read_where_eigenvalues_allow_it(d: int) -> None:
    rng = np.random.default_rng(d)
    for _ in range(20):
        basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
        eigenvalues = rng.uniform(0.1, 3.0, d) * (rng.random(d) < 0.8)
        indefinite = rng.random() < 0.4
        if indefinite:
            eigenvalues[0] = -rng.uniform(0.01, 2.0)
        matrix = basis @ np.diag(eigenvalues) @ basis.T
        matrix = (matrix + matrix.T) / 2
        m = pyo.ConcreteModel()
        m.y = pyo.Var(range(d), bounds=(-3, 3))
        body = sum(float(matrix[i, j]) * m.y[i] * m.y[j] for i in range(d) for j in range(d))
        m.row = pyo.Constraint(expr=body + m.y[0] <= 1)
        if indefinite:
            with pytest.raises(RuleError, match="Constraint 'row'"):
                gdpnet.RuleModel(m, outputs=[m.y])
        else:
            assert_as_pyomo(m, gdpnet.RuleModel(m, outputs=[m.y]), [], rng)


# ---- what is refused ----------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "outside a disc": (lambda m: squares(m) >= 4, "'y[0]**2' it is convex as <=, not as >="),
    "on a circle": (lambda m: squares(m) == 4, "'y[0]**2' it is convex as <=, not as =="),
    "minus": (lambda m: -squares(m) <= -4, "it is convex as >=, not as <="),
    "root on the wrong side": (lambda m: pyo.sqrt(m.w) <= 1, "convex as >=, not as <="),
    "logarithm as equality": (lambda m: pyo.log(m.w) == 1, "convex as >=, not as =="),
    "bilinear": (lambda m: m.y[0] * m.y[1] <= 1, "'y[0]*y[1]' makes it neither convex nor concave"),
    "saddle": (lambda m: m.y[0] ** 2 - m.y[1] ** 2 <= 1, "has the eigenvalue -1"),
    "ring": (lambda m: pyo.inequality(1, squares(m), 4), "convex as <=, not as >="),
    "sine": (lambda m: pyo.sin(m.y[0]) <= 0.5, "'sin(y[0])' is a function (sin)"),
    "cube on both sides": (lambda m: m.y[0] ** 3 <= 1, "base may lie in [-5, 5]"),
    "reciprocal around 0": (lambda m: 1 / m.y[0] <= 1, "base may lie in [-5, 5]"),
    "quotient": (lambda m: m.y[0] / m.w <= 1, "divides by a term"),
    "square over linear": (lambda m: m.y[0] ** 2 / m.w <= 1, "divides by a term"),
    "product of curves": (lambda m: m.w * pyo.exp(m.w) <= 1, "'w*exp(w)' is a product"),
    "composition": (lambda m: pyo.exp(m.y[0] ** 2) <= 2, "'exp(y[0]**2)' is a function of what"),
    "root of a saddle": (lambda m: pyo.sqrt(m.y[0] ** 2 - 1) <= 2, "no sum of squares"),
    "power of a power": (lambda m: m.w ** m.y[0] <= 2, "an exponent that is no number"),
    "power of what is negative": (lambda m: (-2) ** m.y[0] <= 2, "a number that is not positive"),
    "sign not known": (lambda m: m.q * m.y[0] ** 2 <= 1, "no sum of squares was found"),
    "sign of a norm": (lambda m: m.q * pyo.sqrt(squares(m)) <= 1, "may lie in [-1, 2]"),
    "sign of a maximum": (lambda m: m.q * gdpnet.maximum(m.y[0], 1) <= 1, "may lie in [-1, 2]"),
    "logarithm of an input": (lambda m: m.p * pyo.log(m.w) >= 1, "Divide the Constraint"),
    "nowhere defined": (lambda m: pyo.log(m.n) >= 0, "but bounds keep it in [-4, -1]"),
    "root of what is negative": (lambda m: pyo.sqrt(m.n) >= 0, "'sqrt(n)' is defined where"),
    "too many maxima": (
        lambda m: sum(gdpnet.maximum(m.y[j], m.w, 0) for j in range(3) for _ in range(2)) <= 9,
        "make 729 rows",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    relation, said = REFUSED[name]
    m = of(relation)
    with pytest.raises(RuleError) as caught:
        read(m)
    text = str(caught.value)
    assert text.startswith("Constraint 'row': ")
    assert said in text
    (problem,) = gdpnet.check(m, [m.y, m.w, m.n], [m.p, m.q], [(1, 4), (-1, 2)]).problems
    assert problem.component == "row"
    assert problem.reason
    assert problem.advice


def test_all_obstacles_at_once() -> None:
    m = base()
    m.d = Disjunct([0, 1])
    for k in range(2):
        m.d[k].curve = pyo.Constraint(expr=m.y[k] ** 2 >= 1)
    m.rule = Disjunction(expr=[m.d[0], m.d[1]])
    m.fine = pyo.Constraint(expr=squares(m) <= 9)
    m.bad = pyo.Constraint(expr=m.y[0] * m.y[1] == 1)
    found = gdpnet.check(m, [m.y])
    assert [problem.component for problem in found.problems] == [
        *("d[0].curve", "d[1].curve", "bad"),
    ]
    with pytest.raises(RuleError, match=r"d\[0\].curve.*2 more obstacles \(d\[1\].curve, bad\)"):
        gdpnet.RuleModel(m, outputs=[m.y])


def test_signs_are_proved_over_input_bounds() -> None:
    m = of(lambda m: (m.p - 1) * m.y[0] ** 2 <= 1)
    assert read(m).data.curved
    with pytest.raises(RuleError, match="'row'"):
        read(m, p=(0.5, 4.0))
    with pytest.raises(RuleError, match="input_bounds"):
        gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p, m.q])
    assert gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.q]).data.curved == ()  # p is 1 here


def test_domains_become_rows() -> None:
    """Where bounds do not imply that a curve is defined, a row says it."""
    rules = read(of(lambda m: pyo.log(m.y[0] - m.y[1]) + pyo.sqrt(m.w) >= 0))
    first, domain = (rules.data.rows[i] for i in rules.data.global_rows)
    assert first.curves
    assert not domain.curves
    assert domain.source == first.source
    z = [[0.0, 1.0, 0.0, 4.0, -1.0], [2.0, 1.0, 0.0, 4.0, -1.0]]
    assert rules.satisfied(z, [1.0, 0.0]).tolist() == [False, True]
    assert torch.isfinite(rules.global_violation(z, [1.0, 0.0])).all()


def test_nested_and_conditional_rows_are_where_they_belong() -> None:
    problem = next(p for p in CONVEX if p.name == "nested_and_conditional")
    data = problem.rules().data
    hot, deep = data.rules
    assert [data.rows[i].curves[0].shape for i in data.rows_below(hot.clause)] == [Shape.SQUARES]
    inner = {data.rows[i].name for i in data.rows_below(deep.clause) if data.rows[i].curves}
    assert inner == {"outer[1].inner_disjuncts[0].constraint[1]"}
    assert not data.global_rows


# ---- rules with such rows ------------------------------------------------------------------

TEXTS = {
    "affine squares": "(y[0] - 2*y[1] + 1)^2 - y[2] <= 0",
    "disc": "y[0]^2 + y[1]^2 <= 4",
    "weights": "2*y[0]^2 + 0.75*y[1]^2 <= 3",
    "norm": "sqrt(y[0]^2 + y[1]^2) - y[2] <= 0",
    "many absolute values": "|y[0]| + |y[0] + 1| + |y[1]| + |y[1] + 1| + |y[2]| + |y[2] + 1| <= 9",
    "exponential": "exp(y[0] - 1) + y[1] <= 4",
    "logarithm": "-log(w) + y[1] <= 0",
    "root": "-sqrt(y[0] + 1) + y[1] <= 0",
    "cube": "w^3 <= 9",
    "reciprocal": "3*w^(-1) - y[0] <= 0",
    "weight of an input": "(sqrt(p)*y[0])^2 <= 3",
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    rules = read(of(READ[name][0]))
    assert f"    row: {TEXTS[name]}\n" in f"{rules}\n"
    assert "row" in rules._repr_html_()


@pytest.mark.parametrize("problem", CONVEX, ids=lambda p: p.name)
def test_saved_and_pickled(problem: Problem, tmp_path: Path) -> None:
    rules = problem.rules()
    path = tmp_path / "rules.json"
    rules.save(path)
    content = json.loads(path.read_text())
    assert content["version"] == (3 if rules.data.curved else 2)
    loaded = gdpnet.load_rules(path)
    assert loaded.data == rules.data
    assert loaded.fingerprint == rules.fingerprint
    assert pickle.loads(pickle.dumps(rules)).data == rules.data


def test_linear_rules_are_written_as_before(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    PROBLEMS[0].rules().save(path)
    content = json.loads(path.read_text())
    assert content["version"] == 2
    assert {row["kind"] for row in content["rows"]} == {"linear"}
    assert not any("curves" in row for row in content["rows"])


DAMAGE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "format 2": (lambda c: c.update(version=2), "rows[0].kind: 'convex' is not known"),
    "format 5": (lambda c: c.update(version=5), "reads versions 1 to 4"),
    "shape": (lambda c: c["rows"][0]["curves"][0].update(shape="cosh"), "'cosh' is not known"),
    "weight": (lambda c: c["rows"][0]["curves"][0].update(weight=-1), "expected a positive number"),
    "arguments": (lambda c: c["rows"][0]["curves"][0].update(arguments=[0]), "role 'argument'"),
    "no arguments": (lambda c: c["rows"][0]["curves"][0].update(arguments=[]), "one or more"),
    "a row that is not there": (
        lambda c: c["rows"][0]["curves"][0].update(arguments=[99]),
        "role 'argument'",
    ),
    "no curves": (lambda c: c["rows"][0].update(curves=[]), "needs curves"),
    "equality": (lambda c: c["rows"][0].update(sense="=="), "needs curves, the sense '<='"),
    "enforced": (lambda c: c["global_rows"].append(1), "that nothing enforces"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    read(of(READ["disc"][0])).save(path)
    content = json.loads(path.read_text())
    edit, said = DAMAGE[name]
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(RuleError) as caught:
        gdpnet.load_rules(path)
    assert said in str(caught.value)


def test_fingerprints_tell_curves_apart() -> None:
    found = {read(of(READ[name][0])).fingerprint for name in ("disc", "norm", "cube", "root")}
    assert len(found) == 4


@pytest.mark.parametrize("problem", CONVEX, ids=lambda p: p.name)
def test_residuals_have_slopes(problem: Problem) -> None:
    rules = problem.rules()
    generator = torch.Generator().manual_seed(5)
    d, p = len(rules.data.columns), len(rules.input_names)
    z = (0.6 + torch.rand(3, d, generator=generator)).double().requires_grad_()
    low = torch.tensor([max(a, 0.1) for a, _ in rules.data.input_bounds]).double()
    x = (low + 0.3 + torch.rand(3, p, generator=generator)).requires_grad_()
    assert torch.autograd.gradcheck(lambda z, x: rules.table.evaluate(x).excess(z), (z, x))


def test_slopes_are_finite_at_corners() -> None:
    """An apex, the ends of domains, exponents beyond numbers, a weight that is 0."""
    m = base()
    m.rows = pyo.ConstraintList()
    for name in ("norm", "root", "uneven power", "weight that may be zero", "fourth power"):
        m.rows.add(READ[name][0](m))
    m.rows.add(pyo.exp(300 * m.y[0]) <= 1)
    m.rows.add(pyo.log(m.y[0]) >= -3)
    m.rows.add((m.y[1] + 5) ** (-2.5) <= 3)
    rules = read(m)
    for values in ([0.0, 0.0, 0.0, 1.0, -1.0], [-5.0, -5.0, 5.0, 1.0, -1.0], [5.0] * 5):
        z = torch.tensor([values], dtype=torch.float64, requires_grad=True)
        x = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
        residual = rules.table.evaluate(x).residual(z)
        assert torch.isfinite(residual).all()
        slopes = torch.autograd.grad(residual.sum(), (z, x))
        assert all(torch.isfinite(slope).all() for slope in slopes)


def test_rules_meet_through_arguments() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(5), bounds=(-3, 3))
    m.one = Disjunction(expr=[[m.y[0] ** 2 <= 1], [m.y[0] >= 2]])
    m.two = Disjunction(expr=[[m.y[1] ** 2 <= 1], [m.y[1] >= 2]])
    m.three = Disjunction(expr=[[m.y[4] ** 2 <= 1], [m.y[4] >= 2]])
    m.disc = pyo.Constraint(expr=m.y[0] ** 2 + m.y[1] ** 2 + m.y[2] <= 8)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    graph = gdpnet.plan.interaction_graph(rules)
    assert sorted(map(sorted, graph.edges)) == [["one", "two"]]


def test_what_knows_linear_rows_alone_says_so() -> None:
    rules = CONVEX[0].rules()
    yhat = CONVEX[0].yhat
    for solver in ("milp", "extended", "highs"):
        with pytest.raises(RuleError, match=r"linear rows only; Constraint 'discs_disj"):
            gdpnet.project(rules, yhat, solver=solver)


def test_penalty() -> None:
    for problem in CONVEX:
        if problem.auxiliaries:
            continue
        rules = problem.rules()
        penalty = gdpnet.nn.RulePenalty(rules, reduction="none")
        y = problem.yhat.clone().requires_grad_()
        value = penalty(y, problem.x)
        holds = rules.satisfied(problem.yhat, problem.x, tol=0.0)
        assert ((value == 0.0) == holds).all(), problem.name
        value.sum().backward()
        assert torch.isfinite(y.grad).all()


def test_rules_over_auxiliaries_are_measured() -> None:
    """Within 1 of a segment: the residual of the nearest point of it."""
    rules = next(p for p in CONVEX if p.name == "beside_a_segment").rules()
    generator = torch.Generator().manual_seed(6)
    y = 8.0 * torch.rand(12, 2, generator=generator).double() - 2.5
    nearest = y[:, :1].clamp(0.0, 3.0)
    away = torch.cat([y[:, :1] - nearest, y[:, 1:]], 1).norm(dim=1)
    wanted = (away - 1.0).clamp(min=0.0)
    assert torch.allclose(rules.global_violation(y), wanted, atol=1e-8)
    assert rules.satisfied(y).tolist() == (wanted <= 1e-6).tolist()


def test_contradictions_are_explained() -> None:
    rules = next(p for p in CONVEX if p.name == "disc_without_room").rules()
    assert rules.explain_conflict() == ["far", "disc"]
    assert CONVEX[0].rules().explain_conflict() == []


def test_intervals_of_even_powers_and_roots() -> None:
    from gdpnet.ir.intervals import interval

    everything = [(-math.inf, math.inf)]
    x = ("input", 0)
    assert interval(("power", x, ("number", 2.0)), everything)[0] == 0.0
    assert interval(("exp", x), everything)[0] == 0.0
    assert interval(("abs", x), everything)[0] == 0.0
    assert interval(("max", x, ("number", 0.0)), everything)[0] == 0.0
    assert interval(("sqrt", x), [(0.0, 4.0)]) == pytest.approx((0.0, 2.0), abs=1e-8)
    assert interval(("power", x, ("number", -1.0)), [(2.0, 4.0)]) == pytest.approx((0.25, 0.5))
    assert interval(("power", x, ("number", 40.0)), [(1.0, 1e10)])[1] == math.inf
