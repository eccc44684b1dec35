"""What sums of rows have in common, whatever the kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ._design import BaseDesign
from ._fitted import FittedKernel

# A sum of squares may be so much below 0, as a share of the largest, by rounding.
_ROUNDING = 1e-6


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
