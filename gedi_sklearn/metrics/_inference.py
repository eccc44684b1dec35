"""What the null distribution, the test and the intervals have in common: parameters and sample."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from .._validation import Interval, StrOptions
from ._gedi import INDICATOR_CONSTRAINTS, checked_covariates, checked_kernel, fit_design
from ._inputs import TARGET_CONSTRAINTS, Sample, check_sample
from ._linear import LinearIndicator
from ._reference import reference_disparity

__all__ = ["BATCH", "INFERENCE_CONSTRAINTS", "RESAMPLES", "prepare"]

# Numbers that a batch of permuted or resampled targets may hold.
BATCH = 4_000_000

INFERENCE_CONSTRAINTS: dict = {
    **TARGET_CONSTRAINTS,
    **INDICATOR_CONSTRAINTS,
    "relative": ["boolean", Interval(Integral, 0, None, closed="left")],
    "norm": [StrOptions({"l1", "sd"})],
    "conditional_on": ["array-like", None],
    "random_state": ["random_state"],
}
RESAMPLES = [Interval(Integral, 1, None, closed="left")]


def prepare(
    y_true: Any,
    y_pred: Any,
    kernel: Any,
    degree: int,
    relative: bool | int,
    norm: str,
    conditional_on: Any,
    pos_label: Any,
    sensitive_features: Any,
    sample_weight: Any,
) -> tuple[Sample, LinearIndicator, float]:
    """Return the sample, the indicator on it, and the reference that values are divided by."""
    sample = check_sample(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        pos_label=pos_label,
        attribute="mixed",
    )
    kernel = checked_kernel(kernel, degree, sample)
    covariates = checked_covariates(conditional_on, sample)
    design = fit_design(kernel, sample, covariates)
    indicator = LinearIndicator.of_kernel(design, norm)
    if not relative:
        return sample, indicator, 1.0
    reference = reference_disparity(
        sample.y_true,
        sample.values,
        kernel=kernel,
        relative=relative,
        weight=sample.weight,
        norm=norm,
        covariates=covariates,
    )
    if reference == 0.0:
        raise ValueError(
            "relative: the indicator of y_true is 0, so the ratio is undefined; use relative=False."
        )
    return sample, indicator, reference
