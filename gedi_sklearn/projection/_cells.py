"""Rows of a projection of classes: their costs, what they add to the bounded v, their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._geometry import AllowedSet, pieces
from ..constraints import FittedConstraint, GroupBall, Product

# log(0) is cut here: a flip against certainty costs log((1 − ε) / ε) = 6.9.
_LOG_LOSS_MARGIN = 1e-3
# Ranges (quantiles) of the effect on a row of v whose nearest cells take turns at the front of
# the core, and how many turns.
_EFFECT_RANGES, _TURNS = 8, 3


def range_of_classes(cost: np.ndarray) -> np.ndarray:
    """Return by how much the classes of each row differ in cost, shape (n,).

    Of two classes the cost is that of the second one above the first one.
    """
    return np.abs(cost[:, 0]) if cost.shape[1] == 1 else np.ptp(cost, axis=1)


def common_unit(costs: np.ndarray) -> float:
    """Return the least cost, where all are multiples of it, and not of a mere tie; else 0."""
    size = np.abs(costs)
    multiples = size / size.min(initial=np.inf, where=size > 0)
    off, largest = np.abs(multiples - np.rint(multiples)).max(), multiples.max()
    return float(size.max() / largest) if 0 < largest <= 1000 and off <= 1e-12 else 0.0


def multiple_from(bound: Any, unit: float) -> Any:
    """Return the least multiple of a unit at or above a bound; of 0 the bound itself."""
    if not unit:
        return bound
    # A bound this little above a multiple is one.
    return np.maximum(bound, unit * np.ceil(bound / unit - 1e-6))


def class_costs(
    y: np.ndarray, p: np.ndarray | None, target_weight: float, loss: str, n_classes: int
) -> np.ndarray:
    """Return the loss of every row in every class, shape (n, K).

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets, 0…K − 1.
    p : ndarray of shape (n,) or (n, K), or None
        Probabilities of the second of two classes, or of every class; None for the loss against
        y alone.
    target_weight : float
        Weight of the loss against y, beside predictions.
    loss : {"hamming", "log_loss"}
        Hamming distance (its mean, for probabilities) or the negative log likelihood.
    n_classes : int
        K.

    Returns
    -------
    ndarray of shape (n, K)
    """
    own = (y[:, None] == np.arange(n_classes)).astype(np.float64)
    if p is None:
        return _losses(own, loss)
    predicted = p if p.ndim == 2 else np.column_stack([1 - p, p])
    return _losses(predicted, loss) + target_weight * _losses(own, loss)


def _losses(probability: np.ndarray, loss: str) -> np.ndarray:
    if loss == "hamming":
        return 1 - probability
    return -np.log(np.clip(probability, _LOG_LOSS_MARGIN, 1 - _LOG_LOSS_MARGIN))


def row_scale(effects: np.ndarray) -> np.ndarray:
    """Return the largest entry of every row, 1 for a row of zeros."""
    largest = np.maximum(effects.max(axis=1, initial=0.0), -effects.min(axis=1, initial=0.0))
    return np.where(largest == 0, 1.0, largest)


def ball_of_means(sets: Sequence[AllowedSet]) -> GroupBall | None:
    """Return the bound on the deviations of group means, where nothing else is bounded."""
    ball = sets[0] if len(sets) == 1 else None
    return ball if isinstance(ball, GroupBall) and ball.are_means else None


class LinearImage:
    """The bounded v as a linear function of targets: v_i is row a_i of E times target column b_i.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraints on the rows of positive weight.

    Attributes
    ----------
    allowed : Product
        The sets of v, without what has no bound.
    row, column : ndarray of int, shape (r,)
        a and b.
    n_rows : int
        Number of rows of E.
    """

    def __init__(self, constraint: FittedConstraint) -> None:
        # The outputs of a constraint have the operator in common.
        self._blocks = [parts[0].block for parts in constraint.listed]
        sets, rows, columns, start = [], [], [], 0
        for parts in constraint.listed:
            own = start + np.arange(len(parts[0].block.bounded_operator))
            for part in parts:
                if part.bounds_anything:
                    sets.append(part.block.bounded)
                    rows.append(np.tile(own, len(part.outputs)))
                    columns.append(np.repeat(part.outputs, len(own)))
            start += len(own)
        self.allowed = Product(sets)
        self.n_rows = start
        self.row = np.concatenate([np.empty(0, dtype=int), *rows])
        self.column = np.concatenate([np.empty(0, dtype=int), *columns])
        self.constraint = constraint

    @property
    def keys(self) -> list[np.ndarray]:
        """What a column of E is a function of, beside the row's weight."""
        return [block.design.keys for block in self._blocks if block.allowed.bounded.any()]

    def effects(self, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return columns of E: what a 1 in a row adds to v.

        Parameters
        ----------
        rows : ndarray of int, shape (g,)
            Which rows.
        weight : ndarray of shape (g,)
            Their weights over the sum of all weights.
        """
        own = [block.effects(rows, weight) for block in self._blocks]
        # Of a million rows every copy counts.
        return own[0] if len(own) == 1 else np.vstack([np.empty((0, len(rows))), *own])

    def by_class(self) -> list[tuple[np.ndarray, Product]] | None:
        """Return the rows of v and the sets of every class; None where a set joins classes."""
        owned = list(self.allowed.split(self.column))
        if any(np.ptp(column) for _, column in owned):
            return None
        return [
            (
                np.flatnonzero(self.column == c),
                Product([part for part, column in owned if column[0] == c]),
            )
            for c in range(self.constraint.n_classes)
        ]

    def orthonormal_multipliers(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of v as those of the orthonormal coordinates of every column."""
        blocks = [part.block for part in self.constraint.parts]
        own = pieces(multipliers, [block.bounded.size for block in blocks])
        adjoint = [block.adjoint(mu) for block, mu in zip(blocks, own, strict=True)]
        return np.concatenate([np.empty(0), *adjoint])


@dataclass(frozen=True)
class Cells:
    """Rows sorted so that interchangeable ones stand together, the likeliest ones first.

    Group g has `size[g]` rows, counted in m columns: one per class, or, for two classes, the second
    class alone. A row of cell g in column j costs cost[g, j] and adds scale · matrix[:, g] to
    E z_j; `image` says where that stands in v. `order` (n,) sorts the rows, of which the first of
    cell g is order[start[g]]; without them the cells are columns of any linear program.
    """

    size: np.ndarray
    cost: np.ndarray
    matrix: np.ndarray
    scale: np.ndarray
    image: LinearImage
    order: np.ndarray
    start: np.ndarray

    @property
    def n(self) -> int:
        return len(self.size)

    @property
    def n_columns(self) -> int:
        return self.cost.shape[1]

    @property
    def column(self) -> np.ndarray:
        """The target column that every row of v looks at, shape (r,)."""
        return self.image.column if self.n_columns > 1 else np.zeros_like(self.image.column)

    def sample(self, chosen: np.ndarray) -> Cells:
        """Return some cells, in sizes that make up for the others."""
        size = self.size[chosen] * (self.n / len(chosen))
        matrix = self.matrix[:, chosen]
        if self.n_columns > 1:
            # The effects of all rows sum to 0, and with them the v of all classes: those of a
            # sample have to as well, or narrow sets around 0 exclude each other.
            matrix -= (matrix @ size / size.sum())[:, None]
        return replace(self, size=size, cost=self.cost[chosen], matrix=matrix)

    def placed(self, base: np.ndarray) -> np.ndarray:
        """Return the counts (g, m) of whole cells in one column each; −1 is none."""
        return np.where(np.arange(self.n_columns) == base[:, None], self.size[:, None], 0.0)

    def mostly(self, counts: np.ndarray) -> np.ndarray:
        """Return the column (g,) that holds most rows of each cell; see :meth:`placed`."""
        if self.n_columns > 1:
            return counts.argmax(axis=1)
        return np.where(2 * counts[:, 0] > self.size, 0, -1)

    def effects(self, cells: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return what changes of the columns of some cells add to v, shape (r, moves).

        Parameters
        ----------
        cells : ndarray of int, shape (moves,)
            The cells.
        change : ndarray of shape (m, moves)
            What is added to each of their columns.
        """
        scaled = self.matrix[:, cells] * self.scale[:, None]
        return scaled[self.image.row] * change[self.column]

    def v(self, counts: np.ndarray) -> np.ndarray:
        """Return v of counts (g, m), shape (r,)."""
        sums = self.scale[:, None] * (self.matrix @ counts)
        return sums[self.image.row, self.column]

    def reduced(self, multipliers: np.ndarray) -> np.ndarray:
        """Return C − E'λ of every cell and column, shape (g, m)."""
        dual = np.zeros((len(self.scale), self.n_columns))
        dual[self.image.row, self.column] = multipliers * self.scale[self.image.row]
        return self.cost - self.matrix.T @ dual

    def choose(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the column of least reduced cost, shape (g,), and how far it is to others (g, m).

        With two classes −1 stands for the first one, which costs nothing.
        """
        reduced = self.reduced(multipliers)
        if self.n_columns == 1:
            base = np.where(reduced[:, 0] < 0, np.int8(0), np.int8(-1))
            return base, np.abs(reduced, out=reduced)
        base = reduced.argmin(axis=1)
        reduced -= np.take_along_axis(reduced, base[:, None], axis=1)
        np.put_along_axis(reduced, base[:, None], np.inf, axis=1)
        return base, reduced

    def dual_value(self, multipliers: np.ndarray, allowed: Product | None = None) -> float:
        """Return the lower bound that multipliers prove: Σ size·min(C − E'λ) − σ(−λ)."""
        least = self.reduced(multipliers).min(axis=1)
        used = least < 0 if self.n_columns == 1 else slice(None)
        allowed = self.image.allowed if allowed is None else allowed
        return float(self.size[used] @ least[used]) - allowed.support(multipliers)

    def soft_choice(self, multipliers: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the least reduced cost, smoothed, (g,), and the shares of the columns, (g, m)."""
        reduced = self.reduced(multipliers)
        if self.n_columns == 1:
            reduced = reduced[:, 0]
            odds = np.exp(-np.abs(reduced) / width)
            least = np.minimum(reduced, 0.0) - width * np.log1p(odds)
            return least, (np.where(reduced < 0, 1.0, odds) / (1 + odds))[:, None]
        lowest = reduced.min(axis=1, keepdims=True)
        odds = np.exp((lowest - reduced) / width)
        total = odds.sum(axis=1, keepdims=True)
        return (lowest - width * np.log(total))[:, 0], odds / total

    @cached_property
    def jumps(self) -> tuple[np.ndarray, np.ndarray, float] | None:
        """How a row changes the deviations of groups of the attribute, where several v are these.

        Returns
        -------
        code : ndarray of int, shape (g,)
            Which row of E a row of cell g changes most.
        jump : ndarray of shape (g,)
            By how much more than all others.
        common : float
            What it changes these by.
        """
        if self.n_columns == 1 or ball_of_means(self.image.allowed.parts) is None:
            return None
        code, every = self.matrix.argmax(axis=0), np.arange(self.n)
        own = self.matrix[code, every] * self.scale[code]
        other = (code == 0).astype(int)
        others = self.matrix[other, every] * self.scale[other]
        if np.ptp(others) > 1e-9 * np.abs(others).max():  # weights differ
            return None
        return code, own - others, float(others[0])

    def range_of_costs(self) -> float:
        """Return by how much the classes of the rows differ in cost, summed."""
        return float(self.size @ range_of_classes(self.cost))

    def all_costs(self, cost: np.ndarray) -> np.ndarray:
        """Return costs of every class, shape (g, K), from those of the columns."""
        return cost if self.n_columns > 1 else np.column_stack([np.zeros(self.n), cost])

    def all_counts(self, counts: np.ndarray) -> np.ndarray:
        """Return counts of every class, shape (g, K), from those of the columns.

        The last m columns lead back.
        """
        if self.n_columns > 1:
            return counts
        return np.column_stack([self.size - counts[:, 0], counts])

    def objective(self, counts: np.ndarray) -> float:
        """Return the cost of counts."""
        return float((self.cost * counts).sum())

    def round_up(self, bound: float) -> float:
        """Return the least cost that whole counts can have at or above a bound.

        Where every cost is a multiple of one of them, as it is of labels alone, every sum is.
        """
        return float(multiple_from(bound, self._unit))

    @cached_property
    def _unit(self) -> float:
        """What all costs are multiples of."""
        return common_unit(self.cost)

    def rows_of_classes(self, counts: np.ndarray) -> np.ndarray:
        """Return how many rows every class has, shape (K,)."""
        return self.all_counts(counts).sum(axis=0)

    def fault(self, counts: np.ndarray) -> str | None:
        """Return why counts are none of these cells, None where they are."""
        rows = counts.sum(axis=1)
        if (counts < 0).any() or (rows > self.size).any():
            return "counts outside of their bounds"
        if self.n_columns > 1 and (rows != self.size).any():
            return "counts that do not add up"
        return None

    def spread(self, counts: np.ndarray) -> np.ndarray:
        """Return z (n,), 0…K − 1: the first rows of a cell to its last class, and so on."""
        index = self.start.dtype
        rank = np.arange(len(self.order), dtype=index) - np.repeat(self.start, self.size)
        # How many rows of a cell are in the last class, in the last two, …; not in all.
        last = np.cumsum(counts[:, ::-1], axis=1)[:, : max(self.n_columns - 1, 1)]
        z = np.zeros(len(self.order))
        for rows in last.T:
            z[self.order] += rank < np.repeat(rows, self.size)
        return z


def mix_ranges(effects: np.ndarray, *labels: np.ndarray) -> np.ndarray:
    """Return an order of columns in which every range of effects, on every row, takes turns.

    The first columns can all have much the same attribute value; steps that together restore
    several rows of v need different ones. Where columns have labels, every range of each label
    then has a turn of its own.
    """
    if not effects.size:
        return np.arange(effects.shape[1])
    parts, own = [np.arange(min(_TURNS, effects.shape[1]))], []
    for row in effects:
        edges = np.quantile(row, np.linspace(0, 1, _EFFECT_RANGES + 1)[1:-1])
        member = np.searchsorted(edges, row).astype(np.int8)
        parts += [np.flatnonzero(member == one)[:_TURNS] for one in range(_EFFECT_RANGES)]
        for label in labels:
            kind = label.astype(int) * _EFFECT_RANGES + member
            first = np.full(kind.max() + 1, -1)
            first[kind[::-1]] = np.arange(len(kind))[::-1]  # the last one that is written stays
            own.append(first[first >= 0])
    turns = [part[turn] for turn in range(_TURNS) for part in parts if turn < len(part)]
    front = np.asarray(list(dict.fromkeys([*turns, *np.r_[0, *own]])), dtype=int)
    return np.r_[front, np.delete(np.arange(effects.shape[1]), front)]


def smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of so many smallest values, the least first."""
    if count >= len(values):
        return np.argsort(values, kind="stable")
    found = np.sort(np.argpartition(values, count)[:count])
    return found[np.argsort(values[found], kind="stable")]
