r"""Rounding of a relaxed solution of classes.

Two classes: a basic solution of the relaxation is fractional in as many cells as there are active
rows. Rounding these moves v by about the effect of a row, and so do single steps in the cells
whose reduced cost is nearly 0, at nearly no cost. Two such steps hit an allowed set that is wide
against the effect of one row. Where forbidden directions leave a narrow box, or where v must end
close to the boundary for a small gap, up to six steps are searched. What counts
are only the directions in which leaving the relaxed v costs something. Any two of about 10⁴ small
sets of steps are combined: a tree of all their effects answers which of them completes another one.

More classes: soft counts are made whole cell after cell, those of the largest effect first, so
that later ones make up for what the earlier ones were rounded by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from ._cells import Cells
from ._relaxation import Core, Relaxed
from ._solver import Deadline, solve_continuous

# Sets of steps of which any two are combined, about 10⁸ sets of up to six steps in a tenth of a
# second: all sets of one, two and three of so many of the first moves.
_SETS = ((1, 300), (2, 150), (3, 30))
# Sets whose complements are looked up at once, cheapest first.
_BATCH = 64
# Complements to look at before giving up.
_MOST_CANDIDATES = 2**18
# Cells that may take a step.
_POOL = 300
# Rounding starts from the relaxation, then from one in which only so large a share of the pool is
# not whole, the cells of small effects: what is left to round is small then too. Where that leads
# nowhere, so many tolerances may be lost.
_SMALL_EFFECTS, _WIDENING = 0.85, 30
# Cells that are rounded one after another; soft counts this near to a whole number are one.
_IN_TURN, _WHOLE = 4000, 1e-6


def rounded_ones(
    relaxed: Relaxed, cells: Cells, nearest: np.ndarray, tolerance: float, deadline: Deadline
) -> Iterator[np.ndarray]:
    """Yield allowed counts of the second of two classes near the relaxation, from other starts.

    Parameters
    ----------
    relaxed : Relaxed
        The relaxation.
    cells : Cells
        The cells.
    nearest : ndarray of int
        Columns of cells by their detour, the least first.
    tolerance : float
        How much above the relaxation's bound the cost may be.
    deadline : Deadline
        When to end; TimeoutError where it comes first.

    Yields
    ------
    ndarray of shape (g, 1)
        Counts that leave each class a row.
    """
    pool = nearest[:_POOL]
    one = np.ones((1, len(pool)))
    weighted = cells.effects(pool, one) * relaxed.multipliers[:, None]
    by_reach = np.argsort(np.argsort(np.abs(weighted).sum(axis=0), kind="stable"), kind="stable")

    @cache
    def search_from(share: float) -> tuple[np.ndarray, Moves, StepSearch] | None:
        nearby, solved = pool[by_reach < share * len(pool)], relaxed.counts
        if share < 1:
            base = cells.mostly(relaxed.counts)
            anew = solved_anew(cells, relaxed, base, nearby, deadline)
            if anew is None:
                return None
            solved = anew
        start = np.rint(solved)
        moves = _unit_steps(cells, start, nearby, relaxed.detour[:, 0])
        price = cells.cost[moves.cell, 0] * moves.change[0]
        contains = cells.image.allowed.contains
        return start, moves, StepSearch(cells.v(start), moves, price, contains)

    none_yet = True
    for share, widening in ((1.0, 1), (_SMALL_EFFECTS, 1), (1.0, _WIDENING)):
        found = search_from(share)
        if found is None or (widening > 1 and not none_yet):
            continue
        start, moves, search = found
        searches = [search.by_pairs] if widening == 1 else []  # once from each start
        if tolerance:
            lost = widening * tolerance
            box = cells.image.allowed.near_optimal_box(-relaxed.multipliers, lost)
            enough = relaxed.bound + tolerance - cells.objective(start)
            searches.append(partial(search.near_optimum, box, lost, enough, deadline))
        for chosen in (one() for one in searches):
            if chosen is not None:
                counts = moved(start, moves, chosen)
                if cells.rows_of_classes(counts).min() >= 1:
                    none_yet = False
                    yield counts


def solved_anew(
    cells: Cells, relaxed: Relaxed, base: np.ndarray, columns: np.ndarray, deadline: Deadline
) -> np.ndarray | None:
    """Return the counts of the relaxation over some columns, all else in a base; None if none."""
    core = Core(cells, base, columns)
    model = core.model(relaxed.allowed, np.zeros(len(relaxed.multipliers)))
    solved = solve_continuous(model, deadline)
    return None if solved is None else core.counts(solved[0])


def _unit_steps(
    cells: Cells, counts: np.ndarray, pool: np.ndarray, reduced_cost: np.ndarray
) -> Moves:
    """Return one row more, and one less, in every cell of a pool where that is possible."""
    cell, step = np.repeat(pool, 2), np.tile([1.0, -1.0], len(pool))
    count = counts[cell, 0]
    possible = np.where(step > 0, count < cells.size[cell], count > 0)
    cell, change = cell[possible], step[None, possible]
    return Moves(cell, change, cells.effects(cell, change), reduced_cost[cell])


def rounded_soft(cells: Cells, soft: np.ndarray) -> np.ndarray:
    """Return whole counts near to soft ones, whose v is near as well.

    Parameters
    ----------
    cells : Cells
        The cells.
    soft : ndarray of shape (g, m)
        Counts of every cell, not whole.

    Returns
    -------
    ndarray of shape (g, m)
    """
    image, soft = cells.image, cells.all_counts(soft)
    column = image.column + (cells.n_columns == 1)
    counts = np.floor(soft + _WHOLE)
    missing = np.rint(cells.size - counts.sum(axis=1)).astype(int)
    # An error counts in the unit of what its set allows.
    weight = np.zeros((image.n_rows, soft.shape[1]))
    reach = np.maximum(image.allowed.reach, 1e-3 * image.allowed.reach.max(initial=0.0))
    weight[image.row, column] = 1 / np.maximum(reach, np.finfo(float).tiny) ** 2
    effect = cells.matrix * cells.scale[:, None]
    is_open = np.flatnonzero(missing)
    is_open = is_open[np.argsort(-(effect[:, is_open] ** 2).sum(axis=0), kind="stable")]
    error = np.zeros_like(weight)
    for cell in is_open[:_IN_TURN]:
        own, rest = effect[:, [cell]], soft[cell] - counts[cell]
        error -= own * rest
        for _ in range(missing[cell]):
            after = (weight * own * (2 * error + own)).sum(axis=0)
            target = np.where(rest > 1e-3, after, np.inf).argmin()
            counts[cell, target] += 1
            error[:, target] += own[:, 0]
    late = is_open[_IN_TURN:]
    counts[late, (soft - counts)[late].argmax(axis=1)] += missing[late]
    return counts[:, -cells.n_columns :]


class Moves(NamedTuple):
    """Steps of one row each.

    Attributes
    ----------
    cell : ndarray of int, shape (m,)
        Whose row moves.
    change : ndarray of shape (columns, m)
        What it adds to the cell's counts.
    effect : ndarray of shape (r, m)
        What it adds to v.
    detour : ndarray of shape (m,)
        What it costs at least, at the multipliers of the relaxation.
    """

    cell: np.ndarray
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
        self.cell = np.r_[moves.cell[order], -1]
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
        best, least = None, np.inf
        sets = _step_sets(self.none)
        detour = self.detour[sets].sum(axis=1)
        order = np.argsort(detour, kind="stable")
        sets = sets[order[detour[order] <= tolerance]]
        if not (len(sets) and len(steps)):  # nothing can move, or wherever it leads costs as much
            return None
        for pairs in self._meeting(sets, steps, wanted, deadline):
            v = self.v[:, None] + self.effect[:, pairs].sum(axis=2)
            found = self._cheapest(pairs[self.contains(v)])
            if found is not None and found[1] < least:
                best, least = found
                if least <= enough:
                    break
        return best

    def _meeting(
        self, sets: np.ndarray, steps: np.ndarray, wanted: np.ndarray, deadline: Deadline
    ) -> Iterator[np.ndarray]:
        """Yield pairs of sets whose steps together are near to what is wanted, in batches."""
        points = steps[:, sets].sum(axis=2).T
        tree, seen = cKDTree(points), 0
        for start in range(0, len(sets), _BATCH):
            if seen >= _MOST_CANDIDATES or not deadline.left:
                return
            rows = np.arange(start, min(start + _BATCH, len(sets)))
            # A hair inside the box, so that rounding in these units does not end outside of it.
            near = tree.query_ball_point(wanted - points[rows], r=1 - 1e-9, p=np.inf)
            lengths = np.fromiter(map(len, near), dtype=int, count=len(near))
            other = np.fromiter(chain.from_iterable(near), dtype=int, count=int(lengths.sum()))
            yield np.hstack([sets[np.repeat(rows, lengths)], sets[other]])
            seen += len(other)

    def _cheapest(self, sets: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Return the cheapest set in which no cell moves twice, and its price."""
        is_none = sets == self.none
        label = np.where(is_none, -1 - np.arange(sets.shape[1]), self.cell[sets])
        sets = sets[(np.diff(np.sort(label, axis=1), axis=1) != 0).all(axis=1)]
        if not len(sets):
            return None
        price = self.price[sets].sum(axis=1)
        chosen = sets[np.argmin(price)]
        return self.order[chosen[chosen < self.none]], float(price.min())


def moved(counts: np.ndarray, moves: Moves, chosen: np.ndarray) -> np.ndarray:
    counts = counts.copy()
    np.add.at(counts, moves.cell[chosen], moves.change[:, chosen].T)
    return counts


@lru_cache(maxsize=8)
def _step_sets(none: int) -> np.ndarray:
    """Return the sets of steps that are combined, of the moves before `none`, filled up by it."""
    sets = []
    for length, first in _SETS:
        grid = np.indices((min(none, first),) * length, dtype=np.int32).reshape(length, -1)
        rising = grid[:, (np.diff(grid, axis=0) > 0).all(axis=0)]
        sets.append(np.pad(rising.T, ((0, 0), (0, 3 - length)), constant_values=none))
    return np.vstack(sets)


def _occurrence(columns: np.ndarray) -> np.ndarray:
    """Return for every column how many equal ones come before it."""
    label = np.unique(columns, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(label, kind="stable")
    first = np.r_[True, np.diff(label[order]) != 0]
    position = np.arange(len(label))
    occurrence = np.empty(len(label), dtype=int)
    occurrence[order] = position - np.maximum.accumulate(np.where(first, position, 0))
    return occurrence
