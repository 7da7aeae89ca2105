"""What may be chosen, what a choice enforces, what is connected."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from gdpnet.ir.data import Boolean, Clause, Kind, RuleData
from gdpnet.ir.semantics import DisjointSets, enforced, options


def rules(*clauses: Clause, tied: tuple[int, ...] = (1, 2, 3, 4)) -> RuleData:
    booleans = tuple(Boolean(str(k), (k,), (10 + k,), tied=k + 1 in tied) for k in range(6))
    return RuleData((), (), 1, (), (), (), booleans, clauses, (), ())


def subsets(literals: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [c for size in range(1, len(literals) + 1) for c in combinations(literals, size)]


def test_one_disjunct_each_where_xor_is_said() -> None:
    clause = Clause("r", (1, 2, 3, 4), xor=True)
    assert options(rules(clause), clause) == [(1,), (2,), (3,), (4,)]


def test_any_subset_of_what_logic_names() -> None:
    clause = Clause("r", (1, 2, 3, 4))
    assert options(rules(clause), clause) == subsets((1, 2, 3, 4))
    assert options(rules(clause, tied=()), clause) == [(1,), (2,), (3,), (4,)]
    assert options(rules(clause, tied=(1, 3)), clause) == [(1,), (2,), (3,), (4,), (1, 3)]


@pytest.mark.parametrize("seed", range(20))
def test_propositions_exclude_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clause = Clause("r", (1, 2, 3, 4), guard=5, conditions=(0, 1))
    pairs = [pair for pair in combinations((1, 2, 3, 4), 2) if rng.random() < 0.4]
    said = [
        Clause(
            "l", (-a, -b), (-1, 5)[rng.integers(2)], ((), (1,))[rng.integers(2)], Kind.PROPOSITION
        )
        for a, b in pairs
    ]
    expected = [s for s in subsets(clause.literals) if not set(combinations(s, 2)) & set(pairs)]
    assert options(rules(clause, *said), clause) == expected


@pytest.mark.parametrize(
    "said",
    [
        Clause("l", (-1, -2), guard=4, kind=Kind.PROPOSITION),
        Clause("l", (-1, -2), conditions=(2,), kind=Kind.PROPOSITION),
        Clause("l", (-1, -2, -3), kind=Kind.PROPOSITION),
        Clause("l", (1, -2), kind=Kind.PROPOSITION),
    ],
    ids=["another guard", "another condition", "three", "an implication"],
)
def test_what_excludes_no_pair(said: Clause) -> None:
    clause = Clause("r", (1, 2, 3, 4), guard=5, conditions=(0, 1))
    assert options(rules(clause, said), clause) == subsets((1, 2, 3, 4))


def test_many_disjuncts_of_which_logic_allows_one() -> None:
    clause = Clause("r", tuple(range(1, 41)))
    booleans = tuple(Boolean(str(k), tied=True) for k in range(40))
    said = [Clause("l", (-a, -b), kind=Kind.PROPOSITION) for a, b in combinations(range(1, 41), 2)]
    data = RuleData((), (), 1, (), (), (), booleans, (clause, *said), (), ())
    assert options(data, clause) == [(k,) for k in range(1, 41)]


def test_rows_of_literals() -> None:
    assert enforced(rules().booleans, [1, -3, 2, 1]) == [0, 12, 1, 0]
    assert enforced(rules().booleans, []) == []


@pytest.mark.parametrize("seed", range(10))
def test_connected_components(seed: int) -> None:
    rng = np.random.default_rng(seed)
    joined = [rng.integers(0, 30, rng.integers(0, 4)).tolist() for _ in range(12)]
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(30))
    sets = DisjointSets()
    for items in joined:
        nx.add_path(graph, items)
        sets.join(items)
    expected = {frozenset(part) for part in nx.connected_components(graph)}
    found: dict[object, set[int]] = {}
    for k in range(30):
        found.setdefault(sets.find(k), set()).add(k)
    assert {frozenset(part) for part in found.values()} == expected
