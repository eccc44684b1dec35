r"""Constraints on the coefficients of targets, and their values on given rows.

A constraint knows no solver and no data. On rows it becomes a :class:`FittedConstraint`: a fitted
kernel, and a set

.. math:: \{ c : A c \in C \}

of allowed orthonormal coordinates c, where C is an L1 ball, a box or a Euclidean ball of v = A c.
The sets of :mod:`gedi_sklearn._geometry` own their geometry: their violation, support function,
projection and what a linear model needs of them.
"""

from .._geometry import GroupBall, Product, SoftSupport
from ._arguments import (
    bounded_output,
    check_constraint,
    constraint_in_words,
    fit_constraint,
    joint_columns,
    refit_constraint,
    split_attributes,
)
from ._constraints import *  # noqa: F403 — its exports are listed there alone
from ._constraints import __all__
from ._cuts import FittedCuts
from ._fitted import VIOLATION_TOLERANCE, ColumnConstraint, FittedConstraint
