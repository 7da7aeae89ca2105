"""`gdpnet train MODEL`: methods, sizes, seeds and protocols side by side, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gdpnet.cli._common import Model, Norm, NormName, Ray, errors_as_text, make_console, spread_over
from gdpnet.cli.report import show


def train(
    context: typer.Context,
    model: Model,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The study's folder; goes on where it was.")
    ],
    methods: Annotated[
        str | None,
        typer.Option(help="Names with commas between, as explained above; all if not given."),
    ] = None,
    sizes: Annotated[str, typer.Option(help="Training sizes.")] = "250",
    seeds: Annotated[str, typer.Option("--seeds", "--seed", help="Seeds.")] = "0,1,2",
    protocols: Annotated[
        str,
        typer.Option(help="quick (a first look), converged, paper, or one of the model's own."),
    ] = "converged",
    norm: Norm = NormName.l1,
    gradient: Annotated[
        str,
        typer.Option(help="Through projections: qp, vertex, straight_through, auto, mixed:0.25."),
    ] = "qp",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    together: Annotated[
        bool, typer.Option("--together", metavar="", help="Train the seeds of a size side by side.")
    ] = False,
    ray: Ray = None,
    force: Annotated[
        bool,
        typer.Option("--force", metavar="", help="Train anew what a damaged checkpoint holds."),
    ] = False,
) -> None:
    """Train a model's network with and without its rules, and compare.

    The model file needs build(), sample() that gives targets too, and network().

    \b
    Methods:
      base              the network alone, trained on its squared error
      penalty           the same plus a penalty for broken rules
      inference         base, its outputs projected (DNF) only when it is used
      finetuned-...     base, penalty or inference, trained as long as the next
      cnf, pdnf, dnf    base trained on through the projection;
                        pdnf merges what the planner chooses
      cnf-relaxed, dnf-relaxed
                        the same, giving out the regularised program's point
      dnf-auto, straight-through
                        dnf with other gradients than --gradient
      cnf-mixed, dnf-mixed
                        with the gradient mixed:0.25, a quarter qp and the rest
                        straight through; cnf-mixed:a, dnf-mixed:a for others
      pdnf:k, plan:b, steps:s
                        the first k rules merged; the planner's choice within
                        b products; s basic steps
    """  # noqa: D301
    with errors_as_text(context):
        from gdpnet.study import METHODS, Grid
        from gdpnet.study import train as run

        grid = Grid(
            methods=_words(methods) if methods else tuple(METHODS),
            sizes=_numbers("--sizes", sizes),
            seeds=_numbers("--seeds", seeds),
            protocols=_words(protocols),
            gradient=gradient,
            norm=norm.value,
        )
        spread = spread_over(ray)
        _one_thread()
        console = make_console()
        quiet = not console.is_terminal
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.total:.0f}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True, disable=quiet) as bars:
            whole = bars.add_task("trained", total=None, visible=False)
            stage = bars.add_task("", total=None, visible=False)

            def finished(done: int, total: int) -> None:
                bars.update(whole, completed=done, total=total, visible=True)
                if quiet:  # a line each: somebody may follow the file
                    typer.echo(f"trained {done} of {total}", err=True)

            try:
                run(
                    model,
                    grid,
                    out,
                    jobs=jobs,
                    together=together,
                    spread=spread,
                    force=force,
                    progress=lambda told, step, total: bars.update(
                        stage, description=told, completed=step, total=total, visible=True
                    ),
                    finished=finished,
                )
            except KeyboardInterrupt:
                bars.stop()
                typer.echo("Stopped; the same command goes on from here.", err=True)
                raise typer.Exit(130) from None
        show(out, out / "report.html", console)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(option: str, text: str) -> tuple[int, ...]:
    from gdpnet.errors import InputError

    try:
        return tuple(int(word) for word in _words(text))
    except ValueError:
        raise InputError(
            f"{option}: expected whole numbers with commas between, got {text!r}."
        ) from None


def _one_thread() -> None:
    """Threads cost more than they give on batches and networks as small as these."""
    import torch

    torch.set_num_threads(1)
