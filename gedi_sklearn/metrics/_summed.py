"""What remains of rows that were summed up: the state, the indicator, the correction of targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from .._validation import (
    Level,
    check_attribute,
    check_attribute_columns,
    check_numbers,
    check_same_length,
)
from ..exceptions import FewRowsWarning, warn_caller
from ..kernels import BaseDesign, FittedKernel, Sums, kernel_from_dict
from ._ellipsoids import error_quantile, farthest, limit_of_lacking_rows
from ._limits import Limits
from ._linear import KernelIndicator

_PARAMETERS = ("kernel", "pos_label", "reference", "names", "columns", "n_rows", "origin")
# Limits of the jackknife know of no skewness: of fewer rows with the rarer label, in a level or in
# all, they hold less often than they should by a hundredth or more.
_FEW = 100


class AccumulatorState:
    """What :meth:`GediAccumulator.to_dict` has written.

    Parameters
    ----------
    state : dict
        The state.

    Attributes
    ----------
    kernel, reference, names, columns, origin
        Its parts, checked.

    Raises
    ------
    ValueError
        If a part is missing, or cannot be what was written.
    """

    def __init__(self, state: Any) -> None:
        if not isinstance(state, Mapping):
            raise ValueError(f"state must be what to_dict returned, got a {type(state).__name__}.")
        self._state = state
        self._refuse_missing(_PARAMETERS)
        with self.named("kernel"):
            self.kernel = kernel_from_dict(state["kernel"])
        with self.named("reference"):
            self.reference = _reference(state["reference"])
        m = self.reference.shape[1]
        self.names, self.columns = self._texts("names", m), self._texts("columns", m)
        self.origin = self._numbers("origin", None)
        if self.origin.shape not in ((1,), (2,)):
            raise _wrong("origin", f"one number, or two, got shape {self.origin.shape}")

    def fill(self, sums: Sums) -> None:
        """Put what was summed up into sums of no row; refuse what no rows have.

        Parameters
        ----------
        sums : Sums
            With the basis that :attr:`reference` gives.
        """
        self._refuse_missing(tuple(sums.state()))
        if unknown := sorted(set(self._state) - set(_PARAMETERS) - set(sums.state())):
            raise ValueError(f"state has parts that to_dict does not write: {unknown}.")
        for name, own in sums.state().items():
            read = self._numbers(name, own.shape)
            if name in sums.fixed and not np.allclose(read, own, rtol=1e-9, atol=1e-12):
                raise _wrong(
                    "reference", "the values that the sums were taken with; it has changed"
                )
            if name not in sums.fixed:
                setattr(sums, name, read)
        if type(n_rows := self._state["n_rows"]) is not int or n_rows < 1:
            raise _wrong("n_rows", f"an integer of at least 1, got {n_rows!r}")
        sums.n_rows = n_rows
        if fault := sums.fault():
            raise ValueError(f"state cannot come from any rows: it has {fault}.")

    @contextmanager
    def named(self, part: str) -> Iterator[None]:
        """Name the part of the state in errors about what it holds."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise _wrong(part, f"what to_dict wrote: {error}") from error

    def _refuse_missing(self, names: tuple[str, ...]) -> None:
        if missing := [name for name in names if name not in self._state]:
            raise ValueError(f"state has no {', '.join(missing)}: it is not what to_dict returned.")

    def _texts(self, name: str, size: int) -> list[str] | None:
        value = self._state[name]
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(own, str) for own in value):
            raise _wrong(name, f"a list of text, or None, got {value!r}")
        if len(value) != size:
            raise _wrong(name, f"{size} name(s), one for each attribute, got {len(value)}")
        return value

    def _numbers(self, name: str, shape: tuple[int, ...] | None) -> np.ndarray:
        """Return a part as finite numbers of a shape; None takes any."""
        try:
            read = np.array(self._state[name], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise _wrong(name, f"numbers in lists of equal length: {error}") from error
        if shape is not None and read.shape != shape:
            raise _wrong(name, f"numbers of shape {shape}, got {read.shape}")
        if not np.isfinite(read).all():
            raise _wrong(name, "finite numbers, got NaN or infinity")
        return read


def _reference(given: Any) -> np.ndarray:
    """Return the reference; text is a level by declaration, whether or not it is like a number."""
    reference = np.asarray(given, dtype=object)
    if reference.ndim != 2 or not reference.size:
        raise ValueError(f"rows of equal length are needed, got shape {reference.shape}")
    for column in reference.T:
        column[:] = [Level(v) if isinstance(v, str) else v for v in column]
    return check_attribute(reference, None, kind="mixed", name="reference")


def _wrong(name: str, expected: str) -> ValueError:
    return ValueError(f"state[{name!r}] must hold {expected}.")


class SummedIndicator(KernelIndicator):
    """GeDI of a target that is given by its shares in those that were summed up.

    Parameters
    ----------
    sums : Sums
        The sums, part by part.
    norm : {"l1", "sd", "adjusted_sd"}
        The norm.
    columns : ndarray of int, default=None
        The columns of the kernel that count; None for all.
    """

    def __init__(self, sums: Sums, norm: str, columns: np.ndarray | None = None) -> None:
        design = sums.design(columns=columns)
        super().__init__(design, norm, design.total)
        self._sums = sums
        self._parts = np.flatnonzero(sums.part_weights).tolist()

    def has_errors(self, groups: np.ndarray | None = None) -> bool:
        """Tell, with a warning, whether more parts have rows than there are columns, and one."""
        if len(self._parts) > self.design.fitted.n_columns + 1:
            return True
        warn_caller(
            "the rows are too few for the standard errors of the coefficients: the limits are NaN.",
            UndefinedMetricWarning,
        )
        return False

    def interval(
        self, z: np.ndarray, confidence: float, groups: np.ndarray | None = None
    ) -> tuple[float, float, str]:
        """Return NaN, with a warning: robust standard errors need the rows."""
        warn_caller(
            "an interval needs the rows themselves, and an accumulator keeps only sums: it is NaN. "
            "`upper` is defined.",
            UndefinedMetricWarning,
        )
        return float("nan"), float("nan"), ""

    def upper_limit(
        self, z: np.ndarray, confidence: float, *, simultaneous: bool = False, **_: Any
    ) -> Limits:
        """Return the upper confidence limit of the value; there is none of a batch."""
        sums, whole, parts = self._sums, self.design, self._parts
        if few := sums.few(z, _FEW):
            warn_caller(FewRowsWarning.from_sums(few, _FEW))
        without = [sums.design(without=part) for part in parts]
        if self.norm == "l1":
            v = whole.coefficients(z)
            jackknife = np.array([design.coefficients(z) for design in without])
        else:
            v = whole.coordinates(z)
            jackknife = np.array([_turned(design, whole, z) for design in without])
        errors = jackknife - jackknife.mean(axis=0)
        covariance = (len(parts) - 1) / len(parts) * errors.T @ errors
        options = {"simultaneous": simultaneous}
        t = error_quantile(covariance, self.norm, confidence, len(parts) - 1, **options)
        limits = farthest(v, covariance, self.norm, t)
        if self.norm == "l1":
            return Limits(limits)
        ends, weight = sums.ends
        q, share = whole.fitted.orthonormal_columns(ends), weight / whole.total
        leverage = share * (1 + np.square(q).sum(axis=1))
        sizes = np.abs(q) @ np.abs(v)
        lacking = limit_of_lacking_rows(v, sizes, share, leverage, confidence)
        return Limits(np.maximum(limits, lacking))


def _turned(design: BaseDesign, whole: BaseDesign, z: np.ndarray) -> np.ndarray:
    """Return G^(−1/2) E[Qz], G = E[QQ'], on the rows of a design; Q is orthonormal on all rows."""
    to_whole = np.linalg.solve(whole.fitted.R_.T, design.fitted.R_.T)
    values, vectors = np.linalg.eigh(to_whole @ to_whole.T)
    return (vectors / np.sqrt(values)) @ vectors.T @ to_whole @ design.coordinates(z)


@dataclass(frozen=True)
class TargetCorrection:
    """The correction from targets and predictions to the nearest targets within a bound.

    Attributes
    ----------
    kernel : FittedKernel
        The kernel, orthonormal on all rows that were accumulated.
    correction : ndarray of shape (k,)
        Coordinates c of the function of the attribute that is added.
    target_weight : float or None
        Weight w of the original targets beside the predictions; None where there were none.
    threshold : float or ndarray of shape (k,)
        The absolute bound, or that of each coefficient.

    See Also
    --------
    GediAccumulator.correct_targets : Makes one.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint
    >>> from gedi_sklearn.metrics import GediAccumulator
    >>> y, x = np.array([1.0, 2.0, 3.0, 6.0]), np.array([0.0, 1.0, 2.0, 3.0])
    >>> accumulator = GediAccumulator().update(y, sensitive_features=x)
    >>> correct = accumulator.correct_targets(CoarseConstraint(threshold=0))
    >>> correct(y, sensitive_features=x).round(6)
    array([3.4, 2.8, 2.2, 3.6])
    """

    kernel: FittedKernel
    correction: np.ndarray
    target_weight: float | None
    threshold: Any

    def __call__(self, y: Any, y_pred: Any = None, *, sensitive_features: Any) -> np.ndarray:
        """Return the nearest targets of a chunk, t + Q(x)c.

        Parameters
        ----------
        y : array-like of shape (n,)
            Original targets of the chunk.
        y_pred : array-like of shape (n,), default=None
            Its predictions, where the accumulator had them, and only there.
        sensitive_features : array-like of shape (n,) or (n, m)
            Its attribute.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If predictions or columns are not those that were accumulated.
        """
        t = check_numbers(y, "y", n_columns=1)
        if (y_pred is None) != (self.target_weight is None):
            had = "had none" if self.target_weight is None else "had some"
            raise ValueError(
                f"y_pred must be given if and only if the accumulator had predictions: it {had}."
            )
        if self.target_weight is not None:
            p = check_numbers(y_pred, "y_pred", n_columns=1)
            check_same_length(len(t), y_pred=p)
            t = (p + self.target_weight * t) / (1 + self.target_weight)
        check_attribute_columns(self.kernel.attribute_columns, sensitive_features)
        values = check_attribute(sensitive_features, len(t), kind="mixed")
        return t + self.kernel.explained(values, self.correction)
