"""What the learner is fitted on next: the targets of one iteration after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from ._learner import LearnerFit
from ._master import Master
from ._rules import Kept, StopRule

__all__ = ["ProjectionSteps", "Step", "Steps"]


class Step(NamedTuple):
    """The next targets.

    Attributes
    ----------
    targets : ndarray of shape (n,)
        What the learner is to be fitted on.
    target_weight : float
        Weight of the original targets in the projection that made them; NaN without one.
    """

    targets: np.ndarray
    target_weight: float


class Steps(Protocol):
    """A way to make targets."""

    @property
    def keeps_best(self) -> bool:
        """Whether the best fit has to be kept, whatever `select` says."""

    def next(self, fit: LearnerFit) -> Step | None:
        """Return what follows a fit, the first or that of the last step; None at the end."""

    def warn(self, kept: Kept) -> None:
        """Say at the end of the loop what the user should know of it."""


class ProjectionSteps:
    """Moving Targets: the projection of the last predictions.

    Parameters
    ----------
    master : Master
        Projects.
    target_weight : callable
        From the number of a step, counted from 1, to the weight of the original targets.
    max_iter : int
        Number of steps.
    stop : StopRule
        Ends them earlier.

    Attributes
    ----------
    n_steps : int
        Number of steps so far.
    """

    keeps_best = False

    def __init__(
        self,
        master: Master,
        target_weight: Callable[[int], float],
        max_iter: int,
        stop: StopRule,
    ) -> None:
        self.master = master
        self.target_weight = target_weight
        self.max_iter = max_iter
        self.stop = stop
        self._last: np.ndarray | None = None
        self.n_steps = 0

    def next(self, fit: LearnerFit) -> Step | None:
        """Return the projection of the predictions, as long as there is reason to."""
        if self._last is None:
            is_over = self.master.projection.satisfied(
                self.master.y
            ) and self.master.projection.satisfied(fit.predictions)
        else:
            is_over = self.stop.reached(self._last)
        if is_over or self.n_steps == self.max_iter:
            return None
        self.n_steps += 1
        weight = self.target_weight(self.n_steps)
        self._last = self.master.solve(fit.scores, weight)
        return Step(self._last, weight)

    def warn(self, kept: Kept) -> None:
        """Leave it to the master to speak of its solver."""
