"""Indicators of disparate impact for continuous and categorical protected attributes.

Beside the indicators, their scorers and their inference, the package exports what the other
packages of this library measure with: checked samples, the linear indicator, references.
"""

from ._didi import bin_codes, binned_didi, didi, quantile_bin_edges, target_kind
from ._gedi import INDICATOR_CONSTRAINTS, checked_kernel, fit_design, gedi, gedi_coefficients
from ._hgr import hgr, resampled_hgr
from ._inputs import TARGET_CONSTRAINTS, Sample, check_sample
from ._interval import ConfidenceInterval, gedi_interval
from ._linear import LinearIndicator
from ._null import GediNull, PermutationTestResult, gedi_null, gedi_permutation_test
from ._reference import is_negligible, reference_disparity
from ._scorers import (
    make_binned_didi_scorer,
    make_didi_scorer,
    make_gedi_scorer,
    make_hgr_scorer,
)

__all__ = [
    "INDICATOR_CONSTRAINTS",
    "TARGET_CONSTRAINTS",
    "ConfidenceInterval",
    "GediNull",
    "LinearIndicator",
    "PermutationTestResult",
    "Sample",
    "bin_codes",
    "binned_didi",
    "check_sample",
    "checked_kernel",
    "didi",
    "fit_design",
    "gedi",
    "gedi_coefficients",
    "gedi_interval",
    "gedi_null",
    "gedi_permutation_test",
    "hgr",
    "is_negligible",
    "make_binned_didi_scorer",
    "make_didi_scorer",
    "make_gedi_scorer",
    "make_hgr_scorer",
    "quantile_bin_edges",
    "reference_disparity",
    "resampled_hgr",
    "target_kind",
]
