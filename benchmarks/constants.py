"""Does the cooling study hang on its constants? The same with sets that nobody chose.

    python benchmarks/constants.py [--quick] [--publish]

The paper prints no constants of its task, and ours were kept because their rules interact
(models/cooling/README.md). Here every constant but the noise and the events' threshold is
multiplied by a random factor from 0.85 to 1.15; sets for which some test input has contradicting
rules are left out, and counted. For each set: how often targets satisfy everything, how often CNF's
value lies below the DNF's (targets plus noise of 0.1), and networks of 100 samples, protocol quick.
"""

from __future__ import annotations

import dataclasses
import shutil
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _results import UNPUBLISHED, Results, parsed, parser

import gdpnet
from gdpnet.study import Grid, load_model, train

COOLING = Path(__file__).parents[1] / "models" / "cooling"
KEPT = ("sigma", "event")
METHODS = ("base", "finetuned-penalty", "finetuned-inference", "cnf-mixed", "dnf-mixed")
SPLITS = {"iid": 2, "ood": 3}

MODEL = """from gdpnet.study import load_model

_cooling = load_model({path!r}).module
_constants = _cooling.Constants(**{constants!r})
TEST_SEEDS = {splits!r}


def build():
    return _cooling.build(_constants)


def sample(n, split, seed):
    return _cooling.sample(n, split, seed, _constants)


network = _cooling.network
"""


def drawn(seed: int) -> dict[str, float]:
    """A set of constants; ours for 0."""
    ours = dataclasses.asdict(load_model(COOLING).module.CONSTANTS)
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.85, 1.15, len(ours))
    return {
        name: value if not seed or name in KEPT else float(value * factor)
        for (name, value), factor in zip(ours.items(), factors, strict=True)
    }


def model_of(constants: dict[str, float], folder: Path) -> Path:
    """A model file with these constants, in a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = MODEL.format(path=str(COOLING), constants=constants, splits=SPLITS)
    (folder / "model.py").write_text(text, encoding="utf-8")
    return folder / "model.py"


def looked_at(path: Path, samples: int) -> dict[str, float] | None:
    """What can be told without training; None where rules contradict each other somewhere."""
    model = load_model(path)
    rules, found = model.build(), {}
    for split, seed in SPLITS.items():
        x, target = model.sample(samples, split=split, seed=seed)
        if not bool(target.isfinite().all()):  # the oracle finds no point
            return None
        noise = torch.randn(target.shape, generator=torch.Generator().manual_seed(0)).double()
        yhat = target + 0.1 * noise
        dnf = gdpnet.project(rules, yhat, x)
        if bool((dnf.status == gdpnet.Status.CONFLICT).any()):
            return None
        cnf = gdpnet.project(rules, yhat, x, relaxation="cnf")
        found |= {
            f"targets_{split}": float(rules.satisfied(target, x).double().mean()),
            f"targets_1e_2_{split}": float(rules.satisfied(target, x, 1e-2).double().mean()),
            f"below_{split}": float((cnf.value < dnf.value - 1e-6).double().mean()),
            f"cnf_{split}": float(rules.satisfied(cnf.y, x).double().mean()),
            f"dnf_{split}": float(rules.satisfied(dnf.y, x).double().mean()),
        }
    return found


def trained(path: Path, seeds: tuple[int, ...]) -> dict[str, float]:
    """Means of networks."""
    grid = Grid(methods=METHODS, sizes=(100,), seeds=seeds, protocols=("quick",))
    rows: list[dict[str, Any]] = train(path, grid, path.parent / "study")
    found = {}
    for method in METHODS:
        for split in SPLITS:
            own = [row for row in rows if (row["method"], row["split"]) == (method, split)]
            for metric in ("mse", "csat_rules"):
                name = f"{metric} {method} {split}".replace("-", "_").replace(" ", "_")
                found[name] = statistics.fmean(row[metric] for row in own)
    return found


def main() -> None:
    arguments = parsed(parser(__doc__, "two sets, fewer samples"))
    torch.set_num_threads(1)
    results = Results("constants", arguments)
    sets, samples, seeds = (2, 200, (0,)) if arguments.quick else (9, 2000, (0, 1, 2))
    seed = left_out = 0
    while len(results.tables.get("", ())) < sets:
        path = model_of(drawn(seed), UNPUBLISHED / "constants" / str(seed))
        found = looked_at(path, samples)
        if found is None:
            left_out += 1
        else:
            results.add(seed=seed, left_out=left_out, **found, **trained(path, seeds))
        seed += 1
    results.write()


if __name__ == "__main__":
    main()
