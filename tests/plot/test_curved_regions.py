"""Regions with curves: drawn where the rules hold, to what can be seen."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction
from scipy.spatial import ConvexHull

import gdpnet
from gdpnet.plot import plot_region
from gdpnet.plot._polygons import area, clip, common, hull, inside
from gdpnet.plot._sets import RulesAt
from gdpnet.testing import BY_NAME, CONVEX, random_convex_model
from tests.plot._axes import polygons

SEEN = 4e-3  # of the picture's width


def wrong(rules: gdpnet.RuleModel, x: torch.Tensor | None, at: dict[int, float]) -> tuple[int, int]:
    """Points drawn wrongly among random ones, not counting those next to a boundary; and judged."""
    here = RulesAt(rules, x)
    pieces = here.union((0, 1), at)
    size = here.size((0, 1))
    rng = np.random.default_rng(0)
    n = 60 if rules.auxiliary_names else 1500
    low, high = rules.lower.numpy(), rules.upper.numpy()
    y = np.tile([at.get(j, 0.0) for j in range(len(low))], (n, 1))
    y[:, :2] = rng.uniform(low[:2], high[:2], (n, 2))
    holds = rules.satisfied(torch.from_numpy(y), x, tol=0.0).numpy()
    points = y[:, :2] / size
    drawn, near = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for corners in pieces:
        within = inside(corners / size, points)
        drawn |= within
        near |= inside(corners / size, points, SEEN) & ~inside(corners / size, points, -SEEN)
    return int((drawn != holds)[~near].sum()), int((~near).sum())


@pytest.mark.parametrize(
    "problem", [p for p in CONVEX if len(p.samples[0].yhat) == 2], ids=lambda p: p.name
)
def test_regions_of_the_bank(problem) -> None:
    rules = problem.rules()
    if any(column.integer for column in rules.data.columns):
        pytest.skip("the region of whole numbers are segments")
    x = None if problem.x is None else problem.x[0]
    mistakes, judged = wrong(rules, x, {})
    assert mistakes == 0
    assert judged > 30


@pytest.mark.parametrize("seed", range(6))
def test_random_regions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = random_convex_model(rng, 2 + seed % 2)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    at = {2: 0.3} if seed % 2 else {}
    mistakes, judged = wrong(rules, None, at)
    assert mistakes == 0
    assert judged > 1000


def test_area_of_a_disc() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(-5, 5))
    m.disc = pyo.Constraint(expr=(m.y[0] - 1) ** 2 + m.y[1] ** 2 <= 9)
    (corners,) = RulesAt(gdpnet.RuleModel(m, outputs=[m.y]), None).union((0, 1), {})
    assert area(corners) == pytest.approx(np.pi * 9, rel=2e-4)
    assert np.linalg.norm(corners - [1.0, 0.0], axis=1) == pytest.approx(3.0, rel=3e-4)


def test_outlines_are_hulls() -> None:
    """DNF: of all; CNF: what the hulls of single rules have in common."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var([0, 1], bounds=(-5, 5))
    m.a = Disjunction(expr=[[(m.y[0] + 2) ** 2 + m.y[1] ** 2 <= 1], [m.y[0] >= 2]])
    m.b = Disjunction(expr=[[m.y[1] ** 2 <= 1], [pyo.exp(m.y[0]) <= m.y[1]]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    here = RulesAt(rules, None)
    dnf, cnf = (here.relaxed(kind, (0, 1), {}) for kind in ("dnf", "cnf"))
    region = here.union((0, 1), {})
    assert all(inside(dnf, corners, 1e-6).all() for corners in region)
    # Curves are drawn by tangents, not the same ones in both: a part in 10,000 too wide.
    assert inside(cnf, dnf, 1e-3).all()
    assert area(cnf) > area(dnf) > sum(map(area, region))
    hulls = [hull(here.union((0, 1), {}, [r])) for r in (0, 1)]
    assert all(inside(one, cnf, 1e-6).all() for one in hulls)
    ax = plot_region(rules, relaxation=["cnf", "dnf"])
    assert all(polygons(ax, gid) for gid in ("region", "outline of CNF", "outline of DNF"))


def test_outlines_of_more_outputs_are_refused_by_name() -> None:
    rules = BY_NAME["ice_cream"].rules()
    with pytest.raises(gdpnet.errors.RuleError, match=r"linear rows only; Constraint 'cone'"):
        plot_region(rules, relaxation="dnf", at={"y[2]": 1.0})
    plot_region(rules, relaxation=None, at={"y[2]": 1.0})


def test_lifted_sets_are_refused_by_name() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(-5, 5))
    m.row = pyo.Constraint(expr=m.y**2 <= 4)
    with pytest.raises(gdpnet.errors.RuleError, match="plot_lifted knows linear rows only"):
        RulesAt(gdpnet.RuleModel(m, outputs=[m.y]), None).lifted("dnf", 1.0)


def test_hulls_and_common_parts() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        one, other = rng.normal(size=(9, 2)), rng.normal(size=(7, 2)) + 0.3
        first, second = hull([one]), hull([other])
        assert area(first) == pytest.approx(ConvexHull(one).volume)
        both = common(first, second)
        points = rng.normal(size=(400, 2))
        wanted = inside(first, points) & inside(second, points)
        assert (inside(both, points) == wanted).all() if len(both) else not wanted.any()
    square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    assert area(clip(square, np.array([1.0, 1.0]), 2.0)) == pytest.approx(2.0)
    assert len(clip(square, np.array([1.0, 0.0]), -1.0)) == 0
