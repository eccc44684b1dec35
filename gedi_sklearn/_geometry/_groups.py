"""Deviations of groups, by how much their means differ from that of all: their set, their block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ._block import Block
from ._sets import L1Ball

# Weight of an equation among others that are minimised, which it leaves their last digits.
_EQUATION = 1e5
# Excess of a bound, relative to it, that is rounding: no root finder sees it.
_ROUNDING = 1e-12
# Below it, in units of the largest deviation, the same groups are left and shrink in proportion; no
# root finder tells their multipliers apart.
_SMALLEST_RADIUS = 1e-9


@dataclass(frozen=True)
class GroupBall(L1Ball):
    """Σ|d_v| ≤ q for the deviations of groups, which are tied by Σ n_v d_v = 0.

    Attributes
    ----------
    weights : ndarray of shape (g,)
        n, summing to 1; with several columns of targets each has its own g deviations.
    are_means : bool
        Whether the deviations are those of group means: not beside covariates.
    """

    weights: np.ndarray
    are_means: bool

    def support(self, direction: np.ndarray) -> float:
        # Along the weights nothing is allowed, so that what the direction has of them is free.
        columns = direction.reshape(-1, len(self.weights))
        return self.radius * max(tied_size(column, self.weights) for column in columns)

    def nearest(self, matrix: np.ndarray, c: np.ndarray, own: np.ndarray | None) -> np.ndarray:
        if own is not None and self.are_means:
            return shrink_deviations(own, self.weights, self.radius)
        return super().nearest(matrix, c, own)

    def _equations(self) -> np.ndarray:
        tie = np.r_[self.weights, -self.weights]
        return _EQUATION / np.linalg.norm(tie) * tie[None]

    def outward(self, direction: np.ndarray, v: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        return direction  # its entries are known up to a multiple of the weights


def shrink_deviations(t: np.ndarray, share: np.ndarray, radius: float) -> np.ndarray:
    r"""Return the deviations nearest to t with Σ|d| ≤ radius and Σ n d = 0: soft thresholds.

    Only the group means of t move. With n_v the share of group v and d_v the deviation of its mean,

    .. math:: \min_d \sum_v n_v (d_v - t_v)^2
       \quad\text{s.t.}\quad \sum_v |d_v| \le q,\; \sum_v n_v d_v = 0

    is solved by :math:`d_v = S(t_v + \nu, \tau / n_v)`, S the soft threshold: τ is the multiplier
    of the bound, ν that of the tie. Once it is known which d_v are not 0 the two are the solution
    of two linear equations.

    Parameters
    ----------
    t : ndarray of shape (g,)
        Deviations of the group means.
    share : ndarray of shape (g,)
        n, positive, summing to 1.
    radius : float
        The bound.

    Returns
    -------
    ndarray of shape (g,)
    """
    size = float(np.abs(t).max())
    if min(radius, size) == 0:
        return np.zeros(len(t))
    t, radius = t / size, radius / size
    tied = t - share @ t
    excess = float(np.abs(tied).sum()) / radius
    if excess <= 1 + _ROUNDING:
        return size / max(excess, 1.0) * tied
    if radius < _SMALLEST_RADIUS:
        return size * (radius / _SMALLEST_RADIUS) * shrink_deviations(t, share, _SMALLEST_RADIUS)
    highest = 2 * float(share.max())  # at this τ every deviation is 0
    tau = brentq(lambda tau: np.abs(_tied(t, share, tau)).sum() - radius, 0.0, highest, xtol=1e-15)
    return size * _exact(t, share, radius, _tied(t, share, tau))


def _tied(t: np.ndarray, share: np.ndarray, tau: float) -> np.ndarray:
    """Return the soft-thresholded deviations that satisfy the tie, for a multiplier τ."""
    reach = float(np.abs(t).max()) + tau / float(share.min()) + 1.0

    def shrunk(nu: float) -> np.ndarray:
        moved = t + nu
        return np.sign(moved) * np.maximum(np.abs(moved) - tau / share, 0.0)

    return shrunk(brentq(lambda nu: float(share @ shrunk(nu)), -reach, reach, xtol=1e-15))


def _exact(t: np.ndarray, share: np.ndarray, radius: float, near: np.ndarray) -> np.ndarray:
    """Return the solution on the support and signs of one that is known to a root's tolerance."""
    active = np.abs(near) > 1e-12
    sign, n = np.sign(near[active]), share[active]
    # d = t + ν − σ τ/n on the active groups, put into the tie and into Σ σ d = q.
    system = np.array([[n.sum(), -sign.sum()], [sign.sum(), -(1 / n).sum()]])
    nu, tau = np.linalg.solve(system, np.array([-(n @ t[active]), radius - sign @ t[active]]))
    exact = np.zeros(len(t))
    exact[active] = t[active] + nu - sign * tau / n
    return exact if (exact[active] * sign >= 0).all() else near


