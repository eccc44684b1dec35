"""Upper confidence limits of GeDI: what they are, and how often they hold."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, f, t
from scipy.stats import norm as norm_distribution
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks import coverage
from benchmarks._coverage_cells import CLUSTERS, FEW, POWERS, cells
from benchmarks.coverage import simulate
from gedi_sklearn import CoarseConstraint, DependenceConstraint, PolynomialKernel, project_targets
from gedi_sklearn.metrics import (
    error_quantile,
    farthest,
    gedi,
    gedi_inference,
    make_disparity_scorer,
)

V3 = PolynomialKernel(3, standardize=True)


def sample(seed, n=300, slope=0.5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, slope * x + (0.5 + 0.5 * np.abs(x)) * rng.normal(size=n)


def robust(x, y, degree):
    """Return coefficients, what rows add to their errors, and the errors' size, by hand."""
    F = np.column_stack([x**j for j in range(degree + 1)])
    G = np.linalg.inv(F.T @ F)
    beta = G @ F.T @ y
    error = y - F @ beta
    pulls = (F @ G)[:, 1:]
    scores = pulls * (error / (1 - np.einsum("ij,jk,ik->i", F, G, F)))[:, None]
    return beta[1:], scores, pulls, (np.abs(error) ** 3).sum() / (error**2).sum()


def reach(scores, pulls, typical, confidence, n_free, level=None):
    """Return how far a limit is beyond the value, of columns of what the rows add, by the rule."""
    a = np.abs(pulls)
    star = np.maximum(np.abs(scores).max(axis=0), (a**3).sum(axis=0) / (a**2).sum(axis=0) * typical)
    V, K3, K4 = ((scores**power).sum(axis=0) + star**power for power in (2, 3, 4))
    free = np.minimum(2 * V**2 / K4, n_free)
    shift = np.maximum(K3, 0) / V * max(1, (1 + 2 * norm_distribution.ppf(confidence) ** 2) / 6)
    return shift + t.ppf(level or confidence, free) * np.sqrt(V)


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_it_is_the_largest_limit_over_the_signs(degree):
    x, y = sample(0)
    alpha, scores, pulls, typical = robust(x, y, degree)
    S = np.array(list(product([1, -1], repeat=degree)))
    given = scores @ S.T, pulls @ S.T, typical, 0.9, len(x) - degree - 1
    expected = (S @ alpha + reach(*given)).max()
    options = {"sensitive_features": x, "kernel": degree, "confidence": 0.9}
    assert gedi_inference(y, **options).upper == pytest.approx(expected, rel=1e-6)
    # The true signs of a fit, or of a batch, are not fixed: simulated.
    covariance = scores.T @ scores
    draws = np.random.default_rng(1).multivariate_normal(np.zeros(degree), covariance, 40_000)
    errors = np.sqrt(np.einsum("ij,jk,ik->i", S, covariance, S))
    level = norm_distribution.cdf(np.quantile((draws @ S.T / errors).max(axis=1), 0.9))
    wider = reach(*given, level)
    fitted = gedi_inference(y, **options, fitted=True).upper
    assert fitted == pytest.approx((S @ alpha + wider).max(), rel=0.02)
    batch = gedi_inference(y, **options, n_new=len(x)).upper
    assert batch == pytest.approx((S @ alpha + np.sqrt(2) * wider).max(), rel=0.02)


def test_limits_widen_with_what_is_asked():
    x, y = sample(1)
    options = {"sensitive_features": x, "kernel": V3}
    for norm in ("l1", "sd"):
        limits = [
            gedi(y, **options, norm=norm),
            gedi_inference(y, **options, norm=norm, confidence=0.8).upper,
            gedi_inference(y, **options, norm=norm).upper,
            gedi_inference(y, **options, norm=norm, fitted=True).upper,
            gedi_inference(y, **options, norm=norm, n_new=1000).upper,
            gedi_inference(y, **options, norm=norm, n_new=100).upper,
        ]
        assert (np.diff(limits) > 0).all()
        many = gedi_inference(y, **options, norm=norm, n_new=10**12).upper
        assert many == pytest.approx(limits[3])


def test_a_limit_that_need_not_hold_is_a_number():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    y = x + x**2 + rng.normal(size=100)
    options = {"sensitive_features": x, "kernel": 2, "norm": "sd"}
    limits = [gedi_inference(y, confidence=c, **options).upper for c in (1e-9, 0.3, 0.5, 0.9)]
    assert gedi(y, **options) <= limits[0]
    assert (np.diff(limits) >= 0).all()


@pytest.mark.parametrize("unit", [1e-140, 1e140])
@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_limits_have_the_unit_of_the_targets(norm, unit):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    y = x + x**2 + rng.normal(size=100)
    options = {"sensitive_features": x, "kernel": 2, "norm": norm}
    for fitted in (False, True):
        limit = gedi_inference(y, fitted=fitted, **options).upper
        assert gedi_inference(unit * y, fitted=fitted, **options).upper / unit == pytest.approx(
            limit
        )


