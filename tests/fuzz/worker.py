"""Cases judged in another process, so that one that hangs is a finding and not the end."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

from tests.fuzz.judge import judge
from tests.fuzz.tally import Tally

# A case takes a second or less, a few time limits at most: what is not back by then hangs.
DEADLINE = 60.0


def _work(pipe: Connection) -> None:
    pipe.send(None)
    while True:
        pipe.send(judge(*pipe.recv()))


class Worker:
    """Judges in a process of its own, which is ended where a case does not come back."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.pipe.recv()  # importing is not part of the time

    def judge(self, name: str, seed: int) -> Tally | None:
        """None where there is no answer: the worker is of no use any more."""
        self.pipe.send((name, seed))
        try:
            if self.pipe.poll(DEADLINE):
                tally: Tally = self.pipe.recv()
                return tally
        except EOFError:
            pass  # it crashed
        self.end()
        return None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
