"""Indicators, predictions and projections of Dask collections, block by block."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask import compute, delayed
from sklearn.base import clone, is_classifier

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
    take_rows,
)
from ..constraints import DependenceConstraint
from ..exceptions import RankDeficientKernelError
from ..metrics import (
    GediAccumulator,
    GediInference,
    TargetCorrection,
    check_bound_of_sums,
    spread_rows,
    undefined_if_constant,
)
from ..metrics import didi as didi_of_rows

# Sums that are merged by one task, and rows that fix the scale of the kernel.
_WIDTH, _N_REFERENCE = 8, 1000
# Up to this many different rows of group and targets, they are counted rather than averaged.
_MOST_COUNTED = 10_000
_NO_ROWS = "sample_weight is zero in every row, or there are no rows; at least one must count."


def row_blocks_of(**collections: Any) -> list[dict[str, Any]]:
    """Return blocks of the same rows of several collections, each as a delayed object.

    Parameters
    ----------
    **collections : Dask array, series or frame, or None
        By the names of the arguments; None stays None.

    Returns
    -------
    list of dict
        For every block the delayed rows of each collection.

    Raises
    ------
    TypeError
        If one is no Dask collection.
    ValueError
        If collections have unlike numbers of rows or partitions.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from gedi_sklearn.dask import row_blocks_of
    >>> age = np.linspace(20, 60, 400)
    >>> x, y = da.from_array(age, 100), da.from_array(age / 40, 100)
    >>> len(row_blocks_of(y_true=y, sensitive_features=x))
    4
    """
    given = {name: value for name, value in collections.items() if value is not None}
    for name, value in given.items():
        if not hasattr(value, "to_delayed"):
            raise TypeError(
                f"{name} must be a Dask array, series or frame, got {type(value).__name__}. Rows "
                "in memory are measured by gedi_sklearn.metrics."
            )
    blocks = {name: _delayed(value, _row_chunks(given)) for name, value in given.items()}
    sizes = {name: len(own) for name, own in blocks.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(
            f"the collections have unlike partitions: {sizes}. Repartition them alike."
        )
    n_blocks = next(iter(sizes.values()))
    return [
        {name: blocks[name][j] if name in blocks else None for name in collections}
        for j in range(n_blocks)
    ]


def _row_chunks(given: dict[str, Any]) -> tuple[int, ...] | None:
    """Return the numbers of rows that all arrays are cut into; None where they are not known."""
    arrays = {name: value for name, value in given.items() if isinstance(value, da.Array)}
    for name, value in arrays.items():
        first, expected = next(iter(arrays.items()))
        known = not any(map(_is_unknown, (value.shape[0], expected.shape[0])))
        if known and value.shape[0] != expected.shape[0]:
            raise ValueError(
                f"{name} has {value.shape[0]} rows where {first} has {expected.shape[0]}."
            )
    if len(arrays) < len(given) or any(_is_unknown(v.shape[0]) for v in arrays.values()):
        return None  # partitions of frames stay as they are
    return next(iter(arrays.values())).chunks[0]


def _is_unknown(size: Any) -> bool:
    return size != size


def _delayed(collection: Any, row_chunks: tuple[int, ...] | None) -> list[Any]:
    if isinstance(collection, da.Array):
        if row_chunks is not None:
            collection = collection.rechunk({0: row_chunks})
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    return list(collection.to_delayed())


def tree(items: list[Any], width: int) -> Iterator[list[Any]]:
    """Yield runs of at most `width` items."""
    for start in range(0, len(items), width):
        yield items[start : start + width]


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

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from gedi_sklearn.dask import accumulate
    >>> age = np.linspace(20, 60, 400)
    >>> x, y = da.from_array(age, 100), da.from_array(age / 40, 100)
    >>> accumulate(y, sensitive_features=x).n_rows_
    400
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

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from gedi_sklearn.dask import gedi
    >>> age = np.linspace(20, 60, 400)
    >>> x, y = da.from_array(age, 100), da.from_array(age / 40, 100)
    >>> round(gedi(y, sensitive_features=x), 6)
    0.025
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

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from gedi_sklearn.dask import gedi_inference
    >>> age = np.linspace(20, 60, 400)
    >>> x, y = da.from_array(age, 100), da.from_array(age / 40, 100)
    >>> 0.02 < gedi_inference(y, sensitive_features=x, random_state=0).upper < 0.03
    True
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

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from gedi_sklearn.dask import didi
    >>> team, y = (da.from_array(np.tile(own, 200), 100) for own in (["a", "b"], [1.5, 2.5]))
    >>> didi(y, sensitive_features=team)
    1.0
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


def predict(estimator: Any, X: Any, *, sensitive_features: Any = None) -> da.Array:
    """Predict Dask collections with an estimator fitted in memory, for example on a sample.

    Parameters
    ----------
    estimator : estimator
        Any fitted one.
    X : Dask array or frame
        Features.
    sensitive_features : Dask array, series or frame, default=None
        The attribute, where the estimator needs it at prediction.

    Returns
    -------
    dask.array.Array of shape (n,)
        Not computed yet. To measure whether all these rows keep the bound, pass it as `y_pred` to
        :func:`gedi`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from gedi_sklearn import ProjectedRegressor
    >>> from gedi_sklearn.dask import predict
    >>> age = np.linspace(20, 60, 400)
    >>> model = ProjectedRegressor(sensitive_columns=0).fit(age[:, None], age / 40)
    >>> predict(model, da.from_array(age[:, None], 100)).compute().shape
    (400,)
    """
    dtype = estimator.classes_.dtype if is_classifier(estimator) else np.float64
    return _by_block(estimator, "predict", X, sensitive_features, np.empty(0, dtype))


def predict_proba(estimator: Any, X: Any, *, sensitive_features: Any = None) -> da.Array:
    """Predict the probabilities of classes for Dask collections.

    Parameters
    ----------
    estimator, X, sensitive_features
        As in :func:`predict`.

    Returns
    -------
    dask.array.Array of shape (n, K)
        Not computed yet.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from gedi_sklearn.dask import predict_proba
    >>> age = np.linspace(20, 60, 400)
    >>> model = LogisticRegression().fit(age[:, None], age > 40)
    >>> predict_proba(model, da.from_array(age[:, None], 100)).compute().shape
    (400, 2)
    """
    empty = np.empty((0, len(estimator.classes_)))
    return _by_block(estimator, "predict_proba", X, sensitive_features, empty)


def project_targets(
    y: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    constraint: Any = None,
    target_weight: float = 1.0,
    reference: Any = None,
    sample_weight: Any = None,
) -> tuple[da.Array, TargetCorrection]:
    """Return the nearest real targets whose dependence on an attribute is within a bound.

    Parameters
    ----------
    y, y_pred, sensitive_features, sample_weight : Dask array, series or frame
        As in :func:`gedi_sklearn.project_targets`; the targets are real numbers, and those of rows
        of weight 0 stay as they are.
    constraint : DependenceConstraint, CoarseConstraint or FineConstraint, default=None
        What is bounded; None is ``DependenceConstraint()``. See
        :meth:`gedi_sklearn.metrics.GediAccumulator.correct_targets`.
    target_weight : float, default=1.0
        Weight of the original targets beside the predictions.
    reference : array-like of shape (r,) or (r, m), default=None
        Values that fix the scale of the kernel; see :func:`accumulate`.

    Returns
    -------
    targets : dask.array.Array of shape (n,)
        Not computed yet.
    correction : TargetCorrection
        What was added, for other rows.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint
    >>> from gedi_sklearn.dask import gedi, project_targets
    >>> age = np.linspace(20, 60, 400)
    >>> x, y = da.from_array(age, 100), da.from_array(age / 40, 100)
    >>> z, correct = project_targets(y, sensitive_features=x, constraint=CoarseConstraint())
    >>> round(gedi(y, z, sensitive_features=x, relative=True), 6)
    0.2
    """
    constraint = DependenceConstraint() if constraint is None else constraint
    check_bound_of_sums(constraint)
    sums = accumulate(
        y,
        y_pred,
        sensitive_features=sensitive_features,
        kernel=constraint.kernel,
        reference=reference,
        sample_weight=sample_weight,
    )
    correct = sums.correct_targets(constraint, target_weight=target_weight)
    given = {"y": y, "y_pred": y_pred, "sensitive_features": sensitive_features}
    blocks = row_blocks_of(**given, sample_weight=sample_weight)
    parts = [delayed(_corrected)(correct, block) for block in blocks]
    return _concatenated(parts, y, np.empty(0)), correct


def _corrected(correct: TargetCorrection, block: dict[str, Any]) -> np.ndarray:
    given = {name: rows for name, rows in block.items() if rows is not None}
    weight = given.pop("sample_weight", None)
    if weight is None:
        return correct(**given) if len(given["y"]) else np.empty(0)
    z = np.array(given["y"], dtype=np.float64).ravel()  # of rows of weight 0
    counted = np.flatnonzero(np.asarray(weight) > 0)
    if len(counted):
        z[counted] = correct(**{name: take_rows(rows, counted) for name, rows in given.items()})
    return z


def _by_block(
    estimator: Any, method: str, X: Any, sensitive_features: Any, empty: np.ndarray
) -> da.Array:
    blocks = row_blocks_of(X=X, sensitive_features=sensitive_features)
    shared = delayed(estimator)
    parts = [delayed(_respond)(shared, method, block, empty) for block in blocks]
    return _concatenated(parts, X, empty)


def _respond(estimator: Any, method: str, block: dict[str, Any], empty: np.ndarray) -> np.ndarray:
    given = {name: value for name, value in block.items() if value is not None}
    X = given.pop("X")
    return np.asarray(getattr(estimator, method)(X, **given)) if len(X) else empty


def _concatenated(parts: list[Any], like: Any, empty: np.ndarray) -> da.Array:
    """Return delayed blocks as one array, with the numbers of rows of a collection."""
    sizes = like.chunks[0] if isinstance(like, da.Array) else [np.nan] * len(parts)
    arrays = [
        da.from_delayed(part, shape=(size, *empty.shape[1:]), meta=empty)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)
