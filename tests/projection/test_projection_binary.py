"""Projection of two classes: proven optima, whatever the rows are called or weigh."""

import re
import time
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint, milp

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    FineConstraint,
    PolynomialKernel,
    Solver,
    project_targets,
)
from gedi_sklearn._geometry._sets import Ball, Box, L1Ball
from gedi_sklearn.constraints import Product
from gedi_sklearn.exceptions import InfeasibleProjectionError
from gedi_sklearn.metrics import gedi_coefficients
from gedi_sklearn.projection import Projection
from gedi_sklearn.projection._relaxation import _Sifting, solve_relaxation
from gedi_sklearn.projection._solver import Deadline
from tests.oracles import full_binary, with_slack

pytestmark = [
    # Bounds of every kind on purpose, whatever they leave.
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning"),
    # Raw units on purpose: binary targets must not depend on them.
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.AttributeScaleWarning"),
    # The notice of the licence that comes with pip, once a process: tests may use that licence.
    pytest.mark.filterwarnings("ignore:Gurobi runs on the size-limited:UserWarning"),
    # A dozen rows often have nothing better than a single row in a class.
    pytest.mark.filterwarnings("ignore:the projection leaves a single row:UserWarning"),
]
every_solver = pytest.mark.parametrize("solver", ["highs", "gurobi"])
every_constraint = pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint])


def row_costs(y, p, share, loss):
    """Return the loss of z = 1 and of z = 0 in every row."""

    def one(target):
        if loss == "hamming":
            return 1 - target, target
        clipped = np.clip(target, 1e-3, 1 - 1e-3)
        return -np.log(clipped), -np.log(1 - clipped)

    if p is None:
        return one(y)
    (one_p, zero_p), (one_y, zero_y) = one(p), one(y)
    return one_p + share * one_y, zero_p + share * zero_y


def effects_of(columns, w):
    """Return P, shape (k, n): the coefficients of z on the columns are P z."""
    centred = columns - np.average(columns, axis=0, weights=w)
    root = np.sqrt(w)
    P = np.linalg.pinv(root[:, None] * centred) * root
    return P - np.outer(P.sum(axis=1), w / w.sum())


