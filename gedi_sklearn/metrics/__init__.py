"""Indicators of disparate impact for continuous and categorical protected attributes."""

from ._didi import binned_didi, didi, quantile_bin_edges
from ._gedi import gedi, gedi_coefficients
from ._hgr import hgr
from ._interval import ConfidenceInterval, gedi_interval
from ._null import GediNull, PermutationTestResult, gedi_null, gedi_permutation_test
from ._reference import is_negligible, reference_disparity
from ._scorers import (
    make_binned_didi_scorer,
    make_didi_scorer,
    make_gedi_scorer,
    make_hgr_scorer,
)

__all__ = [
    "ConfidenceInterval",
    "GediNull",
    "PermutationTestResult",
    "binned_didi",
    "didi",
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
]
