"""Labels of corrected scores: the correction whose labels meet a constraint at the least error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._geometry import pieces
from ..constraints import FittedConstraint

# A threshold on scores meets a constraint up to ties, and an attribute-blind one up to the errors
# of m(X). If it does not, the largest fraction of the bound at which it does is looked for: how
# many are tried, and how near to the largest one is enough at best, and where a row is a large part
# of the bound.
_ATTEMPTS, _NEAR_ENOUGH = 7, (1 / 128, 1 / 16)
# Further fractions of a bound beside which coefficients may be nothing but a slack.
_FRACTIONS = (0.97, 0.94)
# Labels that miss a constraint by more than this share of its unit are not near to it.
_NEARLY = 0.1
# Rows that the relaxation splits are tied, so that nudges of c decide them one way or another:
# how many are tried, and the least and the largest size, in shares of a row: they move few others.
_NUDGES, _NUDGE = 300, (0.003, 1.0)
# Scores this near to 1/2 are 1/2: the correction puts rows there, and rounding is to move none.
TIE = 1e-12
# Steps of length STEP / √t. The multipliers are within 1 or so, since they shift probabilities.
_STEPS, _STEP = 1000, 1.0
# The last steps, which swing around the end.
_TAIL = 200


class Tried(NamedTuple):
    """By how much the labels of a correction miss the constraint, and how many are likely wrong."""

    violation: float
    error: float
    c: np.ndarray

    def order(self, nearly: float = 0.0) -> tuple[float, float]:
        """Return what is least of the best one; violations above 0, up to `nearly`, are alike."""
        return max(self.violation, nearly) if self.violation else 0.0, self.error


@dataclass
class LabelRule:
    """The largest of corrected scores, on rows whose attribute is known.

    Parameters
    ----------
    constraint : FittedConstraint
        On the rows.
    scores : ndarray of shape (n,) or (n, K)
        Probabilities of the second of two classes, which wins above 1/2, or of every class.
    columns : array-like of shape (n, Σk)
        What the correction is a function of: Q(x), or m(X) where it does not see the attribute.
    """

    constraint: FittedConstraint
    scores: np.ndarray
    columns: Any

    def decided(self, c: np.ndarray) -> np.ndarray:
        """Return the classes (n,) that a correction decides on."""
        return codes_of(self.scores + self.columns @ self.constraint.by_column(c).T)

    def judged(self, c: np.ndarray) -> Tried:
        """Return what the labels of a correction are worth."""
        codes = self.decided(c)
        error = float(self._share @ _expected_errors(self.scores, codes))
        return Tried(self.constraint.judge(codes).violation, error, c)

    def nearest(self, corrections: Iterable[np.ndarray]) -> Tried:
        """Return the correction that misses the constraint least."""
        return min(map(self.judged, corrections), key=Tried.order)

    def search(self, attempt: Callable[[float], Tried]) -> np.ndarray:
        """Return the correction of the largest fraction of the bound that meets the constraint.

        Where none does, it is one that comes near to it.

        Parameters
        ----------
        attempt : callable
            From a fraction of the bound to a correction for it.
        """
        best = attempt(1.0)
        if best.violation > 0.0 and self._has_slack:
            # Of so narrow a bound a small share is no nearer to the labels' steps than all of it.
            ends = [best, *map(attempt, _FRACTIONS)]
            tried = [own for end in ends for own in self._nudged(end)]
            nearly = self._step
            return min(tried, key=lambda own: own.order(nearly)).c
        low, high, near = 0.0, 1.0, self._near_enough
        step = near
        for _ in range(_ATTEMPTS if best.violation > 0.0 else 0):
            # It is mostly missed by a row or two: what is near to the whole bound comes first.
            fraction = max(high - step, (low + high) / 2)
            found = attempt(fraction)
            low, high = (fraction, high) if found.violation == 0.0 else (low, fraction)
            if found.violation <= best.violation:
                best = found
            if high - low <= near * (1 + 1e-9):
                break
            step *= 4
        return best.c if best.violation == 0.0 else min(self._nudged(best), key=Tried.order).c

    @cached_property
    def _share(self) -> np.ndarray:
        return self.constraint.weight / self.constraint.weight.sum()

    @property
    def _has_slack(self) -> bool:
        """Whether a coefficient may be nothing but a slack, which labels hardly hit."""
        return any(part.allowed.slack_units().any() for part in self.constraint.parts)

    @property
    def _near_enough(self) -> float:
        """The fraction of a bound that a row is, within limits."""
        limits = np.concatenate([np.ravel(part.allowed.limits) for part in self.constraint.parts])
        least = limits.min(initial=np.inf, where=limits > 0)
        return float(np.clip(self._size_of_a_row / least, *_NEAR_ENOUGH))

    @property
    def _size_of_a_row(self) -> float:
        """What a row adds to a coefficient by chance, one for each coefficient."""
        blocks = [part.block for part in self.constraint.parts]
        largest = max(own.size**0.5 * np.linalg.norm(own.operator, axis=1).max() for own in blocks)
        return float(largest) * self._row

    @property
    def _step(self) -> float:
        """What rows that the relaxation splits make by chance, one for each coefficient."""
        unit = min(part.allowed.unit for part in self.constraint.parts)
        return min(self._size_of_a_row, _NEARLY * unit)

    @cached_property
    def _row(self) -> float:
        """The share of the weight that a row has, of a typical one; rows of one score are one."""
        first = np.round(self.scores if self.scores.ndim == 1 else self.scores[:, 0], 12)
        share = np.bincount(np.unique(first, return_inverse=True)[1], weights=self._share)
        return float(share @ share)

    def _nudged(self, found: Tried) -> list[Tried]:
        """Return a correction with others close to it."""
        sizes = self._row * np.geomspace(*_NUDGE, _NUDGES)[:, None]
        nudges = sizes * np.random.default_rng(0).normal(size=(_NUDGES, len(found.c)))
        return [found, *map(self.judged, found.c + nudges)]


def codes_of(scores: np.ndarray) -> np.ndarray:
    """Return the class, 0…K − 1, of scores: of the second of two classes, or of every class."""
    if scores.ndim == 1:
        return (scores > 0.5 + TIE).astype(int)
    # The first one of those that rounding alone tells apart.
    return (scores >= scores.max(axis=1, keepdims=True) - TIE).argmax(axis=1)


def _expected_errors(p: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the probabilities that classes are wrong, shape (n,)."""
    if p.ndim == 1:
        return np.where(codes == 1, 1 - p, p)
    return 1 - np.take_along_axis(p, codes[:, None], axis=1)[:, 0]


