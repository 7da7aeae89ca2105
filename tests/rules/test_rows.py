"""Rows: coefficients and right sides that depend on the inputs, against `pyo.value`."""

from __future__ import annotations

import math
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gdpnet

REPRODUCIBLE = settings(derandomize=True, deadline=None, database=None, max_examples=100)
D = 3
P = 4  # p[0] and p[1] are positive, p[2] and p[3] of any sign


def base() -> Any:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(P), mutable=True, initialize=1.0)
    m.y = pyo.Var(range(D))
    m.named = pyo.Expression(pyo.NonNegativeIntegers)
    return m


def set_params(m: Any, x: list[float]) -> None:
    for i, value in enumerate(x):
        m.p[i] = value


# An expression is drawn as a function of the model, so that one draw can be written twice.
Writer = Any


def named(m: Any, expression: Any) -> Any:
    m.named.add(len(m.named), expression)
    return m.named[len(m.named) - 1]


param_leaf = st.one_of(
    st.integers(0, P - 1).map(lambda i: lambda m: m.p[i]),
    st.sampled_from([-2.0, -0.5, 0.25, 1.0, 3.0]).map(lambda c: lambda m: c),
)
unary = {
    "exp": lambda m, a: pyo.exp(0.3 * pyo.tanh(a)),
    "log": lambda m, a: pyo.log(m.p[0] + a**2),
    "log10": lambda m, a: pyo.log10(m.p[1] + a**2),
    "sqrt": lambda m, a: pyo.sqrt(m.p[1] + abs(a)),
    "abs": lambda m, a: abs(a - 0.3),
    "negation": lambda m, a: -a,
    "square": lambda m, a: a**2,
    "cube": lambda m, a: (0.2 * a) ** 3,
    "sin": lambda m, a: pyo.sin(a),
    "cos": lambda m, a: pyo.cos(a),
    "atan": lambda m, a: pyo.atan(a),
    "named": named,
    "relu": lambda m, a: gdpnet.relu(a),
}
binary = {
    "sum": lambda m, a, b: a + b,
    "difference": lambda m, a, b: a - b,
    "product": lambda m, a, b: a * b,
    "division": lambda m, a, b: a / (1.5 + b**2),
    "power": lambda m, a, b: (m.p[0] + abs(a)) ** (0.2 * b),
    "maximum": lambda m, a, b: gdpnet.maximum(a, b, -1),
    "minimum": lambda m, a, b: gdpnet.minimum(a, 2, b),
    "if": lambda m, a, b: pyo.Expr_if(m.p[2] >= m.p[3], a, b),
    "if strict": lambda m, a, b: pyo.Expr_if(m.p[2] * m.p[3] < 0.4, a + b, a * b),
}


def _param_layer(inner: st.SearchStrategy[Writer]) -> st.SearchStrategy[Writer]:
    return st.one_of(
        st.builds(lambda f, a: lambda m: f(m, a(m)), st.sampled_from(list(unary.values())), inner),
        st.builds(
            lambda f, a, b: lambda m: f(m, a(m), b(m)),
            st.sampled_from(list(binary.values())),
            inner,
            inner,
        ),
    )


params = st.recursive(param_leaf, _param_layer, max_leaves=6)
monomials = st.builds(
    lambda a, i, form: (
        lambda m: {
            "times": lambda: a(m) * m.y[i],
            "over": lambda: m.y[i] / (2 + a(m) ** 2),
            "named": lambda: a(m) * named(m, m.y[i] - a(m)),
            "if": lambda: pyo.Expr_if(m.p[2] <= 0.1, a(m) * m.y[i], 2 * m.y[0] - a(m)),
            "plain": lambda: m.y[i],
        }[form]()
    ),
    params,
    st.integers(0, D - 1),
    st.sampled_from(["times", "times", "over", "named", "if", "plain"]),
)


