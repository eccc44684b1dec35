"""Projected estimators: one fit, and the projection as a function of x."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from gedi_sklearn import (
    CoarseConstraint,
    DidiConstraint,
    DualTargetsClassifier,
    FineConstraint,
    MovingTargetsClassifier,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
    Solver,
    project_targets,
)
from gedi_sklearn.exceptions import InfeasibleProjectionError
from gedi_sklearn.metrics import gedi, gedi_coefficients, make_disparity_scorer
from gedi_sklearn.model_selection import tradeoff_curve
from tests.oracles import cross_fitted

pd = pytest.importorskip("pandas")

CUBIC = PolynomialKernel(3, standardize=True)


@pytest.fixture(scope="module")
def data():
    """The attribute in column 0, two proxies of it, and something else."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, 400)
    proxies = np.c_[x + 0.3 * rng.normal(size=400), x**2 + 0.3 * rng.normal(size=400)]
    X = np.c_[x, proxies, rng.normal(size=400)]
    t = x + 0.5 * x**2 + X[:, 3] + 0.3 * rng.normal(size=400)
    return X, t, np.where(t > np.median(t), "yes", "no"), rng.uniform(0.5, 2, 400)


def test_targets_are_the_projection_of_cross_fitted_predictions(data):
    X, t, _, w = data
    for weight in (None, w):
        model = ProjectedRegressor(
            DecisionTreeRegressor(random_state=0), CoarseConstraint(kernel=CUBIC), cv=4
        )
        model.fit(X, t, sensitive_features=X[:, 0], sample_weight=weight)
        p = cross_fitted(DecisionTreeRegressor(random_state=0), X, t, 4, weight=weight)
        result = project_targets(
            t,
            p,
            sensitive_features=X[:, 0],
            target_weight=0.0,
            sample_weight=weight,
            constraint=CoarseConstraint(kernel=CUBIC),
        )
        assert_allclose(model.targets_, result.targets, atol=1e-10)
        assert_allclose(model.correction_, result.correction)


@pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint])
def test_predictions_for_the_rows_of_the_fit_satisfy_the_constraint(data, constraint):
    X, t, _, _ = data
    model = ProjectedRegressor(constraint=constraint(kernel=CUBIC), cv="train", sensitive_columns=0)
    predictions = model.fit(X, t).predict(X)
    assert_allclose(predictions, model.targets_)
    value = gedi(predictions, sensitive_features=X[:, 0], kernel=CUBIC)
    assert value == pytest.approx(model.threshold_)
    # What is added is a function of the attribute alone.
    shift = predictions - LinearRegression().fit(X, t).predict(X)
    assert_allclose(shift, model.kernel_.transform(X[:, 0]) @ model.correction_, atol=1e-10)


@pytest.mark.parametrize("sensitive_at_predict", [True, False])
def test_an_unconstrained_model_is_the_plain_learner(data, sensitive_at_predict):
    X, t, y, _ = data
    options = {
        "sensitive_columns": 0,
        "sensitive_at_predict": sensitive_at_predict,
        "attribute_estimator": LinearRegression(),
        "constraint": CoarseConstraint(np.inf),
    }
    regressor = ProjectedRegressor(**options).fit(X, t)
    assert_array_equal(regressor.predict(X), LinearRegression().fit(X, t).predict(X))
    classifier = ProjectedClassifier(**options).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    assert_array_equal(classifier.predict(X), plain.predict(X))
    assert_allclose(classifier.predict_proba(X), plain.predict_proba(X))


def test_a_blind_correction_needs_no_attribute(data):
    X, t, _, _ = data
    model = ProjectedRegressor(
        constraint=CoarseConstraint(),
        sensitive_columns=0,
        sensitive_at_predict=False,
        drop_sensitive=True,
    )
    model.fit(X, t)
    indicator = gedi(model.targets_, sensitive_features=X[:, 0])
    assert indicator == pytest.approx(model.threshold_)
    moved = X.copy()
    moved[:, 0] = 0.0
    assert_array_equal(model.predict(X), model.predict(moved))
    with pytest.raises(ValueError, match="the correction of sensitive_at_predict=False"):
        model.predict(X, sensitive_features=X[:, 0])


def test_a_blind_correction_finds_its_columns_in_an_array_by_position(data):
    X, t, _, _ = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = ProjectedRegressor(
        constraint=CoarseConstraint(),
        sensitive_columns="a",
        sensitive_at_predict=False,
        drop_sensitive=True,
    ).fit(frame, t)
    with pytest.warns(UserWarning, match="feature names"):
        predictions = model.predict(X)
    assert_array_equal(predictions, model.predict(frame))


