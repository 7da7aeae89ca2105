"""Trains the study of docs/studies/pbmc.md; goes on where it was stopped.

python studies/pbmc/study.py [FOLDER]    (GDPNET_DATA names the data, GDPNET_RULES the rules)
"""

import os
import sys
import time
from pathlib import Path

from _study import MODEL, grid

from gdpnet.study import train


def main() -> None:
    rules = os.environ.get("GDPNET_RULES", "C")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else f"build/pbmc-{rules}")
    started = time.monotonic()

    def told(done: int, total: int) -> None:
        minutes = (time.monotonic() - started) / 60
        sys.stderr.write(f"{minutes:6.1f} min: {done} of {total} trained\n")

    train(MODEL, grid(), folder, jobs=os.cpu_count() or 1, together=True, finished=told)


if __name__ == "__main__":
    main()
