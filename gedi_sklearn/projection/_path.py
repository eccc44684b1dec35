"""Projections for a whole path of thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._projection import Projection

# Shares of the unconstrained indicator that a path without thresholds takes.
_DEFAULT_SHARES = np.linspace(1.0, 0.0, 21)


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
