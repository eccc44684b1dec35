"""Score against indicator, on rows that the model has not seen, for a path of thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel, delayed

from .._folds import FoldMaker, Folds
from .._predictions import Responses, align_columns
from .._validation import (
    N_JOBS,
    HasMethods,
    Interval,
    StrOptions,
    _check_method_params,
    _safe_indexing,
    check_classes,
    check_column,
    check_groups,
    check_numbers,
    check_numbers_or_inf,
    check_same_length,
    check_sample_weight,
    check_sensitive,
    validate_params,
)
from ..exceptions import warn_caller
from ._indicator import (
    ConstrainedPart,
    Measure,
    find_constrained_part,
    make_measure,
    with_constraints,
)

# Values of the pooled predictions at one threshold.
_POOLED = ("score", "gedi", "null_mean", "null_q95", "low", "high", "upper")
# Shares of the indicator of y: no bound, then ever stricter ones.
_SHARES = (np.inf, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.0)


@dataclass(frozen=True)
class TradeoffCurve:
    """Score and indicator for every threshold of a path.

    Attributes
    ----------
    thresholds : ndarray of shape (m,) or (m, k)
        As given, in their order.
    param_name : str
        The parameter that was set to the thresholds.
    train_scores, test_scores : ndarray of shape (m, n_splits)
        Score on the training rows and on the test rows of each split.
    train_gedi, test_gedi : ndarray of shape (m, n_splits)
        The indicator that the estimator bounds, of the predictions for these rows.
    score, gedi : ndarray of shape (m,)
        Score and indicator of the pooled predictions: each row is predicted by the fit that has
        not seen it.
    null_mean, null_q95 : ndarray of shape (m,)
        Mean and 95 % quantile of `gedi` if the pooled predictions are independent of the
        attribute; see :func:`gedi_sklearn.metrics.gedi_inference`. A value below `null_q95` is no
        evidence of a disparity.
    low, high : ndarray of shape (m,)
        Confidence interval of `gedi`; see :func:`gedi_sklearn.metrics.gedi_inference`.
    upper : ndarray of shape (m,)
        Upper confidence limit of `gedi`; see :func:`gedi_sklearn.metrics.gedi_inference`.
    n_fits : int
        Number of fits of the estimator.
    indicator_name : str
        What `gedi` is, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import ProjectedRegressor
    >>> from gedi_sklearn.model_selection import tradeoff_curve
    >>> x = np.random.default_rng(0).uniform(size=(60, 1))
    >>> curve = tradeoff_curve(
    ...     ProjectedRegressor(sensitive_columns=0), x, 2 * x.ravel(), thresholds=[1.0, 0.5], cv=3
    ... )
    >>> curve.to_frame()[["threshold", "score", "gedi"]].round(2)
       threshold  score  gedi
    0        1.0   1.00   1.0
    1        0.5   0.75   0.5
    """

    thresholds: np.ndarray
    param_name: str
    train_scores: np.ndarray
    test_scores: np.ndarray
    train_gedi: np.ndarray
    test_gedi: np.ndarray
    score: np.ndarray
    gedi: np.ndarray
    null_mean: np.ndarray
    null_q95: np.ndarray
    low: np.ndarray
    high: np.ndarray
    upper: np.ndarray
    n_fits: int
    indicator_name: str = "indicator"

    def __getattr__(self, name: str) -> Any:
        hint = ". Draw it: gedi_sklearn.plotting.TradeoffDisplay(curve=curve).plot()"
        raise AttributeError(f"TradeoffCurve has no {name!r}{hint if name == 'plot' else ''}")

    def to_frame(self) -> Any:
        """Return the pooled values as a pandas DataFrame, one row per threshold.

        Returns
        -------
        frame : DataFrame
            With the columns `threshold`, `score`, `gedi`, `null_mean`, `null_q95`, `low`, `high`
            and `upper`.
        """
        import pandas as pd

        pooled = {name: getattr(self, name) for name in _POOLED}
        return pd.DataFrame({"threshold": list(self.thresholds), **pooled})


@validate_params(
    {
        "estimator": [HasMethods(["fit", "predict"])],
        "X": ["array-like", "sparse matrix"],
        "y": ["array-like"],
        "cv": ["cv_object"],
        "sensitive_features": ["array-like", None],
        "param_name": [str, None],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "sample_weight": ["array-like", None],
        "params": [dict, None],
        "groups": ["array-like", None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "error_score": [StrOptions({"raise"}), Real],
    },
    prefer_skip_nested_validation=False,
)
def tradeoff_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    thresholds: Any = None,
    cv: Any = 5,
    sensitive_features: Any = None,
    param_name: str | None = None,
    scoring: Any = None,
    pos_label: Any = None,
    confidence: float = 0.95,
    sample_weight: Any = None,
    params: dict[str, Any] | None = None,
    groups: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    error_score: Any = np.nan,
) -> TradeoffCurve:
    """Cross-validate an estimator for a path of thresholds: its score against its indicator.

    Parameters
    ----------
    estimator : estimator
        An estimator of this library, alone or inside pipelines, searches and other wrappers; never
        changed. What its constraint bounds is measured.
    X : array-like of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Targets.
    thresholds : sequence of float or of array-like of shape (k,), default=None
        The path, in any order. None goes from no bound over shares of 0.8, 0.6, 0.4, 0.3, 0.2 and
        0.1 to 0, for an estimator whose threshold is relative.
    cv : int, splitter or iterable of splits, default=5
        The folds, the same for all thresholds. No row may be in more than one test part. Unlike in
        scikit-learn, an integer shuffles the rows (by seed 0; stratified for classes).
    sensitive_features : array-like of shape (n,) or (n, m), default=None
        The protected attribute(s). They are used for the indicator, and passed to `fit` (and to
        `predict` where it needs them) unless the estimator has its own `sensitive_columns`. None
        takes these columns; inside a pipeline they are columns of another X, so that the attribute
        must be passed.
    param_name : str, default=None
        Parameter that is set to the thresholds, such as ``"constraint__age__threshold"``. None
        finds the threshold of the only constraint.
    scoring : str, callable or None, default=None
        A scorer; it must take `sample_weight` if weights are given. None is R² or accuracy, the
        `score` of this library's estimators.
    pos_label : object, default=None
        The class whose indicator is measured; None is the second of two classes.
    confidence : float, default=0.95
        Confidence level of the intervals.
    sample_weight : array-like of shape (n,), default=None
        Weights, in every fit, score and indicator.
    params : dict, default=None
        Further keywords of `fit`; those with one value per row are split with the rows.
    groups : array-like of shape (n,), default=None
        Which rows are not independent of each other, such as those of one person. An integer `cv`
        and the `fit` of the estimator make folds of them, and the intervals allow for them.
    n_jobs : int, default=None
        Number of processes, over folds and thresholds.
    verbose : int, default=0
        Above 0 joblib says how many of the fits are done.
    error_score : "raise" or float, default=nan
        Score of a fit that fails; its indicator is NaN, and so are the pooled values of its
        threshold.

    Returns
    -------
    TradeoffCurve

    Raises
    ------
    ValueError
        If a threshold or parameter is malformed, if weights are given but `scoring` takes none,
        or if all fits fail.

    Warns
    -----
    FitFailedWarning
        If some fits fail.
    UndefinedMetricWarning
        If the indicator is not defined on a fold.

    See Also
    --------
    best_under_constraint : Selects a candidate of a search by the same two numbers.
    gedi_sklearn.projection_path : The path of the targets alone, without a model.
    sklearn.model_selection.validation_curve : Scores for any parameter.

    Notes
    -----
    The fit of `ProjectedRegressor` and `ProjectedClassifier` does not depend on the threshold: one
    fit per fold serves the whole path, for the estimator alone and as the last step of a pipeline.
    If the inner estimator has a fixed seed, the result is bitwise that of refits.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import ProjectedRegressor
    >>> from gedi_sklearn.model_selection import tradeoff_curve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=300)
    >>> model = ProjectedRegressor(sensitive_columns=0)
    >>> curve = tradeoff_curve(model, X, y, thresholds=[1.0, 0.5, 0.0])
    >>> curve.score.round(1), curve.gedi.round(1), curve.n_fits
    (array([0.9, 0.8, 0.4]), array([1. , 0.5, 0. ]), 5)
    """
    estimator = with_constraints(estimator)
    part = find_constrained_part(estimator, param_name)
    steps = _check_thresholds(thresholds, part)
    y, classes = _check_targets(estimator, y, sample_weight)
    check_same_length(len(y), X=X)
    (X,) = indexable(X)
    weight = check_sample_weight(sample_weight, len(y))
    values = _check_attribute(part, X, sensitive_features, len(y))
    groups = check_groups(groups, len(y))
    measure = make_measure(part, X, y, values, weight, classes, pos_label, groups)
    scorer = check_scorer(estimator, scoring, is_weighted=weight is not None)
    keywords = _keywords(part, values, weight, groups, params)
    of_probabilities = part.constraint.on == "probabilities"
    data = Data(X, y, weight, classes, *keywords, scorer, measure, of_probabilities)
    fold_maker = FoldMaker(
        y=y, is_classifier=is_classifier(estimator), groups=groups, attribute=values
    )
    folds = fold_maker(cv, X)
    rows, order = _tested_rows(folds)
    # An unsuitable kernel or label should raise before the fits.
    measure.value(rows, measure.y[rows])

    paths = [steps] if part.is_reusable else [[step] for step in steps]
    results = Parallel(n_jobs=n_jobs, verbose=verbose)(
        delayed(run_fold)(clone(estimator), part, data, train, test, path, error_score)
        for train, test in folds.splits
        for path in paths
    )
    # One list of folds per threshold.
    flat = [value for path in results for value in path]
    table = [flat[position :: len(steps)] for position in range(len(steps))]
    _report_failures(table, steps)
    pooled = [_pool(estimator, values, data, rows, order, confidence) for values in table]
    return TradeoffCurve(
        thresholds=np.array(steps, dtype=np.float64),
        param_name=part.name,
        train_scores=np.array([[fold.train_score for fold in values] for values in table]),
        test_scores=np.array([[fold.test_score for fold in values] for values in table]),
        train_gedi=np.array([[fold.train_gedi for fold in values] for values in table]),
        test_gedi=np.array([[fold.test_gedi for fold in values] for values in table]),
        **dict(zip(_POOLED, map(np.array, zip(*pooled, strict=True)), strict=True)),
        n_fits=len(results),
        indicator_name=measure.name,
    )


def _check_thresholds(thresholds: Any, part: ConstrainedPart) -> list[Any]:
    """Return the path as floats, or as arrays of equal length."""
    if thresholds is None:
        if part.constraint.relative is False:
            raise ValueError(
                f"{part.name} is absolute (relative=False), so no default path suits it: pass "
                "thresholds= in units of the indicator."
            )
        thresholds = _SHARES
    if isinstance(thresholds, (str, bytes, Real)) or not np.iterable(thresholds):
        raise ValueError(f"thresholds must be a sequence of thresholds, got {thresholds!r}.")
    steps = []
    for position, given in enumerate(thresholds):
        step = float(given) if isinstance(given, Real) else check_numbers_or_inf(given)
        if not np.all(np.asarray(step) >= 0):
            raise ValueError(f"thresholds[{position}] must be at least 0, got {given!r}.")
        steps.append(step)
    if len({np.shape(step) for step in steps}) != 1:
        raise ValueError(
            "thresholds must hold at least one threshold: numbers only, or arrays of one length "
            f"only; got {thresholds!r}."
        )
    return steps


def _check_targets(
    estimator: Any, y: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the targets, numbers or labels, and the classes of labels."""
    if not is_classifier(estimator):
        return check_numbers(check_column(y, "y"), "y", n_columns=1), None
    classes, codes = check_classes(y, sample_weight)
    return classes[codes], classes


