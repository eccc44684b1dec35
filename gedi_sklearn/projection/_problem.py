"""Which problem the loss, the targets and the constraints make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..constraints import DidiConstraint
from ._absolute import AbsoluteLoss
from ._binary import BinaryTargets
from ._bound import Bound, describe
from ._bounded import BoundedSquaredLoss
from ._group_means import GroupSquaredLoss
from ._model import SolverSession
from ._multiclass import MultiClassTargets
from ._real import SquaredLoss
from ._several import SeveralSquaredLoss

__all__ = ["class_problem", "real_problem"]


def class_problem(
    bounds: Sequence[Any], *, n_classes: int, **problem: Any
) -> BinaryTargets | MultiClassTargets:
    """Return the problem of two classes, or of more.

    Parameters
    ----------
    bounds : sequence of Bound or ClasswiseBound
        The constraints on the rows of positive weight; a single one for more than two classes.
    n_classes : int
        Number of classes.
    **problem
        See :class:`GroupedTargets`.
    """
    problem["description"] = describe(bounds)
    if n_classes > 2:
        return MultiClassTargets(bounds[0], **problem)
    return BinaryTargets(bounds, **problem)


def real_problem(
    bounds: Sequence[Bound],
    *,
    y: np.ndarray,
    weight: np.ndarray,
    loss: str,
    target_bounds: tuple[float, float] | None,
    is_list: bool,
    session: SolverSession,
) -> Any:
    """Return the problem of real targets.

    Parameters
    ----------
    bounds : sequence of Bound
        The constraints on the rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    weight : ndarray of shape (n,)
        Sample weights, all positive.
    loss : {"squared_error", "absolute_error"}
        The loss.
    target_bounds : tuple of (float, float) or None
        Lowest and highest target.
    is_list : bool
        Whether a list of constraints was given, be it one.
    session : SolverSession
        Finds the nearest coefficients.

    Raises
    ------
    ValueError
        If the loss, the bounds on the targets and the constraints do not go together.
    """
    shared: dict[str, Any] = {"y": y, "weight": weight}
    if is_list and (loss == "absolute_error" or target_bounds is not None):
        raise ValueError(
            "a list of constraints on real targets takes loss='squared_error' without "
            f"target_bounds; got loss={loss!r}, target_bounds={target_bounds}."
        )
    if is_list:
        return SeveralSquaredLoss(bounds, **shared)
    if loss == "absolute_error":
        return AbsoluteLoss(bounds[0], target_bounds=target_bounds, **shared)
    shared["session"] = session
    is_didi = isinstance(bounds[0].constraint, DidiConstraint)
    if is_didi and target_bounds is not None:
        raise ValueError(
            "constraint='didi' at squared error takes no target_bounds; got "
            f"{target_bounds}. Use loss='absolute_error', or leave them out."
        )
    if is_didi:
        return GroupSquaredLoss(bounds[0], **shared)
    if target_bounds is None:
        return SquaredLoss(bounds[0], **shared)
    return BoundedSquaredLoss(bounds[0], target_bounds=target_bounds, **shared)
