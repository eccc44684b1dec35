"""The projection against the paper's full model, one variable a row, and alone at any size.

``python -m benchmarks.projection`` solves the same problems both ways on the same solver: real
targets as a quadratic program of n variables (HiGHS through ``highspy``), two classes as an
integer program of n variables to the same gap, all with distinct attribute values. Each model has
``--limit`` seconds to answer; the library alone goes on to a million rows. Gurobi solves the full
model where its size-limited licence holds it, or at any size with ``--full-licence``. Times are
medians of ``--repeats`` runs of the library (one, where it is long) and one run of the full model.
Writes ``results/projection.csv`` and the table of ``docs/projection_benchmark.md``.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import platform
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.exceptions import ConvergenceWarning

from benchmarks._constraints import named_constraint
from benchmarks._tables import insert_between
from gedi_sklearn import ProjectionResult, Solver, __version__, project_targets

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "projection.csv"
TABLE = HERE.parent / "docs" / "projection_benchmark.md"
BEGIN = "<!-- projection: begin (written by `python -m benchmarks.projection`) -->"
END = "<!-- projection: end -->"
DEGREE = 5
THRESHOLD = 0.2
FIELDS = (
    "solver",
    "task",
    "n",
    "ours_seconds",
    "ours_gap",
    "ours_peak_mb",
    "full_seconds",
    "ratio",
    "objective_difference",
)
# Rows of a full model that the licence which comes with gurobipy holds.
GUROBI_ROWS = {"real, coarse": 180, "classes, coarse": 1900}
# Seconds of a run that is not repeated.
_LONG = 30.0
# Seconds for a process to start and to notice the limit itself.
_GRACE = 10.0
# Sizes at which both are solved, and further ones for the library alone.
BOTH = {
    "real, coarse": (180, 500, 1000, 2000, 4000),
    "classes, coarse": (1900, 10_000, 36_000),
}
ALONE = {
    "real, coarse": (100_000, 1_000_000),
    "classes, coarse": (24_000, 100_000, 1_000_000),
    "classes, fine": (24_000, 100_000, 1_000_000),
}


def problem(task: str, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return attribute, targets and predictions of n rows, no attribute value twice."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    if task.startswith("real"):
        y = x + 0.5 * x**2 + rng.normal(size=n)
        return x, y, y + 0.5 * rng.normal(size=n)
    p = np.clip(1 / (1 + np.exp(-x - 0.5 * rng.normal(size=n))), 0.01, 0.99)
    return x, (rng.uniform(size=n) < p).astype(int), p


def ours(
    task: str, x: np.ndarray, y: np.ndarray, p: np.ndarray, solver: str, limit: float
) -> ProjectionResult:
    """Solve with the library, under the same limit."""
    constraint = task.split(", ")[1]
    gap = 1e-6 if len(x) >= 1_000_000 else 5e-5
    return project_targets(
        y,
        p,
        sensitive_features=x,
        constraint=named_constraint(constraint, THRESHOLD, kernel=DEGREE),
        solver=Solver(solver, gap=gap, time_limit=limit),
    )


def coefficient_rows(x: np.ndarray) -> np.ndarray:
    """Return P with α̃ = P z, shape (k, n)."""
    columns = x[:, None] ** np.arange(1, DEGREE + 1)
    return np.linalg.pinv(columns - columns.mean(axis=0))


@dataclass(frozen=True)
class FullModel:
    """The paper's model: min z'z·h/2 + c'x over x = (z, v⁺, v⁻), one z a row, ‖α̃‖₁ ≤ radius.

    The rows are Pz − q(v⁺ − v⁻) = 0, scaled to a largest entry of 1, and Σ(v⁺ + v⁻) ≤ 1; for
    classes also 1 ≤ Σz ≤ n − 1. `constant` makes the objective the loss.
    """

    cost: np.ndarray
    curvature: float  # h
    matrix: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    n: int
    constant: float

    @property
    def gap(self) -> float:
        """The library's gap, for integers: a share of Σ|c|."""
        return 5e-5 * float(np.abs(self.cost).sum())


