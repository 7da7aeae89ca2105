"""Packages of the extra `bio`, imported when they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from gdpnet.errors import InputError
from gdpnet.extras import need


def package(name: str, needed_by: str) -> Any:
    """A package of the extra, or an error that says how to get it.

    Args:
        name: the package.
        needed_by: the function that needs it.
    """
    return need(name, "bio", f"{needed_by} needs")


def check_anndata(adata: Any, needed_by: str) -> None:
    """Refuse what is no AnnData."""
    if not isinstance(adata, package("anndata", needed_by).AnnData):
        raise InputError(
            f"{needed_by}: expected an anndata.AnnData, got {type(adata).__name__}. Read one, for "
            "example with anndata.read_h5ad(file)."
        )


def name_unknown(unknown: Iterable[str], known: Sequence[str]) -> str:
    """Names that do not exist, each with those that look like it."""
    by_lower = {name.lower(): name for name in known}
    told = []
    for name in unknown:
        alike = [by_lower[k] for k in get_close_matches(name.lower(), by_lower, n=3)]
        told.append(f"{name!r}" + (f" (like {', '.join(map(repr, alike))}?)" if alike else ""))
    return ", ".join(told)
