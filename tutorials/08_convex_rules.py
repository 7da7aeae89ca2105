# %% [markdown]
# # 8. Circles, and the nearest point as the crow flies
#
# You will learn to write rules whose disjuncts are convex and not linear (circles, norms), to
# project in the Euclidean norm, and to train through both. Two examples: an inverter that is off or
# within its circle of apparent power, and a path whose waypoints stay within a union of discs and
# keep out of boxes. Time: ten minutes.

# %%
import os

import matplotlib.pyplot as plt
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction
from torch import nn

import gdpnet

torch.set_num_threads(1)
SMOKE = bool(os.environ.get("GDPNET_SMOKE"))  # small sizes, to test that everything runs
STEPS = 40 if SMOKE else 800

# %% [markdown]
# ## An inverter
#
# A solar inverter delivers active power `P` and reactive power `Q`. It is off, or it is on: then
# its apparent power `sqrt(P**2 + Q**2)` is at most 1, it delivers at least a tenth of that, and no more
# than the sun gives. The sun is an input of the network, so it is a mutable Param.

# %%
m = pyo.ConcreteModel()
m.sun = pyo.Param(mutable=True, initialize=0.8)
m.P = pyo.Var(bounds=(0, 1.2))
m.Q = pyo.Var(bounds=(-1.2, 1.2))
m.inverter = Disjunction(
    expr=[
        [m.P == 0, m.Q == 0],
        [m.P**2 + m.Q**2 <= 1, m.P >= 0.1, m.P <= m.sun],
    ]
)
rules = gdpnet.RuleModel(m, outputs=[m.P, m.Q], inputs=[m.sun], input_bounds=[(0.0, 1.2)])
print(rules)

# %% [markdown]
# The square is found convex when the model is read; `>=` in its place would be refused by name. The
# nearest points, in both norms: with `norm="l1"` moving one output by 0.2 costs as much as moving
# two by 0.1, so that points slide along the axes; `norm="l2"` is the distance on the map.

# %%
yhat = torch.tensor([[1.1, 0.9], [0.7, -1.1], [0.05, 0.3], [1.1, 0.1], [0.4, 0.4]]).double()
sun = torch.tensor([[0.8]]).double().expand(len(yhat), 1)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharex=True, sharey=True)
for ax, norm in zip(axes, ("l1", "l2"), strict=True):
    p = gdpnet.project(rules, yhat, sun, norm=norm)
    gdpnet.plot.plot_region(rules, x=sun[0], relaxation=None, ax=ax)
    for a, b in zip(yhat.tolist(), p.y.tolist(), strict=True):
        ax.annotate("", b, a, arrowprops={"arrowstyle": "->", "color": "#D55E00"})
        ax.plot(*a, "o", color="#D55E00", markersize=5)
    ax.set_title("", loc="left")
    ax.set_title(f'norm="{norm}"')
    print(norm, p.y.round(decimals=4).tolist())
    assert rules.satisfied(p.y, sun, tol=1e-8).all()
plt.show()

# %% [markdown]
# What became of each prediction is told as for linear rules: the disjunct, the distance, why.

# %%
p = gdpnet.project(rules, yhat, sun, norm="l2")
for s in range(len(yhat)):
    state = ("off", "on")[p.disjunct[s, 0]]
    print(f"{gdpnet.Status(int(p.status[s])).name:10s} {state:3s}  moved by {p.distance[s]:.4f}")

# %% [markdown]
# On the circle the derivative of the answer is not that of a flat face: a point that is pushed
# outwards and slides along the circle slides less the farther away it was. The layer's gradient
# knows the curvature; compare it with differences.

# %%
leaf = yhat[:2].clone().requires_grad_()
y = gdpnet.project(rules, leaf, sun[:2], norm="l2", gradient="vertex").y
direction = torch.tensor([[1.0, 2.0], [-1.0, 1.0]]).double()
(gradient,) = torch.autograd.grad((y * direction).sum(), leaf)
h = 1e-6
for j in range(2):
    step = torch.zeros(1, 2).double()
    step[0, j] = h
    ahead, behind = (
        gdpnet.project(rules, yhat[:2] + s * step, sun[:2], norm="l2").y for s in (1, -1)
    )
    difference = ((ahead - behind) * direction).sum(1) / (2 * h)
    print(f"output {j}: gradient {gradient[:, j].tolist()}, differences {difference.tolist()}")
    assert torch.allclose(gradient[:, j], difference, atol=1e-5)

# %% [markdown]
# ## Waypoints
#
# A drone flies from (0, 0) to (10, 6) by three waypoints. Each waypoint has to be within reach of
# one of three radio masts (a union of discs) and outside of two no-fly boxes, and two points that
# follow each other are at most 4.5 apart (a norm, which is convex too). Unions of discs are
# Disjunctions whose disjuncts are circles; "outside of a box" is to the left of it, to the right,
# below or above.

# %%
START, GOAL, REACH = (0.0, 0.0), (10.0, 6.0), 4.5
MASTS = ((2.0, 2.0, 2.2), (5.2, 4.2, 2.0), (8.0, 3.2, 2.2))
BOXES = ((1.8, 1.0, 3.4, 2.2), (4.4, 2.3, 5.8, 3.6))
POINTS = range(3)


