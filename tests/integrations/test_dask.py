"""The lines for Dask of docs/cluster.md, over a folder."""

from __future__ import annotations

from pathlib import Path

import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet

from gdpnet.study import BatchProjector
from tests.study._tables import two_rules


def test_partitions_are_projected(tmp_path: Path) -> None:
    rules = two_rules()
    project = BatchProjector(rules)
    source, target = tmp_path / "predictions", tmp_path / "projected"
    source.mkdir()
    rng = np.random.default_rng(0)
    names = [*rules.input_names, *rules.output_names]
    for k in range(3):
        columns = {name: rng.uniform(0, 3 if name == "t" else 10, 20) for name in names}
        rows = pyarrow.table({"id": np.arange(20) + 20 * k, **columns})
        pyarrow.parquet.write_table(rows, source / f"{k}.parquet")

    def of_partition(frame: pd.DataFrame) -> pd.DataFrame:
        return project(pyarrow.Table.from_pandas(frame, preserve_index=False)).to_pandas()

    frames = dask.dataframe.read_parquet(source)
    made = frames.map_partitions(of_partition, meta=of_partition(frames._meta))
    made.to_parquet(target, write_index=False)
    found = pd.read_parquet(target).sort_values("id", ignore_index=True)
    expected = project(pyarrow.parquet.read_table(source)).to_pandas()
    expected = expected.sort_values("id", ignore_index=True)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_exact=True)
    assert (found["gdpnet_status"] == "PROJECTED").any()
