"""Trade-off curves: score and indicator on rows that a model has not seen, for many thresholds."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import FitFailedWarning, UndefinedMetricWarning
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer, r2_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from gedi_sklearn import (
    CoarseConstraint,
    ConstraintList,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    LagrangianDualClassifier,
    LagrangianDualRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.exceptions import RankDeficientKernelError
from gedi_sklearn.metrics import didi, gedi, gedi_inference, make_disparity_scorer
from gedi_sklearn.model_selection import tradeoff_curve
from gedi_sklearn.projection import Projection
from gedi_sklearn.report import fairness_report
from tests.oracles import shuffled

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

CUBIC = PolynomialKernel(3, standardize=True)
PATH = [0.9, 0.1, 0.5]
FAIR = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0)


@pytest.fixture(scope="module")
def data():
    """The attribute in column 0, a proxy of it, and something else."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, 240)
    X = np.c_[x, x + 0.3 * rng.normal(size=240), rng.normal(size=240)]
    t = x + 0.5 * x**2 + X[:, 2] + 0.3 * rng.normal(size=240)
    return X, t, np.where(t > np.median(t), "yes", "no"), rng.uniform(0.5, 2, 240)


def values_of(curve):
    return {name: value for name, value in vars(curve).items() if isinstance(value, np.ndarray)}


def assert_same_curve(first, second, exact=True):
    first, second = values_of(first), values_of(second)
    for name, value in first.items():
        assert_allclose(value, second[name], rtol=0 if exact else 1e-9, atol=0 if exact else 1e-9)


def by_hand(estimator, X, y, thresholds, folds, weight=None, **options):
    """Return the curve's arrays from one fit a threshold and fold, with nothing of the curve's."""
    labels = {} if y.dtype.kind == "f" else {"pos_label": "yes"}
    score = accuracy_score if labels else r2_score
    found = {name: [] for name in ("train_scores", "test_scores", "train_gedi", "test_gedi")}
    names = ("score", "gedi", "null_mean", "null_q95", "low", "high", "upper")
    pooled = {name: [] for name in names}
    for threshold in thresholds:
        values = {name: [] for name in found}
        predictions = np.empty_like(y)
        for train, test in folds:
            keywords = {} if weight is None else {"sample_weight": weight[train]}
            model = clone(estimator).set_params(constraint__threshold=threshold)
            model.fit(X[train], y[train], **keywords)
            predictions[test] = model.predict(X[test])
            for part, rows in (("train", train), ("test", test)):
                w = None if weight is None else weight[rows]
                p = model.predict(X[rows])
                values[f"{part}_scores"].append(score(y[rows], p, sample_weight=w))
                how = {"sensitive_features": X[rows, 0], "sample_weight": w, **options, **labels}
                values[f"{part}_gedi"].append(gedi(y[rows], p, **how))
        for name, value in values.items():
            found[name].append(value)
        # A copy, as the rows of a fold are: sums over a column of X may be taken in another order.
        x = X[:, 0].copy()
        how = {"sensitive_features": x, "sample_weight": weight, **options, **labels}
        inference = gedi_inference(y, predictions, n_resamples=10_000, **how)
        pooled["score"].append(score(y, predictions, sample_weight=weight))
        pooled["gedi"].append(gedi(y, predictions, **how))
        for name in ("null_mean", "null_q95", "upper"):
            pooled[name].append(getattr(inference, name))
        for name, end in zip(("low", "high"), inference.interval, strict=True):
            pooled[name].append(end)
    return {name: np.array(value) for name, value in {**found, **pooled}.items()}