class Reference:
    """A problem in the paper's own words: effects from plain columns, one decision a row."""

    def __init__(self, problem):
        w = problem["sample_weight"]
        self.w = np.ones(len(problem["y"])) if w is None else w
        self.on = self.w > 0
        self.w = self.w[self.on]
        self.y = problem["y"][self.on].astype(float)
        p = problem["y_pred"]
        self.p = None if p is None else p[self.on].astype(float)
        self.x = problem["sensitive_features"][self.on]
        self.share, self.loss = problem["target_weight"], problem["loss"]
        degree, q = problem["degree"], problem["threshold"]
        powers = np.arange(1, degree + 1)
        scalar_fine = problem["constraint"] == "fine" and np.ndim(q) == 0
        x = self.x
        if scalar_fine:
            mean = np.average(x, weights=self.w)
            deviation = np.sqrt(np.average((x - mean) ** 2, weights=self.w))
            x = (x - mean) / deviation
            q *= deviation
        self.effects = effects_of(x[:, None] ** powers, self.w)
        self.radius = q if problem["constraint"] == "coarse" else None
        self.bounds = None
        if scalar_fine:
            self.bounds = np.r_[q, np.full(degree - 1, problem["slack"] * q)]
        elif self.radius is None:
            self.bounds = np.asarray(q)
        one, zero = row_costs(self.y, self.p, self.share, self.loss)
        self.one, self.zero = self.w * one, self.w * zero
        self.total = np.abs(self.one - self.zero).sum()

    def excess(self, v):
        """Return by how much coefficients (..., k) leave the set; negative inside."""
        if self.bounds is None:
            return np.abs(v).sum(axis=-1) - self.radius
        return (np.abs(v) - self.bounds).max(axis=-1)

    def enumerate(self):
        """Return the least loss over all targets with two classes (None: there are none).

        Also tell whether no targets sit on the edge of the set, where rounding decides.
        """
        n = len(self.y)
        z = (np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1
        excess = self.excess(z @ self.effects.T)
        unit = self.radius if self.bounds is None else self.bounds.min()
        clear = bool(np.abs(excess).min() > 1e-6 * unit)
        allowed = z[excess <= 0]
        if not len(allowed):
            return None, clear
        return (allowed @ (self.one - self.zero)).min() + self.zero.sum(), clear

    def solve_full(self, factor, solver):
        """Return the loss of the full model with its bounds times a factor."""
        bounded = self.bounds is not None
        finite = np.isfinite(self.bounds) if bounded else np.ones(len(self.effects), bool)
        found = full_binary(
            self.y,
            self.p,
            self.share,
            loss=self.loss,
            weight=self.w,
            effects=self.effects[finite],
            radius=None if bounded else self.radius * factor,
            bounds=self.bounds[finite] * factor if bounded else None,
            solver=solver,
            time_limit=20.0,
        )
        return None if found is None else found[1]


@st.composite
def problems(draw, max_rows=11, max_degree=3):
    degree = draw(st.integers(1, max_degree))
    n = draw(st.integers(degree + 3, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Repeated values: interchangeable rows.
    x = rng.integers(0, draw(st.integers(degree + 1, n)), n).astype(float)
    x[: degree + 1] = np.arange(degree + 1)
    x = draw(st.sampled_from([1.0, 0.1])) * x + draw(st.sampled_from([0.0, -1.0, 3.0]))
    y = rng.integers(0, 2, n)
    y[-2:] = [0, 1]
    loss = draw(st.sampled_from(["hamming", "log_loss"]))
    kinds = ["none", "scores"] + ["labels"] * (loss == "hamming")
    kind = draw(st.sampled_from(kinds))
    p = {"none": None, "labels": rng.integers(0, 2, n), "scores": rng.random(n).round(2)}[kind]
    weights = draw(st.sampled_from(["none", "few", "any", "zeros"]))
    w = None
    if weights != "none":
        w = rng.uniform(0.5, 2, n) if weights == "any" else rng.choice([0.5, 1.0, 2.0], n)
    if weights == "zeros":
        w[degree + 1 : -2] *= rng.integers(0, 2, n - degree - 3)
    constraint = draw(st.sampled_from(["coarse", "fine", "array"]))
    threshold = draw(st.floats(0.01, 1.5))
    if constraint == "array":
        threshold = rng.uniform(0.05, 2, degree)
    return {
        "y": y,
        "y_pred": p,
        "sensitive_features": x,
        "degree": degree,
        "constraint": "coarse" if constraint == "coarse" else "fine",
        "threshold": threshold,
        "relative": False,
        "slack": draw(st.floats(0.01, 1)),
        "sample_weight": w,
        "target_weight": draw(st.sampled_from([0.0, 0.3, 1.0])),
        "loss": loss,
        "gap": 0.0,
        "solver": draw(st.sampled_from(["highs", "gurobi"])),
    }


def assert_proves(result, best, reference, problem):
    """Check a result, or None where there is none, against the true optimum."""
    if best is None or result is None:
        assert result is None
        assert best is None
        return
    assert result.objective == pytest.approx(best, abs=1e-7 * reference.total)
    assert result.bound <= best + 1e-9 * reference.total
    assert best <= result.objective + 1e-9 * reference.total
    assert result.gap <= 1e-9
    assert result.status == "optimal"
    # What is returned, judged by the public indicator.
    z = result.targets[reference.on]
    assert z @ reference.one + (1 - z) @ reference.zero == pytest.approx(
        result.objective, abs=1e-9 * reference.total
    )
    assert 1 <= z.sum() <= len(z) - 1
    assert_array_equal(result.targets[~reference.on], problem["y"][~reference.on])
    standardize = problem["constraint"] == "fine" and np.ndim(problem["threshold"]) == 0
    v = gedi_coefficients(
        result.targets,
        sensitive_features=problem["sensitive_features"],
        kernel=PolynomialKernel(problem["degree"], standardize=standardize),
        sample_weight=problem["sample_weight"],
    )
    assert reference.excess(v) <= 1e-8
    assert result.satisfied
    assert result.violation == 0


def project_or_none(problem):
    names = ("y", "y_pred", "sensitive_features", "loss", "target_weight", "sample_weight")
    kind = FineConstraint if problem["constraint"] == "fine" else CoarseConstraint
    given = problem["threshold"], problem["degree"]
    constraint = with_slack(
        kind, problem["slack"], given[0], kernel=given[1], relative=problem["relative"]
    )
    try:
        return project_targets(
            **{name: problem[name] for name in names},
            constraint=constraint,
            solver=Solver(problem["solver"], gap=problem["gap"]),
        )
    except InfeasibleProjectionError:
        return None


@settings(max_examples=40, deadline=None, derandomize=True)
@given(problems())
def test_optimum_is_that_of_an_enumeration(problem):
    reference = Reference(problem)
    best, clear = reference.enumerate()
    assume(clear)
    assert_proves(project_or_none(problem), best, reference, problem)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(problems(max_rows=40, max_degree=2))
def test_optimum_is_that_of_the_full_model(problem):
    problem |= {"slack": max(problem["slack"], 0.1)}
    reference = Reference(problem)
    oracle = {"highs": "gurobi", "gurobi": "highs"}[problem["solver"]]
    try:
        near, far = (reference.solve_full(factor, oracle) for factor in (1 - 1e-6, 1 + 1e-6))
    except TimeoutError:
        assume(False)
    # No targets sit on the edge of the set, where rounding decides.
    assume((near is None) == (far is None))
    assume(near is None or abs(near - far) <= 1e-9 * reference.total)
    assert_proves(project_or_none(problem), near, reference, problem)


def many_groups(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    p = np.clip(0.5 + 0.15 * x + 0.2 * rng.normal(size=n), 0.001, 0.999)
    return x, (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("solver", ["highs", pytest.param("gurobi", marks=pytest.mark.slow)])
@every_constraint
@pytest.mark.parametrize("loss", ["hamming", "log_loss"])
def test_many_groups_reach_the_gap_with_a_true_bound(solver, constraint, loss):
    x, y, p = many_groups()
    gap = 2e-4
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        loss=loss,
        constraint=with_slack(constraint, 0.05, kernel=3),
        solver=Solver(solver, gap=gap),
    )
    one, zero = row_costs(y.astype(float), p, 1.0, loss)
    total = np.abs(one - zero).sum()
    assert result.n_groups > 1500
    assert result.n_variables <= 2000
    assert result.status in ("optimal", "gap")
    assert result.gap == pytest.approx((result.objective - result.bound) / total, abs=1e-12)
    assert result.gap <= gap
    z = result.targets
    assert z @ one + (1 - z) @ zero == pytest.approx(result.objective, rel=1e-12)

    # The full model, one variable a row: its targets and its bound, for what time it gets.
    standardized = (x - x.mean()) / x.std()
    columns = x if constraint is CoarseConstraint else standardized
    effects = effects_of(columns[:, None] ** np.arange(1, 4), np.ones(2000))
    if constraint is CoarseConstraint:
        matrix = np.zeros((4, 2006))
        matrix[:3] = np.hstack([effects, -np.eye(3), np.eye(3)])
        matrix[3, 2000:] = 1
        limits = np.r_[np.zeros(3), -np.inf], np.r_[np.zeros(3), result.threshold]
    else:
        matrix, bound = effects, result.threshold * x.std() * np.array([1, 0.05, 0.05])
        limits = -bound, bound
    scale = np.abs(matrix).max(axis=1)
    extra = matrix.shape[1] - 2000
    full = milp(
        np.r_[one - zero, np.zeros(extra)],
        integrality=np.r_[np.ones(2000), np.zeros(extra)],
        bounds=Bounds(0, np.r_[np.ones(2000), np.full(extra, np.inf)]),
        constraints=LinearConstraint(matrix / scale[:, None], limits[0] / scale, limits[1] / scale),
        options={"mip_rel_gap": 1e-4, "time_limit": 1.0},
    )
    if full.x is not None:
        assert result.bound <= full.fun + zero.sum() + 1e-7 * total
    assert result.objective >= full.mip_dual_bound + zero.sum() - 1e-7 * total


@every_constraint
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bound_is_the_relaxation_of_all_rows(constraint, weighted):
    # More groups than one linear program takes at once.
    n, degree = 7000, 3
    x, y, p = many_groups(n)
    w = np.random.default_rng(1).uniform(0.5, 2, n) if weighted else np.ones(n)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        sample_weight=w,
        constraint=with_slack(constraint, 0.05, kernel=degree),
        solver=Solver(gap=1e-4),
    )
    assert result.satisfied
    assert result.gap <= 1e-4
    one, zero = row_costs(y.astype(float), p, 1.0, "hamming")
    deviation = np.sqrt(np.average((x - np.average(x, weights=w)) ** 2, weights=w))
    columns = x if constraint is CoarseConstraint else (x - np.average(x, weights=w)) / deviation
    effects = effects_of(columns[:, None] ** np.arange(1, degree + 1), w)
    if constraint is CoarseConstraint:
        matrix = np.block(
            [
                [effects, -np.eye(degree), np.eye(degree)],
                [np.zeros(n), np.ones(2 * degree)],
            ]
        )
        low = np.r_[np.zeros(degree), -np.inf]
        high = np.r_[np.zeros(degree), result.threshold]
    else:
        matrix, high = effects, result.threshold * deviation * np.array([1, 0.05, 0.05])
        low = -high
    scale, extra = np.abs(matrix).max(axis=1), matrix.shape[1] - n
    relaxation = milp(
        np.r_[w * (one - zero), np.zeros(extra)],
        bounds=Bounds(0, np.r_[np.ones(n), np.full(extra, np.inf)]),
        constraints=LinearConstraint(matrix / scale[:, None], low / scale, high / scale),
    )
    least, total = relaxation.fun + w @ zero, w @ np.abs(one - zero)
    assert result.objective >= least - 1e-9 * total
    assert result.bound == pytest.approx(least, abs=2e-5 * total)
    assert result.bound >= least - 1e-7 * total


def test_multipliers_prove_a_bound_by_themselves():
    # max over λ of Σ min(0, c_i − P_i'λ) − q‖λ‖∞ is the bound of the linear relaxation.
    x, y, p = many_groups(150)
    result = project_targets(y, p, sensitive_features=x, constraint=CoarseConstraint(kernel=3))
    one, zero = row_costs(y.astype(float), p, 1.0, "hamming")
    effects = effects_of(x[:, None] ** np.arange(1, 4), np.ones(150))
    reduced = one - zero - effects.T @ result.multipliers
    dual = (
        np.minimum(reduced, 0).sum()
        - result.threshold * np.abs(result.multipliers).max()
        + zero.sum()
    )
    assert dual <= result.bound + 1e-9
    # Rounding three fractional rows costs little.
    assert dual == pytest.approx(result.objective, rel=1e-2)


@every_constraint
@every_solver
def test_gap_and_targets_do_not_change_when_the_classes_are_swapped(constraint, solver):
    x, y, p = many_groups(400)
    options = {"sensitive_features": x, "constraint": with_slack(constraint, 0.1, kernel=2)}
    options["solver"] = Solver(solver, gap=1e-3)
    one = project_targets(y, p, **options)
    other = project_targets(1 - y, 1 - p, **options)
    assert other.objective == pytest.approx(one.objective, abs=1e-3 * 400)
    assert one.gap <= 1e-3
    assert other.gap <= 1e-3
    exact = [
        project_targets(
            a,
            b,
            sensitive_features=x,
            constraint=constraint(),
            solver=Solver(solver, gap=0.0),
        )
        for a, b in ((y, p), (1 - y, 1 - p))
    ]
    assert exact[1].objective == pytest.approx(exact[0].objective, rel=1e-9)
    assert exact[1].gap == pytest.approx(exact[0].gap, abs=1e-9)
    assert_array_equal(exact[1].targets, 1 - exact[0].targets)


@every_constraint
@every_solver
@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_scaling_all_weights_changes_nothing(constraint, solver, factor):
    rng = np.random.default_rng(1)
    x = rng.integers(20, 60, 60).astype(float)
    y, p, w = rng.integers(0, 2, 60), rng.random(60), rng.uniform(0.5, 2, 60)
    options = {"sensitive_features": x, "constraint": constraint(), "solver": solver}
    one = project_targets(y, p, sample_weight=w, **options)
    other = project_targets(y, p, sample_weight=factor * w, **options)
    assert_array_equal(other.targets, one.targets)
    assert other.gap == pytest.approx(one.gap, abs=1e-9)
    assert other.objective == pytest.approx(factor * one.objective, rel=1e-9)
    assert other.bound == pytest.approx(factor * one.bound, rel=1e-6)


@every_constraint
def test_a_row_of_zero_weight_is_absent_and_keeps_its_target(constraint):
    rng = np.random.default_rng(2)
    x, p = rng.normal(size=50), rng.random(50)
    y, w = rng.integers(0, 2, 50), rng.uniform(0.5, 2, 50)
    w[:10], x[0] = 0.0, 1e6
    options = {"constraint": with_slack(constraint, 0.2, kernel=2)}
    full = project_targets(y, p, sensitive_features=x, sample_weight=w, **options)
    kept = project_targets(
        y[10:], p[10:], sensitive_features=x[10:], sample_weight=w[10:], **options
    )
    assert_array_equal(full.targets[:10], y[:10])
    assert full.objective == pytest.approx(kept.objective, rel=1e-4)
    assert full.threshold == pytest.approx(kept.threshold)


@every_solver
def test_ties_are_broken_towards_the_original_targets(solver):
    # Labels and weight 1: a row with p ≠ y costs nothing either way.
    rng = np.random.default_rng(3)
    x = rng.normal(size=60)
    y = (x + rng.normal(size=60) > 0).astype(int)
    p = rng.integers(0, 2, 60)
    free = project_targets(
        y, p, sensitive_features=x, solver=solver, constraint=CoarseConstraint(np.inf)
    )
    assert_array_equal(free.targets, y)
    tight = project_targets(
        y, p, sensitive_features=x, solver=solver, constraint=CoarseConstraint(0.2)
    )
    loss = ((tight.targets != y) + (tight.targets != p)).sum()
    assert tight.objective == pytest.approx(loss)
    # Of all optimal targets, none is nearer to the original ones.
    n = 60
    effects = effects_of(x[:, None], np.ones(n))
    nearer = milp(
        1 - 2 * y,
        integrality=np.ones(n),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(
                effects / np.abs(effects).max(),
                *(np.array([-1, 1]) * tight.threshold / np.abs(effects).max()),
            ),
            LinearConstraint((2 - 2 * p - 2 * y)[None], ub=loss - (p + y).sum() + 1e-6),
        ],
    )
    assert (tight.targets != y).sum() <= nearer.fun + y.sum() + 1e-6


@every_solver
def test_ties_cost_nothing_of_the_objective(solver):
    # The preference among ties must stay below every real difference, however small.
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = 9
        x = rng.integers(0, 6, n).astype(float)
        x[:3] = [0, 1, 2]
        y, p = rng.integers(0, 2, n), rng.integers(0, 2, n)
        y[:2] = [0, 1]
        problem = {
            "y": y,
            "y_pred": p,
            "sensitive_features": x,
            "sample_weight": rng.uniform(0.8, 1.2, n),
            "target_weight": 1.0,
            "loss": "hamming",
            "constraint": "coarse",
            "degree": 2,
            "threshold": rng.uniform(0.05, 0.3),
            "relative": False,
            "slack": 0.0,
            "solver": solver,
            "gap": 0.0,
        }
        reference = Reference(problem)
        best, clear = reference.enumerate()
        if not clear:
            continue
        result = project_or_none(problem)
        assert (result is None) == (best is None)
        if best is not None:
            assert result.objective == pytest.approx(best, abs=1e-7 * reference.total)


@every_solver
def test_which_rows_of_a_group_flip_is_decided_by_confidence(solver):
    # Ten equal rows in each of two groups; log loss against the targets alone would tie them.
    x = np.repeat([0.0, 1.0], 10)
    y = np.repeat([0, 1], 10)
    rng = np.random.default_rng(4)
    p = np.r_[
        rng.permutation(np.linspace(0.05, 0.45, 10)), rng.permutation(np.linspace(0.55, 0.95, 10))
    ]
    result = project_targets(
        y, p, sensitive_features=x, solver=solver, constraint=CoarseConstraint(0.5)
    )
    flipped = result.targets != y
    assert 0 < flipped.sum() < 20
    # The least confident rows flip: whatever flips is nearer to 1/2 than what stays.
    distance = np.abs(p - 0.5)
    for group in (x == 0, x == 1):
        if flipped[group].any() and not flipped[group].all():
            assert distance[group & flipped].max() < distance[group & ~flipped].min()


@every_constraint
def test_permuting_the_rows_permutes_the_targets(constraint):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 8, 80).astype(float)
    y, p = rng.integers(0, 2, 80), rng.random(80)
    order = rng.permutation(80)
    options = {"constraint": constraint(), "solver": Solver(gap=0.0)}
    first = project_targets(y, p, sensitive_features=x, **options)
    second = project_targets(y[order], p[order], sensitive_features=x[order], **options)
    assert_array_equal(second.targets, first.targets[order])


def test_which_equal_rows_flip_is_drawn_from_the_seed_and_not_from_their_order():
    x, y = np.repeat([0.0, 1.0], 50), np.repeat([0, 1], 50)
    flips = [
        project_targets(
            y, sensitive_features=x, random_state=seed, constraint=CoarseConstraint(0.5)
        ).targets
        != y
        for seed in (None, None, 0, 1, 2)
    ]
    assert_array_equal(flips[0], flips[1])
    assert len({f.tobytes() for f in flips[2:]}) == 3
    # No order of rows: the first and the second half of a group flip about alike.
    for group in (slice(0, 50), slice(50, 100)):
        rows = np.flatnonzero(flips[0][group])
        if 5 < len(rows) < 45:
            assert rows.min() < 25 <= rows.max()


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["denied", "granted"]),
        np.array(["denied", "granted"], dtype=object),
        np.array([-1, 1]),
        np.array([3, 7]),
        np.array([False, True]),
        np.array([0.0, 1.0]),
        np.array([-0.5, 2.5]),
    ],
    ids=["text", "objects", "signs", "integers", "booleans", "floats", "fractions"],
)
@pytest.mark.parametrize("scores", [False, True])
def test_labels_of_any_type_come_back(labels, scores):
    rng = np.random.default_rng(6)
    x, code = rng.normal(size=40), rng.integers(0, 2, 40)
    p = rng.random(40) if scores else rng.integers(0, 2, 40)
    y_pred = p if scores else labels[p]
    options = {
        "sensitive_features": x,
        "loss": "hamming",
        "constraint": CoarseConstraint(0.1, relative=False),
    }
    result = project_targets(labels[code], y_pred, **options)
    plain = project_targets(code, p, **options)
    assert result.targets.dtype == labels.dtype
    assert_array_equal(result.targets, labels[plain.targets])
    assert result.objective == plain.objective


