"""Independence, its test, and intervals of GeDI."""

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import SplineTransformer

from gedi_sklearn import FourierKernel, PolynomialKernel
from gedi_sklearn.datasets import load_adult, load_communities
from gedi_sklearn.kernels import fit_kernel
from gedi_sklearn.metrics import (
    GroupIndicator,
    KernelIndicator,
    check_sample,
    didi,
    fit_gedi,
    gedi,
    gedi_interval,
    gedi_null,
    gedi_permutation_test,
    independence_test,
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
    assert gedi_null(y, sensitive_features=x, degree=2).mean == pytest.approx(expected)


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
    null = gedi_null(y, **options, quantiles=[0.5, 0.9])
    drawn = gedi_permutation_test(y, **options, n_resamples=4000, random_state=0)
    assert drawn.null_distribution.mean() == pytest.approx(null.mean, rel=0.04)
    np.testing.assert_allclose(
        np.quantile(drawn.null_distribution, null.levels), null.quantiles, rtol=0.07
    )
    assert drawn.statistic == pytest.approx(gedi(y, **options))


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
        null = gedi_null(y[fold], sensitive_features=x[fold], degree=5, relative=True)
        values.append(null.mean)
        permuted = gedi_permutation_test(
            y[fold], sensitive_features=x[fold], degree=5, n_resamples=2000, random_state=0
        ).null_distribution.mean()
        unit = gedi(y[fold], sensitive_features=x[fold])
        assert permuted / unit == pytest.approx(null.mean, rel=0.03)
    assert low <= min(values)
    assert max(values) <= high
    if name == "communities":
        assert np.mean(values) == pytest.approx(1.06, abs=0.02)


def test_permutation_test_rejects_what_is_there():
    x, y = sample(3)
    result = gedi_permutation_test(y + x**2, sensitive_features=x, kernel=V3, random_state=0)
    assert result.pvalue == pytest.approx(0.001)
    assert len(result.null_distribution) == 999
    again = gedi_permutation_test(y + x**2, sensitive_features=x, kernel=V3, random_state=0)
    np.testing.assert_array_equal(again.null_distribution, result.null_distribution)


@pytest.mark.slow
def test_permutation_test_keeps_its_level():
    rejected = 0
    for seed in range(1000):
        x, y = sample(seed, n=60)
        rejected += (
            gedi_permutation_test(
                y, sensitive_features=x, kernel=V3, n_resamples=199, random_state=seed
            ).pvalue
            <= 0.05
        )
    print(f"rejected {rejected} of 1,000 at 5 %")
    assert 30 <= rejected <= 70


@pytest.mark.parametrize("method", ["ellipsoid", "simulation", "bootstrap"])
def test_interval_holds_a_clear_value(method):
    x, y = sample(14, n=500)
    y = y + 3 * x - 2 * x**2
    low, high = gedi_interval(y, sensitive_features=x, degree=2, method=method)
    value = gedi(y, sensitive_features=x, degree=2)
    assert low < value < high
    assert low < 5 < high
    assert high - low < 1
    wider = gedi_interval(y, sensitive_features=x, degree=2, method=method, confidence_level=0.999)
    assert wider.low < low < high < wider.high


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_interval_reaches_zero_where_nothing_is_there(norm):
    x, y = sample(5, n=300)
    interval = gedi_interval(y, sensitive_features=x, kernel=V3, norm=norm)
    assert interval.low == 0
    assert interval.high > gedi(y, sensitive_features=x, kernel=V3, norm=norm)


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("slope", [0.6, 1.0, 4.0])
def test_interval_is_the_range_over_the_ellipsoid(norm, slope):
    """Against a search over many points of the ellipsoid's surface, built by hand."""
    from scipy.stats import f

    x, y = sample(6, n=150)
    y = y + slope * x
    F = np.c_[np.ones(150), x, x**2]
    G = np.linalg.inv(F.T @ F)
    beta = G @ F.T @ y
    leverage = np.einsum("ij,jk,ik->i", F, G, F)
    scores = F * ((y - F @ beta) / (1 - leverage))[:, None]
    covariance = (G @ scores.T @ scores @ G)[1:, 1:]
    angle = np.linspace(0, 2 * np.pi, 20_001)
    circle = np.c_[np.cos(angle), np.sin(angle)] * np.sqrt(2 * f.ppf(0.95, 2, 147))
    points = beta[1:] + circle @ np.linalg.cholesky(covariance).T
    centred = F[:, 1:] - F[:, 1:].mean(axis=0)
    values = {
        "l1": np.abs(points).sum(axis=1),
        "sd": np.sqrt(np.einsum("ij,jk,ik->i", points, centred.T @ centred / 150, points)),
    }[norm]
    low, high = gedi_interval(y, sensitive_features=x, degree=2, norm=norm)
    assert low == pytest.approx(values.min(), rel=1e-4)
    assert high == pytest.approx(values.max(), rel=1e-4)


def test_interval_scales_with_the_targets_and_the_reference():
    x, y = sample(7)
    y = y + x
    low, high = gedi_interval(y, sensitive_features=x, kernel=V3)
    np.testing.assert_allclose(
        gedi_interval(10 * y - 3, sensitive_features=x, kernel=V3), [10 * low, 10 * high], rtol=1e-6
    )
    unit = gedi(y, sensitive_features=x, kernel=PolynomialKernel(1, standardize=True))
    relative = gedi_interval(y, sensitive_features=x, kernel=V3, relative=True)
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
        low, high = gedi_interval(y, **options, **extra)
        assert low < gedi(y, **options, **extra) < high
        test = gedi_permutation_test(y, **options, **extra, random_state=0, n_resamples=99)
        assert test.statistic == pytest.approx(gedi(y, **options, **extra))
    assert gedi_null(y, **options).mean < value
    assert gedi(y, 0.5 * y, **options, relative=True) > 0


def test_categories_and_covariates_have_intervals():
    rng = np.random.default_rng(8)
    group = rng.choice(["a", "b", "c"], size=300)
    c = rng.normal(size=300)
    y = (group == "b") * 2.0 + c + 0.5 * rng.normal(size=300)
    wide = gedi_interval(y, sensitive_features=group)
    narrow = gedi_interval(y, sensitive_features=group, conditional_on=c)
    assert narrow.low < 2 < narrow.high
    assert narrow.high - narrow.low < wide.high - wide.low


def test_undefined_cases_raise():
    y = [0.5, 1.0, 2.0, 1.0]
    with pytest.raises(ValueError, match="linearly independent"):
        gedi_null(y, sensitive_features=[1, 1, 1, 1])
    with pytest.raises(ValueError, match="relative"):
        gedi_null([1, 1, 1, 1], y, sensitive_features=[1, 2, 3, 4], relative=True)
    with pytest.raises(ValueError, match="method"):
        gedi_interval(y, sensitive_features=[1, 2, 3, 4], method="normal")


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_interval_on_few_rows_scales_with_the_targets(norm, degree):
    for seed in range(10):
        x, y = sample(seed, n=degree + 3)
        options = {"sensitive_features": x, "kernel": PolynomialKernel(degree), "norm": norm}
        expected = gedi_interval(x + y, **options)
        for unit in (1e-12, 1e12):
            scaled = gedi_interval(unit * (x + y), **options)
            np.testing.assert_allclose(np.divide(scaled, unit), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("method", ["ellipsoid", "simulation"])
def test_without_degrees_of_freedom_the_interval_is_undefined(norm, method):
    with pytest.warns(UndefinedMetricWarning, match="3 rows leave no degree of freedom"):
        interval = gedi_interval(
            [1.0, 2.0, 0.5], sensitive_features=[0, 1, 3], degree=2, norm=norm, method=method
        )
    assert np.isnan(interval).all()


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_targets_in_the_span_have_an_interval_of_width_0(norm):
    x = np.linspace(-1, 1, 30)
    options = {"sensitive_features": x, "norm": norm}
    np.testing.assert_allclose(gedi_interval(2 * x, **options), gedi(2 * x, **options), rtol=1e-9)


def test_resamples_without_a_rare_group_are_counted_out():
    x, y = np.zeros((2, 60))
    x[:2], y[:3] = 1.0, 1.0
    with pytest.warns(UserWarning, match=r"method='bootstrap': \d+ of 999 resamples"):
        low, high = gedi_interval(y, sensitive_features=x, method="bootstrap")
    assert 0.9 < low < high <= 1.0 + 1e-9
    with pytest.raises(ValueError, match="1 of 1 resamples do not determine"):
        gedi_interval(
            y[:4],
            sensitive_features=[0, 0, 0, 1],
            method="bootstrap",
            n_resamples=1,
            random_state=9,
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["l1", "sd", "didi"])
def test_the_value_of_a_target_is_that_of_its_coordinates(name, weighted):
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 150))
    team = rng.integers(4, size=150)
    weight = rng.uniform(0.5, 2, 150) if weighted else None
    if name == "didi":
        indicator = GroupIndicator(team, weight)
        value = didi(y, sensitive_features=team, sample_weight=weight)
    else:
        indicator = KernelIndicator(fit_kernel("polynomial", x[:, None], weight=weight), name)
        value = gedi(y, sensitive_features=x, norm=name, sample_weight=weight)
    assert indicator.measure(y) == value
    assert indicator.value(indicator.coordinates(y)) == pytest.approx(value)
    assert indicator.reference(y) == pytest.approx(value)
    assert indicator.reference(np.full(150, 0.1)) == 0.0


