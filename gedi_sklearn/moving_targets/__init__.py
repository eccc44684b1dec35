"""Moving Targets: any scikit-learn model, fitted on targets that satisfy a constraint."""

from ._estimators import MovingTargetsClassifier, MovingTargetsRegressor

__all__ = ["MovingTargetsClassifier", "MovingTargetsRegressor"]
