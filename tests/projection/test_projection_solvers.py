"""The solver layer: every status told, nothing leaked, printed or believed blindly."""

import dataclasses
import os
import pickle
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from highspy import Highs, HighsModelStatus
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from gedi_sklearn import CoarseConstraint, FineConstraint, Solver, project_targets
from gedi_sklearn.exceptions import (
    ConstraintNotMetWarning,
    InfeasibleProjectionError,
    RankDeficientKernelError,
    SolverError,
    SolverLicenceError,
    SolverLimitError,
)
from gedi_sklearn.projection import Projection, _gurobi, _highs_call, _projection, _search, _solver
from gedi_sklearn.projection._solver import Deadline, LinearModel, Outcome

pytestmark = [
    # The notice of the licence that comes with pip, once a process: tests may use that licence.
    pytest.mark.filterwarnings("ignore:Gurobi runs on the size-limited:UserWarning"),
]
every_solver = pytest.mark.parametrize("solver", ["highs", "gurobi"])

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=N)
Y = (X + RNG.normal(size=N) > 0).astype(int)
P = RNG.random(N)
FINE = {"sensitive_features": X, "constraint": FineConstraint(kernel=2, slack=0.05)}
REAL = X + RNG.normal(size=N)


def exact(name="auto", **options):
    """Return the keywords of a small problem, for a solver that is asked for the optimum."""
    return {**FINE, "solver": Solver(name, gap=0.0, **options)}


