"""Projected estimators under every constraint: groups, and one constraint for each attribute."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_predict

from gedi_sklearn import (
    CoarseConstraint,
    ConstraintList,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
    project_targets,
)
from gedi_sklearn.exceptions import AttributeRangeWarning
from gedi_sklearn.metrics import didi, gedi
from gedi_sklearn.model_selection import tradeoff_curve
from tests.oracles import cross_fitted

pd = pytest.importorskip("pandas")

every_kind = pytest.mark.parametrize("kind", [ProjectedRegressor, ProjectedClassifier])
PAIR = [CoarseConstraint(), DidiConstraint()]
OF_PROBABILITIES = [clone(own).set_params(on="probabilities") for own in PAIR]
STANDARDIZED = PolynomialKernel(2, standardize=True)
LISTS = {
    "splines": [DependenceConstraint(), DependenceConstraint()],
    "raw": [CoarseConstraint(kernel=STANDARDIZED), FineConstraint(kernel=STANDARDIZED)],
    "mixed": [DependenceConstraint(0.3, kernel=2), DidiConstraint()],
}


@pytest.fixture(scope="module")
def data():
    """Two attributes that are related, in columns 0 and 1, and two proxies of them."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, 400)
    group = np.digitize(x + rng.normal(size=400), [-0.7, 0.7]) * 1.0
    proxies = np.c_[x + 0.3 * rng.normal(size=400), group + 0.3 * rng.normal(size=400)]
    X = np.c_[x, group, proxies, rng.normal(size=400)]
    t = x + 0.5 * x**2 + 0.7 * group + X[:, 4] + 0.3 * rng.normal(size=400)
    return X, t, np.where(t > np.median(t), "yes", "no"), rng.uniform(0.5, 2, 400)


def targets_of(kind, data):
    return data[1] if kind is ProjectedRegressor else data[2]


@every_kind
@pytest.mark.parametrize("weighted", [False, True])
def test_didi_by_name_is_the_object_and_bounds_the_groups(data, kind, weighted):
    X, w = data[0], data[3] if weighted else None
    y = targets_of(kind, data)
    by_name = kind(sensitive_columns=1, constraint=DidiConstraint(0.3)).fit(X, y, sample_weight=w)
    constraint = DidiConstraint(0.3)
    given = kind(constraint=constraint, sensitive_columns=1).fit(X, y, sample_weight=w)
    assert_array_equal(by_name.predict(X), given.predict(X))
    options = {"sensitive_features": X[:, 1], "sample_weight": w}
    value = didi(by_name.targets_, **options)
    assert 0.2 * didi(y, **options) < value <= by_name.threshold_ * (1 + 1e-9)
    assert by_name.threshold_ == pytest.approx(0.3 * didi(y, **options))


@every_kind
def test_a_group_without_weight_is_no_group(data, kind):
    X, w, y = data[0], data[3].copy(), targets_of(kind, data)
    rows = X[:, 1] < 2
    halves = np.arange(400) % 2 == 0
    folds = [(np.flatnonzero(~halves), np.flatnonzero(halves))]
    folds += [(np.flatnonzero(halves), np.flatnonzero(~halves))]
    model = kind(sensitive_columns=1, cv=folds, constraint=DidiConstraint())
    model.fit(X, y, sample_weight=w * rows)
    assert model.kernel_.n_columns == 1
    assert_array_equal(model.targets_[~rows], y[~rows])
    with pytest.raises(ValueError, match="groups not seen before"):
        model.predict(X)


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_lists_are_the_projection_on_all_of_them(data, case, weighted):
    X, t, _, w = data
    constraint = LISTS[case]
    weight = w * (np.arange(400) % 5 > 0) if weighted else None
    model = ProjectedRegressor(constraint=constraint, sensitive_columns=[0, 1], cv=4)
    model.fit(X, t, sample_weight=weight)
    p = cross_fitted(LinearRegression(), X, t, 4, weight=weight)
    nearest = project_targets(
        t,
        p,
        sensitive_features=X[:, :2],
        constraint=constraint,
        target_weight=0.0,
        sample_weight=weight,
    )
    assert_allclose(model.targets_, nearest.targets, atol=1e-9)
    assert_allclose(model.correction_, nearest.correction)
    assert [kernel.n_attributes for kernel in model.kernel_] == [1, 1]
    assert len(model.constraint_) == len(model.threshold_) == len(model.reference_) == 2


def indicators(model, values, X, weight=None):
    """Return what both constraints of the list bound, by the functions of the metrics."""
    bounded = []
    for constraint, attribute in zip(model.constraint_, X[:, :2].T, strict=True):
        options = {"sensitive_features": attribute, "sample_weight": weight}
        if isinstance(constraint, DidiConstraint):
            bounded.append(didi(values, **options))
            continue
        options |= {"kernel": constraint.kernel, "norm": constraint.norm}
        bounded.append(gedi(values, **options))
    return np.array(bounded)


