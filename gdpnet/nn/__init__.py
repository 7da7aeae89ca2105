"""Rules in torch."""

from gdpnet.nn.layer import ProjectionLayer

__all__ = ["ProjectionLayer"]
