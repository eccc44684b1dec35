"""Constraints on some of the rows, and on residuals: what they bound, where they are refused."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_predict, cross_val_score

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    LagrangianDualClassifier,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
    project_targets,
)
from gedi_sklearn.metrics import (
    didi,
    gedi,
    gedi_coefficients,
    gedi_inference,
    hgr,
    make_disparity_scorer,
)
from gedi_sklearn.model_selection import tradeoff_curve
from tests.oracles import cross_fitted

CUBIC = PolynomialKernel(3, standardize=True)
INDICATORS = {"gedi": gedi, "didi": didi, "didi_of_bins": partial(didi, n_bins=3), "hgr": hgr}


def inferred(*args, names=("interval", "null_q95", "pvalue", "upper"), **options):
    """Return numbers of an inference, in a row."""
    found = gedi_inference(*args, **options, n_resamples=99)
    return np.hstack([getattr(found, name) for name in names])


# Each as a function that returns numbers.
INFERENCE = {
    "asymptotic": inferred,
    "permutation": partial(inferred, names=("null_mean", "pvalue"), method="permutation"),
    "batch": partial(inferred, names=("upper",), norm="sd", fitted=True, n_new=100),
}


@pytest.fixture(scope="module")
def data():
    """The attribute in column 0; a class and a number that it sways; weights, some of them 0."""
    rng = np.random.default_rng(0)
    n = 800
    x = rng.uniform(-1.5, 1.5, n)
    X = np.c_[x, x + 0.5 * rng.normal(size=n), rng.normal(size=(n, 2))]
    t = X[:, 1] + X[:, 2] + 0.5 * x**2 + rng.normal(size=n)
    w = rng.uniform(0.5, 2, n) * (rng.random(n) > 0.1)
    return X, t, np.where(t > np.median(t), "yes", "no"), w


@pytest.mark.parametrize("name", INDICATORS)
def test_an_indicator_on_a_subset_is_that_of_its_rows(data, name):
    X, _, y, w = data
    z = np.where(X[:, 1] > 0, "yes", "no")
    x = X[:, 0] if name != "didi" else np.digitize(X[:, 0], [-0.5, 0.5])
    rows = y == "yes"
    given = {"sample_weight": w, "pos_label": "yes"}
    expected = INDICATORS[name](
        y[rows], z[rows], sensitive_features=x[rows], sample_weight=w[rows], pos_label="yes"
    )
    for subset in ("positive", "yes", lambda labels: labels == "yes"):
        value = INDICATORS[name](y, z, sensitive_features=x, subset=subset, **given)
        assert value == expected
    with pytest.warns(UndefinedMetricWarning, match="subset='none' holds no row"):
        assert np.isnan(INDICATORS[name](y, z, sensitive_features=x, subset="none", **given))


@pytest.mark.parametrize("name", INDICATORS)
def test_an_indicator_of_residuals_is_that_of_the_difference(data, name):
    X, t, _, w = data
    x = X[:, 0] if name != "didi" else np.digitize(X[:, 0], [-0.5, 0.5])
    form = {"task": "regression"} if "didi" in name else {}
    form |= {"method": "kernel"} if name == "hgr" else {}
    given = {"sensitive_features": x, "sample_weight": w, **form}
    expected = INDICATORS[name](X[:, 1] - t, **given)
    assert INDICATORS[name](t, X[:, 1], on="residuals", **given) == pytest.approx(expected)
    with pytest.raises(ValueError, match="y_pred is None"):
        INDICATORS[name](t, on="residuals", **given)
    for special in ({"subset": 1.0}, {"on": "residuals"}):
        with pytest.raises(ValueError, match=r"relative=True with .* Pass relative=False"):
            INDICATORS[name](t, X[:, 1], relative=True, **special, **given)


@pytest.mark.parametrize("name", INFERENCE)
@pytest.mark.parametrize("covariate", [False, True])
def test_inference_on_a_subset_is_that_of_its_rows(data, name, covariate):
    X, t, y, w = data
    infer, rows = INFERENCE[name], y == "yes"
    given = {"sensitive_features": X[:, 0], "sample_weight": w, "kernel": X[:, :1] ** [1, 2]}
    given |= {"conditional_on": X[:, 2]} if covariate else {}
    inside = {key: value[rows] for key, value in given.items()}
    z = np.where(X[:, 1] > 0, "yes", "no")
    expected = infer(y[rows], z[rows], pos_label="yes", **inside)
    for subset in ("positive", "yes", lambda labels: labels == "yes"):
        assert_array_equal(infer(y, z, pos_label="yes", subset=subset, **given), expected)
    # What is predicted for the others has no say.
    other = np.where(rows, z, "no")
    assert_array_equal(infer(y, other, pos_label="yes", subset="yes", **given), expected)
    with pytest.warns(UndefinedMetricWarning, match="subset='none' holds no row"):
        assert np.isnan(infer(y, z, pos_label="yes", subset="none", **given)).all()
    assert_allclose(
        infer(t, X[:, 1], on="residuals", **given), infer(X[:, 1] - t, **given), rtol=1e-9
    )
    with pytest.raises(ValueError, match="y_pred is None"):
        infer(t, on="residuals", **given)
    with pytest.raises(ValueError, match=r"relative=True with .* Pass relative=False"):
        infer(t, X[:, 1], on="residuals", relative=True, **given)


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_weights_outside_of_a_subset_have_no_say(data, norm):
    X, _, y, _ = data
    z = np.where(X[:, 1] > 0, "yes", "no")
    counts = np.arange(len(y)) % 3 + 1
    options = {"pos_label": "yes", "subset": "positive", "norm": norm}
    given = [y, z, X[:, 0], X[:, :1] ** [1, 2]]

    def measure(indicator, weight, y, z, x, kernel):
        return indicator(y, z, sensitive_features=x, kernel=kernel, sample_weight=weight, **options)

    repeated = [np.repeat(own, counts, axis=0) for own in given]
    assert measure(gedi, counts, *given) == pytest.approx(measure(gedi, None, *repeated))
    # Each row of the subset is one observation, whatever the weights of the others.
    other = np.where(y == "yes", 2, counts)
    for indicator in (partial(inferred, names=(own,)) for own in ("interval", "upper")):
        assert_allclose(measure(indicator, other, *given), measure(indicator, None, *given))


def test_residuals_of_classes_are_those_of_their_columns():
    y, z = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 3, 1, 1, 2, 0])
    group = np.array([0, 1, 0, 1, 0, 1])
    value = didi(y, z, sensitive_features=group, task="classification", on="residuals")
    columns = [(z == c) * 1.0 - (y == c) for c in range(4)]
    assert value == pytest.approx(
        sum(didi(c, sensitive_features=group, task="regression") for c in columns)
    )


@pytest.mark.parametrize("metric", ["gedi", "gedi_upper", "didi", "didi_of_bins", "hgr"])
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_a_scorer_measures_the_rows_of_its_subset(data, metric, method):
    X, _, y, _ = data
    X = np.c_[np.digitize(X[:, 0], [-0.5, 0.5]), X[:, 1:]] if metric == "didi" else X
    model = LogisticRegression().fit(X, y)
    rows = y == "yes"
    options = {"sensitive_columns": 0, "response_method": method}
    options |= {"pos_label": "yes"} if method == "predict" else {}
    options |= {"method": "kernel"} if metric == "hgr" else {}
    options |= {"n_bins": 3} if metric == "didi_of_bins" else {}
    make = partial(make_disparity_scorer, metric.removesuffix("_of_bins"))
    plain, special = make(**options), make(**options, subset="positive")
    assert special(model, X, y) == pytest.approx(plain(model, X[rows], y[rows]))
    assert clone(special, safe=False)._kwargs["subset"] == "positive"
    with pytest.raises(ValueError, match="Pass relative=False"):
        make(relative=True, subset="positive")
    with pytest.warns(UndefinedMetricWarning, match="holds no row"):
        assert np.isnan(make(**options, subset="none")(model, X, y))
    scorer = make_disparity_scorer(
        sensitive_columns=0, pos_label="yes", subset="yes", on="residuals"
    )
    assert (cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=3) < 0).all()


@pytest.mark.parametrize("indicator", [gedi, didi, hgr])
def test_of_text_positive_needs_pos_label(indicator):
    labels = np.array(["no", "yes"] * 20)
    given = {"sensitive_features": np.arange(40) % 5, "subset": "positive"}
    with pytest.raises(ValueError, match=r"subset='positive' needs two classes.*or pos_label"):
        indicator(labels, labels, **given)


def test_positive_is_the_class_of_this_name_or_an_error():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    moods = np.array(["negative", "neutral", "positive"])[np.arange(60) % 3]
    scores = rng.random(60)
    how = {"sensitive_features": x, "kernel": 1}
    given = {"pos_label": "positive", **how}
    named = gedi(moods, scores, subset="positive", **given)
    assert named == gedi(moods, scores, subset=lambda y: y == "positive", **given) > 0
    rows = moods != "neutral"
    how["sensitive_features"] = x[rows]
    with pytest.raises(ValueError, match=r"means the class 'negative', and .* y == 'negative'"):
        gedi(moods[rows], scores[rows], subset="positive", pos_label="negative", **how)
    others = np.where(moods == "positive", "positive", "zero")  # the second of two is "zero"
    model = ProjectedClassifier(constraint=CoarseConstraint(relative=False, subset="positive"))
    with pytest.raises(ValueError, match="means the class 'zero'"):
        model.fit(x[:, None], others, sensitive_features=x)


CONSTRAINTS = {
    "coarse": CoarseConstraint(0.02, kernel=CUBIC, relative=False),
    "sd": DependenceConstraint(0.02, relative=False),
    "fine": FineConstraint(0.02, kernel=CUBIC, relative=False, slack=0.5),
    "didi": DidiConstraint(0.1, relative=False),
}


def measured(constraint, y, z, x, **options):
    """Return what a constraint bounds, and its bound."""
    if constraint.name == "didi":
        return didi(y, z, sensitive_features=x, pos_label="yes", **options)
    if constraint.name == "fine":
        rows = y == "yes" if "subset" in options else np.full(len(y), True)
        chosen = (z[rows] == "yes") * 1.0
        return abs(gedi_coefficients(chosen, sensitive_features=x[rows], kernel=CUBIC)[0])
    options |= {"kernel": constraint.kernel, "norm": constraint.norm}
    return gedi(y, z, sensitive_features=x, pos_label="yes", **options)


@pytest.mark.parametrize(
    ("name", "weighted"),
    [("coarse", False), ("coarse", True), ("sd", True), ("fine", False), ("didi", True)],
)
def test_equal_opportunity_holds_of_the_positive_rows(data, name, weighted):
    X, _, y, w = data
    w = w if weighted else None
    constraint = clone(CONSTRAINTS[name]).set_params(subset="positive")
    if name == "didi":
        X = np.c_[np.digitize(X[:, 0], [-0.5, 0.5]), X[:, 1:]]
    model = ProjectedClassifier(constraint=constraint, sensitive_columns=0)
    model.fit(X, y, sample_weight=w)
    options = {"subset": "positive", "sample_weight": w}
    value = measured(constraint, y, model.targets_, X[:, 0], **options)
    assert value <= model.threshold_ * (1 + 1e-9)
    plain = np.where(
        cross_val_predict(
            LogisticRegression(), X, y, cv=5, method="predict_proba", params={"sample_weight": w}
        )[:, 1]
        > 0.5,
        "yes",
        "no",
    )
    assert measured(constraint, y, plain, X[:, 0], **options) > 3 * model.threshold_
    # Rows outside the subset have no say: demographic parity is not what was asked.
    assert measured(constraint, y, model.targets_, X[:, 0], sample_weight=w) > model.threshold_


def test_a_certificate_promises_the_bound_of_the_subset(data):
    X, _, y, _ = data
    constraint = DependenceConstraint(0.2, kernel=1, relative=False, subset="positive")
    model = ProjectedClassifier(constraint=constraint, sensitive_columns=0, confidence=0.9)
    certificate = model.fit(X, y).certificate_
    assert certificate.bound == pytest.approx(0.2)
    assert certificate.upper <= 0.2
    value = gedi(
        y,
        model.predict(X),
        sensitive_features=X[:, 0],
        pos_label="yes",
        subset="positive",
        norm="sd",
    )
    assert value < certificate.upper


def test_equal_opportunity_holds_on_new_rows(data):
    X, _, y, _ = data
    train, new = np.arange(800) % 2 == 0, np.arange(800) % 2 == 1
    constraint = CoarseConstraint(0.01, relative=False, subset="positive")
    for options in ({}, {"sensitive_at_predict": False, "drop_sensitive": True}):
        model = ProjectedClassifier(constraint=constraint, sensitive_columns=0, **options)
        model.fit(X[train], y[train])
        plain = model.estimator_.predict(X[new][:, 1:] if options else X[new])
        given = {"sensitive_features": X[new, 0], "pos_label": "yes", "subset": "positive"}
        after = gedi(y[new], model.predict(X[new]), **given)
        assert after < 0.4 * gedi(y[new], plain, **given)


# What the projection that it is compared with leaves of other shapes is not asked here.
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")
@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize("options", [{}, {"target_bounds": (-8.0, 8.0)}], ids=["free", "bounds"])
def test_residuals_of_real_targets_meet_the_bound_exactly(data, blind, options):
    X, t, _, w = data
    if blind and options:
        pytest.skip("bounds on the targets need the attribute at prediction")
    options = dict(options)
    if blind:
        options |= {"sensitive_at_predict": False, "attribute_estimator": LinearRegression()}
    constraint = CoarseConstraint(0.01, relative=False, on="residuals")
    learner = LinearRegression(fit_intercept=False)
    model = ProjectedRegressor(learner, constraint=constraint, sensitive_columns=[0], **options)
    model.set_params(estimator=Underfitted()).fit(X, t, sample_weight=w)
    residual = model.targets_ - t
    assert gedi(residual, sensitive_features=X[:, 0], sample_weight=w) == pytest.approx(0.01)
    if not (blind or options):
        p = cross_fitted(Underfitted(), X, t, weight=w)
        # The nearest residuals are the projection of those of the predictions.
        near = project_targets(
            p - t,
            sensitive_features=X[:, 0],
            sample_weight=w,
            constraint=CoarseConstraint(0.01, relative=False),
        )
        assert_allclose((model.targets_ - t)[w > 0], near.targets[w > 0], atol=1e-9)


class Underfitted(LinearRegression):
    """A learner that has not seen the attribute, so that its residuals depend on it."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X[:, 2:], y, sample_weight)

    def predict(self, X):
        return super().predict(X[:, 2:])


