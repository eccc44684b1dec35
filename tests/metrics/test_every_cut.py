"""The share of rows above every cut: its indicator, and the estimators that bound it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    ConstrainedBoostingRegressor,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    LagrangianDualClassifier,
    LagrangianDualRegressor,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
    project_targets,
)
from gedi_sklearn.exceptions import (
    AttributeRangeWarning,
    CertificateNotIssuedWarning,
    ConstraintNotMetWarning,
)
from gedi_sklearn.kernels import fit_kernel
from gedi_sklearn.metrics import CutsIndicator, gedi, gedi_inference, make_disparity_scorer
from tests.estimator_checks import constrained_estimators

CUTS = {"norm": "sd", "on": "distribution"}


def every_cut(s, norm="sd", **options):
    """Return the indicator of every cut, one by one."""
    cuts = np.unique(s)[:-1]
    return [gedi((s > t).astype(float), norm=norm, **options) for t in cuts]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(12, 80),
    digits=st.integers(0, 3),
    weighted=st.booleans(),
    kernel=st.sampled_from([1, 3, "spline", "groups"]),
)
def test_it_is_the_largest_of_every_cut(seed, n, digits, weighted, kernel):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=n), 1) + np.arange(n) % 7
    s = np.round(x + rng.normal(size=n), digits)
    options = {"sample_weight": rng.integers(1, 5, n) / 2.0 if weighted else None}
    if kernel == "groups":
        options["sensitive_features"] = np.array(list("abcd"))[np.arange(n) % 4]
    else:
        options |= {"sensitive_features": x, "kernel": kernel}
    expected = max(every_cut(s, **options), default=0.0)
    assert gedi(s, **options, **CUTS) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kernel", [1, "spline"])
def test_what_chance_contributes_is_subtracted_at_every_cut(kernel):
    rng = np.random.default_rng(4)
    x = rng.normal(size=60)
    s = np.round(x + rng.normal(size=60), 1)
    indicator = CutsIndicator(fit_kernel(kernel, x[:, None]), "adjusted_sd")
    expected = every_cut(s, "adjusted_sd", sensitive_features=x, kernel=kernel)
    assert indicator.measure(s) == pytest.approx(max(expected), abs=1e-12)
    assert indicator.measure(s) < gedi(s, sensitive_features=x, kernel=kernel, **CUTS)


def test_of_two_groups_it_is_a_multiple_of_the_statistic_of_kolmogorov_and_smirnov():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], [60, 140])
    s = rng.normal(size=200) + 0.5 * (group == "b")
    statistic = kstest(s[group == "a"], s[group == "b"]).statistic
    value = gedi(s, sensitive_features=group, **CUTS)
    assert value == pytest.approx(statistic * np.sqrt(0.3 * 0.7))


def test_it_depends_on_the_order_of_the_scores_alone():
    rng = np.random.default_rng(1)
    x, s = rng.normal(size=(2, 300))
    given = {"sensitive_features": x, "kernel": 2, **CUTS}
    assert gedi(np.exp(s), **given) == gedi(s, **given) == gedi(s, 3 * s, **given)
    assert gedi(-s, **given) == pytest.approx(gedi(s, **given))
    assert gedi(s, 0 * s, **given, relative=True) == 0.0


def test_the_permutation_test_is_exact_where_nothing_depends():
    rng = np.random.default_rng(2)
    p_values = []
    for _ in range(150):
        x, s = rng.normal(size=(2, 40))
        options = {"sensitive_features": x, "kernel": 2, "n_resamples": 39, **CUTS}
        p_values.append(gedi_inference(s, **options, random_state=3).pvalue)
    # On the grid of 1/40 … 1 a uniform p-value is at most a with probability a.
    assert kstest(np.array(p_values) - 0.0125, "uniform").pvalue > 0.01


def test_limits_hold_the_value_of_many_rows():
    def sample(rng, n):
        x = rng.uniform(18, 80, n)
        return x, rng.normal(size=n) * (1 + 0.25 * np.sin(x / 8)) + 0.15 * (x - 49) / 18

    rng = np.random.default_rng(4)
    x, s = sample(rng, 200_000)
    truth = gedi(s, sensitive_features=x, kernel="spline", **CUTS)
    for _ in range(6):
        x, s = sample(rng, 600)
        options = {"sensitive_features": x, "kernel": "spline", "n_resamples": 50, **CUTS}
        found = gedi_inference(s, **options)
        low, high = found.interval
        assert low < truth < found.upper < high < truth + 0.15
        assert found.null_mean < found.null_q95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "l1"}, "Pass norm='sd'"),
        ({"norm": "adjusted_sd"}, "Pass norm='sd'"),
        ({"conditional_on": np.arange(20.0) ** 2}, "does not go with conditional_on"),
    ],
)
def test_what_has_no_meaning_for_cuts_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        gedi(np.arange(20.0), sensitive_features=np.arange(20.0), **{**CUTS, **options})


# --- the constraint


def people(seed=0, n=1500):
    """Return an attribute, further columns, and scores whose spread depends on the attribute."""
    rng = np.random.default_rng(seed)
    age, skill = rng.uniform(20, 70, n), rng.normal(size=n)
    y = 0.05 * (age - 45) + skill * (1 + (age - 20) / 40) + 0.3 * rng.normal(size=n)
    return np.c_[age, skill, skill * age / 40], y


def cuts_of(model, X):
    scores = model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)
    return gedi(scores, sensitive_features=X[:, 0], kernel="spline", **CUTS)


def bounded(kind, threshold=0.2, **options):
    constraint = DependenceConstraint(threshold, on="distribution")
    learner = LinearRegression() if kind is ProjectedRegressor else LogisticRegression()
    return kind(learner, constraint, sensitive_columns=0, **options)


@pytest.mark.parametrize("kind", [ProjectedRegressor, ProjectedClassifier])
@pytest.mark.parametrize("threshold", [0.5, 0.25])
def test_the_bound_is_met_on_rows_held_out(kind, threshold):
    X, y = people(n=4000)
    new_X, _ = people(1, n=20_000)
    if kind is ProjectedClassifier:
        y = (y > 0.5).astype(int)
    plain = bounded(kind, np.inf).fit(X, y)
    model = bounded(kind, threshold).fit(X, y)
    assert 0 < model.share_ < 1
    assert model.threshold_ == pytest.approx(threshold * model.reference_)
    assert cuts_of(model, new_X) / cuts_of(plain, new_X) == pytest.approx(threshold, abs=0.08)
    assert model.verdict_.new_rows.value == pytest.approx(1.0, abs=0.02)
    assert "that of the plain model: more than chance" in str(model.verdict_)
    np.testing.assert_array_equal(plain.predict(new_X), plain.estimator_.predict(new_X))


@pytest.mark.parametrize("power", [1, 1.5])
def test_of_two_paths_within_the_bound_the_nearer_one_is_taken(monkeypatch, power):
    """Means are moved first where they are what depends on x, and not where the spread does."""
    rng = np.random.default_rng(0)
    x, skewed = rng.uniform(-1, 1, 2000), np.exp(rng.normal(size=2000))
    y = x + skewed if power > 1 else skewed * (1 + x) - x / 2
    X = np.c_[x, skewed, skewed * x]
    distances = []
    for powers in ((1, 1.5), (1,), (1.5,)):
        monkeypatch.setattr("gedi_sklearn.post_processing._distribution._POWERS", powers)
        model = bounded(ProjectedRegressor, 0.4).fit(X, y)
        assert model.verdict_.new_rows.value == pytest.approx(1.0, abs=0.02)
        distances.append(np.mean((model.predict(X) - model.estimator_.predict(X)) ** 2))
    assert distances[0] == distances[1 + (power > 1)] == min(distances)
    assert max(distances) > 1.05 * min(distances)


def test_a_bound_on_the_mean_can_raise_a_cut_and_one_on_the_distribution_does_not():
    """Where the rate above a high cut is level because mean and spread cancel out."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 4000)
    X = np.c_[x, rng.normal(size=4000)]
    y = -1.2 * x + np.exp(x) * X[:, 1]
    X = np.c_[X, x * X[:, 1], np.exp(x) * X[:, 1]]

    def above(model):
        s = model.fit(X, y).predict(X)
        cut = (s > np.quantile(s, 0.85)).astype(float)
        return gedi(cut, sensitive_features=x, norm="sd", kernel="spline")

    plain, mean = (
        above(ProjectedRegressor(None, DependenceConstraint(q), sensitive_columns=0))
        for q in (np.inf, 0.0)
    )
    whole = above(bounded(ProjectedRegressor, 0.1))
    assert mean > 1.5 * plain
    assert whole < plain


