"""What the draw of the rows may do to coordinates of targets, and to a norm of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from .._geometry import Block
from ..kernels import Design

_N_DRAWS = 1000
# Numbers that are drawn at a time.
_MOST_NUMBERS = 1_000_000
# Up to this many terms the 2^r sign patterns of an L1 norm are enumerated.
_MAX_PATTERNS = 12
# Standard errors below this share of the largest one are rounding errors.
_ROUNDING = 1e-9
# From this leverage on a row says nothing of how far the next one may be.
_MAX_LEVERAGE = 0.8


def robust_covariance(
    design: Design, columns: np.ndarray, *, is_basis_drawn: bool = False
) -> np.ndarray:
    """Return the HC3 covariance of coordinates, valid under unequal variances of the residuals.

    Parameters
    ----------
    design : Design
        The kernel on the rows.
    columns : ndarray of shape (n, m)
        Targets, or several.
    is_basis_drawn : bool, default=False
        Whether the coordinates are compared across draws of the rows, as a norm of them is: the
        orthonormal basis is then another one each time. Raw coefficients do not depend on it.

    Returns
    -------
    ndarray of shape (m·k, m·k)
        Of the coordinates of all columns, one after another.
    """
    # c = G^(−1/2) E[f z], with G the kernel's covariance, moves by q(z − q'c) + ½(qq' − I)c.
    share = 0.5 if is_basis_drawn else 0.0
    coordinates = [design.coordinates(column) for column in columns.T]
    errors = [
        _errors(design, column, c, share) for column, c in zip(columns.T, coordinates, strict=True)
    ]
    scores = np.block([[design.gram(first * second) for second in errors] for first in errors])
    mean = share * np.concatenate(coordinates)
    weight = np.broadcast_to(design.shares(slice(None)), design.n_rows)
    return scores - float(weight @ weight) * np.outer(mean, mean)


def _errors(design: Design, z: np.ndarray, c: np.ndarray, share: float) -> np.ndarray:
    """Return w(e/(1 − h) + share·q'c), with e = z − q'c: what the rows without one lack of it."""
    residual, explained = design.residual(z), design.explained(c)
    residual = residual - design.mean(residual) - explained
    residual /= 1 - np.minimum(design.leverage(), 1 - 1e-9)
    return design.shares(slice(None)) * (residual + share * explained)


def normal_draws(covariance: np.ndarray, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
    """Return normal vectors of mean 0, shape (n_draws, k)."""
    return _with_covariance(rng.standard_normal((n_draws, len(covariance))), covariance)


def _with_covariance(draws: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return standard normal vectors (n_draws, k) as those of a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return draws @ (vectors * np.sqrt(np.maximum(values, 0.0))).T


@lru_cache(maxsize=4)  # some kernels have thousands of columns
def _fixed_draws(size: int) -> np.ndarray:
    """Return standard normal vectors, shape (_N_DRAWS, size): the same ones in every call."""
    draws = np.random.RandomState(0).standard_normal((_N_DRAWS, size))
    draws.setflags(write=False)
    return draws


def lower_limits(block: Block, columns: np.ndarray, confidence_level: float = 0.95) -> np.ndarray:
    r"""Return lower confidence limits of the norms that a block bounds, which hold together.

    By the triangle inequality \|v̂\| exceeds \|v\| by no more than the norm of the sampling error,
    whose quantile is simulated. So the limit holds where v is 0 as well, unlike one from the
    error in the direction of v̂ (which is wrong in 9 % of samples at degree 5, not in 5 %).

    Parameters
    ----------
    block : Block
        The block, on the rows.
    columns : ndarray of shape (n, C)
        All columns of the targets.
    confidence_level : float, default=0.95
        Probability that all limits are below the true norms.

    Returns
    -------
    ndarray of shape (c,)
        NaN where the rows leave no degree of freedom.
    """
    design, norms = block.design, block.allowed.sizes
    values = norms(block.measure(columns)[0])
    if design.n_rows <= design.n_covariates + design.fitted.n_columns + 1:
        return np.full(len(values), np.nan)
    level = 1 - (1 - confidence_level) / len(values)
    errors = _deviation_draws if block.sums_groups else _draws
    noise = np.hstack([norms(own.T) for own in errors(block, block.of(columns))])
    return values - np.quantile(noise, level, axis=1)


def _draws(block: Block, columns: np.ndarray) -> Iterator[np.ndarray]:
    """Yield draws of the sampling error of v = A c, shape (draws, m·r)."""
    of_all = np.kron(np.eye(columns.shape[1]), block.operator)
    is_basis_drawn = block.allowed.is_of_coordinates
    covariance = of_all @ robust_covariance(block.design, columns, is_basis_drawn=is_basis_drawn)
    yield _with_covariance(_fixed_draws(len(of_all)), covariance @ of_all.T)


def _deviation_draws(block: Block, columns: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the same of the deviations of groups, whose sums of errors are independent."""
    design, weights = block.design, block.kernel.weights
    m, rng = columns.shape[1], np.random.RandomState(0)
    errors = [_errors(design, own, design.coordinates(own), 0.0) for own in columns.T]
    sums = [design.of_points(one * other) for one in errors for other in errors]
    values, vectors = np.linalg.eigh(np.stack(sums, axis=-1).reshape(-1, m, m))
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
    n_draws = max(1, min(_N_DRAWS, _MOST_NUMBERS // (m * len(weights))))
    for start in range(0, _N_DRAWS, n_draws):
        normal = rng.standard_normal((min(n_draws, _N_DRAWS - start), len(weights), m, 1))
        moved = (root @ normal)[..., 0]
        moved = (moved / weights[:, None] - moved.sum(axis=1, keepdims=True)) / block.kernel.share
        yield np.moveaxis(moved, 1, 2).reshape(len(moved), -1)


def upper_limits(
    block: Block,
    columns: np.ndarray,
    confidence: float,
    *,
    simultaneous: bool,
    inflation: float = 1.0,
) -> np.ndarray:
    r"""Return upper confidence limits of the norms that a block bounds, which hold together.

    A norm is the largest s·v over some vectors s, so the true one is s·v for one of them, and the
    largest of their limits s·v̂ + z·se(s·v̂) is its limit.

    Parameters
    ----------
    block, columns
        As in :func:`lower_limits`. Of Σ|v_j| the s are all patterns of signs; of the root of
        Σv_j², with v = c, all unit vectors; of the |v_j| themselves the axes.
    confidence : float
        Confidence.
    simultaneous : bool
        Whether the limits of all s are to hold at once, since s depends on the rows. One is enough
        for a norm whose s does not.
    inflation : float, default=1.0
        Multiplies the covariance.

    Returns
    -------
    ndarray of shape (1,), or (m·r,) for "each"
        NaN where the rows leave no degree of freedom.
    """
    design, columns, norm = block.design, block.of(columns), block.allowed.norm
    # In units of the largest row, so that squares do not overflow.
    unit = float(np.abs(block.operator).max()) or 1.0
    rows = block.operator / unit
    v = np.concatenate([rows @ design.coordinates(column) for column in columns.T])
    n_free = design.n_rows - design.n_covariates - design.fitted.n_columns - 1
    if n_free <= 0:
        return np.full(len(v) if norm == "each" else 1, np.nan)
    of_all = np.kron(np.eye(columns.shape[1]), rows)
    covariance = robust_covariance(design, columns, is_basis_drawn=norm == "sd")
    covariance = inflation * of_all @ covariance @ of_all.T
    z = error_quantile(covariance, norm, confidence, n_free, simultaneous=simultaneous)
    limits = unit * farthest(v, covariance, norm, z)
    if norm != "sd":
        return limits
    limits = limits + _skewness_term(design, columns[:, 0], z)
    lacking = limit_of_lacking_rows(
        design.coordinates(columns[:, 0]),
        design.orthonormal,
        design.shares(slice(None)),
        design.leverage(),
        confidence,
    )
    return np.maximum(limits, lacking)


def _skewness_term(design: Design, column: np.ndarray, z: float) -> float:
    """Return what the skewness of S = ‖c‖ adds to its limit of z standard errors.

    S² is a mean of squares. Of a mean with skewness γ/√n the studentised error has the quantile
    −z − γ(1 + 2z²)/6√n, by its Edgeworth expansion (Hall 1992, section 2.6).
    """
    c = design.coordinates(column)
    size = float(np.linalg.norm(c))
    if not size:
        return 0.0
    errors = design.explained(c) / size * _errors(design, column, c, 0.5)
    errors -= design.shares(slice(None)) * errors.sum()
    unit = float(np.abs(errors).max()) or 1.0  # third powers would leave the range of floats
    errors /= unit
    variance = float((errors**2).sum())
    third = unit * float((errors**3).sum())
    return max(third, 0.0) / variance * (1 + 2 * z**2) / 6 if variance else 0.0


def limit_of_lacking_rows(
    c: np.ndarray, q: np.ndarray, share: np.ndarray | float, leverage: np.ndarray, confidence: float
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
    q : ndarray of shape (r, k)
        Q of the rows, or of those that are the farthest.
    share, leverage : ndarray of shape (r,)
        Their weights, those of all rows summing to 1, and their leverage.
    confidence : float
        γ.
    """
    beyond = 1 / (1 - np.minimum(leverage, _MAX_LEVERAGE))
    reach = np.sqrt(share) * beyond * (np.abs(q) @ np.abs(c))
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
        return np.array([_farthest_from_zero(v, covariance, z)])
    if norm == "l1" and len(v) > _MAX_PATTERNS:
        return np.array([np.abs(v).sum() + z * np.sqrt(np.diag(covariance)).sum()])
    directions = _directions(norm, len(v))
    values = np.abs(directions @ v) + z * _standard_errors(directions, covariance)
    return values if norm == "each" else values.max(keepdims=True)


def _directions(norm: str, size: int) -> np.ndarray:
    if norm == "each":
        return np.eye(size)
    # Half of the patterns are enough: the others are their negatives.
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=size - 1)])


def _standard_errors(directions: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(((directions @ covariance) * directions).sum(axis=1), 0.0))


def _farthest_from_zero(v: np.ndarray, covariance: np.ndarray, z: float) -> float:
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

    # At the optimum, μ − λ_1 is at most ‖√λ a‖/z.
    reach = pull / z
    options = {"bounds": (0.0, reach), "method": "bounded", "options": {"xatol": 1e-9 * reach}}
    return unit * float(np.sqrt(minimize_scalar(square, **options).fun))


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
        z = float(t_distribution.ppf(confidence, n_free))
        # The nearest point of an ellipsoid has no such formula: below 1/2 it is the centre.
        return max(z, 0.0) if norm == "sd" else z
    if norm == "sd" or (norm == "l1" and len(covariance) > _MAX_PATTERNS):
        rank = np.linalg.matrix_rank(covariance, hermitian=True)
        return float(np.sqrt(rank * f_distribution.ppf(confidence, max(rank, 1), n_free)))
    directions = _directions(norm, len(covariance))
    errors = _standard_errors(directions, covariance)
    kept = errors > _ROUNDING * errors.max()
    if not kept.any():
        return 0.0
    draws = normal_draws(covariance, 4 * _N_DRAWS, np.random.RandomState(0))
    # In blocks, since there may be 2,048 patterns.
    worst = [
        np.abs(block @ directions[kept].T / errors[kept]).max(axis=1)
        for block in np.array_split(draws, 4)
    ]
    return float(np.quantile(np.concatenate(worst), confidence))
