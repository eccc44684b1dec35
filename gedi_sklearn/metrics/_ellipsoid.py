"""The range of a norm of v = A c over an ellipsoid, given by a matrix or by the means of groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar

from ._sampling import farthest

# Half-widths below this share of the targets' deviation are rounding errors.
_ROUNDING = 1e-12


def norm_of(terms: np.ndarray, norm: str) -> np.ndarray:
    """Return the norm of terms (…, r)."""
    return np.abs(terms).sum(axis=-1) if norm == "l1" else np.linalg.norm(terms, axis=-1)


class Ellipsoid(ABC):
    """v = target + spread u, ‖u‖ ≤ 1, of which a norm is taken.

    Parameters
    ----------
    target : ndarray of shape (r,)
        v at the centre.
    widths : ndarray of shape (r,)
        Half-widths of v, the norms of the rows of spread.
    norm : str
        "l1", or else the Euclidean norm.
    """

    # What v is in units of, and whether the ellipsoid is a point: the targets are then what the
    # kernel spans.
    unit = 1.0
    is_point = False

    def __init__(self, target: np.ndarray, widths: np.ndarray, norm: str) -> None:
        self.target, self.widths, self.norm = target, widths, norm

    def range_of_norm(self) -> tuple[float, float]:
        """Return the smallest norm, and the largest or an upper bound of it."""
        if self.is_point:
            exact = self.unit * float(norm_of(self.target, self.norm))
            return exact, exact
        low = 0.0
        if not self._holds_zero():
            low = self._nearest_sum() if self.norm == "l1" else self._nearest()
        return self.unit * low, self.unit * self._largest()

    @abstractmethod
    def _holds_zero(self) -> bool:
        """Tell whether v can be 0."""

    @abstractmethod
    def _pull(self, s: np.ndarray) -> np.ndarray:
        """Return spread' s."""

    @abstractmethod
    def _push(self, u: np.ndarray) -> np.ndarray:
        """Return spread u."""

    @abstractmethod
    def _largest(self) -> float:
        """Return the largest norm, or an upper bound of it."""

    @abstractmethod
    def _shrunk(self, multiplier: float) -> tuple[float, float]:
        """Return ‖u‖² − 1 and ‖v‖ at the u that minimises ‖v‖² + multiplier ‖u‖²."""

    def _nearest(self) -> float:
        """Return the least Euclidean norm."""
        high = float(np.linalg.norm(self._pull(self.target))) + 1.0
        while self._shrunk(high)[0] > 0:
            high *= 2
        low = high
        while self._shrunk(low)[0] < 0 and low > 1e-300:
            high, low = low, low / 4
        if self._shrunk(low)[0] > 0:
            low = brentq(lambda m: self._shrunk(m)[0], low, high, xtol=1e-300, rtol=1e-12)
        return self._shrunk(low)[1]

    def _nearest_sum(self) -> float:
        """Return the least L1 norm.

        The dual is solved: max s'target − ‖spread's‖ over |s| ≤ 1. Its value at any point is a
        lower bound.
        """
        # Every term in units of its own half-width, in which the dual is well scaled.
        width = np.maximum(self.widths, 1e-12 * (self.widths.max() + np.abs(self.target).max()))
        target = self.target / width

        def negative(s: np.ndarray) -> tuple[float, np.ndarray]:
            pulled = self._pull(s / width)
            size = float(np.sqrt(pulled @ pulled + 1e-30))
            return size - float(s @ target), self._push(pulled) / width / size - target

        start = np.sign(target) * width
        value, slope = negative(start)
        if (slope * start > 0).any():
            # Otherwise the ellipsoid lies in one orthant of the terms, and this corner is optimal.
            bounds = np.column_stack([-width, width])
            value = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds).fun
        return float(max(-value, 0.0))


