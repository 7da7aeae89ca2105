"""What every solver has to do: a class of tests that a solver's own tests inherit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from typing import Any

import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.errors import GdpnetError
from gdpnet.testing import oracles
from gdpnet.testing._differences import jacobians
from gdpnet.testing._problem import Problem
from gdpnet.testing.problems import BY_NAME

Tensor = torch.Tensor

SPREAD = tuple(
    BY_NAME[name]
    for name in (
        *("jl_wrapper_basic", "jl_stress_3d", "jl_midsize", "uniform_softmax", "two_boxes"),
        *("midway", "duplicate_rows", "equalities", "unbounded_outputs", "no_rules"),
        *("deactivated_disjunct", "bad_scales", "nested", "contradictory_rules", "exactly"),
        *("implication", "logic_inside_disjunct", "coupled_by_auxiliary", "power"),
        *("unbounded_auxiliary", "mixed_outputs", "plain_milp", "binary_of_indicator"),
        *("coefficients", "conditions", "conflict_at_some_inputs", "figure1", "stress"),
    )
)
"""Problems of every kind in the bank."""

UNBOUNDED = ("unbounded_outputs", "unbounded_auxiliary")
"""Those of `SPREAD` that a hull refuses."""

GRADIENTS = ("two_boxes", "equalities", "power", "coefficients", "bounds_from_inputs")
SAMPLES = 5  # of each of them


class BackendContract:
    """Tests of a solver; pytest collects a subclass whose name begins with `Test`.

    Attributes:
        solver: What `gdpnet.project` takes as `solver`.
        relaxation: Likewise; with "dnf" answers have to be exact, with others a lower bound.
        norm: Likewise; with another than "l1" override `wanted`.
        gradient: "vertex", or None for a solver without a derivative.
        limits: Whether the solver searches, and so needs to be stopped by `time_limit`.
        ties: Whether of disjuncts that are equally near the first is taken.
        problems: Those to solve, of the bank or your own.
        refuses: Names of problems that are refused with a `GdpnetError`.
        slack: Seconds that a call may take beyond its limit.

    Example:
        >>> from gdpnet.testing import BackendContract
        >>> class TestExact(BackendContract):
        ...     solver = "exact"
    """

    solver: Any = "auto"
    relaxation: Any = "dnf"
    norm: str = "l1"
    gradient: Any = "vertex"
    limits: bool = True
    ties: bool = True
    problems: Sequence[Problem] = SPREAD
    refuses: Collection[str] = ()
    slack: float = 3.0

    # ---- the call under test -------------------------------------------------------------------

    def project(
        self, rules: gdpnet.RuleModel, yhat: Any, x: Any = None, **keywords: Any
    ) -> gdpnet.Projection:
        """`gdpnet.project` with this solver."""
        keywords = {"relaxation": self.relaxation, "norm": self.norm, **keywords}
        return gdpnet.project(rules, yhat, x, solver=self.solver, **keywords)

    def wanted(self, problem: Problem, sample: int) -> float:
        """The distance of a sample of a problem, infinite where rules contradict each other."""
        if self.norm != "l1":
            raise NotImplementedError(f"the distances of the bank are l1, not {self.norm}")
        return _wanted(problem, sample)

    def value_of(self, distance: float) -> float:
        """What is minimised, at a distance."""
        return distance * distance if self.norm == "l2" else distance

    @property
    def exact(self) -> bool:
        """Whether every answer is the nearest output."""
        return bool(self.relaxation == "dnf")

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Run a test that asks for a problem with each of them."""
        if "problem" in metafunc.fixturenames:
            solved = [p for p in self.problems if p.name not in self.refuses]
            metafunc.parametrize("problem", solved, ids=lambda p: p.name)

    # ---- the bank ------------------------------------------------------------------------------

    def test_problem(self, problem: Problem) -> None:
        """Statuses, distances and disjuncts are right, whatever the type of problem."""
        model = problem.build()
        rules = problem.rules(model)
        p = self.project(rules, problem.yhat, problem.x)
        holds = rules.satisfied(y=p.y, x=problem.x, tol=1e-8)
        for k in range(len(problem.samples)):
            wanted, told = self.wanted(problem, k), f"{problem.name}, sample {k}"
            value = self.value_of(wanted)
            status = Status(int(p.status[k]))
            if status == Status.CONFLICT:
                assert math.isinf(wanted), f"{told}: CONFLICT, but an output is {wanted} away"
                assert math.isinf(p.distance[k]), f"{told}: CONFLICT at {float(p.distance[k])}"
                assert torch.equal(p.y[k], problem.yhat[k]), f"{told}: CONFLICT that moves"
                continue
            assert p.value[k] <= value + _near(value), (
                f"{told}: value {float(p.value[k])} is no lower bound of {value}"
            )
            if status == Status.RELAXED and not self.exact:
                assert not holds[k], f"{told}: RELAXED, but the output satisfies the rules"
                continue
            _equal(status, Status.PROJECTED if p.distance[k] > 0 else Status.SATISFIED, told)
            assert holds[k], f"{told}: {status.name}, but rules are broken"
            if self.exact:
                _close(p.distance[k], wanted, told)
                _close(p.value[k], value, told)
            else:
                assert p.distance[k] >= wanted - _near(wanted), f"{told}: nearer than possible"
            _disjuncts_hold(problem, model, rules, p, k)

    def test_satisfied_predictions_pass_unchanged(self, problem: Problem) -> None:
        """What an answer was is SATISFIED when it is asked for again, bit by bit."""
        rules = problem.rules()
        p = self.project(rules, problem.yhat, problem.x)
        good = (p.status == Status.PROJECTED) | (p.status == Status.SATISFIED)
        x = None if problem.x is None else problem.x[good]
        again = self.project(rules, p.y[good], x)
        assert (again.status == Status.SATISFIED).all(), f"{problem.name}: {again}"
        assert torch.equal(again.y, p.y[good]), f"{problem.name}: an output that holds is moved"

    def test_refused_problems(self) -> None:
        """What cannot be solved is refused by name, when it is asked for."""
        for problem in self.problems:
            if problem.name in self.refuses:
                call = partial(self.project, problem.rules(), problem.yhat, problem.x)
                told = _raised(call, GdpnetError)
                assert len(told) > 20, f"{problem.name}: the error says only {told!r}"

    # ---- statuses ------------------------------------------------------------------------------

    def test_statuses(self) -> None:
        """Satisfied, moved and contradictory samples of one batch."""
        yhat, x = _column(0.1, 0.4, 0.4), _column(0.0, 0.0, 1.0)
        p = self.project(_contradictory_above(0.5), yhat, x)
        _equal(_names(p), ["SATISFIED", "PROJECTED", "CONFLICT"], "statuses")
        assert torch.allclose(p.y, _column(0.1, 0.3, 0.4), atol=1e-9), p.y
        _close(p.distance[1], 0.1, "distance")
        assert p.distance[0] == 0
        assert math.isinf(p.distance[2])

    # ---- gradients -----------------------------------------------------------------------------

    def test_gradients_are_those_of_differences(self) -> None:
        """With respect to prediction and input, where y is smooth in both."""
        if self.gradient is None:
            _skip("this solver has no derivative")
        compared, through_x = 0, 0
        for name in GRADIENTS:
            problem = BY_NAME[name]
            found, moving = self._compare_gradients(problem)
            compared, through_x = compared + found, through_x + moving
        assert compared >= 12, f"only {compared} samples were smooth"
        assert through_x >= 4, f"only {through_x} samples moved with an input"

    def _compare_gradients(self, problem: Problem) -> tuple[int, int]:
        """Samples compared, and those of them that move with an input."""
        rules, d = problem.rules(), problem.yhat.shape[1]
        noise = torch.Generator().manual_seed(3)
        at = problem.yhat if problem.x is None else torch.cat([problem.yhat, problem.x], 1)
        at = at.repeat(SAMPLES, 1)[:SAMPLES]
        at = at + 0.2 * torch.rand(at.shape, generator=noise, dtype=at.dtype)
        keywords = {"weights": _unequal(d), "gradient": self.gradient}

        def y(given: Tensor) -> Tensor:
            x = None if problem.x is None else given[:, d:]
            return self.project(rules, given[:, :d], x, **keywords).y

        moved = self.project(rules, at[:, :d], at[:, d:] if problem.inputs else None, **keywords)
        found = jacobians(y, at)
        kept = found.smooth & (moved.status == Status.PROJECTED)
        wrong = (found.autograd - found.differences).abs().amax((1, 2))
        assert (wrong[kept] < 1e-3).all(), (
            f"{problem.name}: backward gives {found.autograd[kept]}, "
            f"differences {found.differences[kept]}"
        )
        moving = (found.differences[:, :, d:].abs() > 1e-2).flatten(1).any(1)
        return int(kept.sum()), int((kept & moving).sum())

    # ---- limits --------------------------------------------------------------------------------

    def test_time_limit(self) -> None:
        """A search that never ends is ended, and says so."""
        if not self.limits:
            _skip("this solver does not search")
        rules = _endless()
        yhat = torch.full((1, 40), 0.5, dtype=torch.float64)
        self.project(rules, yhat, time_limit=0.01)  # imports, kernels
        started = time.monotonic()
        p = self.project(rules, yhat, time_limit=0.5)
        taken = time.monotonic() - started
        assert taken < 0.5 + self.slack, f"{taken:.1f} s with a limit of 0.5 s"
        (status,) = _names(p)
        assert status in ("LIMIT", "UNSOLVED"), f"{status} of what nobody can solve"
        if status == "LIMIT":
            assert rules.satisfied(y=p.y, x=None).all(), "LIMIT, but the output breaks a rule"
        else:
            assert torch.equal(p.y, yhat), "UNSOLVED, but the prediction was moved"

    # ---- ties ----------------------------------------------------------------------------------

    def test_the_first_of_equally_near_disjuncts(self) -> None:
        """Model order decides, not the numbers."""
        if not self.ties:
            _skip("this solver leaves ties open")
        for low_first in (True, False):
            m = pyo.ConcreteModel()
            m.y = pyo.Var(range(2), bounds=(0, 10))
            low, high = [m.y[0] <= 3, m.y[1] <= 3], [m.y[0] >= 7, m.y[1] >= 7]
            m.boxes = Disjunction(expr=[low, high] if low_first else [high, low])
            rules = gdpnet.RuleModel(m, outputs=[m.y])
            yhat = torch.tensor([[9.0, 9.0], [5.0, 5.0], [1.0, 1.0], [4.0, 6.0]]).double()
            p = self.project(rules, yhat)
            first = 3.0 if low_first else 7.0
            _equal(p.y[1].tolist(), [first, first], "of two corners at equal distance")
            _equal(p.disjunct[[1, 3], 0].tolist(), [0, 0], "disjuncts at equal distance")
            _close(p.distance[3], math.sqrt(10.0) if self.norm == "l2" else 4.0, "a tie")

    # ---- bad input -----------------------------------------------------------------------------

    def test_numbers_that_are_none(self) -> None:
        """NaN and infinity raise, or are marked and leave the others alone."""
        problem = BY_NAME["coefficients"]
        rules, weights = problem.rules(), _unequal(2)
        good = self.project(rules, problem.yhat, problem.x, weights=weights)
        assert problem.x is not None
        for bad in (math.nan, math.inf, -math.inf):
            yhat, x = problem.yhat.clone(), problem.x.clone()
            yhat[1, 0], x[3, 1] = bad, bad
            _raised(partial(self.project, rules, yhat, x), ValueError)
            p = self.project(rules, yhat, x, weights=weights, on_invalid="mark")
            marked = p.status == Status.ERROR
            _equal(marked.tolist(), [False, True, False, True, False], f"marked with {bad}")
            assert p.y[marked].isnan().all(), f"y of a sample with {bad} is no NaN"
            assert torch.allclose(p.y[~marked], good.y[~marked], atol=1e-9), "others are spoiled"

    def test_wrong_widths(self) -> None:
        """A prediction or an input with too many columns or too few raises."""
        problem = BY_NAME["coefficients"]
        rules, yhat, x = problem.rules(), problem.yhat, problem.x
        assert x is not None
        for wrong in (
            lambda: self.project(rules, yhat[:, :1], x),
            lambda: self.project(rules, torch.cat([yhat, yhat], 1), x),
            lambda: self.project(rules, yhat, x[:, :1]),
            lambda: self.project(rules, yhat, x[:2]),
            lambda: self.project(rules, yhat),
        ):
            _raised(wrong, ValueError)

    # ---- batches -------------------------------------------------------------------------------

    def test_batches(self) -> None:
        """Answers depend neither on the other samples nor on the shape of the batch."""
        for name in ("coefficients", "conflict_at_some_inputs", "equalities"):
            problem = BY_NAME[name]
            rules, yhat, x, n = problem.rules(), problem.yhat, problem.x, len(problem.samples)
            weights = _unequal(yhat.shape[1])

            def answer(index: Any, *shape: int) -> tuple[Tensor, Tensor]:
                own = None if x is None else x[index].reshape(*shape, x.shape[1])  # noqa: B023
                given = yhat[index].reshape(*shape, yhat.shape[1])  # noqa: B023
                p = self.project(rules, given, own, weights=weights)  # noqa: B023
                _equal(tuple(p.y.shape), tuple(given.shape), "shape of y")
                _equal(tuple(p.status.shape), tuple(given.shape[:-1]), "shape of the statuses")
                return p.y.reshape(-1, yhat.shape[1]), p.status.flatten()  # noqa: B023

            y, status = answer(range(n), n)
            back, doubled = list(range(n))[::-1], [*range(n), *range(n)]
            parts: list[tuple[list[int], tuple[int, ...]]] = [
                ([], (0,)), (back, (n,)), (doubled, (2, n)), *(([k], ()) for k in range(n)),
            ]  # fmt: skip
            for index, shape in parts:
                again, told = answer(index, *shape)
                assert torch.equal(told, status[index]), f"{name}: statuses in {shape} {index}"
                assert torch.allclose(again, y[index], atol=1e-9), f"{name}: y in {shape} {index}"

    def test_the_callers_type(self) -> None:
        """float32 in, float32 out, and the rules hold after rounding."""
        for name in ("two_boxes", "equalities", "stress"):
            problem = BY_NAME[name]
            rules, yhat = problem.rules(), problem.yhat.float()
            x = None if problem.x is None else problem.x.float()
            p = self.project(rules, yhat, x)
            for tensor in (p.y, p.distance, p.value):
                _equal(tensor.dtype, torch.float32, f"{name}: type")
            good = (p.status == Status.PROJECTED) | (p.status == Status.SATISFIED)
            assert rules.satisfied(y=p.y, x=x, tol=1e-6)[good].all(), f"{name}: rules are broken"
            assert good.all() or not self.exact, f"{name}: {_names(p)}"
            if self.exact:
                wanted = [self.wanted(problem, k) for k in range(len(problem.samples))]
                assert torch.allclose(p.distance, torch.tensor(wanted), atol=1e-5), (
                    f"{name}: {p.distance.tolist()}, wanted {wanted}"
                )


