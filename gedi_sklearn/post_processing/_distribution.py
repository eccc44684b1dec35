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
"""

from __future__ import annotations

import numpy as np

from ..constraints import FittedCuts
from ..kernels import Design, fit_kernel, row_blocks

# Cuts at which F(t | x) is known, ranks at which the quantile functions are averaged, and rows
# over which they are.
_N_CUTS, _N_RANKS, _N_AVERAGED = 101, 401, 2000
# How fine the share a is searched: on a grid, then by halving.
_N_SHARES, _N_HALVINGS = 21, 6


class DistributionMap:
    """The map from scores to scores that do not depend on an attribute.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of rows.
    design : Design
        The kernel on these rows.
    """

    def __init__(self, scores: np.ndarray, design: Design) -> None:
        weight = np.broadcast_to(design.shares(slice(None)), len(scores))
        order = np.argsort(scores, kind="stable")
        reached = np.cumsum(weight[order]) - 0.5 * weight[order]
        grid = np.interp(np.linspace(0, 1, _N_CUTS), reached, scores[order])
        # Cuts are scores, so that a score of many rows is met exactly.
        cuts = scores[order][np.searchsorted(scores[order], grid).clip(0, len(order) - 1)]
        self.cuts_ = np.unique(np.r_[scores[order[0]], cuts])
        base = np.zeros(2 * len(self.cuts_))
        coef = np.zeros((design.fitted.n_columns, len(base)))
        for rows in row_blocks(len(scores)):
            weighted = self._is_below(scores[rows]) * weight[rows, None]
            base += weighted.sum(axis=0)
            coef += design.orthonormal_of(np.arange(len(scores))[rows]).T @ weighted
        self.base_, self.coef_, self.ranks_ = base, coef, np.linspace(0, 1, _N_RANKS)
        # Evenly through the weights, so that each row counts for what it weighs.
        spread = (np.arange(_N_AVERAGED) + 0.5) / _N_AVERAGED
        drawn = np.unique(np.searchsorted(np.cumsum(weight), spread).clip(0, len(scores) - 1))
        at = np.repeat(self.cuts_, 2)
        F = self._cdf(design.orthonormal_of(drawn))
        self.mean_quantiles_ = np.mean([np.interp(self.ranks_, own, at) for own in F], axis=0)

    def _is_below(self, scores: np.ndarray) -> np.ndarray:
        """Return 1{s < t} and 1{s ≤ t} of every cut t, side by side."""
        below = np.empty((len(scores), 2 * len(self.cuts_)))
        below[:, ::2] = scores[:, None] < self.cuts_
        below[:, 1::2] = scores[:, None] <= self.cuts_
        return below

    def _cdf(self, columns: np.ndarray) -> np.ndarray:
        """Return F(t− | x) and F(t | x) of rows at every cut, from 0 up to 1."""
        F = np.sort(np.clip(self.base_ + columns @ self.coef_, 0.0, 1.0), axis=1)
        F[:, 0], F[:, -1] = 0.0, 1.0
        return F

    def conditional_ranks(self, scores: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return u = F(s | x), between cuts by a straight line; of tied scores the middle."""
        F, rows, cuts = self._cdf(columns), np.arange(len(scores)), self.cuts_
        above = np.searchsorted(cuts, scores, side="left").clip(0, len(cuts) - 1)
        before = np.maximum(above - 1, 0)
        at_cut = (F[rows, 2 * above] + F[rows, 2 * above + 1]) / 2
        low, high = F[rows, 2 * before + 1], F[rows, 2 * above]
        width = cuts[above] - cuts[before]
        share = np.divide(scores - cuts[before], width, out=np.zeros(len(scores)), where=width > 0)
        between = low + np.clip(share, 0.0, 1.0) * (high - low)
        return np.where((scores >= cuts[above]) | (scores <= cuts[0]), at_cut, between)

    def moved(self, scores: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the scores that do not depend on x, a = 1.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Scores of any rows.
        columns : ndarray of shape (n, k)
            The kernel's orthonormal columns there.
        """
        u = np.concatenate(
            [np.empty(0)]
            + [self.conditional_ranks(scores[r], columns[r]) for r in row_blocks(len(scores))]
        )
        # Beyond the scores of the fit they keep their distance, and so their order.
        beyond = scores - np.clip(scores, self.cuts_[0], self.cuts_[-1])
        return np.interp(u, self.ranks_, self.mean_quantiles_) + beyond


class DistributionCorrection:
    """Scores of the rows of a fit, moved by all rows and by those of other folds.

    Parameters
    ----------
    constraint : FittedCuts
        On the rows of positive weight.
    attribute : ndarray of shape (n, m)
        Attribute of these rows.
    splits : list of (ndarray, ndarray)
        Folds of these rows; none where they are too few.
    """

    def __init__(
        self,
        constraint: FittedCuts,
        attribute: np.ndarray,
        splits: list[tuple[np.ndarray, np.ndarray]],
    ) -> None:
        self.constraint, self.scores = constraint, constraint.scores
        self.map = DistributionMap(self.scores, constraint.design)
        self.moved = self.map.moved(self.scores, constraint.design.orthonormal)
        self.moved_by_others = self.moved.copy()
        self.is_unseen = bool(splits)
        for train, test in splits:
            kernel, weight = constraint.given.kernel, constraint.weight[train]
            design = fit_kernel(kernel, attribute[train], weight=weight)
            columns = design.fitted.orthonormal_within_range(attribute[test], warns=False)
            own = DistributionMap(self.scores[train], design)
            self.moved_by_others[test] = own.moved(self.scores[test], columns)

    def at(self, share: float) -> np.ndarray:
        """Return scores at a share a, moved by other rows."""
        return mixed(share, self.scores, self.moved_by_others)

    def share(self, bound: float) -> float:
        """Return the least share a from which on, up to 1, scores are within a bound; else 1."""

        def exceeds(share: float) -> bool:
            return self.constraint.indicator.measure(self.at(share)) > bound

        high = 1.0
        for low in np.linspace(0, 1, _N_SHARES)[::-1]:
            if exceeds(low):
                break
            high = float(low)
        else:
            return 0.0
        for _ in range(_N_HALVINGS if low < high else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if exceeds(middle) else (low, middle)
        return high


def mixed(share: float, scores: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return (1 − a) s + a s', and s itself at a = 0."""
    return scores + share * (moved - scores)
