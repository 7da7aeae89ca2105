"""A process that measures peers: `python -m peers.worker MODULE`, cells by lines of JSON.

MODULE is one of `adapters`.

Each cell runs in a fork of this process, so that a crash, a hang or a leak ends that cell only and
memory is that of the cell. It needs numpy, scipy, torch and the peer, not gdpnet.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

MEMORY = 8 << 30


def main() -> None:
    """Answer each line with a line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some peers print
    start = time.perf_counter()
    try:
        import torch

        torch.set_num_threads(1)
        module = importlib.import_module(f"peers.adapters.{sys.argv[1]}")
    except Exception as error:
        _say(answers, status="not installed", message=f"{type(error).__name__}: {error}")
        return
    _say(answers, status="ready", loading=time.perf_counter() - start)
    for line in sys.stdin:
        task = json.loads(line)
        _say(answers, **_run(getattr(module, task["peer"]), task))


def _run(peer_type: Any, task: dict[str, Any]) -> dict[str, str]:
    target = Path(task["out"])
    target.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        _cell(peer_type, task, target)
    deadline = time.monotonic() + task["limit"]
    while True:
        ended, code = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"status": "no answer", "message": f"none within {task['limit']:.0f} s"}
        time.sleep(0.02)
    if target.exists():
        return {"status": "done", "message": ""}
    return {"status": "crash", "message": f"exit status {code}"}


def _cell(peer_type: Any, task: dict[str, Any], target: Path) -> None:
    from .adapters._base import NotSupportedError
    from .cell import Budget, measure

    found: dict[str, Any]
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        problem = pickle.loads(Path(task["problem"]).read_bytes())
        found = measure(peer_type, problem, task["batch"], Budget(**task["budget"]))
    except NotSupportedError as error:
        found = {"failed": "not supported", "message": str(error)}
    except ImportError as error:
        found = {"failed": "not installed", "message": str(error)}
    except MemoryError:
        found = {"failed": "memory", "message": f"more than {MEMORY >> 30} GB"}
    except Exception as error:
        traceback.print_exc()
        found = {"failed": "error", "message": f"{type(error).__name__}: {error}"}
    partial = target.with_suffix(".part")
    partial.write_bytes(pickle.dumps(found))
    partial.rename(target)
    os._exit(0)


def _say(to: Any, **what: Any) -> None:
    to.write(json.dumps(what) + "\n")
    to.flush()


if __name__ == "__main__":
    main()
