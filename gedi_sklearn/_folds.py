"""The folds that `cv` stands for, and whose predictions are used for the rows of a fit.

An integer shuffles the rows: files come sorted, by date, by the attribute or by y, and folds of
neighbouring rows would show how a model extrapolates, not how it does on rows like these.

A learner that memorises its targets predicts its own rows far better than new ones, so what a
projection does to in-sample predictions does not carry over to new rows. Out-of-bag and
cross-fitted predictions behave like those for new rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import get_routing_for_object

from ._predictions import Responses, checked_predict, checked_predict_proba
from ._validation import _check_method_params, check_group_codes, holds_other_rows, take_rows
from .exceptions import warn_caller

# Folds of the correction where it is judged by rows that it has not seen.
CORRECTION_FOLDS = 3
# What `None` stands for, as in scikit-learn.
_DEFAULT_FOLDS = 5
# The rows are sorted if their position predicts a column: by a rank correlation beyond chance (the
# two-sided 0.1 % quantile of n^(-1/2) times a normal number) that is large enough to matter.
_CHANCE, _LEAST_TREND = 3.3, 0.1
# Expected number of rows in every sample of an ensemble that counts as none.
_ALWAYS_HELD = 0.01


class Folds(NamedTuple):
    """Splits of the rows, and the number of test parts that each row of positive weight is in.

    Attributes
    ----------
    splits : list of (ndarray, ndarray)
        Positions of the training and of the test rows; none of weight 0.
    n_tests : ndarray of int
        Number of test parts per row of positive weight.
    origin : str
        Where the splits come from, for messages: "the 5 splits of TimeSeriesSplit".
    """

    splits: list[tuple[np.ndarray, np.ndarray]]
    n_tests: np.ndarray
    origin: str

    def among(self, counted: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the splits as positions among the rows of a mask, of which they are."""
        position = np.cumsum(counted) - 1
        return [(position[train], position[test]) for train, test in self.splits]

    def uneven_rows(self) -> str:
        """Return, in words, how many rows are in no test part or in several."""
        n_none, n_several = int((self.n_tests == 0).sum()), int((self.n_tests > 1).sum())
        found = {"in no test part": n_none, "in several": n_several}
        parts = [f"{number} {where}" for where, number in found.items() if number]
        return f"of {len(self.n_tests)} rows, {' and '.join(parts)}"


