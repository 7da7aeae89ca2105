"""The explorer's page: one file that needs no other and no network."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

import torch

from gdpnet.errors import InputError
from gdpnet.explore._model import model_of
from gdpnet.ir.batch import as_batch
from gdpnet.model import RuleModel

# In the order in which the page reads them.
_SCRIPTS = (
    "simplex",
    "rules",
    "curves",
    "polytope",
    "rounded",
    "euclidean",
    "bent",
    "project",
    "shadow",
    "page",
)


def explorer_page(
    rules: RuleModel,
    name: str = "rules",
    x: Any = None,
    outputs: Sequence[int | str] | None = None,
) -> str:
    """A page in which a prediction can be dragged and rules switched on and off.

    The page computes everything by itself: regions as exact polygons, projections by branch and
    bound (DNF) or by the lifted linear program (CNF and partial DNF). The norm is switched there,
    too: in the Euclidean one the exact answer alone is shown, and in both where rows are not
    linear or rules have prices. Regions of curved rows have curved sides; the nearest point is
    computed with the curves themselves, by tangents and Newton's method. A condition that is a
    Python function cannot be computed there; its rule is switched by hand, and the page says so.

    Args:
        rules: the rules, with 1 to 6 bounded outputs; no auxiliaries, whole numbers or logic. One
            output is shown with its distance, as `plot_lifted` does.
        name: title of the page.
        x: inputs to choose from, `batch x p`; the first is what the page starts with. Where
            `input_bounds` are missing they are also the range of the sliders.
        outputs: the two outputs that are shown first, by name or index.

    Returns:
        HTML.

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> from gdpnet.explore import explorer_page
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2], bounds=(0, 10))
        >>> m.a = gdpnet.rule(gdpnet.any_of(m.y[1] <= 3, m.y[2] >= 7))
        >>> page = explorer_page(gdpnet.RuleModel(m, outputs=[m.y]), name="two outputs")
        >>> "<title>two outputs: rules</title>" in page
        True
    """
    from gdpnet import __version__
    from gdpnet.plot.region import pair_of

    if not isinstance(rules, RuleModel):
        raise InputError(f"rules: expected a RuleModel, got {type(rules).__name__}.")
    samples: list[list[float]] = []
    if x is not None and rules.input_names:
        batch = as_batch(x, None, rules.input_names, rules.output_names, inputs_only=True)
        samples = batch.x.to(torch.float64).tolist()
    pair = (0, 1) if outputs is None else pair_of(rules, outputs)
    model = json.dumps(model_of(rules, name, pair, samples), allow_nan=False)
    folder = files("gdpnet.explore") / "page"

    def content(file: str) -> str:
        return (folder / file).read_text(encoding="utf-8").strip()

    return Template(content("page.html")).substitute(
        title=html.escape(f"{name}: rules"),
        version=__version__,
        style=content("page.css"),
        model=model.replace("<", "\\u003c"),  # no name can end the script
        script="\n\n".join(content(f"{script}.js") for script in _SCRIPTS),
    )
