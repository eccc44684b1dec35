"""Boosting under a constraint: what its trees and multipliers must do."""

import pickle
import sys
import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    ConstrainedBoostingRegressor,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
)
from gedi_sklearn.exceptions import ConstraintNotMetWarning
from gedi_sklearn.metrics import didi, gedi, gedi_coefficients, make_disparity_scorer
from gedi_sklearn.model_selection import tradeoff_curve

ESTIMATORS = (ConstrainedBoostingClassifier, ConstrainedBoostingRegressor)
BACKENDS = ("xgboost", "lightgbm")
# Labels come in steps: what a few of 480 rows make.
STEPS = 0.015
for_each = pytest.mark.parametrize("cls", ESTIMATORS)
for_each_backend = pytest.mark.parametrize("backend", BACKENDS)


def make(cls, n=480, seed=0, n_classes=2):
    """Return X, the attribute in its first column and a proxy of it in the second, and y."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 1] += X[:, 0]
    y = X[:, 0] + 0.5 * X[:, 0] ** 2 + X[:, 2] + 0.5 * rng.normal(size=n)
    if not is_classifier(cls()):
        return X, y
    return X, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


def quick(cls, backend="xgboost", **params):
    """Return an estimator whose multipliers settle in a moment."""
    defaults = {
        "constraint": CoarseConstraint(),
        "n_estimators": 80,
        "learning_rate": 0.2,
        "sensitive_columns": 0,
    }
    return cls(backend, **defaults | params)


@for_each
@for_each_backend
def test_without_the_package_the_error_names_the_extra(cls, backend, monkeypatch):
    monkeypatch.setitem(sys.modules, backend, None)
    message = rf"{cls.__name__}\(backend='{backend}'\) needs {backend}.*'\.\[boosting\]' in a clone"
    with pytest.raises(ImportError, match=message):
        cls(backend).fit([[0.0], [1.0]], [0, 1], sensitive_features=[0, 1])


@for_each
@for_each_backend
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"constraint": CoarseConstraint(kernel=3)},
        {"constraint": DependenceConstraint()},
        {"constraint": FineConstraint(kernel=2, slack=0.1)},
        {"constraint": CoarseConstraint(0.1, relative=False)},
        {"drop_sensitive": True},
    ],
    ids=str,
)
def test_the_constraint_is_met(cls, backend, options):
    X, y = make(cls)
    model = quick(cls, backend, **options).fit(X, y)
    z, most = model.predict(X), 1.05 * model.threshold_ + STEPS * is_classifier(model)
    constraint = options.get("constraint", CoarseConstraint())
    if isinstance(constraint, FineConstraint):
        first, second = gedi_coefficients(z, sensitive_features=X[:, 0], kernel=2)
        assert abs(first) < most
        assert abs(second) < 0.3 * model.threshold_
    else:
        own = {"kernel": constraint.kernel, "norm": constraint.norm}
        found = gedi(z, sensitive_features=X[:, 0], **own)
        assert 0.5 * model.threshold_ < found < most
        assert_allclose(model.history_["indicator"][model.n_iter_ - 1], found, rtol=1e-6)


@for_each_backend
def test_without_a_bound_it_is_the_plain_booster(backend):
    X, y = make(ConstrainedBoostingRegressor)
    model = quick(ConstrainedBoostingRegressor, backend, constraint=CoarseConstraint(np.inf)).fit(
        X, y
    )
    assert_array_equal(model.multipliers_, 0)
    if backend == "xgboost":
        plain = xgboost.XGBRegressor(
            n_estimators=80,
            learning_rate=0.2,
            max_leaves=31,
            max_depth=0,
            grow_policy="lossguide",
            min_child_weight=20,
            reg_lambda=0,
            n_jobs=1,
        )
    else:
        plain = lightgbm.LGBMRegressor(
            n_estimators=80,
            learning_rate=0.2,
            min_child_samples=1,
            min_child_weight=20,
            n_jobs=1,
            verbose=-1,
        )
    assert_allclose(model.predict(X), plain.fit(X, y).predict(X), rtol=1e-4, atol=1e-4)


@for_each_backend
@pytest.mark.parametrize("threshold", [0.2, 5.0])
@pytest.mark.filterwarnings("ignore:threshold=5 is 500 % of the indicator of y")
def test_multipliers_are_0_unless_the_bound_is_reached(backend, threshold):
    X, y = make(ConstrainedBoostingRegressor)
    model = quick(
        ConstrainedBoostingRegressor, backend, constraint=CoarseConstraint(threshold)
    ).fit(X, y)
    found = gedi_coefficients(model.predict(X), sensitive_features=X[:, 0])[0]
    (multiplier,) = model.multipliers_
    if threshold > 1:
        assert multiplier == 0
    else:
        # The bound is reached from the side on which the multiplier pushes.
        assert_allclose(found, np.sign(multiplier) * model.threshold_, rtol=0.02)


def test_a_plain_fit_on_the_shifted_targets_predicts_alike():
    X, y = make(ConstrainedBoostingRegressor)
    model = quick(
        ConstrainedBoostingRegressor, drop_sensitive=True, constraint=CoarseConstraint(kernel=2)
    ).fit(X, y)
    shift = model.kernel_.orthonormal(X[:, :1]) @ model.multipliers_
    plain = quick(
        ConstrainedBoostingRegressor, drop_sensitive=True, constraint=CoarseConstraint(np.inf)
    )
    other = plain.fit(X, y - shift).predict(X)
    assert np.std(other - model.predict(X)) < 0.1 * np.std(y)
    indicator = gedi(other, sensitive_features=X[:, 0], kernel=2)
    assert indicator < 1.3 * model.threshold_


@for_each
@for_each_backend
def test_predictions_need_no_attribute_that_was_dropped(cls, backend):
    X, y = make(cls)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = quick(cls, backend, sensitive_columns="a", drop_sensitive=True).fit(frame, y)
    changed = frame.assign(a=0.0)
    assert_array_equal(model.predict(frame), model.predict(changed))
    assert_array_equal(model.predict(frame), model.predict(frame.drop(columns="a")))
    by_value = quick(cls, backend, sensitive_columns=None)
    by_value.fit(X[:, 1:], y, sensitive_features=X[:, 0])
    assert_array_equal(by_value.predict(X[:, 1:]), model.predict(frame))


@for_each
@for_each_backend
def test_weights_count_in_the_trees_and_in_the_constraint(cls, backend):
    X, y = make(cls)
    weight = np.where(X[:, 2] > 0, 3.0, 0.5)
    model = quick(cls, backend).fit(X, y, sample_weight=weight)
    found = gedi(model.predict(X), sensitive_features=X[:, 0], sample_weight=weight)
    assert 0.8 * model.threshold_ < found < 1.1 * model.threshold_ + STEPS * is_classifier(model)


@for_each
def test_a_weight_of_2_is_a_row_twice(cls):
    X, y = make(cls)
    X = np.round(X, 1)  # quantiles of many values would differ
    weight = np.tile([1, 2, 0], len(y) // 3)
    weighted = quick(cls).fit(X, y, sample_weight=weight)
    # The least weight of a leaf is in units of the mean weight, which is 1.5 repetitions.
    repeated = quick(cls, backend_params={"min_child_weight": 30})
    repeated.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.multipliers_, repeated.multipliers_, rtol=1e-3)
    assert_allclose(weighted.history_["loss"], repeated.history_["loss"], rtol=1e-3)


@for_each_backend
def test_every_class_is_bounded(backend):
    X, codes = make(ConstrainedBoostingClassifier, n_classes=3)
    y = np.array(["low", "middle", "high"])[codes]
    model = quick(
        ConstrainedBoostingClassifier, backend, n_estimators=120, constraint=CoarseConstraint(0.3)
    )
    model.fit(X, y)
    assert model.multipliers_.shape == (3, 1)
    z, proba = model.predict(X), model.predict_proba(X)
    for number, label in enumerate(model.classes_):
        found = gedi((z == label) * 1.0, sensitive_features=X[:, 0])
        assert found < 1.05 * model.threshold_[number] + STEPS
    assert_array_equal(model.classes_[proba.argmax(axis=1)], z)
    assert_array_equal(model.decision_function(X).argmax(axis=1), proba.argmax(axis=1))


def test_disparities_between_groups():
    X, y = make(ConstrainedBoostingClassifier)
    group = np.digitize(X[:, 0], [-0.5, 0.5])
    model = quick(
        ConstrainedBoostingClassifier, sensitive_columns=None, constraint=DidiConstraint()
    )
    model.fit(X, y, sensitive_features=group)
    found = didi(model.predict(X), sensitive_features=group, task="classification")
    assert_allclose(model.history_["indicator"][model.n_iter_ - 1], found, rtol=1e-6)
    assert found < 1.2 * model.threshold_
    with pytest.raises(ValueError, match=r"two classes only; y has 3"):
        model.fit(X, make(ConstrainedBoostingClassifier, n_classes=3)[1], sensitive_features=group)


def test_a_constraint_on_some_rows_looks_at_rows_held_out():
    X, y = make(ConstrainedBoostingClassifier, n=1200)
    constraint = CoarseConstraint(0.02, relative=False, subset="positive")
    model = quick(ConstrainedBoostingClassifier, constraint=constraint, cv=3).fit(X, y)
    plain = quick(ConstrainedBoostingClassifier, cv=3, constraint=CoarseConstraint(np.inf)).fit(
        X, y
    )
    new, labels = make(ConstrainedBoostingClassifier, n=4000, seed=1)
    positive = labels == 1
    found, before = (
        gedi(own.predict(new)[positive], sensitive_features=new[positive, 0])
        for own in (model, plain)
    )
    assert found < 0.05 < 0.08 < before
    with pytest.raises(ValueError, match="needs out-of-fold predictions"):
        model.set_params(cv=None).fit(X, y)


def test_several_attributes_with_a_constraint_each():
    X, y = make(ConstrainedBoostingRegressor)
    y = y + X[:, 3]
    constraints = [CoarseConstraint(0.3, kernel=2), DidiConstraint(0.2)]
    attributes = np.c_[X[:, 0], X[:, 3] > 0]
    model = quick(ConstrainedBoostingRegressor, constraint=constraints, sensitive_columns=None)
    model.fit(X, y, sensitive_features=attributes)
    z = model.predict(X)
    assert gedi(z, sensitive_features=X[:, 0], kernel=2) < 1.1 * model.threshold_[0]
    assert didi(z, sensitive_features=X[:, 3] > 0) < 1.1 * model.threshold_[1]
    assert model.multipliers_.shape == (3,)


@for_each
@for_each_backend
def test_folds_ascend_together_and_are_judged_by_rows_held_out(cls, backend):
    X, y = make(cls)
    model = quick(cls, backend, cv=3).fit(X, y)
    assert len(model.booster_) == 3
    assert model.verdict_.training is None
    assert model.verdict_.new_rows.value < 1.2
    # What is recorded is measured on rows that a booster has not seen.
    assert model.history_["loss"][-1] > quick(cls, backend).fit(X, y).history_["loss"][-1]
    folds = list(KFold(3, shuffle=True, random_state=1).split(X))
    first, second = (quick(cls, backend, cv=folds).fit(X, y) for _ in range(2))
    assert_array_equal(first.predict(X), second.predict(X))
    with pytest.raises(ValueError, match="must hold out every row once; of 480 rows, 160 in no"):
        quick(cls, backend, cv=folds[1:]).fit(X, y)


@for_each
@for_each_backend
@pytest.mark.parametrize("cv", [None, 3])
def test_early_stopping_keeps_the_best_round_that_meets_the_constraint(cls, backend, cv):
    X, y = make(cls)
    further = make(cls, seed=1)
    options = {"n_estimators": 300, "early_stopping_rounds": 10, "cv": cv}
    eval_set = None if cv else [(X, y), further]
    model = quick(cls, backend, **options).fit(X, y, eval_set=eval_set)
    run = len(model.history_["loss"])
    assert model.n_iter_ + 10 == run < 300
    judged = model.history_["loss"]
    if eval_set:
        assert list(model.evals_result_) == ["validation_0", "validation_1"]
        errors = model.evals_result_["validation_1"]
        judged = np.array(errors["squared_error"])
        assert_allclose(
            model.evals_result_["validation_0"]["squared_error"][-1],
            model.history_["loss"][-1],
            rtol=1e-5,
        )
        if is_classifier(model):
            wrong = np.mean(model.predict(further[0]) != further[1])
            assert_allclose(errors["error"][model.n_iter_ - 1], wrong)
        else:
            left = np.mean((model.predict(further[0]) - further[1]) ** 2)
            assert_allclose(judged[model.n_iter_ - 1], left, rtol=1e-5)
    met = model.history_["indicator"] <= 1.1 * model.threshold_
    assert met[model.n_iter_ - 1]
    assert judged[model.n_iter_ - 1] == judged[met].min()
    assert_array_equal(model.multipliers_, model.history_["multipliers"][model.n_iter_ - 1])


@for_each_backend
def test_the_slope_of_probabilities_is_that_of_new_rows(backend):
    X, y = make(ConstrainedBoostingClassifier)
    model = quick(
        ConstrainedBoostingClassifier, backend, cv=3, constraint=CoarseConstraint(np.inf)
    ).fit(X, y)
    new, labels = make(ConstrainedBoostingClassifier, n=4000, seed=1)
    proba, scores = model.predict_proba(new), model.decision_function(new)
    assert_array_equal(proba[:, 1] > 0.5, scores > 0)
    assert (np.diff(proba[np.argsort(scores), 1]) >= 0).all()
    logits = np.log(proba[:, 1] / proba[:, 0])
    flatter, steeper = (log_loss(labels, expit(share * logits)) for share in (0.6, 1.6))
    assert log_loss(labels, proba) < min(flatter, steeper)


@for_each_backend
@pytest.mark.parametrize("cv", [None, 3])
def test_bounded_probabilities_of_new_rows_keep_what_was_asked(backend, cv):
    def rows(n, seed):  # an attribute of two values, seen through another column, too
        rng = np.random.default_rng(seed)
        x, noise = rng.integers(0, 2, n).astype(float), rng.normal(size=(n, 3))
        X = np.c_[x, x + noise[:, 0], noise[:, 1]]
        return X, (X.sum(axis=1) + noise[:, 2] > 1.5).astype(int)

    bound = DependenceConstraint(0.4, kernel=1, on="probabilities")
    model = ConstrainedBoostingClassifier(
        backend, bound, cv=cv, sensitive_columns=0, n_estimators=80, random_state=0
    ).fit(*rows(4000, 0))
    X, y = rows(20_000, 1)
    proba = model.predict_proba(X)
    assert_array_equal(proba.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X), proba.argmax(axis=1))
    options = {"sensitive_features": X[:, 0], "norm": "sd", "relative": True}
    assert gedi(y, proba[:, 1], **options) == pytest.approx(0.4, abs=0.05)
    assert gedi(y, model.predict(X), **options) > 0.5  # labels are not bounded
    assert model.history_["indicator"][-1] == pytest.approx(model.threshold_, rel=0.05)


def test_probabilities_are_bounded_of_two_classes_only():
    X, y = make(ConstrainedBoostingClassifier, n_classes=3)
    model = quick(ConstrainedBoostingClassifier, constraint=CoarseConstraint(on="probabilities"))
    with pytest.raises(ValueError, match="the second of two classes; on='predictions' takes any"):
        model.fit(X, y)


@for_each_backend
def test_categories_and_missing_values_are_the_packages_own(backend):
    X, y = make(ConstrainedBoostingRegressor)
    team = pd.Categorical.from_codes(np.arange(len(y)) % 3, ["a", "b", "c"])
    frame = pd.DataFrame(X, columns=list("abcd")).assign(team=team)
    frame.loc[::7, "c"] = np.nan
    y = y + 2.0 * (team == "b")
    model = quick(ConstrainedBoostingRegressor, backend, sensitive_columns="a").fit(frame, y)
    moved = frame.assign(team=pd.Categorical(["b"] * len(y), categories=["a", "b", "c"]))
    assert (model.predict(moved) - model.predict(frame))[team != "b"].mean() > 1


@for_each
@for_each_backend
def test_searches_curves_and_pickles(cls, backend):
    X, y = make(cls, n=300)
    warnings.filterwarnings("ignore", category=ConstraintNotMetWarning)
    model = quick(cls, backend)
    grid = {"constraint__threshold": [0.2, np.inf]}
    score = make_disparity_scorer(sensitive_columns=0)
    search = GridSearchCV(model, grid, cv=2, scoring=score).fit(X, y)
    assert search.best_params_ == {"constraint__threshold": 0.2}
    best = search.best_estimator_
    assert_array_equal(pickle.loads(pickle.dumps(best)).predict(X), best.predict(X))
    curve = tradeoff_curve(model, X, y, thresholds=[0.1, 0.5], cv=2)
    assert curve.test_gedi.shape[0] == 2
    pipeline = make_pipeline(StandardScaler(), quick(cls, backend))
    assert np.isfinite(cross_validate(pipeline, X, y, cv=2)["test_score"]).all()


@for_each
def test_routing_brings_attribute_and_weights(cls):
    X, y = make(cls, n=300)
    warnings.filterwarnings("ignore", category=ConstraintNotMetWarning)
    model = quick(cls, sensitive_columns=None)
    params = {"sensitive_features": X[:, 0], "sample_weight": np.ones(len(y))}
    with config_context(enable_metadata_routing=True):
        model.set_score_request(sample_weight=False)
        scores = cross_validate(model, X, y, cv=2, params=params)
    assert np.isfinite(scores["test_score"]).all()


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.AttributeScaleWarning")
def test_rows_held_out_that_do_not_follow_are_named():
    X, y = make(ConstrainedBoostingRegressor, n=600)
    X[:, 0] = np.exp(1.5 * X[:, 0])  # a few rows far from the others
    options = {"cv": 3, "n_estimators": 40, "constraint": FineConstraint(kernel=4)}
    with pytest.warns(ConstraintNotMetWarning, match="do not follow the multipliers"):
        quick(ConstrainedBoostingRegressor, **options).fit(X, y + 0.1 * X[:, 0])


@for_each
def test_a_certificate_is_for_predictions_of_other_rows(cls):
    X, y = make(cls)
    plain = quick(cls, n_estimators=40, constraint=CoarseConstraint(0.5)).fit(X, y)
    model = quick(cls, n_estimators=40, confidence=0.9, constraint=CoarseConstraint(0.5)).fit(X, y)
    found = model.certificate_
    assert plain.certificate_ is None
    assert found.threshold < found.bound == model.threshold_
    assert found.upper <= found.bound
    # The trees grow under the stricter bound.
    indicator = model.history_["indicator"][model.n_iter_ - 1]
    assert indicator < 1.1 * found.threshold + STEPS * is_classifier(model)
    new, _ = make(cls, n=4000, seed=1)
    assert gedi(model.predict(new), sensitive_features=new[:, 0]) < found.bound
    with pytest.raises(ValueError, match="cv must be None, an integer or a splitter"):
        model.set_params(cv=list(KFold(3).split(X))).fit(X, y)


def test_verbose_prints_a_line_every_so_many_rounds(capsys):
    X, y = make(ConstrainedBoostingRegressor)
    quick(ConstrainedBoostingRegressor, verbose=40).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["[40]", "[80]"]


@pytest.mark.parametrize(
    ("params", "keywords", "message"),
    [
        ({"early_stopping_rounds": 5}, {}, "needs rows that the trees do not see"),
        ({"backend_params": {"objective": "x"}}, {}, "backend_params sets 'objective'"),
        (
            {"backend": "lightgbm", "backend_params": {"eta": 0.3}},
            {},
            "backend_params sets 'eta'",
        ),
        (
            {"backend": "lightgbm", "backend_params": {"max_leafs": 3}},
            {},
            "sets 'max_leafs', which is no parameter of LightGBM",
        ),
        ({}, {"eval_set": (np.zeros((3, 4)), np.zeros(3))}, "eval_set must be a list of pairs"),
        ({}, {"eval_set": [(np.zeros((3, 4)), [0, 1, 7])]}, r"the y of eval_set holds \[7\]"),
        ({}, {"eval_set": [(np.zeros((3, 4)), [0, 1])]}, "eval_set"),
        ({}, {"eval_set": [(np.zeros((2, 3)), [0, 1])]}, "3 features"),
    ],
)
def test_errors_name_the_parameter(params, keywords, message):
    X, y = make(ConstrainedBoostingClassifier)
    with pytest.raises(ValueError, match=message):
        quick(ConstrainedBoostingClassifier, **params).fit(X, y, **keywords)


@pytest.mark.parametrize(
    ("backend", "given", "same"),
    [
        ("lightgbm", {"max_leaves": 4}, {"num_leaves": 4}),
        ("xgboost", {"lambda": 50.0}, {"reg_lambda": 50.0}),
    ],
)
def test_a_parameter_of_the_package_counts_by_each_of_its_names(backend, given, same):
    X, y = make(ConstrainedBoostingRegressor)
    predictions = [
        quick(ConstrainedBoostingRegressor, backend=backend, backend_params=params)
        .fit(X, y)
        .predict(X)
        for params in (given, same, {})
    ]
    assert_array_equal(*predictions[:2])
    assert np.abs(predictions[0] - predictions[2]).max() > 0.01


@pytest.mark.parametrize(
    ("backend", "kind"),
    [("xgboost", "String"), ("lightgbm", "String"), ("lightgbm", "Date"), ("lightgbm", "Enum")],
)
def test_columns_of_polars_that_trees_cannot_split_are_named(backend, kind):
    polars = pytest.importorskip("polars")
    X, y = make(ConstrainedBoostingRegressor)
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = quick(ConstrainedBoostingRegressor, backend, sensitive_columns="a").fit(frame, y)
    column = polars.Series("b", ["u"] * len(y))
    column = {
        "String": lambda: column,
        "Date": lambda: polars.Series("b", [0] * len(y)).cast(polars.Date),
        "Enum": lambda: column.cast(polars.Enum(["u"])),
    }[kind]()
    other = frame.with_columns(column)
    for call in (lambda: model.predict(other), lambda: model.fit(other, y)):
        with pytest.raises(ValueError, match=rf"the trees cannot split: {{'b': '{kind}"):
            call()


@for_each_backend
def test_columns_of_pyarrow_are_those_of_numpy(backend):
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    X, y = make(ConstrainedBoostingRegressor)
    frame = pd.DataFrame(X).add_prefix("x")
    frame.loc[::9, "x1"] = np.nan  # a missing value of a column that is no attribute
    predictions = [
        quick(ConstrainedBoostingRegressor, backend, sensitive_columns="x0").fit(X, y).predict(X)
        for X in (frame, frame.astype("double[pyarrow]"))
    ]
    assert_array_equal(*predictions)


@for_each_backend
@pytest.mark.parametrize("learning_rate", [0.1, 0.3, 1.0])
def test_real_predictions_stay_at_the_bound_whatever_the_learning_rate(backend, learning_rate):
    X, y = make(ConstrainedBoostingRegressor)
    own = {"n_estimators": 120, "constraint": FineConstraint(kernel=3)}
    model = quick(ConstrainedBoostingRegressor, backend, learning_rate=learning_rate, **own)
    history = model.fit(X, y).history_["indicator"]
    assert_allclose(history[60:], model.threshold_, rtol=0.06)


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning")
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
@pytest.mark.parametrize(
    ("constraint", "is_held_out", "is_pulled"),
    [(CoarseConstraint, True, True), (FineConstraint, False, True), (FineConstraint, True, False)],
)
def test_rows_held_out_are_not_pulled_to_a_slack(constraint, is_held_out, is_pulled):
    X, y = make(ConstrainedBoostingRegressor, n=120)
    halves = np.arange(240).reshape(2, 120)  # each holds every row once
    model = quick(
        ConstrainedBoostingRegressor,
        cv=[(halves[0], halves[1]), (halves[1], halves[0])] if is_held_out else None,
        n_estimators=2,
        learning_rate=1.0,
        backend_params={"max_leaves": 0, "min_child_weight": 1},
        constraint=constraint(kernel=3),
    ).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    # Two rounds with a leaf for each row: predictions are the targets, moved by Q times the shift.
    moved = np.std(y - model.predict(X))
    assert (moved > 1.1 * np.linalg.norm(model.multipliers_)) == is_pulled
    if not is_pulled:
        assert moved == pytest.approx(np.linalg.norm(model.multipliers_), rel=3e-4)


def test_multipliers_that_have_not_settled_are_said_not_to_meet_the_constraint():
    X, y = make(ConstrainedBoostingRegressor)
    with pytest.warns(ConstraintNotMetWarning, match="Raise `n_estimators`"):
        quick(ConstrainedBoostingRegressor, n_estimators=8).fit(X, y)
