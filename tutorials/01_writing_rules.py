# %% [markdown]
# # 1. Writing rules
#
# You will learn to say with Pyomo.GDP whatever a rule can say: alternatives, when a rule applies,
# what always holds, numbers that depend on the input, formulas, logic between alternatives, nested
# alternatives, whole numbers, helper variables. At the end you will meet the error messages, and
# what they ask you to do. Time: fifteen minutes.
#
# If you are new to Pyomo: a model `m` is a Python object to which you attach components. A `Var` is
# an unknown, here an output of the network. A mutable `Param` is a number that is given later, here
# an input. `m.a <= 3` does not compare; it makes a relation.

# %%
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet


def numbers(y):
    """Outputs, rounded to be printed; the sum makes 0 of what was rounded to -0."""
    return [round(v, 3) + 0.0 for v in y.flatten().tolist()]


# %% [markdown]
# ## Alternatives, and when they apply
#
# A plant is cooled by a fan `f` and a chiller `c`, both between 0 and 1. When it is hot outside,
# the chiller runs at 45 % or more, or the fan at 75 % or more. The alternatives are a
# `Disjunction`. The condition is an entry of a `Suffix` (Pyomo's word for notes on components) with
# the name `active_when`.

# %%
m = pyo.ConcreteModel()
m.Ta = pyo.Param(mutable=True, initialize=20.0)  # ambient temperature, an input
m.f = pyo.Var(bounds=(0, 1))
m.c = pyo.Var(bounds=(0, 1))
m.hot = Disjunction(expr=[[m.c >= 0.45], [m.f >= 0.75]])
m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
m.active_when[m.hot] = m.Ta >= 28

rules = gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.Ta])
print(rules)

# %% [markdown]
# Always print a `RuleModel`: it says what was read. `outputs` and `inputs` fix the order of the
# columns of `y` and `x`.

# %%
x = torch.tensor([[20.0], [30.0]])
yhat = torch.tensor([[0.6, 0.1], [0.6, 0.1]])
p = gdpnet.project(rules, yhat, x)
print("active:   ", rules.active(x).flatten().tolist())
print("projected:", [numbers(y) for y in p.y])
print("disjunct: ", p.disjunct.flatten().tolist(), "(-1: the rule does not apply)")
assert rules.active(x).tolist() == [[False], [True]]
assert torch.allclose(p.y, torch.tensor([[0.6, 0.1], [0.75, 0.1]]))

# %% [markdown]
# The same prediction passes on a mild day; on a hot day the fan goes up by 0.15, which is nearer
# than 0.35 more of the chiller. Distances are measured in the l1 norm, the sum of all moves;
# `weights=` of `project` gives outputs different prices.
#
# Several conditions are joined by `pyo.land`, `pyo.lor`, `pyo.lnot`. A function of `x`, from
# `(batch, p)` to `(batch,)` truth values, serves where Pyomo's relations do not.
#
# ## What always holds
#
# A plain `Constraint` holds in every sample, and so do the bounds of the Vars. Coefficients and
# right sides may depend on inputs in any way that Pyomo can write; `gdpnet.relu`, `gdpnet.maximum`
# and `gdpnet.minimum` stand in for Python's `max` and `min`, which do not work on symbols. A
# `Constraint` with an entry in `active_when` is a rule with a single disjunct.

# %%
m.demand = pyo.Constraint(expr=0.6 * m.f + m.c >= 0.2 + 0.02 * gdpnet.relu(m.Ta - 20))
m.frost = pyo.Constraint(expr=m.c <= 0.05)
m.active_when[m.frost] = m.Ta <= 5

rules = gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.Ta])
print(rules)
for Ta in (0.0, 20.0, 40.0):
    print(f"Ta = {Ta:2g}: f, c = {numbers(gdpnet.project(rules, [0.1, 0.1], [Ta]).y)}")

# %% [markdown]
# A `RuleModel` is a snapshot. We had to make a new one after adding constraints, and the Pyomo
# model itself is never changed.
#
# ## Formulas
#
# Some rules are easier to say as a formula. `gdpnet.rule` makes a Disjunction of one, and writes
# the condition into `active_when` for you.

# %%
m = pyo.ConcreteModel()
m.event = pyo.Param(mutable=True, initialize=0.0)
m.f = pyo.Var(bounds=(0, 1))
m.c = pyo.Var(bounds=(0, 1))
m.power = pyo.Expression(expr=0.3 * m.f + 0.7 * m.c)
m.save = gdpnet.rule(
    gdpnet.any_of(m.power <= 0.4, gdpnet.all_of(m.f <= 0.5, m.c <= 0.4)), when=m.event >= 0.5
)
m.follow = gdpnet.rule(gdpnet.implies(m.c >= 0.6, m.f >= 0.3))
m.resonance = gdpnet.rule(gdpnet.none_of(gdpnet.all_of(m.f >= 0.42, m.f <= 0.48)))

