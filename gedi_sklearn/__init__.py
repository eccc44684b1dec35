"""Generalized Disparate Impact (GeDI) for scikit-learn: measure it, constrain it.

A name is imported from its package when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets, metrics, model_selection, plotting, report
    from ._certificate import Certificate
    from ._verdict import Verdict
    from .boosting import ConstrainedBoostingClassifier, ConstrainedBoostingRegressor
    from .constraints import (
        CoarseConstraint,
        ConstraintList,
        DependenceConstraint,
        DidiConstraint,
        FineConstraint,
    )
    from .kernels import FittedKernel, FourierKernel, PolynomialKernel, SplineKernel
    from .lagrangian_dual import LagrangianDualClassifier, LagrangianDualRegressor
    from .metrics import didi, gedi, hgr, make_disparity_scorer
    from .model_selection import tradeoff_curve
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

__version__ = "0.2.0"

__all__ = [
    "Certificate",
    "CoarseConstraint",
    "ConstrainedBoostingClassifier",
    "ConstrainedBoostingRegressor",
    "ConstraintList",
    "DependenceConstraint",
    "DidiConstraint",
    "DualTargetsClassifier",
    "DualTargetsRegressor",
    "FineConstraint",
    "FittedKernel",
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
    "Verdict",
    "__version__",
    "datasets",
    "didi",
    "fairness_report",
    "gedi",
    "hgr",
    "make_disparity_scorer",
    "metrics",
    "model_selection",
    "plotting",
    "project_targets",
    "projection_path",
    "report",
    "tradeoff_curve",
]

# Which names come from which package.
_EXPORTS = {
    "_certificate": "Certificate",
    "_verdict": "Verdict",
    "boosting": "ConstrainedBoostingClassifier ConstrainedBoostingRegressor",
    "constraints": (
        "CoarseConstraint ConstraintList DependenceConstraint DidiConstraint FineConstraint"
    ),
    "kernels": "FittedKernel FourierKernel PolynomialKernel SplineKernel",
    "lagrangian_dual": "LagrangianDualClassifier LagrangianDualRegressor",
    "metrics": "didi gedi hgr make_disparity_scorer",
    "model_selection": "tradeoff_curve",
    "moving_targets": (
        "DualTargetsClassifier DualTargetsRegressor MovingTargetsClassifier MovingTargetsRegressor"
    ),
    "post_processing": "ProjectedClassifier ProjectedRegressor",
    "projection": "ProjectionPath ProjectionResult Solver project_targets projection_path",
    "report": "fairness_report",
}
_HOME = {name: home for home, names in _EXPORTS.items() for name in names.split()}
_MODULES = {*_EXPORTS, "datasets", "exceptions", "plotting"}


def __getattr__(name: str) -> Any:
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_HOME.get(name, name)}", __name__)
    globals()[name] = getattr(module, name) if name in _HOME else module
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
