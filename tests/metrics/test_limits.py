"""The rule of limits: few rows, rare events, skewed values, clusters."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, binomtest, t
from scipy.stats import norm as norm_distribution
from sklearn.linear_model import LinearRegression

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn._certificate import issue_certificate
from gedi_sklearn._verdict import make_verdict
from gedi_sklearn.exceptions import CertificateNotIssuedWarning, FewRowsWarning
from gedi_sklearn.metrics import (
    LinearIndicator,
    _limits,
    gedi_inference,
    group_indicator,
    make_disparity_scorer,
    upper_limits,
)
from gedi_sklearn.projection import Projection

quiet = pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.FewRowsWarning")


def two_groups(n, k):
    """Return the group and the outcome of rows, n[j] of them with k[j] events."""
    group = np.repeat([0.0, 1.0], n)
    y = np.concatenate([np.arange(n[j]) < k[j] for j in (0, 1)]) * 1.0
    return group, y


def people(seed, n_people=60, n_rows=30, slope=0.5):
    """Return persons, an attribute of theirs and outcomes that a person's rows share half of."""
    rng = np.random.default_rng(seed)
    x, own = rng.uniform(-1.7, 1.7, n_people), rng.normal(size=n_people)
    person = np.repeat(np.arange(n_people), n_rows)
    noise = rng.normal(size=len(person))
    return person, x[person], slope * x[person] + np.sqrt(0.5) * (own[person] + noise)


