"""Independence, its test, and intervals of GeDI."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import SplineTransformer

from gedi_sklearn import FourierKernel, PolynomialKernel
from gedi_sklearn.datasets import load_adult, load_communities
from gedi_sklearn.kernels import fit_kernel
from gedi_sklearn.metrics import (
    KernelIndicator,
    LinearIndicator,
    didi,
    gedi,
    gedi_inference,
    group_indicator,
)

V3 = PolynomialKernel(3, standardize=True)


def sample(seed, n=200):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.normal(size=n)


def standardized(column):
    return ((column - column.mean()) / column.std(ddof=0)).to_numpy()


def test_null_mean_is_the_closed_form():
    x, y = sample(0)
    F = np.c_[x, x**2]
    F = F - F.mean(axis=0)
    expected = y.std(ddof=1) * np.sqrt(2 / np.pi) * np.sqrt(np.diag(np.linalg.inv(F.T @ F))).sum()
    assert gedi_inference(y, sensitive_features=x, kernel=2).null_mean == pytest.approx(expected)


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("conditional", [False, True])
def test_null_agrees_with_permutations(norm, weighted, conditional):
    x, y = sample(1, n=400)
    rng = np.random.default_rng(2)
    options = {
        "sensitive_features": x,
        "kernel": V3,
        "norm": norm,
        "sample_weight": rng.uniform(0.5, 2, x.size) if weighted else None,
        "conditional_on": x + rng.normal(size=x.size) if conditional else None,
    }
    null = gedi_inference(y, **options, n_resamples=10_000)
    drawn = gedi_inference(y, **options, n_resamples=4000, random_state=0, method="permutation")
    assert drawn.null_mean == pytest.approx(null.null_mean, rel=0.04)
    quantiles, expected = (np.quantile(own.null_distribution, [0.5, 0.9]) for own in (drawn, null))
    np.testing.assert_allclose(quantiles, expected, rtol=0.07)
    assert drawn.null_q95 == np.quantile(drawn.null_distribution, 0.95)
    assert drawn.pvalue == pytest.approx(null.pvalue, abs=0.05)
    assert drawn.value == pytest.approx(gedi(y, **options), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "low", "high"), [("adult", 0.32, 0.36), ("communities", 0.80, 1.26)]
)
def test_null_of_the_paper_data(name, low, high):
    if name == "adult":
        frame = load_adult(as_frame=True).frame
        y, x = frame["income"].to_numpy(), standardized(frame["age"])
        cv = StratifiedKFold(5, shuffle=True, random_state=0)
    else:
        frame = load_communities(as_frame=True).frame
        y, x = frame["violentPerPop"].to_numpy(), standardized(frame["pctBlack"])
        cv = KFold(5, shuffle=True, random_state=0)
    values = []
    for _, fold in cv.split(x, y):
        null = gedi_inference(y[fold], sensitive_features=x[fold], kernel=5, relative=True)
        values.append(null.null_mean)
        permuted = gedi_inference(
            y[fold],
            sensitive_features=x[fold],
            kernel=5,
            n_resamples=2000,
            random_state=0,
            method="permutation",
        ).null_distribution.mean()
        unit = gedi(y[fold], sensitive_features=x[fold])
        assert permuted / unit == pytest.approx(null.null_mean, rel=0.03)
    assert low <= min(values)
    assert max(values) <= high
    if name == "communities":
        assert np.mean(values) == pytest.approx(1.06, abs=0.02)


def test_permutation_test_rejects_what_is_there():
    x, y = sample(3)
    result = gedi_inference(
        y + x**2, sensitive_features=x, kernel=V3, random_state=0, method="permutation"
    )
    assert result.pvalue == 1 / 1001
    assert len(result.null_distribution) == 1000
    again = gedi_inference(
        y + x**2, sensitive_features=x, kernel=V3, random_state=0, method="permutation"
    )
    np.testing.assert_array_equal(again.null_distribution, result.null_distribution)


@pytest.mark.slow
def test_permutation_test_keeps_its_level():
    rejected = 0
    for seed in range(1000):
        x, y = sample(seed, n=60)
        rejected += (
            gedi_inference(
                y,
                sensitive_features=x,
                kernel=V3,
                n_resamples=199,
                random_state=seed,
                method="permutation",
            ).pvalue
            <= 0.05
        )
    print(f"rejected {rejected} of 1,000 at 5 %")
    assert 30 <= rejected <= 70


@pytest.mark.parametrize("method", ["asymptotic", "simulation", "bootstrap"])
def test_interval_holds_a_clear_value(method):
    x, y = sample(14, n=500)
    y = y + 3 * x - 2 * x**2
    low, high = gedi_inference(y, sensitive_features=x, kernel=2, method=method).interval
    value = gedi(y, sensitive_features=x, kernel=2)
    assert low < value < high
    assert low < 5 < high
    assert high - low < 1
    wider = gedi_inference(
        y, sensitive_features=x, kernel=2, method=method, confidence=0.999
    ).interval
    assert wider[0] < low < high < wider[1]


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_interval_reaches_zero_where_nothing_is_there(norm):
    x, y = sample(5, n=300)
    interval = gedi_inference(y, sensitive_features=x, kernel=V3, norm=norm).interval
    assert interval[0] == 0
    assert interval[1] > gedi(y, sensitive_features=x, kernel=V3, norm=norm)


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("slope", [0.6, 1.0, 4.0])
def test_interval_is_the_range_over_the_ellipsoid(norm, slope):
    """Against a search over many points of the ellipsoid's surface, built by hand."""
    from scipy.stats import f

    x, y = sample(6, n=150)
    y = y + slope * x
    F = np.c_[x, x**2] - np.mean([x, x**2], axis=1)
    root = np.linalg.cholesky(F.T @ F / 150)
    Q = F @ np.linalg.inv(root).T
    c = Q.T @ y / 150
    error, pulls = y - y.mean() - Q @ c, Q / 150
    errors = error / (1 - (1 + np.square(Q).sum(axis=1)) / 150)
    # A norm of c is compared across draws of the rows, the basis is another one each time.
    scores = pulls * errors[:, None]
    if norm == "sd":
        scores += 0.5 * (Q * (Q @ c)[:, None] - c) / 150

    def sizes(rows, product):
        return np.einsum("ij,jk,ik->i", rows, np.linalg.inv(product), rows)

    # Half of one more row in every direction, and half of a typical one.
    covariance = scores.T @ scores
    typical = (np.abs(error) ** 3).sum() / (error**2).sum()
    more = (scores.T * sizes(scores, covariance)) @ scores
    more += typical**2 * (pulls.T * sizes(pulls, pulls.T @ pulls)) @ pulls
    covariance += more / 2
    free = 2 * 3 / np.square(sizes(scores, covariance)).sum()
    assert 10 < free < 147
    squared = 2 * free / (free - 1) * f.ppf(0.95, 2, free - 1)
    angle = np.linspace(0, 2 * np.pi, 20_001)
    circle = np.c_[np.cos(angle), np.sin(angle)] * np.sqrt(squared)
    points = c + circle @ np.linalg.cholesky(covariance).T
    values = {
        "l1": np.abs(np.linalg.solve(root.T, points.T)).sum(axis=0),
        "sd": np.linalg.norm(points, axis=1),
    }[norm]
    low, high = gedi_inference(y, sensitive_features=x, kernel=2, norm=norm).interval
    assert low == pytest.approx(values.min(), rel=3e-4)
    assert high == pytest.approx(values.max(), rel=1e-4)


