r"""Losses of real targets whose nearest allowed ones are a function of t and of one number a row.

At multipliers μ of the constraint every row has a *move* m = Q(x)B'μ, and the targets that minimise
loss(z, t) − Σ ω z m depend on m alone: t + m for the squared error, cut at the bounds where there
are any, and t·exp(ν + m) for the Kullback-Leibler divergence, with ν such that the mean is kept. A
loss is this link, its derivative, and the value of its conjugate; :mod:`._real_targets` has the
dual, once for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ..kernels import BLOCK, row_blocks


class Loss(ABC):
    """A loss of targets z against t, those of least loss, on rows of some weights.

    Attributes
    ----------
    rows : slice or ndarray of bool
        Which rows can move.
    unit : float
        What counts as 1 among :meth:`rates`.
    """

    # The loss over that of the dual, for weights of sum 1.
    factor: ClassVar[float]
    # Whether the mean of the targets is that of t.
    keeps_mean: ClassVar[bool]
    # Whether z = t + m, without bounds.
    is_linear: bool = False

    rows: slice | np.ndarray = slice(None)
    unit: float = 1.0

    @staticmethod
    @abstractmethod
    def of_rows(z: Any, p: Any, y: Any, target_weight: float) -> Any:
        """Return the loss of every row against predictions and y, or y alone where p is None."""

    @abstractmethod
    def changes(self, move: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return u = z − t at a move, Σ ω (u m − loss), and what is added to every move."""

    @abstractmethod
    def sums(self, q: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return Σ ω u q at the moves q μ, its derivative by μ, and Σ ω (u m − loss).

        In one pass over the rows, block by block: what is in the cache is used for all three.
        """

    @abstractmethod
    def rates(self, changes: np.ndarray) -> np.ndarray:
        """Return the derivative of every target by its move, for a mean that is free."""

    def most(self, move: np.ndarray) -> float:
        """Return the largest Σ ω u m of any targets."""
        return np.inf


def joint_targets(p: Any, y: Any, target_weight: float) -> tuple[Any, float]:
    """Return t, the mean of predictions and y by their weights, and the sum of these."""
    if p is None:
        return y, 1.0
    total = 1.0 + target_weight
    return (p + target_weight * y) / total, total


class SquaredError(Loss):
    """(z − t)², between bounds: z = t + m, cut there.

    Parameters
    ----------
    t : ndarray of shape (n,)
        The targets of least loss.
    share : ndarray of shape (n,)
        Weights, of sum 1.
    bounds : tuple of (float, float), default=(-inf, inf)
        Lowest and highest target.
    """

    factor, keeps_mean = 2.0, False

    def __init__(
        self,
        t: np.ndarray,
        share: np.ndarray,
        bounds: tuple[float, float] = (-np.inf, np.inf),
    ) -> None:
        self._share, self.is_linear = share, bool(np.isinf(bounds).all())
        self._low, self._high = (end - t if np.isfinite(end) else end for end in bounds)

    @staticmethod
    def of_rows(z: Any, p: Any, y: Any, target_weight: float) -> Any:
        if p is None:
            return (z - y) ** 2
        return (z - p) ** 2 + target_weight * (z - y) ** 2

    def changes(self, move: np.ndarray) -> tuple[np.ndarray, float, float]:
        u = np.clip(move, self._low, self._high)
        return u, float(self._share @ (move * u - 0.5 * u**2)), 0.0

    def sums(self, q: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        smooth, sums, derivative = 0.0, np.zeros(len(mu)), np.zeros((len(mu), len(mu)))
        low, high = (np.broadcast_to(end, len(q)) for end in (self._low, self._high))
        for rows in row_blocks(len(q)):
            own, share = q[rows], self._share[rows]
            move = own @ mu
            u = np.clip(move, low[rows], high[rows])
            sums += (share * u) @ own
            derivative += (own * (share * (u == move))[:, None]).T @ own
            smooth += float(share @ (move * u - 0.5 * u**2))
        return sums, derivative, smooth

    def rates(self, changes: np.ndarray) -> np.ndarray:
        return np.asarray((changes > self._low) & (changes < self._high), dtype=float)


class KullbackLeibler(Loss):
    """z log(z/t) − z + t: z = t·exp(ν + m), of the mean of t. A target of 0 stays 0.

    Against predictions and y it is that against their mean, not the sum of both, whose t would be 0
    wherever y is.

    Parameters
    ----------
    t : ndarray of shape (n,)
        The targets of least loss, at least 0 and not all of them 0.
    share : ndarray of shape (n,)
        Weights, of sum 1.
    """

    factor, keeps_mean = 1.0, True

    def __init__(self, t: np.ndarray, share: np.ndarray) -> None:
        is_positive = t > 0
        if not is_positive.all():
            self.rows = is_positive
        self._t = t[self.rows]
        self._mass = share[self.rows] * self._t
        self.unit = float(self._mass.sum())

    @staticmethod
    def of_rows(z: Any, p: Any, y: Any, target_weight: float) -> Any:
        t, total = joint_targets(p, y, target_weight)
        # Faster than scipy's kl_div; a target of 0 has stayed 0.
        ratio = np.divide(z, t, out=np.ones_like(z), where=t > 0)
        losses = t * (ratio * np.log(np.maximum(ratio, np.finfo(float).tiny)) - ratio + 1)
        return total * np.maximum(losses, 0.0)

    def changes(self, move: np.ndarray) -> tuple[np.ndarray, float, float]:
        top = float(move.max())
        changes = np.exp(move - top)
        factor = self.unit / float(self._mass @ changes)
        nu = float(np.log(factor)) - top
        changes *= factor * self._t
        changes -= self._t
        return changes, -nu * self.unit - float(self._mass @ move), nu

    def sums(self, q: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        size, top = 1 + len(mu), -np.inf
        products, before, block = np.zeros((size, size)), np.zeros(size), np.ones((size, BLOCK))
        for rows in row_blocks(len(q)):
            mass = self._mass[rows]
            own = block[:, : len(mass)]
            own[1:] = q[rows].T
            move = mu @ own[1:]
            below, top = top, max(top, float(move.max()))
            products *= np.exp(below - top)
            products += own * (mass * np.exp(move - top)) @ own.T
            before += own @ mass
        mean = products[0, 1:] / products[0, 0]
        derivative = products[1:, 1:] / products[0, 0] - np.outer(mean, mean)
        nu = float(np.log(self.unit / products[0, 0])) - top
        smooth = -nu * self.unit - float(before[1:] @ mu)
        return self.unit * mean - before[1:], self.unit * derivative, smooth

    def rates(self, changes: np.ndarray) -> np.ndarray:
        return self._t + changes

    def most(self, move: np.ndarray) -> float:
        return float(self._mass @ (move.max() - move))
