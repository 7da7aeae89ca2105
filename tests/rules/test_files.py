"""Rules in files: the same answers after a round trip, without Pyomo, and clear refusals."""

from __future__ import annotations

import copy
import json
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction, GDP_Error

import gdpnet
from gdpnet.testing import BY_NAME

ROOT = Path(__file__).parents[2]


def conditional() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.c = pyo.Constraint(expr=m.y[0] + m.y[1] <= 17)
    m.r = gdpnet.rule(
        gdpnet.all_of(gdpnet.any_of(m.y[0] <= 3, m.y[0] >= 7), m.y[1] <= 8),
        when=pyo.lor(m.p[0] > 0.5, pyo.land(m.p[1] >= 0, pyo.lnot(m.p[0] == 0.25))),
    )
    m.s = Disjunction(expr=[[m.y[1] <= 2], [m.y[1] >= 5, m.y[0] >= 1]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p], input_bounds={"p[0]": (-1, 1)})


def parametric() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True)
    m.y = pyo.Var(range(2), bounds=(0, m.p[0] ** 2 + 9))
    m.c = pyo.Constraint(expr=(1 + pyo.exp(m.p[0]) / 3) * m.y[0] + m.y[1] <= 20 + m.p[1] / 7)
    m.r = gdpnet.rule(
        gdpnet.any_of(m.y[0] <= 3 + abs(m.p[1]), m.y[0] >= gdpnet.maximum(7, m.p[0] + 6.9)),
        when=pyo.inequality(-0.5, m.p[0], 2),
    )
    m.s = Disjunction(
        expr=[
            [m.y[1] == 2 + pyo.Expr_if(m.p[0] > 0, pyo.log(1 + m.p[0] ** 2), 0.1)],
            [m.y[1] * (2 + pyo.sin(m.p[1])) >= 12],
        ]
    )
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


def nested() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.a, m.b = Disjunct(), Disjunct()
    m.a.c = pyo.Constraint(expr=m.y[0] <= 3)
    m.a.inner = gdpnet.rule(gdpnet.any_of(m.y[1] <= 2, m.y[1] >= 8), when=m.p[0] > 0)
    m.b.c = pyo.Constraint(expr=m.y[0] >= 7 + 0.1 * m.p[1])
    m.r = Disjunction(expr=[m.a, m.b])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


