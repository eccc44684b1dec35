"""A kernel on given rows: the linear map from targets to the coefficients of its functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg.blas import dtrsv

from ..exceptions import IllConditionedKernelWarning, warn_caller
from ._fitted import Covariates, FittedKernel
from ._indicators import GroupColumns
from ._moments import BLOCK, row_blocks

# In floats an independent target gives about 1e-17 standard deviations, never 0.
_ZERO = 1e-12
# Estimated relative rounding error from which a coefficient comes with a warning.
_CONVERSION_TOLERANCE = 1e-6


class BaseDesign(ABC):
    """What a fitted kernel says of targets, whether their rows are at hand or sums of them."""

    fitted: FittedKernel

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows n."""

    @property
    def n_covariates(self) -> int:
        """Number of independent covariates that the columns are residualised on."""
        return 0

    @abstractmethod
    def mean(self, z: np.ndarray) -> float:
        """Return the weighted mean of a target, of those rows that the kernel sees."""

    @abstractmethod
    def deviation(self, z: np.ndarray) -> float:
        """Return the weighted population deviation of a target there."""

    def residual(self, z: np.ndarray) -> np.ndarray:
        """Return the residual of a target on the covariates; without them, the target itself."""
        return z

    @abstractmethod
    def solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the orthonormal coordinates c and the standardised coefficients s of a target."""

    def null_covariance(self, z: np.ndarray) -> np.ndarray:
        """Return the covariance of c over random permutations of the targets, shape (k, k)."""
        raise NotImplementedError  # of sums of groups, which have the variances below

    def null_noise(self, z: np.ndarray) -> np.ndarray:
        """Return the variances of the means of groups that give the same covariance, shape (g,)."""
        raise NotImplementedError

    def coordinates(self, z: np.ndarray) -> np.ndarray:
        """Return c = Q'Wz̃, the coefficients of z in the orthonormal basis, shape (k,)."""
        return self.solve(z)[0]

    def standardized(self, z: np.ndarray) -> np.ndarray:
        """Return s = R⁻¹c, the coefficients of z in the standardised basis, shape (k,)."""
        return self.solve(z)[1]

    def coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return α̃ = T s, the coefficients of z in the kernel's own units, shape (k,)."""
        return self.fitted.to_raw(self.standardized(z))

    def is_negligible(self, z: np.ndarray, standardized: np.ndarray | None = None) -> bool:
        """Tell whether the coefficients of a target are rounding noise on its scale.

        They are where ‖s‖₁ ≤ 1e-12·sd(z): at degree 1, where gedi·sd(x) ≤ 1e-12·sd(z).
        """
        deviation = self.deviation(z)
        # A constant target has a deviation of a few eps·|mean|, and coefficients of the same size.
        if deviation <= 4 * np.finfo(float).eps * abs(self.mean(z)):
            return True
        s = self.standardized(z) if standardized is None else standardized
        return bool(np.abs(s).sum() <= _ZERO * deviation)

    def coefficients_of_degree(self, z: np.ndarray, degree: int) -> np.ndarray | None:
        """Return α̃ for the same polynomials at a degree up to their own; 0 where negligible.

        The columns of a lower degree come first, so R, Q and T begin with theirs. None for other
        kernels and degrees.
        """
        basis = self.fitted.basis
        k = basis.n_columns_of(degree)
        if k is None:  # before R, which of many groups is a matrix too large
            return None
        standardized = dtrsv(self.fitted.R_[:k, :k], self.coordinates(z)[:k])
        if self.is_negligible(z, standardized):
            return np.zeros(k)
        return basis.to_raw[:k, :k] @ standardized

    def checked_coefficients(self, z: np.ndarray) -> np.ndarray:
        """Return :meth:`coefficients`, with a warning if their rounding error may be visible.

        What the conversion to raw units does is estimated as eps·sd(z)·Σ_j‖(T R⁻¹)_j‖ and compared
        with ‖α̃‖₁, what nearly dependent columns do as eps·‖R⁻¹‖ of columns of norm 1. Coefficients
        that are negligible on the scale of sd(z) give no warning.
        """
        standardized = self.standardized(z)
        alpha = self.fitted.to_raw(standardized)
        epsilon, deviation = np.finfo(float).eps, self.deviation(z)
        conversion = deviation * self.fitted.coefficient_sizes.sum()
        size = float(np.abs(alpha).sum())
        negligible = _ZERO * deviation / self.fitted.scale[0]
        if epsilon * conversion > max(_CONVERSION_TOLERANCE * size, negligible):
            relative = epsilon * conversion / size if size else np.inf
            warn_caller(IllConditionedKernelWarning.from_error(relative))
        elif size > negligible:
            dependence = epsilon * self.fitted.dependence
            if dependence > _CONVERSION_TOLERANCE:
                warn_caller(IllConditionedKernelWarning.from_dependence(dependence))
        return alpha


