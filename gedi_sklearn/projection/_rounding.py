r"""Rounding of a relaxed solution: the cheapest few steps that restore the constraint.

A basic solution of the relaxation is fractional in as many groups as there are active rows.
Rounding these moves v by about the effect of a row, and so do single steps in the groups whose
reduced cost is nearly 0, at nearly no cost. Two such steps hit an allowed set that is wide
against the effect of one row. Where forbidden directions leave a narrow box, up to eight steps are
searched: a tree of all small sets of steps answers which of them completes another one.
"""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
from scipy.spatial import cKDTree

from ..constraints import AllowedSet

__all__ = ["round_counts"]

# Sets of steps of which any two are combined: all sets of so many of the first moves. About 10⁸
# sets of up to eight steps, in half a second.
_COMBINED = {2: 100, 3: 40, 4: 26}


def round_counts(
    relaxed: np.ndarray,
    cost: np.ndarray,
    size: np.ndarray,
    effects: np.ndarray,
    allowed: AllowedSet,
    pool: np.ndarray,
) -> np.ndarray | None:
    """Return cheap allowed counts within a few steps of the rounded relaxation.

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
    allowed : AllowedSet
        The set in which v has to be.
    pool : ndarray of int
        Groups that may take a step, those with the smallest reduced cost first.

    Returns
    -------
    ndarray of shape (g,) or None
        None where no such steps lead into the set.
    """
    counts = np.rint(relaxed)
    group = np.repeat(pool, 2)
    step = np.tile([1.0, -1.0], len(pool))
    possible = np.where(step > 0, counts[group] < size[group], counts[group] > 0)
    # The last move is none at all, so that a pair can be a single step or standing still.
    group, step = np.r_[group[possible], 0], np.r_[step[possible], 0.0]
    none = len(group) - 1
    moves, price = effects[:, group] * step, cost[group] * step
    v = effects @ counts
    sets = np.vstack([np.column_stack(np.triu_indices(none + 1, k=1)), [[none, none]]])
    inside = _inside(v[:, None] + moves[:, sets[:, 0]] + moves[:, sets[:, 1]], allowed)
    sets = sets[inside]
    if not len(sets) and allowed.bounds is not None:
        sets = _complete_sets(v, moves, allowed.bounds)
    # A group that takes two steps could run out of rows.
    label = np.where(sets == none, -1 - np.arange(sets.shape[1]), group[sets])
    sets = sets[(np.diff(np.sort(label, axis=1), axis=1) != 0).all(axis=1)]
    if not len(sets):
        return None
    chosen = sets[np.argmin(price[sets].sum(axis=1))]
    np.add.at(counts, group[chosen], step[chosen])
    return counts


def _complete_sets(v: np.ndarray, moves: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return sets of moves that bring v into the box: any two small sets that do together."""
    none = moves.shape[1] - 1
    longest = max(_COMBINED)
    sets = np.asarray(
        [
            (*chosen, *[none] * (longest - length))
            for length, first in _COMBINED.items()
            for chosen in combinations(range(min(none, first)), length)
        ],
        dtype=int,
    ).reshape(-1, longest)
    unit = np.where(bounds > 0, bounds, np.finfo(float).tiny)
    points = (moves / unit[:, None])[:, sets].sum(axis=2).T
    # A hair inside the box, so that rounding in these units does not end outside of it.
    found = cKDTree(points).query_ball_point(-v / unit - points, r=1 - 1e-9, p=np.inf)
    lengths = np.fromiter(map(len, found), dtype=int, count=len(found))
    other = np.fromiter(chain.from_iterable(found), dtype=int, count=int(lengths.sum()))
    return np.hstack([sets[np.repeat(np.arange(len(sets)), lengths)], sets[other]])


def _inside(v: np.ndarray, allowed: AllowedSet) -> np.ndarray:
    """Tell for every column of v whether it is in the set."""
    if allowed.bounds is None:
        return np.abs(v).sum(axis=0) <= (allowed.radius or 0.0)
    return (np.abs(v) <= allowed.bounds[:, None]).all(axis=0)
