"""What native.py times, in the words that the old tree and the new one both understand.

Nothing of gdpnet is imported before a case is made: the process has the tree that it was given.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Timed:
    """A call, the number of samples that it answers, and the nodes of its search."""

    call: Callable[[], Any]
    samples: int = 1
    nodes: float | None = None


# ---- problems -----------------------------------------------------------------------------------


@cache
def tree() -> Path:
    """The folder that gdpnet is imported from, with models and peers of its own."""
    import gdpnet

    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    return Path(gdpnet.__file__).parents[1]


@cache
def _cooling(split: str, batch: int) -> tuple[Any, Any, Any]:
    """Rules, inputs and uniform predictions; with "both", half of the inputs are shifted."""
    import torch

    from gdpnet.study import load_model

    model = load_model(tree() / "models" / "cooling")
    splits = ("iid", "ood") if split == "both" else (split,)
    parts = [model.sample(batch, split=s, seed=0)[0].double() for s in splits]
    x = torch.stack(parts, 1).flatten(0, 1)[:batch].clone()
    yhat = torch.rand(batch, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return model.build(), x, yhat


@cache
def _peer_problem(name: str, count: int) -> Any:
    from peers.cases import make

    return make(name, count)


def _of_peers(name: str) -> tuple[Any, Any, Any]:
    import torch
    from peers.cases import rules_of

    problem = _peer_problem(name, 256)
    x, yhat = (torch.from_numpy(v.copy()) for v in (problem.random.x, problem.random.yhat))
    return rules_of(problem.source), x, yhat


# ---- the exact engine ---------------------------------------------------------------------------


def _engine(rules: Any, d: int) -> tuple[Any, Any, Any]:
    import numpy as np

    from gdpnet.ir.instance import Instance
    from gdpnet.solve.exact.backend import engine_of
    from gdpnet.solve.exact.options import SearchOptions

    return engine_of(rules), partial(Instance.of, rules), SearchOptions(np.ones(d), threads=1)


def _search(split: str, batch: int, with_rows: bool) -> Timed:
    rules, x, yhat = _cooling(split, batch)
    engine, instance_of, options = _engine(rules, 3)
    xs, ys = x.numpy(), yhat.numpy()
    instance = instance_of(xs)
    nodes = float(engine.project(instance, ys, options).nodes.mean())
    if with_rows:
        return Timed(lambda: engine.project(instance_of(xs), ys, options), batch, nodes)
    return Timed(lambda: engine.project(instance, ys, options), batch, nodes)


def _project(split: str, batch: int, kind: str = "float64", **how: Any) -> Timed:
    import torch

    import gdpnet

    rules, x, yhat = (
        v.to(getattr(torch, kind)) if hasattr(v, "to") and i else v
        for i, v in enumerate(_cooling(split, batch))
    )
    return Timed(lambda: gdpnet.project(rules, yhat, x, threads=1, **how), batch)


def _stress(k: int) -> Timed:
    import numpy as np

    from gdpnet.study import load_model

    tree()
    model = load_model(tree() / "models" / "stress")
    rules = model.build(k=k)
    x = model.module.sample(256, split="iid", seed=0, k=k)[0].numpy()
    yhat = np.random.default_rng(k).uniform(0, 1, (256, len(rules.output_names)))
    engine, instance_of, options = _engine(rules, yhat.shape[1])
    instance = instance_of(x)
    nodes = float(engine.project(instance, yhat, options).nodes.mean())
    return Timed(lambda: engine.project(instance, yhat, options), 256, nodes)


def _large(name: str) -> Timed:
    """Five samples, one after the other."""
    import numpy as np

    from gdpnet.testing.problems import large

    tree()
    case = getattr(large, name)(5)
    rules, yhat = case.rules(), case.yhat.numpy()
    engine, instance_of, options = _engine(rules, yhat.shape[1])
    one = instance_of(np.zeros((1, 0)))
    found = [engine.project(one, y[None], options) for y in yhat]
    nodes = float(np.mean([solved.nodes[0] for solved in found]))
    return Timed(lambda: [engine.project(one, y[None], options) for y in yhat], 5, nodes)


def _products() -> Timed:
    """Terms of the DNF that are at most 0.1 further away than the nearest."""
    import numpy as np

    from gdpnet.solve.exact.products import products_within

    rules, x, yhat = _cooling("both", 256)
    engine, instance_of, options = _engine(rules, 3)
    instance, ys = instance_of(x.numpy()), yhat.numpy()
    reach = np.tile(
        engine.project(instance, ys, options).distance + 0.1, (len(engine.components), 1)
    )
    return Timed(lambda: products_within(engine, instance, ys, np.ones(3), reach, 64), 256)


# ---- layers -------------------------------------------------------------------------------------


def _layer(batch: int, backward: bool, source: str = "cooling", **how: Any) -> Timed:
    import torch

    import gdpnet

    rules, x, yhat = _cooling("both", batch) if source == "cooling" else _of_peers(source)
    tree()
    layer = gdpnet.ProjectionLayer(rules, threads=1, **how)
    leaf, ones = yhat.clone().requires_grad_(), torch.ones_like(yhat)

    def both() -> Any:
        leaf.grad = None
        layer(leaf, x).backward(ones)
        return leaf.grad

    return Timed(both if backward else lambda: layer(leaf, x), len(yhat))


def _training(gradient: str | None) -> Timed:
    """20 epochs on 500 samples in batches of 32."""
    import torch

    import gdpnet
    from gdpnet.study import load_model

    model = load_model(tree() / "models" / "cooling")
    rules = model.build()
    x, y = (t.double() for t in model.sample(500, split="iid", seed=0))
    layer = gradient and gdpnet.ProjectionLayer(rules, gradient=gradient, threads=1)
    batches = list(zip(x.split(32), y.split(32), strict=True))

    def train() -> Any:
        torch.manual_seed(0)
        network = model.network().double()
        optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3)
        for _ in range(20):
            for xs, ys in batches:
                found = layer(network(xs), xs) if layer else network(xs)
                loss = (found - ys).square().mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        return loss.detach()

    return Timed(train)


# ---- relaxations, ties --------------------------------------------------------------------------


def _relaxed(source: str, plan: str) -> Timed:
    import gdpnet

    rules, x, yhat = _cooling("both", 256) if source == "cooling" else _of_peers(source)
    three = (("R1_hot", "R3_humid", "R5_demand_response"),)
    relaxation = gdpnet.Plan(three) if plan == "three merged" else plan
    return Timed(
        lambda: gdpnet.project(rules, yhat, x, relaxation=relaxation, threads=1), len(yhat)
    )


def _highs(source: str) -> Timed:
    """HiGHS on the CNF's program, kept and changed in place: the same in both processes."""
    import numpy as np
    import torch
    from peers.adapters.highs import ConjunctiveInPlace

    tree()
    problem = _peer_problem(source, 256)
    peer, index = ConjunctiveInPlace(problem), np.arange(len(problem.random))
    peer.prepare(problem.random, index)
    yhat = torch.from_numpy(problem.random.yhat)
    return Timed(lambda: peer.layer(yhat, problem.random, index), len(yhat))


