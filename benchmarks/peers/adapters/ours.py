"""gdpnet itself, through the torch layer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyomo.environ as pyo
import torch
from pyomo.gdp import Disjunction

import gdpnet

from ..cases import rules_of
from ..problem import Array, Problem, Samples
from ._base import Peer


class Layer(Peer):
    """`gdpnet.ProjectionLayer`, one thread."""

    differentiable = True
    options: Mapping[str, Any]

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        warnings.simplefilter("ignore", gdpnet.errors.ZeroGradientWarning)
        rules = rules_of(problem.source)
        self.inner = gdpnet.ProjectionLayer(
            rules, norm=problem.norm, weights=problem.weights, threads=1, **self.options
        )
        self._inputs: list[tuple[Samples, Array, torch.Tensor]] = []
        first = np.zeros(1, dtype=int)
        self.layer(torch.from_numpy(problem.random.yhat[:1]), problem.random, first)

    def layer(self, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        for known, rows, x in self._inputs:
            if known is samples and rows is index:
                return self.inner(yhat, x)
        x = torch.from_numpy(np.ascontiguousarray(samples.x[index]))
        self._inputs = [*self._inputs[-3:], (samples, index, x)]
        return self.inner(yhat, x)


class Vertex(Layer):
    """DNF, exact Jacobian."""

    options = MappingProxyType({"gradient": "vertex"})


class Quadratic(Layer):
    """DNF, gradient of the regularised QP."""

    options = MappingProxyType({"gradient": gdpnet.QP(1e-2)})


class QuadraticPoint(Layer):
    """The regularised QP's own point and gradient: what peers' QPs are compared with."""

    options = MappingProxyType({"gradient": gdpnet.QP(1e-2), "forward": "qp"})


class Conjunctive(Layer):
    """CNF, exact Jacobian of the relaxation."""

    options = MappingProxyType({"relaxation": "cnf", "gradient": "vertex"})


def _import_late() -> None:
    """Use everything once: what gdpnet imports when it needs it is no part of a cell."""
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] + m.y[1] >= 16]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    for kind in (Vertex, Quadratic, QuadraticPoint, Conjunctive):
        layer = gdpnet.ProjectionLayer(rules, threads=1, **kind.options)
        layer(torch.tensor([[4.0, 5.0]], requires_grad=True)).sum().backward()


_import_late()
