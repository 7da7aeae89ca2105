"""What the command line calls: loading model files, and (as they come) studies of them."""

from gdpnet.study._models import LoadedModel, load_model
from gdpnet.study._summary import projection_summary

__all__ = ["LoadedModel", "load_model", "projection_summary"]