REUSED = {
    "aware": ProjectedRegressor(
        DecisionTreeRegressor(max_depth=4, random_state=0), CoarseConstraint(kernel=CUBIC)
    ),
    "fine": ProjectedRegressor(constraint=FineConstraint(kernel=2)),
    "blind": ProjectedRegressor(
        constraint=CoarseConstraint(),
        sensitive_at_predict=False,
        attribute_estimator=LinearRegression(),
    ),
    "oob": ProjectedRegressor(
        RandomForestRegressor(50, random_state=0), CoarseConstraint(), cv="oob"
    ),
    "absolute": ProjectedRegressor(
        constraint=CoarseConstraint(relative=False), drop_sensitive=True, cv="train"
    ),
    "labels": ProjectedClassifier(
        LogisticRegression(C=3.0), CoarseConstraint(kernel=CUBIC, relative=3)
    ),
    "blind labels": ProjectedClassifier(
        constraint=CoarseConstraint(),
        sensitive_at_predict=False,
        attribute_estimator=LinearRegression(),
    ),
}


@pytest.mark.filterwarnings("ignore:the corrected labels miss the constraint:UserWarning")
@pytest.mark.parametrize("weighted", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", REUSED)
def test_one_fit_a_fold_is_a_refit_for_every_threshold_to_the_last_bit(data, name, weighted):
    X, t, labels, w = data
    estimator = clone(REUSED[name]).set_params(sensitive_columns=0)
    y, weight = labels if "labels" in name else t, w if weighted else None
    curve = tradeoff_curve(estimator, X, y, thresholds=PATH, cv=3, sample_weight=weight)
    assert curve.n_fits == 3
    splitter = shuffled(3, stratified=y is not t)
    options = {name: getattr(estimator.constraint, name) for name in ("kernel", "relative")}
    expected = by_hand(estimator, X, y, PATH, list(splitter.split(X, y)), weight, **options)
    assert_allclose(curve.upper, expected.pop("upper"), rtol=1e-12)
    for key, value in expected.items():
        assert_array_equal(getattr(curve, key), value, err_msg=key)


def test_moving_targets_are_those_of_scikit_learn_s_own_functions(data):
    X, t, _, _ = data
    estimator = MovingTargetsRegressor(
        constraint=CoarseConstraint(kernel=2), sensitive_columns=0, max_iter=2
    )
    curve = tradeoff_curve(estimator, X, t, thresholds=PATH, cv=4)
    assert (curve.n_fits, curve.param_name) == (12, "constraint__threshold")
    scoring = {
        "r2": "r2",
        "gedi": make_disparity_scorer(sensitive_columns=0, kernel=2, relative=True),
    }
    how = {"sensitive_features": X[:, 0], "kernel": 2, "relative": True}
    for position, threshold in enumerate(PATH):
        model = clone(estimator).set_params(constraint__threshold=threshold)
        found = cross_validate(
            model, X, t, scoring=scoring, cv=shuffled(4), return_train_score=True
        )
        assert_array_equal(curve.test_scores[position], found["test_r2"])
        assert_array_equal(curve.train_scores[position], found["train_r2"])
        assert_array_equal(curve.test_gedi[position], -found["test_gedi"])
        assert_array_equal(curve.train_gedi[position], -found["train_gedi"])
        p = cross_val_predict(model, X, t, cv=shuffled(4))
        assert curve.score[position] == r2_score(t, p)
        assert curve.gedi[position] == gedi(t, p, **how)
        assert curve.null_mean[position] == gedi_inference(t, p, **how).null_mean
        low, high = gedi_inference(t, p, **how).interval
        ends = curve.low[position], curve.high[position]
        assert ends == pytest.approx((low, high), rel=1e-12)


def test_labels_are_scored_by_what_the_scorer_asks_for(data):
    X, _, y, w = data
    estimator = MovingTargetsClassifier(
        constraint=CoarseConstraint(0.5), sensitive_columns=0, max_iter=1
    )
    options = {"thresholds": [0.5], "cv": 2, "sample_weight": w}
    curve = tradeoff_curve(estimator, X, y, scoring="roc_auc", **options)
    how = {"cv": shuffled(2, stratified=True), "params": {"sample_weight": w}}
    p = cross_val_predict(estimator, X, y, method="predict_proba", **how)[:, 1]
    assert curve.score == roc_auc_score(y == "yes", p, sample_weight=w)
    labels = cross_val_predict(estimator, X, y, **how)
    how = {"sensitive_features": X[:, 0], "relative": True, "sample_weight": w}
    assert curve.gedi == gedi(y, labels, pos_label="yes", **how)
    other = tradeoff_curve(estimator, X, y, pos_label="no", **options)
    # One against the other class: the same disparity.
    assert_allclose(other.gedi, curve.gedi)


@pytest.mark.torch
# Of 20 epochs, in which multipliers hardly grow.
@pytest.mark.filterwarnings("ignore:.*the predictions for the training rows do not meet")
def test_networks_are_fitted_for_every_threshold(data):
    X, t, y, _ = data
    for estimator, targets in (
        (LagrangianDualRegressor((4,), CoarseConstraint(), max_epochs=20, random_state=0), t),
        (LagrangianDualClassifier((4,), CoarseConstraint(), max_epochs=20, random_state=0), y),
    ):
        estimator.set_params(sensitive_columns=0)
        curve = tradeoff_curve(estimator, X, targets, thresholds=[0.5, 0.1], cv=2)
        assert curve.n_fits == 4
        model = estimator.set_params(constraint__threshold=0.1)
        p = cross_val_predict(model, X, targets, cv=shuffled(2, stratified=targets is y))
        how = {"sensitive_features": X[:, 0], "relative": True}
        label = None if targets is t else "yes"
        assert curve.gedi[1] == gedi(targets, p, pos_label=label, **how)


def test_the_default_path_begins_without_a_bound(data, capfd):
    X, t, _, _ = data
    model = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0)
    curve = tradeoff_curve(model, X, t, cv=3, verbose=1)
    assert "3 out of" in "".join(capfd.readouterr())
    free = tradeoff_curve(model, X, t, cv=3, thresholds=[np.inf])
    assert curve.thresholds[0] == np.inf
    assert curve.score[0] == free.score[0]
    assert (np.diff(curve.thresholds) < 0).all()
    frame = curve.to_frame()
    assert list(frame["threshold"]) == list(curve.thresholds)
    assert_array_equal(frame[["score", "gedi"]], np.c_[curve.score, curve.gedi])
    boxes = tradeoff_curve(
        model.set_params(constraint=FineConstraint(kernel=2)),
        X,
        t,
        thresholds=[[1.0, 0.5]],
        cv=3,
    )
    assert boxes.to_frame()["threshold"][0].tolist() == [1.0, 0.5]


