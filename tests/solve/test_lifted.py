"""The lifted engine against the same linear program, written out in full and given to HiGHS."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.gdp import Disjunction
from scipy.optimize import linprog

import gdpnet
from gdpnet import Plan
from gdpnet.core import NO_BLOCK
from gdpnet.ir.instance import Instance
from gdpnet.lp import highs
from gdpnet.lp.program import LinearProgram, Outcome
from gdpnet.relaxation.blocks import Layout, MergedBlock, Part, layout
from gdpnet.relaxation.products import count_products
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.extended.engine import ExtendedEngine, ExtendedSolved
from gdpnet.study._models import load_model
from gdpnet.testing import PROBLEMS, Problem, random_predictions, random_rules

MOST_PRODUCTS = 60


class Oracle:
    """The hull of a part as the transformations write it: copies of y and eta, nothing substituted.

    Args:
        rules: the rules.
        coefficients: of one sample, (m, n).
        bound: (m,).
    """

    def __init__(self, rules: gdpnet.RuleModel, coefficients: np.ndarray, bound: np.ndarray):
        self.data, self.coefficients, self.bound = rules.data, coefficients, bound

    def value(self, given: Layout, start: np.ndarray, weights: np.ndarray, y=None) -> float:
        """Optimal value over all parts, inf if infeasible; with `y`, that of this point."""
        return sum(self._part(part, start, weights, y) for part in given)

    def _part(self, part: Part, start: np.ndarray, weights: np.ndarray, y) -> float:
        data, columns = self.data, list(part.columns)
        n, outputs = len(columns), [j for j in columns if j < data.outputs]
        d = len(outputs)
        products = [(b, k) for b, block in enumerate(part.blocks) for k in block.products]
        if any(not block.products for block in part.blocks):
            return math.inf
        width = n + d + 1
        total = n + d + len(products) * width
        lower, upper = np.zeros(total), np.full(total, np.inf)
        lower[:n] = [data.columns[j].lower for j in columns]
        upper[:n] = [data.columns[j].upper for j in columns]
        if y is not None:
            rounding = 1e-9 * np.maximum(1.0, np.abs(y[outputs]))
            lower[:d], upper[:d] = y[outputs] - rounding, y[outputs] + rounding
        rows, low, high = [], [], []

        def add(entries: dict[int, float], least: float, most: float) -> None:
            line = np.zeros(total)
            for at, value in entries.items():
                line[at] += value
            rows.append(line)
            low.append(least)
            high.append(most)

        for p, (_, product) in enumerate(products):
            z = n + d + p * width
            eta, share = z + n, z + n + d
            lower[z:eta] = -np.inf
            for i in dict.fromkeys((*part.rows, *product.rows)):
                size = max(np.abs(self.coefficients[i]).max(), 1e-12)
                line = {z + c: self.coefficients[i, j] / size for c, j in enumerate(columns)}
                line[share] = -self.bound[i] / size
                add(line, 0.0 if data.rows[i].equality else -np.inf, 0.0)
            for c, j in enumerate(columns):
                add({z + c: 1.0, share: -data.columns[j].upper}, -np.inf, 0.0)
                add({z + c: -1.0, share: data.columns[j].lower}, -np.inf, 0.0)
            for c, j in enumerate(outputs):
                add({z + c: 1.0, share: -start[j], eta + c: -1.0}, -np.inf, 0.0)
                add({z + c: -1.0, share: start[j], eta + c: -1.0}, -np.inf, 0.0)
        for b in range(len(part.blocks)):
            firsts = [n + d + p * width for p, (block, _) in enumerate(products) if block == b]
            add({first + n + d: 1.0 for first in firsts}, 1.0, 1.0)
            for c in range(n + d):
                add({**{first + c: 1.0 for first in firsts}, c: -1.0}, 0.0, 0.0)
        cost = np.zeros(total)
        cost[n : n + d] = weights[outputs]
        program = LinearProgram(
            cost, np.array(rows), np.array(low), np.array(high), lower, upper,
            np.zeros(total, dtype=bool),
        )  # fmt: skip
        return _least(program)


def _least(program: LinearProgram) -> float:
    """HiGHS at its tightest tolerances; at looser ones where it gives up on those."""
    answer = highs.solve(program)
    if answer.outcome is Outcome.INFEASIBLE:
        return math.inf
    if answer.outcome is Outcome.OPTIMAL:
        return float(answer.point @ program.cost)
    equal = program.row_lower == program.row_upper
    found = linprog(
        program.cost,
        *(program.matrix[~equal], program.row_upper[~equal]),
        *(program.matrix[equal], program.row_upper[equal]),
        bounds=np.column_stack([program.lower, program.upper]),
        method="highs-ds",
    )
    assert found.status in (0, 2), f"the oracle has no answer: {answer} {found.message}"
    return float(found.fun) if found.status == 0 else math.inf


def oracles(rules: gdpnet.RuleModel, instance: Instance) -> list[Oracle]:
    found = []
    shared, varying = rules.table.shared.numpy(), rules.table.varying.numpy()
    for bound, moving in zip(instance.bound, instance.varying, strict=True):
        coefficients = shared.copy()
        coefficients[varying] = moving
        found.append(Oracle(rules, coefficients, bound))
    return found


def is_bounded(rules: gdpnet.RuleModel) -> bool:
    columns = rules.data.columns
    return not any(c.integer or not math.isfinite(c.lower + c.upper) for c in columns)


class Setting:
    """A batch and its layouts under a plan."""

    def __init__(self, rules: gdpnet.RuleModel, yhat: np.ndarray, x: np.ndarray, plan: Plan):
        self.rules, self.x = rules, x
        engine = engine_of(rules)
        self.instance = Instance.of(rules, np.ascontiguousarray(x))
        patterns, self.which = np.unique(self.instance.active, axis=0, return_inverse=True)
        self.which = self.which.ravel().astype(np.int64)
        clusters = [plan.active(rules, p[engine.rule_clauses].tolist()) for p in patterns]
        self.products = max(
            (count_products(rules.data, c) for group in clusters for c in group), default=1
        )
        self.layouts: Sequence[Layout] = []
        if self.products <= MOST_PRODUCTS:
            self.layouts = [
                layout(rules.data, c, p.tolist()) for c, p in zip(clusters, patterns, strict=True)
            ]
        self.start = np.clip(yhat, rules.lower.numpy(), rules.upper.numpy())
        self.weights = np.linspace(1.0, 2.0, yhat.shape[1])

    def solve(
        self, engine: ExtendedEngine, threads: int = 1, detailed: bool = False
    ) -> ExtendedSolved:
        return engine.solve(
            *(self.instance, self.start, self.weights, self.which, self.layouts),
            threads=threads,
            detailed=detailed,
        )


def plans(rules: gdpnet.RuleModel) -> list[Plan]:
    merged = range(2, len(rules.names) + 1)
    return [Plan.cnf(), *(Plan.lexicographic(rules, k) for k in merged)]


def disagreements(setting: Setting, solved: ExtendedSolved) -> list[str]:
    """What the oracle says otherwise, sample by sample."""
    wrong = []
    for s, oracle in enumerate(oracles(setting.rules, setting.instance)):
        given = setting.layouts[setting.which[s]]
        value = oracle.value(given, setting.start[s], setting.weights)
        tolerance = 1e-7 * max(1.0, abs(value))
        if solved.outcome[s] == 2:
            wrong.append(f"sample {s} failed")
        elif (solved.outcome[s] == 1) != math.isinf(value):
            wrong.append(f"sample {s}: outcome {solved.outcome[s]}, value {value}")
        elif solved.outcome[s] == 0:
            if abs(solved.value[s] - value) > tolerance:
                wrong.append(f"sample {s}: value {solved.value[s]}, not {value}")
            own = oracle.value(given, setting.start[s], setting.weights, solved.y[s])
            if not own <= value + tolerance:
                wrong.append(f"sample {s}: y {solved.y[s]} has value {own}, not {value}")
    return wrong


def compared(setting: Setting) -> int:
    """Samples compared with the oracle; none where there are too many products."""
    if not setting.layouts:
        return 0
    solved = setting.solve(ExtendedEngine(setting.rules))
    assert disagreements(setting, solved) == []
    return len(setting.start)


@pytest.mark.parametrize(
    "problem", [p for p in PROBLEMS if is_bounded(p.rules())], ids=lambda p: p.name
)
def test_bank(problem: Problem) -> None:
    rules = problem.rules()
    x = np.zeros((len(problem.yhat), 0)) if problem.x is None else problem.x.numpy()
    assert sum(compared(Setting(rules, problem.yhat.numpy(), x, plan)) for plan in plans(rules))


def random_setting(seed: int) -> list[Setting]:
    rng = np.random.default_rng(seed)
    rules = random_rules(rng)
    if not is_bounded(rules):
        return []
    yhat = random_predictions(rng, len(rules.output_names))
    return [Setting(rules, yhat, np.zeros((len(yhat), 0)), plan) for plan in plans(rules)]


@pytest.mark.parametrize("seed", range(40))
def test_random_rules(seed: int) -> None:
    for setting in random_setting(seed):
        compared(setting)


def random_hull(
    rng: np.random.Generator, whole: bool = False, units: bool = False, most: int = 4
) -> gdpnet.RuleModel:
    """Rules whose products are not empty one by one, with coefficients that depend on x.

    Args:
        rng: source of randomness.
        whole: whole numbers everywhere, for ties and degenerate vertices.
        units: variables of very different size.
        most: outputs.
    """
    m = pyo.ConcreteModel()
    d, auxiliaries = int(rng.integers(2, most + 1)), int(rng.integers(0, 3))
    unit = 10.0 ** rng.integers(-2, 4, d + auxiliaries) if units else np.ones(d + auxiliaries)
    m.y = pyo.Var(range(d), bounds=lambda m, j: (-2 * unit[j], 3 * unit[j]))
    m.a = pyo.Var(range(auxiliaries), bounds=lambda m, j: (-unit[d + j], 2 * unit[d + j]))
    m.x = pyo.Param(range(2), mutable=True, initialize=1.0)
    variables = [v / u for v, u in zip([*m.y.values(), *m.a.values()], unit, strict=True)]

    def row(inside: np.ndarray, slack: float) -> object:
        a = rng.integers(-2, 3, len(variables)) if whole else rng.normal(size=len(variables))
        a = a * (rng.random(len(variables)) < 0.6)
        if not a.any():
            a[int(rng.integers(d))] = 1.0
        scale = 10.0 ** rng.integers(-6, 7) if rng.random() < 0.1 else 1.0
        left = sum(scale * float(c) * v for c, v in zip(a, variables, strict=True) if c)
        right = scale * (float(a @ inside) + slack)
        if rng.random() < 0.4:
            k = int(rng.integers(len(variables)))
            c = scale * float(rng.integers(-1, 2) if whole else 0.5 * rng.normal())
            left = left + c * (m.x[0] - 1.0) * variables[k]
        if rng.random() < 0.4:
            right = right + scale * (m.x[1] - 1.0)
        return left == right if slack == 0.0 and rng.random() < 0.2 else left <= right

    def inside() -> np.ndarray:
        low, high = [-2] * d + [-1] * auxiliaries, [3] * d + [2] * auxiliaries
        return rng.integers(low, high) * 1.0 if whole else rng.uniform(low, high)

    def slack() -> float:
        return float(rng.integers(0, 2)) if whole else float(rng.choice([0.0, rng.random()]))

    m.g = pyo.ConstraintList()
    for _ in range(rng.integers(0, 2)):
        m.g.add(row(inside(), 3.0))
    for r in range(rng.integers(2, 6)):
        terms = []
        for _ in range(rng.integers(1, 4)):
            point = inside()
            terms.append([row(point, slack()) for _ in range(rng.integers(1, 4))])
        m.add_component(f"rule{r}", Disjunction(expr=terms))
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.x])


def hull_settings(seed: int, size: int = 4, units: bool = False, most: int = 4) -> list[Setting]:
    rng = np.random.default_rng(seed)
    whole = bool(seed % 3 == 0)
    rules = random_hull(rng, whole, units, most)
    d = len(rules.output_names)
    yhat = rng.integers(-3, 5, (size, d)) * 1.0 if whole else rng.uniform(-3, 4, (size, d))
    if units:
        yhat *= rules.upper.numpy() / 3
    x = np.ones((size, 2)) if whole else rng.uniform(0.8, 1.2, (size, 2))
    return [Setting(rules, yhat, x, plan) for plan in plans(rules)]


@pytest.mark.parametrize("seed", range(60))
def test_random_hulls(seed: int) -> None:
    assert sum(compared(setting) for setting in hull_settings(seed))


@pytest.mark.parametrize("seed", range(30))
def test_variables_of_different_size(seed: int) -> None:
    assert sum(compared(setting) for setting in hull_settings(seed, units=True))


def test_random_hulls_are_hard_enough() -> None:
    fractional = 0
    for seed in range(60):
        for setting in hull_settings(seed)[:1]:
            weight = setting.solve(ExtendedEngine(setting.rules)).weight
            fractional += int(((weight > 1e-6) & (weight < 1 - 1e-6)).any(1).sum())
    assert fractional > 20


def test_weights_are_those_of_the_products() -> None:
    for seed in range(30):
        for setting in hull_settings(seed):
            if not setting.layouts:
                continue
            solved = setting.solve(ExtendedEngine(setting.rules))
            for s in np.flatnonzero(solved.outcome == 0):
                at = 0
                for part in setting.layouts[setting.which[s]]:
                    for block in part.blocks:
                        span = solved.weight[s, at : at + len(block.products)]
                        assert (span >= 0).all()
                        assert span.sum() == pytest.approx(1.0, abs=1e-9)
                        at += len(block.products)
                assert not solved.weight[s, at:].any()


def test_products_that_hold_are_those_of_the_rules() -> None:
    broken = 0
    for seed in range(40):
        for setting in hull_settings(seed, size=12)[:2]:
            rules = setting.rules
            if not setting.layouts or len(rules.data.columns) > rules.data.outputs:
                continue  # `satisfied` finds auxiliaries of its own
            solved = setting.solve(ExtendedEngine(rules))
            good = solved.outcome == 0
            holds = (solved.product != -1).all(1)
            expected = rules.satisfied(np.nan_to_num(solved.y), setting.x, tol=1e-6).numpy()
            assert (holds[good] == expected[good]).all()
            broken += int((~holds[good]).sum())
            for s in np.flatnonzero(good):
                blocks = setting.layouts[setting.which[s]][0].blocks
                assert (solved.product[s, len(blocks) :] == NO_BLOCK).all()
    assert broken > 20


# ---- derivatives ------------------------------------------------------------------------------

STEP = 1e-6


def directional(
    setting: Setting, engine: ExtendedEngine, move: tuple, sign: float
) -> ExtendedSolved:
    start, bound, varying = (sign * STEP * part for part in move)
    instance = setting.instance
    moved = instance._replace(bound=instance.bound + bound, varying=instance.varying + varying)
    return engine.solve(
        *(moved, setting.start + start, setting.weights, setting.which, setting.layouts), threads=1
    )


def check_derivatives(setting: Setting, rng: np.random.Generator) -> int:
    """Compares with central differences where both sides agree; how many samples were."""
    engine, instance = ExtendedEngine(setting.rules), setting.instance
    lower, upper = setting.rules.lower.numpy(), setting.rules.upper.numpy()
    inside = np.clip(setting.start, lower + 0.01, upper - 0.01)
    setting.start = inside
    solved = setting.solve(engine, detailed=True)
    gradient = rng.normal(size=inside.shape)
    found = solved.vjp(gradient)
    size = np.maximum(np.abs(instance.bound), 1e-3)
    pattern = instance.varying != 0.0
    move = (
        rng.normal(size=inside.shape),
        rng.normal(size=instance.bound.shape) * np.minimum(size, 1.0),
        rng.normal(size=instance.varying.shape) * pattern * np.minimum(np.abs(instance.varying), 1),
    )
    ahead = directional(setting, engine, move, 1.0)
    behind = directional(setting, engine, move, -1.0)
    good = (solved.outcome == 0) & (ahead.outcome == 0) & (behind.outcome == 0)
    with np.errstate(invalid="ignore"):
        right, left = (ahead.y - solved.y) / STEP, (solved.y - behind.y) / STEP
        good &= np.abs(right - left).max(1) < 1e-4 * np.maximum(1.0, np.abs(right).max(1))
    expected = (gradient * (right + left) / 2).sum(1)
    got = (found.yhat * move[0]).sum(1) + (found.bound * move[1]).sum(1)
    got += (found.varying * move[2]).sum((1, 2))
    close = np.abs(got - expected) <= 1e-4 * np.maximum(1.0, np.abs(expected))
    assert close[good].all(), (np.flatnonzero(good & ~close), got, expected)
    return int(good.sum())


def test_derivatives_are_those_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    compared_samples = 0
    for seed in range(80):
        if seed % 3 == 0:
            continue  # whole numbers: kinks everywhere
        for setting in hull_settings(seed, size=16):
            if setting.layouts:
                compared_samples += check_derivatives(setting, rng)
    assert compared_samples > 1000


def test_derivatives_need_the_bases() -> None:
    setting = hull_settings(1)[0]
    solved = setting.solve(ExtendedEngine(setting.rules))
    with pytest.raises(ValueError, match="detailed"):
        solved.vjp(np.ones_like(solved.y))


# ---- batches ----------------------------------------------------------------------------------


def test_threads_and_neighbours_do_not_matter() -> None:
    for seed in range(5):
        for setting in hull_settings(seed, size=40):
            if not setting.layouts:
                continue
            engine = ExtendedEngine(setting.rules)
            one, two = setting.solve(engine), setting.solve(engine, threads=2)
            for a, b in ((one.y, two.y), (one.value, two.value), (one.weight, two.weight)):
                assert np.array_equal(a, b, equal_nan=True)
            alone = engine.solve(
                setting.instance.take(np.array([7])),
                setting.start[7:8],
                setting.weights,
                setting.which[7:8],
                setting.layouts,
            )
            assert np.array_equal(alone.y, one.y[7:8], equal_nan=True)


def test_layouts_of_all_plans_in_one_call() -> None:
    settings = [s for s in hull_settings(4, size=6) if s.layouts]
    engine, first = ExtendedEngine(settings[0].rules), settings[0]
    each = [setting.solve(engine) for setting in settings]
    layouts = [given for setting in settings for given in setting.layouts]
    offset = np.cumsum([0, *(len(setting.layouts) for setting in settings)])
    together = engine.solve(
        first.instance.take(np.tile(np.arange(6), len(settings))),
        np.tile(first.start, (len(settings), 1)),
        first.weights,
        np.concatenate([s.which + at for s, at in zip(settings, offset[:-1], strict=True)]),
        layouts,
    )
    assert np.array_equal(together.value, np.concatenate([solved.value for solved in each]))
    assert np.array_equal(together.y, np.concatenate([solved.y for solved in each]), equal_nan=True)


def test_equal_layouts_are_compiled_once() -> None:
    setting = hull_settings(4)[0]
    engine = ExtendedEngine(setting.rules)
    before = setting.solve(engine)
    compiled = engine._compiled
    setting.layouts = [
        tuple(Part(p.columns, p.rows, p.blocks) for p in given) for given in setting.layouts
    ]
    assert np.array_equal(setting.solve(engine).value, before.value)
    assert engine._compiled is compiled


def test_engines_are_shared_by_threads() -> None:
    settings = [s for s in hull_settings(4, size=40) if s.layouts]
    alone = [setting.solve(ExtendedEngine(setting.rules)).value for setting in settings]
    engine = ExtendedEngine(settings[0].rules)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda s: s.solve(engine, threads=2).value, settings * 5))
    for value, expected in zip(together, alone * 5, strict=True):
        assert np.array_equal(value, expected)


def test_cooling_equals_highs() -> None:
    model = load_model("models/cooling")
    rules = model.build()
    x, _ = model.sample(200, "ood", 3)
    yhat = np.random.default_rng(0).uniform(-0.1, 1.1, (200, 3))
    for plan in (Plan.cnf(), Plan.lexicographic(rules, 3)):
        setting = Setting(rules, yhat, x.numpy(), plan)
        solved = setting.solve(ExtendedEngine(rules))
        weights = setting.weights
        p = gdpnet.project(rules, yhat, x, relaxation=plan, solver="highs", weights=weights)
        outside = np.abs(setting.start - yhat) @ weights
        assert np.allclose(solved.value + outside, p.value.numpy(), atol=1e-9)


def two_parts() -> tuple[gdpnet.RuleModel, Layout]:
    """Four outputs in two parts, and one in no row."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(5), bounds=(0, 10))
    m.one = Disjunction(expr=[[m.y[0] + m.y[1] <= 3], [m.y[0] >= 8]])
    m.two = Disjunction(expr=[[m.y[0] >= 4], [m.y[1] >= 6]])
    m.three = Disjunction(expr=[[m.y[2] <= 1, m.y[3] <= 1], [m.y[2] >= 9]])
    m.four = pyo.Constraint(expr=m.y[2] + m.y[3] >= 4)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    given = layout(rules.data, [(0,), (1,), (2,)], [True] * 3)
    assert [part.columns for part in given] == [(0, 1), (2, 3)]
    return rules, given


