"""Kernels as transformers, and the numerics behind every coefficient."""

import copy
import pickle
import warnings
from functools import partial

import mpmath
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, SplineTransformer
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    FourierKernel,
    MovingTargetsRegressor,
    PolynomialKernel,
    ProjectedRegressor,
    SplineKernel,
    project_targets,
)
from gedi_sklearn.exceptions import (
    AttributeScaleWarning,
    IllConditionedKernelWarning,
    RankDeficientKernelError,
    UnseenLevelError,
)
from gedi_sklearn.kernels import (
    KERNEL_CONSTRAINTS,
    NAMED_KERNELS,
    describe_kernel,
    fit_kernel,
    fit_resolved,
    kernel_of_degree,
    list_columns,
    resolve_kernel,
    warn_attribute_scale,
)
from gedi_sklearn.metrics import gedi, gedi_coefficients, make_disparity_scorer

RNG = np.random.default_rng(0)
BIRTH = np.linspace(1930, 2005, 60)
KERNELS = {
    "polynomial": PolynomialKernel(4),
    "standardized": PolynomialKernel(3, standardize=True),
    "fourier": FourierKernel(2, period=7.0),
    "spline": SplineKernel(),
    "transformer": SplineTransformer(n_knots=4, include_bias=False),
    "callable": lambda v: np.c_[np.exp(v), np.abs(v), v],
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


@parametrize_with_checks(
    [PolynomialKernel(2), PolynomialKernel(standardize=True), FourierKernel(), SplineKernel()]
)
def test_kernels_are_scikit_learn_transformers(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", [PolynomialKernel(), FourierKernel(), SplineKernel()])
def test_parameters_are_validated(kernel):
    check_param_validation(type(kernel).__name__, kernel)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_polynomial_columns_are_those_of_scikit_learn(m, degree):
    x = RNG.normal(size=(20, m))
    reference = PolynomialFeatures(degree, include_bias=False).fit(x)
    kernel = PolynomialKernel(degree).fit(x)
    np.testing.assert_allclose(kernel.transform(x), reference.transform(x))
    assert list(kernel.get_feature_names_out()) == list(reference.get_feature_names_out())


def test_standardized_columns_use_the_weighted_training_moments():
    x, w = np.array([[1.0], [3.0], [9.0]]), np.array([1.0, 3.0, 0.0])
    kernel = PolynomialKernel(2, standardize=True).fit(x, sample_weight=w)
    assert kernel.mean_ == pytest.approx(2.5)
    assert kernel.scale_ == pytest.approx(np.sqrt(0.75))
    z = (x - 2.5) / np.sqrt(0.75)
    np.testing.assert_allclose(kernel.transform(x), np.c_[z, z**2])


def test_fourier_columns_and_period():
    x = np.array([[0.0], [1.0], [4.0], [99.0]])
    kernel = FourierKernel(2).fit(x, sample_weight=[1, 1, 1, 0])
    assert kernel.period_ == pytest.approx(4)
    angle = np.pi / 2 * x[:, 0]
    expected = np.c_[np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)]
    np.testing.assert_allclose(kernel.transform(x), expected, atol=1e-13)
    assert list(kernel.get_feature_names_out(["t"])) == ["sin1(t)", "cos1(t)", "sin2(t)", "cos2(t)"]
    assert FourierKernel(1).fit(np.c_[x, x]).transform(np.c_[x, x]).shape == (4, 4)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("degree", [1, 3, 5])
def test_basis_changes_are_inverse(m, degree):
    values = RNG.uniform(20, 60, size=(90, m))
    fitted = fit_kernel(degree, values).fitted
    to_raw, from_raw = fitted.basis.to_raw, fitted.basis.from_raw
    rounding = 1e-14 * np.abs(to_raw) @ np.abs(from_raw)
    assert (np.abs(to_raw @ from_raw - np.eye(fitted.n_columns)) <= rounding).all()
    np.testing.assert_array_equal(np.tril(fitted.basis.to_raw, -1), 0)
    coefficients = RNG.normal(size=fitted.n_columns)
    np.testing.assert_allclose(
        fitted.to_raw(fitted.from_raw(coefficients)), coefficients, rtol=1e-6, atol=1e-9
    )


@every_kernel
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [50, 12_345, 50_001])
def test_coefficients_equal_least_squares(kernel, weighted, n):
    rng = np.random.default_rng(n)
    x, z = rng.normal(size=(2, n))
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    design = fit_kernel(kernel, x[:, None], weight=weight)
    columns = kernel(x) if callable(kernel) else clone(kernel).fit_transform(x[:, None])
    if weighted and hasattr(kernel, "get_params"):
        columns = clone(kernel).fit(x[:, None], sample_weight=weight).transform(x[:, None])
    root = np.sqrt(np.ones(n) if weight is None else weight)
    system = np.c_[np.ones(n), columns] * root[:, None]
    expected = np.linalg.lstsq(system, z * root, rcond=None)[0][1:]
    np.testing.assert_allclose(design.coefficients(z), expected, rtol=1e-8, atol=1e-11)


