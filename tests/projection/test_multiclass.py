"""More than two classes: every one, against the rest, satisfies the constraint."""

import time
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from benchmarks import classes as benchmark
from gedi_sklearn import (
    CoarseConstraint,
    DidiConstraint,
    FineConstraint,
    MovingTargetsClassifier,
    PolynomialKernel,
    Solver,
    project_targets,
    projection_path,
)
from gedi_sklearn.exceptions import ConstraintNotMetWarning, InfeasibleProjectionError
from gedi_sklearn.metrics import didi, gedi
from gedi_sklearn.projection import Projection, _search
from gedi_sklearn.projection._search import Search
from gedi_sklearn.projection._solver import Deadline, HighsSession
from tests.oracles import with_slack

# Bounds of every kind on purpose, whatever they leave.
pytestmark = pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")

QUADRATIC = PolynomialKernel(2, standardize=True)


def problem(seed, n, n_classes=3):
    """Return attribute, classes that depend on it, probabilities, weights."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=n), 1)
    score = np.outer(x, np.linspace(-1, 1, n_classes)) + rng.normal(size=(n, n_classes))
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    y = score.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return x, y, np.round(p, 2), rng.integers(1, 4, n).astype(float)


def full_model(x, y, p, weight, loss, threshold, target_weight=1.0):
    """Return the least loss with one binary variable a row and class, degree 1.

    It is None where the model is proved infeasible.
    """
    n, k = len(y), int(y.max()) + 1
    own = np.eye(k)[y]
    terms = [(own, 1.0)] if p is None else [(p, 1.0), (own, target_weight)]
    if loss == "hamming":
        cost = sum(factor * (1 - q) for q, factor in terms)
    else:
        cost = sum(-factor * np.log(np.clip(q, 1e-3, 1 - 1e-3)) for q, factor in terms)
    cost = cost * weight[:, None]
    centred = x - np.average(x, weights=weight)
    row = weight * centred / (weight * centred**2).sum()
    reference = np.abs(row @ own)
    rows = sp.vstack(
        [
            sp.kron(row[None, :], np.eye(k)),
            sp.kron(np.ones((1, n)), np.eye(k)),
            sp.kron(sp.eye_array(n), np.ones((1, k))),
        ]
    )
    limits = threshold * reference
    result = milp(
        cost.ravel(),
        integrality=np.ones(n * k),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(
            rows,
            np.r_[-limits, np.ones(k), np.ones(n)],
            np.r_[limits, np.full(k, np.inf), np.ones(n)],
        ),
        options={"mip_rel_gap": 0.0},
    )
    assert result.status in (0, 2), result.message
    loss = float(result.fun) if result.status == 0 else None
    return loss, float(np.ptp(cost, axis=1).sum())


@given(
    st.integers(0, 10_000),
    st.integers(2, 4),
    st.sampled_from(["labels", "probabilities", "none"]),
    st.sampled_from(["hamming", "log_loss"]),
    st.booleans(),
    st.sampled_from(["highs", "gurobi"]),
)
@example(3836, 3, "labels", "hamming", False, "highs")  # infeasible, by enumeration too
@settings(deadline=None, max_examples=25)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Gurobi runs on the size-limited:UserWarning")
@pytest.mark.filterwarnings("ignore:the projection leaves a single row:UserWarning")
def test_objective_is_that_of_the_full_model(seed, n_classes, kind, loss, weighted, solver):
    x, y, p, w = problem(seed, 18, n_classes)
    w = w if weighted else np.ones(18)
    if kind == "labels":
        if loss == "log_loss":
            return  # compares probabilities
        p = np.eye(n_classes)[p.argmax(axis=1)]
    p = None if kind == "none" else p
    threshold = 0.3137  # no attainable value
    predictions = p if p is None or n_classes > 2 else p[:, 1] / 1.0
    if p is not None and n_classes == 2:
        p = np.column_stack([1 - p[:, 1], p[:, 1]])
    centred = w * (x - np.average(x, weights=w))
    assume((np.abs(centred @ np.eye(n_classes)[y]) > 1e-6).all())
    expected, scale = full_model(x, y, p, w, loss, threshold)
    options = {
        "sensitive_features": x,
        "loss": loss,
        "sample_weight": w,
        "constraint": CoarseConstraint(threshold),
        "solver": Solver(solver, gap=0.0),
    }
    if expected is None:
        # A class that hardly depends on x has a tiny threshold: no subset of 18 rows may meet it.
        with suppress(InfeasibleProjectionError), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstraintNotMetWarning)
            # Where that is not proven, the closest targets are an answer.
            assert not project_targets(y, predictions, **options).satisfied
        return
    result = project_targets(y, predictions, **options)
    assert result.satisfied
    assert result.objective == pytest.approx(expected, abs=1e-7 * scale)
    assert result.bound <= result.objective + 1e-9 * scale


@pytest.mark.parametrize("constraint", [CoarseConstraint, FineConstraint])
def test_every_class_satisfies_the_constraint(constraint):
    x, y, p, _ = problem(1, 400)
    slack = 0.05 if constraint is FineConstraint else 1e-3
    labels = np.array(["left", "middle", "right"])[y]
    result = project_targets(
        labels,
        p,
        sensitive_features=x,
        constraint=with_slack(constraint, slack, kernel=QUADRATIC),
        solver=Solver(gap=5e-3),
    )
    linear = PolynomialKernel(1, standardize=True)
    for c, label in enumerate(np.unique(labels)):
        options = {"sensitive_features": x, "pos_label": label}
        before = gedi(labels, kernel=linear, **options)
        after = gedi(labels, result.targets, kernel=QUADRATIC, **options)
        assert result.threshold[c] == pytest.approx(0.2 * before)
        # A forbidden direction may keep its slack, in coefficients of the same basis.
        assert (
            after
            <= result.threshold[c] * (1.0 if constraint is CoarseConstraint else 1 + slack) + 1e-9
        )
    assert result.coefficients.shape == (6,)
    assert result.multipliers.shape == (6,)


def test_many_groups_are_solved_through_samples_and_a_core(monkeypatch):
    monkeypatch.setattr(_search.Exchange, "run", lambda *args: None)
    monkeypatch.setattr(_search.Search, "_round_classes", lambda self: None)
    rng = np.random.default_rng(0)
    x = rng.normal(size=6000)
    score = np.outer(x, [-1, 0, 1]) + rng.normal(size=(6000, 3))
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    y = (score + rng.normal(size=score.shape)).argmax(axis=1)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        loss="hamming",
        constraint=CoarseConstraint(),
        solver=Solver(gap=1e-3),
    )
    assert result.satisfied
    assert result.gap <= 1e-3
    assert result.n_groups > 5000
    assert result.n_variables < 2000


@pytest.mark.parametrize(
    ("constraint", "degree"), [(CoarseConstraint, 3), (CoarseConstraint, 5), (FineConstraint, 3)]
)
def test_rounding_meets_the_gap_of_many_rows_without_an_integer_model(
    constraint, degree, monkeypatch
):
    monkeypatch.setattr(
        HighsSession, "solve_linear", lambda *args, **options: pytest.fail("an integer model")
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=8000)
    score = np.outer(x, [-1, 0, 1]) + rng.normal(size=(8000, 3))
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    y = (score + rng.normal(size=score.shape)).argmax(axis=1)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        loss="hamming",
        constraint=constraint(kernel=PolynomialKernel(degree, standardize=True)),
        solver=Solver(gap=2e-4),
    )
    assert result.satisfied
    assert result.gap <= 2e-4


@pytest.mark.parametrize("mip_rel_gap", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("seed", [0, 1, 14])
@pytest.mark.filterwarnings("ignore:the projection stopped with status")
def test_a_core_proves_a_bound_on_the_whole_problem(seed, mip_rel_gap, monkeypatch):
    # Also one that its solver leaves early.
    x, y, p, _ = problem(seed, 60)
    optimum, scale = full_model(x, y, p, np.ones(len(y)), "hamming", 0.2)
    monkeypatch.setattr(_search, "_FEW", 0)
    monkeypatch.setattr(_search.Exchange, "run", lambda *args: None)
    for size in (30, 60, 90):  # of the 120 moves that there are
        monkeypatch.setattr(_search, "MOST_COLUMNS", size)
        result = project_targets(
            y,
            p,
            sensitive_features=x,
            loss="hamming",
            constraint=CoarseConstraint(),
            solver=Solver("highs", gap=0.0, params={"mip_rel_gap": mip_rel_gap}),
        )
        assert result.satisfied
        assert result.bound - 1e-9 * scale <= optimum <= result.objective + 1e-9 * scale


def test_the_didi_is_summed_over_the_classes():
    x, y, p, w = problem(2, 120)
    group = np.digitize(x, [-0.5, 0.5])
    for weight in (None, w):
        options = {"sensitive_features": group, "sample_weight": weight}
        result = project_targets(
            y, p, loss="hamming", **options, constraint=DidiConstraint(), solver=Solver(gap=1e-2)
        )
        before = didi(y, task="classification", **options)
        after = didi(y, result.targets, task="classification", **options)
        assert result.satisfied
        assert result.threshold == pytest.approx(0.2 * before)
        assert after <= result.threshold + 1e-9


def test_a_smaller_threshold_never_costs_less():
    x, y, p, _ = problem(3, 60)
    costs = [
        project_targets(
            y,
            p,
            sensitive_features=x,
            loss="hamming",
            constraint=CoarseConstraint(threshold),
            solver=Solver(gap=0.0),
        ).objective
        for threshold in (0.1, 0.3, 0.6, 1.0, np.inf)
    ]
    assert (np.diff(costs) <= 1e-7 * len(y)).all()


def test_ties_keep_the_original_target():
    x, y, _, _ = problem(4, 60)
    predictions = np.roll(y, 1)
    result = project_targets(
        y, predictions, sensitive_features=x, loss="hamming", constraint=CoarseConstraint(np.inf)
    )
    assert_array_equal(result.targets, y)


def test_a_row_of_weight_zero_keeps_its_target_and_does_not_count():
    x, y, p, _ = problem(5, 80)
    w = np.ones(80)
    w[60:] = 0
    whole = project_targets(
        y,
        p,
        sensitive_features=x,
        loss="hamming",
        sample_weight=w,
        constraint=CoarseConstraint(),
        solver=Solver(gap=0.0),
    )
    part = project_targets(
        y[:60],
        p[:60],
        sensitive_features=x[:60],
        loss="hamming",
        constraint=CoarseConstraint(),
        solver=Solver(gap=0.0),
    )
    assert_array_equal(whole.targets[60:], y[60:])
    assert whole.objective == pytest.approx(part.objective)


def test_numbers_are_real_targets_unless_a_loss_says_otherwise():
    x, y, _, _ = problem(6, 40)
    with Projection(y, sensitive_features=x, constraint=CoarseConstraint()) as projection:
        assert projection.loss == "squared_error"
    with Projection(
        y.astype(str), sensitive_features=x, constraint=CoarseConstraint()
    ) as projection:
        assert projection.loss == "hamming"


@pytest.mark.parametrize(
    ("y_pred", "message"),
    [
        (np.full((40, 2), 0.5), "probabilities of the 3 classes"),
        (np.full((40, 3), 1.5), "probabilities of the 3 classes"),
        (np.full(40, 7), "must hold the classes of y"),
    ],
)
def test_wrong_predictions_are_named(y_pred, message):
    x, y, _, _ = problem(7, 40)
    with pytest.raises(ValueError, match=message):
        project_targets(
            y, y_pred, sensitive_features=x, loss="hamming", constraint=CoarseConstraint()
        )


@pytest.mark.parametrize("form", [np.ndarray.tolist, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_all_classes_may_come_in_any_form(form, n_classes):
    """They were taken for labels unless they were an array, and refused of two classes."""
    x, y, _, _ = problem(8, 60)
    y = np.minimum(y, n_classes - 1)
    p = np.random.default_rng(8).dirichlet(np.ones(n_classes), size=60)
    options = {"sensitive_features": x, "loss": "log_loss", "constraint": CoarseConstraint()}
    expected = project_targets(y, p[:, 1] if n_classes == 2 else p, **options)
    assert_array_equal(project_targets(y, form(p), **options).targets, expected.targets)


@pytest.mark.parametrize("constraint", [CoarseConstraint(), DidiConstraint()])
def test_a_path_without_thresholds_starts_at_the_class_that_depends_most(constraint):
    """Every class has a reference of its own: numpy could not divide by them."""
    x, y, _, _ = problem(9, 60)
    x = x if isinstance(constraint, CoarseConstraint) else x > 0
    path = projection_path(y, sensitive_features=x, loss="hamming", constraint=constraint)
    assert path.thresholds[0] == pytest.approx(1)
    assert path.objective[0] == 0
    assert path.satisfied.all()


def test_a_class_without_dependence_needs_an_absolute_threshold():
    x = np.tile([-1.0, 1.0], 20)
    y = np.where(np.arange(40) % 4 < 2, 0, np.where(x > 0, 1, 2))
    with pytest.raises(ValueError, match="class 0 of y, which is 0"):
        project_targets(y, sensitive_features=x, loss="hamming", constraint=CoarseConstraint())
    options = {"loss": "hamming", "constraint": CoarseConstraint(0.1, relative=False)}
    assert project_targets(y, sensitive_features=x, **options).satisfied


# --- the estimator


@pytest.mark.parametrize("constraint", [CoarseConstraint, DidiConstraint])
def test_moving_targets_on_wine(constraint):
    wine = load_wine(as_frame=True)
    labels = np.asarray(wine.target_names)[wine.target]
    X = wine.data
    attribute = X["alcohol"] if constraint is CoarseConstraint else X["alcohol"].round()
    model = MovingTargetsClassifier(
        RandomForestClassifier(20, random_state=0),
        constraint(0.4),
        max_iter=2,
        solver=Solver(gap=1e-2),
    )
    held_out = {"X_val": X, "y_val": labels, "sensitive_features_val": attribute}
    model.fit(X, labels, sensitive_features=attribute, **held_out)
    assert_array_equal(model.classes_, np.unique(labels))
    if constraint is CoarseConstraint:
        for label, threshold in zip(model.classes_, model.threshold_, strict=True):
            value = gedi(model.targets_, sensitive_features=attribute, pos_label=label)
            assert value <= threshold + 1e-9
        worst = max(
            gedi(model.targets_, sensitive_features=attribute, pos_label=label)
            for label in model.classes_
        )
        assert model.history_["targets_gedi"][-1] == pytest.approx(worst)
    else:
        value = didi(model.targets_, sensitive_features=attribute, task="classification")
        assert value <= model.threshold_ + 1e-9
    proba = model.predict_proba(X)
    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    assert np.isfinite(model.history_["validation_gedi"]).all()
    assert model.score(X, labels) == model.history_["validation_score"][-1]


@pytest.mark.parametrize(
    "options", [{}, {"loss": "log_loss"}, {"response_method": "predict"}, {"tol": 0.0}], ids=str
)
def test_options_of_the_estimator(options):
    x, y, _, _ = problem(8, 150)
    X = np.c_[x, np.random.default_rng(0).normal(size=(150, 3)) + 4 * np.eye(3)[y]]
    model = MovingTargetsClassifier(
        LogisticRegression(),
        CoarseConstraint(),
        sensitive_columns=0,
        max_iter=3,
        select="best",
        **options,
    ).fit(X, y)
    assert (model.history_["violation"][1:] == 0).all()
    assert len(cross_val_predict(model, X, y, cv=3)) == 150


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_class_without_weight_is_named(n_classes):
    x = np.linspace(-1, 1, 30)
    y = np.array(["a", "b", "c"])[np.arange(30) % n_classes]
    weight = (y != "b") * 1.0
    # Rows of weight 0 are absent, and so is the class: nothing could be placed in it.
    for call in (
        lambda: project_targets(
            y, sensitive_features=x, sample_weight=weight, constraint=CoarseConstraint()
        ),
        lambda: MovingTargetsClassifier().fit(
            x[:, None], y, sensitive_features=x, sample_weight=weight
        ),
    ):
        with pytest.raises(ValueError, match=r"\['b'\] of y occur only|only one class is present"):
            call()


# --- many classes


def twenty_classes(seed, n):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    v = x + rng.normal(size=n)
    return x, np.searchsorted(np.quantile(v, np.linspace(0, 1, 21)[1:-1]), v).astype(str)


@pytest.mark.parametrize("n", [1000, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_twenty_classes(seed, n):
    x, y = twenty_classes(seed, n)
    started = time.process_time()
    # Which flips are found, one more or less, hangs on rounding.
    result = project_targets(
        y,
        sensitive_features=x,
        constraint=CoarseConstraint(0.3),
        solver=Solver(gap=3.5 / n, time_limit=600.0),
    )
    assert time.process_time() - started < 20
    assert result.satisfied
    assert result.status in ("optimal", "gap")
    assert result.gap <= 3.5 / n


@pytest.mark.slow
def test_a_search_that_finds_nothing_nearer_ends_and_says_so():
    # Twenty classes of seven rows or eight leave no room to come within one flip of the relaxation.
    x, y = twenty_classes(0, 150)
    with pytest.warns(ConvergenceWarning, match="not improved for long"):
        result = project_targets(
            y,
            sensitive_features=x,
            constraint=CoarseConstraint(0.3),
            solver=Solver(time_limit=600.0),
        )
    assert result.satisfied
    assert result.seconds < 300
    assert result.bound < result.objective
    # Labels alone cost whole rows.
    assert result.bound == np.ceil(result.bound)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("target_weight", [0.5, 1.0, 0.3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_bound_of_labels_is_what_labels_can_cost(n_classes, target_weight, seed):
    x, y, p, _ = problem(seed, 60, n_classes)
    labels = p.argmax(axis=1)
    options = {"sensitive_features": x, "loss": "hamming", "constraint": CoarseConstraint(0.3)}
    with Projection(y, **options, solver=Solver(gap=0.2)) as projection:
        near = projection.solve(labels, target_weight)
    with Projection(y, **options, solver=Solver(gap=0.0)) as projection:
        exact = projection.solve(labels, target_weight)
    assert near.bound <= exact.objective + 1e-9
    assert exact.objective <= near.objective + 1e-9


def test_the_nearest_moves_lead_to_every_class_by_every_effect():
    # Labels alone: all moves cost the same, and the nearest ones are much alike.
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    y = np.digitize(x + rng.normal(size=1000), np.linspace(-2, 2, 11))
    with Projection(
        y, sensitive_features=x, loss="hamming", constraint=CoarseConstraint(0.3)
    ) as projection:
        problem = projection._problem
        groups = problem._cells(problem._costs(None, 1.0)[0], None)
        search = Search(groups, 1e-3, problem.session, Deadline())
    relaxed, front = search.relaxed, search.nearest[:600]
    group, column = np.divmod(front, groups.n_columns)
    low, high = np.quantile(groups.matrix[0], [0.1, 0.9])
    for c in range(12):
        for moves in (column == c, relaxed.base[group] == c):
            effects = groups.matrix[0, group[moves]]
            assert effects.min() < 0 < effects.max()
            assert len(effects) >= 5
    assert groups.matrix[0, group].min() < low
    assert groups.matrix[0, group].max() > high


@pytest.mark.parametrize(
    "constraint", [CoarseConstraint, pytest.param(DidiConstraint, marks=pytest.mark.slow)]
)
def test_smaller_sets_leave_room_to_round(constraint):
    rng = np.random.default_rng(0)
    numeric = constraint is CoarseConstraint
    x = rng.normal(size=2000) if numeric else rng.integers(0, 4, 2000).astype(str)
    p = rng.dirichlet(np.ones(5), 2000)
    shift = x if numeric else x.astype(float)
    y = np.argmax(np.log(p) + np.outer(shift, np.linspace(-0.5, 0.5, 5)), axis=1)
    options = {"sensitive_features": x, "constraint": constraint(0.3), "loss": "hamming"}
    with Projection(y, **options) as projection:
        problem = projection._problem
        groups = problem._cells(problem._costs(p, 1.0)[0], None)
        search = Search(groups, 1e-3, problem.session, Deadline())
        search._relax()
        search._shrink_sets()
    counts = search.best.counts
    assert_array_equal(counts.sum(axis=1), groups.size)
    assert groups.image.allowed.violation(groups.v(counts)) <= 1e-9
    assert search.relaxed.bound <= groups.objective(counts)
    assert groups.objective(counts) - search.relaxed.bound <= 0.03 * groups.range_of_costs()


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "degree", "seed"), [(3, 5, 0), (3, 5, 1), (10, 3, 0)])
def test_narrow_boxes_of_many_rows_are_reached(n_classes, degree, seed):
    # Every class has forbidden directions, which leave less room than the effect of a row.
    x, y, p = benchmark.problem(24_000, n_classes, seed)
    result = project_targets(
        y,
        p,
        sensitive_features=x,
        loss="hamming",
        constraint=FineConstraint(kernel=PolynomialKernel(degree, standardize=True)),
        solver=Solver("highs", time_limit=600.0),
    )
    assert result.satisfied
    assert result.gap <= 5e-5
