"""The one denominator behind every ``relative``: the indicator of the original targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from ..kernels import FourierKernel, KernelDesign, PolynomialKernel, fit_kernel, resolve_kernel

__all__ = ["is_negligible", "reference_disparity", "reference_kernel"]

# In floats an independent target gives about 1e-17 standard deviations, never 0.
_ZERO_REFERENCE = 1e-12


def reference_kernel(kernel: Any, degree: int, relative: bool | int) -> Any:
    """Return the kernel whose indicator of the original targets is the unit of a relative value.

    Parameters
    ----------
    kernel : str, transformer, callable or array
        The kernel of the indicator itself.
    degree : int
        Its degree, where it is given by name.
    relative : bool or int
        The degree of the reference; True is 1, the paper's choice.

    Returns
    -------
    transformer, callable or array
        The same family and standardisation at the reference degree. A kernel that has no degree
        is returned as it is.
    """
    kernel = resolve_kernel(kernel, degree)
    if isinstance(kernel, PolynomialKernel):
        return clone(kernel).set_params(degree=int(relative))
    if isinstance(kernel, FourierKernel):
        return clone(kernel).set_params(order=int(relative))
    return kernel


def reference_disparity(
    y: np.ndarray,
    values: np.ndarray,
    *,
    kernel: Any,
    degree: int = 1,
    relative: bool | int = True,
    weight: np.ndarray | None = None,
) -> float:
    """Return ‖α̃(y)‖₁ of the original targets, by which relative values are divided.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets.
    values : ndarray of shape (n, m)
        The attribute.
    kernel : str, transformer, callable or array of shape (n, k)
        The kernel of the indicator; see :func:`reference_kernel`.
    degree : int, default=1
        Its degree, where it is given by name.
    relative : bool or int, default=True
        Degree of the reference; True is 1.
    weight : ndarray of shape (n,), default=None
        Positive weights.

    Returns
    -------
    float
        Exactly 0.0 where it counts as zero: where ‖s‖₁ ≤ 1e-12·sd(y) for the standardised
        coefficients s (at degree 1, gedi·sd(x) ≤ 1e-12·sd(y)).
    """
    kernel = reference_kernel(kernel, degree, relative)
    design = fit_kernel(kernel, values, weight=weight, target=y)
    standardized = design.standardized(y)
    if is_negligible(design, standardized, y):
        return 0.0
    return float(np.abs(design.fitted.to_raw(standardized)).sum())


def is_negligible(design: KernelDesign, standardized: np.ndarray, y: np.ndarray) -> bool:
    """Tell whether standardised coefficients are rounding noise on the scale of the targets."""
    deviation = design.deviation(y)
    # A constant target has a deviation of a few eps·|mean|, and coefficients of the same size.
    if deviation <= 4 * np.finfo(float).eps * abs(design.mean(y)):
        return True
    return bool(np.abs(standardized).sum() <= _ZERO_REFERENCE * deviation)
