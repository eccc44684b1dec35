"""Estimators with loss="kl": counts and rates that are multiplied, and stay positive."""

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from numpy.testing import assert_allclose
from scipy.special import kl_div
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, PoissonRegressor
from xgboost import XGBRegressor

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingRegressor,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    MovingTargetsRegressor,
    PolynomialKernel,
    ProjectedRegressor,
    project_targets,
)
from gedi_sklearn.metrics import didi, gedi

LEARNERS = {
    "linear": PoissonRegressor(alpha=1e-3),
    "scikit-learn": HistGradientBoostingRegressor(loss="poisson", max_iter=30),
    "lightgbm": LGBMRegressor(objective="poisson", n_estimators=30, n_jobs=1, verbose=-1),
    "xgboost": XGBRegressor(objective="count:poisson", n_estimators=30, n_jobs=1),
}


@pytest.fixture(scope="module")
def portfolio():
    """Return X (age first), claims a year, and years at risk; 80 % of the rows have no claim."""
    rng = np.random.default_rng(0)
    age, region, power = rng.uniform(18, 80, 3000), rng.normal(size=3000), rng.normal(size=3000)
    exposure = rng.uniform(0.2, 1.0, 3000)
    rate = np.exp(-1.3 + 1.2 * np.clip((40 - age) / 20, 0, 1) + 0.4 * region + 0.2 * power)
    return np.c_[age, region, power], rng.poisson(rate * exposure) / exposure, exposure


def left(X, y, z, weight=None):
    return gedi(
        y,
        z,
        sensitive_features=X[:, 0],
        norm="sd",
        kernel="spline",
        relative=True,
        sample_weight=weight,
    )


def test_projected_predictions_are_multiplied_by_relativities(portfolio):
    X, y, exposure = portfolio
    model = ProjectedRegressor(
        LEARNERS["linear"], DependenceConstraint(0.2), loss="kl", sensitive_columns=0
    ).fit(X, y, sample_weight=exposure)
    p, plain = model.predict(X), model.estimator_.predict(X)
    assert_allclose(p, plain * model.relativities(X[:, 0]), rtol=1e-12)
    assert (p > 0).all()
    # The targets are those of the projection of the cross-fitted predictions.
    assert_allclose(left(X, y, model.targets_, exposure), 0.2, rtol=1e-6)
    assert model.relativities([20.0])[0] < 0.9 < 1.05 < model.relativities([60.0])[0]
    assert_allclose(exposure @ p, exposure @ y, rtol=0.03)


@pytest.mark.parametrize("blind", [False, True])
def test_corrections_multiply_by_groups(portfolio, blind):
    X, y, _ = portfolio
    young = np.where(X[:, 0] < 40, "young", "old")
    proxy = np.c_[X, X[:, 0] + 5 * np.random.default_rng(1).normal(size=len(X))][:, 1:]
    model = ProjectedRegressor(
        LEARNERS["scikit-learn"],
        DidiConstraint(0.1),
        loss="kl",
        sensitive_at_predict=not blind,
    ).fit(proxy, y, sensitive_features=young)
    disparity = didi(y, model.targets_, sensitive_features=young, relative=True)
    assert_allclose(disparity, 0.1, rtol=1e-6)
    assert (model.targets_ > 0).all()
    if blind:
        ratio = model.predict(proxy) / model.estimator_.predict(proxy)
        assert (ratio > 0).all()
        assert ratio.std() > 0.05
        with pytest.raises(ValueError, match="relativities need sensitive_at_predict=True"):
            model.relativities(young[:1])
    else:
        assert len(np.unique(model.relativities(young).round(12))) == 2


