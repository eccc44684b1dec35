"""The table of all indicators."""

import sys

import numpy as np
import pandas as pd
import pytest

from gedi_sklearn import PolynomialKernel
from gedi_sklearn.exceptions import RankDeficientKernelError
from gedi_sklearn.metrics import binned_didi, didi, gedi, gedi_interval, gedi_null, hgr
from gedi_sklearn.report import fairness_report

COLUMNS = ["indicator", "parameter", "value", "y_true", "null_mean", "null_q95", "low", "high"]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(20, 60, size=300)
    y = x / 20 + rng.normal(size=300)
    return x, y, 0.5 * y + 0.1 * rng.normal(size=300)


def test_values_are_those_of_the_indicators(data):
    x, y, p = data
    table = fairness_report(y, p, sensitive_features=x, n_resamples=20)
    assert list(table.columns) == COLUMNS
    for row in table.itertuples():
        options = {"sensitive_features": x}
        if row.indicator.startswith("gedi"):
            options["kernel"] = PolynomialKernel(row.parameter, standardize=True)
            options["norm"] = "sd" if row.indicator == "gedi_sd" else "l1"
            expected, reference = gedi(p, **options), gedi(y, **options)
            null = gedi_null(p, **options)
            assert row.null_mean == pytest.approx(null.mean)
            assert row.null_q95 == pytest.approx(null.quantiles[-1], rel=0.1)
            np.testing.assert_allclose([row.low, row.high], gedi_interval(p, **options))
        elif row.indicator == "binned_didi":
            expected = binned_didi(p, bins=row.parameter, **options)
            reference = binned_didi(y, bins=row.parameter, **options)
        else:
            expected, reference = hgr(p, **options), hgr(y, **options)
        assert row.value == pytest.approx(expected)
        assert row.y_true == pytest.approx(reference)
    assert (table["null_mean"] < table["null_q95"]).all()
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    assert list(table["parameter"]) == [d for d in range(1, 6) for _ in "ab"] + [2, 3, 5, 10, "kde"]


def test_null_of_didi_agrees_with_permutations(data):
    x, _, p = data
    rng = np.random.default_rng(1)
    table = fairness_report(p, sensitive_features=x, degrees=[1], bins=[3, 5], n_resamples=10)
    for row in table[table["indicator"] == "binned_didi"].itertuples():
        permuted = [
            binned_didi(rng.permutation(p), sensitive_features=x, bins=row.parameter)
            for _ in range(200)
        ]
        assert row.null_mean == pytest.approx(np.mean(permuted), rel=0.15)


def test_independent_predictions_stay_near_the_null():
    rng = np.random.default_rng(2)
    x, y, p = rng.uniform(size=(3, 400))
    table = fairness_report(y, p, sensitive_features=x, n_resamples=50)
    linear = table[table["indicator"] != "hgr"]
    assert (linear["low"] == 0).all()
    assert (linear["value"] < 3 * linear["null_mean"]).all()


def test_few_values_are_groups_and_limit_the_degree():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, 200)
    y = rng.integers(0, 2, 200)
    table = fairness_report(y, sensitive_features=x, n_resamples=10)
    assert list(table["indicator"]) == ["gedi", "gedi_sd", "gedi", "gedi_sd", "didi", "hgr"]
    value = table.loc[table["indicator"] == "didi", "value"].item()
    assert value == pytest.approx(didi(y, sensitive_features=x))


def test_labels_categories_and_weights():
    rng = np.random.default_rng(4)
    group = rng.choice(["a", "b", "c"], size=200)
    y = rng.choice(["no", "yes"], size=200)
    weight = rng.uniform(1, 2, size=200)
    table = fairness_report(y, sensitive_features=group, pos_label="yes", sample_weight=weight)
    assert list(table["indicator"]) == ["gedi", "gedi_sd", "didi"]
    value = table.loc[table["indicator"] == "didi", "value"].item()
    assert value == pytest.approx(didi(y, sensitive_features=group, sample_weight=weight))


def test_bins_that_merge_are_reported():
    x = np.r_[np.zeros(150), np.linspace(1, 2, 50)]
    y = np.linspace(0.1, 1, 200)
    with pytest.warns(UserWarning, match=r"5 bins were asked for, 2 are used"):
        table = fairness_report(y, sensitive_features=x, degrees=[1], bins=[5], n_resamples=5)
    assert table["parameter"].tolist() == [1, 1, 2, "kde"]


def test_without_pandas_it_is_a_dict(data, monkeypatch):
    x, y, _ = data
    options = {"sensitive_features": x, "degrees": [1], "bins": [2], "n_resamples": 5}
    table = fairness_report(y, **options, as_frame=False)
    assert isinstance(table, dict)
    assert {len(column) for column in table.values()} == {4}
    assert isinstance(fairness_report(y, **options), pd.DataFrame)
    monkeypatch.setattr("gedi_sklearn.report.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert fairness_report(y, **options) == table


def test_a_constant_attribute_is_an_error(data):
    _, y, _ = data
    with pytest.raises(RankDeficientKernelError):
        fairness_report(y, sensitive_features=np.ones(300))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degrees": [0]}, "degrees must hold integers of at least 1, got 0"),
        ({"degrees": [1, 1.5]}, "degrees must hold integers of at least 1, got 1.0"),
        ({"degrees": ["2"]}, "degrees must hold integers of at least 1, got '2'"),
        ({"bins": [2.5]}, "bins must hold integers of at least 2, got 2.5"),
        ({"bins": [1]}, "bins must hold integers of at least 2, got 1"),
    ],
)
def test_degrees_and_bins_are_never_rounded_or_left_out(data, options, message):
    x, y, p = data
    with pytest.raises(ValueError, match=message):
        fairness_report(y, p, sensitive_features=x, **options)


def test_degrees_come_in_any_order(data):
    x, y, _ = data
    table = fairness_report(y, sensitive_features=np.round(x / 20), degrees=[5, 2, 1], bins=[2])
    assert list(table["parameter"][table["indicator"] == "gedi"]) == [2, 1]
