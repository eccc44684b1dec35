"""The indicators against values computed elsewhere, and against what can be known by hand."""

import json
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.preprocessing import SplineTransformer

from gedi_sklearn import FourierKernel, PolynomialKernel
from gedi_sklearn.datasets import load_adult, load_communities
from gedi_sklearn.exceptions import (
    AttributeScaleWarning,
    IllConditionedKernelWarning,
    RankDeficientKernelError,
)
from gedi_sklearn.metrics import didi, gedi, gedi_coefficients, quantile_bin_edges

didi_of_bins = partial(didi, n_bins=3)
REFERENCE = json.loads(
    (Path(__file__).parents[1] / "data" / "indicator_values.json").read_text(encoding="utf-8")
)


def standardized(column):
    return (column - column.mean()) / column.std(ddof=0)


@pytest.fixture(scope="module")
def tasks():
    """Target and attribute of the paper's four tasks."""
    adult = load_adult(as_frame=True).frame
    communities = load_communities(as_frame=True).frame
    crime = communities["violentPerPop"]
    crime = (crime - crime.min()) / (crime.max() - crime.min())
    return {
        "adult/age": (adult["income"], standardized(adult["age"])),
        "adult/sex": (adult["income"], (adult["sex"] == "Male").astype(int)),
        "crimes/pctBlack": (crime, standardized(communities["pctBlack"])),
        "crimes/race": (crime, communities["race"]),
    }


def measure(name, y, x):
    kind, _, number = name.partition("_")
    if kind == "gedi":
        return gedi(y, sensitive_features=x, kernel=int(number[1:]))
    if kind == "alpha":
        return gedi_coefficients(y, sensitive_features=x, kernel=int(number[1:]))
    if number:
        return didi(y, sensitive_features=x, n_bins=int(number))
    return didi(y, sensitive_features=x)


@pytest.mark.parametrize("task", REFERENCE)
def test_values_of_the_paper_data(task, tasks):
    y, x = tasks[task]
    for name, value in REFERENCE[task].items():
        if name.startswith(("gedi", "alpha", "didi")):
            np.testing.assert_allclose(measure(name, y, x), value, rtol=0, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_birth_years_give_the_slope(degree):
    # numpy.linalg.lstsq says 5e-8 at degree 5, where the truth is 0.1.
    birth = np.linspace(1930, 2005, 60)
    pay = (birth - 1950) / 10
    if degree == 1:
        assert gedi(pay, sensitive_features=birth) == pytest.approx(0.1, rel=1e-9)
    else:
        with pytest.warns(AttributeScaleWarning) as caught:
            value = gedi(pay, sensitive_features=birth, kernel=degree)
        assert value == pytest.approx(0.1, rel=1e-6)
        assert {w.category for w in caught} <= {AttributeScaleWarning, IllConditionedKernelWarning}
        assert sum(w.category is AttributeScaleWarning for w in caught) == 1


def test_norm_is_the_sum_of_absolute_coefficients():
    x = np.linspace(-1, 1, 41)
    y = 2 * x - x**2
    assert gedi(y, sensitive_features=x, kernel=2) == pytest.approx(3.0)
    np.testing.assert_allclose(gedi_coefficients(y, sensitive_features=x, kernel=2), [2, -1])


def test_degree_one_is_covariance_over_variance():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 50))
    expected = abs(np.cov(x, y)[0, 1]) / np.var(x, ddof=1)
    assert gedi(y, sensitive_features=x) == pytest.approx(expected)


@pytest.mark.parametrize("relative", [True, 2, 3])
def test_relative_divides_by_the_targets_at_that_degree(relative):
    rng = np.random.default_rng(4)
    x = rng.normal(size=80)
    y, p = x + rng.normal(size=(2, 80))
    kernel = PolynomialKernel(3, standardize=True)
    expected = gedi(p, sensitive_features=x, kernel=kernel) / gedi(
        y, sensitive_features=x, kernel=PolynomialKernel(int(relative), standardize=True)
    )
    value = gedi(y, p, sensitive_features=x, kernel=kernel, relative=relative)
    assert value == pytest.approx(expected)


