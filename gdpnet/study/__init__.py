"""What the command line calls: loading model files, and (as they come) studies of them."""

from gdpnet.study._models import LoadedModel, load_model
from gdpnet.study._summary import projection_summary
from gdpnet.study.training import (
    METHODS,
    PROTOCOLS,
    Data,
    Grid,
    Method,
    Protocol,
    Stage,
    StudyFolder,
    Task,
    method_named,
    train,
)

__all__ = [
    "METHODS",
    "PROTOCOLS",
    "Data",
    "Grid",
    "LoadedModel",
    "Method",
    "Protocol",
    "Stage",
    "StudyFolder",
    "Task",
    "load_model",
    "method_named",
    "projection_summary",
    "train",
]
