"""A network and saved rules behind FastAPI.

python make.py model
MODEL=model uvicorn app:app --host 127.0.0.1 --port 8000
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import torch
from fastapi import FastAPI
from pydantic import BaseModel, FiniteFloat

import gdpnet


class Scale(torch.nn.Module):
    """Degrees to what the network sees."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - 25) / 10


def new_network() -> torch.nn.Module:
    """From degrees to fan and chiller."""
    return torch.nn.Sequential(
        Scale(), torch.nn.Linear(1, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
    )


class Question(BaseModel):
    x: list[list[FiniteFloat]]  # rows of the rules' inputs


class Answer(BaseModel):
    y: list[list[float]]
    status: list[str]  # SATISFIED, PROJECTED, LIMIT, CONFLICT, ... for each row


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    torch.set_num_threads(1)  # as many processes as cores serve better than many threads in one
    folder = Path(os.environ["MODEL"])
    network = new_network().eval()
    network.load_state_dict(torch.load(folder / "network.pt", weights_only=True))
    rules = gdpnet.load_rules(folder / "rules.json")
    app.state.network = network
    app.state.layer = gdpnet.ProjectionLayer(rules, time_limit=0.2)
    answered(torch.full((1, len(rules.input_names)), 25.0))  # the first request finds all warm
    yield


app = FastAPI(lifespan=lifespan)


@torch.inference_mode()
def answered(x: torch.Tensor) -> Answer:
    found = app.state.layer.project(app.state.network(x), x)
    status = [gdpnet.Status(code).name for code in found.status.tolist()]
    return Answer(y=found.y.tolist(), status=status)


@app.post("/project")
def project(question: Question) -> Answer:  # no async: it runs in a thread of FastAPI's pool
    return answered(torch.tensor(question.x))


@app.get("/ready")
def ready() -> dict[str, str]:
    return {"rules": app.state.layer.rules.fingerprint}