def test_relative_of_other_kernels():
    rng = np.random.default_rng(5)
    x = rng.uniform(size=60)
    y, p = x + rng.normal(size=(2, 60))

    def absolute(target, kernel):
        return gedi(target, sensitive_features=x, kernel=kernel)

    def relative(kernel):
        return gedi(y, p, sensitive_features=x, kernel=kernel, relative=True)

    first, third = FourierKernel(1, period=3.0), FourierKernel(3, period=3.0)
    assert relative(third) == pytest.approx(absolute(p, third) / absolute(y, first))
    for kernel in (np.exp, SplineTransformer(n_knots=3, include_bias=False), np.c_[x, np.cos(x)]):
        assert relative(kernel) == pytest.approx(absolute(p, kernel) / absolute(y, kernel))


def test_predictions_are_measured_and_targets_only_divide():
    x = [0.0, 1.0, 2.0, 3.0]
    assert gedi([9, 9, 9, 9], [0.0, 1.0, 2.0, 3.0], sensitive_features=x) == pytest.approx(1)
    assert gedi([0, 4, 8, 12], [0, 1, 2, 3], sensitive_features=x, relative=True) == pytest.approx(
        0.25
    )


def test_zero_reference_is_undefined_not_fair():
    x = [-1, 0, 1, -1, 0, 1.0]
    y, p = [1, 0, 1, 1, 0, 1.0], [0, 0, 1, 0, 1, 1.0]
    assert gedi(y, p, sensitive_features=x) == pytest.approx(0.5)
    with pytest.warns(UndefinedMetricWarning, match="relative"):
        assert np.isnan(gedi(y, p, sensitive_features=x, relative=True))
    for measure_ in (didi, didi_of_bins):
        with pytest.warns(UndefinedMetricWarning, match="relative"):
            value = measure_([1.5] * 6, p, sensitive_features=x, relative=True, task="regression")
        assert np.isnan(value)


@pytest.mark.parametrize("shift", [0.0, 1950.0])
def test_reference_of_independent_targets_counts_as_zero(shift):
    # In floats the indicator of such targets is about 1e-17, never 0.
    rng = np.random.default_rng(6)
    x = rng.normal(size=500) * 7.3
    y = rng.normal(size=500)
    y -= np.polyval(np.polyfit(x, y, 1), x)
    with pytest.warns(UndefinedMetricWarning, match="relative"):
        assert np.isnan(gedi(y * 0.1, x, sensitive_features=x + shift, relative=True))


def test_constant_attribute_is_undefined():
    y, x = [0.1, 0.2, 0.7], [0.1, 0.1, 0.1]
    for measure_ in (gedi, didi, didi_of_bins):
        with pytest.warns(UndefinedMetricWarning, match="sensitive_features is constant"):
            assert np.isnan(measure_(y, sensitive_features=x))
    with pytest.warns(UndefinedMetricWarning, match="constant"):
        coefficients = gedi_coefficients(y, sensitive_features=x, kernel=3)
    np.testing.assert_array_equal(coefficients, [np.nan] * 3)


def test_too_few_distinct_values_raise():
    with pytest.raises(RankDeficientKernelError, match="only 1 of them") as caught:
        gedi([0.0, 1.0, 2.0], sensitive_features=[0, 1, 1], kernel=2)
    assert caught.value.rank == 1


def test_didi_of_three_groups():
    y, group = [1.5, 3.5, 5.5, 7.5], ["a", "a", "b", "c"]
    assert didi(y, sensitive_features=group) == pytest.approx(2 + 1 + 3)
    weighted = didi(y, sensitive_features=group, sample_weight=[1, 0, 2, 1])
    assert weighted == pytest.approx(3.5 + 0.5 + 2.5)


def test_didi_of_classes_sums_over_the_classes():
    group = ["a", "a", "b", "b"]
    y = ["x", "y", "z", "z"]
    shares = {"x": (0.5, 0), "y": (0.5, 0), "z": (0, 1)}
    expected = sum(abs(a - (a + b) / 2) + abs(b - (a + b) / 2) for a, b in shares.values())
    assert didi(y, sensitive_features=group) == pytest.approx(expected)
    assert didi(y, sensitive_features=group, pos_label="z") == pytest.approx(2.0)
    scores = [0.0, 0.0, 1.0, 0.5]
    for truth in (["n", "n", "y", "y"], [0, 0, 1, 1]):
        value = didi(truth, scores, sensitive_features=group, task="classification")
        assert value == pytest.approx(2 * didi(scores, sensitive_features=group, task="regression"))


