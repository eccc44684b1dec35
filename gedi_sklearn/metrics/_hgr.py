r"""Hirschfeld–Gebelein–Rényi correlation: the strongest dependence of any kind."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from .._validation import (
    NOTION_PARAMETERS,
    Interval,
    StrOptions,
    check_notion,
    check_random_state,
    validate_params,
)
from ..exceptions import warn_caller
from ..kernels import Design, PolynomialKernel, fit_kernel, row_blocks
from ._cuts import tie_width
from ._inputs import TARGET_CONSTRAINTS, Sample, check_sample, on_subset, ratio, undefined

# The grid of the density, in standard deviations, and its finest resolution.
_HALF_WIDTH = 2.5
_MAX_BINS = 50
# Added to the density, so that no row or column of the grid is empty.
_FLOOR = 1e-10
# Fraction of rows outside the grid above which the value may miss a dependence.
_OUTSIDE_TOLERANCE = 0.01
_BLOCK = 2_000
# Cells of a bandwidth in which the rows of resamples are counted, and how many bandwidths a bump
# reaches: exp(−6²/2) is 1e-8.
_CELLS, _REACH = 8, 6
# Variance of a combination of orthonormal columns that a resample has made constant.
_DEPENDENT = 1e-9
# Variables of at most this many values are classes.
_MAX_CLASSES = 10


@validate_params(
    TARGET_CONSTRAINTS
    | {
        "method": [StrOptions({"kde", "chi2", "kernel", "nn"})],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "relative": ["boolean"],
        "random_state": ["random_state"],
    }
    | NOTION_PARAMETERS,
    prefer_skip_nested_validation=True,
)
def hgr(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    method: str = "kde",
    degree: int = 3,
    relative: bool = False,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: Any = None,
    subset: Any = None,
    on: str = "predictions",
) -> float:
    r"""Hirschfeld–Gebelein–Rényi maximal correlation of targets and attribute; 0 is best.

    .. math:: \mathrm{HGR}(x, y) = \sup_{f, g} \mathrm{corr}(f(x), g(y))

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Original targets: numbers, booleans, or labels together with `pos_label`.
    y_pred : array-like of shape (n,), default=None
        Predictions. None measures `y_true` itself.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute; several columns for "kernel" and "nn" only.
    method : {"kde", "chi2", "kernel", "nn"}, default="kde"
        - "kde": second singular value of the normalised joint density, which is estimated on a
          grid of ±2.5 standard deviations by a Gaussian kernel (Mary et al., 2019).
        - "chi2": the sum of squares of all its singular values but the first, an upper bound of
          the square of "kde".
        - "kernel": f and g are polynomials of `degree`; a canonical correlation in closed form.
        - "nn": f and g are neural networks, trained to correlate (Grari et al., 2020); through
          the package maxcorr, which comes with the extra `torch`. It takes a few seconds per
          call, and the value depends on the seed: a thousand steps may not reach the supremum.
    degree : int, default=3
        Degree of both polynomials of ``method="kernel"``; where a variable has fewer distinct
        values, one less than their number, which is every function of it.
    relative : bool, default=False
        Divide by the value of `y_true`.
    pos_label : object, default=None
        The label that counts as 1; needed for text and categories.
    sample_weight : array-like of shape (n,), default=None
        Weights; rows of weight 0 are left out. An integer is that many rows; weights of which one
        is below 1 are scaled to sum to n. "nn" takes none.
    random_state : int, RandomState or None, default=None
        Seed of the networks of ``method="nn"``; None takes a fixed one. Torch's global generator
        is not advanced.
    subset, on
        As in :func:`gedi`.

    Returns
    -------
    float
        From 0 to 1 ("chi2": at least 0). Constant targets give 0. NaN, with
        :class:`sklearn.exceptions.UndefinedMetricWarning`, where the attribute is constant or
        the reference of `relative` is 0.

    Raises
    ------
    ImportError
        For ``method="nn"`` without torch or maxcorr.

    Warns
    -----
    UserWarning
        Where more than 1 % of the rows, or all rows of one of a few values, lie outside the grid:
        such a class (of two, one rarer than 13.8 %) is invisible to "kde" and "chi2".

    See Also
    --------
    gedi : Linear in the targets, in their own units, and can be constrained.

    Notes
    -----
    The Gaussian separates, so the density on b × b points is one product of two n × b matrices.

    "kernel" is biased upwards on small samples, the more so the higher its degree. "kde" and "chi2"
    smooth the density: independent samples are above 0 by chance, but strong dependence is
    understated (normal pairs with ρ = .9: "kde" is .72 on 100 rows, .84 on 5,000).

    References
    ----------
    J. Mary, C. Calauzènes, N. El Karoui (2019): Fairness-Aware Learning for Continuous Attributes
    and Treatments. ICML.

    V. Grari, B. Ruf, S. Lamprier, M. Detyniecki (2020): Fairness-Aware Neural Rényi Minimization
    for Continuous Features. IJCAI.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.metrics import hgr
    >>> x = np.linspace(-1, 1, 201)
    >>> hgr(x**2, sensitive_features=x, method="kernel", degree=2)
    1.0
    >>> 0.7 < hgr(x**2, sensitive_features=x) < 0.9
    True
    """
    check_notion(subset, on, relative)
    given = on_subset(subset, y_true, pos_label, y_pred, sensitive_features, sample_weight)
    if given is None:
        return float("nan")
    y_true, y_pred, sensitive_features, sample_weight = given
    checked = (y_true, y_pred, sensitive_features, sample_weight, pos_label)
    sample = check_sample(*checked, attribute="numbers", on=on)
    values, counts = sample.values, sample.counts
    if (values == values[0]).all():
        return undefined("sensitive_features is constant on the rows of positive weight.")
    if method == "nn" and counts is not None:
        raise ValueError("method='nn' takes no sample_weight; use another method, or repeat rows.")
    if method in ("kde", "chi2") and values.shape[1] != 1:
        raise ValueError(
            f"method={method!r} measures one attribute, got sensitive_features with "
            f"{values.shape[1]} columns; use method='kernel' or 'nn'."
        )

    # Drawn once, so that both values behind `relative` start from the same networks.
    seed = 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))

    def measure(target: np.ndarray) -> float:
        ends = np.array([target.min(), target.max()])
        if ends[1] - ends[0] <= tie_width(ends):
            return 0.0
        if method == "kernel":
            return _canonical_correlation(values, target, counts, degree)
        if method == "nn":
            return _neural_correlation(values, target, seed)
        singular = _density_spectrum(values[:, 0], target, counts)
        return float(singular[1]) if method == "kde" else float((singular[1:] ** 2).sum())

    value = measure(sample.target)
    return ratio(value, measure(sample.y_true)) if relative else value


def _density_spectrum(x: np.ndarray, y: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """Return the singular values of the joint density over the root of its margins."""
    x, y, grid, total = _standardize(x, y, counts)
    _warn_outside(x, y, counts)
    products = np.zeros((len(grid), len(grid)))
    for start in range(0, len(x), _BLOCK):
        rows = slice(start, start + _BLOCK)
        bumps = _bumps(x[rows], grid, total)
        if counts is not None:
            bumps *= counts[rows, None]
        products += bumps.T @ _bumps(y[rows], grid, total)
    return _spectrum(products, total)


def _standardize(
    x: np.ndarray, y: np.ndarray, counts: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return both variables standardised, the grid, and the number of rows."""
    # By a power of two, which changes no digit, to where squares neither vanish nor overflow.
    x, y = (np.ldexp(v, -np.frexp(np.abs(v).max())[1]) for v in (x, y))
    if counts is None:
        total = float(len(x))
        x, y = ((v - v.mean()) / v.std(ddof=1) for v in (x, y))
    else:
        total = float(counts.sum())
        x, y = (v - np.average(v, weights=counts) for v in (x, y))
        x, y = (v / np.sqrt(counts @ v**2 / (total - 1)) for v in (x, y))
    n_points = int(min(_MAX_BINS, 2 * _HALF_WIDTH / _bandwidth(total)))
    return x, y, np.linspace(-_HALF_WIDTH, _HALF_WIDTH, n_points), total


