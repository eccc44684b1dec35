r"""Predictions with a link, without the attribute: multipliers of what they really do.

The rule is a link of t and of a move Rμ, clip(t + Rμ) or t·exp(ν + Rμ), with R what X says of the
kernel's columns Q, and is to have allowed coordinates u = E[Q z]. With the attribute R is Q, and
the least correction is the μ with

.. math:: u(\mu) = \Pi(u(\mu) - \mu),

Π the nearest allowed point. The same equation is solved here. As R is not Q, u is the gradient of
nothing, so that steps are those of Levenberg and Marquardt. Where they end beside that equation,
any μ of an allowed u will do: u = Π(u), from several starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..constraints import FittedConstraint
from ..projection import Loss

_MAX_STEPS = 100
# Residual that is 0, relative to the coordinates and multipliers.
_TOLERANCE = 1e-14
# The damping of a step: at first, less after one that helped, more after one that did not. There
# are tries enough for steps that are short beside any rounding.
_DAMPING, _LESS, _MORE, _MAX_TRIES = 1e-3, 0.1, 4.0, 30
# How many starts are drawn where steps from all others miss the constraint.
_STARTS = 10


@dataclass
class LinkedRule:
    """Predictions that are the link of t and of a move Rμ, under a constraint on the rows.

    Parameters
    ----------
    constraint : FittedConstraint
        On the rows, with their attribute.
    t : ndarray of shape (n,)
        Predictions before the correction.
    columns : ndarray of shape (n, K)
        R, a column for each of the joint span of all constraints.
    loss : Loss
        That of targets against t, whose link it is.
    """

    constraint: FittedConstraint
    t: np.ndarray
    columns: np.ndarray
    loss: Loss

    def violation(self, mu: np.ndarray) -> float:
        """Return by how much the predictions miss the constraint, 0 within rounding."""
        return self.constraint.judge(self._targets(mu)).violation

    def multipliers(self, start: np.ndarray) -> np.ndarray:
        """Return μ of allowed predictions, or of those that miss the constraint least."""
        best = self._solve(start, 1.0)
        least = self.violation(best)
        drawn = np.random.default_rng(0).normal(size=(_STARTS, len(start)))
        starts = [best, start, np.zeros(len(start)), *np.linalg.norm(start) * drawn]
        while least > 0.0 and starts:
            found = self._solve(starts.pop(0), 0.0)
            missed = self.violation(found)
            if missed < least:
                best, least = found, missed
        return best

    def _targets(self, mu: np.ndarray) -> np.ndarray:
        return self.t + self.loss.changes(self._move(mu))[0]

    def intercept(self, mu: np.ndarray) -> float:
        """Return what is added to every move."""
        return self.loss.changes(self._move(mu))[2]

    def _move(self, mu: np.ndarray) -> np.ndarray:
        return self.columns @ self.constraint.span.joined(mu)

    def _solve(self, mu: np.ndarray, pull: float) -> np.ndarray:
        """Return where steps end that make u − Π(u − pull · μ) smaller."""
        (left, derivative, scale), damping = self._residual(mu, pull), _DAMPING
        for _ in range(_MAX_STEPS):
            size = float(np.linalg.norm(left))
            if size <= _TOLERANCE * scale:
                break
            for _ in range(_MAX_TRIES):
                damped = np.vstack([derivative, np.sqrt(damping) * np.eye(len(mu))])
                step = np.linalg.lstsq(damped, np.r_[-left, np.zeros(len(mu))], rcond=None)[0]
                after = self._residual(mu + step, pull)
                if np.linalg.norm(after[0]) < size:
                    break
                damping *= _MORE
            else:
                break
            mu, damping = mu + step, damping * _LESS
            left, derivative, scale = after
        return mu

    def _residual(self, mu: np.ndarray, pull: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Return u − Π(u − pull · μ), its derivative, and the size of what it is made of."""
        span, changes = self.constraint.span, self.loss.changes(self._move(mu))[0]
        rates = span.normalized_weight * self.loss.rates(changes)
        slope = (span.q * rates[:, None]).T @ self.columns
        if self.loss.keeps_mean:
            slope -= np.outer(rates @ span.q, rates @ self.columns) / rates.sum()
        slope = span.stacked @ slope @ span.stacked.T
        u = span.stacked @ self.constraint.coordinates(self.t + changes)
        left, inward = np.empty(len(u)), np.zeros_like(slope)
        end = 0
        for own in span.blocks:
            rows = slice(end, end := end + own.size)
            wanted = u[rows] - pull * mu[rows]
            nearest, v = own.nearest(wanted)
            left[rows] = u[rows] - nearest
            inward[rows, rows] = own.derivative(wanted, v)
        derivative = slope - inward @ slope + pull * inward
        return left, derivative, float(np.linalg.norm(u) + np.linalg.norm(mu))
