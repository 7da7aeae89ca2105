"""BooleanVars with the same associated binary are one variable, as for Pyomo's gdp.bigm."""

from __future__ import annotations

import random
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet import Status
from gdpnet.testing import oracles

# Pyomo's own transformation of a BooleanVar that is associated with an indicator_var warns.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyomo.*"),
    pytest.mark.usefixtures("quiet_pyomo"),
]


@pytest.fixture
def quiet_pyomo(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR", logger="pyomo")


def agree(model: Any, outputs: list[Any], predictions: list[list[float]]) -> list[float]:
    """Distances of the projections, once they equal those of gdp.bigm and HiGHS."""
    rules = gdpnet.RuleModel(model, outputs=outputs)
    names = [variable.name for variable in outputs]
    wanted = [oracles.pyomo_distance(model, names, yhat) for yhat in predictions]
    for solver in ("auto", "milp"):
        p = gdpnet.project(rules, torch.tensor(predictions, dtype=torch.float64), solver=solver)
        assert p.distance.tolist() == pytest.approx(wanted, abs=1e-6)
        feasible = p.status != Status.CONFLICT
        assert bool(rules.satisfied(p.y[feasible]).all())
    return wanted


def two(**bounds: Any) -> Any:
    """y is at most 3, or at least 7."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.low, m.high = Disjunct(), Disjunct()
    m.low.c = pyo.Constraint(expr=m.y <= 3)
    m.high.c = pyo.Constraint(expr=m.y >= 7)
    m.d = Disjunction(expr=[m.low, m.high])
    m.b = pyo.Var(domain=pyo.Binary, **bounds)
    m.Y, m.Z = pyo.BooleanVar(), pyo.BooleanVar()
    return m


def with_indicator(m: Any) -> None:
    m.Y.associate_binary_var(m.low.indicator_var)


def with_its_binary(m: Any) -> None:
    m.Y.associate_binary_var(m.low.binary_indicator_var)


def through_another(m: Any) -> None:
    m.Z.associate_binary_var(m.low.indicator_var)
    m.Y.associate_binary_var(m.low.binary_indicator_var)
    m.same = pyo.LogicalConstraint(expr=m.Z.implies(m.Y))


def spelled_out(m: Any) -> None:
    m.same = pyo.LogicalConstraint(expr=m.Y.equivalent_to(m.low.indicator_var))


def shared(m: Any) -> None:
    m.Y.associate_binary_var(m.b)
    m.Z.associate_binary_var(m.b)
    m.same = pyo.LogicalConstraint(expr=m.Z.equivalent_to(m.low.indicator_var))


def in_a_row(m: Any) -> None:
    m.Y.associate_binary_var(m.b)
    m.row = pyo.Constraint(expr=m.b == m.low.binary_indicator_var)


def shared_and_in_a_row(m: Any) -> None:
    m.Y.associate_binary_var(m.b)
    m.Z.associate_binary_var(m.b)
    m.same = pyo.LogicalConstraint(expr=m.Z.implies(m.low.indicator_var))
    m.row = pyo.Constraint(expr=m.y <= 3 + 7 * (1 - m.b))
    m.other = pyo.Constraint(expr=m.b >= m.low.binary_indicator_var)


LINKS = [
    *(with_indicator, with_its_binary, through_another, spelled_out),
    *(shared, in_a_row, shared_and_in_a_row),
]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("wanted", [True, False])
def test_linked_to_a_disjunct(link: Any, wanted: bool) -> None:
    m = two()
    link(m)
    m.choice = pyo.LogicalConstraint(expr=m.Y if wanted else ~m.Y)
    found = agree(m, [m.y], [[2.0], [6.0], [8.0]])
    assert found == pytest.approx([0.0, 3.0, 5.0] if wanted else [5.0, 1.0, 0.0])


@pytest.mark.parametrize("link", LINKS)
def test_with_the_binary_as_an_output(link: Any) -> None:
    m = two()
    link(m)
    m.choice = pyo.LogicalConstraint(expr=m.Y.implies(m.low.indicator_var))
    agree(m, [m.y, m.b, m.low.binary_indicator_var], [[2.0, 1.0, 0.0], [8.0, 0.2, 0.9]])


def test_a_binary_that_is_fixed() -> None:
    for value in (0, 1):
        m = two()
        m.Y.associate_binary_var(m.b)
        m.same = pyo.LogicalConstraint(expr=m.Y.equivalent_to(m.low.indicator_var))
        m.b.fix(value)
        assert agree(m, [m.y], [[5.5]]) == pytest.approx([2.5 if value else 1.5])
        assert agree(m, [m.y, m.b], [[5.5, 0.5]]) == pytest.approx([3.0 if value else 2.0])


@pytest.mark.parametrize(("bounds", "distance"), [((0, 0), 1.5), ((1, 1), 2.5)])
def test_a_binary_whose_bounds_fix_it(bounds: Any, distance: float) -> None:
    m = two(bounds=bounds)
    m.Y.associate_binary_var(m.b)
    m.same = pyo.LogicalConstraint(expr=m.Y.equivalent_to(m.low.indicator_var))
    assert agree(m, [m.y], [[5.5]]) == pytest.approx([distance])


def test_an_indicator_whose_binary_has_bounds() -> None:
    m = two()
    m.low.binary_indicator_var.setub(0)
    assert agree(m, [m.y], [[1.0]]) == pytest.approx([6.0])


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("linked", ["indicator", "binary"])
def test_a_fixed_boolean_fixes_its_binary(value: bool, linked: str) -> None:
    m = two()
    m.Y.associate_binary_var(m.low.binary_indicator_var if linked == "indicator" else m.b)
    m.Y.fix(value)
    m.said = pyo.LogicalConstraint(expr=m.Y.lor(m.Z))
    m.row = pyo.Constraint(expr=m.y <= 9 - m.b)
    found = agree(m, [m.y], [[10.0]])
    assert found == pytest.approx([{"indicator": 7.0, "binary": 2.0}[linked] if value else 1.0])


def test_a_fixed_boolean_fixes_the_indicator_it_is() -> None:
    # Not compared: Pyomo 6.10.1 marks the indicator as fixed here, but not its binary.
    m = two()
    m.Y.associate_binary_var(m.low.indicator_var)
    m.Y.fix(True)
    m.said = pyo.LogicalConstraint(expr=m.Y.lor(m.Z))
    p = gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [10.0])
    assert p.y.tolist() == [3.0]


@pytest.mark.parametrize("value", [True, False])
def test_a_fixed_indicator_fixes_what_is_associated(value: bool) -> None:
    m = two()
    m.Y.associate_binary_var(m.low.indicator_var)
    m.low.indicator_var.fix(value)
    m.row = pyo.Constraint(expr=m.y <= 10 - m.b)
    m.Z.associate_binary_var(m.b)
    m.said = pyo.LogicalConstraint(expr=m.Z.equivalent_to(~m.Y))
    assert agree(m, [m.y], [[10.0]]) == pytest.approx([7.0 if value else 1.0])


def test_indexed() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.on, m.off = Disjunct(range(3)), Disjunct(range(3))
    m.Y = pyo.BooleanVar(range(3))
    for i in range(3):
        m.on[i].c = pyo.Constraint(expr=m.y[i] >= 4)
        m.off[i].c = pyo.Constraint(expr=m.y[i] == 0)
        partner = m.on[i].indicator_var if i else m.on[i].binary_indicator_var
        m.Y[i].associate_binary_var(partner)
    m.d = Disjunction(range(3), rule=lambda m, i: [m.on[i], m.off[i]])
    m.one = pyo.LogicalConstraint(expr=pyo.exactly(1, m.Y))
    m.after = pyo.LogicalConstraint(expr=m.Y[0].implies(m.Y[1]))
    found = agree(m, list(m.y.values()), [[5.0, 1.0, 1.0], [0.0, 5.0, 6.0], [0.0, 0.0, 0.0]])
    assert found == pytest.approx([9.0, 5.0, 4.0])


@pytest.mark.parametrize("partner", ["indicator_var", "binary_indicator_var"])
def test_nested(partner: str) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.a, m.b = Disjunct(), Disjunct()
    m.a.c = pyo.Constraint(expr=m.y[0] <= 4)
    m.b.c = pyo.Constraint(expr=m.y[0] >= 6)
    m.a.s, m.a.t = Disjunct(), Disjunct()
    m.a.s.c = pyo.Constraint(expr=m.y[1] <= 3)
    m.a.t.c = pyo.Constraint(expr=m.y[1] >= 7)
    m.a.inner = Disjunction(expr=[m.a.s, m.a.t])
    m.outer = Disjunction(expr=[m.a, m.b])
    m.inner, m.upper = pyo.BooleanVar(), pyo.BooleanVar()
    m.inner.associate_binary_var(getattr(m.a.s, partner))
    m.upper.associate_binary_var(getattr(m.a, partner))
    m.never = pyo.LogicalConstraint(expr=m.upper.implies(~m.inner))
    found = agree(m, list(m.y.values()), [[3.0, 1.0], [3.0, 8.0], [5.5, 5.0], [4.5, 6.0]])
    assert found == pytest.approx([3.0, 0.0, 0.5, 1.5])


def contracts(periods: int, seed: int) -> Any:
    """Purchases under standard, bulk or long contracts, chosen by BooleanVars of their own."""
    rng = random.Random(seed)
    m = pyo.ConcreteModel()
    m.T = pyo.RangeSet(periods)
    m.stock, m.bought, m.cost = (pyo.Var(m.T, bounds=(0, 400)) for _ in range(3))
    m.kind = pyo.Set(initialize=["standard", "bulk", *range(periods)])
    m.contract = Disjunct(m.T, m.kind)
    m.choose = pyo.BooleanVar(m.T, m.kind)
    price = {t: rng.randint(1, 3) for t in m.T}
    for t in m.T:
        for kind in m.kind:
            disjunct = m.contract[t, kind]
            m.choose[t, kind].associate_binary_var(disjunct.indicator_var)
            length = kind if isinstance(kind, int) else 0
            if t + length > periods:
                disjunct.deactivate()
                continue
            if kind == 0:  # a contract signed earlier
                continue
            span = range(t, t + length + 1)
            discount = {"standard": 1.0, "bulk": 0.75}.get(kind, rng.uniform(0.3, 0.9))
            least = 0 if kind == "standard" else rng.randint(40, 90)
            disjunct.price = pyo.Constraint(
                span, rule=lambda _, s, f=discount * price[t]: m.cost[s] == f * m.bought[s]
            )
            disjunct.amount = pyo.Constraint(span, rule=lambda _, s, a=least: m.bought[s] >= a)
    m.one = Disjunction(m.T, rule=lambda m, t: [m.contract[t, kind] for kind in m.kind])
    m.first = pyo.LogicalConstraint(expr=~m.choose[1, 0])
    m.running = pyo.LogicalConstraint(pyo.RangeSet(2, periods))
    for t in m.running.index_set():
        earlier = [m.choose[s, q] for s in range(1, t) for q in range(t - s, periods - s + 1)]
        m.running[t] = m.choose[t, 0].equivalent_to(pyo.lor(earlier))
    m.balance = pyo.Constraint(
        m.T,
        rule=lambda m, t: m.stock[t] == (m.stock[t - 1] if t > 1 else 0) + m.bought[t] - 60,
    )
    return m


@pytest.mark.parametrize("seed", range(2))
def test_contracts(seed: int) -> None:
    m = contracts(3, seed)
    rng = random.Random(seed)
    outputs = [*m.stock.values(), *m.bought.values(), *m.cost.values()]
    predictions = [[rng.uniform(0, 150) for _ in outputs] for _ in range(2)]
    assert min(agree(m, outputs, predictions)) > 1.0
    assert min(agree(m, list(m.cost.values()), [p[-3:] for p in predictions])) >= 0.0


@pytest.mark.parametrize("seed", range(12))
def test_random_associations(seed: int) -> None:
    rng = random.Random(seed)
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.low, m.high = Disjunct(range(3)), Disjunct(range(3))
    for i in range(3):
        m.low[i].c = pyo.Constraint(expr=m.y[i] <= 4)
        m.high[i].c = pyo.Constraint(expr=m.y[i] + 0.1 * m.y[(i + 1) % 3] >= 6)
    m.d = Disjunction(range(3), rule=lambda m, i: [m.low[i], m.high[i]])
    m.b = pyo.Var(range(3), domain=pyo.Binary)
    m.row = pyo.Constraint(expr=m.y[0] + m.y[1] <= 12 - 3 * m.b[0] + 2 * m.b[1])
    m.Y = pyo.BooleanVar(range(6))
    disjuncts = [*m.low.values(), *m.high.values()]
    partners = [
        *m.b.values(),
        *(d.indicator_var for d in disjuncts),
        *(d.binary_indicator_var for d in disjuncts),
    ]
    for boolean in m.Y.values():
        boolean.associate_binary_var(rng.choice(partners))
    if seed % 3 == 0:
        m.b[rng.randrange(3)].fix(rng.randrange(2))
    m.said = pyo.LogicalConstraint(range(3))
    literals = [*m.Y.values(), *(d.indicator_var for d in disjuncts)]
    for k in range(3):
        one, two, three = rng.sample(literals, 3)
        m.said[k] = pyo.lor(one, ~two, three) if k else one.implies(two.xor(three))
    outputs = [*m.y.values(), m.b[0]] if seed % 2 else list(m.y.values())
    predictions = [[rng.uniform(-1, 11) for _ in outputs] for _ in range(3)]
    agree(m, outputs, predictions)


# ---- refused --------------------------------------------------------------------------------


def test_fixed_to_different_values() -> None:
    m = two()
    m.Y.associate_binary_var(m.b)
    m.Z.associate_binary_var(m.b)
    m.Y.fix(True)
    m.Z.fix(False)
    m.said = pyo.LogicalConstraint(expr=m.Y.lor(m.Z))
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"'Y' is fixed to True and 'Z' to False.*'b'"
    ):
        gdpnet.RuleModel(m, outputs=[m.y])


def test_a_boolean_and_its_binary_fixed_to_different_values() -> None:
    m = two()
    m.Y.associate_binary_var(m.b)
    m.Y.fix(True)
    m.b.fix(0)
    m.said = pyo.LogicalConstraint(expr=m.Y.lor(m.Z))
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"'Y' is True and Var 'b' is False.*one variable"
    ):
        gdpnet.RuleModel(m, outputs=[m.y])


def test_fixed_without_a_value() -> None:
    m = two()
    m.Y.fix()
    m.said = pyo.LogicalConstraint(expr=m.Y.lor(m.Z))
    with pytest.raises(gdpnet.errors.RuleError, match=r"'Y' is fixed but has no value"):
        gdpnet.RuleModel(m, outputs=[m.y])


def test_a_partner_that_is_not_binary() -> None:
    m = two()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    m.Y.associate_binary_var(m.n)
    m.said = pyo.LogicalConstraint(expr=~m.Y)
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"'Y' is associated with Var 'n'.*not binary"
    ):
        gdpnet.RuleModel(m, outputs=[m.y])


def test_a_partner_of_another_model() -> None:
    m, other = two(), two()
    m.Y.associate_binary_var(other.b)
    m.said = pyo.LogicalConstraint(expr=~m.Y)
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"the binary 'b' does not belong to the model"
    ):
        gdpnet.RuleModel(m, outputs=[m.y])


def test_the_indicator_of_a_disjunct_in_no_disjunction() -> None:
    m = two()
    m.third = Disjunct()
    m.third.deactivate()
    m.third.indicator_var.unfix()
    m.Y.associate_binary_var(m.third.indicator_var)
    m.said = pyo.LogicalConstraint(expr=~m.Y)
    with pytest.raises(gdpnet.errors.RuleError, match=r"indicator of Disjunct 'third'.*no active"):
        gdpnet.RuleModel(m, outputs=[m.y])
