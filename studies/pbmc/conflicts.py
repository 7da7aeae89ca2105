"""Cells whose rules contradict each other: what to do about them.

python studies/pbmc/conflicts.py [FOLDER]    (GDPNET_DATA as for study.py)

The base networks' predictions for the test cells are projected in several ways: a contradictory
cell keeps its prediction ("pass"), breaks all rules as little as possible ("nearest"), is projected
with the fewest rules left out ("drop"), or every rule may be broken at a price. Writes
conflicts.csv beside this file, and the table of docs/studies/pbmc.md between `<!-- conflicts -->`
and `<!-- end -->`.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, get_type_hints

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "studies" / "pbmc.md"
FILE = HERE / "conflicts.csv"

PRICES = (0.25, 0.5, 1.0)
RHOS = (0.5, 0.6)
WAYS = {
    "none": "no rules",
    "pass": "pass",
    "nearest": "nearest",
    "drop": "drop",
    **{f"price {price:g}": f"every rule priced at {price:g}" for price in PRICES},
}


class Measured(NamedTuple):
    """A line of conflicts.csv.

    Attributes:
        rho: least probability that the rules ask for.
        way: key of `WAYS`.
        size: of the training set.
        seed: of the network.
        cells: number of contradictory test cells.
        accuracy: over all test cells.
        macro_f1: over all test cells.
        contradictory: accuracy over contradictory cells.
        held: share of the active rules that hold, over all test cells.
        held_contradictory: the same over contradictory cells.
    """

    rho: float
    way: str
    size: int
    seed: int
    cells: int
    accuracy: float
    macro_f1: float
    contradictory: float
    held: float
    held_contradictory: float


def main() -> None:
    from _study import Study

    study = Study(sys.argv[1] if len(sys.argv) > 1 else "build/pbmc-C")
    rows = [row for rho in RHOS for row in measure(study, rho)]
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Measured._fields)
        writer.writerows([[f"{v:.6g}" if isinstance(v, float) else v for v in r] for r in rows])
    PAGE.write_text(filled_in(PAGE.read_text(encoding="utf-8"), results()), encoding="utf-8")


def measure(study: Any, rho: float) -> list[Measured]:
    """All ways, sizes and seeds for rules with a least probability."""
    from _study import SEEDS

    import gdpnet

    model, data = study.model, study.task.test("test")
    rules, x = model.build(rho=rho), data.rule_x
    active = rules.active(x)
    priced = {f"price {price:g}": model.priced(price, rho=rho).rules for price in PRICES}
    found = []
    for size in study.sizes:
        for seed in SEEDS:
            yhat = study.predicted("base", size, seed)
            exact = gdpnet.project(rules, yhat, x)
            apart = exact.status == gdpnet.Status.CONFLICT
            for way in WAYS:
                if way == "none":
                    y = yhat
                elif way in priced:
                    y = gdpnet.project(priced[way], yhat, x).y
                else:
                    y = gdpnet.project(rules, yhat, x, on_conflict=way).y
                share = model.labels(y).gather(1, data.target[:, None])[:, 0]
                holds = (rules.violation(y, x) <= 1e-6) & active
                found.append(
                    Measured(
                        *(rho, way, size, seed, int(apart.sum())),
                        accuracy=float(share.mean()),
                        macro_f1=model.metrics(y, data.target)["macro_f1"],
                        contradictory=float(share[apart].mean()),
                        held=float(holds.sum() / active.sum()),
                        held_contradictory=float(holds[apart].sum() / active[apart].sum()),
                    )
                )
    return found


def results() -> list[Measured]:
    """What conflicts.csv has."""
    kinds = get_type_hints(Measured)
    with FILE.open(encoding="utf-8", newline="") as file:
        return [
            Measured(**{name: kinds[name](value) for name, value in row.items()})
            for row in csv.DictReader(file)
        ]


def table(rows: list[Measured], rho: float) -> str:
    """Means over sizes and seeds; accuracy at the smallest and the largest size."""
    own = [row for row in rows if row.rho == rho]
    sizes = sorted({row.size for row in own})
    lines = [
        f"| contradictory cells | accuracy, n = {sizes[0]} | n = {sizes[-1]} | macro-F1 "
        "| accuracy, contradictory cells | active rules that hold | in contradictory cells |",
        "|---|---|---|---|---|---|---|",
    ]

    def mean(rows: list[Measured], name: str) -> str:
        return f"{fmean(getattr(row, name) for row in rows):.3f}"

    for way, told in WAYS.items():
        chosen = [row for row in own if row.way == way]
        ends = [[row for row in chosen if row.size == size] for size in (sizes[0], sizes[-1])]
        entries = [*(mean(end, "accuracy") for end in ends), mean(chosen, "macro_f1")]
        entries += [mean(chosen, name) for name in ("contradictory", "held", "held_contradictory")]
        lines.append(f"| {told} | {' | '.join(entries)} |")
    return "\n".join(lines)


def filled_in(page: str, rows: list[Measured]) -> str:
    """The page with the tables that follow from the results."""
    parts = []
    for rho in RHOS:
        count = next(row.cells for row in rows if row.rho == rho)
        parts.append(f"rho = {rho:g}, {count} contradictory cells of 264:\n\n{table(rows, rho)}")
    before, rest = page.split("<!-- conflicts -->\n")
    after = rest.split("<!-- end -->", 1)[1]
    both = "\n\n".join(parts)
    return f"{before}<!-- conflicts -->\n{both}\n<!-- end -->{after}"


if __name__ == "__main__":
    main()
