"""What the page of marker genes shows of studies/pbmc, where `measure.py` stores it."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from statistics import fmean
from typing import Any

from _results import ROOT, read_rows

from gdpnet.study import StudyFolder
from gdpnet.study.report import Results, violations

from ._stored import NotMeasuredError, Rows, Stored, described, table

FOLDER = ROOT / "studies" / "pbmc"
# Scripts of a study import each other; a page needs their names alone.
_NAMES = runpy.run_path(str(FOLDER / "names.py"))
NAMES: dict[str, str] = _NAMES["NAMES"]
WAYS: dict[str, str] = _NAMES["WAYS"]

PROTOCOL, SPLIT = "pbmc", "test"
SHOWN = (*_NAMES["MEASURES"], "csat_conflict_free", "ties")
TITLES = (
    "method", "accuracy", "macro-F1", "precision", "recall", "CSAT, all cells",
    "CSAT, conflict-free", "ties",
)  # fmt: skip


@cache
def results() -> Results:
    """The rows of the study."""
    rows = StudyFolder(FOLDER).results()
    if not rows:
        raise NotMeasuredError("studies/pbmc/results.csv")
    return Results(rows)


@cache
def measured(name: str) -> Rows:
    """What was measured on its networks."""
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        raise NotMeasuredError(f"studies/pbmc/{name}.csv")
    return Rows(read_rows(path))


def _mean(rows: Iterable[dict[str, Any]], column: str) -> float:
    return fmean(row[column] for row in rows)


def _sizes() -> list[str]:
    return [f"n = {size}" for size in results().sizes]


# ---- tables -------------------------------------------------------------------------------------


def source(_: Stored) -> list[str]:
    """By what and on what the study was trained."""
    runs = StudyFolder(FOLDER).study().get("runs", [])
    head = f"*`results.csv`: {len(results().seeds)} seeds.*"
    return [head, *(line for run in runs for line in ("", f"*{described(run)}*"))]


def every_method(_: Stored) -> list[str]:
    """The five tables: mean and deviation, with the paper's mean in brackets."""
    lines: list[str] = []
    for k, size in enumerate(results().sizes):
        rows = []
        for method, name in NAMES.items():
            found = [results().at(column, method=method, size=size) for column in SHOWN]
            cells = [f"{value.mean:.3f} ± {value.deviation:.3f}" for value in found[:-1]]
            for column, printed in enumerate(_NAMES["PAPER"].get(method, ((),) * 5)[k]):
                cells[column] += f" ({printed:.3f})"
            rows.append([name, *cells, f"{found[-1].mean:.2f}"])
        title = f"### n = {size} (paper: {_NAMES['PAPER_SIZES'][k]})"
        lines += [*([""] if lines else []), title, "", *table(TITLES, rows)]
    return lines


def gained(method: str, size: int, other: str = "base") -> list[float]:
    """What a method adds to macro-F1, seed by seed."""
    by_method = [
        {row["seed"]: row["macro_f1"] for row in results().rows if _is(row, name, size)}
        for name in (method, other)
    ]
    return [value - by_method[1][seed] for seed, value in by_method[0].items()]


def _is(row: dict[str, Any], method: str, size: int) -> bool:
    return (row["method"], row["size"]) == (method, size)


def gains(_: Stored) -> list[str]:
    """What each method changes in macro-F1 against the base."""
    rows = []
    for method, name in NAMES.items():
        if method in ("base", "rules"):
            continue
        changes = [gained(method, size) for size in results().sizes]
        told = [f"{fmean(one):+.3f} ({sum(x > 0 for x in one)})" for one in changes]
        rows.append([name, *told])
    return table(["method", *_sizes()], rows)


def sizes_of_violations(_: Stored, size: int) -> list[str]:
    """Shares within tolerances, and how much is broken."""
    found = violations(results(), PROTOCOL, size, SPLIT, rules=True)
    if found is None:
        raise NotMeasuredError("violations")
    rows = [(NAMES[row[0]], *row[1:]) for row in found.rows]
    return table(found.headers, rows, right=True)


