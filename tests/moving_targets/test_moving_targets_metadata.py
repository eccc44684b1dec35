"""Moving Targets among scikit-learn's meta-estimators: metadata, containers of X, tags."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils import get_tags

from gedi_sklearn import CoarseConstraint, MovingTargetsClassifier, MovingTargetsRegressor
from gedi_sklearn.metrics import gedi, make_disparity_scorer

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    attribute = np.linspace(-1.5, 1.5, 80)
    X = np.c_[attribute, rng.normal(size=(80, 2))]
    t = attribute + X[:, 1] + 0.5 * rng.normal(size=80)
    weight = rng.integers(1, 4, size=80).astype(float)
    # Rows in random order: a fold must not be a range of the attribute.
    order = rng.permutation(80)
    return X[order], t[order], (t > 0).astype(int)[order], attribute[order], weight[order]


@pytest.fixture(params=[False, True], ids=["routing off", "routing on"])
def routing(request):
    with config_context(enable_metadata_routing=request.param):
        yield request.param


@pytest.fixture
def routed():
    with config_context(enable_metadata_routing=True):
        yield


class Recording(RegressorMixin, BaseEstimator):
    """Keeps what its `fit` was given, by class, since clones are what is fitted."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, note=None):
        type(self).seen.append({"X": X, "sample_weight": sample_weight, "note": note})
        self.mean_ = np.average(y, weights=sample_weight)
        return self

    def predict(self, X):
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return self.mean_ + np.linspace(0, 1, n)


@pytest.fixture
def recording():
    Recording.seen.clear()
    return Recording


# --- weights and other metadata ---------------------------------------------------------------


def test_weights_and_metadata_reach_every_inner_fit(data, routing, recording):
    X, t, _, attribute, weight = data
    inner = recording()
    if routing:
        inner.set_fit_request(sample_weight=True, note=True)
    model = MovingTargetsRegressor(inner, CoarseConstraint(), max_iter=2)
    model.fit(X, t, sensitive_features=attribute, sample_weight=weight, note="kept")
    assert len(recording.seen) == model.n_iter_ + 1 == 3
    for seen in recording.seen:
        assert_array_equal(seen["sample_weight"], weight)
        assert seen["note"] == "kept"


def test_the_default_estimator_takes_weights(data, routing):
    X, t, y, attribute, weight = data
    for model, target in ((MovingTargetsRegressor(), t), (MovingTargetsClassifier(), y)):
        fit = {"sensitive_features": attribute}
        weighted = clone(model).fit(X, target, sample_weight=weight, **fit)
        plain = clone(model).fit(X, target, **fit)
        assert not np.array_equal(weighted.estimator_.coef_, plain.estimator_.coef_)


def test_weights_that_cannot_arrive_are_an_error(data, routing):
    X, t, _, attribute, weight = data
    fit = {"sensitive_features": attribute, "sample_weight": weight}
    for inner in (
        KNeighborsRegressor(3),
        make_pipeline(PolynomialFeatures(2), KNeighborsRegressor(3)),
    ):
        with pytest.raises(ValueError, match="sample_weight"):
            MovingTargetsRegressor(inner, CoarseConstraint()).fit(X, t, **fit)


def test_a_pipeline_says_how_to_request_weights(data):
    X, t, _, attribute, weight = data
    pipe = make_pipeline(StandardScaler(), LinearRegression())
    fit = {"sensitive_features": attribute, "sample_weight": weight}
    with pytest.raises(ValueError, match=r"linearregression__sample_weight=w.*set_fit_request"):
        MovingTargetsRegressor(pipe, CoarseConstraint()).fit(X, t, **fit)
    named = MovingTargetsRegressor(pipe, CoarseConstraint()).fit(
        X, t, **fit, linearregression__sample_weight=weight
    )
    with config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            MovingTargetsRegressor(pipe, CoarseConstraint()).fit(X, t, **fit)
        requested = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            LinearRegression().set_fit_request(sample_weight=True),
        )
        routed = MovingTargetsRegressor(requested, CoarseConstraint()).fit(X, t, **fit)
    # Scaling does not change a linear model, so a bare one is the same.
    bare = MovingTargetsRegressor(LinearRegression(), CoarseConstraint()).fit(X, t, **fit)
    for model in (named, routed):
        assert_allclose(model.predict(X), bare.predict(X), atol=1e-9)


