"""Neural networks trained on the Lagrangian dual of the constraint (extra `torch`)."""

from ._classifier import LagrangianDualClassifier
from ._regressor import LagrangianDualRegressor

__all__ = ["LagrangianDualClassifier", "LagrangianDualRegressor"]
