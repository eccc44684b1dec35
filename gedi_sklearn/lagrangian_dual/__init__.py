"""Neural networks trained on the Lagrangian dual of the constraint (extra `torch`)."""

from ._estimators import LagrangianDualClassifier, LagrangianDualRegressor

__all__ = ["LagrangianDualClassifier", "LagrangianDualRegressor"]