@pytest.fixture
def solver_only(monkeypatch):
    """Leave everything to the solver: no other search finds allowed targets."""

    def half(groups):  # by the attribute
        return [np.where(np.arange(groups.n) < groups.n // 2, groups.size, 0.0)[:, None]]

    monkeypatch.setattr(_search, "_constants", half)
    monkeypatch.setattr(_search, "rounded_ones", lambda *args: ())
    monkeypatch.setattr(_search, "_SHARES", ())
    monkeypatch.setattr(_search.Exchange, "run", lambda *args: None)


class FakeSession:
    """A solver that answers what a test wants: one outcome, or HiGHS's own one changed."""

    name = "highs"

    def __init__(self, answer):
        self.answer = answer
        self.params = {"mip_max_nodes": 1}
        self.calls = 0

    def close(self):
        pass

    def solve_linear(self, model, **options):
        self.calls += 1
        if isinstance(self.answer, Outcome):
            return self.answer
        return self.answer(model, _solver.HighsSession({}, 0, False).solve_linear(model, **options))


def solve_with(monkeypatch, answer, **options):
    session = FakeSession(answer)
    with monkeypatch.context() as patch:
        patch.setattr(_projection, "open_session", lambda *args: session)
        result = project_targets(Y, P, **exact() | options)
    assert session.calls
    return result


@pytest.mark.usefixtures("solver_only")
class TestAnswersOfASolver:
    def test_nearly_integral_counts_are_rounded_and_never_cut(self, monkeypatch):
        expected = project_targets(Y, P, **exact()).targets
        for error in (1e-7, -1e-7, 9e-7):
            result = solve_with(
                monkeypatch,
                lambda model, true, error=error: dataclasses.replace(true, x=true.x - error),
            )
            assert_array_equal(result.targets, expected)

    @pytest.mark.parametrize("error", [0.4, 0.01, -0.4])
    def test_a_count_that_is_no_integer_is_refused(self, monkeypatch, error):
        with pytest.raises(SolverError, match="away from an integer"):
            solve_with(monkeypatch, lambda model, true: dataclasses.replace(true, x=true.x - error))

    @pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning")
    def test_a_solution_that_breaks_the_constraint_is_not_taken(self, monkeypatch):
        def unconstrained(model, true):
            return dataclasses.replace(true, x=np.where(model.cost < 0, model.upper_bound, 0.0))

        result = solve_with(monkeypatch, unconstrained)
        assert result.satisfied or result.status == "closest"

    @pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning")
    def test_a_solution_without_one_of_the_classes_is_not_taken(self, monkeypatch):
        def without_the_second(model, true):
            # The row that counts it has the moves into it, and those out of it with a minus.
            out = model.matrix[[2]].toarray()[0] < 0
            return dataclasses.replace(true, x=np.where(out, model.upper_bound, 0.0))

        assert set(solve_with(monkeypatch, without_the_second).targets) == {0, 1}

    @pytest.mark.parametrize("shift", [1.0, -1.0])
    def test_counts_outside_of_their_bounds_are_refused(self, monkeypatch, shift):
        with pytest.raises(SolverError, match="outside of their bounds"):
            solve_with(monkeypatch, lambda model, true: dataclasses.replace(true, x=true.x + shift))

    def test_a_bound_above_the_objective_is_no_bound(self, monkeypatch):
        result = solve_with(
            monkeypatch, lambda model, true: dataclasses.replace(true, bound=true.bound + 99.0)
        )
        assert result.bound <= result.objective
        assert result.gap >= 0

    @pytest.mark.parametrize("status", ["time_limit", "work_limit", "node_limit", "interrupted"])
    def test_a_limit_with_a_solution_is_used_with_one_warning(self, monkeypatch, status):
        with pytest.warns(ConvergenceWarning, match=status) as caught:
            result = solve_with(
                monkeypatch,
                lambda model, true: dataclasses.replace(true, status=status, bound=-np.inf),
            )
        assert len(caught) == 1
        assert result.status == status
        assert result.satisfied
        # The relaxation's bound is there even where the solver has none.
        assert np.isfinite(result.bound)
        assert 0 < result.gap < 1

    @pytest.mark.parametrize("status", ["time_limit", "work_limit", "node_limit", "interrupted"])
    def test_a_limit_without_a_solution_leaves_the_closest_targets(self, monkeypatch, status):
        with pytest.warns(ConstraintNotMetWarning) as caught:
            result = solve_with(monkeypatch, Outcome(None, status, -np.inf))
        for word in ("closest", "miss it by", "threshold", "slack", "time_limit"):
            assert word in str(caught[0].message)
        assert (result.status, result.satisfied) == ("closest", False)
        assert result.violation > 0
        assert np.isnan(result.gap)

    def test_infeasible_is_an_error_that_says_what_to_change(self, monkeypatch):
        with pytest.raises(InfeasibleProjectionError, match="Raise `threshold` or `slack`"):
            solve_with(monkeypatch, Outcome(None, "infeasible", -np.inf))

    def test_a_core_without_a_solution_proves_nothing_of_the_whole(self, monkeypatch):
        monkeypatch.setattr(_search, "_FEW", 0)
        monkeypatch.setattr(_search, "MOST_COLUMNS", 10)
        monkeypatch.setattr(_search, "_constants", lambda groups: [])
        session = FakeSession(Outcome(None, "infeasible", -np.inf))
        monkeypatch.setattr(_projection, "open_session", lambda *args: session)
        y = np.digitize(REAL, [-0.5, 0.5])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = project_targets(
                y,
                sensitive_features=X,
                loss="log_loss",
                constraint=CoarseConstraint(),
                solver=Solver(gap=0.0),
            )
        assert session.calls == 1
        assert result.status in ("work_limit", "closest")

    @pytest.mark.parametrize(
        ("params", "status"),
        [
            ({"NodeLimit": 0}, "node_limit"),
            ({"WorkLimit": 1e-9}, "work_limit"),
            ({"SolutionLimit": 1}, "interrupted"),
            ({"IterationLimit": 1}, "interrupted"),
            ({"BestObjStop": 1e9}, "interrupted"),
            ({"MIPGap": 0.5}, "gap"),
        ],
    )
    def test_real_limits_of_gurobi(self, params, status):
        with pytest.warns(ConvergenceWarning, match=status):
            result = project_targets(Y, P, **exact("gurobi", params=params))
        assert (result.status, result.solver) == (status, "gurobi")
        assert result.satisfied
        assert 0 < result.gap <= 1

    @pytest.mark.parametrize(
        ("params", "status"),
        [({"mip_max_improving_sols": 1}, "node_limit"), ({"mip_rel_gap": 0.5}, "gap")],
    )
    def test_real_limits_of_highs(self, params, status):
        with pytest.warns(ConvergenceWarning, match=status):
            result = project_targets(Y, P, **exact("highs", params=params))
        assert (result.status, result.solver) == (status, "highs")
        assert result.satisfied

    @pytest.mark.parametrize(
        ("solver", "params"),
        [
            ("gurobi", {"TimeLimit": 0.0}),
            ("gurobi", {"SoftMemLimit": 1e-9}),
            ("highs", {"time_limit": 1e-9}),
            ("highs", {"mip_max_nodes": 0}),
        ],
    )
    def test_a_limit_of_the_user_is_never_lifted(self, solver, params):
        with pytest.warns(ConstraintNotMetWarning, match="closest"):
            result = project_targets(Y, P, **exact(solver, time_limit=60.0, params=params))
        assert result.status == "closest"

    @every_solver
    def test_time_limit_is_that_of_the_whole_solve(self, solver, monkeypatch):
        given = []
        session = {"gurobi": _gurobi.GurobiSession, "highs": _solver.HighsSession}[solver]
        solve = session.solve_linear

        def record(self, model, **options):
            given.append(options["deadline"].left)
            return solve(self, model, **options)

        monkeypatch.setattr(session, "solve_linear", record)
        project_targets(Y, P, **exact(solver, time_limit=7.0))
        assert given
        assert all(0 < limit <= 7.0 for limit in given)


class FakeModel:
    """What `_optimize` asks of a Gurobi model."""

    LicenseExpiration = 99999999
    NumVars, NumConstrs = 1, 1

    def __init__(self, status):
        self.Status = status

    def setParam(self, name, value):
        pass

    def optimize(self):
        pass


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (2, "optimal"),
        (3, "infeasible"),
        (4, "infeasible"),
        (7, "interrupted"),
        (8, "node_limit"),
        (9, "time_limit"),
        (10, "interrupted"),
        (11, "interrupted"),
        (13, "gap"),
        (15, "interrupted"),
        (16, "work_limit"),
        (17, "interrupted"),
    ],
)
def test_statuses_of_gurobi(code, status):
    session = _gurobi.GurobiSession({}, 0, False)
    assert session._optimize(FakeModel(code), {}) == status


