"""keep_whole: of a study's folder what can be compared, without its networks."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from gdpnet.errors import InputError
from gdpnet.study.training._folder import Row, StudyFolder
from gdpnet.study.training._grid import Grid


def keep_whole(
    source: str | os.PathLike[str], target: str | os.PathLike[str], wanted: Sequence[Grid]
) -> None:
    """Copy the results for which all methods are trained, and what was trained by what and where.

    Means over different seeds would not compare: of each protocol and size only the seeds stay that
    every method of the grids has.

    Args:
        source: folder of a study, whole or not.
        target: folder that receives `results.csv` and `study.json`; its own are replaced.
        wanted: what is trained.

    Example:
        >>> keep_whole("build/cooling", "studies/cooling", [Grid()])  # doctest: +SKIP
    """
    folder, kept = StudyFolder(source), StudyFolder(target)
    done = folder.finished()
    methods: dict[tuple[str, int], set[str]] = {}
    for grid in wanted:
        for cell in grid.cells:
            methods.setdefault((cell.protocol, cell.size), set()).update(grid.methods)

    def whole(row: Row) -> bool:
        protocol, size = row["protocol"], row["size"]
        needed = methods.get((protocol, size), set())
        return bool(needed) and all((protocol, m, size, row["seed"]) in done for m in needed)

    rows = [row for row in folder.results() if whole(row)]
    if not rows:
        raise InputError(f"{source} has no size and seed yet for which all methods are trained.")
    order = list(dict.fromkeys(name for grid in wanted for name in grid.protocols))
    Path(target).mkdir(exist_ok=True)
    kept.table.unlink(missing_ok=True)
    rows.sort(key=lambda row: (order.index(row["protocol"]), row["size"], row["seed"]))
    kept.add(rows)
    (Path(target) / "study.json").write_text(json.dumps(folder.study(), indent=2) + "\n")
