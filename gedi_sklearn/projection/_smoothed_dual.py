r"""The relaxation of classes under sets that are no polyhedra: its multipliers, by Newton steps.

With E the effects of the groups on v, f what v has besides and σ the support function of the sets,
the dual of the relaxation is to maximise

.. math:: h(\lambda) = \sum_g n_g \min_c (C - E^T\lambda)_{gc} - \sigma(-\lambda) - \lambda^T f .

The minimum is smoothed to −d log Σ exp(−·/d), the support function to the largest
λ'v − (e/2)‖v‖² over the sets, whose derivative is the point of the sets nearest to λ/e, with d and
e going to 0. Any λ proves h(λ) as a lower bound. The v of the best targets is that nearest point,
so a linear program over a polyhedron around it finds them.
"""

from __future__ import annotations

import numpy as np

from .._deadline import Deadline
from ..constraints import Product
from ._groups import Groups

# Width of the smoothing: at first, relative to the costs, and from one step to the next.
_FIRST_WIDTH, _NARROWER = 0.3, 0.15
_LEAST_WIDTH = 1e-9
# Share of the tolerance that smoothing may leave, and of that, what a Newton step may promise.
_SHARE, _PROMISE = 0.01, 1e-3
_MAX_STEPS = 40
# Length of a step in units of the sets, over what all costs may differ by.
_FARTHEST = 1e6
# Groups beyond which a sample of so many leads the way.
_MANY, _SAMPLE = 40_000, 20_000


def maximise_dual(
    groups: Groups, tolerance: float, offset: np.ndarray, deadline: Deadline
) -> tuple[np.ndarray, np.ndarray]:
    """Return the multipliers of the relaxation, and the points of the sets that belong to them.

    Parameters
    ----------
    groups : Groups
        The groups.
    tolerance : float
        How far from the optimum the bound may be in the end; the multipliers are much nearer.
    offset : ndarray of shape (r,)
        f.
    deadline : Deadline
        When to end; TimeoutError where it comes first.

    Returns
    -------
    multipliers : ndarray of shape (r,)
        λ.
    points : ndarray of shape (r,)
        v.
    """
    start, width = np.zeros(len(offset)), None
    if groups.n > _MANY:
        chosen = np.sort(np.random.default_rng(0).permutation(groups.n)[:_SAMPLE])
        sample = groups.sample(chosen)
        # A sample errs by so much anyway.
        error = groups.range_of_costs() / np.sqrt(_SAMPLE)
        start, _, width = _SmoothedDual(sample, offset, deadline).maximise(
            0.01 * error, start, None
        )
        width *= 3
    multipliers, points, _ = _SmoothedDual(groups, offset, deadline).maximise(
        tolerance, start, width
    )
    return multipliers, points


