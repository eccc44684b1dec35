"""GeDI of more rows than fit into memory: time per row, peak memory, share of a plain read.

``OMP_NUM_THREADS=1 python -m benchmarks.scale`` streams 1e5 to 1e8 rows from generated chunks
through a ``GediAccumulator``, in one process and in two, and writes ``results/scale.csv`` and the
table of ``docs/scale_benchmark.md``. Chunks are drawn before the clock runs, and a few of them are
used in turn: the time is that of the sums. A read is one sum over the attribute and one over the
targets, of the same chunk just before.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks._tables import insert_between, markdown
from gedi_sklearn.metrics import GediAccumulator

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "scale.csv"
PAGE = HERE.parent / "docs" / "scale_benchmark.md"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
DEGREE = 5
CHUNK = 500_000
FIELDS = ("rows", "workers", "ns_per_row", "share_of_read", "peak_mb", "value")


def make_chunks(seed: int, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a few chunks of attribute and targets."""
    rng = np.random.default_rng(seed)
    chunks = []
    for _ in range(4):
        x, noise = rng.normal(size=(2, size))
        chunks.append((x, x + 0.3 * x**2 + noise))
    return chunks


def stream(seed: int, n_rows: int) -> tuple[float, float, dict, float]:
    """Read and accumulate chunks of as many rows in all, one after the other.

    Returns
    -------
    tuple
        The CPU seconds of reading and of the accumulator, its state, and the peak of resident
        memory in MB.
    """
    accumulator = GediAccumulator(kernel=DEGREE, reference=np.linspace(-4, 4, 200))
    size = min(CHUNK, n_rows)
    chunks = make_chunks(seed, size)
    seconds_read = seconds = 0.0
    for j in range(n_rows // size):
        x, y = chunks[j % len(chunks)]
        start = time.process_time()
        x.sum(), y.sum()
        middle = time.process_time()
        accumulator.update(y, sensitive_features=x)
        end = time.process_time()
        seconds_read, seconds = seconds_read + middle - start, seconds + end - middle
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds_read, seconds, accumulator.to_dict(), peak


def measure(n_rows: int, workers: int) -> dict:
    """Return one line of the table; every size has processes of its own, for the peak of memory."""
    share = n_rows // workers
    with ProcessPoolExecutor(workers) as pool:
        answers = list(pool.map(stream, range(workers), [share] * workers))
    all_read, all_seconds, states, peaks = zip(*answers, strict=True)
    first, *others = map(GediAccumulator.from_dict, states)
    for other in others:
        first.merge(other)
    seconds = max(all_seconds)
    return {
        "rows": n_rows,
        "workers": workers,
        "ns_per_row": round(seconds / n_rows * 1e9, 2),
        "share_of_read": round(seconds / max(all_read), 1),
        "peak_mb": round(max(peaks)),
        "value": round(first.gedi(), 6),
    }


def write(rows: list[dict]) -> None:
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    intro = (
        f"`OMP_NUM_THREADS=1 python -m benchmarks.scale` (degree {DEGREE}, chunks of {CHUNK:,} "
        f"rows, CPU time of the slowest worker; numpy {np.__version__}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores):"
    )
    head = ["rows", "workers", "ns per row", "times one read", "peak memory of a worker, MB"]
    numbers = ("workers", "ns_per_row", "share_of_read", "peak_mb")
    body = [[f"{row['rows']:,}", *(str(row[name]) for name in numbers)] for row in rows]
    table = f"{intro}\n\n{markdown(head, body)}"
    page = insert_between(PAGE.read_text(encoding="utf-8"), BEGIN, END, table, page=PAGE.name)
    PAGE.write_text(page, encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=float, nargs="+", default=[1e5, 1e6, 1e7, 1e8], help="numbers of rows"
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--no-write", action="store_true", help="print only")
    options = parser.parse_args(arguments)
    rows = []
    for n_rows in options.rows:
        for workers in options.workers:
            rows.append(measure(int(n_rows), workers))
            print(rows[-1], flush=True)
    if not options.no_write:
        write(rows)


if __name__ == "__main__":
    main()
