"""What pages show of layer.py."""

from __future__ import annotations

from ._stored import NotMeasuredError, Stored, fixed, number, percent, ratio, span, table, us

GRADIENTS = {"straight_through": "straight-through", "vertex": "vertex", "qp": "QP 1e-2"}
PEERS = {
    "gdpnet, vertex gradient": "gdpnet, vertex",
    "gdpnet, QP gradient": "gdpnet, QP gradient",
    "cvxpylayers DIFFCP, LP": "cvxpylayers, diffcp with Clarabel, LP",
    "cvxpylayers DIFFCP, QP": "... QP",
    "cvxpylayers MOREAU, LP": "cvxpylayers, MOREAU, LP",
    "cvxpylayers MOREAU, QP": "... QP",
}


def overhead(stored: Stored) -> list[str]:
    rows = stored["layer.overhead"]
    made = []
    for name, title in GRADIENTS.items():
        for row in rows.where(batch=256, gradient=name):
            made.append(
                [
                    f"batch 256, {title}",
                    f"{fixed(ratio(row['no_grad_s'], row['kernel_s']))} x kernel",
                    f"{fixed(ratio(row['forward_s'], row['kernel_kept_s']))} x",
                    f"{fixed(ratio(row['both_s'], row['forward_s']))} x forward",
                ]
            )
    for name in ("vertex", "qp"):
        for row in rows.where(batch=1, gradient=name):
            times = [f"{us(row[c])} us" for c in ("no_grad_s", "forward_s", "both_s")]
            made.append([f"batch 1, {GRADIENTS[name]}", *times])
    return table(["", "no grad", "forward", "forward and backward"], made)


def training(stored: Stored) -> list[str]:
    rows = stored["layer.training"]
    plain = rows.value("seconds", gradient="no layer")
    return table(
        ["20 epochs, 500 samples, batch 32", "seconds", "over the network alone"],
        [
            [
                row["gradient"] if row["gradient"] == "no layer" else f"`{row['gradient']}`",
                fixed(row["seconds"]),
                "" if row["seconds"] == plain else f"{fixed(ratio(row['seconds'], plain))} times",
            ]
            for row in rows
        ],
    )


def cvxpylayers(stored: Stored) -> list[str]:
    rows = stored["layer.cvxpylayers"]
    columns = [(form, active) for form in ("cnf", "dnf") for active in (2, 4)]

    def cell(peer: str, form: str, active: int) -> str:
        found = rows.where(peer=peer, form=form, active=active)
        if found and found.value("failed"):
            return "failed"
        return fixed(found.value("both_s"), 1 if "gdpnet" in peer else 0, 1e6)

    return table(
        ["", *(f"{form.upper()}, {active} rules" for form, active in columns)],
        [
            [title, *(cell(peer, form, active) for form, active in columns)]
            for peer, title in PEERS.items()
        ],
    )


def _alone(stored: Stored, column: str, batch: int) -> str:
    return f"{us(stored['layer.overhead'].value(column, batch=batch))} us"


def _broken(stored: Stored) -> str:
    """Of the QPs' points of the peers, with the DNF."""
    rows = stored["layer.cvxpylayers"].where(form="dnf")
    shares = [row["broken"] for row in rows if row["peer"].endswith("QP") and "cvx" in row["peer"]]
    return f"{span(100 * share for share in shares if share is not None)} %"


def _over_moreau(stored: Stored) -> str:
    rows = stored["layer.cvxpylayers"].where(form="cnf")
    found = [
        ratio(
            rows.value("both_s", peer="cvxpylayers MOREAU, QP", active=active),
            rows.value("both_s", peer="gdpnet, QP gradient", active=active),
        )
        for active in (2, 4)
    ]
    return " and ".join(number(value) for value in found)


def _peer_us(stored: Stored, words: str) -> str:
    rows = stored["layer.cvxpylayers"]
    return span(1e6 * row["both_s"] for row in rows if words in row["peer"] and row["both_s"])


def _difference(stored: Stored) -> str:
    worst = max(stored["layer.cvxpylayers"].values("difference"), default=None)
    if worst is None:
        raise NotMeasuredError("any QP")
    return f"{worst:.0e}".replace("e-0", "e-")


def _cosine(stored: Stored) -> str:
    least = min(stored["layer.cvxpylayers"].values("cosine"), default=None)
    if least is None:
        raise NotMeasuredError("any QP")
    return f"{least:.3f}"


def _breaks_none(stored: Stored) -> str:
    rows = stored["layer.cvxpylayers"].where(form="dnf")
    shares = [row["broken"] for row in rows if "gdpnet" in row["peer"]]
    return percent(max(share for share in shares if share is not None), 1).replace("0.0", "0")


TABLES = {"layer.overhead": overhead, "layer.training": training, "layer.cvxpylayers": cvxpylayers}
VALUES = {
    "layer.kernel 256": lambda stored: _alone(stored, "kernel_s", 256),
    "layer.kernel 1": lambda stored: _alone(stored, "kernel_s", 1),
    "layer.nothing": lambda stored: _alone(stored, "nothing_s", 256),
    "layer.broken": _broken,
    "layer.broken by ours": _breaks_none,
    "layer.over moreau": _over_moreau,
    "layer.difference": _difference,
    "layer.cosine": _cosine,
    "layer.diffcp us": lambda stored: _peer_us(stored, "DIFFCP"),
    "layer.moreau us": lambda stored: _peer_us(stored, "MOREAU"),
    "layer.vertex us": lambda stored: _peer_us(stored, "gdpnet, vertex"),
}
