r"""Real targets under a loss with a link: a closed form, or a dual in as many numbers as columns.

Minimising the loss of z against predictions and y is minimising that against one t
(:mod:`._losses`), and only the part of z in the span Q of the kernels is constrained.

**Squared error** without bounds on the targets has a closed form: the nearest z is t + Qx, where
x = B'μ leads from the coordinates of t to the nearest allowed ones
(:mod:`gedi_sklearn._geometry._span`).

**Otherwise** z is the link of t and of the move QB'μ: cut at the bounds, so that counts stay counts
and rates stay rates, or t·exp(ν + QB'μ), which is positive where t is. μ minimises the convex dual

.. math:: h(\mu) = \varphi(\mu) + \sigma(-\mu), \quad \nabla\varphi(\mu) = B Q^T W z(\mu),

where σ is the support function of the allowed coordinates. A Newton step replaces φ by a quadratic
function; the minimiser of what results is a nearest point, in the metric of the derivative of z.
At any μ the distance of z(μ) from optimal is at most μ'BQ'Wz(μ) + σ(−μ), which gives the `bound` of
the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._deadline import Deadline
from .._geometry import Multipliers
from ..constraints import FittedConstraint
from ..kernels import row_blocks
from ._highs import SolverSession
from ._losses import KullbackLeibler, Loss, SquaredError, joint_targets
from ._newton import Dual
from ._result import Solution

# How near the coordinates of z must come to the allowed point, in deviations of t, and in its size.
_TOLERANCE, _LEAST_TOLERANCE = 1e-12, 1e-15
# Rounding of a difference of squares, relative to these.
_ROUNDING = 1e-14


class _Nearest(NamedTuple):
    """The nearest allowed targets z, and what proves it.

    Attributes
    ----------
    mu : ndarray of shape (Σk,)
        Multipliers of all sets.
    excess : float
        How much more than the least the loss of z is, at most; 0 at the solution.
    solver : str
        What found them.
    intercept : float
        What is added to every move.
    """

    z: np.ndarray
    mu: np.ndarray
    excess: float
    solver: str
    intercept: float = 0.0


@dataclass(eq=False)
class RealTargets:
    """Projection of real targets at a loss with a link, under any constraints.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraints on the rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    loss : type of Loss
        The loss.
    options : dict
        Further parameters of the loss.
    session : SolverSession
        Solves the problem of the squared error without bounds on the targets.
    """

    constraint: FittedConstraint
    y: np.ndarray
    loss: type[SquaredError] | type[KullbackLeibler]
    options: dict[str, Any]
    session: SolverSession

    def __post_init__(self) -> None:
        self.span, self.weight = self.constraint.span, self.constraint.weight

    def solve(self, p: np.ndarray | None, target_weight: float, deadline: Deadline) -> Solution:
        """Return the nearest allowed targets to p and y; to y alone where p is None.

        Raises
        ------
        InfeasibleProjectionError
            If no targets satisfy the constraint.
        TimeoutError
            If the deadline comes first.
        """
        t, total = joint_targets(p, self.y, target_weight)
        near = self._nearest(t, deadline)
        mu = self.constraint.of_all(near.mu)
        scale = self.loss.factor * total * float(self.weight.sum())
        objective = self._loss(near.z, p, target_weight)
        gap = max(scale * near.excess, 0.0)
        if p is None and gap and self._is_as_before(near.z):
            gap = 0.0
        return Solution(
            z=near.z,
            objective=objective,
            bound=objective - gap,
            gap=gap / objective if objective else 0.0,
            multipliers=scale * mu,
            status="optimal",
            solver=near.solver,
            n_variables=self.span.size,
            n_groups=len(near.z),
            correction=mu,
            intercept=near.intercept,
        )

    def _is_as_before(self, z: np.ndarray) -> bool:
        """Tell whether nothing was moved, but for rounding."""
        return bool(self.weight @ (z - self.y) ** 2 <= _ROUNDING**2 * (self.weight @ self.y**2))

    def _loss(self, z: np.ndarray, p: np.ndarray | None, target_weight: float) -> float:
        """Return the weighted sum of the losses of all rows."""
        loss = 0.0
        with np.errstate(over="ignore"):
            for rows in row_blocks(len(z)):
                own = None if p is None else p[rows]
                losses = self.loss.of_rows(z[rows], own, self.y[rows], target_weight)
                loss += float(self.weight[rows] @ losses)
        if not np.isfinite(loss):
            raise ValueError(
                "the objective, a sum of squares of y and y_pred times sample_weight and "
                f"target_weight (of up to {self.weight.max():.3g} and {target_weight:.3g}), is too "
                "large for floats. Use other units, or divide all weights by a number."
            )
        return loss

    def _nearest(self, t: np.ndarray, deadline: Deadline) -> _Nearest:
        """Return the allowed z nearest to t."""
        loss = self.loss_against(t)
        if loss.is_linear:
            return self._closed_form(t, deadline)
        return self._by_dual(t, loss, deadline)

    def loss_against(self, t: np.ndarray) -> Loss:
        """Return the loss of targets against those of least loss."""
        return self.loss(t, self.span.normalized_weight, **self.options)

    def _closed_form(self, t: np.ndarray, deadline: Deadline) -> _Nearest:
        """Return the same at squared error, without bounds."""
        span = self.span
        x = self.constraint.coordinates(t)
        multipliers, solver = self._multipliers(x, deadline)
        mu, support = span.outward(multipliers)
        move, step = span.joined(multipliers.mu), span.joined(mu)
        excess = float(0.5 * move @ move + x @ step + 0.5 * step @ step) + support
        if excess <= _ROUNDING * float(x @ x):
            excess = 0.0
        z = span.moved(self.constraint.from_origin(t), multipliers)
        if self.constraint.origin is not None:
            z = z + self.constraint.origin
        return _Nearest(z, multipliers.mu, excess, solver)

    def _multipliers(self, x: np.ndarray, deadline: Deadline) -> tuple[Multipliers, str]:
        """Return those of the allowed coordinates nearest to x, and what found them."""
        found = self.session.solve_distance(self.span, x, deadline)
        if found is None:
            return self.span.multipliers(x, deadline=deadline), "exact"
        return found, self.session.name

    def correction(self, t: np.ndarray, deadline: Deadline) -> tuple[np.ndarray, float]:
        """Return the correction that leads from t to the nearest allowed targets, and no more."""
        loss = self.loss_against(t)
        if loss.is_linear:
            found = self._multipliers(self.constraint.coordinates(t), deadline)[0]
            return self.constraint.of_all(found.mu), 0.0
        near = self._by_dual(t, loss, deadline)
        return self.constraint.of_all(near.mu), near.intercept

    def _by_dual(self, t: np.ndarray, loss: Loss, deadline: Deadline) -> _Nearest:
        """Return the same by Newton steps on the dual."""
        share = self.span.normalized_weight
        deviation = float(np.sqrt(share @ (t - share @ t) ** 2))
        enough = max(_TOLERANCE * deviation, _LEAST_TOLERANCE * float(share @ np.abs(t)))
        found = Dual(self.constraint, t, loss).minimise(max(enough, np.finfo(float).tiny), deadline)
        z = t.copy()
        z[loss.rows] += found.changes
        is_excess = found.excess > _ROUNDING * deviation**2 / loss.unit
        return _Nearest(z, found.mu, found.excess if is_excess else 0.0, "exact", found.intercept)
