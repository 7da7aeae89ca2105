"""The program that is assembled directly is the Pyomo chain's, entry by entry."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import gdpnet
from gdpnet.ir.instance import Instance
from gdpnet.relaxation import Plan, convexify, convexify_rules
from gdpnet.relaxation.blocks import box, contradictory, hanging_together, layout, payers
from gdpnet.relaxation.program import RelaxationProgram, Variable, complete
from gdpnet.relaxation.pyomo.adapter import read_matrices
from gdpnet.relaxation.relaxable import relaxable
from gdpnet.testing import (
    BY_NAME,
    PROBLEMS,
    Problem,
    random_predictions,
    random_rules,
    with_random_prices,
)

Signature = tuple[Any, ...]


def assembled(
    rules: gdpnet.RuleModel, relaxation: Any, x: Sequence[float] | None, norm: str = "l1"
) -> tuple[RelaxationProgram | None, Any]:
    """The program of the rules at x, and the rules there as numbers."""
    ready = relaxable(rules)
    inputs = np.array([list(x or ())], dtype=float).reshape(1, -1)
    instance = Instance.of(ready.rules, inputs)
    active = instance.active[0].tolist()
    on = [r for r, rule in enumerate(ready.rules.data.rules) if active[rule.clause]]
    if relaxation == "dnf":
        clusters = hanging_together(ready.rules.data, on, active, ready.logic)
    else:
        plan = Plan.cnf() if relaxation == "cnf" else relaxation
        clusters = plan.active(ready.rules, [r in on for r in range(len(ready.rules.names))])
    parts = layout(ready.rules.data, clusters, active, ready.logic)
    if contradictory(parts):
        return None, instance
    data = ready.rules.data
    return RelaxationProgram(data, complete(data, parts), norm), instance


def rows_of(
    variables: Sequence[Variable],
    lower: np.ndarray,
    upper: np.ndarray,
    rows: Iterator[tuple[list[tuple[int, float]], float, Any]],
) -> Counter[Signature]:
    """Rows as sets of (entries by what their columns are, right side, sense or place in a cone).

    Columns without a name of their own (helpers of propositions) are told apart by the rows they
    stand in, as far as that goes.
    """
    listed = [
        (sorted((j, round(a, 11)) for j, a in terms if abs(a) > 1e-12), round(b, 11) + 0.0, e)
        for terms, b, e in rows
    ]
    listed = [row for row in listed if not says_nothing(variables, *row)]
    colour: list[Any] = []
    for j, v in enumerate(variables):
        name = "truth" if v.name.startswith("truth") else v.name
        bounds = round(float(lower[j]), 11), round(float(upper[j]), 11)
        colour.append(hash((v.kind, name, tuple(sorted(v.rules)), v.term, bounds)))
    for _ in range(4):
        seen: list[list[int]] = [[] for _ in variables]
        for terms, b, e in listed:
            whole = hash((tuple(sorted((colour[j], a) for j, a in terms)), b, e))
            for j, a in terms:
                seen[j].append(hash((whole, a)))
        colour = [hash((c, tuple(sorted(s)))) for c, s in zip(colour, seen, strict=True)]
    found: Counter[Signature] = Counter()
    for terms, b, e in listed:
        found[tuple(sorted((colour[j], a) for j, a in terms)), b, e] += 1
    return found


def says_nothing(
    variables: Sequence[Variable], terms: list[tuple[int, float]], bound: float, equality: bool
) -> bool:
    """No entry at all, or that a weight is not negative: a row of the model without variables."""
    weight = len(terms) == 1 and variables[terms[0][0]].kind == "weight" and terms[0][1] < 0
    return (not terms or weight) and bound >= 0 and not equality


def of_program(program: RelaxationProgram, instance: Any, yhat: np.ndarray) -> Counter[Signature]:
    parameters = program.parameters(instance.bound, instance.varying, yhat[None])
    every = np.concatenate([program.value, program.bound])
    every[program.moving] = program.moving_values(parameters)[0]
    value, bound = every[: len(program.value)], every[len(program.value) :]

    place = {
        cone.first + k: (cone.kind, k, cone.exponent)
        for cone in program.cones
        for k in range(cone.size)
    }

    def rows() -> Iterator[tuple[list[tuple[int, float]], float, Any]]:
        for i in range(len(bound)):
            span = slice(program.start[i], program.start[i + 1])
            terms = list(zip(program.column[span].tolist(), value[span].tolist(), strict=True))
            if i in place:
                yield terms, float(bound[i]), place[i]
            else:
                yield from both(terms, float(bound[i]), bool(program.equality[i]))

    return rows_of(program.variables, program.lower, program.upper, rows())


def of_chain(lp: Any) -> Counter[Signature]:
    matrices = read_matrices(lp)
    matrix, bound = matrices.at(matrices.values())

    def rows() -> Iterator[tuple[list[tuple[int, float]], float, Any]]:
        entries, right = matrices.numbers(matrices.values())
        structure = matrices.structure
        for cone in structure.cones:
            for k in range(cone.size):
                i = cone.first + k
                span = slice(structure.start[i], structure.start[i + 1])
                columns = structure.column[span].tolist()
                terms = list(zip(columns, entries[span].tolist(), strict=True))
                yield terms, float(right[i]), (cone.kind, k, cone.exponent)
        for i, row in enumerate(matrices.rows):
            span = slice(matrix.indptr[i], matrix.indptr[i + 1])
            terms = list(
                zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)
            )
            yield from both(terms, float(bound[i]), row.equality)

    return rows_of(matrices.variables, matrices.lower, matrices.upper, rows())


def both(
    terms: list[tuple[int, float]], bound: float, equality: bool
) -> Iterator[tuple[list[tuple[int, float]], float, bool]]:
    """An equality with either sign is the same."""
    yield terms, bound, equality
    if equality:
        yield [(j, -a) for j, a in terms], -bound, equality


def costs_of_program(program: RelaxationProgram, instance: Any) -> Counter[Signature]:
    """What columns cost that cost something, by what they are."""
    cost = np.zeros(len(program.lower))
    cost[program.distances] = 1.0
    columns = np.array(program.weights)
    price = (instance.price @ payers(program.data, program.layout))[0]
    cost[columns[columns >= 0]] = price[columns >= 0]
    return _signed(program.variables, cost)


def costs_of_chain(lp: Any) -> Counter[Signature]:
    matrices = read_matrices(lp)
    return _signed(matrices.variables, matrices.cost_at(matrices.values()))


def _signed(variables: Sequence[Variable], cost: np.ndarray) -> Counter[Signature]:
    named = zip(variables, cost.tolist(), strict=True)
    return Counter(
        (v.kind, v.name, tuple(sorted(v.rules)), v.term, round(c, 11)) for v, c in named if c
    )


def assert_equal(
    rules: gdpnet.RuleModel,
    chain: Callable[..., Any],
    relaxation: Any,
    x: Any,
    yhat: Any,
    norm: str = "l1",
) -> bool:
    """Whether there was a program to compare; the rules may contradict each other."""
    start = np.clip(np.array(yhat, dtype=float), *box_at(rules, x))
    program, instance = assembled(rules, relaxation, x, norm)
    try:
        lp = chain(relaxation, x, start.tolist())
    except gdpnet.errors.ConflictError:
        assert program is None
        return False
    assert program is not None
    if norm == "l1":
        assert costs_of_program(program, instance) == costs_of_chain(lp)
    ours, theirs = of_program(program, instance, start), of_chain(lp)
    assert sum(ours.values()) == sum(theirs.values())
    assert ours == theirs
    return True


def box_at(rules: gdpnet.RuleModel, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the outputs, those that depend on the inputs included."""
    inputs = np.array([list(x or ())], dtype=float).reshape(1, -1)
    lower, upper = box(rules.data, Instance.of(rules, inputs).bound)
    return lower[0], upper[0]


