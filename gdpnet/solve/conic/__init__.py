"""Relaxations with the Euclidean norm: conic programs, solved by Clarabel.

| module | what is in it |
|---|---|
| `backend` | `Conic`: which samples get which program, and whether their points satisfy the rules |
| `written` | programs kept in Clarabel, and batches of them |
| `chosen` | the projection onto the disjuncts that a point satisfies |
"""
