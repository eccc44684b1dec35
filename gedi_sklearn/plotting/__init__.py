"""Displays of a dependence, its coefficients and a fit, like scikit-learn's (extra `plot`).

A display holds arrays alone; matplotlib is imported by what draws.
"""

from ._coefficients import GediCoefficientsDisplay
from ._curves import MovingTargetsHistoryDisplay, TradeoffDisplay
from ._cuts import CutsDisplay
from ._dependence import DependenceDisplay

__all__ = [
    "CutsDisplay",
    "DependenceDisplay",
    "GediCoefficientsDisplay",
    "MovingTargetsHistoryDisplay",
    "TradeoffDisplay",
]
