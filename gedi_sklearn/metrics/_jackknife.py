"""The indicator of rows of which only sums are left, and its limit by the jackknife over parts."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from ..exceptions import FewRowsWarning, warn_caller
from ..kernels import BaseDesign, Sums
from ._ellipsoids import error_quantile, farthest, limit_of_lacking_rows
from ._limits import Limits
from ._linear import KernelIndicator

# Limits of the jackknife know of no skewness: of fewer rows with the rarer label, in a level or in
# all, they hold less often than they should by a hundredth or more.
_FEW = 100


class SummedIndicator(KernelIndicator):
    """GeDI of a target that is given by its shares in those that were summed up.

    Parameters
    ----------
    sums : Sums
        The sums, part by part.
    norm : {"l1", "sd", "adjusted_sd"}
        The norm.
    columns : ndarray of int, default=None
        The columns of the kernel that count; None for all.
    """

    def __init__(self, sums: Sums, norm: str, columns: np.ndarray | None = None) -> None:
        design = sums.design(columns=columns)
        super().__init__(design, norm, design.total)
        self._sums = sums
        self._parts = np.flatnonzero(sums.part_weights).tolist()

    def has_errors(self, groups: np.ndarray | None = None) -> bool:
        """Tell, with a warning, whether more parts have rows than there are columns, and one."""
        if len(self._parts) > self.design.fitted.n_columns + 1:
            return True
        warn_caller(
            "the rows are too few for the standard errors of the coefficients: the limits are NaN.",
            UndefinedMetricWarning,
        )
        return False

    def interval(
        self, z: np.ndarray, confidence: float, groups: np.ndarray | None = None
    ) -> tuple[float, float, str]:
        """Return NaN, with a warning: robust standard errors need the rows."""
        warn_caller(
            "an interval needs the rows themselves, and an accumulator keeps only sums: it is NaN. "
            "`upper` is defined.",
            UndefinedMetricWarning,
        )
        return float("nan"), float("nan"), ""

    def upper_limit(
        self,
        z: np.ndarray,
        confidence: float,
        *,
        is_fitted: bool = False,
        n_new: int | None = None,
        groups: np.ndarray | None = None,
    ) -> Limits:
        """Return the upper confidence limit of the value; there is none of a batch."""
        sums, whole, parts = self._sums, self.design, self._parts
        if few := sums.few(z, _FEW):
            warn_caller(FewRowsWarning.from_sums(few, _FEW))
        without = [sums.design(without=part) for part in parts]
        if self.norm == "l1":
            v = whole.coefficients(z)
            jackknife = np.array([design.coefficients(z) for design in without])
        else:
            v = whole.coordinates(z)
            jackknife = np.array([_turned(design, whole, z) for design in without])
        errors = jackknife - jackknife.mean(axis=0)
        covariance = (len(parts) - 1) / len(parts) * errors.T @ errors
        t = error_quantile(
            covariance, self.norm, confidence, len(parts) - 1, simultaneous=is_fitted
        )
        limits = farthest(v, covariance, self.norm, t)
        if self.norm == "l1":
            return Limits(limits)
        ends, weight = sums.ends
        q, share = whole.fitted.orthonormal_columns(ends), weight / whole.total
        leverage = share * (1 + np.square(q).sum(axis=1))
        sizes = np.abs(q) @ np.abs(v)
        lacking = limit_of_lacking_rows(v, sizes, share, leverage, confidence)
        return Limits(np.maximum(limits, lacking))


def _turned(design: BaseDesign, whole: BaseDesign, z: np.ndarray) -> np.ndarray:
    """Return G^(−1/2) E[Qz], G = E[QQ'], on the rows of a design; Q is orthonormal on all rows."""
    to_whole = np.linalg.solve(whole.fitted.R_.T, design.fitted.R_.T)
    values, vectors = np.linalg.eigh(to_whole @ to_whole.T)
    return (vectors / np.sqrt(values)) @ vectors.T @ to_whole @ design.coordinates(z)
