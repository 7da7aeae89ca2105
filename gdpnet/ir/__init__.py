"""Rules as data: plain rows, clauses and coefficients, evaluated for batches; no Pyomo, no solver.

| module | what is in it |
|---|---|
| `data` | columns, rows with a role, booleans, clauses with a kind, rules |
| `linear`, `atoms` | coefficients that depend on the inputs, and their evaluation |
| `intervals` | ranges of expressions in the inputs |
| `table` | the rows of a model as tensors |
| `curves`, `slopes` | values of what is convex in rows, and not linear; how steep it can be |
| `instance` | the rules at a batch of inputs, as numpy arrays |
| `tape` | the rules' expressions as instructions of a kernel, which evaluates them |
| `prices` | what booleans cost, and what is paid for a choice |
| `satisfaction` | residuals of disjuncts, rules and globals |
| `semantics` | what may be chosen, what a choice enforces, connected components |
| `interaction` | which rules meet |
| `logic` | propositions as clauses, and truth values for them |
| `steps` | units of rows, and equalities between integers |
| `batch` | arguments `x` and `y` in one shape |
"""
