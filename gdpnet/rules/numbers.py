"""Numbers that modellers put on rules: prices and importances, by a Suffix or by a keyword."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyomo.environ as pyo
from pyomo.gdp import Disjunct

from gdpnet.errors import RuleError
from gdpnet.ir.intervals import interval
from gdpnet.ir.linear import Coefficient
from gdpnet.rules.expressions import ExpressionReader

PRICES, IMPORTANCES = "rule_price", "rule_importance"


class Entries:
    """Values put on components: by a keyword, else by Suffixes of one name.

    As Pyomo finds suffixes: an entry for a component comes before one for its container, and a
    Suffix of the model before those of the Blocks in it. A component of that name that is no
    Suffix is left alone.

    Args:
        model: the model, or a Block of it.
        suffix: name of the Suffix.
        given: of the keyword; components or their names, and values.
        what: one value, for messages.
        kinds: of components that may have one.

    Attributes:
        keyword: name of the keyword.
    """

    def __init__(
        self, model: Any, suffix: str, given: Any, what: str, kinds: tuple[type, ...]
    ) -> None:
        self.model, self.suffix, self.what = model, suffix, what
        self.keyword = f"{suffix.removeprefix('rule_')}s"
        self._given, self._kinds = given, kinds
        self._entries: dict[int, tuple[Any, Any]] = {}
        self._used: set[int] = set()

    def read(self) -> None:
        """Collect the entries."""
        if self._given is not None:
            if not isinstance(self._given, Mapping) and not hasattr(self._given, "items"):
                raise RuleError(
                    f"{self.keyword}: expected a mapping of components to numbers, got "
                    f"{self._given!r}."
                )
            for key, value in self._given.items():
                self._add(self._component(key), value, self.keyword)
        for suffix in self._suffixes():
            for component, value in suffix.items():
                # A Suffix above the model may be about other parts of it.
                if component is None or self._within(component):
                    self._add(component, value, self.suffix)

    def of(self, data: Any) -> Any:
        """The value put on a component, or on its container; None where there is none."""
        found = None
        for component in (data, data.parent_component()):
            entry = self._entries.get(id(component))
            if entry is not None:
                self._used.add(id(component))
                found = entry[1] if found is None else found
        return found

    def unused(self) -> Iterator[tuple[Any, RuleError]]:
        """Components whose value would have no effect."""
        for key, (component, _) in self._entries.items():
            if key in self._used or not getattr(component, "active", True):
                continue
            if component.is_indexed() and not len(component):
                continue
            yield (
                component,
                RuleError(
                    f"{self.suffix}: '{component.name}' is no active part of the model "
                    f"'{self.model.name}', so {self.what} would have no effect."
                ),
            )

    def _component(self, key: Any) -> Any:
        if not isinstance(key, str):
            return key
        found = self.model.find_component(key)
        if found is None:
            raise RuleError(
                f"{self.keyword}: the model '{self.model.name}' has no component '{key}'."
            )
        return found

    def _suffixes(self) -> Iterator[Any]:
        above, block = [], self.model.parent_block()
        while block is not None:
            above.append(block)
            block = block.parent_block()
        within = self.model.block_data_objects(active=True, descend_into=(pyo.Block, Disjunct))
        for block in (*reversed(above), *within):
            found = block.component(self.suffix)
            if found is not None and found.ctype is pyo.Suffix and found.active:
                yield found

    def _within(self, component: Any) -> bool:
        block = component.parent_block()
        while block is not None and block is not self.model:
            block = block.parent_block()
        return block is not None

    def _add(self, component: Any, value: Any, where: str) -> None:
        if getattr(component, "ctype", None) not in self._kinds:
            kinds = ", ".join(kind.__name__ for kind in self._kinds)
            name = getattr(component, "name", component)
            raise RuleError(
                f"{where}: expected {self.what} for one of {kinds}, got it for {name!r} "
                f"({getattr(getattr(component, 'ctype', type(component)), '__name__', '')})."
            )
        if value is None:
            raise RuleError(f"{where}: expected {self.what} for '{component.name}', got None.")
        self._entries.setdefault(id(component), (component, value))


def price_of(
    expressions: ExpressionReader,
    given: Any,
    data: Any,
    input_bounds: Sequence[tuple[float, float]],
) -> Coefficient | None:
    """A price as it was given; None for an infinite one, of a rule that is hard then.

    Args:
        expressions: reads expressions in inputs.
        given: number or expression.
        data: the component.
        input_bounds: range of each input.
    """
    name = f"the price of '{data.name}'"
    if isinstance(given, str | bool):
        raise RuleError(f"{name}: expected a number or an expression in inputs, got {given!r}.")
    form = expressions.linear(given, name)
    if not form.is_constant:
        raise RuleError(f"{name} depends on a Var. A price is a number, or depends on inputs.")
    price = form.constant
    if price.is_number and price.number == math.inf:
        if data.ctype is Disjunct:
            raise RuleError(
                f"{name} is infinite: it would never be chosen. Deactivate the Disjunct instead."
            )
        return None
    low, high = interval(price.tree(), input_bounds)
    if not price.is_finite or high < 0.0 or (price.is_number and low < 0.0):
        told = f"{price.number:g}" if price.is_number else f"between {low:g} and {high:g}"
        raise RuleError(f"{name}: expected a number from 0 on, got {told}.")
    return price


def importance_of(given: Any, data: Any, nested: bool) -> float:
    """An importance as it was given, 1 where it was not.

    Args:
        given: number, or None.
        data: the component.
        nested: whether it stands in a disjunct of a rule.
    """
    if given is None:
        return 1.0
    name = f"the importance of '{data.name}'"
    if nested:
        raise RuleError(
            f"{name}: it stands in a disjunct of another rule, with which it is left out. Give "
            "that rule an importance."
        )
    try:
        value = float(pyo.value(given))
    except (TypeError, ValueError):
        value = math.nan
    if isinstance(given, bool) or not (value > 0.0 and math.isfinite(value)):
        raise RuleError(f"{name}: expected a positive number, got {given!r}.")
    return value
