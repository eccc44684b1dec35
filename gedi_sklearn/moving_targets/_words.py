"""A constraint in words, for the representation of a model."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from ..kernels import PolynomialKernel
from ..projection._build import NAMED_CONSTRAINTS


def constraint_in_words(model: Any) -> str:
    """Return e.g. "‖α̃‖₁ ≤ 0.2 × GeDI-V1 of y, polynomial kernel of degree 5".

    Parameters
    ----------
    model : object
        With the attributes constraint, kernel, degree, threshold and relative.
    """
    if isinstance(model.constraint, (list, tuple)):
        parts = [
            _words(NAMED_CONSTRAINTS[own]() if isinstance(own, str) else own)
            for own in model.constraint
        ]
        return "; ".join(parts)
    return _words(model if isinstance(model.constraint, str) else model.constraint)


def _words(owner: Any) -> str:
    name = getattr(owner, "constraint", None) or owner.name
    threshold = owner.threshold
    if name == "didi":
        return f"DIDI ≤ {threshold:g}{' × DIDI of y' if owner.relative else ''}"
    unit = _unit(owner)
    if name == "coarse":
        bound = f"‖α̃‖₁ ≤ {threshold:g}{unit}"
    elif isinstance(threshold, Real):
        bound = f"|α̃₁| ≤ {threshold:g}{unit}, every other coefficient 0"
    else:
        bounds = ", ".join(f"{entry:g}" for entry in np.ravel(threshold))
        bound = f"|α̃| ≤ ({bounds}){unit}"
    return f"{bound}, {_kernel(owner)}"


def _unit(owner: Any) -> str:
    if owner.relative is False:
        return ""
    if owner.kernel == "polynomial" or isinstance(owner.kernel, PolynomialKernel):
        return f" × GeDI-V{int(owner.relative)} of y"
    return " × GeDI of y"


def _kernel(owner: Any) -> str:
    kernel = owner.kernel
    if isinstance(kernel, str):
        word = {"polynomial": "degree", "fourier": "order"}[kernel]
        name = {"polynomial": "polynomial", "fourier": "Fourier"}[kernel]
        return f"{name} kernel of {word} {owner.degree}"
    if isinstance(kernel, PolynomialKernel):
        scale = ", standardised" if kernel.standardize else ""
        return f"polynomial kernel of degree {kernel.degree}{scale}"
    return f"kernel {kernel!r}"
