"""A fitted kernel: O(k²) numbers alone; on given rows, a map from targets to coefficients."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg.blas import dtrsv
from scipy.linalg.lapack import dtrtri

from .._validation import check_attribute_columns, check_numbers, check_sensitive
from ..exceptions import AttributeRangeWarning, IllConditionedKernelWarning, warn_caller
from ._basis import Basis
from ._categories import AttributeEncoder, GroupEncoder
from ._moments import row_blocks
from ._transformers import PolynomialKernel

# Estimated relative rounding error from which a coefficient comes with a warning.
_CONVERSION_TOLERANCE = 1e-6
# Condition of the conversion to raw units up to which no refinement is needed with many rows.
_HARMLESS_CONVERSION = 1e4
# Shares of the attribute's range: a copy in single precision is no other value, a value farther
# outside than new rows of the same kind often are is worth a warning.
_SAME_VALUE = 1e-6
_FAR = 0.2
# Share of rows outside from which they are worth one.
_MANY = 0.1


class FittedKernel:
    """A kernel with the centre and the QR factor of the rows it was fitted on.

    Holds O(k²) numbers and no row: it can be pickled with an estimator and applied to new rows.

    Parameters
    ----------
    kernel : estimator, callable or None
        The fitted transformer; None for a precomputed matrix.
    basis : object
        Evaluates the standardised columns and knows the change of basis.
    names : list of str
        One name per column.
    n_attributes : int
        Number of attributes (for a precomputed matrix: of its columns).
    encoder : AttributeEncoder or GroupEncoder, default=None
        Turns categorical attributes into numbers.

    Attributes
    ----------
    n_columns : int
        Number of columns k.
    center_ : ndarray of shape (k,)
        Weighted mean of the standardised columns.
    R_ : ndarray of shape (k, k)
        Upper triangular with positive diagonal; R'R is the weighted covariance of the
        standardised columns.
    range_ : ndarray of shape (2, m)
        Smallest and largest value of every attribute, as numbers; infinite where unknown.
    attribute_columns : list of str or None
        Names of the attribute's columns, if it came in a data frame; frames of new rows must have
        the same names in this order.
    """

    def __init__(
        self,
        kernel: Any,
        basis: Basis,
        names: list[str],
        n_attributes: int,
        encoder: AttributeEncoder | GroupEncoder | None = None,
    ) -> None:
        self.kernel = kernel
        self.encoder = encoder
        self.basis = basis
        self.names = names
        self.n_attributes = n_attributes
        self.n_columns = len(names)
        self.center_ = np.zeros(self.n_columns)
        self.range_ = np.array([[-np.inf], [np.inf]])
        self.attribute_columns: list[str] | None = None

    @cached_property
    def R_(self) -> np.ndarray:
        """The factor of orthonormal columns, until others are factorised."""
        return np.eye(self.n_columns)

    def __repr__(self) -> str:
        return f"FittedKernel({self.kernel!r}, n_columns={self.n_columns})"

    @property
    def is_single_polynomial(self) -> bool:
        """Whether the columns are the powers of one attribute."""
        return isinstance(self.kernel, PolynomialKernel) and self.kernel.n_features_in_ == 1

    @property
    def scale(self) -> np.ndarray:
        """Deviation by which a raw coefficient turns into a standardised one, shape (k,)."""
        return 1 / np.diag(self.basis.to_raw)

    def to_raw(self, standardized: np.ndarray) -> np.ndarray:
        """Convert coefficients of the standardised basis, s, to raw ones, α̃ = T s."""
        return self.basis.to_raw @ standardized

    def from_raw(self, coefficients: np.ndarray) -> np.ndarray:
        """Convert raw coefficients to those of the standardised basis, s = T⁻¹ α̃."""
        return self.basis.from_raw @ coefficients

    def transform(self, values: Any) -> np.ndarray:
        """Return F̃ for new rows: the kernel's columns, centred as on the training rows.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, m)
            The attribute (for a precomputed kernel: its columns).

        Returns
        -------
        ndarray of shape (n, k)
        """
        columns = self.basis.evaluate(self._encoded(values))
        return (columns - self.center_) @ self.basis.from_raw

    def orthonormal(self, values: Any) -> np.ndarray:
        """Return Q for new rows: the columns that are orthonormal on the training rows.

        Functions of the attribute should be evaluated as Q c, from their coordinates c. Raw
        columns times raw coefficients cancel: for birth years at degree 8 no digit is left.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, m)
            As in :meth:`transform`.

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.orthonormal_columns(self._encoded(values))

    def orthonormal_within_range(self, values: Any, *, warns: bool = True) -> np.ndarray:
        """Return Q for new rows, each at the nearest value that the training rows have reached.

        Beyond that range nothing is known, and powers run away.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, m)
            As in :meth:`transform`.
        warns : bool, default=True
            Whether rows beyond the range are worth a warning.

        Returns
        -------
        ndarray of shape (n, k)

        Warns
        -----
        AttributeRangeWarning
            If a tenth of the rows lie outside the range, or one by more than a fifth of it. The few
            that lie a little outside in any two samples are no reason.
        """
        return self.orthonormal_columns(self._within_range(values, warns))

    def _within_range(self, values: Any, warns: bool) -> np.ndarray:
        """Return the attribute of new rows as numbers within the range, with a warning."""
        values, (low, high) = self._encoded(values), self.range_
        nearest = np.clip(values, low, high)
        outside = np.abs(values - nearest)
        beyond, far = outside > _SAME_VALUE * (high - low), outside > _FAR * (high - low)
        n_beyond = int(beyond.any(axis=1).sum())
        if warns and (far.any() or n_beyond > _MANY * len(values)):
            first = int(np.argmax(beyond.any(axis=0)))
            facts = (n_beyond, len(values), low[first], high[first])
            warn_caller(AttributeRangeWarning.from_rows(*facts))
        return nearest

    def orthonormal_columns(self, values: np.ndarray) -> np.ndarray:
        """Return Q for the attribute as numbers, shape (n, k).

        Where the conversion to raw units amplifies rounding, long doubles keep it from the powers.
        """
        if self.conversion_is_harmless:
            return (self.basis.evaluate(values) - self.center_) @ self.R_inverse
        columns = self.basis.evaluate(values.astype(np.longdouble)) - self.center_
        return (columns @ self.R_inverse.astype(np.longdouble)).astype(np.float64)

    @cached_property
    def conversion_is_harmless(self) -> bool:
        """Whether the conversion to raw units hardly amplifies rounding."""
        return bool(np.linalg.cond(self.basis.to_raw) < _HARMLESS_CONVERSION)

    def _encoded(self, values: Any) -> np.ndarray:
        """Check the attribute of new rows; return it as the numbers that the basis takes."""
        # The library itself passes arrays, once it has compared the names of their columns.
        if self.attribute_columns is not None and hasattr(values, "columns"):
            check_attribute_columns(self.attribute_columns, values)
        if self.encoder is None:
            values = check_numbers(values, "sensitive_features")
        else:
            values = check_sensitive(values, kind="mixed")
        if values.shape[1] != self.n_attributes:
            # Broadcasting would silently accept another number of columns.
            raise ValueError(
                f"sensitive_features has {values.shape[1]} column(s), but the kernel was fitted on "
                f"{self.n_attributes}."
            )
        if self.encoder is not None:
            values = self.encoder.transform(values)
        return values

    def of_share(self, share: float) -> Self:
        """Return the kernel of rows that have a share of the weights: Q/√s and √s R."""
        other = copy.copy(self)
        other.R_ = np.sqrt(share) * self.R_
        return other

    @property
    def R_inverse(self) -> np.ndarray:
        """The inverse of R, upper triangular.

        R is small and, in the standardised basis, well conditioned: for the rows of a design, the
        product with its inverse is as accurate as triangular solves, and ten times as fast.
        """
        return np.asarray(dtrtri(self.R_)[0])


