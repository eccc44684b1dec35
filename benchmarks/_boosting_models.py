"""Constrained boosting as the comparisons use it: its trees, chosen inside the training rows."""

from typing import Any

from sklearn.model_selection import GridSearchCV, ShuffleSplit

from benchmarks.tasks import Task
from gedi_sklearn import ConstrainedBoostingClassifier, ConstrainedBoostingRegressor

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


class Search(GridSearchCV):
    """A grid search that knows how many runs of boosting it took."""

    @property
    def n_fits_(self) -> int:
        return (len(self.cv_results_["params"]) + 1) * (self.estimator.cv or 1)


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
    return kind(backend, degree=task.degree, sensitive_columns=column, **options)


def searched_model(
    task: Task, column: int, *, constraint: str, cv: int | None, **options: Any
) -> Search:
    """Return the estimator with the trees of the best score on a fifth of its rows."""
    model = model_of(task, column, constraint=constraint, cv=cv, **options)
    drawn = drawn_of(task, constraint, cv)
    grid = [
        {name: [value] for name, value in own.items()}
        | {"backend_params": [own["backend_params"] | drawn]}
        for own in trees_of(task)
    ]
    return Search(model, grid, cv=ShuffleSplit(1, test_size=0.2, random_state=0))


def drawn_of(task: Task, constraint: str, cv: int | None) -> dict[str, Any]:
    """Return the draws of columns and rows.

    With "fine" the coefficients that are forced to 0 rest on the attribute's own column, which
    most splits would not see; parallel trees make up for it.
    """
    parallel = {} if cv else PARALLEL[task.dataset]
    if constraint == "fine" and not parallel:
        return {}
    return DRAWN[task.dataset] | parallel
