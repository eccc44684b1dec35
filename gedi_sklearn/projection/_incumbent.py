"""The best targets of classes seen so far, what is proven of them, and the work left to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._deadline import Deadline
from ..constraints import VIOLATION_TOLERANCE
from ._cells import Cells

__all__ = ["Effort", "Found", "Incumbent"]

# A cost counts as lower from this share of the cost of a row on.
_ROUNDING = 1e-12


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
        return self.objective - self.bound <= self.tolerance

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
