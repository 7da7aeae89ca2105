"""The regularised program and its derivative.

| module | what is in it |
|---|---|
| `_dnf` | of the DNF: definition, bound on the band with its proof, batches |
| `_band`, `_forward`, `_pieces`, `_backward` | its kernels |
| `_layouts`, `_parts` | of CNF and partial DNF: layout by layout, part by part |
| `_blocks` | their kernel: an interior-point method over copies, and its derivative |
"""
