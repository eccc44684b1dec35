"""The indicator of predictions for some of the rows, and its inference."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from .._validation import check_attribute, check_group_codes, select_columns
from ..constraints import DidiConstraint, split_attributes
from ..exceptions import RankDeficientKernelError, warn_caller
from ..metrics import (
    GediInference,
    GroupIndicator,
    LinearIndicator,
    Sample,
    check_sample,
    didi,
    fit_gedi,
    gedi,
)
from ._constrained_part import ConstrainedPart

_NULL_DRAWS = 10_000


@dataclass(frozen=True)
class Measure(ABC):
    """The indicator that is measured, on any of the rows.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Original targets, which `relative` divides by.
    values : ndarray of shape (n, m)
        The attribute.
    weight : ndarray of shape (n,) or None
        Weights of the rows.
    pos_label : object
        The class that is measured; None for numbers.
    relative : bool or int
        Degree of the reference.
    options : dict
        Further keywords of the indicator.
    """

    y: np.ndarray
    values: np.ndarray
    weight: np.ndarray | None
    pos_label: Any
    relative: bool | int
    options: dict[str, Any]
    # What the attribute may hold.
    attribute: ClassVar[str]

    @property
    @abstractmethod
    def word(self) -> str:
        """What it is called."""

    @property
    def name(self) -> str:
        """What it is called, and what it is a share of."""
        return f"{self.word}, share of that of the targets" if self.relative else self.word

    def __call__(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator; NaN, with a warning, if there are too few rows to define it."""
        try:
            return self.value(rows, predictions)
        except RankDeficientKernelError as error:
            message = f"{error} The indicator of these {len(rows)} rows is NaN."
            warn_caller(message, UndefinedMetricWarning)
            return float("nan")

    @abstractmethod
    def value(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator; raise if the kernel or a label does not suit the rows."""

    @abstractmethod
    def _fit(self, sample: Sample, rows: np.ndarray) -> tuple[LinearIndicator, float]:
        """Return the indicator on a sample of some rows, and what its values are divided by."""

    def infer(self, rows: np.ndarray, predictions: np.ndarray, confidence: float) -> GediInference:
        """Return the inference on the indicator."""
        weight = None if self.weight is None else self.weight[rows]
        given = (self.y[rows], predictions, self.values[rows], weight, self.pos_label)
        sample = check_sample(*given, attribute=self.attribute)
        indicator, unit = self._fit(sample, rows)
        return GediInference(
            indicator, sample.target, unit, confidence=confidence, n_resamples=_NULL_DRAWS
        )

    def _keywords(self, rows: np.ndarray) -> dict[str, Any]:
        return {
            "sensitive_features": self.values[rows],
            "sample_weight": None if self.weight is None else self.weight[rows],
            "pos_label": self.pos_label,
            "relative": self.relative,
            **self.options,
        }


@dataclass(frozen=True)
class GediMeasure(Measure):
    """GeDI.

    Attributes
    ----------
    covariates : ndarray of shape (n, p) or None
        What it is conditional on.
    """

    attribute: ClassVar[str] = "mixed"
    covariates: np.ndarray | None

    @property
    def word(self) -> str:
        """What it is called."""
        return "GeDI" if self.options["norm"] == "l1" else "deviation explained"

    def value(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator."""
        keywords = self._keywords(rows)
        return gedi(self.y[rows], predictions, **keywords, conditional_on=self._given(rows))

    def _fit(self, sample: Sample, rows: np.ndarray) -> tuple[LinearIndicator, float]:
        kernel, norm = self.options["kernel"], self.options["norm"]
        fitted = fit_gedi(sample, kernel, norm, self._given(rows))
        return fitted.indicator, fitted.unit(self.relative)

    def _given(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.covariates is None else self.covariates[rows]


@dataclass(frozen=True)
class DidiMeasure(Measure):
    """DIDI, in the form of the task, which doubles it for two classes."""

    attribute: ClassVar[str] = "groups"
    word = "DIDI"

    def value(self, rows: np.ndarray, predictions: np.ndarray) -> float:
        """Return the indicator."""
        return didi(self.y[rows], predictions, **self._keywords(rows))

    def _fit(self, sample: Sample, rows: np.ndarray) -> tuple[LinearIndicator, float]:
        factor = 2.0 if self.options["task"] == "classification" else 1.0
        indicator = GroupIndicator(check_group_codes(sample.values)[0], sample.weight, factor)
        return indicator, indicator.reference(sample.y_true) if self.relative else 1.0


def make_measure(
    part: ConstrainedPart,
    X: Any,
    y: np.ndarray,
    values: np.ndarray,
    weight: np.ndarray | None,
    classes: np.ndarray | None,
    pos_label: Any,
) -> Measure:
    """Return the indicator that a constraint bounds.

    Parameters
    ----------
    part : ConstrainedPart
        The part of the estimator that has the constraint.
    X : array-like of shape (n, p)
        Where its `conditional_on` is looked up.
    y, values, weight : ndarray
        As in :class:`Measure`.
    classes : ndarray or None
        The classes of `y`; None for numbers.
    pos_label : object
        The class that is measured; None takes the second of two.

    Returns
    -------
    Measure

    Raises
    ------
    ValueError
        If it is ambiguous which class is meant, or some of the rows, or residuals, are bounded.
    """
    constraint = part.constraint
    if classes is not None and pos_label is None:
        if len(classes) > 2:
            raise ValueError(
                f"y has {len(classes)} classes {classes.tolist()}; pass the one that is to be "
                "measured against the rest, pos_label=."
            )
        pos_label = classes[1]
    if constraint.needs_outcomes or constraint.on == "distribution":
        raise ValueError(
            f"{constraint!r} bounds some of the rows, residuals or cuts, and the curve measures "
            "predictions of all rows. Compare thresholds with cross_validate and "
            "make_disparity_scorer(constraint)."
        )
    if part.position is not None:
        values = split_attributes(values, is_list=True)[part.position]
    if constraint.on == "probabilities":
        y, pos_label = (y == pos_label).astype(np.float64), None
    measured = (y, values, weight, pos_label, constraint.relative)
    if isinstance(constraint, DidiConstraint):
        task = "regression" if classes is None else "classification"
        return DidiMeasure(*measured, {"task": task})
    options = {"kernel": constraint.kernel, "norm": constraint.norm}
    return GediMeasure(*measured, options, _covariates(part, X, len(y)))


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
