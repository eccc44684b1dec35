"""What a value of GeDI is worth: independence, a test of it, and intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from .._validation import Interval, StrOptions, check_random_state, validate_params
from ..exceptions import warn_caller
from ._gedi import KERNEL_CONSTRAINTS, checked_covariates, checked_kernel, fit_design
from ._inputs import TARGET_CONSTRAINTS, Sample, check_sample
from ._linear import LinearIndicator
from ._reference import reference_disparity

__all__ = [
    "ConfidenceInterval",
    "GediNull",
    "PermutationTestResult",
    "gedi_interval",
    "gedi_null",
    "gedi_permutation_test",
]

# Numbers that a batch of permuted or resampled targets may hold.
_BATCH = 4_000_000
# Smallest eigenvalue of the moments of a resample, which are near the unit matrix, that is not 0.
_SINGULAR = 1e-9

_INFERENCE_CONSTRAINTS: dict = {
    **TARGET_CONSTRAINTS,
    **KERNEL_CONSTRAINTS,
    "relative": ["boolean", Interval(Integral, 0, None, closed="left")],
    "norm": [StrOptions({"l1", "sd"})],
    "conditional_on": ["array-like", None],
    "random_state": ["random_state"],
}
_RESAMPLES = [Interval(Integral, 1, None, closed="left")]
_LEVEL = [Interval(Real, 0, 1, closed="neither")]


class ConfidenceInterval(NamedTuple):
    """A confidence interval, as scipy.stats returns them."""

    low: float
    high: float


@dataclass(frozen=True)
class GediNull:
    """Distribution of an indicator where the targets are independent of the attribute.

    Attributes
    ----------
    mean : float
        Expected value, in closed form.
    quantiles : ndarray of shape (q,)
        Quantiles, of simulated normal coefficients.
    levels : ndarray of shape (q,)
        Their levels.
    """

    mean: float
    quantiles: np.ndarray
    levels: np.ndarray


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
    """

    statistic: float
    pvalue: float
    null_distribution: np.ndarray


@validate_params(
    {**_INFERENCE_CONSTRAINTS, "quantiles": ["array-like"], "n_resamples": _RESAMPLES},
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
) -> GediNull:
    r"""Value that GeDI takes by chance, where the targets do not depend on the attribute.

    With G = F̃ᵀF̃ and sd the deviation of the targets (with divisor n − 1)

    .. math:: E\,\|\tilde\alpha\|_1 = \mathrm{sd} \sqrt{2/\pi} \sum_j \sqrt{(G^{-1})_{jj}} .

    A value near this is no evidence of anything; see :func:`gedi_permutation_test`.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, kernel, degree, relative, norm, conditional_on, pos_label, \
sample_weight
        As in :func:`gedi`; the measured values' own deviation counts, and the reference of
        `relative` is taken as it is. `norm` is "l1" or "sd".
    quantiles : array-like of shape (q,), default=(0.05, 0.5, 0.95)
        Levels of the quantiles.
    n_resamples : int, default=10_000
        Number of simulated coefficient vectors behind the quantiles.
    random_state : int, RandomState instance or None, default=0
        Seed of the simulation.

    Returns
    -------
    GediNull
        With ``mean``, ``quantiles`` and ``levels``.

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
    sample, indicator, unit = _prepare(
        y_true,
        y_pred,
        kernel,
        degree,
        relative,
        norm,
        conditional_on,
        pos_label,
        sensitive_features,
        sample_weight,
    )
    levels = np.asarray(quantiles, dtype=np.float64)
    rng = check_random_state(random_state)
    return GediNull(
        mean=indicator.null_mean(sample.target) / unit,
        quantiles=indicator.null_quantiles(sample.target, levels, n_resamples, rng) / unit,
        levels=levels,
    )


@validate_params(
    {**_INFERENCE_CONSTRAINTS, "n_resamples": _RESAMPLES}, prefer_skip_nested_validation=True
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
    sample, indicator, _ = _prepare(
        y_true,
        y_pred,
        kernel,
        degree,
        False,
        norm,
        conditional_on,
        pos_label,
        sensitive_features,
        sample_weight,
    )
    target = indicator.design.residual(sample.target)
    target = target - target.mean()

    statistic = float(indicator.value(indicator.coordinates(target)))
    # A Generator permutes twice as fast as the RandomState that it is seeded by.
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    null = np.empty(n_resamples)
    batch = max(1, _BATCH // len(target))
    for start in range(0, n_resamples, batch):
        permuted = [rng.permutation(target) for _ in range(min(batch, n_resamples - start))]
        null[start : start + batch] = indicator.value(indicator.coordinates(np.stack(permuted)))
    # Equal values, as of discrete targets, must not be told apart by rounding.
    reached = int((null >= statistic * (1 - 1e-12)).sum())
    return PermutationTestResult(statistic, (1 + reached) / (1 + n_resamples), null)


@validate_params(
    {
        **_INFERENCE_CONSTRAINTS,
        "method": [StrOptions({"ellipsoid", "simulation", "bootstrap"})],
        "confidence_level": _LEVEL,
        "n_resamples": _RESAMPLES,
    },
    prefer_skip_nested_validation=True,
)
def gedi_interval(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = "polynomial",
    degree: int = 1,
    relative: bool | int = False,
    norm: str = "l1",
    conditional_on: Any = None,
    method: str = "ellipsoid",
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> ConfidenceInterval:
    """Confidence interval of GeDI.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, kernel, degree, relative, norm, conditional_on, pos_label, \