def _linear_layer(inner: st.SearchStrategy[Writer]) -> st.SearchStrategy[Writer]:
    return st.one_of(
        st.builds(lambda a, b: lambda m: a(m) + b(m), inner, inner),
        st.builds(lambda a, b: lambda m: a(m) - b(m), inner, inner),
        st.builds(lambda a, b: lambda m: a(m) * b(m), params, inner),
        st.builds(lambda a, b: lambda m: b(m) / (1 + abs(a(m))), params, inner),
        st.builds(lambda a, b: lambda m: a(m) + b(m), params, inner),
    )


bodies = st.recursive(monomials, _linear_layer, max_leaves=4)
relations = st.one_of(
    st.builds(lambda e, a: lambda m: e(m) <= a(m), bodies, params),
    st.builds(lambda e, a: lambda m: e(m) >= a(m), bodies, params),
    st.builds(lambda e, a: lambda m: e(m) == a(m), bodies, params),
    st.builds(lambda e, f: lambda m: e(m) <= f(m), bodies, bodies),
    st.builds(
        lambda e, a, b: lambda m: pyo.inequality(a(m), e(m), a(m) + b(m) ** 2),
        bodies,
        params,
        params,
    ),
    st.builds(lambda i, j: lambda m: m.y[i] == m.p[j], st.integers(0, D - 1), st.integers(0, 3)),
    st.builds(lambda i, j: lambda m: m.p[j] >= m.y[i], st.integers(0, D - 1), st.integers(0, 3)),
)
positive = st.floats(0.4, 2.0)
any_sign = st.floats(-1.5, 1.5)
points = st.tuples(positive, positive, any_sign, any_sign).map(list)
outputs = st.lists(st.floats(-2.0, 2.0), min_size=D, max_size=D)


def expected_rows(constraint: Any) -> list[tuple[float, bool]]:
    """Values of `form` in `form <= 0` (or `== 0`) by Pyomo, at the values set."""
    body = pyo.value(constraint.body)
    lower, upper = pyo.value(constraint.lower), pyo.value(constraint.upper)
    if constraint.equality:
        return [(body - upper, True)]
    found = []
    if lower is not None:
        found.append((lower - body, False))
    if upper is not None:
        found.append((body - upper, False))
    return found


def table_rows(rules: gdpnet.RuleModel, x: torch.Tensor, y: torch.Tensor) -> tuple[Any, Any]:
    """`a y - b` of each row, and the size of what was added up, `batch x rows`."""
    values = rules.table.evaluate(x)
    matrix = values.shared.dense.expand(len(x), -1, -1).clone()
    if len(values.varying):
        matrix[:, values.varying] = values.coefficients
    size = (matrix.abs() @ y.abs().unsqueeze(2)).squeeze(2) + values.bound.abs()
    residual = (matrix @ y.unsqueeze(2)).squeeze(2) - values.bound
    assert torch.allclose(values.activity(y) - values.bound, residual, rtol=1e-13, atol=1e-13)
    return residual, size


@REPRODUCIBLE
@given(
    st.lists(relations, min_size=1, max_size=3),
    st.lists(st.tuples(points, outputs), min_size=1, max_size=4),
)
def test_rows_equal_pyomo_row_by_row(
    writers: list[Writer], samples: list[tuple[list[float], list[float]]]
) -> None:
    m = base()
    m.c = pyo.ConstraintList()
    for write in writers:
        relation = write(m)
        assume(not isinstance(relation, bool))
        try:
            m.c.add(relation)
        except ValueError:  # a constant of Pyomo's own
            assume(False)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    x = torch.tensor([sample[0] for sample in samples], dtype=torch.float64)
    y = torch.tensor([sample[1] for sample in samples], dtype=torch.float64)
    residual, size = table_rows(rules, x, y)
    for k, (inputs, values) in enumerate(samples):
        set_params(m, inputs)
        for i, value in enumerate(values):
            m.y[i].set_value(value)
        expected = [(row, data.name) for data in m.c.values() for row in expected_rows(data)]
        assert len(expected) == len(rules.data.rows) == residual.shape[1]
        for i, ((wanted, equality), name) in enumerate(expected):
            row = rules.data.rows[i]
            assert (row.name, row.equality) == (name, equality)
            got = float(residual[k, i])
            if equality and (got < 0) != (wanted < 0):
                got = -got  # an equality may be turned round
            assert math.isclose(got, wanted, rel_tol=0, abs_tol=1e-12 * max(1.0, float(size[k, i])))


