"""Pyomo's own GDP test models: read rightly, or refused with a reason."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pyomo.environ as pyo
import pyomo.gdp.tests.models as source
import pytest
import torch
from pyomo.gdp import Disjunct, GDP_Error
from pyomo.version import version

import gdpnet
from gdpnet import Status
from gdpnet.testing import oracles

READ = "read"
CONVEX = "read, with convex rows"
SENSE = "refused: it is convex as <=, not as "
SADDLE = "refused: makes it neither convex nor concave"
TWICE = "refused: A Disjunct belongs to one Disjunction"
HELPER = "no model: it adds to one"

TABLE = {
    "add_disj_not_on_block": HELPER,
    "fourCircles": CONVEX,
    "grossmann_oneDisj": READ,
    "grossmann_twoDisj": READ,
    "instantiate_hierarchical_nested_model": HELPER,
    "localVar": READ,
    "makeAnyIndexedDisjunctionOfDisjunctDatas": READ,
    "makeBetweenStepsPaperExample": CONVEX,
    "makeBetweenStepsPaperExample_DeclareVarOnDisjunct": CONVEX,
    "makeBetweenStepsPaperExample_Nested": CONVEX,
    "makeBooleanVarsOnDisjuncts": READ,
    "makeDisjunctInMultipleDisjunctions": TWICE,
    "makeDisjunctWithExpression": READ,
    "makeDisjunctWithRangeSet": READ,
    "makeDisjunctionOfDisjunctDatas": READ,
    "makeDisjunctionsOnIndexedBlock": READ,
    "makeDuplicatedNestedDisjunction": TWICE,
    "makeExpandedNetworkDisjunction": READ,
    "makeHierarchicalNested_DeclOrderMatchesInstantiationOrder": CONVEX,
    "makeHierarchicalNested_DeclOrderOppositeInstantiationOrder": CONVEX,
    "makeIndexedDisjunction_SkipIndex": READ,
    "makeLogicalConstraintsOnDisjuncts": READ,
    "makeLogicalConstraintsOnDisjuncts_NonlinearConvex": CONVEX,
    "makeNestedDisjunctions": READ,
    "makeNestedDisjunctions_FlatDisjuncts": READ,
    "makeNestedDisjunctions_NestedDisjuncts": READ,
    "makeNestedNonlinearModel": CONVEX,
    "makeNetworkDisjunction": "refused: is an Arc, which gdpnet does not understand",
    "makeNonQuadraticNonlinearGDP": "refused: is a function of what is not linear",
    "makeThreeTermDisj_IndexedConstraints": READ,
    "makeThreeTermDisjunctionWithOneVarInOneDisjunct": READ,
    "makeThreeTermIndexedDisj": READ,
    "makeTrivialGDP": "refused: expected at least one Var",
    "makeTwoSimpleDisjunctions": READ,
    "makeTwoTermDisj": READ,
    "makeTwoTermDisjOnBlock": READ,
    "makeTwoTermDisj_AllZeroEigenvalueQuad": CONVEX,
    "makeTwoTermDisj_AllZeroEigenvalueQuadRange": SENSE,
    "makeTwoTermDisj_BilinearFixedX": READ,
    "makeTwoTermDisj_BlockOnDisj": READ,
    "makeTwoTermDisj_ConvexQuadCrossProduct": CONVEX,
    "makeTwoTermDisj_ConvexQuadLB": CONVEX,
    "makeTwoTermDisj_ConvexQuadUB": CONVEX,
    "makeTwoTermDisj_ConvexQuadUB_FixedX": CONVEX,
    "makeTwoTermDisj_ConvexQuad_LinearTerms": CONVEX,
    "makeTwoTermDisj_IndexedConstraints": READ,
    "makeTwoTermDisj_IndexedConstraints_BoundedVars": READ,
    "makeTwoTermDisj_IndexedQuadEq": SENSE,
    "makeTwoTermDisj_IndexedQuadLB": CONVEX,
    "makeTwoTermDisj_IndexedQuadUB": CONVEX,
    "makeTwoTermDisj_NearPSDQuad": SADDLE,
    "makeTwoTermDisj_NonconvexQuad": SADDLE,
    "makeTwoTermDisj_NonconvexQuadCrossProduct": SADDLE,
    "makeTwoTermDisj_NonconvexQuad_LinearTerms": SADDLE,
    "makeTwoTermDisj_Nonlinear": CONVEX,
    "makeTwoTermDisj_QuadEquality": SENSE,
    "makeTwoTermDisj_QuadMutableParam": CONVEX,
    "makeTwoTermDisj_QuadRange": SENSE,
    "makeTwoTermDisj_boxes": READ,
    "makeTwoTermIndexedDisjunction": READ,
    "makeTwoTermIndexedDisjunction_BoundedVars": READ,
    "makeTwoTermMultiIndexedDisjunction": READ,
    "make_indexed_equality_model": READ,
    "make_infeasible_gdp_model": SENSE,
    "make_non_nested_model_declaring_Disjuncts_on_each_other": READ,
    "oneVarDisj_2pts": READ,
    "to_break_constraint_tolerances": READ,
    "twoDisj_twoCircles_easy": CONVEX,
    "twoSegments_SawayaGrossmann": READ,
    "why_indicator_vars_are_not_always_local": READ,
}

REACH = 50.0
# Models that use the binary of an indicator through Pyomo's deprecated conversion.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pyomo.*")


def functions() -> dict[str, FunctionType]:
    return {
        name: value
        for name, value in vars(source).items()
        if isinstance(value, FunctionType) and value.__module__ == source.__name__
    }


def built(build: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """The model with bounds on every Var, and its outputs: the Vars outside Disjuncts."""
    model = build()
    for var in model.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct)):
        if var.lb is None:
            var.setlb(-REACH)
        if var.ub is None:
            var.setub(REACH)
    outputs = list(model.component_data_objects(pyo.Var, descend_into=pyo.Block))
    if not outputs:
        binaries = {
            id(d.binary_indicator_var)
            for d in model.component_data_objects(Disjunct, descend_into=(pyo.Block, Disjunct))
        }
        every = model.component_data_objects(pyo.Var, descend_into=(pyo.Block, Disjunct))
        outputs = [v for v in every if id(v) not in binaries]
    return model, outputs


def test_table_names_every_model_of_this_pyomo() -> None:
    found = functions()
    known = [name for name in TABLE if name in found]
    assert [n for n in known if needs_a_model(found[n])] == [n for n in known if TABLE[n] == HELPER]
    # Another Pyomo may have other models; those of 6.10.1 are all in the table.
    assert len(known) >= 60
    if version == "6.10.1":
        assert set(found) == set(TABLE)


def needs_a_model(function: FunctionType) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.default is inspect.Parameter.empty for p in parameters)


@pytest.mark.parametrize("name", [n for n, v in TABLE.items() if v.startswith("refused")])
def test_refused(name: str) -> None:
    build = functions().get(name)
    if build is None:
        pytest.skip("this Pyomo does not have it")
    model, outputs = built(build)
    with pytest.raises(gdpnet.errors.RuleError) as caught:
        gdpnet.RuleModel(model, outputs=outputs)
    assert TABLE[name].removeprefix("refused: ") in str(caught.value)


def choices(model: Any, outputs: list[Any]) -> dict[str, list[Any]]:
    """Outputs to try: all, those that are continuous, and the largest Var alone."""
    found = {"all": outputs}
    continuous = [v for v in outputs if v.is_continuous()]
    if 0 < len(continuous) < len(outputs):
        found["continuous"] = continuous
    sizes: dict[int, list[Any]] = {}
    for variable in continuous:
        sizes.setdefault(id(variable.parent_component()), []).append(variable)
    largest = max(sizes.values(), key=len, default=[])
    if 0 < len(largest) < len(outputs):
        found["largest"] = largest
    return found


@pytest.mark.parametrize("name", [n for n, v in TABLE.items() if v == READ])
def test_read_as_pyomo_reads_it(name: str) -> None:
    build = functions().get(name)
    if build is None:
        pytest.skip("this Pyomo does not have it")
    model, outputs = built(build)
    for chosen in choices(model, outputs).values():
        rules = gdpnet.RuleModel(model, outputs=chosen)
        yhat = predictions(rules, len(name))
        names = [var.name for var in chosen]
        wanted = [oracles.pyomo_distance(model, names, row, reach=REACH) for row in yhat.tolist()]
        for solver in ("auto", "milp"):
            p = gdpnet.project(rules, yhat, solver=solver)
            assert p.distance.tolist() == pytest.approx(wanted, abs=1e-6)
            infeasible = p.status == Status.CONFLICT
            assert (rules.satisfied(p.y, tol=1e-7) ^ infeasible).all()


def predictions(rules: gdpnet.RuleModel, seed: int) -> torch.Tensor:
    """Around the box of the outputs, a few of them outside."""
    generator = torch.Generator().manual_seed(seed)
    low, high = rules.lower.clamp(-REACH, REACH), rules.upper.clamp(-REACH, REACH)
    spread = torch.rand(4, len(low), generator=generator, dtype=torch.float64)
    return low + (high - low) * (1.2 * spread - 0.1)


def test_the_outputs_that_are_tried_differ() -> None:
    found = functions()
    tried: set[str] = set()
    for name, verdict in TABLE.items():
        if verdict == READ and name in found:
            tried.update(choices(*built(found[name])))
    assert tried >= {"all", "largest"}


def test_models_that_are_not_in_the_table_do_not_crash() -> None:
    for name, build in functions().items():
        if name in TABLE or needs_a_model(build):
            continue
        model, outputs = built(build)
        try:
            rules = gdpnet.RuleModel(model, outputs=outputs)
        except GDP_Error:
            continue
        assert len(rules.output_names) == len(outputs)
