r"""The correction of predictions, with the attribute or without it.

Where predictions see the attribute, the correction of a score is Q(x)c, with Q the orthonormal
basis of the kernel. An attribute-blind one is a function of m(X) = E[Q(x) | X] in its place. That
moves the coordinates by E[Q m'] β, so the least one that satisfies a constraint is a nearest point
in another metric (real targets), or the dual of the projection with Q replaced by m (two classes:
for labels that depend on X alone, E[Q z] = E[m z]).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._geometry import pieces
from ..constraints import FittedConstraint
from ..exceptions import InfeasibleProjectionError, silent
from ..projection import Loss, Projection

_MAX_STEPS = 100
# Residual that is 0, relative to the coordinates and multipliers.
_TOLERANCE = 1e-14
# The damping of a step: at first, less after one that helped, more after one that did not. There
# are tries enough for steps that are short beside any rounding.
_DAMPING, _LESS, _MORE, _MAX_TRIES = 1e-3, 0.1, 4.0, 30
# How many starts are drawn where steps from all others miss the constraint.
_STARTS = 10
# Beyond this condition X cannot tell the columns of the kernel apart.
_MAX_CONDITION = 1e8
# How many times larger than with the attribute the correction may be: at one column, the
# reciprocal of the correlation of m(X) with the attribute.
_MAX_RATIO = 10.0
# Rows for every term of a regression on m(X) and the scores; of fewer it would be noise.
_ROWS_PER_TERM = 20


@dataclass
class LinkedRule:
    r"""Predictions that are the link of t and of a move Rμ, under a constraint on the rows.

    The rule is a link of t and of a move Rμ, clip(t + Rμ) or t·exp(ν + Rμ), with R what X says of
    the kernel's columns Q, and is to have allowed coordinates u = E[Q z]. With the attribute R is
    Q, and the least correction is the μ with

    .. math:: u(\mu) = \Pi(u(\mu) - \mu),

    Π the nearest allowed point. The same equation is solved here. As R is not Q, u is the gradient
    of nothing, so that steps are those of Levenberg and Marquardt. Where they end beside that
    equation, any μ of an allowed u will do: u = Π(u), from several starts.

    Parameters
    ----------
    constraint : FittedConstraint
        On the rows, with their attribute.
    t : ndarray of shape (n,)
        Predictions before the correction.
    columns : ndarray of shape (n, K)
        R, a column for each of the joint span of all constraints.
    loss : Loss
        That of targets against t, whose link it is.
    """

    constraint: FittedConstraint
    t: np.ndarray
    columns: np.ndarray
    loss: Loss

    def violation(self, mu: np.ndarray) -> float:
        """Return by how much the predictions miss the constraint, 0 within rounding."""
        return self.constraint.judge(self._targets(mu)).violation

    def multipliers(self, start: np.ndarray) -> np.ndarray:
        """Return μ of allowed predictions, or of those that miss the constraint least."""
        best = self._solve(start, 1.0)
        least = self.violation(best)
        drawn = np.random.default_rng(0).normal(size=(_STARTS, len(start)))
        starts = [best, start, np.zeros(len(start)), *np.linalg.norm(start) * drawn]
        while least > 0.0 and starts:
            found = self._solve(starts.pop(0), 0.0)
            missed = self.violation(found)
            if missed < least:
                best, least = found, missed
        return best

    def _targets(self, mu: np.ndarray) -> np.ndarray:
        return self.t + self.loss.changes(self._move(mu))[0]

    def intercept(self, mu: np.ndarray) -> float:
        """Return what is added to every move."""
        return self.loss.changes(self._move(mu))[2]

    def _move(self, mu: np.ndarray) -> np.ndarray:
        return self.columns @ self.constraint.span.joined(mu)

    def _solve(self, mu: np.ndarray, pull: float) -> np.ndarray:
        """Return where steps end that make u − Π(u − pull · μ) smaller."""
        (left, derivative, scale), damping = self._residual(mu, pull), _DAMPING
        for _ in range(_MAX_STEPS):
            size = float(np.linalg.norm(left))
            if size <= _TOLERANCE * scale:
                break
            for _ in range(_MAX_TRIES):
                own = np.sqrt(damping) * self.loss.unit * np.eye(len(mu))
                damped = np.vstack([derivative, own])
                step = np.linalg.lstsq(damped, np.r_[-left, np.zeros(len(mu))], rcond=None)[0]
                after = self._residual(mu + step, pull)
                if np.linalg.norm(after[0]) < size:
                    break
                damping *= _MORE
            else:
                break
            mu, damping = mu + step, damping * _LESS
            left, derivative, scale = after
        return mu

    def _residual(self, mu: np.ndarray, pull: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Return u − Π(u − pull · μ), its derivative, and the size of what it is made of.

        μ is taken in the unit of u.
        """
        pull *= self.loss.unit
        span, changes = self.constraint.span, self.loss.changes(self._move(mu))[0]
        rates = span.normalized_weight * self.loss.rates(changes)
        slope = (span.q * rates[:, None]).T @ self.columns
        if self.loss.keeps_mean:
            slope -= np.outer(rates @ span.q, rates @ self.columns) / rates.sum()
        slope = span.stacked @ slope @ span.stacked.T
        u = span.stacked @ self.constraint.coordinates(self.t + changes)
        left, inward = np.empty(len(u)), np.zeros_like(slope)
        end = 0
        for own in span.blocks:
            rows = slice(end, end := end + own.size)
            wanted = u[rows] - pull * mu[rows]
            nearest, v = own.nearest(wanted)
            left[rows] = u[rows] - nearest
            inward[rows, rows] = own.derivative(wanted, v)
        derivative = slope - inward @ slope + pull * inward
        return left, derivative, float(np.linalg.norm(u) + self.loss.unit * np.linalg.norm(mu))


