"""What solves a projection: the parameter, the linear models that solvers see, and the choice."""

from __future__ import annotations

import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .._geometry import Multipliers, Span
from .._validation import Interval, StrOptions, remember_signature
from ..exceptions import SolverError, SolverLicenceError, warn_caller

_NAMES = ("auto", "gurobi", "highs")
# Options of HiGHS that `params` may set:
# https://ergo-code.github.io/HiGHS/dev/options/definitions/
_PARAMETERS = """
mip_abs_gap mip_feasibility_tolerance mip_heuristic_effort mip_max_improving_sols mip_max_leaves
mip_max_nodes mip_max_stall_nodes mip_rel_gap parallel presolve primal_feasibility_tolerance
random_seed threads time_limit
"""
# Parameters of Gurobi that name a licence.
_LICENCE_NAMES = """
CloudAccessID CloudPool CloudSecretKey ComputeServer LicenseID ServerPassword TokenServer TSPort
WLSAccessID WLSSecret WLSToken
"""


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


# Statuses of a solver that was stopped before it was done.
LIMITS = frozenset({"time_limit", "work_limit", "node_limit", "interrupted"})
PARAMETERS = frozenset(_PARAMETERS.split())
LICENCE_KEYS = frozenset(_LICENCE_NAMES.split())


class Deadline:
    """When a solve has to end.

    Handed on to whatever may take long. What has an answer that serves, though not the best,
    asks what is `left`; everything else ends with the `TimeoutError` of :meth:`check`.

    Parameters
    ----------
    seconds : float or None, default=None
        From now; None is without end.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds to go, at least 0."""
        return max(self._end - time.monotonic(), 0.0)

    def check(self) -> None:
        """Raise TimeoutError where nothing is left."""
        if not self.left:
            raise TimeoutError


