"""Kernels of categorical attributes: one row of columns per group of rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ._design import KernelDesign


class GroupDesign(KernelDesign):
    """A kernel on rows that share a few values of the attribute.

    The columns are the same for all rows of a group, so only the sums of a target over the groups
    are needed: a pass over n numbers instead of n×k.

    Parameters
    ----------
    groups : KernelDesign
        The kernel on the groups, each with the normalised weight of its rows.
    codes : ndarray of int, shape (n,)
        The group of each row.
    weight : ndarray of shape (n,) or None
        Weights of the rows, summing to 1; None for equal ones.
    """

    def __init__(self, groups: KernelDesign, codes: np.ndarray, weight: np.ndarray | None) -> None:
        # The columns of a row are a function of its group's number.
        super().__init__(groups.fitted, codes[:, None], weight)
        self.groups = groups
        self.codes = codes

    @cached_property
    def _group_columns(self) -> np.ndarray:
        return self.groups.columns(slice(None))

    def columns(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the standardised columns of some rows, not centred, shape (rows, k)."""
        return self._group_columns[self.codes[rows]]

    def orthonormal_of(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows of Q, shape (rows, k)."""
        return self.groups.orthonormal[self.codes[rows]]

    def group_weights(self) -> np.ndarray:
        """Return the weights of the groups, summing to 1, shape (g,)."""
        return np.asarray(self.groups.weight)

    def explained(self, coordinates: np.ndarray) -> np.ndarray:
        """Return Q c, the function of the attribute with coordinates c on the rows, shape (n,)."""
        return self.groups.explained(coordinates)[self.codes]

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """Return Q' diag(weight) Q, shape (k, k)."""
        return self.groups.gram(np.bincount(self.codes, weights=weight))

    def leverage(self) -> np.ndarray:
        """Return the leverage of each row in the fit on the constant and the kernel, (n,)."""
        own = 1 + np.square(self.groups.orthonormal).sum(axis=1)
        return own[self.codes] * self.shares(slice(None))

    def _products(self, z: np.ndarray, solution: np.ndarray | None = None) -> np.ndarray:
        centred = (z - self.mean(z)) * self.shares(slice(None))
        sums = np.bincount(self.codes, weights=centred)
        columns = self._group_columns - self.fitted.center_
        if solution is not None:
            sums -= self.groups.shares(slice(None)) * (columns @ solution)
        return sums @ columns
