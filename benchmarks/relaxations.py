"""CNF, partial DNF and their solvers: one run, one thread, the same samples.

    python benchmarks/relaxations.py [--quick] [--out FILE]

Times are medians; claims are ratios of this one run. All solvers' values are compared to 1e-7.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import torch
from _measure import Report, seconds
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
report = Report()
THREE = Plan((("R1_hot", "R3_humid", "R5_demand_response"),))
REPEATS = 5

# Variables and constraints of the paper's table "LP size and inference-time scaling".
PAPER = {
    "CNF": {
        1: (20, 67), 2: (34, 123.2), 3: (48, 179.3), 4: (62, 235.7), 5: (76, 292), 6: (87, 207),
        7: (101, 241), 8: (115, 275), 9: (129, 309), 10: (143, 343),
    },
    "DNF": {
        1: (23, 73.1), 2: (37, 129.5), 3: (65, 246.5), 4: (121, 491), 5: (233, 997),
        6: (454, 1321), 7: (902, 2761), 8: (1798, 5769), 9: (3590, 12041), 10: (7174, 25097),
    },
}  # fmt: skip


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


def solvers(batch: int) -> None:
    """Cooling: time a sample of each solver on CNF and on a plan of three rules."""
    model = load_model(MODELS / "cooling")
    rules = model.build()
    report.say(f"\n### Cooling, batch {batch}: microseconds a sample\n")
    titles = [f"{name} {split}" for name in ("CNF", "three merged") for split in ("iid", "ood")]
    report.say(f"| | {' | '.join(titles)} |")
    report.say("|---|---|---|---|---|")
    table: dict[str, list[float | None]] = {
        name: []
        for name in ("HiGHS cold", "HiGHS in place", "Gurobi in place", "extended", "exact")
    }
    for plan in (Plan.cnf(), THREE):
        for split in ("iid", "ood"):
            x, yhat = broken_samples(model, rules, split, batch)
            few = min(batch, 256)  # a cold or Gurobi run of thousands would only take longer
            cold = cold_programs(rules, plan, x[:few].numpy(), yhat[:few].numpy())
            values = {"HiGHS cold": cold.solve()}
            table["HiGHS cold"].append(median_seconds(cold.solve) / few)
            for name, solver, count in (
                ("HiGHS in place", "highs", few),
                ("Gurobi in place", "gurobi", few),
                ("extended", "extended", batch),
            ):
                call = _projector(rules, yhat[:count], x[:count], relaxation=plan, solver=solver)
                try:
                    values[name] = call().value.numpy()
                    table[name].append(median_seconds(call) / count)
                except SolverError:
                    table[name].append(None)
            reference = values["HiGHS cold"]
            for name, value in values.items():
                worst = np.abs(value[:few] - reference).max()
                assert worst < 1e-7, f"{name} differs by {worst:.1e}"
            call = _projector(rules, yhat, x)
            assert (call().value.numpy()[:few] >= reference - 1e-7).all()
            table["exact"].append(median_seconds(call) / batch)
    for name, times in table.items():
        cells = []
        for k, taken in enumerate(times):
            base = {"HiGHS in place": "HiGHS cold", "extended": "HiGHS in place"}.get(name)
            ratio = f" ({table[base][k] / taken:.1f} times)" if base and taken else ""
            cells.append(f"{1e6 * taken:.1f}{ratio}" if taken else "no licence")
        report.say(f"| {name} | {' | '.join(cells)} |")
    report.say(
        "\nPredictions that break a rule only. Ratios: HiGHS in place over cold, dense over HiGHS "
        "in place. Exact: the DNF, not written down. All values equal to 1e-7."
    )


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


def compiling() -> None:
    """Cooling: assembling the programs of all patterns of 2,000 samples, and solving them cold."""
    model = load_model(MODELS / "cooling")
    report.say("\n### Cooling: compiling all patterns met by 2,000 samples\n")
    report.say("| | patterns | compile, s | solve the 2,000 cold, s | ratio |")
    report.say("|---|---|---|---|---|")
    for name, plan in (("CNF", Plan.cnf()), ("three merged", THREE)):
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
            report.say(
                f"| {name} {split} | {len(patterns)} | {taken:.3f} | {solved:.2f} | "
                f"{solved / taken:.1f} |"
            )


def large(samples: int) -> None:
    """CNF of problems that are too large for the dense kernel."""
    report.say("\n### CNF of larger problems: milliseconds a sample\n")
    report.say("| | rows | HiGHS in place | default: compact form | ratio |")
    report.say("|---|---|---|---|---|")
    for case in (dense_rules(samples), label_groups(samples)):
        rules, yhat = case.rules(), case.yhat
        taken, values = [], []
        for solver in ("highs", "auto"):
            options = {"relaxation": "cnf", "solver": solver, "threads": 1}
            gdpnet.project(rules, yhat[:1], **options)  # the program is written
            start = time.perf_counter()
            p = gdpnet.project(rules, yhat, **options)
            taken.append(1e3 * (time.perf_counter() - start) / samples)
            values.append(p.value)
        assert torch.allclose(*values, atol=1e-7)
        layouts = layouts_of(rules)
        rows = [len(write(0).bound) for write in (layouts.program, layouts.compact)]
        report.say(
            f"| {case.name} | {rows[0]:,} and {rows[1]:,} | {taken[0]:,.0f} | {taken[1]:,.0f} | "
            f"{taken[0] / taken[1]:.1f} |"
        )


def sizes(most: int) -> None:
    """k two-term rules, d = 3: the Pyomo LP beside the paper's counts."""
    report.say("\n### Sizes of the Pyomo LP, models/stress, no product left out\n")
    report.say("| k | form | variables | paper | rows | paper | bounds | nonzeros | seconds |")
    report.say("|---|---|---|---|---|---|---|---|---|")
    model = load_model(MODELS / "stress")
    for k in range(1, most + 1):
        rules = model.build(k=k)
        x = model.module.sample(1, split="iid", seed=0, k=k)[0][0].tolist()
        for form in ("CNF", "DNF"):
            start = time.perf_counter()
            lp = gdpnet.convexify(rules, relaxation=form.lower(), x=x, yhat=[0.5] * 3, prune=False)
            taken = time.perf_counter() - start
            variables, rows, bounds, nonzeros = count(lp)
            theirs = PAPER[form][k]
            report.say(
                f"| {k} | {form} | {variables} | {theirs[0]} | {rows} | {theirs[1]:g} | {bounds} | "
                f"{nonzeros} | {taken:.2f} |"
            )


def count(lp: pyo.ConcreteModel) -> tuple[int, int, int, int]:
    """Variables, rows, finite bounds of variables, nonzeros."""
    form = LinearStandardFormCompiler().write(lp, mixed_form=True)
    bounds = sum((v.lb is not None) + (v.ub is not None) for v in form.columns)
    return len(form.columns), form.A.shape[0], bounds, form.A.nnz


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one batch, sizes up to k = 6")
    parser.add_argument("--out", type=Path, help="write the tables to this file as well")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for batch in (256,) if arguments.quick else (256, 4096):
        solvers(batch)
    compiling()
    large(2 if arguments.quick else 8)
    sizes(6 if arguments.quick else 10)
    report.write(arguments.out)


if __name__ == "__main__":
    main()
