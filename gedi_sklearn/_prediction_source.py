"""Whose predictions are used for the rows of a fit: in-sample, out-of-bag or cross-fitted.

A learner that memorises its targets predicts its own rows far better than new ones, so what a
projection does to in-sample predictions does not carry over to new rows. Out-of-bag and
cross-fitted predictions behave like those for new rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from ._folds import FoldMaker
from ._predictions import Responses, checked_predict, checked_predict_proba
from ._validation import _check_method_params, holds_other_rows, take_rows
from .exceptions import warn_caller

__all__ = [
    "CrossFitted",
    "InSample",
    "OutOfBag",
    "PredictionSource",
    "leaves_rows_out",
    "make_prediction_source",
]

# Expected number of rows in every sample of an ensemble that counts as none.
_ALWAYS_HELD = 0.01


class PredictionSource(ABC):
    """Where the predictions for the rows of a fit come from.

    Attributes
    ----------
    is_unseen : bool
        Whether the rows are new to what predicts them.
    """

    is_unseen: bool = True

    def prepare(self, estimator: Any) -> Any:
        """Return an unfitted estimator whose fit will provide the predictions."""
        return estimator

    @abstractmethod
    def __call__(self, fitted: Any, y: np.ndarray) -> Any:
        """Return an estimator, or what takes its place, that predicts the rows of a fit on y."""


class InSample(PredictionSource):
    """The fitted estimator itself, as in the paper."""

    is_unseen = False

    def __call__(self, fitted: Any, y: np.ndarray) -> Any:
        """Return the fitted estimator."""
        return fitted


class OutOfBag(PredictionSource):
    """Each row is predicted by the members of an ensemble whose sample does not contain it.

    A row that every sample contains has no such prediction: it gets that of the whole ensemble,
    with a warning that counts these rows.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows.
    is_unseen : bool, default=True
        False where rows form groups: the members have seen other rows of the same group.
    """

    def __init__(self, X: Any, *, is_unseen: bool = True) -> None:
        self.X = X
        self.is_unseen = is_unseen
        self._has_warned = False

    def prepare(self, estimator: Any) -> Any:
        """Return the estimator with `oob_score` set, in its last step where it is a pipeline.

        Raises
        ------
        ValueError
            If it has no parameter `oob_score`.
        """
        ensemble = _ensemble(estimator)
        if not hasattr(ensemble, "oob_score"):
            raise ValueError(
                f"cv='oob' needs an inner estimator with out-of-bag predictions (a parameter "
                f"`oob_score`, e.g. a random forest); got {type(ensemble).__name__}. Use an "
                "integer `cv` for cross-fitted predictions."
            )
        if not ensemble.oob_score:
            ensemble.set_params(oob_score=True)
        return estimator

    def __call__(self, fitted: Any, y: np.ndarray) -> Any:
        """Return the out-of-bag predictions of a fitted ensemble."""
        ensemble = _ensemble(fitted)
        is_classifier = hasattr(ensemble, "classes_")
        name = "oob_decision_function_" if is_classifier else "oob_prediction_"
        for needed in (name, "estimators_samples_"):
            if not hasattr(ensemble, needed):
                raise ValueError(
                    f"cv='oob': the fitted {type(ensemble).__name__} has no `{needed}`. Use an "
                    "integer `cv` for cross-fitted predictions."
                )
        values = np.array(getattr(ensemble, name), dtype=np.float64)
        unseen = _never_left_out(ensemble, len(values))
        if unseen.any():
            rest = take_rows(self.X, np.flatnonzero(unseen))
            values[unseen] = fitted.predict_proba(rest) if is_classifier else fitted.predict(rest)
            self._warn_once(
                f"cv='oob': {int(unseen.sum())} of {len(values)} rows are in the sample of every "
                f"member of {type(ensemble).__name__} and are predicted by members that have seen "
                "them. Use more members (`n_estimators`)."
            )
        return _as_responses(fitted, values, has_probabilities=is_classifier)

    def _warn_once(self, message: str) -> None:
        """Warn only once for all the fits that use these rows."""
        if not self._has_warned:
            warn_caller(message)
        self._has_warned = True


def leaves_rows_out(estimator: Any, n_rows: int) -> bool:
    """Tell whether an unfitted estimator is an ensemble whose members leave every row out.

    Not in a pipeline, whose earlier steps have seen the rows, nor where a warm start keeps members,
    nor with so few members that a row is likely to be in the sample of all of them.
    """
    if not hasattr(estimator, "get_params"):
        return False
    params = estimator.get_params(deep=False)
    if "oob_score" not in params or params.get("bootstrap") is not True:
        return False
    # A sample holds a row with probability 1 − 1/e.
    always_held = n_rows * (1 - np.exp(-1)) ** params.get("n_estimators", 0)
    return not params.get("warm_start", False) and always_held < _ALWAYS_HELD


def _ensemble(estimator: Any) -> Any:
    """Return the ensemble itself, which may be the last step of a pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def _never_left_out(ensemble: Any, n_rows: int) -> np.ndarray:
    """Return a mask of the rows that are in the sample of every member."""
    held = np.zeros(n_rows, dtype=int)
    for sample in ensemble.estimators_samples_:
        held[np.unique(sample)] += 1
    return held == len(ensemble.estimators_samples_)


