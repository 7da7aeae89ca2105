# %% [markdown]
# # 7. Your own GDP
#
# You will learn to take a GDP model that already exists, here a job shop from the literature, and
# use it unchanged in two ways: solved as an optimization problem, and as rules on a network that
# predicts schedules. Time: ten minutes.
#
# Three jobs pass through machines, each in its own order, without waiting between them. Two jobs
# that need the same machine must not clash there: one comes first, or the other. The example goes
# back to Raman and Grossmann (Computers and Chemical Engineering, 1994) and to the manual of LogMIP
# by Vecchietti; for many it was their first GDP.

# %%
import os
import warnings
from itertools import combinations

import matplotlib.pyplot as plt
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunct, Disjunction
from torch import nn

import gdpnet

torch.set_num_threads(1)
SMOKE = bool(os.environ.get("GDPNET_SMOKE"))  # small sizes, to test that everything runs
STEPS = 50 if SMOKE else 1500

# %% [markdown]
# ## The model, as a modeller writes it
#
# `duration[job, machine]` says how long; a job visits its machines in the order of their numbers. A
# job that starts at `start[job]` reaches machine `k` when all machines before it are done. The
# durations are mutable Params, so that they can be changed without building the model again.
# Nothing in this function knows about networks.

# %%
CLASSIC = {("A", 1): 5, ("A", 3): 3, ("B", 2): 3, ("B", 3): 2, ("C", 1): 2, ("C", 2): 4}


def job_shop(durations, horizon):
    m = pyo.ConcreteModel()
    jobs = sorted({job for job, _ in durations})
    m.duration = pyo.Param(list(durations), mutable=True, initialize=durations)
    m.start = pyo.Var(jobs, bounds=(0, horizon))
    m.makespan = pyo.Var(bounds=(0, horizon))

    def time(job, last):
        """Time that a job has spent on its machines up to and including `last`."""
        return sum(m.duration[j, k] for j, k in durations if j == job and k <= last)

    m.finish = pyo.Constraint(jobs, rule=lambda m, job: m.start[job] + time(job, 99) <= m.makespan)
    clashes = [
        (one, other, k)
        for one, other in combinations(jobs, 2)
        for k in sorted({k for _, k in durations})
        if (one, k) in durations and (other, k) in durations
    ]
    m.clash = Disjunction(
        clashes,
        rule=lambda m, one, other, k: [
            [m.start[one] + time(one, k) <= m.start[other] + time(other, k - 1)],
            [m.start[other] + time(other, k) <= m.start[one] + time(one, k - 1)],
        ],
    )
    m.shortest = pyo.Objective(expr=m.makespan)
    return m


m = job_shop(CLASSIC, horizon=30)

# %% [markdown]
# First the usual way: big-M, and a mixed-integer solver. The shortest schedule of the classic data
# takes 11.


# %%
def solve(m):
    milp = m.clone()
    pyo.TransformationFactory("gdp.bigm").apply_to(milp)
    pyo.SolverFactory("appsi_highs").solve(milp)
    return milp.makespan.value


print(f"makespan {solve(m):g}")
assert abs(solve(m) - 11) < 1e-6

# %% [markdown]
# ## The same model, as rules
#
# One line: which Vars are outputs of a network, which Params are its inputs. The objective is left
# aside; the projection has its own.

# %%
rules = gdpnet.RuleModel(m, outputs=[m.start, m.makespan], inputs=[m.duration])
print(rules)

# %% [markdown]
# A schedule from a dispatcher in a hurry: all jobs start at once. The layer gives the nearest one
# without clashes, and says why.

# %%
classic = torch.tensor(list(CLASSIC.values()), dtype=torch.float64)
hurry = torch.tensor([0.0, 0.0, 0.0, 8.0], dtype=torch.float64)
p = gdpnet.project(rules, hurry, classic)
print(rules.explain(hurry, classic))


# %%
def draw(ax, schedule, durations, title):
    """Bars of the machines, one colour and hatch a job."""
    looks = {"A": ("#0072B2", "//"), "B": ("#D55E00", ".."), "C": ("#009E73", "xx")}
    begin = dict(zip("ABC", schedule[:3], strict=True))
    for (job, machine), length in zip(CLASSIC, durations, strict=True):
        colour, hatch = looks[job]
        shift = {"A": 0.18, "B": 0.0, "C": -0.18}[job]
        look = {"facecolor": (colour, 0.35), "edgecolor": colour, "hatch": hatch}
        ax.barh(machine + shift, length, left=begin[job], height=0.3, **look)
        ax.annotate(job, (begin[job] + 0.15, machine + shift), va="center", weight="bold")
        begin[job] += length
    ax.axvline(schedule[3], color="black", linestyle=":")
    ax.set(yticks=[1, 2, 3], ylim=(3.5, 0.5), xlabel="time", ylabel="machine")
    ax.set_title(title, loc="left")


