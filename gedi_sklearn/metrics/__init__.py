"""Indicators of disparate impact for continuous and categorical protected attributes."""

from ._didi import binned_didi, didi, quantile_bin_edges
from ._gedi import gedi, gedi_coefficients

__all__ = ["binned_didi", "didi", "gedi", "gedi_coefficients", "quantile_bin_edges"]
