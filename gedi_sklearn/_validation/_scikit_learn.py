"""The only module with scikit-learn's private names, and additions to its parameter checks."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from sklearn.base import _fit_context
from sklearn.metrics._scorer import _BaseScorer
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import (
    HasMethods,
    Hidden,
    Interval,
    Options,
    RealNotInt,
    StrOptions,
    validate_params,
)
from sklearn.utils._response import _get_response_values
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_method_params,
    _check_n_features,
    _check_response_method,
    _get_feature_names,
    _num_features,
    _num_samples,
)

__all__ = [
    "N_JOBS",
    "HasMethods",
    "Hidden",
    "Interval",
    "Options",
    "RealNotInt",
    "StrOptions",
    "_BaseScorer",
    "_check_feature_names",
    "_check_method_params",
    "_check_n_features",
    "_check_response_method",
    "_fit_context",
    "_get_feature_names",
    "_get_response_values",
    "_num_features",
    "_num_samples",
    "_safe_indexing",
    "check_classification_targets",
    "check_random_state",
    "named_in_errors",
    "validate_params",
]

# As joblib understands it; 0 has no meaning, which shows before any fit.
N_JOBS: list[Any] = [
    Interval(numbers.Integral, None, -1, closed="right"),
    Interval(numbers.Integral, 1, None, closed="left"),
    None,
]


def named_in_errors(name: str) -> Callable[[Callable], Callable]:
    """Return the decorator that gives a function the name that errors of its parameters say.

    Callers that check no parameters themselves can put their own in its place.
    """

    def rename(function: Callable) -> Callable:
        function.__qualname__ = name
        return function

    return rename
