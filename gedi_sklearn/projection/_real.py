r"""Real targets, squared loss: a problem in k variables, solved exactly.

Minimising ‖z − p‖² + w‖z − y‖² is minimising ‖z − t‖² with t = (p + w y) / (1 + w). Only the part
of z in the kernel's span is constrained, so the nearest z is t + F̃(a − a_t), where a solves

.. math:: \min_a \| M a - c \|^2 \quad\text{over the allowed coefficients}

with c the orthonormal coordinates of t and M = R T⁻¹. The correction is evaluated as
Q(M a − c), in the orthonormal basis, so that no digit is lost to the unit of the attribute.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear, nnls

from ..constraints import FineConstraint
from ._bound import Bound
from ._model import LeastDistance, Solution, SolverSession

__all__ = ["SquaredLoss", "nearest_coefficients", "squared_loss", "weighted_mean"]


def nearest_coefficients(problem: LeastDistance) -> np.ndarray:
    """Return the exact solution a of a least-distance problem, shape (k,)."""
    if problem.radius is not None:
        return _nearest_in_ball(problem.matrix, problem.point, problem.radius)
    assert problem.bounds is not None  # a LeastDistance has one of the two
    return _nearest_in_box(problem.matrix, problem.point, problem.bounds)


def _nearest_in_ball(matrix: np.ndarray, point: np.ndarray, radius: float) -> np.ndarray:
    """Return argmin ‖M a − c‖ over ‖a‖₁ ≤ q for a point outside the ball.

    With u = (a⁺, a⁻) / q on the unit simplex the residual is linear, (q[M, −M] − c1ᵀ)u, and the
    point of least norm in a simplex's image is the scaled solution of one non-negative
    least-squares problem with the right-hand side (0, …, 0, 1).
    """
    k = len(point)
    size = float(np.linalg.norm(point))
    if radius == 0 or size == 0:
        return np.zeros(k)
    spread = radius / size * np.hstack([matrix, -matrix]) - (point / size)[:, None]
    stacked = np.vstack([spread, np.ones(2 * k)])
    norms = np.linalg.norm(stacked, axis=0)
    weights = nnls(stacked / norms, np.r_[np.zeros(k), 1.0])[0] / norms
    weights /= weights.sum()
    return radius * (weights[:k] - weights[k:])


def _nearest_in_box(matrix: np.ndarray, point: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return argmin ‖M a − c‖ over |a| ≤ bounds; forbidden columns leave the problem."""
    solution = np.zeros(len(point))
    size = float(np.linalg.norm(point))
    allowed = np.flatnonzero(bounds > 0)
    if allowed.size == 0 or size == 0:
        return solution
    norms = np.linalg.norm(matrix[:, allowed], axis=0)
    columns, target = matrix[:, allowed] / norms, point / size
    # The unknown of a column of norm 1: a · norm / size, of the order of 1 in any unit.
    limits = bounds[allowed] * norms / size
    if allowed.size == 1:
        scaled = np.clip(columns.T @ target, -limits, limits)
    else:
        scaled = lsq_linear(columns, target, (-limits, limits), method="bvls", tol=1e-14).x
    solution[allowed] = np.clip(scaled * (size / norms), -bounds[allowed], bounds[allowed])
    return solution


class SquaredLoss:
    """Projection of real targets at squared loss.

    Parameters
    ----------
    bound : Bound
        A coarse or fine constraint on the rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    weight : ndarray of shape (n,)
        Sample weights, all positive.
    session : SolverSession
        Solves the problem in k variables.
    """

    def __init__(
        self,
        bound: Bound,
        *,
        y: np.ndarray,
        weight: np.ndarray,
        session: SolverSession,
    ) -> None:
        self.design = bound.design
        self.allowed = bound.allowed
        is_box = isinstance(bound.constraint, FineConstraint)
        self.radius = None if is_box else bound.threshold
        self.bounds = bound.constraint.bounds(bound.kernel) if is_box else None
        self.y = y
        self.weight = weight
        self.session = session
        self.matrix = bound.kernel.R_ @ bound.kernel.basis.from_raw
        # Made now, so that the first solve computes by the same products as every later one.
        self.q = bound.design.orthonormal

    def solve(self, p: np.ndarray | None, target_weight: float) -> Solution:
        """Return the nearest allowed targets to p and y; to y alone where p is None."""
        t, total = weighted_mean(self.y, p, target_weight)
        z, move, solver = self.project(t)
        kernel = self.design.fitted
        objective = squared_loss(z, self.y, p, target_weight, self.weight)
        return Solution(
            z=z,
            objective=objective,
            bound=objective,
            gap=0.0,
            multipliers=2 * total * self.weight.sum() * (self.matrix.T @ move),
            correction=kernel.to_raw(kernel.R_inverse @ move),
            status="optimal",
            solver=solver,
            n_variables=kernel.n_columns,
            n_groups=self.design.n_rows,
        )

    def project(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
        """Return the allowed z nearest to t, the move M a − c that leads there, and the solver."""
        point, standardized = self.design.solve(t)
        if self.allowed.violation(self.allowed.rows @ standardized) == 0.0:
            return t.copy(), np.zeros(len(point)), "exact"
        nearest, solver = self.nearest(point)
        move = nearest - point
        return t + self.q @ move, move, solver

    def nearest(self, point: np.ndarray) -> tuple[np.ndarray, str]:
        """Return the allowed orthonormal coordinates nearest to given ones, and the solver."""
        problem = LeastDistance(self.matrix, point, self.radius, self.bounds)
        a, solver = self.session.solve_distance(problem)
        return self.matrix @ a, solver


def squared_loss(
    z: np.ndarray,
    y: np.ndarray,
    p: np.ndarray | None,
    target_weight: float,
    weight: np.ndarray,
) -> float:
    """Return Σ ω[(z − p)² + w(z − y)²], or Σ ω(z − y)² without predictions."""
    if p is None:
        return float(weight @ (z - y) ** 2)
    return float(weight @ ((z - p) ** 2 + target_weight * (z - y) ** 2))


def weighted_mean(
    y: np.ndarray, p: np.ndarray | None, target_weight: float
) -> tuple[np.ndarray, float]:
    """Return t = (p + w y) / (1 + w) and 1 + w; y and 1 without predictions."""
    if p is None:
        return y, 1.0
    total = 1.0 + target_weight
    return (p + target_weight * y) / total, total
