r"""Several sets at once: their product, and the joint span of their kernels.

A constraint b sees the coordinates :math:`c_b = B_b x` of a target, with x its coordinates in an
orthonormal basis Q of all kernels together and B_b of orthonormal rows. The nearest targets that
satisfy every constraint are t + Q Σ_b B_b'μ_b, with the multipliers μ_b for which every

.. math:: u_b = c_b + \sum_j G_{bj} \mu_j \quad (G_{bj} = B_b B_j^T)

is allowed and −μ_b points out of its set there: u_b = Π_b(u_b − μ_b), Π_b the nearest point. With
one constraint that is a single projection. With several, each in turn is projected on its own set
(block coordinate ascent of the dual), and Newton steps on that equation finish where kernels are
correlated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag, qr

from ..exceptions import SolverError
from ..kernels import row_blocks
from ._block import Block
from ._sets import AllowedSet, LinearRows, Region, SoftSupport

# Dependent columns of the joint span, relative to the largest.
_RANK_TOLERANCE = 1e-10
_MAX_SWEEPS = 500
# Residual of the multipliers, relative to their size: reached, and good enough where rounding
# stands in the way of more.
_RESIDUAL, _ACCEPTED = 4e-16, 1e-6
# Sweeps without progress after which what was reached has to do.
_PATIENCE = 5
_REFINEMENTS = 2
# How often a step along a valley is doubled, and by how much rounding changes the residual there.
_DOUBLINGS, _FLAT = 60, 1e-6
# Change of a move, relative to it, whose own error is beyond the digits of a long double.
_SETTLED = 1e-9


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
            found.append(own if inside else part.nearest(np.eye(part.size), own, own))
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
        # A set without multipliers is met as it is: what cuts its point off costs the others.
        margins = [loss / size if size else 0.0 for size in sizes]
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


class Multipliers(NamedTuple):
    """Multipliers of several sets, and where they hold.

    Attributes
    ----------
    mu : ndarray of shape (Σk_b,)
        μ_b of every set, one after another.
    faces : list of ndarray of shape (r_b,) or None
        The v of every set, to which the multiplier belongs; None inside of it.
    """

    mu: np.ndarray
    faces: list[Any]


class Span:
    """The joint span of the kernels of some constraints on real targets or two classes.

    Parameters
    ----------
    blocks : sequence of Block
        Those that bound anything, on the same rows of positive weight.
    weight : ndarray of shape (n,)
        Sample weights, all positive.
    """

    def __init__(self, blocks: Sequence[Block], weight: np.ndarray) -> None:
        self.blocks, self.weight = blocks, weight
        self._is_harmless = all(own.is_exact for own in blocks)
        self._designs = [own.design for own in blocks]

    @cached_property
    def q(self) -> np.ndarray:
        """Q, orthonormal under the weights, shape (n, K)."""
        bases = [own.orthonormal for own in self._designs]
        if len(bases) <= 1:
            return bases[0] if bases else np.empty((len(self.weight), 0))
        root = np.sqrt(self.normalized_weight)[:, None]
        basis, triangle = qr(np.hstack(bases) * root, mode="economic", pivoting=True)[:2]
        size = np.abs(np.diag(triangle))
        return np.asarray(basis)[:, size > _RANK_TOLERANCE * size[0]] / root

    @cached_property
    def stacked(self) -> np.ndarray:
        """B, all B_b one below the other, shape (Σk_b, K)."""
        if len(self._designs) <= 1:
            return np.eye(self.size)
        weighted = self.q * self.normalized_weight[:, None]
        return np.vstack([own.orthonormal.T @ weighted for own in self._designs])

    @property
    def size(self) -> int:
        """Number of coordinates K."""
        return self.blocks[0].size if len(self.blocks) == 1 else self.q.shape[1]

    def check_square(self) -> None:
        """Refuse as many groups as no square matrix should have."""
        for own in self._designs:
            own.fitted.check_size(own.fitted.n_columns)

    def joined(self, stacked: np.ndarray) -> np.ndarray:
        """Return B'μ, shape (K,)."""
        return stacked if len(self.blocks) == 1 else self.stacked.T @ stacked

    @cached_property
    def normalized_weight(self) -> np.ndarray:
        """The weights, summing to 1, shape (n,); equal ones take no memory."""
        total = self.weight.sum()
        if self.weight.strides[0]:
            return self.weight / total
        return np.broadcast_to(self.weight[:1] / total, self.weight.shape)

    def split(self, stacked: np.ndarray) -> list[np.ndarray]:
        """Return the vectors (or rows) of every constraint from those of all."""
        return pieces(stacked, [own.size for own in self.blocks])

    def v(self, x: np.ndarray) -> np.ndarray:
        """Return the v of coordinates x, those of all sets one after another."""
        seen = x if len(self.blocks) == 1 else self.stacked @ x
        own = zip(self.blocks, self.split(seen), strict=True)
        return np.concatenate([np.empty(0), *(one.v(c) for one, c in own)])

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        """Return x = Q'Wz of targets, shape (K,)."""
        if self._is_harmless:
            if len(self.blocks) == 1:
                return self._designs[0].inner_products(z)
            # One number where the weights are equal, which saves passes over many rows.
            share = self.normalized_weight if self.weight.strides[0] else 1 / len(z)
            centred = z - (z.mean() if np.ndim(share) == 0 else share @ z)
            return (centred * share) @ self.q
        return self._extended_coordinates(self.q, z).astype(np.float64)

    def _extended_coordinates(self, basis: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return coordinates in a nearly orthonormal basis, with the digits of a long double.

        Raw units multiply what rounding leaves, hence also the step of refinement.
        """
        weight = self.normalized_weight
        found, mean = np.zeros(basis.shape[1], dtype=np.longdouble), weight @ z
        for _ in range(2):
            change = np.zeros_like(found)
            for rows in row_blocks(len(z)):
                own = basis[rows].astype(np.longdouble)
                left = z[rows] - mean - own @ found
                change += (left * weight[rows]) @ own
            found = found + change
        return found

    def _extended_targets(self, t: np.ndarray, move: np.ndarray) -> np.ndarray:
        """Return t + Qx in long doubles."""
        z = np.empty(len(t), dtype=np.longdouble)
        for rows in row_blocks(len(t)):
            z[rows] = t[rows] + self.q[rows].astype(np.longdouble) @ move
        return z

    def multipliers(
        self,
        x: np.ndarray,
        metric: np.ndarray | None = None,
        check: Callable[[], object] | None = None,
    ) -> Multipliers:
        """Return the multipliers of the point nearest to x, which is x + S B'μ.

        Parameters
        ----------
        x : ndarray of shape (K,)
            Coordinates.
        metric : ndarray of shape (K, K), default=None
            S: the distance is that of S⁻¹; None is the identity.
        check : callable, default=None
            Called time and again; what it raises ends the search.
        """
        if len(self.blocks) == 1:
            if metric is not None:
                return joint_multipliers(self.blocks, x, metric, check)
            nearest, v = self.blocks[0].nearest(x)
            return Multipliers(nearest - x, [v])
        moved = self.stacked if metric is None else self.stacked @ metric
        return joint_multipliers(self.blocks, self.stacked @ x, moved @ self.stacked.T, check)

    def move(self, x: np.ndarray) -> np.ndarray:
        """Return the shortest move that leads from x into every set, shape (K,)."""
        return self.joined(self.multipliers(x).mu)

    def moved(self, t: np.ndarray, multipliers: Multipliers) -> np.ndarray:
        """Return t + Q B'μ, its coordinates in the sets to the last digit, shape (n,)."""
        move = self.joined(multipliers.mu)
        active = [b for b, v in enumerate(multipliers.faces) if v is not None]
        if self._is_harmless or not active:
            return t + self.explained(move)
        wanted = np.concatenate([self.blocks[b].extended(multipliers.faces[b]) for b in active])
        back = np.linalg.pinv(np.vstack([self.split(self.stacked)[b] for b in active]))
        extended = move.astype(np.longdouble)
        for _ in range(_REFINEMENTS):
            z = self._extended_targets(t, extended)
            seen = [self._extended_coordinates(self._designs[b].orthonormal, z) for b in active]
            change = back @ (wanted - np.concatenate(seen))
            extended = extended + change
            if np.linalg.norm(change.astype(float)) <= _SETTLED * np.linalg.norm(move):
                break
        return self._extended_targets(t, extended).astype(np.float64)

    def explained(self, move: np.ndarray) -> np.ndarray:
        """Return Qx on the rows, shape (n,)."""
        return self._designs[0].explained(move) if len(self.blocks) == 1 else self.q @ move

    def support(self, multipliers: np.ndarray) -> float:
        """Return Σ_b max over the allowed u of −μ_b'u."""
        own = zip(self.blocks, self.split(multipliers), strict=True)
        return float(sum(one.support(mu) for one, mu in own))

    def outward(self, multipliers: Multipliers) -> tuple[np.ndarray, float]:
        """Return multipliers near to given ones, and Σ_b of what −μ_b'u is at most over the sets.

        Unlike :meth:`support` to the last digit; see :meth:`Block.outward`.
        """
        own = zip(self.blocks, self.split(multipliers.mu), multipliers.faces, strict=True)
        found = [one.outward(mu, v) for one, mu, v in own]
        mu = np.concatenate([np.empty(0), *(one[0] for one in found)])
        return mu, float(sum(one[1] for one in found))


def joint_multipliers(
    blocks: Sequence[Block],
    point: np.ndarray,
    gram: np.ndarray,
    check: Callable[[], object] | None = None,
) -> Multipliers:
    """Return μ with u = c + G μ allowed, and −μ_b pointing out of every set there.

    Parameters
    ----------
    blocks : sequence of Block
        The sets.
    point : ndarray of shape (Σk,)
        c, those of all sets one after another.
    gram : ndarray of shape (Σk, Σk)
        G, positive semi-definite, its diagonal blocks definite.
    check : callable, default=None
        Called time and again; what it raises ends the search.

    Raises
    ------
    SolverError
        If the multipliers do not converge.
    """
    # μ has the unit of u at a G of about 1, where both together say what is left. A power of 2
    # changes no digit.
    unit = 2.0 ** np.round(np.log2(np.trace(gram) / len(gram))) if len(blocks) > 1 else 1.0
    gram, placed, end = gram / unit, [], 0
    for own in blocks:
        rows = slice(end, end := end + own.size)
        placed.append((own, rows, _root(gram[rows, rows])))

    def sweep(mu: np.ndarray) -> Multipliers:
        """Project on every set in turn."""
        mu, faces = mu.copy(), []
        for own, rows, root in placed:
            block = gram[rows, rows]
            without = point[rows] + gram[rows] @ mu - block @ mu[rows]
            nearest, v = own.nearest(without, root)
            move = nearest - without
            mu[rows] = move if root is None else np.linalg.solve(block, move)
            faces.append(v)
        return Multipliers(mu, faces)

    def residual(mu: np.ndarray) -> tuple[Multipliers, np.ndarray, np.ndarray]:
        """Return also u − Π(u − μ), 0 at the solution, and the derivative of the Π."""
        u = point + gram @ mu
        left, faces, derivative = np.empty(len(u)), [], np.zeros_like(gram)
        for own, rows, _ in placed:
            if check is not None:
                check()
            wanted = u[rows] - mu[rows]
            nearest, v = own.nearest(wanted)
            left[rows] = u[rows] - nearest
            derivative[rows, rows] = own.derivative(wanted, v)
            faces.append(v)
        return Multipliers(mu, faces), left, derivative

    def farther(before: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Return multipliers as far along the step to them as the residual does not grow."""
        way, size = mu - before, np.linalg.norm(residual(mu)[1])
        for _ in range(_DOUBLINGS):
            if np.linalg.norm(residual(mu + way)[1]) > size * (1 + _FLAT):
                break
            mu, way = mu + way, 2 * way
        return mu

    found = sweep(np.zeros(len(point)))
    if len(blocks) <= 1:
        return found
    best, least, idle, swept = found, np.inf, 0, found.mu
    for _ in range(_MAX_SWEEPS):
        found, left, derivative = residual(found.mu)
        # Spans may overlap, so that the linearised equation may be singular.
        system: Any = (np.eye(len(gram)) - derivative) @ gram + derivative
        step = np.linalg.lstsq(system, -left, rcond=1e-13)[0]
        after, left_after, _ = residual(found.mu + step)
        if np.linalg.norm(left_after) < np.linalg.norm(left):
            found, left = after, left_after
        size = float(np.linalg.norm(left))
        idle = 0 if size < 0.5 * least else idle + 1
        if size < least:
            best, least = found, size
        scale = float(np.linalg.norm(point) + np.linalg.norm(found.mu))
        if least <= _RESIDUAL * scale or (idle >= _PATIENCE and least <= _ACCEPTED * scale):
            return Multipliers(best.mu / unit, best.faces)
        before, found = swept, sweep(found.mu)
        if idle >= _PATIENCE:  # along a valley each sweep takes the same small step
            found = Multipliers(farther(before, found.mu), found.faces)
        swept = found.mu
    raise SolverError.from_status("exact", f"no convergence in {_MAX_SWEEPS} sweeps")


def _root(block: np.ndarray) -> np.ndarray | None:
    """Return the Cholesky factor of a diagonal block, None for the identity."""
    if np.abs(block - np.eye(len(block))).max() <= 1e-12:
        return None
    return np.linalg.cholesky(block)
