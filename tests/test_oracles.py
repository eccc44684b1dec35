"""The oracles themselves: two independent ways to the same number."""

from itertools import product

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.oracles import DIGITS, ExactPolynomial, every_labeling, full_binary, full_real


@pytest.fixture(params=[0.0, 30.0, 1e4])
def data(request):
    """Return attribute, targets and weights; the mean is so many deviations away from 0."""
    rng = np.random.default_rng(1)
    x = request.param + rng.normal(size=40)
    u = x - request.param
    return x, u - 0.5 * u**2 + rng.normal(size=40), rng.integers(1, 4, 40).astype(float)


def stationary(exact, t, signs, q):
    """Return the best point of the face of the ball that has these signs, with its multiplier."""
    free = [j for j, side in enumerate(signs) if side]
    size = len(free) + 1
    products = exact._products(t)
    rows, right = mpmath.matrix(size), mpmath.matrix(size, 1)
    for i, one in enumerate(free):
        for j, other in enumerate(free):
            rows[i, j] = exact.gram[one, other]
        rows[i, size - 1] = rows[size - 1, i] = signs[one]
        right[i] = products[one]
    right[size - 1] = q
    solved, a = mpmath.lu_solve(rows, right), mpmath.matrix(exact.k, 1)
    for i, j in enumerate(free):
        a[j] = solved[i]
    return a, solved[size - 1]


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_the_path_ends_at_the_best_point_of_all_faces(data, degree):
    x, y, w = data
    exact = ExactPolynomial(x, degree, w)
    with mpmath.workdps(DIGITS):
        q = exact.norm(y) / 5
        a = exact.nearest_in_ball(y, float(q))
        q = mpmath.mpf(float(q))
        assert abs(mpmath.fsum(abs(v) for v in a) / q - 1) < mpmath.mpf(10) ** -60
        best = None
        for signs in product((-1, 0, 1), repeat=degree):
            if not any(signs):
                continue
            point, level = stationary(exact, y, signs, q)
            if level >= 0 and all(v * side >= 0 for v, side in zip(point, signs, strict=True)):
                reached = exact.distance(y, point)
                best = reached if best is None else min(best, reached)
        assert abs(exact.distance(y, a) / best - 1) < mpmath.mpf(10) ** -60


@pytest.mark.parametrize("constraint", ["coarse", "fine"])
def test_the_digits_agree_with_the_full_model(constraint):
    rng = np.random.default_rng(2)
    x, degree = rng.normal(size=30), 3
    y, w = x + x**2 + rng.normal(size=30), rng.uniform(0.5, 2, 30)
    exact = ExactPolynomial(x, degree, w)
    start = np.array([float(v) for v in exact.coefficients(y)])
    columns = x[:, None] ** np.arange(1, degree + 1)
    radius = bounds = None
    if constraint == "coarse":
        radius = 0.3 * np.abs(start).sum()
        a = exact.nearest_in_ball(y, radius)
    else:
        bounds = np.abs(start) * [0.4, 0.0, 0.7]
        a = exact.nearest_in_box(y, bounds)
    _, loss = full_real(y, None, 1.0, weight=w, columns=columns, radius=radius, bounds=bounds)
    assert float(exact.distance(y, a)) == pytest.approx(loss, rel=1e-8)


def test_coefficients_are_those_of_well_conditioned_least_squares():
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=50), rng.uniform(0.5, 2, 50)
    y = rng.normal(size=50)
    exact = ExactPolynomial(x, 3, w)
    columns = np.column_stack([np.ones(50), x, x**2, x**3])
    root = np.sqrt(w)
    expected = np.linalg.lstsq(columns * root[:, None], y * root, rcond=None)[0][1:]
    assert_allclose([float(v) for v in exact.coefficients(y)], expected, rtol=1e-12)
    # The standardised powers say the same of the targets.
    s = (x - np.average(x, weights=w)) / float(exact.deviation)
    columns = np.column_stack([np.ones(50), s, s**2, s**3])
    expected = np.linalg.lstsq(columns * root[:, None], y * root, rcond=None)[0][1:]
    assert_allclose([float(v) for v in exact.standardized(y)], expected, rtol=1e-12)


@pytest.mark.parametrize("solver", ["highs", "gurobi"])
@pytest.mark.parametrize("constraint", ["coarse", "fine"])
def test_full_classes_agree_with_all_labelings(solver, constraint):
    rng = np.random.default_rng(4)
    n = 9
    x, p = rng.normal(size=n), rng.uniform(size=n)
    y = (x > 0).astype(int)
    effects = np.vstack([x - x.mean(), x**2 - np.mean(x**2)]) / n
    z = every_labeling(n, 2)
    v = z @ effects.T
    limit = 0.2 * np.abs(effects @ y).sum()
    bound = {"radius": limit} if constraint == "coarse" else {"bounds": np.full(2, limit)}
    size = np.abs(v).sum(axis=1) if constraint == "coarse" else np.abs(v).max(axis=1)
    cost = (1 - 2 * p) + 0.5 * (1 - 2 * y)
    loss = z @ cost + (p + 0.5 * y).sum()
    found = full_binary(
        y, p, 0.5, loss="hamming", weight=np.ones(n), effects=effects, solver=solver, **bound
    )
    assert found[1] == pytest.approx(loss[size <= limit].min(), abs=1e-9)
