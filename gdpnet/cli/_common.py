"""What all commands share: where they print, how they fail, and the model they are pointed at."""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

Model = Annotated[
    Path, typer.Argument(help="A .py file, or a folder with model.py, that defines build().")
]


def make_console() -> Console:
    """A console for the sys.stdout of this moment, which tests replace."""
    console = Console()
    if not console.is_terminal:
        # In a file or a pipe nothing is wrapped at 80 columns: lines are for grep.
        console = Console(width=200)
    return console


@contextlib.contextmanager
def errors_as_text(context: typer.Context) -> Iterator[None]:
    """What the user can put right is told in a sentence, with exit code 2."""
    from gdpnet.errors import GdpnetError

    try:
        yield
    except (GdpnetError, OSError) as error:
        if context.obj["traceback"]:
            raise
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None


def version_of(distribution: str) -> str | None:
    """The installed version of a distribution, None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
