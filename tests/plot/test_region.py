"""Regions: what is drawn is where the rules hold, and what the relaxations are."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from matplotlib import pyplot
from pyomo.gdp import Disjunction
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection

import gdpnet
from gdpnet import Plan
from gdpnet.plot import plot_region
from gdpnet.plot._polygons import area, inside, outline, shadow
from gdpnet.plot._sets import RulesAt
from gdpnet.study import load_model
from gdpnet.testing import random_rules
from tests.plot._axes import legend, polygons

MODELS = Path(__file__).parents[2] / "models"
NEAR = 1e-6  # points nearer to a boundary than this are not judged


def figure1() -> gdpnet.RuleModel:
    return load_model(MODELS / "toy").build(name="figure1")


def hull_of(points: np.ndarray) -> np.ndarray:
    return points[ConvexHull(points).vertices]


def covered(pieces: list[np.ndarray], points: np.ndarray, slack: float = 0.0) -> np.ndarray:
    found = np.zeros(len(points), dtype=bool)
    for corners in pieces:
        found |= inside(corners, points, slack)
    return found


def clear(pieces: list[np.ndarray], points: np.ndarray) -> np.ndarray:
    """Points that are not close to the boundary of any piece."""
    good = np.ones(len(points), dtype=bool)
    for corners in pieces:
        good &= inside(corners, points, NEAR) == (
            inside(corners, points, -NEAR) if len(corners) > 2 else np.zeros(len(points), bool)
        )
    return good


def check_union(rules: gdpnet.RuleModel, x: torch.Tensor | None, pieces, pair, at, rng) -> int:
    """Random points, corners and points of sides: drawn exactly where the rules hold."""
    low, high = rules.lower[list(pair)].numpy(), rules.upper[list(pair)].numpy()
    n = 600 if rules.is_plain else 60  # with auxiliaries or logic each point is a program
    y = np.zeros((n, rules.data.outputs))
    y[:, list(pair)] = rng.uniform(low, high, (n, 2))
    y[: n // 4, list(pair)] = np.round(y[: n // 4, list(pair)])  # where boundaries are
    for j, value in at.items():
        y[:, j] = value
    judged = clear(pieces, y[:, list(pair)])
    holds = rules.satisfied(torch.from_numpy(y), x, tol=1e-9).numpy()
    drawn = covered(pieces, y[:, list(pair)])
    assert (holds == drawn)[judged].all()
    for corners in pieces:
        on = np.zeros((2 * len(corners), rules.data.outputs))
        on[:, list(pair)] = np.vstack([corners, (corners + np.roll(corners, -1, axis=0)) / 2])
        for j, value in at.items():
            on[:, j] = value
        assert rules.satisfied(torch.from_numpy(on), x, tol=1e-7).all()
    return int(holds.sum())


def test_figure1_is_drawn_as_computed_by_hand() -> None:
    ax = plot_region(figure1(), relaxation=["cnf", "dnf"], yhat=[4.6, 6.3])
    pieces = sorted(polygons(ax, "region"), key=lambda c: c[:, 0].min())
    boxes = [[(2, 3), (3, 5)], [(6, 8), (3, 5)]]
    assert len(pieces) == 2
    for corners, ((left, right), (bottom, top)) in zip(pieces, boxes, strict=True):
        expected = {(left, bottom), (right, bottom), (right, top), (left, top)}
        assert {tuple(c) for c in np.round(corners, 9).tolist()} == expected
    (dnf,) = polygons(ax, "outline of DNF")
    assert area(dnf) == pytest.approx(12.0, abs=1e-9)
    assert {tuple(c) for c in np.round(dnf, 9).tolist()} == {(2, 3), (8, 3), (8, 5), (2, 5)}
    (cnf,) = polygons(ax, "outline of CNF")
    # The hulls of the two rules, intersected corner by corner.
    assert area(cnf) == pytest.approx(_area_of_cnf(), abs=1e-6)
    assert inside(cnf, dnf, 1e-9).all()
    assert area(cnf) == pytest.approx(28.0, abs=0.5)  # what the model's page says
    assert "CNF: shadow of its lifted set" in legend(ax)
    assert any("breaks rule1" in text.get_text() for text in ax.texts)


def _area_of_cnf() -> float:
    """The two hulls from their corners, intersected by clipping."""
    boxes = load_model(MODELS / "toy").module.FIGURE1
    hulls = []
    for pair in boxes.values():
        corners = [(u, v) for across, up in pair for u in across for v in up]
        hulls.append(hull_of(np.array(corners)))
    one, other = hulls
    for a, b in zip(other, np.roll(other, -1, axis=0), strict=True):
        kept = []
        side = [float(np.cross([*(b - a), 0], [*(p - a), 0])[2]) for p in one]
        for k in range(len(one)):
            p, q, s, t = one[k - 1], one[k], side[k - 1], side[k]
            if (s < 0) != (t < 0):
                kept.append(p + (q - p) * s / (s - t))
            if t >= 0:
                kept.append(q)
        one = np.array(kept)
    return area(one)


def test_random_rules_in_the_plane() -> None:
    """Equalities, whole numbers, auxiliaries, nesting and logic, ties and empty disjuncts."""
    rng = np.random.default_rng(11)
    met = empty = hulls = 0
    while met < 40:
        rules = random_rules(rng)
        d = rules.data.outputs
        bounded = bool((rules.lower.isfinite() & rules.upper.isfinite()).all())
        if d < 2 or not bounded:
            continue
        met += 1
        pair = tuple(rng.choice(d, 2, replace=False).tolist())
        at = {j: float(rng.integers(0, 5)) for j in range(d) if j not in pair}
        pieces = RulesAt(rules, None).union(pair, at)
        empty += not check_union(rules, None, pieces, pair, at, rng)
        if d == 2 and pieces:
            hulls += 1
            corners = np.vstack(pieces)
            outer = RulesAt(rules, None).relaxed("dnf", pair, at)
            for direction in rng.normal(size=(12, 2)):
                reach = (corners @ direction).max()
                assert (outer @ direction).max() == pytest.approx(reach, abs=1e-7)
    assert 0 < empty < 40
    assert hulls > 3


def test_outlines_hold_the_region_and_are_what_the_program_says() -> None:
    """Against support functions of the sets, computed product by product with scipy."""
    rng = np.random.default_rng(3)
    rules = figure1()
    here = RulesAt(rules, None)
    region = here.union((0, 1), {})
    outer = None
    for relaxation in ("cnf", Plan.lexicographic(rules, 2), "dnf"):
        corners = here.relaxed(relaxation, (0, 1), {})
        for piece in region:
            assert inside(corners, piece, 1e-9).all()
        if outer is not None:
            assert inside(outer, corners, 1e-9).all()
        outer = corners
    for direction in rng.normal(size=(20, 2)):
        reach = max((piece @ direction).max() for piece in region)
        assert (here.relaxed("dnf", (0, 1), {}) @ direction).max() == pytest.approx(reach, abs=1e-9)


def test_cooling_in_planes() -> None:
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x, _ = model.sample(40, split="ood", seed=3)
    rng = np.random.default_rng(0)
    drawn = 0
    for sample in range(12):
        at = {2: 0.2 if sample % 2 else 0.5}
        here = RulesAt(rules, x[sample])
        pieces = here.union((0, 1), at)
        assert check_union(rules, x[sample], pieces, (0, 1), at, rng) > 0
        cnf, dnf = (here.relaxed(r, (0, 1), at) for r in ("cnf", "dnf"))
        assert inside(cnf, dnf, 1e-9).all()
        for corners in pieces:
            assert inside(dnf, corners, 1e-9).all()
        drawn += len(pieces)
    assert drawn > 12
    # A slice of the hull is more than the hull of the slice: demand response ties f, c and p.
    busy = torch.tensor([40.0, 90.0, 0.9, 0.2, 1.0, 0.0, 0.0], dtype=torch.float64)
    here = RulesAt(rules, busy)
    corners = here.relaxed("dnf", (0, 1), {2: 0.4})
    slack = [_outside(rules, busy, point, 0.4) for point in corners]
    assert max(slack) < 1e-7


def _outside(rules, x, point, p) -> float:
    """How far (f, c, p) is from the hull of the region, by weights of corners in space."""
    here = RulesAt(rules, x)
    sample, data = here._sample, rules.data
    points = []
    active = [r for r, on in zip(data.rules, rules.active(x).tolist(), strict=True) if on]
    for choice in product(*(data.clauses[r.clause].literals for r in active)):
        rows = [*data.global_rows, *(i for n in choice for i in data.booleans[n - 1].true_rows)]
        a = np.vstack([sample.matrix[rows], np.eye(3), -np.eye(3)])
        b = np.concatenate([sample.bound[rows], np.ones(3), np.zeros(3)])
        norm = np.linalg.norm(a, axis=1, keepdims=True)
        deep = linprog([0, 0, 0, -1], np.hstack([a, norm]), b, bounds=[(None, None)] * 3 + [(0, 1)])
        if deep.status == 0 and deep.x[3] > 1e-7:
            points.append(
                HalfspaceIntersection(np.hstack([a, -b[:, None]]), deep.x[:3]).intersections
            )
    corners = np.vstack(points)
    n = len(corners)
    equal = np.vstack([np.hstack([corners.T, np.eye(3), -np.eye(3)]), [[1] * n + [0] * 6]])
    found = linprog([0] * n + [1] * 6, A_eq=equal, b_eq=[*point, p, 1.0])
    return float(found.fun)


def test_projections_end_on_the_region() -> None:
    rules = figure1()
    rng = np.random.default_rng(5)
    ax = plot_region(rules, yhat=rng.uniform(0, 10, (25, 2)))
    pieces = polygons(ax, "region")
    ends = np.array([a.xy for a in ax.texts if getattr(a, "arrow_patch", None) is not None])
    starts = np.array([a.xyann for a in ax.texts if getattr(a, "arrow_patch", None) is not None])
    assert len(ends) == 25
    assert covered(pieces, ends, 1e-7).all()
    moved = np.abs(ends - starts).sum(1) > 1e-9
    assert moved.sum() > 10
    assert not covered(pieces, ends[moved], -1e-7).any()  # on the boundary, not inside
    for start, end in zip(starts, ends, strict=True):  # and no corner is nearer
        nearest = min(np.abs(c - start).sum(1).min() for c in pieces)
        assert np.abs(end - start).sum() <= nearest + 1e-9


def test_a_slice_goes_through_the_projection() -> None:
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x, _ = model.sample(1, split="ood", seed=3)
    ax = plot_region(rules, x=x[0], outputs=("c", "f"), yhat=[0.3, 0.3, 0.05])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "f")
    assert "p = 0.2" in ax.get_title(loc="left")  # 0.05 is below what the pump needs


def test_nothing_left() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.a = Disjunction(expr=[[m.y[1] <= 3], [m.y[1] >= 7]])
    m.b = pyo.Constraint(expr=m.y[1] == 5)
    ax = plot_region(gdpnet.RuleModel(m, outputs=[m.y]), relaxation=["cnf", "dnf"], yhat=[5, 5])
    assert not polygons(ax, "region")
    assert any("satisfies the active rules" in text.get_text() for text in ax.texts)


def test_the_outline_of_a_union_leaves_out_what_is_inside() -> None:
    left = np.array([[0, 0], [2, 0], [2, 1], [0, 1]], dtype=float)
    right = np.array([[2, 0], [3, 0], [3, 1], [2, 1]], dtype=float)  # shares a side
    across = np.array([[1, 0.5], [1.5, 0.5], [1.5, 2], [1, 2]], dtype=float)  # sticks out above
    sides = outline([left, right, across], np.array([3.0, 2.0]))
    length = sum(np.linalg.norm(b - a) for a, b in sides)
    assert length == pytest.approx(8.0 + 2 * 1.0, abs=1e-5)
    assert all(np.linalg.norm(b - a) < 3.01 for a, b in sides)


def test_shadow_of_a_cube_turned_in_space() -> None:
    from gdpnet.lp.program import LinearProgram

    rng = np.random.default_rng(2)
    for _ in range(5):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        cube = np.array([[u, v, w] for u in (-1, 1) for v in (-1, 1) for w in (-1, 1)]) @ turn.T
        program = LinearProgram(
            cost=np.zeros(3),
            matrix=turn.T,
            row_lower=-np.ones(3),
            row_upper=np.ones(3),
            lower=np.full(3, -np.inf),
            upper=np.full(3, np.inf),
            integer=np.zeros(3, dtype=bool),
        )
        corners = shadow(program, (0, 2), np.array([2.0, 2.0]))
        expected = hull_of(cube[:, [0, 2]])
        assert len(corners) == len(expected) == 6
        assert np.abs(corners[:, None] - expected[None]).sum(2).min(1).max() < 1e-8


def test_the_picture_goes_where_it_is_told() -> None:
    _, axes = pyplot.subplots(1, 2)
    assert plot_region(figure1(), ax=axes[1]) is axes[1]
    assert not axes[0].patches
    assert len(pyplot.get_fignums()) == 1


def test_bad_arguments() -> None:
    rules = figure1()
    with pytest.raises(gdpnet.errors.InputError, match="expected two names or indices"):
        plot_region(rules, outputs=("y[1]",))
    with pytest.raises(gdpnet.errors.InputError, match="expected two names or indices"):
        plot_region(rules, outputs="y[1]")
    with pytest.raises(gdpnet.errors.InputError, match="'z' is no output"):
        plot_region(rules, outputs=("y[1]", "z"))
    with pytest.raises(gdpnet.errors.InputError, match="2 is no output"):
        plot_region(rules, outputs=(0, 2))
    with pytest.raises(gdpnet.errors.InputError, match="two different"):
        plot_region(rules, outputs=(0, 0))
    with pytest.raises(gdpnet.errors.InputError, match="relaxation: expected 'dnf', 'cnf'"):
        plot_region(rules, relaxation="adaptive")
    with pytest.raises(gdpnet.errors.InputError, match="got 3"):
        plot_region(rules, relaxation=3)  # type: ignore[arg-type]
    with pytest.raises(gdpnet.errors.InputError, match="no axis"):
        plot_region(rules, at={0: 1.0})
    with pytest.raises(gdpnet.errors.RuleError, match="'hot' is no rule"):
        plot_region(rules, relaxation=Plan((("rule1", "hot"),)))
    with pytest.raises(gdpnet.errors.InputError, match="plot_lifted"):
        plot_region(load_model(MODELS / "toy").build(name="one_rule"))
    with pytest.raises(gdpnet.errors.InputError, match="expected a RuleModel"):
        plot_region("rules")  # type: ignore[arg-type]


def test_bad_arguments_of_a_model_with_inputs() -> None:
    rules = load_model(MODELS / "cooling").build()
    x = torch.zeros(7, dtype=torch.float64)
    with pytest.raises(gdpnet.errors.InputError, match="have inputs"):
        plot_region(rules, at={"p": 0.2})
    with pytest.raises(gdpnet.errors.InputError, match="expected 7 columns"):
        plot_region(rules, x=x[:3], at={"p": 0.2})
    with pytest.raises(gdpnet.errors.InputError, match="got 2 of them"):
        plot_region(rules, x=torch.zeros(2, 7).double(), at={"p": 0.2})
    with pytest.raises(gdpnet.errors.InputError, match=r"needs values of the others \(p\)"):
        plot_region(rules, x=x)
    with pytest.raises(gdpnet.errors.InputError, match="finite number for p"):
        plot_region(rules, x=x, at={"p": float("nan")})


def test_unbounded_outputs_are_named() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2])
    m.y[1].setlb(0)
    m.y[1].setub(1)
    m.a = Disjunction(expr=[[m.y[1] <= 3], [m.y[2] >= 7]])
    with pytest.raises(gdpnet.errors.InputError, match=r"y\[2\] has no finite bounds"):
        plot_region(gdpnet.RuleModel(m, outputs=[m.y]))


def test_contradictory_rules_have_predictions_without_projections() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.outside = Disjunction(expr=[[m.y[1] <= 3], [m.y[1] >= 9]])
    m.inside = Disjunction(expr=[[m.y[1] >= 4, m.y[1] <= 6]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    for yhat in ([5.0, 5.0], [[1.0, 2.0], [5.0, 5.0]]):
        ax = plot_region(rules, yhat=yhat)
        assert legend(ax) == ["prediction"]
        assert sum("satisfies the active rules" in text.get_text() for text in ax.texts) == 1


def test_a_segment_is_wider_than_an_outline_on_it() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.a = Disjunction(expr=[[m.y[1] == 7], [m.y[1] + m.y[2] <= 1]])
    ax = plot_region(gdpnet.RuleModel(m, outputs=[m.y]))
    widest = max(ax.collections, key=lambda lines: lines.get_linewidth()[0])
    (segment,) = widest.get_segments()
    assert sorted(segment.tolist()) == [[7.0, 0.0], [7.0, 10.0]]
    (dnf,) = (patch for patch in ax.patches if patch.get_gid() == "outline of DNF")
    assert widest.get_linewidth()[0] > 2 * dnf.get_linewidth()


# ---- prices ------------------------------------------------------------------------------------


def priced(price: float = 1.2) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[1] >= 7), price=price)
    m.low = gdpnet.rule(m.y[2] <= 6)
    return gdpnet.RuleModel(m, outputs=[m.y])


def test_priced_rules_are_hatched_and_predictions_left_alone_shaded() -> None:
    ax = plot_region(priced(), [4.6, 2.0], relaxation=None)
    # The hard rule alone; then with the other.
    assert sum(map(area, polygons(ax, "region"))) == pytest.approx(60)
    assert sum(map(area, polygons(ax, "where gap holds"))) == pytest.approx(36)
    # Between 3 + 1.2 and 7 - 1.2 holding it costs more than its price.
    (shade,) = [c for c in ax.collections if c.get_gid() == "left alone"]
    across, up = np.vstack([path.vertices for path in shade.get_paths()]).T
    assert [across.min(), across.max()] == pytest.approx([4.2, 5.8], abs=10 / 160)
    assert [up.min(), up.max()] == pytest.approx([0, 6], abs=10 / 160)
    told = legend(ax)
    assert "all hard rules hold" in told
    assert "gap holds, too (breaking it costs 1.2)" in told
    assert "predictions left alone: a rule is bought off" in told
    assert any("gap bought off" in text.get_text() for text in ax.texts)
    pyplot.close(ax.figure)


def test_nothing_is_left_alone_where_the_price_is_high() -> None:
    ax = plot_region(priced(9.0), [4.6, 2.0], relaxation=None)
    assert not [c for c in ax.collections if c.get_gid() == "left alone"]
    assert not any("bought off" in text for text in legend(ax))
    pyplot.close(ax.figure)


def test_lifted_sets_know_no_prices() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7), price=1.0)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    with pytest.raises(gdpnet.errors.RuleError, match="plot_lifted knows no prices"):
        gdpnet.plot.plot_lifted(rules, [5.0])
