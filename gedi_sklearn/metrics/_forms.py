r"""What an indicator is a norm of: rows A of a matrix, or means of groups.

v = A c is linear in the coordinates c of a target. Where the kernel tells groups apart,
:math:`v_j = s_j (m_j - b'm)` with m the means of the groups, and thousands of them need no matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln

from ..kernels import BaseDesign
from ._ellipsoid import Ellipsoid, GroupEllipsoid, MatrixEllipsoid, norm_of
from ._sampling import _MAX_PATTERNS, _errors, normal_draws, robust_covariance

# Eigenvalues of a resample's moments, which are near the unit matrix, count as 0 below this.
_SINGULAR = 1e-9
# Numbers that are drawn at a time.
_MOST_NUMBERS = 4_000_000


class MatrixForm:
    """v = A c.

    Parameters
    ----------
    design : BaseDesign
        The kernel on its rows.
    matrix : ndarray of shape (g, k)
        A.
    norm : str
        "l1", or else the Euclidean norm.
    """

    def __init__(self, design: BaseDesign, matrix: np.ndarray, norm: str) -> None:
        self.design, self.matrix, self.norm = design, matrix, norm

    def value(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the norm for coordinates (…, k)."""
        return norm_of(coordinates @ self.matrix.T, self.norm)

    @cached_property
    def _weighted_columns(self) -> np.ndarray:
        """W Q, shape (n, k)."""
        design: Any = self.design
        weight = np.reshape(design.shares(slice(None)), (-1, 1))
        return np.ascontiguousarray(design.orthonormal * weight)

    def of_targets(self, z: np.ndarray) -> np.ndarray:
        """Return the norm for many targets at once, shape (…, n)."""
        return self.value(z @ self._weighted_columns)

    def ellipsoid(self, z: np.ndarray, radius: float) -> Ellipsoid:
        """Return the ellipsoid of so many robust standard errors about the v of a target."""
        design: Any = self.design
        covariance = robust_covariance(design, z[:, None])
        return MatrixEllipsoid(self.matrix, design.coordinates(z), covariance, radius, self.norm)

    def resampled(self, z: np.ndarray, batches: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the norm for one target on rows that are drawn with replacement, (b, n) of them.

        A resample is a vector of counts; its coordinates solve the counted normal equations of the
        orthonormal columns, which are well conditioned unless the resample lacks what tells the
        columns apart, e.g. a level: then it is NaN.
        """
        design: Any = self.design
        Q, z = design.orthonormal, design.residual(z)
        n, k = Q.shape
        relative_weight = np.broadcast_to(design.shares(slice(None)), n) * n
        system = np.column_stack([np.ones(n), Q])
        products = system[:, :, None] * np.column_stack([system, z - design.mean(z)])[:, None, :]
        products = products.reshape(n, -1) * relative_weight[:, None]
        for rows in batches:
            size = len(rows)
            cells = (rows + n * np.arange(size)[:, None]).ravel()
            counts = np.bincount(cells, minlength=size * n).reshape(size, n)
            moments = (counts @ products / n).reshape(size, k + 1, k + 2)
            solved = np.linalg.eigvalsh(moments[:, :, :-1])[:, 0] > _SINGULAR
            solution = np.full((size, k), np.nan)
            known = moments[solved]
            solution[solved] = np.linalg.solve(known[:, :, :-1], known[:, :, -1:])[:, 1:, 0]
            yield self.value(solution)

    def null_draws(self, z: np.ndarray, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
        """Return the norm for normal coordinates of targets that are independent of the groups."""
        return self.value(normal_draws(self.design.null_covariance(z), n_draws, rng))

    def null_mean(self, z: np.ndarray) -> float:
        """Return their mean."""
        # The largest entry is the unit, so that squares do not overflow.
        unit = float(np.abs(self.matrix).max()) or 1.0
        matrix = self.matrix / unit
        covariance = matrix @ self.design.null_covariance(z) @ matrix.T
        size = float(np.trace(covariance)) or 1.0
        covariance /= size
        square = float(np.square(covariance).sum())
        return unit * np.sqrt(size) * _mean_norm(np.diag(covariance), square, self.norm)


class GroupForm:
    """v_j = s_j (m_j − b'm).

    Parameters
    ----------
    design : BaseDesign
        A kernel that tells groups apart, in closed form.
    norm : str
        "l1" is Σ|m_j − m_0|, the sum of the coefficients, "didi" Σ|m_j − m̄|, any other the
        deviation of the means.
    factor : float, default=1.0
        Multiplies the norm.
    """

    def __init__(self, design: BaseDesign, norm: str, factor: float = 1.0) -> None:
        kernel: Any = design.fitted
        self.design, self.kernel = design, kernel
        self.norm = "l1" if norm in ("l1", "didi") else "sd"
        self._is_to_first = norm == "l1"
        self._origin = kernel.weights
        if self._is_to_first:
            self._origin = np.eye(1, len(kernel.weights))[0]
        self._scale = factor if self.norm == "l1" else np.sqrt(kernel.weights)

    def value(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the norm for coordinates (…, k)."""
        return self._of_means(self.kernel.of_groups(coordinates))

    def terms(self, means: np.ndarray) -> np.ndarray:
        """Return v of the means of groups, (…, g)."""
        return self._scale * (means - (means @ self._origin)[..., None])

    def adjoint(self, s: np.ndarray) -> np.ndarray:
        """Return what multiplies the means in s'v, shape (g,)."""
        scaled = self._scale * s
        return scaled - self._origin * scaled.sum()

    def variances(self, noise: np.ndarray) -> np.ndarray:
        """Return the variances of v for means with independent ones."""
        b = self._origin
        return self._scale**2 * (noise - 2 * b * noise + b**2 @ noise)

    def _of_means(self, means: np.ndarray) -> np.ndarray:
        return norm_of(self.terms(means), self.norm)

    def ellipsoid(self, z: np.ndarray, radius: float) -> Ellipsoid:
        """Return the ellipsoid of so many robust standard errors about the v of a target."""
        design: Any = self.design
        c, p = design.coordinates(z), self.kernel.weights
        if len(p) <= _MAX_PATTERNS + 1:
            q = self.kernel.orthonormal_columns(np.arange(float(len(p)))[:, None])
            # The first group has no coefficient.
            matrix = self.terms(q.T).T[int(self._is_to_first) :]
            covariance = robust_covariance(design, z[:, None])
            return MatrixEllipsoid(matrix, c, covariance, radius, self.norm)
        noise = design.of_points(_errors(design, z, c, 0.0) ** 2) / p**2
        return GroupEllipsoid(self, self.kernel.of_groups(c), noise, radius)

    def of_targets(self, z: np.ndarray) -> np.ndarray:
        """Return the norm for many targets at once, shape (…, n)."""
        design: Any = self.design
        weighted = (z * design.shares(slice(None))).reshape(-1, z.shape[-1])
        sums = np.stack([design.of_points(own) for own in weighted])
        return self._of_means(self.kernel.deviations(sums)).reshape(z.shape[:-1])

    def resampled(self, z: np.ndarray, batches: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the norm for one target on rows drawn with replacement; NaN without a group."""
        design: Any = self.design
        n_groups = len(self.kernel.weights)
        weight = np.broadcast_to(design.shares(slice(None)), len(z))
        weighted = weight * (z - design.mean(z))
        for rows in batches:
            cells = (design.index[rows] + n_groups * np.arange(len(rows))[:, None]).ravel()
            sums, totals = (
                np.bincount(cells, own[rows].ravel(), len(rows) * n_groups)
                for own in (weighted, weight)
            )
            with np.errstate(invalid="ignore"):
                yield self._of_means((sums / totals).reshape(len(rows), n_groups))

    def null_draws(self, z: np.ndarray, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
        """Return the norm for normal means of targets that are independent of the groups."""
        deviation = np.sqrt(self.design.null_noise(z))
        size = max(1, _MOST_NUMBERS // len(deviation))
        values = np.empty(n_draws)
        for start in range(0, n_draws, size):
            own = values[start : start + size]
            own[:] = self._of_means(rng.standard_normal((len(own), len(deviation))) * deviation)
        return values

    def null_mean(self, z: np.ndarray) -> float:
        """Return their mean."""
        noise, b = self.design.null_noise(z), self._origin
        size = float(noise.max()) or 1.0
        noise /= size
        own = b * noise  # with s² = b = p the squares of the covariance add up to
        square = float(own**2 @ (1 - 2 * b) + (b @ own) ** 2)
        return float(np.sqrt(size)) * _mean_norm(self.variances(noise), square, self.norm)


def _mean_norm(variances: np.ndarray, square: float, norm: str) -> float:
    """Return the mean of a norm of normal terms of mean 0.

    The root of a sum of squares is taken as a χ² with Satterthwaite's degrees of freedom, for which
    `square` is the sum of the squared covariances: exact if the weights are equal.
    """
    if norm == "l1":
        return float(np.sqrt(2 / np.pi * variances).sum())
    total = float(variances.sum())
    if total == 0:
        return 0.0
    free = total**2 / square
    ratio = np.exp(gammaln((free + 1) / 2) - gammaln(free / 2))
    return float(np.sqrt(2 * total / free) * ratio)
