r"""Integer models of some groups: cores that grow until the gap is met.

A solution is the counts of every group's rows in the classes. The linear relaxation over the
groups gives a lower bound, and for every group an absolute reduced cost: what it costs at least to
differ there from the relaxation. Where the groups are many, all but those of the least are fixed
where the relaxation has them, and the rest, the *core*, is an integer model. A better solution
than the core's differs from the relaxation in a fixed group and costs at least the least absolute
reduced cost among these more than the bound, which proves how good the core's solution is for the
whole; the core grows until that is good enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._deadline import Deadline
from ..constraints import VIOLATION_TOLERANCE, Product
from ..exceptions import InfeasibleProjectionError, SolverError, SolverLimitError
from ._core import Core
from ._groups import Groups
from ._linear_model import LIMITS, LinearModel, Outcome, SolverSession
from ._relaxation import Relaxed

# A count further than this from an integer is not one.
INTEGRALITY = 1e-3
# Times that sets are cut off where a solution leaves them.
_MOST_CUTS = 12
# Seconds to look for the least slack with a solution.
_SLACK_SECONDS = 10.0


@dataclass(frozen=True)
class Counts:
    """Whole counts of every group, with their cost and a bound on it."""

    counts: np.ndarray
    objective: float
    bound: float
    status: str
    multipliers: np.ndarray
    n_variables: int

    def better_of(self, earlier: Counts | None) -> Counts:
        """Return the cheaper of two counts, with the better bound: both bounds hold."""
        if earlier is None:
            return self
        bound = max(self.bound, earlier.bound)
        cheaper = self if self.objective <= earlier.objective else earlier
        return replace(cheaper, bound=min(bound, cheaper.objective), status=self.status)

    def is_within(self, tolerance: float) -> bool:
        """Tell whether cost and bound are near enough to each other."""
        return self.objective - self.bound <= tolerance


@dataclass
class Cores:
    """One problem over groups: candidates for its solution, and what they prove.

    Parameters
    ----------
    groups : Groups
        The groups.
    relaxed : Relaxed
        Their relaxation.
    tolerance : float
        Largest difference of cost and bound that is asked for.
    session : SolverSession
        Solves the integer models.
    deadline : Deadline
        When to end.
    infeasible : callable
        Makes the error for groups without a solution.
    description : dict
        What an error says about the problem.
    """

    groups: Groups
    relaxed: Relaxed
    tolerance: float
    session: SolverSession
    deadline: Deadline
    infeasible: Callable[[], InfeasibleProjectionError]
    description: dict[str, Any]
    best: Counts | None = None

    def has_counts(self) -> bool:
        """Tell whether any counts are known."""
        return self.best is not None

    def round(self, candidates: Iterable[np.ndarray | None]) -> None:
        """Take whole counts, None for none, until the gap is met or the time is over."""
        if self._is_near_enough():
            return
        # What there is when the time is over has to do.
        with suppress(TimeoutError):
            for counts in candidates:
                if counts is not None:
                    found = self._accept(counts, self.relaxed.bound, "gap", self.groups.cost.size)
                    self.best = found.better_of(self.best)
                    if self._is_near_enough():
                        break
                self.deadline.check()

    def ended(self, status: str) -> Counts:
        """Return the best counts, with why the search for nearer ones ended."""
        assert self.best is not None
        return self.best if self._is_near_enough() else replace(self.best, status=status)

    def _is_near_enough(self) -> bool:
        return self.best is not None and self.best.is_within(self.tolerance)

    def solve(self, nearest: np.ndarray, sizes: Sequence[int], start: np.ndarray | None) -> Counts:
        """Solve cores of growing size until the gap is met.

        Parameters
        ----------
        nearest : ndarray of int
            The columns of groups that a core takes first, in that order.
        sizes : sequence of int
            Sizes of the cores, the largest last.
        start : ndarray of shape (g, m) or None
            Counts for the solver to start from where none are known.

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
        status = ""
        for size in sizes:
            if self._is_near_enough():
                break
            n_variables, status = self._solve_core(nearest[:size], start)
            if status in LIMITS:
                if self.best is None:
                    raise SolverLimitError.from_limit(
                        solver=self.session.name, status=status, **self.description
                    )
                return replace(self.best, status=status, n_variables=n_variables)
        if self.best is not None:
            return self.best
        if sizes[-1] < len(nearest) or status != "infeasible":
            # The largest core has no solution, which proves nothing of the whole.
            raise SolverError.from_status(
                self.session.name,
                f"no solution among the {sizes[-1]:,} moves nearest to the relaxation",
            )
        raise self.infeasible()

    def _solve_core(self, columns: np.ndarray, start: np.ndarray | None) -> tuple[int, str]:
        """Solve the model of a core, and take its counts.

        Return the number of its variables, and the solver's status. Sets that are no polyhedra
        are cut off wherever a solution leaves them, which proves a bound; where none is found
        inside, those of the polyhedra inside are taken.
        """
        groups, relaxed = self.groups, self.relaxed
        core = Core(groups, relaxed.base, columns)
        known = start if self.best is None else self.best.counts
        start = None if known is None else core.moved(known)
        # Where the relaxation is near their boundary, twice as far is outside.
        allowed = groups.image.allowed.touched(2 * groups.v(relaxed.counts))
        # A better solution is in the core, or leaves a base for a column outside of it.
        elsewhere = relaxed.bound + _least_outside(relaxed.detour.ravel(), columns)
        bound, counts = relaxed.bound, None
        for _ in range(1 if allowed.is_polyhedron else _MOST_CUTS):
            outcome, counts = self._solve_model(core, allowed, start)
            bound = max(bound, min(outcome.bound + groups.objective(core.start), elsewhere))
            if counts is None or outcome.status in LIMITS or self._is_allowed(counts):
                break
            allowed = allowed.touched(groups.v(counts))
        status, n_variables = outcome.status, len(core.group)
        if counts is not None and not (allowed.is_polyhedron or self._is_allowed(counts)):
            _, counts = self._solve_model(core, relaxed.allowed, start)
        if counts is not None:
            self.best = self._accept(counts, bound, status, n_variables).better_of(self.best)
        elif self.best is not None:
            bound = max(self.best.bound, self.groups.round_up(bound))
            bound = min(bound, self.best.objective)
            self.best = replace(self.best, bound=bound)
        return n_variables, status

    def _is_allowed(self, counts: np.ndarray) -> bool:
        image = self.groups.image
        return image.allowed.violation(self.groups.v(counts)) <= VIOLATION_TOLERANCE

    def _solve_model(
        self, core: Core, allowed: Product, start: np.ndarray | None
    ) -> tuple[Outcome, np.ndarray | None]:
        """Solve the model of a core in sets; return the outcome, and the counts of all groups."""
        model = core.model(allowed, np.zeros(len(self.relaxed.multipliers)), keep_classes=True)
        outcome = self.session.solve_linear(
            model, gap=self.tolerance, start=start, deadline=self.deadline
        )
        if outcome.x is None:
            return outcome, None
        return outcome, core.counts(_as_integers(outcome.x[: model.n_integers], self.session.name))

    def _accept(self, counts: np.ndarray, bound: float, status: str, n_variables: int) -> Counts:
        """Check counts against every constraint, and value them."""
        name, groups = self.session.name, self.groups
        fault = groups.fault(counts)
        if fault is not None:
            raise SolverError.from_status(name, fault)
        violation = groups.image.allowed.violation(groups.v(counts))
        if violation > VIOLATION_TOLERANCE:
            raise SolverError.from_violation(name, violation)
        if groups.rows_of_classes(counts).min() < 1:
            raise SolverError.from_status(name, "a class without rows")
        objective = groups.objective(counts)
        bound = min(groups.round_up(bound), objective)
        return Counts(counts, objective, bound, status, self.relaxed.multipliers, n_variables)


