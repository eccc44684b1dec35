r"""Real targets under a loss with a link: a closed form, or a dual in as many numbers as columns.

Minimising the loss of z against predictions and y is minimising that against one t
(:class:`Loss`), and only the part of z in the span Q of the kernels is constrained.

**Squared error** without bounds on the targets has a closed form: the nearest z is t + Qx, where
x = B'μ leads from the coordinates of t to the nearest allowed ones
(:mod:`gedi_sklearn._geometry._span`).

**Otherwise** z is the link of t and of the move QB'μ: cut at the bounds, so that counts stay counts
and rates stay rates, or t·exp(ν + QB'μ), which is positive where t is. μ minimises the convex dual

.. math:: h(\mu) = \varphi(\mu) + \sigma(-\mu), \quad \nabla\varphi(\mu) = B Q^T W z(\mu),

where σ is the support function of the allowed coordinates. A Newton step replaces φ by a quadratic
function; the minimiser of what results is a nearest point, in the metric of the derivative of z.
At any μ the distance of z(μ) from optimal is at most μ'BQ'Wz(μ) + σ(−μ), which gives the `bound` of
the solution.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._geometry import Multipliers, joint_multipliers
from ..constraints import FittedConstraint
from ..exceptions import InfeasibleProjectionError, SolverError
from ..kernels import BLOCK, row_blocks
from ._result import Solution
from ._solver import Deadline, SolverSession

_MAX_STEPS = 200
# A step is taken at once where the quadratic function errs by no more than this.
_TRUSTED = 0.1
# Share of the tolerance that needs no further step.
_SURE = 1e-3
# Curvature that is added where hardly a row can move, and rounding of what is below 0.
_FLAT, _BELOW = 1e-12, 1e-12
# How near the coordinates of z must come to the allowed point, in deviations of t, and in its size.
_TOLERANCE, _LEAST_TOLERANCE = 1e-12, 1e-15
# Rounding of a difference of squares, relative to these.
_ROUNDING = 1e-14


class Loss(ABC):
    """A loss of targets z against t, those of least loss, on rows of some weights.

    At multipliers μ of the constraint every row has a *move* m = Q(x)B'μ, and the targets that
    minimise loss(z, t) − Σ ω z m depend on m alone: t + m for the squared error, cut at the bounds
    where there are any, and t·exp(ν + m) for the Kullback-Leibler divergence, with ν such that the
    mean is kept. A loss is this link, its derivative, and the value of its conjugate.

    Attributes
    ----------
    rows : slice or ndarray of bool
        Which rows can move.
    unit : float
        What counts as 1 among :meth:`rates`.
    """

    # The loss over that of the dual, for weights of sum 1.
    factor: ClassVar[float]
    # Whether the mean of the targets is that of t.
    keeps_mean: ClassVar[bool]
    # Whether z = t + m, without bounds.
    is_linear: bool = False

    rows: slice | np.ndarray = slice(None)
    unit: float = 1.0

    @abstractmethod
    def __init__(self, t: np.ndarray, share: np.ndarray, **options: Any) -> None: ...

    @staticmethod
    @abstractmethod
    def of_rows(z: Any, p: Any, y: Any, target_weight: float) -> Any:
        """Return the loss of every row against predictions and y, or y alone where p is None."""

    @abstractmethod
    def changes(self, move: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return u = z − t at a move, Σ ω (u m − loss), and what is added to every move."""

    @abstractmethod
    def sums(self, q: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return Σ ω u q at the moves q μ, its derivative by μ, and Σ ω (u m − loss).

        In one pass over the rows, block by block: what is in the cache is used for all three.
        """

    @abstractmethod
    def rates(self, changes: np.ndarray) -> np.ndarray:
        """Return the derivative of every target by its move, for a mean that is free."""

    def most(self, move: np.ndarray) -> float:
        """Return the largest Σ ω u m of any targets."""
        return np.inf


def joint_targets(p: Any, y: Any, target_weight: float) -> tuple[Any, float]:
    """Return t, the mean of predictions and y by their weights, and the sum of these."""
    if p is None:
        return y, 1.0
    total = 1.0 + target_weight
    return (p + target_weight * y) / total, total


class SquaredError(Loss):
    """(z − t)², between bounds: z = t + m, cut there.

    Parameters
    ----------
    t : ndarray of shape (n,)
        The targets of least loss.
    share : ndarray of shape (n,)
        Weights, of sum 1.
    bounds : tuple of (float, float), default=(-inf, inf)
        Lowest and highest target.
    """

    factor, keeps_mean = 2.0, False

    def __init__(
        self, t: np.ndarray, share: np.ndarray, bounds: tuple[float, float] = (-np.inf, np.inf)
    ) -> None:
        self._share, self.is_linear = share, bool(np.isinf(bounds).all())
        self._low, self._high = (end - t if np.isfinite(end) else end for end in bounds)

    @staticmethod
    def of_rows(z: Any, p: Any, y: Any, target_weight: float) -> Any:
        if p is None:
            return (z - y) ** 2
        return (z - p) ** 2 + target_weight * (z - y) ** 2

    def changes(self, move: np.ndarray) -> tuple[np.ndarray, float, float]:
        u = np.clip(move, self._low, self._high)
        return u, float(self._share @ (move * u - 0.5 * u**2)), 0.0

    def sums(self, q: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        smooth, sums, derivative = 0.0, np.zeros(len(mu)), np.zeros((len(mu), len(mu)))
        low, high = (np.broadcast_to(end, len(q)) for end in (self._low, self._high))
        for rows in row_blocks(len(q)):
            own, share = q[rows], self._share[rows]
            move = own @ mu
            u = np.clip(move, low[rows], high[rows])
            sums += (share * u) @ own
            derivative += (own * (share * (u == move))[:, None]).T @ own
            smooth += float(share @ (move * u - 0.5 * u**2))
        return sums, derivative, smooth

    def rates(self, changes: np.ndarray) -> np.ndarray:
        return np.asarray((changes > self._low) & (changes < self._high), dtype=float)


class KullbackLeibler(Loss):
    """z log(z/t) − z + t: z = t·exp(ν + m), of the mean of t. A target of 0 stays 0.

    Against predictions and y it is that against their mean, not the sum of both, whose t would be 0
    wherever y is.

    Parameters
    ----------
    t : ndarray of shape (n,)
        The targets of least loss, at least 0 and not all of them 0.
    share : ndarray of shape (n,)
        Weights, of sum 1.
    """

    factor, keeps_mean = 1.0, True

    def __init__(self, t: np.ndarray, share: np.ndarray) -> None:
        is_positive = t > 0
        if not is_positive.all():
            self.rows = is_positive
        self._t = t[self.rows]
        self._mass = share[self.rows] * self._t
        self.unit = float(self._mass.sum())

    @staticmethod
    def of_rows(z: Any, p: Any, y: Any, target_weight: float) -> Any:
        t, total = joint_targets(p, y, target_weight)
        # Faster than scipy's kl_div; a target of 0 has stayed 0.
        ratio = np.divide(z, t, out=np.ones_like(z), where=t > 0)
        losses = t * (ratio * np.log(np.maximum(ratio, np.finfo(float).tiny)) - ratio + 1)
        return total * np.maximum(losses, 0.0)

    def changes(self, move: np.ndarray) -> tuple[np.ndarray, float, float]:
        top = float(move.max())
        changes = np.exp(move - top)
        factor = self.unit / float(self._mass @ changes)
        nu = float(np.log(factor)) - top
        changes *= factor * self._t
        changes -= self._t
        return changes, -nu * self.unit - float(self._mass @ move), nu

    def sums(self, q: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        size, top = 1 + len(mu), -np.inf
        products, before, block = np.zeros((size, size)), np.zeros(size), np.ones((size, BLOCK))
        for rows in row_blocks(len(q)):
            mass = self._mass[rows]
            own = block[:, : len(mass)]
            own[1:] = q[rows].T
            move = mu @ own[1:]
            below, top = top, max(top, float(move.max()))
            products *= np.exp(below - top)
            products += own * (mass * np.exp(move - top)) @ own.T
            before += own @ mass
        mean = products[0, 1:] / products[0, 0]
        derivative = products[1:, 1:] / products[0, 0] - np.outer(mean, mean)
        nu = float(np.log(self.unit / products[0, 0])) - top
        smooth = -nu * self.unit - float(before[1:] @ mu)
        return self.unit * mean - before[1:], self.unit * derivative, smooth

    def rates(self, changes: np.ndarray) -> np.ndarray:
        return self._t + changes

    def most(self, move: np.ndarray) -> float:
        return float(self._mass @ (move.max() - move))


# Losses with a link, by name.
LOSSES: dict[str, type[Loss]] = {"squared_error": SquaredError, "kl": KullbackLeibler}
# What a step is multiplied by until it helps.
_LENGTHS = 0.5 ** np.arange(40)


class _State(NamedTuple):
    """The dual at multipliers μ.

    Attributes
    ----------
    gradient : ndarray of shape (Σk,)
        BQ'Wz, the coordinates of z.
    hessian : ndarray of shape (Σk, Σk)
        Their derivative.
    smooth : float
        φ(μ), but for what is linear in the coordinates of t.
    """

    mu: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    smooth: float


class DualOfLoss:
    """h(μ) = φ(μ) + σ(−μ) for targets t and a loss.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraints on the rows.
    t : ndarray of shape (n,)
        The targets of least loss.
    loss : Loss
        The loss against them.
    """

    def __init__(self, constraint: FittedConstraint, t: np.ndarray, loss: Loss) -> None:
        self._constraint, self._span, self._loss = constraint, constraint.span, loss
        span = self._span
        seen = span.q if len(span.blocks) == 1 else span.q @ span.stacked.T
        self._seen, self._share = seen[loss.rows], span.normalized_weight[loss.rows]
        self._start = span.stacked @ constraint.coordinates(t)
        # A constant satisfies every constraint on the targets themselves.
        self._can_fail = len(self._share) < len(t) or constraint.origin is not None

    def minimise(
        self, tolerance: float, deadline: Deadline
    ) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Return the minimiser, whose z has allowed coordinates within a tolerance.

        Returns
        -------
        mu : ndarray of shape (Σk,)
            The multipliers μ.
        changes : ndarray
            z − t of the rows that can move.
        excess : float
            How much more than the least the loss of z is, at most.
        intercept : float
            What is added to every move.

        Raises
        ------
        InfeasibleProjectionError
            If no targets satisfy the constraint.
        """
        state, was_near = self._at(np.zeros(len(self._start))), False
        for _ in range(_MAX_STEPS):
            deadline.check()
            hessian = state.hessian
            point = state.gradient - hessian @ state.mu
            found = joint_multipliers(self._span.blocks, point, hessian, deadline.check)
            step = hessian @ (found.mu - state.mu)
            after = self._at(found.mu)
            # What leads to the allowed point is the step, where z is as the quadratic function.
            error = float(np.linalg.norm(state.gradient + step - after.gradient))
            # A last step takes out what the added curvature has done to the one before.
            if error <= _SURE * tolerance or (was_near and error <= tolerance):
                excess = self._excess(after, self._span.outward(found)[0])
                changes, _, intercept = self._loss.changes(self._seen @ after.mu)
                return after.mu, changes, excess, intercept
            was_near = error <= tolerance
            if not error <= _TRUSTED * np.linalg.norm(step):
                after = self._descended(state, after)
            self._check_feasible(after.mu)
            state = after
        raise SolverError.from_status("exact", f"no convergence in {_MAX_STEPS} Newton steps")

    def _descended(self, state: _State, after: _State) -> _State:
        """Return the first state on the way to another one whose value is no larger."""
        value, step = self._value(state), after.mu - state.mu
        for length in _LENGTHS:
            if length < 1:
                after = self._at(state.mu + length * step)
            if self._value(after) <= value + 1e-15 * abs(value):
                return after
        return state

    def _at(self, mu: np.ndarray) -> _State:
        sums, hessian, smooth = self._loss.sums(self._seen, mu)
        # Where hardly a row can move the quadratic function is flat; keep the step finite.
        hessian += _FLAT * self._loss.unit * np.eye(len(mu))
        return _State(mu, self._start + sums, hessian, smooth)

    def _value(self, state: _State) -> float:
        return state.smooth + float(state.mu @ self._start) + self._span.support(state.mu)

    def _excess(self, state: _State, near: np.ndarray) -> float:
        """Return the loss at a state less what multipliers near to its prove."""
        proven = float(near @ state.gradient) + self._span.support(near)
        if np.array_equal(near, state.mu):
            return proven
        beside = self._at(near).smooth - state.smooth
        return proven + beside - float((near - state.mu) @ (state.gradient - self._start))

    def _check_feasible(self, mu: np.ndarray) -> None:
        """Refuse sets that every z misses in one direction.

        μ'BQ'Wz is at most that of the targets that reach farthest, but at least −σ(−μ) in the sets.
        """
        if not self._can_fail:
            return
        reached, support = self._loss.most(self._seen @ mu), self._span.support(mu)
        most = float(mu @ self._start) + reached
        if most + support < -_BELOW * (abs(reached) + support):
            raise InfeasibleProjectionError.from_support(
                n_positive=len(self._share), **self._constraint.describe()
            )


class _Nearest(NamedTuple):
    """The nearest allowed targets z, and what proves it.

    Attributes
    ----------
    mu : ndarray of shape (Σk,)
        Multipliers of all sets.
    excess : float
        How much more than the least the loss of z is, at most; 0 at the solution.
    solver : str
        What found them.
    intercept : float
        What is added to every move.
    """

    z: np.ndarray
    mu: np.ndarray
    excess: float
    solver: str
    intercept: float = 0.0


@dataclass(eq=False)
class RealTargets:
    """Projection of real targets at a loss with a link, under any constraints.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraints on the rows of positive weight.
    y : ndarray of shape (n,)
        Original targets.
    loss : type of Loss
        The loss.
    options : dict
        Further parameters of the loss.
    session : SolverSession
        Solves the problem of the squared error without bounds on the targets.
    """

    constraint: FittedConstraint
    y: np.ndarray
    loss: type[Loss]
    options: dict[str, Any]
    session: SolverSession

    def __post_init__(self) -> None:
        self.span, self.weight = self.constraint.span, self.constraint.weight

    def solve(self, p: np.ndarray | None, target_weight: float, deadline: Deadline) -> Solution:
        """Return the nearest allowed targets to p and y; to y alone where p is None.

        Raises
        ------
        InfeasibleProjectionError
            If no targets satisfy the constraint.
        TimeoutError
            If the deadline comes first.
        """
        t, total = joint_targets(p, self.y, target_weight)
        near = self._nearest(t, deadline)
        mu = self.constraint.of_all(near.mu)
        scale = self.loss.factor * total * float(self.weight.sum())
        objective = self._loss(near.z, p, target_weight)
        gap = max(scale * near.excess, 0.0)
        if p is None and gap and self._is_as_before(near.z):
            gap = 0.0
        return Solution(
            z=near.z,
            objective=objective,
            bound=objective - gap,
            gap=gap / objective if objective else 0.0,
            multipliers=scale * mu,
            status="optimal",
            solver=near.solver,
            n_variables=self.span.size,
            n_groups=len(near.z),
            correction=mu,
            intercept=near.intercept,
        )

    def _is_as_before(self, z: np.ndarray) -> bool:
        """Tell whether nothing was moved, but for rounding."""
        return bool(self.weight @ (z - self.y) ** 2 <= _ROUNDING**2 * (self.weight @ self.y**2))

    def _loss(self, z: np.ndarray, p: np.ndarray | None, target_weight: float) -> float:
        """Return the weighted sum of the losses of all rows."""
        loss = 0.0
        with np.errstate(over="ignore"):
            for rows in row_blocks(len(z)):
                own = None if p is None else p[rows]
                losses = self.loss.of_rows(z[rows], own, self.y[rows], target_weight)
                loss += float(self.weight[rows] @ losses)
        if not np.isfinite(loss):
            raise ValueError(
                "the objective, a sum of squares of y and y_pred times sample_weight and "
                f"target_weight (of up to {self.weight.max():.3g} and {target_weight:.3g}), is too "
                "large for floats. Use other units, or divide all weights by a number."
            )
        return loss

    def _nearest(self, t: np.ndarray, deadline: Deadline) -> _Nearest:
        """Return the allowed z nearest to t."""
        loss = self.loss_against(t)
        if loss.is_linear:
            return self._closed_form(t, deadline)
        return self._by_dual(t, loss, deadline)

    def loss_against(self, t: np.ndarray) -> Loss:
        """Return the loss of targets against those of least loss."""
        return self.loss(t, self.span.normalized_weight, **self.options)

    def _closed_form(self, t: np.ndarray, deadline: Deadline) -> _Nearest:
        """Return the same at squared error, without bounds."""
        span = self.span
        x = self.constraint.coordinates(t)
        multipliers, solver = self._multipliers(x, deadline)
        mu, support = span.outward(multipliers)
        move, step = span.joined(multipliers.mu), span.joined(mu)
        excess = float(0.5 * move @ move + x @ step + 0.5 * step @ step) + support
        if excess <= _ROUNDING * float(x @ x):
            excess = 0.0
        z = span.moved(self.constraint.from_origin(t), multipliers)
        if self.constraint.origin is not None:
            z = z + self.constraint.origin
        return _Nearest(z, multipliers.mu, excess, solver)

    def _multipliers(self, x: np.ndarray, deadline: Deadline) -> tuple[Multipliers, str]:
        """Return those of the allowed coordinates nearest to x, and what found them."""
        found = self.session.solve_distance(self.span, x, deadline)
        if found is None:
            return self.span.multipliers(x, check=deadline.check), "exact"
        return found, self.session.name

    def correction(self, t: np.ndarray, deadline: Deadline) -> tuple[np.ndarray, float]:
        """Return the correction that leads from t to the nearest allowed targets, and no more."""
        loss = self.loss_against(t)
        if loss.is_linear:
            found = self._multipliers(self.constraint.coordinates(t), deadline)[0]
            return self.constraint.of_all(found.mu), 0.0
        near = self._by_dual(t, loss, deadline)
        return self.constraint.of_all(near.mu), near.intercept

    def _by_dual(self, t: np.ndarray, loss: Loss, deadline: Deadline) -> _Nearest:
        """Return the same by Newton steps on the dual."""
        share = self.span.normalized_weight
        deviation = float(np.sqrt(share @ (t - share @ t) ** 2))
        enough = max(_TOLERANCE * deviation, _LEAST_TOLERANCE * float(share @ np.abs(t)))
        dual, tolerance = DualOfLoss(self.constraint, t, loss), max(enough, np.finfo(float).tiny)
        mu, changes, excess, intercept = dual.minimise(tolerance, deadline)
        z = t.copy()
        z[loss.rows] += changes
        is_excess = excess > _ROUNDING * deviation**2 / loss.unit
        return _Nearest(z, mu, excess if is_excess else 0.0, "exact", intercept)
