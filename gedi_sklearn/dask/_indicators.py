"""Indicators of Dask collections, from sums that are reduced along a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask import compute, delayed
from sklearn.base import clone

from .._validation import (
    check_attribute,
    check_group_codes,
    check_labels,
    check_numbers,
    check_same_length,
    check_sample_weight,
)
from ..metrics import GediAccumulator, GediInference, spread_rows
from ..metrics import didi as didi_of_rows
from ._collections import row_blocks_of, tree

# Sums that are merged by one task, and rows that fix the scale of the kernel.
_WIDTH, _N_REFERENCE = 8, 1000
# Up to this many different rows of group and targets, they are counted rather than averaged.
_MOST_COUNTED = 10_000


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
        parts = [delayed(_some_rows)(block["sensitive_features"], n_rows) for block in blocks]
        reference = _joined([part for part in compute(*parts) if len(part)])
    empty = GediAccumulator(kernel, reference=reference, pos_label=pos_label)
    sums = [delayed(_sum_up)(empty, block) for block in blocks]
    while len(sums) > 1:
        sums = [delayed(_merge)(run) for run in tree(sums, _WIDTH)]
    return compute(*sums)[0]


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
    """Tell what GeDI of Dask collections is by chance, and its upper limit.

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
        raise ValueError("sample_weight is zero in every row, or all blocks are empty.")
    if any(is_averaged for is_averaged, _ in tables):
        task = "regression"
    joined = {name: _joined([table[name] for _, table in tables]) for name in tables[0][1]}
    return didi_of_rows(
        joined["y_true"],
        joined.get("y_pred"),
        sensitive_features=joined["groups"],
        sample_weight=joined["weight"],
        relative=relative,
        task=task,
        pos_label=pos_label,
    )


def _some_rows(values: Any, n_rows: int) -> Any:
    """Return rows spread over a block, extremes of numbers and each level among them."""
    if not len(values):
        return values
    checked = check_attribute(values, None, kind="mixed", name="sensitive_features")
    positions = spread_rows(checked, n_rows)
    return values.iloc[positions] if hasattr(values, "iloc") else values[positions]


def _joined(parts: list[Any]) -> Any:
    """Return blocks of rows as one; frames stay frames."""
    if not parts:
        raise ValueError("sensitive_features is empty: all blocks have no rows.")
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    return np.concatenate(parts)


def _has_rows(block: dict[str, Any]) -> bool:
    """Tell whether a block has rows that count."""
    weight = block["sample_weight"]
    return len(block["y_true"]) > 0 and (weight is None or bool(np.any(np.asarray(weight) != 0)))


def _sum_up(empty: GediAccumulator, block: dict[str, Any]) -> GediAccumulator:
    """Return the sums of a block."""
    sums: GediAccumulator = clone(empty)
    return sums.update(**block) if _has_rows(block) else sums


def _merge(run: list[GediAccumulator]) -> GediAccumulator:
    first: GediAccumulator = clone(run[0])
    for other in run:
        first.merge(other)
    return first


def _count_groups(block: dict[str, Any], task: str) -> tuple[bool, dict[str, Any]] | None:
    """Return one row for equal rows of a block, weighted by their number; None if none counts.

    Of many different targets each group's mean stands for them: a disparity depends on no more.
    """
    if not _has_rows(block):
        return None
    groups = check_attribute(block["sensitive_features"], None, kind="groups")
    weight = check_sample_weight(block["sample_weight"], len(groups))
    weight = np.ones(len(groups)) if weight is None else weight
    codes, group_values = check_group_codes(groups)
    targets = {
        name: check_labels(block[name], name)
        for name in ("y_true", "y_pred")
        if block[name] is not None
    }
    check_same_length(len(groups), **targets)
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
