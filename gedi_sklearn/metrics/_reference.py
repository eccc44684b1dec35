"""The one denominator behind `relative`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import ConditionalDesign, fit_kernel, kernel_of_degree, resolve_kernel
from ._linear import KernelIndicator


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
        The norm of the indicator; see :func:`gedi`.
    covariates : ndarray of shape (n, p), default=None
        What the indicator is conditional on.
    size : float, default=None
        Number of rows that the weights stand for.

    Returns
    -------
    float
        Exactly 0.0 where it counts as zero.
    """
    kernel = kernel_of_degree(resolve_kernel(kernel, degree), int(relative))
    design = fit_kernel(kernel, values, weight=weight, target=y)
    if covariates is not None:
        design = ConditionalDesign(design, covariates)
    return KernelIndicator(design, norm, size).reference(y)