def comparable(rules: gdpnet.RuleModel) -> bool:
    """Finite bounds, no whole number that the chain would relax, not too many products."""
    if any(c.integer and not c.name.endswith("binary_indicator_var") for c in rules.data.columns):
        return False
    try:
        data = relaxable(rules).rules.data
        layout(data, [[r] for r in range(len(data.rules))], [True] * len(data.clauses))
    except gdpnet.errors.RuleError:
        return False
    return math.prod(len(c.literals) for c in rules.data.clauses if not c.logic) <= 150


# Logic inside a disjunct gets a helper variable in the chain, and none here: the same set.
SAME_ENTRIES = [p for p in PROBLEMS if p.name != "logic_inside_disjunct"]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("problem", SAME_ENTRIES, ids=lambda p: p.name)
def test_the_bank(problem: Problem, norm: str) -> None:
    rules = problem.rules()
    if not comparable(rules):
        pytest.skip("no hull, or too many products")
    kinds: list[Any] = ["cnf", "dnf"]
    if len(rules.names) > 2:
        kinds.append(Plan((rules.names[:2],)))
    m = problem.build()
    outputs = [m.find_component(name) for name in problem.outputs]
    inputs = [m.find_component(name) for name in problem.inputs]

    def chain(relaxation: Any, x: Any, yhat: Any) -> Any:
        options = {"inputs": inputs, "clusters": relaxation, "x": x, "yhat": yhat}
        return convexify(m, outputs, prune=False, norm=norm, **options)

    for sample in problem.samples[:3]:
        for kind in kinds:
            assert_equal(rules, chain, kind, sample.x or None, sample.yhat, norm)


