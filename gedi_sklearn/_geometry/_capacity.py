"""The largest gauge that a column of zeros and ones can have, however they are arranged."""

from __future__ import annotations

from itertools import product

import numpy as np

from ._block import Block

# Up to this many terms all patterns of signs are tried; of more columns nothing is computed.
_MOST_SIGNS, _MOST_COLUMNS = 6, 64


def capacity(block: Block, columns: np.ndarray) -> np.ndarray:
    r"""Return an upper bound of the gauges of labels as rare as given ones.

    In a direction s of v = A c a row adds :math:`w_i\, s \cdot A q_i`, its pull. Of m ones the
    m largest pulls are the most, and as Q'W1 = 0 those of m zeros are the same. The largest s is
    found among the patterns of signs of an L1 norm of few terms. Other norms are at most the sum
    of the m largest norms of pulls, and a deviation at most that of the labels,
    :math:`\sqrt{p (1 - p)}`.

    Parameters
    ----------
    block : Block
        The block, on the rows.
    columns : ndarray of shape (n, C)
        All columns of the targets, those of the block of zeros and ones.

    Returns
    -------
    ndarray of shape (c,)
        One number for each limit, the sum over the columns that it bounds together; infinite for
        kernels of many columns.
    """
    design, norm, own = block.design, block.allowed.norm, block.of(columns)
    size = len(block.allowed.limits)
    if block.size > _MOST_COLUMNS:
        return np.full(size, np.inf)
    share = np.broadcast_to(design.shares(slice(None)), design.n_rows)
    pulls = share[:, None] * (design.orthonormal @ block.operator.T)
    found = [_of_one(pulls, share, norm, min(m, len(own) - m)) for m in own.sum(axis=0).astype(int)]
    return np.concatenate(found) if norm == "each" else np.sum(found, axis=0)


def _of_one(pulls: np.ndarray, share: np.ndarray, norm: str, m: int) -> np.ndarray:
    """Return the numbers of one column with m labels of the rarer kind."""
    if norm == "sd":
        p = min(_largest(share, m), 0.5)
        return np.array([min(np.sqrt(p * (1 - p)), _largest(np.linalg.norm(pulls, axis=1), m))])
    if norm == "l1" and pulls.shape[1] > _MOST_SIGNS:
        return np.array([_largest(np.abs(pulls).sum(axis=1), m)])
    directions = np.eye(pulls.shape[1])
    if norm == "l1":
        directions = np.array(list(product((1.0, -1.0), repeat=pulls.shape[1])))
    along = [pulls @ direction for direction in directions]
    both = np.array([max(_largest(own, m), _largest(-own, m)) for own in along])
    return both if norm == "each" else both.max(keepdims=True)


def _largest(values: np.ndarray, m: int) -> float:
    """Return the sum of the m largest values."""
    return float(np.partition(values, len(values) - m)[len(values) - m :].sum()) if m else 0.0
