"""The regularised program and its derivative.

| module | what is in it |
|---|---|
| `dnf`, `choices` | of the DNF: definition, bound on the band with its proof, batches |
| `layouts`, `parts` | of CNF and partial DNF: samples with a part in common together |
| `weighted`, `conic` | with norm="l2" or convex rows: of the DNF, and of CNF and partial DNF |
"""
