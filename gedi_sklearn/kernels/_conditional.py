"""Kernels and targets residualised on covariates (Frisch, Waugh and Lovell)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from .._validation import check_numbers, check_same_length
from ..exceptions import RankDeficientKernelError
from ._design import FittedKernel, KernelDesign
from ._factorization import RANK_TOLERANCE


class ConditionalKernel(FittedKernel):
    """A fitted kernel whose columns are residuals of regressions on covariates.

    Holds O((p + k)·k) numbers and no row. :meth:`transform` takes the attribute alone and returns
    the kernel's own columns, not centred.

    Parameters
    ----------
    fitted : FittedKernel
        The kernel itself.
    covariate_mean, covariate_scale : ndarray of shape (p,)
        Subtracted from and divided out of the covariates.
    regression : ndarray of shape (1 + p, k)
        Coefficients of the standardised columns on the constant and these covariates.
    """

    def __init__(
        self,
        fitted: FittedKernel,
        covariate_mean: np.ndarray,
        covariate_scale: np.ndarray,
        regression: np.ndarray,
    ) -> None:
        super().__init__(
            fitted.kernel, fitted.basis, fitted.names, fitted.n_attributes, fitted.encoder
        )
        self.attribute_columns = fitted.attribute_columns
        self.range_ = fitted.range_
        self.covariate_mean = covariate_mean
        self.covariate_scale = covariate_scale
        self.regression = regression

    def orthonormal(self, values: Any, covariates: Any = None) -> np.ndarray:
        """Return Q for new rows: the columns, residualised on the covariates of these rows.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, m)
            The attribute.
        covariates : array-like of shape (n, p)
            The covariates, as numbers.

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self._residualised(self._encoded(values), covariates)

    def orthonormal_within_range(
        self, values: Any, covariates: Any = None, *, warns: bool = True
    ) -> np.ndarray:
        """Return Q for new rows, each at the nearest value that the training rows have reached.

        Parameters
        ----------
        values, covariates
            As in :meth:`orthonormal`. Covariates are taken as they are.
        warns : bool, default=True
            Whether rows beyond the range are worth a warning.

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self._residualised(self._within_range(values, warns), covariates)

    def _residualised(self, values: np.ndarray, covariates: Any) -> np.ndarray:
        """Return Q for the attribute as numbers, shape (n, k)."""
        columns = self.basis.evaluate(values)
        # A constant category leaves no covariates.
        without = np.empty((len(columns), 0))
        n_covariates = len(self.covariate_mean)
        covariates = check_numbers(covariates, "conditional_on") if n_covariates else without
        check_same_length(len(columns), conditional_on=covariates)
        if covariates.shape[1] != n_covariates:
            raise ValueError(
                f"conditional_on has {covariates.shape[1]} column(s), but the kernel was fitted "
                f"with {n_covariates}."
            )
        system = _with_constant((covariates - self.covariate_mean) / self.covariate_scale)
        return (columns - system @ self.regression) @ self.R_inverse


class ConditionalDesign(KernelDesign):
    """A kernel on given rows, residualised on covariates, as are the targets.

    The coefficients are those of the kernel's columns in the least-squares fit of the target on
    the constant, the covariates and these columns. Unlike its parent it holds n×(p + k) numbers.

    Parameters
    ----------
    design : KernelDesign
        The kernel on the same rows.
    covariates : ndarray of shape (n, p)
        What the target may depend on; its columns may be linearly dependent.

    Raises
    ------
    RankDeficientKernelError
        If the covariates determine a column of the kernel (rank 0: all of them).
    """

    fitted: ConditionalKernel

    def __init__(self, design: KernelDesign, covariates: np.ndarray) -> None:
        super().__init__(design.fitted, design.values, design.weight)
        self.covariates = covariates
        self._unconditional = design
        self._root = np.sqrt(np.broadcast_to(self.shares(slice(None)), self.n_rows))
        # A constant category leaves no covariates, which `numpy.average` cannot take.
        weight = self.weight
        mean = covariates.mean(axis=0) if weight is None else weight @ covariates
        centred = covariates - mean
        spread = np.abs(centred).max(axis=0)
        spread[spread == 0] = 1.0
        system = _with_constant(centred / spread) * self._root[:, None]
        basis, triangle, order = qr(system, mode="economic", pivoting=True)
        size = np.abs(np.diag(triangle))
        rank = int((size > RANK_TOLERANCE * size[0]).sum())
        # Orthonormal under the weights; it spans the constant and the covariates.
        self._explained = np.asarray(basis)[:, :rank]
        columns = design.columns(slice(None))
        explained, self._columns = self._regress(columns)
        regression = np.zeros((system.shape[1], columns.shape[1]))
        regression[order[:rank]] = solve_triangular(triangle[:rank, :rank], explained)
        self.fitted = ConditionalKernel(design.fitted, mean, spread, regression)
        self.fitted.R_ = self._factorize(columns)

    def _factorize(self, columns: np.ndarray) -> np.ndarray:
        """Return the factor R of the residualised columns."""
        norms = np.sqrt(np.square(columns * self._root[:, None]).sum(axis=0))
        factor = np.asarray(np.linalg.qr(self._columns * self._root[:, None], mode="r"))
        factor = factor * np.where(np.diag(factor) < 0, -1.0, 1.0)[:, None]
        rank = int((np.diag(factor) > RANK_TOLERANCE * norms).sum())
        if rank < len(norms):
            error = RankDeficientKernelError(
                f"conditional_on leaves {rank} of the kernel's {len(norms)} column(s): the "
                "covariates determine the others. Leave out covariates, or lower `degree`."
            )
            error.rank = rank
            raise error
        return factor

    def group_weights(self) -> np.ndarray:
        return self._unconditional.group_weights()

    @property
    def n_covariates(self) -> int:
        """Number of independent covariates."""
        return self._explained.shape[1] - 1

    def _regress(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates of a target, or of a matrix, on the covariates, and the residual."""
        root = self._root.reshape((-1,) + (1,) * (z.ndim - 1))
        weighted = z * root
        first = self._explained.T @ weighted
        weighted = weighted - self._explained @ first
        # A second pass removes what rounding leaves of a large explained part.
        second = self._explained.T @ weighted
        return first + second, (weighted - self._explained @ second) / root

    def residual(self, z: np.ndarray) -> np.ndarray:
        """Return the residual of a target, or of the columns of a matrix, on the covariates."""
        return self._regress(z)[1]

    @property
    def keys(self) -> np.ndarray:
        """What each row of the columns depends on: attribute and covariates."""
        return np.column_stack([self.values, self.covariates])

    def columns(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the residualised standardised columns of some rows, shape (rows, k)."""
        return self._columns[rows]

    def orthonormal_of(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows of Q, shape (rows, k)."""
        return self._columns[rows] @ self.fitted.R_inverse

    def leverage(self) -> np.ndarray:
        """Return the leverage of each row, covariates included, shape (n,)."""
        own = np.square(self.orthonormal).sum(axis=1) * self._root**2
        return np.square(self._explained).sum(axis=1) + own

    def solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return c and s of the residual of a target on the covariates."""
        return super().solve(self.residual(z))


def _with_constant(columns: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(columns)), columns])
