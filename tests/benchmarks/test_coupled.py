"""Problems that are coupled: small ones are the same for everybody, and their table can be made."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from _coupled_case import Case
from _coupled_cases import small_cases
from _results import Results
from coupled import measure, measure_alone
from coupled_equal import differences


@pytest.mark.parametrize("seed", range(24))
def test_engine_milp_and_peer_agree(seed: int) -> None:
    assert list(differences(seed)) == []


@pytest.mark.parametrize("case", list(small_cases())[:2], ids=lambda case: case.name)
def test_a_row_for_each_of_us(case: Case, tmp_path: Path) -> None:
    results = Results("coupled", argparse.Namespace(publish=False))
    results.folder = tmp_path
    measure(results, case, 1, 30.0)
    rows = results.tables[""]
    assert {"big-M", "gdpnet", "our MILP"} <= {row["who"] for row in rows}
    assert all(row["proved"] == row["answered"] == 1 for row in rows)


def test_a_row_for_gdpnet_alone(tmp_path: Path) -> None:
    results = Results("coupled", argparse.Namespace(publish=False))
    results.folder = tmp_path
    measure_alone(results, next(small_cases()), 2, 30.0)
    (row,) = results.tables["alone"]
    assert (row["proved"], row["answered"], row["worst_gap"]) == (2, 2, 0.0)
    assert 0.0 < row["least_s"] <= row["mean_s"] <= row["worst_s"]
