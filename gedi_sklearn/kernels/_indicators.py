"""The indicators of groups, orthonormal in closed form, and their products without a matrix."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..exceptions import TooManyGroupsError
from ._columns import ColumnBasis, LevelIndicators
from ._fitted import FittedKernel

# Numbers of the largest matrix that is made of indicators, and the most groups of a square one.
_MOST_NUMBERS, _MOST_GROUPS = 2e8, 8000


class IndicatorKernel(FittedKernel):
    r"""The indicators of the groups 1…g−1, fitted from the weights of the groups alone.

    They are orthonormal in closed form. Column j sets group j against those after it, with group 0
    as the last one: with p the weights of the groups and :math:`S_j = p_0 + \sum_{l > j} p_l`,

    .. math:: Q_j = \frac{S_j}{p_j} a_j \text{ in group } j, \quad -a_j \text{ in those after it},
       \quad a_j = \sqrt{p_j / (S_j (S_j + p_j))}.

    Products with Q are then cumulative sums, and thousands of groups need no matrix.

    Parameters
    ----------
    weights : ndarray of shape (g,)
        p, positive, summing to 1.
    names : list of str, default=None
        Names of the groups 1…g−1; None where nobody asks for them.
    """

    has_closed_form = True
    conversion_is_harmless = True

    def __init__(self, weights: np.ndarray, names: list[str] | None = None) -> None:
        self.weights, own = weights, weights[1:]
        indicators = LevelIndicators(len(weights))
        basis = ColumnBasis(indicators, own, np.sqrt(own * (1 - own)))
        super().__init__(indicators, basis, names or [""] * len(own), 1)
        self.range_ = np.array([[0.0], [len(own)]])

    def __repr__(self) -> str:
        return f"FittedKernel({len(self.weights)} groups)"

    def of_share(self, share: float) -> Self:
        other = copy.copy(self)
        other.share = self.share * share
        for name in ("R_", "_against", "_own", "coefficient_sizes", "dependence"):
            vars(other).pop(name, None)
        return other

    @cached_property
    def _after(self) -> np.ndarray:
        return np.cumsum(np.r_[self.weights[0], self.weights[:1:-1]])[::-1]

    @cached_property
    def _against(self) -> np.ndarray:
        own = self.weights[1:]
        return np.sqrt(own / (self._after * (self._after + own) * self.share))

    @cached_property
    def _own(self) -> np.ndarray:
        return self._after * self._against / self.weights[1:]

    @cached_property
    def R_(self) -> np.ndarray:
        """The factor R of the standardised indicators; see the base class."""
        self.check_size(self.n_columns)
        factor = np.triu(-np.outer(self._against, self.weights[1:]), 1)
        np.fill_diagonal(factor, self._after * self._against)
        return factor * (self.share / self.scale)

    @property
    def scale(self) -> np.ndarray:
        return self.basis.scale  # type: ignore[attr-defined]

    def to_raw(self, standardized: np.ndarray) -> np.ndarray:
        return standardized / self.scale

    def orthonormal_columns(self, values: np.ndarray, covariates: Any = None) -> np.ndarray:
        self.check_size(len(values))
        # Group 0 is the last one that a column is set against.
        place = np.where(values == 0, self.n_columns + 1, values) - 1
        column = np.arange(self.n_columns)
        return np.where(column < place, -self._against, (column == place) * self._own)

    def check_size(self, n_rows: int) -> None:
        smaller, numbers = min(n_rows, self.n_columns), n_rows * self.n_columns
        if smaller > _MOST_GROUPS or numbers > _MOST_NUMBERS:
            raise TooManyGroupsError.from_numbers(n_rows, self.n_columns + 1)

    def explained(self, values: Any, coordinates: np.ndarray) -> np.ndarray:
        return self.of_groups(coordinates)[self._encoded(values)[:, 0].astype(int)]

    def orthonormal_within_range(  # type: ignore[override]
        self, values: Any, covariates: Any = None, *, warns: bool = True
    ) -> GroupColumns:
        """Return Q for new rows, as its products; a group that is not known is an error."""
        return self.group_columns(self._encoded(values)[:, 0].astype(int))

    def group_columns(self, codes: np.ndarray) -> GroupColumns:
        return GroupColumns(self, codes)

    def squares(self, q: GroupColumns) -> np.ndarray:
        return np.append((1 / self.weights - 1) / self.share, 0.0)[q.codes]

    def of_groups(self, coordinates: np.ndarray) -> np.ndarray:
        """Return Q c in every group, shape (…, g)."""
        return self._joined(coordinates, -1.0)

    def size_of_groups(self, coordinates: np.ndarray) -> np.ndarray:
        """Return what bounds the terms of :meth:`of_groups`, |Q| |c| in every group."""
        return self._joined(np.abs(coordinates), 1.0)

    def _joined(self, c: np.ndarray, sign: float) -> np.ndarray:
        before = np.cumsum(self._against * c, axis=-1)
        own = self._own * c
        own[..., 1:] += sign * before[..., :-1]
        return np.concatenate([sign * before[..., -1:], own], axis=-1)

    def coordinates(self, values: np.ndarray) -> np.ndarray:
        """Return c = Q'W v of a function that is v in every group, shape (k,)."""
        weighted = self.share * self.weights * values
        after = np.cumsum(np.r_[weighted[0], weighted[:1:-1]])[::-1]
        return self._against * (self._after * self.share * values[1:] - after)

    def deviations(self, weighted: np.ndarray) -> np.ndarray:
        """Return by how much group means differ from that of all, from the sums of Wz̃, (g,)."""
        return weighted / (self.share * self.weights)

    def solve(self, weighted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return c = Q'Wz̃ and s = R⁻¹c from the sums of Wz̃ in the groups."""
        deviations = self.deviations(weighted)
        return self.coordinates(deviations), (deviations[1:] - deviations[0]) * self.scale

    def raw_multipliers(self, multipliers: np.ndarray) -> np.ndarray:
        return self.share * (self.weights * self.of_groups(multipliers))[1:]

    @cached_property
    def coefficient_sizes(self) -> np.ndarray:
        return np.sqrt((1 / self.weights[1:] + 1 / self.weights[0]) / self.share)

    @cached_property
    def dependence(self) -> float:
        return float(np.linalg.norm(self.scale * self.coefficient_sizes))

    def raw_correction(self, coordinates: np.ndarray) -> np.ndarray:
        of_groups = self.of_groups(coordinates)
        return of_groups[1:] - of_groups[0]


class GroupColumns:
    """The orthonormal indicators of rows, without the matrix that they are.

    Parameters
    ----------
    kernel : IndicatorKernel
        The indicators.
    codes : ndarray of int, shape (n,)
        The group of each row; −1 where all columns are 0.
    """

    __array_ufunc__ = None  # vector @ self is the product below

    def __init__(self, kernel: IndicatorKernel, codes: np.ndarray) -> None:
        self.kernel, self.codes = kernel, codes

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.codes), self.kernel.n_columns

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> GroupColumns:
        return GroupColumns(self.kernel, self.codes[rows])

    def __matmul__(self, coordinates: np.ndarray) -> np.ndarray:
        """Return Q c on the rows, (n,) of (k,) and (n, m) of (k, m)."""
        if coordinates.ndim > 1:
            return np.column_stack([self @ own for own in coordinates.T])
        return np.append(self.kernel.of_groups(coordinates), 0.0)[self.codes]

    def __rmatmul__(self, of_rows: np.ndarray) -> np.ndarray:
        """Return Q'z of numbers of rows, shape (k,)."""
        kernel, known = self.kernel, self.codes >= 0
        n_groups = len(kernel.weights)
        sums = np.bincount(self.codes[known], weights=of_rows[known], minlength=n_groups)
        return kernel.coordinates(kernel.deviations(sums))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self.kernel.check_size(len(self.codes))
        known = self.codes >= 0
        columns = np.zeros(self.shape, dtype)
        columns[known] = self.kernel.orthonormal_columns(self.codes[known, None].astype(float))
        return columns
