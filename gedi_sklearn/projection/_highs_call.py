"""One call of HiGHS.

It is made through its own package: the wrappers in scipy warn of every option that they do not
know, which only `warnings.catch_warnings` could silence, and that changes the filters of all
threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from highspy import Highs, HighsLp, HighsModelStatus, HighsStatus, HighsVarType, MatrixFormat

from ..exceptions import SolverError
from ._solver import LinearModel

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


class _Silent(Highs):
    """HiGHS without callbacks, whose set-up prints its version."""

    def enableCallbacks(self) -> None:
        """Enable none."""


def run(
    model: LinearModel, n_integers: int, options: dict[str, Any], start: np.ndarray | None = None
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
                f"params: HiGHS refuses {name}={value!r}. See its documentation for the "
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