@pytest.mark.slow
def test_a_blind_correction_is_found_on_the_folds_of_the_learner(data):
    X, t, _, _ = data
    options = {"sensitive_columns": 0, "sensitive_at_predict": False}
    folds = list(KFold(3).split(X))
    expected = ProjectedRegressor(cv=folds, **options).fit(X, t)
    from_iterator = ProjectedRegressor(cv=iter(folds), **options).fit(X, t)
    assert_array_equal(from_iterator.correction_, expected.correction_)

    class Counted(KFold):
        n_calls = 0

        def split(self, *args, **kwargs):
            Counted.n_calls += 1
            return super().split(*args, **kwargs)

    ProjectedRegressor(cv=Counted(3, shuffle=True), **options).fit(X, t)
    assert Counted.n_calls == 1  # it would shuffle anew


def test_a_blind_correction_of_what_nothing_tells_is_refused(data):
    X, t, _, _ = data
    model = ProjectedRegressor(
        constraint=CoarseConstraint(),
        sensitive_columns=0,
        sensitive_at_predict=False,
        attribute_estimator=DummyRegressor(),
    )
    with pytest.raises(InfeasibleProjectionError, match="predict the attribute too poorly"):
        model.fit(X[:, [0, 3]], t)


@pytest.mark.parametrize("kind", [ProjectedRegressor, ProjectedClassifier])
def test_means_of_folds_say_nothing_of_the_attribute(data, kind):
    # They correlate with it, negatively: the mean of the others is low where a fold's is high.
    X, t, y, _ = data
    model = kind(
        sensitive_columns=0, sensitive_at_predict=False, attribute_estimator=DummyRegressor()
    )
    with pytest.raises(InfeasibleProjectionError, match="predict the attribute too poorly"):
        model.fit(X, t if kind is ProjectedRegressor else y)


@pytest.mark.parametrize("kind", [ProjectedRegressor, ProjectedClassifier])
def test_a_row_of_weight_zero_has_no_say_in_a_blind_correction(data, kind):
    X, t, y, w = data
    target = t if kind is ProjectedRegressor else y
    counted = np.arange(400) % 4 > 0
    folds = [np.arange(400) < 200, np.arange(400) >= 200]
    options = {
        "sensitive_columns": 0,
        "sensitive_at_predict": False,
        "attribute_estimator": LinearRegression(),
    }

    def fit(rows, weight):
        cv = [(np.flatnonzero(~fold[rows]), np.flatnonzero(fold[rows])) for fold in folds]
        return kind(cv=cv, **options).fit(X[rows], target[rows], sample_weight=weight)

    everything = np.full(400, True)
    with_zeros, without = fit(everything, w * counted), fit(counted, w[counted])
    assert_allclose(with_zeros.correction_, without.correction_, rtol=1e-6)
    assert_allclose(
        with_zeros.attribute_estimator_.coef_, without.attribute_estimator_.coef_, rtol=1e-6
    )


def test_weights_that_the_attribute_estimator_cannot_take_are_refused(data):
    X, t, _, w = data
    model = ProjectedRegressor(
        constraint=CoarseConstraint(),
        sensitive_columns=0,
        sensitive_at_predict=False,
        attribute_estimator=KNeighborsRegressor(),
    )
    with pytest.raises(ValueError, match="KNeighborsRegressor"):
        model.fit(X, t, sample_weight=w)


@pytest.mark.parametrize("sensitive_at_predict", [True, False])
def test_corrected_labels_satisfy_the_constraint(data, sensitive_at_predict):
    X, _, y, w = data
    for learner in (LogisticRegression(), GradientBoostingClassifier(n_estimators=10)):
        model = ProjectedClassifier(
            learner,
            CoarseConstraint(0.3),
            sensitive_columns=0,
            sensitive_at_predict=sensitive_at_predict,
            attribute_estimator=LinearRegression(),
        ).fit(X, y, sample_weight=w)
        value = gedi(model.targets_, sensitive_features=X[:, 0], sample_weight=w, pos_label="yes")
        assert value <= model.threshold_ * (1 + 1e-9)
        proba = model.predict_proba(X)
        assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))


def test_blind_labels_use_the_bound_however_poor_the_other_columns_are(data):
    X, _, y, _ = data
    for penalty in (1.0, 3e3):
        model = ProjectedClassifier(
            constraint=CoarseConstraint(0.3, kernel=PolynomialKernel(2, standardize=True)),
            sensitive_columns=0,
            drop_sensitive=True,
            sensitive_at_predict=False,
            attribute_estimator=Ridge(penalty),
        ).fit(X, y)
        value = gedi(
            model.targets_,
            sensitive_features=X[:, 0],
            kernel=model.constraint.kernel,
            pos_label="yes",
        )
        # The relaxation alone takes E[m z] for E[Q z], and ends below or beyond.
        assert 0.95 < value / model.threshold_ <= 1 + 1e-9


