"""Sums over rows from which every coefficient follows: for data that come in chunks."""

from __future__ import annotations

import numpy as np

from ..exceptions import RankDeficientKernelError
from ._covariates import RANK_TOLERANCE
from ._design import BaseDesign
from ._factorization import are_far_from_parallel
from ._fitted import FittedKernel
from ._moments import sum_products

# Where the columns of all rows are this far from orthonormal, coefficients have lost digits.
_LARGEST_CONDITION = 1e6


class KernelSums:
    """Sums of products of a kernel's columns and of targets, part by part.

    The columns are those of a kernel that is fitted beforehand, orthonormal on the rows that it
    was fitted on. So the sums are well scaled, they can be added up in any order, and a linear
    map leads from them to the columns that are orthonormal on all rows.

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
    products : ndarray of shape (n_parts, d, d)
        Of each part the sum of w a a', a = (1, Q, targets − origin), d = 1 + k + t.
    squares : ndarray of shape (1 + k, 1 + k)
        The sum of w² (1, Q)(1, Q)'.
    unweighted : ndarray of shape (1 + t, 1 + t)
        The sum of (1, targets − origin)(1, targets − origin)'.
    ends : tuple of ndarray of shape (2m, m) and ndarray of shape (2m,)
        The rows with the smallest and the largest value of every attribute, and their weights.
    are_powers : bool
        Whether the columns are powers of one attribute, and sums of powers are taken.
    """

    def __init__(self, fitted: FittedKernel, origin: np.ndarray, n_parts: int) -> None:
        self.fitted = fitted
        self.origin = origin
        k, t = fitted.n_columns, len(origin)
        # Sums of powers are cheaper, and as good where powers are far from parallel.
        root = np.eye(1 + k)
        root[0, 1:], root[1:, 1:] = fitted.center_, fitted.R_
        self.are_powers = fitted.is_single_polynomial and are_far_from_parallel(root.T @ root)
        self._to_orthonormal = np.eye(1 + k + t)
        if self.are_powers:
            self._to_orthonormal[0, 1 : k + 1] = -fitted.center_ @ fitted.R_inverse
            self._to_orthonormal[1 : k + 1, 1 : k + 1] = fitted.R_inverse
        self.n_rows = 0
        self.products = np.zeros((n_parts, 1 + k + t, 1 + k + t))
        self.squares = np.zeros((1 + k, 1 + k))
        self.unweighted = np.zeros((1 + t, 1 + t))
        self.ends = np.empty((0, 0)), np.empty(0)

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
        n_parts, k = len(self.products), self.fitted.n_columns
        extremes: list[int] = []  # rows with the smallest and the largest values of blocks

        def write_columns(rows: slice, out: np.ndarray) -> None:
            own = values[rows]
            if self.are_powers:
                self.fitted.basis.evaluate(own, out)
            else:
                out[:] = self.fitted.orthonormal_columns(own).T
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
                n_parts=n_parts,
            )
            sums = self._to_orthonormal.T @ sums @ self._to_orthonormal
        if not np.isfinite(sums).all():
            return False
        # Short chunks fill one part after the other, whichever they began with.
        self.products += np.roll(sums[:, 0], self.n_rows % n_parts, axis=0)
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

    def _add_ends(self, values: np.ndarray, weight: np.ndarray) -> None:
        """Keep the rows with the extremes of each attribute, the heavier one of equals."""
        known, known_weight = self.ends
        if len(known) and len(values):
            m = values.shape[1]
            at, sign = np.r_[: 2 * m], np.repeat([1.0, -1.0], m)
            new, old = sign * values[at, at % m], sign * known[at, at % m]
            kept = (old < new) | ((old == new) & (known_weight >= weight))
            values = np.where(kept[:, None], known, values)
            weight = np.where(kept, known_weight, weight)
        self.ends = (values, weight) if len(values) else (known, known_weight)

    def add(self, other: KernelSums) -> bool:
        """Add the sums of other rows; False, with nothing added, where the basis is another."""
        mine, theirs = self.fitted, other.fitted
        if self.products.shape != other.products.shape or not all(
            np.allclose(a, b, rtol=1e-9, atol=1e-12)
            for a, b in (
                (mine.R_, theirs.R_),
                (mine.center_, theirs.center_),
                (mine.basis.to_raw, theirs.basis.to_raw),
            )
        ):
            return False
        d, t = self.products.shape[1], len(self.origin)
        shift = np.eye(d)
        shift[d - t :, 0] = other.origin - self.origin
        of_targets = shift[np.ix_([0, *range(d - t, d)], [0, *range(d - t, d)])]
        self.n_rows += other.n_rows
        self.products += shift @ other.products @ shift.T
        self.squares += other.squares
        self.unweighted += of_targets @ other.unweighted @ of_targets.T
        self._add_ends(*other.ends)
        return True

    def design(
        self, *, columns: np.ndarray | None = None, without: int | None = None
    ) -> MomentDesign:
        """Return the kernel on all rows.

        Parameters
        ----------
        columns : ndarray of int, default=None
            Positions of the columns that count; None for all.
        without : int, default=None
            The part whose rows are left out; None for none.

        Returns
        -------
        MomentDesign

        Raises
        ------
        RankDeficientKernelError
            If the columns are linearly dependent on these rows.
        """
        products = self.products.sum(axis=0)
        if without is not None:
            products = products - self.products[without]
        return MomentDesign(self, products, columns)


class MomentDesign(BaseDesign):
    """A kernel on rows of which only sums are left.

    A target z is a combination of those that were summed up, given by its shares, shape (t,).

    Attributes
    ----------
    total : float
        Sum of the weights.
    condition : float
        Condition of the columns that were summed up, each scaled, on these rows.
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
        self._factor, self.condition = _upper_factor(
            covariance[1 : k + 1, 1 : k + 1], self._column_means
        )
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
    def n_rows(self) -> int:
        return self._sums.n_rows

    @property
    def is_ill_conditioned(self) -> bool:
        """Whether the kernel was fitted on rows so unlike these that digits are lost."""
        return self.condition > _LARGEST_CONDITION

    def mean(self, z: np.ndarray) -> float:
        return float(self._target_means @ z)

    def deviation(self, z: np.ndarray) -> float:
        return float(np.sqrt(max(z @ self._target_covariance @ z, 0.0)))

    def solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        coordinates = self._coordinates @ z
        return coordinates, np.linalg.solve(self.fitted.R_, coordinates)

    def null_covariance(self, z: np.ndarray) -> np.ndarray:
        n, unweighted = self.n_rows, self._sums.unweighted
        means = unweighted[0, 1:] / n
        variance = z @ (unweighted[1:, 1:] / n - np.outer(means, means)) @ z
        # From the columns that were summed up, with a leading 1, to the orthonormal ones.
        centred = np.vstack([-self._column_means, np.eye(len(self._factor))])
        to_orthonormal = np.linalg.solve(self._factor.T, centred.T).T @ self._turn
        gram = to_orthonormal.T @ self._sums.squares @ to_orthonormal / self.total**2
        return variance * n / (n - 1) * gram


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
