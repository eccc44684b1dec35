"""The projection of targets on a constraint: what is fixed during a fit, and one solve."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import type_of_target

from .._validation import (
    HasMethods,
    Interval,
    StrOptions,
    check_labels,
    check_numbers,
    check_random_state,
    check_same_length,
    check_sample_weight,
    check_sensitive,
    validate_params,
)
from ..constraints import AllowedSet, CoarseConstraint, FineConstraint
from ..kernels import FittedKernel, fit_kernel, warn_attribute_scale
from ..metrics._reference import reference_disparity
from . import _gurobi, _highs
from ._binary import BinaryTargets
from ._model import LeastDistance, SolverSession
from ._result import ProjectionResult

__all__ = ["PROJECTION_CONSTRAINTS", "Projection", "project_targets"]

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
# Rounding of real targets, as a share of the constraint's unit.
_REAL_TOLERANCE = 1e-9


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
        Reserved for bounds on real targets.
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
        if loss == "absolute_error" or target_bounds is not None:
            raise NotImplementedError(
                "loss='absolute_error' and target_bounds are reserved; use loss='squared_error' "
                "without bounds."
            )
        built = build_constraint(
            constraint,
            kernel=kernel,
            degree=degree,
            threshold=threshold,
            relative=relative,
            slack=slack,
        )
        self.loss = _resolve_loss(y, loss)
        self.is_binary = self.loss in ("hamming", "log_loss")
        self._encode_targets(y)
        n = len(self._y)
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
        self._resolve_threshold(built, values[self._rows])
        self.gap = gap
        self._start_session(solver, solver_params, random_state, time_limit, verbose)

    def __enter__(self) -> Projection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the solver; safe to call twice."""
        self._session.close()

    def _encode_targets(self, y: Any) -> None:
        """Set the targets as numbers and, for two classes, the labels that 0 and 1 stand for."""
        self.classes_: np.ndarray | None = None
        if not self.is_binary:
            self._y = check_numbers(y, "y", n_columns=1)
            return
        labels = check_labels(y, "y")
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise ValueError(
                f"loss={self.loss!r} needs y with two classes, got {len(self.classes_)}: "
                f"{self.classes_[:5].tolist()}."
            )
        self._y = (labels == self.classes_[1]).astype(float)

    def _encode_predictions(self, y_pred: Any) -> np.ndarray:
        """Return predictions as numbers: real values, or the probability of the second class."""
        if self.classes_ is None:
            p = check_numbers(y_pred, "y_pred", n_columns=1)
        else:
            labels = check_labels(y_pred, "y_pred")
            if np.isin(labels, self.classes_).all():
                if self.loss == "log_loss":
                    raise ValueError(
                        "loss='log_loss' needs probabilities as y_pred, got class labels. Pass "
                        "predict_proba(X)[:, 1], or use loss='hamming'."
                    )
                p = (labels == self.classes_[1]).astype(float)
            else:
                p = check_numbers(labels, "y_pred", n_columns=1)
                if (p < 0).any() or (p > 1).any():
                    raise ValueError(
                        "y_pred must hold the two classes of y "
                        f"({self.classes_.tolist()}) or scores in [0, 1]; got values from "
                        f"{p.min():.3g} to {p.max():.3g}."
                    )
        check_same_length(len(self._y), y_pred=p)
        return p

    def _resolve_threshold(
        self, constraint: CoarseConstraint | FineConstraint, values: np.ndarray
    ) -> None:
        """Turn a relative threshold into an absolute one, and the constraint into its set."""
        y = self._y[self._rows]
        share = self._design.weight
        # The scale on which a threshold of 0 leaves its slack.
        reference = reference_disparity(
            y,
            values,
            kernel=constraint.kernel,
            degree=constraint.degree,
            relative=constraint.relative or True,
            weight=share,
        )
        if constraint.relative and reference == 0:
            raise ValueError(
                "relative=True makes threshold a share of the indicator of y, which is 0 (no "
                "dependence on sensitive_features at that degree). Pass an absolute threshold: "
                "relative=False."
            )
        self.reference_ = reference if constraint.relative else 1.0
        self.threshold_ = constraint.absolute_threshold(self.reference_)
        self.constraint_ = clone(constraint).set_params(threshold=self.threshold_, relative=False)
        deviation = self._design.deviation(y)
        self._allowed: AllowedSet = self.constraint_.allowed_set(
            self.kernel_,
            unit=reference * self.kernel_.scale[0] or deviation,
            integral=self.is_binary,
        )
        tolerance = 0.0 if self.is_binary else 1e-12 * deviation + self._conversion_error(deviation)
        self._tolerance = tolerance + _REAL_TOLERANCE * self._allowed.unit

    def _conversion_error(self, deviation: float) -> float:
        """Return what rounding leaves in v for a target of this deviation."""
        rows = solve_triangular(self.kernel_.R_, self._allowed.rows.T, trans="T").T
        size = float(np.linalg.norm(rows, axis=1).sum())
        return 10 * float(np.finfo(float).eps) * deviation * size

    def _start_session(
        self,
        solver: str,
        solver_params: Mapping[str, Any] | None,
        random_state: Any,
        time_limit: float | None,
        verbose: int,
    ) -> None:
        """Choose the solver, check the names of its parameters, and draw the seeds."""
        params = dict(solver_params or {})
        self.solver = _resolve_solver(solver, params)
        known = {"gurobi": _gurobi.PARAMETERS, "highs": _highs.PARAMETERS}[self.solver]
        unknown = sorted(set(params) - known)
        if unknown:
            raise ValueError(
                f"solver_params holds {unknown}, unknown to solver={self.solver!r}; it takes "
                f"{sorted(known)}."
            )
        rng = check_random_state(_FIXED_SEED if random_state is None else random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self._session: SolverSession
        if self.solver == "gurobi":
            self._session = _gurobi.GurobiSession(params, seed, verbose > 1)
        else:
            self._session = _highs.HighsSession(params, seed, verbose > 1)
        if self.is_binary:
            y = self._y[self._rows]
            self._binary = BinaryTargets(
                self._design,
                self._allowed,
                y,
                self._weight,
                loss=self.loss,
                gap=self.gap,
                tie_order=rng.permutation(len(y)),
                session=self._session,
                time_limit=time_limit,
                description=self._describe(),
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
        return self._design.coefficients(self._encode_any(z)[self._rows])

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
        return self._violation(self._encode_any(z)[self._rows])

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

    def _encode_any(self, z: Any) -> np.ndarray:
        if self.classes_ is None:
            return self._encode_predictions(z)
        labels = check_labels(z, "z")
        check_same_length(len(self._y), z=labels)
        return (labels == self.classes_[1]).astype(float)

    def _violation(self, z: np.ndarray) -> float:
        v = self._allowed.rows @ self._design.standardized(z)
        violation = self._allowed.violation(v)
        return violation if violation > self._tolerance else 0.0

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
        p = None if y_pred is None else self._encode_predictions(y_pred)[self._rows]
        found = self._solve_binary if self.is_binary else self._solve_real
        z, fields = found(p, target_weight)
        targets = self._y.copy()
        targets[self._rows] = z
        violation = self._violation(z)
        result = ProjectionResult(
            targets=targets if self.classes_ is None else self.classes_[targets.astype(int)],
            coefficients=self._design.coefficients(z),
            threshold=self.threshold_,
            violation=violation,
            satisfied=violation == 0.0,
            seconds=time.perf_counter() - started,
            **fields,
        )
        if result.status not in ("optimal", "gap") or result.gap > self.gap:
            warnings.warn(
                f"the projection stopped with status {result.status!r} at a gap of "
                f"{result.gap:.2g} (asked: {self.gap:.2g}). Its targets satisfy the constraint. "
                "Raise `time_limit`, or the limits in `solver_params`, for nearer ones.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return result

    def _solve_real(
        self, p: np.ndarray | None, target_weight: float
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Project the weighted mean of predictions and targets, in k variables."""
        y = self._y[self._rows]
        total = 1.0 if p is None else 1.0 + target_weight
        t = y if p is None else (p + target_weight * y) / total
        kernel, design = self.kernel_, self._design
        point = design.coordinates(t)
        matrix = kernel.R_ @ kernel.basis.from_raw
        start = design.coefficients(t)
        if self._allowed.violation(self._allowed.rows @ kernel.from_raw(start)) == 0.0:
            a, solver, residual = start, "exact", np.zeros(len(start))
            z = t.copy()
        else:
            is_ball = isinstance(self.constraint_, CoarseConstraint)
            a, solver = self._session.solve_distance(
                LeastDistance(
                    matrix,
                    point,
                    self.threshold_ if is_ball else None,
                    None if is_ball else self.constraint_.bounds(kernel),
                )
            )
            residual = matrix @ a - point
            z = t + design.orthonormal @ residual
        objective = float(self._weight @ (z - (y if p is None else p)) ** 2)
        if p is not None:
            objective += target_weight * float(self._weight @ (z - y) ** 2)
        fields = {
            "objective": objective,
            "bound": objective,
            "gap": 0.0,
            "multipliers": 2 * total * self._weight.sum() * (matrix.T @ residual),
            "correction": a - start,
            "status": "optimal",
            "solver": solver,
            "n_variables": kernel.n_columns,
            "n_groups": design.n_rows,
        }
        return z, fields

    def _solve_binary(
        self, p: np.ndarray | None, target_weight: float
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Project 0/1 targets, in one variable a group of equal rows."""
        solution = self._binary.solve(p, target_weight)
        # From multipliers of v = V s to those of α̃ = T s.
        to_raw = self.kernel_.basis.from_raw.T @ self._allowed.rows.T
        fields = {
            "objective": solution.objective,
            "bound": solution.bound,
            "gap": solution.gap,
            "multipliers": to_raw @ solution.multipliers,
            "correction": np.full(self.kernel_.n_columns, np.nan),
            "status": solution.status,
            "solver": self._session.name,
            "n_variables": solution.n_variables,
            "n_groups": solution.n_groups,
        }
        return solution.z, fields


def _resolve_loss(y: Any, loss: str) -> str:
    if loss != "auto":
        return loss
    return "hamming" if type_of_target(np.asarray(y)) == "binary" else "squared_error"


def _resolve_solver(solver: str, params: Mapping[str, Any]) -> str:
    """Return "gurobi" or "highs"; "auto" asks for a licence of the user's own."""
    if solver != "auto":
        return solver
    available = _gurobi.licence_is_configured(params) and find_spec("gurobipy") is not None
    return "gurobi" if available else "highs"


@validate_params(
    {
        "target_weight": [Interval(Real, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def project_targets(
    y: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    constraint: Any = "coarse",
    kernel: Any = "polynomial",
    degree: int = 1,
    threshold: Any = 0.2,
    relative: bool | int = True,
    target_weight: float = 1.0,
    loss: str = "auto",
    slack: float = 1e-3,
    gap: float = 5e-5,
    target_bounds: Any = None,
    sample_weight: Any = None,
    solver: str = "auto",
    solver_params: Mapping[str, Any] | None = None,
    time_limit: float | None = 60.0,
    random_state: Any = None,
) -> ProjectionResult:
    r"""Return the nearest targets whose dependence on an attribute is within a bound.

    Solves, exactly or to a proven gap,

    .. math:: \min_z\; L(z, \hat y) + w L(z, y) \quad\text{s.t.}\quad \tilde\alpha(z) \in C

    or min L(z, y) where no predictions are given: pre-processing.

    Parameters
    ----------
    y : array-like of shape (n,)
        Original targets: real numbers, or two classes of any label.
    y_pred : array-like of shape (n,), default=None
        Predictions ŷ: real values; labels or probabilities of the second class.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute(s).
    constraint : {"coarse", "fine"}, CoarseConstraint or FineConstraint, default="coarse"
        The set C: "coarse" bounds ‖α̃‖₁, "fine" each coefficient. An object carries kernel,
        degree, threshold, relative and slack itself.
    kernel : {"polynomial", "fourier"}, transformer or callable, default="polynomial"
        The functions of the attribute whose influence is bounded.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    threshold : float or array-like of shape (k,), default=0.2
        The bound, at least 0; inf allows everything. For "fine" a number bounds the first
        coefficient and forbids the others, an array bounds each.
    relative : bool or int, default=True
        Whether the bound is a share of the indicator of `y` (of degree 1, or of the given one).
    target_weight : float, default=1.0
        Weight w of the original targets beside predictions.
    loss : {"auto", "squared_error", "absolute_error", "hamming", "log_loss"}, default="auto"
        Distance L between targets. "auto" is "hamming" for two classes, else "squared_error".
    slack : float, default=1e-3
        What a forbidden direction may keep, for two classes and fine constraints.
    gap : float, default=5e-5
        (objective − bound) / Σ w_i|c_i| to be content with, for two classes; 0 asks for the
        optimum.
    target_bounds : tuple of (float or None, float or None), default=None
        Reserved for bounds on real targets.
    sample_weight : array-like of shape (n,), default=None
        Weights of the rows. A row of weight 0 is as if absent and keeps its original target.
    solver : {"auto", "gurobi", "highs"}, default="auto"
        "auto" is exact where there is a closed form, else Gurobi where a licence of the user's
        own is configured, else HiGHS.
    solver_params : dict, default=None
        Parameters of the solver, in its own names.
    time_limit : float or None, default=60.0
        Seconds for the solve.
    random_state : int, RandomState or None, default=None
        Which of equal rows flip, and the solver's seed. None is a fixed seed.

    Returns
    -------
    ProjectionResult
        Targets, coefficients, objective, bound and more.

    Raises
    ------
    ValueError
        If an input is malformed, or a relative threshold meets a reference of 0.
    InfeasibleProjectionError
        If no targets satisfy the constraint.
    SolverError
        If the solver failed; SolverLimitError where a limit left no solution.

    Notes
    -----
    Source: Giuliani, Misino and Lombardi (2023), section 4, "Fairness Constraints", and the
    master step of appendix C.3.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import project_targets
    >>> age = np.array([20.0, 30.0, 40.0, 50.0, 60.0])
    >>> pay = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> project_targets(pay, sensitive_features=age, threshold=0.5).targets
    array([2. , 2.5, 3. , 3.5, 4. ])
    >>> project_targets([0, 0, 1, 1, 1], sensitive_features=age, threshold=0.0).targets
    array([0, 0, 1, 0, 0])
    """
    with Projection(
        y,
        sensitive_features=sensitive_features,
        constraint=constraint,
        kernel=kernel,
        degree=degree,
        threshold=threshold,
        relative=relative,
        loss=loss,
        slack=slack,
        gap=gap,
        target_bounds=target_bounds,
        sample_weight=sample_weight,
        solver=solver,
        solver_params=solver_params,
        time_limit=time_limit,
        random_state=random_state,
    ) as projection:
        return projection.solve(y_pred, target_weight)
