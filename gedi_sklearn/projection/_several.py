r"""Real targets, squared loss, several constraints at once: a least-distance problem.

All that the constraints see of z are its coordinates c in the joint span of their kernels, which
may overlap. The nearest targets are z = t + Q(c − c_t), with c the solution of

.. math:: \min_c \|c - c_t\|^2 \quad\text{s.t.}\quad V_b c \in C_b \text{ for every constraint } b.

A box is two half-spaces a row. A ball is one for every pattern of signs, of which few matter:
they are added when the solution breaks them. Each program is least distance under linear
inequalities, solved by non-negative least squares (Lawson and Hanson, 1974, chapter 23).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr
from scipy.optimize import nnls

from ..exceptions import SolverError
from ._bound import AllowedProduct, Bound, raw_multipliers
from ._model import Solution
from ._real import squared_loss, weighted_mean

__all__ = ["JointSpan", "SeveralSquaredLoss", "nearest_in_product"]

# Dependent columns of the joint span, relative to the largest.
_RANK_TOLERANCE = 1e-10
# Share of a set's unit within which a point counts as inside.
_INSIDE = 1e-12
_MAX_FACETS = 2000


class JointSpan:
    """The joint span of the kernels of some constraints: all that they see of targets.

    Parameters
    ----------
    bounds : sequence of Bound
        The constraints, on the same rows of positive weight.
    weight : ndarray of shape (n,)
        Sample weights, all positive.

    Attributes
    ----------
    q : ndarray of shape (n, K)
        A basis of the span, orthonormal under the weights.
    rows : ndarray of shape (r, K)
        V: a target with coordinates c has v = V c in the sets.
    allowed : AllowedProduct
        The sets.
    """

    def __init__(self, bounds: Sequence[Bound], weight: np.ndarray) -> None:
        self.share = weight / weight.sum()
        self.allowed = AllowedProduct(tuple(bound.allowed for bound in bounds))
        self.q = self._joint_basis(bounds)
        # v of every constraint as a function of c: V R⁻¹(Q_b'WQ).
        weighted = self.q * self.share[:, None]
        self.rows = np.vstack(
            [
                bound.allowed.rows
                @ (bound.kernel.R_inverse @ (bound.design.orthonormal.T @ weighted))
                for bound in bounds
            ]
        )

    def _joint_basis(self, bounds: Sequence[Bound]) -> np.ndarray:
        """Return Q for all kernels together, orthonormal under the weights, shape (n, K)."""
        root = np.sqrt(self.share)[:, None]
        columns = np.hstack([bound.design.orthonormal for bound in bounds])
        basis, triangle = qr(columns * root, mode="economic", pivoting=True)[:2]
        size = np.abs(np.diag(triangle))
        return np.asarray(basis)[:, size > _RANK_TOLERANCE * size[0]] / root

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        """Return c = Q'Wz of targets, shape (K,)."""
        return self.q.T @ (self.share * z)


class SeveralSquaredLoss:
    """Projection of real targets at squared loss under several constraints.

    Parameters
    ----------
    bounds : sequence of Bound
        The constraints, on the same rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    weight : ndarray of shape (n,)
        Sample weights, all positive.
    """

    def __init__(self, bounds: Sequence[Bound], *, y: np.ndarray, weight: np.ndarray) -> None:
        self.bounds = bounds
        self.y = y
        self.weight = weight
        self.span = JointSpan(bounds, weight)

    def solve(self, p: np.ndarray | None, target_weight: float) -> Solution:
        """Return the nearest allowed targets to p and y; to y alone where p is None."""
        t, total = weighted_mean(self.y, p, target_weight)
        span = self.span
        v = span.rows @ span.coordinates(t)
        move, multipliers = nearest_in_product(span.rows, span.allowed, v)
        z = t + span.q @ move
        objective = squared_loss(z, self.y, p, target_weight, self.weight)
        by_constraint = [part for _, part in span.allowed.split(multipliers)]
        scale = 2 * total * self.weight.sum()
        return Solution(
            z=z,
            objective=objective,
            bound=objective,
            gap=0.0,
            multipliers=scale * raw_multipliers(self.bounds, multipliers),
            correction=np.concatenate(list(map(_correction, self.bounds, by_constraint))),
            status="optimal",
            solver="exact",
            n_variables=span.q.shape[1],
            n_groups=len(self.y),
        )


def _correction(bound: Bound, multipliers: np.ndarray) -> np.ndarray:
    """Return β with F̃β the part of the move along one kernel: Q R⁻ᵀV'λ."""
    inverse = bound.kernel.R_inverse
    return bound.kernel.to_raw(inverse @ (inverse.T @ (bound.allowed.rows.T @ multipliers)))


def nearest_in_product(
    rows: np.ndarray, allowed: AllowedProduct, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shortest move x with v + V x in all sets, and λ with x = V'λ.

    Parameters
    ----------
    rows : ndarray of shape (r, K)
        V.
    allowed : AllowedProduct
        The sets.
    v : ndarray of shape (r,)
        Where the move starts.

    Returns
    -------
    move : ndarray of shape (K,)
    multipliers : ndarray of shape (r,)

    Raises
    ------
    SolverError
        If the balls need more half-spaces than any real problem.
    """
    move, multipliers = np.zeros(rows.shape[1]), np.zeros(len(rows))
    facets, limits = np.empty((0, len(rows))), np.empty(0)
    while True:
        broken, reach = _broken_facets(allowed, v + rows @ move)
        if all((facets == normal).all(axis=1).any() for normal in broken):
            return move, multipliers  # nothing is broken, or by rounding only
        facets, limits = np.vstack([facets, broken]), np.r_[limits, reach]
        if len(facets) > _MAX_FACETS:
            raise SolverError.from_status("exact", f"more than {_MAX_FACETS} half-spaces")
        multipliers = facets.T @ _least_distance(facets @ rows, limits - facets @ v)
        move = rows.T @ multipliers


def _broken_facets(allowed: AllowedProduct, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return half-spaces g'v ≤ h of the sets that v breaks, one a ball, and one a row of a box."""
    normals, limits = [], []
    for part, own in allowed.split(np.arange(len(v))):
        if part.violation(v[own]) <= _INSIDE * part.unit:
            continue
        if part.radius is not None:
            normal = np.zeros(len(v))
            normal[own] = np.sign(v[own])
            normals.append(normal)
            limits.append(part.radius)
            continue
        assert part.bounds is not None  # it has one of the two
        for row, bound in zip(own, part.bounds, strict=True):
            if abs(v[row]) > bound + _INSIDE * part.unit:
                normal = np.zeros(len(v))
                normal[row] = np.sign(v[row])
                normals.append(normal)
                limits.append(bound)
    return np.reshape(normals, (len(normals), len(v))), np.asarray(limits)


def _least_distance(normals: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Return w ≤ 0 such that x = G'w is the shortest x with G x ≤ h.

    With A = −G, b = −h in units of norm 1 and u ≥ 0 the non-negative solution of
    [A'; b'] u ≈ (0, …, 0, 1) it is x = A'u / (1 − b'u).
    """
    size = np.linalg.norm(normals, axis=1)
    unit = float(np.abs(limits / size).max())
    system = -np.vstack([(normals / size[:, None]).T, limits / size / unit])
    u, _ = nnls(system, np.r_[np.zeros(normals.shape[1]), 1.0])
    return -unit * u / size / (1.0 - system[-1] @ u)
