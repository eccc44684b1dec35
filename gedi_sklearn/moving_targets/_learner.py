"""The learner of Moving Targets: clones of an estimator, fitted on changing targets."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone

from .._folds import PredictionSource
from .._predictions import checked_predict, checked_predict_proba
from .._validation import check_numbers, check_positive


class LearnerFit(NamedTuple):
    """One fitted clone and the predictions for the training rows.

    Attributes
    ----------
    estimator : estimator
        The fitted clone.
    predictions : ndarray of shape (n,)
        The response of `predict`; classes as 0…K − 1.
    scores : ndarray of shape (n,) or (n, K)
        What the master uses: the predictions, or the probabilities of class 1 (of all classes if
        there are more than two).
    seconds : float
        Wall time of fitting and predicting.
    """

    estimator: Any
    predictions: np.ndarray
    scores: np.ndarray
    seconds: float


@dataclass(kw_only=True)
class Learner:
    """Fits clones of an estimator on the same X and with the same keywords.

    Parameters
    ----------
    estimator : estimator
        Unfitted; cloned for every fit and never changed.
    X : array-like of shape (n, p)
        What the clones are fitted on.
    fit_params : dict
        Keywords of their `fit`.
    rng : RandomState or None
        Gives each clone one seed; None leaves the seeds of the estimator.
    source : PredictionSource
        Whose predictions are used.
    one_seed : bool
        Whether all clones get the same seed, so that only their targets differ.
    is_positive : bool
        Whether predictions have to be positive.
    """

    is_classifier: ClassVar[bool] = False

    estimator: Any
    X: Any
    fit_params: dict[str, Any]
    rng: np.random.RandomState | None
    source: PredictionSource
    one_seed: bool
    is_positive: bool = False

    def __post_init__(self) -> None:
        self._seed = _draw_seed(self.rng) if self.one_seed else None

    def fit(self, targets: np.ndarray) -> LearnerFit:
        """Fit a clone on `targets`, shape (n,), and predict the training rows."""
        start = perf_counter()
        estimator = self.source.prepare(clone(self.estimator))
        seed = _draw_seed(self.rng) if self._seed is None else self._seed
        if seed is not None:
            _set_seed(estimator, seed)
        y = self.decode(targets)
        estimator.fit(self.X, y, **self.fit_params)
        responses = self.source(estimator, y)
        predictions = self.predictions(responses, self.X)
        scores = self.scores(responses, predictions)
        return LearnerFit(estimator, predictions, scores, perf_counter() - start)

    def decode(self, targets: np.ndarray) -> np.ndarray:
        """Return targets as the estimator takes them."""
        return targets

    def predictions(self, estimator: Any, X: Any) -> np.ndarray:
        """Return the predictions for X as the projection takes them."""
        name = f"the predictions of {type(self.estimator).__name__}"
        predictions = check_numbers(checked_predict(estimator, X), name, n_columns=1)
        if self.is_positive:
            check_positive(predictions, name)
        return predictions

    def scores(self, estimator: Any, predictions: np.ndarray) -> np.ndarray:
        """Return the scores that the projected targets are to be close to."""
        return predictions

    def class_scores(
        self, fit: LearnerFit, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray | None:
        """Return scores of classes for the verdict; None of real targets."""
        return None


@dataclass(kw_only=True)
class ClassifierLearner(Learner):
    """A learner of classes, which are 0…K − 1 in the projection.

    Parameters
    ----------
    estimator, X, fit_params, rng, source, one_seed
        As for `Learner`.
    classes : ndarray of shape (K,)
        The labels of 0…K − 1.
    response_method : {"auto", "predict", "predict_proba"}
        The response that the master uses.
    loss : {"hamming", "log_loss"}
        The loss of the projection; log loss needs probabilities.
    """

    is_classifier: ClassVar[bool] = True

    classes: np.ndarray
    response_method: str
    loss: str

    def decode(self, targets: np.ndarray) -> np.ndarray:
        """Return the labels of targets given as 0…K − 1."""
        return self.classes[targets]

    def predictions(self, estimator: Any, X: Any) -> np.ndarray:
        """Return the predicted class, 0…K − 1."""
        labels = np.asarray(checked_predict(estimator, X)).ravel()
        unknown = labels[~np.isin(labels, self.classes)]
        if unknown.size:
            raise ValueError(
                f"{type(self.estimator).__name__} predicted {unknown[0]!s}, which is none of the "
                f"classes of y, {self.classes.tolist()}. The inner estimator must be a classifier."
            )
        return np.searchsorted(self.classes, labels)

    def scores(self, estimator: Any, predictions: np.ndarray) -> np.ndarray:
        """Return the probabilities (of the second of two classes, or of all) or the predictions.

        Some ensembles have `predict_proba` only once they are fitted.
        """
        name, available = type(self.estimator).__name__, hasattr(estimator, "predict_proba")
        if self.response_method == "predict_proba" and not available:
            raise ValueError(
                f"response_method='predict_proba', but {name} has no predict_proba. Use "
                "response_method='predict' or 'auto'."
            )
        if self.response_method != "predict" and available:
            proba = checked_predict_proba(estimator, self.X, self.classes)
            proba = proba.astype(np.float64, copy=False)
            return proba[:, 1] if len(self.classes) == 2 else proba
        if self.loss == "log_loss":
            raise ValueError(
                "loss='log_loss' compares probabilities, but the projection would get labels: "
                f"response_method={self.response_method!r} with {name}. Use loss='hamming', or "
                "an inner estimator with predict_proba and response_method='auto'."
            )
        return predictions

    def class_scores(
        self, fit: LearnerFit, y: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray | None:
        """Return probabilities, or else decisions scaled to the deviation of y; None without."""
        if fit.scores.dtype.kind == "f":
            return fit.scores
        if not hasattr(fit.estimator, "decision_function"):
            return None
        found = np.asarray(fit.estimator.decision_function(self.X), dtype=np.float64)
        classes = np.arange(len(self.classes)) if len(self.classes) > 2 else 1
        own = (y[:, None] == classes).astype(np.float64)
        columns = found[:, None] if found.ndim == 1 else found
        if columns.shape != own.shape:  # of pairs of classes
            return None
        of_y, spread = (_deviations(values, weight) for values in (own, columns))
        scaled = columns * (of_y / np.where(spread > 0, spread, 1.0))
        return scaled[:, 0] if len(self.classes) == 2 else scaled


def _deviations(columns: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    centred = columns - np.average(columns, axis=0, weights=weight)
    return np.sqrt(np.average(centred**2, axis=0, weights=weight))


def _draw_seed(rng: np.random.RandomState | None) -> int | None:
    return None if rng is None else int(rng.randint(np.iinfo(np.int32).max))


def _set_seed(estimator: Any, seed: int) -> None:
    """Set every `random_state` of an estimator and of what it contains."""
    names = [
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    ]
    if names:
        estimator.set_params(**dict.fromkeys(names, seed))
