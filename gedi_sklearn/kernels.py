r"""Kernels of the protected attribute, and all of their numerics.

A kernel turns the attribute x into columns F, one for each function f_j whose influence is
measured. With W the weights, scaled to sum 1, and F̃ the weighted centring of F, the coefficients
of a target z are the weighted least-squares solution

.. math:: \tilde\alpha(z) = (\tilde F^T W \tilde F)^{-1} \tilde F^T W z .

Powers of raw ages or years are nearly parallel, so F̃ itself is never formed for a polynomial.
Three bases span the same columns, and everything is computed in the last one:

* raw, :math:`\tilde F`: coefficients :math:`\tilde\alpha`, the ones that users see;
* standardised, :math:`\tilde B = \tilde F T`: the same functions of (x − mean) / sd, with
  coefficients :math:`s = T^{-1} \tilde\alpha`;
* orthonormal, :math:`Q = \tilde B R^{-1}` with :math:`Q^T W Q = I`: coordinates
  :math:`c = R s = Q^T W z`.

T and its inverse are known in closed form (binomial expansion), R comes from a QR factorisation
over blocks of rows, so that the state is O(k²) whatever the number of rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ._validation import Interval, _fit_context, check_numbers, check_sample_weight
from .exceptions import (
    AttributeScaleWarning,
    IllConditionedKernelWarning,
    RankDeficientKernelError,
)

__all__ = ["FittedKernel", "FourierKernel", "KernelDesign", "PolynomialKernel"]

# Rows a block of the QR factorisation: large enough for BLAS, small enough for the cache.
_BLOCK = 5000
# From this number of rows the columns are factorised by their moments, up to this condition.
_MOMENT_ROWS = 20_000
_MOMENT_CONDITION = 1e4
# A column whose part outside the span of its predecessors is smaller than this share of it is
# dependent on them; rounding leaves about 1e-15.
_RANK_TOLERANCE = 1e-12
# Estimated relative rounding error from which a coefficient comes with a warning.
_CONVERSION_TOLERANCE = 1e-6


def _weighted_moments(
    values: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted mean and population deviation of every column; deviation 0 becomes 1."""
    total = len(values) if weight is None else weight.sum()
    mean = (values.sum(axis=0) if weight is None else weight @ values) / total
    square = np.zeros(values.shape[1])
    for rows in _blocks(len(values)):
        centred = values[rows] - mean
        weighted = centred if weight is None else centred * weight[rows, None]
        square += np.einsum("ij,ij->j", weighted, centred)
    deviation = np.sqrt(square / total)
    # A constant column leaves rounding noise of about eps·|mean|, which is no deviation.
    constant = deviation <= 4 * np.finfo(float).eps * np.abs(mean)
    return mean, np.where(constant | (deviation == 0), 1.0, deviation)


def _blocks(n_rows: int) -> Iterator[slice]:
    """Yield slices that cover the rows."""
    for start in range(0, n_rows, _BLOCK):
        yield slice(start, start + _BLOCK)