@given(st.lists(st.sampled_from([0.0, 0.2, 0.6, 1.0, np.inf]), min_size=1, max_size=6))
@settings(max_examples=10, deadline=None)
def test_the_order_of_the_thresholds_is_kept(thresholds):
    rng = np.random.default_rng(1)
    X = np.c_[np.tile([-1.0, 0.5, 0.0, 1.0], 10), rng.normal(size=40)]
    t = X.sum(axis=1) + 0.1 * rng.normal(size=40)
    model = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0, cv=2)
    curve = tradeoff_curve(model, X, t, thresholds=thresholds, cv=2)
    assert_array_equal(curve.thresholds, thresholds)
    for position, threshold in enumerate(thresholds):
        alone = tradeoff_curve(model, X, t, thresholds=[threshold], cv=2)
        for name, values in values_of(alone).items():
            assert_array_equal(getattr(curve, name)[position], values[0])


def test_a_tighter_threshold_is_a_smaller_indicator_on_the_rows_of_the_fit(data):
    X, t, _, _ = data
    model = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0, cv="train")
    curve = tradeoff_curve(model, X, t, thresholds=(0.8, 0.4, 0.0), cv=3)
    assert_allclose(curve.train_gedi, np.repeat([[0.8], [0.4], [0.0]], 3, axis=1), atol=1e-9)
    assert (curve.low <= curve.gedi).all()
    assert (curve.gedi <= curve.high).all()
    assert (curve.null_mean < curve.null_q95).all()


