"""Constraints: which coefficients are allowed, in which units, and what a threshold means."""

import pickle
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.base import clone

from gedi_sklearn import (
    CoarseConstraint,
    ConstraintList,
    DependenceConstraint,
    DidiConstraint,
    DualTargetsRegressor,
    FineConstraint,
    FourierKernel,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    PolynomialKernel,
    ProjectedRegressor,
    Solver,
    SplineKernel,
    project_targets,
)
from gedi_sklearn._geometry._block import Block
from gedi_sklearn._geometry._sets import Ball, Box, L1Ball
from gedi_sklearn._geometry._span import joint_multipliers
from gedi_sklearn.constraints import check_constraint
from gedi_sklearn.kernels import fit_kernel
from gedi_sklearn.metrics import gedi, gedi_coefficients
from gedi_sklearn.projection import Projection

# Raw units on purpose: whether a set depends on them is what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.AttributeScaleWarning")
both = pytest.mark.parametrize("kind", [CoarseConstraint, FineConstraint])

RNG = np.random.default_rng(0)
N = 50
X = RNG.normal(size=N)
Y = X + X**2 + RNG.normal(size=N)
W = RNG.uniform(0.5, 2, N)


@both
def test_parameters_are_stored_cloned_and_shown(kind):
    kernel = PolynomialKernel(3)
    constraint = kind(0.5, kernel=kernel, relative=2)
    assert constraint.kernel is kernel
    params = constraint.get_params(deep=False)
    assert params["threshold"] == 0.5
    assert params["relative"] == 2
    copy = clone(constraint)
    assert copy.kernel is not kernel
    assert repr(copy) == repr(constraint)
    assert "threshold=0.5" in repr(constraint)
    assert kind.__name__ in repr(constraint)
    assert clone(constraint).set_params(threshold=0.1).threshold == 0.1
    assert repr(pickle.loads(pickle.dumps(constraint))) == repr(constraint)


@both
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "wavelet"),
        ("kernel", 0),
        ("kernel", 1.5),
        ("threshold", -0.1),
        ("threshold", np.nan),
        ("threshold", "small"),
        ("threshold", None),
        ("relative", 0.5),
        ("relative", "yes"),
    ],
)
def test_parameters_out_of_range_are_named(kind, name, value):
    with pytest.raises(ValueError, match=f"{name}.*(must|unknown)"):
        kind(**{name: value}).validate()


@pytest.mark.parametrize("slack", [-1e-3, 1.1, None, "none"])
def test_slack_is_a_share(slack):
    with pytest.raises(ValueError, match="slack"):
        FineConstraint(slack=slack).validate()


@pytest.mark.parametrize("threshold", [[0.1, -0.1], [np.nan, 0.1], [[0.1, 0.2]], ["a", "b"], []])
def test_array_thresholds_are_checked(threshold):
    with pytest.raises(ValueError, match="threshold"):
        project_targets(Y, sensitive_features=X, constraint=FineConstraint(threshold, kernel=2))


def test_a_coarse_constraint_takes_no_array():
    with pytest.raises(ValueError, match="threshold"):
        CoarseConstraint([0.1, 0.2]).validate()


# What is given in the place of a constraint, and what an error tells to write.
IN_PLACE = [
    ("coarse", "CoarseConstraint(0.2)"),
    ("Coarse", "CoarseConstraint(0.2)"),
    ("coars", "CoarseConstraint(0.2)"),
    ("l1", "CoarseConstraint(0.2)"),
    ("fine", "FineConstraint(0.2)"),
    ("didi", "DidiConstraint(0.2)"),
    ("groups", "DidiConstraint(0.2)"),
    ("sd", "DependenceConstraint(0.2)"),
    ("spline", "DependenceConstraint(0.2)"),
    (0.3, "DependenceConstraint(0.3)"),
    (1, "DependenceConstraint(1)"),
    (True, "DependenceConstraint()"),
    (CoarseConstraint, "CoarseConstraint()"),
    (PolynomialKernel, "DependenceConstraint()"),
    (PolynomialKernel(2), "DependenceConstraint(kernel=PolynomialKernel(degree=2))"),
    ({"threshold": 0.1}, "DependenceConstraint(threshold=0.1)"),
    ([], "ConstraintList("),
    ([("age", CoarseConstraint())], "ConstraintList("),
    (["coarse"], "CoarseConstraint(0.2)"),
    (object(), "DependenceConstraint()"),
]
# Keywords that moved to an object, and what an error tells to write.
MOVED = [
    ({"threshold": 0.1}, "constraint=DependenceConstraint(0.1)"),
    ({"degree": 3}, "constraint=CoarseConstraint(kernel=3)"),
    ({"kernel": "spline"}, "constraint=DependenceConstraint(kernel='spline')"),
    ({"norm": "sd"}, "DependenceConstraint() for 'sd'"),
    ({"relative": False}, "constraint=DependenceConstraint(relative=False)"),
    ({"slack": 0.1}, "constraint=FineConstraint(slack=0.1)"),
    ({"subset": 1}, "constraint=DependenceConstraint(subset=1, relative=False)"),
    ({"gap": 0.1}, "solver=Solver(gap=0.1)"),
    ({"time_limit": 3}, "solver=Solver(time_limit=3)"),
    ({"solver_params": None}, "solver=Solver(params=None)"),
]


