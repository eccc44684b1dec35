"""What every constraint is: parameters that become a set of allowed coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from .._validation import check_numbers
from ..kernels import FittedKernel, KernelDesign, fit_kernel, warn_many_levels
from ..metrics import reference_disparity

__all__ = ["AllowedSet", "Constraint", "check_numbers_or_inf"]


@dataclass(frozen=True)
class AllowedSet:
    r"""Allowed coefficients: an L1 ball (`radius`) or a box (`bounds`) of v = V s.

    Attributes
    ----------
    rows : ndarray of shape (r, k)
        V; directions without a bound have no row.
    radius : float or None
        The ball's radius; None for a box.
    bounds : ndarray of shape (r,) or None
        The box's half widths; None for a ball.
    unit : float
        What counts as 1 on the scale of v, for tolerances.
    forbidden : ndarray of shape (r,) or None
        Rows of a box that have nothing but a slack; None for a ball.
    """

    rows: np.ndarray
    radius: float | None
    bounds: np.ndarray | None
    unit: float
    forbidden: np.ndarray | None = None

    def violation(self, v: np.ndarray) -> float:
        """Return by how much v = V s leaves the set, 0 inside."""
        if self.radius is not None:
            return max(0.0, float(np.abs(v).sum()) - self.radius)
        return max(0.0, float(np.max(np.abs(v) - self.bounds, initial=0.0)))

    def contains(self, v: np.ndarray) -> np.ndarray:
        """Tell for every column of v (r, m) whether it is in the set, shape (m,)."""
        if self.radius is not None:
            return np.abs(v).sum(axis=0) <= self.radius
        assert self.bounds is not None  # it has one of the two
        return (np.abs(v) <= self.bounds[:, None]).all(axis=0)

    def support(self, direction: np.ndarray) -> float:
        """Return max over the set of direction·v, the support function."""
        size = np.abs(direction)
        if self.radius is None:
            return float(size @ self.bounds)
        largest = float(size.max(initial=0.0))
        return self.radius * largest if largest else 0.0  # the radius may be infinite


class Constraint(BaseEstimator):
    """What all constraints share: parameters, the kernel on given rows, the absolute threshold."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    kernel: Any
    degree: int
    threshold: Any
    relative: bool | int
    # What an error calls it.
    name: ClassVar[str]
    # Whether each coefficient has a bound of its own, rather than their sum.
    bounds_each: ClassVar[bool] = False

    def validate(self) -> None:
        """Check the parameters' types and ranges.

        Raises
        ------
        ValueError
            With the parameter's name, what it must be and what it is.
        """
        if not self.bounds_each and isinstance(self.threshold, (list, np.ndarray)):
            raise ValueError(
                f"constraint={self.name!r} bounds a sum, so threshold must be one number, got "
                f"{self.threshold!r}. An array, one bound for each coefficient, needs "
                "constraint='fine'."
            )
        if hasattr(getattr(self, "kernel", None), "__array__"):
            raise ValueError(
                f"kernel is a {type(self.kernel).__name__}: precomputed columns serve indicators "
                "only, a constraint needs a transformer or a callable of the attribute."
            )
        self._validate_params()
        threshold = self.absolute_threshold(1.0)
        entries = np.atleast_1d(threshold)
        if np.isnan(entries).any() or (entries < 0).any():
            raise ValueError(f"threshold must be at least 0, got {self.threshold!r}.")

    def absolute_threshold(self, reference: float) -> Any:
        """Return `threshold` times `reference`: a float, or an array of shape (k,)."""
        if isinstance(self.threshold, Real):
            return float(self.threshold) * reference
        return check_numbers_or_inf(self.threshold) * reference

    def fit_design(self, values: np.ndarray, weight: np.ndarray | None) -> KernelDesign:
        """Return the kernel on rows of positive weight.

        Raises
        ------
        RankDeficientKernelError
            If the kernel's columns are dependent on these rows (rank 0: a constant attribute).
        """
        warn_many_levels(values)
        return fit_kernel(self.kernel, values, degree=self.degree, weight=weight)

    def design_on(self, kernel: FittedKernel, values: np.ndarray) -> KernelDesign:
        """Return a fitted kernel's own columns on other rows, centred there."""
        return fit_kernel(kernel.transform(values), values)

    def indicator(self, design: KernelDesign, z: np.ndarray, *, integral: bool) -> float:
        """Return the indicator of targets: ‖α̃(z)‖₁."""
        return float(np.abs(design.coefficients(z)).sum())

    def reference(
        self, design: KernelDesign, values: np.ndarray, y: np.ndarray, *, integral: bool
    ) -> float:
        """Return the indicator of the original targets that `relative` asks for; 0 within rounding.

        An absolute threshold of 0 leaves its slack on that scale too.
        """
        return reference_disparity(
            y,
            values,
            kernel=self.kernel,
            degree=self.degree,
            relative=self.relative or True,
            weight=design.weight,
            covariates=getattr(design, "covariates", None),
        )

    def allowed_set(self, kernel: FittedKernel, *, unit: float, integral: bool) -> AllowedSet:
        """Return the set for a fitted kernel; `threshold` is absolute by now."""
        raise NotImplementedError


def check_numbers_or_inf(threshold: Any) -> np.ndarray:
    """Return an array threshold as float64; unlike data it may hold inf."""
    array = np.asarray(threshold)
    if array.dtype.kind not in "fiu":
        return check_numbers(threshold, "threshold", n_columns=1)
    array = array.astype(np.float64)
    finite = check_numbers(np.where(np.isinf(array), 0.0, array), "threshold", n_columns=1)
    return np.where(np.isinf(array.reshape(-1)), array.reshape(-1), finite)
