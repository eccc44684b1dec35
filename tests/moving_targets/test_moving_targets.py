"""Moving Targets: the algorithm, its options, its record, its errors."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from gedi_sklearn import (
    CoarseConstraint,
    FineConstraint,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    PolynomialKernel,
    Solver,
    project_targets,
)
from gedi_sklearn.exceptions import ConstraintNotMetWarning
from gedi_sklearn.metrics import gedi

HISTORY = [
    "iteration",
    "target_weight",
    "objective",
    "bound",
    "gap",
    "violation",
    "status",
    "solver",
    "n_variables",
    "targets_gedi",
    "predictions_gedi",
    "loss_predictions",
    "loss_targets",
    "n_changed",
    "fit_seconds",
    "projection_seconds",
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    attribute = np.linspace(-1.5, 1.5, 80)
    X = np.c_[attribute, rng.normal(size=(80, 2))]
    t = attribute + X[:, 1] + 0.5 * rng.normal(size=80)
    return X, t, (t > 0).astype(int), attribute


def forest():
    return RandomForestRegressor(n_estimators=5, random_state=0)


def replay(model, X, y, attribute, weight_of):
    """Run the paper's loop with the public projection and the inner estimator alone."""
    learner = clone(model.estimator).fit(X, y)
    targets = y
    for iteration in range(1, model.max_iter + 1):
        seen = learner.predict(X)
        method = getattr(model, "response_method", "auto")
        if method != "predict" and hasattr(learner, "predict_proba"):
            seen = learner.predict_proba(X)[:, 1]
        targets = project_targets(
            y,
            seen,
            sensitive_features=attribute,
            target_weight=weight_of(iteration),
            constraint=model.constraint,
        ).targets
        learner = clone(model.estimator).fit(X, targets)
    return learner, targets


@pytest.mark.parametrize(
    ("target_weight", "weight_of"),
    [
        ("harmonic", lambda i: 1 / i),
        (0.5, lambda i: 0.5),
        (lambda i: 2.0**-i, lambda i: 2.0**-i),
    ],
)
def test_regressor_is_the_papers_loop(data, target_weight, weight_of):
    X, t, _, attribute = data
    model = MovingTargetsRegressor(
        forest(), CoarseConstraint(), max_iter=3, target_weight=target_weight
    )
    model.fit(X, t, sensitive_features=attribute)
    learner, targets = replay(model, X, t, attribute, weight_of)
    assert_allclose(model.targets_, targets, atol=1e-12)
    assert_allclose(model.predict(X), learner.predict(X), atol=1e-12)
    assert_allclose(model.history_["target_weight"][1:], [weight_of(i) for i in (1, 2, 3)])


# What the solver could not prove within its gap is the same on both sides.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("response_method", ["predict", "predict_proba", "auto"])
def test_classifier_is_the_papers_loop(data, response_method):
    X, _, y, attribute = data
    forest = RandomForestClassifier(n_estimators=5, max_depth=2, random_state=0)
    model = MovingTargetsClassifier(
        forest, CoarseConstraint(), max_iter=3, response_method=response_method
    )
    model.fit(X, y, sensitive_features=attribute)
    learner, targets = replay(model, X, y, attribute, lambda i: 1 / i)
    assert_array_equal(model.targets_, targets)
    assert_array_equal(model.predict(X), learner.predict(X))


def test_auto_takes_probabilities_where_there_are_any(data):
    X, _, y, attribute = data
    for inner, method in (
        (RandomForestClassifier(n_estimators=5, random_state=0), "predict_proba"),
        (Perceptron(random_state=0), "predict"),
    ):
        auto, explicit = (
            MovingTargetsClassifier(inner, CoarseConstraint(), max_iter=2, response_method=m).fit(
                X, y, sensitive_features=attribute
            )
            for m in ("auto", method)
        )
        assert_array_equal(auto.targets_, explicit.targets_)


