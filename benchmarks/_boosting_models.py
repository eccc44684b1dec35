"""Constrained boosting as the comparisons use it: its settings, chosen inside the training rows."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit

from benchmarks.tasks import Task
from gedi_sklearn import ConstrainedBoostingClassifier, ConstrainedBoostingRegressor
from gedi_sklearn.model_selection import tradeoff_curve

# Rounds, learning rate and leaves. The rows of Communities are few, and its trees small.
SETTINGS = {
    "adult": ((150, 0.1, 31), (300, 0.1, 16)),
    "crimes": ((200, 0.05, 8), (400, 0.03, 8)),
}
# What trees see of the columns, many of which say the same. The timed runs see them all.
DRAWN = {
    "adult": {"colsample_bynode": 0.3},
    "crimes": {"colsample_bynode": 0.2, "max_bin": 128},
}
# The rounds of few rows without folds, whose boosters are several anyway.
PARALLEL = {"adult": {}, "crimes": {"num_parallel_tree": 4, "subsample": 0.8}}
# Shares of a limit for new rows that are tried as thresholds.
SHARES = (0.7, 1.0)


class Tuned(BaseEstimator):
    """Boosting with the trees of the best score, of one run, on a fifth of the training rows.

    Where `is_within`, the threshold is chosen as well. Five folds of the training rows say
    what the indicator of rows held out is at two thresholds; the line through these is read at the
    limit, which is the threshold of `estimator`.
    """

    def __init__(
        self,
        estimator: Any,
        grid: list[dict[str, list[Any]]],
        *,
        is_within: bool = False,
        confidence: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.is_within = is_within
        self.confidence = confidence

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Tuned":
        fifth = ShuffleSplit(1, test_size=0.2, random_state=0)
        one_run = clone(self.estimator).set_params(cv=None)
        search = GridSearchCV(one_run, self.grid, cv=fifth, refit=False).fit(X, y)
        model = clone(self.estimator).set_params(**search.best_params_)
        n_models = 1
        if self.is_within:
            thresholds = [share * model.constraint.threshold for share in SHARES]
            folds = KFold(5, shuffle=True, random_state=0)
            curve = tradeoff_curve(model, X, y, thresholds=thresholds, cv=folds)
            line = np.polyfit(curve.gedi, curve.thresholds, 1)
            chosen = np.clip(
                np.polyval(line, model.constraint.threshold), thresholds[0], thresholds[-1]
            )
            model.set_params(constraint__threshold=float(chosen))
            n_models += curve.n_fits
        self.estimator_ = model.set_params(confidence=self.confidence).fit(X, y)
        self.n_fits_ = len(search.cv_results_["params"]) + n_models * (model.cv or 1)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.estimator_.predict(X)


def trees_of(task: Task, backend: str = "xgboost") -> list[dict[str, Any]]:
    """Return the parameters of the trees that are compared inside the training folds."""
    leaves = "max_leaves" if backend == "xgboost" else "num_leaves"
    return [
        {"n_estimators": rounds, "learning_rate": rate, "backend_params": {leaves: most}}
        for rounds, rate, most in SETTINGS[task.dataset]
    ]


def model_of(task: Task, column: int, backend: str = "xgboost", **options: Any) -> Any:
    """Return the estimator of a task."""
    kind = ConstrainedBoostingRegressor if task.is_regression else ConstrainedBoostingClassifier
    return kind(backend, sensitive_columns=column, **options)


def tuned_model(
    task: Task,
    column: int,
    *,
    is_within: bool = False,
    confidence: float | None = None,
    **options: Any,
) -> Tuned:
    """Return the estimator of a task with settings that are chosen inside its training rows."""
    model = model_of(task, column, **options)
    drawn = DRAWN[task.dataset] | ({} if model.cv else PARALLEL[task.dataset])
    grid = [
        {name: [value] for name, value in own.items()}
        | {"backend_params": [own["backend_params"], own["backend_params"] | drawn]}
        for own in trees_of(task)
    ]
    return Tuned(model, grid, is_within=is_within, confidence=confidence)
