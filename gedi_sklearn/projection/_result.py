"""What a search for classes has found so far, and what is returned of a projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._verdict import Verdict
from ..constraints import VIOLATION_TOLERANCE
from ._cells import Cells
from ._solver import Deadline

# A cost counts as lower from this share of the cost of a row on.
_ROUNDING = 1e-12


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
        Real targets: β with z = t + F̃β, or t·exp(ν + F̃β) of loss="kl", t the unconstrained
        optimum. NaN for classes and at absolute error.
    orthonormal_correction : ndarray of shape (k,)
        The same in the orthonormal basis of the kernel: z = t + Q(x)c or t·exp(ν + Q(x)c), exact
        where powers of the attribute cancel.
    intercept : float
        ν of loss="kl", with which the mean of the targets is that of t; 0.0 of other losses.
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
        Of :func:`project_targets`: the remaining dependence that the constraint does not see,
        and whether the reference of a relative threshold is more than chance. None where nothing
        is bounded, and of fewer than 50 rows.

    Examples
    --------
    >>> from gedi_sklearn import CoarseConstraint, project_targets
    >>> y, x, half = [1.0, 2.0, 4.0], [0, 1, 2], CoarseConstraint(0.5)
    >>> result = project_targets(y, sensitive_features=x, constraint=half)
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
    intercept: float
    status: str
    solver: str
    n_variables: int
    n_groups: int
    seconds: float
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Solution:
    """A projection of the rows of positive weight; the fields are ProjectionResult's.

    Attributes
    ----------
    z : ndarray of shape (n,)
        Targets as numbers.
    multipliers : ndarray of shape (k,)
        Of the constraint on the orthonormal coordinates of every column.
    correction : ndarray of shape (k,) or None
        Correction of real targets in the same coordinates, where there is one.
    intercept : float
        What is added to the correction of every row.
    """

    z: np.ndarray
    objective: float
    bound: float
    gap: float
    multipliers: np.ndarray
    status: str
    solver: str
    n_variables: int
    n_groups: int
    correction: np.ndarray | None = None
    intercept: float = 0.0


@dataclass(frozen=True)
class Found:
    """What a search ends with.

    Attributes
    ----------
    counts : ndarray of shape (g, m)
        Allowed counts, or the closest ones where none were found.
    bound : float
        Proven bound on the cost of allowed counts.
    status : str
        Why it ended: one of ProjectionResult's.
    multipliers : ndarray of shape (r,)
        Those of the relaxation; NaN where it was not needed.
    n_variables : int
        Variables of the largest model solved.
    """

    counts: np.ndarray
    bound: float
    status: str
    multipliers: np.ndarray
    n_variables: int


class Incumbent:
    """The cheapest allowed counts seen, else the closest ones, and a bound on the cost.

    Counts are allowed where v is in the sets and every class has a row.

    Parameters
    ----------
    cells : Cells
        The cells.
    tolerance : float
        Largest difference of cost and bound that is asked for.

    Attributes
    ----------
    counts : ndarray of shape (g, m) or None
        The cheapest allowed counts.
    objective : float
        Their cost; inf where there are none.
    bound : float
        Proven bound on the cost of allowed counts.
    closest : ndarray of shape (g, m) or None
        Where none are allowed, those of least violation among the counts that leave every class a
        row.
    multipliers : ndarray of shape (r,)
        Those that prove the bound of the relaxation; NaN before.
    n_variables : int
        Variables of the largest integer model solved.
    """

    def __init__(self, cells: Cells, tolerance: float) -> None:
        self.cells, self.tolerance = cells, tolerance
        self.counts: np.ndarray | None = None
        self.closest: np.ndarray | None = None
        self.objective, self.violation = np.inf, np.inf
        self.multipliers = np.full(len(cells.image.row), np.nan)
        self.bound = cells.round_up(cells.dual_value(np.zeros(len(cells.image.row))))
        self.n_variables = 0
        self._least_gain = _ROUNDING * cells.range_of_costs()

    @property
    def is_near_enough(self) -> bool:
        """Whether cost and bound are as near to each other as is asked for."""
        return self.gap <= self.tolerance

    @property
    def gap(self) -> float:
        """The difference of cost and bound."""
        return self.objective - self.bound

    def offer(self, counts: np.ndarray) -> bool:
        """Take counts that are better than those seen; tell whether they are allowed."""
        cells = self.cells
        if cells.rows_of_classes(counts).min() < 1:
            return False
        violation = cells.image.allowed.violation(cells.v(counts))
        if violation > VIOLATION_TOLERANCE:
            if violation < self.violation:
                self.closest, self.violation = counts.copy(), violation
            return False
        objective = cells.objective(counts)
        if objective < self.objective - self._least_gain or self.counts is None:
            self.counts, self.objective = counts.copy(), objective
        return True

    def found(self, status: str) -> Found:
        """Return the best counts, with why a search for nearer ones ended."""
        counts, bound = self.counts, min(self.bound, self.objective)
        if counts is None:
            counts, status = self.closest, "closest"
        elif self.is_near_enough:
            status = "gap"
        assert counts is not None  # constants leave every class a row
        n_variables = self.n_variables or self.cells.cost.size
        return Found(counts, bound, status, self.multipliers, n_variables)

    def prove(self, bound: float) -> None:
        """Take a bound on the cost of allowed counts."""
        self.bound = max(self.bound, self.cells.round_up(bound))


class Effort:
    """Work that is counted, so that equal calls end at the same point on any machine.

    Parameters
    ----------
    most : float
        Numbers that may be computed.
    deadline : Deadline
        A ceiling in wall time.
    """

    def __init__(self, most: float, deadline: Deadline) -> None:
        self.left, self.deadline = most, deadline

    def spend(self, work: float) -> None:
        """Count work that is done."""
        self.left -= work

    @property
    def is_over(self) -> bool:
        """Whether the search has to end."""
        return self.left <= 0 or not self.deadline.left
