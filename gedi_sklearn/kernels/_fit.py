"""From the parameter `kernel` and the attribute's rows to a fitted design."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from .._validation import check_group_codes, check_numbers
from ..exceptions import AttributeScaleWarning, RankDeficientKernelError, warn_caller
from ._basis import Basis, ColumnBasis, KernelColumns, PolynomialBasis, SplineBasis, column_names
from ._categories import AttributeEncoder, GroupEncoder, LevelEncoder, MixedPolynomialKernel
from ._design import Design
from ._factorization import factorize, sampled
from ._fitted import FittedKernel
from ._indicators import IndicatorKernel
from ._moments import weighted_moments
from ._named import is_named_type, resolve_kernel
from ._transformers import PolynomialKernel, SplineKernel

# How many times larger than another one an attribute's deviation is that is in an unlike unit.
_UNLIKE_UNITS = 10.0


def fit_kernel(
    kernel: Any,
    values: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    names: list[str] | None = None,
    target: np.ndarray | None = None,
) -> Design:
    """Fit a kernel on rows of positive weight.

    Parameters
    ----------
    kernel : str, transformer, callable or array of shape (n, k)
        What :func:`resolve_kernel` accepts.
    values : ndarray of shape (n, m)
        The attribute. Columns that hold text are categorical: one indicator for each level but
        the first in sorted order.
    weight : ndarray of shape (n,), default=None
        Positive weights of any sum.
    names : list of str, default=None
        Names of the attributes.
    target : ndarray of shape (n,), default=None
        A target whose coefficients will be requested: with many rows it saves a pass over them.

    Returns
    -------
    Design

    Raises
    ------
    RankDeficientKernelError
        If the kernel's columns are linearly dependent on these rows (rank 0: all constant).
    """
    design = fit_resolved(resolve_kernel(kernel), values, weight, names, target)
    known = design.points
    design.fitted.range_ = np.array([known.min(axis=0), known.max(axis=0)])
    return design


def fit_resolved(
    kernel: Any,
    values: np.ndarray,
    weight: np.ndarray | None,
    names: list[str] | None = None,
    target: np.ndarray | None = None,
) -> Design:
    """Fit what :func:`resolve_kernel` has returned, itself; see :func:`fit_kernel`.

    It is for these rows alone: their range, which takes a pass, stays unknown.
    """
    weight = None if weight is None else weight / weight.sum()
    if not (values.dtype.kind in "OUS" and is_named_type(kernel)):
        return _fit_rows(kernel, values, weight, names, target)
    if values.shape[1] == 1:
        return _fit_levels(kernel, values, weight, names)
    encoder = AttributeEncoder(values, names)
    kernel = _categorical_kernel(kernel, encoder)
    if encoder.is_indicator.all():
        codes, groups = check_group_codes(values)
        design = _fit_by_group(kernel, encoder.transform(groups), codes, weight, encoder.names)
    else:
        design = _fit_rows(kernel, encoder.transform(values), weight, encoder.names, target)
    design.fitted.encoder, design.fitted.n_attributes = encoder, values.shape[1]
    return design


def _fit_levels(
    kernel: Any, values: np.ndarray, weight: np.ndarray | None, names: list[str] | None
) -> Design:
    """Fit a named kernel on one attribute of text: the indicators of its levels, in closed form."""
    encoder = LevelEncoder(values, names)
    _categorical_kernel(kernel, encoder)  # refuses what levels are not measured by
    codes = encoder.transform(values)[:, 0].astype(int)
    design = fit_codes(codes, weight=weight, names=encoder.names)
    design.fitted.encoder = encoder
    return design


def _fit_by_group(
    kernel: Any,
    groups: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray | None,
    names: list[str] | None = None,
) -> Design:
    """Fit a kernel on numbers, one row of them per group of rows."""
    total = np.bincount(codes, weights=weight)
    return _fit_rows(kernel, groups, total / total.sum(), names).on_groups(codes, weight)


def _fit_rows(
    kernel: Any,
    values: np.ndarray,
    weight: np.ndarray | None,
    names: list[str] | None = None,
    target: np.ndarray | None = None,
) -> Design:
    """Fit a resolved kernel on numbers; weights sum to 1."""
    n_attributes, some = values.shape[1], None if weight is None else sampled(weight)
    if isinstance(kernel, PolynomialKernel):
        if kernel.degree >= len(values):  # whatever they are, there are too few
            n_distinct = len(check_group_codes(values)[1])
            raise RankDeficientKernelError.from_rank(n_distinct - 1, kernel.degree, n_distinct)
        kernel.fit_checked(values, weight)
        basis: Basis = PolynomialBasis(kernel, sampled(values), some)
        n_columns = len(kernel.powers_)
    else:
        if isinstance(kernel, np.ndarray):
            kernel, values = None, check_numbers(kernel, "kernel")
            n_attributes = values.shape[1]
        elif is_named_type(kernel):
            kernel.fit_checked(values, weight)
        elif hasattr(kernel, "fit"):
            accepts = has_fit_parameter(kernel, "sample_weight")
            kernel.fit(values, **({"sample_weight": weight} if accepts else {}))
        columns_of = KernelColumns(kernel)
        columns = columns_of(sampled(values))
        kind = SplineBasis if isinstance(kernel, SplineKernel) else ColumnBasis
        basis = kind(columns_of, *weighted_moments(columns, some))
        n_columns = columns.shape[1]
    fitted = FittedKernel(kernel, basis, column_names(kernel, n_columns, names), n_attributes)
    design = Design(fitted, values, weight)
    factorize(design, target)
    return design


def fit_groups(values: np.ndarray, *, weight: np.ndarray | None = None) -> Design:
    """Fit the indicators of all groups but the first.

    Parameters
    ----------
    values : ndarray of shape (n, m)
        The attributes, of any type; rows that agree in all of them are a group.
    weight : ndarray of shape (n,), default=None
        Positive weights of any sum.

    Returns
    -------
    Design
        Its values are the numbers of the groups, its encoder knows their labels.

    Raises
    ------
    RankDeficientKernelError
        With rank 0, if there is one group.
    """
    encoder = GroupEncoder(values)
    if len(encoder.groups) < 2:
        raise RankDeficientKernelError.from_rank(0, 0, 1)
    codes = encoder.transform(values)[:, 0].astype(int)
    design = fit_codes(codes, weight=weight, names=encoder.groups[1:])
    design.fitted.encoder, design.fitted.n_attributes = encoder, values.shape[1]
    return design


def fit_codes(
    codes: np.ndarray, *, weight: np.ndarray | None = None, names: list[str] | None = None
) -> Design:
    """Fit the indicators of the groups 1…g−1.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The group of each row; each group 0…g−1 has one.
    weight : ndarray of shape (n,), default=None
        Positive weights of any sum.
    names : list of str, default=None
        Names of the groups 1…g−1.

    Returns
    -------
    Design
    """
    weight = None if weight is None else weight / weight.sum()
    total = np.bincount(codes, weights=weight)
    fitted = IndicatorKernel(total / total.sum(), names)
    numbers = np.arange(float(len(total)))[:, None]
    return Design(fitted, numbers, fitted.weights).on_groups(codes, weight)


def _categorical_kernel(
    kernel: Any, encoder: AttributeEncoder
) -> MixedPolynomialKernel | SplineKernel:
    """Return the kernel that a named one becomes where attributes are categorical."""
    if not isinstance(kernel, (PolynomialKernel, SplineKernel)):
        raise ValueError(
            f"{type(kernel).__name__} needs numbers, and sensitive_features holds text. Use a "
            "polynomial or spline kernel, which measures every level against the first one."
        )
    if not encoder.names:
        raise RankDeficientKernelError.from_rank(0, 0, 1)
    if isinstance(kernel, SplineKernel):
        # Indicators of levels are splines already; a number needs those of its own.
        return MixedPolynomialKernel(encoder=encoder) if encoder.is_indicator.all() else kernel
    degree = kernel.degree
    if encoder.is_indicator.all():
        # No monomial has more factors than there are attributes, and many levels make a long list.
        degree = min(degree, len(encoder.levels))
    return MixedPolynomialKernel(degree, standardize=kernel.standardize, encoder=encoder)


def warn_attribute_scale(design: Design, *, is_joint_bound: bool = False) -> None:
    """Warn once if a polynomial takes attributes in units that its coefficients should not be in.

    Parameters
    ----------
    design : Design
        The kernel on the rows.
    is_joint_bound : bool, default=False
        Whether one number bounds the sum of the coefficients of all attributes.
    """
    kernel = design.fitted.kernel
    if not isinstance(kernel, PolynomialKernel) or kernel.standardize:
        return
    basis: Any = design.fitted.basis
    numeric = ~np.broadcast_to(basis.is_indicator, basis.mean.shape)
    means, scales = basis.mean[numeric], basis.scale[numeric]
    # Levels have the deviation of a group of half the rows.
    units = [*scales.tolist(), *([] if numeric.all() else [0.5])]
    if is_joint_bound and max(units) > _UNLIKE_UNITS * min(units):
        warn_caller(AttributeScaleWarning.from_unlike_units(units))
        return
    if kernel.degree < 2:
        return
    for mean, scale in zip(means, scales, strict=True):
        if not 0.3 <= scale <= 3 or abs(mean) > 3 * scale:
            warn_caller(AttributeScaleWarning.from_moments(mean, scale, kernel.degree))
            return


def list_columns(kernel: Any, values: np.ndarray, *, names: list[str] | None = None) -> list[str]:
    """Return the names of a kernel's columns, whether or not they are independent on these rows."""
    kernel = resolve_kernel(kernel)
    if isinstance(kernel, np.ndarray):
        return column_names(None, kernel.shape[1])
    if values.dtype.kind in "OUS" and isinstance(kernel, (PolynomialKernel, SplineKernel)):
        encoder = AttributeEncoder(values, names)
        if not encoder.names:
            return []
        kernel = _categorical_kernel(kernel, encoder)
        values, names = encoder.transform(values), encoder.names
    if hasattr(kernel, "fit"):
        kernel.fit(values)
    return column_names(kernel, KernelColumns(kernel)(values).shape[1], names)
