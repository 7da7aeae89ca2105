"""`gdpnet compare MODEL`: relaxations of its rules side by side."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from gdpnet.cli._common import (
    Build,
    Model,
    Norm,
    NormName,
    Split,
    built,
    errors_as_text,
    make_console,
    progress_bar,
    refuse_unwritable,
)

if TYPE_CHECKING:
    from gdpnet.study import Comparison


class Predictions(StrEnum):
    """What is projected."""

    auto = "auto"
    noisy = "noisy"
    uniform = "uniform"


def compare(
    context: typer.Context,
    model: Model,
    relaxations: Annotated[
        str | None,
        typer.Option(
            help="Names with commas, as explained above.",
            show_default="cnf,pdnf:2,plan:4,adaptive,dnf,dnf:highs",
        ),
    ] = None,
    norm: Norm = NormName.l1,
    samples: Annotated[int, typer.Option(min=1, help="Number of samples.")] = 1000,
    split: Split = None,
    seed: Annotated[int, typer.Option(help="Seed of sample() and of the predictions.")] = 0,
    predictions: Annotated[
        Predictions,
        typer.Option(
            help="noisy: targets plus Gaussian noise, as a network's predictions would be. "
            "uniform: uniform in the outputs' bounds, as an untrained network's. auto: noisy where "
            "sample() gives targets.",
        ),
    ] = Predictions.auto,
    noise: Annotated[
        float,
        typer.Option(min=0.0, help="Noise, in standard deviations of each output's targets."),
    ] = 0.5,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the solvers.")] = 1,
    html_file: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write a page with table and pictures."),
    ] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write the table.")
    ] = None,
    arguments: Build = None,
) -> None:
    """CNF, partial DNF and DNF of a model's rules: size, time, tightness, rules satisfied.

    \b
    Relaxations:
      cnf          every rule convexified by itself
      pdnf:K       the first K rules merged by basic steps, in declaration order
      plan:BUDGET  rules merged as gdpnet.plan.choose finds best,
                   at most BUDGET products a sample
      adaptive     CNF, then basic steps on what is broken, sample by sample
      dnf          all rules merged: exact

    \b
    A solver may follow, such as dnf:highs or pdnf:2:gurobi:
      exact        for dnf, its default: searched, never written down
      milp         for dnf: a mixed-integer program a sample, by HiGHS;
                   milp:gurobi by Gurobi
      extended     the LP written out, gdpnet's own simplex; default of the others
      highs        the LP written out, HiGHS
      gurobi       the LP written out, Gurobi
      clarabel     a conic program written out, Clarabel; default of the others
                   with --norm l2 and with convex rows
    """  # noqa: D301
    from gdpnet.study import compare as compare_relaxations
    from gdpnet.study import load_model
    from gdpnet.study.samples import draw_inputs, first_split, make_predictions

    with errors_as_text(context):
        for file in (html_file, csv_file):
            refuse_unwritable(file)
        loaded = load_model(model)
        rules = built(loaded, arguments)
        drawn = draw_inputs(loaded, rules, samples, split or first_split(loaded), seed)
        yhat, told = make_predictions(rules, drawn, predictions.value, noise, seed)
        with progress_bar("Comparing") as show:
            found = compare_relaxations(
                *(rules, yhat, drawn.x, relaxations),
                norm=norm.value,
                threads=threads,
                progress=show,
            )
        origin = f"{drawn.told} {told}".strip()
        _print(found, f"{loaded.name}: {origin}")
        if csv_file is not None:
            csv_file.parent.mkdir(parents=True, exist_ok=True)
            found.table.to_csv(csv_file, index=False)
            typer.echo(f"Wrote {csv_file}")
        if html_file is not None:
            found.to_html(html_file, loaded.name, origin)
            typer.echo(f"Wrote {html_file}")


def _print(found: Comparison, origin: str) -> None:
    table = Table("", box=None, header_style="bold", pad_edge=False)
    for header in found.headers:
        table.add_column(escape(header), justify="right")
    for name, cells in found.lines():
        if cells:
            table.add_row(f"  {escape(name)}", *map(escape, cells))
        else:
            table.add_row(f"[bold]{escape(name)}[/]")
    console = make_console()
    console.print(table)
    console.print()
    for text in (origin, found.summary(), *found.notes()):
        console.print(text, markup=False, highlight=False)
