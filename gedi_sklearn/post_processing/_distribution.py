r"""Scores whose whole distribution, and so the rate above every cut, does not depend on x.

With s the score of a row, its conditional rank is u = F(s | x): how far up it is among rows of its
own attribute. It is uniform for every x, and so is any function of it free of x. Scores become

.. math:: s' = (1 - a)\, s + a\, \bar F^{-1}(u), \qquad
    \bar F^{-1}(u) = \frac{1}{n} \sum_i F^{-1}(u \mid x_i) ,

the mean of the conditional quantile functions, which of all distributions without x is the nearest
(the barycentre of optimal transport: Chzhen et al. 2020, for groups). F(t | x) is estimated for an
attribute that is a number: the indicators 1{s ≤ t} of about a hundred cuts are projected on the
kernel's columns (distribution regression, Foresi and Peracchi 1995), and made monotone in t by
sorting (Chernozhukov, Fernández-Val, Galichon 2010).

Much of what a bound asks may be had by moving the means of s given x alone, which costs less. So on
a second path means move by a and the remainder by its power 3/2. Of the two points that meet a
bound, the one nearer to s is taken.

Without the attribute, m(X) = E[Q | X] takes the place of Q: what is a function of X alone, as
1{s' > t} then is, has E[Q 1{s' > t}] = E[m 1{s' > t}], so that scores whose distribution does not
depend on m do not depend on x either, as far as the kernel sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ..constraints import FittedCuts
from ..kernels import fit_kernel, row_blocks
from ..metrics import ends_of_ties, tie_width

# Cuts at which F(t | x) is known, ranks at which the quantile functions are averaged, and of how
# many rows, else of so many that are drawn.
_N_CUTS, _N_RANKS, _N_AVERAGED = 101, 401, 2000
# How far a rank may be off by the rounding of sums.
_ROUNDING = 1e-9
# How fine the share a is searched: on a grid, then by halving.
_N_SHARES, _N_HALVINGS = 21, 6
# On each path the remainder moves by a power of the share by which means move. By 2 it moves too
# late for scores that are probabilities.
_POWERS = (1, 1.5)
# Directions of m(X) that spread by a smaller share of the widest are noise.
_LEAST_SPREAD = 1e-6


class Step(NamedTuple):
    """How far to go: means by a share, the remainder by a power of it."""

    share: float = 0.0
    power: float = 1


class Path(NamedTuple):
    """Scores, where the map sends them, and by how much it moves their means given x; (n,) each."""

    scores: np.ndarray
    moved: np.ndarray
    shift: np.ndarray

    def at(self, step: Step) -> np.ndarray:
        """Return scores after a step: s itself at 0."""
        remainder = step.share**step.power
        straight = self.scores + remainder * (self.moved - self.scores)
        return straight + (step.share - remainder) * self.shift


class DistributionMap:
    """The map from scores to scores that do not depend on an attribute.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of rows.
    columns : ndarray of shape (n, k)
        Orthonormal columns there: the kernel's, or those of m(X).
    weight : ndarray of shape (n,)
        Weights of the rows, of any sum.
    """

    def __init__(self, scores: np.ndarray, columns: np.ndarray, weight: np.ndarray) -> None:
        weight = weight / weight.sum()
        order = np.argsort(scores, kind="stable")
        # Cuts are scores, so that a score of many rows is met exactly; up to rounding of the sum.
        reached = np.searchsorted(np.cumsum(weight[order]), np.linspace(0, 1 - 1e-9, _N_CUTS))
        cuts = np.sort(scores[order[np.r_[reached.clip(0, len(order) - 1), -1]]])
        self.cuts_ = cuts[ends_of_ties(cuts)]
        rounding = tie_width(self.cuts_)
        base = np.zeros(len(self.cuts_))
        coef = np.zeros((columns.shape[1], len(base)))
        for block in row_blocks(len(scores)):
            own = scores[block, None]
            below = own < self.cuts_ - rounding
            # Half of the rows at a cut are below it: so ties are at the middle of their rank.
            weighted = 0.5 * weight[block, None] * (below + (own <= self.cuts_ + rounding))
            base += weighted.sum(axis=0)
            coef += columns[block].T @ weighted
        self.base_, self.coef_, self.ranks_ = base, coef, np.linspace(0, 1, _N_RANKS)
        self.slopes_ = (weight * scores) @ columns
        rows = np.arange(len(scores))
        if len(rows) > _N_AVERAGED:
            rows = np.sort(np.random.default_rng(0).choice(rows, _N_AVERAGED, replace=False))
        F = self._cdf(columns[rows])
        # Where F stays at a rank, the middle of those scores: rounding would pick either end.
        near = np.add.outer([-_ROUNDING, _ROUNDING], self.ranks_).clip(_ROUNDING, 1 - _ROUNDING)
        quantiles = [np.interp(near, own, self.cuts_).mean(axis=0) for own in F]
        self.mean_quantiles_ = np.average(quantiles, axis=0, weights=weight[rows])

    def _cdf(self, columns: np.ndarray) -> np.ndarray:
        """Return F(t | x) of rows at every cut, ascending."""
        return np.sort(np.clip(self.base_ + columns @ self.coef_, 0.0, 1.0), axis=1)

    def conditional_ranks(self, scores: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return u = F(s | x), between cuts by a straight line; of tied scores the middle."""
        F, rows, cuts = self._cdf(columns), np.arange(len(scores)), self.cuts_
        above = np.searchsorted(cuts, scores).clip(0, len(cuts) - 1)
        before = np.maximum(above - 1, 0)
        width = cuts[above] - cuts[before]
        share = np.divide(scores - cuts[before], width, out=np.ones(len(scores)), where=width > 0)
        low, high = F[rows, before], F[rows, above]
        return low + np.clip(share, 0.0, 1.0) * (high - low)

    def path(self, scores: np.ndarray, columns: np.ndarray) -> Path:
        """Return the way to scores that do not depend on x.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Scores of any rows.
        columns : ndarray of shape (n, k)
            The orthonormal columns there.
        """
        u = np.concatenate(
            [np.empty(0)]
            + [self.conditional_ranks(scores[r], columns[r]) for r in row_blocks(len(scores))]
        )
        # Beyond the scores of the fit they keep their distance, and so their order.
        beyond = scores - np.clip(scores, self.cuts_[0], self.cuts_[-1])
        moved = np.interp(u, self.ranks_, self.mean_quantiles_) + beyond
        return Path(scores, moved, -(columns @ self.slopes_))


