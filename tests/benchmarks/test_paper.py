"""The paper's identities that no function computes, and its errata with a counterexample each.

Equations are counted as in docs/paper.md, which names a test for each.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gedi_sklearn import FineConstraint, project_targets
from gedi_sklearn.metrics import gedi, gedi_coefficients, hgr

N = 200


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 2, N)
    return x, x - 0.5 * x**2 + rng.normal(size=N), rng


def standardize(values):
    return (values - values.mean()) / values.std()


# --- identities


def test_correlation_is_a_least_squares_solution(sample):
    """Equation 4, proved in 25 to 28."""
    x, y, _ = sample
    (r,), (error,), *_ = np.linalg.lstsq(standardize(x)[:, None], standardize(y), rcond=None)
    assert_allclose(r, np.corrcoef(x, y)[0, 1])
    assert_allclose(error / N, 1 - r**2)


def test_the_largest_correlation_has_the_smallest_error(sample):
    """Equations 5 to 7, proved in 29 to 35, with f and g among the cubic polynomials."""
    x, y, rng = sample
    largest = hgr(y, sensitive_features=x, method="kernel", degree=3)
    left, right = (
        np.linalg.qr(np.vander(v, 4)[:, :3] - np.vander(v, 4)[:, :3].mean(axis=0))[0]
        for v in (x, y)
    )
    u, singular, v = np.linalg.svd(left.T @ right)
    assert_allclose(singular[0], largest)

    def error(f, g):
        f, g = standardize(left @ f), standardize(right @ g)
        return np.mean((np.mean(f * g) * f - g) ** 2)

    assert_allclose(error(u[:, 0], v[0]), 1 - largest**2)
    assert min(error(*rng.normal(size=(2, 3))) for _ in range(200)) > 1 - largest**2


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_gedi_is_the_scale_of_the_best_normalised_function(sample, degree):
    """Equations 8, 9 and 12, proved in 36 to 41."""
    x, y, rng = sample
    F = np.vander(x, degree + 1, increasing=True)[:, 1:]
    F, centred = F - F.mean(axis=0), y - y.mean()

    def scale(alpha):
        return np.mean((F @ alpha) * centred) / np.var(F @ alpha)

    def error(alpha):
        return np.mean((scale(alpha) * (F @ alpha) - centred) ** 2)

    best = gedi_coefficients(y, sensitive_features=x, kernel=degree)
    best = best / np.abs(best).sum()
    assert_allclose(abs(scale(best)), gedi(y, sensitive_features=x, kernel=degree))
    others = rng.normal(size=(200, degree))
    assert all(error(best) <= error(other / np.abs(other).sum()) + 1e-12 for other in others)


def test_fine_targets_satisfy_the_covariance_equations(sample):
    """Equation 54: cov(xʲ, x) cov(x, z) = cov(xʲ, z) var(x) says that only the slope is left."""
    x, y, _ = sample
    z = project_targets(y, sensitive_features=x, constraint=FineConstraint(kernel=4)).targets
    slope = np.cov(x, z)[0, 1] / np.var(x, ddof=1)
    assert_allclose(slope, 0.2 * np.cov(x, y)[0, 1] / np.var(x, ddof=1))
    for j in (2, 3, 4):
        assert_allclose(np.cov(x**j, x)[0, 1] * slope, np.cov(x**j, z)[0, 1])
    # Equation 24.
    assert_allclose(gedi(z, sensitive_features=x, kernel=4), gedi(z, sensitive_features=x))


# --- errata


POINTS = np.array([0.0, 1.0, 2.0, 3.0])
POWERS = np.column_stack([POINTS, POINTS**2])
ORTHOGONAL = np.column_stack([POINTS, POINTS**2 - 3 * POINTS])
BOUNDS = np.ones(2)


@pytest.mark.parametrize(
    ("columns", "alpha", "is_bounded", "reading", "is_allowed"),
    [
        # Coefficients of opposite signs hide each other in FᵀF α̃ …
        (POWERS, [3.0, -1.0], False, "product", True),
        (POWERS, [3.0, -1.0], False, "diagonal", True),
        # … and those of the same sign add up.
        (POWERS, [1.0, 1.0], True, "diagonal", False),
        # The same functions with another sign: even a target that depends on nothing is refused.
        (POWERS * [1, -1], [0.0, 0.0], True, "product", False),
        # Where the columns are orthogonal, both say the same.
        (ORTHOGONAL, [3.0, -1.0], False, "diagonal", False),
        (ORTHOGONAL, [1.0, 1.0], True, "diagonal", True),
    ],
)
def test_equation_23_is_not_equation_22(columns, alpha, is_bounded, reading, is_allowed):
    """|F̃ᵀỹ| ≤ q ⊙ F̃ᵀF̃ and |α̃| ≤ q differ, whichever vector the matrix is read as."""
    y = columns @ alpha

    def kernel(x):
        return columns[x.astype(int)]

    coefficients = gedi_coefficients(y, sensitive_features=POINTS, kernel=kernel)
    assert_allclose(coefficients, alpha, atol=1e-12)
    assert (np.abs(alpha) <= BOUNDS).all() == is_bounded
    centred = columns - columns.mean(axis=0)
    gram = centred.T @ centred
    right = gram @ BOUNDS if reading == "product" else BOUNDS * np.diag(gram)
    assert (np.abs(centred.T @ (y - y.mean())) <= right + 1e-9).all() == is_allowed
    # The library takes equation 22: what it bounds stays as it is, the rest is moved.
    constraint = FineConstraint(BOUNDS * (1 + 1e-9), kernel=kernel, relative=False)
    options = {"constraint": constraint, "loss": "squared_error"}
    targets = project_targets(y, sensitive_features=POINTS, **options).targets
    assert np.allclose(targets, y) == is_bounded


@pytest.mark.parametrize(("unit", "is_allowed"), [(10.0, False), (0.1, True)])
def test_a_bound_on_the_covariance_is_none_on_the_slope(unit, is_allowed):
    """−q ≤ cov(x, z) ≤ q lacks var(x): it refuses half the bound, or allows it fivefold."""
    x, q = unit * standardize(POINTS), 0.2
    z = (0.5 if unit > 1 else 5) * q * x
    is_bounded = gedi(z, sensitive_features=x) <= q
    assert (abs(np.mean((x - x.mean()) * z)) <= q) == is_allowed
    assert is_bounded != is_allowed
    options = {"loss": "squared_error", "constraint": FineConstraint(q, relative=False)}
    targets = project_targets(z, sensitive_features=x, **options).targets
    assert_allclose(targets, min(1, q / gedi(z, sensitive_features=x)) * z)
    # With an attribute of variance 1 both are the same number.
    x = standardize(POINTS)
    assert_allclose(gedi(0.3 * x, sensitive_features=x), abs(np.mean(x * 0.3 * x)))


@pytest.mark.parametrize(("direction", "reaches_the_bound"), [(+1, True), (-1, False)])
def test_multipliers_are_maximised(direction, reaches_the_bound):
    """An argmin over λ in equation 59 keeps it at 0 and the model unconstrained."""
    x = standardize(POINTS)
    bound, slope, multiplier = 0.2, 0.0, 0.0
    for _ in range(2000):
        violated = abs(slope) > bound
        # The loss mean((slope·x − x)²) plus multiplier · max(0, |slope| − bound).
        slope -= 0.01 * (2 * (slope - 1) + multiplier * violated * np.sign(slope))
        violation = max(0.0, gedi(slope * x, sensitive_features=x) - bound)
        multiplier = max(0.0, multiplier + direction * 0.05 * violation)
    assert_allclose(slope, bound if reaches_the_bound else 1, atol=0.02)
    assert (multiplier > 0) == reaches_the_bound


def test_the_running_example_has_a_slope():
    """Figure 2: 4 sin(x) + x² has no term in x, but a linear part, 12/π²."""
    x = np.linspace(-np.pi, np.pi, 20_001)
    y = 4 * np.sin(x) + x**2
    assert_allclose(gedi(y, sensitive_features=x), 12 / np.pi**2, rtol=1e-3)
