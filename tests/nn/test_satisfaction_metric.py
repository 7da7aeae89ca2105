"""The metric against the rules themselves, over batches and over processes."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import gdpnet
from gdpnet.testing import BY_NAME, PROBLEMS, Problem
from models.cooling import model as cooling

pytest.importorskip("torchmetrics")

from gdpnet.nn import RuleSatisfaction


def numbers(metric: RuleSatisfaction) -> dict[str, float]:
    return {name: value.item() for name, value in metric.compute().items()}


def sample(n: int = 300) -> tuple[torch.Tensor, torch.Tensor]:
    """Cooling inputs and outputs, some of which break rules."""
    x, y = cooling.sample(n, "ood", seed=4)
    return x, y + 0.05 * torch.randn(n, 3, generator=torch.Generator().manual_seed(0)).double()


def test_cooling_is_counted_as_the_rules_count() -> None:
    rules = cooling.build()
    x, y = sample()
    metric = RuleSatisfaction(rules)
    for k in range(0, 300, 64):
        metric.update(y[k : k + 64], x[k : k + 64])
    found = numbers(metric)
    satisfied = rules.satisfied(y, x)
    assert 0 < satisfied.sum() < 300
    assert found["csat"] == pytest.approx(satisfied.double().mean().item())
    assert found["samples"] == found["samples_conflict_free"] == 300  # cooling never contradicts
    assert found["csat_conflict_free"] == found["csat"]
    for r, name in enumerate(rules.names):
        active = rules.active(x)[:, r]
        holds = rules.violation(y, x)[active, r] <= 1e-6
        assert found[f"samples/{name}"] == active.sum()
        assert found[f"csat/{name}"] == pytest.approx(holds.double().mean().item(), nan_ok=True)
    assert found["csat/R1_hot"] < 1.0
    assert math.isnan(found["csat/R2_cold"])  # never active here


def test_projected_outputs_satisfy_everything() -> None:
    rules = cooling.build()
    x, y = sample()
    metric = RuleSatisfaction(rules)
    metric.update(gdpnet.project(rules, y, x).y, x)
    assert numbers(metric)["csat"] == 1.0


def test_contradictions_are_left_out() -> None:
    """a > 0.5 contradicts; the output cannot help it, and is broken elsewhere once."""
    rules = BY_NAME["conflict_at_some_inputs"].rules()
    y = torch.tensor([[0.2], [0.5], [0.5], [0.2]])
    x = torch.tensor([[0.0], [0.0], [1.0], [1.0]])
    metric = RuleSatisfaction(rules)
    metric.update(y, x)
    assert numbers(metric) == {
        "csat": 0.25,
        "csat_conflict_free": 0.5,
        "samples": 4,
        "samples_conflict_free": 2,
        "csat/gap": 0.5,
        "samples/gap": 4,
        "csat/never": 0.5,
        "samples/never": 2,
    }


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_bank(problem: Problem) -> None:
    rules = problem.rules()
    metric = RuleSatisfaction(rules)
    metric.update(problem.yhat, problem.x)
    found = numbers(metric)
    count = len(problem.samples)
    p = gdpnet.project(rules, problem.yhat, problem.x, solver="milp")
    contradictory = int((p.status == gdpnet.Status.CONFLICT).sum())
    held = int(rules.satisfied(problem.yhat, problem.x).sum())
    assert found["samples_conflict_free"] == count - contradictory
    assert found["csat"] == pytest.approx(held / count)
    if contradictory < count:
        assert found["csat_conflict_free"] == pytest.approx(held / (count - contradictory))
    else:
        assert math.isnan(found["csat_conflict_free"])


def test_tolerance_and_types() -> None:
    rules = BY_NAME["midway"].rules()
    y = torch.tensor([[3.01], [4.0]], dtype=torch.float16)
    loose, tight = RuleSatisfaction(rules, tol=0.01), RuleSatisfaction(rules)
    loose.update(y)
    tight.update(y)
    assert numbers(loose)["csat"] == 0.5
    assert numbers(tight)["csat"] == 0.0


def test_no_samples_is_no_share() -> None:
    metric = RuleSatisfaction(cooling.build())
    metric.update(torch.zeros(0, 3), torch.zeros(0, 7))
    found = numbers(metric)
    assert math.isnan(found["csat"])
    assert found["samples"] == 0


def test_forward_reset_and_any_leading_shape() -> None:
    rules = cooling.build()
    x, y = sample(24)
    metric = RuleSatisfaction(rules)
    on_batch = metric(y[:12].reshape(3, 4, 3), x[:12].reshape(3, 4, 7))
    expected = rules.satisfied(y[:12], x[:12]).double().mean().item()
    assert on_batch["csat"].item() == pytest.approx(expected)
    metric.update(y[12:].requires_grad_(), x[12:])
    assert numbers(metric)["samples"] == 24
    metric.reset()
    metric.update(y[0], x[0])
    assert numbers(metric)["samples"] == 1


def test_copies() -> None:
    x, y = sample(20)
    metric = RuleSatisfaction(cooling.build())
    metric.update(y, x)
    for other in (copy.deepcopy(metric), metric.clone(), pickle.loads(pickle.dumps(metric))):
        other.update(y, x)
        assert numbers(other)["samples"] == 40
    assert numbers(metric)["samples"] == 20


def test_bad_arguments() -> None:
    with pytest.raises(
        gdpnet.errors.InputError, match=r"rules: expected a gdpnet\.RuleModel, got int"
    ):
        RuleSatisfaction(3)  # type: ignore[arg-type]
    with pytest.raises(
        gdpnet.errors.InputError, match="tol: expected a finite number >= 0, got -1"
    ):
        RuleSatisfaction(cooling.build(), tol=-1)
    with pytest.raises(gdpnet.errors.InputError, match="x: these rules have inputs"):
        RuleSatisfaction(cooling.build()).update(torch.zeros(2, 3))


# ---- several processes --------------------------------------------------------------------


def count_half(rank: int, folder: str) -> None:
    """One of two processes: an uneven share of the samples, in batches of its own."""
    torch.set_num_threads(1)
    rules = gdpnet.load_rules(f"{folder}/rules.json")
    x, y = torch.load(f"{folder}/samples.pt")
    share = slice(0, 40) if rank == 0 else slice(40, None)
    method = f"file://{folder}/rendezvous"
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=2)
    try:
        metric = RuleSatisfaction(rules)
        for some_x, some_y in zip(x[share].split(32), y[share].split(32), strict=True):
            metric.update(some_y, some_x)
        torch.save(metric.compute(), f"{folder}/found{rank}.pt")
    finally:
        dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_count_as_one(tmp_path: Path) -> None:
    rules = cooling.build()
    rules.save(tmp_path / "rules.json")
    x, y = sample(150)
    torch.save((x, y), tmp_path / "samples.pt")
    mp.spawn(count_half, args=(str(tmp_path),), nprocs=2)
    metric = RuleSatisfaction(rules)
    metric.update(y, x)
    alone = metric.compute()
    for rank in (0, 1):
        together = torch.load(tmp_path / f"found{rank}.pt")
        assert together.keys() == alone.keys()
        for name, value in alone.items():
            torch.testing.assert_close(together[name], value, rtol=0, atol=0, equal_nan=True)


# ---- optional -----------------------------------------------------------------------------


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_torchmetrics_is_not_imported_before_it_is_asked_for() -> None:
    assert run("import sys, gdpnet.nn; print('torchmetrics' in sys.modules)") == "False\n"


def test_missing_torchmetrics_names_the_extra() -> None:
    code = """
import sys
sys.modules["torchmetrics"] = None
from gdpnet.nn import RulePenalty
try:
    from gdpnet.nn import RuleSatisfaction
except ImportError as error:
    print(error)
"""
    assert "pip install 'gdpnet[metrics]'" in run(code)
