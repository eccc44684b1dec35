r"""Indicators that are a norm of a linear function of the targets, and their inference.

With c the orthonormal coordinates of the targets on some columns, an indicator is the gauge of a
block, a norm of v = A c: see :mod:`gedi_sklearn._geometry._gauges`. The coordinates are linear in
the targets, so their covariance is known: under independence, and with the robust estimate of
MacKinnon and White (HC3) in general.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from scipy.special import fdtri
from sklearn.exceptions import UndefinedMetricWarning

from .._geometry import Block, coefficient_block, deviation_block, group_block
from ..exceptions import warn_caller
from ..kernels import BaseDesign, PolynomialKernel, fit_codes
from ._ellipsoids import MAX_PATTERNS, farthest, normal_draws
from ._errors import Errors
from ._forms import GroupForm, MatrixForm, least_sum, norm_of
from ._limits import (
    Limits,
    both_limits,
    limits_of_deviation,
    limits_of_groups,
    upper_limits,
)

# In floats an independent target gives about 1e-17 standard deviations, never 0.
_ZERO_REFERENCE = 1e-12
# Numbers that a batch of permuted or resampled targets may hold.
BATCH = 4_000_000
# Standard errors below this fraction of the targets' deviation are rounding errors.
_ROUNDING = 1e-12


class LinearIndicator:
    """The indicator of one target, the gauge of a block, and its inference.

    Parameters
    ----------
    block : Block
        What it is a norm of, v = A c with c the coordinates of a target.

    Attributes
    ----------
    norm : str
        "l1", or else the Euclidean norm.
    """

    block: Block

    def __init__(self, block: Block) -> None:
        self.block, self.design = block, block.design
        self.norm = block.allowed.norm

    @cached_property
    def form(self) -> MatrixForm | GroupForm:
        """What its values, and those under independence, are computed from."""
        return self._matrix_form

    @cached_property
    def _matrix_form(self) -> MatrixForm:
        """The same with a matrix, which clusters of rows need."""
        return MatrixForm(self.design, self.matrix, self.norm)

    @cached_property
    def matrix(self) -> np.ndarray:
        """A, with the factor of the indicator, shape (g, k)."""
        return self.block.factor * self.block.operator

    @property
    def scaled_matrix(self) -> tuple[float, np.ndarray]:
        """The largest entry of A, and A in units of it, whose squares do not overflow."""
        unit = float(np.abs(self.matrix).max()) or 1.0
        return unit, self.matrix / unit

    def measure(self, z: np.ndarray) -> float:
        """Return the indicator of one target."""
        return self.block.indicator(z[:, None])

    def reference(self, y: np.ndarray) -> float:
        """Return the indicator of the original targets; exactly 0.0 where it counts as zero."""
        if is_negligible(self.design, self.design.standardized(y), y):
            return 0.0
        return self.measure(y)

    def value(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the indicator for coordinates (…, k)."""
        return self.form.value(coordinates)

    def null_mean(self, z: np.ndarray, groups: np.ndarray | None = None) -> float:
        """Return the expected value under independence, for normal coordinates.

        For the L1 norm it is sd·√(2/π)·Σ_j √[G⁻¹]_jj.
        """
        form: Any = self.form if groups is None else self._matrix_form
        return form.null_mean(z, groups)

    def null_draws(
        self, z: np.ndarray, n_draws: int, rng: np.random.RandomState, groups: Any
    ) -> np.ndarray:
        """Return values of targets that do not depend on the attribute, for normal coordinates."""
        form = self.form if groups is None else self._matrix_form
        return form.null_draws(z, n_draws, rng, groups)

    def resampled(
        self, z: np.ndarray, n_draws: int, rng: np.random.RandomState, groups: Any
    ) -> Iterator[np.ndarray]:
        """Yield the value on rows, or clusters, drawn with replacement, batch by batch."""
        form = self.form if groups is None else self._matrix_form
        n_units = len(z) if groups is None else len(np.unique(groups))
        batch = max(1, BATCH // n_units)
        rows = (
            rng.randint(n_units, size=(min(batch, n_draws - start), n_units))
            for start in range(0, n_draws, batch)
        )
        return form.resampled(z, rows, groups)

    def upper_limit(
        self,
        z: np.ndarray,
        confidence: float,
        *,
        is_fitted: bool = False,
        n_new: int | None = None,
        groups: np.ndarray | None = None,
    ) -> Limits:
        """Return the upper confidence limit of the value; see :func:`gedi_inference`."""
        options: Any = {"simultaneous": is_fitted or n_new is not None, "n_new": n_new}
        if self.sums_means(groups):
            form: Any = self.form
            found = limits_of_groups(self.design, form.origin, z[:, None], confidence, **options)
            return found._replace(values=form.scale * found.values)
        if self.norm != "l1":
            return limits_of_deviation(
                self.design, z[:, None], confidence, groups=groups, **options
            )
        found = upper_limits(self.block, z[:, None], confidence, groups=groups, **options)
        return found._replace(values=self.block.factor * found.values)

    def has_errors(self, groups: np.ndarray | None = None) -> bool:
        """Tell, with a warning, whether standard errors are defined: else all residuals are 0."""
        n_columns = self.design.n_covariates + self.design.fitted.n_columns
        units = self.design.n_rows if groups is None else len(np.unique(groups))
        if units > (n_columns + 1 if groups is None else 1):
            return True
        what = "rows" if groups is None else "groups of rows"
        warn_caller(
            f"{units} {what} leave no degree of freedom for {self.design.fitted.n_columns} "
            "coefficient(s): the confidence interval is NaN.",
            UndefinedMetricWarning,
        )
        return False

    def simulated(
        self, z: np.ndarray, n_draws: int, rng: np.random.RandomState, groups: Any
    ) -> np.ndarray:
        """Return values of normal coordinates around those of a target."""
        errors = Errors(self.design, z[:, None], groups=groups)
        center = errors.coordinates[0]
        if groups is None and isinstance(self.form, GroupForm):
            variances = errors.covariance_at_points[:, 0, 0]
            return errors.unit * self.form.drawn(center, variances, n_draws, rng)
        noise = normal_draws(errors.covariance, n_draws, rng)
        return errors.unit * self.value(center + noise)

    def sums_means(self, groups: np.ndarray | None = None) -> bool:
        """Tell whether limits are sums over the means of many groups, and need no matrix."""
        is_long = self.design.fitted.n_columns > MAX_PATTERNS
        is_sum = self.norm == "l1" and isinstance(self.form, GroupForm)
        return is_sum and is_long and groups is None

    def errors(self, z: np.ndarray, groups: np.ndarray | None = None) -> Errors:
        """Return what rows, or clusters, add to the errors of the coordinates of a target."""
        return Errors(self.design, z[:, None], is_basis_drawn=self.norm != "l1", groups=groups)

    def interval(
        self, z: np.ndarray, confidence: float, groups: np.ndarray | None = None
    ) -> tuple[float, float, str]:
        """Return both limits of the value, and what they rest on where that is little.

        Of a single coordinate they are those of the rule of limits; of several the smallest and
        the largest value over the confidence ellipsoid of c. That holds the true c with the given
        confidence, so the range holds the true value with at least that: 0 is its lower end
        exactly where independence is not rejected.
        """
        errors = self.errors(z, groups)
        center, unit = errors.coordinates[0], errors.unit
        k = len(center)
        if k == 1:
            low, high, few = both_limits(errors, confidence)
            factor = unit * float(self.value(np.ones(1)))
            return low * factor, high * factor, few
        if errors.any_alone:
            return 0.0, np.inf, errors.describe_heaviest(center)
        if self.sums_means(groups):
            form: Any = self.form
            variances, nu = errors.ellipsoid_of_groups()
            variances = variances * _radius(k, nu, confidence) ** 2
            if variances.max() <= _ROUNDING**2:
                exact = float(self.value(center)) * unit
                return exact, exact, ""
            low, high = form.range(center, variances)
            return low * unit, high * unit, ""
        if errors.has_many_groups and self.norm != "l1" and center.any():
            covariance_of, nu = errors.ellipsoid_of_deviations()
            radius = _radius(k, nu, confidence)
            unit = unit / float(np.sqrt(self.design.fitted.share))
            low, high = covariance_of.nearest(radius), covariance_of.farthest(radius)
            return low * unit, high * unit, ""
        covariance, nu = errors.ellipsoid()
        radius = _radius(k, nu, confidence)
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0)) * radius
        if np.linalg.norm(root) <= _ROUNDING:  # the targets lie in the kernel's span
            exact = float(self.value(center)) * unit
            return exact, exact, ""
        return _smallest(self, center, root) * unit, _largest(self, center, root) * unit, ""


