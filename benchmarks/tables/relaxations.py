"""What pages show of relaxations.py."""

from __future__ import annotations

import _paper

from ._stored import Stored, fixed, ms, number, ratio, span, table, us

COLUMNS = {
    ("CNF", "iid"): "CNF, in distribution",
    ("CNF", "ood"): "CNF, shifted",
    ("three merged", "iid"): "three merged",
    ("three merged", "ood"): "three merged, shifted",
}
LARGE = {
    "dense_rules": "20 outputs, 10 rules of 3 disjuncts of 3 rows",
    "label_groups": "simplex of 100, 20 groups",
}


def _times(stored: Stored, solver: str) -> list[float | None]:
    rows = stored["relaxations.solvers"].where(batch=256, solver=solver)
    return [rows.value("seconds", plan=plan, split=split) for plan, split in COLUMNS]


def _faster(stored: Stored, solver: str, base: str) -> list[float | None]:
    pairs = zip(_times(stored, base), _times(stored, solver), strict=True)
    return [ratio(theirs, ours) for theirs, ours in pairs]


def solvers(stored: Stored) -> list[str]:
    def plain(solver: str, digits: int = 3) -> list[str]:
        return [us(taken, digits) or "no licence" for taken in _times(stored, solver)]

    def beside(solver: str, base: str, said: str) -> list[str]:
        told = [f"{number(x)} times" for x in _faster(stored, solver, base)]
        times = [us(taken, 2) for taken in _times(stored, solver)]
        cells = [f"{a}, {b}" for a, b in zip(times, told, strict=True)]
        return [cells[0] + said, *cells[1:]]

    compiling = stored["relaxations.compiling"]
    shares = [
        ratio(
            compiling.value("cold_s", plan=plan, split=split),
            compiling.value("compile_s", plan=plan, split=split),
        )
        for plan, split in COLUMNS
    ]
    compiled = [f"1/{fixed(share, 0)}" for share in shares]
    over = "compiling all patterns of 2,000 samples, over solving them cold"
    in_place = beside("HiGHS in place", "HiGHS cold", " faster")
    extended = beside("extended", "HiGHS in place", " faster than HiGHS in place")
    return table(
        ["", *COLUMNS.values()],
        [
            ["a new HiGHS for every sample", *plain("HiGHS cold")],
            ["HiGHS in place", *in_place],
            ["Gurobi in place", *plain("Gurobi in place")],
            ["extended", *extended],
            ["exact (the DNF, not written down)", *plain("exact", 2)],
            [over, f"{compiled[0]} of the time", *compiled[1:]],
        ],
    )


def large(stored: Stored) -> list[str]:
    return table(
        ["", "rows", "HiGHS in place, ms", "compact form, ms", ""],
        [
            [
                LARGE.get(row["problem"], row["problem"]),
                f"{row['rows']:,} and {row['compact_rows']:,}",
                ms(row["highs_s"], 3),
                ms(row["compact_s"]),
                f"{number(ratio(row['highs_s'], row['compact_s']))} times faster",
            ]
            for row in stored["relaxations.large"]
        ],
    )


def sizes(stored: Stored) -> list[str]:
    rows = stored["relaxations.sizes"]
    made = []
    for k in (2, 4, 6, 8, 10):
        cells = []
        for form in ("CNF", "DNF"):
            own = rows.where(k=k, form=form)
            told = f"{own.value('variables'):,} / {own.value('rows'):,}" if own else ""
            cells += [told, "{:,} / {:,g}".format(*_paper.SIZES[form][k])]
        made.append([str(k), *cells])
    titles = ["k", "CNF variables / rows", "paper", "DNF variables / rows", "paper"]
    return table(titles, made)


def _compact(stored: Stored) -> str:
    rows = stored["relaxations.large"]
    return span(ratio(row["highs_s"], row["compact_s"]) for row in rows)


def _gurobi(stored: Stored) -> str:
    """How much less time Gurobi takes than HiGHS, in per cent."""
    found = _faster(stored, "HiGHS in place", "Gurobi in place")
    return f"{span(100 * (1 - x) for x in found if x is not None)} %"


def conic(stored: Stored) -> list[str]:
    """Clarabel's time a sample with the Euclidean norm."""
    return table(
        ["norm l2, by Clarabel", "relaxation", "variables, at most", "cones", "us a sample"],
        [
            [
                f"{row['problem']}{', shifted' if row['split'] == 'ood' else ''}",
                f"`{row['relaxation']}`",
                str(row["variables"]),
                str(row["cones"]),
                us(row["seconds"]),
            ]
            for row in stored["relaxations.conic"]
        ],
    )


TABLES = {
    "relaxations.solvers": solvers,
    "relaxations.large": large,
    "relaxations.conic": conic,
    "relaxations.sizes": sizes,
}
VALUES = {
    "relaxations.extended": lambda s: span(_faster(s, "extended", "HiGHS in place")),
    "relaxations.in place": lambda s: span(_faster(s, "HiGHS in place", "HiGHS cold")),
    "relaxations.gurobi": _gurobi,
    "relaxations.compact": _compact,
    "relaxations.groups rows": lambda s: (
        f"{s['relaxations.large'].needed('compact_rows', problem='label_groups'):,}"
    ),
    "relaxations.cnf us": lambda s: span(
        1e6 * x for x in _times(s, "extended")[:2] if x is not None
    ),
}
