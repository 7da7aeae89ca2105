"""Rules and tables of predictions for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pyomo.environ as pyo
from pyomo.gdp import Disjunction

import gdpnet


def two_rules() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.a = Disjunction(expr=[[m.y[1] <= 3], [m.y[1] >= 6]])
    m.b = Disjunction(expr=[[m.y[1] + m.y[2] <= 4 + m.t], [m.y[1] + m.y[2] >= 12]])
    m.off = Disjunction(expr=[[m.y[1] >= 4, m.y[1] <= 5]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.off] = m.t >= 3  # contradicts the first rule
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t], input_bounds={"t": (0, 4)})


def table(rows: int, seed: int = 0, first: int = 0) -> pyarrow.Table:
    rng = np.random.default_rng(seed)
    return pyarrow.table(
        {
            "t": rng.uniform(0, 3.5, rows),
            "id": np.arange(first, first + rows),
            "y[1]": rng.uniform(0, 10, rows),
            "y[2]": rng.uniform(0, 10, rows),
        }
    )


def write_folder(folder: Path, files: int, rows: int) -> None:
    """Files of predictions with ids 0, 1, 2, ..., some in a folder below; and one without rows."""
    (folder / "below").mkdir(parents=True)
    for k in range(files):
        place = folder / ("below" if k % 3 == 2 else "") / f"part-{k:03d}.parquet"
        pyarrow.parquet.write_table(table(rows, k, k * rows), place)
    pyarrow.parquet.write_table(table(0), folder / "part-empty.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-000.parquet.crc").write_bytes(b"crc")


def contents(folder: Path) -> dict[str, bytes]:
    """Bytes of all tables, by name."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".csv", ".parquet")
    }


def ids(folder: Path) -> list[int]:
    """Ids of all rows of a folder, in their order."""
    tables = [pyarrow.parquet.read_table(file) for file in folder.rglob("*.parquet")]
    return sorted(number for each in tables for number in each["id"].to_pylist())
