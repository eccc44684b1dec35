"""norm="sd": the deviation that an attribute explains is what is bounded."""

from contextlib import suppress
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    DualTargetsRegressor,
    FourierKernel,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    PolynomialKernel,
    ProjectedClassifier,
    ProjectedRegressor,
    Solver,
    project_targets,
)
from gedi_sklearn.exceptions import InfeasibleProjectionError, SolverError
from gedi_sklearn.metrics import gedi, make_disparity_scorer
from gedi_sklearn.model_selection import tradeoff_curve
from gedi_sklearn.projection import Projection

# Bounds of every kind on purpose, whatever they leave.
pytestmark = pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")

SD = {"norm": "sd", "relative": True}


def u_shape(n, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 85, n)
    return age, 300 + 0.12 * (age - 50) ** 2 - 0.5 * age + 40 * rng.normal(size=n)


def classes(n, seed=0):
    """Two classes that depend on an attribute in a curve, and probabilities."""
    rng = np.random.default_rng(seed)
    x = rng.normal(45, 12, n)
    s = (x - 45) / 12
    p = 1 / (1 + np.exp(1.2 + 0.8 * s**2 - 0.5 * s - 1.3 * rng.normal(size=n)))
    return x, (rng.random(n) < p).astype(int), p


def explained(z, basis, weight):
    """Return S(z) from an orthonormal basis, independently of the library's own sums."""
    share = weight / weight.sum()
    return np.linalg.norm(basis.T @ (share * (z - share @ z)))


def orthonormal(columns, weight):
    share = weight / weight.sum()
    centred = columns - share @ columns
    return np.linalg.qr(centred * np.sqrt(share)[:, None])[0] / np.sqrt(share)[:, None]


# --- indicators


def test_a_relative_value_is_a_share_of_the_same_kernel():
    age, pay = u_shape(300)
    z = 0.5 * pay
    for kernel in (3, "fourier", FourierKernel(2)):
        assert gedi(pay, z, sensitive_features=age, kernel=kernel, **SD) == pytest.approx(0.5)


@pytest.mark.parametrize("norm", ["sd", "adjusted_sd"])
def test_a_degree_as_reference_is_refused(norm):
    age, pay = u_shape(50)
    with pytest.raises(ValueError, match=r"relative=1 .*norm='\w+'.*True or False"):
        gedi(pay, sensitive_features=age, norm=norm, relative=1)
    with pytest.raises(ValueError, match="relative=2"):
        make_disparity_scorer(sensitive_columns=0, norm=norm, relative=2)


def test_scorers_measure_it_beside_covariates():
    age, pay = u_shape(200)
    X = np.c_[age, pay + np.arange(200), np.arange(200) % 7]
    model = LinearRegression().fit(X, pay)
    scorer = make_disparity_scorer(sensitive_columns=0, kernel=2, conditional_on=[2], **SD)
    expected = gedi(
        pay,
        model.predict(X),
        sensitive_features=age,
        kernel=2,
        conditional_on=X[:, 2],
        **SD,
    )
    assert scorer(model, X, pay) == pytest.approx(-expected, rel=1e-12)
    assert "conditional_on=[2]" in repr(scorer)


# --- real targets: the nearest point of a ball


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    degree=st.integers(1, 4),
    share=st.floats(0.0, 0.9),
    weighted=st.booleans(),
)
def test_targets_are_shrunk_in_the_span_and_nowhere_else(seed, degree, share, weighted):
    rng = np.random.default_rng(seed)
    age, pay = u_shape(60, seed)
    weight = rng.uniform(0.2, 3, 60) if weighted else np.ones(60)
    result = project_targets(
        pay,
        sensitive_features=age,
        sample_weight=weight,
        constraint=DependenceConstraint(share, kernel=degree),
    )
    basis = orthonormal(np.vander((age - 50) / 20, degree + 1)[:, :-1], weight)
    coordinates = basis.T @ (weight / weight.sum() * pay)
    assert_allclose(result.targets, pay - (1 - share) * basis @ coordinates, rtol=1e-10)
    assert result.satisfied
    assert result.gap == 0.0
    assert result.bound == result.objective
    average = np.average(result.targets, weights=weight)
    assert average == pytest.approx(np.average(pay, weights=weight), rel=1e-12)


