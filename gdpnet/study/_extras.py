"""Packages that only studies need."""

from __future__ import annotations

import importlib
from typing import Any

from gdpnet.errors import InputError


def need(module: str, extra: str = "study") -> Any:
    """Import a module, or say which extra of gdpnet brings it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            f"This needs {package}, which is not installed. pip install 'gdpnet[{extra}]'"
        ) from None
