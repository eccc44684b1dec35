"""What stands for the estimators of all folds before a scorer, on the rows of all folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from .._answers import RESPONSES, Given, named
from .._cross_fit import align_columns


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
        if name not in RESPONSES or name not in self.responses:
            raise AttributeError(f"the pooled predictions have no {name!r}.")
        return named(lambda X: self.responses[name], name)
