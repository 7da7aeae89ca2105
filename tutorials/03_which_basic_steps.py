# %% [markdown]
# # 3. Which basic steps?
#
# You will learn how to find out which rules have to do with each other, let a planner choose which
# of them to merge under a budget, and use adaptive steps, which need no choice at all. Time: ten
# minutes. You should have seen tutorial 2.
#
# A basic step merges two rules into one Disjunction of their products. Each step makes the
# relaxation tighter or leaves it as it is, and each multiplies the number of products. The paper
# merges the first k rules in the order in which they were written and leaves open which order is
# good. This tutorial is about that question.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import pyomo.environ as pyo
import torch

import gdpnet
from gdpnet.study import load_model

MODELS = Path("models") if Path("models").exists() else Path("../models")
cooling = load_model(MODELS / "cooling")
rules = cooling.build()

# %% [markdown]
# To judge steps we need inputs and predictions: here shifted weather, and the optimal controls with
# noise in the place of a network.

# %%
x, target = cooling.sample(1000, "ood", seed=3)
yhat = target + 0.15 * torch.randn(target.shape, generator=torch.Generator().manual_seed(0))


def broken(relaxation):
    """Per cent of samples whose projection breaks a rule, and the mean value."""
    p = gdpnet.project(rules, yhat, x, relaxation=relaxation)
    return 100 * (p.status == gdpnet.Status.RELAXED).double().mean().item(), p.value.mean().item()


# %% [markdown]
# ## In the order they were written
#
# `Plan.lexicographic(rules, k)` is the paper's order.

# %%
in_order = {}
for k in range(1, 8):
    in_order[k], value = broken(gdpnet.Plan.lexicographic(rules, k))
    print(f"{k} merged: {in_order[k]:4.1f} % of the samples break a rule, mean value {value:.5f}")
assert in_order[2] == in_order[1]
assert in_order[4] == in_order[3]
assert in_order[7] == 0

# %% [markdown]
# Two steps were wasted: adding the second rule and adding the fourth changed nothing. Why?
#
# ## The rule graph
#
# `gdpnet.plan.interaction_graph` measures, for each pair of rules, how often both are active and by
# how much merging the two raises the value of their relaxation. It is a `networkx` graph.

# %%
graph = gdpnet.plan.interaction_graph(rules, yhat[:300], x[:300])
pairs = sorted(graph.edges(data=True), key=lambda edge: -edge[2]["weight"])
for one, other, found in pairs[:5]:
    print(f"{one:8} {other:19} together {found['together']:4.0%}   gain {found['gain']:.4f}")
hot_and_cold = graph.edges["R1_hot", "R2_cold"]
print(f"R1_hot and R2_cold are together in {hot_and_cold['together']:.0%} of the samples")
assert hot_and_cold["together"] == 0
assert graph.edges["R1_hot", "R4_busy"]["gain"] == 0
assert all("R1_hot" in pair[:2] for pair in pairs if pair[2]["weight"] > 0)

# %% [markdown]
# It is never hot and cold at the same time, so merging rules 1 and 2 merges nothing. Hot and busy
# do meet, but they ask for the same things, more of the chiller or more of the fan: what satisfies
# the first satisfies the second, and nothing is gained by the two. All gains are with `R1_hot`.

# %%
ax = gdpnet.plot.plot_rule_graph(graph)

# %% [markdown]
# ## The planner
#
# `gdpnet.plan.choose` searches clusters under a budget: the most products that the merged
# clusters of one sample may have. Products that are empty for the data at hand are not counted, so
# a budget of 12 is enough here for all seven rules. `plan.exact` says whether the plan is exact by
# construction.

# %%
planned = {}
for budget in (2, 4, 6, 8, 12):
    plan = gdpnet.plan.choose(rules, budget=budget, x=x[:300], yhat=yhat[:300])
    merged = sum(len(cluster) for cluster in plan.clusters if len(cluster) > 1)
    planned[merged], _ = broken(plan)
    print(
        f"budget {budget:2}: {planned[merged]:4.1f} % break a rule, exact {plan.exact!s:5} {plan}"
    )
