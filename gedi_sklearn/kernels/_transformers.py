"""Kernels of the protected attribute, by name, by degree and as objects."""

from __future__ import annotations

from abc import abstractmethod
from math import comb, factorial
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import block_diag
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import SplineTransformer
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validation import (
    HasMethods,
    Interval,
    StrOptions,
    _check_feature_names_in,
    _fit_context,
    as_plain,
    check_numbers,
    check_sample_weight,
    remember_signature,
)
from ._columns import AttributeEncoder, Basis, ColumnBasis, PolynomialBasis, SplineBasis
from ._moments import fill_monomials, list_monomials, monomial_factors, row_blocks, weighted_moments

# Floats tell about 40 powers apart.
_MAX_DEGREE = 100
# Share of all weights by which a quantile may be missed.
_QUANTILE_TOLERANCE = 1e-8
# Rows that mostly show that an attribute has more values than there are splines.
_FEW = 1000
# Rows that mostly show where quantiles are, and by how many standard errors a rank among them may
# be wrong.
_SAMPLE, _MARGIN = 4000, 4


class AttributeKernel(TransformerMixin, BaseEstimator):
    """A transformer of the attribute that has a name: its checks, the names of its columns."""

    # What the parameter `kernel` calls it, and its parameter that is a degree; None without one.
    name: ClassVar[str]
    degree_name: ClassVar[str | None] = None
    # What computes its columns.
    basis_type: ClassVar[type[Basis]] = ColumnBasis

    @property
    def learns_range(self) -> bool:
        """Whether columns are those of the range of the fit, and tell nothing beyond it."""
        return False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        remember_signature(cls)

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
        X = check_numbers(validate_data(self, X, dtype=np.float64), "X", sets_scale=True)
        return self.fit_checked(X, check_sample_weight(sample_weight, X.shape[0]))

    def fit_checked(self, X: np.ndarray, weight: np.ndarray | None) -> Self:
        """Learn from rows and weights that have been checked, with parameters that have been.

        Parameters
        ----------
        X : ndarray of shape (n, m)
            The attribute(s), float64.
        weight : ndarray of shape (n,) or None
            Weights of the rows.

        Returns
        -------
        self : object
        """
        self.n_features_in_ = X.shape[1]
        self._learn(X, weight)
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
        return self.transform_checked(validate_data(self, X, dtype=np.float64, reset=False))

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
        return np.asarray(self.column_names(input_features), dtype=object)

    def column_names(self, input_features: Any = None) -> list[str]:
        """Name the columns of a kernel that is known to be fitted."""
        return self._column_names(list(_check_feature_names_in(self, input_features)))

    @abstractmethod
    def _learn(self, X: np.ndarray, weight: np.ndarray | None) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def transform_checked(self, X: np.ndarray) -> np.ndarray:
        """Return the columns (n, k) of rows that have been checked."""

    def least_rows(self) -> int:
        """Return the least number of rows that can tell the columns apart, as far as it is known.

        Of fewer, nothing is evaluated.
        """
        return 0

    def with_levels(self, encoder: AttributeEncoder) -> AttributeKernel:
        """Return the kernel that this one becomes where attributes are categorical.

        Raises
        ------
        ValueError
            If it has none.
        """
        raise ValueError(
            f"{type(self).__name__} needs numbers, and sensitive_features holds text. Use a "
            "polynomial or spline kernel, which measures every level against the first one."
        )

    def in_words(self) -> str:
        """Return its name, with its parameters where they are not the default."""
        is_default = repr(self) == f"{type(self).__name__}()"
        return f"{self.name} kernel" if is_default else f"kernel {self!r}"

    @abstractmethod
    def _column_names(self, names: list[str]) -> list[str]:
        """Return the names of the columns, after those of the attributes."""


class PolynomialKernel(AttributeKernel):
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
    SplineKernel : Dependence of any smooth shape.

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

    name = "polynomial"
    degree_name = "degree"
    basis_type = PolynomialBasis
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

    def least_rows(self) -> int:
        return self.degree + 1

    def with_levels(self, encoder: AttributeEncoder) -> AttributeKernel:
        degree = self.degree
        if encoder.is_indicator.all():
            # No monomial has more factors than there are attributes, and many levels make a long
            # list.
            degree = min(degree, len(encoder.levels))
        return MixedPolynomialKernel(degree, standardize=self.standardize, encoder=encoder)

    def in_words(self) -> str:
        scale = ", standardised" if self.standardize else ""
        return f"polynomial kernel of degree {self.degree}{scale}"

    def transform_checked(self, X: np.ndarray) -> np.ndarray:
        columns = np.empty((len(self.powers_), len(X)))
        columns[: X.shape[1]] = ((X - self.mean_) / self.scale_).T
        return fill_monomials(columns, monomial_factors(self.powers_))

    def _column_names(self, names: list[str]) -> list[str]:
        return [
            " ".join(
                name if power == 1 else f"{name}^{power}"
                for name, power in zip(names, row, strict=True)
                if power
            )
            for row in self.powers_.tolist()
        ]


