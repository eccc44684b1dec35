"""Displays of a dependence, its coefficients and a fit, like scikit-learn's (extra `plot`).

A display holds arrays alone; matplotlib is imported by what draws.
"""

from ._curves import MovingTargetsHistoryDisplay, TradeoffDisplay
from ._dependence import CutsDisplay, DependenceDisplay, GediCoefficientsDisplay

__all__ = [
    "CutsDisplay",
    "DependenceDisplay",
    "GediCoefficientsDisplay",
    "MovingTargetsHistoryDisplay",
    "TradeoffDisplay",
]
