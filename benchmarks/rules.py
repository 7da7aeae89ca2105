"""Reading and measuring rules: 100,000 samples of the cooling model.

python benchmarks/rules.py
"""

from collections.abc import Callable
from pathlib import Path

import torch
from _measure import seconds

from gdpnet.study import load_model

SAMPLES = 100_000
REPEATS = 9


def median_ms(function: Callable[[], object]) -> float:
    """Median time of a call in milliseconds."""
    return 1e3 * seconds(function, REPEATS, least=0.0)


def main() -> None:
    torch.set_num_threads(1)
    model = load_model(Path(__file__).parents[1] / "models" / "cooling")
    rules = model.build()
    x, _ = model.sample(1000, split="iid", seed=0)
    x = x.repeat(SAMPLES // len(x), 1)
    y = torch.rand(SAMPLES, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    per_sample = 1e6 / SAMPLES
    print(f"cooling, {SAMPLES} samples, one thread, median of {REPEATS}")
    print(f"{'build':>12}  {median_ms(model.build):9.1f} ms")
    for name, call in {
        "active": lambda: rules.active(x),
        "satisfied": lambda: rules.satisfied(y, x),
        "violation": lambda: rules.violation(y, x),
    }.items():
        ms = median_ms(call)
        print(f"{name:>12}  {ms:9.1f} ms  {ms * 1e-3 * per_sample:8.3f} us a sample")


if __name__ == "__main__":
    main()