@pytest.mark.parametrize(("given", "written"), IN_PLACE, ids=range(20))
def test_what_is_given_in_the_place_of_a_constraint_is_refused_with_the_object(given, written):
    for call, name in (
        (lambda: project_targets(Y, sensitive_features=X, constraint=given), "project_targets"),
        (lambda: ProjectedRegressor(None, given).fit(X, Y, sensitive_features=X), "ProjectedR"),
        (lambda: DualTargetsRegressor(None, given).fit(X, Y, sensitive_features=X), "DualTargetsR"),
    ):
        with pytest.raises(ValueError, match=f"constraint of {name}") as error:
            call()
        assert f"Write constraint={written}" in str(error.value)


@pytest.mark.parametrize(("given", "written"), MOVED, ids=str)
def test_parameters_of_the_objects_are_refused_with_what_to_write(given, written):
    name = next(iter(given))
    for call in (
        lambda: project_targets(Y, sensitive_features=X, **given),
        lambda: ProjectedRegressor(**given),
        lambda: MovingTargetsClassifier(**given),
    ):
        with pytest.raises(TypeError, match=f"takes no '{name}'") as error:
            call()
        assert written in str(error.value)


def test_the_default_is_the_deviation_that_a_spline_explains():
    assert isinstance(check_constraint(None), DependenceConstraint)
    for model in (ProjectedRegressor(), ProjectedRegressor(None, DependenceConstraint())):
        fitted = model.fit(X[:, None], Y, sensitive_features=X)
        assert isinstance(fitted.constraint_, DependenceConstraint)
        share = gedi(
            Y, fitted.targets_, sensitive_features=X, norm="sd", kernel="spline", relative=True
        )
        assert share == pytest.approx(0.2)


def test_parameters_of_nothing_cannot_be_set():
    with pytest.raises(
        ValueError, match=r"constraint=DependenceConstraint.. to ProjectedRegressor"
    ):
        ProjectedRegressor().set_params(constraint__threshold=0.1)
    with pytest.raises(ValueError, match=r"kernel=SplineKernel.. to DependenceConstraint"):
        ProjectedRegressor(None, DependenceConstraint()).set_params(constraint__kernel__n_knots=3)
    with pytest.raises(ValueError, match=r"solver=Solver.. to MovingTargetsRegressor"):
        MovingTargetsRegressor().set_params(solver__gap=0.1)
    model = ProjectedRegressor().set_params(
        constraint=DependenceConstraint(kernel=SplineKernel()), constraint__kernel__n_knots=3
    )
    assert model.constraint.kernel.n_knots == 3


def test_a_list_has_a_name_for_each_constraint():
    both = np.c_[X, X**2]
    named = ConstraintList([("age", CoarseConstraint(0.1)), ("income", FineConstraint(0.5))])
    plain = [CoarseConstraint(0.1), FineConstraint(0.5)]
    results = [
        project_targets(Y, sensitive_features=both, constraint=own) for own in (named, plain)
    ]
    assert_array_equal(results[0].targets, results[1].targets)
    model = ProjectedRegressor(None, named).set_params(constraint__age__threshold=0.3)
    assert model.constraint.get_params()["age__threshold"] == 0.3
    frame = pd.DataFrame(both, columns=["income", "age"])
    with pytest.raises(ValueError, match=r"is for .*'age', 'income'.* columns .*'income', 'age'"):
        project_targets(Y, sensitive_features=frame, constraint=named)
    for wrong in ([CoarseConstraint()], [], [("a", 3)], [("a__b", CoarseConstraint())], None):
        with pytest.raises(ValueError, match=r"age|__|constraint"):
            project_targets(Y, sensitive_features=X, constraint=ConstraintList(wrong))