@every_kind
@pytest.mark.parametrize("sensitive_at_predict", [True, False])
@pytest.mark.parametrize("case", ["splines", "mixed"])
def test_every_constraint_of_a_list_is_met(data, kind, case, sensitive_at_predict):
    X, y = data[0], targets_of(kind, data)
    constraint = LISTS[case]
    if not sensitive_at_predict and case == "splines":  # a linear m(X) knows no spline
        constraint = [clone(own).set_params(kernel=1) for own in constraint]
    model = kind(
        constraint=constraint,
        sensitive_columns=[0, 1],
        sensitive_at_predict=sensitive_at_predict,
        attribute_estimator=LinearRegression(),
    ).fit(X, y)
    targets = model.targets_ if kind is ProjectedRegressor else (model.targets_ == "yes") * 1
    met = indicators(model, targets, X)
    assert (met <= np.asarray(model.threshold_) * (1 + 1e-8)).all()
    plain = cross_val_predict(model._default_estimator(), X, y, cv=5)
    plain = plain if kind is ProjectedRegressor else (plain == "yes") * 1
    assert (indicators(model, plain, X) > model.threshold_).all()
    assert model.orthonormal_correction_.shape == (sum(k.n_columns for k in model.kernel_),)


def test_the_correction_of_new_rows_is_the_sum_over_the_constraints(data):
    X, t, _, _ = data
    model = ProjectedRegressor(constraint=PAIR, sensitive_columns=[0, 1])
    model.fit(X[:300], t[:300])
    new = X[300:]
    first, second = model.kernel_
    nearest = np.clip(new[:, 0], *first.range_[:, 0])
    shift = first.orthonormal(nearest) @ model.orthonormal_correction_[:1]
    shift += second.orthonormal(new[:, 1]) @ model.orthonormal_correction_[1:]
    assert_allclose(model.predict(new), model.estimator_.predict(new) + shift)
    by_value = ProjectedRegressor(constraint=PAIR)
    by_value.fit(X[:300], t[:300], sensitive_features=X[:300, :2])
    predictions = by_value.predict(new, sensitive_features=new[:, :2])
    assert_array_equal(predictions, model.predict(new))
    with pytest.raises(ValueError, match=r"1 column.* fitted on 2, one for each"):
        by_value.predict(new, sensitive_features=new[:, 0])


@pytest.mark.parametrize("sensitive_at_predict", [True, False])
def test_overlapping_kernels_have_one_correction(data, sensitive_at_predict):
    # Two bounds on one attribute: the tighter one decides.
    X, t, _, _ = data
    pair = X[:, [0, 0]]
    bounds = [CoarseConstraint(q) for q in (0.2, 0.5)]
    options = {
        "sensitive_at_predict": sensitive_at_predict,
        "attribute_estimator": LinearRegression(),
    }
    twice = ProjectedRegressor(constraint=bounds, **options)
    twice.fit(X[:, 2:], t, sensitive_features=pair)
    once = ProjectedRegressor(constraint=bounds[0], **options)
    once.fit(X[:, 2:], t, sensitive_features=pair[:, 0])
    assert_allclose(twice.targets_, once.targets_, atol=1e-9)


