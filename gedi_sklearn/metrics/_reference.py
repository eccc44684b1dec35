"""The value of an indicator on a fitted kernel, and the one denominator behind `relative`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import (
    ConditionalDesign,
    KernelDesign,
    fit_kernel,
    kernel_of_degree,
    resolve_kernel,
)

__all__ = ["is_negligible", "kernel_norm", "reference_disparity"]

# In floats an independent target gives about 1e-17 standard deviations, never 0.
_ZERO_REFERENCE = 1e-12


def reference_disparity(
    y: np.ndarray,
    values: np.ndarray,
    *,
    kernel: Any,
    degree: int = 1,
    relative: bool | int = True,
    weight: np.ndarray | None = None,
    norm: str = "l1",
    covariates: np.ndarray | None = None,
    size: float | None = None,
) -> float:
    """Return the indicator of the original targets, by which relative values are divided.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets.
    values : ndarray of shape (n, m)
        The attribute.
    kernel : str, transformer, callable or array of shape (n, k)
        The kernel of the indicator; the reference takes the same family and standardisation. One
        without a degree is its own reference.
    degree : int, default=1
        Its degree, where it is given by name.
    relative : bool or int, default=True
        Degree of the reference; True is 1.
    weight : ndarray of shape (n,), default=None
        Positive weights.
    norm : {"l1", "sd", "adjusted_sd"}, default="l1"
        The norm of the indicator; see :func:`kernel_norm`.
    covariates : ndarray of shape (n, p), default=None
        What the indicator is conditional on.
    size : float, default=None
        Number of rows that the weights stand for.

    Returns
    -------
    float
        Exactly 0.0 where it counts as zero: where ‖s‖₁ ≤ 1e-12·sd(y) for the standardised
        coefficients s (at degree 1, gedi·sd(x) ≤ 1e-12·sd(y)).
    """
    kernel = kernel_of_degree(resolve_kernel(kernel, degree), int(relative))
    design = fit_kernel(kernel, values, weight=weight, target=y)
    if covariates is not None:
        design = ConditionalDesign(design, covariates)
    if is_negligible(design, design.standardized(y), y):
        return 0.0
    return kernel_norm(design, y, norm, len(y) if size is None else size)


def kernel_norm(design: KernelDesign, z: np.ndarray, norm: str, size: float) -> float:
    """Return the size of what the kernel says about a target.

    Parameters
    ----------
    design : KernelDesign
        The kernel on the rows.
    z : ndarray of shape (n,)
        The target.
    norm : {"l1", "sd", "adjusted_sd"}
        ‖α̃‖₁; ‖F̃α̃‖/√n, the deviation of the part of z in the kernel's span; or that without
        the part that chance puts there, as in the adjusted R².
    size : float
        Number of rows, for the adjustment.

    Returns
    -------
    float
        NaN where no degree of freedom is left for the adjustment.
    """
    if norm == "l1":
        return float(np.abs(design.coefficients(z)).sum())
    explained = float((design.coordinates(z) ** 2).sum())
    if norm == "sd":
        return float(np.sqrt(explained))
    free = size - 1 - design.n_covariates - design.fitted.n_columns
    if free <= 0:
        return float("nan")
    rest = max(design.deviation(design.residual(z)) ** 2 - explained, 0.0)
    return float(np.sqrt(max(explained - rest * design.fitted.n_columns / free, 0.0)))


def is_negligible(design: KernelDesign, standardized: np.ndarray, y: np.ndarray) -> bool:
    """Tell whether standardised coefficients are rounding noise on the scale of the targets."""
    deviation = design.deviation(y)
    # A constant target has a deviation of a few eps·|mean|, and coefficients of the same size.
    if deviation <= 4 * np.finfo(float).eps * abs(design.mean(y)):
        return True
    return bool(np.abs(standardized).sum() <= _ZERO_REFERENCE * deviation)
