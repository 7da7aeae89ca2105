"""The exact engine: nearest points of disjunctive rules, without writing down the DNF.

| module | what is in it |
|---|---|
| `_arrays` | the rules as the kernels read them, split into independent components |
| `_tape` | conditions and coefficients of a batch |
| `_dictionary`, `_simplex` | the linear program at a node: a dual simplex over the columns only |
| `_clauses`, `_stack`, `_search` | branching on broken clauses |
| `_kernel`, `_engine` | the loop over samples; batches and threads |
| `_least_norm`, `_quadratic` | of all nearest points the one of least norm |
| `_jacobian`, `_face` | derivatives of vertices and of least-norm points |
| `_products` | the terms of the DNF within a distance |
"""

from gdpnet.solve.exact._engine import ExactEngine, Instance, Solved
from gdpnet.solve.exact._face import FaceJacobian
from gdpnet.solve.exact._jacobian import FactoredJacobian
from gdpnet.solve.exact._kernel import ACCEPTED_AS_IS
from gdpnet.solve.exact._products import Products, products_within
from gdpnet.solve.exact._search import NO_SOLUTION, NODE_LIMIT, NUMERICAL, SOLVED
from gdpnet.solve.gradients import Gradients

__all__ = [
    "ACCEPTED_AS_IS",
    "NODE_LIMIT",
    "NO_SOLUTION",
    "NUMERICAL",
    "SOLVED",
    "ExactEngine",
    "FaceJacobian",
    "FactoredJacobian",
    "Gradients",
    "Instance",
    "Products",
    "Solved",
    "products_within",
]