def test_refused_weights_serve_the_projection_only(data, routed):
    X, t, _, attribute, weight = data
    refusing = LinearRegression().set_fit_request(sample_weight=False)
    fit = {"sensitive_features": attribute, "sample_weight": weight}
    model = MovingTargetsRegressor(refusing, CoarseConstraint(np.inf)).fit(X, t, **fit)
    assert_allclose(model.predict(X), LinearRegression().fit(X, t).predict(X))
    with pytest.raises(UnsetMetadataPassedError, match="LinearRegression"):
        MovingTargetsRegressor(LinearRegression(), CoarseConstraint()).fit(X, t, **fit)


def test_unknown_metadata_is_an_error(data, routing):
    X, t, _, attribute, _ = data
    with pytest.raises(TypeError, match="mistake"):
        MovingTargetsRegressor().fit(X, t, sensitive_features=attribute, mistake=1)


def test_nested_step_weights_count_as_passed_on(data):
    X, t, _, attribute, weight = data
    inner = TransformedTargetRegressor(LinearRegression())
    fit = {"sensitive_features": attribute, "sample_weight": weight}
    model = MovingTargetsRegressor(inner, CoarseConstraint()).fit(X, t, **fit)
    bare = MovingTargetsRegressor(LinearRegression(), CoarseConstraint()).fit(X, t, **fit)
    assert_allclose(model.predict(X), bare.predict(X), atol=1e-9)


# --- around and inside other meta-estimators --------------------------------------------------


def test_the_attribute_is_routed_through_a_pipeline(data, routed):
    X, t, _, attribute, weight = data
    pipe = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False), MovingTargetsRegressor()
    )
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        pipe.fit(X, t, sensitive_features=attribute, sample_weight=weight).set_params(
            movingtargetsregressor__estimator=LinearRegression()
        ).fit(X, t, sensitive_features=attribute, sample_weight=weight)
    pipe.set_params(
        movingtargetsregressor__estimator=LinearRegression().set_fit_request(sample_weight=True)
    )
    pipe.fit(X, t, sensitive_features=attribute, sample_weight=weight)
    model = MovingTargetsRegressor().fit(X, t, sensitive_features=attribute, sample_weight=weight)
    assert_allclose(pipe.predict(X), model.predict(X), atol=1e-9)


def test_the_column_is_read_after_the_steps_before(data, routing):
    X, t, _, attribute, _ = data
    pipe = make_pipeline(
        StandardScaler(), MovingTargetsRegressor(constraint=CoarseConstraint(), sensitive_columns=0)
    )
    targets = pipe.fit(X, t)[-1].targets_
    scaled = (attribute - attribute.mean()) / attribute.std()
    assert_allclose(gedi(t, targets, sensitive_features=scaled, relative=True), 0.2, rtol=1e-9)


def test_cross_validate_slices_the_attribute(data, routed):
    X, t, _, attribute, weight = data
    params = {"sensitive_features": attribute, "sample_weight": weight}
    by_value = cross_validate(
        MovingTargetsRegressor(
            LinearRegression().set_fit_request(sample_weight=True), CoarseConstraint()
        ).set_score_request(sample_weight=True),
        X,
        t,
        params=params,
        cv=3,
        return_estimator=True,
    )
    for model in by_value["estimator"]:
        assert len(model.targets_) < len(t)
    scorer = make_disparity_scorer().set_score_request(sensitive_features=True)
    scores = cross_validate(
        MovingTargetsRegressor(None, CoarseConstraint()),
        X,
        t,
        params={"sensitive_features": attribute},
        scoring={"gedi": scorer},
        cv=3,
    )["test_gedi"]
    by_column = cross_validate(
        MovingTargetsRegressor(constraint=CoarseConstraint(), sensitive_columns=0),
        X,
        t,
        scoring={"gedi": make_disparity_scorer(sensitive_columns=0)},
        cv=3,
    )["test_gedi"]
    assert_allclose(scores, by_column)


