"""The exact engine: nearest points of disjunctive rules, without writing down the DNF.

_arrays    the rules as the kernels read them, split into independent components
_tape      conditions and coefficients of a batch
_simplex   the linear program at a node: a dual simplex over the columns only
_search    branching on broken clauses
_kernel    the loop over samples
_engine    batches and threads
_jacobian  derivatives from the final dictionary
"""

from gdpnet.solve.exact._engine import ExactEngine, Instance, Solved
from gdpnet.solve.exact._jacobian import FactoredJacobian, Gradients
from gdpnet.solve.exact._kernel import ACCEPTED_AS_IS
from gdpnet.solve.exact._products import Products, products_within
from gdpnet.solve.exact._search import NO_SOLUTION, NODE_LIMIT, NUMERICAL, SOLVED

__all__ = [
    "ACCEPTED_AS_IS",
    "NODE_LIMIT",
    "NO_SOLUTION",
    "NUMERICAL",
    "SOLVED",
    "ExactEngine",
    "FactoredJacobian",
    "Gradients",
    "Instance",
    "Products",
    "Solved",
    "products_within",
]
