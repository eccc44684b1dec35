"""Projected estimators whose predictions ask for the attribute: routing, searches, scorers."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import VotingRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from gedi_sklearn import (
    CoarseConstraint,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.metrics import gedi, make_disparity_scorer

KINDS = [ProjectedRegressor, ProjectedClassifier]
every_kind = pytest.mark.parametrize("kind", KINDS)
NEEDS_ATTRIBUTE = "need the attribute of these rows as sensitive_features="

# Scikit-learn 1.6 asks no router what the `score` of a pipeline takes.
is_old = parse_version(sklearn.__version__) < parse_version("1.7")


@pytest.fixture(scope="module")
def data():
    """Features that go with the attribute, targets, labels, and the attribute."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, 150)
    X = np.c_[x + 0.3 * rng.normal(size=150), rng.normal(size=150)]
    t = x + X[:, 1] + 0.3 * rng.normal(size=150)
    return X, t, np.where(t > 0, "yes", "no"), x


@pytest.fixture
def routed():
    with config_context(enable_metadata_routing=True):
        yield


def targets_of(kind, data):
    return data[1] if kind is ProjectedRegressor else data[2]


def routed_scorer(kind, metric="gedi", **options):
    if kind is ProjectedClassifier:
        options["pos_label"] = "yes"
    return make_disparity_scorer(metric, **options).set_score_request(sensitive_features=True)


def folds_by_hand(model, X, targets, x, measure, cv):
    """Yield what a scorer is to find: fitted on one part, given the attribute on the other."""
    for train, test in cv.split(X):
        fitted = clone(model).fit(X[train], targets[train], sensitive_features=x[train])
        yield measure(targets[test], fitted.predict(X[test], sensitive_features=x[test]), x[test])


def requests_of(estimator):
    """Return what the estimator's own methods ask of the attribute."""
    own = estimator.get_metadata_routing()._serialize()["$self_request"]
    return {method: asked["sensitive_features"] for method, asked in own.items()}


@every_kind
def test_a_pipeline_hands_the_attribute_to_every_prediction(data, routed, kind):
    X, _, _, x = data
    targets = targets_of(kind, data)
    pipe = make_pipeline(StandardScaler(), kind()).fit(X, targets, sensitive_features=x)
    scaled, model = StandardScaler().fit_transform(X), pipe[-1]
    for method in ("predict", "predict_proba"):
        if hasattr(model, method):
            assert_array_equal(
                getattr(pipe, method)(X, sensitive_features=x),
                getattr(model, method)(scaled, sensitive_features=x),
            )
    measure = r2_score if kind is ProjectedRegressor else accuracy_score
    expected = measure(targets, pipe.predict(X, sensitive_features=x))
    assert pipe.score(X, targets, sensitive_features=x) == expected
    with pytest.raises(ValueError, match=NEEDS_ATTRIBUTE):
        pipe.predict(X)
    nested = make_pipeline(StandardScaler(), clone(pipe)).fit(X, targets, sensitive_features=x)
    assert len(nested.predict(X, sensitive_features=x)) == len(X)


@every_kind
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_scorers_hand_the_attribute_to_predictions(data, routed, kind, in_pipeline):
    X, _, _, x = data
    x = x.round(1)  # groups, for the DIDI
    targets = targets_of(kind, data)
    model = kind(None, CoarseConstraint())
    if in_pipeline:
        model = make_pipeline(StandardScaler(), model)
    scoring = {
        "gedi": routed_scorer(kind),
        "didi": routed_scorer(kind, "didi", task="regression"),
        "hgr": routed_scorer(kind, "hgr", method="kernel", degree=1),
    }
    cv = KFold(3, shuffle=True, random_state=0)
    params = {"sensitive_features": x}
    found = cross_validate(model, X, targets, scoring=scoring, cv=cv, params=params)
    pos_label = "yes" if kind is ProjectedClassifier else None

    def measure(y_true, y_pred, attribute):
        return -gedi(y_true, y_pred, sensitive_features=attribute, pos_label=pos_label)

    assert_allclose(found["test_gedi"], list(folds_by_hand(model, X, targets, x, measure, cv)))
    alone = cross_validate(model, X, targets, scoring=scoring["didi"], cv=cv, params=params)
    assert_array_equal(alone["test_score"], found["test_didi"])


def test_scorers_of_probabilities_hand_it_on(data, routed):
    X, _, y, x = data
    scorer = routed_scorer(ProjectedClassifier, response_method="predict_proba")
    pipe = make_pipeline(StandardScaler(), ProjectedClassifier()).fit(X, y, sensitive_features=x)
    proba = pipe.predict_proba(X, sensitive_features=x)[:, 1]
    expected = -gedi((y == "yes") * 1.0, proba, sensitive_features=x)
    assert scorer(pipe, X, y, sensitive_features=x) == expected


