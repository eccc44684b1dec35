"""The mean and the QR factor of a kernel's columns, in one pass over the rows."""

from __future__ import annotations

import numpy as np

from .._validation import check_group_codes
from ..exceptions import RankDeficientKernelError
from ._design import KernelDesign
from ._moments import BLOCK

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
    """Return [1, B]'W[1, B], and B'Wz̃ and z̃'Wz̃ of a target (0 without one)."""
    k = design.fitted.n_columns
    mean = 0.0 if target is None else design.mean(target)
    # Products of powers are powers: for one attribute, those with 1 and the last one are enough.
    single = design.fitted.is_single_polynomial
    n_right = 1 if single else k
    right = np.zeros((n_right + 2, BLOCK))
    right[0] = 1.0
    moments, variance = np.zeros((k, n_right + 2)), 0.0
    for rows in design.blocks():
        columns = design.columns(rows).T
        part = right[:, : columns.shape[1]]
        part[1:-1] = columns[k - n_right :]
        if target is not None:
            np.subtract(target[rows], mean, out=part[-1])
        if design.weight is None:
            variance += float(part[-1] @ part[-1])
        else:
            part[0] = 1.0
            variance += float((part[-1] * design.weight[rows]) @ part[-1])
            part *= design.weight[rows]
        moments += columns @ part.T
    total = design.n_rows if design.weight is None else 1.0
    sums, products = moments[:, 0], moments[:, 1:-1]
    if single:
        powers = np.r_[total, sums, products[:, 0]]
        gram = powers[np.add.outer(np.arange(k + 1), np.arange(k + 1))]
    else:
        gram = np.block([[np.full((1, 1), total), sums[None, :]], [sums[:, None], products]])
    return gram / total, moments[:, -1] / total, variance / total


def _moment_factor(moments: np.ndarray) -> np.ndarray | None:
    """Return the upper Cholesky factor; None if the scaled columns are too far from orthogonal.

    The condition of the scaled columns decides: the factorisation is invariant to their scale.
    """
    scale = np.sqrt(np.diag(moments))
    if (scale == 0).any():
        return None
    eigenvalues = np.linalg.eigvalsh(moments / np.outer(scale, scale))
    if eigenvalues[0] * _MOMENT_CONDITION < eigenvalues[-1]:
        return None
    return np.linalg.cholesky(moments).T.copy()


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
