"""Gradient boosting whose multipliers ascend while the trees grow (extra `boosting`)."""

from ._classifier import ConstrainedBoostingClassifier
from ._regressor import ConstrainedBoostingRegressor

__all__ = ["ConstrainedBoostingClassifier", "ConstrainedBoostingRegressor"]
