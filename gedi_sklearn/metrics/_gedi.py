r"""Generalized Disparate Impact: how much of a target is a function of the attribute."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from .._validation import Interval, StrOptions, check_attribute, validate_params
from ..exceptions import RankDeficientKernelError
from ..kernels import (
    KERNEL_CONSTRAINTS,
    AttributeEncoder,
    ConditionalDesign,
    KernelDesign,
    fit_kernel,
    list_columns,
    resolve_kernel,
    warn_attribute_scale,
    warn_many_levels,
)
from ._inputs import (
    TARGET_CONSTRAINTS,
    Sample,
    check_sample,
    ratio,
    undefined,
    undefined_if_constant,
)
from ._reference import kernel_norm, reference_disparity

__all__ = ["gedi", "gedi_coefficients"]

INDICATOR_CONSTRAINTS: dict = {
    "kernel": [*KERNEL_CONSTRAINTS, "array-like"],
    "degree": [Interval(Integral, 1, None, closed="left")],
}


@validate_params(
    {
        **TARGET_CONSTRAINTS,
        **INDICATOR_CONSTRAINTS,
        "relative": ["boolean", Interval(Integral, 0, None, closed="left")],
        "norm": [StrOptions({"l1", "sd", "adjusted_sd"})],
        "conditional_on": ["array-like", None],
    },
    prefer_skip_nested_validation=True,
)
def gedi(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = "polynomial",
    degree: int = 1,
    relative: bool | int = False,
    norm: str = "l1",
    conditional_on: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
) -> float:
    r"""Generalized Disparate Impact of targets or predictions; 0 is best.

    With F̃ the centred kernel of the attribute and y the measured values,

    .. math:: \mathrm{GeDI} = \|\tilde\alpha\|_1, \qquad
        \tilde\alpha = \arg\min_\alpha \|\tilde F \alpha - \tilde y\|_2 .

    At degree 1 it is |cov(x, y)| / var(x): the change of y for one unit of the attribute.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Original targets: numbers, booleans, or labels together with `pos_label`.
    y_pred : array-like of shape (n,), default=None
        Predictions. None measures `y_true` itself. Beside labels: labels, or scores in [0, 1].
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute; several columns are measured jointly, interactions included.
        Columns of text and pandas categories are categorical: one indicator for every level but
        the first in sorted order, to which the others are compared.
    kernel : {"polynomial", "fourier"}, transformer, callable or array of shape (n, k), \
            default="polynomial"
        The functions of the attribute whose influence counts.
        ``PolynomialKernel(degree, standardize=True)`` makes the value independent of the
        attribute's unit and origin, and is recommended at degree 2 and above. A callable gets
        the attribute, as (n,) or (n, m), and is applied to blocks of rows.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    relative : bool or int, default=False
        Divide by the indicator of `y_true` at this degree; True is 1, the paper's "GeDI %". A
        kernel without a degree is divided by its own value of `y_true`.
    norm : {"l1", "sd", "adjusted_sd"}, default="l1"
        "l1" is the paper's indicator, ‖α̃‖₁. "sd" is its unit-free companion ‖F̃α̃‖/√n, the
        standard deviation of the part of y that is in the kernel's span: in units of y, the same
        for every unit of the attribute, and never smaller at a higher degree. "adjusted_sd"
        takes out what chance puts there, as the adjusted R² does.
    conditional_on : array-like of shape (n,) or (n, p), default=None
        Covariates that may explain the targets legitimately: kernel and targets are residualised
        on them (and a constant) by least squares, so that what is left is measured. Text and
        categories become indicators.
    pos_label : object, default=None
        The label that counts as 1 (all others as 0); needed for text and categories.
    sample_weight : array-like of shape (n,), default=None
        Weights; rows of weight 0 are left out.

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
    ValueError
        If values are missing or infinite, or lengths differ.

    Warns
    -----
    AttributeScaleWarning
        Where a raw attribute meets degree 2 or more in an unfavourable unit.
    IllConditionedKernelWarning
        Where rounding may show in the value.
    UserWarning
        Where an attribute of text or categories has more than half as many levels as rows.

    See Also
    --------
    gedi_coefficients : The coefficients themselves.
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
    sample = check_sample(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        pos_label=pos_label,
        attribute="mixed",
    )
    kernel = checked_kernel(kernel, degree, sample)
    covariates = checked_covariates(conditional_on, sample)
    try:
        design = fit_design(kernel, sample, covariates)
    except RankDeficientKernelError as error:
        return undefined_if_constant(error, conditional=covariates is not None)
    if norm == "l1":
        value = float(np.abs(design.checked_coefficients(sample.target)).sum())
    else:
        value = kernel_norm(design, sample.target, norm, sample.size)
    if np.isnan(value):
        return undefined(f"norm={norm!r} needs more rows than kernel columns and covariates.")
    if not relative:
        return value
    reference = reference_disparity(
        sample.y_true,
        sample.values,
        kernel=kernel,
        relative=relative,
        weight=sample.weight,
        norm=norm,
        covariates=covariates,
        size=sample.size,
    )
    return ratio(value, reference)


