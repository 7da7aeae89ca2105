"""Errors of gdpnet.

All derive from Pyomo's `GDP_Error`, so that a modeller who catches that catches ours. Importing
gdpnet does not import Pyomo, so they do from the moment on at which `pyomo.gdp` is imported.
"""

from __future__ import annotations

from gdpnet.late import after_pyomo_gdp


class _Root(Exception):  # noqa: N818
    """Where Pyomo's class will be: Python exchanges a base only for one of the same layout."""


class GdpnetError(_Root):
    """Base of every error that gdpnet raises on purpose."""


def _derive_from_pyomos() -> None:
    from pyomo.gdp import GDP_Error

    GdpnetError.__bases__ = (GDP_Error,)


after_pyomo_gdp(_derive_from_pyomos)


class RuleError(GdpnetError):
    """The rules cannot be read: the message names the component and the way out."""


class InputError(GdpnetError, ValueError):
    """An argument has the wrong shape, type or value; the message says which was expected."""


class MissingPackageError(InputError, ImportError):
    """A package is not installed that this needs; the message says how to install it."""


class ConflictError(GdpnetError):
    """The active rules contradict each other for some samples."""


class SolverError(GdpnetError):
    """A solver is missing, refuses its licence, or gave no usable answer."""


class ModelFileError(GdpnetError):
    """A model file cannot be loaded."""


class ConflictWarning(UserWarning):
    """Bounds, global constraints and logic contradict each other: breaking rules does not help."""


class CoreWarning(UserWarning):
    """The compiled core is older than its sources, or of another version than the package."""


class ZeroGradientWarning(UserWarning):
    """The gradient of a whole batch vanished behind the projection."""


class DoubtfulGradientWarning(UserWarning):
    """Gradients may be wrong: a program's numbers are of so different size that digits are open."""


class WorkLimitWarning(UserWarning):
    """Samples were left unproved by the limit of work that holds where no time_limit is given."""


class IdentityGradientWarning(UserWarning):
    """Gradients pass samples unchanged that a fallback solved, whose derivative is not known."""
