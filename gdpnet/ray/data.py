"""Project: what `map_batches` of Ray Data makes an actor of."""

from __future__ import annotations

import os
from typing import Any

from gdpnet.model import RuleModel, load_rules
from gdpnet.study.batches import BatchProjector


class Project:
    """Loads rules once, and projects the batches that come.

    To be given to `map_batches` with `batch_format="pyarrow"`. All columns are kept; outputs,
    status and distance are added as `gdpnet.study.BatchProjector` does. Actors hold their CPUs
    while tasks read and write: leave them some, by fewer actors than CPUs or by `num_cpus=0.5`;
    where actors take all there are, nothing is ever read.

    Args:
        rules: the rules, or the path of a file that `rules.save` wrote and every node finds.
        **keywords: as in `gdpnet.study.BatchProjector`; one thread unless `threads` says more.

    Example:
        >>> import pyarrow, pyomo.environ as pyo, gdpnet.ray
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> rules = gdpnet.RuleModel(m, outputs=[m.y])
        >>> gdpnet.ray.Project(rules)(pyarrow.table({"y": [4.5]}))["y_projected"].to_pylist()
        [3.0]
        >>> ray.data.read_parquet("in").map_batches(  # doctest: +SKIP
        ...     gdpnet.ray.Project,
        ...     fn_constructor_args=[rules],
        ...     batch_format="pyarrow",
        ...     compute=ray.data.ActorPoolStrategy(size=1),
        ...     num_cpus=0.5,
        ... ).write_parquet("out")
    """

    def __init__(self, rules: RuleModel | str | os.PathLike[str], **keywords: Any) -> None:
        if isinstance(rules, str | os.PathLike):
            rules = load_rules(rules)
        self._project = BatchProjector(rules, **{"threads": 1} | keywords)

    def __call__(self, batch: Any) -> Any:
        """The same rows and columns, and what became of them.

        Args:
            batch: a `pyarrow.Table`.
        """
        return self._project(batch)
