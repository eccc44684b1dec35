r"""The deviations of groups nearest to given ones under a bounded DIDI: soft thresholds.

Only the group means of t move. With n_v the share of group v and d_v the deviation of its mean,

.. math:: \min_d \sum_v n_v (d_v - t_v)^2
   \quad\text{s.t.}\quad \sum_v |d_v| \le q,\; \sum_v n_v d_v = 0

is solved by :math:`d_v = S(t_v + \nu, \tau / n_v)`, S the soft threshold: τ is the multiplier of
the bound, ν that of the tie. Once it is known which d_v are not 0 the two are the solution of two
linear equations.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

# Below it, in units of the largest deviation, the same groups are left and shrink in proportion; no
# root finder tells their multipliers apart.
_SMALLEST_RADIUS = 1e-9


def shrink_deviations(t: np.ndarray, share: np.ndarray, radius: float) -> np.ndarray:
    """Return the deviations nearest to t with Σ|d| ≤ radius and Σ n d = 0.

    Parameters
    ----------
    t : ndarray of shape (g,)
        Deviations of the group means, Σ n t = 0, outside of the bound.
    share : ndarray of shape (g,)
        n, positive, summing to 1.
    radius : float
        The bound.

    Returns
    -------
    ndarray of shape (g,)
    """
    size = float(np.abs(t).max())
    if radius == 0:
        return np.zeros(len(t))
    t, radius = t / size, radius / size
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
