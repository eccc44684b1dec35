"""Indicators as scorers: negated, so that a search for the largest score finds the fairest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metadata_routing import get_routing_for_object

from .._predictions import Responses, column_of_class, requests_attribute
from .._validation import (
    StrOptions,
    _check_response_method,
    check_keywords,
    check_labels,
    check_notion,
    declared_ranges,
    is_text,
    select_columns,
    validate_params,
)
from .._validation._scorer import BaseScorer
from ..exceptions import RankDeficientKernelError, warn_caller
from ..kernels import KERNEL_CONSTRAINTS
from ._didi import didi
from ._gedi import check_relative, gedi
from ._hgr import hgr
from ._inference import gedi_inference
from ._inputs import is_constraint, on_subset, ratio

_COLUMNS = [Integral, str, list, tuple, None]
# What the scorer gives an indicator itself, and what has no say in the upper limit.
_GIVEN = {"y_true", "y_pred", "sensitive_features", "sample_weight", "groups"}
_UNUSED = {("gedi_upper", name) for name in ("method", "n_resamples", "random_state")}
# What is asked of an estimator where a constraint bounds it; of a regressor `predict`.
_RESPONSES: dict[str, Any] = {
    "predictions": "predict",
    "probabilities": "predict_proba",
    "distribution": ["predict_proba", "predict"],
}


def _gedi_upper(y_true: Any, y_pred: Any, **options: Any) -> float:
    """Return the upper confidence limit of GeDI."""
    return gedi_inference(y_true, y_pred, **options).upper


# The function that measures, and the one whose parameters it has.
_METRICS: dict[str, tuple[Callable[..., float], Any]] = {
    "gedi": (gedi, gedi),
    "gedi_upper": (_gedi_upper, gedi_inference),
    "didi": (didi, didi),
    "hgr": (hgr, hgr),
}


@validate_params(
    {
        "metric": "no_validation",
        "sensitive_columns": _COLUMNS,
        "response_method": [
            StrOptions({"predict", "predict_proba", "decision_function"}),
            list,
            tuple,
            None,
        ],
        "metric_params": "no_validation",
    },
    prefer_skip_nested_validation=True,
)
def make_disparity_scorer(
    metric: Any = "gedi",
    *,
    sensitive_columns: Any = None,
    response_method: Any = None,
    **metric_params: Any,
) -> DisparityScorer:
    """Make a scorer of a disparity, negated: the largest score is the fairest.

    "gedi_upper" takes `groups`, clusters of rows, by metadata routing
    (``set_score_request(groups=True)``); without them rows are taken as independent.

    Parameters
    ----------
    metric : {"gedi", "gedi_upper", "didi", "hgr"} or constraint object, default="gedi"
        :func:`gedi`; the ``upper`` of :func:`gedi_inference`; :func:`didi`; :func:`hgr`. Of a
        constraint: what it bounds, relative where it is, on the rows that it bounds (of a
        :class:`FineConstraint` the sum of all coefficients). Its threshold has no say.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, as X reaches the scorer. None: the
        values are routed, ``scorer.set_score_request(sensitive_features=True)``.
    response_method : {"predict", "predict_proba", "decision_function"} or list of these, \
            default=None
        What is measured; None is "predict", or what the constraint bounds. Probabilities and
        decision values are those of `pos_label`, by default of ``classes_[1]``; the original
        targets then count as 1 in that class. Of more than two classes each is measured against
        the rest, and the worst one counts (of DIDI the sum).
    **metric_params
        Parameters of the metric's function, such as `kernel`, `relative`, `n_bins`, `subset`.
        `conditional_on` names column(s) of X. `pos_label`, the label that counts as 1, is needed
        where two predicted labels are text; of two numbers the larger counts. "positive" as
        `subset` is that label, by default the second of two classes. `task="auto"` of DIDI takes
        the estimator's own task, and the regression form for decision values. Beside a constraint
        only `pos_label` and `conditional_on`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` is at most 0; NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, where the indicator is undefined, e.g.
        where the attribute has too few distinct values in a fold.

    Raises
    ------
    TypeError
        If the metric has no such parameter.
    ValueError
        If the metric is unknown, or a parameter contradicts the constraint.

    See Also
    --------
    gedi : The default indicator.
    didi, hgr, gedi_inference : The others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from gedi_sklearn import CoarseConstraint
    >>> from gedi_sklearn.metrics import make_disparity_scorer
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> scorer = make_disparity_scorer(sensitive_columns=0)
    >>> cross_val_score(LinearRegression(), X, 2 * X[:, 0], scoring=scorer, cv=3)
    array([-2., -2., -2.])
    >>> share = make_disparity_scorer(CoarseConstraint(), sensitive_columns=0)
    >>> cross_val_score(LinearRegression(), X, 2 * X[:, 0], scoring=share, cv=3)
    array([-1., -1., -1.])
    """
    options = dict(metric_params)
    shown = {"sensitive_columns": sensitive_columns, "response_method": response_method, **options}
    if is_constraint(metric):
        metric = clone(metric)
        name, own, response_method = _bounded(metric, options, response_method)
        options |= own
    elif isinstance(metric, str) and metric in _METRICS:
        name = metric
    else:
        raise ValueError(
            f"metric must be one of {', '.join(map(repr, _METRICS))}, or a constraint object such "
            f"as CoarseConstraint(); got {metric!r}. Several constraints need a scorer each."
        )
    measure, described = _METRICS[name]
    known = {
        parameter: kinds
        for parameter, kinds in declared_ranges(described).items()
        if parameter not in _GIVEN and (name, parameter) not in _UNUSED
    }
    # Columns are named, and columns of a kernel would be those of one sample's rows.
    fixed = {"conditional_on": _COLUMNS, "kernel": KERNEL_CONSTRAINTS}
    known |= {parameter: kinds for parameter, kinds in fixed.items() if parameter in known}
    own_names = dict.fromkeys(("sensitive_columns", "response_method"), "no_validation")
    check_keywords(own_names | known, options, "make_disparity_scorer")
    relative = options.get("relative", False)
    check_relative(relative, options.get("norm", "l1"))
    check_notion(options.get("subset"), options.get("on", "predictions"), relative)
    if name == "didi":
        options.setdefault("task", "auto")
    arguments = [repr(metric), *(f"{name}={value!r}" for name, value in shown.items())]
    return DisparityScorer(
        measure,
        options,
        sensitive_columns,
        response_method or "predict",
        options.pop("conditional_on", None),
        f"make_disparity_scorer({', '.join(arguments)}, greater_is_better=False)",
    )


def _bounded(
    constraint: Any, given: dict[str, Any], response_method: Any
) -> tuple[str, dict[str, Any], Any]:
    """Return the metric that a constraint bounds, its options, and the response that it is of.

    Raises
    ------
    ValueError
        If the constraint is invalid, or the caller says something else than it.
    """
    constraint.validate()
    for name in given.keys() - {"pos_label", "conditional_on"}:
        raise ValueError(
            f"{name}={given[name]!r} was given together with {constraint!r}, which says what is "
            "measured. Change it there; only pos_label and conditional_on go with a constraint."
        )
    response = _RESPONSES.get(constraint.on)
    if None not in (response, response_method) and response_method != response:
        raise ValueError(
            f"response_method={response_method!r} was given together with {constraint!r}, which "
            f"bounds {constraint.on}, the result of {response}. Leave response_method at None, or "
            "change `on` of the constraint."
        )
    names = ["relative", "subset", "on"]
    if not constraint.joins_classes:
        names += ["kernel", "norm"]
    own = {name: getattr(constraint, name) for name in names if hasattr(constraint, name)}
    if response and constraint.on != "distribution":  # the responses themselves are measured
        own["on"] = "predictions"
    return "didi" if constraint.joins_classes else "gedi", own, response_method or response


_NO_ATTRIBUTE = (
    "the scorer got no protected attribute. Either name the columns of X that hold it, "
    "make_disparity_scorer(sensitive_columns=...), or route its values: with "
    "sklearn.set_config(enable_metadata_routing=True), "
    "make_disparity_scorer(...).set_score_request(sensitive_features=True) and sensitive_features= "
    "passed with y. A meta-estimator that calls scorers without X, such as "
    "TunedThresholdClassifierCV, cannot work with sensitive_columns: route the values there."
)


class DisparityScorer(BaseScorer):
    """A negated indicator as a scorer; the attribute comes from X or by metadata routing."""

    def __init__(
        self,
        indicator: Callable[..., float],
        options: dict[str, Any],
        sensitive_columns: Any,
        response_method: Any,
        conditional_on: Any,
        shown: str,
    ) -> None:
        self._sensitive_columns = sensitive_columns
        self._conditional_on = conditional_on
        self._shown = shown
        super().__init__(
            score_func=partial(_score, indicator),
            sign=-1,
            kwargs=options,
            response_method=response_method,
        )

    def __repr__(self) -> str:
        return self._shown

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
        given_label = options.get("pos_label")
        pos_label = given_label if is_classifier(estimator) else None
        responses = self._with_attribute(estimator, method, X, kwargs.get("sensitive_features"))
        if method == "predict_proba" and responses is estimator:
            responses = Responses(estimator, X=X)  # refuses what are no probabilities
        y_pred = method_caller(responses, method, X, pos_label=pos_label)
        subset = options.pop("subset", None)
        if subset is not None:
            positive = given_label
            if positive is None and is_classifier(estimator) and len(estimator.classes_) == 2:
                positive = estimator.classes_[1]
            given = on_subset(subset, y_true, positive, y_pred, *kwargs.values())
            if given is None:
                return float("nan")
            y_true, y_pred, *others = given
            kwargs = dict(zip(kwargs, others, strict=True))
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
            elif not is_joint and len(classes) == 2 and not is_text(classes):
                options["pos_label"] = classes[1]  # −1 and 1 are 0 and 1, as to a constraint
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
        is_relative = options.pop("relative", False)
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
    groups: Any = None,
    **options: Any,
) -> float:
    """Return the indicator; NaN, with a warning, if it is undefined on a small fold.

    The signature declares what can be routed.
    """
    options["sample_weight"] = sample_weight
    if groups is not None:
        if indicator is not _gedi_upper:
            raise ValueError(
                "the scorer got groups=, which affect limits but no indicator: only the metric "
                "'gedi_upper' takes them."
            )
        options["groups"] = groups
    if sensitive_features is None:
        raise ValueError(_NO_ATTRIBUTE)
    try:
        return indicator(y_true, y_pred, sensitive_features=sensitive_features, **options)
    except RankDeficientKernelError as error:
        warn_caller(f"{error} The score is NaN.", UndefinedMetricWarning)
        return float("nan")


def _task_of(estimator: Any, method: str) -> str:
    """Return the form of DIDI; decision values, which are not probabilities, count as numbers."""
    if is_regressor(estimator) or method == "decision_function":
        return "regression"
    return "classification" if is_classifier(estimator) else "auto"
