"""Tables, claims and the figure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from _results import read_rows
from tables import described

FAMILIES = ("l1", "l2", "tables")  # of cases, each stored for itself
OURS = "gdpnet, vertex"
OURS_QP = "gdpnet, QP gradient"
SOLVED = 1e-3
# Whose distances are those of a program's optimum; the exact one where it is empty.
REFERENCES = {
    "exact": "",
    "LP": "",
    "MILP": "",
    "QPs": "",
    "MIQP": "",
    "QP": "gdpnet, QP point",
    "CNF": "gdpnet, CNF",
}
MEASURED = (
    "distance_mean",
    "exact_mean",
    "broken_1e_6",
    "broken_1e_4",
    "ties_broken_1e_4",
    "cosine_median",
    "both_us",
)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")


def file_of(family: str) -> str:
    """Where the cells of a family are stored."""
    return "peers" if family == "l1" else f"peers.{family}"


def read(folder: Path) -> pd.DataFrame:
    """The cells of all families that were measured."""
    parts = {family: folder / f"{file_of(family)}.csv" for family in FAMILIES}
    found = {family: pd.read_csv(path) for family, path in parts.items() if path.exists()}
    table = pd.concat(
        [part.assign(family=family) for family, part in found.items()], ignore_index=True
    )
    table["message"] = table["message"].fillna("")
    for name in MEASURED:
        if name not in table:  # nobody has got so far
            table[name] = math.nan
    return table


def page(folder: Path) -> str:
    """Everything for the reader, from the files of a run."""
    table = read(folder)
    many = read_rows(folder / "peers.many.csv")[0]
    stamps = [folder / f"{file_of(family)}.json" for family in FAMILIES]
    runs = [described(json.loads(path.read_text())) for path in stamps if path.exists()]
    return markdown(table, claims(table, many), "\n\n".join(dict.fromkeys(runs)))


# ---- claims -------------------------------------------------------------------------------------


def claims(table: pd.DataFrame, many: dict[str, int] | None) -> list[tuple[str, str, str, str]]:
    """Claim, wanted, measured, and whether it was met.

    Speed on cooling is told for the mixed batch and for the batch with four active rules, with the
    empty products left out and with all products; a claim is met if the least of these is enough.
    """
    found = []
    diffcp, moreau, highs = "cvxpylayers diffcp/Clarabel", "cvxpylayers MOREAU", "HiGHS in place"
    for title, ours, what, least in (
        ("forward", OURS, "forward_us", {diffcp: 250, moreau: 50, highs: 50}),
        ("forward and backward, vertex", OURS, "both_us", {diffcp: 400, moreau: 40}),
        ("forward and backward, QP 1e-2", OURS_QP, "both_us", {diffcp: 100, moreau: 12}),
    ):
        for peer, wanted in least.items():
            names = [(peer, "DNF"), (f"{peer}, all products", "all products")]
            if ours == OURS_QP and peer != highs:
                names.append((f"{peer} QP", "QP"))
            measured = [
                (f"{case}, {form}", _ratio(table, name, ours, case, 256, what))
                for case in ("cooling", "cooling, 4 rules")
                for name, form in names
            ]
            found.append(_claim(f"cooling, batch 256, {title}: over {peer}", wanted, measured))
    cnf = [
        (case, _ratio(table, "HiGHS in place, CNF", "gdpnet, CNF", case, 256, "forward_us"))
        for case in ("cooling", "cooling, 4 rules")
    ]
    found.append(_claim("cooling, batch 256, CNF forward: over HiGHS in place", 10, cnf))
    full = _ratio(table, f"{highs}, all products", OURS, "stress 10", 64, "forward_us")
    last = [("1,024 products", full)]
    found.append(_claim("stress k = 10: over HiGHS on the DNF's LP", 10_000, last))
    left = _ratio(table, highs, OURS, "stress 10", 64, "forward_us")
    same = _claim(
        "stress k = 10, empty products left out for HiGHS too", 0, [("18 products", left)]
    )
    found.append((same[0], "no claim", *same[2:3], ""))
    if many is not None:
        told = f"{many['broken']} in {many['projections']:,}, {many['ties']:,} of them made as ties"
        met = "met" if not many["broken"] else "missed"
        found.append(("rules broken at 1e-6", "0 in 100,000", told, met))
    return found


def _ratio(
    table: pd.DataFrame, peer: str, ours: str, case: str, batch: int, what: str
) -> float | None:
    values = []
    for name in (peer, ours):
        rows = table[(table.peer == name) & (table.case == case) & (table.batch == batch)]
        value = rows[what].iloc[0] if len(rows) and what in rows else math.nan
        if not math.isfinite(value):
            return None
        values.append(value)
    return values[0] / values[1]


def _claim(
    title: str, wanted: float, measured: list[tuple[str, float | None]]
) -> tuple[str, str, str, str]:
    known = [value for _, value in measured if value is not None]
    told = ", ".join(f"{x:,.0f} ({name})" for name, x in measured if x is not None)
    verdict = "not measured" if not known else "met" if min(known) >= wanted else "missed"
    if verdict == "missed":
        best = max(known) >= wanted
        verdict = f"{'partly ' if best else ''}missed, {min(known) / wanted:.2f} of it at least"
    return title, f"{wanted:,} times", told or "-", verdict


# ---- tables -------------------------------------------------------------------------------------


def markdown(table: pd.DataFrame, said: list[tuple[str, str, str, str]], about: str) -> str:
    """Everything for the reader."""
    lines = ["# Beside the peers, latest run", "", about, "", "## Claims", ""]
    lines += _rows(("claim", "wanted", "measured", ""), said)
    for (case, batch), rows in table[~table.case.str.startswith("stress")].groupby(
        ["case", "batch"], sort=False
    ):
        lines += ["", f"## {case}, batch {batch}", ""]
        titles = (
            "", "program", "forward, us", "x", "and backward, us", "x", "building, s", "MB",
            "solved", "broken 1e-6", "1e-4", "ties 1e-4", "distance less exact",
            "mean over exact", "gradient: cosine", "same", "timed / judged",
        )  # fmt: skip
        lines += _rows(titles, _case(rows))
    lines += ["", "## stress, forward, us a sample", ""]
    lines += _stress(table[table.case.str.startswith("stress")])
    return "\n".join(lines) + "\n"


def _case(rows: pd.DataFrame) -> Iterable[tuple[str, ...]]:
    ours = rows[rows.peer == OURS]
    base = {w: ours[w].iloc[0] if len(ours) else math.nan for w in ("forward_us", "both_us")}
    for row in rows.itertuples():
        if row.status != "done":
            yield (row.peer, row.program, f"{row.status}: {row.message}"[:120], *[""] * 14)
            continue
        spans = []
        for what in ("forward", "both"):
            value = getattr(row, f"{what}_us")
            if not math.isfinite(value):
                spans += ["no gradient", ""]
                continue
            low, high = getattr(row, f"{what}_q1"), getattr(row, f"{what}_q3")
            spans.append(f"{_number(value)} ({_number(low)} to {_number(high)})")
            spans.append(_number(value / base[f"{what}_us"]))
        yield (
            row.peer,
            row.program,
            *spans,
            f"{row.building_s:.2f}",
            f"{row.memory_mb:.0f} ({row.memory_added_mb:+.0f})",
            {True: "yes", False: "no", None: ""}[solved(row._asdict(), rows)],
            _share(row._asdict()["broken_1e_6"]),
            _share(row._asdict()["broken_1e_4"]),
            _share(row._asdict()["ties_broken_1e_4"]),
            f"{row.gap_least:.0e} to {row.gap_most:.0e}",
            _number(row.distance_mean / row.exact_mean),
            "" if not math.isfinite(row.cosine_median) else f"{row.cosine_median:.3f}",
            _share(row.same_gradient),
            f"{row.samples:.0f} / {row.answers:.0f}",
        )


def solved(row: dict[str, Any], rows: pd.DataFrame) -> bool | None:
    """Whether all distances are those of the program's optimum, within `SOLVED`.

    Of a linear program and of MILP that is the exact distance; of the quadratic program and of the
    CNF those of gdpnet, which reach both ways by so much. None where there is nothing to compare.

    Args:
        row: of a peer that was measured.
        rows: all of the same case and batch.
    """
    reference = REFERENCES.get(str(row["program"]))
    if reference is None or not math.isfinite(row["gap_least"]):
        return None
    low = high = 0.0
    if reference:
        ours = rows[(rows.peer == reference) & (rows.status == "done")]
        if not len(ours):
            return None
        low, high = ours["gap_least"].iloc[0], ours["gap_most"].iloc[0]
    return bool(low - SOLVED <= row["gap_least"] and row["gap_most"] <= high + SOLVED)


def _stress(rows: pd.DataFrame) -> list[str]:
    cases = list(dict.fromkeys(rows.case))
    lines = []
    for peer, own in rows.groupby("peer", sort=False):
        cells = [peer]
        for case in cases:
            row = own[own.case == case]
            if not len(row):
                cells.append("")
            elif row.status.iloc[0] == "done":
                cells.append(_number(row.forward_us.iloc[0]))
            else:
                cells.append(row.message.iloc[0].split(":")[0][:24] or row.status.iloc[0])
        lines.append(tuple(cells))
    return _rows(("", *(c.replace("stress ", "k = ") for c in cases)), lines)


def _rows(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    titles = list(titles)
    made = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    return made + [f"| {' | '.join(x.replace('|', '/') for x in row)} |" for row in rows]


def _number(value: float) -> str:
    if not math.isfinite(value):
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _share(value: float) -> str:
    return "" if not math.isfinite(value) else f"{100 * value:.3g} %"


# ---- figure -------------------------------------------------------------------------------------


def figure(table: pd.DataFrame, path: Path) -> None:
    """Time a sample of all peers, and its growth with the number of rules."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cases = [("cooling", 256, "o"), ("cooling, 4 rules", 256, "s"), ("pbmc", 256, "^")]
    table = table[table.family == "l1"]
    done = table[table.status == "done"]
    peers = [p for p in dict.fromkeys(table.peer) if (done.peer == p).any()][::-1]
    shape = {"figsize": (14, 7.2), "width_ratios": [1.25, 1.25, 1], "layout": "constrained"}
    fig, (left, middle, right) = plt.subplots(1, 3, **shape)
    middle.sharey(left)
    for ax, what, title in (
        (left, "forward", "forward"),
        (middle, "both", "forward and backward"),
    ):
        for (case, batch, marker), colour in zip(cases, COLOURS, strict=False):
            rows = done[(done.case == case) & (done.batch == batch)].set_index("peer")
            names = [p for p in peers if p in rows.index and math.isfinite(rows[f"{what}_us"][p])]
            at = [peers.index(p) for p in names]
            values = [rows[f"{what}_us"][p] for p in names]
            spread = [
                [rows[f"{what}_us"][p] - rows[f"{what}_q1"][p] for p in names],
                [rows[f"{what}_q3"][p] - rows[f"{what}_us"][p] for p in names],
            ]
            style = {"fmt": marker, "ms": 6, "color": colour, "alpha": 0.85, "lw": 1}
            ax.errorbar(values, at, xerr=spread, label=f"{case}, batch {batch}", **style)
        ax.set(xscale="log", xlabel="microseconds a sample, one thread", title=title)
        ax.grid(axis="x", alpha=0.3)
    left.set_yticks(range(len(peers)), peers)
    middle.tick_params(labelleft=False)
    middle.legend(loc="center right", bbox_to_anchor=(1.0, 0.68), fontsize=8)  # no gradients there
    chosen = (
        OURS, "gdpnet, CNF", "HiGHS in place", "HiGHS in place, all products", "Gurobi MILP",
        "cvxpylayers diffcp/Clarabel", "cvxpylayers MOREAU, all products", "PIQP",
    )  # fmt: skip
    for peer, colour, marker in zip(chosen, COLOURS, "osv^DPX*", strict=True):
        rows = done[(done.peer == peer) & done.case.str.startswith("stress")]
        ks = [int(case.split()[1]) for case in rows.case]
        right.plot(ks, rows.forward_us, marker=marker, ms=5, color=colour, label=peer)
    right.set(yscale="log", xlabel="two-term rules, d = 3", title="growth, forward")
    right.set_ylabel("microseconds a sample")
    right.grid(alpha=0.3)
    right.set_ylim(top=300 * right.get_ylim()[1])  # room for the legend
    right.legend(loc="upper left", fontsize=8)
    fig.savefig(path, dpi=110)
    plt.close(fig)
