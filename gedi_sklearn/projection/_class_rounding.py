r"""Rounding of more than two classes, one after another.

The v of one class after another is brought into its set by moves to and from classes that are
still to come. Every class has a box of near-optimal v, and as the v of all sum to 0, every step
also keeps what it leaves within the sum of the boxes that are still to come; for the last class
that is its own box. What the rounding of one class after another brings out of place is the more
the more narrow boxes there are; then the relaxation of the classes that are left is solved anew
each time, with boxes about that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import chain, product

import numpy as np
from scipy.optimize import lsq_linear

from ..constraints import Product
from ._cells import Cells, mix_ranges, smallest
from ._relaxation import Relaxed, leverage, solve_relaxation
from ._rounding import Moves, StepSearch, moved, rounded_soft, solved_anew
from ._solver import Deadline

# Starts: of so many cells of least detour a share, those of small effects, is solved anew; and
# whether the rows of all others are in their base, or where the relaxation has most of them.
_STARTS = (
    *(
        (*pool, in_base)
        for pool in ((500, 0.85), (2000, 0.85), (6000, 0.9))
        for in_base in (True, False)
    ),
    (0, 0.0, True),
)
# How many times the tolerance the boxes may lose, one after another where less does not do.
_WIDENINGS = (1, 3, 9)
# The part of their range that later classes keep where the relaxation is solved anew.
_KEPT_RANGE = 0.5
# Moves of a class.
_CLASS_MOVES = 1500
# How far from the relaxation a box may reach, in root mean squares of a row's effect.
_REACH = 8.0


def rounded_classes(
    relaxed: Relaxed,
    cells: Cells,
    by_class: list[tuple[np.ndarray, Product]],
    nearest: np.ndarray,
    tolerance: float,
    deadline: Deadline,
) -> Iterator[np.ndarray | None]:
    """Yield allowed counts of more than two classes near the relaxation, None where a try fails.

    Parameters
    ----------
    relaxed : Relaxed
        The relaxation.
    cells : Cells
        The cells.
    by_class : list of (rows, sets)
        The rows of v and the sets of every class.
    nearest : ndarray of int
        Columns of cells by their detour, the least first.
    tolerance : float
        How much above the relaxation's bound the cost may be.
    deadline : Deadline
        When to end; TimeoutError where it comes first.

    Yields
    ------
    ndarray of shape (g, K) or None
        Counts that leave each class a row.
    """
    reach = leverage(cells.matrix)[nearest // cells.n_columns]

    @cache
    def start(size: int, share: float, in_base: bool) -> np.ndarray | None:
        by_reach = np.argsort(reach[:size], kind="stable")
        pool = nearest[by_reach[: int(share * len(by_reach))]]
        base = relaxed.base if in_base else cells.mostly(relaxed.counts)
        solved = solved_anew(cells, relaxed, base, pool, deadline) if size else relaxed.counts
        return None if solved is None else rounded_soft(cells, solved)

    rng = np.random.default_rng(0)
    for number, (widening, own) in enumerate(product(_WIDENINGS, _STARTS)):
        deadline.check()
        counts = start(*own)
        boxes = _ClassBoxes(relaxed, cells, by_class, widening * tolerance, deadline)
        found = None if counts is None else boxes.round(counts, tolerance)
        if found is None:
            # In other orders of the classes, after the first time.
            shuffle = rng.normal(size=cells.n_columns) * (2.0 if number else 0.0)
            found = _rounded_in_stages(relaxed, cells, by_class, tolerance, shuffle, deadline)
        if found is None:
            yield None
            continue
        near = cells.objective(found) - relaxed.bound <= 2 * tolerance
        better = boxes.improve(found, relaxed.bound + tolerance) if near else ()
        for counts in chain([found], better):
            yield counts if cells.rows_of_classes(counts).min() >= 1 else None


def _rounded_in_stages(
    relaxed: Relaxed,
    cells: Cells,
    by_class: list[tuple[np.ndarray, Product]],
    tolerance: float,
    shuffle: np.ndarray,
    deadline: Deadline,
) -> np.ndarray | None:
    """Return counts whose v is allowed class after class, None where a search fails.

    Before each class the relaxation of those that are left is solved anew. The class of least
    volume is the first one; the logarithms of the volumes are shuffled.
    """
    volume = _ClassBoxes(relaxed, cells, by_class, tolerance, deadline).volume + shuffle
    now, counts, left = relaxed, relaxed.counts, np.argsort(volume, kind="stable")
    while True:
        c, later = left[0], left[1:]
        spent = cells.objective(counts) - relaxed.bound
        budget = max(tolerance - spent, 0.1 * tolerance)
        # Moves near a tie are the rarer the fewer classes are left.
        share = budget / (len(later) * (1 / np.arange(1, len(later) + 1)).sum())
        start = replace(now, counts=counts)
        for widening in _WIDENINGS:
            deadline.check()
            lost = widening * budget * cells.n_columns / len(left)
            boxes = _ClassBoxes(start, cells, by_class, lost, deadline)
            found = boxes.place(rounded_soft(cells, counts), c, later, share)
            if found is not None:
                break
        else:
            return None
        if len(later) == 1:
            return found
        solved = _left_anew(now, cells, found, later, deadline)
        if solved is None:
            return None
        now, left = solved, later
        counts = now.counts


def _left_anew(
    relaxed: Relaxed, cells: Cells, counts: np.ndarray, classes: np.ndarray, deadline: Deadline
) -> Relaxed | None:
    """Return the relaxation of some classes, given the rows of the others; None if infeasible."""
    kept = np.flatnonzero(counts[:, classes].any(axis=1))
    done = np.setdiff1d(np.arange(cells.n_columns), classes)
    cost = cells.cost[kept]
    cost[:, done] += 1e4  # keeps rows out of classes that are done
    size = counts[np.ix_(kept, classes)].sum(axis=1)
    part = replace(cells, size=size, cost=cost, matrix=cells.matrix[:, kept])
    # The v of every class is that of its own rows, so that those of the others play no part.
    nothing = np.zeros(len(relaxed.multipliers))
    solved = solve_relaxation(part, relaxed.allowed, nothing, deadline, relaxed.multipliers)
    if solved is None:
        return None
    others = counts.copy()
    others[:, classes] = 0.0
    others[kept] += solved.counts
    return replace(solved, counts=others)


class _ClassBoxes:
    """For every class a box of near-optimal v, in the rows of E / scale.

    Parameters
    ----------
    relaxed : Relaxed
        The relaxation.
    cells : Cells
        The cells.
    by_class : list of (rows, sets)
        The rows of v and the sets of every class.
    lost : float
        How much all the boxes may lose against the bound.
    deadline : Deadline
        When a search ends with what was seen, and the next one with a TimeoutError.
    """

    def __init__(
        self,
        relaxed: Relaxed,
        cells: Cells,
        by_class: list[tuple[np.ndarray, Product]],
        lost: float,
        deadline: Deadline,
    ) -> None:
        self.cells, self.lost, self.deadline = cells, lost, deadline
        self.effects = cells.matrix
        self.reduced = cells.reduced(relaxed.multipliers)
        self.least = float(cells.size @ self.reduced.min(axis=1))
        k, r = cells.n_columns, cells.image.n_rows
        self.sets = [own for _, own in by_class]
        self.rows = [cells.image.row[own] for own, _ in by_class]
        # |rows v - centre| <= half_widths; the rows are a basis.
        self.basis, self.multipliers = np.zeros((k, r, r)), np.zeros((k, r))
        self.centre, self.half_widths = np.zeros((k, r)), np.full((k, r), np.inf)
        for c, (own, allowed) in enumerate(by_class):
            multipliers, row = relaxed.multipliers[own], self.rows[c]
            scale = cells.scale[row]
            box = allowed.near_optimal_box(-multipliers, lost / k)
            n = len(box[1])
            self.multipliers[c, row] = multipliers * scale
            self.basis[c, :n, row] = (box[0] * scale).T
            self.centre[c, :n], self.half_widths[c, :n] = box[1:]
            self.basis[c, n:] = np.linalg.qr(self.basis[c, :n].T, mode="complete")[0][:, n:].T
        # No wider than some rows reach from the relaxation, so that every class has its share in
        # what the others leave, on the side where it has room.
        spread = np.sqrt(((self.basis @ self.effects) ** 2).mean(axis=2))
        reach = np.where(np.isinf(self.half_widths), 10, 1) * _REACH * spread
        relaxed_at = np.einsum("cij,jc->ci", self.basis, self.effects @ relaxed.counts)
        lower = np.maximum(self.centre - self.half_widths, relaxed_at - reach)
        upper = np.minimum(self.centre + self.half_widths, relaxed_at + reach)
        self.centre = (lower + upper) / 2
        self.half_widths = np.maximum((upper - lower) / 2, 1e-6 * reach)
        inverse = np.linalg.inv(self.basis)
        # Of what is narrow: a wide side is as good as one of a row.
        narrow = np.log(np.minimum(self.half_widths, spread)).sum(axis=1)
        self.volume = narrow + np.linalg.slogdet(inverse)[1]
        self.axes = inverse * self.half_widths[:, None]
        self.middle = np.einsum("cij,cj->ci", inverse, self.centre)
        self.covariance = self.axes @ self.axes.transpose(0, 2, 1)

    def round(self, counts: np.ndarray, tolerance: float) -> np.ndarray | None:
        """Return counts whose v is allowed class after class, None where a search fails."""
        # The smallest box first, so that the widest ones take what the others leave.
        order = np.argsort(np.linalg.slogdet(self.covariance)[1], kind="stable")
        done, lost = np.zeros(self.cells.image.n_rows), 0.0
        for position, c in enumerate(order[:-1]):
            self.deadline.check()
            later = order[position + 1 :]
            goal = self._shares(order[position:], -done)[0]
            left = self.covariance[later].sum(axis=0)
            counts = self._nearer(counts, c, later, goal, left)
            spent = float((self.reduced * counts).sum()) - self.least + lost
            share = (tolerance - spent) / (len(order) - 1 - position)
            found = self._stepped(counts, c, later, done, goal, share)
            if found is None:
                return None
            counts = found
            v = self.effects @ counts[:, c]
            done, lost = done + v, lost + self._loss(c, v)
        return counts

    def place(
        self, counts: np.ndarray, c: int, later: np.ndarray, share: float
    ) -> np.ndarray | None:
        """Return counts in which the v of one class is allowed, None where the search fails.

        It leaves the later ones what lies well within the sum of their boxes.
        """
        left = np.r_[c, later]
        held, reduced = counts[:, left], self.reduced[:, left]
        done = -(self.effects @ held).sum(axis=1)
        goal = self._shares(left, -done)[0]
        detour = float((reduced * held).sum() - held.sum(axis=1) @ reduced.min(axis=1))
        return self._stepped(counts, c, later, done, goal, share - detour, most=_KEPT_RANGE)

    def improve(self, counts: np.ndarray, enough: float) -> Iterator[np.ndarray]:
        """Yield ever cheaper counts from allowed ones, by steps between two classes at a time."""
        cost, before = self.cells.objective(counts), np.inf
        pairs = np.column_stack(np.triu_indices(len(self.sets), k=1))
        rng = np.random.default_rng(0)
        while cost < before:
            before = cost
            for c, d in rng.permutation(pairs):
                self.deadline.check()
                v, other = self.effects @ counts[:, c], self.effects @ counts[:, d]
                share = enough - cost + self._loss(c, v) + self._loss(d, other)
                found = self._stepped(counts, c, np.array([d]), -v - other, v, share)
                if found is not None and self.cells.objective(found) < cost:
                    counts, cost = found, self.cells.objective(found)
                    yield counts

    def _stepped(
        self,
        counts: np.ndarray,
        c: int,
        later: np.ndarray,
        done: np.ndarray,
        goal: np.ndarray,
        share: float,
        most: float = 1.0,
    ) -> np.ndarray | None:
        """Return counts in which the v of a class is allowed, None where a search fails."""
        moves = self._moves(counts, c, later)
        v, left = self.effects @ counts[:, c], self.covariance[later].sum(axis=0)
        pull, loss = self.multipliers[c], self._loss(c, v)
        if len(later) == 1:
            pull = pull - self.multipliers[later[0]]
            loss += self._loss(later[0], -done - v)
        # What the others leave keeps away from the ends of its range, unless one is to take it.
        axes = np.linalg.eigh(left)[1].T
        widths = np.linalg.norm(axes @ self.axes[later], axis=2)
        reach, part = widths.sum(axis=0), np.linalg.norm(widths, axis=0) / widths.sum(axis=0)
        if len(later) > 1:
            part = np.minimum(part, most)
        off = axes @ (goal + done + self.middle[later].sum(axis=0))
        lower, upper = part * np.minimum(-reach - off, 0), part * np.maximum(reach - off, 0)
        box = (
            np.vstack([self.basis[c], axes]),
            np.r_[self.centre[c], axes @ goal + (lower + upper) / 2],
            np.r_[self.half_widths[c], (upper - lower) / 2],
        )
        price = moves.detour + pull @ moves.effect
        search = StepSearch(v, moves, price, partial(self._contains, c, later, done))
        chosen = search.near_optimum(box, self.lost, share - loss, self.deadline)
        return None if chosen is None else moved(counts, moves, chosen)

    def _contains(self, c: int, later: np.ndarray, done: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Tell which v of a class are allowed, with what they leave if only one class is left."""
        checked = [(c, v)] if len(later) > 1 else [(c, v), (later[0], -done[:, None] - v)]
        return np.logical_and.reduce(
            [
                self.sets[b].contains(own[self.rows[b]] * self.cells.scale[self.rows[b], None])
                for b, own in checked
            ]
        )

    def _loss(self, c: int, v: np.ndarray) -> float:
        """Return how much less than the bound allows the v of a class gains."""
        rows = self.rows[c]
        multipliers = self.multipliers[c, rows] / self.cells.scale[rows]
        return self.sets[c].support(multipliers) + float(self.multipliers[c] @ v)

    def _shares(self, classes: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Return a point of every class's box near its middle that sum to a total."""
        axes = np.concatenate(self.axes[classes], axis=1)
        n = axes.shape[1]
        weight = 1e3 / np.abs(axes).max(axis=1)
        missing = total - self.middle[classes].sum(axis=0)
        y = lsq_linear(
            np.vstack([np.eye(n), axes * weight[:, None]]),
            np.r_[np.zeros(n), missing * weight],
            (-1, 1),
        ).x.reshape(len(classes), -1)
        return self.middle[classes] + np.einsum("cij,cj->ci", self.axes[classes], y)

    def _nearer(
        self, counts: np.ndarray, c: int, later: np.ndarray, goal: np.ndarray, left: np.ndarray
    ) -> np.ndarray:
        """Return counts after single moves that bring the v of a class near to its goal.

        Distance is measured against how far single moves lead and how wide the boxes are.
        """
        both = np.linalg.inv(np.linalg.inv(self.covariance[c]) + np.linalg.inv(left))
        for _ in range(12):
            moves = self._moves(counts, c, later)
            mean_square = moves.effect @ moves.effect.T / len(moves.cell)
            unit = np.linalg.cholesky(mean_square + both)
            away = (self.effects @ counts[:, c] - goal)[:, None]
            after = np.linalg.norm(np.linalg.solve(unit, away + moves.effect), axis=0)
            before = np.linalg.norm(np.linalg.solve(unit, away))
            # A detour of a class's part of what may be lost counts as a third of a move.
            after += 0.3 * moves.detour * len(self.sets) / self.lost
            if before <= 0.7 or after.min() >= before:
                break
            counts = moved(counts, moves, np.array([after.argmin()]))
        return counts

    def _moves(self, counts: np.ndarray, c: int, later: np.ndarray) -> Moves:
        """Return the moves of least detour between a class and those that are still to come."""
        cells, reduced = self.cells, self.reduced
        every = np.arange(cells.n)
        # Into the class, from the later one that loses least; out of it, to the one that gains
        # most.
        held = np.where(counts[:, later] > 0, reduced[:, later], -np.inf)
        source, target = later[held.argmax(axis=1)], later[reduced[:, later].argmin(axis=1)]
        into = reduced[:, c] - held.max(axis=1)
        out = np.where(counts[:, c] > 0, reduced[every, target] - reduced[:, c], np.inf)
        detour = np.r_[into, out]
        nearest = smallest(detour, _CLASS_MOVES)
        nearest = nearest[np.isfinite(detour[nearest])]
        sign = np.where(nearest < cells.n, 1.0, -1.0)
        # The nearest moves can all have much the same effect: those of every range take turns.
        turn = mix_ranges(self.effects[:, nearest % cells.n] * sign)
        nearest, sign = nearest[turn], sign[turn]
        cell, position = nearest % cells.n, np.arange(len(nearest))
        change = np.zeros((cells.n_columns, len(cell)))
        change[c] = sign
        change[np.where(sign < 0, target[cell], source[cell]), position] = -sign
        return Moves(cell, change, self.effects[:, cell] * sign, detour[nearest])
