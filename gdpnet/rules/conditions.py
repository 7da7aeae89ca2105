"""When rules apply: the Suffix `active_when`."""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo
from pyomo.gdp import Disjunct, Disjunction

from gdpnet.errors import RuleError
from gdpnet.ir.data import Condition
from gdpnet.rules.expressions import ExpressionReader
from gdpnet.rules.obstacles import Obstacles

ACTIVE_WHEN = "active_when"


class ReadConditions:
    """Conditions in the order in which their components were read, equal ones once.

    Attributes:
        all: the conditions.
    """

    def __init__(self, model: Any, expressions: ExpressionReader, obstacles: Obstacles) -> None:
        self.all: list[Condition] = []
        self._model = model
        self._expressions = expressions
        self._obstacles = obstacles
        self._entries: dict[int, tuple[Any, Any]] = {}
        self._used: set[int] = set()

    def read(self) -> None:
        """Collect component and condition of every entry."""
        regions = self._model.block_data_objects(active=True, descend_into=(pyo.Block, Disjunct))
        for block in regions:
            suffix = block.component(ACTIVE_WHEN)
            if suffix is None:
                continue
            with self._obstacles.at(suffix):
                if suffix.ctype is not pyo.Suffix:
                    raise RuleError(
                        f"'{suffix.name}' is a {suffix.ctype.__name__}; the name '{ACTIVE_WHEN}' "
                        "is reserved for the Suffix that says when rules apply. Rename it."
                    )
                for component, condition in suffix.items():
                    with self._obstacles.at(component):
                        self._add_entry(component, condition)

    def of(self, data: Any) -> tuple[int, ...]:
        """Conditions put on a component: on the data itself and on its container."""
        found = []
        container = data.parent_component()
        for component in [data] if container is data else [container, data]:
            entry = self._entries.get(id(component))
            if entry is None:
                continue
            self._used.add(id(component))
            with self._obstacles.at(component):
                found.append(self._add(component.name, entry[1]))
        return tuple(found)

    def refuse_unused(self) -> None:
        """Make obstacles of conditions that have no effect."""
        for key, (component, _) in self._entries.items():
            active = getattr(component, "active", True)
            if key in self._used or not active or _is_empty(component):
                continue
            with self._obstacles.at(component):
                raise RuleError(
                    f"{ACTIVE_WHEN}: '{component.name}' is no active part of the model "
                    f"'{self._model.name}', so its condition would have no effect."
                )

    def _add_entry(self, component: Any, condition: Any) -> None:
        kind = getattr(component, "ctype", None)
        if kind not in (Disjunction, pyo.Constraint, pyo.Block, pyo.LogicalConstraint):
            raise RuleError(
                f"{ACTIVE_WHEN}: '{component}' is not a Disjunction, Constraint, "
                "LogicalConstraint or Block, so no condition can be put on it."
            )
        if id(component) in self._entries:
            raise RuleError(
                f"{ACTIVE_WHEN}: '{component.name}' has two conditions. Join them with "
                "pyo.land or pyo.lor."
            )
        self._entries[id(component)] = (component, condition)

    def _add(self, owner: str, given: Any) -> int:
        if callable(given) and not hasattr(given, "is_expression_type"):
            condition = Condition(owner, function=given)
        else:
            tree = self._expressions.condition(given, f"{ACTIVE_WHEN} of '{owner}'")
            condition = Condition(owner, tree=tree)
        if condition not in self.all:
            self.all.append(condition)
        return self.all.index(condition)


def _is_empty(component: Any) -> bool:
    return hasattr(component, "is_indexed") and component.is_indexed() and len(component) == 0
