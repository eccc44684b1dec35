r"""Quasi-Newton on the multipliers of the learner's own problem.

A learner that minimises a squared loss minimises, under the constraint on its predictions f,

.. math:: \min_f \tfrac12 \|f - y\|^2 \;\text{s.t.}\; Q^T W f \in C
   \quad\text{by a plain fit on}\quad y - Q\lambda,

with Q the orthonormal kernel columns and λ the k multipliers, for which the coordinates g(λ) of
the predictions lie in C and λ is in the normal cone of C there. A learner that follows its targets
has g(λ) = g − λ, so the first step is the correction of a projection. Later steps estimate from the
fits how closely the learner follows.

For two classes the targets are the labels given by a threshold on the score that is shifted by
the multipliers. They compensate for the difference between the coordinates of the predictions and
those of the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._geometry import Span
from ..exceptions import warn_caller
from ._learner import LearnerFit
from ._master import Master
from ._steps import Candidate, ProjectionSteps, Step

# Refits of forests and boosting do not reproduce predictions more closely than this.
DEFAULT_TOL = 5e-3
# The loss is quadratic in the error of the multipliers, so they may be less exact than the
# constraint.
_SLACKNESS = 4.0
# Progress is an `optimality` below this fraction of the smallest so far.
_PROGRESS = 0.95
# Fits without progress after which the search stops; the last attempt is half a step.
_PATIENCE = 3
# Range of the learner's response in any direction. A small response makes a long step, so it is
# taken for noise below this multiple of the tolerance.
_CREDIBLE = 10.0
_LOWEST, _HIGHEST = (1e-4, 0.1), 2.0


class Residual(NamedTuple):
    """How far a fit is from satisfying the optimality conditions, in deviations of y.

    Attributes
    ----------
    infeasibility : float
        By how much the predictions miss the constraint, judged by its violation.
    optimality : float
        By how much the targets would move to make a learner that follows them optimal.
    """

    infeasibility: float
    optimality: float

    def within(self, tol: float) -> bool:
        """Tell whether the fit has converged."""
        return self.infeasibility <= tol and self.optimality <= _SLACKNESS * tol


@dataclass(kw_only=True)
class DualSteps(ProjectionSteps):
    """Steps of a search, followed by those of Moving Targets if the search does not converge.

    These continue from its best fit.

    Parameters
    ----------
    master, target_weight, stop
        As for `ProjectionSteps`.
    max_iter : int
        Maximum number of steps of both kinds.
    search : RealSearch or ClassSearch
        Computes targets.
    tol : float
        Residual at which the search has converged.
    """

    search: RealSearch | ClassSearch
    tol: float
    # Until the search converges.
    keeps_best: bool = True
    has_failed: bool = True
    _best: tuple[Residual, LearnerFit] | None = None
    _is_searching: bool = True
    _idle: int = 0
    _n_searched: int = 0

    def next(self, fit: LearnerFit) -> Step | None:
        """Return the targets at the next multipliers; None once the search has converged."""
        step = None
        if self._is_searching:
            with self.master.timed():
                step = self._search(fit)
            if not self.has_failed:
                return None
        if self._n_searched + self.n_steps == self.max_iter:
            return None
        if step is not None:
            self._n_searched += 1
            return step
        if self._is_searching:
            self._is_searching = False
            assert self._best is not None  # a fit was judged
            fit = self._best[1]
        return super().next(fit)

    def _search(self, fit: LearnerFit) -> Step | None:
        """Return the next step of the search; None if it converged or stops."""
        residual = self.search.judge(fit)
        if residual.within(self.tol):
            self.has_failed = self.keeps_best = False
            return None
        if self._best is None or residual.optimality < _PROGRESS * self._best[0].optimality:
            self._best, self._idle = (residual, fit), 0
        else:
            self._idle += 1
        if self._idle == _PATIENCE:
            return None
        targets = self.search.propose(0.5 if self._idle == _PATIENCE - 1 else 1.0)
        return None if targets is None else Step(targets, np.nan)

    def warn(self, selected: Candidate) -> None:
        """Warn if the search did not converge."""
        if not self.has_failed:
            return
        assert self._best is not None  # a fit was judged
        residual = self._best[0]
        warn_caller(
            f"the search for multipliers did not converge in {self._n_searched} fit(s): at best "
            f"the targets would still have moved by {residual.optimality:.2g} deviations of y, "
            f"with predictions {residual.infeasibility:.2g} deviations away from the constraint "
            f"(tol={self.tol:g}). {self.n_steps} iteration(s) of moving targets followed. "
            f"The fit of iteration {selected.iteration} is kept, the best by violation "
            f"({selected.violation:.3g}) and loss of its predictions. Raise `tol` or "
            "`max_iter`, or use Moving Targets.",
            ConvergenceWarning,
        )


class RealSearch:
    """Multipliers for real targets, from the learner's response as seen in the fits.

    Parameters
    ----------
    master : Master
        Provides the constraint and computes the targets.
    tol : float
        Changes of the coordinates below this fraction of the deviation of y are noise.
    """

    def __init__(self, master: Master, tol: float) -> None:
        self.master = master
        self.span = master.span
        self.span.check_square()  # the learner's response is one
        self.deviation = master.deviation
        self.noise = tol * self.deviation
        self.lowest = float(np.clip(_CREDIBLE * tol, *_LOWEST))
        self.multipliers = np.zeros(self.span.size)
        # (λ, g) of every fit, the position of the best among them, and its `optimality`.
        self._tried: list[tuple[np.ndarray, np.ndarray]] = []
        self._best = 0
        self._least = np.inf

    def judge(self, fit: LearnerFit) -> Residual:
        """Return the residual of the predictions at the last multipliers."""
        g = self.master.coordinates(fit.predictions)
        self._tried.append((self.multipliers, g))
        move = self.span.move(g + self.multipliers)
        optimality = float(np.linalg.norm(self.multipliers + move))
        if optimality < self._least:
            self._best, self._least = len(self._tried) - 1, optimality
        infeasibility = self.master.outcome_violation(fit.predictions)
        return Residual(infeasibility, optimality / self.deviation)

    def propose(self, length: float) -> np.ndarray:
        """Return y − Qλ for the λ that are optimal under the estimated response."""
        base, g = self._tried[self._best]
        steps = [
            (multipliers - base, g - coordinates)
            for i, (multipliers, coordinates) in enumerate(self._tried)
            if i != self._best
        ]
        seen = response(steps, len(base), self.noise, self.lowest)
        optimum = optimal_multipliers(self.span, base, g, seen)
        self.multipliers = base + length * (optimum - base)
        return self.master.moved(-self.multipliers)


def response(
    steps: Sequence[tuple[np.ndarray, np.ndarray]], size: int, noise: float, lowest: float
) -> np.ndarray:
    r"""Return S with g(λ) ≈ g − S(λ − λ_0), symmetric and positive definite.

    .. math:: \min_{S = S^T} \sum_j \|S s_j - d_j\|^2 + \nu^2 \|S - \tau I\|^2

    with τ the common response of all steps. For a linear learner with a symmetric hat matrix
    d_j = S s_j exactly, and k independent steps determine S.

    Parameters
    ----------
    steps : sequence of (s, d), ndarrays of shape (K,)
        Changes of the multipliers, and the decreases of the coordinates.
    size : int
        K.
    noise : float
        ν, the size below which differences are not informative.
    lowest : float
        Smallest response in any direction.

    Returns
    -------
    ndarray of shape (K, K)
    """
    if not steps:
        return np.eye(size)  # a learner that follows its targets
    s, d = (np.column_stack(column) for column in zip(*steps, strict=True))
    common = float(np.clip((s * d).sum() / np.square(s).sum(), lowest, _HIGHEST))
    # The normal equations, S A + A S = M with A = ss' + ν²I, in the eigenvectors of A.
    vectors, found, turned = np.linalg.svd(s)
    m = len(found)
    sizes, seen = np.zeros(size), np.zeros((size, size))
    sizes[:m] = found
    seen[:, :m] = vectors.T @ d @ turned[:m].T * found
    floor = max(noise, np.finfo(float).eps * found[0]) ** 2
    right = seen + seen.T + 2 * floor * common * np.eye(size)
    fitted = vectors @ (right / (np.add.outer(sizes**2, sizes**2) + 2 * floor)) @ vectors.T
    values, vectors = np.linalg.eigh(fitted)
    return (vectors * np.clip(values, lowest, _HIGHEST)) @ vectors.T


def optimal_multipliers(
    span: Span, multipliers: np.ndarray, g: np.ndarray, response: np.ndarray
) -> np.ndarray:
    """Return the λ in the normal cone of the constraint at an allowed g(λ), shape (K,).

    With g(λ) = u − Sλ the allowed point is the one nearest to u in the metric of S⁻¹.
    """
    return -span.joined(span.multipliers(g + response @ multipliers, metric=response).mu)


class ClassSearch:
    """Multipliers for two classes, from the offset between predictions and their targets.

    Parameters
    ----------
    master : Master
        Provides the constraint and computes the labels.
    """

    def __init__(self, master: Master) -> None:
        self.master = master
        self.span = master.span
        # Scores of the first fit, labels of the last, and the offset of its predictions from
        # them: as compensated for so far, and as last observed.
        self._scores: np.ndarray | None = None
        self._labels: np.ndarray = np.empty(0)
        self._offset = self._added = np.zeros(self.span.size)
        self._next: np.ndarray | None = None

    def judge(self, fit: LearnerFit) -> Residual:
        """Return the residual of the predicted labels, and compute the next targets."""
        if self._scores is None:
            if self.master.allows(fit.predictions):
                return Residual(0.0, 0.0)
            self._scores, self._labels = _probabilities(fit), fit.predictions
        g = self.master.coordinates(fit.predictions)
        followed = self.master.coordinates(self._labels)
        self._added = g - followed
        infeasibility = self.master.outcome_violation(fit.predictions)
        self._next = self._labels_for(self._added)
        if self._next is None:
            return Residual(infeasibility, np.inf)  # no labels compensate for the offset
        move = self.master.coordinates(self._next) - followed
        return Residual(infeasibility, float(np.linalg.norm(move)) / self.master.deviation)

    def propose(self, length: float) -> np.ndarray | None:
        """Return the labels at the next multipliers; None if there are none."""
        if length < 1:
            self._added = self._offset + length * (self._added - self._offset)
            self._next = self._labels_for(self._added)
        if self._next is None:
            return None
        self._offset, self._labels = self._added, self._next
        return self._labels

    def _labels_for(self, offset: np.ndarray) -> np.ndarray | None:
        """Return labels whose coordinates are allowed once the offset is added, if any are."""
        assert self._scores is not None  # of the first fit
        return self.master.relaxed_labels(self._scores, offset)


def _probabilities(fit: LearnerFit) -> np.ndarray:
    if fit.scores.dtype.kind != "f":
        raise ValueError(
            "DualTargetsClassifier shifts the threshold on a classifier's probabilities, but "
            f"{type(fit.estimator).__name__} has no predict_proba. Wrap it in "
            "sklearn.calibration.CalibratedClassifierCV, or use MovingTargetsClassifier."
        )
    return fit.scores
