"""The page's own mathematics, run in Chromium, against gdpnet's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gdpnet
from gdpnet import Plan, RuleModel, Status
from gdpnet.explore import explorer_page
from gdpnet.explore._model import model_of
from gdpnet.lp.persistent import PersistentHighs
from gdpnet.lp.program import Outcome
from gdpnet.plot._polygons import area, inside, without_flat
from gdpnet.plot._sets import RulesAt
from gdpnet.study import load_model
from gdpnet.testing import random_rules
from tests.explore._chromium import Page

MODELS = Path(__file__).parents[2] / "models"
RELAXATIONS = ("cnf", "pdnf", "dnf")


@pytest.fixture(scope="module")
def opened(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Page:
    file = tmp_path_factory.mktemp("page") / "toy.html"
    file.write_text(explorer_page(load_model(MODELS / "toy").build(name="figure1")))
    page.open(file.as_uri())
    return page


def in_order(corners: list[list[float]]) -> np.ndarray:
    """Corners that the page lists around a polygon, without those that lie on a side."""
    return without_flat([np.array(c, dtype=float) for c in corners])


def in_page(page: Page, rules: RuleModel, cases: list[dict[str, Any]], x: Any = ()) -> list[Any]:
    model = json.dumps(model_of(rules, "test", (0, 1), x))
    return page.run(
        f"((model, cases) => cases.map(({{x, y, relaxation, merged, norm}}) => {{"
        "const at = new RulesAt(model, x, new Set());"
        "const found = project(at, y, relaxation, new Set(merged), norm);"
        "if (found.value === Infinity) found.value = null;"
        "found.violation = model.rules.map((_, r) => (at.active[r] ? at.violation(r, y) : 0));"
        f"return found; }}))({model}, {json.dumps(cases)})"
    )


def check(page: Page, rules: RuleModel, x: torch.Tensor | None, yhat: np.ndarray, rng: Any) -> int:
    """Values, statuses and points of all relaxations; how many CNF points break rules."""
    broken = 0
    n, inputs = len(yhat), [] if x is None else x.tolist()
    for relaxation in RELAXATIONS:
        size = min(len(rules.names), 3)
        merged = sorted(rng.choice(len(rules.names), size, replace=False).tolist())
        cases = [
            {"x": x[k].tolist() if x is not None else [], "y": y, "relaxation": relaxation}
            | {"merged": merged}
            for k, y in enumerate(yhat.tolist())
        ]
        plan = Plan((tuple(rules.names[r] for r in merged),))
        ours = gdpnet.project(
            rules,
            torch.from_numpy(yhat),
            x,
            relaxation=plan if relaxation == "pdnf" else relaxation,
        )
        theirs = in_page(page, rules, cases, inputs)
        violation = rules.violation(torch.from_numpy(yhat), x)
        for k in range(n):
            told, status = theirs[k], Status(int(ours.status[k]))
            assert told["violation"] == pytest.approx(violation[k].tolist(), abs=1e-9)
            if status == Status.CONFLICT:
                assert told["status"] == "conflict"
                continue
            assert told["value"] == pytest.approx(float(ours.value[k]), abs=1e-7, rel=1e-7)
            point = torch.tensor(told["y"], dtype=torch.float64)
            own = x[k] if x is not None else None
            assert bool(rules.satisfied(point, own, tol=2e-6)) == (told["status"] != "relaxed")
            assert (told["status"] == "satisfied") == (status == Status.SATISFIED)
            if relaxation == "dnf":
                assert told["status"] != "relaxed"
                assert float((point - torch.from_numpy(yhat[k])).abs().sum()) == pytest.approx(
                    float(ours.distance[k]), abs=1e-7
                )
            elif told["status"] != "satisfied":
                # Another corner on a tie, but one that the relaxation has at this value.
                value = value_at(rules, own, relaxation, plan, yhat[k], point.numpy())
                assert value == pytest.approx(told["value"], abs=1e-4)
                broken += told["status"] == "relaxed" and relaxation == "cnf"
    return broken


def check_euclidean(page: Page, rules: RuleModel, x: Any, yhat: np.ndarray) -> int:
    """The exact answer in the Euclidean norm; returns how many samples were moved."""
    cases = [
        {"x": x[k].tolist() if x is not None else [], "y": y, "relaxation": "dnf"}
        | {"merged": [], "norm": "l2"}
        for k, y in enumerate(yhat.tolist())
    ]
    ours = gdpnet.project(rules, torch.from_numpy(yhat), x, norm="l2")
    moved = 0
    for k, told in enumerate(in_page(page, rules, cases, [] if x is None else x.tolist())):
        if ours.status[k] == Status.CONFLICT:
            assert told["status"] == "conflict"
            continue
        assert told["status"] in ("satisfied", "projected")
        value = float(ours.value[k])
        assert told["value"] == pytest.approx(value, abs=1e-7, rel=1e-7)
        away = np.array(told["y"]) - yhat[k]
        assert float(away @ away) == pytest.approx(value, abs=1e-7, rel=1e-7)
        own = x[k] if x is not None else None
        assert bool(rules.satisfied(torch.tensor(told["y"]).double(), own, tol=2e-6))
        moved += told["status"] == "projected"
    return moved


def value_at(rules, x, relaxation, plan, yhat: np.ndarray, y: np.ndarray) -> float:
    """Least value of the relaxation's program with its outputs held at y, by HiGHS."""
    here = RulesAt(rules, x)
    program = here._program("cnf" if relaxation == "cnf" else plan)
    start = np.clip(yhat, here.lower, here.upper)
    held = dict(zip(program.outputs.tolist(), y[program.which].tolist(), strict=True))
    fixed = {column: (v - 1e-6, v + 1e-6) for column, v in held.items()}
    model = PersistentHighs(here._model(program, start, fixed))
    model.set_cost(program.distances, np.ones(len(program.distances)))
    assert model.run() is Outcome.OPTIMAL  # without presolve, which has tolerances of its own
    return float(model.point[program.distances].sum() + np.abs(start - yhat).sum())


