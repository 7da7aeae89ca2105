"""Rules in files: the same answers after a round trip, without Pyomo, and clear refusals."""

from __future__ import annotations

import copy
import json
import pickle
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
        "satisfied": rules.satisfied(x, y).tolist(),
        "violation": rules.violation(x, y).tolist(),
        "global_violation": rules.global_violation(x, y).tolist(),
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
        "satisfied": rules.satisfied(x, y).tolist(),
        "violation": rules.violation(x, y).tolist(),
        "global_violation": rules.global_violation(x, y).tolist(),
        "y": p.y.tolist(),
        "distance": p.distance.tolist(),
        "status": p.status.tolist(),
        "disjunct": p.disjunct.tolist(),
    }
try:
    gdpnet.load_rules("no such rules", conditions=3)
except OSError:
    pass
assert issubclass(gdpnet.RuleError, Exception)
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
    with pytest.raises(gdpnet.RuleError, match=r"condition of 'gap'.*conditions=\{'gap'"):
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
    with pytest.raises(gdpnet.RuleError, match=f"conditions: {name} needs none"):
        gdpnet.load_rules(tmp_path / "rules.json", conditions={"gap": warm, name: warm})


def test_a_condition_that_cannot_be_called_is_refused(tmp_path: Path) -> None:
    with_function().save(tmp_path / "rules.json")
    with pytest.raises(gdpnet.RuleError, match=r"conditions: 'gap'.*function"):
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
    with pytest.raises(gdpnet.RuleError, match=r"version 99 of the format.*reads version 1"):
        gdpnet.load_rules(path)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_truncated_files(part: float, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    parametric().save(path)
    content = path.read_bytes().rstrip()
    path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(gdpnet.RuleError, match="not a file of rules"):
        gdpnet.load_rules(path)


def _set(*place: Any) -> Callable[[Any], None]:
    """Puts the last argument at the place that the others name."""
    *way, key, value = place

    def edit(content: Any) -> None:
        for step in way:
            content = content[step]
        content[key] = value

    return edit


DAMAGE: dict[str, Callable[[Any], None]] = {
    "no rows": lambda content: content.pop("rows"),
    "rows are no list": _set("rows", 3),
    "a row is no record": _set("rows", 0, 5),
    "unknown function": _set("rows", 0, "bound", [1.0, [1.0, ["__import__", ["input", 0]]]]),
    "unknown sense": _set("rows", 0, "sense", "<>"),
    "text for a number": _set("rows", 0, "bound", ["much"]),
    "column out of range": _set("rows", 0, "terms", [[7, 1.0]]),
    "negative column": _set("rows", 0, "terms", [[-1, 1.0]]),
    "input out of range": _set("rows", 0, "bound", [1.0, [1.0, ["input", 9]]]),
    "operator without arguments": _set("rows", 0, "bound", [1.0, [1.0, ["sum"]]]),
    "function of two": _set("rows", 0, "bound", [1.0, [1.0, ["exp", ["input", 0], ["input", 1]]]]),
    "number for a condition": _set("conditions", 0, "tree", ["input", 0]),
    "condition out of range": _set("clauses", 0, "conditions", [5]),
    "literal out of range": _set("clauses", 0, "literals", [1, 99]),
    "literal zero": _set("clauses", 0, "literals", [0]),
    "guard out of range": _set("clauses", 0, "guard", 99),
    "row of a boolean out of range": _set("booleans", 0, "true", [1000]),
    "global row out of range": _set("global_rows", [1000]),
    "clause of a rule out of range": _set("rules", 0, "clause", 77),
    "positions too few": _set("rules", 0, "positions", []),
    "too many outputs": _set("outputs", 9),
    "no outputs": _set("outputs", 0),
    "name is no text": _set("columns", 0, "name", 4),
    "bounds crossed": _set("columns", 0, "bounds", [3.0, 2.0]),
    "bounds without end": _set("columns", 0, "bounds", [3.0]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    conditional().save(path)
    content = json.loads(path.read_text())
    DAMAGE[name](content)
    path.write_text(json.dumps(content))
    with pytest.raises(gdpnet.RuleError, match=r"rules\.json: the file is damaged") as caught:
        gdpnet.load_rules(path)
    assert caught.value.__suppress_context__


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
        rules.satisfied(x[:2], y[:2])
        assert rules.names
        assert rules.auxiliary_names == (("a", "n") if name == "auxiliaries" else ())
    assert copy.deepcopy(rules) is rules  # nothing in it ever changes
    for other in (pickle.loads(pickle.dumps(rules)), copy.copy(rules)):
        assert other is not rules
        assert other.fingerprint == rules.fingerprint
        assert repr(other) == repr(rules)
        assert torch.equal(other.active(x), rules.active(x))
        assert torch.equal(other.satisfied(x[:2], y[:2]), rules.satisfied(x[:2], y[:2]))


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
