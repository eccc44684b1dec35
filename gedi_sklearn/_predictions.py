"""Responses of estimators: cached, of the right length, with one column per class.

A scorer or a display calls `estimator.predict(X)`. Where the predictions have been made elsewhere,
or `predict` needs the attribute as a keyword, `Responses` takes the estimator's place.

A fitted estimator answers with the parameters of its fit, whatever they were set to since.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object

from ._validation import _num_samples

# Rounding of probabilities, and of their sums.
_ROUNDING, _MOST_OFF = 1e-6, 1e-3
_METHODS = ("predict", "predict_proba", "decision_function")


class Responses:
    """The responses of an estimator for fixed rows, in the place of the estimator.

    With `X` they are computed on first use, and every other attribute is the estimator's. Without
    it they are those of `known`, whatever X is passed.

    Parameters
    ----------
    estimator : estimator
        The estimator; without `X` only its tags and classes count.
    known : dict of str to ndarray, default=None
        Responses by the name of the method.
    X : array-like of shape (n, p), default=None
        The rows.
    keywords : dict, default=None
        Further keywords of the estimator's methods on these rows.
    classes : ndarray, default=None
        The classes of a classifier; None takes those of `estimator`.
    """

    def __init__(
        self,
        estimator: Any,
        known: dict[str, np.ndarray] | None = None,
        *,
        X: Any = None,
        keywords: dict[str, Any] | None = None,
        classes: np.ndarray | None = None,
    ) -> None:
        self.estimator = estimator
        self.known = {} if known is None else known
        self.X = X
        self.keywords = keywords or {}
        if classes is None:
            classes = getattr(estimator, "classes_", None)
        if classes is not None:
            self.classes_ = classes

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)

    def __getattr__(self, name: str) -> Any:
        if self.X is None and name not in self.known:
            raise AttributeError(f"the predictions for these rows have no {name!r}.")
        if self.X is not None:
            found = getattr(self.estimator, name)
            if name not in _METHODS:
                return found

        def respond(X: Any) -> np.ndarray:
            if self.X is not None and X is not self.X:
                raise ValueError("the scorer must predict on the X that it was given.")
            if name not in self.known:
                self.known[name] = np.asarray(found(X, **self.keywords))
                if name == "predict_proba":
                    _refuse_no_probabilities(self.known[name], self.estimator)
            return self.known[name]

        respond.__name__ = name  # scorers look at it
        return respond


def checked_predict(estimator: Any, X: Any, *, n_columns: int = 1) -> Any:
    """Return the predictions of a fitted estimator, untouched.

    Raises
    ------
    ValueError
        If they are not one value per row, or `n_columns` of them; a single column is accepted.
    TypeError
        If there is no `predict`, which some estimators have once they are fitted only.
    """
    if not hasattr(estimator, "predict"):
        raise TypeError(f"estimator={estimator!r} predicts nothing: it has no method `predict`.")
    return _check_response(estimator.predict(X), X, estimator, "predict", n_columns)


def checked_predict_proba(estimator: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return the probabilities of a fitted classifier, shape (n, K), one column per class.

    Parameters
    ----------
    estimator : classifier
        Fitted, on all `classes` or on some of them.
    X : array-like of shape (n, p)
        Rows.
    classes : ndarray of shape (K,)
        The classes that the columns stand for.

    Returns
    -------
    ndarray of shape (n, K)

    Raises
    ------
    ValueError
        If the estimator returns another shape than one column for each of its own classes, or
        what are no probabilities.
    """
    seen = estimator.classes_
    proba = _check_response(estimator.predict_proba(X), X, estimator, "predict_proba", len(seen))
    proba = np.asarray(proba)
    _refuse_no_probabilities(proba, estimator)
    return align_columns(np.clip(proba, 0.0, 1.0), seen, classes)


def _check_response(response: Any, X: Any, estimator: Any, method: str, n_columns: int) -> Any:
    shape, n_samples = np.shape(response), _num_samples(X)
    if shape[:1] != (n_samples,) or np.prod(shape) != n_samples * n_columns:
        expected = (n_samples,) if n_columns == 1 else (n_samples, n_columns)
        raise ValueError(
            f"{type(estimator).__name__}.{method} returned an array of shape {shape} for "
            f"{n_samples} rows; expected {expected}."
        )
    return response


def _refuse_no_probabilities(proba: np.ndarray, estimator: Any) -> None:
    """Raise if values leave [0, 1], or a row does not sum to 1; missing ones are the caller's."""
    if proba.dtype.kind not in "fiub" or not np.isfinite(proba).all():
        return
    owner = estimator.estimator if isinstance(estimator, Responses) else estimator
    low, high = proba.min(initial=0.0), proba.max(initial=1.0)
    off = np.abs(proba.sum(axis=1) - 1.0).max(initial=0.0) if proba.ndim == 2 else 0.0
    if low < -_ROUNDING or high > 1.0 + _ROUNDING or off > _MOST_OFF:
        raise ValueError(
            f"{type(owner).__name__}.predict_proba must return probabilities in [0, 1] that sum to "
            f"1 in every row; got values from {low:.3g} to {high:.3g}, and sums up to {off:.3g} "
            "away from 1. Wrap the estimator in sklearn.calibration.CalibratedClassifierCV."
        )


def align_columns(proba: np.ndarray, seen: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return probabilities with one column for each of `classes`, 0 for one that was not seen.

    Columns are matched by their labels, in whatever order an estimator has them.

    Raises
    ------
    ValueError
        If an estimator knows a label that is none of the classes.
    """
    positions = {label: position for position, label in enumerate(np.asarray(classes).tolist())}
    known = np.asarray(seen).tolist()
    if not set(known) <= positions.keys():
        raise ValueError(
            f"the estimator was fitted on the classes {known}, which are not those of y, "
            f"{list(positions)}. Fit it on y."
        )
    aligned = np.zeros((len(proba), len(positions)))
    aligned[:, [positions[label] for label in known]] = proba
    return aligned


def column_of_class(response: np.ndarray, classes: np.ndarray, pos_label: Any) -> np.ndarray:
    """Return the responses for one class, of an array with a column for each of several classes.

    Raises
    ------
    ValueError
        If the columns are not those of the classes, or there is no such class.
    """
    if response.ndim != 2 or response.shape[1] != len(classes):
        raise ValueError(
            f"the responses for {len(classes)} classes {classes.tolist()} have the shape "
            f"{response.shape}; one column for each class is needed, or response_method='predict'."
        )
    if pos_label not in classes.tolist():
        raise ValueError(f"pos_label={pos_label!r} is none of the classes {classes.tolist()}.")
    return response[:, classes.tolist().index(pos_label)]


def asks_for_attribute(estimator: Any, method: str = "predict") -> bool:
    """Tell whether an estimator's own method needs the attribute as a keyword.

    It does if it takes `sensitive_features`, has no `sensitive_columns` and cannot predict
    without the attribute. What the estimator contains does not matter here.
    """
    estimator = as_fitted(estimator)
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
    """Tell whether `sensitive_features=` can be passed to a method, and is needed there or inside.

    With metadata routing the requests decide. Without it only pipelines pass keywords on.
    """
    if asks_for_attribute(estimator, method):
        return True
    if get_config()["enable_metadata_routing"]:
        return requests_attribute(estimator, method)
    return isinstance(estimator, Pipeline) and takes_attribute(estimator.steps[-1][1], method)


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