@pytest.mark.parametrize("quantiles", [[2.0], [-0.1], [np.nan], ["a"], 0.5, None])
def test_levels_that_are_none_are_refused(quantiles):
    x, y = sample(0)
    with pytest.raises((ValueError, TypeError), match="quantiles"):
        gedi_null(y, sensitive_features=x, quantiles=quantiles)


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_targets_of_two_values_and_an_attribute_of_three_have_an_interval(norm):
    # The targets vary in the middle group only, so the ellipsoid is flat in one direction.
    x = np.repeat([0, 1, 2], 20)
    y = np.r_[np.full(20, 0.7), np.tile([0.3, 0.7], 10), np.full(20, 0.3)]
    interval = gedi_interval(y, sensitive_features=x, degree=2, norm=norm)
    value = gedi(y, sensitive_features=x, degree=2, norm=norm)
    assert 0 <= interval.low <= value * (1 + 1e-12)  # equal, but for rounding, for "sd"
    assert np.isfinite(interval.high)


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_the_null_scales_with_the_targets(unit, norm):
    x, y = sample(0)
    one, other = (gedi_null(u * y, sensitive_features=x, norm=norm).mean for u in (1.0, unit))
    assert other == pytest.approx(unit * one, rel=1e-9)


def test_with_many_rows_the_test_is_the_limit_of_permutations():
    """Both have the same null distribution, but for the draws."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 12_000))
    indicator = fit_gedi(check_sample(y, None, x, None, None), "polynomial", 3).indicator
    limit = independence_test(indicator, y, 2000, 0)
    exact = gedi_permutation_test(
        y, sensitive_features=x, degree=3, n_resamples=300, random_state=0
    )
    assert limit.statistic == pytest.approx(exact.statistic)
    assert limit.null_distribution.mean() == pytest.approx(exact.null_distribution.mean(), rel=0.1)
    assert limit.pvalue == pytest.approx(exact.pvalue, abs=0.12)