@dataclass(frozen=True)
class LinearModel:
    r"""Minimise c'x subject to lower ≤ A x ≤ upper, 0 ≤ x ≤ u, the first variables integer.

    Attributes
    ----------
    cost : ndarray of shape (p,)
        c.
    matrix : sparse array of shape (m, p)
        A, every row scaled to a largest entry of 1.
    lower, upper : ndarray of shape (m,)
        Range of every row.
    upper_bound : ndarray of shape (p,)
        u.
    n_integers : int
        How many of the leading variables are integer.
    """

    cost: np.ndarray
    matrix: sp.csr_array
    lower: np.ndarray
    upper: np.ndarray
    upper_bound: np.ndarray
    n_integers: int

    def split_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tell which rows are equations, and which have an upper or a lower end besides."""
        equal = self.lower == self.upper
        return equal, ~equal & np.isfinite(self.upper), ~equal & np.isfinite(self.lower)


@dataclass(frozen=True)
class Outcome:
    """A solver's answer.

    Attributes
    ----------
    x : ndarray or None
        The best solution found; None where there is none.
    status : str
        One of ProjectionResult's, or "infeasible".
    bound : float
        Lower bound on the optimum; −inf where unknown.
    """

    x: np.ndarray | None
    status: str
    bound: float


class SolverSession(ABC):
    """A solver with its settings, ready for any number of models.

    Parameters
    ----------
    params : mapping
        Parameters in the solver's own names, checked.
    seed : int
        Seed of the solver.
    verbose : bool
        Whether the solver prints its log.
    """

    # As in ProjectionResult.
    name: str

    def __init__(self, params: Mapping[str, Any], seed: int, verbose: bool) -> None:
        self.params = dict(params)
        self.seed = seed
        self.verbose = verbose

    @abstractmethod
    def solve_linear(
        self,
        model: LinearModel,
        gap: float,
        start: np.ndarray | None,
        deadline: Deadline,
        most_nodes: int | None = None,
    ) -> Outcome:
        """Solve a mixed-integer model.

        Parameters
        ----------
        model : LinearModel
            The model.
        gap : float
            Absolute gap between objective and bound to stop at.
        start : ndarray or None
            Known values of the integers, feasible or not; a hint.
        deadline : Deadline
            When to end.
        most_nodes : int, default=None
            Nodes of the search tree after which to end; None is no limit.

        Returns
        -------
        Outcome
        """

    def solve_distance(self, span: Span, x: np.ndarray, deadline: Deadline) -> Multipliers | None:
        """Return the multipliers of the allowed point nearest to x.

        None leaves it to the closed form, where no solver was asked for by name. TimeoutError
        where the deadline comes first.
        """
        return None

    def refuse(self, what: str, solved_by: str) -> None:  # noqa: B027
        """Raise ValueError where this solver was asked for by name and has no such model."""

    def close(self) -> None:  # noqa: B027
        """Release what the solver holds; safe to call twice."""


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
        from ._highs_call import run

        highs, status = run(model, model.n_integers, options | self.params, start)
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
    from ._highs_call import run

    # The simplex method ends in a vertex, where few variables are between their ends.
    highs, status = run(model, 0, {"solver": "simplex", "time_limit": deadline.left})
    if status == "infeasible":
        return None
    if status == "time_limit":
        raise TimeoutError
    if status != "optimal":
        raise SolverError.from_status("highs", status)
    solution = highs.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)


def open_session(
    solver: str, given: Mapping[str, Any] | None, seed: int, verbose: bool
) -> SolverSession:
    """Return a session for the `solver` parameter; nothing is started yet.

    Parameters
    ----------
    solver : {"auto", "gurobi", "highs"}
        "auto" is Gurobi where a licence of the user's own is configured, with HiGHS behind it.
    given : mapping or None
        Parameters in the solver's own names; left as it is.
    seed : int
        Seed of the solver.
    verbose : bool
        Whether the solver prints its log.

    Raises
    ------
    ValueError
        If a name in it is not one of the solver's.
    """
    from . import _gurobi

    params = dict(given or {})
    use_gurobi = solver == "gurobi" or (
        solver == "auto" and licence_is_configured(params) and find_spec("gurobipy") is not None
    )
    name, known = ("gurobi", _gurobi.PARAMETERS) if use_gurobi else ("highs", PARAMETERS)
    unknown = sorted(set(params) - known, key=str)
    undefined = [
        key for key, value in params.items() if isinstance(value, float) and math.isnan(value)
    ]
    if undefined:
        raise ValueError(
            f"params of the solver: {undefined} is NaN; pass a number, or leave it out."
        )
    if unknown:
        raise ValueError(
            f"params of the solver holds {unknown}, unknown to solver={name!r}; it takes "
            f"{sorted(known)}."
        )
    if not use_gurobi:
        return HighsSession(params, seed, verbose)
    session = _gurobi.GurobiSession(params, seed, verbose)
    return session if solver == "gurobi" else AutoSession(session)


def licence_is_configured(params: Mapping[str, Any]) -> bool:
    """Tell whether the user has a licence of their own, without importing Gurobi."""
    if LICENCE_KEYS & set(params) or os.environ.get("GRB_LICENSE_FILE"):
        return True
    folders = [*_system_folders()]
    # Containers run with user ids that have no home, or none that they may read.
    with suppress(RuntimeError):
        folders.append(Path.home())
    return any(os.path.isfile(folder / "gurobi.lic") for folder in folders)


@cache
def _system_folders() -> tuple[Path, ...]:
    """Return the folders of Gurobi's installers; listed once a process, as every fit asks."""
    on_windows = [Path("c:/gurobi")] if os.name == "nt" else []
    return (*Path("/opt").glob("gurobi*"), *Path("/Library").glob("gurobi*"), *on_windows)


class AutoSession(SolverSession):
    """Gurobi, until its licence turns out not to serve; HiGHS from there on."""

    def __init__(self, first: SolverSession) -> None:
        super().__init__(first.params, first.seed, first.verbose)
        self._current = first

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
