"""Moving Targets: any scikit-learn model, fitted on targets that satisfy a constraint.

A learner and a master take turns (Detassis, Lombardi and Milano, 2021). The master projects: it
finds the targets nearest to the learner's predictions and to the original targets among those
that satisfy the constraint. The learner, any scikit-learn estimator, is fitted on them afresh.
"""

from ._estimators import (
    DualTargetsClassifier,
    DualTargetsRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
)

__all__ = [
    "DualTargetsClassifier",
    "DualTargetsRegressor",
    "MovingTargetsClassifier",
    "MovingTargetsRegressor",
]
