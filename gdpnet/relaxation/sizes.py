"""How large relaxations are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gdpnet.checks import check_choice
from gdpnet.errors import RuleError
from gdpnet.ir.batch import as_batch
from gdpnet.ir.rules import Rules
from gdpnet.relaxation.layouts import Layouts
from gdpnet.relaxation.plan import Plan
from gdpnet.relaxation.program import Sizes


def sizes_of(
    rules: Rules,
    relaxation: str | Plan = "cnf",
    x: Any = None,
    prune: bool = True,
    norm: str = "l1",
) -> Sizes:
    """How large a relaxation is, in the form that `gdpnet.convexify` gives it.

    Args:
        rules: the rules.
        relaxation: `"cnf"`, `"dnf"`, `"pdnf:K"`, `"plan:BUDGET"` or a `Plan`.
        x: inputs of one sample, `p`; they decide which rules apply.
        prune: leave products out that are empty for all inputs within `input_bounds`.
        norm: of the distance, `"l1"` or `"l2"`; with the latter there are cones.

    Example:
        >>> import gdpnet, pyomo.environ as pyo
        >>> from gdpnet.relaxation.sizes import sizes_of
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> sizes_of(gdpnet.RuleModel(m, outputs=[m.y]))
        Sizes(clusters=1, disjuncts=2, variables=8, rows=13, bounds=16, nonzeros=32, cones=0)
    """
    check_choice("norm", norm, ("l1", "l2"))
    plan = Plan.of(relaxation, rules)
    batch = as_batch(x, None, rules.input_names, rules.output_names, inputs_only=True)
    layouts = Layouts(rules)
    inputs = batch.x if rules.input_names else torch.zeros(1, 0, dtype=torch.float64)
    active = layouts.ready.rules.evaluate(inputs).clauses.numpy()
    if len(active) != 1:
        raise RuleError(f"x: expected one sample, got {len(active)}.")
    number = layouts.planned(plan, np.ascontiguousarray(active[0]), prune)
    return layouts.sizes(number, norm)