@pytest.mark.parametrize(
    "estimator",
    [
        ProjectedRegressor(Ridge(), CoarseConstraint()),
        MovingTargetsRegressor(Ridge(), CoarseConstraint(), max_iter=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_estimator_is_never_changed(data, estimator):
    X, t, _, _ = data
    estimator = make_pipeline(StandardScaler(), estimator)
    before = pickle.dumps(estimator)
    options = {"sensitive_features": X[:, 0], "thresholds": PATH, "cv": 2}
    tradeoff_curve(estimator, X, t, **options)
    assert pickle.dumps(estimator) == before


def test_both_doors_and_every_frame_are_the_same(data):
    X, t, _, _ = data
    model = ProjectedRegressor()
    expected = tradeoff_curve(model, X, t, thresholds=PATH, sensitive_features=X[:, 0])
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(len(X))[::-1])
    named = clone(model).set_params(sensitive_columns="a")
    for found in (
        tradeoff_curve(named, frame, pd.Series(t), thresholds=np.array(PATH)),
        tradeoff_curve(named, pl.DataFrame(X, schema=list("abc")), pl.Series(t), thresholds=PATH),
        tradeoff_curve(named, frame, t, thresholds=PATH, sensitive_features=frame["a"]),
    ):
        assert_same_curve(found, expected, exact=False)


def test_inside_pipelines_and_searches(data):
    X, t, _, w = data
    options = {"thresholds": PATH, "cv": 3, "sensitive_features": X[:, 0], "sample_weight": w}
    pipeline = Pipeline([("scale", StandardScaler()), ("fair", ProjectedRegressor())])
    curve = tradeoff_curve(pipeline, X, t, **options)
    assert (curve.param_name, curve.n_fits) == ("fair__constraint__threshold", 3)
    assert_same_curve(curve, tradeoff_curve(ProjectedRegressor(), X, t, **options), exact=False)

    pipeline.set_params(fair=MovingTargetsRegressor(Ridge(), CoarseConstraint(), max_iter=1))
    search = GridSearchCV(pipeline, {"fair__estimator__alpha": [1e-3, 1e4]}, cv=2)
    curve = tradeoff_curve(search, X, t, **options)
    assert (curve.param_name, curve.n_fits) == ("estimator__fair__constraint__threshold", 9)
    pipeline.set_params(fair__estimator__alpha=1e-3)
    assert_same_curve(curve, tradeoff_curve(pipeline, X, t, **options))


def test_with_metadata_routing(data):
    X, t, _, w = data
    options = {"thresholds": PATH, "cv": 3, "sensitive_features": X[:, 0], "sample_weight": w}
    expected = tradeoff_curve(ProjectedRegressor(None, CoarseConstraint()), X, t, **options)
    with config_context(enable_metadata_routing=True):
        learner = LinearRegression().set_fit_request(sample_weight=True)
        fair = ProjectedRegressor(learner, CoarseConstraint())
        assert_same_curve(tradeoff_curve(fair, X, t, **options), expected)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, fair)
        for n_jobs in (1, 2):
            found = tradeoff_curve(pipeline, X, t, n_jobs=n_jobs, **options)
            assert_same_curve(found, expected, exact=False)


def test_processes_and_constraint_objects(data):
    X, t, _, _ = data
    model = ProjectedRegressor(constraint=FineConstraint([1.0, 1.0], kernel=2), sensitive_columns=0)
    path = np.array([[0.5, np.inf], [0.2, 0.0]])
    curve = tradeoff_curve(model, X, t, thresholds=path, n_jobs=2)
    assert curve.param_name == "constraint__threshold"
    assert_array_equal(curve.thresholds, path)
    plain = ProjectedRegressor(constraint=FineConstraint(kernel=2), sensitive_columns=0)
    assert_same_curve(curve, tradeoff_curve(plain, X, t, thresholds=list(path)))
    moving = MovingTargetsRegressor(
        constraint=CoarseConstraint(kernel=CUBIC, relative=False), sensitive_columns=0, max_iter=1
    )
    curve = tradeoff_curve(moving, X, t, thresholds=[1.0, 0.3], n_jobs=2, cv=2)
    p = cross_val_predict(moving.set_params(constraint__threshold=0.3), X, t, cv=shuffled(2))
    assert curve.gedi[1] == gedi(p, sensitive_features=X[:, 0], kernel=CUBIC)


def test_probabilities_are_measured_where_they_are_bounded(data):
    X, _, y, _ = data
    model = ProjectedClassifier(None, CoarseConstraint(on="probabilities"), sensitive_columns=0)
    curve = tradeoff_curve(model, X, y, thresholds=[0.3], cv=2)
    model.set_params(constraint__threshold=0.3)
    folds = shuffled(2, stratified=True)
    p = cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]
    how = {"sensitive_features": X[:, 0], "relative": True}
    assert curve.gedi == gedi((y == "yes") * 1.0, p, **how)


