"""Indicators of data that come in chunks, and from many machines."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from .._validation import (
    Interval,
    StrOptions,
    _fit_context,
    as_plain,
    attribute_columns,
    check_attribute,
    check_attribute_columns,
    check_levels,
    is_text,
    refuse_mixed_levels,
    validate_params,
)
from ..exceptions import (
    AttributeRangeWarning,
    IllConditionedKernelWarning,
    RankDeficientKernelError,
    warn_caller,
)
from ..kernels import (
    KERNEL_CONSTRAINTS,
    Sums,
    fit_kernel,
    kernel_of_degree,
    kernel_to_dict,
    list_columns,
    resolve_kernel,
    sums_of,
)
from ._gedi import NORMS, RELATIVE, check_relative, positive_unit
from ._inference import INFERENCE_CONSTRAINTS, GediInference
from ._inputs import (
    Sample,
    attribute_names,
    check_sample,
    is_constraint,
    ratio,
    undefined,
    undefined_if_constant,
)
from ._summed import AccumulatorState, SummedIndicator, TargetCorrection

# Rows of the first chunk that fix the scale of the kernel.
_N_REFERENCE = 1000
# Share of the rows of a chunk beyond the reference from which on that is no accident.
_MANY = 0.1
_N_PARTS = 32


class GediAccumulator(BaseEstimator):
    r"""GeDI of any number of rows, read in chunks: one pass and O(k²) memory.

    Parameters
    ----------
    kernel : int, str, transformer or callable, default=1
        The functions of the attribute whose influence counts; see :func:`gedi`.
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
    of w (1, Q, y)(1, Q, y)': the coefficients follow from it by a solve with k unknowns. Of one
    attribute of text it is the sums in each of its g levels, O(g).

    An accumulator is not thread-safe: threads that update the same one lose rows. Give each of
    them one of its own, with the same parameters and `reference`, and :meth:`merge` them.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.metrics import GediAccumulator, gedi
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 3000))
    >>> y = x + x**2 + noise
    >>> accumulator = GediAccumulator(kernel=2)
    >>> for rows in np.split(np.arange(3000), 3):
    ...     accumulator.update(y[rows], sensitive_features=x[rows])
    GediAccumulator(kernel=2)
    ...
    >>> round(accumulator.gedi() - gedi(y, sensitive_features=x, kernel=2), 9) + 0.0
    0.0
    """

    _parameter_constraints: ClassVar[dict] = {
        "kernel": KERNEL_CONSTRAINTS,
        "reference": ["array-like", None],
        "pos_label": "no_validation",
    }

    def __init__(self, kernel: Any = 1, *, reference: Any = None, pos_label: Any = None) -> None:
        self.kernel = kernel
        self.reference = reference
        self.pos_label = pos_label

    def update(
        self, y_true: Any, y_pred: Any = None, *, sensitive_features: Any, sample_weight: Any = None
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

        Warns
        -----
        AttributeRangeWarning
            If more than a tenth of the rows, and more than one, lie beyond the reference that fixed
            knots or the period.
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
        refuse_mixed_levels(sample.values, "sensitive_features")
        _check_kinds(self.reference_, sample.values)
        if len(targets) != len(self.sums_.origin):
            raise ValueError(
                "y_pred must be given with every chunk or with none; this one is unlike the first."
            )
        values = (
            sample.values if fitted.encoder is None else fitted.encoder.transform(sample.values)
        )
        self._warn_of_range(values)
        if not self.sums_.add_rows(values.astype(np.float64, copy=False), targets, _weight(sample)):
            check_sample(*given)  # names the argument, where a single value is too large
            raise ValueError(
                "powers of sensitive_features, in units of the deviation of `reference_`, leave "
                "the range of floats. Pass a reference that covers the attribute's range."
            )
        return self

    def _warn_of_range(self, values: np.ndarray) -> None:
        """Warn of a chunk beyond the knots, as of the second one of a sorted file."""
        fitted = self.sums_.fitted
        if not getattr(fitted.kernel, "learns_range", False):
            return
        low, high = fitted.range_
        beyond = ((values < low) | (values > high)).sum(axis=0)
        if (beyond > max(1, _MANY * len(values))).any():  # one of a short chunk may be chance
            first = int(np.argmax(beyond))
            warn_caller(AttributeRangeWarning.from_reference(low[first], high[first]))

    partial_fit = update  # by scikit-learn's name

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
        TypeError
            If `other` is no accumulator.
        ValueError
            If a parameter, `reference_` or the columns of the attribute differ, or if one has
            predictions and the other has none; this accumulator then stays as it was.
        """
        if not isinstance(other, GediAccumulator):
            raise TypeError(f"other must be a GediAccumulator, got {other!r}.")
        if other.n_rows_ == 0:
            return self
        _refuse(self._other_parameter(other))
        merged = self
        if self.n_rows_ == 0:
            merged = clone(self)
            merged._start(other.reference_, other._names, other._columns, other.sums_.origin)
        _refuse(merged._other_basis(other))
        merged.sums_.add(other.sums_)
        self.__dict__.update(vars(merged))
        return self

    def _other_parameter(self, other: GediAccumulator) -> str | None:
        """Return which parameter another accumulator does not share; None where it shares all."""
        if self.pos_label != other.pos_label:
            return f"pos_label, {other.pos_label!r} where this one has {self.pos_label!r}"
        own, theirs = (resolve_kernel(one.kernel) for one in (self, other))
        # A function that came from another process is another object, and may be the same one.
        are_functions = not (hasattr(own, "fit") or hasattr(theirs, "fit"))
        if are_functions or _is_same_kernel(own, theirs):
            return None
        return f"kernel, {theirs!r} where this one has {own!r}"

    def _other_basis(self, other: GediAccumulator) -> str | None:
        """Return what sums of another accumulator do not share with these."""
        mine, theirs = self.sums_, other.sums_
        if not np.array_equal(self.reference_, other.reference_):
            return "reference_"
        if self._columns != other._columns:
            return f"attribute, the columns {other._columns} where this one has {self._columns}"
        if len(mine.origin) != len(theirs.origin):
            return "number of targets, since y_pred is given with every chunk or with none"
        own, read = mine.state(), theirs.state()
        if not all(np.allclose(own[j], read[j], rtol=1e-9, atol=1e-12) for j in mine.fixed):
            return f"kernel, {other.kernel!r} where this one has {self.kernel!r}"
        return None

    @property
    def n_rows_(self) -> int:
        """Number of rows of positive weight so far."""
        return self.sums_.n_rows if hasattr(self, "sums_") else 0

    def coefficients(self) -> np.ndarray:
        """Return the coefficients α̃ of the predictions, or of the targets if there are none.

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
        """Return the indicator of the predictions, or of the targets if there are none.

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
        INFERENCE_CONSTRAINTS | {"relative": RELATIVE}, prefer_skip_nested_validation=True
    )
    def inference(
        self,
        *,
        norm: str = "l1",
        relative: bool | int = False,
        confidence: float = 0.95,
        fitted: bool = False,
        n_resamples: int = 1000,
        random_state: Any = None,
    ) -> GediInference:
        """Return value by chance, p-value and upper limit; see :func:`gedi_inference`.

        Rows are dealt to 32 parts as they come, and the standard errors of ``upper`` are those of
        the jackknife that leaves one of them out: robust ones, which ``interval`` needs, would take
        a second pass, so it is NaN. Rows that depend on each other should lie next to each other.
        The farthest rows, which the explained deviation (`norm="sd"`) is allowed to lack more of,
        are taken from those with the extremes of each attribute; its skewness is not corrected for.

        Parameters
        ----------
        norm : {"l1", "sd"}, default="l1"
            The norm.
        relative : bool or int, default=False
            Divide by the indicator of `y_true`, which is taken as known.
        confidence : float, default=0.95
            Confidence of ``upper``.
        fitted : bool, default=False
            Whether the predictions were fitted, or corrected, on these rows.
        n_resamples : int, default=1000
            Number of simulated coefficient vectors.
        random_state : int, RandomState instance or None, default=None
            Their seed; None takes a fixed one.

        Returns
        -------
        GediInference
            Its ``upper`` is NaN, with :class:`sklearn.exceptions.UndefinedMetricWarning`, where
            there are no more parts with rows than kernel columns. It comes with
            :class:`FewRowsWarning` where fewer than 100 rows of a level, or of an attribute of
            numbers of all, have the rarer label.

        Raises
        ------
        RankDeficientKernelError
            If the kernel's columns are linearly dependent.
        ValueError
            If the reference of `relative` is 0.
        """
        check_relative(relative, norm)
        return GediInference(
            self.indicator(norm),
            self.shares(),
            positive_unit(self.reference_value(norm, relative)) if relative else 1.0,
            confidence=confidence,
            fitted=fitted,
            n_resamples=n_resamples,
            random_state=random_state,
        )

    @validate_params(
        {"constraint": "no_validation", "target_weight": [Interval(Real, 0, None, closed="left")]},
        prefer_skip_nested_validation=True,
    )
    def correct_targets(self, constraint: Any, *, target_weight: float = 1.0) -> TargetCorrection:
        r"""Return the projection of the accumulated real targets, for chunks of them.

        The same as :func:`gedi_sklearn.project_targets`, where the rows do not fit into memory: the
        nearest allowed targets are t + Q(x)c, and c follows from the sums.

        Parameters
        ----------
        constraint : DependenceConstraint, CoarseConstraint or FineConstraint
            What is bounded of the targets (of their predictions, if there are any), with the
            kernel of the accumulator. It bounds all rows, by numbers that their sums tell: without
            `subset`, and predictions.
        target_weight : float, default=1.0
            Weight w of the original targets beside the predictions.

        Returns
        -------
        TargetCorrection
            Call it with the rows of a chunk.

        Raises
        ------
        TypeError
            If `constraint` is no constraint object.
        ValueError
            If the constraint has another kernel, a `subset`, or bounds residuals; if a relative
            bound meets a reference of 0.

        Examples
        --------
        >>> import numpy as np
        >>> from gedi_sklearn import CoarseConstraint
        >>> from gedi_sklearn.metrics import GediAccumulator, gedi
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=1000)
        >>> y = x + rng.normal(size=1000)
        >>> chunks = np.split(np.arange(1000), 4)
        >>> accumulator = GediAccumulator()
        >>> for rows in chunks:
        ...     _ = accumulator.update(y[rows], sensitive_features=x[rows])
        >>> correct = accumulator.correct_targets(CoarseConstraint(threshold=0.2))
        >>> z = np.concatenate([correct(y[rows], sensitive_features=x[rows]) for rows in chunks])
        >>> round(gedi(y, z, sensitive_features=x, relative=True), 9)
        0.2
        """
        check_bound_of_sums(constraint, self.kernel)
        norm, relative = constraint.norm, constraint.relative
        unit = positive_unit(self.reference_value(norm, relative)) if relative else 1.0
        threshold = constraint.absolute_threshold(unit)
        bound = clone(constraint).set_params(threshold=threshold, relative=False)
        design, shares, own_weight = self.indicator(norm).design, self.shares(), None
        if len(shares) == 2:
            own_weight = target_weight
            shares = np.array([target_weight, 1.0]) / (1 + target_weight)
        coordinates = design.coordinates(shares)
        nearest, _ = bound.block(design, unit=1.0, is_class=False).nearest(coordinates)
        return TargetCorrection(design.fitted, nearest - coordinates, own_weight, threshold)

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
            "pos_label": as_plain(self.pos_label),
            "reference": self.reference_.tolist(),
            "names": self._names,
            "columns": self._columns,
            "n_rows": sums.n_rows,
            "origin": sums.origin.tolist(),
            **{name: own.tolist() for name, own in sums.state().items()},
        }

    @classmethod
    def from_dict(cls, state: dict) -> Self:
        """Return the accumulator from what :meth:`to_dict` returned.

        Parameters
        ----------
        state : dict
            What :meth:`to_dict` returned, also after a round through JSON.

        Returns
        -------
        GediAccumulator

        Raises
        ------
        ValueError
            If the state is not whole, or holds what sums of rows cannot be: it names the part.
        """
        read = AccumulatorState(state)
        accumulator = cls(read.kernel, pos_label=state["pos_label"])
        with read.named("kernel"):
            accumulator._validate_params()
        with read.named("reference"):
            accumulator._start(read.reference, read.names, read.columns, read.origin)
        read.fill(accumulator.sums_)
        return accumulator

    @_fit_context(prefer_skip_nested_validation=True)
    def _fix_basis(self, sample: Sample, given: Any, targets: list[np.ndarray]) -> None:
        """Fit the kernel on the reference, or on rows of the first chunk."""
        if self.reference is None:
            reference, columns = sample.values, attribute_columns(given)
            check_levels(reference, "sensitive_features")
            reference = reference[spread_rows(reference, _N_REFERENCE)]
        else:
            reference = check_attribute(self.reference, None, kind="mixed", name="reference")
            check_levels(reference, "reference")
            columns = attribute_columns(self.reference)
            if reference.shape[1] != sample.values.shape[1]:
                raise ValueError(
                    f"sensitive_features has {sample.values.shape[1]} column(s), reference has "
                    f"{reference.shape[1]}."
                )
        origin = np.array([target.mean() for target in targets])
        try:
            self._start(reference, attribute_names(given), columns, origin)
        except RankDeficientKernelError as error:
            if self.reference is None:
                error.args = (
                    f"{error} These are rows of the first chunk: pass reference=, values over the "
                    "whole range of sensitive_features.",
                )
            raise

    def _start(
        self,
        reference: np.ndarray,
        names: list[str] | None,
        columns: list[str] | None,
        origin: np.ndarray,
    ) -> None:
        """Set the basis, with sums of no row."""
        fitted = fit_kernel(self.kernel, reference, names=names).fitted
        fitted.attribute_columns = columns
        if fitted.has_closed_form:  # of levels, all that there is to know
            encoder: Any = fitted.encoder
            reference = encoder.known[:, None]
        self.reference_, self._names, self._columns = reference, names, columns
        self.sums_ = sums_of(fitted, origin, _N_PARTS)

    def _sums(self) -> Sums:
        if not hasattr(self, "sums_"):
            raise NotFittedError("the accumulator has no rows yet; call its `update` first.")
        return self.sums_

    def shares(self, *, original: bool = False) -> np.ndarray:
        """Return the shares of the accumulated targets in what is measured."""
        shares = np.zeros(len(self._sums().origin))
        shares[0 if original else -1] = 1.0
        return shares

    def indicator(self, norm: str, columns: np.ndarray | None = None) -> SummedIndicator:
        """Return the indicator on the rows so far; a target is given by :meth:`shares`.

        Parameters
        ----------
        norm : {"l1", "sd", "adjusted_sd"}
            The norm.
        columns : ndarray of int, default=None
            The columns of the kernel that count; None for all.
        """
        indicator = SummedIndicator(self._sums(), norm, columns)
        if indicator.design.is_ill_conditioned:
            warn_caller(IllConditionedKernelWarning.from_reference(indicator.design.condition))
        return indicator

    def reference_value(self, norm: str, relative: bool | int) -> float:
        """Return the indicator of `y_true` that a relative value is a share of; 0 within rounding.

        Parameters
        ----------
        norm : {"l1", "sd", "adjusted_sd"}
            The norm.
        relative : bool or int
            Degree of the reference in the L1 norm; True is 1.
        """
        # Levels are the same columns at every degree.
        are_levels = self._sums().fitted.has_closed_form
        columns = None
        if norm == "l1" and not are_levels:
            columns = self._reference_columns(int(relative))
        return self.indicator(norm, columns).reference(self.shares(original=True))

    def _reference_columns(self, degree: int) -> np.ndarray:
        """Return the columns of the same kernel at the degree that `relative` asks for."""
        known = self._sums().fitted.names
        own = resolve_kernel(self.kernel)
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


