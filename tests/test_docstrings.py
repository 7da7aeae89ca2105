"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import gdpnet

MODULES = [
    "gdpnet",
    *(module.name for module in pkgutil.walk_packages(gdpnet.__path__, prefix="gdpnet.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), verbose=False)
    assert results.failed == 0


def test_examples_are_found() -> None:
    """What a reader of the public names looks up first has an example."""
    finder = doctest.DocTestFinder()
    public = [gdpnet.RuleModel, gdpnet.rule, gdpnet.any_of, gdpnet.project, gdpnet.load_rules]
    for item in public:
        examples = [e for test in finder.find(item) for e in test.examples]
        assert examples, item
