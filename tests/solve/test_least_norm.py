"""The l2-nearest of all l1-nearest points, against HiGHS on every choice of disjuncts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyomo.gdp import Disjunction
from scipy.optimize import minimize

import gdpnet
from gdpnet import core
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.engine import ExactEngine, activity_of
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.testing import BY_NAME, PROBLEMS

INF = float("inf")
DONE, LIMITED = 0, 1  # what becomes of a tie

# ---- both projections -----------------------------------------------------------------------


@dataclass
class Answer:
    vertex: np.ndarray  # (B, d)
    y: np.ndarray  # (B, d)
    z: np.ndarray
    distance: np.ndarray
    assignment: np.ndarray
    flag: np.ndarray
    nodes: np.ndarray


def project(
    rules: gdpnet.RuleModel,
    yhat: Any,
    x: Any = None,
    weights: Any = None,
    node_limit: int = 100_000,
) -> Answer:
    """The vertex search, then the least-norm search, component by component."""
    yhat = np.ascontiguousarray(yhat, dtype=float)
    x = np.zeros((len(yhat), 0)) if x is None else np.ascontiguousarray(x, dtype=float)
    weights = np.ones(yhat.shape[1]) if weights is None else np.asarray(weights, dtype=float)
    engine = ExactEngine(rules)
    instance = Instance.of(rules, x)
    solved = engine.project(instance, yhat, SearchOptions(weights=weights))
    z, assignment = solved.z.copy(), solved.assignment.copy()
    flag, nodes = np.zeros(len(yhat), dtype=int), np.zeros(len(yhat), dtype=int)
    for part in engine.components:
        own = np.ascontiguousarray(z[:, part.columns])
        chosen = np.ascontiguousarray(assignment[:, part.booleans])
        aim, weight = np.ascontiguousarray(yhat[:, part.outputs]), weights[part.outputs]
        distance = np.abs((own[:, : part.prepared.outputs] - aim) * weight).sum(1)
        samples = np.flatnonzero(np.isfinite(own).all(1))
        varying = instance.varying[:, part.varying][:, :, part.columns]
        count, told = np.zeros(len(samples), dtype=np.int64), np.zeros(len(samples), dtype=np.int8)
        core.LeastNorm(part.native).settle(
            activity_of(part, instance.active),
            np.ascontiguousarray(varying),
            np.ascontiguousarray(instance.bound[:, part.rows]),
            *(aim, weight, samples, own, chosen, distance, node_limit, INF, 1, True, count, told),
        )
        z[:, part.columns] = own
        assignment[:, part.booleans] = chosen
        flag[samples] = np.maximum(flag[samples], told)
        nodes[samples] += count
    d = yhat.shape[1]
    return Answer(solved.z[:, :d], z[:, :d], z, solved.distance, assignment, flag, nodes)


# ---- the oracle -----------------------------------------------------------------------------


class Oracle:
    """All choices of disjuncts of one sample: a linear program to discard, a QP for the rest.

    Variables are z, then above and below with y - above + below == yhat.
    """

    def __init__(self, rules: gdpnet.RuleModel, yhat: Any, x: Any, weights: Any) -> None:
        data = rules.data
        self.data, self.yhat, self.weights = data, np.asarray(yhat, float), np.asarray(weights)
        instance = Instance.of(rules, np.ascontiguousarray(x, dtype=float)[None])
        self.active = instance.active[0]
        n, d = len(data.columns), data.outputs
        self.n, self.size = n, n + 2 * d
        self.rows, self.bound = np.zeros((len(data.rows), self.size)), instance.bound[0]
        varying = 0
        for i, row in enumerate(data.rows):
            if all(a.is_number for _, a in row.terms):
                for j, a in row.terms:
                    self.rows[i, j] += a.number
            else:
                self.rows[i, :n] = instance.varying[0, varying]
                varying += 1
        size = np.abs(self.rows).max(1, initial=0.0)
        size[size == 0] = 1.0
        self.rows, self.bound = self.rows / size[:, None], self.bound / size
        self.lower = np.array([c.lower for c in data.columns] + [0.0] * (2 * d))
        self.upper = np.array([c.upper for c in data.columns] + [INF] * (2 * d))

    def model(self, enforced: set[int]) -> highspy.Highs:
        """The linear program of a choice: least distance."""
        n, d, size = self.n, self.data.outputs, self.size
        lines = [self.rows[i] for i in sorted(enforced)]
        high = [self.bound[i] for i in sorted(enforced)]
        low = [self.bound[i] if self.data.rows[i].equality else -INF for i in sorted(enforced)]
        for j in range(d):
            line = np.zeros(size)
            line[[j, n + j, n + d + j]] = 1.0, -1.0, 1.0
            lines.append(line)
            low.append(self.yhat[j])
            high.append(self.yhat[j])
        matrix = np.array(lines)
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("presolve", "off")
        solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
        solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
        solver.setOptionValue("qp_regularization_value", 0.0)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = size, len(matrix)
        lp.col_cost_ = np.concatenate([np.zeros(n), self.weights, self.weights])
        lp.col_lower_, lp.col_upper_ = self.lower, self.upper
        lp.row_lower_, lp.row_upper_ = np.array(low), np.array(high)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        used = matrix != 0
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(used.sum(1))]).astype(np.int32)
        lp.a_matrix_.index_ = np.nonzero(used)[1].astype(np.int32)
        lp.a_matrix_.value_ = matrix[used]
        assert solver.passModel(lp) != highspy.HighsStatus.kError
        return solver

    def least_distance(self, enforced: set[int]) -> float:
        solver = self.model(enforced)
        solver.run()
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            return float(solver.getInfo().objective_function_value)
        assert solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible
        return INF

    def least_norm(self, enforced: set[int]) -> np.ndarray:
        """The least norm on the face of the optimal solutions.

        By complementary slackness that face is where every row with a multiplier is tight, and
        every column with a reduced cost at its bound.
        """
        n, d = self.n, self.data.outputs
        solver = self.model(enforced)
        solver.run()
        solution, lp = solver.getSolution(), solver.getLp()
        for i, (dual, value) in enumerate(zip(solution.row_dual, solution.row_value, strict=True)):
            if abs(dual) > 1e-8:
                low, high = lp.row_lower_[i], lp.row_upper_[i]
                side = low if abs(value - low) < abs(value - high) else high
                solver.changeRowBounds(i, side, side)
        for j, (dual, value) in enumerate(zip(solution.col_dual, solution.col_value, strict=True)):
            if abs(dual) > 1e-8:
                low, high = lp.col_lower_[j], lp.col_upper_[j]
                side = low if abs(value - low) < abs(value - high) else high
                solver.changeColBounds(j, side, side)
        for j in range(n, self.size):
            solver.changeColCost(j, 0.0)
        hessian = highspy.HighsHessian()
        hessian.dim_ = self.size
        hessian.format_ = highspy.HessianFormat.kTriangular
        hessian.start_ = np.concatenate([np.zeros(n), np.arange(2 * d + 1)]).astype(np.int32)
        hessian.index_ = np.arange(n, self.size).astype(np.int32)
        hessian.value_ = np.tile(self.weights**2, 2)
        assert solver.passHessian(hessian) != highspy.HighsStatus.kError
        solver.run()
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            return np.array(solver.getSolution().col_value)[:d]
        return self.by_scipy(solver.getLp(), np.array(solution.col_value))[:d]

    def by_scipy(self, lp: highspy.HighsLp, start: np.ndarray) -> np.ndarray:
        """The same program, where HiGHS itself says that its point is not feasible."""
        n = self.n
        low, high = np.array(lp.row_lower_), np.array(lp.row_upper_)
        matrix = np.zeros((lp.num_row_, self.size))
        for j in range(self.size):
            for e in range(lp.a_matrix_.start_[j], lp.a_matrix_.start_[j + 1]):
                matrix[lp.a_matrix_.index_[e], j] = lp.a_matrix_.value_[e]
        equal, finite = low == high, np.isfinite(high)
        curvature = np.concatenate([np.zeros(n), np.tile(self.weights**2, 2)])
        found = minimize(
            lambda v: 0.5 * np.sum(curvature * v * v),
            start,
            jac=lambda v: curvature * v,
            method="SLSQP",
            bounds=list(zip(lp.col_lower_, lp.col_upper_, strict=True)),
            constraints=[
                {"type": "eq", "fun": lambda v: matrix[equal] @ v - high[equal]},
                {"type": "ineq", "fun": lambda v: (high - matrix @ v)[finite & ~equal]},
            ],
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        excess = np.maximum(matrix @ found.x - high, low - matrix @ found.x)
        assert found.success
        assert excess.max() <= 1e-9
        return found.x

    def points(self, distance: float) -> list[np.ndarray]:
        """The least-norm point of every choice that attains the distance."""
        found: dict[Any, np.ndarray] = {}
        self._descend({}, set(self.data.global_rows), distance, found)
        return list(found.values())

    def _descend(
        self, truth: dict[int, bool], enforced: set[int], distance: float, found: dict[Any, Any]
    ) -> None:
        if self.least_distance(enforced) > distance + 1e-8 * max(1.0, distance):
            return
        options = self._next(truth)
        for literal in options or ():
            k, value = abs(literal) - 1, literal > 0
            boolean = self.data.booleans[k]
            rows = boolean.true_rows if value else boolean.false_rows
            self._descend({**truth, k: value}, enforced | set(rows), distance, found)
        if options is not None:
            return
        column = next(
            (
                j
                for j, c in enumerate(self.data.columns)
                if c.integer and self.lower[j] < self.upper[j]
            ),
            None,
        )
        if column is None:
            key = (frozenset(enforced), tuple(self.lower), tuple(self.upper))
            if key not in found:
                found[key] = self.least_norm(enforced)
            return
        low, high = self.lower[column], self.upper[column]
        for whole in range(round(low), round(high) + 1):
            self.lower[column] = self.upper[column] = whole
            self._descend(truth, enforced, distance, found)
        self.lower[column], self.upper[column] = low, high

    def _next(self, truth: dict[int, bool]) -> list[int] | None:
        """Literals of a clause that is still open, None if there is none."""
        named = set()
        for c, clause in enumerate(self.data.clauses):
            if not self.active[c] or (clause.guard >= 0 and not truth.get(clause.guard, False)):
                continue
            named |= {abs(k) - 1 for k in clause.literals}
            if any(truth.get(abs(k) - 1) == (k > 0) for k in clause.literals):
                continue
            return [k for k in clause.literals if abs(k) - 1 not in truth]
        for k in sorted(named - truth.keys()):
            if self.data.booleans[k].false_rows:
                return [k + 1, -k - 1]
        return None


def norm(y: np.ndarray, yhat: np.ndarray, weights: np.ndarray) -> float:
    return float(np.sum((weights * (y - yhat)) ** 2))


def check(
    rules: gdpnet.RuleModel, yhat: Any, x: Any = None, weights: Any = None, oracle: bool = True
) -> Answer:
    """Nothing lost in l1, no rule broken, and as near in l2 as the oracle's best point."""
    yhat = np.ascontiguousarray(yhat, dtype=float)
    weights = np.ones(yhat.shape[1]) if weights is None else np.asarray(weights, dtype=float)
    answer = project(rules, yhat, x, weights)
    given = np.isfinite(answer.y).all(1)
    assert (answer.flag == DONE).all()
    inputs = None if x is None else torch.as_tensor(np.asarray(x)[given])
    assert rules.satisfied(torch.from_numpy(answer.y[given]), inputs, tol=1e-9).all()
    for s in np.flatnonzero(given):
        y, distance = answer.y[s], answer.distance[s]
        moved = float(np.sum(weights * np.abs(y - yhat[s])))
        assert moved <= distance + 1e-9 * max(1.0, distance)
        assert norm(y, yhat[s], weights) <= norm(answer.vertex[s], yhat[s], weights) + 1e-12
        if oracle and distance > 0:
            at = np.zeros(0) if x is None else np.asarray(x)[s]
            points = Oracle(rules, yhat[s], at, weights).points(distance)
            norms = [norm(p, yhat[s], weights) for p in points]
            least, size = min(norms), max(1.0, distance)
            assert abs(norm(y, yhat[s], weights) - least) <= 1e-8 * size**2
            near = [p for p, v in zip(points, norms, strict=True) if v <= least + 1e-7 * size**2]
            assert min(np.abs(p - y).max() for p in near) <= 1e-6 * size
    return answer


