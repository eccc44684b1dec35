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
from .._validation import (
    CLASS_LOSSES,
    Outcomes,
    StrOptions,
    check_classes,
    check_column,
    check_labels,
)
from ._base import BaseMovingTargets
from ._dual import ClassSearch, Search
from ._learner import ClassifierLearner, Learner
from ._master import Master


def _inner_has(method: str) -> Any:
    """Return a check that the inner estimator, fitted where it is, has a method."""

    def check(wrapper: Any) -> bool:
        inner = getattr(wrapper, "estimator_", None)
        # An AttributeError raised by the inner estimator is more informative than ours.
        getattr(wrapper._inner_estimator() if inner is None else inner, method)
        return True

    return check


# Probability of the rarer class below which a row is easily taken from it, and the share of such
# rows from which the original targets keep their weight.
_UNLIKELY, _MANY_LOST = 1 / 4, 1 / 3


class MovingTargetsClassifier(ClassifierMixin, BaseMovingTargets):
    r"""Classification under a bound on the generalized disparate impact of its labels.

    Classes may have any label type. With two, `classes_[1]` counts as 1; with more, each class
    against the rest satisfies the constraint. The constraint applies to the labels that the
    learner is fitted on, not to its probabilities.

    Parameters
    ----------
    estimator : classifier, default=None
        The learner: any scikit-learn classifier; never changed. None is `LogisticRegression()`.
    constraint : {"coarse", "fine", "didi"}, constraint object or list, default="coarse"
        "coarse" bounds the indicator ‖α̃‖₁; "fine" bounds each coefficient (with a scalar
        `threshold`, it bounds the first and forces the others to 0); "didi" bounds the disparity
        between groups. An object (:class:`CoarseConstraint`, :class:`FineConstraint`,
        :class:`DidiConstraint`) has its own kernel, degree, threshold, relative and slack; these
        parameters must then keep their defaults. A list holds one constraint per attribute.
    kernel : {"polynomial", "fourier", "spline"}, transformer or callable, default="polynomial"
        The functions of the attribute whose influence is bounded.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    norm : {"l1", "sd"}, default="l1"
        What "coarse" bounds: ‖α̃‖₁, or the deviation of y that the attribute explains, in units
        of y; see :class:`CoarseConstraint`.
    threshold : float or array-like of shape (k,), default=0.2
        The bound, at least 0; inf allows everything. An array ("fine") gives one bound per
        coefficient: 0 forces it to 0, inf leaves it unconstrained.
    relative : bool or int, default=True
        Whether `threshold` is a fraction of the indicator of the targets given to :meth:`fit`; an
        integer d uses the indicator of degree d, True that of degree 1.
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
        Number of projections, each followed by a fit; with method="dual", the maximum number of
        fits.
    init : {"pretraining", "projection"}, default="pretraining"
        First targets of the learner: the original ones, or their projection.
    response_method : {"auto", "predict", "predict_proba"}, default="auto"
        The response of the learner that the projection uses: its labels (as in the paper) or its
        probabilities. "auto" uses the latter if the inner estimator has them.
    cv : {"auto", "train", "oob"}, int or splitter, default="auto"
        Whose predictions the projection uses and `history_` describes: with "train" those of the
        fit itself, as in the paper; with "oob" the out-of-bag predictions of an ensemble that has
        `oob_score`; with an integer or a splitter those of clones fitted on the other folds. The
        last two behave like predictions for new rows, so that the constraint carries over to
        these. "auto" is "oob" for an ensemble with enough members to leave out every row
        (`oob_score` among its parameters, bootstrap=True; not in a pipeline, nor with a warm
        start), else "train".
    slack : float, default=1e-3
        Fraction of the bound allowed for a coefficient constrained to 0; "fine" only.
    gap : "auto" or float, default="auto"
        Relative optimality gap at which a solver may stop; "auto" is one flip, 1/n, and 5e-5 from
        20,000 rows on.
    target_bounds : None
        Must be None: bounds are for real targets only.
    solver : {"auto", "gurobi", "highs"}, default="auto"
        "auto" uses a closed form if there is one, else Gurobi if the user has configured a
        licence, else HiGHS.
    solver_params : dict, default=None
        Parameters of the solver under their own names; unknown names are an error.
    time_limit : float, default=60.0
        Time limit per projection, in seconds.
    sensitive_columns : int, str or list of these, default=None
        Column(s) of X that hold the protected attribute, by position or name. Exactly one of
        `sensitive_features` and `sensitive_columns` must be given.
    drop_sensitive : bool, default=False
        Whether to remove `sensitive_columns` from the X of the inner estimator. A frame without
        them predicts as well.
    random_state : int, RandomState or None, default=None
        An int or RandomState seeds the `random_state` parameters of every clone of the inner
        estimator, and the projection. None leaves the seeds of the inner estimator as they are
        and fixes that of the projection.
    verbose : int, default=0
        Above 0, every iteration prints one line; above 1, the solver also prints its log.
    method : {"moving_targets", "dual"}, default="moving_targets"
        How the targets of the next fit are computed: by projecting the last scores, or, with
        "dual" (two classes), by a threshold on the scores of the first fit that is shifted by the
        k multipliers of the constraint, so that it compensates for the difference between the
        last predictions and the labels they were fitted on. The dual makes the *predictions*
        satisfy the constraint, within `tol`, in two to five fits if the learner follows its
        targets. If it stops making progress, it continues with moving targets, issues a
        ConvergenceWarning, and keeps the best fit. All clones get the same seed. It needs
        probabilities, and ignores `target_weight` and `n_iter_no_change`.
    tol : float, default=None
        Stop once the targets change by no more than this between iterations, relative to the
        deviation of y: ‖z_i − z_{i−1}‖ / ‖y − mean(y)‖. None never stops early. With
        method="dual" it bounds the distance of the predictions from the constraint, in deviations
        of y, and None is 5e-3.
    n_iter_no_change : int, default=None
        Number of consecutive iterations without such a change after which to stop; None is 1.
        Without `tol`, the targets must not change at all.
    select : {"last", "best"}, default="last"
        Which iteration's fit is kept. "best" is the one with the smallest loss among those whose
        predictions for the training rows satisfy the constraint; if there are none, the one with
        the smallest violation.
    warm_start : bool, default=False
        Whether the inner estimator, which must have a parameter `warm_start`, continues from its
        last fit instead of starting afresh. An ensemble then grows in every iteration by its
        initial number of members.
    conditional_on : int, str, list of these or callable, default=None
        Column(s) of X that the targets may depend on, or a callable that computes them from X.
        The bounded coefficients are those of the kernel in a regression on kernel and covariates,
        as in :func:`gedi_sklearn.metrics.gedi`.
    n_jobs : int, default=None
        Number of processes for the folds of `cv`; it does not change the result.

    Attributes
    ----------
    estimator_ : estimator
        The inner estimator, fitted on `targets_`.
    targets_ : ndarray of shape (n,)
        The targets it was fitted on; they satisfy the constraint. With method="dual" the
        predictions satisfy it instead.
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
        `n_variables` of the projection (NaN or "" if there was none; `status` is "dual" if
        method="dual" computed the targets); `targets_gedi` and `predictions_gedi`, the indicator
        of the targets and of the predictions for the training rows; `loss_predictions` and
        `loss_targets`, their mean loss against y;
        `n_changed`, the number of targets that differ from y; `fit_seconds` (fitting and
        predicting) and `projection_seconds`; with validation data, `validation_score` and
        `validation_gedi`.
    n_iter_ : int
        Number of fits after the first; 0 if neither the targets nor the predictions of the first
        fit violate the constraint (with method="dual": if its predictions do not).
    solver_ : str
        What solved the last projection (or, with method="dual", computed the last targets):
        "exact", "gurobi", "highs", or "" if there was none.
    classes_ : ndarray of shape (K,)
        The labels.
    verdict_ : Verdict or None
        Whether the bound is met, what is left that the kernel does not see, and whether the
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
        "loss": [StrOptions({"auto"} | CLASS_LOSSES)],
        "response_method": [StrOptions({"auto", "predict", "predict_proba"})],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Where the attribute separates the classes, the constraint rules out accurate predictions.
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
                "This holds for method='dual'; use method='moving_targets'."
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

    def _outcomes(self, y: np.ndarray) -> Outcomes:
        return Outcomes.of_classes(y, self.classes_)

    def _weight_rule(self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Return what the parameter `target_weight` stands for, after the first fit."""
        rule = super()._weight_rule(scores, y, weight)
        has_probabilities = scores.ndim == 1 and scores.dtype.kind == "f"
        if not self._is_automatic("target_weight") or not has_probabilities:
            return rule
        size = np.bincount(y, weights=weight)
        rarer = int(size[1] <= size[0])
        own = y == rarer
        is_unlikely = np.abs(1 - rarer - scores[own]) < _UNLIKELY
        lost = np.average(is_unlikely, weights=None if weight is None else weight[own])
        return 1.0 if lost > _MANY_LOST else rule

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
