"""project_file: a table of predictions projected piece by piece."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.checks import check_choice, check_count
from gdpnet.errors import InputError
from gdpnet.extras import need
from gdpnet.model import RuleModel
from gdpnet.projection.projection import Projection
from gdpnet.projection.projector import Projector
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.status import Status
from gdpnet.study._relaxations import parse
from gdpnet.study.left_overs import clear_left_overs
from gdpnet.study.tables import (
    TableReader,
    check_readable,
    kind_of,
    numbers_of,
    table_writer,
)

if TYPE_CHECKING:
    import pyarrow

SUFFIX = "_projected"
"""Added to the name of a column of predictions, for the column of what became of them."""

STATUS, DISTANCE = "gdpnet_status", "gdpnet_distance"
"""Columns for the name of the `Status`, and for the distance from the prediction; that of another
norm than l1 has its name behind it."""


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
    """

    path: Path
    rows: int
    statuses: dict[Status, int]
    seconds: float
    unusable: int = 0
    first_unusable: str = ""
    left_over: tuple[str, ...] = ()

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
    need("pyarrow", "study")
    check_choice("on_invalid", on_invalid, ("mark", "raise"))
    check_count("chunk", chunk)
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii():
        raise InputError(f"delimiter: expected one ASCII character, got {delimiter!r}.")
    if delimiter in '"\r\n':
        raise InputError(f"delimiter: {delimiter!r} has another meaning in csv files.")
    source, target = Path(source), Path(target)
    check_readable(source)
    text = kind_of(target) == ".csv"
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists already. Name another file, or allow to overwrite it.")
    asked = parse(relaxation, rules)
    if solver != "auto" and asked.solver != "auto":
        raise InputError(f"solver: {relaxation!r} names one already, and {solver!r} is another.")
    solver = asked.solver if solver == "auto" else solver
    keywords = {
        "norm": norm,
        "solver": solver,
        "weights": weights,
        "threads": threads,
        "on_conflict": on_conflict,
        "on_invalid": "mark",  # told here, with the rows' numbers in the file
    }
    if asked.kind != "plan":  # refused before a file is touched
        Projector(rules, relaxation=asked.resolve(rules, None, None), **keywords)
    ending = "" if norm == "l1" else f"_{norm}"
    layout = _Columns(rules, prefix, columns or {}, replace, added_prefix, ending)
    started = time.perf_counter()
    reader = TableReader(source, [*layout.inputs, *layout.predictions], text, delimiter)
    projector: Projector | None = None
    unusable, first_unusable = 0, ""
    counts, rows = np.zeros(len(Status), dtype=np.int64), 0
    with contextlib.closing(reader):
        layout.refuse_taken(source, reader.names, again)
        left_over = clear_left_overs(target)
        with table_writer(target, delimiter) as write:
            for batch in reader.pieces(chunk):
                x = numbers_of(batch, layout.inputs, source)
                yhat = numbers_of(batch, layout.predictions, source)
                finite = np.isfinite(np.column_stack([x, yhat]))
                usable = finite.all(1)
                if not first_unusable and not usable.all():
                    first_unusable = layout.first_unusable(batch, finite, rows)
                    if on_invalid == "raise":
                        raise InputError(f"{source}: {first_unusable}.")
                unusable += int((~usable).sum())
                if projector is None:
                    chosen = asked.resolve(rules, yhat[usable], x[usable])
                    projector = Projector(rules, relaxation=chosen, **keywords)
                projection = projector(yhat, x)
                if kind_of(source) == ".csv" and not text:
                    batch = layout.with_numbers(batch, x, yhat)
                write(layout.with_results(batch, projection))
                rows += batch.num_rows
                counts += np.bincount(projection.status.numpy(), minlength=len(Status))
                if progress is not None:
                    progress(rows, reader.share)
    statuses = {status: int(counts[status]) for status in Status}
    seconds = time.perf_counter() - started
    return Streamed(target, rows, statuses, seconds, unusable, first_unusable, left_over)


class _Columns:
    """Which columns are read, and which are written."""

    def __init__(
        self,
        rules: RuleModel,
        prefix: str,
        columns: Mapping[str, str],
        replace: bool,
        added_prefix: str,
        ending: str,
    ) -> None:
        known = {*rules.input_names, *rules.output_names}
        for name in columns:
            if name not in known:
                raise InputError(
                    f"columns: {name!r} is no input and no output of these rules "
                    f"({', '.join([*rules.input_names, *rules.output_names][:12])})."
                )
        self.inputs = [columns.get(name, name) for name in rules.input_names]
        self.predictions = [columns.get(name, prefix + name) for name in rules.output_names]
        twice = [name for name in self.predictions if self.predictions.count(name) > 1]
        if twice:
            raise InputError(
                f"columns: {twice[0]!r} is the column of more than one output. Each output has "
                "predictions of its own."
            )
        added = [added_prefix + name + SUFFIX for name in self.predictions]
        self.projected = self.predictions if replace else added
        self.status, self.distance = added_prefix + STATUS, added_prefix + DISTANCE + ending
        self._added = [*([] if replace else added), self.status, self.distance]

    def refuse_taken(self, source: Path, names: Sequence[str], again: bool) -> None:
        """Raise where a file has columns that results would be written into."""
        # What is read is never replaced, not even by a later run.
        read = {*self.inputs, *self.predictions}
        taken = [n for n in self._added if n in names and (not again or n in read)]
        if taken:
            raise InputError(
                f"{source} has {'columns' if len(taken) > 1 else 'a column'} "
                f"{', '.join(map(repr, taken))} already, and results would be written there. Name "
                "the new columns otherwise with --added-prefix (in Python: added_prefix), or have "
                "those of an earlier run replaced with --again (again=True)."
            )

    def first_unusable(self, batch: pyarrow.RecordBatch, finite: np.ndarray, before: int) -> str:
        """Where the first cell stands that is no finite number, and what it holds."""
        row, column = np.argwhere(~finite)[0]
        name = [*self.inputs, *self.predictions][column]
        cell = batch.column(batch.schema.get_field_index(name))[int(row)].as_py()
        held = "nothing" if cell is None or cell == "" else repr(cell)
        return f"row {before + row + 1} has no finite number in column {name!r}, but {held}"

    def with_numbers(
        self, batch: pyarrow.RecordBatch, x: np.ndarray, yhat: np.ndarray
    ) -> pyarrow.RecordBatch:
        """Rows with the columns that were read as numbers in place of their texts."""
        import pyarrow

        names = [*self.inputs, *self.predictions]
        for name, column in zip(names, np.column_stack([x, yhat]).T, strict=True):
            batch = _put(batch, name, pyarrow.array(column, from_pandas=True))
        return batch

    def with_results(
        self, batch: pyarrow.RecordBatch, projection: Projection
    ) -> pyarrow.RecordBatch:
        """Rows with what became of them."""
        import pyarrow

        status = projection.status.numpy()
        nothing = status == Status.ERROR
        for name, column in zip(self.projected, projection.y.numpy().T, strict=True):
            batch = _put(batch, name, pyarrow.array(column, mask=nothing))
        names = pyarrow.array([each.name for each in Status])
        batch = _put(batch, self.status, names.take(pyarrow.array(status)))
        distance = pyarrow.array(projection.distance.numpy(), mask=nothing)
        return _put(batch, self.distance, distance)


def _put(batch: pyarrow.RecordBatch, name: str, column: pyarrow.Array) -> pyarrow.RecordBatch:
    place = batch.schema.get_field_index(name)
    if place < 0:
        return batch.append_column(name, column)
    return batch.set_column(place, name, column)
