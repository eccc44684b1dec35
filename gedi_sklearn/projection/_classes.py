r"""Targets of classes: a loss linear in their 0/1 columns, solved over cells of equal rows.

With z_c the 0/1 column of class c and C_{ic} the loss of assigning row i to it,

.. math:: \min \sum_{i,c} C_{ic} z_{ic} \quad\text{s.t.}\quad \sum_c z_{ic} = 1,\;
   v = (E z_1, \ldots, E z_K) \in V.

The column of the first of two classes is what the second one leaves, so that one is enough there;
else every class has its own. Rows with the same kernel row, weight and costs are interchangeable,
so a solution is a count for each cell and column, which `_search.py` looks for. Two classes of
equally weighted rows under a bound on the DIDI alone are allocated (`_allocation.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from .._validation import check_group_codes
from ..constraints import VIOLATION_TOLERANCE, FittedConstraint, GroupBall
from ..exceptions import InfeasibleProjectionError
from ._allocation import Allocation, AllocationSearch
from ._cells import (
    Cells,
    LinearImage,
    ball_of_means,
    class_costs,
    range_of_classes,
    row_scale,
)
from ._relaxation import Core, relax, relaxed_multipliers
from ._result import Found, Solution
from ._search import MOST_COLUMNS, Search
from ._solver import Deadline, LinearModel, SolverSession

# How near to its optimum a relaxation is solved for its labels; costs are at most 1.
_EXACT = 1e-6
# Seconds to look for the least slack with a solution.
_SLACK_SECONDS = 10.0


@dataclass(eq=False)
class ClassTargets:
    """Projection of classes 0…K − 1: what is fixed for given constraints and original targets.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraints on the rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    loss : {"hamming", "log_loss"}
        The loss.
    gap : float
        Largest (objective − bound) / Σ w|c| that is asked for; 0 is the optimum.
    tie_order : ndarray of shape (n,)
        Which of equal rows moves first.
    session : SolverSession
        Solves the integer models.
    """

    constraint: FittedConstraint
    y: np.ndarray
    loss: str
    gap: float
    tie_order: np.ndarray
    session: SolverSession

    def __post_init__(self) -> None:
        self.image = LinearImage(self.constraint)
        # Integers need room to move.
        self.image.allowed = self.image.allowed.interior(0.5 * VIOLATION_TOLERANCE)
        self.n_classes, weight = self.constraint.n_classes, self.constraint.weight
        # Solvers' tolerances are absolute: weights of mean 1, costs of at most 1.
        self.mean_weight = float(weight.mean())
        # Equal ones take no memory.
        equal = weight.min() == weight.max()
        self.weight = np.broadcast_to(1.0, len(weight)) if equal else weight / self.mean_weight
        # The only thing that is bounded: the deviations of cells.
        sets = [part.allowed for part in self.constraint.parts if part.bounds_anything]
        self.ball = ball_of_means(sets) if equal and self.n_classes == 2 else None
        keys = self.image.keys if equal else [*self.image.keys, weight]
        code, _ = check_group_codes(np.column_stack(keys or [np.zeros(len(weight))]))
        self.code = code.astype(np.int32)

    def excessive_groups(self) -> int:
        """Return how many groups are single rows where these alone exceed the bound, else 0."""
        if self.ball is None:
            return 0
        n_single = int((np.bincount(self.code) == 1).sum())
        share = float(self.y.mean())
        return n_single if n_single * min(share, 1 - share) > self.ball.radius else 0

    @cached_property
    def effects(self) -> tuple[np.ndarray, np.ndarray]:
        """What a 1 in a row of every code adds to E z, over the scale, and the scale."""
        weight = self.constraint.weight
        first = np.empty(int(self.code.max()) + 1, dtype=np.int64)
        first[self.code] = np.arange(len(self.code))  # any row of a code
        matrix = self.image.effects(first, weight[first] / weight.sum())
        scale = row_scale(matrix)
        return matrix / scale[:, None], scale

    def solve(self, p: np.ndarray | None, target_weight: float, deadline: Deadline) -> Solution:
        """Return the nearest targets to p and y that satisfy the constraint.

        Where none that satisfy it were found, the closest ones are returned, with the status
        "closest".

        Raises
        ------
        InfeasibleProjectionError
            If it is proven that there are none.
        SolverError
            If the solver failed, or returned what is no solution.
        """
        cost, constant, largest = self._costs(p, target_weight)
        total = float(range_of_classes(cost).sum())
        ties, most, least = self._tie_costs(cost, total)
        cells = self._cells(
            cost if ties is None else cost + ties, p, with_effects=self.ball is None
        )
        if ties is None:
            del cost  # of a million rows every array counts
        # Without them the bound is lower by the most, and labels may cost minus the least more.
        tolerance = max(self.gap * total - (most - least), 0.0)
        found = self._solve_groups(cells, tolerance, deadline)
        z = cells.spread(found.counts)
        objective = cells.objective(found.counts) if ties is None else self._total(cost, z)
        # The preference among ties is no part of the loss: take the most it adds out again.
        bound, status, gap = found.bound - most, found.status, np.nan
        if status != "closest":  # which can cost less than allowed targets do
            bound = min(bound, objective)
            gap = (objective - bound) / total if total else 0.0
        if status == "gap" and gap <= 1e-9:
            status = "optimal"
        return Solution(
            z=z,
            objective=(objective * largest + constant) * self.mean_weight,
            bound=(bound * largest + constant) * self.mean_weight,
            gap=gap,
            multipliers=self._orthonormal(found.multipliers * largest),
            status=status,
            solver=self.session.name,
            n_variables=found.n_variables,
            n_groups=cells.n,
        )

    def _costs(self, p: np.ndarray | None, target_weight: float) -> tuple[np.ndarray, float, float]:
        """Return the cost of every row in every column, at most 1, and what makes a loss of it.

        Returns
        -------
        cost : ndarray of shape (n, m)
            Of two classes the second one, against the first.
        constant : float
            What is added.
        largest : float
            By what it is multiplied before.
        """
        cost = class_costs(self.y, p, target_weight, self.loss, self.n_classes)
        cost *= self.weight[:, None]
        constant = 0.0
        if self.n_classes == 2:
            constant = float(cost[:, 0].sum())
            cost = cost[:, 1:] - cost[:, :1]
        largest = float(range_of_classes(cost).max()) or 1.0
        cost /= largest
        return cost, constant, largest

    @staticmethod
    def _total(cost: np.ndarray, z: np.ndarray) -> float:
        """Return the cost of targets."""
        if cost.shape[1] == 1:
            return float(cost[:, 0] @ z)
        return float(np.take_along_axis(cost, z[:, None].astype(int), axis=1).sum())

    def _tie_costs(self, cost: np.ndarray, total: float) -> tuple[np.ndarray | None, float, float]:
        """Return small costs that draw tied rows to their original target, and the range they add.

        Together these stay below a tenth of the smallest real difference, and below a quarter of
        the gap, so that they never outweigh a real difference.
        """
        if cost.shape[1] == 1:
            difference = cost
            # The second class costs more where the first one is the original target, and less else.
            direction = 1 - 2 * self.y[:, None]
        else:
            own = self.y.astype(int)[:, None]
            difference = cost - np.take_along_axis(cost, own, axis=1)
            direction = (np.arange(self.n_classes) != own).astype(np.float64)
        tied = (difference == 0) & (direction != 0)
        n_tied = int(tied.any(axis=1).sum())
        if not n_tied:
            return None, 0.0, 0.0
        smallest = np.abs(difference).min(initial=np.inf, where=difference != 0)
        budget = 1.0
        if np.isfinite(smallest):
            budget = min(0.1 * float(smallest), 0.25 * max(self.gap, 1e-9) * total)
        ties = np.where(tied, budget / n_tied * direction, 0.0)
        if not total:
            return ties, 0.0, 0.0
        most, least = ties.max(axis=1, initial=0.0), ties.min(axis=1, initial=0.0)
        return ties, float(most.sum()), float(least.sum())

    def relaxed_multipliers(
        self, p: np.ndarray, tolerance: float, deadline: Deadline, start: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return multipliers in the relaxation against p, from those of other sets on.

        Costs are at most 1, for the tolerance of their sum.

        Returns
        -------
        orthonormal : ndarray of shape (k,)
            Those of the orthonormal coordinates.
        multipliers : ndarray of shape (r,)
            Those of v, to start from.

        Raises
        ------
        InfeasibleProjectionError
            If no targets satisfy the constraint.
        """
        cost, _, largest = self._costs(p, 0.0)
        cells = self._cells(cost, p)
        found = relaxed_multipliers(
            cells, self.image.allowed, tolerance, self._offset(), deadline, start
        )
        if found is None:
            raise self._infeasible(cells, deadline)
        return self._orthonormal(found * largest), found

    def _offset(self) -> np.ndarray:
        """Return what is added to v before it has to be in the sets: that of −origin."""
        offset = [np.zeros(len(self.image.row))]
        if self.constraint.origin is not None:
            nothing = np.full(len(self.y), -1)  # no class at all
            columns = self.constraint.columns(nothing)
            offset = [part.v(columns)[part.allowed.bounded] for part in self.constraint.parts]
        return np.concatenate(offset)

    def relaxed_labels(
        self, p: np.ndarray, offset: np.ndarray, deadline: Deadline
    ) -> np.ndarray | None:
        """Return the labels of the relaxation of two classes against p alone, rounded.

        They are a threshold on the score that depends on the attribute, up to the rounding of a
        few cells of equal rows.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Probabilities.
        offset : ndarray of shape (r,)
            What is added to the v of labels before it has to be in the sets.
        deadline : Deadline
            When to end.

        Returns
        -------
        ndarray of shape (n,) or None
            None where no labels of both classes are in the sets.
        """
        cells = self._cells(self._costs(p, 0.0)[0], p)
        relaxed = relax(cells, self.image.allowed, _EXACT, offset, deadline)
        if relaxed is None:
            return None
        labels = cells.spread(np.rint(relaxed.counts))
        return labels if 0 < labels.sum() < len(labels) else None

    def _orthonormal(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of v, for weights of mean 1, as those of the coordinates."""
        return self.image.orthonormal_multipliers(multipliers * self.mean_weight)

    def _cells(self, cost: np.ndarray, p: np.ndarray | None, *, with_effects: bool = True) -> Cells:
        """Return the cells of rows of equal code and cost, of two classes the likeliest first."""
        index = self.code.dtype
        if int(self.code.max()) + 1 == len(cost):  # every row is a cell
            order = np.empty(len(cost), dtype=index)
            order[self.code] = np.arange(len(cost), dtype=index)
        else:
            likeliest = [] if self.n_classes > 2 else [-(self.y if p is None else p)]
            keys = (self.tie_order, *likeliest, *cost.T, self.code)
            order = np.lexsort(keys).astype(index)
        code, sorted_cost = self.code[order], cost[order]
        new = (np.diff(code) != 0) | (np.diff(sorted_cost, axis=0) != 0).any(axis=1)
        start = np.flatnonzero(np.r_[True, new]).astype(index)
        size = np.diff(start, append=index.type(len(order)))
        matrix, scale = self.effects if with_effects else (np.empty((0, 0)), np.empty(0))
        if with_effects and len(start) > matrix.shape[1]:
            matrix = matrix[:, code[start]]
        return Cells(size, sorted_cost[start], matrix, scale, self.image, order, start)

    def _solve_groups(self, cells: Cells, tolerance: float, deadline: Deadline) -> Found:
        """Return the best counts of the cells."""
        if self.ball is not None:
            return self._allocate(self.ball, cells, tolerance, deadline)
        found = Search(cells, tolerance, self.session, deadline).run()
        if found is None:
            raise self._infeasible(cells, deadline)
        return found

    def _allocate(
        self, ball: GroupBall, cells: Cells, tolerance: float, deadline: Deadline
    ) -> Found:
        """Allocate ones to the groups of the attribute."""
        size, start = np.bincount(self.code), cells.start.astype(int)
        cost = np.repeat(cells.cost[:, 0], cells.size)
        allocation = Allocation(cost, size, ball.radius, ball.unit)
        found = AllocationSearch(allocation, tolerance, self.session, deadline).run()
        if found is None:
            raise InfeasibleProjectionError.from_problem(**self.constraint.describe())
        code = self.code[cells.order[start]]
        before = start - (np.cumsum(size) - size)[code]
        counts = np.clip(found.counts[code] - before, 0, cells.size)
        return replace(found, counts=counts[:, None].astype(float))

    def _infeasible(self, cells: Cells, deadline: Deadline) -> InfeasibleProjectionError:
        """Return the error for cells without a solution, with the slack that would do."""
        least, nowhere = None, np.zeros(len(self.image.row))
        # Finding that slack takes a model of all cells.
        if cells.cost.size <= MOST_COLUMNS:
            core = Core(cells, cells.choose(nowhere)[0], np.arange(cells.cost.size))
            model = core.model(self.image.allowed, nowhere, keep_classes=True)
            units = self.image.allowed.slack_units() / cells.scale[self.image.row]
            least = _smallest_slack(model, units, self.session, deadline)
        facts = self.constraint.describe()
        return InfeasibleProjectionError.from_problem(**facts, smallest_slack=least)


def _smallest_slack(
    model: LinearModel, units: np.ndarray, session: SolverSession, deadline: Deadline
) -> float | None:
    """Return the least slack with a solution; None where slack plays no part, or is unknown.

    The integer model with the slack as its last variable and as its cost.

    Parameters
    ----------
    model : LinearModel
        The model; its first rows are those of v.
    units : ndarray of shape (r,)
        How far a slack of 1 lets these rows move, 0 for a row that it has no say in.
    session : SolverSession
        Solves the model.
    deadline : Deadline
        When to end.

    Returns
    -------
    float or None
    """
    if not units.any():
        return None
    per_slack = np.zeros(len(model.lower))
    per_slack[: len(units)] = -units
    upper = np.where(per_slack < 0, (model.lower + model.upper) / 2, model.upper)
    lower = np.where(per_slack < 0, upper, model.lower)
    relaxed = LinearModel(
        np.r_[np.zeros(len(model.cost)), 1.0],
        sp.csr_array(
            sp.block_array(
                [[model.matrix, per_slack[:, None]], [model.matrix, -per_slack[:, None]]]
            )
        ),
        np.r_[np.full(len(upper), -np.inf), lower],
        np.r_[upper, np.full(len(lower), np.inf)],
        np.r_[model.upper_bound, np.inf],
        model.n_integers,
    )
    soon = Deadline(min(_SLACK_SECONDS, deadline.left))
    outcome = session.solve_linear(relaxed, gap=1e-6, start=None, deadline=soon)
    return None if outcome.x is None else float(outcome.x[-1]) * (1 + 1e-6)