def right_and_wrong(_: Stored) -> list[str]:
    """Accuracy by whether the rules are right."""
    rows = []
    stored = measured("right_and_wrong")
    for rules in ("right", "wrong"):
        for method in ("base", "inference", "dnf"):
            own = stored.where(rules=rules, method=method)
            told = f"rules {rules}, {own[0]['cells']} cells: {NAMES[method]}"
            means = [_mean(own.where(size=size), "accuracy") for size in results().sizes]
            rows.append([told, *(f"{value:.3f}" for value in means)])
    return table(["cells", *_sizes()], rows)


def ties(_: Stored) -> list[str]:
    """Macro-F1 by how two equal classes are labelled."""
    rows = []
    stored = measured("ties")
    for way in stored.values("way"):
        means = [_mean(stored.where(way=way, size=size), "macro_f1") for size in results().sizes]
        rows.append([way, *(f"{value:.3f}" for value in means)])
    base = [results().at("macro_f1", method="base", size=size).mean for size in results().sizes]
    rows.append(["the base network, for comparison", *(f"{value:.3f}" for value in base)])
    return table(["label of two equal classes", *_sizes()], rows)


def rule_sets(_: Stored) -> list[str]:
    """Base networks projected at inference by all rule sets."""
    base = [results().at("macro_f1", method="base", size=size).mean for size in results().sizes]
    rows = [["none", "", "", "", *(f"{value:.3f}" for value in base)]]
    stored = measured("rule_sets")
    for name in stored.values("rules"):
        for rho in stored.values("rho"):
            own = stored.where(rules=name, rho=rho)
            cells = [
                " / ".join(
                    f"{_mean(own.where(size=size), column):.3f}"
                    for column in ("macro_f1", "macro_f1_by_network")
                )
                for size in results().sizes
            ]
            shares = (own[0]["right"], own[0]["contradictory"], min(row["csat"] for row in own))
            told = [f"{shares[0]:.2f}", f"{shares[1]:.3f}", f"{shares[2]:.3f}"]
            rows.append([f"{name}, rho {rho}", *told, *cells])
    return table(["rules", "right", "contradictory", "CSAT", *_sizes()], rows)


def conflicts(_: Stored, rho: float) -> list[str]:
    """What can be done about contradictory cells: means over sizes and seeds."""
    own = measured("conflicts").where(rho=rho)
    ends = (results().sizes[0], results().sizes[-1])
    rows = []
    for way, told in WAYS.items():
        chosen = own.where(way=way)
        cells = [_mean(chosen.where(size=size), "accuracy") for size in ends]
        cells += [
            _mean(chosen, column)
            for column in ("macro_f1", "contradictory", "held", "held_contradictory")
        ]
        rows.append([told, *(f"{value:.3f}" for value in cells)])
    titles = [
        "contradictory cells", f"accuracy, n = {ends[0]}", f"n = {ends[1]}", "macro-F1",
        "accuracy, contradictory cells", "active rules that hold", "in contradictory cells",
    ]  # fmt: skip
    tested = int(results().rows[0]["samples"])
    head = f"rho = {rho:g}, {own[0]['cells']} contradictory cells of {tested}:"
    return [head, "", *table(titles, rows)]


def cells(_: Stored) -> list[str]:
    """A few cells, explained."""
    lines: list[str] = []
    stored = measured("cells")
    for kind in stored.values("kind"):
        own = stored.where(kind=kind)
        told = own[0]
        lines += [
            *([""] if lines else []),
            f"**{kind}** ({told['such']} such): {told['cell']}, truly {told['true']}, predicted "
            f"{told['predicted']}, result {told['result']} ({told['status']})",
            "",
        ]
        columns = ("rule", "expression", "asks_for", "prediction", "effect")
        titles = ("rule", "expression", "asks for", "the prediction", "effect")
        lines += table(titles, [[str(row[column]) for column in columns] for row in own])
    return lines


TABLES: dict[str, Callable[[Stored], list[str]]] = {
    "pbmc.source": source,
    "pbmc.methods": every_method,
    "pbmc.gains": gains,
    "pbmc.right and wrong": right_and_wrong,
    "pbmc.ties": ties,
    "pbmc.rule sets": rule_sets,
    "pbmc.conflicts 0.5": partial(conflicts, rho=0.5),
    "pbmc.conflicts 0.6": partial(conflicts, rho=0.6),
    "pbmc.violations 12": partial(sizes_of_violations, size=12),
    "pbmc.violations 475": partial(sizes_of_violations, size=475),
    "pbmc.cells": cells,
}


