"""Rules applied to the cells of an AnnData."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gdpnet.bio._extra import check_anndata, name_unknown, package
from gdpnet.bio._markers import MarkerRules, check_markers
from gdpnet.errors import InputError
from gdpnet.projection import Projection, Status, project

PROBA, LABEL, STATUS = "gdpnet_proba", "gdpnet_label", "gdpnet_status"

# Predicted probabilities sum to 1 up to this; what is farther off are no probabilities.
_SUM = 1e-3

# Probabilities this close are equally high.
_EQUAL = 1e-9


def apply_rules(
    adata: Any, markers: MarkerRules, proba: Any, *, norm: str = "l1", **keywords: Any
) -> Projection:
    """Move predicted class probabilities to the nearest that satisfy the rules.

    Writes three things into the AnnData, and changes nothing else:

    - `obsm["gdpnet_proba"]`: the probabilities, a DataFrame with a column for each class,
    - `obs["gdpnet_label"]`: the most probable class; of several the one predicted higher,
    - `obs["gdpnet_status"]`: name of the `gdpnet.Status`: SATISFIED, PROJECTED, or CONFLICT where
      the active rules contradict each other and the prediction was kept.

    A view becomes an object of its own, as whenever something is written into it.

    Args:
        adata: the cells.
        markers: the rules.
        proba: predicted probabilities, `cells x classes`: a key of `obsm`, an array or tensor with
            columns in the order of `markers.classes`, or a DataFrame with the classes as columns.
        norm: of the distance. With `"l1"` nearly every cell has many nearest probabilities, and
            one that changes few classes is taken; with `"l2"` there is one, and what a class gains
            is taken evenly from all others.
        **keywords: of `gdpnet.project`, such as `solver` and `on_conflict`.

    Returns:
        The projection, with distances and what was chosen for each rule.

    Example:
        >>> import anndata, numpy as np, pandas as pd
        >>> from gdpnet.bio import apply_rules, marker_rules
        >>> expression = np.array([[2.3, 0.0], [0.0, 1.9]], dtype=np.float32)
        >>> cells, genes = pd.DataFrame(index=["a", "b"]), pd.DataFrame(index=["MS4A1", "NKG7"])
        >>> adata = anndata.AnnData(expression, obs=cells, var=genes)
        >>> markers = marker_rules({"B": "MS4A1", "NK": "NKG7"}, ["B", "NK", "T"], tau=1, rho=0.6)
        >>> p = apply_rules(adata, markers, [[0.3, 0.0, 0.7], [0.1, 0.8, 0.1]])
        >>> adata.obs["gdpnet_label"].tolist(), adata.obs["gdpnet_status"].tolist()
        (['B', 'NK'], ['PROJECTED', 'SATISFIED'])
        >>> adata.obsm["gdpnet_proba"].loc["a"].tolist()
        [0.6, 0.0, 0.4]
    """
    check_anndata(adata, "apply_rules")
    check_markers(markers, "apply_rules")
    anndata, pandas = package("anndata", "apply_rules"), package("pandas", "apply_rules")
    if adata.is_view and adata.isbacked:
        raise InputError(
            "apply_rules: nothing can be written into a view of an AnnData in a file. Take it into "
            "memory first with adata.to_memory()."
        )
    predicted = predictions(adata, markers.classes, proba)
    p = project(markers.rules, predicted, markers.expression(adata), norm=norm, **keywords)
    y = p.y.numpy()
    index, classes = adata.obs_names, list(markers.classes)
    label = pandas.Categorical.from_codes(most_probable(y, predicted), categories=classes)
    status = pandas.Categorical.from_codes(
        p.status.numpy(), categories=[status.name for status in Status]
    )
    with warnings.catch_warnings():
        # That a view becomes an object of its own is what is wanted here.
        warnings.simplefilter("ignore", anndata.ImplicitModificationWarning)
        adata.obsm[PROBA] = pandas.DataFrame(y, index=index, columns=classes)
        adata.obs[LABEL] = label
        adata.obs[STATUS] = status.remove_unused_categories()
    return p


def most_probable(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The class of the highest probability; of equal ones the one predicted higher.

    Rules that ask for half of the probability often leave two classes with half each: the order of
    the classes should not decide then.

    Args:
        y: probabilities, `cells x classes`.
        predicted: those before the rules, `cells x classes`.

    Returns:
        Indices, `cells`.
    """
    highest = y >= y.max(1, keepdims=True) - _EQUAL
    return np.where(highest, predicted, -np.inf).argmax(1)


def predictions(adata: Any, classes: tuple[str, ...], proba: Any) -> np.ndarray:
    """Predicted probabilities, `cells x classes`, float64, in the order of cells and classes."""
    called = "proba"
    if isinstance(proba, str):
        if proba not in adata.obsm:
            raise InputError(
                f"proba: this AnnData has no obsm[{proba!r}]; it has "
                f"{', '.join(map(repr, adata.obsm)) or 'none'}."
            )
        called, proba = f"obsm[{proba!r}]", adata.obsm[proba]
    if hasattr(proba, "columns") and hasattr(proba, "reindex"):
        proba = _in_order(adata, classes, proba, called)
    if hasattr(proba, "detach"):
        proba = proba.detach().cpu()
    if hasattr(proba, "toarray"):
        proba = proba.toarray()
    try:
        array = np.asarray(proba, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{called}: expected numbers, got {type(proba).__name__}.") from None
    if array.shape != (adata.n_obs, len(classes)):
        raise InputError(
            f"{called}: expected probabilities of {adata.n_obs} cells x {len(classes)} classes "
            f"({', '.join(classes[:8])}), got shape {array.shape}."
        )
    for wrong, what in (
        (~np.isfinite(array).all(1), "NaN or infinity"),
        ((array < -_SUM).any(1), "negative numbers"),
        (np.abs(array.sum(1) - 1.0) > _SUM, "numbers that do not sum to 1"),
    ):
        if wrong.any():
            rows = np.flatnonzero(wrong)
            named = ", ".join(map(str, adata.obs_names[rows[:5]]))
            raise InputError(
                f"{called}: {what} in {len(rows)} of {len(array)} cells "
                f"({named}{', ...' if len(rows) > 5 else ''}). Expected probabilities of the "
                "classes; of logits take the softmax."
            )
    return array


def _in_order(adata: Any, classes: tuple[str, ...], frame: Any, called: str) -> Any:
    columns = [str(column) for column in frame.columns]
    missing = [name for name in classes if name not in columns]
    other = [name for name in columns if name not in classes]
    if missing or other:
        raise InputError(
            f"{called}: expected a column for each class ({', '.join(classes)})"
            + (f"; no {name_unknown(missing, columns)}" if missing else "")
            + (f"; {', '.join(map(repr, other))} is no class" if other else "")
            + "."
        )
    if not frame.index.is_unique or set(frame.index) != set(adata.obs_names):
        raise InputError(f"{called}: its index must be the cells' names (adata.obs_names).")
    frame = frame.set_axis(columns, axis=1)
    return frame.loc[adata.obs_names, list(classes)].to_numpy()