def test_scores_that_are_all_certain_are_scores():
    # What a fully grown tree predicts: floats that are all 0 or 1.
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=40), rng.integers(0, 2, 40)
    p = rng.integers(0, 2, 40).astype(float)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        loss="log_loss",
        constraint=CoarseConstraint(0.1, relative=False),
    )
    one, zero = row_costs(y.astype(float), p, 1.0, "log_loss")
    z = result.targets
    assert z @ one + (1 - z) @ zero == pytest.approx(result.objective)
    # Labels 1 and 2 beside them: a score of 1.0 is no label.
    same = project_targets(
        y + 1,
        np.ones(40),
        sensitive_features=x,
        target_weight=0.1,
        constraint=CoarseConstraint(np.inf),
    )
    assert (same.targets == 2).sum() == 39


def test_log_loss_refuses_labels():
    x, y = np.arange(6.0), np.array([0, 1, 0, 1, 1, 0])
    with pytest.raises(ValueError, match="predict_proba"):
        project_targets(
            y, 1 - y, sensitive_features=x, loss="log_loss", constraint=CoarseConstraint()
        )


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_scores_outside_of_the_unit_interval_are_refused(p):
    x, y = np.arange(6.0), np.array([0, 1, 0, 1, 1, 0])
    with pytest.raises(ValueError, match=r"y_pred.*\[0, 1\]"):
        project_targets(
            y, np.r_[p, np.full(5, 0.5)], sensitive_features=x, constraint=CoarseConstraint()
        )


