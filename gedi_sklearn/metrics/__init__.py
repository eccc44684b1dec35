"""Indicators of disparate impact for continuous and categorical protected attributes.

Beside the indicators, their scorers and their inference, the package exports what the other
packages of this library measure with: checked samples, linear indicators, references. Scorers are
imported when they are asked for, since scikit-learn's load all of its metrics.
"""

from typing import TYPE_CHECKING, Any

from ._accumulator import GediAccumulator, check_bound_of_sums, spread_rows
from ._cuts import CutsIndicator, ends_of_ties, tie_width
from ._didi import bin_codes, didi, quantile_bin_edges
from ._ellipsoids import error_quantile, farthest
from ._errors import Errors, lonely_place
from ._gedi import (
    INDICATOR_CONSTRAINTS,
    RELATIVE,
    check_relative,
    fit_gedi,
    gedi,
    gedi_coefficients,
    reference_disparity,
)
from ._hgr import hgr, hides_class, resampled_hgr
from ._inference import GediInference, gedi_inference
from ._inputs import TARGET_CONSTRAINTS, Sample, check_sample, undefined_if_constant
from ._limits import Limits, cluster_p_value, limits_of_sizes, lower_limits, upper_limits
from ._linear import KernelIndicator, LinearIndicator, group_indicator
from ._summed import TargetCorrection

if TYPE_CHECKING:
    from ._scorers import make_disparity_scorer

__all__ = [
    "GediAccumulator",
    "GediInference",
    "TargetCorrection",
    "didi",
    "gedi",
    "gedi_coefficients",
    "gedi_inference",
    "hgr",
    "make_disparity_scorer",
    "quantile_bin_edges",
]


def __getattr__(name: str) -> Any:
    if name != "make_disparity_scorer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._scorers import make_disparity_scorer

    return make_disparity_scorer


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