class MixedPolynomialKernel(PolynomialKernel):
    """Polynomial kernel of attributes, some of which are indicators of levels.

    An indicator is its own square, and two levels of one attribute exclude each other, so a
    monomial holds at most one indicator of each attribute, at power 1. Indicators are never
    standardised: a coefficient is the gap of a level to the reference level.

    Parameters
    ----------
    degree : int, default=1
        Highest total degree.
    standardize : bool, default=False
        Whether numeric attributes are standardised.
    encoder : AttributeEncoder
        Knows which columns are indicators, and which attribute each comes from.
    """

    def __init__(
        self, degree: int = 1, *, standardize: bool = False, encoder: AttributeEncoder
    ) -> None:
        super().__init__(degree, standardize=standardize)
        self.encoder = encoder

    def _learn(self, X: np.ndarray, weight: np.ndarray | None) -> None:
        super()._learn(X, weight)
        encoder = self.encoder
        indicators = np.where(encoder.is_indicator, self.powers_, 0)
        one_each = np.ones(len(self.powers_), dtype=bool)
        for j in np.unique(encoder.attribute[encoder.is_indicator]):
            one_each &= indicators[:, encoder.attribute == j].sum(axis=1) <= 1
        self.powers_ = self.powers_[one_each]
        self.mean_ = np.where(encoder.is_indicator, 0.0, self.mean_)
        self.scale_ = np.where(encoder.is_indicator, 1.0, self.scale_)


