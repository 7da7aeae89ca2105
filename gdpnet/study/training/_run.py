"""One cell of a study: all methods of one size, seed and protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from gdpnet.study.training._evaluation import Outputs, evaluate
from gdpnet.study.training._folder import Row, StudyFolder
from gdpnet.study.training._methods import METHODS, Method
from gdpnet.study.training._objective import Objective
from gdpnet.study.training._protocols import Protocol, Stage
from gdpnet.study.training._task import Data, Task
from gdpnet.study.training._together import Together
from gdpnet.study.training._training import Training

Progress = Callable[[str, int, int], None]
"""Called with a description, the steps done and their total."""


@dataclass(frozen=True)
class Cell:
    """What methods of a study have in common.

    Attributes:
        protocol: name of the protocol.
        size: training samples.
        seed: of the samples, the backbone and the order.
    """

    protocol: str
    size: int
    seed: int

    def __str__(self) -> str:
        return f"{self.protocol}, n = {self.size}, seed {self.seed}"


class CellRun:
    """Trains and evaluates methods of a cell, keeping every finished stage.

    Args:
        task: the task.
        cell: size, seed and protocol.
        folder: where networks are kept.
        gradient: how gradients pass a projection.
        progress: told about steps.
        save_every: seconds between checkpoints of a stage under way.
    """

    def __init__(
        self,
        task: Task,
        cell: Cell,
        folder: StudyFolder,
        gradient: Any = None,
        progress: Progress | None = None,
        save_every: float = 20.0,
    ) -> None:
        self.task, self.cell, self.folder = task, cell, folder
        self._gradient = gradient
        self._progress = progress
        self._save_every = save_every
        self._protocol: Protocol = task.protocol(cell.protocol)
        data = task.training(cell.size, cell.seed)
        held = self._protocol.held_back(len(data))
        self._data = data.take(slice(len(data) - held))
        self._held: Data | None = data.take(slice(len(data) - held, None)) if held else None

    def rows(self, names: Sequence[str]) -> Iterator[list[Row]]:
        """Results of one method after the other, a row for each test split."""
        for name in names:
            yield self._method_rows(self.task.method(name))

    def trained(self, method: Method) -> tuple[nn.Module, nn.Module | None, dict[str, float]]:
        """The network of a method, its projection, and what training took.

        Args:
            method: the method.
        """
        layer = self.task.layer(method, self._gradient)
        if method.network is not None:
            return self.task.new_network(self.cell.seed, method.network), layer, {}
        network = self.task.new_network(self.cell.seed)
        cost = {"train_seconds": 0.0, "train_steps": 0.0}
        for number, (chain, trained, stage) in enumerate(chains(method, self._protocol)):
            objective = Objective.of(self.task, trained, layer)
            state = self._stage(network, objective, stage, number, chain)
            cost["train_seconds"] += state["seconds"]
            cost["train_steps"] += state["step"]
            epochs = state["step"] / stage.epoch(len(self._data))
            cost["epoch_seconds"] = state["seconds"] / epochs
        return network, layer, cost

    def _method_rows(self, method: Method) -> list[Row]:
        network, layer, cost = self.trained(method)
        outputs = Outputs(network, layer)
        cell = self.cell
        return [
            {
                "protocol": cell.protocol,
                "method": method.name,
                "size": cell.size,
                "seed": cell.seed,
                "split": split,
                **evaluate(self.task, outputs, split),
                **cost,
            }
            for split in self.task.test_seeds
        ]

    def _stage(
        self, network: nn.Module, objective: Objective, stage: Stage, number: int, chain: str
    ) -> dict[str, Any]:
        """Bring a network to the end of a stage: from its checkpoint, or by training."""
        cell, folder, file = self.cell, self.folder, self._file(chain)
        done = folder.load(file, {"network": network.state_dict(), "step": 0, "seconds": 0.0})
        if done is not None:
            network.load_state_dict(done["network"])
            return done
        held = self._held if stage.check_every else None
        training = Training(network, objective, stage, self._data, held, cell.seed, number)
        under_way = file.with_suffix(".running.pt")
        state = folder.load(under_way, training.state())
        if state is not None:
            training.restore(state)
        training.run(self._pause(under_way, chain))
        result = training.state()
        kept = {key: result[key] for key in ("network", "curve", "step", "seconds")}
        folder.save(file, kept)
        under_way.unlink(missing_ok=True)
        return kept

    def _network(self, chain: str | None) -> nn.Module:
        """The network at the end of a chain that is done; a new one for None."""
        network = self.task.new_network(self.cell.seed)
        if chain is not None:
            state = self.folder.load(self._file(chain))
            assert state is not None
            network.load_state_dict(state["network"])
        return network

    def _file(self, chain: str) -> Path:
        cell = self.cell
        return self.folder.checkpoint(cell.protocol, cell.size, cell.seed, chain)

    def _pause(self, file: Path, chain: str) -> Callable[[Training], None]:
        saved = time.monotonic()

        def pause(training: Training) -> None:
            nonlocal saved
            if self._progress is not None:
                self._progress(f"{self.cell}, {chain}", training.step, training.total)
            if not training.done and time.monotonic() - saved >= self._save_every:
                self.folder.save(file, training.state())
                saved = time.monotonic()

        return pause


def rows_together(runs: Sequence[CellRun], names: Sequence[str]) -> Iterator[list[Row]]:
    """Results of cells that differ in the seed alone, one method after the other.

    Their networks are trained side by side where that can be had, else one by one; what the folder
    has already is not trained again.

    Args:
        runs: the cells.
        names: of the methods.
    """
    for name in names:
        method = runs[0].task.method(name)
        if len(runs) > 1 and method.network is None:
            _train_together(runs, method)
        for run in runs:
            yield from run.rows([name])


def _train_together(runs: Sequence[CellRun], method: Method) -> None:
    task, folder, protocol = runs[0].task, runs[0].folder, runs[0]._protocol
    layer = task.layer(method, runs[0]._gradient)
    before: str | None = None
    for number, (chain, trained, stage) in enumerate(chains(method, protocol)):
        left = [run for run in runs if folder.load(run._file(chain)) is None]
        if left:
            networks = [run._network(before) for run in left]
            seeds = [run.cell.seed for run in left]
            objective = Objective.of(task, trained, layer)
            held = [r._held for r in left if r._held is not None] if stage.check_every else []
            training = Together(
                networks, objective, stage, [r._data for r in left], held or None, seeds, number
            )
            if not training.possible:
                return
            joined = "-".join(map(str, seeds))
            under_way = runs[0]._file(f"{chain}@{joined}").with_suffix(".running.pt")
            state = folder.load(under_way, training.state())
            if state is not None:
                training.restore(state)
            training.run(runs[0]._pause(under_way, f"{chain}, seeds {joined}"))
            for run, result in zip(left, training.unstacked(), strict=True):
                folder.save(run._file(chain), result)
            under_way.unlink(missing_ok=True)
        before = chain


def chains(method: Method, protocol: Protocol) -> Iterator[tuple[str, Method, Stage]]:
    """Stages of a method: the name of all up to it, what is minimised, and how."""
    chain = ""
    for trained, stage in _stages(method, protocol):
        # What is minimised decides whose stage it is: inference shares the base's.
        own = {"plain": "base", "penalty": "penalty", "projected": method.name}[trained.loss]
        chain = f"{chain}+{own}" if chain else own
        yield chain, trained, stage


def _stages(method: Method, protocol: Protocol) -> list[tuple[Method, Stage]]:
    """What is minimised in which stage."""
    if method.finetuned:
        return [(METHODS["base"], protocol.base), (method, protocol.finetune)]
    return [(method, stage) for stage in (protocol.base, protocol.finetune)[: 1 + protocol.both]]
