"""The exact engine against MILP, on the problem of a seed."""

from __future__ import annotations

import numpy as np
import torch

import gdpnet
from gdpnet import Status
from gdpnet.testing import random_predictions, random_rules


def disagreement(seed: int) -> str:
    """What is wrong with the problem of a seed, empty where nothing is."""
    rng = np.random.default_rng(seed)
    rules = random_rules(rng)
    yhat = torch.from_numpy(random_predictions(rng, len(rules.output_names)))
    exact = gdpnet.project(rules, yhat, solver="exact", threads=1)
    milp = gdpnet.project(rules, yhat, solver="milp", threads=1)
    if exact.info.solver != "exact":
        return f"unfinished: {exact.info.solver}"
    if exact.status.tolist() != milp.status.tolist():
        return f"status {exact.status.tolist()} and {milp.status.tolist()} for {yhat.tolist()}"
    some = exact.status != Status.CONFLICT
    if not rules.satisfied(exact.y[some], tol=1e-8).all():
        return f"a rule is broken at {exact.y.tolist()}"
    if not torch.allclose(exact.distance[some], milp.distance[some], atol=1e-7, rtol=1e-8):
        return f"distances {exact.distance.tolist()} and {milp.distance.tolist()}"
    return ""