# ---- problems -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [problem.name for problem in PROBLEMS])
def test_bank(name: str) -> None:
    problem = BY_NAME[name]
    check(problem.rules(), problem.yhat.numpy(), None if problem.x is None else problem.x.numpy())


def simplex(groups: Any, d: int) -> gdpnet.RuleModel:
    """A probability simplex; each rule: one of its groups has at least its share."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.y.values()) == 1)

    def rule(m: Any, r: int) -> Any:
        return [[sum(m.y[j] for j in members) >= share] for members, share in groups[r]]

    m.rules = Disjunction(range(len(groups)), rule=rule)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[])


def random_groups(generator: np.random.Generator, d: int, rules: int) -> Any:
    def group() -> Any:
        members = sorted(generator.permutation(d)[: generator.integers(1, d - 1)].tolist())
        return members, round(float(generator.uniform(0.3, 0.8)), 2)

    return [[group() for _ in range(generator.integers(2, 4))] for _ in range(rules)]


@pytest.mark.parametrize("d", [3, 4, 5, 6, 7, 8])
def test_simplex(d: int) -> None:
    generator = np.random.default_rng(d)
    rules = simplex(random_groups(generator, d, 3), d)
    yhat = torch.softmax(torch.from_numpy(generator.normal(size=(12, d)) * 1.5), 1).numpy()
    check(rules, yhat)
    weights = generator.uniform(0.5, 2, d)
    check(rules, yhat, weights=weights)


def test_uniform_softmax_takes_evenly_from_the_others() -> None:
    rules = simplex([[([0], 0.5), ([1], 0.5)]], 4)
    answer = check(rules, [[0.25] * 4])
    third = 0.5 / 3
    assert answer.y[0] == pytest.approx([0.5, third, third, third], abs=1e-12)


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e5])
def test_a_unique_nearest_point_stays_bit_by_bit(gap: float, size: float) -> None:
    """However little the second best direction costs more."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3))
    m.row = pyo.Constraint(expr=m.y[0] + (1 - gap) * m.y[1] + 0.5 * m.y[2] >= size)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[])
    answer = check(rules, np.zeros((1, 3)), oracle=False)
    assert (answer.y == answer.vertex).all()
    assert answer.y[0].tolist() == [size, 0, 0]