def test_groups_of_several_columns_are_their_combinations():
    sex, race = ["f", "f", "m", "m"], ["x", "y", "x", "y"]
    y = [0.5, 1.5, 2.5, 4.5]
    assert didi(y, sensitive_features=np.c_[sex, race]) == pytest.approx(1.75 + 0.75 + 0.25 + 2.25)


def test_merged_bins_are_reported():
    gain, y = [0] * 6 + [1, 2, 3, 4], [0, 1, 0, 1, 0, 1, 1, 1, 1, 1.0]
    with pytest.warns(UserWarning, match=r"5 bins were asked for, 3 are used"):
        value = didi(y, sensitive_features=gain, n_bins=5, task="regression")
    assert value == pytest.approx(0.8)


@pytest.mark.parametrize("bins", [2, [-1, 8, 9]])
def test_one_bin_is_an_error_not_fairness(bins):
    y = [0, 1, 0, 1, 0, 1, 1, 1, 1, 1.0]
    with pytest.raises(ValueError, match="cannot be cut into 2 bins"):
        didi(y, sensitive_features=[0] * 9 + [7], n_bins=bins, task="regression")


def test_edges_learnt_on_one_sample_serve_another():
    edges = quantile_bin_edges([1, 2, 3, 4, 5, 6, 7], n_bins=3)
    np.testing.assert_allclose(edges, [1, 3, 5, 7])
    # Closed on the right, the outer bins are open-ended.
    y = [0.5, 0, 1, 0, 2, 0]
    value = didi(y, sensitive_features=[-9, 3, 3.1, 5, 5.1, 99], n_bins=edges)
    mean = 3.5 / 6
    assert value == pytest.approx(abs(0.25 - mean) + abs(0.5 - mean) + abs(1 - mean))


def test_weighted_edges_are_those_of_repeated_rows():
    np.testing.assert_allclose(
        quantile_bin_edges([4, 1, 2, 3], n_bins=2, sample_weight=[1, 5, 1, 1]), [1, 4]
    )
    np.testing.assert_allclose(
        quantile_bin_edges([4, 1, 2, 3], n_bins=2, sample_weight=[3, 1, 1, 1]), [1, 3.5, 4]
    )
    np.testing.assert_allclose(
        quantile_bin_edges([4, 1, 2, 3], n_bins=2, sample_weight=[2, 2, 2, 2]), [1, 2.5, 4]
    )
    # Weights below 1 are scaled to sum to n; ranks are reached exactly, whatever the rounding.
    np.testing.assert_allclose(
        quantile_bin_edges([1, 2, 3, 4], n_bins=3, sample_weight=[0.1, 0.1, 0.05, 0.05]), [1, 2, 4]
    )


@pytest.mark.parametrize("edges", [[1, 2], [1, 1, 2], [3, 2, 1], [[1, 2, 3]], [1, np.nan, 3]])
def test_wrong_edges_are_refused(edges):
    with pytest.raises(ValueError, match=r"bins (must be|contains NaN)"):
        didi([1.5, 2.5, 3.5], sensitive_features=[1, 2, 3], n_bins=edges)


def test_several_attributes_cannot_be_binned():
    with pytest.raises(ValueError, match="one attribute"):
        didi([1.5, 2.5], sensitive_features=[[1, 2], [3, 4]], n_bins=3)


def test_many_rows_need_no_copies():
    x = np.random.default_rng(7).normal(size=300_000)
    y = x + 0.3 * x**2
    gedi(y[:9], sensitive_features=x[:9])  # what is imported late is not counted
    tracemalloc.start()
    value = gedi(y, sensitive_features=x, kernel=5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < x.nbytes + y.nbytes
    F = np.column_stack([x**j for j in range(1, 6)])
    expected = np.abs(np.linalg.lstsq(F - F.mean(axis=0), y - y.mean(), rcond=None)[0]).sum()
    assert value == pytest.approx(expected, rel=1e-10)