def test_grid_search_over_ours_and_inner_parameters(data, routing):
    X, t, _, attribute, _ = data
    grid = {"constraint__threshold": [0.1, np.inf], "estimator__alpha": [0.1, 10.0]}
    model = MovingTargetsRegressor(Ridge(), CoarseConstraint(), max_iter=2)
    if routing:
        search = GridSearchCV(model, grid, cv=2).fit(X, t, sensitive_features=attribute)
    else:
        search = GridSearchCV(model.set_params(sensitive_columns=0), grid, cv=2).fit(X, t)
    assert search.best_params_["constraint__threshold"] == np.inf
    assert search.best_estimator_.estimator_.alpha == search.best_params_["estimator__alpha"]
    fair = GridSearchCV(
        MovingTargetsRegressor(Ridge(), CoarseConstraint(), max_iter=2, sensitive_columns=0),
        grid,
        cv=2,
        scoring=make_disparity_scorer(sensitive_columns=0),
    ).fit(X, t)
    assert fair.best_params_["constraint__threshold"] == 0.1


def test_ensembles_around(data, routing):
    X, t, _, _, _ = data
    model = MovingTargetsRegressor(constraint=CoarseConstraint(), sensitive_columns=0, max_iter=2)
    for ensemble in (
        StackingRegressor([("fair", model), ("ridge", Ridge())], cv=2),
        BaggingRegressor(model, n_estimators=3, random_state=0),
        make_pipeline(StandardScaler(), model),
        TransformedTargetRegressor(model, transformer=StandardScaler()),
    ):
        assert np.isfinite(ensemble.fit(X, t).predict(X)).all()
    both = MultiOutputRegressor(model).fit(X, np.c_[t, -t]).predict(X)
    assert_allclose(both[:, 0], -both[:, 1], atol=1e-9)


def test_meta_estimators_inside(data, routing):
    X, t, _, _, _ = data
    for inner in (
        make_pipeline(StandardScaler(), RandomForestRegressor(n_estimators=3, random_state=0)),
        TransformedTargetRegressor(LinearRegression(), transformer=StandardScaler()),
        StackingRegressor([("ridge", Ridge())], cv=2),
        BaggingRegressor(Ridge(), n_estimators=3, random_state=0),
        GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
    ):
        model = MovingTargetsRegressor(
            inner, CoarseConstraint(), sensitive_columns=0, max_iter=2
        ).fit(X, t)
        assert_allclose(
            gedi(t, model.targets_, sensitive_features=X[:, 0], relative=True), 0.2, rtol=1e-9
        )
        assert np.isfinite(model.predict(X)).all()


def test_wrappers_nest(data, routing):
    X, t, _, _, _ = data
    inner = MovingTargetsRegressor(constraint=CoarseConstraint(), sensitive_columns=1, max_iter=1)
    outer = MovingTargetsRegressor(inner, CoarseConstraint(), sensitive_columns=0, max_iter=1).fit(
        X, t
    )
    assert np.isfinite(outer.predict(X)).all()


# --- containers of X --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "container",
    [
        lambda X: X,
        lambda X: np.asfortranarray(X),
        lambda X: X.astype(np.float32),
        lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
        lambda X: sp.csr_matrix(X),
        lambda X: sp.csr_array(X),
        lambda X: X.tolist(),
    ],
    ids=["array", "fortran", "float32", "frame", "sparse matrix", "sparse array", "list"],
)
def test_x_is_passed_on_as_it_is(data, recording, container):
    X, t, _, attribute, _ = data
    given = container(X)
    MovingTargetsRegressor(recording(), CoarseConstraint(), max_iter=1).fit(
        given, t, sensitive_features=attribute
    )
    assert all(seen["X"] is given for seen in recording.seen)


