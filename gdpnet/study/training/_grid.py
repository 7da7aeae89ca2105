"""train: methods x sizes x seeds x protocols, one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gdpnet.checks import check_choice
from gdpnet.derivative.gradients import sensitivity_of
from gdpnet.errors import InputError
from gdpnet.study._models import load_model
from gdpnet.study.spread import Processes, Runner, leave_if_orphaned
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
    spread: Runner | None = None,
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
            rounding, in less time where batches are small.
        spread: what runs the cells in place of processes here, such as `gdpnet.ray.Tasks()`. The
            model file and the folder have to be found under the same path there.
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
    if spread is not None:  # who runs it may start elsewhere
        out = os.path.abspath(out)
        model = os.path.abspath(model) if os.path.exists(model) else model
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
        _fill(
            task,
            grid,
            folder,
            os.fspath(model),
            jobs,
            together,
            spread,
            progress,
            finished,
            save_every,
        )
    wanted = {(c.protocol, m, c.size, c.seed) for c in grid.cells for m in grid.methods}
    return [row for row in folder.results() if tuple(row[key] for key in KEYS[:-1]) in wanted]


def _fill(
    task: Task,
    grid: Grid,
    folder: StudyFolder,
    model: str,
    jobs: int,
    together: bool,
    spread: Runner | None,
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
        key = tuple(rows[0][name] for name in KEYS[:-1])
        if key in known:  # of work that was begun again
            return
        known.add(key)
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
    if spread is None and (jobs == 1 or len(units) < 2):
        for cells, methods in units:
            runs = [CellRun(task, c, folder, grid.gradient, progress, save_every) for c in cells]
            for rows in rows_together(runs, methods):
                arrived(rows)
    else:
        work = _Work(model, folder, grid.gradient, grid.norm, save_every)
        for rows in (spread or Processes(jobs)).run(work, units):
            arrived(rows)


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


# Tasks that a worker has made, by the path of the model and the norm.
_tasks: dict[tuple[str, str], Task] = {}


@dataclass(frozen=True)
class _Work:
    """Trains units of a study in another process.

    Attributes:
        model: path of the model file.
        folder: the study's.
        gradient: how gradients pass projections.
        norm: of the distance.
        save_every: seconds between checkpoints of a training under way.
    """

    model: str
    folder: StudyFolder
    gradient: str
    norm: str
    save_every: float

    def __call__(self, unit: Unit) -> Iterator[list[Row]]:
        torch.set_num_threads(1)
        parent = os.getppid()
        key = self.model, self.norm
        if key not in _tasks:
            _tasks[key] = Task(load_model(self.model), self.norm)
        cells, methods = unit
        runs = [
            CellRun(
                _tasks[key],
                cell,
                self.folder,
                self.gradient,
                lambda *_: leave_if_orphaned(parent),
                self.save_every,
            )
            for cell in cells
        ]
        yield from rows_together(runs, methods)
