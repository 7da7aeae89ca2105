"""Extended formulations of CNF, partial DNF and DNF: linear programs in copies of y.

| module | what is in it |
|---|---|
| `backend` | `Extended`: who solves which sample, and whether its point satisfies the rules |
| `adaptive` | basic steps where a relaxation's point breaks rules |
| `engine`, `tables` | gdpnet's own simplex: batches and threads, layouts as flat arrays |
| `written_out` | programs kept in HiGHS or Gurobi |
| `judge` | which rules hold at a point |
| `rows_alone` | the projection onto the disjuncts that a point satisfies |
| `pays`, `cheapest` | rules with prices: what a point pays, and whether that is the least |
| `jacobian`, `written_jacobian` | derivatives from the final bases |
"""
