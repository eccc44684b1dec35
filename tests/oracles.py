r"""What the library is held against: the paper's full models, and polynomials in exact digits.

:func:`full_binary` and :func:`full_real` are the paper's own models, one variable a row. Nothing
of the reduction is used: the whole goes to a general solver. Slow, and as exact as that solver;
meant for a few hundred rows of a benign attribute.

:class:`ExactPolynomial` measures the coefficients of floats on the raw powers of floats, and
solves their projection, with so many digits that 60 of them are right at any unit of the
attribute.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from itertools import product

import mpmath
import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp, minimize
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

# Clipping of probabilities in the log loss.
LOG_LOSS_MARGIN = 1e-3
# Digits of all computations: powers of an attribute whose mean is 1e5 deviations away lose up to
# 80 of them at degree 8, and 60 are to be right.
DIGITS = 160


def shuffled(n_folds: int = 5, *, stratified: bool = False) -> KFold | StratifiedKFold:
    """Return the splitter that an integer `cv` stands for without `random_state`."""
    kind = StratifiedKFold if stratified else KFold
    return kind(n_folds, shuffle=True, random_state=0)


def cross_fitted(
    estimator, X, y, n_folds=5, *, method="predict", weight=None, stratified=False
) -> np.ndarray:
    """Return the predictions that an integer `cv` stands for.

    Rows of weight 0 are in no fold: they are predicted by the fit to all rows.
    """
    fold, params = shuffled(n_folds, stratified=stratified), {}
    kept = slice(None) if weight is None else weight > 0
    if weight is not None:
        params["sample_weight"] = weight[kept]
    own = cross_val_predict(estimator, X[kept], y[kept], cv=fold, method=method, params=params)
    if weight is None:
        return own
    found = getattr(clone(estimator).fit(X, y, sample_weight=weight), method)(X)
    found[kept] = own
    return found


def class_costs(
    y: np.ndarray, p: np.ndarray | None, target_weight: float, loss: str, n_classes: int
) -> np.ndarray:
    """Return the loss of every row in every class, shape (n, K).

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets, 0…K − 1.
    p : ndarray of shape (n, K) or None
        Probabilities; None for the loss against y alone.
    target_weight : float
        Weight of the loss against y, beside predictions.
    loss : {"hamming", "log_loss"}
        The loss.
    n_classes : int
        K.

    Returns
    -------
    ndarray of shape (n, K)
    """
    own = (y[:, None] == np.arange(n_classes)).astype(float)
    terms = [(own, 1.0)] if p is None else [(p, 1.0), (own, target_weight)]
    if loss == "hamming":
        return sum(factor * (1 - q) for q, factor in terms)
    margin = LOG_LOSS_MARGIN
    return sum(-factor * np.log(np.clip(q, margin, 1 - margin)) for q, factor in terms)


def full_binary(
    y: np.ndarray,
    p: np.ndarray | None,
    target_weight: float,
    *,
    loss: str,
    weight: np.ndarray,
    effects: np.ndarray,
    radius: float | None = None,
    bounds: np.ndarray | None = None,
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
    radius : float, default=None
        Bound on the sum of the absolute v.
    bounds : ndarray of shape (r,), default=None
        Bounds on every |v|, in the place of `radius`; finite.
    solver : {"highs", "gurobi"}, default="highs"
        The general solver.
    time_limit : float, default=None
        Seconds.

    Returns
    -------
    tuple of (ndarray of shape (n,), float) or None
        Targets and their loss; None where there are none.
    """
    both = None if p is None else np.column_stack([1 - p, p])
    price = weight[:, None] * class_costs(y, both, target_weight, loss, 2)
    n, r = len(y), len(effects)
    scale = np.abs(effects).max(axis=1)
    rows = effects / scale[:, None]
    if bounds is not None:
        extra = 0
        matrix = np.vstack([rows, np.ones(n)])
        lower, upper = np.r_[-bounds / scale, 1], np.r_[bounds / scale, n - 1]
    else:
        # v = q(v⁺ − v⁻), Σ(v⁺ + v⁻) ≤ 1
        assert radius is not None
        extra = 2 * r
        units = np.diag(radius / scale)
        matrix = np.zeros((r + 2, n + extra))
        matrix[:r] = np.hstack([rows, -units, units])
        matrix[r, :n] = 1
        matrix[r + 1, n:] = 1
        lower, upper = np.r_[np.zeros(r), 1, -np.inf], np.r_[np.zeros(r), n - 1, 1]
    solve = {"highs": _solve_highs, "gurobi": _solve_gurobi}[solver]
    cost = price[:, 1] - price[:, 0]
    x = solve(np.r_[cost, np.zeros(extra)], matrix, lower, upper, n, time_limit)
    if x is None:
        return None
    z = np.rint(x[:n])
    return z, float(cost @ z + price[:, 0].sum())


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
    if result.status == 2:  # infeasible
        return None
    if result.status != 0:
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
    import gurobipy

    grb, size = gurobipy.GRB, len(cost)
    kinds = np.where(np.arange(size) < n_integers, grb.BINARY, grb.CONTINUOUS)
    settings = {"OutputFlag": 0, "MIPGap": 0.0, "MIPGapAbs": 0.0}
    if time_limit is not None:
        settings["TimeLimit"] = time_limit
    with gurobipy.Env(params=settings) as env, gurobipy.Model(env=env) as model:
        variables = model.addMVar(size, lb=0.0, ub=1.0, vtype=kinds)
        model.addConstr(matrix @ variables <= np.minimum(upper, grb.INFINITY))
        model.addConstr(matrix @ variables >= np.maximum(lower, -grb.INFINITY))
        model.setObjective(cost @ variables)
        model.optimize()
        if model.Status in (grb.INFEASIBLE, grb.INF_OR_UNBD):
            return None
        if model.Status != grb.OPTIMAL:
            raise TimeoutError(f"the full model ended with Gurobi's status {model.Status}")
        return np.asarray(variables.X)


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
    to_coefficients = effects_of(columns, weight)
    normals, limits, forbidden = half_spaces(to_coefficients, radius, bounds)
    return nearest_by_rows(y, p, target_weight, weight, normals, limits, equal=forbidden)


