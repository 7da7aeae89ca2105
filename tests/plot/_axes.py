"""Pictures without a screen, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes


@pytest.fixture(autouse=True)
def without_a_screen() -> Iterator[None]:
    before = mpl.get_backend()
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


def polygons(ax: Axes, gid: str) -> list[np.ndarray]:
    """Corners of what was drawn under a gid, without the closing one."""
    found = []
    for patch in ax.patches:
        if patch.get_gid() == gid:
            path = patch.get_path()
            starts = [i for i, code in enumerate(path.codes) if code == path.MOVETO]
            for a, b in zip(starts, [*starts[1:], len(path.codes)], strict=True):
                found.append(path.vertices[a : b - 1])
    return found


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    return [text.get_text() for text in found.get_texts()] if found else []
