"""p.auxiliaries and p.load_into: the whole solution, checked by Pyomo's own evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.errors import InputError
from gdpnet.solve.status import Status
from gdpnet.testing import PROBLEMS, Problem
from tests.rules import test_pyomo_models as pyomo_models

ANSWERED = (Status.SATISFIED, Status.PROJECTED, Status.LIMIT)
TOLERANCE = 1e-7  # scaled by the size of the numbers in a row

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pyomo.*")


def clear(m: Any) -> None:
    """Forget all values, so that what is looked at was loaded."""
    everywhere: Any = {"descend_into": (pyo.Block, Disjunct)}
    for kind in (pyo.Var, pyo.BooleanVar):
        for variable in m.component_data_objects(kind, **everywhere):
            if not variable.fixed:
                variable.set_value(None)


def switched_off(m: Any, names: list[str]) -> None:
    for name in names:
        m.find_component(name).deactivate()


def broken(block: Any) -> list[str]:
    """Active Constraints, Disjunctions and LogicalConstraints that do not hold in a region."""
    found = []
    for component in block.component_objects(descend_into=False):
        if component.ctype not in KINDS or component.is_reference():
            continue
        for data in component.values():
            if data.active:
                found += KINDS[component.ctype](data)
    return found


def broken_row(data: Any) -> list[str]:
    body = pyo.value(data.body)
    ends = [pyo.value(end) for end in (data.lower, data.upper) if end is not None]
    size = max(1.0, abs(body), *(abs(end) for end in ends))
    low = -float("inf") if data.lower is None else pyo.value(data.lower)
    high = float("inf") if data.upper is None else pyo.value(data.upper)
    holds = low - TOLERANCE * size <= body <= high + TOLERANCE * size
    return [] if holds else [f"{data.name}: {low} <= {body} <= {high}"]


def broken_disjunction(data: Any) -> list[str]:
    chosen = [d for d in data.disjuncts if d.active and pyo.value(d.indicator_var)]
    found = [] if chosen else [f"{data.name}: no disjunct"]
    for disjunct in chosen:
        found += broken(disjunct)
    return found


def broken_logic(data: Any) -> list[str]:
    return [] if pyo.value(data.expr) else [data.name]


KINDS: dict[Any, Any] = {
    pyo.Constraint: broken_row,
    Disjunction: broken_disjunction,
    pyo.LogicalConstraint: broken_logic,
    pyo.Block: broken,
}


def chosen(m: Any, rules: gdpnet.RuleModel) -> list[list[int]]:
    """Positions of the true disjuncts of every rule."""
    found = []
    for name in rules.names:
        rule = m.find_component(name)
        disjuncts = rule.disjuncts if rule.ctype is Disjunction else []
        found.append([k for k, d in enumerate(disjuncts) if d.indicator_var.value])
    return found


@pytest.mark.parametrize("solver", ["exact", "milp"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_bank(problem: Problem, solver: str) -> None:
    rules = problem.rules()
    p = gdpnet.project(rules, problem.yhat, problem.x, solver=solver)
    assert set(p.auxiliaries) == set(rules.auxiliary_names)
    for k, sample in enumerate(problem.samples):
        m = problem.build()
        clear(m)
        if p.status[k].item() not in ANSWERED:
            assert all(value[k].isnan() for value in p.auxiliaries.values())
            with pytest.raises(InputError, match=Status(p.status[k].item()).name):
                p.load_into(m, k)
            continue
        p.load_into(m, k)
        off = problem.off(problem.params(sample))
        for name, positions, at in zip(
            rules.names, chosen(m, rules), p.disjunct[k].tolist(), strict=True
        ):
            if m.find_component(name).ctype is Disjunction:
                assert (at in positions) if at >= 0 else positions == []
                if m.find_component(name).xor:
                    assert len(positions) <= 1
        switched_off(m, off)
        assert broken(m) == []
        for name, value in zip(rules.output_names, p.y[k].tolist(), strict=True):
            assert m.find_component(name).value == value
        for name, column in p.auxiliaries.items():
            assert column.dtype is torch.float64
            assert column.shape == (len(problem.samples),)
            assert m.find_component(name).value == pytest.approx(column[k].item(), abs=1e-12)
        for variable in m.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
            if variable.value is not None and variable.name in rules.auxiliary_names:
                low, high = variable.bounds
                assert low is None or variable.value >= low - TOLERANCE
                assert high is None or variable.value <= high + TOLERANCE
                assert variable.is_continuous() or variable.value == round(variable.value)


@pytest.mark.parametrize(
    "name", [n for n, v in pyomo_models.TABLE.items() if v == pyomo_models.READ]
)
def test_models_of_pyomo(name: str) -> None:
    build = pyomo_models.functions().get(name)
    if build is None:
        pytest.skip("this Pyomo does not have it")
    m, outputs = pyomo_models.built(build)
    for given in pyomo_models.choices(m, outputs).values():
        rules = gdpnet.RuleModel(m, outputs=given)
        p = gdpnet.project(rules, pyomo_models.predictions(rules, len(name)))
        loaded = 0
        for k, status in enumerate(p.status.tolist()):
            if status in ANSWERED:
                clear(m)
                p.load_into(m, k)
                assert broken(m) == []
                loaded += 1
        assert loaded or (p.status == Status.CONFLICT).all()


def power() -> Any:
    m = pyo.ConcreteModel()
    m.T = pyo.Param(mutable=True, initialize=0.0)
    m.f, m.c = pyo.Var(bounds=(0, 1)), pyo.Var(bounds=(0, 1))
    m.P = pyo.Var(bounds=(0, 10))
    m.unused = pyo.Var(initialize=7.0)
    m.define = pyo.Constraint(expr=m.P == 2 * m.f + 3 * m.c)
    m.limit = Disjunction(expr=[[m.P <= 2], [m.P >= 3 + m.T, m.c <= 0.4]])
    return m


def power_rules() -> gdpnet.RuleModel:
    m = power()
    return gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.T])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_predictions_that_pass(dtype: torch.dtype) -> None:
    yhat = torch.tensor([[0.2, 0.3], [1.0, 0.4]], dtype=dtype)
    p = gdpnet.project(power_rules(), yhat, torch.zeros(1, dtype=dtype))
    assert p.status.tolist() == [Status.SATISFIED] * 2
    assert p.auxiliaries["P"].dtype is torch.float64
    wanted = 2 * yhat[:, 0].double() + 3 * yhat[:, 1].double()
    assert p.auxiliaries["P"].tolist() == pytest.approx(wanted.tolist(), abs=1e-6)


def test_shapes_and_inputs() -> None:
    yhat, x = torch.rand(2, 3, 2, dtype=torch.float64), torch.rand(2, 3, 1, dtype=torch.float64)
    p = gdpnet.project(power_rules(), yhat, x)
    assert p.auxiliaries["P"].shape == (2, 3)
    m = power()
    p.load_into(m, sample=4)
    assert m.T.value == x[1, 1, 0].item()
    assert m.P.value == p.auxiliaries["P"][1, 1].item()
    assert m.unused.value == 7.0
    single = gdpnet.project(power_rules(), yhat[0, 0], x[0, 0])
    assert single.auxiliaries["P"].shape == ()
    single.load_into(m)
    assert m.f.value == single.y[0].item()


def test_where_rounding_moved_y() -> None:
    yhat = torch.tensor([[0.9, 0.9], [0.55, 0.37]], dtype=torch.float32)
    p = gdpnet.project(power_rules(), yhat, torch.zeros(1), strict=True)
    for k in range(2):
        m = power()
        p.load_into(m, k)
        assert broken(m) == []


def test_rules_of_a_file(tmp_path: Path) -> None:
    power_rules().save(tmp_path / "rules.json")
    rules = gdpnet.load_rules(tmp_path / "rules.json")
    m = power()
    gdpnet.project(rules, [[0.9, 0.9]], [0.5]).load_into(m)
    assert broken(m) == []
    assert m.T.value == 0.5


def test_a_block_of_the_model() -> None:
    m = pyo.ConcreteModel()
    m.b = power().clone()
    rules = gdpnet.RuleModel(m.b, outputs=[m.b.f, m.b.c])
    gdpnet.project(rules, [[0.9, 0.9]]).load_into(m.b)
    assert broken(m) == []


def test_relaxed_samples_have_none() -> None:
    m = power()
    m.apart = Disjunction(expr=[[m.f <= 0.2], [m.f >= 0.8]])
    m.low = Disjunction(expr=[[m.f + m.c <= 0.5], [m.f + m.c >= 1.1]])
    rules = gdpnet.RuleModel(m, outputs=[m.f, m.c])
    p = gdpnet.project(rules, torch.rand(64, 2, generator=torch.manual_seed(1)), relaxation="cnf")
    relaxed = p.status == Status.RELAXED
    assert 0 < relaxed.sum() < 64
    assert torch.equal(p.auxiliaries["P"].isnan(), relaxed)
    first = relaxed.nonzero()[0].item()
    with pytest.raises(InputError, match=f"sample: {first} has no solution to load, it is RELAXED"):
        p.load_into(m, int(first))


def test_a_relaxation_that_holds_has_all() -> None:
    p = gdpnet.project(power_rules(), [[0.1, 0.1], [0.9, 0.9]], [0.0], relaxation="cnf")
    for k in range(2):
        if p.status[k] != Status.RELAXED:
            m = power()
            p.load_into(m, k)
            assert broken(m) == []
    assert p.status[0] == Status.SATISFIED


def test_refusals_by_name() -> None:
    p = gdpnet.project(power_rules(), [[0.9, 0.9]], [0.0])
    with pytest.raises(InputError, match=r"'unknown' has no Param 'T'\. Load into the model"):
        p.load_into(pyo.ConcreteModel())
    with pytest.raises(InputError, match="expected a Pyomo ConcreteModel or Block, got int"):
        p.load_into(3)
    for sample in (1, -2, 0.5):
        with pytest.raises(InputError, match="sample: expected a whole number below 1"):
            p.load_into(power(), sample)  # type: ignore[arg-type]


def test_booleans_that_are_one_variable() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.b = pyo.Var(domain=pyo.Binary)
    m.one, m.two, m.free = pyo.BooleanVar(), pyo.BooleanVar(), pyo.BooleanVar()
    m.one.associate_binary_var(m.b)
    m.two.associate_binary_var(m.b)
    m.row = pyo.Constraint(expr=m.y >= 6 * m.b)
    m.must = pyo.LogicalConstraint(expr=m.one.lor(m.free))
    m.never = pyo.LogicalConstraint(expr=pyo.lnot(m.free))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    gdpnet.project(rules, [[2.0]]).load_into(m)
    assert (m.y.value, m.b.value, m.one.value, m.two.value) == (6.0, 1, True, True)
    assert not m.free.value
    assert broken(m) == []
