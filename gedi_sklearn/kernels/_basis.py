"""The standardised columns in which a kernel is computed, and the way back to its own units."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validation import check_numbers
from ._moments import expansion, fill_monomials, fill_powers, monomial_factors, weighted_moments
from ._named import is_named_type
from ._transformers import PolynomialKernel


class Basis:
    """The standardised columns of a kernel and the change of basis to its own columns.

    Attributes
    ----------
    to_raw : ndarray of shape (k, k)
        T, upper triangular.
    """

    to_raw: np.ndarray
    # Whether the columns are the powers of one attribute, and whether they are standardised by some
    # rows, with `standardize_on` and `move`.
    are_powers = can_move = False

    @property
    def from_raw(self) -> np.ndarray:
        """The inverse of T; indicators do not ask for it."""
        raise NotImplementedError

    def evaluate(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return the standardised columns, not centred, for attribute values (n, m).

        `out` of shape (k, n) takes them, if it is given.
        """
        raise NotImplementedError

    def combined(
        self,
        values: np.ndarray,
        matrix: np.ndarray,
        offset: np.ndarray,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the standardised columns times a matrix (k, r), plus an offset (r,).

        `out` of shape (r, n) takes them, if it is given.
        """
        columns = np.matmul(matrix.T, self.evaluate(values).T, out=out)
        columns += offset[:, None]
        return columns.T

    def standardize_on(self, values: np.ndarray, weight: np.ndarray | None) -> None:
        """Standardise by given rows."""
        raise NotImplementedError

    def move(self, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Standardise by another mean and deviation, each of what is standardised at present.

        Returns
        -------
        ndarray of shape (1 + k, 1 + k)
            What the present columns, with a leading 1, are multiplied by to give the new ones.
        """
        raise NotImplementedError

    def restandardized(self, center: np.ndarray, R: np.ndarray) -> Basis:
        """Return the same columns, of which those that users see are standardised on other rows.

        Parameters
        ----------
        center : ndarray of shape (k,)
            Mean of the standardised columns on those rows.
        R : ndarray of shape (k, k)
            Their QR factor there.

        Returns
        -------
        Basis
        """
        return self

    def of_columns(self, columns: np.ndarray) -> Basis:
        """Return the change of basis of some columns, for coefficients alone."""
        basis = Basis()
        basis.to_raw = self.to_raw[np.ix_(columns, columns)]
        return basis


class PolynomialBasis(Basis):
    """Monomials of the standardised attribute, whatever the kernel's own unit.

    Attributes
    ----------
    mean, scale : ndarray of shape (m,)
        Subtracted from and divided out of the attributes.
    """

    def __init__(
        self, kernel: PolynomialKernel, values: np.ndarray, weight: np.ndarray | None
    ) -> None:
        self.powers = kernel.powers_
        encoder = getattr(kernel, "encoder", None)
        self.is_indicator = False if encoder is None else encoder.is_indicator
        self.are_powers, self.can_move = kernel.n_features_in_ == 1, not kernel.standardize
        if not self.can_move:
            self.mean, self.scale = kernel.mean_, kernel.scale_
            self.to_raw = self.from_raw = np.eye(len(self.powers))
        else:
            self.standardize_on(values, weight)

    def standardize_on(self, values: np.ndarray, weight: np.ndarray | None) -> None:
        self._standardize(*weighted_moments(values, weight))

    def _standardize(self, mean: np.ndarray, scale: np.ndarray) -> None:
        self.mean, self.scale = mean, scale
        self.to_raw = expansion(self.powers, -mean / scale, 1 / scale)

    def move(self, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        turn = np.eye(1 + len(self.powers))
        turn[0, 1:] = np.prod((-mean / scale) ** self.powers, axis=1)
        turn[1:, 1:] = expansion(self.powers, -mean / scale, 1 / scale)
        self._standardize(self.mean + mean * self.scale, self.scale * scale)
        return turn

    @cached_property
    def from_raw(self) -> np.ndarray:
        """The inverse of T."""
        return expansion(self.powers, self.mean, self.scale)

    def restandardized(self, center: np.ndarray, R: np.ndarray) -> PolynomialBasis:
        if self.can_move:
            return self
        m = len(self.mean)
        shift = np.where(self.is_indicator, 0.0, center[:m])
        scale = np.where(self.is_indicator, 1.0, np.linalg.norm(R[:, :m], axis=0))
        other = copy(self)
        other.to_raw = expansion(self.powers, shift, scale)
        other.from_raw = expansion(self.powers, -shift / scale, 1 / scale)
        return other

    def evaluate(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        columns = np.empty((len(self.powers), len(values)), values.dtype) if out is None else out
        standardized = columns[: values.shape[1]]
        np.subtract(values.T, self.mean[:, None], out=standardized)
        if values.dtype == np.float64:
            standardized *= 1 / self.scale[:, None]  # several times as fast as a division
        else:
            standardized /= self.scale[:, None]
        if values.shape[1] == 1:
            return fill_powers(columns)
        return fill_monomials(columns, monomial_factors(self.powers))


class ColumnBasis(Basis):
    """The kernel's own columns, each standardised: for kernels of unknown structure.

    Attributes
    ----------
    mean, scale : ndarray of shape (k,)
        Subtracted from and divided out of the columns.
    """

    can_move = True

    def __init__(
        self,
        columns_of: Callable[[np.ndarray], np.ndarray],
        mean: np.ndarray,
        scale: np.ndarray,
    ) -> None:
        self.columns_of = columns_of
        self._standardize(mean, scale)

    def standardize_on(self, values: np.ndarray, weight: np.ndarray | None) -> None:
        self._standardize(*weighted_moments(self.columns_of(values), weight))

    def _standardize(self, mean: np.ndarray, scale: np.ndarray) -> None:
        self.mean, self.scale = mean, scale
        for name in ("to_raw", "from_raw"):
            vars(self).pop(name, None)

    @cached_property
    def to_raw(self) -> np.ndarray:  # type: ignore[override]
        """T, diagonal."""
        return np.diag(1 / self.scale)

    @cached_property
    def from_raw(self) -> np.ndarray:
        """The inverse of T."""
        return np.diag(self.scale)

    def move(self, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        turn = np.diag(np.r_[1.0, 1 / scale])
        turn[0, 1:] = -mean / scale
        self._standardize(self.mean + mean * self.scale, self.scale * scale)
        return turn

    def evaluate(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        columns = np.subtract(self.columns_of(values).T, self.mean[:, None], out=out)
        columns /= self.scale[:, None]
        return columns.T


class SplineBasis(ColumnBasis):
    """The same of splines, which linear combinations of them cost no more than."""

    columns_of: KernelColumns

    def evaluate(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return self.combined(values, np.eye(len(self.mean)), np.zeros(len(self.mean)), out)

    def combined(
        self,
        values: np.ndarray,
        matrix: np.ndarray,
        offset: np.ndarray,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        own = matrix / self.scale[:, None]
        return self.columns_of.kernel.combined(values, own, offset - self.mean @ own, out)


class KernelColumns:
    """Evaluate a transformer, a callable, or (None) a matrix that is given as the values.

    A class rather than a closure, so that a fitted kernel can be pickled.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, values: np.ndarray) -> np.ndarray:
        columns: Any
        if self.kernel is None:
            columns = values
        elif is_named_type(self.kernel):  # finite where the values are
            return np.asarray(self.kernel.transform_checked(values))
        elif hasattr(self.kernel, "transform"):
            columns = self.kernel.transform(values)
        else:
            try:
                columns = self.kernel(values[:, 0] if values.shape[1] == 1 else values)
            except TypeError as error:  # such as numpy's of text
                raise TypeError(f"kernel={self.kernel!r} on sensitive_features: {error}") from error
        columns = columns.toarray() if sp.issparse(columns) else columns
        columns = check_numbers(columns, "the output of kernel")
        if columns.shape[0] != values.shape[0]:
            raise ValueError(
                f"kernel returned {columns.shape[0]} rows for {values.shape[0]} rows of "
                "sensitive_features."
            )
        return columns


def column_names(kernel: Any, n_columns: int, names: list[str] | None = None) -> list[str]:
    """Return the names of a kernel's columns, built from those of the attributes if it can."""
    if is_named_type(kernel):
        return list(map(str, kernel.column_names(names)))
    if hasattr(kernel, "get_feature_names_out"):
        return list(map(str, kernel.get_feature_names_out()))
    return [f"f{j}" for j in range(1, n_columns + 1)]
