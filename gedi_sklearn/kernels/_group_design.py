r"""Kernels of categorical attributes: one row of columns per group of rows.

The orthonormal columns of indicators have a closed form. Column j sets group j against those
after it, with group 0 as the last one: with p the weights of the groups and
:math:`S_j = p_0 + \sum_{l > j} p_l`,

.. math:: Q_j = \frac{S_j}{p_j} a_j \text{ in group } j, \quad -a_j \text{ in those after it},
   \quad a_j = \sqrt{p_j / (S_j (S_j + p_j))}.

Products with Q are then cumulative sums, and thousands of groups need no matrix.
"""

from __future__ import annotations

import copy
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from ..exceptions import TooManyGroupsError
from ._basis import ColumnBasis, KernelColumns, column_names
from ._categories import level_indicators
from ._design import FittedKernel, KernelDesign

# Numbers of the largest matrix that is made of indicators, and the most groups of a square one.
_MOST_NUMBERS, _MOST_GROUPS = 2e8, 8000


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

    def with_matrix(self) -> Self:
        return self  # products are sums over the groups

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


class IndicatorKernel(FittedKernel):
    """The indicators of the groups 1…g−1, fitted from the weights of the groups alone.

    Parameters
    ----------
    weights : ndarray of shape (g,)
        p, positive, summing to 1.
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.weights, own, self._share = weights, weights[1:], 1.0
        self._after = np.cumsum(np.r_[weights[0], own[:0:-1]])[::-1]
        self._against = np.sqrt(own / (self._after * (self._after + own)))
        self._own = self._after * self._against / own
        columns_of = KernelColumns(partial(level_indicators, n_levels=len(weights)))
        basis = ColumnBasis(columns_of, own, np.sqrt(own * (1 - own)))
        super().__init__(columns_of.kernel, basis, column_names(None, len(own)), 1)
        self.range_ = np.array([[0.0], [len(own)]])

    @cached_property
    def R_(self) -> np.ndarray:
        """The factor R of the standardised indicators; see the base class."""
        self.check_size(self.n_columns)
        factor = np.triu(-np.outer(self._against, self.weights[1:]), 1)
        np.fill_diagonal(factor, self._after * self._against)
        return factor * (self._share / self.scale)

    def of_share(self, share: float) -> Self:
        other, root = copy.copy(self), np.sqrt(share)
        other._share = self._share * share
        other._against, other._own = self._against / root, self._own / root
        vars(other).pop("R_", None)
        return other

    @property
    def scale(self) -> np.ndarray:
        return self.basis.scale  # type: ignore[attr-defined]

    def to_raw(self, standardized: np.ndarray) -> np.ndarray:
        return standardized / self.scale

    def orthonormal_columns(self, values: np.ndarray) -> np.ndarray:
        self.check_size(len(values))
        # Group 0 is the last one that a column is set against.
        place = np.where(values == 0, self.n_columns + 1, values) - 1
        column = np.arange(self.n_columns)
        return np.where(column < place, -self._against, (column == place) * self._own)

    def check_size(self, n_rows: int) -> None:
        """Refuse a matrix with so many rows, where it would be too large or take hours."""
        if self.n_columns > _MOST_GROUPS or n_rows * self.n_columns > _MOST_NUMBERS:
            raise TooManyGroupsError.from_numbers(n_rows, self.n_columns + 1)

    def columns_of(self, values: Any) -> GroupColumns:
        """Return Q for new rows, as its products."""
        return GroupColumns(self, self._encoded(values)[:, 0].astype(int))

    def of_groups(self, coordinates: np.ndarray) -> np.ndarray:
        """Return Q c in every group, shape (g,)."""
        return self._joined(coordinates, -1.0)

    def size_of_groups(self, coordinates: np.ndarray) -> np.ndarray:
        """Return what bounds the terms of :meth:`of_groups`, |Q| |c| in every group."""
        return self._joined(np.abs(coordinates), 1.0)

    def _joined(self, c: np.ndarray, sign: float) -> np.ndarray:
        before = np.cumsum(np.r_[0.0, self._against * c])
        own = self._own * c
        return np.r_[sign * before[-1], own + sign * before[:-1]]

    def coordinates(self, values: np.ndarray) -> np.ndarray:
        """Return c = Q'P v of a function that is v in every group, shape (k,)."""
        weighted = self.weights * values
        after = np.cumsum(np.r_[weighted[0], weighted[:1:-1]])[::-1]
        return self._against * (self._after * values[1:] - after)


