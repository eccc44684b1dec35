"""When the loop stops, and which of its fits is kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._learner import LearnerFit
from ._master import Master


class StopRule:
    """Stops once the targets have changed by no more than `tol` so many times in a row.

    The change is ‖z_i − z_{i−1}‖ / ‖y − mean(y)‖, weighted. For classes ‖·‖² counts the labels that
    changed, and the scale is the Gini impurity of y, halved: its variance, for 0 and 1.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets; integers are classes.
    weight : ndarray of shape (n,) or None
        Sample weights.
    tol : float or None
        Largest change that counts as none; None is 0, or never stops where `n_iter_no_change` is
        None too.
    n_iter_no_change : int or None
        How many iterations in a row; None is 1.
    """

    def __init__(
        self,
        y: np.ndarray,
        weight: np.ndarray | None,
        tol: float | None,
        n_iter_no_change: int | None,
    ) -> None:
        self.weight = weight
        self.is_classes = y.dtype.kind in "iu"
        self.scale = self._spread(y)
        self.active = tol is not None or n_iter_no_change is not None
        self.tol = tol or 0.0
        self.patience = n_iter_no_change or 1
        self.unchanged = 0
        self.last = y

    def reached(self, targets: np.ndarray) -> bool:
        """Take the targets of an iteration, and tell whether it was the last."""
        difference = targets - self.last
        change = self._norm(difference != 0 if self.is_classes else difference)
        self.last = targets
        self.unchanged = self.unchanged + 1 if change <= self.tol * self.scale else 0
        return self.active and self.unchanged >= self.patience

    def _spread(self, y: np.ndarray) -> float:
        if not self.is_classes:
            return self._norm(y - np.average(y, weights=self.weight))
        shares = np.bincount(y, weights=self.weight) / (
            len(y) if self.weight is None else self.weight.sum()
        )
        return float(np.sqrt((1 - shares @ shares) / 2))

    def _norm(self, difference: np.ndarray) -> float:
        return float(
            np.sqrt(np.average(np.square(difference, dtype=np.float64), weights=self.weight))
        )


class Kept(NamedTuple):
    """The fit that becomes the fitted estimator.

    Attributes
    ----------
    iteration : int
        0 for the first fit.
    targets : ndarray of shape (n,)
        What it was fitted on.
    fit : LearnerFit
        The fit.
    rank : tuple of (float, float)
        Violation of its predictions, 0 where they satisfy the constraint, and their loss.
    """

    iteration: int
    targets: np.ndarray
    fit: LearnerFit
    rank: tuple[float, float]

    @classmethod
    def of(
        cls, iteration: int, targets: np.ndarray, fit: LearnerFit, master: Master, loss: float
    ) -> Kept:
        """Rank a fit by the violation and the loss of its predictions."""
        return cls(iteration, targets, fit, (master.projection.violation(fit.predictions), loss))

    def or_better(self, later: Kept) -> Kept:
        """Return the better one.

        The first fit never outlives an iteration: its targets need not satisfy the constraint.
        """
        return later if self.iteration == 0 or later.rank < self.rank else self
