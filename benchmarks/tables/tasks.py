"""What pages show of tasks.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ._stored import Row, Stored, number, percent, span, table

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


@cache
def _wrong_digits() -> float:
    """On which share of the test digits the true class breaks the rules; the task says it."""
    import torch
    from _own_tasks import digits

    task = digits()
    _, patches, labels = task.test()
    true = torch.nn.functional.one_hot(labels, len(task.rules.output_names)).double()
    return 1 - float(task.rules.satisfied(true, patches).double().mean())


def _cost_on_digits(stored: Stored) -> str:
    """By how many more in a hundred a trained network is wrong that is made to hold the rules."""
    rows = stored["tasks"].where(task="digits")
    base = rows.needed("mean", gradient="base network")
    held = [row for row in rows if row["gradient"] != "base network"]
    return f"{span(r['mean'] - base for r in held if r['protocol'] != 'from scratch')} %"


def _qp_on_dispatch(stored: Stored) -> str:
    """How many times the trained network's error fine-tuning with `qp` leaves."""
    rows = stored["tasks"].where(task="dispatch")
    tuned = rows.needed("mean", gradient="qp", setting="l1", protocol="fine-tuned")
    return number(tuned / rows.needed("mean", gradient="base network"))


TABLES = {"tasks": tasks}
VALUES: dict[str, Callable[[Stored], str]] = {
    "tasks.digits wrong": lambda _: percent(_wrong_digits()),
    "tasks.digits cost": _cost_on_digits,
    "tasks.qp on dispatch": _qp_on_dispatch,
}
