"""What is left on new rows by the order of the file: ``python -m benchmarks.sorted_files --help``.

The same rows, shuffled, sorted by the attribute, by y and by another column, and in blocks of time.
Every estimator that has `cv` is fitted on each file, and measured on 20,000 new rows. Folds that
cut a sorted file into pieces show up as differences between the columns.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor

from benchmarks._tables import insert_between, markdown
from gedi_sklearn import (
    ConstrainedBoostingClassifier,
    ConstrainedBoostingRegressor,
    DependenceConstraint,
    DualTargetsClassifier,
    DualTargetsRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn.metrics import gedi

PAGE = Path(__file__).parents[1] / "docs" / "sorted_files_benchmark.md"
BEGIN = "<!-- sorted_files: begin (written by benchmarks.sorted_files) -->"
END = "<!-- sorted_files: end -->"
N_ROWS, N_NEW, N_PERIODS = 1500, 20_000, 12
THRESHOLD = 0.2
FEW = {"max_iter": 30, "max_leaf_nodes": 8, "random_state": 0}
SMALL = HistGradientBoostingRegressor(**FEW)


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X with the attribute, a skill and another column that goes with it; y; the period."""
    rng = np.random.default_rng(seed)
    age, skill = rng.uniform(20, 60, n), rng.normal(size=n)
    other = age / 15 + rng.normal(size=n)
    period = rng.integers(0, N_PERIODS, n)
    level = np.random.default_rng(12345).normal(size=N_PERIODS)  # of each period, always the same
    y = 0.05 * age + skill + 0.3 * other + 0.5 * level[period] + 0.3 * rng.normal(size=n)
    return np.c_[age, skill, other], y, period


ORDERS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "shuffled": lambda X, y, period: np.arange(len(y)),
    "by attribute": lambda X, y, period: np.argsort(X[:, 0]),
    "by y": lambda X, y, period: np.argsort(y),
    "by another column": lambda X, y, period: np.argsort(X[:, 2]),
    "blocks of time": lambda X, y, period: np.argsort(period, kind="stable"),
}


def models(is_regression: bool) -> dict[str, Any]:
    """Return the estimators that have `cv`, by what they are called in the table."""
    learner = SMALL if is_regression else HistGradientBoostingClassifier(**FEW)
    common = {"constraint": DependenceConstraint(THRESHOLD), "sensitive_columns": 0}
    projected = ProjectedRegressor if is_regression else ProjectedClassifier
    moving = MovingTargetsRegressor if is_regression else MovingTargetsClassifier
    dual = DualTargetsRegressor if is_regression else DualTargetsClassifier
    boosting = ConstrainedBoostingRegressor if is_regression else ConstrainedBoostingClassifier
    return {
        f"{projected.__name__}": projected(learner, cv=5, **common),
        f"{projected.__name__}, blind": projected(
            learner,
            cv=5,
            sensitive_at_predict=False,
            attribute_estimator=MultiOutputRegressor(clone(SMALL)),
            drop_sensitive=True,
            **common,
        ),
        f"{moving.__name__}": moving(learner, cv=5, max_iter=3, **common),
        f"{dual.__name__}": dual(learner, cv=5, max_iter=5, **common),
        f"{boosting.__name__}": boosting(cv=5, **common),
        f"{projected.__name__}, cv=KFold(5)": projected(learner, cv=KFold(5), **common),
    }


def share(model: Any, rows: np.ndarray, seed: int) -> float:
    """Return what predictions for new rows keep of the dependence of y."""
    X, y, _ = draw(N_ROWS, seed)
    new, target, _ = draw(N_NEW, 10_000 + seed)
    if is_classifier(model):
        cut = float(np.median(draw(N_NEW, 99)[1]))
        y, target = (y > cut).astype(int), (target > cut) * 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few iterations, and of what the table shows
        predicted = model.fit(X[rows], y[rows]).predict(new)
    how = {"sensitive_features": new[:, 0], "norm": "sd", "kernel": "spline", "relative": True}
    return gedi(target, predicted * 1.0, **how)


def lines(n_seeds: int) -> Iterator[list[str]]:
    """Yield a row for each estimator: means over files."""
    for is_regression in (True, False):
        for name, model in models(is_regression).items():
            cells = []
            for order in ORDERS.values():
                found = [share(model, order(*draw(N_ROWS, seed)), seed) for seed in range(n_seeds)]
                cells.append(f"{np.mean(found):.2f}")
            print(name, *cells, flush=True)
            yield [name, *cells]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sorted_files")
    parser.add_argument("--files", type=int, default=4, help="number of files (default: 4)")
    parser.add_argument("--docs", action="store_true", help=f"write the table of docs/{PAGE.name}")
    options = parser.parse_args(argv)
    table = markdown(["estimator, cv=5", *ORDERS], list(lines(options.files)))
    print(table)
    if options.docs:
        page = PAGE.read_text(encoding="utf-8")
        text = f"Shares left of {THRESHOLD} asked, means of {options.files} files.\n\n{table}"
        page = insert_between(page, BEGIN, END, text, page=f"docs/{PAGE.name}")
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
