r"""Corrections that do not see the attribute: functions of m(X) = E[q(x) | X].

q is the orthonormal basis of the kernel. A correction that is a function of X moves the
coefficients by E[q m'] β, so the least one that satisfies a constraint is a problem in k variables
(real targets), or the dual of the projection with q replaced by m (two classes: for labels that
depend on X alone, E[q z] = E[m z]).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ..exceptions import InfeasibleProjectionError
from ..kernels import KernelDesign
from ._binary import BinaryTargets
from ._bound import AllowedProduct, Bound, describe
from ._several import nearest_in_product

__all__ = ["blind_correction", "score_shift"]

# Beyond this condition X cannot tell the columns of the kernel apart.
_MAX_CONDITION = 1e8
# How many times larger than with the attribute the correction may be: at one column, the
# reciprocal of the correlation of m(X) with the attribute.
_MAX_PRICE = 10.0


class _BlindDesign(KernelDesign):
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


def blind_correction(bound: Bound, p: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the β of least ‖Mβ‖ with p + Mβ allowed, for real targets.

    Parameters
    ----------
    bound : Bound
        The constraint on the rows.
    p : ndarray of shape (n,)
        Predictions.
    expected : ndarray of shape (n, k)
        M = E[F̃ | X].

    Returns
    -------
    ndarray of shape (k,)

    Raises
    ------
    InfeasibleProjectionError
        If X says too little of the attribute to correct for it.
    """
    if bound.violation(p) == 0.0:
        return np.zeros(expected.shape[1])
    _expected_basis(bound, expected)
    return _least_correction(bound, p, expected)


def score_shift(
    bound: Bound,
    p: np.ndarray,
    expected: np.ndarray | None,
    share: float,
    *,
    make_problem: Callable[[Bound], Any],
    total_weight: float,
) -> np.ndarray:
    """Return β such that 1 where p + F̃β > ½ solves the relaxation, for two classes.

    Parameters
    ----------
    bound : Bound
        The constraint on the rows.
    p : ndarray of shape (n,)
        Probabilities.
    expected : ndarray of shape (n, k) or None
        E[F̃ | X] in the place of F̃, for a rule that does not see the attribute.
    share : float
        Share of the threshold that may be used.
    make_problem : callable
        From a constraint on the rows to the projection of their classes on it.
    total_weight : float
        Sum of the rows' weights.

    Returns
    -------
    ndarray of shape (k,)

    Raises
    ------
    InfeasibleProjectionError
        If X says nothing of the attribute.
    """
    if bound.violation((p > 0.5) * 1.0) == 0.0:
        return np.zeros(bound.kernel.n_columns)
    if expected is not None:
        bound = _blind_bound(bound, _expected_basis(bound, expected))
    bound = bound.with_share(share)
    problem = make_problem(bound)
    assert isinstance(problem, BinaryTargets)  # asked for two classes only
    multipliers = problem.relaxed_multipliers(p)
    # A row costs 1 − 2p − P·λ, with P = T R⁻¹R⁻ᵀT'F̃/Σw its column of the map to α̃.
    inverse = bound.kernel.basis.to_raw @ bound.kernel.R_inverse
    return inverse @ inverse.T @ multipliers / (2 * total_weight)


def _expected_basis(bound: Bound, expected: np.ndarray) -> np.ndarray:
    """Return E[q | X] from E[F̃ | X]; refuse one that is no better than the mean anywhere.

    High degrees have tails that a learner overfits, so one column that it knows is enough.
    """
    q = expected @ bound.kernel.basis.to_raw @ bound.kernel.R_inverse
    if (_explained_shares(bound, q) <= 0).all():
        raise _too_blind(bound)
    return q


def _explained_shares(bound: Bound, expected: np.ndarray) -> np.ndarray:
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


def _blind_bound(bound: Bound, expected: np.ndarray) -> Bound:
    """Return a constraint in which the kernel is replaced by m(X), shape (n, k)."""
    blind = copy.copy(bound)
    blind.design = _BlindDesign(bound.design, expected)
    return blind


def _least_correction(bound: Bound, p: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the β of :func:`blind_correction`; refuse one beyond its price."""
    design = bound.design
    v = bound.allowed.rows @ design.standardized(p)
    share = np.broadcast_to(np.reshape(design.shares(slice(None)), (-1, 1)), (len(p), 1))
    moved = np.column_stack([design.standardized(column) for column in expected.T])
    factor = np.asarray(np.linalg.qr(expected * np.sqrt(share), mode="r"))
    if np.linalg.cond(factor) > _MAX_CONDITION:
        raise _too_blind(bound)
    rows = np.linalg.solve(factor.T, (bound.allowed.rows @ moved).T).T
    allowed = AllowedProduct((bound.allowed,))
    move, _ = nearest_in_product(rows, allowed, v)
    aware, _ = nearest_in_product(bound.allowed.rows @ bound.kernel.R_inverse, allowed, v)
    if np.linalg.norm(move) > _MAX_PRICE * np.linalg.norm(aware):
        raise _too_blind(bound)
    return np.linalg.solve(factor, move)


def _too_blind(bound: Bound) -> InfeasibleProjectionError:
    facts: dict[str, Any] = describe([bound])
    return InfeasibleProjectionError(
        "sensitive_at_predict=False: the other columns of X say too little of the attribute to "
        f"correct for it ({facts['n_columns']} kernel column(s), {facts['n_rows']} rows). Lower "
        "`degree`, raise `threshold`, give another `attribute_estimator`, or pass the attribute "
        "at prediction time."
    )