@pytest.mark.parametrize("code", [1, 5, 6, 12, 14, 99])
def test_a_status_of_gurobi_that_is_no_answer_is_an_error(code):
    # Loaded, unbounded, cutoff, numeric trouble, in progress, one that does not exist yet.
    with pytest.raises(SolverError, match=f"status {code} "):
        _gurobi.GurobiSession({}, 0, False)._optimize(FakeModel(code), {})


def test_no_status_of_gurobi_is_forgotten():
    gurobipy = pytest.importorskip("gurobipy")
    names = {
        getattr(gurobipy.GRB.Status, name) for name in dir(gurobipy.GRB.Status) if name.isupper()
    }
    # The last two answer nonlinear models only.
    errors = {1, 5, 6, 12, 14, 18, 19}
    assert names - errors <= set(_gurobi._STATUS)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (7, "optimal"),
        (8, "infeasible"),
        (9, "infeasible"),
        (13, "time_limit"),
        (14, "interrupted"),
        (16, "node_limit"),
        (17, "interrupted"),
    ],
)
def test_statuses_of_highs(monkeypatch, code, status):
    highs_ends_with(monkeypatch, code)
    assert (
        _solver.HighsSession({}, 0, False).solve_linear(TINY, 0.0, None, Deadline()).status
        == status
    )


@pytest.mark.parametrize("code", [0, 4, 10, 15, 18])
def test_a_status_of_highs_that_is_no_answer_is_an_error(monkeypatch, code):
    # Not set, failed, unbounded, unknown, out of memory.
    highs_ends_with(monkeypatch, code)
    with pytest.raises(SolverError, match="highs"):
        _solver.HighsSession({}, 0, False).solve_linear(TINY, 0.0, None, Deadline())


TINY = LinearModel(np.r_[1.0], np.r_[[[1.0]]], np.r_[0.0], np.r_[1.0], np.r_[1.0], 1)


def highs_ends_with(monkeypatch, code):
    status = HighsModelStatus(code)
    monkeypatch.setattr(_highs_call._Silent, "getModelStatus", lambda self: status)