rules = gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.event])
print(rules)

# %% [markdown]
# Note how `implies` and `none_of` were written out: the opposite of `>=` is `<=`. Sets are closed
# here, as in the paper: the boundary belongs to both sides. A condition on *inputs* belongs into
# `when`; `implies` is for conditions on *outputs*.
#
# `rules.explain` tells which rows moved a prediction.

# %%
print(rules.explain([0.45, 0.9], [1.0]))

# %% [markdown]
# ## Names, logic, nesting
#
# Disjuncts can be components with a name. Then a `LogicalConstraint` can speak about them through
# their `indicator_var`. Here each of two pumps is off, or runs within its range, and at least one
# of them runs.

# %%
m = pyo.ConcreteModel()
m.q = pyo.Var(["A", "B"], bounds=(0, 10))
m.off = Disjunct(["A", "B"])
m.on = Disjunct(["A", "B"])
for i in ("A", "B"):
    m.off[i].flow = pyo.Constraint(expr=m.q[i] == 0)
    m.on[i].flow = pyo.Constraint(expr=m.q[i] >= 4)
m.pump = Disjunction(["A", "B"], rule=lambda m, i: [m.off[i], m.on[i]])

apart = gdpnet.RuleModel(m, outputs=[m.q])
m.one_runs = pyo.LogicalConstraint(
    expr=pyo.atleast(1, m.on["A"].indicator_var, m.on["B"].indicator_var)
)
rules = gdpnet.RuleModel(m, outputs=[m.q])
print(rules)
print("without logic:", numbers(gdpnet.project(apart, [1.5, 1.0]).y))
print("with logic:   ", numbers(gdpnet.project(rules, [1.5, 1.0]).y))
assert gdpnet.project(apart, [1.5, 1.0]).y.tolist() == [0, 0]
assert gdpnet.project(rules, [1.5, 1.0]).y.tolist() == [4, 0]

# %% [markdown]
# A Disjunction inside a Disjunct is a nested rule: it has to hold only where its parent was chosen.
# A valve is closed; or it is open, and then it is throttled below 3 or fully open above 8.

# %%
m = pyo.ConcreteModel()
m.v = pyo.Var(bounds=(0, 10))
m.closed = Disjunct()
m.closed.flow = pyo.Constraint(expr=m.v == 0)
m.open = Disjunct()
m.open.flow = pyo.Constraint(expr=m.v >= 1)
m.open.mode = Disjunction(expr=[[m.v <= 3], [m.v >= 8]])
m.valve = Disjunction(expr=[m.closed, m.open])
rules = gdpnet.RuleModel(m, outputs=[m.v])
print(rules)
moved = numbers(gdpnet.project(rules, [[0.3], [0.8], [5.0], [6.0]]).y)
print("0.3, 0.8, 5, 6 ->", moved)
assert moved == [0, 1, 3, 8]

# %% [markdown]
# ## Whole numbers and helper variables
#
# Integer and binary Vars are allowed with finite bounds, as outputs or helpers. A Var that is not
# among the outputs is a helper (an *auxiliary*): it takes whatever value makes the rules hold and
# costs nothing. Here a lot size `y` has to be packed in `n` boxes of 12 or in `n` boxes of 20, with
# at most 3 boxes.

# %%
m = pyo.ConcreteModel()
m.y = pyo.Var(bounds=(0, 100))
m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
m.box = Disjunction(expr=[[m.y == 12 * m.n], [m.y == 20 * m.n]])
rules = gdpnet.RuleModel(m, outputs=[m.y])
print(rules)
moved = numbers(gdpnet.project(rules, [[15.0], [17.0], [31.0], [95.0]]).y)
print("15, 17, 31, 95 ->", moved)
assert moved == [12, 20, 36, 60]

# %% [markdown]
# ## Rules that contradict each other
#
# With inputs in play it can happen that no output satisfies all active rules. A sample's status
# says so, `explain_conflict` names culprits, none superfluous, and `on_conflict` decides what to
# return: the prediction itself (`"pass"`, the default), an error (`"raise"`), or the output that
# breaks the rules least (`"nearest"`).

# %%
m = pyo.ConcreteModel()
m.need = pyo.Param(mutable=True, initialize=0.0)
m.quiet = pyo.Param(mutable=True, initialize=0.0)
m.f = pyo.Var(bounds=(0, 1))
m.c = pyo.Var(bounds=(0, 1))
m.demand = pyo.Constraint(expr=m.f + m.c >= m.need)
m.night = gdpnet.rule(gdpnet.any_of(m.f <= 0.2, m.c <= 0.1), when=m.quiet >= 0.5)
m.balance = gdpnet.rule(gdpnet.any_of(m.f >= 0.1, m.c >= 0.1))
rules = gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.need, m.quiet])

