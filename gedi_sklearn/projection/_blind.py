r"""Corrections that do not see the attribute: functions of m(X) = E[q(x) | X].

q is the orthonormal basis of the kernel. A correction that is a function of X moves the
coefficients by E[q m'] β, so the least one that satisfies a constraint is a problem in k variables
(real targets), or the dual of the projection with q replaced by m (two classes: for labels that
depend on X alone, E[q z] = E[m z]).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..exceptions import InfeasibleProjectionError
from ..kernels import KernelDesign
from ._bound import AllowedProduct, Bound, describe
from ._several import nearest_in_product

__all__ = [
    "BlindDesign",
    "blind_bound",
    "explained_shares",
    "least_blind_correction",
    "too_blind",
]

# Beyond this condition X cannot tell the columns of the kernel apart.
_MAX_CONDITION = 1e8
# How many times larger than with the attribute the correction may be: at one column, the
# reciprocal of the correlation of m(X) with the attribute.
_MAX_PRICE = 10.0


class BlindDesign(KernelDesign):
    """A kernel whose orthonormal columns are replaced by what X says of them.

    Parameters
    ----------
    design : KernelDesign
        The kernel on the rows.
    expected : ndarray of shape (n, k)
        m(X), for rows that its learner has not seen.
    """

    def __init__(self, design: KernelDesign, expected: np.ndarray) -> None:
        super().__init__(design.fitted, design.values, design.weight)
        self.expected = expected

    @property
    def keys(self) -> np.ndarray:
        """What a row of the columns is a function of."""
        return self.expected

    def orthonormal_of(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows of m(X)."""
        return self.expected[rows]


def explained_shares(bound: Bound, expected: np.ndarray) -> np.ndarray:
    """Return R² of m(X) for each orthonormal column: what X says of the attribute.

    Parameters
    ----------
    bound : Bound
        The constraint on the rows.
    expected : ndarray of shape (n, k)
        m(X) of the orthonormal columns, for rows that its learner has not seen.

    Returns
    -------
    ndarray of shape (k,)
    """
    design = bound.design
    share = np.reshape(design.shares(slice(None)), (-1, 1))
    q = design.orthonormal
    return 1 - (share * (q - expected) ** 2).sum(axis=0) / (share * q**2).sum(axis=0)


def blind_bound(bound: Bound, expected: np.ndarray) -> Bound:
    """Return a constraint in which the kernel is replaced by m(X), shape (n, k)."""
    blind = copy.copy(bound)
    blind.design = BlindDesign(bound.design, expected)
    return blind


def least_blind_correction(bound: Bound, p: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the β of least ‖Mβ‖ with p + Mβ allowed.

    Parameters
    ----------
    bound : Bound
        The constraint on the rows.
    p : ndarray of shape (n,)
        Predictions.
    expected : ndarray of shape (n, k)
        M, one row m(X) a row.

    Returns
    -------
    ndarray of shape (k,)

    Raises
    ------
    InfeasibleProjectionError
        If X says too little of the attribute to correct for it.
    """
    design = bound.design
    v = bound.allowed.rows @ design.standardized(p)
    share = np.broadcast_to(np.reshape(design.shares(slice(None)), (-1, 1)), (len(p), 1))
    moved = np.column_stack([design.standardized(column) for column in expected.T])
    factor = np.asarray(np.linalg.qr(expected * np.sqrt(share), mode="r"))
    if np.linalg.cond(factor) > _MAX_CONDITION:
        raise too_blind(bound)
    rows = np.linalg.solve(factor.T, (bound.allowed.rows @ moved).T).T
    allowed = AllowedProduct((bound.allowed,))
    move, _ = nearest_in_product(rows, allowed, v)
    aware, _ = nearest_in_product(bound.allowed.rows @ bound.kernel.R_inverse, allowed, v)
    if np.linalg.norm(move) > _MAX_PRICE * np.linalg.norm(aware):
        raise too_blind(bound)
    return np.linalg.solve(factor, move)


def too_blind(bound: Bound) -> InfeasibleProjectionError:
    facts: dict[str, Any] = describe([bound])
    return InfeasibleProjectionError(
        "sensitive_at_predict=False: the other columns of X say too little of the attribute to "
        f"correct for it ({facts['n_columns']} kernel column(s), {facts['n_rows']} rows). Lower "
        "`degree`, raise `threshold`, give another `attribute_estimator`, or pass the attribute "
        "at prediction time."
    )
