"""Mean expression of genes, looked up in an AnnData without making all of it dense."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from gdpnet.bio._extra import check_anndata, name_unknown
from gdpnet.errors import InputError

# Of a file, so many numbers are read at a time.
_PIECE = 1 << 24

# log1p of counts per million stays below 14, log2 below 20; scaled data have negative numbers.
_LARGEST_LOGARITHM = 25.0


@dataclass(frozen=True)
class Source:
    """Where the expression of genes is looked up; for the fields see `marker_rules`."""

    use_raw: bool | None = None
    layer: str | None = None
    gene_symbols: str | None = None
    allow_counts: bool = False

    def __post_init__(self) -> None:
        if self.use_raw and self.layer is not None:
            raise InputError("use_raw, layer: .raw has no layers. Give one of the two.")

    def __str__(self) -> str:
        if self.layer is not None:
            return f"layer {self.layer!r}"
        return {None: ".raw, or X where there is none", True: ".raw", False: "X"}[self.use_raw]

    def of(self, adata: Any) -> tuple[Any, Any, str]:
        """The matrix, `cells x genes`, its table of genes, and what to call it."""
        if self.layer is not None:
            if self.layer not in adata.layers:
                raise InputError(
                    f"layer: this AnnData has no layer {self.layer!r}; it has "
                    f"{', '.join(map(repr, adata.layers)) or 'none'}."
                )
            return adata.layers[self.layer], adata.var, f"layer {self.layer!r}"
        if self.use_raw and adata.raw is None:
            raise InputError("use_raw: this AnnData has no .raw. Use use_raw=False to look in X.")
        if adata.raw is not None and self.use_raw is not False:
            return adata.raw.X, adata.raw.var, ".raw"
        if adata.X is None:
            raise InputError("This AnnData has no X. Name the layer that holds the expression.")
        return adata.X, adata.var, "X"


def mean_expression(adata: Any, genes: Sequence[Sequence[str]], source: Source) -> np.ndarray:
    """Means over groups of genes.

    Args:
        adata: an AnnData.
        genes: for each column of the result.
        source: where to look.

    Returns:
        `cells x groups`, float64.
    """
    check_anndata(adata, "MarkerRules.expression")
    matrix, table, called = source.of(adata)
    wanted = list(dict.fromkeys(gene for group in genes for gene in group))
    columns = np.array(_columns(wanted, table, called, adata, source))
    order = np.argsort(columns)  # what reads from files wants them ascending
    place = {wanted[k]: j for j, k in enumerate(order)}
    mean = np.zeros((len(wanted), len(genes)))
    for j, group in enumerate(genes):
        mean[[place[gene] for gene in group], j] = 1.0 / len(group)
    pieces = []
    check = _Logarithmic()
    for piece in _pieces(matrix, columns[order]):
        check.look(piece)
        pieces.append(piece @ mean)
    if not source.allow_counts:
        check.refuse_counts(called)
    found = np.concatenate(pieces) if pieces else np.zeros((0, len(genes)))
    bad = ~np.isfinite(found).all(1)
    if bad.any():
        rows = np.flatnonzero(bad)
        named = ", ".join(map(str, adata.obs_names[rows[:5]]))
        raise InputError(
            f"{called}: NaN or infinity in the markers' expression of {len(rows)} cells "
            f"({named}{', ...' if len(rows) > 5 else ''})."
        )
    return found


def _columns(
    wanted: Sequence[str], table: Any, called: str, adata: Any, source: Source
) -> list[int]:
    symbols = source.gene_symbols
    if symbols is not None and symbols not in table.columns:
        raise InputError(
            f"gene_symbols: the genes of {called} have no column {symbols!r}; they have "
            f"{', '.join(map(repr, table.columns)) or 'none'}."
        )
    names = table.index if symbols is None else table[symbols]
    places: dict[str, list[int]] = {gene: [] for gene in wanted}
    for j, name in enumerate(names):
        if name in places:
            places[name].append(j)
    missing = [gene for gene, found in places.items() if not found]
    if missing:
        raise InputError(
            f"genes: {called} has no {name_unknown(missing, [str(n) for n in names])}. "
            f"{_elsewhere(missing, called, adata)}"
        )
    twice = [gene for gene, found in places.items() if len(found) > 1]
    if twice:
        raise InputError(
            f"genes: {called} has several columns called {', '.join(map(repr, twice))}. Make names "
            "unique, for example with adata.var_names_make_unique()."
        )
    return [found[0] for found in places.values()]


def _elsewhere(missing: Sequence[str], called: str, adata: Any) -> str:
    other = {"X": adata.raw, ".raw": adata}.get(called)
    if other is not None and set(missing) <= set(other.var_names):
        hint = "use_raw=True" if called == "X" else "use_raw=False"
        return f"{'.raw' if called == 'X' else 'X'} has: use {hint}, and a tau on its scale."
    return "Check the names, or leave these genes out."


def _pieces(matrix: Any, columns: np.ndarray) -> Iterator[np.ndarray]:
    """These columns of a matrix, dense, some rows at a time where it lies in a file."""
    if isinstance(matrix, np.ndarray) or sparse.issparse(matrix):
        yield _dense(matrix[:, columns])
        return
    rows = max(1, _PIECE // max(1, matrix.shape[1]))
    for start in range(0, matrix.shape[0], rows):
        yield _dense(matrix[start : start + rows][:, columns])


def _dense(block: Any) -> np.ndarray:
    return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)


class _Logarithmic:
    """Whether numbers may be logarithms of expression, or their scaled form."""

    def __init__(self) -> None:
        self.least, self.largest, self.whole = 0.0, 0.0, True

    def look(self, piece: np.ndarray) -> None:
        if piece.size:
            self.least = min(self.least, float(np.nanmin(piece)))
            self.largest = max(self.largest, float(np.nanmax(piece)))
            self.whole = self.whole and bool((piece == np.floor(piece)).all())

    def refuse_counts(self, called: str) -> None:
        if self.least < 0.0 or self.largest == 0.0:
            return
        if self.whole:
            seen = "whole numbers, as counts are"
        elif self.largest > _LARGEST_LOGARITHM:
            seen = "too large for logarithms"
        else:
            return
        raise InputError(
            f"{called}: the markers' expression goes up to {self.largest:g} and its values are "
            f"{seen}. tau is meant for log-normalised values: use scanpy.pp.normalize_total and "
            "scanpy.pp.log1p first, name another layer, or allow_counts=True if that is meant."
        )