@pytest.mark.parametrize(
    ("y_pred", "message"),
    [
        (["a", "b", "c", "a", "b", "c"], "y_pred"),
        ([0, 1], "y_pred"),
        ([np.nan] * 6, "y_pred"),
        ([0.5] * 5, "y_pred"),
    ],
)
def test_faults_in_predictions_are_named(y_pred, message):
    with pytest.raises(ValueError, match=message):
        project_targets(
            [0, 1, 0, 1, 1, 0],
            y_pred,
            sensitive_features=np.arange(6.0),
            constraint=CoarseConstraint(),
        )


def test_a_single_class_is_refused():
    with pytest.raises(ValueError, match="two classes"):
        project_targets(
            [1, 1, 1, 1, 1, 1],
            sensitive_features=np.arange(6.0),
            loss="hamming",
            constraint=CoarseConstraint(),
        )


@settings(max_examples=12, deadline=None, derandomize=True)
@given(problems(), st.lists(st.floats(0.02, 1.5), min_size=2, max_size=4))
def test_a_smaller_threshold_never_gives_a_smaller_objective(problem, thresholds):
    results = [
        project_or_none(problem | {"threshold": threshold}) for threshold in sorted(thresholds)
    ]
    objectives = [np.inf if result is None else result.objective for result in results]
    assert all(after <= before + 1e-7 for before, after in pairwise(objectives))


