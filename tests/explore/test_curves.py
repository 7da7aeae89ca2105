"""Rows that are not linear in the page: its answers against gdpnet's, its picture, what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import RuleModel, Status
from gdpnet.errors import InputError
from gdpnet.explore import explorer_page
from gdpnet.explore._model import model_of
from gdpnet.ir.data import Shape
from gdpnet.testing import CONVEX, Problem, random_convex_model
from tests.explore._chromium import Page
from tests.explore.test_agreement import in_page

# Sets without interior: a row that holds within 1e-9 leaves the point open by the root of that.
THIN = ("single_point", "touching_discs", "flat")
REFUSED = ("beside_a_segment", "discs_with_logic", "whole_numbers_in_a_disc")
SHOWN = [problem for problem in CONVEX if problem.name not in REFUSED]


@pytest.fixture
def opened(page: Page, tmp_path: Path) -> Callable[..., Page]:
    def opening(rules: RuleModel, state: dict | None = None) -> Page:
        file = tmp_path / "page.html"
        file.write_text(explorer_page(rules, "test"), encoding="utf-8")
        page.errors.clear()
        page.open(file.as_uri() + ("#" + quote(json.dumps(state)) if state else ""))
        return page

    return opening


def check(page: Page, rules: RuleModel, x: torch.Tensor | None, yhat: torch.Tensor, tol: float):
    """Distances, points and violations in both norms; returns how many samples were moved."""
    moved = 0
    violation = rules.violation(yhat, x)
    for norm in ("l1", "l2"):
        ours = gdpnet.project(rules, yhat, x, norm=norm)
        cases = [
            {"x": [] if x is None else x[k].tolist(), "y": y, "relaxation": "dnf"}
            | {"merged": [], "norm": norm}
            for k, y in enumerate(yhat.tolist())
        ]
        theirs = in_page(page, rules, cases, [] if x is None else x.tolist())
        for k, told in enumerate(theirs):
            assert told["violation"] == pytest.approx(violation[k].tolist(), abs=1e-9)
            if ours.status[k] == Status.CONFLICT:
                assert told["status"] == "conflict"
                continue
            assert told["status"] in ("satisfied", "projected"), told
            value = float(ours.value[k])
            assert told["value"] == pytest.approx(value, abs=tol, rel=tol), (norm, yhat[k], told)
            point = torch.tensor(told["y"], dtype=torch.float64)
            assert bool(rules.satisfied(point, None if x is None else x[k], tol=2e-8))
            away = (point - yhat[k]).abs()
            distance = float(away.sum() if norm == "l1" else away @ away)
            assert distance == pytest.approx(told["value"], abs=1e-9, rel=1e-9)
            moved += told["status"] == "projected"
    return moved


def around(rules: RuleModel, rng: np.random.Generator, n: int) -> torch.Tensor:
    """Predictions within the bounds and somewhat beyond."""
    low, high = (
        np.array([getattr(c, end) for c in rules.data.columns]) for end in ("lower", "upper")
    )
    extra = 0.1 * (high - low)
    return torch.from_numpy(rng.uniform(low - extra, high + extra, (n, len(low))))


@pytest.mark.parametrize("problem", SHOWN, ids=[problem.name for problem in SHOWN])
def test_answers_are_those_of_gdpnet(opened: Callable[..., Page], problem: Problem) -> None:
    rules = problem.rules()
    rng = np.random.default_rng(3)
    yhat, x = problem.yhat.double(), problem.x
    more = around(rules, rng, 30)
    if x is not None:
        x = x.double().expand(len(yhat), -1)
        x = torch.cat([x, x[torch.arange(len(more)) % len(x)]])
    page = opened(CONVEX[0].rules())
    tol = 2e-4 if problem.name in THIN else 1e-9
    moved = check(page, rules, x, torch.cat([yhat, more]), tol)
    assert moved > 5 or problem.name == "disc_without_room"


@pytest.mark.parametrize("d", [1, 2, 3])
def test_random_curves(opened: Callable[..., Page], d: int) -> None:
    """Ellipsoids, cones, exponentials, logarithms, powers; with three outputs, too."""
    rng = np.random.default_rng(d)
    page, moved = opened(CONVEX[0].rules()), 0
    shapes: set[Shape] = set()
    for _ in range(12):
        m = random_convex_model(rng, d, thin=0.0)
        rules = RuleModel(m, outputs=[m.y])
        shapes |= {curve.shape for row in rules.data.rows for curve in row.curves}
        moved += check(page, rules, None, around(rules, rng, 8), 1e-9)
    assert moved > 60
    assert len(shapes) > (2 if d == 1 else 3)


def test_drawn_regions_are_the_rules(opened: Callable[..., Page]) -> None:
    """A point of the picture is inside where the rules hold, to a thousandth of the picture."""
    rng = np.random.default_rng(2)
    page = opened(CONVEX[0].rules())
    seen = 0
    for problem in SHOWN:
        rules = problem.rules()
        if rules.data.outputs != 2 or problem.name in THIN:
            continue
        x = None if problem.x is None else problem.x.double().expand(len(problem.yhat), -1)[0]
        inputs = [] if x is None else x.tolist()
        model = json.dumps(model_of(rules, "", (0, 1), [inputs] if inputs else []))
        points = around(rules, rng, 200)
        size = np.ptp(points.numpy(), axis=0)
        inside = page.run(
            "((model, x, points) => { const at = new RulesAt(model, x, new Set());"
            "const on = at.active.flatMap((a, r) => (a ? [r] : []));"
            "const pieces = roundedPieces(at, on, {}).map((p) => new Path2D(p.map(([u, v], k) => "
            "`${k ? 'L' : 'M'}${u * 1000} ${v * 1000}`).join('') + 'Z'));"
            "const pen = document.createElement('canvas').getContext('2d');"
            "return points.map(([u, v]) => pieces.some((p) => "
            "pen.isPointInPath(p, u * 1000, v * 1000))); }"
            f")({model}, {json.dumps(inputs)}, {points.tolist()})"
        )
        holds = rules.satisfied(points, x, tol=0.0)
        # Points whose surroundings are of one kind.
        shifts = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]]).double()
        near = points[:, None] + shifts * torch.from_numpy(size) * 1e-3
        same = rules.satisfied(near.reshape(-1, 2), x, tol=0.0).reshape(-1, 4) == holds[:, None]
        clear = same.all(1).tolist()
        for drawn, wanted, counts, point in zip(
            inside, holds.tolist(), clear, points.tolist(), strict=True
        ):
            assert drawn == wanted or not counts, (problem.name, point)
        seen += int(holds.sum())
    assert seen > 100


def moving_disc() -> RuleModel:
    m = pyo.ConcreteModel()
    m.r = pyo.Param(initialize=1.0, mutable=True)
    m.y = pyo.Var([1, 2], bounds=(-4, 4))
    disc = (m.y[1] - m.r) ** 2 + m.y[2] ** 2 <= m.r**2
    m.place = Disjunction(expr=[[disc], [pyo.exp(m.y[1]) + m.y[2] <= -1]])
    return RuleModel(m, outputs=[m.y], inputs=[m.r], input_bounds=[(0.5, 1.8)])


def test_the_page_says_what_it_leaves_out(opened: Callable[..., Page]) -> None:
    rules = moving_disc()
    page = opened(rules, {"y": [3.0, 3.0], "x": [1.0], "relaxation": "cnf"})
    said = page.run("document.getElementById('curved-out').innerText")
    assert "CNF and partial DNF are left out" in said
    assert page.run("state.relaxation") == "dnf"
    disabled = "[...document.querySelectorAll('#relaxation input')].map((i) => i.disabled)"
    assert page.run(disabled) == [True, True, False]
    shape = "document.getElementById('region').getAttribute('d')"
    assert page.run(shape).count("L") > 60  # no polygon with a few corners
    places = {}
    for norm in ("l1", "l2"):
        page.click(f"input[value={norm}]")
        for radius in (1.0, 1.5):
            field = "document.querySelector('#input-0 input[type=number]')"
            event = "dispatchEvent(new Event('input'))"
            page.run(f"{{ const f = {field}; f.value = {radius}; f.{event}; }}")
            found = page.run("compute().answer")
            ours = gdpnet.project(rules, [[3.0, 3.0]], [[radius]], norm=norm)
            assert found["y"] == pytest.approx(ours.y[0].tolist(), abs=1e-8)
            places[norm, radius] = tuple(found["y"]), page.run(shape)
    assert len(set(places.values())) == 4
    assert page.errors == []


def test_one_output(opened: Callable[..., Page]) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(-4, 4))
    m.outside = Disjunction(expr=[[(m.y - 3) ** 2 <= 0.25], [pyo.exp(m.y) <= 0.5]])
    rules = RuleModel(m, outputs=[m.y])
    page = opened(rules, {"y": [0.5]})
    assert page.run("compute().answer.y") == pytest.approx([np.log(0.5)], abs=1e-9)
    ends = page.run("compute().region.map((p) => p.map(([u]) => u))")
    found = sorted((min(piece), max(piece)) for piece in ends)
    assert found == [
        pytest.approx((-4.0, np.log(0.5)), abs=2e-3),
        pytest.approx((2.5, 3.5), abs=2e-3),
    ]
    assert page.errors == []


def test_linear_rules_keep_their_relaxations(opened: Callable[..., Page]) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.slope = Disjunction(expr=[[m.y[1] + 2 * m.y[2] <= 8], [m.y[1] >= 9]])
    page = opened(RuleModel(m, outputs=[m.y]), {"relaxation": "cnf"})
    assert page.run("state.relaxation") == "cnf"
    assert page.run("document.getElementById('curved-out')") is None
    assert "curves" not in page.run("JSON.stringify(MODEL)")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    problem = next(p for p in CONVEX if p.name == name)
    with pytest.raises(InputError, match="The explorer does not know"):
        explorer_page(problem.rules())
