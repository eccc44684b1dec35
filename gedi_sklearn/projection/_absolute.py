r"""Real targets, absolute error: a linear program with few rows and many columns.

A row's loss |z − p| + w|z − y| is piecewise linear with kinks at p and y, so z leaves its cheapest
value t in at most two segments on either side, each at its own price per unit. The constraint has
one row for each bounded coefficient, whatever the number of rows of data, and the program is
solved by the sifting of :mod:`._relaxation`. There is nothing to round.
"""

from __future__ import annotations

import numpy as np

from ..constraints import FittedConstraint
from ..exceptions import SolverError
from ._groups import LinearImage, row_scale
from ._linear_model import LinearModel, Solution
from ._relaxation import BoundedColumns, solve_relaxation


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

    def __init__(
        self,
        constraint: FittedConstraint,
        *,
        y: np.ndarray,
        target_bounds: tuple[float, float] | None,
    ) -> None:
        self.constraint = constraint
        self.image = LinearImage(constraint)
        self.y = y
        self.weight = constraint.weight
        self.share = self.weight / self.weight.sum()
        self.low, self.high = target_bounds or (-np.inf, np.inf)
        self.effects = self.image.effects(np.arange(len(y)), self.share)

    def solve(self, p: np.ndarray | None, target_weight: float) -> Solution:
        """Return the nearest allowed targets to p and y; to y alone where p is None."""
        base, price, reach = self._segments(p, target_weight)
        sign = np.repeat([1.0, 1.0, -1.0, -1.0], len(base))
        matrix = np.tile(self.effects, 4) * sign
        used = reach > 0
        # Solvers' tolerances are absolute: targets of deviation 1, weights of mean 1.
        unit = self._deviation(base) or self._deviation(self.y) or 1.0
        mean_weight = float(self.weight.mean())
        model = self._model(
            price[used] / mean_weight,
            matrix[:, used],
            reach[used] / unit,
            self.effects @ ((base - self.share @ base) / unit),
            unit,
        )
        solved = solve_relaxation(BoundedColumns(model))
        if solved is None:
            raise SolverError.from_status("highs", "infeasible, though constant targets are not")
        moved = np.zeros(len(price))
        moved[used] = unit * solved[0][: used.sum()]
        z = base + (moved * sign).reshape(4, -1).sum(axis=0)
        z = np.clip(z, self.low, self.high)
        objective = self._loss(z, p, target_weight)
        fixed = self._loss(base, p, target_weight)
        bound = min(objective, fixed + mean_weight * unit * self._lower_bound(model, solved[1]))
        scale = row_scale(matrix[:, used])
        seen = self.image.orthonormal_multipliers(mean_weight * solved[1][: len(scale)] / scale)
        multipliers = self.constraint.raw_multipliers(seen)
        return Solution(
            z=z,
            objective=objective,
            bound=bound,
            gap=(objective - bound) / objective if objective else 0.0,
            multipliers=multipliers,
            correction=np.full(len(multipliers), np.nan),
            orthonormal_correction=np.full(len(multipliers), np.nan),
            status="optimal",
            solver="highs",
            n_variables=len(model.cost),
            n_groups=len(self.y),
        )

    def _deviation(self, z: np.ndarray) -> float:
        return float(np.sqrt(self.share @ (z - self.share @ z) ** 2))

    def _lower_bound(self, model: LinearModel, multipliers: np.ndarray) -> float:
        """Return what the multipliers prove, once shrunk until every price covers its gain."""
        endless = np.isinf(model.upper_bound)
        gain = multipliers @ model.matrix[:, endless]
        with np.errstate(divide="ignore"):
            cover = np.where(gain > 0, model.cost[endless] / gain, 1.0).min(initial=1.0)
        # Some digits more, for the products to come out on the right side.
        return model.lagrangian_bound(multipliers * min(cover, 1.0) * (1 - 1e-10))

    def _loss(self, z: np.ndarray, p: np.ndarray | None, target_weight: float) -> float:
        if p is None:
            return float(self.weight @ np.abs(z - self.y))
        return float(self.weight @ (np.abs(z - p) + target_weight * np.abs(z - self.y)))

    def _segments(
        self, p: np.ndarray | None, target_weight: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each row's cheapest target, and price and reach of the segments around it.

        Four segments a row: up to the other kink, up beyond it, down to it, down beyond it.
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
        price = np.concatenate([inner, outer, inner, outer]) * np.tile(self.weight, 4)
        reach = np.concatenate([up, self.high - beyond[0], down, beyond[1] - self.low])
        return base, price, reach

    def _model(
        self,
        price: np.ndarray,
        matrix: np.ndarray,
        reach: np.ndarray,
        shift: np.ndarray,
        unit: float,
    ) -> LinearModel:
        """Return the program for targets in a unit."""
        n = matrix.shape[1]
        scale = row_scale(matrix)
        rows, shift = matrix / scale[:, None], shift / scale
        sets = self.image.allowed.linear_rows()
        n_sums, n_auxiliary = sets.sums.shape
        return LinearModel(
            np.r_[price, np.zeros(n_auxiliary)],
            np.block(
                [
                    [rows, sets.auxiliary / unit / scale[:, None]],
                    [np.zeros((n_sums, n)), sets.sums],
                ]
            ),
            np.r_[sets.lower / unit / scale - shift, np.full(n_sums, -np.inf)],
            np.r_[sets.upper / unit / scale - shift, np.ones(n_sums)],
            np.r_[reach, np.ones(n_auxiliary)],
            n,
        )
