"""What learners of the two kinds of targets respond with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._predictions import answers_as_fitted, checked_predict_proba
from .._target_kinds import ClassTargetsMixin, RealTargetsMixin
from ._learner import ClassifierLearner, Learner


class RealLearners(RealTargetsMixin):
    """Real targets, fitted by regressors."""

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


class ClassLearners(ClassTargetsMixin):
    """Classes of any label, fitted by classifiers."""

    estimator_: Any
    # Which response of the learner the projection uses.
    response_method: str = "auto"

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
