"""What the command line calls: loading model files, and studies of them."""

from gdpnet.study._data import find_data
from gdpnet.study._models import LoadedModel, load_model, shipped_models
from gdpnet.study._summary import projection_summary
from gdpnet.study.batches import BatchProjector
from gdpnet.study.comparison import Comparison, compare
from gdpnet.study.folders import project_folder
from gdpnet.study.streaming import Streamed, project_file
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
    keep_whole,
    method_named,
    train,
)

__all__ = [
    "METHODS",
    "PROTOCOLS",
    "BatchProjector",
    "Comparison",
    "Data",
    "Grid",
    "LoadedModel",
    "Method",
    "Protocol",
    "Stage",
    "Streamed",
    "StudyFolder",
    "Task",
    "compare",
    "find_data",
    "keep_whole",
    "load_model",
    "method_named",
    "project_file",
    "project_folder",
    "projection_summary",
    "shipped_models",
    "train",
]
