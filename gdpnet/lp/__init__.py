"""Linear and mixed-integer programs, and the solvers of others: the only room that configures them.

| module | what is in it |
|---|---|
| `program` | a program, and what a solver says of it |
| `highs`, `gurobi` | the solvers |
| `clock` | limits of time, and solvers that run where they can be called off |
"""

NAMES = {"highs": "HiGHS", "gurobi": "Gurobi"}
"""Solvers as their makers write them."""