@dataclass(frozen=True)
class CrossFitted(PredictionSource):
    """Each row is predicted by a clone that was fitted on the other folds.

    As everywhere in scikit-learn, the folds are made once. A row of weight 0 is in none of them: it
    is predicted by the fitted estimator, which has not seen it either.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows.
    folds : list of (ndarray, ndarray)
        Positions of training and test rows; the test parts are a partition of the rows of positive
        weight.
    fit_params : dict
        Keywords of a fit; those with one value per row are split with the rows.
    n_jobs : int or None
        Number of processes for the folds.
    """

    X: Any
    folds: list[tuple[np.ndarray, np.ndarray]]
    fit_params: dict[str, Any]
    n_jobs: int | None

    def __call__(self, fitted: Any, y: np.ndarray) -> Any:
        """Fit a clone of the fitted estimator per fold, and return their predictions.

        Raises
        ------
        ValueError
            If a clone would be fitted on a single class, although there are several.
        """
        classes = getattr(fitted, "classes_", None)
        if classes is not None:
            self._require_two_classes(y)
        has_probabilities = classes is not None and hasattr(fitted, "predict_proba")
        predicted = classes if has_probabilities else None
        parts = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_predict)(
                clone(fitted), self.X, y, train, test, self.fit_params, predicted
            )
            for train, test in self.folds
        )
        tested = [test for _, test in self.folds]
        n_tests = np.bincount(np.concatenate(tested), minlength=len(y))
        if len(others := np.flatnonzero(n_tests == 0)):
            tested.append(others)
            parts.append(_predict(fitted, self.X, y, others, predicted))
        values = np.empty((len(y), *parts[0].shape[1:]), dtype=np.result_type(*parts))
        for test, part in zip(tested, parts, strict=True):
            values[test] = part
        return _as_responses(fitted, values, has_probabilities=has_probabilities)

    def _require_two_classes(self, y: np.ndarray) -> None:
        """Raise where a training part has one class only, which projected targets can cause."""
        for number, (train, _) in enumerate(self.folds):
            first = y[train[0]]
            if (y[train] == first).all() and (y != first).any():
                raise ValueError(
                    f"cv: without fold {number} the targets are all {str(first)!r} "
                    f"({int((y != first).sum())} of all rows differ), so a classifier cannot be "
                    "fitted for it. Use more folds, or raise `threshold`."
                )


def _fit_and_predict(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    fit_params: dict[str, Any],
    classes: np.ndarray | None,
) -> np.ndarray:
    """Return what a clone fitted on `train` predicts for `test`: probabilities where `classes`."""
    own = {name: value for name, value in fit_params.items() if not holds_other_rows(name)}
    keywords = {**fit_params, **_check_method_params(X, own, indices=train)}
    estimator.fit(take_rows(X, train), y[train], **keywords)
    return _predict(estimator, X, y, test, classes)


def _predict(
    estimator: Any, X: Any, y: np.ndarray, test: np.ndarray, classes: np.ndarray | None
) -> np.ndarray:
    """Return what a fitted estimator predicts for `test`: probabilities where `classes`."""
    held_out = take_rows(X, test)
    if classes is not None:
        return checked_predict_proba(estimator, held_out, classes)
    predictions = checked_predict(estimator, held_out, n_columns=int(np.prod(y.shape[1:])))
    # Some learners return a single target as a column, or a column as a single target.
    return np.reshape(predictions, (len(test), *y.shape[1:]))


def _as_responses(fitted: Any, values: np.ndarray, *, has_probabilities: bool) -> Responses:
    """Return predictions, or probabilities and the most probable classes, as responses."""
    if not has_probabilities:
        return Responses(fitted, {"predict": values})
    labels = fitted.classes_[values.argmax(axis=1)]
    return Responses(fitted, {"predict": labels, "predict_proba": values})


def make_prediction_source(
    cv: Any, X: Any, fold_maker: FoldMaker, fit_params: dict[str, Any], n_jobs: int | None
) -> PredictionSource:
    """Return what the parameter `cv` stands for.

    Parameters
    ----------
    cv : "train", "oob", int or splitter
        What makes folds gives cross-fitted predictions.
    X : array-like of shape (n, p)
        The rows.
    fold_maker : FoldMaker
        Makes the folds.
    fit_params : dict
        Keywords of a fit.
    n_jobs : int or None
        Number of processes for the folds.

    Raises
    ------
    ValueError
        If a row is in no test fold, or in several.
    """
    (X,) = indexable(X)
    if isinstance(cv, str):
        return OutOfBag(X, is_unseen=fold_maker.groups is None) if cv == "oob" else InSample()
    folds = fold_maker(cv, X)
    if (folds.n_tests != 1).any():
        raise ValueError(
            f"cv: {folds.origin} do not put every row into exactly one test part, so a row "
            f"would have no prediction or several: {folds.uneven_rows()}. Use an integer, "
            "KFold, StratifiedKFold, or splits whose test parts hold every row once."
        )
    return CrossFitted(X, folds.splits, fit_params, n_jobs)
