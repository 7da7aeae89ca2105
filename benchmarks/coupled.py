"""Rules coupled over time or by sums, beside Pyomo's big-M and our own MILP form in HiGHS.

    python benchmarks/coupled.py [--quick] [--publish] [--alone] [--only WORD ...] [--samples N]
                                 [--limit S]

One thread, processor time of each sample alone, the same samples for all. The peer (`_bigm.py`) is
`gdp.bigm` of the same model in HiGHS with a gap of 1e-6; of it only the run of HiGHS counts. Ours
is all of `gdpnet.project`. All have `--limit` seconds of wall time for a sample; a sample that
somebody has not finished by then counts with what it took, and `proved` counts those that are
finished. Values that are both proved must agree. `--alone` measures gdpnet by itself, in minutes
instead of an hour, on larger problems too, into a table of its own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

import _bigm
import numpy as np
import torch
from _coupled_case import Case
from _coupled_cases import cases, large_cases, small_cases
from _results import Results, parsed, parser

import gdpnet
from gdpnet.errors import SolverError

AGREE = 2e-6  # relative: the peer's gap and tolerances are 1e-6


class Taken(NamedTuple):
    """What one of us took for a sample, and what came out."""

    seconds: float
    value: float
    proved: bool
    nodes: int = 0
    by: str = ""
    gap: float = 0.0


def ours(case: Case, count: int, solver: str, limit: float) -> Iterator[Taken]:
    """One call a sample, after a first one that makes what is kept."""
    rules = case.rules()
    x, yhat = (torch.from_numpy(part) for part in case.sample(count))
    gdpnet.project(rules, yhat[:1], x[:1], solver=solver, threads=1, time_limit=1e-3)
    for s in range(count):
        began = time.process_time()
        p = gdpnet.project(
            rules, yhat[s : s + 1], x[s : s + 1], solver=solver, threads=1, time_limit=limit
        )
        taken = time.process_time() - began
        status = gdpnet.Status(int(p.status[0]))
        proved = status in (gdpnet.Status.PROJECTED, gdpnet.Status.SATISFIED)
        assert status in (gdpnet.Status.UNSOLVED, gdpnet.Status.CONFLICT) or bool(
            rules.satisfied(p.y, x[s : s + 1], tol=1e-6).all()
        ), f"{case.name}, sample {s}: a rule is broken"
        value = float(p.distance[0]) if status is not gdpnet.Status.UNSOLVED else np.inf
        gap = float(p.info.gap[0])
        yield Taken(taken, value, proved, int(p.info.nodes[0]), str(p.info.solver), gap)


def peer(case: Case, count: int, limit: float) -> Iterator[Taken]:
    """The peer on the same samples."""
    x, yhat = case.sample(count)
    for s in range(count):
        found = _bigm.solve(case, x[s], yhat[s], limit)
        yield Taken(found.seconds, found.value, found.finished)


def measure(results: Results, case: Case, count: int, limit: float) -> None:
    """A row for each of us."""
    found = {"big-M": list(peer(case, count, limit))}
    for name, solver in (("gdpnet", "auto"), ("our MILP", "milp"), ("Gurobi", "milp:gurobi")):
        try:
            found[name] = list(ours(case, count, solver, limit))
        except SolverError:  # the licence is too small
            continue
    for name, taken in found.items():
        for s, (own, other) in enumerate(zip(taken, found["big-M"], strict=True)):
            if own.proved and other.proved:
                apart = abs(own.value - other.value) / max(1.0, abs(other.value))
                assert apart < AGREE, f"{case.name}, sample {s}, {name}: {own} {other}"
        seconds = [each.seconds for each in taken]
        against = statistics.fmean(each.seconds for each in found["big-M"])
        results.add(
            problem=case.name,
            who=name,
            samples=count,
            mean_s=statistics.fmean(seconds),
            worst_s=max(seconds),
            ratio=against / statistics.fmean(seconds),
            proved=sum(each.proved for each in taken),
            answered=sum(np.isfinite(each.value) for each in taken),
            nodes=statistics.fmean(each.nodes for each in taken),
            by_engine=sum(each.by == "exact" for each in taken),
        )


def measure_alone(results: Results, case: Case, count: int, limit: float) -> None:
    """A row for gdpnet."""
    taken = list(ours(case, count, "auto", limit))
    seconds = [each.seconds for each in taken]
    results.add(
        "alone",
        problem=case.name,
        samples=count,
        limit_s=limit,
        least_s=min(seconds),
        mean_s=statistics.fmean(seconds),
        worst_s=max(seconds),
        proved=sum(each.proved for each in taken),
        answered=sum(np.isfinite(each.value) for each in taken),
        worst_gap=max((each.gap for each in taken if np.isfinite(each.gap)), default=None),
        by_engine=sum(each.by == "exact" for each in taken),
    )


def main() -> None:
    options = parser(__doc__, "small sizes, three samples")
    options.add_argument("--alone", action="store_true", help="gdpnet by itself")
    options.add_argument(
        "--only", nargs="+", default=[""], help="problems whose name contains one of these"
    )
    options.add_argument("--samples", type=int, default=20)
    options.add_argument("--limit", type=float, default=60.0, help="seconds for a sample")
    arguments = parsed(options)
    torch.set_num_threads(1)
    results = Results("coupled", arguments)
    count = 3 if arguments.quick else arguments.samples
    usual = (*cases(), *large_cases()) if arguments.alone else cases()
    for case in small_cases() if arguments.quick else usual:
        if any(word in case.name for word in arguments.only):
            row = measure_alone if arguments.alone else measure
            row(results, case, count, arguments.limit)
    results.write()


if __name__ == "__main__":
    main()