def exact_coefficients(x, z, degree):
    """Least squares on raw powers in 60 digits."""
    with mpmath.workdps(60):
        x, z = mpmath.matrix(x.tolist()), mpmath.matrix(z.tolist())
        columns = mpmath.matrix(len(x), degree + 1)
        for i in range(len(x)):
            for j in range(degree + 1):
                columns[i, j] = x[i] ** j
        solution = mpmath.lu_solve(columns.T * columns, columns.T * z)
        return np.array([float(value) for value in solution[1:]])


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_coefficients_of_birth_years_have_their_digits(degree):
    z = np.sin(BIRTH / 9) + RNG.normal(size=BIRTH.size)
    design = fit_kernel(degree, BIRTH[:, None])
    exact = exact_coefficients(BIRTH, z, degree)
    # (|mean| / sd)^(degree − 1) digits are lost in the conversion, no more.
    np.testing.assert_allclose(design.coefficients(z), exact, rtol=1e-15 * 90.0**degree)
    exact = design.fitted.from_raw(exact) if degree < 3 else None
    if exact is not None:
        np.testing.assert_allclose(design.standardized(z), exact, rtol=1e-9)


@every_kernel
def test_orthonormal_basis(kernel):
    x = RNG.normal(size=(300, 1))
    weight = RNG.uniform(0.5, 2, 300)
    design = fit_kernel(kernel, x, weight=weight)
    fitted, share = design.fitted, weight / weight.sum()
    Q = design.orthonormal
    np.testing.assert_allclose((Q * share[:, None]).T @ Q, np.eye(Q.shape[1]), atol=1e-9)
    np.testing.assert_allclose(share @ Q, 0, atol=1e-9)
    z = RNG.normal(size=300)
    np.testing.assert_allclose(design.coordinates(z), Q.T @ (share * (z - share @ z)), atol=1e-11)
    # The three bases span one function: F̃ α̃ = Q c.
    np.testing.assert_allclose(
        fitted.transform(x) @ design.coefficients(z), Q @ design.coordinates(z), atol=1e-9
    )


@every_kernel
def test_new_rows_keep_the_training_centre(kernel):
    x = RNG.normal(size=(80, 1))
    fitted = fit_kernel(kernel, x).fitted
    np.testing.assert_allclose(fitted.transform(x).mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(fitted.transform(x[:5]), fitted.transform(x)[:5], atol=1e-12)


def test_kernel_state_is_small_and_survives_copies():
    x, z = RNG.normal(size=(2, 20_000))
    for kernel in (PolynomialKernel(5), FourierKernel(3), np.exp, SplineTransformer()):
        if isinstance(kernel, SplineTransformer):
            kernel.set_params(include_bias=False)
        design = fit_kernel(kernel, x[:, None])
        stored = pickle.dumps(design.fitted)
        assert len(stored) < 10_000
        for twin in (pickle.loads(stored), copy.deepcopy(design.fitted)):
            np.testing.assert_array_equal(twin.transform(x[:9]), design.fitted.transform(x[:9]))
        assert np.isfinite(design.coefficients(z)).all()


def test_unit_and_origin_do_not_reach_a_standardized_kernel():
    x, z = RNG.normal(size=(2, 200))
    kernel = PolynomialKernel(5, standardize=True)
    expected = fit_kernel(kernel, x[:, None]).coefficients(z)
    for unit, origin in [(10, 0), (1 / 10, 0), (1, 40), (3e4, 2e5)]:
        moved = fit_kernel(kernel, unit * x[:, None] + origin).coefficients(z)
        np.testing.assert_allclose(moved, expected, rtol=1e-8)


def test_several_columns_are_expanded_jointly():
    values = RNG.normal(size=(200, 2))
    a, b = values.T
    z = 2 * a - b + 3 * a * b - 0.5 * b**2
    design = fit_kernel(2, values, names=["a", "b"])
    named = dict(zip(design.fitted.names, design.coefficients(z).round(9), strict=True))
    assert named == {"a": 2, "b": -1, "a^2": 0, "a b": 3, "b^2": -0.5}


@pytest.mark.parametrize(
    ("values", "degree", "rank"),
    [
        (np.full(9, 0.1), 1, 0),
        (np.full(9, 1e9), 3, 0),
        (np.repeat([0.0, 1.0], 5), 2, 1),
        (np.repeat([2001.0, 2002.0, 2003.0], 5), 5, 2),
        (np.array([7.0]), 1, 0),
        (np.array([7.0, 8.0, 9.0]), 3, 2),
    ],
)
def test_dependent_columns_raise_with_their_rank(values, degree, rank):
    with pytest.raises(RankDeficientKernelError, match="linearly independent") as caught:
        fit_kernel(degree, values[:, None])
    assert caught.value.rank == rank
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.rank, copied.is_constant) == (rank, rank == 0)