class KernelIndicator(LinearIndicator):
    """GeDI of a kernel, or one of its forms in units of the targets.

    Parameters
    ----------
    design : BaseDesign
        The kernel on its rows.
    norm : {"l1", "sd", "adjusted_sd"}
        ‖α̃‖₁; ‖F̃α̃‖/√n = ‖c‖, the deviation of the part of z in the kernel's span; or that
        without the contribution of chance, as in the adjusted R².
    size : float, default=None
        Number of rows that the weights stand for, for the adjustment.
    """

    def __init__(self, design: BaseDesign, norm: str = "l1", size: float | None = None) -> None:
        self.design, self.norm = design, norm
        self._size = design.n_rows if size is None else size

    @cached_property
    def block(self) -> Block:  # type: ignore[override]
        """What it is a norm of; its matrices are made when they are asked for."""
        own = coefficient_block if self.norm == "l1" else deviation_block
        return own(self.design)

    @cached_property
    def form(self) -> MatrixForm | GroupForm:
        has_means = self.design.fitted.has_closed_form
        return GroupForm(self.design, self.norm) if has_means else super().form

    def measure(self, z: np.ndarray) -> float:
        """Return the indicator, with a warning if its rounding error may be visible.

        NaN if no degree of freedom is left for the adjustment.
        """
        if self.norm == "l1":
            return self._value(self.design.checked_coefficients(z), z)
        return self._value(self.design.coordinates(z), z)

    def reference(self, y: np.ndarray) -> float:
        """Return the indicator of the original targets; see :func:`is_negligible`."""
        coordinates, standardized = self.design.solve(y)
        if is_negligible(self.design, standardized, y):
            return 0.0
        l1 = self.norm == "l1"
        return self._value(self.design.fitted.to_raw(standardized) if l1 else coordinates, y)

    def reference_of_degree(self, y: np.ndarray, degree: int) -> float | None:
        """Return the L1 reference of the same polynomials at a degree that is not above their own.

        The columns of a lower degree come first, so R, Q and T begin with theirs. None for other
        kernels, norms and degrees.
        """
        fitted = self.design.fitted
        kernel = fitted.kernel
        if self.norm != "l1" or not isinstance(kernel, PolynomialKernel) or degree > kernel.degree:
            return None
        k = int((kernel.powers_.sum(axis=1) <= degree).sum())
        coordinates = self.design.coordinates(y)[:k]
        standardized = solve_triangular(fitted.R_[:k, :k], coordinates)
        if is_negligible(self.design, standardized, y):
            return 0.0
        return float(np.abs(fitted.basis.to_raw[:k, :k] @ standardized).sum())

    def _value(self, terms: np.ndarray, z: np.ndarray) -> float:
        value = float(norm_of(terms, self.norm))
        if self.norm != "adjusted_sd":
            return value
        return float(self._adjusted(value, self.design.deviation(self.design.residual(z)) ** 2))

    def _adjusted(self, value: Any, variance: Any) -> np.ndarray:
        """Return deviations explained of a variance without the contribution of chance."""
        n_columns = self.design.fitted.n_columns
        free = self._size - 1 - self.design.n_covariates - n_columns
        if free <= 0:
            return np.full_like(value, np.nan, dtype=np.float64)
        explained = np.square(value)
        unexplained = np.maximum(variance - explained, 0.0)
        return np.sqrt(np.maximum(explained - unexplained * n_columns / free, 0.0))


