"""How good rules are: how often they apply, contradict each other, and are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gdpnet.bio._extra import check_anndata, name_unknown, package
from gdpnet.bio._markers import MarkerRules, check_markers
from gdpnet.errors import InputError
from gdpnet.projection import Status, project


@dataclass(frozen=True)
class MarkerStatistics:
    """What rules say about cells whose class is known.

    Attributes:
        rules: DataFrame with a row for each rule: `active`, the share of cells it applies to, and
            `precision`, how many of those have one of its classes (NaN where it never applies).
        cells: number of cells.
        active_counts: number of cells with 0, 1, 2, ... active rules.
        contradictory: number of cells whose active rules contradict each other.
        truth_satisfies: share of cells whose true class, with probability 1, satisfies all rules
            that apply.
    """

    rules: Any
    cells: int
    active_counts: tuple[int, ...]
    contradictory: int
    truth_satisfies: float

    @property
    def no_active(self) -> float:
        """Share of cells without an active rule."""
        return self.active_counts[0] / self.cells

    @property
    def two_or_more(self) -> float:
        """Share of cells with several active rules."""
        return sum(self.active_counts[2:]) / self.cells

    def __repr__(self) -> str:
        return (
            f"MarkerStatistics of {self.cells} cells: {self.no_active:.1%} without an active rule, "
            f"{self.two_or_more:.1%} with several, {self.contradictory} contradictory; the true "
            f"class satisfies all rules in {self.truth_satisfies:.1%}\n{self.rules.round(3)}"
        )


def marker_statistics(adata: Any, markers: MarkerRules, labels: str) -> MarkerStatistics:
    """How often rules apply, contradict each other, and are right.

    Args:
        adata: the cells.
        markers: the rules.
        labels: column of `obs` with the true classes.

    Example:
        >>> import anndata, numpy as np, pandas as pd
        >>> from gdpnet.bio import marker_rules, marker_statistics
        >>> cells = pd.DataFrame({"type": ["B", "NK", "T"]}, index=["a", "b", "c"])
        >>> expression = np.array([[2.3, 0.0], [0.0, 1.9], [0.0, 1.2]])
        >>> genes = pd.DataFrame(index=["MS4A1", "NKG7"])
        >>> adata = anndata.AnnData(expression, obs=cells, var=genes)
        >>> markers = marker_rules({"B": "MS4A1", "NK": "NKG7"}, ["B", "NK", "T"], tau=1)
        >>> marker_statistics(adata, markers, labels="type").rules["precision"].tolist()
        [1.0, 0.5]
    """
    check_anndata(adata, "marker_statistics")
    check_markers(markers, "marker_statistics")
    pandas = package("pandas", "marker_statistics")
    truth = _truth(adata, markers.classes, labels)
    x = markers.expression(adata)
    active = markers.rules.active(x).numpy()
    right = np.array(
        [[name in marker.classes for marker in markers.markers] for name in markers.classes]
    )[truth]
    applies = active.sum(0)
    with np.errstate(invalid="ignore"):
        precision = (active & right).sum(0) / applies
    # Whether rules contradict each other is a matter of x alone.
    certain = np.eye(len(markers.classes))[truth]
    status = project(markers.rules, certain, x).status.numpy()
    return MarkerStatistics(
        rules=pandas.DataFrame(
            {"active": active.mean(0), "precision": precision},
            index=[marker.name for marker in markers.markers],
        ),
        cells=len(x),
        active_counts=tuple(np.bincount(active.sum(1)).tolist()),
        contradictory=int((status == Status.CONFLICT).sum()),
        truth_satisfies=float(markers.rules.satisfied(certain, x).double().mean()),
    )


def _truth(adata: Any, classes: tuple[str, ...], labels: str) -> np.ndarray:
    if labels not in adata.obs:
        raise InputError(
            f"labels: obs has no column {labels!r}; it has "
            f"{', '.join(map(repr, adata.obs.columns)) or 'none'}."
        )
    found = adata.obs[labels]
    known = {name: k for k, name in enumerate(classes)}
    unknown = [str(name) for name in found.unique() if name not in known]
    if unknown:
        raise InputError(
            f"labels: obs[{labels!r}] has {name_unknown(unknown, classes)}, which the rules do not "
            f"know. Their classes are {', '.join(classes)}."
        )
    return np.array([known[name] for name in found])
