r"""Generalized Disparate Impact: how much of a target is a function of the attribute."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from .._validation import (
    NOTION_PARAMETERS,
    Interval,
    StrOptions,
    check_attribute,
    check_groups,
    check_notion,
    validate_params,
)
from ..exceptions import RankDeficientKernelError
from ..kernels import (
    KERNEL_CONSTRAINTS,
    AttributeEncoder,
    fit_resolved,
    kernel_of_degree,
    list_columns,
    resolve_kernel,
    warn_attribute_scale,
    warn_many_levels,
)
from ._cuts import CutsIndicator, check_cuts
from ._inputs import (
    TARGET_CONSTRAINTS,
    Sample,
    check_sample,
    on_subset,
    ratio,
    undefined,
    undefined_if_constant,
)
from ._linear import KernelIndicator

NORMS = ("l1", "sd", "adjusted_sd")


def reference_disparity(
    y: np.ndarray,
    values: np.ndarray,
    *,
    kernel: Any,
    relative: bool | int = True,
    weight: np.ndarray | None = None,
    norm: str = "l1",
    covariates: np.ndarray | None = None,
    size: float | None = None,
) -> float:
    """Return the indicator of the original targets, by which relative values are divided.

    In the L1 norm it is that of the degree `relative`, in units of y that of the same kernel.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets.
    values : ndarray of shape (n, m)
        The attribute.
    kernel : int, str, transformer, callable or array of shape (n, k)
        The kernel of the indicator; the reference takes the same family and standardisation. One
        without a degree is its own reference.
    relative : bool or int, default=True
        Degree of the reference in the L1 norm; True is 1.
    weight : ndarray of shape (n,), default=None
        Positive weights.
    norm : {"l1", "sd", "adjusted_sd"}, default="l1"
        The norm of the indicator; see :func:`gedi`.
    covariates : ndarray of shape (n, p), default=None
        What the indicator is conditional on.
    size : float, default=None
        Number of rows that the weights stand for.

    Returns
    -------
    float
        Exactly 0.0 where it counts as zero.
    """
    kernel = resolve_kernel(kernel)
    if norm == "l1":
        kernel = kernel_of_degree(kernel, int(relative))
    design = fit_resolved(kernel, values, weight, target=y).beside(covariates)
    return KernelIndicator(design, norm, size).reference(y)


def check_relative(relative: Any, norm: str) -> None:
    """Refuse a degree beside a norm in units of y, whose reference is that of the same kernel.

    Raises
    ------
    ValueError
    """
    if norm != "l1" and not isinstance(relative, (bool, np.bool_)):
        raise ValueError(
            f"relative={relative!r} was given together with norm={norm!r}, where a relative value "
            "is a share of the indicator of y with the same kernel: pass True or False."
        )


def positive_unit(reference: float) -> float:
    """Return a reference that values are divided by; refuse 0.

    Raises
    ------
    ValueError
    """
    if not reference > 0.0:
        raise ValueError(
            f"relative: the indicator of y_true is {reference:g}, so a share of it is undefined. "
            "Pass relative=False, and an absolute threshold if there is one."
        )
    return reference


INDICATOR_CONSTRAINTS: dict = {"kernel": [*KERNEL_CONSTRAINTS, "array-like"]}
# True is degree 1.
RELATIVE = ["boolean", Interval(Integral, 0, None, closed="left")]


GEDI_CONSTRAINTS: dict = {
    **TARGET_CONSTRAINTS,
    **INDICATOR_CONSTRAINTS,
    "relative": RELATIVE,
    "norm": [StrOptions(set(NORMS))],
    "conditional_on": ["array-like", None],
    **NOTION_PARAMETERS,
    "on": [StrOptions({"predictions", "residuals", "distribution"})],
}


@validate_params(GEDI_CONSTRAINTS, prefer_skip_nested_validation=True)
def gedi(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = 1,
    relative: bool | int = False,
    norm: str = "l1",
    conditional_on: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    subset: Any = None,
    on: str = "predictions",
) -> float:
    r"""Generalized Disparate Impact of targets or predictions; 0 is best.

    With F̃ the centred kernel of the attribute and y the measured values,

    .. math:: \mathrm{GeDI} = \|\tilde\alpha\|_1, \qquad
        \tilde\alpha = \arg\min_\alpha \|\tilde F \alpha - \tilde y\|_2 .

    At degree 1 it is ``|cov(x, y)| / var(x)``: the change of y for one unit of the attribute.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Original targets: numbers, booleans, or labels together with `pos_label`.
    y_pred : array-like of shape (n,), default=None
        Predictions. None measures `y_true` itself. Beside labels: labels, or scores in [0, 1].
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute; several columns are measured jointly, interactions included.
        Columns of text and pandas categories are categorical: one indicator for each level but
        the first in sorted order, to which the others are compared.
    kernel : int, str, transformer, callable or array of shape (n, k), default=1
        The functions of the attribute whose influence counts: the polynomial of that degree, an
        object such as ``FourierKernel(2)``, or the name of one with its default parameters,
        "polynomial", "fourier" or "spline" (``gedi_sklearn.kernels.NAMED_KERNELS``).
        ``PolynomialKernel(degree, standardize=True)`` makes the value independent of the
        attribute's unit and origin, and is recommended at degree 2 and above. A callable gets
        the attribute, as (n,) or (n, m), and is applied to blocks of rows.
    relative : bool or int, default=False
        Divide by the indicator of `y_true` at this degree; True is 1, the paper's "GeDI %". A
        kernel without a degree is divided by its own value of `y_true` (a spline takes True only),
        and so is every kernel beside a `norm` in units of y, which takes True or False only.
    norm : {"l1", "sd", "adjusted_sd"}, default="l1"
        "l1" is the paper's indicator, ‖α̃‖₁. "sd" is its unit-free companion ‖F̃α̃‖/√n, the
        standard deviation of the part of y that is in the kernel's span: in units of y, the same
        for every unit of the attribute, and never smaller at a higher degree. "adjusted_sd"
        removes what chance contributes to it, as the adjusted R² does.
    conditional_on : array-like of shape (n,) or (n, p), default=None
        Covariates that may explain the targets legitimately: kernel and targets are residualised
        on them (and a constant) by least squares, so that what is left is measured. Text and
        categories become indicators.
    pos_label : object, default=None
        The label that counts as 1 (all others as 0); needed for text and categories.
    sample_weight : array-like of shape (n,), default=None
        Weights; rows of weight 0 are left out.
    subset : "positive", class or callable, default=None
        Rows that are measured, by their original target: those of `pos_label`, or of 1 (equal
        opportunity), of a class, or where a callable of `y_true` returns True. None is all.
    on : {"predictions", "residuals", "distribution"}, default="predictions"
        What is measured: predictions, or predictions minus targets (error parity). Beside
        residuals and a subset, `relative` must be False: the targets are constant there.
        "distribution" is of the share of rows above a cut, the largest over every cut, in
        ``norm="sd"``: 0.05 is a deviation of five points, and 0.5 the most that there can be.

    Returns
    -------
    float
        At least 0, in units of y per unit of the kernel's columns. NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, where the attribute is constant or
        the reference of `relative` is 0.

    Raises
    ------
    RankDeficientKernelError
        If the kernel's columns are linearly dependent, e.g. where the attribute has no more
        distinct values than the degree.
    TooManyGroupsError
        If `conditional_on` is given beside text of thousands of levels, whose means need no matrix
        otherwise.
    ValueError
        If values are missing or infinite, or lengths differ.

    Warns
    -----
    AttributeScaleWarning
        If a raw attribute in an unfavourable unit is measured at degree 2 or above.
    IllConditionedKernelWarning
        If the rounding error of the value may be visible.
    UserWarning
        If an attribute of text or categories has more than half as many levels as rows.

    See Also
    --------
    gedi_coefficients : The coefficients themselves.
    gedi_inference : Whether it is chance, and between which limits it is.
    didi : For categorical attributes.

    References
    ----------
    L. Giuliani, E. Misino, M. Lombardi (2023): Generalized Disparate Impact for Configurable
    Fairness Solutions in ML. ICML, definitions 3.1 to 3.3.

    Examples
    --------
    >>> from gedi_sklearn.metrics import gedi
    >>> age = [20, 30, 40, 50]
    >>> gedi([1.0, 2.0, 3.0, 4.0], sensitive_features=age)
    0.1
    >>> gedi([1.0, 2.0, 3.0, 4.0], [1.0, 1.5, 2.0, 2.5], sensitive_features=age, relative=True)
    0.5
    """
    rows = (y_true, y_pred, sensitive_features, sample_weight, pos_label)
    try:
        fitted = fit_arguments(rows, kernel, relative, norm, conditional_on, subset, on)
    except RankDeficientKernelError as error:
        return undefined_if_constant(error, conditional=conditional_on is not None)
    if fitted is None:
        return float("nan")
    sample = fitted.sample
    value = fitted.indicator.measure(sample.target)
    if np.isnan(value):
        of_weights = "" if sample.total is None else ", the sum of sample_weight"
        return undefined(
            f"norm={norm!r} needs more rows than kernel columns and covariates. A weight counts as "
            f"that many rows there: they are {sample.size:.4g}{of_weights}."
        )
    return ratio(value, fitted.reference(relative)) if relative else value


@validate_params(
    {
        "y": ["array-like"],
        "sensitive_features": TARGET_CONSTRAINTS["sensitive_features"],
        "sample_weight": TARGET_CONSTRAINTS["sample_weight"],
    }
    | INDICATOR_CONSTRAINTS
    | {"return_names": ["boolean"]},
    prefer_skip_nested_validation=True,
)
def gedi_coefficients(
    y: Any,
    *,
    sensitive_features: Any,
    kernel: Any = 1,
    pos_label: Any = None,
    sample_weight: Any = None,
    return_names: bool = False,
) -> np.ndarray | tuple[np.ndarray, list[str]]:
    r"""Coefficients α̃ of the kernel's columns, whose L1 norm is the indicator.

    Parameters
    ----------
    y : array-like of shape (n,)
        Targets or predictions: numbers, booleans, or labels together with `pos_label`.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute.
    kernel : int, str, transformer, callable or array of shape (n, k), default=1
        The functions of the attribute whose influence counts; see :func:`gedi`.
    pos_label : object, default=None
        The label that counts as 1; needed for text and categories.
    sample_weight : array-like of shape (n,), default=None
        Weights; rows of weight 0 are left out.
    return_names : bool, default=False
        Whether to return the terms as well.

    Returns
    -------
    coefficients : ndarray of shape (k,)
        One coefficient per column; NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, where the attribute is constant.
    names : list of str
        The term that each belongs to, e.g. "age^2", "age sex=Male"; only with `return_names`.

    Raises
    ------
    RankDeficientKernelError
        If the kernel's columns are linearly dependent.

    See Also
    --------
    gedi : The indicator.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.metrics import gedi_coefficients
    >>> x = np.linspace(-1, 1, 41)
    >>> gedi_coefficients(2 * x - x**2, sensitive_features=x, kernel=2).round(9)
    array([ 2., -1.])
    """
    sample = check_sample(y, None, sensitive_features, sample_weight, pos_label)
    try:
        design = fit_gedi(sample, kernel).indicator.design
    except RankDeficientKernelError as error:
        missing = undefined_if_constant(error)
        names = list_columns(kernel, sample.values, names=sample.names)
        coefficients = np.full(len(names), missing)
    else:
        names, coefficients = design.fitted.names, design.checked_coefficients(sample.target)
    return (coefficients, names) if return_names else coefficients


class FittedGedi(NamedTuple):
    """GeDI, or a form of it, on a checked sample.

    Attributes
    ----------
    sample : Sample
        The sample.
    kernel : transformer, callable or ndarray
        The kernel, unfitted.
    covariates : ndarray of shape (n, p) or None
        What it is conditional on.
    indicator : KernelIndicator
        The indicator on the rows of the sample.
    groups : ndarray of shape (n,) or None
        Clusters of its rows.
    """

    sample: Sample
    kernel: Any
    covariates: np.ndarray | None
    indicator: KernelIndicator
    groups: np.ndarray | None = None

    def reference(self, relative: bool | int) -> float:
        """Return the indicator of the original targets at the degree `relative`."""
        known = self.indicator.reference_of_degree(self.sample.y_true, int(relative))
        if known is not None:
            return known
        return reference_disparity(
            self.sample.y_true,
            self.sample.values,
            kernel=self.kernel,
            relative=relative,
            weight=self.sample.weight,
            norm=self.indicator.norm,
            covariates=self.covariates,
            size=self.sample.size,
        )

    def unit(self, relative: bool | int) -> float:
        """Return what values are divided by: the reference, or 1.

        Raises
        ------
        ValueError
            If the reference is 0.
        """
        return positive_unit(self.reference(relative)) if relative else 1.0


def fit_arguments(
    rows: tuple[Any, Any, Any, Any, Any],
    kernel: Any,
    relative: bool | int,
    norm: str,
    conditional_on: Any,
    subset: Any,
    on: str,
    groups: Any = None,
) -> FittedGedi | None:
    """Check the arguments of :func:`gedi`, and fit its kernel; see :func:`fit_gedi`.

    Parameters
    ----------
    rows : tuple
        Targets, predictions, attribute, weights and the positive label, for :func:`check_sample`.
    kernel, relative, norm, conditional_on, subset, on
        As in :func:`gedi`.
    groups : array-like of shape (n,), default=None
        Clusters of rows.

    Returns
    -------
    FittedGedi or None
        None, with a warning, where a subset holds no row.
    """
    check_relative(relative, norm)
    check_notion(subset, on, relative)
    if on == "distribution":
        check_cuts(norm, conditional_on, groups)
    y_true, *others, pos_label = rows
    given = on_subset(subset, y_true, pos_label, *others, conditional_on, kernel, groups)
    if given is None:
        return None
    y_true, y_pred, values, weight, conditional_on, kernel, groups = given
    sample = check_sample(y_true, y_pred, values, weight, pos_label, on=on)
    fitted = fit_gedi(sample, kernel, norm, conditional_on)
    if on == "distribution":
        return fitted._replace(indicator=CutsIndicator(fitted.indicator.design))
    if groups is None:
        return fitted
    return fitted._replace(groups=sample.select(check_groups(groups), "groups"))


def fit_gedi(
    sample: Sample, kernel: Any, norm: str = "l1", conditional_on: Any = None
) -> FittedGedi:
    """Fit the kernel of a public function, with warnings about unsuitable attributes.

    Parameters
    ----------
    sample : Sample
        The sample.
    kernel, norm, conditional_on
        As in :func:`gedi`.

    Returns
    -------
    FittedGedi

    Raises
    ------
    RankDeficientKernelError
        If the kernel's columns are linearly dependent (`is_constant` where the attribute is).
    """
    kernel = resolve_kernel(kernel)
    if isinstance(kernel, np.ndarray):
        kernel = sample.select(kernel, "kernel")
    covariates = _checked_covariates(conditional_on, sample)
    warn_many_levels(sample.values)
    design = fit_resolved(kernel, sample.values, sample.weight, sample.names, sample.target)
    if norm == "l1":  # the others do not depend on the attribute's unit
        warn_attribute_scale(design)
    indicator = KernelIndicator(design.beside(covariates), norm, sample.size)
    return FittedGedi(sample, kernel, covariates, indicator)


def _checked_covariates(conditional_on: Any, sample: Sample) -> np.ndarray | None:
    """Return the covariates as numbers, on the rows of the sample; categories as indicators."""
    if conditional_on is None:
        return None
    n_samples = len(sample.target) if sample.kept is None else len(sample.kept)
    array = check_attribute(conditional_on, n_samples, kind="mixed", name="conditional_on")
    array = sample.select(array, "conditional_on")
    return array if array.dtype.kind == "f" else AttributeEncoder(array).transform(array)
