"""Backends by name: strings are shorthands of objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gdpnet.errors import InputError
from gdpnet.solve.base import Backend

BACKENDS: dict[str, Callable[[], Backend]] = {}
"""What makes them, by name; `register` writes into it."""


def register(name: str, make: Callable[[], Backend]) -> None:
    """Give a backend a name that `solver=` takes, and `gdpnet project --solver`.

    Args:
        name: the name; one that is taken is replaced.
        make: makes the backend, such as its class.

    Example:
        >>> from gdpnet.solve import MILP, names, register
        >>> register("certain", MILP)
        >>> "certain" in names()
        True
    """
    if name == "auto" or not callable(make):
        raise InputError(
            f"register: expected a name but 'auto', and a class or function that makes a backend, "
            f"got {name!r} and {make!r}."
        )
    BACKENDS[name] = make


def names() -> list[str]:
    """Names of all backends."""
    return list(BACKENDS)


def backend_of(solver: Any) -> Backend:
    """A backend from what a user may write: an object, or the name of one."""
    if isinstance(solver, Backend):
        return solver
    if isinstance(solver, str) and solver in BACKENDS:
        return BACKENDS[solver]()
    raise InputError(
        f"solver: expected one of 'auto', {', '.join(map(repr, BACKENDS))} or an object such as "
        f"gdpnet.solve.Exact(node_limit=10_000), got {solver!r}."
    )
