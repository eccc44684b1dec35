"""Predictions of estimators that ask for the attribute of the rows, for who only has X to give.

A scorer or a display asks an estimator for predictions of X alone. Where the attribute is a
keyword of `predict`, it is given an object that answers in the estimator's place.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object

__all__ = [
    "RESPONSES",
    "Answers",
    "Given",
    "asks_for_attribute",
    "named",
    "requests_attribute",
    "takes_attribute",
]

RESPONSES = ("predict", "predict_proba", "decision_function")


def asks_for_attribute(estimator: Any, method: str = "predict") -> bool:
    """Tell whether a method of an estimator, not of what is inside it, has to be given the values.

    It has to where it takes them and neither knows a column of X that holds them, nor can do
    without.
    """
    if getattr(estimator, "sensitive_columns", None) is not None:
        return False
    if not getattr(estimator, "sensitive_at_predict", True):
        return False
    respond = getattr(estimator, method, None)
    return respond is not None and "sensitive_features" in signature(respond).parameters


def requests_attribute(estimator: Any, method: str) -> bool:
    """Tell whether metadata routing brings `sensitive_features` to a method, or through it."""
    return bool(get_routing_for_object(estimator).consumes(method, ["sensitive_features"]))


def takes_attribute(estimator: Any, method: str = "predict") -> bool:
    """Tell whether `estimator.method(X, sensitive_features=...)` reaches one that asks for it.

    With metadata routing that is as the estimators around it say. Without, pipelines alone hand
    keywords on.
    """
    if asks_for_attribute(estimator, method):
        return True
    if get_config()["enable_metadata_routing"]:
        return requests_attribute(estimator, method)
    return isinstance(estimator, Pipeline) and takes_attribute(estimator.steps[-1][1], method)


class Given(NamedTuple):
    """What an estimator has answered for some rows.

    Attributes
    ----------
    responses : dict of str to ndarray
        The answers, by the name of the method.
    classes : ndarray or None
        The classes that it knows; None for numbers.
    """

    responses: dict[str, np.ndarray]
    classes: Any


class Answers:
    """Stands for a fitted estimator on some rows, and remembers what it answered.

    Parameters
    ----------
    fitted : estimator
        The fitted estimator.
    X : array-like of shape (n, p)
        The rows.
    keywords : dict
        Further keywords of its `predict` on these rows.
    """

    def __init__(self, fitted: Any, X: Any, keywords: dict[str, Any]) -> None:
        self.fitted = fitted
        self.X = X
        self.keywords = keywords
        self.given = Given({}, getattr(fitted, "classes_", None))

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.fitted)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.fitted, name)
        if name not in RESPONSES:
            return found

        def respond(X: Any) -> np.ndarray:
            if X is not self.X:
                raise ValueError("scoring must ask for predictions on the X that it was given.")
            if name not in self.given.responses:
                self.given.responses[name] = np.asarray(found(X, **self.keywords))
            return self.given.responses[name]

        return named(respond, name)


def named(respond: Callable[[Any], np.ndarray], name: str) -> Callable[[Any], np.ndarray]:
    """Return the function under the name of the method that it stands for: scorers look at it."""
    respond.__name__ = name
    return respond
