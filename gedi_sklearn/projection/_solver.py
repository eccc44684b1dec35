"""The parameter `solver`: which solver, how near to the optimum, for how long."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from .._validation import Interval, StrOptions, remember_signature

_NAMES = ("auto", "gurobi", "highs")


class Solver(BaseEstimator):
    """How a projection is solved; a name alone, ``solver="highs"``, stands for its defaults.

    Parameters
    ----------
    name : {"auto", "gurobi", "highs"}, default="auto"
        "auto" is exact where there is a closed form, else Gurobi where a licence of the user's
        own is configured, else HiGHS.
    gap : "auto" or float, default="auto"
        (objective − bound) / Σ w_i|c_i| that is asked for, for classes; 0 asks for the
        optimum. "auto" is one flip of an average row, 1/n, and 5e-5 from 20,000 rows on.
    time_limit : float or None, default=60.0
        Seconds for one solve, to the end of a step. Classes get the best targets found by then,
        with their gap; real targets are a :class:`SolverLimitError` by then. Searches for classes
        end by themselves, most of them sooner, so that equal calls give equal targets.
    params : dict, default=None
        Parameters of the solver under its own names; unknown names are an error.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, Solver, project_targets
    >>> age, hired = np.arange(20, 61, 5), np.array([0, 0, 1, 0, 1, 1, 0, 1, 1])
    >>> constraint, solver = CoarseConstraint(), Solver("highs", gap=0)
    >>> project_targets(
    ...     hired, sensitive_features=age, constraint=constraint, solver=solver
    ... ).status
    'optimal'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "name": [StrOptions(set(_NAMES))],
        "gap": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "params": [Mapping, None],
    }

    def __init__(
        self,
        name: str = "auto",
        *,
        gap: float | str = "auto",
        time_limit: float | None = 60.0,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.gap = gap
        self.time_limit = time_limit
        self.params = params


remember_signature(Solver)


def check_solver(solver: Any) -> Solver:
    """Return the `solver` parameter as an object whose parameters are in their ranges.

    Raises
    ------
    ValueError
        If it is neither a name nor a solver.
    """
    if isinstance(solver, str) and solver in _NAMES:
        return Solver(solver)
    if not isinstance(solver, Solver):
        raise ValueError(
            f"solver must be one of {_NAMES} or a Solver object, such as Solver('highs', gap=0); "
            f"got {solver!r}."
        )
    solver._validate_params()
    return solver
