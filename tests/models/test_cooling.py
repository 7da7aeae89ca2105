"""The cooling model: constants, feasibility of every input, and the exact oracle."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
import time
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from scipy.optimize import linprog, nnls

FOLDER = Path(__file__).resolve().parents[2] / "models" / "cooling"

# The point of the README's proof.
WITNESS = np.array([0.77, 0.40, 0.20])


def load_by_path(path: Path, name: str, register: bool = True) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if register:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


cooling = load_by_path(FOLDER / "model.py", "models_cooling")
K = cooling.CONSTANTS

# Rules and globals once more, by hand and independent of the Pyomo model: rows a y <= b.
F, C, P = np.eye(3)
POWER = np.array([0.20, 0.65, 0.15])
RULES = [
    [[(-C, -0.45)], [(-F, -0.75)]],
    [[(C, 0.05)], [(-F, -0.60)]],
    [[(F, 0.70)], [(-C, -0.30)]],
    [[(-F, -0.65)], [(-C, -0.35)]],
    [[(POWER, 0.45)], [(F, 0.50), (C, 0.40)]],
    [[(F, 0.40)], [(-C, -0.40)]],
    [[(C, 0.40)], [(-F, -0.70)]],
]


def global_rows(load: float) -> list[tuple[np.ndarray, float]]:
    box = [(-e, 0.0) for e in (F, C, P)] + [(e, 1.0) for e in (F, C, P)]
    return [*box, (-P, -0.20), (-(0.6 * F + 1.0 * C), -load)]


def selections(load: float, active: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of every product of disjuncts of the active rules."""
    found = []
    for chosen in itertools.product(*(RULES[r] for r in np.flatnonzero(active))):
        rows = global_rows(load) + [row for term in chosen for row in term]
        found.append((np.array([a for a, _ in rows]), np.array([b for _, b in rows])))
    return found


def satisfies(y: np.ndarray, load: float, active: np.ndarray, tol: float = 1e-9) -> bool:
    return any(np.all(a @ y <= b + tol) for a, b in selections(load, active))


def possible_patterns() -> list[tuple[np.ndarray, float]]:
    """Every activation pattern that occurs in the box of x, with the largest load it admits."""
    found = []
    for bits in itertools.product([False, True], repeat=7):
        hot, cold, busy = bits[0], bits[1], bits[3]
        if hot and cold:
            continue
        temperature = 45.0 if hot else 12.0 if cold else 28.0
        workload = 1.0 if busy else 0.62
        load = 0.20 + 0.35 * workload + 0.012 * max(0.0, temperature - 20.0)
        found.append((np.array(bits), load))
    return found


def inputs(n: int, split: str, seed: int = 5) -> np.ndarray:
    return cooling.sample(n, split, seed)[0].numpy()


def test_pyomo_model_has_the_rows_written_by_hand() -> None:
    problem, right, demand = cooling._rows(K)
    x = inputs(50, "ood")
    for load in cooling.load(x):
        b = right.copy()
        b[demand] = -load
        read = {(*np.round(problem.normals[i], 12), round(b[i], 12)) for i in problem.always}
        assert read == {(*np.round(a, 12), round(c, 12)) for a, c in global_rows(load)}
    for rule, expected in zip(problem.rules, RULES, strict=True):
        for term, rows in zip(rule, expected, strict=True):
            for i, (a, c) in zip(term, rows, strict=True):
                np.testing.assert_allclose([*problem.normals[i], right[i]], [*a, c], atol=1e-15)


def test_load_and_conditions_agree_with_pyomo() -> None:
    m = cooling.pyomo_model()
    x = np.concatenate([inputs(40, "iid"), inputs(40, "ood")])
    # At its own threshold a strict condition is false, and an event is true.
    x = np.concatenate([x, [[28.0, 62.0, 0.62, 0.2, 0.5, 0.5, 0.5], [12.0, 0, 0, 0.2, 0.4, 0, 0]]])
    for row, load, active in zip(x, cooling.load(x), cooling.active(x), strict=True):
        for name, number in zip(cooling.INPUTS, row, strict=True):
            m.component(name).set_value(float(number))
        assert pyo.value(m.required) == pytest.approx(load, abs=1e-15)
        conditions = [bool(pyo.value(m.active_when[m.component(r)])) for r in cooling.RULES]
        assert conditions == list(active)
    assert not cooling.active(x)[-2, :4].any()
    assert cooling.active(x)[-2, 4:].all()
    assert not cooling.active(x)[-1].any()


