"""All tests of pictures run without a screen."""

from tests.plot._axes import without_a_screen

__all__ = ["without_a_screen"]
