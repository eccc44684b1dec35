"""Indicators of data that come in chunks, and from many machines."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from .._validation import (
    Interval,
    Level,
    StrOptions,
    _fit_context,
    as_plain,
    attribute_columns,
    check_attribute,
    check_attribute_columns,
    check_random_state,
    is_text,
    validate_params,
)
from ..exceptions import IllConditionedKernelWarning, RankDeficientKernelError, warn_caller
from ..kernels import (
    KERNEL_CONSTRAINTS,
    KernelSums,
    fit_kernel,
    kernel_from_dict,
    kernel_of_degree,
    kernel_to_dict,
    list_columns,
    resolve_kernel,
)
from ._gedi import NORMS, RELATIVE
from ._inputs import Sample, attribute_names, check_sample, ratio, undefined, undefined_if_constant
from ._jackknife import jackknife_limit
from ._linear import KernelIndicator
from ._null import GediNull, check_levels
from ._reference import check_relative

# Rows of the first chunk that fix the scale of the kernel.
_N_REFERENCE = 1000
_N_PARTS = 32


class GediAccumulator(BaseEstimator):
    r"""GeDI of any number of rows, from chunks of them, in one pass and O(k²) memory.

    Parameters
    ----------
    kernel : str, transformer or callable, default="polynomial"
        The functions of the attribute whose influence counts; see :func:`gedi`.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    reference : array-like of shape (r,) or (r, m), default=None
        Values of the attribute that fix the scale in which sums are taken, the knots of splines and
        the period of a Fourier kernel: a sample over the attribute's whole range. None takes 1,000
        rows of the first chunk, and its extremes. Powers need no exact scale: their coefficients
        are those of all rows, whatever the reference.
    pos_label : object, default=None
        The label that counts as 1 (all others as 0); needed for text and categories.

    Attributes
    ----------
    reference_ : ndarray of shape (r, m)
        The values that fix the scale. Accumulators can be merged where they have the same.
    n_rows_ : int
        Number of rows of positive weight so far.

    See Also
    --------
    gedi : The indicator of rows in memory.

    Notes
    -----
    With Q the kernel's columns, orthonormal on the reference, the state is the sum over all rows
    of w (1, Q, y)(1, Q, y)': the coefficients follow from it by a solve with k unknowns.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.metrics import GediAccumulator, gedi
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 3000))
    >>> y = x + x**2 + noise
    >>> accumulator = GediAccumulator(degree=2)
    >>> for rows in np.split(np.arange(3000), 3):
    ...     accumulator.update(y[rows], sensitive_features=x[rows])
    GediAccumulator(degree=2)
    ...
    >>> round(accumulator.gedi() - gedi(y, sensitive_features=x, degree=2), 9) + 0.0
    0.0
    """

    _parameter_constraints: ClassVar[dict] = {
        "kernel": KERNEL_CONSTRAINTS,
        "degree": [Interval(Integral, 1, None, closed="left")],
        "reference": ["array-like", None],
        "pos_label": "no_validation",
    }

    def __init__(
        self,
        kernel: Any = "polynomial",
        degree: int = 1,
        *,
        reference: Any = None,
        pos_label: Any = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.reference = reference
        self.pos_label = pos_label

    def update(
        self,
        y_true: Any,
        y_pred: Any = None,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
    ) -> Self:
        """Add rows.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Original targets of the chunk.
        y_pred : array-like of shape (n,), default=None
            Predictions; given with every chunk, or with none.
        sensitive_features : array-like of shape (n,) or (n, m)
            The protected attribute.
        sample_weight : array-like of shape (n,), default=None
            Weights; rows of weight 0 are left out, and so is a chunk of no others.

        Returns
        -------
        self : object

        Raises
        ------
        RankDeficientKernelError
            If the kernel's columns are linearly dependent on the reference.
        ValueError
            If values are missing or infinite, lengths differ, or chunks do not fit together.
        """
        given = (y_true, y_pred, sensitive_features, sample_weight, self.pos_label)
        # Sums of powers tell whether a value is extreme: no pass is needed to look for it.
        are_telling = hasattr(self, "sums_") and self.sums_.are_powers
        sample = check_sample(*given, ensure_all_finite=not are_telling, may_be_empty=True)
        if not len(sample.y_true):
            return self
        targets = [sample.y_true] if y_pred is None else [sample.y_true, sample.target]
        if not hasattr(self, "sums_"):
            self._fix_basis(sample, sensitive_features, targets)
        fitted = self.sums_.fitted
        check_attribute_columns(fitted.attribute_columns, sensitive_features)
        if sample.values.shape[1] != fitted.n_attributes:
            raise ValueError(
                f"sensitive_features has {sample.values.shape[1]} column(s), the reference has "
                f"{fitted.n_attributes}."
            )
        if fitted.encoder is None and is_text(sample.values):
            raise ValueError(
                "sensitive_features holds text or categories, where the reference holds numbers. "
                "Pass the same attribute as in `reference`, or in the first chunk."
            )
        if len(targets) != len(self.sums_.origin):
            raise ValueError(
                "y_pred must be given with every chunk or with none; this one is unlike the first."
            )
        values = (
            sample.values if fitted.encoder is None else fitted.encoder.transform(sample.values)
        )
        if not self.sums_.add_rows(values.astype(np.float64, copy=False), targets, _weight(sample)):
            check_sample(*given)  # names the argument, where a single value is too large
            raise ValueError(
                "powers of sensitive_features, in units of the deviation of `reference_`, leave "
                "the range of floats. Pass a reference that covers the attribute's range."
            )
        return self

    def partial_fit(
        self,
        y_true: Any,
        y_pred: Any = None,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
    ) -> Self:
        """Add rows: :meth:`update` by scikit-learn's name.

        Parameters
        ----------
        y_true, y_pred, sensitive_features, sample_weight
            As in :meth:`update`.

        Returns
        -------
        self : object
        """
        return self.update(
            y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight
        )

    def merge(self, other: GediAccumulator) -> Self:
        """Add the rows of another accumulator.

        Parameters
        ----------
        other : GediAccumulator
            One with the same parameters and the same `reference_`; it stays as it is.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the other one's basis is another, or one has predictions and the other has none.
        """
        if not isinstance(other, GediAccumulator):
            raise TypeError(f"other must be a GediAccumulator, got {other!r}.")
        if other.n_rows_ == 0:
            return self
        if self.n_rows_ == 0:
            self._start(other.reference_, other._names, other._columns, other._sums().origin)
        if not self._sums().add(other._sums()):
            raise ValueError(
                "other sums in another basis: its kernel, its reference_ or its number of targets "
                "differs. Give all accumulators the same parameters, and reference= a sample of "
                "the attribute, such as `reference_` of the first one."
            )
        return self

    @property
    def n_rows_(self) -> int:
        """Number of rows of positive weight so far."""
        return self.sums_.n_rows if hasattr(self, "sums_") else 0

    def coefficients(self) -> np.ndarray:
        """Return the coefficients α̃ of the predictions, or of the targets where there are none.

        Returns
        -------
        ndarray of shape (k,)
            NaN, with :class:`sklearn.exceptions.UndefinedMetricWarning`, where the attribute is
            constant.
        """
        try:
            design = self.indicator("l1").design
        except RankDeficientKernelError as error:
            return np.full(self._sums().fitted.n_columns, undefined_if_constant(error))
        return design.checked_coefficients(self.shares())

    @validate_params(
        {"norm": [StrOptions(set(NORMS))], "relative": RELATIVE}, prefer_skip_nested_validation=True
    )
    def gedi(self, *, norm: str = "l1", relative: bool | int = False) -> float:
        """Return the indicator of the predictions, or of the targets where there are none.

        Parameters
        ----------
        norm : {"l1", "sd", "adjusted_sd"}, default="l1"
            See :func:`gedi`.
        relative : bool or int, default=False
            Divide by the indicator of `y_true`; see :func:`gedi`. A degree is at most that of the
            kernel.

        Returns
        -------
        float
            NaN, with :class:`sklearn.exceptions.UndefinedMetricWarning`, where it is undefined.

        Raises
        ------
        RankDeficientKernelError
            If the kernel's columns are linearly dependent.
        """
        check_relative(relative, norm)
        try:
            indicator = self.indicator(norm)
            value = indicator.measure(self.shares())
        except RankDeficientKernelError as error:
            return undefined_if_constant(error)
        if np.isnan(value):
            return undefined(f"norm={norm!r} needs more rows than kernel columns.")
        return ratio(value, self.reference_value(norm, relative)) if relative else value

    @validate_params(
        {
            "norm": [StrOptions({"l1", "sd"})],
            "quantiles": ["array-like"],
            "n_resamples": [Interval(Integral, 1, None, closed="left")],
            "random_state": ["random_state"],
        },
        prefer_skip_nested_validation=True,
    )
    def null(
        self,
        *,
        norm: str = "l1",
        quantiles: Any = (0.05, 0.5, 0.95),
        n_resamples: int = 10_000,
        random_state: Any = 0,
    ) -> GediNull:
        """Return the value that the indicator takes by chance; see :func:`gedi_null`.

        Parameters
        ----------
        norm : {"l1", "sd"}, default="l1"
            The norm.
        quantiles : array-like of shape (q,), default=(0.05, 0.5, 0.95)
            Levels of the quantiles.
        n_resamples : int, default=10_000
            Number of simulated coefficient vectors.
        random_state : int, RandomState instance or None, default=0
            Seed of the simulation.

        Returns
        -------
        GediNull
        """
        levels = check_levels(quantiles)
        indicator, target = self.indicator(norm), self.shares()
        rng = check_random_state(random_state)
        return GediNull(
            mean=indicator.null_mean(target),
            quantiles=indicator.null_quantiles(target, levels, n_resamples, rng),
            levels=levels,
        )

    @validate_params(
        {
            "norm": [StrOptions({"l1", "sd"})],
            "relative": RELATIVE,
            "confidence": [Interval(Real, 0, 1, closed="neither")],
            "fitted": ["boolean"],
        },
        prefer_skip_nested_validation=True,
    )
    def upper_bound(
        self,
        *,
        norm: str = "l1",
        relative: bool | int = False,
        confidence: float = 0.95,
        fitted: bool = False,
    ) -> float:
        """Return a one-sided upper confidence limit; see :func:`gedi_upper_bound`.

        Rows are dealt to 32 parts as they come, and the standard errors are those of the jackknife
        that leaves one of them out: robust ones would need a second pass. Rows that depend on
        each other should lie next to each other. The farthest rows, which the deviation explained
        (`norm="sd"`) is allowed to lack more of, are taken from those with the extremes of each
        attribute; its skewness is not corrected for.

        Parameters
        ----------
        norm : {"l1", "sd"}, default="l1"
            The norm.
        relative : bool or int, default=False
            Divide by the indicator of `y_true`, which is taken as known.
        confidence : float, default=0.95
            Confidence level, between 0 and 1.
        fitted : bool, default=False
            Whether the predictions were fitted, or corrected, on these rows.

        Returns
        -------
        float
            NaN, with :class:`sklearn.exceptions.UndefinedMetricWarning`, where there are no more
            parts with rows than kernel columns.
        """
        check_relative(relative, norm)
        sums, shares = self._sums(), self.shares()
        limit = jackknife_limit(sums, shares, norm, confidence, simultaneous=fitted)
        if limit is None:
            return undefined("the rows are too few for the standard errors of the coefficients.")
        return ratio(limit, self.reference_value(norm, relative)) if relative else limit

    def to_dict(self) -> dict:
        """Return parameters and state as numbers, text and lists, for JSON.

        Returns
        -------
        dict

        Raises
        ------
        TypeError
            If the kernel is an object of another library, or a callable.
        """
        sums = self._sums()
        return {
            "kernel": kernel_to_dict(self.kernel),
            "degree": as_plain(self.degree),
            "pos_label": as_plain(self.pos_label),
            "reference": self.reference_.tolist(),
            "names": self._names,
            "columns": self._columns,
            "n_rows": sums.n_rows,
            "origin": sums.origin.tolist(),
            "products": sums.products.tolist(),
            "squares": sums.squares.tolist(),
            "unweighted": sums.unweighted.tolist(),
            "ends": [own.tolist() for own in sums.ends],
        }

    @classmethod
    def from_dict(cls, state: dict) -> Self:
        """Return the accumulator that :meth:`to_dict` has written.

        Parameters
        ----------
        state : dict
            What :meth:`to_dict` returned, also after a round through JSON.

        Returns
        -------
        GediAccumulator
        """
        reference = np.asarray(state["reference"], dtype=object)
        if any(isinstance(value, str) for value in reference[0]):
            for column in reference.T:
                # Text is a level by declaration, whether or not it looks like a number.
                column[:] = [Level(v) if isinstance(v, str) else v for v in column]
        else:
            reference = reference.astype(np.float64)
        accumulator = cls(
            kernel_from_dict(state["kernel"]), state["degree"], pos_label=state["pos_label"]
        )
        accumulator._start(reference, state["names"], state["columns"], np.array(state["origin"]))
        sums = accumulator.sums_
        sums.n_rows = state["n_rows"]
        for name in ("products", "squares", "unweighted"):
            setattr(sums, name, np.asarray(state[name], dtype=np.float64))
        values, weight = (np.asarray(own, dtype=np.float64) for own in state["ends"])
        sums.ends = values, weight
        return accumulator

    @_fit_context(prefer_skip_nested_validation=True)
    def _fix_basis(self, sample: Sample, given: Any, targets: list[np.ndarray]) -> None:
        """Fit the kernel on the reference, or on rows of the first chunk."""
        if self.reference is None:
            reference, columns = sample.values, attribute_columns(given)
            reference = reference[spread_rows(reference, _N_REFERENCE)]
        else:
            reference = check_attribute(self.reference, None, kind="mixed", name="reference")
            columns = attribute_columns(self.reference)
            if reference.shape[1] != sample.values.shape[1]:
                raise ValueError(
                    f"sensitive_features has {sample.values.shape[1]} column(s), reference has "
                    f"{reference.shape[1]}."
                )
        origin = np.array([target.mean() for target in targets])
        self._start(reference, attribute_names(given), columns, origin)

    def _start(
        self,
        reference: np.ndarray,
        names: list[str] | None,
        columns: list[str] | None,
        origin: np.ndarray,
    ) -> None:
        """Set the basis, with sums of no row."""
        fitted = fit_kernel(self.kernel, reference, degree=self.degree, names=names).fitted
        fitted.attribute_columns = columns
        self.reference_, self._names, self._columns = reference, names, columns
        self.sums_ = KernelSums(fitted, origin, _N_PARTS)

    def _sums(self) -> KernelSums:
        if not hasattr(self, "sums_"):
            raise NotFittedError("the accumulator has no rows yet; call its `update` first.")
        return self.sums_

    def shares(self, *, original: bool = False) -> np.ndarray:
        """Return the shares of the accumulated targets in what is measured."""
        shares = np.zeros(len(self._sums().origin))
        shares[0 if original else -1] = 1.0
        return shares

    def indicator(self, norm: str, columns: np.ndarray | None = None) -> KernelIndicator:
        """Return the indicator on the rows so far; a target is given by :meth:`shares`.

        Parameters
        ----------
        norm : {"l1", "sd", "adjusted_sd"}
            The norm.
        columns : ndarray of int, default=None
            The columns of the kernel that count; None for all.
        """
        design = self._sums().design(columns=columns)
        if design.is_ill_conditioned:
            warn_caller(IllConditionedKernelWarning.from_reference(design.condition))
        return KernelIndicator(design, norm, design.total)

    def reference_value(self, norm: str, relative: bool | int) -> float:
        """Return the indicator of `y_true` that a relative value is a share of; 0 within rounding.

        Parameters
        ----------
        norm : {"l1", "sd", "adjusted_sd"}
            The norm.
        relative : bool or int
            Degree of the reference in the L1 norm; True is 1.
        """
        columns = self._reference_columns(int(relative)) if norm == "l1" else None
        return self.indicator(norm, columns).reference(self.shares(original=True))

    def _reference_columns(self, degree: int) -> np.ndarray:
        """Return the columns of the same kernel at the degree that `relative` asks for."""
        known = self._sums().fitted.names
        own = resolve_kernel(self.kernel, self.degree)
        wanted = kernel_of_degree(own, degree)
        names = list_columns(wanted, self.reference_, names=self._names)
        if not set(names) <= set(known):
            raise ValueError(
                f"relative={degree} is above the degree of the kernel, whose columns alone were "
                "summed up. Use a kernel of at least that degree."
            )
        return np.array([known.index(name) for name in names])


def spread_rows(values: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the positions of about so many rows, extremes of numbers and each level among them.

    Parameters
    ----------
    values : ndarray of shape (n, m)
        Checked attributes of at least one row.
    n_rows : int
        How many rows are spread over all.

    Returns
    -------
    ndarray of int
    """
    rows = [np.linspace(0, len(values) - 1, min(len(values), n_rows)).astype(int)]
    for column in values.T:
        if is_text(column):
            rows.append(np.unique(column.astype(str), return_index=True)[1])
        else:
            rows.append(np.array([np.argmin(column), np.argmax(column)]))
    return np.unique(np.concatenate(rows))


def _weight(sample: Sample) -> np.ndarray | None:
    """Return the weights as they were given; None where all are 1."""
    n = len(sample.target)
    if sample.weight is not None or sample.total in (None, n):
        return sample.weight
    return np.full(n, sample.total / n)