class Correction(NamedTuple):
    """What leads from scores to corrected ones.

    Attributes
    ----------
    coordinates : ndarray
        c of every constraint and class, one after another, in the columns of the kernels.
    intercept : float
        ν, with which corrections that multiply keep the mean.
    """

    coordinates: np.ndarray
    intercept: float = 0.0


class _Expected:
    """What X says of the columns of Q, in the place of a design.

    Parameters
    ----------
    columns : ndarray of shape (n, k)
        m(X), for rows that its learner has not seen.
    share : ndarray of shape (n,)
        Weights of the rows, summing to 1.
    """

    def __init__(self, columns: np.ndarray, share: np.ndarray) -> None:
        self.keys, self._share = columns, share

    def orthonormal_of(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows of m(X)."""
        return self.keys[rows]

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        """Return what is expected of the coordinates of a target."""
        return (z * self._share) @ self.keys


def attribute_blind_correction(
    projection: Projection, p: np.ndarray, expected: np.ndarray
) -> Correction:
    """Return the β of least ‖mβ‖ with p + mβ allowed, for real targets.

    Between bounds it is p + mβ cut there that is allowed, if any such β is found, and at loss="kl"
    p·exp(ν + mβ).

    Parameters
    ----------
    projection : Projection
        Of real targets.
    p : ndarray of shape (n,)
        Predictions.
    expected : ndarray of shape (n, Σk)
        m(X) of the kernels of all constraints, for rows that its learner has not seen.

    Returns
    -------
    Correction

    Raises
    ------
    InfeasibleProjectionError
        If X says too little of the attribute to correct for it.
    """
    p, expected = projection.counted(p), projection.counted(expected)
    constraint, loss = projection.fitted_constraint_, projection.loss_against(p)
    if constraint.judge(p + loss.changes(np.zeros(len(p)))[0]).violation == 0.0:
        return Correction(np.zeros(expected.shape[1]))
    _require_explained(constraint, expected)
    span = constraint.span
    # The kernels may overlap; what X says of an orthonormal basis of all is linear in it.
    to_columns = np.linalg.pinv(span.stacked.T)
    expected = expected[:, constraint.in_span] @ to_columns
    weighted = np.sqrt(span.normalized_weight)[:, None] * expected
    factor = np.asarray(np.linalg.qr(weighted, mode="r"))
    moved = span.q.T @ (span.normalized_weight[:, None] * expected)
    if max(np.linalg.cond(factor), np.linalg.cond(moved)) > _MAX_CONDITION:
        raise _too_blind(constraint)
    # In coordinates y of mβ, those of the targets are x + Ly.
    root = np.linalg.solve(factor.T, moved.T).T
    x = constraint.coordinates(p)
    mu, aware = span.multipliers(x, root @ root.T).mu, span.multipliers(x).mu
    rule = LinkedRule(constraint, p, expected @ np.linalg.solve(factor, root.T), loss)
    if not loss.is_linear:
        mu = rule.multipliers(mu / loss.unit)
        aware = LinkedRule(constraint, p, span.q, loss).multipliers(aware / loss.unit)
    step = root.T @ span.joined(mu)
    if np.linalg.norm(step) > _MAX_RATIO * np.linalg.norm(span.joined(aware)):
        raise _too_blind(constraint)
    beta = np.linalg.solve(factor, step)
    if not loss.is_linear:
        return Correction(constraint.of_all(to_columns @ beta), rule.intercept(mu))
    # What rounding has left, taken out once more: raw coefficients multiply it.
    left = x + root @ step - constraint.coordinates(p + expected @ beta)
    beta = beta + np.linalg.solve(moved, left)
    constraint.judge(p + expected @ beta).warn_rounding()
    return Correction(constraint.of_all(to_columns @ beta))


@dataclass(frozen=True)
class Recalibration:
    """What the columns of the kernel are, given m(X) and the scores of a rule.

    The labels of a rule depend on the scores p, and where m(X) errs in step with them, E[m z] is
    not E[Q z]. A regression of Q on m, p, p² and p m takes out what errs so.

    Attributes
    ----------
    coefficients : ndarray of shape (terms, k) or None
        None leaves m(X) as it is.
    """

    coefficients: np.ndarray | None

    @classmethod
    def fit(cls, projection: Projection, p: np.ndarray, expected: np.ndarray) -> Recalibration:
        """Regress the columns on what cross-fitted predictions say of the rows that count."""
        constraint = projection.fitted_constraint_
        p, expected = projection.counted(p), projection.counted(expected)
        terms = _terms(p, expected)
        if len(terms) < _ROWS_PER_TERM * terms.shape[1] or not _explains(constraint, expected):
            return cls(None)
        root = np.sqrt(constraint.weight)[:, None]
        return cls(np.linalg.lstsq(root * terms, root * constraint.orthonormal, rcond=None)[0])

    def __call__(self, p: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Return the columns that are expected of rows."""
        return expected if self.coefficients is None else _terms(p, expected) @ self.coefficients


def _terms(p: np.ndarray, expected: np.ndarray) -> np.ndarray:
    scores = p[:, None] if p.ndim == 1 else p[:, 1:]
    products = [score[:, None] * expected for score in scores.T]
    return np.hstack([np.ones((len(p), 1)), expected, scores, scores**2, *products])


def score_correction(
    projection: Projection,
    p: np.ndarray,
    expected: np.ndarray | None,
    share: float,
    start: np.ndarray | None = None,
    *,
    tolerance: float = 1e-6,
) -> tuple[np.ndarray, np.ndarray]:
    """Return c such that a threshold on p + Q(x)c, or its largest entry, solves the relaxation.

    Parameters
    ----------
    projection : Projection
        Of classes.
    p : ndarray of shape (n,) or (n, K)
        Probabilities of the second of two classes, which wins above ½, or of every class.
    expected : ndarray of shape (n, Σk) or None
        m(X) in the place of Q(x), for a rule that does not see the attribute.
    share : float
        Share of the threshold that may be used.
    start : ndarray, default=None
        What was returned beside the correction at another share.
    tolerance : float, default=1e-6
        How far from its optimum the relaxation may be, in rows that are decided against certainty.

    Returns
    -------
    correction : ndarray
        c of every constraint and class, one after another.
    start : ndarray
        Where to start from at another share.

    Raises
    ------
    InfeasibleProjectionError
        If X says nothing of the attribute.
    """
    p, constraint = projection.counted(p), projection.fitted_constraint_
    if expected is not None:
        expected = projection.counted(expected)
        _require_explained(constraint, expected)
        constraint = _seen_through(constraint, expected)
    # A row costs 1 − 2p − Q(x)λ / Σw in the second of two classes, else 1 − p − Q(x)λ / Σw in each.
    share_of_row = constraint.weight.sum() * (2 if constraint.n_classes == 2 else 1)
    scaled = constraint.scaled(share)
    multipliers, start = projection.relaxed_multipliers(p, scaled, tolerance, start)
    correction = multipliers / share_of_row
    return correction if constraint.n_classes == 2 else _centred(constraint, correction), start


def _centred(constraint: FittedConstraint, correction: np.ndarray) -> np.ndarray:
    """Return what tells several classes apart; what all have in common grows without any limit."""
    n_classes = constraint.n_classes
    sizes = [n_classes * parts[0].kernel.n_columns for parts in constraint.listed]
    of_class = [own.reshape(n_classes, -1) for own in pieces(correction, sizes) if own.size]
    return np.concatenate([(own - own.mean(axis=0)).ravel() for own in of_class])


def _seen_through(constraint: FittedConstraint, expected: np.ndarray) -> FittedConstraint:
    """Return constraints on m(X) in the place of the columns of their kernels."""
    ends = np.cumsum([parts[0].kernel.n_columns for parts in constraint.listed])
    listed, share = [], constraint.weight / constraint.weight.sum()
    own = np.split(expected, ends[:-1], axis=1)
    for parts, columns in zip(constraint.listed, own, strict=True):
        design = _Expected(columns, share)
        listed.append([part.with_block(part.block.altered(design=design)) for part in parts])
    return replace(constraint, listed=listed)


def _require_explained(constraint: FittedConstraint, expected: np.ndarray) -> None:
    """Refuse an m(X) that is no better than the mean for any column of Q.

    High degrees have tails that a learner overfits, so one column that it knows is enough.
    """
    if not _explains(constraint, expected):
        raise _too_blind(constraint)


def _explains(constraint: FittedConstraint, expected: np.ndarray) -> bool:
    columns, share = constraint.orthonormal, constraint.weight / constraint.weight.sum()
    return bool((share @ (columns - expected) ** 2 < share @ columns**2).any())


def _too_blind(constraint: FittedConstraint) -> InfeasibleProjectionError:
    facts = constraint.describe()
    return InfeasibleProjectionError(
        "sensitive_at_predict=False: the other columns of X predict the attribute too poorly to "
        f"correct for it ({facts['n_columns']} kernel column(s), {facts['n_rows']} rows). Lower "
        "the degree, raise `threshold`, give another `attribute_estimator`, or pass the attribute "
        "at prediction time."
    )


class Fold(NamedTuple):
    """Some rows, and the projection of the others.

    Attributes
    ----------
    train, test : ndarray of int
        The other rows, and these.
    projection : Projection
        The constraint on the other rows.
    columns : ndarray of shape (rows of test, k)
        What their correction is linear in: Q(x), with Q orthonormal on the other rows, or m(X).
    """

    train: np.ndarray
    test: np.ndarray
    projection: Projection
    columns: np.ndarray


class CrossCorrection:
    """Corrected scores of every row, by the correction of the other folds.

    Parameters
    ----------
    constraint : FittedConstraint
        On all rows. The folds have its bounds, which may be shares of references of its own.
    scores : ndarray of shape (n,) or (n, K)
        Scores of the rows, by models that have not seen them.
    correct : callable
        Takes a projection of some rows and their positions, and returns their correction.
    apply : callable
        Takes scores, what the correction is of them, and its intercept, and returns corrected ones.
    folds : sequence of Fold
        Their test rows are all rows; none of too few rows.
    """

    def __init__(
        self,
        constraint: FittedConstraint,
        scores: np.ndarray,
        correct: Callable[[Projection, np.ndarray], Correction],
        apply: Callable[..., np.ndarray],
        folds: Sequence[Fold],
    ) -> None:
        self._references = np.array([part.reference for part in constraint.parts])
        self._scores = scores
        self._correct, self._apply = correct, apply
        self._folds = folds
        self._known: dict[float, np.ndarray | None] = {}

    def at(self, share: float) -> np.ndarray | None:
        """Return scores corrected to a share of the bound; None where that cannot be done."""
        if share not in self._known:  # the certificate and the verdict ask for the same
            self._known[share] = self._corrected(share)
        return self._known[share]

    def _corrected(self, share: float) -> np.ndarray | None:
        corrected = self._scores.copy()
        for train, test, projection, columns in self._folds:
            constraint = projection.fitted_constraint_
            own = np.array([part.reference for part in constraint.parts])
            stricter = projection.scaled(share * self._references / own)
            try:
                with silent():
                    correction = self._correct(stricter, train)
            except InfeasibleProjectionError:
                return None
            shift = columns @ constraint.by_column(correction.coordinates).T
            corrected[test] = self._apply(corrected[test], shift, correction.intercept)
        return corrected if self._folds else None