@every_solver
def test_an_infinite_threshold_returns_the_free_optimum(solver):
    rng = np.random.default_rng(7)
    x, y, p = rng.normal(size=40), rng.integers(0, 2, 40), rng.random(40)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        target_weight=0.5,
        solver=solver,
        constraint=CoarseConstraint(np.inf, kernel=3),
    )
    assert_array_equal(result.targets, ((1 - 2 * p) + 0.5 * (1 - 2 * y) < 0).astype(int))
    assert result.gap <= 1e-9


@every_solver
@every_constraint
def test_a_threshold_of_zero_is_met(solver, constraint):
    x = np.tile(np.arange(20.0, 60), 2)
    rng = np.random.default_rng(8)
    y, p = (rng.random(80) < x / 80).astype(int), rng.random(80)
    result = project_targets(
        y, p, sensitive_features=x, constraint=constraint(0.0), solver=Solver(solver, time_limit=20)
    )
    assert result.satisfied
    limit = 1e-9 if constraint is CoarseConstraint else 1e-3
    slope = gedi_coefficients(y, sensitive_features=x)
    assert np.abs(result.coefficients) <= limit * np.abs(slope) * (1 + 1e-9)


@every_solver
def test_fine_targets_do_not_depend_on_unit_and_origin(solver):
    rng = np.random.default_rng(9)
    age = rng.integers(20, 60, 60).astype(float)
    y, p = (rng.random(60) < age / 80).astype(int), rng.random(60)
    options = {"constraint": FineConstraint(kernel=2, slack=0.2), "solver": Solver(solver, gap=0.0)}
    first = project_targets(y, p, sensitive_features=age, **options)
    for x in (age / 100, 2020 - age, 365.25 * age):
        other = project_targets(y, p, sensitive_features=x, **options)
        assert_array_equal(other.targets, first.targets)