def test_an_attribute_blind_correction_of_a_known_kernel_is_the_aware_one(portfolio):
    X, y, _ = portfolio
    keywords = {"loss": "kl", "constraint": CoarseConstraint(0.3), "cv": "train"}
    aware = ProjectedRegressor(LEARNERS["linear"], **keywords, sensitive_columns=0).fit(X, y)
    # Beside the column, a copy of it says all of the attribute.
    blind = ProjectedRegressor(
        LEARNERS["linear"],
        **keywords,
        sensitive_at_predict=False,
        attribute_estimator=LinearRegression(),
    ).fit(X, y, sensitive_features=X[:, 0])
    assert_allclose(blind.predict(X), aware.predict(X), rtol=1e-6)


def test_an_attribute_blind_correction_is_the_same_in_every_unit(portfolio):
    X, y, _ = portfolio
    X, y = X[:500], 1 + y[:500]
    proxy = np.c_[X[:, 1:], X[:, 0] + 10 * np.random.default_rng(1).normal(size=len(X))]
    model = ProjectedRegressor(
        TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp),
        FineConstraint(0.2, kernel=PolynomialKernel(2, standardize=True)),
        loss="kl",
        sensitive_at_predict=False,
        attribute_estimator=LinearRegression(),
    )
    first, second = (
        clone(model).fit(proxy, unit * y, sensitive_features=X[:, 0]).predict(proxy) / unit
        for unit in (1, 1e9)
    )
    assert_allclose(second, first, rtol=1e-9)


def test_a_threshold_of_all_that_there_is_changes_nothing(portfolio):
    X, y, _ = portfolio
    constraint = CoarseConstraint(np.inf, relative=False)
    model = ProjectedRegressor(None, constraint, loss="kl", sensitive_columns=0).fit(X, y)
    assert isinstance(model.estimator_, PoissonRegressor)
    assert_allclose(model.predict(X), model.estimator_.predict(X), rtol=1e-12)


def test_relativities_of_a_constant_attribute_are_one(portfolio):
    X, y, _ = portfolio
    with pytest.warns(UserWarning, match="constant"):
        model = ProjectedRegressor(loss="kl").fit(X, y, sensitive_features=np.ones(len(X)))
    assert model.relativities([1.0]).tolist() == [1.0]


def test_what_cannot_be_multiplied_is_an_error(portfolio):
    X, y, _ = portfolio
    model = ProjectedRegressor(LinearRegression(), loss="kl", sensitive_columns=0)
    with pytest.raises(ValueError, match="of the predictions of LinearRegression are at most 0"):
        model.fit(X, y**4)
    with pytest.raises(ValueError, match=r"y has .* negative value"):
        model.fit(X, y - 1)
    with pytest.raises(ValueError, match=r"target_bounds=.* with loss='kl'"):
        ProjectedRegressor(loss="kl", target_bounds=(0, None), sensitive_columns=0).fit(X, y)
    with pytest.raises(ValueError, match="relativities need loss='kl'"):
        ProjectedRegressor(sensitive_columns=0).fit(X, y).relativities([30.0])


@pytest.mark.parametrize("learner", LEARNERS)
def test_moving_targets_wraps_learners_of_counts(portfolio, learner):
    X, y, exposure = portfolio
    model = MovingTargetsRegressor(
        LEARNERS[learner], DependenceConstraint(0.2), loss="kl", max_iter=3, sensitive_columns=0
    ).fit(X, y, sample_weight=exposure)
    assert (model.targets_ > 0).all()
    assert (model.predict(X) > 0).all()
    assert left(X, y, model.targets_, exposure) <= 0.2 * (1 + 1e-9)
    assert left(X, y, model.predict(X), exposure) < 0.6
    assert np.isfinite(model.history_["loss_predictions"]).all()


