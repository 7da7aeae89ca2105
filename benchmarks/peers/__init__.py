"""What a user would pick instead of gdpnet, on the same rules and predictions.

`problem.py` is what every peer is given: plain arrays, so that a peer may run in an environment
without gdpnet. `cases.py` makes them, `program.py` writes them as linear or quadratic programs, one
file a peer solves them, `worker.py` times a peer in a process of its own, `judge.py` looks at
its answers, and `report.py` writes tables, claims and the figure.
"""
