"""Model selection by two numbers: accuracy and fairness."""

from ._best_under_constraint import best_under_constraint
from ._tradeoff_curve import TradeoffCurve, tradeoff_curve

__all__ = ["TradeoffCurve", "best_under_constraint", "tradeoff_curve"]