@settings(REPRODUCIBLE, max_examples=60)
@given(st.lists(relations, min_size=1, max_size=3), points, st.integers(0, 2**31))
def test_gradients_equal_finite_differences(
    writers: list[Writer], point: list[float], seed: int
) -> None:
    assume(abs(point[2] - point[3]) > 1e-3)
    assume(abs(point[2] * point[3] - 0.4) > 1e-3)
    assume(abs(point[2] - 0.1) > 1e-3)
    m = base()
    m.c = pyo.ConstraintList()
    for write in writers:
        try:
            m.c.add(write(m))
        except ValueError:
            assume(False)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    generator = torch.Generator().manual_seed(seed)

    def entries(x: torch.Tensor) -> torch.Tensor:
        values = rules.table.evaluate(x)
        return torch.cat([values.bound, values.coefficients.flatten(1)], 1)

    x = torch.tensor([point], dtype=torch.float64, requires_grad=True)
    flat = entries(x)
    weights = torch.rand(flat.shape, generator=generator, dtype=torch.float64) + 0.5
    total = (flat * weights).sum()
    gradient = torch.zeros_like(x)
    if total.requires_grad:
        (gradient,) = torch.autograd.grad(total, x)
    h = 1e-6
    steps = x.detach() + h * torch.cat([torch.eye(P), -torch.eye(P)]).double()
    moved = (entries(steps) * weights).sum(1)
    difference = (moved[:P] - moved[P:]) / (2 * h)
    # A kink (of abs, max, min) within h of the point has no derivative to compare with.
    further = x.detach() + 2 * h * torch.cat([torch.eye(P), -torch.eye(P)]).double()
    wide = (entries(further) * weights).sum(1)
    one_sided = ((wide[:P] - moved[:P]) - (moved[P:] - wide[P:])).abs() / h
    assume(bool((one_sided < 1e-3 * (1 + difference.abs())).all()))
    scale = 1 + float(difference.abs().max()) + float(flat.detach().abs().max())
    assert torch.allclose(gradient[0], difference, rtol=0, atol=1e-7 * scale)


@pytest.mark.parametrize("in_a_coefficient", [False, True])
def test_the_branch_not_taken_may_be_nan(in_a_coefficient: bool) -> None:
    m = base()
    if in_a_coefficient:
        body = pyo.Expr_if(m.p[2] > 0, pyo.log(m.p[2]) * m.y[0], 3 * m.y[1])
        m.c = pyo.Constraint(expr=body <= 1)
        m.d = pyo.Constraint(expr=pyo.Expr_if(m.p[2] > 0, pyo.sqrt(m.p[2]), -m.p[2]) * m.y[0] <= 1)
    else:
        m.c = pyo.Constraint(expr=m.y[0] <= pyo.Expr_if(m.p[2] > 0, pyo.log(m.p[2]), 2 * m.p[2]))
        m.d = pyo.Constraint(expr=m.y[0] <= pyo.Expr_if(m.p[3] == 0, 5, 1 / m.p[3]))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    x = torch.tensor(
        [[1.0, 1.0, 0.5, 0.0], [1.0, 1.0, -0.5, 2.0], [1.0, 1.0, 0.0, 0.0]],
        dtype=torch.float64,
        requires_grad=True,
    )
    values = rules.table.evaluate(x)
    total = values.bound.sum() + values.coefficients.sum()
    assert bool(total.isfinite())
    assert not bool(values.unusable().any())
    (gradient,) = torch.autograd.grad(total, x)
    assert bool(gradient.isfinite().all())
    if in_a_coefficient:
        expected = [1 / 0.5 + 0.5 / math.sqrt(0.5), -1.0, -1.0]
        first = [[math.log(0.5), 0.0], [0.0, 3.0], [0.0, 3.0]]
        assert values.coefficients[:, 0, :2].tolist() == first
    else:
        expected = [1 / 0.5, 2.0, 2.0]
        assert gradient[:, 3].tolist() == [0.0, -0.25, 0.0]
    assert torch.allclose(gradient[:, 2], torch.tensor(expected, dtype=torch.float64))