def test_an_sd_limit_is_the_farthest_point_of_an_ellipse():
    x, y = sample(2)
    angle = np.linspace(0, 2 * np.pi, 4_001)
    u = np.c_[np.cos(angle), np.sin(angle)]
    F = np.column_stack([x, x**2])
    F = F - F.mean(axis=0)
    values, vectors = np.linalg.eigh(F.T @ F / len(x))
    Q = F @ vectors / np.sqrt(values)
    c = Q.T @ y / len(x)
    leverage = (1 + (Q**2).sum(axis=1)) / len(x)
    residual = y - y.mean() - Q @ c
    scores = (Q * (residual / (1 - leverage) + 0.5 * Q @ c)[:, None] - 0.5 * c) / len(x)
    typical = (np.abs(residual) ** 3).sum() / (residual**2).sum()
    beyond = reach(scores @ u.T, Q @ u.T / len(x), typical, 0.95, len(x) - 3)
    expected = (u @ c + beyond).max()
    found = gedi_inference(y, sensitive_features=x, kernel=2, norm="sd").upper
    # What the rule makes of three directions is taken for all of them.
    assert expected * (1 - 5e-3) <= found <= expected * 1.01


@pytest.mark.parametrize("weighted", [False, True])
def test_an_sd_limit_allows_for_rows_that_a_sample_lacks(weighted):
    """x⁵ rests on the two ends, of which this sample has one: three more rows may be there."""
    x = np.append(np.linspace(-1, 1, 200), 3.0)
    y = x**5 - 6 * x**4
    weight = np.linspace(1, 2, len(x)) if weighted else np.ones(len(x))
    share = weight / weight.sum()
    F = np.column_stack([x**4, x**5]) * 1.0
    F = F - share @ F
    Q = F @ np.linalg.inv(np.linalg.cholesky(F.T @ (F * share[:, None]))).T
    c = Q.T @ (share * y)
    leverage = share * (1 + (Q**2).sum(axis=1))
    assert leverage[-1] > 0.9
    reach = np.abs(Q) @ np.abs(c) / (1 - np.minimum(leverage, 0.8))
    for confidence, rows in ((0.95, 3.0), (0.99, 4.6)):
        expected = np.sqrt(c @ c + rows * (share * reach**2).max())
        found = gedi_inference(
            y,
            sensitive_features=x,
            kernel=np.column_stack([x**4, x**5]),
            norm="sd",
            sample_weight=weight,
            confidence=confidence,
        ).upper
        assert found == pytest.approx(expected, rel=2e-3)


def test_an_sd_limit_without_far_rows_is_that_of_its_errors():
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 500))
    for slope in (0.0, 1.0, 10.0):
        z = slope * x + y
        own = gedi_inference(z, sensitive_features=x, norm="sd").upper
        assert own < gedi(z, sensitive_features=x, norm="sd") * 1.1 + 0.08


@pytest.mark.parametrize("seed", range(5))
def test_the_farthest_point_of_an_ellipsoid(seed):
    rng = np.random.default_rng(seed)
    root, v = rng.normal(size=(3, 3)), rng.normal(size=3)
    if seed == 3:  # the centre has nothing along the longest axis
        longest = np.linalg.svd(root)[0][:, 0]
        v = v - longest * (longest @ v)
    if seed == 4:
        v = np.zeros(3)
    u = rng.normal(size=(100_000, 3))
    points = v + 1.5 * u / np.linalg.norm(u, axis=1)[:, None] @ root.T
    largest = np.linalg.norm(points, axis=1).max()
    found = farthest(v, root @ root.T, "sd", 1.5)[0]
    assert largest * (1 - 1e-9) <= found <= largest * (1 + 3e-3)
    assert farthest(v, 0 * root, "sd", 1.5)[0] == pytest.approx(np.linalg.norm(v))


def test_many_coefficients_have_a_bound_of_the_enumeration():
    rng = np.random.default_rng(0)
    root, v = 0.2 * rng.normal(size=(13, 13)), rng.normal(size=13)
    covariance = root @ root.T
    S = np.array(list(product([1, -1], repeat=13)))
    exact = (S @ v + 1.7 * np.linalg.norm(S @ root, axis=1)).max()
    bound = farthest(v, covariance, "l1", 1.7)[0]
    assert exact <= bound <= 2 * exact
    quantile = error_quantile(covariance, "l1", 0.95, 500, simultaneous=True)
    assert quantile == pytest.approx(np.sqrt(13 * f.ppf(0.95, 13, 500)))


