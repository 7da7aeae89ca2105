"""Files that runs which were killed have left beside their target."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterable
from pathlib import Path

_HOST = re.sub(r"[^A-Za-z0-9_]", "_", platform.node()) or "here"

# No file that is older was written by this process, whatever its number.
_STARTED = time.time()


def part_of(target: Path) -> Path:
    """Where this process writes a target until it is complete."""
    return target.with_name(f".{target.name}.{_HOST}-{os.getpid()}.part")


def clear_left_overs(target: Path) -> tuple[str, ...]:
    """Remove what stopped runs have left of a target.

    A file is removed only where the process in its name, on this machine, is gone.

    Args:
        target: the file that they were to write.

    Returns:
        A sentence for each file that was found.
    """
    return _cleared(target.parent.glob(".*.part"), re.escape(target.name))


def clear_all_left_overs(folder: Path, patience: float = 0.0) -> tuple[str, ...]:
    """The same for all targets in a folder and below it.

    Args:
        folder: which.
        patience: seconds that processes have to end, where they are about to.
    """
    end = time.monotonic() + patience
    while any(map(_is_written, folder.rglob(".*.part"))) and time.monotonic() < end:
        time.sleep(0.05)
    return _cleared(folder.rglob(".*.part"), r".+")


def _cleared(files: Iterable[Path], name: str) -> tuple[str, ...]:
    part = re.compile(rf"\.{name}\.(?:(\w+)-)?(\d+)\.part")
    told = []
    for file in sorted(files):
        match = part.fullmatch(file.name)
        if match is None:
            continue
        host, process = match[1] or _HOST, int(match[2])
        if host != _HOST:
            told.append(
                f"{file} was begun on the machine {host}. Delete it if no run there writes it."
            )
        elif _may_run(process, file):
            told.append(f"{file} is being written by another run, process {process}.")
        else:
            file.unlink(missing_ok=True)
            told.append(f"Removed {file}, left by a run that was stopped (process {process}).")
    return tuple(told)


def _is_written(file: Path) -> bool:
    """Whether another process of this machine may be at it."""
    match = re.search(rf"\.{_HOST}-(\d+)\.part$", file.name)
    return match is not None and _may_run(int(match[1]), file)


def _may_run(process: int, file: Path) -> bool:
    if process == os.getpid():
        return file.stat().st_mtime >= _STARTED
    if os.name != "posix":  # asking would end the process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True
