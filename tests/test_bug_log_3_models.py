"""The third log: learners, boosting and networks that must be right, or refuse by name."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    ConstrainedBoostingRegressor,
    DualTargetsClassifier,
    DualTargetsRegressor,
    LagrangianDualClassifier,
    LagrangianDualRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.exceptions import CertificateNotIssuedWarning
from gedi_sklearn.metrics import make_disparity_scorer
from gedi_sklearn.model_selection import tradeoff_curve
from tests import estimator_checks

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
    with pytest.warns(UserWarning, match="could split the 30 rows.* a weight of at least 20"):
        boost(backend).fit(X, y)
    X, y = data()
    most = {"min_gain_to_split" if backend == "lightgbm" else "gamma": 1e9}
    with pytest.warns(UserWarning, match="a split the gain that backend_params"):
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
    from skorch import callbacks

    return callbacks


NETWORKS = pytest.mark.parametrize("kind", [LagrangianDualRegressor, LagrangianDualClassifier])


@pytest.mark.torch
@NETWORKS
@pytest.mark.parametrize("use_caching", [True, False])
@pytest.mark.parametrize("batch_size", [None, 16])
def test_scores_in_callbacks_are_those_of_the_targets(kind, use_caching, batch_size):
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


@pytest.mark.torch
def test_a_checkpoint_brings_the_best_epoch_back(tmp_path):
    checkpoint = skorch_callbacks().Checkpoint(
        dirname=tmp_path, monitor=lambda net: len(net.history) == 2, load_best=True
    )
    X, y = data(120)
    model = network(callbacks=[checkpoint]).fit(X, y)
    two = network(max_epochs=2).fit(X, y)
    assert_allclose(model.predict(X), two.predict(X))
    assert_array_equal(model.multipliers_, two.multipliers_)


@pytest.mark.torch
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


@pytest.mark.torch
@NETWORKS
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_a_refit_that_ends_early_leaves_the_model,
        estimator_checks.check_a_refit_has_nothing_of_the_old_model,
        estimator_checks.check_parameters_set_after_the_fit_change_no_prediction,
    ],
    ids=lambda check: check.__name__,
)
def test_a_network_keeps_what_was_fitted(kind, check):
    check(network(kind))


@pytest.mark.torch
@pytest.mark.parametrize("device", ["xx", "cuda:99", "meta"])
def test_a_device_that_cannot_be_used_is_named(device):
    X, y = data(60)
    with pytest.raises(ValueError, match=f"device='{device}' cannot be used"):
        network(device=device).fit(X, y)


@pytest.mark.torch
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
    X, y = data(60)
    with pytest.raises(error, match=name):
        network().set_params(**params).fit(X, y)


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "autocast"])
def test_a_mode_of_torch_changes_nothing(mode):
    import torch

    X, y = data(60)
    model = network()
    right = model.fit(X, y).predict(X)
    with torch.autocast("cpu") if mode == "autocast" else getattr(torch, mode)():
        assert_array_equal(model.fit(X, y).predict(X), right)
    assert torch.is_grad_enabled()


# --- folds and groups -----------------------------------------------------------------------------
@for_each_backend
@pytest.mark.parametrize("of_type", [list, tuple, lambda rows: range(rows[0], rows[-1] + 1)])
def test_splits_may_be_lists_tuples_and_ranges_of_rows(backend, of_type):
    X, y = data(120)
    halves = np.arange(60), np.arange(60, 120)
    arrays = [halves, halves[::-1]]
    splits = [tuple(map(of_type, pair)) for pair in arrays]
    found, right = (boost(backend, cv=cv).fit(X, y).predict(X) for cv in (splits, arrays))
    assert_array_equal(found, right)


@pytest.mark.parametrize("weight", [None, np.repeat([0.0, 1.0], 45)])
def test_a_fold_without_rows_is_named(weight):
    X, y = data(90)
    rows = np.arange(90)
    splits = [(rows[:45], rows[45:]), (rows[45:], rows[:45])]
    if weight is None:
        splits = [(rows[:0], rows[45:]), (rows[45:], rows[:45])]
    with pytest.raises(ValueError, match=r"cv: of the 2 split\(s\) given, split 0 has no training"):
        boost(cv=splits).fit(X, y, sample_weight=weight)


def test_groups_reach_the_splitter_once():
    X, y = data(300)
    groups = np.repeat(np.arange(60), 5)
    weight = np.tile([0.0, 1.0, 1.0], 100)
    model = boost(cv=GroupKFold(3))
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
        found = model.fit(X, y, groups=groups, sample_weight=weight).predict(X)
        certified = clone(model).set_params(confidence=0.5, constraint=CoarseConstraint(0.8))
        certified.fit(X, y, groups=groups, sample_weight=weight)  # folds of the folds' rows
        curve = tradeoff_curve(
            boost(cv=GroupKFold(2)), X, y, thresholds=[0.5], cv=GroupKFold(3), groups=groups
        )
    assert np.isfinite(curve.score).all()
    assert certified.certificate_ is not None
    kept = weight > 0
    splits = list(GroupKFold(3).split(X[kept], y[kept], groups[kept]))
    assert_array_equal(found, boost(cv=splits).fit(X[kept], y[kept]).predict(X))
    assert_array_equal(model.fit(X, y, groups=groups, sample_weight=weight).predict(X), found)
    with pytest.raises(ValueError, match="cv: GroupKFold splits by groups, but got none"):
        boost(cv=GroupKFold(3)).fit(X, y)


def test_a_class_of_two_rows_gets_no_certificate():
    X, y = data(150)
    labels = np.where(y > np.sort(y)[-3], 2, (y > 0).astype(int))
    absolute = CoarseConstraint(0.3, relative=False)
    model = boost(kind=ConstrainedBoostingClassifier, confidence=0.9, constraint=absolute)
    with pytest.warns(CertificateNotIssuedWarning):
        model.fit(X, labels)
    assert model.certificate_ is None
    with pytest.raises(ValueError, match=r"cv: .*greater than the number of members in each class"):
        boost(kind=ConstrainedBoostingClassifier, cv=80).fit(X, labels)


# --- learners -------------------------------------------------------------------------------------
WRAPPERS = {
    "Regressor": (ProjectedRegressor, MovingTargetsRegressor, DualTargetsRegressor),
    "Classifier": (ProjectedClassifier, MovingTargetsClassifier, DualTargetsClassifier),
}
every_wrapper = pytest.mark.parametrize("wrapper", sum(WRAPPERS.values(), ()))


def wrapped(wrapper, learner, **params):
    return wrapper(learner, **{"constraint": CoarseConstraint(), "sensitive_columns": 0} | params)


@every_wrapper
@pytest.mark.parametrize("name", ["init_score", "base_margin", "last__init_score"])
@pytest.mark.parametrize("is_routed", [False, True])
def test_offsets_of_the_fit_are_refused_by_name(wrapper, name, is_routed):
    X, y = data(60)
    is_class = is_classifier(wrapper())
    learner = (lightgbm.LGBMClassifier if is_class else lightgbm.LGBMRegressor)(n_jobs=1)
    with (
        config_context(enable_metadata_routing=is_routed),
        pytest.raises(ValueError, match=f"^{name}= is an offset"),
    ):
        wrapped(wrapper, learner).fit(X, y > 0 if is_class else y, **{name: X[:, 1]})


class Odd(ClassifierMixin, BaseEstimator):
    """Return probabilities that are none."""

    def __init__(self, kind="raw"):
        self.kind = kind

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, 1] > 0).astype(int)]

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-3 * X[:, 1]))
        return {
            "raw": np.c_[1 - 3 * X[:, 1], 3 * X[:, 1]],
            "percent": 100 * np.c_[1 - p, p],
            "sums": np.c_[p, p],
        }[self.kind]


@pytest.mark.parametrize("wrapper", WRAPPERS["Classifier"])
@pytest.mark.parametrize("kind", ["raw", "percent", "sums"])
@pytest.mark.parametrize("cv", ["train", 3])
def test_probabilities_that_are_none_are_the_same_error(wrapper, kind, cv):
    X, y = data(120)
    with pytest.raises(
        ValueError, match=r"Odd.predict_proba must return .* \[0, 1\] that sum to 1"
    ):
        wrapped(wrapper, Odd(kind), cv=cv).fit(X, y > 0)


@pytest.mark.parametrize("kind", ["raw", "percent", "sums"])
def test_a_scorer_refuses_probabilities_that_are_none(kind):
    X, y = data(120)
    scorer = make_disparity_scorer(sensitive_columns=0, response_method="predict_proba")
    with pytest.raises(ValueError, match=r"Odd.predict_proba must return .* \[0, 1\]"):
        scorer(Odd(kind).fit(X, y > 0), X, y > 0)


@every_wrapper
def test_a_learner_of_the_other_kind_names_the_other_class(wrapper):
    X, y = data(60)
    is_class = is_classifier(wrapper())
    learner = make_pipeline(LinearRegression() if is_class else LogisticRegression())
    pair = ("Classifier", "Regressor") if is_class else ("Regressor", "Classifier")
    with pytest.raises(ValueError, match=f"Use {wrapper.__name__.replace(*pair)}"):
        wrapped(wrapper, learner).fit(X, y > 0)


class OddColumns(RegressorMixin, BaseEstimator):
    """Predict something that is no column of a kernel."""

    def __init__(self, kind="text"):
        self.kind = kind

    def fit(self, X, y):
        return self

    def predict(self, X):
        n = len(X)
        return {
            "text": np.full(n, "a"),
            "nan": np.full(n, np.nan),
            "wide": np.zeros((n, 2)),
            "short": np.zeros(n - 1),
        }[self.kind]


@pytest.mark.parametrize("wrapper", [ProjectedRegressor, ProjectedClassifier])
@pytest.mark.parametrize("kind", ["text", "nan", "wide", "short"])
def test_predictions_of_the_attribute_that_are_none_name_its_estimator(wrapper, kind):
    X, y = data(120)
    X[:, 2] += 3 * X[:, 0]
    y = y > 0 if wrapper is ProjectedClassifier else y
    blind = {"sensitive_at_predict": False, "attribute_estimator": OddColumns(kind)}
    with pytest.raises(ValueError, match="attribute_estimator"):
        wrapped(wrapper, None, **blind).fit(X, y)
    model = wrapped(wrapper, None, **blind | {"attribute_estimator": LinearRegression()}).fit(X, y)
    model.attribute_estimator_ = OddColumns(kind)
    with pytest.raises(ValueError, match="attribute_estimator=OddColumns"):
        model.predict(X)


@pytest.mark.parametrize(
    ("learner", "error", "message"),
    [
        (SVR(), ValueError, "attribute_estimator: y should be a 1d array"),
        (SVR, TypeError, r"attribute_estimator must be an object, got a class; pass SVR\(\)"),
        (KNeighborsRegressor(), ValueError, "attribute_estimator=KNeighborsRegressor takes no"),
        # What is advised for the learner, a weight by the name of its step, would reach that alone.
        (make_pipeline(LinearRegression()), ValueError, "attribute_estimator=Pipeline .* Switch"),
    ],
)
def test_an_attribute_estimator_that_cannot_be_fitted_is_named(learner, error, message):
    X, y = data(120)
    weight = None if isinstance(learner, SVR) else np.ones(120)
    blind = {"constraint": None, "sensitive_at_predict": False, "attribute_estimator": learner}
    with pytest.raises(error, match=message):
        wrapped(ProjectedRegressor, None, **blind).fit(X, y, sample_weight=weight)


# --- boosting: further rows and columns -----------------------------------------------------------
FORMS = {
    "array": np.asarray,
    "frame": lambda X: pd.DataFrame(X, columns=list("abc")),
    "numbered": pd.DataFrame,
    "sparse": sp.csr_matrix,
}


@for_each_backend
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("further", FORMS)
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning")
def test_further_rows_may_come_in_any_form(backend, form, further):
    X, y = data(120)
    X, new = FORMS[form](X), FORMS[further](X[60:])
    model = boost(backend, n_estimators=3, sensitive_columns=None)
    model.fit(X, y, sensitive_features=np.arange(120), eval_set=[(new, y[60:])])
    seen = model.evals_result_["validation_0"]["squared_error"][model.n_iter_ - 1]
    assert_allclose(seen, np.mean((model.predict(new) - y[60:]) ** 2), rtol=1e-6)


@pytest.mark.parametrize("of_type", [np.asarray, pd.DataFrame])
def test_numbers_beyond_single_precision_and_infinity_are_named(of_type):
    X, y = data(120)
    model = boost(sensitive_columns=None).fit(of_type(X), y, sensitive_features=X[:, 0])
    for value, backend, message in (
        (1e300, "xgboost", r"cannot take X: .* single precision.* backend='lightgbm'"),
        (np.inf, "xgboost", "X contains infinity"),
        (np.inf, "lightgbm", "X contains infinity"),
    ):
        large = X.copy()
        large[3, 1] = value
        with pytest.raises(ValueError, match=message):
            model.set_params(backend=backend).fit(of_type(large), y, sensitive_features=X[:, 0])
        with pytest.raises(ValueError, match=message if backend == "xgboost" else "X contains"):
            model.predict(of_type(large))
    X[3, 1] = 1e300
    model.set_params(backend="lightgbm").fit(of_type(X), y, sensitive_features=X[:, 0])


@for_each_backend
@pytest.mark.parametrize("levels", [[False, True], [0.5, 1.5], [1, "a"]], ids=str)
def test_categories_of_any_kind_are_those_of_text(backend, levels):
    X, y = data(120)
    y = y + 3 * (X[:, 1] > 0)
    frame = pd.DataFrame(X, columns=list("abc"))
    codes = (X[:, 1] > 0).astype(int)
    odd, text = (
        frame.assign(b=pd.Categorical.from_codes(codes, own))
        for own in (levels, [str(level) for level in levels])
    )
    model = boost(backend)
    assert_array_equal(model.fit(odd, y).predict(odd), model.fit(text, y).predict(text))
    with pytest.raises(ValueError, match=r"{'b': '.*'}. Convert text to categories, and dates"):
        model.fit(frame.assign(b=["u"] * 120), y)
