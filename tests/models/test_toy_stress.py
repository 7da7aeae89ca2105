"""The toy and stress models: the paper's examples, and rules that stay feasible for any k."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection

MODELS = Path(__file__).resolve().parents[2] / "models"


def load_by_path(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


toy = load_by_path(MODELS / "toy" / "model.py", "models_toy")
stress = load_by_path(MODELS / "stress" / "model.py", "models_stress")


def corners(box: tuple[tuple[float, float], tuple[float, float]]) -> np.ndarray:
    return np.array(list(itertools.product(*box)))


def meet(first: tuple, second: tuple) -> tuple | None:
    sides = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(first, second, strict=True))
    return sides if all(low <= high for low, high in sides) else None


def holds(m: pyo.ConcreteModel, rule: str, y: np.ndarray, index: int | None = None) -> bool:
    """Whether the values y satisfy some disjunct of a rule, evaluated by Pyomo."""
    outputs = list(m.y.values())
    for var, value in zip(outputs, y, strict=True):
        var.set_value(float(value), skip_validation=True)
    disjunction = m.component(rule) if index is None else m.component(rule)[index]
    return any(
        all(bool(pyo.value(c.expr)) for c in d.component_data_objects(pyo.Constraint))
        for d in disjunction.disjuncts
    )


def test_figure1_has_two_of_four_intersections_and_a_larger_cnf() -> None:
    first, second = toy.FIGURE1["rule1"], toy.FIGURE1["rule2"]
    products = {(i, j): meet(first[i], second[j]) for i in range(2) for j in range(2)}
    assert [key for key, box in products.items() if box] == [(0, 0), (1, 0)]
    dnf = ConvexHull(np.concatenate([corners(box) for box in products.values() if box]))
    hulls = [ConvexHull(np.concatenate([corners(b) for b in boxes])) for boxes in (first, second)]
    cnf = HalfspaceIntersection(
        np.concatenate([h.equations for h in hulls]), interior_point=np.array([4.5, 4.0])
    )
    assert dnf.volume == pytest.approx(12.0)
    # In the plane `volume` is the area.
    assert ConvexHull(cnf.intersections).volume == pytest.approx(28.1, abs=0.1)
    inside = np.all(dnf.equations[:, :2] @ cnf.intersections.T + dnf.equations[:, 2:] <= 1e-9, 0)
    assert not inside.all()


@pytest.mark.parametrize("name", toy.NAMES)
def test_toy_feasible_agrees_with_the_pyomo_model(name: str) -> None:
    m = toy.pyomo_model(name)
    rules = ["rule"] if name == "one_rule" else ["rule1", "rule2"]
    rng = np.random.default_rng(0)
    y = 10.0 * rng.random((200, len(m.y)))
    y = np.concatenate([y, toy.sample(20, "iid", 0, name)[1].numpy()])
    expected = [all(holds(m, rule, point) for rule in rules) for point in y]
    np.testing.assert_array_equal(toy.feasible(y, name), expected)
    assert any(expected)
    assert not all(expected)


@pytest.mark.parametrize("name", toy.NAMES)
def test_toy_samples(name: str) -> None:
    x, target = toy.sample(50, "train", 3, name)
    assert x.shape == (50, 0)
    assert target.shape == (50, 2 if name == "figure1" else 1)
    assert x.dtype == target.dtype == torch.float64
    assert toy.feasible(target.numpy(), name).all()
    assert torch.equal(target[:20], toy.sample(20, "train", 3, name)[1])
    assert not torch.equal(target, toy.sample(50, "iid", 3, name)[1])


@pytest.mark.parametrize("name", toy.NAMES)
def test_toy_build(name: str) -> None:
    rules = toy.build(name)
    assert list(rules.names) == (["rule"] if name == "one_rule" else ["rule1", "rule2"])
    x, y = toy.sample(30, "iid", 0, name)
    assert bool(rules.satisfied(y, x).all())
    middle = torch.full((1, y.shape[1]), 4.5, dtype=torch.float64)
    assert not bool(rules.satisfied(middle, x[:1]).any())


@pytest.mark.parametrize("call", [toy.pyomo_model, toy.build])
def test_toy_unknown_name(call) -> None:
    with pytest.raises(ValueError, match="one_rule, two_rules, figure1"):
        call("three_rules")


def test_unknown_split_and_bad_sizes() -> None:
    for module in (toy, stress):
        with pytest.raises(ValueError, match="split must be one of"):
            module.sample(2, "test")
        with pytest.raises(ValueError, match="negative"):
            module.sample(-1)
    with pytest.raises(ValueError, match="d >= 2"):
        stress.pyomo_model(3, 1)


@pytest.mark.parametrize(("k", "d"), [(0, 3), (1, 2), (10, 3), (40, 3), (25, 8)])
def test_stress_witness_and_samples_are_feasible(k: int, d: int) -> None:
    rules = stress.rule_rows(k, d)
    assert len(rules) == k
    assert rules == stress.rule_rows(k + 5, d)[:k]
    assert all(a.column != b.column for a, b in rules)
    for split in ("train", "iid", "ood"):
        x, y = stress.sample(64, split, 4, k, d)
        assert x.shape == (64, 1)
        assert y.shape == (64, d)
        assert stress.feasible(x.numpy(), y.numpy(), k, d).all()
        at_witness = np.tile(stress.witness(d), (64, 1))
        assert stress.feasible(x.numpy(), at_witness, k, d).all()
        assert torch.equal(y[:9], stress.sample(9, split, 4, k, d)[1])


def test_stress_pyomo_model_agrees_with_its_table() -> None:
    k, d = 10, 3
    m = stress.pyomo_model(k, d)
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.random((100, d)), stress.sample(20)[1].numpy()])
    x = rng.uniform(0.3, 0.8, (len(y), 1))
    for point, need, expected in zip(y, x[:, 0], stress.feasible(x, y, k, d), strict=True):
        m.need.set_value(float(need))
        got = all(holds(m, "rule", point, i) for i in range(k))
        got = got and all(bool(pyo.value(c.expr)) for c in (m.demand, m.pump))
        assert got == expected


def test_stress_rules_restrict_the_box() -> None:
    # Else the timings would be of problems that need no projection.
    y = np.random.default_rng(2).random((4000, 3))
    x = np.full((4000, 1), 0.3)
    share = [stress.feasible(x, y, k).mean() for k in (0, 5, 10)]
    assert share[0] > 2 * share[1] > 2 * share[2] > 0
    terms = [
        linprog(
            np.zeros(3),
            A_ub=[[(1.0 if r.upper else -1.0) * (j == r.column) for j in range(3)] for r in rows],
            b_ub=[r.threshold if r.upper else -r.threshold for r in rows],
            bounds=[(0, 1)] * 3,
        ).status
        for rows in itertools.product(*stress.rule_rows(6))
    ]
    # Rules contradict each other: some products are empty, several are not.
    assert 1 < terms.count(0) < len(terms)


def test_stress_build() -> None:
    rules = stress.build(6, 4)
    assert len(rules.names) == 6
    x, y = stress.sample(30, "ood", 0, 6, 4)
    assert bool(rules.active(x).all())
    assert bool(rules.satisfied(y, x).all())
