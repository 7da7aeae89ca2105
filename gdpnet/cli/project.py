"""`gdpnet project MODEL IN OUT`: a table of predictions projected onto the rules."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdpnet.cli._common import (
    Build,
    Model,
    Norm,
    NormName,
    Ray,
    built,
    errors_as_text,
    progress_bar,
    refuse_unwritable,
    spread_over,
)
from gdpnet.solve import names

if TYPE_CHECKING:
    from gdpnet.study import Streamed


class OnConflict(StrEnum):
    """What becomes of a row whose rules contradict each other."""

    keep = "pass"
    nearest = "nearest"
    drop = "drop"
    refuse = "raise"


class OnInvalid(StrEnum):
    """What becomes of a row without a finite number in a column that is needed."""

    mark = "mark"
    refuse = "raise"


def project(
    context: typer.Context,
    model: Model,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="A .csv file with a line of names, or .parquet; or a folder of them."
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="A .csv or .parquet file; or a folder.")
    ],
    norm: Norm = NormName.l1,
    relaxation: Annotated[
        str,
        typer.Option(help="cnf, pdnf:K, plan:BUDGET, adaptive or dnf; see gdpnet compare --help."),
    ] = "dnf",
    solver: Annotated[str, typer.Option(help=f"auto, {', '.join(names())}.")] = "auto",
    prefix: Annotated[
        str,
        typer.Option(help="Stands before the outputs' names in the columns of predictions."),
    ] = "",
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="The column of an input or output; repeatable."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", metavar="", help="Write into the columns of predictions.")
    ] = False,
    added_prefix: Annotated[
        str, typer.Option(help="Stands before the names of the columns that are added.")
    ] = "",
    again: Annotated[
        bool,
        typer.Option(
            "--again", metavar="", help="Replace the columns that an earlier run has added."
        ),
    ] = False,
    on_conflict: Annotated[
        OnConflict,
        typer.Option(
            help="Rows whose rules contradict each other: pass them unchanged, nearest breaks the "
            "rules as little as possible, drop leaves out the least important rules, raise stops."
        ),
    ] = OnConflict.keep,
    on_invalid: Annotated[
        OnInvalid,
        typer.Option(help="Rows without a finite number in some column: mark them, or raise."),
    ] = OnInvalid.mark,
    chunk: Annotated[int, typer.Option(min=1, help="Most rows in memory at a time.")] = 16384,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of the solver; chosen where not given.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for a row; without it limits count work.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes for the files of a folder; all cores if not given."),
    ] = None,
    ray: Ray = None,
    delimiter: Annotated[str, typer.Option(help="Between the columns of csv files.")] = ",",
    force: Annotated[
        bool,
        typer.Option(
            "--force", metavar="", help="OUT may exist; all of a folder is projected again."
        ),
    ] = False,
    arguments: Build = None,
) -> None:
    """Project the predictions of a table, however long, onto the rules.

    \b
    IN has a column for every input and every output of the model, under their
    names. OUT has all columns of IN, and after them:
      f_projected      for each column f of predictions
      gdpnet_status    SATISFIED, PROJECTED, RELAXED, CONFLICT, LIMIT or ERROR
      gdpnet_distance  l1 distance from the prediction; inf on CONFLICT;
                       with --norm l2 gdpnet_distance_l2, the Euclidean one
    It is written under another name and moved when it is complete. No column of IN is
    overwritten, except by --replace and --again.
    \b
    Where IN is a folder, OUT is one: each .csv and .parquet file in and below IN becomes
    a file of the same name. The same command goes on where a run was stopped.
    """  # noqa: D301
    from gdpnet.errors import InputError
    from gdpnet.study import load_model, project_file, project_folder
    from gdpnet.study.left_overs import clear_left_overs
    from gdpnet.study.tables import check_readable

    with errors_as_text(context):
        folder = source.is_dir()
        if not folder:
            check_readable(source)
            refuse_unwritable(target)
            if ray is not None or jobs is not None:
                raise InputError(
                    f"{source} is one file, and --ray and --jobs share out the files of a folder."
                )
        pairs = [text.partition("=") for text in column or ()]
        for name, equals, found in pairs:
            if not (name and equals and found):
                raise InputError(f"--column: expected NAME=COLUMN, got {name + equals + found!r}.")
        if target.exists() and not (folder or force):
            raise InputError(f"{target} exists already. Name another file, or add --force.")
        rules = built(load_model(model), arguments)
        keywords: dict[str, Any] = {
            "norm": norm.value,
            "relaxation": relaxation,
            "solver": solver,
            "time_limit": time_limit,
            "on_conflict": on_conflict.value,
            "on_invalid": on_invalid.value,
            "prefix": prefix,
            "columns": {name: found for name, _, found in pairs},
            "replace": replace,
            "added_prefix": added_prefix,
            "again": again,
            "chunk": chunk,
            "delimiter": delimiter,
            "overwrite": force,
        }
        if threads is not None:
            keywords["threads"] = threads
        with progress_bar("Projecting") as show:
            keywords["progress"] = lambda rows, share: show(f"{rows:,} rows", share)
            if folder:
                spread = spread_over(ray)
                done = project_folder(rules, source, target, jobs=jobs, spread=spread, **keywords)
            else:
                for sentence in clear_left_overs(target):
                    typer.echo(sentence, err=True)
                done = project_file(rules, source, target, **keywords)
        _tell(done)


def _tell(done: Streamed) -> None:
    for sentence in done.left_over:
        typer.echo(sentence, err=True)
    if done.skipped:
        many = "file was" if done.skipped == 1 else "files were"
        typer.echo(f"{done.skipped:,} {many} there already.")
    told = ", ".join(f"{count:,} {s.name}" for s, count in done.statuses.items() if count)
    rate = f" ({done.rows / done.seconds:,.0f} a second)" if done.seconds > 1 else ""
    seconds = f"Projected {done.rows:,} rows in {done.seconds:.1f} s{rate}"
    typer.echo(f"{seconds}: {told}." if told else f"{seconds}.")
    if done.unusable:
        many = "row is" if done.unusable == 1 else "rows are"
        first = "" if done.unusable == 1 else "the first: "
        typer.echo(f"{done.unusable:,} {many} not usable: {first}{done.first_unusable}.")
    typer.echo(f"Wrote {done.path}")
