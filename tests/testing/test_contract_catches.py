"""The contract tells wrong solvers from right ones: each of them fails the test that is named."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import gdpnet
from gdpnet import Status
from gdpnet.testing import BY_NAME, BackendContract, Problem

Change = Callable[[Any, torch.Tensor], dict[str, Any]]
"""What a wrong solver answers instead, of the right answer and the predictions."""


def wrong(change: Change, **attributes: Any) -> BackendContract:
    class Wrong(BackendContract):
        solver = "exact"

        def project(self, rules: Any, yhat: Any, x: Any = None, **keywords: Any) -> Any:
            p = super().project(rules, yhat, x, **keywords)
            names = ("y", "status", "distance", "value", "disjunct")
            return SimpleNamespace(**{k: getattr(p, k) for k in names} | change(p, yhat))

    contract = Wrong()
    for name, value in attributes.items():
        setattr(contract, name, value)
    return contract


def moved(p: Any) -> torch.Tensor:
    return p.status == Status.PROJECTED


BOXES, CONFLICT = BY_NAME["two_boxes"], BY_NAME["contradictory_rules"]

ANSWERS: dict[str, tuple[Change, Problem]] = {
    "broken rules": (lambda p, yhat: {"y": yhat}, BOXES),
    "not the nearest": (lambda p, yhat: {"distance": p.distance * 1.001}, BOXES),
    "no lower bound": (lambda p, yhat: {"value": p.value + 1e-3}, BOXES),
    "another disjunct": (lambda p, yhat: {"disjunct": 1 - p.disjunct}, BOXES),
    "no disjunct": (lambda p, yhat: {"disjunct": -torch.ones_like(p.disjunct)}, BOXES),
    "all unchanged": (lambda p, yhat: {"status": torch.zeros_like(p.status)}, BOXES),
    "all contradictory": (lambda p, yhat: {"status": torch.full_like(p.status, 3)}, BOXES),
    "never contradictory": (lambda p, yhat: {"status": torch.ones_like(p.status)}, CONFLICT),
    "moved on conflict": (lambda p, yhat: {"y": p.y + 1e-3}, CONFLICT),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_wrong_answers(name: str) -> None:
    change, problem = ANSWERS[name]
    with pytest.raises(AssertionError, match=problem.name):
        wrong(change).test_problem(problem)
    wrong(lambda p, yhat: {}).test_problem(problem)


def test_satisfied_predictions_that_move() -> None:
    contract = wrong(lambda p, yhat: {"y": torch.where(moved(p)[:, None], p.y, p.y + 1e-12)})
    with pytest.raises(AssertionError, match="is moved"):
        contract.test_satisfied_predictions_pass_unchanged(BOXES)


def test_a_relaxation_that_calls_itself_exact() -> None:
    class Relaxed(BackendContract):
        relaxation = "cnf"
        exact = True

    with pytest.raises(AssertionError, match="RELAXED"):
        Relaxed().test_problem(BY_NAME["jl_midsize"])


def test_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="GdpnetError was not raised"):
        wrong(lambda p, yhat: {}, refuses=("two_boxes",)).test_refused_problems()


def test_gradients() -> None:
    class StraightThrough(BackendContract):
        gradient = "straight_through"

    with pytest.raises(AssertionError, match="two_boxes: backward gives"):
        StraightThrough().test_gradients_are_those_of_differences()


def test_time() -> None:
    def late(p: Any, yhat: Any) -> dict[str, Any]:
        time.sleep(0.3)
        return {}

    with pytest.raises(AssertionError, match="with a limit of"):
        wrong(late, slack=-0.3).test_time_limit()
    solved = wrong(lambda p, yhat: {"status": torch.ones_like(p.status)})
    with pytest.raises(AssertionError, match="PROJECTED of what nobody can solve"):
        solved.test_time_limit()


def test_ties() -> None:
    def last(p: Any, yhat: torch.Tensor) -> dict[str, Any]:
        return {"y": torch.where(yhat == 5, 10 - p.y, p.y)}

    with pytest.raises(AssertionError, match="two corners"):
        wrong(last).test_the_first_of_equally_near_disjuncts()


def test_bad_input() -> None:
    class Forgiving(BackendContract):
        def project(self, rules: Any, yhat: Any, x: Any = None, **keywords: Any) -> Any:
            d, p = len(rules.output_names), len(rules.input_names)
            yhat = torch.nn.functional.pad(yhat.nan_to_num(), (0, d - yhat.shape[1]))
            x = torch.zeros(len(yhat), p) if x is None else x.nan_to_num(posinf=1, neginf=1)
            return super().project(rules, yhat[:, :d].clamp(-9, 9), x, **keywords)

    for test in (Forgiving().test_numbers_that_are_none, Forgiving().test_wrong_widths):
        with pytest.raises(AssertionError, match="ValueError was not raised"):
            test()


def test_what_depends_on_the_batch() -> None:
    def by_place(p: Any, yhat: torch.Tensor) -> dict[str, Any]:
        return {"y": p.y + 1e-6 * (len(yhat) if yhat.ndim > 1 else 1)}

    with pytest.raises(AssertionError, match="y in"):
        wrong(by_place).test_batches()
    flat = wrong(lambda p, yhat: {"y": p.y.reshape(-1, p.y.shape[-1])})
    with pytest.raises(AssertionError, match="shape of y"):
        flat.test_batches()


def test_the_callers_type() -> None:
    with pytest.raises(AssertionError, match="type"):
        wrong(lambda p, yhat: {"y": p.y.double()}).test_the_callers_type()


def test_statuses() -> None:
    with pytest.raises(AssertionError, match="statuses"):
        wrong(lambda p, yhat: {"status": p.status.clamp(max=1)}).test_statuses()
    near = wrong(lambda p, yhat: {"distance": torch.where(p.distance == math.inf, 0, p.distance)})
    with pytest.raises(AssertionError):
        near.test_statuses()


def test_it_is_imported_without_pytest_and_without_the_tests(tmp_path: Any) -> None:
    code = (
        "import sys, gdpnet; assert 'gdpnet.testing' not in sys.modules;"
        "import gdpnet.testing; assert 'pytest' not in sys.modules;"
        "assert not {m.split('.')[0] for m in sys.modules} & {'tests', 'benchmarks', 'models'};"
        "print(len(gdpnet.testing.PROBLEMS))"
    )
    root = str(gdpnet.__file__).rsplit("gdpnet", 1)[0]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == len(gdpnet.testing.PROBLEMS) > 50