def logic() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.low, m.high = Disjunct(range(2)), Disjunct(range(2))
    for i in range(2):
        m.low[i].c = pyo.Constraint(expr=m.y[i] <= 4)
        m.high[i].c = pyo.Constraint(expr=m.y[i] >= 6)
    m.r = Disjunction(range(2), rule=lambda m, i: [m.low[i], m.high[i]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.r[1]] = m.p[0] > 0
    m.l = pyo.LogicalConstraint(expr=pyo.xor(m.low[0].indicator_var, m.low[1].indicator_var))
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


def integer() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.y[1].domain = pyo.Integers
    m.c = pyo.Constraint(expr=m.y[0] >= m.y[1] / 2 + m.p[0])
    m.r = Disjunction(expr=[[m.y[1] <= 3], [m.y[1] >= 6]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


def auxiliaries() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(range(2), mutable=True)
    m.y = pyo.Var(range(2), bounds=(0, 10))
    m.a = pyo.Var(bounds=(0, 5))
    m.n = pyo.Var(domain=pyo.Binary)
    m.c = pyo.Constraint(expr=m.y[0] == 2 * m.a + m.n)
    m.d = pyo.Constraint(expr=m.y[1] >= 4 - m.a + m.p[0])
    m.r = Disjunction(expr=[[m.y[1] <= 3], [m.y[1] >= 6]])
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


MODELS: dict[str, Callable[[], gdpnet.RuleModel]] = {
    f.__name__: f for f in (conditional, parametric, nested, logic, integer, auxiliaries)
}
COUNT = 6


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(COUNT, 2, generator=generator, dtype=torch.float64)
    x[0] = torch.tensor([0.25, 0.0])
    x[1] = torch.tensor([0.5, -0.5])
    y = 12 * torch.rand(COUNT, 2, generator=generator, dtype=torch.float64) - 1
    return x, y


def answers(rules: gdpnet.RuleModel) -> dict[str, Any]:
    x, y = data()
    p = gdpnet.project(rules, y, x, solver="milp")
    return {
        "active": rules.active(x).tolist(),
        "satisfied": rules.satisfied(y, x).tolist(),
        "violation": rules.violation(y, x).tolist(),
        "global_violation": rules.global_violation(y, x).tolist(),
        "y": p.y.tolist(),
        "distance": p.distance.tolist(),
        "status": p.status.tolist(),
        "disjunct": p.disjunct.tolist(),
    }


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    rules = MODELS[name]()
    rules.save(tmp_path / "rules.json")
    loaded = gdpnet.load_rules(tmp_path / "rules.json")
    assert repr(loaded) == repr(rules)
    assert loaded._repr_html_() == rules._repr_html_()
    assert loaded.fingerprint == rules.fingerprint
    assert loaded.data == rules.data
    assert answers(loaded) == answers(rules)  # bit by bit
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "rules.json").read_bytes()


def test_models_differ() -> None:
    """The data of the round trip tell models apart, and have both answers."""
    prints = {MODELS[name]().fingerprint for name in MODELS}
    assert len(prints) == len(MODELS)
    assert len({json.dumps(answers(MODELS[name]())["y"]) for name in MODELS}) == len(MODELS)
    active = torch.tensor(answers(conditional())["active"])
    assert bool(active.any(0).all())
    assert not bool(active[:, 0].all())


_WITHOUT_PYOMO = """
import json, sys
sys.modules["pyomo"] = None
import torch
import gdpnet
found = {}
for path in sys.argv[1:]:
    rules = gdpnet.load_rules(path)
    x, y = torch.tensor(X, dtype=torch.float64), torch.tensor(Y, dtype=torch.float64)
    p = gdpnet.project(rules, y, x, solver="milp")
    found[path] = {
        "active": rules.active(x).tolist(),
        "satisfied": rules.satisfied(y, x).tolist(),
        "violation": rules.violation(y, x).tolist(),
        "global_violation": rules.global_violation(y, x).tolist(),
        "y": p.y.tolist(),
        "distance": p.distance.tolist(),
        "status": p.status.tolist(),
        "disjunct": p.disjunct.tolist(),
    }
try:
    gdpnet.load_rules("no such rules", conditions=3)
except OSError:
    pass
assert issubclass(gdpnet.errors.RuleError, Exception)
assert not any(name.startswith("pyomo") for name, m in sys.modules.items() if m is not None)
print(json.dumps(found))
"""


def test_without_pyomo(tmp_path: Path) -> None:
    expected = {}
    for name, build in MODELS.items():
        rules = build()
        path = str(tmp_path / f"{name}.json")
        rules.save(path)
        expected[path] = answers(rules)
    x, y = data()
    script = f"X = {x.tolist()!r}\nY = {y.tolist()!r}\n{_WITHOUT_PYOMO}"
    ran = subprocess.run(
        [sys.executable, "-c", script, *expected],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    # Through JSON, so that NaN and infinity are written the same way on both sides.
    assert json.loads(ran.stdout) == json.loads(json.dumps(expected))


# ---- conditions that are functions -----------------------------------------------------------


def warm(x: torch.Tensor) -> torch.Tensor:
    return x[:, 0] > 0.3


def with_function() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.p = pyo.Param(mutable=True)
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7), when=warm)
    m.other = gdpnet.rule(gdpnet.any_of(m.y <= 8, m.y >= 9), when=m.p > 0)
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p])


