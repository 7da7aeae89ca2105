# %% [markdown]
# # 2. CNF, partial DNF, DNF
#
# You will learn three ways to make rules convex, see in pictures what each keeps and loses, count
# what each costs, and find where the cheap one breaks rules. First by Pyomo transformations, step
# by step; then in one call. Time: ten minutes.
#
# * **CNF** (*conjunctive normal form*): a hull for each rule, all of them intersected. Small.
# * **DNF** (*disjunctive normal form*): list every combination of disjuncts (*product*) and take
#   one hull of all of them. Exact, and up to 2 x 2 x ... x 2 products.
# * **Partial DNF**: merge some rules into one, keep the others apart. Merging two rules is called a
#   *basic step*; CNF takes none, DNF takes all.
#
# In each case the distance is lifted into the disjuncts first (tutorial 0).

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import pyomo.environ as pyo
import torch

import gdpnet
from gdpnet.study import compare, load_model

MODELS = Path("models") if Path("models").exists() else Path("../models")

# %% [markdown]
# ## The picture
#
# Two rules in the plane, as in Figure 1 of the paper. Each has two boxes as disjuncts; both hold in
# the two hatched rectangles. The DNF's outline is the hull of these. The CNF's outline, the
# intersection of two hulls, reaches up to where a box of the second rule stands that meets no box
# of the first.

# %%
toy = load_model(MODELS / "toy").build(name="figure1")
print(toy)
ax = gdpnet.plot.plot_region(toy, relaxation=["cnf", "dnf"], yhat=[4.75, 9.5])

# %% [markdown]
# The same prediction goes to the nearest point of the hatched region with the DNF, and with the CNF
# to a point where both rules are broken. gdpnet never hides that: the status of such a sample is
# `RELAXED`.

# %%
prediction = torch.tensor([4.75, 9.5], dtype=torch.float64)
for relaxation in ("cnf", "dnf"):
    p = gdpnet.project(toy, prediction, relaxation=relaxation)
    told = f"y = {p.y.tolist()}, value {p.value.item():.3f}, distance {p.distance.item():.3f}"
    print(f"{relaxation}: {told}, {gdpnet.Status(p.status.item()).name}")
assert p.y.tolist() == [6, 5]

# %% [markdown]
# `value` is the optimum of the linear program: always a lower bound on the true distance, and the
# tighter the relaxation the higher. `distance` is how far the returned point really is.
#
# ## A real model, step by step
#
# The paper's cooling plant has a fan `f`, a chiller `c`, a pump `p`, and seven rules whose
# conditions depend on the weather and on events. It is an ordinary Pyomo.GDP model.

# %%
cooling = load_model(MODELS / "cooling")
rules = cooling.build()
print(rules)

# %% [markdown]
# On a hot and humid day with a demand-response event and the chiller under maintenance, four of the
# rules apply at once.

# %%
x = torch.tensor([35.0, 80.0, 0.5, 0.3, 1.0, 0.0, 1.0], dtype=torch.float64)
yhat = torch.tensor([0.55, 0.47, 0.30], dtype=torch.float64)
active = [name for name, on in zip(rules.names, rules.active(x).tolist(), strict=True) if on]
print("active:", active)
print(
    "broken:",
    [n for n, v in zip(rules.names, rules.violation(yhat, x).tolist(), strict=True) if v > 1e-6],
)
assert len(active) == 4

# %% [markdown]
# We take the model at this input: set the Params, switch off the rules that do not apply. Then four
# transformations, each registered with Pyomo under its name, make a linear program of it:
#
# 1. `gdpnet.basic_steps` merges the rules of a cluster into one Disjunction of their products;
# 2. `gdpnet.lift_projection` writes the distance and the global constraints into every disjunct;
# 3. `gdpnet.hull` replaces each Disjunction by its hull (Pyomo's `gdp.hull`, with Params kept
#    symbolic);
# 4. `core.relax_integer_vars` lets the choice between disjuncts be a weight between 0 and 1.


# %%
def at_this_input():
    m = cooling.module.pyomo_model()
    for name, value in zip(rules.input_names, x.tolist(), strict=True):
        m.find_component(name).set_value(value)
    for name in set(rules.names) - set(active):
        m.find_component(name).deactivate()
        for disjunct in m.find_component(name).disjuncts:
            disjunct.deactivate()
    return m


m = at_this_input()
steps = pyo.TransformationFactory("gdpnet.basic_steps")
steps.apply_to(m, clusters=[["R1_hot", "R7_chiller"]])
for product in m._gdpnet_basic_steps[0].product.values():
    print(product.name, "=", " and ".join(d.name for d in steps.get_src_disjuncts(product)))
assert len(m._gdpnet_basic_steps[0].product) == 3

# %% [markdown]
# Two rules of two disjuncts have four products. One is missing: a chiller cannot be at 0.45 or more
# and at 0.4 or less, so that product is empty and left out. Each product knows where it came from.
# Now the other three steps, and any solver for linear programs that returns a vertex:

# %%
pyo.TransformationFactory("gdpnet.lift_projection").apply_to(
    m, outputs=[m.f, m.c, m.p], yhat=yhat.tolist()
)
pyo.TransformationFactory("gdpnet.hull").apply_to(m)
pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
solver = pyo.SolverFactory("appsi_highs")
solver.solve(m)
by_hand = pyo.value(m.gdpnet_distance)
print(f"f, c, p = {m.f.value:.4f}, {m.c.value:.4f}, {m.p.value:.4f}; value {by_hand:.4f}")

