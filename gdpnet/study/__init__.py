"""What the command line calls: loading model files, and studies of them."""

from gdpnet.study._models import LoadedModel, load_model
from gdpnet.study._summary import projection_summary
from gdpnet.study.comparison import Comparison, compare

__all__ = ["Comparison", "LoadedModel", "compare", "load_model", "projection_summary"]
