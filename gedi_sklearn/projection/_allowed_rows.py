"""Allowed sets as rows of a linear model: a box as ranges of v, a ball through v⁺ and v⁻.

The rows of v are scaled, as those of every model. What the variables of a model add to v is the
business of its own module; here is what the sets demand of v, and the columns that takes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..constraints import AllowedSet
from ._bound import VIOLATION_TOLERANCE, AllowedProduct

__all__ = ["auxiliary_columns", "row_ranges", "with_interior"]


def with_interior(allowed: AllowedSet) -> AllowedSet:
    """Give the ball of radius 0 the width of the tolerance: integers need an interior."""
    if allowed.radius != 0:
        return allowed
    width = 0.5 * VIOLATION_TOLERANCE * allowed.unit / max(len(allowed.rows), 1)
    return replace(allowed, radius=None, bounds=np.full(len(allowed.rows), width))


def row_ranges(
    allowed: AllowedProduct, fixed: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper ends of the rows v / scale = A x, given what v has besides, f.

    It is −b ≤ A x + f ≤ b in a box; in a ball A x + f = q(v⁺ − v⁻), with the right-hand side on
    the left.

    Parameters
    ----------
    allowed : AllowedProduct
        The sets.
    fixed : ndarray of shape (r,)
        f, not scaled.
    scale : ndarray of shape (r,)
        What every row is divided by.

    Returns
    -------
    lower, upper : ndarray of shape (r,)
    """
    shift = fixed / scale
    lower, upper = -shift, -shift.copy()
    for part, own in allowed.split(np.arange(len(scale))):
        if part.bounds is not None:
            lower[own] -= part.bounds / scale[own]
            upper[own] += part.bounds / scale[own]
    return lower, upper


def auxiliary_columns(allowed: AllowedProduct) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of v⁺ and v⁻ in the rows of v, and in a row Σ(v⁺ + v⁻) ≤ 1 for each ball.

    They are in units of the ball's radius; v⁺ of a ball come first, then its v⁻.

    Parameters
    ----------
    allowed : AllowedProduct
        The sets.

    Returns
    -------
    in_v : ndarray of shape (r, a)
        Not scaled.
    in_sums : ndarray of shape (balls, a)
    """
    n_rows = sum(len(part.rows) for part in allowed.parts)
    balls = [
        (own, part.radius or 0.0)
        for part, own in allowed.split(np.arange(n_rows))
        if part.bounds is None
    ]
    n_auxiliary = 2 * sum(len(own) for own, _ in balls)
    in_v, in_sums = np.zeros((n_rows, n_auxiliary)), np.zeros((len(balls), n_auxiliary))
    column = 0
    for ball, (own, radius) in enumerate(balls):
        for sign in (-1.0, 1.0):
            auxiliary = column + np.arange(len(own))
            in_v[own, auxiliary] = sign * radius
            in_sums[ball, auxiliary] = 1
            column += len(own)
    return in_v, in_sums
