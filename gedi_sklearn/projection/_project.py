"""The projection as functions: one, and one for every threshold of a path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from .._validation import Interval, validate_params
from ._projection import Projection
from ._result import ProjectionResult

# Shares of the unconstrained indicator that a path without thresholds takes.
_DEFAULT_SHARES = np.linspace(1.0, 0.0, 21)


@validate_params(
    {
        "target_weight": [Interval(Real, 0, None, closed="left")],
    },
    # The constructor of Projection checks the rest.
    prefer_skip_nested_validation=False,
)
def project_targets(
    y: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    constraint: Any = "coarse",
    kernel: Any = "polynomial",
    degree: int = 1,
    norm: str = "l1",
    threshold: Any = 0.2,
    relative: bool | int = True,
    target_weight: float = 1.0,
    loss: str = "auto",
    slack: float = 1e-3,
    gap: float | str = "auto",
    target_bounds: Any = None,
    conditional_on: Any = None,
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
        Original targets: real numbers, or classes of any label. For more than two, every
        class's 0/1 column, one against the rest, satisfies the constraint.
    y_pred : array-like of shape (n,), default=None
        Predictions ŷ: real values; labels or probabilities, of the second of two classes or of
        all, shape (n, K).
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute(s), numbers or categories.
    constraint : {"coarse", "fine", "didi"}, constraint object or list, default="coarse"
        The set C: "coarse" bounds ‖α̃‖₁, "fine" each coefficient, "didi" the disparity of groups.
        An object carries kernel, degree, threshold, relative and slack itself. A list holds one
        for each attribute, all of which are satisfied at once.
    kernel : {"polynomial", "fourier", "spline"}, transformer or callable, default="polynomial"
        The functions of the attribute whose influence is bounded.
    degree : int, default=1
        Degree (order) of a kernel given by name.
    norm : {"l1", "sd"}, default="l1"
        What "coarse" bounds: ‖α̃‖₁, or the deviation of y that the attribute explains, in units
        of y; see :class:`CoarseConstraint`.
    threshold : float or array-like of shape (k,), default=0.2
        The bound, at least 0; inf allows everything. For "fine" a number bounds the first
        coefficient and forbids the others, an array bounds each.
    relative : bool or int, default=True
        Whether the bound is a share of the indicator of `y` (of degree 1, or of the given one).
    target_weight : float, default=1.0
        Weight w of the original targets beside predictions.
    loss : {"auto", "squared_error", "absolute_error", "hamming", "log_loss"}, default="auto"
        Distance L between targets. "auto" is "hamming" for two classes and for text, else
        "squared_error".
    slack : float, default=1e-3
        What a forbidden direction may keep, for two classes and fine constraints.
    gap : "auto" or float, default="auto"
        (objective − bound) / Σ w_i|c_i| that is asked for, for classes; 0 asks for the
        optimum. "auto" is one flip of an average row, 1/n, and 5e-5 from 20,000 rows on.
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
        Seconds for the solve, as in :class:`Projection`.
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
    master step of the appendix, "Constrained Approaches Descriptions".

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import project_targets
    >>> age = np.array([20.0, 30.0, 40.0, 50.0, 60.0])
    >>> pay = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> project_targets(pay, sensitive_features=age, threshold=0.5).targets
    array([2. , 2.5, 3. , 3.5, 4. ])
    >>> age, hired = np.arange(20, 61, 5), np.array([0, 0, 1, 0, 1, 1, 0, 1, 1])
    >>> project_targets(hired, sensitive_features=age, threshold=0.2).targets
    array([1, 1, 1, 0, 1, 1, 0, 1, 1])
    """
    with Projection(
        y,
        sensitive_features=sensitive_features,
        constraint=constraint,
        kernel=kernel,
        degree=degree,
        norm=norm,
        threshold=threshold,
        relative=relative,
        loss=loss,
        slack=slack,
        gap=gap,
        target_bounds=target_bounds,
        conditional_on=conditional_on,
        sample_weight=sample_weight,
        solver=solver,
        solver_params=solver_params,
        time_limit=time_limit,
        random_state=random_state,
    ) as projection:
        result = projection.solve(y_pred, target_weight)
        verdict = projection.verdict(result.targets)
    if verdict is not None:
        verdict.warn()
    return replace(result, verdict=verdict)


