"""Reading and measuring rules: 100,000 samples of the cooling model.

python benchmarks/rules.py [--quick] [--publish]
"""

from pathlib import Path

import torch
from _measure import seconds
from _results import Results, parsed, parser

from gdpnet.study import load_model

SAMPLES = 100_000
REPEATS = 9


def main() -> None:
    arguments = parsed(parser(__doc__, "a tenth of the samples"))
    torch.set_num_threads(1)
    results = Results("rules", arguments)
    count = SAMPLES // 10 if arguments.quick else SAMPLES
    model = load_model(Path(__file__).parents[1] / "models" / "cooling")
    rules = model.build()
    x, _ = model.sample(1000, split="iid", seed=0)
    x = x.repeat(count // len(x), 1)
    y = torch.rand(count, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    results.add(what="build", samples=None, seconds=seconds(model.build, REPEATS, least=0.0))
    for name, call in {
        "active": lambda: rules.active(x),
        "satisfied": lambda: rules.satisfied(y, x),
        "violation": lambda: rules.violation(y, x),
    }.items():
        results.add(what=name, samples=count, seconds=seconds(call, REPEATS, least=0.0))
    results.write()


if __name__ == "__main__":
    main()
