r"""Rounding of a relaxed solution: the cheapest few steps that restore the constraint.

A basic solution of the relaxation is fractional in as many groups as there are active rows.
Rounding these moves v by about the effect of a row, and so do single steps in the groups whose
reduced cost is nearly 0, at nearly no cost. Two such steps hit an allowed set that is wide
against the effect of one row. Where forbidden directions leave a narrow box, or where v must end
close to the boundary for a small gap, up to six steps are searched, any two of about 10⁴ small
sets: a tree of all their effects answers which of them completes another one. What counts are
only the directions in which leaving the relaxed v costs something.

With more than two classes the v of one class after another is brought into its set by moves to and
from classes that are still to come. The last class gets what the others leave, so every step also
keeps the sum of what was left within the set of the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from ..constraints import Product
from ._cores import Relaxed
from ._groups import Groups
from ._highs import solve_continuous
from ._linear_model import LinearModel

__all__ = ["StepSearch", "rounded_classes", "rounded_ones"]

# Fewer groups than this are solved by an integer model faster than by a search for many steps.
_SEARCHED_GROUPS = 100
# Groups that may take a step.
_POOL = 300
# Rounding starts from the relaxation, then from ones in which only so large a share of the pool is
# not whole, the groups of small effects: what is left to round is small then too. Where all that
# leads nowhere, so many tolerances may be lost.
_SHARES = (1.0, 0.85, 0.7)
_WIDENING = 30
# Likewise with more classes, each of which takes its part of the tolerance.
_CLASS_WIDENINGS = (1, 3, 10, 30)

# Sets of steps of which any two are combined: all sets of so many of the first moves. About 10⁸
# sets of up to six steps, in a tenth of a second.
_COMBINED = {1: 300, 2: 150, 3: 30}
# Sets whose complements are looked up at once, cheapest first: few at first, then ever more.
_FIRST_BATCH = 16
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
        while start < len(sets) and seen < _MOST_CANDIDATES:
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
                batch *= 2
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


def rounded_ones(
    relaxed: Relaxed,
    groups: Groups,
    nearest: np.ndarray,
    tolerance: float,
    core_model: Callable[[np.ndarray, np.ndarray], LinearModel],
) -> Iterator[np.ndarray]:
    """Yield allowed counts of the second of two classes near the relaxation, from other starts.

    Parameters
    ----------
    relaxed : Relaxed
        The relaxation.
    groups : Groups
        The groups.
    nearest : ndarray of int
        Groups by their reduced cost, the smallest first.
    tolerance : float
        How much above the relaxation's bound the cost may be.
    core_model : callable
        From some groups, and the counts of all others, to their model.

    Yields
    ------
    ndarray of shape (g, 1)
        Counts that leave each class a row.
    """
    pool = nearest[:_POOL]
    one = np.ones((1, len(pool)))
    weighted = groups.effects(pool, one) * relaxed.multipliers[:, None]
    by_reach = np.argsort(np.argsort(np.abs(weighted).sum(axis=0), kind="stable"), kind="stable")
    none_yet = True
    for share, widening in [*((share, 1) for share in _SHARES), (1.0, _WIDENING)]:
        if widening > 1 and not none_yet:
            break
        nearby = pool[by_reach < share * len(pool)]
        start = relaxed.counts
        if share < 1:
            start = np.rint(start)
            start[nearby] = 0
            solved = solve_continuous(core_model(nearby, start))
            if solved is None:
                continue
            start[nearby, 0] = solved[0][: len(nearby)]
        start = np.rint(start)
        moves = _unit_steps(groups, start, nearby, relaxed.reduced_cost)
        price = groups.cost[moves.group, 0] * moves.change[0]
        search = StepSearch(groups.v(start), moves, price, groups.image.allowed.contains)
        searches = [search.by_pairs]
        if tolerance and groups.n >= _SEARCHED_GROUPS:
            lost = widening * tolerance
            box = groups.image.allowed.near_optimal_box(-relaxed.multipliers, lost)
            enough = relaxed.bound + tolerance - groups.objective(start)
            searches.append(partial(search.near_optimum, box, lost, enough))
        for chosen in (one() for one in searches):
            if chosen is not None:
                counts = _moved(start, moves, chosen)
                if groups.rows_of_classes(counts).min() >= 1:
                    none_yet = False
                    yield counts


def _unit_steps(
    groups: Groups, counts: np.ndarray, pool: np.ndarray, reduced_cost: np.ndarray
) -> Moves:
    """Return one row more, and one less, in every group of a pool where that is possible."""
    group, step = np.repeat(pool, 2), np.tile([1.0, -1.0], len(pool))
    count = counts[group, 0]
    possible = np.where(step > 0, count < groups.size[group], count > 0)
    group, change = group[possible], step[None, possible]
    return Moves(group, change, groups.effects(group, change), reduced_cost[group])


def _moved(counts: np.ndarray, moves: Moves, chosen: np.ndarray) -> np.ndarray:
    counts = counts.copy()
    np.add.at(counts, moves.group[chosen], moves.change[:, chosen].T)
    return counts


def rounded_classes(relaxed: Relaxed, groups: Groups, tolerance: float) -> Iterator[np.ndarray]:
    """Yield allowed counts of more than two classes near the relaxation.

    Parameters
    ----------
    relaxed : Relaxed
        The relaxation.
    groups : Groups
        The groups.
    tolerance : float
        How much above the relaxation's bound the cost may be.

    Yields
    ------
    ndarray of shape (g, K)
        Counts that leave each class a row.
    """
    by_class = groups.image.by_class()
    if by_class is None or not tolerance or groups.n < _SEARCHED_GROUPS:
        return  # left to the integer models
    start = _whole(relaxed.counts, groups.size)
    for widening in _CLASS_WIDENINGS:
        counts = _class_by_class(start, relaxed, groups, by_class, widening * tolerance)
        if counts is not None and groups.rows_of_classes(counts).min() >= 1:
            yield counts


def _whole(counts: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return whole counts of the same sums per group, the largest remainders rounded up."""
    whole = np.floor(counts + 1e-9)
    missing = np.rint(size - whole.sum(axis=1)).astype(int)
    rank = np.argsort(np.argsort(whole - counts, axis=1, kind="stable"), axis=1, kind="stable")
    return whole + (rank < missing[:, None])


