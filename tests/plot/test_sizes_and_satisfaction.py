"""Growth of the program, and shares of samples: the numbers drawn are those counted otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import pyomo.environ as pyo
import pytest
import torch
from matplotlib import pyplot

import gdpnet
from gdpnet.plot import plot_satisfaction, plot_sizes
from gdpnet.relaxation import convexify
from gdpnet.study import load_model
from gdpnet.testing.problems.stress import pyomo_model as stress
from tests.plot._axes import legend
from tests.relaxation._programs import sizes

MODELS = Path(__file__).parents[2] / "models"


def test_sizes_are_those_of_the_pyomo_program() -> None:
    m = stress(4)
    rules = gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.need])
    ax = plot_sizes(rules, [0.5])
    products, variables, rows = (line.get_ydata() for line in ax.lines)
    assert ax.get_yscale() == "log"
    for k in range(1, 5):
        merged = [rules.names[:k]] if k > 1 else "cnf"
        program = convexify(m, [m.y], inputs=[m.need], clusters=merged, prune=False)
        assert (variables[k - 1], rows[k - 1]) == sizes(program)
        assert products[k - 1] == 2**k + 2 * (4 - k)


def test_sizes_stop_before_there_are_too_many_products() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(15), bounds=(0, 10))
    for k in range(14):
        near = m.y[k] + m.y[k + 1]
        m.add_component(f"gap{k}", gdpnet.rule(gdpnet.any_of(near <= 3, near >= 7)))
    rules = gdpnet.RuleModel(m, outputs=[m.y])
    ax = plot_sizes(rules, merged=[1, 5])
    assert ax.lines[0].get_xdata().tolist() == [1, 5]
    from gdpnet.plot._sizes import _steps

    assert _steps(rules, rules.names, None) == (list(range(1, 13)), True)


def test_the_dnf_of_rules_that_do_not_hang_together_is_marked() -> None:
    m = pyo.ConcreteModel()
    m.y = pyo.Var(range(3), bounds=(0, 10))
    for k in range(3):
        m.add_component(f"gap{k}", gdpnet.rule(gdpnet.any_of(m.y[k] <= 3, m.y[k] >= 7)))
    ax = plot_sizes(gdpnet.RuleModel(m, outputs=[m.y]))
    assert [line.get_marker() for line in ax.lines][3:6] == ["*"] * 3
    assert ax.lines[0].get_ydata().tolist() == [6, 6, 8]
    assert list(ax.lines[3].get_ydata()) == [6]


def test_bad_sizes() -> None:
    rules = load_model(MODELS / "cooling").build()
    mild = torch.tensor([20.0, 50.0, 0.5, 0.2, 0.0, 0.0, 0.0]).double()
    with pytest.raises(gdpnet.errors.InputError, match="no rule applies"):
        plot_sizes(rules, mild)
    mild[0] = 35.0
    with pytest.raises(gdpnet.errors.InputError, match="from 1 to 1"):
        plot_sizes(rules, mild, merged=[2])


def test_shares_are_those_counted_sample_by_sample() -> None:
    model = load_model(MODELS / "cooling")
    rules = model.build()
    x, y = model.sample(150, split="ood", seed=3)
    noise = torch.randn(y.shape, generator=torch.Generator().manual_seed(0), dtype=y.dtype)
    yhat = y + 0.2 * noise
    layer = gdpnet.project(rules, yhat, x).y
    ax = plot_satisfaction(rules, {"network": yhat, "layer": layer}, x)
    assert [bars.get_label() for bars in ax.containers] == ["network", "layer"]
    assert len({bars[0].get_hatch() for bars in ax.containers}) == 2
    for bars, outputs in zip(ax.containers, (yhat, layer), strict=True):
        widths = [bar.get_width() for bar in bars]
        assert len(widths) == len(rules.names) + 2
        held = [bool(rules.satisfied(b, a)) for a, b in zip(x, outputs, strict=True)]
        assert widths[0] == pytest.approx(100 * sum(held) / 150)
        for r, name in enumerate(rules.names):
            mine = [
                float(rules.violation(b, a)[r]) <= 1e-6
                for a, b in zip(x, outputs, strict=True)
                if bool(rules.active(a)[r])
            ]
            expected = 100 * sum(mine) / len(mine) if mine else 0.0
            assert widths[r + 1] == pytest.approx(expected), name
    assert ax.containers[1][0].get_width() == 100.0
    ticks = [tick.get_text() for tick in ax.get_yticklabels()]
    assert ticks[0] == "all together\n150 samples"
    assert ticks[2].startswith("R2_cold\n0 samples")
    assert "never active" in [text.get_text() for text in ax.texts]
    assert legend(ax) == ["network", "layer"]


def test_bad_satisfaction() -> None:
    rules = load_model(MODELS / "toy").build(name="one_rule")
    with pytest.raises(gdpnet.errors.InputError, match="outputs by a name"):
        plot_satisfaction(rules, torch.zeros(3, 1))  # type: ignore[arg-type]
    with pytest.raises(gdpnet.errors.InputError, match=r"predictions\['net'\]: expected 1 column"):
        plot_satisfaction(rules, {"net": torch.zeros(3, 2)})
    with pytest.raises(gdpnet.errors.InputError, match="the others have 3"):
        plot_satisfaction(rules, {"a": torch.zeros(3, 1), "b": torch.zeros(4, 1)})
    with pytest.raises(gdpnet.errors.InputError, match="no samples"):
        plot_satisfaction(rules, {"a": torch.zeros(0, 1)})


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = load_model(MODELS / "toy").build(name="one_rule")
    monkeypatch.delattr("matplotlib.pyplot")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(gdpnet.errors.InputError, match=r"gdpnet\[plot\]"):
        gdpnet.plot.plot_lifted(rules, yhat=1.0)
    monkeypatch.undo()
    assert pyplot.get_backend()
