"""Norms of a linear function of the targets, of many targets or draws at once.

A form computes them from a matrix, or from the means of groups without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln

from ..kernels import BaseDesign
from ._ellipsoids import normal_draws
from ._errors import Errors, null_covariance

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

    # Whether it is computed from the means of groups, without a matrix.
    is_of_means: ClassVar[bool] = False

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

    def resampled(
        self, z: np.ndarray, batches: Iterable[np.ndarray], groups: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """Yield the norm for one target on rows, or clusters, drawn with replacement, (b, n).

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
        products = products.reshape(n, -1) * (relative_weight / n)[:, None]
        if groups is not None:
            codes = np.unique(groups, return_inverse=True)[1]
            products = np.stack([np.bincount(codes, own) for own in products.T], axis=-1)
            n = len(products)
        for rows in batches:
            size = len(rows)
            cells = (rows + n * np.arange(size)[:, None]).ravel()
            counts = np.bincount(cells, minlength=size * n).reshape(size, n)
            moments = (counts @ products).reshape(size, k + 1, k + 2)
            solved = np.linalg.eigvalsh(moments[:, :, :-1])[:, 0] > _SINGULAR
            solution = np.full((size, k), np.nan)
            known = moments[solved]
            solution[solved] = np.linalg.solve(known[:, :, :-1], known[:, :, -1:])[:, 1:, 0]
            yield self.value(solution)

    def drawn(self, errors: Errors, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
        """Return the norm for normal coordinates around those of a target."""
        noise = normal_draws(errors.covariance, n_draws, rng)
        return self.value(errors.coordinates[0] + noise)

    def null_draws(
        self, z: np.ndarray, n_draws: int, rng: np.random.RandomState, groups: Any = None
    ) -> np.ndarray:
        """Return the norm for normal coordinates of targets that do not depend on the attribute."""
        return self.value(normal_draws(null_covariance(self.design, z, groups), n_draws, rng))

    def null_mean(self, z: np.ndarray, groups: np.ndarray | None = None) -> float:
        """Return their mean."""
        # The largest entry is the unit, so that squares do not overflow.
        unit = float(np.abs(self.matrix).max()) or 1.0
        matrix = self.matrix / unit
        covariance = matrix @ null_covariance(self.design, z, groups) @ matrix.T
        size = float(np.trace(covariance)) or 1.0
        covariance /= size
        square = float(np.square(covariance).sum())
        return unit * float(np.sqrt(size)) * _mean_norm(np.diag(covariance), square, self.norm)


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

    Attributes
    ----------
    origin : ndarray of shape (g,)
        b.
    scale : float or ndarray of shape (g,)
        s.
    """

    is_of_means: ClassVar[bool] = True

    def __init__(self, design: BaseDesign, norm: str, factor: float = 1.0) -> None:
        kernel: Any = design.fitted
        self.design, self.kernel = design, kernel
        self.norm = "l1" if norm in ("l1", "didi") else "sd"
        self.origin = np.eye(1, len(kernel.weights))[0] if norm == "l1" else kernel.weights
        self.scale: Any = factor if self.norm == "l1" else np.sqrt(kernel.weights)

    def value(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the norm for coordinates (…, k)."""
        return self._of_means(self.kernel.of_groups(coordinates))

    def _of_means(self, means: np.ndarray) -> np.ndarray:
        centred = means - (means @ self.origin)[..., None]
        return norm_of(self.scale * centred, self.norm)

    def drawn(self, errors: Errors, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
        """Return the norm for normal sums of groups around those of a target."""
        variances = errors.covariance_at_points[:, 0, 0]
        means = self.kernel.of_groups(errors.coordinates[0])
        noise = rng.standard_normal((n_draws, len(means))) * np.sqrt(variances)
        return self._of_means(means + self.kernel.deviations(noise))

    def range(self, coordinates: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
        """Return the least and a bound of the largest sum of sizes in an ellipsoid of means.

        Its half-axes are the deviations of the groups' sums, by themselves.
        """
        reach, b = self.kernel.deviations(np.sqrt(variances)), self.origin
        means = self.kernel.of_groups(coordinates)
        center = float(means @ reach**-2.0 / (reach**-2.0).sum())
        values = means - b @ means
        widths = np.sqrt(np.maximum(reach**2 * (1 - 2 * b) + b**2 @ reach**2, 0.0))
        high = float(np.abs(values).sum() + widths.sum())
        if (((means - center) / reach) ** 2).sum() <= 1:  # all means are equal somewhere
            return 0.0, self.scale * high

        def moved(u: np.ndarray) -> np.ndarray:
            return reach * u - b @ (reach * u)

        def pulled(s: np.ndarray) -> np.ndarray:
            return reach * (s - b * s.sum())

        return self.scale * least_sum(values, widths, moved, pulled), self.scale * high

    def of_targets(self, z: np.ndarray) -> np.ndarray:
        """Return the norm for many targets at once, shape (…, n)."""
        design: Any = self.design
        weighted = (z * design.shares(slice(None))).reshape(-1, z.shape[-1])
        sums = np.stack([design.of_points(own) for own in weighted])
        return self._of_means(self.kernel.deviations(sums)).reshape(z.shape[:-1])

    def resampled(
        self, z: np.ndarray, batches: Iterable[np.ndarray], groups: None = None
    ) -> Iterator[np.ndarray]:
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

    def null_draws(
        self, z: np.ndarray, n_draws: int, rng: np.random.RandomState, groups: None = None
    ) -> np.ndarray:
        """Return the norm for normal means of targets that are independent of the groups."""
        deviation = np.sqrt(self.design.null_noise(z))
        size = max(1, _MOST_NUMBERS // len(deviation))
        values = np.empty(n_draws)
        for start in range(0, n_draws, size):
            own = values[start : start + size]
            own[:] = self._of_means(rng.standard_normal((len(own), len(deviation))) * deviation)
        return values

    def null_mean(self, z: np.ndarray, groups: None = None) -> float:
        """Return their mean."""
        noise, b = self.design.null_noise(z), self.origin
        size = float(noise.max()) or 1.0
        noise /= size
        variances = self.scale**2 * (noise - 2 * b * noise + b**2 @ noise)
        own = b * noise  # with s² = b = p the squares of the covariance add up to
        square = float(own**2 @ (1 - 2 * b) + (b @ own) ** 2)
        return float(np.sqrt(size)) * _mean_norm(variances, square, self.norm)


def least_sum(
    target: np.ndarray,
    width: np.ndarray,
    moved: Callable[[np.ndarray], np.ndarray],
    pulled: Callable[[np.ndarray], np.ndarray],
) -> float:
    """Return min ‖target + S u‖₁ over ‖u‖ ≤ 1.

    The dual is solved: max s'target − ‖S's‖ over |s_j| ≤ 1. Its value at any point is a lower
    bound.

    Parameters
    ----------
    target, width : ndarray of shape (r,)
        The centre, and the norms of the rows of S.
    moved, pulled : callable
        The products S u and S's.
    """
    # Every term in units of its half-width, in which the dual is well scaled.
    width = np.maximum(width, 1e-12 * (width.max() + np.abs(target).max()))
    target = target / width

    def negative(s: np.ndarray) -> tuple[float, np.ndarray]:
        back = pulled(s / width)
        size = float(np.sqrt(back @ back + 1e-30))
        return size - float(s @ target), moved(back) / (size * width) - target

    start = np.sign(target) * width
    value, slope = negative(start)
    if (slope * start > 0).any():
        # Otherwise the ellipsoid lies in one orthant of the terms, and this corner is optimal.
        bounds = np.column_stack([-width, width])
        value = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds).fun
    return float(max(-value, 0.0))


def norm_of(terms: np.ndarray, norm: str) -> np.ndarray:
    """Return the norm of terms (…, r)."""
    return np.abs(terms).sum(axis=-1) if norm == "l1" else np.linalg.norm(terms, axis=-1)


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
