"""What pages show of run_peers.py; `peers/report.py` makes its own page of the same rows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ._stored import NotMeasuredError, Row, Rows, Stored, number, ratio, span, table

OURS, OURS_CNF = "gdpnet, vertex", "gdpnet, CNF"
TITLES = {
    OURS: "gdpnet, vertex gradient",
    "gdpnet, QP gradient": "gdpnet, QP gradient",
    "HiGHS in place": "HiGHS in place",
    "Gurobi in place": "Gurobi in place",
    "Gurobi MILP": "Gurobi, MILP by big-M",
    "Clarabel": "Clarabel",
    "PIQP": "PIQP",
    "cvxpylayers diffcp/Clarabel": "cvxpylayers, diffcp with Clarabel",
    "cvxpylayers diffcp/SCS": "cvxpylayers, diffcp with SCS",
    "cvxpylayers MOREAU": "cvxpylayers, MOREAU, LP",
    "cvxpylayers MOREAU QP": "cvxpylayers, MOREAU, QP",
    "OSQP layer": "OSQP layer",
    "OSQP layer, tuned": "... tuned",
    "qpth": "qpth",
    "qpth, tuned": "... tuned",
    "proxsuite QPLayer": "proxsuite QPLayer",
    "proxsuite QPLayer, tuned": "... tuned",
    "discopt": "discopt, MILP by big-M",
    "PiShield": "PiShield, not the nearest point",
}
EUCLIDEAN = {
    OURS: "gdpnet",
    "DAQP": "DAQP, a QP for each product",
    "PIQP, QPs": "PIQP, a QP for each product",
    "Clarabel, QPs": "Clarabel, a QP for each product",
    "MOREAU, QPs": "MOREAU, a QP for each product",
    "DAQP, MIQP": "DAQP, MIQP by big-M",
    "Gurobi, MIQP": "Gurobi, MIQP by big-M",
    "discopt, MIQP": "discopt, MIQP by big-M",
}
ON_TABLES = {OURS: "gdpnet, the nearest point", "DRL": "DRL, column by column"}
CLAIMS = {
    "cooling, batch 256, ": "",
    "forward: over cvxpylayers diffcp/Clarabel": "forward, over cvxpylayers with diffcp",
    "forward: over cvxpylayers MOREAU": "... with MOREAU",
    "forward: over HiGHS in place": "... over HiGHS in place",
    "CNF ... over": "CNF forward, over",
    "vertex: over cvxpylayers diffcp/Clarabel": "vertex, over diffcp",
    "forward and backward, vertex: over cvxpylayers MOREAU": "... over MOREAU",
    "QP 1e-2: over cvxpylayers diffcp/Clarabel": "QP 1e-2, over diffcp, LP and QP",
    "forward and backward, QP 1e-2: over cvxpylayers MOREAU": "... over MOREAU, LP and QP",
    "k = 10: over": "k = 10, batch 64, over",
    "k = 10, empty": "k = 10, batch 64, empty",
}


def beside(stored: Stored) -> list[str]:
    rows = stored["peers"]

    def cell(peer: str, case: str, batch: int, column: str) -> str:
        return _cell(rows.where(peer=peer, case=case, batch=batch), column)

    def pair(peer: str, column: str) -> str:
        both = cell(peer, "cooling", 256, column), cell(peer, "cooling, 4 rules", 256, column)
        return f"{both[0]} ({both[1]})" if any(both) else ""

    titles = ["", "forward", "forward and backward", "pbmc, forward", "single, forward"]
    return table(
        [*titles, "solved", "broken", "at ties"],
        [
            [
                title,
                pair(peer, "forward_us"),
                pair(peer, "both_us"),
                cell(peer, "pbmc", 256, "forward_us"),
                cell(peer, "cooling", 1, "forward_us"),
                _solved(stored, peer),
                _shares(rows.where(peer=peer), "broken_1e_4"),
                _shares(rows.where(peer=peer), "ties_broken_1e_4"),
            ]
            for peer, title in TITLES.items()
            if rows.where(peer=peer)  # not in runs of before it was a peer
        ],
    )


def euclidean(stored: Stored) -> list[str]:
    rows = stored["peers.l2"]
    cases = ("cooling, l2", "pbmc, l2")

    def pair(peer: str, column: str) -> str:
        return " / ".join(_cell(rows.where(peer=peer, case=case), column) for case in cases)

    titles = ["cooling / pbmc, microseconds a sample", "forward", "forward and backward"]
    return table(
        [*titles, "solved", "broken at 1e-6", "farther than ours by"],
        [
            [
                title,
                pair(peer, "forward_us"),
                pair(peer, "both_us").removeprefix(" / "),
                _solved(stored, peer, "l2"),
                _shares(rows.where(peer=peer), "broken_1e_6"),
                _farthest(rows.where(peer=peer)),
            ]
            for peer, title in EUCLIDEAN.items()
        ],
    )


def on_tables(stored: Stored) -> list[str]:
    rows = stored["peers.tables"]
    titles = ["", "forward, us", "forward and backward, us", "broken at 1e-6", "by at most"]
    made = []
    for case in rows.values("case"):
        for peer, title in ON_TABLES.items():
            own = rows.where(case=case, peer=peer)
            done = own.where(status="done")
            mean, exact = done.value("distance_mean"), done.value("exact_mean")
            cells = [_cell(own, "forward_us"), _cell(own, "both_us")]
            cells += [_shares(done, "broken_1e_6"), _small(done.value("violation_most"))]
            made.append([f"{case}: {title}", *cells, number(ratio(mean, exact), 3)])
    return table([*titles, "distance over the nearest point's"], made)


def _cell(found: Rows, column: str) -> str:
    if not found:
        return ""
    if found.value("status") != "done":
        told = "no answer" if found.value("status") == "no answer" else "fails"
        return told if column == "forward_us" else ""
    value = found.value(column)
    return number(value, 3 if value and value >= 100 else 2)


def _farthest(rows: Rows) -> str:
    values = rows.values("gap_most")
    return _small(max(*values, 0.0)) if values else ""


def _small(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}" if value > 1e-12 else "0"


def _solved(stored: Stored, peer: str, family: str = "l1") -> str:
    """In how many cells a peer solved the program that it was given."""
    from peers import report

    cells = report.read(stored.folder)
    cells = cells[cells.family == family]
    own = cells[(cells.peer == peer) & (cells.status == "done")]
    known = [
        report.solved(row, cells[(cells.case == row["case"]) & (cells.batch == row["batch"])])
        for row in own.to_dict("records")
    ]
    known = [one for one in known if one is not None]
    failed = int((cells[cells.peer == peer].status == "error").sum())
    return f"{sum(known)} of {len(known) + failed}" if known else ""


def _shares(rows: Rows, column: str) -> str:
    values = [100 * value for value in rows.values(column)]
    if not values:
        return ""
    least, most = f"{min(values):.0f}", f"{max(values):.0f}"
    return f"{least} %" if least == most else f"{least} to {most} %"


def claims(stored: Stored) -> list[str]:
    from peers import report

    found = report.claims(report.read(stored.folder), dict(stored["peers.many"][0]))
    made = []
    for title, wanted, told, _ in found:
        for text, instead in CLAIMS.items():
            title = title.replace(text, instead)
        # "656 (cooling, DNF), 814 (...)": the least and the most of them
        values = [float(x.replace(",", "")) for x in re.findall(r"([\d,.]+) \(", told)]
        measured = told
        if values:
            least, most = f"{min(values):,.0f}", f"{max(values):,.0f}"
            measured = least if least == most else f"{least} to {most}"
        made.append([title, wanted, measured])
    return table(["cooling, batch 256, through the torch layer", "claimed", "measured"], made)


# ---- the nearest peers --------------------------------------------------------------------------


def _over_ours(stored: Stored, ours: str = OURS) -> Iterable[tuple[float, Row]]:
    """Forward time over ours, of all peers of the same program in all cells."""
    rows = stored["peers"].where(status="done")
    conjunctive = ours == OURS_CNF
    for row in rows:
        own = rows.value("forward_us", peer=ours, case=row["case"], batch=row["batch"])
        same = (row["program"] == "CNF") == conjunctive
        if same and "gdpnet" not in row["peer"] and row["forward_us"] and own:
            yield row["forward_us"] / own, row


def _nearest(stored: Stored, ours: str = OURS, without: str = "") -> str:
    known = [x for x in _over_ours(stored, ours) if not without or x[1]["peer"] != without]
    if not known:
        raise NotMeasuredError("any peer")
    times, row = min(known, key=lambda pair: pair[0])
    case = f"{row['case']}, batch {row['batch']}"
    return (
        f"{str(row['peer']).removesuffix(', CNF')} on {case}, takes {number(times)} times as long"
    )


def _added_memory(stored: Stored, names: Iterable[str]) -> str:
    rows = stored["peers"].where(status="done", case="cooling", batch=256)
    return f"{span(rows.value('memory_added_mb', peer=name) for name in names)} MB"


def _ms(stored: Stored, peer: str, case: str) -> str:
    return f"{number(stored['peers'].needed('forward_us', peer=peer, case=case) / 1e3)} ms"


def _times(stored: Stored, peer: str, over: str, case: str) -> str:
    values = [stored["peers"].needed("forward_us", peer=p, case=case) for p in (peer, over)]
    return number(values[0] / values[1])


def _stress(stored: Stored, peer: str) -> str:
    return _times(stored, peer, OURS, "stress 10")


def _same(stored: Stored, peer: str) -> str:
    """Share of predictions with the QP's gradient, over all cases."""
    stored["peers"].where(peer=peer, status="done").needed("same_gradient")
    return _shares(stored["peers"].where(peer=peer), "same_gradient")