def smallest_slack(
    model: LinearModel, units: np.ndarray, session: SolverSession, deadline: Deadline
) -> float | None:
    """Return the least slack with a solution; None where slack plays no part, or is unknown.

    The integer model with the slack as its last variable and as its cost.

    Parameters
    ----------
    model : LinearModel
        The model; its first rows are those of v.
    units : ndarray of shape (r,)
        How far a slack of 1 lets these rows move, 0 for a row that it has no say in.
    session : SolverSession
        Solves the model.
    deadline : Deadline
        When to end.

    Returns
    -------
    float or None
    """
    if not units.any():
        return None
    per_slack = np.zeros(len(model.lower))
    per_slack[: len(units)] = -units
    upper = np.where(per_slack < 0, (model.lower + model.upper) / 2, model.upper)
    lower = np.where(per_slack < 0, upper, model.lower)
    relaxed = LinearModel(
        np.r_[np.zeros(len(model.cost)), 1.0],
        sp.csr_array(
            sp.block_array(
                [[model.matrix, per_slack[:, None]], [model.matrix, -per_slack[:, None]]]
            )
        ),
        np.r_[np.full(len(upper), -np.inf), lower],
        np.r_[upper, np.full(len(lower), np.inf)],
        np.r_[model.upper_bound, np.inf],
        model.n_integers,
    )
    soon = Deadline(min(_SLACK_SECONDS, deadline.left))
    outcome = session.solve_linear(relaxed, gap=1e-6, start=None, deadline=soon)
    return None if outcome.x is None else float(outcome.x[-1]) * (1 + 1e-6)


def _as_integers(x: np.ndarray, solver: str) -> np.ndarray:
    """Round a solver's counts, and refuse what is not near an integer."""
    counts = np.rint(x)
    worst = float(np.abs(x - counts).max(initial=0.0))
    if worst > INTEGRALITY:
        raise SolverError.from_not_integral(solver, worst)
    return counts


def _least_outside(values: np.ndarray, columns: np.ndarray) -> float:
    """Return the least value outside of the core, inf where there is none."""
    outside = np.ones(len(values), dtype=bool)
    outside[columns] = False
    return float(values.min(initial=np.inf, where=outside))
