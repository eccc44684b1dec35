"""The search for the number of ones, and for the ones of least cost in every group.

A bound over fractions of ones is convex in their number T, and so holds for all T that are not
looked at one by one. Of the others the T of least bound is always the next to be improved: by
multipliers of its own, which serve its neighbours as well, then by integer models of the numbers
that are in doubt.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._deadline import Deadline
from ._allocation import Allocation, Dual
from ._highs import LIMITS, LinearModel, SolverSession
from ._result import Found

# Share of the tolerance to which multipliers are found.
_PRECISE = 0.01
# Steps in the search for the T of the least relaxed bound, and points that are compared at once.
_MOST_TOTALS, _GRID = 12, 64
# T that are looked at one by one at first, on either side of the best one.
_NEIGHBOURS = 16
# Multipliers that serve new T, the latest ones, and T times groups that are looked at at once.
_KEPT, _ENTRIES = 20, 2_000_000
# Moves in an integer model; the licence that comes with gurobipy allows 2,000 variables.
_MODEL_SIZES = (400, 1500)


class AllocationSearch:
    """The search for the ones of least cost; see the module.

    Parameters
    ----------
    groups : Allocation
        The groups.
    tolerance : float
        Largest difference of cost and bound that is asked for.
    session : SolverSession
        Solves the integer models.
    deadline : Deadline
        When to end.
    """

    def __init__(
        self, groups: Allocation, tolerance: float, session: SolverSession, deadline: Deadline
    ) -> None:
        self.groups, self.tolerance = groups, tolerance
        self.session, self.deadline = session, deadline
        self.precision = max(_PRECISE * tolerance, 1e-13 * float(np.abs(groups.cost).sum()))
        self.best: np.ndarray | None = None
        self.closest, self.least_disparity = np.zeros_like(groups.size), np.inf
        self.objective, self.n_variables = np.inf, 0
        self.duals: list[Dual] = []
        # Of every T in a range its bound, and how many ways to improve it were used up; the bound
        # of those on either side.
        self.totals, self.used = np.empty((2, 0), dtype=int)
        self.bound, self.outside = np.empty(0), np.full(2, -np.inf)

    def run(self) -> Found | None:
        """Return the ones of least cost, to the tolerance; None where none satisfy the bound."""
        groups, status = self.groups, ""
        for total in (1, groups.n - 1):  # one row apart, of a large group
            ones = np.where(total > 1, groups.size, 0)
            ones[groups.size.argmax()] += 1 if total == 1 else -1
            self._take(ones, total)
        multipliers = np.full(len(groups.size), np.nan)
        try:
            centre, relaxed = self._relax()
            multipliers = groups.multipliers(relaxed, centre)
            self._extend(centre - _NEIGHBOURS, centre + _NEIGHBOURS)
            status = self._search()
        except TimeoutError:
            status = "time_limit"
        bound = min(float(self.bound.min(initial=np.inf)), float(self.outside.min()))
        if self.best is None and status not in LIMITS:
            return None
        if self.best is None:
            return Found(self.closest, bound, "closest", multipliers, self.n_variables)
        status = status if status in LIMITS else "gap"
        bound = min(bound, self.objective)
        return Found(self.best, bound, status, multipliers, self.n_variables)

    def _search(self) -> str:
        """Improve the T of least bound again and again; return why that ended."""
        status = ""
        while True:
            lowest = min(float(self.bound.min()), float(self.outside.min()))
            if np.isinf(lowest) or self.objective - lowest <= self.tolerance:
                return status
            where = int(self.bound.argmin())
            if not self.deadline.left:
                status = "time_limit"
            elif self.outside.min() < self.bound[where]:
                width = min(len(self.totals), _NEIGHBOURS + _ENTRIES // len(self.groups.size))
                width *= self.outside == self.outside.min()
                self._extend(self.totals[0] - width[0], self.totals[-1] + width[1])
            elif not self.used[where]:
                self._improve(where)
            elif self.used[where] <= len(_MODEL_SIZES):
                status = self._solve_model(where, _MODEL_SIZES[self.used[where] - 1])
            else:
                return status
            if status in LIMITS:
                return status

    def _relax(self) -> tuple[int, Dual]:
        """Return the T of the least bound over fractions of ones, with its multipliers."""
        groups, guess = self.groups, 0.1 * self.groups.n / len(self.groups.size)
        total = int(np.clip((groups.cost < 0).sum(), 1, groups.n - 1))
        seen: set[int] = set()
        while total not in seen and len(seen) < _MOST_TOTALS:
            seen.add(total)
            self.deadline.check()
            dual = groups.relaxed_dual(total, guess, self.precision)
            self.duals.append(dual)
            guess = dual.slope or guess
            low, high = 1, groups.n - 1
            while True:
                grid = np.unique(np.linspace(low, high, _GRID).astype(int))
                at = int(self._best_bounds(grid, is_whole=False).argmin())
                if len(grid) == high - low + 1:
                    break
                low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
            total = int(grid[at])
        return total, dual

    def _best_bounds(self, totals: np.ndarray, *, is_whole: bool) -> np.ndarray:
        """Return the best bound that all multipliers prove at every T."""
        some = self.duals[-_KEPT:]
        own = [self.groups.bounds(dual, totals, is_whole=is_whole) for dual in some]
        return np.max(own, axis=0)

    def _extend(self, low: int, high: int) -> None:
        """Look at the T from `low` to `high` one by one."""
        groups = self.groups
        totals = np.arange(max(low, 1), min(high, groups.n - 1) + 1)
        bound, used = self._best_bounds(totals, is_whole=True), np.zeros(len(totals), dtype=int)
        # No whole numbers are nearer to equal rates than the rounded ones.
        share = np.multiply.outer(totals / groups.n, groups.size)
        off = (np.abs(np.rint(share) - share) / groups.size).sum(axis=1)
        bound[off > groups.most] = np.inf
        known = np.isin(totals, self.totals)
        bound[known], used[known] = self.bound, self.used
        self.totals, self.bound, self.used = totals, bound, used
        self.outside[:] = -np.inf
        for dual in self.duals[-_KEPT:]:
            self._bound_outside(dual)

    def _bound_outside(self, dual: Dual) -> None:
        """Take what multipliers prove of the T that are not looked at, on either side."""
        low, high = self.totals[[0, -1]]
        value = self.groups.bounds(dual, np.array([low - 1, low, high + 1, high]), is_whole=False)
        # It is convex in T.
        proves = value[::2] >= value[1::2]
        self.outside[proves] = np.maximum(self.outside, value[::2])[proves]
        self.outside[[low <= 1, high >= self.groups.n - 1]] = np.inf

    def _improve(self, where: int) -> None:
        """Find the multipliers of a T, and ones with it."""
        groups, total = self.groups, int(self.totals[where])
        self.used[where] = 1
        guess = self.duals[-1].slope or 0.1 * groups.n / len(groups.size)
        dual = groups.dual(total, guess, self.precision)
        if dual is None:
            self.bound[where] = np.inf
            return
        self.duals.append(dual)
        self.bound = np.maximum(self.bound, groups.bounds(dual, self.totals, is_whole=True))
        self._bound_outside(dual)
        self._take(groups.exchanged(dual, total), total)

    def _take(self, ones: np.ndarray, total: int) -> None:
        """Take ones where they cost less than the best, and satisfy the bound; or the closest."""
        objective, disparity = self.groups.cost_of(ones), self.groups.disparity(ones, total)
        if disparity < self.least_disparity:
            self.closest, self.least_disparity = ones, disparity
        if objective < self.objective and disparity <= self.groups.most:
            self.best, self.objective = ones, objective

    def _solve_model(self, where: int, size: int) -> str:
        """Solve the integer model of a T over the moves of least detour; return its status."""
        groups, total, at = self.groups, int(self.totals[where]), self.totals[[where]]
        self.used[where] += 1
        proved = [float(groups.bounds(one, at, is_whole=True)[0]) for one in self.duals]
        dual, bound = self.duals[int(np.argmax(proved))], max(proved)
        most = self.objective - self.tolerance - bound
        base, group, ones, elsewhere = groups.doubtful(dual, total, most, size)
        if base.sum() == total:
            self._take(base, total)
        n, share, first = len(group), groups.shares(total), groups.first[group]
        if not n:  # all other ones of this T cost more than is worth a look
            self.bound[where] = max(self.bound[where], bound + elsewhere)
            return ""
        cost = groups.sums[first + ones] - groups.sums[first + base[group]]
        off = np.abs(ones - share[group]) - np.abs(base[group] - share[group])
        off /= groups.size[group] * groups.most
        kinds, rows = np.unique(group, return_inverse=True)
        one_each = sp.csr_array((np.ones(n), (rows, np.arange(n))), (len(kinds), n))
        matrix = sp.vstack([sp.csr_array(np.vstack([off, ones - base[group]])), one_each])
        left, missing = 1 - groups.disparity(base, total) / groups.most, total - base.sum()
        lower = np.r_[-np.inf, missing, np.full(len(kinds), -np.inf)]
        upper = np.r_[left, missing, np.ones(len(kinds))]
        model = LinearModel(cost, sp.csr_array(matrix), lower, upper, np.ones(n), n)
        outcome = self.session.solve_linear(model, self.tolerance, None, self.deadline)
        self.n_variables = max(self.n_variables, n)
        if outcome.x is not None:
            found, chosen = base.copy(), outcome.x > 0.5
            found[group[chosen]] = ones[chosen]
            if found.sum() == total:
                self._take(found, total)
        solved = np.inf if outcome.status == "infeasible" else outcome.bound + groups.cost_of(base)
        self.bound[where] = max(self.bound[where], min(solved, bound + elsewhere))
        return outcome.status
