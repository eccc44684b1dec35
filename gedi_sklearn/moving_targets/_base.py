"""The algorithm, and what the two estimators share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from .._meta_estimator import COLUMN_CONSTRAINTS, COVARIATE_CONSTRAINTS, MetaEstimator
from .._prediction_source import leaves_rows_out
from .._validation import (
    N_JOBS,
    HasMethods,
    Interval,
    Outcomes,
    StrOptions,
    _fit_context,
    check_random_state,
    check_same_length,
)
from ..constraints import CARRIED, constraint_in_words
from ..exceptions import RankDeficientKernelError
from ..projection import PROJECTION_PARAMETERS
from ._dual import DEFAULT_TOL, DualSteps, Search
from ._history import History, ValidationData
from ._learner import Learner
from ._master import Master
from ._outcome import Outcome
from ._steps import Candidate, ProjectionSteps, Step, Steps, StopRule, better_of


class BaseMovingTargets(MetaEstimator):
    """Base class of the regressor and the classifier, which add targets, learner and loss."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        # Some have no `predict` before they are fitted, such as a stacking regressor.
        "estimator": [HasMethods(["fit"]), None],
        **{
            name: allowed
            for name, allowed in PROJECTION_PARAMETERS.items()
            if name not in ("loss", "random_state")
        },
        "target_weight": [
            StrOptions({"auto", "harmonic"}),
            Interval(Real, 0, None, closed="left"),
            callable,
        ],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"pretraining", "projection"})],
        "cv": [
            StrOptions({"auto", "train", "oob"}),
            Interval(Integral, 2, None, closed="left"),
            "cv_object",
        ],
        **COLUMN_CONSTRAINTS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "method": [StrOptions({"moving_targets", "dual"})],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
        "select": [StrOptions({"last", "best"})],
        "warm_start": ["boolean"],
        **COVARIATE_CONSTRAINTS,
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraint: Any = "coarse",
        kernel: Any = "polynomial",
        degree: int = 1,
        norm: str = "l1",
        threshold: Any = 0.2,
        relative: bool | int = True,
        loss: str = "auto",
        target_weight: Any = "auto",
        max_iter: int = 10,
        init: str = "pretraining",
        response_method: str = "auto",
        cv: Any = "auto",
        slack: float = 1e-3,
        gap: float | str = "auto",
        target_bounds: Any = None,
        solver: str = "auto",
        solver_params: dict[str, Any] | None = None,
        time_limit: float = 60.0,
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        method: str = "moving_targets",
        tol: float | None = None,
        n_iter_no_change: int | None = None,
        select: str = "last",
        warm_start: bool = False,
        conditional_on: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.kernel = kernel
        self.degree = degree
        self.norm = norm
        self.threshold = threshold
        self.relative = relative
        self.loss = loss
        self.target_weight = target_weight
        self.max_iter = max_iter
        self.init = init
        self.response_method = response_method
        self.cv = cv
        self.slack = slack
        self.gap = gap
        self.target_bounds = target_bounds
        self.solver = solver
        self.solver_params = solver_params
        self.time_limit = time_limit
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive
        self.random_state = random_state
        self.verbose = verbose
        self.method = method
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.select = select
        self.warm_start = warm_start
        self.conditional_on = conditional_on
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
        **fit_params: Any,
    ) -> BaseMovingTargets:
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
            "X_val": X_val,
            "y_val": y_val,
            "sensitive_features_val": sensitive_features_val,
        }
        keywords = self._route_fit(own, fit_params)
        rng = None if self.random_state is None else check_random_state(self.random_state)
        loss = self._resolve_loss()
        inner = self._inner_X(X)
        learner = self._learner_type(loss)(
            estimator=self._inner_estimator(),
            X=inner,
            fit_params=keywords["estimator"],
            rng=rng,
            warm_start=self.warm_start,
            source=self._prediction_source(
                self._resolve_cv(len(y)), inner, y, keywords, "estimator"
            ),
            one_seed=self.method == "dual",
        )
        master = Master(
            y,
            attribute,
            outcomes=self._outcomes(y) if learner.source.is_unseen else None,
            names=self._attribute_columns,
            conditional_on=self._covariates(X),
            loss=loss,
            sample_weight=weight,
            **self._master_options(rng),
        )
        held_out = self._check_held_out(X_val, y_val, sensitive_features_val, learner, master)

        with master, History(master, y, weight, loss, held_out, self.verbose > 0) as history:
            targets = y
            if self.init == "projection" and not master.allows(y):
                targets = master.solve()
            fit = learner.fit(targets)
            first = targets, fit.predictions
            latest = best = history.record(Step(targets, np.nan), fit)
            rule = self._weight_rule(fit.scores, y, weight)
            steps = self._make_steps(master, y, weight, targets, rule)
            while (step := steps.next(fit)) is not None:
                fit = learner.fit(step.targets)
                latest = history.record(step, fit)
                best = better_of(best, latest)

        selected = best if steps.keeps_best or self.select == "best" else latest
        master.warn_early_stops()
        steps.warn(selected)
        target_weight = history.entries[selected.iteration]["target_weight"]
        outcome = Outcome(learner, y, weight, *first, selected, target_weight)
        outcome.warn_collapse()
        is_unseen = learner.source.is_unseen
        self.verdict_ = master.verdict(selected.fit.predictions, is_unseen=is_unseen)
        if not (steps.keeps_best or is_unseen):  # else a search has failed, and said so
            outcome.warn_unmet(master.constraint)
        if self.verdict_ is not None:
            self.verdict_.warn()
        self._set_fitted(learner, master, selected, history)
        return self

    def _resolve_cv(self, n_rows: int) -> Any:
        """Return what the parameter `cv` stands for: out-of-bag predictions where there are any."""
        if not self._is_automatic("cv"):
            return self.cv
        has_unseen = not self.warm_start and leaves_rows_out(self._inner_estimator(), n_rows)
        return "oob" if has_unseen else "train"

    def _weight_rule(self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Return what the parameter `target_weight` stands for, after the first fit."""
        return "harmonic" if self._is_automatic("target_weight") else self.target_weight

    def _is_automatic(self, parameter: str) -> bool:
        value = getattr(self, parameter)
        return isinstance(value, str) and value == "auto"

    def _make_steps(
        self,
        master: Master,
        y: np.ndarray,
        weight: np.ndarray | None,
        first: np.ndarray,
        weight_rule: Any,
    ) -> Steps:
        """Return what computes the targets of the iterations."""
        is_dual = self.method == "dual"
        # The tolerance of the dual method has another meaning than that of the stopping rule.
        limits = (None, None) if is_dual else (self.tol, self.n_iter_no_change)
        stop = StopRule(y, weight, *limits)
        projections = ProjectionSteps(
            master, partial(_target_weight, weight_rule), self.max_iter, stop
        )
        # A constant attribute leaves nothing to search.
        if not is_dual or master.projection.kernel_ is None:
            return projections
        tol = DEFAULT_TOL if self.tol is None else self.tol
        return DualSteps(self._make_search(master, tol, first), tol, self.max_iter, projections)

    def _make_search(self, master: Master, tol: float, first: np.ndarray) -> Search:
        """Return the search for the multipliers, from the targets of the first fit."""
        raise NotImplementedError

    def _set_fitted(
        self, learner: Learner, master: Master, selected: Candidate, history: History
    ) -> None:
        """Set the fitted attributes; neither the solver nor rows of the kernel are kept."""
        self.estimator_ = selected.fit.estimator
        self.targets_ = learner.decode(selected.targets)
        self.selected_iteration_ = selected.iteration
        projection = master.projection
        self.kernel_, self.constraint_ = projection.kernel_, projection.constraint_
        self.threshold_, self.reference_ = projection.threshold_, projection.reference_
        self.solver_ = master.solver
        self.history_ = history.as_arrays()
        self.n_iter_ = len(history.entries) - 1

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
        words = constraint_in_words(self.constraint, **{n: getattr(self, n) for n in CARRIED})
        if "text/html" in bundle:
            bundle["text/html"] += f"<p>{escape(words)}</p>"
        return {**bundle, "text/plain": f"{bundle['text/plain']}\n{words}"}

    def _check_more_targets(self, y: Any) -> np.ndarray:
        """Return targets of other rows in the same encoding, shape (n,)."""
        raise NotImplementedError

    def _outcomes(self, y: np.ndarray) -> Outcomes:
        """Return targets as the caller gave them, for constraints on some of the rows."""
        return Outcomes(y, None)

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
        y = self._check_more_targets(y)
        check_same_length(len(y), X_val=X)
        attribute = self._check_attribute(X, sensitive_features, len(y), reset=False)
        try:
            covariates, outcomes = self._covariates(X), self._outcomes(y)
            gedi = master.projection.gedi_on(attribute, covariates, outcomes)
        except RankDeficientKernelError as error:
            raise ValueError(f"the validation rows are too few or too alike: {error}") from error
        return ValidationData(learner, self._inner_X(X), y, gedi)

    def _learner_type(self, loss: str) -> Callable[..., Learner]:
        """Return the class of the learner, or what constructs it from the same keywords."""
        return Learner

    def _resolve_loss(self) -> str:
        """Return the loss that the parameter `loss` stands for."""
        raise NotImplementedError

    def _master_options(self, rng: np.random.RandomState | None) -> dict[str, Any]:
        """Return the parameters that the projection shares with this estimator."""
        names = (
            "constraint",
            "kernel",
            "degree",
            "norm",
            "threshold",
            "relative",
            "slack",
            "gap",
            "target_bounds",
            "solver",
            "solver_params",
            "time_limit",
        )
        seed = None if rng is None else rng.randint(np.iinfo(np.int32).max)
        shared = {name: getattr(self, name) for name in names}
        return {**shared, "random_state": seed, "verbose": self.verbose}


def _target_weight(rule: Any, iteration: int) -> float:
    """Return the weight of y in the projection of an iteration, counted from 1."""
    if isinstance(rule, str):
        return 1 / iteration  # "harmonic"
    if not callable(rule):
        return float(rule)
    weight = rule(iteration)
    if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
        raise ValueError(
            f"target_weight({iteration}) returned {weight!r}; it must return a finite number "
            "of at least 0."
        )
    return float(weight)
