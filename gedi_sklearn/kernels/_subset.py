"""A kernel that sees some of the rows: what targets do in the others has no say."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ._design import KernelDesign


class SubsetDesign(KernelDesign):
    r"""A kernel fitted on a subset of the rows, as a kernel on all of them.

    Its columns are 0 in the other rows, and scaled so that Q'WQ = I on all rows: Q is that of the
    subset over √s and R is √s times as large, with s the subset's share of the weights. Coordinates
    then differ from those of the subset by √s, coefficients not at all.

    Parameters
    ----------
    inside : KernelDesign
        The kernel on the rows of the subset.
    rows : ndarray of bool, shape (n,)
        Which rows these are.
    weight : ndarray of shape (n,) or None
        Weights of all rows, of any sum.
    """

    def __init__(self, inside: KernelDesign, rows: np.ndarray, weight: np.ndarray | None) -> None:
        weight = None if weight is None else weight / weight.sum()
        share = float(rows.mean() if weight is None else weight[rows].sum())
        self._root, fitted = float(np.sqrt(share)), inside.fitted.of_share(share)
        self.inside, self.rows = inside, rows
        super().__init__(fitted, self._spread(inside.values), weight)

    def _spread(self, inside: np.ndarray) -> np.ndarray:
        """Return an array of the rows of the subset as one of all rows, 0 in the others."""
        spread = np.zeros((len(self.rows), *inside.shape[1:]), dtype=inside.dtype)
        spread[self.rows] = inside
        return spread

    @property
    def keys(self) -> np.ndarray:
        """What each row of the columns depends on, shape (n, m)."""
        return np.column_stack([self.rows, self._spread(self.inside.keys)])

    @property
    def root_share(self) -> float:
        return self._root

    @property
    def n_covariates(self) -> int:
        return self.inside.n_covariates

    def residual(self, z: np.ndarray) -> np.ndarray:
        return self._spread(self.inside.residual(z[self.rows]))

    @cached_property
    def _columns(self) -> np.ndarray:
        columns = np.tile(self.fitted.center_, (self.n_rows, 1))
        columns[self.rows] = self.inside.columns(slice(None))
        return columns

    def columns(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the standardised columns of some rows, at their centre outside of the subset."""
        return self._columns[rows]

    @cached_property
    def orthonormal(self) -> np.ndarray:
        return self._spread(self.inside.orthonormal / self._root)

    def orthonormal_of(self, rows: slice | np.ndarray) -> np.ndarray:
        return self.orthonormal[rows]

    def leverage(self) -> np.ndarray:
        return self._spread(self.inside.leverage())

    def mean(self, z: np.ndarray) -> float:
        """Return the weighted mean in the subset."""
        return self.inside.mean(z[self.rows])

    def deviation(self, z: np.ndarray) -> float:
        """Return the weighted population deviation in the subset."""
        return self.inside.deviation(z[self.rows])

    def group_weights(self) -> np.ndarray:
        return self.inside.group_weights()
