# %% [markdown]
# # 5. Exact at scale
#
# You will learn why the exact projection takes milliseconds although the DNF behind it has more
# terms than anybody can write down, where that ends, what gdpnet does then, and how to get a proof
# of an answer that can be checked without trusting the solver. Time: ten minutes.

# %%
import math
import os
import time
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import pyomo.environ as pyo
import torch
from matplotlib.patches import Rectangle
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.study import load_model

torch.set_num_threads(1)
SMOKE = bool(os.environ.get("GDPNET_SMOKE"))  # small sizes, to test that everything runs
MODELS = Path("models") if Path("models").exists() else Path("../models")

# %% [markdown]
# ## Rectangles that must not overlap
#
# A network proposes where eight rectangles should stand on a square. No two of them may overlap:
# for each pair, one is left of the other, or right, above, or below. That is a Disjunction of four
# terms for each of 28 pairs.


# %%
def packing(count, seed=0):
    """Rules, sizes of the rectangles (count, 2), side of the square."""
    draw = torch.Generator().manual_seed(seed)
    size = (1 + 3 * torch.rand(count, 2, generator=draw, dtype=torch.float64)).round(decimals=1)
    side = round(math.sqrt(1.8 * size.prod(1).sum().item()), 1)
    w, h = size.T.tolist()
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(count), bounds=lambda m, i: (0, side - w[i]))
    m.y = pyo.Var(range(count), bounds=lambda m, i: (0, side - h[i]))
    m.apart = Disjunction(
        list(combinations(range(count), 2)),
        rule=lambda m, i, j: [
            [m.x[i] + w[i] <= m.x[j]],
            [m.x[j] + w[j] <= m.x[i]],
            [m.y[i] + h[i] <= m.y[j]],
            [m.y[j] + h[j] <= m.y[i]],
        ],
    )
    return gdpnet.RuleModel(m, outputs=[m.x, m.y]), size, side


rules, size, side = packing(8)
terms = 4 ** len(rules.names)
print(f"{len(rules.names)} rules, {terms:.1e} terms in the DNF")
assert terms > 1e16

# %% [markdown]
# We project 100 layouts drawn at random, and 100 that are sensible but imprecise, as a trained
# network would give them: a valid layout with noise. Times are the best of five runs, on one
# thread.


# %%
def fastest(rules, predictions, x=None, runs=5, **keywords):
    """Seconds a sample, the best of some runs; outputs; what is known about them."""
    layer = gdpnet.ProjectionLayer(rules, threads=1, **keywords)
    best = math.inf
    for _ in range(runs):
        start = time.perf_counter()
        y, info = layer(predictions, x, return_info=True)
        best = min(best, (time.perf_counter() - start) / len(predictions))
    return best, y, info


draw = torch.Generator().manual_seed(1)
random = torch.rand(100, 16, generator=draw, dtype=torch.float64) * rules.upper
random_seconds, repaired, of_random = fastest(rules, random)
sensible = repaired + 0.3 * torch.randn(100, 16, generator=draw, dtype=torch.float64)
sensible_seconds, y, of_sensible = fastest(rules, sensible)
assert rules.satisfied(repaired).all()
assert rules.satisfied(y).all()
assert not rules.satisfied(sensible).any()
for name, seconds, info in (
    ("random", random_seconds, of_random),
    ("sensible", sensible_seconds, of_sensible),
):
    nodes = info.nodes
    told = f"nodes median {nodes.median()}, most {nodes.max()}"
    print(f"{name:8}: {1e3 * seconds:.3f} ms a sample; {told}")
    assert (info.status == gdpnet.Status.PROJECTED).all()
    assert nodes.max() < 10_000
assert of_sensible.nodes.median() < of_random.nodes.median()

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 4))
for ax, layout, title in zip(
    axes, (random[0], repaired[0]), ("proposed", "projected"), strict=True
):
    for k in range(8):
        corner = layout[k].item(), layout[8 + k].item()
        box = Rectangle(corner, *size[k].tolist(), facecolor=("#0072B2", 0.2), edgecolor="#0072B2")
        ax.add_patch(box)
        ax.annotate(str(k), (corner[0] + 0.15, corner[1] + 0.15))
    ax.set(xlim=(0, side), ylim=(0, side), aspect="equal")
    ax.set_title(title, loc="left")

# %% [markdown]
# ## Why it is fast
#
# The DNF's optimum is the least of the distances to its single terms. So nobody has to write the
# terms down; one of them has to be found, and the others have to be shown to be no nearer. The
# engine searches like this:
#
# 1. Start at the prediction. That is the nearest point as long as no rule is looked at.
# 2. Find a rule none of whose disjuncts holds. If there is none, the point is an answer.
# 3. Branch on that rule only: enforce one of its disjuncts, and repair the point by a few pivots of
#    a dual simplex from where it stands. Each pivot raises a lower bound on the distance.
# 4. Give a branch up as soon as its bound reaches the distance of the best answer so far.
#
# Even in a random layout most pairs of rectangles are apart anyway: their rules hold by themselves
# and are never branched on. What counts is how many rules have to be *repaired*, and that is why
# sensible predictions cost so much less than random ones. The nodes above are all that was looked
# at, of those 10^16 terms.

# %%
for name, layouts in (("random", random), ("sensible", sensible)):
    hold = (rules.violation(layouts) <= 1e-9).double().mean().item()
    print(f"{name:8}: {hold:.0%} of the rules hold before anything is repaired")
    assert hold > 0.5

