"""Projection of targets on a constraint: nearest point, exact or with a proven gap."""

from ._projection import Projection, project_targets
from ._result import ProjectionResult

__all__ = ["Projection", "ProjectionResult", "project_targets"]
