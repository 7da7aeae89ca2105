"""Rules as text and HTML: readable mathematics, the names of the model, conditions as written."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.ir import atoms


def conditional() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.Ta = pyo.Param(mutable=True)
    m.H = pyo.Param(mutable=True)
    m.f = pyo.Var(bounds=(0, 1))
    m.c = pyo.Var(bounds=(0, 1))
    m.demand = pyo.Constraint(expr=0.8 * m.f + m.c >= 0.1 + 0.01 * m.Ta)
    m.hot = gdpnet.rule(
        gdpnet.any_of(m.c >= 0.45, gdpnet.all_of(m.f >= 0.75, m.c <= 0.9)), when=m.Ta >= 28
    )
    m.humid = pyo.Constraint(expr=m.f >= 0.2)
    m.active_when[m.humid] = pyo.lor(m.H > 62, pyo.land(m.Ta < 12, pyo.lnot(m.H == 50)))
    return gdpnet.RuleModel(
        m, outputs=[m.f, m.c], inputs=[m.Ta, m.H], input_bounds={"Ta": (-10, 40)}
    )


CONDITIONAL = """\
RuleModel: 2 rules, 2 outputs, 2 inputs, 1 global constraint
  outputs
    f in [0, 1], c in [0, 1]
  inputs
    Ta in [-10, 40], H free
  always
    demand: 0.8*f + c >= 0.01*Ta + 0.1
  rules
    hot: if Ta >= 28: c >= 0.45 or (f >= 0.75 and c <= 0.9)
    humid: if H > 62 or (Ta < 12 and H != 50): f >= 0.2"""


def warm(x: torch.Tensor) -> torch.Tensor:
    return x[:, 0] > 1


def parametric() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True)
    m.y = pyo.Var(range(2))
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 4))
    m.b = pyo.Var(domain=pyo.Binary)
    m.a = pyo.Var(bounds=(0, None))
    m.scaled = pyo.Constraint(expr=m.p[0] * m.y[0] >= 1 - m.p[1])
    m.range = pyo.Constraint(
        expr=pyo.inequality(-(m.p[0] ** 2), m.y[1] + m.a, gdpnet.maximum(m.p[0], 3))
    )
    m.mixed = pyo.Constraint(expr=(2 + m.p[0]) * m.y[0] - m.n <= (m.p[0] + 1) / m.p[1] + 2 * m.b)
    m.switch = pyo.Constraint(
        expr=m.y[0] <= pyo.Expr_if(m.p[0] > 0, pyo.exp(-m.p[0]), (-2) ** m.p[1])
    )
    m.unit = pyo.Block()
    m.unit.balance = pyo.Constraint(expr=m.y[0] - m.y[1] == 1)
    m.unit.r = gdpnet.rule(gdpnet.any_of(m.y[0] <= 0, m.y[0] >= 2, m.n == 3), when=warm)
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.unit] = pyo.lor(m.p[0] >= 1, m.p[1] <= m.p[0])
    return gdpnet.RuleModel(m, outputs=[m.y, m.n, m.b], inputs=[m.p])


PARAMETRIC = """\
RuleModel: 2 rules, 4 outputs, 2 inputs, 4 global constraints, 1 auxiliary
  outputs
    y[0] free, y[1] free, n in [0, 4] whole, b in {0, 1}
  auxiliaries
    a in [0, inf]
  inputs
    p[0], p[1]
  always
    scaled: p[0]*y[0] >= -p[1] + 1
    range: y[1] + a >= -p[0]**2
    range: y[1] + a <= max(p[0], 3)
    mixed: (p[0] + 2)*y[0] - n - 2*b <= (p[0] + 1)/p[1]
    switch: y[0] <= if(p[0] > 0, exp(-p[0]), (-2)**p[1])
  rules
    unit.balance: if p[0] >= 1 or p[1] <= p[0]: y[0] - y[1] == 1
    unit.r: if (p[0] >= 1 or p[1] <= p[0]) and warm(x): y[0] <= 0 or y[0] >= 2 or n == 3"""


def nested() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.a, m.b, m.free = Disjunct(), Disjunct(), Disjunct()
    m.a.c = pyo.Constraint(expr=m.y[0] <= 3)
    m.a.inner = gdpnet.rule(gdpnet.any_of(m.y[1] <= 2, m.y[1] >= 8), when=m.p > 0)
    m.b.c = pyo.Constraint(expr=m.y[0] - 2 * m.y[1] >= 7)
    m.r = Disjunction(expr=[m.a, m.b, m.free])
    m.s = Disjunction(expr=[[m.y[0] + m.y[1] <= 4], [m.y[0] + m.y[1] >= 6]])
    m.only = pyo.LogicalConstraint(
        expr=pyo.implies(m.a.indicator_var, pyo.lnot(m.free.indicator_var))
    )
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


NESTED = """\
RuleModel: 2 rules, 2 outputs, 1 input, 0 global constraints
  outputs
    y[0] in [0, 10], y[1] in [0, 10]
  inputs
    p
  rules
    r: a (y[0] <= 3 and (if p > 0: y[1] <= 2 or y[1] >= 8)) or b (y[0] - 2*y[1] >= 7) or free \
