"""The parameters of a projection: their declared ranges."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._validation import HasMethods, Interval, StrOptions
from ..constraints import Constraint
from ._build import NAMED_CONSTRAINTS

__all__ = ["PROJECTION_CONSTRAINTS"]

# The declared ranges of the parameters, shared with the estimators that pass them on.
PROJECTION_CONSTRAINTS: dict[str, list[Any]] = {
    "constraint": [StrOptions(set(NAMED_CONSTRAINTS)), Constraint, list, tuple],
    "kernel": [StrOptions({"polynomial", "fourier"}), HasMethods(["transform"]), callable],
    "degree": [Interval(Integral, 1, None, closed="left")],
    "threshold": [Interval(Real, 0, np.inf, closed="both"), "array-like"],
    "relative": ["boolean", Interval(Integral, 1, None, closed="left")],
    "loss": [StrOptions({"auto", "squared_error", "absolute_error", "hamming", "log_loss"})],
    "slack": [Interval(Real, 0, 1, closed="both")],
    "gap": [Interval(Real, 0, 1, closed="left")],
    "target_bounds": [tuple, list, None],
    "solver": [StrOptions({"auto", "gurobi", "highs"})],
    "solver_params": [Mapping, None],
    "time_limit": [Interval(Real, 0, None, closed="neither"), None],
    "random_state": ["random_state"],
}