class KernelDesign:
    """A fitted kernel on given rows and weights: the linear map from targets to coefficients.

    Parameters
    ----------
    fitted : FittedKernel
        The kernel.
    values : ndarray of shape (n, m)
        The attribute, all rows of positive weight.
    weight : ndarray of shape (n,) or None
        Weights, summing to 1; None for equal ones.
    """

    def __init__(self, fitted: FittedKernel, values: np.ndarray, weight: np.ndarray | None) -> None:
        self.fitted = fitted
        self.values = values
        self.weight = weight
        # A target, the products of the centred columns with it, and its variance, computed during
        # the factorisation.
        self._known: tuple[np.ndarray, np.ndarray, float] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return self.values.shape[0]

    def blocks(self) -> Iterator[slice]:
        """Yield slices that cover the rows."""
        return row_blocks(self.n_rows)

    @property
    def n_covariates(self) -> int:
        """Number of covariates that the columns are residualised on; 0 here."""
        return 0

    @property
    def root_share(self) -> float:
        """Root of the share of the weights that the kernel sees; 1 here."""
        return 1.0

    def residual(self, z: np.ndarray) -> np.ndarray:
        """Return the residual of a target on the covariates; here the target itself."""
        return z

    @property
    def keys(self) -> np.ndarray:
        """What each row of the columns depends on, shape (n, m)."""
        return self.values

    def columns(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the standardised columns of some rows, not centred, shape (rows, k)."""
        return self.fitted.basis.evaluate(self.values[rows])

    def orthonormal_of(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows of Q, shape (rows, k)."""
        return self.fitted.orthonormal_columns(self.values[rows])

    def shares(self, rows: slice) -> np.ndarray | float:
        """Return the weights of some rows, such that all sum to 1."""
        return 1 / self.n_rows if self.weight is None else self.weight[rows]

    @cached_property
    def orthonormal(self) -> np.ndarray:
        """The n×k matrix Q, for projections; indicators work block by block."""
        q = np.empty((self.n_rows, self.fitted.n_columns))
        for rows in self.blocks():
            q[rows] = self.orthonormal_of(rows)
        return q

    def with_matrix(self) -> Self:
        """Return this object with Q in memory, so that all that is asked later is a product."""
        _ = self.orthonormal
        return self

    def explained(self, coordinates: np.ndarray) -> np.ndarray:
        """Return Q c, the function of the attribute with coordinates c on the rows, shape (n,)."""
        return self.orthonormal @ coordinates

    def inner_products(self, z: np.ndarray) -> np.ndarray:
        """Return Q'Wz from the matrix Q, shape (k,)."""
        return ((z - self.mean(z)) * self.shares(slice(None))) @ self.orthonormal

    def raw_multipliers(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of orthonormal coordinates as those of α̃, shape (k,)."""
        return self.fitted.basis.from_raw.T @ (self.fitted.R_.T @ multipliers)

    def raw_correction(self, coordinates: np.ndarray) -> np.ndarray:
        """Return β with F̃β = Qc from c, shape (k,)."""
        return self.fitted.to_raw(self.fitted.R_inverse @ coordinates)

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """Return Q' diag(weight) Q, shape (k, k)."""
        return (self.orthonormal * weight[:, None]).T @ self.orthonormal

    def leverage(self) -> np.ndarray:
        """Return the leverage of each row in the fit on the constant and the kernel, (n,)."""
        squares = np.einsum("ij,ij->i", self.orthonormal, self.orthonormal)
        return (1 + squares) * self.shares(slice(None))

    def mean(self, z: np.ndarray) -> float:
        """Return the weighted mean of a target."""
        return float(z.mean() if self.weight is None else self.weight @ z)

    def deviation(self, z: np.ndarray) -> float:
        """Return the weighted population deviation of a target."""
        if self._known is not None and self._known[0] is z:
            return float(np.sqrt(self._known[2]))
        mean, variance = self.mean(z), 0.0
        for rows in self.blocks():
            centred = z[rows] - mean
            variance += float((centred * self.shares(rows)) @ centred)
        return float(np.sqrt(variance))

    def _products(self, z: np.ndarray, solution: np.ndarray | None = None) -> np.ndarray:
        """Return B̃'W(z̃ − B̃s), shape (k,), for the centred standardised columns B̃."""
        mean = self.mean(z)
        total = np.zeros(self.fitted.n_columns)
        for rows in self.blocks():
            columns = self.columns(rows) - self.fitted.center_
            residual = z[rows] - mean
            if solution is not None:
                residual -= columns @ solution
            residual *= self.shares(rows)
            total += residual @ columns
        return total

    def solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the orthonormal coordinates c and the standardised coefficients s of a target.

        One step of iterative refinement is made, since the conversion to raw units amplifies the
        rounding error of s by (|mean| / sd)^(k−1). With many rows it is skipped if the conversion
        is harmless: it costs a pass over them.
        """
        R = self.fitted.R_
        if "orthonormal" in self.__dict__ and self.fitted.conversion_is_harmless:
            coordinates = self.inner_products(z)
            return coordinates, dtrsv(R, coordinates)
        known = self._known is not None and self._known[0] is z
        products = self._known[1] if known else self._products(z)  # type: ignore[index]
        coordinates = dtrsv(R, products, trans=1)
        solution = dtrsv(R, coordinates)
        if known and self.fitted.conversion_is_harmless:
            return coordinates, solution
        correction = dtrsv(R, self._products(z, solution), trans=1)
        return coordinates + correction, solution + dtrsv(R, correction)

    def null_covariance(self, z: np.ndarray) -> np.ndarray:
        """Return the covariance of c over random permutations of the targets, shape (k, k)."""
        return float(np.var(self.residual(z))) * self._null_gram

    @cached_property
    def _null_gram(self) -> np.ndarray:
        """The same of targets of variance 1."""
        weighted = self.orthonormal * np.reshape(self.shares(slice(None)), (-1, 1))
        # Permuted values are slightly negatively correlated: hence n − 1, and the centring.
        weighted -= weighted.mean(axis=0)
        return self.n_rows / (self.n_rows - 1) * weighted.T @ weighted

    def group_weights(self) -> np.ndarray:
        """Return the weights of the groups of a kernel that tells groups apart, summing to 1."""
        raise NotImplementedError

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        """Return c = Q'Wz̃, the coefficients of z in the orthonormal basis, shape (k,)."""
        return self.solve(z)[0]

    def standardized(self, z: np.ndarray) -> np.ndarray:
        """Return s = R⁻¹c, the coefficients of z in the standardised basis, shape (k,)."""
        return self.solve(z)[1]

    def coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return α̃ = T s, the coefficients of z in the kernel's own units, shape (k,)."""
        return self.fitted.to_raw(self.standardized(z))

    def checked_coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return :meth:`coefficients`, with a warning if their rounding error may be visible.

        What the conversion to raw units does is estimated as eps·sd(z)·Σ_j‖(T R⁻¹)_j‖ and compared
        with ‖α̃‖₁, what nearly dependent columns do as eps·‖R⁻¹‖ of columns of norm 1. Coefficients
        that are negligible on the scale of sd(z) give no warning.
        """
        standardized = self.standardized(z)
        alpha = self.fitted.to_raw(standardized)
        R, inverse = self.fitted.R_, self.fitted.R_inverse
        epsilon, deviation = np.finfo(float).eps, self.deviation(z)
        conversion = deviation * np.hypot.reduce(self.fitted.basis.to_raw @ inverse, axis=1).sum()
        size = float(np.abs(alpha).sum())
        negligible = 1e-12 * deviation / self.fitted.scale[0]
        if epsilon * conversion > max(_CONVERSION_TOLERANCE * size, negligible):
            relative = epsilon * conversion / size if size else np.inf
            warn_caller(IllConditionedKernelWarning.from_error(relative))
        elif size > negligible:
            dependence = epsilon * float(
                np.linalg.norm(inverse * np.linalg.norm(R, axis=0)[:, None])
            )
            if dependence > _CONVERSION_TOLERANCE:
                warn_caller(IllConditionedKernelWarning.from_dependence(dependence))
        return alpha