(anything)
    s: y[0] + y[1] <= 4 or y[0] + y[1] >= 6
  logic
    only: a implies not free"""


def states() -> Any:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True)
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.on, m.off = Disjunct(range(3)), Disjunct(range(3))
    for i in range(3):
        m.on[i].c = pyo.Constraint(expr=m.y[i] >= 4)
        m.off[i].c = pyo.Constraint(expr=m.y[i] == 0)
    m.state = Disjunction(range(3), rule=lambda m, i: [m.on[i], m.off[i]])
    return m


def on(i: int) -> Any:
    return lambda m: m.on[i].indicator_var


P0, P1, P2 = on(0), on(1), on(2)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (lambda m: P0(m).implies(P1(m)), "on[0] implies on[1]"),
        (lambda m: pyo.lnot(P0(m)), "not on[0]"),
        (lambda m: P0(m).lor(P1(m)), "on[0] or on[1]"),
        (lambda m: P0(m).equivalent_to(P1(m)), "on[0] iff on[1]"),
        (lambda m: P0(m).xor(P1(m)), "on[0] xor on[1]"),
        (lambda m: P0(m).equivalent_to(P1(m).lor(P2(m))), "on[0] iff (on[1] or on[2])"),
        (lambda m: P0(m).land(P1(m)).implies(P2(m)), "(on[0] and on[1]) implies on[2]"),
        (lambda m: P0(m).implies(P1(m).land(P2(m))), "on[0] implies (on[1] and on[2])"),
        (lambda m: pyo.exactly(1, P0(m), P1(m), P2(m)), "exactly 1 of (on[0], on[1], on[2])"),
        (lambda m: pyo.atmost(1, P0(m), P1(m), P2(m)), "at most 1 of (on[0], on[1], on[2])"),
        (lambda m: pyo.atleast(2, P0(m), P1(m), P2(m)), "at least 2 of (on[0], on[1], on[2])"),
        (lambda m: pyo.atleast(4, P0(m), P1(m), P2(m)), "never"),
        (lambda m: m.Y.implies(P0(m)), "Y implies on[0]"),
        (lambda m: m.Z.implies(P0(m)), "on[1] implies on[0]"),
    ],
)
def test_logic_is_spelled_out(said: Any, expected: str) -> None:
    m = states()
    m.Y, m.Z = pyo.BooleanVar(), pyo.BooleanVar()
    m.Z.associate_binary_var(P1(m).get_associated_binary())
    m.said = pyo.LogicalConstraint(expr=said(m))
    lines = repr(gdpnet.RuleModel(m, outputs=[m.y])).splitlines()
    assert lines[-1] == f"    said: {expected}"
    assert "    state[0]: on[0] (y[0] >= 4) or off[0] (y[0] == 0)" in lines


def test_logic_with_conditions() -> None:
    m = states()
    m.on[0].l = pyo.LogicalConstraint(expr=P0(m).implies(P1(m)))
    m.l = pyo.LogicalConstraint(expr=P1(m).implies(P2(m)))
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.l] = pyo.lor(m.p > 1, m.p < 0)
    m.active_when[m.on[0].l] = pyo.lor(m.p > 1, m.p < 0)
    text = repr(gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p]))
    assert "    l: if p > 1 or p < 0: on[1] implies on[2]" in text
    assert "    on[0].l: if on[0] and (p > 1 or p < 0): on[0] implies on[1]" in text


def test_disjuncts_that_pyomo_named_have_no_name() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.b = pyo.Block([1])
    m.b[1].r = Disjunction([1], rule=lambda b, i: [[m.y <= 3], [m.y >= 7]])
    text = repr(gdpnet.RuleModel(m, outputs=[m.y]))
    assert "b[1].r[1]: y <= 3 or y >= 7" in text
    # Unless logic speaks of one.
    m.l = pyo.LogicalConstraint(expr=m.b[1].r[1].disjuncts[0].indicator_var)
    text = repr(gdpnet.RuleModel(m, outputs=[m.y]))
    name = m.b[1].r[1].disjuncts[0].name
    assert f"{name} (y <= 3) or " in text
    assert f"    l: {name}" in text


def test_large_models_are_summed_up() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2000), bounds=(0, 10))
    m.low, m.high = Disjunct(range(2000)), Disjunct(range(2000))
    for i in range(2000):
        m.low[i].c = pyo.Constraint(expr=m.y[i] <= 3)
        m.high[i].c = pyo.Constraint(expr=m.y[i] >= 7)
    m.d = Disjunction(range(2000), rule=lambda m, i: [m.low[i], m.high[i]])
    m.c = pyo.Constraint(range(100), rule=lambda m, i: sum(m.y.values()) >= i)
    m.l = pyo.LogicalConstraint(
        range(1999), rule=lambda m, i: m.low[i].indicator_var.implies(m.low[i + 1].indicator_var)
    )
    m.most = pyo.LogicalConstraint(
        expr=pyo.atmost(700, *(m.low[i].indicator_var for i in range(0, 2000, 100)))
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    start = time.process_time()
    text = repr(rules)
    assert time.process_time() - start < 1.0
    assert len(text) < 20_000
    assert "    ... and 80 more constraints\n" in text
    assert "    ... and 1980 more rules\n" in text
    assert text.endswith("    ... and 1979 more propositions")
    assert "y[23] + ... (2000 terms in all) >= 0" in text
    assert len(rules._repr_html_()) < 40_000


def test_rules_of_many_disjuncts_and_rows_are_cut() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(40), bounds=(0, 10))
    m.wide = Disjunction(expr=[[m.y[i] <= 3] for i in range(40)])
    m.tall = Disjunction(expr=[[m.y[i] <= 3 for i in range(40)], [m.y[0] >= 7]])
    text = repr(gdpnet.RuleModel(m, outputs=[m.y]))
    assert "y[11] <= 3 or ... (40 disjuncts in all)" in text
    assert "y[11] <= 3 and ... (40 rows in all)) or y[0] >= 7" in text


@pytest.mark.parametrize(
    ("build", "expected"),
    [(conditional, CONDITIONAL), (parametric, PARAMETRIC), (nested, NESTED)],
)
def test_text(build: Any, expected: str) -> None:
    assert repr(build()) == expected


def test_long_lists_are_cut() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(40))
    text = repr(gdpnet.RuleModel(m, outputs=[m.y]))
    assert "y[11], ... (40 in all)" in text
    assert "y[12]" not in text


class _Page(HTMLParser):
    """Checks that every tag is closed in order, and collects the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page_of(rules: gdpnet.RuleModel) -> _Page:
    page = _Page()
    page.feed(rules._repr_html_())
    page.close()
    return page


