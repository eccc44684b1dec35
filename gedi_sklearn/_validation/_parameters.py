"""Additions to scikit-learn's checks of parameters."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from sklearn.utils._param_validation import Interval

# As joblib understands it; 0, which has no meaning, is refused before any fit.
N_JOBS: list[Any] = [
    Interval(numbers.Integral, None, -1, closed="right"),
    Interval(numbers.Integral, 1, None, closed="left"),
    None,
]


def named_in_errors(name: str) -> Callable[[Callable], Callable]:
    """Return the decorator that gives a function its name in errors about its parameters.

    Callers that check no parameters themselves can set their own name.
    """

    def rename(function: Callable) -> Callable:
        function.__qualname__ = name
        return function

    return rename
