"""The default learner of m(X), and the numbers that it takes of an X of any kind."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor, RegressorChain

from .._validation import _safe_indexing, is_missing

# Levels that histogram gradient boosting tells apart; of more their order is used, as of numbers.
_MOST_LEVELS = 255


class TableEncoder:
    """Turn an X of numbers, text and categories, some of it missing, into numbers.

    Text becomes the position of its level; what is missing, or a level not seen before, is NaN.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows of the fit.

    Attributes
    ----------
    is_categorical : ndarray of bool, shape (p,)
        Which columns are levels without an order.

    Raises
    ------
    ValueError
        If X is sparse, or holds anything else.
    """

    def __init__(self, X: Any) -> None:
        self._levels: list[np.ndarray | None] = []
        for position, column in enumerate(_columns(X)):
            present = [value for value in column if not is_missing(value)]
            if column.dtype.kind in "fiub" or all(map(_is_number, present)):
                self._levels.append(None)
            elif all(isinstance(value, str) or _is_number(value) for value in present):
                self._levels.append(np.unique([str(value) for value in present]))
            else:
                other = next(v for v in present if not (isinstance(v, str) or _is_number(v)))
                raise _refused(f"column {position} of X holds a {type(other).__name__}")
        self.is_categorical = np.array(
            [own is not None and len(own) <= _MOST_LEVELS for own in self._levels], dtype=bool
        )

    def transform(self, X: Any) -> np.ndarray:
        """Return the numbers, shape (n, p)."""
        encoded = [
            _numbers(column) if levels is None else _positions(column, levels)
            for column, levels in zip(_columns(X), self._levels, strict=True)
        ]
        return np.column_stack(encoded)

    def inform(self, estimator: MultiOutputRegressor) -> None:
        """Tell the default learner which columns are categorical."""
        if self.is_categorical.any():
            estimator.set_params(estimator__categorical_features=self.is_categorical)


def default_estimator() -> MultiOutputRegressor:
    """Return histogram gradient boosting with one model per output."""
    return MultiOutputRegressor(HistGradientBoostingRegressor(random_state=0))


def as_targets(estimator: Any, columns: np.ndarray) -> np.ndarray:
    """Return columns as a learner takes them: a single one as a vector, but where it needs several.

    A column vector is what scikit-learn's learners of a single output warn of.
    """
    inside = [estimator, *estimator.get_params().values()]
    needs_several = any(isinstance(own, (MultiOutputRegressor, RegressorChain)) for own in inside)
    return columns[:, 0] if columns.shape[1] == 1 and not needs_several else columns


def _columns(X: Any) -> list[np.ndarray]:
    """Return the columns of an X, each in a type of its own."""
    if issparse(X):
        raise _refused("X is sparse")
    if not hasattr(X, "shape"):
        X = np.array(X, dtype=object)
    if len(X.shape) != 2:
        raise _refused(f"X has {len(X.shape)} dimension(s)")
    return [np.asarray(_safe_indexing(X, j, axis=1)) for j in range(X.shape[1])]


def _is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Real, np.bool_))


def _numbers(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    return np.array([np.nan if is_missing(value) else float(value) for value in column])


def _positions(column: np.ndarray, levels: np.ndarray) -> np.ndarray:
    known = {level: float(position) for position, level in enumerate(levels.tolist())}
    return np.array([known.get(str(v), np.nan) if not is_missing(v) else np.nan for v in column])


def _refused(reason: str) -> ValueError:
    return ValueError(
        f"attribute_estimator=None takes numbers, text and categories, but {reason}. Pass an "
        "attribute_estimator= that takes this X, such as a pipeline that begins as that of the "
        "estimator does."
    )
