"""Constraints and kernels by the names that result files have."""

from __future__ import annotations

from typing import Any

from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    FourierKernel,
)

KINDS = {
    "coarse": CoarseConstraint,
    "fine": FineConstraint,
    "sd": DependenceConstraint,
    "didi": DidiConstraint,
}


def named_constraint(name: str, threshold: float = 0.2, *, kernel: Any = 1, **options: Any) -> Any:
    """Return a constraint by its name; the DIDI of groups has no kernel."""
    if name != "didi":
        options["kernel"] = kernel
    return KINDS[name](threshold, **options)


def named_kernel(name: str, degree: int) -> Any:
    """Return a kernel by its name, of a degree where it has one."""
    return {"polynomial": degree, "fourier": FourierKernel(degree), "spline": "spline"}[name]
