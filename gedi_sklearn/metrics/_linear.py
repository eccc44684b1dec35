r"""Indicators that are a norm of a linear function of the targets, and their inference.

With c the orthonormal coordinates of the targets on some columns, an indicator is the gauge of a
block, a norm of v = A c: see :mod:`gedi_sklearn._geometry._gauges`. The coordinates are linear in
the targets, so their covariance is known: under independence, and with the robust estimate of
MacKinnon and White (HC3) in general.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import f as f_distribution
from sklearn.exceptions import UndefinedMetricWarning

from .._geometry import Block, coefficient_block, deviation_block, group_block
from ..exceptions import warn_caller
from ..kernels import BaseDesign, PolynomialKernel, fit_codes
from ._ellipsoid import norm_of
from ._forms import GroupForm, MatrixForm
from ._sampling import upper_limits

# In floats an independent target gives about 1e-17 standard deviations, never 0.
_ZERO_REFERENCE = 1e-12


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
        return MatrixForm(self.design, self.matrix, self.norm)

    @cached_property
    def matrix(self) -> np.ndarray:
        """A, with the factor of the indicator, shape (g, k)."""
        return self.block.factor * self.block.operator

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

    def null_mean(self, z: np.ndarray) -> float:
        """Return the expected value under independence, for normal coordinates.

        For the L1 norm it is sd·√(2/π)·Σ_j √[G⁻¹]_jj.
        """
        return self.form.null_mean(z)

    def upper_limit(
        self,
        z: np.ndarray,
        confidence: float,
        *,
        is_fitted: bool = False,
        n_new: int | None = None,
    ) -> float:
        """Return the upper confidence limit of the value; see :func:`gedi_inference`."""
        return self.block.factor * float(
            upper_limits(
                self.block,
                z[:, None],
                confidence,
                simultaneous=is_fitted or n_new is not None,
                inflation=1.0 if n_new is None else 1 + self.design.n_rows / n_new,
            )[0]
        )

    @property
    def n_free(self) -> int:
        """Degrees of freedom that the coefficients, covariates and constant leave."""
        return self.design.n_rows - self.design.n_covariates - self.design.fitted.n_columns - 1

    def has_errors(self) -> bool:
        """Tell, with a warning, whether standard errors are defined: else all residuals are 0."""
        if self.n_free > 0:
            return True
        warn_caller(
            f"{self.design.n_rows} rows leave no degree of freedom beside "
            f"{self.design.fitted.n_columns} coefficient(s): the confidence interval is NaN.",
            UndefinedMetricWarning,
        )
        return False

    def range_over_ellipsoid(self, z: np.ndarray, confidence: float) -> tuple[float, float]:
        """Return the smallest and largest value over the confidence ellipsoid of c.

        The ellipsoid holds the true c with the given confidence, so the range holds the true
        value with at least that: 0 is its lower end exactly where independence is not rejected.
        """
        # In units of the targets' deviation, so that the solvers' tolerances suit every sample.
        residual = self.design.residual(z)
        unit = self.design.deviation(residual)
        if unit == 0:
            return 0.0, 0.0
        z = (residual - self.design.mean(residual)) / unit
        k = self.design.fitted.n_columns
        radius = float(np.sqrt(k * f_distribution.ppf(confidence, k, self.n_free)))
        low, high = self.form.ellipsoid(z, radius).range_of_norm()
        return low * unit, high * unit


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
        n_columns = self.design.fitted.n_columns
        free = self._size - 1 - self.design.n_covariates - n_columns
        if free <= 0:
            return float("nan")
        rest = max(self.design.deviation(self.design.residual(z)) ** 2 - value**2, 0.0)
        return float(np.sqrt(max(value**2 - rest * n_columns / free, 0.0)))


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