def test_interval_scales_with_the_targets_and_the_reference():
    x, y = sample(7)
    y = y + x
    low, high = gedi_inference(y, sensitive_features=x, kernel=V3).interval
    np.testing.assert_allclose(
        gedi_inference(10 * y - 3, sensitive_features=x, kernel=V3).interval,
        [10 * low, 10 * high],
        rtol=1e-6,
    )
    unit = gedi(y, sensitive_features=x, kernel=PolynomialKernel(1, standardize=True))
    relative = gedi_inference(y, sensitive_features=x, kernel=V3, relative=True).interval
    np.testing.assert_allclose(relative, [low / unit, high / unit], rtol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [FourierKernel(2), np.exp, SplineTransformer(n_knots=3, include_bias=False), "matrix"],
    ids=["fourier", "callable", "transformer", "matrix"],
)
def test_other_kernels_and_weights(kernel):
    x, y = sample(9)
    y = y + x
    options = {
        "sensitive_features": x,
        "kernel": np.c_[x, np.cos(x)] if kernel == "matrix" else kernel,
        "sample_weight": np.random.default_rng(10).integers(0, 3, x.size),
    }
    value = gedi(y, **options)
    for extra in ({}, {"conditional_on": np.sin(3 * x)}):
        low, high = gedi_inference(y, **options, **extra).interval
        assert low < gedi(y, **options, **extra) < high
        test = gedi_inference(
            y, **options, **extra, random_state=0, n_resamples=99, method="permutation"
        )
        assert test.value == pytest.approx(gedi(y, **options, **extra))
        assert 0.01 <= test.pvalue < 0.2
    assert gedi_inference(y, **options).null_mean < value
    assert gedi(y, 0.5 * y, **options, relative=True) > 0


