r"""Indicators that are a norm of a linear function of the targets, and what is known of those.

With c the orthonormal coordinates of the targets on some columns, GeDI is ‖A c‖₁ for A = T R⁻¹,
DIDI is ‖A c‖₁ for the matrix A that gives every group's mean, and the sd form is ‖c‖₂. The
coordinates are linear in the targets, so their covariance is known: under independence, and with
the robust estimate of MacKinnon and White (HC3) in general.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import gammaln
from scipy.stats import f as f_distribution
from sklearn.exceptions import UndefinedMetricWarning

from ..exceptions import warn_caller
from ..kernels import KernelDesign, fit_kernel

__all__ = ["LinearIndicator"]

# Up to this many terms the 2^g sign patterns of an L1 norm are enumerated.
_MAX_PATTERNS = 12
# Standard errors below this share of the targets' deviation are rounding.
_ROUNDING = 1e-12


class LinearIndicator:
    """‖A c(z)‖ for the orthonormal coordinates c of targets z on a kernel.

    Parameters
    ----------
    design : KernelDesign
        The kernel on its rows.
    matrix : ndarray of shape (g, k)
        A.
    norm : {"l1", "l2"}
        The norm.
    factor : float, default=1.0
        Multiplies the value: 2 for the classification form of DIDI of two classes.
    """

    def __init__(
        self, design: KernelDesign, matrix: np.ndarray, norm: str, factor: float = 1.0
    ) -> None:
        self.design = design
        self.matrix = matrix * factor
        self.norm = norm

    @classmethod
    def of_kernel(cls, design: KernelDesign, norm: str) -> LinearIndicator:
        """Return GeDI ("l1") or its sd form ("sd") of a kernel."""
        if norm == "sd":
            return cls(design, np.eye(design.fitted.n_columns), "l2")
        return cls(design, design.fitted.basis.to_raw @ design.fitted.R_inverse, "l1")

    @classmethod
    def of_groups(
        cls, codes: np.ndarray, weight: np.ndarray | None, factor: float = 1.0
    ) -> LinearIndicator:
        """Return DIDI of groups 0…g−1, each with at least one row; factor 2 for two classes."""
        groups, first = np.unique(codes, return_index=True)
        columns = (codes[:, None] == groups[1:]).astype(np.float64)
        design = fit_kernel(columns, columns, weight=weight)
        return cls(design, design.orthonormal[first], "l1", factor)

    @cached_property
    def weighted_columns(self) -> np.ndarray:
        """W Q, shape (n, k): its product with targets gives their coordinates."""
        share = np.reshape(self.design.shares(slice(None)), (-1, 1))
        return np.ascontiguousarray(self.design.orthonormal * share)

    def value(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the indicator for coordinates (…, k)."""
        terms = coordinates @ self.matrix.T
        return np.abs(terms).sum(axis=-1) if self.norm == "l1" else np.linalg.norm(terms, axis=-1)

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        """Return c for many targets at once, shape (…, n) to (…, k)."""
        return z @ self.weighted_columns

    def null_covariance(self, z: np.ndarray) -> np.ndarray:
        """Return the covariance of c over random permutations of the targets."""
        z = self.design.residual(z)
        n = self.design.n_rows
        # Permuted values are slightly negatively correlated: hence n − 1, and the centring.
        weighted = self.weighted_columns - self.weighted_columns.mean(axis=0)
        return float(np.var(z)) * n / (n - 1) * weighted.T @ weighted

    def null_mean(self, z: np.ndarray) -> float:
        """Return the expected value under independence, for normal coordinates.

        For the L1 norm it is sd·√(2/π)·Σ_j √[G⁻¹]_jj.
        """
        covariance = self.matrix @ self.null_covariance(z) @ self.matrix.T
        if self.norm == "l1":
            return float(np.sqrt(2 / np.pi * np.diag(covariance)).sum())
        # The root of a sum of squares, as of a χ² with fitted degrees of freedom (Satterthwaite):
        # exact where the weights are equal.
        total, squares = float(np.trace(covariance)), float(np.square(covariance).sum())
        if squares == 0:
            return 0.0
        free = total**2 / squares
        ratio = np.exp(gammaln((free + 1) / 2) - gammaln(free / 2))
        return float(np.sqrt(2 * total / free) * ratio)

    def null_quantiles(
        self, z: np.ndarray, levels: np.ndarray, n_draws: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Return quantiles under independence, of simulated normal coordinates."""
        draws = _normal_draws(self.null_covariance(z), n_draws, rng)
        return np.quantile(self.value(draws), levels)

    def simulate(self, z: np.ndarray, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
        """Return values for normal coordinates around the estimated ones; NaN as below."""
        if not self._has_errors():
            return np.full(n_draws, np.nan)
        center = self.design.coordinates(z)
        return self.value(center + _normal_draws(self.robust_covariance(z, center), n_draws, rng))

    @property
    def n_free(self) -> int:
        """Degrees of freedom that the coefficients, covariates and constant leave."""
        return self.design.n_rows - self.design.n_covariates - self.design.fitted.n_columns - 1

    def _has_errors(self) -> bool:
        """Tell whether standard errors are defined: else all residuals are 0, whatever the rows."""
        if self.n_free > 0:
            return True
        warn_caller(
            f"{self.design.n_rows} rows leave no degree of freedom beside "
            f"{self.design.fitted.n_columns} coefficient(s): the confidence interval is NaN.",
            UndefinedMetricWarning,
        )
        return False

    def robust_covariance(self, z: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
        """Return the HC3 covariance of c, valid under unequal variances of the residuals."""
        design = self.design
        residual = design.residual(z)
        residual = residual - design.mean(residual) - design.orthonormal @ coordinates
        leverage = np.minimum(design.leverage(), 1 - 1e-9)
        scores = self.weighted_columns * (residual / (1 - leverage))[:, None]
        return scores.T @ scores

    def range_over_ellipsoid(self, z: np.ndarray, confidence_level: float) -> tuple[float, float]:
        """Return the smallest and largest value over the confidence ellipsoid of c.

        The ellipsoid holds the true c with the given confidence, so the range holds the true
        value with at least that: 0 is its lower end exactly where independence is not rejected.
        NaN where no degree of freedom is left.
        """
        if not self._has_errors():
            return float("nan"), float("nan")
        # In deviations of the targets, in which the solvers' tolerances mean the same everywhere.
        residual = self.design.residual(z)
        unit = self.design.deviation(residual)
        if unit == 0:
            return 0.0, 0.0
        z = (residual - self.design.mean(residual)) / unit
        center = self.design.coordinates(z)
        covariance = self.robust_covariance(z, center)
        k = len(center)
        radius = float(np.sqrt(k * f_distribution.ppf(confidence_level, k, self.n_free)))
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0)) * radius
        if np.linalg.norm(root) <= _ROUNDING:  # the targets are a function in the kernel's span
            exact = float(self.value(center)) * unit
            return exact, exact
        return _smallest(self, center, root) * unit, _largest(self, center, root) * unit


def _normal_draws(covariance: np.ndarray, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return rng.standard_normal((n_draws, len(root))) @ root.T


def _smallest(indicator: LinearIndicator, center: np.ndarray, root: np.ndarray) -> float:
    """Return min ‖A c‖ over c = center + root u, ‖u‖ ≤ 1.

    The dual is solved: max s'A center − ‖root'A's‖ over the unit ball of the dual norm. Whatever
    point it ends at, its value is a lower bound.
    """
    distance = np.linalg.lstsq(root, center, rcond=None)[0]
    if np.linalg.norm(distance) <= 1 and np.allclose(root @ distance, center, rtol=1e-9):
        return 0.0
    target, spread = indicator.matrix @ center, indicator.matrix @ root
    if indicator.norm == "l2":
        return _nearest_norm(center, root)
    # Every term in units of its own half-width, in which the dual is well scaled.
    width = np.linalg.norm(spread, axis=1)
    width = np.maximum(width, 1e-12 * (width.max() + np.abs(target).max()))
    target, spread = target / width, spread / width[:, None]

    def negative(s: np.ndarray) -> tuple[float, np.ndarray]:
        pulled = spread.T @ s
        size = float(np.sqrt(pulled @ pulled + 1e-30))
        return size - float(s @ target), spread @ pulled / size - target

    start = np.sign(target) * width
    value, slope = negative(start)
    if (slope * start > 0).any():
        # Else the ellipsoid lies in one orthant of the terms, and this corner is optimal.
        bounds = np.column_stack([-width, width])
        value = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds).fun
    return float(max(-value, 0.0))


def _nearest_norm(center: np.ndarray, root: np.ndarray) -> float:
    """Return the distance of 0 from the ellipsoid center + root u, in its principal axes."""
    vectors, axes, _ = np.linalg.svd(root)
    along = vectors.T @ center

    def excess(multiplier: float) -> float:
        # u = −along·axes / (axes² + multiplier) minimises ‖along + axes u‖² + multiplier‖u‖².
        return float(((along * axes / (axes**2 + multiplier)) ** 2).sum() - 1)

    high = float(np.linalg.norm(along * axes)) + 1.0
    while excess(high) > 0:
        high *= 2
    low = high
    while excess(low) < 0 and low > 1e-300:
        high, low = low, low / 4
    multiplier = brentq(excess, low, high, xtol=1e-300, rtol=1e-12) if excess(low) > 0 else 0.0
    return float(np.linalg.norm(along * multiplier / (axes**2 + multiplier)))


def _largest(indicator: LinearIndicator, center: np.ndarray, root: np.ndarray) -> float:
    """Return max ‖A c‖ over c = center + root u, ‖u‖ ≤ 1, or an upper bound of it."""
    target, spread = indicator.matrix @ center, indicator.matrix @ root
    if indicator.norm == "l2":
        # The largest of a norm over an ellipsoid, bounded by the triangle inequality.
        return float(np.linalg.norm(target) + np.linalg.norm(spread, 2))
    if len(target) > _MAX_PATTERNS:
        return float(np.abs(target).sum() + np.linalg.norm(spread, axis=1).sum())
    # One half of the patterns: the other half is their negatives.
    patterns = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=len(target) - 1)])
    return float((np.abs(patterns @ target) + np.linalg.norm(patterns @ spread, axis=1)).max())
