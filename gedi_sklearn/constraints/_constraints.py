"""What a constraint bounds, and by how much: objects of parameters alone."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._geometry import Block, Box, coefficient_block, deviation_block, group_block
from .._validation import (
    NOTION_PARAMETERS,
    Interval,
    Outcomes,
    StrOptions,
    _BaseComposition,
    check_changed,
    check_group_codes,
    check_nested,
    check_notion,
    check_numbers_or_inf,
    remember_signature,
    warn_many_groups,
)
from ..kernels import (
    KERNEL_CONSTRAINTS,
    BaseDesign,
    Design,
    FittedKernel,
    PolynomialKernel,
    describe_kernel,
    fit_groups,
    fit_kernel,
    is_degree,
    warn_many_levels,
)
from ..metrics import reference_disparity

__all__ = [
    "CoarseConstraint",
    "Constraint",
    "ConstraintList",
    "DependenceConstraint",
    "DidiConstraint",
    "FineConstraint",
]

# What a constraint bounds: what `predict` returns, probabilities, predictions minus y, or the
# share of rows above every cut.
OUTPUTS = ("predictions", "probabilities", "residuals", "distribution")


class Constraint(BaseEstimator):
    """Base of all constraints: parameters, the kernel on given rows, the absolute threshold."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NOTION_PARAMETERS,
        "on": [StrOptions(set(OUTPUTS))],
    }
    kernel: Any
    threshold: Any
    relative: bool | int
    subset: Any
    on: str
    # What an error calls it.
    name: ClassVar[str]
    # The norm of its indicator, as in `gedi`.
    norm: ClassVar[str] = "l1"
    # Whether each coefficient has a bound of its own, rather than their sum.
    bounds_each: ClassVar[bool] = False
    # Whether it can be a bound on the share of rows above every cut.
    bounds_cuts: ClassVar[bool] = False
    # Whether one threshold bounds the columns of all classes together.
    joins_classes: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        remember_signature(cls)

    def set_params(self, **params: Any) -> Constraint:
        """Set parameters, those of the kernel as ``kernel__…``.

        Returns
        -------
        self : object
        """
        check_nested(self, params, {"kernel": "SplineKernel()"})
        return super().set_params(**params)

    def __sklearn_clone__(self) -> Self:
        if type(self).__module__ != __name__:  # a class of the caller's may change what it is given
            return super().__sklearn_clone__()
        # Each is copied several times in a fit, and scikit-learn reads all signatures to do so.
        return self.changed(**{name: clone(own, safe=False) for name, own in vars(self).items()})

    def changed(self, **params: Any) -> Self:
        """Return the same with other parameters; the others are shared."""
        other = copy.copy(self)
        other.__dict__.update(params)
        return other

    def validate(self) -> None:
        """Check the parameters' types and ranges.

        Raises
        ------
        ValueError
            With the parameter's name, what it must be and what it is.
        """
        if not self.bounds_each and isinstance(self.threshold, (list, np.ndarray)):
            raise ValueError(
                f"threshold of {type(self).__name__} must be one number, got {self.threshold!r}. "
                "For one bound for each coefficient, use FineConstraint."
            )
        if hasattr(self.kernel, "__array__") and not is_degree(self.kernel):
            raise ValueError(
                f"kernel is a {type(self.kernel).__name__}: precomputed columns serve indicators "
                "only, a constraint needs a transformer or a callable of the attribute."
            )
        check_changed(self)
        check_notion(self.subset, self.on, self.relative)
        if self.on == "distribution" and not (self.bounds_cuts and self.subset is None):
            raise ValueError(
                f"on='distribution' is for DependenceConstraint without subset=; got {self!r}."
            )
        try:
            entries = np.atleast_1d(self.absolute_threshold(1.0))
        except OverflowError as error:  # Python's integers have no end
            raise ValueError(f"threshold is a number that no float can hold: {error}.") from error
        if np.isnan(entries).any() or (entries < 0).any():
            raise ValueError(f"threshold must be at least 0, got {self.threshold!r}.")

    def absolute_threshold(self, reference: float) -> Any:
        """Return `threshold` times `reference`: a float, or an array of shape (k,)."""
        if isinstance(self.threshold, Real):
            return float(self.threshold) * reference
        return check_numbers_or_inf(self.threshold) * reference

    def design(
        self,
        values: np.ndarray,
        weight: np.ndarray | None,
        covariates: np.ndarray | None,
        outcomes: Outcomes | None,
        kernel: FittedKernel | None = None,
        target: np.ndarray | None = None,
    ) -> Design:
        """Return the kernel on rows, or on those of the subset, beside covariates.

        Parameters
        ----------
        values, weight, covariates
            Attribute, weights and covariates of rows of positive weight; the last two may be None.
        outcomes : Outcomes or None
            Their original targets.
        kernel : FittedKernel, default=None
            One that other rows were fitted on, whose own columns are taken.
        target : ndarray of shape (n,), default=None
            A target that will be measured; see :func:`fit_kernel`.

        Raises
        ------
        RankDeficientKernelError
            If the kernel's columns are dependent on these rows (`is_constant` where the attribute
            is).
        """
        if self.subset is None or outcomes is None:
            return self._fit(values, weight, kernel, target).beside(covariates)
        rows = outcomes.rows(self.subset)
        if not rows.any():
            raise ValueError(f"subset={self.subset!r} holds no row of positive weight.")
        own = [None if given is None else given[rows] for given in (weight, covariates)]
        return self._fit(values[rows], own[0], kernel).beside(own[1]).within(rows, weight)

    def _fit(
        self, values: np.ndarray, weight: Any, kernel: FittedKernel | None, target: Any = None
    ) -> Design:
        """Return the kernel on all of the rows."""
        if kernel is not None:
            return fit_kernel(kernel.transform(values), values, weight=weight)
        warn_many_levels(values)
        return fit_kernel(self.kernel, values, weight=weight, target=target)

    def outcome_scale(self, kernel: FittedKernel) -> float:
        """Return an indicator of 1 in units of the targets, per deviation of the first column."""
        return float(kernel.scale[0])

    def gauge(
        self, design: BaseDesign, *, is_class: bool, outputs: tuple[int, ...] = (0,)
    ) -> Block:
        """Return the block of the indicator, ‖α̃‖₁, without a bound.

        Parameters
        ----------
        design : BaseDesign
            The kernel on the rows.
        is_class : bool
            Whether the targets are classes: one column is that of the second of two.
        outputs : tuple of int, default=(0,)
            Which columns of the targets it is of.
        """
        return coefficient_block(design, outputs)

    def reference(
        self, design: Design, values: np.ndarray, columns: np.ndarray, *, is_class: bool
    ) -> float:
        """Return the indicator of the original targets, as `relative` asks; 0 within rounding.

        An absolute threshold of 0 leaves its slack on that scale too.
        """
        if self.norm != "l1":
            outputs = tuple(range(columns.shape[1]))
            return self.gauge(design, is_class=is_class, outputs=outputs).reference(columns)
        y = columns[:, 0]
        known = design.coefficients_of_degree(y, int(self.relative or True))
        if known is not None:
            return float(np.abs(known).sum())
        return reference_disparity(
            y,
            values,
            kernel=self.kernel,
            relative=self.relative or True,
            weight=design.weight,
            norm=self.norm,
            covariates=None if design.covariates is None else design.covariates.values,
        )

    def block(
        self, design: BaseDesign, *, unit: float, is_class: bool, outputs: tuple[int, ...] = (0,)
    ) -> Block:
        """Return what is bounded on a design, and its set: here the indicator, by the threshold.

        Parameters
        ----------
        design, is_class, outputs
            As in :meth:`gauge`.
        unit : float
            The reference, in outcome units per deviation of the first kernel column.
        """
        gauge = self.gauge(design, is_class=is_class, outputs=outputs)
        radius = float(self.threshold) / gauge.factor
        unit = radius if 0 < radius < np.inf else unit / self.outcome_scale(design.fitted)
        return gauge.bounded_by(radius, unit)

    @property
    def needs_outcomes(self) -> bool:
        """Whether it concerns some of the rows, or residuals."""
        return self.subset is not None or self.on == "residuals"

    def notion_in_words(self) -> str:
        """Name the rows and the output that are measured; "" for the predictions of all rows."""
        of = "" if self.on == "predictions" else f" of {self.on}"
        return of if self.subset is None else f"{of} in subset {self.subset!r}"

    def in_words(self) -> str:
        """Return the constraint as a formula, e.g. "DIDI ≤ 0.2 × DIDI of y"."""
        raise NotImplementedError


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
    norm: ClassVar[str] = "didi"
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

    def _fit(
        self, values: np.ndarray, weight: Any, kernel: FittedKernel | None, target: Any = None
    ) -> Design:
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

    def in_words(self) -> str:
        bound = f"DIDI ≤ {self.threshold:g}{' × DIDI of y' if self.relative else ''}"
        return bound + self.notion_in_words()


