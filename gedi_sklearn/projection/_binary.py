r"""Binary targets: a loss that is linear in z ∈ {0, 1}, solved over groups of equal rows.

Rows with the same kernel row, weight and cost are interchangeable, so a solution is a count of
ones in each group. The linear relaxation over the groups gives multipliers λ, a lower bound, and
for every group the reduced cost r = c − A'λ of a row. Where the groups are many, all but those
with the smallest |r| are fixed where the relaxation has them, and the rest, the *core*, is an
integer model. A solution that differs from the relaxation in a fixed group costs at least the
smallest |r| among these more than the bound, which proves how good the core's solution is for
the whole; the core grows until that is good enough.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._validation import check_group_codes
from ..constraints import AllowedSet
from ..exceptions import InfeasibleProjectionError, SolverError, SolverLimitError, warn_caller
from ._bound import VIOLATION_TOLERANCE, AllowedProduct, Bound
from ._groups import Groups, costs, mix_ranges, row_effects, row_scale
from ._highs import solve_continuous
from ._model import LIMITS, LinearModel, Outcome, Solution, SolverSession
from ._relaxation import solve_relaxation
from ._rounding import Rounding

__all__ = ["BinaryTargets", "as_integers", "with_interior"]

# Groups in the integer model: a small one is answered soonest, a larger one holds better solutions.
# The licence that comes with gurobipy allows 2,000 variables.
_CORE_SIZES = (250, 600, 1500)
# Groups of smallest reduced cost among which a core is chosen.
_NEAREST = 50_000
# Groups that may take a step when the relaxation is rounded.
_ROUNDING_POOL = 300
# Fewer groups than this are solved by an integer model faster than by a search for many steps.
_SEARCHED_GROUPS = 100
# Rounding starts from the relaxation, then from ones in which only so large a share of the pool is
# not whole, the groups of small effects: what is left to round is small then too. Where all that
# leads nowhere, so many tolerances may be lost.
_ROUNDING_SHARES = (1.0, 0.85, 0.7)
_WIDENING = 30
# Seconds to look for the slack that would have a solution.
_SLACK_SECONDS = 10.0
# A count further than this from an integer is not one.
_INTEGRALITY = 1e-3


@dataclass(frozen=True)
class _Counts:
    """Ones in every group, with their cost and a bound on it."""

    counts: np.ndarray
    objective: float
    bound: float
    status: str
    multipliers: np.ndarray
    n_variables: int

    def or_else(self, earlier: _Counts) -> _Counts:
        """Return the cheaper of two counts, with the better bound: both bounds hold."""
        bound = max(self.bound, earlier.bound)
        cheaper = self if self.objective <= earlier.objective else earlier
        return replace(cheaper, bound=min(bound, cheaper.objective), status=self.status)


class BinaryTargets:
    """Projection of 0/1 targets: what is fixed for one design, constraint and original targets.

    Parameters
    ----------
    constraints : sequence of Bound
        The constraints on the rows of positive weight; all of them hold.
    y : ndarray of shape (n,)
        Original targets, 0 or 1.
    weight : ndarray of shape (n,)
        Sample weights, all positive.
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
        constraints: Sequence[Bound],
        y: np.ndarray,
        weight: np.ndarray,
        *,
        loss: str,
        gap: float,
        tie_order: np.ndarray,
        session: SolverSession,
        time_limit: float | None,
        description: dict[str, Any],
    ) -> None:
        self.constraints = constraints
        self.allowed = AllowedProduct(tuple(with_interior(own.allowed) for own in constraints))
        self.y = y
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
        keys = [own.design.keys for own in constraints]
        code, _ = check_group_codes(np.column_stack([*keys, weight]))
        self.code = code.astype(np.int32)
        first = np.unique(self.code, return_index=True)[1]
        self.matrix, self.scale = self._rows(first, weight[first] / weight.sum())
        self._last: np.ndarray | None = None

    def _rows(self, first: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix of :meth:`_model` for one row of every code, and the scale of v."""
        r = sum(len(part.rows) for part in self.allowed.parts)
        balls = [part for part in self.allowed.parts if part.bounds is None]
        n, n_auxiliary = len(first), 2 * sum(len(part.rows) for part in balls)
        matrix = np.zeros((r + 1 + len(balls), n + n_auxiliary))
        for own, (part, rows) in zip(
            self.constraints, self.allowed.split(np.arange(r)), strict=True
        ):
            if len(rows):
                row_effects(own.design, part, first, share, out=matrix[rows[0] : rows[-1] + 1, :n])
        scale = row_scale(matrix[:r, :n])
        matrix[:r, :n] /= scale[:, None]
        matrix[r, :n] = 1
        column, ball = n, r + 1
        for part, rows in self.allowed.split(np.arange(r)):
            if part.bounds is not None:
                continue
            for sign in (-1.0, 1.0):
                auxiliary = column + np.arange(len(rows))
                matrix[rows, auxiliary] = sign * (part.radius or 0.0) / scale[rows]
                matrix[ball, auxiliary] = 1
                column += len(rows)
            ball += 1
        return matrix, scale

    def solve(self, p: np.ndarray | None, target_weight: float) -> Solution:
        """Return the nearest targets to p and y that satisfy the constraint.

        Raises
        ------
        InfeasibleProjectionError
            If there are none.
        SolverLimitError
            If a limit was reached before any were found.
        SolverError
            If the solver failed, or returned what is no solution.
        """
        weighted, constant = self._costs(p, target_weight)
        largest = float(np.abs(weighted).max()) or 1.0
        weighted /= largest
        total = float(np.abs(weighted).sum())
        cost, tie_limit = self._break_ties(weighted, total)
        groups = self._group(cost, self.y if p is None else p)
        del weighted, cost  # of a million rows every array counts
        found = self._solve_groups(groups, max(self.gap * total - tie_limit, 0.0))
        z = groups.spread(found.counts)
        self._last = z
        objective = float(self._costs(p, target_weight)[0] @ z) / largest
        # The preference among ties is no part of the loss: take the most it adds out again.
        bound = min(found.bound - tie_limit, objective)
        gap = (objective - bound) / total if total else 0.0
        status = found.status
        if status in ("optimal", "gap"):
            status = "optimal" if gap <= 1e-9 else "gap"
        objective, bound = objective * largest + constant, bound * largest + constant
        self._warn_collapse(z)
        return Solution(
            z=z,
            objective=objective * self.mean_weight,
            bound=bound * self.mean_weight,
            gap=gap,
            multipliers=self._raw(found.multipliers * largest),
            correction=np.full(sum(own.kernel.n_columns for own in self.constraints), np.nan),
            status=status,
            solver=self.session.name,
            n_variables=found.n_variables,
            n_groups=groups.n,
        )

    def _costs(self, p: np.ndarray | None, target_weight: float) -> tuple[np.ndarray, float]:
        """Return what a one of every row costs, shape (n,), and the loss of all zeros."""
        weighted, at_zero = costs(self.y, p, target_weight, self.loss)
        weighted *= self.weight
        return weighted, float(self.weight @ at_zero)

    def relaxed_multipliers(self, p: np.ndarray) -> np.ndarray:
        """Return the multipliers of α̃, shape (k,), in the relaxation against p alone.

        Raises
        ------
        InfeasibleProjectionError
            If no targets satisfy the constraint.
        """
        weighted, _ = self._costs(p, 0.0)
        largest = float(np.abs(weighted).max()) or 1.0
        groups = self._group(weighted / largest, p)
        solved = self._relax(groups, np.zeros(len(groups.scale)))
        if solved is None:
            raise self._infeasible(groups)
        return self._raw(solved[1][: len(groups.scale)] / groups.scale * largest)

    def relaxed_labels(self, p: np.ndarray, offset: np.ndarray) -> np.ndarray | None:
        """Return the labels of the relaxation against p alone, rounded.

        They are a threshold on the score that depends on the attribute, up to the rounding of a
        few groups of equal rows.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Probabilities.
        offset : ndarray of shape (r,)
            What is added to the v of labels before it has to be in the sets.

        Returns
        -------
        ndarray of shape (n,) or None
            None where no labels of both classes are in the sets.
        """
        weighted, _ = self._costs(p, 0.0)
        groups = self._group(weighted / (float(np.abs(weighted).max()) or 1.0), p)
        solved = self._relax(groups, offset)
        if solved is None:
            return None
        labels = groups.spread(np.rint(solved[0][: groups.n]))
        return labels if 0 < labels.sum() < len(labels) else None

    def _relax(self, groups: Groups, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the solution of the relaxation, with an offset of v, and its row multipliers."""
        model = self._model(groups, None, np.zeros(groups.n))
        moved = np.zeros(len(model.lower))
        moved[: len(offset)] = offset / groups.scale
        return solve_relaxation(
            replace(model, lower=model.lower - moved, upper=model.upper - moved)
        )

    def _raw(self, multipliers: np.ndarray) -> np.ndarray:
        """Return multipliers of v, for weights of mean 1, as those of the coefficients."""
        parts = self.allowed.split(multipliers * self.mean_weight)
        return np.concatenate(
            [
                own.raw_multipliers(part)
                for own, (_, part) in zip(self.constraints, parts, strict=True)
            ]
        )

    def _warn_collapse(self, z: np.ndarray) -> None:
        """Warn where only the rule that each class keeps a row stands against a constant."""
        for value in (0, 1):
            if (z == value).sum() == 1 < (self.y == value).sum():
                warn_caller(
                    f"the projection leaves a single row in class {value} (of the encoded "
                    "classes): the nearest targets that satisfy the constraint are nearly "
                    "constant. Raise `threshold`, or `target_weight`.",
                )

    def _break_ties(self, weighted: np.ndarray, total: float) -> tuple[np.ndarray, float]:
        """Return costs with a small one that draws rows without any to their original target.

        Together these stay below a tenth of the smallest real cost, and below a quarter of the
        gap, so that they never outweigh a real difference. Also returns the most that they can
        add to a solution.
        """
        free = weighted == 0
        if not free.any():
            return weighted, 0.0
        budget = 1.0
        if not free.all():
            smallest = float(np.abs(weighted[~free]).min())
            budget = min(0.1 * smallest, 0.25 * max(self.gap, 1e-9) * total)
        cost = weighted.copy()
        cost[free] = budget / free.sum() * (1 - 2 * self.y[free])
        return cost, float(np.maximum(cost[free], 0).sum()) if total else 0.0

    def _group(self, cost: np.ndarray, confidence: np.ndarray) -> Groups:
        """Group rows of equal code and cost; within a group, confident ones come first."""
        index = self.code.dtype
        order = np.lexsort((self.tie_order, -confidence, cost, self.code)).astype(index)
        code, sorted_cost = self.code[order], cost[order]
        new = np.r_[True, (np.diff(code) != 0) | (np.diff(sorted_cost) != 0)]
        start = np.flatnonzero(new).astype(index)
        size = np.diff(start, append=index.type(len(order)))
        matrix = self.matrix
        if len(start) > code[-1] + 1:
            auxiliary = np.arange(code[-1] + 1, matrix.shape[1])
            matrix = matrix[:, np.r_[code[start], auxiliary]]
        return Groups(order, start, size, sorted_cost[start], matrix, self.scale)

    def _model(
        self,
        groups: Groups,
        core: np.ndarray | None,
        fixed: np.ndarray,
    ) -> LinearModel:
        r"""Return the integer model of a core (all for None), given the counts of other groups.

        Variables: the count of every group, then for each ball v⁺ and v⁻ in units of its radius::

            min c'x   s.t.  −b ≤ A x + f ≤ b                            (box)
                            A x + f = q(v⁺ − v⁻),  Σ(v⁺ + v⁻) ≤ 1       (ball)
                            1 ≤ Σ x + ones ≤ n − 1                      (both classes stay)
        """
        matrix, scale = groups.matrix, groups.scale
        r, n_auxiliary = len(scale), matrix.shape[1] - groups.n
        cost, size = groups.cost, groups.size
        if core is not None:
            matrix = matrix[:, np.r_[core, groups.n + np.arange(n_auxiliary)]]
            cost, size = cost[core], size[core]
        shift = groups.v(fixed) / scale
        lower, upper = -shift, -shift.copy()
        for part, own in self.allowed.split(np.arange(r)):
            if part.bounds is not None:
                lower[own] -= part.bounds / scale[own]
                upper[own] += part.bounds / scale[own]
        ones, n_balls = fixed.sum(), len(matrix) - r - 1
        return LinearModel(
            np.r_[cost, np.zeros(n_auxiliary)] if n_auxiliary else cost,
            matrix,
            np.r_[lower, 1 - ones, np.full(n_balls, -np.inf)],
            np.r_[upper, len(self.y) - 1 - ones, np.ones(n_balls)],
            np.r_[size.astype(float), np.ones(n_auxiliary)],
            len(cost),
        )

    def _solve_groups(self, groups: Groups, tolerance: float) -> _Counts:
        """Solve the relaxation, round it, then solve cores that grow until the gap is met."""
        deadline = None if self.time_limit is None else time.monotonic() + self.time_limit
        relaxation = self._model(groups, None, np.zeros(groups.n))
        solved = solve_relaxation(relaxation)
        if solved is None:
            raise self._infeasible(groups)
        relaxed, row_multipliers = solved[0][: groups.n], solved[1]
        lower_bound = relaxation.lagrangian_bound(row_multipliers)
        reduced = relaxation.reduced_cost(row_multipliers)[: groups.n]
        np.abs(reduced, out=reduced)
        del relaxation, solved
        multipliers = row_multipliers[: len(groups.scale)] / groups.scale
        # Groups that the relaxation splits come first, whatever rounding makes of their r.
        split = np.flatnonzero(np.abs(relaxed - np.rint(relaxed)) > _INTEGRALITY)
        by_cost = np.setdiff1d(_smallest(reduced, _NEAREST), split)
        by_cost = by_cost[np.argsort(reduced[by_cost], kind="stable")]
        split = split[np.argsort(reduced[split], kind="stable")]
        nearest = mix_ranges(np.r_[split, by_cost], groups.scaled_effects)
        best = self._round(
            groups,
            relaxed,
            nearest[:_ROUNDING_POOL],
            lower_bound,
            multipliers,
            reduced,
            tolerance,
        )
        for core_size in _core_sizes(groups.n):
            if best is not None and best.objective - best.bound <= tolerance:
                break
            core = nearest[:core_size]
            counts = np.rint(relaxed)
            counts[core] = 0
            fixed_cost = float(groups.cost @ counts)
            model = self._model(groups, core, counts)
            outcome = self._solve_model(model, tolerance, self._start(groups, best, core), deadline)
            if outcome.x is not None:
                counts[core] = as_integers(outcome.x[: len(core)], self.session.name)
                # A better solution is in the core, or differs from the relaxation outside of it.
                elsewhere = lower_bound + _least_outside(reduced, core)
                bound = max(lower_bound, min(outcome.bound + fixed_cost, elsewhere))
                found = self._accept(
                    groups, counts, bound, outcome.status, multipliers, len(model.cost)
                )
                best = found if best is None else found.or_else(best)
            if outcome.status in LIMITS:
                if best is None:
                    raise SolverLimitError.from_limit(
                        solver=self.session.name, status=outcome.status, **self.description
                    )
                return replace(best, status=outcome.status, n_variables=len(model.cost))
        if best is None:
            raise self._infeasible(groups)
        return best

    def _infeasible(self, groups: Groups) -> Exception:
        """Return the error for a problem without a solution, with the slack that would do."""
        if groups.n > _CORE_SIZES[-1]:
            return SolverError.from_status(
                self.session.name,
                f"no solution among the {_CORE_SIZES[-1]:,} groups nearest to the relaxation",
            )
        return InfeasibleProjectionError.from_problem(
            **self.description, smallest_slack=self._smallest_slack(groups)
        )

    def _smallest_slack(self, groups: Groups) -> float | None:
        """Return the least slack with a solution; None where slack plays no part, or is unknown.

        The integer model with the slack as its last variable and as its cost.
        """
        units = self.allowed.slack_units()
        if not units.any():
            return None
        model = self._model(groups, None, np.zeros(groups.n))
        per_slack = np.zeros(len(model.lower))
        per_slack[: len(units)] = -units / groups.scale
        upper = np.where(per_slack < 0, 0.0, model.upper)
        lower = np.where(per_slack < 0, 0.0, model.lower)
        relaxed = LinearModel(
            np.r_[np.zeros(len(model.cost)), 1.0],
            np.vstack(
                [
                    np.column_stack([model.matrix, per_slack]),
                    np.column_stack([model.matrix, -per_slack]),
                ]
            ),
            np.r_[np.full(len(upper), -np.inf), lower],
            np.r_[upper, np.full(len(lower), np.inf)],
            np.r_[model.capacity, np.inf],
            groups.n,
        )
        outcome = self.session.solve_linear(
            relaxed, gap=1e-6, start=None, time_limit=_SLACK_SECONDS
        )
        return None if outcome.x is None else float(outcome.x[-1]) * (1 + 1e-6)

    def _round(
        self,
        groups: Groups,
        relaxed: np.ndarray,
        pool: np.ndarray,
        bound: float,
        multipliers: np.ndarray,
        reduced: np.ndarray,
        tolerance: float,
    ) -> _Counts | None:
        """Return the relaxation rounded into the constraint, as near as a few steps lead."""
        reach = np.abs(groups.effects(pool) * multipliers[:, None]).sum(axis=0)
        by_reach = np.argsort(np.argsort(reach, kind="stable"), kind="stable")
        best: _Counts | None = None
        attempts = [*((share, 1) for share in _ROUNDING_SHARES), (1.0, _WIDENING)]
        for share, widening in attempts:
            if widening > 1 and best is not None:
                break
            nearby = pool[by_reach < share * len(pool)]
            base = relaxed if share == 1 else self._relax_pool(groups, relaxed, nearby)
            if base is None:
                continue
            rounding = Rounding(base, groups, self.allowed, nearby)
            searches = [rounding.by_pairs]
            if tolerance and groups.n >= _SEARCHED_GROUPS:
                searches.append(
                    partial(
                        rounding.near_optimum,
                        multipliers,
                        reduced,
                        bound + tolerance,
                        widening * tolerance,
                    )
                )
            for search in searches:
                counts = search()
                if counts is not None and 1 <= counts.sum() <= len(self.y) - 1:
                    found = self._accept(groups, counts, bound, "gap", multipliers, groups.n)
                    best = found if best is None or found.objective < best.objective else best
                if best is not None and best.objective - bound <= tolerance:
                    return best
        return best

    def _relax_pool(
        self, groups: Groups, relaxed: np.ndarray, pool: np.ndarray
    ) -> np.ndarray | None:
        """Return the relaxation with all groups but those of the pool rounded, if there is one."""
        fixed = np.rint(relaxed)
        fixed[pool] = 0
        solved = solve_continuous(self._model(groups, pool, fixed))
        if solved is None:
            return None
        fixed[pool] = solved[0][: len(pool)]
        return fixed

    def _start(self, groups: Groups, best: _Counts | None, core: np.ndarray) -> np.ndarray | None:
        """Return counts for the solver to start from: the best so far, or the last targets."""
        if best is not None:
            return best.counts[core]
        return None if self._last is None else groups.counts(self._last)[core]

    def _accept(
        self,
        groups: Groups,
        counts: np.ndarray,
        bound: float,
        status: str,
        multipliers: np.ndarray,
        n_variables: int,
    ) -> _Counts:
        """Check counts against every constraint, and put a price on them."""
        self._check(groups, counts)
        objective = float(groups.cost @ counts)
        return _Counts(counts, objective, min(bound, objective), status, multipliers, n_variables)

    def _solve_model(
        self, model: LinearModel, gap: float, start: np.ndarray | None, deadline: float | None
    ) -> Outcome:
        """Solve one integer model within what is left of the time."""
        left = None if deadline is None else max(deadline - time.monotonic(), 0.01)
        return self.session.solve_linear(model, gap=gap, start=start, time_limit=left)

    def _check(self, groups: Groups, counts: np.ndarray) -> None:
        """Refuse rounded counts that miss the constraint or leave a class empty."""
        if (counts < 0).any() or (counts > groups.size).any():
            raise SolverError.from_status(self.session.name, "counts outside of their bounds")
        violation = self.allowed.violation(groups.v(counts))
        if violation > VIOLATION_TOLERANCE:
            raise SolverError.from_violation(self.session.name, violation)
        if not 1 <= counts.sum() <= len(self.y) - 1:
            raise SolverError.from_status(self.session.name, "a class without rows")


def as_integers(x: np.ndarray, solver: str) -> np.ndarray:
    """Round a solver's counts, and refuse what is not near an integer."""
    counts = np.rint(x)
    worst = float(np.abs(x - counts).max(initial=0.0))
    if worst > _INTEGRALITY:
        raise SolverError.from_not_integral(solver, worst)
    return counts


def with_interior(allowed: AllowedSet) -> AllowedSet:
    """Give the ball of radius 0 the width of the tolerance: integers need an interior."""
    if allowed.radius != 0:
        return allowed
    width = 0.5 * VIOLATION_TOLERANCE * allowed.unit / max(len(allowed.rows), 1)
    return replace(allowed, radius=None, bounds=np.full(len(allowed.rows), width))


def _smallest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of so many smallest values, in order of position."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.sort(np.argpartition(values, count)[:count])


def _least_outside(values: np.ndarray, core: np.ndarray) -> float:
    """Return the least value outside of the core, inf where there is none."""
    outside = np.ones(len(values), dtype=bool)
    outside[core] = False
    return float(values.min(initial=np.inf, where=outside))


def _core_sizes(n_groups: int) -> list[int]:
    """Return the sizes to try: all groups at once where one model holds them."""
    if n_groups <= _CORE_SIZES[-1]:
        return [n_groups]
    return list(_CORE_SIZES)