# %% [markdown]
# The weights of the products show what a relaxation is: the point is a mixture.

# %%
for product in m._gdpnet_basic_steps[0].product.values():
    if product.binary_indicator_var.value > 1e-9:
        print(f"{product.binary_indicator_var.value:.3f} of {product.name}")

# %% [markdown]
# `gdpnet.convexify` is all of this in one call, and `gdpnet.project(..., relaxation=...)` is the
# same program solved for whole batches without Pyomo. The three of them agree.

# %%
plan = gdpnet.Plan((("R1_hot", "R7_chiller"),))
lp = gdpnet.convexify(rules, relaxation=plan, x=x.tolist(), yhat=yhat.tolist())
solver.solve(lp)
in_one_call = pyo.value(lp.gdpnet_distance)
p = gdpnet.project(rules, yhat, x, relaxation=plan)
print(f"by hand {by_hand:.6f}, convexify {in_one_call:.6f}, project {p.value.item():.6f}")
assert abs(by_hand - p.value.item()) < 1e-7
assert abs(in_one_call - p.value.item()) < 1e-7

# %% [markdown]
# ## The hierarchy
#
# From CNF over the partial DNF to the DNF: the outline shrinks, the value rises, fewer rules are
# broken.

# %%
relaxations = {"CNF": "cnf", "pDNF, R1 + R7 merged": plan, "DNF": "dnf"}
values = []
for name, relaxation in relaxations.items():
    p = gdpnet.project(rules, yhat, x, relaxation=relaxation)
    broken = [
        n for n, v in zip(rules.names, rules.violation(p.y, x).tolist(), strict=True) if v > 1e-6
    ]
    values.append(p.value.item())
    print(f"{name:22} value {values[-1]:.4f}   breaks {', '.join(broken) or 'nothing'}")
assert values == sorted(values)
assert not broken

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), sharex=True, sharey=True)
for ax, (name, relaxation) in zip(axes, relaxations.items(), strict=True):
    gdpnet.plot.plot_region(rules, x=x, relaxation=relaxation, yhat=yhat, at={"p": 0.3}, ax=ax)
    ax.set_title(name, loc="left")
    ax.get_legend().remove()
    for label in [text for text in ax.texts if text.get_text()]:
        label.remove()  # the line below says what the marks mean
    ax.set(xlim=(0.2, 1.05), ylim=(0.1, 0.6), aspect="auto")

# %% [markdown]
# Hatched: where all active rules hold. Outline: shadow of the relaxation's lifted set in this
# plane. Open circle: prediction. Cross: a point that breaks a rule. Full point: one that breaks
# none.
#
# ## What it costs
#
# `plot_sizes` counts the linear program as rules are merged one after another.

# %%
ax = gdpnet.plot.plot_sizes(rules, x)

# %% [markdown]
# Two rules more or less do not matter here; ten do. The model `stress` has as many two-term rules
# as you like, all active.

# %%
stress = load_model(MODELS / "stress").build(k=10)
ax = gdpnet.plot.plot_sizes(stress, [0.5])

# %% [markdown]
# ## All at once
#
# `gdpnet.study.compare` projects the same predictions in several relaxations and tabulates sizes,
# times, tightness and satisfaction. Here on shifted data: predictions are the optimal controls with
# some noise, in the place of a mediocre network. (On the command line: `gdpnet compare
# models/cooling`.)

# %%
inputs, targets = cooling.sample(500, "ood", seed=3)
noise = 0.15 * torch.randn(targets.shape, generator=torch.Generator().manual_seed(0))
predictions = targets + noise
found = compare(rules, predictions, inputs, ["cnf", plan, "dnf:highs", "dnf"])
print(found)

# %%
table = found.table.set_index("relaxation")
assert table.loc["dnf", "csat"] == 1
assert table.loc["cnf", "csat"] < 1
assert table.loc["dnf", "gap_max"] < 1e-6
assert table.loc["dnf", "variables_mean"] < table.loc["cnf", "variables_mean"]
broken = 100 * (1 - table.loc["cnf", "csat"])
print(f"CNF leaves {broken:.1f} % of the samples with a broken rule, the DNF none.")

# %% [markdown]
# Empty products are left out, so the DNF of this model is on average even smaller than its CNF.
# "dnf:highs" writes it down and solves it by HiGHS; "dnf" is the same optimum from gdpnet's exact
# engine, which never writes it down and is the fastest of the four. So CNF and partial DNF are here
# to be studied, and for those who need a convex program. For outputs that satisfy the rules, leave
# `relaxation` at its default. Tutorial 5 explains why that is fast.
#
# Which rules does the CNF break?

# %%
relaxed = gdpnet.project(rules, predictions, inputs, relaxation="cnf").y
exact = gdpnet.project(rules, predictions, inputs).y
ax = gdpnet.plot.plot_satisfaction(
    rules, {"prediction": predictions, "CNF": relaxed, "DNF": exact}, inputs
)

# %% [markdown]
# ## Something to try
#
# * Move the prediction of the hierarchy's picture to `(0.9, 0.2, 0.3)`. Which relaxations are exact
#   there?
# * Merge `R1_hot` with `R5_demand_response` instead of `R7_chiller`. Does it help? Tutorial 3 finds
#   out which steps do.
# * Run `gdpnet compare models/cooling --html cooling.html` and open the page.
