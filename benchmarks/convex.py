"""Projections onto unions of ellipsoids: the exact engine beside SCIP and Gurobi, in one run.

    python benchmarks/convex.py [--quick] [--publish]

Every rule says that the outputs lie in one of three ellipsoids; some choice always has a point. The
solvers get the same rules as a mixed-integer quadratic program, with a binary for each ellipsoid:
`bigm` relaxes its row where it is not chosen, by the least number that does; `hull` is the exact
conic hull. Their models are built beforehand, and only solving is timed, one thread each, medians
over predictions; the engine's time is a batch's, `gdpnet.project` and all, divided by its size.
Answers are compared. Gurobi needs a licence for the larger models; without one, or without
pyscipopt, the rows are left out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo
import torch
from _results import Results, parsed, parser
from pyomo.gdp import Disjunction

import gdpnet

REACH = 5.0
CASES = [(2, 2), (4, 2), (2, 3), (4, 3), (2, 8), (4, 8)]  # rules, outputs
BATCH = 256
GAP = 1e-9  # that the solvers may leave

Ellipsoid = tuple[np.ndarray, np.ndarray]  # matrix and centre: |matrix (y - centre)| <= 1


def ellipsoids(rules: int, d: int, seed: int = 0) -> list[list[Ellipsoid]]:
    """Three for each rule; the k-th ones of all rules share a point."""
    rng = np.random.default_rng(seed)
    shared = rng.uniform(-0.6 * REACH, 0.6 * REACH, (3, d))

    def around(point: np.ndarray) -> Ellipsoid:
        basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
        matrix = basis / rng.uniform(0.7, 2.0, d)[:, None]
        step = rng.normal(size=d)
        return matrix, point - 0.8 * rng.random() * step / np.linalg.norm(matrix @ step)

    return [[around(point) for point in shared] for _ in range(rules)]


def written(case: list[list[Ellipsoid]], d: int) -> gdpnet.RuleModel:
    """The rules, as a user writes them."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(d), bounds=(-REACH, REACH))

    def inside(matrix: np.ndarray, centre: np.ndarray) -> Any:
        rows = [
            sum(float(a) * (m.y[j] - float(centre[j])) for j, a in enumerate(row)) for row in matrix
        ]
        return sum(row**2 for row in rows) <= 1.0

    for r, disjuncts in enumerate(case):
        m.add_component(f"rule{r}", Disjunction(expr=[[inside(*e)] for e in disjuncts], xor=False))
    return gdpnet.RuleModel(m, outputs=[m.y])


def largest(matrix: np.ndarray, centre: np.ndarray) -> float:
    """No more than this is `|matrix (y - centre)|^2` in the box."""
    return float(((np.abs(matrix) @ (REACH + np.abs(centre))) ** 2).sum())


# ---- peers: a function that builds a model, and returns one that solves it ----------------------

Solve = Callable[[], tuple[float, float]]  # seconds, squared distance


def gurobi(case: list[list[Ellipsoid]], yhat: np.ndarray, form: str) -> Solve:
    import gurobipy as gp

    environment = gp.Env(params={"OutputFlag": 0})
    model = gp.Model(env=environment)
    model.Params.Threads, model.Params.MIPGap, model.Params.MIPGapAbs = 1, GAP, GAP
    d = len(yhat)
    y = model.addMVar(d, lb=-REACH, ub=REACH)
    for disjuncts in case:
        on = model.addMVar(len(disjuncts), vtype="B")
        model.addConstr(on.sum() == 1)
        copies = []
        for k, (matrix, centre) in enumerate(disjuncts):
            if form == "bigm":
                t = model.addMVar(d, lb=-gp.GRB.INFINITY)
                model.addConstr(t == matrix @ y - matrix @ centre)
                most = largest(matrix, centre)
                model.addConstr(t @ t <= 1.0 + (most - 1.0) * (1.0 - on[k]))
                continue
            copy = model.addMVar(d, lb=-REACH, ub=REACH)
            copies.append(copy)
            model.addConstr(copy <= REACH * on[k])
            model.addConstr(copy >= -REACH * on[k])
            t = model.addMVar(d, lb=-gp.GRB.INFINITY)
            model.addConstr(t == matrix @ copy - (matrix @ centre) * on[k])
            model.addConstr(t @ t <= on[k] * on[k])
        if copies:
            model.addConstr(y == sum(copies))
    model.setObjective((y - yhat) @ (y - yhat))
    model.update()

    def solve() -> tuple[float, float]:
        began = time.perf_counter()
        model.optimize()
        return time.perf_counter() - began, model.ObjVal

    return solve


