"""The penalty against sums written out, and against what the rules themselves say holds."""

from __future__ import annotations

import copy
import io
import itertools
import math
import pickle
import re
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.ir.data import RuleData
from gdpnet.nn import RulePenalty
from gdpnet.nn.penalty import soft_min
from gdpnet.testing import BY_NAME, PROBLEMS, Problem, random_predictions, random_rules
from models.cooling import model as cooling

PLAIN = [problem for problem in PROBLEMS if not problem.rules().auxiliary_names]
WITH_AUXILIARIES = [problem for problem in PROBLEMS if problem.rules().auxiliary_names]


def violations(rules: gdpnet.RuleModel, x: torch.Tensor, y: torch.Tensor) -> list[float]:
    """Scaled violation of each row of one sample, from the coefficients' own definition."""
    values = rules.evaluate(x[None]).rows
    found = []
    for i, row in enumerate(rules.data.rows):
        a = values.shared.dense[i].clone()
        if i in values.varying.tolist():
            a = values.coefficients[0, values.varying.tolist().index(i)]
        excess = float(a @ y - values.bound[0, i])
        size = max(1.0, abs(float(values.bound[0, i])), float(a.abs().max()))
        found.append((abs(excess) if row.equality else max(0.0, excess)) / size)
    return found


def always(data: RuleData, rows: list[float], y: torch.Tensor) -> float:
    total = sum(rows[i] for i in data.global_rows)
    for column, value in zip(data.columns[: data.outputs], y.tolist(), strict=True):
        for beyond, bound in (
            (column.lower - value, column.lower),
            (value - column.upper, column.upper),
        ):
            if math.isfinite(bound):
                total += max(0.0, beyond) / max(1.0, abs(bound))
        total += abs(value - round(value)) if column.integer else 0.0
    return total


def least(rules: gdpnet.RuleModel, x: torch.Tensor, y: torch.Tensor) -> tuple[float, int]:
    """Least sum of violations over all truth values of all booleans, and how many were tried."""
    data = rules.data
    rows = violations(rules, x, y)
    active = rules.evaluate(x[None]).clauses[0].tolist()
    best, tried = math.inf, 0
    for values in itertools.product((False, True), repeat=len(data.booleans)):
        for clause, on in zip(data.clauses, active, strict=True):
            if not on or (clause.guard >= 0 and not values[clause.guard]):
                continue
            if not any(values[abs(v) - 1] == (v > 0) for v in clause.literals):
                break
        else:
            tried += 1
            pairs = list(zip(data.booleans, values, strict=True))
            # Each rule pays for its own rows; a proposition makes several pay together.
            best = min(
                best,
                sum(rows[i] for b, true in pairs for i in (b.true_rows if true else b.false_rows)),
            )
    return best + always(data, rows, y), tried


@pytest.mark.parametrize("problem", PLAIN, ids=lambda problem: problem.name)
def test_zero_exactly_where_the_rules_hold(problem: Problem) -> None:
    rules = problem.rules()
    penalty = RulePenalty(rules, reduction="none")
    projected = gdpnet.project(rules, problem.yhat, problem.x)
    y = torch.cat([problem.yhat, projected.y])
    x = None if problem.x is None else torch.cat([problem.x, problem.x])
    holds = rules.satisfied(y, x, tol=0.0)
    if problem.name == "contradictory_logic":
        holds[:] = False  # it pays for the rules, one by one
    assert ((penalty(y, x) == 0.0) == holds).all()


@pytest.mark.parametrize("seed", range(150))
def test_random_rules_against_all_truth_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rules = random_rules(rng)
    if rules.auxiliary_names:
        with pytest.raises(gdpnet.errors.RuleError, match=re.escape(rules.auxiliary_names[0])):
            RulePenalty(rules)
        return
    if len(rules.data.booleans) > 12:
        pytest.skip("too many truth values to try")
    temperature = 0.01
    penalty = RulePenalty(rules, weight=1.0, temperature=temperature, reduction="none")
    y = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
    x = torch.zeros(0, dtype=torch.float64)
    for value, sample in zip(penalty(y).tolist(), y, strict=True):
        hard, tried = least(rules, x, sample)
        if tried == 0:
            continue
        assert hard - temperature * math.log(tried) - 1e-9 <= value <= hard * (1 + 1e-12)
        assert value >= 0.0
        assert (value == 0.0) == (hard == 0.0)