@dataclass(frozen=True, kw_only=True)
class FoldMaker:
    """Makes folds of given rows; those of weight 0 have no part in them.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Targets, used for stratification.
    attribute : ndarray of shape (n, m)
        The protected attribute, which a file may be sorted by.
    is_classifier : bool
        Whether an integer means stratified folds.
    weight : ndarray of shape (n,), default=None
        Weights of the rows.
    groups : ndarray of shape (n,), default=None
        Groups of rows that no fold may split.
    random_state : int, RandomState or None, default=None
        Seed of the folds of an integer; None is 0.
    split_params : dict
        Further keywords of a splitter's `split`.
    """

    y: np.ndarray
    attribute: np.ndarray
    is_classifier: bool
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    random_state: Any = None
    split_params: dict[str, Any] = field(default_factory=dict)

    def __call__(self, cv: Any, X: Any) -> Folds:
        """Return the folds that `cv` makes of the rows.

        Parameters
        ----------
        cv : int, splitter, iterable of splits or None
            An integer makes shuffled folds, stratified for classes, or with groups folds of these;
            None is 5. A splitter and splits are taken as they are.
        X : array-like of shape (n, p)
            The rows.

        Returns
        -------
        Folds

        Raises
        ------
        ValueError
            If `cv` holds no splits, or anything but positions of rows, or if it needs groups and
            gets none, or more of them than there are.
        """
        if isinstance(cv, Iterable) and not hasattr(cv, "split"):
            return self._as_folds(_given_splits(cv, len(self.y)), "given")
        if cv is None or isinstance(cv, Integral):
            cv = self.shuffled(_DEFAULT_FOLDS if cv is None else int(cv))
            is_asked = self.groups is not None
        else:
            self._warn_of_order(cv)
            is_asked = asks_for_groups(cv)
        keywords = dict(self.split_params)
        if self.groups is not None and (is_asked or not hasattr(cv, "get_metadata_routing")):
            keywords.setdefault("groups", self.groups)
        # An error only where splitting fails without them: a splitter may find its groups itself.
        lacks_groups = is_asked and keywords.get("groups") is None
        name = type(cv).__name__
        no_groups = ValueError(
            f"cv: {name} splits by groups, but got none. Pass them, groups=; through a search of "
            "scikit-learn only with sklearn.set_config(enable_metadata_routing=True)."
        )
        y, counted = self.y, self._counted
        if len(counted) < len(y):
            keywords = _check_method_params(X, keywords, indices=counted)
            X, y = take_rows(X, counted), y[counted]
        try:
            splits = list(cv.split(X, y, **keywords))
        except (TypeError, ValueError) as error:
            if lacks_groups:
                raise no_groups from error
            raise ValueError(f"cv: {error}") from error
        _check_positions(splits, len(y), f"the {len(splits)} split(s) of {name}")
        splits = [tuple(counted[np.asarray(part, np.intp)] for part in split) for split in splits]
        folds = self._as_folds(splits, name)
        if lacks_groups and not folds.n_tests.all():  # scikit-learn 1.6 takes None as one group
            raise no_groups
        return folds

    def correction_folds(self) -> Folds:
        """Return folds that judge corrections; none of too few rows, or groups, of a class."""
        if self.n_independent <= CORRECTION_FOLDS:
            return Folds([], np.empty(0, dtype=int), "none")
        return self(CORRECTION_FOLDS, self.y)

    def shuffled(self, n_folds: int) -> Any:
        """Return the splitter that an integer stands for."""
        seed = 0 if self.random_state is None else self.random_state
        options = {"n_splits": n_folds, "shuffle": True, "random_state": seed}
        if self.groups is None:
            return StratifiedKFold(**options) if self.is_classifier else KFold(**options)
        if self.n_groups < n_folds:
            raise ValueError(
                f"cv={n_folds} makes folds of whole groups, but there are {self.n_groups} "
                "group(s). Use fewer folds."
            )
        return StratifiedGroupKFold(**options) if self.is_classifier else GroupKFold(**options)

    @property
    def n_groups(self) -> int:
        """Number of groups of positive weight; 0 without groups."""
        return 0 if self.groups is None else len(np.unique(self.groups[self._counted]))

    @property
    def n_independent(self) -> int:
        """Number of rows, or of groups, that folds are made of: of classes, of the rarest."""
        counted = self._counted
        kinds = self.y[counted] if self.is_classifier else np.zeros(len(counted))
        if self.groups is not None:
            codes = np.unique(self.groups[counted], return_inverse=True)[1]
            kinds = np.unique(np.column_stack([kinds, codes]), axis=0)[:, 0]
        return int(np.unique(kinds, return_counts=True)[1].min())

    @property
    def _counted(self) -> np.ndarray:
        """Positions of the rows of positive weight."""
        return np.arange(len(self.y)) if self.weight is None else np.flatnonzero(self.weight > 0)

    def _as_folds(self, splits: list[tuple[np.ndarray, np.ndarray]], whose: str) -> Folds:
        """Return splits without the rows of weight 0."""
        kept = splits
        if self.weight is not None:
            is_counted = self.weight > 0
            kept = [(train[is_counted[train]], test[is_counted[test]]) for train, test in splits]
        tested = np.concatenate([test for _, test in kept])
        n_tests = np.bincount(tested, minlength=len(self.y))[self._counted]
        where = whose if whose == "given" else f"of {whose}"
        origin = f"the {len(splits)} split(s) {where}"
        _require_rows(kept, origin)
        return Folds(kept, n_tests, origin)

    def _warn_of_order(self, splitter: Any) -> None:
        """Warn where a splitter cuts a sorted file into pieces."""
        if getattr(splitter, "shuffle", True) or asks_for_groups(splitter):
            return
        columns = {} if isinstance(splitter, StratifiedKFold) else {"y": self.y}
        for position, column in enumerate(self.attribute.T):
            columns[f"attribute {position}" if position else "the attribute"] = column
        trends = {name: _trend(column[self._counted]) for name, column in columns.items()}
        worst = max(trends, key=lambda name: trends[name], default="")
        if worst and trends[worst] > max(_LEAST_TREND, _CHANCE / np.sqrt(len(self._counted) - 1)):
            warn_caller(
                f"cv: {type(splitter).__name__} does not shuffle the rows, which are sorted: their "
                f"position predicts {worst} (rank correlation {trends[worst]:.2f}). Its folds "
                "measure extrapolation, not performance on rows like these. Use an integer, which "
                "shuffles, or shuffle=True; pass `groups` if rows of one person or period are "
                "alike."
            )


