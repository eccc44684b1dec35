"""Generalized Disparate Impact (GeDI) for scikit-learn: measure it, constrain it."""

from . import datasets, metrics
from .constraints import CoarseConstraint, FineConstraint
from .kernels import FourierKernel, PolynomialKernel
from .moving_targets import MovingTargetsClassifier, MovingTargetsRegressor
from .projection import Projection, ProjectionResult, project_targets

__version__ = "0.1.0"

__all__ = [
    "CoarseConstraint",
    "FineConstraint",
    "FourierKernel",
    "MovingTargetsClassifier",
    "MovingTargetsRegressor",
    "PolynomialKernel",
    "Projection",
    "ProjectionResult",
    "__version__",
    "datasets",
    "metrics",
    "project_targets",
]