def test_residuals_of_classes_meet_the_bound(data):
    X, _, y, _ = data
    constraint = CoarseConstraint(0.02, relative=False, on="residuals")
    model = ProjectedClassifier(LogisticRegression(C=1e-4), constraint, sensitive_columns=0).fit(
        X, y
    )
    residual = (model.targets_ == "yes") * 1.0 - (y == "yes")
    value = gedi(residual, sensitive_features=X[:, 0])
    assert 0.01 < value <= 0.02 * (1 + 1e-9)


def test_a_callable_of_real_targets_is_for_attribute_blind_corrections(data):
    X, t, _, _ = data
    constraint = CoarseConstraint(0.05, relative=False, subset=lambda y: y > 1)
    model = ProjectedRegressor(constraint=constraint, sensitive_columns=0)
    with pytest.raises(ValueError, match=r"subset= of real targets.*sensitive_at_predict=False"):
        model.fit(X, t)
    model.set_params(sensitive_at_predict=False).fit(X, t)
    value = gedi(t, model.targets_, sensitive_features=X[:, 0], subset=lambda y: y > 1)
    assert value == pytest.approx(0.05)


# In few steps they only come nearer.
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning")
def test_moving_targets_take_a_subset_with_unseen_predictions(data):
    X, _, y, _ = data
    constraint = CoarseConstraint(0.02, relative=False, subset="positive")
    model = MovingTargetsClassifier(constraint=constraint, cv=3, max_iter=3, sensitive_columns=0)
    model.fit(X, y)
    value = gedi(y, model.targets_, sensitive_features=X[:, 0], subset="positive", pos_label="yes")
    assert value <= 0.02 * (1 + 1e-9)
    plain = gedi(
        y,
        LogisticRegression().fit(X, y).predict(X),
        sensitive_features=X[:, 0],
        subset="positive",
        pos_label="yes",
    )
    after = gedi(
        y, model.predict(X), sensitive_features=X[:, 0], subset="positive", pos_label="yes"
    )
    assert after < plain