TABLES = {
    "peers": beside,
    "peers.claims": claims,
    "peers.l2": euclidean,
    "peers.tables": on_tables,
}
VALUES = {
    "peers.nearest": _nearest,
    "peers.nearest but PiShield": lambda s: _nearest(s, without="PiShield"),
    "peers.nearest on CNF": lambda s: _nearest(s, OURS_CNF),
    "peers.memory": lambda s: _added_memory(s, [OURS]),
    "peers.memory of solvers": lambda s: _added_memory(
        s, ["HiGHS in place", "HiGHS cold", "Gurobi in place", "Gurobi MILP", "scipy.milp",
            "Clarabel", "PIQP"]
    ),
    "peers.memory of layers": lambda s: _added_memory(
        s, [p for p in TITLES if "cvxpylayers" in p] + ["qpth", "proxsuite QPLayer", "PiShield"]
    ),
    "peers.random 20": lambda s: _ms(s, OURS, "random 20"),
    "peers.groups 100": lambda s: _ms(s, OURS, "groups 100"),
    "peers.MILP random 20": lambda s: _times(s, "Gurobi MILP", OURS, "random 20"),
    "peers.MILP groups 100": lambda s: _times(s, "Gurobi MILP", OURS, "groups 100"),
    "peers.CNF groups 100": lambda s: _ms(s, OURS_CNF, "groups 100"),
    "peers.CNF over exact": lambda s: _times(s, OURS_CNF, OURS, "groups 100"),
    "peers.stress same": lambda s: _stress(s, "HiGHS in place"),
    "peers.stress all": lambda s: _stress(s, "HiGHS in place, all products"),
    "peers.same qpth": lambda s: _same(s, "qpth"),
    "peers.same clarabel": lambda s: _same(s, "cvxpylayers diffcp/Clarabel QP"),
    "peers.same moreau": lambda s: _same(s, "cvxpylayers MOREAU QP"),
    "peers.same osqp": lambda s: _same(s, "OSQP layer"),
    "peers.same qplayer": lambda s: _same(s, "proxsuite QPLayer"),
}  # fmt: skip
