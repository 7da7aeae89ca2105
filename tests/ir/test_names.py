"""Names are for people: structure is said by roles, kinds and sources, and never guessed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gdpnet
from gdpnet.ir.data import RuleData

PACKAGE = Path(gdpnet.__file__).parent

# Modules that know rules as data and may compare names nevertheless.
ALLOWED = {
    "adapter.py": "knows by their names what Pyomo's own transformations add",
    "describe.py": "does not show names that Pyomo made up",
    "loading.py": "finds the components of a Pyomo model, which is all it has in common with rules",
    "regularised.py": "reads programs of Pyomo, whose variables are copies by name",
    "format_1.py": "files of format 1 say nothing else",
}

_TEXT = {"startswith", "endswith", "removeprefix", "removesuffix", "split", "partition", "find"}
_LOOKUP = {"get", "pop", "setdefault"}


def knows_rules(tree: ast.AST) -> bool:
    """Whether a module reads rules as data: `data.clauses`, `rules.data.rows` and the like."""
    parts = {"rows", "booleans", "clauses", "columns"}
    return any(
        isinstance(node, ast.ImportFrom) and node.module == RuleData.__module__
        for node in ast.walk(tree)
    ) or any(
        isinstance(node, ast.Attribute)
        and node.attr in parts
        and ast.unparse(node.value).endswith("data")
        for node in ast.walk(tree)
    )


def by_name(tree: ast.AST) -> Iterator[int]:
    """Lines in which a `.name` is compared, taken apart, or the key of something."""
    for node in ast.walk(tree):
        if any(_is_name(part) for part in _decisive(node)):
            yield node.lineno


def _decisive(node: ast.AST) -> list[ast.AST]:
    """Parts of an expression that decide what it gives."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    if isinstance(node, ast.DictComp):
        return [node.key]
    if isinstance(node, ast.SetComp):
        return [node.elt]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _TEXT:
            return [node.func.value]
        if node.func.attr in _LOOKUP:
            return list(node.args[:1])
    return []


def _is_name(node: ast.AST) -> bool:
    """Whether an expression is `something.name`, or text or a tuple that is made with one."""
    if isinstance(node, ast.Attribute):
        return node.attr == "name"
    made = isinstance(node, ast.JoinedStr | ast.FormattedValue | ast.Tuple)
    return made and any(_is_name(inner) for inner in ast.iter_child_nodes(node))


def test_structure_is_not_guessed_from_names() -> None:
    found, allowed = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        lines = sorted(set(by_name(tree))) if knows_rules(tree) else []
        name = path.name.lstrip("_")
        if name in ALLOWED:
            allowed |= {name} if lines else set()
        else:
            found += [f"{path.relative_to(PACKAGE)}:{line}" for line in lines]
    assert not found, (
        f"a name decides in {', '.join(found)}: use the role of a row, the kind of a clause, the "
        "source of either, or an index; names are for describing"
    )
    assert allowed == set(ALLOWED)  # none is on the list that needs not be


@pytest.mark.parametrize(
    "code",
    [
        "row.name == other",
        "text != data.clauses[k].name",
        "row.name in names",
        "row.name in (f'upper bound of {column.name}', 'x')",
        "'bound' in row.name",
        "row.name == f'upper bound of {column}'",
        "by[clause.name]",
        "by[clause.name, 3] = 2",
        "by.get(clause.name)",
        "by.setdefault((clause.name, clause.guard), [])",
        "{c.name: c for c in clauses}",
        "{c.name for c in clauses}",
        "{c.name: 3}",
        "row.name.startswith('upper')",
    ],
)
def test_what_is_seen(code: str) -> None:
    assert list(by_name(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "f'{row.name}: {text}'",
        "Row(row.name, terms)",
        "[c.name for c in clauses]",
        "rows.add(row.name, terms)",
        "{'name': row.name}",
        "clause.kind is Kind.XOR",
        "names[k] = row.name",
    ],
)
def test_what_may_be_done_with_names(code: str) -> None:
    assert not list(by_name(ast.parse(code)))
