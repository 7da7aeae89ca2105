"""Figures of docs/studies/cooling.md, drawn from the results beside this file.

    python studies/cooling/draw.py [FOLDER]

With a folder that study.py filled, its results are taken over first: of each protocol and size the
seeds for which all methods are trained. Nothing is trained. Tables and numbers of the page are
filled by `benchmarks/fill.py`.
"""

import sys
from pathlib import Path

from study import grids, merging

from gdpnet.study import StudyFolder, keep_whole
from gdpnet.study.report import (
    Results,
    convexification_figure,
    mixture_figure,
    size_figure,
    size_groups,
)

HERE = Path(__file__).resolve().parent
PICTURES = HERE.parents[1] / "docs" / "studies" / "cooling"


def main() -> None:
    if len(sys.argv) > 1:
        source = Path(sys.argv[1])
        keep_whole(source, HERE, grids())
        if (source / "merged").is_dir():
            keep_whole(source / "merged", HERE / "merged", merging())
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