def test_log_loss_changes_the_least_certain(data):
    X, _, y, attribute = data
    options = {"constraint": CoarseConstraint(), "max_iter": 1, "solver": Solver(gap=0.0)}
    hamming, log_loss = (
        MovingTargetsClassifier(LogisticRegression(), loss=loss, **options).fit(
            X, y, sensitive_features=attribute
        )
        for loss in ("hamming", "log_loss")
    )
    proba = np.clip(LogisticRegression().fit(X, y).predict_proba(X)[:, 1], 1e-3, 1 - 1e-3)
    certainty = np.log(proba / (1 - proba))

    def cost(targets):
        return -(targets * certainty).sum() + np.log(999) * (targets != y).sum()

    assert cost(log_loss.targets_) <= cost(hamming.targets_) + 1e-9


def test_history_has_one_entry_for_each_fit(data):
    X, t, y, attribute = data
    slope = CoarseConstraint()
    for model, target in (
        (MovingTargetsRegressor(None, slope), t),
        (MovingTargetsClassifier(None, slope), y),
    ):
        model.set_params(max_iter=4).fit(X, target, sensitive_features=attribute)
        history = model.history_
        assert list(history) == HISTORY
        assert {len(values) for values in history.values()} == {model.n_iter_ + 1} == {5}
        assert_array_equal(history["iteration"], range(5))
        first = {name: values[0] for name, values in history.items()}
        assert first["status"] == first["solver"] == ""
        for name in ("target_weight", "objective", "bound", "gap", "violation", "n_variables"):
            assert np.isnan(first[name])
            assert np.isfinite(history[name][1:]).all()
        assert first["n_changed"] == first["loss_targets"] == 0
        assert_allclose(first["targets_gedi"], gedi(target, sensitive_features=attribute))
        assert_allclose(
            history["targets_gedi"][-1], gedi(model.targets_, sensitive_features=attribute)
        )
        predictions = model.predict(X)
        assert_allclose(
            history["predictions_gedi"][-1],
            gedi(predictions, sensitive_features=attribute),
            rtol=1e-9,
        )
        squared = np.mean((predictions - target) ** 2)
        assert_allclose(history["loss_predictions"][-1], squared)
        assert_allclose(history["loss_targets"][-1], np.mean((model.targets_ - target) ** 2))
        assert (history["fit_seconds"] > 0).all()
        assert (history["projection_seconds"][1:] > 0).all()
        assert model.solver_ == history["solver"][-1]


def test_a_satisfied_constraint_leaves_the_first_fit(data):
    X, t, y, attribute = data
    for model, target in ((MovingTargetsRegressor(), t), (MovingTargetsClassifier(), y)):
        model.set_params(constraint=CoarseConstraint(np.inf))
        model.fit(X, target, sensitive_features=attribute)
        assert model.n_iter_ == 0
        assert model.solver_ == ""
        assert_array_equal(model.targets_, target)
        assert_array_equal(
            model.predict(X), clone(model._default_estimator()).fit(X, target).predict(X)
        )


class Exaggerating(RegressorMixin, BaseEstimator):
    """Predicts more dependence on the first column than its targets have."""

    def fit(self, X, y):
        self.slope_ = LinearRegression().fit(X[:, :1], y).coef_[0]
        return self

    def predict(self, X):
        return 3 * self.slope_ * X[:, 0]


@pytest.mark.filterwarnings("ignore:threshold=1.5 is 150 %")
def test_predictions_alone_start_the_loop(data):
    X, t, _, attribute = data
    model = MovingTargetsRegressor(Exaggerating(), CoarseConstraint(1.5), max_iter=2)
    with pytest.warns(ConstraintNotMetWarning, match="at 3 times the bound"):
        assert model.fit(X, t, sensitive_features=attribute).n_iter_ == 2


