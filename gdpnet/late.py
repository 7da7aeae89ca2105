"""What is imported late: a package's names when asked for, Pyomo when somebody else does."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_PYOMO = "pyomo.gdp"


def late_names(
    package: str, table: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package with names that are imported when asked for.

    Args:
        package: its `__name__`.
        table: for each name "module:attribute", or "module" for a module itself.
    """

    def load(name: str) -> Any:
        if name not in table:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        where, _, attribute = table[name].partition(":")
        try:
            module = importlib.import_module(where)
        except ModuleNotFoundError as error:
            absent = (error.name or "").partition(".")[0]
            if absent in ("", "gdpnet"):
                raise
            from gdpnet.extras import missing  # late: errors imports this module

            raise missing(absent, None, f"{package}.{name} needs") from None
        return getattr(module, attribute) if attribute else module

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *table})

    return load, names


def after_pyomo_gdp(callback: Callable[[], None]) -> None:
    """Call something as soon as `pyomo.gdp` has been imported: at once, where it has been.

    Importing gdpnet does not import Pyomo; who imports both, in either order, has both together.
    The same function of a module that is reloaded takes the place of the old one.
    """
    finder = next((f for f in sys.meta_path if getattr(f, "waits_for", "") == _PYOMO), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    finder.callbacks[callback.__module__, callback.__qualname__] = callback  # type: ignore[attr-defined]
    if sys.modules.get(_PYOMO) is not None:
        importlib.import_module(_PYOMO)  # waits where another thread is at it
        callback()


class _Finder:
    """Finds nothing by itself: whoever finds `pyomo.gdp` has his loader wrapped."""

    waits_for = _PYOMO

    def __init__(self) -> None:
        self.callbacks: dict[tuple[str, str], Callable[[], None]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _PYOMO:
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _Loader(spec.loader, self.callbacks)
                    return spec
        return None


class _Loader(Loader):
    """Another loader, with what is to be done afterwards; the module keeps the other one."""

    def __init__(
        self, loader: Any, callbacks: Mapping[tuple[str, str], Callable[[], None]]
    ) -> None:
        self._loader, self._callbacks = loader, callbacks

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_loader":  # nothing is there yet while it is copied
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for callback in list(self._callbacks.values()):
            callback()
