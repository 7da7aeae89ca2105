"""What the cooling page shows of studies/cooling: `study.py` there trains, and stores rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial

import numpy as np
from _results import ROOT

import gdpnet
from gdpnet.study import StudyFolder, load_model
from gdpnet.study.report import Results, mixtures, violations
from gdpnet.study.report.tables import SATISFACTION, Table, convexification, each_rule
from gdpnet.study.report.tables import number as shown

from ._stored import NotMeasuredError, Stored, described, number, percent, span

FOLDER = ROOT / "studies" / "cooling"
MERGED = FOLDER / "merged"  # rules merged one by one

PROTOCOLS, SPLITS = ("converged", "paper"), ("iid", "ood")
MERGING, SHOWN_SIZE = (250, 500), 500


@cache
def results(folder: str = "") -> Results:
    """The rows of the study, or of a part of it."""
    rows = StudyFolder(FOLDER / folder).results()
    if not rows:
        raise NotMeasuredError(f"studies/cooling/{folder}/results.csv".replace("//", "/"))
    return Results(rows)


def _lines(table: Table | None, what: str) -> list[str]:
    if table is None or not table.rows:
        raise NotMeasuredError(what)
    return table.markdown().splitlines()


def by_size(_: Stored, protocol: str, metric: str, split: str) -> list[str]:
    """One metric of every method against the training size."""
    found = results()
    sizes = [n for n in found.sizes if any(n in found.sizes_of(m, protocol) for m in found.methods)]
    where = {"split": split, "protocol": protocol}
    rows = tuple(
        (method, *(shown(metric, found.at(metric, method=method, size=n, **where)) for n in sizes))
        for method in found.methods
        if found.sizes_of(method, protocol)
    )
    name = SATISFACTION.get(metric, metric.upper())
    headers = (f"{name} {split.upper()}", *(f"n = {size}" for size in sizes))
    return _lines(Table("", headers, rows), f"protocol {protocol}")


def _mixtures(_: Stored, protocol: str, metric: str) -> list[str]:
    return _lines(mixtures(results(), protocol, metric), f"mixtures, protocol {protocol}")


def _violations(_: Stored, protocol: str, split: str) -> list[str]:
    found = violations(results(), protocol, SHOWN_SIZE, split)
    return _lines(found, f"violations, protocol {protocol}")


def _each_rule(_: Stored, protocol: str, split: str) -> list[str]:
    return _lines(each_rule(results(), protocol, SHOWN_SIZE, split), f"protocol {protocol}")


def _merged(_: Stored, protocol: str, size: int) -> list[str]:
    return _lines(convexification(results("merged"), protocol, size), f"merged, n = {size}")


def source(_: Stored, folder: str = "") -> list[str]:
    """By what and on what the study was trained, and which seeds it has."""
    found = results(folder)
    told = []
    for protocol in found.protocols:
        seeds = {
            len({row["seed"] for row in found.rows if _is(row, protocol, size)})
            for size in found.sizes
        } - {0}
        least, most = min(seeds), max(seeds)
        told.append(f"{protocol} {least if least == most else f'{least} to {most}'}")
    runs = StudyFolder(FOLDER / folder).study().get("runs", [])
    lines = [f"*`{folder + '/' if folder else ''}results.csv`: seeds: {', '.join(told)}.*"]
    return [*lines, *(line for run in runs for line in ("", f"*{described(run)}*"))]


def _is(row: dict[str, object], protocol: str, size: int) -> bool:
    return (row["protocol"], row["size"]) == (protocol, size)


TABLES: dict[str, Callable[[Stored], list[str]]] = {
    "cooling.source": source,
    "cooling.merged source": partial(source, folder="merged"),
    "cooling.converged rules ood": partial(_each_rule, protocol="converged", split="ood"),
}
for _protocol in PROTOCOLS:
    for _split in SPLITS:
        for _metric in ("mse", "csat", "csat_rules"):
            TABLES[f"cooling.{_protocol} {_metric} {_split}"] = partial(
                by_size, protocol=_protocol, metric=_metric, split=_split
            )
        TABLES[f"cooling.{_protocol} violations {_split}"] = partial(
            _violations, protocol=_protocol, split=_split
        )
    for _metric in ("mse", "csat_rules"):
        TABLES[f"cooling.{_protocol} alpha {_metric}"] = partial(
            _mixtures, protocol=_protocol, metric=_metric
        )
    for _size in MERGING:
        TABLES[f"cooling.{_protocol} merged {_size}"] = partial(
            _merged, protocol=_protocol, size=_size
        )


# ---- numbers of the text ------------------------------------------------------------------------


def _means(
    metric: str,
    method: str,
    protocol: str,
    split: str,
    sizes: Iterable[int] | None = None,
    folder: str = "",
) -> dict[int, float]:
    """Means over the seeds by size."""
    found = results(folder)
    known = [n for n in found.sizes_of(method, protocol) if sizes is None or n in sizes]
    where = {"method": method, "protocol": protocol, "split": split}
    made = {size: found.at(metric, size=size, **where).mean for size in known}
    if not made:
        raise NotMeasuredError(f"{method}, protocol {protocol}")
    return made


def _share(_: Stored, metric: str, method: str, protocol: str, split: str, folder: str = "") -> str:
    """Least and most of the sizes' means, in per cent, cut as in the tables."""
    found = _means(metric, method, protocol, split, folder=folder)
    values = [100 * value for value in found.values()]
    least, most = (f"{int(10 * value + 1e-9) / 10:g}" for value in (min(values), max(values)))
    return f"{least} %" if least == most else f"{least} to {most} %"


