"""The page under the hands of a person: dragging, clicking and typing in Chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
from gdpnet.explore import explorer_page
from gdpnet.plot._lifted import lowest
from gdpnet.plot._polygons import without_flat
from gdpnet.plot._sets import RulesAt
from gdpnet.study import load_model
from tests.explore._chromium import Page

MODELS = Path(__file__).parents[2] / "models"

# Ta, H, w, price, dr, mf, mc: hot, humid and busy.
BUSY = [35.9, 70.0, 0.69, 0.39, 0.0, 0.0, 0.0]


@pytest.fixture
def opened(page: Page, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens the page of rules, with a state."""

    def opening(rules: gdpnet.RuleModel, state: dict | None = None, x=None) -> Page:
        file = tmp_path / "page.html"
        file.write_text(explorer_page(rules, "test", x), encoding="utf-8")
        page.errors.clear()
        page.open(file.as_uri() + ("#" + quote(json.dumps(state)) if state else ""))
        return page

    yield opening
    assert page.errors == []


def figure1() -> gdpnet.RuleModel:
    return load_model(MODELS / "toy").build(name="figure1")


def cooling() -> gdpnet.RuleModel:
    return load_model(MODELS / "cooling").build()


def verdicts(page: Page) -> list[list[str]]:
    """Of each rule: name, what the prediction does, what the projection does."""
    return page.run(
        "[...document.querySelectorAll('#rules tbody tr[id]')].map((line) => "
        "[line.querySelector('.name').textContent, line.cells[3].textContent, "
        "line.cells[4].textContent])"
    )


def answer(page: Page) -> str:
    return page.run("document.getElementById('answer').innerText")


def projection(page: Page) -> list[float]:
    cells = page.run(
        "[...document.querySelectorAll('#outputs tbody tr')].map((t) => t.cells[3].innerText)"
    )
    return [float(cell) for cell in cells]


def test_dragging_the_prediction(opened: Callable[..., Page]) -> None:
    rules = figure1()
    page = opened(rules, {"y": [7.0, 4.0], "relaxation": "dnf"})
    assert verdicts(page) == [["rule1", "holds", "holds"], ["rule2", "holds", "holds"]]
    assert "stays where it is" in answer(page)
    start = page.middle("#prediction")
    page.drag(start, (start[0] - 130, start[1] - 110))
    yhat = page.run("state.yhat")
    assert yhat[0] < 6.0
    assert yhat[1] > 5.0
    ours = gdpnet.project(rules, [yhat])
    assert projection(page) == pytest.approx(ours.y[0].tolist(), rel=1e-3)
    broken = (rules.violation([yhat])[0] > 1e-6).tolist()
    assert any(broken)
    assert [line[1] == "broken" for line in verdicts(page)] == broken
    assert [line[2] for line in verdicts(page)] == ["holds", "holds"]
    assert "itself breaks rule1" in answer(page)
    # And back: the circle is where the mouse left it.
    place = page.middle("#prediction")
    assert place == pytest.approx((start[0] - 130, start[1] - 110), abs=1.0)
    page.drag(place, start)
    assert page.run("state.yhat") == pytest.approx([7.0, 4.0], abs=0.03)
    assert "stays where it is" in answer(page)


def test_a_prediction_outside_of_the_picture_is_seen(opened: Callable[..., Page]) -> None:
    rules = figure1()
    page = opened(rules, {"y": [7.0, 4.0], "relaxation": "dnf"})
    inner = page.middle("#prediction")
    assert "outside of the picture" not in answer(page)
    page.run("state.yhat = [30.0, 4.0]; changed()")
    frame = page.run("(() => { const b = document.querySelector('#plot .frame')"
                     ".getBoundingClientRect(); return [b.right, b.width]; })()")  # fmt: skip
    place = page.middle("#prediction")
    assert place == pytest.approx((frame[0], inner[1]), abs=2.0)
    assert "outside of the picture" in answer(page)
    ours = gdpnet.project(rules, [[30.0, 4.0]])
    assert projection(page) == pytest.approx(ours.y[0].tolist(), rel=1e-3)
    # Taken from the edge it comes back.
    page.drag(place, (place[0] - frame[1] / 2, place[1]))
    assert page.run("state.yhat[0]") < 10.0
    assert "outside of the picture" not in answer(page)