def _require_rows(splits: list[Any], origin: str) -> None:
    """Raise if a part of a split is empty."""
    for number, split in enumerate(splits):
        for name, part in zip(("training", "test"), split, strict=True):
            if not len(part):
                raise ValueError(
                    f"cv: of {origin}, split {number} has no {name} rows of positive weight."
                )


def asks_for_groups(splitter: Any) -> bool:
    """Tell whether a splitter requests groups."""
    try:
        return bool(get_routing_for_object(splitter).split.requests.get("groups"))
    except (AttributeError, ValueError):
        # No splitter, or a subclass whose split(*args) hides its parameters from scikit-learn.
        return False


def _trend(column: np.ndarray) -> float:
    """Return the size of the rank correlation of a column with the position of the row."""
    ranks = rankdata(
        column if column.dtype.kind in "fiub" else check_group_codes(column[:, None])[0]
    )
    positions = np.arange(len(ranks))
    ranks, positions = ranks - ranks.mean(), positions - positions.mean()
    spread = float(np.linalg.norm(ranks) * np.linalg.norm(positions))
    return abs(float(ranks @ positions)) / spread if spread else 0.0


def _given_splits(cv: Iterable[Any], n_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return splits that the caller has made."""
    try:
        splits = list(check_cv(cv).split())
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cv must be an integer, a splitter, or pairs (train, test) of positions of rows; "
            f"got a {type(cv).__name__} of something else ({error})."
        ) from error
    _check_positions(splits, n_rows, f"the {len(splits)} split(s) given")
    return [(np.asarray(train, np.intp), np.asarray(test, np.intp)) for train, test in splits]


def _check_positions(splits: list[Any], n_rows: int, origin: str) -> None:
    """Raise unless the parts of splits are positions of rows."""
    if not splits:
        raise ValueError("cv holds no splits. Use an integer, or a splitter.")
    for part in (part for split in splits for part in split):
        positions = np.asarray(part)
        if len(positions) and positions.dtype.kind not in "iu":
            raise ValueError(
                f"cv: {origin} must hold positions of rows, integers; got {positions.dtype}. Turn "
                "a mask into positions with np.flatnonzero(mask)."
            )
        if len(positions) and not 0 <= positions.min() <= positions.max() < n_rows:
            raise ValueError(
                f"cv: {origin} must hold positions from 0 to {n_rows - 1}, one for each row; got "
                f"{positions.min()} to {positions.max()}."
            )


class PredictionSource:
    """Where the predictions for the rows of a fit come from: the fitted model, as in the paper.

    Attributes
    ----------
    is_unseen : bool
        Whether the rows are new to what predicts them.
    """

    is_unseen: bool = False

    def prepare(self, estimator: Any) -> Any:
        """Return an unfitted estimator whose fit will provide the predictions."""
        return estimator

    def __call__(self, fitted: Any, y: np.ndarray) -> Any:
        """Return an estimator, or what takes its place, that predicts the rows of a fit on y."""
        return fitted


class OutOfBag(PredictionSource):
    """Each row is predicted by the members of an ensemble whose sample does not contain it.

    A row that every sample contains has no such prediction: it gets that of the whole ensemble,
    with a warning that counts these rows.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows.
    is_unseen : bool, default=True
        False where rows form groups: the members have seen other rows of the same group.
    """

    def __init__(self, X: Any, *, is_unseen: bool = True) -> None:
        self.X = X
        self.is_unseen = is_unseen
        self._has_warned = False

    def prepare(self, estimator: Any) -> Any:
        """Return the estimator with `oob_score` set, in its last step where it is a pipeline.

        Raises
        ------
        ValueError
            If it has no parameter `oob_score`.
        """
        ensemble = _ensemble(estimator)
        if not hasattr(ensemble, "oob_score"):
            raise ValueError(
                f"cv='oob' needs an inner estimator with out-of-bag predictions (a parameter "
                f"`oob_score`, e.g. a random forest); got {type(ensemble).__name__}. Use an "
                "integer `cv` for cross-fitted predictions."
            )
        if not ensemble.oob_score:
            ensemble.set_params(oob_score=True)
        return estimator

    def __call__(self, fitted: Any, y: np.ndarray) -> Any:
        """Return the out-of-bag predictions of a fitted ensemble."""
        ensemble = _ensemble(fitted)
        is_classifier = hasattr(ensemble, "classes_")
        name = "oob_decision_function_" if is_classifier else "oob_prediction_"
        for needed in (name, "estimators_samples_"):
            if not hasattr(ensemble, needed):
                raise ValueError(
                    f"cv='oob': the fitted {type(ensemble).__name__} has no `{needed}`. Use an "
                    "integer `cv` for cross-fitted predictions."
                )
        values = np.array(getattr(ensemble, name), dtype=np.float64)
        unseen = _never_left_out(ensemble, len(values))
        if unseen.any():
            rest = take_rows(self.X, np.flatnonzero(unseen))
            values[unseen] = fitted.predict_proba(rest) if is_classifier else fitted.predict(rest)
            self._warn_once(
                f"cv='oob': {int(unseen.sum())} of {len(values)} rows are in the sample of every "
                f"member of {type(ensemble).__name__} and are predicted by members that have seen "
                "them. Use more members (`n_estimators`)."
            )
        if not is_classifier:
            return Responses(fitted, {"predict": values})
        # An ensemble predicts what most of its members, or their mean, say.
        labels = fitted.classes_[values.argmax(axis=1)]
        return Responses(fitted, {"predict": labels, "predict_proba": values})

    def _warn_once(self, message: str) -> None:
        """Warn only once for all the fits that use these rows."""
        if not self._has_warned:
            warn_caller(message)
        self._has_warned = True


def leaves_rows_out(estimator: Any, n_rows: int) -> bool:
    """Tell whether an unfitted estimator is an ensemble whose members leave every row out.

    Not in a pipeline, whose earlier steps have seen the rows, nor where a warm start keeps members,
    nor with so few members that a row is likely to be in the sample of all of them.
    """
    if not hasattr(estimator, "get_params"):
        return False
    params = estimator.get_params(deep=False)
    if "oob_score" not in params or params.get("bootstrap") is not True:
        return False
    # A sample holds a row with probability 1 − 1/e.
    always_held = n_rows * (1 - np.exp(-1)) ** params.get("n_estimators", 0)
    return not params.get("warm_start", False) and always_held < _ALWAYS_HELD


def _ensemble(estimator: Any) -> Any:
    """Return the ensemble itself, which may be the last step of a pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def _never_left_out(ensemble: Any, n_rows: int) -> np.ndarray:
    """Return a mask of the rows that are in the sample of every member."""
    held = np.zeros(n_rows, dtype=int)
    for sample in ensemble.estimators_samples_:
        held[np.unique(sample)] += 1
    return held == len(ensemble.estimators_samples_)


@dataclass(frozen=True)
class CrossFitted(PredictionSource):
    """Each row is predicted by a clone that was fitted on the other folds.

    As everywhere in scikit-learn, the folds are made once. A row of weight 0 is in none of them: it
    is predicted by the fitted estimator, which has not seen it either.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The rows.
    folds : list of (ndarray, ndarray)
        Positions of training and test rows; the test parts are a partition of the rows of positive
        weight.
    fit_params : dict
        Keywords of a fit; those with one value per row are split with the rows.
    n_jobs : int or None
        Number of processes for the folds.
    needs_labels : bool
        Whether the labels of a classifier are asked for where it has probabilities. They are what
        it predicts, which need not be the most probable class.
    """

    is_unseen = True

    X: Any
    folds: list[tuple[np.ndarray, np.ndarray]]
    fit_params: dict[str, Any]
    n_jobs: int | None
    needs_labels: bool

    def __call__(self, fitted: Any, y: np.ndarray) -> Any:
        """Fit a clone of the fitted estimator per fold, and return their predictions.

        Raises
        ------
        ValueError
            If a clone would be fitted on a single class, although there are several.
        """
        classes = getattr(fitted, "classes_", None)
        if classes is not None:
            self._require_two_classes(y)
        predicted = classes if hasattr(fitted, "predict_proba") else None
        asked = y, predicted, self.needs_labels
        parts = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_predict)(clone(fitted), self.X, train, test, self.fit_params, *asked)
            for train, test in self.folds
        )
        tested = [test for _, test in self.folds]
        n_tests = np.bincount(np.concatenate(tested), minlength=len(y))
        if len(others := np.flatnonzero(n_tests == 0)):
            tested.append(others)
            parts.append(_predict(fitted, self.X, others, *asked))
        found = {}
        for method in parts[0]:
            own = [part[method] for part in parts]
            found[method] = np.empty((len(y), *own[0].shape[1:]), dtype=np.result_type(*own))
            for test, values in zip(tested, own, strict=True):
                found[method][test] = values
        return Responses(fitted, found)

    def _require_two_classes(self, y: np.ndarray) -> None:
        """Raise where a training part has one class only, which projected targets can cause."""
        for number, (train, _) in enumerate(self.folds):
            first = y[train[0]]
            if (y[train] == first).all() and (y != first).any():
                raise ValueError(
                    f"cv: without fold {number} the targets are all {str(first)!r} "
                    f"({int((y != first).sum())} of all rows differ), so a classifier cannot be "
                    "fitted for it. Use more rows of that class, folds that spread them or, where "
                    "targets are projected, a larger `threshold`."
                )