@pytest.mark.parametrize(
    "constraint",
    [CoarseConstraint(0.2), CoarseConstraint(0.2, kernel=3), DependenceConstraint(0.2)],
)
@pytest.mark.parametrize("has_groups", [False, True])
def test_limits_from_both_sides_are_those_from_each(constraint, has_groups):
    person, x, y = people(0)
    groups = person if has_groups else None
    with Projection(y, sensitive_features=x, constraint=constraint) as projection:
        block = projection.fitted_constraint_.parts[0].block
    values, low, high = _limits.limits_of_sizes(block, y[:, None], 0.95, groups)
    np.testing.assert_array_equal(values, block.allowed.sizes(block.measure(y[:, None])[0]))
    np.testing.assert_array_equal(low, _limits.lower_limits(block, y[:, None], 0.95, groups))
    options = {"simultaneous": True, "groups": groups}
    np.testing.assert_array_equal(high, upper_limits(block, y[:, None], 0.95, **options).values)
    # The quantile of the norm of errors, from draws of them.
    errors = _limits._errors_of(block, y[:, None], groups)
    covariance = block.operator @ errors.covariance @ block.operator.T
    if block.allowed.norm == "sd":  # in its axes, on which that norm does not depend
        covariance = np.diag(np.linalg.eigvalsh(covariance))
    draws = _limits.with_covariance(_limits.fixed_draws(len(covariance)), covariance)
    noise = block.allowed.sizes(draws.T)
    found = _limits._quantile_of_noise(block, errors, 0.95)
    np.testing.assert_allclose(found, _limits.quantile_of_draws(noise, 0.95), rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_sums_that_cannot_err_do_not_widen_the_others(seed):
    """Deviations of a group add up to 0 over all classes, but for rounding."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=600)
    group, grade = np.digitize(x, [-0.5, 0.5]), np.digitize(x + rng.normal(size=600), [-0.6, 0.6])
    found = []
    for weight in (None, np.ones(600), np.full(600, 3.0)):
        given = {"sensitive_features": group, "sample_weight": weight, "loss": "hamming"}
        with Projection(grade, constraint=DidiConstraint(), **given) as projection:
            block = projection.fitted_constraint_.parts[0].block
        found.append(upper_limits(block, np.eye(3)[grade], 0.9, simultaneous=True).values[0])
    np.testing.assert_allclose(found, found[0], rtol=1e-9)
    assert found[0] < 1.5 * block.allowed.sizes(block.measure(np.eye(3)[grade])[0])[0]


def test_coefficients_of_every_unit_count_at_the_level_of_all():
    given = {"norm": "each", "confidence": 0.9, "n_free": 100, "simultaneous": True}
    of_units = _limits.error_quantile(np.diag([1.0, 1e-20, 1e12]), **given)
    assert of_units == pytest.approx(_limits.error_quantile(np.eye(3), **given), rel=1e-9)


# What a sample lacks.
def test_no_event_in_a_group_of_sixty_leaves_room_for_a_rate_above_zero():
    # 0 of 60: the exact one-sided 95 % limit of the rate is 1 − .05^(1/60) = .0487; the other rate
    # is 10 of 1,940 = .0052.
    group, y = two_groups((1940, 60), (10, 0))
    with pytest.warns(FewRowsWarning, match="= 1 has 60 rows, 0 of them labelled 1"):
        limit = gedi_inference(y, sensitive_features=group).upper
    assert 0.0487 - 0.0052 < limit < 1.5 * 0.0487


@quiet
def test_rates_of_two_groups_are_covered_exactly():
    """By enumeration of all outcomes."""
    n = 10, 60
    events = np.stack(np.meshgrid(*(np.arange(m + 1) for m in n)), axis=-1).reshape(-1, 2)
    limits = []
    for k in events:
        group, y = two_groups(n, k)
        limits.append(gedi_inference(y, sensitive_features=group).upper)
    held = []
    for p in product((0.005, 0.05, 0.3, 0.9), (0.02, 0.1, 0.5, 0.95)):
        chance = np.prod([binom.pmf(events[:, j], n[j], p[j]) for j in (0, 1)], axis=0)
        held.append(chance @ (np.array(limits) >= abs(p[0] - p[1])))
    assert min(held) > 0.94


@quiet
@pytest.mark.parametrize("is_rare", [True, False])
def test_rare_events_and_skewed_values_in_a_small_group_are_covered(is_rare):
    # Rates of .02 and .08; E[exponential^1.5] = Γ(2.5) = 1.3293.
    rng, held, runs = np.random.default_rng(0), 0, 300
    true, confidence = (0.06, 0.9) if is_rare else (2 + 4 * 1.329340388179137, 0.95)
    for _ in range(runs):
        group = (rng.random(500 if is_rare else 1000) < 0.03) * 1.0
        if is_rare:
            y = (rng.random(500) < np.where(group == 1, 0.08, 0.02)) * 1.0
        else:
            y = 2 * group + (1 + 4 * group) * rng.exponential(size=1000) ** 1.5
        own = gedi_inference(y, sensitive_features=group, confidence=confidence)
        held += own.upper >= true
    assert binomtest(held, runs, confidence, alternative="less").pvalue > 1e-4


def test_a_level_of_one_row_has_no_limit():
    rng = np.random.default_rng(0)
    level, y = np.repeat(["a", "b", "c"], [60, 60, 1]), rng.normal(size=121)
    for norm in ("l1", "sd"):
        for groups in (None, np.repeat(np.arange(61), [2] * 60 + [1])):
            found = gedi_inference(y, sensitive_features=level, norm=norm, groups=groups)
            with pytest.warns(FewRowsWarning, match="`upper` rests on few rows"):
                assert np.isinf(found.upper)
            with pytest.warns(FewRowsWarning, match="`interval` rests on few rows"):
                assert found.interval == (0.0, np.inf)
            assert groups is not None or found.few_rows == "sensitive_features = c has 1 row"
    scorer = make_disparity_scorer("gedi_upper", sensitive_columns=0, kernel="polynomial")
    X = np.c_[(level == "c") * 1.0, rng.normal(size=121)]
    with pytest.warns(FewRowsWarning, match="= 1 has 1 row"):
        assert scorer(LinearRegression().fit(X, y), X, y) == -np.inf


@pytest.mark.filterwarnings("ignore:the corrected labels miss the constraint")
@pytest.mark.parametrize("constraint", [None, DidiConstraint(0.5), CoarseConstraint(0.5)])
def test_a_level_of_one_row_has_no_certificate(constraint):
    rng = np.random.default_rng(0)
    level = rng.permutation(np.repeat(["a", "b", "c"], [150, 149, 1]))
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + (level == "b") + rng.normal(size=300)
    for model, target in ((ProjectedRegressor, y), (ProjectedClassifier, (y > 0) * 1)):
        asked = model(constraint=constraint, confidence=0.9)
        with pytest.warns(CertificateNotIssuedWarning, match="= c has 1 row"):
            asked.fit(X, target, sensitive_features=level)
        assert asked.certificate_ is None


@quiet
def test_labels_that_all_agree_have_an_error():
    x = np.random.default_rng(0).normal(size=200)
    for z, low, high in ((np.zeros(200), 0.005, 0.1), (np.ones(200), 0.005, 0.1)):
        assert low < gedi_inference(z, sensitive_features=x).upper < high
    assert gedi_inference(np.full(200, 3.7), sensitive_features=x).upper == 0


# The rule itself.
def rule(scores, pulls, typical, confidence, n_free):
    """Return how far a limit is beyond the value, of what rows or clusters add."""
    star = max(np.abs(scores).max(), (np.abs(pulls) ** 3).sum() / (pulls**2).sum() * typical)
    V, K3, K4 = ((scores**power).sum() + star**power for power in (2, 3, 4))
    free, z = min(2 * V**2 / K4, n_free), norm_distribution.ppf(confidence)
    return max(K3, 0) / V * max(1, (1 + 2 * z**2) / 6) + t.ppf(confidence, free) * np.sqrt(V)


@quiet
@pytest.mark.parametrize("weighted", [False, True])
def test_clusters_add_what_the_fit_without_them_lacks(weighted):
    """CR3 is the jackknife: leave a cluster out, fit again."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(25), rng.integers(1, 9, 25))
    n = len(group)
    x = rng.normal(size=25)[group] + 0.3 * rng.normal(size=n)
    y = 0.7 * x + rng.exponential(size=25)[group] + rng.normal(size=n)
    w = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    w = w / w.sum()

    def fit(rows):
        F = np.c_[np.ones(rows.sum()), x[rows]] * np.sqrt(w[rows])[:, None]
        return np.linalg.lstsq(F, np.sqrt(w[rows]) * y[rows], rcond=None)[0]

    beta = fit(np.ones(n, dtype=bool))
    scores = np.array([(beta - fit(group != g))[1] for g in range(25)])
    centred = x - w @ x
    pulls = np.bincount(group, w * centred) / (w @ centred**2)
    errors, mass = np.bincount(group, w * (y - beta[0] - beta[1] * x)), np.bincount(group, w)
    typical = (np.abs(errors) ** 3 / mass**2).sum() / (errors**2 / mass).sum()
    expected = beta[1] + rule(scores, pulls, typical, 0.9, 24)
    options = {"sensitive_features": x, "sample_weight": w if weighted else None}
    names = np.array([f"person {g}" for g in group])
    found = gedi_inference(y, **options, groups=names, confidence=0.9)
    assert found.upper == pytest.approx(expected)
    # Both ends of the interval are limits of half the error.
    low = beta[1] - rule(-scores, pulls, typical, 0.95, 24)
    high = beta[1] + rule(scores, pulls, typical, 0.95, 24)
    assert found.interval == pytest.approx((low, high))


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_clusters_of_one_row_are_rows(norm):
    rng = np.random.default_rng(2)
    x, y, other = rng.normal(size=(3, 150))
    options = {"sensitive_features": x, "kernel": 2, "norm": norm, "conditional_on": other}
    plain = gedi_inference(y + x, **options)
    single = gedi_inference(y + x, **options, groups=np.arange(150))
    assert single.interval == pytest.approx(plain.interval, rel=1e-6)
    # Rows that a sample of rows lacks are allowed for only there; here they do not count.
    assert single.upper == pytest.approx(plain.upper, rel=1e-6 if norm == "l1" else 0.02)


def test_rows_of_weight_zero_have_no_part():
    person, x, y = people(0, 20, 5)
    weight = np.random.default_rng(0).integers(0, 3, 100).astype(float)
    kept = weight > 0
    for groups in (None, person):
        own = {"sensitive_features": x, "sample_weight": weight, "groups": groups}
        rows = {name: given if given is None else given[kept] for name, given in own.items()}
        all_rows, some = gedi_inference(y, **own), gedi_inference(y[kept], **rows)
        assert all_rows.upper == pytest.approx(some.upper)
        assert all_rows.interval == pytest.approx(some.interval)
    # Integer weights are not repeated rows.
    repeated = np.repeat(np.arange(100), weight.astype(int))
    narrower = gedi_inference(y[repeated], sensitive_features=x[repeated]).upper
    assert narrower < gedi_inference(y, sensitive_features=x, sample_weight=weight).upper


@pytest.mark.parametrize("groups", [None, np.arange(300) // 2])
def test_directions_that_are_left_out_are_not_the_largest(monkeypatch, groups):
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 300)
    y = x - 0.5 * x**3 + (1 + x) * rng.exponential(size=300)
    options = {"sensitive_features": x, "kernel": 6, "groups": groups}
    for fitted in (False, True):
        every = gedi_inference(y, **options, fitted=fitted).upper
        with monkeypatch.context() as patch:
            patch.setattr(_limits, "_MANY", 0)
            assert gedi_inference(y, **options, fitted=fitted).upper == every


@pytest.mark.parametrize("simultaneous", [False, True])
def test_many_groups_need_no_matrix(simultaneous):
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(20), rng.integers(2, 30, 20))
    y, w = rng.exponential(size=len(codes)) + codes % 3, rng.uniform(0.5, 2, len(codes))
    block = group_indicator(codes, w / w.sum()).block
    columns = np.c_[y > 1, y > 2, y > 3] * 1.0
    block = block.altered(outputs=(0, 1, 2), allowed=_three_times(block.allowed))
    fast = upper_limits(block, columns, 0.95, simultaneous=simultaneous).values

    def by_matrix(rule, *_):
        return rule.of_terms(block.operator, "l1")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_limits._Rule, "of_groups", by_matrix)
        slow = upper_limits(block, columns, 0.95, simultaneous=simultaneous).values
    np.testing.assert_allclose(fast, slow, rtol=1e-9)