@pytest.mark.usefixtures("solver_only")
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (0, SolverError),
        pytest.param(8, InfeasibleProjectionError, marks=pytest.mark.slow),
        (4, SolverError),
    ],
)
def test_zeros_that_highs_hands_back_are_no_solution(monkeypatch, code, error):
    run = _highs_call.run

    def without_solution(model, n_integers, options, start=None):
        if not n_integers:
            return run(model, n_integers, options)
        highs_ends_with(monkeypatch, code)
        highs, status = run(model, n_integers, options)
        none = SimpleNamespace(objective_function_value=np.inf, mip_dual_bound=-np.inf)
        return SimpleNamespace(getInfo=lambda: none, getSolution=highs.getSolution), status

    monkeypatch.setattr(_highs_call, "run", without_solution)
    with pytest.raises(error):
        project_targets(Y[:24], P[:24], **exact("highs") | {"sensitive_features": X[:24]})


@pytest.mark.parametrize("code", [0, 4])
def test_a_relaxation_that_fails_is_an_error(monkeypatch, code):
    highs_ends_with(monkeypatch, code)
    with pytest.raises(SolverError):
        project_targets(Y, P, **exact("highs"))


@pytest.mark.parametrize(
    ("solver", "params"),
    [
        ("gurobi", {"NoSuchName": 1}),
        ("gurobi", {"mip_max_nodes": 1}),
        ("gurobi", {"timelimit": 1}),
        ("highs", {"NoSuchName": 1}),
        ("highs", {"NodeLimit": 1}),
        ("highs", {"disp": True}),
    ],
)
@pytest.mark.parametrize("y", [Y, REAL], ids=["classes", "real"])
def test_an_unknown_name_in_solver_params_is_an_error(solver, params, y):
    with pytest.raises(ValueError, match="params of the solver") as caught:
        project_targets(
            y,
            sensitive_features=X,
            constraint=CoarseConstraint(),
            solver=Solver(solver, params=params),
        )
    assert str(next(iter(params))) in str(caught.value)
    assert repr(solver) in str(caught.value)


@pytest.mark.parametrize(
    ("solver", "name", "value"),
    [
        ("gurobi", "Threads", -5),
        ("gurobi", "Presolve", 77),
        ("gurobi", "MIPGap", "small"),
        ("highs", "threads", -5),
        ("highs", "mip_max_nodes", -1),
        ("highs", "mip_rel_gap", "small"),
    ],
)
@pytest.mark.usefixtures("solver_only")
def test_a_bad_value_in_solver_params_is_an_error_that_names_it(solver, name, value):
    with pytest.raises(ValueError, match=name):
        project_targets(Y, P, **exact(solver, params={name: value}))


@every_solver
def test_solver_params_are_read_and_left_alone(solver):
    params = {"gurobi": {"NodeLimit": 1000}, "highs": {"mip_max_nodes": 1000}}[solver]
    copy = dict(params)
    project_targets(Y, P, **exact(solver, params=params))
    assert params == copy


@pytest.fixture
def environments(monkeypatch):
    """Record what happens to environments of Gurobi, and refuse the default one."""
    gurobipy = pytest.importorskip("gurobipy", reason="it counts Gurobi's environments")
    log = SimpleNamespace(started=[], closed=set(), params={})

    class Env(gurobipy.Env):
        def setParam(self, name, value):
            log.params[name] = value
            return super().setParam(name, value)

        def start(self):
            log.started.append(id(self))
            return super().start()

        def dispose(self):
            log.closed.add(id(self))
            return super().dispose()

        close = dispose

        def __exit__(self, *error):
            log.closed.add(id(self))
            return super().__exit__(*error)

    class Model(gurobipy.Model):
        def __new__(cls, *args, env, **kwargs):
            assert isinstance(env, Env)
            return super().__new__(cls, *args, env=env, **kwargs)

    monkeypatch.setattr(gurobipy, "Env", Env)
    monkeypatch.setattr(gurobipy, "Model", Model)
    return log


