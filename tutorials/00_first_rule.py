# %% [markdown]
# # 0. A first rule
#
# You will learn what a rule about a network's output is, how gdpnet moves a prediction to the
# nearest output that satisfies it, and why the distance must be part of the model before it is made
# convex. Time: five minutes. You need neither torch nor Pyomo experience.
#
# The example is the paper's (DisjunctiveNet, Pal and Li, ICML 2026): one output, one rule. Lines
# with `assert`, here and in the other tutorials, check what the text says.

# %%
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction

import gdpnet

# %% [markdown]
# ## The rule
#
# An output `y` lies between 0 and 10. It may be at most 3, or at least 7; what lies between is
# forbidden. In [Pyomo](https://pyomo.readthedocs.io), a modelling language for optimization, an
# unknown number is a `Var`, and "this or that" is a `Disjunction`: a list of alternatives
# (*disjuncts*), each of them a list of linear relations that hold together.

# %%
m = pyo.ConcreteModel()
m.y = pyo.Var(bounds=(0, 10))
m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])

rules = gdpnet.RuleModel(m, outputs=[m.y])
print(rules)

# %% [markdown]
# `RuleModel` has read the model once; from here on everything works on batches of torch tensors,
# one row a sample. A network would give the predictions; here we type five of them.

# %%
predictions = torch.tensor([[1.0], [4.5], [5.0], [6.0], [11.0]])
print("holds:     ", rules.satisfied(predictions).tolist())
print("broken by: ", [f"{v:.3f}" for v in rules.violation(predictions).flatten().tolist()])

# %% [markdown]
# (`None` stands for the inputs of the network: this rule has none. `violation` divides what is
# missing in a row by the largest number of the row, and takes the best disjunct: at 4.5 that is 2.5
# / 7, less than 1.5 / 3. The last prediction breaks the bound of `y`, not the rule.)
#
# ## The projection
#
# `gdpnet.project` gives for each prediction the nearest point at which the rule holds.

# %%
p = gdpnet.project(rules, predictions)
for before, after, distance, status in zip(
    predictions.flatten().tolist(),
    p.y.flatten().tolist(),
    p.distance.tolist(),
    p.status.tolist(),
    strict=True,
):
    print(f"{before:4} -> {after:4}   distance {distance:3}   {gdpnet.Status(status).message}")

assert rules.satisfied(p.y).all()
assert p.y[1].item() == 3
assert p.distance[1].item() == 1.5

# %% [markdown]
# 4.5 goes to 3, and not to 7: it is nearer. 5 is as far from 3 as from 7, a tie; gdpnet takes one
# of the two, always the same one, and never a point between them.
#
# ## Why the lift matters
#
# "Nearest point of a set that is not convex" is hard for the usual optimization layers, which want
# a convex set. The obvious idea is to replace the two intervals by their convex hull, which is all
# of [0, 10]. Let us see what that does. `gdp.hull` is Pyomo's own transformation; after it only the
# choice between the disjuncts is left to relax, and a linear program is what remains.

# %%
naive = m.clone()
pyo.TransformationFactory("gdp.hull").apply_to(naive)
pyo.TransformationFactory("core.relax_integer_vars").apply_to(naive)
naive.eta = pyo.Var(bounds=(0, 10))
naive.above = pyo.Constraint(expr=naive.eta >= naive.y - 4.5)
naive.below = pyo.Constraint(expr=naive.eta >= 4.5 - naive.y)
naive.nearest = pyo.Objective(expr=naive.eta)

solver = pyo.SolverFactory("appsi_highs")
solver.solve(naive)
print(f"hull first, distance afterwards: y = {naive.y.value:g}, distance {naive.eta.value:g}")
assert abs(naive.y.value - 4.5) < 1e-9

# %% [markdown]
# The prediction 4.5 lies inside [0, 10], so it passes, and the rule is broken.
#
# The remedy is to change the order: first write the distance `eta >= |y - 4.5|` into *every*
# disjunct (the *lift*), then take the hull. That is what the transformation
# `gdpnet.lift_projection` does.

# %%
lifted = m.clone()
pyo.TransformationFactory("gdpnet.lift_projection").apply_to(lifted, outputs=[lifted.y], yhat=[4.5])
pyo.TransformationFactory("gdpnet.hull").apply_to(lifted)
pyo.TransformationFactory("core.relax_integer_vars").apply_to(lifted)
solver.solve(lifted)
distance = pyo.value(lifted.gdpnet_distance)
print(f"distance first, hull afterwards: y = {lifted.y.value:g}, distance {distance:g}")
assert abs(lifted.y.value - 3) < 1e-9
assert abs(distance - 1.5) < 1e-9

# %% [markdown]
# The picture shows both, and it is drawn from the linear program itself. The two hatched sets are
# the disjuncts with their distance as second dimension; the blue outline is their hull. Minimising
# `eta` over the blue set ends at its lowest corner. Corners of a hull are corners of the sets it
# was made of, so the lowest one belongs to a disjunct, and there the rule holds. The dashed bar at
# the bottom is the hull in `y` alone: it has forgotten the gap.

# %%
ax = gdpnet.plot.plot_lifted(rules, yhat=4.5)

# %% [markdown]
# ## Two rules
#
# The paper's second example adds a rule. Each rule by itself allows points that the other forbids;
# together they leave again [0, 3] and [7, 10].

# %%
m2 = pyo.ConcreteModel()
m2.y = pyo.Var(bounds=(0, 10))
m2.first = Disjunction(expr=[[m2.y <= 3], [m2.y >= 6]])
m2.second = Disjunction(expr=[[m2.y <= 4], [m2.y >= 7]])
two = gdpnet.RuleModel(m2, outputs=[m2.y])

exact = gdpnet.project(two, [4.5])
one_by_one = gdpnet.project(two, [4.5], relaxation="cnf")
print("exact (DNF):             y =", exact.y.tolist(), "distance", exact.distance.item())
print("rule after rule (CNF):   y =", one_by_one.y.tolist(), "value", one_by_one.value.item())
assert exact.y.item() == 3

# %% [markdown]
# "DNF" lists the combinations of disjuncts and takes one hull of all of them: exact. "CNF" takes a
# hull for each rule and intersects them: smaller, and in general only a relaxation. Here both give
# the same point. Tutorial 2 shows where they part.
#
# ## As a layer
#
# In a network the projection is the last layer. It has no weights of its own, and gradients pass
# through it; tutorial 4 is about that.

# %%
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(3, 1), gdpnet.ProjectionLayer(rules))
y = network(torch.randn(4, 3) * 8)
print([f"{v:.3f}" for v in y.flatten().tolist()])
assert rules.satisfied(y).all()

# %% [markdown]
# ## Something to try
#
# * Draw `gdpnet.plot.plot_lifted(rules, yhat=5.0)`: the tie. Where is the lowest edge of the blue
#   set, and why would an interior-point solver be wrong here?
# * Add a third disjunct, the single point `m.y == 5.5`, and project 4.5 again.
# * Next: tutorial 1, all that a rule can say.
