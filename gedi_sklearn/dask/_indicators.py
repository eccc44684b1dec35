"""Indicators of Dask collections, from sums that are reduced along a tree."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from dask import compute, delayed
from sklearn.base import clone

from .._validation import (
    Level,
    attribute_columns,
    check_attribute,
    check_group_codes,
    check_labels,
    check_levels,
    check_numbers,
    check_same_length,
    check_sample_weight,
    is_text,
)
from ..exceptions import RankDeficientKernelError
from ..metrics import GediAccumulator, GediInference, spread_rows, undefined_if_constant
from ..metrics import didi as didi_of_rows
from ._collections import row_blocks_of, tree

# Sums that are merged by one task, and rows that fix the scale of the kernel.
_WIDTH, _N_REFERENCE = 8, 1000
# Up to this many different rows of group and targets, they are counted rather than averaged.
_MOST_COUNTED = 10_000
_NO_ROWS = "sample_weight is zero in every row, or there are no rows; at least one must count."


def accumulate(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = 1,
    reference: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
) -> GediAccumulator:
    """Sum up all rows of Dask collections.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight : Dask array, series or frame
        As in :func:`gedi_sklearn.metrics.gedi`.
    kernel, pos_label
        As in :func:`gedi_sklearn.metrics.gedi`.
    reference : array-like of shape (r,) or (r, m), default=None
        Values that fix the scale of the kernel; see :class:`GediAccumulator`. None takes rows of
        every block, which reads the attribute once more.

    Returns
    -------
    GediAccumulator
        In memory: with it all indicators of the kernel follow, whatever their norm.

    Raises
    ------
    ValueError
        If all blocks are empty, values are missing, or the collections do not fit together.
    """
    blocks = row_blocks_of(
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
    )
    if reference is None:
        n_rows = max(2, _N_REFERENCE // len(blocks))
        parts = compute(*(delayed(_some_rows)(block, n_rows) for block in blocks))
        reference = _reference(parts, attribute_columns(sensitive_features))
    empty = GediAccumulator(kernel, reference=reference, pos_label=pos_label)
    sums = [delayed(_sum_up)(empty, block) for block in blocks]
    while len(sums) > 1:
        sums = [delayed(_merge)(run) for run in tree(sums, _WIDTH)]
    whole = compute(*sums)[0]
    if not whole.n_rows_:
        raise ValueError(_NO_ROWS)
    return whole


def gedi(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = 1,
    relative: bool | int = False,
    norm: str = "l1",
    reference: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
) -> float:
    """Generalized Disparate Impact of Dask collections; 0 is best.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight : Dask array, series or frame
        As in :func:`gedi_sklearn.metrics.gedi`.
    kernel, relative, norm, pos_label
        As in :func:`gedi_sklearn.metrics.gedi`.
    reference : array-like of shape (r,) or (r, m), default=None
        Values that fix the scale of the kernel; see :func:`accumulate`.

    Returns
    -------
    float
        NaN, with :class:`sklearn.exceptions.UndefinedMetricWarning`, as there.
    """
    try:
        sums = accumulate(
            y_true,
            y_pred,
            sensitive_features=sensitive_features,
            kernel=kernel,
            reference=reference,
            pos_label=pos_label,
            sample_weight=sample_weight,
        )
    except RankDeficientKernelError as error:
        return undefined_if_constant(error)
    return sums.gedi(norm=norm, relative=relative)


def gedi_inference(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = 1,
    relative: bool | int = False,
    norm: str = "l1",
    confidence: float = 0.95,
    fitted: bool = False,
    n_resamples: int = 1000,
    reference: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
) -> GediInference:
    """Test GeDI of Dask collections against chance, and give its upper limit.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight : Dask array, series or frame
        As in :func:`gedi_sklearn.metrics.gedi_inference`.
    kernel, relative, norm, confidence, fitted, n_resamples, pos_label, random_state
        As in :func:`gedi_sklearn.metrics.gedi_inference`.
    reference : array-like of shape (r,) or (r, m), default=None
        Values that fix the scale of the kernel; see :func:`accumulate`.

    Returns
    -------
    GediInference
        That of :meth:`gedi_sklearn.metrics.GediAccumulator.inference`.
    """
    sums = accumulate(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        kernel=kernel,
        reference=reference,
        pos_label=pos_label,
        sample_weight=sample_weight,
    )
    return sums.inference(
        norm=norm,
        relative=relative,
        confidence=confidence,
        fitted=fitted,
        n_resamples=n_resamples,
        random_state=random_state,
    )


def didi(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    relative: bool = False,
    task: str = "auto",
    pos_label: Any = None,
    sample_weight: Any = None,
) -> float:
    """Disparate Impact Discrimination Index of Dask collections; 0 is best.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight : Dask array, series or frame
        As in :func:`gedi_sklearn.metrics.didi`.
    relative, task, pos_label
        As in :func:`gedi_sklearn.metrics.didi`. Of many different targets "auto" is regression.

    Returns
    -------
    float
    """
    blocks = row_blocks_of(
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
    )
    tables = compute(*(delayed(_count_groups)(block, task) for block in blocks))
    tables = [table for table in tables if table is not None]
    if not tables:
        raise ValueError(_NO_ROWS)
    if any(is_averaged for is_averaged, _ in tables):
        task = "regression"
    joined = {name: _joined([table[name] for _, table in tables], name) for name in tables[0][1]}
    return didi_of_rows(
        joined["y_true"],
        joined.get("y_pred"),
        sensitive_features=joined["groups"],
        sample_weight=joined["weight"],
        relative=relative,
        task=task,
        pos_label=pos_label,
    )


def _some_rows(block: dict[str, Any], n_rows: int) -> Any:
    """Return attributes spread over the rows of a block that count, extremes and levels among them.

    Categories are levels whatever other blocks hold, so that they come as text that is declared.
    """
    values = block["sensitive_features"]
    if not len(values):
        return np.empty((0, 1))
    checked = check_attribute(values, None, kind="mixed", name="sensitive_features")
    weight = check_sample_weight(block["sample_weight"], len(checked), allow_zeros=True)
    counted = checked if weight is None else checked[weight > 0]
    return counted[spread_rows(counted, n_rows)] if len(counted) else counted


def _reference(parts: Sequence[np.ndarray], columns: list[str] | None) -> Any:
    """Return the rows of all blocks as the reference; text is declared as levels from here on."""
    reference = _joined(parts, "sensitive_features")
    check_levels(reference, "sensitive_features")
    text = [is_text(column) for column in reference.T]
    reference = reference.astype(object) if any(text) else reference
    for column in itertools.compress(reference.T, text):
        column[:] = list(map(Level, column))
    if columns is None:
        return reference
    import pandas as pd

    frame = pd.DataFrame(dict(zip(columns, reference.T, strict=True)))
    kinds = zip(columns, text, strict=True)
    return frame.astype({name: "category" if own else float for name, own in kinds})


def _joined(parts: Sequence[np.ndarray], name: str) -> np.ndarray:
    """Return blocks of rows as one; groups may be of any types, others are all text or none.

    Raises
    ------
    ValueError
        If no block has rows, or one holds text where another holds numbers.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        raise ValueError(_NO_ROWS)
    kinds = {tuple(map(is_text, part.reshape(len(part), -1).T)) for part in parts}
    if len(kinds) == 1:
        return np.concatenate(parts)
    if name != "groups":
        raise ValueError(
            f"{name} holds numbers in one partition, and text or categories in another. Give all "
            "partitions one type."
        )
    return np.concatenate([part.astype(object) for part in parts])


