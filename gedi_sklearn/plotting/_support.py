"""What the displays share: matplotlib, an estimator's responses, targets on a fitted kernel."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._predictions import Responses, takes_attribute
from .._validation import (
    StrOptions,
    _get_response_values,
    check_labels,
    check_sensitive,
    is_text,
    select_columns,
)
from ..kernels import KernelDesign
from ..metrics._gedi import KERNEL_CONSTRAINTS, checked_kernel, fit_design
from ..metrics._inputs import TARGET_CONSTRAINTS, Sample, check_sample

__all__ = [
    "ESTIMATOR_CONSTRAINTS",
    "MEASURED_COLOR",
    "PREDICTION_CONSTRAINTS",
    "REFERENCE_COLOR",
    "THRESHOLD_COLOR",
    "estimator_sample",
    "import_pyplot",
    "measure",
]

# In every display: the measured values, what they are compared with, and their bound.
MEASURED_COLOR, REFERENCE_COLOR, THRESHOLD_COLOR = "C0", "0.6", "C3"

PREDICTION_CONSTRAINTS: dict = {
    **TARGET_CONSTRAINTS,
    **KERNEL_CONSTRAINTS,
    "name": [str, None],
}
ESTIMATOR_CONSTRAINTS: dict = {
    "sensitive_features": ["array-like", None],
    "sensitive_columns": [Integral, str, list, tuple, None],
    "response_method": [StrOptions({"predict", "predict_proba", "decision_function"})],
    "name": [str, None],
}


def import_pyplot(caller: str) -> Any:
    """Return ``matplotlib.pyplot``; its absence is an error that names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{caller} needs matplotlib ({error.name} is missing): "
            "pip install 'gedi-sklearn[plot]'."
        ) from error
    return plt


def estimator_sample(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    sensitive_columns: Any,
    response_method: str,
    pos_label: Any,
) -> dict[str, Any]:
    """Return the keywords of `from_predictions` for an estimator and its data.

    As in a scorer, probabilities and decision values belong to `pos_label`, by default to
    ``classes_[1]``, and the targets are then 1 for that class and 0 otherwise. The attribute is
    passed to `predict` if the estimator, or the last step of a pipeline, needs it.
    """
    check_sensitive(sensitive_features, X=X, sensitive_columns=sensitive_columns, kind="mixed")
    if sensitive_columns is not None:
        sensitive_features = select_columns(X, sensitive_columns)
    responses = estimator
    if takes_attribute(estimator, response_method):
        keywords = {"sensitive_features": sensitive_features}
        responses = Responses(estimator, X=X, keywords=keywords)
    y_pred, positive = _get_response_values(
        responses, X, response_method=response_method, pos_label=pos_label
    )
    if np.ndim(y_pred) != 1:
        raise ValueError(
            f"response_method={response_method!r} of more than two classes gives one column per "
            "class; use 'predict' with `pos_label`, or pass one column to `from_predictions`."
        )
    if is_classifier(estimator) and response_method != "predict":
        y, pos_label = (check_labels(y, "y") == positive).astype(np.float64), None
    elif is_classifier(estimator) and is_text(np.asarray(estimator.classes_)):
        pos_label = positive
    return {
        "y_true": y,
        "y_pred": y_pred,
        "sensitive_features": sensitive_features,
        "pos_label": pos_label,
    }


def measure(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    kernel: Any,
    degree: int,
    pos_label: Any,
    sample_weight: Any,
) -> tuple[Sample, KernelDesign]:
    """Return the checked sample and the kernel fitted on its rows.

    Raises
    ------
    RankDeficientKernelError
        If the kernel's columns are linearly dependent, the attribute constant among others.
    """
    sample = check_sample(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        pos_label=pos_label,
        attribute="mixed",
    )
    return sample, fit_design(checked_kernel(kernel, degree, sample), sample)
