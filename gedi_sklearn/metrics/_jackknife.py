"""Upper limits of what only sums are left of, by the jackknife over parts of the rows."""

from __future__ import annotations

import numpy as np

from ..kernels import KernelSums, MomentDesign
from ._sampling import error_quantile, farthest, limit_of_lacking_rows


def jackknife_limit(
    sums: KernelSums, z: np.ndarray, norm: str, confidence: float, *, simultaneous: bool
) -> float | None:
    """Return an upper confidence limit of an indicator.

    Parameters
    ----------
    sums : KernelSums
        The sums, part by part.
    z : ndarray of shape (t,)
        The target, by its shares in those that were summed up.
    norm : {"l1", "sd"}
        The norm.
    confidence : float
        Confidence.
    simultaneous : bool
        Whether the target was fitted on these rows; see :func:`error_quantile`.

    Returns
    -------
    float or None
        None where there are no more parts with rows than columns and the constant.
    """
    parts = np.flatnonzero(sums.products[:, 0, 0]).tolist()
    if len(parts) <= sums.fitted.n_columns + 1:
        return None
    whole = sums.design()
    without = [sums.design(without=part) for part in parts]
    if norm == "l1":
        v = whole.coefficients(z)
        jackknife = np.array([design.coefficients(z) for design in without])
    else:
        v = whole.coordinates(z)
        jackknife = np.array([_turned(design, whole, z) for design in without])
    errors = jackknife - jackknife.mean(axis=0)
    covariance = (len(parts) - 1) / len(parts) * errors.T @ errors
    t = error_quantile(covariance, norm, confidence, len(parts) - 1, simultaneous=simultaneous)
    limit = float(farthest(v, covariance, norm, t)[0])
    if norm == "l1":
        return limit
    ends, weight = sums.ends
    q, share = whole.fitted.orthonormal_columns(ends), weight / whole.total
    leverage = share * (1 + np.square(q).sum(axis=1))
    return max(limit, limit_of_lacking_rows(v, q, share, leverage, confidence))


def _turned(design: MomentDesign, whole: MomentDesign, z: np.ndarray) -> np.ndarray:
    """Return G^(−1/2) E[Qz], G = E[QQ'], on the rows of a design; Q is orthonormal on all rows."""
    to_whole = np.linalg.solve(whole.fitted.R_.T, design.fitted.R_.T)
    values, vectors = np.linalg.eigh(to_whole @ to_whole.T)
    return (vectors / np.sqrt(values)) @ vectors.T @ to_whole @ design.coordinates(z)
