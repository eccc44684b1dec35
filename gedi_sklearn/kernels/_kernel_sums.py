"""Sums over rows from which every coefficient follows: for data that come in chunks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import IllConditionedKernelWarning, RankDeficientKernelError
from ._covariates import RANK_TOLERANCE
from ._factorization import are_far_from_parallel
from ._fitted import FittedKernel
from ._moments import sum_products
from ._sums import SummedDesign, Sums

# Where the columns of all rows are this far from orthonormal, coefficients have lost digits.
_LARGEST_CONDITION = 1e6
# Rows of a run whose sums take longer than the calls that ask for them.
_RUN = 1000


class KernelSums(Sums):
    """Sums of products of a kernel's columns and of targets, part by part.

    The columns are those of a kernel that is fitted beforehand, orthonormal on the rows that it
    was fitted on. So the sums are well scaled, they can be added up in any order, and a linear
    map leads from them to the columns that are orthonormal on all rows.

    Parameters
    ----------
    fitted, origin, n_parts
        As in :class:`Sums`.

    Attributes
    ----------
    products : ndarray of shape (n_parts, d, d)
        Of each part the sum of w a a', a = (1, Q, targets − origin), d = 1 + k + t.
    squares : ndarray of shape (1 + k, 1 + k)
        The sum of w² (1, Q)(1, Q)'.
    end_values, end_weights : ndarray of shape (2m, m) and (2m,)
        The rows with the smallest and the largest value of every attribute, and their weights,
        0 where there are none yet.
    are_powers : bool
        Whether the columns are powers of one attribute, and sums of powers are taken.
    """

    names = (*Sums.names, "products", "squares", "end_values", "end_weights")
    fixed = ("center", "root", "to_raw")

    def __init__(self, fitted: FittedKernel, origin: np.ndarray, n_parts: int) -> None:
        super().__init__(fitted, origin, n_parts)
        k, t = fitted.n_columns, len(origin)
        # Sums of columns as they are are cheaper, and as good where these are far from parallel.
        root = np.eye(1 + k)
        root[0, 1:], root[1:, 1:] = fitted.center_, fitted.R_
        self._is_of_columns = are_far_from_parallel(root.T @ root)
        self.are_powers = fitted.is_single_polynomial and self._is_of_columns
        self._to_orthonormal = np.eye(1 + k + t)
        if self._is_of_columns:
            self._to_orthonormal[0, 1 : k + 1] = -fitted.center_ @ fitted.R_inverse
            self._to_orthonormal[1 : k + 1, 1 : k + 1] = fitted.R_inverse
        m = fitted.range_.shape[1]
        self.products = np.zeros((n_parts, 1 + k + t, 1 + k + t))
        self.squares = np.zeros((1 + k, 1 + k))
        self.end_values, self.end_weights = np.zeros((2 * m, m)), np.zeros(2 * m)

    @property
    def part_weights(self) -> np.ndarray:
        return self.products[:, 0, 0]

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        return self.end_values, self.end_weights

    def add_rows(
        self, values: np.ndarray, targets: list[np.ndarray], weight: np.ndarray | None
    ) -> bool:
        parts, k = self._next_parts(len(values)), self.fitted.n_columns
        extremes: list[int] = []  # rows with the smallest and the largest values of blocks

        def write_columns(rows: slice, out: np.ndarray) -> None:
            own = values[rows]
            if self._is_of_columns:
                self.fitted.basis.evaluate(own, out)
            else:
                self.fitted.write_orthonormal(own, out)
            # Now that the block is in the cache; column by column, which numpy does several times
            # as fast as along an axis.
            for column in own.T:
                extremes.extend((rows.start + column.argmin(), rows.start + column.argmax()))

        with np.errstate(over="ignore", invalid="ignore"):
            sums = sum_products(
                write_columns,
                len(values),
                targets,
                [None] if weight is None else [weight, weight**2, None],
                origin=self.origin,
                n_columns=k,
                are_powers=self.are_powers,
                n_parts=len(parts),
            )
            sums = self._to_orthonormal.T @ sums @ self._to_orthonormal
        if not np.isfinite(sums).all():
            return False
        self.products[parts] += sums[:, 0]
        total = sums.sum(axis=0)
        squares, unweighted = total[[0, 0] if weight is None else [1, 2]]
        measured = [0, *range(k + 1, len(unweighted))]
        self.squares += squares[: k + 1, : k + 1]
        self.unweighted += unweighted[measured][:, measured]
        self.n_rows += len(values)
        own = values[extremes]
        rows = np.asarray(extremes)[[*own.argmin(axis=0), *own.argmax(axis=0)]]
        self._add_ends(values[rows], np.ones(len(rows)) if weight is None else weight[rows])
        return True

    def _next_parts(self, n_rows: int) -> np.ndarray:
        """Return the parts that rows are dealt to, each of which gets a run of them.

        Short chunks fill one part after the other, whichever they began with. Once all parts have a
        run of some length, which costs no more than its rows do, no shorter runs are needed.
        """
        n_parts = len(self.products)
        if self.n_rows < n_parts * _RUN:
            n_runs, first = n_parts, self.n_rows
        else:
            n_runs, first = min(max(n_rows // _RUN, 1), n_parts), self.n_rows // _RUN
        return (first + np.arange(n_runs)) % n_parts

    def _add_ends(self, values: np.ndarray, weight: np.ndarray) -> None:
        """Keep the rows with the extremes of each attribute, the heavier one of equals."""
        new, old = _ends(values), _ends(self.end_values)
        is_better = (old < new) | ((old == new) & (self.end_weights >= weight))
        kept = (self.end_weights > 0) & ((weight == 0) | is_better)
        self.end_values = np.where(kept[:, None], self.end_values, values)
        self.end_weights = np.where(kept, self.end_weights, weight)

    def _add(self, other: Any) -> None:
        d, t = self.products.shape[1], len(self.origin)
        shift = np.eye(d)
        shift[d - t :, 0] = other.origin - self.origin
        self.products += shift @ other.products @ shift.T
        self.squares += other.squares
        self._add_ends(*other.ends)

    @property
    def has_constant(self) -> bool:
        """Whether an attribute has one value in all rows."""
        low, high = np.split(self.end_values, 2)
        return bool((np.diag(low) == np.diag(high)).any())

    def state(self) -> dict[str, np.ndarray]:
        fitted = self.fitted
        basis = {"center": fitted.center_, "root": fitted.R_, "to_raw": fitted.basis.to_raw}
        return {**basis, **super().state()}

    def fault(self) -> str | None:
        total = self.products.sum(axis=0)
        if (self.part_weights < 0).any() or (self.end_weights <= 0).any():
            return "negative weights"
        if total[0, 0] ** 2 > self.n_rows * self.squares[0, 0] * (1 + 1e-9):
            return "weights that no rows have"
        return self._fault_of_products(self.products, total, self.squares)

    def design(
        self, *, columns: np.ndarray | None = None, without: int | None = None
    ) -> MomentDesign:
        products = self.products.sum(axis=0)
        if without is not None:
            products = products - self.products[without]
        return MomentDesign(self, products, columns)


class MomentDesign(SummedDesign):
    """A kernel on rows of which only sums are left.

    Attributes
    ----------
    condition : float
        Condition of the columns that were summed up, each scaled, and of their centring.
    """

    def __init__(
        self, sums: KernelSums, products: np.ndarray, columns: np.ndarray | None = None
    ) -> None:
        k, given = sums.fitted.n_columns, sums.fitted
        self._sums = sums
        self.total = products[0, 0]
        means = products[0] / self.total
        self._column_means = means[1 : k + 1]
        covariance = products / self.total - np.outer(means, means)
        self._target_means = sums.origin + means[k + 1 :]
        self._target_covariance = covariance[k + 1 :, k + 1 :]
        own = covariance[1 : k + 1, 1 : k + 1]
        # What is subtracted from the sums of squares, over what remains.
        with np.errstate(divide="ignore"):
            self.condition = float(
                np.divide(1 + self._column_means**2, np.maximum(np.diag(own), 0.0)).max()
            )
        try:
            self._factor, condition = _upper_factor(own, self._column_means)
        except RankDeficientKernelError:
            if self.is_ill_conditioned and not sums.has_constant:
                raise ValueError(IllConditionedKernelWarning.from_reference(np.inf)) from None
            raise
        self.condition = max(self.condition, condition)
        coordinates = np.linalg.solve(self._factor.T, covariance[1 : k + 1, k + 1 :])
        chosen = np.arange(k) if columns is None else columns
        center = given.center_ + means[1 : k + 1] @ given.R_
        # R of all columns, and with it the orthonormal basis, leads to those of some.
        R = self._factor @ given.R_
        basis = given.basis.restandardized(center, R)
        self._turn = np.eye(k)
        if columns is not None:
            basis = basis.of_columns(columns)
            self._turn, R = np.linalg.qr(R[:, columns])
            signs = np.where(np.diag(R) < 0, -1.0, 1.0)
            self._turn, R = self._turn * signs, R * signs[:, None]
        self._coordinates = self._turn.T @ coordinates
        names = [given.names[j] for j in chosen]
        self.fitted = FittedKernel(given.kernel, basis, names, given.n_attributes, given.encoder)
        self.fitted.center_, self.fitted.R_ = center[chosen], R
        self.fitted.attribute_columns = given.attribute_columns

    @property
    def is_ill_conditioned(self) -> bool:  # type: ignore[override]
        return self.condition > _LARGEST_CONDITION

    def mean(self, z: np.ndarray) -> float:
        return float(self._target_means @ z)

    def deviation(self, z: np.ndarray) -> float:
        return float(np.sqrt(max(z @ self._target_covariance @ z, 0.0)))

    def solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        coordinates = self._coordinates @ z
        return coordinates, np.linalg.solve(self.fitted.R_, coordinates)

    def null_covariance(self, z: np.ndarray) -> np.ndarray:
        # From the columns that were summed up, with a leading 1, to the orthonormal ones.
        centred = np.vstack([-self._column_means, np.eye(len(self._factor))])
        to_orthonormal = np.linalg.solve(self._factor.T, centred.T).T @ self._turn
        gram = to_orthonormal.T @ self._sums.squares @ to_orthonormal / self.total**2
        return self._sums.null_variance(z) * gram


def _ends(values: np.ndarray) -> np.ndarray:
    """Return the least values, and minus the largest, of the rows (2m, m) that have them."""
    m = values.shape[1]
    return np.concatenate([values[:m].diagonal(), -values[m:].diagonal()])


def _upper_factor(covariance: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the upper Cholesky factor and the condition of the scaled columns.

    Raises
    ------
    RankDeficientKernelError
        If the columns are dependent.
    """
    variance = np.diag(covariance)
    varies = variance > RANK_TOLERANCE * (1 + means**2)
    scale = np.sqrt(np.where(varies, variance, 1.0))
    values = np.linalg.eigvalsh(covariance / np.outer(scale, scale))
    rank = min(int((values > RANK_TOLERANCE).sum()), int(varies.sum()))
    if rank < len(values):
        raise RankDeficientKernelError.from_rank(rank, len(values), None)
    return np.linalg.cholesky(covariance).T, float(values[-1] / values[0])
