"""Moving Targets for classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.metaestimators import available_if

from .._predictions import checked_predict_proba
from .._validation import StrOptions, check_classes, check_column, check_labels
from ._base import BaseMovingTargets
from ._dual import ClassSearch, Search
from ._learner import ClassifierLearner, Learner
from ._master import Master


def _inner_has(method: str) -> Any:
    """Return a check that the inner estimator, fitted where it is, has a method."""

    def check(wrapper: Any) -> bool:
        inner = getattr(wrapper, "estimator_", None)
        # An AttributeError of the inner estimator's own says more than one of ours.
        getattr(wrapper._inner_estimator() if inner is None else inner, method)
        return True

    return check


class MovingTargetsClassifier(ClassifierMixin, BaseMovingTargets):
    r"""Classification under a bound on the generalized disparate impact of its labels.

    Classes of any label type; of two, `classes_[1]` counts as 1, and of more, each one against the
    rest satisfies the constraint. The constraint is met by the hard
    labels that the learner is fitted on, not by its probabilities.

    Parameters
    ----------
    estimator : classifier, default=None
        The learner: any scikit-learn classifier; never changed. None is `LogisticRegression()`.
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
    loss : {"auto", "hamming", "log_loss"}, default="auto"
        Distance that the projection minimises; "auto" is "hamming". "log_loss" makes changing
        a confident prediction dear, and needs probabilities.
    target_weight : "harmonic", float or callable, default="harmonic"
        Weight of the original targets against the predictions in the projection of iteration
        i: 1/i, a constant of at least 0, or a function of i.
    max_iter : int, default=10
        Number of projections, each followed by a fit; with method="dual" at most so many fits.
    init : {"pretraining", "projection"}, default="pretraining"
        First targets of the learner: the original ones, or their projection.
    response_method : {"auto", "predict", "predict_proba"}, default="auto"
        What the projection sees of the learner: its labels (the paper) or its probabilities.
        "auto" takes the latter where the inner estimator has them.
    cv : {"train", "oob"}, int or splitter, default="train"
        Whose predictions the projection works on, and `history_` describes: "train" those of the
        fit itself, as in the paper; "oob" out-of-bag predictions of an ensemble that has
        `oob_score`; an integer or a splitter those of clones fitted on the other folds. The last
        two are of the kind that new rows get, so that the constraint carries over to these.
    slack : float, default=1e-3
        Share of the bound that a forbidden direction may keep; "fine" only.
    gap : float, default=5e-5
        Relative optimality gap at which a solver may stop.
    target_bounds : None
        For real targets only.
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
        How the targets of the next fit are made: by the projection of the last scores, or, "dual",
        for two classes, by a threshold on the scores of the first fit that is shifted by the k
        multipliers of the constraint, such that it makes up for what the last predictions added to
        the labels they were fitted on. The dual makes the *predictions* satisfy the constraint,
        within `tol`, in two to five fits where the learner follows its targets. Where it makes no
        progress it goes on with moving targets, with a ConvergenceWarning, and keeps the best
        fit. All clones get the same seed. It needs probabilities, and has no use for
        `target_weight` and `n_iter_no_change`.
    tol : float, default=None
        Stop once the targets change by no more than this between iterations, relative to the
        deviation of y: ‖z_i − z_{i−1}‖ / ‖y − mean(y)‖. None never stops early. With
        method="dual" it is the distance of the predictions from the constraint, in deviations of
        y, and None is 5e-3.
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
    classes_ : ndarray of shape (K,)
        The labels.
    n_features_in_ : int
        Number of columns of X, dropped ones included.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, where they are all text.

    See Also
    --------
    MovingTargetsRegressor : The same for real targets.
    project_targets : One projection, without a learner.

    Notes
    -----
    The learner is fitted on y; as long as iterations remain, the projection finds

    .. math:: z_i = \arg\min_z \; L(z, p_{i-1}) + w_i L(z, y)
              \quad\text{subject to}\quad \tilde\alpha(z) \in C

    for the learner's last predictions p, and a fresh clone is fitted on z. Source: Giuliani,
    Misino and Lombardi (2023), appendix, "Constrained Approaches Descriptions", after Detassis,
    Lombardi and Milano (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from gedi_sklearn import MovingTargetsClassifier
    >>> from gedi_sklearn.metrics import gedi
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, 200)
    >>> X = np.c_[age, rng.normal(size=200)]
    >>> y = np.where(age + 10 * X[:, 1] + 5 * rng.normal(size=200) > 40, "high", "low")
    >>> model = MovingTargetsClassifier(
    ...     GradientBoostingClassifier(random_state=0), sensitive_columns=0, threshold=0.2
    ... ).fit(X, y)
    >>> disparity = gedi(
    ...     y, model.targets_, sensitive_features=age, relative=True, pos_label="low"
    ... )
    >>> bool(disparity <= 0.2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseMovingTargets._parameter_constraints,
        "loss": [StrOptions({"auto", "hamming", "log_loss"})],
        "response_method": [StrOptions({"auto", "predict", "predict_proba"})],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where the attribute tells the classes apart, the constraint forbids to say which is which.
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_class = self.method != "dual"
        return tags

    def _default_estimator(self) -> Any:
        return LogisticRegression()

    def _check_targets(self, y: Any, sample_weight: Any) -> np.ndarray:
        self.classes_, codes = check_classes(y, sample_weight)
        if self.method == "dual" and len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. "
                "That is so with method='dual'; use method='moving_targets'."
            )
        return codes

    def _check_more_targets(self, y: Any) -> np.ndarray:
        labels = check_labels(check_column(y, "y_val"), "y_val")
        unknown = np.setdiff1d(labels, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y_val holds {unknown.tolist()}, which are not among the classes of y, "
                f"{self.classes_.tolist()}."
            )
        return np.searchsorted(self.classes_, labels)

    def _resolve_loss(self) -> str:
        return "hamming" if self.loss == "auto" else self.loss

    def _learner_type(self, loss: str) -> Callable[..., Learner]:
        return partial(
            ClassifierLearner,
            classes=self.classes_,
            response_method=self.response_method,
            loss=loss,
        )

    def _make_search(self, master: Master, tol: float, first: np.ndarray) -> Search:
        return ClassSearch(master)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        proba : ndarray of shape (n, K)
            Columns in the order of `classes_`.
        """
        inner = self._new_inner_X(X)
        return checked_predict_proba(self.estimator_, inner, self.classes_)

    @available_if(_inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        log_proba : ndarray of shape (n, K)
            Columns in the order of `classes_`.
        """
        inner = self._new_inner_X(X)
        return self.estimator_.predict_log_proba(inner)

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the inner estimator's confidence in `classes_[1]`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        scores : ndarray of shape (n,)
        """
        inner = self._new_inner_X(X)
        return self.estimator_.decision_function(inner)
