"""What the learner does on rows that it was not fitted on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from ._learner import Learner


class ValidationData:
    """Scores every fit on held-out rows, in the units of the training rows' indicator.

    Parameters
    ----------
    learner : Learner
        Reads predictions.
    X : array-like of shape (n, p)
        As the inner estimator takes it.
    y : ndarray of shape (n,)
        Targets, classes as 0…K − 1.
    gedi : callable
        Measures numbers (n,) in the units of the training rows' kernel.
    """

    def __init__(
        self,
        learner: Learner,
        X: Any,
        y: np.ndarray,
        gedi: Callable[[np.ndarray], float],
    ) -> None:
        self.learner = learner
        self.X = X
        self.y = y
        self.gedi = gedi

    def measure(self, estimator: Any) -> dict[str, float]:
        """Return the score (R², accuracy) and the indicator of a fitted estimator."""
        predictions = self.learner.predictions(estimator, self.X)
        if self.learner.is_classifier:
            score = float(np.mean(predictions == self.y))
        else:
            score = float(r2_score(self.y, predictions))
        gedi = self.gedi(predictions.astype(np.float64))
        return {"validation_score": score, "validation_gedi": gedi}