def _check_kinds(reference: np.ndarray, values: np.ndarray) -> None:
    """Refuse an attribute that is text where the reference has numbers, or the reverse."""
    for then, now in zip(reference.T, values.T, strict=True):
        if is_text(then) != is_text(now):
            kinds = ("numbers", "text or categories")
            raise ValueError(
                f"sensitive_features holds {kinds[is_text(now)]}, where the reference holds "
                f"{kinds[is_text(then)]}. Pass the same attribute as in `reference`, or in the "
                "first chunk."
            )


def check_bound_of_sums(constraint: Any, kernel: Any = None) -> None:
    """Refuse what does not bound sums of a kernel; None stands for that of the constraint."""
    if not is_constraint(constraint):
        raise TypeError(
            f"constraint must be a constraint object such as CoarseConstraint(), got "
            f"{constraint!r}."
        )
    constraint.validate()
    if constraint.subset is not None or constraint.on != "predictions":
        raise ValueError(
            f"constraint bounds more than the predictions of all rows have sums of: "
            f"{constraint!r}. Leave subset and on at their defaults."
        )
    bounded = None if constraint.kernel is None else resolve_kernel(constraint.kernel)
    own = bounded if kernel is None else resolve_kernel(kernel)
    if bounded is None or not _is_same_kernel(bounded, own):
        raise ValueError(
            f"constraint bounds the influence of {bounded or 'groups'!r}, and the sums are those "
            f"of {'a kernel' if own is None else repr(own)}. Give both the same kernel."
        )


def _is_same_kernel(one: Any, other: Any) -> bool:
    """Tell whether kernels are written alike; a callable is the same as itself."""
    return one is other or repr(one) == repr(other)


def _refuse(difference: str | None) -> None:
    """Raise if another accumulator has something else."""
    if difference is not None:
        raise ValueError(
            f"other cannot be merged, since it has another {difference}. Give all accumulators the "
            "same parameters, and reference= a sample of the attribute, such as `reference_` of "
            "the first one."
        )


def _weight(sample: Sample) -> np.ndarray | None:
    """Return the weights as they were given; None where all are 1."""
    n = len(sample.target)
    if sample.weight is not None or sample.total in (None, n):
        return sample.weight
    return np.full(n, sample.total / n)
