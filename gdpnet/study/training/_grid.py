"""train: methods x sizes x seeds x protocols, one table."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any

import torch

from gdpnet.checks import check_choice
from gdpnet.derivative.gradients import sensitivity_of
from gdpnet.errors import InputError, SolverError
from gdpnet.study._models import load_model
from gdpnet.study.stamp import stamp
from gdpnet.study.training._folder import KEYS, Row, StudyFolder
from gdpnet.study.training._methods import METHODS
from gdpnet.study.training._run import Cell, CellRun, Progress, rows_together
from gdpnet.study.training._task import Task
from gdpnet.study.training._trial import try_out


@dataclass(frozen=True)
class Grid:
    """What is trained.

    Attributes:
        methods: names, see `method_named`.
        sizes: numbers of training samples.
        seeds: of samples, backbones and their order.
        protocols: names.
        gradient: how gradients pass projections: `"qp"` (the paper's, eps 1e-2), `"vertex"`,
            `"straight_through"`, `"auto"`, `"mixed:0.25"`.
        norm: of the distance that projections minimise, `"l1"` or `"l2"`.

    Example:
        >>> len(Grid(methods=("base", "dnf"), sizes=(50, 100), seeds=(0, 1, 2)).cells)
        6
    """

    methods: Sequence[str] = tuple(METHODS)
    sizes: Sequence[int] = (250,)
    seeds: Sequence[int] = (0, 1, 2)
    protocols: Sequence[str] = ("converged",)
    gradient: str = "qp"
    norm: str = "l1"
    cells: tuple[Cell, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("methods", "sizes", "seeds", "protocols"):
            values = getattr(self, name)
            if isinstance(values, str) or not len(values):
                raise InputError(f"{name}: expected at least one, got {values!r}.")
            object.__setattr__(self, name, tuple(dict.fromkeys(values)))
        for name, least in (("sizes", 2), ("seeds", 0)):
            for value in getattr(self, name):
                if not isinstance(value, int) or value < least:
                    raise InputError(f"{name}: expected whole numbers >= {least}, got {value!r}.")
        sensitivity_of(self.gradient)
        check_choice("norm", self.norm, ("l1", "l2"))
        cells = tuple(
            Cell(protocol, size, seed)
            for protocol in self.protocols
            for size in self.sizes
            for seed in self.seeds
        )
        object.__setattr__(self, "cells", cells)


def train(
    model: str | os.PathLike[str],
    grid: Grid,
    out: str | os.PathLike[str],
    *,
    jobs: int = 1,
    together: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    finished: Callable[[int, int], None] | None = None,
    save_every: float = 20.0,
) -> list[Row]:
    """Train what is not in a folder's table yet.

    Every finished method adds its rows to the table at once; a study that was killed goes on where
    it was, with the same numbers as if it had not been.

    Args:
        model: a model file, see `gdpnet.study.training`.
        grid: what is trained.
        out: the study's folder.
        jobs: processes; each takes one size, seed and protocol at a time.
        together: train the seeds of a size side by side, as one network: the same steps, up to
            rounding, in less time where batches are small. Protocols that look at validation
            samples are trained one by one all the same.
        force: train anew what a damaged checkpoint holds.
        progress: called with a description, steps done and their total; with one job only.
        finished: called with the methods done and their number, of all cells.
        save_every: seconds between checkpoints of a training under way.

    Returns:
        The rows of the grid, old and new.

    Example:
        >>> grid = Grid(methods=("base", "dnf"), sizes=(50,), seeds=(0,), protocols=("paper",))
        >>> rows = train("models/cooling", grid, "build/small")  # doctest: +SKIP
    """
    task = Task(load_model(model), grid.norm)
    _refuse_unknown(task, grid)
    folder = StudyFolder(out, force)
    folder.claim(
        {
            "model": task.name,
            **task.fingerprint,
            "gradient": grid.gradient,
            "norm": grid.norm,
            "targets_satisfied": task.targets_satisfied(),
            "protocols": {name: task.protocol(name).as_dict() for name in grid.protocols},
        }
    )
    with folder.alone():
        _fill(task, grid, folder, os.fspath(model), jobs, together, progress, finished, save_every)
    wanted = {(c.protocol, m, c.size, c.seed) for c in grid.cells for m in grid.methods}
    return [row for row in folder.results() if tuple(row[key] for key in KEYS[:-1]) in wanted]


def _fill(
    task: Task,
    grid: Grid,
    folder: StudyFolder,
    model: str,
    jobs: int,
    together: bool,
    progress: Progress | None,
    finished: Callable[[int, int], None] | None,
    save_every: float,
) -> None:
    """Add to the table what it lacks."""
    known = folder.finished()
    wanted = {(c.protocol, m, c.size, c.seed) for c in grid.cells for m in grid.methods}
    done, total = len(wanted & known), len(wanted)

    def arrived(rows: list[Row]) -> None:
        nonlocal done
        folder.add(rows)
        done += 1
        if finished is not None:
            finished(done, total)

    if finished is not None:
        finished(done, total)
    if done < total:
        folder.record(stamp())
    left = [
        (cell, [m for m in grid.methods if (cell.protocol, m, cell.size, cell.seed) not in known])
        for cell in grid.cells
    ]
    units = _units([(cell, methods) for cell, methods in left if methods], together)
    if jobs == 1 or len(units) < 2:
        for cells, methods in units:
            runs = [CellRun(task, c, folder, grid.gradient, progress, save_every) for c in cells]
            for rows in rows_together(runs, methods):
                arrived(rows)
    else:
        _spread(model, units, folder, grid, min(jobs, len(units)), save_every, arrived)


Unit = tuple[list[Cell], list[str]]
"""Cells that one process takes at a time, and the methods that are left for them."""


def _units(left: list[tuple[Cell, list[str]]], together: bool) -> list[Unit]:
    if not together:
        return [([cell], methods) for cell, methods in left]
    groups: dict[Any, Unit] = {}
    for cell, methods in left:
        key = cell.protocol, cell.size, tuple(methods)
        groups.setdefault(key, ([], methods))[0].append(cell)
    # The longest first, or the last process works alone at the end.
    return sorted(groups.values(), key=lambda unit: -unit[0][0].size)


def _refuse_unknown(task: Task, grid: Grid) -> None:
    """Raise before anything is trained or written."""
    for name in grid.protocols:
        task.protocol(name)
    for name in grid.methods:
        task.layer(task.method(name), grid.gradient)
    for seed in grid.seeds:
        task.training(max(grid.sizes), seed)
    try_out(task)


def _spread(
    model: str,
    units: list[Unit],
    folder: StudyFolder,
    grid: Grid,
    jobs: int,
    save_every: float,
    arrived: Callable[[list[Row]], None],
) -> None:
    """Cells side by side, each in the first process that is free."""
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    with ProcessPoolExecutor(jobs, context, _keep, (queue,)) as pool:
        running: set[Future[None]] = {
            pool.submit(_work, model, unit, folder, grid.gradient, grid.norm, save_every)
            for unit in units
        }
        failures: list[BaseException] = []
        try:
            while running:
                ended, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                while not queue.empty():
                    arrived(queue.get())
                failures += [error for future in ended if (error := future.exception())]
                if failures:
                    # What is under way ends, and its rows are kept; nothing else begins.
                    running = {future for future in running if not future.cancel()}
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        while not queue.empty():
            arrived(queue.get())
    if failures:
        if isinstance(failures[0], BrokenProcessPool):
            raise SolverError(
                "A process of the study was killed from outside, perhaps for want of memory. The "
                "same command goes on from here; fewer --jobs need less memory."
            ) from None
        raise failures[0]


# Of a worker: where its rows go, and models it has loaded.
_queues: list[Any] = []
_tasks: dict[str, Task] = {}


def _keep(queue: Any) -> None:
    _queues.append(queue)


def _work(
    model: str,
    unit: Unit,
    folder: StudyFolder,
    gradient: str,
    norm: str,
    save_every: float,
) -> None:
    torch.set_num_threads(1)
    parent = os.getppid()

    def leave_if_orphaned(*_: object) -> None:
        # Whoever was to write the rows has been killed, and may have been started again.
        if os.getppid() != parent:
            os._exit(1)

    if model not in _tasks:  # all of a pool's work is of one norm
        _tasks[model] = Task(load_model(model), norm)
    cells, methods = unit
    runs = [
        CellRun(_tasks[model], cell, folder, gradient, leave_if_orphaned, save_every)
        for cell in cells
    ]
    for rows in rows_together(runs, methods):
        _queues[0].put(rows)
