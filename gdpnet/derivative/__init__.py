"""How gradients pass a projection: an object beside the solver, chosen by the caller.

| object | its gradient |
|---|---|
| `Vertex()` | the exact Jacobian of the projection, zero where rules hold y in place |
| `QP(eps)` | that of the same program with a small quadratic term, which feels nearby disjuncts |
| `StraightThrough()` | the identity |
| `Mixed(a, b, alpha)` | a weighted mean of two of them |
"""

from gdpnet.derivative.gradients import (
    QP,
    Mixed,
    Sensitivity,
    StraightThrough,
    Vertex,
    sensitivity_of,
)

__all__ = ["QP", "Mixed", "Sensitivity", "StraightThrough", "Vertex", "sensitivity_of"]
