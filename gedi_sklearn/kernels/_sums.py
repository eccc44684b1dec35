"""Sums over rows from which every coefficient follows: for data that come in chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ..exceptions import IllConditionedKernelWarning, RankDeficientKernelError
from ._design import BaseDesign
from ._fit import are_far_from_parallel
from ._fitted import RANK_TOLERANCE, FittedKernel
from ._moments import sum_products

# A sum of squares may be so much below 0, as a share of the largest, by rounding.
_ROUNDING = 1e-6
# Where the columns of all rows are this far from orthonormal, coefficients have lost digits.
_LARGEST_CONDITION = 1e6
# Columns of a larger condition on the reference are summed up once they are orthonormal there.
_MOST_PARALLEL = 1e4
# Rows of a run whose sums take longer than the calls that ask for them.
_RUN = 1000


class Sums(ABC):
    """Sums over rows, part by part, from which every coefficient follows.

    Parameters
    ----------
    fitted : FittedKernel
        The kernel.
    origin : ndarray of shape (t,)
        What is subtracted from each target before products are taken.
    n_parts : int
        Number of parts that rows are dealt to, for the jackknife.

    Attributes
    ----------
    n_rows : int
        Number of rows of positive weight.
    unweighted : ndarray of shape (1 + t, 1 + t)
        The sum of (1, targets − origin)(1, targets − origin)'.
    ends : tuple of ndarray of shape (r, m) and ndarray of shape (r,)
        Rows with extreme values of the attribute, as numbers, and their weights.
    """

    # The arrays that are the state, and those that fix the basis, which is made anew when a state
    # is read, and compared.
    names: ClassVar[tuple[str, ...]] = ("unweighted",)
    fixed: ClassVar[tuple[str, ...]] = ()
    # Whether sums of powers are taken, which are not finite where a value is not.
    are_powers = False
    ends: Any

    def __init__(self, fitted: FittedKernel, origin: np.ndarray, n_parts: int) -> None:
        self.fitted, self.origin = fitted, origin
        self.n_rows = 0
        self.unweighted = np.zeros((1 + len(origin), 1 + len(origin)))

    @property
    @abstractmethod
    def part_weights(self) -> np.ndarray:
        """Sum of the weights of each part, shape (n_parts,)."""

    @abstractmethod
    def add_rows(
        self, values: np.ndarray, targets: list[np.ndarray], weight: np.ndarray | None
    ) -> bool:
        """Add rows of positive weight; each part gets a run of them.

        Parameters
        ----------
        values : ndarray of shape (n, m)
            The attribute, as numbers.
        targets : list of ndarray of shape (n,)
            The targets.
        weight : ndarray of shape (n,) or None
            Weights; None where all are 1.

        Returns
        -------
        bool
            False, with nothing added, where a sum is not finite.
        """

    def add(self, other: Any) -> None:
        """Add the sums of other rows in the same basis, of as many targets."""
        t = len(self.origin)
        shift = np.eye(1 + t)
        shift[1:, 0] = other.origin - self.origin
        self._add(other)
        self.n_rows += other.n_rows
        self.unweighted += shift @ other.unweighted @ shift.T

    @abstractmethod
    def _add(self, other: Any) -> None:
        """Add what only this kind of sums has."""

    @abstractmethod
    def design(
        self, *, columns: np.ndarray | None = None, without: int | None = None
    ) -> SummedDesign:
        """Return the kernel on all rows.

        Parameters
        ----------
        columns : ndarray of int, default=None
            Positions of the columns that count; None for all.
        without : int, default=None
            The part whose rows are left out; None for none.

        Returns
        -------
        SummedDesign

        Raises
        ------
        RankDeficientKernelError
            If the columns are linearly dependent on these rows.
        """

    def null_variance(self, z: np.ndarray) -> float:
        """Return the variance of a target over the rows, with divisor n − 1."""
        n = self.n_rows
        means = self.unweighted[0, 1:] / n
        return float(z @ (self.unweighted[1:, 1:] / n - np.outer(means, means)) @ z) * n / (n - 1)

    def _are_labels(self, z: np.ndarray) -> bool:
        """Tell whether a target is 0 or 1 in every row, so that it equals its square."""
        total, square = self._unweighted_sums(z)
        return abs(square - total) <= _ROUNDING * self.n_rows and 0 <= total <= self.n_rows

    def _unweighted_sums(self, z: np.ndarray) -> tuple[float, float]:
        """Return the sums of a target and of its square over the rows."""
        own = np.r_[self.origin @ z, z]  # beside the constant
        return float(self.unweighted[0] @ own), float(own @ self.unweighted @ own)

    def few(self, z: np.ndarray, least: float) -> str:
        """Return, in words, of which label there are fewer rows than a number; "" if of none."""
        if not self._are_labels(z):
            return ""
        ones = round(self._unweighted_sums(z)[0])
        rarer = min(ones, self.n_rows - ones)
        return f"{rarer} of {self.n_rows} rows have the rarer label" if rarer < least else ""

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays that are the state and fix the basis, by name."""
        return {name: getattr(self, name) for name in self.names}

    @abstractmethod
    def fault(self) -> str | None:
        """Return what is wrong with a state that was read, in words; None where it may be."""

    def _fault_of_products(self, products: np.ndarray, *squares: np.ndarray) -> str | None:
        """Return what is wrong with matrices of products, and with some that have no minus."""
        if self.unweighted[0, 0] != self.n_rows:
            return f"n_rows={self.n_rows} beside sums of {self.unweighted[0, 0]:g} rows"
        for name, matrices in (("products", products), ("unweighted", self.unweighted[None])):
            size = np.abs(matrices).max()
            if not np.allclose(matrices, np.swapaxes(matrices, 1, 2), atol=1e-9 * size):
                return f"{name} that are not symmetric"
        for square in (*squares, self.unweighted):
            if len(square) and np.linalg.eigvalsh(square)[0] < -_ROUNDING * np.trace(square):
                return "sums of squares below 0"
        return None


class SummedDesign(BaseDesign):
    """A kernel on rows of which only sums are left.

    A target z is a combination of those that were summed up, given by its shares, shape (t,).

    Attributes
    ----------
    total : float
        Sum of the weights.
    condition : float
        Condition of the sums; 1 where they lose no digits.
    is_ill_conditioned : bool
        Whether the kernel was fitted on rows so unlike these that digits are lost.
    """

    total: float
    condition = 1.0
    is_ill_conditioned = False
    _sums: Any

    @property
    def n_rows(self) -> int:
        return self._sums.n_rows


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
        self._is_of_columns = are_far_from_parallel(root.T @ root, _MOST_PARALLEL)
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
        is_new = (self.end_weights == 0) | ((weight > 0) & ~is_better)
        if is_new.any():
            self.end_values = np.where(is_new[:, None], values, self.end_values)
            self.end_weights = np.where(is_new, weight, self.end_weights)

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