def _fit_and_predict(
    estimator: Any,
    X: Any,
    train: np.ndarray,
    test: np.ndarray,
    fit_params: dict[str, Any],
    y: np.ndarray,
    *asked: Any,
) -> dict[str, np.ndarray]:
    """Return what a clone fitted on `train` says of `test`, by its methods."""
    own = {name: value for name, value in fit_params.items() if not holds_other_rows(name)}
    keywords = {**fit_params, **_check_method_params(X, own, indices=train)}
    estimator.fit(take_rows(X, train), y[train], **keywords)
    return _predict(estimator, X, test, y, *asked)


def _predict(
    estimator: Any,
    X: Any,
    test: np.ndarray,
    y: np.ndarray,
    classes: np.ndarray | None,
    needs_labels: bool,
) -> dict[str, np.ndarray]:
    """Return what a fitted estimator says of `test`, by its methods: probabilities of `classes`."""
    held_out, found = take_rows(X, test), {}
    if classes is not None:
        found["predict_proba"] = checked_predict_proba(estimator, held_out, classes)
    if classes is None or needs_labels:
        predictions = checked_predict(estimator, held_out, n_columns=int(np.prod(y.shape[1:])))
        # Some learners return a single target as a column, or a column as a single target.
        found["predict"] = np.reshape(predictions, (len(test), *y.shape[1:]))
    return found


