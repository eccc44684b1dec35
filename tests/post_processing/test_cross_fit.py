"""Predictions that the projection works on: in-sample, out-of-bag, cross-fitted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedGroupKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeRegressor

from gedi_sklearn import (
    CoarseConstraint,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.metrics import gedi
from tests.oracles import cross_fitted, shuffled

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, 120)
    X = np.c_[x, rng.normal(size=(120, 2))]
    t = x + X[:, 1] + 0.5 * rng.normal(size=120)
    return X, t, np.where(t > 0, "yes", "no"), np.where(t > 1, 2, t > -0.5), rng.uniform(0, 2, 120)


def first_predictions_gedi(model):
    """Return the indicator of what the projection saw of the first fit."""
    return model.history_["predictions_gedi"][0]


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0)], ids=["int", "splitter"])
def test_cross_fitted_predictions_are_those_of_cross_val_predict(data, cv):
    X, t, _, _, _ = data
    model = MovingTargetsRegressor(
        DecisionTreeRegressor(random_state=0), CoarseConstraint(), cv=cv, max_iter=2
    )
    model.fit(X, t, sensitive_features=X[:, 0])
    folds = shuffled(cv) if cv == 3 else cv
    expected = cross_val_predict(DecisionTreeRegressor(random_state=0), X, t, cv=folds)
    assert first_predictions_gedi(model) == pytest.approx(
        gedi(expected, sensitive_features=X[:, 0])
    )
    # What is kept is the fit on all rows.
    assert_allclose(model.predict(X), model.targets_)


@pytest.mark.parametrize("several", [False, True])
def test_cross_fitted_probabilities_are_those_of_cross_val_predict(data, several):
    X, _, y, classes, _ = data
    labels = classes if several else y
    model = MovingTargetsClassifier(constraint=CoarseConstraint(), cv=3, max_iter=2).fit(
        X, labels, sensitive_features=X[:, 0]
    )
    proba = cross_fitted(
        LogisticRegression(), X, labels, 3, method="predict_proba", stratified=True
    )
    predicted = model.classes_[proba.argmax(axis=1)]
    values = [
        gedi(predicted, sensitive_features=X[:, 0], pos_label=label)
        for label in model.classes_.tolist()
    ]
    assert first_predictions_gedi(model) == pytest.approx(max(values))


SLOPE = CoarseConstraint()


def test_out_of_bag_predictions_are_the_forests_own(data):
    X, t, y, _, _ = data
    for model, forest, target in (
        (MovingTargetsRegressor(None, SLOPE), RandomForestRegressor(60, random_state=0), t),
        (MovingTargetsClassifier(None, SLOPE), RandomForestClassifier(60, random_state=0), y),
    ):
        model.set_params(estimator=forest, cv="oob", max_iter=2)
        model.fit(X, target, sensitive_features=X[:, 0])
        alone = forest.set_params(oob_score=True).fit(X, target)
        is_real = target is t
        seen = alone.oob_prediction_ if is_real else alone.oob_decision_function_.argmax(axis=1)
        assert first_predictions_gedi(model) == pytest.approx(
            gedi(seen, sensitive_features=X[:, 0])
        )
        assert (model.history_["violation"][1:] == 0).all()


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("ensemble", [RandomForestRegressor, BaggingRegressor])
def test_rows_never_left_out_are_counted(data, ensemble):
    X, t, _, _, _ = data
    model = MovingTargetsRegressor(
        ensemble(n_estimators=2, random_state=0), CoarseConstraint(), cv="oob", max_iter=2
    )
    with pytest.warns(UserWarning, match="of 120 rows are in the sample of every member") as said:
        model.fit(X, t, sensitive_features=X[:, 0])
    # And not in every iteration, as scikit-learn does.
    assert sum("every member" in str(one.message) for one in said) == 1
    assert np.isfinite(model.history_["loss_predictions"]).all()


def test_the_number_of_processes_changes_nothing(data):
    X, t, _, _, w = data
    forest = RandomForestRegressor(5, random_state=0)
    fits = [
        MovingTargetsRegressor(
            forest, CoarseConstraint(), cv=3, n_jobs=n_jobs, max_iter=2, random_state=1
        ).fit(X, t, sensitive_features=X[:, 0], sample_weight=w)
        for n_jobs in (1, 2)
    ]
    assert_array_equal(fits[0].targets_, fits[1].targets_)
    assert_array_equal(fits[0].predict(X), fits[1].predict(X))


def test_frames_and_keywords_go_with_their_rows(data):
    X, t, _, _, _ = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for container in (X, frame):
        model = MovingTargetsRegressor(
            GradientBoostingRegressor(n_estimators=5, random_state=0), CoarseConstraint()
        )
        model.set_params(cv=3, max_iter=2, sensitive_columns=0)
        fitted = model.fit(container, t, sample_weight=np.arange(120.0) + 1)
        assert fitted.n_iter_ == 2


@pytest.mark.filterwarnings("ignore:.*for no training row:UserWarning")
def test_a_class_that_a_fold_lacks_has_probability_zero(data):
    X, _, _, _, _ = data
    y = np.array(["a"] * 60 + ["b"] * 59 + ["c"])
    model = MovingTargetsClassifier(
        RandomForestClassifier(5, random_state=0),
        CoarseConstraint(0.9, relative=False),
        cv=KFold(4, shuffle=True, random_state=0),
        max_iter=1,
        sensitive_columns=0,
    )
    assert_array_equal(model.fit(X, y).classes_, ["a", "b", "c"])


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("cls", [ProjectedRegressor, MovingTargetsRegressor])
@pytest.mark.parametrize(
    ("convert", "same"),
    [
        (sparse.coo_matrix, sparse.csr_matrix),
        (sparse.bsr_array, sparse.csr_array),
        (np.ndarray.tolist, np.asarray),
    ],
)
def test_out_of_bag_rows_may_be_in_any_format(data, cls, convert, same):
    X, t, _, _, _ = data

    def fit(rows):
        # So few members that some rows are in every sample and have to be taken out of X.
        model = cls(RandomForestRegressor(4, random_state=0), cv="oob")
        with pytest.warns(UserWarning, match="rows are in the sample of every member"):
            return model.fit(rows, t, sensitive_features=X[:, 0])

    expected = fit(same(X)).estimator_.predict(X)
    assert_allclose(fit(convert(X)).estimator_.predict(X), expected, rtol=1e-12)


@pytest.mark.parametrize("convert", [sparse.bsr_array, sparse.coo_matrix])
def test_columns_are_dropped_of_rows_in_any_format(data, convert):
    X, t, _, _, _ = data
    model = ProjectedRegressor(sensitive_columns=0, drop_sensitive=True)
    expected = model.fit(sparse.csr_array(X), t).predict(sparse.csr_array(X))
    assert_allclose(model.fit(convert(X), t).predict(convert(X)), expected)


@pytest.mark.parametrize(
    ("cls", "forest"),
    [
        (ProjectedRegressor, RandomForestRegressor),
        (MovingTargetsRegressor, RandomForestRegressor),
        (ProjectedClassifier, RandomForestClassifier),
        pytest.param(MovingTargetsClassifier, RandomForestClassifier, marks=pytest.mark.slow),
    ],
)
def test_a_pipeline_that_ends_in_a_forest_has_out_of_bag_predictions(data, cls, forest):
    X, t, label, _, _ = data
    y = t if forest is RandomForestRegressor else label
    alone = forest(25, random_state=0)
    pipeline = make_pipeline(FunctionTransformer(), alone)
    fits = [
        cls(estimator, cv="oob").fit(X, y, sensitive_features=X[:, 0])
        for estimator in (alone, pipeline)
    ]
    expected, got = (model.estimator_.predict(X) for model in fits)
    assert_array_equal(got, expected)
    assert not alone.oob_score


@pytest.mark.parametrize(
    ("estimator", "cv", "message"),
    [
        (LinearRegression(), "oob", "needs an inner estimator with out-of-bag predictions"),
        (
            LinearRegression(),
            TimeSeriesSplit(3),
            r"cv: the 3 split\(s\) of TimeSeriesSplit do not.*: of 120 rows, 30 in no test part\.",
        ),
        (
            LinearRegression(),
            ShuffleSplit(3, random_state=0),
            r"of 120 rows, \d+ in no test part and \d+ in several\. Use an integer, KFold",
        ),
        (LinearRegression(), KFold(121), "n_splits=121"),
    ],
    ids=str,
)
def test_views_that_cannot_be(data, estimator, cv, message):
    X, t, _, _, _ = data
    with pytest.raises(ValueError, match=message):
        MovingTargetsRegressor(estimator, CoarseConstraint(), cv=cv).fit(
            X, t, sensitive_features=X[:, 0]
        )


def positions(*tests):
    """Return splits with the given test parts of 120 rows."""
    return [(np.setdiff1d(np.arange(120), test), np.asarray(test)) for test in tests]


FIRST, SECOND = range(60), range(60, 120)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (positions(FIRST), r"the 1 split\(s\) given do not .* of 120 rows, 60 in no test part\."),
        (positions(FIRST, range(50, 120)), "of 120 rows, 10 in several"),
        (positions(FIRST, [60, 60, 61]), "58 in no test part and 1 in several"),
        (positions(FIRST, range(60, 121)), "positions from 0 to 119, one for each row; got 60 to"),
        (positions(FIRST, range(-60, 0)), "got -60 to -1"),
        (iter(positions(FIRST, np.arange(60, 120) * 1.0)), "integers; got float64"),
        (
            [(np.arange(120) < 60, np.arange(120) >= 60)],
            r"got bool. Turn a mask into positions with np\.flat",
        ),
        ([], "cv holds no splits"),
        ([1, 2], r"cv must be .* pairs \(train, test\) of positions of rows; got a list of"),
        ([(FIRST, SECOND, FIRST)], "got a list of something else"),
    ],
)
def test_splits_that_do_not_partition_the_rows(data, cv, message):
    X, t, _, _, _ = data
    with pytest.raises(ValueError, match=message) as raised:
        ProjectedRegressor(constraint=CoarseConstraint(), cv=cv, sensitive_columns=0).fit(X, t)
    assert len(str(raised.value)) < 350  # and no arrays


def test_splits_may_be_lists_and_of_any_order(data):
    X, t, _, _, _ = data
    lists = [(list(SECOND), list(FIRST)), (list(FIRST), list(SECOND))]
    arrays = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    fits = [
        ProjectedRegressor(constraint=CoarseConstraint(), cv=cv, sensitive_columns=0).fit(X, t)
        for cv in (lists, arrays)
    ]
    assert_array_equal(fits[0].targets_, fits[1].targets_)


def test_a_fold_of_one_class_is_named(data):
    X, _, _, _, _ = data
    y = np.array(["no"] * 60 + ["yes"] * 60)
    with pytest.raises(ValueError, match="without fold 0 the targets are all 'yes'"):
        MovingTargetsClassifier(
            constraint=CoarseConstraint(), cv=positions(FIRST, SECOND), sensitive_columns=0
        ).fit(X, y)


@pytest.mark.parametrize("kind", [MovingTargetsRegressor, ProjectedRegressor])
def test_groups_are_routed_to_the_splitter(data, kind):
    X, t, _, _, _ = data
    groups = np.arange(120) // 10
    folds = list(GroupKFold(3).split(X, t, groups))
    with config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match="cv: GroupKFold splits by groups"):
            kind(cv=GroupKFold(3), sensitive_columns=0).fit(X, t)
        splitter = GroupKFold(3)
        model = kind(cv=splitter, sensitive_columns=0).fit(X, t, groups=groups)
    expected = kind(cv=folds, sensitive_columns=0).fit(X, t)
    assert_array_equal(model.targets_, expected.targets_)


@pytest.mark.parametrize("splitter", [GroupKFold(3), StratifiedGroupKFold(3), LeaveOneGroupOut()])
def test_a_splitter_without_its_groups_asks_for_them(data, splitter):
    X, _, y, _, _ = data
    model = ProjectedClassifier(constraint=CoarseConstraint(), cv=splitter, sensitive_columns=0)
    groups = np.arange(120) % 6
    name = type(splitter).__name__
    with pytest.raises(ValueError, match=f"cv: {name} .*groups=.*enable_metadata_routing=True"):
        model.fit(X, y)
    # What the message says works.
    own = model.fit(X, y, groups=groups).targets_
    model.set_params(cv=list(splitter.split(X, y, groups))).fit(X, y)
    assert_array_equal(own, model.targets_)


def test_a_splitter_may_find_its_groups_itself(data):
    X, t, _, _, _ = data

    class ByProxy(GroupKFold):
        def split(self, X, y=None, groups=None):
            return super().split(X, y, X[:, 1] > 0)

    assert (
        len(
            ProjectedRegressor(constraint=CoarseConstraint(), cv=ByProxy(2), sensitive_columns=0)
            .fit(X, t)
            .targets_
        )
        == 120
    )