assert plan.exact
assert planned[7] == 0

# %%
figure, ax = plt.subplots(figsize=(6.4, 3.8))
ax.plot(
    list(in_order), list(in_order.values()), "s--", color="#D55E00", label="in the order written"
)
ax.plot(list(planned), list(planned.values()), "o-", color="#0072B2", label="planned")
ax.set(xlabel="rules merged", ylabel="samples that break a rule, %", ylim=(-0.3, None))
ax.legend(frameon=False)
for k in planned.keys() & in_order.keys():
    assert planned[k] <= in_order[k] + 1e-9

# %% [markdown]
# With the same number of rules merged the plan never breaks more rules than the written order, and
# with few of them it breaks far less.
#
# Where you have no data yet, leave `x` and `samples` out: they are then drawn uniformly from
# `input_bounds` and the outputs' bounds.
#
# ## Rules that have nothing to do with each other
#
# A planner is most useful where rules fall into groups. Here are six outputs in three pairs; each
# pair has two rules of its own. The DNF of all rules would have 2^6 = 64 products. But rules that
# share no output can be merged separately without any loss, so three clusters with four products
# each are as good as all 64.

# %%
m = pyo.ConcreteModel()
m.y = pyo.Var(range(6), bounds=(0, 10))
for k in range(3):
    one, other = m.y[2 * k], m.y[2 * k + 1]
    m.add_component(f"gap{k}", gdpnet.rule(gdpnet.any_of(one <= 3, one >= 7)))
    m.add_component(f"sum{k}", gdpnet.rule(gdpnet.any_of(one + other <= 4, one + other >= 9)))
groups = gdpnet.RuleModel(m, outputs=[m.y])
parts = [sorted(part) for part in nx.connected_components(gdpnet.plan.interaction_graph(groups))]
plan = gdpnet.plan.choose(groups, budget=12)
print("groups:", parts)
print(plan, "exact:", plan.exact)
assert len(parts) == 3
assert plan.exact

points = 10 * torch.rand(500, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
exact = gdpnet.project(groups, points)
by_plan = gdpnet.project(groups, points, relaxation=plan)
print(f"largest difference of the distances: {(exact.distance - by_plan.distance).abs().max():.1e}")
assert torch.allclose(exact.distance, by_plan.distance, atol=1e-9)
assert groups.satisfied(by_plan.y).all()

# %% [markdown]
# ## Adaptive steps
#
# One plan serves all samples, so it pays for the worst. With `relaxation="adaptive"` each sample
# takes only the steps that it needs: CNF first; if its point breaks a rule, that rule is merged
# with one that it interacts with, and so on until all rules hold. The result is exact, because a
# relaxation's point that satisfies all rules cannot be beaten by any other point.

# %%
adaptive = gdpnet.project(rules, yhat, x, relaxation="adaptive")
exact = gdpnet.project(rules, yhat, x)
rounds = torch.bincount(adaptive.info.rounds)
for k, count in enumerate(rounds.tolist()):
    print(f"{count:4} samples needed {k} rounds of steps")
print(
    f"largest difference of the distances: {(adaptive.distance - exact.distance).abs().max():.1e}"
)
assert torch.allclose(adaptive.distance, exact.distance, atol=1e-9)
assert rules.satisfied(adaptive.y, x).all()
assert rounds[0] > 0.85 * len(x)

# %% [markdown]
# Most samples need no step at all.
#
# ## How to choose
#
# * You want outputs that satisfy the rules: `relaxation="dnf"`, the default. Its engine needs no
#   plan.
# * You want a written-out linear program for another solver, or you study relaxations:
#   `gdpnet.plan.choose` with the budget that your solver can bear. If `plan.exact`, nothing was
#   lost.
# * You want to see how many steps a sample really needs: `relaxation="adaptive"`.
#
# ## Something to try
#
# * Plan with `objective="satisfaction"`, which counts broken samples and not the mean value.
# * Plan with `unit="nonzeros"`, a budget for the size of the whole linear program.
# * Draw `gdpnet.plot.plot_rule_graph(graph, plan=plan)` with a plan for the cooling rules.
