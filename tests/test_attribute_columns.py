"""Several attributes in frames: columns of other names are not matched by position in silence."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.model_selection import cross_validate

from gedi_sklearn import (
    CoarseConstraint,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.projection import Projection

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    age, sex = rng.uniform(2, 6, 120), rng.integers(0, 2, 120).astype(float)
    X = np.c_[age, sex, rng.normal(size=120)]
    t = 0.2 * age + sex + X[:, 2]
    return X, t, t > np.median(t), {"age": age, "sex": sex}


def held_out(model, data, first, then):
    """Fit with validation data, whose attribute is the last argument."""
    X, t, y, _ = data
    target = y if isinstance(model, MovingTargetsClassifier) else t
    rows = {"X_val": X, "y_val": target, "sensitive_features_val": then}
    return model.fit(X, target, sensitive_features=first, **rows).history_["validation_gedi"]


def predicted(model, data, first, then, method="predict"):
    X, t, y, _ = data
    model.fit(X, y if isinstance(model, ProjectedClassifier) else t, sensitive_features=first)
    return getattr(model, method)(X, sensitive_features=then)


def measured(_, data, first, then):
    t = data[1]
    return Projection(t, sensitive_features=first, constraint=CoarseConstraint()).gedi_on(then)(t)


def transformed(_, data, first, then):
    t = data[1]
    return Projection(t, sensitive_features=first, constraint=CoarseConstraint()).kernel_.transform(
        then
    )


MEETINGS = pytest.mark.parametrize(
    ("use", "model"),
    [
        (predicted, ProjectedRegressor(constraint=CoarseConstraint(), cv=2)),
        (predicted, ProjectedClassifier(constraint=CoarseConstraint(), cv=2)),
        (held_out, MovingTargetsRegressor(constraint=CoarseConstraint(), max_iter=1)),
        (held_out, MovingTargetsClassifier(constraint=CoarseConstraint(), max_iter=1)),
        (measured, None),
        (transformed, None),
    ],
)


@MEETINGS
@FRAMES
def test_columns_of_other_names_or_order_are_refused(data, use, model, frame):
    attributes = data[-1]
    first = frame(attributes)
    turned = frame(dict(reversed(attributes.items())))
    other = frame({"age": attributes["age"], "gender": attributes["sex"]})
    with pytest.raises(ValueError, match=r"sensitive_features .* the order differs.*'sex', 'age'"):
        use(model, data, first, turned)
    with pytest.raises(ValueError, match=r"unseen .*\['gender'\].* now missing: \['sex'\]"):
        use(model, data, first, other)
    with pytest.raises(ValueError, match="the column names of sensitive_features"):
        use(model, data, first[["sex"]], other)
    array = first.to_numpy()
    assert_allclose(use(model, data, first, first), use(model, data, array, array))


@pytest.mark.parametrize("use", [predicted, held_out, measured])
@FRAMES
def test_names_on_one_side_only_are_said(data, use, frame):
    first = frame(data[-1])
    model = {
        predicted: ProjectedRegressor(constraint=CoarseConstraint(), cv=2),
        held_out: MovingTargetsRegressor(constraint=CoarseConstraint(), max_iter=1),
    }
    with pytest.warns(UserWarning, match="has no column names, but was fitted with them"):
        use(model.get(use), data, first, first.to_numpy())
    with pytest.warns(UserWarning, match="has column names, but was fitted without them"):
        use(model.get(use), data, first.to_numpy(), first)


@pytest.mark.parametrize("use", [predicted, held_out, measured])
def test_one_attribute_may_have_any_name_or_none(data, use):
    model = {
        predicted: ProjectedRegressor(constraint=CoarseConstraint(), cv=2),
        held_out: MovingTargetsRegressor(constraint=CoarseConstraint(), max_iter=1),
    }
    age = data[-1]["age"]
    forms = [
        *(pd.Series(age, name="age"), pd.Series(age), pd.DataFrame({"age": age}), age),
        *(pl.Series("years", age), pl.DataFrame({"age": age}), pd.DataFrame(age)),
    ]
    for first in forms:
        for then in forms:
            use(model.get(use), data, first, then)


def test_columns_of_x_are_compared_as_columns_of_x(data):
    X, t, _, _ = data
    frame = pd.DataFrame(X, columns=["age", "sex", "skill"])
    model = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=[0, 1], cv=2).fit(
        frame, t
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(X)
    assert [str(warning.message)[:15] for warning in caught] == ["X does not have"]


def test_frames_go_through_cross_validation(data):
    X, t, _, attributes = data
    with config_context(enable_metadata_routing=True):
        result = cross_validate(
            ProjectedRegressor(constraint=CoarseConstraint(), cv=2),
            *(X, t),
            params={"sensitive_features": pd.DataFrame(attributes)},
            cv=2,
        )
    assert np.isfinite(result["test_score"]).all()


@pytest.mark.parametrize("kind", [MovingTargetsRegressor, ProjectedRegressor])
def test_a_table_of_pyarrow_has_names(data, kind):
    X, t, _, _ = data
    table = pytest.importorskip("pyarrow").table(dict(zip("abc", X.T, strict=True)))
    named, placed = (
        kind(constraint=CoarseConstraint(), sensitive_columns=column).fit(rows, t).predict(rows)
        for column, rows in (("a", table), (0, X))
    )
    assert_allclose(named, placed)