def test_figure1(opened: Page) -> None:
    rng = np.random.default_rng(0)
    rules = load_model(MODELS / "toy").build(name="figure1")
    yhat = np.vstack([rng.uniform(-1, 11, (80, 2)), rng.integers(-1, 12, (60, 2)) / 1.0])
    assert check(opened, rules, None, yhat, rng) > 20
    assert check_euclidean(opened, rules, None, yhat) > 50


def test_cooling(opened: Page) -> None:
    rng = np.random.default_rng(1)
    model = load_model(MODELS / "cooling")
    x, y = model.sample(120, split="ood", seed=5)
    x[:20, 4:] = 1.0  # all events at once
    x[20:30, 4:6] = 1.0
    yhat = y.numpy() + rng.normal(0.0, 0.25, y.shape)
    yhat[::4] = np.round(yhat[::4] * 10) / 10  # ties
    assert check(opened, model.build(), x, yhat, rng) > 5
    assert check_euclidean(opened, model.build(), x, yhat) > 50


def test_random_rules(opened: Page) -> None:
    """Equalities, bad scales, duplicates, empty and nested disjuncts, contradictions."""
    rng = np.random.default_rng(7)
    met = 0
    while met < 40:
        rules = random_rules(rng)
        try:
            model_of(rules, "", (0, 1), ())
        except gdpnet.errors.InputError:
            continue
        if not rules.names:
            continue
        met += 1
        d = rules.data.outputs
        yhat = np.vstack([rng.uniform(-1, 5, (4, d)), rng.integers(-2, 11, (4, d)) / 2.0])
        check(opened, rules, None, yhat, rng)
        check_euclidean(opened, rules, None, yhat)


