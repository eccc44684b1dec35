"""The mean and the QR factor of a kernel's columns, in one pass over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_group_codes
from ..exceptions import RankDeficientKernelError
from ._covariates import RANK_TOLERANCE
from ._design import Design
from ._moments import BLOCK, row_blocks, sum_products

# More than one block of rows is factorised from the columns' moments, up to this condition.
_MOMENT_CONDITION = 1e4
# Rows of a sample that a basis is standardised by, and how far from its mean, in deviations, that
# of all rows may be: within it the move costs no digits.
_SAMPLE = 1000
_NEAR = 0.25


def factorize(design: Design, target: np.ndarray | None = None) -> None:
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
            design.known = (target, products, variance)
    if factor is None:
        factor = _qr_factor(design)
    # The sign of a factor's row is free; a positive diagonal makes it unique.
    factor *= np.where(np.diag(factor) < 0, -1.0, 1.0)[:, None]
    _refuse_dependent_columns(design, factor)
    design.fitted.center_, design.fitted.R_ = factor[0, 1:] / factor[0, 0], factor[1:, 1:]


def sampled(rows: np.ndarray) -> np.ndarray:
    """Return about 1,000 of the rows, or all where one block holds them."""
    return rows if len(rows) <= BLOCK else rows[:: len(rows) // _SAMPLE]


def _moments(design: Design, target: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float]:
    """Return [1, B]'W[1, B], and B'Wz̃ and z̃'Wz̃ of a target (of [1, B] without one).

    This takes one pass where a basis was standardised by a sample, and the target is centred by
    one: what is still to be subtracted follows from the sums. The basis becomes the
    one that is standardised by all rows.
    """
    k, targets = design.fitted.n_columns, [] if target is None else [target]
    with np.errstate(over="ignore", invalid="ignore"):
        sums = _sums(design, targets, np.array([sampled(z).mean() for z in targets]))
    basis = design.fitted.basis
    moving: Any = basis if basis.can_move else None
    m = 0 if moving is None else len(moving.mean)
    own = [*range(1, 1 + m), *range(1 + k, len(sums))]
    means, squares = sums[0, own], np.diag(sums)[own]
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    is_near = np.isfinite(sums).all() and (np.abs(means) <= _NEAR * deviations).all()
    if moving is not None:  # the rounding noise of a constant is no deviation
        noise = 4 * np.finfo(float).eps * np.abs(moving.mean + means[:m] * moving.scale)
        is_near &= (deviations[:m] * moving.scale > noise).all()
    if is_near:
        turn = np.eye(len(sums))
        if moving is not None:
            turn[: k + 1, : k + 1] = moving.move(means[:m], deviations[:m])
        if targets:
            turn[0, -1] = -sums[0, -1]
        sums = turn.T @ sums @ turn
    else:
        if moving is not None:
            moving.standardize_on(design.points, design.weight)
        sums = _sums(design, targets, np.array([design.mean(z) for z in targets]))
    return sums[: k + 1, : k + 1], sums[1 : k + 1, -1], float(sums[-1, -1])


def _sums(design: Design, targets: list[np.ndarray], origin: np.ndarray) -> np.ndarray:
    """Return (1, B, z)'W(1, B, z) for targets z less their origin."""
    sums = sum_products(
        lambda rows, out: design.fitted.basis.evaluate(design.points[rows], out),
        design.n_rows,
        targets,
        [design.weight],
        origin=origin,
        n_columns=design.fitted.n_columns,
        are_powers=design.fitted.is_single_polynomial,
    )[0, 0]
    return sums / design.n_rows if design.weight is None else sums


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


def _qr_factor(design: Design) -> np.ndarray:
    """Return the R of a QR factorisation of the columns with a leading 1, block by block."""
    k = design.fitted.n_columns
    factor: np.ndarray = np.zeros((k + 1, k + 1))
    for rows in row_blocks(design.n_rows):
        columns = design.columns(rows)
        block = np.column_stack([np.ones(len(columns)), columns])
        block *= np.sqrt(np.reshape(design.shares(rows), (-1, 1)))
        factor = np.asarray(np.linalg.qr(np.vstack([factor, block]), mode="r"))
    return factor


def _refuse_dependent_columns(design: Design, factor: np.ndarray) -> None:
    # Norms of the columns before centring: a constant column must come out as dependent.
    norms = np.linalg.norm(factor[:, 1:], axis=0)
    own = np.diag(factor)[1:]
    rank = int((own > RANK_TOLERANCE * np.where(norms == 0, 1.0, norms)).sum())
    if rank < len(own):
        n_distinct = len(check_group_codes(design.points)[1])
        raise RankDeficientKernelError.from_rank(rank, len(own), n_distinct)
