"""The regularised program and its derivative.

| module | what is in it |
|---|---|
| `_dnf` | of the DNF: definition, bound on the band with its proof, batches |
| `_band`, `_forward`, `_pieces`, `_backward` | its kernels |
| `_layouts`, `_parts` | of CNF and partial DNF: samples with a part in common together |
| `_blocks`, `_newton` | their kernels: an interior-point method over copies, its derivative |
| `_lanes` | vectors, so that these advance eight samples at a time |
"""
