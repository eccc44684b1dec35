"""What the null distribution, the test and the intervals share: parameters and reference."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from .._validation import Interval, StrOptions
from ._gedi import INDICATOR_CONSTRAINTS, RELATIVE, fit_gedi
from ._inputs import TARGET_CONSTRAINTS, Sample
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
}
RESAMPLES = [Interval(Integral, 1, None, closed="left")]


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
