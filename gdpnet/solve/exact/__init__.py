"""The exact engine: nearest points of disjunctive rules, without writing down the DNF.

| module | what is in it |
|---|---|
| `arrays` | the rules as the kernels read them, split into independent components |
| `engine` | batches and threads |
| `jacobian` | derivatives of vertices and of least-norm points |
| `products` | the terms of the DNF within a distance |
"""

from gdpnet.kernels import ACCEPTED_AS_IS, NO_SOLUTION, NODE_LIMIT, NUMERICAL, SOLVED
from gdpnet.solve.exact.engine import ExactEngine, Solved
from gdpnet.solve.exact.jacobian import FaceJacobian, FactoredJacobian
from gdpnet.solve.exact.products import Products, products_within
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
    "Products",
    "Solved",
    "products_within",
]