@every_solver
def test_one_positive_row_keeps_both_classes(solver):
    x, y = np.arange(10.0), np.eye(1, 10, 3)[0].astype(int)
    result = project_targets(y, sensitive_features=x, solver=solver, constraint=CoarseConstraint())
    assert result.satisfied
    assert 1 <= result.targets.sum() <= 9
    # All against: predictions want a constant, the guard of the paper keeps a row of each class.
    rest = project_targets(
        1 - y,
        np.zeros(10),
        sensitive_features=x,
        target_weight=0.0,
        solver=solver,
        constraint=CoarseConstraint(np.inf),
    )
    assert rest.targets.sum() == 1


@pytest.mark.filterwarnings("default:the projection leaves a single row")
def test_a_collapse_to_one_class_is_told():
    rng = np.random.default_rng(10)
    x, y = rng.normal(size=30), rng.integers(0, 2, 30)
    with pytest.warns(UserWarning, match="single row in class 1"):
        project_targets(
            y, np.zeros(30), sensitive_features=x, target_weight=0.0, constraint=CoarseConstraint()
        )


@every_solver
def test_infeasible_says_what_to_change_and_which_slack_would_do(solver):
    x = np.arange(12.0)
    y = np.array([0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1])
    options = {"sensitive_features": x, "solver": solver}
    with pytest.raises(InfeasibleProjectionError) as caught:
        project_targets(y, **options, constraint=FineConstraint(kernel=3, slack=0.0))
    message = str(caught.value)
    for word in ("threshold=", "slack=0", "3 kernel column", "12 rows", "lower the degree"):
        assert word in message
    smallest = float(re.search(r"slack=(\S+) is feasible", message).group(1))
    # Rounded to three digits in the message.
    if smallest <= 0.99:
        assert project_targets(
            y, **options, constraint=FineConstraint(kernel=3, slack=smallest * 1.01)
        ).satisfied
    with pytest.raises(InfeasibleProjectionError):
        project_targets(
            y, **options, constraint=FineConstraint(kernel=3, slack=min(smallest * 0.98, 1.0))
        )


