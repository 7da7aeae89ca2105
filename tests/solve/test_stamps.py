"""Kernels kept on disk: an edit of anything that is compiled into one changes its stamp."""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from gdpnet import kernels

PACKAGE = Path(__file__).parents[2] / "gdpnet"
COMPILERS = {"jit", "njit", "inner", "outlined"}
OPTIONS = "kernels/_jit"  # how to compile, nothing that is compiled
HOME = "kernels/"  # of all of them, and of the types they are compiled for


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))


def compilers_of(function: ast.FunctionDef) -> set[str]:
    return {n.id for d in function.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}


def kernels_of(module: str) -> list[ast.FunctionDef]:
    functions = [n for n in ast.walk(tree_of(module)) if isinstance(n, ast.FunctionDef)]
    return [f for f in functions if compilers_of(f) & COMPILERS]


@cache
def imported_by(module: str) -> dict[str, str]:
    """Names that a module takes from others of the package, and from which."""
    return {
        name.asname or name.name: node.module.removeprefix("gdpnet.").replace(".", "/")
        for node in tree_of(module).body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gdpnet.")
        for name in node.names
    }


@cache
def definitions_in(module: str) -> dict[str, ast.AST]:
    found: dict[str, ast.AST] = {}
    for node in tree_of(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            found |= dict.fromkeys(names, node.value)
    return found


def global_names(part: ast.AST) -> set[str]:
    names = [n for n in ast.walk(part) if isinstance(n, ast.Name)]
    own = {n.id for n in names if isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in ast.walk(part) if isinstance(n, ast.arg)}
    return {n.id for n in names} - own


def compiled_in(module: str) -> set[str]:
    """Modules in which something stands that the cached kernels of one are made of."""
    waiting: list[tuple[str, ast.AST]] = [(module, k) for k in kernels_of(module) if is_cached(k)]
    known: set[tuple[str, str]] = set()
    while waiting:
        where, part = waiting.pop()
        for name in global_names(part):
            home = imported_by(where).get(name, where)
            if not home.startswith(HOME) or home == OPTIONS or (home, name) in known:
                continue
            definition = definitions_in(home).get(name)
            if definition is not None:
                known.add((home, name))
                waiting.append((home, definition))
    return {module, *(home for home, _ in known)}


def cached_modules() -> list[str]:
    files = sorted(PACKAGE.rglob("*.py"))
    modules = [file.relative_to(PACKAGE).with_suffix("").as_posix() for file in files]
    return [m for m in modules if m != OPTIONS and any(map(is_cached, kernels_of(m)))]


def is_cached(kernel: ast.FunctionDef) -> bool:
    return "jit" in compilers_of(kernel) or any(
        keyword.arg == "cache"
        for decorator in kernel.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )


def stamped_by(module: str) -> set[str]:
    calls = [n for n in ast.walk(tree_of(module)) if isinstance(n, ast.Call)]
    return {
        text.value
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "source_stamp"
        for text in ast.walk(call)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    }


@pytest.mark.parametrize("module", cached_modules())
def test_all_sources_of_a_kernel_are_in_its_stamp(module: str) -> None:
    # Numba itself looks at the file of a kernel.
    assert compiled_in(module) - {module} <= stamped_by(module)


def test_every_kernel_stands_in_their_room() -> None:
    assert all(module.startswith(HOME) for module in cached_modules())


@pytest.mark.parametrize(("name", "home"), kernels._HOMES.items())
def test_every_name_of_the_border_is_there(name: str, home: str) -> None:
    assert getattr(kernels, name) is getattr(import_module(f"gdpnet.kernels.{home}"), name)


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match=r"'gdpnet\.kernels' has no attribute 'nothing'"):
        assert kernels.nothing


def test_the_kernels_are_found() -> None:
    assert {"kernels/exact/_kernel", "kernels/extended/_kernel"} <= set(cached_modules())
    assert compiled_in("kernels/qp/_blocks") == {
        *("kernels/qp/_blocks", "kernels/qp/_newton", "kernels/qp/_lanes")
    }
