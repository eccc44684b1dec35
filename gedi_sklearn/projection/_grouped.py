r"""Targets of classes over groups of equal rows: cores that grow until the gap is met.

Rows that are interchangeable form a group, and a solution is the counts of its rows in every
class. The linear relaxation over the groups gives a lower bound, and for every group a *doubt*:
what it costs at least to differ there from the relaxation. Where the groups are many, all but
those of least doubt are fixed where the relaxation has them, and the rest, the *core*, is an
integer model. A better solution than the core's differs from the relaxation in a fixed group and
costs at least the least doubt among these more than the bound, which proves how good the core's
solution is for the whole; the core grows until that is good enough.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from .._validation import check_group_codes
from ..exceptions import InfeasibleProjectionError, SolverError, SolverLimitError, warn_caller
from ._allowed_rows import with_interior
from ._bound import VIOLATION_TOLERANCE, AllowedProduct
from ._model import LIMITS, LinearModel, Solution, SolverSession

__all__ = ["INTEGRALITY", "Counts", "GroupedTargets", "Relaxed", "RowGroups"]

# A count further than this from an integer is not one.
INTEGRALITY = 1e-3


class RowGroups(Protocol):
    """Groups of equal rows, with what counts in them mean."""

    def price(self, counts: np.ndarray) -> float:
        """Return the cost of counts."""

    def v(self, counts: np.ndarray) -> np.ndarray:
        """Return the bounded v of counts, shape (r,)."""

    def rows_of_classes(self, counts: np.ndarray) -> np.ndarray:
        """Return how many rows every class has, shape (K,)."""

    def fault(self, counts: np.ndarray) -> str | None:
        """Return why counts are none of these groups, None where they are."""


AnyGroups = TypeVar("AnyGroups", bound=RowGroups)


@dataclass(frozen=True)
class Relaxed:
    """The solution of the relaxation.

    Attributes
    ----------
    counts : ndarray of shape (g,) or (g, K)
        Counts of every group, not all of them whole.
    bound : float
        The lower bound that the multipliers prove.
    doubt : ndarray of shape (g,)
        What it costs at least to differ from `counts` in a group.
    multipliers : ndarray of shape (r,)
        Multipliers of v.
    """

    counts: np.ndarray
    bound: float
    doubt: np.ndarray
    multipliers: np.ndarray


@dataclass(frozen=True)
class Counts:
    """Whole counts of every group, with their cost and a bound on it."""

    counts: np.ndarray
    objective: float
    bound: float
    status: str
    multipliers: np.ndarray
    n_variables: int

    def or_else(self, earlier: Counts) -> Counts:
        """Return the cheaper of two counts, with the better bound: both bounds hold."""
        bound = max(self.bound, earlier.bound)
        cheaper = self if self.objective <= earlier.objective else earlier
        return replace(cheaper, bound=min(bound, cheaper.objective), status=self.status)


class GroupedTargets(ABC, Generic[AnyGroups]):
    """Projection of classes: what is fixed for one design, constraint and original targets.

    Parameters
    ----------
    allowed : AllowedProduct
        The sets that hold the v of targets.
    keys : sequence of ndarray of shape (n, m)
        What the effects of a row on v are a function of, beside its weight.
    y : ndarray of shape (n,)
        Original targets, 0…K − 1.
    weight : ndarray of shape (n,)
        Sample weights, all positive.
    n_classes : int
        K.
    loss : {"hamming", "log_loss"}
        The loss.
    gap : float
        Largest (objective − bound) / Σ w|c| to be content with; 0 asks for the optimum.
    tie_order : ndarray of shape (n,)
        Which of equal rows flips first.
    session : SolverSession
        Solves the integer models.
    time_limit : float or None
        Seconds for one projection.
    description : dict
        What an error says about the problem.
    """

    def __init__(
        self,
        allowed: AllowedProduct,
        keys: Sequence[np.ndarray],
        *,
        y: np.ndarray,
        weight: np.ndarray,
        n_classes: int,
        loss: str,
        gap: float,
        tie_order: np.ndarray,
        session: SolverSession,
        time_limit: float | None,
        description: dict[str, Any],
    ) -> None:
        self.allowed = AllowedProduct(tuple(map(with_interior, allowed.parts)))
        self.y = y
        self.n_classes = n_classes
        # Solvers' tolerances are absolute: weights of mean 1, costs of at most 1.
        self.mean_weight = float(weight.mean())
        # Equal ones take no memory.
        equal = weight.min() == weight.max()
        self.weight = np.broadcast_to(1.0, len(y)) if equal else weight / self.mean_weight
        self.loss = loss
        self.gap = gap
        self.tie_order = tie_order
        self.session = session
        self.time_limit = time_limit
        self.description = description
        code, _ = check_group_codes(np.column_stack([*keys, weight]))
        self.code = code.astype(np.int32)

    @abstractmethod
    def _core_model(self, groups: AnyGroups, core: np.ndarray, fixed: np.ndarray) -> LinearModel:
        """Return the integer model of a core, given the counts of the other groups.

        Its integer variables are the counts of the core.
        """

    def _start(self, groups: AnyGroups, best: Counts | None, core: np.ndarray) -> np.ndarray | None:
        """Return counts of the core for the solver to start from, if there are any."""
        return None

    def _deadline(self) -> float | None:
        """Return when a projection that begins now has to end."""
        return None if self.time_limit is None else time.monotonic() + self.time_limit

    def _solve_cores(
        self,
        groups: AnyGroups,
        relaxed: Relaxed,
        nearest: np.ndarray,
        sizes: Sequence[int],
        tolerance: float,
        deadline: float | None,
        best: Counts | None = None,
    ) -> Counts:
        """Solve cores of growing size until the gap is met.

        Parameters
        ----------
        groups : RowGroups
            The groups.
        relaxed : Relaxed
            Their relaxation.
        nearest : ndarray of int
            The groups that a core takes first, in that order.
        sizes : sequence of int
            Sizes of the cores, the largest last.
        tolerance : float
            Difference of cost and bound to be content with.
        deadline : float or None
            When to stop.
        best : Counts, default=None
            Counts known beforehand.

        Returns
        -------
        Counts
            The cheapest ones, with the best bound.

        Raises
        ------
        InfeasibleProjectionError
            If there are none.
        SolverLimitError
            If a limit was reached before any were found.
        SolverError
            If the solver failed, or returned what is no solution.
        """
        for size in sizes:
            if best is not None and best.objective - best.bound <= tolerance:
                break
            core = nearest[:size]
            counts = np.rint(relaxed.counts)
            counts[core] = 0
            fixed_cost = groups.price(counts)
            model = self._core_model(groups, core, counts)
            outcome = self.session.solve_linear(
                model,
                gap=tolerance,
                start=self._start(groups, best, core),
                time_limit=None if deadline is None else max(deadline - time.monotonic(), 0.01),
            )
            if outcome.x is not None:
                inside = _as_integers(outcome.x[: model.n_integers], self.session.name)
                counts[core] = inside.reshape(counts[core].shape)
                # A better solution is in the core, or differs from the relaxation outside of it.
                elsewhere = relaxed.bound + _least_outside(relaxed.doubt, core)
                bound = max(relaxed.bound, min(outcome.bound + fixed_cost, elsewhere))
                found = self._accept(
                    groups, counts, bound, outcome.status, relaxed.multipliers, len(model.cost)
                )
                best = found if best is None else found.or_else(best)
            if outcome.status in LIMITS:
                if best is None:
                    raise SolverLimitError.from_limit(
                        solver=self.session.name, status=outcome.status, **self.description
                    )
                return replace(best, status=outcome.status, n_variables=len(model.cost))
        if best is not None:
            return best
        if sizes[-1] < len(relaxed.doubt):
            # The largest core has no solution, which proves nothing of the whole.
            raise SolverError.from_status(
                self.session.name,
                f"no solution among the {sizes[-1]:,} groups nearest to the relaxation",
            )
        raise self._infeasible(groups)

    def _infeasible(self, groups: AnyGroups) -> InfeasibleProjectionError:
        """Return the error for groups without a solution."""
        return InfeasibleProjectionError.from_problem(**self.description)

    def _accept(
        self,
        groups: AnyGroups,
        counts: np.ndarray,
        bound: float,
        status: str,
        multipliers: np.ndarray,
        n_variables: int,
    ) -> Counts:
        """Check counts against every constraint, and put a price on them."""
        fault = groups.fault(counts)
        if fault is not None:
            raise SolverError.from_status(self.session.name, fault)
        violation = self.allowed.violation(groups.v(counts))
        if violation > VIOLATION_TOLERANCE:
            raise SolverError.from_violation(self.session.name, violation)
        if groups.rows_of_classes(counts).min() < 1:
            raise SolverError.from_status(self.session.name, "a class without rows")
        objective = groups.price(counts)
        return Counts(counts, objective, min(bound, objective), status, multipliers, n_variables)

    def _solution(
        self,
        z: np.ndarray,
        found: Counts,
        *,
        objective: float,
        bound: float,
        gap: float,
        multipliers: np.ndarray,
        n_groups: int,
    ) -> Solution:
        """Return targets with what was found of them: numbers for weights of mean 1."""
        status = found.status
        if status in ("optimal", "gap"):
            status = "optimal" if gap <= 1e-9 else "gap"
        self._warn_collapse(z)
        return Solution(
            z=z,
            objective=objective * self.mean_weight,
            bound=bound * self.mean_weight,
            gap=gap,
            multipliers=multipliers,
            correction=np.full(len(multipliers), np.nan),
            status=status,
            solver=self.session.name,
            n_variables=found.n_variables,
            n_groups=n_groups,
        )

    def _warn_collapse(self, z: np.ndarray) -> None:
        """Warn where only the rule that each class keeps a row stands against losing it."""
        fate = "are nearly constant" if self.n_classes == 2 else "hardly use it"
        for c in range(self.n_classes):
            if (z == c).sum() == 1 < (self.y == c).sum():
                warn_caller(
                    f"the projection leaves a single row in class {c} (of the encoded classes): "
                    f"the nearest targets that satisfy the constraint {fate}. Raise `threshold`, "
                    "or `target_weight`."
                )


def _as_integers(x: np.ndarray, solver: str) -> np.ndarray:
    """Round a solver's counts, and refuse what is not near an integer."""
    counts = np.rint(x)
    worst = float(np.abs(x - counts).max(initial=0.0))
    if worst > INTEGRALITY:
        raise SolverError.from_not_integral(solver, worst)
    return counts


def _least_outside(values: np.ndarray, core: np.ndarray) -> float:
    """Return the least value outside of the core, inf where there is none."""
    outside = np.ones(len(values), dtype=bool)
    outside[core] = False
    return float(values.min(initial=np.inf, where=outside))
