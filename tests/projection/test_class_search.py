"""The searches for targets of classes: what each of them promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    Solver,
    project_targets,
)
from gedi_sklearn._geometry._sets import Ball, Box, L1Ball
from gedi_sklearn.projection import Projection
from gedi_sklearn.projection._exchange import Exchange
from gedi_sklearn.projection._relaxation import SmoothedDual, maximise_dual, solve_relaxation
from gedi_sklearn.projection._result import Effort, Incumbent
from gedi_sklearn.projection._rounding import rounded_soft
from gedi_sklearn.projection._solver import Deadline

pytestmark = [
    # Bounds of every kind on purpose, whatever they leave.
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning"),
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.NoisyReferenceWarning"),
    pytest.mark.filterwarnings("ignore:the projection leaves a single row:UserWarning"),
]
CONSTRAINTS = {
    "coarse": CoarseConstraint(0.2, kernel=3),
    "sd": DependenceConstraint(0.2, kernel=3),
    "fine": FineConstraint(0.2, kernel=3, slack=0.05),
    "didi": DidiConstraint(0.2),
}


def groups_of(seed, n_classes, constraint, n=300):
    """Return the groups of a random problem, with their costs at most 1."""
    rng = np.random.default_rng(seed)
    x = (rng.integers(0, 12, n) - 5.5) / 3.5
    score = np.outer(x, np.linspace(-1, 1, n_classes)) + rng.normal(size=(n, n_classes))
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    y = (score + rng.normal(size=score.shape)).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    attribute = x.round(2).astype(str) if constraint == "didi" else x
    given = CONSTRAINTS[constraint]
    with Projection(
        y, sensitive_features=attribute, constraint=given, loss="hamming"
    ) as projection:
        problem = projection._problem
        predictions = p[:, 1] if n_classes == 2 else p
        return problem._cells(problem._costs(predictions, 1.0)[0], None)


kinds = st.sampled_from(sorted(CONSTRAINTS))
sizes = st.sampled_from([2, 3, 4])
seeds = st.integers(0, 10_000)


@pytest.mark.parametrize(
    "allowed",
    [
        Box(3, 1.0, np.array([0.5, 2.0, 0.0]), np.zeros(3, dtype=bool)),
        L1Ball(3, 1.0, 1.5),
        Ball(3, 1.0, 1.5),
    ],
)
@given(seed=seeds, width=st.floats(1e-3, 1.0))
@settings(deadline=None, max_examples=30)
def test_smoothed_support_lies_above_and_has_its_derivatives(allowed, seed, width):
    d = np.random.default_rng(seed).normal(size=3)
    soft = allowed.soft_support(d, width)
    assert allowed.support(d) - 1e-12 <= soft.value <= allowed.support(d) + 7 * width
    assert allowed.violation(soft.point) <= 1e-12
    step = 1e-5 * width
    ends = [
        [allowed.soft_support(d + sign * step * e, width) for sign in (1, -1)] for e in np.eye(3)
    ]
    slope = [(up.value - down.value) / (2 * step) for up, down in ends]
    curvature = [(up.point - down.point) / (2 * step) for up, down in ends]
    assert_allclose(soft.point, slope, atol=1e-6)
    hessian = np.diag(soft.diagonal) - np.outer(soft.axis, soft.axis)
    assert_allclose(hessian, curvature, atol=1e-4 / width)


@given(seed=seeds, n_classes=sizes, kind=st.sampled_from(["coarse", "fine", "didi"]))
@settings(deadline=None, max_examples=30)
def test_the_dual_is_worth_as_much_as_the_linear_program(seed, n_classes, kind):
    groups = groups_of(seed, n_classes, kind)
    nowhere, allowed = np.zeros(len(groups.image.row)), groups.image.allowed
    program = solve_relaxation(groups, allowed, nowhere, Deadline())
    dual = maximise_dual(groups, allowed, 1e-3, nowhere, Deadline())
    assert dual.bound <= program.bound + 1e-7
    assert dual.bound >= program.bound - 1e-2
    assert_allclose(dual.counts.sum(axis=1), groups.size) if n_classes > 2 else None


@given(seed=seeds, n_classes=st.sampled_from([3, 5]), damping=st.sampled_from([1e-6, 1e-2, 1.0]))
@settings(deadline=None, max_examples=20)
def test_steps_on_deviations_of_groups_are_those_of_the_full_matrix(seed, n_classes, damping):
    groups = groups_of(seed, n_classes, "didi")
    nowhere = np.zeros(len(groups.image.row))
    dual = SmoothedDual(groups, groups.image.allowed, nowhere, Deadline())
    multipliers = 0.1 * np.random.default_rng(seed).normal(size=len(nowhere))
    state = dual._at(multipliers, 0.1)
    step = dual._joint_newton(state, 0.1)(damping)
    assert_allclose(step, dual._dense_newton(state, 0.1)(damping), rtol=1e-6, atol=1e-9)


@given(seed=seeds, n_classes=sizes, kind=kinds)
@settings(deadline=None, max_examples=30)
def test_rounded_counts_are_whole_and_near(seed, n_classes, kind):
    groups = groups_of(seed, n_classes, kind)
    nowhere = np.zeros(len(groups.image.row))
    soft = maximise_dual(groups, groups.image.allowed, 1e-2, nowhere, Deadline()).counts
    counts = rounded_soft(groups, soft)
    assert groups.fault(counts) is None
    assert_array_equal(counts, np.rint(counts))
    assert (np.abs(counts - soft) < groups.n_columns + 1).all()


@given(seed=seeds, n_classes=sizes, kind=kinds)
@settings(deadline=None, max_examples=20)
def test_exchanges_keep_their_books_and_never_lose_what_is_allowed(seed, n_classes, kind):
    groups = groups_of(seed, n_classes, kind)
    best = Incumbent(groups, 0.0)
    start = groups.placed(groups.choose(np.zeros(len(groups.image.row)))[0])
    search = Exchange(groups, np.zeros(len(groups.image.row)), best, Effort(2e6, Deadline()))
    search.run(start)
    counts = start.copy()
    counts[search.active] = search.counts[:, 1:] if n_classes == 2 else search.counts
    assert groups.fault(counts) is None
    assert_allclose(search.v, groups.v(counts), atol=1e-9 * (1 + np.abs(search.v).max()))
    if best.counts is not None:
        assert groups.image.allowed.violation(groups.v(best.counts)) <= 1e-9
        assert groups.rows_of_classes(best.counts).min() >= 1
        assert best.bound <= best.objective


@given(seed=seeds, n_classes=st.sampled_from([3, 4]))
@settings(deadline=None, max_examples=20)
def test_moves_between_groups_are_priced_as_their_effects(seed, n_classes):
    groups = groups_of(seed, n_classes, "didi")
    nowhere = np.zeros(len(groups.image.row))
    search = Exchange(groups, nowhere, Incumbent(groups, 0.0), Effort(0, Deadline()))
    search.run(groups.placed(groups.choose(nowhere)[0]))
    search.v = groups.v(groups.placed(groups.choose(nowhere)[0]))
    moves = search._moves(0, 2, 10, is_shuffled=False)
    i, j = np.triu_indices(len(moves.cell), k=1)
    sets = np.hstack([[i, j], [i, np.full(len(i), -1)]])
    pair = search.pair(0, 2)
    sparse = search._sizes_of_deviations(2, pair, moves)(sets)
    assert_allclose(sparse, search._sizes(2, pair, moves)(sets), atol=1e-9)


def test_the_closest_counts_are_kept_until_some_are_allowed():
    groups = groups_of(0, 3, "coarse")
    best = Incumbent(groups, 0.0)
    cheapest = groups.placed(groups.choose(np.zeros(len(groups.image.row)))[0])
    assert not best.offer(cheapest)
    assert best.found("work_limit").status == "closest"
    assert_array_equal(best.found("work_limit").counts, cheapest)
    worse = cheapest[:, ::-1].copy()
    if groups.image.allowed.violation(groups.v(worse)) > best.violation:
        assert not best.offer(worse)
        assert_array_equal(best.closest, cheapest)
    lost = groups.placed(np.zeros(groups.n, dtype=int))  # of one class alone
    assert not best.offer(lost)
    assert_array_equal(best.closest, cheapest)


@pytest.mark.parametrize(
    ("n_classes", "constraint"),
    [(2, "coarse"), (3, "sd"), pytest.param(3, "fine", marks=pytest.mark.slow)],
)
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equal_calls_give_equal_labels(n_classes, constraint):
    rng = np.random.default_rng(3)
    x = rng.normal(size=40)
    y = np.digitize(x + rng.normal(size=40), np.linspace(-1, 1, n_classes + 1)[1:-1])
    options = {
        "sensitive_features": x,
        "constraint": CONSTRAINTS[constraint],
        "loss": "hamming",
        "solver": Solver(time_limit=None),
    }
    first = project_targets(y, **options)
    assert first.status != "time_limit"
    assert_array_equal(first.targets, project_targets(y, **options).targets)


@pytest.mark.parametrize("seed", [1, 2])
def test_labels_near_enough_are_exchanged_for_cheaper_ones(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=200)
    score = np.outer(x, [-1, 0, 1]) + rng.normal(size=(200, 3))
    y = (score + rng.normal(size=score.shape)).argmax(axis=1)
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    constraint = FineConstraint(0.2, kernel=1)
    options = {"sensitive_features": x, "constraint": constraint, "loss": "hamming"}
    polished = project_targets(y, p, **options)
    monkeypatch.setattr("gedi_sklearn.projection._search._POLISH", 0)
    first = project_targets(y, p, **options)
    assert polished.objective < first.objective
    assert polished.satisfied
    assert_allclose(polished.bound, first.bound)


def test_a_search_that_time_cuts_off_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    y = np.digitize(x + rng.normal(size=2000), [-0.5, 0.5])
    options = {"sensitive_features": x, "constraint": CONSTRAINTS["coarse"], "loss": "hamming"}
    assert project_targets(y, **options).status != "time_limit"

    def is_late(*_, **__):
        raise TimeoutError

    # Without a bound no search would end before its work is done.
    monkeypatch.setattr("gedi_sklearn.projection._search.relax", is_late)
    monkeypatch.setattr(Exchange, "run", is_late)
    with pytest.warns(ConvergenceWarning, match="Raise `time_limit`"):
        assert project_targets(y, **options).status == "time_limit"
