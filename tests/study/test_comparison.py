"""Comparisons, against the Pyomo LP solved sample by sample, MILP, and counting by hand."""

from __future__ import annotations

import itertools
import math
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
import torch
from pyomo.gdp import Disjunction

import gdpnet
from gdpnet import Plan, Status
from gdpnet.projection.projector import Projector
from gdpnet.study import Comparison, _relaxations, compare
from tests.relaxation._programs import sizes, value_at

SAMPLES = 24


def three_rules() -> gdpnet.RuleModel:
    """Inputs switch rules on and leave their rows alone, so products are empty always or never."""
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var([1, 2], bounds=(0, 10))
    m.low = pyo.Constraint(expr=m.y[1] + m.y[2] >= 2)
    m.a = Disjunction(expr=[[m.y[1] <= 3], [m.y[1] >= 6]])
    m.b = Disjunction(expr=[[m.y[1] <= 4], [m.y[1] >= 7]])
    m.c = Disjunction(expr=[[m.y[2] >= 8], [m.y[1] + m.y[2] <= 7]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.b] = m.t >= 1
    m.active_when[m.c] = m.t >= 2
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t], input_bounds={"t": (0, 3)})


def data() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    x = torch.arange(SAMPLES, dtype=torch.float64)[:, None] % 3
    return torch.from_numpy(rng.uniform(0, 10, (SAMPLES, 2))), x


@pytest.fixture(scope="module")
def rules() -> gdpnet.RuleModel:
    return three_rules()


@pytest.fixture(scope="module")
def found(rules: gdpnet.RuleModel) -> Comparison:
    return compare(rules, *data(), ["cnf", "pdnf:2", "plan:3", "adaptive", "dnf", "dnf:highs"])


def first_call_sleeps(function: Any, seconds: float) -> Any:
    calls = itertools.count()

    def slow(*given: Any, **keywords: Any) -> Any:
        if not next(calls):
            time.sleep(seconds)
        return function(*given, **keywords)

    return slow