def test_threshold_is_resolved_once(data):
    X, t, _, attribute = data
    kernel = PolynomialKernel(2, standardize=True)
    model = MovingTargetsRegressor(constraint=CoarseConstraint(0.3, kernel=kernel), max_iter=2)
    model.fit(X, t, sensitive_features=attribute)
    reference = gedi(t, sensitive_features=attribute, kernel=PolynomialKernel(1, standardize=True))
    assert_allclose(model.reference_, reference)
    assert_allclose(model.threshold_, 0.3 * reference)
    assert model.constraint_.threshold == model.threshold_
    assert model.constraint_.relative is False
    assert model.kernel_.n_columns == 2
    assert model.constraint.threshold == 0.3

    absolute = MovingTargetsRegressor(constraint=CoarseConstraint(0.1, relative=False)).fit(
        X, t, sensitive_features=attribute
    )
    assert (absolute.reference_, absolute.threshold_) == (1.0, 0.1)


@pytest.mark.parametrize(
    "constraint",
    [
        CoarseConstraint(0.1, kernel=2, relative=False),
        FineConstraint([0.1, 0.0], kernel=2, relative=False),
    ],
)
def test_constraint_objects_carry_their_own(data, constraint):
    X, t, _, attribute = data
    model = MovingTargetsRegressor(constraint=constraint, max_iter=2)
    targets = model.fit(X, t, sensitive_features=attribute).targets_
    assert gedi(targets, sensitive_features=attribute, kernel=2) <= 0.1 + 1e-9


def test_a_constant_attribute_is_the_plain_learner_with_a_warning(data):
    X, t, y, _ = data
    for model, target in ((MovingTargetsRegressor(), t), (MovingTargetsClassifier(), y)):
        with pytest.warns(UserWarning, match="sensitive_features is constant"):
            model.fit(X, target, sensitive_features=np.full(len(t), 3.0))
        assert model.n_iter_ == 0
        assert model.kernel_ is model.constraint_ is None
        assert np.isnan(model.history_["targets_gedi"]).all()
        plain = clone(model._default_estimator()).fit(X, target)
        assert_array_equal(model.predict(X), plain.predict(X))


def test_zero_reference_asks_for_an_absolute_threshold(data):
    X, _, _, attribute = data
    even = attribute**2
    with pytest.raises(ValueError, match="relative=False"):
        MovingTargetsRegressor(None, CoarseConstraint()).fit(X, even, sensitive_features=attribute)


# --- seeds ------------------------------------------------------------------------------------


def test_a_seed_makes_an_unseeded_forest_repeatable(data):
    X, _, y, attribute = data
    forest = RandomForestClassifier(n_estimators=5)

    def fit(seed):
        model = MovingTargetsClassifier(forest, CoarseConstraint(), max_iter=2, random_state=seed)
        return model.fit(X, y, sensitive_features=attribute)

    for seed in (0, np.random.RandomState(0)):
        first = fit(seed)
        again = fit(0)
        assert_array_equal(first.targets_, again.targets_)
        assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert forest.random_state is None
    assert isinstance(first.estimator_.random_state, int)


def test_every_seed_of_a_clone_is_set_and_iterations_differ(data):
    X, _, y, attribute = data
    seen = []

    class Recording(RandomForestClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.append(self.random_state)
            return super().fit(X, y, sample_weight)

    inner = make_pipeline(StandardScaler(), Recording(n_estimators=2))
    model = MovingTargetsClassifier(inner, CoarseConstraint(), max_iter=3, random_state=0)
    model.fit(X, y, sensitive_features=attribute)
    assert len(set(seen)) == 4
    assert all(isinstance(seed, int) for seed in seen)


def test_no_seed_leaves_the_inner_estimators_own(data):
    X, _, y, attribute = data
    forest = RandomForestClassifier(n_estimators=2, random_state=7)
    model = MovingTargetsClassifier(forest, CoarseConstraint(), max_iter=2).fit(
        X, y, sensitive_features=attribute
    )
    assert model.estimator_.random_state == 7


# --- classes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [-1, 1], [False, True], [3, 7], [0.0, 2.0], ["b", "a"]],
    ids=str,
)
def test_any_two_labels(data, labels):
    X, _, y, attribute = data
    classes = np.array(labels)
    target = classes[y]
    model = MovingTargetsClassifier(
        RandomForestClassifier(n_estimators=5, random_state=0), CoarseConstraint()
    )
    model.set_params(max_iter=2).fit(X, target, sensitive_features=attribute)
    assert_array_equal(model.classes_, np.sort(classes))
    assert_array_equal(model.estimator_.classes_, model.classes_)
    assert set(model.targets_) == set(model.predict(X)) == set(labels)
    assert model.targets_.dtype == classes.dtype
    assert model.score(X, target) == np.mean(model.predict(X) == target)
    assert model.predict_proba(X).shape == (len(y), 2)


