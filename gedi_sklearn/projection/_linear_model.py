"""The models that solvers see, and their answer: what every solver module speaks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._deadline import Deadline
from .._geometry import Multipliers, Span

# Statuses of a solver that was stopped before it was done.
LIMITS = frozenset({"time_limit", "work_limit", "node_limit", "interrupted"})


@dataclass(frozen=True)
class LinearModel:
    r"""Minimise c'x subject to lower ≤ A x ≤ upper, 0 ≤ x ≤ u, the first variables integer.

    Attributes
    ----------
    cost : ndarray of shape (p,)
        c.
    matrix : sparse array of shape (m, p)
        A, every row scaled to a largest entry of 1.
    lower, upper : ndarray of shape (m,)
        Range of every row.
    upper_bound : ndarray of shape (p,)
        u.
    n_integers : int
        How many of the leading variables are integer.
    """

    cost: np.ndarray
    matrix: sp.csr_array
    lower: np.ndarray
    upper: np.ndarray
    upper_bound: np.ndarray
    n_integers: int

    def split_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tell which rows are equations, and which have an upper or a lower end besides."""
        equal = self.lower == self.upper
        return equal, ~equal & np.isfinite(self.upper), ~equal & np.isfinite(self.lower)


@dataclass(frozen=True)
class Outcome:
    """A solver's answer.

    Attributes
    ----------
    x : ndarray or None
        The best solution found; None where there is none.
    status : str
        One of ProjectionResult's, or "infeasible".
    bound : float
        Lower bound on the optimum; −inf where unknown.
    """

    x: np.ndarray | None
    status: str
    bound: float


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


class SolverSession(ABC):
    """A solver with its settings, ready for any number of models.

    Parameters
    ----------
    params : mapping
        Parameters in the solver's own names, checked.
    seed : int
        Seed of the solver.
    verbose : bool
        Whether the solver prints its log.
    """

    # As in ProjectionResult.
    name: str

    def __init__(self, params: Mapping[str, Any], seed: int, verbose: bool) -> None:
        self.params = dict(params)
        self.seed = seed
        self.verbose = verbose

    @abstractmethod
    def solve_linear(
        self,
        model: LinearModel,
        gap: float,
        start: np.ndarray | None,
        deadline: Deadline,
        most_nodes: int | None = None,
    ) -> Outcome:
        """Solve a mixed-integer model.

        Parameters
        ----------
        model : LinearModel
            The model.
        gap : float
            Absolute gap between objective and bound to stop at.
        start : ndarray or None
            Known values of the integers, feasible or not; a hint.
        deadline : Deadline
            When to end.
        most_nodes : int, default=None
            Nodes of the search tree after which to end; None is no limit.

        Returns
        -------
        Outcome
        """

    def solve_distance(self, span: Span, x: np.ndarray, deadline: Deadline) -> Multipliers | None:
        """Return the multipliers of the allowed point nearest to x.

        None leaves it to the closed form, where no solver was asked for by name. TimeoutError
        where the deadline comes first.
        """
        return None

    def refuse(self, what: str, solved_by: str) -> None:  # noqa: B027
        """Raise ValueError where this solver was asked for by name and has no such model."""

    def close(self) -> None:  # noqa: B027
        """Release what the solver holds; safe to call twice."""
