"""The projection of targets on a constraint: what is fixed during a fit, and one solve."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._validation import (
    HasMethods,
    Interval,
    StrOptions,
    check_random_state,
    check_sample_weight,
    check_sensitive,
    validate_params,
)
from ..constraints import AllowedSet, CoarseConstraint, FineConstraint
from ..exceptions import IllConditionedKernelWarning
from ..kernels import FittedKernel, fit_kernel, warn_attribute_scale
from ..metrics._reference import reference_disparity
from ._absolute import AbsoluteLoss
from ._binary import VIOLATION_TOLERANCE, BinaryTargets
from ._bounded import BoundedSquaredLoss
from ._real import SquaredLoss
from ._result import ProjectionResult
from ._session import open_session
from ._targets import BINARY_LOSSES, Targets, check_bounds

__all__ = ["PROJECTION_CONSTRAINTS", "Projection"]

# The declared ranges of the parameters, shared with the estimators that pass them on.
PROJECTION_CONSTRAINTS: dict[str, list[Any]] = {
    "constraint": [StrOptions({"coarse", "fine"}), CoarseConstraint, FineConstraint],
    "kernel": [StrOptions({"polynomial", "fourier"}), HasMethods(["transform"]), callable],
    "degree": [Interval(Integral, 1, None, closed="left")],
    "threshold": [Interval(Real, 0, np.inf, closed="both"), "array-like"],
    "relative": ["boolean", Interval(Integral, 1, None, closed="left")],
    "loss": [StrOptions({"auto", "squared_error", "absolute_error", "hamming", "log_loss"})],
    "slack": [Interval(Real, 0, 1, closed="both")],
    "gap": [Interval(Real, 0, 1, closed="left")],
    "target_bounds": [tuple, list, None],
    "solver": [StrOptions({"auto", "gurobi", "highs"})],
    "solver_params": [Mapping, None],
    "time_limit": [Interval(Real, 0, None, closed="neither"), None],
    "random_state": ["random_state"],
}
# Parameters that a constraint object carries itself, with their defaults here.
_CARRIED = {"kernel": "polynomial", "degree": 1, "threshold": 0.2, "relative": True, "slack": 1e-3}
# Where no seed is given, ties and solvers still use a fixed one: a fit with a deterministic
# learner is deterministic.
_FIXED_SEED = 0


def build_constraint(constraint: Any, **carried: Any) -> CoarseConstraint | FineConstraint:
    """Return a constraint object from the `constraint` parameter and those beside it.

    Raises
    ------
    ValueError
        If an object is given together with a parameter that it carries itself, or a parameter
        is out of its range.
    """
    if isinstance(constraint, str):
        kind = {"coarse": CoarseConstraint, "fine": FineConstraint}[constraint]
        names = kind._get_param_names()
        built = kind(**{name: carried[name] for name in names})
    else:
        for name, default in _CARRIED.items():
            value = carried[name]
            if not (isinstance(value, type(default)) and value == default):
                raise ValueError(
                    f"{name}={value!r} was given beside constraint={constraint!r}, which carries "
                    f"its own. Set {name} on the constraint object only."
                )
        built = clone(constraint)
    built.validate()
    return built


class Projection:
    r"""Repeated projection of targets on one constraint.

    Holds what is fixed during a fit: the kernel on the rows, the constraint with its absolute
    threshold, the original targets, the weights, the solver. A context manager: the solver's
    environment is released at its end, on every path.

    Parameters
    ----------
    y : array-like of shape (n,)
        Original targets: real numbers, or two classes of any label.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute(s).
    constraint : {"coarse", "fine"}, CoarseConstraint or FineConstraint, default="coarse"
        What is bounded; an object carries kernel, degree, threshold, relative and slack itself.
    kernel : {"polynomial", "fourier"}, transformer or callable, default="polynomial"
        The functions of the attribute whose influence is bounded.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    threshold : float or array-like of shape (k,), default=0.2
        The bound, see :class:`CoarseConstraint` and :class:`FineConstraint`.
    relative : bool or int, default=True
        Whether the bound is a share of the indicator of `y` (of degree 1, or of the given one).
    loss : {"auto", "squared_error", "absolute_error", "hamming", "log_loss"}, default="auto"
        Distance between targets. "auto" is "hamming" for two classes, else "squared_error".
    slack : float, default=1e-3
        What a forbidden direction may keep, for two classes and fine constraints.
    gap : float, default=5e-5
        (objective − bound) / Σ w_i|c_i| to be content with, for two classes; 0 asks for the
        optimum.
    target_bounds : tuple of (float or None, float or None), default=None
        Lowest and highest value of real targets, None for no end: (0, None) keeps counts and
        rates valid. `y` must lie between them.
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
        sample_weight: Any = None,
        solver: str = "auto",
        solver_params: Mapping[str, Any] | None = None,
        time_limit: float | None = 60.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        built = build_constraint(
            constraint,
            kernel=kernel,
            degree=degree,
            threshold=threshold,
            relative=relative,
            slack=slack,
        )
        self._targets = Targets(y, loss)
        self.loss = self._targets.loss
        self._bounds = check_bounds(target_bounds, self._targets)
        n = len(self._targets.y)
        values = check_sensitive(sensitive_features, n_samples=n)
        weight = check_sample_weight(sample_weight, n)
        self._rows = slice(None) if weight is None else weight > 0
        self._weight = np.ones(n) if weight is None else weight[self._rows]
        self._design = fit_kernel(
            built.kernel,
            values[self._rows],
            degree=built.degree,
            weight=None if weight is None else self._weight,
        )
        warn_attribute_scale(self._design)
        self.kernel_: FittedKernel = self._design.fitted
        self.gap = gap
        self._time_limit = time_limit
        # Ties and the solver draw from the same stream.
        rng = check_random_state(_FIXED_SEED if random_state is None else random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self._tie_order = rng.permutation(self._design.n_rows)
        self._find_reference(built, values[self._rows])
        self._session = open_session(solver, solver_params, seed, verbose > 1)
        self._set_constraint(built)

    def __enter__(self) -> Projection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the solver; safe to call twice."""
        self._session.close()

    @property
    def is_binary(self) -> bool:
        """Whether the targets are two classes."""
        return self.loss in BINARY_LOSSES

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
        other = copy.copy(self)
        constraint = clone(self._given).set_params(threshold=threshold)
        constraint.validate()
        other._set_constraint(constraint)
        return other

    def _find_reference(
        self, constraint: CoarseConstraint | FineConstraint, values: np.ndarray
    ) -> None:
        """Measure the original targets: what a relative threshold is a share of.

        An absolute threshold of 0 leaves its slack on that scale too.
        """
        self._disparity = reference_disparity(
            self._targets.y[self._rows],
            values,
            kernel=constraint.kernel,
            degree=constraint.degree,
            relative=constraint.relative or True,
            weight=self._design.weight,
        )
        if constraint.relative and self._disparity == 0:
            raise ValueError(
                "relative=True makes threshold a share of the indicator of y, which is 0 (no "
                "dependence on sensitive_features at that degree). Pass an absolute threshold: "
                "relative=False."
            )
        self.reference_ = self._disparity if constraint.relative else 1.0

    def _set_constraint(self, constraint: CoarseConstraint | FineConstraint) -> None:
        """Turn the threshold into an absolute one, the constraint into its set and problem."""
        self._given = constraint
        self.threshold_ = constraint.absolute_threshold(self.reference_)
        self.constraint_ = clone(constraint).set_params(threshold=self.threshold_, relative=False)
        deviation = self._design.deviation(self._targets.y[self._rows])
        self._allowed: AllowedSet = self.constraint_.allowed_set(
            self.kernel_,
            unit=self._disparity * self.kernel_.scale[0] or deviation,
            integral=self.is_binary,
        )
        self._problem = self._make_problem()
        # What rounding leaves in v, for targets of size 1.
        rows = self._allowed.rows @ self.kernel_.R_inverse
        self._rounding = 10 * float(np.finfo(float).eps * np.linalg.norm(rows, axis=1).sum())

    def _make_problem(self) -> BinaryTargets | SquaredLoss | AbsoluteLoss:
        """Return the problem that the loss and the targets make, solved by every `solve`."""
        y = self._targets.y[self._rows]
        shared: dict[str, Any] = {"y": y, "weight": self._weight}
        if self.is_binary:
            return BinaryTargets(
                self._design,
                self._allowed,
                loss=self.loss,
                gap=self.gap,
                tie_order=self._tie_order,
                session=self._session,
                time_limit=self._time_limit,
                description=self._describe(),
                **shared,
            )
        if self.loss == "absolute_error":
            return AbsoluteLoss(self._design, self._allowed, target_bounds=self._bounds, **shared)
        is_ball = isinstance(self.constraint_, CoarseConstraint)
        raw = (
            self.threshold_ if is_ball else None,
            None if is_ball else self.constraint_.bounds(self.kernel_),
        )
        shared["session"] = self._session
        if self._bounds is None:
            return SquaredLoss(self._design, self._allowed, *raw, **shared)
        return BoundedSquaredLoss(
            self._design, self._allowed, *raw, target_bounds=self._bounds, **shared
        )

    def _describe(self) -> dict[str, Any]:
        return {
            "constraint": "fine" if isinstance(self.constraint_, FineConstraint) else "coarse",
            "n_rows": self._design.n_rows,
            "n_columns": self.kernel_.n_columns,
            "threshold": self.threshold_,
            "slack": getattr(self.constraint_, "slack", 0.0),
        }

    def coefficients(self, z: Any) -> np.ndarray:
        """Return α̃ of targets, shape (k,).

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels of the two classes.

        Returns
        -------
        ndarray of shape (k,)
        """
        return self._design.coefficients(self._targets.encode(z)[self._rows])

    def gedi(self, z: Any) -> float:
        """Return ‖α̃(z)‖₁.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels of the two classes.

        Returns
        -------
        float
        """
        return float(np.abs(self.coefficients(z)).sum())

    def violation(self, z: Any) -> float:
        """Return by how much targets miss the constraint, 0 within rounding.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels of the two classes.

        Returns
        -------
        float
        """
        return self._violation(self._targets.encode(z)[self._rows])

    def satisfied(self, z: Any) -> bool:
        """Tell whether targets satisfy the constraint within rounding.

        Parameters
        ----------
        z : array-like of shape (n,)
            Real targets, or labels of the two classes.

        Returns
        -------
        bool
        """
        return self.violation(z) == 0.0

    def _violation(self, z: np.ndarray) -> float:
        v = self._allowed.rows @ self._design.standardized(z)
        violation = self._allowed.violation(v)
        tolerance = VIOLATION_TOLERANCE * self._allowed.unit + self._rounding * float(
            np.abs(z).max()
        )
        return violation if violation > tolerance else 0.0

    def solve(self, y_pred: Any = None, target_weight: float = 1.0) -> ProjectionResult:
        r"""Return the nearest targets that satisfy the constraint.

        Minimises loss(z, y_pred) + target_weight · loss(z, y), or loss(z, y) where there are no
        predictions.

        Parameters
        ----------
        y_pred : array-like of shape (n,), default=None
            Predictions: real values; labels or probabilities of the second class.
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
            warnings.warn(IllConditionedKernelWarning.from_violation(violation), stacklevel=2)
        if solution.status not in ("optimal", "gap") or solution.gap > max(self.gap, 1e-9):
            self._warn_early_stop(solution.status, solution.gap)
        return ProjectionResult(
            targets=self._targets.decode(targets),
            coefficients=self._design.coefficients(solution.z),
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

    def _warn_early_stop(self, status: str, gap: float) -> None:
        warnings.warn(
            f"the projection stopped with status {status!r} at a gap of {gap:.2g} (asked: "
            f"{self.gap:.2g}). Its targets satisfy the constraint. Raise `time_limit`, or the "
            "limits in `solver_params`, for nearer ones.",
            ConvergenceWarning,
            stacklevel=3,
        )
