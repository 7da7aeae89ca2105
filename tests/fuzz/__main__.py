"""The command line: as many cases of each class as the minutes allow, then a table."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from tests.fuzz.judge import NAMES
from tests.fuzz.tally import Tally
from tests.fuzz.worker import DEADLINE, Worker


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first case of each class")
    parser.add_argument("--count", type=int, help="cases of each class, whatever time they take")
    parser.add_argument("--class", dest="name", choices=NAMES, help="only this one")
    arguments = parser.parse_args()
    names = [arguments.name] if arguments.name else list(NAMES)
    worker = Worker()
    tallies = {name: Tally() for name in names}
    seconds = dict.fromkeys(names, 0.0)
    end = time.monotonic() + 60 * arguments.minutes
    for seed, name in _schedule(arguments.seed, names, arguments.count):
        started = time.monotonic()
        if arguments.count is None and started > end:
            break
        tally = worker.judge(name, seed)
        if tally is None:
            tally = Tally(failures=[f"{name} seed {seed}: no answer within {DEADLINE:g} s"])
            worker = Worker()
        seconds[name] += time.monotonic() - started
        tallies[name].add(tally)
        for failure in tally.failures:
            print(failure, flush=True)
    worker.end()
    return _report(tallies, seconds, arguments.seed)


def _schedule(first: int, names: list[str], count: int | None) -> Iterator[tuple[int, str]]:
    seed = first
    while count is None or seed < first + count:
        yield from ((seed, name) for name in names)
        seed += 1


def _report(tallies: dict[str, Tally], seconds: dict[str, float], seed: int) -> int:
    print(f"\n{'class':18} samples  a minute  undecided  unfinished  disagreements")
    for name, tally in tallies.items():
        rate = 60 * tally.samples / seconds[name] if seconds[name] else 0.0
        print(
            f"{name:18} {tally.samples:7}  {rate:8.0f}  {tally.undecided:9}  "
            f"{tally.unfinished:10}  {len(tally.failures):13}"
        )
    total = sum(len(tally.failures) for tally in tallies.values())
    print(
        f"\nfrom seed {seed}: {sum(t.samples for t in tallies.values())} samples, "
        f"{total} disagreements"
    )
    if total:
        print("again: python -m tests.fuzz --class CLASS --seed SEED --count 1")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