def full_model(task: str, x: np.ndarray, y: np.ndarray, p: np.ndarray, radius: float) -> FullModel:
    """Return the model of a problem: squared loss or Hamming distance to p and to y."""
    n, k = len(x), DEGREE
    rows = coefficient_rows(x)
    scale = np.abs(rows).max(axis=1)
    units = np.diag(radius / scale)
    matrix = np.block(
        [
            [rows / scale[:, None], -units, units],
            [np.zeros((1, n)), np.ones((1, 2 * k))],
        ]
    )
    lower, upper = np.r_[np.zeros(k), -np.inf], np.r_[np.zeros(k), 1.0]
    no_cost = np.zeros(2 * k)
    if task.startswith("real"):
        constant = float((p**2 + y**2).sum())
        return FullModel(np.r_[-2 * (p + y), no_cost], 4.0, matrix, lower, upper, n, constant)
    matrix = np.vstack([matrix, np.r_[np.ones(n), no_cost]])
    cost = np.r_[(1 - 2 * p) + (1 - 2 * y), no_cost]
    return FullModel(
        cost, 0.0, matrix, np.r_[lower, 1], np.r_[upper, n - 1], n, float((p + y).sum())
    )


def solve_by_highs(model: FullModel, limit: float) -> float | None:
    """Return the loss; None where the limit was reached. HiGHS has no quadratic integers."""
    if model.curvature:
        return _quadratic_by_highs(model, limit)
    integrality = np.zeros(len(model.cost))
    integrality[: model.n] = 1
    options = {"time_limit": limit, "mip_rel_gap": 0.0, "mip_abs_gap": model.gap}
    with warnings.catch_warnings():
        # scipy passes options on that it does not list, with a warning.
        warnings.filterwarnings("ignore", "Unrecognized options", RuntimeWarning)
        result = milp(
            model.cost,
            integrality=integrality,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(sp.csr_array(model.matrix), model.lower, model.upper),
            options=options,
        )
    return None if result.status != 0 else float(result.fun) + model.constant


def _quadratic_by_highs(model: FullModel, limit: float) -> float | None:
    import highspy

    n, size = model.n, len(model.cost)
    matrix = sp.csc_array(model.matrix)
    infinity = highspy.kHighsInf
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = size, len(model.lower)
    lp.col_cost_ = model.cost
    lp.col_lower_ = np.r_[np.full(n, -infinity), np.zeros(size - n)]
    lp.col_upper_ = np.full(size, infinity)
    lp.row_lower_, lp.row_upper_ = model.lower, model.upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    hessian = highspy.HighsHessian()
    hessian.dim_ = size
    hessian.format_ = highspy.HessianFormat.kTriangular
    hessian.start_ = np.r_[np.arange(n + 1), np.full(size - n, n)]
    hessian.index_, hessian.value_ = np.arange(n), np.full(n, model.curvature)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("time_limit", limit)
    highs.passModel(lp)
    highs.passHessian(hessian)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return float(highs.getObjectiveValue()) + model.constant


def solve_by_gurobi(model: FullModel, limit: float) -> float | None:
    """Return the loss; None where the limit was reached."""
    import gurobipy

    grb, size = gurobipy.GRB, len(model.cost)
    kinds = np.full(size, grb.CONTINUOUS)
    low, high = np.zeros(size), np.full(size, grb.INFINITY)
    if model.curvature:
        low[: model.n] = -grb.INFINITY
    else:
        kinds[: model.n] = grb.BINARY
    settings = {"OutputFlag": 0, "TimeLimit": limit, "MIPGap": 0.0, "MIPGapAbs": model.gap}
    with gurobipy.Env(params=settings) as env, gurobipy.Model(env=env) as full:
        variables = full.addMVar(size, lb=low, ub=high, vtype=kinds)
        z = variables[: model.n]
        full.addConstr(model.matrix @ variables <= np.minimum(model.upper, grb.INFINITY))
        full.addConstr(model.matrix @ variables >= np.maximum(model.lower, -grb.INFINITY))
        full.setObjective(model.curvature / 2 * (z @ z) + model.cost @ variables)
        full.optimize()
        return float(full.ObjVal) + model.constant if full.Status == grb.OPTIMAL else None


FULL_SOLVERS = {"highs": solve_by_highs, "gurobi": solve_by_gurobi}


