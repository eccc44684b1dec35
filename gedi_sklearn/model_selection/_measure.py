"""The indicator of predictions for some of the rows, with its null distribution and interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from .._validation import check_attribute, check_group_codes, select_columns
from ..constraints import DidiConstraint
from ..exceptions import RankDeficientKernelError, warn_caller
from ..metrics import didi, gedi, gedi_interval, gedi_null
from ..metrics._inputs import check_sample
from ..metrics._linear import LinearIndicator
from ._constrained_part import ConstrainedPart

__all__ = ["Inference", "Measure", "make_measure"]

_NULL_DRAWS = 10_000


class Inference(NamedTuple):
    """Mean and 95 % quantile of an indicator under independence, and its confidence interval."""

    null_mean: float
    null_q95: float
    low: float
    high: float


@dataclass(frozen=True)
class Measure(ABC):
    """The indicator to be measured, on any of the rows.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Original targets, whose indicator is the reference of `relative`.
    values : ndarray of shape (n, m)
        The attribute.
    weight : ndarray of shape (n,) or None
        Weights of the rows.
    options : dict
        Keywords of the indicator, the same for all rows.
    """

    y: np.ndarray
    values: np.ndarray
    weight: np.ndarray | None
    options: dict[str, Any]

    def __call__(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator; NaN with a warning if there are too few rows to define it."""
        try:
            return self.value(rows, predictions)
        except RankDeficientKernelError as error:
            message = f"{error} The indicator of these {len(rows)} rows is NaN."
            warn_caller(message, UndefinedMetricWarning)
            return float("nan")

    @abstractmethod
    def value(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator; raise where it is not defined on these rows."""

    @abstractmethod
    def infer(
        self, rows: np.ndarray, predictions: np.ndarray, confidence_level: float
    ) -> Inference:
        """Return the value under independence, and the interval."""

    def _on(self, rows: np.ndarray) -> dict[str, Any]:
        return {
            "sensitive_features": self.values[rows],
            "sample_weight": None if self.weight is None else self.weight[rows],
            **self.options,
        }


@dataclass(frozen=True)
class GediMeasure(Measure):
    """GeDI.

    Attributes
    ----------
    covariates : ndarray of shape (n, p) or None
        The covariates that it is conditional on.
    """

    covariates: np.ndarray | None

    def value(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator."""
        return gedi(self.y[rows], predictions, **self._on(rows))

    def infer(
        self, rows: np.ndarray, predictions: np.ndarray, confidence_level: float
    ) -> Inference:
        """Return the value under independence, and the interval."""
        given, keywords = (self.y[rows], predictions), self._on(rows)
        null = gedi_null(*given, quantiles=[0.95], **keywords)
        interval = gedi_interval(*given, confidence_level=confidence_level, **keywords)
        return Inference(null.mean, float(null.quantiles[0]), *interval)

    def _on(self, rows: np.ndarray) -> dict[str, Any]:
        covariates = None if self.covariates is None else self.covariates[rows]
        return {**super()._on(rows), "conditional_on": covariates}


@dataclass(frozen=True)
class DidiMeasure(Measure):
    """DIDI in the form for the task; the classification form doubles it for two classes."""

    def value(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator."""
        return didi(self.y[rows], predictions, **self._on(rows))

    def infer(
        self, rows: np.ndarray, predictions: np.ndarray, confidence_level: float
    ) -> Inference:
        """Return the value under independence, and the interval."""
        sample = check_sample(
            self.y[rows],
            predictions,
            sensitive_features=self.values[rows],
            sample_weight=None if self.weight is None else self.weight[rows],
            pos_label=self.options["pos_label"],
            attribute="groups",
        )
        codes, _ = check_group_codes(sample.values)
        factor = 2.0 if self.options["task"] == "classification" else 1.0
        indicator = LinearIndicator.of_groups(codes, sample.weight, factor)
        rng = np.random.RandomState(0)
        found = Inference(
            indicator.null_mean(sample.target),
            float(indicator.null_quantiles(sample.target, np.array([0.95]), _NULL_DRAWS, rng)[0]),
            *indicator.range_over_ellipsoid(sample.target, confidence_level),
        )
        if not self.options["relative"]:
            return found
        unit = didi(self.y[rows], **{**self._on(rows), "relative": False})
        return Inference(*(value / unit for value in found))


def make_measure(
    part: ConstrainedPart,
    X: Any,
    y: np.ndarray,
    values: np.ndarray,
    weight: np.ndarray | None,
    classes: np.ndarray | None,
    *,
    kernel: Any,
    degree: int | None,
    relative: bool | int | None,
    pos_label: Any,
) -> Measure:
    """Return the indicator that an estimator bounds; the caller's options take precedence.

    Parameters
    ----------
    part : ConstrainedPart
        The part of the estimator that has the threshold.
    X : array-like of shape (n, p)
        Rows, with the columns that its `conditional_on` names.
    y, values, weight : ndarray
        As in :class:`Measure`.
    classes : ndarray or None
        The classes of `y`; None for numbers.
    kernel, degree, relative, pos_label
        The caller's options; None takes those of the estimator.

    Returns
    -------
    Measure

    Raises
    ------
    ValueError
        If it is ambiguous which indicator, or which class, is meant.
    """
    if classes is not None and pos_label is None:
        if len(classes) > 2:
            raise ValueError(
                f"y has {len(classes)} classes {classes.tolist()}; pass the one to be "
                "measured against the rest as pos_label=."
            )
        pos_label = classes[1]
    constraint, bounded = part.constraint, getattr(part.part, "constraint", "coarse")
    if relative is None:
        relative = getattr(constraint, "relative", False)
    options = {"relative": relative, "pos_label": pos_label}
    if kernel is None:
        if isinstance(bounded, (list, tuple)):
            raise ValueError(
                f"constraint={bounded!r} bounds several indicators. Pass the kernel of the one to "
                "be measured as kernel=."
            )
        if isinstance(bounded, DidiConstraint) or bounded == "didi":
            task = "regression" if classes is None else "classification"
            return DidiMeasure(y, values, weight, {**options, "task": task})
        kernel = getattr(constraint, "kernel", "polynomial")
    options["kernel"] = kernel
    options["degree"] = getattr(constraint, "degree", 1) if degree is None else degree
    return GediMeasure(y, values, weight, options, _covariates(part, X, len(y)))


def _covariates(part: ConstrainedPart, X: Any, n_samples: int) -> np.ndarray | None:
    """Return the covariates that the estimator's `conditional_on` names."""
    named = getattr(part.part, "conditional_on", None)
    if named is None:
        return None
    if not part.sees_X:
        raise ValueError(
            f"conditional_on={named!r} names columns of the X inside a pipeline, which the curve "
            "does not see. Pass the estimator without its pipeline."
        )
    values = named(X) if callable(named) else select_columns(X, named, "conditional_on")
    return check_attribute(values, n_samples, kind="mixed", name="conditional_on")