def test_a_field_without_a_number_shows_the_one_that_counts(opened: Callable[..., Page]) -> None:
    page = opened(figure1(), {"y": [7.0, 4.0], "relaxation": "dnf"})
    field = "document.querySelector('#output-0 input[type=number]')"
    page.run(f"{field}.focus(); {field}.value = ''; {field}.dispatchEvent(new Event('input'))")
    assert page.run(f"{field}.value") == "", "somebody is typing"
    page.run(f"{field}.blur()")
    assert page.run(f"{field}.value") == "7"
    assert page.run("state.yhat") == [7.0, 4.0]


def test_switching_relaxations_and_rules(opened: Callable[..., Page]) -> None:
    rules = cooling()
    yhat = [0.685, 0.267, 0.147]
    page = opened(rules, {"y": yhat, "x": BUSY, "relaxation": "dnf"})
    x = torch.tensor(BUSY, dtype=torch.float64)

    def expect(relaxation: str | gdpnet.Plan) -> None:
        found = gdpnet.project(rules, torch.tensor([yhat]).double(), x, relaxation=relaxation)
        assert projection(page) == pytest.approx(found.y[0].tolist(), abs=1e-3)

    expect("dnf")
    told = {name: (before, after) for name, before, after in verdicts(page)}
    assert told["R1_hot"] == ("broken", "holds")
    assert told["R2_cold"] == ("inactive", "inactive")
    shape = page.run("document.getElementById('outline').getAttribute('d')")

    page.click("input[value=cnf]")
    expect("cnf")
    told = {name: (before, after) for name, before, after in verdicts(page)}
    assert told["R1_hot"] == ("broken", "broken")
    assert told["R3_humid"] == ("holds", "broken")
    assert "breaks R1_hot, R3_humid" in answer(page)
    assert page.run("document.getElementById('answer').className") == "bad"
    assert page.run("document.getElementById('outline').getAttribute('d')") != shape

    page.click("#rule-0 .on")  # R1_hot off: nothing that applies is broken any more
    told = {name: (before, after) for name, before, after in verdicts(page)}
    assert told["R1_hot"] == ("off", "off")
    assert "R1_hot" not in answer(page)

    page.click("#rule-0 .on")
    assert page.run("getComputedStyle(document.querySelector('#rule-0 .join')).display") != "none"
    page.click("input[value=pdnf]")
    assert page.run("[...state.merged]") == [0, 1]
    page.click("#rule-2 .join")
    assert sorted(page.run("[...state.merged]")) == [0, 1, 2]
    expect(gdpnet.Plan((("R1_hot", "R2_cold", "R3_humid"),)))
    assert all(after != "broken" for _, _, after in verdicts(page))


