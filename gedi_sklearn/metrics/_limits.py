r"""Confidence limits of norms of coordinates that know how few rows they rest on.

A norm is the largest s·v over some vectors s, with v = A c linear in the targets, so the true one
is s·v for one of them, and the largest of their limits is its limit. In a direction s row i adds
:math:`\eta_i = (Q_i \cdot A's)\, err_i` to the error of s·v, and a cluster its CR3 sum; see
:mod:`gedi_sklearn.metrics._errors`. One more row, that which the sample may lack, is added to their
moments:

.. math::
    \eta_* &= \max\Big(\max_i |\eta_i|,\ \frac{\sum |a|^3}{\sum a^2}
              \frac{\sum w |e|^3}{\sum w e^2}\Big), \quad a_i = w_i\, Q_i \cdot A's \\
    V &= \sum \eta^2 + \eta_*^2, \quad K_3 = \sum \eta^3 + \eta_*^3, \quad
    K_4 = \sum \eta^4 + \eta_*^4 \\
    \nu &= \min(2 V^2 / K_4,\ n_{free}) \\
    limit &= s \cdot v + \frac{\max(K_3, 0)}{V} \max\Big(1, \frac{1 + 2 z^2}{6}\Big)
             + t_\nu \sqrt V .

Without it a rate of 0 in 60 rows would have no error at all. ν are the degrees of freedom of V by
Satterthwaite, with its fourth moments plugged in; n_free is n − p − k − 1 beside p covariates and k
columns, of clusters their number − 1. The term of K₃ corrects for skewness: a studentised mean of
skewness γ/√n has the quantile −z − γ(1 + 2z²)/6√n, by its Edgeworth expansion (Johnson 1978; Hall
1992, section 2.6).

Weights are sampling weights: η holds them, and n counts rows of positive weight. A row of weight 2
has the value of two rows, and not their limit.

References
----------
F. E. Satterthwaite (1946): An approximate distribution of estimates of variance components.
Biometrics Bulletin 2.

N. J. Johnson (1978): Modified t tests and confidence intervals for asymmetrical populations.
Journal of the American Statistical Association 73.

P. Hall (1992): The Bootstrap and Edgeworth Expansion. Springer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import fdtrc, fdtri, ndtr, ndtri, stdtrit

from .._geometry import Block
from ..kernels import Design
from ._ellipsoids import (
    MAX_PATTERNS,
    N_DRAWS,
    directions_of,
    error_quantile,
    farthest_direction,
    farthest_from_zero,
    fixed_draws,
    limit_of_lacking_rows,
    quantile_of_draws,
    quantile_of_one,
    with_covariance,
)
from ._errors import Errors, Moments

# Numbers that are drawn at a time.
_MOST_NUMBERS = 1_000_000
# Limits of fewer degrees of freedom say what they rest on.
_FEW = 6.0
# Numbers of rows times directions from which directions are looked for first.
_MANY = 2_000_000
# Signs, for every direction.
_BOTH = np.array([[1.0], [-1.0]])
# Quantiles by degrees of freedom.
_Quantile = Callable[[Any], Any]


class Limits(NamedTuple):
    """Upper limits, and what they rest on where that is little.

    Attributes
    ----------
    values : ndarray
        One for each norm; NaN where the rows leave no degree of freedom, infinite where a row, or
        a cluster, determines a coefficient alone.
    few : str
        In words, where the degrees of freedom are fewer than 6 for want of rows in some places;
        "" elsewhere.
    """

    values: np.ndarray
    few: str = ""


@dataclass
class _Rule:
    """The rule, for directions of one problem.

    Parameters
    ----------
    errors : Errors
        What rows add.
    confidence : float
        Confidence.
    simultaneous : bool, default=False
        Whether the limits of all directions hold at once.
    n_new : int, default=None
        Number of rows, or clusters, of a new batch that is meant.
    """

    errors: Errors
    confidence: float
    simultaneous: bool = False
    n_new: int | None = None

    @property
    def widened(self) -> float:
        """What multiplies standard errors: a new batch adds its own."""
        return 1.0 if self.n_new is None else float(np.sqrt(1 + self.errors.n_units / self.n_new))

    def student(self, covariance: np.ndarray | None = None, norm: str = "") -> _Quantile:
        """Return t_ν, at the level at which all limits of a norm of this covariance hold."""
        level = self.confidence
        if self.simultaneous and covariance is not None:
            z = error_quantile(covariance, norm, level, self.errors.n_free, simultaneous=True)
            level = float(ndtr(z))
        return lambda nu: stdtrit(nu, level)

    def scheffe(self, rank: int | None = None) -> _Quantile:
        """Return the root of k F_{k,ν}, for all directions at once, with k the rank of errors."""
        if not self.simultaneous:
            return self.student()
        k = rank or int(np.linalg.matrix_rank(self.errors.covariance, hermitian=True)) or 1
        return lambda nu: np.sqrt(k * fdtri(k, nu, self.confidence))

    def reach(
        self, moments: Moments, sign: Any, quantile: _Quantile
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how far limits are beyond sign·s·v, and ν."""
        n_free = float(self.errors.n_free)
        star = np.maximum(moments.largest, moments.pooled)
        variance, fourth = moments.second + star**2, moments.fourth + star**4
        certain = variance == 0
        variance, fourth = np.where(certain, 1.0, variance), np.where(certain, 1.0, fourth)
        nu = np.where(certain, n_free, np.minimum(2 * variance**2 / fourth, n_free))
        z = float(ndtri(self.confidence))
        skewness = np.maximum(sign * moments.third + star**3, 0.0) / variance
        half = skewness * max(1.0, (1 + 2 * z**2) / 6) + quantile(nu) * np.sqrt(variance)
        return np.where(certain, 0.0, self.widened * half), nu

    def limits(
        self,
        directions: np.ndarray | None,
        values: np.ndarray,
        moments: Moments,
        quantile: _Quantile,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the limits of |s·v|, of both signs where s depends on the rows, and ν."""
        signs = _BOTH if self.simultaneous else np.where(values >= 0, 1.0, -1.0)[None]
        half, nu = self.reach(moments, signs, quantile)
        limits = (signs * values + half).max(axis=0)
        if directions is not None:
            limits = np.where(self.errors.determined_alone(directions), np.inf, limits)
        return limits, nu

    def few(self, limit: float, nu: float, direction: np.ndarray) -> str:
        """Return what a limit rests on, in words, where it is little."""
        is_little = np.isinf(limit) or nu < _FEW <= self.errors.n_free
        return self.errors.describe_heaviest(direction) if is_little else ""

    def of_patterns(self, operator: np.ndarray) -> Limits:
        """Return the limit of Σ|v_j|, over all patterns of signs."""
        errors = self.errors
        of_all = _of_all(operator, errors)
        quantile = self.student(of_all @ errors.covariance @ of_all.T, "l1")
        directions = directions_of("l1", len(of_all)) @ of_all
        if len(directions) * errors.n_summed > _MANY:
            directions = directions[self._may_be_largest(directions, quantile)]
        values = directions @ errors.coordinates.ravel()
        limits, nu = self.limits(directions, values, errors.moments(directions), quantile)
        worst = int(limits.argmax())
        return Limits(limits[[worst]], self.few(limits[worst], nu[worst], directions[worst]))

    def _may_be_largest(self, directions: np.ndarray, quantile: _Quantile) -> np.ndarray:
        """Tell which directions may have the largest limit, without a pass over the rows.

        No row adds more than the share L of any variance, so K₃ ≤ √L V^1.5 and K₄ ≤ L V² before
        the row that is added, and ν ≥ 2/L or what it is with the largest row.
        """
        errors, share = self.errors, self.errors.largest_leverage
        n_free = float(errors.n_free)
        if quantile(n_free) <= 0 or errors.determined_alone(directions).any():
            return np.ones(len(directions), dtype=bool)
        values = np.abs(directions @ errors.coordinates.ravel())
        variance = np.maximum(((directions @ errors.covariance) * directions).sum(axis=1), 0.0)
        pooled = errors.typical * errors.largest_pull[0] * np.linalg.norm(directions, axis=1)
        third, fourth = np.sqrt(share) * variance**1.5, share * variance**2
        largest = np.sqrt(share * variance)
        moments = Moments(variance, third, fourth, largest, pooled)
        least = 2 / max(share, 1 / n_free)
        high, _ = self.reach(moments, 1.0, lambda nu: quantile(np.minimum(nu, least)))
        low = self.widened * quantile(n_free) * np.sqrt(variance)
        return values + high >= (values + low).max()

    def of_terms(self, operator: np.ndarray, norm: str) -> Limits:
        """Return the limits of all |v_j|, or their sum, which is one of the sum."""
        errors, m = self.errors, len(self.errors.coordinates)
        of_all = _of_all(operator, errors)
        if norm == "each":
            quantile = self.student(of_all @ errors.covariance @ of_all.T, norm)
        else:
            quantile = self.scheffe()
        each = [errors.moments(operator, output) for output in range(m)]
        moments = Moments(*map(np.concatenate, zip(*each, strict=True)))
        values = (errors.coordinates @ operator.T).ravel()
        limits, nu = self.limits(of_all, values, moments, quantile)
        worst = int(limits.argmax() if np.isinf(limits).any() else nu.argmin())
        few = self.few(limits[worst], nu[worst], of_all[worst])
        return Limits(limits if norm == "each" else limits.sum(keepdims=True), few)

    def of_groups(self, kernel: Any, origin: np.ndarray) -> Limits:
        """Return the limit of the sum of groups' means less a mean of them, without a matrix."""
        errors, m = self.errors, len(self.errors.coordinates)
        quantile = self.scheffe(errors.rank_of_groups)
        each = [errors.group_moments(origin, output) for output in range(m)]
        moments = Moments(*map(np.concatenate, zip(*each, strict=True)))
        means = kernel.of_groups(errors.coordinates)
        values = (means - (means @ origin)[:, None]).ravel()
        limits, nu = self.limits(None, values, moments, quantile)
        if errors.any_alone:
            everywhere = np.ones(errors.coordinates.size)
            return Limits(np.array([np.inf]), self.few(np.inf, 0.0, everywhere))
        weakest = np.eye(1, len(origin), int(nu.argmin()) % len(origin))[0] - origin
        direction = np.tile(kernel.coordinates(weakest / kernel.weights), m)
        return Limits(limits.sum(keepdims=True), self.few(limits.sum(), nu.min(), direction))

    def of_deviation(self) -> Limits:
        """Return the limit of ‖c‖.

        The rule is applied in the direction of the row with the most weight, in that of c, and in
        that of the farthest point of the ellipsoid; the ellipsoid grows by what it makes of the
        standard errors of the last two. Rows that a sample of independent ones lacks by chance
        are allowed for as well.
        """
        errors = self.errors
        c = errors.coordinates[0]
        groups = errors.covariance_of_groups() if errors.has_many_groups else None
        quantile = self.scheffe(None if groups is None else max(groups.rank, 1))
        size, listed = float(np.linalg.norm(c)), [errors.largest_pull[1]]
        if size:
            z = max(float(quantile(errors.n_free)), 0.0)
            if groups is None:
                far = farthest_direction(c, errors.covariance, z)
            else:
                far = groups.farthest_direction(z)
            listed += [c / size, far]
        directions = np.array(listed)
        values, moments = np.abs(directions @ c), errors.moments(directions)
        half, nu = self.reach(moments, np.where(directions @ c >= 0, 1.0, -1.0), quantile)
        half = np.maximum(half, 0.0)  # there is no nearest point of an ellipsoid
        worst = int((values + half).argmax())
        limit = float((values + half)[worst])
        plain = np.sqrt(np.maximum(moments.second[1:], 0.0))
        if size and (plain > 0).all():
            grown = float((half[1:] / plain).max())
            if groups is None:
                limit = max(limit, farthest_from_zero(c, errors.covariance, grown))
            else:
                limit = max(limit, groups.farthest(grown))
        if errors.are_independent:
            lacking = errors.sizes(c), errors.weight, errors.leverage
            limit = max(limit, limit_of_lacking_rows(c, *lacking, self.confidence))
        if errors.any_alone:
            limit = np.inf
        return Limits(np.array([limit]), self.few(limit, nu[worst], directions[worst]))


def upper_limits(
    block: Block,
    columns: np.ndarray,
    confidence: float,
    *,
    groups: np.ndarray | None = None,
    errors: Errors | None = None,
    **options: Any,
) -> Limits:
    """Return upper confidence limits of the norms that a block bounds, which hold together.

    Parameters
    ----------
    block : Block
        The block, on the rows. Of Σ|v_j| the directions s are all patterns of signs, beyond twelve
        terms the axes; of the |v_j| themselves the axes; of the root of Σv_j² all unit vectors.
    columns : ndarray of shape (n, C)
        All columns of the targets.
    confidence : float
        Confidence.
    groups : ndarray of shape (n,), default=None
        Clusters of rows; None where rows are independent.
    errors : Errors, default=None
        Those of the block's columns, where they are known.
    simultaneous : bool, default=False
        Whether the limits of all s are to hold at once, since s depends on the rows. One is enough
        for a norm whose s does not.
    n_new : int, default=None
        Number of rows, or clusters, of a new batch whose norm is meant; None for the true norm.

    Returns
    -------
    Limits
        Of shape (1,), or (m·r,) for "each".
    """
    norm, kernel, own = block.allowed.norm, block.kernel, block.of(columns)
    is_short = block.allowed.size <= MAX_PATTERNS
    if kernel.has_closed_form and norm == "l1" and groups is None and not is_short:
        origin = kernel.weights if block.sums_groups else np.eye(1, len(kernel.weights))[0]
        return limits_of_groups(block.design, origin, own, confidence, errors=errors, **options)
    if norm == "sd":
        options |= {"groups": groups, "errors": errors}
        return limits_of_deviation(block.design, own, confidence, **options)
    errors = errors or Errors(block.design, own, groups=groups)
    if errors.n_free <= 0:
        return Limits(np.full(block.allowed.size if norm == "each" else 1, np.nan))
    rule = _Rule(errors, confidence, **options)
    # In units of the largest row, so that squares do not overflow.
    unit = float(np.abs(block.operator).max()) or 1.0
    operator = block.operator / unit
    if norm == "l1" and is_short:
        found = rule.of_patterns(operator)
    else:
        found = rule.of_terms(operator, norm)
    return found._replace(values=unit * errors.unit * found.values)


def limits_of_groups(
    design: Design,
    origin: np.ndarray,
    columns: np.ndarray,
    confidence: float,
    *,
    errors: Errors | None = None,
    **options: Any,
) -> Limits:
    """Return the upper limit of the sum of many groups' means less a mean of them.

    Parameters
    ----------
    design : Design
        A kernel that tells groups apart, in closed form.
    origin : ndarray of shape (g,)
        The weights of that mean, of sum 1.
    columns, confidence, errors, **options
        As in :func:`upper_limits`.
    """
    errors = errors or Errors(design, columns)
    if errors.n_free <= 0:
        return Limits(np.array([np.nan]))
    found = _Rule(errors, confidence, **options).of_groups(design.fitted, origin)
    return found._replace(values=errors.unit * found.values)


def limits_of_deviation(
    design: Design,
    columns: np.ndarray,
    confidence: float,
    *,
    groups: np.ndarray | None = None,
    errors: Errors | None = None,
    **options: Any,
) -> Limits:
    """Return the upper limit of the deviation that a kernel explains, ‖c‖ but for its share."""
    errors = errors or Errors(design, columns, is_basis_drawn=True, groups=groups)
    if errors.n_free <= 0:
        return Limits(np.array([np.nan]))
    found = _Rule(errors, confidence, **options).of_deviation()
    return found._replace(values=errors.unit / np.sqrt(design.fitted.share) * found.values)


def _of_all(operator: np.ndarray, errors: Errors) -> np.ndarray:
    """Return an operator on the coordinates of every output, of all of them together."""
    m = len(errors.coordinates)
    return operator if m == 1 else np.kron(np.eye(m), operator)


def both_limits(errors: Errors, confidence: float) -> tuple[float, float, str]:
    """Return both limits of the size of a single coordinate, and what they rest on."""
    direction = np.ones((1, 1))
    rule, size = _Rule(errors, (1 + confidence) / 2), abs(float(errors.coordinates[0, 0]))
    moments, sign = errors.moments(direction), np.sign(errors.coordinates[0, 0]) or 1.0
    (above, nu), (below, _) = (rule.reach(moments, s, rule.student()) for s in (sign, -sign))
    low, high = size - float(below[0]), size + float(above[0])
    if errors.determined_alone(direction)[0]:
        low, high = 0.0, np.inf
    return max(low, 0.0), max(high, -low), rule.few(high, float(nu[0]), direction[0])


def lower_limits(
    block: Block, columns: np.ndarray, confidence: float = 0.95, groups: np.ndarray | None = None
) -> np.ndarray:
    r"""Return lower confidence limits of the norms that a block bounds, which hold together.

    By the triangle inequality \|v̂\| exceeds \|v\| by no more than the norm of the sampling error,
    whose quantile is simulated. So the limit holds where v is 0 as well, unlike one from the
    error in the direction of v̂ (which is wrong in 9 % of samples at degree 5, not in 5 %).

    Parameters
    ----------
    block, columns, groups
        As in :func:`upper_limits`.
    confidence : float, default=0.95
        Probability that all limits are below the true norms.

    Returns
    -------
    ndarray of shape (c,)
        NaN where the rows leave no degree of freedom, and 0 where a row determines v alone.
    """
    values = block.allowed.sizes(block.measure(columns)[0])
    return _lower_limits(block, values, _errors_of(block, columns, groups), confidence)


def limits_of_sizes(
    block: Block, columns: np.ndarray, confidence: float, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the norms, their lower limits, and the upper ones of targets corrected on the rows.

    The parameters are those of :func:`upper_limits`.
    """
    values = block.allowed.sizes(block.measure(columns)[0])
    errors = _errors_of(block, columns, groups)
    options: dict[str, Any] = {"groups": groups, "errors": errors, "simultaneous": True}
    high = upper_limits(block, columns, confidence, **options).values
    return values, _lower_limits(block, values, errors, confidence), high


def _errors_of(block: Block, columns: np.ndarray, groups: np.ndarray | None) -> Errors:
    """Return the errors of what a block bounds."""
    is_drawn = block.allowed.is_of_coordinates
    return Errors(block.design, block.of(columns), is_basis_drawn=is_drawn, groups=groups)


def _lower_limits(
    block: Block, values: np.ndarray, errors: Errors, confidence: float
) -> np.ndarray:
    """Return the lower limits of norms of these values."""
    if errors.n_free <= 0:
        return np.full(len(values), np.nan)
    if errors.any_alone:
        return np.zeros(len(values))
    level = 1 - (1 - confidence) / len(values)
    # As of a t distribution, by the ratio of the quantiles.
    wider = float(stdtrit(errors.n_free, level) / ndtri(level))
    return values - errors.unit * wider * _quantile_of_noise(block, errors, level)


def cluster_p_value(design: Design, z: np.ndarray, k: int, groups: np.ndarray) -> float:
    """Return the p-value of Hotelling's T² that the first k coordinates are 0, beside clusters."""
    errors = Errors(design, z[:, None], groups=groups)
    c = errors.coordinates[0, :k]
    covariance, nu = errors.ellipsoid(k)
    free = nu - k + 1
    square = float(c @ np.linalg.pinv(covariance, hermitian=True) @ c)
    return float(fdtrc(k, free, square * free / nu / k))


def _quantile_of_noise(block: Block, errors: Errors, level: float) -> Any:
    """Return a quantile of the norms of draws of the sampling error of v = A c."""
    norms = block.allowed.sizes
    if block.sums_groups and errors.are_independent:
        noise = np.hstack([norms(own.T) for own in _deviation_draws(block, errors)])
        return quantile_of_draws(noise, level)
    of_all = _of_all(block.operator, errors)
    covariance = of_all @ errors.covariance @ of_all.T
    if len(covariance) == 1:
        return np.sqrt(covariance[0]) * quantile_of_one(level, N_DRAWS)
    draws = fixed_draws(len(covariance))
    if block.allowed.norm == "sd":  # the axes of the errors do not matter to their size
        variances = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
        return quantile_of_draws(np.sqrt(draws**2 @ variances), level)
    return quantile_of_draws(norms(with_covariance(draws, covariance).T), level)


def _deviation_draws(block: Block, errors: Errors) -> Iterator[np.ndarray]:
    """Yield draws of the deviations of groups, whose sums are independent, (draws, m·r)."""
    weights, m, rng = block.kernel.weights, len(errors.coordinates), np.random.RandomState(0)
    values, vectors = np.linalg.eigh(errors.covariance_at_points)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
    n_draws = max(1, min(N_DRAWS, _MOST_NUMBERS // (m * len(weights))))
    for start in range(0, N_DRAWS, n_draws):
        normal = rng.standard_normal((min(n_draws, N_DRAWS - start), len(weights), m, 1))
        moved = (root @ normal)[..., 0]
        moved = (moved / weights[:, None] - moved.sum(axis=1, keepdims=True)) / block.kernel.share
        yield np.moveaxis(moved, 1, 2).reshape(len(moved), -1)