def test_labels_are_nearly_the_nearest(data):
    X, _, y, _ = data
    model = ProjectedClassifier(constraint=CoarseConstraint(0.3), sensitive_columns=0).fit(X, y)
    how = {"method": "predict_proba", "stratified": True}
    p = cross_fitted(LogisticRegression(), X, y, **how)[:, 1]
    nearest = project_targets(
        y,
        p,
        sensitive_features=X[:, 0],
        target_weight=0.0,
        constraint=CoarseConstraint(0.3),
        solver=Solver(gap=1e-6),
    )
    corrected = model.targets_ == "yes"
    loss = np.where(corrected, 1 - p, p).sum()
    # At most a row or so is split by the relaxation, which a threshold cannot do.
    assert nearest.objective - 1e-6 <= loss <= nearest.objective + 2.0


def test_ties_are_decided_alike_and_a_miss_is_said(data):
    X, _, y, _ = data
    X = np.round(X[:, :1] > 0) * 1.0
    model = ProjectedClassifier(constraint=CoarseConstraint(), sensitive_columns=0)
    fitted = model.fit(X, y)
    assert len(np.unique(fitted.predict(X[X[:, 0] == 0]))) == 1


def test_a_frozen_estimator_is_not_fitted_again(data):
    X, t, y, _ = data
    fitted = RandomForestRegressor(20, random_state=0).fit(X[:200], t[:200])
    model = ProjectedRegressor(
        FrozenEstimator(fitted), CoarseConstraint(), sensitive_columns=0
    ).fit(X[200:], t[200:])
    nearest = np.clip(X[:, 0], X[200:, 0].min(), X[200:, 0].max())
    shift = model.kernel_.transform(nearest) @ model.correction_
    assert_allclose(model.predict(X), fitted.predict(X) + shift)
    classifier = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X[:200], y[:200])
    model = ProjectedClassifier(
        FrozenEstimator(classifier), CoarseConstraint(), sensitive_columns=0
    )
    assert model.fit(X[200:], y[200:]).estimator_.estimator is classifier


def test_both_doors_give_the_same(data):
    X, t, _, _ = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    by_column = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns="a").fit(
        frame, t
    )
    by_value = ProjectedRegressor(None, CoarseConstraint()).fit(
        frame, t, sensitive_features=frame["a"]
    )
    expected = by_column.predict(frame)
    assert_allclose(by_value.predict(frame, sensitive_features=frame["a"]), expected)
    with pytest.raises(ValueError, match="need the attribute of these rows"):
        by_value.predict(frame)
    with pytest.raises(ValueError, match="exactly one of sensitive_features"):
        by_column.predict(frame, sensitive_features=frame["a"])


def test_in_a_search_and_with_routing(data):
    X, t, _, _ = data
    scoring = make_disparity_scorer(sensitive_columns=0, relative=True)
    search = GridSearchCV(
        ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0),
        {"constraint__threshold": [0.1, 0.8]},
        scoring=scoring,
        cv=3,
    ).fit(X, t)
    assert search.best_params_ == {"constraint__threshold": 0.1}
    with config_context(enable_metadata_routing=True):
        model = ProjectedRegressor(constraint=CoarseConstraint(), cv=3).fit(
            X, t, sensitive_features=X[:, 0]
        )
        assert len(model.predict(X, sensitive_features=X[:, 0])) == 400


class Unsure(LogisticRegression):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ProjectedClassifier(LinearSVC(), CoarseConstraint()), "LinearSVC has no predict_proba"),
        (ProjectedClassifier(Unsure(), CoarseConstraint()), "probabilities of Unsure contains NaN"),
        (ProjectedClassifier(constraint=CoarseConstraint(), cv="oob"), "out-of-bag predictions"),
        (
            ProjectedClassifier(constraint=CoarseConstraint(), drop_sensitive=True),
            "drop_sensitive=True removes",
        ),
    ],
    ids=str,
)
def test_errors_name_what_to_do(data, model, message):
    X, _, y, _ = data
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sensitive_features=X[:, 0])
    with pytest.raises(ValueError, match=r"Only binary.*on='predictions' takes any"):
        ProjectedClassifier(constraint=CoarseConstraint(on="probabilities")).fit(
            X, np.arange(400) % 3, sensitive_features=X[:, 0]
        )