def test_an_integer_kernel_is_the_polynomial_of_that_degree():
    for degree in (1, 3, np.int64(3)):
        named, own = (
            project_targets(
                Y, sensitive_features=X, constraint=CoarseConstraint(0.4, kernel=kernel)
            )
            for kernel in (degree, PolynomialKernel(int(degree)))
        )
        assert_array_equal(named.targets, own.targets)


@both
@pytest.mark.parametrize("weight", [None, W])
@pytest.mark.parametrize("relative", [True, 1, 2, 3])
def test_a_relative_threshold_is_a_share_of_the_indicator_of_the_targets(kind, relative, weight):
    with Projection(
        Y,
        sensitive_features=X,
        constraint=kind(0.3, kernel=2, relative=relative),
        sample_weight=weight,
    ) as projection:
        reference = gedi(Y, sensitive_features=X, kernel=int(relative), sample_weight=weight)
        assert projection.reference_ == pytest.approx(reference, rel=1e-12)
        assert projection.threshold_ == pytest.approx(0.3 * reference, rel=1e-12)
        assert projection.constraint_.relative is False
        assert projection.constraint_.threshold == projection.threshold_


def test_the_reference_keeps_family_and_standardisation():
    x = 30 + 10 * X
    kernel = PolynomialKernel(3, standardize=True)
    with Projection(
        Y, sensitive_features=x, constraint=CoarseConstraint(kernel=kernel)
    ) as projection:
        expected = gedi(Y, sensitive_features=x, kernel=PolynomialKernel(1, standardize=True))
        assert projection.reference_ == pytest.approx(expected)
    with Projection(
        Y, sensitive_features=X, constraint=CoarseConstraint(kernel=FourierKernel(3), relative=2)
    ) as projection:
        expected = gedi(Y, sensitive_features=X, kernel=FourierKernel(2))
        assert projection.reference_ == pytest.approx(expected)


def test_an_absolute_threshold_is_taken_as_it_is():
    with Projection(
        Y, sensitive_features=X, constraint=CoarseConstraint(0.7, relative=False)
    ) as projection:
        assert projection.threshold_ == 0.7
        assert projection.reference_ == 1.0


def test_array_thresholds_are_shares_where_they_are_finite():
    with Projection(
        Y, sensitive_features=X, constraint=FineConstraint([0.5, 0, np.inf], kernel=3)
    ) as projection:
        reference = gedi(Y, sensitive_features=X)
        assert_allclose(projection.threshold_, [0.5 * reference, 0, np.inf], rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [(FourierKernel(2), X), (lambda v: np.c_[v, v**2], X), ("polynomial", np.c_[X, Y])],
    ids=["fourier", "callable", "two attributes"],
)
def test_a_scalar_fine_threshold_needs_the_powers_of_one_attribute(kernel, values):
    with pytest.raises(ValueError, match="Pass an array"):
        project_targets(Y, sensitive_features=values, constraint=FineConstraint(kernel=kernel))


def test_an_array_of_another_length_names_the_columns():
    with pytest.raises(ValueError, match=r"2 entries.*3 columns.*x0\^3"):
        project_targets(Y, sensitive_features=X, constraint=FineConstraint([1.0, 0], kernel=3))


def test_equation_22_and_not_equation_23_of_the_paper():
    # Forbidding coefficients 2 and 3 leaves a line, whatever the columns' correlation.
    z = project_targets(Y, sensitive_features=X, constraint=FineConstraint(kernel=3)).targets
    fit = np.polyfit(X, z, 3)
    assert_allclose(fit[:2], 0, atol=1e-12)
    assert abs(fit[2]) <= 0.2 * gedi(Y, sensitive_features=X) * (1 + 1e-12)


