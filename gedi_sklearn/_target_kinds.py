"""The two kinds of targets that estimators take: real numbers, and classes of any label."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

from ._validation import (
    Outcomes,
    check_classes,
    check_column,
    check_labels,
    check_multiplied,
    check_numbers,
)
from .constraints import bounded_output


class RealTargetsMixin(RegressorMixin):
    """Targets that are real numbers; with the loss "kl" none is negative."""

    _loss: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._loss == "kl"
        return tags

    def _default_estimator(self) -> Any:
        return PoissonRegressor() if self._loss == "kl" else LinearRegression()

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        """Return the targets of a fit, shape (n,)."""
        return self._check_more_targets(y, "y")

    def _check_more_targets(self, y: Any, name: str) -> np.ndarray:
        """Return targets of other rows, shape (n,)."""
        y = check_numbers(check_column(y, name), name, n_columns=1)
        if self._loss == "kl":
            check_multiplied(y, name)
        return y

    def _labels(self, y: np.ndarray) -> np.ndarray:
        """Return targets as the caller gave them."""
        return y

    def _outcomes(self, y: np.ndarray) -> Outcomes:
        """Return the same, for constraints on some of the rows."""
        return Outcomes(y, None)


class ClassTargetsMixin(ClassifierMixin):
    """Targets that are classes, as 0…K − 1 in the order of `classes_`."""

    constraint: Any
    classes_: np.ndarray

    @property
    def _bounds_labels(self) -> bool:
        """Whether the constraint is on labels, not on the score of the second of two classes."""
        return bounded_output(self.constraint) not in ("probabilities", "distribution")

    @property
    def _binary_only(self) -> str | None:
        """Where only two classes are taken, what to do with more."""
        if self._bounds_labels:
            return None
        return (
            "on='probabilities' bounds the probability of the second of two classes; "
            "on='predictions' takes any number of classes."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._binary_only is None
        # Where the attribute separates the classes, the constraint rules out accurate predictions.
        tags.classifier_tags.poor_score = True
        return tags

    def _default_estimator(self) -> Any:
        return LogisticRegression()

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        """Return the classes of the rows of a fit, shape (n,), and set `classes_`."""
        self.classes_, codes = check_classes(y, sample_weight)
        if len(self.classes_) > 2 and self._binary_only is not None:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. "
                f"{self._binary_only}"
            )
        return codes

    def _check_more_targets(self, y: Any, name: str) -> np.ndarray:
        """Return the classes of other rows, shape (n,)."""
        labels = check_labels(check_column(y, name), name)
        unknown = np.setdiff1d(labels, self.classes_)
        if unknown.size:
            raise ValueError(
                f"{name} holds {unknown.tolist()}, which are not among the classes of y, "
                f"{self.classes_.tolist()}."
            )
        return np.searchsorted(self.classes_, labels)

    def _labels(self, y: np.ndarray) -> np.ndarray:
        """Return targets as the caller gave them."""
        return self.classes_[y]

    def _outcomes(self, y: np.ndarray) -> Outcomes:
        """Return the same, for constraints on some of the rows."""
        return Outcomes.of_classes(y, self.classes_)
