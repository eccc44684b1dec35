"""The learners of the comparison on unseen data, by task kind: of a classifier, of a regressor."""

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

# Fixed for all tasks, after a look at the training rows of the first fold.
EXTRA_TREES = {"max_features": 1 / 3, "min_samples_leaf": 3, "random_state": 0}
# The best of the support vector regression, by three folds of the rows it is given.
SVR_GRID = {"svr__C": [0.1, 0.3, 1.0, 3.0], "svr__gamma": [0.001, 0.003]}
FOLDS: dict[str, Any] = {"n_splits": 3, "shuffle": True, "random_state": 0}


def _extra_trees_classifier() -> ExtraTreesClassifier:
    return ExtraTreesClassifier(50, **EXTRA_TREES)


def _extra_trees_regressor() -> ExtraTreesRegressor:
    return ExtraTreesRegressor(100, **EXTRA_TREES)


def _small_boosting() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        learning_rate=0.03, max_iter=200, max_leaf_nodes=8, random_state=0
    )


def _stacked_classifier() -> StackingClassifier:
    """Combine cross-fitted probabilities by logistic regression."""
    parts = [
        ("boosting", HistGradientBoostingClassifier(random_state=0)),
        ("extra trees", _extra_trees_classifier()),
        ("linear", make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))),
    ]
    return StackingClassifier(parts, LogisticRegression(), cv=StratifiedKFold(**FOLDS))


def _stacked_regressor() -> StackingRegressor:
    """Combine cross-fitted predictions by non-negative least squares."""
    machine = make_pipeline(StandardScaler(), SVR(epsilon=0.05))
    parts = [
        ("boosting", _small_boosting()),
        ("extra trees", _extra_trees_regressor()),
        ("machine", GridSearchCV(machine, SVR_GRID, cv=KFold(**FOLDS))),
        ("linear", Ridge(10.0)),
    ]
    return StackingRegressor(parts, LinearRegression(positive=True), cv=KFold(**FOLDS))


# HistGB is the default of scikit-learn; "small" has more and smaller steps of smaller trees,
# which suits the 1,993 rows of Communities.
LEARNERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "RF": (
        lambda: RandomForestClassifier(random_state=0),
        lambda: RandomForestRegressor(random_state=0),
    ),
    "GB": (
        lambda: GradientBoostingClassifier(random_state=0),
        lambda: GradientBoostingRegressor(random_state=0),
    ),
    "HistGB": (
        lambda: HistGradientBoostingClassifier(random_state=0),
        lambda: HistGradientBoostingRegressor(random_state=0),
    ),
    "HistGB-small": (
        lambda: HistGradientBoostingClassifier(max_leaf_nodes=8, random_state=0),
        _small_boosting,
    ),
    "linear": (lambda: LogisticRegression(max_iter=2000), lambda: Ridge(10.0)),
    "extra trees": (_extra_trees_classifier, _extra_trees_regressor),
    "stack": (_stacked_classifier, _stacked_regressor),
}
