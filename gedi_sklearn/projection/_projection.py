"""The projection of targets on a constraint: what is fixed during a fit, and one solve."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._validation import (
    CLASS_LOSSES,
    REAL_LOSSES,
    Interval,
    Outcomes,
    StrOptions,
    Targets,
    attribute_columns,
    check_all_weighted,
    check_attribute,
    check_attribute_columns,
    check_bounds,
    check_numbers,
    check_random_state,
    check_sample_weight,
    check_sensitive,
    named_in_errors,
    validate_params,
)
from .._verdict import Verdict, make_verdict
from ..constraints import (
    FittedConstraint,
    fit_constraint,
    joint_columns,
    refit_constraint,
    split_attributes,
)
from ..exceptions import (
    ConstraintNotMetWarning,
    IllConditionedKernelWarning,
    SolverLimitError,
    warn_caller,
)
from ..kernels import AttributeEncoder, GroupColumns
from ._absolute_error import AbsoluteLoss
from ._classes import ClassTargets
from ._real_targets import LOSSES, Loss, RealTargets
from ._result import ProjectionResult, Solution
from ._solver import Deadline, check_solver, open_session

# The declared ranges of the parameters, shared with the estimators that pass them on.
PROJECTION_PARAMETERS: dict[str, Any] = {
    "constraint": "no_validation",  # checked by `check_constraint`, with words that help
    "loss": [StrOptions({"auto"} | REAL_LOSSES | CLASS_LOSSES)],
    "target_bounds": [tuple, list, None],
    "solver": "no_validation",  # likewise, by `check_solver`
    "random_state": ["random_state"],
}

# Where no seed is given, ties and solvers still use a fixed one: a fit with a deterministic
# learner is deterministic.
_FIXED_SEED = 0
# The gap that is asked for by default is one flip, but no less than this.
_LEAST_GAP = 5e-5
# Gap from which real targets are not proven to be the nearest.
_PROVEN = 1e-6


class Projection:
    r"""Repeated projection of targets on one constraint.

    Holds what is fixed during a fit: the kernel on the rows, the constraint with its absolute
    threshold, the original targets, the weights, the solver. A context manager: the solver's
    environment is released at its end, on every path.

    Parameters
    ----------
    y : array-like of shape (n,)
        Original targets: real numbers, or classes of any label. For more than two, every
        class's 0/1 column, one against the rest, satisfies the constraint.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute(s), numbers or categories.
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, and by how much; None is ``DependenceConstraint()``. A list holds one
        constraint for each attribute, all of which are met at once.
    loss : str, default="auto"
        Distance between targets: "squared_error", "absolute_error" or "kl" of real targets,
        "hamming" or "log_loss" of classes. "auto" is "hamming" for two classes and for text, else
        "squared_error".
    target_bounds : tuple of (float or None, float or None), default=None
        Lowest and highest value of real targets, None for no end: (0, None) keeps counts and
        rates valid. `y` must lie between them.
    conditional_on : array-like of shape (n,) or (n, p), default=None
        What the targets may depend on: the bounded coefficients are those of the kernel beside
        these covariates, as in :func:`gedi_sklearn.metrics.gedi`.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows. A row of weight 0 is as if absent and keeps its original target.
    solver : {"auto", "gurobi", "highs"} or Solver, default="auto"
        What solves the projection, how near to the optimum and for how long.
    random_state : int, RandomState or None, default=None
        Which of equal rows flip, and the solver's seed. None is a fixed seed.
    verbose : int, default=0
        Above 1 the solver prints its log.
    allow_constant : bool, default=False
        Whether a constant attribute is a projection that allows everything, with a warning,
        rather than an error.

    Attributes
    ----------
    kernel_ : FittedKernel
        The kernel, without any row.
    constraint_ : Constraint
        The constraint with its absolute threshold.
    threshold_ : float or ndarray of shape (k,)
        The absolute threshold.
    reference_ : float
        The indicator of `y` that a relative threshold is a share of; 1.0 for an absolute one.
    fitted_constraint_ : FittedConstraint
        The constraint on the rows of positive weight, in orthonormal coordinates.

    The first four are lists where `constraint` is one, and None, None, inf and NaN for a constant
    attribute.

    Raises
    ------
    ValueError
        If an input is malformed, or a relative threshold meets a reference of 0.
    RankDeficientKernelError
        If the kernel's columns are dependent on these rows (`is_constant` where the attribute is,
        unless that is allowed).

    See Also
    --------
    project_targets : One projection, as a function.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint
    >>> from gedi_sklearn.projection import Projection
    >>> x, constraint = np.linspace(-1, 1, 9), CoarseConstraint(0.5)
    >>> with Projection(3 * x, sensitive_features=x, constraint=constraint) as projection:
    ...     near = projection.solve(y_pred=2 * x)
    >>> round(projection.gedi(near.targets), 6)
    1.5
    """

    # What a constraint on some of the rows, or on residuals, needs to know; None refuses these.
    # Beside it what a constraint may bound.
    _outcomes: Outcomes | None = None
    _bounds: tuple[str, ...] = ("predictions",)
    # Names of the attribute's columns where it comes without them.
    _names: list[str] | None = None

    @validate_params(
        {
            "y": ["array-like"],
            "sample_weight": ["array-like", Interval(Real, 0, None, closed="neither"), None],
            "verbose": ["verbose"],
            "allow_constant": ["boolean"],
        }
        | PROJECTION_PARAMETERS,
        prefer_skip_nested_validation=True,
    )
    @named_in_errors("Projection")
    def __init__(
        self,
        y: Any,
        *,
        sensitive_features: Any,
        constraint: Any = None,
        loss: str = "auto",
        target_bounds: Any = None,
        conditional_on: Any = None,
        sample_weight: Any = None,
        solver: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
        allow_constant: bool = False,
    ) -> None:
        self._targets = Targets(y, loss)
        self.loss = self._targets.loss
        self.is_classification = self.loss in CLASS_LOSSES
        self._target_bounds = check_bounds(target_bounds, self._targets)
        self._columns = attribute_columns(sensitive_features)
        n = len(self._targets.y)
        values = check_sensitive(sensitive_features, n_samples=n, kind="mixed")
        covariates = _check_covariates(conditional_on, n)
        weight = check_sample_weight(sample_weight, n)
        self._given = {"values": values, "covariates": covariates, "weight": weight}
        self._rows = slice(None) if weight is None else weight > 0
        if self._targets.classes is not None:
            check_all_weighted(self._targets.classes, self.counted(self._targets.y))
        fitted = fit_constraint(
            constraint,
            **self._of_rows(self._rows),
            n_classes=self._targets.n_classes,
            bounds=self._bounds,
            names=self._names or self._columns,
            allow_constant=allow_constant,
        )
        chosen = check_solver(solver)
        self._gap, self._time_limit = chosen.gap, chosen.time_limit
        self._random_state = random_state
        seed = self._set_rows(fitted)
        self._session = open_session(chosen.name, chosen.params, seed, verbose > 1)
        self._set_constraint(fitted)

    def _of_rows(self, rows: Any) -> dict[str, Any]:
        """Return what a constraint on some rows is fitted to."""
        given = {name: own if own is None else own[rows] for name, own in self._given.items()}
        outcomes = self._outcomes
        outcomes = outcomes and outcomes._replace(labels=outcomes.labels[rows])
        return {"y": self._targets.y[rows], "outcomes": outcomes, **given}

    def _set_rows(self, fitted: FittedConstraint) -> int:
        """Set what follows from the number of rows, and return the seed of the solver."""
        n, given = len(fitted.weight), self._random_state
        self.gap = max(_LEAST_GAP, 1 / n) if isinstance(self._gap, str) else self._gap
        if given is None and not self.is_classification:
            return _FIXED_SEED  # there are no ties, and a generator takes longer than the solution
        # Ties and the solver draw from the same stream.
        rng = check_random_state(_FIXED_SEED if given is None else given)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self._tie_order = rng.permutation(n).astype(np.int32)
        return seed

    def __enter__(self) -> Projection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the solver; safe to call twice."""
        self._session.close()

    def at(self, threshold: Any) -> Projection:
        """Return the projection of the same targets at another threshold.

        It shares the kernel and the solver, and with them the end of the solver.

        Parameters
        ----------
        threshold : float or array-like of shape (k,)
            What `threshold` is in the constructor: a share of the reference where `relative`.

        Returns
        -------
        Projection
        """
        if isinstance(self.kernel_, list):
            raise ValueError(
                "a list of constraints has no single threshold to change; build another Projection."
            )
        other = copy.copy(self)
        other._set_constraint(self.fitted_constraint_.at(threshold))
        return other

    def on_rows(self, rows: np.ndarray) -> Projection:
        """Return the projection of some rows of positive weight, on the constraint of these alone.

        A relative threshold is a share of their reference. It shares the solver, and its end.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the rows.

        Returns
        -------
        Projection

        Raises
        ------
        RankDeficientKernelError
            If the kernel's columns are dependent on these rows.
        """
        other, given = copy.copy(self), self._of_rows(rows)
        fitted = refit_constraint(self.fitted_constraint_, **given)
        other._targets, other._rows = self._targets.of_rows(rows), slice(None)
        other._outcomes = given.pop("outcomes")
        other._given = {name: given[name] for name in self._given}
        other._set_rows(fitted)
        other._set_constraint(fitted)
        return other

    def scaled(self, share: float | np.ndarray) -> Projection:
        """Return the projection on the sets shrunk to a share; `threshold_` stays what it was.

        Parameters
        ----------
        share : float or ndarray of shape (parts of the constraint,)
            Share of every bound.

        Returns
        -------
        Projection
        """
        other = copy.copy(self)
        other._set_constraint(self.fitted_constraint_.scaled(share))
        return other

    def _set_constraint(self, fitted: FittedConstraint) -> None:
        """Set what follows from the constraint on the rows."""
        self.fitted_constraint_ = fitted
        self.kernel_, self.constraint_ = fitted.kernel, fitted.constraint
        self.threshold_, self.reference_ = fitted.threshold, fitted.reference
        self._problem = self._make_problem()

    def solve(self, y_pred: Any = None, target_weight: Any = 1.0) -> ProjectionResult:
        r"""Return the nearest targets that satisfy the constraint.

        Minimises loss(z, y_pred) + target_weight · loss(z, y), or loss(z, y) where there are no
        predictions.

        Parameters
        ----------
        y_pred : array-like of shape (n,), default=None
            Predictions: real values; labels or probabilities, of the second of two classes or
            of all, shape (n, K).
        target_weight : float, default=1.0
            Weight of the original targets beside the predictions; the paper's α_i.

        Returns
        -------
        ProjectionResult

        Raises
        ------
        InfeasibleProjectionError
            If it is proven that no targets satisfy the constraint.
        SolverLimitError
            If the time limit comes before real targets are found; classes always get some.
        SolverError
            If the solver failed.

        Warns
        -----
        ConvergenceWarning
            If a limit stopped the search for classes: the targets satisfy the constraint, with the
            reported gap to the nearest ones.
        ConstraintNotMetWarning
            If no classes that satisfy the constraint were found: the targets are the closest ones
            that were, with status "closest".
        """
        weight = float(check_numbers([target_weight], "target_weight").item())
        if weight < 0:
            raise ValueError(f"target_weight must be at least 0, got {target_weight}.")
        solution, result = self._solve(y_pred, weight)
        if self.is_classification and not self._warn_early_stop(solution, result.violation):
            self._warn_collapse(solution.z)
        return result

    def solve_step(self, y_pred: Any, target_weight: float) -> ProjectionResult:
        """Solve as :meth:`solve` does, for one of many steps, at a weight that needs no check.

        Limits and classes that are nearly lost are left to the caller, to be said once for all.
        """
        return self._solve(y_pred, target_weight)[1]

    def correction(self, p: np.ndarray) -> tuple[np.ndarray, float]:
        """Return what :meth:`solve` finds for real predictions alone: its correction and intercept.

        Nothing is checked, and targets are not made.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Predictions.

        Returns
        -------
        orthonormal_correction : ndarray of shape (k,)
        intercept : float
        """
        assert isinstance(self._problem, RealTargets)  # asked for losses with a link only
        with self._deadline() as deadline:
            return self._problem.correction(self.counted(p), deadline)

    def _solve(self, y_pred: Any, weight: float) -> tuple[Solution, ProjectionResult]:
        """Return the solution for the rows that count, and what is made of it."""
        started = time.perf_counter()
        p = None if y_pred is None else self.counted(self._targets.encode_predictions(y_pred))
        with self._deadline() as deadline:
            solution = self._problem.solve(p, weight, deadline)
        constraint = self.fitted_constraint_
        judged = constraint.judge(solution.z)
        if solution.status != "closest":  # which is said in other words
            judged.warn_rounding()
        correction = solution.correction
        if correction is None:
            correction = np.full(len(solution.multipliers), np.nan)
        if not self.is_classification and solution.gap > _PROVEN:
            warn_caller(IllConditionedKernelWarning.from_gap(solution.gap))
        return solution, ProjectionResult(
            targets=self._targets.decode(self._with_counted(solution.z)),
            coefficients=judged.coefficients,
            threshold=self.threshold_,
            violation=judged.violation,
            satisfied=judged.violation == 0.0,
            objective=solution.objective,
            bound=solution.bound,
            gap=solution.gap,
            multipliers=constraint.raw_multipliers(solution.multipliers),
            correction=constraint.raw_correction(correction),
            orthonormal_correction=correction,
            intercept=solution.intercept,
            status=solution.status,
            solver=solution.solver,
            n_variables=solution.n_variables,
            n_groups=solution.n_groups,
            seconds=time.perf_counter() - started,
        )

    def coefficients(self, z: Any) -> np.ndarray:
        """Return α̃ of targets, shape (k,): of all constraints or classes, one after another.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels.

        Returns
        -------
        ndarray of shape (k,)
        """
        return self.fitted_constraint_.judge(self._encode(z)).coefficients

    def gedi(self, z: Any) -> float:
        """Return the bounded indicator: ‖α̃(z)‖₁, or the DIDI.

        With several constraints it is the sum; with more than two classes, each against the rest,
        the largest. NaN for a constant attribute.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels.

        Returns
        -------
        float
        """
        return self.fitted_constraint_.indicator(self._encode(z))

    def share_of_reference(self, z: Any) -> float:
        """Return the indicator of targets as a share of `reference_`, of the worst class."""
        columns = self.fitted_constraint_.columns(self._encode(z))
        parts = self.fitted_constraint_.parts
        return max(part.gauge.indicator(columns) / part.reference for part in parts)

    def gedi_on(
        self, sensitive_features: Any, conditional_on: Any = None, outcomes: Outcomes | None = None
    ) -> Callable[[Any], float]:
        """Return the function that measures targets of other rows as :meth:`gedi` does these.

        Parameters
        ----------
        sensitive_features : array-like of shape (n',) or (n', m)
            The attribute(s) of those rows.
        conditional_on : array-like of shape (n',) or (n', p), default=None
            Their covariates, where the projection has any.
        outcomes : Outcomes, default=None
            Their original targets, for a constraint on some of the rows.

        Returns
        -------
        callable
            From numbers (n',), classes as 0 and 1, to the indicator.
        """
        check_attribute_columns(self._columns, sensitive_features)
        values = check_sensitive(sensitive_features, kind="mixed")
        covariates = _check_covariates(conditional_on, len(values))
        attributes = split_attributes(values, isinstance(self.kernel_, list))
        gauges = self.fitted_constraint_.gauges_on(attributes, covariates, outcomes)
        return lambda z: self.fitted_constraint_.indicator(z, gauges)

    def violation(self, z: Any) -> float:
        """Return by how much targets miss the constraint (the worst one), 0 within rounding.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels.

        Returns
        -------
        float
        """
        return self.fitted_constraint_.judge(self._encode(z)).violation

    def satisfied(self, z: Any) -> bool:
        """Tell whether targets satisfy the constraint within rounding.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels.

        Returns
        -------
        bool
        """
        return self.violation(z) == 0.0

    def verdict(
        self,
        z: Any,
        *,
        scores: np.ndarray | None = None,
        plain: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        **predictions: np.ndarray,
    ) -> Verdict | None:
        """Return what the constraint has come to for targets; None of few rows, or without a bound.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels.
        scores : ndarray of shape (n,) or (n, K), default=None
            Scores of the second of two classes, or of every class.
        plain : ndarray, default=None
            The learner's, without the constraint.
        groups : ndarray of shape (n,), default=None
            Clusters of the rows.
        **predictions : array-like of shape (n,)
            `training` and `new_rows`, predictions for these rows by a model that has seen them and
            by models that have not, and `predicted`; see :func:`make_verdict`.
        """
        y = self.counted(self._targets.y)
        encoded = {name: self._encode(values) for name, values in predictions.items()}
        beside = {"scores": scores, "plain": plain, "groups": groups}
        beside = {name: None if v is None else self.counted(v) for name, v in beside.items()}
        return make_verdict(self.fitted_constraint_, y, self._encode(z), **beside, **encoded)

    def counted(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the rows of positive weight."""
        return values[self._rows]

    @property
    def row_columns(self) -> np.ndarray | GroupColumns:
        """Q of the kernel of every constraint, side by side; 0 in rows of zero weight, (n, Σk).

        Of groups as its products.
        """
        constraint, n = self.fitted_constraint_, len(self._targets.y)
        if (own := constraint.group_columns) is not None:
            codes = np.full(n, -1)
            codes[self._rows] = own.codes
            return GroupColumns(own.kernel, codes)
        matrix = constraint.orthonormal
        columns = np.zeros((n, matrix.shape[1]))
        columns[self._rows] = matrix
        return columns

    def columns_of(self, values: np.ndarray, *covariates: np.ndarray) -> np.ndarray:
        """Return the same for other rows, from their attributes (and covariates) as numbers."""
        return joint_columns(
            self.kernel_, values, lambda kernel, own: kernel.orthonormal(own, *covariates)
        )

    def relaxed_multipliers(
        self,
        p: np.ndarray,
        constraint: FittedConstraint,
        tolerance: float,
        start: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the multipliers of orthonormal coordinates in the relaxation of classes.

        Parameters
        ----------
        p : ndarray of shape (rows of positive weight,) or (…, K)
            Probabilities, the only thing that the relaxation is near to.
        constraint : FittedConstraint
            On these rows, in the place of the projection's own.
        tolerance : float
            How far from its optimum the relaxation may be, in rows of the largest cost.
        start : ndarray of shape (r,), default=None
            What was returned beside the multipliers of the same constraint at another share.

        Returns
        -------
        multipliers : ndarray of shape (k,)
            Those of all constraints and classes, one after another.
        start : ndarray of shape (r,)
            Where to start from at another share.
        """
        with self._deadline() as deadline:
            return self._class_problem(constraint).relaxed_multipliers(
                p, tolerance, deadline, start
            )

    def relaxed_labels(self, p: np.ndarray, offset: np.ndarray) -> np.ndarray | None:
        """Return the labels that the relaxation gives to scores, for two classes.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Probabilities.
        offset : ndarray of shape (K,)
            What is added to the coordinates of labels before they have to be allowed.

        Returns
        -------
        ndarray of shape (n,) or None
            0 or 1; the original target of rows of zero weight. None where there are none.
        """
        constraint = self.fitted_constraint_
        bounded = np.concatenate([block.allowed.bounded for block in constraint.span.blocks])
        v = constraint.span.v(offset)[bounded]
        assert isinstance(self._problem, ClassTargets)  # asked for two classes only
        with self._deadline() as deadline:
            labels = self._problem.relaxed_labels(self.counted(p), v, deadline)
        return None if labels is None else self._with_counted(labels)

    def _make_problem(self) -> RealTargets | AbsoluteLoss | ClassTargets:
        """Return the problem that the loss and the targets make, solved by every `solve`."""
        constraint, y = self.fitted_constraint_, self.counted(self._targets.y)
        if self.is_classification:
            return self._class_problem(constraint)
        if self.loss == "absolute_error":
            self._session.refuse("loss='absolute_error'", "HiGHS")
            return AbsoluteLoss(constraint, y, self._target_bounds)
        if self.loss != "squared_error":
            self._session.refuse(f"loss={self.loss!r}", "an exact method")
        elif self._target_bounds is not None:
            self._session.refuse("target_bounds with loss='squared_error'", "an exact method")
        bounds = {} if self._target_bounds is None else {"bounds": self._target_bounds}
        return RealTargets(constraint, y, LOSSES[self.loss], bounds, self._session)

    def loss_against(self, t: np.ndarray) -> Loss:
        """Return the loss of targets of the rows that count, against those of least loss."""
        assert isinstance(self._problem, RealTargets)  # asked for losses with a link only
        return self._problem.loss_against(t)

    def _class_problem(self, constraint: FittedConstraint) -> ClassTargets:
        """Return the problem of classes under a constraint on the rows."""
        return ClassTargets(
            constraint,
            y=self.counted(self._targets.y),
            loss=self.loss,
            gap=self.gap,
            tie_order=self._tie_order,
            session=self._session,
        )

    @contextmanager
    def _deadline(self) -> Iterator[Deadline]:
        """Give the deadline of a solve, whose end without a solution is an error."""
        try:
            yield Deadline(self._time_limit)
        except TimeoutError:
            raise SolverLimitError.from_limit(
                solver=self._session.name, status="time_limit", **self.fitted_constraint_.describe()
            ) from None

    def _encode(self, z: Any) -> np.ndarray:
        """Return targets of the rows that count as numbers."""
        return self.counted(self._targets.encode(z))

    def _with_counted(self, z: np.ndarray) -> np.ndarray:
        """Return targets of all rows; those of zero weight keep their original one."""
        targets = self._targets.y.copy()
        targets[self._rows] = z
        return targets

    def _warn_early_stop(self, solution: Solution, violation: float) -> bool:
        """Warn where classes are not proven to be as near as was asked; tell whether."""
        if solution.status in ("optimal", "gap") and solution.gap <= max(self.gap, 1e-9):
            return False
        if solution.status == "closest":
            warn_caller(ConstraintNotMetWarning.from_closest(violation))
            return True
        advice = "Raise `time_limit` of the solver, or its limits in `params`, to get nearer ones."
        if solution.status == "work_limit":
            advice = "The search had not improved for long; a larger `gap` ends it sooner."
        warn_caller(
            f"the projection stopped with status {solution.status!r} at a gap of "
            f"{solution.gap:.2g} (asked: {self.gap:.2g}). Its targets satisfy the constraint. "
            + advice,
            ConvergenceWarning,
        )
        return True

    def _warn_collapse(self, z: np.ndarray) -> None:
        """Warn where a class is nearly lost, to groups of single rows or but for the last row."""
        y, n_classes = self.counted(self._targets.y), self._targets.n_classes
        assert isinstance(self._problem, ClassTargets)
        n_single = self._problem.excessive_groups()
        had, kept = np.bincount(y.astype(int)), np.bincount(z.astype(int), minlength=n_classes)
        lost = np.flatnonzero(kept < had / 2) if n_single else np.empty(0, dtype=int)
        if len(lost):
            parts = [f"{kept[c]} of {had[c]} rows in class {c}" for c in lost]
            warn_caller(
                f"the projection leaves {', '.join(parts)} (of the encoded classes): {n_single} "
                "groups are single rows, whose own rate is 0 or 1, which alone is more than the "
                "bound on the DIDI. Pool rare groups, or raise `threshold`."
            )
            return
        lost = np.flatnonzero((kept == 1) & (had > 1))
        if len(lost):
            fate = "are nearly constant" if n_classes == 2 else "hardly use it"
            warn_caller(
                f"the projection leaves a single row in class {', '.join(map(str, lost))} (of the "
                f"encoded classes): the nearest targets that satisfy the constraint {fate}. Raise "
                "`threshold`, or `target_weight`."
            )


class UnseenProjection(Projection):
    """A projection of predictions for rows that their model has not seen.

    Constraints on some of the rows, and on residuals, mean something here.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets.
    outcomes : Outcomes or None
        The same, as the caller gave them; None where their model has seen the rows after all.
    bounds : tuple of str
        What can be bounded, beside predictions.
    names : list of str, default=None
        Names of the columns of the attribute, an array.
    **options
        Further keywords of :class:`Projection`.
    """

    def __init__(
        self,
        y: np.ndarray,
        *,
        outcomes: Outcomes | None,
        bounds: tuple[str, ...] = (),
        names: list[str] | None = None,
        **options: Any,
    ) -> None:
        self._outcomes, self._names = outcomes, names
        self._bounds = (*type(self)._bounds, *bounds)
        # Estimators have checked these parameters already.
        Projection.__init__.__wrapped__(self, y, **options)


def _check_covariates(conditional_on: Any, n_samples: int) -> np.ndarray | None:
    """Return covariates as numbers (n, p): a category is the indicators of its levels."""
    if conditional_on is None:
        return None
    values = check_attribute(conditional_on, n_samples, kind="mixed", name="conditional_on")
    return AttributeEncoder(values).transform(values) if values.dtype.kind == "O" else values