def _least_norm(source: str) -> Timed:
    import gdpnet

    rules, x, yhat = _cooling("both", 256) if source == "cooling" else _of_peers(source)
    solver = gdpnet.solve.Exact(tie="least_norm")
    return Timed(lambda: gdpnet.project(rules, yhat, x, solver=solver, threads=1), len(yhat))


LARGE = ("dense_rules", "label_groups", "job_shop", "strip_packing", "label_clauses")

# By group and name.
CASES: dict[tuple[str, str], Callable[[], Timed]] = {
    **{
        (f"cooling, {split}", f"batch {batch}, {what}"): make
        for split in ("iid", "ood")
        for batch in (4096, 256)
        for what, make in {
            "search": partial(_search, split, batch, False),
            "with rows": partial(_search, split, batch, True),
            "`gdpnet.project`": partial(_project, split, batch),
        }.items()
    },
    **{
        ("a single prediction", f"`gdpnet.project`, {kind}"): partial(_project, "iid", 1, kind)
        for kind in ("float64", "float32")
    },
    **{
        ("layer", f"batch {batch}, {gradient}, forward{both}"): partial(
            _layer, batch, bool(both), gradient=gradient
        )
        for batch in (1, 256)
        for gradient in ("vertex", "qp")
        for both in ("", " and backward")
    },
    ("training, 20 epochs of 500", "the network alone"): partial(_training, None),
    ("training, 20 epochs of 500", "with the layer, vertex"): partial(_training, "vertex"),
    **{("stress, batch 256, search", f"k = {k}"): partial(_stress, k) for k in (4, 8, 10, 20)},
    **{("larger problems, search", name): partial(_large, name) for name in LARGE},
    ("relaxations, batch 256", "cooling, CNF"): partial(_relaxed, "cooling", "cnf"),
    ("relaxations, batch 256", "cooling, three merged"): partial(
        _relaxed, "cooling", "three merged"
    ),
    ("relaxations, batch 256", "pbmc, 2 rules, CNF"): partial(_relaxed, "pbmc, 2 rules", "cnf"),
    ("relaxations, batch 256", "cooling, CNF, qp gradient, forward and backward"): partial(
        _layer, 256, True, relaxation="cnf", gradient="qp"
    ),
    ("relaxations, batch 256", "pbmc, 2 rules, CNF, qp gradient, forward and backward"): partial(
        _layer, 256, True, "pbmc, 2 rules", relaxation="cnf", gradient="qp"
    ),
    ("HiGHS in place, batch 256", "cooling, CNF"): partial(_highs, "cooling"),
    ("HiGHS in place, batch 256", "pbmc, 2 rules, CNF"): partial(_highs, "pbmc, 2 rules"),
    ("least norm, batch 256", "cooling"): partial(_least_norm, "cooling"),
    ("least norm, batch 256", "a simplex (pbmc, 2 rules)"): partial(_least_norm, "pbmc, 2 rules"),
    ("products, batch 256", "cooling, within 0.1"): _products,
}