# ---- numbers of the text ------------------------------------------------------------------------


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("0.", ".")


def _listed(told: Sequence[str]) -> str:
    """The sizes' values as a sentence has them."""
    named = [f"{value} at {size}" for value, size in zip(told, results().sizes, strict=True)]
    return ", ".join([f"{named[0]} cells", *named[1:]])


def _gain(_: Stored, method: str, other: str = "base") -> str:
    return _listed([_signed(fmean(gained(method, size, other))) for size in results().sizes])


def _gain_with_network(_: Stored) -> str:
    """DNF against the base where the network names one of two equal classes."""
    own = measured("ties").where(way="the one the network predicted higher")
    return _listed(
        [
            _signed(
                _mean(own.where(size=size), "macro_f1")
                - results().at("macro_f1", method="base", size=size).mean
            )
            for size in results().sizes
        ]
    )


def _satisfied(_: Stored, methods: Sequence[str], sizes: Sequence[int] | None = None) -> str:
    """Least and most of the sizes' means over conflict-free cells, in per cent."""
    values = [
        100 * results().at("csat_conflict_free", method=method, size=size).mean
        for method in methods
        for size in sizes or results().sizes
    ]
    least, most = f"{min(values):.0f}", f"{max(values):.0f}"
    return f"{least} %" if least == most else f"{least} to {most} %"


def _whole(_: Stored, methods: Sequence[str]) -> str:
    """On how many runs every conflict-free cell satisfies all rules."""
    rows = [row for row in results().rows if row["method"] in methods]
    held = sum(row["csat_conflict_free"] == 1.0 for row in rows)
    return f"all {held}" if held == len(rows) else f"{held} of {len(rows)}"


def _all_cells(_: Stored) -> str:
    return f"{results().at('csat', method='dnf').mean:.3f}".lstrip("0")


def _accuracy(_: Stored, rho: float, way: str, size: int | None, column: str = "accuracy") -> str:
    own = measured("conflicts").where(rho=rho, way=way)
    chosen = own if size is None else own.where(size=size)
    return f"{_mean(chosen, column):.3f}".lstrip("0")


EXACT = ("inference", "inference-least-norm", "dnf", "dnf-mixed", "dnf-least-norm", "dnf-nearest")
VALUES: dict[str, Callable[[Stored], str]] = {
    "pbmc.exact runs": partial(_whole, methods=EXACT),
    "pbmc.CNF runs": partial(_whole, methods=("cnf", "cnf-mixed")),
    "pbmc.csat all cells": _all_cells,
    "pbmc.csat base": partial(_satisfied, methods=("base",)),
    "pbmc.csat penalties": partial(_satisfied, methods=("penalty", "finetuned-penalty")),
    "pbmc.csat relaxed": partial(
        _satisfied, methods=("cnf-relaxed", "dnf-relaxed"), sizes=(119, 237, 475)
    ),
    "pbmc.gain dnf": partial(_gain, method="dnf"),
    "pbmc.gain finetuned-base": partial(_gain, method="finetuned-base"),
    "pbmc.gain penalty": partial(_gain, method="penalty"),
    "pbmc.gain dnf over inference": partial(_gain, method="dnf", other="inference"),
    "pbmc.gain dnf-mixed over dnf": partial(_gain, method="dnf-mixed", other="dnf"),
    "pbmc.gain dnf over dnf-least-norm": partial(_gain, method="dnf", other="dnf-least-norm"),
    "pbmc.gain dnf-nearest over dnf": partial(_gain, method="dnf-nearest", other="dnf"),
    "pbmc.gain with network": _gain_with_network,
}
for _rho, _way, _size in (
    (0.6, "none", 12), (0.6, "none", 475), (0.6, "price 1", 12), (0.6, "price 1", 475),
):  # fmt: skip
    VALUES[f"pbmc.accuracy {_rho} {_way} {_size}"] = partial(
        _accuracy, rho=_rho, way=_way, size=_size
    )
for _way in ("pass", "price 0.5"):
    VALUES[f"pbmc.macro-F1 0.5 {_way}"] = partial(
        _accuracy, rho=0.5, way=_way, size=None, column="macro_f1"
    )
