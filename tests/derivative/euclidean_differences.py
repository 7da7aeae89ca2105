"""Derivatives of projections against finite differences, as many as asked for.

python -m tests.derivative.euclidean_differences [--samples 10000] [--first SEED]
    [--convex] [--norm l1]

Random models have auxiliaries, whole numbers, weights, and inputs in right sides and coefficients;
with `--convex` their rows are convex: squares, norms, exponentials, logarithms, powers.
Counted are samples that were moved and are smooth nearby; the exit code is 1 where any is wrong.
"""

from __future__ import annotations

import argparse
import sys

from tests.derivative.random_convex import random_convex
from tests.derivative.random_models import Tally, compare, random_model

# Differences of a step of 1e-5 are good to this, relative to max(1, the largest of a sample).
TOLERANCE = 1e-4


def differences(
    samples: int, first: int = 0, convex: bool = False, norm: str = "l2"
) -> tuple[Tally, int]:
    """What was found, and how many models it took.

    Args:
        samples: smooth ones to look at, at least.
        first: seed of the first model.
        convex: whether rows are convex.
        norm: in which is projected.
    """
    tally, models = Tally(), 0
    while tally.smooth < samples:
        seed = first + models
        model = random_convex(seed) if convex else random_model(seed)
        found = compare(model, TOLERANCE, f"model {seed}", norm=norm, gradient="vertex")
        tally.add(found)
        models += 1
    return tally, models


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--convex", action="store_true")
    parser.add_argument("--norm", default="l2")
    given = parser.parse_args()
    tally, models = differences(given.samples, given.first, given.convex, given.norm)
    print("\n".join(tally.wrong[:20]))
    print(
        f"{tally.smooth} smooth samples of {models} models, {tally.through_x} of them move with an "
        f"input: {len(tally.wrong)} wrong"
    )
    return bool(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())
