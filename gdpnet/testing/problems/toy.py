"""Rules that fit on a page: the paper's worked examples and its Figure 1.

* "one_rule": y in [0, 10] with y <= 3 or y >= 7. From 4.5 the nearest point is 3, and a hull
  taken in y alone, without the distance, would accept 4.5.
* "two_rules": y in [0, 10] with (y <= 3 or y >= 6) and (y <= 4 or y >= 7). The feasible set is
  again [0, 3] and [7, 10]: two of the four intersections are empty.
* "figure1": two rules of two boxes each in the plane [0, 10]^2. The first rule's boxes stand left
  and right; the second rule's are a wide strip that meets both, and a box high up between them
  that meets neither. So two of the four intersections are non-empty, and their hull (DNF) is the
  strip between them, an area of 12, where the intersection of the two rules' hulls (CNF) reaches
  up towards the high box and has an area of about 28.

None of them has inputs: every rule always applies.
"""

from __future__ import annotations

from functools import partial

import pyomo.environ as pyo
from pyomo.core.expr import RelationalExpression
from pyomo.gdp import Disjunction

from gdpnet.testing._problem import Problem, samples

NAMES = ("one_rule", "two_rules", "figure1")

Box = tuple[tuple[float, float], tuple[float, float]]

FIGURE1: dict[str, tuple[Box, Box]] = {
    "rule1": (((1.0, 3.0), (1.0, 8.0)), ((6.0, 9.0), (2.0, 9.0))),
    "rule2": (((2.0, 8.0), (3.0, 5.0)), ((3.5, 5.5), (7.0, 9.5))),
}
"""Boxes of each rule's disjuncts in "figure1", as ((low, high) of y1, (low, high) of y2)."""


def pyomo_model(name: str = "two_rules") -> pyo.ConcreteModel:
    """The rules as an ordinary Pyomo.GDP model.

    Args:
        name: "one_rule", "two_rules" or "figure1".

    Returns:
        A model with the output `y`, a scalar or, for "figure1", indexed by 1 and 2.
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}; got {name!r}")
    m = pyo.ConcreteModel(name)
    if name == "figure1":
        m.y = pyo.Var([1, 2], bounds=(0, 10))
        for rule, boxes in FIGURE1.items():
            m.add_component(rule, Disjunction(expr=[_inside(m.y, box) for box in boxes]))
        return m
    m.y = pyo.Var(bounds=(0, 10))
    if name == "one_rule":
        m.rule = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    else:
        m.rule1 = Disjunction(expr=[[m.y <= 3], [m.y >= 6]])
        m.rule2 = Disjunction(expr=[[m.y <= 4], [m.y >= 7]])
    return m


def _inside(y: pyo.Var, box: Box) -> list[RelationalExpression]:
    """Rows that keep y inside the box."""
    return [row for j, (low, high) in enumerate(box, 1) for row in (y[j] >= low, y[j] <= high)]


# The other two are among the reference problems.
PROBLEMS = [
    Problem(
        "figure1",
        partial(pyomo_model, "figure1"),
        samples((4.6, 6.3), (1.2, 2), (2.4, 4.2), distances=(2.7, 1.8, 0)),
    )
]
