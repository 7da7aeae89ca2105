"""Sizes of relaxations: as the chain's, and against the two ways in which the paper counts."""

from __future__ import annotations

from dataclasses import asdict

import pyomo.environ as pyo
import pytest

import gdpnet
from gdpnet import Plan
from gdpnet.relaxation import convexify
from gdpnet.relaxation.sizes import sizes_of
from gdpnet.testing.problems.stress import pyomo_model as stress
from tests.relaxation._programs import sizes

D = 3  # outputs
GLOBALS = 2  # rows that the paper counts once more, outside of the disjuncts


def paper_rules(k: int) -> gdpnet.RuleModel:
    """The instance of the paper's table; from k = 5 on it has a disjunct of two rows."""
    m = stress(k)
    if k < 5:
        return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.need])
    m.rule[k - 1].disjuncts[0].more = pyo.Constraint(expr=m.y[0] + m.y[1] <= 1.9)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.need])


@pytest.fixture(scope="module")
def table() -> dict[tuple[int, str], dict[str, int]]:
    return {
        (k, name): asdict(sizes_of(paper_rules(k), name, x=[0.5], prune=False))
        for k in range(1, 11)
        for name in ("cnf", "dnf")
    }


def test_variables_grow_as_the_paper_says(table: dict[tuple[int, str], dict[str, int]]) -> None:
    """A disjunct has a weight, 3 outputs and 3 distances; 6 more are the variables themselves."""
    for k in range(2, 11):
        assert table[k, "cnf"]["disjuncts"] == 2 * k
        assert table[k, "cnf"]["variables"] == 6 + 7 * 2 * k
        assert table[k, "dnf"]["disjuncts"] == 2**k
        assert table[k, "dnf"]["variables"] == 6 + 7 * 2**k
    assert [table[k, "cnf"]["variables"] for k in (2, 5)] == [34, 76]
    # With one rule the third output has to do with no rule; the paper copies it all the same: 20.
    assert table[1, "cnf"]["variables"] == table[1, "dnf"]["variables"] == 20 - 2 * 2


def test_rows_without_bounds(table: dict[tuple[int, str], dict[str, int]]) -> None:
    """The paper's count at k = 10: 7174/25097, and 143/343 without the distances in common."""
    dnf, cnf = table[10, "dnf"], table[10, "cnf"]
    assert (dnf["variables"], dnf["rows"] + GLOBALS) == (7174, 25097)
    assert (cnf["variables"], cnf["rows"] + GLOBALS) == (146, 373)
    assert (cnf["variables"] - D, cnf["rows"] + GLOBALS - D * 10) == (143, 343)


def test_rows_with_bounds(table: dict[tuple[int, str], dict[str, int]]) -> None:
    """The paper's count at k = 1, 2, 5: bounds are rows, those above distances are not there."""
    for k, rows, paper in ((2, 76, 123), (5, 188, 292)):
        row = table[k, "cnf"]
        assert row["rows"] + GLOBALS == rows
        assert row["bounds"] == 14 * 2 * k + 12
        without_distances = D * k  # their sums are not there either
        from_above = D * (2 * k + 1)
        assert rows - without_distances + row["bounds"] - from_above == paper


@pytest.mark.parametrize("k", [1, 2, 4, 6])
@pytest.mark.parametrize("kind", ["cnf", "dnf"])
def test_sizes_are_those_of_the_chain(k: int, kind: str) -> None:
    m = stress(k)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.need])
    lp = convexify(m, [m.y], inputs=[m.need], clusters=kind, prune=False)
    ours = sizes_of(rules, kind, [0.5], prune=False)
    assert (ours.variables, ours.rows) == sizes(lp)


def test_pruning_makes_the_dnf_small() -> None:
    m = stress(8)
    rules = gdpnet.RuleModel(m, [m.y], [m.need], input_bounds={"need": (0.2, 0.6)})
    whole, pruned = (sizes_of(rules, "dnf", [0.5], prune=p) for p in (False, True))
    assert whole.disjuncts == 256
    assert pruned.disjuncts < 30
    partial = sizes_of(rules, Plan.lexicographic(rules, 3), [0.5], prune=False)
    assert (partial.clusters, partial.disjuncts) == (6, 8 + 2 * 5)


def test_wrong_arguments() -> None:
    rules = paper_rules(2)
    with pytest.raises(gdpnet.errors.InputError, match="relaxation: expected 'dnf', 'cnf'"):
        sizes_of(rules, "hull", [0.5])
    with pytest.raises(gdpnet.errors.RuleError, match="one sample"):
        sizes_of(rules, "cnf", [[0.5], [0.6]])
