"""HiGHS, through scipy: linear relaxations and mixed-integer models, free of any licence."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, OptimizeWarning, linprog, milp

from ..exceptions import SolverError
from ._linear_model import LinearModel, Outcome, SolverSession

# Options of HiGHS that `solver_params` may set. scipy lets unknown names pass, so they are
# checked against this list: https://ergo-code.github.io/HiGHS/dev/options/definitions/
_NAMES = """
mip_abs_gap mip_feasibility_tolerance mip_heuristic_effort mip_max_improving_sols mip_max_leaves
mip_max_nodes mip_max_stall_nodes mip_rel_gap parallel presolve primal_feasibility_tolerance
random_seed threads time_limit
"""
PARAMETERS = frozenset(_NAMES.split())

# HiGHS's model status, as it stands in scipy's message. Everything else is an error.
_STATUS = {
    7: "optimal",
    8: "infeasible",
    9: "infeasible",  # unbounded or infeasible: every variable of our models is bounded
    13: "time_limit",
    14: "interrupted",  # iteration limit
    16: "node_limit",  # the limit on solutions, leaves or nodes
    17: "interrupted",
}


class HighsSession(SolverSession):
    """Solves models with HiGHS; holds settings only, no handle."""

    name = "highs"

    def solve_linear(
        self, model: LinearModel, gap: float, start: np.ndarray | None, time_limit: float | None
    ) -> Outcome:
        """Solve a mixed-integer model; see :class:`SolverSession`."""
        options: dict[str, Any] = {
            "disp": self.verbose,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": gap,
            "mip_feasibility_tolerance": 1e-9,
            "primal_feasibility_tolerance": 1e-9,
            "random_seed": self.seed,
        }
        if time_limit is not None:
            options["time_limit"] = time_limit
        integrality = np.zeros(len(model.cost))
        integrality[: model.n_integers] = 1
        with warnings.catch_warnings():
            # scipy warns of every option beyond its own six; the names are checked already.
            warnings.filterwarnings("ignore", "Unrecognized options", RuntimeWarning)
            # ... and drops a value that HiGHS refuses, with a warning.
            warnings.filterwarnings("error", "Invalid option value", OptimizeWarning)
            try:
                result = milp(
                    model.cost,
                    integrality=integrality,
                    bounds=Bounds(0, model.upper_bound),
                    constraints=LinearConstraint(model.matrix, model.lower, model.upper),
                    options=options | self.params,
                )
            except (OptimizeWarning, TypeError) as error:
                raise ValueError(
                    f"solver_params={self.params!r} holds a value that HiGHS refuses: {error}"
                ) from error
        status = read_status(result.message)
        # An infeasible or unfinished model can hand back a vector of zeros: only an objective
        # marks a solution.
        solved = status != "infeasible" and result.x is not None and result.fun is not None
        bound = result.mip_dual_bound
        return Outcome(
            result.x if solved and np.isfinite(result.fun) else None,
            status,
            -np.inf if bound is None else float(bound),
        )


def read_status(message: str) -> str:
    """Map HiGHS's status in scipy's message to ours.

    Raises
    ------
    SolverError
        If the status is none of those that our models can end in.
    """
    found = re.search(r"HiGHS Status (\d+)", message)
    code = int(found.group(1)) if found else None
    if code not in _STATUS:
        raise SolverError.from_status("highs", message)
    return _STATUS[code]


def solve_continuous(model: LinearModel) -> tuple[np.ndarray, np.ndarray] | None:
    """Solve a model without integrality; return x and the rows' multipliers, None if infeasible.

    Raises
    ------
    SolverError
        If HiGHS ends in any other status.
    """
    equal, above, below = model.split_rows()
    stack = sp.vstack if sp.issparse(model.matrix) else np.vstack
    with warnings.catch_warnings():
        warnings.simplefilter("error", OptimizeWarning)
        result = linprog(
            model.cost,
            A_ub=stack([model.matrix[above], -model.matrix[below]]),
            b_ub=np.r_[model.upper[above], -model.lower[below]],
            A_eq=model.matrix[equal],
            b_eq=model.upper[equal],
            bounds=np.column_stack([np.zeros(len(model.upper_bound)), model.upper_bound]),
            method="highs",
        )
    status = read_status(result.message)
    if status == "infeasible":
        return None
    if status != "optimal":
        raise SolverError.from_status("highs", result.message)
    multipliers = np.zeros(len(model.lower))
    multipliers[equal] = result.eqlin.marginals
    multipliers[above] += result.ineqlin.marginals[: above.sum()]
    multipliers[below] -= result.ineqlin.marginals[above.sum() :]
    return result.x, multipliers
