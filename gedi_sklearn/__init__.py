"""Generalized Disparate Impact (GeDI) for scikit-learn: measure it, constrain it."""

from . import datasets, metrics
from .kernels import FourierKernel, PolynomialKernel

__version__ = "0.1.0"

__all__ = [
    "FourierKernel",
    "PolynomialKernel",
    "__version__",
    "datasets",
    "metrics",
]
