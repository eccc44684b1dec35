"""The projection of real targets that come in chunks: k numbers lead to the nearest ones."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .._validation import (
    Interval,
    StrOptions,
    check_attribute,
    check_attribute_columns,
    check_numbers,
    check_same_length,
    validate_params,
)
from ..constraints import CoarseConstraint, DependenceConstraint
from ..kernels import FittedKernel, resolve_kernel
from ..metrics import RELATIVE, GediAccumulator, check_relative


@dataclass(frozen=True)
class TargetCorrection:
    """What leads from targets and predictions to the nearest targets within a bound.

    Attributes
    ----------
    kernel : FittedKernel
        The kernel, orthonormal on all rows that were accumulated.
    correction : ndarray of shape (k,)
        Coordinates c of the function of the attribute that is added.
    target_weight : float or None
        Weight w of the original targets beside the predictions; None where there were none.
    threshold : float
        The absolute bound.

    See Also
    --------
    correct_targets : Makes one.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import correct_targets
    >>> from gedi_sklearn.metrics import GediAccumulator
    >>> y, x = np.array([1.0, 2.0, 3.0, 6.0]), np.array([0.0, 1.0, 2.0, 3.0])
    >>> correct = correct_targets(GediAccumulator().update(y, sensitive_features=x), threshold=0)
    >>> correct(y, sensitive_features=x).round(6)
    array([3.4, 2.8, 2.2, 3.6])
    """

    kernel: FittedKernel
    correction: np.ndarray
    target_weight: float | None
    threshold: float

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
                f"y_pred is given where the accumulator had predictions, and only there: it {had}."
            )
        if self.target_weight is not None:
            p = check_numbers(y_pred, "y_pred", n_columns=1)
            check_same_length(len(t), y_pred=p)
            t = (p + self.target_weight * t) / (1 + self.target_weight)
        check_attribute_columns(self.kernel.attribute_columns, sensitive_features)
        values = check_attribute(sensitive_features, len(t), kind="mixed")
        return t + self.kernel.orthonormal(values) @ self.correction


@validate_params(
    {
        "accumulator": [GediAccumulator],
        "threshold": [Interval(Real, 0, None, closed="left")],
        "norm": [StrOptions({"l1", "sd"})],
        "relative": RELATIVE,
        "target_weight": [Interval(Real, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def correct_targets(
    accumulator: Any,
    *,
    threshold: float = 0.2,
    norm: str = "l1",
    relative: bool | int = True,
    target_weight: float = 1.0,
) -> TargetCorrection:
    r"""Return the projection of accumulated real targets, for chunks of them.

    The same as :func:`project_targets` with ``CoarseConstraint``, where the rows do not fit
    into memory: the nearest allowed targets are t + Q(x)c, and c follows from the sums.

    Parameters
    ----------
    accumulator : GediAccumulator
        It has seen all rows: the targets, and their predictions if there are any.
    threshold : float, default=0.2
        The bound, at least 0.
    norm : {"l1", "sd"}, default="l1"
        What is bounded; see :class:`CoarseConstraint`.
    relative : bool or int, default=True
        Whether the bound is a share of the indicator of the original targets, and at which degree;
        see :func:`project_targets`.
    target_weight : float, default=1.0
        Weight w of the original targets beside the predictions.

    Returns
    -------
    TargetCorrection
        Call it with the rows of a chunk.

    Raises
    ------
    ValueError
        If a relative bound meets a reference of 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.metrics import GediAccumulator, gedi
    >>> from gedi_sklearn.projection import correct_targets
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=1000)
    >>> y = x + rng.normal(size=1000)
    >>> chunks = np.split(np.arange(1000), 4)
    >>> accumulator = GediAccumulator()
    >>> for rows in chunks:
    ...     _ = accumulator.update(y[rows], sensitive_features=x[rows])
    >>> correct = correct_targets(accumulator, threshold=0.2)
    >>> z = np.concatenate([correct(y[rows], sensitive_features=x[rows]) for rows in chunks])
    >>> round(gedi(y, z, sensitive_features=x, relative=True), 9)
    0.2
    """
    check_relative(relative, norm)
    reference = accumulator.reference_value(norm, relative) if relative else 1.0
    if not reference > 0:
        raise ValueError(
            "relative: the indicator of y is 0, so a share of it means nothing. Pass "
            "relative=False and an absolute threshold."
        )
    kind = CoarseConstraint if norm == "l1" else DependenceConstraint
    kernel = resolve_kernel(accumulator.kernel, accumulator.degree)
    bound = kind(threshold * reference, kernel=kernel, relative=False)
    design = accumulator.indicator(norm).design
    shares = accumulator.shares()
    has_predictions = len(shares) == 2
    if has_predictions:
        shares = np.array([target_weight, 1.0]) / (1 + target_weight)
    coordinates = design.coordinates(shares)
    nearest, _ = bound.block(design, unit=1.0, is_class=False).nearest(coordinates)
    own_weight = target_weight if has_predictions else None
    return TargetCorrection(design.fitted, nearest - coordinates, own_weight, threshold * reference)
