"""Several sets at once, each of its own part of v."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from scipy.linalg import block_diag

from ._sets import AllowedSet, LinearRows, Region, SoftSupport


@dataclass(frozen=True)
class Product:
    """Several sets at once: v, shape (r,), holds the v of each one after another.

    Parameters
    ----------
    parts : sequence of AllowedSet
        The sets.
    """

    parts: Sequence[AllowedSet]

    def split(self, v: np.ndarray) -> Iterator[tuple[AllowedSet, np.ndarray]]:
        """Yield every set with its own v, or its own rows of a matrix."""
        return zip(self.parts, pieces(v, [part.size for part in self.parts]), strict=True)

    def violation(self, v: np.ndarray) -> float:
        """Return by how much v leaves the sets, in the worst one's unit; 0 inside."""
        return max((part.violation(own) / part.unit for part, own in self.split(v)), default=0.0)

    @property
    def limits(self) -> np.ndarray:
        """Upper bounds of :meth:`sizes`."""
        return np.concatenate([np.empty(0), *(part.limits for part in self.parts)])

    @property
    def reach(self) -> np.ndarray:
        """The limit of the set that bounds every coordinate of v, shape (r,)."""
        parts = [np.broadcast_to(part.limits, part.size) for part in self.parts]
        return np.concatenate([np.empty(0), *parts])

    def sizes(self, v: np.ndarray) -> np.ndarray:
        """Return what the sets bound of every column of v (r, m), shape (limits, m)."""
        return np.vstack([v[:0], *(part.sizes(own) for part, own in self.split(v))])

    def slope(self, v: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the derivative of the weighted sum of :meth:`sizes` at v, shape (r,)."""
        own_weights = pieces(weights, [len(part.limits) for part in self.parts])
        pairs = zip(self.split(v), own_weights, strict=True)
        slopes = (part.slope(own, weight) for (part, own), weight in pairs)
        return np.concatenate([np.empty(0), *slopes])

    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        """Return what a unit of every limit is worth at multipliers."""
        parts = self.split(multipliers)
        return np.concatenate([np.empty(0), *(part.prices(own) for part, own in parts)])

    def nearest(self, v: np.ndarray) -> np.ndarray:
        """Return the nearest v of the sets, in the metric of v itself."""
        found = []
        for part, own in self.split(v):
            inside = part.violation(own) == 0
            found.append(own if inside else part.nearest(np.eye(part.size), own, None))
        return np.concatenate(found)

    def contains(self, v: np.ndarray) -> np.ndarray:
        """Tell for every column of v (r, m) whether it is in all sets, shape (m,)."""
        inside = [part.contains(own) for part, own in self.split(v)]
        return np.logical_and.reduce([np.ones(v.shape[1], dtype=bool), *inside])

    def support(self, direction: np.ndarray) -> float:
        """Return max over the sets of direction·v."""
        return sum(part.support(own) for part, own in self.split(direction))

    def soft_support(self, direction: np.ndarray, width: float) -> list[SoftSupport]:
        """Return the smoothed :meth:`support` of every set, by a width over its unit."""
        pairs = self.split(direction)
        return [part.soft_support(own, width / part.unit) for part, own in pairs]

    def linear_rows(self) -> LinearRows:
        """Return what a linear model needs of the sets."""
        rows = [LinearRows.of_box(np.empty(0)), *(part.linear_rows() for part in self.parts)]
        lower, upper, auxiliary, sums, most = zip(*rows, strict=True)
        limits = np.concatenate(lower), np.concatenate(upper)
        blocks = block_diag(*auxiliary), block_diag(*sums)
        return LinearRows(*limits, *blocks, np.concatenate(most))

    @property
    def is_polyhedron(self) -> bool:
        """Whether :meth:`linear_rows` are the sets themselves."""
        return all(part.is_polyhedron for part in self.parts)

    def touched(self, v: np.ndarray) -> Product:
        """Return the sets with linear rows that touch those that v leaves where it leaves them."""
        left = [part.violation(own) > 0 for part, own in self.split(v)]
        pairs = zip(self.split(v), left, strict=True)
        return Product([part.touched(own) if out else part for (part, own), out in pairs])

    def inside(self, v: np.ndarray, multipliers: np.ndarray, loss: float) -> Product:
        """Return polyhedra in the sets about the points v, where no multiplier loses much.

        Parameters
        ----------
        v : ndarray of shape (r,)
            Points of the sets.
        multipliers : ndarray of shape (r,)
            What a unit of v is worth there.
        loss : float
            What each set may lose.
        """
        sizes = [float(np.linalg.norm(own)) for _, own in self.split(multipliers)]
        margins = [loss / size if size else np.inf for size in sizes]
        pairs = zip(self.split(v), margins, strict=True)
        return Product([part.inside(own, margin) for (part, own), margin in pairs])

    def near_optimal_box(self, direction: np.ndarray, tolerance: float) -> Region:
        """Return the region of all sets; see :meth:`AllowedSet.near_optimal_box`."""
        nothing = Region(np.empty((0, 0)), np.empty(0), np.empty(0))
        regions = [part.near_optimal_box(own, tolerance) for part, own in self.split(direction)]
        transforms, centres, half_widths = zip(nothing, *regions, strict=True)
        return Region(block_diag(*transforms), np.concatenate(centres), np.concatenate(half_widths))

    def interior(self, width: float) -> Product:
        """Return the sets, each at least as wide as `width` units."""
        return Product([part.interior(width) for part in self.parts])

    def slack_units(self) -> np.ndarray:
        """Return by how much a slack of 1 widens every coordinate, shape (r,)."""
        return np.concatenate([np.empty(0), *(part.slack_units() for part in self.parts)])


def pieces(stacked: np.ndarray, lengths: Sequence[int]) -> list[np.ndarray]:
    """Return vectors of given lengths from all of them one after another, or rows of a matrix."""
    ends = accumulate(lengths)
    return [stacked[end - length : end] for length, end in zip(lengths, ends, strict=True)]