def _over(
    _: Stored,
    method: str,
    other: str,
    protocol: str,
    split: str,
    folder: str = "",
) -> str:
    """Least and most, over the sizes, of one method's error over another's."""
    ours = _means("mse", method, protocol, split, folder=folder)
    theirs = _means("mse", other, protocol, split, folder=folder)
    return span((value / theirs[size] for size, value in ours.items() if size in theirs), 2)


def _error(_: Stored, method: str, protocol: str, split: str, size: int) -> str:
    return number(1e3 * _means("mse", method, protocol, split, (size,))[size], 2)


def _every_seed(_: Stored) -> str:
    """On how many of the runs that give out the DNF's vertex everything holds."""
    exact = ("inference", "finetuned-inference", "dnf", "dnf-auto", "straight-through", "dnf-mixed")
    rows = [row for row in results().rows if row["method"] in exact]
    held = sum(row["csat"] == 1.0 for row in rows)
    return f"all {held:,}" if held == len(rows) else f"{held:,} of {len(rows):,}"


def _seeds(_: Stored, times: float) -> str:
    """On how many seeds DNF's error with the KKT gradient is so many times that with a mixture."""
    found = {
        method: {
            row["seed"]: row["mse"]
            for row in results().rows
            if (row["method"], row["split"]) == (method, "ood") and _is(row, "paper", SHOWN_SIZE)
        }
        for method in ("dnf", "dnf-mixed")
    }
    mixed = found["dnf-mixed"]
    above = sum(error > times * mixed[seed] for seed, error in found["dnf"].items())
    return f"{above} of {len(mixed)}"


@cache
def _targets(split: str, tolerance: float) -> float:
    """Share of the test targets that satisfy everything; they follow from the model itself."""
    model = load_model(ROOT / "models" / "cooling")
    seed, size = model.module.TEST_SEEDS[split], 2000
    x, target = model.sample(size, split=split, seed=seed)
    return float(model.build().satisfied(target, x, tolerance).double().mean())


