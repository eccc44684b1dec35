"""The models that solvers see, and their answer: what every solver module speaks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._deadline import Deadline
from ..constraints import JointSpan, Multipliers, Product

# Statuses of a solver that was stopped before it was done.
LIMITS = frozenset({"time_limit", "work_limit", "node_limit", "interrupted"})


@dataclass(frozen=True)
class LinearModel:
    r"""Minimise c'x subject to lower ≤ A x ≤ upper, 0 ≤ x ≤ u, the first variables integer.

    Attributes
    ----------
    cost : ndarray of shape (p,)
        c.
    matrix : ndarray or sparse array of shape (m, p)
        A, every row scaled to a largest entry of 1.
    lower, upper : ndarray of shape (m,)
        Range of every row.
    upper_bound : ndarray of shape (p,)
        u.
    n_integers : int
        How many of the leading variables are integer.
    """

    cost: np.ndarray
    matrix: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    upper_bound: np.ndarray
    n_integers: int

    def split_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tell which rows are equations, and which have an upper or a lower end besides."""
        equal = self.lower == self.upper
        return equal, ~equal & np.isfinite(self.upper), ~equal & np.isfinite(self.lower)

    def reduced_cost(self, multipliers: np.ndarray) -> np.ndarray:
        """Return c − A'λ, shape (p,)."""
        dual_value = multipliers @ self.matrix
        return np.subtract(self.cost, dual_value, out=dual_value)

    def lagrangian_bound(self, multipliers: np.ndarray) -> float:
        """Return the lower bound on the optimum that any row multipliers prove.

        min over the box of c'x − λ'(Ax) plus the least of λ'r over lower ≤ r ≤ upper: computed
        from λ alone, it holds whatever tolerance λ was found with.
        """
        reduced = self.reduced_cost(multipliers)
        ends = np.where(multipliers > 0, self.lower, self.upper)
        rows = np.where(multipliers == 0, 0.0, multipliers * np.where(multipliers == 0, 0, ends))
        used = reduced < 0
        return float(reduced[used] @ self.upper_bound[used] + rows.sum())


def set_model(
    allowed: Product,
    cost: np.ndarray,
    rows: Any,
    upper_bound: np.ndarray,
    *,
    fixed: np.ndarray,
    scale: np.ndarray,
    unit: float = 1.0,
    others: tuple[Any, np.ndarray, np.ndarray] | None = None,
) -> LinearModel:
    """Return the model of variables x that add A x to a v that has to lie in sets.

    Parameters
    ----------
    allowed : Product
        The sets of v.
    cost, upper_bound : ndarray of shape (p,)
        Of the variables, all integer.
    rows : ndarray or sparse array of shape (r, p)
        A / scale.
    fixed : ndarray of shape (r,)
        What v has besides.
    scale : ndarray of shape (r,)
        Scale of the rows of v.
    unit : float, default=1.0
        Unit of x, and of what v has besides.
    others : tuple of (B, lower, upper), default=None
        Further rows lower ≤ B x ≤ upper.
    """
    sets, shift = allowed.linear_rows(), fixed / scale
    n_sums, n_auxiliary = sets.sums.shape
    more, lower, upper = others or (np.empty((0, len(cost))), np.empty(0), np.empty(0))
    blocks = [
        [rows, sets.auxiliary / unit / scale[:, None]],
        [more, np.zeros((len(lower), n_auxiliary))],
        [sp.csr_array((n_sums, len(cost))), sets.sums],
    ]
    matrix = sp.csr_array(sp.block_array(blocks))
    return LinearModel(
        np.r_[cost, np.zeros(n_auxiliary)],
        matrix if sp.issparse(rows) else matrix.toarray(),
        np.r_[sets.lower / unit / scale - shift, lower, np.full(n_sums, -np.inf)],
        np.r_[sets.upper / unit / scale - shift, upper, sets.most],
        np.r_[upper_bound, np.ones(n_auxiliary)],
        len(cost),
    )


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
        self, model: LinearModel, gap: float, start: np.ndarray | None, deadline: Deadline
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

        Returns
        -------
        Outcome
        """

    def solve_distance(
        self, span: JointSpan, x: np.ndarray, deadline: Deadline
    ) -> Multipliers | None:
        """Return the multipliers of the allowed point nearest to x.

        None leaves it to the closed form, where no solver was asked for by name. TimeoutError
        where the deadline comes first.
        """
        return None

    def refuse(self, what: str, solved_by: str) -> None:  # noqa: B027
        """Raise ValueError where this solver was asked for by name and has no such model."""

    def close(self) -> None:  # noqa: B027
        """Release what the solver holds; safe to call twice."""
