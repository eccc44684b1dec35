"""Moving Targets with LightGBM, XGBoost and fairlearn, and a whole search on Adult."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from gedi_sklearn import CoarseConstraint, MovingTargetsClassifier, MovingTargetsRegressor
from gedi_sklearn.datasets import load_adult
from gedi_sklearn.metrics import gedi, make_disparity_scorer
from gedi_sklearn.model_selection import best_under_constraint

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def data():
    """Return a frame with a categorical column, and targets of both kinds."""
    rng = np.random.default_rng(0)
    n = 200
    age, skill = rng.uniform(20, 60, n), rng.normal(size=n)
    group = pd.Categorical(rng.choice(list("abc"), n))
    t = 0.05 * age + skill + (group == "a")
    frame = pd.DataFrame({"age": age, "group": group, "skill": skill})
    return frame, t, (t > t.mean()).astype(int)


def lightgbm(kind):
    module = pytest.importorskip("lightgbm")
    return getattr(module, f"LGBM{kind}")(n_estimators=10, verbose=-1, n_jobs=1, random_state=0)


def xgboost(kind):
    module = pytest.importorskip("xgboost")
    options = {"n_estimators": 10, "n_jobs": 1, "random_state": 0}
    return getattr(module, f"XGB{kind}")(enable_categorical=True, **options)


@pytest.mark.parametrize("library", [lightgbm, xgboost])
@pytest.mark.parametrize("drop", [False, True])
def test_boosting_libraries_get_categorical_frames(data, library, drop):
    frame, t, y = data
    options = {"sensitive_columns": "age", "drop_sensitive": drop, "max_iter": 2}
    for model, target in (
        (MovingTargetsRegressor(library("Regressor"), **options), t),
        (MovingTargetsClassifier(library("Classifier"), **options), y),
    ):
        model.fit(frame, target, sample_weight=np.linspace(1, 2, len(t)))
        assert model.n_iter_ == 2
        assert list(model.feature_names_in_) == ["age", "group", "skill"]
        assert set(model.estimator_.feature_names_in_) == set(frame.columns) - (
            {"age"} if drop else set()
        )
        plain = clone(model.estimator).fit(frame, target)
        ours, theirs = (
            gedi(target, fitted.predict(frame), sensitive_features=frame["age"], relative=True)
            for fitted in (model, plain)
        )
        assert ours < theirs


@pytest.mark.parametrize("library", [lightgbm, xgboost])
def test_a_wide_threshold_is_the_library_itself(data, library):
    frame, t, y = data
    for model, target in (
        (MovingTargetsRegressor(library("Regressor"), CoarseConstraint()), t),
        (MovingTargetsClassifier(library("Classifier"), CoarseConstraint()), y),
    ):
        model.set_params(sensitive_columns="age", constraint__threshold=np.inf).fit(frame, target)
        plain = clone(model.estimator).fit(frame, target)
        assert_array_equal(model.predict(frame), plain.predict(frame))


def test_boosting_on_polars_frames(data):
    pl = pytest.importorskip("polars")
    frame, t, _ = data
    numbers = frame[["age", "skill"]]
    model = MovingTargetsRegressor(
        lightgbm("Regressor"), CoarseConstraint(), sensitive_columns="age", max_iter=2
    )
    expected = clone(model).fit(numbers, t).predict(numbers)
    # LightGBM reads polars by way of arrow.
    given = pl.from_pandas(numbers)
    assert_allclose(model.fit(given, t).predict(given), expected)


def test_fairlearn_takes_gedi_as_a_metric(data):
    metrics = pytest.importorskip("fairlearn.metrics")
    frame, t, _ = data
    model = MovingTargetsRegressor(constraint=CoarseConstraint(), sensitive_columns=0, max_iter=2)
    predictions = model.fit(frame[["age", "skill"]], t).predict(frame[["age", "skill"]])
    by_group = metrics.MetricFrame(
        metrics=gedi,
        y_true=t,
        y_pred=predictions,
        sensitive_features=frame["group"],
        sample_params={"sensitive_features": frame["age"]},
    )
    assert_allclose(by_group.overall, gedi(predictions, sensitive_features=frame["age"]))
    chosen = (frame["group"] == "b").to_numpy()
    assert_allclose(
        by_group.by_group["b"],
        gedi(predictions[chosen], sensitive_features=frame["age"][chosen]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
def test_search_over_a_pipeline_on_adult(routing):
    X, y = load_adult(return_X_y=True, as_frame=True)
    rows = np.random.default_rng(0).choice(len(y), 3000, replace=False)
    X, y = X.iloc[rows], y.iloc[rows]

    encoder = make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            make_column_selector(dtype_exclude="number"),
        ),
        remainder="passthrough",
    )
    pipe = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=10, random_state=0))
    model = MovingTargetsClassifier(pipe, CoarseConstraint(), max_iter=2)
    grid = {
        "constraint__threshold": [0.2, 1.0],
        "estimator__histgradientboostingclassifier__max_leaf_nodes": [7, 15],
    }
    with config_context(enable_metadata_routing=routing):
        if routing:
            scorer = make_disparity_scorer(relative=True)
            scorer = scorer.set_score_request(sensitive_features=True)
            params = {"sensitive_features": X["age"]}
        else:
            scorer = make_disparity_scorer(sensitive_columns="age", relative=True)
            model.set_params(sensitive_columns="age")
            params = {}
        search = GridSearchCV(
            model,
            grid,
            scoring={"accuracy": "accuracy", "neg_gedi": scorer},
            refit=best_under_constraint("mean_test_accuracy", at_most=0.3),
            cv=2,
            n_jobs=2,
            error_score="raise",
        ).fit(X, y, **params)
        assert search.best_params_["constraint__threshold"] == 0.2
        assert search.best_estimator_.score(X, y) > 0.78
