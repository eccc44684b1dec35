"""Moving Targets and dual targets: a learner, fitted again and again on targets that move."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from .._validation import CLASS_LOSSES, REAL_LOSSES, Interval, StrOptions
from ..projection import PROJECTION_PARAMETERS
from ._base import ClassLearners, RealLearners, TargetsEstimator
from ._dual import DEFAULT_TOL, ClassSearch, DualSteps, RealSearch
from ._learner import LearnerFit
from ._master import Master
from ._steps import ProjectionSteps, StopRule

# Probability of the rarer class below which a row is easily taken from it, and the share of such
# rows from which the original targets keep their weight.
_UNLIKELY, _MANY_LOST = 1 / 4, 1 / 3


class MovingTargets(TargetsEstimator):
    """What both estimators share: parameters, and steps that project the last predictions."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TargetsEstimator._parameter_constraints,
        "target_weight": [
            StrOptions({"auto", "harmonic"}),
            Interval(Real, 0, None, closed="left"),
            callable,
        ],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
        "select": [StrOptions({"last", "best"})],
        "solver": PROJECTION_PARAMETERS["solver"],
    }
    # What loss="auto" stands for.
    _default_loss: ClassVar[str]

    loss: str
    target_weight: Any
    n_iter_no_change: int | None
    select: str
    solver: Any

    @property
    def _loss(self) -> str:
        return self._default_loss if self.loss == "auto" else self.loss

    def _projection_options(self) -> dict[str, Any]:
        return {"solver": self.solver}

    def _make_steps(
        self, master: Master, y: np.ndarray, weight: np.ndarray | None, first: LearnerFit
    ) -> ProjectionSteps:
        is_automatic = isinstance(self.target_weight, str) and self.target_weight == "auto"
        rule = self._weight_rule(first.scores, y, weight) if is_automatic else self.target_weight
        stop = StopRule(y, weight, self.tol, self.n_iter_no_change)
        keeps_best = self.select == "best"
        weight_of = partial(_target_weight, rule)
        return ProjectionSteps(master, weight_of, self.max_iter, stop, keeps_best=keeps_best)

    def _weight_rule(self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Return what target_weight="auto" stands for, after the first fit."""
        return "harmonic"


class MovingTargetsRegressor(RealLearners, MovingTargets):
    r"""Regression under a bound on the generalized disparate impact of its predictions.

    Parameters
    ----------
    estimator : regressor, default=None
        The learner: any scikit-learn regressor; never changed. None is `LinearRegression()`, with
        ``loss="kl"`` `PoissonRegressor()`.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint`, :class:`FineConstraint` or :class:`DidiConstraint`. A list holds
        one constraint for each attribute, all of which are met.
    loss : {"auto", "squared_error", "absolute_error", "kl"}, default="auto"
        Distance that the projection minimises; "auto" is "squared_error". "kl" is for counts, rates
        and costs, and learners of positive predictions: targets are the mean of y and the
        predictions by their weights, multiplied by a function of the attribute, and stay positive
        where y is 0; see :func:`project_targets`. Exposure is `sample_weight`, and y a rate.
    target_weight : {"auto", "harmonic"}, float or callable, default="auto"
        Weight of the original targets relative to the predictions in the projection of
        iteration i: 1/i ("harmonic", which is "auto"), a nonnegative constant, or a function of i.
    max_iter : int, default=10
        Number of projections, each followed by a fit.
    tol : float, default=None
        Stop once the targets change by no more than this between iterations, relative to the
        deviation of y: ‖z_i − z_{i−1}‖ / ‖y − mean(y)‖. None never stops early.
    n_iter_no_change : int, default=None
        Number of consecutive iterations without such a change after which to stop; None is 1.
        Without `tol`, the targets must not change at all.
    select : {"last", "best"}, default="last"
        Which iteration's fit is kept. "best" is the one with the smallest loss among those whose
        predictions for the training rows satisfy the constraint; if there are none, the one with
        the smallest violation.
    cv : {"auto", "train", "oob"}, int or splitter, default="auto"
        Whose predictions the projection uses and `history_` describes: with "train" those of the
        fit itself, as in the paper; with "oob" the out-of-bag predictions of an ensemble that has
        `oob_score`; with an integer or a splitter those of clones fitted on the other folds.
        Unlike in scikit-learn, an integer shuffles the rows (stratified for classes), since files
        come sorted; with `groups` in `fit` it makes folds of these. The last two behave like
        predictions for new rows, so that the constraint carries over to these. "auto" is "oob" for
        an ensemble with enough members to leave out every row (`oob_score` among its parameters,
        bootstrap=True; not in a pipeline), else "train".
    target_bounds : tuple of (float or None, float or None), default=None
        Lower and upper bound on the projected targets, None for no bound: (0, None) keeps counts
        and rates valid. y must lie between them. Not with ``loss="kl"``.
    solver : {"auto", "gurobi", "highs"} or :class:`Solver`, default="auto"
        What solves the projections, how near to the optimum and for how long.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, by position or name. Exactly one of
        `sensitive_features` and `sensitive_columns` must be given.
    drop_sensitive : bool, default=False
        Whether to remove `sensitive_columns` from the X of the inner estimator. A frame without
        them predicts as well.
    conditional_on : int, str, list of these or callable, default=None
        Column(s) of X that the targets may depend on, or a callable that computes them from X.
        The bounded coefficients are those of the kernel in a regression on kernel and covariates,
        as in :func:`gedi_sklearn.metrics.gedi`.
    n_jobs : int, default=None
        Number of processes for the folds of `cv`; it does not change the result.
    random_state : int, RandomState or None, default=None
        An int or RandomState seeds the `random_state` parameters of every clone of the inner
        estimator, the projection, and the folds of an integer `cv`. None leaves the seeds of the
        inner estimator as they are and fixes the others (folds have seed 0).
    verbose : int, default=0
        Above 0, every iteration prints one line; above 1, the solver also prints its log.

    Attributes
    ----------
    estimator_ : estimator
        The inner estimator, fitted on `targets_`.
    targets_ : ndarray of shape (n,)
        The targets it was fitted on; they satisfy the constraint. Pickles and copies leave them
        out.
    selected_iteration_ : int
        The iteration of `estimator_`, an index into `history_`.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_ : constraint object or None
        The constraint with its absolute threshold.
    threshold_ : float or ndarray of shape (k,)
        The absolute threshold.
    reference_ : float
        The indicator that `threshold` is a fraction of; 1.0 for an absolute threshold.
    history_ : dict of ndarrays of shape (n_fits,)
        One entry per fit of the inner estimator, starting with the first fit: `iteration`;
        `target_weight`; `objective`, `bound`, `gap`, `violation`, `status`, `solver` and
        `n_variables` of the projection (NaN or "" if there was none); `targets_gedi` and
        `predictions_gedi`, the indicator of the targets and of the predictions for the training
        rows; `loss_predictions` and `loss_targets`, their mean loss against y;
        `n_changed`, the number of targets that differ from y; `fit_seconds` (fitting and
        predicting) and `projection_seconds`; with validation data, `validation_score` and
        `validation_gedi`.
    n_iter_ : int
        Number of fits after the first; 0 if neither the targets nor the predictions of the first
        fit violate the constraint.
    solver_ : str
        What solved the last projection:
        "exact", "gurobi", "highs", or "" if there was none.
    verdict_ : Verdict or None
        Whether the bound is met, what the kernel misses, and whether the
        reference is more than chance; ``print`` it. None without a bound, or below 50 rows.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X, if they are all strings.

    See Also
    --------
    MovingTargetsClassifier : The same for classes.
    project_targets : One projection, without a learner.

    Notes
    -----
    The learner is fitted on y. In each iteration the projection computes

    .. math:: z_i = \arg\min_z \; L(z, p_{i-1}) + w_i L(z, y)
              \quad\text{subject to}\quad \tilde\alpha(z) \in C

    from the learner's last predictions p, and a fresh clone is fitted on z. Source: Giuliani,
    Misino and Lombardi (2023), appendix, "Constrained Approaches Descriptions", after Detassis,
    Lombardi and Milano (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from gedi_sklearn import CoarseConstraint, MovingTargetsRegressor, gedi
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, 200)
    >>> X = np.c_[age, rng.normal(size=200)]
    >>> y = 0.05 * age + X[:, 1] + 0.1 * rng.normal(size=200)
    >>> model = MovingTargetsRegressor(
    ...     GradientBoostingRegressor(random_state=0), CoarseConstraint(0.2), sensitive_columns=0
    ... ).fit(X, y)
    >>> print(f"{gedi(y, model.targets_, sensitive_features=age, relative=True):.3f}")
    0.200
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MovingTargets._parameter_constraints,
        "loss": [StrOptions({"auto"} | REAL_LOSSES)],
        "target_bounds": PROJECTION_PARAMETERS["target_bounds"],
    }
    _default_loss = "squared_error"

    def __init__(
        self,
        estimator: Any = None,
        constraint: Any = None,
        *,
        loss: str = "auto",
        target_weight: Any = "auto",
        max_iter: int = 10,
        tol: float | None = None,
        n_iter_no_change: int | None = None,
        select: str = "last",
        cv: Any = "auto",
        target_bounds: Any = None,
        solver: Any = "auto",
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        conditional_on: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.loss = loss
        self.target_weight = target_weight
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.select = select
        self.cv = cv
        self.target_bounds = target_bounds
        self.solver = solver
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive
        self.conditional_on = conditional_on
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _projection_options(self) -> dict[str, Any]:
        return {"solver": self.solver, "target_bounds": self.target_bounds}


class MovingTargetsClassifier(ClassLearners, MovingTargets):
    r"""Classification under a bound on the generalized disparate impact of its labels.

    Classes may have any label type. With two, `classes_[1]` counts as 1; with more, each class
    against the rest satisfies the constraint. The constraint applies to the labels that the
    learner is fitted on, not to its probabilities.

    Parameters
    ----------
    estimator : classifier, default=None
        The learner: any scikit-learn classifier; never changed. None is `LogisticRegression()`.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint`, :class:`FineConstraint` or :class:`DidiConstraint`. A list holds
        one constraint for each attribute, all of which are met.
    loss : {"auto", "hamming", "log_loss"}, default="auto"
        Distance that the projection minimises; "auto" is "hamming". "log_loss" makes changing
        a confident prediction expensive, and needs probabilities.
    target_weight : {"auto", "harmonic"}, float or callable, default="auto"
        Weight of the original targets relative to the predictions in the projection of
        iteration i: 1/i ("harmonic"), a nonnegative constant, or a function of i. "auto" is
        "harmonic", but 1.0 for two classes where over a third of the rarer class has, after the
        first fit, a probability of it below 1/4: with a weight that falls the projection would
        take such rows from the class one iteration after another.
    max_iter : int, default=10
        Number of projections, each followed by a fit.
    tol : float, default=None
        Stop once the targets change by no more than this between iterations, relative to the
        deviation of y: ‖z_i − z_{i−1}‖ / ‖y − mean(y)‖. None never stops early.
    n_iter_no_change : int, default=None
        Number of consecutive iterations without such a change after which to stop; None is 1.
        Without `tol`, the targets must not change at all.
    select : {"last", "best"}, default="last"
        Which iteration's fit is kept. "best" is the one with the smallest loss among those whose
        predictions for the training rows satisfy the constraint; if there are none, the one with
        the smallest violation.
    cv : {"auto", "train", "oob"}, int or splitter, default="auto"
        Whose predictions the projection uses and `history_` describes: with "train" those of the
        fit itself, as in the paper; with "oob" the out-of-bag predictions of an ensemble that has
        `oob_score`; with an integer or a splitter those of clones fitted on the other folds.
        Unlike in scikit-learn, an integer shuffles the rows (stratified for classes), since files
        come sorted; with `groups` in `fit` it makes folds of these. The last two behave like
        predictions for new rows, so that the constraint carries over to these. "auto" is "oob" for
        an ensemble with enough members to leave out every row (`oob_score` among its parameters,
        bootstrap=True; not in a pipeline), else "train".
    response_method : {"auto", "predict", "predict_proba"}, default="auto"
        The response of the learner that the projection uses: its labels (as in the paper) or its
        probabilities. "auto" uses the latter if the inner estimator has them.
    solver : {"auto", "gurobi", "highs"} or :class:`Solver`, default="auto"
        What solves the projections, how near to the optimum and for how long.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, by position or name. Exactly one of
        `sensitive_features` and `sensitive_columns` must be given.
    drop_sensitive : bool, default=False
        Whether to remove `sensitive_columns` from the X of the inner estimator. A frame without
        them predicts as well.
    conditional_on : int, str, list of these or callable, default=None
        Column(s) of X that the targets may depend on, or a callable that computes them from X.
        The bounded coefficients are those of the kernel in a regression on kernel and covariates,
        as in :func:`gedi_sklearn.metrics.gedi`.
    n_jobs : int, default=None
        Number of processes for the folds of `cv`; it does not change the result.
    random_state : int, RandomState or None, default=None
        An int or RandomState seeds the `random_state` parameters of every clone of the inner
        estimator, the projection, and the folds of an integer `cv`. None leaves the seeds of the
        inner estimator as they are and fixes the others (folds have seed 0).
    verbose : int, default=0
        Above 0, every iteration prints one line; above 1, the solver also prints its log.

    Attributes
    ----------
    estimator_ : estimator
        The inner estimator, fitted on `targets_`.
    targets_ : ndarray of shape (n,)
        The targets it was fitted on; they satisfy the constraint. Pickles and copies leave them
        out.
    selected_iteration_ : int
        The iteration of `estimator_`, an index into `history_`.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_ : constraint object or None
        The constraint with its absolute threshold.
    threshold_ : float or ndarray of shape (k,)
        The absolute threshold.
    reference_ : float
        The indicator that `threshold` is a fraction of; 1.0 for an absolute threshold.
    history_ : dict of ndarrays of shape (n_fits,)
        One entry per fit of the inner estimator, starting with the first fit: `iteration`;
        `target_weight`; `objective`, `bound`, `gap`, `violation`, `status`, `solver` and
        `n_variables` of the projection (NaN or "" if there was none); `targets_gedi` and
        `predictions_gedi`, the indicator of the targets and of the predictions for the training
        rows; `loss_predictions` and `loss_targets`, their mean loss against y;
        `n_changed`, the number of targets that differ from y; `fit_seconds` (fitting and
        predicting) and `projection_seconds`; with validation data, `validation_score` and
        `validation_gedi`.
    n_iter_ : int
        Number of fits after the first; 0 if neither the targets nor the predictions of the first
        fit violate the constraint.
    solver_ : str
        What solved the last projection:
        "exact", "gurobi", "highs", or "" if there was none.
    classes_ : ndarray of shape (K,)
        The labels.
    verdict_ : Verdict or None
        Whether the bound is met, what the kernel misses, and whether the
        reference is more than chance; ``print`` it. None without a bound, or below 50 rows.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X, if they are all strings.

    See Also
    --------
    MovingTargetsRegressor : The same for real targets.
    project_targets : One projection, without a learner.

    Notes
    -----
    The learner is fitted on y. In each iteration the projection computes

    .. math:: z_i = \arg\min_z \; L(z, p_{i-1}) + w_i L(z, y)
              \quad\text{subject to}\quad \tilde\alpha(z) \in C

    from the learner's last predictions p, and a fresh clone is fitted on z. Source: Giuliani,
    Misino and Lombardi (2023), appendix, "Constrained Approaches Descriptions", after Detassis,
    Lombardi and Milano (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from gedi_sklearn import CoarseConstraint, MovingTargetsClassifier, gedi
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, 200)
    >>> X = np.c_[age, rng.normal(size=200)]
    >>> y = np.where(age + 10 * X[:, 1] + 5 * rng.normal(size=200) > 40, "high", "low")
    >>> model = MovingTargetsClassifier(
    ...     GradientBoostingClassifier(random_state=0), CoarseConstraint(0.2), sensitive_columns=0
    ... ).fit(X, y)
    >>> disparity = gedi(
    ...     y, model.targets_, sensitive_features=age, relative=True, pos_label="low"
    ... )
    >>> bool(disparity <= 0.2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MovingTargets._parameter_constraints,
        "loss": [StrOptions({"auto"} | CLASS_LOSSES)],
        "response_method": [StrOptions({"auto", "predict", "predict_proba"})],
    }
    _default_loss = "hamming"

    def __init__(
        self,
        estimator: Any = None,
        constraint: Any = None,
        *,
        loss: str = "auto",
        target_weight: Any = "auto",
        max_iter: int = 10,
        tol: float | None = None,
        n_iter_no_change: int | None = None,
        select: str = "last",
        cv: Any = "auto",
        response_method: str = "auto",
        solver: Any = "auto",
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        conditional_on: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.loss = loss
        self.target_weight = target_weight
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.select = select
        self.cv = cv
        self.response_method = response_method
        self.solver = solver
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive
        self.conditional_on = conditional_on
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _weight_rule(self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Any:
        has_probabilities = scores.ndim == 1 and scores.dtype.kind == "f"
        if not has_probabilities:
            return "harmonic"
        size = np.bincount(y, weights=weight)
        rarer = int(size[1] <= size[0])
        own = y == rarer
        is_unlikely = np.abs(1 - rarer - scores[own]) < _UNLIKELY
        lost = np.average(is_unlikely, weights=None if weight is None else weight[own])
        return 1.0 if lost > _MANY_LOST else "harmonic"


def harmonic_weight(iteration: int) -> float:
    """Return 1/i, the paper's weight of y in iteration i."""
    return 1 / iteration


def _target_weight(rule: Any, iteration: int) -> float:
    """Return the weight of y in the projection of an iteration, counted from 1."""
    if isinstance(rule, str):
        return harmonic_weight(iteration)
    if not callable(rule):
        return float(rule)
    weight = rule(iteration)
    if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
        raise ValueError(
            f"target_weight({iteration}) returned {weight!r}; it must return a finite number "
            "of at least 0."
        )
    return float(weight)


class DualTargets(TargetsEstimator):
    """What both estimators share: parameters, and steps that search for multipliers."""

    _one_seed = True

    def __init__(
        self,
        estimator: Any = None,
        constraint: Any = None,
        *,
        max_iter: int = 10,
        tol: float | None = None,
        cv: Any = "auto",
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        conditional_on: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive
        self.conditional_on = conditional_on
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _make_steps(
        self, master: Master, y: np.ndarray, weight: np.ndarray | None, first: LearnerFit
    ) -> ProjectionSteps:
        given: Any = {
            "master": master,
            "target_weight": harmonic_weight,
            "max_iter": self.max_iter,
            "stop": StopRule(y, weight, None, None),
        }
        if master.projection.kernel_ is None:  # a constant attribute leaves nothing to search
            return ProjectionSteps(**given)
        tol = DEFAULT_TOL if self.tol is None else self.tol
        return DualSteps(**given, search=self._make_search(master, tol), tol=tol)

    def _make_search(self, master: Master, tol: float) -> RealSearch | ClassSearch:
        """Return the search for the multipliers."""
        raise NotImplementedError


class DualTargetsRegressor(RealLearners, DualTargets):
    r"""Regression under a bound on its predictions, by a search for its multipliers.

    A quasi-Newton method on the k multipliers λ of the learner's own problem, whose targets are
    y − Qλ with Q the orthonormal kernel columns. The *predictions* satisfy the constraint, within
    `tol`, in two to five fits if the learner follows its targets. If the search stops making
    progress, it continues with moving targets, issues a ConvergenceWarning, and keeps the best fit.

    Parameters
    ----------
    estimator : regressor, default=None
        The learner, made for the squared loss; never changed. None is `LinearRegression()`.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint`, :class:`FineConstraint` or :class:`DidiConstraint`. A list holds
        one constraint for each attribute, all of which are met.
    max_iter : int, default=10
        Maximum number of fits after the first.
    tol : float, default=None
        Distance of the predictions from the constraint at which the search ends, in deviations of
        y; None is 5e-3; a deterministic learner needs few more fits for 1e-9.
    cv : {"auto", "train", "oob"}, int or splitter, default="auto"
        Which predictions are used: in-sample ("train"), out-of-bag ("oob"), or those of clones
        fitted on the other folds. An integer shuffles the rows (stratified for classes); with
        `groups` in `fit` it makes folds of these. "auto" is "oob" for an ensemble with enough
        members to leave out every row, else "train".
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the attribute, by position or name. Exactly one of
        `sensitive_features` and `sensitive_columns` must be given.
    drop_sensitive : bool, default=False
        Whether to remove these columns from the X of the learner. A frame without them predicts as
        well.
    conditional_on : int, str, list of these or callable, default=None
        Column(s) of X that predictions may depend on, or a callable that computes them from X.
    n_jobs : int, default=None
        Number of processes for the folds of `cv`; it does not change the result.
    random_state : int, RandomState or None, default=None
        Seed of the clones of the learner, which all get the same, and of the folds of an integer
        `cv`. None keeps the learner's seeds, and is 0 for the folds.
    verbose : int, default=0
        Above 0, every iteration prints one line.

    Attributes
    ----------
    estimator_ : estimator
        The inner estimator, fitted on `targets_`.
    targets_ : ndarray of shape (n,)
        The targets it was fitted on; pickles and copies leave them out. Its predictions satisfy
        the constraint.
    selected_iteration_ : int
        The iteration of `estimator_`, an index into `history_`.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_, threshold_, reference_
        The constraint with its absolute threshold, that threshold, and the indicator that
        `threshold` is a share of (1.0 for an absolute one). Lists where `constraint` is one.
    verdict_ : Verdict or None
        Whether the bound is met, what the kernel misses, and whether the reference is more than
        chance; ``print`` it. None without a bound, or below 50 rows.
    history_ : dict of ndarrays of shape (n_fits,)
        One entry per fit, starting with the first: `iteration`; `targets_gedi` and
        `predictions_gedi`, the indicator of targets and predictions; `loss_predictions` and
        `loss_targets`, their mean loss against y; `n_changed`, targets that differ from y;
        `fit_seconds`, `projection_seconds`; `objective`, `bound`, `gap`, `violation`, `solver` and
        `n_variables` of a projection; `status`, "dual" where the search computed the targets.
    n_iter_ : int
        Number of fits after the first; 0 if its predictions do not violate the constraint.
    solver_ : str
        What computed the last targets: "exact", "gurobi", "highs", or "" if there were none.

    See Also
    --------
    DualTargetsClassifier : The same for two classes.
    MovingTargetsRegressor : Bounds the targets instead.
    ProjectedRegressor : Fits the learner once, and corrects its predictions.

    Notes
    -----
    The fit on y − Qλ minimises the Lagrangian of

    .. math:: \min_f \; \|f - y\|^2 \quad\text{subject to}\quad v(f) \in C

    over the learner's own models f. For linear and ridge regression the result is the constrained
    least-squares solution, reached in at most k + 1 fits after the first where `tol` is small.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, DualTargetsRegressor, gedi
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, 200)
    >>> X = np.c_[age, rng.normal(size=200)]
    >>> y = 0.05 * age + X[:, 1] + 0.1 * rng.normal(size=200)
    >>> model = DualTargetsRegressor(None, CoarseConstraint(0.2), sensitive_columns=0).fit(X, y)
    >>> print(f"{gedi(y, model.predict(X), sensitive_features=age, relative=True):.2f}")
    0.20
    """

    _loss = "squared_error"

    def _make_search(self, master: Master, tol: float) -> RealSearch:
        return RealSearch(master, tol)


class DualTargetsClassifier(ClassLearners, DualTargets):
    r"""Binary classification under a bound on its labels, by a search for its multipliers.

    The targets of the next fit are the labels that a threshold on the scores of the first fit
    gives, shifted by the k multipliers of the constraint so that it compensates for the difference
    between the last predictions and the labels they were fitted on. The *predictions* satisfy the
    constraint, within `tol`, in two to five fits if the learner follows its targets. If the search
    stops making progress, it continues with moving targets, issues a ConvergenceWarning, and keeps
    the best fit.

    Parameters
    ----------
    estimator : classifier, default=None
        The learner, with `predict_proba`; never changed. None is `LogisticRegression()`.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much: :class:`DependenceConstraint`, which None stands for,
        :class:`CoarseConstraint`, :class:`FineConstraint` or :class:`DidiConstraint`. A list holds
        one constraint for each attribute, all of which are met.
    max_iter : int, default=10
        Maximum number of fits after the first.
    tol : float, default=None
        Distance of the predictions from the constraint at which the search ends, in deviations of
        y; None is 5e-3.
    cv : {"auto", "train", "oob"}, int or splitter, default="auto"
        Which predictions are used: in-sample ("train"), out-of-bag ("oob"), or those of clones
        fitted on the other folds. An integer shuffles the rows (stratified for classes); with
        `groups` in `fit` it makes folds of these. "auto" is "oob" for an ensemble with enough
        members to leave out every row, else "train".
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the attribute, by position or name. Exactly one of
        `sensitive_features` and `sensitive_columns` must be given.
    drop_sensitive : bool, default=False
        Whether to remove these columns from the X of the learner. A frame without them predicts as
        well.
    conditional_on : int, str, list of these or callable, default=None
        Column(s) of X that predictions may depend on, or a callable that computes them from X.
    n_jobs : int, default=None
        Number of processes for the folds of `cv`; it does not change the result.
    random_state : int, RandomState or None, default=None
        Seed of the clones of the learner, which all get the same, and of the folds of an integer
        `cv`. None keeps the learner's seeds, and is 0 for the folds.
    verbose : int, default=0
        Above 0, every iteration prints one line.

    Attributes
    ----------
    estimator_ : estimator
        The inner estimator, fitted on `targets_`.
    targets_ : ndarray of shape (n,)
        The targets it was fitted on; pickles and copies leave them out. Its predictions satisfy
        the constraint.
    selected_iteration_ : int
        The iteration of `estimator_`, an index into `history_`.
    kernel_ : FittedKernel or None
        The kernel with the moments of the training rows; None for a constant attribute.
    constraint_, threshold_, reference_
        The constraint with its absolute threshold, that threshold, and the indicator that
        `threshold` is a share of (1.0 for an absolute one). Lists where `constraint` is one.
    verdict_ : Verdict or None
        Whether the bound is met, what the kernel misses, and whether the reference is more than
        chance; ``print`` it. None without a bound, or below 50 rows.
    history_ : dict of ndarrays of shape (n_fits,)
        One entry per fit, starting with the first: `iteration`; `targets_gedi` and
        `predictions_gedi`, the indicator of targets and predictions; `loss_predictions` and
        `loss_targets`, their mean loss against y; `n_changed`, targets that differ from y;
        `fit_seconds`, `projection_seconds`; `objective`, `bound`, `gap`, `violation`, `solver` and
        `n_variables` of a projection; `status`, "dual" where the search computed the targets.
    n_iter_ : int
        Number of fits after the first; 0 if its predictions do not violate the constraint.
    solver_ : str
        What computed the last targets: "exact", "gurobi", "highs", or "" if there were none.
    classes_ : ndarray of shape (2,)
        The labels.

    See Also
    --------
    DualTargetsRegressor : The same for real targets.
    MovingTargetsClassifier : Bounds the targets instead, of any number of classes.
    ProjectedClassifier : Fits the learner once, and shifts its threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, DualTargetsClassifier, gedi
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, 400)
    >>> X = np.c_[age, rng.normal(size=400)]
    >>> y = (age + 10 * X[:, 1] + 5 * rng.normal(size=400) > 40).astype(int)
    >>> model = DualTargetsClassifier(None, CoarseConstraint(0.3), sensitive_columns=0).fit(X, y)
    >>> bool(gedi(y, model.predict(X), sensitive_features=age, relative=True) <= 0.31)
    True
    """

    _binary_only = "MovingTargetsClassifier takes any number of classes."
    _loss = "hamming"

    def _make_search(self, master: Master, tol: float) -> ClassSearch:
        return ClassSearch(master)
