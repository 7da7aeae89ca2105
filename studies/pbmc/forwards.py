"""How often other ways to solve the same program break the rules.

python studies/pbmc/forwards.py [FOLDER]    (GDPNET_DATA as for study.py)

The base networks' predictions for the test cells without contradictory rules are projected by the
DNF and by CNF: at a vertex, at the regularised point, and by HiGHS' interior-point method without
crossover. Also a uniform prediction, which is what an untrained classifier gives. A second table
tells for all cells, all rule sets and two values of rho how often CNF's vertex breaks a rule, and
how often its value lies below the DNF's.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import highspy
import torch
from _study import SEEDS, Study

import gdpnet
from gdpnet.lp import highs

# Products of the active rules' disjuncts beyond which the DNF is not written out.
MOST = 512


def interior(call: Callable[[], torch.Tensor]) -> torch.Tensor:
    """A projection with HiGHS' interior-point method in place of its simplex."""
    simplex = highs.new_solver

    def without_crossover(*arguments: object, **keywords: object) -> highspy.Highs:
        solver = simplex(*arguments, **keywords)
        options = {
            "solver": "ipm",
            "run_crossover": "off",
            "presolve": "off",
            "primal_feasibility_tolerance": 1e-7,
            "dual_feasibility_tolerance": 1e-7,
        }
        for option, value in options.items():
            solver.setOptionValue(option, value)
        return solver

    highs.new_solver = without_crossover
    try:
        return call()
    finally:
        highs.new_solver = simplex


def main() -> None:
    warnings.simplefilter("ignore")
    study = Study(sys.argv[1] if len(sys.argv) > 1 else "build/pbmc-C")
    rules, data = study.task.rules, study.task.test("test")
    markers = study.model.markers().markers
    active = rules.active(data.rule_x)
    width = torch.tensor([float(len(marker.classes)) for marker in markers])
    products = torch.where(active, width, 1.0).prod(1)
    keep = study.task.conflict_free("test") & (products <= MOST)
    x = data.rule_x[keep]
    told = f"{int(keep.sum())} of {len(data)} test cells (conflict-free, at most {MOST} products)"
    sys.stdout.write(f"{told}\n\n")
    qp = gdpnet.QP
    ways: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "DNF, vertex": lambda yhat: gdpnet.project(rules, yhat, x).y,
        "DNF, regularised, eps 1e-3": lambda yhat: (
            gdpnet.project(rules, yhat, x, gradient=qp(1e-3), forward="qp").y
        ),
        "DNF, regularised, eps 1e-2": lambda yhat: (
            gdpnet.project(rules, yhat, x, gradient=qp(1e-2), forward="qp").y
        ),
        "DNF, regularised, eps 1e-1": lambda yhat: (
            gdpnet.project(rules, yhat, x, gradient=qp(1e-1), forward="qp").y
        ),
        "DNF, interior point": lambda yhat: interior(
            lambda: gdpnet.project(rules, yhat, x, solver="highs", threads=1).y
        ),
        "CNF, vertex": lambda yhat: gdpnet.project(rules, yhat, x, relaxation="cnf").y,
        "CNF, regularised, eps 1e-2": lambda yhat: (
            gdpnet.project(rules, yhat, x, relaxation="cnf", gradient=qp(1e-2), forward="qp").y
        ),
        "CNF, interior point": lambda yhat: interior(
            lambda: gdpnet.project(rules, yhat, x, relaxation="cnf", solver="highs", threads=1).y
        ),
    }
    sizes = [*study.sizes]
    heads = " | ".join([*(f"n = {size}" for size in sizes), "uniform"])
    sys.stdout.write(f"| forward | {heads} |\n|---|{'---|' * (len(sizes) + 1)}\n")
    uniform = torch.full((len(x), 8), 1 / 8, dtype=torch.float64)
    for name, way in ways.items():
        entries = []
        for size in sizes:
            shares = []
            for seed in SEEDS:
                y = way(study.predicted("base", size, seed)[keep])
                shares.append([_satisfied(rules, x, y, tol) for tol in (1e-6, 1e-3)])
            tight, loose = torch.tensor(shares).mean(0).tolist()
            entries.append(f"{tight:.3f} / {loose:.3f}")
        y = way(uniform)
        tight, loose = (_satisfied(rules, x, y, tol) for tol in (1e-6, 1e-3))
        entries.append(f"{tight:.3f} / {loose:.3f}")
        sys.stdout.write(f"| {name} | {' | '.join(entries)} |\n")
        sys.stdout.flush()
    relaxations(study)


def relaxations(study: Study) -> None:
    """CNF against DNF on predictions of several kinds."""
    kinds = ("dirichlet", "uniform", "certain")
    heads = " | ".join(kind for kind in kinds)
    sys.stdout.write(f"\n| rules | conflict-free | {heads} |\n|---|---|---|---|---|\n")
    adata = study.model.cells()
    for name in study.model.RULE_SETS:
        for rho in (0.5, 0.6):
            markers = study.model.markers(name, rho)
            rules, x = markers.rules, torch.from_numpy(markers.expression(adata))
            entries = []
            for kind in kinds:
                yhat = _predictions(kind, len(x))
                dnf = gdpnet.project(rules, yhat, x)
                cnf = gdpnet.project(rules, yhat, x, relaxation="cnf")
                free = dnf.status != gdpnet.Status.CONFLICT
                below = (cnf.value[free] < dnf.distance[free] - 1e-7).double().mean()
                satisfied = _satisfied(rules, x[free], cnf.y[free], 1e-6)
                entries.append(f"{satisfied:.3f} / {float(below):.3f}")
            told = f"{name}, rho {rho} | {int(free.sum())} of {len(x)}"
            sys.stdout.write(f"| {told} | {' | '.join(entries)} |\n")
            sys.stdout.flush()


def _predictions(kind: str, count: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    if kind == "uniform":
        return torch.full((count, 8), 1 / 8, dtype=torch.float64)
    if kind == "certain":
        return torch.eye(8).double()[torch.randint(8, (count,), generator=random)]
    # Uniform on the simplex.
    spacing = -torch.rand(count, 8, generator=random, dtype=torch.float64).log()
    return spacing / spacing.sum(1, keepdim=True)


def _satisfied(rules: gdpnet.RuleModel, x: torch.Tensor, y: torch.Tensor, tol: float) -> float:
    return float(rules.satisfied(y, x, tol).double().mean())


if __name__ == "__main__":
    main()
