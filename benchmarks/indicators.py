"""Time and memory of the indicators against least squares, maxcorr and a plain density.

``python -m benchmarks.indicators`` measures everything in one process, one after the other, and
writes ``results/indicators.csv`` and the table of ``docs/indicators_benchmark.md``. Rivals that
are not installed are left out. Times are the best of the repetitions; memory is the peak that
Python's allocator sees beyond the inputs, in copies of the inputs (LAPACK's own workspace, which
``lstsq`` needs, is not seen).
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy

from gedi_sklearn.metrics import didi, gedi, hgr

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "indicators.csv"
TABLE = HERE.parent / "docs" / "indicators_benchmark.md"
DEGREE = 5
# Above these sizes a rival takes minutes, or more memory than a laptop has.
LIMITS = {"plain KDE": 20_000, "hgr kde": 1_000_000, "maxcorr sk": 1_000_000, "maxcorr dk": 100_000}
FIELDS = ("n", "task", "method", "seconds", "copies", "value", "ratio")


def powers(x: np.ndarray) -> np.ndarray:
    columns = np.empty((len(x), DEGREE))
    columns[:, 0] = x
    for j in range(1, DEGREE):
        np.multiply(columns[:, j - 1], x, out=columns[:, j])
    return columns


def least_squares(x: np.ndarray, y: np.ndarray) -> float:
    columns = powers(x)
    columns -= columns.mean(axis=0)
    return float(np.abs(np.linalg.lstsq(columns, y - y.mean(), rcond=None)[0]).sum())


def plain_density(x: np.ndarray, y: np.ndarray) -> float:
    """HGR from n × bins² distances, as the definition reads."""
    x, y = ((v - v.mean()) / v.std(ddof=1) for v in (x, y))
    h = len(x) ** (-1 / 6)
    grid = np.linspace(-2.5, 2.5, int(min(50, 5 / h)))
    distance = (x[:, None, None] - grid[:, None]) ** 2 + (y[:, None, None] - grid) ** 2
    density = np.exp(-distance / (2 * h**2)).mean(axis=0) / (h * np.sqrt(2 * np.pi)) + 1e-10
    density /= density.sum()
    margins = np.outer(density.sum(axis=1), density.sum(axis=0))
    return float(np.linalg.svd(density / np.sqrt(margins), compute_uv=False)[1])


def maxcorr_hgr(algorithm: str) -> Callable[[np.ndarray, np.ndarray], float]:
    def compute(x: np.ndarray, y: np.ndarray) -> float:
        import maxcorr

        return float(maxcorr.hgr(algorithm=algorithm).compute(x, y))

    return compute


def methods() -> Iterator[tuple[str, str, Callable[[np.ndarray, np.ndarray], float]]]:
    """Yield task, method and function; the first of a task is what the others are compared to."""
    yield "GeDI, degree 5", "gedi", lambda x, y: gedi(y, sensitive_features=x, kernel=DEGREE)
    yield "GeDI, degree 5", "lstsq", least_squares
    yield (
        "binned DIDI, 10 bins",
        "didi(n_bins=10)",
        lambda x, y: didi(y, sensitive_features=x, n_bins=10),
    )
    yield "HGR, density", "hgr kde", lambda x, y: hgr(y, sensitive_features=x)
    yield "HGR, density", "plain KDE", plain_density
    yield (
        "HGR, polynomials",
        "hgr kernel",
        lambda x, y: hgr(y, sensitive_features=x, method="kernel"),
    )
    if find_spec("maxcorr") is not None:
        for algorithm in ("sk", "dk"):
            yield "HGR, polynomials", f"maxcorr {algorithm}", maxcorr_hgr(algorithm)


def measure(function: Callable[[], float], repeats: int) -> tuple[float, int, float]:
    """Return the best time, the peak of allocated bytes and the value."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        value = function()
        seconds.append(time.perf_counter() - start)
    tracemalloc.start()
    function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return min(seconds), peak, value


def run(sizes: list[int], seed: int, repeats: int) -> list[dict]:
    rows: list[dict] = []
    for n in sizes:
        rng = np.random.default_rng(seed)
        # Inside the grid of the density; standardised, as the indicators' docs recommend.
        x = np.clip(rng.normal(size=n), -2.2, 2.2)
        x = (x - x.mean()) / x.std()
        y = np.clip(x + 0.3 * x**2 + rng.normal(size=n), -2.5, 3.5)
        first: dict[str, float] = {}
        for task, method, function in methods():
            if n > LIMITS.get(method, n):
                continue
            seconds, peak, value = measure(partial(function, x, y), repeats)
            first.setdefault(task, seconds)
            rows.append(
                {
                    "n": n,
                    "task": task,
                    "method": method,
                    "seconds": seconds,
                    "copies": peak / (x.nbytes + y.nbytes),
                    "value": value,
                    "ratio": seconds / first[task],
                }
            )
            print(f"{n:>9,} {task:22} {method:12} {seconds:9.4f} s  × {rows[-1]['ratio']:.1f}")
    return rows


def write(rows: list[dict], seed: int) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    lines = [
        "# Time and memory of the indicators",
        "",
        f"Rebuilt by `python -m benchmarks.indicators` (seed {seed}; numpy {np.__version__}, scipy "
        f"{scipy.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, BLAS "
        f"threads: {os.environ.get('OPENBLAS_NUM_THREADS', 'default')}). Time is also given in",
        "units of the first line of its task; memory is the peak beyond the inputs, in copies of "
        "the inputs.",
        "",
        "| n | task | method | seconds | ratio | memory | value |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row['n']:,} | {row['task']} | {row['method']} | {row['seconds']:.4f} | "
        f"{row['ratio']:.1f} | {row['copies']:.1f} | {row['value']:.6f} |"
        for row in rows
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10_000, 20_000, 100_000, 1_000_000, 10_000_000]
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-write", action="store_true", help="print only")
    options = parser.parse_args()
    rows = run(options.sizes, options.seed, options.repeats)
    if not options.no_write:
        write(rows, options.seed)


if __name__ == "__main__":
    main()
