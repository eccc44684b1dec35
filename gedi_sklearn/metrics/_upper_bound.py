"""Upper confidence limits of GeDI: what new rows like these stay below."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from .._validation import NOTION_PARAMETERS, Interval, check_notion, validate_params
from ..kernels import KERNEL_CONSTRAINTS
from ._inference import INFERENCE_CONSTRAINTS, check_measured
from ._reference import check_relative
from ._scorers import SCORER_CONSTRAINTS, DisparityScorer

_LIMIT_CONSTRAINTS: dict = {
    **{name: INFERENCE_CONSTRAINTS[name] for name in ("degree", "relative", "norm")},
    "confidence": [Interval(Real, 0, 1, closed="neither")],
    "fitted": ["boolean"],
    "n_new": [Interval(Integral, 1, None, closed="left"), None],
}


@validate_params(
    {
        **{name: own for name, own in INFERENCE_CONSTRAINTS.items() if name != "random_state"},
        **_LIMIT_CONSTRAINTS,
    },
    prefer_skip_nested_validation=True,
)
def gedi_upper_bound(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = "polynomial",
    degree: int = 1,
    relative: bool | int = False,
    norm: str = "l1",
    conditional_on: Any = None,
    confidence: float = 0.95,
    fitted: bool = False,
    n_new: int | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    subset: Any = None,
    on: str = "predictions",
) -> float:
    """Upper confidence limit of GeDI: with this confidence, its true value is below.

    The true value is that of all rows of the kind that these are drawn from.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, kernel, degree, relative, norm, conditional_on, pos_label, \
sample_weight
        As in :func:`gedi`; the reference of `relative` is taken as known. `norm` is "l1" or
        "sd". Each row is one observation, whatever its weight.
    confidence : float, default=0.95
        Confidence.
    fitted : bool, default=False
        Whether the predictions were fitted or corrected on these rows to be small in GeDI, even if
        by cross-fitting. The limit is then wider.
    n_new : int, default=None
        Number of rows of a finite batch whose own GeDI is to be below; it varies, too. None for
        the true value.
    subset, on
        As in :func:`gedi`: the limit is that of these rows, or of residuals. A batch is one of
        rows in the subset.

    Returns
    -------
    float
        NaN, with :class:`sklearn.exceptions.UndefinedMetricWarning`, where the rows are no more
        than the coefficients and the constant, or a subset has none.

    See Also
    --------
    gedi_interval : Both ends.
    make_gedi_upper_bound_scorer : As a scorer.

    Notes
    -----
    The true ‖α̃‖₁ is s·α̃ for one pattern of signs s. For that one, s·α̃ + t·se(s·α̃) is a limit, so
    the largest of all patterns is (up to 12 coefficients; beyond, Σ|α̃_j| + t·se(α̃_j)). The
    covariance is HC3. ‖F̃α̃‖/√n is u·c for one unit vector u of orthonormal coordinates in the same
    way; its standard error is the deviation of (Qu)(y − ȳ − ½Qc) over √n, as the basis is that of
    the rows, and its skewness is corrected for: its square is a mean of squares. The largest value
    over all u is found by a secular equation. Squares of high powers of a raw attribute rest on few
    rows, and a sample may lack those that matter most: S is to be below the limit even if rows as
    far as the farthest ones, and beyond by their leverage, are among new rows as often as a sample
    that has none allows.

    Where the predictions were fitted to the rows, or a batch of new rows has its own signs, s
    depends on chance. Then t is the quantile, simulated, of the largest error over all s in
    standard errors (that of an F distribution for "sd", and beyond 12 coefficients). A batch of
    `n_new` rows adds its own errors: standard errors are multiplied by √(1 + n/n_new).

    References
    ----------
    J. G. MacKinnon, H. White (1985): Some heteroskedasticity-consistent covariance matrix
    estimators with improved finite sample properties. Journal of Econometrics 29.

    P. Hall (1992): The Bootstrap and Edgeworth Expansion. Springer, section 2.6.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.metrics import gedi, gedi_upper_bound
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 400))
    >>> y = 0.5 * x + noise
    >>> gedi(y, sensitive_features=x) < gedi_upper_bound(y, sensitive_features=x) < 0.7
    True
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
    if measured is None or not measured.indicator.has_errors():
        return float("nan")
    z, indicator, unit = measured
    return indicator.upper_limit(z, confidence, is_fitted=fitted, n_new=n_new) / unit


@validate_params(
    {
        **SCORER_CONSTRAINTS,
        **_LIMIT_CONSTRAINTS,
        "kernel": KERNEL_CONSTRAINTS,
        "conditional_on": SCORER_CONSTRAINTS["sensitive_columns"],
        **NOTION_PARAMETERS,
    },
    prefer_skip_nested_validation=True,
)
def make_gedi_upper_bound_scorer(
    *,
    sensitive_columns: Any = None,
    response_method: Any = "predict",
    kernel: Any = "polynomial",
    degree: int = 1,
    relative: bool | int = False,
    norm: str = "l1",
    conditional_on: Any = None,
    confidence: float = 0.95,
    fitted: bool = False,
    n_new: int | None = None,
    pos_label: Any = None,
    subset: Any = None,
    on: str = "predictions",
) -> DisparityScorer:
    """Scorer of :func:`gedi_upper_bound`, negated: the largest score is the fairest.

    Parameters
    ----------
    sensitive_columns, response_method, kernel, degree, relative, conditional_on, pos_label, \
subset, on
        As in :func:`make_gedi_scorer`. Of more than two classes the largest limit counts.
    norm : {"l1", "sd"}, default="l1"
        What is measured of the coefficients; see :func:`gedi`.
    confidence, fitted, n_new
        See :func:`gedi_upper_bound`.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)`` is at most 0; NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, where the limit is undefined.

    See Also
    --------
    gedi_upper_bound : The limit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from gedi_sklearn.metrics import make_gedi_scorer, make_gedi_upper_bound_scorer
    >>> X = np.arange(40.0).reshape(-1, 2)
    >>> y = X[:, 0] + np.tile([1.0, -1.0], 10)
    >>> model = LinearRegression().fit(X, y)
    >>> small, large = (
    ...     make(sensitive_columns=0)(model, X, y)
    ...     for make in (make_gedi_upper_bound_scorer, make_gedi_scorer)
    ... )
    >>> small <= large < 0
    True
    """
    check_relative(relative, norm)
    check_notion(subset, on, relative)
    options = {
        "kernel": kernel,
        "degree": degree,
        "relative": relative,
        "norm": norm,
        "confidence": confidence,
        "fitted": fitted,
        "n_new": n_new,
        "pos_label": pos_label,
        "subset": subset,
        "on": on,
    }
    return DisparityScorer(
        gedi_upper_bound, options, sensitive_columns, response_method, conditional_on
    )
