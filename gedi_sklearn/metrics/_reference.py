"""The one denominator behind `relative`, and which values that parameter takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import fit_resolved, kernel_of_degree, resolve_kernel
from ._linear import KernelIndicator


def reference_disparity(
    y: np.ndarray,
    values: np.ndarray,
    *,
    kernel: Any,
    relative: bool | int = True,
    weight: np.ndarray | None = None,
    norm: str = "l1",
    covariates: np.ndarray | None = None,
    size: float | None = None,
) -> float:
    """Return the indicator of the original targets, by which relative values are divided.

    In the L1 norm it is that of the degree `relative`, in units of y that of the same kernel.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets.
    values : ndarray of shape (n, m)
        The attribute.
    kernel : int, str, transformer, callable or array of shape (n, k)
        The kernel of the indicator; the reference takes the same family and standardisation. One
        without a degree is its own reference.
    relative : bool or int, default=True
        Degree of the reference in the L1 norm; True is 1.
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
    kernel = resolve_kernel(kernel)
    if norm == "l1":
        kernel = kernel_of_degree(kernel, int(relative))
    design = fit_resolved(kernel, values, weight, target=y).beside(covariates)
    return KernelIndicator(design, norm, size).reference(y)


def check_relative(relative: Any, norm: str) -> None:
    """Refuse a degree beside a norm in units of y, whose reference is that of the same kernel.

    Raises
    ------
    ValueError
    """
    if norm != "l1" and not isinstance(relative, (bool, np.bool_)):
        raise ValueError(
            f"relative={relative!r} was given together with "
            f"norm={norm!r}, where a relative value is a "
            "share of the indicator of y with the same kernel: pass True or False."
        )


def positive_unit(reference: float) -> float:
    """Return a reference that values are divided by; refuse 0.

    Raises
    ------
    ValueError
    """
    if not reference > 0.0:
        raise ValueError(
            f"relative: the indicator of y_true is {reference:g}, so a share of it is undefined. "
            "Pass relative=False, and an absolute threshold if there is one."
        )
    return reference
