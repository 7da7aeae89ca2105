"""What pages show of constants.py."""

from __future__ import annotations

from ._stored import Row, Stored, number, percent, span, table

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


def _targets(stored: Stored, name: str) -> str:
    return percent(stored["constants"].needed(name, seed=0))


def _wins(stored: Stored, other: str, split: str) -> str:
    """On how many sets DNF has the lower error."""
    rows = stored["constants"]
    ahead = sum(row[f"mse_dnf_mixed_{split}"] < row[f"mse_{other}_{split}"] for row in rows)
    return f"{ahead} of {len(rows)}"


def _others(stored: Stored, name: str, split: str) -> str:
    rows = [row for row in stored["constants"] if row["seed"]]
    return f"{span(100 * row[f'{name}_{split}'] for row in rows)} %"


TABLES = {"constants": constants}
VALUES = {
    "constants.targets iid": lambda s: _targets(s, "targets_iid"),
    "constants.targets ood": lambda s: _targets(s, "targets_ood"),
    "constants.near targets iid": lambda s: _targets(s, "targets_1e_2_iid"),
    "constants.near targets ood": lambda s: _targets(s, "targets_1e_2_ood"),
    "constants.below iid": lambda s: _others(s, "below", "iid"),
    "constants.below ood": lambda s: _others(s, "below", "ood"),
    "constants.below ours iid": lambda s: _percent(s, "below_iid"),
    "constants.below ours ood": lambda s: _percent(s, "below_ood"),
    "constants.left out": lambda s: str(max(row["left_out"] for row in s["constants"])),
    "constants.wins inference iid": lambda s: _wins(s, "finetuned_inference", "iid"),
    "constants.wins inference ood": lambda s: _wins(s, "finetuned_inference", "ood"),
    "constants.wins penalty iid": lambda s: _wins(s, "finetuned_penalty", "iid"),
    "constants.wins penalty ood": lambda s: _wins(s, "finetuned_penalty", "ood"),
}


def _percent(stored: Stored, name: str) -> str:
    return percent(stored["constants"].needed(name, seed=0), 1)
