r"""Search for the few steps that bring v into an allowed set.

Up to six steps are searched, any two of about 10⁴ small sets: a tree of all their effects answers
which of them completes another one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from .._deadline import Deadline

__all__ = ["Moves", "StepSearch", "moved"]

# Sets of steps of which any two are combined: all sets of so many of the first moves. About 10⁸
# sets of up to six steps, in a tenth of a second.
_COMBINED = {1: 300, 2: 150, 3: 30}
# Sets whose complements are looked up at once, cheapest first: few at first, then ever more, but
# not so many that a deadline is missed.
_FIRST_BATCH, _LARGEST_BATCH = 16, 512
# Complements to look at before giving up.
_MOST_CANDIDATES = 2**21


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
        sets = _step_sets(self.none)
        detour = self.detour[sets].sum(axis=1)
        order = np.argsort(detour, kind="stable")
        sets = sets[order[detour[order] <= tolerance]]
        points = steps[:, sets].sum(axis=2).T
        tree = cKDTree(points)
        best, least = None, np.inf
        start, batch, seen = 0, _FIRST_BATCH, 0
        while start < len(sets) and seen < _MOST_CANDIDATES and deadline.left:
            rows = np.arange(start, min(start + batch, len(sets)))
            # A hair inside the box, so that rounding in these units does not end outside of it.
            near = tree.query_ball_point(wanted - points[rows], r=1 - 1e-9, p=np.inf)
            lengths = np.fromiter(map(len, near), dtype=int, count=len(near))
            other = np.fromiter(chain.from_iterable(near), dtype=int, count=int(lengths.sum()))
            pairs = np.hstack([sets[np.repeat(rows, lengths)], sets[other]])
            v = self.v[:, None] + self.effect[:, pairs].sum(axis=2)
            found = self._cheapest(pairs[self.contains(v)])
            if found is not None and found[1] < least:
                best, least = found
                if least <= enough:
                    break
            start, seen = start + batch, seen + len(other)
            if len(other) < _MOST_CANDIDATES // 16:
                batch = min(2 * batch, _LARGEST_BATCH)
        return best

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


def _occurrence(columns: np.ndarray) -> np.ndarray:
    """Return for every column how many equal ones come before it."""
    label = np.unique(columns, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(label, kind="stable")
    first = np.r_[True, np.diff(label[order]) != 0]
    position = np.arange(len(label))
    occurrence = np.empty(len(label), dtype=int)
    occurrence[order] = position - np.maximum.accumulate(np.where(first, position, 0))
    return occurrence
