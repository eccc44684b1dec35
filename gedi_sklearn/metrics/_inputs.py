"""Checks of the arguments that all indicators share.

Values are matched by position, missing values are refused, rows of zero weight are left out, and
labels become numbers by one rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import UndefinedMetricWarning

from .._validation import (
    Outcomes,
    check_attribute,
    check_labels,
    check_numbers,
    check_same_length,
    check_sample_weight,
    is_text,
    take_rows,
)
from ..exceptions import RankDeficientKernelError, warn_caller

# Numbers of rows that differ by less than this share of their sum are equal.
RANK_TOLERANCE = 1e-8
TARGET_CONSTRAINTS: dict = {
    "y_true": ["array-like"],
    "y_pred": ["array-like", None],
    "sensitive_features": ["array-like"],
    "sample_weight": ["array-like", Real, None],
}


def on_subset(subset: Any, y_true: Any, pos_label: Any, *arrays: Any) -> list[Any] | None:
    """Return `y_true` and other arrays of the caller on the rows of a subset.

    None, single numbers and kernels that are no arrays stay as they are. Without `pos_label`
    "positive" is 1; of text it is an error, unless a class has this name.

    Returns
    -------
    list or None
        None, with a warning that the indicator is NaN, where the subset holds no row.
    """
    if subset is None:
        return [y_true, *arrays]
    labels = check_labels(y_true, "y_true")
    positive = 1 if pos_label is None and not is_text(labels) else pos_label
    rows = Outcomes(labels, positive).rows(subset)
    given = [y_true, *arrays]
    for array in given:
        if _has_rows(array):
            check_same_length(len(labels), array=array)
    kept = np.flatnonzero(rows)
    if not len(kept):
        undefined(f"subset={subset!r} holds no row.")
        return None
    return [take_rows(array, kept) if _has_rows(array) else array for array in given]


def _has_rows(given: Any) -> bool:
    # A pipeline has a length as well.
    return not isinstance(given, BaseEstimator) and np.ndim(given) > 0


def is_constraint(given: Any) -> bool:
    """Tell whether something is a constraint object, which this layer does not know by type."""
    return not isinstance(given, type) and hasattr(given, "gauge") and hasattr(given, "threshold")


@dataclass(frozen=True)
class Sample:
    """Checked rows of positive weight.

    Attributes
    ----------
    y_true : ndarray of shape (n,)
        The original targets.
    target : ndarray of shape (n,)
        What is measured: the predictions, or the original targets where none were given.
    values : ndarray of shape (n, m)
        The attribute: numbers, or objects where a column is categorical.
    names : list of str or None
        Names of the attributes.
    weight : ndarray of shape (n,) or None
        Positive weights; None where all are equal.
    kept : ndarray of bool or None
        Rows of the caller's arrays that are in the sample; None for all.
    total : float or None
        Sum of the caller's weights; None where there were none.
    """

    y_true: np.ndarray
    target: np.ndarray
    values: np.ndarray
    names: list[str] | None
    weight: np.ndarray | None
    kept: np.ndarray | None
    total: float | None

    @property
    def size(self) -> float:
        """Number of rows, each counted as often as its weight says."""
        return float(len(self.target)) if self.total is None else self.total

    @property
    def counts(self) -> np.ndarray | None:
        """How many rows each row stands for, see :func:`as_counts`; None where it is one each."""
        n = len(self.target)
        counts = self.weight
        if counts is None and self.total is not None and self.total > n * (1 + RANK_TOLERANCE):
            counts = np.full(n, self.total / n)
        return None if counts is None else as_counts(counts)

    def select(self, array: Any, name: str) -> Any:
        """Return the rows of another of the caller's arrays that are in the sample."""
        n_samples = len(self.y_true) if self.kept is None else len(self.kept)
        check_same_length(n_samples, **{name: array})
        return array if self.kept is None else array[self.kept]


def check_sample(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any,
    pos_label: Any,
    *,
    numeric_targets: bool = True,
    attribute: str = "mixed",
    on: str = "predictions",
    ensure_all_finite: bool = True,
    may_be_empty: bool = False,
) -> Sample:
    """Check the arguments that all indicators share.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight, pos_label
        The caller's arguments; `y_pred=None` measures `y_true` itself.
    numeric_targets : bool, default=True
        Whether targets must come out as numbers; False keeps labels of any type.
    attribute : {"numbers", "mixed", "groups"}, default="mixed"
        What the attribute may hold: "mixed" allows categorical columns, "groups" any values.
    on : {"predictions", "residuals"}, default="predictions"
        What is measured of numeric targets: predictions, or predictions minus targets.
    ensure_all_finite : bool, default=True
        False leaves it to the caller to find numbers that are missing, infinite or too large.
    may_be_empty : bool, default=False
        Whether all weights may be 0, which leaves no rows.

    Returns
    -------
    Sample
    """
    if pos_label is not None:
        reference, target = _positive_labels(y_true, y_pred, pos_label)
    elif numeric_targets:
        reference = _plain_numbers(y_true, "y_true", ensure_all_finite)
        target = (
            reference if y_pred is None else _plain_numbers(y_pred, "y_pred", ensure_all_finite)
        )
    else:
        reference = typed_labels(y_true, "y_true")
        target = reference if y_pred is None else typed_labels(y_pred, "y_pred")
    n_samples = len(reference)
    check_same_length(n_samples, y_pred=target)
    values = check_attribute(
        sensitive_features, n_samples, kind=attribute, ensure_all_finite=ensure_all_finite
    )
    weight = check_sample_weight(sample_weight, n_samples, allow_zeros=may_be_empty)
    total = None if weight is None else float(weight.sum())
    kept = None
    if weight is not None and not (weight > 0).all():
        kept = weight > 0
        if not ensure_all_finite:  # the caller looks at the rows that count alone
            for name, own in (("y_true", reference), ("y_pred", target)):
                check_numbers(own[~kept], name)
            check_attribute(values[~kept], None, kind=attribute)
        same = target is reference
        reference, values, weight = reference[kept], values[kept], weight[kept]
        target = reference if same else target[kept]
    if weight is not None and (weight == weight[:1]).all():
        weight = None
    names = attribute_names(sensitive_features)
    if on == "residuals":
        target = residuals(target, reference, y_pred)
    return Sample(reference, target, values, names, weight, kept, total)


