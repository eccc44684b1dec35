"""What people do every day, for :mod:`benchmarks.overheads`: splines, small fits, one row, imports.

Every pair is measured in one process, but for imports, which take one each.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
    SplineKernel,
    gedi,
    project_targets,
)
from gedi_sklearn.metrics import GediAccumulator
from gedi_sklearn.projection import Projection

Run = Callable[[], object]
SLOPE, SPLINE = CoarseConstraint(kernel=1), DependenceConstraint()
N_FEATURES, SIZES = 10, (1_000, 10_000, 100_000, 1_000_000)
IMPORTED = {
    "`import gedi_sklearn.metrics` after scikit-learn": ("sklearn", "gedi_sklearn.metrics"),
    "`import gedi_sklearn` after its `linear_model`": ("sklearn.linear_model", "gedi_sklearn"),
}


class Case(NamedTuple):
    """A function of the library and what it is compared to.

    Attributes
    ----------
    what, yardstick : str
        What is measured, and what that is.
    pairs : iterator of tuple of float
        CPU seconds of both, one run after the other.
    """

    what: str
    yardstick: str
    pairs: Iterator[tuple[float, float]]


def seconds(run: Run) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def in_turn(own: Run, plain: Run, repeats: int) -> Iterator[tuple[float, float]]:
    """Yield the seconds of both, after a run of each that is not counted."""
    own(), plain()
    for _ in range(repeats):
        yield seconds(own), seconds(plain)


def fastest(run: Run, repeats: int) -> float:
    """Return the seconds of the fastest run, of as many as two seconds hold."""
    taken = [seconds(run)]
    while len(taken) < repeats and sum(taken) < 2.0:
        taken.append(seconds(run))
    return min(taken)


def many(run: Run, times: int) -> Run:
    """Return the same, often enough for a clock."""
    return lambda: [run() for _ in range(times)]


def table(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, the first of which is the attribute, real targets and two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    y = X @ rng.uniform(0.2, 1.0, N_FEATURES) + X[:, 0] ** 2 + rng.normal(size=n)
    return X, y, (y > np.median(y)).astype(int)


def regressor(constraint: Any, **options: Any) -> ProjectedRegressor:
    return ProjectedRegressor(LinearRegression(), constraint, sensitive_columns=0, **options)


def classifier(constraint: Any) -> ProjectedClassifier:
    return ProjectedClassifier(LogisticRegression(), constraint, sensitive_columns=0)


def moving_targets() -> MovingTargetsRegressor:
    return MovingTargetsRegressor(LinearRegression(), SLOPE, sensitive_columns=0)


def in_chunks(kernel: Any, x: np.ndarray, y: np.ndarray, size: int) -> Run:
    def run() -> None:
        accumulator = GediAccumulator(kernel)
        for start in range(0, len(x), size):
            rows = slice(start, start + size)
            accumulator.update(y[rows], sensitive_features=x[rows])

    return run


def spline(x: np.ndarray, y: np.ndarray) -> Run:
    return lambda: gedi(y, sensitive_features=x, norm="sd", kernel=SplineKernel())


def splines(repeats: int) -> Iterator[Case]:
    """Yield indicators by the spline, and accumulators."""
    rng = np.random.default_rng(0)
    for name, draw in (("uniform", rng.uniform), ("lognormal", rng.lognormal)):
        x = draw(size=1_000_000)
        y = x + rng.normal(size=len(x))
        yield Case(
            f"`gedi`, spline and sd, {name} attribute, 1,000,000 rows",
            "`gedi`, degree 5",
            in_turn(
                spline(x, y), lambda x=x, y=y: gedi(y, sensitive_features=x, kernel=5), repeats
            ),
        )
    x, y = rng.normal(size=(2, 4_000_000))
    yield Case(
        "`GediAccumulator`, spline, 4,000,000 rows",
        "a sum of x and one of y",
        in_turn(
            in_chunks(SplineKernel(), x, y, len(x)), lambda: (x.sum(), y.sum()), min(repeats, 5)
        ),
    )
    x, y = x[:1_000_000], y[:1_000_000]
    yield Case(
        "`GediAccumulator`, degree 5, 1,000,000 rows, chunks of 10,000",
        "in one chunk",
        in_turn(in_chunks(5, x, y, 10_000), in_chunks(5, x, y, len(x)), repeats),
    )


def fits(repeats: int) -> Iterator[Case]:
    """Yield small fits, and what they leave on disk."""
    for n in (500, 5_000):
        X, _, y = table(n)
        yield Case(
            f"`ProjectedClassifier`, logistic regression, spline and sd, {n:,} rows",
            "with the slope",
            in_turn(
                partial(classifier(SPLINE).fit, X, y),
                partial(classifier(SLOPE).fit, X, y),
                min(repeats, 15),
            ),
        )
    X, y, _ = table(500)
    plain = partial(LinearRegression().fit, X, y)
    for name, model in {
        "`ProjectedRegressor`, slope, `cv='train'`": regressor(SLOPE, cv="train"),
        "`ProjectedRegressor`, slope, `cv=5`": regressor(SLOPE),
        "`ProjectedRegressor`, spline and sd, `cv=5`": regressor(SPLINE),
        "`ProjectedRegressor`, slope, `confidence=.95`": regressor(SLOPE, confidence=0.95),
        "`MovingTargetsRegressor`, slope": moving_targets(),
    }.items():
        own = partial(model.fit, X, y)
        yield Case(f"{name}, 500 rows", "its learner's fit", in_turn(own, plain, repeats))
    for name, constraint in (("slope", SLOPE), ("spline and sd", SPLINE)):
        model = regressor(constraint).fit(X, y)
        yield Case(
            f"`predict` of `ProjectedRegressor`, {name}, a row",
            "its learner's `predict`",
            in_turn(
                many(partial(model.predict, X[:1]), 200),
                many(partial(model.estimator_.predict, X[:1]), 200),
                repeats,
            ),
        )
    for n in (500, 20_000):
        X, y, _ = table(n)
        size = len(pickle.dumps(regressor(SLOPE).fit(X, y))) / 1000
        yield Case(f"a pickle of `ProjectedRegressor`, {n:,} rows", "a kB", iter([(size, 1.0)]))


def verdict_of(X: np.ndarray, y: np.ndarray) -> Run:
    """Return what judges projected targets."""
    with Projection(y, sensitive_features=X[:, 0], constraint=SLOPE) as projection:
        return partial(projection.verdict, projection.solve().targets)


def verdicts(repeats: int) -> Iterator[Case]:
    """Yield the share of a projection of real targets that its verdict takes."""
    for n in (200, 2_000, 20_000):
        X, y, _ = table(n)
        all_of_it = partial(project_targets, y, sensitive_features=X[:, 0], constraint=SLOPE)
        yield Case(
            f"the verdict of `project_targets`, slope, {n:,} rows",
            "all of it",
            in_turn(many(verdict_of(X, y), 5), many(all_of_it, 5), repeats),
        )


def imports(repeats: int) -> Iterator[Case]:
    """Yield what an import takes in a new process, in seconds."""
    for what, (before, own) in IMPORTED.items():
        code = (
            f"import {before}, time; start = time.process_time(); import {own}; "
            "print(time.process_time() - start)"
        )
        command = [sys.executable, "-c", code]

        def pair(command: list[str] = command) -> tuple[float, float]:
            return float(subprocess.run(command, capture_output=True, check=True).stdout), 1.0

        pair()  # compiles
        yield Case(what, "a second", (pair() for _ in range(min(repeats, 5))))


def grown(kinds: dict[str, Callable[..., Run]], repeats: int) -> Iterator[Case]:
    """Yield each at ten times the rows, in units of the same at a tenth of them.

    Every size is measured once for both.
    """
    tables = {n: table(n) for n in SIZES}
    for name, kind in kinds.items():
        taken = {n: fastest(kind(*tables[n]), min(repeats, 7)) for n in SIZES}
        for fewer, n in pairwise(SIZES):
            yield Case(f"{name}, {n:,} rows", f"{fewer:,} rows", iter([(taken[n], taken[fewer])]))


def learners(repeats: int) -> Iterator[Case]:
    """Yield what learners take alone, for the predictions that projected estimators start from."""
    folds = KFold(5, shuffle=True, random_state=0)
    linear, logistic = LinearRegression(), LogisticRegression()
    yield from grown(
        {
            "`cross_val_predict` of `LinearRegression`": (
                lambda X, y, _: partial(cross_val_predict, linear, X, y, cv=folds)
            ),
            "`cross_val_predict` of `LogisticRegression`": lambda X, _, y: partial(
                cross_val_predict, logistic, X, y, cv=folds, method="predict_proba"
            ),
        },
        repeats,
    )


def growth(repeats: int) -> Iterator[Case]:
    """Yield how the work of every day grows with the rows; see :func:`grown`."""
    kinds: dict[str, Callable[..., Run]] = {
        "`gedi`, spline and sd": lambda X, y, _: spline(X[:, 0], y),
        "`GediAccumulator`, spline": lambda X, y, _: in_chunks(SplineKernel(), X[:, 0], y, len(y)),
        "`GediAccumulator`, degree 5, chunks of 1,000": (
            lambda X, y, _: in_chunks(5, X[:, 0], y, 1_000)
        ),
        "`ProjectedClassifier`, spline and sd": lambda X, _, y: partial(
            classifier(SPLINE).fit, X, y
        ),
        "`ProjectedClassifier`, slope": lambda X, _, y: partial(classifier(SLOPE).fit, X, y),
        "`ProjectedRegressor`, spline and sd": lambda X, y, _: partial(regressor(SPLINE).fit, X, y),
        "`ProjectedRegressor`, slope, `confidence=.95`": (
            lambda X, y, _: partial(regressor(SLOPE, confidence=0.95).fit, X, y)
        ),
        "`MovingTargetsRegressor`, slope": lambda X, y, _: partial(moving_targets().fit, X, y),
        "`project_targets`, spline and sd, real targets": lambda X, y, _: partial(
            project_targets, y, sensitive_features=X[:, 0], constraint=SPLINE
        ),
        "the verdict of `project_targets`, slope": lambda X, y, _: verdict_of(X, y),
        "`predict` of `ProjectedRegressor`, spline and sd": lambda X, y, _: partial(
            regressor(SPLINE).fit(X, y).predict, X
        ),
    }
    yield from grown(kinds, repeats)
