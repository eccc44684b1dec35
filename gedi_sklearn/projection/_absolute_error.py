r"""Real targets at absolute error: a linear program with few rows and many columns.

A row's loss |z − p| + w|z − y| is piecewise linear with kinks at p and y, so z leaves its cheapest
value t in at most two segments on either side, each at its own price per unit. The constraint has
one row for each bounded coefficient, whatever the number of rows of data, and the program is solved
by the sifting of :mod:`._relaxation`. There is nothing to round. A set that is no polyhedron is cut
off wherever a solution leaves it, which gives the bound; the targets are then the best ones in a
polyhedron inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..constraints import FittedConstraint, Product
from ..exceptions import SolverError
from ._cells import Cells, LinearImage, row_scale
from ._relaxation import Relaxed, solve_relaxation
from ._result import Solution
from ._solver import Deadline

# Times that a set is cut off at most, how near a solution has to come to it, in the set's unit, and
# what a polyhedron inside may lose of the objective; a factor that leads out of every set.
_MOST_CUTS, _NEAR, _LOST, _FAR = 100, 1e-9, 1e-9, 1e3


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
        if not allowed.is_polyhedron and sets.violation(v) > 0:
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
