"""ProgramLayer beside cvxpylayers on the same programs, whose numbers are all parameters.

    python benchmarks/programs.py [--quick] [--publish]

One thread, processor time; the layers take turns, and medians of all turns are stored. cvxpylayers
(diffcp with Clarabel) has to be installed: `make bench` and `make test-integrations` do that.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import pyomo.environ as pyo
import torch
from _measure import seconds
from _results import Results, parsed, parser
from cvxpylayers.torch import CvxpyLayer

from gdpnet.nn import ProgramLayer

BATCH = 128
SOLVER = {"solver_args": {"solve_method": "Clarabel"}}
Call = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _model(n: int, m: int) -> Any:
    model = pyo.ConcreteModel()
    model.I, model.J = pyo.RangeSet(m), pyo.RangeSet(n)
    model.A = pyo.Param(model.I, model.J, mutable=True, initialize=1.0)
    model.b = pyo.Param(model.I, mutable=True, initialize=0.0)
    model.x = pyo.Var(model.J, bounds=(0, None))
    return model


def _residual(model: Any, i: int) -> Any:
    return pyo.quicksum(model.A[i, j] * model.x[j] for j in model.J) - model.b[i]


def absolute(n: int, m: int) -> tuple[Call, Call]:
    """`minimise |A x - b|_1 / 2, x >= 0`, a linear program: the first example of cvxpylayers."""
    x, A, b = cp.Variable(n), cp.Parameter((m, n)), cp.Parameter(m)
    problem = cp.Problem(cp.Minimize(0.5 * cp.pnorm(A @ x - b, p=1)), [x >= 0])
    peer = CvxpyLayer(problem, parameters=[A, b], variables=[x], **SOLVER)
    model = _model(n, m)
    model.t = pyo.Var(model.I)
    model.above = pyo.Constraint(model.I, rule=lambda m, i: _residual(m, i) <= m.t[i])
    model.below = pyo.Constraint(model.I, rule=lambda m, i: -m.t[i] <= _residual(m, i))
    model.cost = pyo.Objective(expr=0.5 * pyo.quicksum(model.t.values()))
    layer = ProgramLayer(model, inputs=[model.A, model.b], outputs=[model.x])
    return lambda a, c: layer(a.flatten(1), c), lambda a, c: peer(a, c)[0]


def squares(n: int, m: int) -> tuple[Call, Call]:
    """`minimise |A x - b|^2, x >= 0, sum x = 1`, a quadratic program."""
    x, A, b = cp.Variable(n), cp.Parameter((m, n)), cp.Parameter(m)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b)), [x >= 0, cp.sum(x) == 1])
    peer = CvxpyLayer(problem, parameters=[A, b], variables=[x], **SOLVER)
    model = _model(n, m)
    model.total = pyo.Constraint(expr=pyo.quicksum(model.x.values()) == 1)
    model.cost = pyo.Objective(expr=sum(_residual(model, i) ** 2 for i in model.I))
    layer = ProgramLayer(model, inputs=[model.A, model.b], outputs=[model.x])
    return lambda a, c: layer(a.flatten(1), c), lambda a, c: peer(a, c)[0]


def main() -> None:
    """Run everything."""
    arguments = parsed(parser(__doc__, "fewer repetitions"))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    results = Results("programs", arguments, packages=("cvxpylayers", "diffcp", "clarabel"))
    repeats = 2 if arguments.quick else 7
    for kind, made in (("LP", absolute), ("QP", squares)):
        for n, m in ((2, 3), (10, 20)):
            calls = dict(zip(("gdpnet", "cvxpylayers"), made(n, m), strict=True))
            generator = torch.Generator().manual_seed(0)
            a = torch.randn(BATCH, m, n, dtype=torch.float64, generator=generator)
            c = torch.randn(BATCH, m, dtype=torch.float64, generator=generator)
            a, c = a.requires_grad_(), c.requires_grad_()
            with torch.no_grad():
                points = [call(a, c) for call in calls.values()]
            turns: dict[tuple[str, str], list[float]] = {}
            for _ in range(repeats):
                for name, call in calls.items():
                    runs = {
                        "forward_s": lambda call=call: call(a, c),
                        "both_s": lambda call=call: call(a, c).sum().backward(),
                    }
                    for title, run in runs.items():
                        once = seconds(run, 1, clock=time.process_time) / BATCH
                        turns.setdefault((name, title), []).append(once)
            difference = (points[0] - points[1]).abs().max()
            for name in calls:
                shape = {"kind": kind, "columns": n, "rows": m, "layer": name}
                measured = {
                    title: statistics.median(turns[name, title])
                    for title in ("forward_s", "both_s")
                }
                results.add(**shape, **measured, difference=difference, turns=repeats)
    results.write()


if __name__ == "__main__":
    main()
