"""A fitted kernel: O(k²) numbers alone, for new rows as for those of the fit."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dtrtri

from .._validation import check_attribute_columns, check_numbers, check_same_length, check_sensitive
from ..exceptions import AttributeRangeWarning, RankDeficientKernelError, warn_caller
from ._columns import AttributeEncoder, Basis, GroupEncoder

# A column is dependent on its predecessors if its part outside their span has less than this
# fraction of its norm; rounding leaves about 1e-15.
RANK_TOLERANCE = 1e-12
# Condition of the conversion to raw units up to which no refinement is needed with many rows.
_HARMLESS_CONVERSION = 1e4
# Shares of the attribute's range: a copy in single precision is no other value, a value farther
# outside than new rows of the same kind often are is worth a warning.
_SAME_VALUE = 1e-6
_FAR = 0.2
# Share of rows outside from which they are worth one.
_MANY = 0.1


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
            error.rank, error.is_constant = rank, rank == 0
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
    regression : Regression or None
        Of the columns on covariates, whose residuals they are; new rows then need covariates.
    share : float
        Share of the weights that the rows of the fit have among those on which Q'WQ = I.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import ProjectedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> model = ProjectedRegressor(sensitive_columns=0).fit(X, X.sum(axis=1))
    >>> age = [-1.0, 0.0, 1.0]
    >>> model.kernel_.explained(age, model.orthonormal_correction_).round(1) + 0.0
    array([ 0.8,  0. , -0.8])
    """

    # Whether products with Q take neither a matrix of rows nor R.
    has_closed_form: ClassVar[bool] = False

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
        self.regression: Regression | None = None
        self.share = 1.0

    @cached_property
    def R_(self) -> np.ndarray:
        """The factor of orthonormal columns, until others are factorised."""
        return np.eye(self.n_columns)

    def __repr__(self) -> str:
        return f"FittedKernel({self.kernel!r}, n_columns={self.n_columns})"

    @property
    def is_single_polynomial(self) -> bool:
        """Whether the columns are the powers of one attribute."""
        return self.basis.are_powers

    def describe(self, point: np.ndarray) -> str:
        """Return a value of the attribute in words."""
        if self.encoder is not None:
            return self.encoder.describe(point)
        return "sensitive_features = " + " & ".join(f"{value:.5g}" for value in point)

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

    def orthonormal(self, values: Any, covariates: Any = None) -> np.ndarray:
        """Return Q for new rows: the columns that are orthonormal on the training rows.

        Functions of the attribute should be evaluated as Q c, from their coordinates c. Raw
        columns times raw coefficients cancel: for birth years at degree 8 no digit is left.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, m)
            As in :meth:`transform`.
        covariates : array-like of shape (n, p), default=None
            Those of a kernel beside covariates, as numbers.

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.orthonormal_columns(self._encoded(values), covariates)

    def explained(self, values: Any, coordinates: np.ndarray) -> np.ndarray:
        """Return Q c for new rows, shape (n,); see :meth:`orthonormal`."""
        return self.orthonormal(values) @ coordinates

    def orthonormal_within_range(
        self, values: Any, covariates: Any = None, *, warns: bool = True
    ) -> np.ndarray:
        """Return Q for new rows, each at the nearest value within the range of the training rows.

        Beyond that range nothing is known, and powers run away.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, m)
            As in :meth:`transform`.
        covariates : array-like of shape (n, p), default=None
            As in :meth:`orthonormal`; taken as they are.
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
        values, (low, high) = self._encoded(values), self.range_
        nearest = np.clip(values, low, high)
        outside = np.abs(values - nearest)
        beyond, far = outside > _SAME_VALUE * (high - low), outside > _FAR * (high - low)
        n_beyond = int(beyond.any(axis=1).sum())
        if warns and (far.any() or n_beyond > _MANY * len(values)):
            first = int(np.argmax(beyond.any(axis=0)))
            facts = (n_beyond, len(values), low[first], high[first])
            warn_caller(AttributeRangeWarning.from_rows(*facts))
        return self.orthonormal_columns(nearest, covariates)

    def orthonormal_columns(self, values: np.ndarray, covariates: Any = None) -> np.ndarray:
        """Return Q for the attribute as numbers, shape (n, k).

        Where the conversion to raw units amplifies rounding, long doubles keep it from the powers.
        """
        if self.regression is not None:
            explained = self.regression.predict(covariates, len(values))
            return (self.basis.evaluate(values) - explained) @ self.R_inverse
        if self.conversion_is_harmless:
            return self.basis.combined(values, *self.to_orthonormal)
        columns = self.basis.evaluate(values.astype(np.longdouble)) - self.center_
        return (columns @ self.R_inverse.astype(np.longdouble)).astype(np.float64)

    def group_columns(self, codes: np.ndarray) -> Any:
        """Return Q of rows of given groups as its products; None where it is a matrix."""
        return None

    def squares(self, q: Any) -> np.ndarray:
        """Return Σ_j Q_ij² of every row of Q, shape (n,)."""
        return np.einsum("ij,ij->i", q, q)

    def check_size(self, n_rows: int) -> None:
        """Refuse a matrix of this many rows if it would be too large or take hours."""

    def raw_multipliers(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of orthonormal coordinates as those of α̃, shape (k,)."""
        return self.basis.from_raw.T @ (self.R_.T @ multipliers)

    def raw_correction(self, coordinates: np.ndarray) -> np.ndarray:
        """Return β with F̃β = Qc from c, shape (k,)."""
        return self.to_raw(self.R_inverse @ coordinates)

    @property
    def coefficient_sizes(self) -> np.ndarray:
        """Norms of the rows of T R⁻¹: what an error of 1 in c is in each coefficient, (k,)."""
        return np.hypot.reduce(self.basis.to_raw @ self.R_inverse, axis=1)

    @property
    def dependence(self) -> float:
        """‖R⁻¹‖ of columns of norm 1, which is large where they are nearly dependent."""
        norms = np.linalg.norm(self.R_, axis=0)
        return float(np.linalg.norm(self.R_inverse * norms[:, None]))

    def beside(self, regression: Regression, R: np.ndarray) -> FittedKernel:
        """Return the kernel residualised on covariates, whose columns have the factor R."""
        other = FittedKernel(self.kernel, self.basis, self.names, self.n_attributes, self.encoder)
        other.attribute_columns, other.range_ = self.attribute_columns, self.range_
        other.regression, other.R_ = regression, R
        return other

    def of_share(self, share: float) -> Self:
        """Return the kernel of rows that have a share of the weights: Q/√s and √s R."""
        other = copy.copy(self)
        other.share, other.R_ = self.share * share, np.sqrt(share) * self.R_
        return other

    @cached_property
    def conversion_is_harmless(self) -> bool:
        """Whether the conversion to raw units hardly amplifies rounding."""
        return bool(self.basis.condition < _HARMLESS_CONVERSION)

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

    @property
    def to_orthonormal(self) -> tuple[np.ndarray, np.ndarray]:
        """The matrix and the offset that lead from standardised columns to Q."""
        R_inverse = self.R_inverse
        return R_inverse, -self.center_ @ R_inverse

    def write_orthonormal(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write Q into the rows of `out`, (k, n)."""
        if self.regression is None and self.conversion_is_harmless:
            self.basis.combined(values, *self.to_orthonormal, out)
        else:
            out[:] = self.orthonormal_columns(values).T

    @property
    def R_inverse(self) -> np.ndarray:
        """The inverse of R, upper triangular.

        R is small and, in the standardised basis, well conditioned: for the rows of a design, the
        product with its inverse is as accurate as triangular solves, and ten times as fast.
        """
        return np.asarray(dtrtri(self.R_)[0])
