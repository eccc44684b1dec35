"""The third log: learners, boosting and networks that must be right, or refuse by name."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    ConstrainedBoostingRegressor,
    LagrangianDualClassifier,
    LagrangianDualRegressor,
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


# --- networks -------------------------------------------------------------------------------------
def network(kind=LagrangianDualRegressor, **params):
    defaults = {"constraint": CoarseConstraint(), "max_epochs": 3, "sensitive_columns": 0}
    return kind((4,), **defaults | {"random_state": 0} | params)


def scoring(kind, **params):
    name = "r2" if kind is LagrangianDualRegressor else "accuracy"
    return [
        getattr(skorch_callbacks(), kind_of)(name, on_train=True, **params) for kind_of in SCORINGS
    ]


SCORINGS = ("EpochScoring", "BatchScoring")


def skorch_callbacks():
    return pytest.importorskip("skorch.callbacks")


NETWORKS = pytest.mark.parametrize("kind", [LagrangianDualRegressor, LagrangianDualClassifier])


@NETWORKS
@pytest.mark.parametrize("use_caching", [True, False])
@pytest.mark.parametrize("batch_size", [None, 16])
def test_scores_in_callbacks_are_those_of_the_targets(kind, use_caching, batch_size):
    skorch_callbacks()
    X, y = data(120)
    y = y if kind is LagrangianDualRegressor else np.where(y > 0, "yes", "no")
    scores = scoring(kind, name="found", use_caching=use_caching)
    model = network(kind, batch_size=batch_size)
    right = model.fit(X, y).predict(X)
    for score in scores:
        model.set_params(callbacks=[score]).fit(X, y)
        assert_array_equal(model.predict(X), right)
        assert len(model.net_.history[:, "found"]) == 3
    if not use_caching:  # after the last step
        epoch = network(kind, batch_size=batch_size, callbacks=scores[:1]).fit(X, y)
        assert_allclose(epoch.net_.history[-1, "found"], epoch.score(X, y), rtol=1e-5)


def test_a_checkpoint_brings_the_best_epoch_back(tmp_path):
    checkpoint = skorch_callbacks().Checkpoint(
        dirname=tmp_path, monitor=lambda net: len(net.history) == 2, load_best=True
    )
    X, y = data(120)
    model = network(callbacks=[checkpoint]).fit(X, y)
    two = network(max_epochs=2).fit(X, y)
    assert_allclose(model.predict(X), two.predict(X))
    assert_array_equal(model.multipliers_, two.multipliers_)


@NETWORKS
def test_an_interrupt_propagates_and_leaves_what_was_fitted(kind):
    class Interrupt(skorch_callbacks().Callback):
        def on_epoch_end(self, net, **kwargs):
            if len(net.history) == 2:
                raise KeyboardInterrupt

    X, y = data(60)
    y = y if kind is LagrangianDualRegressor else y > 0
    model = network(kind).fit(X, y)
    before = model.predict(X)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(callbacks=[Interrupt()]).fit(-X, y)
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("device", ["xx", "cuda:99", "meta"])
def test_a_device_that_cannot_be_used_is_named(device):
    pytest.importorskip("torch")
    X, y = data(60)
    with pytest.raises(ValueError, match=f"device='{device}' cannot be used"):
        network(device=device).fit(X, y)


@pytest.mark.parametrize(
    ("params", "error", "name"),
    [
        ({"callbacks": [()]}, TypeError, "callbacks"),
        ({"callbacks": [("a", 3)]}, TypeError, "callbacks"),
        *[
            ({"hidden_layer_sizes": sizes}, ValueError, "hidden_layer_sizes")
            for sizes in ([True], [2, True], [2.0], [[2]])
        ],
    ],
    ids=str,
)
def test_callbacks_and_layers_that_are_none_are_named(params, error, name):
    pytest.importorskip("torch")
    X, y = data(60)
    with pytest.raises(error, match=name):
        network().set_params(**params).fit(X, y)


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "autocast"])
def test_a_mode_of_torch_changes_nothing(mode):
    torch = pytest.importorskip("torch")
    X, y = data(60)
    model = network()
    right = model.fit(X, y).predict(X)
    with torch.autocast("cpu") if mode == "autocast" else getattr(torch, mode)():
        assert_array_equal(model.fit(X, y).predict(X), right)
    assert torch.is_grad_enabled()