def test_categories_and_covariates_have_intervals():
    rng = np.random.default_rng(8)
    group = rng.choice(["a", "b", "c"], size=300)
    c = rng.normal(size=300)
    y = (group == "b") * 2.0 + c + 0.5 * rng.normal(size=300)
    wide = gedi_inference(y, sensitive_features=group).interval
    narrow = gedi_inference(y, sensitive_features=group, conditional_on=c).interval
    assert narrow[0] < 2 < narrow[1]
    assert np.diff(narrow) < np.diff(wide)


def test_undefined_cases_raise():
    y = [0.5, 1.0, 2.0, 1.0]
    with pytest.raises(ValueError, match="linearly independent"):
        gedi_inference(y, sensitive_features=[1, 1, 1, 1])
    with pytest.raises(ValueError, match="relative"):
        gedi_inference([1, 1, 1, 1], y, sensitive_features=[1, 2, 3, 4], relative=True)
    with pytest.raises(ValueError, match="method"):
        gedi_inference(y, sensitive_features=[1, 2, 3, 4], method="normal")


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_interval_on_few_rows_scales_with_the_targets(norm, degree):
    for seed in range(10):
        x, y = sample(seed, n=degree + 3)
        options = {"sensitive_features": x, "kernel": PolynomialKernel(degree), "norm": norm}
        expected = gedi_inference(x + y, **options).interval
        for unit in (1e-12, 1e12):
            scaled = gedi_inference(unit * (x + y), **options).interval
            np.testing.assert_allclose(np.divide(scaled, unit), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("method", ["asymptotic", "simulation"])
def test_without_degrees_of_freedom_the_interval_is_undefined(norm, method):
    with pytest.warns(UndefinedMetricWarning, match="3 rows leave no degree of freedom"):
        interval = gedi_inference(
            [1.0, 2.0, 0.5], sensitive_features=[0, 1, 3], kernel=2, norm=norm, method=method
        ).interval
    assert np.isnan(interval).all()


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_targets_in_the_span_have_an_interval_of_width_0(norm):
    x = np.linspace(-1, 1, 30)
    options = {"sensitive_features": x, "norm": norm}
    low, high = gedi_inference(2 * x, **options).interval
    value = gedi(2 * x, **options)
    if norm == "l1":
        assert (low, high) == pytest.approx((value, value), rel=1e-9)
    else:  # how much x itself varies is drawn with the rows
        assert 0.8 * value < low < value < high < 1.2 * value


def test_resamples_without_a_rare_group_are_counted_out():
    x, y = np.zeros((2, 60))
    x[:2], y[:3] = 1.0, 1.0
    with pytest.warns(UserWarning, match=r"method='bootstrap': \d+ of 1000 resamples"):
        low, high = gedi_inference(y, sensitive_features=x, method="bootstrap").interval
    assert 0.9 < low < high <= 1.0 + 1e-9
    options = {"method": "bootstrap", "n_resamples": 1, "random_state": 9}
    found = gedi_inference(y[:4], sensitive_features=[0, 0, 0, 1], **options)
    with pytest.raises(ValueError, match="1 of 1 resamples do not determine"):
        assert found.interval


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["l1", "sd", "didi"])
def test_the_value_of_a_target_is_that_of_its_coordinates(name, weighted):
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 150))
    team = rng.integers(4, size=150)
    weight = rng.uniform(0.5, 2, 150) if weighted else None
    if name == "didi":
        indicator = group_indicator(team, weight)
        value = didi(y, sensitive_features=team, sample_weight=weight)
    else:
        indicator = KernelIndicator(fit_kernel("polynomial", x[:, None], weight=weight), name)
        value = gedi(y, sensitive_features=x, norm=name, sample_weight=weight)
    assert indicator.measure(y) == value
    assert indicator.form.of_targets(y) == pytest.approx(value)
    assert indicator.reference(y) == pytest.approx(value)
    assert indicator.reference(np.full(150, 0.1)) == 0.0


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_targets_of_two_values_and_an_attribute_of_three_have_an_interval(norm):
    # The targets vary in the middle group only, so the ellipsoid is flat in one direction.
    x = np.repeat([0, 1, 2], 20)
    y = np.r_[np.full(20, 0.7), np.tile([0.3, 0.7], 10), np.full(20, 0.3)]
    interval = gedi_inference(y, sensitive_features=x, kernel=2, norm=norm).interval
    value = gedi(y, sensitive_features=x, kernel=2, norm=norm)
    assert 0 <= interval[0] <= value * (1 + 1e-12)  # equal, but for rounding, for "sd"
    assert np.isfinite(interval[1])


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_the_null_scales_with_the_targets(unit, norm):
    x, y = sample(0)
    one, other = (
        gedi_inference(u * y, sensitive_features=x, norm=norm).null_mean for u in (1.0, unit)
    )
    assert other == pytest.approx(unit * one, rel=1e-9)


