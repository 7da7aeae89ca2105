"""BatchProjector: rows of a table in, the same rows and what became of them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gdpnet.errors import InputError
from gdpnet.extras import need
from gdpnet.model import RuleModel
from gdpnet.projection.projection import Projection
from gdpnet.projection.projector import Projector
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.status import Status
from gdpnet.study._relaxations import parse
from gdpnet.study.tables import numbers_of

if TYPE_CHECKING:
    import pyarrow

SUFFIX = "_projected"
"""Added to the name of a column of predictions, for the column of what became of them."""

STATUS, DISTANCE = "gdpnet_status", "gdpnet_distance"
"""Columns for the name of the `Status`, and for the distance from the prediction; that of another
norm than l1 has its name behind it."""

_HERE = "the batch"  # where the rows come from, unless somebody says


class ProjectedRows(NamedTuple):
    """Rows of a table, projected.

    Attributes:
        batch: the rows with what became of them.
        status: code of `Status`, `rows`.
        finite: cells that hold a finite number, `rows x (inputs and predictions)`.
        numbers: what the cells hold, of the same shape.
    """

    batch: pyarrow.RecordBatch
    status: np.ndarray
    finite: np.ndarray
    numbers: np.ndarray


class BatchProjector:
    """Projects Arrow record batches: all columns are kept, outputs, status and distance added.

    It is what `gdpnet project` runs on one machine and on a cluster, and fits into whatever passes
    record batches or tables on: `map_batches` of Ray Data, `mapInArrow` of Spark, partitions of
    Dask. It can be pickled. Rows do not influence each other, so that the results do not depend on
    how they are cut into batches.

    Args:
        rules: the rules.
        norm: of the distance, as in `gdpnet.project`.
        relaxation: as in `gdpnet.study.compare`, such as `"dnf"`, `"cnf"`, `"pdnf:2"`, or a `Plan`.
        solver: as in `gdpnet.project`.
        weights: positive weight of each output in the distance, `d`; 1 where not given.
        time_limit: seconds for each row.
        on_conflict: as in `gdpnet.project`.
        threads: of the solver; chosen where not given.
        prefix: stands before the names of the outputs in the columns of predictions.
        columns: column of an input or output by its name, where they differ otherwise.
        replace: write the projected values into the columns of predictions.
        added_prefix: stands before the names of the columns that are added.
        again: replace the columns that an earlier run has added.

    Example:
        >>> import pyarrow, pyomo.environ as pyo, gdpnet.study
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> project = gdpnet.study.BatchProjector(gdpnet.RuleModel(m, outputs=[m.y]))
        >>> batch = pyarrow.RecordBatch.from_pydict({"name": ["a", "b"], "y": [4.5, 8.0]})
        >>> project(batch).to_pylist()[0]
        {'name': 'a', 'y': 4.5, 'y_projected': 3.0, 'gdpnet_status': 'PROJECTED', 'gdpnet_distance': 1.5}
    """  # noqa: E501

    def __init__(
        self,
        rules: RuleModel,
        *,
        norm: str = "l1",
        relaxation: str | Plan = "dnf",
        solver: str = "auto",
        weights: Any = None,
        time_limit: float | None = None,
        on_conflict: str = "pass",
        threads: int | None = None,
        prefix: str = "",
        columns: Mapping[str, str] | None = None,
        replace: bool = False,
        added_prefix: str = "",
        again: bool = False,
    ) -> None:
        need("pyarrow", "study")
        self.rules = rules
        self.columns = Columns(
            rules,
            norm=norm,
            prefix=prefix,
            columns=columns or {},
            replace=replace,
            added_prefix=added_prefix,
            again=again,
        )
        asked = parse(relaxation, rules)
        if solver != "auto" and asked.solver != "auto":
            raise InputError(
                f"solver: {relaxation!r} names one already, and {solver!r} is another."
            )
        keywords: dict[str, Any] = {
            "norm": norm,
            "relaxation": asked.resolve(rules, None, None),
            "solver": asked.solver if solver == "auto" else solver,
            "weights": weights,
            "time_limit": time_limit,
            "on_conflict": on_conflict,
            "threads": threads,
        }
        self._projector = Projector(rules, on_invalid="mark", **keywords)
        self._state = (rules, keywords, self.columns)

    def __getstate__(self) -> tuple[RuleModel, dict[str, Any], Columns]:
        return self._state

    def __setstate__(self, state: tuple[RuleModel, dict[str, Any], Columns]) -> None:
        self._state = state
        self.rules, keywords, self.columns = state
        self._projector = Projector(self.rules, on_invalid="mark", **keywords)

    def __call__(self, batch: Any) -> Any:
        """The same rows and columns, and what became of them.

        Args:
            batch: a `pyarrow.RecordBatch` or a `pyarrow.Table`, with a column for every input and
                every output. A row without a finite number in each of them has the status ERROR.

        Returns:
            What was given, of the same kind.
        """
        import pyarrow

        self.columns.refuse(_HERE, batch.schema.names)
        if not isinstance(batch, pyarrow.Table):
            return self.project(batch).batch
        done = [self.project(part).batch for part in batch.to_batches()]
        return pyarrow.Table.from_batches(done, self.schema(batch.schema))

    def schema(self, schema: pyarrow.Schema) -> pyarrow.Schema:
        """That of the results, such as Spark asks for before there are any.

        Args:
            schema: that of the rows that are given.
        """
        self.columns.refuse(_HERE, schema.names)
        return self.project(_empty(schema)).batch.schema

    def project(self, batch: pyarrow.RecordBatch, source: object = _HERE) -> ProjectedRows:
        """Project rows, and tell more about them.

        Args:
            batch: the rows; their columns have been looked at.
            source: where they come from, for errors.
        """
        layout = self.columns
        numbers = numbers_of(batch, layout.read, source)
        inputs = len(layout.inputs)
        projection = self._projector(numbers[:, inputs:], numbers[:, :inputs])
        done = layout.with_results(batch, projection)
        return ProjectedRows(done, projection.answer.status, np.isfinite(numbers), numbers)


class Columns:
    """Which columns are read, and which are written; for the keywords see `BatchProjector`."""

    def __init__(
        self,
        rules: RuleModel,
        *,
        norm: str,
        prefix: str,
        columns: Mapping[str, str],
        replace: bool,
        added_prefix: str,
        again: bool,
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
        ending = "" if norm == "l1" else f"_{norm}"
        self.projected = self.predictions if replace else added
        self.status, self.distance = added_prefix + STATUS, added_prefix + DISTANCE + ending
        self._added = [*([] if replace else added), self.status, self.distance]
        self._again = again

    @property
    def read(self) -> list[str]:
        """Columns that are read: those of the inputs, then those of the predictions."""
        return [*self.inputs, *self.predictions]

    def refuse(self, source: object, names: Sequence[str]) -> None:
        """Raise where columns are missing, or results would be written over some of them.

        Args:
            source: what has the columns, for the error.
            names: of its columns.
        """
        missing = [name for name in self.read if name not in names]
        if missing:
            raise InputError(
                f"{source} has no column {_listed(missing)}. It has {_listed(names)}. "
                "Say which column is meant: --column NAME=COLUMN for a single input or output, "
                "--prefix for what stands before the names of all outputs (in Python: columns, "
                "prefix)."
            )
        several = [name for name in self.read if names.count(name) > 1]
        if several:
            raise InputError(f"{source} has more than one column {_listed(several)}.")
        # What is read is never replaced, not even by a later run.
        taken = [n for n in self._added if n in names and (not self._again or n in self.read)]
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
        name = self.read[column]
        cell = batch.column(batch.schema.get_field_index(name))[int(row)].as_py()
        held = "an empty cell" if cell is None or cell == "" else repr(cell)
        return f"row {before + row + 1} has no finite number in column {name!r}, but {held}"

    def with_numbers(self, batch: pyarrow.RecordBatch, numbers: np.ndarray) -> pyarrow.RecordBatch:
        """Rows with the columns that were read as numbers in place of their texts."""
        import pyarrow

        for name, column in zip(self.read, numbers.T, strict=True):
            if name not in self.projected:  # of which the result is there already
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


def _empty(schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    import pyarrow

    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array([], field.type) for field in schema], schema=schema
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
