"""What a fit came to on its own rows, and the warnings about it, with their cause in numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..constraints import FittedConstraint
from ..exceptions import warn_caller
from ._learner import Learner
from ._steps import Candidate

# Predictions that differ by less than this fraction of the range of y count as one value.
_ONE_VALUE = 1e-9
# A learner does not follow its targets where its predictions move by less than this share of what
# these move.
_FOLLOWS = 0.05
# The projection is what removes a class, or the variance of y, where it leaves less than this.
_MOST = 0.5


@dataclass
class Outcome:
    """The kept fit beside the first one, on the training rows.

    Parameters
    ----------
    learner : Learner
        What was fitted.
    y : ndarray of shape (n,)
        Original targets, classes as 0…K − 1.
    weight : ndarray of shape (n,) or None
        Sample weights.
    first_predictions : ndarray of shape (n,)
        Of the first fit, on y.
    selected : Candidate
        The kept fit.
    target_weight : float
        Weight of y in the projection that computed its targets; NaN without one.
    """

    learner: Learner
    y: np.ndarray
    weight: np.ndarray | None
    first_predictions: np.ndarray
    selected: Candidate
    target_weight: float

    def __post_init__(self) -> None:
        self.targets, self.predictions = self.selected.targets, self.selected.fit.predictions
        self.name = type(self.selected.fit.estimator).__name__

    def warn_collapse(self) -> None:
        """Warn if the predictions are constant or lack a class although the targets y do not."""
        counted = slice(None) if self.weight is None else self.weight > 0
        y, predictions = self.y[counted], self.predictions[counted]
        spread = np.ptp(y)
        found = cause = ""
        if np.ptp(predictions) <= _ONE_VALUE * spread and spread > 0:
            found = "predicts one value for every training row: the model has collapsed"
        if self.learner.is_classifier:
            lost = np.setdiff1d(y, predictions)
            labels = self.learner.decode(lost).tolist()
            if lost.size:
                found = (
                    found or f"predicts class(es) {labels} for no training row, though y holds them"
                )
                cause = self._cause(lambda values: np.isin(values, lost), f"rows of {labels}")
        elif found:
            cause = self._cause(self._squared_deviation, "variance")
        if found:
            warn_caller(f"the fitted {self.name} {found}. {cause}")

    def _squared_deviation(self, values: np.ndarray) -> np.ndarray:
        return np.square(values - np.average(values, weights=self.weight))

    def _cause(self, measure: Callable[[np.ndarray], np.ndarray], what: str) -> str:
        """Return where the means over rows of `measure` were lost, with numbers, and what to do."""
        compared = (self.y, self.targets, self.first_predictions)
        in_y, *rest = (np.average(measure(values), weights=self.weight) for values in compared)
        in_targets, in_first = (float(own / in_y) for own in rest)
        found = (
            f"Of the {what} in y, the predictions of the first fit have {in_first:.1%} and the "
            f"last targets {in_targets:.1%}. "
        )
        if in_first <= _ONE_VALUE:
            return found + (
                "The learner loses them without any projection: give the inner estimator features "
                "other than the attribute, or less regularisation."
            )
        if in_targets < _MOST:
            return found + (
                "The projection removes them, where y had a weight of "
                f"{self.target_weight:.2g} against 1 for the predictions: raise `target_weight` or "
                "`threshold`."
            )
        return found + (
            "The learner does not follow its targets: use select='best' or another inner estimator."
        )

    def warn_unmet(self, constraint: FittedConstraint) -> None:
        """Warn if the predictions are beyond the constraint."""
        kind = "Classifier" if self.learner.is_classifier else "Regressor"
        if self._stands_still():
            others = "Use an inner estimator that fit changes"
            reason = (
                f"{self.name} does not follow its targets: they satisfy the constraint, but its "
                "predictions hardly differ from those of its first fit."
            )
        else:
            others = f"Use select='best', DualTargets{kind}"
            reason = f"The targets satisfy it, and {self.name} follows them only in part."
        counted = slice(None) if self.weight is None else self.weight > 0
        constraint.warn_excess(
            self.predictions[counted].astype(np.float64),
            f"{others}, or Projected{kind}, which corrects the predictions themselves",
            reason,
        )

    def _stands_still(self) -> bool:
        """Tell whether the predictions hardly moved from the first fit on, though targets did."""

        def change(last: np.ndarray, first: np.ndarray) -> float:
            apart = last != first if self.learner.is_classifier else last - first
            return float(np.linalg.norm(apart))

        asked = change(self.targets, self.y)
        return asked > 0 and change(self.predictions, self.first_predictions) <= _FOLLOWS * asked
