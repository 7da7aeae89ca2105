"""The server of tutorials/serving with one more route: the network without rules."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tutorials" / "serving"))

from app import Answer, Question, app


@app.post("/network")
def network(question: Question) -> Answer:
    with torch.inference_mode():
        y = app.state.network(torch.tensor(question.x)).tolist()
    return Answer(y=y, status=["PREDICTED"] * len(y))