@pytest.mark.parametrize("name", ["plan:3", "cnf", "adaptive", "dnf"])
def test_first_calls_are_in_no_time(
    rules: gdpnet.RuleModel, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As if something were loaded at the first call of anything, for one sample and for several."""
    yhat, x = (part[:16] for part in data())
    compare(rules, yhat, x, name)  # what is really loaded at first calls
    plan = _relaxations.choose
    monkeypatch.setattr(_relaxations, "choose", first_call_sleeps(plan, 2.0))
    calls = [first_call_sleeps(Projector.__call__, 2.0) for _ in range(2)]
    exact = itertools.count()

    def counted(self: Projector, *given: Any) -> Any:
        # The first projection of all, of so few samples, is the reference, which is not timed.
        call = calls[len(given[0]) > 1] if next(exact) else original
        return call(self, *given)

    original = Projector.__call__
    monkeypatch.setattr(Projector, "__call__", counted)
    (found,) = compare(rules, yhat, x, name).measured
    assert found.compile_seconds < 1.5
    assert found.seconds_per_sample * len(yhat) < 1.5


def row(found: Comparison, name: str) -> Any:
    return found.table.set_index("relaxation").loc[name]


def plan_of(rules: gdpnet.RuleModel, name: str) -> str | Plan:
    return Plan.lexicographic(rules, 2) if name == "pdnf:2" else name


@pytest.mark.parametrize("name", ["cnf", "pdnf:2", "dnf"])
def test_sizes_and_values_are_those_of_the_pyomo_programs(
    rules: gdpnet.RuleModel, found: Comparison, name: str
) -> None:
    yhat, x = data()
    counted, values = [], []
    for inputs, prediction in zip(x.tolist(), yhat.tolist(), strict=True):
        lp = gdpnet.convexify(rules, relaxation=plan_of(rules, name), x=inputs)
        counted.append(sizes(lp))
        values.append(value_at(lp, prediction))
    variables, rows = np.array(counted).T
    told = row(found, name)
    assert told.variables_mean == pytest.approx(variables.mean(), abs=1e-12)
    assert told.rows_mean == pytest.approx(rows.mean(), abs=1e-12)
    assert (told.variables_max, told.rows_max) == (variables.max(), rows.max())
    assert told.value_mean == pytest.approx(np.mean(values), abs=1e-7)
    exact = gdpnet.project(rules, yhat, x, solver="milp").distance.numpy()
    gaps = exact - np.array(values)
    assert told.gap_mean == pytest.approx(gaps.mean(), abs=1e-7)
    assert told.gap_max == pytest.approx(gaps.max(), abs=1e-7)
    assert (told.gap_max > 0.1) == (name != "dnf"), "the samples should tell them apart"


def test_disjuncts_by_hand(found: Comparison) -> None:
    """1, 2 and 3 active rules; of the four products of a and b two are empty, of all eight four."""
    assert row(found, "cnf").disjuncts_mean == (2 + 4 + 6) / 3
    assert row(found, "pdnf:2").disjuncts_mean == (2 + 2 + 4) / 3
    # a and b both low or both high, each with either disjunct of c; 7 and 0 is the last of them.
    assert row(found, "dnf").disjuncts_max == 2 * 2


@pytest.mark.parametrize("name", ["cnf", "pdnf:2", "adaptive", "dnf", "dnf:highs"])
def test_satisfaction_and_statuses(rules: gdpnet.RuleModel, found: Comparison, name: str) -> None:
    yhat, x = data()
    relaxation, _, solver = name.partition(":highs")
    how = {"solver": "highs"} if solver or name.endswith("highs") else {}
    p = gdpnet.project(rules, yhat, x, relaxation=plan_of(rules, relaxation), **how)
    told = row(found, name)
    assert told.csat == rules.satisfied(p.y, x, 1e-6).double().mean()
    assert told.csat_conflict_free == told.csat
    assert told.distance_mean == pytest.approx(p.distance.mean().item(), abs=1e-9)
    for status in Status:
        assert told[status.name.lower()] == (p.status == status).sum(), status
    each = found.per_rule.set_index(["relaxation", "rule"])
    active, holds = rules.active(x), rules.violation(p.y, x) <= 1e-6
    for r, rule in enumerate(rules.names):
        line = each.loc[(name, rule)]
        assert line.active == active[:, r].double().mean()
        assert line.satisfied == holds[active[:, r], r].double().mean()
    assert each.loc[(name, "all together")].satisfied == told.csat


def test_predictions_are_told_of_too(rules: gdpnet.RuleModel, found: Comparison) -> None:
    yhat, x = data()
    each = found.per_rule.set_index(["relaxation", "rule"])
    share = rules.satisfied(yhat, x).double().mean().item()
    assert 0 < share < 1
    assert each.loc[("prediction", "all together")].satisfied == share


def test_exact_ones_are_exact_and_satisfy_everything(found: Comparison) -> None:
    for name in ("adaptive", "dnf", "dnf:highs"):
        assert abs(row(found, name).gap_max) < 1e-7
        assert row(found, name).csat == 1.0
    assert row(found, "dnf").solver == "exact"
    assert row(found, "dnf:highs").solver == "highs"
    assert (row(found, "dnf").written_out, row(found, "dnf:highs").written_out) == (False, True)
    assert row(found, "cnf").csat < 1.0


def test_adaptive_steps_have_the_sizes_of_their_last_round(
    rules: gdpnet.RuleModel, found: Comparison
) -> None:
    yhat, x = data()
    rounds = gdpnet.project(rules, yhat, x, relaxation="adaptive").info.rounds
    assert rounds is not None
    assert rounds.max() > 0
    cnf, dnf, adaptive = (row(found, name).disjuncts_mean for name in ("cnf", "dnf", "adaptive"))
    assert dnf < adaptive < cnf, "merging leaves empty products out, and few samples need it"


def test_the_plan_is_the_planner_s(rules: gdpnet.RuleModel, found: Comparison) -> None:
    yhat, x = data()
    (measured,) = [one for one in found.measured if one.relaxation.label == "plan:3"]
    assert measured.plan == gdpnet.plan.choose(rules, 3, yhat, x)


def test_times_are_positive_and_progress_adds_up(rules: gdpnet.RuleModel) -> None:
    told: list[tuple[str, float]] = []
    found = compare(rules, *data(), "cnf,dnf", progress=lambda *step: told.append(step))
    assert (found.table.seconds_per_sample > 0).all()
    assert (found.table.compile_seconds >= 0).all()
    stages = ("exact", "cnf", "dnf")
    labels, shares = zip(*told, strict=True)
    assert [label for label, _ in itertools.groupby(labels)] == list(stages)
    assert list(shares) == sorted(shares)
    for k, label in enumerate(stages):  # each begins when it is named, and ends where it should
        of_it = [share for name, share in told if name == label]
        assert (of_it[0], of_it[-1]) == pytest.approx((k / 3, (k + 1) / 3), abs=1e-12)


def test_progress_is_told_while_slow_samples_are_solved(
    rules: gdpnet.RuleModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in what comes before the samples whose time counts."""
    original, moments = Projector.__call__, [time.perf_counter()]

    def slow(self: Projector, yhat: torch.Tensor, *given: Any) -> Any:
        time.sleep(0.02 * len(yhat))
        return original(self, yhat, *given)

    monkeypatch.setattr(Projector, "__call__", slow)
    yhat, x = data()
    many = torch.cat([yhat] * 4), torch.cat([x] * 4)  # two seconds for each pass
    found = compare(rules, *many, "dnf", progress=lambda *_: moments.append(time.perf_counter()))
    assert max(np.diff(moments)) < 1.5
    assert 0.02 <= found.table.seconds_per_sample.item() < 0.04


def test_samples_in_conflict_are_kept_apart() -> None:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var(bounds=(0, 10))
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    m.middle = Disjunction(expr=[[m.y >= 4, m.y <= 5], [m.y >= 5, m.y <= 6]])
    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    m.active_when[m.middle] = m.t >= 1
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])
    x = torch.tensor([[0.0], [0.0], [1.0], [0.0]])
    found = compare(rules, [[4.5], [1.0], [4.5], [6.0]], x, "dnf")
    told = row(found, "dnf")
    assert (told.csat, told.csat_conflict_free, told.conflict) == (0.75, 1.0, 1)
    assert told.distance_mean == pytest.approx((1.5 + 0.0 + 1.0) / 3, abs=1e-9)
    assert found.per_rule.query("rule == 'middle'").active.max() == 0.0
    assert "1 has rules in conflict" in repr(found)


