r"""Exchanges of rows between two classes at a time, for sets of every shape and any classes.

Each limit of the sets has a price, and what is lowered is the cost of the counts with what they
exceed the limits by at these prices,

.. math:: C \cdot z + \pi^T (\mathrm{sizes}(v) - \mathrm{limits})^+ .

A round goes on until no one or two moves between two classes lower it; one that moves nothing
combines any two sets of up to two moves, of which a tree of their effects tells what completes
what. Then the prices of limits that are exceeded rise, and the next round aims a little further
inside, since what is aimed at is missed by a row or so; or, where the counts are allowed, all
prices fall by a random factor, so that the next round leaves for cheaper counts and comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from ..constraints import VIOLATION_TOLERANCE, Product
from ._cells import Cells
from ._result import Effort, Incumbent

# Cells whose rows may move: the nearest to a tie, and so many of every pair of classes.
_ACTIVE, _OF_PAIR = 4000, 75
# Moves each way between two classes, fewer where pairs of them have more numbers; in sets of four,
# by the rows of v, and of more than three classes.
_MOVES, _NUMBERS = 75, 30_000
_MOVES_OF_FOUR, _FOUR_OF_MANY = ((6, 50), (20, 35), (100, 20)), 25
# Sets that complete a set best, which may be so much further than the very nearest, as a share;
# pairs of classes between which a round looks for sets of four.
_COMPLETIONS, _ABOUT, _MOST_PAIRS = 8, 1.0, 10
# Prices at first: so many times the multipliers, and for the effect of a row on average so large a
# share of what a row costs. Where a limit is exceeded they rise by a factor, else they fall by one.
_OF_MULTIPLIER, _OF_ROW, _RISE, _FALL = 1.5, 0.5, 1.4, 0.4
# How far inside the next round aims after one that ends outside.
_INWARDS = 0.97
# Rounds without cheaper counts, in a row, after which the search ends; those that end outside
# before any were allowed count for less. How often other moves than the nearest are looked at.
_IN_VAIN, _OUTSIDE, _SHUFFLED = 20, 0.2, 0.25
# Sets of moves that are tried where one would leave a class empty; work of a call, of a set of
# moves, and of a look-up in the tree.
_TRIED, _CALL, _SET, _TREE = 6, 30_000, 20, 100
# Times that a change is projected on the sets of two classes in turn.
_TURNS = 8
# A gain below this share of what a row costs is rounding.
_ROUNDING = 1e-9


class _Pair(NamedTuple):
    """What two classes have of the sets.

    Attributes
    ----------
    rows : ndarray of int
        Their rows of v.
    sets : Product
        The sets of these alone.
    limits : ndarray of int
        Which of all limits are theirs.
    classes : tuple of int
        Which they are.
    is_joint : bool
        Whether other classes have a part in these.
    """

    rows: np.ndarray
    sets: Product
    limits: np.ndarray
    classes: tuple[int, int]
    is_joint: bool


class _Moves(NamedTuple):
    """Moves of one row each between classes a and b: to b where the sign is 1.

    `cell` counts among the active cells, and `row` among all.
    """

    cell: np.ndarray
    row: np.ndarray
    sign: np.ndarray
    cost: np.ndarray

    def sets_of_two(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sets of up to two moves of different cells, −1 for none, and their costs."""
        cost, i, j = np.append(self.cost, 0.0), *_sets_of_two(len(self.cell))
        kept = np.append(self.cell, -2)[i] != np.append(self.cell, -1)[j]
        i, j = i[kept], j[kept]
        return np.vstack([i, j]), cost[i] + cost[j]