def test_parts_are_solved_one_by_one() -> None:
    rules, given = two_parts()
    start = np.random.default_rng(0).uniform(0, 10, (50, 5))
    instance = Instance.of(rules, np.zeros((50, 0)))
    engine = ExtendedEngine(rules)
    zeros = np.zeros(50, dtype=np.int64)
    solved = engine.solve(instance, start, np.ones(5), zeros, [given], detailed=True)
    for s, oracle in enumerate(oracles(rules, instance)):
        assert solved.value[s] == pytest.approx(oracle.value(given, start[s], np.ones(5)), abs=1e-7)
    assert np.array_equal(solved.y[:, 4], start[:, 4])
    gradient = np.random.default_rng(1).normal(size=(50, 5))
    moved = engine.solve(instance, start + 1e-6, np.ones(5), zeros, [given])
    back = engine.solve(instance, start - 1e-6, np.ones(5), zeros, [given])
    slope = (gradient * (moved.y - back.y)).sum(1) / 2e-6
    smooth = np.abs(moved.y + back.y - 2 * solved.y).max(1) < 1e-9
    assert smooth.sum() > 40
    assert np.allclose(solved.vjp(gradient).yhat.sum(1)[smooth], slope[smooth], atol=1e-6)


def test_a_block_without_products_is_a_conflict() -> None:
    rules, given = two_parts()
    part = Part(given[0].columns, (), (MergedBlock((0,), ()), given[0].blocks[1]))
    solved = ExtendedEngine(rules).solve(
        Instance.of(rules, np.zeros((1, 0))),
        np.full((1, 5), 5.0), np.ones(5), np.zeros(1, dtype=np.int64), [(part, *given[1:])],
    )  # fmt: skip
    assert solved.outcome.tolist() == [1]
    assert np.isinf(solved.value).all()
    assert np.isnan(solved.y).all()


