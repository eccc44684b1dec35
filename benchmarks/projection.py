"""The projection against the paper's full model, one variable a row, and alone at any size.

``python -m benchmarks.projection`` solves the same problems both ways on the same solver, HiGHS,
in one process: real targets as a quadratic program of n variables (through ``highspy``), two
classes as an integer program of n variables, all with distinct attribute values. The full model
grows until it does not answer within ``--limit`` seconds; the library alone goes on to a million
rows. Times are medians of ``--repeats`` runs of the library and of one run of the full model.
Writes ``results/projection.csv`` and the table of ``docs/projection_benchmark.md``.
"""

from __future__ import annotations

import argparse
import csv
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from scipy.optimize import Bounds, LinearConstraint, milp

from gedi_sklearn import ProjectionResult, __version__, project_targets

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "projection.csv"
TABLE = HERE.parent / "docs" / "projection_benchmark.md"
DEGREE = 5
THRESHOLD = 0.2
FIELDS = (
    "task",
    "n",
    "ours_seconds",
    "ours_gap",
    "ours_peak_mb",
    "full_seconds",
    "ratio",
    "objective_difference",
)
# Sizes at which both are solved, and further ones for the library alone.
BOTH = {
    "real, coarse": (200, 500, 1000, 2000, 4000),
    "classes, coarse": (2000, 10_000, 36_000),
}
ALONE = {
    "real, coarse": (100_000, 1_000_000),
    "classes, coarse": (100_000, 1_000_000),
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


def ours(task: str, x: np.ndarray, y: np.ndarray, p: np.ndarray) -> ProjectionResult:
    """Solve with the library, by HiGHS."""
    constraint = task.split(", ")[1]
    gap = 1e-6 if len(x) >= 1_000_000 else 5e-5
    return project_targets(
        y,
        p,
        sensitive_features=x,
        constraint=constraint,
        degree=DEGREE,
        threshold=THRESHOLD,
        solver="highs",
        gap=gap,
        time_limit=None,
    )


def coefficient_rows(x: np.ndarray) -> np.ndarray:
    """Return P with α̃ = P z, shape (k, n)."""
    columns = x[:, None] ** np.arange(1, DEGREE + 1)
    return np.linalg.pinv(columns - columns.mean(axis=0))


def full_real(
    x: np.ndarray, y: np.ndarray, p: np.ndarray, radius: float, limit: float
) -> float | None:
    """Solve min ‖z − p‖² + ‖z − y‖², ‖α̃‖₁ ≤ radius as a quadratic program; return the loss."""
    import highspy

    n, k = len(x), DEGREE
    # Columns: z, then α⁺ and α⁻; rows: Pz − α⁺ + α⁻ = 0, then Σ(α⁺ + α⁻) ≤ radius.
    matrix = sp.csc_array(
        np.block(
            [
                [coefficient_rows(x), -np.eye(k), np.eye(k)],
                [np.zeros((1, n)), np.ones((1, 2 * k))],
            ]
        )
    )
    infinity = highspy.kHighsInf
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n + 2 * k, k + 1
    lp.col_cost_ = np.r_[-2 * (p + y), np.zeros(2 * k)]
    lp.col_lower_ = np.r_[np.full(n, -infinity), np.zeros(2 * k)]
    lp.col_upper_ = np.full(n + 2 * k, infinity)
    lp.row_lower_ = np.r_[np.zeros(k), -infinity]
    lp.row_upper_ = np.r_[np.zeros(k), radius]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    hessian = highspy.HighsHessian()
    hessian.dim_ = n + 2 * k
    hessian.format_ = highspy.HessianFormat.kTriangular
    hessian.start_ = np.r_[np.arange(n + 1), np.full(2 * k, n)]
    hessian.index_, hessian.value_ = np.arange(n), np.full(n, 4.0)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("time_limit", limit)
    highs.passModel(lp)
    highs.passHessian(hessian)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    z = np.asarray(highs.getSolution().col_value)[:n]
    return float(((z - p) ** 2 + (z - y) ** 2).sum())


def full_classes(
    x: np.ndarray, y: np.ndarray, p: np.ndarray, radius: float, limit: float
) -> float | None:
    """Solve the Hamming distance with one binary variable a row, to the library's gap."""
    n, k = len(x), DEGREE
    rows = coefficient_rows(x)
    scale = np.abs(rows).max(axis=1)
    units = np.diag(radius / scale)
    matrix = np.block(
        [
            [rows / scale[:, None], -units, units],
            [np.zeros((1, n)), np.ones((1, 2 * k))],
            [np.ones((1, n)), np.zeros((1, 2 * k))],
        ]
    )
    cost = (1 - 2 * p) + (1 - 2 * y)
    constant = float((p + y).sum())
    # HiGHS takes the gap relative to its own objective, which leaves the constant out.
    result = milp(
        np.r_[cost, np.zeros(2 * k)],
        integrality=np.r_[np.ones(n), np.zeros(2 * k)],
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(
            sp.csr_array(matrix), np.r_[np.zeros(k), -np.inf, 1], np.r_[np.zeros(k), 1, n - 1]
        ),
        options={"time_limit": limit, "mip_rel_gap": 5e-5},
    )
    return None if result.status != 0 else float(result.fun) + constant


def timed(function: Callable[[], object]) -> tuple[float, object]:
    """Return the seconds of one call, and what it returned."""
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def measure(task: str, n: int, *, both: bool, repeats: int, limit: float) -> dict[str, object]:
    """Solve one problem and return a line of the results."""
    x, y, p = problem(task, n)
    runs = [timed(lambda: ours(task, x, y, p)) for _ in range(repeats)]
    seconds = statistics.median(run[0] for run in runs)
    result = runs[-1][1]
    assert isinstance(result, ProjectionResult)
    tracemalloc.start()
    ours(task, x, y, p)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    row: dict[str, object] = dict.fromkeys(FIELDS, "")
    row |= {
        "task": task,
        "n": n,
        "ours_seconds": f"{seconds:.4g}",
        "ours_gap": f"{result.gap:.1e}",
        "ours_peak_mb": f"{peak:.1f}",
    }
    if both:
        full = full_real if task.startswith("real") else full_classes
        full_seconds, loss = timed(lambda: full(x, y, p, float(result.threshold), limit))
        row["full_seconds"] = f"{full_seconds:.4g}" if loss is not None else f"> {limit:.0f}"
        row["ratio"] = f"{full_seconds / seconds:.0f}" if loss is not None else ""
        if isinstance(loss, float):
            row["objective_difference"] = f"{(result.objective - loss) / loss:.1e}"
    return row


def write(rows: Sequence[dict[str, object]], results: Path, table: Path) -> None:
    """Write the lines as CSV and as a Markdown page."""
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    lines = [
        "# The projection in time and memory",
        "",
        "Written by `python -m benchmarks.projection`. One process on "
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}, scipy "
        f"{scipy.__version__}, scikit-learn {sklearn.__version__}, gedi_sklearn {__version__}. "
        f"Degree {DEGREE}, threshold {THRESHOLD}, HiGHS on both sides; distinct attribute values, "
        "predictions beside targets. The full model has one variable a row; its time is the "
        "solver's, "
        "the library's is everything. Memory is the peak that Python's allocator sees.",
        "",
        "| " + " | ".join(name.replace("_", " ") for name in FIELDS) + " |",
        "| " + " | ".join("---" for _ in FIELDS) + " |",
        *("| " + " | ".join(str(row[name]) for name in FIELDS) + " |" for row in rows),
        "",
    ]
    table.write_text("\n".join(lines), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.projection", description=__doc__)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for a full model")
    parser.add_argument("--repeats", type=int, default=3, help="runs of the library")
    parser.add_argument("--largest", type=int, default=1_000_000, help="leave out larger problems")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the CSV")
    parser.add_argument("--table", type=Path, default=TABLE, help="the Markdown page")
    options = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    for sizes, both in ((BOTH, True), (ALONE, False)):
        for task, wanted in sizes.items():
            answered = both
            for n in (size for size in wanted if size <= options.largest):
                row = measure(task, n, both=answered, repeats=options.repeats, limit=options.limit)
                answered = answered and not str(row["full_seconds"]).startswith(">")
                rows.append(row)
                print(*(f"{name}={row[name]}" for name in FIELDS), flush=True)
                write(rows, options.output, options.table)


if __name__ == "__main__":
    main()