@validate_params(
    {
        "y": ["array-like"],
        "sensitive_features": TARGET_CONSTRAINTS["sensitive_features"],
        "sample_weight": TARGET_CONSTRAINTS["sample_weight"],
        **INDICATOR_CONSTRAINTS,
        "return_names": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def gedi_coefficients(
    y: Any,
    *,
    sensitive_features: Any,
    kernel: Any = "polynomial",
    degree: int = 1,
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
    kernel : {"polynomial", "fourier"}, transformer, callable or array of shape (n, k), \
            default="polynomial"
        The functions of the attribute whose influence counts; see :func:`gedi`.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    pos_label : object, default=None
        The label that counts as 1; needed for text and categories.
    sample_weight : array-like of shape (n,), default=None
        Weights; rows of weight 0 are left out.

    return_names : bool, default=False
        Whether to return the terms as well.

    Returns
    -------
    coefficients : ndarray of shape (k,)
        One coefficient a column; NaN, with
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
    >>> gedi_coefficients(2 * x - x**2, sensitive_features=x, degree=2).round(9)
    array([ 2., -1.])
    """
    sample = check_sample(
        y,
        None,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        pos_label=pos_label,
        attribute="mixed",
    )
    kernel = checked_kernel(kernel, degree, sample)
    try:
        design = fit_design(kernel, sample)
    except RankDeficientKernelError as error:
        missing = undefined_if_constant(error)
        names = list_columns(kernel, sample.values, names=sample.names)
        coefficients = np.full(len(names), missing)
    else:
        names, coefficients = design.fitted.names, design.checked_coefficients(sample.target)
    return (coefficients, names) if return_names else coefficients


def checked_kernel(kernel: Any, degree: int, sample: Sample) -> Any:
    """Return the unfitted kernel; a precomputed one with the rows of the sample."""
    kernel = resolve_kernel(kernel, degree)
    return sample.select(kernel, "kernel") if isinstance(kernel, np.ndarray) else kernel


def checked_covariates(conditional_on: Any, sample: Sample) -> np.ndarray | None:
    """Return the covariates as numbers, on the rows of the sample; categories as indicators."""
    if conditional_on is None:
        return None
    n_samples = len(sample.target) if sample.kept is None else len(sample.kept)
    array = check_attribute(conditional_on, n_samples, kind="mixed", name="conditional_on")
    array = sample.select(array, "conditional_on")
    return array if array.dtype.kind == "f" else AttributeEncoder(array).transform(array)


def fit_design(kernel: Any, sample: Sample, covariates: np.ndarray | None = None) -> KernelDesign:
    """Fit the kernel of a public function, which warns once of an unfavourable attribute."""
    warn_many_levels(sample.values)
    design = fit_kernel(
        kernel, sample.values, weight=sample.weight, names=sample.names, target=sample.target
    )
    warn_attribute_scale(design)
    return design if covariates is None else ConditionalDesign(design, covariates)