@pytest.mark.parametrize("kind", [ProjectedRegressor, ProjectedClassifier])
@pytest.mark.parametrize("sensitive_at_predict", [True, False])
def test_a_constant_attribute_leaves_the_plain_learner(data, kind, sensitive_at_predict):
    X, t, y, _ = data
    target = t if kind is ProjectedRegressor else y
    X = np.c_[np.ones(400), X[:, 1:]]
    model = kind(sensitive_columns=0, sensitive_at_predict=sensitive_at_predict)
    with pytest.warns(UserWarning, match="constant, so there is nothing to constrain"):
        model.fit(X, target)
    assert_array_equal(model.predict(X), model.estimator_.predict(X))
    assert model.kernel_ is None
    assert model.threshold_ == np.inf


@pytest.mark.parametrize("kind", [ProjectedRegressor, ProjectedClassifier])
def test_pickles_survive_a_move_of_the_module(data, kind):
    X, t, y, _ = data
    model = kind(sensitive_columns=0, constraint=CoarseConstraint(0.5))
    model.fit(X, t if kind is ProjectedRegressor else y)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    # What a pickle from before the move names.
    assert pickle.loads(f"cgedi_sklearn.post_processing\n{kind.__name__}\n.".encode()) is kind


def test_the_attribute_at_prediction_is_that_of_the_rows(data):
    X, t, _, _ = data
    pair = np.c_[X[:, 0], X[:, 0] > 0]
    model = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_at_predict=True)
    model.fit(X, t, sensitive_features=X[:, 0])
    # One value, or another column, would be broadcast.
    for values in (X[:1, 0], X[:-1, 0]):
        with pytest.raises(ValueError, match=r"sensitive_features has .* rows where 400 were"):
            model.predict(X, sensitive_features=values)
    with pytest.raises(ValueError, match=r"has 2 column.*the kernel was fitted on 1"):
        model.predict(X, sensitive_features=pair)
    model.fit(X, t, sensitive_features=pair)
    with pytest.raises(ValueError, match=r"has 1 column.*the kernel was fitted on 2"):
        model.predict(X, sensitive_features=X[:, 0])
    texts = np.where(pair > 0, "high", "low")
    model.fit(X, t, sensitive_features=texts[:, :1])
    with pytest.raises(ValueError, match=r"has 2 column.*the kernel was fitted on 1"):
        model.predict(X, sensitive_features=texts)


@pytest.mark.filterwarnings("ignore:the corrected labels miss the constraint")
@pytest.mark.parametrize("sensitive_at_predict", [True, False])
@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.9])
def test_scores_agree_with_the_labels_and_keep_the_order_of_equal_attributes(
    data, sensitive_at_predict, threshold
):
    X, _, y, _ = data
    X = np.c_[np.round(X[:, 0]), X[:, 1:]]
    model = ProjectedClassifier(
        constraint=CoarseConstraint(threshold),
        sensitive_columns=0,
        sensitive_at_predict=sensitive_at_predict,
        attribute_estimator=LinearRegression(),
    )
    p = model.fit(X, y).estimator_.predict_proba(X)[:, 1]
    proba = model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1)
    assert ((proba >= 0) & (proba <= 1)).all()
    assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    if not sensitive_at_predict:
        return
    for value in np.unique(X[:, 0]):
        rows = X[:, 0] == value
        tau = 0.5 - (model.kernel_.orthonormal([value]) @ model.orthonormal_correction_)[0]
        expected = np.where(p <= tau, p / (2 * tau), 1 - (1 - p) / (2 * (1 - tau)))
        assert_allclose(proba[rows, 1], expected[rows], atol=1e-9)
        assert_array_equal(np.argsort(proba[rows, 1]), np.argsort(p[rows]))


def test_scores_agree_where_the_threshold_leaves_the_unit_interval():
    x = np.repeat([0.0, 1.0], 40)
    y = (np.arange(80) % 40 < np.where(x > 0, 39, 1)).astype(int)
    X = np.c_[x, np.zeros(80)]
    model = ProjectedClassifier(constraint=CoarseConstraint(np.inf), sensitive_columns=0).fit(X, y)
    for correction in ([-3.0], [3.0], [0.5], [-0.5], [0.0]):
        model.orthonormal_correction_ = np.array(correction)
        proba = model.predict_proba(X)
        assert np.isfinite(proba).all()
        assert ((proba >= 0) & (proba <= 1)).all()
        assert_array_equal(proba.argmax(axis=1), model.predict(X))


