"""The rows of a rule model as tensors, evaluated for a batch of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from gdpnet.errors import RuleError
from gdpnet.ir.atoms import Evaluator, Tree
from gdpnet.ir.compressed import Coefficients, Compressed
from gdpnet.ir.curves import Curves
from gdpnet.ir.data import Role, Row
from gdpnet.ir.linear import Coefficient


@dataclass(frozen=True)
class RowValues:
    """Rows for a batch; coefficients that do not depend on x are held once.

    Attributes:
        shared: coefficients, `rows x n`; of rows listed in `varying` their constant part only.
        varying: indices of the rows whose coefficients depend on x, `k`.
        coefficients: coefficients of those rows, `batch x k x n`.
        bound: right sides, `batch x rows` (an expanded view where nothing depends on x).
        equality: which rows are equalities, `rows`.
        curves: what stands in rows that are not linear; None where all are.
        argument: which rows are arguments of curves, `rows`; None where all are linear.
        least: what the size of a row counts at least; 0 for its own, whatever it is.
    """

    shared: Coefficients
    varying: torch.Tensor
    coefficients: torch.Tensor
    bound: torch.Tensor
    equality: torch.Tensor
    curves: Curves | None = None
    argument: torch.Tensor | None = None
    least: float = 1.0

    def scale(self) -> torch.Tensor:
        """`max(least, |b|, max|a|)` of each row, `batch x rows`: what `tol` is relative to."""
        largest = self.shared.largest(self.bound.device).clamp(min=self.least)
        scale = torch.maximum(self.bound.abs(), largest)
        if len(self.varying):
            rows = self.coefficients.abs().amax(2).clamp(min=self.least)
            exact = torch.maximum(self.bound[:, self.varying].abs(), rows)
            scale = scale.index_copy(1, self.varying, exact)
        return scale if self.least > 0.0 else torch.where(scale > 0.0, scale, 1.0)

    def activity(self, z: torch.Tensor) -> torch.Tensor:
        """The left side of each row: `a z`, and its curves.

        Args:
            z: values of the columns, `batch x n`.

        Returns:
            `batch x rows`.
        """
        activity = self.shared.times(z)
        if len(self.varying):
            exact = (self.coefficients @ z.unsqueeze(2)).squeeze(2)
            activity = activity.index_copy(1, self.varying, exact)
        if self.curves is not None:
            activity = activity + self.curves.added(activity - self.bound)
        return activity

    def excess(self, z: torch.Tensor) -> torch.Tensor:
        """Left minus right side of each row, `batch x rows`, at columns `batch x n`."""
        return self.activity(z) - self.bound

    def residual(self, z: torch.Tensor) -> torch.Tensor:
        """Scaled violation of each row, 0 where it holds and for arguments of curves.

        Args:
            z: values of the columns, `batch x n`.

        Returns:
            `batch x rows`.
        """
        excess = self.excess(z)
        excess = torch.where(self.equality, excess.abs(), excess.clamp(min=0.0))
        if self.argument is not None:
            excess = excess.masked_fill(self.argument, 0.0)
        return excess / self.scale()

    def by_own_size(self) -> RowValues:
        """The same rows, violated relative to `max(|b|, max|a|)`: small ones count like others."""
        return replace(self, least=0.0)

    def unusable(self) -> torch.Tensor:
        """Samples with a coefficient that is not a finite number, bool `batch`."""
        bad = ~self.bound.isfinite().all(1)
        if len(self.varying):
            bad = bad | ~self.coefficients.flatten(1).isfinite().all(1)
        return bad


# The coefficients are held as a dense table: so many make 1 GB.
_MOST_COEFFICIENTS = 2**27


def refuse_huge(rows: int, columns: int, what: str) -> None:
    """Raise where the dense table of the rows would not fit into memory, before it is made."""
    if rows * columns > _MOST_COEFFICIENTS:
        size = rows * columns * 8 / 1e9
        raise RuleError(
            f"{what}: {rows} rows and {columns} columns make a table of {size:.1f} GB; gdpnet "
            f"holds up to {_MOST_COEFFICIENTS * 8 / 1e9:.1f} GB. Leave out what no rule needs, or "
            "split the model into parts that share no Var."
        )


class RowTable:
    """`data = constant + M psi(x)`: constants and the sparse map of the atoms psi.

    Args:
        rows: rows of the model.
        columns: number of columns of z.
    """

    def __init__(self, rows: Sequence[Row], columns: int) -> None:
        refuse_huge(len(rows), columns, "model")
        self.columns = columns
        self.rows = len(rows)
        self.atoms: list[Tree] = []
        known: dict[Tree, int] = {}
        start, at, number = [0], [], []
        bound = torch.zeros(len(rows), dtype=torch.float64)
        left: list[tuple[int, int, int, float]] = []
        right: list[tuple[int, int, float]] = []

        def atoms_of(coefficient: Coefficient) -> list[tuple[int, float]]:
            for atom in coefficient.atoms:
                if atom not in known:
                    known[atom] = len(self.atoms)
                    self.atoms.append(atom)
            return [(known[atom], c) for atom, c in coefficient.atoms.items()]

        for i, row in enumerate(rows):
            for column, coefficient in row.terms:
                at.append(column)
                number.append(coefficient.number)
                left += [(i, column, atom, c) for atom, c in atoms_of(coefficient)]
            start.append(len(at))
            bound[i] = row.bound.number
            right += [(i, atom, c) for atom, c in atoms_of(row.bound)]

        varying = sorted({i for i, *_ in left})
        place = {row: k for k, row in enumerate(varying)}
        integers = torch.int64
        entries = np.array(at, dtype=np.int64), np.array(number, dtype=np.float64)
        self.coefficients = Coefficients(Compressed(np.array(start), *entries, columns))
        self._tensors = {
            "bound": bound,
            "equality": torch.tensor([row.equality for row in rows], dtype=torch.bool),
            "varying": torch.tensor(varying, dtype=integers),
            "left_to": torch.tensor([place[i] * columns + j for i, j, *_ in left], dtype=integers),
            "left_atom": torch.tensor([a for _, _, a, _ in left], dtype=integers),
            "left_by": torch.tensor([c for *_, c in left], dtype=torch.float64),
            "right_to": torch.tensor([i for i, _, _ in right], dtype=integers),
            "right_atom": torch.tensor([a for _, a, _ in right], dtype=integers),
            "right_by": torch.tensor([c for *_, c in right], dtype=torch.float64),
        }
        self._on: dict[torch.device, dict[str, torch.Tensor]] = {}
        self._curves = Curves(rows) if any(row.curves for row in rows) else None
        if self._curves is not None:
            argument = [row.role is Role.ARGUMENT for row in rows]
            self._tensors["argument"] = torch.tensor(argument, dtype=torch.bool)

    @property
    def shared(self) -> torch.Tensor:
        """Constant part of the coefficients, `rows x columns`; made anew where it is large."""
        return self.coefficients.dense

    @property
    def entries(self) -> Compressed:
        """The same by nonzeros, and places where one may come to stand."""
        return self.coefficients.rows

    @property
    def equality(self) -> torch.Tensor:
        """Which rows are equalities, bool `rows`."""
        return self._tensors["equality"]

    @property
    def varying(self) -> torch.Tensor:
        """Rows whose coefficients depend on x."""
        return self._tensors["varying"]

    def _at(self, device: torch.device) -> dict[str, torch.Tensor]:
        if device.type == "cpu":
            return self._tensors
        if device not in self._on:
            self._on[device] = {k: v.to(device) for k, v in self._tensors.items()}
        return self._on[device]

    def evaluate(self, x: torch.Tensor) -> RowValues:
        """Rows for a batch of inputs, differentiable in x.

        Args:
            x: inputs, `batch x p`, float64.
        """
        at = self._at(x.device)
        batch = len(x)
        bound = at["bound"].expand(batch, self.rows)
        coefficients = x.new_empty(batch, 0, self.columns)
        if self.atoms:
            evaluate = Evaluator(x)
            psi = torch.stack([evaluate(atom) for atom in self.atoms], 1)
            if len(at["right_to"]):
                moving = psi[:, at["right_atom"]] * at["right_by"]
                bound = bound.index_add(1, at["right_to"], moving)
            if len(at["left_to"]):
                constant = self.coefficients.of_rows(at["varying"]).flatten().expand(batch, -1)
                moving = psi[:, at["left_atom"]] * at["left_by"]
                coefficients = constant.index_add(1, at["left_to"], moving)
                coefficients = coefficients.view(batch, len(at["varying"]), self.columns)
        found = self.coefficients, at["varying"], coefficients, bound, at["equality"]
        if self._curves is None:
            return RowValues(*found)
        return RowValues(*found, curves=self._curves, argument=at["argument"])
