"""The steps of the loop: the targets of the next fit, when to stop, and which fit is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from ._learner import LearnerFit
from ._master import Master


def mean_of(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return a weighted mean, which `np.average` takes several times as long for."""
    return float(values.mean() if weight is None else weight @ values / weight.sum())


class Candidate(NamedTuple):
    """A fit that may become the fitted estimator.

    Attributes
    ----------
    iteration : int
        0 for the first fit.
    targets : ndarray of shape (n,)
        What it was fitted on.
    fit : LearnerFit
        The fit.
    violation : float
        Violation of the constraint by its predictions; 0 where they satisfy it.
    loss : float
        Loss of its predictions.
    """

    iteration: int
    targets: np.ndarray
    fit: LearnerFit
    violation: float
    loss: float


def better_of(best: Candidate, latest: Candidate) -> Candidate:
    """Return the candidate of smaller violation, or at equal violation of smaller loss.

    Any iteration is preferred to the first fit, whose targets need not satisfy the constraint.
    """
    is_better = (latest.violation, latest.loss) < (best.violation, best.loss)
    return latest if best.iteration == 0 or is_better else best


class StopRule:
    """Stops once the targets have changed by no more than `tol` for some iterations in a row.

    The change is ‖z_i − z_{i−1}‖ / ‖y − mean(y)‖, weighted. For classes ‖·‖² counts the labels that
    changed, and the scale is half the Gini impurity of y, which for 0 and 1 is its variance.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets; integers are classes.
    weight : ndarray of shape (n,) or None
        Sample weights.
    tol : float or None
        Largest change that counts as no change. None is 0, or never stops if `n_iter_no_change`
        is None as well.
    n_iter_no_change : int or None
        Number of iterations in a row; None is 1.
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
        """Record the targets of an iteration, and tell whether it is the last."""
        difference = targets - self.last
        change = self._norm(difference != 0 if self.is_classes else difference)
        self.last = targets
        self.unchanged = self.unchanged + 1 if change <= self.tol * self.scale else 0
        return self.active and self.unchanged >= self.patience

    def _spread(self, y: np.ndarray) -> float:
        if not self.is_classes:
            return self._norm(y - mean_of(y, self.weight))
        counts = np.bincount(y, weights=self.weight)
        frequencies = counts / counts.sum()
        return float(np.sqrt((1 - frequencies @ frequencies) / 2))

    def _norm(self, difference: np.ndarray) -> float:
        return mean_of(np.square(difference, dtype=np.float64), self.weight) ** 0.5


class Step(NamedTuple):
    """The next targets.

    Attributes
    ----------
    targets : ndarray of shape (n,)
        The targets of the learner's next fit.
    target_weight : float
        Weight of the original targets in the projection that computed them; NaN without one.
    """

    targets: np.ndarray
    target_weight: float


class Steps(Protocol):
    """A method to compute the targets of the next fit."""

    @property
    def keeps_best(self) -> bool:
        """Whether the best fit is kept, not the last."""

    @property
    def has_failed(self) -> bool:
        """Whether a search has not found what it looked for."""

    def next(self, fit: LearnerFit) -> Step | None:
        """Return the step that follows a fit; None at the end."""

    def warn(self, selected: Candidate) -> None:
        """Give the warnings that are due at the end of the loop."""


@dataclass
class ProjectionSteps:
    """Moving Targets: the projection of the last predictions.

    Parameters
    ----------
    master : Master
        Computes the projections.
    target_weight : callable
        Returns the weight of the original targets in a step; steps are counted from 1.
    max_iter : int
        Maximum number of steps.
    stop : StopRule
        Ends the steps earlier.
    n_steps : int
        Number of steps so far.
    keeps_best : bool
        Whether the best fit is kept, not the last.
    """

    has_failed: ClassVar[bool] = False

    master: Master
    target_weight: Callable[[int], float]
    max_iter: int
    stop: StopRule
    n_steps: int = 0
    keeps_best: bool = False
    _last: np.ndarray | None = None

    def next(self, fit: LearnerFit) -> Step | None:
        """Return the projection of the predictions, until the loop ends."""
        if self._last is None:
            is_over = self.master.allows(self.master.y) and self.master.allows(fit.predictions)
        else:
            is_over = self.stop.reached(self._last)
        if is_over or self.n_steps == self.max_iter:
            return None
        self.n_steps += 1
        weight = self.target_weight(self.n_steps)
        self._last = self.master.solve(fit.scores, weight)
        return Step(self._last, weight)

    def warn(self, selected: Candidate) -> None:
        """Do nothing: the master warns of its solver."""
