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
with (`_allocation_search.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

# Rounding of deviations, relative to the bound on their sum.
_ROUNDING = 1e-10
# Rows beyond which the linear relaxation sees some as one.
_MANY = 20_000
# Steps in the search for λ.
_MOST_STEPS = 60
# Numbers in one array.
_ENTRIES = 2_000_000
# Costs that are so few can all be multiples of one.
_FEW = 16
# Moves by one row that an exchange considers, and exchanges in a row.
_EXCHANGED, _MOST_EXCHANGES = 200, 100


@dataclass(frozen=True)
class Dual:
    """Multipliers λ and ν, the bound that they prove at a T, and ones of that T."""

    slope: float
    price: float
    bound: float
    ones: np.ndarray


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
        self.lattice = _lattice(cost)

    def cost_of(self, ones: np.ndarray) -> float:
        """Return Σ f_v(s_v)."""
        return float(self.sums[self.first + ones].sum())

    def shares(self, total: int) -> np.ndarray:
        """Return m n_v."""
        return total / self.n * self.size

    def disparity(self, ones: np.ndarray, total: int) -> float:
        """Return Σ|s_v/n_v − m|."""
        return float((np.abs(ones - self.shares(total)) / self.size).sum())

    def lowest(self, weight: np.ndarray, total: int) -> tuple[np.ndarray, float]:
        """Return how many of the `total` least weights every group has, and their largest.

        They rise in every group, so that these are its first rows.
        """
        largest = float(np.partition(weight, total - 1)[total - 1])
        below = np.add.reduceat(weight < largest, self.start)
        tied = np.add.reduceat(weight == largest, self.start)
        left = total - int(below.sum())
        return below + np.clip(left - (np.cumsum(tied) - tied), 0, tied), largest

    def dual(self, total: int, guess: float, precision: float) -> Dual | None:
        """Return the multipliers of the best bound at a T, None where no ones satisfy it.

        The ones satisfy it.
        """
        # What the one in every row adds to its group's |s/n − m|.
        beyond = 2 * (self.rank - self.shares(total)[self.group]) + 1
        slopes = np.clip(beyond, -1.0, 1.0) / self.size[self.group]
        if self.disparity(self.lowest(slopes, total)[0], total) > self.most:
            return None

        def at(slope: float) -> tuple[float, Dual]:
            ones, largest = self.lowest(self.cost + slope * slopes, total)
            excess = self.disparity(ones, total) - self.most
            return excess, Dual(slope, -largest, self.cost_of(ones) + slope * excess, ones)

        low, high = _maximise(at, guess, precision)
        ones = self._between(low.ones, high.ones, total)
        return replace(max(low, high, key=lambda one: one.bound), ones=ones)

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

    def relaxed_dual(self, total: int, guess: float, precision: float) -> Dual:
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
        none = total / self.n * len(self.size) - self.most

        def at(multiplier: float) -> tuple[float, Dual]:
            weight = cost + multiplier * slope
            order = np.argsort(weight, kind="stable")
            before = np.cumsum(length[order])
            last = min(int(np.searchsorted(before, total)), len(order) - 1)
            order = order[: last + 1]
            taken = length[order]
            taken[-1] -= before[last] - total
            excess = none + float(slope[order] @ taken)
            bound = float(cost[order] @ taken) + multiplier * excess
            return excess, Dual(multiplier, -float(weight[order[-1]]), bound, order)

        return max(_maximise(at, guess, precision), key=lambda one: one.bound)

    def bounds(self, dual: Dual, totals: np.ndarray, *, is_whole: bool) -> np.ndarray:
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
        if is_whole and self.lattice is not None:
            least, unit = self.lattice
            found = totals * least + unit * np.ceil((found - totals * least) / unit - 1e-7)
        return found

    def _ends(self, dual: Dual) -> list[np.ndarray]:
        """Return the ones of every group where |s/n − m| rises, and where it falls."""
        limits = [-dual.price + sign * dual.slope / self.size for sign in (-1, 1)]
        limits = [np.clip(limit, -self.reach, self.reach) + self.offset for limit in limits]
        return [np.searchsorted(self.key, limit) - self.start for limit in limits]

    def _chosen(
        self, dual: Dual, share: np.ndarray, ends: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the whole numbers of ones of least price, and that price."""
        near = np.rint(share)
        share = np.where(np.abs(share - near) < 1e-9, near, share)
        low, high = (np.clip(end(share), *ends).astype(int) for end in (np.floor, np.ceil))
        values = [self._price(dual, ones, ones, share) for ones in (low, high)]
        return np.where(values[1] < values[0], high, low), np.minimum(*values)

    def _price(
        self, dual: Dual, whole: np.ndarray, ones: np.ndarray, share: np.ndarray
    ) -> np.ndarray:
        """Return f_v(whole) + λ|s/n − m| + νs."""
        cost = self.sums[self.first + whole]
        return cost + dual.slope * np.abs(ones - share) / self.size + dual.price * ones

    def exchanged(self, dual: Dual, total: int) -> np.ndarray:
        """Return ones of a T that cost less, by moving a one between two groups again and again."""
        ones, share = dual.ones.copy(), self.shares(total)
        for _ in range(_MOST_EXCHANGES):
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
                break
            ones[more[at]] += 1
            ones[fewer[to]] -= 1
        return ones

    def doubtful(
        self, dual: Dual, total: int, most: float, size: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return the moves of least detour from the ones that multipliers choose.

        Parameters
        ----------
        dual : Dual
            The multipliers.
        total : int
            T.
        most : float
            Largest detour that is worth a look.
        size : int
            How many moves at most.

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
        kept = min(int(np.searchsorted(sorted_detour, most, side="right")), size)
        elsewhere = min(np.r_[sorted_detour, np.inf][kept], detour[[0, -1]].min())
        row, group = np.unravel_index(least[:kept], detour.shape)
        return base, group, ones[row, group], float(elsewhere)

    def multipliers(self, dual: Dual, total: int) -> np.ndarray:
        """Return the multipliers of the deviations that belong to λ and ν at a T, shape (g,)."""
        at = np.minimum(self.shares(total).astype(int), self.size - 1)
        between = self.size * (self.cost[self.start + at] + dual.price)
        return np.clip(between, -dual.slope, dual.slope)


def _maximise(
    at: Callable[[float], tuple[float, Dual]], guess: float, precision: float
) -> tuple[Dual, Dual]:
    """Return the multipliers λ next to the best one, below it and above it.

    Parameters
    ----------
    at : callable
        From λ to the excess over the bound, the derivative of what is proved, and the dual.
    guess : float
        A positive λ to begin with.
    precision : float
        How far from the best bound is near enough.
    """
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


def _lattice(cost: np.ndarray) -> tuple[float, float] | None:
    """Return c and u with all costs at c plus multiples of u; None where they are many."""
    values = np.unique(cost[:: len(cost) // 1000 + 1])
    if len(values) <= _FEW:
        values = np.unique(cost)
    if not 1 < len(values) <= _FEW:
        return None
    unit = float(np.diff(values).min())
    multiples = (values - values[0]) / unit
    is_one = np.abs(multiples - np.rint(multiples)).max() < 1e-9 and multiples[-1] < 1e4
    return (float(values[0]), unit) if is_one else None