def test_each_coordinate_has_a_limit_and_all_hold_together():
    covariance = np.diag([1.0, 4.0])
    quantile = error_quantile(covariance, "each", 0.9, 10**6, simultaneous=True)
    draws = np.abs(np.random.default_rng(0).normal(size=(200_000, 2))).max(axis=1)
    assert quantile == pytest.approx(np.quantile(draws, 0.9), rel=0.02)
    np.testing.assert_allclose(farthest(np.array([3.0, -1.0]), covariance, "each", 2.0), [5, 5])


@pytest.mark.parametrize("norm", ["l1", "sd"])
def test_limits_scale_with_the_targets_and_the_reference(norm):
    x, y = sample(3)
    options = {"sensitive_features": x, "kernel": V3, "norm": norm}
    limit = gedi_inference(y, **options).upper
    assert gedi_inference(1e9 * y - 3, **options).upper == pytest.approx(1e9 * limit)
    relative = gedi_inference(y, **options, relative=True).upper
    share = gedi(y, **options) / gedi(y, **options, relative=True)
    assert relative == pytest.approx(limit / share)
    exact, value = gedi_inference(x + x**2, **options, fitted=True).upper, gedi(x + x**2, **options)
    # How much x itself varies is drawn with the rows, too.
    assert exact == pytest.approx(value) if norm == "l1" else exact > 1.01 * value
    with pytest.warns(UndefinedMetricWarning, match="no degree of freedom"):
        assert np.isnan(gedi_inference(y[:4], sensitive_features=x[:4], kernel=V3, norm=norm).upper)


@pytest.mark.parametrize("norm", ["l1", "sd"])
@pytest.mark.parametrize("fitted", [False, True])
def test_limits_hold(norm, fitted):
    """As often as they promise; the command for many cells is slow."""
    held, n_runs = 0, 150
    for run in range(n_runs):
        rng = np.random.default_rng([run, fitted])
        x, noise = rng.uniform(-2, 2, 200), rng.normal(size=200)
        coefficients, y = np.array([0.5, 0.4]), 0.5 * x + 0.4 * x**2 + noise
        options = {"sensitive_features": x, "kernel": 2, "norm": norm}
        if fitted:
            kind = CoarseConstraint if norm == "l1" else DependenceConstraint
            constraint = kind(0.2, kernel=2, relative=False)
            projected = project_targets(y, sensitive_features=x, constraint=constraint)
            y, coefficients = projected.targets, coefficients + projected.correction
        root = np.sqrt([4 / 3, 16 / 5 - 16 / 9])  # deviations of x and x², which are uncorrelated
        truth = np.abs(coefficients).sum() if norm == "l1" else np.linalg.norm(root * coefficients)
        held += truth <= gedi_inference(y, **options, fitted=fitted).upper
    assert held >= 0.88 * n_runs  # a share below has a probability of .001
    if not fitted:
        assert held <= 0.99 * n_runs


def test_scorer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + X[:, 1] + rng.normal(size=200)
    model, options = LinearRegression().fit(X, y), {"kernel": 2, "norm": "sd", "fitted": True}
    scorer = make_disparity_scorer("gedi_upper", sensitive_columns=0, n_new=50, **options)
    limit = gedi_inference(
        y, model.predict(X), sensitive_features=X[:, 0], n_new=50, **options
    ).upper
    assert scorer(model, X, y) == -limit
    assert "make_disparity_scorer('gedi_upper', sensitive_columns=0" in repr(scorer)
    labels = np.digitize(y, [-1, 1])
    classifier = LogisticRegression().fit(X, labels)
    worst = max(
        gedi_inference(labels == c, classifier.predict(X) == c, sensitive_features=X[:, 0]).upper
        for c in range(3)
    )
    assert make_disparity_scorer("gedi_upper", sensitive_columns=0)(classifier, X, labels) == -worst


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::gedi_sklearn.exceptions.AttributeScaleWarning",  # a sample's mean or sd by chance
)
@pytest.mark.parametrize("degree", [1, 2, 5])
def test_limits_hold_in_simulations(degree):
    """A few samples of the cells that the command draws many of."""
    begins = f"degree {degree},"
    own = [one for one in cells() if one.family == POWERS and one.name.startswith(begins)]
    shares = np.array([float(simulate(cell, 40)["upper95"]) for cell in own if cell.n == 500])
    assert (shares * 40 >= binom.ppf(1e-4, 40, 0.95)).all()
    assert shares.mean() >= 0.94


def test_the_command_takes_up_where_it_ended(tmp_path, capsys):
    begins = ["--cell", "60 persons, x by row", "group of 50%"]
    options = ["--output", str(tmp_path), "--samples", "3", "--family", CLUSTERS, FEW, *begins]
    coverage.main(options)
    shown = capsys.readouterr().out
    assert "| 60 persons, x by row | 60 | 3 |" in shown
    assert "Cells below nominal by more than .01, beyond chance: none." in shown
    first = (tmp_path / "coverage.csv").read_bytes()
    coverage.main(options)
    assert (tmp_path / "coverage.csv").read_bytes() == first
