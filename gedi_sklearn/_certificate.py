r"""Certificates: a bound that predictions of new rows keep with a stated confidence.

A correction that meets its bound exactly on some rows exceeds it on new ones about every second
time. A certificate is issued for a stricter correction, whose upper confidence limit is within the
bound. How strict it has to be is found on the same rows, in one of two ways:

- Where the correction is a function of the attribute, real targets miss their true indicator by the
  same error at every level. Whether the limit holds does not depend on the level, which bisection
  finds.
- Otherwise levels are tested one after another, the strictest first, up to the first that fails.
  Such a fixed sequence of tests is wrong with the probability of one of them (Westfall and Krishen
  2001), since the first bad level is to pass its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ._verdict import InWords
from .constraints import FittedConstraint, FittedCuts
from .exceptions import CertificateNotIssuedWarning, warn_caller
from .metrics import lonely_place

# Shares of the bound that are tested, the strictest first. At 0 whole labels meet no bound.
_LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_BISECTIONS = 20
_ASSUMPTION = (
    "{}, new rows are drawn like the training rows, and models fitted on parts of these are no "
    "better than the final one"
)


@dataclass(frozen=True)
class Certificate(InWords):
    """A bound promised for new rows, and what it is based on; ``str()`` puts it in words.

    Of several constraints, which hold together, the numbers are those of the one that comes nearest
    to its bound.

    Attributes
    ----------
    bound : float
        The bound that is promised: the absolute threshold.
    upper : float
        The upper confidence limit of the indicator, of predictions whose model and correction have
        not seen the row; at most `bound`.
    confidence : float
        Probability with which the promise holds for a sample of rows like these.
    threshold : float
        The stricter threshold that the predictions are corrected to.
    n_rows : int
        Rows of positive weight that it rests on.
    n_folds : int
        Folds of these rows, each corrected as the others ask for; 0 where all rows together gave
        the correction.
    assumption : str
        What new rows are taken to be.
    few : str
        Which few rows the limit rests on, where it does; "" elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, ProjectedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=1000)
    >>> model = ProjectedRegressor(
    ...     None, CoarseConstraint(0.5), sensitive_columns=0, confidence=0.95
    ... ).fit(X, y)
    >>> model.certificate_.upper <= model.certificate_.bound
    True
    """

    bound: float
    upper: float
    confidence: float
    threshold: float
    n_rows: int
    n_folds: int
    assumption: str
    few: str = ""

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "promised", f"at most {self.bound:.4g} with {self.confidence:.0%} confidence"
        yield "upper limit found", f"{self.upper:.4g}"
        yield "corrected to", f"{self.threshold:.4g}"
        folds = f"in {self.n_folds} folds" if self.n_folds else "that the correction has seen"
        yield "rests on", f"{self.n_rows} rows {folds}"
        if self.few:
            yield "few rows", self.few
        yield "assumed", self.assumption


class _Limit(NamedTuple):
    """An upper limit over its bound, of the constraint that comes nearest to it."""

    ratio: float
    upper: float
    bound: float
    few: str


def issue_certificate(
    constraint: FittedConstraint | FittedCuts,
    corrected: Callable[[float], np.ndarray | None],
    confidence: float,
    *,
    is_one_event: bool,
    n_folds: int,
    groups: np.ndarray | None = None,
) -> tuple[Certificate | None, float]:
    """Find the loosest correction whose upper limit is within the bound.

    Parameters
    ----------
    constraint : FittedConstraint
        The constraint on the rows of positive weight.
    corrected : callable
        Takes a share of the bound, and returns predictions (n,) for these rows that are corrected
        to it, classes as 0…K − 1, by a model and a correction that have not seen the row. None
        where that cannot be done.
    confidence : float
        Probability with which the promise holds.
    is_one_event : bool
        Whether predictions miss their true indicator by the same error at all levels: where the
        correction adds a function of the attribute, in the span of the kernel, to real targets.
    n_folds : int
        Number of folds behind the predictions, which the certificate states.
    groups : ndarray of shape (n,), default=None
        Clusters of the rows; None if rows are taken as independent, as it then states.

    Returns
    -------
    certificate : Certificate or None
        What is promised.
    share : float
        The share of the bound that predictions have to be corrected to; 1 without a certificate.

    Raises
    ------
    ValueError
        If a bound is 0.

    Warns
    -----
    CertificateNotIssuedWarning
        If even the strictest correction has an upper limit beyond the bound.
    """
    parts = [part for part in constraint.parts if part.bounds_anything]
    empty: dict[float, str] = {}
    if not parts:
        return None, 1.0
    if any((part.allowed.limits == 0).any() for part in parts):
        raise ValueError(
            f"confidence={confidence}: an upper limit is never 0, so a bound of 0 cannot be "
            "promised (threshold=0, or a coefficient that a FineConstraint forbids). Use "
            "CoarseConstraint with a positive threshold, or confidence=None."
        )
    lonely = next(filter(None, (lonely_place(part.design, groups) for part in parts)), "")
    if lonely:
        failed = _Limit(np.inf, np.inf, np.nan, lonely)
        warn_caller(CertificateNotIssuedWarning.from_limit(confidence, *failed))
        return None, 1.0
    own_confidence = 1 - (1 - confidence) / len(parts)

    def limit(share: float) -> _Limit | None:
        predictions = corrected(share)
        if predictions is None:
            return None
        empty[share] = constraint.emptiness(predictions)
        columns, found = constraint.columns(predictions), []
        for part in parts:
            upper, few = part.upper_limits(columns, own_confidence, groups)
            limits = part.allowed.limits
            # Without a degree of freedom there is no limit.
            ratios = np.where(np.isnan(upper), np.inf, upper / limits)
            worst = int(ratios.argmax())
            worst_of = float(ratios[worst]), float(upper[worst]), float(limits[worst])
            found.append(_Limit(*worst_of, few))
        return max(found)

    search = _bisect if is_one_event else _in_sequence
    share, found = search(limit)
    if words := empty.get(share):
        warn_caller(CertificateNotIssuedWarning.from_labels(confidence, words))
        return None, 1.0
    if found is None or found.ratio > 1:
        warn_caller(
            CertificateNotIssuedWarning.from_limit(
                confidence, *(found or _Limit(np.inf, np.inf, np.nan, ""))
            )
        )
        return None, 1.0
    certificate = Certificate(
        bound=found.bound,
        upper=found.upper,
        confidence=confidence,
        threshold=share * found.bound,
        n_rows=len(constraint.weight),
        n_folds=n_folds,
        assumption=_ASSUMPTION.format(
            "rows are independent"
            if groups is None
            else f"the {len(np.unique(groups))} groups of rows are independent"
        ),
        few=found.few,
    )
    return certificate, share


def _in_sequence(limit: Callable[[float], _Limit | None]) -> tuple[float, _Limit | None]:
    """Return the last level before the first that fails, or else the strictest, with its limit."""
    last: tuple[float, _Limit | None] = (0.0, None)
    for share in _LEVELS:
        found = limit(share)
        if found is None:
            # A correction this strict does not exist.
            continue
        if last[1] is None or found.ratio <= 1:
            last = (share, found)
        if found.ratio > 1:
            break
    return last


def _bisect(limit: Callable[[float], _Limit | None]) -> tuple[float, _Limit | None]:
    """Return the largest share whose limit is within the bound, or else 0, with its limit."""
    loosest = limit(1.0)
    if loosest is None or loosest.ratio <= 1:
        return 1.0, loosest
    low, found, high = 0.0, limit(0.0), 1.0
    if found is None or found.ratio > 1:
        return low, found
    for _ in range(_BISECTIONS):
        share = (low + high) / 2
        tried = limit(share)
        if tried is not None and tried.ratio <= 1:
            low, found = share, tried
        else:
            high = share
    return low, found