def _check_attribute(
    part: ConstrainedPart, X: Any, sensitive_features: Any, n_samples: int
) -> np.ndarray:
    """Return the attribute that the caller passed, or else that of the estimator."""
    own = part.part.sensitive_columns
    if sensitive_features is None and own is not None and not part.sees_X:
        raise ValueError(
            f"sensitive_columns={own!r} of {type(part.part).__name__} names a column of the X "
            "inside a pipeline. Pass its values as sensitive_features=."
        )
    return check_sensitive(
        sensitive_features,
        X=X,
        sensitive_columns=own if sensitive_features is None else None,
        n_samples=n_samples,
        kind="mixed",
    )


def _keywords(
    part: ConstrainedPart,
    values: np.ndarray,
    weight: np.ndarray | None,
    groups: np.ndarray | None,
    params: dict[str, Any] | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keywords of `fit` and of `predict`, with values for all rows."""
    keywords = dict(params or {})
    for name in ("sample_weight", "sensitive_features", "groups"):
        if part.keyword(name) in keywords:
            raise ValueError(
                f"params holds {part.keyword(name)!r}; pass {name}= instead, so that it is used in "
                "the folds, scores and indicators too."
            )
    if part.fit_takes_attribute:
        keywords[part.keyword("sensitive_features")] = values
    if weight is not None:
        keywords[part.keyword("sample_weight")] = weight
    if groups is not None and part.fit_takes_groups:
        keywords[part.keyword("groups")] = groups
    return keywords, {"sensitive_features": values} if part.predict_takes_attribute else {}


def _tested_rows(folds: Folds) -> tuple[np.ndarray, np.ndarray]:
    """Return the test rows in ascending order, and where each is among the concatenated folds."""
    if (folds.n_tests > 1).any():
        raise ValueError(
            f"cv: {folds.origin} put some rows into several test parts, so they would have several "
            f"pooled predictions: {folds.uneven_rows()}. Use an integer, KFold, StratifiedKFold or "
            "GroupKFold, or splits whose test parts hold no row twice."
        )
    return np.unique(np.concatenate([test for _, test in folds.splits]), return_index=True)


def _report_failures(table: list[list[FoldValues]], steps: list[Any]) -> None:
    """Warn of failed fits; raise if all failed."""
    errors = [[fold.error for fold in values if fold.error is not None] for values in table]
    n_failed, n_fits = sum(map(len, errors)), sum(map(len, table))
    if not n_failed:
        return
    first = next(error for listed in errors for error in listed)
    if n_failed == n_fits:
        raise ValueError(
            f"All {n_fits} fits of the curve failed; error_score='raise' shows where. The first "
            f"error: {first}"
        )
    where = [step for step, listed in zip(steps, errors, strict=True) if listed]
    warn_caller(
        f"{n_failed} of {n_fits} fits failed, at the thresholds {where}, whose pooled values are "
        f"NaN. The first error: {first}",
        FitFailedWarning,
    )


def _pool(
    estimator: Any,
    values: list[FoldValues],
    data: Data,
    rows: np.ndarray,
    order: np.ndarray,
    confidence: float,
) -> tuple[float, ...]:
    """Score and measure the predictions of all folds at once; NaN is what no value has."""
    parts = [fold.responses for fold in values if fold.responses is not None]
    if len(parts) < len(values):
        return (np.nan,) * len(_POOLED)
    pooled = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
    responses = Responses(estimator, pooled, classes=data.classes)
    X = data.X if len(rows) == len(data.y) else _safe_indexing(data.X, rows)
    measured = pooled["predict_proba"][:, 1] if data.of_probabilities else pooled["predict"]
    score, gedi = data.score(responses, X, rows), data.measure(rows, measured)
    if np.isnan(gedi):
        return (score, *(np.nan,) * (len(_POOLED) - 1))
    found = data.measure.infer(rows, measured, confidence)
    return (score, gedi, found.null_mean, found.null_q95, *found.interval, found.upper)


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
        shown = getattr(scoring, "__name__", None) or repr(scoring)
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
