"""Linear, mixed-integer and conic programs, and the solvers of others, which only it configures.

| module | what is in it |
|---|---|
| `program` | a program, and what a solver says of it |
| `options` | options of the solvers, a set for each purpose |
| `solvers`, `highs`, `gurobi` | the solvers, by name |
| `persistent` | programs kept in a solver and changed in place |
| `conic`, `standard`, `clarabel` | conic programs, their standard form, and who solves them |
| `feasibility` | whether rows leave a point |
| `clock` | limits of time, and solvers that run where they can be called off |
"""
