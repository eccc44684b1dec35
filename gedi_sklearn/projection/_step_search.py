r"""Search for the few steps that bring v into an allowed set.

Up to six steps are searched, any two of about 10⁴ small sets: a tree of all their effects answers
which of them completes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from .._deadline import Deadline

__all__ = ["CHEAP", "NEAR", "Moves", "StepSearch", "moved"]

# Sets of steps of which any two are combined, about 10⁸ sets of up to six steps in a tenth of a
# second: all sets of so many of the first moves, and where these do not do, of more moves the sets
# nearest to what is wanted.
CHEAP = ((1, 300), (2, 150), (3, 30))
NEAR = ((1, 1500), (2, 1000), (3, 60))
_KEPT = 30_000
# Sets whose complements are looked up at once, cheapest first: few at first, then ever more, but
# not so many that a deadline is missed.
_FIRST_BATCH, _LARGEST_BATCH = 16, 512
# Points in a leaf of their tree: a quarter faster than with scipy's own number.
_LEAF = 64
# Complements to look at before giving up.
_MOST_CANDIDATES = 2**18


class Moves(NamedTuple):
    """Steps of one row each.

    Attributes
    ----------
    group : ndarray of int, shape (m,)
        Whose row moves.
    change : ndarray of shape (columns, m)
        What it adds to the group's counts.
    effect : ndarray of shape (r, m)
        What it adds to v.
    detour : ndarray of shape (m,)
        What it costs at least, at the multipliers of the relaxation.
    """

    group: np.ndarray
    change: np.ndarray
    effect: np.ndarray
    detour: np.ndarray


class StepSearch:
    """Sets of moves that lead from counts into an allowed set.

    Parameters
    ----------
    v : ndarray of shape (r,)
        Where the moves start.
    moves : Moves
        The moves, those of least detour first.
    price : ndarray of shape (m,)
        What is minimised over the sets of moves.
    contains : callable
        Tells for columns of v whether they are allowed.
    """

    def __init__(
        self,
        v: np.ndarray,
        moves: Moves,
        price: np.ndarray,
        contains: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        # Moves of the same effect can stand in for each other: the nearest of each goes first.
        order = np.argsort(_occurrence(moves.effect), kind="stable")
        # The last move is none at all, so that a pair can be a single move or standing still.
        self.none = len(order)
        self.order = np.r_[order, -1]
        self.group = np.r_[moves.group[order], -1]
        self.effect = np.column_stack([moves.effect[:, order], np.zeros(len(v))])
        self.detour = np.r_[moves.detour[order], 0.0]
        self.price = np.r_[price[order], 0.0]
        self.v = v
        self.contains = contains

    def by_pairs(self) -> np.ndarray | None:
        """Return the cheapest allowed set of up to two moves, or None."""
        pairs = np.column_stack(np.triu_indices(self.none + 1, k=1))
        pairs = np.vstack([pairs, [[self.none, self.none]]])
        v = self.v[:, None] + self.effect[:, pairs[:, 0]] + self.effect[:, pairs[:, 1]]
        found = self._cheapest(pairs[self.contains(v)])
        return None if found is None else found[0]

    def near_optimum(
        self,
        box: tuple[np.ndarray, np.ndarray, np.ndarray],
        tolerance: float,
        enough: float,
        deadline: Deadline,
        combinations: Sequence[tuple[tuple[int, int], ...]] = (CHEAP, NEAR),
    ) -> np.ndarray | None:
        """Return an allowed set of up to six moves, at a price below `enough` if any is seen.

        Parameters
        ----------
        box : tuple of (T, c, h)
            |T v − c| ≤ h is where v is looked for.
        tolerance : float
            Largest detour of half a set.
        enough : float
            Price at which the search ends.
        deadline : Deadline
            When it ends with what was seen.
        combinations : sequence of CHEAP and NEAR
            Which sets are combined: the next one where the former leads nowhere.

        Returns
        -------
        ndarray of int or None
            Positions of the moves as they were given.
        """
        transform, centre, half_widths = box
        steps, wanted = transform @ self.effect, centre - transform @ self.v
        # A box without width has some in these units: what is found is checked in its own.
        reach = np.abs(steps).max(axis=1) + np.abs(wanted)
        unit = np.maximum(half_widths, 1e-12 * reach)
        unit = np.where(unit > 0, unit, 1.0)
        steps, wanted = steps / unit[:, None], wanted / unit
        best, least = None, np.inf
        for combined in combinations:
            sets = _step_sets(self.none, combined)
            sets = sets[self.detour[sets].sum(axis=1) <= tolerance]
            if combined is NEAR:
                # What two sets bring to `wanted` lies about its middle.
                off = sum(steps[:, column] for column in sets.T) - wanted[:, None] / 2
                sets = sets[_smallest(np.abs(off).max(axis=0), _KEPT)]
            sets = sets[np.argsort(self.detour[sets].sum(axis=1), kind="stable")]
            for pairs in self._meeting(sets, steps, wanted, deadline):
                v = self.v[:, None] + self.effect[:, pairs].sum(axis=2)
                found = self._cheapest(pairs[self.contains(v)])
                if found is not None and found[1] < least:
                    best, least = found
                    if least <= enough:
                        break
            if best is not None:
                break
        return best

    def _meeting(
        self, sets: np.ndarray, steps: np.ndarray, wanted: np.ndarray, deadline: Deadline
    ) -> Iterator[np.ndarray]:
        """Yield pairs of sets whose steps together are near to what is wanted, in batches."""
        points = steps[:, sets].sum(axis=2).T
        tree = cKDTree(points, leafsize=_LEAF)
        start, batch, seen = 0, _FIRST_BATCH, 0
        while start < len(sets) and seen < _MOST_CANDIDATES and deadline.left:
            rows = np.arange(start, min(start + batch, len(sets)))
            # A hair inside the box, so that rounding in these units does not end outside of it.
            near = tree.query_ball_point(wanted - points[rows], r=1 - 1e-9, p=np.inf)
            lengths = np.fromiter(map(len, near), dtype=int, count=len(near))
            other = np.fromiter(chain.from_iterable(near), dtype=int, count=int(lengths.sum()))
            yield np.hstack([sets[np.repeat(rows, lengths)], sets[other]])
            start, seen = start + batch, seen + len(other)
            if len(other) < _MOST_CANDIDATES // 16:
                batch = min(2 * batch, _LARGEST_BATCH)

    def _cheapest(self, sets: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Return the cheapest set in which no group moves twice, and its price."""
        is_none = sets == self.none
        label = np.where(is_none, -1 - np.arange(sets.shape[1]), self.group[sets])
        sets = sets[(np.diff(np.sort(label, axis=1), axis=1) != 0).all(axis=1)]
        if not len(sets):
            return None
        price = self.price[sets].sum(axis=1)
        chosen = sets[np.argmin(price)]
        return self.order[chosen[chosen < self.none]], float(price.min())