def make_set(shape, seed, r):
    rng = np.random.default_rng(seed)
    if shape == "box":
        return Box(r, 1.0, rng.uniform(0, 2, r), np.zeros(r, dtype=bool))
    kind = L1Ball if shape == "l1" else Ball
    return kind(r, 1.0, rng.uniform(0.1, 2))


SETS = st.builds(
    make_set, st.sampled_from(["box", "l1", "ball"]), st.integers(0, 10_000), st.integers(1, 4)
)


def seen_by(rows, allowed):
    """Return a set of v = rows @ c, for a kernel whose basis is orthonormal as it is."""
    unit = np.eye(len(rows))
    kernel = SimpleNamespace(
        R_=unit, R_inverse=unit, n_columns=len(unit), conversion_is_harmless=False
    )
    return Block(SimpleNamespace(fitted=kernel), allowed, rows, np.linalg.inv(rows))


def vertices(allowed, rng):
    """Return points whose convex hull is the set (for a round one: many of its boundary)."""
    r = allowed.size
    if isinstance(allowed, Box):
        return allowed.half_widths * np.array(list(product([-1, 1], repeat=r)))
    if isinstance(allowed, L1Ball):
        return allowed.radius * np.vstack([np.eye(r), -np.eye(r)])
    points = rng.normal(size=(50, r))
    return allowed.radius * points / np.linalg.norm(points, axis=1, keepdims=True)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SETS, st.integers(0, 10_000))
def test_the_support_function_is_the_largest_product_with_a_vertex(allowed, seed):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=allowed.size)
    corners = vertices(allowed, rng)
    if isinstance(allowed, Ball):
        assert (corners @ direction).max() <= allowed.support(direction) * (1 + 1e-12)
        corners = allowed.radius * direction[None] / np.linalg.norm(direction)
    assert allowed.support(direction) == pytest.approx((corners @ direction).max())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SETS, st.integers(0, 10_000))
def test_violation_is_zero_inside_and_the_excess_outside(allowed, seed):
    rng = np.random.default_rng(seed)
    corners = vertices(allowed, rng)
    inside = rng.dirichlet(np.ones(len(corners))) @ corners
    assert allowed.violation(inside) <= 1e-15
    assert allowed.contains((0.999 * inside)[:, None])[0]
    corner = corners[0]
    outward = np.sign(corner) if not isinstance(allowed, Ball) else corner / allowed.radius
    outside = corner + 0.5 * outward
    assert allowed.violation(outside) >= 0.5 - 1e-12
    assert not allowed.contains(outside[:, None])[0]
    # Linear rows hold the set, and none but it once they touch it where a point is outside.
    assert fits(allowed, inside)
    assert all(fits(allowed.touched(outside), own) for own in corners[:5] * (1 - 1e-9))
    assert not fits(allowed.touched(outside), outside)
    if allowed.is_polyhedron:
        return
    # A polyhedron inside holds a point but for the margin, and nothing that is outside.
    margin = rng.uniform(0, 0.2) * allowed.radius
    held = inside * (1 - 1e-9)
    part = allowed.inside(held, margin)
    assert part.is_polyhedron
    size = np.linalg.norm(held)
    assert fits(part, held * min(1, (allowed.radius - margin) / size) * (1 - 1e-9))
    for direction in rng.normal(size=(5, allowed.size)):
        farthest = next(end for end in np.linspace(1.2, 0, 25) if fits(part, end * direction))
        assert allowed.violation(farthest * direction) <= 1e-9


def fits(allowed, v):
    """Tell whether a linear model of the set has a solution at v."""
    rows = allowed.linear_rows()
    size = rows.auxiliary.shape[1]
    if not size:
        return bool(((rows.lower <= v) & (v <= rows.upper)).all())
    found = linprog(
        np.zeros(size),
        A_ub=np.vstack([rows.auxiliary, -rows.auxiliary, rows.sums]),
        b_ub=np.r_[rows.upper - v, v - rows.lower, rows.most] + 1e-12,
        bounds=(0, 1),
    )
    return found.status == 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(SETS, st.integers(0, 10_000), st.booleans())