@pytest.mark.usefixtures("solver_only")
class TestEnvironments:
    def test_one_environment_a_projection_closed_at_its_end(self, environments):
        with Projection(Y, **exact("gurobi")) as projection:
            assert not environments.started
            projection.solve(P)
            projection.solve(1 - P)
            assert len(environments.started) == 1
            assert not environments.closed
        assert environments.closed == set(environments.started)
        projection.close()

    @pytest.mark.parametrize("y", [Y, REAL], ids=["classes", "real"])
    def test_a_function_call_closes_its_own(self, environments, y):
        project_targets(y, sensitive_features=X, solver="gurobi", constraint=CoarseConstraint())
        assert len(environments.started) == 1
        assert environments.closed == set(environments.started)

    def test_closed_where_the_solver_raises(self, environments, monkeypatch):
        monkeypatch.setattr(_gurobi, "_STATUS", {})
        with pytest.raises(SolverError):
            project_targets(Y, P, **exact("gurobi"))
        assert len(environments.started) == 1
        assert environments.closed == set(environments.started)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_closed_where_the_user_interrupts(self, environments, error):
        def interrupted():
            with Projection(Y, **exact("gurobi")) as projection:
                projection.solve(P)
                raise error

        with pytest.raises(error):
            interrupted()
        assert environments.closed == set(environments.started)

    def test_closed_where_there_is_no_solution(self, environments):
        with pytest.warns(UserWarning, match="time_limit"):
            project_targets(Y, P, **exact("gurobi", params={"TimeLimit": 0.0}))
        assert environments.closed == set(environments.started)

    def test_none_where_no_solver_is_needed(self, environments):
        project_targets(
            REAL, sensitive_features=X, solver="gurobi", constraint=CoarseConstraint(np.inf)
        )
        project_targets(REAL, sensitive_features=X, solver="highs", constraint=CoarseConstraint())
        project_targets(Y, P, **exact("highs"))
        assert not environments.started

    def test_silent_and_seeded(self, environments):
        project_targets(Y, P, random_state=3, **exact("gurobi"))
        first = environments.params["Seed"]
        assert environments.params["OutputFlag"] == 0
        project_targets(Y, P, random_state=3, **exact("gurobi"))
        assert environments.params["Seed"] == first
        project_targets(Y, P, random_state=4, **exact("gurobi"))
        assert environments.params["Seed"] != first

    def test_a_licence_that_fails_names_the_ways_out(self, environments, monkeypatch):
        gurobipy = sys.modules["gurobipy"]

        def start(self):
            raise gurobipy.GurobiError(10009, "the licence expired on a Monday")

        monkeypatch.setattr(gurobipy.Env, "start", start)
        with pytest.raises(SolverLicenceError, match="expired on a Monday") as caught:
            project_targets(Y, P, **exact("gurobi"))
        for word in ("GRB_LICENSE_FILE", "`params`", "solver='highs'"):
            assert word in str(caught.value)
        assert environments.closed

    def test_auto_goes_on_with_highs_and_says_so_once(self, environments, monkeypatch):
        gurobipy = sys.modules["gurobipy"]

        def start(self):
            raise gurobipy.GurobiError(10009, "no seat is free")

        monkeypatch.setattr(gurobipy.Env, "start", start)
        monkeypatch.setenv("GRB_LICENSE_FILE", "somewhere")
        with (
            pytest.warns(UserWarning, match="no seat is free") as caught,
            Projection(Y, **exact("auto")) as projection,
        ):
            results = [projection.solve(P), projection.solve(1 - P)]
        assert len(caught) == 1
        assert "HiGHS" in str(caught[0].message)
        assert [r.solver for r in results] == ["highs", "highs"]
        assert results[0].objective == pytest.approx(
            project_targets(Y, P, **exact("highs")).objective
        )


def test_auto_is_highs_without_a_licence_of_the_users_own(monkeypatch, tmp_path):
    monkeypatch.delenv("GRB_LICENSE_FILE", raising=False)
    monkeypatch.setattr(_solver.Path, "home", lambda: tmp_path)
    if _solver.licence_is_configured({}):
        pytest.skip("this machine has a Gurobi licence in a system folder")
    assert project_targets(Y, P, **exact()).solver == "highs"
    assert (
        project_targets(REAL, sensitive_features=X, constraint=CoarseConstraint()).solver == "exact"
    )
    (tmp_path / "gurobi.lic").touch()
    assert _solver.licence_is_configured({})


def test_a_licence_is_configured_by_keys_or_by_the_environment(monkeypatch):
    assert _solver.licence_is_configured({"WLSAccessID": "a", "WLSSecret": "b", "LicenseID": 1})
    monkeypatch.setenv("GRB_LICENSE_FILE", "somewhere")
    assert _solver.licence_is_configured({})


