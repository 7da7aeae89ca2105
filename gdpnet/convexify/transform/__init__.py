"""Pyomo transformations, and the chain of them that makes a linear program.

| module | what is in it |
|---|---|
| `_basic_steps`, `_alternatives`, `_propositions` | `gdpnet.basic_steps`: merged rules |
| `_feasibility`, `_intervals` | which products are empty |
| `_lift`, `_components` | `gdpnet.lift_projection`: distance and globals in every disjunct |
| `_hull`, `_symbolic` | `gdpnet.hull`: Params stay symbolic |
| `_chain`, `_activation` | `gdpnet.convexify`: all of them on a clone |
| `_rebuild` | a Pyomo model of rules that were loaded from a file |
| `_provenance`, `_walk` | where things came from; how a model is walked through |
"""
