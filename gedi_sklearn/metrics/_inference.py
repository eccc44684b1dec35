r"""Inference on GeDI: what chance gives, a test of independence, an interval, an upper limit."""

from __future__ import annotations

from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._validation import Interval, StrOptions, check_random_state, validate_params
from ..exceptions import FewRowsWarning, warn_caller
from ._cuts import CutsIndicator
from ._gedi import GEDI_CONSTRAINTS, fit_arguments
from ._linear import LinearIndicator

# What every form of inference takes beside the arguments of the indicator.
INFERENCE_CONSTRAINTS: dict = {
    "norm": [StrOptions({"l1", "sd"})],
    "confidence": [Interval(Real, 0, 1, closed="neither")],
    "fitted": ["boolean"],
    "n_resamples": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
}


class GediInference:
    """Chance, p-value and limits of an indicator, as :func:`gedi_inference` returns them.

    Each attribute is computed when it is first asked for, and kept.

    Attributes
    ----------
    value : float
        The indicator.
    null_mean : float
        Its expected value where the targets do not depend on the attribute.
    null_q95 : float
        Its 95 % quantile there: what chance alone stays below, 95 times of 100.
    null_distribution : ndarray of shape (n_resamples,)
        The draws behind that quantile.
    pvalue : float
        (1 + number of draws that reach the value) / (1 + number of draws).
    interval : tuple of float
        Both ends of the confidence interval.
    upper : float
        The one-sided upper confidence limit; infinite where a level has one row.
    few_rows : str
        In words, which few rows the limit that was asked for last rests on; "" where they are many.

    Examples
    --------
    >>> from gedi_sklearn.metrics import gedi_inference
    >>> found = gedi_inference([1.0, 2.0, 2.0, 4.0, 5.0], sensitive_features=[1, 2, 3, 4, 5])
    >>> low, high = found.interval
    >>> low < 1.0 < high
    True
    """

    def __init__(
        self,
        indicator: LinearIndicator,
        target: np.ndarray,
        unit: float = 1.0,
        *,
        method: str = "asymptotic",
        confidence: float = 0.95,
        fitted: bool = False,
        n_new: int | None = None,
        groups: np.ndarray | None = None,
        n_resamples: int = 1000,
        random_state: Any = None,
        warns: bool = False,
    ) -> None:
        self._indicator, self._target, self._unit = indicator, target, unit
        self._groups, self._warns, self.few_rows = groups, warns, ""
        self._method, self._confidence = method, confidence
        self._fitted, self._n_new = fitted, n_new
        self._n_resamples = n_resamples
        # A number, so that no draws depend on which others were asked for before.
        if isinstance(random_state, np.random.RandomState):
            random_state = random_state.randint(2**31)
        self._seed = 0 if random_state is None else random_state
        if groups is not None and not self._has_errors:  # one group says nothing of chance
            self._undefine("null_mean", "null_q95", "pvalue", n_resamples=n_resamples)

    @classmethod
    def undefined(cls, n_resamples: int) -> GediInference:
        """Return the inference of no rows: every number is NaN."""
        nothing, names = cls.__new__(cls), ("value", "null_mean", "null_q95", "pvalue", "upper")
        nothing._undefine(*names, n_resamples=n_resamples)
        vars(nothing)["interval"] = np.nan, np.nan
        return nothing

    def _undefine(self, *names: str, n_resamples: int) -> None:
        """Give attributes, and all draws, the value NaN."""
        vars(self).update(dict.fromkeys(names, np.nan))
        vars(self)["null_distribution"] = np.full(n_resamples, np.nan)

    def __repr__(self) -> str:
        return f"GediInference(value={self.value:.4g})"

    @property
    def _rng(self) -> np.random.RandomState:
        return check_random_state(self._seed)

    @cached_property
    def _has_errors(self) -> bool:
        return self._indicator.has_errors(self._groups)

    @cached_property
    def value(self) -> float:
        """The indicator."""
        return self._indicator.measure(self._target) / self._unit

    @cached_property
    def null_mean(self) -> float:
        """Its expected value under independence."""
        if self._method == "permutation":
            return float(self.null_distribution.mean())
        return self._indicator.null_mean(self._target, self._groups) / self._unit

    @cached_property
    def null_q95(self) -> float:
        """Its 95 % quantile under independence."""
        return float(np.quantile(self.null_distribution, 0.95))

    @cached_property
    def null_distribution(self) -> np.ndarray:
        """Draws of it under independence."""
        indicator, n_resamples = self._indicator, self._n_resamples
        if self._method == "permutation":
            # A Generator permutes twice as fast as the RandomState that it is seeded by.
            generator = np.random.default_rng(self._rng.randint(2**31))
            values = indicator.permuted(self._target, n_resamples, generator, self._groups)
        else:
            values = indicator.null_draws(self._target, n_resamples, self._rng, self._groups)
        return values / self._unit

    @cached_property
    def pvalue(self) -> float:
        """How often chance reaches the value."""
        if self._indicator.reference(self._target) == 0.0:  # its digits are those of rounding
            return 1.0
        # As the draws are computed, so that equal values are equal but for the last digits:
        # discrete targets have many.
        if self._method == "permutation":
            value = self._indicator.as_permuted(self._target)
        else:
            value = float(self._indicator.value(self._indicator.design.coordinates(self._target)))
        least = value / self._unit * (1 - 1e-12)
        reached = int((self.null_distribution >= least).sum())
        return (1 + reached) / (1 + self._n_resamples)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Both ends of the confidence interval."""
        indicator, z = self._indicator, self._target
        if not self._has_errors:
            return float("nan"), float("nan")
        if self._method == "simulation":
            drawn = indicator.simulated(z, self._n_resamples, self._rng, self._groups)
        elif self._method == "bootstrap":
            parts = indicator.resampled(z, self._n_resamples, self._rng, self._groups)
            drawn = _defined(np.concatenate(list(parts)))
        else:
            low, high, few = indicator.interval(z, self._confidence, self._groups)
            self._tell("interval", few)
            return low / self._unit, high / self._unit
        tail = (1 - self._confidence) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail]) / self._unit
        return float(low), float(high)

    @cached_property
    def upper(self) -> float:
        """The upper confidence limit."""
        if not self._has_errors:
            return float("nan")
        return self._upper_limit("upper", self._confidence)

    def _upper_limit(self, name: str, confidence: float) -> float:
        is_chosen = self._fitted or self._n_new is not None
        options: Any = {"simultaneous": is_chosen, "n_new": self._n_new, "groups": self._groups}
        limit = self._indicator.upper_limit(self._target, confidence, **options)
        self._tell(name, limit.few)
        return float(limit.values[0]) / self._unit

    def _tell(self, what: str, few: str) -> None:
        """Keep which few rows a limit rests on, and say it."""
        self.few_rows = few
        if few and self._warns:
            warn_caller(FewRowsWarning.from_place(what, few))


class CutsInference(GediInference):
    """The same of the largest cut."""

    _indicator: CutsIndicator

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Both ends of the confidence interval.

        The distance of two largest values is at most the largest distance, which is below that
        quantile of independent scores, whose cuts vary most.
        """
        if not self._has_errors:
            return float("nan"), float("nan")
        one_sided = (1 + self._confidence) / 2
        low = self.value - float(np.quantile(self.null_distribution, one_sided))
        return max(low, 0.0), self._upper_limit("interval", one_sided)


