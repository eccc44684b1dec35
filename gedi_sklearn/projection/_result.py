"""What a projection returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._verdict import Verdict


@dataclass(frozen=True)
class ProjectionResult:
    r"""Nearest targets that satisfy a constraint, with the proof of how near they are.

    Attributes
    ----------
    targets : ndarray of shape (n,)
        The projected targets z; labels of the given type for two classes. Rows of zero weight
        keep their original target.
    coefficients : ndarray of shape (k,)
        :math:`\tilde\alpha(z)`.
    threshold : float or ndarray of shape (k,)
        The absolute bound on them.
    violation : float
        By how much the constraint is missed (0 or rounding), in the units in which it is judged:
        raw coefficients for a coarse constraint, outcome for each deviation of a kernel column
        for a fine one.
    satisfied : bool
        Whether `violation` is within rounding.
    objective : float
        The loss of the targets: loss(z, y_pred) + target_weight · loss(z, y), summed over rows.
    bound : float
        Proven lower bound of the loss of any targets that satisfy the constraint.
    gap : float
        (objective − bound) / Σ w_i|c_i| with the rows' costs c_i for classes, and
        (objective − bound) / objective for real targets.
    multipliers : ndarray of shape (k,)
        Multipliers λ of the constraint on :math:`\tilde\alpha`. Real targets:
        z minimises loss(z) − λᵀα̃(z). Two classes: those of the linear relaxation, NaN where it
        was not needed.
    correction : ndarray of shape (k,)
        Real targets: β with z = t + F̃β, t the unconstrained optimum. NaN for classes and at
        absolute error.
    orthonormal_correction : ndarray of shape (k,)
        The same in the orthonormal basis of the kernel: z = t + Q(x)c, exact where powers of the
        attribute cancel.
    status : {"optimal", "gap", "time_limit", "work_limit", "node_limit", "interrupted", "closest"}
        Why the solver stopped; "gap" is within the asked gap without a proof of optimality,
        "work_limit" also the end of a search that for long had found nothing nearer. "closest":
        no targets of classes that satisfy the constraint were found; these are the closest ones
        that were, and `satisfied` is False.
    solver : {"exact", "gurobi", "highs"}
        What solved it.
    n_variables : int
        Variables of the largest model solved.
    n_groups : int
        Groups of interchangeable rows; n for real targets.
    seconds : float
        Wall time of the solve.
    verdict : Verdict or None
        Of :func:`project_targets`: what is left of the dependence that the constraint does not see,
        and whether the reference of a relative threshold is more than chance. None where nothing
        is bounded, and of fewer than 50 rows.

    Examples
    --------
    >>> from gedi_sklearn import project_targets
    >>> result = project_targets([1.0, 2.0, 4.0], sensitive_features=[0, 1, 2], threshold=0.5)
    >>> result.targets.round(2), result.satisfied
    (array([1.75, 2.  , 3.25]), True)
    """

    targets: Any
    coefficients: np.ndarray
    threshold: Any
    violation: float
    satisfied: bool
    objective: float
    bound: float
    gap: float
    multipliers: np.ndarray
    correction: np.ndarray
    orthonormal_correction: np.ndarray
    status: str
    solver: str
    n_variables: int
    n_groups: int
    seconds: float
    verdict: Verdict | None = None