def _three_times(allowed):
    return type(allowed)(3 * allowed.size, 1.0, np.inf, allowed.weights, are_means=True)


def test_classes_of_several_groups_have_a_joint_limit():
    rng = np.random.default_rng(5)
    held, runs = 0, 100
    for _ in range(runs):
        level = rng.choice(["a", "b", "c"], 200, p=[0.5, 0.3, 0.2])
        p = np.where(level == "a", 0.2, np.where(level == "b", 0.4, 0.5))
        y = np.where(rng.random(200) < p, 2, rng.integers(0, 2, 200))
        codes = np.unique(level, return_inverse=True)[1]
        block = group_indicator(codes, None).block
        block = block.altered(outputs=(0, 1, 2), allowed=_three_times(block.allowed))
        columns = (y[:, None] == np.arange(3)) * 1.0
        true = np.array([0.2, 0.4, 0.5])
        mean = np.bincount(codes) / 200 @ true
        # Of classes 0 and 1 half of what class 2 leaves.
        truth = 2 * np.abs(true - mean).sum()
        limit = upper_limits(block, columns, 0.9, simultaneous=False).values[0]
        held += limit >= truth
        assert limit < 4
    assert binomtest(held, runs, 0.9, alternative="less").pvalue > 1e-4


# Clusters.
def test_limits_of_persons_hold():
    """Several rows a person: as if rows were independent a 95 % limit holds in two of three."""
    held, runs = np.zeros(2, dtype=int), 150
    for seed in range(runs):
        person, x, y = people(seed)
        for j, groups in enumerate((None, person)):
            held[j] += gedi_inference(y, sensitive_features=x, groups=groups).upper >= 0.5
    assert held[0] < 0.8 * runs
    assert binomtest(int(held[1]), runs, 0.95, alternative="less").pvalue > 1e-3