def optimum(t, balls, weight, bounds):
    """Return the least weighted mean of (z − t)² in some balls and between bounds, by SLSQP."""
    share = weight / weight.sum()

    def ball(basis, radius):
        matrix = (basis * share[:, None]).T
        return {
            "type": "ineq",
            "fun": lambda z: radius**2 - np.sum((matrix @ z) ** 2),
            "jac": lambda z: -2 * matrix.T @ (matrix @ z),
        }

    found = minimize(
        lambda z: share @ (z - t) ** 2,
        np.clip(np.full(len(t), share @ t), *bounds),
        jac=lambda z: 2 * share * (z - t),
        constraints=[ball(*own) for own in balls],
        bounds=[bounds] * len(t),
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert max(explained(found.x, basis, weight) - radius for basis, radius in balls) <= 1e-7
    return found.fun * weight.sum()


@pytest.mark.parametrize("bounds", [(None, None), (0.0, None), (0.0, 2.5)])
@pytest.mark.parametrize("several", [False, True])
def test_the_optimum_agrees_with_a_general_solver(bounds, several):
    rng = np.random.default_rng(1)
    n = 60
    x = rng.normal(size=n)
    other = 0.6 * x + 0.8 * rng.normal(size=n)
    t = np.clip(x**2 + 0.5 * x + other + rng.normal(size=n), *bounds)
    weight = rng.uniform(0.5, 2, n)
    attributes = [x, other] if several else [x]
    result = project_targets(
        t,
        sensitive_features=np.column_stack(attributes),
        constraint=[DependenceConstraint(kernel=2)] * 2
        if several
        else DependenceConstraint(kernel=2),
        target_bounds=None if bounds == (None, None) else bounds,
        sample_weight=weight,
    )
    bases = [orthonormal(np.c_[own, own**2], weight) for own in attributes]
    balls = [(basis, 0.2 * explained(t, basis, weight)) for basis in bases]
    low, high = bounds
    limits = (-100 if low is None else low, 100 if high is None else high)
    assert result.objective == pytest.approx(optimum(t, balls, weight, limits), rel=1e-6)
    assert result.satisfied
    assert result.gap <= 1e-12
    assert_allclose(result.threshold, [radius for _, radius in balls][: len(attributes)], rtol=1e-9)


@pytest.mark.parametrize("degree", [3, 5, 8])
def test_raw_years_cost_no_digit(degree):
    rng = np.random.default_rng(0)
    year = rng.integers(1930, 2006, 200).astype(float)
    y = (year - 1968) ** 2 / 100 + year / 10 + rng.normal(size=200)
    model = ProjectedRegressor(
        LinearRegression(), DependenceConstraint(kernel=degree), sensitive_columns=0, cv="train"
    )
    X = np.c_[year, (year - 1968) ** 2, rng.normal(size=200)]
    model.fit(X, y)
    kernel = PolynomialKernel(degree, standardize=True)
    left = gedi(y, model.predict(X), sensitive_features=year, kernel=kernel, **SD)
    assert left == pytest.approx(0.2, rel=1e-9)


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_absolute_error_is_proven_too(degree):
    age, pay = u_shape(150)
    result = project_targets(
        pay,
        sensitive_features=age,
        loss="absolute_error",
        constraint=DependenceConstraint(kernel=degree),
    )
    assert result.satisfied
    assert result.gap <= 1e-6
    squared = project_targets(
        pay, sensitive_features=age, constraint=DependenceConstraint(kernel=degree)
    )
    assert result.objective <= np.abs(squared.targets - pay).sum()
    # Optimal: no allowed targets on the way from anywhere inside are nearer (a convex problem).
    rng = np.random.default_rng(0)
    for _ in range(20):
        noisy = project_targets(
            pay + rng.normal(size=150),
            sensitive_features=age,
            constraint=DependenceConstraint(kernel=degree),
        )
        factor = 0.2 / gedi(pay, noisy.targets, sensitive_features=age, kernel=degree, **SD)
        mean = noisy.targets.mean()
        z = mean + min(factor, 1) * (noisy.targets - mean)
        assert np.abs(z - pay).sum() >= result.bound


# --- classes


@pytest.mark.filterwarnings("ignore:the projection leaves a single row")
@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    degree=st.integers(1, 2),
    share=st.floats(0.1, 0.9),
    several=st.booleans(),
)
def test_bound_and_objective_hold_the_best_of_all_labelings(seed, degree, share, several):
    rng = np.random.default_rng(seed)
    n = 9
    x, other = rng.normal(size=(2, n))
    y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    p = rng.random(n)
    attributes = np.c_[x, other] if several else x
    constraint = DependenceConstraint(share, kernel=PolynomialKernel(degree, standardize=True))
    with Projection(
        y,
        sensitive_features=attributes,
        constraint=[constraint] * 2 if several else constraint,
        solver=Solver(gap=0.0),
    ) as projection:
        allowed = [
            np.array(z)
            for z in product([0, 1], repeat=n)
            if 0 < sum(z) < n and projection.satisfied(np.array(z))
        ]
        losses = [float(np.sum(z * (1 - p) + (1 - z) * p + (z != y))) for z in allowed]
        try:
            result = projection.solve(p)
        except (InfeasibleProjectionError, SolverError):
            # Cuts may end before they prove that there is none.
            assert not losses or projection.solve(p).status
            return
    best = min(losses)
    assert result.satisfied
    assert result.bound <= best + 1e-9
    assert result.objective >= best - 1e-9