def test_cooling_written_out() -> None:
    """The paper's task, its disjuncts by hand."""
    rules = cooling.build()
    x, _ = cooling.sample(200, "ood", seed=5)
    y = (
        torch.rand(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 1.4
        - 0.2
    )
    f, c, p = y.T
    k = cooling.CONSTANTS
    power = k.alpha_f * f + k.alpha_c * c + k.alpha_p * p
    disjuncts = [
        (0.45 - c, 0.75 - f),
        (c - 0.05, 0.60 - f),
        (f - 0.70, 0.30 - c),
        (0.65 - f, 0.35 - c),
        (power - k.P_dr, torch.stack([f - 0.50, c - 0.40])),
        (f - 0.40, 0.40 - c),
        (c - 0.40, 0.70 - f),
    ]
    required = torch.from_numpy(cooling.load(x.numpy()))
    expected = (required - k.a_f * f - k.a_c * c).relu() + (k.p_min - p).relu()
    expected = expected + (y - 1.0).relu().sum(1) + (-y).relu().sum(1)
    active = torch.from_numpy(cooling.active(x.numpy()))
    for r, parts in enumerate(disjuncts):
        broken = [part.relu() if part.dim() == 1 else part.relu().sum(0) for part in parts]
        one, two = torch.exp(-broken[0] / 0.01), torch.exp(-broken[1] / 0.01)
        truth = one + two - one * two
        expected = expected + torch.where(active[:, r], -0.01 * torch.log(truth), 0.0)
    torch.testing.assert_close(RulePenalty(rules, reduction="none")(y, x), 2.0 * expected)
    torch.testing.assert_close(RulePenalty(rules)(y, x), 2.0 * expected.mean())
    torch.testing.assert_close(RulePenalty(rules, 0.5, reduction="sum")(y, x), 0.5 * expected.sum())


def nested_rules() -> gdpnet.RuleModel:
    """A nested disjunction that applies only at t >= 1, and rows that move with t."""
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.left, m.right = Disjunct(), Disjunct()
    m.left.row = pyo.Constraint(expr=m.y[0] <= m.t)
    m.left.split = Disjunction(expr=[[m.y[1] <= 1], [m.t * m.y[1] >= 6, m.y[0] >= 0.5]])
    m.right.row = pyo.Constraint(expr=m.y[0] >= 5)
    m.rule = Disjunction(expr=[m.left, m.right])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.left.split] = m.t >= 1
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


def test_nested_disjunction_adds_to_its_parent() -> None:
    t = 0.3
    penalty = RulePenalty(nested_rules(), weight=1.0, temperature=t, reduction="none")

    def soft(*v: float) -> float:
        return -t * math.log(1 - math.prod(1 - math.exp(-a / t) for a in v))

    y, x = torch.tensor([[2.6, 1.5]], dtype=torch.float64), torch.tensor([[2.0]])
    inner = soft(0.5, (6 - 2 * 1.5) / 6)
    assert penalty(y, x).item() == pytest.approx(soft(0.6 / 2 + inner, 2.4 / 5), rel=1e-12)
    unasked = penalty(y, torch.tensor([[0.9]], dtype=torch.float64)).item()
    assert unasked == pytest.approx(soft(1.7, 2.4 / 5), rel=1e-12)


# ---- the soft-min itself ------------------------------------------------------------------


def test_soft_min_lies_between_logsumexp_and_the_least() -> None:
    generator = torch.Generator().manual_seed(1)
    for size in (1, 2, 5):
        v = 10.0 ** (6 * torch.rand(2000, size, dtype=torch.float64, generator=generator) - 4)
        for t in (1e-3, 1e-2, 1.0):
            value = soft_min(v, t)
            assert value.isfinite().all()
            assert (value <= v.amin(1) + 1e-15 * (t + v.amin(1))).all()
            assert (value >= -t * torch.logsumexp(-v / t, 1) - 1e-12).all()
            beyond_rounding = (v / t).clamp(max=1.0).prod(1) > 1e-14
            assert (value > 0)[beyond_rounding].all()


def test_soft_min_of_one_is_itself() -> None:
    v = torch.tensor([[0.0], [1e-12], [0.3], [1e5]], dtype=torch.float64)
    torch.testing.assert_close(soft_min(v, 1e-2), v[:, 0], rtol=1e-12, atol=1e-16)


