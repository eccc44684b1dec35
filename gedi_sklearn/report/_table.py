"""The table of all indicators, with their values under independence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from .._validation import check_group_codes, check_labels, is_text, target_kind
from ..exceptions import RankDeficientKernelError, silent
from ..kernels import PolynomialKernel, fit_kernel
from ..metrics import (
    GediInference,
    KernelIndicator,
    LinearIndicator,
    Sample,
    bin_codes,
    check_sample,
    group_indicator,
    hgr,
    hides_class,
    resampled_hgr,
)
from ._findings import has_more, limits_of

# An attribute with at most this many distinct values is measured by groups, others in bins.
_MAX_GROUPS = 10
_NULL_DRAWS = 4000
_COLUMNS = (
    "attribute",
    "indicator",
    "parameter",
    "value",
    "y_true",
    "null_mean",
    "null_q95",
    "low",
    "high",
    "upper",
)


def check_samples(y_true: Any, y_pred: Any, given: tuple[Any, Any, Any], task: str) -> list[Sample]:
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


def hash_of(samples: list[Sample]) -> str:
    """Return the SHA-256 of targets, predictions, attributes and weights; text is UTF-8."""
    digest = sha256()
    columns = [own for one in samples for own in (one.y_true, one.target)]
    weight = samples[0].weight
    for column in [*columns, *samples[0].values.T, *([] if weight is None else [weight])]:
        if column.dtype.kind in "fiub":
            digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
        else:
            digest.update("\0".join(map(str, column)).encode("utf-8", "replace"))
    return digest.hexdigest()


def attributes_of(samples: list[Sample]) -> Iterator[tuple[str, list[Sample], bool]]:
    """Yield name and samples of each attribute, and of several also of all of them together."""
    m = samples[0].values.shape[1]
    names = samples[0].names or []
    if len(set(names)) < m:  # without names, or with one twice
        names = [f"attribute {j}" if m > 1 else "the attribute" for j in range(m)]
    for j, name in enumerate(names):
        own = [replace(one, values=_column(one.values, j), names=[name]) for one in samples]
        yield name, own, False
    if m > 1:
        yield " + ".join(names), samples, True


def _column(values: np.ndarray, j: int) -> np.ndarray:
    """Return one column, as numbers where it holds numbers."""
    column = values[:, [j]]
    return column if is_text(column) else column.astype(np.float64)


def make_table(
    samples: list[Sample],
    *,
    degrees: list[int],
    standardize: bool,
    bins: list[int],
    task: str,
    confidence: float,
    n_resamples: int,
    seed: int,
) -> dict[str, list[Any]]:
    """Return the table as columns; every row is simulated from the same seed.

    Parameters
    ----------
    samples : list of Sample
        The sample; of more than two classes one for each, and every row is that of the worst.
    degrees, standardize, bins, task, confidence, n_resamples
        As in :func:`fairness_report`, checked.
    seed : int
        Of the simulations and resamples.

    Returns
    -------
    dict of str to list
    """
    rows: list[tuple[Any, ...]] = []
    for name, own, is_joint in attributes_of(samples):
        # Groups of pairs are many and small: several attributes are measured jointly by kernels.
        chosen = None if is_joint else bins
        for what, parameter, indicator in _linear_indicators(
            own[0], degrees, standardize, chosen, task
        ):
            values = [indicator.measure(one.target) for one in own]
            worst = own[int(np.argmax(values))]
            found = GediInference(
                indicator,
                worst.target,
                confidence=confidence,
                n_resamples=_NULL_DRAWS,
                random_state=seed,
            )
            by_chance = found.null_mean, found.null_q95
            reference = indicator.measure(worst.y_true)
            own_row = (name, what, parameter, max(values), reference)
            rows.append((*own_row, *by_chance, *limits_of(found)[:3]))
        if not is_joint and own[0].values.dtype.kind == "f":
            rng = np.random.RandomState(seed)
            rows.append((name, *_hgr_row(own, confidence, n_resamples, rng)))
    return {
        name: list(column) for name, column in zip(_COLUMNS, zip(*rows, strict=True), strict=True)
    }


def _linear_indicators(
    sample: Sample, degrees: list[int], standardize: bool, bins: list[int] | None, task: str
) -> Iterator[tuple[str, Any, LinearIndicator]]:
    """Yield name, parameter and indicator of each row but HGR's."""
    n_columns = 0
    for degree in degrees:
        kernel = PolynomialKernel(degree, standardize=standardize)
        try:
            design = fit_kernel(kernel, sample.values, weight=sample.weight)
        except RankDeficientKernelError as error:
            if error.is_constant:
                raise
            # Too few distinct values for this degree.
            continue
        if design.fitted.n_columns == n_columns:
            # Levels have no powers.
            continue
        n_columns = design.fitted.n_columns
        design = design.with_matrix()
        for name, norm in (("gedi", "l1"), ("gedi_sd", "sd")):
            yield name, degree, KernelIndicator(design, norm)
    if bins is None:
        return
    if task == "auto":
        task = "classification" if target_kind(sample.y_true) == "binary" else "regression"
    factor = 2.0 if task == "classification" else 1.0
    if sample.values.dtype.kind != "f" or not has_more(sample.values, _MAX_GROUPS):
        codes, groups = check_group_codes(sample.values)
        yield "didi", len(groups), group_indicator(codes, sample.weight, factor)
        return
    for asked in bins:
        if asked > len(sample.target):
            raise ValueError(
                f"bins asks for {asked} bins of {len(sample.target)} rows. Ask for no more bins "
                "than there are rows."
            )
        codes = bin_codes(sample.values[:, 0], asked, sample.counts)
        indicator = group_indicator(codes, sample.weight, factor)
        yield "binned_didi", int(codes.max()) + 1, indicator


def _hgr_row(
    samples: list[Sample], confidence: float, n_resamples: int, rng: np.random.RandomState
) -> tuple[Any, ...]:
    variables = [(v, own.counts) for own in samples for v in (own.values, own.target, own.y_true)]
    # A class that the density does not see, it does not see in any dependence.
    method = "kernel" if any(hides_class(*own) for own in variables) else "kde"

    def measure(own: Sample, target: np.ndarray) -> float:
        given = {"sensitive_features": own.values, "sample_weight": own.counts}
        # Nobody who reads of the grid here could ask for another method.
        with silent():
            return hgr(target, **given, method=method)

    values = [measure(own, own.target) for own in samples]
    sample = samples[int(np.argmax(values))]
    row = ("hgr", method, max(values), measure(sample, sample.y_true))
    if max(values) == 0.0:  # of constants alone
        return (*row, 0.0, 0.0, 0.0, 0.0, 0.0)
    permuted, drawn = resampled_hgr(sample, method, n_resamples, rng)
    tail = (1 - confidence) / 2
    ends = np.quantile(drawn, [tail, 1 - tail, confidence]).tolist()
    return (*row, float(permuted.mean()), float(np.quantile(permuted, 0.95)), *ends)
