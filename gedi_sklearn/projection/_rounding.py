r"""Rounding of a relaxed solution: the cheapest few steps that restore the constraint.

A basic solution of the relaxation is fractional in as many groups as there are active rows.
Rounding these moves v by about the effect of a row, and so do single steps in the groups whose
reduced cost is nearly 0, at nearly no cost. Two such steps hit an allowed set that is wide
against the effect of one row. Where forbidden directions leave a narrow box, or where v must end
close to the boundary for a small gap, up to eight steps are searched: a tree of all small sets of
steps answers which of them completes another one.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, combinations

import numpy as np
from scipy.spatial import cKDTree

from ._bound import AllowedProduct

__all__ = ["Rounding"]

# Sets of steps of which any two are combined: all sets of so many of the first moves. About 10⁸
# sets of up to eight steps, in half a second.
_COMBINED = {2: 100, 3: 40, 4: 26}
# Sets whose complements are looked up at once, cheapest first.
_QUERIES = 200


class Rounding:
    """Counts around a relaxed solution.

    Parameters
    ----------
    relaxed : ndarray of shape (g,)
        Relaxed counts of ones in every group.
    cost : ndarray of shape (g,)
        Cost of a one.
    size : ndarray of shape (g,)
        Rows of every group.
    effects : ndarray of shape (r, g)
        What a one adds to v.
    allowed : AllowedProduct
        The set in which v has to be.
    pool : ndarray of int
        Groups that may take a step, those with the smallest reduced cost first.
    """

    def __init__(
        self,
        relaxed: np.ndarray,
        cost: np.ndarray,
        size: np.ndarray,
        effects: np.ndarray,
        allowed: AllowedProduct,
        pool: np.ndarray,
    ) -> None:
        self.counts = np.rint(relaxed)
        self.allowed = allowed
        group = np.repeat(pool, 2)
        step = np.tile([1.0, -1.0], len(pool))
        up = step > 0
        possible = np.where(up, self.counts[group] < size[group], self.counts[group] > 0)
        # The last move is none at all, so that a pair can be a single step or standing still.
        self.group, self.step = np.r_[group[possible], 0], np.r_[step[possible], 0.0]
        self.none = len(self.group) - 1
        self.moves = effects[:, self.group] * self.step
        self.price = cost[self.group] * self.step
        self.v = effects @ self.counts

    def by_pairs(self) -> np.ndarray | None:
        """Return the cheapest allowed counts within two steps, or None."""
        pairs = np.column_stack(np.triu_indices(self.none + 1, k=1))
        pairs = np.vstack([pairs, [[self.none, self.none]]])
        v = self.v[:, None] + self.moves[:, pairs[:, 0]] + self.moves[:, pairs[:, 1]]
        return self._cheapest(pairs[self.allowed.contains(v)])

    def into_box(
        self, centre: np.ndarray, half_widths: np.ndarray, prices: tuple[float, float] | None
    ) -> np.ndarray | None:
        """Return the cheapest counts within eight steps that bring v into a box.

        Parameters
        ----------
        centre, half_widths : ndarray of shape (r,)
            The box.
        prices : tuple of (float, float) or None
            Range in which the steps' price has to be; None for any.

        Returns
        -------
        ndarray of shape (g,) or None
        """
        sets = _step_sets(self.none)
        sets = sets[np.argsort(np.abs(self.price[sets].sum(axis=1)))]
        moves, wanted, unit = self.moves, centre - self.v, half_widths
        if prices is not None:
            # The price is one more coordinate of a step, and its range one more side of the box.
            low, high = prices
            moves = np.vstack([moves, self.price])
            wanted, unit = np.r_[wanted, (low + high) / 2], np.r_[unit, (high - low) / 2]
        unit = np.where(unit > 0, unit, np.finfo(float).tiny)
        points = (moves / unit[:, None])[:, sets].sum(axis=2).T
        tree = cKDTree(points)
        for start in range(0, len(sets), _QUERIES):
            rows = np.arange(start, min(start + _QUERIES, len(sets)))
            # A hair inside the box, so that rounding in these units does not end outside of it.
            found = tree.query_ball_point(wanted / unit - points[rows], r=1 - 1e-9, p=np.inf)
            lengths = np.fromiter(map(len, found), dtype=int, count=len(found))
            other = np.fromiter(chain.from_iterable(found), dtype=int, count=int(lengths.sum()))
            counts = self._cheapest(np.hstack([sets[np.repeat(rows, lengths)], sets[other]]))
            if counts is not None:
                return counts
        return None

    def _cheapest(self, sets: np.ndarray) -> np.ndarray | None:
        """Take the steps of the cheapest set in which no group takes two."""
        is_none = sets == self.none
        label = np.where(is_none, -1 - np.arange(sets.shape[1]), self.group[sets])
        sets = sets[(np.diff(np.sort(label, axis=1), axis=1) != 0).all(axis=1)]
        if not len(sets):
            return None
        chosen = sets[np.argmin(self.price[sets].sum(axis=1))]
        counts = self.counts.copy()
        np.add.at(counts, self.group[chosen], self.step[chosen])
        return counts


@lru_cache(maxsize=8)
def _step_sets(none: int) -> np.ndarray:
    """Return the sets of steps that are combined, of the moves before `none`, filled up by it."""
    longest = max(_COMBINED)
    return np.asarray(
        [
            (*chosen, *[none] * (longest - length))
            for length, first in _COMBINED.items()
            for chosen in combinations(range(min(none, first)), length)
        ],
        dtype=int,
    ).reshape(-1, longest)
