r"""Linear relaxation over many groups: few rows, many columns, solved by sifting.

The optimum is determined by the multipliers λ of k + 1 rows or so, and at the right λ all but a
few columns sit at the bound that the sign of their reduced cost c − A'λ names. So: fix the columns
far from 0 at that bound, solve the linear program of the others, and look whether a fixed one
contradicts the new λ. If none does, the solution is optimal for all columns; those that do join
the next program. The first λ comes from random samples of growing size, each sifted from the λ of
the one before, whose error falls with the square root of its size.
"""

from __future__ import annotations

import numpy as np

from ..kernels import row_blocks
from ._highs import solve_continuous
from ._model import LinearModel

__all__ = ["GROWTH", "OPEN", "leverage", "solve_relaxation"]

# Columns that one linear program takes without sifting, and the smallest sample.
_DIRECT = 2000
# Size of a sample over that of the one before.
GROWTH = 8
# Sampling error of λ, in the share of columns whose sign it leaves open: OPEN / √(sample size).
OPEN = 8.0


def solve_relaxation(model: LinearModel) -> tuple[np.ndarray, np.ndarray] | None:
    """Solve a model without its integrality.

    Parameters
    ----------
    model : LinearModel
        The first `n_integers` columns are the many; the others take part in every program.

    Returns
    -------
    tuple of ndarray of shape (p,) and ndarray of shape (m,), or None
        A basic optimal solution and multipliers of the rows; None if infeasible.

    Raises
    ------
    SolverError
        If the solver of the small programs fails.
    """
    n = model.n_integers
    if n <= _DIRECT:
        return solve_continuous(model)
    shuffled = np.random.default_rng(0).permutation(n)
    size, previous, multipliers = _DIRECT, None, np.zeros(len(model.lower))
    while size < n:
        solved = _sift(_sample(model, shuffled[:size]), multipliers, previous)
        if solved is not None:
            multipliers, previous = solved[1], size
        size *= GROWTH
    return _sift(model, multipliers, previous)


def _sample(model: LinearModel, columns: np.ndarray) -> LinearModel:
    """Return the model of some of the many columns, in numbers that stand for all of them."""
    n = model.n_integers
    kept = np.r_[columns, np.arange(n, len(model.cost))]
    capacity = model.capacity[kept]
    capacity[: len(columns)] *= n / len(columns)
    return LinearModel(
        model.cost[kept],
        model.matrix[:, kept],
        model.lower,
        model.upper,
        capacity,
        len(columns),
    )


def _sift(
    model: LinearModel, multipliers: np.ndarray, sample_size: int | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Solve the relaxation from multipliers found on a sample of the given size."""
    n = model.n_integers
    if sample_size is None or n <= _DIRECT:
        return solve_continuous(model)
    reduced = model.reduced_cost(multipliers)
    n_open = min(n, max(_DIRECT, int(OPEN * n / np.sqrt(sample_size))))
    free = np.ones(len(model.cost), dtype=bool)
    free[:n] = _most_doubtful(model, reduced, n_open)
    at_capacity = reduced < 0
    # A column without a limit cannot be fixed there.
    free |= at_capacity & np.isinf(model.capacity)
    while True:
        fixed = at_capacity & ~free
        x = np.zeros(len(model.cost))
        x[fixed] = model.capacity[fixed]
        shift = model.matrix @ x
        solved = solve_continuous(
            LinearModel(
                model.cost[free],
                model.matrix[:, free],
                model.lower - shift,
                model.upper - shift,
                model.capacity[free],
                0,
            )
        )
        if solved is None:
            if free.all():
                return None
            # The columns left open cannot make up for those fixed wrongly: open as many again.
            closed = np.flatnonzero(~free)
            more = min(len(closed), int(free.sum()))
            free[closed[np.argsort(np.abs(reduced[closed]))[:more]]] = True
            continue
        x[free], multipliers = solved
        reduced = model.reduced_cost(multipliers)
        wrong = ~free & np.where(at_capacity, reduced > 0, reduced < 0)
        if not wrong.any():
            return x, multipliers
        free |= wrong


def _most_doubtful(model: LinearModel, reduced: np.ndarray, count: int) -> np.ndarray:
    """Mark so many of the n columns whose sign an error of λ turns most easily, shape (n,)."""
    n = model.n_integers
    doubt = leverage(model.matrix[:, :n])
    np.divide(np.abs(reduced[:n]), doubt, out=doubt)
    mark = np.zeros(n, dtype=bool)
    mark[np.argpartition(doubt, count - 1)[:count]] = True
    return mark


def leverage(columns: np.ndarray) -> np.ndarray:
    """Return √(a'(AA')⁻¹a) for every column a, shape (n,): how far an error of λ moves its r.

    A sample's λ errs in proportion to (AA')⁻¹; a column in the tails turns its sign more easily,
    and only such columns can restore the rows of high powers.
    """
    if not len(columns):
        return np.ones(columns.shape[1])
    scale = np.sqrt(np.einsum("ij,ij->i", columns, columns))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(columns @ columns.T / np.outer(scale, scale))
    kept = values > values[-1] * 1e-10
    whitening = (vectors[:, kept] / np.sqrt(values[kept])).T / scale
    doubt = np.empty(columns.shape[1])
    for block in row_blocks(len(doubt)):
        whitened = whitening @ columns[:, block]
        doubt[block] = np.sqrt((whitened**2).sum(axis=0))
    return doubt
