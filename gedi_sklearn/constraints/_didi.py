"""The constraint on the deviations of groups."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from .._geometry import CoordinateSet, GroupBall, GroupCoordinates, deviations
from .._validation import NOTION_PARAMETERS, Interval, check_group_codes, warn_many_groups
from ..kernels import Design, FittedKernel, fit_groups
from ..metrics import is_negligible
from ._base import Constraint


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
    subset, on
        As in :class:`CoarseConstraint`.

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
    joins_classes: ClassVar[bool] = True
    kernel = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Interval(Real, 0, np.inf, closed="both")],
        "relative": ["boolean"],
        **NOTION_PARAMETERS,
    }

    def __init__(
        self,
        *,
        threshold: float = 0.2,
        relative: bool = True,
        subset: Any = None,
        on: str = "predictions",
    ) -> None:
        self.threshold = threshold
        self.relative = relative
        self.subset = subset
        self.on = on

    def fit_design(self, values: np.ndarray, weight: np.ndarray | None) -> Design:
        """Return the indicators of the groups on rows of positive weight."""
        warn_many_groups(len(check_group_codes(values)[1]), len(values))
        return fit_groups(values, weight=weight)

    def design_on(self, kernel: FittedKernel, values: np.ndarray) -> Design:
        """Return the indicators of the groups that other rows hold."""
        return fit_groups(values)

    def indicator(self, design: Design, columns: np.ndarray, *, is_class: bool) -> float:
        """Return the DIDI of targets, in its classification form where they are classes."""
        weights, scale = np.asarray(design.group_weights), design.fitted.scale
        gaps = [design.standardized(column) / scale for column in columns.T]
        values = [np.abs(deviations(own, weights)).sum() for own in gaps]
        return _n_forms(columns.shape[1], is_class) * float(np.sum(values))

    def reference(
        self, design: Design, values: np.ndarray, columns: np.ndarray, *, is_class: bool
    ) -> float:
        """Return the DIDI of the original targets, 0 within rounding."""
        if all(is_negligible(design, design.standardized(own), own) for own in columns.T):
            return 0.0
        return self.indicator(design, columns, is_class=is_class)

    def allowed(
        self, design: Design, *, unit: float, is_class: bool, n_columns: int = 1
    ) -> CoordinateSet:
        """Return the L1 ball in the deviations of the groups; see the base class."""
        radius = float(self.threshold) / _n_forms(n_columns, is_class)
        weights = np.asarray(design.group_weights)
        unit = radius if 0 < radius < np.inf else unit / self.outcome_scale(design.fitted)
        ball = GroupBall(
            n_columns * len(weights), unit, radius, weights, are_means=design.n_covariates == 0
        )
        if design.fitted.has_closed_form:
            return GroupCoordinates(ball, design.fitted)
        to_v = group_rows(design)
        # A coefficient is how far a group's mean is from that of the first group.
        per_unit = np.diag(to_v[1:] - to_v[0])[:, None]
        from_v = np.hstack([np.full_like(per_unit, -1.0), np.eye(len(per_unit))]) / per_unit
        return CoordinateSet(ball, to_v, from_v, design.fitted)

    def in_words(self) -> str:
        bound = f"DIDI ≤ {self.threshold:g}{' × DIDI of y' if self.relative else ''}"
        return bound + self.notion_in_words()


def group_rows(design: Design) -> np.ndarray:
    """Return V with d = V s for the deviations of all groups, shape (g, k)."""
    indicators = design.fitted.basis.evaluate(np.arange(design.fitted.n_columns + 1.0)[:, None])
    return indicators - design.group_weights @ indicators


def _n_forms(n_columns: int, is_class: bool) -> float:
    """Return 2 for the one column of two classes, whose other class has the same deviations."""
    return 2.0 if is_class and n_columns == 1 else 1.0