def people_seen_through(seed, n):
    """Return the same with a column that says much of the attribute."""
    X, y = people(seed, n)
    proxy = (X[:, 0] - 45) / 14 + 0.3 * np.random.default_rng(seed).normal(size=n)
    return np.c_[X[:, :2], proxy, X[:, 1] * proxy], y


@pytest.mark.parametrize("kind", [ProjectedRegressor, ProjectedClassifier])
def test_the_bound_is_met_without_the_attribute_of_new_rows(kind):
    (X, y), (new_X, _) = people_seen_through(0, 4000), people_seen_through(1, 20_000)
    y = (y > 0.5).astype(int) if kind is ProjectedClassifier else y
    powers = make_pipeline(PolynomialFeatures(4), LinearRegression())
    how = {"sensitive_at_predict": False, "drop_sensitive": True, "attribute_estimator": powers}
    plain, model = (bounded(kind, q, **how).fit(X, y) for q in (np.inf, 0.25))
    assert cuts_of(model, new_X) / cuts_of(plain, new_X) == pytest.approx(0.25, abs=0.06)
    hidden = new_X.copy()
    hidden[:, 0] = 45.0
    np.testing.assert_array_equal(model.predict(hidden), model.predict(new_X))
    with pytest.raises(ValueError, match="does not use it"):
        model.predict(new_X, sensitive_features=new_X[:, 0])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(new_X), model.predict(new_X))


