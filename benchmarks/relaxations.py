"""CNF, partial DNF and their solvers: one run, one thread, the same samples.

    python benchmarks/relaxations.py [--quick] [--publish] [--only NAME ...]

Times are medians; claims are ratios of this one run. All solvers' values are compared to 1e-7.
`--only` measures some tables and leaves the others as they are stored.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import torch
from _measure import seconds
from _results import Results, parsed, parser
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

import gdpnet
from gdpnet import Plan
from gdpnet.errors import SolverError
from gdpnet.ir.instance import Instance
from gdpnet.lp import highs
from gdpnet.relaxation.layouts import Layouts, layouts_of
from gdpnet.relaxation.program import RelaxationProgram
from gdpnet.study import load_model
from gdpnet.testing.problems.large import dense_rules, label_groups

MODELS = Path(__file__).parents[1] / "models"
PLANS = {
    "CNF": Plan.cnf(),
    "three merged": Plan((("R1_hot", "R3_humid", "R5_demand_response"),)),
}
REPEATS = 5
TABLES = ("solvers", "compiling", "large", "conic", "sizes")


def median_seconds(function: Callable[[], object]) -> float:
    """Median time of a call."""
    return seconds(function, REPEATS, least=0.0)


# ---- HiGHS, built anew for every sample ---------------------------------------------------------


@dataclass(frozen=True)
class Cold:
    """Programs of a batch; solving makes a new HiGHS for every sample.

    The numbers of all samples are ready beforehand, so only the solver's own work is timed.
    """

    samples: list[tuple[RelaxationProgram, np.ndarray]]
    outside: np.ndarray

    def solve(self) -> np.ndarray:
        """Values of all samples."""
        return np.array([_solve_cold(*sample) for sample in self.samples]) + self.outside


def cold_programs(rules: gdpnet.RuleModel, plan: Plan, x: np.ndarray, yhat: np.ndarray) -> Cold:
    """The programs of samples whose prediction breaks a rule."""
    layouts = Layouts(rules)
    instance = Instance.of(rules, x)
    start = np.clip(yhat, rules.lower.numpy(), rules.upper.numpy())
    samples = []
    for s in range(len(x)):
        number = layouts.planned(plan, instance.active[s], pruned=True)
        program = layouts.program(number)
        one = instance.take(np.array([s]))
        moving = program.moving_values(program.parameters(one.bound, one.varying, start[s : s + 1]))
        samples.append((program, moving[0]))
    return Cold(samples, np.abs(start - yhat).sum(1))


def _solve_cold(program: RelaxationProgram, moving: np.ndarray) -> float:
    cost = np.zeros(len(program.lower))
    cost[program.distances] = 1.0
    solver = highs.new_solver()
    solver.passModel(highs.model_of(replace(program.at(moving), cost=cost)))
    solver.run()
    return solver.getInfo().objective_function_value


# ---- parts of the benchmark ---------------------------------------------------------------------


def solvers(results: Results, batch: int) -> None:
    """Cooling: time a sample of each solver on CNF and on a plan of three rules."""
    model = load_model(MODELS / "cooling")
    rules = model.build()
    for title, plan in PLANS.items():
        for split in ("iid", "ood"):
            own = {"batch": batch, "plan": title, "split": split}
            x, yhat = broken_samples(model, rules, split, batch)
            few = min(batch, 256)  # a cold or Gurobi run of thousands would only take longer
            cold = cold_programs(rules, plan, x[:few].numpy(), yhat[:few].numpy())
            values = {"HiGHS cold": cold.solve()}
            taken: float | None = median_seconds(cold.solve) / few
            results.add("solvers", **own, solver="HiGHS cold", samples=few, seconds=taken)
            for name, solver, count in (
                ("HiGHS in place", "highs", few),
                ("Gurobi in place", "gurobi", few),
                ("extended", "extended", batch),
            ):
                call = _projector(rules, yhat[:count], x[:count], relaxation=plan, solver=solver)
                try:
                    values[name] = call().value.numpy()
                    taken = median_seconds(call) / count
                except SolverError:  # no licence
                    taken = None
                results.add("solvers", **own, solver=name, samples=count, seconds=taken)
            reference = values["HiGHS cold"]
            for name, value in values.items():
                worst = np.abs(value[:few] - reference).max()
                assert worst < 1e-7, f"{name} differs by {worst:.1e}"
            call = _projector(rules, yhat, x)
            assert (call().value.numpy()[:few] >= reference - 1e-7).all()
            taken = median_seconds(call) / batch
            results.add("solvers", **own, solver="exact", samples=batch, seconds=taken)


def broken_samples(
    model: object, rules: gdpnet.RuleModel, split: str, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples with a rule or global constraint broken, which need a program."""
    x = model.sample(3 * count, split=split, seed=0)[0]
    yhat = torch.from_numpy(np.random.default_rng(0).uniform(0, 1, (3 * count, 3)))
    broken = (~rules.satisfied(yhat, x, 1e-9)).nonzero().flatten()[:count]
    assert len(broken) == count
    return x[broken], yhat[broken]


