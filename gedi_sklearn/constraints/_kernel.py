"""Constraints on the coefficients of a kernel: on a norm of them, or on each of them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from .._geometry import Block, Box, deviation_block
from .._validation import Interval, check_numbers_or_inf
from ..kernels import (
    KERNEL_CONSTRAINTS,
    BaseDesign,
    FittedKernel,
    PolynomialKernel,
    describe_kernel,
    is_degree,
)
from ._base import Constraint

_THRESHOLD = [Interval(Real, 0, np.inf, closed="both")]
# A degree beside True, of which the reference is taken.
_RELATIVE = ["boolean", Interval(Integral, 1, None, closed="left")]


class DependenceConstraint(Constraint):
    r"""Bound on the deviation that an attribute explains, whatever the shape of its effect.

    .. math:: S(z) = \|\tilde F \tilde\alpha(z)\| / \sqrt n \le q

    is the standard deviation of the part of z that the kernel's functions of the attribute
    explain: in units of z, and the same for every unit of the attribute. With a spline it follows
    any smooth influence, so that a share of 0.2 leaves a fifth of what the attribute explains.
    It is what ``constraint=None`` stands for.

    Parameters
    ----------
    threshold : float, default=0.2
        The bound q, at least 0; inf allows everything.
    kernel : int, {"spline", "polynomial", "fourier"}, transformer or callable, default="spline"
        The functions of the attribute whose influence is bounded; an integer is the polynomial of
        that degree. Several columns are seen one by one, without their interactions.
    relative : bool, default=True
        Whether q is a share of the deviation that the attribute explains of the original targets.
    subset : "positive", class or callable, default=None
        Which rows count, by their original target: those of the second of two classes (equal
        opportunity), of a class, or where a callable of y, entry by entry, is true; None is all.
        It needs `relative=False`, and predictions of rows that their model has not seen:
        :class:`ProjectedRegressor`, :class:`ProjectedClassifier`, and with `cv` Moving Targets
        and boosting.
    on : {"predictions", "probabilities", "residuals", "distribution"}, default="predictions"
        What is bounded: what `predict` returns, the probability of the second of two classes
        (:class:`ProjectedClassifier`, :class:`ConstrainedBoostingClassifier`,
        :class:`LagrangianDualClassifier`), or predictions minus y (error parity). The last needs
        `relative=False`, and one of the projected estimators.
        "distribution" bounds the share of rows above every cut of the predictions, or of the
        probability of the second of two classes: 0.02 with `relative=False` is a deviation of two
        points at the worst cut. A relative bound is a share of that of the plain learner. It is
        for :class:`ProjectedRegressor` and :class:`ProjectedClassifier`.

    See Also
    --------
    CoarseConstraint : Bounds the paper's indicator instead.
    DidiConstraint : Bounds the disparity of groups.
    gedi_sklearn.gedi : With ``norm="sd"``, what is bounded.

    Notes
    -----
    The deviation is that of the projection of z on the kernel's columns, of n rows with weights;
    source: Giuliani, Misino and Lombardi (2023), section 4, for the coefficients, whose Euclidean
    norm in orthonormal coordinates it is.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import DependenceConstraint, gedi, project_targets
    >>> x = np.linspace(-1, 1, 9)
    >>> result = project_targets(x**2, sensitive_features=x, constraint=DependenceConstraint(0.5))
    >>> left = {"sensitive_features": x, "norm": "sd", "kernel": "spline", "relative": True}
    >>> round(gedi(x**2, result.targets, **left), 6)
    0.5
    """

    name: ClassVar[str] = "dependence"
    norm: ClassVar[str] = "sd"
    bounds_cuts: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Constraint._parameter_constraints,
        "threshold": _THRESHOLD,
        "kernel": KERNEL_CONSTRAINTS,
        "relative": ["boolean"],
    }

    def __init__(
        self,
        threshold: float = 0.2,
        *,
        kernel: Any = "spline",
        relative: bool = True,
        subset: Any = None,
        on: str = "predictions",
    ) -> None:
        self.threshold = threshold
        self.kernel = kernel
        self.relative = relative
        self.subset = subset
        self.on = on

    def outcome_scale(self, kernel: FittedKernel) -> float:
        """Return 1, since the indicator is in units of the targets; see the base class."""
        return 1.0

    def gauge(
        self, design: BaseDesign, *, is_class: bool, outputs: tuple[int, ...] = (0,)
    ) -> Block:
        """Return the block of the deviation that is explained; see the base class."""
        return deviation_block(design, outputs)

    def in_words(self) -> str:
        bound = f"S(z) ≤ {self.threshold:g}{' × S(y)' if self.relative else ''}"
        return f"{bound}{self.notion_in_words()}, {describe_kernel(self.kernel)}"


class CoarseConstraint(Constraint):
    r"""Bound on the paper's indicator, :math:`\|\tilde\alpha(z)\|_1 \le q`.

    Parameters
    ----------
    threshold : float, default=0.2
        The bound q, at least 0; inf allows everything.
    kernel : int, {"spline", "polynomial", "fourier"}, transformer or callable, default=1
        The functions of the attribute whose influence is bounded; an integer is the polynomial of
        that degree.
    relative : bool or int, default=True
        Whether q is a share of the indicator of the original targets; an integer d takes that
        indicator at degree d, True at degree 1.
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
    DependenceConstraint : Bounds a deviation, in units of the targets.
    FineConstraint : Bounds the coefficients one by one.

    Notes
    -----
    Source: Giuliani, Misino and Lombardi (2023), section 4, equations 19 and 20.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, project_targets
    >>> x = np.linspace(-1, 1, 9)
    >>> constraint = CoarseConstraint(0.5, kernel=2, relative=False)
    >>> result = project_targets(2 * x - x**2, sensitive_features=x, constraint=constraint)
    >>> round(float(np.abs(result.coefficients).sum()), 6)
    0.5
    """

    name: ClassVar[str] = "coarse"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DependenceConstraint._parameter_constraints,
        "relative": _RELATIVE,
    }

    def __init__(
        self,
        threshold: float = 0.2,
        *,
        kernel: Any = 1,
        relative: bool | int = True,
        subset: Any = None,
        on: str = "predictions",
    ) -> None:
        self.threshold = threshold
        self.kernel = kernel
        self.relative = relative
        self.subset = subset
        self.on = on

    def in_words(self) -> str:
        bound = f"‖α̃‖₁ ≤ {self.threshold:g}{_unit(self)}"
        return f"{bound}{self.notion_in_words()}, {describe_kernel(self.kernel)}"


class FineConstraint(Constraint):
    r"""Bounds on single coefficients: :math:`|\tilde\alpha_j(z)| \le q_j`.

    Parameters
    ----------
    threshold : float or array-like of shape (k,), default=0.2
        A number bounds the first coefficient and forbids all others (a polynomial kernel of one
        attribute). An array gives each coefficient its own bound: 0 forbids, inf frees.
    kernel : int, {"spline", "polynomial", "fourier"}, transformer or callable, default=1
        The functions of the attribute whose influence is bounded; an integer is the polynomial of
        that degree.
    relative : bool or int, default=True
        Whether every finite entry is a share of the indicator of the original targets; an
        integer d takes that indicator at degree d, True at degree 1.
    slack : float, default=1e-3
        Binary targets only: a forbidden direction may keep this share of the bound, since whole
        rows cannot cancel exactly. Real targets meet the bounds exactly.
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
    CoarseConstraint : Bounds their sum.

    Notes
    -----
    For binary targets forbidden directions are bounded in the standardised basis, so that unit
    and origin of the attribute change nothing. The paper's equation 23 is not equivalent to its
    equation 22 (see the documentation's errata); this is equation 22. Source: Giuliani, Misino
    and Lombardi (2023), section 4 and appendix, "Optimized Fine-grained Formulation".

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import FineConstraint, project_targets
    >>> x = np.linspace(-1, 1, 9)
    >>> constraint = FineConstraint(0.5, kernel=2, relative=False)
    >>> result = project_targets(2 * x - x**2, sensitive_features=x, constraint=constraint)
    >>> np.abs(result.coefficients).round(6)
    array([0.5, 0. ])
    """

    name: ClassVar[str] = "fine"
    bounds_each: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CoarseConstraint._parameter_constraints,
        "threshold": [*_THRESHOLD, "array-like"],
        "slack": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        threshold: Any = 0.2,
        *,
        kernel: Any = 1,
        relative: bool | int = True,
        slack: float = 1e-3,
        subset: Any = None,
        on: str = "predictions",
    ) -> None:
        self.threshold = threshold
        self.kernel = kernel
        self.relative = relative
        self.slack = slack
        self.subset = subset
        self.on = on

    def bounds(self, kernel: FittedKernel) -> np.ndarray:
        """Return the bound of every raw coefficient, shape (k,).

        Raises
        ------
        ValueError
            If a scalar threshold meets a kernel that has no first power, or an array has
            another length than the kernel has columns.
        """
        if isinstance(self.threshold, Real):
            if not kernel.is_single_polynomial and kernel.n_columns > 1:
                raise ValueError(
                    "a scalar `threshold` of a fine constraint allows the first power of one "
                    f"attribute and needs a polynomial kernel; got {kernel!r}. Pass an array "
                    f"with one bound for each of its columns {kernel.names}."
                )
            return np.r_[float(self.threshold), np.zeros(kernel.n_columns - 1)]
        bounds = check_numbers_or_inf(self.threshold)
        if bounds.shape != (kernel.n_columns,):
            raise ValueError(
                f"threshold has {bounds.size} entries, but the kernel has {kernel.n_columns} "
                f"columns {kernel.names}; pass one bound for each."
            )
        return bounds

    def block(
        self, design: BaseDesign, *, unit: float, is_class: bool, outputs: tuple[int, ...] = (0,)
    ) -> Block:
        """Return the box, in outcome units per deviation of a kernel column; see the base class.

        With d the last coefficient that is not forbidden, the trailing forbidden ones are
        bounded in the standardised basis, where "degrees d + 1 … k vanish" is the same set as in
        the raw one, and the leading ones are those of the polynomial of degree d. Classes leave
        forbidden directions their slack.
        """
        kernel = design.fitted
        bounds, scale, basis = self.bounds(kernel), kernel.scale, kernel.basis
        free = np.flatnonzero(bounds > 0)
        leading = free[-1] + 1 if free.size else 0
        to_v, from_v = np.eye(kernel.n_columns), np.eye(kernel.n_columns)
        to_v[:leading, :leading] = basis.to_raw[:leading, :leading] * scale[:leading, None]
        from_v[:leading, :leading] = basis.from_raw[:leading, :leading] / scale[:leading]
        half_widths, forbidden = bounds * scale, bounds == 0
        finite = half_widths[np.isfinite(half_widths)]
        unit = float(finite.max()) if finite.any() else unit
        if is_class:
            half_widths[forbidden] = self.slack * unit
        box = Box(kernel.n_columns, unit, half_widths, forbidden)
        return Block(design, box, to_v, from_v, outputs)

    def in_words(self) -> str:
        if isinstance(self.threshold, Real):
            bound = f"|α̃₁| ≤ {self.threshold:g}{_unit(self)}, every other coefficient 0"
        else:
            bounds = ", ".join(f"{entry:g}" for entry in np.ravel(self.threshold))
            bound = f"|α̃| ≤ ({bounds}){_unit(self)}"
        return f"{bound}{self.notion_in_words()}, {describe_kernel(self.kernel)}"


def _unit(constraint: Any) -> str:
    if constraint.relative is False:
        return ""
    kernel = constraint.kernel
    if is_degree(kernel) or kernel == "polynomial" or isinstance(kernel, PolynomialKernel):
        return f" × GeDI-V{int(constraint.relative)} of y"
    return " × GeDI of y"
