"""A bound on the share of rows above every cut of scores, on given rows."""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np

from .._geometry import Ball
from ..kernels import FittedKernel, fit_kernel
from ..metrics import CutsIndicator, Limits
from ._constraints import Constraint


class FittedCuts:
    """A bound on the largest cut of scores, judged as other constraints are.

    Scores that meet it are no convex set, so that there is nothing to project on.

    Parameters
    ----------
    given : Constraint
        The constraint, with ``on="distribution"``.
    values : ndarray of shape (n, m)
        Attribute of rows of positive weight.
    weight : ndarray of shape (n,) or None
        Their weights.
    scores : ndarray of shape (n,)
        The learner's own, of whose indicator a relative threshold is a share.
    """

    def __init__(
        self, given: Constraint, values: np.ndarray, weight: np.ndarray | None, scores: np.ndarray
    ) -> None:
        self.given, self.scores = given, scores
        self.design = fit_kernel(given.kernel, values, weight=weight).with_matrix()
        self.indicator = CutsIndicator(self.design)
        self._judge = self.indicator
        self.reference = self.indicator.reference(scores) if given.relative else 1.0
        self.threshold = float(given.absolute_threshold(self.reference))
        self.constraint = given.changed(threshold=self.threshold, relative=False)
        self.bounds_anything = bool(np.isfinite(self.threshold))
        self.allowed = Ball(1, 1.0, self.threshold)
        self.weight = np.broadcast_to(self.design.shares(slice(None)), len(scores))

    @property
    def kernel(self) -> FittedKernel:
        """The kernel of the attribute."""
        return self.design.fitted

    @property
    def parts(self) -> list[FittedCuts]:
        """The only constraint, in the form of those of several."""
        return [self]

    @cached_property
    def unseen(self) -> FittedCuts:
        """The same for scores moved by other rows: judged without what chance adds to a cut."""
        other = copy.copy(self)
        other._judge = CutsIndicator(self.design, "adjusted_sd")
        return other

    def columns(self, scores: np.ndarray) -> np.ndarray:
        """Return scores as columns."""
        return scores[:, None]

    def intervals(
        self, columns: np.ndarray, confidence: float, groups: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return what is judged, its limits from both sides and the bound, shape (1,) each."""
        scores = columns[:, 0]
        low = self.lower_limit(scores, confidence, groups)
        high = self.upper_limits(columns, confidence, groups).values
        return np.array([self.judged(scores)]), np.array([low]), high, self.allowed.limits

    def lower_limit(
        self, scores: np.ndarray, confidence: float, groups: np.ndarray | None = None
    ) -> float:
        """Return the lower confidence limit of the largest cut."""
        chance = np.quantile(self.indicator.null_values(scores, groups), confidence)
        return max(float(self.indicator.measure(scores) - chance), 0.0)

    def judged(self, scores: np.ndarray) -> float:
        """Return the indicator of scores."""
        return self._judge.measure(scores)

    def reference_p_value(self, groups: np.ndarray | None = None) -> float | None:
        """Return how often chance reaches the reference; None of an absolute threshold."""
        if not self.given.relative:
            return None
        drawn = self.indicator.null_values(self.scores, groups)
        return float((1 + (drawn >= self.reference).sum()) / (1 + len(drawn)))

    def emptiness(self, scores: np.ndarray) -> str:
        """Return "": scores are no labels, which may be too few to exceed a bound."""
        return ""

    def upper_limits(
        self, columns: np.ndarray, confidence: float, groups: np.ndarray | None = None
    ) -> Limits:
        """Return the upper confidence limit of the largest cut, of scores moved on these rows."""
        scores = columns[:, 0]
        return self.indicator.upper_limit(scores, confidence, simultaneous=True, groups=groups)
