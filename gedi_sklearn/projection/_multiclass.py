r"""Several classes: every row is assigned to one, and every class satisfies the constraint.

With z_c the 0/1 column of class c and C_{ic} the loss of assigning row i to it,

.. math:: \min \sum_{i,c} C_{ic} z_{ic} \quad\text{s.t.}\quad \sum_c z_{ic} = 1,\;
   v_c = A z_c \in V_c \text{ for every class.}

Rows with the same kernel row, weight and costs are interchangeable, so a solution is a count for
each group and class. At multipliers λ_c of v_c a group goes to the class of least
C_c − A'λ_c; *doubt* is how much worse its second class is. The relaxation is solved over the
groups in doubt, the others fixed, until none of these contradicts λ. The groups of least doubt
form the core, an integer model; as with two classes, a better solution that differs outside of
the core costs at least the smallest doubt there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._allowed_rows import auxiliary_columns, row_ranges
from ._bound import raw_multipliers
from ._classwise import ClasswiseBound
from ._grouped import Counts, GroupedTargets, Relaxed
from ._groups import LOG_LOSS_MARGIN, row_effects, row_scale
from ._highs import solve_continuous
from ._model import LinearModel, Solution
from ._relaxation import GROWTH, OPEN, leverage

__all__ = ["MultiClassTargets", "class_costs"]

# Integer variables of the cores; the licence that comes with gurobipy allows 2,000 variables.
_CORE_VARIABLES = (600, 1800)
# Groups that one linear program takes without sifting, and in the first sample.
_DIRECT = 1000
_WHOLE = 1e-6


def class_costs(
    y: np.ndarray, p: np.ndarray | None, target_weight: float, loss: str, n_classes: int
) -> np.ndarray:
    """Return the loss of every row in every class, shape (n, K).

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets, 0…K − 1.
    p : ndarray of shape (n, K) or None
        Probabilities, or 0/1 columns of labels; None for the loss against y alone.
    target_weight : float
        Weight of the loss against y, beside predictions.
    loss : {"hamming", "log_loss"}
        The loss; probabilities are clipped as for two classes.
    n_classes : int
        K.

    Returns
    -------
    ndarray of shape (n, K)
    """
    own = (y[:, None] == np.arange(n_classes)).astype(np.float64)
    terms = [(own, 1.0)] if p is None else [(p, 1.0), (own, target_weight)]
    if loss == "hamming":
        return sum(factor * (1 - probability) for probability, factor in terms)
    margin = LOG_LOSS_MARGIN
    return sum(-factor * np.log(np.clip(q, margin, 1 - margin)) for q, factor in terms)


@dataclass(frozen=True)
class _Groups:
    """Rows sorted so that interchangeable ones stand together.

    `order` (n,) sorts the rows; group g is order[start[g] : start[g] + size[g]]; `cost` (g, K)
    and, for each class, `effects[c]` (r_c, g) are those of one of its rows.
    """

    order: np.ndarray
    start: np.ndarray
    size: np.ndarray
    cost: np.ndarray
    effects: list[np.ndarray]

    def take(self, groups: np.ndarray, size: np.ndarray) -> _Groups:
        """Return some groups, with other sizes: a model's, not rows."""
        effects = [own[:, groups] for own in self.effects]
        return replace(self, size=size, cost=self.cost[groups], effects=effects)

    def reduced(self, multipliers: np.ndarray) -> np.ndarray:
        """Return C − A'λ of every group and class, shape (g, K)."""
        start, columns = 0, []
        for c, own in enumerate(self.effects):
            columns.append(self.cost[:, c] - multipliers[start : start + len(own)] @ own)
            start += len(own)
        return np.column_stack(columns)

    def v(self, counts: np.ndarray) -> np.ndarray:
        """Return the v of all classes for counts (g, K)."""
        return np.concatenate([own @ counts[:, c] for c, own in enumerate(self.effects)])

    def price(self, counts: np.ndarray) -> float:
        """Return the cost of counts."""
        return float((self.cost * counts).sum())

    def rows_of_classes(self, counts: np.ndarray) -> np.ndarray:
        """Return how many rows every class has, shape (K,)."""
        return counts.sum(axis=0)

    def fault(self, counts: np.ndarray) -> str | None:
        """Return why counts are none of these groups, None where they are."""
        wrong = (counts < 0).any() or (counts.sum(axis=1) != self.size).any()
        return "counts that do not add up" if wrong else None

    def spread(self, counts: np.ndarray) -> np.ndarray:
        """Return z (n,): the first rows of a group to its first class, and so on."""
        z = np.empty(len(self.order), dtype=int)
        classes = np.tile(np.arange(counts.shape[1]), len(counts))
        z[self.order] = np.repeat(classes, counts.ravel().astype(int))
        return z


