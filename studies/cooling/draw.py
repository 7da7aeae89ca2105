"""Figures of docs/studies/cooling.md, drawn from the results beside this file.

    python studies/cooling/draw.py [FOLDER]

With a folder that study.py filled, its results are taken over first: of each protocol and size the
seeds for which all methods are trained. Nothing is trained. Tables and numbers of the page are
filled by `benchmarks/fill.py`.
"""

import json
import sys
from pathlib import Path

from study import grids, merging

from gdpnet.study import Grid, StudyFolder
from gdpnet.study.report import (
    Results,
    convexification_figure,
    mixture_figure,
    size_figure,
    size_groups,
)

HERE = Path(__file__).resolve().parent
PICTURES = HERE.parents[1] / "docs" / "studies" / "cooling"


def take_over(source: Path, target: Path, wanted: list[Grid]) -> None:
    """Keep what is whole: means over different seeds would not compare."""
    folder, kept = StudyFolder(source), StudyFolder(target)
    done = folder.finished()
    methods: dict[tuple[str, int], set[str]] = {}
    for grid in wanted:
        for cell in grid.cells:
            methods.setdefault((cell.protocol, cell.size), set()).update(grid.methods)

    def whole(row: dict) -> bool:
        cell = row["protocol"], row["size"]
        needed = methods.get(cell, set())
        return bool(needed) and all((cell[0], m, cell[1], row["seed"]) in done for m in needed)

    rows = [row for row in folder.results() if whole(row)]
    if not rows:
        sys.stderr.write(f"{source} has nothing whole yet\n")
        return
    target.mkdir(exist_ok=True)
    kept.table.unlink(missing_ok=True)
    kept.add(sorted(rows, key=lambda r: (r["protocol"] != "paper", r["size"], r["seed"])))
    (target / "study.json").write_text(json.dumps(folder.study(), indent=2) + "\n")


def main() -> None:
    if len(sys.argv) > 1:
        source = Path(sys.argv[1])
        take_over(source, HERE, grids())
        if (source / "merged").is_dir():
            take_over(source / "merged", HERE / "merged", merging())
    results = Results(StudyFolder(HERE).results())
    for protocol in results.protocols:
        for number, (title, methods) in enumerate(size_groups(results).items()):
            drawn = size_figure(results, protocol, methods, title)
            drawn.savefig(PICTURES / f"sizes_{protocol}_{number}.png", dpi=110)
        mixture_figure(results, protocol).savefig(PICTURES / f"alpha_{protocol}.png", dpi=110)
    merged = Results(StudyFolder(HERE / "merged").results())
    for protocol in merged.protocols:
        drawn = convexification_figure(merged, protocol)
        drawn.savefig(PICTURES / f"convexification_{protocol}.png", dpi=110)


if __name__ == "__main__":
    main()
