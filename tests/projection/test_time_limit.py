"""`time_limit` ends every route of a projection."""

import time
from contextlib import suppress

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from gedi_sklearn import (
    CoarseConstraint,
    DidiConstraint,
    FineConstraint,
    MovingTargetsClassifier,
    Solver,
    project_targets,
)
from gedi_sklearn.exceptions import SolverError, SolverLimitError

pytestmark = [
    # Bounds of every kind on purpose, whatever they leave.
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning"),
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.NoisyReferenceWarning"),
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.EmptyBoundWarning"),
    pytest.mark.filterwarnings("ignore:Gurobi runs on the size-limited:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*groups:UserWarning"),
]


def rows(n, n_columns=1, seed=0):
    """Return an attribute of one or more columns, and what depends on it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    return X, X.sum(axis=1) + rng.normal(size=n), rng.random(n)


def groups(n, n_groups, seed=0):
    """Return groups, and what depends on them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_groups, n)
    return np.array([f"l{c}" for c in codes]), rng.normal(size=n_groups)[codes] + rng.normal(size=n)


SLOPE = CoarseConstraint()


def two_classes(n, constraint, name="auto"):
    X, v, p = rows(n)
    return lambda **limit: project_targets(
        (v > 0).astype(int),
        p,
        sensitive_features=X,
        constraint=constraint,
        solver=Solver(name, gap=0.0, **limit),
    )


def classes(n, n_classes, constraint=SLOPE, name="auto"):
    X, v, _ = rows(n)
    y = np.digitize(v, np.linspace(-2, 2, n_classes - 1)).astype(str)
    return lambda **limit: project_targets(
        y, sensitive_features=X, constraint=constraint, solver=Solver(name, **limit)
    )


def didi_of_classes(n, n_groups):
    g, _ = groups(n, n_groups)
    y = (np.random.default_rng(1).normal(size=n) > 0).astype(int)
    return lambda **limit: project_targets(
        y, sensitive_features=g, constraint=DidiConstraint(), solver=Solver(**limit)
    )


def real(n, degree, name="auto", **options):
    X, v, _ = rows(n)
    return lambda **limit: project_targets(
        v,
        v[::-1],
        sensitive_features=X,
        constraint=CoarseConstraint(kernel=degree),
        solver=Solver(name, **limit),
        **options,
    )


def real_groups(n, n_groups, **options):
    g, v = groups(n, n_groups)
    given = {"sensitive_features": g, **options, "constraint": DidiConstraint(0.05)}
    return lambda **limit: project_targets(np.clip(v, 0, 2), solver=Solver(**limit), **given)


def several_groups(n, n_groups):
    pairs = np.column_stack([groups(n, n_groups, seed)[0] for seed in (0, 1)])
    v = groups(n, n_groups)[1]
    constraint = [CoarseConstraint(), CoarseConstraint()]
    return lambda **limit: project_targets(
        v, sensitive_features=pairs, constraint=constraint, solver=Solver(**limit)
    )


def several_of_classes(n):
    X, v, p = rows(n, 2)
    constraint = [FineConstraint(kernel=3, slack=1e-4), CoarseConstraint(kernel=3)]
    return lambda **limit: project_targets(
        (v > 0).astype(int),
        p,
        sensitive_features=X,
        constraint=constraint,
        solver=Solver(gap=0.0, **limit),
    )


def moving_targets(n, n_classes):
    X, v, _ = rows(n, 3)
    y = np.digitize(v, np.linspace(-2, 2, n_classes - 1))
    model = MovingTargetsClassifier(
        LogisticRegression(), CoarseConstraint(kernel=2), sensitive_columns=0, max_iter=1
    )
    return lambda **limit: model.set_params(solver=Solver(**limit)).fit(X, y)


FINE = FineConstraint(kernel=5, slack=0.01)


@pytest.mark.parametrize(
    "solve",
    [
        real(200, 3, loss="absolute_error"),
        real(200, 3, target_bounds=(-9, 9)),
        real(200, 3, "gurobi"),
        several_groups(200, 3),
    ],
)
def test_a_limit_that_is_over_at_once_ends_every_route_of_real_targets(solve):
    with pytest.raises(SolverLimitError, match=r"reached its time limit.*Raise `time_limit`"):
        solve(time_limit=1e-9)


@pytest.mark.parametrize(
    "solve",
    [
        two_classes(200, FINE),
        two_classes(200, FINE, "gurobi"),
        classes(300, 3),
        classes(300, 3, name="gurobi"),
        didi_of_classes(300, 5),
        several_of_classes(200),
    ],
)
def test_classes_have_an_answer_from_the_first_moment_on(solve):
    with pytest.warns(UserWarning, match=r"time_limit"):
        result = solve(time_limit=1e-9)
    assert result.status in ("time_limit", "closest")
    assert result.satisfied == (result.status == "time_limit")
    assert len(np.unique(result.targets)) > 1


@pytest.mark.filterwarnings("ignore:the fitted LogisticRegression predicts:UserWarning")
def test_moving_targets_go_on_with_the_closest_targets_and_say_so():
    with pytest.warns(UserWarning, match=r"projection\(s\)") as caught:
        model = moving_targets(200, 3)(time_limit=1e-9)
    assert len([w for w in caught if "projection(s)" in str(w.message)]) <= 2
    assert set(model.history_["status"][1:]) <= {"time_limit", "closest"}


@pytest.mark.parametrize("solver", ["highs", "gurobi"])
def test_none_is_no_limit(solver):
    solve = two_classes(30, FineConstraint(kernel=2, slack=0.1), solver)
    assert solve(time_limit=None).status == "optimal"


def test_a_closed_form_takes_no_time():
    assert real(200, 3)(time_limit=1e-9).status == "optimal"


def test_targets_found_by_then_are_returned_with_their_gap():
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        found = two_classes(150, FineConstraint(kernel=5, slack=0.05))(time_limit=0.5)
    assert found.status == "time_limit"
    assert found.satisfied
    assert 0 < found.gap < 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning")
@pytest.mark.filterwarnings("ignore:the fitted LogisticRegression predicts:UserWarning")
@pytest.mark.parametrize(
    "solve",
    [
        pytest.param(two_classes(150, FINE), id="integers"),
        pytest.param(two_classes(150, FINE, "gurobi"), id="gurobi"),
        pytest.param(
            classes(1000, 10, constraint=CoarseConstraint(0.3, kernel=2)), id="ten classes"
        ),
        pytest.param(classes(1000, 20, constraint=CoarseConstraint(0.3)), id="twenty classes"),
        pytest.param(didi_of_classes(10_000, 50), id="rounding"),
        pytest.param(several_of_classes(1000), id="several"),
        pytest.param(moving_targets(1000, 10), id="moving targets"),
        pytest.param(real(100_000, 5, loss="absolute_error"), id="absolute"),
        pytest.param(
            real_groups(10_000, 150, loss="absolute_error"),
            id="absolute of groups",
        ),
        pytest.param(real_groups(10_000, 300, target_bounds=(0, 2)), id="bounds"),
        pytest.param(several_groups(5000, 200), id="several of groups"),
    ],
)
def test_a_limit_is_kept(solve):
    # The time of this thread, for other work of the machine to make no difference.
    limit, start = 0.5, time.thread_time()
    with suppress(SolverError):  # where nothing was found by then
        solve(time_limit=limit)
    assert time.thread_time() - start < limit + 2
