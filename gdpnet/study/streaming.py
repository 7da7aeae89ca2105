"""project_file: a table of predictions projected piece by piece."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gdpnet.checks import check_choice, check_count
from gdpnet.errors import InputError
from gdpnet.extras import need
from gdpnet.model import RuleModel
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.status import Status
from gdpnet.study._relaxations import parse
from gdpnet.study.batches import BatchProjector
from gdpnet.study.left_overs import clear_left_overs
from gdpnet.study.tables import (
    TableReader,
    check_readable,
    kind_of,
    numbers_of,
    table_writer,
)


@dataclass(frozen=True)
class Streamed:
    """What became of the rows of a file.

    Attributes:
        path: the file that was written.
        rows: number of rows.
        statuses: how many of them have each status.
        seconds: all in all.
        unusable: how many rows have no finite number in some column that is needed.
        first_unusable: which is the first of them, and what is there, in words.
        left_over: a sentence for each file of the same target that a stopped run had left.
        skipped: files of a folder that were there already.
    """

    path: Path
    rows: int
    statuses: dict[Status, int]
    seconds: float
    unusable: int = 0
    first_unusable: str = ""
    left_over: tuple[str, ...] = ()
    skipped: int = 0

    def __repr__(self) -> str:
        told = ", ".join(f"{n:,} {status.name}" for status, n in self.statuses.items() if n)
        return f"Streamed({str(self.path)!r}, {self.rows:,} rows: {told}; {self.seconds:.1f} s)"


def project_file(
    rules: RuleModel,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    norm: str = "l1",
    relaxation: str | Plan = "dnf",
    solver: str = "auto",
    weights: Any = None,
    time_limit: float | None = None,
    on_conflict: str = "pass",
    on_invalid: str = "mark",
    threads: int | None = None,
    prefix: str = "",
    columns: Mapping[str, str] | None = None,
    replace: bool = False,
    added_prefix: str = "",
    again: bool = False,
    chunk: int = 16384,
    delimiter: str = ",",
    overwrite: bool = False,
    progress: Callable[[int, float], None] | None = None,
) -> Streamed:
    """Project the predictions of a csv or parquet file, piece by piece.

    Memory does not grow with the file (a row group of a parquet file has to fit).
    Inputs are the columns with the names of the rules' inputs, predictions those with the names of
    the outputs behind a prefix. All columns are kept, those of a csv file as they are spelled.
    Added are: for a column `f` of predictions `f_projected`, `gdpnet_status` with the name of the
    `Status`, and `gdpnet_distance` (with norm="l2" `gdpnet_distance_l2`), `inf` on CONFLICT. A file
    that has such columns already is refused, unless `added_prefix` names the new ones otherwise, or
    `again` says that they are from an earlier run and may be replaced. A row without a finite
    number in every column that is needed has the status ERROR, and nothing else (such a cell of a
    csv file is empty in a parquet file made from it). The file is written under another name and
    moved when it is complete; what runs that were killed have left of it is removed.

    Args:
        rules: the rules.
        source: a `.csv` file with a line of names, or a `.parquet` file.
        target: a `.csv` or `.parquet` file.
        norm: of the distance, as in `gdpnet.project`.
        relaxation: as in `gdpnet.study.compare`, such as `"dnf"`, `"cnf"`, `"pdnf:2"`, or a `Plan`;
            `"plan:BUDGET"` is planned on the first rows.
        solver: as in `gdpnet.project`.
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        time_limit: seconds for each row.
        on_conflict: as in `gdpnet.project`.
        on_invalid: `"mark"`, or `"raise"` for an error at the first row that cannot be used.
        threads: of the solver; chosen where not given.
        prefix: stands before the names of the outputs in the columns of predictions.
        columns: column of an input or output by its name, where they differ otherwise.
        replace: write the projected values into the columns of predictions.
        added_prefix: stands before the names of the columns that are added.
        again: replace the columns that an earlier run has added.
        chunk: most rows that are projected at a time.
        delimiter: between the columns of csv files.
        overwrite: whether the target may exist.
        progress: called with the number of rows done, and the share of the file that was read.

    Returns:
        Counts of rows by status.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pyomo.environ as pyo, gdpnet.study
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> folder = Path(tempfile.mkdtemp())
        >>> lines = ["name,y", "a,4.5", "b,8"]
        >>> _ = (folder / "in.csv").write_text(chr(10).join(lines))
        >>> done = gdpnet.study.project_file(rules, folder / "in.csv", folder / "out.csv")
        >>> print((folder / "out.csv").read_text(), end="")
        name,y,y_projected,gdpnet_status,gdpnet_distance
        a,4.5,3,PROJECTED,1.5
        b,8,8,SATISFIED,0
    """
    source, target = Path(source), Path(target)
    _check(source, target, on_invalid=on_invalid, chunk=chunk, delimiter=delimiter)
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists already. Name another file, or allow to overwrite it.")
    keywords = planned(
        rules,
        source,
        {
            "norm": norm,
            "relaxation": relaxation,
            "solver": solver,
            "weights": weights,
            "time_limit": time_limit,
            "threads": threads,
            "on_conflict": on_conflict,
            "prefix": prefix,
            "columns": columns,
            "replace": replace,
            "added_prefix": added_prefix,
            "again": again,
        },
        chunk=chunk,
        delimiter=delimiter,
    )
    project = BatchProjector(rules, **keywords)
    under_way = stream(
        project, source, target, on_invalid=on_invalid, chunk=chunk, delimiter=delimiter, clear=True
    )
    while True:
        try:
            told = next(under_way)
        except StopIteration as ended:
            return ended.value
        if progress is not None:
            progress(*told)


def stream(
    project: BatchProjector,
    source: Path,
    target: Path,
    *,
    on_invalid: str = "mark",
    chunk: int = 16384,
    delimiter: str = ",",
    clear: bool = False,
) -> Generator[tuple[int, float], None, Streamed]:
    """Project a file piece by piece; the target is complete, or what it was.

    Args:
        project: what becomes of the rows.
        source: a `.csv` or `.parquet` file.
        target: one of either kind.
        on_invalid: as in `project_file`, as all keywords that it has too.
        chunk: most rows that are projected at a time.
        delimiter: between the columns of csv files.
        clear: remove what runs that were killed have left of the target.

    Yields:
        The number of rows done, and the share of the file that was read.

    Returns:
        Counts of rows by status.
    """
    _check(source, target, on_invalid=on_invalid, chunk=chunk, delimiter=delimiter)
    started = time.perf_counter()
    text = kind_of(target) == ".csv"
    reader = TableReader(source, project.columns, text, delimiter)
    unusable, first_unusable = 0, ""
    counts, rows = np.zeros(len(Status), dtype=np.int64), 0
    with contextlib.closing(reader):
        left_over = clear_left_overs(target) if clear else ()
        with table_writer(target, delimiter) as write:
            for batch in reader.pieces(chunk):
                done = project.project(batch, source)
                unfit = ~done.finite.all(1)
                if not first_unusable and unfit.any():
                    first_unusable = project.columns.first_unusable(batch, done.finite, rows)
                    if on_invalid == "raise":
                        raise InputError(f"{source}: {first_unusable}.")
                unusable += int(unfit.sum())
                written = done.batch
                if kind_of(source) == ".csv" and not text:
                    written = project.columns.with_numbers(written, done.numbers)
                write(written)
                rows += batch.num_rows
                counts += np.bincount(done.status, minlength=len(Status))
                yield rows, reader.share
    statuses = {status: int(counts[status]) for status in Status}
    seconds = time.perf_counter() - started
    return Streamed(target, rows, statuses, seconds, unusable, first_unusable, left_over)


def _check(source: Path, target: Path, *, on_invalid: str, chunk: int, delimiter: str) -> None:
    """Raise before anything is read or written."""
    need("pyarrow", "study")
    check_choice("on_invalid", on_invalid, ("mark", "raise"))
    check_count("chunk", chunk)
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii():
        raise InputError(f"delimiter: expected one ASCII character, got {delimiter!r}.")
    if delimiter in '"\r\n':
        raise InputError(f"delimiter: {delimiter!r} has another meaning in csv files.")
    check_readable(source)
    kind_of(target)


def planned(
    rules: RuleModel, source: Path, keywords: dict[str, Any], *, chunk: int, delimiter: str
) -> dict[str, Any]:
    """Keywords of a `BatchProjector`, `"plan:BUDGET"` planned on the first rows of a file.

    Args:
        rules: the rules.
        source: the file.
        keywords: as they were asked for.
        chunk: so many rows at most.
        delimiter: between the columns of a csv file.
    """
    asked = parse(keywords["relaxation"], rules)
    if asked.kind != "plan" or asked.plan is not None:
        return keywords
    # What a plan cannot be had with, a CNF cannot either.
    other = "cnf" if asked.solver == "auto" else f"cnf:{asked.solver}"
    columns = BatchProjector(rules, **keywords | {"relaxation": other}).columns
    with contextlib.closing(TableReader(source, columns, False, delimiter)) as reader:
        numbers = numbers_of(next(iter(reader.pieces(chunk))), columns.read, source)
    numbers = numbers[np.isfinite(numbers).all(1)]
    inputs = len(columns.inputs)
    plan = asked.resolve(rules, numbers[:, inputs:], numbers[:, :inputs])
    solver = keywords["solver"] if asked.solver == "auto" else asked.solver
    return keywords | {"relaxation": plan, "solver": solver}