@pytest.mark.parametrize("degree", [1, 3, 5, 8])
@pytest.mark.parametrize("loss", ["hamming", "log_loss"])
def test_many_rows_meet_the_gap(degree, loss):
    x, y, p = classes(24_000)
    p = np.clip(p, 0.01, 0.99)
    kernel = PolynomialKernel(degree, standardize=True)
    result = project_targets(
        y, p, sensitive_features=x, loss=loss, constraint=DependenceConstraint(kernel=kernel)
    )
    assert result.satisfied
    assert result.gap <= 5e-5
    assert gedi(y, result.targets, sensitive_features=x, kernel=kernel, **SD) <= 0.2 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("degree", [1, 3, 5, 8])
def test_a_million_rows_meet_a_millionth(degree):
    x, y, p = classes(1_000_000)
    kernel = PolynomialKernel(degree, standardize=True)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        constraint=DependenceConstraint(kernel=kernel),
        solver=Solver(gap=1e-6),
    )
    assert result.satisfied
    assert result.gap <= 1e-6


@pytest.mark.parametrize("degree", [1, 3])
def test_every_class_keeps_its_share(degree):
    n = 12_000
    x = classes(n)[0]
    rng = np.random.default_rng(0)
    level = np.digitize(x / 12 + rng.normal(size=n), [3, 4.5])
    y = np.array(["low", "middle", "high"])[level]
    kernel = PolynomialKernel(degree, standardize=True)
    likely = 0.4 * (level[:, None] == np.arange(3)) + 0.6 * rng.dirichlet(np.ones(3), n)
    proba = likely[:, [2, 0, 1]]  # in the order of the sorted labels
    result = project_targets(
        y, proba, sensitive_features=x, constraint=DependenceConstraint(0.3, kernel=kernel)
    )
    assert result.satisfied
    assert result.gap <= 5e-5
    for name in np.unique(y):
        own, left = (y == name) * 1.0, (result.targets == name) * 1.0
        assert gedi(own, left, sensitive_features=x, kernel=kernel, **SD) <= 0.3 + 1e-12


def test_constraints_of_every_shape_hold_together():
    pd = pytest.importorskip("pandas")
    x, y, p = classes(2000)
    rng = np.random.default_rng(0)
    team = np.where(x + 10 * rng.normal(size=2000) > 45, "a", rng.choice(["b", "c"], 2000))
    frame = pd.DataFrame({"x": x, "team": team})
    kernel = PolynomialKernel(3, standardize=True)
    for target, prediction in ((y, p), (p, None)):
        result = project_targets(
            target,
            prediction,
            sensitive_features=frame,
            constraint=[DependenceConstraint(0.3, kernel=kernel), DidiConstraint(0.3)],
        )
        assert result.satisfied
        assert result.gap <= 1e-4
        left = gedi(target * 1.0, result.targets, sensitive_features=x, kernel=kernel, **SD)
        assert left <= 0.3 + 1e-9


