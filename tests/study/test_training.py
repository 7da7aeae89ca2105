"""Training: the same for all methods, the same every time, and the best on validation samples."""

from __future__ import annotations

import itertools
import math
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from gdpnet import Mixed, Plan
from gdpnet.derivative import sensitivity_of
from gdpnet.errors import InputError
from gdpnet.study import (
    METHODS,
    Grid,
    Protocol,
    Stage,
    StudyFolder,
    Task,
    load_model,
    method_named,
    train,
)
from gdpnet.study.training import _training
from gdpnet.study.training._objective import Objective
from gdpnet.study.training._order import planned_order
from gdpnet.study.training._run import Cell, CellRun
from gdpnet.study.training._together import Together
from gdpnet.study.training._training import Training
from tests.study._tasks import GAP, MODELS, untimed

SMALL = {"sizes": (12,), "seeds": (0,)}


@pytest.fixture
def gap(tmp_path: Path) -> Path:
    path = tmp_path / "gap.py"
    path.write_text(GAP)
    return path


@pytest.fixture(scope="module")
def cooling() -> Task:
    return Task(load_model(MODELS / "cooling"))


def test_all_methods_on_cooling_and_dnf_satisfies_everything(tmp_path: Path) -> None:
    grid = Grid(sizes=(10,), seeds=(0, 1), protocols=("paper",))
    rows = train(MODELS / "cooling", grid, tmp_path / "out")
    assert {row["method"] for row in rows} == set(METHODS)
    assert len(rows) == len(METHODS) * 2 * 2
    for row in rows:
        assert row["samples"] == row["conflict_free"] == 2000
        assert 0 < row["mse"] < math.inf
        assert row["csat"] <= row["csat_rules"]
        if row["method"] in ("dnf", "inference", "straight-through"):
            assert row["csat"] == row["csat_conflict_free"] == row["csat_rules"] == 1.0
            each = [v for k, v in row.items() if k.startswith("csat/") and not math.isnan(v)]
            assert len(each) == (6 if row["split"] == "ood" else 7)  # it is never cold out there
            assert set(each) == {1.0}
        if row["method"] == "base":
            assert row["csat"] < 0.5


def test_metrics_are_those_of_the_outputs(tmp_path: Path, cooling: Task) -> None:
    folder = StudyFolder(tmp_path)
    run = CellRun(cooling, Cell("paper", 10, 0), folder)
    network, layer, _ = run.trained(cooling.method("cnf"))
    rows = next(run.rows(["cnf"]))
    data = cooling.test("ood")
    y = layer(network(data.x), data.x).detach()
    (row,) = [row for row in rows if row["split"] == "ood"]
    assert row["mse"] == pytest.approx(float((y - data.target).square().mean()), rel=1e-12)
    assert row["csat"] == float(cooling.rules.satisfied(y, data.x).double().mean())
    violated = cooling.rules.violation(y, data.x) > 1e-6
    assert row["csat_rules"] == float((~violated.any(1)).double().mean())
    every = torch.maximum(
        cooling.rules.violation(y, data.x).amax(1), cooling.rules.global_violation(y, data.x)
    )
    assert row["violation_mean"] == pytest.approx(float(every.mean()), rel=1e-12)
    assert row["violation_most"] == float(every.max()) > 0.01
    assert row["csat_1e-02"] == float((every <= 1e-2).double().mean()) > row["csat"]
    assert row["csat_rules_1e-02"] >= row["csat_1e-02"]
    hot = cooling.rules.active(data.x)[:, 0]
    assert row["csat/R1_hot"] == float((~violated[hot, 0]).double().mean())


def test_training_is_deterministic(gap: Path, tmp_path: Path) -> None:
    grid = Grid(protocols=("short", "best"), **SMALL)
    first = train(gap, grid, tmp_path / "one")
    torch.rand(5)  # the state of torch's own generator must not matter
    second = train(gap, grid, tmp_path / "two")
    assert untimed(first) == untimed(second)
    other = train(gap, Grid(protocols=("short",), sizes=(12,), seeds=(1,)), tmp_path / "three")
    assert untimed(other) != untimed(second)