def test_nullable_and_categorical_labels(data):
    pd = pytest.importorskip("pandas")
    X, _, y, attribute = data
    expected = MovingTargetsClassifier().fit(X, y, sensitive_features=attribute)
    for target in (
        pd.Series(y, dtype="Int64"),
        pd.Series(y == 1, dtype="boolean"),
        pd.Series(np.where(y, "yes", "no"), dtype="category"),
        pd.Series(np.where(y, "yes", "no")),
        list(y),
    ):
        model = MovingTargetsClassifier().fit(X, target, sensitive_features=attribute)
        assert_array_equal(model.predict(X) == model.classes_[1], expected.predict(X) == 1)
    missing = pd.Series(y, dtype="Int64")
    missing[3] = pd.NA
    with pytest.raises(ValueError, match="NaN"):
        MovingTargetsClassifier().fit(X, missing, sensitive_features=attribute)


def test_methods_follow_the_inner_estimator(data):
    X, _, y, attribute = data
    fitted = MovingTargetsClassifier(Perceptron(), CoarseConstraint()).fit(
        X, y, sensitive_features=attribute
    )
    for model in (MovingTargetsClassifier(Perceptron(), CoarseConstraint()), fitted):
        assert hasattr(model, "decision_function")
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "predict_log_proba")
    logistic = MovingTargetsClassifier().fit(X, y, sensitive_features=attribute)
    assert_allclose(np.exp(logistic.predict_log_proba(X)), logistic.predict_proba(X))


def test_classifier_refuses_what_is_no_classes(data):
    X, t, y, attribute = data
    model = MovingTargetsClassifier()
    with pytest.raises(ValueError, match=r"one class.*only \['a'\]"):
        model.fit(X, np.full(len(y), "a"), sensitive_features=attribute)
    with pytest.raises(ValueError, match=r"positive sample_weight has only \[0\]"):
        model.fit(X, y, sensitive_features=attribute, sample_weight=1 - y)
    with pytest.raises(ValueError, match="continuous"):
        model.fit(X, t, sensitive_features=attribute)


# --- weights ----------------------------------------------------------------------------------


def test_weights_are_repeated_rows_for_a_regressor(data):
    X, t, _, attribute = data
    weight = np.arange(len(t)) % 3 + 1
    repeated = np.repeat(np.arange(len(t)), weight)
    weighted = MovingTargetsRegressor(constraint=CoarseConstraint(kernel=2)).fit(
        X, t, sensitive_features=attribute, sample_weight=weight
    )
    longer = MovingTargetsRegressor(constraint=CoarseConstraint(kernel=2)).fit(
        X[repeated], t[repeated], sensitive_features=attribute[repeated]
    )
    assert_allclose(weighted.threshold_, longer.threshold_, rtol=1e-10)
    assert_allclose(weighted.targets_[repeated], longer.targets_, atol=1e-9)
    assert_allclose(weighted.predict(X), longer.predict(X), atol=1e-9)
    for name in ("targets_gedi", "loss_predictions", "loss_targets"):
        assert_allclose(weighted.history_[name], longer.history_[name], atol=1e-9)


# --- the attribute ----------------------------------------------------------------------------