def test_with_many_rows_the_test_is_the_limit_of_permutations():
    """Both have the same null distribution, but for the draws."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 12_000))
    given = {"sensitive_features": x, "kernel": 3}
    limit = gedi_inference(y, **given, n_resamples=2000)
    exact = gedi_inference(y, **given, method="permutation", n_resamples=300)
    assert limit.null_distribution.mean() == pytest.approx(exact.null_mean, rel=0.1)
    assert limit.null_mean == pytest.approx(exact.null_mean, rel=0.1)
    assert limit.pvalue == pytest.approx(exact.pvalue, abs=0.12)


def test_nothing_is_computed_before_it_is_asked_for(monkeypatch):
    x, y = sample(0)
    calls = []
    for name in ("measure", "null_mean", "value", "interval", "upper_limit"):
        plain = getattr(LinearIndicator, name)

        def counted(self, *args, plain=plain, name=name, **options):
            calls.append(name)
            return plain(self, *args, **options)

        monkeypatch.setattr(LinearIndicator, name, counted)
    found = gedi_inference(y, sensitive_features=x, method="permutation")
    assert calls == []
    interval = found.interval
    once = list(calls)
    assert "interval" in once
    assert "upper_limit" not in once
    assert found.interval is interval
    assert calls == once


@pytest.mark.parametrize("method", ["asymptotic", "permutation", "simulation", "bootstrap"])
def test_the_order_in_which_it_is_asked_for_says_nothing(method):
    x, y = sample(2)
    names = ["value", "null_mean", "null_q95", "pvalue", "interval", "upper"]
    given = {"sensitive_features": x, "kernel": V3, "method": method, "n_resamples": 50}
    forth, back = (
        gedi_inference(y, **given, random_state=np.random.RandomState(5)) for _ in range(2)
    )
    first = {name: getattr(forth, name) for name in names}
    for name in reversed(names):
        np.testing.assert_allclose(getattr(back, name), first[name], rtol=1e-9)


@pytest.mark.parametrize("method", ["asymptotic", "permutation"])
def test_the_pvalue_does_not_depend_on_the_unit(method):
    x, y = sample(3)
    given = {"sensitive_features": x, "kernel": V3, "method": method}
    plain = gedi_inference(y + 0.3 * x, **given)
    expected = plain.pvalue
    assert 1 / 1001 < expected < 0.1
    scaled = gedi_inference(1e9 * (y + 0.3 * x) - 3, **given)
    assert scaled.pvalue == expected
    assert scaled.null_q95 == pytest.approx(1e9 * plain.null_q95, rel=1e-9)
    assert gedi_inference(y + 0.3 * x, **given, relative=True).pvalue == expected


@pytest.mark.parametrize("method", ["asymptotic", "permutation"])
@pytest.mark.parametrize("constant", [0.1, 1.0, -7.7, 1e5 + 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_constant_predictions_are_never_more_than_chance(method, constant, weighted):
    """Their value and that of chance are rounding, whose order said p = 0.001 of some."""
    for seed in range(20):
        x, y = sample(seed, 60)
        weight = np.random.default_rng(seed).uniform(size=60) if weighted else None
        options = {"sensitive_features": x, "sample_weight": weight, "method": method}
        found = gedi_inference(y, np.full(60, constant), **options, n_resamples=99)
        assert found.pvalue == 1.0


def test_a_pickle_holds_q_and_no_errors():
    rng = np.random.default_rng(0)
    found = gedi_inference(rng.normal(size=3000), sensitive_features=rng.normal(size=3000))
    before = len(pickle.dumps(found))
    upper = found.upper
    again = pickle.loads(pickle.dumps(found))
    assert len(pickle.dumps(again)) < before + 8 * 3000 + 1000  # Q, of one column
    assert again.upper == upper