def test_methods_share_backbones_samples_and_their_order(gap: Path) -> None:
    task = Task(load_model(gap))
    stage = Stage(batch=5, rate=1e-2, epochs=3)
    seen: dict[str, list[torch.Tensor]] = {}
    for name in ("base", "penalty", "cnf", "dnf"):
        method = task.method(name)
        objective = Objective.of(task, method, task.layer(method, "qp"))

        def watched(network, data, name=name, objective=objective):
            seen.setdefault(name, []).append(data.x)
            return objective(network, data)

        network = task.new_network(4)
        assert all(
            torch.equal(a, b)
            for a, b in zip(network.parameters(), task.new_network(4).parameters(), strict=True)
        )
        Training(network, watched, stage, task.training(12, 4), None, 4, 0).run()
    for batches in seen.values():
        del batches[:2]  # before the clock starts
    assert [len(x) for x in seen["base"]] == [5, 5, 2] * 3
    for batches in seen.values():
        assert all(torch.equal(a, b) for a, b in zip(batches, seen["base"], strict=True))
    epochs = [torch.cat(seen["base"][3 * k : 3 * k + 3]) for k in range(3)]
    assert not torch.equal(epochs[0], epochs[1])
    for epoch in epochs:
        assert torch.equal(epoch.sort(0).values, task.training(12, 4).x.sort(0).values)


@pytest.mark.parametrize("together", [False, True])
def test_first_calls_are_not_in_the_times(gap: Path, together: bool) -> None:
    """What is loaded or compiled at the first call is no part of a method's cost."""
    task = Task(load_model(gap))
    objective, data, stage = Objective(task.loss), task.training(12, 0), Stage(4, 1e-2, epochs=2)
    results = []
    for pause in (0.0, 0.4):
        calls = itertools.count()

        def loss(network: Any, part: Any, pause: float = pause, calls: Any = calls) -> Any:
            time.sleep(pause if next(calls) < 2 else 0.0)
            return objective(network, part)

        loss.summed = lambda networks, loss=loss: loss  # type: ignore[attr-defined]
        if together:
            networks = [task.new_network(0), task.new_network(1)]
            training: Training = Together(networks, loss, stage, [data, data], None, [0, 1], 0)  # type: ignore[arg-type]
        else:
            training = Training(task.new_network(0), loss, stage, data, None, 0, 0)  # type: ignore[arg-type]
        training.run()
        assert next(calls) == 2 + training.total
        assert training.seconds < 0.4
        results.append(training.network.state_dict())
    # and they leave the network as it was: the same result as without.
    alone = Training(task.new_network(0), objective, stage, data, None, 0, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "_warm_up", lambda self: None)
        alone.run()
    if not together:
        results.append(alone.network.state_dict())
    for name, weight in results[0].items():
        assert all(torch.equal(weight, other[name]) for other in results)


def test_targets_that_satisfy_the_rules_are_counted(gap: Path) -> None:
    assert Task(load_model(gap)).targets_satisfied() == 1.0
    gap.write_text(GAP.replace("(x > 0.5).double(), x], 1)", "0.2 + 0.8 * x, x], 1)"))
    task = Task(load_model(gap))
    x, target = task._sample(120, split="train", seed=0)
    first, total = target[:, 0], target.sum(1)
    held = ((first <= 0.25) | (first >= 0.75)) & ((x[:, 0] < 0.5) | (total <= 0.5) | (total >= 1.5))
    assert 0 < held.sum() < 120
    assert task.targets_satisfied() == pytest.approx(float(held.double().mean()))
    gap.write_text(GAP.replace("torch.cat([(x > 0.5).double(), x], 1)", "(x[:, 0] > 0.5).long()"))
    assert Task(load_model(gap)).targets_satisfied() is None, "classes are no outputs"


