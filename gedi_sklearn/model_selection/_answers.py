"""What stands for a fitted estimator before a scorer.

A scorer asks an estimator for predictions. Here it is given an object that answers in its place:
with the attribute, where the estimator needs it; from memory, the second time; and for the rows of
all folds at once, from what the estimator of each fold has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import get_tags

from .._cross_fit import align_columns

__all__ = ["Answers", "Given", "PooledAnswers"]

_RESPONSES = ("predict", "predict_proba", "decision_function")


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
        if name not in _RESPONSES:
            return found

        def respond(X: Any) -> np.ndarray:
            if X is not self.X:
                raise ValueError("scoring must ask for predictions on the X that it was given.")
            if name not in self.given.responses:
                self.given.responses[name] = np.asarray(found(X, **self.keywords))
            return self.given.responses[name]

        return _named(respond, name)


class PooledAnswers:
    """Stands for the estimators of all folds, on the rows that each has not seen.

    Parameters
    ----------
    estimator : estimator
        Any of them, fitted or not: what kind it is.
    parts : sequence of Given
        The answers of each fold.
    order : ndarray of shape (n,)
        Where each row is among the parts, one after another.
    classes : ndarray or None
        All classes; None for numbers.

    Attributes
    ----------
    responses : dict of str to ndarray
        The answers for all rows, by the name of the method.
    """

    def __init__(
        self,
        estimator: Any,
        parts: Sequence[Given],
        order: np.ndarray,
        classes: np.ndarray | None,
    ) -> None:
        self._estimator = estimator
        if classes is not None:
            self.classes_ = classes
        self.responses: dict[str, np.ndarray] = {}
        for name in parts[0].responses:
            values = [part.responses[name] for part in parts]
            if name == "predict_proba" and classes is not None:
                known = [part.classes for part in parts]
                values = [align_columns(*pair, classes) for pair in zip(values, known, strict=True)]
            self.responses[name] = np.concatenate(values)[order]

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._estimator)

    def __getattr__(self, name: str) -> Any:
        if name not in _RESPONSES or name not in self.responses:
            raise AttributeError(f"the pooled predictions have no {name!r}.")
        return _named(lambda X: self.responses[name], name)


def _named(respond: Callable[[Any], np.ndarray], name: str) -> Callable[[Any], np.ndarray]:
    """Return the function under the name of the method that it stands for: scorers look at it."""
    respond.__name__ = name
    return respond
