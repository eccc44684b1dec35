"""A learner that answers with another number of values than asked for is named, with both."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gedi_sklearn import (
    CoarseConstraint,
    DualTargetsClassifier,
    DualTargetsRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
T = X.sum(axis=1)
Y = np.where(T > 0, "yes", "no")


class ShortRegressor(RegressorMixin, BaseEstimator):
    """Forgets the last row."""

    def fit(self, X, y):
        self.shape_ = y.shape[1:]
        return self

    def predict(self, X):
        return np.zeros((len(X) - 1, *self.shape_)) + X[1:, :1].reshape(-1, *[1] * len(self.shape_))


class ShortClassifier(ClassifierMixin, BaseEstimator):
    """Forgets the last row."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[1:, 0] > 0).astype(int)]

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-X[1:, 0]))
        return np.c_[1 - p, p]


class Undecided(ShortClassifier):
    """Knows the probability of one class of two."""

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]

    def predict_proba(self, X):
        return 1 / (1 + np.exp(-X[:, :1]))


class Column(LinearRegression):
    """Answers in a column, as some learners do."""

    def predict(self, X):
        return super().predict(X)[:, None]


@pytest.mark.parametrize(("cv", "n"), [("train", 60), (3, 20)])
@pytest.mark.parametrize(
    ("model", "learner", "method"),
    [
        (MovingTargetsRegressor, ShortRegressor, "predict"),
        (ProjectedRegressor, ShortRegressor, "predict"),
        (MovingTargetsClassifier, ShortClassifier, "predict"),
        (ProjectedClassifier, ShortClassifier, "predict_proba"),
        (MovingTargetsClassifier, Undecided, "predict_proba"),
        (ProjectedClassifier, Undecided, "predict_proba"),
    ],
)
def test_the_learner_is_named_with_what_it_gave(model, learner, method, cv, n):
    target = T if "Regressor" in model.__name__ else Y
    is_proba = method == "predict_proba" or (cv != "train" and target is Y)
    method = "predict_proba" if is_proba else "predict"
    rows = n if learner is Undecided else n - 1
    got = f"({rows}, {1 if learner is Undecided else 2})" if is_proba else f"({rows},)"
    expected = f"({n}, 2)" if is_proba else f"({n},)"
    message = f"{learner.__name__}.{method} returned an array of shape {got} for {n} rows; expected"
    with pytest.raises(ValueError, match=re.escape(f"{message} {expected}.")):
        model(learner(), cv=cv).fit(X, target, sensitive_features=X[:, 0])


def test_so_is_the_learner_of_the_attribute():
    model = ProjectedRegressor(
        constraint=CoarseConstraint(kernel=2),
        sensitive_at_predict=False,
        attribute_estimator=ShortRegressor(),
        cv=3,
    )
    with pytest.raises(ValueError, match=r"ShortRegressor.predict returned .* \(19, 2\) for 20"):
        model.fit(X, T, sensitive_features=X[:, 0])
    model.set_params(attribute_estimator=None).fit(X, T, sensitive_features=X[:, 0])
    short = ShortRegressor().fit(X, X)
    model.attribute_estimator_ = short
    with pytest.raises(ValueError, match=r"ShortRegressor have .* \(59, 2\); expected \(60, 2\)"):
        model.predict(X)


@pytest.mark.parametrize("kind", [MovingTargetsRegressor, ProjectedRegressor])
@pytest.mark.parametrize("cv", ["train", 3])
def test_one_value_a_row_in_a_column_is_welcome(kind, cv):
    plain, column = (
        kind(learner, cv=cv).fit(X, T, sensitive_features=X[:, 0])
        for learner in (LinearRegression(), Column())
    )
    assert_allclose(column.targets_, plain.targets_)


@pytest.mark.parametrize(
    ("learner", "key"),
    [
        (LinearRegression(copy_X=False), "copy_X"),
        (make_pipeline(StandardScaler(copy=False), LinearRegression()), "standardscaler__copy"),
    ],
)
def test_a_learner_that_overwrites_X_is_refused(learner, key):
    # The second fit of Moving Targets was on columns that the first had centred.
    rows = X.copy()
    for kind in (MovingTargetsRegressor, DualTargetsRegressor, ProjectedRegressor):
        with pytest.raises(ValueError, match=rf"^estimator={type(learner).__name__} has {key}=Fal"):
            kind(learner).fit(rows, T, sensitive_features=X[:, 0])
    blind = ProjectedRegressor(sensitive_at_predict=False, attribute_estimator=learner)
    with pytest.raises(ValueError, match=r"^attribute_estimator="):
        blind.fit(rows, T, sensitive_features=X[:, 0])
    assert_array_equal(rows, X)


class Reversed(ClassifierMixin, BaseEstimator):
    """Logistic regression whose classes stand in another order, or have other names."""

    def __init__(self, labels=(1, 0)):
        self.labels = labels

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = np.array(self.labels)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, ::-1]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_probabilities_are_matched_to_classes_by_label():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 1] + 0.3 * rng.normal(size=200) > 0).astype(int)
    plain = LogisticRegression().fit(X, y).score(X, y)
    for kind in (ProjectedClassifier, MovingTargetsClassifier):
        model = kind(Reversed(), CoarseConstraint(np.inf), sensitive_columns=0, cv="train")
        assert model.fit(X, y).score(X, y) == plain
        with pytest.raises(ValueError, match=r"not those of y|none of the classes of y"):
            kind(Reversed(("b", "a")), sensitive_columns=0, cv="train").fit(X, y)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", [MovingTargetsClassifier, DualTargetsClassifier])
def test_labels_of_folds_are_those_that_the_learner_predicts(kind):
    """They were those of the larger probability, and so were history_ and verdict_."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X.sum(axis=1) + rng.normal(size=200) > 0.5).astype(int)
    eager = FixedThresholdClassifier(LogisticRegression(), threshold=0.1)
    frozen = FrozenEstimator(eager.fit(X, y))  # the models of folds are the model of all rows
    trained, folded = (
        kind(frozen, sensitive_columns=0, cv=cv, max_iter=1).fit(X, y) for cv in ("train", 3)
    )
    for field in ("predictions_gedi", "loss_predictions"):
        assert_array_equal(folded.history_[field], trained.history_[field])
    assert folded.verdict_.new_rows == trained.verdict_.training
