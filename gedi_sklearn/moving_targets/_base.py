"""The loop of fits on changing targets, and what its estimators share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._constrained_estimator import (
    COLUMN_CONSTRAINTS,
    ClassTargetsMixin,
    RealTargetsMixin,
    fit_method,
)
from .._folds import leaves_rows_out, make_prediction_source
from .._meta_estimator import COVARIATE_CONSTRAINTS, MetaEstimator
from .._predictions import answers_as_fitted, checked_predict_proba
from .._validation import (
    N_JOBS,
    HasMethods,
    Interval,
    StrOptions,
    check_random_state,
    check_same_length,
)
from ..constraints import constraint_in_words
from ..exceptions import RankDeficientKernelError
from ..projection import PROJECTION_PARAMETERS
from ._learner import ClassifierLearner, Learner, LearnerFit
from ._master import Master
from ._steps import Candidate, History, Outcome, ProjectionSteps, Step, ValidationData, better_of


class RealLearners(RealTargetsMixin):
    """Real targets, fitted by regressors."""

    def _learner_type(self, loss: str) -> Callable[..., Learner]:
        return partial(Learner, is_positive=loss == "kl")


def _inner_has(method: str) -> Any:
    """Return a check that the inner estimator, fitted where it is, has a method."""

    def check(wrapper: Any) -> bool:
        inner = getattr(wrapper, "estimator_", None)
        # An AttributeError raised by the inner estimator is more informative than ours.
        getattr(wrapper._inner_estimator() if inner is None else inner, method)
        return True

    return check


class ClassLearners(ClassTargetsMixin):
    """Classes of any label, fitted by classifiers."""

    estimator_: Any
    # Which response of the learner the projection uses.
    response_method: str = "auto"

    def _learner_type(self, loss: str) -> Callable[..., Learner]:
        return partial(
            ClassifierLearner,
            classes=self.classes_,
            response_method=self.response_method,
            loss=loss,
        )

    @available_if(_inner_has("predict_proba"))
    @answers_as_fitted
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
        inner = self._new_inner_X(X)  # before `estimator_`: it refuses an unfitted estimator
        return checked_predict_proba(self.estimator_, inner, self.classes_)

    @available_if(_inner_has("predict_log_proba"))
    @answers_as_fitted
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
    @answers_as_fitted
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


class TargetsEstimator(MetaEstimator):
    """Base of the estimators that fit a learner again and again, on targets that change.

    A subclass gives the steps from one fit to the next, and which fit is kept; a mixin the kind of
    the targets.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        # Some have no `predict` before they are fitted, such as a stacking regressor.
        "estimator": [HasMethods(["fit"]), None],
        "constraint": PROJECTION_PARAMETERS["constraint"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "cv": [
            StrOptions({"auto", "train", "oob"}),
            Interval(Integral, 2, None, closed="left"),
            "cv_object",
        ],
        **COLUMN_CONSTRAINTS,
        **COVARIATE_CONSTRAINTS,
        "n_jobs": N_JOBS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    # Whether all clones of the learner get the same seed, so that only their targets differ.
    _one_seed: ClassVar[bool] = False

    max_iter: int
    tol: float | None
    random_state: Any
    verbose: int

    @fit_method
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
        **fit_params: Any,
    ) -> TargetsEstimator:
        """Fit the inner estimator on targets that satisfy the constraint.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows, passed on to the inner estimator unchanged.
        y : array-like of shape (n,)
            Targets; for a classifier, classes of any label type.
        sensitive_features : array-like of shape (n,) or (n, m), default=None
            The protected attribute(s), matched to rows by position. None if `sensitive_columns`
            names them in X.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows in every fit of the inner estimator, in the loss of the
            projection and in the moments of the kernel. A row of weight 0 is ignored.
        groups : array-like of shape (n,), default=None
            Which rows are not independent of each other, such as those of one person: folds do not
            split them, and out-of-bag predictions count as those of rows that were seen. None
            takes all rows as independent.
        X_val : array-like of shape (n_val, p), default=None
            Validation rows, which are not fitted on. The score of each fit on them (R² or
            accuracy) and the indicator of its predictions for them, in the units of the kernel
            of the training rows, become `validation_score` and `validation_gedi` in `history_`.
            An inner estimator whose `fit` takes `X_val` and `y_val` (with metadata routing:
            requests them) gets them as well, without the columns that its X lacks.
        y_val : array-like of shape (n_val,), default=None
            Targets of `X_val`.
        sensitive_features_val : array-like of shape (n_val,) or (n_val, m), default=None
            Attribute of `X_val`; None if `sensitive_columns` names it.
        **fit_params : dict
            Further keywords of the inner estimator's `fit`. `drop_sensitive=True` applies to a
            further X among them (`eval_X`, and those in `eval_set`) as well.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If data, weights or parameters are invalid; the message names the parameter.
        InfeasibleProjectionError, SolverError
            If no targets satisfy the constraint, or the solver found none. Such an error, and
            any that the inner estimator raises, has the iterations so far in `.history`.
        """
        y, weight, attribute = self._check_training_data(X, y, sensitive_features, sample_weight)
        own = {
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
            "groups": groups,
            "X_val": X_val,
            "y_val": y_val,
            "sensitive_features_val": sensitive_features_val,
        }
        keywords = self._route_fit(own, fit_params)
        rng = None if self.random_state is None else check_random_state(self.random_state)
        loss = self._loss
        inner = self._inner_X(X)
        fold_maker = self._fold_maker(y, weight, groups, attribute, keywords["splitter"])
        learner = self._learner_type(loss)(
            estimator=self._inner_estimator(),
            X=inner,
            fit_params=keywords["estimator"],
            rng=rng,
            source=make_prediction_source(
                self._resolve_cv(len(y)),
                inner,
                fold_maker,
                keywords["estimator"],
                self.n_jobs,
                needs_labels=True,
            ),
            one_seed=self._one_seed,
        )
        seed = None if rng is None else rng.randint(np.iinfo(np.int32).max)
        master = Master(
            y,
            attribute,
            outcomes=self._outcomes(y) if learner.source.is_unseen else None,
            names=self._attribute_columns,
            constraint=self.constraint,
            conditional_on=self._covariates(X),
            loss=loss,
            sample_weight=weight,
            random_state=seed,
            verbose=self.verbose,
            **self._projection_options(),
        )
        held_out = self._check_held_out(X_val, y_val, sensitive_features_val, learner, master)

        with (
            master.projection,
            History(master, y, weight, loss, held_out, self.verbose > 0) as history,
        ):
            fit = learner.fit(y)
            first = fit.predictions
            latest = best = history.record(Step(y, np.nan), fit)
            steps = self._make_steps(master, y, weight, fit)
            while (step := steps.next(fit)) is not None:
                fit = learner.fit(step.targets)
                latest = history.record(step, fit)
                best = better_of(best, latest)

        selected = best if steps.keeps_best else latest
        master.warn_early_stops()
        steps.warn(selected)
        target_weight = history.entries[selected.iteration]["target_weight"]
        outcome = Outcome(learner, y, weight, first, selected, target_weight)
        outcome.warn_collapse()
        is_unseen = learner.source.is_unseen
        verdict = master.verdict(
            selected.fit.predictions,
            scores=learner.class_scores(selected.fit, y, weight),
            groups=fold_maker.groups,
            is_unseen=is_unseen,
        )
        if not (steps.has_failed or is_unseen):  # else a search has failed, and said so
            outcome.warn_unmet(master.constraint)
        self._take_verdict(verdict)
        self._set_fitted(learner, master, selected, history)
        return self

    def _resolve_cv(self, n_rows: int) -> Any:
        """Return what the parameter `cv` stands for: out-of-bag predictions where there are any."""
        if not (isinstance(self.cv, str) and self.cv == "auto"):
            return self.cv
        return "oob" if leaves_rows_out(self._inner_estimator(), n_rows) else "train"

    def _projection_options(self) -> dict[str, Any]:
        """Return further parameters of the projection."""
        return {}

    def _make_steps(
        self, master: Master, y: np.ndarray, weight: np.ndarray | None, first: LearnerFit
    ) -> ProjectionSteps:
        """Return what computes the targets after the first fit, which was on y."""
        raise NotImplementedError

    def _learner_type(self, loss: str) -> Callable[..., Learner]:
        """Return the class of the learner, or what constructs it from the same keywords."""
        raise NotImplementedError

    def _set_fitted(
        self, learner: Learner, master: Master, selected: Candidate, history: History
    ) -> None:
        """Set the fitted attributes; the solver is not kept."""
        self.estimator_ = selected.fit.estimator
        self.targets_ = learner.decode(selected.targets)
        self.selected_iteration_ = selected.iteration
        self._take_constraint(master.projection.fitted_constraint_)
        self.solver_ = master.solver
        self.history_ = history.as_arrays()
        self.n_iter_ = len(history.entries) - 1

    @answers_as_fitted
    def predict(self, X: Any) -> np.ndarray:
        """Predict with the fitted inner estimator; the attribute is not needed.

        Parameters
        ----------
        X : array-like of shape (n, p)
            With the columns of the X in `fit`.

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        inner = self._new_inner_X(X)
        return self.estimator_.predict(inner)

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return what notebooks and IPython display: the parameters and the constraint in words."""
        bundle = super()._repr_mimebundle_(**kwargs)
        words = constraint_in_words(self.constraint)
        if "text/html" in bundle:
            bundle["text/html"] += f"<p>{escape(words)}</p>"
        return {**bundle, "text/plain": f"{bundle['text/plain']}\n{words}"}

    def _check_held_out(
        self, X: Any, y: Any, sensitive_features: Any, learner: Learner, master: Master
    ) -> ValidationData | None:
        """Return the validation data, or None if none were given."""
        if X is None and y is None and sensitive_features is None:
            return None
        if X is None or y is None:
            raise ValueError(
                "validation data need both X_val and y_val (and sensitive_features_val unless "
                f"sensitive_columns is set); got X_val={type(X).__name__}, "
                f"y_val={type(y).__name__}."
            )
        self._check_columns(X)
        y = self._check_more_targets(y, "y_val")
        check_same_length(len(y), X_val=X)
        attribute = self._check_attribute(X, sensitive_features, len(y), reset=False)
        try:
            covariates, outcomes = self._covariates(X), self._outcomes(y)
            gedi = master.projection.gedi_on(attribute, covariates, outcomes)
        except RankDeficientKernelError as error:
            raise ValueError(f"the validation rows are too few or too alike: {error}") from error
        return ValidationData(learner, self._inner_X(X), y, gedi)
