"""A projection problem as plain arrays: all that a peer is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Part:
    """Disjunctions over some of the outputs, which hang together with no others.

    Attributes:
        columns: the outputs.
        rows: global rows, part of every product.
        blocks: disjunctions; each is a list of products, and a product the rows that it adds.
    """

    columns: tuple[int, ...]
    rows: tuple[int, ...]
    blocks: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def products(self) -> int:
        """Number of products of all its disjunctions."""
        return sum(len(block) for block in self.blocks)


@dataclass(frozen=True)
class Samples:
    """Predictions and what the rules are at their inputs.

    Attributes:
        x: inputs, (n, p).
        yhat: predictions, (n, d).
        bound: right sides of all rows, (n, rows).
        active: which rules apply, (n, rules).
        pattern: number of the set of active rules, (n,).
    """

    x: Array
    yhat: Array
    bound: Array
    active: Array
    pattern: Array

    def __len__(self) -> int:
        return len(self.yhat)


@dataclass(frozen=True)
class Problem:
    """Rules `matrix y <= bound` (or `==`) and predictions to be projected onto them.

    Attributes:
        name: the case.
        source: name and options of the model, for those who can read it.
        matrix: coefficients of all rows, (rows, d).
        equality: which rows are equalities, (rows,).
        moving: whose right side depends on the input, (rows,).
        lower: lower bounds of the outputs, (d,).
        upper: upper bounds, (d,).
        always: global rows.
        rules: rows of each disjunct of each rule.
        forms: parts by form and pattern. "dnf": over the finest parts, empty products left out;
            "qp": the parts on which gdpnet defines its quadratic program; "full": all products;
            "cnf": one disjunction a rule. None where there are too many products to write down.
        norm: in which the nearest point is asked for, "l1" or "l2".
        weights: of the outputs in the distance, (d,); None where all are 1.
        random: random predictions.
        ties: predictions as near to one disjunct as to another; None where none were made.
    """

    name: str
    source: tuple[str, dict[str, Any]]
    matrix: Array
    equality: Array
    moving: Array
    lower: Array
    upper: Array
    always: tuple[int, ...]
    rules: tuple[tuple[tuple[int, ...], ...], ...]
    random: Samples
    ties: Samples | None = None
    forms: dict[str, list[tuple[Part, ...]] | None] = field(default_factory=dict)
    norm: str = "l1"
    weights: Array | None = None

    @property
    def outputs(self) -> int:
        """Number of outputs d."""
        return len(self.lower)

    def distance(self, y: Array, samples: Samples) -> Array:
        """How far points are from the predictions of as many samples, (n,)."""
        moved = np.abs(y - samples.yhat[: len(y)])
        if self.weights is not None:
            moved = moved * self.weights
        return np.linalg.norm(moved, ord=1 if self.norm == "l1" else 2, axis=1)

    def start(self, samples: Samples) -> Array:
        """Predictions within the bounds, (n, d)."""
        return np.clip(samples.yhat, self.lower, self.upper)