class PolynomialKernel(TransformerMixin, BaseEstimator):
    r"""Polynomial kernel V^k: x, x², …, x^k (all monomials of several attributes).

    Parameters
    ----------
    degree : int, default=1
        Highest total degree k, at least 1.
    standardize : bool, default=False
        Whether powers are taken of (x − mean) / sd, with the weighted moments of the rows given
        to :meth:`fit`, instead of x. At degree 2 and above the indicator of raw x depends on
        its unit and origin; with True it depends on neither.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (m,)
        Subtracted from and divided out of the attributes: 0 and 1 without `standardize`.
    powers_ : ndarray of shape (k, m)
        Exponent of every attribute in every column.
    n_features_in_ : int
        Number of attributes m.
    feature_names_in_ : ndarray of shape (m,)
        Names of the attributes, where they were given as text.

    See Also
    --------
    FourierKernel : Sines and cosines.

    Notes
    -----
    Several attributes are expanded jointly, interactions included, in the order of
    :class:`sklearn.preprocessing.PolynomialFeatures` without the constant. Source: Giuliani,
    Misino and Lombardi (2023), section 3, "Choice of Kernel".

    Examples
    --------
    >>> from gedi_sklearn import PolynomialKernel
    >>> PolynomialKernel(degree=3).fit_transform([[1.0], [2.0]])
    array([[1., 1., 1.],
           [2., 4., 8.]])
    >>> PolynomialKernel(degree=2).fit([[1.0, 2.0]]).get_feature_names_out(["age", "income"])
    array(['age', 'income', 'age^2', 'age income', 'income^2'], dtype=object)
    """

    _parameter_constraints: ClassVar[dict] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "standardize": ["boolean"],
    }

    def __init__(self, degree: int = 1, *, standardize: bool = False) -> None:
        self.degree = degree
        self.standardize = standardize

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PolynomialKernel:
        """Learn the moments of the attribute(s).

        Parameters
        ----------
        X : array-like of shape (n, m)
            The attribute(s).
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.

        Returns
        -------
        self : PolynomialKernel
        """
        X = validate_data(self, X, dtype=np.float64)
        weight = check_sample_weight(sample_weight, X.shape[0])
        self.powers_ = _monomials(X.shape[1], self.degree)
        if self.standardize:
            self.mean_, self.scale_ = _weighted_moments(X, weight)
        else:
            self.mean_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Evaluate the monomials.

        Parameters
        ----------
        X : array-like of shape (n, m)
            The attribute(s).

        Returns
        -------
        F : ndarray of shape (n, k)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return _evaluate_monomials((X - self.mean_) / self.scale_, _factors(self.powers_))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the columns, e.g. "age", "age^2".

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the attributes; those seen in :meth:`fit`, or x0, x1, …, by default.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        names = _attribute_names(self, input_features)
        return np.asarray(
            [
                " ".join(
                    name if power == 1 else f"{name}^{power}"
                    for name, power in zip(names, row, strict=True)
                    if power
                )
                for row in self.powers_
            ],
            dtype=object,
        )