@pytest.mark.parametrize("constraint", [DependenceConstraint(), DidiConstraint()])
def test_unseen_levels_are_named_beside_those_of_the_fit(constraint):
    pd = pytest.importorskip("pandas")
    codes, z = np.arange(60) % 3, RNG.normal(size=60)
    levels = pd.Series(codes, dtype="category")
    model = ProjectedRegressor(None, constraint).fit(
        z[:, None], codes + z, sensitive_features=levels
    )
    few = r"before: \['0.0', '1.0', '2.0'\]\. Those of the fit are \['0', '1', '2'\]"
    with pytest.raises(UnseenLevelError, match=few):  # numbers are no categories
        model.predict(z[:, None], sensitive_features=codes)
    names = [f"a{j}" for j in range(60)]
    with pytest.raises(UnseenLevelError, match=r"'a11', 'a12'\] and 55 more"):
        model.predict(z[:, None], sensitive_features=names)


def test_a_class_in_the_place_of_a_kernel_is_named():
    x, z = RNG.normal(size=(2, 40))
    model = ProjectedRegressor(None, DependenceConstraint(kernel=SplineKernel), sensitive_columns=0)
    for call in (
        lambda: gedi(z, sensitive_features=x, kernel=SplineKernel),
        lambda: model.fit(x[:, None], z),
    ):
        with pytest.raises(TypeError, match=r"kernel must be an object.* pass SplineKernel\(\)"):
            call()


@pytest.mark.parametrize("kernel", ["fourier", lambda v: np.ones((len(v), 1))])
@pytest.mark.parametrize("on", ["predictions", "distribution"])
def test_a_kernel_that_is_constant_is_no_constant_attribute(kernel, on):
    x, z = np.repeat([0.0, 1.0], 20), RNG.normal(size=40)  # one period apart
    with pytest.raises(RankDeficientKernelError, match="2 distinct value"):
        gedi(z, sensitive_features=x, kernel=kernel)
    constraint = DependenceConstraint(kernel=kernel, on=on)
    with pytest.raises(RankDeficientKernelError, match="2 distinct value"):
        ProjectedRegressor(None, constraint, sensitive_columns=0).fit(x[:, None], x + z)


def test_dependent_columns_of_other_kernels_raise():
    x = RNG.normal(size=(30, 1))
    with pytest.raises(RankDeficientKernelError):
        fit_kernel(lambda v: np.c_[v, 2 * v + 1], x)
    with pytest.raises(RankDeficientKernelError, match="include_bias=False"):
        fit_kernel(PolynomialFeatures(2), x)  # holds the constant
    with pytest.raises(RankDeficientKernelError):
        fit_kernel("polynomial", np.c_[x, -x])


def test_as_many_columns_as_values_are_enough():
    design = fit_kernel(2, np.array([[1.0], [2.0], [4.0]]))
    z = np.array([1.0, 0.0, 5.0])
    np.testing.assert_allclose(design.coefficients(z), np.polyfit([1, 2, 4], z, 2)[1::-1])


@pytest.mark.parametrize(
    ("unit", "origin", "warned"), [(1, 0, 0), (0.1, 0, 1), (10, 0, 1), (1, 5, 1)]
)
def test_scale_warning(unit, origin, warned):
    x = RNG.normal(size=(100, 1))
    x = unit * (x - x.mean()) / x.std() + origin
    for kernel, expected in [
        (PolynomialKernel(2), warned),
        (PolynomialKernel(1), 0),
        (PolynomialKernel(2, standardize=True), 0),
        (FourierKernel(2), 0),
    ]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_attribute_scale(fit_kernel(kernel, x))
        assert [w.category for w in caught] == [AttributeScaleWarning] * expected


def test_conditioning_warning():
    # A coefficient that is small beside those which cancel in it: linear targets, higher powers.
    years = 10_000 + np.arange(1930.0, 2006)[:, None]
    with pytest.warns(IllConditionedKernelWarning, match="standardize=True"):
        value = fit_kernel(5, years).checked_coefficients(years[:, 0] / 8)
    assert np.abs(value).sum() == pytest.approx(0.125, rel=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_kernel(2, BIRTH[:, None]).checked_coefficients(np.cos(BIRTH))
        fit_kernel(PolynomialKernel(5, standardize=True), BIRTH[:, None]).checked_coefficients(
            np.cos(BIRTH)
        )


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        ("poly", "unknown"),
        (3.5, "must be"),
        (lambda v: v[:-1], "returned 9 rows for 10"),
        (lambda v: v * np.nan, "contains NaN"),
        ([["a"]] * 10, "must hold numbers"),
    ],
)
def test_wrong_kernels_are_refused(kernel, match):
    with pytest.raises(ValueError, match=match):
        fit_kernel(kernel, np.arange(10.0)[:, None])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("spread", [0.3, 1.5])
