r"""Linear relaxation over many groups: few rows, solved by sifting.

The optimum is determined by the multipliers λ of k + 1 rows or so, and at the right λ the rows of
all but a few groups stand in their base, the column of least reduced cost. So: let rows leave the
base for the columns near to a tie only, solve the linear program of these, and look whether a
column left out contradicts the new λ. If none does, the solution is optimal for all; what does
joins the next program. The first λ comes from random samples of growing size, each sifted from
the λ of the one before, whose error falls with the square root of its size.

Two classes under one interval need no program: rows leave the class of least cost in the order of
what that costs for the way it leads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._deadline import Deadline
from ..constraints import Product
from ..kernels import row_blocks
from ._core import Core
from ._dual import maximise_dual
from ._groups import Groups
from ._highs import solve_continuous

# Columns of groups that one linear program takes without sifting, and of the smallest sample.
_DIRECT = 2600
# Size of a sample over that of the one before, and what no sample reaches: it is a copy.
_GROWTH, _LARGEST_SAMPLE = 4, 300_000
# Sampling error of λ, in the share of groups whose choice it leaves open: OPEN / √(sample size).
_OPEN = 8.0
# What polyhedra inside the sets may lose, relative to the tolerance.
_INSIDE = 0.01
# Rows of v of sets that join classes up to which there is a linear program.
_JOINT_ROWS = 300


@dataclass(frozen=True)
class Relaxed:
    """The solution of the relaxation.

    Attributes
    ----------
    counts : ndarray of shape (g, m)
        Counts of every group, not all of them whole.
    multipliers : ndarray of shape (r,)
        Multipliers of v.
    bound : float
        The lower bound that they prove.
    base : ndarray of shape (g,)
        The column of least reduced cost, −1 for the first of two classes.
    detour : ndarray of shape (g, m)
        What a row costs at least that leaves its base for a column; inf for the base.
    allowed : Product
        The sets, or polyhedra inside that hold its v.
    is_basic : bool
        Whether no more groups are split than there are rows of v; soft counts can split many.
    """

    counts: np.ndarray
    multipliers: np.ndarray
    bound: float
    base: np.ndarray
    detour: np.ndarray
    allowed: Product
    is_basic: bool = True


def relax(
    groups: Groups,
    allowed: Product,
    tolerance: float,
    offset: np.ndarray,
    deadline: Deadline,
    start: np.ndarray | None = None,
) -> Relaxed | None:
    """Return the relaxation with an offset of v; None if it is infeasible.

    Of two classes, and where few rows of v join classes, it is a linear program, of a polyhedron
    about the dual solution where the sets are none; else it is the dual with soft counts.

    Parameters
    ----------
    groups : Groups
        The groups.
    allowed : Product
        Their sets, or others in their place.
    tolerance : float
        How far from its optimum the bound may be.
    offset : ndarray of shape (r,)
        What is added to v before it has to be in the sets.
    deadline : Deadline
        When to end; TimeoutError where it comes first.
    start : ndarray of shape (r,), default=None
        Multipliers of other sets to begin with.
    """
    is_joint = groups.n_columns > 1 and groups.jumps() is not None
    is_linear = groups.n_columns == 1 or (is_joint and len(offset) <= _JOINT_ROWS)
    # In one dimension every set is an interval.
    if is_linear and (allowed.is_polyhedron or len(offset) == 1):
        return solve_relaxation(groups, allowed, offset, deadline, start)
    dual = maximise_dual(groups, allowed, tolerance, offset, deadline, start)
    loss = max(_INSIDE * tolerance, 1e-12 * groups.range_of_costs())
    inside = allowed.inside(dual.points, dual.multipliers, loss / max(len(allowed.parts), 1))
    if groups.n_columns == 1:
        return solve_relaxation(groups, inside, offset, deadline, dual.multipliers, is_optimal=True)
    base, detour = groups.choose(dual.multipliers)
    return Relaxed(dual.counts, dual.multipliers, dual.bound, base, detour, inside, is_basic=False)


def unsolved(groups: Groups, allowed: Product) -> Relaxed:
    """Return what stands for a relaxation that takes too long: the counts of least cost."""
    multipliers = np.zeros(len(groups.image.row))
    base, detour = groups.choose(multipliers)
    bound = groups.dual_value(multipliers, allowed)
    return Relaxed(groups.placed(base), multipliers, bound, base, detour, allowed)


def solve_relaxation(
    groups: Groups,
    allowed: Product,
    fixed: np.ndarray,
    deadline: Deadline,
    start: np.ndarray | None = None,
    *,
    is_optimal: bool = False,
) -> Relaxed | None:
    """Return a basic optimal solution of the relaxation; None if infeasible.

    Parameters
    ----------
    groups : Groups
        The groups.
    allowed : Product
        Their sets, or others in their place.
    fixed : ndarray of shape (r,)
        What v has besides.
    deadline : Deadline
        When to end.
    start : ndarray of shape (r,), default=None
        Multipliers near to the optimal ones; None finds some by samples.
    is_optimal : bool, default=False
        Whether these are the optimal ones: the solution is then the best one with all but the
        columns nearest to a tie as they make them.

    Raises
    ------
    SolverError
        If the solver of the small programs fails.
    TimeoutError
        If the deadline comes first.
    """
    if groups.n_columns == len(fixed) == 1:
        return _in_interval(groups, allowed, float(fixed[0]))
    if start is not None:
        own = _Sifting(groups, allowed, fixed, deadline)
        return own.solve(start, groups.n, is_optimal=is_optimal)
    multipliers = np.zeros(len(fixed))
    shuffled = np.random.default_rng(0).permutation(groups.n)
    size, previous = _direct(groups), None
    while size < min(groups.n, _LARGEST_SAMPLE):
        sample = _Sifting(groups.sample(shuffled[:size]), allowed, fixed, deadline)
        solved = sample.solve(multipliers, previous)
        if solved is not None:
            multipliers, previous = solved.multipliers, size
        size *= _GROWTH
    return _Sifting(groups, allowed, fixed, deadline).solve(multipliers, previous)


def _in_interval(groups: Groups, allowed: Product, fixed: float) -> Relaxed | None:
    """Return the solution of two classes under |v| ≤ h, by sorting; None if infeasible."""
    effect = groups.matrix[0] * groups.scale[0]
    counts = np.where(groups.cost < 0, groups.size[:, None], 0.0)
    v = float(effect @ counts[:, 0]) + fixed
    away, multiplier = abs(v) - float(allowed.parts[0].limits[0]), 0.0
    if away > 0:
        # What a row that turns leads back, where it does.
        way = np.where(counts[:, 0] > 0, effect, -effect) * np.sign(v)
        turning = np.flatnonzero(way > 0)
        turning = turning[np.argsort(np.abs(groups.cost[turning, 0]) / way[turning])]
        reached = np.cumsum(way[turning] * groups.size[turning])
        last = int(np.searchsorted(reached, away))
        if last == len(turning):
            return None
        turned, split = turning[:last], turning[last]
        counts[turned] = groups.size[turned, None] - counts[turned]
        rows = (away - (reached[last - 1] if last else 0.0)) / way[split]
        counts[split] += rows if counts[split] == 0 else -rows
        multiplier = float(groups.cost[split, 0] / effect[split])
    multipliers = np.array([multiplier])
    base, detour = groups.choose(multipliers)
    bound = groups.dual_value(multipliers) - multiplier * fixed
    return Relaxed(counts, multipliers, bound, base, detour, allowed)


def _direct(groups: Groups) -> int:
    return _DIRECT // groups.n_columns


@dataclass(frozen=True)
class _Sifting:
    """The relaxation of some groups; see :func:`solve_relaxation`."""

    groups: Groups
    allowed: Product
    fixed: np.ndarray
    deadline: Deadline

    def solve(
        self, multipliers: np.ndarray, sample_size: int | None, *, is_optimal: bool = False
    ) -> Relaxed | None:
        """Solve the relaxation from the multipliers of a sample of the given size."""
        groups, fixed = self.groups, self.fixed
        base, detour = groups.choose(multipliers)
        # What has no end cannot be there.
        base[np.isinf(groups.size)] = -1
        free = self._nearest(detour, sample_size)
        while True:
            core = Core(groups, base, np.flatnonzero(free))
            solved = solve_continuous(core.model(self.allowed, fixed), self.deadline)
            if solved is None:
                if free.all():
                    return None
                # Those left open cannot make up for those fixed wrongly: open as many again.
                closed = np.flatnonzero(~free)
                more = min(len(closed), int(free.sum()))
                free[closed[np.argsort(detour.ravel()[closed])[:more]]] = True
                continue
            now = base
            if not is_optimal:
                multipliers = solved[1][: len(fixed)] / groups.scale[groups.image.row]
                now, detour = groups.choose(multipliers)
            turned = np.flatnonzero(now != base)
            wrong = turned * groups.n_columns + np.maximum(now[turned], 0)
            wrong = wrong[~free[wrong]]
            if not len(wrong):
                bound = groups.dual_value(multipliers) - float(multipliers @ fixed)
                counts = core.counts(solved[0])
                return Relaxed(counts, multipliers, bound, now, detour, self.allowed)
            free[wrong] = True
            del core, now, turned  # of a million rows every array counts

    def _nearest(self, detour: np.ndarray, sample_size: int | None) -> np.ndarray:
        """Tell which columns of groups, flat, a sample's multipliers leave open."""
        groups, direct = self.groups, _direct(self.groups)
        if sample_size is None or groups.n <= direct:
            return np.ones(detour.size, dtype=bool)
        share = _OPEN * np.sqrt(groups.n_columns / sample_size)
        n_open = min(groups.n, max(direct, int(share * groups.n)))
        with np.errstate(divide="ignore", invalid="ignore"):
            turns_at = (detour / leverage(groups.matrix)[:, None]).ravel()
        free = np.zeros(detour.size, dtype=bool)
        free[np.argpartition(turns_at, n_open - 1)[:n_open]] = True
        return free


def leverage(columns: np.ndarray) -> np.ndarray:
    """Return √(a'(AA')⁻¹a) for every column a, shape (n,): how far an error of λ moves its r.

    A sample's λ errs in proportion to (AA')⁻¹; a column in the tails turns its sign more easily,
    and only such columns can restore the rows of high powers.
    """
    if not len(columns):
        return np.ones(columns.shape[1])
    scale = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(columns @ columns.T / np.outer(scale, scale))
    kept = values > values[-1] * 1e-10
    whitening = (vectors[:, kept] / np.sqrt(values[kept])).T / scale
    found = np.empty(columns.shape[1])
    for block in row_blocks(len(found)):
        whitened = whitening @ columns[:, block]
        found[block] = np.sqrt((whitened**2).sum(axis=0))
    return found
