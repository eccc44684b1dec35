"""Attribute-blind predictions between bounds: counts and rates, and bounded probabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.exceptions import ConstraintNotMetWarning, InfeasibleProjectionError
from gedi_sklearn.metrics import gedi

BLIND = {
    "sensitive_columns": 0,
    "drop_sensitive": True,
    "sensitive_at_predict": False,
    "attribute_estimator": LinearRegression(),
}
# A count, a rate, and the probability of the second of two classes.
KINDS = {
    "count": (ProjectedRegressor, {"target_bounds": (0, None)}, (0.0, np.inf)),
    "rate": (ProjectedRegressor, {"target_bounds": (0, 1)}, (0.0, 1.0)),
    "probability": (ProjectedClassifier, {}, (0.0, 1.0)),
}
NORMS = [CoarseConstraint, FineConstraint, DependenceConstraint]
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def data():
    """The attribute in column 0, proxies of it and of its square, and something else; weights."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, 600)
    proxies = np.c_[x + 0.4 * rng.normal(size=600), x**2 + 0.4 * rng.normal(size=600)]
    X = np.c_[x, proxies, proxies[:, 0] ** 3, rng.normal(size=600)]
    signal = x + 0.5 * x**2 + X[:, 4]
    targets = {
        "count": rng.poisson(np.exp(0.6 * signal - 0.5)) * 1.0,
        "rate": np.clip(signal / 5 + 0.3 + 0.1 * rng.normal(size=600), 0, 1),
        "probability": (3 * signal + rng.logistic(size=600) > 1).astype(int),
    }
    return X, targets, rng.uniform(0.5, 2, 600)


def on(kind):
    """Return what a constraint bounds of a kind of targets."""
    return {"on": "probabilities" if kind == "probability" else "predictions"}


def scores_of(model, X):
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


@every_kind
@pytest.mark.parametrize(("degree", "weighted"), [(1, False), (3, True), (5, False)])
@pytest.mark.parametrize("constraint", NORMS)
def test_the_constraint_is_met_between_the_bounds(data, kind, constraint, degree, weighted):
    X, targets, w = data
    model_class, options, (low, high) = KINDS[kind]
    weight = w * (np.arange(600) % 5 > 0) if weighted else None
    kernel = PolynomialKernel(degree, standardize=True)
    bound = constraint(kernel=kernel, **on(kind))
    model = model_class(constraint=bound, **options, **BLIND)
    model.fit(X, targets[kind], sample_weight=weight)
    counted = slice(None) if weight is None else weight > 0
    corrected = model.targets_[counted]
    assert low <= corrected.min()
    assert corrected.max() <= high
    assert ((corrected == low) | (corrected == high)).any()
    # The verdict knows what "fine" bounds, the sets of the other two are these norms.
    assert model.verdict_.training.value <= 1 + 1e-9
    if constraint is not FineConstraint:
        value = gedi(
            model.targets_,
            sensitive_features=X[:, 0],
            kernel=kernel,
            sample_weight=weight,
            norm=constraint.norm,
        )
        assert value == pytest.approx(model.threshold_)
    # New rows need no attribute.
    hidden = X.copy()
    hidden[:, 0] = 0.0
    assert_array_equal(scores_of(model, hidden), scores_of(model, X))
    assert low <= scores_of(model, hidden).min()


@every_kind
def test_where_the_other_columns_tell_it_the_correction_is_that_of_the_attribute(data, kind):
    X, targets, _ = data
    X = np.c_[X, X[:, 0]]
    model_class, options, _ = KINDS[kind]
    knowing = make_pipeline(PolynomialFeatures(3), LinearRegression())
    for constraint in NORMS:
        bound = constraint(kernel=PolynomialKernel(3, standardize=True), **on(kind))
        shared = {"constraint": bound, **options}
        aware = model_class(sensitive_columns=0, drop_sensitive=True, **shared)
        blind = model_class(**shared, **{**BLIND, "attribute_estimator": knowing})
        aware.fit(X, targets[kind])
        blind.fit(X, targets[kind])
        assert_allclose(blind.targets_, aware.targets_, atol=1e-9)
        assert_allclose(blind.orthonormal_correction_, aware.orthonormal_correction_, atol=1e-8)


@pytest.mark.parametrize("constraint", NORMS)
def test_bounds_that_nothing_reaches_change_nothing(data, constraint):
    X, y = data[0], data[1]["rate"]
    options = {"constraint": constraint(kernel=PolynomialKernel(3, standardize=True)), **BLIND}
    free = ProjectedRegressor(**options).fit(X, y)
    bounded = ProjectedRegressor(target_bounds=(-50, 50), **options).fit(X, y)
    assert_allclose(bounded.targets_, free.targets_, atol=1e-12)


