"""The torch layer: its overhead, its gradients, and cvxpylayers on the same programs.

    python benchmarks/layer.py [--quick]

Cooling, one thread, one run; times are medians, claims are ratios. cvxpylayers (with diffcp and
Clarabel, and with MOREAU) is measured where it is installed: `pip install cvxpylayers moreau`.
"""

import argparse
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
from _measure import seconds
from torch import nn

import gdpnet
from gdpnet.ir.instance import Instance
from gdpnet.solve.exact.backend import engine_of
from gdpnet.solve.exact.options import SearchOptions
from gdpnet.study import load_model

MODELS = Path(__file__).parents[1] / "models"


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


def overhead() -> None:
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
        print(
            f"\nbatch {batch}: kernel {1e6 * kernel:.1f} us, with final dictionaries "
            f"{1e6 * kept:.1f}; forward and backward of a torch function that does nothing "
            f"{1e6 * own:.1f}"
        )
        for name in ("straight_through", "vertex", "qp"):
            layer = gdpnet.ProjectionLayer(rules, gradient=name, threads=1)

            def without(layer: nn.Module = layer) -> None:
                with torch.no_grad():
                    layer(yhat, x)

            free = seconds(without)
            forward = seconds(lambda layer=layer: layer(leaf, x))
            both = seconds(lambda layer=layer: layer(leaf, x).backward(ones))
            print(
                f"  {name:17s} no grad {1e6 * free:7.1f} us ({free / kernel:.2f} x kernel), "
                f"forward {1e6 * forward:7.1f} ({forward / kept:.2f} x kernel with dictionaries), "
                f"forward and backward {1e6 * both:7.1f} ({both / forward:.2f} x forward)"
            )


def relaxations() -> None:
    """CNF, a plan and DNF, forward and backward, at batch 256."""
    rules, x, yhat = data(256)
    leaf, ones = yhat.clone().requires_grad_(), torch.ones_like(yhat)
    print("\nbatch 256, us a sample")
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
            print(
                f"  {title:16s} {gradient:7s} forward {1e6 * forward:7.2f}, forward and backward "
                f"{1e6 * both:7.2f}"
            )


def beside_cvxpylayers() -> None:
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
        print(f"\n{count} active rules, {len(samples)} samples, eps 1e-2, us a sample")
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
                rules, relaxation, gradient=gdpnet.QP(1e-2), forward="qp", threads=1
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
            best = None
            for name, call in rows:
                try:
                    y = call()
                    leaf.grad = None
                    y.square().sum().backward()
                    gradient = leaf.grad.clone()
                    forward = seconds(call, 3) / len(samples)
                    both = seconds(lambda call=call: call().backward(ones), 3) / len(samples)
                except Exception as error:  # a peer that fails is a row, not an omission
                    print(f"  {title} {name:26s} failed: {type(error).__name__}: {error}"[:110])
                    continue
                best = best or both
                broken = 1 - rules.satisfied(y.detach(), xs, 1e-4).double().mean()
                note = ""
                if name.endswith("QP"):
                    leaf.grad = None
                    reference = point(leaf, xs)
                    reference.square().sum().backward()
                    gap = (reference - y).detach().abs().max()
                    cosine = nn.functional.cosine_similarity(gradient, leaf.grad, 1).median()
                    note = f", y differs by {gap:.0e}, gradients' median cosine {cosine:.3f}"
                print(
                    f"  {title} {name:26s} forward {1e6 * forward:8.2f}, with backward "
                    f"{1e6 * both:8.2f} ({both / best:6.1f} x), breaks a rule on "
                    f"{100 * broken:.1f} %{note}"
                )


def training() -> None:
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
    medians = {name: statistics.median(t) for name, t in times.items()}
    plain = medians.pop(None)
    told = ", ".join(f"{name} {t:.2f} s ({t / plain:.2f} x)" for name, t in medians.items())
    print(f"\ntraining 20 epochs, n = 500, batch 32: no layer {plain:.2f} s, {told}")


def memory(steps: int) -> None:
    """Memory over many steps."""
    rules, x, yhat = data(32)
    layer, leaf = gdpnet.ProjectionLayer(rules, gradient="qp"), yhat.clone().requires_grad_()
    tracemalloc.start()
    marks = []
    for step in range(steps):
        layer(leaf, x).sum().backward()
        if step in (steps // 10, steps - 1):
            marks.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    print(
        f"\nmemory after {steps} steps: {(marks[1] - marks[0]) / 1e3:+.1f} kB since a tenth of them"
    )


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    overhead()
    relaxations()
    training()
    memory(1000 if quick else 10_000)
    if importlib.util.find_spec("cvxpylayers") is None:
        print("\ncvxpylayers is not installed: pip install cvxpylayers moreau")
    else:
        beside_cvxpylayers()


if __name__ == "__main__":
    main()
