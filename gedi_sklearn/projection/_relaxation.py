r"""Linear relaxation over many columns or groups: few rows, solved by sifting.

The optimum is determined by the multipliers λ of k + 1 rows or so, and at the right λ all but a
few columns stand where their reduced cost puts them: a column of a bounded variable at one of its
ends, the rows of a group in the class that is cheapest. So: fix what is far from a tie, solve the
linear program of the others, and look whether something fixed contradicts the new λ. If nothing
does, the solution is optimal for all; what does joins the next program. The first λ comes from
random samples of growing size, each sifted from the λ of the one before, whose error falls with
the square root of its size.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._deadline import Deadline
from ..constraints import Product
from ..kernels import row_blocks
from ._groups import Groups
from ._highs import solve_continuous
from ._linear_model import LinearModel, set_model

# Size of a sample over that of the one before.
_GROWTH = 8
# Sampling error of λ, in the share of columns whose choice it leaves open: OPEN / √(sample size).
_OPEN = 8.0


def solve_relaxation(
    program: BoundedColumns | Assignment,
    deadline: Deadline,
    start: np.ndarray | None = None,
    *,
    is_optimal: bool = False,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Solve a program of many choices.

    Parameters
    ----------
    program : BoundedColumns or Assignment
        The program: it samples its choices, makes them at given multipliers, and solves itself with
        all but some of them fixed.
    deadline : Deadline
        When to end.
    start : ndarray, default=None
        Multipliers near to the optimal ones; None finds some by samples.
    is_optimal : bool, default=False
        Whether these are the optimal ones: the solution is then the best one with all but the
        choices nearest to a tie as they make them.

    Returns
    -------
    tuple of ndarray and ndarray, or None
        A basic optimal solution and its multipliers; None if infeasible.

    Raises
    ------
    SolverError
        If the solver of the small programs fails.
    TimeoutError
        If the deadline comes first.
    """
    n, multipliers = program.n, np.zeros(program.n_multipliers)
    if start is not None:
        return _sift(program, start, n, deadline, is_optimal=is_optimal)
    shuffled = np.random.default_rng(0).permutation(n)
    size, previous = program.direct, None
    while size < n:
        solved = _sift(program.sample(shuffled[:size]), multipliers, previous, deadline)
        if solved is not None:
            multipliers, previous = solved[1], size
        size *= _GROWTH
    return _sift(program, multipliers, previous, deadline)


