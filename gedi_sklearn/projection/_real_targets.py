r"""Real targets: squared error with its closed form or its dual, and absolute error as a program.

**Squared error** is a problem in as many variables as the constraints have columns. Minimising
‖z − p‖² + w‖z − y‖² is minimising ‖z − t‖² with t = (p + w y) / (1 + w). Only the part of z in the
span Q of the kernels is constrained, so the nearest z is t + Qx, where x = B'μ leads from the
coordinates of t to the nearest allowed ones (:mod:`gedi_sklearn._geometry._span`).

With bounds on the targets the nearest z is clip(t + QB'μ): counts stay counts and rates stay
rates. μ minimises the convex dual

.. math:: h(\mu) = \varphi(\mu) + \sigma(-\mu), \quad \nabla\varphi(\mu) = B Q^T W z(\mu),

where σ is the support function of the allowed coordinates. φ is quadratic as long as the same
rows are clipped; on each such piece the minimiser of h is a nearest point, in the metric of the
rows that are free to move. Any μ proves −h(μ) as a lower bound on half the weighted mean of
(z − t)², which is the `bound` of the solution.

**Absolute error** is a linear program with few rows and many columns. A row's loss
|z − p| + w|z − y| is piecewise linear with kinks at p and y, so z leaves its cheapest value t in at
most two segments on either side, each at its own price per unit. The constraint has one row for
each bounded coefficient, whatever the number of rows of data, and the program is solved by the
sifting of :mod:`._relaxation`. There is nothing to round. A set that is no polyhedron is cut off
wherever a solution leaves it, which gives the bound; the targets are then the best ones in a
polyhedron inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._deadline import Deadline
from .._geometry import joint_multipliers
from ..constraints import FittedConstraint, Product
from ..exceptions import SolverError
from ..kernels import row_blocks
from ._cells import Cells, LinearImage, row_scale
from ._highs import SolverSession
from ._relaxation import Relaxed, solve_relaxation
from ._result import Solution

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
        if p is None and objective <= _ROUNDING**2 * float(self.weight @ self.y**2):
            gap = 0.0  # nothing was moved, but for rounding
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


# Times that a set is cut off at most, how near a solution has to come to it, in the set's unit, and
# what a polyhedron inside may lose of the objective; a factor that leads out of every set.
_MOST_CUTS, _NEAR, _LOST, _FAR = 100, 1e-6, 1e-9, 1e3


@dataclass(eq=False)
class AbsoluteLoss:
    """Projection of real targets at absolute error, under any constraints.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraints on the rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    target_bounds : tuple of (float, float) or None
        Lowest and highest target.
    """

    constraint: FittedConstraint
    y: np.ndarray
    target_bounds: tuple[float, float] | None

    def __post_init__(self) -> None:
        self.image = LinearImage(self.constraint)
        self.weight = self.constraint.weight
        self.share = self.weight / self.weight.sum()
        self.low, self.high = self.target_bounds or (-np.inf, np.inf)
        self.effects = self.image.effects(np.arange(len(self.y)), self.share)

    def solve(self, p: np.ndarray | None, target_weight: float, deadline: Deadline) -> Solution:
        """Return the nearest allowed targets to p and y; to y alone where p is None.

        Raises
        ------
        TimeoutError
            If the deadline comes first.
        """
        base, cost, reach = self._segments(p, target_weight)
        sign = np.repeat([1.0, 1.0, -1.0, -1.0], len(base))
        used = reach > 0
        matrix = (np.tile(self.effects, 4) * sign)[:, used]
        # Solvers' tolerances are absolute: rows of size 1, targets of deviation 1, weights of
        # mean 1.
        scale, mean_weight = row_scale(matrix), float(self.weight.mean())
        unit = self._deviation(base) or self._deviation(self.y) or 1.0
        fixed, nowhere = self.effects @ (base - self.share @ base), np.empty(0, dtype=int)
        cells = Cells(
            size=reach[used] / unit,
            cost=cost[used, None] / mean_weight,
            matrix=matrix / scale[:, None],
            scale=scale * unit,
            image=self.image,
            order=nowhere,
            start=nowhere,
        )
        counts, multipliers = self._solve(cells, fixed, deadline)
        moved = np.zeros(len(cost))
        moved[used] = unit * counts[:, 0]
        z = base + (moved * sign).reshape(4, -1).sum(axis=0)
        z = np.clip(z, self.low, self.high)
        objective, least = self._loss(z, p, target_weight), self._loss(base, p, target_weight)
        proven = _lower_bound(cells, multipliers, fixed)
        bound = min(objective, least + mean_weight * unit * proven)
        return Solution(
            z=z,
            objective=objective,
            bound=bound,
            gap=(objective - bound) / objective if objective else 0.0,
            multipliers=self.image.orthonormal_multipliers(mean_weight * unit * multipliers),
            status="optimal",
            solver="highs",
            n_variables=cells.n,
            n_groups=len(z),
        )

    def _solve(
        self, cells: Cells, fixed: np.ndarray, deadline: Deadline
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return allowed counts, and the multipliers that prove a bound on them."""
        sets = allowed = self.image.allowed
        relaxed = _solved(cells, allowed, fixed, deadline)
        middle = v = cells.v(relaxed.counts) + fixed
        for _ in range(_MOST_CUTS):
            if allowed.is_polyhedron or sets.violation(v) <= _NEAR:
                break
            # Solutions jump from corner to corner; their mean tells where the optimum is. Far
            # outside, every set is left.
            middle = 0.7 * middle + 0.3 * v
            allowed = allowed.touched(v).touched(_FAR * middle)
            relaxed = _solved(cells, allowed, fixed, deadline, relaxed.multipliers)
            v = cells.v(relaxed.counts) + fixed
        multipliers = relaxed.multipliers
        if not allowed.is_polyhedron:
            loss = _LOST * abs(cells.objective(relaxed.counts))
            relaxed = _solved(cells, sets.inside(v, multipliers, loss), fixed, deadline)
        return relaxed.counts, multipliers

    def _deviation(self, z: np.ndarray) -> float:
        return float(np.sqrt(self.share @ (z - self.share @ z) ** 2))

    def _loss(self, z: np.ndarray, p: np.ndarray | None, target_weight: float) -> float:
        if p is None:
            return float(self.weight @ np.abs(z - self.y))
        return float(self.weight @ (np.abs(z - p) + target_weight * np.abs(z - self.y)))

    def _segments(
        self, p: np.ndarray | None, target_weight: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each row's cheapest target, and cost and reach of the segments around it.

        Four segments per row: up to the other kink, up beyond it, down to it, down beyond it.
        """
        heavy, light = (1.0, 0.0) if p is None else (1.0, target_weight)
        near, other = (self.y, self.y) if p is None else (p, self.y)
        if p is not None and target_weight >= 1:
            # The original target is the cheapest value, and the one kept in a tie.
            heavy, light, near, other = target_weight, 1.0, self.y, p
        base = np.clip(near, self.low, self.high)
        kink = np.clip(other, self.low, self.high)
        outer = np.full(len(base), heavy + light)
        # Between the kinks the two losses pull in opposite directions.
        inner = np.full(len(base), heavy - light)
        up, down = np.maximum(kink - base, 0.0), np.maximum(base - kink, 0.0)
        beyond = np.maximum(base, kink), np.minimum(base, kink)
        cost = np.concatenate([inner, outer, inner, outer]) * np.tile(self.weight, 4)
        reach = np.concatenate([up, self.high - beyond[0], down, beyond[1] - self.low])
        return base, cost, reach


def _solved(
    cells: Cells,
    allowed: Product,
    fixed: np.ndarray,
    deadline: Deadline,
    start: np.ndarray | None = None,
) -> Relaxed:
    """Return the solution in sets, from the multipliers of a solution in larger ones."""
    solved = solve_relaxation(cells, allowed, fixed, deadline, start)
    if solved is None:
        raise SolverError.from_status("highs", "infeasible, though constant targets are not")
    return solved


def _lower_bound(cells: Cells, multipliers: np.ndarray, fixed: np.ndarray) -> float:
    """Return what the multipliers prove, once shrunk until every cost covers its gain."""
    cost, gain = cells.cost[:, 0], (cells.cost - cells.reduced(multipliers))[:, 0]
    endless = np.isinf(cells.size) & (gain > 0)
    cover = (cost[endless] / gain[endless]).min(initial=1.0)
    # Some digits more, for the products to come out on the right side.
    shrunk = multipliers * cover * (1 - 1e-10)
    return cells.dual_value(shrunk) - float(shrunk @ fixed)
