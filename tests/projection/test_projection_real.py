"""Projection of real targets: the nearest point there is, at any unit of the attribute."""

import tracemalloc
import warnings
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.base import clone

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    FineConstraint,
    FourierKernel,
    PolynomialKernel,
    Solver,
    project_targets,
    projection_path,
)
from gedi_sklearn.exceptions import IllConditionedKernelWarning, RankDeficientKernelError
from gedi_sklearn.metrics import gedi, gedi_coefficients
from gedi_sklearn.projection import Projection
from tests.oracles import full_real

pytestmark = [
    # Raw ages and years on purpose: their unit is what these tests are about.
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.AttributeScaleWarning"),
    # The notice of the licence that comes with pip, once a process: tests may use that licence.
    pytest.mark.filterwarnings("ignore:Gurobi runs on the size-limited:UserWarning"),
]

EPS = np.finfo(float).eps
RNG = np.random.default_rng(0)
ATTRIBUTES = {
    "birth years": np.arange(1930.0, 2006.0),
    "ages": RNG.integers(17, 90, 60).astype(float),
    "percentages": np.round(100 * RNG.beta(0.5, 2, 60), 2),
}
every_attribute = pytest.mark.parametrize("name", ATTRIBUTES)
every_solver = pytest.mark.parametrize("solver", ["highs", "gurobi"])
every_constraint = pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint])


def curved_targets(x, rng):
    u = (x - x.mean()) / x.std()
    return u + 0.4 * u**2 - 0.3 * u**3 + 0.5 * rng.normal(size=len(x))


class HighPrecision:
    """The least-distance problem of one data set in 80 digits, solved by enumeration."""

    def __init__(self, x, t, w, degree):
        mpmath.mp.dps = 80
        self.w = [mpmath.mpf(v) for v in w.tolist()]
        self.columns = [
            self.centred([mpmath.mpf(v) ** j for v in x.tolist()]) for j in range(1, degree + 1)
        ]
        self.k = degree
        self.G = mpmath.matrix(degree)
        for i, j in product(range(degree), repeat=2):
            self.G[i, j] = self.inner(self.columns[i], self.columns[j])
        self.g = self.products(t)
        self.start = mpmath.lu_solve(self.G, self.g)

    def inner(self, a, b):
        return mpmath.fsum(w * u * v for w, u, v in zip(self.w, a, b, strict=True))

    def centred(self, values):
        mean = mpmath.fdot(self.w, values) / mpmath.fsum(self.w)
        return [v - mean for v in values]

    def products(self, t):
        t = self.centred([mpmath.mpf(v) for v in t.tolist()])
        return mpmath.matrix([self.inner(c, t) for c in self.columns])

    def coefficients(self, z):
        return mpmath.lu_solve(self.G, self.products(z))

    def move(self, a):
        """Return F̃(a − a_t)."""
        step = [a[j] - self.start[j] for j in range(self.k)]
        rows = zip(*self.columns, strict=True)
        return [mpmath.fdot(step, row) for row in rows]

    def _solve(self, free, fixed, signs=None, radius=None):
        """Return the stationary point, `fixed` off `free`, on a face of the ball if any."""
        size = len(free) + (signs is not None)
        a = mpmath.matrix(fixed)
        if not size:
            return a, mpmath.mpf(0)
        matrix, right = mpmath.matrix(size), mpmath.matrix(size, 1)
        others = [j for j in range(self.k) if j not in free]
        for i, row in enumerate(free):
            for j, column in enumerate(free):
                matrix[i, j] = self.G[row, column]
            right[i] = self.g[row] - mpmath.fsum(self.G[row, j] * fixed[j] for j in others)
            if signs is not None:
                matrix[i, size - 1] = matrix[size - 1, i] = signs[row]
        if signs is not None:
            right[size - 1] = radius
        solution = mpmath.lu_solve(matrix, right)
        for i, j in enumerate(free):
            a[j] = solution[i]
        return a, solution[size - 1] if signs is not None else mpmath.mpf(0)

    def nearest_in_ball(self, radius):
        """Return the only point over all supports and signs that satisfies the KKT conditions."""
        radius = mpmath.mpf(radius)
        if mpmath.fsum(abs(v) for v in self.start) <= radius:
            return self.start
        for signs in product((-1, 0, 1), repeat=self.k):
            free = [j for j in range(self.k) if signs[j]]
            if not free:
                continue
            a, level = self._solve(free, [mpmath.mpf(0)] * self.k, signs, radius)
            gradient = self.G * a - self.g
            outside = [j for j in range(self.k) if not signs[j]]
            if (
                level >= 0
                and all(a[j] * signs[j] >= 0 for j in free)
                and all(abs(gradient[j]) <= level for j in outside)
            ):
                return a
        raise AssertionError("no point satisfies the KKT conditions")

    def nearest_in_box(self, bounds):
        """Return the only point over all active sets that satisfies the KKT conditions."""
        bounds = [mpmath.mpf(b) for b in bounds.tolist()]
        sides = [(0,) if b == 0 or mpmath.isinf(b) else (0, -1, 1) for b in bounds]
        for active in product(*sides):
            fixed = [
                b * side if side else mpmath.mpf(0) for b, side in zip(bounds, active, strict=True)
            ]
            free = [j for j in range(self.k) if bounds[j] and not active[j]]
            a, _ = self._solve(free, fixed)
            gradient = self.G * a - self.g
            if all(abs(a[j]) <= bounds[j] for j in free) and all(
                side * gradient[j] <= 0 for j, side in enumerate(active)
            ):
                return a
        raise AssertionError("no point satisfies the KKT conditions")