def test_expressions_of_the_inputs(opened: Page) -> None:
    """Every function and operation that a coefficient or a condition may have."""
    from gdpnet.ir.atoms import FUNCTIONS, Evaluator

    x = torch.tensor([[0.3, -1.7], [0.9, 2.2], [1.3, 0.0]], dtype=torch.float64)
    one, two = ("input", 0), ("input", 1)
    trees: list[Any] = [(name, one) for name in FUNCTIONS]
    trees += [(kind, one, two, ("number", 0.5)) for kind in ("sum", "product", "max", "min")]
    trees += [("divide", two, one), ("power", one, two), ("log", two)]
    tests: list[Any] = [(kind, one, two) for kind in ("<=", "<", "==")]
    tests += [("and", *tests[:2]), ("or", *tests), ("not", tests[0]), ("true",), ("false",)]
    trees += [("if", test, one, ("log", two)) for test in tests]
    for tree in trees + tests:
        expected = Evaluator(x)(tree).double().tolist()
        script = f"{json.dumps(x.tolist())}.map((x) => Number(evaluate({json.dumps(tree)}, x)))"
        found = opened.run(f"{script}.map((v) => Number.isFinite(v) ? v : `${{v}}`)")
        for want, have in zip(expected, found, strict=True):
            assert float(have) == pytest.approx(want, rel=1e-12, abs=1e-15, nan_ok=True), tree


def test_regions_and_outlines(opened: Page) -> None:
    """What is drawn in the page is what plot_region draws."""
    rng = np.random.default_rng(4)
    cooling = load_model(MODELS / "cooling")
    x, _ = cooling.sample(6, split="ood", seed=9)
    x[0, 4:] = 1.0
    figure1 = load_model(MODELS / "toy").build(name="figure1")
    cases = [(cooling.build(), x[k], {2: 0.3}) for k in range(6)] + [(figure1, None, {})]
    while len(cases) < 30:
        rules = random_rules(rng)
        try:
            model_of(rules, "", (0, 1), ())
        except gdpnet.errors.InputError:
            continue
        if rules.data.outputs < 2:
            continue
        others = {j: float(rng.integers(0, 5)) for j in range(2, rules.data.outputs)}
        cases.append((rules, None, others))
    for rules, own, at in cases:
        here = RulesAt(rules, own)
        inputs = [] if own is None else [own.tolist()]
        model = json.dumps(model_of(rules, "", (0, 1), inputs))
        place = json.dumps([] if own is None else own.tolist())
        pieces, outlines = opened.run(
            f"((model, x, fixed) => {{ const at = new RulesAt(model, x, new Set());"
            "const on = at.active.flatMap((a, r) => (a ? [r] : []));"
            "return [piecesOf(at, on, fixed).map(around), ['cnf', 'dnf'].map((r) => "
            "outlineOf(at, at.clusters(r, new Set()), [0, 1], fixed))]; }"
            f")({model}, {place}, {json.dumps(at)})"
        )
        size = here.size((0, 1))
        for name, corners in zip(("cnf", "dnf"), outlines, strict=True):
            ours = here.relaxed(name, (0, 1), at)
            assert bool(len(ours)) == bool(corners)
            if corners:
                theirs = in_order(corners)
                assert inside(ours, theirs, 1e-6).all()
                if len(ours) > 2:
                    assert area(theirs) == pytest.approx(area(ours), abs=1e-6 * size.prod())
        points = rng.uniform(here.lower[:2], here.upper[:2], (300, 2))
        ours = [np.asarray(c) for c in here.union((0, 1), at)]
        theirs = [in_order(c) for c in pieces]
        drawn = [np.any([inside(c, points, s) for c in theirs], axis=0) for s in (1e-6, -1e-6)]
        mine = [np.any([inside(c, points, s) for c in ours], axis=0) for s in (1e-6, -1e-6)]
        if not ours or not theirs:
            assert not ours
            assert not theirs
            continue
        clear = (drawn[0] == drawn[1]) & (mine[0] == mine[1])
        assert (drawn[0] == mine[0])[clear].all()
