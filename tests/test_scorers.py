"""The indicators as scorers: sign, both doors, routing, search, pickling."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
    cross_validate,
)

from gedi_sklearn import CoarseConstraint, MovingTargetsRegressor, PolynomialKernel
from gedi_sklearn.metrics import (
    binned_didi,
    didi,
    gedi,
    hgr,
    make_binned_didi_scorer,
    make_didi_scorer,
    make_gedi_scorer,
    make_hgr_scorer,
)

WEIGHTED = [make_gedi_scorer, make_didi_scorer, make_binned_didi_scorer]
every_factory = pytest.mark.parametrize("factory", [*WEIGHTED, make_hgr_scorer])


@pytest.fixture
def data():
    """Features whose first column is the attribute, a regression target and two classes."""
    rng = np.random.default_rng(0)
    a = np.linspace(20, 60, 40)
    X = np.c_[a, rng.normal(size=40)]
    return X, 0.05 * a + rng.normal(size=40), (a + 8 * rng.normal(size=40) > 40).astype(int)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def coarse(X):
    """The attribute in two values, so that every indicator is defined on it."""
    return (X[:, 0] > 40).astype(float)


@every_factory
def test_a_wrong_keyword_fails_at_the_factory(factory):
    with pytest.raises(TypeError, match="degre"):
        factory(degre=2)
    with pytest.raises(ValueError, match="response_method"):
        factory(response_method="predict_label")
    with pytest.raises(ValueError, match="sensitive_columns"):
        factory(sensitive_columns=1.5)
    with pytest.raises(ValueError, match="relative"):
        factory(relative="yes")


@pytest.mark.usefixtures("routing")
def test_hgr_is_routed_with_weights(data):
    X, t, _ = data
    scorer = make_hgr_scorer(method="kernel", degree=2).set_score_request(sensitive_features=True)
    model = LinearRegression()
    result = cross_validate(model, X, t, scoring=scorer, params={"sensitive_features": X[:, 0]})
    assert (result["test_score"] < 0).all()
    model.fit(X, t)
    expected = hgr(model.predict(X), sensitive_features=X[:, 0], method="kernel", degree=2)
    assert scorer(model, X, t, sensitive_features=X[:, 0]) == -expected
    weight = np.arange(40)
    given = {"sensitive_features": X[:, 0], "sample_weight": weight}
    expected = hgr(model.predict(X), **given, method="kernel", degree=2)
    assert scorer(model, X, t, **given) == -expected


def test_options_reach_the_indicator(data):
    X, t, _ = data
    model = LinearRegression().fit(X, t)
    p, a = model.predict(X), X[:, 0]
    tens = np.c_[a // 10, X]
    kernel = PolynomialKernel(3, standardize=True)
    for relative in (False, True, 2):
        scorer = make_gedi_scorer(sensitive_columns=0, kernel=kernel, relative=relative)
        expected = gedi(t, p, sensitive_features=a, kernel=kernel, relative=relative)
        assert scorer(model, X, t) == -expected
    scorer = make_binned_didi_scorer(sensitive_columns=0, bins=4, relative=True)
    assert scorer(model, X, t) == -binned_didi(t, p, sensitive_features=a, bins=4, relative=True)
    scorer = make_didi_scorer(sensitive_columns=[0], task="regression")
    model.fit(tens, t)
    expected = didi(t, model.predict(tens), sensitive_features=tens[:, 0], task="regression")
    assert scorer(model, tens, t) == -expected


@every_factory
def test_scorer_is_negative_and_says_so(factory, data):
    X, t, _ = data
    X = X.round(-1) if factory is make_didi_scorer else X  # groups
    scorer = factory(sensitive_columns=0)
    assert scorer(LinearRegression().fit(X, t), X, t) < 0
    assert "greater_is_better=False" in repr(scorer)
    assert "sensitive_columns=0" in repr(scorer)
    # Of scikit-learn's own scorer type, so that its tools know what to do.
    assert isinstance(scorer, type(make_scorer(gedi)).__mro__[1])
    assert check_scoring(LinearRegression(), scoring=scorer) is scorer


@pytest.mark.parametrize("factory", WEIGHTED)  # HGR knows no scale, so that alpha hardly moves it
def test_search_takes_the_fairest(factory, data):
    X, t, _ = data
    search = GridSearchCV(
        Ridge(), {"alpha": [1e-3, 1e6]}, scoring=factory(sensitive_columns=0), cv=2
    ).fit(X, t)
    assert search.best_params_["alpha"] == 1e6
    assert (search.cv_results_["mean_test_score"] <= 0).all()


def test_search_over_the_threshold_of_moving_targets(data):
    X, t, _ = data
    model = MovingTargetsRegressor(LinearRegression(), CoarseConstraint(), sensitive_columns=0)
    scorer = make_gedi_scorer(sensitive_columns=0)
    search = GridSearchCV(
        model, {"constraint__threshold": [0.05, np.inf]}, scoring=scorer, cv=2
    ).fit(X, t)
    assert search.best_params_["constraint__threshold"] == 0.05


@every_factory
def test_scorer_survives_copies_and_workers(factory, data):
    X, _, y = data
    scorer = factory(sensitive_columns=0)
    model = LogisticRegression(max_iter=1000)
    expected = cross_validate(model, X, y, scoring=scorer, cv=3)["test_score"]
    copies = [pickle.loads(pickle.dumps(scorer)), copy.deepcopy(scorer), clone(scorer, safe=False)]
    for twin in copies:
        assert repr(twin) == repr(scorer)
        result = cross_validate(model, X, y, scoring={"fair": twin, "r2": "r2"}, cv=3, n_jobs=2)
        np.testing.assert_array_equal(result["test_fair"], expected)


@every_factory
def test_names_of_columns_in_a_frame(factory, data):
    X, t, _ = data
    frame = pd.DataFrame(X, columns=["age", "z"], index=np.arange(len(X))[::-1])
    options = {"cv": KFold(3, shuffle=True, random_state=0)}
    expected = cross_validate(
        LinearRegression(), X, t, scoring=factory(sensitive_columns=0), **options
    )
    named = factory(sensitive_columns="age")
    result = cross_validate(LinearRegression(), frame, t, scoring=named, **options)
    np.testing.assert_allclose(result["test_score"], expected["test_score"], rtol=1e-12)
    with pytest.raises(ValueError, match="'income'"):
        factory(sensitive_columns="income")(LinearRegression().fit(frame, t), frame, t)


@every_factory
def test_without_an_attribute_the_error_names_both_doors(factory, data):
    X, t, _ = data
    with pytest.raises(ValueError, match=r"sensitive_columns=.*set_score_request"):
        factory()(LinearRegression().fit(X, t), X, t)


@pytest.mark.parametrize("factory", WEIGHTED)
@pytest.mark.usefixtures("routing")
def test_routed_values_and_weights(factory, data):
    X, _, y = data
    a = coarse(X)
    model = LogisticRegression(max_iter=1000)
    scorer = factory(**({"bins": [0, 0.5, 1]} if factory is make_binned_didi_scorer else {}))
    scorer = scorer.set_score_request(sensitive_features=True, sample_weight=True)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    cv = KFold(2, shuffle=True, random_state=0)
    result = cross_validate(
        model.set_fit_request(sample_weight=False),
        X,
        y,
        scoring=pickle.loads(pickle.dumps(scorer)),
        params={"sensitive_features": a, "sample_weight": weight},
        cv=cv,
        n_jobs=2,
    )
    indicator = {make_gedi_scorer: gedi, make_didi_scorer: didi, make_binned_didi_scorer: didi}
    for score, (train, test) in zip(result["test_score"], cv.split(X), strict=True):
        p = model.fit(X[train], y[train]).predict(X[test])
        expected = indicator[factory](
            y[test], p, sensitive_features=a[test], sample_weight=weight[test]
        )
        assert score == pytest.approx(-expected)


@pytest.mark.parametrize("factory", WEIGHTED)
@pytest.mark.usefixtures("routing")
def test_routed_values_in_a_search(factory, data):
    X, t, _ = data
    scorer = factory().set_score_request(sensitive_features=True)
    search = GridSearchCV(Ridge(), {"alpha": [1e-3, 1e6]}, scoring=scorer, cv=2)
    assert search.fit(X, t, sensitive_features=X[:, 0]).best_params_["alpha"] == 1e6


@pytest.mark.usefixtures("routing")
def test_both_doors_at_once_are_refused(data):
    X, t, _ = data
    scorer = make_gedi_scorer(sensitive_columns=0).set_score_request(sensitive_features=True)
    with pytest.raises(ValueError, match="both"):
        scorer(LinearRegression().fit(X, t), X, t, sensitive_features=X[:, 0])


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]])
def test_tuned_threshold_with_routing(data, labels):
    X, _, y = data
    y = np.asarray(labels)[y]
    scorer = make_gedi_scorer(pos_label=labels[1]).set_score_request(sensitive_features=True)
    tuned = TunedThresholdClassifierCV(
        LogisticRegression(max_iter=1000), scoring=scorer, store_cv_results=True, cv=2
    ).fit(X, y, sensitive_features=X[:, 0])
    # One class for everybody is the fairest decision there is.
    assert tuned.best_score_ == pytest.approx(0)
    assert min(tuned.cv_results_["scores"]) < -0.01


def test_tuned_threshold_with_columns_says_why_not(data):
    X, _, y = data
    tuned = TunedThresholdClassifierCV(
        LogisticRegression(max_iter=1000), scoring=make_gedi_scorer(sensitive_columns=0), cv=2
    )
    with pytest.raises(ValueError, match=r"TunedThresholdClassifierCV.*route the values"):
        tuned.fit(X, y)


@pytest.mark.parametrize("labels", [[0, 1], [3, 7], [False, True], ["no", "yes"]])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_scores_are_of_the_positive_class(data, labels, method):
    X, _, y = data
    named = np.asarray(labels)[y]
    model = LogisticRegression(max_iter=1000).fit(X, named)
    values = getattr(model, method)(X)
    p = values[:, 1] if method == "predict_proba" else values
    for options, predicted, truth in [
        ({}, p, y),
        ({"pos_label": labels[1]}, p, y),
        ({"pos_label": labels[0]}, 1 - p if method == "predict_proba" else -p, 1 - y),
    ]:
        scorer = make_gedi_scorer(
            sensitive_columns=0, response_method=method, relative=True, **options
        )
        expected = gedi(truth, predicted, sensitive_features=X[:, 0], relative=True)
        assert scorer(model, X, named) == pytest.approx(-expected)
        scorer = make_binned_didi_scorer(sensitive_columns=0, response_method=method, **options)
        expected = binned_didi(predicted, sensitive_features=X[:, 0], task="regression")
        factor = 2 if method == "predict_proba" else 1
        assert scorer(model, X, named) == pytest.approx(-factor * expected)


def test_predicted_text_needs_the_positive_label(data):
    X, _, y = data
    named = np.where(y == 1, "yes", "no")
    model = LogisticRegression(max_iter=1000).fit(X, named)
    with pytest.raises(ValueError, match="pass `pos_label`"):
        make_gedi_scorer(sensitive_columns=0)(model, X, named)
    score = make_gedi_scorer(sensitive_columns=0, pos_label="yes")(model, X, named)
    assert score == pytest.approx(-gedi((model.predict(X) == "yes"), sensitive_features=X[:, 0]))


def test_multiclass_didi_follows_the_estimator(data):
    X, t, _ = data
    y = np.digitize(t, [1, 2])
    model = LogisticRegression(max_iter=1000).fit(X, y)
    score = make_binned_didi_scorer(sensitive_columns=0)(model, X, y)
    expected = binned_didi(y, model.predict(X), sensitive_features=X[:, 0], task="classification")
    assert score == -expected


@pytest.mark.parametrize(
    "scorer",
    [
        make_gedi_scorer(sensitive_columns=0, kernel=PolynomialKernel(2, standardize=True)),
        make_binned_didi_scorer(sensitive_columns=0, bins=2),
    ],
    ids=["gedi", "binned_didi"],
)
def test_one_small_fold_does_not_end_a_search(scorer):
    # Two distinct values in the first fold: too few for degree 2, and the median is the minimum.
    X = np.array([0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7.0])[:, None]
    t = np.arange(12.0)
    with pytest.warns(UndefinedMetricWarning, match="NaN"):
        scores = cross_validate(LinearRegression(), X, t, scoring=scorer, cv=KFold(2))["test_score"]
    assert np.isnan(scores[0])
    assert scores[1] < 0