def test_a_step_of_moving_targets_is_the_projection_of_the_mean(portfolio):
    X, y, exposure = portfolio
    learner, constraint = LEARNERS["linear"], DependenceConstraint(0.2)
    model = MovingTargetsRegressor(
        learner, constraint, loss="kl", max_iter=1, target_weight=0.5, sensitive_columns=0
    ).fit(X, y, sample_weight=exposure)
    p = LEARNERS["linear"].fit(X, y, sample_weight=exposure).predict(X)
    step = project_targets(
        y,
        p,
        sensitive_features=X[:, 0],
        constraint=constraint,
        loss="kl",
        target_weight=0.5,
        sample_weight=exposure,
    )
    assert_allclose(model.targets_, step.targets, rtol=1e-9)
    mean = (p + 0.5 * y) / 1.5
    assert_allclose(exposure @ step.targets, exposure @ mean, rtol=1e-12)


def test_exposure_is_a_weight_and_y_a_rate(portfolio):
    """A policy of a year is two of half a year with the same rate."""
    X, y, _ = portfolio
    X, y = X[:600], y[:600]
    keywords = {"loss": "kl", "max_iter": 2, "sensitive_columns": 0}
    one, halves = (
        MovingTargetsRegressor(LEARNERS["linear"], DependenceConstraint(0.2), **keywords).fit(
            np.repeat(X, times, axis=0),
            np.repeat(y, times),
            sample_weight=np.full(times * len(y), 1 / times),
        )
        for times in (1, 2)
    )
    assert_allclose(halves.targets_[::2], one.targets_, rtol=1e-4)


@pytest.mark.parametrize("backend", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("cv", [None, 3])
def test_boosting_bounds_the_mean_through_the_log_link(portfolio, backend, cv):
    X, y, exposure = portfolio
    leaves = {"xgboost": "max_leaves", "lightgbm": "num_leaves"}[backend]
    model = ConstrainedBoostingRegressor(
        backend,
        DependenceConstraint(0.2),
        loss="kl",
        backend_params={leaves: 4},
        cv=cv,
        sensitive_columns=0,
        random_state=0,
    ).fit(X, y, sample_weight=exposure, eval_set=[(X, y)])
    p = model.predict(X)
    assert (p > 0).all()
    assert_allclose(exposure @ p, exposure @ y, rtol=0.02)
    indicator = model.history_["indicator"]
    assert model.multipliers_.any()
    assert indicator[model.n_iter_ - 1] <= 1.1 * model.threshold_
    losses = model.evals_result_["validation_0"]["kl"]
    assert_allclose(losses[-1], kl_div(y, p).mean(), rtol=1e-4)
    assert losses[-1] < losses[0]


def test_boosting_without_a_bound_is_that_of_poisson(portfolio):
    X, y, _ = portfolio
    constraint = DependenceConstraint(np.inf, relative=False)
    params = {"max_leaves": 4, "min_child_weight": 20.0, "max_delta_step": 0}
    model = ConstrainedBoostingRegressor(
        "xgboost",
        constraint,
        loss="kl",
        n_estimators=40,
        sensitive_columns=0,
        backend_params=params,
    ).fit(X, y)
    plain = XGBRegressor(
        objective="count:poisson",
        n_estimators=40,
        learning_rate=0.1,
        grow_policy="lossguide",
        max_depth=0,
        max_leaves=4,
        min_child_weight=20.0 * y.mean(),  # there a row weighs what is predicted, not 1 on average
        reg_lambda=0.0,
        base_score=y.mean(),
        max_delta_step=0,
        n_jobs=1,
    ).fit(X, y)
    assert_allclose(model.predict(X), plain.predict(X), rtol=1e-4)


@pytest.mark.parametrize(
    ("backend", "name"),
    [("xgboost", "tweedie_variance_power"), ("lightgbm", "tweedie_variance_power")],
)
def test_the_power_of_tweedie_is_refused_by_name(portfolio, backend, name):
    X, y, _ = portfolio
    model = ConstrainedBoostingRegressor(
        backend, loss="kl", sensitive_columns=0, backend_params={name: 1.5}
    )
    with pytest.raises(ValueError, match=f"{name}.*has no effect"):
        model.fit(X, y)
