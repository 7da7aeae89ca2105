"""Packages of gdpnet's extras, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from gdpnet.errors import InputError


def need(module: str, extra: str, who: str = "This needs") -> Any:
    """Import a module, or say which extra of gdpnet brings it.

    Args:
        module: its name.
        extra: the extra.
        who: start of the sentence, such as "Pictures need".
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            f"{who} {package}, which is not installed. pip install 'gdpnet[{extra}]'"
        ) from None
