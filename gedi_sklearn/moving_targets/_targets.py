"""The two kinds of targets: real numbers and classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.utils.metaestimators import available_if

from .._as_fitted import answers_as_fitted
from .._predictions import checked_predict_proba
from .._validation import (
    Outcomes,
    check_classes,
    check_column,
    check_labels,
    check_multiplied,
    check_numbers,
)
from ._learner import ClassifierLearner, Learner


class RealTargetsMixin(RegressorMixin):
    """Real targets, fitted by regressors."""

    _loss_name: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._loss_name == "kl"
        return tags

    def _default_estimator(self) -> Any:
        return PoissonRegressor() if self._loss_name == "kl" else LinearRegression()

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        y = check_numbers(check_column(y, "y"), "y", n_columns=1)
        if self._loss_name == "kl":
            check_multiplied(y, "y")
        return y

    def _check_more_targets(self, y: Any) -> np.ndarray:
        return check_numbers(check_column(y, "y_val"), "y_val", n_columns=1)

    def _outcomes(self, y: np.ndarray) -> Outcomes:
        return Outcomes(y, None)

    def _learner_type(self, loss: str) -> Callable[..., Learner]:
        return partial(Learner, is_positive=loss == "kl")


def _inner_has(method: str) -> Any:
    """Return a check that the inner estimator, fitted where it is, has a method."""

    def check(wrapper: Any) -> bool:
        inner = getattr(wrapper, "estimator_", None)
        # An AttributeError raised by the inner estimator is more informative than ours.
        getattr(wrapper._inner_estimator() if inner is None else inner, method)
        return True

    return check


class ClassTargetsMixin(ClassifierMixin):
    """Classes of any label, fitted by classifiers."""

    classes_: np.ndarray
    estimator_: Any
    # Which response of the learner the projection uses.
    response_method: str = "auto"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where the attribute separates the classes, the constraint rules out accurate predictions.
        tags.classifier_tags.poor_score = True
        return tags

    def _default_estimator(self) -> Any:
        return LogisticRegression()

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        self.classes_, codes = check_classes(y, sample_weight)
        return codes

    def _check_more_targets(self, y: Any) -> np.ndarray:
        labels = check_labels(check_column(y, "y_val"), "y_val")
        unknown = np.setdiff1d(labels, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y_val holds {unknown.tolist()}, which are not among the classes of y, "
                f"{self.classes_.tolist()}."
            )
        return np.searchsorted(self.classes_, labels)

    def _outcomes(self, y: np.ndarray) -> Outcomes:
        return Outcomes.of_classes(y, self.classes_)

    def _learner_type(self, loss: str) -> Callable[..., Learner]:
        return partial(
            ClassifierLearner,
            classes=self.classes_,
            response_method=self.response_method,
            loss=loss,
        )

    @available_if(_inner_has("predict_proba"))
    @answers_as_fitted
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        proba : ndarray of shape (n, K)
            Columns in the order of `classes_`.
        """
        inner = self._new_inner_X(X)
        return checked_predict_proba(self.estimator_, inner, self.classes_)

    @available_if(_inner_has("predict_log_proba"))
    @answers_as_fitted
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        log_proba : ndarray of shape (n, K)
            Columns in the order of `classes_`.
        """
        inner = self._new_inner_X(X)
        return self.estimator_.predict_log_proba(inner)

    @available_if(_inner_has("decision_function"))
    @answers_as_fitted
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the inner estimator's confidence in `classes_[1]`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        scores : ndarray of shape (n,)
        """
        inner = self._new_inner_X(X)
        return self.estimator_.decision_function(inner)