def test_weights_are_the_distance_s(rules: gdpnet.RuleModel) -> None:
    yhat, x = data()
    found = compare(rules, yhat, x, "dnf", weights=[2.0, 0.5])
    exact = gdpnet.project(rules, yhat, x, weights=[2.0, 0.5], solver="milp").distance
    assert row(found, "dnf").distance_mean == pytest.approx(exact.mean().item(), abs=1e-7)


def test_rules_without_inputs_and_without_rules() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(bounds=(0, 10))
    m.top = pyo.Constraint(expr=m.y <= 4)
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    found = compare(rules, [[5.0], [3.0]])
    assert list(found.table.relaxation) == ["cnf", "adaptive", "dnf", "dnf:highs"]
    assert (found.table.csat == 1.0).all()
    assert found.table.distance_mean.tolist() == pytest.approx([0.5] * 4)


def test_what_cannot_be_had_has_a_note_and_the_others_go_on() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var()  # no bounds: no hull
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    found = compare(rules, [[4.5]], relaxations="cnf,dnf")
    assert "bounds" in row(found, "cnf").note
    assert math.isnan(row(found, "cnf").csat)
    assert row(found, "dnf").note == ""
    assert row(found, "dnf").distance_mean == pytest.approx(1.5)
    assert math.isnan(row(found, "dnf").variables_mean)
    assert "cnf: " in repr(found)
    with pytest.raises(gdpnet.errors.InputError, match=r"None of the relaxations .* bounds"):
        compare(rules, [[4.5]], relaxations="cnf")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("hull", "'hull' is none that is known"),
        ("pdnf", "'pdnf' needs a whole number, pdnf:K"),
        ("pdnf:x", "needs a whole number"),
        ("plan:0", "has no budget"),
        ("plan:-1", "needs a whole number"),
        ("cnf:exact", "names the solver 'exact'; expected one of auto, extended, highs, gurobi"),
        ("dnf:cplex", "names the solver 'cplex'"),
        ("cnf:2", "names the solver '2'"),
        ("", "expected at least one"),
        ([3], "expected names and Plans, got int"),
    ],
)
def test_names_that_mean_nothing(rules: gdpnet.RuleModel, asked: Any, message: str) -> None:
    with pytest.raises(gdpnet.errors.InputError, match=re.escape(message)):
        compare(rules, *data(), asked)