def residuals(target: np.ndarray, reference: np.ndarray, y_pred: Any) -> np.ndarray:
    """Return predictions minus targets."""
    if y_pred is None:
        raise ValueError("on='residuals' measures y_pred - y_true, and y_pred is None. Pass it.")
    return target - reference


def as_counts(weight: np.ndarray) -> np.ndarray:
    """Return weights as numbers of rows: where one is below 1 they are scaled to sum to n."""
    total = weight.sum()
    below = weight.min() < 1 - RANK_TOLERANCE * total
    return weight * (len(weight) / total) if below else weight


def attribute_names(values: Any) -> list[str] | None:
    """Return the names that the attributes carry, if any."""
    columns = getattr(values, "columns", None)
    if columns is not None:
        return [str(column) for column in columns]
    name = getattr(values, "name", None)
    return [name] if isinstance(name, str) and name else None


def _plain_numbers(values: Any, name: str, ensure_all_finite: bool) -> np.ndarray:
    """Return numbers as they are; other labels need `pos_label`."""
    # A pandas categorical holds labels even if its categories are numbers.
    dtype = getattr(values, "dtype", None)
    plain = isinstance(dtype, np.dtype) and dtype.kind in "fiub"
    if not plain and (str(dtype) == "category" or is_text(check_labels(values, name))):
        raise ValueError(
            f"{name} holds labels that are not numbers; pass `pos_label`, the label that counts "
            "as 1."
        )
    # Predictions are measured in the unit of the targets, and may be as small as they like.
    return check_numbers(
        values, name, n_columns=1, sets_scale=name == "y_true", ensure_all_finite=ensure_all_finite
    )


def typed_labels(values: Any, name: str) -> np.ndarray:
    """Return labels as an array of their own type: text, numbers or booleans."""
    labels = check_labels(values, name)
    if labels.dtype.kind == "O":
        labels = np.asarray(labels.tolist())
    is_real = labels.dtype.kind == "f" or (labels.dtype.kind == "O" and not is_text(labels))
    return check_numbers(labels, name, n_columns=1) if is_real else labels  # decimals, too


def _positive_labels(y_true: Any, y_pred: Any, pos_label: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return `y_true` and `y_pred` as numbers: 1 where a label equals `pos_label`, or a score."""
    labels = typed_labels(y_true, "y_true")
    reference = _equals(labels, pos_label)
    if y_pred is None:
        predicted, target = labels, reference
    else:
        predicted = typed_labels(y_pred, "y_pred")
        target = _label_or_score(predicted, labels, pos_label)
    # As in scikit-learn: a fold with one class may lack pos_label, otherwise it is misspelt.
    known = np.any(reference == 1) or np.any(_equals(predicted, pos_label) == 1)
    present = set(labels.tolist())
    if not known and len(present) > 1:
        raise ValueError(
            f"pos_label={pos_label!r} is not a valid label: y_true holds "
            f"{sorted(map(repr, present))[:10]}."
        )
    return reference, target


def _equals(labels: np.ndarray, pos_label: Any) -> np.ndarray:
    if is_text(labels) != isinstance(pos_label, str):
        return np.zeros(len(labels))
    return (labels == pos_label).astype(np.float64)


def _label_or_score(predicted: np.ndarray, labels: np.ndarray, pos_label: Any) -> np.ndarray:
    """Return 1 for predicted positive labels, or the predicted scores themselves.

    Floats are scores, except where they can only be labels: where the labels are floats too, or
    where they leave [0, 1].
    """
    if predicted.dtype.kind != "f":
        kinds = ["text" if is_text(own) else "numbers" for own in (labels, predicted)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"y_true holds {kinds[0]} and y_pred {kinds[1]}: y_pred must hold the same labels, "
                "or floats, which are scores in [0, 1]."
            )
        return _equals(predicted, pos_label)
    in_unit = bool(((predicted >= 0) & (predicted <= 1)).all())
    numeric = not is_text(labels)
    if numeric and (labels.dtype.kind == "f" or not in_unit) and np.isin(predicted, labels).all():
        return _equals(predicted, pos_label)
    if not in_unit:
        raise ValueError(
            "with labels as y_true, y_pred must hold the same labels, or scores in [0, 1]; got "
            f"floats from {predicted.min():.3g} to {predicted.max():.3g}."
        )
    return check_numbers(predicted, "y_pred", n_columns=1)


def undefined(reason: str) -> float:
    """Return NaN, with a warning that gives the reason."""
    warn_caller(f"{reason} The indicator is NaN.", UndefinedMetricWarning)
    return float("nan")


def undefined_if_constant(error: RankDeficientKernelError, conditional: bool = False) -> float:
    """Return NaN, with the warning, for a constant attribute; raise any other rank error."""
    if not error.is_constant:
        raise error
    given = ", given conditional_on" if conditional else ""
    return undefined(f"sensitive_features is constant on the rows of positive weight{given}.")


def ratio(value: float, reference: float) -> float:
    """Return a relative indicator; NaN, with the warning, where its reference is 0 or undefined."""
    if not reference > 0.0:
        return undefined(
            f"relative: the indicator of y_true is {reference:g}, so the ratio is undefined."
        )
    return value / reference
