"""Sets of allowed values, their product, and the joint span of several kernels.

What constraints, solvers and estimators need of v = A c; nothing here knows an estimator.
"""

from ._groups import deviations
from ._product import Product, pieces
from ._sets import AllowedSet, Ball, Box, GroupBall, L1Ball, SoftSupport
from ._span import CoordinateSet, GroupCoordinates, JointSpan, Multipliers, joint_multipliers

__all__ = [
    "AllowedSet",
    "Ball",
    "Box",
    "CoordinateSet",
    "GroupBall",
    "GroupCoordinates",
    "JointSpan",
    "L1Ball",
    "Multipliers",
    "Product",
    "SoftSupport",
    "deviations",
    "joint_multipliers",
    "pieces",
]