figure, axes = plt.subplots(1, 2, figsize=(10, 2.8), sharex=True)
draw(axes[0], hurry.tolist(), classic.tolist(), "all at once")
draw(axes[1], p.y.tolist(), classic.tolist(), f"nearest valid schedule, makespan {p.y[3]:g}")

# %% [markdown]
# The dotted line is the makespan. On each machine bars of different jobs must not overlap in time.
#
# ## The projection as a solver
#
# A projection is an optimization, so it can also find the *shortest* schedule: predict 0 for
# everything and let a unit of makespan weigh far more than a unit of start time. It does so for a
# whole batch of durations. We use that to make examples for a network: what a perfect planner would
# do on days with different durations.


# %%
def days(count, seed):
    """Durations, (count, 6)."""
    generator = torch.Generator().manual_seed(seed)
    return classic * (0.5 + torch.rand(count, 6, generator=generator, dtype=torch.float64))


def shortest(x):
    """Shortest schedules, and of these those that start earliest, (count, 4)."""
    zero = torch.zeros(len(x), 4, dtype=torch.float64)
    return gdpnet.project(rules, zero, x, weights=[1, 1, 1, 100]).y


x, new_x = days(300, seed=0), days(1000, seed=1)
target, best = shortest(x), shortest(new_x)
assert abs(shortest(classic[None])[0, 3].item() - 11) < 1e-9
for day, schedule in zip(x[:5], target[:5], strict=True):
    for index, value in zip(m.duration, day.tolist(), strict=True):
        m.duration[index] = value
    print(f"projection {schedule[3]:.6f}, MILP {solve(m):.6f}")
    assert abs(schedule[3].item() - solve(m)) < 1e-5

# %% [markdown]
# ## A network that schedules
#
# First a small network imitates the planner, without rules. Inputs and targets are standardised,
# and `with_rules` is told how; its method `physical` gives outputs in units of time.

# %%
in_mean, in_scale = x.mean(0), x.std(0)
out_mean, out_scale = target.mean(0), target.std(0)
seen, new_seen = (x - in_mean) / in_scale, (new_x - in_mean) / in_scale
wanted = (target - out_mean) / out_scale

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 4)).double()
planner = gdpnet.nn.with_rules(
    network, rules, input_scale=(in_mean, in_scale), output_scale=(out_mean, out_scale)
)


