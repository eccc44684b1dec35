"""Which solver works for a projection, and what happens where its licence fails."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from math import isnan
from typing import Any

import numpy as np

from .._deadline import Deadline
from ..exceptions import SolverLicenceError, warn_caller
from . import _gurobi, _highs
from ._linear_model import LinearModel, Outcome, SolverSession


def open_session(
    solver: str, solver_params: Mapping[str, Any] | None, seed: int, verbose: bool
) -> SolverSession:
    """Return a session for the `solver` parameter; nothing is started yet.

    Parameters
    ----------
    solver : {"auto", "gurobi", "highs"}
        "auto" is Gurobi where a licence of the user's own is configured, with HiGHS behind it.
    solver_params : mapping or None
        Parameters in the solver's own names; left as it is.
    seed : int
        Seed of the solver.
    verbose : bool
        Whether the solver prints its log.

    Raises
    ------
    ValueError
        If a name in `solver_params` is not one of the solver's.
    """
    params = dict(solver_params or {})
    use_gurobi = solver == "gurobi" or (solver == "auto" and _serves(params))
    name, known = ("gurobi", _gurobi.PARAMETERS) if use_gurobi else ("highs", _highs.PARAMETERS)
    unknown = sorted(set(params) - known, key=str)
    undefined = [key for key, value in params.items() if isinstance(value, float) and isnan(value)]
    if undefined:
        raise ValueError(f"solver_params: {undefined} is NaN; pass a number, or leave it out.")
    if unknown:
        raise ValueError(
            f"solver_params holds {unknown}, unknown to solver={name!r}; it takes {sorted(known)}."
        )
    if not use_gurobi:
        return _highs.HighsSession(params, seed, verbose)
    kind = _gurobi.GurobiSession if solver == "gurobi" else AutoSession
    return kind(params, seed, verbose)


def _serves(params: Mapping[str, Any]) -> bool:
    """Tell whether "auto" is Gurobi."""
    return _gurobi.licence_is_configured(params) and find_spec("gurobipy") is not None


class AutoSession(SolverSession):
    """Gurobi, until its licence turns out not to serve; HiGHS from there on."""

    def __init__(self, params: Mapping[str, Any], seed: int, verbose: bool) -> None:
        super().__init__(params, seed, verbose)
        self._current: SolverSession = _gurobi.GurobiSession(params, seed, verbose)

    def close(self) -> None:
        """Release what is held."""
        self._current.close()

    def solve_linear(
        self,
        model: LinearModel,
        gap: float,
        start: np.ndarray | None,
        deadline: Deadline,
        most_nodes: int | None = None,
    ) -> Outcome:
        """Solve a mixed-integer model; see :class:`SolverSession`."""
        try:
            return self._current.solve_linear(model, gap, start, deadline, most_nodes)
        except (SolverLicenceError, ImportError) as error:
            warn_caller(f"solver='auto' goes on with HiGHS: {error}")
            self.close()
            limit = self.params.get("TimeLimit")
            kept = {} if limit is None else {"time_limit": limit}
            self._current = _highs.HighsSession(kept, self.seed, self.verbose)
            return self._current.solve_linear(model, gap, start, deadline, most_nodes)

    @property
    def name(self) -> str:  # type: ignore[override]
        """What solves: "gurobi" or "highs"."""
        return self._current.name