class FourierKernel(TransformerMixin, BaseEstimator):
    r"""Fourier kernel: sin(2πjx/T) and cos(2πjx/T) for j = 1…order.

    Parameters
    ----------
    order : int, default=1
        Number of frequencies, at least 1; every attribute gives 2·order columns.
    period : float, default=None
        The period T, in the attribute's unit. None takes the range (largest − smallest value of
        positive weight) of the rows given to :meth:`fit`, so that both ends of the range meet.

    Attributes
    ----------
    period_ : ndarray of shape (m,)
        Period of every attribute; 1 for a constant one.
    n_features_in_ : int
        Number of attributes m.
    feature_names_in_ : ndarray of shape (m,)
        Names of the attributes, where they were given as text.

    See Also
    --------
    PolynomialKernel : Powers.

    Notes
    -----
    Several attributes give the columns of each, without products. Source: Giuliani, Misino and
    Lombardi (2023), section 3, "Choice of Kernel".

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import FourierKernel
    >>> FourierKernel(order=1, period=4.0).fit_transform([[0.0], [1.0], [2.0]]).round(6) + 0.0
    array([[ 0.,  1.],
           [ 1.,  0.],
           [ 0., -1.]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "order": [Interval(Integral, 1, None, closed="left")],
        "period": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(self, order: int = 1, *, period: float | None = None) -> None:
        self.order = order
        self.period = period

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FourierKernel:
        """Learn the period.

        Parameters
        ----------
        X : array-like of shape (n, m)
            The attribute(s).
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows; rows of weight 0 do not count.

        Returns
        -------
        self : FourierKernel
        """
        X = validate_data(self, X, dtype=np.float64)
        weight = check_sample_weight(sample_weight, X.shape[0])
        if self.period is None:
            rows = X if weight is None else X[weight > 0]
            span = np.ptp(rows, axis=0)
            self.period_ = np.where(span == 0, 1.0, span)
        else:
            self.period_ = np.full(X.shape[1], float(self.period))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Evaluate the sines and cosines.

        Parameters
        ----------
        X : array-like of shape (n, m)
            The attribute(s).

        Returns
        -------
        F : ndarray of shape (n, 2 * order * m)
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        angle = 2 * np.pi * X[:, :, None] * np.arange(1, self.order + 1) / self.period_[:, None]
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(X.shape[0], -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the columns, e.g. "sin1(age)", "cos1(age)".

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the attributes; those seen in :meth:`fit`, or x0, x1, …, by default.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return np.asarray(
            [
                f"{wave}{j}({name})"
                for name in _attribute_names(self, input_features)
                for j in range(1, self.order + 1)
                for wave in ("sin", "cos")
            ],
            dtype=object,
        )


def _attribute_names(kernel: Any, input_features: Any) -> list[str]:
    seen = getattr(kernel, "feature_names_in_", None)
    if input_features is None:
        return [f"x{i}" for i in range(kernel.n_features_in_)] if seen is None else list(seen)
    if len(input_features) != kernel.n_features_in_:
        raise ValueError(
            f"input_features should have length equal to number of features "
            f"({kernel.n_features_in_}), got {len(input_features)}"
        )
    if seen is not None and list(input_features) != list(seen):
        raise ValueError("input_features is not equal to feature_names_in_")
    return list(input_features)


def _monomials(n_attributes: int, degree: int) -> np.ndarray:
    """Return the exponents of all monomials of degree 1…degree, lower degrees first."""
    terms = [
        np.bincount(factors, minlength=n_attributes)
        for total in range(1, degree + 1)
        for factors in combinations_with_replacement(range(n_attributes), total)
    ]
    return np.asarray(terms)


def _factors(powers: np.ndarray) -> list[tuple[int, int]]:
    """Return for every monomial an earlier one (−1: the constant) and the attribute it lacks."""
    position = {tuple(row): j for j, row in enumerate(powers.tolist())}
    factors = []
    for row in powers.tolist():
        attribute = next(c for c, power in enumerate(row) if power)
        row[attribute] -= 1
        factors.append((position.get(tuple(row), -1), attribute))
    return factors


def _evaluate_monomials(values: np.ndarray, factors: list[tuple[int, int]]) -> np.ndarray:
    """Return the columns of :func:`_factors`, each one product from an earlier one."""
    # One column after the other in memory, as they are filled.
    columns = np.empty((len(factors), values.shape[0]))
    for column, (parent, attribute) in zip(columns, factors, strict=True):
        if parent < 0:
            column[:] = values[:, attribute]
        else:
            np.multiply(columns[parent], values[:, attribute], out=column)
    return columns.T


def _expansion(powers: np.ndarray, shift: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return E such that monomial j of scale·v + shift is Σ_i E[i, j] · (monomial i of v) + const.

    Upper triangular, since a monomial expands into its divisors only.
    """
    k = len(powers)
    expansion = np.zeros((k, k))
    for j, target in enumerate(powers):
        for i, source in enumerate(powers[: j + 1]):
            if (source <= target).all():
                expansion[i, j] = np.prod(
                    [
                        float(comb(int(t), int(s))) * m ** int(t - s) * d ** int(s)
                        for s, t, m, d in zip(source, target, shift, scale, strict=True)
                    ]
                )
    return expansion


class _Basis:
    """The standardised columns of a kernel and the change of basis to its own columns.

    Attributes
    ----------
    to_raw, from_raw : ndarray of shape (k, k)
        T and its inverse, both upper triangular.
    """

    to_raw: np.ndarray
    from_raw: np.ndarray

    def evaluate(self, values: np.ndarray) -> np.ndarray:
        """Return the standardised columns, not centred, for attribute values (n, m)."""
        raise NotImplementedError


