# %% [markdown]
# # 4. Training with the layer
#
# You will learn to put rules behind a network and train through them: a plain torch loop,
# standardised inputs, all the ways in which gradients can pass and how to choose one, and how to
# learn a number inside a rule. Time: fifteen minutes, two of them for the computer.
#
# For readers without torch: a *network* is a function with many adjustable numbers; *training*
# changes these numbers step by step against the *gradient* (the derivative) of an error, the
# *loss*. A layer is a piece of that function.

# %%
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pyomo.environ as pyo
import torch
from torch import nn

import gdpnet
from gdpnet.study import load_model

torch.set_num_threads(1)
SMOKE = bool(os.environ.get("GDPNET_SMOKE"))  # small sizes, to test that everything runs
STEPS = 30 if SMOKE else 800
SEEDS = range(1 if SMOKE else 3)
MODELS = Path("models") if Path("models").exists() else Path("../models")

# %% [markdown]
# ## The task
#
# The paper's cooling plant: from seven inputs (weather, workload, price, events) predict fan,
# chiller and pump as an optimal controller would set them. There are only 400 samples to learn
# from, and we test on shifted data, with hotter and more humid days, more work and more events,
# where a network has to extrapolate and rules still hold.

# %%
cooling = load_model(MODELS / "cooling")
rules = cooling.build()
x, target = (t.float() for t in cooling.sample(400, "train", seed=0))
new_x, new_target = (t.float() for t in cooling.sample(2000, "ood", seed=3))

mean, scale = x.mean(0), x.std(0)
seen, new_seen = (x - mean) / scale, (new_x - mean) / scale  # what the network sees


def small_network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


