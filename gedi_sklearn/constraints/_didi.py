"""The constraint on the deviations of groups."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from .._validation import Interval, check_group_codes, warn_many_groups
from ..kernels import FittedKernel, KernelDesign, fit_groups
from ..metrics import is_negligible
from ._base import AllowedSet, Constraint

__all__ = ["DidiConstraint", "group_rows"]


class DidiConstraint(Constraint):
    r"""Bound on the disparity of groups: :math:`\mathrm{DIDI}(z) \le q`.

    The DIDI is :math:`\sum_v |d_v|`, with :math:`d_v` the mean target of group v minus the mean of
    all; for two classes it is summed over both, which doubles it. Rows that agree in all
    attributes, of any type, are a group. The d_v are tied by :math:`\sum_v n_v d_v = 0`.

    Parameters
    ----------
    threshold : float, default=0.2
        The bound q, at least 0; inf allows everything.
    relative : bool, default=True
        Whether q is a share of the DIDI of the original targets.

    See Also
    --------
    CoarseConstraint : Bounds the influence of numeric attributes.
    gedi_sklearn.metrics.didi : What is bounded.

    Notes
    -----
    Source: Giuliani, Misino and Lombardi (2023), section 3; the DIDI is that of Aghaei, Azizi and
    Vayanos (2019).

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import DidiConstraint, project_targets
    >>> team = np.array(["a", "a", "b", "b", "c", "c"])
    >>> pay = np.array([1.0, 2.0, 3.0, 4.0, 2.0, 3.0])
    >>> constraint = DidiConstraint(threshold=0.5)
    >>> project_targets(pay, sensitive_features=team, constraint=constraint).targets
    array([1.5, 2.5, 2.5, 3.5, 2. , 3. ])
    """

    name: ClassVar[str] = "didi"
    kernel = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Interval(Real, 0, np.inf, closed="both")],
        "relative": ["boolean"],
    }

    def __init__(self, *, threshold: float = 0.2, relative: bool = True) -> None:
        self.threshold = threshold
        self.relative = relative

    def fit_design(self, values: np.ndarray, weight: np.ndarray | None) -> KernelDesign:
        """Return the indicators of the groups on rows of positive weight."""
        warn_many_groups(len(check_group_codes(values)[1]), len(values))
        return fit_groups(values, weight=weight)

    def design_on(self, kernel: FittedKernel, values: np.ndarray) -> KernelDesign:
        """Return the indicators of the groups that other rows hold."""
        return fit_groups(values)

    def indicator(self, design: KernelDesign, z: np.ndarray, *, integral: bool) -> float:
        """Return the DIDI of targets, in its classification form where they are two classes."""
        deviations = group_rows(design.fitted) @ design.standardized(z)
        return (2.0 if integral else 1.0) * float(np.abs(deviations).sum())

    def reference(
        self, design: KernelDesign, values: np.ndarray, y: np.ndarray, *, integral: bool
    ) -> float:
        """Return the DIDI of the original targets, 0 within rounding."""
        if is_negligible(design, design.standardized(y), y):
            return 0.0
        return self.indicator(design, y, integral=integral)

    def allowed_set(self, kernel: FittedKernel, *, unit: float, integral: bool) -> AllowedSet:
        """Return the L1 ball in the deviations of the groups.

        Parameters
        ----------
        kernel : FittedKernel
            The indicators of the groups.
        unit : float
            The reference, in outcome units for each deviation of the first indicator.
        integral : bool
            Whether the targets are two classes, both of which count.

        Returns
        -------
        AllowedSet
        """
        radius = float(self.threshold) / (2.0 if integral else 1.0)
        rows = group_rows(kernel) if np.isfinite(radius) else np.empty((0, kernel.n_columns))
        positive = 0 < radius < np.inf
        return AllowedSet(rows, radius, None, unit=radius if positive else unit / kernel.scale[0])


def group_rows(kernel: FittedKernel) -> np.ndarray:
    """Return V with d = V s for the deviations of all groups, shape (g, k)."""
    return kernel.basis.evaluate(np.arange(kernel.n_columns + 1.0)[:, None]) - kernel.center_