def test_independence_is_tested_by_persons():
    rejected, runs = {"asymptotic": 0, "permutation": 0, "rows": 0}, 60
    for seed in range(runs):
        person, x, y = people(seed, 40, 10, slope=0.0)
        shared = {"sensitive_features": x, "n_resamples": 199}
        for method in ("asymptotic", "permutation"):
            found = gedi_inference(y, **shared, groups=person, method=method)
            rejected[method] += found.pvalue <= 0.05
        rows = gedi_inference(y, **shared)
        rejected["rows"] += rows.pvalue <= 0.05
        assert found.null_mean > 1.3 * rows.null_mean
    assert rejected["rows"] > runs / 4
    assert max(rejected["asymptotic"], rejected["permutation"]) <= binom.ppf(0.999, runs, 0.05)
    unlike = {"groups": np.append(person[:-1], 99), "method": "permutation"}
    with pytest.raises(ValueError, match="groups of 1 to 10 rows"):
        _ = gedi_inference(y, sensitive_features=x, **unlike).pvalue


@pytest.mark.parametrize("method", ["simulation", "bootstrap"])
def test_other_intervals_draw_persons(method):
    person, x, y = people(1)
    width = [
        np.ptp(gedi_inference(y, sensitive_features=x, method=method, groups=groups).interval)
        for groups in (None, person)
    ]
    exact = np.ptp(gedi_inference(y, sensitive_features=x, groups=person).interval)
    assert width[0] < 0.5 * width[1]
    assert 0.7 * exact < width[1] < 1.1 * exact


