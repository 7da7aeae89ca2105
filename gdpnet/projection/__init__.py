"""From rules and predictions to outputs: `project`, what it returns, what is done to an answer."""

from gdpnet.projection.projection import Projection, ProjectionInfo
from gdpnet.projection.projector import project
from gdpnet.projection.tracker import Tracker
from gdpnet.solve.status import Status

__all__ = ["Projection", "ProjectionInfo", "Status", "Tracker", "project"]
