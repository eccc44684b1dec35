"""Indicators of disparate impact for continuous and categorical protected attributes.

Beside the indicators, their scorers and their inference, the package exports what the other
packages of this library measure with: checked samples, linear indicators, references.
"""

from ._accumulator import GediAccumulator, spread_rows
from ._cuts import CutsIndicator, ends_of_ties, tie_width
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
