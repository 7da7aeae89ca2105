"""Model files: Python files, loaded by path or by name, that build a `RuleModel`."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gdpnet.errors import ModelFileError

if TYPE_CHECKING:
    from gdpnet import RuleModel

_EXPECTED = "a .py file, or a folder with a model.py, that defines build() -> gdpnet.RuleModel"


@dataclass(frozen=True)
class LoadedModel:
    """A model file that was loaded.

    Attributes:
        path: The Python file, absolute.
        module: The file's module, for whatever else it defines.
        build: The file's `build`. Raises `ModelFileError` if it fails or does not return a
            `RuleModel`. Keyword arguments are handed on.
        sample: The file's `sample(n, split, seed)`, or None if there is none.
        network: The file's `network`, or None if there is none.
    """

    path: Path
    module: ModuleType
    build: Callable[..., RuleModel]
    sample: Callable[..., Any] | None
    network: Callable[..., Any] | None

    @property
    def name(self) -> str:
        """The folder's name for a `model.py`, else the file's name without `.py`."""
        return self.path.parent.name if self.path.name == "model.py" else self.path.stem

    def __repr__(self) -> str:
        functions = [f for f in ("build", "sample", "network") if getattr(self, f) is not None]
        return f"LoadedModel({self.name!r}, {', '.join(functions)}, path={str(self.path)!r})"


def load_model(path: str | os.PathLike[str]) -> LoadedModel:
    """Load a model from a Python file.

    The file is executed, each time anew. A folder's `model.py` may import its neighbours with
    relative imports (`from ._constants import ...`). `build` is not called here.

    Args:
        path: A `.py` file, or a folder that holds a `model.py`; or the name of a model that comes
            with gdpnet, such as `"cooling"` (`shipped_models` lists them), where there is no such
            file or folder.

    Returns:
        The file's `build`, `sample` and `network`; only `build` is required.

    Raises:
        ModelFileError: If there is no such file, it cannot be executed, or it has no usable
            `build`. The message names the file and says what to do.

    Example:
        >>> load_model("cooling").build().output_names
        ('f', 'c', 'p')
    """
    file = _find_file(Path(path))
    module = _execute(file)
    build = _function(file, module, "build")
    if build is None:
        raise ModelFileError(
            f"{file} defines no build(). Expected {_EXPECTED}. {_found(module)}"
            " Add `def build():` and return the RuleModel from it."
        )
    _check_needs_no_arguments(file, build)
    sample = _function(file, module, "sample")
    network = _function(file, module, "network")
    return LoadedModel(
        path=file,
        module=module,
        build=_checked_build(file, build),
        sample=guarded(file, "sample", sample) if sample else None,
        network=guarded(file, "network", network) if network else None,
    )


def shipped_models() -> dict[str, Path]:
    """The models that come with gdpnet: their files by name.

    They lie within the package where it was installed, beside it in a clone of the repository.

    Example:
        >>> sorted(shipped_models())
        ['cooling', 'pbmc', 'stress', 'toy']
    """
    package = Path(__file__).parents[1]
    for folder in (package / "_models", package.parent / "models"):
        found = {file.parent.name: file.resolve() for file in sorted(folder.glob("*/model.py"))}
        if found:
            return found
    return {}


def _find_file(path: Path) -> Path:
    path = path.expanduser()
    if path.is_dir():
        file = path / "model.py"
        if not file.is_file():
            scripts = sorted(p.name for p in path.glob("*.py"))
            hint = f"It holds {', '.join(scripts)}: name one of them" if scripts else "Add one"
            raise ModelFileError(
                f"The folder {path} has no model.py. Expected {_EXPECTED}. {hint},"
                " or give another path."
            )
        return file.resolve()
    if not path.exists():
        shipped = shipped_models()
        if str(path) in shipped:
            return shipped[str(path)]
        raise ModelFileError(
            f"No model at {path}: there is no such file or folder (looked from {Path.cwd()})."
            f" Expected {_EXPECTED}. Check the path, or name a model that comes with gdpnet:"
            f" {', '.join(shipped)}."
        )
    if path.suffix != ".py":
        raise ModelFileError(
            f"{path} is not a Python file. Expected {_EXPECTED}. Give the path of such a file."
        )
    return path.resolve()


def _execute(file: Path) -> ModuleType:
    # A name made from the path keeps two models called model.py apart in sys.modules, where
    # dataclasses, pickle and relative imports look the module up.
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:12]
    name = f"_gdpnet_model_{digest}"
    # Only a folder is a package; a lone file has no neighbours that belong to it.
    search = [str(file.parent)] if file.name == "model.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=search)
    if spec is None or spec.loader is None:
        raise ModelFileError(f"Python cannot import {file}. Expected {_EXPECTED}.")
    # Neighbours of an earlier load would hide edits made since.
    for loaded in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[loaded]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        del sys.modules[name]
        where = error.filename or file
        raise ModelFileError(
            f"{file} cannot be loaded: {where} line {error.lineno} is not valid Python"
            f" ({error.msg}). Correct that line."
        ) from error
    except Exception as error:
        del sys.modules[name]
        raise ModelFileError(
            f"{file} cannot be loaded: executing it raised {describe(error, file)}."
            " Correct the file so that it can be imported."
        ) from error
    return module


def _function(file: Path, module: ModuleType, name: str) -> Callable[..., Any] | None:
    value = getattr(module, name, None)
    if value is not None and not callable(value):
        raise ModelFileError(
            f"{file}: {name} should be a function, but is of type {type(value).__name__}."
            f" Define it with `def {name}(...):`, or give the value another name."
        )
    return value


def _found(module: ModuleType) -> str:
    functions = sorted(
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    )
    return f"It defines {', '.join(functions)}." if functions else "It defines no function."


def _check_needs_no_arguments(file: Path, build: Callable[..., Any]) -> None:
    try:
        parameters = inspect.signature(build).parameters.values()
    except (TypeError, ValueError):  # a callable without a signature can only be tried
        return
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = [
        p.name
        for p in parameters
        if p.default is inspect.Parameter.empty and p.kind not in variadic
    ]
    if required:
        raise ModelFileError(
            f"{file}: build() must work without arguments, but requires {', '.join(required)}."
            " Give each of them a default value."
        )


def guarded(file: Path, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A model file's function; what it raises becomes a `ModelFileError` that names it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise ModelFileError(
                f"{file}: {name}() raised {describe(error, file)}."
                f" Correct {name}(), or what it was called with."
            ) from error

    return call


def _checked_build(file: Path, build: Callable[..., Any]) -> Callable[..., RuleModel]:
    checked = guarded(file, "build", build)

    @functools.wraps(build)
    def call(*args: Any, **kwargs: Any) -> RuleModel:
        # Imported late: reading rules needs Pyomo, finding a model file does not.
        from gdpnet import RuleModel

        rules = checked(*args, **kwargs)
        if not isinstance(rules, RuleModel):
            hint = (
                "End it with `return gdpnet.RuleModel(m, outputs=[...], inputs=[...])`."
                if rules is None or hasattr(rules, "component_objects")
                else "Return the RuleModel itself."
            )
            raise ModelFileError(
                f"{file}: build() should return a gdpnet.RuleModel, but returned"
                f" {'nothing' if rules is None else type(rules).__name__}. {hint}"
            )
        return rules

    return call


def describe(error: Exception, file: Path) -> str:
    """The error in one line, with the last line of the model's own files that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if Path(f.filename).parent == file.parent]
    if not own:
        where = ""
    elif Path(own[-1].filename) == file:
        where = f" at line {own[-1].lineno}"
    else:
        where = f" at {Path(own[-1].filename).name} line {own[-1].lineno}"
    message = str(error).strip().rstrip(".")
    return f"{type(error).__name__}{where}" + (f": {message}" if message else "")