def timed(function: Callable[[], object]) -> tuple[float, object]:
    """Return the seconds of one call, and what it returned."""
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def answer_within(limit: float, solver: str, model: FullModel) -> tuple[float, object]:
    """Return the seconds of a full model and its loss, None where it takes longer than the limit.

    HiGHS looks at its limit between the steps of a quadratic program, of which one can take
    minutes: the model is solved in a process of its own, which is ended.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_answer, args=(sender, limit, solver, model))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit + _GRACE) else (limit, None)
    finally:
        process.kill()
        process.join()


def _send_answer(sender: Connection, limit: float, solver: str, model: FullModel) -> None:
    sender.send(timed(lambda: FULL_SOLVERS[solver](model, limit)))


def measure(
    solver: str, task: str, n: int, *, both: bool, repeats: int, limit: float
) -> dict[str, object]:
    """Solve one problem and return a line of the results."""
    x, y, p = problem(task, n)
    runs = [timed(lambda: ours(task, x, y, p, solver, limit))]
    while len(runs) < repeats and runs[0][0] < _LONG:
        runs.append(timed(lambda: ours(task, x, y, p, solver, limit)))
    seconds = statistics.median(run[0] for run in runs)
    result = runs[-1][1]
    assert isinstance(result, ProjectionResult)
    tracemalloc.start()
    ours(task, x, y, p, solver, limit)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    row: dict[str, object] = dict.fromkeys(FIELDS, "")
    row |= {
        "solver": solver,
        "task": task,
        "n": n,
        "ours_seconds": f"{seconds:.4g}",
        "ours_gap": f"{result.gap:.1e}",
        "ours_peak_mb": f"{peak:.1f}",
    }
    if both:
        model = full_model(task, x, y, p, float(result.threshold))
        full_seconds, loss = answer_within(limit, solver, model)
        answered = isinstance(loss, float)
        row["full_seconds"] = f"{full_seconds:.4g}" if answered else f"> {limit:.0f}"
        ratio = full_seconds / seconds
        row["ratio"] = f"{'' if answered else '> '}{ratio:.{0 if ratio >= 10 else 1}f}"
        if isinstance(loss, float):
            row["objective_difference"] = f"{(result.objective - loss) / loss:.1e}"
    return row


def write(rows: Sequence[dict[str, object]], results: Path, table: Path, command: str) -> None:
    """Write the lines as CSV and as a part of a Markdown page."""
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    lines = [
        f"Written by `{command}`. On "
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}, scipy "
        f"{scipy.__version__}, scikit-learn {sklearn.__version__}, gedi_sklearn {__version__}. "
        f"Degree {DEGREE}, threshold {THRESHOLD}, the same solver on both sides; distinct "
        "attribute values, "
        "predictions beside targets. The full model has one variable a row; its time is the "
        "solver's, "
        "the library's is everything. Memory is the peak that Python's allocator sees.",
        "",
        "| " + " | ".join(name.replace("_", " ") for name in FIELDS) + " |",
        "| " + " | ".join("---" for _ in FIELDS) + " |",
        *("| " + " | ".join(str(row[name]) for name in FIELDS) + " |" for row in rows),
    ]
    page = table.read_text(encoding="utf-8")
    page = insert_between(page, BEGIN, END, "\n".join(lines), page=f"docs/{TABLE.name}")
    table.write_text(page, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.projection", description=__doc__)
    parser.add_argument(
        "--limit", type=float, default=300.0, help="seconds for one model, on either side"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs of the library")
    parser.add_argument("--largest", type=int, default=1_000_000, help="leave out larger problems")
    parser.add_argument(
        "--full-licence", action="store_true", help="full Gurobi models of any size"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="the CSV")
    parser.add_argument(
        "--table", type=Path, default=TABLE, help="the Markdown page, with the markers"
    )
    options = parser.parse_args(arguments)
    # Said once in the docs; not again for every solve.
    warnings.filterwarnings("ignore", "Gurobi runs on the size-limited licence", UserWarning)
    # What was reached within the limit is in the table.
    warnings.simplefilter("ignore", ConvergenceWarning)
    command = f"python -m benchmarks.projection --limit {options.limit:.0f}"
    rows: list[dict[str, object]] = []
    for solver in FULL_SOLVERS:
        for sizes, both in ((BOTH, True), (ALONE, False)):
            for task, wanted in sizes.items():
                for n in (size for size in wanted if size <= options.largest):
                    licensed = options.full_licence or n <= GUROBI_ROWS.get(task, 0)
                    row = measure(
                        solver,
                        task,
                        n,
                        both=both and (licensed or solver == "highs"),
                        repeats=options.repeats,
                        limit=options.limit,
                    )
                    rows.append(row)
                    print(*(f"{name}={row[name]}" for name in FIELDS), flush=True)
                    write(rows, options.output, options.table, command)


if __name__ == "__main__":
    main()
