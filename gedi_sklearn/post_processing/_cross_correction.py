"""Corrections of the rows of a fit that are found on other rows, as those of new rows are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..constraints import FittedConstraint
from ..exceptions import InfeasibleProjectionError, silent
from ..projection import Projection
from ._corrections import Correction


class Fold(NamedTuple):
    """Some rows, and the projection of the others.

    Attributes
    ----------
    train, test : ndarray of int
        The other rows, and these.
    projection : Projection
        The constraint on the other rows.
    columns : ndarray of shape (rows of test, k)
        What their correction is linear in: Q(x), with Q orthonormal on the other rows, or m(X).
    """

    train: np.ndarray
    test: np.ndarray
    projection: Projection
    columns: np.ndarray


class CrossCorrection:
    """Corrected scores of every row, by the correction of the other folds.

    Parameters
    ----------
    constraint : FittedConstraint
        On all rows. The folds have its bounds, which may be shares of references of its own.
    scores : ndarray of shape (n,) or (n, K)
        Scores of the rows, by models that have not seen them.
    correct : callable
        Takes a projection of some rows and their positions, and returns their correction.
    apply : callable
        Takes scores, what the correction is of them, and its intercept, and returns corrected ones.
    folds : sequence of Fold
        Their test rows are all rows; none of too few rows.
    """

    def __init__(
        self,
        constraint: FittedConstraint,
        scores: np.ndarray,
        correct: Callable[[Projection, np.ndarray], Correction],
        apply: Callable[..., np.ndarray],
        folds: Sequence[Fold],
    ) -> None:
        self._references = np.array([part.reference for part in constraint.parts])
        self._scores = scores
        self._correct, self._apply = correct, apply
        self._folds = folds

    def at(self, share: float) -> np.ndarray | None:
        """Return scores corrected to a share of the bound; None where that cannot be done."""
        corrected = self._scores.copy()
        for train, test, projection, columns in self._folds:
            constraint = projection.fitted_constraint_
            own = np.array([part.reference for part in constraint.parts])
            stricter = projection.scaled(share * self._references / own)
            try:
                with silent():
                    correction = self._correct(stricter, train)
            except InfeasibleProjectionError:
                return None
            shift = columns @ constraint.by_column(correction.coordinates).T
            corrected[test] = self._apply(corrected[test], shift, correction.intercept)
        return corrected if self._folds else None
