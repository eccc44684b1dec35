"""Projected classifiers of more than two classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    ProjectedClassifier,
    Solver,
    project_targets,
)
from gedi_sklearn.exceptions import InfeasibleProjectionError
from gedi_sklearn.metrics import didi, gedi
from gedi_sklearn.model_selection import tradeoff_curve

LABELS = {
    "text": np.array(["low", "mid", "top"]),
    "numbers": np.array([-1, 5, 20]),
    "objects": np.array(["a", "b", "c"], dtype=object),
}


@pytest.fixture(scope="module")
def data():
    """The attribute in column 0, two proxies of it and noise; three classes that it sways."""
    rng = np.random.default_rng(0)
    n = 400
    x = rng.uniform(-1.5, 1.5, n)
    X = np.c_[x, x + 0.3 * rng.normal(size=n), x**2 + 0.3 * rng.normal(size=n)]
    X = np.c_[X, rng.normal(size=(n, 2))]
    scores = np.c_[np.zeros(n), x + X[:, 3], 1.5 * x**2 - 0.5 + X[:, 4]]
    y = (scores + rng.gumbel(size=(n, 3))).argmax(axis=1)
    return X, y, rng.uniform(0.5, 2, n)


def indicators(labels, classes, x, weight=None, **options):
    options |= {"sensitive_features": x, "sample_weight": weight}
    return np.array([gedi((labels == own) * 1.0, **options) for own in classes])


def disparity(labels, groups):
    return didi(labels, sensitive_features=groups, task="classification")


def cross_fitted(X, y, **options):
    return cross_val_predict(
        LogisticRegression(), X, y, cv=5, method="predict_proba", params=options
    )


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("constraint", [CoarseConstraint(0.3), DependenceConstraint(0.3)], ids=str)
def test_every_class_satisfies_the_constraint(data, labels, constraint):
    options = {"norm": constraint.norm, "kernel": constraint.kernel}
    X, codes, w = data
    y = LABELS[labels][codes]
    model = ProjectedClassifier(constraint=constraint, sensitive_columns=0)
    model.fit(X, y, sample_weight=w)
    assert_array_equal(model.classes_, LABELS[labels])
    assert model.targets_.dtype == y.dtype
    assert set(model.targets_) == set(y)
    met = indicators(model.targets_, model.classes_, X[:, 0], w, **options)
    assert (met <= model.threshold_ * (1 + 1e-9)).all()
    assert_allclose(model.threshold_, 0.3 * indicators(y, model.classes_, X[:, 0], w, **options))
    plain = model.classes_[cross_fitted(X, y, sample_weight=w).argmax(axis=1)]
    assert (indicators(plain, model.classes_, X[:, 0], w, **options) > model.threshold_).any()
    k = model.kernel_.n_columns
    assert model.orthonormal_correction_.shape == model.correction_.shape == (3, k)
    new = np.linspace(-1, 1, 7)
    raw = model.kernel_.transform(new) @ model.correction_.T
    assert_allclose(raw, model.kernel_.orthonormal(new) @ model.orthonormal_correction_.T)


def test_labels_are_nearly_the_nearest(data):
    X, y, _ = data
    p = cross_fitted(X, y)
    asked = {"sensitive_features": X[:, 0], "loss": "hamming", "solver": Solver(gap=0.005)}
    for constraint in (CoarseConstraint(0.3), DependenceConstraint(0.3, kernel=3)):
        model = ProjectedClassifier(constraint=constraint, sensitive_columns=0).fit(X, y)
        bound = project_targets(y, p, target_weight=0.0, constraint=constraint, **asked).bound
        loss = (1 - p[np.arange(400), model.targets_]).sum()
        # A few rows are split by the relaxation, which this rule cannot do.
        assert bound - 1e-6 <= loss <= bound + 2.0


def test_groups_and_lists(data):
    X, y, _ = data
    team = np.digitize(X[:, 1], [-0.5, 0.5]) * 1.0
    model = ProjectedClassifier(constraint=DidiConstraint(0.3))
    model.fit(X, y, sensitive_features=team)
    assert np.ndim(model.threshold_) == 0
    assert disparity(model.targets_, team) <= model.threshold_ * (1 + 1e-9)
    assert model.orthonormal_correction_.shape == (3, 2)
    both = ProjectedClassifier(constraint=[DidiConstraint(0.3), CoarseConstraint(0.3)])
    both.fit(X, y, sensitive_features=np.c_[team, X[:, 0]])
    assert both.orthonormal_correction_.shape == (3, 3)
    assert disparity(both.targets_, team) <= both.threshold_[0] * (1 + 1e-9)
    met = indicators(both.targets_, range(3), X[:, 0])
    assert (met <= both.threshold_[1] * (1 + 1e-9)).all()
    assert len(both.predict(X, sensitive_features=np.c_[team, X[:, 0]])) == 400


@pytest.mark.parametrize("threshold", [0.0, 0.3, np.inf])
@pytest.mark.filterwarnings("ignore:the corrected labels miss the constraint")
def test_scores_agree_with_the_labels_and_keep_the_order_of_equal_attributes(data, threshold):
    X, y, _ = data
    X = np.c_[np.round(X[:, 0]), X[:, 1:]]
    model = ProjectedClassifier(constraint=CoarseConstraint(threshold), sensitive_columns=0).fit(
        X, y
    )
    p, proba = model.estimator_.predict_proba(X), model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1)
    assert ((proba >= 0) & (proba <= 1)).all()
    assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    shift = model.kernel_.orthonormal(X[:, 0]) @ model.orthonormal_correction_.T
    assert_array_equal(model.predict(X), (p + shift).argmax(axis=1))
    if threshold == np.inf:
        assert_array_equal(proba, p)
    for value in np.unique(X[:, 0]):
        rows = X[:, 0] == value
        assert_array_equal(proba[rows].argsort(axis=0), p[rows].argsort(axis=0))


def test_of_equal_scores_the_first_class_wins(data):
    X, y, _ = data
    model = ProjectedClassifier(constraint=CoarseConstraint(np.inf), sensitive_columns=0).fit(X, y)
    model.estimator_.coef_[:] = 0.0
    model.estimator_.intercept_[:] = [0.0, 1e-14, 0.0]
    assert_array_equal(model.predict(X), 0)
    assert_array_equal(model.predict_proba(X).argmax(axis=1), 0)


def test_a_row_of_weight_zero_is_absent(data):
    X, y, w = data
    counted = np.arange(400) % 4 > 0
    folds = np.arange(400) < 200

    def fit(rows, weight):
        first = folds[rows]
        cv = [(np.flatnonzero(~own), np.flatnonzero(own)) for own in (first, ~first)]
        model = ProjectedClassifier(constraint=CoarseConstraint(), sensitive_columns=0, cv=cv)
        return model.fit(X[rows], y[rows], sample_weight=weight)

    with_zeros, without = fit(np.full(400, True), w * counted), fit(counted, w[counted])
    assert_allclose(
        with_zeros.orthonormal_correction_, without.orthonormal_correction_, rtol=1e-6, atol=1e-9
    )
    assert_array_equal(with_zeros.targets_[counted], without.targets_)
    assert_array_equal(with_zeros.targets_[~counted], y[~counted])


def test_without_the_attribute(data):
    X, y, _ = data
    model = ProjectedClassifier(
        constraint=CoarseConstraint(0.4),
        sensitive_columns=0,
        drop_sensitive=True,
        sensitive_at_predict=False,
        attribute_estimator=LinearRegression(),
    ).fit(X, y)
    assert (indicators(model.targets_, range(3), X[:, 0]) <= model.threshold_ * (1 + 1e-9)).all()
    hidden = np.c_[np.zeros(400), X[:, 1:]]
    assert_array_equal(model.predict(hidden), model.predict(X))
    assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))
    with pytest.raises(InfeasibleProjectionError, match="predict the attribute too poorly"):
        model.set_params(attribute_estimator=DummyRegressor()).fit(X, y)


def test_another_threshold_is_a_refit(data):
    X, y, _ = data
    model = ProjectedClassifier(constraint=CoarseConstraint(0.3), sensitive_columns=0).fit(X, y)
    later = ProjectedClassifier(constraint=CoarseConstraint(0.9), sensitive_columns=0)
    later._is_corrected_later = True
    later.fit(X, y)._correct_at(0.3)
    assert_array_equal(later.orthonormal_correction_, model.orthonormal_correction_)
    curve = tradeoff_curve(later, X, y, thresholds=[0.1, 0.9], cv=2, pos_label=1)
    assert curve.gedi[0] < curve.gedi[1]


def test_a_constant_attribute_leaves_the_plain_learner(data):
    X, y, _ = data
    X = np.c_[np.ones(400), X[:, 1:]]
    model = ProjectedClassifier(constraint=CoarseConstraint(), sensitive_columns=0)
    with pytest.warns(UserWarning, match="constant, so there is nothing to constrain"):
        model.fit(X, y)
    assert_array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))
    assert model.correction_.shape == (3, 0)


def test_ties_of_the_relaxation_are_decided_so_that_the_constraint_is_met(data):
    X, y, _ = data
    # No share of the threshold has one solution of the relaxation that meets this one.
    model = ProjectedClassifier(
        constraint=CoarseConstraint(0.3, kernel=3), sensitive_columns=0
    ).fit(X, y)
    met = indicators(model.targets_, range(3), X[:, 0], kernel=3)
    assert (met <= model.threshold_ * (1 + 1e-9)).all()


@pytest.mark.filterwarnings("ignore:the corrected labels miss the constraint")
def test_what_all_classes_have_in_common_does_not_grow():
    # m(X) has a mean, which no labels take away: the dual of the relaxation is unbounded there.
    r, n = np.random.default_rng(3), 120
    v = np.round(r.normal(size=n), 3)
    y = np.digitize(v + r.normal(size=n), [-0.5, 0.5])
    x = np.array(list("cab"))[np.digitize(v + r.normal(size=n), [-0.6, 0.5])]
    w, _ = r.random(n) + 0.1, r.normal(size=n)
    X = np.c_[v + r.normal(size=n), r.normal(size=n), r.normal(size=n)]
    model = ProjectedClassifier(
        GaussianNB(var_smoothing=0.0),
        DidiConstraint(0.2, relative=False),
        sensitive_at_predict=False,
        attribute_estimator=LinearRegression(),
        cv=2,
    ).fit(X, y, sensitive_features=x, sample_weight=w)
    correction = model.orthonormal_correction_
    assert np.abs(correction).max() < 1e4  # it was 2e9
    one_by_one = np.vstack([model.predict_proba(row[None]) for row in X])
    assert_allclose(model.predict_proba(X), one_by_one, atol=1e-10)
