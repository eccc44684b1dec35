"""Projection of targets on constraints, and what estimators make of it.

A problem is a fitted constraint and a loss: :mod:`._squared`, :mod:`._absolute` and
:mod:`._classes`. Each asks the sets of the constraint for their geometry, and a solver for its
linear or quadratic models.
"""

from ._corrections import (
    attribute_blind_correction,
    moved_targets,
    relaxed_labels,
    score_correction,
)
from ._path import ProjectionPath, projection_path
from ._project_targets import project_targets
from ._projection import PROJECTION_PARAMETERS, Projection
from ._result import ProjectionResult

__all__ = [
    "PROJECTION_PARAMETERS",
    "Projection",
    "ProjectionPath",
    "ProjectionResult",
    "attribute_blind_correction",
    "moved_targets",
    "project_targets",
    "projection_path",
    "relaxed_labels",
    "score_correction",
]