# %% [markdown]
# An independent check, with six rectangles: the same by a mixed-integer program (`solver="milp"`,
# HiGHS), which knows nothing of this engine.

# %%
six, _, _ = packing(6)
some = torch.rand(2, 12, generator=draw, dtype=torch.float64) * six.upper
engine_seconds, answers, by_engine = fastest(six, some)
milp_seconds, _, by_milp = fastest(six, some, runs=1, solver="milp")
difference = (by_milp.distance - by_engine.distance).abs().max().item()
print(f"engine {1e3 * engine_seconds:.2f} ms, MILP {1e3 * milp_seconds:.0f} ms a sample")
print(f"largest difference of the distances: {difference:.1e}")
assert difference < 1e-6

# %% [markdown]
# ## How it grows
#
# The model `stress` has k two-term rules on three outputs, all active. We compare the engine with
# the DNF written out as one linear program and solved by HiGHS.

# %%
stress = load_model(MODELS / "stress")
x, _ = stress.sample(32, "iid", seed=0)
predictions = torch.rand(32, 3, generator=draw, dtype=torch.float64)
engine, written = {}, {}
for k in (2, 4, 6) if SMOKE else (2, 4, 6, 8, 10, 20, 40):
    many = stress.build(k=k)
    engine[k], _, exact = fastest(many, predictions, x)
    told = f"{k:2} rules, {2.0**k:.0e} terms: engine {1e6 * engine[k]:7.1f} us"
    if k <= 10:
        written[k], _, out = fastest(many, predictions, x, solver="highs")
        assert torch.allclose(out.distance, exact.distance, atol=1e-7)
        told += f", written out {1e6 * written[k]:8.1f} us"
    print(told)
assert all(engine[k] < written[k] for k in written)

# %%
figure, ax = plt.subplots(figsize=(6.4, 3.8))
ax.plot(
    list(written),
    [1e6 * s for s in written.values()],
    "s--",
    color="#D55E00",
    label="DNF written out, HiGHS",
)
ax.plot(
    list(engine), [1e6 * s for s in engine.values()], "o-", color="#0072B2", label="exact engine"
)
ax.legend(frameon=False)
_ = ax.set(xlabel="rules", ylabel="microseconds a sample", yscale="log")

# %% [markdown]
# The program that is written out grows with what is left of 2^k products after empty ones were
# dropped. The engine's work does not.
#
# ## Limits
#
# The search is exponential in the worst case: the problem is NP-hard, and no trick changes that.
# With more rectangles in a tight square more rules have to be repaired at once. Two limits keep a
# batch from waiting for its hardest sample, and the status tells what happened:
#
# * `node_limit`: what the engine has not finished by then goes to MILP, and `info.solver` says so.
# * `time_limit`, in seconds a sample: then the best output found is returned, with status `LIMIT`
#   (`UNSOLVED` where none was found).
#   It satisfies the rules; it is only not proved to be the nearest. (If nothing was found at all,
#   its distance is infinite.)

# %%
p = gdpnet.project(
    packing(5)[0],
    torch.full((10,), 3.0, dtype=torch.float64),
    solver=gdpnet.solve.Exact(node_limit=2),
)
print(gdpnet.Status(p.status.item()).name, "by", p.info.solver)
assert p.status.item() == gdpnet.Status.PROJECTED
assert "milp" in p.info.solver

tight, _, _ = packing(12)
hard = torch.rand(6, 24, generator=draw, dtype=torch.float64) * tight.upper
p = gdpnet.project(tight, hard, time_limit=0.05)
print(f"{len(tight.names)} rules, {4.0 ** len(tight.names):.0e} terms, 0.05 s a sample:")
print([gdpnet.Status(s).name for s in p.status.tolist()])
found = p.distance.isfinite()
assert tight.satisfied(p.y[found]).all()

# %% [markdown]
# ## Certificates
#
# Why believe that nothing nearer exists? `gdpnet.proof.certify` makes a proof. It is a tree: an
# inner node names a rule that has to hold and has a child for each disjunct; a leaf carries
# multipliers of rows, from which a bound follows by linear duality. `gdpnet.proof.verify` walks the
# tree and computes the bounds anew, in exact rational arithmetic. It solves nothing and trusts
# nothing.

# %%
prediction = some[0]
answer = answers[0]
certificate = gdpnet.proof.certify(six, prediction)
verdict = gdpnet.proof.verify(six, prediction, answer, certificate=certificate)
print(certificate)
print(verdict.reason)
assert verdict

# %% [markdown]
# A proof that can never fail proves nothing. So let us claim something false: a layout that also
# satisfies all rules but is a little farther away.

# %%
other = gdpnet.project(six, prediction + 0.2).y
print("satisfies the rules:", six.satisfied(other).item())
verdict = gdpnet.proof.verify(six, prediction, other, certificate=certificate)
print(bool(verdict), "-", verdict.reason)
assert six.satisfied(other)
assert not verdict

# %% [markdown]
# ## Something to try
#
# * Make the square tighter (1.8 in `packing` is its area relative to that of the rectangles). Where
#   does the search begin to hurt?
# * Give `project` the batch with `threads=2`. The answers do not depend on it.
# * Certify a contradiction: two rectangles that are too large for the square.