def waypoints():
    m = pyo.ConcreteModel()
    m.u = pyo.Var(POINTS, bounds=(-1, 11))
    m.v = pyo.Var(POINTS, bounds=(-1, 8))

    def near_a_mast(m, k):
        return [[(m.u[k] - a) ** 2 + (m.v[k] - b) ** 2 <= r**2] for a, b, r in MASTS]

    def out_of_the_box(m, k, box):
        left, low, right, high = BOXES[box]
        return [[m.u[k] <= left], [m.u[k] >= right], [m.v[k] <= low], [m.v[k] >= high]]

    def not_too_far(m, k):
        a = START if k == 0 else (m.u[k - 1], m.v[k - 1])
        b = GOAL if k == len(POINTS) else (m.u[k], m.v[k])
        return pyo.sqrt((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2) <= REACH

    m.mast = Disjunction(POINTS, rule=near_a_mast)
    m.box = Disjunction(POINTS, range(len(BOXES)), rule=out_of_the_box)
    m.leg = pyo.Constraint(range(len(POINTS) + 1), rule=not_too_far)
    return gdpnet.RuleModel(m, outputs=[v for k in POINTS for v in (m.u[k], m.v[k])])


rules = waypoints()
print(f"{len(rules.names)} rules, {len(rules.output_names)} outputs")

# %% [markdown]
# Two of three points on the straight line are where no drone may be. Nine rules with four or three disjuncts each make
# 110,592 combinations; the search looks at a few of them.


# %%
def draw(ax, *paths):
    for a, b, r in MASTS:
        ax.add_patch(plt.Circle((a, b), r, facecolor="#56B4E9", alpha=0.25, edgecolor="#0072B2"))
    for left, low, right, high in BOXES:
        ax.add_patch(
            plt.Rectangle((left, low), right - left, high - low, color="#9a9a9a", alpha=0.6)
        )
    for label, colour, line, points in paths:
        way = [START, *points.reshape(-1, 2).tolist(), GOAL]
        ax.plot(*zip(*way, strict=True), line, color=colour, label=label, markersize=5)
    ax.set_aspect("equal")
    ax.legend(loc="upper left")


straight = torch.tensor([[2.5, 1.5, 5.0, 3.0, 7.5, 4.5]]).double()
p = gdpnet.project(rules, straight, norm="l2")
assert rules.satisfied(p.y, tol=1e-8).all()
print(f"moved by {float(p.distance):.3f}, {int(p.info.nodes)} nodes")
figure, ax = plt.subplots(figsize=(7, 4.6))
draw(ax, ("straight", "#D55E00", "o-", straight[0]), ("projected", "#009E73", "o-", p.y[0]))
plt.show()

# %% [markdown]
# ## Training through it
#
# Somebody flew the route by hand in different winds. The network sees the wind and predicts the
# waypoints; the layer behind it moves them to where they are allowed. The loss looks at what comes
# out, so the network learns what the rules do with its predictions.

# %%
generator = torch.Generator().manual_seed(0)
wind = torch.randn(64, 2, generator=generator, dtype=torch.float64)
flown = gdpnet.project(rules, straight + 0.6 * wind.repeat(1, 3), norm="l2").y


def train(layer, seed=0):
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 6)).double()
    with torch.no_grad():
        network[-1].bias.copy_(straight[0])
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(STEPS):
        out = network(wind) if layer is None else layer(network(wind))
        loss = (out - flown).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network


layer = gdpnet.ProjectionLayer(rules, norm="l2", gradient="auto")
free, ruled = train(None), train(layer)
test = torch.randn(500, 2, generator=generator, dtype=torch.float64)
target = gdpnet.project(rules, straight + 0.6 * test.repeat(1, 3), norm="l2").y
with torch.no_grad():
    outcomes = {
        "network alone": free(test),
        "projected afterwards": layer(free(test)),
        "trained through the layer": layer(ruled(test)),
    }
for name, out in outcomes.items():
    error = (out - target).square().mean().sqrt()
    share = rules.satisfied(out).double().mean()
    print(f"{name:26s} error {error:.3f}, all rules hold in {share:.0%}")

# %%
figure, ax = plt.subplots(figsize=(7, 4.6))
sample = 3
draw(
    ax,
    ("network alone", "#D55E00", "o-", outcomes["network alone"][sample]),
    ("through the layer", "#009E73", "o-", outcomes["trained through the layer"][sample]),
    ("flown", "#1b1b1b", "x:", target[sample]),
)
plt.show()

# %% [markdown]
# What is refused, and by what name: rows that are not convex.

# %%
m = pyo.ConcreteModel()
m.y = pyo.Var([0, 1], bounds=(-2, 2))
m.ring = Disjunction(expr=[[m.y[0] ** 2 + m.y[1] ** 2 >= 1], [m.y[0] >= 1]])
try:
    gdpnet.RuleModel(m, outputs=[m.y])
except gdpnet.GdpnetError as error:
    print(error)
