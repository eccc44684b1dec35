"""GeDI with its other norms, covariates, several and categorical attributes."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.preprocessing import OneHotEncoder

from gedi_sklearn import CoarseConstraint, FourierKernel, PolynomialKernel, project_targets
from gedi_sklearn.exceptions import RankDeficientKernelError
from gedi_sklearn.metrics import didi, gedi, gedi_coefficients, gedi_inference

RNG = np.random.default_rng(0)


def explained_deviation(y, *columns, weight=None):
    """Deviation of the least-squares fit of y on the columns."""
    root = np.sqrt(np.ones(len(y)) if weight is None else weight)
    system = np.c_[np.ones(len(y)), np.column_stack(columns)]
    beta = np.linalg.lstsq(system * root[:, None], y * root, rcond=None)[0]
    fit = system @ beta
    mean = np.average(fit, weights=weight)
    return np.sqrt(np.average((fit - mean) ** 2, weights=weight))


@pytest.mark.parametrize("weight", [None, RNG.integers(1, 4, 200)])
def test_sd_norm_is_the_deviation_of_the_fit(weight):
    x, y = RNG.normal(size=(2, 200))
    for degree in (1, 2, 4):
        powers = [x**j for j in range(1, degree + 1)]
        value = gedi(y, sensitive_features=x, kernel=degree, norm="sd", sample_weight=weight)
        assert value == pytest.approx(explained_deviation(y, *powers, weight=weight))


def test_sd_norm_knows_no_unit_and_grows_with_the_degree():
    x, y = RNG.normal(size=(2, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the units are the point here
        values = [
            [gedi(y, sensitive_features=u * x + o, kernel=d, norm="sd") for d in range(1, 6)]
            for u, o in [(1, 0), (10, 500), (0.01, -3)]
        ]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-8)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-8)
    assert (np.diff(values[0]) >= -1e-12).all()


def test_adjusted_sd_is_the_adjusted_r_squared():
    x, y = RNG.normal(size=(2, 60))
    y = y + 0.5 * x
    raw = gedi(y, sensitive_features=x, kernel=3, norm="sd")
    r2 = (raw / y.std()) ** 2
    adjusted = 1 - (1 - r2) * 59 / (60 - 3 - 1)
    value = gedi(y, sensitive_features=x, kernel=3, norm="adjusted_sd")
    assert value == pytest.approx(y.std() * np.sqrt(adjusted))
    weight = RNG.integers(1, 4, 60)
    weighted = gedi(y, sensitive_features=x, norm="adjusted_sd", sample_weight=weight)
    repeated = gedi(
        np.repeat(y, weight), sensitive_features=np.repeat(x, weight), norm="adjusted_sd"
    )
    assert weighted == pytest.approx(repeated)


def test_adjusted_sd_has_little_bias():
    values = []
    for seed in range(200):
        x, y = np.random.default_rng(seed).normal(size=(2, 50))
        options = {"sensitive_features": x, "kernel": PolynomialKernel(3, standardize=True)}
        values.append([gedi(y, **options, norm=norm) ** 2 for norm in ("sd", "adjusted_sd")])
    plain, adjusted = np.mean(values, axis=0)
    assert adjusted < 0.5 * plain


def test_adjusted_sd_without_degrees_of_freedom_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="more rows"):
        value = gedi([0, 1, 3], sensitive_features=[1, 2, 4], kernel=2, norm="adjusted_sd")
    assert np.isnan(value)


@pytest.mark.parametrize("norm", ["sd", "adjusted_sd"])
def test_norms_are_relative_too(norm):
    x, y = RNG.normal(size=(2, 300))
    y = y + x
    p = 0.5 * y
    value = gedi(y, p, sensitive_features=x, norm=norm, relative=True)
    assert value == pytest.approx(0.5)


@pytest.mark.parametrize("weighted", [False, True])
def test_conditional_is_the_coefficient_beside_the_covariates(weighted):
    x, c1, c2, y = RNG.normal(size=(4, 150))
    x = x + c1
    y = y + x - 2 * c1
    weight = RNG.integers(1, 5, 150) if weighted else np.ones(150)
    root = np.sqrt(weight)[:, None]
    system = np.c_[x, x**2, c1, c2, np.ones(150)] * root
    beta = np.linalg.lstsq(system, y * root[:, 0], rcond=None)[0]
    value = gedi(
        y, sensitive_features=x, kernel=2, conditional_on=np.c_[c1, c2], sample_weight=weight
    )
    assert value == pytest.approx(np.abs(beta[:2]).sum())
    # Dependent covariates and a constant one change nothing.
    more = np.c_[c1, c2, c1 - c2, np.ones(150)]
    assert gedi(
        y, sensitive_features=x, kernel=2, conditional_on=more, sample_weight=weight
    ) == pytest.approx(value)


def test_conditional_takes_a_legitimate_explanation_out():
    c, noise = RNG.normal(size=(2, 400))
    x = c + noise
    y = 3 * c
    assert gedi(y, sensitive_features=x) > 1
    assert gedi(y, sensitive_features=x, conditional_on=c) == pytest.approx(0, abs=1e-12)
    p = y + 0.2 * x
    value = gedi(y + x, p, sensitive_features=x, conditional_on=c, relative=True)
    assert value == pytest.approx(0.2)


def test_conditional_on_categories():
    group = np.repeat(["a", "b", "c"], 40)
    shift = np.repeat([0.0, 5.0, -3.0], 40)
    x = RNG.normal(size=120) + shift
    y = 0.5 * x + shift
    for covariates in (group, pd.Series(group, dtype="category"), pd.DataFrame({"g": group})):
        value = gedi(y, sensitive_features=x, conditional_on=covariates)
        assert value == pytest.approx(0.5)


def test_conditional_on_the_attribute_itself_is_undefined():
    x, y = RNG.normal(size=(2, 50))
    with pytest.warns(UndefinedMetricWarning, match="given conditional_on"):
        assert np.isnan(gedi(y, sensitive_features=x, conditional_on=2 * x + 1))
    with pytest.raises(RankDeficientKernelError, match="conditional_on leaves 1"):
        gedi(y, sensitive_features=x, kernel=2, conditional_on=x)
    for bad in (y[:-1], np.r_[y[:-1], np.nan]):
        with pytest.raises(ValueError, match="conditional_on"):
            gedi(y, sensitive_features=x, conditional_on=bad)


def test_several_attributes_are_measured_jointly():
    a, b = RNG.normal(size=(2, 80))
    y = a * b
    frame = pd.DataFrame({"age": a, "income": b})
    coefficients, names = gedi_coefficients(
        y, sensitive_features=frame, kernel=2, return_names=True
    )
    assert names == ["age", "income", "age^2", "age income", "income^2"]
    np.testing.assert_allclose(coefficients, [0, 0, 0, 1, 0], atol=1e-12)
    # Never the first column alone.
    assert gedi(y, sensitive_features=frame, kernel=2) == pytest.approx(1)
    assert gedi(b, sensitive_features=frame) == pytest.approx(1)


@pytest.mark.parametrize(
    "convert",
    [list, np.asarray, pd.Series, lambda v: pd.Series(v, dtype="category"), pl.Series],
)
def test_levels_are_compared_to_the_first(convert):
    group = ["b", "a", "c", "a", "b", "c", "a", "c"]
    y = RNG.normal(size=8)
    means = {
        level: np.mean([v for v, g in zip(y, group, strict=True) if g == level]) for level in "abc"
    }
    coefficients, names = gedi_coefficients(y, sensitive_features=convert(group), return_names=True)
    assert names == ["x0=b", "x0=c"]
    np.testing.assert_allclose(coefficients, [means["b"] - means["a"], means["c"] - means["a"]])


def test_numbers_as_categories_are_levels():
    y = [0.0, 1.0, 5.0, 1.0, 2.0, 3.0]
    group = pd.Series([1, 2, 3, 1, 2, 3], dtype="category", name="grade")
    coefficients, names = gedi_coefficients(y, sensitive_features=group, return_names=True)
    assert names == ["grade=2", "grade=3"]
    np.testing.assert_allclose(coefficients, [1.0, 3.5])


def test_two_levels_are_the_gap_of_didi():
    group = np.where(RNG.normal(size=60) > 0, "m", "f")
    y = RNG.normal(size=60)
    assert gedi(y, sensitive_features=group) == pytest.approx(didi(y, sensitive_features=group))


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.FewRowsWarning")
@pytest.mark.parametrize("weighted", [False, True])
@given(st.data())
@settings(max_examples=20, deadline=None)
def test_levels_measured_by_groups_are_indicator_columns(weighted, data):
    """What is computed once a group equals the dense columns, up to rounding."""
    n, degree = data.draw(st.integers(30, 120)), data.draw(st.integers(1, 2))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    first = np.r_[0:6, rng.integers(0, 6, n - 6)]
    second = np.r_[[0, 1] * 3, [1, 0] * 3, rng.integers(0, 2, n - 12)]
    first[6:12] = np.arange(6)  # every pair of levels occurs
    attribute = {"a": [f"level {v}" for v in first], "b": [f"level {v}" for v in second]}
    a, b = (first[:, None] == np.arange(1, 6)) * 1.0, (second[:, None] == 1) * 1.0
    columns = np.c_[a, b] if degree == 1 else np.c_[a, b, a * b]
    y = 1e3 + first + first * second + rng.normal(size=n)
    weight = rng.uniform(0.1, 3, n) * (np.arange(n) != 20) if weighted else None

    def values(attribute, **kernel):
        options = {"sensitive_features": attribute, "sample_weight": weight, **kernel}
        yield gedi_coefficients(y, **options)
        for norm in ("l1", "sd", "adjusted_sd"):
            relative = degree if norm == "l1" else True
            yield gedi(y, y**2, norm=norm, relative=relative, **options)
        yield gedi(y, conditional_on=np.arange(n) % 7, **options)
        yield tuple(gedi_inference(y, **options).interval)

    by_group = values(pd.DataFrame(attribute), kernel=degree)
    dense = values(np.arange(n), kernel=columns)
    for own, expected in zip(by_group, dense, strict=True):
        # An interval divides by 1 - leverage, which is small where one row makes up a group.
        rtol = 1e-6 if isinstance(own, tuple) else 1e-9
        np.testing.assert_allclose(own, expected, rtol=rtol)


def test_mixed_frames_have_interactions_but_no_powers_of_levels():
    age = RNG.normal(size=90)
    sex = np.tile(["f", "m", "m"], 30)
    y = age + 2 * age * (sex == "m") + 0.5 * (sex == "m")
    frame = pd.DataFrame({"age": age, "sex": sex})
    for kernel in (PolynomialKernel(2), PolynomialKernel(2, standardize=True)):
        coefficients, names = gedi_coefficients(
            y, sensitive_features=frame, kernel=kernel, return_names=True
        )
        assert names == ["age", "sex=m", "age^2", "age sex=m"]
    raw = gedi_coefficients(y, sensitive_features=frame, kernel=2)
    np.testing.assert_allclose(raw, [1, 0.5, 0, 2], atol=1e-12)
    # Standardised, a level's coefficient is its gap where the other attributes have their mean.
    np.testing.assert_allclose(
        coefficients, [age.std(), 0.5 + 2 * age.mean(), 0, 2 * age.std()], atol=1e-12
    )


def test_levels_of_one_attribute_do_not_interact():
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 8, "b": (["p"] * 3 + ["q"] * 3) * 4})
    y = RNG.normal(size=24)
    _, names = gedi_coefficients(y, sensitive_features=frame, kernel=3, return_names=True)
    assert names == ["a=y", "a=z", "b=q", "a=y b=q", "a=z b=q"]


def test_categories_elsewhere():
    group, y = ["a", "b", "a", "c", "b"], [1.0, 2.0, 0.0, 4.0, 1.5]
    encoder = OneHotEncoder(drop="first")
    assert gedi(y, sensitive_features=group, kernel=encoder) == pytest.approx(
        gedi(y, sensitive_features=group)
    )
    with pytest.raises(ValueError, match="FourierKernel needs numbers"):
        gedi(y, sensitive_features=group, kernel=FourierKernel(1))
    with pytest.warns(UndefinedMetricWarning, match="constant"):
        assert np.isnan(gedi(y, sensitive_features=["a"] * 5))
    weighted = gedi(y, sensitive_features=group, sample_weight=[1, 2, 1, 0, 1])
    repeated = gedi([1, 2, 2, 0, 1.5], sensitive_features=["a", "b", "b", "a", "b"])
    assert weighted == pytest.approx(repeated)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_precomputed_kernels_of_the_indicators_only(frame):
    x = np.linspace(-1, 1, 30)
    y, columns = x + x**2, np.c_[x, x**2]
    kernel = frame(dict(zip("ab", columns.T, strict=True)))
    assert gedi(y, sensitive_features=x, kernel=kernel) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="kernel"):
        project_targets(y, sensitive_features=x, constraint=CoarseConstraint(kernel=kernel))
    with pytest.raises(ValueError, match="precomputed columns serve indicators only"):
        project_targets(y, sensitive_features=x, constraint=CoarseConstraint(kernel=kernel))
