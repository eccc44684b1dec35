r"""The dual of the relaxation of classes, for sets of every shape: Newton steps on a smoothing.

With E the effects of the cells on v, f what v has besides and σ the support function of the sets,
the dual of the relaxation is to maximise

.. math:: h(\lambda) = \sum_g n_g \min_c (C - E^T\lambda)_{gc} - \sigma(-\lambda) - \lambda^T f .

Minimum and support function are smoothed by logarithms of sums of exponentials, of a width that
goes to 0. The derivatives of the smoothed functions are *soft* counts and a point of the sets,
which approach the optimal ones. Any λ proves h(λ) as a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .._deadline import Deadline
from ..constraints import Product, SoftSupport
from ._cells import Cells

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
_OPEN, _ENTRIES = 1e-14, 1_000_000
# Share of the largest curvature that any coordinate of deviations counts with.
_FLAT = 1e-12
# Cells beyond which a sample of a tenth leads the way, the width that follows in its errors, and
# the one that follows where the sets were a little larger or smaller.
_SAMPLE, _RESTART, _AGAIN = 4000, 0.2, 0.01


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
    """h, smoothed, for some cells and sets."""

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
            values = [self._at(own, width).value for own in (multipliers, ahead)]
            start = ahead if values[1] > values[0] else multipliers
            before, (multipliers, state) = multipliers, self._climb(start, width, _PROMISE * enough)
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
        self, multipliers: np.ndarray, width: float, enough: float
    ) -> tuple[np.ndarray, _State]:
        """Return the multipliers that maximise the smoothed dual, by damped Newton steps."""
        state, damping = self._at(multipliers, width), _LEAST_DAMPING
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
        is_open = np.flatnonzero((shares * (1 - shares)).max(axis=1) > _OPEN)
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
