"""From the parameter `kernel` and the attribute's rows to a fitted design."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from .._validation import check_group_codes, check_numbers
from ..exceptions import AttributeScaleWarning, RankDeficientKernelError, warn_caller
from ._columns import (
    AttributeEncoder,
    Basis,
    ColumnBasis,
    GroupEncoder,
    LevelEncoder,
    evaluate_columns,
)
from ._design import Design
from ._fitted import RANK_TOLERANCE, FittedKernel
from ._indicators import IndicatorKernel
from ._moments import BLOCK, row_blocks, sum_products
from ._transformers import AttributeKernel, is_named, resolve_kernel

# More than one block of rows is factorised from the columns' moments, up to this condition, at
# which coefficients keep nine digits. Splines of attributes with tails reach a tenth of it.
_MOMENT_CONDITION = 1e6
# Rows of a sample that a basis is standardised by, and how far from its mean, in deviations, that
# of all rows may be: within it the move costs no digits.
_SAMPLE = 1000
_NEAR = 0.25
# How many times larger than another one an attribute's deviation is that is in an unlike unit.
_UNLIKE_UNITS = 10.0


def factorize(design: Design, target: np.ndarray | None = None) -> None:
    """Find the weighted mean of the standardised columns and the factor R of their centring.

    The columns are factorised with a leading 1: the first row of the factor gives the mean, the
    rest is R. This takes one pass and no centred copy of the columns. With many rows, the factor
    is the Cholesky factor of their moments if their condition is below 1e6, else that of QR.
    """
    factor = None
    if design.n_rows > BLOCK:
        moments, products, variance = _moments(design, target)
        if are_far_from_parallel(moments, _MOMENT_CONDITION):
            factor = np.linalg.cholesky(moments).T.copy()
            if target is not None:
                design.known = (target, products, variance)
    if factor is None:
        factor = _qr_factor(design)
    # The sign of a factor's row is free; a positive diagonal makes it unique.
    factor *= np.where(np.diag(factor) < 0, -1.0, 1.0)[:, None]
    _refuse_dependent_columns(design, factor)
    design.fitted.center_, design.fitted.R_ = factor[0, 1:] / factor[0, 0], factor[1:, 1:]


def sampled(rows: np.ndarray, most: int = BLOCK) -> np.ndarray:
    """Return about 1,000 of the rows, or all where there are no more than so many."""
    return rows if len(rows) <= most else rows[:: len(rows) // _SAMPLE]


def _moments(design: Design, target: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float]:
    """Return [1, B]'W[1, B], and B'Wz̃ and z̃'Wz̃ of a target (of [1, B] without one).

    This takes one pass where a basis was standardised by a sample, and the target is centred by
    one: what is still to be subtracted follows from the sums. The basis becomes the
    one that is standardised by all rows.
    """
    k, targets = design.fitted.n_columns, [] if target is None else [target]
    with np.errstate(over="ignore", invalid="ignore"):
        sums = _sums(design, targets, np.array([sampled(z).mean() for z in targets]))
    basis = design.fitted.basis
    moving: Any = basis if basis.can_move else None
    m = 0 if moving is None else len(moving.mean)
    own = [*range(1, 1 + m), *range(1 + k, len(sums))]
    means, squares = sums[0, own], np.diag(sums)[own]
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    is_near = np.isfinite(sums).all() and (np.abs(means) <= _NEAR * deviations).all()
    if moving is not None:  # the rounding noise of a constant is no deviation
        noise = 4 * np.finfo(float).eps * np.abs(moving.mean + means[:m] * moving.scale)
        is_near &= (deviations[:m] * moving.scale > noise).all()
    if is_near:
        turn = np.eye(len(sums))
        if moving is not None:
            turn[: k + 1, : k + 1] = moving.move(means[:m], deviations[:m])
        if targets:
            turn[0, -1] = -sums[0, -1]
        sums = turn.T @ sums @ turn
    else:
        if moving is not None:
            moving.standardize_on(design.points, design.weight)
        sums = _sums(design, targets, np.array([design.mean(z) for z in targets]))
    return sums[: k + 1, : k + 1], sums[1 : k + 1, -1], float(sums[-1, -1])


def _sums(design: Design, targets: list[np.ndarray], origin: np.ndarray) -> np.ndarray:
    """Return (1, B, z)'W(1, B, z) for targets z less their origin."""
    sums = sum_products(
        design.write_columns,
        design.n_rows,
        targets,
        [design.weight],
        origin=origin,
        n_columns=design.fitted.n_columns,
        are_powers=design.fitted.is_single_polynomial,
    )[0, 0]
    return sums / design.n_rows if design.weight is None else sums