def _sift(
    program: BoundedColumns | Assignment,
    multipliers: np.ndarray,
    sample_size: int | None,
    deadline: Deadline,
    *,
    is_optimal: bool = False,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Solve a program from the multipliers of a sample of the given size."""
    n = program.n
    choice, distance = program.choose(multipliers)
    if sample_size is None or n <= program.direct:
        return program.solve(slice(None), choice, deadline)
    n_open = min(n, max(program.direct, int(_OPEN * n / np.sqrt(sample_size))))
    turns_at = leverage(program.effects())
    with np.errstate(divide="ignore", invalid="ignore"):
        np.divide(distance, turns_at, out=turns_at)
    free = np.zeros(n, dtype=bool)
    free[np.argpartition(turns_at, n_open - 1)[:n_open]] = True
    del turns_at  # of a million rows every array counts
    while True:
        solved = program.solve(free, choice, deadline)
        if solved is None:
            if free.all():
                return None
            # Those left open cannot make up for those fixed wrongly: open as many again.
            closed = np.flatnonzero(~free)
            more = min(len(closed), int(free.sum()))
            free[closed[np.argsort(distance[closed])[:more]]] = True
            continue
        if is_optimal:
            return solved
        now, distance = program.choose(solved[1])
        wrong = ~free & (now != choice)
        if not wrong.any():
            return solved
        free |= wrong
        del solved, now, wrong


class BoundedColumns:
    """A linear model whose many variables are at one of two ends: 0, or their upper bound.

    Parameters
    ----------
    model : LinearModel
        The first `n_integers` columns are the many; the others take part in every program.
    """

    # What one linear program takes without sifting, and the smallest sample.
    direct = 2000

    def __init__(self, model: LinearModel) -> None:
        self.model = model

    @property
    def n(self) -> int:
        return self.model.n_integers

    @property
    def n_multipliers(self) -> int:
        return len(self.model.lower)

    def sample(self, chosen: np.ndarray) -> BoundedColumns:
        model = self.model
        kept = np.r_[chosen, np.arange(self.n, len(model.cost))]
        upper_bound = model.upper_bound[kept]
        upper_bound[: len(chosen)] *= self.n / len(chosen)
        return BoundedColumns(
            LinearModel(
                model.cost[kept],
                model.matrix[:, kept],
                model.lower,
                model.upper,
                upper_bound,
                len(chosen),
            )
        )

    def choose(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        reduced = self.model.reduced_cost(multipliers)[: self.n]
        choice = reduced < 0
        return choice, np.abs(reduced, out=reduced)

    def effects(self) -> np.ndarray:
        return self.model.matrix[:, : self.n]

    def solve(
        self, free: np.ndarray | slice, choice: np.ndarray, deadline: Deadline
    ) -> tuple[np.ndarray, np.ndarray] | None:
        model = self.model
        if isinstance(free, slice):
            return solve_continuous(model, deadline)
        opened = np.ones(len(model.cost), dtype=bool)
        # A column without a limit cannot be fixed there.
        opened[: self.n] = free | (choice & np.isinf(model.upper_bound[: self.n]))
        x = np.zeros(len(model.cost))
        x[: self.n][choice] = model.upper_bound[: self.n][choice]
        x[opened] = 0.0
        shift = model.matrix @ x
        solved = solve_continuous(
            LinearModel(
                model.cost[opened],
                model.matrix[:, opened],
                model.lower - shift,
                model.upper - shift,
                model.upper_bound[opened],
                0,
            ),
            deadline,
        )
        if solved is None:
            return None
        x[opened] = solved[0]
        return x, solved[1]


class Assignment:
    r"""Rows of groups in one of several classes each.

    Parameters
    ----------
    groups : Groups
        The groups, with a column per class.
    allowed : Product
        The sets of v.
    """

    direct = 1000

    def __init__(self, groups: Groups, allowed: Product) -> None:
        self.groups, self.allowed = groups, allowed

    @property
    def n(self) -> int:
        return self.groups.n

    @property
    def n_multipliers(self) -> int:
        return len(self.groups.image.row)

    def sample(self, chosen: np.ndarray) -> Assignment:
        groups = self.groups
        drawn = groups.take(chosen, groups.size[chosen] * (self.n / len(chosen)))
        # The effects of all rows sum to 0, and with them the v of all classes: those of a sample
        # have to as well, or narrow sets around 0 exclude each other.
        mean = drawn.matrix @ drawn.size / drawn.size.sum()
        drawn.matrix[:] -= mean[:, None]
        return Assignment(drawn, self.allowed)

    def choose(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.groups.choose(multipliers)

    def effects(self) -> np.ndarray:
        return self.groups.scaled_effects

    def solve(
        self, free: np.ndarray | slice, choice: np.ndarray, deadline: Deadline
    ) -> tuple[np.ndarray, np.ndarray] | None:
        groups = self.groups
        opened = np.arange(groups.n)[free]
        columns = np.arange(groups.n_columns)
        counts = np.where(columns == choice[:, None], groups.size[:, None], 0.0)
        counts[opened] = 0.0
        own = groups.take(opened, groups.size[opened])
        fixed, none = groups.v(counts), np.zeros(len(columns))
        solved = solve_continuous(self.model(own, fixed, none, self.allowed), deadline)
        if solved is None:
            return None
        counts[opened] = solved[0][: own.cost.size].reshape(-1, len(columns))
        multipliers = solved[1][: self.n_multipliers] / groups.scale[groups.image.row]
        return counts, multipliers

    @staticmethod
    def model(
        groups: Groups, fixed: np.ndarray, least: np.ndarray, allowed: Product
    ) -> LinearModel:
        r"""Return the model of some groups, given the v of the others, in sets of v.

        Variables: the counts of every group by class, then the auxiliary ones w of the sets::

            min C·x   s.t.  lower ≤ E x_c + f + D w ≤ upper,   S w ≤ 1
                            Σ_g x_gc ≥ least_c            (every class keeps a row)
                            Σ_c x_gc = size_g
        """
        g, k = groups.cost.shape
        image = groups.image
        # Row i of v: the effects of row a_i of E, on the columns of class b_i, every k-th one.
        effects = groups.scaled_effects[image.row]
        columns = (np.arange(g) * k)[None, :] + image.column[:, None]
        rows = sp.csr_array(
            (effects.ravel(), columns.ravel(), np.arange(len(effects) + 1) * g),
            shape=(len(effects), g * k),
        )
        classes, groups_of = sp.csr_array(np.tile(np.eye(k), g)), np.repeat(np.arange(g), k)
        one_class = sp.csr_array((np.ones(g * k), (groups_of, np.arange(g * k))))
        return set_model(
            allowed,
            groups.cost.ravel(),
            rows,
            np.repeat(groups.size, k).astype(float),
            fixed=fixed,
            scale=groups.scale[image.row],
            others=(
                sp.vstack([classes, one_class]),
                np.r_[least, groups.size],
                np.r_[np.full(k, np.inf), groups.size],
            ),
        )


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
    found = np.empty(columns.shape[1])
    for block in row_blocks(len(found)):
        whitened = whitening @ columns[:, block]
        found[block] = np.sqrt((whitened**2).sum(axis=0))
    return found
