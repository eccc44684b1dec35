"""One constraint on some outputs: the operator that makes v of coordinates, and the set of v.

The blocks whose gauges are the indicators have no bound; constraints give them one.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from ..kernels import row_blocks
from ._sets import AllowedSet, Ball, L1Ball

# Roundings that a product may have suffered.
_MANY = 1000
# Up to this many terms all patterns of signs are tried; of more columns nothing is computed.
_MOST_SIGNS, _MOST_COLUMNS = 6, 64


@dataclass(eq=False)
class Block:
    """The bounded values v = A c of some outputs, and the set that they have to lie in.

    c are the orthonormal coordinates of one output; the v of several stand one after another.

    Parameters
    ----------
    design : BaseDesign
        The kernel on the rows, where the coordinates of outputs come from.
    allowed : AllowedSet
        The set of v, of all outputs.
    to_v, from_v : ndarray of shape (r, k) and (k, r)
        v = V s and s = W v, with s the standardised coefficients of one output, or its
        coordinates. W is None for that of raw coefficients, which few ask for.
    outputs : tuple of int, default=(0,)
        Which columns of the targets these are, next to each other.
    factor : float, default=1.0
        The indicator over the gauge of v: 2 where one output stands for two classes.
    of_coordinates : bool, default=False
        Whether V and W are of the coordinates; otherwise v is in units of the attribute, which
        amplify rounding.

    Attributes
    ----------
    kernel : FittedKernel
        Its R gives c = R s.
    """

    design: Any
    allowed: AllowedSet
    to_v: np.ndarray
    from_v: np.ndarray | None
    outputs: tuple[int, ...] = (0,)
    factor: float = 1.0
    of_coordinates: bool = False

    # Whether products are sums over groups.
    sums_groups: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.kernel: Any = self.design.fitted

    def altered(self, **attributes: Any) -> Block:
        """Return the same with another design (None leaves the rows out) or set."""
        other = copy(self)
        for name in ("bounded", "bounded_operator", "rounding"):
            vars(other).pop(name, None)
        vars(other).update(attributes)
        return other

    def bounded_by(self, radius: float, unit: float) -> Block:
        """Return the same with a bound on the gauge, and what counts as 1 on its scale."""
        allowed: Any = self.allowed
        return self.altered(allowed=replace(allowed, radius=radius, unit=unit))

    @cached_property
    def is_exact(self) -> bool:
        """Whether products with the operator and its inverse keep their digits."""
        return self.of_coordinates or bool(self.kernel.conversion_is_harmless)

    @property
    def _triangle(self) -> tuple[np.ndarray, np.ndarray]:
        """R and its inverse: c = R s; the unit matrix for c itself."""
        if self.of_coordinates:
            return np.eye(self.size), np.eye(self.size)
        return self.kernel.R_, self.kernel.R_inverse

    @property
    def _from_v(self) -> np.ndarray:
        return self.kernel.basis.from_raw if self.from_v is None else self.from_v

    @cached_property
    def operator(self) -> np.ndarray:
        """A with v = A c, shape (r, k)."""
        return self.to_v @ self._triangle[1]

    @cached_property
    def inverse(self) -> np.ndarray:
        """M with c = M v, shape (k, r)."""
        return self._triangle[0] @ self._from_v

    @cached_property
    def _magnitudes(self) -> tuple[np.ndarray, np.ndarray]:
        """What rounding makes of products with these, whose terms cancel far from 0."""
        R, inverse = map(np.abs, self._triangle)
        return np.abs(self.to_v) @ inverse, R @ np.abs(self._from_v)

    @cached_property
    def rounding(self) -> float:
        """What rounding leaves in the bounded v, for targets of size 1."""
        return float(np.finfo(float).eps * np.linalg.norm(self.bounded_operator, axis=1).sum())

    @property
    def size(self) -> int:
        """Number of coordinates k of an output."""
        return self.kernel.n_columns

    @cached_property
    def bounded(self) -> AllowedSet:
        """The set of those v that have a bound."""
        return self.allowed.take(self.allowed.bounded)

    @cached_property
    def bounded_operator(self) -> np.ndarray:
        """Their rows of A."""
        return self.operator[self.allowed.bounded[: len(self.operator)]]

    def of(self, columns: np.ndarray) -> np.ndarray:
        """Return the outputs among all columns of the targets, shape (n, m)."""
        return columns[:, self.outputs[0] : self.outputs[-1] + 1]

    def v(self, point: np.ndarray) -> np.ndarray:
        """Return v = A c."""
        return self.operator @ point

    def measure(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return v and α̃ of the targets' columns, from coefficients that are refined."""
        v, coefficients = zip(*map(self._measure, self.of(columns).T), strict=True)
        return np.concatenate(v), np.concatenate(coefficients)

    def _measure(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same of one output."""
        c, s = self.design.solve(z)
        return self.to_v @ (c if self.of_coordinates else s), self.kernel.to_raw(s)

    def indicator(self, columns: np.ndarray) -> float:
        """Return the indicator of the targets' columns: the gauge of their v, times the factor."""
        return self.factor * float(self.allowed.sizes(self.measure(columns)[0]).max())

    def reference(self, columns: np.ndarray) -> float:
        """Return the indicator of original targets; exactly 0.0 where it counts as zero."""
        if all(map(self.design.is_negligible, columns.T)):
            return 0.0
        return self.indicator(columns)

    def indicator_at(self, coordinates: np.ndarray) -> float:
        """Return the same of the coordinates (k, m) of all columns, without their rows."""
        v = np.concatenate([self.v(own) for own in self.of(coordinates).T])
        return self.factor * float(self.allowed.sizes(v).max())

    def adjoint(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of the bounded v as those of c: A'μ of every output, shape (m·k,)."""
        own = np.zeros(self.allowed.size)
        own[self.allowed.bounded] = multipliers
        return (own.reshape(len(self.outputs), -1) @ self.operator).ravel()

    def effects(self, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return what a 1 in a row of an output adds to its bounded v, shape (r, rows).

        Parameters
        ----------
        rows : ndarray of int, shape (g,)
            Which rows.
        weight : ndarray of shape (g,)
            Their weights over the sum of all weights.
        """
        operator = self.bounded_operator
        effects = np.empty((len(operator), len(rows)))
        for own in row_blocks(len(rows)):
            effects[:, own] = operator @ self.design.orthonormal_of(rows[own]).T * weight[own]
        return effects

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
        solved = np.linalg.solve(root, self.inverse), np.linalg.solve(root, point)
        v = self.allowed.nearest(*solved, None)
        return self._coordinates_of(point, v, root), v

    def _nearest(self, point: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what :meth:`nearest` does, of a point that is not allowed."""
        v = self.allowed.nearest(self.inverse, point, v)
        return self._coordinates_of(point, v, None), v

    def _coordinates_of(
        self, point: np.ndarray, v: np.ndarray, root: np.ndarray | None
    ) -> np.ndarray:
        """Return the coordinates of a nearest v, from the face that holds it.

        Far from 0 the product with the inverse cancels. The nearest point of the face does not,
        and is the same but for that rounding; where it is not, the face was not told apart.
        """
        u = self.inverse @ v
        if self.is_exact:
            return u
        normals, limits = self.allowed.active(v)
        columns = self.operator.T @ normals
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
        rounding = np.finfo(float).eps * np.linalg.norm(self._magnitudes[1] @ np.abs(v))
        near = np.linalg.norm(on_face - u) <= _MANY * rounding + 1e-13 * np.linalg.norm(point)
        return on_face if near else u

    def extended(self, v: np.ndarray) -> np.ndarray:
        """Return c = M v with the digits that its cancelling terms need."""
        factors = *self._triangle, self._from_v
        R, inverse, from_v = (factor.astype(np.longdouble) for factor in factors)
        # The columns of Q are products with the inverse as it was rounded.
        R = R + R @ (np.eye(len(R)) - inverse @ R)
        return R @ (from_v @ v.astype(np.longdouble))

    def derivative(self, point: np.ndarray, v: np.ndarray | None) -> np.ndarray:
        """Return the derivative of :meth:`nearest` at a point whose nearest v is given."""
        if v is None:
            return np.eye(len(point))
        return self.allowed.derivative(self.operator, point, v)

    def support(self, multipliers: np.ndarray) -> float:
        """Return max over the allowed u of −μ'u."""
        return self.allowed.support(self.inverse.T @ multipliers)

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
        known = -self.inverse.T @ multipliers
        normal = known if self.is_exact else self._outward(known, multipliers, v)
        terms = 4 * len(multipliers) * np.finfo(float).eps
        sizes = self._magnitudes[0] @ np.abs(self.inverse @ v)
        rounding = terms * float(np.abs(normal) @ sizes)
        return -self.operator.T @ normal, self.allowed.support(normal) + rounding

    def _outward(self, known: np.ndarray, multipliers: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the direction that points out of the set at v, from one that should."""
        rounding = self._magnitudes[1].T @ np.abs(multipliers)
        on_face = self.allowed.outward(known, v, rounding)

        def loss(normal: np.ndarray) -> float:
            """Return what the multipliers of a direction lose against the optimal ones."""
            change = self.operator.T @ normal + multipliers
            return self.allowed.support(normal) - float(normal @ v) + 0.5 * float(change @ change)

        # Where v is as small as rounding, its face says nothing.
        return min((on_face, known), key=loss)


def coefficient_block(design: Any, outputs: tuple[int, ...] = (0,)) -> Block:
    """Return ‖α̃‖₁ of an output, v = α̃ = T s.

    Parameters
    ----------
    design : BaseDesign
        The kernel on the rows.
    outputs : tuple of int, default=(0,)
        Which columns of the targets.
    """
    kernel = design.fitted
    kernel.check_size(kernel.n_columns)
    allowed = L1Ball(kernel.n_columns, 1.0, np.inf)
    return Block(design, allowed, kernel.basis.to_raw, None, outputs)


def deviation_block(design: Any, outputs: tuple[int, ...] = (0,)) -> Block:
    """Return S of an output, the deviation that the kernel explains: ‖v‖₂."""
    k, root = design.fitted.n_columns, np.sqrt(design.fitted.share)
    design.fitted.check_size(k)
    # In the coordinates of all rows a deviation within some of them is smaller.
    to_v, from_v = np.eye(k) / root, np.eye(k) * root
    return Block(design, Ball(k, 1.0, np.inf), to_v, from_v, outputs, of_coordinates=True)


def capacity(block: Block, columns: np.ndarray, enough: float = np.inf) -> np.ndarray:
    r"""Return an upper bound of the gauges of labels as rare as given ones.

    In a direction s of v = A c a row adds :math:`w_i\, s \cdot A q_i`, its pull. Of m ones the
    m largest pulls are the most, and as Q'W1 = 0 those of m zeros are the same. The largest s is
    found among the patterns of signs of an L1 norm of few terms. Other norms are at most the sum
    of the m largest norms of pulls, and a deviation at most that of the labels,
    :math:`\sqrt{p (1 - p)}`.

    Parameters
    ----------
    block : Block
        The block, on the rows.
    columns : ndarray of shape (n, C)
        All columns of the targets, those of the block of zeros and ones.
    enough : float, default=inf
        Of an L1 norm no more patterns are tried once one is beyond this.

    Returns
    -------
    ndarray of shape (c,)
        One number for each limit, the sum over the columns that it bounds together; infinite for
        kernels of many columns.
    """
    design, norm, own = block.design, block.allowed.norm, block.of(columns)
    size = len(block.allowed.limits)
    if block.size > _MOST_COLUMNS:
        return np.full(size, np.inf)
    share = np.broadcast_to(design.shares(slice(None)), design.n_rows)
    rarer = [min(m, len(own) - m) for m in own.sum(axis=0).astype(int)]
    found = [_of_one(block, share, m, enough) for m in rarer]
    return np.concatenate(found) if norm == "each" else np.sum(found, axis=0)


def _of_one(block: Block, share: np.ndarray, m: int, enough: float) -> np.ndarray:
    """Return the numbers of one column with m labels of the rarer kind."""
    norm, columns, operator = block.allowed.norm, block.design.orthonormal, block.operator

    def pulls(directions: np.ndarray) -> np.ndarray:
        along: np.ndarray = columns @ (directions @ operator).T
        return (share * along.T).T

    axes = np.eye(len(operator))
    if norm == "sd":
        p = min(_largest(share, m), 0.5)
        sizes = np.linalg.norm(pulls(axes), axis=1)
        return np.array([min(np.sqrt(p * (1 - p)), _largest(sizes, m))])
    if norm == "l1" and len(axes) > _MOST_SIGNS:
        return np.array([_largest(np.abs(pulls(axes)).sum(axis=1), m)])
    if norm == "each":
        return np.array([_largest_of_both(pulls(axis), m) for axis in axes])
    most = 0.0
    for signs in product((1.0, -1.0), repeat=len(axes) - 1):
        most = max(most, _largest_of_both(pulls(np.array([1.0, *signs])), m))
        if most > enough:
            break
    return np.array([most])


def _largest_of_both(values: np.ndarray, m: int) -> float:
    """Return the larger of the sums of the m largest values, and of minus the m least."""
    return max(_largest(values, m), _largest(-values, m))


def _largest(values: np.ndarray, m: int) -> float:
    """Return the sum of the m largest values."""
    return float(np.partition(values, len(values) - m)[len(values) - m :].sum()) if m else 0.0
