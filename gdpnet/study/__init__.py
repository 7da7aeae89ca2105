"""What the command line calls: loading model files, and studies of them."""

from gdpnet.study._models import LoadedModel, load_model
from gdpnet.study._summary import projection_summary
from gdpnet.study.comparison import Comparison, compare
from gdpnet.study.streaming import Streamed, project_file

__all__ = [
    "Comparison",
    "LoadedModel",
    "Streamed",
    "compare",
    "load_model",
    "project_file",
    "projection_summary",
]
