"""One fold of a curve: fits on its training rows, evaluated on its training and test rows."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from .._predictions import Responses, align_columns
from .._validation import _check_method_params, _safe_indexing
from ._indicator import ConstrainedPart, Measure


def check_scorer(estimator: Any, scoring: Any, *, is_weighted: bool) -> Any:
    """Return the scorer that `scoring` stands for.

    Parameters
    ----------
    estimator : estimator
        The estimator to be scored; unfitted.
    scoring : str, callable or None
        None is accuracy or R².
    is_weighted : bool
        Whether it will be called with `sample_weight`.

    Returns
    -------
    scorer : callable

    Raises
    ------
    ValueError
        If it does not take the weights that it will get.
    """
    if scoring is None:
        scoring = "accuracy" if is_classifier(estimator) else "r2"
    scorer = check_scoring(estimator, scoring=scoring)
    if is_weighted and not _takes_weight(scorer):
        shown = repr(scoring) if isinstance(scoring, str) else _name(scoring)
        raise ValueError(
            f"sample_weight was given, but scoring={shown} takes no `sample_weight`, so the scores "
            "would be unweighted. Leave sample_weight out, or use a scorer that takes weights: "
            "scoring(estimator, X, y, sample_weight=None), or make_scorer of such a function."
        )
    return scorer


def _takes_weight(scorer: Any) -> bool:
    """Tell whether a scorer takes `sample_weight`; True where that cannot be determined."""
    # A scikit-learn scorer passes its keywords on to the function it was made from.
    called = getattr(scorer, "_score_func", scorer)
    try:
        parameters = signature(called).parameters
    except ValueError:  # compiled, without a signature
        return True
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    return takes_any or "sample_weight" in parameters


def _name(scoring: Any) -> str:
    return getattr(scoring, "__name__", None) or repr(scoring)


class Data(NamedTuple):
    """All rows, with what is needed to fit, score and measure on any of them.

    Attributes
    ----------
    X : array-like of shape (n, p)
        Rows.
    y : ndarray of shape (n,)
        Targets.
    weight : ndarray of shape (n,) or None
        Weights.
    classes : ndarray of shape (K,) or None
        The classes of `y`; None for numbers.
    fit_params, predict_params : dict
        Keywords of `fit` and of predictions, with values for all rows.
    scorer : callable
        The scorer.
    measure : Measure
        The indicator.
    of_probabilities : bool
        Whether it is that of the probability of the second class, not of predictions.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    classes: np.ndarray | None
    fit_params: dict[str, Any]
    predict_params: dict[str, Any]
    scorer: Any
    measure: Measure
    of_probabilities: bool

    def measured(self, responses: Responses) -> np.ndarray:
        """Return what the indicator is of."""
        if self.of_probabilities:
            return responses.predict_proba(responses.X)[:, 1]
        return responses.predict(responses.X)

    def fit(self, estimator: Any, rows: np.ndarray) -> None:
        """Fit an estimator on some rows."""
        keywords = _check_method_params(self.X, self.fit_params, indices=rows)
        estimator.fit(_safe_indexing(self.X, rows), self.y[rows], **keywords)

    def responses(self, estimator: Any, rows: np.ndarray) -> Responses:
        """Return the responses of a fitted estimator for some rows."""
        keywords = {name: values[rows] for name, values in self.predict_params.items()}
        return Responses(estimator, X=_safe_indexing(self.X, rows), keywords=keywords)

    def score(self, responses: Responses, X: Any, rows: np.ndarray) -> float:
        """Return the score of responses for some rows, X."""
        keywords = {} if self.weight is None else {"sample_weight": self.weight[rows]}
        return float(self.scorer(responses, X, self.y[rows], **keywords))


class FoldValues(NamedTuple):
    """One fold at one threshold: values, responses for the test rows by method, or an error."""

    train_score: float
    test_score: float
    train_gedi: float = np.nan
    test_gedi: float = np.nan
    responses: dict[str, np.ndarray] | None = None
    error: str | None = None


def run_fold(
    estimator: Any,
    part: ConstrainedPart,
    data: Data,
    train: np.ndarray,
    test: np.ndarray,
    path: Sequence[Any],
    error_score: Any,
) -> list[FoldValues]:
    """Fit an estimator once, and evaluate it at every threshold of a path.

    Parameters
    ----------
    estimator : estimator
        Fitted and changed in place.
    part : ConstrainedPart
        The part of it that has the threshold.
    data : Data
        All rows.
    train, test : ndarray of int
        The rows of the fold.
    path : sequence of thresholds
        More than one only where the part is reusable.
    error_score : "raise" or float
        Score of a fit that fails.

    Returns
    -------
    list of FoldValues
        One per threshold.
    """
    is_fitted, values = False, []
    for threshold in path:
        try:
            if not is_fitted:
                estimator.set_params(**{part.name: threshold})
                if part.is_reusable:
                    part.of(estimator)._is_corrected_later = True
                data.fit(estimator, train)
                is_fitted = True
            if part.is_reusable:
                part.of(estimator)._correct_at(threshold)
            values.append(_evaluate(estimator, data, train, test))
        except Exception as error:
            # As everywhere in scikit-learn, an error in one fit does not end the others.
            if isinstance(error_score, str):
                raise
            message = f"{type(error).__name__}: {error}"
            values.append(FoldValues(error_score, error_score, error=message))
    return values


def _evaluate(estimator: Any, data: Data, train: np.ndarray, test: np.ndarray) -> FoldValues:
    """Score and measure a fitted estimator on both parts of its fold."""
    seen, unseen = data.responses(estimator, train), data.responses(estimator, test)
    numbers = (
        data.score(seen, seen.X, train),
        data.score(unseen, unseen.X, test),
        data.measure(train, data.measured(seen)),
        data.measure(test, data.measured(unseen)),
    )
    responses = unseen.known
    if data.classes is not None and "predict_proba" in responses:
        proba = align_columns(responses["predict_proba"], unseen.classes_, data.classes)
        responses = {**responses, "predict_proba": proba}
    return FoldValues(*numbers, responses)