@every_kind
def test_a_curve_refits_where_constraints_are_a_list(data, kind):
    X, y = data[0], targets_of(kind, data)
    both = ConstraintList([("a", CoarseConstraint()), ("b", CoarseConstraint())])
    model = kind(constraint=both, sensitive_columns=[0, 1])
    with pytest.raises(ValueError, match=r"several: .*constraint__a__threshold"):
        tradeoff_curve(model, X, y, thresholds=[0.1, 0.9], cv=2)
    name = "constraint__a__threshold"
    curve = tradeoff_curve(model, X, y, thresholds=[0.1, 0.9], cv=2, param_name=name)
    assert curve.gedi[0] < curve.gedi[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": PAIR[:1]}, r"list of 1, but sensitive_features has 2 column"),
        ({"constraint": "coarser"}, r"Write constraint=CoarseConstraint\(0.2\)"),
    ],
)
@every_kind
def test_what_does_not_go_together_is_said(data, kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(sensitive_columns=[0, 1], **options).fit(data[0], targets_of(kind, data))


def test_bounded_probabilities_under_a_list(data):
    X, _, y, _ = data
    model = ProjectedClassifier(
        LogisticRegression(),
        constraint=OF_PROBABILITIES,
        sensitive_columns=[0, 1],
        cv="train",
    ).fit(X, y)
    proba = model.predict_proba(X)[:, 1]
    assert_allclose(proba, model.targets_, atol=1e-9)
    assert gedi(proba, sensitive_features=X[:, 0]) <= model.threshold_[0] * (1 + 1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constraint", [CoarseConstraint(), PAIR], ids=str)
def test_bounded_predictions_are_the_nearest_between_the_bounds(data, weighted, constraint):
    X, t, _, w = data
    y, columns = np.maximum(t, 0.0), 0 if constraint is not PAIR else [0, 1]
    weight = w * (np.arange(400) % 5 > 0) if weighted else None
    options = {"constraint": constraint, "target_bounds": (0, None)}
    model = ProjectedRegressor(sensitive_columns=columns, cv=4, **options)
    model.fit(X, y, sample_weight=weight)
    p = cross_fitted(LinearRegression(), X, y, 4, weight=weight)
    nearest = project_targets(
        y,
        p,
        sensitive_features=X[:, columns],
        target_weight=0.0,
        sample_weight=weight,
        **options,
    )
    assert nearest.satisfied
    assert_allclose(model.targets_, nearest.targets, atol=1e-9)
    at_the_bound = model.targets_ == 0
    assert at_the_bound.any()
    # What is cut afterwards only is off the constraint.
    unbounded = ProjectedRegressor(sensitive_columns=columns, constraint=constraint, cv=4)
    cut = np.maximum(unbounded.fit(X, y, sample_weight=weight).targets_, 0.0)
    assert abs(cut - model.targets_).max() > 1e-3


def test_bounded_predictions_of_new_rows(data):
    X, t, _, _ = data
    y, bounds = np.clip(t, -0.5, 2.0), (-0.5, 2.0)
    model = ProjectedRegressor(
        constraint=CoarseConstraint(), sensitive_columns=0, target_bounds=bounds, cv="train"
    ).fit(X, y)
    assert_allclose(model.predict(X), model.targets_, atol=1e-12)
    assert gedi(model.predict(X), sensitive_features=X[:, 0]) == pytest.approx(model.threshold_)
    shift = model.kernel_.orthonormal(X[:, 0]) @ model.orthonormal_correction_
    expected = np.clip(model.estimator_.predict(X) + shift, *bounds)
    assert_array_equal(np.sort(expected)[[0, -1]], bounds)
    assert_allclose(model.predict(X), expected)
    curve = tradeoff_curve(model, X, y, thresholds=[0.1, 0.9], cv=2)
    assert curve.gedi[0] < curve.gedi[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_bounds": (2, 1)}, "target_bounds must increase"),
        ({}, "y lies outside of target_bounds"),
    ],
)
def test_bounds_that_cannot_be_kept_are_refused(data, options, message):
    X, t, _, _ = data
    with pytest.raises(ValueError, match=message):
        ProjectedRegressor(sensitive_columns=0, **{"target_bounds": (0, None), **options}).fit(X, t)


@every_kind
@pytest.mark.parametrize("sensitive_at_predict", [True, False])
def test_beside_covariates_the_constraint_is_met(data, kind, sensitive_at_predict):
    X, y, w = data[0], targets_of(kind, data), data[3]
    model = kind(
        sensitive_columns=0,
        conditional_on=[1, 4],
        sensitive_at_predict=sensitive_at_predict,
        attribute_estimator=LinearRegression(),
        cv="train",
        constraint=DependenceConstraint(kernel=1),
    ).fit(X, y, sample_weight=w)
    targets = model.targets_ if kind is ProjectedRegressor else (model.targets_ == "yes") * 1
    options = {"sensitive_features": X[:, 0], "norm": "sd", "sample_weight": w}
    value = gedi(targets, conditional_on=X[:, [1, 4]], **options)
    assert 0.8 * model.threshold_ < value <= model.threshold_ * (1 + 1e-9)
    assert gedi(targets, **options) > 2 * value
    if sensitive_at_predict:
        predictions = model.predict(X)
        if kind is ProjectedRegressor:
            assert_allclose(predictions, targets, atol=1e-12)
        else:
            assert_array_equal(predictions, model.targets_)


@pytest.mark.parametrize("constraint", [CoarseConstraint(), DidiConstraint(), PAIR], ids=str)
def test_beside_covariates_targets_are_the_projection(data, constraint):
    X, t, _, w = data
    weight = w * (np.arange(400) % 5 > 0)
    columns = [0, 1] if constraint is PAIR else int(isinstance(constraint, DidiConstraint))
    model = ProjectedRegressor(
        sensitive_columns=columns, constraint=constraint, conditional_on=[3, 4], cv=4
    ).fit(X, t, sample_weight=weight)
    p = cross_fitted(LinearRegression(), X, t, 4, weight=weight)
    nearest = project_targets(
        t,
        p,
        sensitive_features=X[:, columns],
        constraint=constraint,
        conditional_on=X[:, [3, 4]],
        target_weight=0.0,
        sample_weight=weight,
    )
    assert_allclose(model.targets_, nearest.targets, atol=1e-9)
    # Of the rows of the fit, a new one among them is corrected as it was there.
    counted = weight > 0
    plain = model.estimator_.predict(X)
    shift = (nearest.targets - p)[counted]
    assert_allclose((model.predict(X) - plain)[counted], shift, atol=1e-9)


def test_covariates_of_new_rows_are_read_as_in_fit(data):
    X, t, _, _ = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["team"] = np.where(frame["b"] > 0, "north", "south")
    options = {"sensitive_columns": "a", "constraint": DependenceConstraint(kernel=2)}

    def numbers(table):
        return table[list("abcde")]

    class Numeric(LinearRegression):
        def fit(self, X, y):
            return super().fit(numbers(X), y)

        def predict(self, X):
            return super().predict(numbers(X))

    learner = Numeric()
    named = ProjectedRegressor(learner, conditional_on=["team", "e"], **options).fit(frame, t)

    def covariates(table):
        return np.c_[table["team"] == "south", table["e"]] * 1.0

    called = ProjectedRegressor(learner, conditional_on=covariates, **options).fit(frame, t)
    # One level only, and one row only, are what they were in the fit.
    new = frame[frame["team"] == "south"]
    assert_allclose(named.predict(new), called.predict(new), atol=1e-10)
    assert_allclose(named.predict(new[:1]), named.predict(new)[:1], atol=1e-12)
    with pytest.raises(ValueError, match="conditional_on must return covariates"):
        ProjectedRegressor(learner, conditional_on=lambda X: None, **options).fit(frame, t)
    with pytest.raises(ValueError, match=r"conditional_on holds levels not seen before: .'west'"):
        named.predict(new.assign(team="west"))
    alike = ProjectedRegressor(learner, conditional_on="team", **options).fit(new, t[new.index])
    alone = ProjectedRegressor(learner, **options).fit(new, t[new.index])
    assert_allclose(alike.predict(new), alone.predict(new), atol=1e-10)
    far = new.assign(a=10.0)
    with pytest.warns(AttributeRangeWarning):
        beyond = named.predict(far) - named.estimator_.predict(far)
    last = new.assign(a=frame["a"].max())
    at_the_end = named.predict(last) - named.estimator_.predict(last)
    assert_allclose(beyond, at_the_end, atol=1e-10)


def test_bounded_probabilities_of_several_things_at_once(data):
    X, _, y, _ = data
    model = ProjectedClassifier(
        constraint=OF_PROBABILITIES,
        sensitive_columns=[0, 1],
        conditional_on=4,
        cv="train",
    ).fit(X, y)
    assert_allclose(model.predict_proba(X)[:, 1], model.targets_, atol=1e-9)
    value = gedi(model.targets_, sensitive_features=X[:, 0], conditional_on=X[:, 4])
    assert value <= model.threshold_[0] * (1 + 1e-9)
    classes = np.digitize(data[1], np.quantile(data[1], [0.3, 0.6]))
    several = ProjectedClassifier(
        constraint=CoarseConstraint(), sensitive_columns=0, conditional_on=4, cv="train"
    )
    several.fit(X, classes)
    assert_array_equal(several.predict(X), several.targets_)
    for own in range(3):
        value = gedi(
            (several.targets_ == own) * 1.0, sensitive_features=X[:, 0], conditional_on=X[:, 4]
        )
        assert value <= several.threshold_[own] * (1 + 1e-9)


def test_a_curve_measures_beside_the_covariates(data):
    X, t, _, _ = data
    model = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0, conditional_on=1)
    curve = tradeoff_curve(model, X, t, thresholds=[0.1, 0.9], cv=2)
    assert curve.gedi[0] < curve.gedi[1]


@every_kind
def test_a_constant_attribute_frees_no_other(data, kind):
    X = np.c_[data[0], np.ones(400)]
    model = kind(constraint=[CoarseConstraint()] * 2, sensitive_columns=[0, 5])
    with pytest.raises(ValueError, match="column 1 of sensitive_features is constant"):
        model.fit(X, targets_of(kind, data))
    alone = kind(constraint=[CoarseConstraint()], sensitive_columns=5)
    with pytest.warns(UserWarning, match="constant, so there is nothing to constrain"):
        alone.fit(X, targets_of(kind, data))
    assert len(alone.predict(X)) == 400


def test_an_attribute_that_is_constant_in_a_subset_is_said_to_be_so_there(data):
    X, y = data[0], data[2]
    x = np.where(y == "yes", 1.0, X[:, 0])
    constraint = CoarseConstraint(0.1, relative=False, subset="yes")
    model = ProjectedClassifier(constraint=constraint, cv=3)
    with pytest.warns(UserWarning, match="is constant among the rows of subset='yes', so there"):
        model.fit(X, y, sensitive_features=x)
