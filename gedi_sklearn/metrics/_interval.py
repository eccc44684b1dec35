"""Confidence intervals of GeDI."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._validation import Interval, StrOptions, check_random_state, validate_params
from ..exceptions import warn_caller
from ._inference import BATCH, INFERENCE_CONSTRAINTS, RESAMPLES, check_measured
from ._linear import LinearIndicator

# Eigenvalues of a resample's moments, which are near the unit matrix, count as 0 below this.
_SINGULAR = 1e-9


class ConfidenceInterval(NamedTuple):
    """A confidence interval, as scipy.stats returns them.

    Examples
    --------
    >>> from gedi_sklearn.metrics import gedi_interval
    >>> low, high = gedi_interval([1.0, 2.0, 2.0, 4.0, 5.0], sensitive_features=[1, 2, 3, 4, 5])
    >>> low < 1.0 < high
    True
    """

    low: float
    high: float


@validate_params(
    {
        **INFERENCE_CONSTRAINTS,
        "method": [StrOptions({"ellipsoid", "simulation", "bootstrap"})],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": RESAMPLES,
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
    subset: Any = None,
    on: str = "predictions",
) -> ConfidenceInterval:
    """Confidence interval of GeDI.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, kernel, degree, relative, norm, conditional_on, pos_label, \
sample_weight
        As in :func:`gedi`; the reference of `relative` is taken as known. `norm` is "l1" or
        "sd". Each row is one observation, whatever its weight.
    method : {"ellipsoid", "simulation", "bootstrap"}, default="ellipsoid"
        - "ellipsoid": the range of the indicator over the confidence ellipsoid of the
          coefficients, with the covariance HC3 (unequal variances are allowed). Its lower end is
          0 where the ellipsoid meets 0. It holds for many rows: from about ten in every level of a
          category (with four, of 12 rows in all, it covers .37 to .92 of the time instead of .95).
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
    subset, on
        As in :func:`gedi`: the interval is that of these rows, or of residuals.

    Returns
    -------
    ConfidenceInterval
        A named tuple of ``low`` and ``high``. NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, where the rows are no more than the
        coefficients and the constant, or a subset has none.

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
        return ConfidenceInterval(float("nan"), float("nan"))
    z, indicator, unit = measured
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
    relative_weight = np.broadcast_to(design.shares(slice(None)), n) * n
    system = np.column_stack([np.ones(n), Q])
    products = system[:, :, None] * np.column_stack([system, z - design.mean(z)])[:, None, :]
    products = products.reshape(n, -1) * relative_weight[:, None]
    batch = max(1, BATCH // n)
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