def test_a_function_has_to_be_given_again(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    rules = with_function()
    rules.save(path)
    with pytest.raises(gdpnet.errors.RuleError, match=r"condition of 'gap'.*conditions=\{'gap'"):
        gdpnet.load_rules(path)
    loaded = gdpnet.load_rules(path, conditions={"gap": warm})
    x = [[-1.0], [0.2], [0.4]]
    assert loaded.active(x).tolist() == [[False, False], [False, True], [True, True]]
    assert loaded.active(x).tolist() == rules.active(x).tolist()
    assert repr(loaded) == repr(rules)
    assert loaded.fingerprint == rules.fingerprint


@pytest.mark.parametrize("name", ["nobody", "other"])
def test_conditions_for_what_needs_none_are_refused(name: str, tmp_path: Path) -> None:
    with_function().save(tmp_path / "rules.json")
    with pytest.raises(gdpnet.errors.RuleError, match=f"conditions: {name} needs none"):
        gdpnet.load_rules(tmp_path / "rules.json", conditions={"gap": warm, name: warm})


def test_a_condition_that_cannot_be_called_is_refused(tmp_path: Path) -> None:
    with_function().save(tmp_path / "rules.json")
    with pytest.raises(gdpnet.errors.RuleError, match=r"conditions: 'gap'.*function"):
        gdpnet.load_rules(tmp_path / "rules.json", conditions={"gap": True})


# ---- files that are none -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1, 2]",
        b"null",
        b"\xff\xfe\x00",
        b'{"format": "something else", "version": 1}',
        b'{"format": "gdpnet rules"}',
        b"[" * 100_000,
    ],
    ids=["empty", "open", "list", "null", "binary", "foreign", "no version", "deep"],
)
def test_foreign_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_bytes(content)
    with pytest.raises(GDP_Error, match=r"rules\.json") as caught:
        gdpnet.load_rules(path)
    error = caught.value  # the trace of the JSON reader is not shown
    assert error.__suppress_context__ or error.__context__ is None