@every_attribute
@pytest.mark.parametrize("unit", [1.0, 1e-12])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint, "array"])
def test_projection_matches_a_high_precision_enumeration(name, unit, weighted, constraint):
    x, rng = ATTRIBUTES[name], np.random.default_rng(1)
    y = curved_targets(x, rng) * unit
    w = rng.integers(1, 4, len(x)).astype(float) if weighted else np.ones(len(x))
    exact = HighPrecision(x, y, w, 5)
    start = np.array([float(v) for v in exact.start])
    if constraint == "array":
        share = np.array([0.5, 0, np.inf, 0.3, 2])
        bound = FineConstraint(np.abs(start) * share, kernel=5, relative=False)
    else:
        bound = constraint(0.2, kernel=5)
    result = project_targets(y, sensitive_features=x, sample_weight=w, constraint=bound)

    if constraint is CoarseConstraint:
        a = exact.nearest_in_ball(result.threshold)
    else:
        bounds = result.threshold if constraint == "array" else np.r_[result.threshold, np.zeros(4)]
        a = exact.nearest_in_box(bounds)
    move = exact.move(a)
    objective = float(exact.inner(move, move))
    assert result.solver == "exact"
    assert result.satisfied
    assert result.objective == pytest.approx(objective, rel=1e-10)
    # What rounding the bounds' own products a_j·F̃_j leaves: they cancel by many digits.
    sizes = [abs(a[j]) * mpmath.sqrt(exact.G[j, j] / w.sum()) for j in range(5)]
    rounding = 20 * EPS * float(mpmath.fsum(sizes)) if constraint == "array" else 0.0
    z = y + np.array([float(v) for v in move])
    assert_allclose(result.targets, z, rtol=0, atol=1e-10 * y.std() + rounding)

    # The returned floats, judged in 80 digits: allowed but for the rounding of the floats.
    true = np.array([float(v) for v in exact.coefficients(result.targets)])
    to_coefficients = mpmath.inverse(exact.G) * mpmath.matrix(exact.columns)
    noise = np.array(
        [
            float(
                mpmath.fsum(
                    abs(to_coefficients[j, i] * v) for i, v in enumerate(w * result.targets)
                )
            )
            for j in range(5)
        ]
    )
    noise *= 20 * EPS
    if constraint is CoarseConstraint:
        assert np.abs(true).sum() <= result.threshold * (1 + 1e-9) + noise.sum()
    else:
        assert (np.abs(true) <= bounds * (1 + 1e-9) + noise).all()


@every_attribute
@every_constraint
def test_solvers_agree(name, constraint):
    x, rng = ATTRIBUTES[name], np.random.default_rng(2)
    y, p, w = curved_targets(x, rng), curved_targets(x, rng), rng.uniform(0.5, 2, len(x))
    first, second = (
        project_targets(
            y,
            p,
            sensitive_features=x,
            sample_weight=w,
            solver=solver,
            constraint=constraint(kernel=5),
        )
        for solver in ("highs", "gurobi")
    )
    assert (first.solver, second.solver) == ("exact", "gurobi")
    assert second.satisfied
    assert_allclose(second.targets, first.targets, rtol=0, atol=1e-8 * y.std())
    assert second.objective == pytest.approx(first.objective, rel=1e-8)


def test_solvers_agree_on_many_columns():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 3))
    y = x[:, 0] + x[:, 1] ** 2 + rng.normal(size=200)
    first, second = (
        project_targets(
            y,
            sensitive_features=x,
            solver=solver,
            constraint=CoarseConstraint(0.3, kernel=PolynomialKernel(4)),
        )
        for solver in ("highs", "gurobi")
    )
    assert first.coefficients.shape == (34,)
    assert_allclose(second.targets, first.targets, rtol=0, atol=1e-8 * y.std())


@every_attribute
def test_fine_targets_do_not_depend_on_unit_and_origin(name):
    x = ATTRIBUTES[name]
    y = curved_targets(x, np.random.default_rng(4))
    targets = [
        project_targets(y, sensitive_features=moved, constraint=FineConstraint(kernel=5)).targets
        for moved in (x, x / 100, x - x.mean(), 365.25 * x, 2020 - x, (x - x.mean()) / x.std())
    ]
    for other in targets[1:]:
        assert_allclose(other, targets[0], rtol=0, atol=1e-9 * y.std())


def test_coarse_targets_do_not_depend_on_unit_and_origin_of_a_standardised_kernel():
    x = ATTRIBUTES["ages"]
    y = curved_targets(x, np.random.default_rng(4))
    kernel = PolynomialKernel(4, standardize=True)
    targets = [
        project_targets(
            y, sensitive_features=moved, constraint=CoarseConstraint(kernel=kernel)
        ).targets
        for moved in (x, x / 100, 365.25 * x + 3)
    ]
    for other in targets[1:]:
        assert_allclose(other, targets[0], rtol=0, atol=1e-9 * y.std())


