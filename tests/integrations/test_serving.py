"""The server of the tutorial: its answers are those of the layer, from files that need no Pyomo."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient

import gdpnet

HERE = Path(__file__).parents[2] / "tutorials" / "serving"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served") / "model"
    subprocess.run([sys.executable, HERE / "make.py", made], check=True)
    return made


@pytest.fixture(scope="module")
def app(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("served_app", HERE / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["served_app"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def client(app: Any, folder: Path) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL", str(folder))
        with TestClient(app.app) as made:
            yield made


def test_answers_satisfy_the_rules(app: Any, client: TestClient, folder: Path) -> None:
    x = torch.linspace(10, 40, 31).reshape(-1, 1)
    told = client.post("/project", json={"x": x.tolist()}).json()
    rules = gdpnet.load_rules(folder / "rules.json")
    y = torch.tensor(told["y"])
    assert rules.satisfied(y, x, tol=1e-5).all()
    network = app.new_network().eval()
    network.load_state_dict(torch.load(folder / "network.pt", weights_only=True))
    with torch.no_grad():
        p = gdpnet.project(rules, network(x), x)
    assert torch.equal(y, p.y)
    assert told["status"] == [gdpnet.Status(code).name for code in p.status.tolist()]
    assert {"SATISFIED", "PROJECTED"} <= set(told["status"])
    assert client.get("/ready").json() == {"rules": rules.fingerprint}


def test_requests_at_once_do_not_mix(client: TestClient) -> None:
    questions = [{"x": [[10.0 + k / 4]]} for k in range(120)]
    alone = [client.post("/project", json=q).json() for q in questions]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda q: client.post("/project", json=q).json(), questions))
    assert together == alone


def test_bad_requests_are_refused_and_the_next_is_served(client: TestClient) -> None:
    assert client.post("/project", content=b'{"x": [[NaN]]}').status_code == 422
    assert client.post("/project", json={"x": "hot"}).status_code == 422
    assert client.post("/project", json={"x": [[30.0]]}).status_code == 200


def test_the_server_imports_no_pyomo(folder: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from fastapi.testclient import TestClient; import app\n"
        "with TestClient(app.app) as client:\n"
        "    client.post('/project', json={'x': [[30.0]]}).raise_for_status()\n"
        "print([m for m in ('pyomo', 'highspy', 'scipy', 'pandas') if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, HERE],
        env={"PYTHONPATH": str(HERE.parents[1]), "MODEL": str(folder), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
