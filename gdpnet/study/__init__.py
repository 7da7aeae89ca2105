"""What the command line calls: loading model files, and (as they come) studies of them."""

from gdpnet.study._models import LoadedModel, load_model

__all__ = ["LoadedModel", "load_model"]
