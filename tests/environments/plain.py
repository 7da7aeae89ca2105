"""A Pyomo model where gdpnet is installed without extras, and what the command line says there.

The argument is the path of the script gdpnet.
"""

import subprocess
import sys

import pyomo.environ as pyo
from pyomo.gdp import Disjunction

import gdpnet

m = pyo.ConcreteModel()
m.y = pyo.Var(bounds=(0, 10))
m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
rules = gdpnet.RuleModel(m, outputs=[m.y])
for solver in ("auto", "milp", "highs", "extended"):
    assert abs(float(gdpnet.project(rules, [[4.5]], solver=solver).y) - 3.0) < 1e-9, solver
lp = gdpnet.convexify(rules, yhat=[4.5])
assert abs(pyo.SolverFactory("appsi_highs").solve(lp).problem.lower_bound - 1.5) < 1e-9

done = subprocess.run(sys.argv[1:2], capture_output=True, text=True, check=False)
assert done.returncode == 1
assert done.stdout == ""
told = "The command gdpnet needs typer, which is not installed. pip install 'gdpnet[cli]'\n"
assert done.stderr == told, done.stderr
print("fine without extras")