def ascend(
    constraint: FittedConstraint, decide: Callable[[np.ndarray], np.ndarray], start: np.ndarray
) -> Iterator[np.ndarray]:
    r"""Yield the corrections near to which the ascent comes to rest, their mean first.

    The rule is to bound :math:`c(z) = E[Q z]` of its labels z, but knows m(X) alone. A relaxation
    that puts m in the place of Q takes E[m z] for that, and errors of m(X) are in proportion to z:
    it ends well beside its bound. Here the labels are cut, and c(z) is measured with the attribute
    of the rows: the dual ascent :math:`\lambda \leftarrow v - \eta\,\Pi(v / \eta)`, v = λ + η c(z),
    with Π the nearest allowed point, rests where c(z) is allowed and λ points out of its set there.

    Parameters
    ----------
    constraint : FittedConstraint
        On the rows, with their attribute.
    decide : callable
        From a correction to the classes (n,) of the rows.
    start : ndarray
        The first correction: c of every constraint and class, one after another.
    """
    if any(len(part.outputs) > 1 for part in constraint.parts):
        # One set of the columns of all classes, whose nearest point is in none of their bases.
        yield start
        return
    share = constraint.weight / constraint.weight.sum()
    weighted = [parts[0].design.orthonormal * share[:, None] for parts in constraint.listed]
    c, tail = start, []
    for step in range(1, _STEPS + 1):
        columns = constraint.columns(decide(c))
        seen = np.concatenate([(columns.T @ own).ravel() for own in weighted])
        length = _STEP / np.sqrt(step)
        # The correction is −λ.
        point = seen - c / length
        c = length * (_nearest(constraint, point) - point)
        if step > _STEPS - _TAIL:
            tail.append(c)
    yield np.mean(tail, axis=0)
    yield from tail


def _nearest(constraint: FittedConstraint, point: np.ndarray) -> np.ndarray:
    """Return the allowed coordinates nearest to given ones, those of all parts."""
    blocks = [part.block for part in constraint.parts]
    own = zip(blocks, pieces(point, [block.size for block in blocks]), strict=True)
    return np.concatenate([block.nearest(c)[0] for block, c in own])
