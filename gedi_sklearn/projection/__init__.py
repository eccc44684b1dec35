"""Projection of targets on constraints: nearest point, exact or with a proven gap.

A problem is a fitted constraint and a loss: :mod:`._real_targets`,
:mod:`._absolute_error` or :mod:`._classes`. Each asks the sets of the constraint for their
geometry, and a solver for its linear or quadratic models.
"""

from ._project import ProjectionPath, project_targets, projection_path
from ._projection import PROJECTION_PARAMETERS, Projection, UnseenProjection
from ._real_targets import Loss
from ._result import ProjectionResult
from ._solver import Solver

__all__ = ["ProjectionPath", "ProjectionResult", "Solver", "project_targets", "projection_path"]