class KernelColumns:
    """Q(x): the kernel's columns, fitted on some rows.

    Parameters
    ----------
    constraint : FittedCuts
        The constraint on the rows.
    values : ndarray of shape (n, m)
        Their attribute.
    """

    longest = 1.0

    def __init__(self, constraint: FittedCuts, values: np.ndarray) -> None:
        self._constraint, self.values = constraint, values

    def on(self, rows: Any) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Return the columns of some rows, and what gives those of other attributes."""
        design = self._constraint.design
        if not isinstance(rows, slice):
            weight = self._constraint.weight[rows]
            design = fit_kernel(self._constraint.given.kernel, self.values[rows], weight=weight)
        fitted = design.fitted
        return design.orthonormal, partial(fitted.orthonormal_within_range, warns=False)


class ExpectedColumns:
    """m(X) made orthonormal on some rows; directions in which it does not vary are left out.

    Parameters
    ----------
    constraint : FittedCuts
        The constraint on the rows.
    values : ndarray of shape (n, k)
        m(X), for rows that its learner has not seen.
    """

    # What m(X) errs by takes a step beyond 1 to make up for.
    longest = 1.5

    def __init__(self, constraint: FittedCuts, values: np.ndarray) -> None:
        self._weight, self.values = constraint.weight, values

    def on(self, rows: Any) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Return the columns of some rows, and what gives those of other m(X)."""
        values, weight = self.values[rows], self._weight[rows] / self._weight[rows].sum()
        mean = weight @ values
        factor = np.linalg.qr(np.sqrt(weight)[:, None] * (values - mean), mode="r")
        columns_of = Whitening(mean, np.linalg.pinv(factor, rcond=_LEAST_SPREAD))
        return columns_of(values), columns_of


@dataclass(frozen=True)
class Whitening:
    """What makes columns orthonormal: a mean that is subtracted, and a matrix."""

    mean: np.ndarray
    matrix: np.ndarray

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the columns of values, shape (n, k)."""
        return np.asarray((values - self.mean) @ self.matrix)


class DistributionCorrection:
    """Scores of the rows of a fit, moved by all rows and by those of other folds.

    Parameters
    ----------
    constraint : FittedCuts
        On the rows of positive weight.
    source : KernelColumns or ExpectedColumns
        Says which columns the map takes.
    splits : list of (ndarray, ndarray)
        Folds of these rows; none where they are too few.
    """

    def __init__(
        self,
        constraint: FittedCuts,
        source: KernelColumns | ExpectedColumns,
        splits: list[tuple[np.ndarray, np.ndarray]],
    ) -> None:
        self.constraint, self.scores = constraint, constraint.scores
        weight, self._longest = constraint.weight, source.longest
        everything, self.columns_of = source.on(slice(None))
        self.map = DistributionMap(self.scores, everything, weight)
        self.by_all = self.map.path(self.scores, everything)
        self.by_others = Path(*map(np.copy, self.by_all))
        self.is_unseen = bool(splits)
        for train, test in splits:
            columns, columns_of = source.on(train)
            fold = DistributionMap(self.scores[train], columns, weight[train])
            path = fold.path(self.scores[test], columns_of(source.values[test]))
            for whole, part in zip(self.by_others, path, strict=True):
                whole[test] = part

    def _measure(self, step: Step) -> float:
        judge = self.constraint.unseen if self.is_unseen else self.constraint
        return judge.judged(self.by_others.at(step))

    def _distance(self, step: Step) -> float:
        change = self.by_others.at(step) - self.scores
        return float(self.constraint.weight @ change**2)

    @cached_property
    def furthest(self) -> float:
        """The share that is taken where a bound is never met: 1, or that of the least indicator."""
        if self._longest == 1.0:
            return 1.0
        shares = np.linspace(0, self._longest, _N_SHARES)
        values = np.array([self._measure(Step(share)) for share in shares])
        # It is NaN where no degree of freedom is left.
        return 1.0 if np.isnan(values).all() else float(shares[np.nanargmin(values)])

    def step(self, bound: float) -> Step:
        """Return the step to the nearest scores within a bound.

        Of 0 the furthest: what cannot be told from chance is not 0.
        """
        if bound == 0:
            return Step(self.furthest)
        # Beyond 1 the remainder would move by more than the error of m(X) asks for.
        powers = _POWERS if self._longest == 1.0 else _POWERS[:1]
        steps = (Step(float(self._share(bound, own)), own) for own in powers)
        return min(steps, key=self._distance)

    def _share(self, bound: float, power: float) -> float:
        """Return the least share from which on, up to the furthest, scores are within a bound."""

        def exceeds(share: float) -> bool:
            return not self._measure(Step(share, power)) <= bound  # also where it is NaN

        high = self.furthest
        for low in np.linspace(0, high, _N_SHARES)[::-1]:
            if exceeds(low):
                break
            high = float(low)
        else:
            return 0.0
        for _ in range(_N_HALVINGS if low < high else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if exceeds(middle) else (low, middle)
        return high