def make_prediction_source(
    cv: Any,
    X: Any,
    fold_maker: FoldMaker,
    fit_params: dict[str, Any],
    n_jobs: int | None,
    *,
    needs_labels: bool = False,
) -> PredictionSource:
    """Return what the parameter `cv` stands for.

    Parameters
    ----------
    cv : "train", "oob", int or splitter
        What makes folds gives cross-fitted predictions.
    X : array-like of shape (n, p)
        The rows.
    fold_maker : FoldMaker
        Makes the folds.
    fit_params : dict
        Keywords of a fit.
    n_jobs : int or None
        Number of processes for the folds.
    needs_labels : bool, default=False
        Whether the labels of a classifier are asked for where it has probabilities.

    Raises
    ------
    ValueError
        If a row is in no test fold, or in several.
    """
    (X,) = indexable(X)
    if isinstance(cv, str):
        is_unseen = fold_maker.groups is None
        return OutOfBag(X, is_unseen=is_unseen) if cv == "oob" else PredictionSource()
    folds = fold_maker(cv, X)
    if (folds.n_tests != 1).any():
        raise ValueError(
            f"cv: {folds.origin} do not put every row into exactly one test part, so a row "
            f"would have no prediction or several: {folds.uneven_rows()}. Use an integer, "
            "KFold, StratifiedKFold, or splits whose test parts hold every row once."
        )
    return CrossFitted(X, folds.splits, fit_params, n_jobs, needs_labels)
