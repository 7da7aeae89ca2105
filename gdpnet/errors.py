"""Errors of gdpnet.

All derive from Pyomo's `GDP_Error`, so that a modeller who catches that catches ours. Saved rules
can be loaded on a machine without Pyomo; there the base is `Exception`.
"""

from __future__ import annotations

try:
    from pyomo.gdp import GDP_Error
except ImportError:  # a machine that only runs saved rules

    class GDP_Error(Exception):  # type: ignore[no-redef]  # noqa: N801
        """Stand-in for Pyomo's class where Pyomo is not installed."""


class GdpnetError(GDP_Error):
    """Base of every error that gdpnet raises on purpose."""


class RuleError(GdpnetError):
    """The rules cannot be read: the message names the component and the way out."""


class InputError(GdpnetError, ValueError):
    """An argument has the wrong shape, type or value; the message says which was expected."""


class ConflictError(GdpnetError):
    """The active rules contradict each other for some samples."""


class SolverError(GdpnetError):
    """A solver is missing, refuses its licence, or gave no usable answer."""


class ModelFileError(GdpnetError):
    """A model file cannot be loaded."""


class ConflictWarning(UserWarning):
    """Bounds, global constraints and logic contradict each other: breaking rules does not help."""


class ZeroGradientWarning(UserWarning):
    """The gradient of a whole batch vanished behind the projection."""


class IdentityGradientWarning(UserWarning):
    """Gradients pass samples unchanged that a fallback solved, whose derivative is not known."""
