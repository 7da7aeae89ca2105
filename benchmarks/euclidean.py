"""The Euclidean norm on linear rules, beside mixed-integer quadratic programs.

    python benchmarks/euclidean.py [--quick] [--publish]

Random rules in a box, `rules x disjuncts x rows`: d outputs, predictions within the box and beyond.
"Through the centre" are rules of two half-spaces whose gap crosses the middle of the box, so that
nearly every prediction breaks many. All solve the same 256 predictions: gdpnet as one batch, DAQP
and Gurobi one after the other, their program kept, its linear cost changed in place, big-M from the
box. Processor time, one thread each; what it takes to build programs and rules is told apart.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import daqp
import gurobipy
import numpy as np
import pyomo.environ as pyo
import torch
from _measure import seconds
from _results import Results, parsed, parser
from pyomo.gdp import Disjunction

import gdpnet

BOX = 3.0
BATCH = 256
REPEATS = 9
SMALL = 1e-3  # curvature that DAQP wants of binaries; c (z^2 - z) costs nothing at 0 and 1


@dataclass(frozen=True)
class Case:
    """What a table's line is about.

    Attributes:
        d: outputs.
        rules: how many.
        disjuncts: of each.
        rows: of each of those.
        central: two half-spaces with a gap through the middle.
    """

    d: int
    rules: int
    disjuncts: int
    rows: int
    central: bool = False

    @property
    def name(self) -> str:
        told = f"d={self.d}, {self.rules}x{self.disjuncts}x{self.rows}"
        return told + (" through the centre" if self.central else "")

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows `rules x disjuncts x rows x d` of length 1, and right sides."""
        rng = np.random.default_rng([self.d, self.rules, self.disjuncts, self.rows])
        a = rng.normal(size=(self.rules, self.disjuncts, self.rows, self.d))
        a /= np.linalg.norm(a, axis=3, keepdims=True)
        if not self.central:
            return a, rng.uniform(-0.8, 0.2, a.shape[:3])
        a[:, 1] = -a[:, 0]
        return a, np.zeros(a.shape[:3]) - rng.uniform(0.3, 0.9, (self.rules, 1, 1))


CASES = (
    Case(3, 2, 2, 1),
    Case(3, 10, 2, 1),
    Case(8, 10, 2, 1, central=True),
    Case(20, 10, 2, 1, central=True),
    Case(8, 6, 3, 2),
    Case(20, 4, 3, 5),
)


def build_rules(case: Case) -> gdpnet.RuleModel:
    """The rules, with what a first projection prepares."""
    a, b = case.data()
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(case.d), bounds=(-BOX, BOX))

    def row(r: int, k: int, i: int) -> Any:
        return sum(float(a[r, k, i, j]) * m.y[j] for j in range(case.d)) <= float(b[r, k, i])

    m.rules = Disjunction(
        range(case.rules),
        rule=lambda _, r: [[row(r, k, i) for i in range(case.rows)] for k in range(case.disjuncts)],
    )
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    gdpnet.project(rules, np.zeros((1, case.d)), norm="l2")
    return rules


