"""RuleProjector: a regressor or classifier whose outputs satisfy rules."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from gdpnet.errors import InputError
from gdpnet.model import RuleModel, load_rules
from gdpnet.projection.projection import Projection
from gdpnet.projection.projector import Projector
from gdpnet.relaxation.plan import Plan
from gdpnet.solve.base import Backend


def _classifies(own: RuleProjector) -> bool:
    """Whether there are probabilities to be projected."""
    return is_classifier(own.estimator)


class RuleProjector(MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """Any regressor or classifier, with its outputs moved onto the rules.

    The outputs of the rules are what a regressor predicts, in the order of the targets' columns, or
    the probabilities of a classifier, in the order of its `classes_`; the class that is predicted
    is the most probable one after projection. Targets of training are taken as they are. It is
    cloned, searched over, pickled and put into pipelines as other estimators are.

    Args:
        estimator: is cloned and fitted.
        rules: the rules, or the path of a file that `rules.save` wrote.
        rule_inputs: the columns of X that are the rules' inputs, in their order: numbers, or names
            where X is a table. Where not given: the columns with the inputs' names, or all columns
            of an X without names.
        norm: as all others see `gdpnet.project`.
        weights: of the outputs in the distance, `d`.
        relaxation: `"dnf"` (exact), `"cnf"`, and so on.
        solver: `"auto"`, a name, or an object of `gdpnet.solve`.
        strict: rules hold without tolerance.
        time_limit: seconds for each sample.
        threads: samples solved at a time.
        on_conflict: `"pass"`, `"raise"` or `"nearest"`.

    Attributes:
        estimator_: the fitted estimator.

    Example:
        >>> import numpy as np, pyomo.environ as pyo, gdpnet
        >>> from sklearn.linear_model import LinearRegression
        >>> from gdpnet.sklearn import RuleProjector
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> X, y = np.arange(11.0).reshape(-1, 1), np.arange(11.0)
        >>> fitted = RuleProjector(LinearRegression(), gdpnet.RuleModel(m, outputs=[m.y])).fit(X, y)
        >>> fitted.predict([[2.0], [4.5], [8.0]]).round(6).tolist()
        [2.0, 3.0, 8.0]
    """

    def __init__(
        self,
        estimator: Any,
        rules: RuleModel | str | os.PathLike[str],
        *,
        rule_inputs: Sequence[int] | Sequence[str] | None = None,
        norm: str = "l1",
        weights: Any = None,
        relaxation: str | Plan = "dnf",
        solver: str | Backend = "auto",
        strict: bool = False,
        time_limit: float | None = None,
        threads: int | None = None,
        on_conflict: str = "pass",
    ) -> None:
        # What scikit-learn clones by looks at these, unchanged; they are checked by fit.
        self.estimator = estimator
        self.rules = rules
        self.rule_inputs = rule_inputs
        self.norm = norm
        self.weights = weights
        self.relaxation = relaxation
        self.solver = solver
        self.strict = strict
        self.time_limit = time_limit
        self.threads = threads
        self.on_conflict = on_conflict

    def fit(self, X: Any, y: Any, **fit_params: Any) -> RuleProjector:
        """Fit the estimator; the rules have nothing to learn.

        Args:
            X: features, `n x features`.
            y: targets, `n x d`, or `n` for a single output; for a classifier `n` classes.
            **fit_params: for the estimator.
        """
        self._prepare()
        names = self._rules.output_names
        if not (_classifies(self) or y is None):  # the estimator tells of that
            y = _targets(y, names)
        fitted = clone(self.estimator).fit(X, y, **fit_params)
        if _classifies(self):
            classes = fitted.classes_
            if not isinstance(classes, np.ndarray) or len(classes) != len(names):
                raise InputError(
                    f"rules: expected one output for each class ({_told(classes)}), got "
                    f"{len(names)}: {', '.join(names)}."
                )
        self._inputs(X)
        self.estimator_ = fitted
        return self

    def project(self, X: Any) -> Projection:
        """What `gdpnet.project` makes of the estimator's outputs: y, status, distance, disjuncts.

        Args:
            X: features, `n x features`.
        """
        check_is_fitted(self)
        fitted = self.estimator_
        raw = fitted.predict_proba(X) if is_classifier(fitted) else fitted.predict(X)
        return self._projector(
            np.asarray(raw, dtype=np.float64).reshape(len(raw), -1), self._inputs(X)
        )

    def predict(self, X: Any) -> np.ndarray:
        """Outputs that satisfy the rules, or the classes of the most probable of them.

        Args:
            X: features, `n x features`.

        Returns:
            `n x d`, or `n` where the rules have one output; of a classifier `n` classes.
        """
        y = self.project(X).y.numpy()
        if is_classifier(self.estimator_):
            return self.classes_[y.argmax(1)]
        return y[:, 0] if y.shape[1] == 1 else y

    @available_if(_classifies)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities that satisfy the rules, `n x classes`.

        Args:
            X: features, `n x features`.
        """
        return self.project(X).y.numpy()

    def transform(self, X: Any) -> np.ndarray:
        """The projected outputs, `n x d`: predictions or probabilities, as features for others.

        Args:
            X: features, `n x features`.
        """
        return self.project(X).y.numpy()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that `transform` gives: those of the rules' outputs.

        Args:
            input_features: not used.
        """
        check_is_fitted(self)
        return np.array(self._rules.output_names, dtype=object)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R^2 of a regressor, of what `predict` gives.

        Args:
            X: features, `n x features`.
            y: targets.
            sample_weight: of the samples.
        """
        found = self.predict(X)
        measure = accuracy_score if is_classifier(self.estimator_) else r2_score
        return float(measure(y, found, sample_weight=sample_weight))

    @property
    def classes_(self) -> np.ndarray:
        """The classes, of a classifier."""
        return self.estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Columns of X."""
        check_is_fitted(self)
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of X, where it had some."""
        check_is_fitted(self)
        return self.estimator_.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator: as the one inside, where that knows."""
        tags, inside = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inside.estimator_type
        tags.classifier_tags, tags.regressor_tags = inside.classifier_tags, inside.regressor_tags
        tags.target_tags, tags.input_tags = inside.target_tags, inside.input_tags
        if isinstance(self.rules, RuleModel):  # they say how many targets there are
            several = not _classifies(self) and len(self.rules.output_names) > 1
            tags.target_tags.multi_output &= several
            tags.target_tags.single_output &= not several
        return tags

    # ---- the rules -----------------------------------------------------------------------

    def _prepare(self) -> None:
        rules = self.rules
        self._rules = load_rules(rules) if isinstance(rules, str | os.PathLike) else rules
        self._projector = Projector(
            self._rules,
            norm=self.norm,
            weights=self.weights,
            relaxation=self.relaxation,
            solver=self.solver,
            strict=self.strict,
            time_limit=self.time_limit,
            threads=self.threads,
            on_conflict=self.on_conflict,
        )

    def _inputs(self, X: Any) -> np.ndarray | None:
        """The rules' inputs among the columns of X."""
        names = self._rules.input_names
        if not names:
            return None
        wanted, own = self.rule_inputs, getattr(X, "columns", None)
        if wanted is None and own is not None:
            wanted = list(names)
        if wanted is not None and len(wanted) != len(names):
            raise InputError(
                f"rule_inputs: expected {len(names)} columns, one for each input of the rules "
                f"({', '.join(names)}), got {len(wanted)}."
            )
        if wanted is not None and all(isinstance(name, str) for name in wanted):
            missing = [name for name in wanted if own is None or name not in own]
            if missing:
                raise InputError(
                    f"rule_inputs: X has no column {missing[0]!r}. Say which columns of X are the "
                    f"inputs of the rules ({', '.join(names)})."
                )
            return np.asarray(X[list(wanted)], dtype=np.float64)
        values = np.asarray(X)
        if wanted is None and values.shape[1] != len(names):
            raise InputError(
                f"rule_inputs: X has {values.shape[1]} columns, and the rules have {len(names)} "
                f"inputs: {', '.join(names)}. Say which columns they are."
            )
        chosen = values if wanted is None else values[:, np.asarray(wanted)]
        return np.asarray(chosen, dtype=np.float64)


def _targets(y: Any, names: Sequence[str]) -> np.ndarray:
    """Targets of a regressor, `n x d`, or `n` where there is one output."""
    values = np.asarray(y)
    width = 1 if values.ndim < 2 else values.shape[1]
    if width != len(names):
        raise InputError(
            f"y: expected {len(names)} columns, one for each output of the rules "
            f"({', '.join(names)}), got {width}."
        )
    return column_or_1d(values, warn=True) if width == 1 else values


def _told(classes: Any) -> str:
    if not isinstance(classes, np.ndarray):
        return "several targets have several sets of them, which is not known here"
    return ", ".join(map(str, classes[:12]))