class _PolynomialBasis(_Basis):
    """Monomials of the standardised attribute, whatever the kernel's own unit."""

    def __init__(
        self, kernel: PolynomialKernel, values: np.ndarray, weight: np.ndarray | None
    ) -> None:
        self.mean, self.scale = (
            (kernel.mean_, kernel.scale_)
            if kernel.standardize
            else _weighted_moments(values, weight)
        )
        self.powers = kernel.powers_
        self.factors = _factors(self.powers)
        if kernel.standardize:
            self.to_raw = self.from_raw = np.eye(len(self.powers))
        else:
            self.to_raw = _expansion(self.powers, -self.mean / self.scale, 1 / self.scale)
            self.from_raw = _expansion(self.powers, self.mean, self.scale)

    def evaluate(self, values: np.ndarray) -> np.ndarray:
        standardized = values - self.mean
        standardized /= self.scale
        return _evaluate_monomials(standardized, self.factors)


class _ColumnBasis(_Basis):
    """The kernel's own columns, each standardised: for kernels of unknown structure."""

    def __init__(
        self,
        columns_of: Callable[[np.ndarray], np.ndarray],
        columns: np.ndarray,
        weight: np.ndarray | None,
    ) -> None:
        self.columns_of = columns_of
        self.mean, self.scale = _weighted_moments(columns, weight)
        self.to_raw, self.from_raw = np.diag(1 / self.scale), np.diag(self.scale)

    def evaluate(self, values: np.ndarray) -> np.ndarray:
        return (self.columns_of(values) - self.mean) / self.scale


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
        One name a column.

    Attributes
    ----------
    n_columns : int
        Number of columns k.
    center_ : ndarray of shape (k,)
        Weighted mean of the standardised columns.
    R_ : ndarray of shape (k, k)
        Upper triangular with positive diagonal; R'R is the weighted covariance of the
        standardised columns.
    """

    def __init__(self, kernel: Any, basis: _Basis, names: list[str]) -> None:
        self.kernel = kernel
        self.basis = basis
        self.names = names
        self.n_columns = len(names)
        self.center_ = np.zeros(self.n_columns)
        self.R_ = np.eye(self.n_columns)

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
        values = check_numbers(values, "sensitive_features")
        return (self.basis.evaluate(values) - self.center_) @ self.basis.from_raw

    def orthonormal(self, values: np.ndarray) -> np.ndarray:
        """Return Q for rows (n, m): on the training rows Q'WQ = I and the weighted mean is 0."""
        # R is a few columns wide and, of a standardised basis, well conditioned: a product with
        # its inverse is as exact as a triangular solve of every row, and ten times as fast.
        inverse = solve_triangular(self.R_, np.eye(self.n_columns))
        return (self.basis.evaluate(values) - self.center_) @ inverse


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
        # One target, the products of the centred columns with it, and its variance: found while
        # factorising.
        self._known: tuple[np.ndarray, np.ndarray, float] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return self.values.shape[0]

    def blocks(self) -> Iterator[slice]:
        """Yield slices that cover the rows."""
        return _blocks(self.n_rows)

    def columns(self, rows: slice) -> np.ndarray:
        """Return the standardised columns of some rows, not centred, shape (rows, k)."""
        return self.fitted.basis.evaluate(self.values[rows])

    def shares(self, rows: slice) -> np.ndarray | float:
        """Return the weights of some rows, such that all sum to 1."""
        return 1 / self.n_rows if self.weight is None else self.weight[rows]

    @cached_property
    def orthonormal(self) -> np.ndarray:
        """The n×k matrix Q; only projections ask for it, indicators go block by block."""
        return self.fitted.orthonormal(self.values)

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

    def _solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the orthonormal coordinates c and the standardised coefficients s of a target.

        One step of iterative refinement: the conversion to raw units multiplies what rounding
        leaves in s by (|mean| / sd)^(k−1), so the last digits count. On many rows it is left out
        where the conversion is harmless, since it costs a pass over them.
        """
        R = self.fitted.R_
        known = self._known is not None and self._known[0] is z
        products = self._known[1] if known else self._products(z)  # type: ignore[index]
        coordinates = solve_triangular(R, products, trans="T")
        solution = solve_triangular(R, coordinates)
        if known and np.linalg.cond(self.fitted.basis.to_raw) < _MOMENT_CONDITION:
            return coordinates, solution
        correction = solve_triangular(R, self._products(z, solution), trans="T")
        return coordinates + correction, solution + solve_triangular(R, correction)

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        """Return c = Q'Wz̃, the coefficients of z in the orthonormal basis, shape (k,)."""
        return self._solve(z)[0]

    def standardized(self, z: np.ndarray) -> np.ndarray:
        """Return s = R⁻¹c, the coefficients of z in the standardised basis, shape (k,)."""
        return self._solve(z)[1]

    def coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return α̃ = T s, the coefficients of z in the kernel's own units, shape (k,)."""
        return self.fitted.to_raw(self.standardized(z))

    def checked_coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return :meth:`coefficients`, with a warning where rounding may show in them.

        The estimate is eps·sd(z)·Σ_j‖(T R⁻¹)_j‖ against ‖α̃‖₁. A value that is 0 on the scale
        of sd(z) is exact enough, however small it is.
        """
        standardized = self.standardized(z)
        alpha = self.fitted.to_raw(standardized)
        rows = solve_triangular(self.fitted.R_, self.fitted.basis.to_raw.T, trans="T").T
        deviation = self.deviation(z)
        error = np.finfo(float).eps * deviation * np.linalg.norm(rows, axis=1).sum()
        size = float(np.abs(alpha).sum())
        negligible = 1e-12 * deviation / self.fitted.scale[0]
        if error > max(_CONVERSION_TOLERANCE * size, negligible):
            relative = error / size if size else np.inf
            warnings.warn(IllConditionedKernelWarning.from_error(relative), stacklevel=4)
        return alpha


def fit_kernel(
    kernel: Any,
    values: np.ndarray,
    *,
    degree: int = 1,
    weight: np.ndarray | None = None,
    names: list[str] | None = None,
    target: np.ndarray | None = None,
) -> KernelDesign:
    """Fit a kernel on rows of positive weight.

    Parameters
    ----------
    kernel : {"polynomial", "fourier"}, transformer, callable or array of shape (n, k)
        What :func:`resolve_kernel` accepts.
    values : ndarray of shape (n, m)
        The attribute.
    degree : int, default=1
        Degree or order, for a kernel given by name.
    weight : ndarray of shape (n,), default=None
        Positive weights of any sum.
    names : list of str, default=None
        Names of the attributes.
    target : ndarray of shape (n,), default=None
        A target whose coefficients will be asked for: on many rows it saves a pass over them.

    Returns
    -------
    KernelDesign

    Raises
    ------
    RankDeficientKernelError
        If the kernel's columns are linearly dependent on these rows (rank 0: all constant).
    """
    weight = None if weight is None else weight / weight.sum()
    kernel = resolve_kernel(kernel, degree)
    if isinstance(kernel, PolynomialKernel):
        kernel.fit(values, sample_weight=weight)
        basis: _Basis = _PolynomialBasis(kernel, values, weight)
        labels = list(kernel.get_feature_names_out(names))
    else:
        if isinstance(kernel, np.ndarray):
            kernel, values = None, check_numbers(kernel, "kernel")
        elif hasattr(kernel, "fit"):
            accepts = has_fit_parameter(kernel, "sample_weight")
            kernel.fit(values, **({"sample_weight": weight} if accepts else {}))
        columns_of = _Columns(kernel)
        columns = columns_of(values)
        basis = _ColumnBasis(columns_of, columns, weight)
        labels = _column_names(kernel, columns.shape[1])
    fitted = FittedKernel(kernel, basis, [str(label) for label in labels])
    design = KernelDesign(fitted, values, weight)
    factorize(design, target)
    return design


def resolve_kernel(kernel: Any, degree: int = 1) -> Any:
    """Return an unfitted kernel object, a callable or a float matrix from the `kernel` parameter.

    Raises
    ------
    ValueError
        If the name is unknown, or `degree` is given beside a kernel that carries its own.
    """
    if isinstance(kernel, str):
        if kernel == "polynomial":
            return PolynomialKernel(degree)
        if kernel == "fourier":
            return FourierKernel(degree)
        raise ValueError(f"kernel={kernel!r} is unknown; use 'polynomial', 'fourier' or an object.")
    if degree != 1:
        raise ValueError(
            f"degree={degree} serves a kernel given by name only; got kernel={kernel!r}, which "
            "carries its own. Leave `degree` at 1."
        )
    if hasattr(kernel, "transform"):
        return clone(kernel)
    if callable(kernel):
        return kernel
    if hasattr(kernel, "__array__") or isinstance(kernel, (list, tuple)):
        return check_numbers(kernel, "kernel")
    raise ValueError(
        "kernel must be 'polynomial', 'fourier', a transformer, a callable or a matrix; got "
        f"{kernel!r}."
    )


class _Columns:
    """Evaluate a transformer, a callable, or (None) a matrix that is given as the values.

    A class and not a closure, so that a fitted kernel can be pickled.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, values: np.ndarray) -> np.ndarray:
        columns: Any
        if self.kernel is None:
            columns = values
        elif hasattr(self.kernel, "transform"):
            columns = self.kernel.transform(values)
        else:
            columns = self.kernel(values[:, 0] if values.shape[1] == 1 else values)
        columns = columns.toarray() if sp.issparse(columns) else columns
        columns = check_numbers(columns, "the output of kernel")
        if columns.shape[0] != values.shape[0]:
            raise ValueError(
                f"kernel returned {columns.shape[0]} rows for {values.shape[0]} rows of "
                "sensitive_features."
            )
        return columns


