r"""Real targets, squared loss: a problem in as many variables as the constraints have columns.

Minimising ‖z − p‖² + w‖z − y‖² is minimising ‖z − t‖² with t = (p + w y) / (1 + w). Only the part
of z in the span Q of the kernels is constrained, so the nearest z is t + Qx, where x = B'μ leads
from the coordinates of t to the nearest allowed ones (:mod:`gedi_sklearn._geometry._span`).

With bounds on the targets the nearest z is clip(t + QB'μ): counts stay counts and rates stay
rates. μ minimises the convex dual

.. math:: h(\mu) = \varphi(\mu) + \sigma(-\mu), \quad \nabla\varphi(\mu) = B Q^T W z(\mu),

where σ is the support function of the allowed coordinates. φ is quadratic as long as the same
rows are clipped; on each such piece the minimiser of h is a nearest point, in the metric of the
rows that are free to move. Any μ proves −h(μ) as a lower bound on half the weighted mean of
(z − t)², which is the `bound` of the solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._deadline import Deadline
from .._geometry import joint_multipliers
from ..constraints import FittedConstraint
from ..exceptions import SolverError
from ..kernels import row_blocks
from ._linear_model import Solution, SolverSession

_MAX_STEPS = 200
# How near the coordinates of z must come to the allowed point, in deviations of t.
_TOLERANCE = 1e-12
# Rounding of a difference of squares, relative to these.
_ROUNDING = 1e-14


@dataclass(eq=False)
class SquaredLoss:
    """Projection of real targets at squared loss, under any constraints.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraints on the rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    target_bounds : tuple of (float, float) or None
        Lowest and highest target; infinite where there is none.
    session : SolverSession
        Solves the problem without bounds on the targets.
    """

    constraint: FittedConstraint
    y: np.ndarray
    target_bounds: tuple[float, float] | None
    session: SolverSession

    def __post_init__(self) -> None:
        self.span, self.weight = self.constraint.span, self.constraint.weight

    def solve(self, p: np.ndarray | None, target_weight: float, deadline: Deadline) -> Solution:
        """Return the nearest allowed targets to p and y; to y alone where p is None.

        Raises
        ------
        TimeoutError
            If the deadline comes first.
        """
        total = 1.0 if p is None else 1.0 + target_weight
        t = self.y if p is None else (p + target_weight * self.y) / total
        own, z, excess, solver = self._nearest(t, deadline)
        mu = self.constraint.of_all(own)
        scale = 2 * total * float(self.weight.sum())
        objective = self._loss(z, p, target_weight)
        gap = max(scale * excess, 0.0)
        return Solution(
            z=z,
            objective=objective,
            bound=objective - gap,
            gap=gap / objective if objective else 0.0,
            multipliers=scale * mu,
            status="optimal",
            solver=solver,
            n_variables=self.span.size,
            n_groups=len(z),
            correction=mu,
        )

    def _loss(self, z: np.ndarray, p: np.ndarray | None, target_weight: float) -> float:
        """Return Σ ω[(z − p)² + w(z − y)²], or Σ ω(z − y)² without predictions."""
        loss = 0.0
        with np.errstate(over="ignore"):
            for rows in row_blocks(len(z)):
                distance = (z[rows] - self.y[rows]) ** 2
                if p is not None:
                    distance = (z[rows] - p[rows]) ** 2 + target_weight * distance
                loss += float(self.weight[rows] @ distance)
        if not np.isfinite(loss):
            raise ValueError(
                "the objective, a sum of squares of y and y_pred times sample_weight and "
                f"target_weight (of up to {self.weight.max():.3g} and {target_weight:.3g}), is too "
                "large for floats. Use other units, or divide all weights by a number."
            )
        return loss

    def _nearest(
        self, t: np.ndarray, deadline: Deadline
    ) -> tuple[np.ndarray, np.ndarray, float, str]:
        """Return μ, the allowed z nearest to t, ½‖z − t‖² + h(μ), and what found them.

        The third is 0 at the solution; as far as it is more, z is not proven to be the nearest.
        """
        span = self.span
        if self.target_bounds is not None:
            # Around its mean, a target's rounding is that of its deviation.
            mean = float(span.normalized_weight @ t)
            low, high = self.target_bounds
            mu, value = self._minimise_dual(t - mean, low - mean, high - mean, deadline)
            z = np.clip(t + span.q @ (span.stacked.T @ mu), low, high)
            square = 0.5 * float(span.normalized_weight @ (z - t) ** 2)
            excess, size = square + value, float(span.normalized_weight @ (t - mean) ** 2)
            return mu, z, excess if excess > _ROUNDING * size else 0.0, "exact"
        x = self.constraint.coordinates(t)
        found = self.session.solve_distance(span, x, deadline)
        multipliers = span.multipliers(x, deadline=deadline) if found is None else found
        mu, support = span.outward(multipliers)
        move, step = span.joined(multipliers.mu), span.joined(mu)
        excess = float(0.5 * move @ move + x @ step + 0.5 * step @ step) + support
        if excess <= _ROUNDING * float(x @ x):
            excess = 0.0
        solver = "exact" if found is None else self.session.name
        z = span.moved(self.constraint.from_origin(t), multipliers)
        if self.constraint.origin is not None:
            z = z + self.constraint.origin
        return multipliers.mu, z, excess, solver

    def _smooth(self, t: np.ndarray, z: np.ndarray, mu: np.ndarray) -> float:
        """Return φ(μ), for the targets z that belong to μ."""
        move = self.span.q @ (self.span.stacked.T @ mu)
        bounded = self.constraint.from_origin(z)
        return float(self.span.normalized_weight @ (move * bounded - 0.5 * (z - t) ** 2))

    def _minimise_dual(
        self, t: np.ndarray, low: float, high: float, deadline: Deadline
    ) -> tuple[np.ndarray, float]:
        """Return the minimiser μ and h(μ)."""
        span, share = self.span, self.span.normalized_weight
        seen = span.q if len(span.blocks) == 1 else span.q @ span.stacked.T

        def targets(mu: np.ndarray) -> np.ndarray:
            return np.clip(t + seen @ mu, low, high)

        def dual(mu: np.ndarray) -> float:
            return self._smooth(t, targets(mu), mu) + span.support(mu)

        mu = np.zeros(seen.shape[1])
        deviation = float(np.sqrt(share @ t**2))
        tolerance = _TOLERANCE * max(deviation, np.finfo(float).tiny)
        for _ in range(_MAX_STEPS):
            deadline.check()
            z = targets(mu)
            gradient = (share * self.constraint.from_origin(z)) @ seen
            free = (z > low) & (z < high)
            moving = seen[free] * np.sqrt(share[free])[:, None]
            # Where hardly a row is free the quadratic piece is flat; keep the step finite.
            hessian = moving.T @ moving + 1e-12 * np.eye(len(mu))
            found = joint_multipliers(span.blocks, gradient - hessian @ mu, hessian, deadline)
            step = found.mu - mu
            left = float(np.linalg.norm(hessian @ step))
            if left <= tolerance:
                near, support = span.outward(found)
                return found.mu, self._smooth(t, targets(near), near) + support
            after = (share * self.constraint.from_origin(targets(mu + step))) @ seen
            if np.linalg.norm(gradient + hessian @ step - after) <= 0.1 * left:
                mu = mu + step
                continue
            value = dual(mu)
            lengths = 0.5 ** np.arange(40)
            shorter = (mu + length * step for length in lengths)
            mu = next((one for one in shorter if dual(one) <= value + 1e-15 * abs(value)), mu)
        raise SolverError.from_status("exact", f"no convergence in {_MAX_STEPS} Newton steps")