def test_weights_decide_which_point_is_nearest() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.row = pyo.Constraint(expr=2 * m.y[0] + m.y[1] >= 4)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[])
    answer = check(rules, [[0.0, 0.0]], weights=[2.0, 1.0])
    assert answer.y[0] == pytest.approx([1, 2], abs=1e-12)


def test_a_chosen_disjunct_is_reported_for_every_rule() -> None:
    generator = np.random.default_rng(3)
    rules = simplex(random_groups(generator, 6, 3), 6)
    yhat = torch.softmax(torch.from_numpy(generator.normal(size=(50, 6))), 1).numpy()
    answer = project(rules, yhat)
    y = torch.from_numpy(answer.y)
    for rule in rules.data.rules:
        clause = rules.data.clauses[rule.clause]
        for s in np.flatnonzero(answer.distance > 0):
            true = [k - 1 for k in clause.literals if answer.assignment[s, k - 1] == 1]
            assert true
            rows = [rules.data.rows[i] for k in true for i in rules.data.booleans[k].true_rows]
            for row in rows:
                over = sum(a.number * y[s, j] for j, a in row.terms) - row.bound.number
                assert over <= 1e-9


def test_the_node_limit_keeps_a_feasible_nearest_point() -> None:
    generator = np.random.default_rng(4)
    rules = simplex(random_groups(generator, 8, 5), 8)
    yhat = torch.softmax(torch.from_numpy(generator.normal(size=(30, 8))), 1).numpy()
    answer = project(rules, yhat, node_limit=2)
    assert (answer.flag == LIMITED).any()
    assert rules.satisfied(torch.from_numpy(answer.y), tol=1e-9).all()
    assert np.abs(np.abs(answer.y - yhat).sum(1) - answer.distance).max() <= 1e-9


