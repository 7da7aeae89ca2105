"""Which rules to merge: the planner beside other orders at the same budget of products.

    python benchmarks/plans.py [--quick] [--out FILE]

Plans are made from samples of one seed and measured on samples of another. Every competitor merges
its first rules as far as the budget allows, then goes on with the rest in a cluster of its own, and
so on: the whole budget is there for all of them. It is counted in the same way for all: products of
the merged clusters that are not empty, in the worst pattern of active rules of the first samples.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import torch
from _measure import Report
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Plan, Status
from gdpnet.plan._sampled import Sampled
from gdpnet.study import load_model

MODELS = Path(__file__).parents[1] / "models"
report = Report()
BUDGETS = (4, 8, 16, 32, 64)
SAMPLES = 200
ORDERS = 10  # random ones


@dataclass(frozen=True)
class Problem:
    """A rule model with samples to plan with and others to measure on, as (x, yhat)."""

    name: str
    rules: gdpnet.RuleModel
    planned: tuple[np.ndarray, np.ndarray]
    measured: tuple[np.ndarray, np.ndarray]


def cooling(split: str) -> Problem:
    model = load_model(MODELS / "cooling")

    def samples(seed: int) -> tuple[np.ndarray, np.ndarray]:
        x = model.sample(SAMPLES, split=split, seed=seed)[0].numpy()
        return x, np.random.default_rng(seed).uniform(0, 1, (SAMPLES, 3))

    return Problem(f"cooling {split}", model.build(), samples(0), samples(1))


def stress(k: int) -> Problem:
    model = load_model(MODELS / "stress")

    def samples(seed: int) -> tuple[np.ndarray, np.ndarray]:
        x = model.module.sample(SAMPLES, split="iid", seed=seed, k=k)[0].numpy()
        return x, np.random.default_rng([seed, k]).uniform(0, 1, (SAMPLES, 3))

    return Problem(f"stress k={k}", model.build(k=k), samples(0), samples(1))


def random_problem(seed: int, rules: int = 9, d: int = 6) -> Problem:
    """Rules of 2 or 3 disjuncts of 1 or 2 rows over 2 or 3 outputs each; one point satisfies all.

    Rules have subjects of different popularity, so some pairs of them meet in all of their outputs
    and others only through the global row.
    """
    rng = np.random.default_rng(seed)
    inside = rng.uniform(0.2, 0.8, d)
    popular = rng.dirichlet(np.full(d, 1.5))
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.y.values()) <= float(inside.sum() + 0.5))
    for r in range(rules):
        subject = rng.choice(d, size=rng.integers(2, 4), replace=False, p=popular)
        terms = []
        for k in range(int(rng.integers(2, 4))):
            centre = inside if k == 0 else rng.uniform(0, 1, d)
            rows = []
            for _ in range(int(rng.integers(1, 3))):
                a = rng.normal(size=len(subject))
                b = float(a @ centre[subject]) - 0.02
                rows.append(
                    sum(float(c) * m.y[int(j)] for c, j in zip(a, subject, strict=True)) <= b
                )
            terms.append(rows)
        # The disjunct that holds at the common point must not always come first.
        m.add_component(
            f"rule{r}", Disjunction(expr=[terms[i] for i in rng.permutation(len(terms))])
        )

    def samples(which: int) -> tuple[np.ndarray, np.ndarray]:
        yhat = np.random.default_rng([seed, which]).uniform(0, 1, (SAMPLES, d))
        return np.zeros((SAMPLES, 0)), yhat

    return Problem(f"random {seed}", gdpnet.RuleModel(m, outputs=[m.y]), samples(0), samples(1))


# ---- competitors --------------------------------------------------------------------------------


def worst_products(sampled: Sampled, clusters: Sequence[Sequence[int]], most: int) -> int:
    """Products of the merged clusters that are not empty, in the worst pattern."""
    merged = [sampled.products(cluster, most) for cluster in clusters if len(cluster) > 1]
    return int(sum(merged).max()) if merged else 0


def in_order(sampled: Sampled, order: Sequence[int], budget: int) -> Plan:
    """Merge the longest beginning of the order that fits, then the longest of the rest, ..."""
    clusters: list[list[int]] = []
    rest = list(order)
    while len(rest) > 1:
        for size in range(len(rest), 0, -1):
            if worst_products(sampled, [*clusters, rest[:size]], budget) <= budget:
                break
        clusters.append(rest[:size])
        rest = rest[size:]
    names = sampled.rules.names
    return Plan(tuple(tuple(names[r] for r in c) for c in clusters if len(c) > 1))


# ---- measuring ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """Share of samples that satisfy all rules, mean gap to the DNF, share of CNF's gap closed."""

    satisfied: float
    gap: float
    closed: float

    def __str__(self) -> str:
        return f"{100 * self.closed + 0.0:.0f} %, {self.gap:.4f}, {100 * self.satisfied:.1f} %"