class GroupIndicator(LinearIndicator):
    """DIDI of groups, whose terms are the deviations of the groups' means from the mean of all.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The group of each row; each group 0…g−1 has one.
    weight : ndarray of shape (n,) or None
        Positive weights.
    factor : float, default=1.0
        Multiplies the value: 2 for the classification form of two classes.
    """

    def __init__(self, codes: np.ndarray, weight: np.ndarray | None, factor: float = 1.0) -> None:
        super().__init__(group_block(fit_codes(codes, weight=weight), factor=factor))

    @cached_property
    def form(self) -> GroupForm:
        return GroupForm(self.design, "didi", self.block.factor)


def is_negligible(design: BaseDesign, standardized: np.ndarray, y: np.ndarray) -> bool:
    """Tell whether standardised coefficients are rounding noise on the scale of the targets.

    They are where ‖s‖₁ ≤ 1e-12·sd(y): at degree 1, where gedi·sd(x) ≤ 1e-12·sd(y).
    """
    size = float(np.abs(standardized).sum())
    return _counts_as_zero(size, design.mean(y), design.deviation(y))


def _counts_as_zero(size: float, mean: float, deviation: float) -> bool:
    # A constant target has a deviation of a few eps·|mean|, and coefficients of the same size.
    if deviation <= 4 * np.finfo(float).eps * abs(mean):
        return True
    return size <= _ZERO_REFERENCE * deviation


def _radius(k: int, nu: float, confidence: float) -> float:
    """Return the radius of a confidence ellipsoid in standard errors, of Hotelling's T²."""
    free = nu - k + 1
    return float(np.sqrt(k * nu / free * fdtri(k, free, confidence)))


def _smallest(indicator: LinearIndicator, center: np.ndarray, root: np.ndarray) -> float:
    """Return min ‖A c‖ over c = center + root u, ‖u‖ ≤ 1."""
    distance = np.linalg.lstsq(root, center, rcond=None)[0]
    if np.linalg.norm(distance) <= 1 and np.allclose(root @ distance, center, rtol=1e-9):
        return 0.0
    if indicator.norm != "l1":
        return _nearest_norm(center, root)
    target, spread = indicator.matrix @ center, indicator.matrix @ root
    width = np.linalg.norm(spread, axis=1)
    return least_sum(target, width, spread.__matmul__, spread.T.__matmul__)


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
    # An axis of length 0 leaves what is along it as it is.
    scale = axes**2 + multiplier
    left = np.divide(multiplier, scale, out=np.ones_like(scale), where=scale > 0)
    return float(np.linalg.norm(along * left))


def _largest(indicator: LinearIndicator, center: np.ndarray, root: np.ndarray) -> float:
    """Return max ‖A c‖ over c = center + root u, ‖u‖ ≤ 1, or an upper bound of it."""
    unit, matrix = indicator.scaled_matrix
    target, spread = matrix @ center, matrix @ root
    return unit * float(farthest(target, spread @ spread.T, indicator.norm, 1.0)[0])