def _column_names(kernel: Any, n_columns: int) -> list[str]:
    if hasattr(kernel, "get_feature_names_out"):
        return list(kernel.get_feature_names_out())
    return [f"f{j}" for j in range(1, n_columns + 1)]


def factorize(design: KernelDesign, target: np.ndarray | None = None) -> None:
    """Find the weighted mean of the standardised columns and the factor R of their centring.

    The columns are factorised with a leading 1: the first row of the factor gives the mean, the
    rest is R. One pass, and no centred copy of the columns. On many rows by the Cholesky factor
    of their moments, where that loses less digits than the condition 1e4 costs; else by QR.
    """
    factor = None
    if design.n_rows > _MOMENT_ROWS:
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
    # The products of two powers are powers: of one attribute, 1 and the last one give them all.
    single = design.fitted.is_single_polynomial
    n_right = 1 if single else k
    right = np.zeros((n_right + 2, _BLOCK))
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
    """Return the upper Cholesky factor; None where the scaled columns are too far from orthogonal.

    Their condition decides, since the factorisation does not feel the scale of a column.
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
    rank = int((own > _RANK_TOLERANCE * np.where(norms == 0, 1.0, norms)).sum())
    if rank < len(own):
        n_distinct = len(np.unique(design.values, axis=0))
        raise RankDeficientKernelError.from_rank(rank, len(own), n_distinct)


def warn_attribute_scale(design: KernelDesign) -> None:
    """Warn once where a polynomial of degree 2 or more meets an attribute in a hostile unit."""
    kernel = design.fitted.kernel
    if not isinstance(kernel, PolynomialKernel) or kernel.standardize or kernel.degree < 2:
        return
    basis = design.fitted.basis
    for mean, scale in zip(basis.mean, basis.scale, strict=True):  # type: ignore[attr-defined]
        if not 0.3 <= scale <= 3 or abs(mean) > 3 * scale:
            warnings.warn(
                AttributeScaleWarning.from_moments(mean, scale, kernel.degree), stacklevel=3
            )
            return


def count_columns(kernel: Any, values: np.ndarray, *, degree: int = 1) -> int:
    """Return the number of columns k of a kernel on an attribute that it may be deficient on."""
    kernel = resolve_kernel(kernel, degree)
    if isinstance(kernel, np.ndarray):
        return kernel.shape[1]
    if hasattr(kernel, "fit"):
        kernel.fit(values)
    return _Columns(kernel)(values).shape[1]
