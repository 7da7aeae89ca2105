"""RuleProjector is an estimator as others are, and what it predicts satisfies the rules."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gdpnet
from gdpnet.errors import InputError
from gdpnet.sklearn import RuleProjector


def one_output() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.y = pyo.Var()
    m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
    return gdpnet.RuleModel(m, outputs=[m.y])


def two_outputs() -> gdpnet.RuleModel:
    m = pyo.ConcreteModel()
    m.t = pyo.Param(mutable=True, initialize=0.0)
    m.y = pyo.Var([1, 2], bounds=(-20, 20))
    m.gap = gdpnet.rule(gdpnet.any_of(m.y[1] <= m.t, m.y[1] + m.y[2] >= 3))
    return gdpnet.RuleModel(m, outputs=[m.y], inputs=[m.t])


def probabilities() -> gdpnet.RuleModel:
    """Two classes are never almost equally probable."""
    m = pyo.ConcreteModel()
    m.p = pyo.Var(["a", "b", "c"], bounds=(0, 1))
    m.sum = pyo.Constraint(expr=sum(m.p.values()) == 1)
    m.sure = gdpnet.rule(gdpnet.any_of(*(m.p[k] >= 0.7 for k in m.p)))
    return gdpnet.RuleModel(m, outputs=[m.p])


@parametrize_with_checks([RuleProjector(LinearRegression(), one_output())])
def test_conventions_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "t", "b"])
    noise = rng.normal(size=(120, 2))
    return X, np.column_stack([2 * X["a"], X["t"] - X["b"]]) + 0.1 * noise


def test_a_regressor_is_that_and_a_projection(data: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = data
    rules = two_outputs()
    fitted = RuleProjector(Ridge(), rules, norm="l2").fit(X, y)
    alone = Ridge().fit(X, y)
    p = gdpnet.project(rules, alone.predict(X), X[["t"]].to_numpy(), norm="l2")
    assert 0 < (p.distance > 0).sum() < len(X)
    np.testing.assert_array_equal(fitted.predict(X), p.y.numpy())
    np.testing.assert_array_equal(fitted.transform(X), p.y.numpy())
    assert fitted.project(X).status.tolist() == p.status.tolist()
    assert rules.satisfied(p.y, X[["t"]].to_numpy()).all()
    assert is_regressor(fitted)
    assert not hasattr(fitted, "predict_proba")
    assert fitted.get_feature_names_out().tolist() == ["y[1]", "y[2]"]
    named = fitted.set_output(transform="pandas").transform(X)
    assert list(named.columns) == ["y[1]", "y[2]"]


def test_inputs_of_the_rules_are_columns_by_name_or_number(
    data: tuple[pd.DataFrame, np.ndarray],
) -> None:
    X, y = data
    by_name = RuleProjector(LinearRegression(), two_outputs()).fit(X, y).predict(X)
    by_number = RuleProjector(LinearRegression(), two_outputs(), rule_inputs=[1])
    np.testing.assert_array_equal(by_number.fit(X.to_numpy(), y).predict(X.to_numpy()), by_name)
    renamed = X.rename(columns={"t": "time"})
    told = RuleProjector(LinearRegression(), two_outputs(), rule_inputs=["time"])
    # How a table lies in memory decides how the regression itself is rounded.
    np.testing.assert_allclose(told.fit(renamed, y).predict(renamed), by_name, rtol=1e-12)
    for features, columns, message in (
        (renamed, None, "X has no column 't'"),
        (X.to_numpy(), None, "X has 3 columns, and the rules have 1 inputs: t"),
        (X.to_numpy(), ["t"], "X has no column 't'"),
        (X, [0, 1], "expected 1 columns, one for each input"),
    ):
        with pytest.raises(InputError, match=message):
            RuleProjector(LinearRegression(), two_outputs(), rule_inputs=columns).fit(features, y)


def test_a_classifier_gives_probabilities_that_satisfy_the_rules() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + rng.normal(size=200), [-0.5, 0.5])]
    rules = probabilities()
    fitted = RuleProjector(LogisticRegression(), rules).fit(X, y)
    assert is_classifier(fitted)
    shown = fitted.predict_proba(X)
    np.testing.assert_allclose(shown.sum(1), 1, atol=1e-9)
    assert (shown.max(1) >= 0.7 - 1e-9).all()
    assert (LogisticRegression().fit(X, y).predict_proba(X).max(1) < 0.7).any()
    assert fitted.classes_.tolist() == ["low", "mid", "top"]
    assert fitted.predict(X).tolist() == fitted.classes_[shown.argmax(1)].tolist()
    assert fitted.score(X, y) == np.mean(fitted.predict(X) == y)
    with pytest.raises(InputError, match=r"one output for each class \(low, mid\), got 3"):
        RuleProjector(LogisticRegression(), rules).fit(X[y != "top"], y[y != "top"])
    with pytest.raises(InputError, match="not known here"):
        RuleProjector(MultiOutputClassifier(LogisticRegression()), rules).fit(X, np.c_[y, y])


def test_pipelines_searches_clones_and_pickles(
    data: tuple[pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    X, y = data
    two_outputs().save(tmp_path / "rules.json")
    inside = make_pipeline(StandardScaler(), Ridge())
    model = RuleProjector(inside, tmp_path / "rules.json")
    grid = {"estimator__ridge__alpha": [0.1, 1e3], "norm": ["l1", "l2"]}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert search.best_params_["estimator__ridge__alpha"] == 0.1
    best = search.best_estimator_
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(best)).predict(X), best.predict(X))
    again = clone(best)
    assert not hasattr(again, "estimator_")
    assert set(again.get_params(deep=False)) == set(model.get_params(deep=False))
    assert again.get_params()["estimator__ridge__alpha"] == 0.1
    np.testing.assert_array_equal(again.fit(X, y).predict(X), best.predict(X))
    forest = RuleProjector(RandomForestRegressor(5, random_state=0), two_outputs(), rule_inputs=[1])
    assert cross_val_score(forest, X.to_numpy(), y, cv=3).shape == (3,)
    stacked = make_pipeline(forest, LinearRegression()).fit(X.to_numpy(), y)
    assert stacked.predict(X.to_numpy()).shape == y.shape


def test_keywords_are_checked_when_it_is_fitted(data: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = data
    with pytest.raises(InputError, match="y: expected 2 columns"):
        RuleProjector(LinearRegression(), two_outputs()).fit(X, y[:, 0])
    with pytest.raises(InputError, match="on_conflict"):
        RuleProjector(LinearRegression(), two_outputs(), on_conflict="ignore").fit(X, y)
    with pytest.raises(InputError, match="rules: expected"):
        RuleProjector(LinearRegression(), None).fit(X, y)  # type: ignore[arg-type]