def test_both_doors_agree(data):
    X, t, y, attribute = data
    for model, target in ((MovingTargetsRegressor(), t), (MovingTargetsClassifier(), y)):
        by_value = clone(model).fit(X, target, sensitive_features=attribute)
        by_column = clone(model).set_params(sensitive_columns=0).fit(X, target)
        assert_array_equal(by_value.targets_, by_column.targets_)


@pytest.mark.parametrize(
    ("columns", "values", "match"),
    [(None, None, "neither"), (0, True, "both"), (9, None, "out of range"), ("a", None, "name")],
)
def test_exactly_one_door(data, columns, values, match):
    X, t, _, attribute = data
    model = MovingTargetsRegressor(constraint=CoarseConstraint(), sensitive_columns=columns)
    with pytest.raises(ValueError, match=match):
        model.fit(X, t, sensitive_features=attribute if values else None)


def test_drop_sensitive(data):
    pd = pytest.importorskip("pandas")
    X, t, y, _ = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for model, target in ((MovingTargetsRegressor(), t), (MovingTargetsClassifier(), y)):
        for data, columns in ((X, 0), (frame, "a"), (frame, ["a"]), (X, -3)):
            model.set_params(sensitive_columns=columns, drop_sensitive=True).fit(data, target)
            assert model.n_features_in_ == 3
            assert model.estimator_.n_features_in_ == 2
            changed = data.copy()
            if data is frame:
                assert list(model.feature_names_in_) == ["a", "b", "c"]
                assert list(model.estimator_.feature_names_in_) == ["b", "c"]
                changed["a"] = 99.0
            else:
                changed[:, 0] = 99.0
            assert_array_equal(model.predict(data), model.predict(changed))
            with pytest.raises(ValueError, match="features"):
                model.predict(X[:, 1:])
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.set_params(sensitive_columns="a").fit(frame, target).predict(X)
    with pytest.raises(ValueError, match=r"drop_sensitive=True.*sensitive_columns"):
        MovingTargetsRegressor(constraint=CoarseConstraint(), drop_sensitive=True).fit(
            X, t, sensitive_features=X[:, 0]
        )


# --- errors and warnings ----------------------------------------------------------------------


class FailingRegressor(LinearRegression):
    """Fails once its targets are no longer the original ones."""

    def __init__(self, first=None):
        super().__init__()
        self.first = first

    def fit(self, X, y, sample_weight=None):
        if not np.array_equal(y, self.first):
            raise RuntimeError("the learner stopped")
        return super().fit(X, y, sample_weight)


def test_an_error_carries_the_history(data):
    X, t, _, attribute = data
    model = MovingTargetsRegressor(FailingRegressor(first=t), CoarseConstraint())
    with pytest.raises(RuntimeError, match="the learner stopped") as caught:
        model.fit(X, t, sensitive_features=attribute)
    assert list(caught.value.history) == HISTORY
    assert len(caught.value.history["iteration"]) == 1
    # Workers send their errors home by pickle.
    assert "history" in vars(pickle.loads(pickle.dumps(caught.value)))


def test_useless_predictions_are_named(data):
    X, t, _, attribute = data

    class NaNRegressor(LinearRegression):
        def predict(self, X):
            return np.full(len(X), np.nan)

    with pytest.raises(ValueError, match="predictions of NaNRegressor contains NaN"):
        MovingTargetsRegressor(NaNRegressor(), CoarseConstraint()).fit(
            X, t, sensitive_features=attribute
        )


@pytest.mark.parametrize("degree", [1, 2])
def test_absolute_error(data, degree):
    X, t, _, attribute = data
    constraint = CoarseConstraint(kernel=degree)
    options = {"constraint": constraint, "max_iter": 2, "sensitive_columns": 0}
    fits = {
        loss: MovingTargetsRegressor(forest(), loss=loss, **options).fit(X, t)
        for loss in ("absolute_error", "squared_error")
    }
    first = {}
    for loss, model in fits.items():
        indicator = gedi(model.targets_, sensitive_features=attribute, kernel=degree)
        assert indicator <= model.threshold_ * (1 + 1e-6)
        first[loss] = clone(model).set_params(max_iter=1).fit(X, t).targets_
    p = forest().fit(X, t).predict(X)
    losses = {loss: np.abs(z - p).sum() + np.abs(z - t).sum() for loss, z in first.items()}
    assert losses["absolute_error"] <= losses["squared_error"] + 1e-9
    mean = np.abs(fits["absolute_error"].predict(X) - t).mean()
    assert_allclose(fits["absolute_error"].history_["loss_predictions"][-1], mean)


