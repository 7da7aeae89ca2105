"""How often other forward passes break the rules, and how far they go.

    python benchmarks/forwards.py [--quick] [--publish] [--only lift relaxations cells]

The same predictions, projected by gdpnet (a vertex, checked), at the point of the regularised
program, by HiGHS' interior-point method without crossover, and onto the hull in the space of the
outputs, without the lift (`_hull_in_y.py`: the objective of the paper's public package, without its
small regularisers). Predictions: uniform in the box for the paper's worked examples, of base
networks on cooling and, in a table of its own, on PBMC3k (GDPNET_DATA names its data; its networks
take most of the time). A third table: on all cells, for all rule sets and two values of rho, how
often CNF's vertex breaks a rule and how often its value lies below the DNF's. `--only` leaves the
others as they are stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import highspy
import torch
from _hull_in_y import HullInY
from _results import UNPUBLISHED, Results, parsed, parser

import gdpnet
from gdpnet.lp import highs
from gdpnet.study import Grid, StudyFolder, Task, load_model, train
from gdpnet.study.training._evaluation import sizes_of_violations
from gdpnet.study.training._run import Cell, CellRun

MODELS = Path(__file__).parents[1] / "models"
SEEDS = (0, 1, 2)
TABLES = ("lift", "relaxations", "cells")

# Products of the active rules' disjuncts beyond which the DNF is not written out.
MOST = 512

Way = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Case:
    """Predictions to project.

    Attributes:
        name: of the task.
        kind: of predictions: a split, a training size.
        rules: the rules.
        x: their inputs.
        yhat: predictions.
    """

    name: str
    kind: str
    rules: gdpnet.RuleModel
    x: torch.Tensor | None
    yhat: torch.Tensor


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


def ways(case: Case) -> dict[str, Way]:
    """Every forward pass by name."""
    rules, x = case.rules, case.x
    inputs = torch.zeros(len(case.yhat), 0, dtype=torch.float64) if x is None else x

    def projected(yhat: torch.Tensor, **keywords: Any) -> torch.Tensor:
        return gdpnet.project(rules, yhat, x, threads=1, **keywords).y

    def regularised(eps: float, relaxation: str = "dnf") -> Way:
        gradient = gdpnet.QP(eps)
        return lambda y: projected(y, relaxation=relaxation, gradient=gradient, forward="qp")

    def written(relaxation: str) -> Way:
        return lambda y: interior(lambda: projected(y, relaxation=relaxation, solver="highs"))

    def hull(form: str) -> Way:
        return lambda y: torch.from_numpy(HullInY(rules, form)(y.numpy(), inputs.numpy()))

    return {
        "DNF, vertex": projected,
        "DNF, l2": lambda y: projected(y, norm="l2"),
        "DNF, hull in y": hull("dnf"),
        "DNF, regularised, eps 1e-3": regularised(1e-3),
        "DNF, regularised, eps 1e-2": regularised(1e-2),
        "DNF, regularised, eps 1e-1": regularised(1e-1),
        "DNF, interior point": written("dnf"),
        "CNF, vertex": lambda y: projected(y, relaxation="cnf"),
        "CNF, hull in y": hull("cnf"),
        "CNF, regularised, eps 1e-2": regularised(1e-2, "cnf"),
        "CNF, interior point": written("cnf"),
    }


# ---- predictions --------------------------------------------------------------------------------


def toys(count: int) -> Iterator[Case]:
    """The paper's worked examples, predictions uniform in the box."""
    model = load_model(MODELS / "toy")
    for name in ("one_rule", "two_rules", "figure1"):
        rules = model.module.build(name)
        draw = torch.Generator().manual_seed(0)
        unit = torch.rand(count, len(rules.output_names), generator=draw, dtype=torch.float64)
        yield Case("toy", name, rules, None, rules.lower + unit * (rules.upper - rules.lower))


def cooling(count: int, folder: Path) -> Iterator[Case]:
    """Base networks of 250 samples, as protocol converged trains them."""
    grid = Grid(methods=("base",), sizes=(250,), seeds=SEEDS)
    train(MODELS / "cooling", grid, folder)
    task = Task(load_model(MODELS / "cooling"))
    for split in task.test_seeds:
        data = task.test(split).take(slice(count))
        networks = [_base(task, folder, cell) for cell in grid.cells]
        with torch.no_grad():
            yhat = torch.cat([network(data.x) for network in networks])
        yield Case("cooling", split, task.rules, data.rule_x.repeat(len(SEEDS), 1), yhat)