class MultiClassTargets(GroupedTargets[_Groups]):
    """Projection of targets 0…K − 1: what is fixed for one constraint and original targets.

    Parameters
    ----------
    bound : ClasswiseBound
        The constraint on the rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    weight : ndarray of shape (n,)
        Sample weights, all positive.
    **problem
        See :class:`GroupedTargets`.
    """

    def __init__(
        self, bound: ClasswiseBound, *, y: np.ndarray, weight: np.ndarray, **problem: Any
    ) -> None:
        super().__init__(
            bound.allowed,
            [bound.design.keys],
            y=y.astype(int),
            weight=weight,
            n_classes=len(bound.classes),
            **problem,
        )
        self.bound = bound
        first = np.unique(self.code, return_index=True)[1]
        share = weight[first] / weight.sum()
        self.effects = [row_effects(own.design, own.allowed, first, share) for own in bound.classes]

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
        cost = class_costs(self.y, p, target_weight, self.loss, self.n_classes)
        weighted = self.weight[:, None] * cost
        range_of_rows = np.ptp(weighted, axis=1)
        # Solvers' tolerances are absolute: the largest range of a row is 1.
        largest = float(range_of_rows.max()) or 1.0
        total = float(range_of_rows.sum()) / largest
        # Ties are broken towards the original targets, by less than counts for the gap.
        preference = 0.25 * max(self.gap, 1e-9) * total / len(cost)
        own = self.y[:, None] == np.arange(self.n_classes)
        groups = self._group(weighted / largest + np.where(own, 0.0, preference))
        most = preference * len(cost)
        found = self._solve_groups(groups, max(self.gap * total - most, 0.0))
        z = groups.spread(found.counts)
        objective = float(np.take_along_axis(weighted, z[:, None], axis=1).sum())
        bound = min((found.bound - most) * largest, objective)
        raw = raw_multipliers(self.bound.classes, found.multipliers)
        return self._solution(
            z,
            found,
            objective=objective,
            bound=bound,
            gap=(objective - bound) / (total * largest) if total else 0.0,
            multipliers=largest * self.mean_weight * raw,
            n_groups=len(groups.size),
        )

    def _group(self, cost: np.ndarray) -> _Groups:
        order = np.lexsort((self.tie_order, *cost.T, self.code))
        code, sorted_cost = self.code[order], cost[order]
        new = np.r_[True, (np.diff(code) != 0) | (np.diff(sorted_cost, axis=0) != 0).any(axis=1)]
        start = np.flatnonzero(new)
        size = np.diff(np.r_[start, len(order)])
        effects = [own[:, code[start]] for own in self.effects]
        return _Groups(order, start, size.astype(float), sorted_cost[start], effects)

    def _model(self, groups: _Groups, fixed: np.ndarray, least: np.ndarray) -> LinearModel:
        r"""Return the model of some groups, given the v of the others.

        Variables: the counts of every group by class, then for each ball v⁺ and v⁻::

            min C·x   s.t.  A x_c + f in the box, or = q(v⁺ − v⁻) with Σ(v⁺ + v⁻) ≤ 1
                            Σ_g x_gc ≥ least_c            (every class keeps a row)
                            Σ_c x_gc = size_g
        """
        g, k = groups.cost.shape
        scale = np.concatenate([row_scale(own) for own in groups.effects])
        blocks = [
            # The columns of class c are every k-th.
            sp.kron(sp.csr_array(own), np.eye(1, k, c))
            for c, own in enumerate(groups.effects)
        ]
        lower, upper = row_ranges(self.allowed, fixed, scale)
        in_v, in_sums = auxiliary_columns(self.allowed)
        n_balls, n_auxiliary = in_sums.shape
        v_rows = sp.diags_array(1 / scale) @ sp.vstack(blocks)
        counts = sp.kron(np.ones((1, g)), sp.eye_array(k))
        one_class = sp.kron(sp.eye_array(g), np.ones((1, k)))
        matrix = sp.block_array(
            [[v_rows, in_v / scale[:, None]], [counts, None], [None, in_sums], [one_class, None]]
        )
        return LinearModel(
            np.r_[groups.cost.ravel(), np.zeros(n_auxiliary)],
            sp.csr_array(matrix),
            np.r_[lower, least, np.full(n_balls, -np.inf), groups.size],
            np.r_[upper, np.full(k, np.inf), np.ones(n_balls), groups.size],
            np.r_[np.repeat(groups.size, k), np.ones(n_auxiliary)],
            g * k,
        )

    def _relax(
        self, groups: _Groups, multipliers: np.ndarray, sample_size: int | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Solve the relaxation from multipliers of a sample; return counts (g, K) and λ."""
        g, k = groups.cost.shape
        best, doubt = _choose(groups.reduced(multipliers))
        free = np.ones(g, dtype=bool)
        if sample_size is not None and g > _DIRECT:
            n_open = min(g, max(_DIRECT, int(OPEN * g / np.sqrt(sample_size))))
            in_doubt = doubt / np.maximum(leverage(np.vstack(groups.effects)), 1e-300)
            free[:] = False
            free[np.argpartition(in_doubt, n_open - 1)[:n_open]] = True
        while True:
            counts = np.where(np.arange(k) == best[:, None], groups.size[:, None], 0.0)
            counts[free] = 0.0
            opened = groups.take(np.flatnonzero(free), groups.size[free])
            scale = np.concatenate([row_scale(own) for own in opened.effects])
            solved = solve_continuous(self._model(opened, groups.v(counts), np.zeros(k)))
            if solved is None:
                if free.all():
                    return None
                free |= doubt <= np.quantile(doubt, min(1.0, 2 * free.mean()))
                continue
            counts[free] = solved[0][: opened.cost.size].reshape(-1, k)
            multipliers = solved[1][: len(scale)] / scale
            now, doubt = _choose(groups.reduced(multipliers))
            wrong = ~free & (now != best)
            if not wrong.any():
                return counts, multipliers
            free |= wrong

    def _relaxation(self, groups: _Groups) -> tuple[np.ndarray, np.ndarray] | None:
        """Solve the relaxation over all groups, through samples of growing size."""
        n = len(groups.size)
        multipliers = np.zeros(sum(len(own) for own in groups.effects))
        shuffled = np.random.default_rng(0).permutation(n)
        size, previous = _DIRECT, None
        while size < n:
            sample = shuffled[:size]
            drawn = groups.take(sample, groups.size[sample] * (n / size))
            solved = self._relax(drawn, multipliers, previous)
            if solved is not None:
                multipliers, previous = solved[1], size
            size *= GROWTH
        return self._relax(groups, multipliers, previous)

    def _core_model(self, groups: _Groups, core: np.ndarray, fixed: np.ndarray) -> LinearModel:
        least = np.maximum(1.0 - groups.rows_of_classes(fixed), 0.0)
        return self._model(groups.take(core, groups.size[core]), groups.v(fixed), least)

    def _solve_groups(self, groups: _Groups, tolerance: float) -> Counts:
        """Solve the relaxation, then cores that grow until the gap is met."""
        deadline = self._deadline()
        solved = self._relaxation(groups)
        if solved is None:
            raise self._infeasible(groups)
        counts, multipliers = solved
        doubt = _choose(groups.reduced(multipliers))[1]
        split = (np.abs(counts - np.rint(counts)) > _WHOLE).any(axis=1)
        return self._solve_cores(
            groups,
            Relaxed(counts, self._dual(groups, multipliers), doubt, multipliers),
            np.lexsort((doubt, ~split)),
            _core_sizes(len(doubt), self.n_classes),
            tolerance,
            deadline,
        )

    def _dual(self, groups: _Groups, multipliers: np.ndarray) -> float:
        """Return the lower bound that multipliers prove: Σ size·min(C − A'λ) − σ(−λ)."""
        support = sum(part.support(own) for part, own in self.allowed.split(multipliers))
        return float(groups.size @ groups.reduced(multipliers).min(axis=1)) - support


def _choose(reduced: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every group's class of least reduced cost, and how much worse the second one is."""
    two = np.partition(reduced, 1, axis=1)
    return reduced.argmin(axis=1), two[:, 1] - two[:, 0]


def _core_sizes(n_groups: int, n_classes: int) -> list[int]:
    sizes = [variables // n_classes for variables in _CORE_VARIABLES]
    return [n_groups] if n_groups <= sizes[-1] else sizes
