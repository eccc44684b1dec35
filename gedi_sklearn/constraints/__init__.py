r"""Which coefficients of targets are allowed, and what a constraint says on given rows.

A constraint knows no solver and no data. On rows it becomes a :class:`FittedConstraint`: a fitted
kernel, and a set

.. math:: \{ c : A c \in C \}

of allowed orthonormal coordinates c, where C is an L1 ball, a box or a Euclidean ball of v = A c.
The sets of :mod:`._sets` own their geometry: their violation, support function, projection and
what a linear model needs of them.
"""

from ._arguments import (
    CARRIED,
    CONSTRAINT_PARAMETERS,
    NAMED_CONSTRAINTS,
    constraint_in_words,
    fit_constraint,
    joint_columns,
    split_attributes,
)
from ._base import Constraint
from ._didi import DidiConstraint
from ._fitted import VIOLATION_TOLERANCE, ColumnConstraint, FittedConstraint
from ._kernel import CoarseConstraint, FineConstraint
from ._product import Product
from ._sets import AllowedSet, GroupBall, SoftSupport
from ._span import CoordinateSet, JointSpan, Multipliers, joint_multipliers

__all__ = [
    "CARRIED",
    "CONSTRAINT_PARAMETERS",
    "NAMED_CONSTRAINTS",
    "VIOLATION_TOLERANCE",
    "AllowedSet",
    "CoarseConstraint",
    "ColumnConstraint",
    "Constraint",
    "CoordinateSet",
    "DidiConstraint",
    "FineConstraint",
    "FittedConstraint",
    "GroupBall",
    "JointSpan",
    "Multipliers",
    "Product",
    "SoftSupport",
    "constraint_in_words",
    "fit_constraint",
    "joint_columns",
    "joint_multipliers",
    "split_attributes",
]
