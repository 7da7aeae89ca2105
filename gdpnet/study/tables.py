"""Tables in files, read and written piece by piece: csv and parquet."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.errors import InputError
from gdpnet.extras import need
from gdpnet.study.left_overs import part_of

if TYPE_CHECKING:
    import pyarrow

    from gdpnet.study.batches import Columns

KINDS = (".csv", ".parquet")

# Bytes of a csv file that are read at a time.
_BLOCK = 1 << 20

# Spellings of a number that is not there.
_MISSING = ("", "NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN")


def kind_of(path: Path) -> str:
    """`.csv` or `.parquet`; raises for anything else."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InputError(
            f"{path}: expected a name that ends in {' or '.join(KINDS)}, got "
            f"{repr(path.suffix) if path.suffix else 'no extension'}."
        )
    return kind


def check_readable(path: Path) -> None:
    """Raise where a path names no table."""
    kind_of(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")


class TableReader:
    """A file's rows, piece by piece.

    Args:
        path: the file.
        columns: which of them are read as numbers; refuses a file that lacks some.
        as_text: keep all columns of a csv file as they are spelled; else their types follow from
            the first rows.
        delimiter: between the columns of a csv file.

    Attributes:
        names: of all its columns.
    """

    def __init__(self, path: Path, columns: Columns, as_text: bool, delimiter: str) -> None:
        need("pyarrow", "study")
        self.path = path
        check_readable(path)
        self._csv = kind_of(path) == ".csv"
        self._file = path.open("rb")
        self._rows = 0
        try:
            with _told(path):
                if self._csv:
                    self._open_csv(columns, as_text, delimiter)
                else:
                    self._open_parquet(columns)
        except BaseException:
            self._file.close()
            raise

    def _open_csv(self, columns: Columns, as_text: bool, delimiter: str) -> None:
        import pyarrow
        import pyarrow.csv

        self._size = self.path.stat().st_size
        if not self._size:
            raise InputError(f"{self.path} is empty: expected a line of names and rows.")
        read = pyarrow.csv.ReadOptions(block_size=_BLOCK)
        # A text may hold line breaks, if it stands in quotes.
        parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        self.names = names = _header(self.path, delimiter)
        columns.refuse(self.path, names)
        text = names if as_text else columns.read
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(text, pyarrow.string()), strings_can_be_null=False
        )
        self._reader = pyarrow.csv.open_csv(
            self._file, read_options=read, parse_options=parse, convert_options=convert
        )

    def _open_parquet(self, columns: Columns) -> None:
        from pyarrow import parquet

        self._reader = parquet.ParquetFile(self._file)
        self.names = list(self._reader.schema_arrow.names)
        columns.refuse(self.path, self.names)
        self._size = self._reader.metadata.num_rows

    @property
    def share(self) -> float:
        """How much of it was read."""
        return (self._file.tell() if self._csv else self._rows) / self._size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def pieces(self, most: int) -> Iterator[pyarrow.RecordBatch]:
        """Rows, at most so many at a time."""
        with _told(self.path), self._file:
            batches = self._reader if self._csv else self._reader.iter_batches(batch_size=most)
            for batch in batches:
                for start in range(0, batch.num_rows, most):
                    piece = batch.slice(start, most)
                    self._rows += piece.num_rows
                    yield piece
        if not self._rows:
            raise InputError(f"{self.path} holds no rows.")


def _header(path: Path, delimiter: str) -> list[str]:
    """Names of the columns of a csv file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next((row for row in csv.reader(file, delimiter=delimiter) if row), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, error) from None


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """What pyarrow cannot read, in a sentence."""
    import pyarrow

    try:
        yield
    except pyarrow.ArrowException as error:
        raise _unreadable(path, error) from None
    except OSError as error:
        if type(error) is not OSError:  # such as PermissionError: says what is wrong by itself
            raise
        raise _unreadable(path, error) from None  # how pyarrow tells of damaged files


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = str(error).strip().splitlines()[0].rstrip(".")
    return InputError(f"{path} cannot be read as {kind_of(path)[1:]}: {reason}.")


def numbers_of(batch: pyarrow.RecordBatch, names: Sequence[str], source: object) -> np.ndarray:
    """Columns as numbers, NaN where a cell holds none.

    Args:
        batch: rows.
        names: of the columns.
        source: where they come from, for errors.

    Returns:
        float64 `rows x names`.
    """
    import pyarrow
    from pyarrow import compute

    found = np.empty((batch.num_rows, len(names)))
    for k, name in enumerate(names):
        column = batch.column(batch.schema.get_field_index(name))
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        text = pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)
        if text:
            column = compute.utf8_trim_whitespace(column)
            missing = compute.is_in(column, pyarrow.array(_MISSING, column.type))
            column = compute.if_else(missing, pyarrow.scalar(None, column.type), column)
        try:
            found[:, k] = column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        except pyarrow.ArrowException:
            if not text:
                raise InputError(
                    f"{source}: column {name!r} should hold numbers, but is of {column.type}."
                ) from None
            found[:, k] = [_number(cell) for cell in column]
    return found


def _number(cell: Any) -> float:
    import pyarrow

    try:
        number = cell.cast(pyarrow.float64()).as_py()
    except pyarrow.ArrowException:
        return np.nan
    return np.nan if number is None else number


# ---- writing ------------------------------------------------------------------------------------


@contextlib.contextmanager
def table_writer(path: Path, delimiter: str) -> Iterator[Callable[[pyarrow.RecordBatch], None]]:
    """Gives what writes rows; the file is there once all of them are, or not at all."""
    import pyarrow

    part = part_of(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with part.open("xb") as file:
            writer = _CsvWriter(file, delimiter) if kind_of(path) == ".csv" else _Parquet(file)
            try:
                yield writer.write
            except pyarrow.ArrowException as error:
                reason = str(error).strip().splitlines()[0].rstrip(".")
                raise InputError(f"{path} cannot be written: {reason}.") from None
            finally:
                writer.close()
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class _Parquet:
    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, batch: pyarrow.RecordBatch) -> None:
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, batch.schema)
        self._writer.write_batch(batch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _CsvWriter:
    """Texts stand in quotes only where they have to, which pyarrow's own writer cannot do."""

    def __init__(self, file: Any, delimiter: str) -> None:
        self._file = file
        self._delimiter = delimiter
        self._special = f'["\\r\\n{re.escape(delimiter)}]'
        self._begun = False

    def write(self, batch: pyarrow.RecordBatch) -> None:
        import pyarrow
        from pyarrow import compute

        if not self._begun:
            header = self._quoted(pyarrow.array(batch.schema.names, pyarrow.string()))
            self._file.write((self._delimiter.join(header.to_pylist()) + "\n").encode())
            self._begun = True
        columns = [self._quoted(column.cast(pyarrow.string())) for column in batch.columns]
        how: dict[str, Any] = {"null_handling": "replace", "null_replacement": ""}
        lines = compute.binary_join_element_wise(*columns, self._delimiter, **how)
        self._file.write(("\n".join(lines.to_pylist()) + "\n").encode())

    def _quoted(self, column: Any) -> Any:
        from pyarrow import compute

        special = compute.match_substring_regex(column, self._special)
        if not compute.any(special).as_py():
            return column
        inside = compute.replace_substring(column, '"', '""')
        quoted = compute.binary_join_element_wise('"', inside, '"', "")
        return compute.if_else(special, quoted, column)

    def close(self) -> None:
        pass