# ---- fresh processes ----------------------------------------------------------------------------

FIRST = {
    "projection": {},
    "gradient: vertex": {"gradient": "vertex"},
    "gradient: qp": {"gradient": "qp"},
    "gradient: straight_through": {"gradient": "straight_through"},
    "relaxation: cnf": {"relaxation": "cnf"},
    "relaxation: a plan": {"relaxation": "pdnf:2"},
    "tie: least_norm": {"tie": "least_norm"},
    "norm: l2": {"norm": "l2"},
}


def first_use(name: str) -> dict[str, float]:
    """Processor time of the imports, of reading rules and of a first use; this process's peak.

    Returns:
        "torch", "gdpnet", "rules" and "first" in seconds, and for both imports and at the end
        "..._peak" in bytes.
    """
    found: dict[str, float] = {}

    def mark(what: str, start: float) -> float:
        found[what] = time.process_time() - start
        found[f"{what}_peak"] = _peak()
        return time.process_time()

    start = time.process_time()
    import torch

    start = mark("torch", start)
    import gdpnet

    start = mark("gdpnet", start)
    torch.set_num_threads(1)
    rules, yhat, x = _readme()
    start = mark("rules", start)
    how = dict(FIRST[name])
    if "tie" in how:
        how = {"solver": gdpnet.solve.Exact(tie=how["tie"])}
    if "gradient" in how:
        layer = gdpnet.ProjectionLayer(rules, threads=1, **how)
        layer(yhat.requires_grad_(), x).sum().backward()
    else:
        gdpnet.project(rules, yhat, x, threads=1, **how)
    mark("first", start)
    return found


def _readme() -> tuple[Any, Any, Any]:
    """The README's first example, and a second rule so that two can be merged."""
    import pyomo.environ as pyo
    import torch
    from pyomo.gdp import Disjunction

    import gdpnet

    m = pyo.ConcreteModel()
    m.Ta = pyo.Param(mutable=True, initialize=20.0)
    m.f = pyo.Var(bounds=(0, 1))
    m.c = pyo.Var(bounds=(0, 1))
    m.demand = pyo.Constraint(expr=0.8 * m.f + m.c >= 0.1 + 0.01 * m.Ta)
    m.hot = Disjunction(expr=[[m.c >= 0.45], [m.f >= 0.75]])
    m.calm = Disjunction(expr=[[m.c <= 0.8], [m.f <= 0.2]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.hot] = m.Ta >= 28
    rules = gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.Ta])
    x = torch.tensor([[20.0], [30.0], [30.0]])
    return rules, torch.tensor([[0.2, 0.3], [0.6, 0.1], [0.1, 0.9]]), x


def _peak() -> float:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024.0 * int(x.split()[1]) for x in lines if x.startswith("VmHWM:")), float("nan"))


def digest(answer: Any) -> float:
    """One number of an answer, to see that both engines give the same."""
    import numpy as np

    if isinstance(answer, list):
        return sum(digest(one) for one in answer)
    for name in ("distance", "value"):
        if hasattr(answer, name):
            answer = getattr(answer, name)
            break
    found = np.asarray(answer.detach() if hasattr(answer, "detach") else answer)
    return float(found[np.isfinite(found)].sum())
