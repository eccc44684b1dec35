"""The mean and the QR factor of a kernel's columns, in one pass over the rows."""

from __future__ import annotations

import numpy as np

from .._validation import check_group_codes
from ..exceptions import RankDeficientKernelError
from ._design import KernelDesign
from ._moments import BLOCK, sum_products

# More than one block of rows is factorised from the columns' moments, up to this condition.
_MOMENT_CONDITION = 1e4
# A column is dependent on its predecessors if its part outside their span has less than this
# fraction of its norm; rounding leaves about 1e-15.
RANK_TOLERANCE = 1e-12


def factorize(design: KernelDesign, target: np.ndarray | None = None) -> None:
    """Find the weighted mean of the standardised columns and the factor R of their centring.

    The columns are factorised with a leading 1: the first row of the factor gives the mean, the
    rest is R. This takes one pass and no centred copy of the columns. With many rows, the factor
    is the Cholesky factor of their moments if their condition is below 1e4, else that of QR.
    """
    factor = None
    if design.n_rows > BLOCK:
        moments, products, variance = _moments(design, target)
        factor = _moment_factor(moments)
        if factor is not None and target is not None:
            design._known = (target, products, variance)
    if factor is None:
        factor = _qr_factor(design)
    # The sign of a factor's row is free; a positive diagonal makes it unique.
    factor *= np.where(np.diag(factor) < 0, -1.0, 1.0)[:, None]
    _refuse_dependent_columns(design, factor)
    design.fitted.center_, design.fitted.R_ = factor[0, 1:] / factor[0, 0], factor[1:, 1:]


def _moments(
    design: KernelDesign, target: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return [1, B]'W[1, B], and B'Wz̃ and z̃'Wz̃ of a target (columns of [1, B] without one)."""
    k = design.fitted.n_columns
    moments = sum_products(
        design.fitted.basis.evaluate,
        design.values,
        [] if target is None else [target],
        [design.weight],
        origin=np.array([0.0 if target is None else design.mean(target)]),
        n_columns=k,
        are_powers=design.fitted.is_single_polynomial,
    )[0, 0]
    if design.weight is None:
        moments /= design.n_rows
    return moments[: k + 1, : k + 1], moments[1 : k + 1, -1], float(moments[-1, -1])


def _moment_factor(moments: np.ndarray) -> np.ndarray | None:
    """Return the upper Cholesky factor; None if the scaled columns are too far from orthogonal.

    The condition of the scaled columns decides: the factorisation is invariant to their scale.
    """
    return np.linalg.cholesky(moments).T.copy() if are_far_from_parallel(moments) else None


def are_far_from_parallel(moments: np.ndarray) -> bool:
    """Tell whether columns can be factorised from their moments, (1, B)'W(1, B)."""
    scale = np.sqrt(np.diag(moments))
    if (scale == 0).any():
        return False
    eigenvalues = np.linalg.eigvalsh(moments / np.outer(scale, scale))
    return bool(eigenvalues[0] * _MOMENT_CONDITION >= eigenvalues[-1])


def _qr_factor(design: KernelDesign) -> np.ndarray:
    """Return the R of a QR factorisation of the columns with a leading 1, block by block."""
    k = design.fitted.n_columns
    factor: np.ndarray = np.zeros((k + 1, k + 1))
    for rows in design.blocks():
        columns = design.columns(rows)
        block = np.column_stack([np.ones(len(columns)), columns])
        block *= np.sqrt(np.reshape(design.shares(rows), (-1, 1)))
        factor = np.asarray(np.linalg.qr(np.vstack([factor, block]), mode="r"))
    return factor


def _refuse_dependent_columns(design: KernelDesign, factor: np.ndarray) -> None:
    # Norms of the columns before centring: a constant column must come out as dependent.
    norms = np.linalg.norm(factor[:, 1:], axis=0)
    own = np.diag(factor)[1:]
    rank = int((own > RANK_TOLERANCE * np.where(norms == 0, 1.0, norms)).sum())
    if rank < len(own):
        n_distinct = len(check_group_codes(design.values)[1])
        raise RankDeficientKernelError.from_rank(rank, len(own), n_distinct)
