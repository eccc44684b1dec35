r"""The covariance of the coordinates of many groups, without a matrix of them.

A row of group j adds s = e Q_j − m c to the coordinates c. With :math:`y = \sqrt{p}\, Q c` in the
place of c, of the same norm and at right angles to :math:`u = \sqrt p`, the sum of all s s' is what
the projection beside u leaves of a diagonal matrix, and a matrix of rank 2. Systems with it are
solved by the formula of Sherman, Morrison and Woodbury.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.sparse.linalg import LinearOperator, eigsh

# Least entry of the diagonal, relative to the largest one.
_LEAST = 1e-12


class GroupCovariance:
    """V = Σ s s'.

    Parameters
    ----------
    kernel : IndicatorKernel
        The groups.
    c : ndarray of shape (k,)
        The coordinates.
    squares, crossed : ndarray of shape (g,)
        Σ e² and Σ e m of every group.
    center : float
        Σ m².
    """

    def __init__(
        self, kernel: Any, c: np.ndarray, squares: np.ndarray, crossed: np.ndarray, center: float
    ) -> None:
        self._kernel, self._root = kernel, np.sqrt(kernel.share * kernel.weights)
        self.rank = min(len(c), int((squares > 0).sum()))
        diagonal, u = squares / self._root**2, np.sqrt(kernel.weights)
        self._diagonal = np.maximum(diagonal, _LEAST * diagonal.max())
        self.point = self._root * kernel.of_groups(c)
        b = crossed / self._root
        # Along u, where no coordinates are, V is as large as elsewhere.
        self._along, self._u = 0.5 * float(self._diagonal.mean()), u
        self._factor = np.column_stack([u, self._diagonal * u, b - u * (u @ b), self.point])
        inner = np.zeros((4, 4))
        inner[:2, :2] = [[u @ (self._diagonal * u) + self._along, -1.0], [-1.0, 0.0]]
        inner[2:, 2:] = [[0.0, -1.0], [-1.0, center]]
        self._inner = inner

    def coordinates(self, y: np.ndarray) -> np.ndarray:
        """Return the coordinates c of y."""
        return self._kernel.coordinates(y / self._root)

    def times(self, y: np.ndarray) -> np.ndarray:
        """Return V y."""
        return self._diagonal * y + self._factor @ (self._inner @ (self._factor.T @ y))

    def solved(self, y: np.ndarray, shift: float = 0.0) -> np.ndarray:
        """Return (V + shift)⁻¹ y."""
        diagonal = self._diagonal + shift
        scaled = self._factor / diagonal[:, None]
        core = np.linalg.inv(self._inner) + self._factor.T @ scaled
        return y / diagonal - scaled @ np.linalg.solve(core, scaled.T @ y)

    def leverages(self, group: np.ndarray, error: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return s'V⁻¹s of rows."""
        scaled = self._factor / self._diagonal[:, None]
        core = np.linalg.inv(self._inner) + self._factor.T @ scaled
        of_groups = 1 / self._diagonal - (scaled * np.linalg.solve(core, scaled.T).T).sum(axis=1)
        of_groups = (of_groups - self._u**2 / self._along) / self._root**2
        back = self.solved(self.point)
        crossed = (back / self._root)[group]
        center = float(back @ self.point)
        return error**2 * of_groups[group] - 2 * mean * error * crossed + mean**2 * center

    @cached_property
    def first(self) -> tuple[float, np.ndarray]:
        """The largest eigenvalue, and its eigenvector y."""
        size = len(self._u)
        operator = LinearOperator((size, size), matvec=lambda y: self.times(np.ravel(y)))
        start = np.random.RandomState(0).standard_normal(size)
        values, vectors = eigsh(operator, k=1, which="LA", v0=start)
        return float(values[0]), vectors[:, 0]

    def farthest(self, z: float) -> float:
        """Return the largest norm within z standard errors; see :func:`farthest_from_zero`."""
        largest, y = self.first[0], self.point
        pull = float(np.sqrt(max(y @ self.times(y), 0.0)))
        if z == 0 or pull == 0:
            return float(np.hypot(np.linalg.norm(y), z * np.sqrt(largest)))

        def square(beyond: float) -> float:
            multiplier = largest + beyond
            return float(multiplier * (z**2 - y @ self.solved(y, -multiplier)))

        reach = pull / z
        options = {"bounds": (0.0, reach), "method": "bounded", "options": {"xatol": 1e-9 * reach}}
        return float(np.sqrt(minimize_scalar(square, **options).fun))

    def nearest(self, z: float) -> float:
        """Return the least norm there."""
        y = self.point
        if y @ self.solved(y) <= z**2:
            return 0.0

        def excess(multiplier: float) -> float:
            x = self.solved(y, multiplier)
            return float(x @ self.times(x)) - z**2

        high = largest = self.first[0]
        while excess(high) > 0:
            high *= 2
        low = high
        while excess(low) < 0 and low > 1e-30 * largest:
            high, low = low, low / 4
        multiplier = float(brentq(excess, low, high, xtol=1e-300, rtol=1e-12))
        return multiplier * float(np.linalg.norm(self.solved(y, multiplier)))

    def farthest_direction(self, z: float) -> np.ndarray:
        """Return the unit vector of the farthest point; see :func:`farthest_direction`."""
        largest, top = self.first
        multipliers = largest * (1 + np.geomspace(1e-9, 1e6, 120))
        tried = np.array([*(-m * self.solved(self.point, -m) for m in multipliers), top])
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        squares = np.array([one @ self.times(one) for one in tried])
        reached = np.abs(tried @ self.point) + z * np.sqrt(np.maximum(squares, 0.0))
        return self.coordinates(tried[reached.argmax()])
