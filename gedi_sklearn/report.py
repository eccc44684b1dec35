"""All indicators of one set of predictions in one table, with their values under independence."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any

import numpy as np

from ._validation import (
    Interval,
    StrOptions,
    check_group_codes,
    check_labels,
    check_levels,
    check_random_state,
    target_kind,
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
    hides_class,
    resampled_hgr,
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
        "classification" measures more classes, of any label, one against the rest: every row is
        that of the worst class.
    confidence_level : float, default=0.95
        Confidence of the intervals.
    n_resamples : int, default=99
        Number of permutations and resamples for HGR.
    pos_label : object, default=None
        The label that counts as 1; needed for text and categories.
    sample_weight : array-like of shape (n,), default=None
        Weights.
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
        Where bins are merged, or rows lie outside the grid of HGR. Where a whole class does, HGR
        is that of ``method="kernel"``.

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
    given = (sensitive_features, sample_weight, pos_label)
    samples = _samples(y_true, y_pred, given, task)
    sample = samples[0]
    check_levels(sample.values, "sensitive_features (rows of positive weight)")
    rng = check_random_state(random_state)
    rows: list[_Row] = []
    for name, parameter, indicator in _linear_indicators(sample, degrees, standardize, bins, task):
        values = [indicator.measure(own.target) for own in samples]
        worst = samples[int(np.argmax(values))]
        inference = indicator.infer(worst.target, confidence_level, _NULL_DRAWS, rng)
        rows.append((name, parameter, max(values), indicator.measure(worst.y_true), *inference))
    if sample.values.shape[1] == 1 and sample.values.dtype.kind == "f":
        rows.append(_hgr_row(samples, confidence_level, n_resamples, rng))
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


def _samples(y_true: Any, y_pred: Any, given: tuple[Any, Any, Any], task: str) -> list[Sample]:
    """Return the sample; of more than two classes one for each of them, against the rest."""
    if task == "classification" and given[-1] is None:
        labels = check_labels(y_true, "y_true")
        predicted = labels if y_pred is None else check_labels(y_pred, "y_pred")
        classes = np.unique(labels)
        if len(classes) > 2:
            if not np.isin(predicted, classes).all():
                raise ValueError(
                    f"y_pred must hold the classes of y_true, {classes.tolist()}; for the "
                    "probabilities of one of them, pass its label as pos_label."
                )
            targets = (((labels == c) * 1.0, (predicted == c) * 1.0) for c in classes)
            return [check_sample(*own, *given) for own in targets]
    return [check_sample(y_true, y_pred, *given)]


def _hgr_row(
    samples: list[Sample], confidence_level: float, n_resamples: int, rng: np.random.RandomState
) -> _Row:
    variables = [(v, own.counts) for own in samples for v in (own.values, own.target, own.y_true)]
    # A class that the density does not see, it does not see in any dependence.
    method = "kernel" if any(hides_class(*own) for own in variables) else "kde"

    def measure(own: Sample, target: np.ndarray) -> float:
        given = {"sensitive_features": own.values, "sample_weight": own.counts}
        return hgr(target, **given, method=method)

    values = [measure(own, own.target) for own in samples]
    sample = samples[int(np.argmax(values))]
    row = ("hgr", method, max(values), measure(sample, sample.y_true))
    if (sample.target == sample.target[0]).all():
        return (*row, 0.0, 0.0, 0.0, 0.0)
    permuted, drawn = resampled_hgr(sample, method, n_resamples, rng)
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail]).tolist()
    return (*row, float(permuted.mean()), float(np.quantile(permuted, 0.95)), low, high)