def test_an_infinite_threshold_allows_everything():
    x, y, p = classes(300)
    for kind in (CoarseConstraint, DependenceConstraint):
        result = project_targets(y, p, sensitive_features=x, constraint=kind(np.inf, kernel=1))
        assert result.satisfied
        assert result.gap <= 1e-9


# --- estimators


@pytest.mark.parametrize(
    "model",
    [
        MovingTargetsRegressor(LinearRegression(), CoarseConstraint(), max_iter=3),
        DualTargetsRegressor(LinearRegression(), CoarseConstraint()),
        ProjectedRegressor(LinearRegression(), CoarseConstraint(), cv="train"),
    ],
    ids=["moving targets", "dual", "projected"],
)
def test_regressors_bound_it(model):
    age, pay = u_shape(400)
    X = np.c_[age, (age - 50) ** 2, np.random.default_rng(0).normal(size=400)]
    kernel = PolynomialKernel(2, standardize=True)
    model = clone(model).set_params(
        sensitive_columns=0, constraint=DependenceConstraint(kernel=kernel)
    )
    model.fit(X, pay)
    left = gedi(pay, model.predict(X), sensitive_features=age, kernel=kernel, **SD)
    assert left <= 0.2 * 1.01
    assert model.threshold_ == pytest.approx(
        0.2 * gedi(pay, sensitive_features=age, kernel=kernel, norm="sd")
    )


@pytest.mark.parametrize(
    "model",
    [
        MovingTargetsClassifier(
            HistGradientBoostingClassifier(max_iter=30, random_state=0), CoarseConstraint()
        ),
        ProjectedClassifier(
            HistGradientBoostingClassifier(max_iter=30, random_state=0), CoarseConstraint(), cv=3
        ),
        ProjectedClassifier(
            LogisticRegression(), CoarseConstraint(), cv="train", sensitive_at_predict=False
        ),
    ],
    ids=["moving targets", "projected", "attribute-blind"],
)
def test_classifiers_bound_it(model):
    x, y, p = classes(2000)
    X = np.c_[x, np.log(p / (1 - p)), x + 6 * np.random.default_rng(0).normal(size=2000)]
    kernel = PolynomialKernel(2, standardize=True)
    model = clone(model).set_params(
        sensitive_columns=0, constraint=DependenceConstraint(kernel=kernel)
    )
    model.fit(X, y)
    assert gedi(y, model.targets_, sensitive_features=x, kernel=kernel, **SD) <= 0.2 + 1e-9


def test_a_curve_measures_what_is_bounded():
    age, pay = u_shape(300)
    X = np.c_[age, np.random.default_rng(0).normal(size=300)]
    model = ProjectedRegressor(
        LinearRegression(), sensitive_columns=0, constraint=DependenceConstraint(kernel=1), cv=3
    )
    kernel = PolynomialKernel(3, standardize=True)
    model.set_params(constraint__kernel=kernel)
    curve = tradeoff_curve(model, X, pay, thresholds=[0.1, 0.5], cv=KFold(2))
    for train, test in KFold(2).split(X):
        for threshold, own in zip(curve.thresholds, curve.test_gedi, strict=True):
            fitted = clone(model).set_params(constraint__threshold=threshold)
            predicted = fitted.fit(X[train], pay[train]).predict(X[test])
            tested = {"sensitive_features": age[test], "kernel": kernel}
            left = gedi(pay[test], predicted, **tested, **SD)
            assert np.isclose(own, left, rtol=1e-12).any()


@pytest.mark.filterwarnings("ignore:the projection leaves a single row")
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning")
@pytest.mark.slow
def test_few_rows_and_many_functions_end_without_overflow():
    # Where no group is undecided the dual has no curvature.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x, covariate = rng.normal(size=(2, 12))
        y = np.r_[0, 1, 2, rng.integers(0, 3, 9)]
        with suppress(InfeasibleProjectionError, SolverError):
            result = project_targets(
                y,
                sensitive_features=x,
                loss="hamming",
                conditional_on=covariate,
                constraint=DependenceConstraint(0.1, kernel=FourierKernel(3), relative=False),
                solver=Solver(time_limit=1),
            )
            assert result.bound <= result.objective or not result.satisfied
