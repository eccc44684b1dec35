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

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    MovingTargetsRegressor,
    PolynomialKernel,
)
from gedi_sklearn.metrics import didi, gedi, gedi_inference, hgr, make_disparity_scorer

BINNED = {"metric": "didi", "n_bins": 3}
WEIGHTED = [{"metric": "gedi"}, {"metric": "didi"}, BINNED]
METRICS = [*WEIGHTED, {"metric": "hgr"}]
every_metric = pytest.mark.parametrize("metric", METRICS, ids=str)
weighted_metric = pytest.mark.parametrize("metric", WEIGHTED, ids=str)


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


@every_metric
def test_a_wrong_keyword_fails_at_the_factory(metric):
    with pytest.raises(TypeError, match="degre"):
        make_disparity_scorer(**metric, degre=2)
    with pytest.raises(ValueError, match="response_method"):
        make_disparity_scorer(**metric, response_method="predict_label")
    with pytest.raises(ValueError, match="sensitive_columns"):
        make_disparity_scorer(**metric, sensitive_columns=1.5)
    with pytest.raises(ValueError, match="relative"):
        make_disparity_scorer(**metric, relative="yes")


@pytest.mark.usefixtures("routing")
def test_hgr_is_routed_with_weights(data):
    X, t, _ = data
    scorer = make_disparity_scorer("hgr", method="kernel", degree=2).set_score_request(
        sensitive_features=True
    )
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
        scorer = make_disparity_scorer(sensitive_columns=0, kernel=kernel, relative=relative)
        expected = gedi(t, p, sensitive_features=a, kernel=kernel, relative=relative)
        assert scorer(model, X, t) == -expected
    scorer = make_disparity_scorer("didi", sensitive_columns=0, n_bins=4, relative=True)
    assert scorer(model, X, t) == -didi(t, p, sensitive_features=a, n_bins=4, relative=True)
    scorer = make_disparity_scorer("didi", sensitive_columns=[0], task="regression")
    model.fit(tens, t)
    expected = didi(t, model.predict(tens), sensitive_features=tens[:, 0], task="regression")
    assert scorer(model, tens, t) == -expected


@every_metric
def test_scorer_is_negative_and_says_so(metric, data):
    X, t, _ = data
    X = X.round(-1) if metric == {"metric": "didi"} else X  # groups
    scorer = make_disparity_scorer(**metric, sensitive_columns=0)
    assert scorer(LinearRegression().fit(X, t), X, t) < 0
    assert "greater_is_better=False" in repr(scorer)
    assert "sensitive_columns=0" in repr(scorer)
    # Of scikit-learn's own scorer type, so that its tools know what to do.
    assert isinstance(scorer, type(make_scorer(gedi)).__mro__[1])
    assert check_scoring(LinearRegression(), scoring=scorer) is scorer


@weighted_metric  # HGR knows no scale, so that alpha hardly moves it
def test_search_takes_the_fairest(metric, data):
    X, t, _ = data
    search = GridSearchCV(
        Ridge(),
        {"alpha": [1e-3, 1e6]},
        scoring=make_disparity_scorer(**metric, sensitive_columns=0),
        cv=2,
    ).fit(X, t)
    assert search.best_params_["alpha"] == 1e6
    assert (search.cv_results_["mean_test_score"] <= 0).all()


def test_search_over_the_threshold_of_moving_targets(data):
    X, t, _ = data
    model = MovingTargetsRegressor(LinearRegression(), CoarseConstraint(), sensitive_columns=0)
    scorer = make_disparity_scorer(sensitive_columns=0)
    search = GridSearchCV(
        model, {"constraint__threshold": [0.05, np.inf]}, scoring=scorer, cv=2
    ).fit(X, t)
    assert search.best_params_["constraint__threshold"] == 0.05


@every_metric
def test_scorer_survives_copies_and_workers(metric, data):
    X, _, y = data
    scorer = make_disparity_scorer(**metric, sensitive_columns=0)
    model = LogisticRegression(max_iter=1000)
    expected = cross_validate(model, X, y, scoring=scorer, cv=3)["test_score"]
    copies = [pickle.loads(pickle.dumps(scorer)), copy.deepcopy(scorer), clone(scorer, safe=False)]
    for twin in copies:
        assert repr(twin) == repr(scorer)
        result = cross_validate(model, X, y, scoring={"fair": twin, "r2": "r2"}, cv=3, n_jobs=2)
        np.testing.assert_array_equal(result["test_fair"], expected)