def test_a_bound_is_missed_where_nothing_is_said_of_the_attribute():
    X, y = people_seen_through(0, 1000)
    how = {"sensitive_at_predict": False, "attribute_estimator": DummyRegressor()}
    with pytest.warns(ConstraintNotMetWarning, match="predict the attribute too poorly"):
        bounded(ProjectedRegressor, 0.1, **how).fit(X, y)


def test_as_many_rows_are_positive_as_by_the_learner():
    X, y = people()
    y = np.where(y > 1, "yes", "no")
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    model = bounded(ProjectedClassifier, cv="train").fit(X, y, sample_weight=weight)
    plain = np.average(model.estimator_.predict(X) == "yes", weights=weight)
    assert np.average(model.predict(X) == "yes", weights=weight) == pytest.approx(plain, abs=2e-3)
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    assert proba.min() >= 0
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_scores_of_one_attribute_keep_their_order():
    X, y = people()
    model = bounded(ProjectedRegressor).fit(X, y)
    row = np.tile(X[:1], (200, 1))
    row[:, 1] = np.linspace(-8, 8, 200)  # far beyond the scores of the fit
    order = np.diff(model.estimator_.predict(row)) * np.diff(model.predict(row))
    assert (order >= 0).all()
    assert len(np.unique(model.predict(row))) == 200


@pytest.mark.parametrize("kind", [ProjectedRegressor, ProjectedClassifier])
def test_it_is_an_estimator_like_the_others(kind):
    X, y = people(n=800)
    y = (y > 0.5).astype(int) if kind is ProjectedClassifier else y
    frame = pd.DataFrame(X, columns=["age", "skill", "both"])
    model = clone(bounded(kind)).set_params(sensitive_columns="age").fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(clone(model).fit(frame, y).predict(frame), model.predict(frame))
    scorer = make_disparity_scorer(model.constraint, sensitive_columns="age")
    grid = {"constraint__threshold": [0.2, np.inf]}
    search = GridSearchCV(clone(model), grid, scoring=scorer, cv=2).fit(frame, y)
    assert search.best_params_["constraint__threshold"] == 0.2


def test_a_certificate_holds_the_limit_below_the_bound():
    X, y = people(n=3000)
    model = bounded(ProjectedRegressor, 0.6, confidence=0.9).fit(X, y)
    looser = bounded(ProjectedRegressor, 0.6).fit(X, y)
    assert model.certificate_.upper <= model.threshold_
    assert model.share_ > looser.share_


def test_levels_of_text_have_no_folds_and_no_chance_to_subtract():
    X, y = people(n=600)
    level = np.array(list("abcdef"))[np.random.default_rng(0).integers(0, 6, 600)]
    y = y + (level == "a") - (level == "b")
    shown = pd.get_dummies(level).to_numpy(float)
    model = ProjectedRegressor(None, DependenceConstraint(0.4, on="distribution"), confidence=0.5)
    model.fit(np.c_[X, shown], y, sensitive_features=level)
    value = gedi(model.targets_, sensitive_features=level, **CUTS)
    assert value <= model.threshold_ * (1 + 1e-9)
    assert model.verdict_.training.value == pytest.approx(value / model.threshold_)
    assert model.verdict_.new_rows is None
    assert model.certificate_ is None or "that the correction has seen" in str(model.certificate_)