class _SmoothedDual:
    """h, smoothed, for some groups."""

    def __init__(self, groups: Groups, offset: np.ndarray, deadline: Deadline) -> None:
        self.groups, self.offset, self.deadline = groups, offset, deadline
        self.allowed: Product = groups.image.allowed
        self.range = groups.range_of_costs()
        self.mean = self.range / float(groups.size.sum()) or 1.0
        self.unit = np.repeat(
            [own.unit for own in self.allowed.parts], [own.size for own in self.allowed.parts]
        )

    def maximise(
        self, tolerance: float, multipliers: np.ndarray, width: float | None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the multipliers of the best bound, the points of the sets, the last width."""
        mean = self.mean
        width = _FIRST_WIDTH * mean if width is None else width
        enough = max(_SHARE * tolerance, 1e-12 * self.range)
        best, most = multipliers, -np.inf
        farthest = _FARTHEST * (self.range or 1.0)
        while True:
            value, slope, curvature, points = self._expand(multipliers, width)
            for _ in range(_MAX_STEPS):
                self.deadline.check()
                # Where the curvature vanishes, no step out of all reason.
                curvature = curvature + np.diag(np.abs(slope) * self.unit / farthest)
                scale = np.sqrt(np.maximum(np.diag(curvature), np.finfo(float).tiny))
                system = curvature / np.outer(scale, scale) + 1e-12 * np.eye(len(scale))
                step = np.linalg.solve(system, slope / scale) / scale
                promise = float(slope @ step)
                if promise <= _PROMISE * enough:
                    break
                length = 1.0
                while self._value(multipliers + length * step, width) < value and length > 1e-8:
                    length /= 2
                multipliers = multipliers + length * step
                value, slope, curvature, points = self._expand(multipliers, width)
            bound = self.groups.dual_value(multipliers) - float(multipliers @ self.offset)
            if bound > most:
                best, most = multipliers, bound
            # F lies above h by what the sets are smoothed, and below by what the costs are.
            sets = self._nearest(multipliers, width)[0] + self.allowed.support(multipliers)
            if bound - value + 2 * sets <= enough or width <= _LEAST_WIDTH * mean:
                return best, points, width
            width *= _NARROWER

    def _soft_classes(self, multipliers: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        """Return the smoothed minimum over the classes, summed, and their shares (g, m)."""
        groups = self.groups
        reduced = groups.reduced(multipliers)
        if groups.n_columns == 1:
            reduced = reduced[:, 0]
            odds = np.exp(-np.abs(reduced) / width)
            least = np.minimum(reduced, 0.0) - width * np.log1p(odds)
            shares = (np.where(reduced < 0, 1.0, odds) / (1 + odds))[:, None]
        else:
            lowest = reduced.min(axis=1, keepdims=True)
            odds = np.exp((lowest - reduced) / width)
            total = odds.sum(axis=1, keepdims=True)
            least, shares = (lowest - width * np.log(total))[:, 0], odds / total
        return float(groups.size @ least), shares

    def _nearest(self, multipliers: np.ndarray, width: float) -> tuple[float, np.ndarray, list]:
        """Return minus the smoothed support function, the points of the sets, its curvatures."""
        value, points, curvatures = 0.0, [], []
        for part, own in self.allowed.split(multipliers):
            # Its loss is of second order in the width, as that of the costs is.
            e = width**2 / self.mean * float(self.groups.size.sum()) / part.unit**2
            wanted, unit = -own / e, np.eye(part.size)
            v = wanted
            derivative = unit
            if part.violation(wanted) > 0:
                v = part.nearest(unit, wanted, None)
                derivative = part.derivative(unit, wanted, v)
            value += float(own @ v + 0.5 * e * v @ v)
            points.append(v)
            curvatures.append(derivative / e)
        return value, np.concatenate(points), curvatures

    def _value(self, multipliers: np.ndarray, width: float) -> float:
        classes, _ = self._soft_classes(multipliers, width)
        sets, _, _ = self._nearest(multipliers, width)
        return classes + sets - float(multipliers @ self.offset)

    def _expand(
        self, multipliers: np.ndarray, width: float
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Return the smoothed h, its gradient, minus its Hessian, and the points of the sets."""
        groups, row, column = self.groups, self.groups.image.row, self.groups.column
        classes, shares = self._soft_classes(multipliers, width)
        sets, points, curvatures = self._nearest(multipliers, width)
        value = classes + sets - float(multipliers @ self.offset)
        slope = points - groups.v(groups.size[:, None] * shares) - self.offset
        curvature = np.zeros((len(row), len(row)))
        open_groups = (shares * (1 - shares)).max(axis=1) > 1e-14
        effects = groups.matrix[:, open_groups] * groups.scale[:, None]
        weight, shares = groups.size[open_groups] / width, shares[open_groups]
        for b in np.unique(column):
            for c in np.unique(column):
                covariance = weight * shares[:, b] * ((b == c) - shares[:, c])
                rows, others = np.flatnonzero(column == b), np.flatnonzero(column == c)
                block = (effects[row[rows]] * covariance) @ effects[row[others]].T
                curvature[np.ix_(rows, others)] = block
        start = 0
        for own in curvatures:
            own_rows = slice(start, start + len(own))
            curvature[own_rows, own_rows] += own
            start += len(own)
        return value, slope, curvature, points
