"""The server of tutorials/serving: latency beside the network alone, memory, the first answer.

    python benchmarks/serving.py [--quick] [--publish]

One process of uvicorn on the loopback address; the clients are threads of this process, on the
same cores. Routes take turns, and processor times are medians of the turns; those of the clock
depend on who else uses the machine. Needs the packages of
tests/integrations/requirements.txt (`make test-integrations` installs them).
"""

import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _results import Results, parsed, parser

HERE = Path(__file__).parent
MAKE = HERE.parent / "tutorials" / "serving" / "make.py"
HOST = "127.0.0.1"
ROUTES = {"network alone": "/network", "network and rules": "/project"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


class Server:
    """A process of uvicorn."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        words = ["-m", "uvicorn", "_served:app", "--host", HOST, "--port", str(self.port)]
        environment = {**os.environ, "MODEL": str(folder), "OMP_NUM_THREADS": "1"}
        started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, *words, "--log-level", "warning"], cwd=HERE, env=environment
        )
        until = time.monotonic() + 120
        while True:
            assert self.process.poll() is None, "the server did not start"
            assert time.monotonic() < until, "the server does not answer"
            with contextlib.suppress(OSError):
                connection = http.client.HTTPConnection(HOST, self.port, timeout=10)
                self.first = ask(connection, "/project", 30.0)
                break
            time.sleep(0.02)
        self.ready = time.perf_counter() - started

    def cpu(self) -> float:
        """Processor time so far, seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        """Bytes that it holds."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(30)


def ask(connection: http.client.HTTPConnection, route: str, degrees: float) -> float:
    """Seconds until the answer is there."""
    body = json.dumps({"x": [[degrees]]})
    start = time.perf_counter()
    connection.request("POST", route, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    told = answer.read()
    assert answer.status == 200, told
    return time.perf_counter() - start


def many(server: Server, route: str, count: int, clients: int) -> list[float]:
    """Latencies of requests that so many clients make one after the other."""

    def client(number: int) -> list[float]:
        connection = http.client.HTTPConnection(HOST, server.port, timeout=30)
        with contextlib.closing(connection):
            return [
                ask(connection, route, 10 + 30 * ((k * clients + number) % 997) / 997)
                for k in range(count // clients)
            ]

    with ThreadPoolExecutor(clients) as pool:
        return [each for found in pool.map(client, range(clients)) for each in found]


def latency(results: Results, server: Server, count: int, rounds: int) -> None:
    for clients in (1, 8):
        found: dict[str, list[tuple[list[float], float, float]]] = {name: [] for name in ROUTES}
        for _ in range(rounds):
            for name, route in ROUTES.items():
                start, cpu = time.perf_counter(), server.cpu()
                times = many(server, route, count, clients)
                spent = time.perf_counter() - start
                found[name].append((times, spent / len(times), (server.cpu() - cpu) / len(times)))
        for name, runs in found.items():
            every = sorted(each for times, _, _ in runs for each in times)
            results.add(
                "latency",
                route=name,
                clients=clients,
                requests=len(every),
                p50_s=every[len(every) // 2],
                p99_s=every[int(0.99 * len(every))],
                request_s=statistics.median(s for _, s, _ in runs),
                server_cpu_s=statistics.median(c for _, _, c in runs),
            )


def memory(results: Results, server: Server, requests: int) -> None:
    for k in range(11):
        results.add("memory", requests=k * requests // 10, resident_bytes=server.resident())
        if k < 10:
            many(server, "/project", requests // 10, 8)


def main() -> None:
    arguments = parsed(parser(__doc__, "fewer requests"))
    results = Results("serving", arguments, packages=("fastapi", "uvicorn"))
    quick = arguments.quick
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, MAKE, folder], check=True)
        for _ in range(1 if quick else 5):
            with serving(Path(folder)) as server:
                results.add("start", first_answer_s=server.ready, cpu_s=server.cpu())
        with serving(Path(folder)) as server:
            latency(results, server, 160 if quick else 1600, 2 if quick else 5)
            memory(results, server, 2_000 if quick else 50_000)
    results.write()


if __name__ == "__main__":
    main()