def _sum_up(empty: GediAccumulator, block: dict[str, Any]) -> GediAccumulator:
    """Return the sums of a block, whose rows are checked even if none of them counts."""
    sums: GediAccumulator = clone(empty)
    return sums.update(**block) if len(block["y_true"]) else sums


def _merge(run: list[GediAccumulator]) -> GediAccumulator:
    first: GediAccumulator = clone(run[0])
    for other in run:
        first.merge(other)
    return first


def _count_groups(block: dict[str, Any], task: str) -> tuple[bool, dict[str, Any]] | None:
    """Return one row for equal rows of a block, weighted by their number; None if none counts.

    Of many different targets each group's mean stands for them: a disparity depends on no more.
    """
    if not len(block["y_true"]):
        return None
    groups = check_attribute(block["sensitive_features"], None, kind="groups")
    weight = check_sample_weight(block["sample_weight"], len(groups), allow_zeros=True)
    weight = np.ones(len(groups)) if weight is None else weight
    codes, group_values = check_group_codes(groups)
    targets = {
        name: check_labels(block[name], name)
        for name in ("y_true", "y_pred")
        if block[name] is not None
    }
    check_same_length(len(groups), **targets)
    if not weight.any():
        return None
    uniques = {name: np.unique(own, return_inverse=True) for name, own in targets.items()}
    row_codes, rows = check_group_codes(np.column_stack([codes, *(u[1] for u in uniques.values())]))
    is_averaged = task == "regression" or (task == "auto" and len(rows) > _MOST_COUNTED)
    table: dict[str, Any]
    if is_averaged:
        total = np.bincount(codes, weights=weight)
        table = {"groups": group_values, "weight": total}
        for name, own in targets.items():
            numbers = check_numbers(own, name, n_columns=1)
            table[name] = np.bincount(codes, weights=weight * numbers) / np.where(total, total, 1)
    else:
        table = {"groups": group_values[rows[:, 0]]}
        table["weight"] = np.bincount(row_codes, weights=weight)
        for j, (name, (values, _)) in enumerate(uniques.items()):
            table[name] = values[rows[:, j + 1]]
    return is_averaged, table