@every_metric
def test_names_of_columns_in_a_frame(metric, data):
    X, t, _ = data
    frame = pd.DataFrame(X, columns=["age", "z"], index=np.arange(len(X))[::-1])
    options = {"cv": KFold(3, shuffle=True, random_state=0)}
    expected = cross_validate(
        LinearRegression(),
        X,
        t,
        scoring=make_disparity_scorer(**metric, sensitive_columns=0),
        **options,
    )
    named = make_disparity_scorer(**metric, sensitive_columns="age")
    result = cross_validate(LinearRegression(), frame, t, scoring=named, **options)
    np.testing.assert_allclose(result["test_score"], expected["test_score"], rtol=1e-12)
    with pytest.raises(ValueError, match="'income'"):
        make_disparity_scorer(**metric, sensitive_columns="income")(
            LinearRegression().fit(frame, t), frame, t
        )


@every_metric
def test_without_an_attribute_the_error_names_both_doors(metric, data):
    X, t, _ = data
    with pytest.raises(ValueError, match=r"sensitive_columns=.*set_score_request"):
        make_disparity_scorer(**metric)(LinearRegression().fit(X, t), X, t)


@weighted_metric
@pytest.mark.usefixtures("routing")
def test_routed_values_and_weights(metric, data):
    X, _, y = data
    a = coarse(X)
    model = LogisticRegression(max_iter=1000)
    scorer = make_disparity_scorer(**metric | ({"n_bins": [0, 0.5, 1]} if metric is BINNED else {}))
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
    indicator = {"gedi": gedi, "didi": didi}[metric["metric"]]
    for score, (train, test) in zip(result["test_score"], cv.split(X), strict=True):
        p = model.fit(X[train], y[train]).predict(X[test])
        expected = indicator(y[test], p, sensitive_features=a[test], sample_weight=weight[test])
        assert score == pytest.approx(-expected)


@weighted_metric
@pytest.mark.usefixtures("routing")
def test_routed_values_in_a_search(metric, data):
    X, t, _ = data
    scorer = make_disparity_scorer(**metric).set_score_request(sensitive_features=True)
    search = GridSearchCV(Ridge(), {"alpha": [1e-3, 1e6]}, scoring=scorer, cv=2)
    assert search.fit(X, t, sensitive_features=X[:, 0]).best_params_["alpha"] == 1e6


@pytest.mark.usefixtures("routing")
def test_both_doors_at_once_are_refused(data):
    X, t, _ = data
    scorer = make_disparity_scorer(sensitive_columns=0).set_score_request(sensitive_features=True)
    with pytest.raises(ValueError, match="both"):
        scorer(LinearRegression().fit(X, t), X, t, sensitive_features=X[:, 0])


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]])
def test_tuned_threshold_with_routing(data, labels):
    X, _, y = data
    y = np.asarray(labels)[y]
    scorer = make_disparity_scorer(pos_label=labels[1]).set_score_request(sensitive_features=True)
    tuned = TunedThresholdClassifierCV(
        LogisticRegression(max_iter=1000), scoring=scorer, store_cv_results=True, cv=2
    ).fit(X, y, sensitive_features=X[:, 0])
    # One class for everybody is the fairest decision there is.
    assert tuned.best_score_ == pytest.approx(0)
    assert min(tuned.cv_results_["scores"]) < -0.01


