r"""The joint span of the kernels of some constraints: all that they see of targets.

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

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from .._deadline import Deadline
from ..exceptions import SolverError
from ..kernels import FittedKernel, IndicatorKernel, row_blocks
from ._groups import deviations, shrink_deviations
from ._product import pieces
from ._sets import AllowedSet, GroupBall

# Dependent columns of the joint span, relative to the largest.
_RANK_TOLERANCE = 1e-10
_MAX_SWEEPS = 500
# Residual of the multipliers, relative to their size: reached, and good enough where rounding
# stands in the way of more.
_RESIDUAL, _ACCEPTED = 4e-16, 1e-6
# Sweeps without progress after which what was reached has to do.
_PATIENCE = 5
_REFINEMENTS = 2
# Change of a move, relative to it, whose own error is beyond the digits of a long double.
_SETTLED = 1e-9
# Roundings that a product may have suffered.
_MANY = 1000


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


@dataclass(eq=False)
class CoordinateSet:
    """An allowed set as seen from the orthonormal coordinates c of one kernel.

    Parameters
    ----------
    allowed : AllowedSet
        The set of v, of one column of targets or of several.
    to_v, from_v : ndarray of shape (r, k) and (k, r)
        v = V s and s = W v, with s the standardised coefficients of one column.
    kernel : FittedKernel
        Its R gives c = R s.
    in_raw_units : bool, default=True
        Whether v is in units of the attribute, which amplify rounding.

    Attributes
    ----------
    is_exact : bool
        Whether products with `rows` and `matrix` keep their digits.
    rows, matrix : ndarray of shape (r, k) and (k, r)
        v = A c and c = M v.
    rounding : float
        What rounding leaves in the bounded v, for targets of size 1.
    """

    allowed: AllowedSet
    to_v: np.ndarray
    from_v: np.ndarray
    kernel: FittedKernel
    in_raw_units: bool = True

    def __post_init__(self) -> None:
        R, R_inverse = self.kernel.R_, self.kernel.R_inverse
        self.is_exact = not self.in_raw_units or self.kernel.conversion_is_harmless
        self.rows = self.to_v @ R_inverse
        self.matrix = R @ self.from_v
        # What rounding makes of products with these, whose terms cancel far from 0.
        self.magnitude = np.abs(R) @ np.abs(self.from_v)
        self.rows_magnitude = np.abs(self.to_v) @ np.abs(R_inverse)
        bounded = self.rows[self.allowed.bounded[: len(self.rows)]]
        self.rounding = float(np.finfo(float).eps * np.linalg.norm(bounded, axis=1).sum())

    def nearest(
        self, point: np.ndarray, root: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the allowed coordinates nearest to given ones, and their v.

        Parameters
        ----------
        point : ndarray of shape (k,)
            Coordinates c.
        root : ndarray of shape (k, k), default=None
            L: the distance is ‖L⁻¹(u − c)‖.

        Returns
        -------
        u : ndarray of shape (k,)
        v : ndarray of shape (r,) or None
            None where the point is allowed as it is.
        """
        v = self.v(point)
        if self.allowed.violation(v) == 0.0:
            return point, None
        if root is None:
            return self._nearest(point, v)
        else:
            solved = np.linalg.solve(root, self.matrix), np.linalg.solve(root, point)
            v = self.allowed.nearest(*solved, None)
        return (self.matrix @ v if self.is_exact else self._on_face(point, v, root)), v

    def v(self, point: np.ndarray) -> np.ndarray:
        """Return v = A c."""
        return self.rows @ point

    def _nearest(self, point: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what :meth:`nearest` does, of a point that is not allowed."""
        v = self.allowed.nearest(self.matrix, point, v)
        return (self.matrix @ v if self.is_exact else self._on_face(point, v, None)), v

    def _on_face(self, point: np.ndarray, v: np.ndarray, root: np.ndarray | None) -> np.ndarray:
        """Return the coordinates of a nearest v, from the face that holds it.

        Far from 0 the product with the matrix cancels. The nearest point of the face does not,
        and is the same but for that rounding; where it is not, the face was not told apart.
        """
        u = self.matrix @ v
        normals, limits = self.allowed.active(v)
        columns = self.rows.T @ normals
        norms = np.linalg.norm(columns, axis=0)
        if not 0 < len(norms) <= len(point) or (norms == 0).any():
            return u
        columns, limits = columns / norms, limits / norms
        moving = columns if root is None else root.T @ columns
        basis, triangle = np.linalg.qr(moving)
        if (np.abs(np.diag(triangle)) == 0).any():
            return u
        step = basis @ solve_triangular(triangle, limits - columns.T @ point, trans="T")
        on_face = point + (step if root is None else root @ step)
        rounding = np.finfo(float).eps * np.linalg.norm(self.magnitude @ np.abs(v))
        near = np.linalg.norm(on_face - u) <= _MANY * rounding + 1e-13 * np.linalg.norm(point)
        return on_face if near else u

    @property
    def size(self) -> int:
        """Number of coordinates k."""
        return len(self.matrix)

    def v_of_standardized(self, s: np.ndarray) -> np.ndarray:
        """Return v = V s."""
        return self.to_v @ s

    def with_set(self, allowed: AllowedSet) -> CoordinateSet:
        """Return the same with another set of v, with the same bounded coordinates."""
        other = copy(self)
        other.allowed = allowed
        return other

    def extended(self, v: np.ndarray) -> np.ndarray:
        """Return c = M v with the digits that its cancelling terms need."""
        factors = self.kernel.R_, self.kernel.R_inverse, self.from_v
        R, inverse, from_v = (factor.astype(np.longdouble) for factor in factors)
        # The columns of Q are products with the inverse as it was rounded.
        R = R + R @ (np.eye(len(R)) - inverse @ R)
        return R @ (from_v @ v.astype(np.longdouble))

    def derivative(self, point: np.ndarray, v: np.ndarray | None) -> np.ndarray:
        """Return the derivative of :meth:`nearest` at a point whose nearest v is given."""
        if v is None:
            return np.eye(len(point))
        return self.allowed.derivative(self.rows, point, v)

    def support(self, multipliers: np.ndarray) -> float:
        """Return max over the allowed u of −μ'u."""
        return self.allowed.support(self.matrix.T @ multipliers)

    def outward(self, multipliers: np.ndarray, v: np.ndarray | None) -> tuple[np.ndarray, float]:
        """Return multipliers near to given ones, and what −μ'u is at most over the allowed u.

        Parameters
        ----------
        multipliers : ndarray of shape (k,)
            μ; −μ points out of the set at v, but for rounding.
        v : ndarray of shape (r,) or None
            Where; None inside.

        Returns
        -------
        mu : ndarray of shape (k,)
            −A'ν, with ν exactly in the cone that points out of the set at v.
        support : float
            With what rounding may have taken from it.
        """
        if v is None:
            return np.zeros(len(multipliers)), 0.0
        known = -self.matrix.T @ multipliers
        normal = known if self.is_exact else self._outward(known, multipliers, v)
        terms = 4 * len(multipliers) * np.finfo(float).eps
        rounding = terms * np.abs(normal) @ self.rows_magnitude @ np.abs(self.matrix @ v)
        return -self.rows.T @ normal, self.allowed.support(normal) + float(rounding)

    def _outward(self, known: np.ndarray, multipliers: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the direction that points out of the set at v, from one that should."""
        on_face = self.allowed.outward(known, v, self.magnitude.T @ np.abs(multipliers))

        def loss(normal: np.ndarray) -> float:
            """Return what the multipliers of a direction lose against the optimal ones."""
            change = self.rows.T @ normal + multipliers
            return self.allowed.support(normal) - float(normal @ v) + 0.5 * float(change @ change)

        # Where v is as small as rounding, its face says nothing.
        return min((on_face, known), key=loss)


class GroupCoordinates(CoordinateSet):
    """The deviations of groups, as seen from the coordinates of their indicators.

    Products are sums over the groups; the matrices are made for those who ask for them.

    Parameters
    ----------
    allowed : GroupBall
        The set of deviations, of one column of targets or of several.
    kernel : IndicatorKernel
        The indicators.
    """

    kernel: IndicatorKernel

    def __init__(self, allowed: GroupBall, kernel: Any) -> None:
        self.allowed, self.kernel, self.in_raw_units, self.is_exact = allowed, kernel, True, True
        of_rows = np.sqrt((1 / kernel.weights - 1) / kernel.share)
        self.rounding = float(np.finfo(float).eps * of_rows.sum())

    @cached_property
    def rows(self) -> np.ndarray:
        """A, one row of Q for each group."""
        return self.kernel.orthonormal_columns(np.arange(float(len(self.kernel.weights)))[:, None])

    @property
    def matrix(self) -> np.ndarray:
        """M."""
        return self.kernel.share * (self.rows * self.kernel.weights[:, None]).T

    @property
    def magnitude(self) -> np.ndarray:
        return np.abs(self.matrix)

    @property
    def size(self) -> int:
        return self.kernel.n_columns

    def v(self, point: np.ndarray) -> np.ndarray:
        return self.kernel.of_groups(point)

    def v_of_standardized(self, s: np.ndarray) -> np.ndarray:
        return deviations(s / self.kernel.scale, self.kernel.weights)

    def _nearest(self, point: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v = shrink_deviations(v, self.kernel.weights, self.allowed.limits[0])
        return self.kernel.coordinates(v), v

    def outward(self, multipliers: np.ndarray, v: np.ndarray | None) -> tuple[np.ndarray, float]:
        if v is None:
            return super().outward(multipliers, v)
        move = self.kernel.of_groups(multipliers)
        normal = -self.kernel.share * self.kernel.weights * move
        size = self.kernel.size_of_groups(self.kernel.coordinates(v))
        rounding = 4 * self.size * np.finfo(float).eps * float(np.abs(normal) @ size)
        return self.kernel.coordinates(move), self.allowed.support(normal) + rounding


class JointSpan:
    """The joint span of the kernels of some constraints on real targets or two classes.

    Parameters
    ----------
    constraints : sequence of ColumnConstraint
        The constraints that bound anything, on the same rows of positive weight.
    weight : ndarray of shape (n,)
        Sample weights, all positive.

    Attributes
    ----------
    sets : list of CoordinateSet
        The allowed coordinates of every constraint.
    """

    def __init__(self, constraints: Sequence[Any], weight: np.ndarray) -> None:
        self.weight = weight
        self.sets: list[CoordinateSet] = [own.coordinate_set for own in constraints]
        self._is_harmless = all(own.is_exact for own in self.sets)
        self._designs = [own.design for own in constraints]

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
        return self.sets[0].size if len(self.sets) == 1 else self.q.shape[1]

    def check_square(self) -> None:
        """Refuse as many groups as no square matrix should have."""
        for own in self._designs:
            own.fitted.check_size(own.fitted.n_columns)

    def joined(self, stacked: np.ndarray) -> np.ndarray:
        """Return B'μ, shape (K,)."""
        return stacked if len(self.sets) == 1 else self.stacked.T @ stacked

    @cached_property
    def normalized_weight(self) -> np.ndarray:
        """The weights, summing to 1, shape (n,)."""
        return self.weight / self.weight.sum()

    def split(self, stacked: np.ndarray) -> list[np.ndarray]:
        """Return the vectors (or rows) of every constraint from those of all."""
        return pieces(stacked, [own.size for own in self.sets])

    def v(self, x: np.ndarray) -> np.ndarray:
        """Return the v of coordinates x, those of all sets one after another."""
        seen = x if len(self.sets) == 1 else self.stacked @ x
        own = zip(self.sets, self.split(seen), strict=True)
        return np.concatenate([np.empty(0), *(one.v(c) for one, c in own)])

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        """Return x = Q'Wz of targets, shape (K,)."""
        if self._is_harmless:
            if len(self.sets) == 1:
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
        self, x: np.ndarray, metric: np.ndarray | None = None, deadline: Deadline | None = None
    ) -> Multipliers:
        """Return the multipliers of the point nearest to x, which is x + S B'μ.

        Parameters
        ----------
        x : ndarray of shape (K,)
            Coordinates.
        metric : ndarray of shape (K, K), default=None
            S: the distance is that of S⁻¹; None is the identity.
        deadline : Deadline, default=None
            When to end.
        """
        if len(self.sets) == 1:
            if metric is not None:
                return joint_multipliers(self.sets, x, metric, deadline)
            nearest, v = self.sets[0].nearest(x)
            return Multipliers(nearest - x, [v])
        moved = self.stacked if metric is None else self.stacked @ metric
        return joint_multipliers(self.sets, self.stacked @ x, moved @ self.stacked.T, deadline)

    def move(self, x: np.ndarray) -> np.ndarray:
        """Return the shortest move that leads from x into every set, shape (K,)."""
        return self.joined(self.multipliers(x).mu)

    def moved(self, t: np.ndarray, multipliers: Multipliers) -> np.ndarray:
        """Return t + Q B'μ, its coordinates in the sets to the last digit, shape (n,)."""
        move = self.joined(multipliers.mu)
        active = [b for b, v in enumerate(multipliers.faces) if v is not None]
        if self._is_harmless or not active:
            return t + self.explained(move)
        wanted = np.concatenate([self.sets[b].extended(multipliers.faces[b]) for b in active])
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
        return self._designs[0].explained(move) if len(self.sets) == 1 else self.q @ move

    def support(self, multipliers: np.ndarray) -> float:
        """Return Σ_b max over the allowed u of −μ_b'u."""
        own = zip(self.sets, self.split(multipliers), strict=True)
        return float(sum(one.support(mu) for one, mu in own))

    def outward(self, multipliers: Multipliers) -> tuple[np.ndarray, float]:
        """Return multipliers near to given ones, and Σ_b of what −μ_b'u is at most over the sets.

        Unlike :meth:`support` to the last digit; see :meth:`CoordinateSet.outward`.
        """
        own = zip(self.sets, self.split(multipliers.mu), multipliers.faces, strict=True)
        found = [one.outward(mu, v) for one, mu, v in own]
        mu = np.concatenate([np.empty(0), *(one[0] for one in found)])
        return mu, float(sum(one[1] for one in found))


def joint_multipliers(
    sets: Sequence[CoordinateSet],
    point: np.ndarray,
    gram: np.ndarray,
    deadline: Deadline | None = None,
) -> Multipliers:
    """Return μ with u = c + G μ allowed, and −μ_b pointing out of every set there.

    Parameters
    ----------
    sets : sequence of CoordinateSet
        The sets.
    point : ndarray of shape (Σk,)
        c, those of all sets one after another.
    gram : ndarray of shape (Σk, Σk)
        G, positive semi-definite, its diagonal blocks definite.
    deadline : Deadline, default=None
        When to end.

    Raises
    ------
    SolverError
        If the multipliers do not converge.
    TimeoutError
        If the deadline comes first.
    """
    deadline = deadline or Deadline()
    blocks, end = [], 0
    for own in sets:
        rows = slice(end, end := end + len(own.matrix))
        blocks.append((own, rows, _root(gram[rows, rows])))

    def sweep(mu: np.ndarray) -> Multipliers:
        """Project on every set in turn."""
        mu, faces = mu.copy(), []
        for own, rows, root in blocks:
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
        for own, rows, _ in blocks:
            deadline.check()
            wanted = u[rows] - mu[rows]
            nearest, v = own.nearest(wanted)
            left[rows] = u[rows] - nearest
            derivative[rows, rows] = own.derivative(wanted, v)
            faces.append(v)
        return Multipliers(mu, faces), left, derivative

    found = sweep(np.zeros(len(point)))
    if len(blocks) <= 1:
        return found
    best, least, idle = found, np.inf, 0
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
            return best
        found = sweep(found.mu)
    raise SolverError.from_status("exact", f"no convergence in {_MAX_SWEEPS} sweeps")


def _root(block: np.ndarray) -> np.ndarray | None:
    """Return the Cholesky factor of a diagonal block, None for the identity."""
    if np.abs(block - np.eye(len(block))).max() <= 1e-12:
        return None
    return np.linalg.cholesky(block)
