"""The folds of every estimator: shuffled, of whole groups, without rows of weight 0."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    ConstrainedBoostingRegressor,
    DependenceConstraint,
    DualTargetsClassifier,
    DualTargetsRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.exceptions import CertificateNotIssuedWarning
from gedi_sklearn.metrics import gedi
from gedi_sklearn.model_selection import tradeoff_curve

N = 240


def estimators(cv=3, **options):
    """Return one estimator of each kind that has `cv`."""
    common = {"sensitive_columns": 0, "cv": cv, **options}
    slope = CoarseConstraint(0.5)
    few = {"n_estimators": 10, "backend_params": {"max_leaves": 4}}
    return {
        "projected": ProjectedRegressor(LinearRegression(), slope, **common),
        "projected labels": ProjectedClassifier(LogisticRegression(), slope, **common),
        "blind": ProjectedRegressor(
            LinearRegression(),
            slope,
            sensitive_at_predict=False,
            attribute_estimator=LinearRegression(),
            **common,
        ),
        "moving": MovingTargetsRegressor(LinearRegression(), slope, max_iter=2, **common),
        "moving labels": MovingTargetsClassifier(LogisticRegression(), slope, max_iter=2, **common),
        "dual": DualTargetsRegressor(LinearRegression(), slope, max_iter=2, **common),
        "dual labels": DualTargetsClassifier(LogisticRegression(), slope, max_iter=2, **common),
        "boosting": ConstrainedBoostingRegressor("xgboost", slope, **few, **common),
        "boosting labels": ConstrainedBoostingClassifier("xgboost", slope, **few, **common),
    }


NAMES = list(estimators())
# Few iterations need not settle, and constraints of a few rows need not be met.
unsettled = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, N)
    X = np.c_[x, rng.normal(size=N), x + 0.5 * rng.normal(size=N)]
    t = X[:, 0] + X[:, 1] + rng.normal(size=N)
    return X, t, (t > 0).astype(int), np.repeat(np.arange(N // 6), 6)


def fitted(model, data, rows=slice(None), **params):
    X, t, y, _ = data
    targets = y if hasattr(model, "predict_proba") or "Classifier" in type(model).__name__ else t
    return model.fit(X[rows], targets[rows], **params)


@unsettled
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [None, 7])
def test_an_integer_is_shuffled_folds_of_the_seed(data, name, seed):
    # With boosting the seed also is that of the package, which trees of few leaves do not use.
    own = estimators()[name].set_params(random_state=seed)
    kind = StratifiedKFold if "labels" in name else KFold
    drawn = seed if seed is None or "boosting" not in name else own._seed()
    by_hand = clone(own).set_params(cv=kind(3, shuffle=True, random_state=drawn or 0))
    found, expected = fitted(own, data), fitted(by_hand, data)
    assert_array_equal(found.predict(data[0]), expected.predict(data[0]))


@unsettled
@pytest.mark.parametrize("name", NAMES)
def test_an_integer_beside_groups_is_folds_of_these(data, name):
    X, _, y, groups = data
    own = estimators()[name]
    kind = StratifiedGroupKFold if "labels" in name else GroupKFold
    splits = list(kind(3, shuffle=True, random_state=0).split(X, y, groups))
    expected = fitted(clone(own).set_params(cv=splits), data).predict(X)
    found = fitted(own, data, groups=groups).predict(X)
    assert_array_equal(found, expected)
    # A splitter of groups gets them without metadata routing as well.
    by_splitter = clone(own).set_params(cv=kind(3, shuffle=True, random_state=0))
    assert_array_equal(fitted(by_splitter, data, groups=groups).predict(X), expected)


@unsettled
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_weight_0_are_in_no_fold(data, name):
    """C3-13: the model is that of the other rows."""
    weight = np.where(np.arange(N) % 3 == 1, 0.0, 1.0)
    own = estimators()[name]
    kept = weight > 0
    found = fitted(clone(own), data, sample_weight=weight).predict(data[0])
    assert_allclose(found, fitted(own, data, kept).predict(data[0]), atol=1e-4)
    splits = [(np.r_[0:120], np.r_[120:N]), (np.r_[120:N], np.r_[0:120])]
    by_rows = fitted(clone(own).set_params(cv=splits), data, sample_weight=weight)
    position = np.cumsum(kept) - 1
    splits = [tuple(position[part[kept[part]]] for part in split) for split in splits]
    alone = fitted(own.set_params(cv=splits), data, kept)
    assert_allclose(by_rows.predict(data[0]), alone.predict(data[0]), atol=1e-4)


def test_most_rows_may_have_weight_0(data):
    """C3-13: ten rows that count, and 140 that do not."""
    X, t, _, _ = data
    weight = np.zeros(150)
    weight[::15] = 1.0
    model = ProjectedRegressor(LinearRegression(), CoarseConstraint(), sensitive_columns=0)
    found = clone(model).fit(X[:150], t[:150], sample_weight=weight).predict(X[:150:15])
    assert_allclose(found, model.fit(X[:150:15], t[:150:15]).predict(X[:150:15]))


def routes(model):
    """Return how an estimator is fitted with groups, by the name of the way."""
    pipeline = make_pipeline(FunctionTransformer(), clone(model))
    step = pipeline.steps[-1][0]
    grid = {"constraint__threshold": [0.5]}
    inside = {f"{step}__{name}": values for name, values in grid.items()}
    return {
        "direct": (clone(model), "groups"),
        "pipeline": (pipeline, f"{step}__groups"),
        "search": (GridSearchCV(clone(model), grid, cv=GroupKFold(2)), None),
        "both": (GridSearchCV(pipeline, inside, cv=2), f"{step}__groups"),
    }


@unsettled
@pytest.mark.parametrize("is_routed", [False, True])
@pytest.mark.parametrize("way", ["direct", "pipeline", "search", "both"])
@pytest.mark.parametrize("name", ["projected", "moving", "boosting"])
def test_groups_reach_the_folds(data, name, way, is_routed):
    X, t, _, groups = data
    model = estimators()[name]
    with config_context(enable_metadata_routing=is_routed):
        estimator, keyword = routes(model)[way]
        # Without routing a search gives groups to its own splitter only.
        is_lost = way == "search" and not is_routed
        keyword = "groups" if is_routed or keyword is None else keyword
        estimator.fit(X, t, **{keyword: groups})
        own = {} if is_lost else {"groups": groups}
        assert_array_equal(estimator.predict(X), model.fit(X, t, **own).predict(X))


@pytest.mark.parametrize("is_routed", [False, True])
def test_a_learner_that_takes_groups_gets_them(data, is_routed):
    X, t, _, groups = data
    learner = GridSearchCV(LinearRegression(), {"fit_intercept": [True]}, cv=GroupKFold(3))
    with config_context(enable_metadata_routing=is_routed):
        model = ProjectedRegressor(learner, CoarseConstraint(), sensitive_columns=0)
        assert model.fit(X, t, groups=groups).estimator_.n_splits_ == 3
        inner = ProjectedRegressor(LinearRegression(), CoarseConstraint(), sensitive_columns=0)
        nested = MovingTargetsRegressor(inner, CoarseConstraint(), sensitive_columns=0, max_iter=1)
        first = nested.set_params(estimator__cv=GroupKFold(3)).fit(X, t, groups=groups)
        assert first.predict(X).shape == t.shape


def test_a_curve_passes_groups_to_the_fits(data):
    X, t, _, groups = data
    model = make_pipeline(FunctionTransformer(), estimators()["projected"])
    how = {"thresholds": [0.5, 0.2], "sensitive_features": X[:, 0]}
    model[-1].set_params(sensitive_columns=None)
    found = tradeoff_curve(model, X, t, groups=groups, **how)
    seen = []

    class Spy(ProjectedRegressor):
        def fit(self, X, y, *, sensitive_features=None, groups=None):
            seen.append(np.asarray(groups))
            return super().fit(X, y, sensitive_features=sensitive_features, groups=groups)

    spy = Spy(**model[-1].get_params(deep=False))
    spied = Pipeline([("same", FunctionTransformer()), ("model", spy)])
    again = tradeoff_curve(spied, X, t, groups=groups, **how)
    assert_array_equal(found.gedi, again.gedi)
    whole = [set(groups) - set(np.unique(own)) for own in seen]
    # Every group is tested, as a whole, in one of five folds.
    assert len(seen) == 5
    assert set().union(*whole) == set(groups)
    assert sum(map(len, whole)) == len(set(groups))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], "groups"),
        (np.r_[np.nan, np.ones(N - 1)], "groups"),
        (np.arange(N) % 2, "cv=3 makes folds of whole groups, but there are 2 group"),
    ],
)
def test_bad_groups_are_refused(data, groups, message):
    with pytest.raises(ValueError, match=message):
        fitted(estimators()["projected"], data, groups=groups)


def test_out_of_bag_rows_of_a_group_were_seen(data):
    X, t, _, groups = data
    forest = RandomForestRegressor(60, random_state=0)
    model = ProjectedRegressor(forest, CoarseConstraint(), sensitive_columns=0, cv="oob")
    assert model.fit(X, t).verdict_.new_rows is not None
    assert model.fit(X, t, groups=groups).verdict_.new_rows is None
    with pytest.raises(ValueError, match="nor rows of the same group"):
        model.set_params(confidence=0.9).fit(X, t, groups=groups)


@pytest.mark.parametrize("order", ["attribute", "y"])
def test_a_splitter_that_cuts_a_sorted_file_is_named_once(data, order):
    X, t, _, groups = data
    rows = np.argsort(X[:, 0] if order == "attribute" else t)
    model = estimators(cv=KFold(3))["projected"]
    with pytest.warns(UserWarning, match=f"cv: KFold .* predicts .*{order} .*groups") as caught:
        model.fit(X[rows], t[rows])
    assert sum("which are sorted" in str(one.message) for one in caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, t)
        for cv in (3, KFold(3, shuffle=True, random_state=0), list(KFold(3).split(X))):
            clone(model).set_params(cv=cv).fit(X[rows], t[rows])
        clone(model).set_params(cv=GroupKFold(3)).fit(X[rows], t[rows], groups=groups[rows])
        # Classes are in every fold of a stratified splitter, wherever they stand.
        apart = np.c_[X[:, 1], X[:, 0], X[:, 2]]  # the attribute says nothing of y's noise
        noise = np.sort(np.random.default_rng(1).integers(0, 2, N))
        by_class = MovingTargetsClassifier(None, CoarseConstraint(np.inf), sensitive_columns=0)
        by_class.set_params(cv=StratifiedKFold(3)).fit(apart, noise)


def claims(n, seed):
    rng = np.random.default_rng(seed)
    age, x = rng.uniform(20, 60, n), rng.normal(size=n)
    return np.c_[age, x], 0.05 * age + x + 0.3 * rng.normal(size=n)


@unsettled
@pytest.mark.parametrize(
    "kind", [ProjectedRegressor, pytest.param(DualTargetsRegressor, marks=pytest.mark.slow)]
)
def test_rows_sorted_by_the_attribute_leave_no_more_than_shuffled_ones(kind):
    """C3-20: folds of neighbours left .54 and .48 where shuffled ones leave .33."""
    learner = HistGradientBoostingRegressor(max_iter=30)
    model = kind(learner, DependenceConstraint(), sensitive_columns=0, cv=5)
    new, target = claims(20_000, 99)
    how = {"sensitive_features": new[:, 0], "norm": "sd", "kernel": "spline", "relative": True}
    excess = []
    for seed in range(2):
        X, y = claims(1500, seed)
        left = [
            gedi(target, model.fit(X[rows], y[rows]).predict(new), **how)
            for rows in (np.argsort(X[:, 0]), np.arange(1500))
        ]
        excess.append(left[0] - left[1])
    assert np.mean(excess) < 0.05


@pytest.mark.parametrize("kind", ["str", "int64", "datetime64[D]"])
def test_a_group_is_named_as_it_was_given(kind):
    rng = np.random.default_rng(0)
    names = (np.arange(40) + 1000).astype(kind)
    person = np.repeat(np.arange(40), 6)
    x = rng.uniform(20, 60, 40)[person]
    x[person == 17] = 200.0
    y = 0.5 * x + 5 * rng.normal(size=40)[person]
    model = ProjectedRegressor(
        constraint=DependenceConstraint(0.01, kernel=1), sensitive_columns=0, confidence=0.9
    )
    with pytest.warns(CertificateNotIssuedWarning, match=f"of 40 groups {names[17]} adds"):
        model.fit(x[:, None], y, groups=names[person])