sample_weight
        As in :func:`gedi`; the reference of `relative` is taken as known. `norm` is "l1" or
        "sd". Every row is one observation, whatever its weight.
    method : {"ellipsoid", "simulation", "bootstrap"}, default="ellipsoid"
        - "ellipsoid": the range of the indicator over the confidence ellipsoid of the
          coefficients, with the covariance HC3 (unequal variances are allowed). Its lower end is
          0 where the ellipsoid meets 0.
        - "simulation": quantiles of the indicator of normal coefficients around the estimated
          ones.
        - "bootstrap": quantiles of the indicator of resampled rows.

        The last two are valid only where every coefficient is several standard errors from 0: an
        L1 norm of noisy coefficients is biased upwards, and 0 is a boundary.
    confidence_level : float, default=0.95
        Confidence.
    n_resamples : int, default=999
        Number of simulations or resamples.
    random_state : int, RandomState instance or None, default=0
        Seed of the last two methods.

    Returns
    -------
    ConfidenceInterval
        A named tuple of ``low`` and ``high``. NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, where the rows are no more than the
        coefficients and the constant.

    See Also
    --------
    gedi_null : What chance alone gives.

    References
    ----------
    J. G. MacKinnon, H. White (1985): Some heteroskedasticity-consistent covariance matrix
    estimators with improved finite sample properties. Journal of Econometrics 29.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.metrics import gedi_interval
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 400))
    >>> low, high = gedi_interval(0.5 * x + noise, sensitive_features=x)
    >>> low < 0.5 < high
    True
    >>> gedi_interval(noise, sensitive_features=x).low
    0.0
    """
    sample, indicator, unit = _prepare(
        y_true,
        y_pred,
        kernel,
        degree,
        relative,
        norm,
        conditional_on,
        pos_label,
        sensitive_features,
        sample_weight,
    )
    z = sample.target
    if method == "ellipsoid":
        low, high = indicator.range_over_ellipsoid(z, confidence_level)
        return ConfidenceInterval(low / unit, high / unit)
    rng = check_random_state(random_state)
    if method == "simulation":
        resampled = indicator.simulate(z, n_resamples, rng)
    else:
        resampled = _defined(np.concatenate(list(_bootstrap(indicator, z, n_resamples, rng))))
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail]) / unit
    return ConfidenceInterval(float(low), float(high))


def _bootstrap(
    indicator: LinearIndicator, z: np.ndarray, n_resamples: int, rng: np.random.RandomState
) -> Iterator[np.ndarray]:
    """Yield the indicator of rows drawn with replacement, batch by batch.

    A resample is a vector of counts; its coordinates solve the counted normal equations of the
    orthonormal columns, which are well conditioned unless the resample lacks what tells the
    columns apart, e.g. a level: then it is NaN.
    """
    design = indicator.design
    Q, z = design.orthonormal, design.residual(z)
    n, k = Q.shape
    share = np.broadcast_to(design.shares(slice(None)), n) * n
    system = np.column_stack([np.ones(n), Q])
    products = system[:, :, None] * np.column_stack([system, z - design.mean(z)])[:, None, :]
    products = products.reshape(n, -1) * share[:, None]
    batch = max(1, _BATCH // n)
    for start in range(0, n_resamples, batch):
        size = min(batch, n_resamples - start)
        rows = rng.randint(n, size=(size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(rows.ravel(), minlength=size * n).reshape(size, n)
        moments = (counts @ products / n).reshape(size, k + 1, k + 2)
        solved = np.linalg.eigvalsh(moments[:, :, :-1])[:, 0] > _SINGULAR
        solution = np.full((size, k), np.nan)
        known = moments[solved]
        solution[solved] = np.linalg.solve(known[:, :, :-1], known[:, :, -1:])[:, 1:, 0]
        yield indicator.value(solution)


def _defined(resampled: np.ndarray) -> np.ndarray:
    """Return the values of the resamples that have one, with a warning where some have none."""
    defined = resampled[~np.isnan(resampled)]
    lost = len(resampled) - len(defined)
    reason = (
        f"method='bootstrap': {lost} of {len(resampled)} resamples do not determine the "
        "coefficients, e.g. since a rare value of sensitive_features is not among their rows"
    )
    if not len(defined):
        raise ValueError(f"{reason}. Use method='ellipsoid', a lower degree, or more rows.")
    if lost:
        warn_caller(f"{reason}; the interval is that of the others. method='ellipsoid' has none.")
    return defined


def _prepare(
    y_true: Any,
    y_pred: Any,
    kernel: Any,
    degree: int,
    relative: bool | int,
    norm: str,
    conditional_on: Any,
    pos_label: Any,
    sensitive_features: Any,
    sample_weight: Any,
) -> tuple[Sample, LinearIndicator, float]:
    """Return the sample, the indicator on it, and the reference that values are divided by."""
    sample = check_sample(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        pos_label=pos_label,
        attribute="mixed",
    )
    kernel = checked_kernel(kernel, degree, sample)
    covariates = checked_covariates(conditional_on, sample)
    design = fit_design(kernel, sample, covariates)
    indicator = LinearIndicator.of_kernel(design, norm)
    if not relative:
        return sample, indicator, 1.0
    reference = reference_disparity(
        sample.y_true,
        sample.values,
        kernel=kernel,
        relative=relative,
        weight=sample.weight,
        norm=norm,
        covariates=covariates,
    )
    if reference == 0.0:
        raise ValueError(
            "relative: the indicator of y_true is 0, so the ratio is undefined; use relative=False."
        )
    return sample, indicator, reference
