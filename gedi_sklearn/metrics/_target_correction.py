"""Targets of any number of rows, moved to the nearest ones within a bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import (
    check_attribute,
    check_attribute_columns,
    check_numbers,
    check_same_length,
)
from ..kernels import FittedKernel


@dataclass(frozen=True)
class TargetCorrection:
    """The correction from targets and predictions to the nearest targets within a bound.

    Attributes
    ----------
    kernel : FittedKernel
        The kernel, orthonormal on all rows that were accumulated.
    correction : ndarray of shape (k,)
        Coordinates c of the function of the attribute that is added.
    target_weight : float or None
        Weight w of the original targets beside the predictions; None where there were none.
    threshold : float or ndarray of shape (k,)
        The absolute bound, or that of each coefficient.

    See Also
    --------
    GediAccumulator.correct_targets : Makes one.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint
    >>> from gedi_sklearn.metrics import GediAccumulator
    >>> y, x = np.array([1.0, 2.0, 3.0, 6.0]), np.array([0.0, 1.0, 2.0, 3.0])
    >>> accumulator = GediAccumulator().update(y, sensitive_features=x)
    >>> correct = accumulator.correct_targets(CoarseConstraint(threshold=0))
    >>> correct(y, sensitive_features=x).round(6)
    array([3.4, 2.8, 2.2, 3.6])
    """

    kernel: FittedKernel
    correction: np.ndarray
    target_weight: float | None
    threshold: Any

    def __call__(self, y: Any, y_pred: Any = None, *, sensitive_features: Any) -> np.ndarray:
        """Return the nearest targets of a chunk, t + Q(x)c.

        Parameters
        ----------
        y : array-like of shape (n,)
            Original targets of the chunk.
        y_pred : array-like of shape (n,), default=None
            Its predictions, where the accumulator had them, and only there.
        sensitive_features : array-like of shape (n,) or (n, m)
            Its attribute.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If predictions or columns are not those that were accumulated.
        """
        t = check_numbers(y, "y", n_columns=1)
        if (y_pred is None) != (self.target_weight is None):
            had = "had none" if self.target_weight is None else "had some"
            raise ValueError(
                f"y_pred must be given if and only if the accumulator had predictions: it {had}."
            )
        if self.target_weight is not None:
            p = check_numbers(y_pred, "y_pred", n_columns=1)
            check_same_length(len(t), y_pred=p)
            t = (p + self.target_weight * t) / (1 + self.target_weight)
        check_attribute_columns(self.kernel.attribute_columns, sensitive_features)
        values = check_attribute(sensitive_features, len(t), kind="mixed")
        return t + self.kernel.explained(values, self.correction)