def test_a_disjunct_that_holds_leaves_no_gradient() -> None:
    v = torch.tensor(
        [[0.0, 1e-3], [0.0, 0.0], [1e-3, 0.0]], dtype=torch.float64, requires_grad=True
    )
    value = soft_min(v, 1e-2)
    assert value.tolist() == [0.0, 0.0, 0.0]
    assert torch.autograd.grad(value.sum(), v)[0].eq(0).all()


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_gradients_are_finite_at_every_size(size: float) -> None:
    v = torch.tensor([[1.0, 1.0, 2.0], [1.0, math.inf, 3.0]], dtype=torch.float64) * size
    v.requires_grad_()
    (slope,) = torch.autograd.grad(soft_min(v, 1e-2).sum(), v)
    assert slope.isfinite().all()
    assert (slope >= -1e-12).all()
    assert (slope <= 1 + 1e-12).all()


def test_soft_min_gradcheck() -> None:
    v = torch.tensor([[0.01, 0.03, 0.02], [0.5, 0.4, 0.9], [1e-3, 2.0, 5.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda v: soft_min(v, 1e-2), v.requires_grad_())
    assert torch.autograd.gradgradcheck(lambda v: soft_min(v, 0.1), v)


# ---- gradients ----------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1e-2, 0.3])
def test_gradcheck_in_y_and_x(temperature: float) -> None:
    generator = torch.Generator().manual_seed(2)
    x = torch.rand(12, 1, dtype=torch.float64, generator=generator) * 3
    y = torch.rand(12, 2, dtype=torch.float64, generator=generator) * 14 - 2
    penalty = RulePenalty(nested_rules(), temperature=temperature, reduction="none")
    assert torch.autograd.gradcheck(penalty, (y.requires_grad_(), x.requires_grad_()))


@pytest.mark.parametrize("name", ["exactly", "logic_inside_disjunct", "nested_in_logic"])
def test_gradcheck_with_logic(name: str) -> None:
    rules = BY_NAME[name].rules()
    y = torch.rand(
        8, len(rules.output_names), dtype=torch.float64, generator=torch.Generator().manual_seed(3)
    )
    assert torch.autograd.gradcheck(RulePenalty(rules, reduction="none"), y.requires_grad_())


def test_descent_reaches_outputs_that_hold() -> None:
    rules = cooling.build()
    x, _ = cooling.sample(64, "ood", seed=1)
    y = torch.full((64, 3), 0.5, dtype=torch.float64, requires_grad=True)
    penalty = RulePenalty(rules, reduction="sum")
    held = rules.satisfied(y, x)
    optimizer = torch.optim.Adam([y], lr=0.01)
    for _ in range(300):
        optimizer.zero_grad()
        penalty(y, x).backward()
        optimizer.step()
    now = rules.satisfied(y, x, tol=0.02)
    assert y[held].eq(0.5).all()
    assert 8 <= (~held).sum() <= 56
    # Not all: rules that pull at one output from both sides can hold each other up.
    assert now[~held].double().mean() > 0.8


def test_rows_just_met_leave_no_gradient() -> None:
    """What a projection returns sits on its rows."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 1))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] <= 1)
    m.rule = Disjunction(expr=[[m.y[0] <= 0.5, m.y[1] >= 0.5], [m.y[0] >= 1]])
    penalty = RulePenalty(gdpnet.RuleModel(m, outputs=[m.y]))
    y = torch.tensor([[0.5, 0.5], [1.0, 0.0]], requires_grad=True)
    value = penalty(y)
    value.backward()
    assert value.item() == 0.0
    assert y.grad is not None
    assert y.grad.eq(0).all()


# ---- shapes, types, devices ---------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,)])
def test_any_leading_shape(shape: tuple[int, ...]) -> None:
    penalty = RulePenalty(cooling.build(), reduction="none")
    y = torch.rand(*shape, 3, dtype=torch.float64)
    x = cooling.sample(math.prod(shape), "ood")[0].reshape(*shape, 7)
    value = penalty(y, x)
    assert value.shape == shape
    flat = penalty(y.reshape(-1, 3), x.reshape(-1, 7))
    assert (value.reshape(-1) == flat).all()


def test_one_x_for_all_samples() -> None:
    penalty = RulePenalty(nested_rules(), reduction="none")
    y = torch.rand(4, 2, dtype=torch.float64) * 10
    x = torch.tensor([2.0], dtype=torch.float64)
    assert (penalty(y, x) == penalty(y, x.expand(4, 1))).all()


@pytest.mark.parametrize(
    ("dtype", "rounding"),
    [(torch.float16, 1e-2), (torch.bfloat16, 0.1), (torch.float32, 1e-5), (torch.float64, 0.0)],
)
def test_type_of_y_is_kept(dtype: torch.dtype, rounding: float) -> None:
    penalty = RulePenalty(nested_rules()).to(dtype)
    y = torch.tensor([[2.625, 1.5], [0.25, 7.0]], dtype=dtype, requires_grad=True)
    x = torch.tensor([[2.0], [1.5]])
    value = penalty(y, x)
    assert value.dtype == dtype
    value.backward()
    assert y.grad is not None
    assert y.grad.dtype == dtype
    exact = RulePenalty(nested_rules())(y.detach().double(), x.double())
    assert value.item() == pytest.approx(exact.item(), rel=rounding, abs=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ["exactly", "conditional_logic", "midway"])
def test_cuda_tensors(name: str) -> None:
    problem = BY_NAME[name]
    penalty = RulePenalty(problem.rules(), reduction="none")
    x = None if problem.x is None else problem.x.cuda()
    on_device = penalty(problem.yhat.cuda(), x)
    assert on_device.is_cuda
    torch.testing.assert_close(on_device.cpu(), penalty(problem.yhat, problem.x))


def test_copies_and_files() -> None:
    problem = BY_NAME["nested_in_logic"]
    penalty = RulePenalty(problem.rules(), reduction="none")
    y, x = problem.yhat, problem.x
    file = io.BytesIO()
    torch.save(penalty, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for other in (copy.deepcopy(penalty), pickle.loads(pickle.dumps(penalty)), loaded):
        assert (other(y, x) == penalty(y, x)).all()
    assert penalty.state_dict() == {}
    assert list(penalty.parameters()) == []


def test_without_rules_bounds_and_globals_count() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 4))
    m.y[1].setub(None)
    m.sum = pyo.Constraint(expr=m.y[0] + m.y[1] == 8)
    penalty = RulePenalty(gdpnet.RuleModel(m, outputs=[m.y]), weight=1.0, reduction="none")
    y = torch.tensor([[5.0, 3.0], [1.0, 5.0], [2.0, 6.0], [-1.0, 9.0]], dtype=torch.float64)
    assert penalty(y).tolist() == [0.25, 0.25, 0.0, 1.0]


# ---- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize("problem", WITH_AUXILIARIES, ids=lambda problem: problem.name)
def test_auxiliaries_are_named(problem: Problem) -> None:
    rules = problem.rules()
    with pytest.raises(gdpnet.errors.RuleError) as caught:
        RulePenalty(rules)
    assert all(name in str(caught.value) for name in rules.auxiliary_names[:8])


def test_too_many_choices_are_refused_at_once() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(16), bounds=(0, 1))
    m.low, m.high = Disjunct(range(16)), Disjunct(range(16))
    for i in range(16):
        m.low[i].row = pyo.Constraint(expr=m.y[i] <= 0.3)
        m.high[i].row = pyo.Constraint(expr=m.y[i] >= 0.7)
    m.split = Disjunction(range(16), rule=lambda m, i: [m.low[i], m.high[i]])
    indicators = [m.high[i].indicator_var for i in range(16)]
    m.some = pyo.LogicalConstraint(expr=pyo.lor(*indicators))
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"16 rules together.*more than 10000 choices"
    ):
        RulePenalty(gdpnet.RuleModel(m, outputs=[m.y]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": -1.0}, "weight: expected a finite number >= 0, got -1.0"),
        ({"weight": math.nan}, "weight"),
        ({"temperature": 0}, "temperature: expected a finite number > 0, got 0"),
        ({"temperature": "cold"}, "temperature.*'cold'"),
        ({"reduction": "max"}, "reduction: expected one of 'mean', 'sum', 'none', got 'max'"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(gdpnet.errors.InputError, match=message):
        RulePenalty(BY_NAME["midway"].rules(), **options)


def test_bad_arguments() -> None:
    with pytest.raises(
        gdpnet.errors.InputError, match=r"rules: expected a gdpnet\.RuleModel, got str"
    ):
        RulePenalty("rules")  # type: ignore[arg-type]
    penalty = RulePenalty(nested_rules())
    with pytest.raises(gdpnet.errors.InputError, match="x: these rules have inputs"):
        penalty(torch.zeros(3, 2))
    with pytest.raises(gdpnet.errors.InputError, match="y: NaN or infinity in row 1"):
        penalty(torch.tensor([[0.0, 1.0], [math.nan, 0.0]]), torch.ones(2, 1))
    with pytest.raises(gdpnet.errors.InputError, match="y: expected 2 columns"):
        penalty(torch.zeros(3, 4), torch.ones(3, 1))


def test_repr_tells_the_settings() -> None:
    assert repr(RulePenalty(nested_rules())) == (
        "RulePenalty(rules=1, weight=2, temperature=0.01, reduction='mean')"
    )