def moved(counts: np.ndarray, moves: Moves, chosen: np.ndarray) -> np.ndarray:
    counts = counts.copy()
    np.add.at(counts, moves.group[chosen], moves.change[:, chosen].T)
    return counts


@lru_cache(maxsize=8)
def _step_sets(none: int, combined: tuple[tuple[int, int], ...]) -> np.ndarray:
    """Return the sets of steps that are combined, of the moves before `none`, filled up by it."""
    sets = []
    for length, first in combined:
        grid = np.indices((min(none, first),) * length, dtype=np.int32).reshape(length, -1)
        rising = grid[:, (np.diff(grid, axis=0) > 0).all(axis=0)]
        sets.append(np.pad(rising.T, ((0, 0), (0, 3 - length)), constant_values=none))
    return np.vstack(sets)


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of so many smallest values."""
    return np.argpartition(values, count)[:count] if count < len(values) else np.arange(len(values))


def _occurrence(columns: np.ndarray) -> np.ndarray:
    """Return for every column how many equal ones come before it."""
    label = np.unique(columns, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(label, kind="stable")
    first = np.r_[True, np.diff(label[order]) != 0]
    position = np.arange(len(label))
    occurrence = np.empty(len(label), dtype=int)
    occurrence[order] = position - np.maximum.accumulate(np.where(first, position, 0))
    return occurrence
