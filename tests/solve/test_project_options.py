"""Keywords of gdpnet.project, shapes, types, contradictions and unusable samples."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction
from scipy.optimize import linprog

import gdpnet
from gdpnet import Status
from gdpnet.testing import BY_NAME, oracles

SOLVE = {"solver": "milp"}


def gap() -> gdpnet.RuleModel:
    return BY_NAME["midway"].rules()


# ---- contradictions -------------------------------------------------------------------------


def test_conflict_passes_the_prediction() -> None:
    problem = BY_NAME["conflict_at_some_inputs"]
    p = gdpnet.project(problem.rules(), problem.yhat, problem.x, on_conflict="pass", **SOLVE)
    assert p.status.tolist() == [Status.PROJECTED, Status.CONFLICT]
    assert p.y[1].tolist() == problem.yhat[1].tolist()
    assert p.distance.tolist() == [pytest.approx(0.1), math.inf]
    assert p.disjunct[1].tolist() == [-1, -1]


def test_conflict_raises_and_names_the_rules() -> None:
    problem = BY_NAME["conflict_at_some_inputs"]
    with pytest.raises(
        gdpnet.errors.ConflictError, match=r"row 1\b.*gap.*never|row 1\b.*never.*gap"
    ):
        gdpnet.project(problem.rules(), problem.yhat, problem.x, on_conflict="raise", **SOLVE)


def test_no_conflict_does_not_raise() -> None:
    p = gdpnet.project(gap(), torch.tensor([[4.0]]), on_conflict="raise", **SOLVE)
    assert p.y.tolist() == [[3.0]]


ELASTIC_BOUNDS = [(0.0, 1.0), (0.0, 1.0)]
# Rows (a, b) of a y <= b; rules -> disjuncts -> rows. The global row is y0 + y1 <= 1.2.
ELASTIC_GLOBALS = [([1.0, 1.0], 1.2)]
ELASTIC_RULES = [
    [[([-1.0, 0.0], -0.9)], [([0.0, -4.0], -3.8)]],
    [[([1.0, 0.0], 0.4), ([0.0, 1.0], 0.5)]],
    [[([1.0, -1.0], -0.1)], [([-1.0, 1.0], -0.3)]],
]


def elastic_model() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=lambda _, i: ELASTIC_BOUNDS[i])

    def relation(row: tuple[list[float], float]) -> Any:
        return row[0][0] * m.y[0] + row[0][1] * m.y[1] <= row[1]

    m.always = pyo.ConstraintList()
    for row in ELASTIC_GLOBALS:
        m.always.add(relation(row))
    m.rules = Disjunction(
        range(len(ELASTIC_RULES)),
        rule=lambda m, r: [[relation(row) for row in term] for term in ELASTIC_RULES[r]],
    )
    return gdpnet.RuleModel(m, outputs=[m.y])


def elastic_by_hand(yhat: list[float]) -> tuple[float, float]:
    """Least sum of scaled violations, then least distance: columns (y, eta, v)."""
    count = len(ELASTIC_RULES)
    best = (math.inf, math.inf)
    for choice in itertools.product(*ELASTIC_RULES):
        rows, right = [], []
        for a, b in ELASTIC_GLOBALS:
            rows.append([*a, 0, 0, *[0] * count])
            right.append(b)
        for r, term in enumerate(choice):
            for a, b in term:
                scale = max(1.0, abs(b), *map(abs, a))
                rows.append([*a, 0, 0, *(-scale * (k == r) for k in range(count))])
                right.append(b)
        for j, sign in itertools.product(range(2), (1.0, -1.0)):
            row = np.zeros(4 + count)
            row[j], row[2 + j] = sign, -1.0
            rows.append(list(row))
            right.append(sign * yhat[j])
        bounds = [*ELASTIC_BOUNDS, *[(0, None)] * (2 + count)]
        violation = np.array([0, 0, 0, 0, *[1] * count], dtype=float)
        first = linprog(violation, A_ub=rows, b_ub=right, bounds=bounds, method="highs-ds")
        assert first.status == 0
        second = linprog(
            [0, 0, 1, 1, *[0] * count],
            A_ub=[*rows, violation],
            b_ub=[*right, first.fun + 1e-9],
            bounds=bounds,
            method="highs-ds",
        )
        assert second.status == 0
        if first.fun < best[0] - 1e-8 or (first.fun < best[0] + 1e-8 and second.fun < best[1]):
            best = (min(best[0], first.fun), second.fun)
    return best


@pytest.mark.parametrize("yhat", [[0.5, 0.5], [0.9, 0.9], [0.0, 1.0], [0.3, 0.2], [0.8, 0.1]])
def test_nearest_breaks_the_rules_as_little_as_possible(yhat: list[float]) -> None:
    rules = elastic_model()
    p = gdpnet.project(rules, torch.tensor([yhat]).double(), on_conflict="nearest", **SOLVE)
    least, distance = elastic_by_hand(yhat)
    assert least > 1e-3
    assert p.status.tolist() == [Status.CONFLICT]
    assert p.distance.tolist() == [math.inf]
    assert rules.violation(p.y).sum().item() == pytest.approx(least, abs=1e-7)
    assert rules.global_violation(p.y).item() <= 1e-9
    moved = (p.y - torch.tensor(yhat)).abs().sum().item()
    assert moved == pytest.approx(distance, abs=1e-6)


def needing() -> gdpnet.RuleModel:
    """y >= x, which the bounds contradict from 10 on, and the gap from 7 on if `low` applies."""
    m = pyo.ConcreteModel()
    m.x = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.cover = pyo.Constraint(expr=m.y >= m.x)
    m.low = Disjunction(expr=[[m.y <= 3], [m.y <= 7]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])


@pytest.mark.parametrize("options", [SOLVE, {}, {"relaxation": "cnf"}], ids=str)
def test_nearest_tells_where_no_rule_is_to_blame(options: dict[str, Any]) -> None:
    x = torch.tensor([[1.0], [20.0], [9.0], [30.0]]).double()
    yhat = torch.tensor([[8.0], [8.0], [8.0], [4.5]]).double()
    with pytest.warns(gdpnet.errors.ConflictWarning) as told:
        p = gdpnet.project(needing(), yhat, x, on_conflict="nearest", **options)
    assert [str(warning.message) for warning in told] == [
        "on_conflict='nearest': 2 of 4 rows (1, 3) passed as predicted. In row 1 these contradict "
        "each other, whatever rules are broken: cover, bounds of y."
    ]
    assert p.y.flatten().tolist() == pytest.approx([7.0, 8.0, 9.0, 4.5])
    assert p.status.tolist() == [Status.PROJECTED] + 3 * [Status.CONFLICT]
    assert p.info.unmendable is not None
    assert p.info.unmendable.tolist() == [False, True, False, True]
    assert gdpnet.project(needing(), yhat, x, **options).info.unmendable is None


def test_nearest_is_silent_where_rules_are_to_blame() -> None:
    """The prediction is where the rules are broken least: it stays, with nothing to tell."""
    p = gdpnet.project(needing(), [[9.0]], [[9.0]], on_conflict="nearest", **SOLVE)
    assert p.status.tolist() == [Status.CONFLICT]
    assert p.y.tolist() == [[9.0]]
    assert p.info.unmendable is not None
    assert p.info.unmendable.tolist() == [False]


@pytest.mark.parametrize("name", ["contradictory_globals", "contradictory_logic"])
def test_nearest_never_breaks_globals_and_logic(name: str) -> None:
    problem = BY_NAME[name]
    with pytest.warns(gdpnet.errors.ConflictWarning, match="whatever rules are broken"):
        p = gdpnet.project(problem.rules(), problem.yhat, on_conflict="nearest", **SOLVE)
    assert p.status.tolist() == [Status.CONFLICT]
    assert torch.equal(p.y, problem.yhat)
    with pytest.raises(gdpnet.errors.ConflictError, match="breaking rules does not help"):
        gdpnet.project(problem.rules(), problem.yhat, on_conflict="raise", **SOLVE)


def test_nearest_changes_nothing_without_a_conflict() -> None:
    problem = BY_NAME["nested"]
    rules = problem.rules()
    p = gdpnet.project(rules, problem.yhat, on_conflict="nearest", **SOLVE)
    assert torch.equal(p.y, gdpnet.project(rules, problem.yhat, **SOLVE).y)


# ---- unusable samples -----------------------------------------------------------------------


def reciprocal() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.x = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.row = pyo.Constraint(expr=m.y[0] / m.x + m.y[1] >= 1 / m.x)
    m.rule = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])


YHAT = [[4.5, 0.0], [4.0, 1.0], [6.5, 0.5], [0.0, 0.0]]


def test_invalid_raises_naming_rows() -> None:
    yhat = torch.tensor(YHAT)
    yhat[1, 0], yhat[3, 1] = math.nan, math.inf
    with pytest.raises(
        gdpnet.errors.InputError, match=r"yhat: NaN or infinity in 2 of 4 rows \(1, 3\)"
    ):
        gdpnet.project(reciprocal(), yhat, torch.ones(4, 1), **SOLVE)
    x = torch.ones(4, 1)
    x[2] = math.nan
    with pytest.raises(gdpnet.errors.InputError, match=r"x: NaN or infinity in row 2"):
        gdpnet.project(reciprocal(), torch.tensor(YHAT), x, **SOLVE)


def test_invalid_marked_leaves_the_others_untouched() -> None:
    rules = reciprocal()
    yhat, x = torch.tensor(YHAT).double(), torch.tensor([[1.0], [2.0], [0.0], [0.5]]).double()
    yhat[1, 0] = math.nan
    p = gdpnet.project(rules, yhat, x, on_invalid="mark", **SOLVE)
    good = [0, 3]
    alone = gdpnet.project(rules, yhat[good], x[good], **SOLVE)
    assert [p.status[k].item() for k in (1, 2)] == [Status.ERROR, Status.ERROR]
    assert p.y[[1, 2]].isnan().all()
    assert p.value[[1, 2]].isnan().all()
    assert p.distance[[1, 2]].isnan().all()
    assert (p.disjunct[[1, 2]] == -1).all()
    for name in ("y", "value", "distance", "status", "disjunct"):
        assert torch.equal(getattr(p, name)[good], getattr(alone, name)), name


@pytest.mark.parametrize("x", [0.0, math.nan, math.inf])
def test_a_batch_of_unusable_samples_only(x: float) -> None:
    p = gdpnet.project(
        reciprocal(), torch.tensor(YHAT), torch.full((4, 1), x), on_invalid="mark", **SOLVE
    )
    assert (p.status == Status.ERROR).all()
    assert p.y.isnan().all()


def test_empty_batch() -> None:
    p = gdpnet.project(gap(), torch.zeros(0, 1), **SOLVE)
    assert p.y.shape == (0, 1)
    assert p.disjunct.shape == (0, 1)


# ---- weights, limits, wrong choices -----------------------------------------------------------


@pytest.mark.parametrize("name", ["two_boxes", "equalities", "power", "exactly", "whole_outputs"])
def test_weights(name: str) -> None:
    problem = BY_NAME[name]
    rules = problem.rules()
    weights = [0.25, 3.0, 1.5][: len(rules.output_names)]
    p = gdpnet.project(rules, problem.yhat, problem.x, weights=weights, **SOLVE)
    for k, sample in enumerate(problem.samples):
        wanted = oracles.pyomo_distance(
            problem.build(), problem.outputs, sample.yhat, weights=weights
        )
        assert p.distance[k].item() == pytest.approx(wanted, abs=1e-7)
        assert p.value[k].item() == pytest.approx(wanted, abs=1e-7)


def test_weights_decide_which_output_moves() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.row = pyo.Constraint(expr=m.y[0] + m.y[1] >= 4)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    zero = torch.zeros(1, 2)
    assert gdpnet.project(rules, zero, weights=[1, 2], **SOLVE).y.tolist() == [[4.0, 0.0]]
    assert gdpnet.project(rules, zero, weights=[2, 1], **SOLVE).y.tolist() == [[0.0, 4.0]]


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.nan], "ab"])
def test_bad_weights(weights: Any) -> None:
    with pytest.raises(gdpnet.errors.InputError, match="weights: expected 2 positive numbers"):
        gdpnet.project(BY_NAME["two_boxes"].rules(), torch.zeros(1, 2), weights=weights)


def test_time_limit_is_accepted() -> None:
    problem = BY_NAME["jl_midsize"]
    p = gdpnet.project(problem.rules(), problem.yhat, time_limit=60.0, **SOLVE)
    assert p.distance.tolist() == pytest.approx([s.distance for s in problem.samples], abs=1e-7)


@pytest.mark.parametrize("name", ["jl_largesize", "unbounded_outputs"])
def test_time_limit_without_time_is_told(name: str) -> None:
    """Whatever the solver manages: optimal answers are right, others are marked."""
    problem = BY_NAME[name]
    rules = problem.rules()
    best = gdpnet.project(rules, problem.yhat, **SOLVE)
    p = gdpnet.project(rules, problem.yhat, time_limit=1e-9, **SOLVE)
    done = (p.status == Status.PROJECTED) | (p.status == Status.SATISFIED)
    unsolved = p.status == Status.UNSOLVED
    assert (done | unsolved | (p.status == Status.LIMIT)).all()
    assert p.distance[unsolved].isinf().all()
    assert torch.allclose(p.distance[done], best.distance[done], rtol=0, atol=1e-7)
    limit = p.status == Status.LIMIT
    assert rules.satisfied(p.y[limit]).all()
    assert (p.value[limit] <= best.distance[limit] + 1e-9).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"relaxation": "hull"}, "relaxation: expected 'dnf', 'cnf'"),
        ({"norm": "l3"}, r"norm: solver Exact\(\) knows 'l1', 'l2', got 'l3'"),
        ({"solver": "cplex"}, "solver: expected one of"),
        ({"on_conflict": "ignore"}, "on_conflict: expected one of 'pass', 'raise', 'nearest'"),
        ({"on_invalid": "skip"}, "on_invalid: expected one of 'raise', 'mark'"),
        ({"time_limit": 0}, "time_limit: expected a positive number of seconds or None"),
        ({"time_limit": "1"}, "time_limit: expected a positive number of seconds or None"),
        ({"threads": -1}, "threads: expected a whole number >= 1 or None"),
    ],
)
def test_wrong_choices(options: dict[str, Any], told: str) -> None:
    with pytest.raises(gdpnet.errors.InputError, match=told):
        gdpnet.project(gap(), torch.zeros(1, 1), **options)


def test_rules_must_be_a_rule_model() -> None:
    with pytest.raises(gdpnet.errors.InputError, match=r"rules: expected a gdpnet\.RuleModel"):
        gdpnet.project(pyo.ConcreteModel(), torch.zeros(1, 1))  # type: ignore[arg-type]


# ---- types and shapes -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_types_are_kept(dtype: torch.dtype) -> None:
    problem = BY_NAME["uniform_softmax"]
    rules = problem.rules()
    yhat = problem.yhat.to(dtype)
    p = gdpnet.project(rules, yhat, **SOLVE)
    assert {p.y.dtype, p.value.dtype, p.distance.dtype} == {dtype}
    digits = torch.finfo(dtype).eps
    assert rules.satisfied(p.y, tol=max(1e-9, 4 * digits)).all()
    assert p.status.tolist() == [Status.PROJECTED, Status.PROJECTED, Status.SATISFIED]
    assert torch.equal(p.y[2], yhat[2])
    assert p.distance.double().tolist() == pytest.approx([0.5, 0.2, 0.0], abs=4 * digits)


def test_float32_softmax_counts_as_satisfied() -> None:
    rules = BY_NAME["uniform_softmax"].rules()
    torch.manual_seed(0)
    logits = torch.randn(200, 4)
    logits[:, 0] += 4
    yhat = logits.softmax(-1)
    yhat = yhat[yhat[:, 0] >= 0.5]
    assert (yhat.double().sum(1) != 1).any()
    p = gdpnet.project(rules, yhat, **SOLVE)
    assert (p.status == Status.SATISFIED).all()
    assert torch.equal(p.y, yhat)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0)])
def test_leading_shapes_and_broadcast(shape: tuple[int, ...]) -> None:
    problem = BY_NAME["strictly_hot"]
    rules = problem.rules()
    torch.manual_seed(1)
    yhat, x = torch.rand(*shape, 2).double(), 40 * torch.rand(*shape, 1).double()
    p = gdpnet.project(rules, yhat, x, **SOLVE)
    assert p.y.shape == (*shape, 2)
    assert p.disjunct.shape == (*shape, 1)
    assert p.status.shape == p.value.shape == p.distance.shape == p.info.nodes.shape == shape
    flat = gdpnet.project(rules, yhat.reshape(-1, 2), x.reshape(-1, 1), **SOLVE)
    assert torch.equal(p.y.reshape(-1, 2), flat.y)
    one = torch.tensor([35.0]).double()
    wide = gdpnet.project(rules, yhat, one, **SOLVE)
    assert torch.equal(wide.y, gdpnet.project(rules, yhat, one.expand(*shape, 1), **SOLVE).y)


def test_inputs_of_another_leading_shape_are_refused() -> None:
    rules = BY_NAME["strictly_hot"].rules()
    with pytest.raises(
        gdpnet.errors.InputError, match=r"x has leading shape \(3,\) and yhat has \(2,\)"
    ):
        gdpnet.project(rules, torch.rand(2, 2), torch.rand(3, 1))


def test_prediction_outside_the_bounds_is_measured_as_given() -> None:
    p = gdpnet.project(gap(), torch.tensor([[-2.0], [15.0]]).double(), **SOLVE)
    assert p.y.tolist() == [[0.0], [10.0]]
    assert p.distance.tolist() == [2.0, 5.0]
    assert p.value.tolist() == [2.0, 5.0]


def gap_rules() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 10))
    m.rule = gdpnet.rule(gdpnet.any_of(m.y[0] <= 3, m.y[1] >= 7))
    return gdpnet.RuleModel(m, outputs=[m.y])


@pytest.mark.parametrize("solver", ["exact", "milp"])
@pytest.mark.parametrize("weight", [1e-10, 1e-7, 1.0, 1e8])
def test_the_size_of_the_weights_does_not_matter(weight: float, solver: str) -> None:
    rules = gap_rules()
    for dtype in (torch.float64, torch.float32):
        yhat = torch.tensor([[5.0, 5.0]], dtype=dtype)
        p = gdpnet.project(rules, yhat, weights=[weight, weight], solver=solver)
        assert p.status.tolist() == [Status.PROJECTED]
        assert float(p.distance) == pytest.approx(2 * weight, rel=1e-6)
        assert float(p.value) == pytest.approx(2 * weight, rel=1e-6)
    exact = torch.tensor([[5.0, 5.0]], dtype=torch.float64)
    p = gdpnet.project(rules, exact, weights=[1e-8, 1.0], solver=solver)
    assert p.y.tolist() == [[3.0, 5.0]]


def test_weights_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(gdpnet.errors.InputError, match="differ by a factor of 1e\\+24"):
        gdpnet.project(gap_rules(), [[5.0, 5.0]], weights=[1e-12, 1e12])


def test_small_coefficients_are_not_lost_in_the_tolerance() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.rule = gdpnet.rule(gdpnet.any_of(1e-6 * m.y <= 3e-6, 1e-6 * m.y >= 7e-6))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, torch.tensor([[3.2], [4.5], [6.5]]))
    assert p.y.flatten().tolist() == [3.0, 3.0, 7.0]


def test_whole_outputs_come_back_whole() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 10), domain=pyo.Integers)
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] <= 3)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    yhat = torch.tensor([[2.0000005, 1.0], [1.0, 2.0], [2.0, 2.0]])
    for strict in (False, True):
        p = gdpnet.project(rules, yhat, strict=strict)
        assert torch.equal(p.y, p.y.round())
        assert p.y[:2].tolist() == [[2.0, 1.0], [1.0, 2.0]]
        assert p.distance.tolist() == pytest.approx([5e-7, 0.0, 1.0], abs=1e-7)


def test_strict_takes_no_more_than_it_needs() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(0, 10))
    m.rule = Disjunction(
        expr=[[m.y[0] + m.y[1] <= 3, m.y[0] + m.y[1] >= 3], [m.y[0] + m.y[1] >= 9]]
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, [[1.0, 2.0]], strict=True)  # it holds exactly
    assert p.y.tolist() == [[1.0, 2.0]]
    for dtype in (torch.float16, torch.bfloat16):
        p = gdpnet.project(rules, torch.tensor([[4.0, 0.5]], dtype=dtype), strict=True)
        assert p.distance.item() == 1.5
        assert p.value.item() == 1.5


def test_what_holds_under_nearest_is_told() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.low = pyo.Constraint(expr=m.y <= 2)
    m.high = gdpnet.rule(gdpnet.any_of(m.y >= 7, m.y >= 8))
    m.kept = gdpnet.rule(gdpnet.any_of(m.y <= 1, m.y >= 1.5))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    p = gdpnet.project(rules, [[1.2]], on_conflict="nearest")
    assert p.status.tolist() == [Status.CONFLICT]
    assert p.y.item() == pytest.approx(2.0, abs=1e-6)
    assert p.disjunct.tolist() == [[-1, 1]]


@pytest.mark.parametrize(
    "call",
    [
        lambda rules: gdpnet.project(rules, None),
        lambda rules: rules.satisfied(None),
        lambda rules: gdpnet.project(
            rules, [[5.0, 5.0]], solver=gdpnet.solve.Exact(node_limit=math.inf)
        ),
        lambda rules: gdpnet.project(
            rules, [[5.0, 5.0]], solver=gdpnet.solve.Exact(node_limit=0.5)
        ),
        lambda rules: gdpnet.project(rules, [[5.0, 5.0]], threads=1.5),
        lambda rules: gdpnet.project(rules, [["a", "b"]]),
    ],
)
def test_arguments_that_make_no_sense(call: Any) -> None:
    with pytest.raises(gdpnet.errors.InputError):
        call(gap_rules())


def test_arrays_of_many_kinds() -> None:
    rules = gap_rules()
    backwards = np.array([[5.0, 5.0], [1.0, 1.0]])[::-1]
    p = gdpnet.project(rules, backwards, solver=gdpnet.solve.Exact(node_limit=np.int64(50)))
    assert p.y.tolist() == [[1.0, 1.0], [3.0, 5.0]]
    weights = torch.ones(2, requires_grad=True)
    assert gdpnet.project(rules, backwards, weights=weights).y.tolist() == p.y.tolist()
    assert "no samples" in repr(gdpnet.project(rules, torch.zeros(0, 2)))


@pytest.mark.parametrize(
    ("change", "told"),
    [(torch.Tensor.to_sparse, r"to_dense\(\)"), (lambda one: one.to("meta"), "device 'meta'")],
    ids=["sparse", "meta"],
)
def test_tensors_without_an_array_are_refused(change, told: str) -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.r = Disjunction(expr=[[m.y <= m.t], [m.y >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    yhat = torch.ones(2, 1)
    with pytest.raises(gdpnet.errors.InputError, match=rf"yhat: .*{told}"):
        gdpnet.project(rules, change(yhat), yhat)
    with pytest.raises(gdpnet.errors.InputError, match=rf"x: .*{told}"):
        gdpnet.project(rules, yhat, change(yhat))