def test_two_rows_are_too_few():
    with pytest.raises(InfeasibleProjectionError, match="2 rows"):
        project_targets([0, 1], sensitive_features=[0.0, 1.0], constraint=CoarseConstraint())


def test_array_thresholds_forbid_and_free_single_coefficients():
    rng = np.random.default_rng(11)
    x = rng.normal(size=300)
    y = (x + x**2 + rng.normal(size=300) > 0.5).astype(int)
    p = np.clip(0.4 + 0.2 * x + 0.1 * rng.normal(size=300), 0, 1)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        constraint=FineConstraint([0.02, np.inf, 0.01], kernel=3, relative=False),
        solver=Solver(gap=1e-3),
    )
    a = gedi_coefficients(result.targets, sensitive_features=x, kernel=3)
    assert abs(a[0]) <= 0.02 + 1e-9
    assert abs(a[2]) <= 0.01 + 1e-9
    assert abs(a[1]) > 0.02
    # The last one forbidden: it keeps the slack, in deviations of the attribute.
    constraint = FineConstraint([0.02, np.inf, 0.0], kernel=3, relative=False, slack=0.1)
    result = project_targets(
        y, p, sensitive_features=x, constraint=constraint, solver=Solver(gap=1e-3)
    )
    kernel = PolynomialKernel(3, standardize=True)
    s = gedi_coefficients(result.targets, sensitive_features=x, kernel=kernel)
    assert abs(s[2]) <= 0.1 * 0.02 * x.std() * (1 + 1e-9)


def test_a_session_answers_like_single_projections():
    x, y, p = many_groups(60)
    rng = np.random.default_rng(12)
    with Projection(
        y, sensitive_features=x, constraint=CoarseConstraint(kernel=2), solver=Solver(gap=0.0)
    ) as projection:
        for _ in range(3):
            q = np.clip(p + 0.1 * rng.normal(size=60), 0, 1)
            result = projection.solve(q, target_weight=0.5)
            single = project_targets(
                y,
                q,
                sensitive_features=x,
                target_weight=0.5,
                constraint=CoarseConstraint(kernel=2),
                solver=Solver(gap=0.0),
            )
            assert result.objective == pytest.approx(single.objective, rel=1e-9)
            assert projection.satisfied(result.targets)
            assert projection.violation(result.targets) == 0
            assert_allclose(projection.coefficients(result.targets), result.coefficients)
            assert projection.gedi(result.targets) <= projection.threshold_
        assert not projection.satisfied(y)
        assert projection.violation(y) == pytest.approx(
            np.abs(projection.coefficients(y)).sum() - projection.threshold_
        )


def test_huge_weights_and_costs_are_no_trouble():
    rng = np.random.default_rng(13)
    x, y, p = rng.integers(20, 60, 40).astype(float), rng.integers(0, 2, 40), rng.random(40)
    w = np.ones(40)
    w[0] = 1e9
    assert project_targets(
        y, p, sensitive_features=x, sample_weight=w, constraint=CoarseConstraint()
    ).satisfied
    heavy = project_targets(
        y,
        p,
        sensitive_features=x,
        target_weight=1e9,
        constraint=CoarseConstraint(),
        solver=Solver(gap=0.02),
    )
    alone = project_targets(
        y, sensitive_features=x, constraint=CoarseConstraint(), solver=Solver(gap=0.02)
    )
    assert heavy.objective / 1e9 == pytest.approx(alone.objective, abs=0.02 * 40)


def test_the_models_bound_counts_where_rounding_had_found_its_solution():
    # Equal solutions differ in the last bit of their cost; the proof belongs to both.
    x = np.array([6.0, 1, 1, 5, 4, 7, 3, 6, 7, 5])
    y = np.array([0, 1, 1, 0, 0, 0, 0, 0, 1, 0])
    result = project_targets(
        y,
        sensitive_features=x,
        loss="log_loss",
        constraint=CoarseConstraint(0.8130538894846628, kernel=2, relative=False),
        solver=Solver(gap=0.0),
    )
    assert result.status == "optimal"
    assert result.gap <= 1e-9


SETS = st.one_of(
    st.builds(lambda radius: L1Ball(3, 1.0, radius), st.floats(0.1, 10.0)),
    st.builds(lambda radius: Ball(3, 1.0, radius), st.floats(0.1, 10.0)),
    st.builds(
        lambda bounds: Box(3, 1.0, np.array(bounds), np.zeros(3, dtype=bool)),
        st.lists(st.floats(0.01, 10.0), min_size=3, max_size=3),
    ),
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    parts=st.lists(SETS, min_size=1, max_size=2),
    share=st.floats(1e-3, 1.0),
    seed=st.integers(0, 10_000),
)
def test_rounding_looks_wherever_a_small_gap_is_possible(parts, share, seed):
    # Every allowed v that is worth nearly as much as the best one lies in the box.
    rng = np.random.default_rng(seed)
    allowed = Product(parts)
    direction = rng.choice([0.0, 1.0, -1.0], 3 * len(parts))
    v = np.concatenate([_points(part, rng, 300) for part in parts])
    best = sum(part.support(own) for part, own in allowed.split(direction))
    tolerance = share * best + 1e-9
    near = v[:, best - direction @ v <= tolerance]
    transform, centre, half_widths = allowed.near_optimal_box(direction, tolerance)
    outside = np.abs(transform @ near - centre[:, None]) - half_widths[:, None]
    assert outside.max(initial=0.0) <= 1e-9 * (1 + np.abs(v).max())