def test_many_skewed_rows_keep_their_digits(spread, weighted):
    # The moments of a heavy tail are too nearly dependent, those of a light one are not.
    rng = np.random.default_rng(8)
    x = rng.lognormal(sigma=spread, size=30_000)
    z = np.log(x) + rng.normal(size=x.size)
    weight = rng.uniform(0.5, 2, x.size) if weighted else np.ones(x.size)
    kernel = PolynomialKernel(5, standardize=True)
    design = fit_kernel(kernel, x[:, None], weight=weight, target=z)
    columns = clone(kernel).fit(x[:, None], sample_weight=weight).transform(x[:, None])
    system = np.c_[np.ones(x.size), columns] * np.sqrt(weight)[:, None]
    scale = np.linalg.norm(system, axis=0)
    expected = np.linalg.lstsq(system / scale, z * np.sqrt(weight), rcond=1e-15)[0] / scale
    np.testing.assert_allclose(design.coefficients(z), expected[1:], rtol=1e-9)
    share = weight / weight.sum()
    assert design.deviation(z) == pytest.approx(np.sqrt(share @ (z - share @ z) ** 2))
    # A target that was not announced takes another way to the same place.
    np.testing.assert_allclose(design.coefficients(z.copy()), expected[1:], rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("attribute", ["normal", "sorted", "rare", "periodic", "beyond floats"])
def test_the_basis_of_many_rows_is_that_of_all(attribute, weighted):
    """Powers are summed up around the mean of a sample, whether or not it is like the rows."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=20_000)
    x = {
        "normal": x,
        "sorted": np.sort(x),
        "rare": np.where(rng.uniform(size=x.size) < 0.01, x, 0.0),
        "periodic": np.where(np.arange(x.size) % 20 == 0, 0.0, x - 9),
        "beyond floats": np.where(np.arange(x.size) % 20 == 1, 1e60 * x, 0.0),
    }[attribute]
    size = 1.0 if attribute != "beyond floats" else 1e60
    z = 1e5 + np.tanh(x / size) + rng.normal(size=x.size)
    weight = rng.uniform(0.5, 2, x.size) if weighted else np.ones(x.size)
    design = fit_kernel(PolynomialKernel(3), x[:, None], weight=weight, target=z)
    mean = np.average(x, weights=weight)
    deviation = np.sqrt(np.average(np.square(x - mean), weights=weight))
    basis = design.fitted.basis
    np.testing.assert_allclose(basis.mean, mean, atol=1e-14 * deviation)
    np.testing.assert_allclose(basis.scale, deviation, rtol=1e-13)
    system = np.vander(x / size, 4, increasing=True) * np.sqrt(weight)[:, None]
    expected = np.linalg.lstsq(system, (z - 1e5) * np.sqrt(weight), rcond=None)[0][1:]
    found = design.coefficients(z) * size ** np.arange(1.0, 4.0)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_categories_of_new_rows():
    values = np.array([["a", 1.0], ["b", 2.0], ["c", 4.0], ["a", 7.0], ["b", 5.0]], dtype=object)
    fitted = fit_kernel("polynomial", values, names=["group", "age"]).fitted
    assert fitted.names == ["group=b", "group=c", "age"]
    for twin in (fitted, pickle.loads(pickle.dumps(fitted))):
        columns = twin.transform(values[[1, 3]])
        np.testing.assert_allclose(columns, [[0.6, -0.2, -1.8], [-0.4, -0.2, 3.2]], atol=1e-12)
    with pytest.raises(ValueError, match=r"levels not seen before: \['d'\]"):
        fitted.transform(np.array([["d", 1.0]], dtype=object))


def test_names_of_fourier_columns():
    assert fit_kernel("fourier", RNG.normal(size=(9, 1)), names=["day"]).fitted.names == [
        "sin1(day)",
        "cos1(day)",
    ]


@every_kernel
def test_orthonormal_columns_of_new_rows_are_those_of_the_fit(kernel):
    x = RNG.normal(size=(80, 1))
    design = fit_kernel(kernel, x, weight=RNG.uniform(0.5, 2, 80))
    np.testing.assert_allclose(design.fitted.orthonormal(x), design.orthonormal, atol=1e-12)
    np.testing.assert_allclose(
        design.fitted.orthonormal(x[:5]) @ design.fitted.R_,
        design.fitted.transform(x[:5]) @ design.fitted.basis.to_raw,
        atol=1e-12,
    )
    with pytest.raises(ValueError, match=r"has 2 column\(s\)"):
        design.fitted.orthonormal(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="contains NaN"):
        design.fitted.orthonormal([np.nan])


def exact_orthonormal(rows, new_rows, degree):
    """Polynomials that are orthonormal on the rows, at other rows, in 60 digits."""
    numbers = [[mpmath.mpf(float(v)) for v in values] for values in (rows, new_rows)]
    found = [[[mpmath.mpf(1)] * len(values) for values in numbers]]
    for power in range(1, degree + 1):
        own = [[v**power for v in values] for values in numbers]
        for earlier in found:
            overlap = mpmath.fdot(earlier[0], own[0]) / len(rows)
            own = [
                [a - overlap * b for a, b in zip(*pair, strict=True)]
                for pair in zip(own, earlier, strict=True)
            ]
        size = mpmath.sqrt(mpmath.fdot(own[0], own[0]) / len(rows))
        found.append([[v / size for v in values] for values in own])
    return list(zip(*[column[1] for column in found[1:]], strict=True))


@pytest.mark.parametrize(("degree", "error"), [(3, 4e-15), (5, 2e-14), (8, 2e-13)])
def test_functions_of_birth_years_keep_their_digits_on_new_rows(degree, error):
    rng = np.random.default_rng(degree)
    years, new_years = rng.integers(1930, 2006, 300).astype(float), np.linspace(1930, 2005, 40)
    coordinates = rng.normal(size=degree)
    values = fit_kernel(degree, years[:, None]).fitted.orthonormal(new_years)
    with mpmath.workdps(60):
        rows = exact_orthonormal(years, new_years, degree)
        exact = [mpmath.fdot(row, map(float, coordinates)) for row in rows]
        off = max(abs(float(v) - e) for v, e in zip(values @ coordinates, exact, strict=True))
        assert off < error * max(map(abs, exact))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_conditional_kernel_knows_new_rows(weighted):
    rng = np.random.default_rng(3)
    covariates = rng.normal(size=(400, 3)) * [1.0, 100.0, 0.0] + [0.0, 1e4, 5.0]
    covariates = np.c_[covariates, covariates[:, :1] - covariates[:, 1:2]]  # dependent: welcome
    x = 50 + 9 * rng.normal(size=(400, 1)) + 3 * covariates[:, :1]
    y = 0.2 * x[:, 0] + 0.01 * covariates[:, 1] + rng.normal(size=400)
    weight = rng.uniform(0.5, 2, 400) if weighted else None
    design = fit_kernel(3, x, weight=weight).beside(covariates)
    stored = pickle.dumps(design.fitted)
    assert len(stored) < 4_000
    kernel = pickle.loads(stored)
    Q = kernel.orthonormal(x, covariates)
    np.testing.assert_allclose(Q, design.orthonormal, atol=1e-12)
    np.testing.assert_array_equal(kernel.orthonormal(x[:7], covariates[:7]), Q[:7])

    root = np.ones(400) if weight is None else np.sqrt(weight)
    system = np.c_[np.ones(400), covariates[:, :2] - [0.0, 1e4], Q] * root[:, None]
    coordinates = np.linalg.lstsq(system, y * root, rcond=None)[0][-3:]
    np.testing.assert_allclose(design.coordinates(y), coordinates, atol=1e-10)
    coefficients = kernel.to_raw(np.linalg.solve(kernel.R_, coordinates))
    np.testing.assert_allclose(design.coefficients(y), coefficients, rtol=1e-7)
    options = {"sensitive_features": x, "sample_weight": weight, "conditional_on": covariates}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttributeScaleWarning)
        assert gedi(y, **options, kernel=3) == pytest.approx(np.abs(coefficients).sum())

    with pytest.raises(ValueError, match="conditional_on is None"):
        kernel.orthonormal(x)
    with pytest.raises(ValueError, match=r"conditional_on has 2 column\(s\)"):
        kernel.orthonormal(x, covariates[:, :2])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        kernel.orthonormal(x[:7], covariates)


def test_a_conditional_kernel_of_levels():
    rng = np.random.default_rng(4)
    team = rng.choice(["a", "b", "c"], 60).astype(object)[:, None]
    covariates = rng.normal(size=(60, 1))
    design = fit_kernel("polynomial", team).beside(covariates)
    Q = design.fitted.orthonormal(team, covariates)
    np.testing.assert_allclose(Q, design.orthonormal, atol=1e-12)


WORDS = {"polynomial": "polynomial", "fourier": "Fourier"}


@pytest.mark.parametrize("name", NAMED_KERNELS)
def test_named_kernels_are_in_one_table(name):
    kernel = resolve_kernel(name)
    assert type(kernel) is NAMED_KERNELS[name]
    if kernel.degree_name is not None:
        other = kernel_of_degree(kernel, 3)
        assert other.get_params()[kernel.degree_name] == 3
        assert describe_kernel(other) == f"{WORDS[name]} kernel of {kernel.degree_name} 3"
    else:
        assert kernel_of_degree(kernel, 1) is kernel
        assert describe_kernel(name) == f"{name} kernel"
    x, y = RNG.normal(size=(2, 50))
    names = fit_kernel(name, x[:, None], names=["age"]).fitted.names
    assert list_columns(name, x[:, None], names=["age"]) == names
    coefficients = gedi_coefficients(y, sensitive_features=x, kernel=name)
    assert coefficients.shape == (len(names),)
    assert any(constraint.is_satisfied_by(name) for constraint in KERNEL_CONSTRAINTS[:2])


def test_descriptions_of_kernel_objects():
    assert describe_kernel(5) == "polynomial kernel of degree 5"
    assert describe_kernel(PolynomialKernel(2, standardize=True)).endswith("2, standardised")
    assert describe_kernel(FourierKernel(2, period=7.0)) == "Fourier kernel of order 2, period 7"
    assert kernel_of_degree(np.exp, 3) is np.exp


# --- splines


def ordinary_attributes():
    """Attributes as data have them: ties, few values, a spike, a long tail."""
    rng = np.random.default_rng(5)
    n = 400
    return {
        "age": rng.integers(17, 91, n),
        "0/1": rng.binomial(1, 0.3, n),
        "rare": np.arange(n) == 7,
        "rating": rng.integers(1, 6, n),
        "years of school": rng.integers(1, 8, n),
        "mostly 0 %": np.where(rng.random(n) < 0.8, 0, 100 * rng.random(n)),
        "income": rng.lognormal(10, 2, n),
        "one decimal": rng.normal(size=n).round(1),
        "counts": rng.poisson(0.4, n),
    }


ATTRIBUTES = {name: np.asarray(v, dtype=float) for name, v in ordinary_attributes().items()}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("values", ATTRIBUTES.values(), ids=ATTRIBUTES.keys())
@pytest.mark.parametrize("kernel", [SplineKernel(), SplineKernel(2, degree=1), SplineKernel(9)])
def test_spline_columns_are_independent_on_ordinary_attributes(kernel, values, weighted):
    weight = np.random.default_rng(6).integers(0, 4, values.size) if weighted else None
    kept = slice(None) if weight is None else weight > 0
    used = None if weight is None else weight[kept].astype(float)
    design = fit_kernel(kernel, values[kept][:, None], weight=used)
    n_distinct = len(np.unique(values[kept]))
    assert design.fitted.n_columns <= min(kernel.n_knots + kernel.degree - 2, n_distinct - 1)
    Q = design.orthonormal * np.sqrt(np.reshape(design.shares(slice(None)), (-1, 1)))
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-9)


@pytest.mark.parametrize("values", ATTRIBUTES.values(), ids=ATTRIBUTES.keys())
def test_an_integer_weight_of_a_spline_is_that_many_rows(values):
    weight = np.random.default_rng(6).integers(0, 4, values.size)
    repeated = SplineKernel().fit(np.repeat(values, weight)[:, None])
    for scale in (1.0, 1 / 3, 1 / weight.sum()):
        kernel = SplineKernel().fit(values[:, None], sample_weight=scale * weight)
        np.testing.assert_array_equal(
            kernel.transform(values[:, None]), repeated.transform(values[:, None])
        )


def test_spline_columns_are_those_of_scikit_learn():
    x = np.arange(1.0, 8.0)[:, None]
    reference = SplineTransformer(4, knots="quantile", extrapolation="constant")
    columns = SplineKernel().fit(x).transform([[-9.0], [1.2], [4.0], [99.0]])
    expected = reference.fit(x).transform([[-9.0], [1.2], [4.0], [99.0]])[:, 1:]
    np.testing.assert_allclose(columns, expected, atol=1e-15)
    names = SplineKernel().fit(x).get_feature_names_out(["age"])
    assert list(names) == [f"spline{j}(age)" for j in range(1, 6)]


MANY = np.random.default_rng(7).lognormal(size=50_001)


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(MANY, id="as drawn"),
        pytest.param(np.sort(MANY), id="sorted"),
        pytest.param(np.sort(MANY)[::-1], id="reversed"),
        pytest.param(MANY.round(), id="with ties"),
        # Every 12th row, of which a sample would consist, says nothing of the others.
        pytest.param(MANY + 100.0 * (np.arange(len(MANY)) % 12 == 0), id="periodic"),
    ],
)
@pytest.mark.parametrize("weight", [None, "drawn"])
def test_knots_of_many_rows_are_their_quantiles(x, weight):
    weight = None if weight is None else np.random.default_rng(8).integers(0, 4, len(x))
    rows = x if weight is None else np.repeat(x, weight)
    expected = np.quantile(rows, np.linspace(0, 1, 6), method="inverted_cdf")
    kernel = SplineKernel(6, degree=1).fit(x[:, None], sample_weight=weight)
    values = np.unique(expected)
    # Splines of degree 1 are 1 at their own knot, and 0 at all others.
    columns = kernel.transform(values[:, None])
    np.testing.assert_allclose(columns, np.eye(len(values))[:, 1:], atol=1e-14)


def test_few_values_are_indicators_and_linear_between_them():
    kernel = SplineKernel().fit([[1.0], [2.0], [2.0], [4.0]])
    np.testing.assert_allclose(
        kernel.transform([[0.0], [1.0], [2.0], [3.5], [4.0], [9.0]]),
        [[0, 0], [0, 0], [1, 0], [0.25, 0.75], [0, 1], [0, 1]],
    )
    assert list(kernel.get_feature_names_out(["rating"])) == ["rating=2", "rating=4"]
    sex = RNG.binomial(1, 0.5, 60)
    y = sex + RNG.normal(size=60)
    assert gedi(y, sensitive_features=sex, kernel="spline") == pytest.approx(
        gedi(y, sensitive_features=sex)
    )
    values = ATTRIBUTES["rating"]
    z = RNG.normal(size=values.size)
    groups = gedi(z, sensitive_features=np.array(["", *"abcde"])[values.astype(int)], norm="sd")
    spline = gedi(z, sensitive_features=values, kernel="spline", norm="sd")
    assert spline == pytest.approx(groups)


def test_several_attributes_have_the_splines_of_each():
    sex, age = ATTRIBUTES["0/1"], ATTRIBUTES["age"]
    names = ["sex=1", *(f"spline{j}(age)" for j in range(1, 6))]
    assert fit_kernel("spline", np.c_[sex, age], names=["sex", "age"]).fitted.names == names
    z = RNG.normal(size=sex.size)
    as_text = np.c_[np.where(sex > 0, "m", "f").astype(object), age.astype(object)]
    numbers = gedi(z, sensitive_features=np.c_[sex, age], kernel="spline")
    assert gedi(z, sensitive_features=as_text, kernel="spline") == pytest.approx(numbers)
    assert gedi(z, sensitive_features=as_text[:, 0], kernel="spline") == pytest.approx(
        gedi(z, sensitive_features=sex)
    )


def test_a_constant_attribute_has_no_splines():
    with pytest.raises(RankDeficientKernelError) as caught:
        fit_kernel("spline", np.full((9, 1), 7.0))
    assert caught.value.rank == 0
    with pytest.warns(UserWarning, match="constant, so there is nothing to constrain"):
        ProjectedRegressor(
            constraint=CoarseConstraint(kernel="spline"), sensitive_columns=0, cv="train"
        ).fit(np.c_[np.full(20, 7.0), RNG.normal(size=20)], RNG.normal(size=20))


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_splines_under_any_output_of_transformers(output):
    with config_context(transform_output=output):
        columns = SplineKernel().fit_transform(np.arange(20.0)[:, None])
        fitted = fit_kernel("spline", np.arange(20.0)[:, None]).fitted
    assert fitted.n_columns == np.shape(columns)[1] == 5


X_AGE = np.c_[ATTRIBUTES["age"], RNG.normal(size=400)]
U_SHAPE = 0.01 * (X_AGE[:, 0] - 50) ** 2 + X_AGE[:, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: gedi(U_SHAPE, sensitive_features=X_AGE[:, 0], **k),
        lambda **k: project_targets(
            U_SHAPE, sensitive_features=X_AGE[:, 0], constraint=CoarseConstraint(**k)
        ),
        lambda **k: MovingTargetsRegressor(None, CoarseConstraint(**k), sensitive_columns=0).fit(
            X_AGE, U_SHAPE
        ),
        lambda **k: make_disparity_scorer(sensitive_columns=0, **k)(
            LinearRegression().fit(X_AGE, U_SHAPE), X_AGE, U_SHAPE
        ),
    ],
    ids=["gedi", "project_targets", "estimator", "scorer"],
)
def test_a_spline_has_no_degree(call):
    with pytest.raises(ValueError, match="which a spline kernel does not have"):
        call(kernel="spline", relative=2)
    call(kernel="spline", relative=True)


def test_a_fine_constraint_of_splines_needs_a_bound_for_each():
    given = {"sensitive_features": X_AGE[:, 0], "constraint": FineConstraint(kernel="spline")}
    with pytest.raises(ValueError, match="Pass an array with one bound for each"):
        project_targets(U_SHAPE, **given)
    bounds = FineConstraint([0, np.inf, 0.1, 0.1, 0], kernel="spline")
    result = project_targets(U_SHAPE, **{**given, "constraint": bounds})
    assert result.satisfied
    assert (
        FineConstraint(kernel="spline")
        .in_words()
        .endswith("× GeDI of y, every other coefficient 0, spline kernel")
    )


def test_a_u_shape_is_seen_and_bounded():
    age = X_AGE[:, 0]
    splines = {"sensitive_features": age, "kernel": "spline"}
    # A parabola is among the cubic splines.
    parabola = {"sensitive_features": age, "kernel": PolynomialKernel(2, standardize=True)}
    explained = gedi(U_SHAPE, **splines, norm="sd")
    assert explained >= gedi(U_SHAPE, **parabola, norm="sd") - 1e-9
    assert gedi(U_SHAPE, sensitive_features=age, norm="sd") < 0.4 * explained
    constraint = CoarseConstraint(kernel="spline")
    result = project_targets(U_SHAPE, sensitive_features=age, constraint=constraint)
    assert result.threshold == pytest.approx(0.2 * gedi(U_SHAPE, **splines))
    assert gedi(result.targets, **splines) == pytest.approx(result.threshold)


@pytest.mark.parametrize(
    "kernel",
    [
        FourierKernel(period=0.0),
        FourierKernel(order=1.5),
        PolynomialKernel("2"),
        PolynomialKernel(-1),
        PolynomialKernel(standardize="yes"),
    ],
    ids=repr,
)
def test_the_parameters_of_a_kernel_are_checked_wherever_it_is_used(kernel):
    name = rf"^kernel=.*'(period|order|degree|standardize)' parameter of {type(kernel).__name__}"
    y, model = (
        BIRTH + RNG.normal(size=60),
        MovingTargetsRegressor(constraint=CoarseConstraint(kernel=kernel), max_iter=1),
    )
    calls = [partial(use, kernel=kernel) for use in (gedi, gedi_coefficients)]
    calls.append(partial(project_targets, constraint=CoarseConstraint(kernel=kernel)))
    for use in (*calls, partial(model.fit, BIRTH[:, None])):
        with pytest.raises(ValueError, match=name):
            use(y, sensitive_features=BIRTH)


def test_a_constant_category_is_no_covariate():
    y, weight = BIRTH**2 + RNG.normal(size=60), np.arange(60)
    for own in (None, weight):
        options = {"sensitive_features": BIRTH, "sample_weight": own}
        value = gedi(y, conditional_on=["u"] * 60, **options)
        assert value == pytest.approx(gedi(y, **options))


@pytest.mark.parametrize("kernel", [PolynomialKernel(), FourierKernel(), SplineKernel()], ids=repr)
def test_a_transformer_refuses_attributes_whose_squares_are_no_floats(kernel):
    for unit, size in ((1e-305, "small"), (1e200, "large")):
        with pytest.raises(ValueError, match=f"^X holds values .* too {size} for floats"):
            kernel.fit(unit * BIRTH[:, None])


@pytest.mark.parametrize("wraps", [FrozenEstimator, make_pipeline])
def test_transformers_may_be_frozen_and_have_no_names(wraps):
    x = np.random.default_rng(0).uniform(1, 9, 50)
    kernel = wraps(FunctionTransformer(np.log).fit(x[:, None]))
    expected = gedi_coefficients(x, sensitive_features=np.log(x))
    found, names = gedi_coefficients(x, sensitive_features=x, kernel=kernel, return_names=True)
    assert (found, names) == (pytest.approx(expected), ["f1"])


def test_a_callable_that_fails_on_text_is_named():
    with pytest.raises(TypeError, match=r"^kernel=<ufunc 'square'> on sensitive_features"):
        gedi(np.arange(4.0), sensitive_features=list("abab"), kernel=np.square)


def test_a_wave_that_is_nothing_but_rounding_is_no_column():
    """Half a period apart, sines are 0 but for rounding."""
    x = np.tile([0.0, 1.0, 2.0], 20)
    with pytest.raises(RankDeficientKernelError):
        fit_kernel(FourierKernel(1, period=2.0), x[:, None])


@pytest.mark.parametrize("weight", [None, "drawn"])
@pytest.mark.parametrize(
    "kernel", [SplineKernel(), SplineKernel(2), SplineKernel(12), SplineKernel(5, degree=1)]
)
def test_spline_columns_are_those_of_the_transformer(kernel, weight):
    rng = np.random.default_rng(0)
    # Uneven knots, ties, and an attribute of few values; more than a block of rows.
    x = np.column_stack(
        [
            rng.lognormal(0, 3, 20_000),
            rng.normal(size=20_000).round(1),
            rng.integers(4, size=20_000),
        ]
    )
    weight = None if weight is None else rng.integers(3, size=len(x))
    kernel = clone(kernel).fit(x, sample_weight=weight)
    wider = np.vstack([x, x.min(axis=0) - 1, x.max(axis=0) + 1])
    defined = [own.transform(z[:, None]) for own, z in zip(kernel.splines_, wider.T, strict=True)]
    columns = kernel.transform(wider)
    np.testing.assert_allclose(columns, np.hstack([own[:, 1:] for own in defined]), atol=1e-13)


def test_moments_factorise_splines_of_tails_as_qr_does(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_t(3, size=20_000)
    y = np.sin(x) + rng.normal(size=len(x))

    def values():
        return [gedi(y, sensitive_features=x, norm=norm, kernel="spline") for norm in ("l1", "sd")]

    with monkeypatch.context() as without_qr:
        without_qr.setattr("gedi_sklearn.kernels._fit._qr_factor", None)
        by_moments = values()
    monkeypatch.setattr("gedi_sklearn.kernels._fit._MOMENT_CONDITION", 0.0)
    np.testing.assert_allclose(by_moments, values(), rtol=1e-9)


def test_a_function_is_evaluated_once_on_a_block_of_rows():
    calls = []
    x = np.linspace(-1, 1, 50)
    gedi(x**2, sensitive_features=x, kernel=lambda x: calls.append(1) or np.c_[x, x**2])
    assert len(calls) == 1


def test_a_target_that_came_with_the_kernel_takes_no_pass_whatever_view_it_is(monkeypatch):
    x, y = RNG.normal(size=(2, 20_000))
    y += 0.3 * x
    design, plain = fit_kernel(3, x[:, None], target=y), fit_kernel(3, x[:, None])
    expected = plain.solve(y)
    monkeypatch.setattr(type(design), "_products", lambda *args: pytest.fail("a pass"))
    for found, wanted in zip(design.solve(y[:, None][:, 0]), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    with pytest.raises(pytest.fail.Exception):
        design.solve(y.copy())


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_that_are_held_span_the_same(weighted):
    rng = np.random.default_rng(0)
    x, y = rng.lognormal(size=(9000, 1)), rng.normal(size=9000)
    weight = rng.uniform(1, 2, 9000) if weighted else None
    given = (SplineKernel(5), x, weight)
    held, plain = (fit_resolved(*given, most_held=most).with_matrix() for most in (9000, 8000))
    assert held._are_held
    assert not plain._are_held
    np.testing.assert_allclose(held.q, plain.q, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(held.coordinates(y), plain.coordinates(y), rtol=1e-9, atol=1e-12)