def pbmc(folder: Path, quick: bool) -> Iterator[Case]:
    """Base networks of all sizes on the test cells whose rules do not contradict each other."""
    task, module = Task(load_model(MODELS / "pbmc")), load_model(MODELS / "pbmc").module
    sizes = module.sizes()[:2] if quick else module.sizes()
    grid = Grid(methods=("base",), sizes=sizes, seeds=SEEDS, protocols=("pbmc",))
    train(MODELS / "pbmc", grid, folder, together=True)
    data = task.test("test")
    active = task.rules.active(data.rule_x)
    width = torch.tensor([float(len(marker.classes)) for marker in module.markers().markers])
    products = torch.where(active, width, 1.0).prod(1)
    keep = task.conflict_free("test") & (products <= MOST)
    x = data.rule_x[keep]
    for size in sizes:
        cells = [cell for cell in grid.cells if cell.size == size]
        with torch.no_grad():
            yhat = torch.cat([_base(task, folder, cell)(data.x[keep]) for cell in cells])
        yield Case("pbmc", f"n = {size}", task.rules, x.repeat(len(SEEDS), 1), yhat)
    classes = len(task.rules.output_names)
    even = torch.full((len(x), classes), 1 / classes, dtype=torch.float64)
    yield Case("pbmc", "uniform", task.rules, x, even)


def _base(task: Task, folder: Path, cell: Cell) -> torch.nn.Module:
    network, _, _ = CellRun(task, cell, StudyFolder(folder)).trained(task.method("base"))
    return network.eval()


# ---- tables -------------------------------------------------------------------------------------


def measure(results: Results, case: Case, table: str = "") -> None:
    """One row for each way."""
    for name, way in ways(case).items():
        y = way(case.yhat).detach()
        sizes = sizes_of_violations(case.rules, case.x, y)
        results.add(
            table,
            task=case.name,
            predictions=case.kind,
            samples=len(y),
            forward=name,
            csat_1e_6=float(case.rules.satisfied(y, case.x).double().mean()),
            csat_1e_3=sizes["csat_1e-03"],
            distance_l1=float((y - case.yhat).abs().sum(1).mean()),
            distance_l2=float((y - case.yhat).norm(dim=1).mean()),
            violation_mean=sizes["violation_mean"],
            violation_95=sizes["violation_95"],
            violation_most=sizes["violation_most"],
        )


def relaxations(results: Results, quick: bool) -> None:
    """CNF against DNF on predictions of several kinds, over all cells."""
    module = load_model(MODELS / "pbmc").module
    adata = module.cells()
    for name in module.RULE_SETS:
        for rho in (0.5, 0.6):
            markers = module.markers(name, rho)
            rules, x = markers.rules, torch.from_numpy(markers.expression(adata))
            x = x[:200] if quick else x
            for kind in ("dirichlet", "uniform", "certain"):
                yhat = _predictions(kind, len(x))
                dnf = gdpnet.project(rules, yhat, x)
                cnf = gdpnet.project(rules, yhat, x, relaxation="cnf")
                free = dnf.status != gdpnet.Status.CONFLICT
                results.add(
                    "relaxations",
                    rules=name,
                    rho=rho,
                    predictions=kind,
                    cells=len(x),
                    conflict_free=int(free.sum()),
                    csat=float(rules.satisfied(cnf.y[free], x[free]).double().mean()),
                    below=float((cnf.value[free] < dnf.distance[free] - 1e-7).double().mean()),
                )


def _predictions(kind: str, count: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    if kind == "dirichlet":
        drawn = torch.empty(count, 8, dtype=torch.float64).exponential_(generator=random)
        return drawn / drawn.sum(1, keepdim=True)
    if kind == "uniform":
        return torch.full((count, 8), 1 / 8, dtype=torch.float64)
    return torch.eye(8, dtype=torch.float64)[torch.randint(8, (count,), generator=random)]


def main() -> None:
    options = parser(__doc__, "fewer predictions and sizes")
    options.add_argument("--only", nargs="+", default=TABLES, choices=TABLES, help="these tables")
    arguments = parsed(options)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    results = Results("forwards", arguments, packages=("clarabel",))
    quick = arguments.quick
    if "lift" in arguments.only:
        for case in toys(50 if quick else 500):
            measure(results, case)
        for case in cooling(50 if quick else 500, UNPUBLISHED / "forwards-cooling"):
            measure(results, case)
    if "relaxations" in arguments.only:
        relaxations(results, quick)
    if "cells" in arguments.only:
        for case in pbmc(UNPUBLISHED / "forwards-pbmc", quick):
            measure(results, case, "cells")
    results.write()


if __name__ == "__main__":
    main()
