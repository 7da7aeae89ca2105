"""What cannot be read of a model is collected, and reading goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gdpnet.errors import RuleError


class Obstacles:
    """Components that cannot be read, and why.

    Attributes:
        structural: whether Disjuncts are missing because of one, so that what names them cannot
            be judged.
    """

    def __init__(self) -> None:
        self.structural = False
        self._found: dict[str, tuple[str, RuleError]] = {}  # by message: each is told once

    def __len__(self) -> int:
        return len(self._found)

    def listed(self) -> list[tuple[str, RuleError]]:
        """Component and error, in the order in which they were met."""
        return list(self._found.values())

    @contextmanager
    def at(self, component: Any, structural: bool = False) -> Iterator[None]:
        """What cannot be read inside becomes an obstacle, and reading goes on behind it.

        Args:
            component: where it stands, or its name. Names are slow: this one is asked for when
                it is needed.
            structural: Disjuncts are not known behind it, so what names them is not judged.
        """
        try:
            yield
        except RuleError as error:
            name = getattr(component, "name", component)
            self._found.setdefault(str(error), (str(name), error))
            self.structural |= structural