def test_one_of_several_constraints_is_measured_on_its_column(data):
    X, t, _, _ = data
    both = ConstraintList([("a", DependenceConstraint()), ("b", CoarseConstraint())])
    model = ProjectedRegressor(None, both, sensitive_columns=[0, 1])
    name = "constraint__b__threshold"
    curve = tradeoff_curve(model, X, t, thresholds=[0.3], cv=2, param_name=name)
    p = cross_val_predict(model.set_params(constraint__b__threshold=0.3), X, t, cv=shuffled(2))
    assert curve.gedi == gedi(t, p, sensitive_features=X[:, 1], relative=True)


def test_covariates_of_the_constraint_count_in_the_indicator(data):
    X, t, _, _ = data
    model = MovingTargetsRegressor(
        constraint=CoarseConstraint(), sensitive_columns=0, conditional_on=[2], max_iter=1
    )
    curve = tradeoff_curve(model, X, t, thresholds=[0.3])
    p = cross_val_predict(model.set_params(constraint__threshold=0.3), X, t, cv=shuffled())
    how = {"sensitive_features": X[:, 0], "relative": True}
    assert curve.gedi == gedi(t, p, conditional_on=X[:, 2], **how)
    with pytest.raises(ValueError, match=r"conditional_on=.* inside a pipeline"):
        tradeoff_curve(
            make_pipeline(StandardScaler(), model),
            X,
            t,
            thresholds=[0.3],
            sensitive_features=X[:, 0],
        )


def test_rows_that_no_fold_tests_are_left_out(data):
    X, t, _, _ = data
    model = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0)
    splitter = TimeSeriesSplit(3)
    curve = tradeoff_curve(model, X, t, thresholds=[0.3], cv=splitter)
    tested = np.concatenate([test for _, test in splitter.split(X)])
    assert len(tested) < len(t)
    model.set_params(constraint__threshold=0.3)
    p = np.concatenate(
        [model.fit(X[train], t[train]).predict(X[test]) for train, test in splitter.split(X)]
    )
    assert curve.score == r2_score(t[tested], p)
    several = r"cv: the 5 split\(s\) of ShuffleSplit put some rows .* \d+ in several\. Use"
    with pytest.raises(ValueError, match=several):
        tradeoff_curve(model, X, t, thresholds=[0.3], cv=ShuffleSplit(5, random_state=0))


def test_groups_and_iterables_of_folds(data):
    X, t, _, _ = data
    groups = np.arange(len(t)) % 20
    curve = tradeoff_curve(FAIR, X, t, thresholds=PATH, cv=GroupKFold(3), groups=groups)
    with pytest.raises(ValueError, match=r"cv: GroupKFold splits by groups.* Pass them, groups="):
        tradeoff_curve(FAIR, X, t, thresholds=PATH, cv=GroupKFold(3))
    splits = GroupKFold(3).split(X, t, groups)
    given = {"thresholds": PATH, "cv": splits, "groups": groups}  # which the fits get as well
    assert_same_curve(curve, tradeoff_curve(FAIR, X, t, **given))


