"""Kernels and targets from which covariates have been taken out (Frisch, Waugh and Lovell)."""

from __future__ import annotations

import copy

import numpy as np
from scipy.linalg import qr

from ..exceptions import RankDeficientKernelError
from ._design import KernelDesign
from ._factorization import RANK_TOLERANCE

__all__ = ["ConditionalDesign"]


class ConditionalDesign(KernelDesign):
    """A kernel on given rows, residualised on covariates, as are the targets.

    The coefficients are those of the kernel's columns in the least-squares fit of the target on
    the constant, the covariates and these columns. Unlike its parent it holds n×(p + k) numbers.

    Parameters
    ----------
    design : KernelDesign
        The kernel on the same rows.
    covariates : ndarray of shape (n, p)
        What the target may depend on; dependent columns are welcome.

    Raises
    ------
    RankDeficientKernelError
        If the covariates determine a column of the kernel (rank 0: every one).
    """

    def __init__(self, design: KernelDesign, covariates: np.ndarray) -> None:
        fitted = copy.copy(design.fitted)
        fitted.center_ = np.zeros(fitted.n_columns)  # the columns are residuals
        super().__init__(fitted, design.values, design.weight)
        self.covariates = covariates
        self._unconditional = design
        self._root = np.sqrt(np.broadcast_to(self.shares(slice(None)), self.n_rows))
        self._explained = self._orthonormal_covariates(covariates)
        columns = design.columns(slice(None))
        norms = np.sqrt(np.square(columns * self._root[:, None]).sum(axis=0))
        self._columns = self.residual(columns)
        factor = np.asarray(np.linalg.qr(self._columns * self._root[:, None], mode="r"))
        factor = factor * np.where(np.diag(factor) < 0, -1.0, 1.0)[:, None]
        rank = int((np.diag(factor) > RANK_TOLERANCE * norms).sum())
        if rank < fitted.n_columns:
            error = RankDeficientKernelError(
                f"conditional_on leaves {rank} of the kernel's {fitted.n_columns} column(s): the "
                "covariates determine the others. Leave out covariates, or lower `degree`."
            )
            error.rank = rank
            raise error
        fitted.R_ = factor

    def group_weights(self) -> np.ndarray:
        return self._unconditional.group_weights()

    @property
    def n_covariates(self) -> int:
        """Number of independent covariates."""
        return self._explained.shape[1] - 1

    def _orthonormal_covariates(self, covariates: np.ndarray) -> np.ndarray:
        """Return a basis of the constant and the covariates, orthonormal under the weights."""
        centred = covariates - np.average(covariates, axis=0, weights=self.weight)
        spread = np.abs(centred).max(axis=0)
        centred = centred[:, spread > 0] / spread[spread > 0]
        system = np.column_stack([np.ones(self.n_rows), centred]) * self._root[:, None]
        basis, triangle = qr(system, mode="economic", pivoting=True)[:2]
        size = np.abs(np.diag(triangle))
        return np.asarray(basis)[:, size > RANK_TOLERANCE * size[0]]

    def residual(self, z: np.ndarray) -> np.ndarray:
        """Return what the covariates leave of a target, or of the columns of a matrix."""
        root = self._root.reshape((-1,) + (1,) * (z.ndim - 1))
        weighted = z * root
        # Twice: what rounding leaves of a large explained part is taken out as well.
        for _ in range(2):
            weighted = weighted - self._explained @ (self._explained.T @ weighted)
        return weighted / root

    @property
    def keys(self) -> np.ndarray:
        """What a row of the columns is a function of: attribute and covariates."""
        return np.column_stack([self.values, self.covariates])

    def columns(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the residualised standardised columns of some rows, shape (rows, k)."""
        return self._columns[rows]

    def orthonormal_of(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows of Q, shape (rows, k)."""
        return self._columns[rows] @ self.fitted.R_inverse

    def leverage(self) -> np.ndarray:
        """Return the leverage of every row, covariates included, shape (n,)."""
        own = np.square(self.orthonormal).sum(axis=1) * self._root**2
        return np.square(self._explained).sum(axis=1) + own

    def solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return super().solve(self.residual(z))
