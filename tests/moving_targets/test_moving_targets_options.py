"""Moving Targets: early stop, selection, warm start, held-out data, and what is shown."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from gedi_sklearn import (
    CoarseConstraint,
    FineConstraint,
    FourierKernel,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    PolynomialKernel,
)
from gedi_sklearn.metrics import gedi


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    attribute = rng.uniform(-1.5, 1.5, 120)
    X = np.c_[attribute, rng.normal(size=(120, 2))]
    t = attribute + X[:, 1] + 0.5 * rng.normal(size=120)
    return X, t, (t > 0).astype(int), attribute


def forest(**params):
    return RandomForestRegressor(n_estimators=5, random_state=0, **params)


# --- early stop -------------------------------------------------------------------------------


def test_stops_once_the_targets_settle(data):
    X, t, _, _ = data
    # A linear model reproduces what it was fitted on, so a constant weight leads to a limit.
    model = MovingTargetsRegressor(
        constraint=CoarseConstraint(), sensitive_columns=0, max_iter=50, target_weight=1.0
    )
    stopped = clone(model).set_params(tol=1e-3).fit(X, t)
    assert 1 < stopped.n_iter_ < 50
    assert len(stopped.history_["iteration"]) == stopped.n_iter_ + 1

    before = clone(model).set_params(max_iter=stopped.n_iter_ - 1).fit(X, t)
    change = np.linalg.norm(stopped.targets_ - before.targets_)
    assert change <= 1e-3 * np.linalg.norm(t - t.mean())

    patient = clone(model).set_params(tol=1e-3, n_iter_no_change=3).fit(X, t)
    assert patient.n_iter_ == stopped.n_iter_ + 2
    assert clone(model).set_params(max_iter=12).fit(X, t).n_iter_ == 12


def test_unchanged_labels_stop(data):
    X, _, y, _ = data
    model = MovingTargetsClassifier(
        constraint=CoarseConstraint(), sensitive_columns=0, max_iter=40, target_weight=3.0
    )
    stopped = model.set_params(n_iter_no_change=1).fit(X, y)
    assert stopped.n_iter_ < 40
    before = clone(model).set_params(max_iter=stopped.n_iter_ - 1).fit(X, y)
    assert_array_equal(stopped.targets_, before.targets_)


# --- selection --------------------------------------------------------------------------------


def violation(predictions, model, attribute):
    return max(0.0, gedi(predictions, sensitive_features=attribute) - model.threshold_)


def test_best_has_the_least_loss_within_the_threshold(data):
    X, t, _, _ = data
    model = MovingTargetsRegressor(
        constraint=CoarseConstraint(), sensitive_columns=0, max_iter=8, select="best"
    ).fit(X, t)
    history = model.history_
    allowed = history["predictions_gedi"] <= model.threshold_ * (1 + 1e-9)
    allowed[0] = False
    assert allowed.any()
    losses = np.where(allowed, history["loss_predictions"], np.inf)
    assert model.selected_iteration_ == losses.argmin()
    assert_allclose(np.mean((model.predict(X) - t) ** 2), losses.min())
    last = clone(model).set_params(select="last").fit(X, t)
    assert last.selected_iteration_ == last.n_iter_ == 8


def test_best_has_the_least_violation_otherwise(data):
    X, t, _, _ = data
    model = MovingTargetsRegressor(
        forest(max_depth=3), CoarseConstraint(1e-3), sensitive_columns=0, max_iter=6, select="best"
    ).fit(X, t)
    indicators = model.history_["predictions_gedi"][1:]
    assert (indicators > model.threshold_).all()
    assert model.selected_iteration_ == 1 + indicators.argmin()
    assert_allclose(gedi(model.predict(X), sensitive_features=X[:, 0]), indicators.min())
    assert gedi(model.targets_, sensitive_features=X[:, 0]) <= model.threshold_ * (1 + 1e-9)


# --- collapse ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*the bound on labels has no effect")
def test_collapse_is_named(data):
    _, t, y, attribute = data
    alone = attribute[:, None]
    with pytest.warns(UserWarning, match="LinearRegression predicts one value"):
        MovingTargetsRegressor(
            constraint=CoarseConstraint(0.0), sensitive_columns=0, max_iter=1
        ).fit(alone, np.round(t))
    with pytest.warns(UserWarning, match="LogisticRegression predicts one value"):
        MovingTargetsClassifier(LogisticRegression(C=1e-9), CoarseConstraint(), max_iter=1).fit(
            alone, np.r_[np.ones(100), y[100:]], sensitive_features=attribute
        )


def test_a_lost_class_is_named_by_its_label(data):
    X, _, y, attribute = data
    labels = np.where(y, "yes", "no")
    labels[::50] = "few"
    learner = LogisticRegression(C=0.1)
    with pytest.warns(UserWarning, match=r"LogisticRegression predicts class\(es\) \['few'\] for"):
        MovingTargetsClassifier(learner, CoarseConstraint(np.inf), max_iter=1).fit(
            X, labels, sensitive_features=attribute
        )


def test_a_regressor_is_no_classifier(data):
    X, _, y, attribute = data
    # Its predictions between 0 and 1 must not be taken for the class 1.
    with pytest.raises(ValueError, match=r"is a regressor.* Use MovingTargetsRegressor"):
        MovingTargetsClassifier(RandomForestRegressor(10, random_state=0), CoarseConstraint()).fit(
            X, y, sensitive_features=attribute
        )


# --- held-out data ----------------------------------------------------------------------------


def test_held_out_rows_are_watched(data):
    X, t, y, _ = data
    train, test = slice(0, 80), slice(80, None)
    for model, target in (
        (MovingTargetsRegressor(forest(), CoarseConstraint()), t),
        (MovingTargetsClassifier(None, CoarseConstraint()), np.where(y, "yes", "no")),
    ):
        model.set_params(sensitive_columns=0, max_iter=3)
        plain = clone(model).fit(X[train], target[train])
        assert "validation_score" not in plain.history_
        model.fit(X[train], target[train], X_val=X[test], y_val=target[test])
        assert_array_equal(model.predict(X), plain.predict(X))
        history = model.history_
        assert list(history)[-2:] == ["validation_score", "validation_gedi"]
        assert len(history["validation_score"]) == 4
        assert_allclose(history["validation_score"][-1], model.score(X[test], target[test]))
        predictions = model.predict(X[test])
        options = {"pos_label": "yes"} if target is not t else {}
        assert_allclose(
            history["validation_gedi"][-1],
            gedi(predictions, sensitive_features=X[test, 0], **options),
        )


def test_too_few_held_out_rows_are_named(data):
    X, t, _, _ = data
    with pytest.raises(ValueError, match="the validation rows are too few or too alike"):
        MovingTargetsRegressor(constraint=CoarseConstraint(), sensitive_columns=0).fit(
            X, t, X_val=X[:1], y_val=t[:1]
        )


# X holds the attribute as a number and not by group, which is bounded.
@pytest.mark.filterwarnings("ignore:.*the predictions for the training rows do not meet")
def test_held_out_groups_are_measured_beside_covariates(data):
    X, t, _, attribute = data
    groups = np.where(attribute > 0, "old", "young")
    values = [
        MovingTargetsRegressor(constraint=CoarseConstraint(), max_iter=1, conditional_on=[1])
        .fit(
            X,
            t,
            sensitive_features=labels,
            X_val=X[:60],
            y_val=t[:60],
            sensitive_features_val=labels[:60],
        )
        .history_["validation_gedi"]
        for labels in (groups, (groups == "young") * 1.0)
    ]
    assert_allclose(*values)


def test_covariates_that_determine_the_attribute_are_named(data):
    X, t, _, _ = data
    with pytest.warns(UserWarning, match="sensitive_features is constant, given conditional_on"):
        MovingTargetsRegressor(
            constraint=CoarseConstraint(), sensitive_columns=0, conditional_on=[0]
        ).fit(X, t)


def test_held_out_indicator_is_in_the_units_of_training(data):
    X, t, _, attribute = data
    kernel = PolynomialKernel(1, standardize=True)
    model = MovingTargetsRegressor(constraint=CoarseConstraint(kernel=kernel), max_iter=1)
    model.fit(
        X[:80],
        t[:80],
        sensitive_features=attribute[:80],
        X_val=X[80:],
        y_val=t[80:],
        sensitive_features_val=attribute[80:],
    )
    raw = gedi(model.predict(X[80:]), sensitive_features=attribute[80:])
    assert_allclose(model.history_["validation_gedi"][-1], raw * attribute[:80].std())


def test_held_out_data_are_checked(data):
    X, t, y, _ = data
    model = MovingTargetsRegressor(constraint=CoarseConstraint(), sensitive_columns=0)
    with pytest.raises(ValueError, match="both X_val and y_val"):
        model.fit(X, t, X_val=X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, t, X_val=X, y_val=t[:-1])
    with pytest.raises(ValueError, match="features"):
        model.fit(X, t, X_val=X[:, :2], y_val=t)
    with pytest.raises(ValueError, match=r"y_val holds \[5\]"):
        MovingTargetsClassifier(constraint=CoarseConstraint(), sensitive_columns=0).fit(
            X, y, X_val=X, y_val=y * 5
        )
    with pytest.raises(ValueError, match="exactly one of"):
        MovingTargetsRegressor().fit(X, t, sensitive_features=X[:, 0], X_val=X, y_val=t)


# --- what is shown ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            MovingTargetsRegressor(constraint=CoarseConstraint(kernel=5)),
            "‖α̃‖₁ ≤ 0.2 × GeDI-V1 of y, polynomial kernel of degree 5",
        ),
        (
            MovingTargetsClassifier(constraint=FineConstraint(kernel=3, relative=3)),
            "|α̃₁| ≤ 0.2 × GeDI-V3 of y, every other coefficient 0, polynomial kernel of degree 3",
        ),
        (
            MovingTargetsRegressor(
                constraint=FineConstraint([0.1, 0, np.inf], kernel=3, relative=False)
            ),
            "|α̃| ≤ (0.1, 0, inf), polynomial kernel of degree 3",
        ),
        (
            MovingTargetsRegressor(constraint=CoarseConstraint(0.5, kernel=FourierKernel(2))),
            "‖α̃‖₁ ≤ 0.5 × GeDI of y, Fourier kernel of order 2",
        ),
        (
            MovingTargetsRegressor(
                constraint=CoarseConstraint(kernel=PolynomialKernel(2, standardize=True))
            ),
            "‖α̃‖₁ ≤ 0.2 × GeDI-V1 of y, polynomial kernel of degree 2, standardised",
        ),
        (
            MovingTargetsRegressor(constraint=CoarseConstraint(kernel=SplineTransformer())),
            "‖α̃‖₁ ≤ 0.2 × GeDI of y, kernel SplineTransformer()",
        ),
    ],
)
def test_a_notebook_shows_the_constraint_in_words(model, words):
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == f"{model!r}\n{words}"
    assert f"<p>{words}</p>" in bundle["text/html"]
    assert "sk-estimator" in bundle["text/html"]
    assert f"<p>{words}</p>" in model._repr_html_()
    with config_context(display="text"):
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_verbose_prints_one_aligned_line_an_iteration(data, capsys):
    X, t, _, _ = data
    model = MovingTargetsRegressor(
        LinearRegression(), CoarseConstraint(), sensitive_columns=0, max_iter=3
    )
    model.fit(X, t)
    assert capsys.readouterr().out == ""
    model.set_params(verbose=1).fit(X, t, X_val=X, y_val=t)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "first fit" in lines[0]
    for word in ("GeDI of targets", "loss", "changed", "validation score"):
        assert len({line.index(word) for line in lines}) == 1


# --- automatic choices


@pytest.mark.parametrize(
    ("learner", "is_unseen"),
    [
        (RandomForestRegressor(30, random_state=0), True),
        (BaggingRegressor(LinearRegression(), 30, random_state=0), True),
        (RandomForestRegressor(5, random_state=0), False),
        (RandomForestRegressor(30, bootstrap=False, random_state=0), False),
        (RandomForestRegressor(30, warm_start=True, random_state=0), False),
        (make_pipeline(StandardScaler(), RandomForestRegressor(30, random_state=0)), False),
        (LinearRegression(), False),
    ],
)
def test_out_of_bag_predictions_are_used_where_every_row_has_one(learner, is_unseen):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [1, 1, 0.5] + rng.normal(size=60)
    options = {"sensitive_columns": 0, "max_iter": 1}
    automatic = MovingTargetsRegressor(learner, **options).fit(X, y)
    expected = MovingTargetsRegressor(learner, cv="oob" if is_unseen else "train", **options)
    np.testing.assert_array_equal(automatic.targets_, expected.fit(X, y).targets_)


def test_the_weight_of_the_targets_falls_unless_a_class_is_at_risk():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    for offset, falls in ((0.0, True), (3.0, False)):
        y = (X.sum(axis=1) + 0.5 * rng.normal(size=400) * (1 + offset) > offset).astype(int)
        model = MovingTargetsClassifier(
            LogisticRegression(), CoarseConstraint(), sensitive_columns=0, max_iter=3
        )
        weights = model.fit(X, y).history_["target_weight"][1:]
        np.testing.assert_allclose(weights, [1, 1 / 2, 1 / 3] if falls else 1)