class GroupColumns:
    """The orthonormal indicators of rows, without the matrix that they are.

    Parameters
    ----------
    kernel : IndicatorKernel
        The indicators.
    codes : ndarray of int, shape (n,)
        The group of each row; −1 where all columns are 0.
    """

    def __init__(self, kernel: IndicatorKernel, codes: np.ndarray) -> None:
        self.kernel, self.codes = kernel, codes

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.codes), self.kernel.n_columns

    def __getitem__(self, rows: Any) -> GroupColumns:
        return GroupColumns(self.kernel, self.codes[rows])

    def __matmul__(self, coordinates: np.ndarray) -> np.ndarray:
        """Return Q c on the rows, (n,) of (k,) and (n, m) of (k, m)."""
        if coordinates.ndim > 1:
            return np.column_stack([self @ own for own in coordinates.T])
        return np.append(self.kernel.of_groups(coordinates), 0.0)[self.codes]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self.kernel.check_size(len(self.codes))
        known = self.codes >= 0
        columns = np.zeros(self.shape, dtype)
        columns[known] = self.kernel.orthonormal_columns(self.codes[known, None].astype(float))
        return columns


class IndicatorDesign(GroupDesign):
    """The indicators of the groups 1…g−1 on rows, with which no matrix is held.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The group of each row; each group 0…g−1 has one.
    weight : ndarray of shape (n,) or None
        Weights of the rows, summing to 1; None for equal ones.
    """

    fitted: IndicatorKernel

    def __init__(self, codes: np.ndarray, weight: np.ndarray | None) -> None:
        total = np.bincount(codes, weights=weight)
        fitted = IndicatorKernel(total / total.sum())
        numbers = np.arange(float(len(total)))[:, None]
        super().__init__(KernelDesign(fitted, numbers, fitted.weights), codes, weight)

    def explained(self, coordinates: np.ndarray) -> np.ndarray:
        return self.fitted.of_groups(coordinates)[self.codes]

    @cached_property
    def orthonormal(self) -> np.ndarray:
        self.fitted.check_size(self.n_rows)
        return super().orthonormal

    @property
    def row_columns(self) -> GroupColumns:
        """Q of the rows, as its products."""
        return GroupColumns(self.fitted, self.codes)

    def leverage(self) -> np.ndarray:
        return self.shares(slice(None)) / self.fitted.weights[self.codes]

    def inner_products(self, z: np.ndarray) -> np.ndarray:
        return self.fitted.coordinates(self._deviations(z))

    def solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        deviations = self._deviations(z)
        gaps = deviations[1:] - deviations[0]
        return self.fitted.coordinates(deviations), gaps * self.fitted.scale

    def _deviations(self, z: np.ndarray) -> np.ndarray:
        """Return by how much the mean of every group differs from that of all, shape (g,)."""
        centred = (z - self.mean(z)) * self.shares(slice(None))
        return np.bincount(self.codes, weights=centred) / self.fitted.weights

    def raw_multipliers(self, multipliers: np.ndarray) -> np.ndarray:
        return (self.fitted.weights * self.fitted.of_groups(multipliers))[1:]

    def raw_correction(self, coordinates: np.ndarray) -> np.ndarray:
        of_groups = self.fitted.of_groups(coordinates)
        return of_groups[1:] - of_groups[0]
