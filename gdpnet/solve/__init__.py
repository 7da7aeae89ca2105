"""From rules and predictions to outputs: status, solvers, projection."""

from gdpnet.solve._exact import warmup
from gdpnet.solve._project import project
from gdpnet.solve.projection import Projection, ProjectionInfo
from gdpnet.solve.status import Status

__all__ = [
    "Projection",
    "ProjectionInfo",
    "Status",
    "project",
    "warmup",
]
