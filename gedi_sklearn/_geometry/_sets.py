r"""Sets of allowed values: the only place that knows their shape.

Every set is convex, symmetric about 0, and speaks of v = A c, with c the orthonormal coordinates
of targets. Projections, violations, bounds, rounding and linear models ask the set; what it
answers is all that they know of it. A set of another shape is a class of this module; the one of
groups stands beside their block, in :mod:`gedi_sklearn._geometry._groups`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import brentq, lsq_linear, nnls

# A coordinate counts as active where it is this near to its bound, in units of the set.
_ACTIVE = 1e-12


class LinearRows(NamedTuple):
    r"""A set in a linear model: lower ≤ v + D w ≤ upper and S w ≤ most, with 0 ≤ w ≤ 1.

    Attributes
    ----------
    lower, upper : ndarray of shape (r,)
        Range of every row of v.
    auxiliary : ndarray of shape (r, a)
        D.
    sums : ndarray of shape (b, a)
        S.
    most : ndarray of shape (b,)
        The bounds of these sums.
    """

    lower: np.ndarray
    upper: np.ndarray
    auxiliary: np.ndarray
    sums: np.ndarray
    most: np.ndarray

    @classmethod
    def of_box(cls, half_widths: np.ndarray) -> LinearRows:
        """Return the rows of |v| ≤ h."""
        empty = np.zeros((len(half_widths), 0))
        return cls(-half_widths, half_widths, empty, empty[:0], np.empty(0))


class SoftSupport(NamedTuple):
    """A smooth function above the support function of a set, with its derivatives.

    Attributes
    ----------
    value : float
        The value.
    point : ndarray of shape (r,)
        The gradient, a point of the set.
    diagonal, axis : ndarray of shape (r,)
        D and a of the Hessian, diag(D) − a aᵀ.
    """

    value: float
    point: np.ndarray
    diagonal: np.ndarray
    axis: np.ndarray


class Region(NamedTuple):
    """The v with |T v − c| ≤ h."""

    transform: np.ndarray
    centre: np.ndarray
    half_widths: np.ndarray


@dataclass(frozen=True)
class AllowedSet(ABC):
    """A convex, symmetric set of v.

    Attributes
    ----------
    size : int
        Number of coordinates r.
    unit : float
        What counts as 1 on the scale of v, for tolerances.
    """

    # Whether v are the orthonormal coordinates themselves, whose basis is that of the rows.
    is_of_coordinates: ClassVar[bool] = False
    # The norm that is bounded: "l1", "sd" (Euclidean) or "each", the size of every coordinate.
    norm: ClassVar[str]

    size: int
    unit: float

    @property
    def bounded(self) -> np.ndarray:
        """Which coordinates have a bound at all, shape (r,), bool."""
        return np.broadcast_to(np.isfinite(self.limits), self.size)

    @abstractmethod
    def take(self, rows: np.ndarray) -> AllowedSet:
        """Return the set of some coordinates, those that are bounded."""

    @property
    @abstractmethod
    def limits(self) -> np.ndarray:
        """Upper bounds of :meth:`sizes`: one for each coordinate, or one for all of them."""

    @abstractmethod
    def sizes(self, v: Any) -> Any:
        """Return what the set bounds of v, in the shape of the limits.

        Of a matrix (r, m) of many v, the same for each of them: (c, m).
        """

    @abstractmethod
    def slope(self, v: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the derivative of the weighted sum of :meth:`sizes` at v, shape (r,)."""

    @abstractmethod
    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        """Return what a unit of every limit is worth at multipliers: their dual norm."""

    def violation(self, v: np.ndarray) -> float:
        """Return by how much v leaves the set, 0 inside."""
        return float(np.max(self.sizes(v) - self.limits, initial=0.0))

    def contains(self, v: np.ndarray) -> np.ndarray:
        """Tell for every column of v (r, m) whether it is in the set, shape (m,)."""
        return (self.sizes(v) <= self.limits[:, None]).all(axis=0)

    @abstractmethod
    def support(self, direction: np.ndarray) -> float:
        """Return max over the set of direction·v; a coordinate without a bound adds nothing."""

    @abstractmethod
    def soft_support(self, direction: np.ndarray, width: float) -> SoftSupport:
        """Return :meth:`support`, smoothed: above it by some widths at most, in its units."""

    @abstractmethod
    def nearest(self, matrix: np.ndarray, c: np.ndarray, own: np.ndarray | None) -> np.ndarray:
        """Return the allowed v of least ‖M v − c‖.

        Parameters
        ----------
        matrix : ndarray of shape (k, r)
            M.
        c : ndarray of shape (k,)
            Coordinates, which are not allowed.
        own : ndarray of shape (r,) or None
            Their v; None in another metric than that of orthonormal coordinates.

        Returns
        -------
        ndarray of shape (r,)
        """

    @abstractmethod
    def active(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return E (r, a) and e (a,): the smallest face that holds v lies in E'v = e."""

    def derivative(self, rows: np.ndarray, c: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the derivative of the nearest coordinates at c, whose nearest v is given."""
        basis = _orthonormal_span(rows.T @ self.active(v)[0])
        return np.eye(len(c)) - basis @ basis.T

    def outward(self, direction: np.ndarray, v: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        """Return the direction that points out of the set at v, near to one that should.

        Parameters
        ----------
        direction : ndarray of shape (r,)
            The direction, not exact.
        v : ndarray of shape (r,)
            A point of the boundary.
        rounding : ndarray of shape (r,)
            What its entries may be off by, but for a common factor.

        Returns
        -------
        ndarray of shape (r,)
        """
        return direction

    def linear_rows(self) -> LinearRows:
        """Return what a linear model needs of the set, or of a polyhedron around it."""
        return LinearRows.of_box(np.broadcast_to(self.limits, self.size))

    @property
    def is_polyhedron(self) -> bool:
        """Whether :meth:`linear_rows` are the set itself."""
        return True

    def touched(self, v: np.ndarray) -> AllowedSet:
        """Return the set with linear rows that touch it in the direction of v, too."""
        return self

    def inside(self, v: np.ndarray, margin: float) -> AllowedSet:
        """Return a polyhedron in the set that reaches up to a point v, but for a margin."""
        return self

    @abstractmethod
    def near_optimal_box(self, direction: np.ndarray, tolerance: float) -> Region:
        """Return a region that holds the v with support(d) − d'v ≤ tolerance.

        That is all such v where d has one size on the face that it names and is 0 elsewhere.
        """

    def interior(self, width: float) -> AllowedSet:
        """Return the set, at least as wide as `width` units: integers need an interior."""
        return self

    @abstractmethod
    def scaled(self, share: float) -> AllowedSet:
        """Return the set shrunk to a share of its size."""

    def slack_units(self) -> np.ndarray:
        """Return by how much a slack of 1 widens every coordinate, shape (r,)."""
        return np.zeros(self.size)


@dataclass(frozen=True)
class Box(AllowedSet):
    """|v_j| ≤ b_j; infinite where a coordinate is free.

    Attributes
    ----------
    half_widths : ndarray of shape (r,)
        b.
    forbidden : ndarray of shape (r,), bool
        Coordinates that have nothing but a slack.
    """

    norm: ClassVar[str] = "each"

    half_widths: np.ndarray
    forbidden: np.ndarray

    def take(self, rows: np.ndarray) -> Box:
        return Box(int(rows.sum()), self.unit, self.half_widths[rows], self.forbidden[rows])

    @property
    def limits(self) -> np.ndarray:
        return self.half_widths

    def sizes(self, v: Any) -> Any:
        return np.abs(v)

    def slope(self, v: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return weights * np.sign(v)

    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        return np.abs(multipliers)

    def support(self, direction: np.ndarray) -> float:
        return float(np.abs(direction)[self.bounded] @ self.half_widths[self.bounded])

    def soft_support(self, direction: np.ndarray, width: float) -> SoftSupport:
        # |d| is the largest of d and −d.
        size, half = np.abs(direction), self.half_widths
        odds = np.exp(-2 * size / width)
        share = (1 - odds) / (1 + odds)
        value = float(half @ (size + width * np.log1p(odds)))
        point = half * np.sign(direction) * share
        return SoftSupport(value, point, half / width * (1 - share**2), np.zeros(self.size))

    def nearest(self, matrix: np.ndarray, c: np.ndarray, own: np.ndarray | None) -> np.ndarray:
        v, size = np.zeros(self.size), float(np.linalg.norm(c))
        allowed = np.flatnonzero(self.half_widths > 0)  # lsq_linear refuses equal bounds
        if allowed.size == 0 or size == 0:
            return v
        norms, widths = np.linalg.norm(matrix[:, allowed], axis=0), self.half_widths[allowed]
        # The unknown of a column of norm 1: v · norm / size, of the order of 1 in any unit.
        columns, target, limits = matrix[:, allowed] / norms, c / size, widths * norms / size
        if allowed.size == 1:
            scaled = np.clip(columns.T @ target, -limits, limits)
        else:
            scaled = lsq_linear(columns, target, (-limits, limits), method="bvls", tol=1e-14).x
        v[allowed] = np.clip(scaled * (size / norms), -widths, widths)
        return v

    def active(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at_end = np.abs(v) >= self.half_widths * (1 - _ACTIVE)
        return np.eye(self.size)[:, at_end], np.copysign(self.half_widths, v)[at_end]

    def outward(self, direction: np.ndarray, v: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        at_end = np.abs(v) >= self.half_widths * (1 - _ACTIVE)
        return np.where(at_end & ((direction * v > 0) | (v == 0)), direction, 0.0)

    def near_optimal_box(self, direction: np.ndarray, tolerance: float) -> Region:
        # At the corner that d names, each coordinate within tolerance / |d_j| of its side.
        size = np.abs(direction)
        deep = 2 * self.half_widths * size > tolerance
        half = np.where(deep, tolerance / np.where(deep, 2 * size, 1.0), self.half_widths)
        return Region(np.eye(self.size), np.sign(direction) * (self.half_widths - half), half)

    def scaled(self, share: float) -> Box:
        half_widths = self.half_widths.copy()
        half_widths[self.bounded] *= share
        return replace(self, half_widths=half_widths)

    def slack_units(self) -> np.ndarray:
        return self.forbidden * self.unit


@dataclass(frozen=True)
class _NormBall(AllowedSet):
    """‖v‖ ≤ q for a norm of all coordinates.

    Attributes
    ----------
    radius : float
        q, possibly infinite.
    """

    radius: float

    def take(self, rows: np.ndarray) -> AllowedSet:
        return replace(self, size=int(rows.sum()))

    @property
    def limits(self) -> np.ndarray:
        return np.array([self.radius])

    def scaled(self, share: float) -> AllowedSet:
        # Nothing is no share of infinity.
        return replace(self, radius=share * self.radius if np.isfinite(self.radius) else np.inf)


@dataclass(frozen=True)
class L1Ball(_NormBall):
    """Σ|v_j| ≤ q."""

    norm: ClassVar[str] = "l1"

    def sizes(self, v: Any) -> Any:
        return np.abs(v).sum(axis=0)[None]

    def slope(self, v: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return weights * np.sign(v)

    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        return np.abs(multipliers).max(initial=0.0)[None]

    def support(self, direction: np.ndarray) -> float:
        largest = float(np.abs(direction).max(initial=0.0))
        return self.radius * largest if largest and np.isfinite(self.radius) else 0.0

    def soft_support(self, direction: np.ndarray, width: float) -> SoftSupport:
        # The logarithm of the sum of exponentials of all d and −d.
        largest = float(np.abs(direction).max())
        up, down = np.exp((direction - largest) / width), np.exp((-direction - largest) / width)
        total = float(up.sum() + down.sum())
        mean, factor = (up - down) / total, self.radius / width
        value = self.radius * (largest + width * np.log(total))
        diagonal = factor * (up + down) / total
        return SoftSupport(value, self.radius * mean, diagonal, np.sqrt(factor) * mean)

    def nearest(self, matrix: np.ndarray, c: np.ndarray, own: np.ndarray | None) -> np.ndarray:
        """See the base class.

        With u = (v⁺, v⁻) / q on the unit simplex the residual is linear, (q[M, −M] − c1ᵀ)u, and
        the point of least norm in a simplex's image is the scaled solution of one non-negative
        least-squares problem with the right-hand side (0, …, 0, 1).
        """
        k, size = self.size, float(np.linalg.norm(c))
        if self.radius == 0 or size == 0:
            return np.zeros(k)
        if k == 1:  # one of two points, in every metric
            return np.copysign(self.radius, c @ matrix)
        spread = self.radius / size * np.hstack([matrix, -matrix]) - (c / size)[:, None]
        stacked = np.vstack([spread, self._equations(), np.ones(2 * k)])
        norms = np.linalg.norm(stacked, axis=0)
        weights = nnls(stacked / norms, np.r_[np.zeros(len(stacked) - 1), 1.0])[0] / norms
        weights /= weights.sum()
        return self.radius * (weights[:k] - weights[k:])

    def _equations(self) -> np.ndarray:
        """Return rows that vanish for every u = (v⁺, v⁻)."""
        return np.empty((0, 2 * self.size))

    def active(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at_zero = np.abs(v) <= _ACTIVE * self.radius
        directions = np.column_stack([np.where(at_zero, 0.0, np.sign(v)), np.eye(self.size)])
        kept = np.r_[not at_zero.all(), at_zero]
        return directions[:, kept], np.r_[self.radius, np.zeros(self.size)][kept]

    def outward(self, direction: np.ndarray, v: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        # One size on the face that holds v, which its most reliable entry tells, and no more off.
        on_face = np.abs(v) > _ACTIVE * self.radius
        if not on_face.any():  # radius 0
            return direction
        surest = np.where(on_face, rounding, np.inf).argmin()
        size = abs(float(direction[surest]))
        return np.where(on_face, size * np.sign(v), np.clip(direction, -size, size))

    def linear_rows(self) -> LinearRows:
        # v = q(w⁺ − w⁻), Σ(w⁺ + w⁻) ≤ 1
        units, at_zero = self.radius * np.eye(self.size), np.zeros(self.size)
        sums = np.ones((1, 2 * self.size))
        return LinearRows(at_zero, at_zero, np.hstack([-units, units]), sums, np.ones(1))

    def near_optimal_box(self, direction: np.ndarray, tolerance: float) -> Region:
        size, sign = np.abs(direction), np.sign(direction)
        largest = float(size.max(initial=0.0))
        if not largest:
            return Region(np.eye(len(size)), np.zeros(len(size)), np.full(len(size), self.radius))
        # On the face of the ball that d names, up to what may be lost: multipliers are known to no
        # more. Each coordinate that is 0 there is near 0.
        off_face = (largest - size) * self.radius > max(tolerance, 1e-9 * largest * self.radius)
        half_depth = min(tolerance / largest, self.radius)
        near_zero = np.minimum(tolerance / (largest - size[off_face]), self.radius)
        return Region(
            np.vstack([np.eye(len(size))[off_face], np.where(off_face, 0.0, sign)]),
            np.r_[np.zeros(off_face.sum()), self.radius - half_depth],
            np.r_[near_zero, half_depth],
        )

    def interior(self, width: float) -> AllowedSet:
        if self.radius > 0:
            return self
        half_widths = np.full(self.size, width * self.unit / max(self.size, 1))
        return Box(self.size, self.unit, half_widths, np.zeros(self.size, dtype=bool))


@dataclass(frozen=True)
class Ball(_NormBall):
    """‖v‖₂ ≤ q.

    Attributes
    ----------
    touching : ndarray of shape (t, r) or None
        Directions in which the linear rows, those of the box around the ball, touch it as well.
    inner : LinearRows or None
        Those of a box inside, in the place of these.
    """

    is_of_coordinates: ClassVar[bool] = True
    norm: ClassVar[str] = "sd"

    touching: np.ndarray | None = None
    inner: LinearRows | None = None

    def sizes(self, v: Any) -> Any:
        return np.linalg.norm(v, axis=0)[None]

    def slope(self, v: np.ndarray, weights: np.ndarray) -> np.ndarray:
        size = float(np.linalg.norm(v))
        return weights * v / size if size else np.zeros(self.size)

    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        return np.array([np.linalg.norm(multipliers)])

    def support(self, direction: np.ndarray) -> float:
        size = float(np.linalg.norm(direction))
        return self.radius * size if size and np.isfinite(self.radius) else 0.0

    def soft_support(self, direction: np.ndarray, width: float) -> SoftSupport:
        size = float(np.hypot(np.linalg.norm(direction), width))
        factor = self.radius / size
        axis = np.sqrt(factor) / size * direction
        diagonal = np.full(self.size, factor)
        return SoftSupport(self.radius * size, factor * direction, diagonal, axis)

    def nearest(self, matrix: np.ndarray, c: np.ndarray, own: np.ndarray | None) -> np.ndarray:
        """See the base class: radial, and in another metric by its secular equation."""
        if own is not None:
            return own * (self.radius / np.linalg.norm(own))
        if self.radius == 0:
            return np.zeros(self.size)
        left, axes, right = np.linalg.svd(matrix, full_matrices=False)
        along = axes * (left.T @ c)
        # v = V diag(axes² + λ)⁻¹ along, with λ such that its norm is the radius.
        highest = 2 * float(np.linalg.norm(along)) / self.radius

        def excess(multiplier: float) -> float:
            return float(np.linalg.norm(along / (axes**2 + multiplier))) / self.radius - 1

        multiplier = 0.0
        if excess(0.0) > 0:  # else it is outside by rounding only
            multiplier = brentq(excess, 0.0, highest, xtol=1e-300, rtol=1e-15)
        v = right.T @ (along / (axes**2 + multiplier))
        return v * (self.radius / np.linalg.norm(v))

    def active(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return v[:, None], np.array([self.radius**2])  # the tangent plane

    def derivative(self, rows: np.ndarray, c: np.ndarray, v: np.ndarray) -> np.ndarray:
        # v is c, or a multiple of it.
        axis, share = c / np.linalg.norm(c), self.radius / float(np.linalg.norm(rows @ c))
        return share * (np.eye(len(c)) - np.outer(axis, axis))

    @property
    def is_polyhedron(self) -> bool:
        return self.inner is not None

    def linear_rows(self) -> LinearRows:
        if self.inner is not None:
            return self.inner
        # v = q(2w − 1), and 2q u·w ≤ q(1 + Σu) for every direction u.
        units, at_end = 2 * self.radius * np.eye(self.size), np.full(self.size, -self.radius)
        touching = np.empty((0, self.size)) if self.touching is None else self.touching
        most = 0.5 * (1 + touching.sum(axis=1))
        return LinearRows(at_end, at_end, -units, touching, most)

    def touched(self, v: np.ndarray) -> Ball:
        size = np.linalg.norm(v)
        if not size:
            return self
        known = np.empty((0, self.size)) if self.touching is None else self.touching
        return replace(self, touching=np.vstack([known, v / size]))

    def inside(self, v: np.ndarray, margin: float) -> Ball:
        # A box whose longest side points to v. The cap beyond its end is as deep as the margin, or
        # half the way from v to the boundary; the other sides are as long as the ball allows.
        k, q, size = self.size, self.radius, float(np.linalg.norm(v))
        depth = min(max((q - size) / 2, margin), q * (1 - k**-0.5))
        axes = np.linalg.qr(np.column_stack([v if size else np.eye(k)[0], np.eye(k)]))[0]
        across = np.sqrt(depth * (2 * q - depth) / max(k - 1, 1))
        sides = axes * np.r_[q - depth, np.full(k - 1, across)]
        # v = sides (2w − 1)
        at_end, no_sums = -sides.sum(axis=1), np.empty((0, k))
        rows = LinearRows(at_end, at_end, -2 * sides, no_sums, no_sums[:, 0])
        return replace(self, inner=rows)

    def near_optimal_box(self, direction: np.ndarray, tolerance: float) -> Region:
        size = float(np.linalg.norm(direction))
        if not size:
            return Region(np.eye(self.size), np.zeros(self.size), np.full(self.size, self.radius))
        # A cap of depth τ / ‖d‖ about the point that d names, in axes along and across d.
        axes = np.linalg.qr(np.column_stack([direction, np.eye(self.size)]))[0].T
        depth = min(tolerance / size, 2 * self.radius)
        across = np.sqrt(depth * (2 * self.radius - depth)) if depth < self.radius else self.radius
        along = np.sign(axes[0] @ direction) * (self.radius - depth / 2)
        others = np.zeros(self.size - 1)
        return Region(axes, np.r_[along, others], np.r_[depth / 2, others + across])

    def interior(self, width: float) -> Ball:
        return replace(self, radius=max(self.radius, width * self.unit))


def _orthonormal_span(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of some columns, each taken at norm 1."""
    norms = np.linalg.norm(columns, axis=0)
    vectors, sizes, _ = np.linalg.svd(columns / np.where(norms == 0, 1.0, norms))
    return vectors[:, : int((sizes > 1e-14 * sizes.max(initial=0.0)).sum())]
