"""What all commands share: where they print, how they fail, and the model they are pointed at."""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from gdpnet.model import RuleModel
    from gdpnet.study import LoadedModel
    from gdpnet.study.spread import Runner

Model = Annotated[
    Path,
    typer.Argument(
        help="A .py file, or a folder with model.py, that defines build(); "
        "or a model that comes with gdpnet: cooling, pbmc, stress, toy."
    ),
]

Split = Annotated[
    str | None,
    typer.Option(
        help="Which split the model's sample() draws from.",
        show_default="the first of TEST_SEEDS, or iid",
    ),
]


Build = Annotated[
    list[str] | None,
    typer.Option("--build", metavar="NAME=VALUE", help="An argument of build()."),
]


def built(loaded: LoadedModel, arguments: list[str] | None) -> RuleModel:
    """The rules, of `build()` with what `--build` gives it; numbers where it wants such."""
    from gdpnet.errors import InputError

    numbers: dict[Any, Any] = {int: int, "int": int, float: float, "float": float}
    wanted = inspect.signature(loaded.module.build).parameters

    pairs = [argument.partition("=") for argument in arguments or ()]
    for name, sign, _ in pairs:
        if not (name and sign):
            raise InputError(f"--build: expected NAME=VALUE, got {name!r}.")
    given: dict[str, Any] = {}
    for name, _, text in pairs:
        kind = numbers.get(wanted[name].annotation, str) if name in wanted else str
        try:
            given[name] = kind(text)
        except ValueError:
            raise InputError(f"--build {name}: expected {kind.__name__}, got {text!r}.") from None
    return loaded.build(**given)


class NormName(StrEnum):
    """Norms of the distance that projections minimise."""

    l1 = "l1"
    l2 = "l2"


Norm = Annotated[
    NormName,
    typer.Option(help="Norm of the distance; what does not know l2 refuses it by name."),
]


class PlainHelp:
    """`--help` without the word that would tell of a value."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option, as others that take no value are shown."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class Commands(PlainHelp, TyperGroup):
    """All commands."""


class OnCluster(PlainHelp, TyperCommand):
    """A command with the option `--ray`, whose value may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give the option the value that it has alone."""
        for k, word in enumerate(args):
            if word == "--ray" and (k + 1 == len(args) or args[k + 1].startswith("-")):
                args = [*args[: k + 1], "local", *args[k + 1 :]]
                break
        return super().parse_args(ctx, args)


Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Run on a Ray cluster: auto or HOST:PORT joins one; without a value, at the end of "
        "the line, one is started on this machine.",
        show_default=False,
    ),
]


def spread_over(ray: str | None) -> Runner | None:
    """What runs the work on a cluster; None where none was named."""
    if ray is None:
        return None
    from gdpnet.extras import need
    from gdpnet.ray import Tasks

    need("ray", "ray", "--ray needs")
    return Tasks(ray)


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
        text = str(error)
        if isinstance(error, OSError) and error.filename and error.strerror:
            text = f"{error.filename}: {error.strerror}."  # without the number of the error
        typer.echo(f"Error: {text}", err=True)
        raise typer.Exit(2) from None


def refuse_unwritable(file: Path | None) -> None:
    """Raise before the work is done, not after it, where a file cannot be written."""
    if file is None:
        return
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder. Give the path of a file.")
    nearest = next(folder for folder in file.absolute().parents if folder.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(f"{file} cannot be written: {nearest} is no folder.")
    if not os.access(file if file.exists() else nearest, os.W_OK):
        raise PermissionError(f"{file} cannot be written: no permission. Choose another folder.")


@contextlib.contextmanager
def progress_bar(doing: str) -> Iterator[Callable[[str, float], None]]:
    """A bar on the terminal, nothing in a pipe.

    Args:
        doing: what is done, in a word.

    Yields:
        What is told, as the work goes on, at what it is and which share of it is done.
    """
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    off = not console.is_terminal
    with Progress(*columns, *times, console=console, transient=True, disable=off) as progress:
        task = progress.add_task(doing, total=1.0)

        def show(what: str, share: float) -> None:
            progress.update(task, completed=share, description=f"{doing} {what}")

        yield show


def version_of(distribution: str) -> str | None:
    """The installed version of a distribution, None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
