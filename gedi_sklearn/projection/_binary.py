r"""Binary targets: a loss that is linear in z ∈ {0, 1}, solved over groups of equal rows.

Rows with the same kernel row, weight and cost are interchangeable, so a solution is a count of
ones in each group. The linear relaxation over the groups gives multipliers λ, a lower bound, and
for every group the reduced cost r = c − A'λ of a row, of which |r| is the doubt. Rounding the
relaxation is tried first, then cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..exceptions import InfeasibleProjectionError
from ._allowed_rows import auxiliary_columns, row_ranges
from ._bound import AllowedProduct, Bound, raw_multipliers
from ._grouped import INTEGRALITY, Counts, GroupedTargets, Relaxed
from ._groups import Groups, costs, mix_ranges, row_effects, row_scale
from ._model import LinearModel, Solution
from ._relaxation import solve_relaxation
from ._rounding import rounded
from ._smallest_slack import smallest_slack

__all__ = ["BinaryTargets"]

# Groups in the integer model: a small one is answered soonest, a larger one holds better solutions.
# The licence that comes with gurobipy allows 2,000 variables.
_CORE_SIZES = (250, 600, 1500)
# Groups of smallest reduced cost among which a core is chosen.
_NEAREST = 50_000
# Groups that may take a step when the relaxation is rounded.
_ROUNDING_POOL = 300


class BinaryTargets(GroupedTargets[Groups]):
    """Projection of 0/1 targets: what is fixed for one design, constraint and original targets.

    Parameters
    ----------
    constraints : sequence of Bound
        The constraints on the rows of positive weight; all of them hold.
    y : ndarray of shape (n,)
        Original targets, 0 or 1.
    weight : ndarray of shape (n,)
        Sample weights, all positive.
    **problem
        See :class:`GroupedTargets`.
    """

    def __init__(
        self, constraints: Sequence[Bound], *, y: np.ndarray, weight: np.ndarray, **problem: Any
    ) -> None:
        super().__init__(
            AllowedProduct(tuple(own.allowed for own in constraints)),
            [own.design.keys for own in constraints],
            y=y,
            weight=weight,
            n_classes=2,
            **problem,
        )
        self.constraints = constraints
        first = np.unique(self.code, return_index=True)[1]
        self.matrix, self.scale = self._rows(first, weight[first] / weight.sum())
        self._last: np.ndarray | None = None

    def _rows(self, first: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix of the models for one row of every code, and the scale of v."""
        in_v, in_sums = auxiliary_columns(self.allowed)
        (r, n_auxiliary), n = in_v.shape, len(first)
        # In place: of a million rows every array counts.
        matrix = np.zeros((r + 1 + len(in_sums), n + n_auxiliary))
        for own, (part, rows) in zip(self.constraints, self.allowed.split(matrix[:r]), strict=True):
            row_effects(own.design, part, first, share, out=rows[:, :n])
        scale = row_scale(matrix[:r, :n])
        matrix[:r, :n] /= scale[:, None]
        matrix[:r, n:] = in_v / scale[:, None]
        matrix[r, :n] = 1
        matrix[r + 1 :, n:] = in_sums
        return matrix, scale

    def solve(self, p: np.ndarray | None, target_weight: float) -> Solution:
        """Return the nearest targets to p and y that satisfy the constraint.

        Raises
        ------
        InfeasibleProjectionError
            If there are none.
        SolverLimitError
            If a limit was reached before any were found.
        SolverError
            If the solver failed, or returned what is no solution.
        """
        weighted, constant = self._costs(p, target_weight)
        largest = float(np.abs(weighted).max()) or 1.0
        weighted /= largest
        total = float(np.abs(weighted).sum())
        cost, tie_limit = self._break_ties(weighted, total)
        groups = self._group(cost, self.y if p is None else p)
        del weighted, cost  # of a million rows every array counts
        found = self._solve_groups(groups, max(self.gap * total - tie_limit, 0.0))
        z = groups.spread(found.counts)
        self._last = z
        objective = float(self._costs(p, target_weight)[0] @ z) / largest
        # The preference among ties is no part of the loss: take the most it adds out again.
        bound = min(found.bound - tie_limit, objective)
        gap = (objective - bound) / total if total else 0.0
        return self._solution(
            z,
            found,
            objective=objective * largest + constant,
            bound=bound * largest + constant,
            gap=gap,
            multipliers=self._raw(found.multipliers * largest),
            n_groups=groups.n,
        )

    def _costs(self, p: np.ndarray | None, target_weight: float) -> tuple[np.ndarray, float]:
        """Return what a one of every row costs, shape (n,), and the loss of all zeros."""
        weighted, at_zero = costs(self.y, p, target_weight, self.loss)
        weighted *= self.weight
        return weighted, float(self.weight @ at_zero)

    def relaxed_multipliers(self, p: np.ndarray) -> np.ndarray:
        """Return the multipliers of α̃, shape (k,), in the relaxation against p alone.

        Raises
        ------
        InfeasibleProjectionError
            If no targets satisfy the constraint.
        """
        weighted, _ = self._costs(p, 0.0)
        largest = float(np.abs(weighted).max()) or 1.0
        groups = self._group(weighted / largest, p)
        solved = self._relax(groups, np.zeros(len(groups.scale)))
        if solved is None:
            raise self._infeasible(groups)
        return self._raw(solved[1][: len(groups.scale)] / groups.scale * largest)

    def relaxed_labels(self, p: np.ndarray, offset: np.ndarray) -> np.ndarray | None:
        """Return the labels of the relaxation against p alone, rounded.

        They are a threshold on the score that depends on the attribute, up to the rounding of a
        few groups of equal rows.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Probabilities.
        offset : ndarray of shape (r,)
            What is added to the v of labels before it has to be in the sets.

        Returns
        -------
        ndarray of shape (n,) or None
            None where no labels of both classes are in the sets.
        """
        weighted, _ = self._costs(p, 0.0)
        groups = self._group(weighted / (float(np.abs(weighted).max()) or 1.0), p)
        solved = self._relax(groups, offset)
        if solved is None:
            return None
        labels = groups.spread(np.rint(solved[0][: groups.n]))
        return labels if 0 < labels.sum() < len(labels) else None

    def _relax(self, groups: Groups, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the solution of the relaxation, with an offset of v, and its row multipliers."""
        model = self._core_model(groups, None, np.zeros(groups.n))
        moved = np.zeros(len(model.lower))
        moved[: len(offset)] = offset / groups.scale
        return solve_relaxation(
            replace(model, lower=model.lower - moved, upper=model.upper - moved)
        )

    def _raw(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of v, for weights of mean 1, as those of the coefficients."""
        return raw_multipliers(self.constraints, multipliers * self.mean_weight)

    def _break_ties(self, weighted: np.ndarray, total: float) -> tuple[np.ndarray, float]:
        """Return costs with a small one that draws rows without any to their original target.

        Together these stay below a tenth of the smallest real cost, and below a quarter of the
        gap, so that they never outweigh a real difference. Also returns the most that they can
        add to a solution.
        """
        free = weighted == 0
        if not free.any():
            return weighted, 0.0
        budget = 1.0
        if not free.all():
            smallest = float(np.abs(weighted[~free]).min())
            budget = min(0.1 * smallest, 0.25 * max(self.gap, 1e-9) * total)
        cost = weighted.copy()
        cost[free] = budget / free.sum() * (1 - 2 * self.y[free])
        return cost, float(np.maximum(cost[free], 0).sum()) if total else 0.0

    def _group(self, cost: np.ndarray, confidence: np.ndarray) -> Groups:
        """Group rows of equal code and cost; within a group, confident ones come first."""
        index = self.code.dtype
        order = np.lexsort((self.tie_order, -confidence, cost, self.code)).astype(index)
        code, sorted_cost = self.code[order], cost[order]
        new = np.r_[True, (np.diff(code) != 0) | (np.diff(sorted_cost) != 0)]
        start = np.flatnonzero(new).astype(index)
        size = np.diff(start, append=index.type(len(order)))
        matrix = self.matrix
        if len(start) > code[-1] + 1:
            auxiliary = np.arange(code[-1] + 1, matrix.shape[1])
            matrix = matrix[:, np.r_[code[start], auxiliary]]
        return Groups(order, start, size, sorted_cost[start], matrix, self.scale)

    def _core_model(
        self, groups: Groups, core: np.ndarray | None, fixed: np.ndarray
    ) -> LinearModel:
        r"""Return the integer model of a core (all for None), given the counts of other groups.

        Variables: the count of every group, then for each ball v⁺ and v⁻ in units of its radius::

            min c'x   s.t.  −b ≤ A x + f ≤ b                            (box)
                            A x + f = q(v⁺ − v⁻),  Σ(v⁺ + v⁻) ≤ 1       (ball)
                            1 ≤ Σ x + ones ≤ n − 1                      (both classes stay)
        """
        matrix, scale = groups.matrix, groups.scale
        r, n_auxiliary = len(scale), matrix.shape[1] - groups.n
        cost, size = groups.cost, groups.size
        if core is not None:
            matrix = matrix[:, np.r_[core, groups.n + np.arange(n_auxiliary)]]
            cost, size = cost[core], size[core]
        lower, upper = row_ranges(self.allowed, groups.v(fixed), scale)
        ones, n_balls = fixed.sum(), len(matrix) - r - 1
        return LinearModel(
            np.r_[cost, np.zeros(n_auxiliary)] if n_auxiliary else cost,
            matrix,
            np.r_[lower, 1 - ones, np.full(n_balls, -np.inf)],
            np.r_[upper, len(self.y) - 1 - ones, np.ones(n_balls)],
            np.r_[size.astype(float), np.ones(n_auxiliary)],
            len(cost),
        )

    def _solve_groups(self, groups: Groups, tolerance: float) -> Counts:
        """Solve the relaxation, round it, then solve cores that grow until the gap is met."""
        deadline = self._deadline()
        relaxed = self._relaxation(groups)
        nearest = self._nearest(groups, relaxed)
        return self._solve_cores(
            groups,
            relaxed,
            nearest,
            _core_sizes(groups.n),
            tolerance,
            deadline,
            self._round(groups, relaxed, nearest[:_ROUNDING_POOL], tolerance),
        )

    def _relaxation(self, groups: Groups) -> Relaxed:
        """Solve the relaxation over all groups."""
        model = self._core_model(groups, None, np.zeros(groups.n))
        solved = solve_relaxation(model)
        if solved is None:
            raise self._infeasible(groups)
        x, multipliers = solved
        doubt = model.reduced_cost(multipliers)[: groups.n]
        np.abs(doubt, out=doubt)
        return Relaxed(
            x[: groups.n],
            model.lagrangian_bound(multipliers),
            doubt,
            multipliers[: len(groups.scale)] / groups.scale,
        )

    def _nearest(self, groups: Groups, relaxed: Relaxed) -> np.ndarray:
        """Return the groups that a core takes first, in that order."""
        doubt = relaxed.doubt
        # Groups that the relaxation splits come first, whatever rounding makes of their r.
        split = np.flatnonzero(np.abs(relaxed.counts - np.rint(relaxed.counts)) > INTEGRALITY)
        by_cost = np.setdiff1d(_smallest(doubt, _NEAREST), split)
        by_cost = by_cost[np.argsort(doubt[by_cost], kind="stable")]
        split = split[np.argsort(doubt[split], kind="stable")]
        return mix_ranges(np.r_[split, by_cost], groups.scaled_effects)

    def _infeasible(self, groups: Groups) -> InfeasibleProjectionError:
        """Return the error for groups without a solution, with the slack that would do."""
        if groups.n > _CORE_SIZES[-1]:
            return super()._infeasible(groups)  # finding that slack takes a model of all groups
        model = self._core_model(groups, None, np.zeros(groups.n))
        units = self.allowed.slack_units() / groups.scale
        return InfeasibleProjectionError.from_problem(
            **self.description, smallest_slack=smallest_slack(model, units, self.session)
        )

    def _round(
        self, groups: Groups, relaxed: Relaxed, pool: np.ndarray, tolerance: float
    ) -> Counts | None:
        """Return the relaxation rounded into the constraint, as near as a few steps lead."""
        best: Counts | None = None
        core_model = partial(self._core_model, groups)
        for counts in rounded(relaxed, groups, self.allowed, pool, tolerance, core_model):
            found = self._accept(
                groups, counts, relaxed.bound, "gap", relaxed.multipliers, groups.n
            )
            best = found if best is None else best.or_else(found)
            if best.objective - relaxed.bound <= tolerance:
                break
        return best

    def _start(self, groups: Groups, best: Counts | None, core: np.ndarray) -> np.ndarray | None:
        """Return counts for the solver to start from: the best so far, or the last targets."""
        if best is not None:
            return best.counts[core]
        return None if self._last is None else groups.counts(self._last)[core]


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of so many smallest values, in order of position."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.sort(np.argpartition(values, count)[:count])


def _core_sizes(n_groups: int) -> list[int]:
    """Return the sizes to try: all groups at once where one model holds them."""
    if n_groups <= _CORE_SIZES[-1]:
        return [n_groups]
    return list(_CORE_SIZES)
