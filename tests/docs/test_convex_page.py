"""docs/convex.md: its model prints as shown; what it refuses is, and what it advises is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest

import gdpnet
from gdpnet.errors import RuleError

PAGE = (Path(__file__).parents[2] / "docs/convex.md").read_text(encoding="utf-8")


def test_the_model_prints_as_shown() -> None:
    code, text = (re.search(rf"```{kind}\n(.*?)```", PAGE, re.S) for kind in ("python", "text"))
    assert code is not None
    assert text is not None
    space: dict[str, Any] = {"print": lambda rules: None}
    exec(code[1], space)
    assert str(space["rules"]).strip() == text[1].strip()


def model() -> Any:
    m = pyo.ConcreteModel()
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.s, m.width, m.length = (pyo.Var(bounds=(0, 10)) for _ in range(3))
    m.t = pyo.Param(initialize=1.0, mutable=True)
    return m


def obstacles(text: str, **bounds: Any) -> gdpnet.rules.ModelCheck:
    """What stands in the way of the relations in a line of the page."""
    m = model()
    m.rows = pyo.ConstraintList()
    for relation in re.findall(r"`([^`]*)`", text):
        relation = relation.replace("m.y ", "m.y[1] ").replace("m.y*", "m.y[1]*")
        relation = relation.replace("m.y)", "m.y[1])").replace("m.y,", "m.y[1],")
        made = eval(relation, {"m": m, "pyo": pyo, "gdpnet": gdpnet})
        if isinstance(made, gdpnet.rules.Formula):
            m.rule = gdpnet.rule(made)
        else:
            m.rows.add(made)
    outputs = [m.y, m.s, m.width, m.length]
    return gdpnet.check(m, outputs, inputs=[m.t], **bounds)


REFUSED = PAGE.split("## What is refused")[1].split("## ")[0]
TABLE = [line.split("|")[1:-1] for line in REFUSED.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("line", TABLE, ids=lambda line: line[0].strip())
def test_the_table(line: list[str]) -> None:
    refused, _, instead = line
    assert not obstacles(refused).ok
    relations = [r for r in re.findall(r"`[^`]*`", instead) if "m." in r]
    # The logarithm with an input on the right needs its sign no more.
    assert obstacles(" ".join(relations), input_bounds=[(0.5, 2)]).ok


def test_the_table_is_found() -> None:
    assert len(TABLE) == 10


def test_advice_by_bounds() -> None:
    assert obstacles("`m.t * m.y**2 <= 1`", input_bounds=[(0.5, 2)]).ok
    m = model()
    m.row = pyo.Constraint(expr=m.t * m.y[1] ** 2 <= 1)
    with pytest.raises(RuleError, match="no sum of squares"):
        gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