SUBSET = CoarseConstraint(0.02, relative=False, subset="positive")
RESIDUALS = CoarseConstraint(0.02, relative=False, on="residuals")


@pytest.mark.parametrize(
    "fit",
    [
        lambda own, X, y: project_targets(y, sensitive_features=X[:, 0], constraint=own),
        lambda own, X, y: MovingTargetsClassifier(constraint=own, cv="train").fit(
            X, y, sensitive_features=X[:, 0]
        ),
        pytest.param(
            lambda own, X, y: LagrangianDualClassifier(constraint=own).fit(
                X, y, sensitive_features=X[:, 0]
            ),
            marks=pytest.mark.torch,
        ),
        lambda own, X, y: ProjectedClassifier(constraint=own, cv="train").fit(
            X, y, sensitive_features=X[:, 0]
        ),
    ],
    ids=["targets", "moving targets", "lagrangian", "in-sample"],
)
@pytest.mark.parametrize("own", [SUBSET, RESIDUALS], ids=["subset", "residuals"])
def test_they_are_refused_where_they_would_mislead(data, fit, own):
    X, _, y, _ = data
    with pytest.raises(ValueError, match=r"needs out-of-fold predictions"):
        fit(own, X, y)


def test_residuals_are_for_the_projected_estimators(data):
    X, t, _, _ = data
    model = MovingTargetsRegressor(constraint=RESIDUALS, cv=3, sensitive_columns=0)
    with pytest.raises(ValueError, match=r"on='residuals' cannot .* ProjectedRegressor"):
        model.fit(X, t)


