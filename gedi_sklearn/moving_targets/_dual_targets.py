"""The learner's own problem under the constraint, by its multipliers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._base import TargetsEstimator
from ._dual import DEFAULT_TOL, ClassSearch, DualSteps, RealSearch, Search
from ._learner import LearnerFit
from ._master import Master
from ._moving_targets import harmonic_weight
from ._steps import ProjectionSteps, Steps, StopRule
from ._targets import ClassLearners, RealLearners


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
    ) -> Steps:
        stop = StopRule(y, weight, None, None)
        projections = ProjectionSteps(master, harmonic_weight, self.max_iter, stop)
        if master.projection.kernel_ is None:  # a constant attribute leaves nothing to search
            return projections
        tol = DEFAULT_TOL if self.tol is None else self.tol
        return DualSteps(self._make_search(master, tol), tol, self.max_iter, projections)

    def _make_search(self, master: Master, tol: float) -> Search:
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

    def _make_search(self, master: Master, tol: float) -> Search:
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

    def _make_search(self, master: Master, tol: float) -> Search:
        return ClassSearch(master)
