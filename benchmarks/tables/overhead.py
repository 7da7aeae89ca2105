"""What pages show of overhead.py, beside the paper's numbers."""

from __future__ import annotations

import _paper

from ._stored import Stored, fixed, number, ratio, span, table, us


def methods(stored: Stored) -> list[str]:
    titles = [
        "method",
        "training step, batch 1, us",
        "epoch of 1,000, s",
        "step, batch 32, us",
        "inference, batch 2,000, us a sample",
        "one by one, us",
        "paper, one by one",
    ]
    return table(
        titles,
        [
            [
                row["method"],
                f"{1e6 * row['step_1_s']:.0f}",
                fixed(row["step_1_s"], 2, 1e3),
                f"{1e6 * row['step_32_s']:.0f}",
                fixed(row["batch_s"], 2, 1e6),
                f"{1e6 * row['single_s']:.0f}",
                _paper.INFERENCE.get(row["method"], ""),
            ]
            for row in stored["overhead.methods"]
        ],
        right=True,
    )


def sizes(stored: Stored) -> list[str]:
    made = []
    for row in stored["overhead.sizes"]:
        theirs = _paper.TEST_SET_SIZES.get((row["form"], row["least"]), ("",) * 4)
        cells = [f"at least {row['least']}", row["form"], str(row["samples"])]
        for name, paper in (("variables", theirs[:2]), ("rows", theirs[2:])):
            mean, deviation, least, most = (
                row[f"{name}_{what}"] for what in ("mean", "deviation", "least", "most")
            )
            cells += [f"{mean:.2f} ± {deviation:.2f}", f"{least} to {most}", *paper]
        made.append(cells)
    titles = ["active rules", "form", "samples", "variables", "least to most", "paper", ""]
    titles += ["rows and bounds", "least to most", "paper", ""]
    lines = table(titles, made, right=True)
    lines[0] = lines[0].replace("|  |", "| |")
    lines[1] = "|---|---|" + "---:|" * (len(titles) - 2)
    return lines


def active(stored: Stored) -> str:
    return ", ".join(str(row["samples"]) for row in stored["overhead.active"])


def growth(stored: Stored) -> list[str]:
    made = []
    for row in stored["overhead.growth"]:
        k = row["k"]
        cells = [str(k)]
        for form, extra in (("cnf", []), ("dnf", [fixed(row["dnf_program_s"], 0, 1e6)])):
            variables, rows = row[f"{form}_variables"], row[f"{form}_rows"]
            paper = _paper.SIZES[form.upper()].get(k)
            seconds = _paper.SECONDS[form.upper()][k] if k <= 10 else None
            ours = "cnf" if form == "cnf" else "exact"
            cells += [
                "" if variables is None else f"{variables:,} / {rows:,}",
                "" if paper is None else "{:,} / {:,g}".format(*paper),
                *extra,
                fixed(row[f"{ours}_s"], 2, 1e6),
                fixed(row[f"{ours}_single_s"], 0, 1e6),
                "" if seconds is None else f"{1e3 * seconds:.1f} ms",
            ]
        made.append(cells)
    titles = ["k", "CNF variables / rows", "paper", "CNF, us a sample", "one by one", "paper"]
    titles += ["DNF variables / rows", "paper", "DNF's program, us", "exact engine, us a sample"]
    return table([*titles, "one by one", "paper"], made, right=True)


def _method(stored: Stored, method: str, column: str) -> float:
    return stored["overhead.methods"].needed(column, method=method)


def _over(stored: Stored, method: str, base: str, column: str) -> str:
    return number(ratio(_method(stored, method, column), _method(stored, base, column)))


def _projection(stored: Stored) -> str:
    alone = _method(stored, "dnf", "single_s") - _method(stored, "base", "single_s")
    return f"{us(alone)} us"


TABLES = {"overhead.methods": methods, "overhead.sizes": sizes, "overhead.growth": growth}
VALUES = {
    "overhead.active": active,
    "overhead.dnf batch": lambda s: f"{us(_method(s, 'dnf', 'batch_s'))} us",
    "overhead.dnf single": lambda s: f"{us(_method(s, 'dnf', 'single_s'))} us",
    "overhead.dnf single projection": _projection,
    "overhead.dnf over base": lambda s: _over(s, "dnf", "base", "step_1_s"),
    "overhead.auto over base": lambda s: _over(s, "dnf-auto", "base", "step_1_s"),
    "overhead.straight over base": lambda s: _over(s, "straight-through", "base", "step_1_s"),
    "overhead.penalty over base": lambda s: _over(s, "penalty", "base", "step_1_s"),
    "overhead.cnf over penalty": lambda s: _over(s, "cnf", "penalty", "step_1_s"),
    "overhead.cnf over penalty 32": lambda s: _over(s, "cnf", "penalty", "step_32_s"),
    "overhead.exact up to 10": lambda s: span(
        1e6 * row["exact_s"] for row in s["overhead.growth"] if row["k"] <= 10
    ),
    "overhead.exact 20": lambda s: us(s["overhead.growth"].value("exact_s", k=20)),
}
