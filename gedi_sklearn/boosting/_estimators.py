"""Boosting whose predictions meet a constraint on the rows of the fit: the two estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from .._constrained_estimator import ClassTargetsMixin, RealTargetsMixin
from .._predictions import answers_as_fitted
from .._validation import StrOptions
from ._backends import Settings
from ._base import BaseConstrainedBoosting
from ._distributed import is_dask, lazily
from ._training import UNITS, Rows, as_probabilities, decide

# What a leaf may add to the logarithm of a rate, before the learning rate, as in the packages' own
# loss of Poisson: where few rows have nearly all claims a Newton step would overflow.
_LONGEST_STEP = 0.7
# Range of the logarithm of the slope of probabilities.
_SLOPES = (-3.0, 6.0)


class ConstrainedBoostingRegressor(RealTargetsMixin, BaseConstrainedBoosting):
    r"""Gradient boosting for regression under a constraint on the predictions.

    The multipliers of the constraint ascend while the trees grow, so that one run does what
    Moving Targets do in many fits. The attribute is needed in :meth:`fit` only, and with
    `drop_sensitive` the trees do not see it at all.

    Parameters
    ----------
    backend : {"xgboost", "lightgbm"}, default="xgboost"
        The package that grows the trees.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint`, :class:`FineConstraint` or :class:`DidiConstraint`; with `cv` it
        may have a `subset`. A list holds one constraint for each attribute, all of which are met.
    loss : {"squared_error", "kl"}, default="squared_error"
        The loss of the trees. "kl" is that of Poisson with its log link, for counts, rates and
        costs: predictions are positive, and the constraint is on them, not on their logarithms.
        `max_delta_step` of the package is then 0.7, unless `backend_params` say otherwise.
        Exposure is `sample_weight`, and y a rate.
    n_estimators : int, default=150
        Rounds: trees. Predictions are at the bound after about 50 rounds, or 200 where trees see
        the attribute through other columns only.
    learning_rate : float, default=0.1
        Share of a tree's step that is taken, at most 1.
    backend_params : dict, default=None
        Further parameters of the package, such as ``{"max_leaves": 8}``; what would have no effect
        is refused. Trees of both have 31 leaves at most, each of rows that weigh at least 20,
        unless it says otherwise. They see targets of deviation 1 (classes: 0 and 1) and weights
        of mean 1, which all limits refer to.
    cv : int, splitter or iterable of splits, default=None
        Folds. One booster is grown for each, all at once and with the same multipliers, which
        ascend on the predictions of the rows that a booster has not seen; a prediction is the
        mean of all. None grows one booster and looks at the rows that it has seen, which is as
        good where trees do not memorise them: many rows, small trees. An integer shuffles the
        rows, stratified for classes; with `groups` in `fit` it makes folds of these.
    confidence : float, default=None
        With which probability new rows are to keep the bound, between 0 and 1. The trees then grow
        under a stricter bound, found by up to 33 runs on three folds of the rows; see
        `certificate_`. None promises nothing.
    early_stopping_rounds : int, default=None
        End after so many rounds without a smaller loss of the last pair of `eval_set`, or with
        `cv` and without that of the rows held out, and keep the best round. Only rounds that
        exceed the bound by less than a tenth count. None grows them all.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, by position or name. Exactly one of
        `sensitive_features` and `sensitive_columns` must be given.
    drop_sensitive : bool, default=False
        Whether to remove `sensitive_columns` from the X of the trees. A frame without them
        predicts as well.
    n_jobs : int, default=None
        Threads of the package; None is 1, -1 all cores.
    random_state : int, RandomState or None, default=None
        Seed of the package, for parameters that draw rows or columns, and of the folds. None is 0.
    verbose : int, default=0
        Above 0, every so many rounds print a line.

    Attributes
    ----------
    booster_ : xgboost.Booster, lightgbm.Booster or list of these
        The booster; with `cv`, that of every fold. Scores are its raw ones times `scale_`, plus
        `intercept_`; with ``loss="kl"`` the exponential of that.
    intercept_ : ndarray of shape (C,)
        The mean of y, with ``loss="kl"`` its logarithm.
    scale_ : float
        The deviation of y, with ``loss="kl"`` 1.
    multipliers_ : ndarray of shape (k,) or (K, k)
        λ in the orthonormal basis of the kernel, those of several constraints one after another;
        a row for each of more than two classes.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_ : constraint object or None
        The constraint with its absolute threshold.
    threshold_ : float or ndarray
        The absolute threshold.
    reference_ : float or ndarray
        The indicator that `threshold` is a fraction of; 1.0 for an absolute threshold.
    history_ : dict of ndarrays of shape (rounds, ...)
        An entry for every round, of the predictions after it for the training rows (with `cv`, of
        rows held out): `loss`, its mean; `indicator`, what the constraint bounds,
        of the predictions; `multipliers`.
    evals_result_ : dict of dict of lists
        ``evals_result_["validation_0"][loss]`` has an entry for every round, of the
        first pair of `eval_set`.
    n_iter_ : int
        Rounds that are kept: of the last tenth, those that exceed the bound least.
    certificate_ : Certificate or None
        What is promised for new rows; ``print`` it. None without `confidence`, or where the rows
        are too few for any promise.
    verdict_ : Verdict or None
        Whether the bound is met, on the training rows or (with `cv`) on new ones, what the
        kernel misses, and whether the reference is more than chance; ``print`` it.
        None without a bound, or below 50 rows.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X, if they are all strings.

    See Also
    --------
    ConstrainedBoostingClassifier : The same for classes.
    ProjectedRegressor : Any learner, fitted once and corrected.
    MovingTargetsRegressor : Any learner, and targets that satisfy the constraint.

    Notes
    -----
    Predictions f that minimise a squared loss under a constraint on their coordinates
    :math:`g = Q^T W f` are a plain fit on :math:`y - Q\lambda`, with Q the orthonormal columns of
    the kernel. Every round takes a proximal step of the multipliers, and then grows a tree on the
    gradient :math:`f - (y - Q(\lambda + \kappa e))`:

    .. math:: v = \lambda + \eta g, \qquad \lambda \leftarrow \lambda + \eta e, \qquad
        e = g - \Pi_C(v / \eta),

    where :math:`\Pi_C` is the nearest point of the allowed coordinates. What remains of the
    constraint, e, pulls beside the multipliers, which would swing around the end without it; κ is
    0.15 / `learning_rate`, so that 0.15 of e is taken out a round. With ``loss="kl"`` trees are
    grown on :math:`f (1 + (Q(\lambda + \kappa e) + \nu) / \bar y) - y`, the derivative by log f
    of the Poisson loss and the constraint on f, with ν such that the mean is that of y.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, ConstrainedBoostingRegressor
    >>> from gedi_sklearn.datasets import make_running_example
    >>> X, y = make_running_example(400, random_state=0)
    >>> model = ConstrainedBoostingRegressor("xgboost", CoarseConstraint(0.3), sensitive_columns=0)
    >>> model = model.fit(X, y)
    >>> bool(model.history_["indicator"][-1] < 1.1 * model.threshold_)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseConstrainedBoosting._parameter_constraints,
        "loss": [StrOptions(set(UNITS))],
    }

    def __init__(
        self,
        backend: str = "xgboost",
        constraint: Any = None,
        *,
        loss: str = "squared_error",
        n_estimators: int = 150,
        learning_rate: float = 0.1,
        backend_params: dict[str, Any] | None = None,
        cv: Any = None,
        confidence: float | None = None,
        early_stopping_rounds: int | None = None,
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            backend,
            constraint,
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            backend_params=backend_params,
            cv=cv,
            confidence=confidence,
            early_stopping_rounds=early_stopping_rounds,
            sensitive_columns=sensitive_columns,
            drop_sensitive=drop_sensitive,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.loss = loss

    @property
    def _loss(self) -> str:
        return self.loss

    def _settings(self, n_outputs: int) -> Settings:
        own = super()._settings(n_outputs)
        if self.loss == "kl":
            return own._replace(params={"max_delta_step": _LONGEST_STEP, **own.params})
        return own

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where the targets are a function of the attribute, no good prediction is allowed.
        tags.regressor_tags.poor_score = True
        return tags

    def _calibrate(self, scores: np.ndarray, rows: Rows) -> None:
        pass  # scores are predictions

    def _class_scores(self, scores: np.ndarray) -> None:
        return None

    @answers_as_fitted
    def predict(self, X: Any) -> np.ndarray:
        """Predict targets; the attribute is not needed.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        if is_dask(X):
            return lazily(self.predict, X)
        return self._scores(X)[:, 0]


class ConstrainedBoostingClassifier(ClassTargetsMixin, BaseConstrainedBoosting):
    r"""Gradient boosting for classification under a constraint on labels or probabilities.

    The multipliers of the constraint ascend while the trees grow, so that one run does what
    Moving Targets do in many fits. The attribute is needed in :meth:`fit` only, and with
    `drop_sensitive` the trees do not see it at all. Two classes or more, of any label type.

    Parameters
    ----------
    backend : {"xgboost", "lightgbm"}, default="xgboost"
        The package that grows the trees.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint`, :class:`FineConstraint` or :class:`DidiConstraint`; with `cv` it
        may have a `subset`. A list holds one constraint for each attribute, all of which are met.
        With ``on="predictions"`` it bounds the labels, with ``on="probabilities"`` the probability
        of the second of two classes.
    n_estimators : int, default=150
        Rounds: trees, one for each class of more than two. The multipliers settle in about
        10 / `learning_rate` rounds.
    learning_rate : float, default=0.1
        Share of a tree's step that is taken, at most 1.
    backend_params : dict, default=None
        Further parameters of the package, such as ``{"max_leaves": 8}``; what would have no effect
        is refused. Trees of both have 31 leaves at most, each of rows that weigh at least 20,
        unless it says otherwise. They see targets of deviation 1 (classes: 0 and 1) and weights
        of mean 1, which all limits refer to.
    cv : int, splitter or iterable of splits, default=None
        Folds. One booster is grown for each, all at once and with the same multipliers, which
        ascend on the predictions of the rows that a booster has not seen; a prediction is the
        mean of all. None grows one booster and looks at the rows that it has seen, which is as
        good where trees do not memorise them: many rows, small trees. An integer shuffles the
        rows, stratified for classes; with `groups` in `fit` it makes folds of these.
    confidence : float, default=None
        With which probability new rows are to keep the bound, between 0 and 1. The trees then grow
        under a stricter bound, found by up to 33 runs on three folds of the rows; see
        `certificate_`. None promises nothing.
    early_stopping_rounds : int, default=None
        End after so many rounds without a smaller loss of the last pair of `eval_set`, or with
        `cv` and without that of the rows held out, and keep the best round. Only rounds that
        exceed the bound by less than a tenth count. None grows them all.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, by position or name. Exactly one of
        `sensitive_features` and `sensitive_columns` must be given.
    drop_sensitive : bool, default=False
        Whether to remove `sensitive_columns` from the X of the trees. A frame without them
        predicts as well.
    n_jobs : int, default=None
        Threads of the package; None is 1, -1 all cores.
    random_state : int, RandomState or None, default=None
        Seed of the package, for parameters that draw rows or columns, and of the folds. None is 0.
    verbose : int, default=0
        Above 0, every so many rounds print a line.

    Attributes
    ----------
    booster_ : xgboost.Booster, lightgbm.Booster or list of these
        The booster; with `cv`, that of every fold. Scores are its raw ones times `scale_`, plus
        `intercept_`.
    intercept_ : ndarray of shape (C,)
        The mean of y, or the share of each class (of two, of the second).
    scale_ : float
        The deviation of y; 1 for classes.
    multipliers_ : ndarray of shape (k,) or (K, k)
        λ in the orthonormal basis of the kernel, those of several constraints one after another;
        a row for each of more than two classes.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_ : constraint object or None
        The constraint with its absolute threshold.
    threshold_ : float or ndarray
        The absolute threshold.
    reference_ : float or ndarray
        The indicator that `threshold` is a fraction of; 1.0 for an absolute threshold.
    history_ : dict of ndarrays of shape (rounds, ...)
        An entry for every round, of the predictions after it for the training rows (with `cv`, of
        rows held out): `loss`, their mean squared error; `indicator`, what the constraint bounds,
        of labels or probabilities; `multipliers`.
    evals_result_ : dict of dict of lists
        ``evals_result_["validation_0"]["squared_error"]`` has an entry for every round, of the
        first pair of `eval_set` (of that, also `error`, the share of wrong labels).
    n_iter_ : int
        Rounds that are kept: of the last tenth, those that exceed the bound least.
    classes_ : ndarray of shape (K,)
        The labels.
    certificate_ : Certificate or None
        What is promised for new rows; ``print`` it. None without `confidence`, or where the rows
        are too few for any promise.
    verdict_ : Verdict or None
        Whether the bound is met, on the training rows or (with `cv`) on new ones, what the
        kernel misses, and whether the reference is more than chance; ``print`` it.
        None without a bound, or below 50 rows.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X, if they are all strings.

    See Also
    --------
    ConstrainedBoostingRegressor : The same for real targets, with the formulas.
    ProjectedClassifier : Any learner, fitted once and corrected.
    MovingTargetsClassifier : Any learner, and labels that satisfy the constraint.

    Notes
    -----
    The trees minimise the squared error of a 0/1 column, of the second of two classes or, one
    against the rest, of each. Labels are decided at 1/2, or by the largest score, and the
    coordinates g of the ascent are those of the labels.

    With ``on="probabilities"`` the scores, cut at 0 and 1, are the probabilities, and g is of them.
    Else they are Platt's sigmoid of the scores through 1/2 at the cut, or a softmax of several
    scores, so that they rank rows as the scores do and `predict` takes the most probable class.
    Their slope has the least log loss of the rows held out with `cv`, else of the training rows,
    which makes them too sure where trees memorise.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, ConstrainedBoostingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=400) > 0
    >>> model = ConstrainedBoostingClassifier("xgboost", CoarseConstraint(0.3), sensitive_columns=0)
    >>> model = model.fit(X, y)
    >>> bool(model.history_["indicator"][-1] < 1.1 * model.threshold_)
    True
    """

    _can_bound: ClassVar[tuple[str, ...]] = ("predictions", "probabilities")

    @property
    def _n_bounded(self) -> int:
        return len(self.classes_) if self._bounds_labels else 0

    @property
    def _bounded(self) -> Callable[[np.ndarray], np.ndarray]:
        return decide if self._bounds_labels else as_probabilities

    def _calibrate(self, scores: np.ndarray, rows: Rows) -> None:
        """Set the slope of the probabilities, by the log loss of the rows."""
        if not self._bounds_labels:
            return
        logits, target = _of_every_class(scores), _of_every_class(rows.y)

        def loss(log_slope: float) -> float:
            likelihood = target * log_softmax(np.exp(log_slope) * logits, axis=1)
            return -float(rows.weight @ likelihood.sum(axis=1))

        self._slope = float(np.exp(minimize_scalar(loss, bounds=_SLOPES, method="bounded").x))

    @answers_as_fitted
    def predict(self, X: Any) -> np.ndarray:
        """Predict classes; the attribute is not needed.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        if is_dask(X):
            return lazily(self.predict, X)
        best = _of_every_class(self._scores(X)).argmax(axis=1)
        return self.classes_[best]

    @answers_as_fitted
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class; `predict` returns the most probable one.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        proba : ndarray of shape (n, K)
            Columns in the order of `classes_`.
        """
        if is_dask(X):
            return lazily(self.predict_proba, X)
        return self._proba(self._scores(X))

    def _proba(self, scores: np.ndarray) -> np.ndarray:
        if not self._bounds_labels:
            return _of_every_class(as_probabilities(scores))
        return softmax(self._slope * _of_every_class(scores), axis=1)

    def _class_scores(self, scores: np.ndarray) -> np.ndarray:
        proba = self._proba(scores)
        return proba[:, 1] if len(self.classes_) == 2 else proba

    @answers_as_fitted
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores that `predict` decides on.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        scores : ndarray of shape (n,) or (n, K)
            Of two classes that of `classes_[1]`, above 0 where it is predicted; of more, one for
            each, the largest of which is predicted.
        """
        if is_dask(X):
            return lazily(self.decision_function, X)
        scores = self._scores(X)
        return scores[:, 0] - 0.5 if scores.shape[1] == 1 else scores


def _of_every_class(scores: np.ndarray) -> np.ndarray:
    """Return a column for each class, from the one of the second of two classes, too."""
    return np.hstack([1 - scores, scores]) if scores.shape[1] == 1 else scores
