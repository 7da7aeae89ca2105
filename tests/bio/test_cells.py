"""Rules applied to AnnData: what is written, what stays as it was, and what is refused."""

import copy
import pickle
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

import gdpnet
from gdpnet.bio import MarkerRule, apply_rules, explain_cells, marker_rules, marker_statistics
from gdpnet.bio._expression import Source, mean_expression
from gdpnet.errors import ConflictError, InputError

CLASSES = ["B", "NK", "T"]
GENES = ["MS4A1", "CD79A", "NKG7", "GNLY", "LTB", "CST3"]
MARKERS = [
    MarkerRule(["MS4A1", "CD79A"], "B", tau=1.0),
    MarkerRule(["NKG7", "GNLY"], ["NK", "T"], tau=1.0),
    MarkerRule("LTB", ["T", "B"], tau=2.0),
]
CELLS = 40
WRITTEN = {"gdpnet_proba", "gdpnet_label", "gdpnet_status"}


def expression(seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.gamma(1.0, 1.5, size=(CELLS, len(GENES))).astype(np.float32)
    values[random.random(values.shape) < 0.5] = 0.0
    return values


def proba(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(len(CLASSES), 0.5), size=CELLS)


def make(matrix: Any = None) -> anndata.AnnData:
    matrix = expression() if matrix is None else matrix
    names = [f"cell{i}" for i in range(CELLS)]
    random = np.random.default_rng(2)
    adata = anndata.AnnData(
        matrix,
        obs=pd.DataFrame({"type": pd.Categorical(random.choice(CLASSES, CELLS))}, index=names),
        var=pd.DataFrame({"symbol": [g.lower() for g in GENES]}, index=GENES),
    )
    adata.obsm["X_pca"] = random.normal(size=(CELLS, 2))
    adata.layers["counts"] = sparse.csr_matrix(np.round(expression() * 10))
    adata.uns["about"] = {"made": "here", "numbers": np.arange(3)}
    adata.obsp["near"] = sparse.random(CELLS, CELLS, 0.1, format="csr", random_state=0)
    adata.varm["PCs"] = random.normal(size=(len(GENES), 2))
    adata.obsm["predicted"] = proba()
    return adata


def everything(adata: anndata.AnnData) -> dict[str, Any]:
    """All that an AnnData holds, without what the rules write."""
    obs = adata.obs.drop(columns=[c for c in adata.obs if c in WRITTEN])
    found: dict[str, Any] = {"obs": obs.copy(), "var": adata.var.copy(), "X": dense(adata.X)}
    for part in ("obsm", "varm", "layers", "obsp", "varp"):
        for key, value in getattr(adata, part).items():
            if key not in WRITTEN:
                found[f"{part}/{key}"] = dense(value)
    found["uns"] = pickle.dumps(dict(adata.uns))
    if adata.raw is not None:
        found["raw"], found["raw.var"] = dense(adata.raw.X), adata.raw.var.copy()
    return found


def dense(value: Any) -> np.ndarray:
    if hasattr(value, "to_memory"):
        value = value.to_memory()
    return np.array(value.toarray() if sparse.issparse(value) else value)


def same(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys()
    for key, value in first.items():
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(value, second[key])
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, second[key])
            assert value.dtype == second[key].dtype
        else:
            assert value == second[key], key


MARKER_RULES = marker_rules(MARKERS, CLASSES, tau=0.0, rho=0.6)


@pytest.fixture(
    params=["extended", "csr", "csc", "raw", "view", "backed", "backed csr", "csr_array"]
)
def adata(request: pytest.FixtureRequest, tmp_path: Path) -> anndata.AnnData:
    """The same cells in every form an AnnData may have."""
    form = request.param
    if form == "raw":
        made = make()
        made.raw = made.copy()
        return made[:, ["CST3", "LTB"]].copy()
    if form == "view":
        made = make()
        twice = anndata.concat([made, made], index_unique="-", merge="same", uns_merge="same")
        twice.obsm["predicted"] = np.concatenate([proba(), proba()])
        view = twice[:CELLS]
        assert view.is_view
        return view
    if form.startswith("backed"):
        made = make(sparse.csr_matrix(expression()) if "csr" in form else None)
        made.write_h5ad(tmp_path / "cells.h5ad")
        return anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    wrap = {
        "csr": sparse.csr_matrix,
        "csc": sparse.csc_matrix,
        "csr_array": sparse.csr_array,
        "extended": np.asarray,
    }
    return make(wrap[form](expression()))


def test_three_things_are_written_and_the_rest_is_as_before(adata: anndata.AnnData) -> None:
    before, kind = everything(adata), type(adata.X)
    p = apply_rules(adata, MARKER_RULES, "predicted")
    same(before, everything(adata))
    assert adata.is_view is False
    if not kind.__name__.endswith("View"):
        assert type(adata.X) is kind
    assert set(adata.obs) - set(before["obs"]) == {"gdpnet_label", "gdpnet_status"}
    assert set(adata.obsm) - {key[5:] for key in before if key.startswith("obsm/")} == {
        "gdpnet_proba"
    }

    x = np.stack([expression()[:, :2].mean(1), expression()[:, 2:4].mean(1), expression()[:, 4]], 1)
    np.testing.assert_allclose(MARKER_RULES.expression(adata), x, rtol=1e-6)
    expected = gdpnet.project(MARKER_RULES.rules, proba(), x)
    found = adata.obsm["gdpnet_proba"]
    assert list(found.columns) == CLASSES
    assert list(found.index) == list(adata.obs_names)
    np.testing.assert_array_equal(found.to_numpy(), expected.y.numpy())
    np.testing.assert_array_equal(p.y.numpy(), expected.y.numpy())
    names = [gdpnet.Status(s).name for s in expected.status.tolist()]
    assert adata.obs["gdpnet_status"].tolist() == names
    assert {"SATISFIED", "PROJECTED", "CONFLICT"} <= set(names)  # the example has all three
    free = np.array(names) != "CONFLICT"
    assert MARKER_RULES.rules.satisfied(found.to_numpy()[free], x[free]).all()
    assert list(adata.obs["gdpnet_label"].cat.categories) == CLASSES


def test_the_parent_of_a_view_is_not_touched() -> None:
    parent = make()
    before = everything(parent)
    view = parent[:10]
    apply_rules(view, MARKER_RULES, "predicted")
    assert not view.is_view
    assert "gdpnet_label" in view.obs
    same(before, everything(parent))
    assert not WRITTEN & (set(parent.obs) | set(parent.obsm))


def test_the_file_of_backed_cells_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "cells.h5ad"
    make(sparse.csr_matrix(expression())).write_h5ad(file)
    before = file.read_bytes()
    backed = anndata.read_h5ad(file, backed="r")
    apply_rules(backed, MARKER_RULES, "predicted")
    assert backed.isbacked
    backed.file.close()
    assert file.read_bytes() == before
    with pytest.raises(InputError, match="to_memory"):
        apply_rules(anndata.read_h5ad(file, backed="r")[:5], MARKER_RULES, "predicted")


def test_what_was_written_survives_a_file(tmp_path: Path) -> None:
    adata = make()
    apply_rules(adata, MARKER_RULES, "predicted")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    pd.testing.assert_frame_equal(read.obs, adata.obs)
    pd.testing.assert_frame_equal(read.obsm["gdpnet_proba"], adata.obsm["gdpnet_proba"])


def test_applied_twice_gives_the_same() -> None:
    once, twice = make(), make()
    apply_rules(once, MARKER_RULES, "predicted")
    apply_rules(twice, MARKER_RULES, "predicted")
    apply_rules(twice, MARKER_RULES, "predicted")
    pd.testing.assert_frame_equal(once.obs, twice.obs)


def test_a_sparse_matrix_is_never_dense_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    adata = make(sparse.csr_matrix(expression()))
    whole = adata.X.shape
    to_dense = sparse.csr_matrix.toarray

    def watched(self: Any, *arguments: Any, **keywords: Any) -> Any:
        assert self.shape != whole
        return to_dense(self, *arguments, **keywords)

    monkeypatch.setattr(sparse.csr_matrix, "toarray", watched)
    with pytest.raises(AssertionError):
        adata.X.toarray()
    assert MARKER_RULES.expression(adata).shape == (CELLS, 3)


def test_a_large_sparse_matrix_takes_little_memory() -> None:
    import tracemalloc

    cells, genes = 30_000, 20_000
    random = np.random.default_rng(0)
    rows, columns = random.integers(cells, size=300_000), random.integers(genes, size=300_000)
    values = random.random(300_000).astype(np.float32)
    matrix = sparse.csr_matrix((values, (rows, columns)), shape=(cells, genes))
    names = pd.DataFrame(index=[f"g{j}" for j in range(genes)])
    with_names = pd.DataFrame(index=[str(i) for i in range(cells)])
    adata = anndata.AnnData(matrix, obs=with_names, var=names)
    tracemalloc.start()
    found = mean_expression(adata, [["g3", "g17"], ["g19999"]], Source())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < cells * genes * 4 / 100  # a hundredth of what it would be when dense
    np.testing.assert_allclose(found[:, 1], matrix[:, [19999]].toarray()[:, 0])


def test_pieces_of_a_file_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gdpnet.bio._expression._PIECE", 7 * len(GENES))
    for name, matrix in (("extended", expression()), ("sparse", sparse.csr_matrix(expression()))):
        make(matrix).write_h5ad(tmp_path / f"{name}.h5ad")
        backed = anndata.read_h5ad(tmp_path / f"{name}.h5ad", backed="r")
        np.testing.assert_array_equal(
            MARKER_RULES.expression(backed), MARKER_RULES.expression(make())
        )


def test_genes_in_raw_in_x_in_a_layer_and_by_symbol() -> None:
    adata = make()
    adata.raw = adata.copy()
    adata.X = adata.X - 0.5
    genes = [["LTB"], ["CST3", "MS4A1"]]
    at_raw = expression()[:, [4]].astype(float)
    np.testing.assert_allclose(mean_expression(adata, genes, Source())[:, [0]], at_raw)
    np.testing.assert_allclose(mean_expression(adata, genes, Source(True))[:, [0]], at_raw)
    at_x = mean_expression(adata, genes, Source(False))
    np.testing.assert_allclose(at_x[:, [0]], at_raw - 0.5, atol=1e-6)
    adata.layers["log"] = sparse.csr_matrix(adata.raw.X)
    np.testing.assert_allclose(mean_expression(adata, genes, Source(layer="log"))[:, [0]], at_raw)
    lower = mean_expression(adata, [["ltb"]], Source(gene_symbols="symbol"))
    np.testing.assert_allclose(lower, at_raw)


def test_predictions_in_every_form() -> None:
    adata, reference = make(), make()
    apply_rules(reference, MARKER_RULES, proba())
    frame = pd.DataFrame(proba(), index=adata.obs_names, columns=CLASSES)
    shuffled = frame.sample(frac=1, random_state=0)[["T", "B", "NK"]]
    adata.obsm["table"] = frame
    given = (frame, shuffled, torch.tensor(proba()), proba().tolist(), "table", "predicted")
    for form in given:
        apply_rules(adata, MARKER_RULES, form)
        pd.testing.assert_frame_equal(adata.obs, reference.obs)
        pd.testing.assert_frame_equal(
            adata.obsm["gdpnet_proba"], reference.obsm["gdpnet_proba"], rtol=0, atol=0
        )


def test_keywords_are_those_of_project() -> None:
    adata = make()
    apply_rules(
        adata,
        MARKER_RULES,
        "predicted",
        on_conflict="nearest",
        solver=gdpnet.solve.Exact(tie="least_norm"),
    )
    x = MARKER_RULES.expression(adata)
    expected = gdpnet.project(
        MARKER_RULES.rules,
        proba(),
        x,
        on_conflict="nearest",
        solver=gdpnet.solve.Exact(tie="least_norm"),
    )
    np.testing.assert_array_equal(adata.obsm["gdpnet_proba"].to_numpy(), expected.y.numpy())
    with pytest.raises(ConflictError, match="contradict"):
        apply_rules(adata, MARKER_RULES, "predicted", on_conflict="raise")


def test_of_two_equal_classes_the_one_predicted_higher_is_the_label() -> None:
    matrix = np.zeros((CELLS, len(GENES)), dtype=np.float32)
    matrix[0, :2] = 1.5  # B, by half
    adata = make(matrix)
    predicted = np.tile([1.0, 0.0, 0.0], (CELLS, 1))
    predicted[0] = [0.0, 0.0, 1.0]
    half = marker_rules(MARKERS, CLASSES, tau=0.0, rho=0.5)
    apply_rules(adata, half, predicted)
    assert adata.obsm["gdpnet_proba"].iloc[0].tolist() == [0.5, 0.0, 0.5]
    assert adata.obs["gdpnet_label"].iloc[0] == "T"


# ---- refused -----------------------------------------------------------------------------


def without(change: str) -> anndata.AnnData:
    adata = make()
    if change == "counts":
        adata.X = np.round(adata.X * 10)
    elif change == "not logarithmic":
        adata.X = adata.X * 1000
    elif change == "nan":
        adata.X[3, 0] = np.nan
    elif change == "twice":
        adata.var_names = ["MS4A1", "MS4A1", *GENES[2:]]
        adata.var_names = pd.Index(["MS4A1", "CD79A", "NKG7", "GNLY", "LTB", "LTB"])
    elif change == "gene":
        adata = adata[:, GENES[1:]].copy()
    elif change == "lower":
        adata.var_names = [name.lower() for name in GENES]
    elif change == "in raw":
        adata.raw = adata.copy()
        adata = adata[:, GENES[1:]].copy()
    elif change == "no X":
        adata.X = None
    return adata


@pytest.mark.parametrize(
    ("change", "keywords", "message"),
    [
        ("counts", {}, "whole numbers, as counts are"),
        ("counts", {}, "scanpy.pp.log1p"),
        ("not logarithmic", {}, "too large for logarithms"),
        ("nan", {}, "NaN or infinity in the markers' expression of 1 cells (cell3)"),
        ("twice", {}, "several columns called 'LTB'"),
        ("gene", {}, "X has no 'MS4A1'"),
        ("lower", {}, "'MS4A1' (like 'ms4a1'?)"),
        ("in raw", {"use_raw": False}, ".raw has: use use_raw=True"),
        ("no X", {}, "has no X"),
        ("", {"use_raw": True}, "has no .raw"),
        ("", {"layer": "log"}, "no layer 'log'; it has 'counts'"),
        ("", {"layer": "counts"}, "layer 'counts'"),
        ("", {"gene_symbols": "name"}, "no column 'name'; they have 'symbol'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_expression_that_is_refused(change: str, keywords: dict[str, Any], message: str) -> None:
    markers = marker_rules(MARKERS, CLASSES, tau=0.0, **keywords)
    with pytest.raises(InputError) as error:
        apply_rules(without(change), markers, "predicted")
    assert message in str(error.value)


def test_counts_that_are_meant() -> None:
    markers = marker_rules(MARKERS, CLASSES, tau=0.0, layer="counts", allow_counts=True)
    assert markers.expression(make()).max() > 25


def test_cells_without_any_marker_are_no_counts() -> None:
    assert (MARKER_RULES.expression(make(np.zeros((CELLS, len(GENES))))) == 0).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("probability", "no obsm['probability']; it has 'X_pca', 'predicted'"),
        (np.zeros((3, 3)), "expected probabilities of 40 cells x 3 classes (B, NK, T), got shape"),
        (np.full((CELLS, 3), np.nan), "NaN or infinity in 40 of 40 cells (cell0, cell1"),
        (np.full((CELLS, 3), 2.0), "do not sum to 1"),
        (np.tile([2.0, -1.0, 0.0], (CELLS, 1)), "negative numbers"),
        (pd.DataFrame({"B": [0.1], "NK": [0.2], "t": [0.7]}), "no 'T' (like 't'?); 't' is no"),
        (pd.DataFrame({"B": [0.1], "NK": [0.2], "T": [0.7]}), "its index must be the cells' names"),
        ([["a", "b", "c"]], "expected numbers, got list"),
    ],
)
def test_predictions_that_are_refused(given: Any, message: str) -> None:
    adata = make()
    before = everything(adata)
    with pytest.raises(InputError) as error:
        apply_rules(adata, MARKER_RULES, given)
    assert message in str(error.value)
    same(before, everything(adata))


def test_what_is_no_anndata_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected an anndata.AnnData, got DataFrame"):
        apply_rules(pd.DataFrame(), MARKER_RULES, "predicted")


def test_arguments_in_another_order_are_refused() -> None:
    adata = make()
    given: Any = {"B": ["MS4A1"]}
    for call in (
        lambda: apply_rules(adata, given, MARKER_RULES),
        lambda: explain_cells(adata, given, "predicted", [0]),
        lambda: marker_statistics(adata, given, "truth"),
    ):
        with pytest.raises(InputError, match=r"expected what gdpnet.bio.marker_rules returns, got"):
            call()


# ---- explanations and statistics ---------------------------------------------------------


def test_explained_cells() -> None:
    adata = make()
    p = apply_rules(adata, MARKER_RULES, "predicted")
    by_status = {
        name: adata.obs_names[(adata.obs["gdpnet_status"] == name)]
        for name in ("SATISFIED", "PROJECTED", "CONFLICT")
    }
    cells = [by_status["PROJECTED"][0], by_status["CONFLICT"][0]]
    told = explain_cells(adata, MARKER_RULES, "predicted", cells)
    assert list(dict.fromkeys(told["cell"])) == cells
    x = MARKER_RULES.expression(adata)
    active = MARKER_RULES.rules.active(x)
    for cell in cells:
        row = adata.obs_names.get_loc(cell)
        own = told[told["cell"] == cell]
        names = [MARKERS[r].name for r in range(3) if active[row, r]]
        assert own["rule"].tolist() == names
        label, probability = own["result"].iloc[0].rsplit(" ", 1)
        assert label == adata.obs["gdpnet_label"].loc[cell]
        assert float(probability) == pytest.approx(p.y[row].max().item(), abs=5e-3)
    moved = told[(told["cell"] == cells[0]) & told["prediction"].str.startswith("breaks")]
    assert len(moved)
    for effect in moved["effect"]:
        before, after = effect.rsplit(" ", 3)[1::2]
        assert float(after) > float(before)
    contradicting = told[told["cell"] == cells[1]]
    assert contradicting["effect"].str.startswith("contradicts").sum() >= 2


def test_cells_that_cannot_be_told_apart_or_are_none() -> None:
    adata = make()
    first = adata.obs_names[0]
    adata.obs_names = [first, first, *adata.obs_names[2:]]
    with pytest.raises(InputError, match="several cells are called"):
        explain_cells(adata, MARKER_RULES, "predicted", [first])
    assert set(explain_cells(adata, MARKER_RULES, "predicted", [1])["cell"]) == {first}
    with pytest.raises(InputError, match=r"expected names or whole numbers, got 0\.5"):
        explain_cells(adata, MARKER_RULES, "predicted", [0.5])


def test_explained_cells_by_number_and_without_rules() -> None:
    adata = make(np.zeros((CELLS, len(GENES)), dtype=np.float32))
    told = explain_cells(adata, MARKER_RULES, "predicted", [0, -1])
    assert told["cell"].tolist() == ["cell0", "cell39"]
    assert told["effect"].tolist() == ["no rule applies"] * 2
    with pytest.raises(InputError, match=r"no cell is called 'cel3' \(like 'cell3'"):
        explain_cells(adata, MARKER_RULES, "predicted", ["cel3"])
    with pytest.raises(InputError, match="there are 40 cells, got the number 40"):
        explain_cells(adata, MARKER_RULES, "predicted", [40])


def test_statistics_by_hand() -> None:
    matrix = np.zeros((CELLS, len(GENES)), dtype=np.float32)
    matrix[:10, :2] = 1.5  # B
    matrix[5:10, 2:4] = 1.5  # and NK or T: contradictory above 0.5
    adata = make(matrix)
    adata.obs["type"] = pd.Categorical(["B"] * 8 + ["T"] * 32)
    found = marker_statistics(adata, MARKER_RULES, "type")
    assert found.active_counts == (30, 5, 5)
    assert found.contradictory == 5
    assert found.no_active == 0.75
    assert found.two_or_more == 0.125
    assert found.truth_satisfies == 35 / 40  # of the first ten those five with one rule
    np.testing.assert_array_equal(found.rules["active"], [0.25, 0.125, 0.0])
    np.testing.assert_array_equal(found.rules["precision"], [0.8, 0.4, np.nan])
    assert "5 contradictory" in repr(found)
    with pytest.raises(InputError, match="obs has no column 'louvain'; it has 'type'"):
        marker_statistics(adata, MARKER_RULES, "louvain")
    adata.obs["type"] = "Platelets"
    with pytest.raises(InputError, match="'Platelets', which the rules do not know"):
        marker_statistics(adata, MARKER_RULES, "type")


def test_marker_rules_are_copied_and_pickled() -> None:
    for other in (copy.deepcopy(MARKER_RULES), pickle.loads(pickle.dumps(MARKER_RULES))):
        assert other.markers == MARKER_RULES.markers
        assert other.rules.fingerprint == MARKER_RULES.rules.fingerprint


def test_the_euclidean_norm_takes_evenly() -> None:
    adata = anndata.AnnData(
        np.array([[2.3, 0.0]]),
        obs=pd.DataFrame(index=["a"]),
        var=pd.DataFrame(index=["MS4A1", "NKG7"]),
    )
    markers = marker_rules(
        {"B": "MS4A1", "NK": "NKG7"}, ["B", "NK", "T"], tau=1, rho=0.6, allow_counts=True
    )
    proba = [[0.2, 0.3, 0.5]]
    p = apply_rules(adata, markers, proba, norm="l2")
    assert adata.obsm["gdpnet_proba"].loc["a"].tolist() == pytest.approx([0.6, 0.1, 0.3])
    assert float(p.distance[0]) == pytest.approx((0.4**2 + 2 * 0.2**2) ** 0.5)
    told = explain_cells(adata, markers, proba, ["a"], norm="l2")
    assert told.loc[0, "effect"] == "B 0.20 -> 0.60"