@dataclass(eq=False)
class Design(BaseDesign):
    """A fitted kernel on given rows and weights: Q, its products, and c = Q'Wz of targets.

    A row stands at a point, of which it has the columns; Q and all factorisations are those of the
    points. Groups are points with many rows. A subset are the points of some rows: the others
    stand at none, and have columns of 0. So that Q'WQ = I on all rows, Q of a subset is scaled by
    1/√s and R by √s, with s the subset's share of the weights: coordinates then differ from those
    of the subset alone by √s, coefficients not at all.

    Parameters
    ----------
    fitted : FittedKernel
        The kernel.
    points : ndarray of shape (m, d)
        What tells the points apart: the attribute as numbers, the number of a group.
    weight : ndarray of shape (n,) or None
        Positive weights of the rows, summing to 1; None for equal ones.
    index : ndarray of int, shape (n,), default=None
        The point of every row, −1 for none; None where each row is a point of its own.
    inside : ndarray of bool, shape (n,), default=None
        Which rows stand at a point; None for all.
    group_weights : ndarray of shape (g,), default=None
        Weights of the groups of a kernel that tells groups apart, summing to 1.
    covariates : Covariates, default=None
        What columns and targets are residualised on.
    """

    fitted: FittedKernel
    points: np.ndarray
    weight: np.ndarray | None
    index: np.ndarray | None = None
    inside: np.ndarray | None = None
    group_weights: np.ndarray | None = None
    covariates: Covariates | None = None
    # A target, the products of the centred columns with it, and its variance, computed during the
    # factorisation.
    known: tuple[np.ndarray, np.ndarray, float] | None = field(default=None, init=False)

    def on_groups(self, codes: np.ndarray, weight: np.ndarray | None) -> Self:
        """Return a kernel on points, each with the weight of its group, on the rows of groups."""
        return replace(self, index=codes, weight=weight, group_weights=self.weight)

    def beside(self, covariates: np.ndarray | None) -> Self:
        """Return the kernel residualised on covariates (n, p), where there are any.

        It holds n×(p + k) numbers.

        Raises
        ------
        RankDeficientKernelError
            If the covariates determine a column of the kernel (rank 0: all of them).
        """
        if covariates is None:
            return self
        self.fitted.check_size(self.n_rows)
        columns = self.on_rows(self.columns(slice(None)))
        shares = np.broadcast_to(self.shares(slice(None)), self.n_rows)
        own = Covariates(covariates, shares, columns)
        fitted = self.fitted.beside(own.regression, own.factor)
        return replace(self, fitted=fitted, points=self.keys, index=None, covariates=own)

    def within(self, rows: np.ndarray, weight: np.ndarray | None) -> Self:
        """Return the kernel of some rows on all of them: what is outside has no say.

        Parameters
        ----------
        rows : ndarray of bool, shape (n,)
            Which rows this kernel is on.
        weight : ndarray of shape (n,) or None
            Weights of all rows, of any sum.
        """
        weight = None if weight is None else weight / weight.sum()
        share = float(rows.mean() if weight is None else weight[rows].sum())
        index = np.full(len(rows), -1)
        index[rows] = np.arange(self.n_rows) if self.index is None else self.index
        fitted = self.fitted.of_share(share)
        return replace(self, fitted=fitted, weight=weight, index=index, inside=rows)

    @property
    def n_rows(self) -> int:
        return len(self.points) if self.index is None else len(self.index)

    @property
    def n_covariates(self) -> int:
        return 0 if self.covariates is None else self.covariates.n_independent

    @property
    def keys(self) -> np.ndarray:
        """What a row of Q is a function of, shape (n, …)."""
        if self.group_weights is not None and self.covariates is None:
            return np.asarray(self.index)[:, None]
        own = self.points
        if self.covariates is not None:
            own = np.column_stack([own, self.covariates.values])
        own = self.on_rows(own)
        return own if self.inside is None else np.column_stack([self.inside, own])

    def on_rows(self, of_points: np.ndarray) -> np.ndarray:
        """Return numbers of points as those of the rows, 0 where there is no point."""
        if self.index is None:
            return of_points
        if self.inside is None:
            return of_points[self.index]
        result = np.zeros((self.n_rows, *of_points.shape[1:]), of_points.dtype)
        result[self.inside] = of_points[self.index[self.inside]]
        return result

    def place(self, row: int) -> tuple[str, np.ndarray]:
        """Return the attribute of a row in words, and which rows have the same one, (n,)."""
        if self.index is None:
            point, same = row, (self.points == self.points[row]).all(axis=1)
        else:
            point, same = self.index[row], self.index == self.index[row]
        if self.covariates is not None:  # they are among what tells points apart
            return f"row {row}", same
        return self.fitted.describe(self.points[point]), same

    def of_points(self, of_rows: np.ndarray) -> np.ndarray:
        """Return numbers of rows, summed up at their points, shape (m,)."""
        if self.index is None:
            return of_rows
        seen = slice(None) if self.inside is None else self.inside
        return np.bincount(self.index[seen], of_rows[seen], minlength=len(self.points))

    def shares(self, rows: slice) -> np.ndarray | float:
        """Return the weights of some rows, such that all sum to 1."""
        return 1 / self.n_rows if self.weight is None else self.weight[rows]

    @cached_property
    def _point_shares(self) -> np.ndarray:
        return self.of_points(np.broadcast_to(self.shares(slice(None)), self.n_rows))

    @cached_property
    def standardized_columns(self) -> np.ndarray:
        """The standardised columns of all points, not centred, where these are not many."""
        return self.fitted.basis.evaluate(self.points)

    @property
    def _are_held(self) -> bool:
        """Whether the standardised columns are in memory."""
        return "standardized_columns" in vars(self)

    def __getstate__(self) -> dict[str, Any]:
        kept = vars(self).copy()
        kept.pop("standardized_columns", None)  # computed again where they are asked for
        return kept

    def columns(self, points: slice) -> np.ndarray:
        """Return the standardised columns of some points, not centred, shape (points, k)."""
        if self.covariates is not None:
            return self.covariates.columns[points]
        if self._are_held or len(self.points) <= BLOCK:
            return self.standardized_columns[points]
        return self.fitted.basis.evaluate(self.points[points])

    def write_columns(self, rows: slice, out: np.ndarray) -> None:
        """Write the standardised columns of some rows, each a point, into the rows of `out`."""
        if self._are_held:
            out[:] = self.standardized_columns[rows].T
        else:
            self.fitted.basis.evaluate(self.points[rows], out)

    def _orthonormal_at(self, points: slice | np.ndarray) -> np.ndarray:
        if self.covariates is not None:
            return self.covariates.columns[points] @ self.fitted.R_inverse
        if self._are_held and self.fitted.conversion_is_harmless:
            matrix, offset = self.fitted.to_orthonormal
            return self.standardized_columns[points] @ matrix + offset
        return self.fitted.orthonormal_columns(self.points[points])

    @cached_property
    def q(self) -> Any:
        """Q of the points: a matrix, or the products of indicators."""
        products = self.fitted.group_columns(np.arange(len(self.points)))
        if products is not None:
            return products
        # Sums over many rows are faster where every column is in one piece, as held ones are.
        order: Any = "F" if self._are_held and len(self.points) > BLOCK else "C"
        q = np.empty((len(self.points), self.fitted.n_columns), order=order)
        for points in row_blocks(len(q)):
            q[points] = self._orthonormal_at(points)
        return q

    @cached_property
    def orthonormal(self) -> np.ndarray:
        """The n×k matrix Q, for projections; indicators work block by block."""
        self.fitted.check_size(self.n_rows)
        return self.on_rows(np.asarray(self.q))

    @property
    def group_columns(self) -> GroupColumns | None:
        """The same as products of groups; None where it takes a matrix."""
        return None if self.index is None else self.fitted.group_columns(self.index)

    def with_matrix(self) -> Self:
        """Return this object with Q in memory, so that all that is asked later is a product."""
        _ = self.q
        return self

    def orthonormal_of(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return some rows of Q, shape (rows, k)."""
        if self.index is None:
            held = vars(self).get("q")
            return held[rows] if isinstance(held, np.ndarray) else self._orthonormal_at(rows)
        index = self.index[rows]
        result = np.zeros((len(index), self.fitted.n_columns))
        result[index >= 0] = self.q[index[index >= 0]]
        return result

    def explained(self, coordinates: np.ndarray) -> np.ndarray:
        """Return Q c, the function of the attribute with coordinates c on the rows, shape (n,)."""
        return self.on_rows(self.q @ coordinates)

    def weighted(self, z: np.ndarray) -> np.ndarray:
        """Return Wz̃, summed up at the points, shape (m,)."""
        return self.of_points((z - self.mean(z)) * self.shares(slice(None)))

    def inner_products(self, z: np.ndarray) -> np.ndarray:
        """Return Q'Wz from Q, shape (k,)."""
        if self.index is not None or len(z) <= BLOCK:
            return self.weighted(z) @ self.q
        mean, total = self.mean(z), np.zeros(self.fitted.n_columns)
        for rows in row_blocks(len(z)):  # each stays in the cache
            total += ((z[rows] - mean) * self.shares(rows)) @ self.q[rows]
        return total

    def gram(self, weight: np.ndarray) -> np.ndarray:
        """Return Q' diag(weight) Q, shape (k, k)."""
        q = np.asarray(self.q)
        return (q * self.of_points(weight)[:, None]).T @ q

    def leverage(self) -> np.ndarray:
        """Return the leverage of each row in the fit on the constant, covariates and kernel, (n,).

        Rows that the kernel does not see have none.
        """
        squares, shares = self.fitted.squares(self.q), self.shares(slice(None))
        if self.covariates is None:
            return self.on_rows(1 / self.fitted.share + squares) * shares
        return self.on_rows(self.covariates.leverage()) + self.on_rows(squares) * shares

    @property
    def fit_columns(self) -> np.ndarray:
        """The constant, the covariates and Q, orthonormal under the weights, shape (n, p + 1 + k).

        Of rows that the kernel does not see they are 0.
        """
        if self.covariates is None:
            first = np.ones((len(self.points), 1))
        else:
            first = self.covariates.orthonormal
        return np.hstack([self.on_rows(first / np.sqrt(self.fitted.share)), self.orthonormal])

    def residual(self, z: np.ndarray) -> np.ndarray:
        if self.covariates is None:
            return z if self.inside is None else z * self.inside
        return self.on_rows(self.covariates.residual(z if self.inside is None else z[self.inside]))

    def mean(self, z: np.ndarray) -> float:
        weight = self.weight
        if self.inside is not None:
            z, weight = z[self.inside], None if weight is None else weight[self.inside]
        return float(z.sum() / len(z) if weight is None else weight @ z / self.fitted.share)

    def deviation(self, z: np.ndarray) -> float:
        if (known := self._known_of(z)) is not None:
            return float(np.sqrt(known[1]))
        mean, variance = self.mean(z), 0.0
        for rows in row_blocks(self.n_rows):
            centred = z[rows] - mean
            if self.inside is not None:
                centred *= self.inside[rows]
            variance += float((centred * self.shares(rows)) @ centred)
        return float(np.sqrt(variance / self.fitted.share))

    def _products(self, z: np.ndarray, solution: np.ndarray | None = None) -> np.ndarray:
        """Return B̃'W(z̃ − B̃s), shape (k,), for the centred standardised columns B̃."""
        weighted, total = self.weighted(z), np.zeros(self.fitted.n_columns)
        shares = self.weight if self.index is None else self._point_shares
        for points in row_blocks(len(weighted)):
            columns, own = self.columns(points) - self.fitted.center_, weighted[points]
            if solution is not None:
                share = 1 / self.n_rows if shares is None else shares[points]
                own = own - (columns @ solution) * share
            total += own @ columns
        return total

    def solve(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the orthonormal coordinates c and the standardised coefficients s of a target.

        One step of iterative refinement is made, since the conversion to raw units amplifies the
        rounding error of s by (|mean| / sd)^(k−1). With many rows it is skipped if the conversion
        is harmless: it costs a pass over them.
        """
        fitted: Any = self.fitted
        if self.covariates is not None:
            z = self.residual(z)
        if fitted.has_closed_form:
            return fitted.solve(self.weighted(z))
        R, known = fitted.R_, self._known_of(z)
        has_q = "q" in vars(self) or len(self.points) <= BLOCK
        if has_q and known is None and fitted.conversion_is_harmless:
            coordinates = self.inner_products(z)
            return coordinates, dtrsv(R, coordinates)
        coordinates = dtrsv(R, self._products(z) if known is None else known[0], trans=1)
        solution = dtrsv(R, coordinates)
        if known is not None and fitted.conversion_is_harmless:
            return coordinates, solution
        correction = dtrsv(R, self._products(z, solution), trans=1)
        return coordinates + correction, solution + dtrsv(R, correction)

    def _known_of(self, z: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Return the products and the variance of a target that came with the kernel; else None."""
        if self.known is None or _place(self.known[0]) != _place(z):
            return None
        return self.known[1:]

    def null_covariance(self, z: np.ndarray) -> np.ndarray:
        return float(np.var(self.residual(z))) * self._null_gram

    def null_noise(self, z: np.ndarray) -> np.ndarray:
        shares = np.broadcast_to(self.shares(slice(None)), self.n_rows)
        variance = float(np.var(self.residual(z))) * self.n_rows / (self.n_rows - 1)
        return variance * self.of_points(shares**2) / self._point_shares**2

    @cached_property
    def _null_gram(self) -> np.ndarray:
        """The same of targets of variance 1."""
        weighted = self.orthonormal * np.reshape(self.shares(slice(None)), (-1, 1))
        # Permuted values are slightly negatively correlated: hence n − 1, and the centring.
        weighted -= weighted.mean(axis=0)
        return self.n_rows / (self.n_rows - 1) * weighted.T @ weighted


def _place(values: np.ndarray) -> tuple[Any, ...]:
    """Return where an array is in memory: the same of all of its views."""
    return values.__array_interface__["data"], values.shape, values.strides, values.dtype
