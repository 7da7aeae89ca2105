"""Which rules moved the prediction of a cell, as a table to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from gdpnet.bio._cells import most_probable, predictions
from gdpnet.bio._extra import check_anndata, name_unknown, package
from gdpnet.bio._markers import MarkerRules, check_markers
from gdpnet.errors import InputError
from gdpnet.ir.tolerances import TOLERANCES
from gdpnet.projection import Status, project


def explain_cells(
    adata: Any,
    markers: MarkerRules,
    proba: Any,
    cells: Sequence[Any],
    *,
    norm: str = "l1",
    **keywords: Any,
) -> Any:
    """What the rules did to the prediction of a few cells.

    Args:
        adata: the cells.
        markers: the rules.
        proba: predicted probabilities, as in `apply_rules`.
        cells: names of cells, or their numbers.
        norm: of the distance, as in `apply_rules`.
        **keywords: of `gdpnet.project`.

    Returns:
        A DataFrame with a row for each rule that applies to a cell, and one row for a cell without
        any: `cell`, `status`, `predicted` and `result` (the most probable class and its
        probability), `rule`, `expression` (of its genes, against its threshold), `asks_for`,
        `prediction` (whether it holds the rule, or by how much it breaks it) and `effect`: the
        class that was raised for the rule, the price at which it was broken, that it was dropped,
        or the rules that it contradicts.

    Example:
        >>> import anndata, numpy as np, pandas as pd
        >>> from gdpnet.bio import explain_cells, marker_rules
        >>> cells, genes = pd.DataFrame(index=["a", "b"]), pd.DataFrame(index=["MS4A1", "NKG7"])
        >>> adata = anndata.AnnData(np.array([[2.3, 0.0], [0.0, 1.9]]), obs=cells, var=genes)
        >>> markers = marker_rules({"B": "MS4A1", "NK": "NKG7"}, ["B", "NK", "T"], tau=1, rho=0.6)
        >>> told = explain_cells(adata, markers, [[0.3, 0.0, 0.7], [0.1, 0.8, 0.1]], ["a"])
        >>> told.loc[0, ["predicted", "result", "prediction", "effect"]].tolist()
        ['T 0.70', 'B 0.60', 'breaks it by 0.3', 'B 0.30 -> 0.60']
    """
    check_anndata(adata, "explain_cells")
    check_markers(markers, "explain_cells")
    pandas = package("pandas", "explain_cells")
    rows = _rows(adata, cells)
    predicted = predictions(adata, markers.classes, proba)[rows]
    x = markers.expression(adata[rows])
    p = project(markers.rules, predicted, x, norm=norm, **keywords)
    y, disjunct, bought = p.y.numpy(), p.disjunct.numpy(), p.broken.numpy()
    dropped = p.info.dropped or [()] * len(rows)
    active = markers.rules.active(x).numpy()
    violation = markers.rules.violation(predicted, x).numpy()
    before, after = most_probable(predicted, predicted), most_probable(y, predicted)

    told = []
    for i, row in enumerate(rows):
        status = Status(int(p.status[i]))
        cell = {
            "cell": adata.obs_names[row],
            "status": status.name,
            "predicted": f"{markers.classes[before[i]]} {predicted[i, before[i]]:.2f}",
            "result": f"{markers.classes[after[i]]} {y[i, after[i]]:.2f}",
        }
        left_out = _markers_of(markers, dropped[i])
        contradictory = status is Status.CONFLICT and not left_out
        against = _contradicting(markers, x[i]) if contradictory else []
        if not active[i].any():
            told.append({**cell, "rule": "", "effect": "no rule applies"})
        for r in np.flatnonzero(active[i]):
            marker = markers.markers[r]
            broken = violation[i, r] > TOLERANCES.satisfied
            others = [name for name in against if name != marker.name]
            if marker.name in left_out:
                effect = "dropped"
            elif bought[i, r]:
                effect = f"broken for {marker.price:g}"
            elif marker.name in against:
                effect = f"contradicts {', '.join(others)}"
            elif not broken or disjunct[i, r] < 0:
                effect = "none"
            else:
                chosen = marker.classes[disjunct[i, r]]
                k = markers.classes.index(chosen)
                effect = f"{chosen} {predicted[i, k]:.2f} -> {y[i, k]:.2f}"
            told.append(
                {
                    **cell,
                    "rule": marker.name,
                    "expression": f"{x[i, r]:.2f} >= {marker.tau:g}",
                    "asks_for": marker.consequence,
                    "prediction": f"breaks it by {violation[i, r]:.2g}" if broken else "holds it",
                    "effect": effect,
                }
            )
    columns = ["cell", "status", "predicted", "result", "rule", "expression", "asks_for"]
    return pandas.DataFrame(told, columns=[*columns, "prediction", "effect"]).fillna("")


def _rows(adata: Any, cells: Sequence[Any]) -> list[int]:
    if isinstance(cells, str):
        cells = [cells]
    names = [str(cell) for cell in cells if isinstance(cell, str)]
    unknown = [name for name in names if name not in adata.obs_names]
    if unknown:
        raise InputError(f"cells: no cell is called {name_unknown(unknown, adata.obs_names)}.")
    twice = [name for name in names if (adata.obs_names == name).sum() > 1]
    if twice:
        raise InputError(
            f"cells: several cells are called {twice[0]!r}. Give their numbers, or make names "
            "unique with adata.obs_names_make_unique()."
        )
    other = [cell for cell in cells if not isinstance(cell, str | Integral)]
    if other:
        raise InputError(f"cells: expected names or whole numbers, got {other[0]!r}.")
    rows = [adata.obs_names.get_loc(c) if isinstance(c, str) else int(c) for c in cells]
    outside = [row for row in rows if not -adata.n_obs <= row < adata.n_obs]
    if outside:
        raise InputError(f"cells: there are {adata.n_obs} cells, got the number {outside[0]}.")
    return [row % adata.n_obs for row in rows]


def _contradicting(markers: MarkerRules, x: np.ndarray) -> list[str]:
    """Names of the rules of a minimal contradiction."""
    return _markers_of(markers, map(str, markers.rules.explain_conflict(x)))


def _markers_of(markers: MarkerRules, rules: Iterable[str]) -> list[str]:
    """Markers' own names of rules."""
    by_rule = dict(zip(markers.rules.names, markers.markers, strict=True))
    return [by_rule[name].name for name in rules if name in by_rule]
