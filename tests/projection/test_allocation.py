"""The DIDI of two classes as an allocation of ones to groups."""

import itertools
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gedi_sklearn import CoarseConstraint, DidiConstraint, Solver, project_targets
from gedi_sklearn.exceptions import InfeasibleProjectionError
from gedi_sklearn.metrics import didi
from gedi_sklearn.projection import Projection


def groups_of(n_groups, n, seed=0):
    """Return groups, probabilities that differ between them, and labels drawn from these."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    score = rng.normal(0, 0.5, n_groups)[group] + rng.normal(size=n)
    p = 1 / (1 + np.exp(-score))
    return group.astype(str), p, (rng.random(n) < p).astype(int)


def least_cost(cost, group, most):
    """Return the least cost of labels by looking at all numbers of ones in every group."""
    names, code = np.unique(group, return_inverse=True)
    sums = [np.r_[0, np.cumsum(np.sort(cost[code == g]))] for g in range(len(names))]
    size, n, best = np.bincount(code), len(cost), np.inf
    for ones in itertools.product(*(range(k + 1) for k in size)):
        total = sum(ones)
        off = 2 * np.abs(np.array(ones) / size - total / n).sum()
        if 0 < total < n and off <= most * (1 + 1e-12):
            best = min(best, sum(own[s] for own, s in zip(sums, ones, strict=True)))
    return best


@st.composite
def problems(draw):
    size = draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
    n = sum(size)
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(lambda y: 0 < sum(y) < n))
    # Few values make many ties, and many make none.
    scores = st.sampled_from([0.0, 0.25, 0.5, 1.0]) if draw(st.booleans()) else st.floats(0, 1)
    p = draw(st.none() | st.lists(scores, min_size=n, max_size=n))
    most = draw(st.sampled_from([0.2, 0.5, 1.0, 1.5]) | st.floats(0.05, 3))
    order = draw(st.permutations(range(n)))
    group = np.repeat(list("abcde")[: len(size)], size)[order]
    return np.array(y), None if p is None else np.array(p), group, most


# Sizes up to 5, of 2 to 5 groups: single rows are among them.
@pytest.mark.filterwarnings("ignore:the projection leaves")
@settings(max_examples=200, deadline=None)
@given(problem=problems(), gap=st.sampled_from([0.0, 0.05]))
def test_the_cheapest_of_all_allocations(problem, gap):
    y, p, group, most = problem
    against = (1 - 2 * y).astype(float)
    cost = against if p is None else (1 - 2 * p) + against
    # The loss of labels that are all 0.
    constant = y.sum() + (0.0 if p is None else p.sum())
    options = {"constraint": DidiConstraint(most, relative=False), "solver": Solver(gap=gap)}
    best = least_cost(cost, group, most)
    if np.isinf(best):
        with pytest.raises(InfeasibleProjectionError):
            project_targets(y, p, sensitive_features=group, **options)
        return
    result = project_targets(y, p, sensitive_features=group, **options)
    size = np.abs(cost).sum()
    assert result.satisfied
    assert didi(result.targets, sensitive_features=group) <= most * (1 + 1e-9)
    assert best - 1e-9 <= result.objective - constant <= best + gap * size + 1e-9
    assert result.bound - constant <= best + 1e-9
    assert result.gap <= gap + 1e-9
    loss = float((result.targets != y).sum())
    if p is not None:
        loss += float(np.where(result.targets == 1, 1 - p, p).sum())
    assert result.objective == pytest.approx(loss, abs=1e-9)


@pytest.mark.filterwarnings("ignore:the projection leaves")
def test_ties_leave_the_gap_as_it_was_asked_for():
    y = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 0])
    p = np.array([0, 0.75, 0, 0, 0, 0, 0.5, 0.625, 0, 0, 0, 0.25, 0.75, 0, 0.1875, 0.5])
    result = project_targets(
        y,
        p,
        sensitive_features=np.array(list("caeaabcbacdddaed")),
        constraint=DidiConstraint(0.96875, relative=False),
        solver=Solver(gap=0.05),
    )
    assert result.gap <= 0.05


def test_rare_groups_move_in_large_steps():
    rng = np.random.default_rng(0)
    group = rng.choice(list("abcdef"), 2900, p=[0.51, 0.34, 0.09, 0.053, 0.004, 0.003])
    p = np.clip(rng.beta(2, 2.4, 2900) + 0.1 * (group == "a"), 0.01, 0.99)
    y = (rng.random(2900) < p).astype(int)
    started = time.process_time()
    result = project_targets(
        y, p, sensitive_features=group, constraint=DidiConstraint(), solver=Solver(gap=5e-5)
    )
    assert time.process_time() - started < 2
    assert result.satisfied
    assert result.gap <= 5e-5
    # To the last digit the objective is hardly less.
    exact = project_targets(
        y, p, sensitive_features=group, constraint=DidiConstraint(), solver=Solver(gap=0.0)
    )
    assert result.bound <= exact.objective <= result.objective
    assert exact.status == "optimal"


@pytest.mark.parametrize(
    ("n_groups", "seconds"), [(50, 2), (125, 2), pytest.param(1000, 20, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("has_scores", [True, False])
def test_many_groups(n_groups, seconds, has_scores):
    group, p, y = groups_of(n_groups, 24_000)
    started = time.process_time()
    result = project_targets(
        y,
        p if has_scores else None,
        sensitive_features=group,
        constraint=DidiConstraint(),
        solver=Solver(gap=5e-5),
    )
    assert time.process_time() - started < seconds
    assert result.satisfied
    assert result.gap <= 5e-5
    assert didi(result.targets, sensitive_features=group) <= 0.2 * didi(
        y, sensitive_features=group
    ) * (1 + 1e-9)


def test_multipliers_are_those_of_the_relaxation():
    group, p, y = groups_of(5, 3000, seed=1)
    with Projection(y, sensitive_features=group, constraint=DidiConstraint()) as projection:
        constraint = projection.fitted_constraint_
        relaxed = constraint.raw_multipliers(projection.relaxed_multipliers(p, constraint, 1e-6)[0])
        result = projection.solve(p, target_weight=0.0)
        assert_allclose(result.multipliers, relaxed, rtol=0.03, atol=0.5)
        # They are what a looser bound would gain.
        looser = projection.at(0.21).solve(p, target_weight=0.0)
    gain = (result.objective - looser.objective) / (0.01 * projection.reference_)
    # q counts both classes.
    assert gain == pytest.approx(np.abs(result.multipliers).max() / 2, rel=0.5)


def test_rows_of_equal_cost_flip_in_the_order_of_the_seed():
    group, _, y = groups_of(3, 300)
    options = {"sensitive_features": group, "constraint": DidiConstraint()}
    first, again, other = (
        project_targets(y, random_state=seed, **options).targets for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert (first != other).any()
    for name in np.unique(group):
        assert first[group == name].sum() == other[group == name].sum()


def test_single_rows_that_take_all_of_the_bound_are_said_to():
    rng = np.random.default_rng(0)
    group = np.r_[rng.integers(0, 3, 270).astype(str), [f"alone {i}" for i in range(30)]]
    y = np.r_[rng.integers(0, 2, 300)]
    with pytest.warns(UserWarning, match="30 groups are single rows"):
        project_targets(y, sensitive_features=group, constraint=DidiConstraint(0.2))
    pooled = np.where(np.char.startswith(group, "alone"), "alone", group)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        project_targets(y, sensitive_features=pooled, constraint=DidiConstraint(0.2))


def test_a_bound_that_no_labels_satisfy():
    y, group = np.array([0, 1, 1, 0, 1]), np.array(list("aabbb"))
    with pytest.raises(InfeasibleProjectionError, match="didi"):
        project_targets(y, sensitive_features=group, constraint=DidiConstraint(0.01))


def test_a_limit_without_an_answer():
    group, p, y = groups_of(1000, 24_000)
    with pytest.warns(UserWarning, match="time_limit"):
        result = project_targets(
            y,
            p,
            sensitive_features=group,
            constraint=DidiConstraint(),
            solver=Solver(time_limit=1e-9),
        )
    assert result.satisfied == (result.status == "time_limit")
    assert set(result.targets) == {0, 1}


@pytest.mark.parametrize("n_values", [2, 300])
def test_an_attribute_without_a_bound_makes_no_groups(n_values):
    """Beside it groups were cut to pieces, whose deviations were bounded: or nothing was left."""
    group, p, y = groups_of(4, 300)
    free = np.random.default_rng(1).permutation(300) % n_values
    both = np.column_stack([free.astype(object), group.astype(object)])
    pair = [CoarseConstraint(np.inf), DidiConstraint(0.3)]
    alone = project_targets(y, p, sensitive_features=group, constraint=pair[1])
    beside = project_targets(y, p, sensitive_features=both, constraint=pair)
    assert_array_equal(beside.targets, alone.targets)
