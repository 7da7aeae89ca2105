"""PBMC3k: data, rules, loss, metrics, the rules alone, and a small study.

What needs the data itself is skipped unless GDPNET_DATA names it; everything else runs on the cells
that scanpy brings along.
"""

from __future__ import annotations

import json
import re
import urllib.error
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from gdpnet.bio import marker_statistics
from gdpnet.errors import ModelFileError
from gdpnet.study import find_data, load_model
from gdpnet.study.training import Grid, Task, train

FOLDER = Path(__file__).resolve().parents[2] / "models" / "pbmc"
try:
    GIVEN = find_data("pbmc3k", "pbmc3k_processed.h5ad")
except FileNotFoundError:
    GIVEN = None

needs_data = pytest.mark.skipif(GIVEN is None, reason="GDPNET_DATA does not name PBMC3k")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The model on the cells that scanpy brings along."""
    monkeypatch.setenv("GDPNET_DATA", "pbmc68k_reduced")
    monkeypatch.delenv("GDPNET_RULES", raising=False)
    return load_model(FOLDER).module


@pytest.fixture
def pbmc(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The model on PBMC3k."""
    monkeypatch.delenv("GDPNET_RULES", raising=False)
    return load_model(FOLDER).module


# ---- rules -------------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize(
    ("name", "drafted"),
    [("A", "A_tutorial_log"), ("B", "B_hvg_scaled"), ("C", "C_loose_hvg_scaled")],
)
@pytest.mark.parametrize("rho", [0.5, 0.6])
def test_statistics_are_those_drafted_with_the_rules(
    pbmc: ModuleType, name: str, drafted: str, rho: float
) -> None:
    assert GIVEN is not None
    file = GIVEN.with_name("marker_rules_and_stats.json")
    if not file.is_file():
        pytest.skip("no drafted statistics beside the data")
    draft = json.loads(file.read_text())
    said = [(tuple(r["genes"]), tuple(r["classes"]), r["tau"]) for r in draft["rulesets"][drafted]]
    own = pbmc.RULE_SETS[name].markers
    assert [(m.genes, m.classes, m.tau) for m in own] == said
    assert tuple(draft["classes"]) == pbmc.CLASSES

    expected = draft["stats"][f"{drafted}|rho={rho}"]
    found = marker_statistics(pbmc.cells(), pbmc.markers(name, rho), "louvain")
    np.testing.assert_allclose(found.rules["active"], expected["active_frac_per_rule"], atol=5e-4)
    np.testing.assert_allclose(found.rules["precision"], expected["rule_precision"], atol=5e-4)
    assert list(found.active_counts) == expected["n_active_hist"]
    assert found.contradictory == expected["contradictory"]
    # The draft counts cells with an active rule only.
    none = found.active_counts[0]
    satisfied = round(found.truth_satisfies * found.cells) - none
    assert satisfied / (found.cells - none) == pytest.approx(expected["onehot_truth_satisfies"])


@needs_data
@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_statistics_are_those_of_the_readme(pbmc: ModuleType, name: str) -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    section = text.split(f"### {name}", 1)[1].split("###", 1)[0]
    rows = re.findall(r"^\| `([^`]+)` \|.*\| ([\d.]+) \| ([\d.]+) \|$", section, re.MULTILINE)
    found = marker_statistics(pbmc.cells(), pbmc.markers(name), "louvain")
    assert [row[0] for row in rows] == list(found.rules.index)
    for (_, active, precision), values in zip(rows, found.rules.to_numpy(), strict=True):
        np.testing.assert_allclose([float(active), float(precision)], values, atol=5e-4)
    summary = re.search(rf"^\| {name} \| (.*) \|$", text, re.MULTILINE)
    assert summary is not None
    numbers = [float(v) for v in re.findall(r"[\d.]+", summary[1])]
    at_06 = marker_statistics(pbmc.cells(), pbmc.markers(name, 0.6), "louvain").contradictory
    expected = [
        len(found.rules),
        found.no_active,
        found.two_or_more,
        found.contradictory,
        at_06,
        found.truth_satisfies,
    ]
    np.testing.assert_allclose(numbers, expected, atol=5e-4)


@needs_data
def test_cells_and_splits_of_pbmc3k(pbmc: ModuleType) -> None:
    assert pbmc.cells().shape == (2638, 1838)
    train_rows, test_rows = pbmc.split_rows()
    assert len(test_rows) == 264
    assert sorted([*train_rows, *test_rows]) == list(range(2638))
    assert pbmc.sizes() == (12, 24, 119, 237, 475)
    x, target = pbmc.sample(10**6, "test")
    assert x.shape == (264, 1838 + 9)
    assert torch.bincount(target).tolist() == [114, 48, 34, 32, 15, 15, 4, 2]