class Exchange:
    """Exchanges from given counts.

    Parameters
    ----------
    cells : Cells
        The cells.
    multipliers : ndarray of shape (r,)
        Those of the relaxation.
    best : Incumbent
        Takes what is found.
    effort : Effort
        When to end.
    seed : int, default=0
        Decides the order of the classes, and how prices fall.
    """

    def __init__(
        self, cells: Cells, multipliers: np.ndarray, best: Incumbent, effort: Effort, seed: int = 0
    ) -> None:
        self.cells, self.best, self.effort = cells, best, effort
        self.rng = np.random.default_rng(seed)
        allowed, image = cells.image.allowed, cells.image
        reduced, self.cost = map(cells.all_costs, (cells.reduced(multipliers), cells.cost))
        self.column = image.column + (cells.n_columns == 1)
        self.n_classes = self.cost.shape[1]
        self.detour = reduced - reduced.min(axis=1, keepdims=True)
        units = [np.full(len(part.limits), part.unit) for part in allowed.parts]
        room = 0.5 * VIOLATION_TOLERANCE * np.concatenate([np.empty(0), *units])
        self.limits = allowed.limits + room
        self.flip = cells.range_of_costs() / float(cells.size.sum()) or 1.0
        # The size of the effect of a row, on average.
        mean = np.abs(cells.matrix).mean(axis=1) * cells.scale
        unit = np.maximum(allowed.sizes(mean[image.row, None])[:, 0], np.finfo(float).tiny)
        self.first_prices = _OF_MULTIPLIER * allowed.prices(multipliers)
        self.first_prices += _OF_ROW * self.flip / unit
        self.pairs = np.column_stack(np.triu_indices(self.n_classes, k=1))
        self.pair = cache(self._pair)

    def run(self, start: np.ndarray, near_enough: float = 0.0) -> None:
        """Offer ever cheaper counts, from any that are whole, until many rounds bring none.

        A gap that is near enough ends it before.
        """
        counts = start.copy()
        full = self.cells.all_counts(counts)
        self.active = self._active(full)
        self.counts, self.held = full[self.active], full.sum(axis=0)
        self.prices, self.aim, self.is_shuffled = self.first_prices.copy(), 1.0, False
        in_vain, least = 0.0, np.inf
        while in_vain < _IN_VAIN and not self.effort.is_over:
            self.v = self.cells.v(counts)
            # Pairs of classes between which no few moves, and no more moves, are known to gain.
            self.done_few, self.done_more = np.zeros((2, self.n_classes, self.n_classes), bool)
            self._descend()
            counts[self.active] = self.counts[:, -self.cells.n_columns :]
            over = self._over()
            if self.best.offer(counts) or not over.any():
                objective = self.cells.objective(counts)
                is_cheaper = objective < least - _ROUNDING * self.flip
                in_vain, least = (0.0, objective) if is_cheaper else (in_vain + 1, least)
                if self.best.gap <= near_enough:
                    return
                self.prices *= self.rng.uniform(_FALL, 1.0)
                self.aim = 1.0
            else:
                self.prices[over] *= _RISE
                self.aim *= _INWARDS
                in_vain += 1.0 if np.isfinite(least) else _OUTSIDE
            # Now and then moves are looked at that are not the nearest.
            self.is_shuffled = not self.is_shuffled and self.rng.random() < _SHUFFLED

    def _active(self, counts: np.ndarray) -> np.ndarray:
        """Return the cells whose rows may move: near to a tie, or split among classes."""
        n_groups = len(counts)
        if n_groups <= _ACTIVE:
            return np.arange(n_groups)
        second = np.partition(self.detour, 1, axis=1)[:, 1]
        base = self.detour.argmin(axis=1)
        kept = counts[np.arange(n_groups), base]
        is_split = np.flatnonzero(kept < self.cells.size)
        found = [np.argpartition(second, _ACTIVE)[:_ACTIVE], is_split]
        for a in range(self.n_classes):
            own = np.flatnonzero(base == a)
            if len(own) > _OF_PAIR:
                nearest = np.argpartition(self.detour[own], _OF_PAIR, axis=0)[:_OF_PAIR]
                found.append(own[nearest].ravel())
        return np.unique(np.concatenate(found))

    def _pair(self, a: int, b: int) -> _Pair:
        own = (self.column == a) | (self.column == b)
        parts, limits, at, is_joint = [], [], 0, False
        for part, used in self.cells.image.allowed.split(own):
            n = len(part.limits)
            if used.any():
                parts.append(part.take(used))
                limits.append(at + (np.flatnonzero(used) if n == part.size else np.arange(n)))
                is_joint |= n < part.size and not used.all()
            at += n
        nothing = np.empty(0, dtype=int)
        limit = np.concatenate([nothing, *limits])
        return _Pair(np.flatnonzero(own), Product(parts), limit, (a, b), is_joint)

    def _over(self) -> np.ndarray:
        """Tell which limits are exceeded."""
        return self.cells.image.allowed.sizes(self.v[:, None])[:, 0] > self.limits

    def _descend(self) -> None:
        """Lower cost and excess by moves between two classes, until nothing more gains."""
        has_moved = False
        over = self.cells.image.allowed.slope(self.v, 1.0 * self._over()) != 0
        if over.any():  # moves between other classes are of no use yet
            is_over = np.isin(np.arange(self.n_classes), self.column[over])
            self.done_few |= ~(is_over[:, None] | is_over)
            self.done_more |= self.done_few
        while not self.done_few[tuple(self.pairs.T)].all():
            for a, b in self.rng.permutation(self.pairs):
                if self.effort.is_over:
                    return
                if not self.done_few[a, b]:
                    # One at a time, so that no class takes what the others need.
                    makes = self._exchange_few(a, b)
                    self.done_few[a, b] = not makes
                    has_moved |= makes
        for a, b in () if has_moved else self.rng.permutation(self.pairs)[:_MOST_PAIRS]:
            if self.effort.is_over or (not self.done_more[a, b] and self._exchange_more(a, b)):
                return
            self.done_more[a, b] = True

    def _exchange_few(self, a: int, b: int) -> bool:
        """Make the one or two moves between two classes that gain most, if any does."""
        pair = self.pair(a, b)
        most = int(min(_MOVES, np.sqrt(_NUMBERS / max(len(pair.rows), 1))))
        moves = self._moves(a, b, most, is_shuffled=self.is_shuffled)
        excess, now = self._excess(b, pair, moves)
        sets, cost = moves.sets_of_two()
        # What costs more than is exceeded now gains nothing.
        cheap = (cost < now) & (sets[0] >= 0)
        n_rows = len(pair.rows) if self.cells.jumps is None else 0
        self.effort.spend(_CALL + 4 * len(cheap) + cheap.sum() * (_SET + n_rows))
        sets = sets[:, cheap]
        return self._make_best(a, b, pair, moves, sets, cost[cheap] + excess(sets), now, _TRIED)

    def _exchange_more(self, a: int, b: int) -> bool:
        """Make up to four moves between two classes that gain, if the search finds any."""
        pair = self.pair(a, b)
        n_rows = len(pair.rows)
        most = next((most for rows, most in _MOVES_OF_FOUR if n_rows <= rows), 0)
        most = min(most, _FOUR_OF_MANY) if self.n_classes > 3 else most
        if pair.is_joint or not (most and n_rows):
            return False
        moves = self._moves(a, b, most, is_shuffled=True)
        excess, now = self._excess(b, pair, moves)
        sets, cost = moves.sets_of_two()
        effect = np.column_stack([self._effects(b, pair, moves), np.zeros(n_rows)])
        effect = effect[:, sets[0]] + effect[:, sets[1]]
        # In units of cost; sets that together lead where they are wanted, and gain.
        size = np.abs(pair.sets.slope(self.v[pair.rows], self.prices[pair.limits]))
        scale = np.maximum(size, 1e-3 * size.max() or 1.0)[:, None]
        gain = 0.0 if now > 0 else min(self.flip, self.best.objective - self.best.bound)
        points = np.vstack([effect * scale, cost])
        wanted = np.append(self._wanted(b, pair) * scale[:, 0], -gain)[:, None]
        count = min(_COMPLETIONS, len(cost))
        tree = cKDTree(points.T)
        partner = tree.query((wanted - points).T, k=count, eps=_ABOUT)[1].ravel()
        sets = np.vstack([np.repeat(sets, count, axis=1), sets[:, partner]])
        self.effort.spend(len(partner) * (_TREE + n_rows))
        value = np.repeat(cost, count) + cost[partner] + excess(sets)
        return self._make_best(a, b, pair, moves, sets, value, now, 10 * _TRIED)

    def _excess(
        self, b: int, pair: _Pair, moves: _Moves
    ) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
        """Return the price of what is exceeded after sets of moves, and now, less rounding."""
        v, prices = self.v[pair.rows][:, None], self.prices[pair.limits]
        sizes = pair.sets.sizes(v)
        room = self.aim * self.limits[pair.limits][:, None]
        if pair.is_joint:  # other classes take a part of it
            room -= self.cells.image.allowed.sizes(self.v[:, None])[pair.limits] - sizes
        now = float(prices @ np.maximum(sizes - room, 0.0)[:, 0])
        by_group = self.cells.jumps is not None
        sizes_after = (self._sizes_of_deviations if by_group else self._sizes)(b, pair, moves)

        def excess(sets: np.ndarray) -> np.ndarray:
            return prices @ np.maximum(sizes_after(sets) - room, 0.0)

        return excess, now * (1 - _ROUNDING) - _ROUNDING * self.flip

    def _sizes(self, b: int, pair: _Pair, moves: _Moves) -> Callable[[np.ndarray], np.ndarray]:
        """Return what is bounded after sets of moves, as a function of these."""
        v = self.v[pair.rows][:, None]
        effect = np.column_stack([self._effects(b, pair, moves), np.zeros(len(v))])
        return lambda sets: pair.sets.sizes(v + sum(effect[:, own] for own in sets))

    def _effects(self, b: int, pair: _Pair, moves: _Moves) -> np.ndarray:
        """Return what moves add to the v of their classes, shape (rows, moves)."""
        row = self.cells.image.row[pair.rows]
        way = np.where(self.column[pair.rows] == b, 1.0, -1.0)[:, None]
        effect = self.cells.matrix[np.ix_(row, moves.row)] * self.cells.scale[row, None]
        return effect * way * moves.sign

    def _sizes_of_deviations(
        self, b: int, pair: _Pair, moves: _Moves
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return the same for sets of two moves, where v are deviations of groups.

        A move changes the deviation of one group, and all others by the same.
        """
        assert self.cells.jumps is not None
        code, jump, common = self.cells.jumps
        sign = np.r_[moves.sign, 0.0].astype(int)
        own, leap = np.r_[code[moves.row], -1], np.r_[jump[moves.row] * moves.sign, 0.0]
        shifts = common * np.arange(-2, 3)

        by_class = []
        for c in pair.classes:
            v, way = self.v[pair.rows[self.column[pair.rows] == c]], 1.0 if c == b else -1.0
            by_class.append((v, way, np.abs(v[:, None] + way * shifts).sum(axis=0)))

        def sizes_after(sets: np.ndarray) -> np.ndarray:
            i, j = sets
            net = sign[i] + sign[j]
            is_same = own[i] == own[j]
            total = np.zeros(len(i))
            for v, way, known in by_class:
                total += known[net + 2]
                first = v[own[i]] + way * common * net
                second = v[own[j]] + way * common * net
                leap_i = way * np.where(is_same, leap[i] + leap[j], leap[i])
                leap_j = way * np.where(is_same, 0.0, leap[j])
                total += np.abs(first + leap_i) - np.abs(first)
                total += np.abs(second + leap_j) - np.abs(second)
            return total[None]

        return sizes_after

    def _moves(self, a: int, b: int, most: int, *, is_shuffled: bool) -> _Moves:
        """Return moves of little detour from a to b and back; shuffled, not just the least."""
        found = []
        for source, target in ((a, b), (b, a)):
            cell = np.flatnonzero(self.counts[:, source] > 0)
            if len(cell) > most:
                own = self.active[cell]
                detour = self.detour[own, target] - self.detour[own, source]
                if is_shuffled:
                    detour = (detour + 0.02 * self.flip) * self.rng.exponential(size=len(cell))
                cell = cell[np.argpartition(detour, most)[:most]]
            found.append(cell)
        cell = np.concatenate(found)
        sign, row = np.repeat([1.0, -1.0], [len(own) for own in found]), self.active[cell]
        return _Moves(cell, row, sign, sign * (self.cost[row, b] - self.cost[row, a]))

    def _make_best(
        self,
        a: int,
        b: int,
        pair: _Pair,
        moves: _Moves,
        sets: np.ndarray,
        value: np.ndarray,
        now: float,
        most_tried: int,
    ) -> bool:
        """Make the set of moves of least value, below that of now; −1 is none."""
        for best in _least(value, most_tried):
            if value[best] >= now:
                return False
            chosen = sets[:, best][sets[:, best] >= 0]
            change = float(moves.sign[chosen].sum())
            cell = moves.cell[chosen]
            if len(np.unique(cell)) < len(cell):
                continue
            if min(self.held[a] - change, self.held[b] + change) < 1:
                continue
            self.counts[cell, a] -= moves.sign[chosen]
            self.counts[cell, b] += moves.sign[chosen]
            self.held[[a, b]] += -change, change
            made = _Moves(*(own[chosen] for own in moves))
            self.v[pair.rows] += self._effects(b, pair, made).sum(axis=1)
            for done in (self.done_few, self.done_more):
                done[[a, b]] = done[:, [a, b]] = False
            return True
        return False

    def _wanted(self, b: int, pair: _Pair) -> np.ndarray:
        """Return the change of v that brings the two classes into their sets."""
        v, row = self.v[pair.rows], self.cells.image.row[pair.rows]
        way = np.where(self.column[pair.rows] == b, 1.0, -1.0)
        change = np.zeros(len(v))
        for _ in range(_TURNS):
            change = way * (pair.sets.nearest(v + change) - v)
            # What the one class gains the other one loses.
            change = way * (np.bincount(row, change) / np.maximum(np.bincount(row), 1))[row]
        return change


def _least(values: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of so many least values, in their order."""
    if len(values) > count:
        found = np.argpartition(values, count)[:count]
        return found[np.argsort(values[found], kind="stable")]
    return np.argsort(values, kind="stable")


@cache
def _sets_of_two(n: int) -> np.ndarray:
    """Return all sets of up to two of n, shape (2, sets); −1 is none."""
    one = np.arange(-1, n)
    return np.hstack([[one, np.full(n + 1, -1)], np.triu_indices(n, k=1)])
