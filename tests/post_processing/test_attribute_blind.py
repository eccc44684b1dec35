"""Attribute-blind corrections: what the default learner of m(X) takes, and what it refuses."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder, StandardScaler

from gedi_sklearn import (
    CoarseConstraint,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.metrics import gedi

pd = pytest.importorskip("pandas")


class Unfittable(LinearRegression):
    """A learner whose fit must not be reached."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("the learner was fitted")


@pytest.fixture(scope="module")
def frame():
    """An attribute, a number and a text that say much of it, with gaps, and the targets."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, 300)
    number = np.where(rng.random(300) < 0.1, np.nan, x + 0.3 * rng.normal(size=300))
    text = np.where(x + 0.3 * rng.normal(size=300) > 0, "late", "early").astype(object)
    text[:10] = None
    X = pd.DataFrame({"age": x, "number": number, "text": text, "noise": rng.normal(size=300)})
    return X, x + X["noise"].to_numpy()


def learner():
    """The inner learner, with its own ways of taking text and gaps."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((encoder, ["text"]), remainder="passthrough")
    return make_pipeline(columns, HistGradientBoostingRegressor(max_iter=20))


def blind(estimator, **options):
    options = {
        "constraint": CoarseConstraint(),
        "sensitive_at_predict": False,
        "cv": 3,
        **options,
    }
    return ProjectedRegressor(estimator, sensitive_columns="age", **options)


@pytest.mark.parametrize("kind", ["pandas", "category", "polars"])
def test_text_and_gaps_tell_of_the_attribute_by_default(frame, kind):
    X, y = frame
    if kind == "category":
        X = X.astype({"text": "category"})
    if kind == "polars":
        X = pytest.importorskip("polars").from_pandas(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = blind(learner()).fit(X, y)
    value = gedi(model.targets_, sensitive_features=frame[0]["age"])
    assert value == pytest.approx(model.threshold_)
    # Both columns are used, each where the other one is missing.
    said = model.attribute_estimator_.predict(model._blind_X(X))[:, 0]
    gaps = frame[0]["number"].isna().to_numpy(), frame[0]["text"].isna().to_numpy()
    for rows in gaps:
        assert np.corrcoef(said[rows], frame[0]["age"].to_numpy()[rows])[0, 1] > 0.5


def test_a_level_not_seen_before_is_as_one_that_is_missing(frame):
    X, y = frame
    model = blind(learner()).fit(X, y)
    new, gap = X.iloc[20:40].copy(), X.iloc[20:40].copy()
    new["text"], gap["text"] = "never", None
    assert_array_equal(model._blind_X(new), model._blind_X(gap))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda X: X.assign(text=pd.Timestamp("2020-01-01")),
            "column 1 of X holds a Timestamp|datetime64",
        ),
        (
            lambda X: X.assign(text=pd.to_timedelta(range(len(X)), unit="D")),
            "column 1 of X holds a timedelta64",  # of days, seconds or whatever comes
        ),
        (lambda X: csr_array(X[["age", "noise"]].to_numpy()), "X is sparse"),
    ],
    ids=["dates", "durations", "sparse"],
)
def test_what_it_cannot_take_is_said_before_the_first_fit(frame, change, reason):
    X, y = frame
    X = change(X)
    column = 0 if not hasattr(X, "columns") else "age"
    model = ProjectedRegressor(
        Unfittable(), CoarseConstraint(), sensitive_columns=column, sensitive_at_predict=False
    )
    with pytest.raises(ValueError, match=f"attribute_estimator=None takes .*, but {reason}"):
        model.fit(X, y)


def test_nothing_but_the_attribute_says_what_takes_it_away(frame):
    X, y = frame
    model = ProjectedRegressor(
        LinearRegression(), sensitive_columns="age", sensitive_at_predict=False
    )
    with pytest.raises(ValueError, match=r"names all columns of X, .*sensitive_at_predict=False"):
        model.fit(X[["age"]], y)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestRegressor(5, random_state=0),
        HistGradientBoostingRegressor(max_iter=5),
        make_pipeline(StandardScaler(), MultiOutputRegressor(LinearRegression())),
    ],
    ids=["forest", "single output", "several outputs only"],
)
def test_one_column_is_fitted_in_silence(frame, estimator):
    X, y = frame[0][["age", "noise"]].assign(other=frame[0]["age"] ** 2 + frame[0]["age"]), frame[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = blind(LinearRegression(), attribute_estimator=estimator).fit(X, y)
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (
            LinearRegression,
            TypeError,
            r" must be an object, got a class; pass LinearRegression\(\)",
        ),
        (GradientBoostingRegressor(), ValueError, r": y should be a 1d array, .* shape \(300, 2\)"),
    ],
    ids=["class", "single output"],
)
def test_an_estimator_that_cannot_be_fitted_is_named(frame, wrong, error, message):
    X, y = frame
    twofold = CoarseConstraint(kernel=PolynomialKernel(2, standardize=True))
    model = blind(LinearRegression(), constraint=twofold, attribute_estimator=wrong)
    with pytest.raises(error, match=f"attribute_estimator{message}"):
        model.fit(X[["age", "noise"]], y)


def test_what_the_score_knows_of_the_attribute_is_used():
    """Where m(X) leaves out what the scores know, E[m z] of labels is not E[Q z]."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, 1000)
    X = np.c_[x, x + 0.5 * rng.normal(size=1000), x + 0.5 * rng.normal(size=1000)]
    y = (x + rng.logistic(size=1000) > 0).astype(int)
    half = make_pipeline(FunctionTransformer(lambda X: X[:, :1]), LinearRegression())
    model = ProjectedClassifier(
        constraint=CoarseConstraint(0.5),
        sensitive_columns=0,
        drop_sensitive=True,
        sensitive_at_predict=False,
        attribute_estimator=half,
    ).fit(X, y)
    p = model.estimator_.predict_proba(X[:, 1:])[:, 1]
    Q, m = model.kernel_.orthonormal(x), model.attribute_estimator_.predict(X[:, 1:])[:, None]
    z, columns = model.predict(X), model._recalibration(p, m)
    missed, left = abs((Q - m).T @ z) / len(z), abs((Q - columns).T @ z) / len(z)
    assert missed > 0.03
    assert left < missed / 10
