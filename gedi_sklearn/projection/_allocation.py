r"""Two classes under a bound on the DIDI: how many ones to allocate to every group.

With T ones in all, m = T/N their share, and f_v(s) the least cost of s ones among the n_v rows of
group v, a convex function of s, the problem is

.. math:: \min_s \sum_v f_v(s_v) \quad\text{s.t.}\quad \sum_v s_v = T,\;
   \sum_v |s_v / n_v - m| \le q .

For a given T the multipliers λ ≥ 0 of the bound and ν of the sum prove

.. math:: B(T) = \sum_v \min_s \{f_v(s) + \lambda |s/n_v - m| + \nu s\} - \lambda q - \nu T

as a lower bound, over whole numbers s a far better one than the linear relaxation's: a group of 18
moves in steps of 1/18. At a given λ the best s are the T rows of least cost and slope together, so
that λ alone is searched for. What the multipliers prove of other T is the best they have to begin
with (:class:`AllocationSearch`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ._cells import common_unit, multiple_from
from ._result import Found
from ._search import MOST_COLUMNS
from ._solver import LIMITS, Deadline, LinearModel, SolverSession

# Rounding of deviations, relative to the bound on their sum.
_ROUNDING = 1e-10
# Rows beyond which the linear relaxation sees some as one.
_MANY = 20_000
# Steps in the search for λ.
_MOST_STEPS = 60
# Numbers in one array: T times groups that are looked at at once.
_ENTRIES = 2_000_000
# Moves by one row that an exchange considers.
_EXCHANGED = 200
# Share of the tolerance to which multipliers are found.
_PRECISE = 0.01
# T whose relaxed bounds are compared at once.
_GRID = 64
# T that are looked at one by one at first, on either side of the best one.
_NEIGHBOURS = 16


@dataclass(frozen=True)
class Prices:
    """Multipliers λ and ν, the bound that they prove at a T, and the rows that they make ones."""

    slope: float
    price: float
    bound: float
    taken: np.ndarray


class Allocation:
    """The groups, their sorted costs, and the bound on their deviations.

    Parameters
    ----------
    cost : ndarray of shape (n,)
        The cost of a one in every row, group after group, rising in each.
    size : ndarray of int, shape (g,)
        Rows of every group.
    most : float
        q.
    unit : float
        What counts as 1 of q, for rounding.
    """

    def __init__(self, cost: np.ndarray, size: np.ndarray, most: float, unit: float) -> None:
        self.cost, self.size, self.most = cost, size, most + _ROUNDING * unit
        self.n, self.start = len(cost), np.cumsum(size) - size
        self.group = np.repeat(np.arange(len(size)), size)
        self.rank = np.arange(self.n) - self.start[self.group]
        # f_v(s) is sums[first + s].
        self.first = self.start + np.arange(len(size))
        sums = np.cumsum(np.insert(cost, self.start, 0.0))
        self.sums = sums - np.repeat(sums[self.first], size + 1)
        # Groups one after another on one scale, so that one search serves all of them.
        reach = 1.0 + 2 * float(np.abs(cost).max())
        self.reach, self.offset = reach, 2 * reach * np.arange(len(size))
        self.key = cost + self.offset[self.group]
        # The costs of as many ones differ by multiples of a unit.
        self.least = float(cost.min())
        self.cost_unit = common_unit(cost - self.least)

    def cost_of(self, ones: np.ndarray) -> float:
        """Return Σ f_v(s_v)."""
        return float(self.sums[self.first + ones].sum())

    def shares(self, total: int) -> np.ndarray:
        """Return m n_v."""
        return total / self.n * self.size

    def disparity(self, ones: np.ndarray, total: int) -> float:
        """Return Σ|s_v/n_v − m|."""
        return float((np.abs(ones - self.shares(total)) / self.size).sum())

    def ones(self, rows: np.ndarray) -> np.ndarray:
        """Return how many of some rows every group has."""
        return np.bincount(self.group[rows], minlength=len(self.size))

    def dual(self, total: int, guess: float, precision: float) -> tuple[Prices, np.ndarray] | None:
        """Return the multipliers of the best bound at a T, and ones that satisfy the bound on q.

        None where no ones do.
        """
        # What the one in every row adds to its group's |s/n − m|.
        beyond = 2 * (self.rank - self.shares(total)[self.group]) + 1
        slope = np.clip(beyond, -1.0, 1.0) / self.size[self.group]
        fairest = self.ones(np.argsort(slope, kind="stable")[:total])
        if self.disparity(fairest, total) > self.most:
            return None
        low, high = self._maximise(self.cost, slope, np.ones(self.n), total, guess, precision)
        ones = self._between(self.ones(low.taken), self.ones(high.taken), total)
        return max(low, high, key=lambda one: one.bound), ones

    def _between(self, least: np.ndarray, ones: np.ndarray, total: int) -> np.ndarray:
        """Return ones on the way from the cheapest ones to allowed ones, the first allowed."""
        low, high, way = 0.0, 1.0, np.cumsum(ones - least)
        for _ in range(_MOST_STEPS):
            middle = (low + high) / 2
            # What rounding leaves to one group, it takes from the next.
            some = least + np.diff(np.rint(middle * way), prepend=0.0).astype(int)
            if self.disparity(some, total) > self.most:
                low = middle
            else:
                high, ones = middle, some
        return ones

    def relaxed_dual(self, total: int, guess: float, precision: float) -> Prices:
        """Return the multipliers of the best bound at a T over fractions of ones.

        Of very many rows, neighbours in a group's order are seen as one.
        """
        start = np.flatnonzero(self.rank % (self.n // _MANY + 1) == 0)
        length = np.diff(start, append=self.n).astype(float)
        cost = np.add.reduceat(self.cost, start) / length
        size, lowest = self.size[self.group[start]], self.rank[start]
        share = total / self.n * size
        # Where a share falls, a part of a row is below it and a part above it.
        split = np.flatnonzero((lowest < share) & (share < lowest + length))
        slope = np.where(lowest < share, -1.0, 1.0) / size
        above = lowest[split] + length[split] - share[split]
        length[split] -= above
        length, cost = np.r_[length, above], np.r_[cost, cost[split]]
        slope = np.r_[slope, 1 / size[split]]
        both = self._maximise(cost, slope, length, total, guess, precision)
        return max(both, key=lambda one: one.bound)

    def _maximise(
        self,
        cost: np.ndarray,
        slope: np.ndarray,
        length: np.ndarray,
        total: int,
        guess: float,
        precision: float,
    ) -> tuple[Prices, Prices]:
        """Return the multipliers λ next to the best one at a T, below it and above it.

        Parameters
        ----------
        cost, slope, length : ndarray of shape (pieces,)
            What a one in a piece costs and adds to the deviations, and how many it holds.
        total : int
            T.
        guess : float
            A positive λ to begin with.
        precision : float
            How far from the best bound is near enough.
        """
        without = float(self.shares(total) @ (1 / self.size)) - self.most

        def at(multiplier: float) -> tuple[float, Prices]:
            """Return the excess over the bound on q, which is the derivative, and the dual."""
            weight = cost + multiplier * slope
            order = np.argsort(weight, kind="stable")
            before = np.cumsum(length[order])
            last = min(int(np.searchsorted(before, total)), len(order) - 1)
            order = order[: last + 1]
            taken = length[order]
            taken[-1] -= before[last] - total
            excess = without + float(slope[order] @ taken)
            bound = float(cost[order] @ taken) + multiplier * excess
            return excess, Prices(multiplier, -float(weight[order[-1]]), bound, order)

        rises, low = at(0.0)
        if rises <= 0:
            return low, low
        high, multiplier, best = None, guess, low.bound
        for _ in range(_MOST_STEPS):
            excess, found = at(multiplier)
            best = max(best, found.bound)
            if excess > 0:
                low, rises = found, excess
            else:
                high, falls = found, excess
            if high is None:
                multiplier *= 4
                continue
            # The next one is where the tangents on both sides meet.
            meets = high.bound - low.bound + rises * low.slope - falls * high.slope
            multiplier = meets / (rises - falls)
            top = low.bound + rises * (multiplier - low.slope)
            if top - best <= precision or not low.slope < multiplier < high.slope:
                break
        assert high is not None
        return low, high

    def bounds(self, dual: Prices, totals: np.ndarray, *, is_whole: bool) -> np.ndarray:
        """Return the bounds that multipliers prove at some T, over whole or any numbers of ones."""
        found, step = np.empty(len(totals)), max(_ENTRIES // len(self.size), 1)
        ends = self._ends(dual)
        for some in range(0, len(totals), step):
            share = np.multiply.outer(totals[some : some + step] / self.n, self.size)
            if is_whole:
                values = self._chosen(dual, share, ends)[1]
            else:
                ones = np.clip(share, *ends)
                whole = np.minimum(ones.astype(int), self.size - 1)
                values = (ones - whole) * self.cost[self.start + whole]
                values += self._price(dual, whole, ones, share)
            found[some : some + step] = values.sum(axis=1)
        found -= dual.slope * self.most + dual.price * totals
        if is_whole:
            least = totals * self.least
            found = least + multiple_from(found - least, self.cost_unit)
        return found

    def _ends(self, dual: Prices) -> list[np.ndarray]:
        """Return the ones of every group where |s/n − m| rises, and where it falls."""
        limits = [-dual.price + sign * dual.slope / self.size for sign in (-1, 1)]
        limits = [np.clip(limit, -self.reach, self.reach) + self.offset for limit in limits]
        return [np.searchsorted(self.key, limit) - self.start for limit in limits]

    def _chosen(
        self, dual: Prices, share: np.ndarray, ends: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the whole numbers of ones of least price, and that price."""
        near = np.rint(share)
        share = np.where(np.abs(share - near) < 1e-9, near, share)
        low, high = (np.clip(end(share), *ends).astype(int) for end in (np.floor, np.ceil))
        values = [self._price(dual, ones, ones, share) for ones in (low, high)]
        return np.where(values[1] < values[0], high, low), np.minimum(*values)

    def _price(
        self, dual: Prices, whole: np.ndarray, ones: np.ndarray, share: np.ndarray
    ) -> np.ndarray:
        """Return f_v(whole) + λ|s/n − m| + νs."""
        cost = self.sums[self.first + whole]
        return cost + dual.slope * np.abs(ones - share) / self.size + dual.price * ones

    def exchanged(self, dual: Prices, ones: np.ndarray, total: int) -> np.ndarray:
        """Return ones of a T that cost less, by moving a one between two groups again and again."""
        ones, share = ones.copy(), self.shares(total)
        while True:
            off = np.abs(ones - share)
            left = self.most - float((off / self.size).sum())
            moves = []
            for step in (1, -1):
                can = np.flatnonzero((ones < self.size) if step > 0 else (ones > 0))
                price = step * self.cost[self.start[can] + ones[can] + min(step, 0)]
                away = (np.abs(ones[can] + step - share[can]) - off[can]) / self.size[can]
                near = np.argsort(price + dual.slope * away, kind="stable")[:_EXCHANGED]
                moves.append((can[near], price[near], away[near]))
            (more, *gain), (fewer, *loss) = moves
            price, away = (np.add.outer(*both) for both in zip(gain, loss, strict=True))
            price[away > left] = np.inf
            at, to = np.unravel_index(price.argmin(), price.shape)
            if price[at, to] >= -1e-12:
                return ones
            ones[more[at]] += 1
            ones[fewer[to]] -= 1

    def doubtful(
        self, dual: Prices, total: int, most: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return the moves of least detour from the ones that multipliers choose, for one model.

        Parameters
        ----------
        dual : Prices
            The multipliers.
        total : int
            T.
        most : float
            Largest detour that is worth a look.

        Returns
        -------
        base : ndarray of int, shape (g,)
            The ones that are chosen.
        group, ones : ndarray of int, shape (moves,)
            Which group has how many ones after a move.
        elsewhere : float
            What any other move costs at least.
        """
        share = self.shares(total)
        base, value = self._chosen(dual, share, self._ends(dual))
        width = max(_ENTRIES // 20 // len(base), 2)
        step = np.r_[-width:0, 1 : width + 1][:, None]
        ones = base + step
        outside = (ones < 0) | (ones > self.size)
        price = self._price(dual, np.where(outside, base, ones), ones, share)
        detour = np.where(outside, np.inf, np.maximum(price - value, 0.0))
        # It rises from the base on: beyond the last step it is no less than there.
        least = np.argsort(detour, axis=None, kind="stable")
        sorted_detour = detour.ravel()[least]
        kept = min(int(np.searchsorted(sorted_detour, most, side="right")), MOST_COLUMNS)
        elsewhere = min(np.r_[sorted_detour, np.inf][kept], detour[[0, -1]].min())
        row, group = np.unravel_index(least[:kept], detour.shape)
        return base, group, ones[row, group], float(elsewhere)

    def multipliers(self, dual: Prices, total: int) -> np.ndarray:
        """Return the multipliers of the deviations that belong to λ and ν at a T, shape (g,)."""
        at = np.minimum(self.shares(total).astype(int), self.size - 1)
        between = self.size * (self.cost[self.start + at] + dual.price)
        return np.clip(between, -dual.slope, dual.slope)


class AllocationSearch:
    """The search for the number of ones, and for the ones of least cost in every group.

    A bound over fractions of ones is convex in their number T, and so holds for all T that are not
    looked at one by one. Of the others the T of least bound is always the next to be improved: by
    multipliers of its own, which serve its neighbours as well, then by an integer model of the
    numbers that are in doubt.

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
        self.duals: list[Prices] = []
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
            elif self.used[where] == 0:
                self._improve(where)
            elif self.used[where] == 1:
                status = self._solve_model(where)
            else:
                return status
            if status in LIMITS:
                return status

    def _relax(self) -> tuple[int, Prices]:
        """Return the T of the least bound over fractions of ones, with its multipliers."""
        groups, guess = self.groups, 0.1 * self.groups.n / len(self.groups.size)
        total = int(np.clip((groups.cost < 0).sum(), 1, groups.n - 1))
        seen: set[int] = set()
        while total not in seen:
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
        own = [self.groups.bounds(dual, totals, is_whole=is_whole) for dual in self.duals]
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
        for dual in self.duals:
            self._bound_outside(dual)

    def _bound_outside(self, dual: Prices) -> None:
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
        found = groups.dual(total, guess, self.precision)
        if found is None:
            self.bound[where] = np.inf
            return
        dual, ones = found
        self.duals.append(dual)
        self.bound = np.maximum(self.bound, groups.bounds(dual, self.totals, is_whole=True))
        self._bound_outside(dual)
        self._take(groups.exchanged(dual, ones, total), total)

    def _take(self, ones: np.ndarray, total: int) -> None:
        """Take ones where they cost less than the best, and satisfy the bound; or the closest."""
        objective, disparity = self.groups.cost_of(ones), self.groups.disparity(ones, total)
        if disparity < self.least_disparity:
            self.closest, self.least_disparity = ones, disparity
        if objective < self.objective and disparity <= self.groups.most:
            self.best, self.objective = ones, objective

    def _solve_model(self, where: int) -> str:
        """Solve the integer model of a T over the moves of least detour; return its status."""
        groups, total, at = self.groups, int(self.totals[where]), self.totals[[where]]
        self.used[where] += 1
        proved = [float(groups.bounds(one, at, is_whole=True)[0]) for one in self.duals]
        dual, bound = self.duals[int(np.argmax(proved))], max(proved)
        most = self.objective - self.tolerance - bound
        base, group, ones, elsewhere = groups.doubtful(dual, total, most)
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