def test_readme_lists_every_constant_with_its_value() -> None:
    table = dict(
        re.findall(r"^\| `(\w+)` \| ([-\d.]+) \|", (FOLDER / "README.md").read_text(), re.M)
    )
    assert {name: float(value) for name, value in table.items()} == {
        f.name: getattr(K, f.name) for f in fields(K)
    }


def test_every_pattern_is_feasible_at_its_largest_load() -> None:
    patterns = possible_patterns()
    assert len(patterns) == 96
    for active, load in patterns:
        # The witness of the written proof satisfies every row; it is the same for all patterns.
        assert satisfies(WITNESS, load, active, tol=0.0)
        assert any(
            linprog(np.zeros(3), A_ub=a, b_ub=b, bounds=[(None, None)] * 3).status == 0
            for a, b in selections(load, active)
        )


def test_patterns_and_loads_cover_the_samples() -> None:
    largest = {tuple(active): load for active, load in possible_patterns()}
    x = np.concatenate([inputs(5000, "iid"), inputs(5000, "ood")])
    assert np.all((x >= cooling.INPUT_BOUNDS[:, 0]) & (x <= cooling.INPUT_BOUNDS[:, 1]))
    for active, load in zip(cooling.active(x), cooling.load(x), strict=True):
        assert load <= largest[tuple(active)]


def test_share_of_samples_by_number_of_active_rules() -> None:
    count = cooling.active(inputs(20000, "iid")).sum(1)
    share = 100.0 * np.bincount(count, minlength=8) / len(count)
    np.testing.assert_allclose(share[:6], [12, 36, 35, 14, 2, 0.1], atol=1.2)
    assert share[6:].sum() < 0.1


def test_sampling_is_deterministic_nested_and_split_by_stream() -> None:
    x, target = cooling.sample(300, "iid", 2)
    again, target_again = cooling.sample(300, "iid", 2)
    assert x.dtype == target.dtype == torch.float64
    assert x.shape == (300, 7)
    assert target.shape == (300, 3)
    assert torch.equal(x, again)
    assert torch.equal(target, target_again)
    more, target_more = cooling.sample(500, "iid", 2)
    assert torch.equal(more[:300], x)
    torch.testing.assert_close(target_more[:300], target, rtol=0, atol=1e-12)
    assert not torch.equal(cooling.sample(300, "train", 2)[0], x)
    assert not torch.equal(cooling.sample(300, "iid", 3)[0], x)
    assert cooling.sample(0)[1].shape == (0, 3)
    with pytest.raises(ValueError, match="split must be one of"):
        cooling.sample(3, "test")
    with pytest.raises(ValueError, match="negative"):
        cooling.sample(-1)


@pytest.mark.parametrize("split", ["iid", "ood"])
def test_test_sets_are_feasible_and_noise_is_small(split: str) -> None:
    x, target = cooling.sample(cooling.TEST_SIZE, split, cooling.TEST_SEEDS[split])
    x, target = x.numpy(), target.numpy()
    y = cooling.optimal(x)
    assert np.isfinite(y).all()
    for i in range(0, len(x), 10):
        assert satisfies(y[i], cooling.load(x[i : i + 1])[0], cooling.active(x[i : i + 1])[0])
    noise = target - y
    assert abs(noise.mean()) < 0.001
    assert noise.std() == pytest.approx(K.sigma, rel=0.05)


