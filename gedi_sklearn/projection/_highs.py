"""HiGHS: linear relaxations and mixed-integer models, free of any licence.

Through its own package: the wrappers in scipy warn of every option that they do not know, which
only `warnings.catch_warnings` could silence, and that changes the filters of all threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from math import isnan
from typing import Any

import numpy as np
import scipy.sparse as sp
from highspy import Highs, HighsLp, HighsModelStatus, HighsStatus, HighsVarType, MatrixFormat

from .._deadline import Deadline
from ..exceptions import SolverError, SolverLicenceError, warn_caller
from . import _gurobi
from ._linear_model import LinearModel, Outcome, SolverSession

# Options of HiGHS that `solver_params` may set:
# https://ergo-code.github.io/HiGHS/dev/options/definitions/
_NAMES = """
mip_abs_gap mip_feasibility_tolerance mip_heuristic_effort mip_max_improving_sols mip_max_leaves
mip_max_nodes mip_max_stall_nodes mip_rel_gap parallel presolve primal_feasibility_tolerance
random_seed threads time_limit
"""
PARAMETERS = frozenset(_NAMES.split())

# HiGHS's model status. Everything else is an error.
_STATUS = {
    HighsModelStatus.kOptimal: "optimal",
    HighsModelStatus.kInfeasible: "infeasible",
    # Every variable of our models is bounded.
    HighsModelStatus.kUnboundedOrInfeasible: "infeasible",
    HighsModelStatus.kTimeLimit: "time_limit",
    HighsModelStatus.kIterationLimit: "interrupted",
    HighsModelStatus.kSolutionLimit: "node_limit",  # the limit on solutions, leaves or nodes
    HighsModelStatus.kInterrupt: "interrupted",
}


class HighsSession(SolverSession):
    """Solves models with HiGHS; holds settings only, no handle."""

    name = "highs"

    def solve_linear(
        self,
        model: LinearModel,
        gap: float,
        start: np.ndarray | None,
        deadline: Deadline,
        most_nodes: int | None = None,
    ) -> Outcome:
        """Solve a mixed-integer model; see :class:`SolverSession`."""
        options: dict[str, Any] = {
            "output_flag": self.verbose,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": gap,
            "mip_feasibility_tolerance": 1e-9,
            "primal_feasibility_tolerance": 1e-9,
            "random_seed": self.seed,
            "time_limit": deadline.left,
        }
        if most_nodes is not None:
            options["mip_max_nodes"] = most_nodes
        highs, status = _run(model, model.n_integers, options | self.params, start)
        info = highs.getInfo()
        # An infeasible or unfinished model can hand back a vector of zeros: only an objective
        # marks a solution.
        solved = status != "infeasible" and np.isfinite(info.objective_function_value)
        x = np.array(highs.getSolution().col_value) if solved else None
        return Outcome(x, status, float(info.mip_dual_bound))


def solve_continuous(
    model: LinearModel, deadline: Deadline
) -> tuple[np.ndarray, np.ndarray] | None:
    """Solve a model without integrality; return x and the rows' multipliers, None if infeasible.

    Raises
    ------
    TimeoutError
        If the deadline comes first.
    SolverError
        If HiGHS ends in any other status.
    """
    # The simplex method ends in a vertex, where few variables are between their ends.
    highs, status = _run(model, 0, {"solver": "simplex", "time_limit": deadline.left})
    if status == "infeasible":
        return None
    if status == "time_limit":
        raise TimeoutError
    if status != "optimal":
        raise SolverError.from_status("highs", status)
    solution = highs.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)


class _Silent(Highs):
    """HiGHS without callbacks, whose set-up prints its version."""

    def enableCallbacks(self) -> None:
        """Enable none."""


def _run(
    model: LinearModel,
    n_integers: int,
    options: dict[str, Any],
    start: np.ndarray | None = None,
) -> tuple[Highs, str]:
    """Solve a model, from values of its integers; return what holds its solution, and the status.

    Raises
    ------
    ValueError
        If HiGHS refuses the value of an option.
    SolverError
        If the status is none of those that our models can end in.
    """
    highs = _Silent()
    # One thread: processes that fork find no lock held, and every machine the same solution.
    for name, value in ({"output_flag": False, "threads": 1} | options).items():
        if name in ("parallel", "presolve") and isinstance(value, bool):
            value = "on" if value else "off"
        if highs.setOptionValue(name, value) != HighsStatus.kOk:
            raise ValueError(
                f"solver_params: HiGHS refuses {name}={value!r}. See its documentation for the "
                "values that it takes."
            )
    lp, matrix = HighsLp(), sp.csc_array(model.matrix)
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_ = model.cost
    lp.col_lower_, lp.col_upper_ = np.zeros(len(model.cost)), model.upper_bound
    lp.row_lower_, lp.row_upper_ = model.lower, model.upper
    lp.a_matrix_.format_ = MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    if n_integers:
        kinds = [HighsVarType.kInteger] * n_integers
        lp.integrality_ = kinds + [HighsVarType.kContinuous] * (len(model.cost) - n_integers)
    highs.passModel(lp)
    if start is not None:
        highs.setSolution(len(start), np.arange(len(start), dtype=np.int32), start)
    # Another number of threads than in this thread's last run would be an error.
    highs.resetGlobalScheduler(True)
    highs.run()
    status = highs.getModelStatus()
    if status not in _STATUS:
        raise SolverError.from_status("highs", highs.modelStatusToString(status))
    return highs, _STATUS[status]


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
    name, known = ("gurobi", _gurobi.PARAMETERS) if use_gurobi else ("highs", PARAMETERS)
    unknown = sorted(set(params) - known, key=str)
    undefined = [key for key, value in params.items() if isinstance(value, float) and isnan(value)]
    if undefined:
        raise ValueError(f"solver_params: {undefined} is NaN; pass a number, or leave it out.")
    if unknown:
        raise ValueError(
            f"solver_params holds {unknown}, unknown to solver={name!r}; it takes {sorted(known)}."
        )
    if not use_gurobi:
        return HighsSession(params, seed, verbose)
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
            self._current = HighsSession(kept, self.seed, self.verbose)
            return self._current.solve_linear(model, gap, start, deadline, most_nodes)

    @property
    def name(self) -> str:  # type: ignore[override]
        """What solves: "gurobi" or "highs"."""
        return self._current.name