def test_folds_that_lack_a_rare_value_leave_new_rows_unmeasured():
    """The error was of a fold: it said that the attribute is constant."""
    X, y = people(n=60)
    X[:, 0] = np.arange(60) < 2
    couples = np.arange(60) // 2
    model = bounded(ProjectedRegressor).fit(X, y, groups=couples)
    assert model.verdict_.training is not None
    assert model.verdict_.new_rows is None


@pytest.mark.parametrize("blind", [False, True])
def test_a_level_that_does_not_count_needs_no_column(blind):
    rng = np.random.default_rng(0)
    level, weight = np.array(list("abc"))[np.arange(300) % 3], np.arange(300) % 3 < 2
    X = rng.normal(size=(300, 2)) + (level == "a")[:, None]
    y = X.sum(axis=1) + 0.1 * rng.normal(size=300)
    how = {"sensitive_at_predict": False, "attribute_estimator": LinearRegression()}
    constraint = DependenceConstraint(0.5, on="distribution")
    model = ProjectedRegressor(None, constraint, **how if blind else {})
    whole = model.fit(X, y, sensitive_features=level, sample_weight=weight).targets_[weight]
    alone = model.fit(X[weight], y[weight], sensitive_features=level[weight])
    np.testing.assert_allclose(whole, alone.targets_)


def test_no_certificate_is_issued_that_the_rows_do_not_bear_out():
    X, y = people(n=300)
    with pytest.warns(CertificateNotIssuedWarning, match="no certificate can be issued"):
        model = bounded(ProjectedRegressor, 0.05, confidence=0.95).fit(X, y)
    assert model.certificate_ is None
    assert model.verdict_.new_rows.answer == "cannot be told"


def test_a_weight_of_2_is_a_row_twice():
    X, y = people(n=400)
    weight = np.random.default_rng(0).integers(0, 3, 400)
    model, again = (bounded(ProjectedRegressor, cv="train") for _ in range(2))
    model.fit(X, y, sample_weight=weight)
    again.fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert model.share_ == pytest.approx(again.share_)
    np.testing.assert_allclose(model.predict(X), again.predict(X))


def test_last_bits_of_the_weights_change_no_prediction():
    """Nobody of an attribute is below its lowest score, whatever its sum is rounded to."""
    X, y = people(n=400)
    X[:, 0] = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.25, 0.5, 0.75]))
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, 400)
    model, again = (bounded(ProjectedRegressor, cv="train") for _ in range(2))
    model.fit(X, y, sample_weight=weight)
    again.fit(X, y, sample_weight=weight * (1 + 1e-13 * rng.choice([-1, 1], 400)))
    np.testing.assert_allclose(model.predict(X), again.predict(X), rtol=1e-9, atol=1e-9)


def test_frames_of_polars_are_taken_as_those_of_pandas():
    X, y = people(n=300)
    columns = dict(zip(["age", "skill", "both"], X.T, strict=True))
    models = [
        bounded(ProjectedRegressor).set_params(sensitive_columns="age").fit(frame, y)
        for frame in (pl.DataFrame(columns), pd.DataFrame(columns))
    ]
    first, second = (model.predict(pl.DataFrame(columns)) for model in models)
    np.testing.assert_array_equal(first, second)


# --- extremes


def test_a_bound_below_what_chance_gives_is_not_said_to_be_met():
    X, y = people(n=100)
    model = bounded(ProjectedRegressor, 0.01).fit(X, y)
    assert model.share_ == 1.0
    assert model.verdict_.new_rows.low <= 1 < model.verdict_.new_rows.high


def test_constant_scores_stay():
    X = np.c_[np.arange(60.0), np.zeros(60)]
    constraint = DependenceConstraint(0.1, on="distribution", relative=False)
    model = ProjectedRegressor(Ridge(alpha=1e12), constraint, sensitive_columns=0, cv="train")
    model.fit(X, np.ones(60))
    assert model.share_ == 0.0
    np.testing.assert_allclose(model.predict(X), 1.0)


def test_two_scores_are_moved_as_their_shares_ask():
    X, _ = people()
    high = (np.arange(len(X)) % 10 < X[:, 0] / 10).astype(float)

    class Same(LinearRegression):
        def predict(self, X):
            return X[:, -1]

    model = ProjectedRegressor(
        Same(), DependenceConstraint(on="distribution"), sensitive_columns=0, cv="train"
    )
    X = np.c_[X, high]
    with pytest.warns(ConstraintNotMetWarning, match="scores are tied"):
        model.fit(X, high)
    assert np.isfinite(model.predict(X)).all()


