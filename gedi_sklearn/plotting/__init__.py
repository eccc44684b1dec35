"""Displays of a dependence, its coefficients and a fit, like scikit-learn's (extra `plot`).

A display holds arrays alone; matplotlib is imported by what draws.
"""

from ._coefficients import GediCoefficientsDisplay
from ._cuts import CutsDisplay
from ._dependence import DependenceDisplay
from ._history import MovingTargetsHistoryDisplay
from ._tradeoff import TradeoffDisplay

__all__ = [
    "CutsDisplay",
    "DependenceDisplay",
    "GediCoefficientsDisplay",
    "MovingTargetsHistoryDisplay",
    "TradeoffDisplay",
]
