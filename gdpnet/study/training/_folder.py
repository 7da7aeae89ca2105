"""StudyFolder: what a study leaves on disk, so that it can stop and go on."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from gdpnet.errors import InputError
from gdpnet.study.files import alone, replace_file

NOT_COMPARED = ("protocols", "targets_satisfied", "runs")
"""What two runs of one study may say differently."""

KEYS = ("protocol", "method", "size", "seed", "split")
"""Columns that name a row of the results; all others are numbers."""

Row = dict[str, Any]


class StudyFolder:
    """A folder with `study.json` (what was trained), `results.csv` and the networks.

    The table has one row for each method, size, seed, protocol and test split. Files are replaced
    whole, never written in place: a kill leaves the old one or the new one.

    Args:
        path: the folder; made where there is none.
        force: train anew what a damaged checkpoint holds, in place of refusing to go on.

    Example:
        >>> StudyFolder("build/cooling").results()  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str], force: bool = False) -> None:
        self.path = Path(path)
        self.force = force

    @property
    def table(self) -> Path:
        """The file of results."""
        return self.path / "results.csv"

    # ---- whose folder it is --------------------------------------------------------------

    def claim(self, study: Mapping[str, Any]) -> None:
        """Write what is studied, or check that the folder belongs to the same study.

        Args:
            study: plain values; protocols may be added to later.
        """
        file = self.path / "study.json"
        self.path.mkdir(parents=True, exist_ok=True)
        if file.exists():
            known = self.study()
            protocols = {**known.get("protocols", {}), **study["protocols"]}
            differing = [
                key for key in study if key not in NOT_COMPARED and known.get(key) != study[key]
            ]
            differing += [
                f"protocol {name}"
                for name, value in known.get("protocols", {}).items()
                if protocols[name] != value
            ]
            if differing:
                raise InputError(
                    f"{self.path} holds another study: {', '.join(differing)} differ from "
                    f"{file.name}. Give another folder with --out; nothing was changed."
                )
            study = {**study, **known, "protocols": protocols}
        elif any(self.path.iterdir()):
            raise InputError(
                f"{self.path} is not empty and holds no study ({file.name} is missing). Give an "
                "empty or new folder with --out; nothing was changed."
            )
        replace_file(file, (json.dumps(study, indent=2) + "\n").encode())

    def record(self, stamp: Mapping[str, Any]) -> None:
        """Write down that something is trained here, by what and on what.

        Args:
            stamp: from `gdpnet.study.stamp`. One that differs from the last in date and load alone
                is the same run, gone on with.
        """
        study = self.study()
        runs: list[Mapping[str, Any]] = study.setdefault("runs", [])
        if not runs or _who(runs[-1]) != _who(stamp):
            runs.append(dict(stamp))
            replace_file(self.path / "study.json", (json.dumps(study, indent=2) + "\n").encode())

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Refuse to write beside another process: one of the two would lose its rows."""
        return alone(
            self.path,
            "is being written to by another `gdpnet train`. Wait for it, or give another folder "
            "with --out.",
        )

    def study(self) -> dict[str, Any]:
        """What is studied here."""
        file = self.path / "study.json"
        if not file.is_file():
            raise InputError(
                f"{self.path} holds no study: {file.name} is missing. Name a folder that `gdpnet "
                "train --out` made."
            )
        try:
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or not isinstance(found.get("protocols"), dict):
                raise ValueError("it names no protocols")
            found.setdefault("norm", "l1")  # of studies that knew no other
            return found
        except ValueError as error:
            raise InputError(f"{file} cannot be read ({error}). Restore or delete it.") from None

    # ---- the table -----------------------------------------------------------------------

    def results(self) -> list[Row]:
        """All rows; numbers as numbers, NaN where a cell is empty."""
        if not self.table.exists():
            return []
        try:
            reader = csv.DictReader(io.StringIO(self.table.read_text(encoding="utf-8"), newline=""))
            missing = [key for key in KEYS if key not in (reader.fieldnames or ())]
            rows = list(enumerate(reader, 2))
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(
                f"{self.table} cannot be read ({error}). Restore it, or give another folder."
            ) from None
        if missing:
            raise InputError(
                f"{self.table} is no table of results: it has no column "
                f"{', '.join(missing)}. Restore it, or give another folder."
            )
        return [self._typed(row, line) for line, row in rows]

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows; the whole table is replaced at once."""
        every = [*self.results(), *rows]
        columns = list(dict.fromkeys([*KEYS, *(key for row in every for key in row)]))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: "" if v != v else v for k, v in row.items()} for row in every)
        replace_file(self.table, text.getvalue().encode())

    def finished(self) -> set[tuple[Any, ...]]:
        """Protocol, method, size and seed of all runs in the table."""
        return {tuple(row[key] for key in KEYS[:-1]) for row in self.results()}

    def _typed(self, row: dict[str, str], line: int) -> Row:
        found: Row = {}
        for key, value in row.items():
            try:
                if key in ("size", "seed"):
                    found[key] = int(value)
                elif key in KEYS:
                    found[key] = value
                else:
                    found[key] = float(value) if value else float("nan")
            except (TypeError, ValueError):
                raise InputError(
                    f"{self.table}, line {line}: {key}: expected a number, got {value!r}."
                ) from None
        return found

    # ---- networks ------------------------------------------------------------------------

    def checkpoint(self, protocol: str, size: int, seed: int, chain: str) -> Path:
        """Where the network at the end of a chain of stages is kept."""
        name = re.sub(r"[^\w.+@-]", "-", chain)
        return self.path / "networks" / protocol / f"n{size}-seed{seed}-{name}.pt"

    def save(self, file: Path, state: Mapping[str, Any]) -> None:
        """Write a checkpoint."""
        file.parent.mkdir(parents=True, exist_ok=True)
        payload = io.BytesIO()
        torch.save(dict(state), payload)
        replace_file(file, payload.getvalue())

    def load(self, file: Path, like: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """A checkpoint, None where there is none; refuses a damaged one unless forced.

        Args:
            file: the checkpoint.
            like: what it should look like: the state of a training that is to go on from it.
        """
        if not file.exists():
            return None
        try:
            # torch itself does not look at the check sums.
            with zipfile.ZipFile(file) as archive:
                broken = archive.testzip()
            if broken is not None:
                raise ValueError(f"the check sum of {broken} is wrong")
            state: dict[str, Any] = torch.load(file, weights_only=True)
            if not isinstance(state, dict) or not isinstance(state.get("network"), dict):
                raise ValueError("it holds no network")
            _check_like(state, like or {})
            return state
        except OSError:
            raise
        except Exception as error:  # a damaged archive raises almost anything
            if self.force:
                file.unlink()
                return None
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"The checkpoint {file} is damaged ({reason}). Delete it, or pass --force, to "
                "train it anew; nothing was changed."
            ) from None


def _who(stamp: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in stamp.items() if key not in ("date", "load")}


def _check_like(state: Mapping[str, Any], like: Mapping[str, Any]) -> None:
    missing = [key for key in like if key not in state]
    if missing:
        raise ValueError(f"it holds no {', '.join(missing)}")
    if "network" in like:
        own, other = (
            {name: weight.shape for name, weight in one["network"].items()} for one in (state, like)
        )
        if own != other:
            raise ValueError("its network is another one")