def test_more_rules_than_there_are(rules: gdpnet.RuleModel) -> None:
    with pytest.raises(gdpnet.errors.RuleError, match="k from 0 to 3"):
        compare(rules, *data(), "pdnf:4")


def test_wrong_arguments(rules: gdpnet.RuleModel) -> None:
    yhat, x = data()
    with pytest.raises(gdpnet.errors.InputError, match="RuleModel, got str"):
        compare("rules", x, yhat)  # type: ignore[arg-type]
    with pytest.raises(gdpnet.errors.InputError, match="yhat: expected 2 columns"):
        compare(rules, yhat[:, :1], x)
    with pytest.raises(gdpnet.errors.InputError, match="at least one sample"):
        compare(rules, yhat[:0], x[:0])
    with pytest.raises(gdpnet.errors.InputError, match="yhat"):
        compare(rules, yhat.masked_fill(yhat > 9, math.nan), x)


def test_plans_stand_beside_names(rules: gdpnet.RuleModel) -> None:
    found = compare(rules, *data(), [Plan((("a", "c"),)), "cnf", "cnf"])
    assert list(found.table.relaxation) == ["Plan(a + c)", "cnf"]
    with pytest.raises(gdpnet.errors.RuleError, match="'z' is no rule"):
        compare(rules, *data(), [Plan((("a", "z"),))])


def test_repr_has_a_line_for_all_that_was_measured(found: Comparison) -> None:
    text = repr(found)
    assert "24 samples" in text
    (line,) = [line for line in text.splitlines() if line.startswith("largest gap")]
    assert line.split()[-3:] == ["0", "0", "0"]
    assert all(len(line) < 140 for line in text.splitlines()[:-3])
    assert "<table" in found._repr_html_()


def test_page_needs_nothing_but_itself(found: Comparison, tmp_path: Path) -> None:
    page = found.to_html(tmp_path / "deep" / "page.html", "three <rules>", "Drawn by hand.")
    text = page.read_text(encoding="utf-8")
    assert "three &lt;rules&gt;: relaxations compared" in text
    assert "Drawn by hand." in text
    assert text.count("<img ") == 5, "sizes, times, tightness, satisfaction, rule graph"
    assert text.count("<img ") == text.count("data:image/svg+xml;base64,")
    assert all(len(alt) > 20 for alt in re.findall(r'<img alt="([^"]*)"', text))
    for outside in ("http://", "https://", "<script", "<link", "@import", "url("):
        assert outside not in text


def test_page_of_a_comparison_with_notes(tmp_path: Path) -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var()
    m.gap = Disjunction(expr=[[m.y <= 3], [m.y >= 7]])
    found = compare(gdpnet.RuleModel(m, outputs=[m.y]), [[4.5], [8.0]], relaxations="cnf,dnf")
    text = found.to_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "cnf: " in text


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("pandas", "study", lambda found, folder: found.table),
        ("matplotlib", "plot", lambda found, folder: found.to_html(folder / "page.html")),
    ],
)
def test_missing_extras_are_named(
    rules: gdpnet.RuleModel,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    package: str,
    extra: str,
    use: Any,
) -> None:
    found = compare(rules, *data(), "dnf")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(gdpnet.errors.InputError, match=re.escape(f"pip install 'gdpnet[{extra}]'")):
        use(found, tmp_path)
    assert not list(tmp_path.iterdir())
    assert "csat" not in repr(found), "the table for people needs neither"
