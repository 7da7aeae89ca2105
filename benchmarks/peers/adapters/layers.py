"""Layers for quadratic programs: qpth, proxsuite's QPLayer, OSQP's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from ..problem import Array, Part, Samples
from ._base import Batched, dense, refuse_dense
from .interior import Stacked

for _name in ("qpth.qp", "proxsuite.torch.qplayer", "osqp.nn.torch"):
    with suppress(ImportError):
        import_module(_name)  # now, so that no measured call pays for it


class _Dense(Batched):
    """Programs as dense matrices."""

    def make(self, parts: tuple[Part, ...]) -> Any:
        program = self.program(parts)
        refuse_dense(program)
        return program, torch.from_numpy(program.output.toarray().T)

    def solve(self, made: Any, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        program, output = made
        theta = self.parameters(yhat, samples, index)
        n, count = len(yhat), len(program.weights)
        less, equal = dense(program.less, theta), dense(program.equal, theta)
        signs = torch.zeros(n, count, program.size, dtype=torch.float64)
        signs[:, torch.arange(count), torch.from_numpy(program.weights)] = -1.0
        G = torch.cat([less, signs], 1)
        Q = self.eps * torch.eye(program.size, dtype=torch.float64).expand(n, -1, -1)
        p = torch.from_numpy(program.cost).expand(n, -1)
        h = torch.zeros(n, G.shape[1], dtype=torch.float64)
        b = torch.from_numpy(program.equal.right).expand(n, -1)
        return self.start(yhat) + self.call(Q, p, G, h, equal, b) @ output

    def call(self, Q: Any, p: Any, G: Any, h: Any, A: Any, b: Any) -> torch.Tensor:
        raise NotImplementedError


class Qpth(_Dense):
    """qpth's batched interior-point method, as it comes."""

    options: Mapping[str, Any] = MappingProxyType({})

    def call(self, Q: Any, p: Any, G: Any, h: Any, A: Any, b: Any) -> torch.Tensor:
        from qpth.qp import QPFunction

        return QPFunction(verbose=-1, check_Q_spd=False, **self.options)(Q, p, G, h, A, b)


class TunedQpth(Qpth):
    """More steps, and more of them without progress before it gives up."""

    options = MappingProxyType({"maxIter": 200, "notImprovedLim": 20})


class QPLayer(_Dense):
    """proxsuite's augmented Lagrangian, as it comes."""

    options: Mapping[str, Any] = MappingProxyType({})

    def call(self, Q: Any, p: Any, G: Any, h: Any, A: Any, b: Any) -> torch.Tensor:
        from proxsuite.torch.qplayer import QPFunction

        below = torch.full_like(h, -1e20)
        made = QPFunction(structural_feasibility=True, **self.options)
        return made(Q, p, A, b, G, below, h)[0]


class TunedQPLayer(QPLayer):
    """More steps."""

    options = MappingProxyType({"maxIter": 100_000})


class OSQP(Batched):
    """OSQP's torch layer, sparse, as it comes."""

    def make(self, parts: tuple[Part, ...]) -> Any:
        from osqp.nn import torch as osqp

        program = self.program(parts)
        count, size = len(program.weights), program.size
        signs = csr_array((np.ones(count), (np.arange(count), program.weights)), (count, size))
        stacked = Stacked([program.less.matrix, program.equal.matrix, signs])
        matrix = stacked.matrix.tocoo()
        layer = osqp.OSQP(
            (np.arange(size), np.arange(size)),
            (size, size),
            (matrix.row, matrix.col),
            matrix.shape,
        )
        place = np.concatenate(
            [program.less.place, program.equal.place + len(program.less.matrix.data)]
        )
        sources = [program.less.source, program.equal.source]
        entries = [program.less.matrix.data, program.equal.matrix.data, np.ones(count)]
        tensors = {
            "fixed": np.concatenate(entries),
            "place": place,
            "source": np.concatenate(sources),
            "sign": np.concatenate([program.less.sign, program.equal.sign]),
            "order": stacked.order,
            "low": np.concatenate(
                [np.full(len(program.less.right), -np.inf), program.equal.right, np.zeros(count)]
            ),
            "high": np.concatenate(
                [program.less.right, program.equal.right, np.full(count, np.inf)]
            ),
            "cost": program.cost,
            "output": program.output.toarray().T,
        }
        return layer, {name: torch.from_numpy(value) for name, value in tensors.items()}

    def solve(self, made: Any, yhat: torch.Tensor, samples: Samples, index: Array) -> torch.Tensor:
        layer, t = made
        theta = self.parameters(yhat, samples, index)
        n = len(yhat)
        moving = t["sign"] * theta[:, t["source"]]
        entries = t["fixed"].expand(n, -1).index_put(
            (torch.arange(n)[:, None], t["place"]), moving
        )  # fmt: skip
        curvature = torch.full((n, len(t["cost"])), self.eps, dtype=torch.float64)
        v = layer(
            curvature,
            t["cost"].expand(n, -1),
            entries[:, t["order"]],
            t["low"].expand(n, -1),
            t["high"].expand(n, -1),
        )
        return self.start(yhat) + v @ t["output"]


class TunedOSQP(OSQP):
    """As many steps as it takes: the layer's own option for them does not reach its solver."""

    def make(self, parts: tuple[Part, ...]) -> Any:
        import osqp
        from osqp.nn import torch as inner

        class Patient(osqp.OSQP):
            def setup(self, *given: Any, **settings: Any) -> Any:
                return super().setup(*given, **settings, max_iter=1_000_000)

        inner.osqp = SimpleNamespace(OSQP=Patient, SolverStatus=osqp.SolverStatus)
        return super().make(parts)
