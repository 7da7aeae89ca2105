"""The solution of the regularised program from its products."""

from __future__ import annotations

from typing import Any

from gdpnet.kernels._jit import jit, source_stamp
from gdpnet.kernels.qp._band import FAILED, PASSED


def _compile_mix(stamp: int) -> Any:
    @jit
    def mix(weights, yhat, eps, band, y, value, products):
        """Writes y of samples that were solved; adds to their values and numbers of products."""
        outputs, n = yhat.shape[1], band.point.shape[1]
        for s in range(stamp * 0, yhat.shape[0]):
            if band.status[s] == PASSED or band.status[s] == FAILED:
                continue
            for j in range(outputs):
                y[s, j] = yhat[s, j]
            for p in range(band.start[s], band.start[s + 1]):
                weight = band.weight[p]
                if weight <= 0.0:
                    continue
                products[s] += 1
                value[s] += 0.5 * eps * weight * weight
                for j in range(n):
                    z = weight * band.point[p, j]
                    if j < outputs:
                        y[s, j] += z
                        value[s] += weights[j] * abs(z) + eps * z * z
                    else:
                        value[s] += 0.5 * eps * z * z

    return mix


mix = _compile_mix(source_stamp("kernels/qp/_band", "kernels/qp/_forward"))
