"""Fits in threads of the user's: what the whole process shares stays as it was."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression

from gedi_sklearn import (
    CoarseConstraint,
    FineConstraint,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
    Solver,
    project_targets,
)
from gedi_sklearn.metrics import didi, gedi, hgr
from gedi_sklearn.report import fairness_report

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
T = X.sum(axis=1) + RNG.normal(size=300)
Y = (T > 0).astype(int)
THREE = np.digitize(T, [-1, 1])


def targets(y, **options):
    options = {"constraint": CoarseConstraint(), "solver": "highs", **options}
    return project_targets(y, sensitive_features=X[:, 0], **options).targets


def predictions(model, y):
    return model.set_params(sensitive_columns=0, cv="train").fit(X, y).predict(X)


CALLS = [
    lambda: targets(T),
    lambda: targets(T, loss="absolute_error"),
    lambda: targets(T, target_bounds=(-7, None), constraint=CoarseConstraint(0.1)),
    lambda: targets(Y),
    lambda: targets(
        Y[:100].repeat(3),
        constraint=FineConstraint(kernel=2, slack=0.1),
        solver=Solver("highs", gap=0.0),
    ),
    lambda: targets(THREE),
    lambda: predictions(
        MovingTargetsRegressor(LinearRegression(), CoarseConstraint(), max_iter=2), T
    ),
    lambda: predictions(
        MovingTargetsClassifier(LogisticRegression(), CoarseConstraint(), max_iter=2), Y
    ),
    lambda: predictions(ProjectedRegressor(LinearRegression(), CoarseConstraint()), T),
    lambda: predictions(ProjectedClassifier(LogisticRegression(), CoarseConstraint()), Y),
]
MEASURES = [
    lambda: gedi(T, sensitive_features=X[:, 0], kernel=2),
    lambda: didi(Y, THREE == 1, sensitive_features=THREE),
    lambda: hgr(T, sensitive_features=X[:, 0]),
    lambda: fairness_report(T, sensitive_features=X[:, 0], n_resamples=3).to_dict(),
]


@pytest.mark.parametrize("repetition", range(3))
def test_six_threads_leave_the_filters_as_they_were(repetition):
    alone = [call() for call in CALLS]
    before = list(warnings.filters)
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda call: call(), CALLS * 2))
    assert warnings.filters == before
    for number, found in enumerate(together):
        assert_array_equal(found, alone[number % len(CALLS)])


@pytest.mark.filterwarnings("ignore:.*lie outside the grid")
@pytest.mark.parametrize("call", CALLS + MEASURES)
def test_only_scikit_learn_ever_changes_filters_for_a_while(monkeypatch, call):
    seen = set()

    class Recorded(warnings.catch_warnings):
        def __init__(self, *args, **kwargs):
            seen.add(sys._getframe(1).f_globals["__name__"].partition(".")[0])
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(warnings, "catch_warnings", Recorded)
    call()
    assert seen <= {"sklearn"}
