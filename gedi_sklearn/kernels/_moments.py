"""Weighted moments and monomials, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from math import comb

import numpy as np

# Rows per block: large enough for BLAS, small enough for the cache.
BLOCK = 8192
# Of sums of products, where calls cost as much as thousands of rows: eight columns are a megabyte.
# No power of 2, at which the cache keeps all columns in one place.
_PRODUCT_BLOCK = 16_000
# Columns that BLAS multiplies with a vector at a time: one more takes as long as four.
_BLAS_COLUMNS = 4


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
    write_columns: Callable[[slice, np.ndarray], object],
    n_rows: int,
    targets: Sequence[np.ndarray],
    weights: Sequence[np.ndarray | None],
    *,
    origin: np.ndarray,
    n_columns: int,
    are_powers: bool,
    n_parts: int = 1,
) -> np.ndarray:
    """Return the sums of w a a' over rows, a = (1, columns, targets − origin).

    Parameters
    ----------
    write_columns : callable
        Writes the columns of some rows into its second argument, (k, n).
    n_rows : int
        Number of rows.
    targets : sequence of ndarray of shape (n,)
        The targets.
    weights : sequence of ndarray of shape (n,) or None
        Each w that sums are taken with; None where all are 1.
    origin : ndarray of shape (t,)
        What is subtracted from each target.
    n_columns : int
        Number of columns k.
    are_powers : bool
        Whether column j is the j-th power of the first: their products are powers, and those with
        the first and the last one are enough.
    n_parts : int, default=1
        Number of parts, runs of about as many rows, that have sums of their own.

    Returns
    -------
    ndarray of shape (n_parts, len(weights), 1 + k + t, 1 + k + t)
    """
    k, d = n_columns, 1 + n_columns + len(targets)
    # With 1 as the first column, and zeros as the last ones.
    block = np.empty((_rounded(d), min(n_rows, _PRODUCT_BLOCK)))
    block[0], block[d:] = 1.0, 0.0
    few, beside = _rounded(k - 1), k if are_powers else 0
    # The sums of w, of w a a₁ and of w a aⱼ for the columns j from `beside` on: apart, since a
    # matrix of all these columns would take half as long again.
    totals = np.zeros((len(weights), n_parts))
    of_first = np.zeros((len(weights), n_parts, few, 1))
    of_others = np.zeros((len(weights), n_parts, len(block), d - beside))
    for rows, parts in _runs(n_rows, n_parts):
        used, n_runs = block[:, : rows.stop - rows.start], parts.stop - parts.start
        write_columns(rows, used[1 : k + 1])
        for column, target, zero in zip(used[k + 1 :], targets, origin, strict=False):
            np.subtract(target[rows], zero, out=column)
        by_run = used.reshape(len(used), n_runs, -1)
        left = by_run.swapaxes(0, 1)
        first, others = by_run[1:2], by_run[beside:d]
        for j, weight in enumerate(weights):
            own = None if weight is None else weight[rows].reshape(n_runs, -1)
            of_others[j, parts] += left @ _weighted(others, own).transpose(1, 2, 0)
            if are_powers:
                of_first[j, parts] += left[:, :few] @ _weighted(first, own).transpose(1, 2, 0)
                totals[j, parts] += by_run.shape[2] if own is None else own.sum(axis=1)
    sums = np.zeros((n_parts, len(weights), d, d))
    sums[..., beside:] = of_others[:, :, :d].swapaxes(0, 1)
    if are_powers:
        found = [totals[..., None], of_first[..., : k - 1, 0], of_others[..., : k + 1, 0]]
        powers = np.concatenate(found, axis=-1).swapaxes(0, 1)
        sums[..., : k + 1, : k + 1] = powers[..., np.add.outer(np.arange(k + 1), np.arange(k + 1))]
        sums[..., k + 1 :, : k + 1] = np.swapaxes(sums[..., : k + 1, k + 1 :], -1, -2)
    return sums


def _weighted(columns: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return columns if weight is None else columns * weight


def _rounded(n_columns: int) -> int:
    """Return a number of columns, rounded up to those that BLAS takes at a time."""
    return -(-n_columns // _BLAS_COLUMNS) * _BLAS_COLUMNS


def _runs(n_rows: int, n_parts: int) -> Iterator[tuple[slice, slice]]:
    """Yield slices of rows and of parts: rows of one part, or several parts of as many rows."""
    start, part = 0, 0
    shorter, n_longer = divmod(n_rows, n_parts)
    for n_left, size in ((n_longer, shorter + 1), (n_parts - n_longer, shorter)):
        while n_left and size:
            n_runs = min(max(_PRODUCT_BLOCK // size, 1), n_left)
            stop = start + n_runs * size
            for begin in range(start, stop, _PRODUCT_BLOCK):
                yield slice(begin, min(begin + _PRODUCT_BLOCK, stop)), slice(part, part + n_runs)
            start, part, n_left = stop, part + n_runs, n_left - n_runs


def list_monomials(n_attributes: int, degree: int) -> np.ndarray:
    """Return the exponents of all monomials of degree 1…degree, lower degrees first."""
    if n_attributes == 1:
        return np.arange(1, degree + 1)[:, None]
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


def fill_powers(columns: np.ndarray) -> np.ndarray:
    """Fill the columns with powers of the first one; see :func:`fill_monomials`."""
    powers = list(columns)
    for j in range(1, len(powers)):
        if j % 2:  # a square reads one column, a product two
            np.square(powers[j // 2], out=powers[j])
        else:
            np.multiply(powers[j - 1], powers[0], out=powers[j])
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
