"""Sets of allowed values, the blocks that make these values of targets, and the span of several.

What constraints, solvers and estimators need of v = A c; nothing here knows an estimator.
"""

from ._block import Block, capacity, coefficient_block, deviation_block
from ._groups import GroupBall, group_block
from ._sets import AllowedSet, Ball, Box, L1Ball, SoftSupport
from ._span import Multipliers, Product, Span, joint_multipliers, pieces