def test_groups_are_checked():
    person, x, y = people(0, 5, 4)
    with pytest.raises(ValueError, match="groups"):
        gedi_inference(y, sensitive_features=x, groups=person[1:])
    with pytest.raises(ValueError, match="groups"):
        gedi_inference(y, sensitive_features=x, groups=np.where(person == 0, np.nan, person))
    expected = gedi_inference(y, sensitive_features=x, groups=person).upper
    for own in (np.c_[person % 2, person // 2], [frozenset([one]) for one in person]):
        same = gedi_inference(y, sensitive_features=x, groups=own)
        assert same.upper == pytest.approx(expected)
    with pytest.warns(UserWarning, match="1 groups of rows leave no degree of freedom"):
        alone = gedi_inference(y, sensitive_features=x, groups=0 * person)
    assert np.isnan([alone.pvalue, alone.null_mean, alone.null_q95, alone.upper]).all()
    person, x, y = people(0, 20, 4)
    labels = (y > 0) * 1
    some = gedi_inference(labels, y, sensitive_features=x, groups=person, subset="positive")
    kept = labels == 1
    assert (
        some.upper == gedi_inference(y[kept], sensitive_features=x[kept], groups=person[kept]).upper
    )


def test_certificates_and_verdicts_of_persons():
    person, x, y = people(3, 100, 10)
    constraint = CoarseConstraint(0.4, relative=False)
    with Projection(y, sensitive_features=x, constraint=constraint) as projection:
        fitted = projection.fitted_constraint_
    found, seen = {}, {}
    for name, groups in (("rows", None), ("persons", person)):
        found[name] = issue_certificate(
            fitted, lambda s: y - (0.5 - 0.4 * s) * x, 0.9, is_one_event=True, n_folds=3,
            groups=groups,
        )  # fmt: skip
        seen[name] = make_verdict(fitted, y, y, new_rows=y - 0.4 * x, groups=groups)
    assert found["persons"][1] < found["rows"][1]
    assert found["persons"][0].assumption.startswith("the 100 groups of rows are indep")
    assert found["rows"][0].assumption.startswith("rows are independent")
    rows, persons = seen["rows"], seen["persons"]
    assert persons.new_rows.high > rows.new_rows.high
    assert persons.new_rows.low <= rows.new_rows.low
    assert persons.remainder is None or persons.remainder.low < rows.remainder.low


def test_a_scorer_takes_persons():
    person, x, y = people(4, 20, 5)
    model = LinearRegression().fit(x[:, None], y)
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        scorer = make_disparity_scorer("gedi_upper", sensitive_columns=0)
        scorer.set_score_request(groups=True)
        limit = scorer(model, x[:, None], y, groups=person)
        direct = gedi_inference(
            y, model.predict(x[:, None]), sensitive_features=x, groups=person
        ).upper
        assert limit == -direct
        plain = make_disparity_scorer("gedi", sensitive_columns=0).set_score_request(groups=True)
        with pytest.raises(ValueError, match="'gedi_upper' takes them"):
            plain(model, x[:, None], y, groups=person)


def test_an_indicator_that_is_not_asked_for_limits_gives_no_warning():
    group, y = two_groups((1940, 60), (10, 0))
    found = gedi_inference(y, sensitive_features=group)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found.value == pytest.approx(10 / 1940)
        assert found.pvalue > 0.05
    assert isinstance(found._indicator, LinearIndicator)


@pytest.mark.parametrize("level", [0.0, 0.37, 0.95, 1.0])
def test_quantiles_of_draws_are_those_of_numpy(level):
    draws = np.random.default_rng(0).normal(size=(3, 1000))
    found = _limits.quantile_of_draws(draws, level)
    np.testing.assert_allclose(found, np.quantile(draws, level, axis=1), rtol=1e-12)
