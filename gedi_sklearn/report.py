"""All indicators of one set of predictions in one table, with their values under independence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any

import numpy as np

from ._validation import (
    Interval,
    StrOptions,
    check_group_codes,
    check_levels,
    check_random_state,
    validate_params,
    warn_many_groups,
)
from .exceptions import RankDeficientKernelError
from .kernels import PolynomialKernel, fit_kernel
from .metrics import (
    TARGET_CONSTRAINTS,
    GroupIndicator,
    KernelIndicator,
    LinearIndicator,
    Sample,
    bin_codes,
    check_sample,
    hgr,
    resampled_hgr,
    target_kind,
)

__all__ = ["fairness_report"]

# An attribute with at most this many distinct values is measured by groups, others in bins.
_MAX_GROUPS = 10
_NULL_DRAWS = 4000

_Row = tuple[str, Any, float, float, float, float, float, float]
_COLUMNS = ("indicator", "parameter", "value", "y_true", "null_mean", "null_q95", "low", "high")


@validate_params(
    {
        **TARGET_CONSTRAINTS,
        "degrees": ["array-like"],
        "standardize": ["boolean"],
        "bins": ["array-like"],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "as_frame": ["boolean", StrOptions({"auto"})],
    },
    prefer_skip_nested_validation=True,
)
def fairness_report(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    degrees: Any = (1, 2, 3, 4, 5),
    standardize: bool = True,
    bins: Any = (2, 3, 5, 10),
    task: str = "auto",
    confidence_level: float = 0.95,
    n_resamples: int = 99,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    as_frame: bool | str = "auto",
) -> Any:
    """Measure predictions by every indicator, with its value under independence and an interval.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Original targets: numbers, booleans, or labels together with `pos_label`.
    y_pred : array-like of shape (n,), default=None
        Predictions. None measures `y_true` itself.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute; text and categories are categorical.
    degrees : array-like of int, default=(1, 2, 3, 4, 5)
        Degrees of GeDI. Those that the attribute has too few distinct values for are left out.
    standardize : bool, default=True
        Whether GeDI is measured on the standardised attribute.
    bins : array-like of int, default=(2, 3, 5, 10)
        Numbers of bins of the binned DIDI. An attribute of text, of several columns, or of at
        most 10 distinct values has the DIDI of its groups instead.
    task : {"auto", "classification", "regression"}, default="auto"
        The form of DIDI; "auto" takes the classification form where `y_true` has two classes.
    confidence_level : float, default=0.95
        Confidence of the intervals.
    n_resamples : int, default=99
        Number of permutations and resamples for HGR.
    pos_label : object, default=None
        The label that counts as 1; needed for text and categories.
    sample_weight : array-like of shape (n,), default=None
        Weights. HGR, which takes none, is left out where they differ.
    random_state : int, RandomState instance or None, default=0
        Seed of simulations and resamples.
    as_frame : bool or "auto", default="auto"
        Whether to return a pandas DataFrame; "auto": where pandas is installed.

    Returns
    -------
    DataFrame or dict of str to list
        One row (entry) per indicator, with the columns

        - indicator, parameter: "gedi" and "gedi_sd" with the degree, "didi" with the number of
          groups, "binned_didi" with the number of bins used, "hgr" with the method;
        - value: of the predictions; y_true: of the original targets;
        - null_mean, null_q95: mean and 95 % quantile where the predictions do not depend on the
          attribute. A value below null_q95 is no evidence of a disparity;
        - low, high: confidence interval of the value. For HGR it is a plain bootstrap, which is
          biased upwards near 0; for the others see
          :func:`gedi_sklearn.metrics.gedi_interval`.

    Raises
    ------
    RankDeficientKernelError
        If the attribute is constant.

    Warns
    -----
    UserWarning
        Where bins are merged, or rows lie outside the grid of HGR.

    See Also
    --------
    gedi_sklearn.metrics.gedi_null : Independence for one indicator.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.report import fairness_report
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300)
    >>> y = 0.5 * x + rng.normal(size=300)
    >>> table = fairness_report(
    ...     y, sensitive_features=np.clip(x, -2, 2), degrees=[1, 2], bins=[3], as_frame=False
    ... )
    >>> table["indicator"]
    ['gedi', 'gedi_sd', 'gedi', 'gedi_sd', 'binned_didi', 'hgr']
    >>> all(v > q for v, q in zip(table["value"], table["null_q95"]))
    True
    """
    degrees, bins = _check_integers(degrees, "degrees", 1), _check_integers(bins, "bins", 2)
    sample = check_sample(y_true, y_pred, sensitive_features, sample_weight, pos_label)
    check_levels(sample.values, "sensitive_features (rows of positive weight)")
    rng = check_random_state(random_state)
    rows: list[_Row] = []
    for name, parameter, indicator in _linear_indicators(sample, degrees, standardize, bins, task):
        values = indicator.measure(sample.target), indicator.measure(sample.y_true)
        inference = indicator.infer(sample.target, confidence_level, _NULL_DRAWS, rng)
        rows.append((name, parameter, *values, *inference))
    if sample.values.shape[1] == 1 and sample.values.dtype.kind == "f" and sample.weight is None:
        rows.append(_hgr_row(sample, confidence_level, n_resamples, rng))
    table = {
        name: list(column) for name, column in zip(_COLUMNS, zip(*rows, strict=True), strict=True)
    }
    if as_frame is False or (as_frame == "auto" and find_spec("pandas") is None):
        return table
    import pandas as pd

    return pd.DataFrame(table)


def _check_integers(values: Any, name: str, smallest: int) -> list[int]:
    """Return a list of integers; other values are an error and never rounded."""
    listed = np.asarray(values).ravel().tolist()
    for value in listed:
        if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
            raise ValueError(f"{name} must hold integers of at least {smallest}, got {value!r}.")
    return listed


def _linear_indicators(
    sample: Sample, degrees: list[int], standardize: bool, bins: list[int], task: str
) -> Iterator[tuple[str, Any, LinearIndicator]]:
    """Yield name, parameter and indicator of each row but HGR's."""
    n_columns = 0
    for degree in degrees:
        kernel = PolynomialKernel(degree, standardize=standardize)
        try:
            design = fit_kernel(kernel, sample.values, weight=sample.weight)
        except RankDeficientKernelError as error:
            if error.rank == 0:
                raise
            # Too few distinct values for this degree.
            continue
        if design.fitted.n_columns == n_columns:
            # Levels have no powers.
            continue
        n_columns = design.fitted.n_columns
        for name, norm in (("gedi", "l1"), ("gedi_sd", "sd")):
            yield name, degree, KernelIndicator(design, norm)
    if task == "auto":
        task = "classification" if target_kind(sample.y_true) == "binary" else "regression"
    factor = 2.0 if task == "classification" else 1.0
    codes, groups = check_group_codes(sample.values)
    if len(groups) <= _MAX_GROUPS or sample.values.shape[1] > 1 or sample.values.dtype.kind != "f":
        warn_many_groups(len(groups), len(codes))
        yield "didi", len(groups), GroupIndicator(codes, sample.weight, factor)
        return
    for asked in bins:
        codes = bin_codes(sample.values[:, 0], asked, sample.counts)
        indicator = GroupIndicator(codes, sample.weight, factor)
        yield "binned_didi", int(codes.max()) + 1, indicator


def _hgr_row(
    sample: Sample, confidence_level: float, n_resamples: int, rng: np.random.RandomState
) -> _Row:
    x, z = sample.values[:, 0], sample.target
    value = hgr(z, sensitive_features=x)
    with warnings.catch_warnings():
        # The value of the predictions has warned already.
        warnings.filterwarnings("ignore", ".*lie outside the grid", UserWarning)
        reference = hgr(sample.y_true, sensitive_features=x)
    if (z == z[0]).all():
        return ("hgr", "kde", value, reference, 0.0, 0.0, 0.0, 0.0)
    permuted, drawn = resampled_hgr(x, z, n_resamples, rng)
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    null = float(permuted.mean()), float(np.quantile(permuted, 0.95))
    return ("hgr", "kde", value, reference, *null, float(low), float(high))