def test_a_single_sample_takes_one_branch() -> None:
    m = base()
    m.c = pyo.Constraint(expr=m.y[0] <= pyo.Expr_if(m.p[2] > 0, pyo.log(m.p[2]), 7))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    x = torch.tensor([[1.0, 1.0, -1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    bound = rules.table.evaluate(x).bound
    assert bound.tolist() == [[7.0]]
    assert rules.table.evaluate(torch.zeros(0, P, dtype=torch.float64)).bound.shape == (0, 1)


def test_shared_coefficients_are_held_once() -> None:
    m = base()
    m.c = pyo.Constraint(expr=m.y[0] + 2 * m.y[1] <= m.p[0] * m.p[1])
    m.d = pyo.Constraint(expr=pyo.inequality(0, m.y[2], pyo.exp(m.p[3])))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    batch = 100_000
    values = rules.table.evaluate(torch.rand(batch, P, dtype=torch.float64))
    assert values.varying.numel() == 0
    assert values.shared.dense.shape == (3, D)
    assert values.coefficients.numel() == 0
    assert values.bound.shape == (batch, 3)
    held = sum(
        t.untyped_storage().nbytes()
        for t in (
            values.shared.dense,
            values.varying,
            values.coefficients,
            values.bound,
            values.equality,
        )
    )
    assert held <= batch * 3 * 8 + 1024


def test_nothing_that_depends_on_x_costs_nothing() -> None:
    m = base()
    m.c = pyo.Constraint(expr=m.y[0] + 2 * m.y[1] <= 3)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    values = rules.table.evaluate(torch.rand(100_000, P, dtype=torch.float64))
    assert values.bound.shape == (100_000, 1)
    assert values.bound.untyped_storage().nbytes() == 8


def test_only_rows_that_vary_are_held_for_each_sample() -> None:
    m = base()
    m.c = pyo.Constraint(expr=m.y[0] + m.p[0] * m.y[1] <= 3)
    m.d = pyo.Constraint(expr=m.y[0] + m.y[1] <= m.p[1])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    values = rules.table.evaluate(torch.tensor([[2.0, 5.0, 0.0, 0.0]] * 10, dtype=torch.float64))
    assert values.varying.tolist() == [0]
    assert values.coefficients.shape == (10, 1, D)
    assert values.coefficients[3].tolist() == [[1.0, 2.0, 0.0]]
    assert values.shared.dense[1].tolist() == [1.0, 1.0, 0.0]
    assert values.bound[3].tolist() == [3.0, 5.0]


def test_dependence_that_cancels_is_no_dependence() -> None:
    m = base()
    m.c = pyo.Constraint(expr=m.p[0] * m.y[0] + m.y[1] - m.p[0] * m.y[0] <= 3 + m.p[1] - m.p[1])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    values = rules.table.evaluate(torch.ones(5, P, dtype=torch.float64))
    assert values.varying.numel() == 0
    assert values.shared.dense.tolist() == [[0.0, 1.0, 0.0]]
    assert values.bound.untyped_storage().nbytes() == 8


def test_equal_expressions_are_one_atom() -> None:
    m = base()
    m.c = pyo.Constraint(range(20), rule=lambda m, i: m.y[0] <= i + (i + 1) * pyo.exp(m.p[0]))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    assert len(rules.table.atoms) == 1


def test_order_of_inputs_and_outputs() -> None:
    m = pyo.ConcreteModel()
    m.s = pyo.Param(mutable=True)
    m.p = pyo.Param(["b", "a"], mutable=True)
    m.q = pyo.Param([(1, 2), (1, 1)], mutable=True, initialize=0.0)
    m.y = pyo.Var(["v", "u"])
    m.z = pyo.Var()
    m.c = pyo.Constraint(
        expr=m.z + 2 * m.y["u"] + 3 * m.y["v"]
        <= 1000 * m.s + 100 * m.p["a"] + 10 * m.p["b"] + m.q[1, 1] + 7 * m.q[1, 2]
    )
    rules = gdpnet.RuleModel(
        m, outputs=[m.y["u"], m.z, m.y["v"]], inputs=[m.q, m.p["a"], m.s, m.p["b"]]
    )
    assert rules.output_names == ("y[u]", "z", "y[v]")
    assert rules.input_names == ("q[1,2]", "q[1,1]", "p[a]", "s", "p[b]")
    values = rules.table.evaluate(torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]], dtype=torch.float64))
    assert values.shared.dense.tolist() == [[2.0, 1.0, 3.0]]
    assert values.bound.tolist() == [[4000 + 300 + 50 + 2 + 7]]
    whole = gdpnet.RuleModel(m, outputs=[m.y, m.z], inputs=[m.s, m.p, m.q])
    assert whole.output_names == ("y[v]", "y[u]", "z")
    assert whole.input_names == ("s", "p[b]", "p[a]", "q[1,2]", "q[1,1]")


