"""A fitted estimator answers with the parameters of its fit, whatever they were set to since."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn.base import clone

__all__ = ["answers_as_fitted", "as_fitted", "keep_parameters"]


def keep_parameters(estimator: Any) -> None:
    """Record the parameters of a fit, for the answers of the fitted estimator.

    The constraint is copied, since `set_params` changes the parameters of the object itself; those
    of the other objects are read by `fit` only.
    """
    given = estimator.get_params(deep=False)
    estimator._parameters = {**given, "constraint": clone(given["constraint"], safe=False)}


def as_fitted(estimator: Any) -> Any:
    """Return a view of a fitted estimator with the parameters of its fit; others as they are."""
    parameters = getattr(estimator, "_parameters", None)
    if parameters is None:
        return estimator
    view = object.__new__(type(estimator))
    vars(view).update(vars(estimator), **parameters)
    return view


def answers_as_fitted(method: Callable) -> Callable:
    """Let a method of a fitted estimator read the parameters of its fit."""

    @wraps(method)
    def answer(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(as_fitted(self), *args, **kwargs)

    return answer
