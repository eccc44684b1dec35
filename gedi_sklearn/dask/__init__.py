"""Indicators, predictions and projections of Dask collections; needs the extra `dask`.

Every function here has the name of the one that it serves for rows in memory. Only sums travel
between machines: of the products of the kernel's columns and the targets for GeDI, of each group
for DIDI. What is computed runs on the client that is active, if there is one.
"""

from ._collections import (
    accumulate,
    didi,
    gedi,
    gedi_inference,
    predict,
    predict_proba,
    project_targets,
    row_blocks_of,
)

__all__ = [
    "accumulate",
    "didi",
    "gedi",
    "gedi_inference",
    "predict",
    "predict_proba",
    "project_targets",
    "row_blocks_of",
]
