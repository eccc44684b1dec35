"""The dual of the projection of real targets, once for every loss with a link: Newton steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._deadline import Deadline
from .._geometry import joint_multipliers
from ..constraints import FittedConstraint
from ..exceptions import InfeasibleProjectionError, SolverError
from ._losses import Loss

_MAX_STEPS = 200
# What a step is multiplied by until it helps.
_LENGTHS = 0.5 ** np.arange(40)
# A step is taken at once where the quadratic function errs by no more than this.
_TRUSTED = 0.1
# Share of the tolerance that needs no further step.
_SURE = 1e-3
# Curvature that is added where hardly a row can move, and rounding of what is below 0.
_FLAT, _ROUNDING = 1e-12, 1e-12


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


class NewtonResult(NamedTuple):
    """The minimiser of the dual.

    Attributes
    ----------
    mu : ndarray of shape (Σk,)
        The multipliers μ.
    changes : ndarray
        z − t of the rows that can move.
    excess : float
        How much more than the least the loss of z is, at most.
    intercept : float
        What is added to every move.
    """

    mu: np.ndarray
    changes: np.ndarray
    excess: float
    intercept: float


class Dual:
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

    def minimise(self, tolerance: float, deadline: Deadline) -> NewtonResult:
        """Return the minimiser, whose z has allowed coordinates within a tolerance.

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
            found = joint_multipliers(self._span.blocks, point, hessian, deadline)
            step = hessian @ (found.mu - state.mu)
            after = self._at(found.mu)
            # What leads to the allowed point is the step, where z is as the quadratic function.
            error = float(np.linalg.norm(state.gradient + step - after.gradient))
            # A last step takes out what the added curvature has done to the one before.
            if error <= _SURE * tolerance or (was_near and error <= tolerance):
                excess = self._excess(after, self._span.outward(found)[0])
                changes, _, intercept = self._loss.changes(self._seen @ after.mu)
                return NewtonResult(after.mu, changes, excess, intercept)
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
        if most + support < -_ROUNDING * (abs(reached) + support):
            raise InfeasibleProjectionError.from_support(
                n_positive=len(self._share), **self._constraint.describe()
            )