def are_far_from_parallel(moments: np.ndarray, most: float) -> bool:
    """Tell whether columns of moments (1, B)'W(1, B) have at most a condition once they are scaled.

    A Cholesky factor is invariant to their scale.
    """
    scale = np.sqrt(np.diag(moments))
    if (scale == 0).any():
        return False
    eigenvalues = np.linalg.eigvalsh(moments / np.outer(scale, scale))
    return bool(eigenvalues[0] * most >= eigenvalues[-1])


def _qr_factor(design: Design) -> np.ndarray:
    """Return the R of a QR factorisation of the columns with a leading 1, block by block."""
    k = design.fitted.n_columns
    factor: np.ndarray = np.zeros((k + 1, k + 1))
    for rows in row_blocks(design.n_rows):
        columns = design.columns(rows)
        block = np.column_stack([np.ones(len(columns)), columns])
        block *= np.sqrt(np.reshape(design.shares(rows), (-1, 1)))
        factor = np.asarray(np.linalg.qr(np.vstack([factor, block]), mode="r"))
    return factor


def _refuse_dependent_columns(design: Design, factor: np.ndarray) -> None:
    # Norms of the columns before centring: a constant column must come out as dependent.
    norms = np.linalg.norm(factor[:, 1:], axis=0)
    own = np.diag(factor)[1:]
    rank = int((own > RANK_TOLERANCE * np.where(norms == 0, 1.0, norms)).sum())
    if rank < len(own):
        n_distinct = len(check_group_codes(design.points)[1])
        raise RankDeficientKernelError.from_rank(rank, len(own), n_distinct)


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
    most_held: int = BLOCK,
) -> Design:
    """Fit what :func:`resolve_kernel` has returned, itself; see :func:`fit_kernel`.

    It is for these rows alone: their range, which takes a pass, stays unknown. The columns of no
    more than `most_held` rows are evaluated once, and stay in memory.
    """
    weight = None if weight is None else weight / weight.sum()
    if not (values.dtype.kind in "OUS" and is_named(kernel)):
        return _fit_rows(kernel, values, weight, names, target, most_held)
    if values.shape[1] == 1:
        return _fit_levels(kernel, values, weight, names)
    encoder = AttributeEncoder(values, names)
    kernel = _categorical_kernel(kernel, encoder)
    if encoder.is_indicator.all():
        codes, groups = check_group_codes(values)
        total = np.bincount(codes, weights=weight)  # a row of numbers for each group of rows
        design = _fit_rows(kernel, encoder.transform(groups), total / total.sum(), encoder.names)
        design = design.on_groups(codes, weight)
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
    return _fit_encoded(encoder, encoder.names, values, weight)


def _fit_encoded(
    encoder: Any, names: list[str], values: np.ndarray, weight: np.ndarray | None
) -> Design:
    """Fit the indicators of the groups that an encoder numbers."""
    codes = encoder.transform(values)[:, 0].astype(int)
    design = fit_codes(codes, weight=weight, names=names)
    design.fitted.encoder, design.fitted.n_attributes = encoder, values.shape[1]
    return design