def test_a_constant_attribute_leaves_the_plain_learner():
    X, y = people(n=200)
    X[:, 0] = 3.0
    with pytest.warns(UserWarning, match="nothing to constrain"):
        model = bounded(ProjectedRegressor).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X))


def test_an_attribute_out_of_range_counts_as_its_end():
    X, y = people()
    model = bounded(ProjectedRegressor).fit(X, y)
    far, end = X[:50].copy(), X[:50].copy()
    far[:, 0], end[:, 0] = 500.0, X[:, 0].max()
    given = {"sensitive_features": None}
    shift = model.estimator_.predict(far) - model.estimator_.predict(end)
    assert np.ptp(shift) < 1e-9  # the learner's own, the same for all
    with pytest.warns(AttributeRangeWarning):
        assert np.isfinite(model.predict(far, **given)).all()


# --- refusals


@pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint, DidiConstraint])
def test_other_constraints_do_not_bound_cuts(constraint):
    X, y = people(n=60)
    model = ProjectedRegressor(None, constraint(on="distribution"), sensitive_columns=0)
    with pytest.raises(ValueError, match="on='distribution' is for DependenceConstraint"):
        model.fit(X, y)


WHO = {
    "distribution": "only ProjectedRegressor, and ProjectedClassifier of two classes",
    "probabilities": "ProjectedClassifier, ConstrainedBoostingClassifier and "
    "LagrangianDualClassifier bound",
    "residuals": "ProjectedRegressor (and|or) ProjectedClassifier",
}
ESTIMATORS = [cls for cls in constrained_estimators() if "backend" not in cls().get_params()]
BOOSTING = [ConstrainedBoostingClassifier, ConstrainedBoostingRegressor]
DUAL = [
    pytest.param(cls, marks=pytest.mark.torch)
    for cls in (LagrangianDualClassifier, LagrangianDualRegressor)
]
BOUNDING = {
    "distribution": {ProjectedRegressor, ProjectedClassifier},
    "probabilities": {ProjectedClassifier, ConstrainedBoostingClassifier, LagrangianDualClassifier},
    "residuals": {ProjectedRegressor, ProjectedClassifier},
}


@pytest.mark.parametrize("on", list(WHO))
@pytest.mark.parametrize("kind", [*ESTIMATORS, *BOOSTING, *DUAL], ids=lambda kind: kind.__name__)
def test_who_cannot_bound_an_output_says_who_can(kind, on):
    """Moving Targets among them: hard targets are labels, which have no probability."""
    if kind in BOUNDING[on]:
        return
    X, y = people(n=60)
    y = (y > 0).astype(int) if is_classifier(kind()) else y
    constraint = DependenceConstraint(on=on, relative=on != "residuals")
    with pytest.raises(ValueError, match=WHO[on]):
        kind(constraint=constraint, sensitive_columns=0).fit(X, y)


@pytest.mark.parametrize("on", list(WHO))
def test_projected_targets_say_who_can(on):
    X, y = people(n=60)
    constraint = DependenceConstraint(on=on, relative=on != "residuals")
    with pytest.raises(ValueError, match=WHO[on]):
        project_targets(y, sensitive_features=X[:, 0], constraint=constraint)


def test_what_does_not_go_with_it_is_refused():
    X, y = people(n=120)
    constraint = DependenceConstraint(on="distribution")
    for wrong in ({"conditional_on": 1}, {"constraint": [constraint]}):
        with pytest.raises(ValueError, match="no list of constraints, conditional_on or further"):
            bounded(ProjectedRegressor).set_params(**wrong).fit(X, y)
    with pytest.raises(ValueError, match=r"moves their ranks. Use one of them"):
        bounded(ProjectedRegressor, loss="kl").set_params(estimator=None).fit(X, abs(y))
    with pytest.raises(ValueError, match="takes any number of classes"):
        bounded(ProjectedClassifier).fit(X, np.digitize(y, [-1, 1]))
    subset = DependenceConstraint(on="distribution", subset=1, relative=False)
    with pytest.raises(ValueError, match="without subset="):
        ProjectedRegressor(None, subset, sensitive_columns=0).fit(X, y)


def test_the_kernel_is_the_constraints():
    X, y = people()
    constraint = DependenceConstraint(kernel=PolynomialKernel(2), on="distribution")
    model = ProjectedRegressor(None, constraint, sensitive_columns=0).fit(X, y)
    assert model.kernel_.n_columns == 2
