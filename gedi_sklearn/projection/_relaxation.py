r"""Linear relaxation over many cells: few rows, solved by sifting, or by its dual.

The optimum is determined by the multipliers λ of k + 1 rows or so, and at the right λ the rows of
all but a few cells stand in their base, the column of least reduced cost. So: let rows leave the
base for the columns near to a tie only, solve the linear program of these, and look whether a
column left out contradicts the new λ. If none does, the solution is optimal for all; what does
joins the next program. The first λ comes from random samples of growing size, each sifted from
the λ of the one before, whose error falls with the square root of its size.

Two classes under one interval need no program: rows leave the class of least cost in the order of
what that costs for the way it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..constraints import Product, SoftSupport
from ..kernels import row_blocks
from ._cells import Cells
from ._solver import Deadline, LinearModel, solve_continuous

# Width of the smoothing, relative to the mean range of costs: at first, from one width to the next,
# and at last.
_FIRST_WIDTH, _NARROWER, _LEAST_WIDTH = 0.3, 0.15, 1e-9
# Share of the tolerance that smoothing may leave, and of that, what a Newton step may promise.
_SHARE, _PROMISE = 0.01, 1e-3
# Newton steps at one width: the start is near, so that a handful will do.
_MAX_STEPS = 40
# Damping of the first step and beyond which no step is worth its size.
_LEAST_DAMPING, _MOST_DAMPING = 1e-9, 1e6
# Shares below which a class does not count for the curvature; numbers in one array.
_DECIDED, _ENTRIES = 1e-14, 1_000_000
# Share of the largest curvature that any coordinate of deviations counts with.
_FLAT = 1e-12
# Cells beyond which a sample of a tenth leads the way, the width that follows in its errors, and
# the one that follows where the sets were a little larger or smaller.
_SAMPLE, _RESTART, _AGAIN = 4000, 0.2, 0.01
# Columns of cells that one linear program takes without sifting, and of the smallest sample.
_DIRECT = 2600
# Size of a sample over that of the one before, and what no sample reaches: it is a copy.
_GROWTH, _LARGEST_SAMPLE = 4, 300_000
# Sampling error of λ, in the share of cells whose choice it leaves open: OPEN / √(sample size).
_OPEN = 8.0
# What polyhedra inside the sets may lose, relative to the tolerance.
_INSIDE = 0.01


class DualSolution(NamedTuple):
    """Multipliers, and the primal points that belong to them.

    Attributes
    ----------
    multipliers : ndarray of shape (r,)
        λ.
    bound : float
        h(λ).
    counts : ndarray of shape (g, m)
        Soft counts.
    points : ndarray of shape (r,)
        A point of the sets near to their v.
    """

    multipliers: np.ndarray
    bound: float
    counts: np.ndarray
    points: np.ndarray


class _State(NamedTuple):
    """The smoothed dual at some multipliers: value, gradient, shares of the classes, sets, points.

    `points` are the gradients of the sets' support functions.
    """

    value: float
    slope: np.ndarray
    shares: np.ndarray
    sets: list[SoftSupport]
    points: np.ndarray


def maximise_dual(
    cells: Cells,
    allowed: Product,
    tolerance: float,
    offset: np.ndarray,
    deadline: Deadline,
    start: np.ndarray | None = None,
) -> DualSolution:
    """Return the multipliers of the best bound.

    Parameters
    ----------
    cells : Cells
        The cells.
    allowed : Product
        Their sets, or others in their place.
    tolerance : float
        How far from the optimum the bound may be; the multipliers are much nearer.
    offset : ndarray of shape (r,)
        f.
    deadline : Deadline
        When to end, with what there is.
    start : ndarray of shape (r,), default=None
        Multipliers of other sets to begin with.
    """
    smoothed = SmoothedDual(cells, allowed, offset, deadline)
    width = _FIRST_WIDTH if start is None else _AGAIN
    if start is None:
        start = np.zeros(len(offset))
        if cells.n > _SAMPLE and cells.jumps is None:
            size = max(_SAMPLE // 2, cells.n // 10)
            chosen = np.sort(np.random.default_rng(0).permutation(cells.n)[:size])
            sample = SmoothedDual(cells.sample(chosen), allowed, offset, deadline)
            start = sample.maximise(sample.range / size, start, width).multipliers
            # A sample errs by the square root of its size.
            width = _RESTART / np.sqrt(size)
    return smoothed.maximise(tolerance, start, width)


class SmoothedDual:
    r"""The dual of the relaxation, smoothed, for sets of every shape.

    With E the effects of the cells on v, f what v has besides and σ the support function of the
    sets, the dual of the relaxation is to maximise

    .. math:: h(\lambda) = \sum_g n_g \min_c (C - E^T\lambda)_{gc}
       - \sigma(-\lambda) - \lambda^T f .

    Minimum and support function are smoothed by logarithms of sums of exponentials, of a width that
    goes to 0. The derivatives of the smoothed functions are *soft* counts and a point of the sets,
    which approach the optimal ones. Any λ proves h(λ) as a lower bound.
    """

    def __init__(
        self, cells: Cells, allowed: Product, offset: np.ndarray, deadline: Deadline
    ) -> None:
        self.cells, self.allowed, self.offset = cells, allowed, offset
        self.deadline = deadline
        self.range = cells.range_of_costs()
        self.mean = self.range / float(cells.size.sum()) or 1.0

    def maximise(
        self, tolerance: float, multipliers: np.ndarray, first_width: float
    ) -> DualSolution:
        """Return the best multipliers, with the soft counts of the last width."""
        enough = max(_SHARE * tolerance, 1e-12 * self.range)
        width = first_width * self.mean
        best, most, ahead = multipliers, -np.inf, multipliers
        while True:
            start, state = multipliers, self._at(multipliers, width)
            if ahead is not multipliers and (other := self._at(ahead, width)).value > state.value:
                start, state = ahead, other
            before = multipliers
            multipliers, state = self._climb(start, state, width, _PROMISE * enough)
            # Of two classes multipliers are linear in the width, once the rows that are split stay
            # the same. Those of several have flat directions, which counts depend on.
            ahead = multipliers
            if self.cells.n_columns == 1:
                ahead = multipliers + _NARROWER * (multipliers - before)
            bound = self._bound(multipliers)
            if bound > most:
                best, most = multipliers, bound
            counts = self.cells.size[:, None] * state.shares
            is_over = width <= _LEAST_WIDTH * self.mean or not self.deadline.left
            if is_over or self._loss(multipliers, state, bound) <= enough:
                return DualSolution(best, most, counts, state.points)
            width *= _NARROWER

    def _climb(
        self, multipliers: np.ndarray, state: _State, width: float, enough: float
    ) -> tuple[np.ndarray, _State]:
        """Return the multipliers that maximise the smoothed dual, by damped Newton steps."""
        damping = _LEAST_DAMPING
        of_state = self._dense_newton if self.cells.jumps is None else self._joint_newton
        for _ in range(_MAX_STEPS):
            newton = of_state(state, width)
            while True:
                if not self.deadline.left:
                    return multipliers, state
                step = newton(damping)
                promise = float(state.slope @ step)
                if promise * (1 + damping) <= enough or damping > _MOST_DAMPING:
                    return multipliers, state
                new = self._at(multipliers + step, width)
                if new.value >= state.value + 0.1 * promise:
                    break
                damping = max(10 * damping, 1e3 * _LEAST_DAMPING)
            damping = max(damping / 10, _LEAST_DAMPING)
            multipliers, state = multipliers + step, new
        return multipliers, state

    def _at(self, multipliers: np.ndarray, width: float) -> _State:
        """Return the smoothed dual at some multipliers."""
        cells = self.cells
        least, shares = cells.soft_choice(multipliers, width)
        # What the sets lose to smoothing is of a higher order than what the costs do.
        narrow = 0.3 * width * np.sqrt(width / self.mean) * float(cells.size.sum())
        sets = self.allowed.soft_support(-multipliers, narrow)
        value = float(cells.size @ least) - sum(own.value for own in sets)
        value -= float(multipliers @ self.offset)
        points = np.concatenate([np.empty(0), *(own.point for own in sets)])
        slope = points - (cells.v(cells.size[:, None] * shares) + self.offset)
        return _State(value, slope, shares, sets, points)

    def _dense_newton(self, state: _State, width: float) -> Callable[[float], np.ndarray]:
        cells, row, column = self.cells, self.cells.image.row, self.cells.column
        n_rows, m = len(cells.scale), cells.n_columns
        # Of every two classes and every two rows of E.
        blocks = np.zeros((m, m, n_rows, n_rows))
        for some, covariance in self._covariances(state.shares, width, m * m * n_rows):
            effects = cells.matrix[:, some] * cells.scale[:, None]
            blocks += (covariance.transpose(1, 2, 0)[:, :, None] * effects) @ effects.T
        curvature = blocks[column[:, None], column, row[:, None], row]
        end = 0
        for part in state.sets:
            place = np.arange(end, end + len(part.axis))
            curvature[np.ix_(place, place)] -= np.outer(part.axis, part.axis)
            curvature[place, place] += part.diagonal
            end += len(place)
        scale = self._scale(np.diag(curvature), state.slope)
        system, slope = curvature / np.outer(scale, scale), state.slope / scale
        unit = np.eye(len(scale))
        return lambda damping: np.linalg.solve(system + damping * unit, slope) / scale

    def _joint_newton(self, state: _State, width: float) -> Callable[[float], np.ndarray]:
        """Return the step for deviations of groups: blocks on the diagonal, and a few columns.

        A row of group u adds its jump to row u of E, and something in common to all rows.
        """
        assert self.cells.jumps is not None
        code, jump, common = self.cells.jumps
        (ball,), m, n_rows = state.sets, self.cells.n_columns, self.cells.image.n_rows
        covariance = np.zeros((n_rows, m, m))
        for some, own in self._covariances(state.shares, width, 0):
            np.add.at(covariance, code[some], own)
        leap = np.zeros(n_rows)
        leap[code] = jump
        # v has the rows of one class after those of another one.
        half = (leap[:, None, None] * covariance).transpose(1, 0, 2)
        total = covariance.sum(axis=0)
        block = leap[:, None, None] ** 2 * covariance
        on = np.arange(m)
        block[:, on, on] += ball.diagonal.reshape(m, n_rows).T
        # The Hessian is block + P C Pᵀ, of what is in common with a half of it, and the axis.
        every = np.repeat(np.eye(m), n_rows, axis=0)
        p = np.column_stack([every, common * half.reshape(-1, m), ball.axis])
        inverse = np.zeros((2 * m + 1, 2 * m + 1))
        inverse[on, m + on] = inverse[m + on, on] = 1.0
        inverse[m : 2 * m, m : 2 * m] = -(common**2) * total
        inverse[-1, -1] = -1.0
        diagonal = block[:, on, on].T.ravel() - ball.axis**2
        diagonal += (common**2 * np.diag(total)[:, None] + 2 * common * half[on, :, on]).ravel()
        scale = self._scale(np.maximum(diagonal, _FLAT * diagonal.max()), state.slope)

        def step(damping: float) -> np.ndarray:
            damped = block.copy()
            damped[:, on, on] += damping * (scale**2).reshape(m, n_rows).T
            right = np.column_stack([state.slope, p]).reshape(m, n_rows, -1).transpose(1, 0, 2)
            solved = np.linalg.solve(damped, right).transpose(1, 0, 2).reshape(m * n_rows, -1)
            first, others = solved[:, 0], solved[:, 1:]
            return first - others @ np.linalg.solve(inverse + p.T @ others, p.T @ first)

        return step

    def _scale(self, diagonal: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return units of the multipliers; where the curvature vanishes, no step out of reason."""
        flat = slope**2 / (self.range or 1.0)
        return np.sqrt(np.maximum(diagonal, flat) + np.finfo(float).tiny)

    def _covariances(
        self, shares: np.ndarray, width: float, width_of_pairs: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield cells that are split, and minus the Hessians of their smoothed least costs."""
        m = self.cells.n_columns
        is_open = np.flatnonzero((shares * (1 - shares)).max(axis=1) > _DECIDED)
        length = max(_ENTRIES // (width_of_pairs + m * m), 1)
        for start in range(0, len(is_open), length):
            some = is_open[start : start + length]
            weight, own = self.cells.size[some, None] / width, shares[some]
            covariance = -(weight * own)[:, :, None] * own[:, None]
            covariance[:, np.arange(m), np.arange(m)] += weight * own
            yield some, covariance

    def _bound(self, multipliers: np.ndarray) -> float:
        proven = self.cells.dual_value(multipliers, self.allowed)
        return proven - float(multipliers @ self.offset)

    def _loss(self, multipliers: np.ndarray, state: _State, bound: float) -> float:
        """Return by how much the cost of soft counts, at the multipliers, is above the bound."""
        cells = self.cells
        soft = float((cells.size[:, None] * state.shares * cells.reduced(multipliers)).sum())
        return soft + float(multipliers @ (state.points - self.offset)) - bound


class Core:
    """The linear model of rows that leave their base for some columns, and what it says.

    Parameters
    ----------
    cells : Cells
        The cells.
    base : ndarray of int, shape (g,)
        The column of every cell; −1 for the first of two classes.
    columns : ndarray of int
        Where rows may move: cell · m + column. Of two classes, whose cells have one column, a
        move leads from the base to the other class.
    """

    def __init__(self, cells: Cells, base: np.ndarray, columns: np.ndarray) -> None:
        self.cells = cells
        self.start = cells.placed(base)
        m = cells.n_columns
        self.cell, self.column = np.divmod(columns, m)
        if m == 1:
            self.change = np.where(base[self.cell] < 0, 1.0, -1.0)[None]
            return
        moves = self.column != base[self.cell]
        self.cell, self.column = self.cell[moves], self.column[moves]
        self.change = np.zeros((m, len(self.cell)))
        self.change[self.column, np.arange(len(self.cell))] = 1.0
        self.change[base[self.cell], np.arange(len(self.cell))] = -1.0

    @property
    def cost(self) -> np.ndarray:
        """What the moves add to the cost."""
        return np.einsum("jm,mj->j", self.cells.cost[self.cell], self.change)

    def model(
        self, allowed: Product, fixed: np.ndarray, *, keep_classes: bool = False
    ) -> LinearModel:
        r"""Return the model of how many rows x make every move.

        With f what v has besides, z_c the counts and w the auxiliary variables of the sets::

            min c'x   s.t.  lower ≤ v(z) + f + D w ≤ upper,   S w ≤ most
                            1 ≤ Σ z_c ≤ n − 1                 (every class keeps a row)
                            Σ x of a cell ≤ size             (where it has several moves)

        Parameters
        ----------
        allowed : Product
            The sets.
        fixed : ndarray of shape (r,)
            f.
        keep_classes : bool, default=False
            Whether every class keeps a row.
        """
        cells, n = self.cells, len(self.cell)
        sets, scale = allowed.linear_rows(), cells.scale[cells.image.row]
        shift = (cells.v(self.start) + fixed) / scale
        n_sums, n_auxiliary = sets.sums.shape
        classes = self.change if keep_classes else self.change[:0]
        held = self.start.sum(axis=0)[: len(classes)]
        several = np.flatnonzero(np.bincount(self.cell, minlength=cells.n) > 1)
        among = np.isin(self.cell, several)
        rows = np.searchsorted(several, self.cell[among])
        entries = np.ones(len(rows)), (rows, np.flatnonzero(among))
        blocks = [
            [
                cells.effects(self.cell, self.change) / scale[:, None],
                sets.auxiliary / scale[:, None],
            ],
            [classes, np.zeros((len(classes), n_auxiliary))],
            [sp.csr_array(entries, (len(several), n)), sp.csr_array((len(several), n_auxiliary))],
            [sp.csr_array((n_sums, n)), sets.sums],
        ]
        endless = np.full(len(several) + n_sums, -np.inf)
        most = cells.size.sum() - 1 - held
        return LinearModel(
            np.r_[self.cost, np.zeros(n_auxiliary)],
            sp.csr_array(sp.block_array(blocks)),
            np.r_[sets.lower / scale - shift, 1 - held, endless],
            np.r_[sets.upper / scale - shift, most, cells.size[several], sets.most],
            np.r_[cells.size[self.cell].astype(float), np.ones(n_auxiliary)],
            n,
        )

    def counts(self, x: np.ndarray) -> np.ndarray:
        """Return the counts (g, m) of a solution of the model."""
        counts = self.start.copy()
        np.add.at(counts, self.cell, (self.change * x[: len(self.cell)]).T)
        return counts

    def moved(self, counts: np.ndarray) -> np.ndarray:
        """Return how many rows made every move, from the counts."""
        change = self.change[self.column, np.arange(len(self.cell))]
        return change * (counts - self.start)[self.cell, self.column]


@dataclass(frozen=True)
class Relaxed:
    """The solution of the relaxation.

    Attributes
    ----------
    counts : ndarray of shape (g, m)
        Counts of every cell, not all of them whole.
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
    """

    counts: np.ndarray
    multipliers: np.ndarray
    bound: float
    base: np.ndarray
    detour: np.ndarray
    allowed: Product


def relax(
    cells: Cells,
    allowed: Product,
    tolerance: float,
    offset: np.ndarray,
    deadline: Deadline,
    start: np.ndarray | None = None,
) -> Relaxed | None:
    """Return the relaxation with an offset of v; None if it is infeasible.

    Of two classes it is a linear program, of a polyhedron about the dual solution where the sets
    are none; of more it is the dual with soft counts.

    Parameters
    ----------
    cells : Cells
        The cells.
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
    if _is_program(cells, allowed, offset):
        return solve_relaxation(cells, allowed, offset, deadline, start)
    dual = maximise_dual(cells, allowed, tolerance, offset, deadline, start)
    loss = max(_INSIDE * tolerance, 1e-12 * cells.range_of_costs())
    inside = allowed.inside(dual.points, dual.multipliers, loss / max(len(allowed.parts), 1))
    if cells.n_columns == 1:
        return solve_relaxation(cells, inside, offset, deadline, dual.multipliers, is_optimal=True)
    base, detour = cells.choose(dual.multipliers)
    return Relaxed(dual.counts, dual.multipliers, dual.bound, base, detour, inside)


def _is_program(cells: Cells, allowed: Product, offset: np.ndarray) -> bool:
    """Tell whether the relaxation is a linear program, or one interval, of two classes."""
    # In one dimension every set is an interval.
    return cells.n_columns == 1 and (allowed.is_polyhedron or len(offset) == 1)


def relaxed_multipliers(
    cells: Cells,
    allowed: Product,
    tolerance: float,
    offset: np.ndarray,
    deadline: Deadline,
    start: np.ndarray | None = None,
) -> np.ndarray | None:
    """Return the multipliers of :func:`relax` alone; None if it is infeasible.

    The dual has them. Only a program tells that nothing is allowed, which no class at all may not
    be with an offset alone.
    """
    if offset.any() or _is_program(cells, allowed, offset):
        relaxed = relax(cells, allowed, tolerance, offset, deadline, start)
        return None if relaxed is None else relaxed.multipliers
    return maximise_dual(cells, allowed, tolerance, offset, deadline, start).multipliers


def unsolved(cells: Cells, allowed: Product) -> Relaxed:
    """Return what stands for a relaxation that takes too long: the counts of least cost."""
    multipliers = np.zeros(len(cells.image.row))
    base, detour = cells.choose(multipliers)
    bound = cells.dual_value(multipliers, allowed)
    return Relaxed(cells.placed(base), multipliers, bound, base, detour, allowed)


def solve_relaxation(
    cells: Cells,
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
    cells : Cells
        The cells.
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
    if cells.n_columns == len(fixed) == 1:
        return _in_interval(cells, allowed, float(fixed[0]))
    if start is not None:
        own = _Sifting(cells, allowed, fixed, deadline)
        return own.solve(start, cells.n, is_optimal=is_optimal)
    multipliers = np.zeros(len(fixed))
    shuffled = np.random.default_rng(0).permutation(cells.n)
    size, previous = _direct(cells), None
    while size < min(cells.n, _LARGEST_SAMPLE):
        sample = _Sifting(cells.sample(shuffled[:size]), allowed, fixed, deadline)
        solved = sample.solve(multipliers, previous)
        if solved is not None:
            multipliers, previous = solved.multipliers, size
        size *= _GROWTH
    return _Sifting(cells, allowed, fixed, deadline).solve(multipliers, previous)


def _in_interval(cells: Cells, allowed: Product, fixed: float) -> Relaxed | None:
    """Return the solution of two classes under |v| ≤ h, by sorting; None if infeasible."""
    effect = cells.matrix[0] * cells.scale[0]
    counts = np.where(cells.cost < 0, cells.size[:, None], 0.0)
    v = float(effect @ counts[:, 0]) + fixed
    away, multiplier = abs(v) - float(allowed.parts[0].limits[0]), 0.0
    if away > 0:
        # What a row that turns leads back, where it does.
        way = np.where(counts[:, 0] > 0, effect, -effect) * np.sign(v)
        turning = np.flatnonzero(way > 0)
        turning = turning[np.argsort(np.abs(cells.cost[turning, 0]) / way[turning])]
        reached = np.cumsum(way[turning] * cells.size[turning])
        last = int(np.searchsorted(reached, away))
        if last == len(turning):
            return None
        turned, split = turning[:last], turning[last]
        counts[turned] = cells.size[turned, None] - counts[turned]
        rows = (away - (reached[last - 1] if last else 0.0)) / way[split]
        counts[split] += rows if counts[split] == 0 else -rows
        multiplier = float(cells.cost[split, 0] / effect[split])
    multipliers = np.array([multiplier])
    base, detour = cells.choose(multipliers)
    bound = cells.dual_value(multipliers) - multiplier * fixed
    return Relaxed(counts, multipliers, bound, base, detour, allowed)


def _direct(cells: Cells) -> int:
    return _DIRECT // cells.n_columns


@dataclass(frozen=True)
class _Sifting:
    """The relaxation of some cells; see :func:`solve_relaxation`."""

    cells: Cells
    allowed: Product
    fixed: np.ndarray
    deadline: Deadline

    def solve(
        self, multipliers: np.ndarray, sample_size: int | None, *, is_optimal: bool = False
    ) -> Relaxed | None:
        """Solve the relaxation from the multipliers of a sample of the given size."""
        cells, fixed = self.cells, self.fixed
        base, detour = cells.choose(multipliers)
        # What has no end cannot be there.
        base[np.isinf(cells.size)] = -1
        free = self._nearest(detour, sample_size)
        while True:
            core = Core(cells, base, np.flatnonzero(free))
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
                multipliers = solved[1][: len(fixed)] / cells.scale[cells.image.row]
                now, detour = cells.choose(multipliers)
            turned = np.flatnonzero(now != base)
            wrong = turned * cells.n_columns + np.maximum(now[turned], 0)
            wrong = wrong[~free[wrong]]
            if not len(wrong):
                bound = cells.dual_value(multipliers) - float(multipliers @ fixed)
                counts = core.counts(solved[0])
                return Relaxed(counts, multipliers, bound, now, detour, self.allowed)
            free[wrong] = True
            del core, now, turned  # of a million rows every array counts

    def _nearest(self, detour: np.ndarray, sample_size: int | None) -> np.ndarray:
        """Tell which columns of cells, flat, a sample's multipliers leave open."""
        cells, direct = self.cells, _direct(self.cells)
        if sample_size is None or cells.n <= direct:
            return np.ones(detour.size, dtype=bool)
        share = _OPEN * np.sqrt(cells.n_columns / sample_size)
        n_open = min(cells.n, max(direct, int(share * cells.n)))
        with np.errstate(divide="ignore", invalid="ignore"):
            turns_at = (detour / leverage(cells.matrix)[:, None]).ravel()
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
