"""Indicators as scorers: negated, so that a search for the largest score finds the fairest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metadata_routing import get_routing_for_object

from .._predictions import Responses, column_of_class, requests_attribute
from .._validation import (
    StrOptions,
    _BaseScorer,
    _check_response_method,
    _num_samples,
    check_labels,
    select_columns,
)
from ..exceptions import RankDeficientKernelError, warn_caller
from ._inputs import on_subset, ratio, undefined_if_empty

_RESPONSE_METHODS = {"predict", "predict_proba", "decision_function"}
SCORER_CONSTRAINTS: dict = {
    "sensitive_columns": [Integral, str, list, tuple, None],
    "response_method": [StrOptions(_RESPONSE_METHODS), list, tuple],
}
_NO_ATTRIBUTE = (
    "the scorer got no protected attribute. Either name the columns of X that hold it, "
    "{factory}(sensitive_columns=...), or route its values: with "
    "sklearn.set_config(enable_metadata_routing=True), "
    "{factory}(...).set_score_request(sensitive_features=True) and sensitive_features= passed "
    "beside y. A meta-estimator that calls scorers without X, such as TunedThresholdClassifierCV, "
    "cannot work with sensitive_columns: route the values there."
)


class DisparityScorer(_BaseScorer):
    """A negated indicator as a scorer; the attribute comes from X or by metadata routing."""

    def __init__(
        self,
        indicator: Callable[..., float],
        options: dict[str, Any],
        sensitive_columns: Any,
        response_method: Any,
        conditional_on: Any = None,
    ) -> None:
        self._indicator = indicator
        self._sensitive_columns = sensitive_columns
        self._conditional_on = conditional_on
        super().__init__(
            score_func=partial(_score, indicator),
            sign=-1,
            kwargs=options,
            response_method=response_method,
        )

    def __repr__(self) -> str:
        options = {
            "sensitive_columns": self._sensitive_columns,
            "response_method": self._response_method,
            **self._kwargs,
        }
        if self._conditional_on is not None:
            options["conditional_on"] = self._conditional_on
        shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
        return f"{_factory(self._indicator)}({shown}, greater_is_better=False)"

    def _score(
        self, method_caller: Callable, estimator: Any, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        if self._sensitive_columns is not None:
            if kwargs.get("sensitive_features") is not None:
                raise ValueError(
                    "the scorer got both sensitive_columns= and sensitive_features=; use one."
                )
            kwargs["sensitive_features"] = select_columns(X, self._sensitive_columns)
        method = _check_response_method(estimator, self._response_method).__name__
        options = dict(self._kwargs)
        if self._conditional_on is not None:
            kwargs["conditional_on"] = select_columns(X, self._conditional_on, "conditional_on")
        pos_label = options["pos_label"] if is_classifier(estimator) else None
        responses = self._with_attribute(estimator, method, X, kwargs.get("sensitive_features"))
        y_pred = method_caller(responses, method, X, pos_label=pos_label)
        subset = options.pop("subset", None)
        if subset is not None:
            positive = options["pos_label"]
            if positive is None and is_classifier(estimator) and len(estimator.classes_) == 2:
                positive = estimator.classes_[1]
            given = on_subset(subset, y_true, positive, y_pred, *kwargs.values())
            y_true, y_pred, *others = given
            kwargs = dict(zip(kwargs, others, strict=True))
            if not _num_samples(y_true):
                return undefined_if_empty(subset)
        if options.get("task") == "auto":
            options["task"] = _task_of(estimator, method)
        if is_classifier(estimator):
            classes, labels = np.asarray(estimator.classes_), check_labels(y_true, "y_true")
            if method == "predict":
                # A fold of the fit may have lacked a class.
                classes = np.union1d(classes, labels)
            is_joint = method == "predict" and (pos_label is not None or "task" in options)
            if len(classes) > 2 and not is_joint:
                if pos_label is None:
                    return self._sign * self._one_against_rest(
                        classes, labels, y_pred, options, kwargs
                    )
                y_pred = column_of_class(y_pred, classes, pos_label)
            if method != "predict":
                # Scores belong to one class, so the targets must be the indicator of that class.
                y_true = (labels == (classes[-1] if pos_label is None else pos_label)).astype(float)
                options["pos_label"] = None
        return self._sign * self._score_func(y_true, y_pred, **options, **kwargs)

    def _one_against_rest(
        self, classes: np.ndarray, labels: np.ndarray, y_pred: Any, options: dict, kwargs: dict
    ) -> float:
        """Return the value of the worst class, or for DIDI the sum over the classes."""
        if y_pred.ndim == 1:
            # A class that is neither there nor predicted has no value.
            classes = np.union1d(labels, y_pred)
            y_pred = (y_pred[:, None] == classes).astype(np.float64)
        own = [
            ((labels == c).astype(np.float64), column_of_class(y_pred, classes, c))
            for c in classes.tolist()
        ]

        def measure(truth: np.ndarray, response: Any) -> float:
            return self._score_func(truth, response, **options, **kwargs)

        if "task" not in options:
            return float(np.max([measure(*pair) for pair in own]))
        is_relative = options.pop("relative")
        options["task"] = "regression"
        value = sum(measure(*pair) for pair in own)
        return ratio(value, sum(measure(truth, None) for truth, _ in own)) if is_relative else value

    def _with_attribute(self, estimator: Any, method: str, X: Any, values: Any) -> Any:
        """Return the estimator, or its responses where its predictions ask for the attribute.

        Scikit-learn routes metadata to scorers and not through them. What is handed on is what
        was routed under the attribute's own name, as it was to `fit`: under another name, or from
        a column, another attribute may be measured than the estimator knows.
        """
        if values is None or self._sensitive_columns is not None:
            return estimator
        request = get_routing_for_object(self).score.requests.get("sensitive_features")
        if isinstance(request, str) or not requests_attribute(estimator, method):
            return estimator
        return Responses(estimator, X=X, keywords={"sensitive_features": values})


def _score(
    indicator: Callable[..., float],
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    **options: Any,
) -> float:
    """Return the indicator; NaN, with a warning, if it is undefined on a small fold.

    The signature declares what can be routed.
    """
    options["sample_weight"] = sample_weight
    if sensitive_features is None:
        raise ValueError(_NO_ATTRIBUTE.format(factory=_factory(indicator)))
    try:
        return indicator(y_true, y_pred, sensitive_features=sensitive_features, **options)
    except RankDeficientKernelError as error:
        warn_caller(f"{error} The score is NaN.", UndefinedMetricWarning)
        return float("nan")


def _factory(indicator: Callable) -> str:
    return f"make_{indicator.__name__}_scorer"


def _task_of(estimator: Any, method: str) -> str:
    """Return the form of DIDI; decision values, which are not probabilities, count as numbers."""
    if is_regressor(estimator) or method == "decision_function":
        return "regression"
    return "classification" if is_classifier(estimator) else "auto"
