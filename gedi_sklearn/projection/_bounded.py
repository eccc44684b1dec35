r"""Real targets between bounds, squared loss: a Newton method in k multipliers.

With bounds on the targets the nearest z is clip(t + Qμ) for some μ ∈ R^k: counts stay counts and
rates stay rates. μ minimises the convex dual

.. math:: h(\mu) = \varphi(\mu) + \sigma(\mu), \quad \nabla\varphi(\mu) = Q^T W z(\mu),

where σ is the support function of the allowed coordinates. φ is quadratic as long as the same
rows are clipped; on each such piece the minimiser of h is a least-distance problem, the one that
projects without bounds, in the metric of the rows that are free to move.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import SolverError
from ._model import LeastDistance, Solution
from ._real import SquaredLoss, nearest_coefficients, squared_loss, weighted_mean

__all__ = ["BoundedSquaredLoss"]

_MAX_STEPS = 200
# How near the coordinates of z must come to the allowed point, in deviations of t.
_TOLERANCE = 1e-12


class BoundedSquaredLoss(SquaredLoss):
    """Projection of real targets at squared loss, between bounds.

    Parameters
    ----------
    target_bounds : tuple of (float, float)
        Lowest and highest target; infinite where there is none.
    **problem
        See :class:`SquaredLoss`.
    """

    def __init__(self, *args: Any, target_bounds: tuple[float, float], **problem: Any) -> None:
        super().__init__(*args, **problem)
        self.low, self.high = target_bounds
        self.share = self.weight / self.weight.sum()

    def solve(self, p: np.ndarray | None, target_weight: float) -> Solution:
        """Return the nearest allowed targets to p and y; to y alone where p is None."""
        t, total = weighted_mean(self.y, p, target_weight)
        # Around its mean, a target's rounding is that of its deviation.
        mean = self.design.mean(t)
        mu, value = self._minimise_dual(t - mean, self.low - mean, self.high - mean)
        z = np.clip(t + self.q @ mu, self.low, self.high)
        kernel = self.design.fitted
        scale = 2 * total * self.weight.sum()
        objective = squared_loss(z, self.y, p, target_weight, self.weight)
        unconstrained = squared_loss(t, self.y, p, target_weight, self.weight)
        bound = min(objective, unconstrained - scale * value)
        return Solution(
            z=z,
            objective=objective,
            bound=bound,
            gap=(objective - bound) / objective if objective else 0.0,
            multipliers=scale * (self.matrix.T @ mu),
            correction=kernel.to_raw(kernel.R_inverse @ mu),
            status="optimal",
            solver="exact",
            n_variables=kernel.n_columns,
            n_groups=self.design.n_rows,
        )

    def _smooth(self, t: np.ndarray, z: np.ndarray, mu: np.ndarray) -> float:
        """Return φ(μ), for the targets z that belong to μ."""
        return float(self.share @ ((self.q @ mu) * z - 0.5 * (z - t) ** 2))

    def _dual(self, t: np.ndarray, z: np.ndarray, mu: np.ndarray) -> float:
        """Return h(μ); −h is a lower bound on half the weighted mean square of z − t."""
        problem = LeastDistance(self.matrix, mu, self.radius, self.bounds)
        return self._smooth(t, z, mu) + problem.support(self.matrix.T @ mu)

    def _minimise_dual(self, t: np.ndarray, low: float, high: float) -> tuple[np.ndarray, float]:
        """Return the minimiser μ and h(μ)."""
        mu = np.zeros(self.q.shape[1])
        tolerance = _TOLERANCE * max(self.design.deviation(t), np.finfo(float).tiny)
        for _ in range(_MAX_STEPS):
            z = np.clip(t + self.q @ mu, low, high)
            gradient = (self.share * z) @ self.q
            free = (z > low) & (z < high)
            moving = self.q[free] * np.sqrt(self.share[free])[:, None]
            hessian = moving.T @ moving
            # Where hardly a row is free the quadratic piece is flat; keep the step finite.
            hessian += 1e-12 * np.eye(len(mu))
            allowed, rounding = self._allowed_point(gradient - hessian @ mu, hessian)
            if np.linalg.norm(allowed - gradient) <= tolerance + rounding:
                # At the minimiser σ(μ) = −μ'v for the allowed v: exact where σ itself would not
                # be, since the raw coefficients of an attribute far from 0 cancel.
                value = self._smooth(t, z, mu) - float(mu @ allowed)
                # A last step to the last digit: the raw coefficients multiply what is left.
                return mu + np.linalg.solve(hessian, allowed - gradient), value
            mu = self._step(t, low, high, mu, allowed, gradient, hessian)
        raise SolverError.from_status("exact", f"no convergence in {_MAX_STEPS} Newton steps")

    def _step(
        self,
        t: np.ndarray,
        low: float,
        high: float,
        mu: np.ndarray,
        allowed: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
    ) -> np.ndarray:
        """Return μ after a Newton step, shortened until it comes nearer or decreases h."""
        step = np.linalg.solve(hessian, allowed - gradient)
        z = np.clip(t + self.q @ (mu + step), low, high)
        left = np.linalg.norm(allowed - (self.share * z) @ self.q)
        if left <= 0.1 * np.linalg.norm(allowed - gradient):
            return mu + step
        value = self._dual(t, np.clip(t + self.q @ mu, low, high), mu)
        for length in 0.5 ** np.arange(40):
            trial = mu + length * step
            trial_value = self._dual(t, np.clip(t + self.q @ trial, low, high), trial)
            if trial_value <= value + 1e-15 * abs(value):
                break
        return trial

    def _allowed_point(self, wanted: np.ndarray, hessian: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the allowed coordinates nearest to the wanted ones, in the metric of H⁻¹.

        And what rounding leaves in them: raw coefficients of an attribute far from 0 cancel.
        """
        kernel = self.design.fitted
        if self.allowed.violation(self.allowed.rows @ (kernel.R_inverse @ wanted)) == 0.0:
            return wanted, 0.0
        root = np.linalg.cholesky(hessian)
        problem = LeastDistance(
            np.linalg.solve(root, self.matrix),
            np.linalg.solve(root, wanted),
            self.radius,
            self.bounds,
        )
        a = nearest_coefficients(problem)
        size = float(np.linalg.norm(np.abs(self.matrix) @ np.abs(a)))
        return self.matrix @ a, 10 * float(np.finfo(float).eps) * size
