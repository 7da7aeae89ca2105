"""All commands together: each is a function of its file's name."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

from gdpnet.cli._common import Commands, OnCluster, version_of

# In the order of the help.
_COMMANDS = (
    "doctor",
    "inspect",
    "explore",
    "compare",
    "project",
    "train",
    "report",
)

app = typer.Typer(
    name="gdpnet",
    cls=Commands,
    help="Pyomo.GDP rules as a torch layer: look at rules, compare relaxations, project, train.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)

for _name in _COMMANDS:
    app.command(_name, cls=OnCluster)(
        getattr(importlib.import_module(f"gdpnet.cli.{_name}"), _name)
    )


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Print the version of gdpnet and leave.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", metavar="", help="Show the whole traceback of an error.")
    ] = False,
) -> None:
    context.obj = {"traceback": traceback}
    if version:
        typer.echo(f"gdpnet {version_of('gdpnet') or 'unknown (not installed)'}")
        raise typer.Exit
