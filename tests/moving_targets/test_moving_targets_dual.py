"""The multipliers of the learner's own problem."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from gedi_sklearn import (
    CoarseConstraint,
    DidiConstraint,
    DualTargetsClassifier,
    DualTargetsRegressor,
    FineConstraint,
    FourierKernel,
    MovingTargetsRegressor,
    ProjectedClassifier,
)
from gedi_sklearn.metrics import didi, gedi, gedi_coefficients


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    attribute = rng.uniform(-1.5, 1.5, 200)
    other = attribute + rng.normal(size=200)
    curved = np.column_stack([attribute**2, attribute**3]) + rng.normal(size=(200, 2))
    X = np.c_[attribute, other, rng.normal(size=(200, 2)), curved]
    y = attribute + 0.5 * attribute**2 + other + X[:, 2] + 0.5 * rng.normal(size=200)
    return X, y, attribute


def dual(estimator=None, **params):
    params = {"constraint": CoarseConstraint(), "sensitive_columns": 0, **params}
    classifier = hasattr(estimator, "predict_proba")
    return (DualTargetsClassifier if classifier else DualTargetsRegressor)(estimator, **params)


def map_to_coefficients(attribute, degree, weight):
    """Return the matrix that takes targets to their coefficients."""
    columns = np.column_stack([attribute**j for j in range(1, degree + 1)])
    columns = columns - np.average(columns, axis=0, weights=weight)
    weighted = columns * weight[:, None]
    return np.linalg.solve(columns.T @ weighted, weighted.T)


def constrained_least_squares(X, y, to_coefficients, bounds, weight, ridge):
    """Return the best linear model whose coefficients satisfy A α ≤ b: predictions, b'Gb − 2b'h."""
    design = np.c_[np.ones(len(y)), X - np.average(X, axis=0, weights=weight)]
    normal = design.T @ (design * weight[:, None])
    normal[1:, 1:] += ridge * np.eye(X.shape[1])
    rhs = design.T @ (weight * y)
    facets, limits = bounds
    rows = facets @ to_coefficients @ design
    solved = minimize(
        lambda b: b @ normal @ b / 2 - rhs @ b,
        np.zeros(len(rhs)),
        jac=lambda b: normal @ b - rhs,
        constraints={"type": "ineq", "fun": lambda b: limits - rows @ b, "jac": lambda b: -rows},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return design @ solved.x, 2 * solved.fun


# --- linear learners --------------------------------------------------------------------------


@pytest.mark.parametrize("drop_sensitive", [False, True])
@pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint])
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("ridge", [0.0, 20.0])
def test_linear_model_is_the_constrained_one(data, drop_sensitive, constraint, degree, ridge):
    X, y, attribute = data
    weight = np.linspace(0.5, 2, len(y))
    learner = Ridge(ridge) if ridge else LinearRegression()
    model = dual(
        learner,
        constraint=constraint(kernel=degree),
        drop_sensitive=drop_sensitive,
        tol=1e-11,
    ).fit(X, y, sample_weight=weight)
    # k independent steps show all that there is to know of a linear learner; the next is right.
    assert model.n_iter_ <= degree + 1
    q = model.threshold_
    to_coefficients = map_to_coefficients(attribute, degree, weight)
    alpha = to_coefficients @ model.predict(X)
    if constraint is CoarseConstraint:
        assert np.abs(alpha).sum() == pytest.approx(q, rel=1e-9)
        facets = np.array(list(product([-1.0, 1.0], repeat=degree)))
        limits = np.full(len(facets), q)
    else:
        assert_allclose(alpha[1:], 0, atol=1e-9 * q)
        assert abs(alpha[0]) <= q * (1 + 1e-9)
        facets = np.r_[np.eye(degree), -np.eye(degree)]
        limits = np.tile(np.r_[q, np.zeros(degree - 1)], 2)
    seen = X[:, 1:] if drop_sensitive else X
    best, objective = constrained_least_squares(
        seen, y, to_coefficients, (facets, limits), weight, ridge
    )
    assert_allclose(model.predict(X), best, atol=1e-4)
    # The solver of the oracle stops earlier: among the allowed models ours is no worse.
    squares = weight @ (model.predict(X) - y) ** 2 - weight @ y**2
    penalty = ridge * np.square(model.estimator_.coef_).sum()
    assert squares + penalty <= objective + 1e-6 * abs(objective)


def test_a_learner_that_sees_the_attribute_needs_one_step(data):
    X, y, attribute = data
    model = dual(tol=1e-9).fit(X, y)
    assert model.n_iter_ == 1
    assert_allclose(
        gedi(model.predict(X), sensitive_features=attribute), model.threshold_, rtol=1e-9
    )


@pytest.mark.parametrize(
    "options",
    [
        {"constraint": [CoarseConstraint(kernel=2), FineConstraint()], "sensitive_columns": [0, 1]},
        {"conditional_on": 1, "constraint": CoarseConstraint(kernel=2)},
        {"constraint": CoarseConstraint(0.0, kernel=2)},
        {"constraint": CoarseConstraint(kernel=FourierKernel(2))},
    ],
)
# Those of a single projection, which a line in the attribute follows only in part.
@pytest.mark.filterwarnings("ignore:.*the predictions for the training rows do not meet")
def test_other_constraints(data, options):
    X, y, _ = data
    model = dual(tol=1e-6, **options).fit(X, y)
    assert 0 < model.n_iter_ <= 6
    assert model.selected_iteration_ == model.n_iter_
    # The last predictions satisfy the constraint, as a projection of the targets does.
    projected = MovingTargetsRegressor(
        **{**model.get_params(deep=False), "tol": None, "max_iter": 1}
    ).fit(X, y)
    allowed = projected.history_["targets_gedi"][1]
    assert model.history_["predictions_gedi"][-1] <= allowed + 1e-4


def test_groups(data):
    X, y, attribute = data
    groups = np.digitize(attribute, [-0.5, 0.5])
    model = DualTargetsRegressor(constraint=DidiConstraint(), tol=1e-10)
    model.fit(X, y, sensitive_features=groups)
    assert_allclose(didi(model.predict(X), sensitive_features=groups), model.threshold_, rtol=1e-8)


# --- nothing to do ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:threshold=1.5 is 150 %")
def test_a_constraint_that_does_not_bind_changes_nothing(data):
    X, y, attribute = data
    for learner, target in (
        (GradientBoostingRegressor(random_state=0), y),
        (GradientBoostingClassifier(random_state=0), y > 0),
    ):
        plain = clone(learner).fit(X, target)
        for threshold in (1.5, np.inf):
            model = dual(learner, constraint=CoarseConstraint(threshold)).fit(X, target)
            assert model.n_iter_ == 0
            assert_array_equal(model.targets_, target)
            assert_array_equal(model.predict(X), plain.predict(X))
    # It is the predictions that count: here the targets break the constraint and they do not.
    model = dual(Ridge(1e6)).fit(X, y)
    assert gedi(y, sensitive_features=attribute) > model.threshold_
    assert model.n_iter_ == 0
    assert_array_equal(model.predict(X), Ridge(1e6).fit(X, y).predict(X))


@pytest.mark.filterwarnings("ignore:sensitive_features is constant:UserWarning")
def test_a_constant_attribute_constrains_nothing(data):
    X, y, _ = data
    model = DualTargetsRegressor(constraint=CoarseConstraint()).fit(
        X, y, sensitive_features=np.ones(len(y))
    )
    assert model.n_iter_ == 0


# --- learners that are not linear -------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "cv"),
    [
        (GradientBoostingRegressor(n_estimators=30, random_state=0), "train"),
        (GradientBoostingRegressor(n_estimators=30, random_state=0), 3),
        (RandomForestRegressor(n_estimators=50, random_state=0), "oob"),
    ],
)
def test_the_constraint_holds_for_what_the_view_predicts(data, learner, cv):
    X, y, attribute = data
    model = dual(learner, cv=cv, tol=0.01).fit(X, y)
    assert 0 < model.n_iter_ <= 5
    history = model.history_
    assert history["predictions_gedi"][-1] <= model.threshold_ + 0.01 * y.std() / attribute.std()
    moving = MovingTargetsRegressor(**{**model.get_params(deep=False), "tol": None})
    slow = moving.fit(X, y).history_
    assert history["loss_predictions"][-1] <= slow["loss_predictions"][-1]


def test_history_says_how_the_targets_were_made(data):
    X, y, attribute = data
    model = dual(Ridge(20.0), tol=1e-9).fit(X, y)
    history = model.history_
    assert list(history["status"]) == ["", "dual", "dual"]
    assert list(history["solver"]) == ["", "exact", "exact"]
    assert_array_equal(history["n_variables"], [np.nan, 1, 1])
    assert np.isnan(history["target_weight"]).all()
    assert (history["violation"][1:] >= 0).all()
    # y − Qλ, with Q the attribute in deviations.
    change = model.targets_ - y
    q = (attribute - attribute.mean()) / attribute.std()
    assert_allclose(change, q * (q @ change / len(y)), atol=1e-12)


def test_all_clones_get_one_seed(data):
    X, y, _ = data
    seeds = []

    class Recorded(RandomForestRegressor):
        def fit(self, X, y, sample_weight=None):
            seeds.append(self.random_state)
            return super().fit(X, y, sample_weight)

    model = dual(Recorded(n_estimators=5), random_state=0, tol=0.05)
    first = clone(model).fit(X, y)
    assert len(seeds) > 1
    assert len(set(seeds)) == 1
    again = clone(model).fit(X, y)
    assert_array_equal(first.predict(X), again.predict(X))
    assert_array_equal(first.targets_, again.targets_)


# --- no convergence ---------------------------------------------------------------------------


class Stubborn(RegressorMixin, BaseEstimator):
    """Predicts the attribute, whatever the targets are, and says how often it was fitted."""

    def fit(self, X, y):
        self.mean_ = y.mean()
        return self

    def predict(self, X):
        return X[:, 0] + self.mean_


def test_moving_targets_follow_a_search_without_progress(data):
    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match=r"in 3 fit\(s\).* 4 iteration"):
        model = dual(Stubborn(), max_iter=7).fit(X, y)
    history = model.history_
    assert list(history["status"]) == ["", *["dual"] * 3, *["optimal"] * 4]
    assert_allclose(history["target_weight"][4:], 1 / np.arange(1, 5))
    # All miss by the same, up to rounding: the loss decides.
    assert model.selected_iteration_ > 0


def test_a_budget_too_small_keeps_the_best_fit(data):
    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match=r"in 1 fit\(s\)"):
        model = dual(
            constraint=CoarseConstraint(kernel=3), max_iter=1, tol=1e-9, drop_sensitive=True
        ).fit(X, y)
    assert model.n_iter_ == model.selected_iteration_ == 1


# --- classes ----------------------------------------------------------------------------------


CUBIC = CoarseConstraint(kernel=3)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(1)
    attribute = rng.uniform(-1.5, 1.5, 1500)
    X = np.c_[attribute, rng.normal(size=(1500, 3))]
    y = np.where(attribute + 2 * X[:, 1] + rng.normal(size=1500) > 0, "yes", "no")
    return X, y, attribute


@pytest.mark.parametrize(
    ("learner", "options"),
    [
        (LogisticRegression(), {}),
        (GradientBoostingClassifier(n_estimators=20, random_state=0), {"constraint": CUBIC}),
        (GradientBoostingClassifier(n_estimators=20, random_state=0), {"cv": 3}),
    ],
)
def test_predicted_labels_satisfy_the_constraint(classes, learner, options):
    X, y, attribute = classes
    model = dual(learner, tol=0.01, **options).fit(X, y)
    assert 0 < model.n_iter_ <= 5
    assert set(model.history_["status"][1:]) == {"dual"}
    assert set(model.targets_) == {"yes", "no"}
    allowed = model.threshold_ + 0.01 * 0.5 / attribute.std() * (
        4 if "constraint" in options else 1
    )
    assert model.history_["predictions_gedi"][-1] <= allowed


def test_coefficients_without_a_bound_are_free(classes):
    X, y, attribute = classes
    constraint = FineConstraint([0.1, np.inf], kernel=2)
    model = dual(LogisticRegression(), tol=0.01, constraint=constraint).fit(X, y)
    assert model.n_iter_ > 0
    slope, _ = gedi_coefficients(model.predict(X) == "yes", sensitive_features=attribute, kernel=2)
    assert abs(slope) <= model.threshold_[0] + 0.01 * 0.5 / attribute.std()
    # A constraint that bounds nothing stands beside.
    for both in ([constraint, CoarseConstraint(np.inf)], [CoarseConstraint(np.inf), constraint]):
        columns = [0, 1] if both[0] is constraint else [1, 0]
        beside = clone(model).set_params(constraint=both, sensitive_columns=columns).fit(X, y)
        assert_array_equal(beside.predict(X), model.predict(X))


def test_first_labels_are_those_of_post_processing(classes):
    X, y, _ = classes
    with pytest.warns(ConvergenceWarning):
        model = dual(
            LogisticRegression(), max_iter=1, tol=0.0, constraint=CoarseConstraint(kernel=2)
        ).fit(X, y)
    projected = ProjectedClassifier(
        constraint=CoarseConstraint(kernel=2), cv="train", sensitive_columns=0
    ).fit(X, y)
    assert (model.targets_ != projected.targets_).mean() < 2e-3


def test_the_warning_tells_what_is_missing():
    # With few rows the labels stay as they are, about one row away from the constraint.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=200) > 0).astype(int)
    model = dual(LogisticRegression(), max_iter=4, constraint=CoarseConstraint(0.3))
    with pytest.warns(ConvergenceWarning, match=r"moved by .* predictions 0\.0\d+ deviations away"):
        model.fit(X, y)


def test_what_the_dual_cannot_do_is_named(classes):
    X, y, attribute = classes
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
        DualTargetsClassifier(LinearSVC(), CoarseConstraint(), sensitive_columns=0).fit(X, y)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        dual(LogisticRegression()).fit(X, np.digitize(attribute, [-0.5, 0.5]))
