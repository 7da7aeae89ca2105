"""Rules from marker genes: every way to say them, and what is refused."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

import gdpnet
from gdpnet.bio import MarkerRule, marker_rules
from gdpnet.errors import InputError

CLASSES = ["B", "NK", "CD8", "Mono"]
KILLERS = MarkerRule(["GNLY", "NKG7"], ["NK", "CD8"], tau=1.5, rho=0.6)


def test_the_rules_of_a_scanpy_dict() -> None:
    markers = marker_rules({"B": ["MS4A1", "CD79A"], "NK": "NKG7"}, CLASSES, tau=1.0, rho=0.7)
    rules = markers.rules
    assert rules.names == ("marker[B]", "marker[NK]")
    assert rules.output_names == ("p[B]", "p[NK]", "p[CD8]", "p[Mono]")
    assert rules.input_names == ("expression[B]", "expression[NK]")
    assert markers.genes == ("MS4A1", "CD79A", "NKG7")
    x = torch.tensor([[1.0, 0.99], [0.5, 1.2], [2.0, 2.0]])
    assert rules.active(x).tolist() == [[True, False], [False, True], [True, True]]
    y = torch.tensor([[0.7, 0.3, 0, 0], [0.7, 0.3, 0, 0], [0.7, 0.3, 0, 0]])
    assert rules.satisfied(y, x).tolist() == [True, False, False]
    assert rules.satisfied(torch.tensor([[0.7, 0.0, 0.0, 0.0]]), x[:1]).tolist() == [False]
    # Two classes cannot both have 0.7: a matter of the cell, not of the rules.
    status = gdpnet.project(rules, y, x).status.tolist()
    assert status == [gdpnet.Status.SATISFIED, gdpnet.Status.PROJECTED, gdpnet.Status.CONFLICT]
    contradicting = rules.explain_conflict(x[2])
    assert {"marker[B]", "marker[NK]", "total"} <= set(contradicting)


def test_all_forms_say_the_same() -> None:
    by_dict = marker_rules({"B": ["MS4A1"], ("NK", "CD8"): ["GNLY", "NKG7"]}, CLASSES, 1.0)
    by_rules = marker_rules(
        [
            MarkerRule("MS4A1", "B", name="B"),
            MarkerRule(["GNLY", "NKG7"], ["NK", "CD8"], name="NK or CD8"),
        ],
        CLASSES,
        tau=1.0,
    )
    by_rows = marker_rules(
        pd.DataFrame(
            {
                "genes": ["MS4A1", ["GNLY", "NKG7"]],
                "classes": [["B"], ("NK", "CD8")],
                "name": ["B", "NK or CD8"],
                "tau": [1.0, np.nan],
            }
        ),
        CLASSES,
        tau=1.0,
    )
    assert by_dict.markers == by_rules.markers == by_rows.markers
    assert by_dict.rules.fingerprint == by_rules.rules.fingerprint == by_rows.rules.fingerprint

    wide = pd.DataFrame({"B": ["MS4A1", "CD79A"], "NK": ["NKG7", np.nan], "CD8": ["CD8A", ""]})
    by_columns = marker_rules(wide, CLASSES, tau=1.0)
    as_dict = {"B": ["MS4A1", "CD79A"], "NK": ["NKG7"], "CD8": ["CD8A"]}
    assert by_columns.rules.fingerprint == marker_rules(as_dict, CLASSES, 1.0).rules.fingerprint


def test_ranked_genes_of_scanpy_are_a_frame_of_columns() -> None:
    ranked = np.rec.fromarrays([["MS4A1", "CD79A"], ["NKG7", "GNLY"]], names=["B", "NK"])
    markers = marker_rules(pd.DataFrame(ranked), CLASSES, tau=1.0)
    assert [m.genes for m in markers.markers] == [("MS4A1", "CD79A"), ("NKG7", "GNLY")]


def test_thresholds_for_all_for_each_and_by_name() -> None:
    said = {"B": "MS4A1", "NK": "NKG7"}
    assert [m.tau for m in marker_rules(said, CLASSES, [1.0, 2.0]).markers] == [1.0, 2.0]
    by_name = marker_rules(said, CLASSES, {"NK": 2, "B": 1}, rho={"B": 0.5, "NK": 0.9})
    assert [(m.tau, m.rho) for m in by_name.markers] == [(1.0, 0.5), (2.0, 0.9)]
    own = marker_rules([KILLERS, MarkerRule("MS4A1", "B")], CLASSES, tau=1.0, rho=0.5)
    assert [(m.tau, m.rho) for m in own.markers] == [(1.5, 0.6), (1.0, 0.5)]


def test_one_gene_may_have_two_thresholds() -> None:
    markers = marker_rules(
        [
            MarkerRule("LTB", ["B", "CD8"], tau=0.5, name="some"),
            MarkerRule("LTB", "B", tau=3, name="much"),
        ],
        CLASSES,
        tau=0.0,
    )
    assert markers.genes == ("LTB",)
    assert markers.rules.active([[1.0, 1.0]]).tolist() == [[True, False]]


def test_it_reads_well() -> None:
    told = repr(marker_rules([KILLERS], CLASSES, tau=1.0, use_raw=False))
    assert told == (
        "MarkerRules: 1 rule, 4 classes, genes in X\n"
        "  GNLY+NKG7: mean(GNLY, NKG7) >= 1.5 -> NK or CD8 >= 0.6"
    )


@pytest.mark.parametrize(
    ("markers", "keywords", "message"),
    [
        ({"Bcells": "MS4A1"}, {}, "rule 'Bcells': no class is called 'Bcells'"),
        ({"nk": "NKG7"}, {}, "'nk' (like 'NK'?)"),
        ({"B": "MS4A1"}, {"rho": 1.2}, "rho of rule 'B': a probability of at least 1.2 can never"),
        ({"B": "MS4A1"}, {"rho": 0.0}, "so the rule says nothing"),
        ({"B": "MS4A1"}, {"rho": -0.1}, "so the rule says nothing"),
        ({"B": "MS4A1"}, {"rho": float("nan")}, "rho of rule 'B': expected a finite number"),
        ({"B": "MS4A1"}, {"tau": float("nan")}, "tau of rule 'B': expected a finite number"),
        ({"B": "MS4A1"}, {"tau": None}, "tau of rule 'B': expected a finite number, got None"),
        ({"B": "MS4A1"}, {"tau": "high"}, "tau of rule 'B': expected a finite number, got 'high'"),
        ({"B": "MS4A1"}, {"tau": [1.0, 2.0]}, "one for each of the 1 rules, got 2"),
        ({"B": "MS4A1"}, {"tau": {"NK": 1.0}}, "tau: no rule is called 'NK'"),
        ({"B": []}, {}, "rule 'B': genes: expected at least one name, got none"),
        ({"B": ["MS4A1", ""]}, {}, "expected names, got '' among them"),
        ({"B": ["MS4A1", float("nan")]}, {}, "expected names, got nan among them"),
        ({"B": ["MS4A1", "MS4A1"]}, {}, "rule 'B': genes: 'MS4A1' occurs twice"),
        ({"B": 3}, {}, "rule 'B': genes: expected names, got 3"),
        ({}, {}, "markers: expected at least one rule"),
        ({("B", "B"): "MS4A1"}, {}, "'B' occurs twice"),
        ([MarkerRule("NKG7", "NK"), MarkerRule("NKG7", "NK", name="x")], {}, "say the same"),
        ([MarkerRule("NKG7", "NK"), MarkerRule("NKG7", "B")], {}, "two rules are called 'NKG7'"),
        (["NKG7"], {}, "a list of gdpnet.bio.MarkerRule, got a list with 'NKG7'"),
        (3, {}, "got int"),
        (pd.DataFrame({"B": [np.nan]}), {}, "rule 'B': genes: expected at least one name"),
        (
            pd.DataFrame({"genes": ["A"], "classes": ["B"], "cell": [1]}),
            {},
            "this DataFrame also has cell",
        ),
        (pd.DataFrame([["A", "B"]], columns=["B", "B"]), {}, "the column 'B' occurs twice"),
        ({"B": "MS4A1"}, {"use_raw": True, "layer": "log"}, ".raw has no layers"),
    ],
)
def test_what_is_refused(markers: object, keywords: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        marker_rules(markers, CLASSES, **{"tau": 1.0, **keywords})
    assert message in str(error.value)


@pytest.mark.parametrize("classes", [[], ["B", "B"], ["B", ""], [1, 2], None])
def test_classes_are_names_each_once(classes: object) -> None:
    with pytest.raises(InputError, match="classes"):
        marker_rules({"B": "MS4A1"}, classes, tau=1.0)  # type: ignore[arg-type]


def test_without_the_extra_rules_can_be_made_and_the_rest_says_what_is_missing() -> None:
    script = """
import sys
for name in ("anndata", "scanpy", "sklearn", "pandas"):
    sys.modules[name] = None
import gdpnet.bio
markers = gdpnet.bio.marker_rules({"B": "MS4A1"}, ["B", "T"], tau=1.0)
for call in (
    lambda: markers.expression(None),
    lambda: gdpnet.bio.apply_rules(None, markers, "proba"),
    lambda: gdpnet.bio.explain_cells(None, markers, "proba", []),
    lambda: gdpnet.bio.marker_statistics(None, markers, "louvain"),
):
    try:
        call()
    except gdpnet.errors.InputError as error:
        assert "needs anndata" in str(error) and "pip install 'gdpnet[bio]'" in str(error), error
    else:
        raise SystemExit("nothing raised")
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_it_imports_none_of_its_packages() -> None:
    script = """
import sys, gdpnet.bio
assert not {"anndata", "scanpy", "sklearn", "pandas"} & set(sys.modules), sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