def tied_size(direction: np.ndarray, share: np.ndarray) -> float:
    """Return min over t of ‖d + t n‖_∞: the support function of Σ|d| ≤ 1 with Σ n d = 0.

    By exchange: at the minimum two entries are the largest, with unlike signs.
    """
    high, low = int(direction.argmax()), int(direction.argmin())
    while True:
        t = -(direction[high] + direction[low]) / (share[high] + share[low])
        moved = direction + t * share
        size = float(np.abs(moved).max(initial=0.0))
        if size <= abs(moved[high]) * (1 + 1e-12):
            return size
        if moved.max() == size:
            high = int(moved.argmax())
        else:
            low = int(moved.argmin())


class GroupBlock(Block):
    """The deviations of groups whose indicators are orthonormal in closed form.

    Products are sums over the groups; the matrices are made for those who ask for them.

    Parameters
    ----------
    design : Design
        The indicators on the rows.
    allowed : GroupBall
        The set of deviations, of all outputs.
    outputs, factor
        As in the base class.
    """

    is_exact = True
    sums_groups = True

    def __init__(
        self, design: Any, allowed: GroupBall, outputs: tuple[int, ...] = (0,), factor: float = 1.0
    ) -> None:
        self.design, self.allowed, self.kernel = design, allowed, design.fitted
        self.outputs, self.factor = outputs, factor

    @cached_property
    def operator(self) -> np.ndarray:
        """A, one row of Q for each group."""
        return self.kernel.orthonormal_columns(np.arange(float(len(self.kernel.weights)))[:, None])

    @property
    def inverse(self) -> np.ndarray:
        """M."""
        return self.kernel.share * (self.operator * self.kernel.weights[:, None]).T

    @cached_property
    def rounding(self) -> float:
        sizes = np.sqrt((1 / self.kernel.weights - 1) / self.kernel.share)
        return float(np.finfo(float).eps * sizes.sum())

    def v(self, point: np.ndarray) -> np.ndarray:
        return self.kernel.of_groups(point)

    def _measure(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = self.kernel.deviations(self.design.weighted(z))
        return v, v[1:] - v[0]

    def _nearest(self, point: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = shrink_deviations(v, self.kernel.weights, self.allowed.limits[0])
        return self.kernel.coordinates(v), v

    def outward(self, multipliers: np.ndarray, v: np.ndarray | None) -> tuple[np.ndarray, float]:
        if v is None:
            return super().outward(multipliers, v)
        move = self.kernel.of_groups(multipliers)
        normal = -self.kernel.share * self.kernel.weights * move
        size = self.kernel.size_of_groups(self.kernel.coordinates(v))
        rounding = 4 * self.size * np.finfo(float).eps * float(np.abs(normal) @ size)
        return self.kernel.coordinates(move), self.allowed.support(normal) + rounding


def group_block(design: Any, outputs: tuple[int, ...] = (0,), factor: float = 1.0) -> Block:
    """Return Σ|d| of all outputs, v = d by how much the groups' means differ from that of all.

    Beside covariates the means are those of the groups' coefficients.

    Parameters
    ----------
    design : Design
        A kernel that tells groups apart, on the rows.
    outputs : tuple of int, default=(0,)
        Which columns of the targets.
    factor : float, default=1.0
        What the sum is multiplied by.
    """
    weights, n_outputs = design.group_weights, len(outputs)
    are_means = design.n_covariates == 0
    allowed = GroupBall(n_outputs * len(weights), 1.0, np.inf, weights, are_means=are_means)
    if design.fitted.has_closed_form:
        return GroupBlock(design, allowed, outputs, factor)
    indicators = design.fitted.basis.evaluate(np.arange(float(len(weights)))[:, None])
    to_v = indicators - weights @ indicators
    # A coefficient is how far a group's mean is from that of the first group.
    per_unit = np.diag(to_v[1:] - to_v[0])[:, None]
    from_v = np.hstack([np.full_like(per_unit, -1.0), np.eye(len(per_unit))]) / per_unit
    return Block(design, allowed, to_v, from_v, outputs, factor)
