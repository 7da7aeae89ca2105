"""What pages show of gradients.py."""

from __future__ import annotations

from ._stored import Stored, table

COLUMNS = {
    ("cooling", "from scratch"): "cooling, from scratch",
    ("cooling", "bounded"): "bounded",
    ("cooling", "fine-tuned"): "fine-tuned",
    ("simplex, first", "from scratch"): "simplex, vertex",
    ("simplex, least_norm", "from scratch"): "simplex, least norm",
}


def gradients(stored: Stored) -> list[str]:
    rows = stored["gradients"]

    def cell(gradient: str, task: str, protocol: str) -> str:
        own = {"gradient": gradient, "task": task, "protocol": protocol}
        mean, deviation = rows.value("mean", **own), rows.value("deviation", **own)
        if mean is None:
            return ""
        decimals = 1 if mean >= 10 else 2
        return f"{mean:.{decimals}f} ({deviation:.{decimals}f})"

    return table(
        ["gradient", *COLUMNS.values()],
        [
            [gradient, *(cell(gradient, *column) for column in COLUMNS)]
            for gradient in rows.values("gradient")
        ],
    )


def _fine_tuned(stored: Stored) -> str:
    """How far accuracies differ from that of projecting at inference, fine-tuned on simplices."""
    worst = 0.0
    for task in ("simplex, first", "simplex, least_norm"):
        rows = stored["gradients"].where(task=task, protocol="fine-tuned")
        base = rows.needed("mean", gradient="none: projected at inference")
        means = [row["mean"] for row in rows if not row["gradient"].startswith("none")]
        worst = max([worst, *(abs(mean - base) for mean in means)])
    return f"{worst:.1f}"


TABLES = {"gradients": gradients}
VALUES = {"gradients.fine-tuned": _fine_tuned}
