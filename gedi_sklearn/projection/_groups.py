"""Rows of a binary projection: what they cost, what they add to the bounded v, and their groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..constraints import AllowedSet
from ..kernels import KernelDesign, row_blocks

__all__ = ["LOG_LOSS_MARGIN", "Groups", "costs", "mix_ranges", "row_effects", "row_scale"]

# log(0) is cut here: a flip against certainty costs log((1 − ε) / ε) = 6.9.
LOG_LOSS_MARGIN = 1e-3
# Ranges (quantiles) of the effect on a row of v whose nearest groups take turns at the front of
# the core, and how many turns.
_EFFECT_RANGES = 8
_TURNS = 3


def costs(
    y: np.ndarray, p: np.ndarray | None, target_weight: float, loss: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's loss at z = 1 minus that at z = 0, and the loss at z = 0.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Original targets, 0 or 1.
    p : ndarray of shape (n,) or None
        Predictions in [0, 1]; None for the loss against y alone.
    target_weight : float
        Weight of the loss against y, beside predictions.
    loss : {"hamming", "log_loss"}
        Hamming distance (its mean, for probabilities) or the negative log likelihood.

    Returns
    -------
    difference, at_zero : ndarray of shape (n,)
    """
    terms = [(y, 1.0)] if p is None else [(p, 1.0), (y, target_weight)]
    difference, at_zero = np.zeros(len(y)), np.zeros(len(y))
    for probability, factor in terms:
        if loss == "hamming":
            difference += factor * (1 - 2 * probability)
            at_zero += factor * probability
        else:
            clipped = np.clip(probability, LOG_LOSS_MARGIN, 1 - LOG_LOSS_MARGIN)
            difference += factor * (np.log1p(-clipped) - np.log(clipped))
            at_zero -= factor * np.log1p(-clipped)
    return difference, at_zero


def row_effects(
    design: KernelDesign,
    allowed: AllowedSet,
    rows: slice | np.ndarray,
    share: np.ndarray,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Return A = V R⁻¹Q'W, shape (r, n): what a 1 in a row adds to the bounded v.

    Parameters
    ----------
    design : KernelDesign
        The kernel on the rows.
    allowed : AllowedSet
        The constraint.
    rows : slice or ndarray of int, shape (n,)
        Which rows.
    share : ndarray of shape (n,)
        Their weights over the sum of all weights.
    out : ndarray of shape (r, n), default=None
        Where to put the result.

    Returns
    -------
    ndarray of shape (r, n)
    """
    to_v = allowed.rows @ design.fitted.R_inverse
    chosen = np.arange(design.n_rows)[rows]
    effects = np.empty((len(to_v), len(chosen))) if out is None else out
    for block in row_blocks(len(chosen)):
        effects[:, block] = to_v @ design.orthonormal_of(chosen[block]).T * share[block]
    return effects


def row_scale(effects: np.ndarray) -> np.ndarray:
    """Return the largest entry of every row, 1 for a row of zeros."""
    largest = np.maximum(effects.max(axis=1, initial=0.0), -effects.min(axis=1, initial=0.0))
    return np.where(largest == 0, 1.0, largest)


@dataclass(frozen=True)
class Groups:
    """Rows sorted so that interchangeable ones stand together, the likeliest ones first.

    `order` (n,) sorts the rows; group g is order[start[g] : start[g] + size[g]], and each of its
    rows costs cost[g] and adds scale · matrix[:r, g] to v, with r the length of scale. What else
    there is in the matrix is the rest of the integer model.
    """

    order: np.ndarray
    start: np.ndarray
    size: np.ndarray
    cost: np.ndarray
    matrix: np.ndarray
    scale: np.ndarray

    @property
    def n(self) -> int:
        return len(self.start)

    @property
    def scaled_effects(self) -> np.ndarray:
        """What a one of every group adds to v / scale, shape (r, g)."""
        return self.matrix[: len(self.scale), : self.n]

    def effects(self, groups: np.ndarray) -> np.ndarray:
        """Return what a one of some groups adds to v, shape (r, groups)."""
        return self.scaled_effects[:, groups] * self.scale[:, None]

    def v(self, counts: np.ndarray) -> np.ndarray:
        """Return v of counts, shape (r,)."""
        return self.scale * (self.scaled_effects @ counts)

    def price(self, counts: np.ndarray) -> float:
        """Return the cost of counts."""
        return float(self.cost @ counts)

    def rows_of_classes(self, counts: np.ndarray) -> np.ndarray:
        """Return the numbers of zeros and of ones, shape (2,)."""
        ones = counts.sum()
        return np.array([len(self.order) - ones, ones])

    def fault(self, counts: np.ndarray) -> str | None:
        """Return why counts are none of these groups, None where they are."""
        outside = (counts < 0).any() or (counts > self.size).any()
        return "counts outside of their bounds" if outside else None

    def spread(self, counts: np.ndarray) -> np.ndarray:
        """Return z with the first counts[g] rows of every group set to 1."""
        rank = np.arange(len(self.order)) - np.repeat(self.start, self.size)
        z = np.empty(len(self.order))
        z[self.order] = rank < np.repeat(counts, self.size)
        return z

    def counts(self, z: np.ndarray) -> np.ndarray:
        """Return the number of ones of z in every group."""
        return np.add.reduceat(z[self.order], self.start)


def mix_ranges(nearest: np.ndarray, effects: np.ndarray) -> np.ndarray:
    """Let the nearest groups of every range of effects on every row of v take turns at the front.

    The nearest groups of all can have much the same attribute value; steps that together restore
    several rows of v need different ones.
    """
    parts = [nearest[:_TURNS]]
    for row in effects:
        edges = np.quantile(row, np.linspace(0, 1, _EFFECT_RANGES + 1)[1:-1])
        member = np.searchsorted(edges, row[nearest]).astype(np.int8)
        for one in range(_EFFECT_RANGES):
            parts.append(nearest[np.flatnonzero(member == one)[:_TURNS]])
    turns = [part[turn] for turn in range(_TURNS) for part in parts if turn < len(part)]
    front = np.asarray(list(dict.fromkeys(turns)), dtype=int)
    return np.r_[front, nearest[~np.isin(nearest, front)]]
