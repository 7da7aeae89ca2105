"""The torch layer: its overhead, its gradients, and cvxpylayers on the same programs.

    python benchmarks/layer.py [--quick] [--publish]

Cooling, one thread, one run; times are medians, claims are ratios. cvxpylayers (with diffcp and
Clarabel, and with MOREAU) is measured where it is installed: `pip install cvxpylayers moreau`.
"""

import importlib.util
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _measure import resident_bytes, seconds
from _results import Results, parsed, parser
from torch import nn

import gdpnet
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.study import load_model

MODELS = Path(__file__).parents[1] / "models"
MEASURED = ("forward_s", "both_s", "broken", "difference", "cosine")


def data(count: int) -> tuple[gdpnet.RuleModel, torch.Tensor, torch.Tensor]:
    """Rules, inputs (half of them shifted) and uniform predictions."""
    model = load_model(MODELS / "cooling")
    halves = [model.sample(count // 2 + 1, split=s, seed=5)[0].double() for s in ("iid", "ood")]
    x = torch.stack(halves, 1).flatten(0, 1)[:count]
    yhat = torch.rand(count, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return model.build(), x, yhat


class _Nothing(torch.autograd.Function):
    """What torch itself takes for a layer written in Python."""

    @staticmethod
    def forward(yhat: torch.Tensor) -> torch.Tensor:
        return yhat.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None: ...

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def overhead(results: Results) -> None:
    """The layer beside the kernel it calls."""
    rules, all_x, all_yhat = data(4096)
    engine, options = engine_of(rules), SearchOptions(np.ones(3), threads=1)
    for batch in (4096, 256, 1):
        x, yhat = all_x[:batch].clone(), all_yhat[:batch].clone()
        xs, ys = x.numpy(), yhat.numpy()
        leaf, ones = yhat.clone().requires_grad_(), torch.ones_like(yhat)
        kernel = seconds(lambda: engine.project(Instance.of(rules, xs), ys, options))
        kept = seconds(lambda: engine.project(Instance.of(rules, xs), ys, options, True))
        own = seconds(lambda: _Nothing.apply(leaf).backward(ones))
        for name in ("straight_through", "vertex", "qp"):
            layer = gdpnet.ProjectionLayer(rules, gradient=name, threads=1)

            def without(layer: nn.Module = layer) -> None:
                with torch.no_grad():
                    layer(yhat, x)

            free = seconds(without)
            forward = seconds(lambda layer=layer: layer(leaf, x))
            both = seconds(lambda layer=layer: layer(leaf, x).backward(ones))
            results.add(
                "overhead",
                batch=batch,
                gradient=name,
                kernel_s=kernel,
                kernel_kept_s=kept,  # with what a gradient needs of its answers
                nothing_s=own,
                no_grad_s=free,
                forward_s=forward,
                both_s=both,
            )


def relaxations(results: Results) -> None:
    """CNF, a plan and DNF, forward and backward, at batch 256."""
    rules, x, yhat = data(256)
    leaf, ones = yhat.clone().requires_grad_(), torch.ones_like(yhat)
    for title, relaxation in (
        ("cnf", "cnf"),
        ("plan of 3 rules", gdpnet.Plan.lexicographic(rules, 3)),
        ("dnf", "dnf"),
    ):
        for gradient in ("vertex", "qp"):
            layer = gdpnet.ProjectionLayer(
                rules, relaxation=relaxation, gradient=gradient, threads=1
            )
            forward = seconds(lambda layer=layer: layer(leaf, x)) / 256
            both = seconds(lambda layer=layer: layer(leaf, x).backward(ones)) / 256
            own = {"relaxation": title, "gradient": gradient, "batch": 256}
            results.add("relaxations", **own, forward_s=forward, both_s=both)


def beside_cvxpylayers(results: Results) -> None:
    """Samples of one pattern of active rules, since cvxpylayers needs a fixed program."""
    from _cvxpy_layer import CvxpyProjection

    solvers = ["DIFFCP"] + ["MOREAU"] * (importlib.util.find_spec("moreau") is not None)
    rules, x, yhat = data(40_000)
    active = rules.active(x)
    for count in (2, 4):
        patterns, which, counts = active.unique(dim=0, return_inverse=True, return_counts=True)
        counts[patterns.sum(1) != count] = 0
        chosen = int(counts.argmax())
        samples = (which == chosen).nonzero().flatten()
        outside = ~rules.satisfied(yhat[samples], x[samples])
        samples = samples[outside][:256]
        pattern = patterns[chosen].tolist()
        on = [r for r, yes in enumerate(pattern) if yes]
        clauses = [bool(c) for c in rules.evaluate(x[samples[:1]]).clauses[0]]
        xs, ys = x[samples].clone(), yhat[samples].clone()
        leaf, ones = ys.clone().requires_grad_(), torch.ones_like(ys)
        for title, relaxation, clusters in (
            ("cnf", "cnf", [[r] for r in on]),
            ("dnf", "dnf", [on]),
        ):
            ours = gdpnet.ProjectionLayer(
                rules, relaxation=relaxation, gradient=gdpnet.QP(1e-2), threads=1
            )
            vertex = gdpnet.ProjectionLayer(
                rules, relaxation=relaxation, gradient="vertex", threads=1
            )
            point = gdpnet.ProjectionLayer(
                rules, relaxation=relaxation, gradient=gdpnet.QP(1e-2), forward="qp", threads=1
            )
            rows: list[tuple[str, Callable[[], torch.Tensor]]] = [
                ("gdpnet, vertex gradient", lambda layer=vertex: layer(leaf, xs)),
                ("gdpnet, QP gradient", lambda layer=ours: layer(leaf, xs)),
            ]
            for solver in solvers:
                for eps in (0.0, 1e-2):
                    peer = CvxpyProjection(rules, clusters, clauses, eps, solver)
                    name = f"cvxpylayers {solver}, {'QP' if eps else 'LP'}"
                    rows.append((name, lambda peer=peer: peer(leaf, xs)))
            for name, call in rows:
                own = {"active": count, "form": title, "peer": name, "samples": len(samples)}
                try:
                    y = call()
                    leaf.grad = None
                    y.square().sum().backward()
                    gradient = leaf.grad.clone()
                    forward = seconds(call, 3) / len(samples)
                    both = seconds(lambda call=call: call().backward(ones), 3) / len(samples)
                except Exception as error:  # a peer that fails is a row, not an omission
                    failed = f"{type(error).__name__}: {error}"[:110]
                    nothing = dict.fromkeys(MEASURED)
                    results.add("cvxpylayers", **own, **nothing, failed=failed)
                    continue
                broken = 1 - rules.satisfied(y.detach(), xs, 1e-4).double().mean()
                gap = cosine = None
                if name.endswith("QP"):
                    leaf.grad = None
                    reference = point(leaf, xs)
                    reference.square().sum().backward()
                    gap = (reference - y).detach().abs().max()
                    cosine = nn.functional.cosine_similarity(gradient, leaf.grad, 1).median()
                measured = (forward, both, broken, gap, cosine)
                named = dict(zip(MEASURED, measured, strict=True))
                results.add("cvxpylayers", **own, **named, failed=None)


def training(results: Results) -> None:
    """20 epochs on 500 samples, batch 32, with and without the layer; the median of five runs."""
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x, y = (t.double() for t in model.sample(500, split="iid", seed=0))
    times: dict[str | None, list[float]] = {}
    for _ in range(5):
        for name in (None, "vertex", "qp", "straight_through", "auto"):
            torch.manual_seed(0)
            network = model.network().double()
            layer = None
            if name is not None:
                layer = gdpnet.ProjectionLayer(rules, gradient=name, threads=1)
            optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3)
            start = time.perf_counter()
            for _ in range(20):
                for xs, ys in zip(x.split(32), y.split(32), strict=True):
                    found = network(xs) if layer is None else layer(network(xs), xs)
                    loss = (found - ys).square().mean()
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
            times.setdefault(name, []).append(time.perf_counter() - start)
    for name, taken in times.items():
        results.add(
            "training",
            gradient=name or "no layer",
            seconds=statistics.median(taken),
            least=min(taken),
            most=max(taken),
            runs=len(taken),
        )


def memory(results: Results, steps: int) -> None:
    """What many steps leave behind, from a tenth of them on."""
    rules, x, yhat = data(32)
    layer, leaf = gdpnet.ProjectionLayer(rules, gradient="qp"), yhat.clone().requires_grad_()
    tracemalloc.start()
    marks = []
    for step in range(steps):
        layer(leaf, x).sum().backward()
        if step in (steps // 10, steps - 1):
            marks.append((tracemalloc.get_traced_memory()[0], resident_bytes()))
    tracemalloc.stop()
    traced, resident = (
        None if after is None else after - before for before, after in zip(*marks, strict=True)
    )
    results.add("memory", steps=steps, traced_bytes=traced, resident_bytes=resident)


def main() -> None:
    """Run everything."""
    arguments = parsed(parser(__doc__, "fewer steps"))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    results = Results("layer", arguments, packages=("cvxpylayers", "diffcp", "moreau"))
    overhead(results)
    relaxations(results)
    training(results)
    memory(results, 1000 if arguments.quick else 10_000)
    if importlib.util.find_spec("cvxpylayers") is None:
        print("\ncvxpylayers is not installed: pip install cvxpylayers moreau")
    else:
        beside_cvxpylayers(results)
    results.write()


if __name__ == "__main__":
    main()
