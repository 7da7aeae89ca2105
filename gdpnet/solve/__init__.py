"""From rules and predictions to outputs: status, solvers, projection."""

from gdpnet.solve.project import Projection, ProjectionInfo, project
from gdpnet.solve.status import Status

__all__ = ["Projection", "ProjectionInfo", "Status", "project"]
