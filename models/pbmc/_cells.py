"""Which cells: PBMC3k from a file or from scanpy, or the small set that scanpy brings along."""

import contextlib
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from gdpnet.extras import need
from gdpnet.study import find_data

from ._rule_sets import CD4, CD8, CD14, DC, NK, B

FOLDER = "pbmc3k"
FILE = "pbmc3k_processed.h5ad"
BUNDLED = "pbmc68k_reduced"
LABELS = "louvain"

# The bundled cells were labelled otherwise; 13 CD34+ cells have no counterpart.
_BULK = {
    "CD14+ Monocyte": CD14,
    "CD19+ B": B,
    "CD4+/CD25 T Reg": CD4,
    "CD4+/CD45RA+/CD25- Naive T": CD4,
    "CD4+/CD45RO+ Memory": CD4,
    "CD56+ NK": NK,
    "CD8+ Cytotoxic T": CD8,
    "CD8+/CD45RA+ Naive Cytotoxic": CD8,
    "Dendritic": DC,
}

_SECONDS = 30.0  # without an answer from the network


def cells() -> Any:
    """The AnnData, read once; labels are in `obs["louvain"]`. Says on stderr which one it is."""
    return _read(os.environ.get("GDPNET_DATA", ""))


@cache
def _read(where: str) -> Any:
    if where == BUNDLED:
        return _told(_bundled(), f"{BUNDLED}, which scanpy brings along (GDPNET_DATA)")
    if file := _file(where):
        anndata = need("anndata", "bio", "The cells of this file need")
        return _told(anndata.read_h5ad(file), f"{file} (GDPNET_DATA)")
    scanpy = need("scanpy", "bio", "The cells of pbmc3k need")
    try:
        with _patience(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old files
            return _told(scanpy.datasets.pbmc3k_processed(), "scanpy.datasets.pbmc3k_processed()")
    except OSError as error:
        reason = f"pbmc3k_processed could not be had: {error}; GDPNET_DATA may name its folder"
        return _told(_bundled(), f"{BUNDLED}, which scanpy brings along ({reason})")


def _file(where: str) -> Path | None:
    if (file := Path(where).expanduser()).is_file():
        return file
    try:
        return find_data(FOLDER, FILE)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error} {BUNDLED} is the small set that scanpy brings along."
        ) from None


def _bundled() -> Any:
    import scanpy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = scanpy.datasets.pbmc68k_reduced()
    labels = adata.obs["bulk_labels"].map(_BULK).astype(object)
    adata = adata[labels.notna().to_numpy()].copy()
    adata.obs[LABELS] = labels[labels.notna()]
    return adata


def _told(adata: Any, which: str) -> Any:
    sys.stderr.write(f"pbmc: {adata.n_obs} cells x {adata.n_vars} genes from {which}\n")
    return adata


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """No waiting for ever where there is no network."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
