r"""Which coefficients of the projected targets are allowed.

A constraint knows no solver and no data: it turns, once the kernel is fitted and the reference is
known, into an :class:`AllowedSet`

.. math:: \{ s : \|V s\|_1 \le q \} \quad\text{or}\quad \{ s : |V s| \le b \}

in the standardised coefficients s of :mod:`gedi_sklearn.kernels`, where a projection reads off
its linear rows, its membership, its violation and its support function.
"""

from ._base import AllowedSet, Constraint, check_numbers_or_inf
from ._didi import DidiConstraint, group_rows
from ._kernel import CoarseConstraint, FineConstraint

__all__ = [
    "AllowedSet",
    "CoarseConstraint",
    "Constraint",
    "DidiConstraint",
    "FineConstraint",
    "check_numbers_or_inf",
    "group_rows",
]
