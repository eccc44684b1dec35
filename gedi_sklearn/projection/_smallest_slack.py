"""The least slack with which an infeasible model has a solution: what an error can advise."""

from __future__ import annotations

import numpy as np

from ._model import LinearModel, SolverSession

__all__ = ["smallest_slack"]

# Seconds to look for it.
_SECONDS = 10.0


def smallest_slack(model: LinearModel, units: np.ndarray, session: SolverSession) -> float | None:
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

    Returns
    -------
    float or None
    """
    if not units.any():
        return None
    per_slack = np.zeros(len(model.lower))
    per_slack[: len(units)] = -units
    upper = np.where(per_slack < 0, 0.0, model.upper)
    lower = np.where(per_slack < 0, 0.0, model.lower)
    relaxed = LinearModel(
        np.r_[np.zeros(len(model.cost)), 1.0],
        np.vstack(
            [
                np.column_stack([model.matrix, per_slack]),
                np.column_stack([model.matrix, -per_slack]),
            ]
        ),
        np.r_[np.full(len(upper), -np.inf), lower],
        np.r_[upper, np.full(len(lower), np.inf)],
        np.r_[model.capacity, np.inf],
        model.n_integers,
    )
    outcome = session.solve_linear(relaxed, gap=1e-6, start=None, time_limit=_SECONDS)
    return None if outcome.x is None else float(outcome.x[-1]) * (1 + 1e-6)