def test_a_mutable_param_that_is_no_input_is_a_constant() -> None:
    m = base()
    m.k = pyo.Param(mutable=True, initialize=4.0)
    m.c = pyo.Constraint(expr=m.k * m.y[0] <= m.k**2 + m.p[0])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p[0]])
    m.k = 100.0  # a snapshot: later edits are not seen
    values = rules.table.evaluate(torch.tensor([[1.0]], dtype=torch.float64))
    assert values.shared.dense[0, 0] == 4.0
    assert values.bound.tolist() == [[17.0]]


def test_a_constant_without_a_value_is_refused_by_name() -> None:
    m = base()
    m.unset = pyo.Param(mutable=True)
    m.limit = pyo.Constraint(expr=m.y[0] <= m.unset)
    with pytest.raises(gdpnet.errors.RuleError, match=r"limit.*'unset'.*inputs"):
        gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


def test_inputs_need_no_value() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param([1, 2], mutable=True)
    m.y = pyo.Var(bounds=(m.p[1], m.p[2] + 1))
    m.c = pyo.Constraint(expr=m.y * m.p[1] <= pyo.exp(m.p[2]))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    x, y = [[1.0, 3.0], [1.0, 3.0], [1.0, 3.0], [-1.0, 0.0]], [[0.5], [1.0], [4.5], [-1.0]]
    assert rules.satisfied(y, x).tolist() == [False, True, False, True]


def test_params_in_bounds_of_vars() -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True, initialize=1.0)
    m.y = pyo.Var(bounds=(-m.p[0], 2 * m.p[1]))
    m.z = pyo.Var(bounds=(m.p[0], 9), domain=pyo.NonNegativeReals)
    m.fixed = pyo.Var(bounds=(0, 1), initialize=0.25)
    m.fixed.fix()
    rules = gdpnet.RuleModel(m, outputs=[m.y, m.z, m.fixed], inputs=[m.p])
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-3, 4, (300, 2), generator=generator).double()
    y = torch.randint(-4, 5, (300, 3), generator=generator).double()
    y[:, 2] = torch.where(y[:, 2] < 2, 0.25, y[:, 2])
    expected = []
    for inputs, values in zip(x.tolist(), y.tolist(), strict=True):
        m.p[0], m.p[1] = inputs
        expected.append(
            all(
                v.lb - 1e-9 <= value <= v.ub + 1e-9
                for v, value in zip((m.y, m.z), values, strict=False)
            )
            and values[2] == 0.25
        )
    assert rules.satisfied(y, x).tolist() == expected
    assert {*expected} == {False, True}