def _points(part, rng, count):
    """Return points of a set, many of them in its corners."""
    if isinstance(part, Box):
        return part.half_widths[:, None] * np.clip(rng.normal(0, 2, (3, count)), -1, 1)
    if isinstance(part, Ball):
        points = rng.normal(size=(3, count))
        return part.radius * rng.random(count) ** 0.2 * points / np.linalg.norm(points, axis=0)
    weight = rng.dirichlet(np.full(4, 0.2), count).T[:3]
    return part.radius * weight * rng.choice([-1, 1], (3, count))


@every_constraint
@every_solver
def test_many_distinct_values_meet_the_gap(constraint, solver):
    x, y, p = many_groups(24_000)
    result = project_targets(
        y, p, sensitive_features=x, solver=solver, constraint=constraint(kernel=5)
    )
    assert result.satisfied
    assert result.gap <= 5e-5


@pytest.mark.slow
@every_constraint
def test_a_million_rows_take_little_memory(constraint):
    n, k = 1_000_000, 5
    x, y, p = many_groups(n)
    tracemalloc.start()
    try:
        result = project_targets(
            y,
            p,
            sensitive_features=x,
            constraint=constraint(kernel=k),
            solver=Solver("highs", gap=1e-6),
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.satisfied
    assert result.gap <= 1e-6
    assert peak < 30 * n * k


@pytest.mark.parametrize(
    "constraint",
    [
        CoarseConstraint(),
        FineConstraint(),
        DependenceConstraint(kernel=1),
        CoarseConstraint(0.0, relative=False),
    ],
    ids=["coarse", "fine", "sd", "zero"],
)
@pytest.mark.parametrize("is_heavy", [False, True])
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 400), n_values=st.integers(2, 500))
def test_one_column_is_relaxed_by_sorting(constraint, is_heavy, seed, n, n_values):
    rng = np.random.default_rng(seed)
    x = rng.choice(np.r_[0.0, 1.0, rng.normal(size=n_values)], n)
    x[:2] = 0.0, 1.0
    p = rng.choice([rng.random(n), np.round(rng.random(n), 1)])
    y = (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int)
    y[:4] = 0, 1, 0, 1
    w = rng.uniform(0.1, 5, n) if is_heavy else None
    try:
        projection = Projection(y, sensitive_features=x, sample_weight=w, constraint=constraint)
    except ValueError:
        assume(False)
    problem = projection._problem
    groups = problem._cells(problem._costs(p, 0.5)[0], p)
    allowed, nowhere, end = problem.image.allowed, np.zeros(1), Deadline()
    half_width = np.array([allowed.parts[0].limits[0]])
    box = Product([Box(1, 1.0, half_width, np.zeros(1, dtype=bool))])
    program = _Sifting(groups, box, nowhere, end).solve(nowhere, None)
    sorted_ = solve_relaxation(groups, allowed, nowhere, end)
    assert groups.objective(sorted_.counts) == pytest.approx(
        groups.objective(program.counts), rel=1e-9, abs=1e-9
    )
    assert sorted_.bound == pytest.approx(groups.objective(sorted_.counts), rel=1e-9, abs=1e-9)
    assert np.abs(groups.v(sorted_.counts)) <= half_width * (1 + 1e-9) + 1e-12
    assert (sorted_.counts >= 0).all()
    assert (sorted_.counts <= groups.size[:, None]).all()
    # A vertex: at most one group is split.
    assert (np.abs(sorted_.counts - np.rint(sorted_.counts)) > 1e-9).sum() <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "constraint", [CoarseConstraint(), FineConstraint(), DependenceConstraint(kernel=1)], ids=str
)
def test_a_million_rows_of_one_column_are_sorted(constraint):
    x, y, p = many_groups(1_000_000)
    started = time.process_time()
    result = project_targets(y, p, sensitive_features=x, constraint=constraint)
    # 1 s on an idle core, and twice that on a busy one.
    assert time.process_time() - started < 4
    assert result.satisfied
    assert result.gap <= 1e-8


@pytest.mark.parametrize("loss", ["hamming", "log_loss"])
@pytest.mark.filterwarnings("ignore:sensitive_features is constant")
def test_classes_without_a_constraint_stay(loss):
    y = np.array([0, 1, 1, 0])
    with Projection(
        y,
        sensitive_features=np.ones(4),
        loss=loss,
        allow_constant=True,
        constraint=CoarseConstraint(),
    ) as projection:
        np.testing.assert_array_equal(projection.solve().targets, y)
