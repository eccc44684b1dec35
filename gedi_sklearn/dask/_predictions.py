"""Predictions and projected targets of Dask collections, block by block."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from sklearn.base import is_classifier

from ..constraints import DependenceConstraint
from ..metrics import TargetCorrection
from ._collections import row_blocks_of
from ._indicators import accumulate


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
        Not computed yet. For what the bound has come to on all these rows, pass it as `y_pred` to
        :func:`gedi`.
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
        As in :func:`gedi_sklearn.project_targets`; the targets are real numbers.
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
    """
    constraint = DependenceConstraint() if constraint is None else constraint
    sums = accumulate(
        y,
        y_pred,
        sensitive_features=sensitive_features,
        kernel=constraint.kernel,
        reference=reference,
        sample_weight=sample_weight,
    )
    correct = sums.correct_targets(constraint, target_weight=target_weight)
    blocks = row_blocks_of(y=y, y_pred=y_pred, sensitive_features=sensitive_features)
    parts = [delayed(_corrected)(correct, block) for block in blocks]
    return _concatenated(parts, y, np.empty(0)), correct


def _corrected(correct: TargetCorrection, block: dict[str, Any]) -> np.ndarray:
    return correct(**block) if len(block["y"]) else np.empty(0)


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
