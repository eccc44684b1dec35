"""The projection as functions: one, and one for every threshold of a path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from .._validation import Interval, validate_params
from ..constraints import check_constraint
from ._projection import Projection
from ._result import ProjectionResult

# Shares of the unconstrained indicator that a path without thresholds takes.
_DEFAULT_SHARES = np.linspace(1.0, 0.0, 21)


@validate_params(
    {"target_weight": [Interval(Real, 0, None, closed="left")]},
    # The constructor of Projection checks the rest.
    prefer_skip_nested_validation=False,
)
def project_targets(
    y: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    constraint: Any = None,
    loss: str = "auto",
    target_weight: float = 1.0,
    target_bounds: Any = None,
    conditional_on: Any = None,
    sample_weight: Any = None,
    solver: Any = "auto",
    random_state: Any = None,
) -> ProjectionResult:
    r"""Return the nearest targets whose dependence on an attribute is within a bound.

    Solves, exactly or to a proven gap,

    .. math:: \min_z\; L(z, \hat y) + w L(z, y) \quad\text{s.t.}\quad v(z) \in C

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
    constraint : constraint object, ConstraintList or list, default=None
        What is bounded, the set C; None is ``DependenceConstraint()``. A list holds one constraint
        for each attribute, all of which are met at once.
    loss : {"auto", "squared_error", "absolute_error", "kl", "hamming", "log_loss"}, default="auto"
        Distance L between targets. "auto" is "hamming" for two classes and for text, else
        "squared_error". "kl" is (1 + w) Σ z log(z/t) − z + t against t = (ŷ + w y)/(1 + w), or the
        sum against y without predictions, for targets of at least 0 and positive predictions:
        every target is multiplied, by exp(ν + Q(x)c), and their mean is kept. A t of 0 stays 0.
    target_weight : float, default=1.0
        Weight w of the original targets beside predictions.
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
    >>> from gedi_sklearn import CoarseConstraint, project_targets
    >>> age = np.array([20.0, 30.0, 40.0, 50.0, 60.0])
    >>> pay = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> project_targets(pay, sensitive_features=age, constraint=CoarseConstraint(0.5)).targets
    array([2. , 2.5, 3. , 3.5, 4. ])
    >>> age, hired = np.arange(20, 61, 5), np.array([0, 0, 1, 0, 1, 1, 0, 1, 1])
    >>> project_targets(hired, sensitive_features=age, constraint=CoarseConstraint(0.2)).targets
    array([1, 1, 1, 0, 1, 1, 0, 1, 1])
    """
    check_constraint(constraint, "project_targets")
    with Projection(
        y,
        sensitive_features=sensitive_features,
        constraint=constraint,
        loss=loss,
        target_bounds=target_bounds,
        conditional_on=conditional_on,
        sample_weight=sample_weight,
        solver=solver,
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
        Their indicator: what the constraint bounds.
    satisfied : ndarray of shape (m,), bool
        Whether the targets satisfy their threshold.
    status : ndarray of shape (m,), str
        Why the solver stopped.
    targets : ndarray of shape (m, n) or None
        The targets, where they were asked for.

    Examples
    --------
    >>> from gedi_sklearn import CoarseConstraint, projection_path
    >>> y, x, constraint = [1.0, 2.0, 4.0], [0, 1, 2], CoarseConstraint()
    >>> path = projection_path(y, sensitive_features=x, constraint=constraint, thresholds=[1, 0.5])
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
        Original targets: real numbers, or classes of any label.
    y_pred : array-like of shape (n,), default=None
        Predictions; see :func:`project_targets`.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute(s).
    thresholds : iterable of float or array-like of shape (k,), default=None
        The path. None takes equal steps of a twentieth from the indicator of the unconstrained
        optimum down to 0 (classes: to a tenth).
    target_weight : float, default=1.0
        Weight of the original targets beside predictions.
    return_targets : bool, default=False
        Whether to keep the targets of every threshold.
    **projection : dict
        Further keywords of :func:`project_targets`: constraint, whose threshold is replaced by
        those of the path, loss, target_bounds, conditional_on, sample_weight, solver,
        random_state.

    Returns
    -------
    ProjectionPath

    Raises
    ------
    ValueError
        If `constraint` is a list, or an input is malformed.
    InfeasibleProjectionError, SolverError
        As :func:`project_targets` does for one of the thresholds.

    See Also
    --------
    project_targets : One threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, projection_path
    >>> x, steps = np.linspace(-1, 1, 9), [1.0, 0.5, 0.0]
    >>> path = projection_path(
    ...     2 * x, sensitive_features=x, constraint=CoarseConstraint(), thresholds=steps
    ... )
    >>> path.gedi.round(6), path.objective.round(3)
    (array([2., 1., 0.]), array([ 0.  ,  3.75, 15.  ]))
    """
    constraint = check_constraint(projection.pop("constraint", None))
    if isinstance(constraint, list):
        raise ValueError(
            "constraint must be a single one here, since the path sets its threshold; got "
            f"{constraint!r}."
        )
    constraint.set_params(threshold=0.0)
    with Projection(
        y, sensitive_features=sensitive_features, constraint=constraint, **projection
    ) as problem:
        if thresholds is None:
            bounds_each = getattr(problem.constraint_, "bounds_each", False)
            everything = np.full(problem.kernel_.n_columns, np.inf) if bounds_each else np.inf
            free = problem.at(everything).solve(y_pred, target_weight)
            # Whole rows hardly ever cancel exactly: a path of classes stops short of 0.
            shares = _DEFAULT_SHARES[:-2] if problem.is_classification else _DEFAULT_SHARES
            thresholds = problem.share_of_reference(free.targets) * shares
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