def test_another_version(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    conditional().save(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "version": 99}))
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"version 99 of the format.*reads versions 1 to 4"
    ):
        gdpnet.load_rules(path)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_truncated_files(part: float, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    parametric().save(path)
    content = path.read_bytes().rstrip()
    path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(gdpnet.errors.RuleError, match="not a file of rules"):
        gdpnet.load_rules(path)


def _set(*place: Any) -> Callable[[Any], None]:
    """Puts the last argument at the place that the others name."""
    *way, key, value = place

    def edit(content: Any) -> None:
        for step in way:
            content = content[step]
        content[key] = value

    return edit


def _copy(*place: Any) -> Callable[[Any], None]:
    """Repeats the member of a list that the place names."""

    def edit(content: Any) -> None:
        for step in place[:-1]:
            content = content[step]
        content.append(copy.deepcopy(content[place[-1]]))

    return edit


TREE = ("rows", 0, "bound")
NAN, INF = float("nan"), float("inf")
# The place that is named, and what was done to it.
DAMAGE: dict[str, tuple[str, Callable[[Any], None]]] = {
    "no rows": ("'rows' is missing", lambda content: content.pop("rows")),
    "an unknown entry": ("rows[0]: 'price' is not known; exp", _set("rows", 0, "price", 3)),
    "rows are no list": ("rows: expected a list", _set("rows", 3)),
    "a row is no record": ("rows[0]: expected a record", _set("rows", 0, 5)),
    "unknown function": (
        "rows[0].bound[1][1]: not an expression: '__import__'",
        _set(*TREE, [1.0, [1.0, ["__import__", ["input", 0]]]]),
    ),
    "unknown sense": ("rows[0].sense: expected '==' or '<='", _set("rows", 0, "sense", "<>")),
    "sense is a list": ("rows[0].sense: expected text", _set("rows", 0, "sense", ["=="])),
    "text for a number": ("rows[0].bound[0]: expected a number", _set(*TREE, ["much"])),
    "no bound": ("rows[0].bound: expected a number", _set(*TREE, [])),
    "true for a number": ("rows[0].bound[0]: expected a number", _set(*TREE, [True])),
    "NaN": ("rows[0].terms[0][1]: expected a finite", _set("rows", 0, "terms", [[0, NAN]])),
    "infinite": ("rows[0].terms[0][1]: expected a finite", _set("rows", 0, "terms", [[0, INF]])),
    "infinite bound": ("rows[0].bound[0]: expected a finite", _set(*TREE, [-INF])),
    "infinite multiplier": (
        "rows[0].bound[1][0]: expected a finite",
        _set(*TREE, [0.0, [INF, ["input", 0]]]),
    ),
    "infinite number in a tree": (
        "rows[0].bound[1][1][1][1]: expected a finite",
        _set(*TREE, [0.0, [1.0, ["exp", ["number", INF]]]]),
    ),
    "4000 digits": ("rows[0].bound[0]: expected a finite", _set(*TREE, [10**4000])),
    "4000 digits of an index": ("rows[0].terms[0][0]", _set("rows", 0, "terms", [[10**4000, 1]])),
    "expression twice": (
        "rows[0].bound[2]: the same expression",
        _set(*TREE, [0.0, [1.0, ["input", 0]], [2.0, ["input", 0]]]),
    ),
    "column out of range": ("rows[0].terms[0][0]: there is no", _set("rows", 0, "terms", [[7, 1]])),
    "negative column": ("rows[0].terms[0][0]: there is no", _set("rows", 0, "terms", [[-1, 1.0]])),
    "column 0.9": ("rows[0].terms[0][0]: expected a whole", _set("rows", 0, "terms", [[0.9, 1.0]])),
    "column true": ("rows[0].terms[0][0]: expected a whole", _set("rows", 0, "terms", [[True, 1]])),
    "column without coefficient": ("rows[0].terms[0]: exp", _set("rows", 0, "terms", [[0]])),
    "column twice": ("rows[0].terms[2]: column 0 stands twice", _copy("rows", 0, "terms", 0)),
    "input out of range": (
        "rows[0].bound[1][1][1]: there is no input 9",
        _set(*TREE, [1.0, [1.0, ["input", 9]]]),
    ),
    "operator without arguments": (
        "rows[0].bound[1][1]: wrong number of arguments of 'sum': 0",
        _set(*TREE, [1.0, [1.0, ["sum"]]]),
    ),
    "function of two": (
        "rows[0].bound[1][1]: wrong number of arguments of 'exp': 2",
        _set(*TREE, [1.0, [1.0, ["exp", ["input", 0], ["input", 1]]]]),
    ),
    "number for a condition": ("conditions[0].tree: not", _set("conditions", 0, "tree", ["input"])),
    "condition out of range": ("clauses[0].conditions[0]", _set("clauses", 0, "conditions", [5])),
    "condition without owner": ("conditions[0].owner", _set("conditions", 0, "owner", None)),
    "literal out of range": ("clauses[0].literals[1]", _set("clauses", 0, "literals", [1, 99])),
    "literal zero": ("clauses[0].literals[0]", _set("clauses", 0, "literals", [0])),
    "no literals": ("clauses[0].literals: expected the disj", _set("clauses", 0, "literals", [])),
    "negative literals": ("clauses[0].literals: exp", _set("clauses", 0, "literals", [-1, -2])),
    "literal in two clauses": ("clauses[1].literals: disj", _set("clauses", 1, "literals", [1])),
    "guard out of range": ("clauses[0].guard: there is no", _set("clauses", 0, "guard", 99)),
    "guard -2": ("clauses[0].guard: there is no", _set("clauses", 0, "guard", -2)),
    "guard of its own": ("clauses[0].guard: expected a disj", _set("clauses", 0, "guard", 0)),
    "xor is text": ("clauses[2].xor: expected true or", _set("clauses", 2, "xor", "false")),
    "xor is 0": ("clauses[2].xor: expected true or false", _set("clauses", 2, "xor", 0)),
    "xor without its flag": ("clauses[2]: 'xor' is missing", lambda c: c["clauses"][2].pop("xor")),
    "kind is no text": ("clauses[0]: expected a record with 'kind'", _set("clauses", 0, "kind", 1)),
    "kind is missing": ("rows[0]: expected a rec", lambda c: c["rows"][0].pop("kind")),
    "logic over untied": ("clauses[0].literals: logic names", lambda c: (
        c["clauses"][0].pop("xor"), _set("clauses", 0, "kind", "proposition")(c))),
    "source of two rules": ("clauses[1]: source 0 is a rule", _set("clauses", 1, "source", 0)),
    "source -1": ("rows[0].source: expected a number from 0", _set("rows", 0, "source", -1)),
    "bound of two": ("rows[0]: role 'upper' needs a global row", _set("rows", 0, "role", "upper")),
    "link of two": ("rows[0]: role 'link' needs a row column", _set("rows", 0, "role", "link")),
    "helper is text": ("booleans[0].helper: expected true", _set("booleans", 0, "helper", "no")),
    "integer is text": ("columns[0].integer: expected", _set("columns", 0, "integer", "false")),
    "integer of a half": ("columns[0].bounds: an integer", _set("columns", 0, {
        "name": "y[0]", "bounds": [0.5, 3.0], "integer": True})),
    "rows of an untied boolean": ("booleans[0].tied: exp", _set("booleans", 0, "false", [0])),
    "row of a boolean out of range": ("booleans[0].true[0]", _set("booleans", 0, "true", [1000])),
    "global row out of range": ("global_rows[0]: there is no row", _set("global_rows", [1000])),
    "clause of a rule out of range": ("rules[0].clause: there is", _set("rules", 0, "clause", 77)),
    "clause of two rules": ("rules[1].clause: it is no rule", _set("rules", 1, "clause", 0)),
    "a rule is missing": ("rules: clause 0 is a Disjunction", lambda c: c["rules"].pop(0)),
    "positions too few": ("rules[0].positions: expected one", _set("rules", 0, "positions", [])),
    "positions equal": ("rules[0].positions: exp", lambda c: c["rules"][0].update(
        positions=[0] * len(c["rules"][0]["positions"]))),
    "too many outputs": ("outputs: there is no number of outputs 9", _set("outputs", 9)),
    "no outputs": ("outputs: expected at least one", _set("outputs", 0)),
    "outputs 1.7": ("outputs: expected a whole number, got 1.7", _set("outputs", 1.7)),
    "name is no text": ("columns[0].name: expected text", _set("columns", 0, "name", 4)),
    "column named twice": ("columns[1].name: 'y[0]' is there", _set("columns", 1, "name", "y[0]")),
    "bounds crossed": ("columns[0].bounds: the lower", _set("columns", 0, "bounds", [3.0, 2.0])),
    "bounds without end": ("columns[0].bounds: exp", _set("columns", 0, "bounds", [3.0])),
    "bounds NaN": ("columns[0].bounds[0]: exp", _set("columns", 0, "bounds", [NAN, 2.0])),
    "input bounds crossed": ("inputs[0].bounds: the low", _set("inputs", 0, "bounds", [3.0, 2.0])),
}  # fmt: skip


def _clause(kind: str, **entries: Any) -> Callable[[Any], None]:
    """Changes the first clause of a kind."""
    return lambda content: next(c for c in content["clauses"] if c["kind"] == kind).update(entries)


def _role(old: str, new: str) -> Callable[[Any], None]:
    return lambda content: [r.update(role=new) for r in content["rows"] if r["role"] == old]


def _without(kind: str) -> Callable[[Any], None]:
    return lambda content: content.update(
        clauses=[c for c in content["clauses"] if c["kind"] != kind]
    )


# What roles and kinds say has to fit: a problem of the bank, what is said, and what was done.
MISFITS: dict[str, tuple[str, str, Callable[[Any], None]]] = {
    "xor unsaid": ("exactly", "clauses[0]: its 'xor', and", _clause("disjunction", xor=False)),
    "xor alone": ("exactly", "clauses[0]: its 'xor', and the clauses", _without("xor")),
    "pair of another": ("exactly", "kind 'xor' does not fit", _clause("xor", source=77)),
    "fixed to false": ("fixed_boolean", "kind 'fixed' does not", _clause("fixed", literals=[-6])),
    "twin of its own": ("nested_in_logic", "kind 'twin' does", _clause("twin", literals=[-4, 4])),
    "proposition of a rule": ("exactly", "source 0 is a rule", _clause("proposition", source=0)),
    "two rules": ("exactly", "source 1 is a rule already", _clause("disjunction", source=1)),
    "xor of a constraint": ("conditions", "'xor' is not known", _clause("conditional", xor=True)),
    "no condition": ("conditions", "needs one literal, and", _clause("conditional", conditions=[])),
    "crossed bounds": ("bounds_from_inputs", "role 'lower' needs a gl", _role("upper", "lower")),
    "no link": ("binary_of_indicator", "expected one row 'link'", _role("link", "constraint")),
}


@pytest.mark.parametrize("name", MISFITS)
def test_roles_and_kinds_have_to_fit(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    problem, place, edit = MISFITS[name]
    rules = BY_NAME[problem].rules()
    functions = {c.owner: c.function for c in rules.data.conditions if c.tree is None}
    rules.save(path)
    assert gdpnet.load_rules(path, conditions=functions).data == rules.data
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(gdpnet.errors.RuleError, match="the file is damaged: ") as caught:
        gdpnet.load_rules(path, conditions=functions)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("place", "edit"),
    [
        ("the section 'prices' is not known", _set("prices", [])),
        (r"rows[0].kind: 'conic' is not known (known: linear)", _set("rows", 0, "kind", "conic")),
        ("rows[0].role: 'price' is not known (known: const", _set("rows", 0, "role", "price")),
        ("clauses[0].kind: 'count' is not known (known: dis", _set("clauses", 0, "kind", "count")),
    ],
    ids=["section", "row", "role", "clause"],
)
def test_what_a_newer_gdpnet_wrote(place: str, edit: Callable[[Any], None], tmp_path: Path) -> None:
    """Additions are refused by name: they are no damage, and are not passed over."""
    path = tmp_path / "rules.json"
    conditional().save(path)
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(
        gdpnet.errors.RuleError, match="A newer gdpnet wrote the file: update"
    ) as caught:
        gdpnet.load_rules(path)
    assert f"rules.json: {place}" in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    conditional().save(path)
    content = json.loads(path.read_text())
    place, edit = DAMAGE[name]
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"rules\.json: the file is damaged: "
    ) as caught:
        gdpnet.load_rules(path)
    assert f"damaged: {place}" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert caught.value.__suppress_context__