def big_m(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows over (y, binaries) between lower and upper ends, and which columns are binary.

    A rule of two disjuncts has one binary: 1 for the first, 0 for the second.
    """
    a, b = case.data()
    two = case.disjuncts == 2
    d, each = case.d, 1 if two else case.disjuncts
    binaries = case.rules * each
    rows, ends = [], []
    for r in range(case.rules):
        for k in range(case.disjuncts):
            for i in range(case.rows):
                most = BOX * np.abs(a[r, k, i]).sum() - b[r, k, i]
                row = np.zeros(d + binaries)
                second = two and k == 1
                row[:d], row[d + r * each + (0 if two else k)] = (
                    a[r, k, i],
                    -most if second else most,
                )
                rows.append(row)
                ends.append(b[r, k, i] + (0.0 if second else most))
    lower = [-1e30] * len(rows)
    for r in range(0 if two else case.rules):
        row = np.zeros(d + binaries)
        row[d + r * each : d + (r + 1) * each] = 1.0
        rows.append(row)
        lower.append(1.0)
        ends.append(1e30)
    return np.array(rows), np.array(lower), np.array(ends), np.arange(d + binaries) >= d


def by_daqp(case: Case) -> Callable[[np.ndarray], np.ndarray]:
    """DAQP's program of a case, kept: outputs from a prediction."""
    rows, low, high, binary = big_m(case)
    lower = np.concatenate([np.where(binary, 0.0, -BOX), low])
    upper = np.concatenate([np.where(binary, 1.0, BOX), high])
    sense = np.concatenate([np.where(binary, 16, 0), np.zeros(len(rows))]).astype(np.int32)
    cost = np.where(binary, -0.5 * SMALL, 0.0)
    model = daqp.Model()
    model.setup(np.diag(np.where(binary, SMALL, 1.0)), cost, rows, upper, lower, sense)

    def solve(yhat: np.ndarray) -> np.ndarray:
        cost[: case.d] = -yhat
        # Without its flags it would start from where the last search ended, and go wrong.
        model.update(f=cost, sense=sense)
        found, _, flag, _ = model.solve()
        if flag <= 0:
            raise RuntimeError(f"DAQP: exit flag {flag}")
        return np.asarray(found[: case.d])

    return solve


def by_gurobi(case: Case) -> Callable[[np.ndarray], np.ndarray]:
    """Gurobi's program of a case, kept: outputs from a prediction."""
    rows, low, high, binary = big_m(case)
    env = gurobipy.Env(params={"OutputFlag": 0})
    model = gurobipy.Model(env=env)
    model.Params.Threads = 1
    model.Params.MIPGap = model.Params.MIPGapAbs = 1e-9
    types = ["B" if is_binary else "C" for is_binary in binary]
    z = model.addMVar(
        len(binary), lb=np.where(binary, 0, -BOX), ub=np.where(binary, 1, BOX), vtype=types
    )
    model.addConstr(rows @ z <= high)
    one = low > -1e29
    if one.any():
        model.addConstr(rows[one] @ z >= low[one])
    y = z[: case.d]
    model.setObjective(y @ y)
    model.update()

    def solve(yhat: np.ndarray) -> np.ndarray:
        y.Obj = -2.0 * yhat
        model.reset()
        model.optimize()
        if model.Status != gurobipy.GRB.OPTIMAL:
            raise RuntimeError(f"Gurobi: status {model.Status}")
        return np.asarray(y.X)

    return solve


def one_by_one(solve: Callable[[np.ndarray], np.ndarray], yhat: np.ndarray) -> tuple:
    """Seconds a prediction, over the batch as a whole, and the outputs."""
    solve(yhat[0])
    started = time.process_time()
    found = np.array([solve(one) for one in yhat])
    return (time.process_time() - started) / len(yhat), found


def measure(case: Case, results: Results, quick: bool) -> None:
    rng = np.random.default_rng(1)
    yhat = rng.normal(size=(BATCH, case.d))
    started = time.process_time()
    rules = build_rules(case)
    building = time.process_time() - started
    given = torch.from_numpy(yhat)
    layer = gdpnet.ProjectionLayer(rules, norm="l2", threads=1)
    taken = seconds(lambda: layer.project(given), REPEATS, clock=time.process_time) / BATCH
    p = layer.project(given)
    row: dict[str, Any] = {
        "case": case.name,
        "broken": float((p.status == gdpnet.Status.PROJECTED).double().mean()),
        "nodes": float(p.info.nodes.double().mean()),
        "seconds": taken,
        "build": building,
    }
    # Gurobi and DAQP take long enough for one look; what disagrees is told.
    for name, make, count in (
        ("daqp", by_daqp, BATCH),
        ("gurobi", by_gurobi, 16 if quick else BATCH),
    ):
        started = time.process_time()
        solve = make(case)
        row[f"{name}_build"] = time.process_time() - started
        times = []
        for _ in range(1 if quick or name == "gurobi" else 3):
            each, found = one_by_one(solve, yhat[:count])
            times.append(each)
        row[f"{name}_seconds"] = statistics.median(times)
        theirs = ((found - yhat[:count]) ** 2).sum(1)
        ours = p.value.numpy()[:count]
        row[f"{name}_nearer"] = float(np.maximum(ours - theirs, 0.0).max())
        row[f"{name}_farther"] = float(np.maximum(theirs - ours, 0.0).max())
    results.add("cases", **row)


def main() -> None:
    arguments = parsed(parser(__doc__, "16 predictions for Gurobi, one look at DAQP"))
    torch.set_num_threads(1)
    results = Results("euclidean", arguments, ("daqp", "gurobipy"))
    for case in CASES:
        measure(case, results, arguments.quick)
    results.write()


if __name__ == "__main__":
    main()