def train(loss_of, rate):
    """Steps that were taken until there was no gradient left."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate)
    for step in range(STEPS):
        loss = loss_of()
        optimiser.zero_grad()
        loss.backward()
        if not any(weights.grad.any() for weights in network.parameters()):
            return step
        optimiser.step()
    return STEPS


JOB = torch.tensor([[job == other for other in "ABC"] for job, _ in CLASSIC], dtype=torch.float64)


def lasts(schedule, x):
    """When the last job is done, computed from the starts alone."""
    return (schedule[:, :3] + x @ JOB).amax(1)


def tell(name, schedule):
    """Per cent of the schedules of new days that are valid, and that are as short as can be."""
    valid = 100 * rules.satisfied(schedule, new_x).double().mean().item()
    longer = lasts(schedule, new_x) / best[:, 3] - 1
    shortest = 100 * (longer < 1e-3).double().mean().item()
    told = f"{valid:5.1f} % valid"
    if valid == 100:
        told += (
            f"; {100 * longer.mean():.2f} % too long, the shortest on {shortest:.1f} % of the days"
        )
    print(f"{name:24} {told}")
    return valid, shortest


train(lambda: (network(seen) - wanted).square().mean(), rate=3e-3)
with torch.no_grad():
    alone = network(new_seen) * out_scale + out_mean
    projected = planner.physical(new_seen)
alone_valid, _ = tell("network alone", alone)
projected_valid, imitated = tell("projected at the end", projected)
assert SMOKE or alone_valid < 5
assert projected_valid == 100

# %% [markdown]
# Hardly any of the network's own schedules is valid: the best ones have no slack, so the smallest
# error makes two jobs clash. Projected they are all valid, and not much longer than the shortest.
#
# Now the layer earns its place. Every output is a valid schedule, so its makespan *means*
# something, and we can train on it directly. No example of a good schedule is needed for that, only
# days.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
    steps = train(lambda: (planner.physical(seen)[:, 3] / target[:, 3]).mean(), rate=1e-3)
print(f"{steps} steps")
with torch.no_grad():
    trained = planner.physical(new_seen)
trained_valid, learned = tell("trained on the makespan", trained)
assert trained_valid == 100
assert SMOKE or learned > imitated + 20

# %% [markdown]
# (Dividing by the shortest makespan makes all days count alike; it could be left out.) The gradient
# is the default, half exact Jacobian and half straight-through where that leads towards the rules;
# tutorial 4 explains the choice. When it is zero for a whole batch, gdpnet warns. Here that is no
# accident but the end: no small change of any prediction makes its schedule shorter, so we listen
# for it, and stop.

# %%
day = int((lasts(projected, new_x) - lasts(trained, new_x)).argmax())
figure, axes = plt.subplots(1, 3, figsize=(13, 2.8), sharex=True, sharey=True)
for ax, (name, schedule) in zip(
    axes, {"network alone": alone, "projected": projected, "trained": trained}.items(), strict=True
):
    draw(ax, schedule[day].tolist(), new_x[day].tolist(), name)
print(f"a new day; its shortest schedule takes {best[day, 3]:.2f}")
print(f"projected {lasts(projected, new_x)[day]:.2f}, trained {lasts(trained, new_x)[day]:.2f}")

# %% [markdown]
# Most of the schedules that are still too long have jobs in another order than the shortest one. A
# gradient sees how to shorten a schedule, not that another order would be shorter.

# %%
long = lasts(trained, new_x) > 1.001 * best[:, 3]
orders = [gdpnet.project(rules, y[long], new_x[long]).disjunct for y in (trained, best)]
wrong = 100 * (orders[0] != orders[1]).any(1).double().mean().item()
print(f"of {long.sum()} schedules that are too long, {wrong:.0f} % have another order of jobs")
assert SMOKE or wrong > 50

# %% [markdown]
# ## Larger shops
#
# The same function, six jobs on four machines: projecting is still a matter of milliseconds
# (tutorial 5 tells why).

# %%
large = {(job, k): 1 + (3 * i + 2 * k) % 5 for i, job in enumerate("ABCDEF") for k in range(1, 5)}
m = job_shop(large, horizon=60)
rules = gdpnet.RuleModel(m, outputs=[m.start, m.makespan], inputs=[m.duration])
durations = torch.tensor(list(large.values()), dtype=torch.float64)
p = gdpnet.project(rules, torch.zeros(7, dtype=torch.float64), durations)
print(f"{len(rules.names)} rules, {2 ** len(rules.names):.1e} terms; {p.info.nodes.item()} nodes")
print("starts", [round(v, 2) for v in p.y[:6].tolist()], "makespan", round(p.y[6].item(), 2))
assert p.status.item() == gdpnet.Status.PROJECTED
assert rules.satisfied(p.y, durations)

# %% [markdown]
# The whole solution goes back into the model, the indicators of the disjuncts included:

# %%
p.load_into(m)
chosen = sum(d.indicator_var.value for d in m.component_data_objects(Disjunct))
print(f"makespan {m.makespan.value:g}, {chosen} disjuncts chosen")
assert chosen == len(rules.names)
assert all(row.uslack() >= -1e-9 for row in m.finish.values())

# %% [markdown]
# ## From your model to a layer
#
# 1. Vars that a network predicts are `outputs`; all others stay helpers. `print(gdpnet.check(m))`
#    names all that stands in the way at once.
# 2. Whatever differs from sample to sample is a mutable Param, and an `input`.
# 3. `print(gdpnet.RuleModel(...))`, and project points whose answers you know. `solver="milp"` and
#    Pyomo's own `gdp.bigm` are there to check.
# 4. Outputs need finite bounds for CNF, partial DNF and big-M; the exact projection does without.
#
# ## Something to try
#
# * Train on the makespan with `gradient="straight_through"` in `with_rules`: what goes wrong? Then
#   imitate the planner through the layer instead of training on the makespan.
# * Let jobs wait between machines: one start for each job and machine, and an order of these.
# * Put your own GDP into a file with `build() -> gdpnet.RuleModel`, and run `gdpnet inspect FILE`
#   on it.
