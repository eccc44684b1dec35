"""The constraint on the deviations of groups."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from .._geometry import Block, group_block
from .._validation import Interval, check_group_codes, warn_many_groups
from ..kernels import BaseDesign, Design, FittedKernel, fit_groups
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
    subset : "positive", class or callable, default=None
        Which rows count, by their original target: those of the second of two classes (equal
        opportunity), of a class, or where a callable of y, entry by entry, is true; None is all.
        It needs `relative=False`, and predictions of rows that their model has not seen.
    on : {"predictions", "probabilities", "residuals"}, default="predictions"
        What is bounded: what `predict` returns, the probability of the second of two classes, or
        predictions minus y (error parity). The last needs `relative=False`, and one of the
        projected estimators.

    See Also
    --------
    DependenceConstraint : Bounds the influence of numeric attributes.
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
    >>> constraint = DidiConstraint(0.5)
    >>> project_targets(pay, sensitive_features=team, constraint=constraint).targets
    array([1.5, 2.5, 2.5, 3.5, 2. , 3. ])
    """

    name: ClassVar[str] = "didi"
    joins_classes: ClassVar[bool] = True
    kernel = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Constraint._parameter_constraints,
        "threshold": [Interval(Real, 0, np.inf, closed="both")],
        "relative": ["boolean"],
    }

    def __init__(
        self,
        threshold: float = 0.2,
        *,
        relative: bool = True,
        subset: Any = None,
        on: str = "predictions",
    ) -> None:
        self.threshold = threshold
        self.relative = relative
        self.subset = subset
        self.on = on

    def _fit(self, values: np.ndarray, weight: Any, kernel: FittedKernel | None) -> Design:
        """Return the indicators of the groups that the rows hold, whatever others held."""
        if kernel is None:
            warn_many_groups(len(check_group_codes(values)[1]), len(values))
        return fit_groups(values, weight=weight)

    def gauge(
        self, design: BaseDesign, *, is_class: bool, outputs: tuple[int, ...] = (0,)
    ) -> Block:
        """Return the block of the DIDI, in its classification form where targets are classes."""
        # The other one of two classes has the same deviations.
        return group_block(design, outputs, 2.0 if is_class and len(outputs) == 1 else 1.0)

    def reference(
        self, design: Design, values: np.ndarray, columns: np.ndarray, *, is_class: bool
    ) -> float:
        """Return the DIDI of the original targets, 0 within rounding."""
        if all(is_negligible(design, design.standardized(own), own) for own in columns.T):
            return 0.0
        outputs = tuple(range(columns.shape[1]))
        return self.gauge(design, is_class=is_class, outputs=outputs).indicator(columns)

    def in_words(self) -> str:
        bound = f"DIDI ≤ {self.threshold:g}{' × DIDI of y' if self.relative else ''}"
        return bound + self.notion_in_words()
