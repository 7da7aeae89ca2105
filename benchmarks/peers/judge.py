"""What answers are worth: rules broken, distance, gradients. Nobody's status is trusted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

import gdpnet

from .cases import candidates, make, rules_of
from .cell import loss_gradient
from .problem import Array, Problem, Samples

TOLERANCES = {"1e-6": 1e-6, "1e-4": 1e-4}
EPS = 1e-2
TINY = 1e-6  # a prediction that is moved by less was not moved
NO_GRADIENT = 1e-4  # of a loss with gradient 1 to 7: interior points leave some 1e-5 where it is 0


class Judge:
    """Looks at answers to one problem.

    Args:
        problem: the problem.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.rules = problem, rules_of(problem.source)
        samples = problem.random
        x, yhat = torch.from_numpy(samples.x), torch.from_numpy(samples.yhat)
        found = gdpnet.project(self.rules, yhat, x, norm=problem.norm, weights=problem.weights)
        self.exact = problem.distance(found.y.numpy(), samples)
        self._reference = np.zeros((0, yhat.shape[1]))

    def look(self, found: dict[str, Any]) -> dict[str, Any]:
        """Columns of the table from what `cell.measure` found."""
        row: dict[str, Any] = {"samples": found["count"], "building_s": found["building"]}
        for what in ("forward", "both"):
            if what in found:
                low, middle, high = np.quantile(1e6 * found[what], [0.25, 0.5, 0.75])
                row |= {f"{what}_us": middle, f"{what}_q1": low, f"{what}_q3": high}
                row[f"{what}_repeats"] = len(found[what])
        row |= self._broken(self.problem.random, found["y"], "")
        if "tied" in found and self.problem.ties is not None:
            row |= self._broken(self.problem.ties, found["tied"], "ties_")
        distance = self.problem.distance(found["y"], self.problem.random)
        exact = self.exact[: len(distance)]
        gap = distance - exact
        row |= {"gap_median": np.median(gap), "gap_least": gap.min(), "gap_most": gap.max()}
        row |= {"distance_mean": distance.mean(), "exact_mean": exact.mean()}
        if "gradient" in found:
            row |= self._gradients(found["gradient"])
        before, most = found["memory"]
        return row | {
            "memory_mb": most,
            "memory_added_mb": most - before,
            "cores": found["cores"],
        }

    def _broken(self, samples: Samples, y: Array, prefix: str) -> dict[str, Any]:
        x, finite = torch.from_numpy(samples.x[: len(y)]), np.isfinite(y).all(1)
        points = torch.from_numpy(np.where(finite[:, None], y, 0.0))
        row: dict[str, Any] = {f"{prefix}answers": len(y)}
        for name, tolerance in TOLERANCES.items():
            good = self.rules.satisfied(points, x, tolerance).numpy() & finite
            row[f"{prefix}broken_{name}"] = float(1.0 - good.mean())
        row[f"{prefix}violation_most"] = float(self.rules.violation(points, x).amax())
        return row

    def _gradients(self, gradient: Array) -> dict[str, Any]:
        """Cosine with a gradient of gdpnet; 0 where not finite.

        That of the regularised QP at its own point, or for l2 that of the projection itself.

        Predictions that satisfy the rules pass gdpnet unchanged, so they are left out.
        """
        if len(self._reference) < len(gradient):
            self._reference = self._own_gradient(len(gradient))
        moved = self.exact[: len(gradient)] > TINY
        if not moved.any():
            return {}
        one, other = np.nan_to_num(gradient)[moved], self._reference[: len(gradient)][moved]
        lengths = np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1)
        tiny = [length < NO_GRADIENT for length in lengths]
        product = np.maximum(lengths[0] * lengths[1], 1e-300)
        cosine = np.where(tiny[0] | tiny[1], tiny[0] & tiny[1], (one * other).sum(1) / product)
        return {
            "cosine_median": np.median(cosine),
            "cosine_mean": cosine.mean(),
            "same_gradient": (cosine > 0.999).mean(),
        }

    def _own_gradient(self, count: int) -> Array:
        samples = self.problem.random
        options: dict[str, Any] = {"gradient": "vertex"}
        if self.problem.norm == "l1" and self.problem.weights is None:
            options = {"gradient": gdpnet.QP(EPS), "forward": "qp"}
        layer = gdpnet.ProjectionLayer(
            self.rules, norm=self.problem.norm, weights=self.problem.weights, **options
        )
        leaf = torch.from_numpy(samples.yhat[:count].copy()).requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = layer(leaf, torch.from_numpy(samples.x[:count]))
            y.backward(loss_gradient(y.shape[1]).expand(len(y), -1))
        assert leaf.grad is not None
        return leaf.grad.numpy()


def broken_of_many(count: int = 100_000) -> dict[str, int]:
    """How many of so many projections by gdpnet break a rule, a fifth of them ties.

    Returns:
        `projections`, `ties`, `contradictory` (left out), and `broken` at 1e-6.
    """
    told = {"projections": 0, "ties": 0, "contradictory": 0, "broken": 0}
    for number, name in enumerate(("cooling", "pbmc", "stress 4", "stress 10")):
        size = count // 20
        problem = make(name, size, seed=100 + number, bare=True)
        rules, samples = rules_of(problem.source), problem.random
        tied = candidates(
            rules, samples.active, samples.bound, samples.x, np.random.default_rng(number)
        )
        layer = gdpnet.ProjectionLayer(rules)
        rng = np.random.default_rng([7, number])
        for kind in range(5):
            if kind == 0:
                yhat = tied
                told["ties"] += size
            elif name == "pbmc":
                logits = 2.0 * rng.normal(size=tied.shape)
                yhat = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
            else:
                yhat = rng.uniform(-0.1, 1.1, tied.shape)
            x = torch.from_numpy(np.ascontiguousarray(samples.x))
            with torch.no_grad():
                y, info = layer(torch.from_numpy(yhat), x, return_info=True)
            conflict = info.status == int(gdpnet.Status.CONFLICT)
            told["projections"] += size
            told["contradictory"] += int(conflict.sum())
            told["broken"] += int((~rules.satisfied(y, x, 1e-6) & ~conflict).sum())
    return told
