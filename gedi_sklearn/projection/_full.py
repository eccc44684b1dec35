r"""The paper's own model, one variable a row: the oracle of the tests, the rival in benchmarks.

Nothing of the reduction is used here: the coefficients are built from the kernel's columns by
plain least squares, every row is a variable, and the whole goes to a general solver. Slow, and
as exact as that solver; meant for a few hundred rows of a benign attribute.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp, minimize

from ..constraints import AllowedSet
from ._groups import costs
from ._highs import read_status

__all__ = ["full_binary", "full_real"]


def full_binary(
    y: np.ndarray,
    p: np.ndarray | None,
    target_weight: float,
    *,
    loss: str,
    weight: np.ndarray,
    effects: np.ndarray,
    allowed: AllowedSet,
    solver: str = "highs",
    time_limit: float | None = None,
) -> tuple[np.ndarray, float] | None:
    """Solve the model with one binary variable a row.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets, 0 or 1.
    p : ndarray of shape (n,) or None
        Predictions in [0, 1].
    target_weight : float
        Weight of the original targets.
    loss : {"hamming", "log_loss"}
        The loss.
    weight : ndarray of shape (n,)
        Sample weights.
    effects : ndarray of shape (r, n)
        The bounded v is effects @ z.
    allowed : AllowedSet
        Where v has to be.
    solver : {"highs", "gurobi"}, default="highs"
        The general solver.
    time_limit : float, default=None
        Seconds.

    Returns
    -------
    tuple of (ndarray of shape (n,), float) or None
        Targets and their loss; None where there are none.
    """
    difference, at_zero = costs(y, p, target_weight, loss)
    n, r = len(y), len(effects)
    cost = weight * difference
    scale = np.abs(effects).max(axis=1)
    rows = effects / scale[:, None]
    if allowed.bounds is not None:
        bounds = allowed.bounds / scale
        extra = 0
        matrix = np.vstack([rows, np.ones(n)])
        lower, upper = np.r_[-bounds, 1], np.r_[bounds, n - 1]
    else:
        # v = q(v⁺ − v⁻), Σ(v⁺ + v⁻) ≤ 1
        extra = 2 * r
        units = np.diag((allowed.radius or 0.0) / scale)
        matrix = np.zeros((r + 2, n + extra))
        matrix[:r] = np.hstack([rows, -units, units])
        matrix[r, :n] = 1
        matrix[r + 1, n:] = 1
        lower, upper = np.r_[np.zeros(r), 1, -np.inf], np.r_[np.zeros(r), n - 1, 1]
    solve = {"highs": _solve_highs, "gurobi": _solve_gurobi}[solver]
    x = solve(np.r_[cost, np.zeros(extra)], matrix, lower, upper, n, time_limit)
    if x is None:
        return None
    z = np.rint(x[:n])
    return z, float(cost @ z + weight @ at_zero)


def _solve_highs(
    cost: np.ndarray,
    matrix: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    n_integers: int,
    time_limit: float | None,
) -> np.ndarray | None:
    options = {"mip_rel_gap": 0.0}
    if time_limit is not None:
        options["time_limit"] = time_limit
    result = milp(
        cost,
        integrality=(np.arange(len(cost)) < n_integers).astype(int),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(sp.csr_array(matrix), lower, upper),
        options=options,
    )
    status = read_status(result.message)
    if status == "infeasible":
        return None
    if status != "optimal":
        raise TimeoutError(f"the full model ended with {result.message!r}")
    return result.x


def _solve_gurobi(
    cost: np.ndarray,
    matrix: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    n_integers: int,
    time_limit: float | None,
) -> np.ndarray | None:
    from ._gurobi import GurobiSession
    from ._model import LinearModel

    session = GurobiSession({}, 0, False)
    try:
        model = LinearModel(cost, matrix, lower, upper, np.ones(len(cost)), n_integers)
        outcome = session.solve_linear(model, gap=0.0, start=None, time_limit=time_limit)
    finally:
        session.close()
    if outcome.status == "infeasible":
        return None
    if outcome.status != "optimal":
        raise TimeoutError(f"the full model ended with {outcome.status!r}")
    return outcome.x


def full_real(
    y: np.ndarray,
    p: np.ndarray | None,
    target_weight: float,
    *,
    weight: np.ndarray,
    columns: np.ndarray,
    radius: float | None,
    bounds: np.ndarray | None,
) -> tuple[np.ndarray, float]:
    """Solve the quadratic model with one real variable a row, by sequential least squares.

    Parameters
    ----------
    y, p : ndarray of shape (n,)
        Original targets; predictions or None.
    target_weight : float
        Weight of the original targets.
    weight : ndarray of shape (n,)
        Sample weights.
    columns : ndarray of shape (n, k)
        The kernel's columns, not centred.
    radius : float or None
        Bound on the sum of the absolute coefficients.
    bounds : ndarray of shape (k,) or None
        Bounds on single coefficients.

    Returns
    -------
    tuple of (ndarray of shape (n,), float)
        Targets and their loss.
    """
    root = np.sqrt(weight)[:, None]
    centred = columns - np.average(columns, axis=0, weights=weight)
    to_coefficients = np.linalg.pinv(root * centred) * root.T
    to_coefficients -= to_coefficients.sum(axis=1, keepdims=True) * weight / weight.sum()
    first, share = (y, 0.0) if p is None else (p, target_weight)

    def loss(z: np.ndarray) -> float:
        return float(weight @ ((z - first) ** 2 + share * (z - y) ** 2))

    def gradient(z: np.ndarray) -> np.ndarray:
        return 2 * weight * ((z - first) + share * (z - y))

    if radius is not None:
        # ‖a‖₁ ≤ q is s'a ≤ q for all 2^k vectors of signs s.
        k = columns.shape[1]
        signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * k)).reshape(k, -1).T
        matrix, limit = signs @ to_coefficients, np.full(len(signs), radius)
        inequality = {"type": "ineq", "fun": lambda z: limit - matrix @ z, "jac": lambda z: -matrix}
        constraints = [inequality]
    else:
        assert bounds is not None
        zero = bounds == 0
        limited = np.isfinite(bounds) & ~zero
        matrix = np.vstack([to_coefficients[limited], -to_coefficients[limited]])
        limit = np.r_[bounds[limited], bounds[limited]]
        forbidden = to_coefficients[zero]
        constraints = []
        if limited.any():
            constraints.append(
                {"type": "ineq", "fun": lambda z: limit - matrix @ z, "jac": lambda z: -matrix}
            )
        if zero.any():
            constraints.append(
                {"type": "eq", "fun": lambda z: forbidden @ z, "jac": lambda z: forbidden}
            )
    result = minimize(
        loss,
        np.full(len(y), np.average(y, weights=weight)),
        jac=gradient,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return result.x, loss(result.x)
