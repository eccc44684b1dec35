"""The function that measures one set of predictions."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from .._validation import (
    Interval,
    StrOptions,
    check_levels,
    check_random_state,
    validate_params,
)
from ..kernels import KERNEL_CONSTRAINTS
from ..metrics import TARGET_CONSTRAINTS
from ._findings import adjust, find
from ._report import FairnessReport, installed_versions
from ._samples import attributes_of, check_samples, hash_of
from ._table import make_table

_PERMUTATIONS = 999


@validate_params(
    TARGET_CONSTRAINTS
    | {
        "kernel": KERNEL_CONSTRAINTS,
        "norm": [StrOptions({"l1", "sd"})],
        "threshold": [Interval(Real, 0, None, closed="left"), "array-like", None],
        "degrees": ["array-like"],
        "standardize": ["boolean"],
        "bins": ["array-like"],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "attribute_unit": [str, "array-like", None],
        "target_unit": [str, None],
        "model": [str, None],
        "data": [str, None],
        "date": [str, None],
    },
    prefer_skip_nested_validation=True,
)
def fairness_report(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = "spline",
    norm: str = "sd",
    threshold: Any = None,
    degrees: Any = (1, 2, 3, 4, 5),
    standardize: bool = True,
    bins: Any = (2, 3, 5, 10),
    task: str = "auto",
    confidence_level: float = 0.95,
    n_resamples: int = 99,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    attribute_unit: Any = None,
    target_unit: str | None = None,
    model: str | None = None,
    data: str | None = None,
    date: str | None = None,
) -> FairnessReport:
    """Measure predictions by every indicator, and state the results in words.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Original targets: numbers, booleans, or labels together with `pos_label`.
    y_pred : array-like of shape (n,), default=None
        Predictions. None measures `y_true` itself.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute; text and categories are categorical. Of several each is measured
        alone, and the table has rows for all of them together.
    kernel : int, str, transformer or callable, default="spline"
        The functions of the attribute in the sentences and verdicts; see
        :func:`gedi_sklearn.metrics.gedi`.
    norm : {"sd", "l1"}, default="sd"
        The indicator in the sentences and verdicts: the deviation that the attribute explains, or
        the paper's sum of coefficients.
    threshold : float or array-like of shape (m,), default=None
        The share of the dependence of `y_true` that may remain: 0.2 is a fifth. One for each
        attribute, or one for all; None is no bound.
    degrees : array-like of int, default=(1, 2, 3, 4, 5)
        Degrees of GeDI in the table. Those that the attribute has too few distinct values for are
        left out.
    standardize : bool, default=True
        Whether GeDI in the table is measured on the standardised attribute.
    bins : array-like of int, default=(2, 3, 5, 10)
        Numbers of bins of the binned DIDI, at most that of the rows. An attribute of text, or of at
        most 10 distinct values, has the DIDI of its groups instead.
    task : {"auto", "classification", "regression"}, default="auto"
        The form of DIDI; "auto" takes the classification form where `y_true` has two classes.
        "classification" measures more classes, of any label, one against the rest: everything is
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
        Seed of simulations and resamples. All rows start from it, so equal indicators have equal
        values under independence.
    attribute_unit : str or array-like of str of shape (m,), default=None
        Unit of the attribute in words, such as "year".
    target_unit : str, default=None
        Unit of the targets in words, such as "points".
    model : str, default=None
        Name of the model, to be printed.
    data : str, default=None
        What the rows are, in words: "five folds, each predicted by the model of the others".
    date : str, default=None
        Date of the run, to be printed.

    Returns
    -------
    FairnessReport

    Raises
    ------
    RankDeficientKernelError
        If an attribute is constant.
    ValueError
        If there are fewer rows than bins; if values are missing or infinite, or lengths differ.

    Warns
    -----
    UserWarning
        Where bins are merged, or rows lie outside the grid of HGR. Where a whole class does, HGR
        is that of ``method="kernel"``.
    UndefinedMetricWarning
        Where `y_true` does not depend on an attribute, so that a share of that is undefined.

    See Also
    --------
    gedi_sklearn.metrics.gedi_inference : The same of one indicator.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from gedi_sklearn import fairness_report
    >>> rng = np.random.default_rng(0)
    >>> age = pd.Series(rng.uniform(20, 60, 300), name="age")
    >>> pay = 30 + 0.5 * age + rng.normal(scale=3, size=300)
    >>> report = fairness_report(
    ...     pay,
    ...     pay - 0.4 * age,
    ...     sensitive_features=age,
    ...     threshold=0.25,
    ...     attribute_unit="year",
    ...     target_unit="euros",
    ... )
    >>> report.findings[0].verdict
    'met, including at the upper confidence limit'
    >>> print(report)
    Fairness report
    ...
    age
      Bound: at most 25% of the dependence may remain. Verdict: met, including at the upper ...
      Per additional year of age, the predictions are 0.0919 euros higher on average ...
      age explains a standard deviation of 1.11 euros in the predictions, 36% of the total ...
      Share of the targets' dependence that remains: 19% ...
      ...
    """
    degrees, bins = _check_integers(degrees, "degrees", 1), _check_integers(bins, "bins", 2)
    given = (sensitive_features, sample_weight, pos_label)
    samples = check_samples(y_true, y_pred, given, task)
    sample = samples[0]
    check_levels(sample.values, "sensitive_features (rows of positive weight)")
    n_attributes = sample.values.shape[1]
    asked = _for_each(threshold, n_attributes, "threshold")
    units = _for_each(attribute_unit, n_attributes, "attribute_unit")
    seed = check_random_state(random_state).randint(2**31)
    attributes = [(name, own) for name, own, is_joint in attributes_of(samples) if not is_joint]
    findings = [
        find(
            name,
            own,
            kernel=kernel,
            norm=norm,
            asked=bound,
            confidence_level=confidence_level,
            n_resamples=_PERMUTATIONS,
            seed=seed,
        )
        for (name, own), bound in zip(attributes, asked, strict=True)
    ]
    table = make_table(
        samples,
        degrees=degrees,
        standardize=standardize,
        bins=bins,
        task=task,
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        seed=seed,
    )
    return FairnessReport(
        findings=adjust(findings),
        table=table,
        n_rows=len(sample.target),
        confidence_level=confidence_level,
        attribute_units=units,
        target_unit=target_unit,
        model=model,
        data=data,
        date=date,
        versions=installed_versions(),
        random_state=int(random_state) if isinstance(random_state, Integral) else None,
        data_hash=hash_of(samples),
    )


def _check_integers(values: Any, name: str, smallest: int) -> list[int]:
    """Return a list of integers; other values are an error and never rounded."""
    listed = np.asarray(values).ravel().tolist()
    for value in listed:
        if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
            raise ValueError(f"{name} must hold integers of at least {smallest}, got {value!r}.")
    return listed


def _for_each(value: Any, n_attributes: int, name: str) -> list[Any]:
    """Return one value for each attribute."""
    if value is None or isinstance(value, (str, Real)):
        return [value] * n_attributes
    listed = list(value)
    if len(listed) != n_attributes:
        raise ValueError(
            f"{name} must be one value, or one for each of the {n_attributes} attributes; got "
            f"{len(listed)}."
        )
    for one in listed:
        if one is None:
            continue
        if name == "threshold" and not (isinstance(one, Real) and float(one) >= 0):
            raise ValueError(f"threshold must hold shares of at least 0, or None; got {one!r}.")
        if name == "attribute_unit" and not isinstance(one, str):
            raise ValueError(f"attribute_unit must hold text, or None; got {one!r}.")
    return listed
