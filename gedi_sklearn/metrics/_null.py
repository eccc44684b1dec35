"""The distribution of GeDI under independence, and a test of independence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import check_numbers, check_random_state, validate_params
from ._inference import BATCH, INFERENCE_CONSTRAINTS, RESAMPLES, check_measured
from ._linear import LinearIndicator
from ._sampling import normal_draws

# Permuted coordinates of more rows are normal for all that a p-value shows.
_MANY_ROWS = 10_000


@dataclass(frozen=True)
class GediNull:
    """Distribution of an indicator where the targets are independent of the attribute.

    Attributes
    ----------
    mean : float
        Expected value, in closed form.
    quantiles : ndarray of shape (q,)
        Quantiles, from simulated normal coefficients.
    levels : ndarray of shape (q,)
        Their levels.

    Examples
    --------
    >>> from gedi_sklearn.metrics import gedi_null
    >>> null = gedi_null([0, 1, 0, 1, 1, 0], sensitive_features=[0, 1, 2, 3, 4, 5])
    >>> round(null.mean, 2), null.levels
    (0.1, array([0.05, 0.5 , 0.95]))
    """

    mean: float
    quantiles: np.ndarray
    levels: np.ndarray


def check_levels(quantiles: Any) -> np.ndarray:
    """Return the levels of quantiles, each from 0 to 1."""
    levels = check_numbers(quantiles, "quantiles", n_columns=1)
    if not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"quantiles must be levels from 0 to 1, got {quantiles!r}.")
    return levels


@dataclass(frozen=True)
class PermutationTestResult:
    """Result of a permutation test, with the names that scipy.stats uses.

    Attributes
    ----------
    statistic : float
        The indicator.
    pvalue : float
        (1 + number of permutations that reach it) / (1 + number of permutations).
    null_distribution : ndarray of shape (n_resamples,)
        The indicator of the permuted targets.

    Examples
    --------
    >>> from gedi_sklearn.metrics import gedi_permutation_test
    >>> result = gedi_permutation_test(
    ...     [1, 2, 3, 4, 5], sensitive_features=[1, 2, 3, 4, 6], n_resamples=99, random_state=0
    ... )
    >>> result.pvalue
    0.03
    """

    statistic: float
    pvalue: float
    null_distribution: np.ndarray


@validate_params(
    {**INFERENCE_CONSTRAINTS, "quantiles": ["array-like"], "n_resamples": RESAMPLES},
    prefer_skip_nested_validation=True,
)
def gedi_null(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = "polynomial",
    degree: int = 1,
    relative: bool | int = False,
    norm: str = "l1",
    conditional_on: Any = None,
    quantiles: Any = (0.05, 0.5, 0.95),
    n_resamples: int = 10_000,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    subset: Any = None,
    on: str = "predictions",
) -> GediNull:
    r"""Value that GeDI takes by chance, where the targets do not depend on the attribute.

    With G = F̃ᵀF̃ and sd the deviation of the targets (with divisor n − 1)

    .. math:: E\,\|\tilde\alpha\|_1 = \mathrm{sd} \sqrt{2/\pi} \sum_j \sqrt{(G^{-1})_{jj}} .

    A value near this is no evidence of anything; see :func:`gedi_permutation_test`.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, kernel, degree, relative, norm, conditional_on
        As in :func:`gedi`; the deviation is that of the measured values, and the reference of
        `relative` is taken as known. `norm` is "l1" or "sd".
    pos_label, sample_weight
        As in :func:`gedi`.
    quantiles : array-like of shape (q,), default=(0.05, 0.5, 0.95)
        Levels of the quantiles.
    n_resamples : int, default=10_000
        Number of simulated coefficient vectors behind the quantiles.
    random_state : int, RandomState instance or None, default=0
        Seed of the simulation.
    subset, on
        As in :func:`gedi`.

    Returns
    -------
    GediNull
        With ``mean``, ``quantiles`` and ``levels``; NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, of a subset without rows.

    See Also
    --------
    gedi_permutation_test : The test.

    Notes
    -----
    The coefficients of permuted targets have mean 0 and exactly the covariance that is used; that
    they are normal is an approximation, good from a few hundred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import PolynomialKernel
    >>> from gedi_sklearn.metrics import gedi, gedi_null
    >>> rng = np.random.default_rng(2)
    >>> x, y = rng.normal(size=(2, 200))
    >>> options = {"sensitive_features": x, "kernel": PolynomialKernel(5, standardize=True)}
    >>> round(gedi(y, **options), 2), round(gedi_null(y, **options).mean, 2)
    (0.62, 0.44)
    """
    levels = check_levels(quantiles)
    given = (y_true, y_pred, sensitive_features, sample_weight, pos_label)
    measured = check_measured(
        *given,
        kernel=kernel,
        degree=degree,
        relative=relative,
        norm=norm,
        conditional_on=conditional_on,
        subset=subset,
        on=on,
    )
    if measured is None:
        return GediNull(np.nan, np.full(len(levels), np.nan), levels)
    z, indicator, unit = measured
    rng = check_random_state(random_state)
    return GediNull(
        mean=indicator.null_mean(z) / unit,
        quantiles=indicator.null_quantiles(z, levels, n_resamples, rng) / unit,
        levels=levels,
    )


@validate_params(
    {**INFERENCE_CONSTRAINTS, "n_resamples": RESAMPLES}, prefer_skip_nested_validation=True
)
def gedi_permutation_test(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = "polynomial",
    degree: int = 1,
    norm: str = "l1",
    conditional_on: Any = None,
    n_resamples: int = 999,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    subset: Any = None,
    on: str = "predictions",
) -> PermutationTestResult:
    """Test that the targets are independent of the attribute, by permuting them.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, kernel, degree, norm, conditional_on, pos_label, \
