"""norm="l2" in comparisons, files, trainings, pictures and on cells."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import gdpnet
from gdpnet.errors import InputError
from gdpnet.study import Grid, compare, load_model, project_file, train
from gdpnet.study.batches import DISTANCE
from tests.cli._calls import MODELS, run
from tests.study._tasks import GAP


@pytest.fixture(scope="module")
def cooling() -> tuple[gdpnet.RuleModel, torch.Tensor, torch.Tensor]:
    loaded = load_model(MODELS / "cooling")
    x, y = loaded.sample(80, split="ood", seed=1)  # type: ignore[misc]
    noise = torch.randn(80, 3, generator=torch.Generator().manual_seed(0)).double()
    return loaded.build(), x, y + 0.2 * noise


# ---- comparisons ----------------------------------------------------------------------------


def test_values_of_different_norms_share_no_column(cooling: tuple) -> None:
    rules, x, yhat = cooling
    tables = {n: compare(rules, yhat, x, "dnf", norm=n).table for n in ("l1", "l2")}
    measured = {name for name in tables["l1"] if "value" in name or "gap" in name or "dist" in name}
    assert measured == {"value_mean", "distance_mean", "gap_mean", "gap_max"}
    assert measured.isdisjoint(tables["l2"])
    p = gdpnet.project(rules, yhat, x, norm="l2")
    row = tables["l2"].loc[0]
    assert row["norm"] == "l2"
    assert row["squared_value_mean"] == pytest.approx(float((p.distance**2).mean()))
    assert row["l2_distance_mean"] == pytest.approx(float(p.distance.mean()))
    assert row["squared_gap_max"] == pytest.approx(0.0, abs=1e-9)
    assert row["csat"] == 1.0


def test_what_does_not_know_it_has_a_note(cooling: tuple) -> None:
    rules, x, yhat = cooling
    found = compare(rules, yhat, x, "dnf,dnf:milp", norm="l2")
    one, milp = found.measured
    assert not one.note
    assert milp.note.startswith("norm: solver MILP")
    assert "mean value, squared distance" in repr(found)
    assert "Linear program of a sample" not in repr(found)
    with pytest.raises(InputError, match="None of the relaxations can be had"):
        compare(rules, yhat, x, "dnf:milp", norm="l2")


def test_the_page_speaks_of_squares(cooling: tuple, tmp_path: Path) -> None:
    rules, x, yhat = cooling
    text = compare(rules, yhat, x, "dnf", norm="l2").to_html(tmp_path / "page.html").read_text()
    assert "a lower bound on the squared distance" in text
    assert "<h2>Sizes" not in text


def test_compare_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    options = ("--samples", 30, "--relaxations", "dnf", "--csv", file)
    result = run("compare", MODELS / "cooling", "--norm", "l2", *options)
    assert result.exit_code == 0, result.output
    assert "Exact l2 distance" in result.stdout
    assert "squared_value_mean" in pd.read_csv(file)
    assert run("compare", MODELS / "cooling", "--norm", "linf", *options).exit_code == 2


# ---- files ----------------------------------------------------------------------------------


def table_of(cooling: tuple, path: Path) -> Path:
    rules, x, yhat = cooling
    columns = dict(zip(rules.input_names, x.T.numpy(), strict=True))
    columns |= dict(zip(rules.output_names, yhat.T.numpy(), strict=True))
    pd.DataFrame(columns).to_parquet(path)
    return path


def test_files(cooling: tuple, tmp_path: Path) -> None:
    rules, x, yhat = cooling
    source, target = table_of(cooling, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    result = run("project", MODELS / "cooling", source, target, "--norm", "l2", "--chunk", 32)
    assert result.exit_code == 0, result.output
    found = pd.read_parquet(target)
    p = gdpnet.project(rules, yhat, x, norm="l2")
    names = [f"{name}_projected" for name in rules.output_names]
    np.testing.assert_array_equal(found[names].to_numpy(), p.y.numpy())
    np.testing.assert_array_equal(found[DISTANCE + "_l2"].to_numpy(), p.distance.numpy())
    assert DISTANCE not in found


def test_a_norm_that_is_not_known_touches_no_file(cooling: tuple, tmp_path: Path) -> None:
    source, target = table_of(cooling, tmp_path / "in.parquet"), tmp_path / "out.parquet"
    with pytest.raises(InputError, match="norm: solver MILP"):
        project_file(cooling[0], source, target, norm="l2", solver="milp")
    assert list(tmp_path.iterdir()) == [source]


# ---- training -------------------------------------------------------------------------------

SHORT = ("--sizes", 12, "--seeds", 0, "--protocols", "short")


@pytest.fixture
def gap(tmp_path: Path) -> Path:
    path = tmp_path / "gap.py"
    path.write_text(GAP)
    return path


def test_training(gap: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    vertex = ("--methods", "base,dnf", "--gradient", "vertex", *SHORT)
    result = run("train", gap, "--out", out, "--norm", "l2", *vertex)
    assert result.exit_code == 0, result.output
    assert "\ndnf " in result.stdout
    study = json.loads((out / "study.json").read_text())
    assert (study["norm"], study["gradient"]) == ("l2", "vertex")
    assert "Euclidean (l2) norm" in (out / "report.html").read_text()
    # Another norm is another study.
    other = run("train", gap, "--out", out, *vertex)
    assert other.exit_code == 2
    assert "norm differ" in other.stderr


def test_methods_that_do_not_know_it_are_refused_before_anything_is_written(
    gap: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    own = 'Method("by-milp", projection={"relaxation": "dnf", "solver": "milp"})'
    imported = "\nfrom gdpnet.study import Method\n"
    gap.write_text(GAP + f"{imported}METHODS = {{'by-milp': {own}}}\n")
    named = ("--methods", "base,by-milp", "--gradient", "vertex")
    result = run("train", gap, "--out", out, "--norm", "l2", *named, *SHORT)
    assert result.exit_code == 2
    assert "norm: solver MILP" in result.stderr
    assert not out.exists()


def test_studies_of_before_go_on(gap: Path, tmp_path: Path) -> None:
    grid = Grid(methods=("dnf",), sizes=(12,), seeds=(0,), protocols=("short",))
    first = train(gap, grid, tmp_path / "out")
    file = tmp_path / "out" / "study.json"
    study = json.loads(file.read_text())
    del study["norm"]
    file.write_text(json.dumps(study))
    assert train(gap, grid, tmp_path / "out") == first
    with pytest.raises(InputError, match="norm: expected one of 'l1', 'l2'"):
        Grid(norm="linf")


def test_what_is_trained_is_the_projection_in_that_norm(gap: Path) -> None:
    from gdpnet.study.training._task import Task

    task = Task(load_model(gap), "l2")
    layer = task.layer(task.method("dnf"), "vertex")
    assert "norm='l2'" in repr(layer)


# ---- pictures -------------------------------------------------------------------------------


def test_a_region_with_projections() -> None:
    import pyomo.environ as pyo

    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.slope = gdpnet.rule(gdpnet.any_of(m.y[1] + 2 * m.y[2] <= 8, m.y[1] >= 9))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    for norm, wanted in (("l1", [5.0, 1.5]), ("l2", [4.0, 2.0])):
        ax = gdpnet.plot.plot_region(rules, [5.0, 4.0], norm=norm)
        ends = [a.xy for a in ax.texts if getattr(a, "arrow_patch", None) is not None]
        assert any(np.allclose(end, wanted) for end in ends), ends
    labels = ax.get_legend_handles_labels()[1]
    assert "projection, nearest in l2" in labels
    with pytest.raises(InputError, match="got 'linf'"):
        gdpnet.plot.plot_region(rules, [5.0, 4.0], norm="linf")
