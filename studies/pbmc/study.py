"""Trains the study of docs/studies/pbmc.md; goes on where it was stopped.

python studies/pbmc/study.py [FOLDER]    (GDPNET_DATA names the data, GDPNET_RULES the rules)
"""

import os
import sys
import time
from pathlib import Path

from _study import METHODS, PROTOCOL, SEEDS

from gdpnet.study import load_model
from gdpnet.study.training import Grid, train

MODEL = Path(__file__).resolve().parents[2] / "models" / "pbmc"


def main() -> None:
    rules = os.environ.get("GDPNET_RULES", "C")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else f"build/pbmc-{rules}")
    grid = Grid(
        methods=METHODS,
        sizes=load_model(MODEL).module.sizes(),
        seeds=SEEDS,
        protocols=(PROTOCOL,),
    )
    started = time.monotonic()

    def told(done: int, total: int) -> None:
        minutes = (time.monotonic() - started) / 60
        sys.stderr.write(f"{minutes:6.1f} min: {done} of {total} trained\n")

    train(MODEL, grid, folder, jobs=os.cpu_count() or 1, together=True, finished=told)


if __name__ == "__main__":
    main()