def test_rules_nested_in_each_other_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    nested().save(path)
    content = json.loads(path.read_text())
    outer, inner = content["clauses"]
    assert inner["guard"] + 1 in outer["literals"]
    outer["guard"] = inner["literals"][0] - 1
    path.write_text(json.dumps(content))
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"clauses\[0\]\.guard: expected a disjunct of an e"
    ):
        gdpnet.load_rules(path)


@pytest.mark.parametrize("version", [True, 1.0, "1", None, [1]])
def test_versions_of_another_type(version: Any, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    conditional().save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": version}))
    with pytest.raises(
        gdpnet.errors.RuleError, match="of the format; this gdpnet reads versions 1 to 4"
    ):
        gdpnet.load_rules(path)


@pytest.mark.parametrize(
    ("found", "put"),
    [
        ('"outputs": 2', '"outputs": ' + "9" * 200_000),
        ('"outputs": 2', '"outputs": 2, "outputs": 1'),
        ('"outputs": 2', '"outputs": 2,, '),
    ],
    ids=["digits", "twice", "comma"],
)
def test_text_that_is_no_json(found: str, put: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    conditional().save(path)
    text = path.read_text()
    assert found in text
    path.write_text(text.replace(found, put))
    with pytest.raises(gdpnet.errors.RuleError, match="not a file of rules") as caught:
        gdpnet.load_rules(path)
    assert len(str(caught.value)) < 400


def test_trees_that_are_too_deep_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    conditional().save(path)
    content = json.loads(path.read_text())
    tree: Any = ["input", 0]
    for _ in range(300):
        tree = ["exp", tree]
    content["rows"][0]["bound"] = [1.0, [1.0, tree]]
    path.write_text(json.dumps(content))
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"rows\[0\]\.bound.*nested more than 100 deep"
    ):
        gdpnet.load_rules(path)


def test_a_small_file_makes_no_large_table(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    conditional().save(path)
    content = json.loads(path.read_text())
    content["columns"] = [
        {"name": f"y{k}", "bounds": [0, 1], "integer": False} for k in range(30_000)
    ]
    content["rows"] += [content["rows"][0]] * 30_000
    path.write_text(json.dumps(content))
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"rules\.json: 300\d\d rows and 30000 columns.*GB"
    ):
        gdpnet.load_rules(path)


def test_a_large_model_makes_no_large_table() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(12_000), bounds=(0, 1))
    m.c = pyo.Constraint(range(12_000), rule=lambda m, i: m.y[i] <= 0.5)
    with pytest.raises(
        gdpnet.errors.RuleError, match=r"model: 12000 rows and 12000 columns make a table"
    ):
        gdpnet.RuleModel(m, outputs=[m.y])


