"""Results for one attribute: numbers, and sentences that explain them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from ..exceptions import TooManyGroupsError, warn_caller
from ..kernels import Design, PolynomialKernel, fit_kernel
from ..metrics import (
    CutsIndicator,
    GediInference,
    KernelIndicator,
    Sample,
    fit_gedi,
    quantile_bin_edges,
)

# A curve has the means of so many values, or else of so many bins of equally many rows.
_MOST_VALUES, _BINS = 20, 10
_NULL_DRAWS = 4000
# The curve over cuts is of as many rows or more, and takes a pass for each of so many columns.
_LEAST_CUT, _MOST_GROUPS = 20, 100
# Permuted coordinates of more rows are normal for all that a p-value shows.
_MANY_ROWS = 10_000


@dataclass(frozen=True)
class Cuts:
    """What an attribute explains of the share of rows above a cut of the predictions.

    Attributes
    ----------
    rates, rates_true : list of float
        The share of rows above some cuts, between 0 and 1, of predictions and targets.
    values, values_true : list of float
        The deviation of that share which the attribute explains, in points.
    null_q95 : float
        95 % quantile of the largest where the predictions do not depend on the attribute, as a
        share of 1.
    """

    rates: list[float]
    values: list[float]
    rates_true: list[float]
    values_true: list[float]
    null_q95: float

    def at(self, rate: float) -> float:
        """Return the points at the lowest cut that at most this share of the rows exceeds.

        NaN where no cut has so few rows above it.
        """
        pairs = zip(self.rates, self.values, strict=True)
        within = [value for own, value in pairs if own <= rate + 1e-9]
        return within[-1] if within else float("nan")


@dataclass(frozen=True)
class Findings:
    """Results for one attribute; the indicator is that of the report's norm and kernel.

    Attributes
    ----------
    attribute : str
        Its name.
    value, value_true : float
        The indicator of the predictions, and of the original targets.
    share, share_true : float or None
        With ``norm="sd"``: of the deviation of the predictions, and of the targets, how much the
        attribute explains.
    left : float
        The share of the targets' indicator that remains: that of the predictions over its
        reference; NaN where the targets do not depend on the attribute.
    low, high, upper : float
        Confidence interval of `left`, and its one-sided upper limit: what `left` is on all rows
        like these with that confidence, where the model was not corrected on these rows. The
        reference is taken as known.
    few_rows : str
        Which few rows `upper` rests on, in words; "" where they are many.
    null_q95 : float
        95 % quantile of `value` where the predictions do not depend on the attribute.
    p_value : float
        Of the permutation test of independence; with more than 10,000 rows of its limit.
    adjusted_p_value : float
        The same for the number of attributes of the report, by Holm.
    least_p_value : float
        The least that `p_value` can be, where no draw reaches the value.
    slope, slope_true : float or None
        Change of predictions and targets for one unit of the attribute; None for groups.
    asked : float or None
        The largest share that may be left.
    at : list of float or str
        Values of the attribute, or means of bins.
    mean, mean_true : list of float
        Mean predictions and targets there: the curve E[ŷ | x].
    cuts : Cuts or None
        The same of the share of rows above a cut, for every cut; None of predictions with two
        values, which have a single one, of fewer than 20 rows, and for more than 100 groups.
    has_predictions : bool
        Whether the predictions are others than the targets, which are measured without any.

    Examples
    --------
    >>> from gedi_sklearn import fairness_report
    >>> sex, pay = ["f", "m", "f", "m"] * 5, [1.0, 2.0, 2.0, 3.0] * 5
    >>> report = fairness_report(pay, sensitive_features=sex, threshold=0.5)
    >>> found = report.findings[0]
    >>> found.at, found.mean, found.verdict
    (['f', 'm'], [1.5, 2.5], 'exceeded on these rows, but the excess is within sampling error')
    """

    attribute: str
    value: float
    value_true: float
    share: float | None
    share_true: float | None
    left: float
    low: float
    high: float
    upper: float
    few_rows: str
    null_q95: float
    p_value: float
    adjusted_p_value: float
    least_p_value: float
    slope: float | None
    slope_true: float | None
    asked: float | None
    at: list[Any]
    mean: list[float]
    mean_true: list[float]
    cuts: Cuts | None
    has_predictions: bool

    @property
    def verdict(self) -> str | None:
        """Whether the remaining dependence is within the bound; None if there is no bound."""
        if self.asked is None:
            return None
        if np.isnan(self.left):
            return "none: the targets do not depend on the attribute, so a share is undefined"
        if self.left <= self.asked * (1 + 1e-9):
            if self.upper <= self.asked:
                return "met, including at the upper confidence limit"
            return "met on these rows, but not at the upper confidence limit"
        if self.low <= self.asked:
            return "exceeded on these rows, but the excess is within sampling error"
        return "not met: the whole confidence interval exceeds the bound"


def find(
    name: str,
    samples: list[Sample],
    *,
    kernel: Any,
    norm: str,
    asked: float | None,
    confidence: float,
    n_resamples: int,
    seed: int,
) -> Findings:
    """Measure one attribute.

    Parameters
    ----------
    name : str
        Its name.
    samples : list of Sample
        The sample, or one for each of more than two classes: the worst is reported.
    kernel, norm, confidence, n_resamples
        As in :func:`fairness_report`.
    asked : float or None
        The largest share that may be left.
    seed : int
        Of the simulations and permutations.

    Returns
    -------
    Findings
    """
    fitted = fit_gedi(samples[0], kernel, norm)
    indicator, design = fitted.indicator, fitted.indicator.design.with_matrix()
    sample = max(samples, key=lambda own: indicator.measure(own.target))
    z, y = sample.target, sample.y_true
    reference = fitted._replace(sample=sample).reference(True)
    if reference == 0:
        warn_caller(
            f"y_true does not depend on {name}: the share that remains is NaN.",
            UndefinedMetricWarning,
        )
        reference = float("nan")
    value, value_true = indicator.measure(z), indicator.measure(y)
    found = GediInference(
        indicator, z, confidence=confidence, n_resamples=_NULL_DRAWS, random_state=seed
    )
    method = "asymptotic" if len(z) > _MANY_ROWS else "permutation"
    test = GediInference(indicator, z, method=method, n_resamples=n_resamples, random_state=seed)
    low, high, upper, few_rows = limits_of(found)
    slope = slope_true = None
    if sample.values.dtype.kind == "f":
        line = fit_kernel(PolynomialKernel(1), sample.values, weight=sample.weight)
        slope, slope_true = (float(line.checked_coefficients(v)[0]) for v in (z, y))
    at, codes = _places(sample)
    return Findings(
        attribute=name,
        value=value,
        value_true=value_true,
        share=_share(indicator, z),
        share_true=_share(indicator, y),
        left=value / reference,
        low=low / reference,
        high=high / reference,
        upper=upper / reference,
        few_rows=few_rows,
        null_q95=found.null_q95,
        p_value=test.pvalue,
        adjusted_p_value=test.pvalue,
        least_p_value=1 / (1 + n_resamples),
        slope=slope,
        slope_true=slope_true,
        asked=asked,
        at=at,
        mean=_means(codes, z, design.weight),
        mean_true=_means(codes, y, design.weight),
        cuts=_over_cuts(design, z, y),
        has_predictions=not np.array_equal(z, y),
    )


def _over_cuts(design: Design, z: np.ndarray, y: np.ndarray) -> Cuts | None:
    is_large = len(z) >= _LEAST_CUT and design.fitted.n_columns <= _MOST_GROUPS
    if not is_large or not has_more(z, 2):
        return None
    indicator = CutsIndicator(design)
    # From the highest cut on.
    (rates, values), (rates_true, values_true) = (
        (own[::-1].tolist() for own in (above, 100 * explained))
        for _, above, explained in map(indicator.shown_curve, (z, y))
    )
    null = float(np.quantile(indicator.null_values(z), 0.95))
    return Cuts(rates, values, rates_true, values_true, null)


def has_more(values: np.ndarray, n_values: int) -> bool:
    """Tell whether there are more distinct values than a number, which a few rows mostly tell."""
    return any(len(np.unique(own)) > n_values for own in (values[: 10 * n_values], values))


def adjust(findings: list[Findings]) -> tuple[Findings, ...]:
    """Return the findings with p-values adjusted for their number, by Holm."""
    adjusted, largest, order = list(findings), 0.0, np.argsort([one.p_value for one in findings])
    for rank, j in enumerate(order):
        largest = max(largest, min(1.0, (len(findings) - rank) * findings[j].p_value))
        adjusted[j] = replace(findings[j], adjusted_p_value=largest)
    return tuple(adjusted)


def limits_of(found: GediInference) -> tuple[float, float, float, str]:
    """Return the interval, the upper limit, and what that rests on where it is little.

    NaN, with a warning, for more groups than limits can be computed for.
    """
    try:
        (low, high), upper = found.interval, found.upper  # in this order: `few_rows` is of the last
    except TooManyGroupsError as error:
        warn_caller(f"{error} The limits of the report are NaN.", UndefinedMetricWarning)
        return float("nan"), float("nan"), float("nan"), ""
    return low, high, upper, found.few_rows


def _share(indicator: KernelIndicator, z: np.ndarray) -> float | None:
    """Return the explained share of a deviation; None where it is not measured.

    It is 0 of a deviation that is none but for rounding.
    """
    if indicator.norm != "sd":
        return None
    deviation = indicator.design.deviation(z)
    return indicator.reference(z) / deviation if deviation else 0.0


def _places(sample: Sample) -> tuple[list[Any], np.ndarray]:
    """Return the values, or the means of the bins, whose mean predictions are shown."""
    x = shown = sample.values[:, 0]
    if x.dtype.kind != "f":
        levels, codes = np.unique([str(level) for level in x], return_inverse=True)
        return levels.tolist(), codes
    if has_more(x, _MOST_VALUES):
        edges = quantile_bin_edges(x, n_bins=_BINS, sample_weight=sample.counts)
        shown = np.searchsorted(edges[1:-1], x)
    codes = np.unique(shown, return_inverse=True)[1]
    return _means(codes, x, sample.weight), codes


def _means(codes: np.ndarray, z: np.ndarray, weight: np.ndarray | None) -> list[float]:
    weight = np.ones(len(z)) if weight is None else weight
    return (np.bincount(codes, z * weight) / np.bincount(codes, weight)).tolist()


def _percent(share: float, bound: float | None) -> str:
    """Return a share in percent, with digits that tell it from the bound."""
    if np.isinf(share):
        return "any share"
    digits = 0
    if bound is not None and share != bound:
        while digits < 3 and f"{share:.{digits}%}" == f"{bound:.{digits}%}":
            digits += 1
    return f"{share:.{digits}%}"


def sentences(found: Findings, unit: str | None, target: str | None, level: float) -> Iterator[str]:
    """Yield what the numbers mean, in the units of attribute and target."""
    name, measured = found.attribute, "" if target is None else f" {target}"
    # Of targets without predictions everything is said once.
    alone = not found.has_predictions
    what = "the targets" if alone else "the predictions"

    def beside(text: str) -> str:
        return "" if alone else f" ({text} in the targets)"

    if found.asked is not None:
        bound = f"at most {100 * found.asked:.4g}% of the dependence may remain"
        yield f"Bound: {bound}. Verdict: {found.verdict}."
    if found.slope is not None and found.slope_true is not None:
        more, in_targets = (
            f"{number(abs(slope))}{{}} {'higher' if slope >= 0 else 'lower'}"
            for slope in (found.slope, found.slope_true)
        )
        yield (
            f"Per additional {unit or 'unit'} of {name}, {what} are {more.format(measured)} on "
            f"average{beside(in_targets.format(''))}."
        )
    else:
        order = np.argsort(found.mean)
        least, most = int(order[0]), int(order[-1])
        yield (
            f"The mean of {what} is lowest for {found.at[least]} "
            f"({number(found.mean[least])}{measured}) and highest for {found.at[most]} "
            f"({number(found.mean[most])}{measured})."
        )
    if found.share is None or found.share_true is None:
        yield (
            f"GeDI, the sum of the coefficients of {name}, is {number(found.value)} in {what}"
            f"{beside(number(found.value_true))}."
        )
    else:
        of_targets = f"{number(found.value_true)}{measured}, {found.share_true:.0%}"
        yield (
            f"In {what}, {name} explains a standard deviation of {number(found.value)}{measured}, "
            f"{found.share:.0%} of the total{beside(of_targets)}."
        )
    if not alone and not np.isnan(found.left):
        low, high, upper, left = (
            _percent(own, found.asked) for own in (found.low, found.high, found.upper, found.left)
        )
        limits = f"{level:.0%} interval {low} to {high}, upper limit {upper}"
        if np.isnan([found.low, found.high, found.upper]).any():
            limits = "too few rows for an interval"
        yield f"Share of the targets' dependence that remains: {left} ({limits})."
        if found.few_rows:
            yield f"The upper limit rests on few rows: {found.few_rows}."
    # No draw reached the value: the p-value is at its least.
    at = "≤" if found.p_value <= found.least_p_value else "="
    chance = "More than chance" if found.p_value <= 1 - level else "No more than chance"
    adjusted = ""
    if found.adjusted_p_value != found.p_value:
        adjusted = f", adjusted for all attributes {found.adjusted_p_value:.2g}"
    yield (
        f"{chance} (p {at} {found.p_value:.2g}{adjusted}): if {what} did not depend on {name}, 95 "
        f"of 100 values would be below {number(found.null_q95)}{measured}."
    )
    yield from _of_cuts(found)


def _of_cuts(found: Findings) -> Iterator[str]:
    """Yield what decisions at a cut depend on."""
    if (cuts := found.cuts) is None:
        return
    what = "predictions" if found.has_predictions else "targets"
    true = ""
    if found.has_predictions and len(cuts.rates_true) > 1:
        true = f" (targets: {number(max(cuts.values_true))})"
    worst = f"{number(max(cuts.values))} points at the worst cut{true}"
    if not np.isnan(top := cuts.at(0.1)):
        worst = f"{number(top)} points at the top decile, and {worst}"
    yield (
        f"For the share of rows above a cut of the {what}, {found.attribute} explains a standard "
        f"deviation of {worst}; by chance, over all cuts, up to {number(100 * cuts.null_q95)}."
    )


def number(value: float) -> str:
    """Return a number with three digits, without an exponent from 1 to a billion."""
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e9 else f"{value:.3g}"