class Judge:
    """Measures plans of a problem on its second samples."""

    def __init__(self, problem: Problem) -> None:
        self.rules = problem.rules
        x, yhat = problem.measured
        self.x = torch.from_numpy(x) if problem.rules.input_names else None
        self.yhat = torch.from_numpy(yhat)
        exact = gdpnet.project(self.rules, self.yhat, self.x)
        self.possible = exact.distance.isfinite()
        self.exact = exact.distance
        self.kept: dict[Plan, Measured] = {}
        self.cnf = 0.0
        self.cnf = self.measure(Plan.cnf()).gap

    def measure(self, plan: Plan) -> Measured:
        if plan not in self.kept:
            p = gdpnet.project(self.rules, self.yhat, self.x, relaxation=plan)
            gap = (self.exact - p.value)[self.possible]
            assert gap.min() > -1e-7, "a relaxation's value is above the distance"
            satisfied = (p.status <= Status.PROJECTED)[self.possible].double().mean()
            mean = float(gap.mean())
            closed = 1.0 - mean / self.cnf if self.cnf > 1e-9 else 1.0
            self.kept[plan] = Measured(float(satisfied), mean, closed)
        return self.kept[plan]


def compare(problem: Problem, budgets: Sequence[int]) -> list[dict[str, Measured]]:
    """Print a problem's table; one row a budget, up to the first at which all rules fit."""
    rules = problem.rules
    count = len(rules.names)
    sampled, judge = Sampled(rules, *problem.planned), Judge(problem)
    whole = int(sampled.products(range(count), 10_000).max())
    x, yhat = problem.planned
    report.say(
        f"\n### {problem.name}: {count} rules, {whole} products of all of them are not empty; "
        f"CNF {judge.cnf:.4f} below the DNF, CSAT {100 * judge.measure(Plan.cnf()).satisfied:.1f} %"
    )
    report.say(
        "\n| budget | planner | lexicographic | random, mean | random, worst | plan | seconds |"
    )
    report.say("|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    orders = [rng.permutation(count).tolist() for _ in range(ORDERS)]
    rows = []
    for budget in budgets:
        start = time.perf_counter()
        plan = gdpnet.plan.choose(rules, budget, yhat, x if rules.input_names else None)
        taken = time.perf_counter() - start
        if plan.exact:
            report.say(f"| {budget} | exact | | | | all rules | {taken:.1f} |")
            break
        others = [judge.measure(in_order(sampled, order, budget)) for order in orders]
        row = {
            "planner": judge.measure(plan),
            "lexicographic": judge.measure(in_order(sampled, range(count), budget)),
            "mean": Measured(
                *(float(np.mean(column)) for column in zip(*map(astuple, others), strict=True))
            ),
            "worst": min(others, key=lambda m: m.closed),
        }
        rows.append(row)
        cells = " | ".join(str(measured) for measured in row.values())
        report.say(f"| {budget} | {cells} | {short(plan, rules)} | {taken:.1f} |")
    return rows


def short(plan: Plan, rules: gdpnet.RuleModel) -> str:
    """A plan by the numbers of its rules."""
    clusters = ["+".join(str(r) for r in cluster) for cluster in plan.indices(rules)]
    return ", ".join(clusters) or "none"


def summarise(rows: list[dict[str, Measured]]) -> None:
    """How often and by how much the planner is ahead, where the budget leaves a choice."""
    report.say(f"\n### All {len(rows)} cases in which not all rules fit")
    report.say("\n| | gap closed, mean | CSAT, mean | planner tighter / same / looser |")
    report.say("|---|---|---|---|")
    for name in ("planner", "lexicographic", "mean", "worst"):
        ahead = [row["planner"].closed - row[name].closed for row in rows]
        won, lost = sum(a > 1e-6 for a in ahead), sum(a < -1e-6 for a in ahead)
        closed = np.mean([row[name].closed for row in rows])
        satisfied = np.mean([row[name].satisfied for row in rows])
        title = {"mean": "random, mean", "worst": "random, worst"}.get(name, name)
        score = "" if name == "planner" else f"{won} / {len(rows) - won - lost} / {lost}"
        report.say(f"| {title} | {100 * closed:.0f} % | {100 * satisfied:.1f} % | {score} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer problems and budgets")
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    problems: list[Callable[[], Problem]] = [
        lambda: cooling("iid"),
        lambda: cooling("ood"),
        *(lambda k=k: stress(k) for k in (6, 7, 8, 9, 10)),
        *(lambda seed=seed: random_problem(seed) for seed in range(3)),
    ]
    budgets: Sequence[int] = BUDGETS
    if arguments.quick:
        problems = [problems[1], problems[4], lambda: random_problem(2, rules=6)]
        budgets = (4, 8)
    report.say(
        "Cells, on samples not planned with: share of the CNF's gap to the DNF that is closed, mean"
    )
    report.say("gap left, CSAT.")
    rows = [row for build in problems for row in compare(build(), budgets)]
    summarise(rows)
    report.write(arguments.out)


if __name__ == "__main__":
    main()