def test_intervals_allow_for_groups(data):
    """Rows of one person are not as many independent observations."""
    X, t, _, weight = data
    person = np.arange(len(t)) // 6
    x = np.round(X[::6, :1])[person]  # the same for all rows of a person, as most attributes are
    splits = list(GroupKFold(3).split(x, t, person))
    p, relative = np.empty(len(t)), {"sensitive_features": x, "relative": True}
    weight = np.where(np.arange(len(t)) % 7, weight, 0.0)
    for train, test in splits:
        fit = {"groups": person[train], "sample_weight": weight[train]}
        p[test] = clone(FAIR).fit(x[train], t[train], **fit).predict(x[test])
    given = {"groups": person, "sample_weight": weight}
    curve = tradeoff_curve(FAIR, x, t, thresholds=[0.2], cv=splits, **given)
    inference = gedi_inference(t, p, **relative, **given, n_resamples=10_000)
    assert_allclose((curve.low[0], curve.high[0]), inference.interval, rtol=1e-9)
    assert_allclose(curve.null_q95[0], inference.null_q95, rtol=1e-9)


def test_another_parameter_of_the_constraint_is_no_threshold(data):
    X, t, _, _ = data
    with pytest.raises(ValueError, match="'constraint__kernel' is not the threshold"):
        tradeoff_curve(FAIR, X, t, thresholds=[1, 2], param_name="constraint__kernel")


def test_a_fold_too_small_for_the_kernel_is_nan(data):
    X, t, _, _ = data
    X = np.c_[np.repeat([0.0, 1.0, 2.0, 3.0], 60), X[:, 1:]]
    model = ProjectedRegressor(LinearRegression(), CoarseConstraint(kernel=2), sensitive_columns=0)
    # Two of the four distinct values in each part that is tested.
    folds = [(np.arange(240), np.arange(120)), (np.arange(240), np.arange(120, 240))]
    with pytest.warns(UndefinedMetricWarning):
        curve = tradeoff_curve(model, X, t, thresholds=[0.5], cv=folds)
    assert np.isnan(curve.test_gedi).all()
    assert np.isfinite(curve.train_gedi).all()
    with pytest.raises(RankDeficientKernelError):
        tradeoff_curve(model.set_params(constraint__kernel=4), X, t, thresholds=[0.5])


class Picky(MovingTargetsRegressor):
    """Fails at one threshold."""

    def fit(self, X, y, start=None):
        if self.constraint.threshold == 0.5:
            raise RuntimeError("not at a half")
        assert start is None or len(start) == len(y)
        return super().fit(X, y)


def test_a_failed_fit_costs_its_own_threshold_only(data):
    X, t, _, _ = data
    options = {"cv": 2, "params": {"start": t}}
    picky = Picky(None, CoarseConstraint(), sensitive_columns=0, max_iter=1)
    with pytest.warns(FitFailedWarning, match=r"2 of 6 fits failed, .*\[0.5\].* not at a half"):
        curve = tradeoff_curve(picky, X, t, thresholds=PATH, error_score=-9.0, **options)
    failed = np.array(PATH) == 0.5
    assert_array_equal(curve.test_scores[failed], [[-9.0, -9.0]])
    assert_array_equal(np.isnan(curve.test_gedi).all(axis=1), failed)
    for name in ("score", "gedi", "null_mean", "null_q95", "low", "high", "upper"):
        assert_array_equal(np.isnan(getattr(curve, name)), failed)
    with pytest.raises(ValueError, match=r"All 2 fits of the curve failed.*not at a half"):
        tradeoff_curve(picky, X, t, thresholds=[0.5], **options)
    with pytest.raises(RuntimeError, match="not at a half"):
        tradeoff_curve(picky, X, t, thresholds=PATH, error_score="raise", **options)


def test_a_failed_threshold_leaves_the_others_of_one_fit(data, monkeypatch):
    X, t, _, _ = data
    at = Projection.at

    def picky(self, threshold):
        if threshold == 0.9:
            raise RuntimeError("not there")
        return at(self, threshold)

    expected = tradeoff_curve(FAIR, X, t, thresholds=PATH[1:], cv=2)
    monkeypatch.setattr(Projection, "at", picky)
    with pytest.warns(FitFailedWarning, match=r"2 of 6 fits failed, .*\[0.9\].* not there"):
        curve = tradeoff_curve(FAIR, X, t, thresholds=PATH, cv=2)
    assert (curve.n_fits, expected.n_fits) == (2, 2)
    for name, values in values_of(expected).items():
        assert_array_equal(getattr(curve, name)[1:], values)


