"""Targets that are classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ._arrays import check_column, check_labels, check_numbers, check_sample_weight


def refuse_real_values(labels: np.ndarray, name: str) -> None:
    """Raise if labels are real numbers, in scikit-learn's words; it casts them to integers."""
    try:
        with np.errstate(invalid="ignore"):
            check_classification_targets(labels)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def check_classes(y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes of labels, shape (K,), and the class of each row as an integer, (n,).

    Raises
    ------
    ValueError
        If the values are not labels, or the rows of positive weight have a single class.
    """
    labels = check_labels(check_column(y, "y"), "y")
    if labels.dtype.kind == "f":
        check_numbers(labels, "y")  # infinity is not a label
    refuse_real_values(labels, "y")
    classes, codes = np.unique(labels, return_inverse=True)
    weight = check_sample_weight(sample_weight, len(codes))
    present = np.unique(codes if weight is None else codes[weight > 0])
    if len(present) < 2:
        where = "y" if weight is None else "the rows of positive sample_weight"
        raise ValueError(
            f"Classifier can't train when only one class is present: {where} has only "
            f"{classes[present].tolist()}."
        )
    check_all_weighted(classes, codes[weight > 0] if weight is not None else codes)
    return classes, codes


def check_all_weighted(classes: np.ndarray, codes: np.ndarray) -> None:
    """Raise if a class 0…K − 1 is not among the codes of the rows that count."""
    absent = np.setdiff1d(np.arange(len(classes)), codes)
    if absent.size:
        raise ValueError(
            f"class(es) {classes[absent].tolist()} of y occur only in rows of zero sample_weight, "
            "which do not count. Leave these rows out."
        )