@every_kind
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_searches_by_an_indicator_and_by_the_own_score(data, routed, kind, in_pipeline):
    X, _, _, x = data
    targets = targets_of(kind, data)
    model = kind(None, CoarseConstraint())
    if in_pipeline:
        model = make_pipeline(StandardScaler(), model)
    name = "constraint__threshold"
    name = f"{kind.__name__.lower()}__{name}" if in_pipeline else name
    grid = {name: [0.1, 0.9]}
    fairest = GridSearchCV(model, grid, scoring=routed_scorer(kind), cv=3)
    fairest.fit(X, targets, sensitive_features=x)
    assert fairest.best_params_ == {name: 0.1}
    assert fairest.score(X, targets, sensitive_features=x) < 0
    if in_pipeline and is_old:
        return
    best = GridSearchCV(model, grid, cv=3).fit(X, targets, sensitive_features=x)
    assert best.best_params_ == {name: 0.9}
    expected = best.best_estimator_.score(X, targets, sensitive_features=x)
    assert best.score(X, targets, sensitive_features=x) == expected


@every_kind
def test_who_does_not_need_the_attribute_does_not_ask_for_it(data, routed, kind):
    X, _, _, x = data
    targets = targets_of(kind, data)
    assert set(requests_of(kind()).values()) == {True}
    for options in ({"sensitive_at_predict": False}, {"sensitive_columns": 0}):
        requests = requests_of(kind(**options))
        assert requests.pop("fit") is True
        assert set(requests.values()) == {False}
    blind = make_pipeline(
        StandardScaler(), kind(None, CoarseConstraint(), sensitive_at_predict=False)
    )
    params = {"sensitive_features": x}
    cross_validate(blind, X, targets, params=params, cv=2, error_score="raise")
    cross_validate(blind[-1], X, targets, params=params, cv=2, error_score="raise")
    scoring = routed_scorer(kind)
    cross_validate(blind, X, targets, params=params, scoring=scoring, cv=2, error_score="raise")
    with pytest.raises(TypeError, match="sensitive_features"):
        blind.fit(X, targets, **params).predict(X, **params)


def test_a_clone_asks_for_what_the_original_asks_for(routed):
    model = ProjectedClassifier().set_fit_request(sensitive_features="age")
    for estimator in (model, clone(model)):
        # One attribute has one name, unless a method was given one of its own.
        assert set(requests_of(estimator).values()) == {"age"}
    model.set_predict_request(sensitive_features=False)
    assert requests_of(clone(model))["predict"] is False
    assert set(requests_of(clone(ProjectedClassifier())).values()) == {True}
    # Asking changes nothing.
    blind = ProjectedClassifier(constraint=CoarseConstraint(), sensitive_at_predict=False)
    requests_of(blind)
    assert set(requests_of(blind.set_params(sensitive_at_predict=True)).values()) == {True}


def test_an_attribute_of_another_name_is_not_handed_on(data, routed):
    X, t, _, x = data
    pipe = make_pipeline(
        StandardScaler(), ProjectedRegressor().set_fit_request(sensitive_features="age")
    )
    pipe.fit(X, t, age=x)
    assert_array_equal(
        pipe.predict(X, age=x), pipe[-1].predict(pipe[:-1].transform(X), sensitive_features=x)
    )
    other = X[:, 1]
    for scorer in (
        make_disparity_scorer().set_score_request(sensitive_features=True),
        make_disparity_scorer().set_score_request(sensitive_features="other"),
    ):
        with pytest.raises(ValueError, match=NEEDS_ATTRIBUTE):
            scorer(pipe, X, t, sensitive_features=other)
    with pytest.raises(ValueError, match=NEEDS_ATTRIBUTE):
        make_disparity_scorer(sensitive_columns=1)(pipe, X, t)


@pytest.mark.parametrize("routing", [False, True])
def test_who_does_not_hand_it_on_is_told_what_to_do(data, routing):
    X, t, _, x = data
    with config_context(enable_metadata_routing=routing):
        model = ProjectedRegressor()
        search = GridSearchCV(model, {"drop_sensitive": [False]}, scoring=lambda *_: 0.0, cv=2)
        search.fit(X, t, sensitive_features=x)
        with pytest.raises(ValueError, match=f"{NEEDS_ATTRIBUTE}.*sensitive_columns="):
            search.predict(X)
        with pytest.raises(ValueError, match=NEEDS_ATTRIBUTE):
            cross_validate(
                model,
                X,
                t,
                scoring="r2",
                params={"sensitive_features": x},
                error_score="raise",
            )
        by_column = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0)
        assert len(VotingRegressor([("fair", by_column)]).fit(X, t).predict(X)) == 150


def test_estimators_that_need_no_attribute_are_scored_as_before(data, routed):
    X, t, _, x = data
    scorer = make_disparity_scorer().set_score_request(sensitive_features=True)
    model = MovingTargetsRegressor(constraint=CoarseConstraint(), max_iter=2).fit(
        X, t, sensitive_features=x
    )
    expected = -gedi(t, model.predict(X), sensitive_features=x)
    assert scorer(model, X, t, sensitive_features=x) == expected
