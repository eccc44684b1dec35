"""Generalized Disparate Impact (GeDI) for scikit-learn: measure it, constrain it."""

from . import datasets, metrics, model_selection, plotting, report
from .boosting import ConstrainedBoostingClassifier, ConstrainedBoostingRegressor
from .constraints import (
    CoarseConstraint,
    ConstraintList,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
)
from .kernels import FourierKernel, PolynomialKernel, SplineKernel
from .lagrangian_dual import LagrangianDualClassifier, LagrangianDualRegressor
from .metrics import didi, gedi
from .moving_targets import (
    DualTargetsClassifier,
    DualTargetsRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
)
from .post_processing import ProjectedClassifier, ProjectedRegressor
from .projection import (
    ProjectionPath,
    ProjectionResult,
    Solver,
    project_targets,
    projection_path,
)
from .report import fairness_report

__version__ = "0.1.0"

__all__ = [
    "CoarseConstraint",
    "ConstrainedBoostingClassifier",
    "ConstrainedBoostingRegressor",
    "ConstraintList",
    "DependenceConstraint",
    "DidiConstraint",
    "DualTargetsClassifier",
    "DualTargetsRegressor",
    "FineConstraint",
    "FourierKernel",
    "LagrangianDualClassifier",
    "LagrangianDualRegressor",
    "MovingTargetsClassifier",
    "MovingTargetsRegressor",
    "PolynomialKernel",
    "ProjectedClassifier",
    "ProjectedRegressor",
    "ProjectionPath",
    "ProjectionResult",
    "Solver",
    "SplineKernel",
    "__version__",
    "datasets",
    "didi",
    "fairness_report",
    "gedi",
    "metrics",
    "model_selection",
    "plotting",
    "project_targets",
    "projection_path",
    "report",
]