@pytest.mark.parametrize("priced", [False, True])
def test_random_rules(priced: bool) -> None:
    tried = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rules = random_rules(rng)
        if priced:
            rules = with_random_prices(rules, rng)
        if not comparable(rules) or relaxable(rules).logic.same:
            continue  # what is nested and named by logic is rebuilt with helpers
        (yhat,) = random_predictions(rng, rules.data.outputs)[:1]

        def chain(relaxation: Any, x: Any, yhat: Any, rules: Any = rules) -> Any:
            return convexify_rules(rules, relaxation=relaxation, x=x, yhat=yhat, prune=False)

        for kind in ("cnf", "dnf", Plan((rules.names[:2],))):
            tried += assert_equal(rules, chain, kind, None, yhat)
    assert tried >= 24


def test_matrices_read_once_serve_for_all_inputs_and_predictions() -> None:
    """Params in coefficients, right sides and bounds: no entry was frozen when it was read."""
    for name in ("coefficients", "bounds_from_inputs"):
        problem = BY_NAME[name]
        m = problem.build()
        outputs = [m.find_component(o) for o in problem.outputs]
        inputs = [m.find_component(i) for i in problem.inputs]
        options: dict[str, Any] = {"inputs": inputs, "clusters": "dnf", "prune": False}
        once = read_matrices(convexify(m, outputs, x=problem.samples[0].x, **options))
        for sample in problem.samples:
            lp = convexify(m, outputs, x=sample.x, yhat=sample.yhat, **options)
            fresh = read_matrices(lp)
            by_name = {p.name: float(pyo.value(p)) for p in fresh.params}
            matrix, bound = once.at(np.array([by_name[p.name] for p in once.params]))
            expected, right = fresh.at(fresh.values())
            place = {variable: j for j, variable in enumerate(fresh.variables)}
            order = [place[variable] for variable in once.variables]
            assert [r.name for r in once.rows] == [r.name for r in fresh.rows]
            assert np.allclose(matrix.toarray(), expected.toarray()[:, order], atol=1e-12, rtol=0)
            assert np.allclose(bound, right, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", ["coefficients", "jl_midsize", "conditions", "nested", "power"])
def test_rows_know_the_constraint_they_came_from(name: str) -> None:
    problem = BY_NAME[name]
    rules, sample = problem.rules(), problem.samples[-1]
    program, _ = assembled(rules, "cnf", sample.x or None)
    assert program is not None
    lp = convexify_rules(rules, relaxation="cnf", x=sample.x or None, prune=False)
    known = {row.name for row in rules.data.rows}
    ours = Counter(n for n in program.names if n in known)
    theirs = Counter(row.name for row in read_matrices(lp).rows if row.name in known)
    assert ours == theirs
    assert ours
    rule_names = {r for variable in program.variables for r in variable.rules}
    assert rule_names == {r for variable in read_matrices(lp).variables for r in variable.rules}
    assert rule_names <= set(rules.names)


def test_only_programs_of_the_chain_are_read() -> None:
    with pytest.raises(gdpnet.errors.RuleError, match=r"gdpnet.convexify made"):
        read_matrices(pyo.ConcreteModel())


@pytest.mark.parametrize("problem", SAME_ENTRIES, ids=lambda p: p.name)
def test_the_bank_with_prices(problem: Problem) -> None:
    rules = with_random_prices(problem.rules(), np.random.default_rng(1))
    if not comparable(rules) or relaxable(rules).logic.same:
        pytest.skip("no hull, too many products, or rebuilt with helpers")

    def chain(relaxation: Any, x: Any, yhat: Any) -> Any:
        return convexify_rules(rules, relaxation=relaxation, x=x, yhat=yhat, prune=False)

    for kind in ("cnf", "dnf"):
        sample = problem.samples[0]
        assert_equal(rules, chain, kind, sample.x or None, sample.yhat)