class FourierKernel(AttributeKernel):
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
    SplineKernel : Dependence of any smooth shape.

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

    name = "fourier"
    degree_name = "order"
    _parameter_constraints: ClassVar[dict] = {
        "order": [Interval(Integral, 1, None, closed="left")],
        "period": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(self, order: int = 1, *, period: float | None = None) -> None:
        self.order = order
        self.period = period

    @property
    def learns_range(self) -> bool:
        return self.period is None

    def _learn(self, X: np.ndarray, weight: np.ndarray | None) -> None:
        _check_size("order", self.order, 2 * self.order * X.shape[1], X)
        if self.period is None:
            rows = X if weight is None else X[weight > 0]
            span = np.ptp(rows, axis=0)
            self.period_ = np.where(span == 0, 1.0, span)
        else:
            self.period_ = np.full(X.shape[1], float(self.period))

    def in_words(self) -> str:
        period = "" if self.period is None else f", period {self.period:g}"
        return f"Fourier kernel of order {self.order}{period}"

    def transform_checked(self, X: np.ndarray) -> np.ndarray:
        angle = 2 * np.pi * X[:, :, None] * np.arange(1, self.order + 1) / self.period_[:, None]
        waves = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
        # Where a wave is 0 only its rounding is left, which must not pass for a column.
        rounding = 4 * np.finfo(float).eps * np.maximum(np.abs(angle), 1.0)
        waves[np.abs(waves) <= rounding[..., None]] = 0.0
        return waves.reshape(X.shape[0], -1)

    def _column_names(self, names: list[str]) -> list[str]:
        return [
            f"{wave}{j}({name})"
            for name in names
            for j in range(1, self.order + 1)
            for wave in ("sin", "cos")
        ]


class SplineGains:
    """B-splines but the first one, by what they gain in every interval between two knots.

    What a spline gains in an interval is a polynomial without a constant in u, how much of the
    interval lies below x, from 0 to 1. So no coefficient is large, however uneven the knots are,
    and beyond them the columns stay constant.

    Parameters
    ----------
    knots : ndarray of shape (n_knots,)
        The knots from the smallest value to the largest. Those beyond are as far apart as the
        outer two, as in :class:`sklearn.preprocessing.SplineTransformer`.
    degree : int
        Degree of the splines.

    Attributes
    ----------
    coefficients : ndarray of shape (k, 1 + (n_knots − 1) · degree)
        Of 1 and of the powers of every u.
    """

    def __init__(self, knots: np.ndarray, degree: int) -> None:
        self.degree, self.knots = degree, knots
        self.starts, widths = knots[:-1, None], np.diff(knots)[:, None]
        beyond = np.arange(1, degree + 1)
        below, above = knots[0] - widths[0] * beyond[::-1], knots[-1] + widths[-1] * beyond
        n_splines = len(knots) + degree - 1
        splines = BSpline.construct_fast(np.r_[below, knots, above], np.eye(n_splines), degree)
        # Rounded up, so that u is 1 at the next knot.
        self.inverse_widths = np.nextafter(1 / widths, np.inf)
        gains = [
            splines(knots[:-1], nu=power) * widths**power / factorial(power)
            for power in range(1, self.degree + 1)
        ]
        by_interval = np.stack(gains, axis=1).reshape(-1, n_splines)
        self.coefficients = np.vstack([splines(knots[:1]), by_interval])[:, 1:].T.copy()

    def fill(self, x: np.ndarray, powers: np.ndarray) -> None:
        """Write the powers of every u of some values (n,) into rows of `powers`."""
        first = powers[:: self.degree]
        np.subtract(x, self.starts, out=first, casting="same_kind")
        first *= self.inverse_widths
        np.clip(first, 0.0, 1.0, out=first)
        for power in range(1, self.degree):
            own = powers[power :: self.degree]
            if power == 1:
                np.square(first, out=own)  # reads one array, not two
            else:
                np.multiply(powers[power - 1 :: self.degree], first, out=own)


class SplineKernel(AttributeKernel):
    r"""Spline kernel: the B-splines between quantiles of the attribute.

    It sees dependence of any smooth shape, and its columns stay constant beyond the range of the
    rows given to :meth:`fit`, where powers run away.

    Parameters
    ----------
    n_knots : int, default=4
        Number of knots, at least 2, at equally spaced quantiles from the smallest value to the
        largest. Knots that fall on the same value are one.
    degree : int, default=3
        Degree of the polynomials between two knots, at least 1.

    Attributes
    ----------
    splines_ : list of SplineTransformer
        The B-splines of every attribute, which the columns are but for rounding.
    n_features_in_ : int
        Number of attributes m.
    feature_names_in_ : ndarray of shape (m,)
        Names of the attributes, where they were given as text.

    See Also
    --------
    PolynomialKernel : Powers.

    Notes
    -----
    An attribute gives n_knots + degree − 2 columns: its B-splines add up to 1, so the first one is
    left out. Where it has no more distinct values than that plus one, the columns are its
    indicators, of every value but the smallest, and linear between two values: all that can be
    a function of it. A quantile is the smallest value at or below which its share of the weights
    lies, so that an integer weight is that many rows. Several attributes give the columns of
    each, without products.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import SplineKernel
    >>> ages = np.arange(20.0, 60.0).reshape(-1, 1)
    >>> SplineKernel().fit_transform(ages).shape
    (40, 5)
    >>> SplineKernel().fit_transform([[0.0], [1.0], [1.0], [3.0]])
    array([[0., 0.],
           [1., 0.],
           [1., 0.],
           [0., 1.]])
    """

    name = "spline"
    basis_type = SplineBasis
    learns_range = True
    _parameter_constraints: ClassVar[dict] = {
        "n_knots": [Interval(Integral, 2, None, closed="left")],
        "degree": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, n_knots: int = 4, *, degree: int = 3) -> None:
        self.n_knots = n_knots
        self.degree = degree

    def _learn(self, X: np.ndarray, weight: np.ndarray | None) -> None:
        for name in ("n_knots", "degree"):
            size = getattr(self, name)
            _check_size(name, size, size * X.shape[1], X)
        kept = slice(None) if weight is None else weight > 0
        weight = None if weight is None else weight[kept]
        self._gains = [
            SplineGains(*_quantile_knots(x[kept], weight, self.n_knots, self.degree)) for x in X.T
        ]
        each = [own.coefficients for own in self._gains]
        powers = [own[:, 1:] for own in each]
        joined = powers[0] if len(powers) == 1 else block_diag(*powers)
        self._coefficients = np.column_stack([np.concatenate([own[:, 0] for own in each]), joined])

    @property
    def splines_(self) -> list[SplineTransformer]:
        """The B-splines of every attribute."""
        return [
            SplineTransformer(knots=own.knots[:, None], degree=own.degree, extrapolation="constant")
            .set_output(transform="default")
            .fit(own.knots[:, None])
            for own in self._gains
        ]

    def with_levels(self, encoder: AttributeEncoder) -> AttributeKernel:
        # Indicators of levels are splines already; a number needs those of its own.
        return MixedPolynomialKernel(encoder=encoder) if encoder.is_indicator.all() else self

    def transform_checked(self, X: np.ndarray) -> np.ndarray:
        return self.combined(X, np.eye(len(self._coefficients)), 0.0)

    def combined(
        self, X: np.ndarray, matrix: np.ndarray, offset: np.ndarray | float, out: Any = None
    ) -> np.ndarray:
        """Return the columns times a matrix (k, r), plus an offset, at the cost of the columns.

        `out` of shape (r, n) takes them, if it is given.
        """
        coefficients = matrix.T @ self._coefficients
        coefficients[:, 0] += offset
        out = np.empty((len(coefficients), len(X))) if out is None else out
        ends = 1 + np.cumsum([own.coefficients.shape[1] - 1 for own in self._gains])
        for rows in row_blocks(len(X)):
            powers = np.empty((coefficients.shape[1], len(X[rows])))
            powers[0] = 1.0
            for own, x, end in zip(self._gains, X[rows].T, ends, strict=True):
                own.fill(x, powers[end + 1 - own.coefficients.shape[1] : end])
            np.matmul(coefficients, powers, out=out[:, rows])
        return out.T

    def _column_names(self, names: list[str]) -> list[str]:
        columns = []
        for name, own in zip(names, self._gains, strict=True):
            if own.degree > 1:
                columns += [f"spline{j}({name})" for j in range(1, 1 + len(own.coefficients))]
            else:
                columns += [f"{name}={value:g}" for value in own.knots[1:]]
        return columns


def _quantile_knots(
    x: np.ndarray, weight: np.ndarray | None, n_knots: int, degree: int
) -> tuple[np.ndarray, int]:
    """Return the knots of one attribute, and the degree that its values allow."""
    # The tolerance is for rounding of the sums: integer weights reach a quantile exactly.
    shares = np.linspace(0, 1, n_knots)[1:-1] - _QUANTILE_TOLERANCE
    knots = np.array(sorted({x.min(), *_quantiles(x, weight, shares), x.max()}))
    # Knots are values, so that all B-splines are independent on as many values as they are.
    if len(np.unique(x[:_FEW])) < len(knots) + degree:
        values = np.unique(x)
        if len(values) < len(knots) + degree:
            knots, degree = values, 1
        if len(values) == 1:
            knots = np.r_[knots, knots + 1 + np.abs(knots)]
    return knots, degree


def _quantiles(x: np.ndarray, weight: np.ndarray | None, shares: np.ndarray) -> list[float]:
    """Return the least numbers up to which the rows have some shares of all weights.

    Each is one of the rows between two numbers of a sorted sample, which are few: to look there
    takes a fraction of the time of all rows.
    """
    step = max(len(x) // _SAMPLE, 1)
    order = step * np.argsort(x[::step])
    sample = x[order]
    reached = np.arange(1.0, len(order) + 1) if weight is None else np.cumsum(weight[order])
    places = np.searchsorted(reached, shares * reached[-1])
    if step == 1:
        return list(sample[places])
    margin = int(_MARGIN * np.sqrt(len(sample)) / 2)
    ends = np.clip([places - margin, places + margin], 0, len(sample) - 1)
    goals, found = shares * (len(x) if weight is None else weight.sum()), []
    for low, high, goal in zip(*sample[ends], goals, strict=True):
        is_below, rows = x < low, (x >= low) & (x <= high)
        below, near = (_total(given, weight) for given in (is_below, rows))
        if not below < goal <= below + near:  # the sample is no likely one
            rows, below = np.ones(len(x), dtype=bool), 0.0
        found.append(_number_at(goal - below, x[rows], None if weight is None else weight[rows]))
    return found


def _total(rows: np.ndarray, weight: np.ndarray | None) -> float:
    return float(np.count_nonzero(rows) if weight is None else weight @ rows)


def _number_at(goal: float, x: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the least number up to which the rows have a weight."""
    if weight is None:
        at = int(np.ceil(goal)) - 1
        return np.partition(x, at)[at]
    order = np.argsort(x)
    at = int(np.searchsorted(np.cumsum(weight[order]), goal))
    return x[order[min(at, len(x) - 1)]]


def _check_size(parameter: str, value: int, n_columns: float, X: np.ndarray) -> None:
    """Raise before columns are made that are far more than the rows, or a sane number."""
    if n_columns > 10 * max(len(X), 100):
        raise ValueError(
            f"{parameter}={value} of {X.shape[1]} column(s) of sensitive_features makes far more "
            f"functions than {len(X)} rows, or floats, can tell apart. Lower {parameter}."
        )


NAMED_KERNELS: dict[str, type[AttributeKernel]] = {
    kind.name: kind for kind in (PolynomialKernel, FourierKernel, SplineKernel)
}


# The declared range of a parameter `kernel` that takes no precomputed matrix.
KERNEL_CONSTRAINTS: list[Any] = [
    Interval(Integral, 1, None, closed="left"),
    StrOptions(set(NAMED_KERNELS)),
    HasMethods(["fit", "transform"]),
    callable,
]
_QUOTED_NAMES = ", ".join(map(repr, NAMED_KERNELS))


def resolve_kernel(kernel: Any) -> Any:
    """Return an unfitted kernel object, a callable or a float matrix from the `kernel` parameter.

    An integer is the polynomial kernel of that degree.

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter of the kernel is out of its range.
    TypeError
        If it is a class.
    """
    if isinstance(kernel, str):
        if kernel not in NAMED_KERNELS:
            raise ValueError(f"kernel={kernel!r} is unknown; use {_QUOTED_NAMES} or an object.")
        return NAMED_KERNELS[kernel]()
    if is_degree(kernel):
        return PolynomialKernel(int(kernel))
    # Checked before "transform", which data frames have as well.
    if hasattr(kernel, "__array__") or isinstance(kernel, (list, tuple)):
        return check_numbers(kernel, "kernel")
    if isinstance(kernel, type):
        raise TypeError(f"kernel must be an object, got a class; pass {kernel.__name__}().")
    if hasattr(kernel, "transform"):
        kernel = clone(kernel)
        if is_named(kernel):
            try:
                kernel._validate_params()  # its `fit` does not within another checked call
            except ValueError as error:  # a plain one: scikit-learn's is renamed on its way
                raise ValueError(f"kernel={kernel!r}: {error}") from error
        return kernel
    if callable(kernel):
        return kernel
    raise ValueError(
        f"kernel must be {_QUOTED_NAMES}, a transformer, a callable or a matrix; got {kernel!r}."
    )


def is_degree(kernel: Any) -> bool:
    """Tell whether a kernel is an integer, the polynomial of that degree."""
    return isinstance(kernel, Integral) and not isinstance(kernel, bool)


def is_named(kernel: Any) -> TypeGuard[AttributeKernel]:
    """Tell whether a kernel object is of a type that has a name."""
    return isinstance(kernel, AttributeKernel)


def kernel_of_degree(kernel: Any, degree: int) -> Any:
    """Return the same kernel at another degree; one without a degree as it is.

    Parameters
    ----------
    kernel : transformer, callable or array
        What :func:`resolve_kernel` returns.
    degree : int
        The degree (order).

    Returns
    -------
    transformer, callable or array

    Raises
    ------
    ValueError
        If a degree other than 1 is asked of a kernel that has a name and no degree.
    """
    if not is_named(kernel):
        return kernel
    if kernel.degree_name is not None:
        return clone(kernel).set_params(**{kernel.degree_name: degree})
    if degree != 1:
        raise ValueError(
            f"relative={degree} asks for the indicator at degree {degree}, which a {kernel.name} "
            "kernel does not have. Use relative=True, a share of its own indicator."
        )
    return kernel


def describe_kernel(kernel: Any) -> str:
    """Return a kernel in words, for descriptions of estimators and constraints.

    Parameters
    ----------
    kernel : int, str, transformer or callable
        The parameter `kernel`.

    Returns
    -------
    str

    Examples
    --------
    >>> from gedi_sklearn.kernels import PolynomialKernel, describe_kernel
    >>> describe_kernel(3)
    'polynomial kernel of degree 3'
    >>> describe_kernel(PolynomialKernel(5, standardize=True))
    'polynomial kernel of degree 5, standardised'
    """
    if isinstance(kernel, str) or is_degree(kernel):
        kernel = resolve_kernel(kernel)
    return kernel.in_words() if is_named(kernel) else f"kernel {kernel!r}"


def kernel_to_dict(kernel: Any) -> Any:
    """Return a kernel as text, numbers and lists, for JSON.

    Raises
    ------
    TypeError
        If it is an object of another library, or a callable.
    """
    if isinstance(kernel, str) or is_degree(kernel):
        return as_plain(kernel)
    if is_named(kernel):
        parameters = {key: as_plain(own) for key, own in kernel.get_params().items()}
        return {"name": kernel.name, **parameters}
    raise TypeError(
        f"to_dict writes kernels that have a name, got kernel={kernel!r}. Pickle the accumulator."
    )


def kernel_from_dict(state: Any) -> Any:
    """Return the kernel that :func:`kernel_to_dict` has written."""
    if isinstance(state, (str, int)):
        return state
    parameters = dict(state)
    return NAMED_KERNELS[parameters.pop("name")](**parameters)
