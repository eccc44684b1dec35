r"""Search for allowed counts of many classes by exchanges of rows between two of them at a time.

Each limit of each class has a price, and what is lowered is the cost of the counts with what they
exceed the limits by at these prices,

.. math:: C \cdot z + \sum_c \pi_c^T (\mathrm{sizes}(v_c) - \mathrm{limits}_c)^+ .

A round goes on until no one or two moves between two classes lower it. Then the prices of limits
that are exceeded rise, or, where the counts are allowed, all of them fall by a random factor, so
that the next round leaves for cheaper counts and comes back. As all classes come nearer at once,
none has to take what the others leave.

Narrow sets need more moves than two. In a round that changes nothing, any two sets of up to two
moves are combined: a tree of their effects tells which of them completes another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from .._deadline import Deadline
from ..constraints import Product
from ._groups import Groups
from ._relaxation import Relaxed

__all__ = ["Exchange"]

# Moves of least detour each way between two classes.
_MOVES = 75
# Sets that complete a set best.
_COMPLETIONS = 8
# Prices at first: so many times the multipliers, and for the effect of a row on average so large a
# share of what a row costs. Where a limit is exceeded they rise by a factor, else they fall by one.
_OF_MULTIPLIER, _OF_ROW = 1.5, 0.5
_RISE, _FALL = 1.4, 0.4
# A limit counts where a size is below it by no more than so many effects of a row.
_ACTIVE = 2.0
# Rounds that end without cheaper counts, in a row, before the search does.
_MOST_IN_VAIN = 40
# A gain below this share of what a row costs is rounding.
_ROUNDING = 1e-9
# Times that a change is projected on the sets of two classes in turn.
_TURNS = 20


class _Moves(NamedTuple):
    """Moves of one row each between classes a and b: to b where the sign is 1."""

    group: np.ndarray
    sign: np.ndarray
    cost: np.ndarray
    effect: np.ndarray


class Exchange:
    """Exchanges of rows between the classes of one problem.

    Parameters
    ----------
    relaxed : Relaxed
        The relaxation.
    groups : Groups
        The groups.
    by_class : list of (rows, sets)
        The rows of v and the sets of every class.
    deadline : Deadline
        When to end; TimeoutError where it comes first.
    """

    def __init__(
        self,
        relaxed: Relaxed,
        groups: Groups,
        by_class: list[tuple[np.ndarray, Product]],
        deadline: Deadline,
    ) -> None:
        self.groups, self.deadline = groups, deadline
        self.classes = range(groups.n_columns)
        self.reduced = np.asfortranarray(groups.reduced(relaxed.multipliers))
        self.sets = [sets for _, sets in by_class]
        self.rows = [groups.image.row[own] for own, _ in by_class]
        self.limits = [sets.limits for sets in self.sets]
        # The size of the effect of a row, on average.
        self.unit = [np.abs(self._sizes(c, groups.matrix)).mean(axis=1) for c in self.classes]
        self.flip = groups.range_of_costs() / float(groups.size.sum())
        self.first_prices = [
            _OF_MULTIPLIER * _largest(sets, relaxed.multipliers[own]) + _OF_ROW * self.flip / unit
            for (own, sets), unit in zip(by_class, self.unit, strict=True)
        ]
        self.rng = np.random.default_rng(0)

    def run(self, start: np.ndarray) -> Iterator[np.ndarray]:
        """Yield ever cheaper allowed counts, until many rounds bring none.

        Parameters
        ----------
        start : ndarray of shape (g, K)
            Whole counts, allowed or not.

        Yields
        ------
        ndarray of shape (g, K)
        """
        self.counts = np.asfortranarray(start)
        self.held = self.counts.sum(axis=0)
        self.prices = [prices.copy() for prices in self.first_prices]
        n = len(self.classes)
        # Pairs of classes between which no few moves, and no more moves, are known to gain.
        self.done_few, self.done_more = np.zeros((2, n, n), dtype=bool)
        least, in_vain = np.inf, 0
        while in_vain < _MOST_IN_VAIN:
            self.v = self.groups.matrix @ self.counts
            self._descend()
            over = [self._over(c, self.v[:, c]) for c in self.classes]
            exceeded = [c for c in self.classes if over[c].any()]
            for c in exceeded:
                self.prices[c] = np.where(over[c] > 0, _RISE, 1.0) * self.prices[c]
                self._reopen(c)
            if not exceeded:
                cost = self.groups.objective(self.counts)
                if cost < least - _ROUNDING * self.flip:
                    least, in_vain = cost, 0
                    yield self.counts.copy()
                for prices in self.prices:
                    prices *= self.rng.uniform(_FALL, 1.0)
                self.done_few[:] = self.done_more[:] = False
            in_vain += np.isfinite(least)

    def _descend(self) -> None:
        """Lower cost and excess by moves between two classes."""
        pairs = np.column_stack(np.triu_indices(len(self.classes), k=1))
        has_moved = False
        while not self.done_few[tuple(pairs.T)].all():
            for a, b in self.rng.permutation(pairs):
                self.deadline.check()
                if not self.done_few[a, b]:
                    has_moved |= self._exchange_few(a, b)
        if has_moved:
            return
        over = [self._over(c, self.v[:, c]).any() for c in self.classes]
        for a, b in self.rng.permutation(pairs):
            self.deadline.check()
            if (over[a] or over[b]) and not self.done_more[a, b] and self._exchange_more(a, b):
                return

    def _reopen(self, *classes: int) -> None:
        """Forget what is known of the pairs of some classes."""
        for done in (self.done_few, self.done_more):
            done[list(classes)] = False
            done[:, list(classes)] = False

    def _exchange_few(self, a: int, b: int) -> bool:
        """Make the one or two moves between two classes that gain most, if any does."""
        moves = self._moves(a, b)
        i, j = _pairs(len(moves.group))
        now = self._value_to_beat(a, b)
        # What costs more than is exceeded now gains nothing.
        single = np.flatnonzero(moves.cost < now)
        both = moves.cost[i] + moves.cost[j]
        kept = np.flatnonzero((both < now) & (moves.group[i] != moves.group[j]))
        i, j = np.r_[single, i[kept]], np.r_[np.full(len(single), -1), j[kept]]
        value = np.r_[moves.cost[single], both[kept]]
        effect = moves.effect[:, i] + np.where(j < 0, 0.0, moves.effect[:, j])
        # Of one class first: it rules out most.
        value += self._price_of_excess(a, self.v[:, a, None] - effect)
        kept = np.flatnonzero(value < now)
        value = value[kept] + self._price_of_excess(b, self.v[:, b, None] + effect[:, kept])
        if not len(kept) or value.min() >= now:
            self.done_few[a, b] = True
            return False
        best = kept[value.argmin()]
        makes = self._make(a, b, moves, np.unique([i[best], j[best]]))
        self.done_few[a, b] = not makes
        return makes

    def _exchange_more(self, a: int, b: int) -> bool:
        """Make up to four moves between two classes that gain, if the search finds any."""
        moves = self._moves(a, b)
        none, (i, j) = len(moves.group), _pairs(len(moves.group))
        kept = moves.group[i] != moves.group[j]
        alone = np.arange(none + 1)
        sets = np.vstack([np.column_stack([alone, np.full(none + 1, none)]), np.c_[i, j][kept]])
        effect = np.column_stack([moves.effect, np.zeros(len(self.v))])[:, sets].sum(axis=2)
        cost = np.r_[moves.cost, 0.0][sets].sum(axis=1)
        # In units of cost; sets that together are where they are wanted, and cheap.
        scale = np.maximum(self._slope(a), self._slope(b))
        scale = np.maximum(scale, 1e-3 * scale.max(initial=0.0) or 1.0)[:, None]
        points = np.vstack([effect * scale, cost])
        wanted = np.append(self._wanted(a, b) * scale[:, 0], 0.0)[:, None]
        count = min(_COMPLETIONS, len(sets))
        second = cKDTree(points.T).query((wanted - points).T, k=count)[1].ravel()
        first = np.repeat(np.arange(len(sets)), count)
        now = self._value_to_beat(a, b)
        value = cost[first] + cost[second]
        value += self._excess(a, b, effect[:, first] + effect[:, second])
        for best in np.argsort(value, kind="stable")[: 2 * _MOVES]:
            if value[best] >= now:
                break
            chosen = np.r_[sets[first[best]], sets[second[best]]]
            chosen = chosen[chosen < none]
            # No row moves twice.
            if len(np.unique(moves.group[chosen])) == len(chosen) and self._make(
                a, b, moves, chosen
            ):
                return True
        self.done_more[a, b] = True
        return False

    def _moves(self, a: int, b: int) -> _Moves:
        """Return the moves of least detour from a to b and back."""
        found = []
        for source, target in ((a, b), (b, a)):
            group = np.flatnonzero(self.counts[:, source] > 0)
            detour = self.reduced[group, target] - self.reduced[group, source]
            if len(group) > _MOVES:
                group = group[np.argpartition(detour, _MOVES)[:_MOVES]]
            found.append(group)
        group = np.concatenate(found)
        sign = np.repeat([1.0, -1.0], [len(own) for own in found])
        cost = sign * (self.groups.cost[group, b] - self.groups.cost[group, a])
        return _Moves(group, sign, cost, self.groups.matrix[:, group] * sign)

    def _make(self, a: int, b: int, moves: _Moves, chosen: np.ndarray) -> bool:
        """Make moves, unless they leave a class without a row."""
        chosen = chosen[chosen >= 0]
        group, sign = moves.group[chosen], moves.sign[chosen]
        change = float(sign.sum())
        if min(self.held[a] - change, self.held[b] + change) < 1:
            return False
        self.counts[group, a] -= sign
        self.counts[group, b] += sign
        self.held[[a, b]] += -change, change
        effect = moves.effect[:, chosen].sum(axis=1)
        self.v[:, a] -= effect
        self.v[:, b] += effect
        self._reopen(a, b)
        return True

    def _own(self, c: int, v: np.ndarray) -> np.ndarray:
        """Return what the sets of a class speak of, of its v in the rows of E / scale."""
        return v[self.rows[c]] * self.groups.scale[self.rows[c], None]

    def _sizes(self, c: int, v: np.ndarray) -> np.ndarray:
        return self.sets[c].sizes(self._own(c, v))

    def _over(self, c: int, v: np.ndarray) -> np.ndarray:
        """Return by how much v exceeds every limit of a class."""
        return np.maximum(self._sizes(c, v[:, None])[:, 0] - self.limits[c], 0.0)

    def _price_of_excess(self, c: int, v: np.ndarray) -> np.ndarray:
        """Return what every column of v exceeds the limits of a class by, at their prices."""
        return self.prices[c] @ np.maximum(self._sizes(c, v) - self.limits[c][:, None], 0.0)

    def _excess(self, a: int, b: int, change: np.ndarray) -> np.ndarray:
        """Return the same for two classes after every change of the second one's v."""
        after = self._price_of_excess(b, self.v[:, b, None] + change)
        return after + self._price_of_excess(a, self.v[:, a, None] - change)

    def _value_to_beat(self, a: int, b: int) -> float:
        """Return the price of what two classes exceed now, less rounding."""
        nothing = np.zeros((len(self.v), 1))
        return float(self._excess(a, b, nothing)[0]) - _ROUNDING * self.flip

    def _slope(self, c: int) -> np.ndarray:
        """Return what a unit of every row of v is worth to a class, near to its limits alone."""
        v = self._own(c, self.v[:, [c]])[:, 0]
        near = self.sets[c].sizes(v[:, None])[:, 0] > self.limits[c] - _ACTIVE * self.unit[c]
        slope = np.zeros(len(self.v))
        own = self.sets[c].slope(v, np.where(near, self.prices[c], 0.0))
        np.maximum.at(slope, self.rows[c], np.abs(own) * self.groups.scale[self.rows[c]])
        return slope

    def _wanted(self, a: int, b: int) -> np.ndarray:
        """Return the change of b's v, and minus that of a's, that brings both into their sets."""
        change = np.zeros(len(self.v))
        for _ in range(_TURNS):
            before = change.copy()
            for c, sign in ((a, -1.0), (b, 1.0)):
                v = self._own(c, (self.v[:, c] + sign * change)[:, None])[:, 0]
                step = (self.sets[c].nearest(v) - v) / self.groups.scale[self.rows[c]]
                np.add.at(change, self.rows[c], sign * step)
            if (change == before).all():
                break
        return change


def _largest(sets: Product, multipliers: np.ndarray) -> np.ndarray:
    """Return the largest multiplier of every set, once for each of its limits."""
    parts = sets.split(np.abs(multipliers))
    return np.concatenate([np.full(len(part.limits), own.max()) for part, own in parts])


@lru_cache(maxsize=32)
def _pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(n, k=1)