@pytest.mark.parametrize("own", [SUBSET, RESIDUALS], ids=["subset", "residuals"])
def test_boosting_and_curves_refuse_them(data, own):
    X, _, y, _ = data
    pytest.importorskip("lightgbm")
    booster = ConstrainedBoostingClassifier(constraint=own, backend="lightgbm", n_estimators=2)
    with pytest.raises(ValueError, match="needs out-of-fold predictions"):
        booster.fit(X, y, sensitive_features=X[:, 0])
    model = ProjectedClassifier(constraint=own, sensitive_columns=0)
    with pytest.raises(ValueError, match="Compare thresholds with cross_validate"):
        tradeoff_curve(model, X, y, thresholds=[0.1, 0.2], cv=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relative": True, "subset": "positive"}, "relative=True with subset='positive'"),
        ({"relative": True, "on": "residuals"}, "relative=True with on='residuals'"),
        ({"relative": False, "subset": "maybe"}, "subset='maybe' holds no row"),
        ({"relative": False, "subset": lambda y: y}, "subset must return a boolean array"),
    ],
)
def test_what_does_not_go_together_is_refused(data, options, message):
    X, _, y, _ = data
    model = ProjectedClassifier(constraint=CoarseConstraint(**options), sensitive_columns=0)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_a_class_of_several_has_a_subset(data):
    X, t, _, _ = data
    y = np.digitize(t, [-0.5, 1.0])
    constraint = CoarseConstraint(0.03, relative=False, subset=2)
    model = ProjectedClassifier(constraint=constraint, sensitive_columns=0).fit(X, y)
    for c in range(3):
        chosen = (model.targets_ == c) * 1.0
        assert gedi(chosen[y == 2], sensitive_features=X[y == 2, 0]) <= 0.03 * (1 + 1e-9)
    with pytest.raises(ValueError, match="subset='positive' needs two classes"):
        model.set_params(constraint=SUBSET).fit(X, y)


def test_constraints_say_their_notion():
    assert "in subset 'positive'" in SUBSET.in_words()
    assert "of residuals" in RESIDUALS.in_words()
    assert_array_equal(sorted(clone(SUBSET).get_params()), sorted(SUBSET.get_params()))
