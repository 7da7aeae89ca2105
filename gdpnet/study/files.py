"""Files that are replaced whole, and folders that one process at a time writes to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from gdpnet.errors import InputError


def replace_file(file: Path, content: bytes) -> None:
    """Write a file so that a kill leaves the old one or the new one."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    with part.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    part.replace(file)


@contextlib.contextmanager
def alone(folder: Path, refusal: str) -> Iterator[None]:
    """Refuse to write to a folder beside another process that does.

    Args:
        folder: which is there.
        refusal: what is told, behind the folder's name.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no such lock
        yield
        return
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder} {refusal}") from None
        yield  # the lock ends with the process, however that ends
