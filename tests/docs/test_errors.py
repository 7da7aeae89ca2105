"""docs/errors.md quotes real messages: each is provoked here and looked up there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunct, Disjunction

import gdpnet
import gdpnet.errors
from gdpnet.errors import MissingPackageError
from gdpnet.lp import gurobi
from gdpnet.solve import registry
from gdpnet.study import load_model

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
QUOTATION = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def normal(text: str) -> str:
    """In one line; fingerprints, which change with the format of files, made equal."""
    return re.sub(r"[0-9a-f]{12}\.\.\.", "...", " ".join(text.split()))


QUOTED = [
    (heading.strip("`"), normal(quotation))
    for heading, section in SECTION.findall(PAGE)
    for quotation in QUOTATION.findall(section)
]


def cooling() -> Any:
    m = pyo.ConcreteModel()
    m.Ta = pyo.Param(mutable=True, initialize=20.0)
    m.f = pyo.Var(bounds=(0, 1))
    m.c = pyo.Var(bounds=(0, 1))
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    return m


def read(m: Any) -> gdpnet.RuleModel:
    return gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.Ta])


def hot_rules() -> gdpnet.RuleModel:
    m = cooling()
    m.hot = Disjunction(expr=[[m.c >= 0.45], [m.f >= 0.75]])
    m.active_when[m.hot] = m.Ta >= 28
    return read(m)


def gap() -> Any:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    return m


def gap_rules() -> gdpnet.RuleModel:
    m = gap()
    return gdpnet.RuleModel(m, outputs=[m.y])


X = torch.tensor([[30.0]])
YHAT = torch.tensor([[0.6, 0.1]])


# ---- reading rules -----------------------------------------------------------------------


def not_convex() -> None:
    m = cooling()
    m.power = pyo.Constraint(expr=m.f * m.c <= 0.5)
    read(m)


def convex_with_another_sense() -> None:
    m = cooling()
    m.far = pyo.Constraint(expr=m.f**2 + m.c**2 >= 0.5)
    read(m)


def sign_not_known() -> None:
    m = cooling()
    m.t = pyo.Param(mutable=True, initialize=1.0)
    m.weighted = pyo.Constraint(expr=m.t * pyo.sqrt(m.f**2 + m.c**2) <= 0.5)
    gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.t])


def condition_on_an_output() -> None:
    m = cooling()
    m.hot = Disjunction(expr=[[m.c >= 0.45], [m.f >= 0.75]])
    m.active_when[m.hot] = m.f >= 0.2
    read(m)


def condition_without_effect() -> None:
    m, other = cooling(), cooling()
    other.least = pyo.Constraint(expr=other.f >= 0.2)
    m.active_when[other.least] = m.Ta >= 28
    read(m)


def immutable_input() -> None:
    m = cooling()
    m.H = pyo.Param(initialize=50.0)
    gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.H])


def integer_without_bounds() -> None:
    m = cooling()
    m.n = pyo.Var(domain=pyo.Integers)
    m.many = pyo.Constraint(expr=m.n >= m.f)
    read(m)


def shared_disjunct() -> None:
    m = cooling()
    m.on, m.off, m.low = Disjunct(), Disjunct(), Disjunct()
    m.first = Disjunction(expr=[m.on, m.off])
    m.second = Disjunction(expr=[m.on, m.low])
    read(m)


def idle_disjunct() -> None:
    m = cooling()
    m.on = Disjunct()
    m.on.c = pyo.Constraint(expr=m.c >= 0.4)
    read(m)


def unknown_component() -> None:
    from pyomo.mpec import Complementarity, complements

    m = cooling()
    m.either = Complementarity(expr=complements(m.f >= 0, m.c >= 0))
    read(m)


def unexpanded_arc() -> None:
    from pyomo.network import Arc, Port

    m = cooling()
    m.left, m.right = Port(initialize=[m.f]), Port(initialize=[m.c])
    m.pipe = Arc(source=m.left, destination=m.right)
    read(m)


def transformed() -> None:
    m = gap()
    m.name = "plant"
    pyo.TransformationFactory("gdp.bigm").apply_to(m)
    gdpnet.RuleModel(m, outputs=[m.y])


def deep_expression() -> None:
    m = cooling()
    level = m.Ta
    for _ in range(200):
        level = pyo.sin(level)
    m.top = pyo.Constraint(expr=m.f <= level)
    read(m)


def damaged_file() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        hot_rules().save("rules.json")
        content = json.loads(Path("rules.json").read_text(encoding="utf-8"))
        content["rows"][0]["bound"] = [float("nan")]
        Path("rules.json").write_text(json.dumps(content), encoding="utf-8")
        gdpnet.load_rules("rules.json")


def newer_file() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        hot_rules().save("rules.json")
        content = json.loads(Path("rules.json").read_text(encoding="utf-8"))
        content["rows"][0]["kind"] = "conic"
        Path("rules.json").write_text(json.dumps(content), encoding="utf-8")
        gdpnet.load_rules("rules.json")


def strict_relation() -> None:
    m = cooling()
    m.r = gdpnet.rule(gdpnet.any_of(m.f < 0.5, m.c >= 0.5))


def negated_equality() -> None:
    m = cooling()
    m.r = gdpnet.rule(gdpnet.none_of(m.f == 0.5))


def python_or() -> None:
    m = cooling()
    m.r = gdpnet.rule(gdpnet.all_of(m.f >= 0.5) or gdpnet.all_of(m.c >= 0.5))


def function_condition_not_saved(folder: Path) -> None:
    m = cooling()
    m.hot = Disjunction(expr=[[m.c >= 0.45], [m.f >= 0.75]])
    m.active_when[m.hot] = lambda x: x[:, 0] >= 28
    read(m).save("rules.json")
    gdpnet.load_rules("rules.json")


# ---- relaxations -------------------------------------------------------------------------


def hull_without_bounds() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var()
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [4.5], relaxation="cnf")


def many_rules(count: int, disjuncts: int) -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(disjuncts), bounds=(0, 1))
    m.some = Disjunction(
        range(count), rule=lambda m, k: [[m.y[j] >= (k + 1) / (count + 1)] for j in m.y]
    )
    return gdpnet.RuleModel(m, outputs=[m.y])


def too_many_products() -> None:
    gdpnet.project(many_rules(12, 4), torch.zeros(1, 4), solver="highs")


def unknown_rule_in_plan() -> None:
    gdpnet.project(hot_rules(), YHAT, X, relaxation=gdpnet.Plan((("hot", "cold"),)))


def plan_with_whole_numbers() -> None:
    m = gap()
    m.n = pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    gdpnet.plan.choose(gdpnet.RuleModel(m, outputs=[m.y, m.n]))


# ---- arguments ---------------------------------------------------------------------------


def missing_x() -> None:
    gdpnet.project(hot_rules(), YHAT)


def wrong_width() -> None:
    gdpnet.project(hot_rules(), torch.zeros(4, 3), X)


def missing_dimension() -> None:
    gdpnet.project(gap_rules(), torch.tensor([4.5, 8.0]))


def integers() -> None:
    gdpnet.project(hot_rules(), torch.tensor([[1, 0]]), X)


def not_a_number() -> None:
    gdpnet.project(hot_rules(), torch.tensor([[0.6, 0.1], [float("nan"), 0.1]]), X)


def unusable_coefficient() -> None:
    m = cooling()
    m.least = pyo.Constraint(expr=m.f >= 1 / m.Ta)
    gdpnet.project(read(m), torch.zeros(2, 2), torch.tensor([[20.0], [0.0]]))


def nothing_to_load() -> None:
    gdpnet.project(out_of_reach(), [[4.5]]).load_into(gap())


def unknown_choice() -> None:
    gdpnet.project(hot_rules(), YHAT, X, on_conflict="ignore")


def unknown_gradient() -> None:
    gdpnet.ProjectionLayer(hot_rules(), gradient="identity")


def solver_of_another_relaxation() -> None:
    gdpnet.project(hot_rules(), YHAT, X, relaxation="cnf", solver="exact")


def unknown_solver() -> None:
    with pytest.MonkeyPatch.context() as patch:  # without names that other tests registered
        names = ("exact", "extended", "highs", "gurobi", "clarabel", "milp", "milp:gurobi")
        known = {name: registry.BACKENDS[name] for name in names}
        patch.setattr(registry, "BACKENDS", known)
        gdpnet.project(hot_rules(), YHAT, X, solver="cplex")


class PointsOnly(gdpnet.solve.MILP):
    capabilities = gdpnet.solve.Capabilities()


def solver_without_a_derivative() -> None:
    gdpnet.ProjectionLayer(hot_rules(), gradient="vertex", solver=PointsOnly())


def strict_of_another_solver() -> None:
    gdpnet.project(hot_rules(), YHAT, X, solver="milp", strict=True)


def bad_weights() -> None:
    gdpnet.project(hot_rules(), YHAT, X, weights=[1.0, 0.0])


def other_checkpoint() -> None:
    layer = gdpnet.ProjectionLayer(gap_rules())
    gdpnet.ProjectionLayer(hot_rules()).load_state_dict(layer.state_dict())


def which_columns() -> None:
    network = torch.nn.Linear(3, 2)
    gdpnet.nn.with_rules(network, hot_rules())(torch.zeros(4, 3))


def not_the_nearest() -> None:
    gdpnet.proof.certify(gap_rules(), [4.5], y=[7.0])


# ---- contradictions, solvers, files ------------------------------------------------------


def contradiction() -> None:
    m = gap()
    m.middle = pyo.Constraint(expr=(4, m.y, 6))
    gdpnet.project(gdpnet.RuleModel(m, outputs=[m.y]), [[4.5]], on_conflict="raise")


def out_of_reach() -> gdpnet.RuleModel:
    m = gap()
    m.cover = pyo.Constraint(expr=m.y >= 20)
    return gdpnet.RuleModel(m, outputs=[m.y])


def contradictory_globals() -> None:
    gdpnet.project(out_of_reach(), [[4.5]], on_conflict="raise")


def nothing_to_break() -> None:
    gdpnet.project(out_of_reach(), [[4.5]], on_conflict="nearest")


def contradictory_program() -> None:
    m = gap()
    m.middle = pyo.Constraint(expr=(4, m.y, 6))
    gdpnet.convexify(gdpnet.RuleModel(m, outputs=[m.y]), yhat=[4.5])


def gurobi_too_small() -> None:
    pytest.importorskip("gurobipy")
    gdpnet.project(many_rules(9, 2), torch.zeros(1, 2), solver="gurobi")
    pytest.skip("this licence has no limit")


def no_core() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gdpnet.core.AVAILABLE", False)
        gdpnet.project(gap_rules(), [[4.5]], solver="exact")


def old_core(folder: Path) -> None:
    pytest.importorskip("gdpnet.core._native")
    (folder / "core" / "src").mkdir(parents=True)
    (folder / "core" / "CMakeLists.txt").touch()
    source = folder / "core" / "src" / "search.cpp"
    source.touch()
    os.utime(source, (2e9, 2e9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gdpnet.core._load._SOURCES", folder / "core")
        gdpnet.core._load.load()


def no_gurobi() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "gurobipy", None)
        gurobi.environment.cache_clear()
        gdpnet.project(gap_rules(), [[4.5]], solver="milp:gurobi")


def no_matplotlib() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib.pyplot", None)
        gdpnet.plot.plot_sizes(gap_rules())


def numbers_far_apart() -> None:
    """A part whose numbers are 1e6 apart, among more columns than are solved in decimals."""
    m = pyo.ConcreteModel()
    m.yhat = pyo.Param(range(2), mutable=True, initialize=0.0)
    m.y = pyo.Var(range(2), bounds=(0, 2e6))
    m.more = pyo.Var(range(100), bounds=(0, 1))
    m.rule = Disjunction(expr=[[m.y[0] <= 5, m.y[1] >= 1], [m.y[0] >= 1e6, m.y[1] <= 1]])
    m.eta = pyo.Var(range(2), bounds=(0, None))
    m.square = pyo.Constraint(range(2), rule=lambda m, i: (m.y[i] - m.yhat[i]) ** 2 <= m.eta[i])
    m.cost = pyo.Objective(expr=m.eta[0] + m.eta[1] + sum(m.more[i] for i in range(100)))
    pyo.TransformationFactory("gdp.hull").apply_to(m)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
    layer = gdpnet.nn.ProgramLayer(m, inputs=[m.yhat], outputs=[m.y])
    yhat = torch.tensor([[1e6, 1.5]], dtype=torch.float64, requires_grad=True)
    layer(yhat).sum().backward()


def limit_of_work() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(11), bounds=(0, 40))
    m.y = pyo.Var(range(11), bounds=(0, 5))
    long = [2.0 + 0.37 * (7 * k % 11) for k in range(11)]
    m.apart = Disjunction(
        [(i, j) for i in range(11) for j in range(i)],
        rule=lambda m, i, j: [
            [m.x[i] + long[i] <= m.x[j]],
            [m.x[j] + long[j] <= m.x[i]],
            [m.y[i] + 2.3 <= m.y[j]],
            [m.y[j] + 2.3 <= m.y[i]],
        ],
    )
    rules = gdpnet.RuleModel(m, outputs=[m.x, m.y])
    yhat = [*(9.0 + 0.3 * k for k in range(11)), *(2.0 + 0.1 * (5 * k % 11) for k in range(11))]
    solver = gdpnet.solve.Exact(node_limit=50, milp_nodes=1)
    gdpnet.project(rules, [yhat], solver=solver)


def no_torchmetrics() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torchmetrics", None)
        patch.delitem(sys.modules, "gdpnet.nn._satisfaction", raising=False)
        gdpnet.nn.RuleSatisfaction(gap_rules())


def certificate_too_large() -> None:
    gdpnet.proof.certify(many_rules(6, 3), [0.0, 0.0, 0.0], node_limit=2)


def no_file(folder: Path) -> None:
    load_model("models/colling")


def no_build(folder: Path) -> None:
    (folder / "plant.py").write_text("def make():\n    return None\n")
    load_model("plant.py")


def builds_a_pyomo_model(folder: Path) -> None:
    (folder / "plant.py").write_text(
        "import pyomo.environ as pyo\ndef build():\n    return pyo.ConcreteModel()\n"
    )
    load_model("plant.py").build()


def vanished_gradient() -> None:
    yhat = torch.tensor([[4.5]], requires_grad=True)
    gdpnet.ProjectionLayer(gap_rules(), gradient="vertex")(yhat).sum().backward()


def vanished_with_auto() -> None:
    yhat = torch.tensor([[4.5]], requires_grad=True)
    (-gdpnet.ProjectionLayer(gap_rules())(yhat)).sum().backward()


def unknown_derivative() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    m.gap = pyo.Expression(range(3), rule=lambda m, i: m.y[i] - m.y[(i + 1) % 3])
    m.apart = Disjunction(range(3), rule=lambda m, i: [[m.gap[i] >= 2], [m.gap[i] <= -2]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    layer = gdpnet.ProjectionLayer(rules, gradient="qp", solver=gdpnet.solve.Exact(node_limit=1))
    yhat = torch.tensor([[1.0, 5.0, 9.0], [5.0, 5.1, 5.2]], requires_grad=True)
    layer(yhat).sum().backward()


def traced() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, of what it makes constants of
        torch.jit.trace(gdpnet.ProjectionLayer(gap_rules()), torch.tensor([[4.5]]))


def no_core_for_a_gradient() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gdpnet.core.AVAILABLE", False)
        gdpnet.ProjectionLayer(gap_rules(), gradient="qp")


def twice_differentiated() -> None:
    yhat = torch.tensor([[4.5]], requires_grad=True)
    y = gdpnet.ProjectionLayer(gap_rules(), gradient="qp")(yhat)
    (first,) = torch.autograd.grad(y.square().sum(), yhat, create_graph=True)
    first.sum().backward()


PROVOKED: list[tuple[type[Exception], Callable[..., None]]] = [
    (gdpnet.errors.RuleError, not_convex),
    (gdpnet.errors.RuleError, convex_with_another_sense),
    (gdpnet.errors.RuleError, sign_not_known),
    (gdpnet.errors.RuleError, condition_on_an_output),
    (gdpnet.errors.RuleError, condition_without_effect),
    (gdpnet.errors.RuleError, immutable_input),
    (gdpnet.errors.RuleError, integer_without_bounds),
    (gdpnet.errors.RuleError, shared_disjunct),
    (gdpnet.errors.RuleError, idle_disjunct),
    (gdpnet.errors.RuleError, unknown_component),
    (gdpnet.errors.RuleError, unexpanded_arc),
    (gdpnet.errors.RuleError, transformed),
    (gdpnet.errors.RuleError, deep_expression),
    (gdpnet.errors.RuleError, strict_relation),
    (gdpnet.errors.RuleError, negated_equality),
    (gdpnet.errors.RuleError, python_or),
    (gdpnet.errors.RuleError, function_condition_not_saved),
    (gdpnet.errors.RuleError, damaged_file),
    (gdpnet.errors.RuleError, newer_file),
    (gdpnet.errors.RuleError, hull_without_bounds),
    (gdpnet.errors.RuleError, too_many_products),
    (gdpnet.errors.RuleError, unknown_rule_in_plan),
    (gdpnet.errors.RuleError, plan_with_whole_numbers),
    (gdpnet.errors.InputError, missing_x),
    (gdpnet.errors.InputError, wrong_width),
    (gdpnet.errors.InputError, missing_dimension),
    (gdpnet.errors.InputError, integers),
    (gdpnet.errors.InputError, not_a_number),
    (gdpnet.errors.InputError, unusable_coefficient),
    (gdpnet.errors.InputError, nothing_to_load),
    (gdpnet.errors.InputError, unknown_choice),
    (gdpnet.errors.InputError, unknown_gradient),
    (gdpnet.errors.InputError, solver_of_another_relaxation),
    (gdpnet.errors.InputError, unknown_solver),
    (gdpnet.errors.InputError, solver_without_a_derivative),
    (gdpnet.errors.InputError, strict_of_another_solver),
    (gdpnet.errors.InputError, bad_weights),
    (gdpnet.errors.InputError, other_checkpoint),
    (gdpnet.errors.InputError, which_columns),
    (gdpnet.errors.InputError, traced),
    (gdpnet.errors.InputError, not_the_nearest),
    (gdpnet.errors.ConflictError, contradiction),
    (gdpnet.errors.ConflictError, contradictory_globals),
    (gdpnet.errors.ConflictError, contradictory_program),
    (gdpnet.errors.SolverError, gurobi_too_small),
    (gdpnet.errors.SolverError, no_gurobi),
    (gdpnet.errors.SolverError, no_core),
    (gdpnet.errors.SolverError, no_core_for_a_gradient),
    (gdpnet.errors.SolverError, certificate_too_large),
    (gdpnet.errors.ModelFileError, no_file),
    (gdpnet.errors.ModelFileError, no_build),
    (gdpnet.errors.ModelFileError, builds_a_pyomo_model),
    (gdpnet.errors.CoreWarning, old_core),
    (gdpnet.errors.ConflictWarning, nothing_to_break),
    (gdpnet.errors.ZeroGradientWarning, vanished_gradient),
    (gdpnet.errors.ZeroGradientWarning, vanished_with_auto),
    (gdpnet.errors.IdentityGradientWarning, unknown_derivative),
    (gdpnet.errors.DoubtfulGradientWarning, numbers_far_apart),
    (gdpnet.errors.WorkLimitWarning, limit_of_work),
    (MissingPackageError, no_torchmetrics),
    (MissingPackageError, no_matplotlib),
    (gdpnet.errors.InputError, twice_differentiated),
]


@pytest.mark.parametrize(
    ("kind", "provoke"), PROVOKED, ids=[provoke.__name__ for _, provoke in PROVOKED]
)
def test_the_page_quotes_what_is_said(
    kind: type[Exception],
    provoke: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    takes_folder = provoke.__code__.co_argcount == 1
    with pytest.raises(kind) as caught:
        provoke(*([tmp_path] if takes_folder else []))
    said = str(caught.value).replace(str(tmp_path), "/home/me")
    assert (kind.__name__, normal(said)) in QUOTED


def test_everything_on_the_page_is_provoked() -> None:
    assert len(QUOTED) == len(set(QUOTED)) == len(PROVOKED)


def test_every_class_has_its_section() -> None:
    public = {
        name
        for name, kind in vars(gdpnet.errors).items()
        if isinstance(kind, type) and kind.__module__ == "gdpnet.errors" and name[0] != "_"
    }
    headings = {heading.strip("`") for heading, _ in SECTION.findall(PAGE)}
    assert public <= headings
