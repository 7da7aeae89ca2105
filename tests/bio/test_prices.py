"""Marker rules that may be broken at a price, or left out where they contradict each other."""

from __future__ import annotations

from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest

from gdpnet import Status
from gdpnet.bio import MarkerRule, apply_rules, explain_cells, marker_rules
from gdpnet.errors import InputError

CLASSES = ["B", "NK", "T"]
BOTH = {"B": "MS4A1", "NK": "NKG7"}
YHAT = [[0.3, 0.2, 0.5], [0.3, 0.2, 0.5]]


def cells() -> Any:
    """The first cell has both markers, the second one of them."""
    expression = np.array([[2.1, 3.3], [2.1, 0.0]], dtype=np.float32)
    names = pd.DataFrame(index=["both", "one"])
    return anndata.AnnData(expression, obs=names, var=pd.DataFrame(index=["MS4A1", "NKG7"]))


def test_prices_and_importances_by_rule() -> None:
    markers = marker_rules(BOTH, CLASSES, tau=1, rho=0.6, price={"B": 0.3}, importance=[2, 5])
    assert [marker.price for marker in markers.markers] == [0.3, None]
    data = markers.rules.data
    assert data.hard == (False, True)
    assert [rule.importance for rule in data.rules] == [2.0, 5.0]
    assert "B >= 0.6, or broken for 0.3 (importance 2)" in repr(markers)
    own = [MarkerRule("MS4A1", "B", price=0.1), MarkerRule("NKG7", "NK")]
    assert [m.price for m in marker_rules(own, CLASSES, tau=1, price=0.4).markers] == [0.1, 0.4]
    frame = pd.DataFrame({"genes": ["MS4A1", "NKG7"], "classes": ["B", "NK"], "price": [0.2, None]})
    assert [m.price for m in marker_rules(frame, CLASSES, tau=1).markers] == [0.2, None]


def test_a_cell_whose_rules_contradict_each_other_breaks_the_cheaper_one() -> None:
    markers = marker_rules(BOTH, CLASSES, tau=1, rho=0.6, price={"B": 0.3, "NK": 0.5})
    adata = cells()
    p = apply_rules(adata, markers, YHAT)
    # 0.8 for NK and 0.3 for breaking B; 0.6 for B and 0.5; or both broken, 0.8.
    assert p.value.tolist() == pytest.approx([0.8, 0.3])
    assert p.broken.tolist() == [[True, True], [True, False]]
    assert adata.obs["gdpnet_status"].tolist() == ["PROJECTED", "PROJECTED"]
    told = explain_cells(adata, markers, YHAT, ["both"])
    assert told["effect"].tolist() == ["broken for 0.3", "broken for 0.5"]


def test_the_less_important_one_is_dropped() -> None:
    markers = marker_rules(BOTH, CLASSES, tau=1, rho=0.6, importance={"NK": 3})
    adata = cells()
    p = apply_rules(adata, markers, YHAT, on_conflict="drop")
    assert p.info.dropped == [("marker[B]",), ()]
    assert p.status.tolist() == [Status.CONFLICT, Status.PROJECTED]
    assert p.y[0, 1].item() == pytest.approx(0.6)
    told = explain_cells(adata, markers, YHAT, ["both"], on_conflict="drop")
    assert told["effect"].tolist() == ["dropped", "NK 0.20 -> 0.60"]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"price": -0.1}, "price of rule 'B': expected a number from 0 on, got -0.1"),
        ({"price": float("nan")}, "price of rule 'B': expected a finite number, got nan"),
        ({"price": {"T": 1}}, "price: no rule is called"),
        ({"price": [1.0]}, "price: expected one number, or one for each of the 2 rules, got 1"),
        ({"importance": 0}, "importance of rule 'B': expected a positive number, got 0"),
    ],
)
def test_wrong_numbers(numbers: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        marker_rules(BOTH, CLASSES, tau=1, **numbers)
