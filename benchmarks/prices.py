"""Rules with prices, beside the same rules without; and contradictions, with rules left out.

    python benchmarks/prices.py [--quick] [--publish]

Cooling: all rules have the median distance that predictions are moved without prices as their
price, 4,096 predictions in a batch. PBMC3k: cells whose rules contradict each other, with
on_conflict="pass", "nearest" and "drop", beside cells that are moved as usual: in a batch, which
shares what depends on the rules alone, and one by one, where nothing is shared; the data is that of
the model (GDPNET_DATA). Processor time of one thread, the ways measured in turn.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np
import torch
from _results import ROOT, Results, parsed, parser

import gdpnet
from gdpnet import Status
from gdpnet.study import load_model

BATCH = 4096
ROUNDS = 41
ALONE = 256  # cells that are projected one by one, each in a call


def in_turn(ways: dict[Any, Callable[[], object]], rounds: int) -> dict[Any, float]:
    """Median processor time of each, measured one after the other in every round."""
    times: dict[Hashable, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, run in ways.items():
            started = time.process_time()
            run()
            times[name].append(time.process_time() - started)
    return {name: statistics.median(found[1:]) for name, found in times.items()}


def cooling(results: Results, rounds: int) -> None:
    """Seven rules, each at the median distance that is moved without prices."""
    model = load_model(ROOT / "models" / "cooling")
    for norm in ("l1", "l2"):
        hard = model.build()
        x = model.sample(BATCH, split="iid", seed=0)[0]
        yhat = torch.from_numpy(np.random.default_rng(0).uniform(0, 1, (BATCH, 3)))
        moved = gdpnet.project(hard, yhat, x, norm=norm, threads=1).value
        price = float(moved[moved > 0].median())
        module = model.module
        m = module.pyomo_model()
        priced = gdpnet.RuleModel(
            m,
            outputs=[m.component(name) for name in module.OUTPUTS],
            inputs=[m.component(name) for name in module.INPUTS],
            input_bounds=module.INPUT_BOUNDS,
            prices=dict.fromkeys(hard.names, price),
        )
        ways = {"without prices": hard, "with prices": priced}

        calls = {
            name: partial(gdpnet.project, rules, yhat, x, norm=norm, threads=1)
            for name, rules in ways.items()
        }
        found = in_turn(calls, rounds)
        for name, rules in ways.items():
            p = calls[name]()
            results.add(
                "cooling",
                norm=norm,
                what=name,
                price=price if rules is priced else None,
                moved=(p.distance > 0).double().mean(),
                broken=p.broken.any(1).double().mean(),
                nodes=p.info.nodes.double().mean(),
                seconds=found[name],
                samples=BATCH,
            )


def pbmc(results: Results, rounds: int) -> None:
    """Cells whose rules contradict each other, and cells that are moved as usual."""
    model = load_model(ROOT / "models" / "pbmc")
    for name in ("A", "C"):
        os.environ["GDPNET_RULES"] = name
        x, _ = model.sample(4000, split="train", seed=0)
        rules, inputs = model.build(), model.module.rule_inputs(x)
        rng = np.random.default_rng(0)
        yhat = torch.from_numpy(rng.dirichlet(np.ones(len(rules.output_names)), len(inputs)))
        status = gdpnet.project(rules, yhat, inputs, threads=1).status
        usual, bad = (
            torch.nonzero(status == s).flatten() for s in (Status.PROJECTED, Status.CONFLICT)
        )
        # There are few: each again and again, with other predictions, as many as usual ones.
        many = bad.repeat(len(usual) // max(1, len(bad)) + 1)[: len(usual)]
        few = {"usual": usual[:ALONE], "contradictory": many[:ALONE]}
        ways = {("usual", "pass", 0): usual, ("contradictory", "pass", 0): many}
        ways |= {("contradictory", "drop", 0): many, ("contradictory", "nearest", 0): many[:16]}
        ways |= {("usual", "pass", 1): few["usual"]}
        ways |= {("contradictory", mode, 1): few["contradictory"] for mode in ("pass", "drop")}

        def run(mode: str, cells: torch.Tensor, together: int) -> list[Any]:
            size = together or len(cells)
            pairs = zip(yhat[: len(cells)].split(size), inputs[cells].split(size), strict=True)
            return [gdpnet.project(rules, *pair, threads=1, on_conflict=mode) for pair in pairs]

        calls = {way: partial(run, way[1], cells, way[2]) for way, cells in ways.items()}
        slow = {way: calls.pop(way) for way in list(calls) if way[1] == "nearest"}
        times = in_turn(calls, rounds) | in_turn(slow, 1)
        for way, cells in ways.items():
            dropped = run(way[1], cells, way[2])[0].info.dropped
            results.add(
                "pbmc",
                rules=name,
                cells=way[0],
                on_conflict=way[1],
                calls="one by one" if way[2] else "in a batch",
                samples=len(cells),
                seconds=times[way],
                dropped=None if dropped is None else statistics.mean(map(len, dropped)),
            )


def main() -> None:
    arguments = parsed(parser(__doc__, "a few rounds"))
    torch.set_num_threads(1)
    results = Results("prices", arguments)
    rounds = 5 if arguments.quick else ROUNDS
    cooling(results, rounds)
    pbmc(results, rounds)
    results.write()


if __name__ == "__main__":
    main()
