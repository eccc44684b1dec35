"""What the displays share: matplotlib, an estimator's responses, targets on a fitted kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier

from .._predictions import Responses, column_of_class, takes_attribute
from .._validation import (
    StrOptions,
    _check_response_method,
    _get_response_values,
    check_labels,
    check_sensitive,
    select_columns,
    validate_params,
)
from ..metrics import INDICATOR_CONSTRAINTS, TARGET_CONSTRAINTS

# In all displays: what is measured, what it is compared with, and the bound.
MEASURED_COLOR, REFERENCE_COLOR, THRESHOLD_COLOR = "C0", "0.6", "C3"

PREDICTION_CONSTRAINTS: dict = {**TARGET_CONSTRAINTS, **INDICATOR_CONSTRAINTS, "name": [str, None]}
_ESTIMATOR_CONSTRAINTS: dict = {
    "sensitive_features": ["array-like", None],
    "sensitive_columns": [Integral, str, list, tuple, None],
    "response_method": [StrOptions({"predict", "predict_proba", "decision_function"})],
    "name": [str, None],
}


def import_pyplot(caller: str) -> Any:
    """Return ``matplotlib.pyplot``; the error without matplotlib names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{caller} needs matplotlib ({error.name} is missing): "
            "pip install '.[plot]' in a clone."
        ) from error
    return plt


def plain_text(name: str | None) -> str | None:
    """Show a name as it is: "$" starts no formula, and a leading "_" hides no legend entry."""
    if name is None:
        return None
    return (" " if name.startswith("_") else "") + name.replace("$", r"\$")


def styled(given: dict[str, Any] | None, **style: Any) -> dict[str, Any]:
    """Return keywords of an artist: an alias of the caller, as lw, replaces what it stands for."""
    from matplotlib import cbook, lines

    return style | cbook.normalize_kwargs(given or {}, lines.Line2D)


def axes_or_new(display: Any, ax: Any) -> Any:
    """Return the axes that a display draws on: the caller's, or those of a new figure."""
    plt = import_pyplot(f"{type(display).__name__}.plot")
    return plt.subplots()[1] if ax is None else ax


def _sample_of(
    estimator: Any,
    X: Any,
    y: Any,
    attribute: Any,
    columns: Any,
    response_method: str,
    pos_label: Any,
) -> dict[str, Any]:
    """Return the keywords of `from_predictions` for an estimator and its data.

    As in a scorer, probabilities and decision values belong to `pos_label`, by default to
    ``classes_[1]``, and the targets are then the indicator of that class. An estimator whose
    `predict` asks for the attribute, alone or at the end of a pipeline, is given it.
    """
    check_sensitive(attribute, X=X, sensitive_columns=columns, kind="mixed")
    if columns is not None:
        attribute = select_columns(X, columns)
    _check_response_method(estimator, response_method)  # names it, not what takes its place
    needs_attribute = takes_attribute(estimator, response_method)
    keywords = {"sensitive_features": attribute} if needs_attribute else {}
    responses = Responses(estimator, X=X, keywords=keywords)
    y_pred, positive = _get_response_values(
        responses, X, response_method=response_method, pos_label=pos_label
    )
    if is_classifier(estimator) and len(estimator.classes_) > 2:
        if pos_label is None:
            raise ValueError(
                f"the estimator has {len(estimator.classes_)} classes {list(estimator.classes_)}; "
                "pass the one that is shown against the rest, pos_label=."
            )
        if response_method != "predict":
            y_pred = column_of_class(y_pred, np.asarray(estimator.classes_), pos_label)
    if is_classifier(estimator) and response_method != "predict":
        y, pos_label = (check_labels(y, "y") == positive).astype(np.float64), None
    elif is_classifier(estimator):
        pos_label = positive
    own = {"y_true": y, "y_pred": y_pred, "pos_label": pos_label}
    return {**own, "sensitive_features": attribute}


class PredictionDisplay(ABC):
    """A display of targets and predictions, which can come from a fitted estimator."""

    @classmethod
    @abstractmethod
    def from_predictions(cls, y_true: Any, y_pred: Any = None, **keywords: Any) -> Self:
        """Measure targets and predictions, and draw."""

    @staticmethod
    def _name_of(estimator: Any, response_method: str) -> str:
        """Return what the display calls the predictions of an estimator."""
        return type(estimator).__name__

    @classmethod
    @validate_params(_ESTIMATOR_CONSTRAINTS, prefer_skip_nested_validation=False)
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sensitive_columns: Any = None,
        response_method: str = "predict",
        pos_label: Any = None,
        name: str | None = None,
        **keywords: Any,
    ) -> Self:
        """Predict, measure targets and predictions, and draw.

        Parameters
        ----------
        estimator : estimator
            A fitted regressor or classifier. One whose predictions ask for the attribute, alone
            or at the end of a pipeline, is given it.
        X : array-like of shape (n, p)
            Features.
        y : array-like of shape (n,)
            Original targets.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            The protected attribute; None where `sensitive_columns` names it.
        sensitive_columns : int, str or list of these, default=None
            Column(s) of X that hold the attribute.
        response_method : {"predict", "predict_proba", "decision_function"}, default="predict"
            What is measured; see :func:`gedi_sklearn.metrics.make_disparity_scorer`.
        pos_label : object, default=None
            The label that counts as 1; of two classes by default ``classes_[1]``.
        name : str, default=None
            Name of the predictions; None takes it from the estimator.
        **keywords : dict
            Further keywords of :meth:`from_predictions`, such as `kernel`,
            `sample_weight` and `ax`.

        Returns
        -------
        display : object
        """
        import_pyplot(f"{cls.__name__}.from_estimator")
        given = (sensitive_features, sensitive_columns, response_method, pos_label)
        sample = _sample_of(estimator, X, y, *given)
        name = name or cls._name_of(estimator, response_method)
        return cls.from_predictions(**sample, name=name, **keywords)
