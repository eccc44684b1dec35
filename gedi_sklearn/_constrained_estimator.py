"""What all estimators of this library share: the data of a fit, the attribute, the constraint.

X is passed on as the user gave it, without the protected columns where that is requested.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from ._folds import FoldMaker
from ._predictions import keep_parameters
from ._validation import (
    Interval,
    Outcomes,
    _check_feature_names,
    _check_n_features,
    _fit_context,
    _get_feature_names,
    attribute_columns,
    check_attribute_columns,
    check_changed,
    check_classes,
    check_column,
    check_groups,
    check_labels,
    check_multiplied,
    check_nested,
    check_numbers,
    check_same_length,
    check_sample_weight,
    check_sensitive,
    column_positions,
    drop_columns,
    is_plain,
    refuse_misplaced,
    remember_signature,
)
from ._verdict import Verdict
from .constraints import (
    FittedConstraint,
    FittedCuts,
    bounded_output,
    check_constraint,
    fit_constraint,
)


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


# The declared types of the parameters of `ConstrainedEstimator`.
COLUMN_CONSTRAINTS: dict[str, list[Any]] = {
    "sensitive_columns": [
        Interval(Integral, None, None, closed="neither"),
        str,
        "array-like",
        None,
    ],
    "drop_sensitive": ["boolean"],
}


def fit_method(fit: Callable) -> Callable:
    """Return a `fit` that checks the parameters, and changes the object only once it has succeeded.

    It runs on a copy without fitted attributes, whose state the object then takes over. So an error
    or an interrupt leaves the old model as it was, and a new one has nothing of it.
    """

    @_fit_context(prefer_skip_nested_validation=False)
    @wraps(fit)
    def fitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        fresh = object.__new__(type(self))
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        vars(fresh).update(kept)
        keep_parameters(fresh)
        fit(fresh, *args, **kwargs)
        self.__dict__ = vars(fresh)
        return self

    return fitted


class ConstrainedEstimator(BaseEstimator):
    """Base of all estimators: data of a fit, the attribute, columns of X, the fitted constraint.

    A subclass has the parameters `constraint`, `sensitive_columns` and `drop_sensitive`, and
    inherits the kind of its targets from a mixin, which stands before it.
    """

    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012

    constraint: Any
    sensitive_columns: Any
    drop_sensitive: bool
    random_state: Any
    # What the constraint may be on.
    _can_bound: ClassVar[tuple[str, ...]] = ("predictions",)
    # Whether predictions read the attribute of new rows, which checks it.
    _reads_attribute = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        remember_signature(cls)

    def __new__(cls, *args: Any, **parameters: Any) -> Any:
        """Refuse parameters of the constraint and the solver, with the object to write."""
        refuse_misplaced(cls.__name__, parameters)
        return super().__new__(cls)

    def __getstate__(self) -> dict[str, Any]:
        # Targets of the training rows are no part of a model that is stored, sent or served.
        return {name: own for name, own in super().__getstate__().items() if name != "targets_"}

    def set_params(self, **params: Any) -> Any:
        """Set parameters, those of the constraint as ``constraint__threshold``.

        Returns
        -------
        self : object
        """
        objects = {"constraint": "DependenceConstraint()", "solver": "Solver()"}
        check_nested(self, params, objects)
        return super().set_params(**params)

    def _validate_params(self) -> None:
        check_changed(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check_training_data(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return targets, weights and attribute of the rows of `fit`, and record X's columns."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        check_constraint(self.constraint, type(self).__name__)
        y = self._check_targets(y, sample_weight)
        check_same_length(len(y), X=X)
        weight = check_sample_weight(sample_weight, len(y))
        attribute = self._check_attribute(X, sensitive_features, len(y), reset=True)
        self._record_columns(X)
        return y, weight, attribute

    def _record_columns(self, X: Any) -> None:
        """Record the columns of the X of `fit`; some of its rows are enough."""
        _check_feature_names(self, X, reset=True)
        _check_n_features(self, X, reset=True)
        # By position: at prediction X may come without the names it had in `fit`.
        named = self.sensitive_columns is not None
        self._positions = column_positions(X, self.sensitive_columns) if named else []
        if named:
            seen = getattr(self, "feature_names_in_", None)
            self._attribute_columns = None if seen is None else seen[self._positions].tolist()
        self._dropped = self._positions if self.drop_sensitive else []

    def _check_attribute(
        self, X: Any, sensitive_features: Any, n_samples: int, *, reset: bool
    ) -> np.ndarray:
        """Return the protected attribute (n, m) from `sensitive_features` or `sensitive_columns`.

        `reset` records the names of its columns, as for features; otherwise they are compared.
        """
        if self.drop_sensitive and self.sensitive_columns is None:
            raise ValueError(
                "drop_sensitive=True removes the protected column(s) from X, so it needs "
                "sensitive_columns=, which is None. Name the column(s) there, or leave them out "
                "of X yourself and keep drop_sensitive=False."
            )
        if reset:
            self._attribute_columns = attribute_columns(sensitive_features)
        elif sensitive_features is not None:  # the columns of X are compared as such
            check_attribute_columns(self._attribute_columns, sensitive_features)
        return check_sensitive(
            sensitive_features,
            X=X,
            sensitive_columns=self.sensitive_columns,
            n_samples=n_samples,
            kind="mixed",
        )

    def _check_columns(self, X: Any) -> None:
        """Refuse a new X whose columns are not those of the training X."""
        seen = hasattr(self, "feature_names_in_")
        if is_plain(X) and not seen and X.shape[1:] == (self.n_features_in_,):
            return
        if isinstance(X, (list, tuple)) and not X:
            check_array(X)  # raises scikit-learn's error
        if self._lacks_dropped(X):
            return
        self._refuse_missing_attribute(X)
        named = _get_feature_names(X) is not None
        # Names on one side only are worth a warning; most inner estimators give it themselves,
        # and the user should see it once.
        inner = getattr(self, "estimator_", None)
        if named == seen or not hasattr(inner, "n_features_in_"):
            _check_feature_names(self, X, reset=False)
        if getattr(X, "ndim", 2) == 2:  # the inner estimator reports any other shape itself
            _check_n_features(self, X, reset=False)

    def _refuse_missing_attribute(self, X: Any) -> None:
        """Refuse a frame without the attribute, where that is all it lacks."""
        names, seen = _get_feature_names(X), getattr(self, "feature_names_in_", None)
        if names is None or seen is None or not self._positions:
            return
        if list(names) == list(np.delete(seen, self._positions)):
            given = "drop_sensitive=True"
            if hasattr(self, "sensitive_at_predict"):
                given += " and sensitive_at_predict=False"
            raise ValueError(
                f"X lacks the attribute {self._attribute_columns}, which was a column of X in fit. "
                f"Keep the column, or fit with {given} to predict without it."
            )

    def _inner_X(self, X: Any) -> Any:
        """Return what the inner estimator sees of X: X itself, or a copy without columns."""
        return X if not self._dropped or self._lacks_dropped(X) else drop_columns(X, self._dropped)

    def _lacks_dropped(self, X: Any) -> bool:
        """Tell whether a frame has all the columns of the training frame but the dropped ones."""
        seen: Any = getattr(self, "feature_names_in_", None)
        names = None if seen is None or not self._dropped else _get_feature_names(X)
        return names is not None and list(names) == list(np.delete(seen, self._dropped))

    def _new_inner_X(self, X: Any) -> Any:
        """Return what the fitted inner estimator sees of a new X, once its columns are checked."""
        if not hasattr(self, "n_features_in_"):
            check_is_fitted(self)  # reads the tags first, which takes longer than to correct a row
        return self._checked_inner_X(X)

    def _checked_inner_X(self, X: Any) -> Any:
        self._check_columns(X)
        if self._positions and not (self._dropped or self._reads_attribute):
            # The inner estimator has seen no missing attribute in `fit` either.
            named = not is_plain(X) and _get_feature_names(X) is not None
            columns: Any = (self._attribute_columns if named else None) or self._positions
            given = columns[0] if len(columns) == 1 else columns  # as an error says it of `fit`
            check_sensitive(None, X=X, sensitive_columns=given, kind="mixed")
        return self._inner_X(X)

    def _fold_maker(
        self,
        y: np.ndarray,
        weight: np.ndarray | None,
        groups: Any,
        attribute: np.ndarray,
        split_params: dict[str, Any],
    ) -> FoldMaker:
        """Return what makes folds of the rows of a fit."""
        return FoldMaker(
            y=y,
            is_classifier=is_classifier(self),
            weight=weight,
            groups=check_groups(groups, len(y)),
            attribute=attribute,
            random_state=self._seed(),
            split_params=split_params,
        )

    def _seed(self) -> Any:
        """Return the seed of the folds."""
        return self.random_state

    @property
    def _n_bounded(self) -> int:
        """Number of classes whose labels are bounded; 0 of real targets and of probabilities."""
        return len(self.classes_) if is_classifier(self) else 0

    def _fit_constraint(
        self,
        attribute: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None,
        outcomes: Outcomes | None = None,
    ) -> FittedConstraint:
        """Return the constraint on some rows."""
        return fit_constraint(
            self.constraint,
            attribute,
            y,
            weight=weight,
            n_classes=self._n_bounded,
            outcomes=outcomes,
            allow_constant=True,
            names=self._attribute_columns,
            bounds=self._can_bound,
        )

    def _take_constraint(self, fitted: FittedConstraint | FittedCuts) -> None:
        """Set the fitted attributes that describe the constraint; no rows are kept."""
        self.kernel_: Any = fitted.kernel
        self.constraint_, self.threshold_ = fitted.constraint, fitted.threshold
        self.reference_ = fitted.reference

    def _take_verdict(self, verdict: Verdict | None, *, warns: bool = True) -> None:
        """Set the verdict, and warn of what it says."""
        self.verdict_ = verdict
        if verdict is not None and warns:
            verdict.warn()