def _class_by_class(
    start: np.ndarray,
    relaxed: Relaxed,
    groups: Groups,
    by_class: list[tuple[np.ndarray, Product]],
    tolerance: float,
) -> np.ndarray | None:
    """Return counts whose v is allowed class after class, None where a search fails."""
    counts, reduced = start, groups.reduced(relaxed.multipliers)
    share = tolerance / (2 * groups.n_columns)
    relaxed_v = groups.v(relaxed.counts)
    # The class that takes what the others leave is the one whose set matters least.
    pull = [float(np.abs(relaxed.multipliers[rows]).sum()) for rows, _ in by_class]
    *order, last = np.argsort(pull, kind="stable")[::-1]
    last_rows, last_set = by_class[last]
    for position, c in enumerate(order):
        rows, own = by_class[c]
        both = Product([*own.parts, *last_set.parts])
        pulled = -np.r_[relaxed.multipliers[rows], relaxed.multipliers[last_rows]]
        moves = _moves_of_class(
            groups, counts, reduced, c, np.array([*order[position + 1 :], last])
        )
        # What the last class gets, if those in between come out as relaxed.
        v = groups.v(counts)
        left = sum(relaxed_v[by_class[b][0]] - v[by_class[b][0]] for b in order[: position + 1])
        search = StepSearch(
            np.r_[v[rows], relaxed_v[last_rows] + left],
            moves._replace(effect=np.vstack([moves.effect[rows], -moves.effect[rows]])),
            moves.detour,
            both.contains,
        )
        chosen = search.near_optimum(both.near_optimal_box(pulled, share), tolerance, share)
        if chosen is None:
            return None
        counts = _moved(counts, moves, chosen)
    return counts


def _moves_of_class(
    groups: Groups, counts: np.ndarray, reduced: np.ndarray, c: int, later: np.ndarray
) -> Moves:
    """Return the moves of least detour between a class and those that are still to come."""
    every = np.arange(groups.n)
    # Into the class, from the later one that loses least; out of it, to the one that gains most.
    held = np.where(counts[:, later] > 0, reduced[:, later], -np.inf)
    source, target = later[held.argmax(axis=1)], later[reduced[:, later].argmin(axis=1)]
    into = np.where((counts[:, later] > 0).any(axis=1), reduced[:, c] - held.max(axis=1), np.inf)
    out = np.where(counts[:, c] > 0, reduced[every, target] - reduced[:, c], np.inf)
    detour = np.r_[into, out]
    nearest = np.argsort(detour, kind="stable")[: 2 * _POOL]
    nearest = nearest[np.isfinite(detour[nearest])]
    group, is_out = nearest % groups.n, nearest >= groups.n
    position = np.arange(len(group))
    change = np.zeros((groups.n_columns, len(group)))
    change[np.where(is_out, c, source[group]), position] -= 1
    change[np.where(is_out, target[group], c), position] += 1
    return Moves(group, change, groups.effects(group, change), np.abs(detour[nearest]))


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