def train(model, steps, rate=1e-2, batch=32):
    """Plain torch: nothing here knows about rules."""
    order = torch.Generator().manual_seed(1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        pick = torch.randint(len(x), (batch,), generator=order)
        loss = (model(seen[pick]) - target[pick]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def error(y):
    """Mean squared error on the new data, times 1000."""
    return 1e3 * (y - new_target).square().mean().item()


def satisfied(y):
    """Per cent of the outputs on the new data that satisfy all rules."""
    return 100 * rules.satisfied(y, new_x, tol=1e-5).float().mean().item()


# %% [markdown]
# ## Without rules, and rules only at the end
#
# First the network by itself; then the same trained network with its outputs projected afterwards.

# %%
base = small_network(0)
train(base, STEPS)
with torch.no_grad():
    alone = base(new_seen)
at_the_end = gdpnet.project(rules, alone, new_x).y
print("error, and per cent of outputs that satisfy all rules:")
print(f"network alone:          {error(alone):6.2f}, {satisfied(alone):5.1f} %")
print(f"projected at the end:   {error(at_the_end):6.2f}, {satisfied(at_the_end):5.1f} %")
assert satisfied(at_the_end) == 100
assert SMOKE or satisfied(alone) < 50

# %% [markdown]
# ## Rules in the network
#
# `gdpnet.nn.with_rules` puts a `ProjectionLayer` behind the network. The network sees standardised
# numbers and the rules speak of degrees and per cent, so say how the inputs were standardised.
# (`output_scale=` does the same for standardised targets.) The outputs satisfy the rules at every
# step, trained or not.

# %%
ruled = gdpnet.nn.with_rules(small_network(0), rules, input_scale=(mean, scale))
untrained = ruled(new_seen).detach()
train(ruled, STEPS)
through = ruled(new_seen).detach()
print(f"untrained, with rules:  {error(untrained):6.2f}, {satisfied(untrained):5.1f} %")
print(f"trained through them:   {error(through):6.2f}, {satisfied(through):5.1f} %")
assert satisfied(untrained) == 100
assert satisfied(through) == 100
assert SMOKE or error(through) < error(at_the_end) < error(alone)

# %% [markdown]
# Training through the layer gives a smaller error than projecting at the end, with the same
# network, data and number of steps: the network can leave to the rules what they provide.

# %%
ax = gdpnet.plot.plot_satisfaction(
    rules, {"network alone": alone, "trained through the rules": through}, new_x, tol=1e-5
)

# %% [markdown]
# ## How gradients pass
#
# A projection moves a prediction onto a rule's boundary, where the output stops following the
# prediction: the exact derivative is zero in the direction that the rule forbids. What should pass
# instead is a choice, the argument `gradient`. The output never depends on it. Let us look at the
# rule of tutorial 0, `y <= 3 or y >= 7`, at the prediction 4.5, and at 4.99, close to the tie at 5.

# %%
m = pyo.ConcreteModel()
m.y = pyo.Var(bounds=(0, 10))
m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
gap = gdpnet.RuleModel(m, outputs=[m.y])

inward = gdpnet.StraightThrough(inward=True)
GRADIENTS = {
    "vertex": gdpnet.Vertex(),
    "qp 1e-1": gdpnet.QP(1e-1),
    "qp 1e-2": gdpnet.QP(1e-2),
    "straight-through": gdpnet.StraightThrough(),
    "straight-through, inward": inward,
    "0.25 qp + 0.75 straight": gdpnet.Mixed("qp", "straight_through", 0.25),
    "0.5 vertex + 0.5 inward (auto)": "auto",
}


def passed(gradient, prediction, pull):
    """What reaches the prediction if the loss has the slope `pull` at the output."""
    yhat = torch.tensor([prediction], requires_grad=True)
    y = gdpnet.project(gap, yhat, gradient=gradient).y
    (y * pull).sum().backward()
    return yhat.grad.item()


cases = ((4.5, 1.0), (4.5, -1.0), (4.99, 1.0))
print(" " * 32 + "".join(f"{f'at {at:g}, slope {pull:+g}':>19}" for at, pull in cases))
with warnings.catch_warnings():
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    for name, gradient in GRADIENTS.items():
        reached = [passed(gradient, *case) + 0.0 for case in cases]  # + 0.0: no -0.000
        print(f"{name:32}" + "".join(f"{value:19.3f}" for value in reached))
    assert passed("vertex", 4.5, 1.0) == 0
    assert passed("straight_through", 4.5, 1.0) == 1
    assert passed(gdpnet.QP(1e-2), 4.99, 1.0) > 2 * passed(gdpnet.QP(1e-1), 4.99, 1.0) > 2

# %% [markdown]
# A positive slope asks for a smaller output. At 4.5 the output is 3 and the prediction lies above
# it: moving the prediction down is *inward*, towards the rules; moving it up only drives it deeper
# into the forbidden gap, and `inward=True` drops that.
#
# * `vertex`, the exact Jacobian, passes nothing here. A network whose outputs are all held in place
#   would never move; gdpnet warns (`ZeroGradientWarning`), and we silenced that above.
# * `qp`, the paper's, differentiates a program with a small quadratic term. Away from ties it is
#   the same as `vertex`; close to a tie between disjuncts it sees the other side, and the smaller
#   `eps` the steeper.
# * `straight_through` passes everything, also what drives the prediction ever further away.
# * `auto`, the default, is half `vertex` and half inward straight-through.
#
# ## All of them, compared
#
# Everything but the gradient is the same. From scratch: the layer behind an untrained network with
# a linear output, which can start far outside of the box. Fine-tuned: the layer added to the
# network that was trained without rules, and a few more steps at a tenth of the rate.


# %%
def run(gradient, seed, start):
    network = small_network(seed)
    model = gdpnet.nn.with_rules(network, rules, input_scale=(mean, scale), gradient=gradient)
    if start == "fine-tuned":
        train(network, STEPS)
        train(model, STEPS // 2, rate=1e-3)
    else:
        train(model, STEPS)
    return error(model(new_seen).detach())


results = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    for start in ("from scratch", "fine-tuned"):
        for name, gradient in GRADIENTS.items():
            results[name, start] = [run(gradient, seed, start) for seed in SEEDS]

figure, ax = plt.subplots(figsize=(7.0, 4.2))
rows = dict(zip(GRADIENTS, range(len(GRADIENTS)), strict=True))
for start, mark, colour, shift in (
    ("from scratch", "o", "#0072B2", -0.13),
    ("fine-tuned", "s", "#D55E00", 0.13),
):
    for name, row in rows.items():
        errors = results[name, start]
        label = start if row == 0 else None
        ax.plot(errors, [row + shift] * len(errors), mark, color=colour, alpha=0.8, label=label)
        print(f"{name:31} {start:13}" + "".join(f"{e:8.2f}" for e in errors))
ax.axvline(error(at_the_end), color="black", linestyle=":", label="projected at the end (seed 0)")
ax.set_yticks(list(rows.values()), list(rows))
ax.invert_yaxis()
ax.legend(loc="upper center", bbox_to_anchor=(0.35, -0.16), ncols=3, frameon=False)
_ = ax.set(xscale="log", xlabel="squared error on new data, x 1000; one mark a seed")

# %%
worst = {key: max(errors) for key, errors in results.items()}
auto, plain = "0.5 vertex + 0.5 inward (auto)", "straight-through"
assert SMOKE or worst[auto, "from scratch"] < 2
assert SMOKE or worst["straight-through, inward", "from scratch"] < 2
assert SMOKE or min(worst[n, "from scratch"] for n in ("vertex", "qp 1e-2", plain)) > 4
assert SMOKE or max(worst[name, "fine-tuned"] for name in GRADIENTS) < 2

# %% [markdown]
# ## How to choose
#
# * From a trained network every gradient works.
# * From scratch, `vertex` and `qp` fail on some seeds (nothing passes, nothing moves), and plain
#   straight-through lets predictions drift away, which new data shows. `auto` and inward
#   straight-through do neither.
# * So start with the default. Take `qp` to reproduce the paper, `vertex` where you need the true
#   derivative, for instance to learn a number inside a rule, as below.
#
# [docs/gradients.md](../docs/gradients.md) has the definitions, five seeds, and a second task.
#
# ## Learning a threshold
#
# Coefficients and right sides of rules may be inputs, and gradients reach them too. Suppose that we
# know the form of a rule, "the chiller runs at `tau` or more, or the fan at 75 % or more", but not
# `tau`. We watch somebody who follows it with `tau = 0.45` and learn the number from what they do.

# %%
m = pyo.ConcreteModel()
m.tau = pyo.Param(mutable=True, initialize=0.0)
m.f = pyo.Var(bounds=(0, 1))
m.c = pyo.Var(bounds=(0, 1))
m.hot = gdpnet.rule(gdpnet.any_of(m.c >= m.tau, m.f >= 0.75))
unknown = gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.tau])
print(unknown)

wishes = torch.rand(256, 2, generator=torch.Generator().manual_seed(0))  # before the rule
watched = gdpnet.project(unknown, wishes, torch.tensor([0.45])).y  # after it

tau = nn.Parameter(torch.tensor([0.15]))
layer = gdpnet.ProjectionLayer(unknown, gradient="vertex")
optimiser = torch.optim.Adam([tau], lr=0.02)
path = []
for _ in range(200):
    path.append(tau.item())
    loss = (layer(wishes, tau) - watched).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"tau: {path[0]:.3f} -> {tau.item():.3f}")
assert abs(tau.item() - 0.45) < 0.01

# %%
figure, ax = plt.subplots(figsize=(6.0, 3.0))
ax.plot(path, color="#0072B2", label="learned")
ax.axhline(0.45, color="#D55E00", linestyle="--", label="the truth")
ax.legend(frameon=False)
_ = ax.set(xlabel="step", ylabel="tau")

# %% [markdown]
# Straight-through could not do that: it passes gradients to predictions only. Whether a rule
# *applies* is a step in the inputs and has no gradient; a threshold inside a condition cannot be
# learned this way.
#
# ## Something to try
#
# * Put `nn.Sigmoid()` at the end of the network, so that predictions start inside the box. Which
#   gradients recover?
# * Train with `gdpnet.nn.RulePenalty` instead of the layer, the usual soft penalty, and look at the
#   satisfaction on new data.
# * Give `with_rules` a `relaxation="cnf"`: how many outputs break a rule after training?