def hand_objective(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient g at 0 and curvature h (diagonal) of the controller's objective at one x."""
    reference = np.array(
        [0.20 + 0.60 * x[2], 0.05 + 0.20 * x[2] + 0.02 * max(0.0, x[0] - 20.0), 0.20]
    )
    return 0.30 * x[3] * POWER - 2.0 * reference, np.full(3, 2.0)


@pytest.mark.parametrize("split", ["iid", "ood"])
def test_oracle_satisfies_the_kkt_conditions_of_its_selection(split: str) -> None:
    x = inputs(150, split)
    y = cooling.optimal(x)
    for row, point, load, active in zip(x, y, cooling.load(x), cooling.active(x), strict=True):
        g, h = hand_objective(row)
        best = np.inf
        for a, b in selections(load, active):
            residual = a @ point - b
            if residual.max() > 1e-9:
                continue
            # Stationarity with multipliers >= 0 on the tight rows only, hence complementarity.
            best = min(best, nnls(a[residual > -1e-9].T, -(g + h * point))[1])
        assert best < 1e-9


def highs_qp(g: np.ndarray, h: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Optimal value of a QP by HiGHS, infinite if infeasible."""
    # HiGHS' QP solver needs to be told apart from an infeasible problem: ask its LP first.
    if linprog(np.zeros(3), A_ub=a, b_ub=b, bounds=[(0, 1)] * 3).status != 0:
        return np.inf
    rows, columns = a.shape
    model = highspy.HighsModel()
    model.lp_.num_col_, model.lp_.num_row_ = columns, rows
    model.lp_.col_cost_ = g
    model.lp_.col_lower_, model.lp_.col_upper_ = np.zeros(columns), np.ones(columns)
    model.lp_.row_lower_, model.lp_.row_upper_ = np.full(rows, -highspy.kHighsInf), b
    model.lp_.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.lp_.a_matrix_.start_ = np.arange(rows + 1) * columns
    model.lp_.a_matrix_.index_ = np.tile(np.arange(columns), rows)
    model.lp_.a_matrix_.value_ = a.reshape(-1)
    model.hessian_.dim_ = columns
    model.hessian_.format_ = highspy.HessianFormat.kTriangular
    model.hessian_.start_ = np.arange(columns + 1)
    model.hessian_.index_ = np.arange(columns)
    model.hessian_.value_ = h
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("qp_regularization_value", 0.0)
    solver.passModel(model)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().objective_function_value


@pytest.mark.parametrize("split", ["iid", "ood"])
def test_oracle_equals_highs_over_all_selections(split: str) -> None:
    x = inputs(15, split, seed=11)
    y = cooling.optimal(x)
    assert cooling.active(x).sum(1).max() >= 3
    for row, point, load, active in zip(x, y, cooling.load(x), cooling.active(x), strict=True):
        g, h = hand_objective(row)
        value = g @ point + 0.5 * h @ point**2
        assert value == pytest.approx(
            min(highs_qp(g, h, a, b) for a, b in selections(load, active)), abs=1e-7
        )
        # The model's own objective differs from the expanded one by a constant only.
        shifted = cooling.objective(row[None], point[None])[0]
        other = cooling.objective(row[None], WITNESS[None])[0]
        assert shifted - other == pytest.approx(
            value - (g @ WITNESS + 0.5 * h @ WITNESS**2), abs=1e-12
        )


@pytest.mark.gurobi
@pytest.mark.parametrize("split", ["iid", "ood"])
def test_oracle_equals_pyomos_big_m_by_gurobi(split: str) -> None:
    x = inputs(25, split, seed=13)
    y = cooling.optimal(x)
    gurobi = pyo.SolverFactory("gurobi_direct")
    for row, point, active in zip(x, y, cooling.active(x), strict=True):
        m = cooling.pyomo_model()
        for name, number in zip(cooling.INPUTS, row, strict=True):
            m.component(name).set_value(float(number))
        for name, on in zip(cooling.RULES, active, strict=True):
            if not on:
                rule = m.component(name)
                for disjunct in rule.disjuncts:
                    disjunct.deactivate()
                rule.deactivate()
        f_ref, c_ref, p_ref = cooling.reference(row[None])[0]
        m.cost = pyo.Objective(
            expr=K.kappa * m.price * m.power
            + K.q_f * (m.f - f_ref) ** 2
            + K.q_c * (m.c - c_ref) ** 2
            + K.q_p * (m.p - p_ref) ** 2
        )
        pyo.TransformationFactory("gdp.bigm").apply_to(m)
        # The default gap of 1e-4 would let a worse choice of disjuncts pass.
        found = gurobi.solve(m, options={"MIPGap": 0.0, "MIPGapAbs": 0.0, "Threads": 1})
        pyo.assert_optimal_termination(found)
        ours = cooling.objective(row[None], point[None])[0]
        assert ours == pytest.approx(pyo.value(m.cost), abs=1e-6)


def test_ten_thousand_targets_take_seconds() -> None:
    started = time.perf_counter()
    cooling.sample(10_000, "train", 1)
    assert time.perf_counter() - started < 10.0


def test_oracle_marks_a_sample_without_feasible_point() -> None:
    problem, right, demand = cooling._rows(K)
    rhs = np.tile(right, (2, 1))
    rhs[:, demand] = [-0.5, -2.0]
    found = cooling._oracle().solve(problem, np.full((2, 3), 0.5), rhs, np.zeros((2, 7), bool))
    assert np.isfinite(found.value[0])
    assert found.value[1] == np.inf
    assert np.isfinite(found.y[0]).all()
    assert np.isnan(found.y[1]).all()
    assert (found.disjunct == -1).all()


def lifted_cnf_value(yhat: np.ndarray, load: float, active: np.ndarray) -> float:
    """Value of the CNF relaxation: one lifted hull per active rule, sharing y and eta."""
    terms = [(r, term) for r in np.flatnonzero(active) for term in RULES[r]]
    width = 6 + 7 * len(terms)
    upper: list[np.ndarray] = []
    equal: list[np.ndarray] = []
    total: list[float] = []
    sums = {r: np.zeros((7, width)) for r in np.flatnonzero(active)}
    for block, (r, term) in enumerate(terms):
        at = 6 + 7 * block
        sums[r][:6, :6] = np.eye(6)
        sums[r][:6, at : at + 6] = -np.eye(6)
        sums[r][6, at + 6] = 1.0
        for a, b in global_rows(load) + term:
            row = np.zeros(width)
            row[at : at + 3], row[at + 6] = a, -b
            upper.append(row)
        for j, sign in itertools.product(range(3), (1.0, -1.0)):
            row = np.zeros(width)
            row[at + j], row[at + 3 + j], row[at + 6] = sign, -1.0, -sign * yhat[j]
            upper.append(row)
    for matrix in sums.values():
        equal += list(matrix)
        total += [0.0] * 6 + [1.0]
    cost = np.zeros(width)
    cost[3:6] = 1.0
    bounds = [(None, None)] * 6 + ([(None, None)] * 6 + [(0.0, None)]) * len(terms)
    return linprog(cost, np.array(upper), np.zeros(len(upper)), np.array(equal), total, bounds).fun


def dnf_value(yhat: np.ndarray, load: float, active: np.ndarray) -> float:
    """Least l1 distance over all products of disjuncts."""
    best = np.inf
    epigraph = np.block([[np.eye(3), -np.eye(3)], [-np.eye(3), -np.eye(3)]])
    for a, b in selections(load, active):
        rows = np.vstack([np.hstack([a, np.zeros_like(a)]), epigraph])
        right = np.concatenate([b, yhat, -yhat])
        found = linprog([0, 0, 0, 1, 1, 1], rows, right, bounds=[(None, None)] * 6)
        best = min(best, found.fun if found.status == 0 else np.inf)
    return best


def test_rules_interact_so_that_cnf_is_weaker_on_some_samples() -> None:
    x = inputs(150, "ood", seed=7)
    # What an untrained controller would emit: the set points, off by a tenth.
    off = 0.1 * np.random.default_rng(7).standard_normal((len(x), 3))
    yhat = np.clip(cooling.centre(x) + off, 0.0, 1.0)
    weaker = 0
    for row, load, active in zip(yhat, cooling.load(x), cooling.active(x), strict=True):
        if active.sum() < 2 or satisfies(row, load, active):
            continue
        cnf, dnf = lifted_cnf_value(row, load, active), dnf_value(row, load, active)
        assert cnf <= dnf + 1e-7
        weaker += cnf < dnf - 1e-6
    assert weaker / len(x) > 0.05


def test_build_and_network() -> None:
    rules = cooling.build()
    assert list(rules.names) == list(cooling.RULES)
    x = cooling.sample(200, "ood", 1)[0]
    y = torch.from_numpy(cooling.optimal(x.numpy()))
    assert torch.equal(rules.active(x), torch.from_numpy(cooling.active(x.numpy())))
    assert bool(rules.satisfied(y, x).all())


def test_network_is_the_papers_backbone() -> None:
    net = cooling.network()
    trained = [tuple(p.shape) for p in net.parameters() if p.requires_grad]
    assert trained == [(8, 7), (8,), (8, 8), (8,), (3, 8), (3,)]
    x = cooling.sample(20, "iid", 0)[0].float()
    assert net(x).shape == (20, 3)
    assert net[0](x).min() > -1e-6
    assert net[0](x).max() < 1 + 1e-6


def test_file_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Loaded from another working folder and without an entry in sys.modules.
    monkeypatch.chdir(tmp_path)
    alone = load_by_path(FOLDER / "model.py", "cooling_elsewhere", register=False)
    assert torch.equal(alone.sample(5)[1], cooling.sample(5)[1])