# Of one iteration, whose targets the learner follows in part.
@pytest.mark.filterwarnings("ignore:.*the predictions for the training rows do not meet")
@pytest.mark.parametrize("relative", [False, True])
def test_groups_are_measured_by_their_didi(data, relative):
    X, t, y, w = data
    groups = np.where(X[:, 0] > 0.8, "old", np.where(X[:, 0] > 0, "middle", "young"))
    how = {"sensitive_features": groups, "sample_weight": w, "relative": relative}
    for model, targets in (
        (MovingTargetsRegressor(None, DidiConstraint(relative=relative), max_iter=1), t),
        (MovingTargetsClassifier(None, DidiConstraint(relative=relative), max_iter=1), y),
    ):
        curve = tradeoff_curve(
            model,
            X,
            targets,
            thresholds=[0.2],
            cv=2,
            sensitive_features=groups,
            sample_weight=w,
        )
        params = {"sensitive_features": groups, "sample_weight": w}
        name = curve.param_name
        folds = shuffled(2, stratified=targets is y)
        p = cross_val_predict(model.set_params(**{name: 0.2}), X, targets, cv=folds, params=params)
        assert_allclose(curve.gedi, didi(targets, p, **how))
        report = fairness_report(
            targets,
            p,
            sensitive_features=groups,
            sample_weight=w,
            pos_label=None if targets is t else "yes",
        ).table
        row = report["indicator"].index("didi")
        unit = report["y_true"][row] if relative else 1.0
        for name in ("null_mean", "low", "high", "upper"):
            assert_allclose(getattr(curve, name), report[name][row] / unit)
        assert_allclose(curve.null_q95, report["null_q95"][row] / unit, rtol=0.05)


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (FAIR, {"thresholds": [0.5, -1.0]}, r"thresholds\[1\] must be at least 0, got -1.0"),
        (FAIR, {"thresholds": [np.nan]}, r"thresholds\[0\] must be at least 0"),
        (FAIR, {"thresholds": 0.5}, "must be a sequence of thresholds, got 0.5"),
        (FAIR, {"thresholds": np.array(0.5)}, r"must be a sequence of thresholds, got array\(0.5"),
        (FAIR, {"thresholds": []}, "at least one threshold"),
        (
            ProjectedRegressor(constraint=CoarseConstraint(relative=False), sensitive_columns=0),
            {"thresholds": None},
            "threshold is absolute .relative=False., so no default path suits it",
        ),
        (FAIR, {"thresholds": [0.5, [0.1, 0.2]]}, "numbers only, or arrays of one length"),
        (FAIR, {"thresholds": ["a"]}, "threshold"),
        (
            FAIR,
            {"param_name": "alpha"},
            r"param_name='alpha' is no parameter.*\['constraint__threshold'\]",
        ),
        (VarianceThreshold(), {}, "'estimator' parameter"),
        (Ridge(), {}, "Ridge must hold one constraint .* it has none"),
        (
            MovingTargetsRegressor(FAIR, CoarseConstraint()),
            {},
            "several: .'constraint__threshold', 'estimator__constraint__threshold'.",
        ),
        (
            GridSearchCV(FAIR, {"constraint__threshold": [0.1, 0.2]}),
            {},
            "GridSearchCV searches 'constraint__threshold' itself",
        ),
        (make_pipeline(StandardScaler(), FAIR), {}, "names a column of the X inside a pipeline"),
        (ProjectedRegressor(), {}, "exactly one of sensitive_features"),
        (
            GridSearchCV(ProjectedRegressor(), {"cv": [2]}),
            {"sensitive_features": np.arange(240.0)},
            "GridSearchCV.predict does not pass the attribute on",
        ),
        (FAIR, {"params": {"sample_weight": [1.0]}}, "pass sample_weight= instead"),
        (
            MovingTargetsRegressor(
                constraint=[CoarseConstraint(), DidiConstraint()],
                sensitive_columns=[0, 1],
                max_iter=1,
            ),
            {},
            "has none. .* of several constraints give a ConstraintList",
        ),
        (FAIR, {"scoring": "r3"}, "The 'scoring' parameter"),
        (FAIR, {"sample_weight": [1.0, 2.0]}, "inconsistent numbers of samples: sample_weight"),
    ],
)
def test_errors_name_what_to_do(data, estimator, options, message):
    X, t, _, _ = data
    with pytest.raises(ValueError, match=message):
        tradeoff_curve(estimator, X, t, **{"thresholds": PATH, **options})


