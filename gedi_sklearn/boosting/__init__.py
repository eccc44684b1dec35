"""Gradient boosting whose multipliers ascend while the trees grow (extra `boosting`)."""

from ._estimators import ConstrainedBoostingClassifier, ConstrainedBoostingRegressor

__all__ = ["ConstrainedBoostingClassifier", "ConstrainedBoostingRegressor"]
