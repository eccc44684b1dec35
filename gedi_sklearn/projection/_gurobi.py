"""Gurobi: one environment per session, opened at the first model and always closed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._geometry import Multipliers, Span
from ..exceptions import SolverError, SolverLicenceError, warn_caller
from ._solver import (
    LICENCE_KEYS,
    Deadline,
    LinearModel,
    Outcome,
    SolverSession,
    licence_is_configured,
)

# Parameters of Gurobi that `params` may set, in Gurobi's own spelling:
# https://docs.gurobi.com/projects/optimizer/en/current/reference/parameters.html
_OTHER_NAMES = """
Aggregate BarConvTol BarIterLimit BestBdStop BestObjStop Crossover Cuts FeasibilityTol Heuristics
IntFeasTol IntegralityFocus IterationLimit LogFile LogToConsole MIPFocus MIPGap MIPGapAbs Method
NodeLimit NumericFocus OptimalityTol OutputFlag Presolve ScaleFlag Seed SoftMemLimit SolutionLimit
Symmetry Threads TimeLimit WorkLimit
"""
PARAMETERS = LICENCE_KEYS | frozenset(_OTHER_NAMES.split())

# Gurobi's status codes. Everything else is an error.
_STATUS = {
    2: "optimal",
    3: "infeasible",
    4: "infeasible",  # infeasible or unbounded: every variable of our models is bounded
    7: "interrupted",  # iteration limit
    8: "node_limit",
    9: "time_limit",
    10: "interrupted",  # solution limit
    11: "interrupted",
    13: "gap",  # suboptimal: a feasible point, tolerances of optimality not met
    15: "interrupted",  # objective limit
    16: "work_limit",
    17: "interrupted",  # memory limit
}
_TOLERANCES = {"FeasibilityTol": 1e-9, "IntFeasTol": 1e-9}
_SIZE_LIMIT = 10010
_DUAL_SIMPLEX = 1

_notices_given: set[str] = set()


class GurobiSession(SolverSession):
    """Solves models with Gurobi in one silent environment of its own."""

    name = "gurobi"

    _env: Any = None

    def close(self) -> None:
        """Release the environment and with it the licence."""
        if self._env is not None:
            self._env.dispose()
            self._env = None

    def _environment(self) -> Any:
        if self._env is None:
            gurobipy = _import_gurobipy()
            env = _licensed(lambda: gurobipy.Env(empty=True))
            try:
                own = {"OutputFlag": int(self.verbose), "Seed": self.seed, **_TOLERANCES}
                for name, value in (own | self.params).items():
                    _set_parameter(env, name, value)
                _licensed(env.start)
            except (ValueError, SolverLicenceError):
                env.dispose()
                raise
            self._env = env
        return self._env

    def _new_model(self) -> Any:
        env = self._environment()
        return _licensed(lambda: _import_gurobipy().Model(env=env))

    def solve_linear(
        self,
        model: LinearModel,
        gap: float,
        start: np.ndarray | None,
        deadline: Deadline,
        most_nodes: int | None = None,
    ) -> Outcome:
        """Solve a mixed-integer model; see :class:`SolverSession`."""
        gurobipy = _import_gurobipy()
        grb = gurobipy.GRB
        with self._new_model() as gurobi_model:
            kinds = np.full(len(model.cost), grb.CONTINUOUS)
            kinds[: model.n_integers] = grb.INTEGER
            x = gurobi_model.addMVar(
                len(model.cost), lb=0.0, ub=model.upper_bound, vtype=kinds, obj=model.cost
            )
            equal, above, below = model.split_rows()
            if equal.any():
                gurobi_model.addConstr(model.matrix[equal] @ x == model.upper[equal])
            if above.any():
                gurobi_model.addConstr(model.matrix[above] @ x <= model.upper[above])
            if below.any():
                gurobi_model.addConstr(model.matrix[below] @ x >= model.lower[below])
            if start is not None:
                x[: len(start)].Start = start
            settings = {"MIPGap": 0.0, "MIPGapAbs": gap, "TimeLimit": deadline.left}
            if most_nodes is not None:
                settings["NodeLimit"] = float(most_nodes)
            status = self._optimize(gurobi_model, settings)
            solved = status != "infeasible" and gurobi_model.SolCount > 0
            bound = float(gurobi_model.ObjBound) if solved else -np.inf
            return Outcome(x.X if solved else None, status, bound)

    def refuse(self, what: str, solved_by: str) -> None:
        """Refuse a problem that has no small model.

        Raises
        ------
        ValueError
        """
        raise ValueError(
            f"solver='gurobi' has no model of {what}, which is solved by {solved_by}. Use "
            "solver='auto' or solver='highs'."
        )

    def solve_distance(self, span: Span, x: np.ndarray, deadline: Deadline) -> Multipliers | None:
        r"""Return the multipliers μ of the allowed point nearest to coordinates x.

        In residual form, with v_b in units in which every column of M_b has norm 1::

            min r'r   s.t.  B_b r = M_b v_b − B_b x,   lower ≤ v_b + D w_b ≤ upper,   S w_b ≤ 1

        for every set b, and v_b = A_b M_b v_b where its coordinates are tied. A quadratic form in
        v itself would square the condition of M. Simplex ends on an active set and is exact
        there; the barrier, on raw percentages at degree 5, stops at twice the optimum and beyond.
        The multipliers of B_b r = … are 2 μ_b.
        """
        size = float(np.linalg.norm(x))
        # A ball has no linear rows; the exact method goes along its boundary.
        if size == 0 or not all(own.allowed.is_polyhedron for own in span.blocks):
            return None
        gurobipy = _import_gurobipy()
        infinity = gurobipy.GRB.INFINITY
        with self._new_model() as model:
            r = model.addMVar(len(x), lb=-infinity)
            links = []
            for own, part in zip(span.blocks, span.split(span.stacked), strict=True):
                norms = np.linalg.norm(own.inverse, axis=0) / size
                rows = own.allowed.linear_rows()
                auxiliary = rows.auxiliary * norms[:, None]
                # Every column in its own unit: far from 0 the norms differ by many digits.
                unit = np.abs(auxiliary).max(axis=0, initial=0.0)
                unit = np.where(unit > 0, unit, 1.0)
                v = model.addMVar(len(norms), lb=-infinity)
                w = model.addMVar(len(unit), ub=unit)
                links.append(
                    model.addConstr(part @ r == (own.inverse / norms / size) @ v - part @ x / size)
                )
                if own.inverse.shape[0] != own.inverse.shape[1]:
                    model.addConstr(
                        (own.operator @ own.inverse - np.eye(len(norms))) / norms @ v == 0
                    )
                within = v + (auxiliary / unit) @ w if len(unit) else v
                for limit, sign in ((rows.upper, 1.0), (-rows.lower, -1.0)):
                    finite = np.isfinite(limit)
                    if finite.any():
                        model.addConstr(sign * within[finite] <= (limit * norms)[finite])
                if len(unit):
                    model.addConstr((rows.sums / unit) @ w <= 1)
            model.setObjective(r @ r)
            settings = {"Method": _DUAL_SIMPLEX, "OptimalityTol": 1e-9, "TimeLimit": deadline.left}
            status = self._optimize(model, settings)
            if status == "time_limit":
                raise TimeoutError
            if status != "optimal":
                raise SolverError.from_status(self.name, status)
            mu = [size / 2 * np.atleast_1d(link.Pi) for link in links]
            u = span.split(span.stacked @ (x + span.stacked.T @ np.concatenate(mu)))
            triples = zip(span.blocks, u, mu, strict=True)
            faces = [one.nearest(at - multiplier)[1] for one, at, multiplier in triples]
            return Multipliers(np.concatenate(mu), faces)

    def _optimize(self, model: Any, settings: Mapping[str, Any]) -> str:
        """Solve, with the settings of the model unless the user gave their own; map the status."""
        gurobipy = _import_gurobipy()
        for name in settings.keys() - self.params.keys():
            model.setParam(name, settings[name])
        try:
            model.optimize()
        except gurobipy.GurobiError as error:
            if error.errno == _SIZE_LIMIT:
                raise SolverLicenceError.from_size(
                    model.NumVars, model.NumConstrs, str(error)
                ) from error
            raise SolverError.from_status(self.name, str(error)) from error
        if not licence_is_configured(self.params):
            _notify_restricted_licence(model)
        if model.Status not in _STATUS:
            raise SolverError.from_status(self.name, model.Status)
        return _STATUS[model.Status]


def _set_parameter(env: Any, name: str, value: Any) -> None:
    """Set a parameter, and name it where Gurobi refuses the value."""
    gurobipy = _import_gurobipy()
    try:
        env.setParam(name, value)
    except (gurobipy.GurobiError, TypeError, ValueError) as error:
        raise ValueError(
            f"params: Gurobi refuses {name}={value!r}: {error}. See its documentation for "
            "the values that it takes."
        ) from error


def _licensed(call: Callable[[], Any]) -> Any:
    """Call what needs a licence; Gurobi's errors become ours."""
    try:
        return call()
    except _import_gurobipy().GurobiError as error:
        raise SolverLicenceError.from_licence(str(error)) from error


def _import_gurobipy() -> Any:
    try:
        import gurobipy
    except (ImportError, OSError) as error:
        raise ImportError(
            "solver='gurobi' needs the package gurobipy, which could not be imported. Install it "
            "with `pip install gurobipy`, or use solver='highs'."
        ) from error
    return gurobipy


def _notify_restricted_licence(model: Any) -> None:
    """Say once a process what the licence that comes with pip allows, and until when."""
    expires = str(getattr(model, "LicenseExpiration", ""))
    if "restricted" not in _notices_given:
        _notices_given.add("restricted")
        ends = f"{expires[:4]}-{expires[4:6]}-{expires[6:8]}" if len(expires) == 8 else "unknown"
        warn_caller(
            "Gurobi runs on the size-limited licence that comes with pip: for non-production use "
            f"only, end date {ends}. For production configure your own licence, or use "
            "solver='highs'."
        )