def test_more_than_two_classes_need_the_one_that_is_measured(data):
    X, t, _, _ = data
    y = np.digitize(t, np.quantile(t, [0.3, 0.7]))
    model = MovingTargetsClassifier(constraint=CoarseConstraint(), sensitive_columns=0, max_iter=1)
    with pytest.raises(ValueError, match=r"3 classes \[0, 1, 2\]; pass the one"):
        tradeoff_curve(model, X, y, thresholds=[0.5])
    curve = tradeoff_curve(model, X, y, thresholds=[0.5], pos_label=2, cv=2)
    folds = shuffled(2, stratified=True)
    p = cross_val_predict(model.set_params(constraint__threshold=0.5), X, y, cv=folds)
    assert curve.gedi == gedi(y, p, pos_label=2, sensitive_features=X[:, 0], relative=True)


class Unfittable(BaseEstimator, RegressorMixin):
    """Raises in `fit`: what is refused before has not come here."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("fitted")


def spread(y_true, y_pred):
    return np.std(y_true - y_pred)


def by_spread(estimator, X, y):
    return -spread(y, estimator.predict(X))


class OfSpread:
    """A scorer that is an object."""

    def __call__(self, estimator, X, y):
        return by_spread(estimator, X, y)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize(
    ("scoring", "shown"),
    [
        ("neg_max_error", "'neg_max_error'"),
        (make_scorer(spread), r"make_scorer\(spread"),
        (by_spread, "by_spread"),
        (lambda estimator, X, y: 0.0, "<lambda>"),
        (partial(by_spread), "functools.partial"),
        (OfSpread(), "OfSpread"),
    ],
)
def test_scoring_without_weights_is_refused_before_any_fit(data, scoring, shown, routing):
    X, t, _, w = data
    with config_context(enable_metadata_routing=routing):
        learner = Unfittable().set_fit_request(sample_weight=True) if routing else Unfittable()
        model = ProjectedRegressor(learner, CoarseConstraint(), sensitive_columns=0)
        with pytest.raises(ValueError, match=f"sample_weight was given, but scoring=.*{shown}"):
            tradeoff_curve(model, X, t, thresholds=[0.5], scoring=scoring, sample_weight=w)
        with pytest.raises(AssertionError, match="fitted"):
            tradeoff_curve(model, X, t, thresholds=[0.5], scoring=scoring, error_score="raise")


@pytest.mark.parametrize(
    "scoring",
    [
        "neg_mean_absolute_error",
        make_scorer(lambda y_true, y_pred, **keywords: len(keywords["sample_weight"])),
        lambda estimator, X, y, **keywords: len(keywords["sample_weight"]),
        lambda estimator, X, y, sample_weight=None: len(sample_weight),
        make_disparity_scorer(sensitive_columns=0),
    ],
)
def test_scoring_with_weights_is_given_them(data, scoring):
    X, t, _, w = data
    curve = tradeoff_curve(FAIR, X, t, thresholds=[0.5], cv=2, scoring=scoring, sample_weight=w)
    assert np.isfinite(curve.score).all()


def test_scoring_must_ask_about_the_rows_it_was_given(data):
    X, t, _, _ = data
    curve = tradeoff_curve(FAIR, X, t, thresholds=[0.5], scoring=make_scorer(r2_score))
    assert_same_curve(curve, tradeoff_curve(FAIR, X, t, thresholds=[0.5]))
    with pytest.raises(ValueError, match="on the X that it was given"):
        tradeoff_curve(
            FAIR,
            X,
            t,
            thresholds=[0.5],
            scoring=lambda estimator, X, y: estimator.predict(X[:1])[0],
            error_score="raise",
        )