def test_sparse_x(data):
    X, t, _, attribute, _ = data
    dense = MovingTargetsRegressor(Ridge(), CoarseConstraint()).fit(
        X, t, sensitive_features=attribute
    )
    for given in (sp.csr_matrix(X), sp.csc_array(X)):
        by_value = MovingTargetsRegressor(Ridge(), CoarseConstraint()).fit(
            given, t, sensitive_features=attribute
        )
        by_column = MovingTargetsRegressor(Ridge(), CoarseConstraint(), sensitive_columns=0).fit(
            given, t
        )
        dropped = MovingTargetsRegressor(
            Ridge(), CoarseConstraint(), sensitive_columns=0, drop_sensitive=True
        )
        for model in (by_value, by_column):
            assert_allclose(model.predict(given), dense.predict(X), atol=1e-4)
        assert dropped.fit(given, t).estimator_.n_features_in_ == 2


# The words of a text do not let its learner follow.
@pytest.mark.filterwarnings("ignore:.*the predictions for the training rows do not meet")
def test_text_and_no_table_at_all(data):
    _, _, y, attribute, _ = data
    texts = [f"word{label} filler" for label in y]
    model = MovingTargetsClassifier(
        make_pipeline(CountVectorizer(), MultinomialNB()), CoarseConstraint()
    )
    model.set_params(max_iter=2).fit(texts, y, sensitive_features=attribute)
    assert set(model.predict(texts)) <= {0, 1}
    assert not hasattr(model, "n_features_in_")


def test_missing_values_are_the_inner_estimators_business(data):
    X, t, y, attribute, _ = data
    holes = X.copy()
    holes[::7, 1] = np.nan
    for model, target in (
        (MovingTargetsRegressor(HistGradientBoostingRegressor(max_iter=5), CoarseConstraint()), t),
        (
            MovingTargetsClassifier(HistGradientBoostingClassifier(max_iter=5), CoarseConstraint()),
            y,
        ),
    ):
        model.set_params(max_iter=2).fit(holes, target, sensitive_features=attribute)
        assert len(model.predict(holes)) == len(y)
        model.set_params(sensitive_columns=0).fit(holes, target)
    with pytest.raises(ValueError, match="LinearRegression does not accept missing values"):
        MovingTargetsRegressor().fit(holes, t, sensitive_features=attribute)
    learner = HistGradientBoostingRegressor(max_iter=5)
    for options in ({}, {"drop_sensitive": True}):
        by_column = MovingTargetsRegressor(learner, sensitive_columns=1, **options)
        assert get_tags(MovingTargetsRegressor(learner, CoarseConstraint())).input_tags.allow_nan
        assert not get_tags(by_column).input_tags.allow_nan
        with pytest.raises(ValueError, match="NaN"):
            by_column.fit(holes, t)
        by_column.fit(X, t)
        if options:  # what the learner does not see may be missing
            assert len(by_column.predict(holes)) == len(t)
        else:
            with pytest.raises(ValueError, match=r"column 1 of X\) contains NaN"):
                by_column.predict(holes)
    with pytest.raises(ValueError, match="NaN"):
        MovingTargetsRegressor().fit(X, np.where(t > 1, np.nan, t), sensitive_features=attribute)


