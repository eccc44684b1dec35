r"""Disparate impact over the groups, or the bins, of an attribute."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from .._validation import (
    NOTION_PARAMETERS,
    Interval,
    StrOptions,
    check_group_codes,
    check_notion,
    check_numbers,
    check_numbers_or_inf,
    check_sample_weight,
    is_text,
    target_kind,
    validate_params,
    warn_many_groups,
)
from ..exceptions import RankDeficientKernelError, warn_caller
from ._inputs import (
    RANK_TOLERANCE,
    TARGET_CONSTRAINTS,
    Sample,
    as_counts,
    check_sample,
    on_subset,
    ratio,
    residuals,
    undefined,
)
from ._linear import group_indicator

_N_BINS: list = [Interval(Integral, 2, 1_000_000, closed="both")]


@validate_params(
    TARGET_CONSTRAINTS
    | {
        "n_bins": [*_N_BINS, "array-like", None],
        "relative": ["boolean"],
        "task": [StrOptions({"auto", "classification", "regression"})],
    }
    | NOTION_PARAMETERS,
    prefer_skip_nested_validation=True,
)
def didi(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    n_bins: Any = None,
    relative: bool = False,
    task: str = "auto",
    pos_label: Any = None,
    sample_weight: Any = None,
    subset: Any = None,
    on: str = "predictions",
) -> float:
    r"""Disparate Impact Discrimination Index over the groups of an attribute; 0 is best.

    .. math:: \mathrm{DIDI} = \sum_v |\mathrm{mean}(y \mid x=v) - \mathrm{mean}(y)|

    In classification the same is summed over the classes, each as a 0/1 target: twice the value
    of the formula for a binary target.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Original targets: numbers or labels of any type.
    y_pred : array-like of shape (n,), default=None
        Predictions. None measures `y_true` itself. In classification: labels, or for two classes
        scores in [0, 1].
    sensitive_features : array-like of shape (n,) or (n, m)
        The group of each row: values of any type. Rows that agree in all columns form a group.
        With `n_bins` one numeric attribute.
    n_bins : int or array-like of shape (n_bins + 1,), default=None
        Number of quantile bins that form the groups of a continuous attribute, or their edges,
        increasing; see :func:`quantile_bin_edges`. Bins are closed on the right. With given edges
        the first and the last bin are open-ended: values beyond the outer edges belong to them.
    relative : bool, default=False
        Divide by the value of `y_true`.
    task : {"auto", "classification", "regression"}, default="auto"
        The form of the indicator. "auto" follows
        :func:`sklearn.utils.multiclass.type_of_target` of both arrays; numeric targets of more
        than two classes, and a mixed pair, need an explicit task.
    pos_label : object, default=None
        The label that counts as 1 (all others as 0).
    sample_weight : array-like of shape (n,), default=None
        Weights; rows of weight 0 are left out. An integer is that many rows, for the quantiles of
        `n_bins` too: another scale of all weights changes nothing with given edges only.
    subset, on
        As in :func:`gedi`.

    Returns
    -------
    float
        At least 0, in units of y (classification: of probability). NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, where the attribute is constant or
        the reference of `relative` is 0.

    Raises
    ------
    ValueError
        If only one bin is left, since most rows share one value.

    Warns
    -----
    UserWarning
        If there are more than half as many groups as rows, as with a continuous attribute without
        `n_bins`; if edges coincide or a bin is empty, with the numbers of bins asked for and used.

    See Also
    --------
    quantile_bin_edges : The same bins for several samples.
    gedi : For continuous attributes, without bins, on which the value depends.

    Notes
    -----
    For an attribute of two values, the regression form is their distance times
    ``gedi(..., kernel=1)``. Source: S. Aghaei, M. J. Azizi, P. Vayanos (2019): Learning Optimal
    and Fair Decision Trees for Non-Discriminative Decision-Making. AAAI.

    Examples
    --------
    >>> from gedi_sklearn.metrics import didi
    >>> group = ["a", "a", "b", "b"]
    >>> didi([1.0, 2.5, 3.0, 4.5], sensitive_features=group)
    2.0
    >>> didi([0, 0, 0, 1], sensitive_features=group)
    1.0
    >>> age = [20, 30, 40, 50]
    >>> didi([1.0, 1.5, 2.0, 3.5], sensitive_features=age, n_bins=2)
    1.5
    >>> didi([1.0, 1.5, 2.0, 3.5], sensitive_features=age, n_bins=[0, 25, 100])
    1.333333
    """
    check_notion(subset, on, relative)
    rows = on_subset(subset, y_true, pos_label, y_pred, sensitive_features, sample_weight)
    if rows is None:
        return float("nan")
    y_true, y_pred, sensitive_features, sample_weight = rows
    given = (y_true, y_pred, sensitive_features, sample_weight, pos_label)
    attribute = "groups" if n_bins is None else "numbers"
    sample, columns, reference = _target_columns(given, task, attribute, on)
    if n_bins is None:
        codes, groups = check_group_codes(sample.values)
        is_constant = len(groups) == 1
    elif sample.values.shape[1] != 1:
        raise ValueError(
            f"sensitive_features must be one attribute to be cut into bins, got "
            f"{sample.values.shape[1]} columns."
        )
    else:
        is_constant = bool((sample.values == sample.values[0]).all())
    if is_constant:
        return undefined("sensitive_features is constant on the rows of positive weight.")
    if n_bins is None:
        n_rows = len(codes) if sample.counts is None else int(sample.counts.sum())
        warn_many_groups(len(groups), n_rows)
    else:
        codes = bin_codes(sample.values[:, 0], n_bins, sample.counts)
    indicator = group_indicator(codes, sample.weight)
    value = sum(indicator.measure(column) for column in columns.T)
    return ratio(value, sum(map(indicator.reference, reference.T))) if relative else value


@validate_params(
    {
        "sensitive_features": ["array-like"],
        "n_bins": _N_BINS,
        "sample_weight": TARGET_CONSTRAINTS["sample_weight"],
    },
    prefer_skip_nested_validation=True,
)
def quantile_bin_edges(
    sensitive_features: Any, *, n_bins: int = 3, sample_weight: Any = None
) -> np.ndarray:
    """Edges that cut an attribute into bins of about equal weight, for :func:`didi`.

    Compute them on one sample to measure another one with the same bins.

    Parameters
    ----------
    sensitive_features : array-like of shape (n,)
        The attribute.
    n_bins : int, default=3
        Number of bins.
    sample_weight : array-like of shape (n,), default=None
        Weights; rows of weight 0 are left out.

    Returns
    -------
    ndarray of shape (n_bins + 1,)
        Strictly increasing: the quantiles, interpolated linearly as by ``pandas.qcut``, of rows
        that are repeated as often as their weights say. Where a weight is below 1 they are scaled
        to sum to n first. Edges that coincide are merged, so there may be fewer bins than
        requested.

    Examples
    --------
    >>> from gedi_sklearn.metrics import quantile_bin_edges
    >>> quantile_bin_edges([20, 30, 40, 50], n_bins=2)
    array([20., 35., 50.])
    """
    values = check_numbers(sensitive_features, "sensitive_features", n_columns=1, sets_scale=True)
    weight = check_sample_weight(sample_weight, len(values))
    if weight is not None:
        values, weight = values[weight > 0], as_counts(weight[weight > 0])
    return _quantile_edges(values, n_bins, weight)


def _quantile_edges(values: np.ndarray, n_bins: int, counts: np.ndarray | None) -> np.ndarray:
    """Return the quantiles of rows that stand for `counts` equal ones, in general not integers."""
    n = len(values)
    if counts is None:
        ranked, ends = np.sort(values), np.arange(1.0, n + 1)
    else:
        order = np.argsort(values)
        ranked, ends = values[order], np.cumsum(counts[order])
    # The tolerance makes 1 + 1e-9 one row; with a million of rows it must not reach the next one.
    tolerance = min(RANK_TOLERANCE * ends[-1], 1e-3)
    rank = np.linspace(0, ends[-1] - 1, n_bins + 1)
    rank = np.where(np.abs(rank - np.rint(rank)) <= tolerance, np.rint(rank), rank)
    below = np.floor(rank)
    positions = np.searchsorted(ends, np.stack([below, below + 1]) + tolerance, side="right")
    low, high = ranked[positions.clip(max=n - 1)]
    edges = low + (rank - below) * (high - low)
    edges[[0, -1]] = ranked[[0, -1]]
    return np.unique(edges)


def bin_codes(values: np.ndarray, n_bins: Any, counts: np.ndarray | None) -> np.ndarray:
    """Return the bin of each value, numbered without gaps, with a warning if bins are lost."""
    if isinstance(n_bins, Integral):
        edges, asked = _quantile_edges(values, int(n_bins), counts), int(n_bins)
    else:
        edges = _given_edges(n_bins)
        asked = len(edges) - 1
    codes = np.searchsorted(edges[1:-1], values, side="left")
    is_used = np.bincount(codes) > 0
    used = int(is_used.sum())
    if used == 1:
        # Scorers turn this error into NaN on a small fold, as they do for a kernel.
        raise RankDeficientKernelError(
            f"sensitive_features cannot be cut into {asked} bins: all rows of positive weight "
            "fall into one. Use more bins, other edges, or `gedi`, which needs none."
        )
    if used < asked:
        warn_caller(
            f"{asked} bins were asked for, {used} are used: sensitive_features has too few "
            "distinct values, so that edges coincide or a bin is empty."
        )
    return (np.cumsum(is_used) - 1)[codes]


def _given_edges(n_bins: Any) -> np.ndarray:
    edges = check_numbers_or_inf(n_bins, "n_bins")
    # Infinite outer edges are allowed.
    if len(edges) < 3 or not (np.diff(edges) > 0).all():
        raise ValueError(
            "n_bins must be an integer of at least 2, or an increasing list of at least 3 edges; "
            f"got {n_bins!r}."
        )
    return edges


def _target_columns(
    given: tuple[Any, Any, Any, Any, Any], task: str, attribute: str, on: str
) -> tuple[Sample, np.ndarray, np.ndarray]:
    """Return the sample, target and original target, (n, c): one column, or one per class."""
    has_label = given[-1] is not None
    numeric = task == "regression" or has_label
    sample = check_sample(*given, numeric_targets=numeric, attribute=attribute)
    if task == "auto":
        task = "classification" if has_label else _detect_task(sample)
    if task == "regression":
        columns = sample.target.astype(np.float64, copy=False)[:, None]
        reference = sample.y_true.astype(np.float64, copy=False)[:, None]
    else:
        classes = _distinct(sample.y_true)
        columns = _class_columns(sample.target, classes)
        reference = _class_columns(sample.y_true, classes)
    if on == "residuals":
        # Classes that were predicted only come in among the others.
        if columns.shape != reference.shape:
            classes = np.union1d(classes, sample.target)
            reference = (sample.y_true[:, None] == classes).astype(np.float64)
        columns = residuals(columns, reference, given[1])
    return sample, columns, reference


def _detect_task(sample: Sample) -> str:
    kinds = {target_kind(sample.y_true), target_kind(sample.target)}
    if kinds == {"continuous"}:
        return "regression"
    if kinds <= {"binary", "labels"}:
        return "classification"
    raise ValueError(
        f"task='auto' cannot tell regression from classification: y_true is "
        f"{target_kind(sample.y_true)}, y_pred is {target_kind(sample.target)}. Pass "
        "task='regression' or task='classification'."
    )


def _class_columns(target: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return one 0/1 column per class; scores p of the second of two classes give 1 − p and p."""
    numeric = not is_text(classes)
    if target.dtype.kind == "f" and not (numeric and np.isin(target, classes).all()):
        if len(classes) > 2 or target.min() < 0 or target.max() > 1:
            raise ValueError(
                "with labels as y_true, y_pred must hold the same labels or, for two classes, "
                f"scores in [0, 1]; got floats from {target.min():.3g} to {target.max():.3g} for "
                f"{len(classes)} classes."
            )
        return np.column_stack([1 - target, target])
    if is_text(target) == numeric:
        raise ValueError("y_true and y_pred must hold labels of one kind: one is text, one is not.")
    labels = np.union1d(classes, _distinct(target))
    return np.array([target == label for label in labels], dtype=np.float64).T


def _distinct(labels: np.ndarray) -> np.ndarray:
    return check_group_codes(labels[:, None])[1][:, 0]