def test_target_bounds(data):
    X, t, _, attribute = data
    counts = np.exp(t)
    model = MovingTargetsRegressor(
        forest(), CoarseConstraint(), target_bounds=(0.0, None), max_iter=3
    )
    targets = model.fit(X, counts, sensitive_features=attribute).targets_
    assert targets.min() >= 0
    assert gedi(counts, targets, sensitive_features=attribute, relative=True) <= 0.2 + 1e-6


def test_responses_that_do_not_exist(data):
    X, _, y, attribute = data
    fit = {"X": X, "y": y, "sensitive_features": attribute}
    with pytest.raises(ValueError, match="Perceptron has no predict_proba"):
        MovingTargetsClassifier(
            Perceptron(), CoarseConstraint(), response_method="predict_proba"
        ).fit(**fit)
    for options in ({"response_method": "predict"}, {"estimator": Perceptron()}):
        with pytest.raises(ValueError, match="loss='log_loss' compares probabilities"):
            MovingTargetsClassifier(loss="log_loss", **options).fit(**fit)
    with pytest.raises(ValueError, match=r"target_weight\(1\) returned -1"):
        MovingTargetsClassifier(constraint=CoarseConstraint(), target_weight=lambda i: -1).fit(
            **fit
        )


# A tree of depth 4 follows only in part.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*the predictions for the training rows do not meet")
def test_a_solver_that_stops_early_warns_once(data):
    rng = np.random.default_rng(0)
    attribute = rng.uniform(20, 70, 200)
    X = np.c_[attribute, rng.normal(size=200)]
    y = (attribute + 15 * rng.normal(size=200) > 45).astype(int)
    model = MovingTargetsClassifier(
        DecisionTreeClassifier(max_depth=4),
        CoarseConstraint(kernel=PolynomialKernel(5, standardize=True)),
        max_iter=2,
        solver=Solver("highs", gap=0.0, params={"mip_max_nodes": 1}),
    )
    with pytest.warns(ConvergenceWarning, match="projection") as record:
        model.fit(X, y, sensitive_features=attribute)
    assert len([w for w in record if issubclass(w.category, ConvergenceWarning)]) == 1
    assert set(model.history_["status"]) - {"", "optimal", "gap"}


@pytest.mark.parametrize("model", [MovingTargetsRegressor, MovingTargetsClassifier])
def test_an_estimator_that_predicts_nothing_is_refused(model):
    X, y = np.arange(8.0).reshape(4, 2), [0, 0, 1, 1]
    with pytest.raises(TypeError, match=r"estimator=StandardScaler\(\) predicts nothing"):
        model(StandardScaler(), sensitive_columns=0).fit(X, y)
    for routing in (False, True):
        with (
            config_context(enable_metadata_routing=routing),
            pytest.raises(TypeError, match=r"estimator must be an object, .* LinearRegression\(\)"),
        ):
            model(LinearRegression, sensitive_columns=0).fit(X, y)


@pytest.mark.parametrize("bounds", [(0,), (0, 1, 2), (None, "a"), (1, 0), (np.nan, 1)])
def test_bounds_that_are_none_are_refused_by_name(bounds):
    X, y = np.arange(8.0).reshape(4, 2), [0.0, 1.0, 0.5, 0.25]
    with pytest.raises(ValueError, match=r"^target_bounds must"):
        MovingTargetsRegressor(
            constraint=CoarseConstraint(), sensitive_columns=0, target_bounds=bounds
        ).fit(X, y)