def test_categorical_frames(data):
    X, t, y, attribute, _ = data
    frame = pd.DataFrame(X[:, 1:], columns=["b", "c"])
    frame["group"] = pd.Categorical(np.where(X[:, 1] > 0, "up", "down"))
    frame.insert(0, "age", attribute)
    encoder = ColumnTransformer([("text", OneHotEncoder(), ["group"])], remainder="passthrough")
    for model, target in (
        (MovingTargetsRegressor(HistGradientBoostingRegressor(max_iter=5), CoarseConstraint()), t),
        (MovingTargetsRegressor(make_pipeline(encoder, Ridge()), CoarseConstraint()), t),
        (
            MovingTargetsClassifier(
                make_pipeline(encoder, LogisticRegression()), CoarseConstraint()
            ),
            y,
        ),
    ):
        model.set_params(sensitive_columns="age", max_iter=2)
        for drop in (False, True):
            model.set_params(drop_sensitive=drop).fit(frame, target)
            assert len(model.predict(frame)) == len(t)


def test_polars_frames(data):
    pl = pytest.importorskip("polars")
    X, t, y, attribute, _ = data
    frame = pl.DataFrame(dict(zip("abc", X.T, strict=True)))
    plain = LinearRegression().fit(frame, t)
    for model, target in ((MovingTargetsRegressor(), t), (MovingTargetsClassifier(), y)):
        expected = clone(model).fit(X, target, sensitive_features=attribute)
        for fitted in (
            clone(model).fit(frame, pl.Series(target), sensitive_features=frame["a"]),
            clone(model).set_params(sensitive_columns="a").fit(frame, target),
        ):
            assert_allclose(fitted.predict(frame), expected.predict(X), atol=1e-9)
            # The names are those that scikit-learn reads: 1.6 reads none from newer polars.
            for name in ("n_features_in_", "feature_names_in_"):
                assert_array_equal(getattr(fitted, name, None), getattr(plain, name, None))
        clone(model).set_params(sensitive_columns="a", drop_sensitive=True).fit(frame, target)


def test_names_are_checked(data):
    X, t, _, _, _ = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for drop in (False, True):
        model = MovingTargetsRegressor(
            constraint=CoarseConstraint(), sensitive_columns="a", drop_sensitive=drop
        ).fit(frame, t)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["b", "a", "c"]])
        with pytest.raises(ValueError, match="features"):
            model.predict(X[:, :2])
        with pytest.warns(UserWarning, match="feature names") as record:
            model.predict(X)
        assert len(record) == 1
    unnamed = MovingTargetsRegressor(constraint=CoarseConstraint(), sensitive_columns=0).fit(X, t)
    with pytest.warns(UserWarning, match="feature names") as record:
        unnamed.predict(frame)
    assert len(record) == 1


# --- tags -------------------------------------------------------------------------------------


def test_tags_follow_the_inner_estimator():
    for inner in (HistGradientBoostingRegressor(), Ridge(), LinearRegression()):
        ours, theirs = get_tags(MovingTargetsRegressor(inner, CoarseConstraint())), get_tags(inner)
        assert ours.input_tags == theirs.input_tags
        assert ours.estimator_type == "regressor"
    ours = get_tags(MovingTargetsClassifier(HistGradientBoostingClassifier(), CoarseConstraint()))
    assert ours.input_tags.allow_nan
    assert ours.classifier_tags.multi_class
    assert ours.target_tags.required


class Foreign:
    """A regressor of a library that knows scikit-learn's conventions and not its classes."""

    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self

    def fit(self, X, y):
        self.inner_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.inner_.predict(X)


def test_an_inner_estimator_need_not_inherit(data, routing):
    X, t, _, attribute, weight = data
    model = MovingTargetsRegressor(Foreign(), CoarseConstraint(), sensitive_columns=0)
    assert get_tags(model).estimator_type == "regressor"
    search = GridSearchCV(model, {"constraint__threshold": [0.1, 0.5]}, cv=2).fit(X, t)
    expected = clone(model).set_params(**search.best_params_).fit(X, t)
    assert_allclose(search.predict(X), expected.predict(X), atol=1e-9)
    with pytest.raises(ValueError, match=r"estimator=Foreign takes no `sample_weight`"):
        MovingTargetsRegressor(Foreign(), CoarseConstraint()).fit(
            X, t, sensitive_features=attribute, sample_weight=weight
        )
