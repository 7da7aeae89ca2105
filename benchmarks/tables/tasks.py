"""What pages show of tasks.py."""

from __future__ import annotations

from ._stored import Row, Stored, table

TASKS = {
    "dispatch": ("l1", "l2"),
    "waypoints": ("l1", "l2"),
    "digits": ("l1", "l1, least norm", "l2"),
}


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    decimals = 1 if row["mean"] >= 10 else 2
    return f"{row['mean']:.{decimals}f} ({row['deviation']:.{decimals}f})"


def tasks(stored: Stored) -> list[str]:
    """From scratch / fine-tuned, by task and setting."""
    rows = stored["tasks"]
    columns = [(task, setting) for task, settings in TASKS.items() for setting in settings]

    def cell(gradient: str, task: str, setting: str) -> str:
        own = rows.where(gradient=gradient, task=task)
        if gradient == "base network":
            return _cell(next(iter(own), None))
        found = [own.where(setting=setting, protocol=p) for p in ("from scratch", "fine-tuned")]
        both = [_cell(one[0]) for one in found if one]
        alone = own.where(setting=setting, protocol="none")
        return " / ".join(both) or _cell(alone[0] if alone else None)

    units = {row["task"]: row["unit"] for row in rows}
    return table(
        ["from scratch / fine-tuned", *(f"{t}, {s} ({units[t]})" for t, s in columns)],
        [
            [gradient, *(cell(gradient, *column) for column in columns)]
            for gradient in rows.values("gradient")
        ],
    )


TABLES = {"tasks": tasks}
VALUES: dict = {}
