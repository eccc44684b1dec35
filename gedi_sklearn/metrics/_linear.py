r"""Indicators that are a norm of a linear function of the targets, and their inference.

With c the orthonormal coordinates of the targets on some columns, an indicator is the gauge of a
block, a norm of v = A c: see :mod:`gedi_sklearn._geometry._block`. The coordinates are linear in
the targets, so their covariance is known: under independence, and with the robust estimate of
MacKinnon and White (HC3) in general.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import fdtri
from sklearn.exceptions import UndefinedMetricWarning

from .._geometry import Block, coefficient_block, deviation_block, group_block
from ..exceptions import warn_caller
from ..kernels import BaseDesign, fit_codes
from ._ellipsoids import MAX_PATTERNS, farthest, root_of_decreasing
from ._errors import Errors
from ._forms import GroupForm, MatrixForm, least_sum
from ._limits import Limits, both_limits, limits_of_deviation, limits_of_groups, upper_limits

# Numbers that a batch of permuted or resampled targets may hold.
_BATCH = 4_000_000
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
    # Target and clusters of the last errors, which both limits need, and these.
    _known: tuple[np.ndarray, Any, Errors] | None = None

    def __init__(self, block: Block) -> None:
        self.block, self.design = block, block.design
        self.norm = block.allowed.norm

    @cached_property
    def form(self) -> MatrixForm | GroupForm:
        """What its values, and those under independence, are computed from."""
        if self.block.sums_groups:
            return GroupForm(self.design, "didi", self.block.factor)
        return self._matrix_form

    @cached_property
    def _matrix_form(self) -> MatrixForm:
        """The same with a matrix, which clusters of rows need."""
        return MatrixForm(self.design, self.matrix, self.norm)

    def _form_beside(self, groups: np.ndarray | None) -> Any:
        return self.form if groups is None else self._matrix_form

    @cached_property
    def matrix(self) -> np.ndarray:
        """A, with the factor of the indicator, shape (g, k)."""
        return self.block.factor * self.block.operator

    def measure(self, z: np.ndarray) -> float:
        """Return the indicator of one target."""
        return self.block.indicator(z[:, None])

    def reference(self, y: np.ndarray) -> float:
        """Return the indicator of the original targets; exactly 0.0 where it counts as zero."""
        return self.block.reference(y[:, None])

    def value(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the indicator for coordinates (…, k)."""
        return self.form.value(coordinates)

    def null_mean(self, z: np.ndarray, groups: np.ndarray | None = None) -> float:
        """Return the expected value under independence, for normal coordinates.

        For the L1 norm it is sd·√(2/π)·Σ_j √[G⁻¹]_jj.
        """
        return self._form_beside(groups).null_mean(z, groups)

    def null_draws(
        self, z: np.ndarray, n_draws: int, rng: np.random.RandomState, groups: Any
    ) -> np.ndarray:
        """Return values of targets that do not depend on the attribute, for normal coordinates."""
        return self._form_beside(groups).null_draws(z, n_draws, rng, groups)

    def _centred(self, z: np.ndarray) -> np.ndarray:
        """Return what is permuted of a target."""
        rest = self.design.residual(z)
        return rest - rest.mean()

    def as_permuted(self, z: np.ndarray) -> float:
        """Return the value as those of permutations are computed."""
        return float(self.form.of_targets(self._centred(z)))

    def permuted(
        self, z: np.ndarray, n_resamples: int, rng: np.random.Generator, groups: Any = None
    ) -> np.ndarray:
        """Return values of permutations of what the covariates leave of a target, or of clusters.

        Raises
        ------
        ValueError
            If clusters are of unlike sizes.
        """
        target = self._centred(z)
        blocks = np.arange(len(target))[:, None] if groups is None else _blocks_of(groups)
        of_blocks = target[blocks]
        values = np.empty(n_resamples)
        batch = max(1, _BATCH // len(target))
        for start in range(0, n_resamples, batch):
            permuted = np.empty((min(batch, n_resamples - start), len(target)))
            for own in permuted:
                own[blocks] = rng.permutation(of_blocks)
            values[start : start + batch] = self.form.of_targets(permuted)
        return values

    def resampled(
        self, z: np.ndarray, n_draws: int, rng: np.random.RandomState, groups: Any
    ) -> Iterator[np.ndarray]:
        """Yield the value on rows, or clusters, drawn with replacement, batch by batch."""
        n_units = len(z) if groups is None else len(np.unique(groups))
        batch = max(1, _BATCH // n_units)
        rows = (
            rng.randint(n_units, size=(min(batch, n_draws - start), n_units))
            for start in range(0, n_draws, batch)
        )
        return self._form_beside(groups).resampled(z, rows, groups)

    def upper_limit(
        self, z: np.ndarray, confidence: float, *, groups: np.ndarray | None = None, **options: Any
    ) -> Limits:
        """Return the upper confidence limit of the value; see :func:`upper_limits`."""
        if self.sums_means(groups):
            form: Any = self.form
            found = limits_of_groups(self.design, form.origin, z[:, None], confidence, **options)
            return found._replace(values=form.scale * found.values)
        options |= {"groups": groups, "errors": self.errors(z, groups)}
        if self.norm != "l1":
            return limits_of_deviation(self.design, z[:, None], confidence, **options)
        found = upper_limits(self.block, z[:, None], confidence, **options)
        return found._replace(values=self.block.factor * found.values)

    def has_errors(self, groups: np.ndarray | None = None) -> bool:
        """Tell, with a warning, whether standard errors are defined: else all residuals are 0."""
        n_columns = self.design.n_covariates + self.design.fitted.n_columns
        units = self.design.n_rows if groups is None else len(np.unique(groups))
        if units > (n_columns + 1 if groups is None else 1):
            return True
        what, lost = "rows", "the confidence interval is"
        if groups is not None:
            what, lost = "groups of rows", "p-value and limits are"
        warn_caller(
            f"{units} {what} leave no degree of freedom for {self.design.fitted.n_columns} "
            f"coefficient(s): {lost} NaN.",
            UndefinedMetricWarning,
        )
        return False

    def simulated(
        self, z: np.ndarray, n_draws: int, rng: np.random.RandomState, groups: Any
    ) -> np.ndarray:
        """Return values of normal coordinates around those of a target."""
        errors = Errors(self.design, z[:, None], groups=groups)
        return errors.unit * self._form_beside(groups).drawn(errors, n_draws, rng)

    def sums_means(self, groups: np.ndarray | None = None) -> bool:
        """Tell whether limits are sums over the means of many groups, and need no matrix."""
        is_long = self.design.fitted.n_columns > MAX_PATTERNS
        return self.norm == "l1" and self.form.is_of_means and is_long and groups is None

    def errors(self, z: np.ndarray, groups: np.ndarray | None = None) -> Errors:
        """Return what rows, or clusters, add to the errors of the coordinates of a target."""
        known = self._known
        if known is None or known[0] is not z or known[1] is not groups:
            own = Errors(self.design, z[:, None], is_basis_drawn=self.norm != "l1", groups=groups)
            self._known = known = z, groups, own
        return known[2]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": None}  # errors are made again where they are asked for

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
        return GroupForm(self.design, self.norm) if has_means else self._matrix_form

    def measure(self, z: np.ndarray) -> float:
        """Return the indicator, with a warning if its rounding error may be visible.

        NaN if no degree of freedom is left for the adjustment.
        """
        if self.norm == "l1":
            return self._value(self.design.checked_coefficients(z), z)
        return self._value(self.design.coordinates(z), z)

    def reference(self, y: np.ndarray) -> float:
        """Return the indicator of the original targets; exactly 0.0 where it counts as zero."""
        coordinates, standardized = self.design.solve(y)
        if self.design.is_negligible(y, standardized):
            return 0.0
        l1 = self.norm == "l1"
        return self._value(self.design.fitted.to_raw(standardized) if l1 else coordinates, y)

    def reference_of_degree(self, y: np.ndarray, degree: int) -> float | None:
        """Return the L1 reference at a degree up to that of the polynomials; else None."""
        known = self.design.coefficients_of_degree(y, degree) if self.norm == "l1" else None
        return None if known is None else float(np.abs(known).sum())

    def _value(self, terms: np.ndarray, z: np.ndarray) -> float:
        value = float(np.linalg.norm(terms, 1 if self.norm == "l1" else 2))
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


def group_indicator(
    codes: np.ndarray, weight: np.ndarray | None, factor: float = 1.0
) -> LinearIndicator:
    """Return DIDI of groups, whose terms are by how much their means differ from that of all.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The group of each row; each group 0…g−1 has one.
    weight : ndarray of shape (n,) or None
        Positive weights.
    factor : float, default=1.0
        Multiplies the value: 2 for the classification form of two classes.
    """
    return LinearIndicator(group_block(fit_codes(codes, weight=weight), factor=factor))


def _blocks_of(groups: np.ndarray) -> np.ndarray:
    """Return the rows of every cluster, shape (clusters, rows)."""
    counts = np.unique(groups, return_counts=True)[1]
    if (counts != counts[0]).any():
        raise ValueError(
            "method='permutation' exchanges the targets of whole groups, which must be of equal "
            f"size; got groups of {counts.min()} to {counts.max()} rows. Use method='asymptotic'."
        )
    return np.argsort(groups, kind="stable").reshape(len(counts), -1)


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

    multiplier = root_of_decreasing(excess, float(np.linalg.norm(along * axes)) + 1.0, 1e-300)
    # An axis of length 0 leaves what is along it as it is.
    scale = axes**2 + multiplier
    left = np.divide(multiplier, scale, out=np.ones_like(scale), where=scale > 0)
    return float(np.linalg.norm(along * left))


def _largest(indicator: LinearIndicator, center: np.ndarray, root: np.ndarray) -> float:
    """Return max ‖A c‖ over c = center + root u, ‖u‖ ≤ 1, or an upper bound of it."""
    # In units of the largest entry of A, so that squares do not overflow.
    unit = float(np.abs(indicator.matrix).max()) or 1.0
    target, spread = indicator.matrix / unit @ center, indicator.matrix / unit @ root
    return unit * float(farthest(target, spread @ spread.T, indicator.norm, 1.0)[0])