def _bandwidth(n: float) -> float:
    return n ** (-1 / 6)  # Silverman's rule in two dimensions


def _spectrum(products: np.ndarray, n: float) -> np.ndarray:
    # One factor 1/(h√2π), as in the authors' code: the effect of the floor depends on it.
    density = products / (n * _bandwidth(n) * np.sqrt(2 * np.pi)) + _FLOOR
    density /= density.sum()
    margins = np.outer(density.sum(axis=1), density.sum(axis=0))
    return np.linalg.svd(density / np.sqrt(margins), compute_uv=False)


def resampled_hgr(
    sample: Sample, method: str, n_resamples: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values for permuted targets, and for rows drawn with replacement.

    For "kde" resamples keep the standardisation and the grid of the sample, and its rows are
    counted in cells far narrower than the bumps; "kernel" is the other method.
    """
    n, times = len(sample.target), range(n_resamples)
    measure = (_correlation_of_resamples if method == "kernel" else _density_of_resamples)(sample)
    # A Generator draws twice as fast as the RandomState that it is seeded by.
    generator = np.random.default_rng(rng.randint(2**31))
    permuted = [measure(slice(None), generator.permutation(n)) for _ in times]
    draws = (generator.integers(n, size=n) for _ in times)
    return np.asarray(permuted), np.asarray([measure(rows, rows) for rows in draws])


# Of the rows that attributes, with their weights, and targets are taken from.
_Resampled = Callable[[np.ndarray | slice, np.ndarray], float]


def _density_of_resamples(sample: Sample) -> _Resampled:
    """Return the value of "kde" from the numbers of rows in fine cells."""
    x, y, grid, total = _standardize(sample.values[:, 0], sample.target, sample.counts)
    width = _bandwidth(total)
    reach = _HALF_WIDTH + _REACH * width  # beyond it a bump does not reach the grid
    n_cells = int(np.ceil(2 * reach * _CELLS / width))
    edges = np.linspace(-reach, reach, n_cells + 1)
    first, second = (np.clip(np.searchsorted(edges, v) - 1, 0, n_cells - 1) for v in (x, y))
    first *= n_cells
    both = first + second
    bumps, weights = _bumps((edges[1:] + edges[:-1]) / 2, grid, total), sample.counts

    def value(own: np.ndarray | slice, other: np.ndarray) -> float:
        weight = None if weights is None else weights[own]
        cells = both.take(own) if own is other else first[own] + second.take(other)
        counts = np.bincount(cells, weights=weight, minlength=n_cells**2).astype(np.float64)
        return float(_spectrum(bumps.T @ (counts.reshape(n_cells, -1) @ bumps), total)[1])

    return value


def _correlation_of_resamples(sample: Sample) -> _Resampled:
    """Return the value of "kernel" from the moments of the polynomials of both variables."""
    designs = [_polynomials(v, 3, sample.counts) for v in (sample.values, sample.target[:, None])]
    first, second = (design.orthonormal for design in designs)
    weights = np.ones(len(first)) if sample.counts is None else sample.counts

    def value(rows: np.ndarray | slice, others: np.ndarray) -> float:
        weight, columns = weights[rows], np.hstack([first[rows], second[others]])
        columns -= weight @ columns / weight.sum()
        moments = (columns * weight[:, None]).T @ columns / weight.sum()
        own, other = (_inverse_root(moments[s, s]) for s in (slice(k), slice(k, None)))
        singular = np.linalg.svd(own @ moments[:k, k:] @ other, compute_uv=False)
        return float(min(singular[0], 1.0))

    k = first.shape[1]
    return value


def _inverse_root(covariance: np.ndarray) -> np.ndarray:
    """Return the inverse root of a covariance on its span; a resample may be constant."""
    values, vectors = np.linalg.eigh(covariance)
    is_free = values > _DEPENDENT
    scale = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=is_free)
    return (vectors * scale) @ vectors.T


def _bumps(values: np.ndarray, grid: np.ndarray, n: float) -> np.ndarray:
    bumps = values[:, None] - grid
    bumps *= bumps
    bumps *= -0.5 / _bandwidth(n) ** 2
    return np.exp(bumps, out=bumps)


def _warn_outside(x: np.ndarray, y: np.ndarray, counts: np.ndarray | None) -> None:
    is_outside = (np.abs(x) > _HALF_WIDTH) | (np.abs(y) > _HALF_WIDTH)
    outside = float(np.average(is_outside, weights=counts))
    hidden = hides_class(x, counts) or hides_class(y, counts)
    if hidden or outside > _OUTSIDE_TOLERANCE:
        among = ", a whole class among it, whatever the dependence" if hidden else ""
        warn_caller(
            f"{outside:.1%} of the rows lie outside the grid of ±{_HALF_WIDTH} standard "
            "deviations of sensitive_features and targets: what happens there is invisible to "
            f"this indicator{among}. Use method='kernel', or gedi."
        )


def hides_class(values: np.ndarray, counts: np.ndarray | None) -> bool:
    """Tell whether all rows of one of a few values of a variable lie outside the grid of "kde"."""
    if len(np.unique(values[: _MAX_CLASSES + 1])) > _MAX_CLASSES:
        return False  # as most do, and a few rows tell it
    levels, codes = np.unique(values.ravel(), return_inverse=True)
    if not 1 < len(levels) <= _MAX_CLASSES:
        return False
    total = np.bincount(codes, weights=counts)
    centred = levels - np.average(levels, weights=total)
    deviation = np.sqrt(total @ centred**2 / (total.sum() - 1))
    return bool(np.abs(centred).max() > _HALF_WIDTH * deviation)


def _canonical_correlation(
    values: np.ndarray, target: np.ndarray, counts: np.ndarray | None, degree: int = 3
) -> float:
    """Return the largest correlation of a polynomial of the attribute with one of the target."""
    first, second = (_polynomials(v, degree, counts) for v in (values, target[:, None]))
    cross = np.zeros((first.fitted.n_columns, second.fitted.n_columns))
    for rows in row_blocks(first.n_rows):
        own = second.orthonormal_of(rows)
        if counts is not None:
            own = own * (counts[rows, None] * (first.n_rows / counts.sum()))
        cross += first.orthonormal_of(rows).T @ own
    singular = np.linalg.svd(cross / first.n_rows, compute_uv=False)
    return float(min(singular[0], 1.0))


def _neural_correlation(values: np.ndarray, target: np.ndarray, seed: int) -> float:
    """Return the correlation of two networks' outputs on the sample they were trained on."""
    try:
        import torch
        from maxcorr.indicators import NeuralIndicator
    except ModuleNotFoundError as error:
        raise ImportError(
            f"hgr(method='nn') needs torch and maxcorr ({error.name} is missing): "
            "pip install '.[torch]' in a clone."
        ) from error
    first, second = ((v - v.mean(axis=0)) / (v.std(axis=0) + _FLOOR) for v in (values, target))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # maxcorr casts the rows to single precision, but builds networks of the default dtype.
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            indicator = NeuralIndicator(backend="numpy", num_features=(values.shape[1], 1))
            return float(np.clip(indicator.compute(first, second), 0.0, 1.0))
        finally:
            torch.set_default_dtype(default)


def _polynomials(values: np.ndarray, degree: int, weight: np.ndarray | None) -> Design:
    if values.shape[1] == 1:
        degree = min(degree, len(np.unique(values)) - 1)
    return fit_kernel(PolynomialKernel(degree, standardize=True), values, weight=weight)
