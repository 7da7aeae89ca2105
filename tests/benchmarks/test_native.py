"""Two engines side by side, and counts of instructions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from instructions import compared, write
from native import CASES, FIRST, Side, digest

import gdpnet

ROOT = Path(gdpnet.__file__).parents[1]
SINGLE = ("a single prediction", "`gdpnet.project`, float64")


def test_a_worker_makes_and_times_cases() -> None:
    side = Side(sys.executable, ROOT)
    made = side.ask(do="make", case=SINGLE, least=1e-3)
    assert made["answer"] >= 0.0
    assert 0.0 < side.ask(do="time")["seconds"] < 1.0
    assert "KeyError" in side.ask(do="make", case=("nothing", "of this name"), least=1e-3)["failed"]
    assert made == side.ask(do="make", case=SINGLE, least=1e-3)
    side.close()


def test_a_first_use_is_told_with_its_imports() -> None:
    told = Side(sys.executable, ROOT).fresh("gradient: vertex")
    assert min(told[what] for what in ("torch", "gdpnet", "rules", "first")) > 0.0
    assert told["first_peak"] >= told["gdpnet_peak"] >= told["torch_peak"]


def test_a_first_use_that_fails_is_told() -> None:
    broken = Side(sys.executable, ROOT / "nowhere")
    broken._command[0] = "false"
    assert "failed" in broken.fresh("projection")


def test_answers_are_compared_by_a_number() -> None:
    assert digest(torch.tensor([1.0, 2.0])) == 3.0
    assert digest([torch.ones(2), torch.ones(3)]) == 5.0


def test_names_are_text_of_a_table() -> None:
    assert not any("|" in word for case in CASES for word in case)
    assert "projection" in FIRST


@pytest.mark.parametrize(
    ("now", "told"), [(102, False), (104, True), (50, False)], ids=["noise", "more", "less"]
)
def test_more_instructions_are_told(now: int, told: bool) -> None:
    old = {"problem": "a", "samples": 1, "instructions": 100, "nodes": 3, "compiler": "c++ 1.2.3"}
    ((line, more),) = compared([old | {"instructions": now}], [old])
    assert more is told
    assert ("MORE" in line) is told


def test_counts_of_another_compiler_are_not_compared() -> None:
    old = {"problem": "a", "samples": 1, "instructions": 100, "nodes": 3, "compiler": "c++ 1.2.3"}
    new = old | {"instructions": 200, "compiler": "c++ 2.0.0"}
    assert [more for _, more in compared([new, old | {"problem": "b"}], [old])] == [False, False]


def test_arrays_are_written_without_loss(tmp_path: Path) -> None:
    write(tmp_path / "arrays", iter([("third", [1 / 3, 2.0]), ("yes", True), ("none", [])]))
    lines = [line.split() for line in (tmp_path / "arrays").read_text().splitlines()]
    assert [line[:2] for line in lines] == [["third", "2"], ["yes", "1"], ["none", "0"]]
    assert [float.fromhex(x) for x in lines[0][2:]] == [1 / 3, 2.0]
