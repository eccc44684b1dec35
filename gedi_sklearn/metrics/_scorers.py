"""Indicators as scorers: negated, so that a search for the largest score finds the fairest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metadata_routing import get_routing_for_object

from .._predictions import Responses, requests_attribute
from .._validation import (
    HasMethods,
    Interval,
    StrOptions,
    _BaseScorer,
    _check_response_method,
    check_labels,
    select_columns,
    validate_params,
)
from ..exceptions import RankDeficientKernelError, warn_caller
from ._didi import binned_didi, didi
from ._gedi import KERNEL_CONSTRAINTS, gedi
from ._hgr import hgr

__all__ = [
    "make_binned_didi_scorer",
    "make_didi_scorer",
    "make_gedi_scorer",
    "make_hgr_scorer",
]

_RESPONSE_METHODS = {"predict", "predict_proba", "decision_function"}
_SCORER_CONSTRAINTS: dict = {
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


class _DisparityScorer(_BaseScorer):
    """A negated indicator as a scorer; the attribute comes from X or by metadata routing."""

    def __init__(
        self,
        indicator: Callable[..., float],
        options: dict[str, Any],
        sensitive_columns: Any,
        response_method: Any,
    ) -> None:
        self._indicator = indicator
        self._sensitive_columns = sensitive_columns
        # Not seen from the signature of the function below, which takes any keyword.
        self.takes_weight = "sample_weight" in signature(indicator).parameters
        super().__init__(
            score_func=partial(_score if self.takes_weight else _unweighted_score, indicator),
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
        pos_label = options["pos_label"] if is_classifier(estimator) else None
        responses = self._with_attribute(estimator, method, X, kwargs.get("sensitive_features"))
        y_pred = method_caller(responses, method, X, pos_label=pos_label)
        if options.get("task") == "auto":
            options["task"] = _task_of(estimator, method)
        if is_classifier(estimator) and method != "predict":
            # Scores belong to one class, so the targets must be the indicator of that class.
            positive = estimator.classes_[-1] if pos_label is None else pos_label
            y_true = (check_labels(y_true, "y_true") == positive).astype(np.float64)
            options["pos_label"] = None
        return self._sign * self._score_func(y_true, y_pred, **options, **kwargs)

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
    """Return an indicator that takes weights; its signature tells what can be routed."""
    options["sample_weight"] = sample_weight
    return _unweighted_score(
        indicator, y_true, y_pred, sensitive_features=sensitive_features, **options
    )


def _unweighted_score(
    indicator: Callable[..., float],
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any = None,
    **options: Any,
) -> float:
    """Return the indicator, or NaN with a warning where a small fold does not define it."""
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
    """Return the form of DIDI; decision values are no probabilities, so they count as numbers."""
    if is_regressor(estimator) or method == "decision_function":
        return "regression"
    return "classification" if is_classifier(estimator) else "auto"


@validate_params(
    {
        **_SCORER_CONSTRAINTS,
        "kernel": [
            StrOptions({"polynomial", "fourier"}),
            HasMethods(["fit", "transform"]),
            callable,
        ],
        "degree": KERNEL_CONSTRAINTS["degree"],
        "relative": ["boolean", Interval(Integral, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def make_gedi_scorer(
    *,
    sensitive_columns: Any = None,
    response_method: Any = "predict",
    kernel: Any = "polynomial",
    degree: int = 1,
    relative: bool | int = False,
    pos_label: Any = None,
) -> _DisparityScorer:
    """Scorer of :func:`gedi`, negated: the largest score is the fairest.

    Parameters
    ----------
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, as X reaches the scorer. None: the
        values are routed, ``scorer.set_score_request(sensitive_features=True)``.
    response_method : {"predict", "predict_proba", "decision_function"} or list of these, \
            default="predict"
        What is measured. Probabilities and decision values are those of `pos_label`, by default
        of ``classes_[1]``; the original targets then count as 1 in that class.
    kernel : {"polynomial", "fourier"}, transformer or callable, default="polynomial"
        See :func:`gedi`; ``PolynomialKernel(degree, standardize=True)`` is recommended.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    relative : bool or int, default=False
        Divide by the indicator of the original targets; see :func:`gedi`.
    pos_label : object, default=None
        The label that counts as 1; needed for predicted labels that are text.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` is at most 0; NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, where the indicator is undefined, e.g.
        where the attribute has too few distinct values in a fold.

    See Also
    --------
    gedi : The indicator.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from gedi_sklearn.metrics import make_gedi_scorer
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> scorer = make_gedi_scorer(sensitive_columns=0)
    >>> cross_val_score(LinearRegression(), X, 2 * X[:, 0], scoring=scorer, cv=3)
    array([-2., -2., -2.])
    """
    options = {"kernel": kernel, "degree": degree, "relative": relative, "pos_label": pos_label}
    return _DisparityScorer(gedi, options, sensitive_columns, response_method)


_DIDI_OPTIONS: dict = {
    **_SCORER_CONSTRAINTS,
    "relative": ["boolean"],
    "task": [StrOptions({"auto", "classification", "regression"})],
}


@validate_params(_DIDI_OPTIONS, prefer_skip_nested_validation=True)
def make_didi_scorer(
    *,
    sensitive_columns: Any = None,
    response_method: Any = "predict",
    relative: bool = False,
    task: str = "auto",
    pos_label: Any = None,
) -> _DisparityScorer:
    """Scorer of :func:`didi`, negated: the largest score is the fairest.

    Parameters
    ----------
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute; see :func:`make_gedi_scorer`.
    response_method : {"predict", "predict_proba", "decision_function"} or list of these, \
            default="predict"
        What is measured; see :func:`make_gedi_scorer`.
    relative : bool, default=False
        Divide by the value of the original targets.
    task : {"auto", "classification", "regression"}, default="auto"
        The form of the indicator. "auto" takes the estimator's own task, and the regression form
        for decision values.
    pos_label : object, default=None
        The label that counts as 1.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` is at most 0, or NaN where the indicator is undefined.

    See Also
    --------
    didi : The indicator.

    Examples
    --------
    >>> from gedi_sklearn.metrics import make_didi_scorer
    >>> make_didi_scorer(sensitive_columns="sex")
    make_didi_scorer(sensitive_columns='sex', ..., greater_is_better=False)
    """
    options = {"relative": relative, "task": task, "pos_label": pos_label}
    return _DisparityScorer(didi, options, sensitive_columns, response_method)


@validate_params(
    {**_DIDI_OPTIONS, "bins": [Interval(Integral, 2, None, closed="left"), "array-like"]},
    prefer_skip_nested_validation=True,
)
def make_binned_didi_scorer(
    *,
    sensitive_columns: Any = None,
    response_method: Any = "predict",
    bins: Any = 3,
    relative: bool = False,
    task: str = "auto",
    pos_label: Any = None,
) -> _DisparityScorer:
    """Scorer of :func:`binned_didi`, negated: the largest score is the fairest.

    Parameters
    ----------
    sensitive_columns : int, str or list of these, default=None
        Column of X that holds the protected attribute; see :func:`make_gedi_scorer`.
    response_method : {"predict", "predict_proba", "decision_function"} or list of these, \
            default="predict"
        What is measured; see :func:`make_gedi_scorer`.
    bins : int or array-like of shape (n_bins + 1,), default=3
        Number of quantile bins of each scored sample, or edges that all samples share; see
        :func:`quantile_bin_edges`.
    relative : bool, default=False
        Divide by the value of the original targets.
    task : {"auto", "classification", "regression"}, default="auto"
        The form of the indicator; see :func:`make_didi_scorer`.
    pos_label : object, default=None
        The label that counts as 1.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` is at most 0, or NaN where the indicator is undefined.

    See Also
    --------
    binned_didi : The indicator.

    Examples
    --------
    >>> from gedi_sklearn.metrics import make_binned_didi_scorer
    >>> make_binned_didi_scorer(sensitive_columns="age", bins=5)
    make_binned_didi_scorer(sensitive_columns='age', ..., greater_is_better=False)
    """
    options = {"bins": bins, "relative": relative, "task": task, "pos_label": pos_label}
    return _DisparityScorer(binned_didi, options, sensitive_columns, response_method)


@validate_params(
    {
        **_SCORER_CONSTRAINTS,
        "method": [StrOptions({"kde", "chi2", "kernel", "nn"})],
        "degree": KERNEL_CONSTRAINTS["degree"],
        "relative": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def make_hgr_scorer(
    *,
    sensitive_columns: Any = None,
    response_method: Any = "predict",
    method: str = "kde",
    degree: int = 3,
    relative: bool = False,
    pos_label: Any = None,
) -> _DisparityScorer:
    """Scorer of :func:`hgr`, negated: the largest score is the fairest.

    Parameters
    ----------
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute; see :func:`make_gedi_scorer`.
    response_method : {"predict", "predict_proba", "decision_function"} or list of these, \
            default="predict"
        What is measured; see :func:`make_gedi_scorer`.
    method : {"kde", "chi2", "kernel", "nn"}, default="kde"
        How the dependence is estimated; see :func:`hgr`.
    degree : int, default=3
        Degree of the polynomials of ``method="kernel"``.
    relative : bool, default=False
        Divide by the value of the original targets.
    pos_label : object, default=None
        The label that counts as 1.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` is at most 0, or NaN where the indicator is undefined. It
        takes no weights.

    See Also
    --------
    hgr : The indicator.

    Examples
    --------
    >>> from gedi_sklearn.metrics import make_hgr_scorer
    >>> make_hgr_scorer(sensitive_columns="age", method="chi2")
    make_hgr_scorer(sensitive_columns='age', ..., greater_is_better=False)
    """
    options = {"method": method, "degree": degree, "relative": relative, "pos_label": pos_label}
    return _DisparityScorer(hgr, options, sensitive_columns, response_method)