@cache
def _below(split: str, kind: str) -> str:
    """For how many predictions the CNF's value is too low; it follows from the model itself."""
    model = load_model(ROOT / "models" / "cooling")
    rules, count = model.build(), 1000
    x, _ = model.sample(count, split=split, seed=model.module.TEST_SEEDS[split])
    draw = np.random.default_rng(0)
    if kind == "uniform":
        yhat = draw.uniform(0, 1, (count, 3))
    else:
        yhat = np.clip(model.module.centre(x.numpy()) + 0.1 * draw.normal(size=(count, 3)), 0, 1)
    dnf = gdpnet.project(rules, yhat, x)
    cnf = gdpnet.project(rules, yhat, x, relaxation="cnf")
    return percent(float((cnf.value < dnf.value - 1e-6).double().mean()), 1)


VALUES: dict[str, Callable[[Stored], str]] = {
    **{
        f"cooling.below {kind} {split}": lambda _, kind=kind, split=split: _below(split, kind)
        for kind in ("noisy", "uniform")
        for split in SPLITS
    },
    "cooling.exact runs": _every_seed,
    "cooling.stalls": partial(_seeds, times=3.0),
    "cooling.behind": partial(_seeds, times=1.0),
    "cooling.targets iid": lambda _: percent(_targets("iid", 1e-6)),
    "cooling.targets ood": lambda _: percent(_targets("ood", 1e-6)),
    "cooling.targets iid 1e-2": lambda _: percent(_targets("iid", 1e-2)),
    "cooling.targets ood 1e-2": lambda _: percent(_targets("ood", 1e-2)),
}
for _protocol in PROTOCOLS:
    for _method, _splits in (
        ("cnf-mixed", SPLITS),
        ("base", SPLITS if _protocol == "paper" else ("ood",)),
        ("finetuned-penalty", ("ood",)),
    ):
        for _split in _splits:
            VALUES[f"cooling.rules {_method} {_protocol} {_split}"] = partial(
                _share, metric="csat_rules", method=_method, protocol=_protocol, split=_split
            )
for _method, _other, _protocol, _splits in (
    ("dnf-mixed", "finetuned-inference", "paper", SPLITS),
    ("dnf-mixed", "finetuned-inference", "converged", SPLITS),
    ("dnf-mixed", "finetuned-penalty", "paper", ("ood",)),
    ("dnf-mixed", "finetuned-penalty", "converged", ("ood",)),
    ("cnf-mixed", "finetuned-inference", "paper", ("ood",)),
    ("cnf-mixed", "finetuned-inference", "converged", SPLITS),
    ("dnf", "finetuned-inference", "paper", ("iid",)),
    ("dnf", "finetuned-inference", "converged", SPLITS),
    ("dnf-auto", "dnf", "converged", SPLITS),
):
    for _split in _splits:
        VALUES[f"cooling.{_method} over {_other} {_protocol} {_split}"] = partial(
            _over, method=_method, other=_other, protocol=_protocol, split=_split
        )
for _method in (
    "dnf", "dnf-mixed", "cnf", "cnf-mixed", "finetuned-inference", "finetuned-penalty"
):  # fmt: skip
    VALUES[f"cooling.error {_method} paper ood 500"] = partial(
        _error, method=_method, protocol="paper", split="ood", size=500
    )
# Rules merged one by one: k rules in their order, s basic steps in the planner's.
for _method, _protocol, _splits in (
    ("steps:3", "converged", SPLITS),
    ("cnf", "paper", ("iid",)),
    ("pdnf:4", "paper", SPLITS),
    ("pdnf:6", "paper", ("ood",)),
    ("steps:5", "paper", ("ood",)),
):
    for _split in _splits:
        VALUES[f"cooling.merged {_method} {_protocol} {_split}"] = partial(
            _share,
            metric="csat",
            method=_method,
            protocol=_protocol,
            split=_split,
            folder="merged",
        )
for _method, _other in (("steps:1", "cnf"), ("steps:6", "steps:5")):
    VALUES[f"cooling.merged {_method} over {_other}"] = partial(
        _over, method=_method, other=_other, protocol="converged", split="iid", folder="merged"
    )
