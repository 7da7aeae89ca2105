"""`gdpnet report DIR`: tables and figures of a study, without training anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as ScreenTable

from gdpnet.cli._common import errors_as_text, make_console

if TYPE_CHECKING:
    from gdpnet.study.report.tables import Table


def report(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `gdpnet train --out` made.")],
    html_file: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="The page of HTML. [DIR/report.html]"),
    ] = None,
) -> None:
    """Tables and figures of a study, drawn from its results alone."""
    with errors_as_text(context):
        show(folder, html_file or folder / "report.html", make_console())


def show(folder: Path, page: Path, console: Console) -> None:
    """Print the tables of a study and write its page.

    Args:
        folder: of the study.
        page: the file of HTML.
        console: where tables go.
    """
    from gdpnet.study import StudyFolder
    from gdpnet.study.report import Results, write_report
    from gdpnet.study.report.tables import convexification, overhead, quality

    files = StudyFolder(folder)
    study = files.study()
    results = Results(files.results())
    for protocol in results.protocols:
        for size in results.sizes:
            for table in (
                quality(results, protocol, size),
                convexification(results, protocol, size),
            ):
                if table is not None and table.rows:
                    _print(table, console)
        _print(overhead(results, protocol), console)
    write_report(results, study, page)
    console.print(f"Results: {files.table}", markup=False, highlight=False)
    console.print(f"Report:  {page}", markup=False, highlight=False)


def _print(table: Table, console: Console) -> None:
    screen = ScreenTable(table.headers[0], box=None, header_style="bold", pad_edge=False)
    for header in table.headers[1:]:
        screen.add_column(header, justify="right")
    for row in table.rows:
        screen.add_row(*map(escape, row))
    console.print(table.caption, markup=False, highlight=False, style="italic")
    console.print(screen)
    console.print()
