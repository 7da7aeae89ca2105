"""The exact engine: nearest points of disjunctive rules, without writing down the DNF.

| module | what is in it |
|---|---|
| `backend` | `Exact`: the search, and MILP for what it cannot finish |
| `answer`, `linearisation` | what it found, and its derivative, made when somebody looks |
| `options` | how it searches |
| `margin` | contradictions looked at again, with a margin |
| `breaking` | what `on_conflict="nearest"` makes of them in the Euclidean norm |
| `dropping` | what `on_conflict="drop"` makes of them |
| `engine` | batches and threads |
| `arrays` | the rules as the core reads them, split into connected components |
| `jacobian` | derivatives of vertices and of least-norm points |
| `prices` | what rows and bounds hold a Euclidean projection where it is |
| `products` | the terms of the DNF within a distance |
"""