# ---- rules ---------------------------------------------------------------------------------------


def _contradictory_above(threshold: float) -> gdpnet.RuleModel:
    """Y at most 0.3 by a rule; and at least 0.9 where the input is above a threshold."""
    m = pyo.ConcreteModel()
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.x = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 1))
    m.low = Disjunction(expr=[[m.y <= 0.3], [m.y <= 0.2]])
    m.high = pyo.Constraint(expr=m.y >= 0.9)
    m.active_when[m.high] = m.x >= threshold
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])


def _endless(rows: int = 5, columns: int = 40) -> gdpnet.RuleModel:
    """Market split: equalities over binaries that no branching finishes in this life."""
    numbers = torch.randint(0, 99, (rows, columns), generator=torch.Generator().manual_seed(1))
    m = pyo.ConcreteModel()
    m.n = pyo.Var(range(columns), domain=pyo.Binary)
    m.c = pyo.ConstraintList()
    for line in numbers.tolist():
        m.c.add(sum(a * m.n[j] for j, a in enumerate(line)) == sum(line) // 2)
    return gdpnet.RuleModel(m, outputs=[m.n])


# ---- what was wanted -----------------------------------------------------------------------------


@cache
def _wanted(problem: Problem, sample: int) -> float:
    """Distance of a sample: as known, or by Pyomo and HiGHS."""
    given = problem.samples[sample]
    return oracles.distance(problem, given) if given.distance is None else given.distance


def _near(wanted: float) -> float:
    return 1e-7 + 1e-10 * abs(wanted)


def _close(found: Any, wanted: float, told: str) -> None:
    assert abs(float(found) - wanted) <= _near(wanted), f"{told}: {float(found)}, wanted {wanted}"


def _equal(found: object, wanted: object, told: str) -> None:
    assert found == wanted, f"{told}: {found!r}, wanted {wanted!r}"


def _names(p: gdpnet.Projection) -> list[str]:
    return [Status(code).name for code in p.status.flatten().tolist()]


def _unequal(d: int) -> list[float]:
    """Weights with which one point alone is the nearest."""
    return [1 + 0.37 * j for j in range(d)]


def _column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


def _disjuncts_hold(
    problem: Problem, model: Any, rules: gdpnet.RuleModel, p: gdpnet.Projection, k: int
) -> None:
    """Each active rule names a disjunct, and it holds at y as Pyomo evaluates it."""
    params = problem.params(problem.samples[k])
    off = problem.off(params)
    for name, value in params.items():
        model.find_component(name).set_value(value)
    oracles.set_values(oracles.outputs_of(model, problem.outputs), p.y[k].tolist())
    for name, index in zip(rules.names, p.disjunct[k].tolist(), strict=True):
        told = f"{problem.name}, sample {k}, rule {name}, disjunct {index}"
        source = model.find_component(name)
        if oracles.is_off(source, off):
            assert index == -1, f"{told}: the rule does not apply"
            continue
        assert index >= 0, f"{told}: the rule applies and holds"
        if source.ctype is Disjunction and not problem.auxiliaries and not off:
            worst = oracles.residual_of_block(source.disjuncts[index])
            assert worst <= 1e-8, f"{told} is broken by {worst}"


def _raised(call: Callable[[], object], kind: type[Exception]) -> str:
    """The message of the error that a call has to raise."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


def _skip(reason: str) -> None:
    import pytest

    pytest.skip(reason)
