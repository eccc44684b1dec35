"""Moving Targets for real targets."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.linear_model import LinearRegression

from .._validation import StrOptions, check_column, check_numbers
from ._base import BaseMovingTargets
from ._dual import RealSearch, Search
from ._master import Master


class MovingTargetsRegressor(RegressorMixin, BaseMovingTargets):
    r"""Regression under a bound on the generalized disparate impact of its predictions.

    Parameters
    ----------
    estimator : regressor, default=None
        The learner: any scikit-learn regressor; never changed. None is `LinearRegression()`.
    constraint : {"coarse", "fine", "didi"}, constraint object or list, default="coarse"
        "coarse" bounds the indicator ‖α̃‖₁; "fine" bounds its coefficients one by one, with
        a scalar `threshold` the first and none of the others; "didi" bounds the disparity of
        groups. An object (:class:`CoarseConstraint`, :class:`FineConstraint`,
        :class:`DidiConstraint`) carries its own kernel, degree, threshold, relative and slack;
        these parameters then stay at their defaults. A list holds one for each attribute.
    kernel : {"polynomial", "fourier"}, transformer or callable, default="polynomial"
        The functions of the attribute whose influence is bounded.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    threshold : float or array-like of shape (k,), default=0.2
        The bound, at least 0; inf allows everything. An array ("fine") gives each coefficient
        its own: 0 forbids, inf frees.
    relative : bool or int, default=True
        Whether `threshold` is a share of the indicator of the targets given to :meth:`fit`; an
        integer d takes that indicator at degree d, True at degree 1.
    loss : {"auto", "squared_error", "absolute_error"}, default="auto"
        Distance that the projection minimises; "auto" is "squared_error".
    target_weight : "harmonic", float or callable, default="harmonic"
        Weight of the original targets against the predictions in the projection of iteration
        i: 1/i, a constant of at least 0, or a function of i.
    max_iter : int, default=10
        Number of projections, each followed by a fit; with method="dual" at most so many fits.
    init : {"pretraining", "projection"}, default="pretraining"
        First targets of the learner: the original ones, or their projection.
    response_method : {"auto", "predict"}, default="auto"
        What the projection sees of the learner: its predictions.
    cv : {"train", "oob"}, int or splitter, default="train"
        Whose predictions the projection works on, and `history_` describes: "train" those of the
        fit itself, as in the paper; "oob" out-of-bag predictions of an ensemble that has
        `oob_score`; an integer or a splitter those of clones fitted on the other folds. The last
        two are of the kind that new rows get, so that the constraint carries over to these.
    slack : float, default=1e-3
        Share of the bound that a forbidden direction may keep; of no use here.
    gap : float, default=5e-5
        Relative optimality gap at which a solver may stop; of no use here.
    target_bounds : tuple of (float or None, float or None), default=None
        Lowest and highest value of the projected targets, None for no end: (0, None) keeps
        counts and rates valid. y must lie between them.
    solver : {"auto", "gurobi", "highs"}, default="auto"
        "auto" solves exactly where there is a closed form, else by Gurobi where the user has
        configured a licence, else by HiGHS.
    solver_params : dict, default=None
        Parameters of the solver by its own names; unknown ones raise.
    time_limit : float, default=60.0
        Seconds for each projection.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, by position or name. None where `fit`
        gets `sensitive_features`; exactly one of the two doors must be used.
    drop_sensitive : bool, default=False
        Whether the inner estimator is to work without `sensitive_columns`.
    random_state : int, RandomState or None, default=None
        An int or RandomState gives every clone of the inner estimator one seed for each of its
        `random_state` parameters, and the projection another. None leaves the inner
        estimator's seeds as they are and fixes those of the projection.
    verbose : int, default=0
        Above 0 every iteration prints one line, above 1 the solver prints its log.
    method : {"moving_targets", "dual"}, default="moving_targets"
        How the targets of the next fit are made: by the projection of the last predictions, or,
        "dual", by a quasi-Newton method on the k multipliers λ of the learner's own problem, whose
        targets are y − Qλ with Q the orthonormal kernel columns. The dual makes the *predictions*
        satisfy the constraint, within `tol`, in two to five fits where the learner follows its
        targets. Where it makes no progress it goes on with moving targets, with a
        ConvergenceWarning, and keeps the best fit. All clones get the same seed. It takes the
        squared error only, and has no use for `target_weight` and `n_iter_no_change`.
    tol : float, default=None
        Stop once the targets change by no more than this between iterations, relative to the
        deviation of y: ‖z_i − z_{i−1}‖ / ‖y − mean(y)‖. None never stops early. With
        method="dual" it is the distance of the predictions from the constraint, in deviations of
        y, and None is 5e-3; a learner without noise needs few more fits for 1e-9.
    n_iter_no_change : int, default=None
        How many such iterations in a row it takes; None is 1. Without `tol`, the targets must
        not change at all.
    select : {"last", "best"}, default="last"
        Which iteration's fit is kept. "best" is the one of least loss among those whose
        predictions on the training rows satisfy the constraint, or else of least violation.
    warm_start : bool, default=False
        Whether the inner estimator, which must have a `warm_start` of its own, goes on from its
        last fit instead of starting afresh. An ensemble grows by as many members as it began
        with in every iteration.
    conditional_on : int, str, list of these or callable, default=None
        Column(s) of X that the targets may depend on, or a callable that makes them of X: the
        bounded coefficients are those of the kernel beside these covariates, as in
        :func:`gedi_sklearn.metrics.gedi`.
    n_jobs : int, default=None
        Processes for the folds of `cv`; the result is the same for any number.

    Attributes
    ----------
    estimator_ : estimator
        The inner estimator, fitted on `targets_`.
    targets_ : ndarray of shape (n,)
        The targets it was fitted on; they satisfy the constraint. With method="dual" the
        predictions do, and the targets are what it takes.
    selected_iteration_ : int
        The iteration that it comes from, an index of `history_`.
    kernel_ : FittedKernel or None
        The kernel with the training rows' moments; None for a constant attribute.
    constraint_ : constraint object or None
        The constraint with its absolute threshold.
    threshold_ : float or ndarray of shape (k,)
        The absolute threshold.
    reference_ : float
        The indicator that `threshold` is a share of; 1.0 where it is absolute.
    history_ : dict of ndarrays of shape (n_iter_ + 1,)
        One entry for each fit of the inner estimator, the first at index 0: `iteration`;
        `target_weight`; `objective`, `bound`, `gap`, `violation`, `status`, `solver`,
        `n_variables` of the projection (NaN or "" where there was none; `status` is "dual" where
        method="dual" made the targets); `targets_gedi` and
        `predictions_gedi`, the indicator of the targets and of the predictions on the
        training rows; `loss_predictions` and `loss_targets`, their mean loss against y;
        `n_changed`, the number of targets that differ from y; `fit_seconds` (fitting and
        predicting) and `projection_seconds`; with validation data, `validation_score` and
        `validation_gedi`.
    n_iter_ : int
        Number of fits after the first; 0 where neither the targets nor the predictions of the
        first fit violate the constraint, or, with method="dual", its predictions do not.
    solver_ : str
        What solved the last projection (dual: found the last targets): "exact", "gurobi",
        "highs", or "" for none.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, where they are all text.

    See Also
    --------
    MovingTargetsClassifier : The same for classes.
    project_targets : One projection, without a learner.

    Notes
    -----
    The learner is fitted on y; as long as iterations remain, the projection finds

    .. math:: z_i = \arg\min_z \; L(z, p_{i-1}) + w_i L(z, y)
              \quad\text{subject to}\quad \tilde\alpha(z) \in C

    for the learner's last predictions p, and a fresh clone is fitted on z. Source: Giuliani,
    Misino and Lombardi (2023), appendix, "Constrained Approaches Descriptions", after Detassis,
    Lombardi and Milano (2021).

    With method="dual" the targets are y − Qλ, whose fit minimises the Lagrangian of

    .. math:: \min_f \; \|f - y\|^2 \quad\text{subject to}\quad \tilde\alpha(f) \in C

    over the learner's own models f. For linear and ridge regression the result is the constrained
    least-squares solution, reached in at most k + 1 fits after the first where `tol` is small.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from gedi_sklearn import MovingTargetsRegressor
    >>> from gedi_sklearn.metrics import gedi
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, 200)
    >>> X = np.c_[age, rng.normal(size=200)]
    >>> y = 0.05 * age + X[:, 1] + 0.1 * rng.normal(size=200)
    >>> model = MovingTargetsRegressor(
    ...     GradientBoostingRegressor(random_state=0), sensitive_columns=0, threshold=0.2
    ... ).fit(X, y)
    >>> print(f"{gedi(y, model.targets_, sensitive_features=age, relative=True):.3f}")
    0.200
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseMovingTargets._parameter_constraints,
        "loss": [StrOptions({"auto", "squared_error", "absolute_error"})],
        "response_method": [StrOptions({"auto", "predict"})],
    }

    def _default_estimator(self) -> Any:
        return LinearRegression()

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        return check_numbers(check_column(y, "y"), "y", n_columns=1)

    def _check_more_targets(self, y: Any) -> np.ndarray:
        return check_numbers(check_column(y, "y_val"), "y_val", n_columns=1)

    def _resolve_loss(self) -> str:
        if self.method == "dual" and self.loss == "absolute_error":
            raise ValueError(
                "method='dual' is made for learners of the squared loss; got "
                "loss='absolute_error'. Use loss='squared_error' or method='moving_targets'."
            )
        return "squared_error" if self.loss == "auto" else self.loss

    def _make_search(self, master: Master, tol: float, first: np.ndarray) -> Search:
        return RealSearch(master, tol, first)
