"""Weighted moments and monomials, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from math import comb

import numpy as np

# Rows per block: large enough for BLAS, small enough for the cache.
BLOCK = 8192


def weighted_moments(
    values: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted mean and population deviation of each column; a deviation of 0 becomes 1."""
    total = len(values) if weight is None else weight.sum()
    mean = (values.sum(axis=0) if weight is None else weight @ values) / total
    square = np.zeros(values.shape[1])
    for rows in row_blocks(len(values)):
        centred = values[rows] - mean
        weighted = centred if weight is None else centred * weight[rows, None]
        square += np.einsum("ij,ij->j", weighted, centred)
    deviation = np.sqrt(square / total)
    # A constant column leaves rounding noise of about eps·|mean|, which is no deviation.
    constant = deviation <= 4 * np.finfo(float).eps * np.abs(mean)
    return mean, np.where(constant | (deviation == 0), 1.0, deviation)


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Yield slices that cover the rows."""
    for start in range(0, n_rows, BLOCK):
        yield slice(start, start + BLOCK)


def sum_products(
    columns_of: Callable[[np.ndarray, np.ndarray], object],
    values: np.ndarray,
    targets: Sequence[np.ndarray],
    weight: np.ndarray | None,
    *,
    origin: np.ndarray,
    n_columns: int,
    are_powers: bool,
    buffer: np.ndarray | None = None,
) -> np.ndarray:
    """Return the sum of w a a' over rows, a = (1, columns, targets − origin).

    Parameters
    ----------
    columns_of : callable
        Writes the columns of some values into its second argument, (k, n).
    values : ndarray of shape (n, m)
        What the columns depend on.
    targets : sequence of ndarray of shape (n,)
        The targets.
    weight : ndarray of shape (n,) or None
        Weights; None where all are 1.
    origin : ndarray of shape (t,)
        What is subtracted from each target.
    n_columns : int
        Number of columns k.
    are_powers : bool
        Whether column j is the j-th power of the first: their products are powers, and those with
        1 and with the last one are enough.
    buffer : ndarray of shape (1 + k + t, BLOCK), default=None
        Memory to work in; fresh memory for every few rows takes longer than the sums.

    Returns
    -------
    ndarray of shape (1 + k + t, 1 + k + t)
    """
    k, t = n_columns, len(targets)
    left = np.empty((k + 1 + t, BLOCK)) if buffer is None else buffer
    left[k] = 1.0
    right = slice(k - 1, None) if are_powers else slice(None)
    total = np.zeros((k + 1 + t, len(left[right])))
    for rows in row_blocks(len(values)):
        block = left[:, : len(values[rows])]
        columns_of(values[rows], block[:k])
        for row, target, zero in zip(block[k + 1 :], targets, origin, strict=False):
            np.subtract(target[rows], zero, out=row)
        factor = block[right] if weight is None else block[right] * weight[rows]
        total += block @ factor.T
    order = [k, *range(k), *range(k + 1, k + 1 + t)]
    if not are_powers:
        return total[np.ix_(order, order)]
    powers = np.r_[total[k, 1], total[:k, 1], total[:k, 0]]
    with_targets = total[order, 2:]
    products = np.empty((k + 1 + t, k + 1 + t))
    products[: k + 1, : k + 1] = powers[np.add.outer(np.arange(k + 1), np.arange(k + 1))]
    products[:, k + 1 :], products[k + 1 :] = with_targets, with_targets.T
    return products


def list_monomials(n_attributes: int, degree: int) -> np.ndarray:
    """Return the exponents of all monomials of degree 1…degree, lower degrees first."""
    terms = [
        np.bincount(factors, minlength=n_attributes)
        for total in range(1, degree + 1)
        for factors in combinations_with_replacement(range(n_attributes), total)
    ]
    return np.asarray(terms)


def monomial_factors(powers: np.ndarray) -> list[tuple[int, int]]:
    """Return for each monomial an earlier one (−1: the constant) and the attribute it lacks."""
    position = {tuple(row): j for j, row in enumerate(powers.tolist())}
    factors = []
    for row in powers.tolist():
        attribute = next(c for c, power in enumerate(row) if power)
        row[attribute] -= 1
        factors.append((position.get(tuple(row), -1), attribute))
    return factors


def fill_monomials(columns: np.ndarray, factors: list[tuple[int, int]]) -> np.ndarray:
    """Fill the columns of :func:`monomial_factors`, each one product from an earlier one.

    Parameters
    ----------
    columns : ndarray of shape (k, n)
        One column after the other in memory; the first m hold the attributes, the first monomials.
    factors : list of (int, int)
        What each is a product of.

    Returns
    -------
    ndarray of shape (n, k)
        The same memory.
    """
    for column, (parent, attribute) in zip(columns, factors, strict=True):
        if parent >= 0:
            np.multiply(columns[parent], columns[attribute], out=column)
    return columns.T


def expansion(powers: np.ndarray, shift: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return E such that monomial j of scale·v + shift is Σ_i E[i, j] · (monomial i of v) + const.

    Upper triangular, since a monomial expands into its divisors only.
    """
    k = len(powers)
    if powers.shape[1] == 1:
        return _checked_expansion(_expansion_of_powers(k, shift[0], scale[0]), k)
    expansion = np.zeros((k, k))
    for j, target in enumerate(powers):
        # A divisor can have an exponent other than 0 only where the monomial has one.
        present = np.flatnonzero(target)
        for i in np.flatnonzero((powers[: j + 1] <= target).all(axis=1)):
            given = (powers[i, present], target[present], shift[present], scale[present])
            with np.errstate(over="ignore", invalid="ignore"):
                expansion[i, j] = np.prod(
                    [
                        float(comb(int(t), int(s))) * m ** int(t - s) * d ** int(s)
                        for s, t, m, d in zip(*given, strict=True)
                    ]
                )
    return _checked_expansion(expansion, int(powers.sum(axis=1).max()))


def _expansion_of_powers(k: int, shift: float, scale: float) -> np.ndarray:
    """Return the expansion of the powers 1…k of one attribute."""
    exponents = np.arange(1, k + 1)
    missing = exponents - exponents[:, None]
    binomials = np.array([[float(comb(j, i)) for j in exponents.tolist()] for i in exponents])
    with np.errstate(over="ignore", invalid="ignore"):
        terms = binomials * shift ** np.maximum(missing, 0)
        return np.where(missing >= 0, terms * scale ** exponents[:, None], 0.0)


def _checked_expansion(expansion: np.ndarray, degree: int) -> np.ndarray:
    if not (np.isfinite(expansion).all() and expansion.diagonal().all()):
        raise ValueError(
            f"powers of sensitive_features up to degree {degree} leave the "
            "range of floats. Use another unit, or PolynomialKernel(degree, standardize=True)."
        )
    return expansion
