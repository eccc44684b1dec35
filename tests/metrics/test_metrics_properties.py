"""Laws of the indicators, on random data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gedi_sklearn import FourierKernel, PolynomialKernel
from gedi_sklearn.metrics import didi, gedi, gedi_coefficients

SETTINGS = settings(max_examples=12, deadline=None, derandomize=True)
EDGES = [-np.inf, -0.4, 0.5, np.inf]
INDICATORS = {
    "gedi": gedi,
    "gedi degree 3": lambda *a, **k: gedi(*a, **k, kernel=PolynomialKernel(3, standardize=True)),
    "gedi Fourier": lambda *a, **k: gedi(*a, **k, kernel=FourierKernel(2, period=9.0)),
    "gedi callable": lambda *a, **k: gedi(*a, **k, kernel=lambda v: np.c_[np.exp(v), v]),
    "didi": lambda y, p=None, *, sensitive_features, **k: didi(
        y, p, sensitive_features=np.sign(sensitive_features), task="regression", **k
    ),
    "binned_didi": lambda *a, **k: didi(*a, **k, n_bins=EDGES, task="regression"),
}
every_indicator = pytest.mark.parametrize("indicator", INDICATORS.values(), ids=INDICATORS.keys())
seeds = st.integers(0, 10**6)


def sample(seed, n=40):
    """Return target, predictions, attribute and integer weights, all in general position."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * rng.uniform(0.8, 1.3)
    # One row in each bin and of each sign, so that every indicator is defined.
    x[:4] = [-1.0, -0.2, 0.3, 1.0]
    y, p = np.outer(rng.normal(size=2), x) + rng.normal(size=(2, n))
    weight = rng.integers(0, 4, n)
    weight[:6] = [1, 2, 1, 3, 1, 1]
    return y, p, x, weight


@every_indicator
@SETTINGS
@given(seed=seeds)
def test_weights_are_repeated_rows(indicator, seed):
    y, p, x, weight = sample(seed)
    for relative in (False, True):
        value = indicator(y, p, sensitive_features=x, sample_weight=weight, relative=relative)
        y2, p2, x2 = (np.repeat(v, weight) for v in (y, p, x))
        assert value == pytest.approx(
            indicator(y2, p2, sensitive_features=x2, relative=relative), rel=1e-9
        )


@every_indicator
@SETTINGS
@given(seed=seeds)
def test_zero_weight_is_an_absent_row(indicator, seed):
    y, p, x, weight = sample(seed)
    weight = weight * 0.37
    kept = weight > 0
    # A row that does not count may lie anywhere.
    x = np.where(kept, x, 1e6)
    value = indicator(y, p, sensitive_features=x, sample_weight=weight, relative=True)
    expected = indicator(
        y[kept], p[kept], sensitive_features=x[kept], sample_weight=weight[kept], relative=True
    )
    assert value == expected


@every_indicator
@SETTINGS
@given(seed=seeds, factor=st.floats(1e-6, 1e6))
def test_scaling_all_weights_changes_nothing(indicator, seed, factor):
    y, p, x, weight = sample(seed)
    value = indicator(y, p, sensitive_features=x, sample_weight=weight)
    scaled = indicator(y, p, sensitive_features=x, sample_weight=weight * factor)
    assert scaled == pytest.approx(value, rel=1e-9)


@every_indicator
@SETTINGS
@given(seed=seeds)
def test_permuting_rows_changes_nothing(indicator, seed):
    y, p, x, weight = sample(seed)
    order = np.random.default_rng(seed + 1).permutation(len(y))
    value = indicator(y, p, sensitive_features=x, sample_weight=weight)
    permuted = indicator(
        y[order], p[order], sensitive_features=x[order], sample_weight=weight[order]
    )
    assert permuted == pytest.approx(value, rel=1e-9)


@every_indicator
@SETTINGS
@given(seed=seeds, c=st.floats(-1e3, 1e3).filter(lambda c: abs(c) > 1e-3), d=st.floats(-10, 10))
def test_affine_targets_scale_by_the_absolute_factor(indicator, seed, c, d):
    y, _, x, _ = sample(seed)
    value = indicator(y, sensitive_features=x)
    assert indicator(c * y + d, sensitive_features=x) == pytest.approx(abs(c) * value, rel=1e-6)


@SETTINGS
@given(seed=seeds, unit=st.sampled_from([1e-6, 0.1, 12.0, 1e6]), origin=st.floats(-5, 5))
def test_unit_of_the_attribute_scales_degree_one(seed, unit, origin):
    y, _, x, weight = sample(seed)
    value = gedi(y, sensitive_features=x, sample_weight=weight)
    moved = gedi(y, sensitive_features=unit * (x + origin), sample_weight=weight)
    assert moved == pytest.approx(value / unit, rel=1e-9)


@SETTINGS
@given(seed=seeds, unit=st.sampled_from([1e-3, 0.1, 12.0, 1e3]), origin=st.floats(-20, 20))
def test_a_standardized_kernel_knows_no_unit(seed, unit, origin):
    y, _, x, _ = sample(seed)
    kernel = PolynomialKernel(4, standardize=True)
    expected = gedi_coefficients(y, sensitive_features=x, kernel=kernel)
    moved = gedi_coefficients(y, sensitive_features=unit * (x + origin), kernel=kernel)
    np.testing.assert_allclose(moved, expected, atol=1e-9 * np.abs(expected).max(), rtol=1e-7)


@SETTINGS
@given(seed=seeds, low=st.floats(-5, 5), gap=st.floats(0.01, 20))
def test_didi_of_two_values_is_their_gap_times_gedi(seed, low, gap):
    y, _, x, weight = sample(seed)
    two = np.where(x > 0, low + gap, low)
    slope = gedi(y, sensitive_features=two, sample_weight=weight)
    value = didi(y, sensitive_features=two, sample_weight=weight)
    assert value == pytest.approx(gap * slope, rel=1e-6)
    label = (y > 0).astype(int)
    slope = gedi(label, sensitive_features=two, sample_weight=weight)
    value = didi(label, sensitive_features=two, sample_weight=weight)
    assert value == pytest.approx(2 * gap * slope, rel=1e-6, abs=1e-12)


@SETTINGS
@given(seed=seeds)
def test_bins_of_two_values_are_groups(seed):
    y, _, x, weight = sample(seed)
    two = np.where(x > 0, 1.0, 0.0)
    options = {"sensitive_features": two, "sample_weight": weight, "task": "regression"}
    assert didi(y, n_bins=[0, 0.5, 1], **options) == pytest.approx(didi(y, **options))