# ---- any damage ----------------------------------------------------------------------------------

VALUES = [
    *(None, True, False, 0, 1, -1, 2, 7, 0.5, 1.7, NAN, INF, -INF, 10**400, "", "false", "=="),
    *("function", [], [0], [1], [-1], [1, 2], [[0, 1.0]], {}, {"name": "y"}),
]


def places(content: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        content.items() if isinstance(content, dict)
        else enumerate(content) if isinstance(content, list) else ()
    )  # fmt: skip
    found = [place] if place else []
    return found + [p for key, value in inner for p in places(value, (*place, key))]


def changed(content: Any, rng: random.Random) -> None:
    """Puts something in the place of something, or takes it away, or doubles it."""
    *way, key = rng.choice(places(content))
    for step in way:
        content = content[step]
    kind = rng.randrange(4)
    if kind == 0:
        del content[key]
    elif kind == 1 and isinstance(content, list):
        content.insert(key, copy.deepcopy(rng.choice(content)))
    elif kind == 2 and isinstance(content[key], int | float):
        content[key] += rng.choice([1, -1, 0.5])
    else:
        content[key] = copy.deepcopy(rng.choice(VALUES))


@pytest.mark.parametrize("name", MODELS)
def test_any_damage_is_refused_or_read_as_it_stands(name: str, tmp_path: Path) -> None:
    path, again = tmp_path / "rules.json", tmp_path / "again.json"
    MODELS[name]().save(path)
    original = path.read_text()
    rng = random.Random(name)
    refused = 0
    x, y = data()
    for _ in range(400):
        content = json.loads(original)
        for _ in range(rng.choice([1, 1, 2])):
            changed(content, rng)
        path.write_text(json.dumps(content))
        try:
            rules = gdpnet.load_rules(path)
        except gdpnet.errors.RuleError:
            refused += 1
            continue
        # Nothing was left out, guessed or turned into something else.
        rules.save(again)
        assert json.loads(again.read_text()) == content
        try:
            if len(rules.output_names) == 2 and len(rules.input_names) == 2:
                rules.active(x)
                assert repr(rules)
                p = gdpnet.project(rules, y[:1], x[:1], time_limit=1)
                if p.status.item() in (gdpnet.Status.SATISFIED, gdpnet.Status.PROJECTED):
                    assert bool(rules.satisfied(p.y, x[:1]).all())
        except gdpnet.GdpnetError:
            continue
    assert 200 < refused < 400


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        gdpnet.load_rules(tmp_path / "nothing.json")