def test_the_nearest_point_meets_the_variational_inequality(allowed, seed, in_a_metric):
    # No point of the set makes an acute angle with the way to the nearest one: it is nearest.
    rng = np.random.default_rng(seed)
    r = allowed.size
    rows = np.eye(r) if isinstance(allowed, Ball) else rng.normal(size=(r, r))
    own = seen_by(rows, allowed)
    root = np.linalg.cholesky(np.cov(rng.normal(size=(r, 3 * r + 5))).reshape(r, r))
    point = 5 * rng.normal(size=r)
    u, v = own.nearest(point, root if in_a_metric else None)
    metric = np.linalg.inv(root @ root.T) if in_a_metric else np.eye(r)
    if v is None:
        assert allowed.violation(rows @ point) == 0
        assert_array_equal(u, point)
        return
    assert_allclose(rows @ u, v, atol=1e-9)
    assert allowed.violation(rows @ u) <= 1e-9
    pull = metric @ (point - u)
    size = np.linalg.norm(metric, 2) * np.linalg.norm(point) * (1 + np.linalg.norm(u))
    # max over the set of pull·(w − u) is 0, by the support function in v.
    assert allowed.support(own.inverse.T @ pull) - pull @ u <= 1e-8 * size


@settings(max_examples=60, deadline=None, derandomize=True)
@given(SETS, st.integers(0, 10_000))
def test_the_derivative_is_that_of_the_nearest_point(allowed, seed):
    rng = np.random.default_rng(seed)
    r = allowed.size
    rows = np.eye(r) if isinstance(allowed, Ball) else rng.normal(size=(r, r))
    own = seen_by(rows, allowed)
    point, step = 5 * rng.normal(size=r), 1e-6 * rng.normal(size=r)
    u, v = own.nearest(point)
    after, _ = own.nearest(point + step)
    before, _ = own.nearest(point - step)
    if np.linalg.norm(after - 2 * u + before) > 1e-10:
        return  # a kink lies between
    assert_allclose(own.derivative(point, v) @ step, (after - before) / 2, atol=1e-10)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(SETS, min_size=2, max_size=3),
    st.integers(0, 10_000),
    st.sampled_from(["apart", "correlated", "the same"]),
)
@example([make_set("box", 0, r) for r in (3, 1, 4)], 114, "the same")  # a valley of the dual
def test_the_nearest_point_of_several_sets(sets, seed, spans):
    # Optimal: u is allowed, and every multiplier supports its set there.
    rng = np.random.default_rng(seed)
    sizes = [own.size for own in sets]
    seen, parts = [], []
    for own in sets:
        r = own.size
        rows = np.eye(r) if isinstance(own, Ball) else rng.normal(size=(r, r))
        seen.append(seen_by(rows, own))
        dimension = {"apart": sum(sizes), "correlated": sum(sizes), "the same": max(sizes)}[spans]
        shared = rng.normal(size=(r, dimension))
        if spans == "correlated" and parts:
            shared = 0.1 * shared
            shared[: len(parts[0])] += parts[0][:r]
        parts.append(np.linalg.qr(shared.T)[0].T)
    stacked = np.vstack(parts)
    x = 3 * rng.normal(size=stacked.shape[1])
    mu = joint_multipliers(seen, stacked @ x, stacked @ stacked.T).mu
    u = stacked @ (x + stacked.T @ mu)
    ends = np.cumsum(sizes)
    scale = 1 + np.linalg.norm(x) + np.linalg.norm(mu)
    for own, one, end in zip(sets, seen, ends, strict=True):
        rows = slice(end - own.size, end)
        assert own.violation(one.operator @ u[rows]) <= 1e-8 * scale
        assert one.support(mu[rows]) + mu[rows] @ u[rows] <= 1e-8 * scale**2


@pytest.mark.parametrize("is_class", [False, True])
def test_a_coarse_set_is_the_ball_of_raw_coefficients(is_class):
    x = 30 + 10 * X
    design = fit_kernel(3, x[:, None])
    constraint = CoarseConstraint(0.5, kernel=3, relative=False)
    seen = constraint.block(design, unit=1.0, is_class=is_class)
    a = gedi_coefficients(Y, sensitive_features=x, kernel=3)
    v = seen.to_v @ design.standardized(Y)
    assert_allclose(v, a, rtol=1e-8)
    assert seen.allowed.violation(v) == pytest.approx(np.abs(a).sum() - 0.5)