@every_kind
def test_what_meets_the_constraint_once_it_is_cut_is_only_cut(data, kind):
    X, targets, _ = data
    model_class, options, bounds = KINDS[kind]
    bound = CoarseConstraint(10.0, relative=False, **on(kind))
    model = model_class(constraint=bound, cv="train", **options, **BLIND)
    model.fit(X, targets[kind])
    assert_array_equal(model.orthonormal_correction_, [0.0])
    inner = scores_of(model.estimator_, X[:, 1:])
    assert_allclose(scores_of(model, X), np.clip(inner, *bounds), atol=1e-12)


@every_kind
def test_every_constraint_of_a_list_is_met(data, kind):
    X, targets, _ = data
    group = np.digitize(X[:, 1], [-0.5, 0.5]) * 1.0
    X = np.c_[X[:, 0], group, X[:, 1:]]
    model_class, options, _ = KINDS[kind]
    model = model_class(
        constraint=[DependenceConstraint(kernel=2, **on(kind)), DidiConstraint(**on(kind))],
        **options,
        **{**BLIND, "sensitive_columns": [0, 1]},
    ).fit(X, targets[kind])
    value = gedi(model.targets_, sensitive_features=X[:, 0], kernel=2, norm="sd")
    assert value <= model.threshold_[0] * (1 + 1e-9)
    assert model.verdict_.training.value <= 1 + 1e-9


def test_bounds_that_leave_no_correction_are_warned_of():
    """Only a tenth of the rows tells its group, and to move these is not enough."""
    rng = np.random.default_rng(0)
    group, told = rng.integers(0, 2, 400) * 1.0, rng.random(400) < 0.1
    X = np.c_[group, group * told, told]
    y = 0.3 + 0.4 * group
    telling = {"attribute_estimator": LinearRegression(fit_intercept=False)}
    options = {**BLIND, **telling, "drop_sensitive": False, "cv": "train"}
    options["constraint"] = CoarseConstraint()
    free = ProjectedRegressor(**options).fit(X, y)
    assert free.targets_.min() < 0
    model = ProjectedRegressor(target_bounds=(0, 1), **options)
    with pytest.warns(ConstraintNotMetWarning, match=r"between \(0, 1\).*`attribute_estimator`"):
        model.fit(X, y)
    value = gedi(model.targets_, sensitive_features=group)
    assert model.threshold_ < value < gedi(y, sensitive_features=group)
    assert model.targets_.min() >= 0
    # It is as little as can be: every row that is told is moved as far as the bounds let it.
    assert_allclose(model.targets_[told], 1 - group[told], atol=1e-6)


def test_what_only_the_cut_takes_off_the_constraint_is_put_back(data):
    """Residuals of a linear model do not depend on the attribute, those of cut predictions do."""
    X, y = data[0], data[1]["count"]
    constraint = CoarseConstraint(0.02, relative=False, on="residuals")
    # The learner has the attribute; the correction has not.
    options = {**BLIND, "drop_sensitive": False}
    free = ProjectedRegressor(constraint=constraint, **options).fit(X, y)
    bounded = ProjectedRegressor(constraint=constraint, target_bounds=(0, None), **options)
    bounded.fit(X, y)
    cut = np.maximum(free.targets_, 0.0)
    assert gedi(y, cut, sensitive_features=X[:, 0], on="residuals") > 0.03
    left = gedi(y, bounded.targets_, sensitive_features=X[:, 0], on="residuals")
    assert left == pytest.approx(0.02)


def test_a_certificate_rests_on_what_is_cut(data):
    X, y = data[0], data[1]["rate"]
    model = ProjectedRegressor(
        constraint=CoarseConstraint(0.5), target_bounds=(0, 1), confidence=0.9, **BLIND
    )
    model.fit(X, y)
    assert model.certificate_ is not None
    plain = ProjectedRegressor(constraint=CoarseConstraint(0.5), target_bounds=(0, 1), **BLIND).fit(
        X, y
    )
    sizes = [gedi(own.targets_, sensitive_features=X[:, 0]) for own in (model, plain)]
    assert sizes[0] < sizes[1]


def test_bounded_probabilities_without_the_attribute_agree_with_their_labels(data):
    X, y = data[0], data[1]["probability"]
    model = ProjectedClassifier(
        LogisticRegression(), CoarseConstraint(on="probabilities"), **BLIND
    ).fit(X, y)
    proba = model.predict_proba(X)
    assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))


def test_what_only_errors_of_the_attribute_estimator_could_correct_is_refused():
    """With a mean of each fold in the place of nothing, huge corrections seem to do something."""
    group = np.random.default_rng(0).integers(0, 2, 400) * 1.0
    told = np.arange(400) % 10 == 0
    X = np.c_[group, group * told, told]
    options = {**BLIND, "drop_sensitive": False, "cv": "train", "target_bounds": (0, 1)}
    with pytest.raises(InfeasibleProjectionError, match="predict the attribute too poorly"):
        ProjectedRegressor(**options).fit(X, 0.3 + 0.4 * group)