@pytest.mark.usefixtures("solver_only")
def test_the_notice_of_the_restricted_licence_comes_once(monkeypatch):
    pytest.importorskip("gurobipy", reason="it is Gurobi's notice")
    if _solver.licence_is_configured({}):
        pytest.skip("this machine has a Gurobi licence of its own")
    monkeypatch.setattr(_gurobi, "_notices_given", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            project_targets(Y, P, **exact("gurobi"))
    notices = [str(w.message) for w in caught if "non-production" in str(w.message)]
    assert len(notices) == 1
    assert "end date 20" in notices[0]


@every_solver
@pytest.mark.parametrize("y", [Y, REAL], ids=["classes", "real"])
def test_nothing_is_printed(capfd, solver, y):
    for constraint, threshold in (
        (CoarseConstraint, 0.2),
        (FineConstraint, 0.2),
        (CoarseConstraint, 0.0),
    ):
        project_targets(
            y,
            sensitive_features=np.round(X, 1),
            constraint=constraint(threshold),
            solver=Solver(solver, time_limit=20),
        )
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


@pytest.mark.usefixtures("solver_only")
def test_integer_models_of_highs_print_nothing(capfd):
    for y in (Y, 1 - Y):
        project_targets(y, P, **exact("highs"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("solver_only")
def test_the_number_of_threads_is_free_whatever_ran_before():
    for threads in (1, 2, 3, 1):
        params = {"threads": threads}
        assert project_targets(Y, P, **exact("highs", params=params)).satisfied
    own = Highs()
    own.setOptionValue("output_flag", False)
    own.run()
    assert project_targets(Y, P, **exact("highs")).satisfied


def test_verbose_prints_the_solvers_log(capfd, monkeypatch):
    monkeypatch.setattr(_search, "rounded_ones", lambda *args: ())
    with Projection(Y, verbose=2, **exact("highs")) as projection:
        projection.solve(P)
    assert "HiGHS" in capfd.readouterr().out


@pytest.mark.usefixtures("solver_only")
def test_only_solver_gurobi_needs_gurobipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    for y in (Y, REAL):
        with pytest.raises(ImportError, match=r"gurobipy.*solver='highs'"):
            project_targets(y, sensitive_features=X, solver="gurobi", constraint=CoarseConstraint())
        assert project_targets(
            y, sensitive_features=X, solver="highs", constraint=CoarseConstraint()
        ).satisfied


def test_a_model_that_is_too_large_for_the_licence_names_size_and_ways_out():
    pytest.importorskip("gurobipy", reason="it is a limit of Gurobi's licence")
    if _solver.licence_is_configured({}):
        pytest.skip("this machine has a Gurobi licence of its own, without that limit")
    n = 2500
    rng = np.random.default_rng(1)
    model = LinearModel(
        rng.random(n) - 0.5, rng.normal(size=(1, n)), np.r_[-0.1], np.r_[0.1], np.ones(n), n
    )
    session = _gurobi.GurobiSession({}, 0, False)
    try:
        with pytest.raises(SolverLicenceError, match="2,000") as caught:
            session.solve_linear(model, gap=0.0, start=None, deadline=Deadline())
    finally:
        session.close()
    for word in ("2500 variables", "GRB_LICENSE_FILE", "solver='highs'"):
        assert word in str(caught.value)


@pytest.mark.parametrize("y", [Y, REAL], ids=["classes", "real"])
def test_a_result_is_frozen_and_picklable(y):
    result = project_targets(y, sensitive_features=X, constraint=CoarseConstraint())
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.objective = 0.0
    copy = pickle.loads(pickle.dumps(result))
    for field in dataclasses.fields(result):
        assert_array_equal(getattr(copy, field.name), getattr(result, field.name))


@pytest.mark.parametrize(
    "error",
    [
        RankDeficientKernelError.from_rank(1, 3, 2),
        InfeasibleProjectionError.from_problem(
            constraint="fine", n_rows=9, n_columns=3, threshold=0.1, slack=0.0
        ),
        SolverError.from_status("highs", "x"),
        SolverLicenceError.from_licence("x"),
        SolverLicenceError.from_size(2500, 3, "x"),
        SolverLimitError.from_limit(
            solver="highs",
            status="time_limit",
            constraint="fine",
            n_rows=9,
            n_columns=3,
            threshold=0.1,
            slack=0.0,
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_the_way_between_processes(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@every_solver
def test_random_state_decides_everything_that_is_drawn(solver):
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - it must not move
    one, same = (
        project_targets(
            Y,
            sensitive_features=np.round(X),
            solver=solver,
            random_state=5,
            constraint=CoarseConstraint(),
        )
        for _ in range(2)
    )
    assert_array_equal(one.targets, same.targets)
    from_object = project_targets(
        Y,
        sensitive_features=np.round(X),
        solver=solver,
        random_state=np.random.RandomState(5),
        constraint=CoarseConstraint(),
    )
    assert_array_equal(from_object.targets, one.targets)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_a_parameter_that_is_no_name_or_no_number_is_refused():
    for params, message in (
        ({1: 2}, r"holds \[1\], unknown"),
        ({"time_limit": np.nan}, r"\['time_limit'\] is NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            project_targets(
                Y,
                sensitive_features=X,
                constraint=CoarseConstraint(),
                solver=Solver("highs", params=params),
            )


@pytest.mark.parametrize("fails_at", ["Env", "Model"])
def test_a_licence_that_ends_is_said_and_auto_goes_on(monkeypatch, fails_at):
    gurobipy = pytest.importorskip("gurobipy", reason="it is Gurobi's licence")
    monkeypatch.setattr(_search, "rounded_ones", lambda *args: ())

    def expired(*args, **kwargs):
        raise gurobipy.GurobiError(10009, "license expired")

    monkeypatch.setattr(gurobipy, fails_at, expired)
    with pytest.raises(SolverLicenceError, match="license expired"):
        project_targets(Y, P, **exact("gurobi"))
    monkeypatch.setenv("GRB_LICENSE_FILE", "somewhere")
    with pytest.warns(UserWarning, match="goes on with HiGHS"):
        result = project_targets(Y, P, **exact(params={"TimeLimit": 50.0}))
    assert result.solver == "highs"
    assert result.satisfied


@pytest.mark.usefixtures("solver_only")
@pytest.mark.parametrize("fault", ["ImportError('built for another numpy')", "OSError('no file')"])
def test_auto_goes_on_without_a_gurobi_that_cannot_be_imported(monkeypatch, tmp_path, fault):
    (tmp_path / "gurobipy.py").write_text(f"raise {fault}")
    monkeypatch.delitem(sys.modules, "gurobipy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("GRB_LICENSE_FILE", "somewhere")
    given, solve = [], _solver.HighsSession.solve_linear

    def record(self, *args, **options):
        given.append(self.params)
        return solve(self, *args, **options)

    monkeypatch.setattr(_solver.HighsSession, "solve_linear", record)
    with pytest.warns(UserWarning, match="goes on with HiGHS"):
        result = project_targets(Y, P, **exact(params={"TimeLimit": 50.0}))
    assert result.solver == "highs"
    assert given == [{"time_limit": 50.0}]
    with pytest.raises(ImportError, match="could not be imported"):
        project_targets(REAL, sensitive_features=X, solver="gurobi", constraint=CoarseConstraint())


@pytest.mark.skipif(
    not hasattr(os, "setuid") or os.getuid() != 0, reason="only root may become another user"
)
def test_a_user_without_a_home_can_project():
    # As in containers with an arbitrary user id.
    code = """
import os, numpy as np, gedi_sklearn
from sklearn.linear_model import LinearRegression
x = np.arange(60.0)
def project():
    for y in (x, x % 2, np.digitize(x, [20, 40])):
        exact = {"solver": gedi_sklearn.Solver(gap=0)}
        for options in ({"solver": "highs"}, {}, {"loss": "absolute_error"} if y is x else exact):
            options["constraint"] = gedi_sklearn.CoarseConstraint()
            assert gedi_sklearn.project_targets(y, sensitive_features=x, **options).satisfied
    X = np.c_[x, x % 7]
    model = gedi_sklearn.MovingTargetsRegressor(LinearRegression(), sensitive_columns=0, max_iter=2)
    return np.isfinite(model.fit(X, x).predict(X)).all()
project()  # what it imports, another user may not read
os.environ.pop("HOME", None)
os.setuid(54321)
print(project())
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.stdout == "True\n", found.stderr


def test_the_advice_names_another_solver_only_where_there_is_one():
    assert "Try the other solver" in str(SolverError.from_status("highs", 4))
    advice = str(SolverError.from_status("exact", "no convergence"))
    assert "solver='exact'" in advice
    assert "use fewer of them" in advice
    assert "other solver" not in advice
