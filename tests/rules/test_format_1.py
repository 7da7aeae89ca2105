"""Files of format 1, written by gdpnet 0.1, and the fingerprints that its checkpoints hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet.ir.data import Kind, Role, RuleData
from gdpnet.study import load_model
from gdpnet.testing import BY_NAME, PROBLEMS
from tests.rules.test_files import MODELS, warm, with_function


def both_bounds() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True)
    m.y = pyo.Var(range(2), bounds=(m.p[1] - 3, m.p[0] ** 2 + 9))
    m.r = Disjunction(expr=[[m.y[0] + m.y[1] <= 3], [m.y[0] >= 7]], xor=False)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


def fixed_twice() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.b, m.c = pyo.BooleanVar(), pyo.BooleanVar()
    m.z = pyo.Var(domain=pyo.Binary)
    m.b.associate_binary_var(m.z)
    m.c.associate_binary_var(m.z)
    m.b.fix(True)
    m.r = Disjunction(expr=[[m.y[0] <= 3], [m.y[0] >= 7]])
    low, high = (d.indicator_var for d in m.r.disjuncts)
    m.one = pyo.LogicalConstraint(expr=m.b.implies(high))
    m.two = pyo.LogicalConstraint(expr=pyo.lor(pyo.lnot(m.b), pyo.lnot(low), m.c))
    m.total = pyo.Constraint(expr=m.y[0] + m.y[1] + m.z <= 15)
    return gdpnet.RuleModel(m, outputs=[m.y])


HERE = Path(__file__).parent
FILES = sorted((HERE / "files").glob("*.json"))
BUILT = {
    **MODELS,
    "with_function": with_function,
    "both_bounds": both_bounds,
    "fixed_twice": fixed_twice,
}
FINGERPRINTS: dict[str, str] = json.loads((HERE / "fingerprints.json").read_text())


def read(name: str) -> gdpnet.RuleModel:
    """The rules of a file, read from their Pyomo model."""
    return BUILT[name]() if name in BUILT else BY_NAME[name].rules()


def load(path: Path, rules: gdpnet.RuleModel) -> gdpnet.RuleModel:
    functions = {c.owner: c.function for c in rules.data.conditions if c.tree is None}
    return gdpnet.load_rules(path, conditions=functions)


def without_idle_xor(data: RuleData) -> RuleData:
    """Where no logic names a disjunct, or there is one, XOR says nothing and format 1 neither."""
    clauses = [
        replace(c, xor=c.xor and len(c.literals) > 1 and data.booleans[c.literals[0] - 1].tied)
        for c in data.clauses
    ]
    return replace(data, clauses=tuple(clauses))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_format_1(path: Path, tmp_path: Path) -> None:
    assert json.loads(path.read_text())["version"] == 1
    rules = read(path.stem)
    loaded = load(path, rules)
    assert without_idle_xor(loaded.data) == without_idle_xor(rules.data)
    key = f"files/{path.stem}" if path.stem in BUILT else path.stem
    assert loaded.fingerprint == FINGERPRINTS[key]
    assert repr(loaded) == repr(rules)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(6, len(rules.input_names), generator=generator, dtype=torch.float64)
    y = 5 * torch.rand(6, len(rules.output_names), generator=generator, dtype=torch.float64)
    for options in ({}, {"relaxation": "cnf"}):
        one, other = (gdpnet.project(r, y, x, **options) for r in (rules, loaded))
        assert torch.equal(one.status, other.status)
        assert torch.allclose(one.y, other.y, rtol=0, atol=0, equal_nan=True)
    # Saved again it is a file of format 2 that says the same.
    loaded.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["version"] == 2
    assert load(tmp_path / "again.json", rules).data == loaded.data


def test_the_files_have_everything() -> None:
    """Every role and every kind, and both values of xor where it matters."""
    data = [load(path, read(path.stem)).data for path in FILES]
    # Rules of that format are linear: no row is the argument of a curve.
    assert {row.role for d in data for row in d.rows} == set(Role) - {Role.ARGUMENT}
    assert {clause.kind for d in data for clause in d.clauses} == set(Kind)
    tied = [c.xor for d in data for c in d.clauses
            if c.kind is Kind.DISJUNCTION and d.booleans[c.literals[0] - 1].tied]  # fmt: skip
    assert {True, False} == set(tied)
    assert any(boolean.helper for d in data for boolean in d.booleans)
    assert any(condition.function for d in data for condition in d.conditions)


FROZEN = [problem for problem in PROBLEMS if problem.name in FINGERPRINTS]


def test_every_frozen_fingerprint_is_looked_at() -> None:
    others = [name for name in FINGERPRINTS if name.startswith(("models/", "files/"))]
    assert len(FROZEN) + len(others) == len(FINGERPRINTS)
    assert len(FROZEN) > 50


@pytest.mark.parametrize("problem", FROZEN, ids=lambda problem: problem.name)
def test_fingerprints_of_the_bank(problem: Any) -> None:
    assert problem.rules().fingerprint == FINGERPRINTS[problem.name]


@pytest.mark.parametrize("name", [name for name in FINGERPRINTS if name.startswith("models/")])
def test_fingerprints_of_the_models(name: str) -> None:
    _, folder, *which = name.split("/")
    loaded = load_model(HERE.parents[1] / "models" / folder)
    assert loaded.build(*which).fingerprint == FINGERPRINTS[name]


def test_unknown_entries_of_format_1_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    content = json.loads((HERE / "files" / "nested.json").read_text())
    path.write_text(json.dumps({**content, "prices": []}))
    with pytest.raises(gdpnet.errors.RuleError, match="the file is damaged: 'prices' is not known"):
        gdpnet.load_rules(path)


def test_a_function_of_a_file_of_format_1() -> None:
    path = HERE / "files" / "with_function.json"
    with pytest.raises(gdpnet.errors.RuleError, match="condition of 'gap'"):
        gdpnet.load_rules(path)
    loaded = gdpnet.load_rules(path, conditions={"gap": warm})
    assert loaded.active([[0.2], [0.4]]).tolist() == [[False, True], [True, True]]