def scip(case: list[list[Ellipsoid]], yhat: np.ndarray, form: str) -> Solve:
    import pyscipopt as ps

    model = ps.Model()
    model.hideOutput()
    model.setParam("limits/gap", GAP)
    d = len(yhat)
    y = [model.addVar(lb=-REACH, ub=REACH) for _ in range(d)]

    def squares(matrix: np.ndarray, point: list[Any], centre: np.ndarray, share: Any) -> Any:
        rows = [
            ps.quicksum(float(a) * (point[j] - float(centre[j]) * share) for j, a in enumerate(row))
            for row in matrix
        ]
        return ps.quicksum(row * row for row in rows)

    for disjuncts in case:
        on = [model.addVar(vtype="B") for _ in disjuncts]
        model.addCons(ps.quicksum(on) == 1)
        copies = []
        for k, (matrix, centre) in enumerate(disjuncts):
            if form == "bigm":
                most = largest(matrix, centre)
                inside = squares(matrix, y, centre, 1.0)
                model.addCons(inside <= 1.0 + (most - 1.0) * (1.0 - on[k]))
                continue
            copy = [model.addVar(lb=-REACH, ub=REACH) for _ in range(d)]
            copies.append(copy)
            for v in copy:
                model.addCons(v <= REACH * on[k])
                model.addCons(v >= -REACH * on[k])
            model.addCons(squares(matrix, copy, centre, on[k]) <= on[k] * on[k])
        for j in range(d) if copies else ():
            model.addCons(y[j] == ps.quicksum(copy[j] for copy in copies))
    away = model.addVar(lb=0.0, ub=None)
    total = ps.quicksum((y[j] - float(yhat[j])) * (y[j] - float(yhat[j])) for j in range(d))
    model.addCons(total <= away)
    model.setObjective(away)

    def solve() -> tuple[float, float]:
        began = time.perf_counter()
        model.optimize()
        return time.perf_counter() - began, model.getObjVal()

    return solve


PEERS = {"gurobi": gurobi, "scip": scip}


def peer_rows(
    case: list[list[Ellipsoid]], yhat: np.ndarray, ours: np.ndarray, seconds: float
) -> Iterator[dict[str, Any]]:
    """A row for each peer and form; what cannot run is told and left out."""
    for name, build in PEERS.items():
        for form in ("bigm", "hull"):
            try:
                found = [build(case, y, form)() for y in yhat]
            except Exception as error:  # no licence for this size, not installed
                print(f"  {name} {form}: {type(error).__name__}: {error}"[:150])
                continue
            times, values = zip(*found, strict=True)
            taken = statistics.median(times)
            off = np.abs(np.array(values) - ours) / np.maximum(1.0, ours)
            yield {
                "peer": f"{name} {form}",
                "peer_ms": 1e3 * taken,
                "times": taken / seconds,
                "apart": float(off.max()),
            }


def main() -> None:
    arguments = parsed(parser(__doc__))
    results = Results("convex", arguments, packages=("pyscipopt", "gurobipy"))
    torch.set_num_threads(1)
    few = 2 if arguments.quick else 7
    for count, d in CASES[::2] if arguments.quick else CASES:
        case = ellipsoids(count, d)
        rules = written(case, d)
        yhat = np.random.default_rng(1).uniform(-REACH, REACH, (BATCH, d))
        batch = torch.from_numpy(yhat)
        gdpnet.project(rules, batch, norm="l2", threads=1)
        times = []
        for _ in range(5 if arguments.quick else 15):
            began = time.perf_counter()
            p = gdpnet.project(rules, batch, norm="l2", threads=1)
            times.append(time.perf_counter() - began)
        seconds = statistics.median(times) / BATCH
        assert set(p.status.tolist()) <= {gdpnet.Status.SATISFIED, gdpnet.Status.PROJECTED}
        moved = np.flatnonzero((p.status == gdpnet.Status.PROJECTED).numpy())[:few]
        ours = p.value.numpy()[moved]
        for row in peer_rows(case, yhat[moved], ours, seconds):
            results.add(rules=count, d=d, batch=BATCH, us=1e6 * seconds, **row)
    results.write()


if __name__ == "__main__":
    main()