def test_tuned_threshold_with_columns_says_why_not(data):
    X, _, y = data
    tuned = TunedThresholdClassifierCV(
        LogisticRegression(max_iter=1000), scoring=make_disparity_scorer(sensitive_columns=0), cv=2
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
        scorer = make_disparity_scorer(
            sensitive_columns=0, response_method=method, relative=True, **options
        )
        expected = gedi(truth, predicted, sensitive_features=X[:, 0], relative=True)
        assert scorer(model, X, named) == pytest.approx(-expected)
        scorer = make_disparity_scorer(
            "didi", sensitive_columns=0, response_method=method, **options, n_bins=3
        )
        expected = didi(predicted, sensitive_features=X[:, 0], task="regression", n_bins=3)
        factor = 2 if method == "predict_proba" else 1
        assert scorer(model, X, named) == pytest.approx(-factor * expected)


def test_predicted_text_needs_the_positive_label(data):
    X, _, y = data
    named = np.where(y == 1, "yes", "no")
    model = LogisticRegression(max_iter=1000).fit(X, named)
    with pytest.raises(ValueError, match="pass `pos_label`"):
        make_disparity_scorer(sensitive_columns=0)(model, X, named)
    score = make_disparity_scorer(sensitive_columns=0, pos_label="yes")(model, X, named)
    assert score == pytest.approx(-gedi((model.predict(X) == "yes"), sensitive_features=X[:, 0]))


def test_multiclass_didi_follows_the_estimator(data):
    X, t, _ = data
    y = np.digitize(t, [1, 2])
    model = LogisticRegression(max_iter=1000).fit(X, y)
    score = make_disparity_scorer("didi", sensitive_columns=0, n_bins=3)(model, X, y)
    expected = didi(
        y, model.predict(X), sensitive_features=X[:, 0], task="classification", n_bins=3
    )
    assert score == -expected


@pytest.mark.parametrize(
    "scorer",
    [
        make_disparity_scorer(sensitive_columns=0, kernel=PolynomialKernel(2, standardize=True)),
        make_disparity_scorer("didi", sensitive_columns=0, n_bins=2),
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


CUBIC = PolynomialKernel(3, standardize=True)


@pytest.mark.parametrize(
    ("constraint", "measure"),
    [
        (CoarseConstraint(), {"relative": True}),
        (CoarseConstraint(kernel=CUBIC, relative=2), {"kernel": CUBIC, "relative": 2}),
        (CoarseConstraint(kernel=CUBIC, relative=False), {"kernel": CUBIC}),
        (
            DependenceConstraint(),
            {"kernel": "spline", "norm": "sd", "relative": True},
        ),
        (FineConstraint(kernel=CUBIC), {"kernel": CUBIC, "relative": True}),
        (CoarseConstraint(relative=False, on="residuals"), {"on": "residuals"}),
    ],
    ids=str,
)
def test_a_scorer_of_a_constraint_measures_what_it_bounds(data, constraint, measure):
    X, t, _ = data
    model = LinearRegression().fit(X, t)
    scorer = make_disparity_scorer(constraint, sensitive_columns=0)
    expected = gedi(t, model.predict(X), sensitive_features=X[:, 0], **measure)
    assert scorer(model, X, t) == -expected
    assert repr(constraint) in repr(scorer)
    twin = pickle.loads(pickle.dumps(scorer))
    assert twin(model, X, t) == -expected
    # What becomes of the object later has no say.
    constraint.set_params(relative=not constraint.relative)
    assert scorer(model, X, t) == -expected
    constraint.set_params(relative=not constraint.relative)


@pytest.mark.parametrize("labels", [(-1, 1), (0, 10), (1, 2), (False, True)])
def test_of_two_labels_the_larger_counts_as_1(data, labels):
    X, t, _ = data
    y = t > np.median(t)
    model = LogisticRegression().fit(X, np.array(labels)[y.astype(int)])
    expected = gedi(model.predict(X) == labels[1], sensitive_features=X[:, 0])
    scorers = (CoarseConstraint(relative=False), "gedi")
    for scorer in (make_disparity_scorer(one, sensitive_columns=0) for one in scorers):
        assert scorer(model, X, np.array(labels)[y.astype(int)]) == pytest.approx(-expected)


def test_a_scorer_of_a_constraint_on_groups_measures_their_disparity(data):
    X, t, _ = data
    X = np.c_[X[:, 0].round(-1), X[:, 1]]
    y = np.digitize(t, [1, 2])
    model = LogisticRegression(max_iter=1000).fit(X, y)
    scorer = make_disparity_scorer(DidiConstraint(), sensitive_columns=0)
    given = {"sensitive_features": X[:, 0], "task": "classification", "relative": True}
    assert scorer(model, X, y) == -didi(y, model.predict(X), **given)


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_a_scorer_says_that_the_constraint_is_met(data, norm, relative):
    """On the targets that a projection has made, the score is minus the threshold."""
    X, t, _ = data
    kind = CoarseConstraint if norm == "l1" else DependenceConstraint
    constraint = kind(0.01, kernel=1, relative=relative)
    model = MovingTargetsRegressor(LinearRegression(), constraint=constraint)
    targets = model.fit(X, t, sensitive_features=X[:, 0]).targets_
    scorer = make_disparity_scorer(constraint, sensitive_columns=0)

    class Predicting(LinearRegression):
        def predict(self, X):
            return targets

    assert scorer(Predicting().fit(X, t), X, t) == pytest.approx(-0.01)


@pytest.mark.usefixtures("routing")
def test_a_scorer_of_a_constraint_is_routed(data):
    X, t, _ = data
    scorer = make_disparity_scorer(CoarseConstraint()).set_score_request(sensitive_features=True)
    params = {"sensitive_features": X[:, 0]}
    found = cross_validate(LinearRegression(), X, t, scoring=scorer, params=params, cv=2)
    by_column = make_disparity_scorer(relative=True, sensitive_columns=0)
    expected = cross_validate(LinearRegression(), X, t, scoring=by_column, cv=2)
    np.testing.assert_allclose(found["test_score"], expected["test_score"], rtol=1e-12)


def test_what_contradicts_the_constraint_is_refused():
    with pytest.raises(
        ValueError, match=r"kernel='spline' was given together with .*Change it there"
    ):
        make_disparity_scorer(CoarseConstraint(), kernel="spline")
    with pytest.raises(ValueError, match="relative=False was given together with DidiConstraint"):
        make_disparity_scorer(DidiConstraint(), relative=False)
    for method in ("predict_proba", ["decision_function", "predict"]):
        with pytest.raises(ValueError, match="bounds predictions, the result of predict"):
            make_disparity_scorer(CoarseConstraint(), response_method=method)
    make_disparity_scorer(CoarseConstraint(), response_method="predict", pos_label=1)
    residuals = CoarseConstraint(relative=False, on="residuals")
    make_disparity_scorer(residuals, response_method="predict_proba")
    with pytest.raises(ValueError, match="threshold"):
        make_disparity_scorer(CoarseConstraint(threshold=-1))
    with pytest.raises(ValueError, match="n_bins=3 was given together with DidiConstraint"):
        make_disparity_scorer(DidiConstraint(), n_bins=3)


@pytest.mark.parametrize("metric", ["coarse", 0.2, None, CoarseConstraint, [CoarseConstraint()]])
def test_other_metrics_are_refused(metric):
    with pytest.raises(ValueError, match=r"metric must be one of 'gedi', .* or a constraint"):
        make_disparity_scorer(metric)


@pytest.mark.parametrize(
    ("metric", "given"),
    [
        ("gedi", {"fitted": True}),
        ("gedi_upper", {"method": "bootstrap"}),
        ("didi", {"kernel": "spline"}),
        ("hgr", {"norm": "sd"}),
        ("gedi", {"sensitive_features": [1]}),
    ],
)
def test_parameters_of_another_metric_are_refused(metric, given):
    with pytest.raises(TypeError, match=r"make_disparity_scorer\(\): unexpected keyword argument"):
        make_disparity_scorer(metric, **given)


@pytest.mark.parametrize(
    ("metric", "given"),
    [
        ("gedi", {"kernel": np.eye(3)}),
        ("gedi", {"kernel": 0}),
        ("gedi", {"norm": "sd", "relative": 2}),
        ("gedi_upper", {"norm": "adjusted_sd"}),
        ("gedi_upper", {"confidence": 95}),
        ("didi", {"n_bins": 1}),
        ("hgr", {"method": "mi"}),
    ],
)
def test_values_are_checked_at_the_factory(metric, given):
    with pytest.raises(ValueError, match=next(iter(given))):
        make_disparity_scorer(metric, **given)


def test_the_upper_limit_as_a_score(data):
    X, t, _ = data
    model = LinearRegression().fit(X, t)
    scorer = make_disparity_scorer("gedi_upper", sensitive_columns=0, fitted=True, relative=True)
    given = {"sensitive_features": X[:, 0], "fitted": True, "relative": True}
    assert scorer(model, X, t) == -gedi_inference(t, model.predict(X), **given).upper
