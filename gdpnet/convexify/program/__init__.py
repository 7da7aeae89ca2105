"""The linear program of a relaxation, written directly, and the adapter that reads the chain's.

| module | what is in it |
|---|---|
| `_relaxable` | logic and whole numbers as rows |
| `_products`, `_room` | the products of merged rules, empty ones left out |
| `_blocks`, `_layouts` | merged rules, and which of them hang together, by active rules |
| `_rows`, `_sparse` | rows with entries that differ between samples |
| `_program`, `_sizes` | the program as the Pyomo chain writes it; how large it is |
| `_compact` | the same in fewer rows, for solvers |
| `_adapter` | the Pyomo chain's program as parametric sparse matrices |
"""
