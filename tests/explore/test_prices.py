"""Rules with prices in the page: the exact answer, and what it says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch

import gdpnet
from gdpnet.explore import explorer_page
from gdpnet.explore._model import refuse_unsupported
from gdpnet.testing import random_rules, with_random_prices
from tests.explore._chromium import Page
from tests.explore.test_agreement import in_page


def priced() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7), price=0.5 * m.p)
    m.side = gdpnet.rule(gdpnet.any_of(m.y[2] <= 2, m.y[2] >= 8))
    m.rule_price[m.side.disjuncts[1]] = 1.25
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p], input_bounds={"p": (0, 4)})


@pytest.fixture(scope="module")
def opened(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Page:
    file = tmp_path_factory.mktemp("page") / "priced.html"
    file.write_text(explorer_page(priced(), name="priced"))
    page.open(file.as_uri())
    return page


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_values_by_hand(opened: Page, norm: str) -> None:
    rules, l2 = priced(), norm == "l2"
    cases: list[Any] = [
        # prediction, input, value, rules that are broken
        ((4.5, 1.0), 1.0, 0.5, ["gap"]),
        ((4.5, 1.0), 4.0, 2.0 if l2 else 1.5, ["gap"] if l2 else []),
        ((3.25, 1.0), 1.0, 0.0625 if l2 else 0.25, []),
        ((1.0, 8.5), 1.0, 1.25, []),
        ((1.0, 2.5), 1.0, 0.25 if l2 else 0.5, []),
        ((1.0, 1.0), 1.0, 0.0, []),
        ((4.5, 8.5), 0.0, 1.25, ["gap"]),
    ]
    asked = [{"x": [x], "y": y, "relaxation": "dnf", "merged": [], "norm": norm}
             for y, x, _, _ in cases]  # fmt: skip
    for (_, _, value, broken), found in zip(
        cases, in_page(opened, rules, asked, [[1.0]]), strict=True
    ):
        assert found["value"] == pytest.approx(value, abs=1e-9)
        assert [rules.names[r] for r in found["bought"]] == broken
        assert found["status"] == ("projected" if value else "satisfied")


def test_random_rules(opened: Page) -> None:
    tried = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rules = with_random_prices(random_rules(rng), rng)
        try:
            refuse_unsupported(rules.data)
            yhat = rng.uniform(-1, 5, (3, len(rules.output_names)))
            ours = gdpnet.project(rules, torch.from_numpy(yhat), solver="extended")
        except gdpnet.errors.GdpnetError:
            continue
        asked = [{"x": [], "y": y, "relaxation": "dnf", "merged": []} for y in yhat.tolist()]
        for k, found in enumerate(in_page(opened, rules, asked)):
            value = np.inf if found["value"] is None else found["value"]
            assert value == pytest.approx(ours.value[k].item(), abs=1e-6), (seed, k)
            tried += np.isfinite(value)
        if tried > 60:
            break
    assert tried > 60


def test_the_page_tells_what_it_does(opened: Page) -> None:
    opened.run("state.yhat = [4.5, 1.0]; state.x = [1.0]; changed()")
    said = opened.run("document.getElementById('answer').textContent")
    assert "every active rule holds but gap, and 0.5 is paid" in said
    rules = opened.run("document.getElementById('rules').textContent")
    assert "or broken for 0.5*p" in rules
    assert "for 1.25" in rules
    assert opened.run("document.getElementById('rule-0').cells[4].textContent") == "broken"
    assert "Rules have prices" in opened.run("document.getElementById('priced-out').textContent")
    disabled = "[...document.querySelectorAll('#relaxation input')].map((f) => f.disabled)"
    assert opened.run(disabled) == [True, True, False]


def test_a_price_that_inputs_make_negative_is_told(page: Page, tmp_path: Path) -> None:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7), price=m.p)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])
    file = tmp_path / "page.html"
    file.write_text(explorer_page(rules, x=[[1.0], [-1.0]]))
    page.open(file.as_uri())
    page.run("state.x = [-0.5]; changed()")
    said = page.run("document.getElementById('answer').textContent")
    assert said.startswith("A price of gap is negative or no number")
