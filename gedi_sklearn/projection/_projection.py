"""The projection of targets on a constraint: what is fixed during a fit, and one solve."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._validation import Interval, check_random_state, named_in_errors, validate_params
from ..exceptions import IllConditionedKernelWarning, warn_caller
from ._binary import BinaryTargets
from ._blind import blind_correction, score_shift
from ._constrained import ConstrainedTargets
from ._multiclass import MultiClassTargets
from ._parameters import PROJECTION_CONSTRAINTS
from ._problem import class_problem, real_problem
from ._result import ProjectionResult
from ._session import open_session
from ._targets import Targets, check_bounds

__all__ = ["Projection"]

# Where no seed is given, ties and solvers still use a fixed one: a fit with a deterministic
# learner is deterministic.
_FIXED_SEED = 0


class Projection(ConstrainedTargets):
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
    constraint : {"coarse", "fine", "didi"}, constraint object or list, default="coarse"
        What is bounded; an object carries kernel, degree, threshold, relative and slack itself.
        A list holds one for each attribute, all of which are satisfied at once.
    kernel : {"polynomial", "fourier"}, transformer or callable, default="polynomial"
        The functions of the attribute whose influence is bounded.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    threshold : float or array-like of shape (k,), default=0.2
        The bound, see :class:`CoarseConstraint` and :class:`FineConstraint`.
    relative : bool or int, default=True
        Whether the bound is a share of the indicator of `y` (of degree 1, or of the given one).
    loss : {"auto", "squared_error", "absolute_error", "hamming", "log_loss"}, default="auto"
        Distance between targets. "auto" is "hamming" for two classes and for text, else
        "squared_error".
    slack : float, default=1e-3
        What a forbidden direction may keep, for two classes and fine constraints.
    gap : float, default=5e-5
        (objective − bound) / Σ w_i|c_i| to be content with, for two classes; 0 asks for the
        optimum.
    target_bounds : tuple of (float or None, float or None), default=None
        Lowest and highest value of real targets, None for no end: (0, None) keeps counts and
        rates valid. `y` must lie between them.
    conditional_on : array-like of shape (n,) or (n, p), default=None
        What the targets may depend on: the bounded coefficients are those of the kernel beside
        these covariates, as in :func:`gedi_sklearn.metrics.gedi`.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows. A row of weight 0 is as if absent and keeps its original target.
    solver : {"auto", "gurobi", "highs"}, default="auto"
        "auto" is exact where there is a closed form, else Gurobi where a licence of the user's
        own is configured, else HiGHS.
    solver_params : dict, default=None
        Parameters of the solver, in its own names.
    time_limit : float or None, default=60.0
        Seconds for one solve.
    random_state : int, RandomState or None, default=None
        Which of equal rows flip, and the solver's seed. None is a fixed seed.
    verbose : int, default=0
        Above 1 the solver prints its log.

    Attributes
    ----------
    kernel_ : FittedKernel
        The kernel, without any row.
    constraint_ : CoarseConstraint or FineConstraint
        The constraint with its absolute threshold.
    threshold_ : float or ndarray of shape (k,)
        The absolute threshold.
    reference_ : float
        The indicator of `y` that a relative threshold is a share of; 1.0 for an absolute one.

    These four are lists where `constraint` is one.

    Raises
    ------
    ValueError
        If an input is malformed, or a relative threshold meets a reference of 0.
    RankDeficientKernelError
        If the kernel's columns are dependent on these rows (rank 0: a constant attribute).

    See Also
    --------
    project_targets : One projection, as a function.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import Projection
    >>> x = np.linspace(-1, 1, 9)
    >>> with Projection(3 * x, sensitive_features=x, threshold=0.5) as projection:
    ...     near = projection.solve(y_pred=2 * x)
    >>> round(projection.gedi(near.targets), 6)
    1.5
    """

    @validate_params(
        {
            "y": ["array-like"],
            "sample_weight": ["array-like", Interval(Real, 0, None, closed="neither"), None],
            "verbose": ["verbose"],
            **PROJECTION_CONSTRAINTS,
        },
        prefer_skip_nested_validation=True,
    )
    @named_in_errors("Projection")
    def __init__(
        self,
        y: Any,
        *,
        sensitive_features: Any,
        constraint: Any = "coarse",
        kernel: Any = "polynomial",
        degree: int = 1,
        threshold: Any = 0.2,
        relative: bool | int = True,
        loss: str = "auto",
        slack: float = 1e-3,
        gap: float = 5e-5,
        target_bounds: Any = None,
        conditional_on: Any = None,
        sample_weight: Any = None,
        solver: str = "auto",
        solver_params: Mapping[str, Any] | None = None,
        time_limit: float | None = 60.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        carried = {
            "kernel": kernel,
            "degree": degree,
            "threshold": threshold,
            "relative": relative,
            "slack": slack,
        }
        targets = Targets(y, loss)
        self._target_bounds = check_bounds(target_bounds, targets)
        super().__init__(
            targets,
            constraint=constraint,
            sensitive_features=sensitive_features,
            conditional_on=conditional_on,
            sample_weight=sample_weight,
            **carried,
        )
        self.gap = gap
        self._time_limit = time_limit
        # Ties and the solver draw from the same stream.
        rng = check_random_state(_FIXED_SEED if random_state is None else random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self._tie_order = rng.permutation(len(self._weight)).astype(np.int32)
        self._session = open_session(solver, solver_params, seed, verbose > 1)
        self._problem = self._make_problem()

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
        if self._is_list:
            raise ValueError(
                "a list of constraints has no single threshold to change; build another Projection."
            )
        other = copy.copy(self)
        other._constraints = [self._constraints[0].at(threshold)]
        other._problem = other._make_problem()
        return other

    def solve(self, y_pred: Any = None, target_weight: float = 1.0) -> ProjectionResult:
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
            If no targets satisfy the constraint.
        SolverLimitError
            If a limit was reached before any solution was found.
        SolverError
            If the solver failed.

        Warns
        -----
        ConvergenceWarning
            If a limit stopped the solver: the targets satisfy the constraint, with the reported
            gap to the nearest ones.
        """
        if not np.isfinite(target_weight) or target_weight < 0:
            raise ValueError(f"target_weight must be finite and at least 0, got {target_weight}.")
        started = time.perf_counter()
        p = None if y_pred is None else self._targets.encode_predictions(y_pred)[self._rows]
        solution = self._problem.solve(p, target_weight)
        targets = self._targets.y.copy()
        targets[self._rows] = solution.z
        violation = self._violation(solution.z)
        if violation > 0:
            warn_caller(IllConditionedKernelWarning.from_violation(violation))
        if solution.status not in ("optimal", "gap") or solution.gap > max(self.gap, 1e-9):
            self._warn_early_stop(solution.status, solution.gap)
        return ProjectionResult(
            targets=self._targets.decode(targets),
            coefficients=self._coefficients(solution.z),
            threshold=self.threshold_,
            violation=violation,
            satisfied=violation == 0.0,
            objective=solution.objective,
            bound=solution.bound,
            gap=solution.gap,
            multipliers=solution.multipliers,
            correction=solution.correction,
            status=solution.status,
            solver=solution.solver,
            n_variables=solution.n_variables,
            n_groups=solution.n_groups,
            seconds=time.perf_counter() - started,
        )

    def _make_problem(self) -> Any:
        """Return the problem that the loss and the targets make, solved by every `solve`."""
        if self.is_classification:
            return self._class_problem(self._constraints)
        return real_problem(
            self._constraints,
            y=self._targets.y[self._rows],
            weight=self._weight,
            loss=self.loss,
            target_bounds=self._target_bounds,
            is_list=self._is_list,
            session=self._session,
        )

    def _class_problem(self, bounds: list[Any]) -> BinaryTargets | MultiClassTargets:
        """Return the problem of classes under constraints on the rows."""
        return class_problem(
            bounds,
            n_classes=self._targets.n_classes,
            y=self._targets.y[self._rows],
            weight=self._weight,
            loss=self.loss,
            gap=self.gap,
            tie_order=self._tie_order,
            session=self._session,
            time_limit=self._time_limit,
        )

    def blind_correction(self, p: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Return the β of least ‖Mβ‖ with p + Mβ allowed, for real targets.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Predictions.
        expected : ndarray of shape (n, k)
            M = E[F̃ | X].

        Returns
        -------
        ndarray of shape (k,)
        """
        (own,) = self._constraints
        return blind_correction(own, p[self._rows], expected[self._rows])

    def score_shift(self, p: np.ndarray, expected: np.ndarray | None, share: float) -> np.ndarray:
        """Return β such that 1 where p + F̃β > ½ solves the relaxation, for two classes.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Probabilities.
        expected : ndarray of shape (n, k) or None
            E[F̃ | X] in the place of F̃, for a rule that does not see the attribute.
        share : float
            Share of the threshold that may be used.

        Returns
        -------
        ndarray of shape (k,)
        """
        (own,) = self._constraints
        expected = None if expected is None else expected[self._rows]
        return score_shift(
            own,
            p[self._rows],
            expected,
            share,
            make_problem=lambda bound: self._class_problem([bound]),
            total_weight=self._weight.sum(),
        )

    def moved_targets(self, change: np.ndarray) -> np.ndarray:
        """Return the original real targets plus a change of the rows that count, within bounds.

        Parameters
        ----------
        change : ndarray of shape (rows that count,)
            What is added.

        Returns
        -------
        ndarray of shape (n,)
        """
        targets = self._targets.y.copy()
        targets[self._rows] += change
        if self._target_bounds is not None:
            targets[self._rows] = np.clip(targets[self._rows], *self._target_bounds)
        return targets

    def relaxed_labels(self, p: np.ndarray, offset: np.ndarray) -> np.ndarray | None:
        """Return the labels that the relaxation gives to scores, for two classes.

        Parameters as for :meth:`BinaryTargets.relaxed_labels`, p for all rows.

        Returns
        -------
        ndarray of shape (n,) or None
            0 or 1; the original target of rows of zero weight. None where there are none.
        """
        assert isinstance(self._problem, BinaryTargets)  # asked for two classes only
        counted = self._problem.relaxed_labels(p[self._rows], offset)
        if counted is None:
            return None
        labels = self._targets.y.copy()
        labels[self._rows] = counted
        return labels

    def _warn_early_stop(self, status: str, gap: float) -> None:
        warn_caller(
            f"the projection stopped with status {status!r} at a gap of {gap:.2g} (asked: "
            f"{self.gap:.2g}). Its targets satisfy the constraint. Raise `time_limit`, or the "
            "limits in `solver_params`, for nearer ones.",
            ConvergenceWarning,
        )
