"""Relaxations with the Euclidean norm: conic programs, solved by Clarabel.

| module | what is in it |
|---|---|
| `backend` | `Conic`: which samples get which program, and whether their points satisfy the rules |
| `written`, `data` | programs kept in Clarabel, and batches of them |
| `jacobian`, `linearisation` | derivatives of the programs' points, and of a batch |
"""
