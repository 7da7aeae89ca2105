"""The hull in y is the convex hull of what rules allow, and nothing else."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from gdpnet.study import load_model

pytest.importorskip("clarabel")
from _hull_in_y import HullInY

TOY = Path(__file__).parents[2] / "models" / "toy"


def nearest_of_corners(corners: np.ndarray, yhat: np.ndarray) -> np.ndarray:
    """The nearest point of the hull of points, by weights."""
    count = len(corners)
    found = minimize(
        lambda w: np.sum((w @ corners - yhat) ** 2),
        np.full(count, 1 / count),
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x @ corners


def test_without_the_lift_four_and_a_half_stays() -> None:
    rules = load_model(TOY).module.build("one_rule")
    yhat = np.array([[4.5], [2.0], [9.9]])
    for form in ("dnf", "cnf"):
        y = HullInY(rules, form)(yhat, np.zeros((3, 0)))
        np.testing.assert_allclose(y, yhat, atol=1e-6)


def test_figure_1_is_the_hull_of_its_two_boxes_that_meet() -> None:
    module = load_model(TOY).module
    rules = module.build("figure1")
    first, second = module.FIGURE1.values()
    corners = [
        corner
        for one in first
        for other in second
        for sides in [[(max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True)]]
        if all(low <= high for low, high in sides)
        for corner in product(*sides)
    ]
    yhat = 10 * np.random.default_rng(0).random((20, 2))
    y = HullInY(rules, "dnf")(yhat, np.zeros((20, 0)))
    wanted = [nearest_of_corners(np.array(corners), point) for point in yhat]
    np.testing.assert_allclose(y, wanted, atol=2e-5)
    # CNF's hulls are larger, so its point is nearer.
    loose = HullInY(rules, "cnf")(yhat, np.zeros((20, 0)))
    far, near = (np.linalg.norm(points - yhat, axis=1) for points in (y, loose))
    assert (near <= far + 1e-7).all()
    assert (near < far - 1e-3).any()
