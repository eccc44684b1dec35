"""The projection of two and more classes, of one version of the package or of two side by side.

``python -m benchmarks.classes`` projects classes at the size of Adult under every combination of
``--classes``, ``--constraints`` and ``--degrees``: attribute values all distinct, probabilities
of a simulated model beside the targets, a standardised polynomial, the threshold a share of the
reference. ``--other PATH`` names a folder that holds another version of the package. Both are
then run in alternation, each time in a process of its own, and the last column is the median over
these pairs of this version's CPU seconds divided by the other's: below 1 this version is the
faster one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._constraints import named_constraint

HERE = Path(__file__).resolve()
# The folder that holds this version of the package.
OURS = HERE.parent.parent
THRESHOLD = 0.2
FIELDS = (
    "n",
    "classes",
    "constraint",
    "degree",
    "solver",
    "version",
    "objective",
    "gap",
    "status",
    "variables",
    "seconds",
    "cpu_seconds",
    "ratio",
)
# Seconds beyond the limit of a solve after which a run is ended.
_GRACE = 600.0


def problem(n: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return attribute, targets and probabilities of n rows, no attribute value twice.

    The probabilities, (n,) for two classes and (n, K) for more, see the attribute and what else
    the model knows; the targets are drawn from them.
    """
    rng = np.random.default_rng([seed, n, n_classes])
    x = rng.normal(size=n)
    slopes = np.linspace(-1, 1, n_classes)
    score = np.outer(x, slopes) + 0.3 * np.outer(x**2, np.cos(np.arange(n_classes)))
    score += rng.normal(size=(n, n_classes))
    p = np.exp(score - score.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.uniform(size=(n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return x, y, p[:, 1] if n_classes == 2 else p


def measure_here(
    n: int, n_classes: int, constraint: str, degree: int, solver: str, limit: float, seed: int
) -> dict[str, object]:
    """Solve one problem with the package that this process imports."""
    from sklearn.exceptions import ConvergenceWarning

    import gedi_sklearn

    # Said once in the docs; not again for every solve.
    warnings.filterwarnings("ignore", "Gurobi runs on the size-limited licence", UserWarning)
    # What was reached within the limit is in the table.
    warnings.simplefilter("ignore", ConvergenceWarning)
    x, y, p = problem(n, n_classes, seed)
    kernel = gedi_sklearn.PolynomialKernel(degree, standardize=True)
    wall, cpu = time.perf_counter(), time.process_time()
    row: dict[str, object] = {"package": str(Path(gedi_sklearn.__file__).parent)}
    try:
        result = gedi_sklearn.project_targets(
            y,
            p,
            sensitive_features=x,
            loss="hamming",
            constraint=named_constraint(constraint, THRESHOLD, kernel=kernel),
            solver=gedi_sklearn.Solver(solver, gap=5e-5, time_limit=limit),
        )
    except (RuntimeError, ValueError) as error:
        # A solver's failure, or a constraint that no targets satisfy, is a result too.
        row["status"] = type(error).__name__
        row["message"] = str(error)
    else:
        row |= {
            "objective": result.objective,
            "gap": result.gap,
            "status": result.status,
            "variables": result.n_variables,
        }
    row["seconds"] = time.perf_counter() - wall
    row["cpu_seconds"] = time.process_time() - cpu
    return row


def measure(folder: Path, arguments: dict[str, object]) -> dict[str, object]:
    """Solve one problem with the package in a folder, in a process of its own on one thread."""
    one_thread = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(one_thread, "1"), "PYTHONPATH": str(folder)}
    limit = float(str(arguments["limit"]))
    try:
        done = subprocess.run(
            [sys.executable, str(HERE), "--worker", json.dumps(arguments)],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit + _GRACE,
        )
    except subprocess.TimeoutExpired as error:
        return {"status": "killed", "seconds": error.timeout, "cpu_seconds": error.timeout}
    if done.returncode:
        raise RuntimeError(f"the package in {folder} failed:\n{done.stderr}")
    row: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    if Path(str(row["package"])).parent != folder:
        raise RuntimeError(f"{folder} holds no package: {row['package']} was imported.")
    return row


def median_row(runs: Sequence[dict[str, object]]) -> dict[str, object]:
    """Return the last run with the median of the seconds of all."""
    seconds = {
        name: f"{statistics.median(float(str(run[name])) for run in runs):.3g}"
        for name in ("seconds", "cpu_seconds")
    }
    row = {**runs[-1], **seconds}
    if "objective" in row:
        row |= {"objective": f"{row['objective']:.8g}", "gap": f"{row['gap']:.1e}"}
    return row


def compare(
    folders: dict[str, Path], arguments: dict[str, object], repeats: int
) -> list[dict[str, object]]:
    """Return a line of results for each version, run in alternation."""
    runs: dict[str, list[dict[str, object]]] = {version: [] for version in folders}
    for _ in range(repeats):
        for version, folder in folders.items():
            runs[version].append(measure(folder, arguments))
    rows = [median_row(runs[version]) | {"version": version} for version in folders]
    if "other" in runs:
        pairs = zip(runs["ours"], runs["other"], strict=True)
        ratios = [float(str(a["cpu_seconds"])) / float(str(b["cpu_seconds"])) for a, b in pairs]
        rows[0]["ratio"] = f"{statistics.median(ratios):.2f}"
    shared = {name: arguments[name] for name in ("n", "constraint", "degree", "solver")}
    shared["classes"] = arguments["n_classes"]
    return [{name: {**row, **shared}.get(name, "") for name in FIELDS} for row in rows]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.classes", description=__doc__)
    parser.add_argument("--other", type=Path, help="a folder that holds another version")
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 3, 10], help="numbers of")
    parser.add_argument("--constraints", nargs="+", default=["coarse", "fine"])
    parser.add_argument("--degrees", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--rows", type=int, nargs="+", default=[24_000])
    parser.add_argument("--solver", default="highs")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of one solve")
    parser.add_argument("--repeats", type=int, default=3, help="runs of every version")
    parser.add_argument("--seed", type=int, default=0, help="of the simulated data")
    parser.add_argument("--output", type=Path, help="a CSV")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker is not None:
        print(json.dumps(measure_here(**json.loads(options.worker))))
        return
    folders = {"ours": OURS}
    if options.other is not None:
        folders["other"] = options.other.resolve()
    rows: list[dict[str, object]] = []
    print("| " + " | ".join(FIELDS) + " |\n|" + " --- |" * len(FIELDS))
    for n in options.rows:
        for n_classes in options.classes:
            for constraint in options.constraints:
                for degree in options.degrees:
                    one = {
                        "n": n,
                        "n_classes": n_classes,
                        "constraint": constraint,
                        "degree": degree,
                        "solver": options.solver,
                        "limit": options.limit,
                        "seed": options.seed,
                    }
                    for row in compare(folders, one, options.repeats):
                        rows.append(row)
                        print("| " + " | ".join(str(row[name]) for name in FIELDS) + " |")
                    sys.stdout.flush()
    if options.output is not None:
        # Not above: a worker has the other version's folders on its path.
        from benchmarks._storage import write_rows

        write_rows(options.output, FIELDS, rows)


if __name__ == "__main__":
    main()