# ---- copies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("used", [False, True])
def test_pickle_and_deepcopy(name: str, used: bool) -> None:
    rules = MODELS[name]()
    x, y = data()
    if used:  # what is computed on the way does not get in the way
        rules.satisfied(y[:2], x[:2])
        assert rules.names
        assert rules.auxiliary_names == (("a", "n") if name == "auxiliaries" else ())
    assert copy.deepcopy(rules) is rules  # nothing in it ever changes
    for other in (pickle.loads(pickle.dumps(rules)), copy.copy(rules)):
        assert other is not rules
        assert other.fingerprint == rules.fingerprint
        assert repr(other) == repr(rules)
        assert torch.equal(other.active(x), rules.active(x))
        assert torch.equal(other.satisfied(y[:2], x[:2]), rules.satisfied(y[:2], x[:2]))


def test_a_named_function_is_copied_too() -> None:
    rules = with_function()
    for other in (copy.deepcopy(rules), pickle.loads(pickle.dumps(rules))):
        assert other.active([[0.4]]).tolist() == [[True, True]]


def test_fingerprint_sees_every_change() -> None:
    def build(bound: float = 3, when: float = 0.5, name: str = "r", top: float = 10) -> str:
        m = pyo.ConcreteModel()
        m.p = pyo.Param(mutable=True)
        m.y = pyo.Var(bounds=(0, top))
        rule = gdpnet.rule(gdpnet.any_of(m.y <= bound, m.y >= 7), when=m.p >= when)
        m.add_component(name, rule)
        return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.p]).fingerprint

    assert build() == build()
    different = {build(), build(bound=3.5), build(when=0.6), build(name="s"), build(top=11)}
    assert len(different) == 5
