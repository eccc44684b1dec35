"""Indicators of disparate impact for continuous and categorical protected attributes.

Beside the indicators, their scorers and their inference, the package exports what the other
packages of this library measure with: checked samples, linear indicators, references.
"""

from ._accumulator import GediAccumulator, spread_rows
from ._cuts import CutsIndicator, ends_of_ties
from ._didi import bin_codes, didi, quantile_bin_edges
from ._ellipsoids import error_quantile, farthest
from ._errors import Errors, lonely_place
from ._gedi import INDICATOR_CONSTRAINTS, RELATIVE, fit_gedi, gedi, gedi_coefficients
from ._hgr import hgr, hides_class, resampled_hgr
from ._inference import GediInference, gedi_inference
from ._inputs import TARGET_CONSTRAINTS, Sample, check_sample, undefined_if_constant
from ._limits import Limits, cluster_p_value, lower_limits, upper_limits
from ._linear import GroupIndicator, KernelIndicator, LinearIndicator, is_negligible
from ._reference import check_relative, reference_disparity
from ._scorers import make_disparity_scorer
from ._target_correction import TargetCorrection

__all__ = [
    "INDICATOR_CONSTRAINTS",
    "RELATIVE",
    "TARGET_CONSTRAINTS",
    "CutsIndicator",
    "Errors",
    "GediAccumulator",
    "GediInference",
    "GroupIndicator",
    "KernelIndicator",
    "Limits",
    "LinearIndicator",
    "Sample",
    "TargetCorrection",
    "bin_codes",
    "check_relative",
    "check_sample",
    "cluster_p_value",
    "didi",
    "ends_of_ties",
    "error_quantile",
    "farthest",
    "fit_gedi",
    "gedi",
    "gedi_coefficients",
    "gedi_inference",
    "hgr",
    "hides_class",
    "is_negligible",
    "lonely_place",
    "lower_limits",
    "make_disparity_scorer",
    "quantile_bin_edges",
    "reference_disparity",
    "resampled_hgr",
    "spread_rows",
    "undefined_if_constant",
    "upper_limits",
]
