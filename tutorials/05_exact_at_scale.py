# %% [markdown]
# # 5. Exact at scale
#
# You will learn why the exact projection takes milliseconds although the DNF behind it has more terms than anybody can write down, where that ends, what gdpnet does then, and how to get a proof of an answer that can be checked without trusting the solver. Time: ten minutes.

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
# A network proposes where eight rectangles should stand on a square. No two of them may overlap: for each pair, one is left of the other, or right, above, or below. That is a Disjunction of four terms for each of 28 pairs.


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
# We project 100 clumsy proposals and take the best of five runs, since the first has to get ready.

# %%
draw = torch.Generator().manual_seed(1)
proposals = torch.rand(100, 16, generator=draw, dtype=torch.float64) * rules.upper


def fastest(rules, predictions, runs=5, **keywords):
    """Seconds a sample, the best of some runs, and the projection."""
    best = math.inf
    for _ in range(runs):
        start = time.perf_counter()
        p = gdpnet.project(rules, predictions, **keywords)
        best = min(best, (time.perf_counter() - start) / len(predictions))
    return best, p


seconds, p = fastest(rules, proposals)
print(
    f"{1e3 * seconds:.2f} ms a sample; nodes: median {p.info.nodes.median()}, most {p.info.nodes.max()}"
)
print(p)
assert rules.satisfied(None, p.y).all()
assert (p.status == gdpnet.Status.PROJECTED).all()
assert p.info.nodes.max() < 1e5
assert seconds < 0.05

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4.5))
for ax, layout, title in zip(axes, (proposals[0], p.y[0]), ("proposed", "projected"), strict=True):
    for k in range(8):
        corner = layout[k].item(), layout[8 + k].item()
        ax.add_patch(Rectangle(corner, *size[k], facecolor=("#0072B2", 0.25), edgecolor="#0072B2"))
        ax.annotate(str(k), (corner[0] + 0.15, corner[1] + 0.15))
    ax.set(xlim=(0, side), ylim=(0, side), aspect="equal", title=title)

# %% [markdown]
# ## Why it is fast
#
# The DNF's optimum is the least of the distances to its single terms. So nobody has to write the terms down; one of them has to be found, and the others have to be shown to be no nearer. The engine searches like this:
#
# 1. Start at the prediction. That is the nearest point as long as no rule is looked at.
# 2. Find a rule none of whose disjuncts holds. If there is none, the point is an answer.
# 3. Branch on that rule only: enforce one of its disjuncts, and repair the point with a few pivots of a dual simplex from where it stands. Each pivot raises a lower bound on the distance.
# 4. Give a branch up as soon as its bound reaches the distance of the best answer so far.
#
# Most pairs of rectangles are far apart anyway: their rules hold by themselves and are never branched on. The depth of the search is the number of rules that have to be *repaired*, not the number of rules. The nodes above are all that was looked at, of those 10^16 terms.
#
# An independent check: the same by a mixed-integer program (`solver="milp"`, HiGHS), which knows nothing of this engine.

# %%
few = proposals[: 2 if SMOKE else 5]
milp_seconds, by_milp = fastest(rules, few, runs=1, solver="milp")
print(f"MILP: {1e3 * milp_seconds:.0f} ms a sample")
difference = (by_milp.distance - p.distance[: len(few)]).abs().max().item()
print(f"largest difference of the distances: {difference:.1e}")
assert difference < 1e-6

# %% [markdown]
# ## How it grows
#
# The model `stress` has k two-term rules in three outputs, all active. We compare the exact engine with the DNF written out as a linear program and solved by HiGHS, as the paper does.

# %%
stress = load_model(MODELS / "stress")
engine, written = {}, {}
for k in (2, 4, 6, 8) if SMOKE else (2, 4, 6, 8, 10, 20, 40):
    many = stress.build(k=k)
    x, target = stress.sample(64, "iid", 0)
    predictions = torch.rand(64, 3, generator=torch.Generator().manual_seed(k), dtype=torch.float64)
    start = time.perf_counter()
    for _ in range(5):
        exact = gdpnet.project(many, predictions, x)
    engine[k] = (time.perf_counter() - start) / (5 * len(x))
    told = f"k = {k:2}, {2**k:.0e} terms: engine {1e6 * engine[k]:8.1f} us"
    if k <= 10:
        gdpnet.project(many, predictions[:2], x[:2], solver="highs")  # to get ready
        start = time.perf_counter()
        out = gdpnet.project(many, predictions[:8], x[:8], solver="highs")
        written[k] = (time.perf_counter() - start) / 8
        told += f", written out {1e6 * written[k]:10.1f} us"
        assert torch.allclose(out.distance, exact.distance[:8], atol=1e-7)
    print(told)

# %%
