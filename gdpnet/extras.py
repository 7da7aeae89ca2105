"""Packages that not every machine has, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from gdpnet.errors import MissingPackageError


def need(module: str, extra: str | None, who: str = "This needs") -> Any:
    """Import a module, or say how to get it.

    Args:
        module: its name.
        extra: the extra of gdpnet that brings it; None for what gdpnet itself requires, and a
            machine that only runs saved rules may lack.
        who: start of the sentence, such as "Pictures need".
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise missing(module, extra, who) from None


def missing(module: str, extra: str | None, who: str) -> MissingPackageError:
    """The error that `need` raises."""
    package = module.partition(".")[0]
    wanted = f"'gdpnet[{extra}]'" if extra else package
    return MissingPackageError(f"{who} {package}, which is not installed. pip install {wanted}")