def effects_of(columns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return P, shape (k, n): the coefficients of z on the columns are P z, by plain algebra."""
    root = np.sqrt(weight)[:, None]
    centred = columns - np.average(columns, axis=0, weights=weight)
    effects = np.linalg.pinv(root * centred) * root.T
    return effects - effects.sum(axis=1, keepdims=True) * weight / weight.sum()


def group_effects(groups: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return D, shape (g, n): the deviations of the groups' means are D z."""
    own = (np.unique(groups)[:, None] == groups) * weight
    return own / own.sum(axis=1, keepdims=True) - weight / weight.sum()


def half_spaces(
    effects: np.ndarray, radius: float | None, bounds: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return g, h and e of g z ≤ h and e z = 0, which say that the v = effects @ z are allowed.

    Parameters
    ----------
    effects : ndarray of shape (r, n)
        From targets to v.
    radius : float or None
        Bound on Σ|v|: one half-space for each of the 2^r vectors of signs.
    bounds : ndarray of shape (r,) or None
        Bounds on every |v|: 0 forbids, inf frees.
    """
    n = effects.shape[1]
    if radius is not None:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(effects))))
        return signs @ effects, np.full(len(signs), radius), np.empty((0, n))
    assert bounds is not None
    limited = np.isfinite(bounds) & (bounds > 0)
    return (
        np.vstack([effects[limited], -effects[limited]]),
        np.tile(bounds[limited], 2),
        effects[bounds == 0],
    )


def nearest_by_rows(
    y: np.ndarray,
    p: np.ndarray | None,
    target_weight: float,
    weight: np.ndarray,
    normals: np.ndarray,
    limits: np.ndarray,
    *,
    equal: np.ndarray | None = None,
    target_bounds: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[np.ndarray, float]:
    """Return the targets of least squared loss with g z ≤ h and e z = 0, one variable a row.

    Parameters
    ----------
    y, p, target_weight, weight
        As for :func:`full_real`.
    normals, limits : ndarrays of shape (m, n) and (m,)
        g and h.
    equal : ndarray of shape (e, n), default=None
        Rows of equations.
    target_bounds : tuple of (float, float), default=(-inf, inf)
        Lowest and highest target.

    Returns
    -------
    tuple of (ndarray of shape (n,), float)
        Targets and their loss.
    """
    first, share = (y, 0.0) if p is None else (p, target_weight)

    def loss(z: np.ndarray) -> float:
        return float(weight @ ((z - first) ** 2 + share * (z - y) ** 2))

    def gradient(z: np.ndarray) -> np.ndarray:
        return 2 * weight * ((z - first) + share * (z - y))

    constraints = []
    if len(normals):
        constraints.append(
            {"type": "ineq", "fun": lambda z: limits - normals @ z, "jac": lambda z: -normals}
        )
    if equal is not None and len(equal):
        constraints.append({"type": "eq", "fun": lambda z: equal @ z, "jac": lambda z: equal})
    start = np.full(len(y), np.average(y, weights=weight))
    bounded = np.isfinite(target_bounds).any()
    with warnings.catch_warnings():
        # It clips its steps to the bounds, with a warning.
        warnings.filterwarnings("ignore", "Values in x were outside bounds", RuntimeWarning)
        result = minimize(
            loss,
            start,
            jac=gradient,
            constraints=constraints,
            bounds=[target_bounds] * len(y) if bounded else None,
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
    return result.x, loss(result.x)


def every_labeling(n: int, n_classes: int) -> np.ndarray:
    """Return all labels of n rows with a row in each class, shape (m, n)."""
    labels = np.array(list(product(range(n_classes), repeat=n)))
    present = [(labels == c).any(axis=1) for c in range(n_classes)]
    return labels[np.logical_and.reduce(present)]


class ExactPolynomial:
    r"""Raw powers x, …, x^k of one attribute, weighted and centred, with all digits.

    Parameters
    ----------
    x : ndarray of shape (n,)
        The attribute; its floats are taken as they are.
    degree : int
        k.
    weight : ndarray of shape (n,), default=None
        Weights of the rows.
    """

    def __init__(self, x: np.ndarray, degree: int, weight: np.ndarray | None = None) -> None:
        self.k = degree
        self.n = len(x)
        with mpmath.workdps(DIGITS):
            weight = np.ones(self.n) if weight is None else np.asarray(weight, float)
            self.weight = [mpmath.mpf(v) for v in weight.tolist()]
            self.total = mpmath.fsum(self.weight)
            values = [mpmath.mpf(v) for v in np.asarray(x, float).tolist()]
            mean = mpmath.fdot(self.weight, values) / self.total
            centred = [v - mean for v in values]
            self.deviation = mpmath.sqrt(self._inner(centred, centred) / self.total)
            self.columns = [self._centred([v**j for v in values]) for j in range(1, degree + 1)]
            self.gram = mpmath.matrix(degree)
            for i in range(degree):
                for j in range(i + 1):
                    value = self._inner(self.columns[i], self.columns[j])
                    self.gram[i, j] = self.gram[j, i] = value
            self.inverse = mpmath.inverse(self.gram)
            # s = (x − mean) / deviation, and the coefficients on its powers: b_i is
            # deviation^i Σ_j C(j, i) mean^(j − i) a_j.
            self.to_standardized = mpmath.matrix(degree)
            for i in range(1, degree + 1):
                for j in range(i, degree + 1):
                    self.to_standardized[i - 1, j - 1] = (
                        mpmath.binomial(j, i) * mean ** (j - i) * self.deviation**i
                    )

    def _inner(self, a: Sequence, b: Sequence) -> mpmath.mpf:
        return mpmath.fsum(w * u * v for w, u, v in zip(self.weight, a, b, strict=True))

    def _centred(self, values: Sequence) -> list:
        mean = mpmath.fdot(self.weight, values) / self.total
        return [v - mean for v in values]

    def _products(self, z: np.ndarray) -> mpmath.matrix:
        z = [w * mpmath.mpf(v) for w, v in zip(self.weight, np.asarray(z).tolist(), strict=True)]
        # The columns are centred, so that z need not be.
        return mpmath.matrix([mpmath.fdot(column, z) for column in self.columns])

    def coefficients(self, z: np.ndarray) -> mpmath.matrix:
        """Return α̃ of float targets."""
        with mpmath.workdps(DIGITS):
            return self.inverse * self._products(z)

    def standardized(self, z: np.ndarray) -> mpmath.matrix:
        """Return the coefficients of float targets on the powers of (x − mean) / deviation."""
        with mpmath.workdps(DIGITS):
            return self.to_standardized * self.coefficients(z)

    def norm(self, z: np.ndarray) -> mpmath.mpf:
        """Return ‖α̃‖₁ of float targets."""
        with mpmath.workdps(DIGITS):
            return mpmath.fsum(abs(v) for v in self.coefficients(z))

    def coarse_excess(self, z: np.ndarray, radius: float) -> float:
        """Return (‖α̃‖₁ − q) / q of float targets, negative inside."""
        with mpmath.workdps(DIGITS):
            return float(self.norm(z) / mpmath.mpf(float(radius)) - 1)

    def fine_excess(self, z: np.ndarray, bound: float) -> float:
        """Return by how much degree 1 is above its bound and the others above 0, in the bound.

        Judged in the standardised powers, where the set is the same; negative inside.
        """
        with mpmath.workdps(DIGITS):
            b, allowed = self.standardized(z), mpmath.mpf(float(bound)) * self.deviation
            missed = [abs(b[0]) - allowed, *(abs(b[j]) for j in range(1, self.k))]
            return float(max(missed) / allowed)

    def ulp(self, z: np.ndarray, radius: float, draws: int = 20, seed: int = 0) -> float:
        """Return the largest change of ‖α̃‖₁ / q when every target moves by one unit of its last.

        The largest one over some draws of the directions.
        """
        rng = np.random.default_rng(seed)
        with mpmath.workdps(DIGITS):
            start = np.array([float(v) for v in self.coefficients(z)])
        # A change of the last place has few digits itself: floats will do from here.
        size, spacing = np.abs(start).sum(), np.spacing(np.abs(z))
        changes = [
            np.abs(start + self._effects @ (rng.choice([-1.0, 1.0], self.n) * spacing)).sum() - size
            for _ in range(draws)
        ]
        return float(np.max(np.abs(changes))) / float(radius)

    @cached_property
    def _effects(self) -> np.ndarray:
        """The float nearest to P, shape (k, n)."""
        with mpmath.workdps(DIGITS):
            weighted = mpmath.matrix(self.k, self.n)
            for j, column in enumerate(self.columns):
                for i, (w, v) in enumerate(zip(self.weight, column, strict=True)):
                    weighted[j, i] = w * v
            effects = self.inverse * weighted
            return np.array([[float(effects[j, i]) for i in range(self.n)] for j in range(self.k)])

    def distance(self, t: np.ndarray, a: mpmath.matrix) -> mpmath.mpf:
        """Return the least Σ w (z − t)² of targets with α̃(z) = a."""
        with mpmath.workdps(DIGITS):
            step = a - self.coefficients(t)
            return (step.T * self.gram * step)[0]

    def nearest_in_ball(self, t: np.ndarray, radius: float) -> mpmath.matrix:
        """Return the α̃ of the targets nearest to t with ‖α̃‖₁ ≤ q.

        Follows the path of the multiplier (the LASSO's) from a = 0, on which supports and signs
        change one by one, to ‖a‖₁ = q; then verifies the conditions of the optimum.
        """
        with mpmath.workdps(DIGITS):
            q, products = mpmath.mpf(float(radius)), self._products(t)
            least_squares = self.inverse * products
            if mpmath.fsum(abs(v) for v in least_squares) <= q:
                return least_squares
            a = mpmath.matrix(self.k, 1)
            level = max(abs(v) for v in products)
            active = [max(range(self.k), key=lambda j: abs(products[j]))]
            dropped = None
            while True:
                slope = products - self.gram * a  # w F̃'(t − z), ± the level where active
                sign = {j: int(mpmath.sign(a[j] or slope[j])) for j in active}
                rows = mpmath.matrix(len(active))
                for i, one in enumerate(active):
                    for j, other in enumerate(active):
                        rows[i, j] = self.gram[one, other]
                solved = mpmath.lu_solve(rows, mpmath.matrix([sign[j] for j in active]))
                # Per unit by which the level falls.
                move = mpmath.matrix(self.k, 1)
                for i, j in enumerate(active):
                    move[j] = solved[i]
                fall = self.gram * move
                step, event = level, ("end", -1)
                grows = mpmath.fsum(sign[j] * move[j] for j in active)
                now = mpmath.fsum(abs(v) for v in a)
                if grows > 0 and (q - now) / grows <= step:
                    step, event = (q - now) / grows, ("radius", -1)
                for j in range(self.k):
                    if j in active:
                        # It reaches 0, but not where it starts from.
                        if a[j] != 0 and a[j] * move[j] < 0 and -a[j] / move[j] < step:
                            step, event = -a[j] / move[j], ("leaves", j)
                        continue
                    for side in (1, -1):
                        # side · slope_j(s) = level − s
                        speed = 1 - side * fall[j]
                        if speed > 0 and (j, side) != dropped:
                            reached = (level - side * slope[j]) / speed
                            if reached < step:
                                step, event = reached, ("enters", j)
                a, level, dropped = a + step * move, level - step, None
                kind, index = event
                if kind == "radius":
                    break
                if kind == "enters":
                    active.append(index)
                elif kind == "leaves":
                    active.remove(index)
                    # Its slope is at the level, and falls below from here.
                    a[index], dropped = mpmath.mpf(0), (index, sign[index])
                else:
                    raise AssertionError("the path ended inside of the ball")
            self._verify_ball(a, products, q, level)
            return a

    def _verify_ball(
        self, a: mpmath.matrix, products: mpmath.matrix, q: mpmath.mpf, level: mpmath.mpf
    ) -> None:
        slope = products - self.gram * a
        small = mpmath.mpf(10) ** -60
        assert level > 0
        assert abs(mpmath.fsum(abs(v) for v in a) - q) <= q * small
        for j in range(self.k):
            off = abs(slope[j]) - level if a[j] == 0 else abs(slope[j] - mpmath.sign(a[j]) * level)
            assert off <= level * small

    def nearest_in_box(self, t: np.ndarray, bounds: np.ndarray) -> mpmath.matrix:
        """Return the α̃ of the targets nearest to t with |α̃_j| ≤ q_j, by a primal active set."""
        with mpmath.workdps(DIGITS):
            limit = [mpmath.mpf(float(b)) for b in bounds]
            products = self._products(t)
            a = mpmath.matrix(self.k, 1)
            held: dict[int, int] = {j: 0 for j in range(self.k) if limit[j] == 0}
            while True:
                free = [j for j in range(self.k) if j not in held]
                target = a.copy()
                if free:
                    rows, right = mpmath.matrix(len(free)), mpmath.matrix(len(free), 1)
                    for i, one in enumerate(free):
                        for j, other in enumerate(free):
                            rows[i, j] = self.gram[one, other]
                        right[i] = products[one] - mpmath.fsum(
                            self.gram[one, other] * a[other] for other in held
                        )
                    solved = mpmath.lu_solve(rows, right)
                    for i, j in enumerate(free):
                        target[j] = solved[i]
                length, blocking = mpmath.mpf(1), None
                for j in free:
                    step = target[j] - a[j]
                    if abs(target[j]) > limit[j]:
                        reach = (mpmath.sign(step) * limit[j] - a[j]) / step
                        if reach < length:
                            length, blocking = reach, j
                a = a + length * (target - a)
                if blocking is not None:
                    held[blocking] = int(mpmath.sign(target[blocking]))
                    a[blocking] = held[blocking] * limit[blocking]
                    continue
                slope = products - self.gram * a
                # Held at the upper end, a coefficient must want to go on up.
                wrong = [j for j, side in held.items() if side and side * slope[j] < 0]
                if not wrong:
                    return a
                del held[max(wrong, key=lambda j: abs(slope[j]) / mpmath.sqrt(self.gram[j, j]))]


def nearest_in_balls(
    parts: Sequence[tuple[ExactPolynomial, float]], t: np.ndarray
) -> tuple[mpmath.mpf, list[mpmath.matrix]]:
    """Return the least Σ (z − t)² with ‖α̃_b(z)‖₁ ≤ q_b for all attributes b, and their α̃.

    Equal weights. With z = t + Σ_b P_b'λ_b every pattern of supports and signs makes a linear
    system for the λ; the one whose solution satisfies the conditions of the optimum is it.

    Parameters
    ----------
    parts : sequence of (ExactPolynomial, float)
        The attributes' powers on the same rows, with the radius of each.
    t : ndarray of shape (n,)
        Targets.
    """
    with mpmath.workdps(DIGITS):
        sizes = [exact.k for exact, _ in parts]
        starts = np.cumsum([0, *sizes]).tolist()
        total = starts[-1]
        # H = P P', from the cross products of the raw columns.
        hessian = mpmath.matrix(total)
        for b, (one, _) in enumerate(parts):
            for c, (other, _) in enumerate(parts):
                if b == c:
                    block = one.inverse
                else:
                    cross = mpmath.matrix(one.k, other.k)
                    for i in range(one.k):
                        for j in range(other.k):
                            cross[i, j] = mpmath.fdot(one.columns[i], other.columns[j])
                    block = one.inverse * cross * other.inverse
                for i in range(one.k):
                    for j in range(other.k):
                        hessian[starts[b] + i, starts[c] + j] = block[i, j]
        at = [v for exact, _ in parts for v in exact.coefficients(t)]
        radii = [mpmath.mpf(float(radius)) for _, radius in parts]
        for pattern in product((0, 1, -1), repeat=total):
            found = _on_face(hessian, at, radii, starts, pattern)
            if found is not None:
                multipliers, alpha = found
                blocks = [alpha[starts[b] : starts[b + 1]] for b in range(len(parts))]
                return (multipliers.T * hessian * multipliers)[0], blocks
    raise AssertionError("no pattern satisfies the conditions of the optimum")


def _on_face(
    hessian: mpmath.matrix,
    at: list,
    radii: list,
    starts: list[int],
    pattern: tuple[int, ...],
) -> tuple[mpmath.matrix, list] | None:
    """Return λ and α of one pattern of signs if they are optimal; a block of zeros is inactive."""
    total, blocks = len(at), len(radii)
    owns = [pattern[starts[b] : starts[b + 1]] for b in range(blocks)]
    active = [b for b in range(blocks) if any(owns[b])]
    off = [j for b in active for j in range(starts[b], starts[b + 1]) if pattern[j] == 0]
    size = len(active) + len(off)
    # λ = C u with u the levels of the active blocks and the λ off their supports.
    into = mpmath.matrix(total, max(size, 1))
    for i, b in enumerate(active):
        for j in range(starts[b], starts[b + 1]):
            into[j, i] = -pattern[j]
    for i, j in enumerate(off):
        into[j, len(active) + i] = 1
    multipliers = mpmath.matrix(total, 1)
    if size:
        # −C'(α + H C u) is −q on the levels' rows and 0 on the others.
        right = into.T * mpmath.matrix(at)
        for i, b in enumerate(active):
            right[i] += radii[b]
        try:
            solved = mpmath.lu_solve(into.T * hessian * into, -right)
        except ZeroDivisionError:
            return None
        if any(solved[i] < 0 for i in range(len(active))):
            return None
        multipliers = into * solved
        level = {b: solved[i] for i, b in enumerate(active)}
        for b in active:
            for j in range(starts[b], starts[b + 1]):
                if pattern[j] == 0 and abs(multipliers[j]) > level[b]:
                    return None
    alpha = list(mpmath.matrix(at) + hessian * multipliers)
    for b in range(blocks):
        own = alpha[starts[b] : starts[b + 1]]
        if b in active:
            if any(v * side < 0 for v, side in zip(own, owns[b], strict=True) if side):
                return None
        elif mpmath.fsum(abs(v) for v in own) > radii[b]:
            return None
    return multipliers, alpha


def least_absolute_error(
    y: np.ndarray,
    p: np.ndarray | None,
    target_weight: float,
    weight: np.ndarray,
    normals: np.ndarray,
    limits: np.ndarray,
    *,
    equal: np.ndarray | None = None,
    target_bounds: tuple[float, float] = (-np.inf, np.inf),
) -> float:
    """Return the least absolute error with g z ≤ h and e z = 0, one variable a row.

    Parameters as for :func:`nearest_by_rows`.
    """
    n = len(y)
    terms = [(y, 1.0)] if p is None else [(p, 1.0), (y, target_weight)]
    cost, upper, right = [np.zeros(n)], [], []
    for i, (target, factor) in enumerate(terms):
        # Variables z, then |z − target| for every term.
        own = np.zeros((n, n * len(terms)))
        own[:, i * n : (i + 1) * n] = np.eye(n)
        upper += [np.hstack([np.eye(n), -own]), np.hstack([-np.eye(n), -own])]
        right += [target, -target]
        cost.append(factor * weight)
    wide = n * len(terms)
    matrix = np.vstack([*upper, np.hstack([normals, np.zeros((len(normals), wide))])])
    equations = np.empty((0, n)) if equal is None else equal
    result = linprog(
        np.concatenate(cost),
        A_ub=matrix,
        b_ub=np.concatenate([*right, limits]),
        A_eq=np.hstack([equations, np.zeros((len(equations), wide))]),
        b_eq=np.zeros(len(equations)),
        bounds=[target_bounds] * n + [(0, None)] * wide,
    )
    if result.status != 0:
        raise AssertionError(result.message)
    return float(result.fun)


def with_slack(kind: type, slack: float, *args: object, **options: object) -> object:
    """Return a constraint of a kind, of which only the fine one has a slack."""
    own = {"slack": slack} if kind.__name__ == "FineConstraint" else {}
    return kind(*args, **own, **options)
