"""Columns and targets residualised on covariates (Frisch, Waugh and Lovell)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from .._validation import check_numbers, check_same_length
from ..exceptions import RankDeficientKernelError

# A column is dependent on its predecessors if its part outside their span has less than this
# fraction of its norm; rounding leaves about 1e-15.
RANK_TOLERANCE = 1e-12


class Regression(NamedTuple):
    """The regression of a kernel's standardised columns on covariates, for new rows.

    Attributes
    ----------
    mean, scale : ndarray of shape (p,)
        Subtracted from and divided out of the covariates.
    coefficients : ndarray of shape (1 + p, k)
        Of the constant and these covariates.
    """

    mean: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray

    def predict(self, covariates: Any, n_rows: int) -> np.ndarray:
        """Return what the covariates of new rows say of the columns, shape (n, k)."""
        p = len(self.mean)
        # A constant category leaves no covariates.
        covariates = check_numbers(covariates, "conditional_on") if p else np.empty((n_rows, 0))
        check_same_length(n_rows, conditional_on=covariates)
        if covariates.shape[1] != p:
            raise ValueError(
                f"conditional_on has {covariates.shape[1]} column(s), but the kernel was fitted "
                f"with {p}."
            )
        return _with_constant((covariates - self.mean) / self.scale) @ self.coefficients


class Covariates:
    """Covariates on rows, and the columns of a kernel residualised on them and on the constant.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        What targets may depend on; the columns may be linearly dependent.
    share : ndarray of shape (n,)
        Weights of the rows, summing to 1.
    columns : ndarray of shape (n, k)
        Standardised columns of the kernel.

    Attributes
    ----------
    columns : ndarray of shape (n, k)
        Their residuals.
    regression : Regression
        Their regression.
    n_independent : int
        Number of independent covariates.

    Raises
    ------
    RankDeficientKernelError
        If the covariates determine a column of the kernel (rank 0: all of them).
    """

    def __init__(self, values: np.ndarray, share: np.ndarray, columns: np.ndarray) -> None:
        self.values, self.share, self._root = values, share, np.sqrt(share)
        # A constant category leaves no covariates, which `numpy.average` cannot take.
        mean = share @ values if share.strides[0] else values.mean(axis=0)
        spread = np.abs(values - mean).max(axis=0)
        spread[spread == 0] = 1.0
        system = _with_constant((values - mean) / spread) * self._root[:, None]
        basis, triangle, order = qr(system, mode="economic", pivoting=True)
        size = np.abs(np.diag(triangle))
        rank = int((size > RANK_TOLERANCE * size[0]).sum())
        self.n_independent = rank - 1
        # Orthonormal under the weights; it spans the constant and the covariates.
        self._basis = np.asarray(basis)[:, :rank]
        explained, self.columns = self._regress(columns)
        coefficients = np.zeros((system.shape[1], columns.shape[1]))
        coefficients[order[:rank]] = solve_triangular(triangle[:rank, :rank], explained)
        self.regression = Regression(mean, spread, coefficients)
        self.factor = self._factorize(columns)

    def _factorize(self, columns: np.ndarray) -> np.ndarray:
        """Return the factor R of the residualised columns."""
        norms = np.sqrt(np.square(columns * self._root[:, None]).sum(axis=0))
        factor = np.asarray(np.linalg.qr(self.columns * self._root[:, None], mode="r"))
        factor = factor * np.where(np.diag(factor) < 0, -1.0, 1.0)[:, None]
        rank = int((np.diag(factor) > RANK_TOLERANCE * norms).sum())
        if rank < len(norms):
            error = RankDeficientKernelError(
                f"conditional_on leaves {rank} of the kernel's {len(norms)} column(s): the "
                "covariates determine the others. Leave out covariates, or use a lower degree."
            )
            error.rank = rank
            raise error
        return factor

    def _regress(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates of a target, or of a matrix, on the covariates, and the residual."""
        root = self._root.reshape((-1,) + (1,) * (z.ndim - 1))
        weighted = z * root
        first = self._basis.T @ weighted
        weighted = weighted - self._basis @ first
        # A second pass removes what rounding leaves of a large explained part.
        second = self._basis.T @ weighted
        return first + second, (weighted - self._basis @ second) / root

    def residual(self, z: np.ndarray) -> np.ndarray:
        """Return the residual of a target on the covariates, shape (n,)."""
        return self._regress(z)[1]

    @property
    def orthonormal(self) -> np.ndarray:
        """The constant and the covariates, orthonormal under the weights, shape (n, p + 1)."""
        return self._basis / self._root[:, None]

    def leverage(self) -> np.ndarray:
        """Return the leverage of each row in a fit on the constant and the covariates, (n,)."""
        return np.square(self._basis).sum(axis=1)


def _with_constant(columns: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(columns)), columns])