class ConstraintList(_BaseComposition):
    """One constraint for each attribute, all to be satisfied at once.

    A plain list of constraints is accepted in its place. With names their parameters can be set and
    searched, as ``constraint__age__threshold``.

    Parameters
    ----------
    constraints : list of (str, constraint) pairs
        For each column of the attribute, in their order, a name and a constraint. Where the
        columns have names, they are best used here as well.

    See Also
    --------
    DependenceConstraint : One constraint; of several columns together, where there is no list.

    Examples
    --------
    >>> from gedi_sklearn import ConstraintList, DependenceConstraint, DidiConstraint
    >>> both = ConstraintList([("age", DependenceConstraint()), ("team", DidiConstraint())])
    >>> both.set_params(age__threshold=0.1).constraints[0][1].threshold
    0.1
    """

    def __init__(self, constraints: list[tuple[str, Any]]) -> None:
        self.constraints = constraints

    def validate(self) -> None:
        """Raise if there are no pairs, or if names are not unique."""
        pairs = self.constraints
        is_pairs = isinstance(pairs, (list, tuple)) and all(
            isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str)
            for pair in pairs
        )
        if not (is_pairs and pairs):
            raise ValueError(
                "ConstraintList takes a list of (name, constraint) pairs, as "
                f'[("age", DependenceConstraint(0.2))], got {pairs!r}.'
            )
        self._validate_names([name for name, _ in pairs])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, those of each constraint as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return those of the constraints, too.

        Returns
        -------
        dict
        """
        return self._get_params("constraints", deep=deep)

    def set_params(self, **params: Any) -> ConstraintList:
        """Set parameters; a name alone replaces its constraint.

        Returns
        -------
        self : object
        """
        self._set_params("constraints", **params)
        return self


remember_signature(ConstraintList)