def test_finetuned_methods_start_from_the_one_base(gap: Path, tmp_path: Path) -> None:
    task, folder = Task(load_model(gap)), StudyFolder(tmp_path)
    run = CellRun(task, Cell("short", 12, 0), folder, "qp")
    base, layer, _ = run.trained(task.method("base"))
    assert layer is None
    file = folder.checkpoint("short", 12, 0, "base")
    written = file.stat().st_mtime_ns
    starts = []
    training = Training.__init__

    def watched(self, network, *rest):
        starts.append([p.detach().clone() for p in network.parameters()])
        training(self, network, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "__init__", watched)
        for name in ("cnf", "dnf", "finetuned-penalty"):
            run.trained(task.method(name))
        projected, layer, _ = run.trained(task.method("inference"))
    assert len(starts) == 3
    for start in starts:
        assert all(torch.equal(a, b) for a, b in zip(start, base.parameters(), strict=True))
    assert file.stat().st_mtime_ns == written
    assert layer is not None
    pairs = zip(projected.parameters(), base.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_best_network_on_validation_samples_is_kept(gap: Path) -> None:
    task = Task(load_model(gap))
    objective = Objective(task.loss)
    data, held = task.training(20, 0), task.test("near")
    network = task.new_network(0)
    # A rate this high makes things worse after a while.
    stage = Stage(batch=4, rate=0.5, steps=40, check_every=4)
    training = Training(network, objective, stage, data, held, 0, 0)
    training.run()
    assert [step for step, _ in training.curve] == list(range(0, 41, 4))
    best = min(loss for _, loss in training.curve)
    assert best < training.curve[-1][1]
    network.eval()
    with torch.no_grad():
        assert float(objective(network, held)) == best


def test_same_steps_for_all_methods_of_the_converged_protocol(gap: Path, tmp_path: Path) -> None:
    rows = train(gap, Grid(protocols=("best",), **SMALL), tmp_path / "out")
    assert {row["train_steps"] for row in rows} == {60.0}
    rows = train(gap, Grid(protocols=("short",), **SMALL), tmp_path / "out")
    steps = {row["method"]: row["train_steps"] for row in rows}
    assert steps["base"] == steps["penalty"] == steps["inference"] == 9
    assert steps["dnf"] == steps["cnf"] == steps["finetuned-penalty"] == 9 + 12


@pytest.mark.parametrize(("share", "held"), [(0.2, 1), (0.9, 1), (0.0, 0)])
def test_of_two_samples_one_is_trained_on(share: float, held: int) -> None:
    stage = Stage(batch=1, rate=1e-3, steps=1)
    assert Protocol(stage, stage, validation=share).held_back(2) == held


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_training_goes_on_from_any_step(gap: Path, cut: int) -> None:
    task = Task(load_model(gap))
    stage = Stage(batch=3, rate=1e-2, epochs=60, check_every=0)

    class CutError(Exception):
        pass

    def fresh() -> Training:
        data = task.training(13, 0)
        return Training(task.new_network(0), Objective(task.loss), stage, data, None, 0, 1)

    whole, broken, resumed = fresh(), fresh(), fresh()
    whole.run()
    kept = {}

    def stop(training: Training) -> None:
        if training.step == (cut + 1) * _training._STRIDE:
            kept.update(training.state())
            raise CutError

    with pytest.raises(CutError):
        broken.run(stop)
    resumed.restore(kept)
    torch.rand(3)
    resumed.run()
    pairs = zip(whole.network.parameters(), resumed.network.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert resumed.step == whole.step == 300


def test_mixtures_by_name(cooling: Task) -> None:
    for name, relaxation, share in (("cnf-mixed:0.5", "cnf", 0.5), ("dnf-mixed", "dnf", 0.25)):
        keywords = cooling.method(name).projection
        assert keywords is not None
        assert keywords["relaxation"] == relaxation
        assert sensitivity_of(keywords["gradient"]) == Mixed("qp", "straight_through", share)
    with pytest.raises(InputError, match=r"method 'dnf-mixed:2': 'mixed:ALPHA' needs a number"):
        cooling.method("dnf-mixed:2")


def test_the_ends_of_a_mixture_are_the_methods_at_both_ends(tmp_path: Path) -> None:
    grid = Grid(
        methods=("dnf", "dnf-mixed:1", "straight-through", "dnf-mixed:0", "dnf-mixed"),
        sizes=(30,),
        seeds=(0,),
        protocols=("paper",),
    )
    rows = untimed(train(MODELS / "cooling", grid, tmp_path / "out"))
    error = {(row["method"], row["split"]): row["mse"] for row in rows}
    for split in ("iid", "ood"):
        assert error["dnf", split] == error["dnf-mixed:1", split]
        assert error["straight-through", split] == error["dnf-mixed:0", split]
        assert error["dnf-mixed", split] not in (error["dnf", split], error["dnf-mixed:0", split])


def test_the_planners_order_takes_one_basic_step_at_a_time(cooling: Task) -> None:
    order = planned_order(cooling.rules, cooling.training(64, 0).rule_x)
    assert order[0] == Plan.cnf()
    assert {name for c in order[-1].clusters for name in c} == set(cooling.rules.names)
    assert len(order[-1].clusters) == 1
    for k, plan in enumerate(order):
        assert sum(len(cluster) - 1 for cluster in plan.clusters) == k


def test_counted_methods_merge_so_many_rules(cooling: Task) -> None:
    layer = method_named("pdnf:3").layer(cooling.rules, None)
    assert layer._projector.relaxation == Plan.lexicographic(cooling.rules, 3)
    layer = method_named("plan:64").layer(cooling.rules, cooling.training(16, 0).rule_x)
    assert set(layer._projector.relaxation.clusters[0]) == set(cooling.rules.names)
    with pytest.raises(InputError, match="at most 6 basic steps"):
        method_named("steps:7").layer(cooling.rules, cooling.training(16, 0).rule_x)


CLASSES = """
import gdpnet
import pyomo.environ as pyo
import torch
from gdpnet.study import Method, Protocol, Stage

TEST_SEEDS = {"test": 0}
PROTOCOLS = {"own": Protocol(base=Stage(1, 3e-3, epochs=2), finetune=Stage(1, 3e-3, epochs=1))}


class Uniform(torch.nn.Module):
    def forward(self, x):
        return x.new_full((len(x), 3), 1 / 3)


LEAST_NORM = {"relaxation": "dnf", "solver": gdpnet.solve.Exact(tie="least_norm")}
METHODS = {
    "least-norm": Method("least-norm", projection=LEAST_NORM),
    "rules-only": Method("rules-only", projection={"relaxation": "dnf"}, network=Uniform),
}


def build():
    m = pyo.ConcreteModel()
    m.marker = pyo.Param(mutable=True, initialize=0.0)
    m.p = pyo.Var(range(3), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.p.values()) == 1)
    m.high = gdpnet.rule(gdpnet.any_of(m.p[0] >= 0.7, m.p[1] >= 0.7))
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.high] = m.marker >= 1
    return gdpnet.RuleModel(m, outputs=[m.p], inputs=[m.marker])


rule_inputs = [2]


def sample(n, split, seed):
    draw = torch.Generator().manual_seed(["train", "test"].index(split))
    x = 2 * torch.rand(50, 4, generator=draw)
    return x[:n], (x[:n, 2] < 1).long() * 2


def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(1))


def loss(y, target):
    return -(y.gather(1, target[:, None]) + 1e-3).log().mean()


def metrics(y, target):
    return {"accuracy": (y.argmax(1) == target).double().mean(), "loss": loss(y, target)}
"""


def test_a_file_with_its_own_loss_metrics_methods_and_protocol(tmp_path: Path) -> None:
    path = tmp_path / "classes.py"
    path.write_text(CLASSES)
    names = ("base", "dnf", "least-norm", "rules-only")
    grid = Grid(methods=names, protocols=("own",), sizes=(10,), seeds=(0,))
    rows = {row["method"]: row for row in train(path, grid, tmp_path / "out")}
    assert set(rows) == set(names)
    for row in rows.values():
        assert row["split"] == "test"
        assert row["samples"] == 50  # as many as there are
        assert list(row)[5:7] == ["accuracy", "loss"]
    assert rows["dnf"]["csat"] == rows["least-norm"]["csat"] == rows["rules-only"]["csat"] == 1.0
    assert rows["rules-only"]["loss"] > 0
    assert math.isnan(rows["rules-only"]["train_seconds"])
