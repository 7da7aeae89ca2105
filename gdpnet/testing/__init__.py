"""For authors of solvers and gradients: problems with known answers, oracles, contract tests.

`PROBLEMS` is the bank that gdpnet's own tests run through, `CONVEX` the part of it with rows that
are convex and not linear, `with_random_prices` gives rules prices, `large` has problems of the size
that benchmarks need, `oracles` finds distances by Pyomo and HiGHS alone. `BackendContract` is a
class of tests; a subclass that names a solver is collected by pytest.
"""

from gdpnet.testing import oracles
from gdpnet.testing._problem import Problem, Sample, problem, samples
from gdpnet.testing._random_convex import random_convex_model
from gdpnet.testing._random_prices import with_random_prices
from gdpnet.testing._random_rules import random_predictions, random_rules
from gdpnet.testing.contract import BackendContract
from gdpnet.testing.problems import BY_NAME, CONVEX, PROBLEMS, large

__all__ = [
    "BY_NAME",
    "CONVEX",
    "PROBLEMS",
    "BackendContract",
    "Problem",
    "Sample",
    "large",
    "oracles",
    "problem",
    "random_convex_model",
    "random_predictions",
    "random_rules",
    "samples",
    "with_random_prices",
]