# ---- the order of rules, disjuncts and rows -------------------------------------------------

Row = tuple[tuple[float, ...], str, float]


def built(globals_: list[Row], rules: list[list[list[Row]]], d: int) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(-3, 3))

    def relation(row: Row) -> Any:
        a, sense, b = row
        body = sum(c * m.y[j] for j, c in enumerate(a))
        return {"<=": body <= b, ">=": body >= b, "==": body == b}[sense]

    m.always = pyo.ConstraintList()
    for row in globals_:
        m.always.add(relation(row))
    m.rules = Disjunction(
        range(len(rules)), rule=lambda m, r: [[relation(row) for row in term] for term in rules[r]]
    )
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[])


@st.composite
def problems(draw: Any) -> Any:
    """Small whole coefficients: ties, parallel, duplicate and contradictory rows are frequent."""
    d = draw(st.integers(2, 4))
    whole = st.integers(-2, 2).map(float)

    def row() -> Row:
        a = draw(st.lists(whole, min_size=d, max_size=d).filter(any))
        sense = draw(st.sampled_from(["<=", ">=", "<=", ">=", "=="]))
        return tuple(a), sense, draw(st.integers(-6, 6)) / 2

    def rows(least: int, most: int) -> list[Row]:
        return [row() for _ in range(draw(st.integers(least, most)))]

    globals_ = rows(0, 2)
    rules = [
        [rows(1, 2) for _ in range(draw(st.integers(2, 3)))] for _ in range(draw(st.integers(1, 3)))
    ]
    yhat = draw(st.lists(st.integers(-8, 8).map(lambda v: v / 4), min_size=d, max_size=d))
    return globals_, rules, yhat


