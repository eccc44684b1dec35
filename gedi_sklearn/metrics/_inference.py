"""What the null distribution, the test and the intervals share: parameters and reference."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from .._validation import NOTION_PARAMETERS, Interval, StrOptions, _num_samples, check_notion
from ._gedi import INDICATOR_CONSTRAINTS, RELATIVE, fit_gedi
from ._inputs import TARGET_CONSTRAINTS, Sample, check_sample, on_subset, undefined_if_empty
from ._linear import LinearIndicator
from ._reference import check_relative

# Numbers that a batch of permuted or resampled targets may hold.
BATCH = 4_000_000

INFERENCE_CONSTRAINTS: dict = {
    **TARGET_CONSTRAINTS,
    **INDICATOR_CONSTRAINTS,
    "relative": RELATIVE,
    "norm": [StrOptions({"l1", "sd"})],
    "conditional_on": ["array-like", None],
    "random_state": ["random_state"],
    **NOTION_PARAMETERS,
}
RESAMPLES = [Interval(Integral, 1, None, closed="left")]


class Measured(NamedTuple):
    """What inference is about.

    Attributes
    ----------
    target : ndarray of shape (n,)
        What is measured.
    indicator : LinearIndicator
        The indicator on the rows.
    unit : float
        The reference that its values are divided by.
    """

    target: np.ndarray
    indicator: LinearIndicator
    unit: float


def check_measured(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any,
    pos_label: Any,
    *,
    kernel: Any,
    degree: int,
    norm: str,
    conditional_on: Any,
    subset: Any,
    on: str,
    relative: bool | int = False,
) -> Measured | None:
    """Check the arguments of a function of inference, which are as in :func:`gedi`.

    Returns
    -------
    Measured or None
        None, with a warning, where a subset holds no row.
    """
    check_notion(subset, on, relative)
    y_true, y_pred, sensitive_features, sample_weight, conditional_on, kernel = on_subset(
        subset, y_true, pos_label, y_pred, sensitive_features, sample_weight, conditional_on, kernel
    )
    if not _num_samples(y_true):
        undefined_if_empty(subset)
        return None
    sample = check_sample(y_true, y_pred, sensitive_features, sample_weight, pos_label, on=on)
    return Measured(
        sample.target, *fit_inference(sample, kernel, degree, relative, norm, conditional_on)
    )


def fit_inference(
    sample: Sample, kernel: Any, degree: int, relative: bool | int, norm: str, conditional_on: Any
) -> tuple[LinearIndicator, float]:
    """Return the indicator on a sample, and the reference that its values are divided by."""
    check_relative(relative, norm)
    fitted = fit_gedi(sample, kernel, degree, norm, conditional_on)
    unit = fitted.reference(relative) if relative else 1.0
    if unit == 0.0:
        raise ValueError(
            "relative: the indicator of y_true is 0, so the ratio is undefined; use relative=False."
        )
    return fitted.indicator, unit
