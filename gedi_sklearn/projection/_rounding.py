r"""Rounding of a relaxed solution: the cheapest few steps that restore the constraint.

A basic solution of the relaxation is fractional in as many groups as there are active rows.
Rounding these moves v by about the effect of a row, and so do single steps in the groups whose
reduced cost is nearly 0, at nearly no cost. Two such steps hit an allowed set that is wide
against the effect of one row. Where forbidden directions leave a narrow box, or where v must end
close to the boundary for a small gap, up to six steps are searched, any two of about 10⁴ small
sets: a tree of all their effects answers which of them completes another one. What counts are
only the directions in which leaving the relaxed v costs something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import chain, combinations

import numpy as np
from scipy.linalg import block_diag
from scipy.spatial import cKDTree

from ..constraints import AllowedSet
from ._bound import AllowedProduct
from ._grouped import Relaxed
from ._groups import Groups
from ._highs import solve_continuous
from ._model import LinearModel

__all__ = ["Rounding", "near_optimal_box", "rounded"]

# Fewer groups than this are solved by an integer model faster than by a search for many steps.
_SEARCHED_GROUPS = 100
# Rounding starts from the relaxation, then from ones in which only so large a share of the pool is
# not whole, the groups of small effects: what is left to round is small then too. Where all that
# leads nowhere, so many tolerances may be lost.
_SHARES = (1.0, 0.85, 0.7)
_WIDENING = 30

# Sets of steps of which any two are combined: all sets of so many of the first moves. About 10⁸
# sets of up to six steps, in a tenth of a second.
_COMBINED = {1: 300, 2: 150, 3: 30}
# Sets whose complements are looked up at once, cheapest first: few at first, then ever more.
_FIRST_BATCH = 16
# Complements to look at before giving up.
_MOST_CANDIDATES = 2**21


def rounded(
    relaxed: Relaxed,
    groups: Groups,
    allowed: AllowedProduct,
    pool: np.ndarray,
    tolerance: float,
    core_model: Callable[[np.ndarray, np.ndarray], LinearModel],
) -> Iterator[np.ndarray]:
    """Yield allowed counts near the relaxation, from ever other starts.

    Parameters
    ----------
    relaxed : Relaxed
        The relaxation.
    groups : Groups
        The groups.
    allowed : AllowedProduct
        The set in which v has to be.
    pool : ndarray of int
        Groups that may take a step, those with the smallest reduced cost first.
    tolerance : float
        How much above the relaxation's bound the cost may be.
    core_model : callable
        From some groups, and the counts of all others, to their model.

    Yields
    ------
    ndarray of shape (g,)
        Counts that leave each class a row.
    """
    reach = np.abs(groups.effects(pool) * relaxed.multipliers[:, None]).sum(axis=0)
    by_reach = np.argsort(np.argsort(reach, kind="stable"), kind="stable")
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
            start[nearby] = solved[0][: len(nearby)]
        rounding = Rounding(start, groups, allowed, nearby)
        searches = [rounding.by_pairs]
        if tolerance and groups.n >= _SEARCHED_GROUPS:
            searches.append(
                partial(
                    rounding.near_optimum,
                    relaxed.multipliers,
                    relaxed.doubt,
                    relaxed.bound + tolerance,
                    widening * tolerance,
                )
            )
        for search in searches:
            counts = search()
            if counts is not None and groups.rows_of_classes(counts).min() >= 1:
                none_yet = False
                yield counts


class Rounding:
    """Counts around a relaxed solution.

    Parameters
    ----------
    relaxed : ndarray of shape (g,)
        Relaxed counts of ones in every group.
    groups : Groups
        The groups.
    allowed : AllowedProduct
        The set in which v has to be.
    pool : ndarray of int
        Groups that may take a step, those with the smallest reduced cost first.
    """

    def __init__(
        self,
        relaxed: np.ndarray,
        groups: Groups,
        allowed: AllowedProduct,
        pool: np.ndarray,
    ) -> None:
        self.counts = np.rint(relaxed)
        self.cost = groups.cost
        self.allowed = allowed
        group = np.repeat(pool, 2)
        step = np.tile([1.0, -1.0], len(pool))
        up = step > 0
        possible = np.where(up, self.counts[group] < groups.size[group], self.counts[group] > 0)
        group, step = group[possible], step[possible]
        # Groups of the same effects can stand in for each other: the nearest of each goes first.
        order = np.argsort(_occurrence(groups.effects(group) * step), kind="stable")
        # The last move is none at all, so that a pair can be a single step or standing still.
        self.group, self.step = np.r_[group[order], 0], np.r_[step[order], 0.0]
        self.none = len(self.group) - 1
        self.moves = groups.effects(self.group) * self.step
        self.price = groups.cost[self.group] * self.step
        self.v = groups.v(self.counts)

    def by_pairs(self) -> np.ndarray | None:
        """Return the cheapest allowed counts within two steps, or None."""
        pairs = np.column_stack(np.triu_indices(self.none + 1, k=1))
        pairs = np.vstack([pairs, [[self.none, self.none]]])
        v = self.v[:, None] + self.moves[:, pairs[:, 0]] + self.moves[:, pairs[:, 1]]
        return self._cheapest(pairs[self.allowed.contains(v)])

    def near_optimum(
        self, multipliers: np.ndarray, reduced: np.ndarray, limit: float, tolerance: float
    ) -> np.ndarray | None:
        """Return counts within six steps that are allowed, of cost below a limit if any are seen.

        Parameters
        ----------
        multipliers : ndarray of shape (r,)
            Multipliers of v in the relaxation.
        reduced : ndarray of shape (g,)
            Reduced cost of a step.
        limit : float
            Cost to be content with.
        tolerance : float
            How much above the relaxation's bound the cost may be, which is where to look.

        Returns
        -------
        ndarray of shape (g,) or None
        """
        transform, centre, half_widths = near_optimal_box(self.allowed, -multipliers, tolerance)
        moves, wanted = transform @ self.moves, centre - transform @ self.v
        # A box without width has some in these units: what is found is checked in its own.
        reach = np.abs(moves).max(axis=1) + np.abs(wanted)
        unit = np.maximum(half_widths, 1e-12 * reach)
        unit = np.where(unit > 0, unit, 1.0)
        moves, wanted = moves / unit[:, None], wanted / unit
        detour = reduced[self.group]
        detour[self.none] = 0
        sets = _step_sets(self.none)
        price = detour[sets].sum(axis=1)
        order = np.argsort(price, kind="stable")
        sets = sets[order[price[order] <= tolerance]]
        points = moves[:, sets].sum(axis=2).T
        tree = cKDTree(points)
        best, best_cost = None, np.inf
        start, batch, seen = 0, _FIRST_BATCH, 0
        while start < len(sets) and seen < _MOST_CANDIDATES:
            rows = np.arange(start, min(start + batch, len(sets)))
            # A hair inside the box, so that rounding in these units does not end outside of it.
            found = tree.query_ball_point(wanted - points[rows], r=1 - 1e-9, p=np.inf)
            lengths = np.fromiter(map(len, found), dtype=int, count=len(found))
            other = np.fromiter(chain.from_iterable(found), dtype=int, count=int(lengths.sum()))
            pairs = np.hstack([sets[np.repeat(rows, lengths)], sets[other]])
            v = self.v[:, None] + self.moves[:, pairs].sum(axis=2)
            counts = self._cheapest(pairs[self.allowed.contains(v)])
            if counts is not None and self.cost @ counts < best_cost:
                best, best_cost = counts, float(self.cost @ counts)
                if best_cost <= limit:
                    break
            start, seen = start + batch, seen + len(other)
            if len(other) < _MOST_CANDIDATES // 16:
                batch *= 2
        return best

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


def _occurrence(columns: np.ndarray) -> np.ndarray:
    """Return for every column how many equal ones come before it."""
    label = np.unique(columns, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(label, kind="stable")
    first = np.r_[True, np.diff(label[order]) != 0]
    position = np.arange(len(label))
    occurrence = np.empty(len(label), dtype=int)
    occurrence[order] = position - np.maximum.accumulate(np.where(first, position, 0))
    return occurrence


def near_optimal_box(
    allowed: AllowedProduct, direction: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return T, c and h: |T v − c| ≤ h is where v with σ(d) − d'v ≤ tolerance are looked for.

    σ is the sets' support function and d the direction in which the relaxed v is farthest. That is
    all such v where d has one size on the face that it names and is 0 elsewhere.
    """
    parts = [_box_of_part(part, own, tolerance) for part, own in allowed.split(direction)]
    transforms, centres, half_widths = zip(*parts, strict=True)
    return block_diag(*transforms), np.concatenate(centres), np.concatenate(half_widths)


def _box_of_part(
    allowed: AllowedSet, direction: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return T, c and h of one set."""
    size, sign = np.abs(direction), np.sign(direction)
    largest = float(size.max(initial=0.0))
    if allowed.bounds is not None:
        # At the corner that d names, each coordinate within tolerance / |d_j| of its side.
        deep = 2 * allowed.bounds * size > tolerance
        half = np.where(deep, tolerance / np.where(deep, 2 * size, 1.0), allowed.bounds)
        return np.eye(len(size)), sign * (allowed.bounds - half), half
    radius = float(allowed.radius or 0.0)
    if not largest:
        return np.eye(len(size)), np.zeros(len(size)), np.full(len(size), radius)
    # On the face of the ball that d names, and each coordinate that is 0 there near 0.
    off_face = size < largest * (1 - 1e-9)
    on_face = np.where(off_face, 0.0, sign)
    half_depth = min(tolerance / largest / 2, radius)
    near_zero = np.minimum(tolerance / (largest - size[off_face]), radius)
    return (
        np.vstack([np.eye(len(size))[off_face], on_face]),
        np.r_[np.zeros(off_face.sum()), radius - half_depth],
        np.r_[near_zero, half_depth],
    )