def test_params_alone_on_both_sides() -> None:
    """A row without outputs says for which inputs nothing can be satisfied."""
    m = base()
    m.c = pyo.Constraint(expr=m.p[0] + 0 * m.y[0] <= m.p[1])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    x = [[1.0, 2.0, 0.0, 0.0], [2.0, 1.0, 0.0, 0.0]]
    assert rules.satisfied([[0.0] * D] * 2, x).tolist() == [True, False]


def test_functions_of_numbers_and_of_variables() -> None:
    assert gdpnet.maximum(1, 5.0, 3) == 5.0
    assert gdpnet.minimum(1, 5.0, 3) == 1
    assert gdpnet.relu(-2.0) == 0
    assert gdpnet.relu(2.0) == 2.0
    m = base()
    m.bad = pyo.Constraint(expr=gdpnet.maximum(m.y[0], m.p[0]) >= 3)
    with pytest.raises(gdpnet.errors.RuleError, match=r"'bad'.*convex as <=, not as >="):
        gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


@pytest.mark.parametrize("extreme", [gdpnet.maximum, gdpnet.minimum])
def test_extremes_of_fixed_vars_are_constants(extreme: Any) -> None:
    m = base()
    m.v = pyo.Var(initialize=2.0)
    m.v.fix()
    m.c = pyo.Constraint(expr=m.y[0] <= extreme(m.v, m.p[0]))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    x = torch.tensor([[1.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    expected = [[2.0], [3.0]] if extreme is gdpnet.maximum else [[1.0], [2.0]]
    assert rules.table.evaluate(x).bound.tolist() == expected


@pytest.mark.parametrize(
    "function",
    [
        "exp",
        "log",
        "log10",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "atanh",
        "ceil",
        "floor",
        "acosh",
    ],
)
def test_every_function_of_pyomo(function: str) -> None:
    m = base()
    f = getattr(pyo, function)
    shift = 1.0 if function == "acosh" else 0.0
    m.c = pyo.Constraint(expr=m.y[0] <= f(m.p[0] + shift))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    for value in (0.1, 0.5, 0.9):
        m.p[0] = value
        x = torch.tensor([[value, 0.0, 0.0, 0.0]], dtype=torch.float64)
        got = float(rules.table.evaluate(x).bound)
        assert math.isclose(got, pyo.value(f(m.p[0] + shift)), rel_tol=1e-14, abs_tol=1e-14)


def test_coefficients_that_are_not_finite_are_refused_by_name() -> None:
    m = base()
    m.ratio = pyo.Constraint(expr=m.y[0] / m.p[3] <= 1)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    x = [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0]]
    with pytest.raises(
        gdpnet.errors.InputError, match=r"coefficients of ratio are not finite for row 1"
    ):
        rules.satisfied([[0.0] * D] * 2, x)


def test_large_models_are_read_in_linear_time() -> None:
    m = pyo.ConcreteModel()
    n = 3000
    m.p = pyo.Param(range(n), mutable=True)
    m.y = pyo.Var(range(n))
    m.c = pyo.Constraint(expr=sum(m.y[i] * m.p[i] for i in range(n)) <= sum(m.p.values()))
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    assert len(rules.table.atoms) == n
    values = rules.table.evaluate(torch.arange(n, dtype=torch.float64).repeat(2, 1))
    assert values.bound.tolist() == [[n * (n - 1) / 2]] * 2
    assert torch.equal(values.coefficients[1, 0], torch.arange(n, dtype=torch.float64))