tomorrow = torch.tensor([1.5, 1.0])
p = gdpnet.project(rules, [0.9, 0.5], tomorrow)
print(gdpnet.Status(p.status.item()).name, "-", gdpnet.Status(p.status.item()).message)
print("contradict each other:", rules.explain_conflict(tomorrow))
nearest = gdpnet.project(rules, [0.9, 0.5], tomorrow, on_conflict="nearest").y
print("broken as little as possible:", numbers(nearest))
assert rules.global_violation(nearest, tomorrow) <= 1e-6

# %% [markdown]
# `balance` is not in the list: it plays no part in the contradiction.
#
# ## Errors and what they mean
#
# Whatever gdpnet cannot read or enforce exactly it refuses, with the name of the component and what
# to do. `gdpnet.GdpnetError` is the parent of all of its errors, and is itself a Pyomo `GDP_Error`.
# Let us make the usual mistakes.


# %%
def mistake(make):
    """Run a function that has to fail, and print how."""
    try:
        make()
    except gdpnet.GdpnetError as error:
        print(f"{type(error).__name__}: {error}\n")
    else:
        raise AssertionError("expected an error")


def fresh():
    """A model with one input and two outputs."""
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    return m


# %% [markdown]
# A product of outputs is not convex, and only convex rows have an exact hull. A condition on an
# output is not a condition on the input.


# %%
def product_of_outputs():
    m = fresh()
    m.rule = Disjunction(expr=[[m.y[1] * m.y[2] <= 3], [m.y[1] >= 7]])
    gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


def condition_on_an_output():
    m = fresh()
    m.rule = Disjunction(expr=[[m.y[1] <= 3], [m.y[2] >= 7]])
    m.active_when[m.rule] = m.y[2] >= 5
    gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


mistake(product_of_outputs)
mistake(condition_on_an_output)

# %% [markdown]
# An input must be a *mutable* Param, since to Pyomo an immutable one is a plain number. "Not equal"
# has no nearest point. Integers need bounds.


# %%
def immutable_input():
    m = fresh()
    m.s = pyo.Param(initialize=1.0)
    gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.s])


def not_equal():
    m = fresh()
    m.rule = gdpnet.rule(gdpnet.none_of(m.y[1] == 3))


def integer_without_bounds():
    m = fresh()
    m.n = pyo.Var(domain=pyo.Integers)
    m.rule = Disjunction(expr=[[m.y[1] == m.n], [m.y[1] == 5 * m.n]])
    gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


mistake(immutable_input)
mistake(not_equal)
mistake(integer_without_bounds)

# %% [markdown]
# And these come when the rules are used: a wrong shape, forgotten inputs, a NaN from a diverged
# network, a relaxation that needs bounds which an output does not have.


# %%
m = fresh()
m.rule = Disjunction(expr=[[m.y[1] <= 3], [m.y[2] >= m.t]])
rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
mistake(lambda: gdpnet.project(rules, [[1.0, 2.0, 3.0]], [[1.0]]))
mistake(lambda: gdpnet.project(rules, [[5.0, 2.0]]))
mistake(lambda: gdpnet.project(rules, [[5.0, 2.0], [float("nan"), 1.0]], [[1.0], [1.0]]))

m = fresh()
m.z = pyo.Var()
m.rule = Disjunction(expr=[[m.z <= 3], [m.z >= 7]])
unbounded = gdpnet.RuleModel(m, outputs=[m.z])
assert gdpnet.project(unbounded, [4.5]).y.item() == 3  # the exact projection needs no bounds
mistake(lambda: gdpnet.project(unbounded, [4.5], relaxation="cnf"))

# %% [markdown]
# One mistake gives no error: a Param that you forget to name in `inputs` is a number, at the value
# that it has now. Print the rules, and you see it: the condition has become `true`.

# %%
m = fresh()
m.rule = Disjunction(expr=[[m.y[1] <= 3], [m.y[2] >= 7]])
m.active_when[m.rule] = m.t >= 1
forgotten = gdpnet.RuleModel(m, outputs=[m.y])
print(forgotten)
assert "if true" in str(forgotten)

# %% [markdown]
# ## Something to try
#
# * Add to the pumps the rule that both together deliver at least 5 whenever both run. (A `Disjunct`
#   may hold several constraints; or write a formula.)
# * Write a rule of your own work, print it, and project three points whose answers you know.
# * Next: tutorial 2, what becomes of rules when they are made convex.
