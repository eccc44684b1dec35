"""The kernels that users name: scikit-learn transformers of the attribute."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import comb
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import Interval, _fit_context, check_sample_weight
from ._moments import evaluate_monomials, list_monomials, monomial_factors, weighted_moments

# Floats tell about 40 powers apart.
_MAX_DEGREE = 100


class _AttributeKernel(TransformerMixin, BaseEstimator):
    """A transformer of the attribute: its checks, and the names of its columns."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what the columns depend on.

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
        self : object
        """
        X = validate_data(self, X, dtype=np.float64)
        self._learn(X, check_sample_weight(sample_weight, X.shape[0]))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Evaluate the columns.

        Parameters
        ----------
        X : array-like of shape (n, m)
            The attribute(s).

        Returns
        -------
        F : ndarray of shape (n, k)
        """
        check_is_fitted(self)
        return self._evaluate(validate_data(self, X, dtype=np.float64, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the columns, e.g. "age^2" or "sin1(age)".

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the attributes; those seen in :meth:`fit`, or x0, x1, …, by default.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self)
        return np.asarray(self._column_names(_attribute_names(self, input_features)), dtype=object)

    @abstractmethod
    def _learn(self, X: np.ndarray, weight: np.ndarray | None) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _evaluate(self, X: np.ndarray) -> np.ndarray:
        """Return the columns, (n, k)."""

    @abstractmethod
    def _column_names(self, names: list[str]) -> list[str]:
        """Return the names of the columns, after those of the attributes."""


class PolynomialKernel(_AttributeKernel):
    r"""Polynomial kernel V^k: x, x², …, x^k (all monomials of several attributes).

    Parameters
    ----------
    degree : int, default=1
        Highest total degree k, from 1 to 100: floats tell no more than about 40 powers apart.
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

    def _learn(self, X: np.ndarray, weight: np.ndarray | None) -> None:
        n_columns = comb(X.shape[1] + self.degree, self.degree) - 1
        _check_size("degree", self.degree, n_columns if self.degree <= _MAX_DEGREE else np.inf, X)
        self.powers_ = list_monomials(X.shape[1], self.degree)
        if self.standardize:
            self.mean_, self.scale_ = weighted_moments(X, weight)
        else:
            self.mean_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])

    def _evaluate(self, X: np.ndarray) -> np.ndarray:
        return evaluate_monomials((X - self.mean_) / self.scale_, monomial_factors(self.powers_))

    def _column_names(self, names: list[str]) -> list[str]:
        return [
            " ".join(
                name if power == 1 else f"{name}^{power}"
                for name, power in zip(names, row, strict=True)
                if power
            )
            for row in self.powers_
        ]


class FourierKernel(_AttributeKernel):
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

    def _learn(self, X: np.ndarray, weight: np.ndarray | None) -> None:
        _check_size("order", self.order, 2 * self.order * X.shape[1], X)
        if self.period is None:
            rows = X if weight is None else X[weight > 0]
            span = np.ptp(rows, axis=0)
            self.period_ = np.where(span == 0, 1.0, span)
        else:
            self.period_ = np.full(X.shape[1], float(self.period))

    def _evaluate(self, X: np.ndarray) -> np.ndarray:
        angle = 2 * np.pi * X[:, :, None] * np.arange(1, self.order + 1) / self.period_[:, None]
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(X.shape[0], -1)

    def _column_names(self, names: list[str]) -> list[str]:
        return [
            f"{wave}{j}({name})"
            for name in names
            for j in range(1, self.order + 1)
            for wave in ("sin", "cos")
        ]


def _check_size(parameter: str, value: int, n_columns: float, X: np.ndarray) -> None:
    """Raise before columns are made that are far more than the rows, or a sane number."""
    if n_columns > 10 * max(len(X), 100):
        raise ValueError(
            f"{parameter}={value} of {X.shape[1]} column(s) of sensitive_features makes far more "
            f"functions than {len(X)} rows, or floats, can tell apart. Lower {parameter}."
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


@dataclass(frozen=True)
class NamedKernel:
    """A kernel that the parameter `kernel` can name.

    Attributes
    ----------
    type : type
        The transformer.
    degree : str
        Name of its parameter that `degree` sets.
    word : str
        Its name in descriptions.
    """

    type: type
    degree: str
    word: str


NAMED_KERNELS = {
    "polynomial": NamedKernel(PolynomialKernel, "degree", "polynomial"),
    "fourier": NamedKernel(FourierKernel, "order", "Fourier"),
}
