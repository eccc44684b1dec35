"""Projection of targets on a constraint: nearest point, exact or with a proven gap."""

from ._path import ProjectionPath, projection_path
from ._project_targets import project_targets
from ._projection import Projection
from ._result import ProjectionResult

__all__ = [
    "Projection",
    "ProjectionPath",
    "ProjectionResult",
    "project_targets",
    "projection_path",
]
