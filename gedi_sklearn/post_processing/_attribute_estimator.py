"""The learner of m(X) = E[Q | X], its default, and the numbers that this takes of any X."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import clone
from sklearn.multioutput import MultiOutputRegressor, RegressorChain

from .._folds import CrossFitted, FoldMaker, PredictionSource, make_prediction_source
from .._meta_estimator import MetaEstimator, decides_on_weights
from .._validation import (
    _num_samples,
    _safe_indexing,
    check_numbers,
    drop_columns,
    holds_other_rows,
    is_missing,
)
from ..projection import Projection
from ._corrections import Recalibration

# Levels that histogram gradient boosting tells apart; of more their order is used, as of numbers.
_MOST_LEVELS = 255


# The folds of m(X) if those of the learner are "train" or "oob": m(X) is always cross-fitted.
_BLIND_CV = 5


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


class AttributeBlind(MetaEstimator):
    """What estimators share that predict the kernel of new rows instead of being told it.

    A subclass has the parameter `attribute_estimator`.
    """

    attribute_estimator: Any
    _table: TableEncoder | None

    def _read_table(self, X: Any) -> TableEncoder | None:
        """Return the encoder of the X that the default learner is fitted on; None for another."""
        return TableEncoder(self._attribute_free(X)) if self.attribute_estimator is None else None

    def _make_attribute_estimator(self) -> Any:
        """Return the unfitted learner of m(X)."""
        if self.attribute_estimator is not None:
            return self.attribute_estimator
        default = default_estimator()
        if get_config()["enable_metadata_routing"]:
            # Nobody can have configured it, and it takes weights, but not where these are an error.
            requested = decides_on_weights(self._inner_estimator())
            default.estimator.set_fit_request(sample_weight=requested)
        return default

    def _expect_kernel(
        self,
        X: Any,
        columns: np.ndarray,
        fit_params: dict[str, Any],
        learner_source: PredictionSource,
        fold_maker: FoldMaker,
    ) -> np.ndarray:
        """Fit m(X) to the columns of the kernels, and return its cross-fitted predictions."""
        if unfit := [name for name in fit_params if holds_other_rows(name)]:
            raise ValueError(
                f"attribute_estimator requests {unfit}: these rows come with targets of the inner "
                "estimator, but attribute_estimator predicts the kernel. Do not request them there."
            )
        X = self._blind_X(X)
        # The folds of the learner: a splitter may shuffle anew, and an iterator is exhausted.
        cv = learner_source.folds if isinstance(learner_source, CrossFitted) else _BLIND_CV
        source = make_prediction_source(cv, X, fold_maker, fit_params, self.n_jobs)
        estimator = clone(self._make_attribute_estimator())
        if self._table is not None:
            self._table.inform(estimator)
        targets = as_targets(estimator, columns)
        try:
            self.attribute_estimator_ = estimator.fit(X, targets, **fit_params)
            responses = source(self.attribute_estimator_, targets)
        except ValueError as error:
            raise ValueError(f"attribute_estimator: {error}") from error
        return self._expected_columns(responses, X, columns.shape[1])

    def _expected_columns(self, estimator: Any, X: Any, n_columns: int) -> np.ndarray:
        """Return m(X) of rows, shape (n, k), by the learner or its responses."""
        own = type(self.attribute_estimator_).__name__
        name = f"the predictions of attribute_estimator={own}"
        values, expected = estimator.predict(X), (_num_samples(X), n_columns)
        if np.shape(values)[:1] != expected[:1] or np.size(values) != np.prod(expected):
            raise ValueError(
                f"{name} have the shape {np.shape(values)}; expected {expected}, a column for each "
                "of the kernel."
            )
        return check_numbers(values, name).reshape(expected)

    def _recalibrate(
        self, projection: Projection, p: np.ndarray, expected: np.ndarray
    ) -> Recalibration:
        """Return what turns m(X) into the columns of the correction; real targets take it as is."""
        return Recalibration(None)

    def _attribute_free(self, X: Any) -> Any:
        """Return X without the attribute, whether or not the inner estimator uses it."""
        return (
            X if not self._positions or self._lacks_dropped(X) else drop_columns(X, self._positions)
        )

    def _blind_X(self, X: Any) -> Any:
        """Return what the learner of m(X) sees of X."""
        without = self._attribute_free(X)
        return without if self._table is None else self._table.transform(without)


def default_estimator() -> MultiOutputRegressor:
    """Return histogram gradient boosting with one model per output."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # half a second, which few need

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
    # A duration of numpy counts as an integer, of some unit.
    return isinstance(value, (numbers.Real, np.bool_)) and not isinstance(value, np.timedelta64)


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
