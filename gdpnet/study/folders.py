"""project_folder: all tables of a folder projected, file by file, by many processes or machines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from gdpnet.checks import check_count
from gdpnet.errors import InputError
from gdpnet.extras import need
from gdpnet.model import RuleModel
from gdpnet.solve.status import Status
from gdpnet.study.batches import BatchProjector
from gdpnet.study.files import alone, replace_file
from gdpnet.study.left_overs import clear_all_left_overs
from gdpnet.study.spread import Processes, Runner
from gdpnet.study.streaming import Streamed, planned, stream
from gdpnet.study.tables import KINDS, table_writer
from gdpnet.threads import cores

CLAIM = "_gdpnet.json"
"""What a folder of results holds besides them; readers of folders pass over such a name."""

Told = Streamed | tuple[int, float]
"""What became of a file, or how far it is: rows, and share."""

_PATIENCE = 1.0  # seconds between two messages of a file

_ENDING = 5.0  # seconds that workers of a node that was killed may take to notice
_WORTH_PROCESSES = (
    1 << 24
)  # bytes of files below which starting processes costs more than it brings


def project_folder(
    rules: RuleModel,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    spread: Runner | None = None,
    overwrite: bool = False,
    progress: Callable[[int, float], None] | None = None,
    chunk: int = 16384,
    delimiter: str = ",",
    on_invalid: str = "mark",
    **keywords: Any,
) -> Streamed:
    """Project the predictions of all csv and parquet files of a folder, and of those below it.

    Each becomes a file of the same name in the target, as `project_file` writes it: complete, or
    not there. So a run that was stopped, whatever stopped it, goes on with the same call, and no
    row is lost or there twice. A file that has changed since is projected again; with other rules
    or other options a folder is refused. Names that begin with a dot or an underscore are passed
    over.

    Args:
        rules: the rules.
        source: the folder.
        target: a new or empty folder, or one that a run with the same options has begun.
        jobs: processes; where not given as many as there are cores, or one, with threads, where
            the files are small.
        spread: what runs the work in place of processes here, such as `gdpnet.ray.Tasks()`. Both
            folders have to be found under the same path there.
        overwrite: project everything again, and whatever the folder holds.
        progress: called with the rows done in this run, and the share of all bytes.
        chunk: most rows that are projected at a time.
        delimiter: between the columns of csv files.
        on_invalid: `"mark"`, or `"raise"` for an error at a row that cannot be used.
        **keywords: as in `BatchProjector`. `"plan:BUDGET"` is planned on the first rows of the
            first file.

    Returns:
        Counts of the rows of this run by status; `skipped` files were there already.

    Example:
        >>> gdpnet.study.project_folder(rules, "in", "out", prefix="pred_")  # doctest: +SKIP
    """
    need("pyarrow", "study")
    check_count("jobs", jobs, none=True)
    source, target = Path(source).absolute(), Path(target).absolute()
    started = time.perf_counter()
    sizes = _sizes(source)
    if target.is_relative_to(source) or source.is_relative_to(target):
        raise InputError(
            f"{target}: expected a folder beside {source}, not one of both in the other."
        )
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is no folder, which the results of a folder need.")
    if jobs is None:
        jobs = cores() if sum(size for size, _ in sizes.values()) >= _WORTH_PROCESSES else 1
    usual: dict[str, Any] = {"relaxation": "dnf", "solver": "auto", "threads": None}
    if jobs > 1 or spread is not None:
        usual["threads"] = 1  # the cores are for files
    first = source / next(iter(sizes))
    keywords = planned(rules, first, usual | keywords, chunk=chunk, delimiter=delimiter)
    project = BatchProjector(rules, **keywords)
    every = {**keywords, "delimiter": delimiter, "on_invalid": on_invalid}
    del every["threads"]
    options = {key: repr(value) for key, value in sorted(every.items())}
    target.mkdir(parents=True, exist_ok=True)
    with alone(target, "is being written to by another run. Wait for it, or name another folder."):
        left = _claim(target, {"rules": rules.fingerprint, "options": options}, sizes, overwrite)
        left_over = clear_all_left_overs(target)
        whole = sum(size for size, _ in sizes.values()) or 1
        done = whole - sum(sizes[name][0] for name in left)
        work = _Files(project, source, target, chunk, delimiter, on_invalid)
        found: list[Streamed] = []
        under_way: dict[str, tuple[int, float]] = {}  # rows and share of files
        for name, told in _results(work, left, jobs, spread):
            if isinstance(told, Streamed):
                found.append(told)
                under_way[name] = told.rows, 1.0
            else:
                under_way[name] = told
            if progress is not None:
                share = sum(sizes[each][0] * part for each, (_, part) in under_way.items())
                rows = sum(count for count, _ in under_way.values())
                progress(rows, (done + share) / whole)
        # Of workers whose work others have done, which may be ending where a node was killed.
        left_over += clear_all_left_overs(target, _ENDING if spread is not None else 0.0)
    unusable = [one for one in found if one.unusable]
    return Streamed(
        path=target,
        rows=sum(one.rows for one in found),
        statuses={status: sum(one.statuses.get(status, 0) for one in found) for status in Status},
        seconds=time.perf_counter() - started,
        unusable=sum(one.unusable for one in unusable),
        first_unusable=f"{unusable[0].path}: {unusable[0].first_unusable}" if unusable else "",
        left_over=left_over,
        skipped=len(sizes) - len(left),
    )


def _results(
    work: _Files, names: list[str], jobs: int, spread: Runner | None
) -> Iterator[tuple[str, Told]]:
    if spread is None and (jobs == 1 or len(names) < 2):
        return chain.from_iterable(map(work, names))
    return (spread or Processes(jobs)).run(work, names)


@dataclass(frozen=True)
class _Files:
    """Projects files of a folder, in whatever process.

    Attributes:
        project: what becomes of their rows.
        source: their folder.
        target: the folder of the results.
        chunk: most rows that are projected at a time.
        delimiter: between the columns of csv files.
        on_invalid: what becomes of rows that cannot be used.
    """

    project: BatchProjector
    source: Path
    target: Path
    chunk: int
    delimiter: str
    on_invalid: str

    def __call__(self, name: str) -> Iterator[tuple[str, Told]]:
        source, target = self.source / name, self.target / name
        if source.suffix.lower() == ".parquet" and _is_empty(source):
            yield name, self._without_rows(source, target)
            return
        under_way = stream(
            self.project,
            source,
            target,
            on_invalid=self.on_invalid,
            chunk=self.chunk,
            delimiter=self.delimiter,
        )
        next_time = time.monotonic() + _PATIENCE
        try:
            while True:
                told = next(under_way)
                if time.monotonic() >= next_time:
                    next_time = time.monotonic() + _PATIENCE
                    yield name, told
        except StopIteration as ended:
            yield name, ended.value

    def _without_rows(self, source: Path, target: Path) -> Streamed:
        """Columns alone: clusters write such files."""
        from pyarrow import RecordBatch, parquet

        schema = parquet.read_schema(source)
        self.project.columns.refuse(source, schema.names)
        with table_writer(target, self.delimiter) as write:
            write(RecordBatch.from_pylist([], self.project.schema(schema)))
        return Streamed(target, 0, {}, 0.0)


def _is_empty(source: Path) -> bool:
    import pyarrow
    from pyarrow import parquet

    try:
        return parquet.read_metadata(source).num_rows == 0
    except (pyarrow.ArrowException, OSError):  # whoever reads it tells what is wrong
        return False


def _sizes(source: Path) -> dict[str, tuple[int, int]]:
    """Size and time of the last change of all tables of a folder, by their names in it."""
    if not source.is_dir():
        raise InputError(f"{source}: there is no such folder.")
    found = {}
    for file in sorted(source.rglob("*")):
        name = file.relative_to(source)
        hidden = any(part.startswith((".", "_")) for part in name.parts)
        if not hidden and file.suffix.lower() in KINDS and file.is_file():
            known = file.stat()
            found[name.as_posix()] = known.st_size, known.st_mtime_ns
    if not found:
        raise InputError(f"{source} holds no files that end in {' or '.join(KINDS)}.")
    return found


def _claim(
    target: Path, claim: dict[str, Any], sizes: dict[str, tuple[int, int]], overwrite: bool
) -> list[str]:
    """Write whose folder it is, or check that; gives the files that are left to do."""
    file, known = target / CLAIM, dict[str, Any]()
    if file.exists():
        try:
            known = json.loads(file.read_text(encoding="utf-8"))
            before = {name: tuple(size) for name, size in known["files"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{file} cannot be read ({error}). Name another folder.") from None
    elif not overwrite and any(path.name != ".lock" for path in target.iterdir()):
        raise InputError(
            f"{target} is not empty, and was not begun by such a run ({CLAIM} is missing). Name a "
            "new folder, or allow to overwrite it; nothing was changed."
        )
    differing = [key for key, value in claim.items() if known and known.get(key) != value]
    if differing and not overwrite:
        raise InputError(
            f"{target} was begun with other {' and '.join(differing)}. Name another folder, or "
            "allow to overwrite it; nothing was changed."
        )
    if not known or overwrite:
        before = {}
    stale = [name for name in sizes if before.get(name) != sizes[name]]
    for name in stale:  # or a run that is stopped now would be taken for finished
        (target / name).unlink(missing_ok=True)
    files = {"files": before | sizes}
    replace_file(file, (json.dumps(claim | files, indent=1) + "\n").encode())
    return [name for name in sizes if not (target / name).exists()]