def test_rules_leave_out_genes_that_were_not_measured(small: ModuleType) -> None:
    names = [marker.name for marker in small.markers("C").markers]
    assert "PPBP" not in names
    assert "CD79A+CD79B" in names
    assert [m.name for m in small.markers("A").markers][1] == "LYZ"
    with pytest.raises(ValueError, match="expected one of A, B, C, got 'D'"):
        small.markers("D")


def test_the_rule_set_of_the_environment(
    small: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GDPNET_RULES", "A")
    assert small.build().fingerprint == small.build("A").fingerprint != small.build("C").fingerprint
    x, _ = small.sample(5, "train")
    assert small.rule_inputs(x).shape == (5, len(small.build().names))


# ---- data --------------------------------------------------------------------------------


def test_samples_are_nested_and_apart(small: ModuleType) -> None:
    x, target = small.sample(40, "train", seed=1)
    assert x.shape == (40, 765 + len(small.build().names))
    assert x.dtype == torch.float64
    assert target.dtype == torch.int64
    few, _ = small.sample(10, "train", seed=1)
    assert torch.equal(few, x[:10])
    assert not torch.equal(few, small.sample(10, "train", seed=2)[0])
    everything, _ = small.sample(10**6, "train", seed=0)
    test, true = small.sample(10**6, "test")
    assert len(everything) + len(test) == small.cells().n_obs == 687
    assert not {row.tobytes() for row in everything.numpy()} & {r.tobytes() for r in test.numpy()}
    inputs = small.markers().expression(small.cells())
    assert small.rule_inputs(test).numpy().tolist() == inputs[small.split_rows()[1]].tolist()
    names = small.cells().obs["louvain"].to_numpy()[small.split_rows()[1]]
    assert [small.CLASSES[k] for k in true] == list(names)
    with pytest.raises(ValueError, match="split must be train or test"):
        small.sample(3, "iid")


def test_which_cells_were_used_is_always_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import anndata
    import scanpy

    monkeypatch.setenv("GDPNET_DATA", "pbmc68k_reduced")
    module = load_model(FOLDER).module
    kept = module.cells()
    assert "687 cells x 765 genes from pbmc68k_reduced" in capsys.readouterr().err

    file = tmp_path / "pbmc3k" / "pbmc3k_processed.h5ad"
    file.parent.mkdir()
    kept.write_h5ad(file)
    for where in (tmp_path, file.parent, file):
        monkeypatch.setenv("GDPNET_DATA", str(where))
        assert load_model(FOLDER).module.cells().shape == kept.shape
        assert f"{file} (GDPNET_DATA)" in capsys.readouterr().err

    def offline() -> anndata.AnnData:
        raise urllib.error.URLError("no network")

    monkeypatch.delenv("GDPNET_DATA")
    monkeypatch.setattr(scanpy.datasets, "pbmc3k_processed", offline)
    assert load_model(FOLDER).module.cells().n_obs == 687
    told = capsys.readouterr().err
    assert "pbmc68k_reduced" in told
    assert "no network" in told
    monkeypatch.setattr(scanpy.datasets, "pbmc3k_processed", lambda: kept)
    assert load_model(FOLDER).module.cells() is kept
    assert "scanpy.datasets.pbmc3k_processed()" in capsys.readouterr().err


def test_data_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GDPNET_DATA", str(tmp_path))
    with pytest.raises(ModelFileError, match=r"neither .*pbmc3k_processed.h5ad .*pbmc68k_reduced"):
        load_model(FOLDER).build()


# ---- learning ----------------------------------------------------------------------------


def test_the_network_is_the_papers(small: ModuleType) -> None:
    network = small.network()
    shapes = [tuple(p.shape) for p in network.parameters()]
    assert shapes == [(8, 765), (8,), (8, 8), (8,)]
    limit = (6 / (765 + 8)) ** 0.5
    assert 0.9 * limit < network.hidden.weight.abs().max().item() <= limit
    x, _ = small.sample(7, "train")
    y = network.double()(x)
    assert y.shape == (7, 8)
    torch.testing.assert_close(y.sum(1), torch.ones(7, dtype=torch.float64))
    changed = x.clone()
    changed[:, 765:] += 1.0  # the network does not see the rules' inputs
    assert torch.equal(network(changed), y)


def test_the_loss_is_finite_with_a_gradient_at_zero(small: ModuleType) -> None:
    y = torch.tensor([[0.0, 1.0, 0, 0, 0, 0, 0, 0], [1.0, 0, 0, 0, 0, 0, 0, 0]], requires_grad=True)
    value = small.loss(y, torch.tensor([0, 0]))
    value.backward()
    assert value.isfinite()
    assert y.grad is not None
    assert y.grad.isfinite().all()
    assert y.grad[0, 0] < -1.0  # the true class is pulled up
    assert (y.grad[:, 1:] == 0).all()
    inner = torch.softmax(torch.randn(50, 8, dtype=torch.float64), 1)
    target = torch.randint(8, (50,))
    usual = torch.nn.functional.nll_loss(inner.log(), target)
    torch.testing.assert_close(small.loss(inner, target), usual, rtol=2e-2, atol=0)


def test_the_loss_of_projected_probabilities_has_no_nan(small: ModuleType) -> None:
    task = Task(load_model(FOLDER))
    data = task.training(100, 0)
    network = task.new_network(0)
    with torch.no_grad():
        network.classes.weight *= 100.0  # as certain as can be, and often wrong
    for name in ("dnf", "cnf", "dnf-least-norm", "dnf-nearest", "dnf-relaxed"):
        network.zero_grad()
        layer = task.layer(task.method(name))
        y = layer(network(data.x), data.rule_x)
        value = task.loss(y, data.target)
        value.backward()
        assert (y.detach().gather(1, data.target[:, None]) < 1e-12).any()
        assert value.isfinite()
        assert all(p.grad.isfinite().all() for p in network.parameters())
        assert any((p.grad != 0).any() for p in network.parameters())


def test_metrics_are_those_of_scikit_learn(small: ModuleType) -> None:
    random = np.random.default_rng(0)
    for classes in (8, 5):  # the second without some classes
        target = random.integers(classes, size=300)
        y = torch.from_numpy(random.dirichlet(np.full(8, 0.3), size=300))
        y[:, 7] = 0.0  # never predicted
        label = y.argmax(1).numpy()
        found = small.metrics(y, torch.from_numpy(target))
        every = {"labels": range(8), "average": "macro", "zero_division": 0}
        assert found["accuracy"] == pytest.approx(accuracy_score(target, label))
        assert found["macro_f1"] == pytest.approx(f1_score(target, label, **every))
        assert found["macro_precision"] == pytest.approx(precision_score(target, label, **every))
        assert found["macro_recall"] == pytest.approx(recall_score(target, label, **every))
        assert found["ties"] == 0.0


def test_shared_labels_are_what_a_fair_draw_gives(small: ModuleType) -> None:
    y = torch.zeros(2, 8, dtype=torch.float64)
    y[0, [1, 3]] = torch.tensor([0.5, 0.5 - 1e-9], dtype=torch.float64)
    y[1, 2] = 1.0
    found = small.metrics(y, torch.tensor([3, 2]))
    assert found["accuracy"] == 0.75
    assert found["ties"] == 0.5
    table = small.confusion(y, torch.tensor([3, 2]))
    assert table[3].tolist() == [0, 0.5, 0, 0.5, 0, 0, 0, 0]


def test_rules_alone_satisfy_what_can_be_satisfied(small: ModuleType) -> None:
    task = Task(load_model(FOLDER))
    data = task.test("test")
    found = [task.new_network(seed, task.method("rules").network)(data.x) for seed in (0, 0, 1)]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    free = task.conflict_free("test")
    assert data.rule_x is not None
    assert task.rules.satisfied(found[0], data.rule_x)[free].all()
    torch.testing.assert_close(found[0].sum(1), torch.ones(len(data), dtype=torch.float64))


def test_rules_alone_draw_every_feasible_choice(small: ModuleType) -> None:
    markers = small.markers("C")
    names = [m.name for m in markers.markers]
    x = torch.full((4000, len(names)), -1.0, dtype=torch.float64)
    x[:, [names.index("LTB"), names.index("NKG7")]] = 1.0
    torch.manual_seed(0)
    y = small.RulesOnly(markers)(x)
    sets = {tuple(np.flatnonzero(row)) for row in y.numpy()}
    index = {name: k for k, name in enumerate(small.CLASSES)}
    ltb, nkg7 = (markers.markers[names.index(n)].classes for n in ("LTB", "NKG7"))
    assert sets == {tuple(sorted({index[a], index[b]})) for a in ltb for b in nkg7}


# ---- the study ---------------------------------------------------------------------------


def test_a_small_study(small: ModuleType, tmp_path: Path) -> None:
    methods = ("base", "penalty", "finetuned-penalty", "inference", "inference-least-norm", "cnf")
    methods += ("cnf-relaxed", "dnf", "dnf-relaxed", "dnf-least-norm", "dnf-nearest", "rules")
    grid = Grid(methods=methods, sizes=(12,), seeds=(0, 1), protocols=("smoke",))
    rows = train(FOLDER, grid, tmp_path / "study", together=True)
    assert len(rows) == len(methods) * 2
    by_method: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
        for name in ("accuracy", "macro_f1", "macro_precision", "macro_recall", "csat"):
            assert 0.0 <= row[name] <= 1.0
    exact = ("inference", "inference-least-norm", "dnf", "dnf-least-norm", "dnf-nearest", "rules")
    for name in exact:
        assert all(row["csat_conflict_free"] == 1.0 for row in by_method[name]), name
    for row, base in zip(by_method["inference"], by_method["base"], strict=True):
        assert base["csat_conflict_free"] < 1.0
        assert row["train_steps"] == base["train_steps"] == 240
