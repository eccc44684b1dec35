"""Sums of weights and targets in every group: the same without a matrix of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import RankDeficientKernelError
from ._fitted import FittedKernel
from ._indicators import IndicatorKernel
from ._sums import KernelSums, SummedDesign, Sums


class GroupSums(Sums):
    """Sums of weights and targets in every group, part by part, and no matrix of groups.

    Parameters
    ----------
    fitted, origin, n_parts
        As in :class:`Sums`; the kernel numbers the groups.

    Attributes
    ----------
    weights : ndarray of shape (n_parts, g)
        Of each part the sum of w in every group.
    targets : ndarray of shape (n_parts, g, t)
        The same of w (targets − origin).
    products : ndarray of shape (n_parts, t, t)
        Of each part the sum of w (targets − origin)(targets − origin)'.
    squares : ndarray of shape (g,)
        The sum of w² in every group.
    heaviest : ndarray of shape (g,)
        The largest w in every group.
    """

    names = (*Sums.names, "weights", "targets", "products", "squares", "heaviest")

    def __init__(self, fitted: FittedKernel, origin: np.ndarray, n_parts: int) -> None:
        super().__init__(fitted, origin, n_parts)
        g, t = fitted.n_columns + 1, len(origin)
        self.weights = np.zeros((n_parts, g))
        self.targets = np.zeros((n_parts, g, t))
        self.products = np.zeros((n_parts, t, t))
        self.squares, self.heaviest = np.zeros((2, g))

    @property
    def part_weights(self) -> np.ndarray:
        return self.weights.sum(axis=1)

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        heaviest = self.heaviest[self.heaviest > 0]
        return np.arange(float(len(heaviest)))[:, None], heaviest

    def add_rows(
        self, values: np.ndarray, targets: list[np.ndarray], weight: np.ndarray | None
    ) -> bool:
        n_parts, g = self.weights.shape
        codes, z = values[:, 0].astype(int), np.column_stack(targets) - self.origin
        w = np.ones(len(codes)) if weight is None else weight
        # Short chunks fill one part after the other, whichever they began with.
        parts = np.arange(n_parts)
        sizes = len(codes) // n_parts + (parts < len(codes) % n_parts)
        part = (np.repeat(parts, sizes) + self.n_rows) % n_parts
        cell, size = part * g + codes, n_parts * g
        products = np.stack([np.bincount(part, w * a * b, n_parts) for a in z.T for b in z.T])
        if not np.isfinite(products).all():
            return False
        self.products += products.T.reshape(self.products.shape)
        self.weights += np.bincount(cell, w, size).reshape(n_parts, g)
        sums = np.stack([np.bincount(cell, w * own, size) for own in z.T], axis=-1)
        self.targets += sums.reshape(self.targets.shape)
        self.squares += np.bincount(codes, w**2, g)
        np.maximum.at(self.heaviest, codes, w)
        with_constant = np.column_stack([np.ones(len(z)), z])
        self.unweighted += with_constant.T @ with_constant
        self.n_rows += len(codes)
        return True

    def few(self, z: np.ndarray, least: float) -> str:
        """Return which level has fewer rows, or of labels fewer of the rarer one."""
        total = self.weights.sum(axis=0)
        present = np.flatnonzero(total)
        total = total[present]
        # Of unequal weights as many rows as have the same variance.
        size = events = total**2 / self.squares[present]
        if self._are_labels(z):
            rate = self.origin @ z + self.targets.sum(axis=0)[present] @ z / total
            events = np.round(size * np.minimum(rate, 1 - rate))
        worst = int(events.argmin())
        if events[worst] >= least:
            return ""
        words = f"{self.fitted.describe(present[[worst]])} has {size[worst]:.0f} rows"
        if self._are_labels(z):
            words += f", {events[worst]:.0f} of them with the rarer label"
        return words

    def _add(self, other: Any) -> None:
        shift = other.origin - self.origin
        by_part = other.targets.sum(axis=1)
        crossed = by_part[:, :, None] * shift
        self.products += other.products + crossed + np.swapaxes(crossed, 1, 2)
        self.products += other.part_weights[:, None, None] * np.outer(shift, shift)
        self.targets += other.targets + other.weights[..., None] * shift
        self.weights += other.weights
        self.squares += other.squares
        self.heaviest = np.maximum(self.heaviest, other.heaviest)

    def fault(self) -> str | None:
        if (self.weights < 0).any() or (self.squares < 0).any():
            return "negative weights"
        total = self.weights.sum(axis=0)
        if (total**2 > self.n_rows * self.squares * (1 + 1e-9)).any():
            return "weights that no rows have"
        means = self.targets.sum(axis=0) / np.where(total, total, 1.0)[:, None]
        products = self.products.sum(axis=0)
        # Where the groups determine the targets, all that is left of them is rounding.
        within = products - (total * means.T) @ means + 1e-9 * np.diag(np.diag(products))
        return self._fault_of_products(self.products, within)

    def design(
        self, *, columns: np.ndarray | None = None, without: int | None = None
    ) -> GroupMomentDesign:
        kept = np.arange(len(self.weights)) != without
        return GroupMomentDesign(self, kept, np.flatnonzero(self.squares))


class GroupMomentDesign(SummedDesign):
    """The indicators of groups on rows of which only sums are left.

    Parameters
    ----------
    sums : GroupSums
        The sums.
    kept : ndarray of bool
        The parts whose rows count.
    present : ndarray of int
        The groups that have rows in some part.

    Raises
    ------
    RankDeficientKernelError
        If one of them has none here (rank 0: it is the only one).
    """

    fitted: IndicatorKernel

    def __init__(self, sums: GroupSums, kept: np.ndarray, present: np.ndarray) -> None:
        weights, given = sums.weights[kept][:, present].sum(axis=0), sums.fitted
        n_present = int((weights > 0).sum())
        if n_present < max(len(weights), 2):
            raise RankDeficientKernelError.from_rank(n_present - 1, len(weights) - 1, None)
        encoder: Any = given.encoder
        encoder = encoder.of_levels(present)
        self._squares = sums.squares[present]
        self._sums, self.total = sums, float(weights.sum())
        self.fitted = IndicatorKernel(weights / self.total, encoder.names)
        self.fitted.encoder = encoder
        self.fitted.attribute_columns = given.attribute_columns
        self._means = sums.targets[kept][:, present].sum(axis=0) / weights[:, None]
        self._mean = self.fitted.weights @ self._means
        self._products = sums.products[kept].sum(axis=0) / self.total

    def mean(self, z: np.ndarray) -> float:
        return float((self._sums.origin + self._mean) @ z)

    def deviation(self, z: np.ndarray) -> float:
        covariance = self._products - np.outer(self._mean, self._mean)
        return float(np.sqrt(max(z @ covariance @ z, 0.0)))

    def solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kernel, means = self.fitted, (self._means - self._mean) @ z
        return kernel.coordinates(means), (means[1:] - means[0]) * kernel.scale

    def null_noise(self, z: np.ndarray) -> np.ndarray:
        squares = self._squares / self.total**2
        return self._sums.null_variance(z) * squares / self.fitted.weights**2


def sums_of(fitted: FittedKernel, origin: np.ndarray, n_parts: int) -> Sums:
    """Return sums of no row, of the kind that a fitted kernel takes."""
    kind = GroupSums if fitted.has_closed_form else KernelSums
    return kind(fitted, origin, n_parts)