class MatrixEllipsoid(Ellipsoid):
    """That of coordinates, c = centre + root u.

    Parameters
    ----------
    matrix : ndarray of shape (r, k)
        A; it keeps the length of c for the Euclidean norm.
    center : ndarray of shape (k,)
        The centre.
    covariance : ndarray of shape (k, k)
        Of c.
    radius : float
        How many roots of the covariance reach from the centre to the surface.
    norm : str
        As in :class:`Ellipsoid`.
    """

    def __init__(
        self,
        matrix: np.ndarray,
        center: np.ndarray,
        covariance: np.ndarray,
        radius: float,
        norm: str,
    ) -> None:
        values, vectors = np.linalg.eigh(covariance)
        self._center, self._root = center, vectors * np.sqrt(np.maximum(values, 0.0)) * radius
        self.is_point = bool(np.linalg.norm(self._root) <= _ROUNDING)
        # In units of the largest entry, whose squares do not overflow; coordinates have none.
        self.unit = float(np.abs(matrix).max()) or 1.0 if norm == "l1" else 1.0
        self._spread = matrix / self.unit @ self._root
        widths = np.linalg.norm(self._spread, axis=1)
        super().__init__(matrix / self.unit @ center, widths, norm)

    def _holds_zero(self) -> bool:
        distance = np.linalg.lstsq(self._root, self._center, rcond=None)[0]
        is_near = np.linalg.norm(distance) <= 1
        return bool(is_near and np.allclose(self._root @ distance, self._center, rtol=1e-9))

    def _pull(self, s: np.ndarray) -> np.ndarray:
        return self._spread.T @ s

    def _push(self, u: np.ndarray) -> np.ndarray:
        return self._spread @ u

    @cached_property
    def _axes(self) -> tuple[np.ndarray, np.ndarray]:
        """The principal axes, and the centre along them."""
        vectors, axes, _ = np.linalg.svd(self._root)
        return axes, vectors.T @ self._center

    def _shrunk(self, multiplier: float) -> tuple[float, float]:
        axes, along = self._axes
        rest = along / (axes**2 + multiplier)
        return float(np.square(axes * rest).sum() - 1), multiplier * float(np.linalg.norm(rest))

    def _largest(self) -> float:
        covariance = self._spread @ self._spread.T
        return float(farthest(self.target, covariance, self.norm, 1.0)[0])


class GroupEllipsoid(Ellipsoid):
    """That of the means of groups, m = means + root u with a diagonal root.

    Their mean is free, since the terms s (m − b'm) do not depend on it: so the ellipsoid is that
    of the coordinates.

    Parameters
    ----------
    form : GroupForm
        The terms of more groups than patterns of signs can be tried for.
    means, noise : ndarray of shape (g,)
        The means of the groups, and their variances.
    radius : float
        As in :class:`MatrixEllipsoid`.
    """

    def __init__(self, form: Any, means: np.ndarray, noise: np.ndarray, radius: float) -> None:
        self._form, self._means = form, means
        self._root = radius * np.sqrt(noise)
        p = form.kernel.weights
        self.is_point = bool(radius * np.sqrt(noise @ (p * (1 - p))) <= _ROUNDING)
        # Of the deviation of the means, in which the covariance is a projected diagonal.
        self._constant, self._variances = np.sqrt(p), p * self._root**2
        widths = radius * np.sqrt(form.variances(noise))
        super().__init__(form.terms(means), widths, form.norm)

    def _holds_zero(self) -> bool:
        is_exact = self._root <= 1e-12 * self._root.max()
        if is_exact.any():
            level, rest = self._means[is_exact].mean(), ~is_exact
            if not np.allclose(self._means[is_exact], level, rtol=1e-9, atol=1e-12):
                return False
        else:
            share, rest = 1 / self._root**2, slice(None)
            level = share @ self._means / share.sum()
        return bool(np.linalg.norm((self._means[rest] - level) / self._root[rest]) <= 1)

    def _pull(self, s: np.ndarray) -> np.ndarray:
        return self._root * self._form.adjoint(s)

    def _push(self, u: np.ndarray) -> np.ndarray:
        return self._form.terms(self._root * u)

    def _solve(self, shift: float) -> np.ndarray:
        """Return (C + shift)⁻¹ target, with C the covariance, orthogonal to the constant."""
        inverse = 1 / (self._variances + shift)
        along, constant = inverse * self.target, inverse * self._constant
        return along - constant * (self._constant @ along) / (self._constant @ constant)

    def _shrunk(self, multiplier: float) -> tuple[float, float]:
        rest = self._solve(multiplier)
        size = float(rest @ (self._variances * rest))
        return size - 1, multiplier * float(np.linalg.norm(rest))

    def _largest(self) -> float:
        if self.norm == "l1":
            return float(np.abs(self.target).sum() + self.widths.sum())
        first, pull = self._largest_variance(), float(np.linalg.norm(self._pull(self.target)))
        if pull == 0:
            return float(np.hypot(np.linalg.norm(self.target), np.sqrt(first)))

        def square(beyond: float) -> float:
            return (first + beyond) * (1 - float(self.target @ self._solve(-first - beyond)))

        # As in `farthest`: at the optimum the multiplier is at most that far beyond.
        options = {"bounds": (0.0, pull), "method": "bounded", "options": {"xatol": 1e-9 * pull}}
        return float(np.sqrt(minimize_scalar(square, **options).fun))

    def _largest_variance(self) -> float:
        """Return the largest eigenvalue of the covariance, between the two largest variances."""
        second, first = np.partition(self._variances, -2)[-2:].tolist()
        gap = 1e-12 * first
        if first - second <= 2 * gap:
            return second

        def secular(value: float) -> float:
            return float(self._constant @ (self._constant / (value - self._variances)))

        return brentq(secular, second + gap, first - gap, xtol=1e-300, rtol=1e-12)
