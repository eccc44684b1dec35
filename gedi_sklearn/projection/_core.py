"""Some columns of groups, to which rows may move, while all else stands in its base."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._deadline import Deadline
from ..constraints import Product
from ._groups import Groups
from ._linear_model import LinearModel, SolverSession

# Seconds to look for the least slack with a solution.
_SLACK_SECONDS = 10.0


class Core:
    """The linear model of rows that leave their base for some columns, and what it says.

    Parameters
    ----------
    groups : Groups
        The groups.
    base : ndarray of int, shape (g,)
        The column of every group; −1 for the first of two classes.
    columns : ndarray of int
        Where rows may move: group · m + column. Of two classes, whose groups have one column, a
        move leads from the base to the other class.
    """

    def __init__(self, groups: Groups, base: np.ndarray, columns: np.ndarray) -> None:
        self.groups = groups
        self.start = groups.placed(base)
        m = groups.n_columns
        self.group, self.column = np.divmod(columns, m)
        if m == 1:
            self.change = np.where(base[self.group] < 0, 1.0, -1.0)[None]
            return
        moves = self.column != base[self.group]
        self.group, self.column = self.group[moves], self.column[moves]
        self.change = np.zeros((m, len(self.group)))
        self.change[self.column, np.arange(len(self.group))] = 1.0
        self.change[base[self.group], np.arange(len(self.group))] = -1.0

    @property
    def cost(self) -> np.ndarray:
        """What the moves add to the cost."""
        return np.einsum("jm,mj->j", self.groups.cost[self.group], self.change)

    def model(
        self, allowed: Product, fixed: np.ndarray, *, keep_classes: bool = False
    ) -> LinearModel:
        r"""Return the model of how many rows x make every move.

        With f what v has besides, z_c the counts and w the auxiliary variables of the sets::

            min c'x   s.t.  lower ≤ v(z) + f + D w ≤ upper,   S w ≤ most
                            1 ≤ Σ z_c ≤ n − 1                 (every class keeps a row)
                            Σ x of a group ≤ size             (where it has several moves)

        Parameters
        ----------
        allowed : Product
            The sets.
        fixed : ndarray of shape (r,)
            f.
        keep_classes : bool, default=False
            Whether every class keeps a row.
        """
        groups, n = self.groups, len(self.group)
        sets, scale = allowed.linear_rows(), groups.scale[groups.image.row]
        shift = (groups.v(self.start) + fixed) / scale
        n_sums, n_auxiliary = sets.sums.shape
        classes = self.change if keep_classes else self.change[:0]
        held = self.start.sum(axis=0)[: len(classes)]
        several = np.flatnonzero(np.bincount(self.group, minlength=groups.n) > 1)
        among = np.isin(self.group, several)
        rows = np.searchsorted(several, self.group[among])
        entries = np.ones(len(rows)), (rows, np.flatnonzero(among))
        blocks = [
            [
                groups.effects(self.group, self.change) / scale[:, None],
                sets.auxiliary / scale[:, None],
            ],
            [classes, np.zeros((len(classes), n_auxiliary))],
            [sp.csr_array(entries, (len(several), n)), sp.csr_array((len(several), n_auxiliary))],
            [sp.csr_array((n_sums, n)), sets.sums],
        ]
        endless = np.full(len(several) + n_sums, -np.inf)
        most = groups.size.sum() - 1 - held
        return LinearModel(
            np.r_[self.cost, np.zeros(n_auxiliary)],
            sp.csr_array(sp.block_array(blocks)),
            np.r_[sets.lower / scale - shift, 1 - held, endless],
            np.r_[sets.upper / scale - shift, most, groups.size[several], sets.most],
            np.r_[groups.size[self.group].astype(float), np.ones(n_auxiliary)],
            n,
        )

    def counts(self, x: np.ndarray) -> np.ndarray:
        """Return the counts (g, m) of a solution of the model."""
        counts = self.start.copy()
        np.add.at(counts, self.group, (self.change * x[: len(self.group)]).T)
        return counts

    def moved(self, counts: np.ndarray) -> np.ndarray:
        """Return how many rows made every move, from the counts."""
        change = self.change[self.column, np.arange(len(self.group))]
        return change * (counts - self.start)[self.group, self.column]


def smallest_slack(
    model: LinearModel, units: np.ndarray, session: SolverSession, deadline: Deadline
) -> float | None:
    """Return the least slack with a solution; None where slack plays no part, or is unknown.

    The integer model with the slack as its last variable and as its cost.

    Parameters
    ----------
    model : LinearModel
        The model; its first rows are those of v.
    units : ndarray of shape (r,)
        How far a slack of 1 lets these rows move, 0 for a row that it has no say in.
    session : SolverSession
        Solves the model.
    deadline : Deadline
        When to end.

    Returns
    -------
    float or None
    """
    if not units.any():
        return None
    per_slack = np.zeros(len(model.lower))
    per_slack[: len(units)] = -units
    upper = np.where(per_slack < 0, (model.lower + model.upper) / 2, model.upper)
    lower = np.where(per_slack < 0, upper, model.lower)
    relaxed = LinearModel(
        np.r_[np.zeros(len(model.cost)), 1.0],
        sp.csr_array(
            sp.block_array(
                [[model.matrix, per_slack[:, None]], [model.matrix, -per_slack[:, None]]]
            )
        ),
        np.r_[np.full(len(upper), -np.inf), lower],
        np.r_[upper, np.full(len(lower), np.inf)],
        np.r_[model.upper_bound, np.inf],
        model.n_integers,
    )
    soon = Deadline(min(_SLACK_SECONDS, deadline.left))
    outcome = session.solve_linear(relaxed, gap=1e-6, start=None, deadline=soon)
    return None if outcome.x is None else float(outcome.x[-1]) * (1 + 1e-6)