sample_weight
        As in :func:`gedi`. `norm` is "l1" or "sd"; "sd" does not depend on the attribute's unit.
        With `conditional_on`, what the covariates leave of the targets is permuted (Freedman and
        Lane), which is approximate.
    n_resamples : int, default=999
        Number of permutations.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations.
    subset, on
        As in :func:`gedi`; of a subset without rows all is NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`.

    Returns
    -------
    PermutationTestResult
        With ``statistic`` (the indicator), ``pvalue`` and ``null_distribution``, as of
        :func:`scipy.stats.permutation_test`. The test is exact: under independence it rejects at
        level a with probability at most a.

    See Also
    --------
    gedi_null : Expected value and quantiles in closed form.

    Notes
    -----
    scipy's own function is not used: it computes n! first, which takes minutes at n = 10⁷.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.metrics import gedi_permutation_test
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=100)
    >>> result = gedi_permutation_test(
    ...     x + rng.normal(size=100), sensitive_features=x, random_state=0
    ... )
    >>> result.pvalue
    0.001
    """
    given = (y_true, y_pred, sensitive_features, sample_weight, pos_label)
    measured = check_measured(
        *given,
        kernel=kernel,
        degree=degree,
        norm=norm,
        conditional_on=conditional_on,
        subset=subset,
        on=on,
    )
    if measured is None:
        return PermutationTestResult(np.nan, np.nan, np.full(n_resamples, np.nan))
    return permutation_test(measured.indicator, measured.target, n_resamples, random_state)


def permutation_test(
    indicator: LinearIndicator, z: np.ndarray, n_resamples: int, random_state: Any
) -> PermutationTestResult:
    """Return the test of an indicator on its rows."""
    target = indicator.design.residual(z)
    target = target - target.mean()
    statistic = float(indicator.value(indicator.coordinates(target)))
    # A Generator permutes twice as fast as the RandomState that it is seeded by.
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    null = np.empty(n_resamples)
    batch = max(1, BATCH // len(target))
    for start in range(0, n_resamples, batch):
        permuted = [rng.permutation(target) for _ in range(min(batch, n_resamples - start))]
        null[start : start + batch] = indicator.value(indicator.coordinates(np.stack(permuted)))
    return _result(statistic, null)


def independence_test(
    indicator: LinearIndicator, z: np.ndarray, n_resamples: int, random_state: Any
) -> PermutationTestResult:
    """Return the permutation test, or with many rows its limit: normal coordinates."""
    if indicator.design.n_rows <= _MANY_ROWS:
        return permutation_test(indicator, z, n_resamples, random_state)
    rng = check_random_state(random_state)
    draws = normal_draws(indicator.design.null_covariance(z), n_resamples, rng)
    statistic = float(indicator.value(indicator.design.coordinates(z)))
    return _result(statistic, indicator.value(draws))


def _result(statistic: float, null: np.ndarray) -> PermutationTestResult:
    # Rounding must not separate values that are equal, as those of discrete targets.
    reached = int((null >= statistic * (1 - 1e-12)).sum())
    return PermutationTestResult(statistic, (1 + reached) / (1 + len(null)), null)
