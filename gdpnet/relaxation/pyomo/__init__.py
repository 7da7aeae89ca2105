"""Pyomo transformations, and the chain of them that makes a linear program.

| module | what is in it |
|---|---|
| `basic_steps`, `alternatives`, `propositions` | `gdpnet.basic_steps`: merged rules |
| `feasibility` | which products are empty |
| `lift`, `components` | `gdpnet.lift_projection`: distance and globals in every disjunct |
| `hull`, `symbolic` | `gdpnet.hull`: Params stay symbolic |
| `chain`, `activation` | `gdpnet.convexify`: all of them on a clone |
| `adapter` | the chain's program as parametric sparse matrices |
| `rebuild` | a Pyomo model of rules that were loaded from a file |
| `provenance`, `walk` | where things came from; how a model is walked through |
"""
