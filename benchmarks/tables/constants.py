"""What pages show of constants.py."""

from __future__ import annotations

from ._stored import Row, Stored, number, percent, table

SPLITS = ("iid", "ood")


def _both(row: Row, name: str, digits: int = 0) -> str:
    return " / ".join(percent(row[f"{name}_{split}"], digits) for split in SPLITS)


def _errors(row: Row, method: str) -> str:
    return " / ".join(number(1e3 * row[f"mse_{method}_{split}"]) for split in SPLITS)


def constants(stored: Stored) -> list[str]:
    methods = {
        "base": "base",
        "finetuned_penalty": "fine-tuned penalty",
        "finetuned_inference": "at inference",
        "cnf_mixed": "CNF",
        "dnf_mixed": "DNF",
    }
    return table(
        ["constants, IID / OOD", "targets satisfy all", "CNF's value too low", "CNF satisfies",
         "DNF satisfies", *(f"1000 MSE, {told}" for told in methods.values())],
        [
            [
                "ours" if row["seed"] == 0 else f"drawn, seed {row['seed']}",
                _both(row, "targets"),
                _both(row, "below", 1),
                _both(row, "cnf", 1),
                _both(row, "dnf", 1),
                *(_errors(row, method) for method in methods),
            ]
            for row in stored["constants"]
        ],
    )  # fmt: skip


TABLES = {"constants": constants}
VALUES: dict = {}