@given(problem=problems(), seed=st.integers(0, 100))
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_random_rules_in_any_order(problem: Any, seed: int) -> None:
    globals_, rules, yhat = problem
    first = check(built(globals_, rules, len(yhat)), [yhat])
    generator = np.random.default_rng(seed)

    def shuffled(items: list[Any]) -> list[Any]:
        return [items[k] for k in generator.permutation(len(items))]

    other = [[shuffled(term) for term in shuffled(rule)] for rule in shuffled(rules)]
    second = project(built(shuffled(globals_), other, len(yhat)), [yhat])
    assert np.allclose(first.y, second.y, rtol=0, atol=1e-8, equal_nan=True)


def test_simplex_rules_in_any_order() -> None:
    generator = np.random.default_rng(8)
    groups = random_groups(generator, 6, 4)
    yhat = torch.softmax(torch.from_numpy(generator.normal(size=(200, 6))), 1).numpy()
    yhat[:20] = 1 / 6
    first = project(simplex(groups, 6), yhat)
    second = project(simplex([rule[::-1] for rule in groups[::-1]], 6), yhat)
    assert np.abs(first.y - second.y).max() <= 1e-8
    assert (first.flag == DONE).all()


@pytest.mark.parametrize("seed", range(24))
def test_auxiliaries_and_whole_numbers(seed: int) -> None:
    generator = np.random.default_rng(seed)
    d, free = int(generator.integers(2, 5)), int(generator.integers(1, 3))
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(-3, 3))
    m.a = pyo.Var(range(free), bounds=(-4, 4) if seed % 2 else (None, None))
    if seed % 3 == 0:
        whole = m.y[0] if seed % 2 else m.a[0]
        whole.domain = pyo.Integers
        whole.setlb(-3)
        whole.setub(3)
    variables = [*m.y.values(), *m.a.values()]

    def relation() -> Any:
        a = generator.integers(-2, 3, len(variables)).tolist()
        a[generator.integers(len(a))] = 1
        body = sum(c * v for c, v in zip(a, variables, strict=True))
        bound = float(generator.integers(-4, 5)) / 2
        return [body <= bound, body >= bound, body == bound][
            generator.choice(3, p=[0.45, 0.45, 0.1])
        ]

    m.always = pyo.ConstraintList()
    m.always.add(relation())
    terms = [[[relation() for _ in range(2)] for _ in range(2)] for _ in range(3)]
    m.rules = Disjunction(range(3), rule=lambda m, r: terms[r])
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[])
    check(rules, generator.integers(-12, 13, (4, d)) / 4)


def test_a_sample_does_not_depend_on_the_others() -> None:
    generator = np.random.default_rng(5)
    rules = simplex(random_groups(generator, 5, 3), 5)
    yhat = torch.softmax(torch.from_numpy(generator.normal(size=(40, 5))), 1).numpy()
    together = project(rules, yhat)
    alone = [project(rules, yhat[s : s + 1]) for s in range(0, 40, 4)]
    assert np.array_equal(together.z[::4], np.concatenate([one.z for one in alone]))


def test_every_problem_of_the_bank_is_deterministic() -> None:
    for problem in PROBLEMS[:20]:
        x = None if problem.x is None else problem.x.numpy()
        one, two = (project(problem.rules(), problem.yhat.numpy(), x) for _ in range(2))
        assert np.array_equal(one.z, two.z, equal_nan=True)