def test_only_small_programs_are_accepted() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(10), bounds=(0, 1))
    m.r = Disjunction(range(10), rule=lambda m, i: [[m.y[i] <= 0.2], [m.y[i] >= 0.8]])
    m.together = pyo.Constraint(expr=sum(m.y.values()) <= 9)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    engine, names = ExtendedEngine(rules), range(10)
    assert engine.accepts(layout(rules.data, [(r,) for r in names], [True] * 10))
    assert engine.accepts(layout(rules.data, [tuple(names)], [True] * 10))  # one block: any number
    halves = [tuple(names[:5]), tuple(names[5:])]
    assert not engine.accepts(layout(rules.data, halves, [True] * 10))


def test_memory_does_not_grow_with_the_programs() -> None:
    setting = hull_settings(4, size=4)[0]
    engine = ExtendedEngine(setting.rules)
    setting.solve(engine)

    def peak(size: int) -> int:
        pick = np.zeros(size, dtype=np.int64)
        instance, start = setting.instance.take(pick), setting.start[pick]
        tracemalloc.start()
        engine.solve(instance, start, setting.weights, setting.which[pick], setting.layouts, 1)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    products = setting.solve(engine).weight.shape[1]
    results = 8 * (setting.start.shape[1] + products + 3) + 4 * len(setting.layouts[0][0].blocks)
    assert peak(20_000) - peak(10_000) < 1.1 * 10_000 * results
