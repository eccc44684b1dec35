"""Indicators of disparate impact for continuous and categorical protected attributes.

Beside the indicators, their scorers and their inference, the package exports what the other
packages of this library measure with: checked samples, linear indicators, references.
"""

from ._accumulator import GediAccumulator, spread_rows
from ._didi import (
    bin_codes,
    binned_didi,
    didi,
    make_binned_didi_scorer,
    make_didi_scorer,
    quantile_bin_edges,
)
from ._gedi import (
    INDICATOR_CONSTRAINTS,
    RELATIVE,
    fit_gedi,
    gedi,
    gedi_coefficients,
    make_gedi_scorer,
)
from ._hgr import hgr, hides_class, make_hgr_scorer, resampled_hgr
from ._inference import fit_inference
from ._inputs import TARGET_CONSTRAINTS, Sample, check_sample
from ._interval import ConfidenceInterval, gedi_interval
from ._linear import GroupIndicator, Inference, KernelIndicator, LinearIndicator, is_negligible
from ._null import (
    GediNull,
    PermutationTestResult,
    gedi_null,
    gedi_permutation_test,
    independence_test,
)
from ._reference import check_relative, reference_disparity
from ._sampling import error_quantile, farthest, lower_limits, upper_limits
from ._upper_bound import gedi_upper_bound, make_gedi_upper_bound_scorer

__all__ = [
    "INDICATOR_CONSTRAINTS",
    "RELATIVE",
    "TARGET_CONSTRAINTS",
    "ConfidenceInterval",
    "GediAccumulator",
    "GediNull",
    "GroupIndicator",
    "Inference",
    "KernelIndicator",
    "LinearIndicator",
    "PermutationTestResult",
    "Sample",
    "bin_codes",
    "binned_didi",
    "check_relative",
    "check_sample",
    "didi",
    "error_quantile",
    "farthest",
    "fit_gedi",
    "fit_inference",
    "gedi",
    "gedi_coefficients",
    "gedi_interval",
    "gedi_null",
    "gedi_permutation_test",
    "gedi_upper_bound",
    "hgr",
    "hides_class",
    "independence_test",
    "is_negligible",
    "lower_limits",
    "make_binned_didi_scorer",
    "make_didi_scorer",
    "make_gedi_scorer",
    "make_gedi_upper_bound_scorer",
    "make_hgr_scorer",
    "quantile_bin_edges",
    "reference_disparity",
    "resampled_hgr",
    "spread_rows",
    "upper_limits",
]