@pytest.mark.parametrize("weighted", [False, True])
def test_bounded_probabilities_are_the_nearest_between_0_and_1(data, weighted):
    X, _, y, w = data
    weight = w * (np.arange(400) % 5 > 0) if weighted else None
    model = ProjectedClassifier(
        constraint=CoarseConstraint(0.1, kernel=CUBIC, on="probabilities"),
        sensitive_columns=0,
        cv=4,
    ).fit(X, y, sample_weight=weight)
    how = {"method": "predict_proba", "stratified": True, "weight": weight}
    p = cross_fitted(LogisticRegression(), X, y, 4, **how)[:, 1]
    codes = (y == "yes") * 1.0
    nearest = project_targets(
        codes,
        p,
        sensitive_features=X[:, 0],
        target_weight=0.0,
        target_bounds=(0, 1),
        sample_weight=weight,
        loss="squared_error",
        constraint=CoarseConstraint(0.1, kernel=CUBIC),
    )
    counted = np.full(400, True) if weight is None else weight > 0
    assert_allclose(model.targets_[counted], nearest.targets[counted], atol=1e-9)
    assert_array_equal(model.targets_[~counted], codes[~counted])
    assert ((nearest.targets == 0) | (nearest.targets == 1)).any()
    indicator = gedi(
        codes, model.targets_, sensitive_features=X[:, 0], kernel=CUBIC, sample_weight=weight
    )
    assert indicator == pytest.approx(model.threshold_)

    proba = model.predict_proba(X)
    plain = model.estimator_.predict_proba(X)[:, 1]
    shift = model.kernel_.orthonormal(X[:, 0]) @ model.orthonormal_correction_
    assert_allclose(proba[:, 1], np.clip(plain + shift, 0, 1), atol=1e-12)
    assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))


def test_bounded_probabilities_of_the_rows_of_the_fit(data):
    X, _, y, _ = data
    for constraint in (CoarseConstraint, FineConstraint, DidiConstraint):
        attribute = np.digitize(X[:, 0], [-0.5, 0.5]) * 1.0
        model = ProjectedClassifier(constraint=constraint(on="probabilities"), cv="train")
        model.fit(X, y, sensitive_features=attribute)
        proba = model.predict_proba(X, sensitive_features=attribute)[:, 1]
        assert_allclose(proba, model.targets_, atol=1e-12)
        if constraint is CoarseConstraint:
            assert gedi(proba, sensitive_features=attribute) == pytest.approx(model.threshold_)
    path = tradeoff_curve(
        ProjectedClassifier(constraint=CoarseConstraint(on="probabilities"), sensitive_columns=0),
        X,
        y,
        thresholds=[0.2, 0.8],
        cv=2,
    )
    assert np.isfinite(path.gedi).all()


def test_what_is_constrained_has_a_name(data):
    X, _, y, _ = data
    with pytest.raises(ValueError, match="'on' parameter"):
        ProjectedClassifier(None, CoarseConstraint(on="scores"), sensitive_columns=0).fit(X, y)
    for model in (ProjectedRegressor, MovingTargetsClassifier, DualTargetsClassifier):
        with pytest.raises(ValueError, match=r"on='probabilities' cannot be .*ProjectedClassifier"):
            model(None, CoarseConstraint(on="probabilities"), sensitive_columns=0).fit(
                X, (y == "yes") * 1
            )


def test_folds_of_the_correction_do_not_repeat_what_the_fit_warns_of(data):
    X, t, _, _ = data
    for options in (
        {"constraint": CoarseConstraint(20)},
        {"constraint": CoarseConstraint(kernel=2), "confidence": 0.9},
    ):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            ProjectedRegressor(sensitive_columns=0, **options).fit(X + 100 * np.eye(4)[0], t)
        categories = [one.category for one in record]
        assert categories
        assert len(set(categories)) == len(categories)


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning")
@pytest.mark.parametrize("degree", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_labels_keep_to_a_fine_constraint_within_their_steps_and_use_its_bound(seed, degree):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=3000)
    X = np.column_stack([x, x + rng.normal(size=3000), rng.normal(size=(3000, 2))])
    y = X[:, 0] + 0.5 * x**2 + X[:, 2] + rng.logistic(size=3000) > 0.3
    model = ProjectedClassifier(
        constraint=FineConstraint(0.3, kernel=degree), cv="train", sensitive_columns=0
    ).fit(X, y)
    coefficients = gedi_coefficients(model.predict(X), sensitive_features=x, kernel=degree)
    first, *others = np.abs(coefficients) / model.threshold_
    assert 0.85 < first < 1.1
    assert max(others) < 0.1