def _fit_rows(
    kernel: Any,
    values: np.ndarray,
    weight: np.ndarray | None,
    names: list[str] | None = None,
    target: np.ndarray | None = None,
    most_held: int = BLOCK,
) -> Design:
    """Fit a resolved kernel on numbers; weights sum to 1."""
    n_attributes = values.shape[1]
    kind: type[Basis] = ColumnBasis
    if is_named(kernel):
        if (least := kernel.least_rows()) > len(values):  # whatever they are, there are too few
            n_distinct = len(check_group_codes(values)[1])
            raise RankDeficientKernelError.from_rank(n_distinct - 1, least - 1, n_distinct)
        kernel.fit_checked(values, weight)
        kind = kernel.basis_type
    elif isinstance(kernel, np.ndarray):
        kernel, values = None, check_numbers(kernel, "kernel")
        n_attributes = values.shape[1]
    elif hasattr(kernel, "fit"):
        _fit_transformer(kernel, values, weight)
    some = None if weight is None else sampled(weight, most_held)
    basis, known = kind.fitted(kernel, sampled(values, most_held), some)
    names = _column_names(kernel, len(basis.to_raw), names)
    fitted = FittedKernel(kernel, basis, names, n_attributes)
    design = Design(fitted, values, weight)
    if known is not None and len(known) == len(values):
        design.standardized_columns = known
    factorize(design, target)
    return design


def _fit_transformer(kernel: Any, values: np.ndarray, weight: np.ndarray | None = None) -> None:
    """Fit a transformer, with what its `fit` takes: a frozen one asks for targets."""
    given = {"y": None, "sample_weight": weight}
    kernel.fit(
        values, **{name: own for name, own in given.items() if has_fit_parameter(kernel, name)}
    )


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
    return _fit_encoded(encoder, encoder.groups[1:], values, weight)


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


def _categorical_kernel(kernel: AttributeKernel, encoder: AttributeEncoder) -> AttributeKernel:
    """Return the kernel that a named one becomes where attributes are categorical."""
    other = kernel.with_levels(encoder)
    if not encoder.names:
        raise RankDeficientKernelError.from_rank(0, 0, 1)
    return other


def warn_attribute_scale(design: Design, *, is_joint_bound: bool = False) -> None:
    """Warn once if a polynomial takes attributes in units that its coefficients should not be in.

    Parameters
    ----------
    design : Design
        The kernel on the rows.
    is_joint_bound : bool, default=False
        Whether one number bounds the sum of the coefficients of all attributes.
    """
    degree, means, units = design.fitted.basis.attribute_units()
    if not degree:
        return
    if is_joint_bound and units.max() > _UNLIKE_UNITS * units.min():
        warn_caller(AttributeScaleWarning.from_unlike_units(units.tolist()))
        return
    if degree < 2:
        return
    for mean, scale in zip(means, units, strict=True):
        if not 0.3 <= scale <= 3 or abs(mean) > 3 * scale:
            warn_caller(AttributeScaleWarning.from_moments(mean, scale, degree))
            return


def list_columns(kernel: Any, values: np.ndarray, *, names: list[str] | None = None) -> list[str]:
    """Return the names of a kernel's columns, whether or not they are independent on these rows."""
    kernel = resolve_kernel(kernel)
    if isinstance(kernel, np.ndarray):
        return _column_names(None, kernel.shape[1])
    if values.dtype.kind in "OUS" and is_named(kernel):
        encoder = AttributeEncoder(values, names)
        if not encoder.names:
            return []
        kernel = _categorical_kernel(kernel, encoder)
        values, names = encoder.transform(values), encoder.names
    if hasattr(kernel, "fit"):
        _fit_transformer(kernel, values)
    return _column_names(kernel, evaluate_columns(kernel, values).shape[1], names)


def _column_names(kernel: Any, n_columns: int, names: list[str] | None = None) -> list[str]:
    """Return the names of a kernel's columns, built from those of the attributes if it can."""
    if is_named(kernel):
        return list(map(str, kernel.column_names(names)))
    with suppress(AttributeError):  # steps of a pipeline may have no names
        return list(map(str, kernel.get_feature_names_out()))
    return [f"f{j}" for j in range(1, n_columns + 1)]
