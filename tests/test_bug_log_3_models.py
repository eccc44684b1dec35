"""The third log: learners, boosting and networks that must be right, or refuse by name."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    ConstrainedBoostingRegressor,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning",
    "ignore::gedi_sklearn.exceptions.UnseenDependenceWarning",
    "ignore::gedi_sklearn.exceptions.AttributeScaleWarning",
)

for_each_backend = pytest.mark.parametrize("backend", ["xgboost", "lightgbm"])


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n)


def boost(backend="xgboost", kind=ConstrainedBoostingRegressor, **params):
    defaults = {"constraint": CoarseConstraint(), "n_estimators": 20, "sensitive_columns": 0}
    return kind(backend, **defaults | params)


# --- boosting: parameters of the package ----------------------------------------------------------
@pytest.mark.parametrize(
    ("backend", "params", "reason"),
    [
        ("xgboost", {"booster": "dart"}, "booster='dart', which changes trees that are finished"),
        ("xgboost", {"rate_drop": 0.5}, "changes trees that are finished"),
        ("xgboost", {"process_type": "update"}, "changes trees that are finished"),
        ("xgboost", {"booster": "gblinear"}, "grows no trees"),
        ("lightgbm", {"boosting": "dart"}, "changes trees that are finished"),
        ("lightgbm", {"boosting_type": "rf"}, "changes trees that are finished"),
        ("lightgbm", {"xgboost_dart_mode": True}, "changes trees that are finished"),
        *[(own, {"scale_pos_weight": 20}, "built-in loss") for own in ("xgboost", "lightgbm")],
        *[
            ("lightgbm", {name: 1}, f"{name}', which belongs to a built-in loss")
            for name in ("is_unbalance", "sigmoid", "reg_sqrt", "alpha")
        ],
        ("lightgbm", {"boost_from_average": False}, "this estimator does itself"),
        ("lightgbm", {"early_stopping_rounds": 3}, "this estimator does itself"),
        *[
            ("xgboost", {name: 3}, f"{name}', which this estimator does itself")
            for name in ("n_estimators", "num_boost_round", "early_stopping_rounds")
        ],
        ("xgboost", {"max_leafs": 8}, "'max_leafs', which is no parameter.*'max_leaves'"),
        ("lightgbm", {"bagging_fraction": 0.5}, "has no effect without bagging_freq"),
        ("lightgbm", {"num_leaves": 1}, "refuses backend_params={'num_leaves': 1}"),
        ("xgboost", {"max_leaves": -1}, "refuses backend_params={'max_leaves': -1}"),
        ("xgboost", {"subsample": 2}, "subsample"),
        ("xgboost", {"device": "xx"}, "Invalid argument for `device`"),
        ("lightgbm", {"device": "xx"}, "{'device': 'xx'}: Unknown device"),
        ("xgboost", {"max_depth": None}, "max_depth=None"),
        ("xgboost", {"reg_lambda": np.nan}, "reg_lambda=nan"),
        ("xgboost", {"lambda": 1.0, "reg_lambda": 2.0}, "by two of its names"),
        ("xgboost", {3: 2}, "names as keys"),
        *[
            (own, {"monotone_constraints": value}, "monotone_constraints")
            for own in ("xgboost", "lightgbm")
            for value in ([1], [2, 0, 0], {"a": 1}, "(1,0,0)")
        ],
        *[
            (own, {"interaction_constraints": value}, "interaction_constraints")
            for own in ("xgboost", "lightgbm")
            for value in ("abc", [[0, 7]], [0, 1])
        ],
    ],
    ids=str,
)
def test_what_a_package_would_drop_or_crash_on_is_refused_by_name(backend, params, reason):
    X, y = data(90)
    with pytest.raises(ValueError, match=f"(?s)backend_params.*{reason}|{reason}") as caught:
        boost(backend, n_estimators=2, backend_params=params).fit(X, y)
    assert "backend_params" in str(caught.value)
    assert "Stack trace" not in str(caught.value)


@pytest.mark.parametrize(
    ("backend", "params"),
    [
        ("xgboost", {"alpha": 30.0}),
        ("xgboost", {"monotone_constraints": {1: -1}}),
        ("xgboost", {"interaction_constraints": [[0], [1, 2]]}),
        ("lightgbm", {"boosting": "goss"}),
        ("lightgbm", {"bagging_fraction": 0.5, "bagging_freq": 1}),
        ("lightgbm", {"monotone_constraints": (0, -1, 0)}),
        ("lightgbm", {"interaction_constraints": [[0], [1, 2]]}),
        ("lightgbm", {"linear_tree": True}),
    ],
    ids=str,
)
def test_what_acts_is_taken_and_the_ascent_sees_what_predict_returns(backend, params):
    X, y = data()
    model, plain = (boost(backend, backend_params=own).fit(X, y) for own in (params, None))
    z = model.predict(X)
    assert np.abs(z - plain.predict(X)).max() > 0.01
    loss = model.history_["loss"][model.n_iter_ - 1]
    assert_allclose(np.mean((z - y) ** 2), loss, rtol=1e-4)


# --- boosting: units ------------------------------------------------------------------------------
@for_each_backend
@pytest.mark.parametrize("scale", [3e-5, 1e-100, 1e18, 1e100])
def test_predictions_have_the_unit_of_the_targets(backend, scale):
    X, y = data()
    for params in (None, {"min_gain_to_split" if backend == "lightgbm" else "gamma": 0.5}):
        model = boost(backend, backend_params=params)
        right = model.fit(X, y).predict(X)
        assert_allclose(model.fit(X, y * scale).predict(X) / scale, right, atol=1e-3)
    assert_allclose(model.scale_, scale * y.std(), rtol=1e-12)


@for_each_backend
@pytest.mark.parametrize("kind", [ConstrainedBoostingRegressor, ConstrainedBoostingClassifier])
@pytest.mark.parametrize("scale", [1 / 300, 1e-6, 1e39, 1e-140])
def test_equal_weights_are_no_weights(backend, kind, scale):
    X, y = data()
    y = y if kind is ConstrainedBoostingRegressor else y > 0.3
    model = boost(backend, kind)
    right = model.fit(X, y).predict(X)
    assert_array_equal(model.fit(X, y, sample_weight=np.full(300, scale)).predict(X), right)


@for_each_backend
def test_rows_too_few_for_a_split_are_said_to_be_the_cause(backend):
    X, y = data(30)
    with pytest.warns(UserWarning, match="could split the 30 rows.* a leaf must weigh at least 20"):
        boost(backend).fit(X, y)
    X, y = data()
    most = {"min_gain_to_split" if backend == "lightgbm" else "gamma": 1e9}
    with pytest.warns(UserWarning, match="a split gain what backend_params"):
        boost(backend, backend_params=most).fit(X, y)