@dataclass(frozen=True)
class ProjectionPath:
    r"""One projection for each threshold.

    Attributes
    ----------
    thresholds : ndarray of shape (m,) or (m, k)
        As given: shares of the reference where `relative`, else absolute.
    objective, bound, gap : ndarray of shape (m,)
        Loss of the targets, its proven lower bound, and their relative distance.
    coefficients : ndarray of shape (m, k)
        :math:`\tilde\alpha` of the targets.
    gedi : ndarray of shape (m,)
        Their indicator, ‖α̃‖₁.
    satisfied : ndarray of shape (m,), bool
        Whether the targets satisfy their threshold.
    status : ndarray of shape (m,), str
        Why the solver stopped.
    targets : ndarray of shape (m, n) or None
        The targets, where they were asked for.

    Examples
    --------
    >>> from gedi_sklearn import projection_path
    >>> path = projection_path([1.0, 2.0, 4.0], sensitive_features=[0, 1, 2], thresholds=[1, 0.5])
    >>> path.gedi
    array([1.5 , 0.75])
    """

    thresholds: np.ndarray
    objective: np.ndarray
    bound: np.ndarray
    gap: np.ndarray
    coefficients: np.ndarray
    gedi: np.ndarray
    satisfied: np.ndarray
    status: np.ndarray
    targets: np.ndarray | None


def projection_path(
    y: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    thresholds: Iterable[Any] | None = None,
    target_weight: float = 1.0,
    return_targets: bool = False,
    **projection: Any,
) -> ProjectionPath:
    r"""Project targets for every threshold of a path: the cost of every degree of fairness.

    The kernel, its factorisation and the solver are set up once. With the same targets and
    weights a smaller threshold never has a smaller loss, beyond the gaps.

    Parameters
    ----------
    y : array-like of shape (n,)
        Original targets: real numbers, or two classes of any label.
    y_pred : array-like of shape (n,), default=None
        Predictions; see :func:`project_targets`.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute(s).
    thresholds : iterable of float or array-like of shape (k,), default=None
        The path. None takes equal steps of a twentieth from the indicator of the unconstrained
        optimum down to 0 (two classes: to a tenth).
    target_weight : float, default=1.0
        Weight of the original targets beside predictions.
    return_targets : bool, default=False
        Whether to keep the targets of every threshold.
    **projection : dict
        Further keywords of :class:`Projection`: constraint, kernel, degree, relative, loss,
        slack, gap, target_bounds, sample_weight, solver, solver_params, time_limit,
        random_state. `constraint` is given by name, since the path sets its threshold.

    Returns
    -------
    ProjectionPath

    Raises
    ------
    ValueError
        If `threshold` is among the keywords, or an input is malformed.
    InfeasibleProjectionError, SolverError
        As :func:`project_targets` does for one of the thresholds.

    See Also
    --------
    project_targets : One threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import projection_path
    >>> x = np.linspace(-1, 1, 9)
    >>> path = projection_path(2 * x, sensitive_features=x, thresholds=[1.0, 0.5, 0.0])
    >>> path.gedi.round(6), path.objective.round(3)
    (array([2., 1., 0.]), array([ 0.  ,  3.75, 15.  ]))
    """
    if "threshold" in projection:
        raise ValueError("projection_path takes `thresholds`, the whole path, and no `threshold`.")
    if not isinstance(projection.get("constraint", "coarse"), str):
        raise ValueError(
            "constraint must be 'coarse' or 'fine' here, since the path sets its threshold; got "
            f"{projection['constraint']!r}."
        )
    with Projection(
        y, sensitive_features=sensitive_features, threshold=0.0, **projection
    ) as problem:
        if thresholds is None:
            bounds_each = getattr(problem.constraint_, "bounds_each", False)
            everything = np.full(problem.kernel_.n_columns, np.inf) if bounds_each else np.inf
            free = problem.at(everything).solve(y_pred, target_weight)
            # Whole rows hardly ever cancel exactly: a path of two classes stops short of 0.
            shares = _DEFAULT_SHARES[:-2] if problem.is_classification else _DEFAULT_SHARES
            thresholds = problem.gedi(free.targets) / problem.reference_ * shares
        steps = list(thresholds) if np.iterable(thresholds) else []
        if not steps:
            raise ValueError(
                f"thresholds must hold at least one threshold, or be None; got {thresholds!r}."
            )
        results = [problem.at(step).solve(y_pred, target_weight) for step in steps]
    return ProjectionPath(
        thresholds=np.asarray(steps, dtype=float),
        objective=np.array([result.objective for result in results]),
        bound=np.array([result.bound for result in results]),
        gap=np.array([result.gap for result in results]),
        coefficients=np.array([result.coefficients for result in results]),
        gedi=np.array([problem.gedi(result.targets) for result in results]),
        satisfied=np.array([result.satisfied for result in results]),
        status=np.array([result.status for result in results]),
        targets=np.array([result.targets for result in results]) if return_targets else None,
    )