@st.composite
def problems(draw):
    """Draw a small problem: keywords of a projection, and the kernel's columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    degree = draw(st.integers(1, 4))
    n = draw(st.integers(degree + 2, 40))
    values = rng.normal(size=n)
    if draw(st.booleans()):
        # Few distinct values, many equal rows.
        values = rng.choice(rng.normal(size=degree + 2), n)
        values[: degree + 2] = np.linspace(-1, 1, degree + 2)
    y = rng.normal(size=n) + draw(st.sampled_from([0.0, 1.0])) * values
    p = rng.normal(size=n) + values**2 if draw(st.booleans()) else None
    weight = rng.uniform(0.2, 3, n) if draw(st.booleans()) else None
    constraint = draw(st.sampled_from(["coarse", "fine", "array"]))
    unconstrained = np.abs(
        gedi_coefficients(y, sensitive_features=values, kernel=degree, sample_weight=weight)
    )
    threshold = draw(st.sampled_from([0.0, 0.05, 0.5, 0.9])) * unconstrained.sum()
    if constraint == "array":
        threshold = unconstrained * rng.choice([0.0, 0.3, 0.9, 1.5, np.inf], degree)
    return {
        "y": y,
        "y_pred": p,
        "sensitive_features": values,
        "degree": degree,
        "sample_weight": weight,
        "target_weight": draw(st.sampled_from([0.0, 0.3, 1.0])),
        "constraint": "coarse" if constraint == "coarse" else "fine",
        "threshold": threshold,
        "relative": False,
    }


def constraint_of(problem):
    """Return the constraint of a problem."""
    kind = FineConstraint if problem["constraint"] == "fine" else CoarseConstraint
    return kind(problem["threshold"], kernel=problem["degree"], relative=problem["relative"])


def project(problem):
    """Return the projection of a problem."""
    names = ("y", "y_pred", "sensitive_features", "sample_weight", "target_weight")
    given = {name: problem[name] for name in names}
    return project_targets(**given, constraint=constraint_of(problem))


def parts_of(problem):
    """Return the weighted mean t of a problem, weights, raw centred columns and bounds."""
    y, p, share = problem["y"], problem["y_pred"], problem["target_weight"]
    t = y if p is None else (p + share * y) / (1 + share)
    w = problem["sample_weight"]
    w = np.ones(len(y)) if w is None else w
    columns = problem["sensitive_features"][:, None] ** np.arange(1, problem["degree"] + 1)
    columns = columns - np.average(columns, axis=0, weights=w)
    bounds = problem["threshold"]
    if problem["constraint"] == "fine" and np.ndim(bounds) == 0:
        bounds = np.r_[bounds, np.zeros(problem["degree"] - 1)]
    return t, w, columns, bounds


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems())
def test_kkt_conditions(problem):
    result = project(problem)
    t, w, columns, bounds = parts_of(problem)
    norms = np.sqrt(w @ columns**2)
    a, move = result.coefficients, result.targets - t
    assert result.satisfied
    # The move is F̃β: nothing outside of the kernel's span changes.
    span, _ = np.linalg.qr(np.sqrt(w)[:, None] * columns)
    weighted_move = np.sqrt(w) * move
    size = np.sqrt(w @ (t - np.average(t, weights=w)) ** 2)
    assert_allclose(span @ (span.T @ weighted_move), weighted_move, rtol=0, atol=1e-9 * size)

    gradient, tolerance = columns.T @ (w * move), 1e-9 * norms * size
    nonzero = np.abs(a) * norms > 1e-9 * size
    if problem["constraint"] == "coarse":
        level = np.abs(gradient).max()
        assert (np.abs(gradient) <= level + tolerance).all()
        assert (np.abs(gradient + level * np.sign(a))[nonzero] <= tolerance[nonzero]).all()
        # Complementary slackness: a move only from outside, and then onto the sphere.
        assert level <= tolerance.max() or np.abs(a).sum() == pytest.approx(
            bounds, rel=1e-9, abs=1e-12
        )
    else:
        inside = np.abs(a) < bounds * (1 - 1e-9)
        assert (np.abs(gradient)[inside] <= tolerance[inside]).all()
        active = ~inside & (bounds > 0)
        assert (gradient * np.sign(a) <= tolerance)[active].all()


@settings(max_examples=20, deadline=None, derandomize=True)
@given(problems())
def test_objective_is_that_of_the_full_model(problem):
    result = project(problem)
    t, w, columns, bounds = parts_of(problem)
    is_coarse = problem["constraint"] == "coarse"
    _, objective = full_real(
        problem["y"],
        problem["y_pred"],
        problem["target_weight"],
        weight=w,
        columns=columns,
        radius=bounds if is_coarse else None,
        bounds=None if is_coarse else bounds,
    )
    size = w @ (t - t.mean()) ** 2
    assert result.objective == pytest.approx(objective, rel=1e-6, abs=1e-7 * size)


@every_constraint
@pytest.mark.parametrize("weighted", [False, True])
def test_targets_are_those_of_gurobis_model_with_one_variable_a_row(constraint, weighted):
    gurobipy = pytest.importorskip("gurobipy", reason="the oracle is Gurobi's own model")
    rng = np.random.default_rng(5)
    n, k = 80, 3
    x = rng.normal(size=n)
    y, p = x + x**2 + rng.normal(size=n), x + rng.normal(size=n)
    w = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        sample_weight=w,
        target_weight=0.5,
        constraint=constraint(kernel=k),
    )
    columns = x[:, None] ** np.arange(1, k + 1)
    columns -= np.average(columns, axis=0, weights=w)
    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
        z = model.addMVar(n, lb=-np.inf)
        plus, minus = model.addMVar(k), model.addMVar(k)
        gram = columns.T @ (w[:, None] * columns)
        model.addConstr(gram @ (plus - minus) == columns.T @ np.diag(w) @ z)
        if constraint is CoarseConstraint:
            model.addConstr(plus.sum() + minus.sum() <= result.threshold)
        else:
            model.addConstr(plus[0] + minus[0] <= result.threshold)
            model.addConstr(plus[1:] + minus[1:] <= 0)
        weights = np.diag(w)
        model.setObjective(
            1.5 * (z @ weights @ z) - 2 * ((w * (p + 0.5 * y)) @ z) + w @ (p**2 + 0.5 * y**2)
        )
        model.setParam("BarConvTol", 1e-12)
        model.optimize()
        assert model.ObjVal == pytest.approx(result.objective, rel=1e-6)
        assert_allclose(result.targets, z.X, rtol=0, atol=1e-3)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_coarse_indicator_is_exactly_the_threshold_or_that_of_the_free_targets(problem):
    problem |= {"constraint": "coarse", "threshold": float(np.max(problem["threshold"]))}
    if np.isinf(problem["threshold"]):
        problem["threshold"] = 1.0
    x, w = problem["sensitive_features"], problem["sample_weight"]
    t, *_ = parts_of(problem)
    free = gedi(t, sensitive_features=x, kernel=problem["degree"], sample_weight=w)
    z = project(problem).targets
    found = gedi(z, sensitive_features=x, kernel=problem["degree"], sample_weight=w)
    assert found == pytest.approx(min(problem["threshold"], free), rel=1e-9, abs=1e-10)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(problems(), st.lists(st.floats(0, 3), min_size=2, max_size=5))
def test_a_smaller_threshold_never_gives_a_smaller_objective(problem, thresholds):
    objectives = [
        project(problem | {"threshold": threshold}).objective for threshold in sorted(thresholds)
    ]
    assert (np.diff(objectives) <= 1e-9 * max(objectives)).all()


@every_constraint
@every_solver
def test_infinite_bounds_return_the_weighted_mean(constraint, solver):
    rng = np.random.default_rng(6)
    x, y, p = rng.normal(size=(3, 20))
    threshold = np.inf if constraint is CoarseConstraint else [np.inf] * 3
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        target_weight=0.25,
        solver=solver,
        constraint=constraint(threshold, kernel=3),
    )
    assert_allclose(result.targets, (p + 0.25 * y) / 1.25, rtol=1e-14)
    assert_array_equal(result.correction, 0)
    assert_array_equal(result.multipliers, 0)


def test_targets_inside_the_constraint_are_returned_to_the_last_bit():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 20))
    result = project_targets(
        y, sensitive_features=x, constraint=CoarseConstraint(99.0, kernel=2, relative=False)
    )
    assert_array_equal(result.targets, y)
    assert result.objective == 0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_projecting_twice_changes_nothing(problem):
    z = project(problem).targets
    again = project(problem | {"y": z, "y_pred": None}).targets
    assert_allclose(again, z, rtol=0, atol=1e-9 * (1 + np.abs(z).max()))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(problems(), st.integers(0, 2**32 - 1))
def test_integer_weights_are_repeated_rows(problem, seed):
    x, y, p = problem["sensitive_features"], problem["y"], problem["y_pred"]
    w = np.random.default_rng(seed).integers(1, 4, len(y))
    weighted = project(problem | {"sample_weight": w})
    repeated = project(
        problem
        | {
            "y": y.repeat(w),
            "y_pred": None if p is None else p.repeat(w),
            "sensitive_features": x.repeat(w),
            "sample_weight": None,
        }
    )
    assert_allclose(repeated.targets, weighted.targets.repeat(w), rtol=0, atol=1e-8)
    assert repeated.objective == pytest.approx(weighted.objective, rel=1e-8, abs=1e-12)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(problems(), st.sampled_from([1e-12, 1e-3, 1e6]))
def test_scaling_all_weights_changes_nothing(problem, factor):
    w = problem["sample_weight"]
    w = np.ones(len(problem["y"])) if w is None else w
    one = project(problem | {"sample_weight": w})
    other = project(problem | {"sample_weight": factor * w})
    assert_allclose(other.targets, one.targets, rtol=0, atol=1e-9)
    assert other.objective == pytest.approx(factor * one.objective, rel=1e-8, abs=1e-12 * factor)


@every_constraint
def test_a_row_of_zero_weight_is_absent_and_keeps_its_target(constraint):
    rng = np.random.default_rng(7)
    x, y, p = rng.normal(size=(3, 30))
    w = np.r_[np.zeros(5), rng.uniform(0.5, 2, 25)]
    x[0], y[1], p[2] = 1e6, 1e6, 1e6
    options = {"constraint": constraint(kernel=3)}
    full = project_targets(y, p, sensitive_features=x, sample_weight=w, **options)
    kept = project_targets(y[5:], p[5:], sensitive_features=x[5:], sample_weight=w[5:], **options)
    assert_array_equal(full.targets[:5], y[:5])
    assert_allclose(full.targets[5:], kept.targets, rtol=1e-12)
    assert full.objective == pytest.approx(kept.objective)
    assert full.threshold == pytest.approx(kept.threshold)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_the_weighted_mean_stays_what_it_is_without_a_constraint(problem):
    t, w, *_ = parts_of(problem)
    z = project(problem).targets
    assert np.average(z, weights=w) == pytest.approx(np.average(t, weights=w), abs=1e-9)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_the_correction_is_what_moves_the_targets(problem):
    y, p, share = problem["y"], problem["y_pred"], problem["target_weight"]
    rows = {name: problem[name] for name in ("sensitive_features", "sample_weight")}
    with Projection(y, constraint=constraint_of(problem), **rows) as projection:
        result = projection.solve(p, share)
        columns = projection.kernel_.transform(problem["sensitive_features"])
    t = y if p is None else (p + share * y) / (1 + share)
    assert_allclose(t + columns @ result.correction, result.targets, rtol=0, atol=1e-9)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_multipliers_make_the_targets_stationary(problem):
    # z minimises loss(z) − λ'α̃(z): the loss's gradient is P'λ in every row.
    result = project(problem)
    _, w, columns, _ = parts_of(problem)
    y, p, share = problem["y"], problem["y_pred"], problem["target_weight"]
    gradient = 2 * w * (result.targets - (y if p is None else p))
    if p is not None:
        gradient += 2 * share * w * (result.targets - y)
    to_coefficients = np.linalg.pinv(np.sqrt(w)[:, None] * columns) * np.sqrt(w)
    assert_allclose(to_coefficients.T @ result.multipliers, gradient, rtol=0, atol=1e-7)


def test_multipliers_are_the_price_of_the_threshold():
    rng = np.random.default_rng(8)
    x = rng.normal(size=50)
    y = x + x**2 + rng.normal(size=50)
    step = 1e-5
    results = [
        project_targets(
            y,
            sensitive_features=x,
            constraint=CoarseConstraint(0.4 + move, kernel=3, relative=False),
        )
        for move in (step, -step, 0.0)
    ]
    objective = [result.objective for result in results]
    price = np.abs(results[2].multipliers).max()
    assert (objective[0] - objective[1]) / (2 * step) == pytest.approx(-price, rel=1e-4)


@pytest.mark.parametrize("kernel", [FourierKernel(2), lambda v: np.c_[v, np.exp(v)]])
def test_other_kernels_take_a_bound_for_each_column(kernel):
    rng = np.random.default_rng(9)
    x = rng.uniform(-2, 2, 60)
    y = np.sin(x) + x + rng.normal(size=60)
    a = gedi_coefficients(y, sensitive_features=x, kernel=kernel)
    bounds = np.r_[0.0, np.inf, np.abs(a[2:]) / 2]
    result = project_targets(
        y, sensitive_features=x, constraint=FineConstraint(bounds, kernel=kernel, relative=False)
    )
    assert result.coefficients[0] == pytest.approx(0, abs=1e-12)
    assert (np.abs(result.coefficients) <= bounds + 1e-12).all()
    coarse = project_targets(
        y, sensitive_features=x, constraint=CoarseConstraint(0.5, kernel=kernel, relative=False)
    )
    assert np.abs(coarse.coefficients).sum() == pytest.approx(0.5, rel=1e-10)


@every_solver
@every_constraint
def test_a_saturated_kernel_leaves_the_threshold_exact(solver, constraint):
    # k = n − 1: the kernel can be any target.
    x = np.array([-1.2, -0.5, 0.1, 0.4, 0.9, 1.3])
    y = np.array([0.3, -1.0, 0.8, 0.2, 1.5, -0.4])
    result = project_targets(
        y, sensitive_features=x, solver=solver, constraint=constraint(0.3, kernel=5)
    )
    assert result.satisfied
    assert np.abs(result.coefficients).sum() == pytest.approx(result.threshold, rel=1e-9)


@every_solver
def test_three_rows_and_no_dependence_left(solver):
    x, y = np.array([0.0, 1.0, 5.0]), np.array([1.0, 2.0, 4.0])
    result = project_targets(
        y, sensitive_features=x, solver=solver, constraint=CoarseConstraint(0.0)
    )
    slope = np.polyfit(x, y, 1)[0]
    assert_allclose(result.targets, y - slope * (x - x.mean()))


@every_constraint
@every_solver
def test_constant_targets_stay(constraint, solver):
    x, y = np.arange(7.0), np.full(7, 0.1)
    result = project_targets(
        y,
        sensitive_features=x,
        loss="squared_error",
        solver=solver,
        constraint=constraint(0.0, kernel=2, relative=False),
    )
    assert_allclose(result.targets, y, rtol=1e-14)


def test_a_reference_of_zero_asks_for_an_absolute_threshold():
    x = np.array([-1.0, 0, 1, -1, 0, 1])
    y = np.array([1.0, 0, 1, 1, 0, 1.5])
    y[5] = 1.0
    with pytest.raises(ValueError, match="relative=False"):
        project_targets(
            y, sensitive_features=x, loss="squared_error", constraint=CoarseConstraint()
        )


@pytest.mark.parametrize("unit", [1e-150, 1e-12, 1e12, 1e150])
@every_constraint
@every_solver
def test_the_unit_of_the_targets_changes_nothing(unit, constraint, solver):
    rng = np.random.default_rng(10)
    x = rng.normal(size=40)
    y = x + x**2 + rng.normal(size=40)
    options = {"sensitive_features": x, "constraint": constraint(kernel=3), "solver": solver}
    options["loss"] = "squared_error"
    result = project_targets(unit * y, **options)
    assert result.satisfied
    assert_allclose(result.targets / unit, project_targets(y, **options).targets, atol=1e-8)


def test_an_objective_beyond_floats_is_refused():
    x = np.random.default_rng(10).normal(size=40)
    with pytest.raises(ValueError, match=r"too large for floats.* divide all weights"):
        project_targets(
            x,
            1e149 * x,
            sensitive_features=x,
            sample_weight=np.full(40, 1e152),
            constraint=CoarseConstraint(relative=False),
        )


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12])
@every_solver
def test_the_origin_of_the_targets_changes_nothing(offset, solver):
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    y = x + x**2 + rng.normal(size=30)
    options = {"sensitive_features": x, "constraint": CoarseConstraint(kernel=3), "solver": solver}
    near = project_targets(y, **options)
    far = project_targets(y + offset, **options)
    assert far.satisfied
    assert_allclose(far.targets - offset, near.targets, rtol=0, atol=20 * EPS * offset)


@pytest.mark.parametrize("factor", [1e4, 1e8, 1e12])
def test_predictions_of_another_size_than_the_targets_are_projected_too(factor):
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    y = x + x**2 + rng.normal(size=30)
    for p in (factor * y, y + factor):
        assert project_targets(
            y, p, sensitive_features=x, constraint=CoarseConstraint(kernel=3)
        ).satisfied


@every_constraint
def test_huge_weights_are_no_trouble(constraint):
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    y = x + x**2 + rng.normal(size=30)
    w = np.ones(30)
    w[:6] = 1e12
    options = {"sensitive_features": x, "constraint": constraint(kernel=3)}
    result = project_targets(y, sample_weight=w, **options)
    assert result.satisfied
    only = project_targets(y[:6], **options | {"sensitive_features": x[:6]})
    assert_allclose(result.targets[:6], only.targets, atol=1e-8)


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@every_constraint
def test_an_outlier_gives_satisfied_targets_or_a_word_about_the_kernel(degree, constraint):
    rng = np.random.default_rng(1)
    x = rng.normal(size=50)
    x[0] = 1e6
    y = x / 1e6 + rng.normal(size=50)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = project_targets(
                y, sensitive_features=x, constraint=constraint(kernel=degree, relative=True)
            )
        except RankDeficientKernelError:
            return
    told = any(issubclass(w.category, IllConditionedKernelWarning) for w in caught)
    assert result.satisfied or told


def test_duplicated_rows_move_together():
    rng = np.random.default_rng(11)
    x, y = np.tile(rng.normal(size=10), 4), np.tile(rng.normal(size=10), 4)
    z = project_targets(
        y, sensitive_features=x, constraint=CoarseConstraint(kernel=2)
    ).targets.reshape(4, 10)
    assert_allclose(z, np.tile(z[0], (4, 1)), rtol=0, atol=1e-14)


def test_inputs_are_left_alone_and_may_be_read_only():
    rng = np.random.default_rng(12)
    arrays = [rng.normal(size=20), rng.normal(size=20), rng.normal(size=20), rng.uniform(1, 2, 20)]
    copies = [a.copy() for a in arrays]
    for a in arrays:
        a.setflags(write=False)
    y, p, x, w = arrays
    project_targets(
        y, p, sensitive_features=x, sample_weight=w, constraint=CoarseConstraint(kernel=2)
    )
    for a, copy in zip(arrays, copies, strict=True):
        assert_array_equal(a, copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_pred": [1.0, 2.0]}, "y_pred"),
        ({"y_pred": [np.nan] * 4}, "y_pred"),
        ({"y": [1.0, np.inf, 2, 3]}, "y"),
        ({"sensitive_features": [1.0, 2.0]}, "sensitive_features"),
        ({"sensitive_features": [1.0, np.nan, 2, 3]}, "NaN"),
        ({"target_weight": -1.0}, "target_weight"),
        ({"target_weight": np.inf}, "target_weight"),
        ({"sample_weight": [0.0] * 4}, "sample_weight"),
        ({"sample_weight": [1.0, -1, 1, 1]}, "sample_weight"),
        ({"loss": "absolute"}, "loss"),
        ({"solver": Solver(gap=-1.0)}, "gap"),
    ],
)
def test_faults_in_the_input_are_named(change, message):
    options = {"y": [1.0, 2.5, 3, 5], "sensitive_features": [0.0, 1, 2, 4]} | change
    with pytest.raises(ValueError, match=message):
        project_targets(**options)


@every_constraint
@pytest.mark.parametrize("weighted", [False, True])
def test_absolute_error_is_the_optimum_of_the_full_linear_program(constraint, weighted):
    rng = np.random.default_rng(13)
    n, k, share = 60, 3, 0.5
    x = rng.normal(size=n)
    y, p = x + x**2 + rng.normal(size=n), x + rng.normal(size=n)
    w = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        loss="absolute_error",
        target_weight=share,
        sample_weight=w,
        constraint=constraint(kernel=k),
    )
    columns = x[:, None] ** np.arange(1, k + 1)
    columns -= np.average(columns, axis=0, weights=w)
    to_coefficients = np.linalg.pinv(np.sqrt(w)[:, None] * columns) * np.sqrt(w)
    to_coefficients -= to_coefficients.sum(axis=1, keepdims=True) * w / w.sum()
    # Variables z, |z − p|, |z − y|, a⁺, a⁻.
    one, none, wide = np.eye(n), np.zeros((n, n)), np.zeros((n, 2 * k))
    norm = np.r_[np.zeros(3 * n), np.ones(2 * k)]
    first = np.r_[np.zeros(3 * n), 1.0, np.zeros(k - 1), 1.0, np.zeros(k - 1)]
    oracle = linprog(
        np.r_[np.zeros(n), w, share * w, np.zeros(2 * k)],
        A_ub=np.vstack(
            [
                np.hstack([one, -one, none, wide]),
                np.hstack([-one, -one, none, wide]),
                np.hstack([one, none, -one, wide]),
                np.hstack([-one, none, -one, wide]),
                norm if constraint is CoarseConstraint else first,
            ]
        ),
        b_ub=np.r_[p, -p, y, -y, result.threshold],
        A_eq=np.hstack([to_coefficients, np.zeros((k, 2 * n)), -np.eye(k), np.eye(k)]),
        b_eq=np.zeros(k),
        bounds=[(None, None)] * n
        + [(0, None)] * (2 * n)
        + (
            [(0, None)] * (2 * k)
            if constraint is CoarseConstraint
            else ([(0, None)] + [(0, 0)] * (k - 1)) * 2
        ),
    )
    assert oracle.status == 0
    assert result.satisfied
    loss = w @ (np.abs(result.targets - p) + share * np.abs(result.targets - y))
    assert result.objective == pytest.approx(loss, rel=1e-12)
    assert result.objective == pytest.approx(oracle.fun, rel=1e-6)
    assert result.bound <= oracle.fun * (1 + 1e-7)


@pytest.mark.parametrize("beside", [None, CoarseConstraint(0.1, relative=False)])
def test_a_deviation_that_is_met_as_it_is_costs_nothing_in_absolute_error(beside):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 60))
    y = x + z + rng.normal(size=60)
    options = {"loss": "absolute_error", "solver": "highs"}
    expected, attribute = y, x
    if beside is not None:
        expected = project_targets(y, sensitive_features=z, constraint=beside, **options).targets
        attribute = np.c_[x, z]
    just = 1.02 * gedi(expected, sensitive_features=x, norm="sd", kernel=3)
    constraint = DependenceConstraint(just, kernel=3, relative=False)
    constraint = constraint if beside is None else [constraint, beside]
    result = project_targets(y, sensitive_features=attribute, constraint=constraint, **options)
    assert result.objective == pytest.approx(np.abs(expected - y).sum(), rel=1e-9)
    assert result.gap <= 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_a_deviation_just_below_what_there_is_has_a_small_gap_in_absolute_error(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=70)
    y = x + rng.normal(size=70)
    nearly = {"constraint": DependenceConstraint(0.99), "loss": "absolute_error"}
    # Above 1e-6 an IllConditionedKernelWarning would be the error.
    assert project_targets(y, sensitive_features=x, solver="highs", **nearly).gap <= 1e-6


@pytest.mark.parametrize("unit", [1e-12, 1e12])
@every_constraint
@pytest.mark.parametrize("bounds", [None, (0, None)])
def test_the_unit_of_the_targets_changes_nothing_in_absolute_error(unit, constraint, bounds):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    y = rng.poisson(np.exp(x)).astype(float)
    options = {"sensitive_features": x, "constraint": constraint(kernel=2)}
    options |= {"loss": "absolute_error", "target_bounds": bounds}
    one, other = (project_targets(factor * y, **options) for factor in (1.0, unit))
    assert other.satisfied
    assert other.objective == pytest.approx(unit * one.objective, rel=1e-6)
    assert other.gap <= 1e-6


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_scaling_all_weights_changes_nothing_in_absolute_error(factor):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    y, w = x + rng.normal(size=100), rng.uniform(0.5, 2, 100)
    options = {
        "sensitive_features": x,
        "constraint": CoarseConstraint(kernel=2),
        "loss": "absolute_error",
    }
    one, other = (project_targets(y, sample_weight=s * w, **options) for s in (1.0, factor))
    assert other.objective == pytest.approx(factor * one.objective, rel=1e-6)
    assert other.gap <= 1e-6


@every_attribute
@every_constraint
def test_bounds_that_do_not_bind_change_nothing(name, constraint):
    x = ATTRIBUTES[name]
    y = curved_targets(x, np.random.default_rng(16))
    options = {"sensitive_features": x, "constraint": constraint(kernel=5)}
    free = project_targets(y, **options)
    bounded = project_targets(y, target_bounds=(-99.0, 99.0), **options)
    assert bounded.satisfied
    assert bounded.objective == pytest.approx(free.objective, rel=1e-9)
    assert_allclose(bounded.targets, free.targets, rtol=0, atol=1e-6 * y.std())


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_the_origin_of_bounded_targets_changes_nothing(offset):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    y = rng.poisson(np.exp(x)).astype(float)
    options = {"sensitive_features": x, "constraint": CoarseConstraint(kernel=2)}
    near = project_targets(y, target_bounds=(0, None), **options)
    far = project_targets(y + offset, target_bounds=(offset, None), **options)
    assert far.satisfied
    assert_allclose(far.targets - offset, near.targets, rtol=0, atol=1e-8 + 100 * EPS * offset)


@every_constraint
@pytest.mark.parametrize("bounds", [(0, None), (None, 0.0), (-1.0, 2.0)])
def test_bounded_targets_are_clipped_around_a_correction(constraint, bounds):
    # z = clip(t + F̃λ): the KKT conditions of the box.
    rng = np.random.default_rng(14)
    low, high = (-np.inf if bounds[0] is None else bounds[0]), (bounds[1] or np.inf)
    high = 0.0 if bounds[1] == 0 else high
    x = rng.normal(size=80)
    y = np.clip(x + x**2 / 4 + 2 * rng.normal(size=80), low, high)
    options = {"sensitive_features": x, "constraint": constraint(0.3, kernel=2)}
    result = project_targets(y, target_bounds=bounds, **options)
    assert result.satisfied
    assert (result.targets >= low).all()
    assert (result.targets <= high).all()
    inside = (result.targets > low + 1e-9) & (result.targets < high - 1e-9)
    assert 20 < inside.sum() < 80
    columns = np.c_[np.ones(80), x - x.mean(), x**2 - np.mean(x**2)]
    move = result.targets - y
    fit = np.linalg.lstsq(columns[inside], move[inside], rcond=None)[0]
    # The constant is no function of the attribute: it is not in the correction.
    assert fit[0] == pytest.approx(0, abs=1e-6)
    assert_allclose(columns[inside] @ fit, move[inside], rtol=0, atol=1e-6)
    assert_allclose(np.clip(y + columns @ fit, low, high), result.targets, rtol=0, atol=1e-6)
    free = project_targets(y, **options)
    assert result.objective >= free.objective * (1 - 1e-9)


@every_constraint
def test_a_path_is_the_projections_at_its_thresholds(constraint):
    rng = np.random.default_rng(15)
    x = rng.normal(size=60)
    y, p, w = x + x**2 + rng.normal(size=60), x + rng.normal(size=60), rng.uniform(1, 2, 60)
    options = {"sensitive_features": x, "sample_weight": w}
    bound = constraint(kernel=3)
    thresholds = [1.2, 0.5, 0.1, 0.0]
    path = projection_path(
        y,
        p,
        thresholds=thresholds,
        target_weight=0.5,
        return_targets=True,
        constraint=bound,
        **options,
    )
    for i, threshold in enumerate(thresholds):
        single = project_targets(
            y,
            p,
            target_weight=0.5,
            **options,
            constraint=clone(bound).set_params(threshold=threshold),
        )
        assert_allclose(path.targets[i], single.targets, rtol=0, atol=1e-12)
        assert path.objective[i] == pytest.approx(single.objective)
    assert path.satisfied.all()
    assert (np.diff(path.objective) >= 0).all()
    default = projection_path(y, p, constraint=bound, **options)
    assert default.gedi[-1] == pytest.approx(0, abs=1e-10)
    assert (np.diff(default.objective) >= -1e-9).all()
    assert default.targets is None


@pytest.mark.parametrize("thresholds", [[], 3, (), 0.5])
def test_a_path_of_no_thresholds_is_refused(thresholds):
    x = np.linspace(-1, 1, 9)
    with pytest.raises(ValueError, match="thresholds must hold at least one"):
        projection_path(
            x, sensitive_features=x, thresholds=thresholds, constraint=CoarseConstraint()
        )


@pytest.mark.parametrize("target_weight", ["1", None, np.nan, np.inf, -1.0, 1j, 10**400])
def test_a_weight_that_is_no_number_is_refused(target_weight):
    x = np.linspace(-1, 1, 9)
    with pytest.raises((ValueError, TypeError), match=r"^target_weight"):
        projection_path(
            x,
            x,
            sensitive_features=x,
            thresholds=[0.5],
            target_weight=target_weight,
            constraint=CoarseConstraint(),
        )


def test_targets_beyond_integers_are_real_without_a_warning():
    # Scikit-learn's look at the type of targets casts them.
    x = np.linspace(-1, 1, 9)
    small, large = (
        project_targets(u * x, sensitive_features=x, constraint=CoarseConstraint())
        for u in (1.0, 2.0**250)
    )
    np.testing.assert_array_equal(large.targets, 2.0**250 * small.targets)


@pytest.mark.parametrize(
    "options", [{}, {"target_bounds": (0.0, 6.0)}, {"loss": "kl"}], ids=["free", "bounds", "kl"]
)
def test_some_rows_have_the_projection_that_they_have_alone(options):
    rng = np.random.default_rng(1)
    x, covariate, noise = rng.normal(size=(3, 200))
    y = np.clip(3 + x + 0.5 * covariate + noise, 0.1, 5.9)
    p = np.clip(y + 0.3 * rng.normal(size=200), 0.1, 5.9)
    given = {"sensitive_features": x, "conditional_on": covariate, "sample_weight": 1 + x**2}
    options = {"constraint": CoarseConstraint(0.3, kernel=2), "solver": "highs", **options}
    rows = np.sort(rng.choice(200, 120, replace=False))
    own = {name: values[rows] for name, values in given.items()}
    with Projection(y, **given, **options) as whole, Projection(y[rows], **own, **options) as alone:
        part, expected = whole.on_rows(rows), alone.solve(p[rows], 0.0)
        correction, intercept = part.correction(p[rows])
        assert part.threshold_ == pytest.approx(alone.threshold_, rel=1e-12)
        assert_allclose(correction, expected.orthonormal_correction, rtol=1e-9)
        assert intercept == pytest.approx(expected.intercept, rel=1e-9, abs=1e-12)
        assert_allclose(part.solve(p[rows], 0.0).targets, expected.targets, rtol=1e-9)


def test_memory_is_that_of_the_orthonormal_columns_and_a_few_vectors():
    n, degree = 400_000, 5  # the verdict draws rows of so many
    x, noise = RNG.normal(size=(2, n))
    given = {"sensitive_features": x, "constraint": DependenceConstraint(0.2, kernel=degree)}
    project_targets(x + noise, **given)  # what is imported and kept once
    tracemalloc.start()
    project_targets(x + noise, **given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (degree + 6) * x.nbytes
