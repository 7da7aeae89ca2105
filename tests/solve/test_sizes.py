"""Rules too large for dense programs: memory by nonzeros, and MILP from the start."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.derivative.qp import dnf
from gdpnet.errors import WorkLimitWarning
from gdpnet.ir.compressed import Coefficients, Compressed
from gdpnet.solve.exact import backend as exact

MEGABYTES = 250  # above torch; dense tables of this size alone are 65 MB each, and there were many

LARGE = """
import torch

def most():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024

before = most()
import numpy as np
import pyomo.environ as pyo
from pyomo.gdp import Disjunction
import gdpnet

torch.set_num_threads(1)
d, coupled = 3000, COUPLED
m = pyo.ConcreteModel()
m.y = pyo.Var(range(d), bounds=(0, 1))
m.gap = Disjunction(range(0, d, 3), rule=lambda m, j: [[m.y[j] <= 0.3], [m.y[j] >= 0.6]])
if coupled:
    m.total = pyo.Constraint(expr=sum(m.y.values()) <= 0.5 * d)
    m.chain = pyo.Constraint(range(d - 1), rule=lambda m, j: m.y[j] - m.y[j + 1] <= 0.8)
rules = gdpnet.RuleModel(m, outputs=[m.y])
yhat = torch.from_numpy(np.random.default_rng(0).uniform(0, 1, (1, d))).requires_grad_()
p = gdpnet.project(rules, yhat, gradient="vertex", threads=1)
p.y.sum().backward()
assert gdpnet.Status(int(p.status[0])).name == "PROJECTED"
assert bool(rules.satisfied(p.y).all())
print(p.info.solver, most() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
@pytest.mark.parametrize(("coupled", "by"), [(True, "milp"), (False, "exact")])
def test_memory_grows_with_nonzeros(coupled: bool, by: str) -> None:
    code = LARGE.replace("COUPLED", str(coupled))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    solver, taken = done.stdout.split()
    assert solver == by
    assert float(taken) < MEGABYTES


def problem(d: int = 12) -> tuple[gdpnet.RuleModel, torch.Tensor]:
    """Gaps under one sum."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.y.values()) == 0.4 * d)
    m.gap = Disjunction(range(d), rule=lambda m, j: [[m.y[j] <= 0.35], [m.y[j] >= 0.6]])
    yhat = 0.4 + 0.2 * np.random.default_rng(2).normal(size=(6, d))
    yhat[0, : d // 2], yhat[0, d // 2 :] = 0.6, 0.2  # which satisfies everything
    return gdpnet.RuleModel(m, outputs=[m.y]), torch.from_numpy(yhat)


def test_what_is_too_large_for_the_engine_is_milps_from_the_start(monkeypatch) -> None:
    rules, yhat = problem()
    engine = gdpnet.project(rules, yhat)
    assert engine.info.solver == "exact"
    monkeypatch.setattr(exact, "MOST_COLUMNS", 5)
    again, _ = problem()
    milp = gdpnet.project(again, yhat)
    assert milp.info.solver == "milp"
    assert milp.status.tolist() == engine.status.tolist()
    assert Status(int(milp.status[0])) is Status.SATISFIED
    assert torch.equal(milp.y[0], yhat[0])
    assert torch.allclose(milp.distance, engine.distance, atol=1e-9, rtol=0)
    # What needs the engine still gets it.
    assert gdpnet.project(again, yhat, norm="l2").info.solver == "exact"
    assert gdpnet.project(again, yhat.float()).status.tolist() == engine.status.tolist()


def test_qp_without_the_engine_is_the_vertex_and_says_so(monkeypatch) -> None:
    rules, yhat = problem()
    monkeypatch.setattr(exact, "MOST_COLUMNS", 5)
    gradients = []
    for gradient in ("vertex", "qp"):
        given = yhat.clone().requires_grad_()
        p = gdpnet.project(rules, given, gradient=gradient)
        if gradient == "vertex":
            (p.y * torch.arange(12.0)).sum().backward()
        else:
            with pytest.warns(WorkLimitWarning, match="'vertex'"):
                (p.y * torch.arange(12.0)).sum().backward()
            assert p.info.capped is not None
            assert p.info.capped.any()
        gradients.append(given.grad)
    assert torch.equal(*gradients)


def test_qp_ends_by_counted_work(monkeypatch) -> None:
    rules, yhat = problem()
    monkeypatch.setattr(dnf, "WORK", 10.0)
    given = yhat.clone().requires_grad_()
    p = gdpnet.project(rules, given, gradient="qp")
    with pytest.warns(WorkLimitWarning, match="more work than it is given"):
        p.y[:, 0].sum().backward()
    assert p.info.capped is not None
    capped = p.info.capped
    assert capped.any()
    assert not capped[0]  # nothing was to be solved there
    other = yhat.clone().requires_grad_()
    gdpnet.project(rules, other, gradient="vertex").y[:, 0].sum().backward()
    assert torch.equal(given.grad[capped], other.grad[capped])


def test_answers_of_milp_depend_on_nothing_but_the_sample() -> None:
    rules, yhat = problem()
    solver = gdpnet.solve.Exact(node_limit=1)
    together = gdpnet.project(rules, yhat, solver=solver, threads=1)
    assert "milp" in together.info.solver
    backwards = gdpnet.project(rules, yhat.flip(0), solver=solver, threads=2)
    assert torch.equal(together.y, backwards.y.flip(0))
    assert torch.equal(together.distance, backwards.distance.flip(0))
    for s in range(len(yhat)):
        alone = gdpnet.project(rules, yhat[s : s + 1], solver=solver)
        assert torch.equal(alone.y[0], together.y[s])


def test_a_table_by_nonzeros_says_what_a_dense_one_does(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(30, 40)) * (rng.random((30, 40)) < 0.05)
    matrix[[3, 29]] = 0.0
    rows = Compressed.of(matrix)
    z = rng.normal(size=(5, 40))
    assert np.array_equal(rows.dense(), matrix)
    assert np.allclose(rows.times(z), z @ matrix.T, atol=1e-14)
    assert np.allclose(rows.times(z[0]), matrix @ z[0], atol=1e-14)
    assert np.array_equal(rows.largest, np.abs(matrix).max(1))
    some = [4, 3, 29, 0]
    assert np.array_equal(rows.take(some).dense(), matrix[some])
    assert np.array_equal(rows.above(rows.take(some)).dense(), np.vstack([matrix, matrix[some]]))
    column = rng.normal(size=30) * (rng.random(30) < 0.5)
    assert np.array_equal(rows.with_column(column).dense(), np.column_stack([matrix, column]))
    given = rng.normal(size=(2, 40))
    filled = rows.filled(np.array([1, 5]), given).dense()
    expected = matrix.copy()
    for k, i in enumerate((1, 5)):
        expected[i] = np.where(matrix[i] != 0.0, given[k], 0.0)
    assert np.array_equal(filled, expected)
    dense = Coefficients(rows)
    monkeypatch.setattr(Coefficients, "LARGE", 0)
    sparse = Coefficients(rows)
    assert dense.small
    assert not sparse.small
    at = torch.from_numpy(z).requires_grad_()
    assert torch.allclose(sparse.times(at), dense.times(at), atol=1e-14)
    slopes = [torch.autograd.grad(one.times(at).square().sum(), at)[0] for one in (sparse, dense)]
    assert torch.allclose(*slopes, atol=1e-12)
    assert torch.equal(sparse.dense, dense.dense)
    index = torch.tensor([7, 3])
    assert torch.equal(sparse.of_rows(index), dense.of_rows(index))