def test_switching_the_norm(opened: Callable[..., Page]) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.slope = Disjunction(expr=[[m.y[1] + 2 * m.y[2] <= 8], [m.y[1] >= 9]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    page = opened(rules, {"y": [5.0, 4.0], "relaxation": "cnf"})
    hidden = "document.getElementById('left-out').hidden"
    assert page.run(hidden) is True
    assert projection(page) == pytest.approx([5.0, 1.5])
    page.click("input[value=l2]")
    assert projection(page) == pytest.approx([4.0, 2.0])
    assert projection(page) == pytest.approx(
        gdpnet.project(rules, [[5.0, 4.0]], norm="l2").y[0].tolist(), rel=1e-3
    )
    assert "moves by 2.236 (l2)" in answer(page)
    assert page.run(hidden) is False
    assert "CNF and partial DNF are left out" in page.run(
        "document.getElementById('left-out').innerText"
    )
    disabled = "[...document.querySelectorAll('#relaxation input')].map((f) => f.disabled)"
    assert page.run(disabled) == [True, True, False]
    assert page.run("state.relaxation") == "dnf"
    page.click("input[value=l1]")
    assert page.run(disabled) == [False, False, False]
    assert projection(page) == pytest.approx([5.0, 1.5])
    page = opened(rules, {"y": [5.0, 4.0], "norm": "l2"})
    assert projection(page) == pytest.approx([4.0, 2.0])
    page = opened(load_model(MODELS / "toy").build(name="one_rule"), {"norm": "l2"})
    assert page.run("[state.norm, document.getElementById('norm').hidden]") == ["l1", True]


def test_inputs_change_which_rules_apply(opened: Callable[..., Page]) -> None:
    sampled, _ = load_model(MODELS / "cooling").sample(5, split="ood", seed=3)
    page = opened(cooling(), {"x": BUSY}, sampled)
    assert {n: b for n, b, _ in verdicts(page)}["R2_cold"] == "inactive"
    page.run(
        "(() => { const field = document.querySelector('#input-0 input[type=number]');"
        "field.focus(); field.value = '5'; field.dispatchEvent(new Event('input')); })()"
    )
    told = {n: b for n, b, _ in verdicts(page)}
    assert told["R2_cold"] != "inactive"
    assert told["R1_hot"] == "inactive"
    page.run("document.querySelector('#input-4 input[type=range]').focus()")
    assert page.run("state.x[4]") == 0
    for _ in range(3):
        page.press("ArrowRight")
    assert page.run("state.x[4]") > 0
    page.run(
        "(() => { const s = document.getElementById('samples'); s.value = '3';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    assert page.run("state.x") == sampled[3].tolist()
    active = cooling().active(sampled[3]).tolist()
    assert [before != "inactive" for _, before, _ in verdicts(page)] == active


def test_keys_and_axes(opened: Callable[..., Page]) -> None:
    page = opened(cooling(), {"x": BUSY, "y": [0.5, 0.5, 0.5]})
    page.run("document.getElementById('prediction').focus()")
    page.press("ArrowRight")
    page.press("ArrowUp")
    page.press("ArrowUp", shift=True)
    assert page.run("state.yhat") == pytest.approx([0.52, 0.522, 0.5])
    assert page.run("document.activeElement.id") == "prediction"
    assert page.run("document.activeElement.getAttribute('aria-valuetext')") == "f 0.52, c 0.522"
    assert "plane p = 0.5" in answer(page)
    page.run(
        "(() => { const s = document.getElementById('axis-0'); s.value = '2';"
        "s.dispatchEvent(new Event('change')); })()"
    )
    assert page.run("state.pair") == [2, 1]
    assert "plane f = " in answer(page)
    region = page.run("document.getElementById('region').getAttribute('d')")
    assert region
    page.run("document.querySelector('input[value=dnf]').focus()")
    page.press("ArrowLeft")
    assert page.run("state.relaxation") == "pdnf"


def test_the_address_holds_the_state(opened: Callable[..., Page]) -> None:
    state = {"x": BUSY, "y": [0.1, 0.2, 0.3], "relaxation": "cnf", "off": [3], "merged": [1]}
    page = opened(cooling(), state | {"pair": [1, 2]})
    assert page.run("[state.x, state.yhat, state.relaxation, [...state.off], state.pair]") == [
        *(BUSY, [0.1, 0.2, 0.3], "cnf", [3], [1, 2])
    ]
    assert page.run("document.querySelector('#rule-3 .on').checked") is False
    page = opened(cooling(), {"x": [1], "y": "no", "relaxation": "??", "off": [99], "pair": [0, 0]})
    assert page.run("[state.relaxation, [...state.off], state.pair]") == ["dnf", [], [0, 1]]
    page = opened(cooling(), {"relaxation": "toString", "pair": [0, 1, 1]})
    assert page.run("[state.relaxation, state.pair]") == ["dnf", [0, 1]]
    page.run("location.hash = 'null'; readAddress()")
    assert page.run("state.relaxation") == "dnf"


def test_the_button_leads_back_to_the_start(opened: Callable[..., Page]) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.low = Disjunction(expr=[[m.y[1] <= 3], [m.y[2] <= 2]])
    page = opened(gdpnet.RuleModel(m, outputs=[m.y]))
    start = page.run("[state.yhat, [...state.off]]")
    page.run("state.yhat = [17, 9]; changed()")
    page.click("#rule-0 .on")
    assert page.run("[state.yhat, [...state.off]]") == [[17, 9], [0]]
    page.click("#reset")
    assert page.run("[state.yhat, [...state.off]]") == start


def test_contradictions_are_told(opened: Callable[..., Page]) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.low = Disjunction(expr=[[m.y[1] <= 3], [m.y[2] <= 2]])
    m.high = Disjunction(expr=[[m.y[1] >= 5]])
    m.up = Disjunction(expr=[[m.y[2] >= 5]])
    page = opened(gdpnet.RuleModel(m, outputs=[m.y]))
    assert "No point satisfies the active rules" in answer(page)
    assert "No point satisfies" in page.run("document.getElementById('plot').textContent")
    page.click("#rule-2 .on")
    assert "contradict" not in answer(page)


def test_a_condition_that_is_a_function_is_switched_by_hand(opened: Callable[..., Page]) -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.far = Disjunction(expr=[[m.y[1] <= 1], [m.y[2] >= 9]])
    m.near = Disjunction(expr=[[m.y[1] + m.t * m.y[2] <= 12]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.far] = lambda x: x[:, 0] > 2
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t], input_bounds=[(0, 4)])
    page = opened(rules)
    text = page.run("document.querySelector('#rule-0 .hand').textContent")
    assert "Python function" in text
    assert "switch the rule by hand" in text
    assert verdicts(page)[0] == ["far", "broken", "holds"]
    page.click("#rule-0 .on")
    assert verdicts(page)[0] == ["far", "off", "off"]


def test_nested_rules(opened: Callable[..., Page]) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.one, m.two = Disjunct(), Disjunct()
    m.one.low = pyo.Constraint(expr=m.y[1] <= 4)
    m.one.inner = Disjunction(expr=[[m.y[2] <= 1], [m.y[2] >= 9]])
    m.two.high = pyo.Constraint(expr=m.y[1] >= 9)
    m.outer = Disjunction(expr=[m.one, m.two])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    for yhat in ([3.0, 4.0], [7.0, 5.0], [5.0, 8.0]):
        page = opened(rules, {"y": yhat})
        assert projection(page) == pytest.approx(gdpnet.project(rules, [yhat]).y[0].tolist())


def test_a_disjunct_is_underlined_if_what_is_nested_in_it_holds_too(
    opened: Callable[..., Page],
) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.one, m.two = Disjunct(), Disjunct()
    m.one.inner = Disjunction(expr=[[m.y[2] <= 1], [m.y[2] >= 9]])
    m.two.high = pyo.Constraint(expr=m.y[1] >= 9)
    m.outer = Disjunction(expr=[m.one, m.two])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    underlined = (
        "[...document.querySelectorAll('#rule-0 .disjunct')]"
        ".map((part) => part.classList.contains('chosen'))"
    )
    assert opened(rules, {"y": [8.5, 5.0]}).run(underlined) == [False, True]
    assert opened(rules, {"y": [2.0, 1.5]}).run(underlined) == [True, False]


@pytest.mark.parametrize(("name", "relaxation"), [("one_rule", "dnf"), ("two_rules", "cnf")])
def test_one_output_is_shown_lifted(
    opened: Callable[..., Page], name: str, relaxation: str
) -> None:
    rules = load_model(MODELS / "toy").build(name=name)
    page = opened(rules, {"y": [4.5], "relaxation": relaxation})
    for yhat in (4.5, 5.2, 8.0, -1.0):
        page.run(f"state.yhat = [{yhat}]; changed()")
        hull = RulesAt(rules, None).lifted(relaxation, min(max(yhat, 0.0), 10.0))
        corners = without_flat([np.array(c) / 10 for c in page.run("compute().outline")]) * 10
        assert len(corners) == len(hull)
        assert np.abs(corners[:, None] - hull[None]).sum(2).min(1).max() < 1e-7
        found = gdpnet.project(rules, torch.tensor([[yhat]]), relaxation=relaxation)
        told = page.run("compute().answer")
        assert told["value"] == pytest.approx(float(found.value), abs=1e-6)
        # On a tie another point, but as low a one: the hull of two rules is flat below 4.5.
        start = min(max(yhat, 0.0), 10.0)
        assert lowest(hull, told["y"][0]) + abs(yhat - start) == pytest.approx(told["value"])
        assert projection(page) == pytest.approx(told["y"], abs=1e-3)
    page.run("state.yhat = [4.5]; changed()")
    start = page.middle("#prediction")
    page.drag(start, (start[0] + 60, start[1] - 200))
    assert page.run("state.yhat[0]") > 5.0
    assert page.middle("#prediction") == pytest.approx((start[0] + 60, start[1]), abs=1.0)


def test_the_page_stands_alone() -> None:
    text = explorer_page(cooling(), "a <b> & 'c'</script>")
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=(?!\"data:)", text)
    assert text.count("</script>") == 1
    assert "<title>a &lt;b&gt; &amp; &#x27;c&#x27;&lt;/script&gt;: rules</title>" in text


def test_what_the_page_cannot_do_is_named_before_anything_is_written() -> None:
    def model(**arguments) -> pyo.ConcreteModel:
        m = pyo.ConcreteModel()
        m.y = pyo.Var([1, 2], **({"bounds": (0, 10)} | arguments))
        m.a = Disjunct()
        m.a.low = pyo.Constraint(expr=m.y[1] <= 4)
        m.b = Disjunct()
        m.b.high = pyo.Constraint(expr=m.y[1] >= 7)
        m.rule = Disjunction(expr=[m.a, m.b])
        return m

    m = model(domain=pyo.Integers)
    with pytest.raises(gdpnet.errors.InputError, match=r"whole numbers \(y\[1\], y\[2\]\)"):
        explorer_page(gdpnet.RuleModel(m, outputs=[m.y]))
    m = model()
    m.z = pyo.Var(bounds=(0, 1))
    m.tie = pyo.Constraint(expr=m.y[1] + m.z <= 9)
    with pytest.raises(gdpnet.errors.InputError, match=r"variables that are no outputs \(z\)"):
        explorer_page(gdpnet.RuleModel(m, outputs=[m.y]))
    m = model()
    m.logic = pyo.LogicalConstraint(expr=pyo.lnot(m.a.indicator_var))
    with pytest.raises(gdpnet.errors.InputError, match="logic over indicators"):
        explorer_page(gdpnet.RuleModel(m, outputs=[m.y]))
    m = model(bounds=(0, None))
    with pytest.raises(
        gdpnet.errors.InputError, match=r"finite bounds, but y\[1\], y\[2\] have none"
    ):
        explorer_page(gdpnet.RuleModel(m, outputs=[m.y]))
    m = model()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.c = pyo.Constraint(expr=m.y[1] <= m.t + 9)
    with pytest.raises(
        gdpnet.errors.InputError, match="range for every input, and knows none of t"
    ):
        explorer_page(gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t]))
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(7), bounds=(0, 1))
    for count, told in (
        (7, r"has 7 \(y\[0\],.* y\[6\]\)\."),
        (9, r"has 9 \(.* more\[7\], \.\.\.\)\."),
    ):
        m.more = pyo.Var(range(7, count), bounds=(0, 1))
        with pytest.raises(gdpnet.errors.InputError, match=f"up to 6 outputs; this one {told}"):
            explorer_page(gdpnet.RuleModel(m, outputs=[m.y, m.more]))
        m.del_component("more")
    with pytest.raises(gdpnet.errors.InputError, match="'q' is no output"):
        explorer_page(cooling(), outputs=("f", "q"))
    with pytest.raises(gdpnet.errors.InputError, match="expected a RuleModel"):
        explorer_page("rules")  # type: ignore[arg-type]
