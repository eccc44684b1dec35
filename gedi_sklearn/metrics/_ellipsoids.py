"""Norms over ellipsoids: their largest values, and how large an ellipsoid has to be."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import fdtri, stdtrit

N_DRAWS = 1000
# Up to this many terms the 2^r sign patterns of an L1 norm are enumerated.
MAX_PATTERNS = 12
# Standard errors of a sum below this share of those of its terms are roots of rounding errors.
_ROUNDING = 1e-6
# From this leverage on a row says nothing of how far the next one may be.
_MAX_LEVERAGE = 0.8
# Least entry of the diagonal, relative to the largest one.
_LEAST = 1e-12
# Columns up to which draws are kept.
_KEPT = 64


def normal_draws(covariance: np.ndarray, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
    """Return normal vectors of mean 0, shape (n_draws, k)."""
    return with_covariance(rng.standard_normal((n_draws, len(covariance))), covariance)


def with_covariance(draws: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return standard normal vectors (n_draws, k) as those of a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    # The symmetric root: of equal variances rounding chooses the axes, and would choose the draws.
    return draws @ (vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)


def fixed_draws(size: int, n_draws: int = N_DRAWS) -> np.ndarray:
    """Return standard normal vectors, shape (n_draws, size): the same ones in every call."""
    # Some kernels have thousands of columns: these are not kept.
    drawn = _kept_draws if size <= _KEPT else _kept_draws.__wrapped__
    return drawn(size, n_draws)


@lru_cache(maxsize=8)
def _kept_draws(size: int, n_draws: int) -> np.ndarray:
    draws = np.random.RandomState(0).standard_normal((n_draws, size))
    draws.setflags(write=False)
    return draws


def quantile_of_draws(draws: np.ndarray, level: float) -> np.ndarray:
    """Return what `np.quantile` does of the last axis without NaN, in a fifth of the time."""
    position = level * (draws.shape[-1] - 1)
    below = int(position)
    above = min(below + 1, draws.shape[-1] - 1)
    low, high = np.partition(draws, (below, above))[..., (below, above)].T
    return low + (position - below) * (high - low)


@lru_cache(maxsize=16)
def quantile_of_one(level: float, n_draws: int) -> float:
    """Return the quantile of the size of a single draw of variance 1."""
    return float(quantile_of_draws(np.abs(fixed_draws(1, n_draws)[:, 0]), level))


def limit_of_lacking_rows(
    c: np.ndarray,
    sizes: np.ndarray,
    share: np.ndarray | float,
    leverage: np.ndarray,
    confidence: float,
) -> float:
    """Return what S = ‖c‖ may be with the rows that a sample lacks by chance.

    Rows so rare that a sample lacks them with the probability 1 − γ are −log(1 − γ) of n, three at
    95 %. What each adds to S² is taken from the farthest row. The terms Q_j c_j may have other
    signs elsewhere, so their sizes add up. With the leverage h a row is 1/(1 − h) times as far for
    the other rows as for all, and so may be the next one for all.

    Parameters
    ----------
    c : ndarray of shape (k,)
        Coordinates of the target.
    sizes : ndarray of shape (r,)
        |Q| |c| of the rows, or of those that are the farthest.
    share, leverage : ndarray of shape (r,)
        Their weights, those of all rows summing to 1, and their leverage.
    confidence : float
        γ.
    """
    beyond = 1 / (1 - np.minimum(leverage, _MAX_LEVERAGE))
    reach = np.sqrt(share) * beyond * sizes
    return float(np.hypot(np.linalg.norm(c), np.sqrt(-np.log1p(-confidence)) * reach.max()))


def farthest(v: np.ndarray, covariance: np.ndarray, norm: str, z: float) -> np.ndarray:
    r"""Return max s·v + z·se(s·v) over the vectors s of which a norm is the largest s·v.

    That is the largest norm in an ellipsoid of z standard errors about v.

    Parameters
    ----------
    v : ndarray of shape (r,)
        The centre.
    covariance : ndarray of shape (r, r)
        Of v.
    norm : {"l1", "sd", "each"}
        Σ|v_j|: the s are all patterns of signs. The root of Σv_j²: all unit vectors. The |v_j|
        themselves: the axes.
    z : float
        Number of standard errors.

    Returns
    -------
    ndarray of shape (1,), or (r,) for "each"
        For an L1 norm of more than twelve terms a bound of it, Σ|v_j| + z·se(v_j).
    """
    if norm == "sd":
        return np.array([farthest_from_zero(v, covariance, z)])
    if norm == "l1" and len(v) > MAX_PATTERNS:
        return np.array([np.abs(v).sum() + z * np.sqrt(np.diag(covariance)).sum()])
    directions = directions_of(norm, len(v))
    values = np.abs(directions @ v) + z * _standard_errors(directions, covariance)
    return values if norm == "each" else values.max(keepdims=True)


def directions_of(norm: str, size: int) -> np.ndarray:
    if norm == "each":
        return np.eye(size)
    # Half of the patterns are enough: the others are their negatives.
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=size - 1)])


def _standard_errors(directions: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(((directions @ covariance) * directions).sum(axis=1), 0.0))


def farthest_from_zero(v: np.ndarray, covariance: np.ndarray, z: float) -> float:
    """Return the largest Euclidean norm in an ellipsoid.

    By duality its square is the least μ(z² + Σ a_i²/(μ − λ_i)) over μ beyond the largest
    eigenvalue λ_1, with a the centre along the axes. Every such μ gives an upper bound.
    """
    # As numbers near 1, whose fourth powers are floats.
    unit = float(np.abs(v).max()) + float(np.sqrt(np.abs(covariance).max())) or 1.0
    values, vectors = np.linalg.eigh(covariance / unit / unit)
    values, along = np.maximum(values, 0.0), vectors.T @ (v / unit)
    first, pull = values.max(), float(np.linalg.norm(np.sqrt(values) * along))
    if z == 0 or pull == 0:
        return unit * float(np.hypot(np.linalg.norm(along), z * np.sqrt(first)))

    def square(beyond: float) -> float:
        terms = along**2 / (beyond + (first - values))
        return float((first + beyond) * (z**2 + terms.sum()))

    return unit * _least_root(square, pull / z)


def _least_root(square: Callable[[float], float], reach: float) -> float:
    """Return the root of the least value over μ − λ_1, which is at most ‖√λ a‖/z there."""
    options = {"bounds": (0.0, reach), "method": "bounded", "options": {"xatol": 1e-9 * reach}}
    return float(np.sqrt(minimize_scalar(square, **options).fun))


def root_of_decreasing(excess: Callable[[float], float], start: float, least: float) -> float:
    """Return where a decreasing function of a positive number is 0; 0 if that is below `least`."""
    high = start
    while excess(high) > 0:
        high *= 2
    low = high
    while excess(low) < 0 and low > least:
        high, low = low, low / 4
    return float(brentq(excess, low, high, xtol=1e-300, rtol=1e-12)) if excess(low) > 0 else 0.0


def farthest_direction(v: np.ndarray, covariance: np.ndarray, z: float) -> np.ndarray:
    """Return the unit vector s with the largest s·v + z·se(s·v), to about a hundredth.

    With μ as above it is along (1 − λ_i/μ)⁻¹ a_i.
    """
    values, vectors = np.linalg.eigh(covariance)
    largest = float(values[-1])
    if z <= 0 or largest <= 0:
        return v / np.linalg.norm(v)
    along = vectors.T @ v
    multipliers = largest * (1 + np.geomspace(1e-9, 1e6, 120))
    tried = along / (1 - values / multipliers[:, None])
    tried = np.vstack([tried, np.eye(len(v))[-1]])
    tried /= np.linalg.norm(tried, axis=1, keepdims=True)
    reached = np.abs(tried @ along) + z * np.sqrt(np.maximum(tried**2 @ values, 0.0))
    return vectors @ tried[reached.argmax()]


def error_quantile(
    covariance: np.ndarray, norm: str, confidence: float, n_free: int, *, simultaneous: bool
) -> float:
    """Return z for :func:`farthest`, such that what it returns is an upper confidence limit.

    Parameters
    ----------
    covariance : ndarray of shape (r, r)
        Of v.
    norm : {"l1", "sd", "each"}
        As there.
    confidence : float
        Confidence.
    n_free : int
        Degrees of freedom of the residuals.
    simultaneous : bool
        Whether the limits s·v + z·se(s·v) are to hold for all s at once. The true norm is s·v for
        one s, so where that does not depend on the rows, one of them is enough.

    Returns
    -------
    float
        A simulated quantile for patterns of signs and axes, otherwise exact for normal errors.
    """
    if not simultaneous:
        z = float(stdtrit(n_free, confidence))
        # The nearest point of an ellipsoid has no such formula: below 1/2 it is the centre.
        return max(z, 0.0) if norm == "sd" else z
    if norm == "sd" or (norm == "l1" and len(covariance) > MAX_PATTERNS):
        rank = np.linalg.matrix_rank(covariance, hermitian=True)
        return float(np.sqrt(rank * fdtri(max(rank, 1), n_free, confidence)))
    if len(covariance) == 1 and covariance[0, 0] > 0:
        return quantile_of_one(confidence, 4 * N_DRAWS)
    directions = directions_of(norm, len(covariance))
    errors = _standard_errors(directions, covariance)
    terms = np.abs(directions) @ np.sqrt(np.maximum(np.diag(covariance), 0.0))
    kept = errors > _ROUNDING * terms
    if not kept.any():
        return 0.0
    draws = with_covariance(fixed_draws(len(covariance), 4 * N_DRAWS), covariance)
    # In blocks, since there may be 2,048 patterns.
    worst = [
        np.abs(block @ directions[kept].T / errors[kept]).max(axis=1)
        for block in np.array_split(draws, 4)
    ]
    return float(quantile_of_draws(np.concatenate(worst), confidence))


class GroupCovariance:
    r"""V = Σ s s', the covariance of the coordinates of many groups, without a matrix of them.

    A row of group j adds s = e Q_j − m c to the coordinates c. With :math:`y = \sqrt{p}\, Q c` in
    the place of c, of the same norm and at right angles to :math:`u = \sqrt p`, V is what the
    projection beside u leaves of a diagonal matrix, and a matrix of rank 2. Systems with it are
    solved by the formula of Sherman, Morrison and Woodbury.

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

        return _least_root(square, pull / z)

    def nearest(self, z: float) -> float:
        """Return the least norm there."""
        y = self.point
        if y @ self.solved(y) <= z**2:
            return 0.0

        def excess(multiplier: float) -> float:
            x = self.solved(y, multiplier)
            return float(x @ self.times(x)) - z**2

        multiplier = root_of_decreasing(excess, self.first[0], 1e-30 * self.first[0])
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