@pytest.mark.parametrize("build", [conditional, parametric, nested])
def test_html_is_well_formed_and_says_the_same(build: Any) -> None:
    rules = build()
    page = page_of(rules)
    assert page.open == []
    assert page.tags == {"div", "p", "b", "table", "tr", "th", "td", "code"}
    for line in repr(rules).splitlines()[1:]:
        name, _, body = line.strip().partition(": ")
        assert name in page.text
        assert not body or body in page.text


def test_html_escapes_names() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(["<script>alert('a & b')</script>"], bounds=(0, 1))
    m.p = pyo.Param(["<i>"], mutable=True)
    y, p = m.y["<script>alert('a & b')</script>"], m.p["<i>"]
    m.c = pyo.Constraint(["</table>"], rule=lambda m, i: y <= p)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    page = page_of(rules)
    assert page.open == []
    assert not page.tags & {"script", "i"}
    assert "c[</table>]" in page.text
    assert any("<script>alert('a & b')</script>" in part for part in page.text)


A, B, C = ("input", 0), ("input", 1), ("input", 2)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (("power", ("power", A, B), C), "(a**b)**c"),
        (("power", A, ("power", B, C)), "a**b**c"),
        (("power", ("number", -2.0), A), "(-2)**a"),
        (("power", A, ("number", -2.0)), "a**(-2)"),
        (("power", ("sum", A, B), ("number", 2.0)), "(a + b)**2"),
        (("divide", A, ("product", B, C)), "a/(b*c)"),
        (("divide", ("divide", A, B), C), "a/b/c"),
        (("product", A, ("sum", B, ("number", -1.0))), "a*(b - 1)"),
        (("sum", A, ("product", ("number", -1.0), B)), "a - b"),
        (("sum", A, ("product", ("number", -1.0), ("sum", B, C))), "a - (b + c)"),
        (("product", ("number", -1.0), ("power", A, ("number", 2.0))), "-a**2"),
        (("not", ("or", ("<", A, B), ("==", B, C))), "not (a < b or b == c)"),
        (("not", ("<=", ("number", 3.0), A)), "not a >= 3"),
        (("and", ("<", ("number", 3.0), A), ("or", ("true",), ("==", A, B))),
         "a > 3 and (true or a == b)"),
        (("max", A, ("exp", ("sum", B, C))), "max(a, exp(b + c))"),
    ],
)  # fmt: skip
def test_parentheses(tree: Any, expected: str) -> None:
    assert atoms.text(tree, ["a", "b", "c"]) == expected
    functions = {"max": max, "exp": lambda v: torch.tensor(v, dtype=torch.float64).exp().item()}
    values = {"a": 3.0, "b": 2.0, "c": 2.0, "true": True, **functions}
    x = torch.tensor([[3.0, 2.0, 2.0]], dtype=torch.float64)
    # Python reads the text as the tree is evaluated.
    assert eval(expected, {}, values) == pytest.approx(float(atoms.Evaluator(x)(tree)))
