"""Record batches in, record batches out: the same however they are cut, pickled, or empty."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow
import pytest

import gdpnet
from gdpnet.errors import InputError
from gdpnet.study import BatchProjector
from tests.study._tables import table, two_rules


@pytest.mark.parametrize(
    "how", [{}, {"norm": "l2", "replace": True}, {"relaxation": "cnf:extended"}]
)
def test_what_is_added_is_what_project_gives(how: dict[str, Any]) -> None:
    rules, rows = two_rules(), table(300)
    found = BatchProjector(rules, **how)(rows)
    yhat, x = np.column_stack([rows["y[1]"], rows["y[2]"]]), np.column_stack([rows["t"]])
    norm = how.get("norm", "l1")
    relaxation = how.get("relaxation", "dnf").partition(":")[0]
    p = gdpnet.project(rules, yhat, x, norm=norm, relaxation=relaxation)
    ending = "" if how.get("replace") else "_projected"
    y = np.column_stack([found["y[1]" + ending], found["y[2]" + ending]])
    np.testing.assert_array_equal(y, p.y.numpy())
    distance = found["gdpnet_distance" + ("_l2" if norm == "l2" else "")]
    np.testing.assert_array_equal(np.array(distance), p.distance.numpy())
    assert found["gdpnet_status"].to_pylist() == [gdpnet.Status(s).name for s in p.status.tolist()]
    assert found["id"].equals(rows["id"])


@pytest.mark.parametrize("relaxation", ["dnf", "cnf", "adaptive"])
def test_cuts_and_copies_make_no_difference(relaxation: str) -> None:
    rows, project = table(100), BatchProjector(two_rules(), relaxation=relaxation)
    whole = project(rows)
    other = pickle.loads(pickle.dumps(project))
    pieces = [other(batch) for batch in rows.to_batches(max_chunksize=7)]
    assert pyarrow.Table.from_batches(pieces).equals(whole)
    assert other(rows.slice(3, 50)).equals(whole.slice(3, 50))


def test_the_schema_is_known_before_there_are_rows() -> None:
    rows, project = table(5), BatchProjector(two_rules(), added_prefix="new_")
    schema = project.schema(rows.schema)
    assert schema == project(rows).schema
    assert schema.names[-1] == "new_gdpnet_distance"
    nothing = project(rows.slice(0, 0))
    assert nothing.num_rows == 0
    assert nothing.schema == schema


def test_bad_rows_and_bad_columns() -> None:
    rows, project = table(5), BatchProjector(two_rules())
    bad = rows.set_column(rows.schema.get_field_index("t"), "t", pyarrow.array([0, None, 0, 0, 0]))
    found = project(bad)
    assert found["gdpnet_status"].to_pylist()[1] == "ERROR"
    assert found["y[1]_projected"].to_pylist()[1] is None
    assert "ERROR" not in found["gdpnet_status"].to_pylist()[2:]
    with pytest.raises(InputError, match="the batch has no column 't'"):
        project(rows.drop_columns("t"))
    with pytest.raises(InputError, match="'gdpnet_status', 'gdpnet_distance' already"):
        project(found)
    with pytest.raises(InputError, match="should hold numbers, but is of"):
        project(rows.set_column(0, "t", pyarrow.array([[1]] * 5)).select(["t", "y[1]", "y[2]"]))