@validate_params(
    GEDI_CONSTRAINTS
    | INFERENCE_CONSTRAINTS
    | {
        "method": [StrOptions({"asymptotic", "permutation", "simulation", "bootstrap"})],
        "n_new": [Interval(Integral, 1, None, closed="left"), None],
        "groups": ["array-like", None],
    },
    prefer_skip_nested_validation=True,
)
def gedi_inference(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = 1,
    relative: bool | int = False,
    norm: str = "l1",
    conditional_on: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    subset: Any = None,
    on: str = "predictions",
    method: str = "asymptotic",
    confidence: float = 0.95,
    fitted: bool = False,
    n_new: int | None = None,
    groups: Any = None,
    n_resamples: int = 1000,
    random_state: Any = None,
) -> GediInference:
    r"""Test GeDI against chance, and give confidence limits for its true value.

    With G = F̃ᵀF̃ and sd the deviation of the targets (with divisor n − 1), targets that do not
    depend on the attribute have

    .. math:: E\,\|\tilde\alpha\|_1 = \mathrm{sd} \sqrt{2/\pi} \sum_j \sqrt{(G^{-1})_{jj}} .

    A value near this is no evidence of anything: the p-value tells. The true value is that of all
    rows of the kind that these are drawn from.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, kernel, relative, norm, conditional_on
        As in :func:`gedi`; the reference of `relative` is taken as known. `norm` is "l1" or "sd".
    pos_label, sample_weight, subset, on
        As in :func:`gedi`. Weights are sampling weights: each row of positive weight is one
        observation, whatever its weight.
    method : {"asymptotic", "permutation", "simulation", "bootstrap"}, default="asymptotic"
        - "asymptotic": coefficients are taken as normal. Under independence their covariance is
          known. The interval of a single coefficient has a limit at both ends, see the notes; that
          of several is the range of the indicator over the confidence ellipsoid of the
          coefficients, with the covariance HC3 (unequal variances are allowed) and the degrees of
          freedom HTZ. Its lower end is 0 where the ellipsoid meets 0.
        - "permutation": the same interval; independence is tested by permuting the targets. The
          test is exact: it rejects at level a with probability at most a. With `conditional_on`,
          what the covariates leave of the targets is permuted (Freedman and Lane), which is
          approximate.
        - "simulation": the interval consists of quantiles of the indicator of normal coefficients
          around the estimated ones.
        - "bootstrap": it consists of those of the indicator of resampled rows.

        The last two are valid only where every coefficient is several standard errors from 0: an
        L1 norm of noisy coefficients is biased upwards, and 0 is a boundary.
    confidence : float, default=0.95
        Confidence of `interval` and `upper`.
    fitted : bool, default=False
        Whether the predictions were fitted or corrected on these rows to be small in GeDI, even if
        by cross-fitting. `upper` is then wider.
    n_new : int, default=None
        Number of rows (of the subset) of a finite batch whose own GeDI is to be below `upper`; it
        varies, too. None for the true value.
    groups : array-like of shape (n,), default=None
        Which rows depend on each other, such as those of one person; groups are independent.
        Errors are then those of whole groups, CR3, with as many degrees of freedom as groups less
        one; "permutation" exchanges the targets of whole groups, which have to be of one size. None
        takes rows as independent.
    n_resamples : int, default=1000
        Number of permutations, simulations or resamples.
    random_state : int, RandomState instance or None, default=None
        Their seed; None takes a fixed one.

    Returns
    -------
    GediInference
        With ``value``, ``null_mean``, ``null_q95``, ``null_distribution``, ``pvalue``,
        ``interval`` and ``upper``, each computed when it is asked for: only "permutation" and
        "bootstrap" take long. NaN, with :class:`sklearn.exceptions.UndefinedMetricWarning`, are the
        limits where the rows are no more than the coefficients and the constant, all but the
        value where `groups` holds one group, and all of it of a subset without rows.

    Raises
    ------
    RankDeficientKernelError
        If the kernel's columns are linearly dependent, or the attribute is constant.
    TooManyGroupsError
        If text with thousands of levels comes beside `groups` or `conditional_on`, which need a
        matrix of them.
    ValueError
        If the reference of `relative` is 0; if values are missing or infinite, or lengths differ.

    See Also
    --------
    gedi : The value alone.
    make_disparity_scorer : With the metric "gedi_upper", `upper` as a scorer.

    Notes
    -----
    The coefficients of permuted targets have mean 0 and exactly the covariance that is used; that
    they are normal is an approximation, good from a few hundred rows. (scipy's own permutation test
    is not used: it computes n! first, which takes minutes at n = 10⁷.)

    The upper limit: the true ‖α̃‖₁ is s·α̃ for one pattern of signs s. For that one the limit of
    s·α̃ is a limit, so the largest of all patterns is (up to 12 coefficients; beyond, the sum of
    those of their sizes). ‖F̃α̃‖/√n is u·c for one unit vector u of orthonormal coordinates in the
    same way; the error of c there is that of (Qu)(y − ȳ − ½Qc), as the basis is that of the rows.
    Row i adds η_i = a_i e_i/(1 − h_i) to the error of s·α̃, with a_i its part in s·α̃ (a group the
    sum that the fit without it lacks). One more row, that which the sample may lack, is added:

    .. math::
        \eta_* = \max\Big(\max_i |\eta_i|,\ \frac{\sum |a|^3}{\sum a^2}
                 \frac{\sum w |e|^3}{\sum w e^2}\Big), \quad
        V = \sum \eta^2 + \eta_*^2, \quad K_r = \sum \eta^r + \eta_*^r, \\
        upper = s \cdot \tilde\alpha + \frac{\max(K_3, 0)}{V}
                \max\Big(1, \frac{1 + 2 z^2}{6}\Big) + t_\nu \sqrt V, \quad
        \nu = \min\Big(\frac{2 V^2}{K_4}, n_{free}\Big) .

    The second term corrects for skewness, ν are Satterthwaite's degrees of freedom. Where a level
    has few rows or few events they are few; below 6, :class:`FewRowsWarning` names it. A level of
    one row says nothing of its error: the limit is infinite.

    Squares of high powers of a raw attribute rest on few rows, and a sample may lack those that
    matter most: S is to be below the limit even if rows as far as the farthest ones, and beyond by
    their leverage, are among new rows as often as a sample that has none allows.

    Where the predictions were fitted to the rows, or a batch of new rows has its own signs, s
    depends on chance. Then t is at the level, simulated, at which all s hold together (the root of
    k F for "sd", and beyond 12 coefficients). A batch of `n_new` rows (of groups, where these are
    given) adds its own errors: what is beyond s·α̃ is multiplied by √(1 + n/n_new).

    References
    ----------
    J. G. MacKinnon, H. White (1985): Some heteroskedasticity-consistent covariance matrix
    estimators with improved finite sample properties. Journal of Econometrics 29.

    F. E. Satterthwaite (1946): An approximate distribution of estimates of variance components.
    Biometrics Bulletin 2.

    P. Hall (1992): The Bootstrap and Edgeworth Expansion. Springer, section 2.6.

    R. M. Bell, D. F. McCaffrey (2002): Bias reduction in standard errors for linear regression with
    multi-stage samples. Survey Methodology 28.

    J. E. Pustejovsky, E. Tipton (2018): Small-sample methods for cluster-robust variance estimation
    and hypothesis testing in fixed effects models. Journal of Business & Economic Statistics 36.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn.metrics import gedi_inference
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 400))
    >>> found = gedi_inference(0.5 * x + noise, sensitive_features=x)
    >>> low, high = found.interval
    >>> low < 0.5 < high and found.value < found.upper < 0.7
    True
    >>> found.pvalue < 0.01
    True
    >>> by_chance = gedi_inference(noise, sensitive_features=x)
    >>> by_chance.value < by_chance.null_q95, by_chance.interval[0]
    (True, 0.0)
    """
    rows = (y_true, y_pred, sensitive_features, sample_weight, pos_label)
    measured = fit_arguments(rows, kernel, relative, norm, conditional_on, subset, on, groups)
    if measured is None:
        return GediInference.undefined(n_resamples)
    kind = GediInference
    if on == "distribution":  # what chance gives there only permutations tell
        kind, method = CutsInference, "permutation"
    return kind(
        measured.indicator,
        measured.sample.target,
        measured.unit(relative),
        method=method,
        confidence=confidence,
        fitted=fitted,
        n_new=n_new,
        groups=measured.groups,
        n_resamples=n_resamples,
        random_state=random_state,
        warns=True,
    )


def _defined(resampled: np.ndarray) -> np.ndarray:
    """Return the values of the resamples that have one, with a warning where some have none."""
    defined = resampled[~np.isnan(resampled)]
    lost = len(resampled) - len(defined)
    reason = (
        f"method='bootstrap': {lost} of {len(resampled)} resamples do not determine the "
        "coefficients, e.g. since a rare value of sensitive_features is not among their rows"
    )
    if not len(defined):
        raise ValueError(f"{reason}. Use method='asymptotic', a lower degree, or more rows.")
    if lost:
        warn_caller(f"{reason}; the interval is that of the others. method='asymptotic' has none.")
    return defined
