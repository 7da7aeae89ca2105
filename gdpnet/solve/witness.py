"""Samples that are decided without a program of their own, where rules have auxiliaries.

The exact engine projects outputs that satisfy the rules onto themselves, and finds auxiliaries on
the way: with these every column is known, and rows and logic tell whether everything holds. And
where no auxiliary within its bounds mends what the outputs break, nothing has to be solved either.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from gdpnet import core
from gdpnet.ir.batch import Batch
from gdpnet.ir.rules import Rules
from gdpnet.ir.table import RowValues

_NODES = 1_000  # of the search for auxiliaries; outputs that hold need few


def over_all_columns(rules: Rules) -> Rules:
    """The same rules with auxiliaries among the outputs."""
    return rules.cache[_over_all_columns]


def _over_all_columns(rules: Rules) -> Rules:
    return Rules(replace(rules.data, outputs=len(rules.data.columns)))


def columns_at(rules: Rules, batch: Batch) -> Batch | None:
    """The batch with auxiliaries that may go with its outputs; None without the compiled core.

    Args:
        rules: the rules.
        batch: inputs and outputs, flat.
    """
    if core.unavailable("solver='exact'", "") is not None:
        return None
    from gdpnet.solve.base import Request, Settings
    from gdpnet.solve.exact.backend import Exact

    x, y = batch.x.detach().cpu().numpy(), batch.y.detach().cpu().numpy()
    settings = Settings(np.ones(y.shape[1]))
    request = Request(rules, x, y, np.zeros(len(y), dtype=bool), settings)
    return Batch.of_arrays(x, filled(rules, Exact(node_limit=_NODES).search(request).solved.z, y))


def filled(rules: Rules, known: np.ndarray, y: np.ndarray) -> np.ndarray:
    """All columns: the outputs, and beside them what is known, or else what is nearest to 0.

    Args:
        rules: the rules.
        known: columns that a solver found, `batch x n`, NaN where it found none.
        y: outputs, `batch x d`.
    """
    rest = [min(max(0.0, column.lower), column.upper) for column in rules.data.columns]
    z = np.where(np.isfinite(known), known, rest)
    z[:, : y.shape[1]] = y
    return z


def auxiliary_rows(rules: Rules) -> frozenset[int]:
    """The rows that have an auxiliary."""
    return rules.cache[_auxiliary_rows]


def _auxiliary_rows(rules: Rules) -> frozenset[int]:
    data = rules.data
    rows = range(len(data.rows))
    return frozenset(i for i in rows if any(c >= data.outputs for c in data.columns_in(i)))


def least_residual(
    rules: Rules, rows: RowValues, residual: torch.Tensor, y: torch.Tensor, tol: float
) -> torch.Tensor:
    """Scaled violation of each row that auxiliaries do not undercut, `batch x rows`.

    Auxiliaries are within their bounds, and where rows that always hold, within `tol`, leave them;
    of these rows those count that have a single one, as what is named by an equality has.

    Args:
        rules: the rules.
        rows: at the inputs of the batch.
        residual: of the rows with auxiliaries at 0, `batch x rows`.
        y: outputs, `batch x d`.
        tol: relative to the size of a row.
    """
    d, data = rules.data.outputs, rules.data
    ends = [[column.lower, column.upper] for column in data.columns[d:]]
    lower, upper = torch.tensor(ends, dtype=torch.float64, device=y.device).T
    lower, upper = lower.expand(len(y), -1).clone(), upper.expand(len(y), -1).clone()
    excess, scale = rows.excess(torch.cat([y, torch.zeros_like(lower)], 1)), rows.scale()
    place = {row: k for k, row in enumerate(rows.varying.tolist())}
    for i in data.global_rows:
        own = [c for c in data.columns_in(i) if c >= d]
        if len(own) != 1 or data.rows[i].curves:
            continue
        c = own[0]
        a = rows.coefficients[:, place[i], c] if i in place else rows.shared.dense[i, c].to(y)
        middle, half = -excess[:, i] / a, tol * scale[:, i] / a.abs()
        above, below = (a > 0.0) | rows.equality[i], (a < 0.0) | rows.equality[i]
        k = c - d
        upper[:, k] = torch.where(
            above & (a != 0.0), upper[:, k].minimum(middle + half), upper[:, k]
        )
        lower[:, k] = torch.where(
            below & (a != 0.0), lower[:, k].maximum(middle - half), lower[:, k]
        )
    low, high = _over(rows, d, lower, upper), _over(rows, d, upper, lower)
    apart = (excess + low).clamp(min=0.0)
    apart = torch.where(rows.equality, torch.maximum(apart, -(excess + high)), apart)
    found = apart / scale
    own_rows = auxiliary_rows(rules)
    floating = [i in own_rows for i in range(len(data.rows))]
    bent = [bool(row.curves) for row in data.rows]
    auxiliary, curved = (torch.tensor(each, device=y.device) for each in (floating, bent))
    return torch.where(auxiliary, torch.where(curved, 0.0, found), residual)


def _over(rows: RowValues, d: int, least: torch.Tensor, most: torch.Tensor) -> torch.Tensor:
    """The least of what auxiliaries add to each row; the most, with the ends exchanged."""

    def of(coefficients: torch.Tensor) -> torch.Tensor:
        parts = []
        for part, end in (
            (coefficients.clamp(min=0.0), least),
            (coefficients.clamp(max=0.0), most),
        ):
            known = torch.where(end.isfinite(), end, 0.0)[:, :, None]
            # What is not bounded adds infinitely much to every row it stands in.
            open_end = torch.where(end.isfinite(), 0.0, end)[:, :, None].sign()
            unknown = part.sign() @ open_end
            added = part @ known + torch.where(unknown != 0.0, unknown * torch.inf, 0.0)
            parts.append(added.squeeze(2))
        return parts[0] + parts[1]

    added = of(rows.shared.dense.to(least)[:, d:])
    if not len(rows.varying):
        return added
    return added.index_copy(1, rows.varying, of(rows.coefficients[:, :, d:]))