def test_an_infinite_threshold_bounds_nothing():
    design = fit_kernel(3, X[:, None])
    for constraint in (
        CoarseConstraint(np.inf),
        FineConstraint([np.inf] * 3),
    ):
        seen = constraint.block(design, unit=1.0, is_class=True)
        allowed = seen.allowed
        assert not allowed.bounded.any()
        assert allowed.take(allowed.bounded).size == 0
        assert allowed.violation(seen.to_v @ design.standardized(Y)) == 0


@pytest.mark.parametrize("move", [lambda x: x, lambda x: 100 * x + 2000, lambda x: 5 - x / 7])
def test_a_fine_set_for_integers_does_not_depend_on_unit_and_origin(move):
    # The bound is in outcome for each deviation: |s₁| ≤ q·sd(x), |s_j| ≤ slack·q·sd(x).
    x = move(X)
    design = fit_kernel(3, x[:, None])
    q = 0.2 * gedi(Y, sensitive_features=x)
    constraint = FineConstraint(q, kernel=3, relative=False, slack=0.01)
    seen = constraint.block(design, unit=1.0, is_class=True)
    slope = 0.2 * gedi(Y, sensitive_features=X) * X.std()
    assert_allclose(seen.allowed.half_widths, [slope, 0.01 * slope, 0.01 * slope], rtol=1e-10)
    s = np.abs(seen.to_v @ design.standardized(Y))
    expected = gedi_coefficients(
        Y, sensitive_features=X, kernel=PolynomialKernel(3, standardize=True)
    )
    assert_allclose(s, np.abs(expected), rtol=1e-8)


def test_forbidden_trailing_degrees_are_the_same_set_in_both_bases():
    x = 30 + 10 * X
    line = 3 + 0.1 * x
    standardized = gedi_coefficients(
        line, sensitive_features=x, kernel=PolynomialKernel(3, standardize=True)
    )
    raw = gedi_coefficients(line, sensitive_features=x, kernel=3)
    assert_allclose(standardized[1:], 0, atol=1e-12)
    assert_allclose(raw[1:], 0, atol=1e-12)
    assert raw[0] * x.std() == pytest.approx(standardized[0], rel=1e-9)


def test_where_nothing_is_allowed_the_slack_is_a_share_of_the_reference():
    design = fit_kernel(2, X[:, None])
    constraint = FineConstraint(0.0, kernel=2, relative=False, slack=0.01)
    allowed = constraint.block(design, unit=3.0, is_class=True).allowed
    assert_allclose(allowed.half_widths, [0.03, 0.03])
    assert allowed.forbidden.all()
    exact = constraint.block(design, unit=3.0, is_class=False).allowed
    assert_allclose(exact.half_widths, 0)


@both
def test_the_given_object_is_left_alone(kind):
    constraint = kind(0.3, kernel=PolynomialKernel(2))
    before = repr(constraint), constraint.kernel
    with Projection(Y, sensitive_features=X, constraint=constraint) as projection:
        projection.solve()
        assert projection.constraint_ is not constraint
    assert (repr(constraint), constraint.kernel) == before
    assert not hasattr(constraint.kernel, "n_features_in_")


def test_errors_name_the_parameter_of_what_was_called():
    x = np.linspace(-1, 1, 9)
    for constraint in (CoarseConstraint([0.1]), DidiConstraint([0.1])):
        with pytest.raises(ValueError, match=r"threshold of .* must be one number.*FineConstraint"):
            project_targets(x, sensitive_features=x, constraint=constraint)
    with pytest.raises(ValueError, match=r"'gap' parameter of .* must"):
        project_targets(x, sensitive_features=x, solver=Solver(gap=-1.0))
    with pytest.raises(ValueError, match=r"solver must be one of .* got 'cplex'"):
        project_targets(x, sensitive_features=x, solver="cplex")
    with pytest.raises(ValueError, match="mixes text with other labels"):
        project_targets(
            [1, "a", 1, "a"], sensitive_features=[1, 2, 3, 4], constraint=CoarseConstraint()
        )
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        project_targets(x, sensitive_features=x, loss="hamming", constraint=CoarseConstraint())


@pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint])
def test_a_threshold_that_no_float_holds_is_refused(constraint):
    x = np.linspace(-1, 1, 9)
    for threshold in (10**400, [10**400]) if constraint is FineConstraint else (10**400,):
        with pytest.raises(ValueError, match=r"threshold .* no float can hold"):
            project_targets(x, sensitive_features=x, constraint=constraint(threshold))