def _projector(
    rules: gdpnet.RuleModel, yhat: torch.Tensor, x: torch.Tensor, **how: object
) -> Callable[[], gdpnet.Projection]:
    return lambda: gdpnet.project(rules, yhat, x, threads=1, **how)


def compiling(results: Results) -> None:
    """Cooling: assembling the programs of all patterns of 2,000 samples, and solving them cold."""
    model = load_model(MODELS / "cooling")
    for name, plan in PLANS.items():
        for split in ("iid", "ood"):
            rules = model.build()
            x, yhat = broken_samples(model, rules, split, 2000)
            active = Instance.of(rules, x.numpy().copy()).active
            patterns = np.unique(active, axis=0)

            def compile_all(patterns=patterns, plan=plan, rules=rules) -> None:
                layouts = Layouts(rules)
                for pattern in patterns:
                    layouts.program(layouts.planned(plan, pattern, pruned=True))

            taken = median_seconds(compile_all)
            cold = cold_programs(rules, plan, x.numpy().copy(), yhat.numpy().copy())
            start = time.perf_counter()
            cold.solve()
            solved = time.perf_counter() - start
            results.add(
                "compiling",
                plan=name,
                split=split,
                patterns=len(patterns),
                compile_s=taken,
                cold_s=solved,
            )


def large(results: Results, samples: int) -> None:
    """CNF of problems that are too large for the dense kernel."""
    for case in (dense_rules(samples), label_groups(samples)):
        rules, yhat = case.rules(), case.yhat
        taken, values = [], []
        for solver in ("highs", "auto"):
            options = {"relaxation": "cnf", "solver": solver, "threads": 1}
            gdpnet.project(rules, yhat[:1], **options)  # the program is written
            start = time.perf_counter()
            p = gdpnet.project(rules, yhat, **options)
            taken.append((time.perf_counter() - start) / samples)
            values.append(p.value)
        assert torch.allclose(*values, atol=1e-7)
        layouts = layouts_of(rules)
        rows = [len(write(0).bound) for write in (layouts.program, layouts.compact)]
        results.add(
            "large",
            problem=case.name,
            rows=rows[0],
            compact_rows=rows[1],
            highs_s=taken[0],
            compact_s=taken[1],
        )


def conic(results: Results, samples: int) -> None:
    """The Euclidean norm: processor time a sample by Clarabel, and the largest program."""
    cases = [
        ("cooling", "cooling", {}),
        *((f"stress k = {k}", "stress", {"k": k}) for k in (4, 10)),
    ]
    for title, name, arguments in cases:
        model = load_model(MODELS / name)
        rules = model.build(**arguments)
        for split in ("iid", "ood") if name == "cooling" else ("iid",):
            x, yhat = broken_samples(model, rules, split, samples)
            for relaxation in ("cnf", "pdnf:3"):
                how = {"relaxation": relaxation, "norm": "l2", "solver": "clarabel"}
                call = _projector(rules, yhat, x, **how)
                size = call().info.sizes
                assert size is not None
                results.add(
                    "conic",
                    problem=title,
                    split=split,
                    relaxation=relaxation,
                    samples=samples,
                    variables=size.variables,
                    cones=size.cones,
                    seconds=seconds(call, REPEATS, 0.0, time.process_time) / samples,
                )


def sizes(results: Results, most: int) -> None:
    """k two-term rules, d = 3: the Pyomo LP, no product left out."""
    model = load_model(MODELS / "stress")
    for k in range(1, most + 1):
        rules = model.build(k=k)
        x = model.module.sample(1, split="iid", seed=0, k=k)[0][0].tolist()
        for form in ("CNF", "DNF"):
            start = time.perf_counter()
            lp = gdpnet.convexify(rules, relaxation=form.lower(), x=x, yhat=[0.5] * 3, prune=False)
            taken = time.perf_counter() - start
            variables, rows, bounds, nonzeros = count(lp)
            results.add(
                "sizes",
                k=k,
                form=form,
                variables=variables,
                rows=rows,
                bounds=bounds,
                nonzeros=nonzeros,
                seconds=taken,
            )


def count(lp: pyo.ConcreteModel) -> tuple[int, int, int, int]:
    """Variables, rows, finite bounds of variables, nonzeros."""
    form = LinearStandardFormCompiler().write(lp, mixed_form=True)
    bounds = sum((v.lb is not None) + (v.ub is not None) for v in form.columns)
    return len(form.columns), form.A.shape[0], bounds, form.A.nnz


def main() -> None:
    options = parser(__doc__, "one batch, sizes up to k = 6")
    options.add_argument("--only", nargs="+", choices=TABLES, default=TABLES, help="these tables")
    arguments = parsed(options)
    torch.set_num_threads(1)
    results = Results("relaxations", arguments, packages=("clarabel",))
    quick, wanted = arguments.quick, arguments.only
    if "solvers" in wanted:
        for batch in (256,) if quick else (256, 4096):
            solvers(results, batch)
    if "compiling" in wanted:
        compiling(results)
    if "large" in wanted:
        large(results, 2 if quick else 8)
    if "conic" in wanted:
        conic(results, 32 if quick else 256)
    if "sizes" in wanted:
        sizes(results, 6 if quick else 10)
    results.write()


if __name__ == "__main__":
    main()
